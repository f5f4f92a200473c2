//! Which crate may depend on which, and that each is listed in the code map of `ARCHITECTURE.md`.
//!
//! It reads manifests line by line and understands the forms the workspace uses; it is not a TOML parser.

use super::{Finding, tree::SourceFile};

/// The place of a crate.
#[derive(Clone, Copy)]
enum Place {
    /// In the layers: it may use crates of lower layers only.
    Layer(u8),
    /// Outside the layers: it may use these crates, and no crate in the layers may use it.
    Beside(&'static [&'static str]),
}

const PLACES: &[(&str, Place)] = &[
    (BINARY, Place::Layer(5)),
    ("weir-dashboard", Place::Layer(4)),
    ("weir-lab", Place::Layer(3)),
    ("weir-compare", Place::Layer(3)),
    ("weir-storage", Place::Layer(3)),
    ("weir-load", Place::Layer(3)),
    ("weir-servers", Place::Layer(3)),
    ("weir-monitor", Place::Layer(3)),
    ("weir-engine", Place::Layer(1)),
    ("weir-engine-adapters", Place::Layer(2)),
    ("weir-evidence", Place::Layer(2)),
    ("weir-judge", Place::Layer(2)),
    ("weir-report", Place::Layer(2)),
    ("weir-store", Place::Layer(2)),
    ("weir-record", Place::Layer(1)),
    ("weir-trading", Place::Layer(1)),
    ("weir-engine-types", Place::Layer(0)),
    ("weir-proto", Place::Layer(0)),
    ("weir-stats", Place::Layer(0)),
    ("weir-sys", Place::Layer(0)),
    ("weir-controls", Place::Beside(&["weir-sys"])),
    ("weir-neighbours", Place::Beside(&["weir-proto", "weir-sys"])),
    ("xtask", Place::Beside(&["weir-stats", "weir-sys"])),
];

/// The one crate whose tests may use any other.
const BINARY: &str = "weir";

const CODE_MAP_PAGE: &str = "ARCHITECTURE.md";
const CODE_MAP_HEADING: &str = "## Code map";

/// One entry of a dependency table.
struct Dependency<'a> {
    name: &'a str,
    line: usize,
    for_tests: bool,
    from_workspace: bool,
}

/// Whether a path is the manifest of a workspace member.
pub fn is_member_manifest(path: &str) -> bool {
    path == "xtask/Cargo.toml" || member_folder(path).is_some()
}

/// The folder below `crates/` whose manifest this is.
pub fn member_folder(path: &str) -> Option<&str> {
    let folder = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
    (!folder.contains('/')).then_some(folder)
}

/// Dependencies point strictly downward, third-party crates come from the workspace's list, and lints are inherited.
pub fn check_manifest(path: &str, text: &str) -> Vec<Finding> {
    let folder = member_folder(path).unwrap_or("xtask");
    let Some(place) = place_of(folder) else {
        let message = format!("`{folder}` has no layer; add it to PLACES in xtask/src/tidy/layers.rs");
        return vec![Finding::new(path, 1, "layers", message)];
    };
    let mut findings = Vec::new();
    if value_in(text, "package", "name") != Some(folder) {
        findings.push(Finding::new(path, 1, "layers", "the crate is not named after its folder"));
    }
    if value_in(text, "lints", "workspace") != Some("true") {
        findings.push(Finding::new(path, 1, "lints", "inherit the workspace's lints"));
    }
    for dependency in dependencies(text) {
        if !dependency.from_workspace {
            let message = format!("write `{}.workspace = true`; versions live in the root", dependency.name);
            findings.push(Finding::new(path, dependency.line, "dependency", message));
        }
        if let Some(message) = forbidden_arrow(folder, place, &dependency) {
            findings.push(Finding::new(path, dependency.line, "layers", message));
        }
    }
    findings
}

