//! `cargo xtask site`: the documentation as a site with search, made by mdBook from the pages as they are in the tree.
//!
//! The pages are staged with the paths that they have in the tree, so that their links hold in both places. After the
//! build every link is followed, and nothing may be loaded from elsewhere. mdBook is installed by its user; it is no
//! part of the workspace.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its user")]

pub mod gallery;
mod links;
mod summary;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use crate::{
    tidy::{
        links as page_links,
        tree::{self, SourceFile},
    },
    weir_program::WeirProgram,
    words::Words,
};

/// How a missing mdBook is installed.
const INSTALL: &str =
    "mdbook was not found; install it with `cargo install mdbook --locked`, or name it with --mdbook";

/// The book. The `index` step is left out, because it would rename README pages and not the links to them.
const BOOK: &str = r#"[book]
title = "Weir"
description = "Which way to do I/O costs less on this machine, by how much, and whether to trust the number"
language = "en"
src = "src"

[build]
build-dir = "book"
create-missing = false
use-default-preprocessors = false

[output.html]
default-theme = "light"
no-section-label = true
preferred-dark-theme = "navy"

[output.html.print]
enable = false

[output.html.search]
limit-results = 30
use-boolean-and = true
"#;

/// Most broken links that are printed.
const BROKEN_SHOWN: usize = 40;

/// A page of the site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// From the root.
    pub path: String,
    /// Its first heading, as text.
    pub title: String,
}

struct Options {
    out: PathBuf,
    mdbook: PathBuf,
    results: Option<PathBuf>,
    weir: Option<PathBuf>,
}

/// Builds the site; exit code 13 where mdBook is not installed.
pub fn run(root: &Path, words: &[&str]) -> ExitCode {
    let options = match options(root, words) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("site: {error}");
            return ExitCode::from(2);
        }
    };
    let found = Command::new(&options.mdbook).arg("--version").stdin(Stdio::null()).output();
    if !found.is_ok_and(|output| output.status.success()) {
        eprintln!("site: {INSTALL}");
        return ExitCode::from(13);
    }
    match build(root, &options) {
        Ok(pages) => {
            println!("{pages} pages: {}", options.out.join("book/README.html").display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("site: {error}");
            ExitCode::FAILURE
        }
    }
}

fn options(root: &Path, words: &[&str]) -> Result<Options, String> {
    let mut options =
        Options { out: root.join("target/site"), mdbook: "mdbook".into(), results: None, weir: None };
    let mut words = Words::new(words);
    while let Some(flag) = words.next() {
        match flag {
            "--out" => options.out = words.value(flag)?.into(),
            "--mdbook" => options.mdbook = words.value(flag)?.into(),
            "--results" => options.results = Some(words.value(flag)?.into()),
            "--weir" => options.weir = Some(words.value(flag)?.into()),
            _ => {
                return Err(format!("{flag}: not an option; it takes --out, --mdbook, --results and --weir"));
            }
        }
    }
    Ok(options)
}

/// Stages the pages, builds them, and follows the links of what was built.
fn build(root: &Path, options: &Options) -> Result<usize, String> {
    let runs = options.results.as_deref().map(gallery::runs).transpose()?;
    let (source, book) = (options.out.join("src"), options.out.join("book"));
    // A page that is no longer in the tree must not stay in the site.
    for folder in [&source, &book] {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(format!("{}: {error}", folder.display()));
            }
            _ => {}
        }
    }
    let files = tree::read(root).map_err(|error| format!("cannot read the tree: {error}"))?;
    let mut pages = pages(&files);
    for path in staged(&files, &pages) {
        let to = source.join(&path);
        make_parent(&to)?;
        fs::copy(root.join(&path), &to).map_err(|error| format!("{path}: {error}"))?;
    }
    if let Some(runs) = &runs {
        let weir = WeirProgram::prepare(root, options.weir.as_deref())?;
        let to = source.join("gallery");
        fs::create_dir_all(&to).map_err(|error| format!("{}: {error}", to.display()))?;
        gallery::write(&weir, runs, &to)?;
        pages.push(Page { path: summary::GALLERY.to_owned(), title: "Results".to_owned() });
    }
    write(&source.join("SUMMARY.md"), &summary::of(&pages))?;
    write(&options.out.join("book.toml"), BOOK)?;
    let status = Command::new(&options.mdbook).arg("build").arg(&options.out).stdin(Stdio::null()).status();
    if !status.map_err(|error| format!("{}: {error}", options.mdbook.display()))?.success() {
        return Err("mdbook failed".to_owned());
    }
    follow(&book)?;
    Ok(pages.len())
}

