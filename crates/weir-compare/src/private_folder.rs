//! A folder below the one for temporary files, with an unpredictable name.

use std::{
    fs::{self, DirBuilder},
    hash::{BuildHasher, RandomState},
    io::{self, ErrorKind},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

/// Most names that are tried.
const TRIES_MAX: u32 = 16;

/// A folder that only this user can enter. Dropping it removes it with its content.
#[derive(Debug)]
pub(crate) struct PrivateFolder(PathBuf);

impl PrivateFolder {
    pub(crate) fn below(folder: &Path) -> io::Result<Self> {
        let mut tries = 0;
        loop {
            tries += 1;
            // The hasher's state is random, and different each time.
            let path = folder.join(format!("weir-compare-{:016x}", RandomState::new().hash_one(tries)));
            // Creating a folder follows no link, and never takes an existing one.
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists && tries < TRIES_MAX => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // A file that remains was put there by another process.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_folder_is_private_and_goes() {
        let make = || PrivateFolder::below(&std::env::temp_dir()).expect("it can be made");
        let (one, other) = (make(), make());
        assert_ne!(one.path(), other.path());
        assert_eq!(fs::metadata(one.path()).expect("it is there").permissions().mode() & 0o777, 0o700);
        fs::write(one.path().join("table"), "x").expect("it is ours");
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists());
        assert!(PrivateFolder::below(Path::new("/no/such/folder")).is_err());
    }
}
