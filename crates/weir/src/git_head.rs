//! The commit and branch of a folder, as git stores them on disk. This code reads the few files with them, and does not
//! run git: its configuration may name programs (a file system monitor, filters), and a measurement starts no
//! unrequested programs. So files that differ from the commit are not detected.
//!
//! <https://git-scm.com/docs/gitrepository-layout>

use std::{
    fs::{self, File},
    io::Read,
    path::{Component, Path, PathBuf},
};

/// Most parent folders that are searched.
const FOLDERS_MAX: usize = 64;

/// Longest file that names one thing.
const FILE_BYTES_MAX: u64 = 4 << 10;

/// Longest file of packed references.
const PACKED_BYTES_MAX: u64 = 32 << 20;

/// References that lead to others.
const LINKS_MAX: usize = 5;

/// Where a folder's repository is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GitHead {
    /// The commit, in full; absent before the first one.
    pub(crate) commit: Option<String>,
    /// The branch; absent if the checked-out commit is not a branch's.
    pub(crate) branch: Option<String>,
}

/// A `.git` that leads to no repository. Git ends with an error there, and does not look into the folders above: their
/// repository is another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BrokenGit(pub(crate) PathBuf);

/// The head of the repository that contains a folder; none if there is no readable one.
pub(crate) fn head(folder: &Path) -> Result<Option<GitHead>, BrokenGit> {
    let Ok(folder) = fs::canonicalize(folder) else { return Ok(None) };
    for above in folder.ancestors().take(FOLDERS_MAX) {
        let place = above.join(".git");
        if fs::symlink_metadata(&place).is_ok() {
            return git_folder(&place).map(|own| head_in(&own)).ok_or(BrokenGit(place));
        }
    }
    Ok(None)
}

/// The head in a repository's own folder.
fn head_in(own: &Path) -> Option<GitHead> {
    let text = line(&own.join("HEAD"), FILE_BYTES_MAX)?;
    match text.strip_prefix("ref:").map(str::trim) {
        None => Some(GitHead { commit: Some(hash(&text)?), branch: None }),
        Some(name) => {
            let branch = name.strip_prefix("refs/heads/").filter(|_| is_reference(name));
            // With another store of references, the branch here is a placeholder.
            let branch = branch.filter(|branch| *branch != ".invalid").map(str::to_owned);
            Some(GitHead { commit: commit(own, name), branch })
        }
    }
}

/// The repository's folder: it exists, or a file names it, as in a worktree or a submodule.
fn git_folder(place: &Path) -> Option<PathBuf> {
    if place.is_dir() {
        return Some(place.to_path_buf());
    }
    let text = line(place, FILE_BYTES_MAX)?;
    let named = Path::new(text.strip_prefix("gitdir:")?.trim());
    let folder = place.parent()?.join(named);
    folder.is_dir().then_some(folder)
}

/// The commit of a reference. A worktree has its own head, and shares the rest with its repository.
fn commit(own: &Path, name: &str) -> Option<String> {
    let common = line(&own.join("commondir"), FILE_BYTES_MAX);
    let common = common.map_or_else(|| own.to_path_buf(), |folder| own.join(folder));
    let mut name = name.to_owned();
    for _ in 0..LINKS_MAX {
        if !is_reference(&name) {
            return None;
        }
        let loose = [own, &common].into_iter().find_map(|folder| line(&folder.join(&name), FILE_BYTES_MAX));
        let Some(text) = loose else { return packed(&common.join("packed-refs"), &name) };
        match text.strip_prefix("ref:") {
            Some(next) => name = next.trim().to_owned(),
            None => return hash(&text),
        }
    }
    None
}

/// The commit of a reference in the packed file: `HASH NAME` in each line. Lines that begin with `^` name the object of
/// the tag above them.
fn packed(file: &Path, name: &str) -> Option<String> {
    let text = text(file, PACKED_BYTES_MAX)?;
    let mut pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.find(|(_, own)| own.trim_end() == name).and_then(|(found, _)| hash(found))
}

/// Whether this names a file below `refs`, and no other file.
fn is_reference(name: &str) -> bool {
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    name.starts_with("refs/") && Path::new(name).components().all(is_plain)
}

/// A hash in hexadecimal, of either kind that git has.
fn hash(text: &str) -> Option<String> {
    let is_hash = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| text.to_ascii_lowercase())
}

/// The first line of a file.
fn line(file: &Path, bytes_max: u64) -> Option<String> {
    Some(text(file, bytes_max)?.lines().next()?.trim().to_owned())
}

