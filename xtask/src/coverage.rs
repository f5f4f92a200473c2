//! `cargo xtask coverage`: has the judge's tests draw docs/coverage.md and docs/coverage-commands.md. Here is only how
//! they are started, because the pages are made with the crates of the tree, which this program does not use.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its user")]

use std::{
    env,
    path::Path,
    process::{Command, Stdio},
};

/// Starts them; `true` when the pages are drawn.
pub fn run(root: &Path) -> bool {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root).env("WEIR_WRITE_COVERAGE", "1").stdin(Stdio::null()).stderr(Stdio::inherit());
    let tests = ["--test", "coverage", "--test", "coverage_commands"];
    match command.args(["test", "--quiet", "--package", "weir-judge"]).args(tests).output() {
        Ok(output) if output.status.success() => {
            println!("docs/coverage.md and docs/coverage-commands.md are drawn");
            true
        }
        Ok(output) => {
            eprintln!("{}\ncoverage: {}", String::from_utf8_lossy(&output.stdout), output.status);
            false
        }
        Err(error) => {
            eprintln!("coverage: cannot start cargo: {error}");
            false
        }
    }
}
