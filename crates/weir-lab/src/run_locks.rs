//! Which run folders a session works on, from the kernel's list of locks. Trying a lock could make a session that
//! begins at that moment fail; reading the list cannot. The list omits locks of processes outside the reader's PID
//! namespace. To be sure of one folder, use [`is_locked`].

use std::{fs::File, path::Path};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use weir_sys::file_locks::FileLocks;

/// Folders that a session works on, at the time of the look-up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    locks: FileLocks,
}

impl Held {
    /// Reads the list. If the kernel shows no list, no folder counts as held.
    pub fn now() -> Self {
        Self { locks: FileLocks::now() }
    }

    /// Whether a session holds the run folder.
    pub fn holds(&self, folder: &Path) -> bool {
        self.locks.holder_of(folder).is_some_and(|holder| holder.is_exclusive)
    }
}

/// Whether a session of any user holds the run folder, found by trying its lock. A session that begins at that moment
/// is refused, so do not use this to look around.
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
