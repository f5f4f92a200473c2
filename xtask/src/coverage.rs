//! `cargo xtask coverage`: has the judge's test draw docs/coverage.md. Here is only how it is started, because the page
//! is made with the crates of the tree, which this program does not use.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its user")]

use std::{
    env,
    path::Path,
    process::{Command, Stdio},
};

/// Starts it; `true` when the page is drawn.
pub fn run(root: &Path) -> bool {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root).env("WEIR_WRITE_COVERAGE", "1").stdin(Stdio::null()).stderr(Stdio::inherit());
    match command.args(["test", "--quiet", "--package", "weir-judge", "--test", "coverage"]).output() {
        Ok(output) if output.status.success() => {
            println!("docs/coverage.md is drawn");
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
