//! The steps of continuous integration, in the order in which a failure is cheapest to see.
//!
//! The first step that fails ends the run. A step whose tool is not installed is skipped and named again in
//! the last line; it is never counted as passed.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its user")]

use std::{
    env,
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use crate::tidy;

/// One cargo invocation.
struct Step {
    name: &'static str,
    arguments: &'static [&'static str],
    /// The rustup component without which the step is skipped; `None` when cargo itself is enough.
    component: Option<&'static str>,
}

const BEFORE_TIDY: [Step; 3] = [
    Step { name: "dependencies", arguments: &["fetch", "--locked"], component: None },
    Step { name: "formatting", arguments: &["fmt", "--all", "--check"], component: Some("fmt") },
    Step {
        name: "lints",
        arguments: &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
        component: Some("clippy"),
    },
];

/// What somebody who uses the engine alone gets: its documentation, and packages that need nothing of this tree.
const LIBRARY: [Step; 2] = [
    Step {
        name: "documentation",
        arguments: &["rustdoc", "-p", "weir-engine", "--lib", "--", "-D", "warnings"],
        component: None,
    },
    Step {
        name: "packages",
        arguments: &[
            "package",
            "-p",
            "weir-sys",
            "-p",
            "weir-engine-types",
            "-p",
            "weir-engine",
            "--no-verify",
            "--allow-dirty",
            "--offline",
        ],
        component: None,
    },
];

const TESTS: Step = Step { name: "tests", arguments: &["test", "--workspace"], component: None };

/// How a step ended.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    Skipped,
}

/// Runs every step; `true` when none failed.
pub fn run(root: &Path) -> bool {
    let started = Instant::now();
    let mut skipped = Vec::new();
    for step in &BEFORE_TIDY {
        match run_step(root, step) {
            Outcome::Passed => {}
            Outcome::Failed => return fail(step.name),
            Outcome::Skipped => skipped.push(step.name),
        }
    }
    if !run_tidy(root) {
        return fail("tidy");
    }
    for step in LIBRARY.iter().chain([&TESTS]) {
        if run_step(root, step) == Outcome::Failed {
            return fail(step.name);
        }
    }
    println!("{}", closing_line(started.elapsed().as_secs(), &skipped));
    true
}

/// Checks the tree and prints every finding; `true` when there is none.
pub fn run_tidy(root: &Path) -> bool {
    println!("== tidy");
    match tidy::check_tree(root) {
        Ok(report) => {
            for finding in &report.findings {
                println!("{finding}");
            }
            println!("tidy: {} files, {} findings", report.files, report.findings.len());
            report.findings.is_empty()
        }
        Err(error) => {
            eprintln!("tidy: cannot read the tree: {error}");
            false
        }
    }
}

fn run_step(root: &Path, step: &Step) -> Outcome {
    println!("== {}: cargo {}", step.name, step.arguments.join(" "));
    if let Some(component) = step.component
        && !has_component(root, component)
    {
        println!("skipped: {} (cargo {component} is not installed)", step.name);
        return Outcome::Skipped;
    }
    let status = cargo(root).args(step.arguments).stdin(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(_) => Outcome::Failed,
        Err(error) => {
            eprintln!("cannot start cargo: {error}");
            Outcome::Failed
        }
    }
}

fn has_component(root: &Path, component: &str) -> bool {
    let quiet = cargo(root)
        .args([component, "--version"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    quiet.is_ok_and(|status| status.success())
}

/// The cargo that started this program, so that a chosen toolchain stays chosen.
fn cargo(root: &Path) -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root);
    command
}

fn fail(step: &str) -> bool {
    eprintln!("ci: failed in step `{step}`");
    false
}

fn closing_line(elapsed_seconds: u64, skipped: &[&str]) -> String {
    if skipped.is_empty() {
        format!("ci: every step passed in {elapsed_seconds} s")
    } else {
        format!("ci: passed in {elapsed_seconds} s; skipped: {}", skipped.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skipped_step_is_named_in_the_last_line() {
        assert_eq!(closing_line(7, &[]), "ci: every step passed in 7 s");
        assert_eq!(closing_line(7, &["lints"]), "ci: passed in 7 s; skipped: lints");
    }

    #[test]
    fn the_test_step_is_the_command_the_readme_names() {
        let readme = include_str!("../../README.md");
        assert!(readme.contains(&format!("cargo {}", TESTS.arguments.join(" "))));
    }
}
