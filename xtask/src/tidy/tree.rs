//! Finds and reads the files that belong to the project: everything under the root that the root's `.gitignore` does
//! not exclude.
//!
//! It understands the forms used in that file (`/a/b`, `*` for one path part, `*.end`) and refuses others, so that it
//! cannot silently disagree with git. It does not ask git: a copied tree without its history is checked the same way.

use std::{fs, io, path::Path};

/// Folders that are never part of the project, at any depth: git's history, and cargo's output.
const NEVER_READ: &[&str] = &[".git", "target"];

/// Folders are at most this deep; a deeper one is an error, not an endless walk.
const DEPTH_MAX: usize = 16;

/// A file with its path from the root.
pub struct SourceFile {
    /// Path with `/` between its parts.
    pub path: String,
    /// Content; absent when it is not UTF-8.
    pub text: Option<String>,
}

impl SourceFile {
    #[cfg(test)]
    pub fn text(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: Some(text.to_owned()) }
    }
}

/// All files, ordered by path. Symbolic links are not followed.
pub fn read(root: &Path) -> io::Result<Vec<SourceFile>> {
    let ignore_text = fs::read_to_string(root.join(".gitignore"))?;
    let patterns = Pattern::parse_all(&ignore_text)?;
    let mut files = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        if folder.split('/').count() > DEPTH_MAX {
            return Err(io::Error::other(format!("{folder}: deeper than {DEPTH_MAX} folders")));
        }
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            if NEVER_READ.contains(&name.as_str()) || patterns.iter().any(|pattern| pattern.matches(&path)) {
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                files.extend(read_file(&entry.path(), path)?);
            }
        }
    }
    files.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(files)
}

/// Reads one file; `None` if it vanished after its folder was listed, as an editor's temporary files do.
fn read_file(place: &Path, path: String) -> io::Result<Option<SourceFile>> {
    match fs::read(place) {
        Ok(bytes) => Ok(Some(SourceFile { path, text: String::from_utf8(bytes).ok() })),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io::Error::new(error.kind(), format!("{path}: {error}"))),
    }
}

/// One line of an ignore file.
#[derive(Debug, PartialEq, Eq)]
enum Pattern {
    /// `/a/*/b`: these parts from the root.
    Rooted(Vec<String>),
    /// `*.end`: any file whose name has this ending.
    Ending(String),
}

impl Pattern {
    fn parse_all(text: &str) -> io::Result<Vec<Self>> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(Self::parse).collect()
    }

    fn parse(line: &str) -> io::Result<Self> {
        let plain = !line.contains("**") && !line.contains(['[', '?', '!', '\\']);
        if let Some(rooted) = line.strip_prefix('/')
            && plain
        {
            return Ok(Self::Rooted(rooted.trim_end_matches('/').split('/').map(str::to_owned).collect()));
        }
        if let Some(ending) = line.strip_prefix('*')
            && plain
            && !ending.contains(['*', '/'])
        {
            return Ok(Self::Ending(ending.to_owned()));
        }
        Err(io::Error::other(format!(".gitignore: write `{line}` as `/path`, `/a/*/b` or `*.end`")))
    }

    fn matches(&self, path: &str) -> bool {
        match self {
            Self::Ending(ending) => path.ends_with(ending),
            Self::Rooted(parts) => {
                let mut actual = path.split('/');
                parts.iter().all(|part| actual.next().is_some_and(|name| part == "*" || part == name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ignores(pattern: &str, path: &str) -> bool {
        Pattern::parse(pattern).expect("a shape we understand").matches(path)
    }

    #[test]
    fn rooted_patterns_match_the_folder_and_all_below_it() {
        assert!(ignores("/target", "target"));
        assert!(ignores("/target", "target/debug/x"));
        assert!(!ignores("/target", "crates/target"));
        assert!(ignores("/peers/*/target", "peers/tokio/target/debug"));
        assert!(!ignores("/peers/*/target", "peers/tokio/src"));
    }

    #[test]
    fn endings_match_anywhere() {
        assert!(ignores("*.profraw", "crates/a/default.profraw"));
        assert!(!ignores("*.profraw", "crates/a/profraw.rs"));
    }

    #[test]
    fn shapes_that_git_would_read_otherwise_are_refused() {
        for line in ["target", "!keep", "/a/**/b", "*.[oa]", "*/a"] {
            assert!(Pattern::parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_file_that_vanished_is_no_error() {
        let place = crate::workspace_root().join("xtask/src/vanished.rs");
        assert!(read_file(&place, "xtask/src/vanished.rs".to_owned()).expect("no error").is_none());
    }

    #[test]
    fn the_walk_finds_this_file_and_nothing_ignored() {
        let files = read(&crate::workspace_root()).expect("the workspace can be read");
        assert!(files.iter().any(|file| file.path == "xtask/src/tidy/tree.rs"));
        let strays: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert!(!strays.iter().any(|path| path.starts_with("target/") || path.starts_with(".git/")));
    }
}
