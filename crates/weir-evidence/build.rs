//! Records the build settings for the fingerprint: a development build measures a slow program.

use std::{env, fs, process::Command};

/// The workspace's manifest. Its profiles contain the settings of the crates that a request runs through; this crate
/// is not one of them.
const MANIFEST: &str = "../../Cargo.toml";

/// The crate whose settings represent theirs.
const MEASURED: &str = "weir-engine";

fn main() {
    let profile = env::var("PROFILE").unwrap_or_default();
    let manifest = fs::read_to_string(MANIFEST).unwrap_or_default();
    let setting = |key: &str| {
        let variable =
            format!("CARGO_PROFILE_{}_{}", profile.to_uppercase(), key.replace('-', "_").to_uppercase());
        let profile = if profile == "debug" { "dev" } else { &profile };
        let of = |section: &str| value(&manifest, section, key);
        env::var(variable)
            .ok()
            .or_else(|| of(&format!("profile.{profile}.package.{MEASURED}")))
            .or_else(|| of(&format!("profile.{profile}")))
    };
    let level = setting("opt-level").or_else(|| env::var("OPT_LEVEL").ok()).unwrap_or_default();
    let further = ["codegen-units", "lto"]
        .map(|key| setting(key).map_or_else(String::new, |value| format!(", {key} {value}")));
    let said = env::var_os("RUSTC").and_then(|rustc| Command::new(rustc).arg("--version").output().ok());
    let said = said.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let compiler: Vec<&str> = said.split_whitespace().take(2).collect();
    let further = further.concat();
    println!("cargo:rustc-env=WEIR_BUILD={profile}, opt-level {level}{further}, {}", compiler.join(" "));
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={MANIFEST}");
}

/// The value of a key in a section of the manifest, without quotes.
fn value(manifest: &str, section: &str, key: &str) -> Option<String> {
    let head = format!("[{section}]");
    let own = manifest.lines().skip_while(|line| line.trim() != head).skip(1);
    let mut own = own.take_while(|line| !line.trim_start().starts_with('['));
    let found = own.find_map(|line| line.split_once('=').filter(|(name, _)| name.trim() == key));
    found.map(|(_, value)| value.trim().trim_matches('"').to_owned())
}
