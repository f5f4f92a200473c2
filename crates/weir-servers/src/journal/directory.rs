//! The folder of the journals: the lock for writing there, and what its file system can guarantee.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::{
    fs::{Access, FlockOperation, access, flock, statfs},
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

/// No process writes a worker's journal, and none begins to while this exists. Unlike [`Lock`] it creates nothing.
#[derive(Debug)]
pub struct HeldUnwritten(Option<File>);

impl HeldUnwritten {
    /// `None`: a process writes it.
    ///
    /// # Errors
    /// Those of opening and locking a file.
    pub fn take(directory: &Path, worker: u16) -> io::Result<Option<Self>> {
        let file = match File::open(path(directory, worker)) {
            Ok(file) => file,
            // A copy of the files, which no process has opened yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(Self(None))),
            Err(error) => return Err(error),
        };
        loop {
            match flock(&file, FlockOperation::NonBlockingLockShared) {
                Ok(()) => return Ok(Some(Self(Some(file)))),
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for HeldUnwritten {
    /// As with [`Lock`].
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            // It fails only if the file is not locked.
            let _ = flock(file, FlockOperation::Unlock);
        }
    }
}

/// A folder of journals, as a start would find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderState {
    /// It exists.
    pub is_there: bool,
    /// The workers that have a journal there, in order.
    pub workers: Vec<u16>,
    /// Those whose journals a process writes now.
    pub written: Vec<u16>,
}

/// Examines a folder of journals without creating or changing anything. Each journal is locked for a moment: a start
/// at that moment is refused.
///
/// # Errors
/// It cannot be read, or nothing can be created there.
pub fn folder_state(directory: &Path) -> io::Result<FolderState> {
    let existing = directory.ancestors().find(|folder| folder.exists() || folder.as_os_str().is_empty());
    let existing = existing.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !existing.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::NotADirectory,
            format!("{} is no folder", existing.display()),
        ));
    }
    access(existing, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK)?;
    let workers = workers_in(directory)?;
    let mut written = Vec::new();
    for worker in &workers {
        if HeldUnwritten::take(directory, *worker)?.is_none() {
            written.push(*worker);
        }
    }
    Ok(FolderState { is_there: directory.is_dir(), workers, written })
}

fn path(directory: &Path, worker: u16) -> PathBuf {
    directory.join(format!("worker-{worker:05}.lock"))
}

/// Creates a folder so that it survives a loss of power. Others may not look into it: a journal has every order of
/// every client. Folders above it get the process's usual mode.
pub(super) fn create(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    directory.parent().map_or(Ok(()), fs::create_dir_all)?;
    // Another worker's recovery may be faster.
    fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(directory)?;
    sync_name(directory)
}

/// Waits until a folder's name in its parent is on disk.
pub(super) fn sync_name(directory: &Path) -> io::Result<()> {
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

/// The files of a worker's journal with their lengths in bytes, in order.
///
/// # Errors
/// Those of reading a folder, and of examining a file.
pub fn files_in(directory: &Path, worker: u16) -> io::Result<Vec<(PathBuf, u64)>> {
    let own = segment::list(directory)?.into_iter().filter(|(owner, _)| *owner == worker);
    let mut files = Vec::new();
    for (_, number) in own {
        let path = segment::path(directory, worker, number);
        match fs::metadata(&path) {
            Ok(found) => files.push((path, found.len())),
            // A start removes files that were never written.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(files)
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
    fn a_folder_is_examined_without_a_change() {
        let folder = std::env::temp_dir().join(format!("weir-folder-state-{}", std::process::id()));
        let state = |written: &[u16]| FolderState {
            is_there: folder.exists(),
            workers: if folder.exists() { vec![1] } else { Vec::new() },
            written: written.to_vec(),
        };
        let found = || folder_state(&folder).expect("it can be made there");
        assert_eq!(found(), state(&[]));
        assert!(!folder.exists());
        let lock = Lock::take(&folder, 1).expect("it can be made").expect("it is free");
        fs::write(segment::path(&folder, 1, 1), b"").expect("it can be written");
        assert_eq!(found(), state(&[1]));
        drop(lock);
        assert_eq!(found(), state(&[]));
        let file = segment::path(&folder, 1, 1);
        assert_eq!(
            folder_state(&file.join("below")).expect_err("no folder").kind(),
            io::ErrorKind::NotADirectory
        );
        fs::remove_dir_all(&folder).expect("it is ours");
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
