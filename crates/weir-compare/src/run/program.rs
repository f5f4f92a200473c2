//! The file that a word names, as a shell would find it.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::{Path, PathBuf},
};

use super::{RunError, RunSpec};

/// Where programs are looked for if `PATH` is not set.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Most folders of a PATH that are looked into.
const FOLDERS_MAX: usize = 256;

/// The file that a run executes: found when the comparison begins, so that no run searches for it.
///
/// # Errors
/// When there is none, or it cannot be executed.
pub fn program_path(spec: &RunSpec) -> Result<PathBuf, RunError> {
    let word = spec.words.first().ok_or(RunError::Empty)?;
    let own = spec.environment.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    let path = own.or_else(|| env::var_os("PATH")).unwrap_or_else(|| USUAL_PATH.into());
    find(word, &path, spec.folder.as_deref())
}

/// Finds a program by its path, which is relative to the folder that it runs in, or by its name.
fn find(word: &OsStr, path: &OsString, folder: Option<&Path>) -> Result<PathBuf, RunError> {
    let shown = || word.to_string_lossy().into_owned();
    if word.is_empty() {
        return Err(RunError::Empty);
    }
    if word.as_bytes().contains(&b'/') {
        let named = folder.unwrap_or(Path::new("")).join(word);
        return match is_program(&named) {
            Ok(true) => Ok(PathBuf::from(word)),
            Ok(false) => Err(RunError::NotStarted {
                program: shown(),
                reason: "it is no file that may be executed; make it one with chmod +x".to_owned(),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(RunError::Missing(shown())),
            Err(error) => Err(RunError::NotStarted { program: shown(), reason: error.to_string() }),
        };
    }
    // An empty folder in PATH is the current one, which is a trap; shells allow it, but it is never intended.
    let folders = env::split_paths(path).filter(|folder| !folder.as_os_str().is_empty()).take(FOLDERS_MAX);
    // A relative folder is made absolute: the run may be in another one.
    let mut files = folders.filter_map(|folder| std::path::absolute(folder.join(word)).ok());
    files.find(|file| is_program(file).unwrap_or(false)).ok_or_else(|| RunError::Missing(shown()))
}

fn is_program(file: &Path) -> io::Result<bool> {
    let found = fs::metadata(file)?;
    Ok(found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_in_the_path_and_a_path_is_taken_as_it_is() {
        let path = OsString::from("/no/such/folder::/usr/bin:/bin");
        let found = find(OsStr::new("sh"), &path, None).expect("every machine has one");
        assert!(found.ends_with("bin/sh"), "{found:?}");
        assert_eq!(find(OsStr::new("/bin/sh"), &path, None), Ok(PathBuf::from("/bin/sh")));
        assert_eq!(find(OsStr::new("./sh"), &path, Some(Path::new("/bin"))), Ok(PathBuf::from("./sh")));
    }

    #[test]
    fn what_is_no_program_is_named_with_the_way_out() {
        let path = OsString::from("/usr/bin:/bin");
        let said = |word: &str| find(OsStr::new(word), &path, None).expect_err("no program").to_string();
        assert!(said("no-such-program").contains("no program no-such-program; give its path"));
        assert!(said("/no/such/program").contains("no program /no/such/program"));
        assert!(said("/etc/passwd").contains("/etc/passwd: it is no file that may be executed"));
        assert!(said("/bin/").contains("chmod +x"), "a folder");
        assert!(said("").contains("the command is empty"));
    }
}
