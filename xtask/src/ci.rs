//! The steps of continuous integration, ordered so that the cheapest failures show first.
//!
//! The first step that fails ends the run. A step whose tool is not installed is skipped and listed again at the end,
//! together with what the tests skipped and why; it never counts as passed.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its user")]

use std::{
    env,
    io::{self, BufRead, BufReader},
    num::NonZero,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use crate::{
    failures::Failures,
    skips::{SHOW_OUTPUT, Skips},
    tidy,
};

/// After this long without output, check whether the tests have ended.
const LULL: Duration = Duration::from_millis(200);

/// How many tests of a program run at once; read by Rust's test harness.
const TEST_THREADS: &str = "RUST_TEST_THREADS";

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

/// What a user of the engine alone needs: builds without features of the laboratory and of the engine, documentation,
/// and packages that do not depend on this tree.
const LIBRARY: [Step; 5] = [
    Step {
        name: "without the laboratory",
        arguments: &["check", "-p", "weir-engine", "-p", "weir-engine-adapters", "-p", "weir-servers"],
        component: None,
    },
    Step {
        name: "the engine without features",
        arguments: &["test", "-p", "weir-engine", "--no-default-features", "--test", "features"],
        component: None,
    },
    Step {
        name: "documentation",
        arguments: &["rustdoc", "-p", "weir-engine", "--all-features", "--lib", "--", "-D", "warnings"],
        component: None,
    },
    Step {
        name: "documentation of the adapters",
        arguments: &["rustdoc", "-p", "weir-engine-adapters", "--lib", "--", "-D", "warnings"],
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
            "-p",
            "weir-engine-adapters",
            "--no-verify",
            "--allow-dirty",
            "--offline",
        ],
        component: None,
    },
];

const TESTS: Step = Step { name: "tests", arguments: &["test", "--workspace"], component: None };

/// The result of a step.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    Skipped,
}

/// Runs every step; returns `true` when none failed.
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
    for step in &LIBRARY {
        if run_step(root, step) == Outcome::Failed {
            return fail(step.name);
        }
    }
    let (mut in_tests, mut failures) = (Skips::default(), Failures::default());
    if run_tests(root, &mut in_tests, &mut failures) == Outcome::Failed {
        failures.lines().iter().for_each(|line| println!("{line}"));
        return fail(TESTS.name);
    }
    println!("{}", closing_lines(started.elapsed().as_secs(), &skipped, &in_tests));
    true
}

/// Checks the tree and prints every finding; returns `true` when there is none.
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
    outcome(cargo(root).args(step.arguments).stdin(Stdio::null()).status())
}

/// Runs the tests, and collects what they skip and how they fail.
fn run_tests(root: &Path, skips: &mut Skips, failures: &mut Failures) -> Outcome {
    println!("== {}: cargo {}", TESTS.name, TESTS.arguments.join(" "));
    let mut command = cargo(root);
    // One run shows all failures.
    command
        .args(TESTS.arguments)
        .arg("--no-fail-fast")
        .args(SHOW_OUTPUT)
        .env(TEST_THREADS, test_threads(env::var(TEST_THREADS).ok()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let take = |line: &str| {
        let is_shown = skips.take(line);
        if is_shown {
            failures.take(line);
        }
        is_shown
    };
    outcome(command.spawn().and_then(|child| watched(child, take)))
}

/// Prints each line as it arrives if `take` says so. A process that a test left behind may hold the pipe open forever,
/// so the end of the tests ends the reading.
fn watched(mut child: Child, mut take: impl FnMut(&str) -> bool) -> io::Result<ExitStatus> {
    let (sender, lines) = mpsc::channel();
    if let Some(output) = child.stdout.take() {
        thread::spawn(move || {
            let read = BufReader::new(output).split(b'\n').map_while(Result::ok);
            read.map(|line| sender.send(line)).take_while(Result::is_ok).for_each(drop);
        });
    }
    loop {
        match lines.recv_timeout(LULL) {
            Ok(bytes) => {
                let line = String::from_utf8_lossy(&bytes);
                if take(&line) {
                    println!("{line}");
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Some(status) = child.try_wait()? {
                    return Ok(status);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return child.wait(),
        }
    }
}

/// As many tests at once as the user asks for, or two for each CPU: the long ones wait for processes most of the time.
fn test_threads(asked: Option<String>) -> String {
    let cpus = thread::available_parallelism().map_or(2, NonZero::get);
    asked.unwrap_or_else(|| (2 * cpus).to_string())
}

fn outcome(status: io::Result<ExitStatus>) -> Outcome {
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

/// The cargo that started this program, so that a selected toolchain is kept.
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

fn closing_lines(elapsed_seconds: u64, steps: &[&str], in_tests: &Skips) -> String {
    let tests = match in_tests.tests() {
        0 => None,
        1 => Some("all or a part of 1 test".to_owned()),
        number => Some(format!("all or a part of {number} tests")),
    };
    let skipped: Vec<String> = steps.iter().map(|step| (*step).to_owned()).chain(tests).collect();
    if skipped.is_empty() {
        return format!("ci: every step passed in {elapsed_seconds} s");
    }
    let first = format!("ci: passed in {elapsed_seconds} s; skipped: {}", skipped.join(", "));
    [vec![first], in_tests.lines()].concat().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_skipped_is_named_at_the_end() {
        let mut in_tests = Skips::default();
        assert_eq!(closing_lines(7, &[], &in_tests), "ci: every step passed in 7 s");
        assert_eq!(closing_lines(7, &["lints"], &in_tests), "ci: passed in 7 s; skipped: lints");
        for line in ["successes:", "---- pages::one stdout ----", "skipped: no browser"] {
            in_tests.take(line);
        }
        assert_eq!(
            closing_lines(7, &["lints"], &in_tests),
            "ci: passed in 7 s; skipped: lints, all or a part of 1 test\n  no browser: pages::one"
        );
    }

    #[test]
    fn the_number_of_tests_at_once_is_the_users_where_one_is_given() {
        assert_eq!(test_threads(Some("1".to_owned())), "1");
        let of_cpus: usize = test_threads(None).parse().expect("it is a number");
        assert!(of_cpus >= 2 && of_cpus.is_multiple_of(2), "{of_cpus}");
    }

    #[test]
    fn the_test_step_is_the_command_the_readme_names() {
        let readme = include_str!("../../README.md");
        assert!(readme.contains(&format!("cargo {}", TESTS.arguments.join(" "))));
    }
}