fn forbidden_arrow(from: &str, place: Place, dependency: &Dependency) -> Option<String> {
    let to = dependency.name;
    let Some(target) = place_of(to) else {
        return to.starts_with("weir").then(|| format!("`{to}` has no layer; add it to PLACES"));
    };
    if from == BINARY && dependency.for_tests {
        return None;
    }
    match (place, target) {
        (Place::Layer(own), Place::Layer(other)) if other < own => None,
        (Place::Layer(own), Place::Layer(other)) => {
            Some(format!("layer {own} must not use `{to}` of layer {other}; arrows point strictly downward"))
        }
        (Place::Beside(allowed), _) if allowed.contains(&to) => None,
        (Place::Beside(_), _) => Some(format!("`{from}` stands beside the layers and must not use `{to}`")),
        (Place::Layer(_), Place::Beside(_)) => {
            Some(format!("`{to}` stands beside the layers; nothing uses it"))
        }
    }
}

fn place_of(name: &str) -> Option<Place> {
    PLACES.iter().find(|(known, _)| *known == name).map(|(_, place)| *place)
}

/// The code map names every crate of the workspace, in backquotes.
pub fn check_code_map(files: &[SourceFile]) -> Vec<Finding> {
    let page = files.iter().find(|file| file.path == CODE_MAP_PAGE).and_then(|file| file.text.as_deref());
    let Some(map) = page.and_then(code_map) else {
        return vec![Finding::new(CODE_MAP_PAGE, 1, "code-map", format!("no section `{CODE_MAP_HEADING}`"))];
    };
    let members = files.iter().filter_map(|file| member_folder(&file.path));
    members
        .chain(["xtask"])
        .filter(|name| !map.contains(&format!("`{name}`")))
        .map(|name| Finding::new(CODE_MAP_PAGE, 1, "code-map", format!("`{name}` is not in the code map")))
        .collect()
}

fn code_map(page: &str) -> Option<&str> {
    let (_, section) = page.split_once(CODE_MAP_HEADING)?;
    Some(section.split("\n## ").next().unwrap_or(section))
}

/// The value of `key` in the table `[table]`, without quotes.
fn value_in<'a>(text: &'a str, table: &str, key: &str) -> Option<&'a str> {
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line.trim_matches(['[', ']']) == table;
        } else if inside
            && let Some((name, value)) = line.split_once('=')
            && name.trim() == key
        {
            return Some(value.trim().trim_matches('"'));
        }
    }
    None
}

fn dependencies(text: &str) -> Vec<Dependency<'_>> {
    let mut found: Vec<Dependency> = Vec::new();
    let mut table = DependencyTable::None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            table = DependencyTable::parse(header.0);
            if let DependencyTable::One { name, for_tests } = table {
                found.push(Dependency { name, line: index + 1, for_tests, from_workspace: false });
            }
            continue;
        }
        let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) else { continue };
        match table {
            DependencyTable::None => {}
            DependencyTable::One { .. } => {
                if let Some(dependency) = found.last_mut() {
                    dependency.from_workspace |= key.trim() == "workspace";
                }
            }
            DependencyTable::Many { for_tests } => {
                let name = key.split('.').next().unwrap_or(key).trim().trim_matches('"');
                let from_workspace = key.trim().ends_with(".workspace") || value.contains("workspace = true");
                found.push(Dependency { name, line: index + 1, for_tests, from_workspace });
            }
        }
    }
    found
}

/// The kind of table that follows a table header.
#[derive(Clone, Copy)]
enum DependencyTable<'a> {
    /// Not a dependency table.
    None,
    /// `[dependencies]`: one dependency per line.
    Many { for_tests: bool },
    /// `[dependencies.name]`: the details of one dependency.
    One { name: &'a str, for_tests: bool },
}

