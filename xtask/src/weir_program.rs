//! The measured program: the release build of the tree, or a given one.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// A working `weir`, and its commit.
pub struct WeirProgram {
    pub path: PathBuf,
    /// The output of `--version`, and for a build of the tree its commit.
    pub version: String,
}

impl WeirProgram {
    /// The program at this path; without a path, builds the tree in release mode and uses that.
    pub fn prepare(root: &Path, path: Option<&Path>) -> Result<Self, String> {
        if let Some(path) = path {
            let version = output_of(Command::new(path).arg("--version"))?;
            return Ok(Self { path: path.to_owned(), version });
        }
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let build = ["build", "--quiet", "--release", "--package", "weir"];
        let status = Command::new(cargo).current_dir(root).args(build).stdin(Stdio::null()).status();
        if !status.is_ok_and(|status| status.success()) {
            return Err("cargo build --release --package weir failed".to_owned());
        }
        let target =
            root.join(env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from));
        let path = target.join("release/weir");
        let version = output_of(Command::new(&path).arg("--version"))?;
        Ok(Self { version: [version, commit(root)].join(" "), path })
    }

    /// The program's output for these arguments.
    pub fn output(&self, words: &[&str]) -> Result<String, String> {
        output_of(Command::new(&self.path).args(words))
    }
}

/// The commit of the tree, with `+` where files differ from it.
fn commit(root: &Path) -> String {
    let describe = ["describe", "--always", "--dirty=+", "--exclude", "*"];
    output_of(Command::new("git").current_dir(root).args(describe)).unwrap_or_default()
}

/// A command's standard output, trimmed.
pub fn output_of(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot start {program}: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{program} failed ({}): {}", output.status, said.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
