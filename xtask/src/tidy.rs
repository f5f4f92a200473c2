//! Rules about the tree that no compiler knows. Each is a pure function from a path and its text to findings.
//!
//! `check_tree` reads the files and applies every rule; it runs as `cargo xtask tidy` and as a test, so plain
//! `cargo test --workspace` runs it too. A rule that needs an exception keeps it in a table with a reason.

mod code;
mod constructions;
mod layers;
mod lengths;
mod lexer;
pub mod links;
mod module_order;
mod prose;
mod translations;
pub mod tree;

use std::{fmt, io, path::Path};

use tree::SourceFile;

/// One broken rule at one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Path from the workspace root, with `/` between its parts.
    pub path: String,
    /// Line, from 1.
    pub line: usize,
    /// Short name of the rule.
    pub rule: &'static str,
    /// What is wrong and the remedy.
    pub message: String,
}

impl Finding {
    fn new(path: &str, line: usize, rule: &'static str, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, rule, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}: {}", self.path, self.line, self.rule, self.message)
    }
}

/// Files checked and findings, ordered by path and line.
pub struct TidyReport {
    /// Files read.
    pub files: usize,
    /// All findings.
    pub findings: Vec<Finding>,
}

/// Reads every file of the tree that is not ignored and applies all rules.
pub fn check_tree(root: &Path) -> io::Result<TidyReport> {
    let files = tree::read(root)?;
    Ok(TidyReport { files: files.len(), findings: check_files(&files) })
}

fn check_files(files: &[SourceFile]) -> Vec<Finding> {
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let mut findings: Vec<Finding> = files.iter().flat_map(|file| check_file(file, &paths)).collect();
    findings.extend(layers::check_code_map(files));
    findings.extend(module_order::check(files));
    findings.extend(links::check_anchors(files));
    findings.sort();
    findings
}

fn check_file(file: &SourceFile, paths: &[&str]) -> Vec<Finding> {
    let path = file.path.as_str();
    let mut findings = prose::check_name(path);
    // Only the name of a file that is not text is checked.
    let Some(text) = file.text.as_deref() else { return findings };
    findings.extend(prose::check_machine_paths(path, text));
    findings.extend(prose::check_one_word(path, text));
    findings.extend(lengths::check_file_length(path, text));
    match extension(path) {
        "rs" => {
            let source = lexer::Source::new(text);
            findings.extend(constructions::check_rust(path, &source));
            findings.extend(code::check_header(path, text));
            findings.extend(code::check_header_constants(path, &source));
            findings.extend(code::check_unsafe(path, &source));
            findings.extend(code::check_leftovers(path, &source));
            findings.extend(code::check_test_sleeps(path, &source));
            findings.extend(code::check_purity(path, &source));
            findings.extend(lengths::check_rust_lines(path, &source));
            findings.extend(translations::check(path, &source));
            findings.extend(lengths::check_functions(path, &source, lengths::LONG_FUNCTIONS));
        }
        "md" => {
            findings.extend(prose::check_leftovers(path, text));
            findings.extend(lengths::check_markdown_lines(path, text));
            findings.extend(links::check(path, text, paths));
            findings.extend(constructions::check(path, text));
        }
        _ => {
            findings.extend(prose::check_leftovers(path, text));
            findings.extend(constructions::check(path, text));
        }
    }
    if layers::is_member_manifest(path) {
        findings.extend(layers::check_manifest(path, text));
    }
    findings
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The part of the file name after the last dot; empty for names without one and for names that start with it.
fn extension(path: &str) -> &str {
    match file_name(path).rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => extension,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_tidy() {
        let report = check_tree(&crate::workspace_root()).expect("the workspace can be read");
        let listing: Vec<String> = report.findings.iter().map(Finding::to_string).collect();
        assert!(listing.is_empty(), "\n{}\n", listing.join("\n"));
        assert!(report.files > 20, "only {} files were found", report.files);
    }

    #[test]
    fn every_rule_is_applied_to_a_file_that_breaks_it() {
        let long_line = format!("fn f() {{ {} }}\n", "x();".repeat(40));
        let source = format!(
            "{long_line}unsafe fn g() {{}}\n// FIXME\n#[cfg(test)] mod t {{ fn s() {{ thread::sleep(d) }} }}\n\
             // see /{}/x\nfn l() {{\n{}}}\n{}",
            "work",
            "a();\n".repeat(70),
            "\n".repeat(800),
        );
        let manifest = "[package]\nname = \"weir-stats\"\n[dependencies]\nweir-engine = \"1\"\n";
        let files = [
            SourceFile::text("crates/weir-stats/src/util.rs", &source),
            SourceFile::text("crates/weir-stats/src/purity.rs", "//! H\nfn f() { Instant::now(); }\n"),
            SourceFile::text(
                "crates/weir-stats/src/texts.rs",
                "//! H\nconst A: T = [\"{a}\", \"수\", \"数\"];\n",
            ),
            SourceFile::text("crates/weir-stats/Cargo.toml", manifest),
            SourceFile::text("crates/weir-stats/src/student.rs", "//! H\nuse crate::decide;\n"),
            SourceFile::text("docs/page.md", "[gone](missing.md)"),
            SourceFile::text("docs/page.ko.md", concat!("대표", " 비교\n")),
            SourceFile::text("docs/other.md", concat!("What it comes", " to\n")),
            SourceFile::text("peers/a/Cargo.lock", "source = \"registry+https://mirror/\"\n"),
            SourceFile::text("ARCHITECTURE.md", "## Code map\n"),
        ];
        let mut rules: Vec<&str> = check_files(&files).iter().map(|finding| finding.rule).collect();
        rules.sort_unstable();
        rules.dedup();
        let expected = [
            "code-map",
            "construction",
            "dependency",
            "file-length",
            "function-length",
            "header",
            "layers",
            "leftover",
            "line-length",
            "links",
            "lints",
            "machine-path",
            "modules",
            "name",
            "one-word",
            "purity",
            "registry",
            "test-sleep",
            "translations",
            "unsafe",
        ];
        assert_eq!(rules, expected);
    }

    #[test]
    fn a_finding_prints_as_a_place_an_editor_can_open() {
        let finding = Finding::new("a/b.rs", 3, "header", "missing");
        assert_eq!(finding.to_string(), "a/b.rs:3: header: missing");
    }

    #[test]
    fn extensions_come_from_the_file_name_alone() {
        assert_eq!(extension("a.b/c"), "");
        assert_eq!(extension(".gitignore"), "");
        assert_eq!(extension("a/b.tar.gz"), "gz");
    }
}
