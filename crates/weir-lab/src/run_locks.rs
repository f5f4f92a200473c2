//! Which run folders a session works on, from the kernel's list of locks. Trying a lock could make a session that
//! begins at that moment fail; reading the list cannot. The list omits locks of processes outside the reader's PID
//! namespace. To be sure of one folder, use [`is_locked`].

use std::{fs::File, io, path::Path};

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

/// The lock of a run folder, from which others see that a session works on it. It is held until this is dropped, or
/// until the process ends.
#[derive(Debug)]
pub struct RunLock(File);

impl RunLock {
    /// Locks a run folder.
    ///
    /// # Errors
    /// `WouldBlock`: another session works on it. Others: the folder cannot be opened or locked.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let folder = File::open(folder)?;
        flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self(folder))
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        release(&self.0);
    }
}

/// Gives a lock back. Closing the file is not enough: a child that another thread has forked keeps it open until it
/// runs its program.
fn release(locked: &File) {
    // It is held, so this cannot fail.
    let _ = flock(locked, FlockOperation::Unlock);
}

/// Whether a session of any user holds the run folder, found by trying its lock. A session that begins at that moment
/// is refused, so do not use this to look around.
pub fn is_locked(folder: &Path) -> bool {
    let Ok(folder) = File::open(folder) else { return false };
    match flock(&folder, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            release(&folder);
            false
        }
        Err(error) => error == Errno::WOULDBLOCK,
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command, thread};

    use super::*;

    #[test]
    fn a_folder_is_held_as_long_as_its_lock_is() {
        let folder = std::env::temp_dir().join(format!("weir-held-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder can be made");
        assert!(!Held::now().holds(&folder) && !is_locked(&folder));
        let lock = RunLock::of(&folder).expect("nobody else has it");
        assert!(Held::now().holds(&folder) && is_locked(&folder));
        let second = RunLock::of(&folder).expect_err("it is locked");
        assert_eq!(second.kind(), io::ErrorKind::WouldBlock);
        drop(lock);
        assert!(!Held::now().holds(&folder) && !is_locked(&folder), "and trying left nothing behind");
        fs::remove_dir_all(&folder).expect("it can be removed");
        assert!(!Held::now().holds(&folder) && !is_locked(&folder), "one that is gone is nobody's");
    }

    #[test]
    fn a_lock_that_was_given_back_is_free_whatever_was_forked_meanwhile() {
        let folder = std::env::temp_dir().join(format!("weir-held-forked-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder can be made");
        let lock = RunLock::of(&folder).expect("nobody else has it");
        let mut command = Command::new("true");
        let mut gate = weir_sys::child::hold(&mut command).expect("pipes");
        let child = thread::spawn(move || command.spawn());
        gate.wait_for_child().expect("it was forked, and has the open folder");
        drop(lock);
        assert!(!Held::now().holds(&folder) && !is_locked(&folder));
        gate.open().expect("it waits");
        let mut child = child.join().expect("the thread ends").expect("it starts");
        assert!(child.wait().expect("it can be reaped").success());
        fs::remove_dir_all(&folder).expect("it can be removed");
    }
}