/// The content of a regular file; none if it is too long, or not UTF-8.
fn text(file: &Path, bytes_max: u64) -> Option<String> {
    // A pipe would wait for a writer.
    if !fs::metadata(file).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    File::open(file).ok()?.take(bytes_max + 1).read_to_string(&mut text).ok()?;
    (text.len() as u64 <= bytes_max).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "0123456789abcdef0123456789abcdef01234567";
    const OTHER: &str = "89abcdef0123456789abcdef0123456789abcdef";

    /// A folder with these files, below the system's temporary one.
    fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("weir-git-{name}-{}", std::process::id()));
        // An earlier run of the tests may have had the same number.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder can be made");
        for (path, text) in files {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder can be made");
            fs::write(path, text).expect("a file can be written");
        }
        folder
    }

    fn found(commit: Option<&str>, branch: Option<&str>) -> Result<Option<GitHead>, BrokenGit> {
        Ok(Some(GitHead { commit: commit.map(str::to_owned), branch: branch.map(str::to_owned) }))
    }

    #[test]
    fn a_branch_is_found_from_a_folder_below_and_a_loose_reference_counts_before_a_packed_one() {
        let packed =
            format!("# pack-refs with: peeled\n{OTHER} refs/heads/main\n^{ONE}\n{OTHER} refs/heads/a/b\n");
        let files = [
            (".git/HEAD", "ref: refs/heads/main\n".to_owned()),
            (".git/refs/heads/main", format!("{ONE}\n")),
            (".git/packed-refs", packed),
            ("deep/below/file", String::new()),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        let own = folder("branch", &files);
        assert_eq!(head(&own.join("deep/below")), found(Some(ONE), Some("main")));
        fs::write(own.join(".git/HEAD"), "ref: refs/heads/a/b\n").expect("it can be written");
        assert_eq!(head(&own), found(Some(OTHER), Some("a/b")), "it is packed");
        fs::write(own.join(".git/HEAD"), "ref: refs/heads/new\n").expect("it can be written");
        assert_eq!(head(&own), found(None, Some("new")), "it has no commit yet");
        fs::write(own.join(".git/HEAD"), format!("{ONE}\n")).expect("it can be written");
        assert_eq!(head(&own), found(Some(ONE), None), "it is detached");
        fs::remove_dir_all(&own).expect("it can be removed");
    }

    #[test]
    fn a_worktree_has_its_own_head_and_the_references_of_its_repository() {
        let topic = format!("{OTHER}\n");
        let files = [
            ("main/.git/HEAD", "ref: refs/heads/main\n"),
            ("main/.git/refs/heads/topic", topic.as_str()),
            ("main/.git/worktrees/tree/HEAD", "ref: refs/heads/topic\n"),
            ("main/.git/worktrees/tree/commondir", "../..\n"),
            ("tree/.git", "gitdir: ../main/.git/worktrees/tree\n"),
        ];
        let own = folder("worktree", &files);
        assert_eq!(head(&own.join("tree")), found(Some(OTHER), Some("topic")));
        assert_eq!(head(&own.join("main")), found(None, Some("main")));
        fs::remove_dir_all(&own).expect("it can be removed");
    }

    #[test]
    fn what_is_no_repository_or_broken_says_nothing_or_less() {
        let above = format!("{ONE}\n");
        let files = [(".git/HEAD", above.as_str()), ("in/plain/file", ""), ("in/.git", "gitdir: nowhere\n")];
        let own = folder("broken", &files);
        assert_eq!(head(&own), found(Some(ONE), None));
        assert_eq!(head(&own.join("none")), Ok(None), "it is not there");
        let broken =
            |folder: &Path| -> Result<Option<GitHead>, BrokenGit> { Err(BrokenGit(folder.join(".git"))) };
        let within = fs::canonicalize(own.join("in")).expect("it is there");
        assert_eq!(head(&within.join("plain")), broken(&within), "the repository above is another one");
        fs::write(within.join(".git"), "no place\n").expect("it can be written");
        assert_eq!(head(&within), broken(&within));
        fs::remove_file(within.join(".git")).expect("it is there");
        std::os::unix::fs::symlink("nowhere", within.join(".git")).expect("a link can be made");
        assert_eq!(head(&within), broken(&within));
        fs::remove_dir_all(&own).expect("it can be removed");

        let long = "x".repeat(FILE_BYTES_MAX as usize + 1);
        for (text, expected) in [
            ("", Ok(None)),
            ("no hash", Ok(None)),
            (long.as_str(), Ok(None)),
            ("ref: refs/../../../etc/passwd", found(None, None)),
            ("ref: /etc/hostname", found(None, None)),
            ("ref: refs/heads/.invalid", found(None, None)),
            ("ref: refs/heads/../../secret", found(None, None)),
            ("ref: refs/heads/round", found(None, Some("round"))),
        ] {
            let own =
                folder("odd", &[(".git/HEAD", text), (".git/refs/heads/round", "ref: refs/heads/round")]);
            assert_eq!(head(&own), expected, "{:?}", &text[..text.len().min(40)]);
            fs::remove_dir_all(&own).expect("it can be removed");
        }
    }
}
