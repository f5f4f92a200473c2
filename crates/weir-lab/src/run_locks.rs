//! Which run folders a session works on, from the kernel's list of locks. Trying a lock would be in the way of a
//! session that begins at that moment; reading the list is in nobody's. The list leaves out locks of processes that the
//! reader's PID namespace does not have: whoever must be sure of one folder asks [`is_locked`].

use std::{fs::File, path::Path};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use weir_sys::file_locks::FileLocks;

/// Folders that a session works on, at the moment they were looked up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    locks: FileLocks,
}

impl Held {
    /// Looks now. Where the kernel shows no list, nothing is held as far as can be said.
    pub fn now() -> Self {
        Self { locks: FileLocks::now() }
    }

    /// Whether a session holds the run folder.
    pub fn holds(&self, folder: &Path) -> bool {
        self.locks.holder_of(folder).is_some_and(|holder| holder.is_exclusive)
    }
}

/// Whether a session holds the run folder, whoever it belongs to, by trying its lock. A session that begins in that
/// moment is kept from it: this is no way to look around.
pub fn is_locked(folder: &Path) -> bool {
    let tried = File::open(folder).map(|folder| flock(&folder, FlockOperation::NonBlockingLockShared));
    matches!(tried, Ok(Err(Errno::WOULDBLOCK)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_is_held_as_long_as_its_lock_is() {
        let folder = std::env::temp_dir().join(format!("weir-held-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder can be made");
        assert!(!Held::now().holds(&folder) && !is_locked(&folder));
        let handle = File::open(&folder).expect("it can be opened");
        flock(&handle, FlockOperation::NonBlockingLockExclusive).expect("nobody else has it");
        assert!(Held::now().holds(&folder) && is_locked(&folder));
        drop(handle);
        assert!(!Held::now().holds(&folder) && !is_locked(&folder), "and trying left nothing behind");
        fs::remove_dir_all(&folder).expect("it can be removed");
        assert!(!Held::now().holds(&folder) && !is_locked(&folder), "one that is gone is nobody's");
    }
}