fn make_parent(file: &Path) -> Result<(), String> {
    let parent = file.parent().unwrap_or(file);
    fs::create_dir_all(parent).map_err(|error| format!("{}: {error}", parent.display()))
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    make_parent(file)?;
    fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}

/// Every Markdown page with a title.
fn pages(files: &[SourceFile]) -> Vec<Page> {
    let markdown = files.iter().filter(|file| file.path.ends_with(".md"));
    let titled = markdown.filter_map(|file| {
        let text = file.text.as_deref()?;
        let title = text.lines().find_map(|line| line.strip_prefix("# "))?;
        Some(Page { path: file.path.clone(), title: title.replace('`', "") })
    });
    titled.collect()
}

/// The pages, everything below `docs`, and whatever a page links to.
fn staged(files: &[SourceFile], pages: &[Page]) -> BTreeSet<String> {
    let mut staged: BTreeSet<String> = pages.iter().map(|page| page.path.clone()).collect();
    staged.extend(files.iter().filter(|file| file.path.starts_with("docs/")).map(|file| file.path.clone()));
    let is_file = |path: &str| files.iter().any(|file| file.path == path);
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        let lines = file.text.as_deref().unwrap_or_default().lines();
        let linked = lines
            .flat_map(|line| page_links::targets(line).filter_map(|it| page_links::resolve(&file.path, it)));
        staged.extend(linked.filter(|path| is_file(path)));
    }
    staged
}

/// Follows every link of the built pages; an error names the first broken ones and all loads from elsewhere.
fn follow(book: &Path) -> Result<(), String> {
    let mut wrong = Vec::new();
    for path in built(book, book)? {
        let Ok(text) = fs::read_to_string(book.join(&path)) else { continue };
        for target in links::targets(&text) {
            if links::resolved(&path, target).is_some_and(|to| !book.join(&to).exists()) {
                wrong.push(format!("{path}: {target} leads nowhere"));
            }
        }
        wrong.extend(links::external_loads(&text).into_iter().map(|it| format!("{path} loads {it}")));
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let further = wrong.len().saturating_sub(BROKEN_SHOWN);
    wrong.truncate(BROKEN_SHOWN);
    Err(format!("{}\nand {further} more", wrong.join("\n")))
}

/// The built pages, by their paths in the site.
fn built(book: &Path, folder: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut pages = Vec::new();
    for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        if path.is_dir() {
            pages.extend(built(book, &path)?);
        } else if path.extension().is_some_and(|ending| ending == "html") {
            let path = path.strip_prefix(book).unwrap_or(&path);
            pages.push(path.to_string_lossy().into_owned());
        }
    }
    pages.sort();
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_staged_with_what_they_link_to() {
        let files = [
            SourceFile::text(
                "README.md",
                "# Weir\n[licence](LICENSE-MIT) [code](crates/a/src/lib.rs#L1) [out](https://x)\n",
            ),
            SourceFile::text("LICENSE-MIT", "..."),
            SourceFile::text("Cargo.toml", "[workspace]"),
            SourceFile::text("crates/a/src/lib.rs", "fn a() {}"),
            SourceFile::text("docs/studies/why.toml", "name = \"why\""),
            SourceFile::text("docs/untitled.md", "no heading"),
        ];
        let pages = pages(&files);
        assert_eq!(pages, [Page { path: "README.md".to_owned(), title: "Weir".to_owned() }]);
        let staged: Vec<String> = staged(&files, &pages).into_iter().collect();
        let wanted =
            ["LICENSE-MIT", "README.md", "crates/a/src/lib.rs", "docs/studies/why.toml", "docs/untitled.md"];
        assert_eq!(staged, wanted);
    }

    #[test]
    fn every_page_of_the_tree_has_a_title_and_is_in_the_contents() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let files = tree::read(root).expect("the tree can be read");
        let pages = pages(&files);
        let markdown = files.iter().filter(|file| file.path.ends_with(".md")).count();
        assert_eq!(pages.len(), markdown, "a page without a first heading is in no contents");
        let summary = summary::of(&pages);
        for page in &pages {
            assert!(summary.contains(&format!("]({})", page.path)), "{}", page.path);
        }
    }

    #[test]
    fn an_unknown_option_is_named_with_those_there_are() {
        let refused = options(Path::new("/"), &["--result", "x"]).err().unwrap_or_default();
        assert!(refused.contains("--result: not an option") && refused.contains("--results"), "{refused}");
        assert!(options(Path::new("/"), &["--out"]).is_err_and(|error| error == "--out needs a value"));
    }
}
