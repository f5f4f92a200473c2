//! The folder of the journals: the lock for writing there, and what its file system can guarantee.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::{
    fs::{FlockOperation, flock, statfs},
    io::Errno,
};

use super::{Level, segment};

/// Permissions of a created folder.
const FOLDER_MODE: u32 = 0o700;

/// The right to write one worker's journal. Dropping it releases the lock.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    is_claimed: AtomicBool,
}

impl Lock {
    /// `None`: another process, or another part of this one, holds it. Creates the folder if it does not exist.
    pub(super) fn take(directory: &Path, worker: u16) -> io::Result<Option<Self>> {
        create(directory)?;
        let path = path(directory, worker);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(segment::FILE_MODE);
        let file = options.open(path)?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(Self { file, is_claimed: AtomicBool::new(false) })),
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The state recovered under a lock is valid until the next write: it can be claimed once.
    pub(super) fn claim(&self) -> bool {
        !self.is_claimed.swap(true, Ordering::Relaxed)
    }
}

impl Drop for Lock {
    /// Closing alone would release it too late: a child that another thread has just forked holds a copy of the
    /// descriptor until it executes its program.
    fn drop(&mut self) {
        // It fails only if the file is not locked.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

fn path(directory: &Path, worker: u16) -> PathBuf {
    directory.join(format!("worker-{worker:05}.lock"))
}

/// Creates a folder so that it survives a loss of power. Others may not look into it: a journal has every order of
/// every client. Folders above it get the process's usual mode.
fn create(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    directory.parent().map_or(Ok(()), fs::create_dir_all)?;
    // Another worker's recovery may be faster.
    fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(directory)?;
    let whole = directory.canonicalize()?;
    whole.parent().map_or(Ok(()), sync)
}

/// Waits until the names in a folder are on disk.
pub(super) fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// The workers that have a journal in this folder, in order; empty if the folder does not exist.
///
/// # Errors
/// Those of reading a folder.
pub fn workers_in(directory: &Path) -> io::Result<Vec<u16>> {
    let mut workers: Vec<u16> = match segment::list(directory) {
        Ok(segments) => segments.into_iter().map(|(worker, _)| worker).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    workers.dedup();
    Ok(workers)
}

/// A warning before a level is promised in a folder: level `disk` means nothing on a file system in memory, and may
/// mean nothing on one stacked on others.
pub fn warning(directory: &Path, level: Level) -> Option<String> {
    if level != Level::Disk {
        return None;
    }
    let present = directory.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let filesystem = volatile(statfs(present).ok()?.f_type as u64)?;
    Some(format!(
        "{} lies on {filesystem}: journal level disk cannot keep its promise there, and a loss of power may lose \
         what was acknowledged",
        directory.display()
    ))
}

/// Name of a file system whose `fdatasync` guarantees nothing, by its number in `linux/magic.h`.
fn volatile(magic: u64) -> Option<&'static str> {
    // The field's type depends on the architecture, and its value has 32 bits.
    match magic & 0xffff_ffff {
        0x0102_1994 => Some("tmpfs"),
        0x8584_58f6 => Some("ramfs"),
        0x794c_7630 => Some("overlay"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_in_memory_are_told_from_others() {
        assert_eq!(volatile(0x0102_1994), Some("tmpfs"));
        // Sign-extended, as in a field of 64 signed bits.
        assert_eq!(volatile(0x8584_58f6_u32 as i32 as i64 as u64), Some("ramfs"));
        assert_eq!(volatile(0xef53), None, "ext4");
    }

    #[test]
    fn memory_is_warned_of_at_level_disk_only() {
        let shared_memory = Path::new("/dev/shm/weir-not-there/journal");
        if statfs("/dev/shm").is_ok_and(|found| volatile(found.f_type as u64) == Some("tmpfs")) {
            let sentence = warning(shared_memory, Level::Disk).expect("it is memory");
            assert!(sentence.starts_with("/dev/shm/weir-not-there/journal lies on tmpfs: "), "{sentence}");
        }
        assert_eq!(warning(shared_memory, Level::Os), None);
        assert_eq!(warning(shared_memory, Level::None), None);
    }
}
