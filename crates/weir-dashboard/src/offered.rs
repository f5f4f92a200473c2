//! Studies that may be started from a page: built-in ones, and the files of one folder. A request names one of this
//! list and never a path.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use weir_lab::{builtin, run_folder};

/// Most files of the folder that are offered: the first by name.
pub const OFFERED_MAX: usize = 200;

/// Most entries of the folder that are looked at.
const ENTRIES_MAX: usize = 10_000;

/// Longest part of a results folder's name that comes from a file's.
const STEM_BYTES_MAX: usize = 64;

/// A study that may be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offered {
    /// The name of a built-in one, or that of a file.
    pub name: String,
    /// What names it on the command line.
    pub argument: OsString,
}

impl Offered {
    /// The built-in studies, then those of the folder. One that cannot be read offers nothing.
    pub(crate) fn all(folder: Option<&Path>) -> Vec<Self> {
        let built_in = |name: &str| Self { name: name.to_owned(), argument: name.into() };
        let built_in = builtin::ALL.iter().map(|study| built_in(study.name));
        built_in.chain(folder.map(files).unwrap_or_default()).collect()
    }

    /// The one of this name.
    pub(crate) fn named(folder: Option<&Path>, name: &[u8]) -> Option<Self> {
        Self::all(folder).into_iter().find(|study| study.name.as_bytes() == name)
    }

    /// The folder that its results go to when it begins now.
    pub(crate) fn results_folder(&self) -> OsString {
        let stem = self.name.strip_suffix(".toml").unwrap_or(&self.name);
        let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' };
        let stem: String = stem.chars().map(plain).take(STEM_BYTES_MAX).collect();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        run_folder::name(&stem, now.as_secs()).into()
    }
}

/// Study files of a folder: no links, and none whose name is no text or is hidden.
fn files(folder: &Path) -> Vec<Offered> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let file = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let is_study = name.ends_with(".toml") && !name.starts_with('.');
        let is_file = is_study && entry.file_type().is_ok_and(|kind| kind.is_file());
        is_file.then(|| Offered { argument: PathBuf::from(folder).join(&name).into(), name })
    };
    let mut found: Vec<Offered> = entries.flatten().take(ENTRIES_MAX).filter_map(file).collect();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found.truncate(OFFERED_MAX);
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_of_one_folder_are_offered_by_name_as_many_as_is_stated() {
        let folder = std::env::temp_dir().join(format!("weir-offered-{}", std::process::id()));
        fs::create_dir_all(folder.join("sub.toml")).expect("a folder can be made");
        for name in ["b.toml", "a b&c.toml", ".hidden.toml", "notes.txt"] {
            fs::write(folder.join(name), "").expect("a file can be written");
        }
        symlink("/etc/hostname", folder.join("link.toml")).expect("a link can be made");
        let names = |all: &[Offered]| all.iter().map(|study| study.name.clone()).collect::<Vec<_>>();
        let all = Offered::all(Some(&folder));
        assert_eq!(names(&all[builtin::ALL.len()..]), ["a b&c.toml", "b.toml"]);
        assert_eq!(names(&Offered::all(None)).len(), builtin::ALL.len());
        assert!(Offered::all(None).iter().any(|study| study.name == "quick" && study.argument == "quick"));
        let odd = Offered::named(Some(&folder), b"a b&c.toml").expect("it is offered");
        assert_eq!(odd.argument, folder.join("a b&c.toml").as_os_str());
        let results = odd.results_folder().into_string().expect("plain text");
        assert!(results.starts_with("a-b-c-20"), "{results}");
        for name in ["", "b", "../b.toml", "link.toml", "sub.toml", ".hidden.toml", "/etc/hostname"] {
            assert_eq!(Offered::named(Some(&folder), name.as_bytes()), None, "{name}");
        }
        for number in 0..OFFERED_MAX {
            fs::write(folder.join(format!("n{number}.toml")), "").expect("a file can be written");
        }
        assert_eq!(Offered::all(Some(&folder)).len(), builtin::ALL.len() + OFFERED_MAX);
        fs::remove_dir_all(&folder).expect("it can be removed");
        assert_eq!(
            Offered::all(Some(&folder)).len(),
            builtin::ALL.len(),
            "a folder that is gone offers nothing"
        );
    }
}
