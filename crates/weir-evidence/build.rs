//! How this program is built, for the fingerprint: figures of a build for development are those of a slow program.

use std::{env, process::Command};

fn main() {
    let profile = env::var("PROFILE").unwrap_or_default();
    let level = env::var("OPT_LEVEL").unwrap_or_default();
    let said = env::var_os("RUSTC").and_then(|rustc| Command::new(rustc).arg("--version").output().ok());
    let said = said.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let compiler: Vec<&str> = said.split_whitespace().take(2).collect();
    println!("cargo:rustc-env=WEIR_BUILD={profile}, opt-level {level}, {}", compiler.join(" "));
    println!("cargo:rerun-if-changed=build.rs");
}