impl<'a> DependencyTable<'a> {
    fn parse(header: &'a str) -> Self {
        const KINDS: [(&str, bool); 3] =
            [("dev-dependencies", true), ("build-dependencies", false), ("dependencies", false)];
        for (kind, for_tests) in KINDS {
            let Some(start) = header.rfind(kind) else { continue };
            let preceded = start == 0 || header[..start].ends_with('.');
            match header[start + kind.len()..].strip_prefix('.') {
                Some(name) if preceded => return Self::One { name: name.trim_matches('"'), for_tests },
                None if preceded && header.ends_with(kind) => return Self::Many { for_tests },
                _ => {}
            }
        }
        Self::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(folder: &str, dependencies: &str) -> Vec<String> {
        let text = format!("[package]\nname = \"{folder}\"\n[lints]\nworkspace = true\n{dependencies}\n");
        let findings = check_manifest(&format!("crates/{folder}/Cargo.toml"), &text);
        findings.into_iter().map(|finding| format!("{}: {}", finding.line, finding.message)).collect()
    }

    #[test]
    fn an_arrow_upward_or_sideways_is_found() {
        assert!(check("weir-engine", "[dependencies]\nweir-sys.workspace = true").is_empty());
        let upward =
            check("weir-stats", "[dependencies]\nserde.workspace = true\nweir-engine.workspace = true");
        let expected = "7: layer 0 must not use `weir-engine` of layer 1; arrows point strictly downward";
        assert_eq!(upward, [expected]);
        assert_eq!(check("weir-lab", "[dependencies]\nweir-load.workspace = true").len(), 1);
    }

    #[test]
    fn every_form_of_a_dependency_is_read() {
        for form in [
            "[dependencies]\nweir-lab = { workspace = true }",
            "[dependencies.weir-lab]\nworkspace = true",
            "[target.'cfg(target_os = \"linux\")'.dependencies]\nweir-lab.workspace = true",
            "[build-dependencies]\nweir-lab.workspace = true",
            "[dev-dependencies]\nweir-lab.workspace = true",
        ] {
            assert_eq!(check("weir-engine", form).len(), 1, "{form}");
        }
        assert!(check("weir-engine", "[package.metadata]\nweir-lab = 1\n# weir-lab = 2").is_empty());
    }

    #[test]
    fn only_the_binary_may_test_with_everything() {
        assert!(check("weir", "[dev-dependencies]\nweir-controls.workspace = true").is_empty());
        assert_eq!(check("weir", "[dependencies]\nweir-controls.workspace = true").len(), 1);
    }

    #[test]
    fn crates_beside_the_layers_use_what_is_listed() {
        assert!(
            check("weir-controls", "[dependencies]\nweir-sys.workspace = true\nlibc.workspace = true")
                .is_empty()
        );
        assert_eq!(check("weir-controls", "[dependencies]\nweir-record.workspace = true").len(), 1);
    }

    #[test]
    fn unknown_crates_and_versions_outside_the_root_are_found() {
        assert_eq!(
            check("weir-novel", ""),
            ["1: `weir-novel` has no layer; add it to PLACES in \
                                             xtask/src/tidy/layers.rs"]
        );
        assert_eq!(check("weir", "[dependencies]\nweir-novel.workspace = true").len(), 1);
        assert_eq!(check("weir", "[dependencies]\nserde = \"1\"").len(), 1);
    }

    #[test]
    fn a_manifest_that_does_not_inherit_lints_is_found() {
        let findings = check_manifest("crates/weir-sys/Cargo.toml", "[package]\nname = \"weir-sys\"\n");
        assert_eq!(findings.iter().map(|finding| finding.rule).collect::<Vec<_>>(), ["lints"]);
    }

    #[test]
    fn a_crate_outside_the_code_map_is_found() {
        let files = [
            SourceFile::text(
                "ARCHITECTURE.md",
                "`weir-sys`\n## Code map\n`weir-stats` `xtask`\n## Other\n`weir-lab`\n",
            ),
            SourceFile::text("crates/weir-stats/Cargo.toml", ""),
            SourceFile::text("crates/weir-sys/Cargo.toml", ""),
            SourceFile::text("crates/weir-lab/Cargo.toml", ""),
        ];
        let messages: Vec<String> =
            check_code_map(&files).into_iter().map(|finding| finding.message).collect();
        assert_eq!(messages, ["`weir-sys` is not in the code map", "`weir-lab` is not in the code map"]);
        assert_eq!(check_code_map(&files[1..]).len(), 1);
    }
}
