//! Files: opening them, reading and writing at given positions, and sending them.
//!
//! io_uring performs the operations itself. On epoll, poll and select, bytes that are in the page cache are read at
//! once; operations that may wait for the disk are done by a few helper threads of the runtime. If neither a helper
//! nor a kernel worker can be started, as at a limit on threads, the runtime's thread does the operation and waits.
//! On the blocking driver the thread waits. On the simulator the real file is used and virtual time passes.
//!
//! An operation belongs to the engine while it is in flight. Dropping its future discards the answer and nothing
//! else: a write or a sync that has begun runs to its end, and its buffers are given back after that. An operation
//! that still waits for its turn, because [`Limits::file_operations_max`](crate::Limits) others are in flight, is not
//! begun. A runtime that ends drops the operations that have not begun, and waits at most two seconds for the rest: a
//! call that hangs continues without it and may take effect late. [`File::write_at_holding`] and [`rename`] keep a
//! lock until then.
//!
//! ```
//! use weir_engine::{Config, Runtime, fs::{File, OpenOptions}};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let path = std::env::temp_dir().join(format!("weir-example-{}", std::process::id()));
//! let runtime = Runtime::new(&Config::default())?;
//! runtime.block_on(async {
//!     let options = OpenOptions { read: true, write: true, create: true, ..OpenOptions::default() };
//!     let file = File::open_with(&path, options).await?;
//!     file.write_at(0, b"hello, file".to_vec()).await?;
//!     file.sync_data().await?;
//!     assert_eq!(&file.read_at(7, 100).await?[..], b"file");
//!     assert_eq!(file.metadata().await?.len, 11);
//!     std::fs::remove_file(&path)
//! })?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Stream::send_file`](crate::net::Stream::send_file) sends a part of a file without copying it.

use std::{
    any::Any,
    ffi::CString,
    fmt,
    future::Future,
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, SystemTime},
};

use rustix::{
    fs::{FileType, Mode, OFlags},
    io::Errno,
};

use crate::{
    counters::Counters,
    driver::{
        DriverOps,
        files::{self, FileOperation, FileResult, Held, Outcome, Request},
    },
    executor::{self, Core, poll_driver},
};

pub use crate::{file_bytes::FileBytes, send_queue::FilePart};

/// Most bytes of one read.
pub const READ_BYTES_MAX: usize = 16 << 20;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// Open for reading.
    pub read: bool,
    /// Open for writing.
    pub write: bool,
    /// Create the file if it does not exist.
    pub create: bool,
    /// Truncate the file.
    pub truncate: bool,
    /// Permissions of a created file, before the process's mask.
    pub mode: u32,
}

impl Default for OpenOptions {
    /// For reading.
    fn default() -> Self {
        Self { read: true, write: false, create: false, truncate: false, mode: 0o666 }
    }
}

impl OpenOptions {
    fn flags(self) -> OFlags {
        let access = match (self.read, self.write) {
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
            (_, false) => OFlags::RDONLY,
        };
        let create = if self.create { OFlags::CREATE } else { OFlags::empty() };
        access | create | if self.truncate { OFlags::TRUNC } else { OFlags::empty() }
    }
}

/// The metadata of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Bytes in the file.
    pub len: u64,
    /// When the bytes were last changed.
    pub modified: SystemTime,
    /// A regular file: it has bytes at positions, and is no folder, pipe or device.
    pub is_file: bool,
    /// A folder.
    pub is_folder: bool,
    /// The inode number; together with `device` it identifies the file.
    pub inode: u64,
    /// Number of the file system.
    pub device: u64,
}

/// An open file.
///
/// It has no current position, so any number of operations can be in flight. They may take effect in another order
/// than they were begun in: to enforce an order, wait for one before starting the next.
pub struct File {
    core: Rc<Core>,
    /// Taken by `drop` only.
    descriptor: Option<Arc<OwnedFd>>,
}

impl fmt::Debug for File {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("File").field("descriptor", &self.descriptor).finish_non_exhaustive()
    }
}

impl File {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// Those of `open(2)`; an error outside a runtime.
    pub async fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::open_with(path, OpenOptions::default()).await
    }

    /// Opens a file. It is closed on exec. If the future is dropped, a file may already have been created or
    /// truncated.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub async fn open_with(path: impl AsRef<Path>, options: OpenOptions) -> io::Result<Self> {
        let core = executor::current()?;
        let path = path_of(path.as_ref().as_os_str().as_bytes())?;
        let mode = if options.create { Mode::from_raw_mode(options.mode) } else { Mode::empty() };
        Self::perform_open(core, Request::Open { below: None, path, flags: options.flags(), mode }).await
    }

    async fn perform_open(core: Rc<Core>, request: Request) -> io::Result<Self> {
        match FileFuture::new(&core, request).await? {
            Outcome::Opened(descriptor) => Ok(Self { core, descriptor: Some(Arc::new(descriptor)) }),
            other => unreachable!("an open was answered by {other:?}"),
        }
    }

    /// Takes over an open file, which must not be in append mode (`O_APPEND`): every write here names its position.
    ///
    /// # Errors
    /// An error outside a runtime.
    pub fn from_descriptor(descriptor: OwnedFd) -> io::Result<Self> {
        Ok(Self { core: executor::current()?, descriptor: Some(Arc::new(descriptor)) })
    }

    /// The file that a part belongs to. It stays open as long as either exists.
    ///
    /// # Errors
    /// An error outside a runtime.
    pub fn of_part(part: &FilePart) -> io::Result<Self> {
        Ok(Self { core: executor::current()?, descriptor: Some(Arc::clone(part.file())) })
    }

    fn descriptor(&self) -> &Arc<OwnedFd> {
        match &self.descriptor {
            Some(descriptor) => descriptor,
            None => unreachable!("only drop takes it"),
        }
    }

    /// Reads `length` bytes from `offset`. A short read means that the file ends there; an empty one, that it ends at
    /// `offset` or before.
    ///
    /// # Errors
    /// Those of `pread(2)`; `InvalidInput` for more than [`READ_BYTES_MAX`] bytes or an impossible offset.
    pub async fn read_at(&self, offset: u64, length: usize) -> io::Result<FileBytes> {
        if length > READ_BYTES_MAX {
            let reason = format!("one read is of at most {READ_BYTES_MAX} bytes, not {length}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        check(offset, length as u64)?;
        if length == 0 {
            return Ok(Vec::new().into());
        }
        let request = Request::Read { file: Arc::clone(self.descriptor()), offset, length };
        match FileFuture::new(&self.core, request).await? {
            Outcome::Read(bytes) => Ok(bytes),
            other => unreachable!("a read was answered by {other:?}"),
        }
    }

    /// Writes all of `bytes` at `offset`, and returns their memory.
    ///
    /// # Errors
    /// Those of `pwrite(2)`, possibly with a part of the bytes written; `InvalidInput` for an impossible offset.
    pub async fn write_at(&self, offset: u64, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        self.write(offset, bytes, None).await
    }

    /// Writes as [`Self::write_at`], under a lock.
    ///
    /// `held` is dropped when this write can no longer change anything, and not before: the next owner of the lock
    /// meets no late write, even when the future was dropped and the runtime has ended. If the runtime ends while a
    /// write hangs, a helper thread keeps `held` until the call returns, and io_uring keeps it as long as the process
    /// lives. It is dropped where the write ends: on a helper's thread, or on the runtime's inside its driver. So its
    /// destructor must not call the engine; the destructors of a file lock and of a permit do not.
    ///
    /// Such a write may hang, so the runtime's thread does not try it, unless no other thread can (`blocking`, or
    /// neither a helper nor a kernel worker can be started). io_uring hands it to a kernel worker (`IOSQE_ASYNC`).
    /// With ext4 the kernel does so anyway. The kernel first tries buffered writes of file systems that can do them
    /// without waiting (`FMODE_BUF_WASYNC`: XFS since 6.0, Btrfs since 6.1) in the call that submits them; that is
    /// faster, and [`Self::write_at`] uses it. But before 6.12 (or its stable backports) the attempt waits while the
    /// file system is frozen (Linux, `io_uring/rw.c`: `io_write` called `kiocb_start_write`, which sleeps, where
    /// `io_kiocb_start_write` now only tries).
    ///
    /// # Errors
    /// As [`Self::write_at`].
    pub async fn write_at_holding(
        &self,
        offset: u64,
        bytes: Vec<u8>,
        held: Arc<dyn Any + Send + Sync>,
    ) -> io::Result<Vec<u8>> {
        self.write(offset, bytes, Some(held)).await
    }

    async fn write(&self, offset: u64, bytes: Vec<u8>, held: Option<Held>) -> io::Result<Vec<u8>> {
        check(offset, bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(bytes);
        }
        let request = Request::Write { file: Arc::clone(self.descriptor()), offset, bytes, held };
        match FileFuture::new(&self.core, request).await? {
            Outcome::Written(bytes) => Ok(bytes),
            other => unreachable!("a write was answered by {other:?}"),
        }
    }

    /// Waits until the written bytes, and the metadata needed to find them again, are on the disk.
    ///
    /// # Errors
    /// Those of `fdatasync(2)`.
    pub async fn sync_data(&self) -> io::Result<()> {
        self.sync(true).await
    }

    /// As [`Self::sync_data`], with all metadata of the file.
    ///
    /// # Errors
    /// Those of `fsync(2)`.
    pub async fn sync_all(&self) -> io::Result<()> {
        self.sync(false).await
    }

    async fn sync(&self, data_only: bool) -> io::Result<()> {
        let request = Request::Sync { file: Arc::clone(self.descriptor()), data_only };
        FileFuture::new(&self.core, request).await.map(drop)
    }

    /// Reserves disk space for the first `length` bytes, so that no write there fails for lack of space. The file is
    /// then at least that long, and unwritten bytes are zeros.
    ///
    /// # Errors
    /// Those of `fallocate(2)`: `Unsupported` where the file system cannot reserve space; `InvalidInput` for an
    /// impossible length.
    pub async fn allocate(&self, length: u64) -> io::Result<()> {
        check(0, length)?;
        let request = Request::Allocate { file: Arc::clone(self.descriptor()), length };
        FileFuture::new(&self.core, request).await.map(drop)
    }

    /// Length, time of the last change, and which file it is.
    ///
    /// A direct call on every driver: an open file's inode is in memory, and io_uring would wake one of its workers
    /// for each call.
    ///
    /// # Errors
    /// Those of `fstat(2)`.
    pub async fn metadata(&self) -> io::Result<Metadata> {
        self.core.counters.file_calls.increment_shared();
        let found = rustix::fs::fstat(self.descriptor())?;
        let (seconds, nanoseconds) = (found.st_mtime as i64, found.st_mtime_nsec as u32);
        let whole = Duration::from_secs(seconds.unsigned_abs());
        let modified = if seconds < 0 {
            SystemTime::UNIX_EPOCH.checked_sub(whole)
        } else {
            SystemTime::UNIX_EPOCH.checked_add(whole)
        };
        Ok(Metadata {
            len: u64::try_from(found.st_size).unwrap_or(0),
            modified: modified.unwrap_or(SystemTime::UNIX_EPOCH) + Duration::from_nanos(nanoseconds.into()),
            is_file: FileType::from_raw_mode(found.st_mode) == FileType::RegularFile,
            is_folder: FileType::from_raw_mode(found.st_mode) == FileType::Directory,
            inode: found.st_ino as u64,
            device: found.st_dev as u64,
        })
    }

    /// A part of the file, which can be sent on any number of connections.
    ///
    /// # Errors
    /// `InvalidInput` for a part that no file can have.
    pub fn part(&self, offset: u64, length: u64) -> io::Result<FilePart> {
        check(offset, length)?;
        Ok(FilePart::new(Arc::clone(self.descriptor()), offset, length as usize))
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor().as_fd()
    }
}

/// Renames a file atomically, in place of any file that had the new name.
///
/// `held` is dropped when the rename can no longer change anything, and not before: a lock under which names change
/// therefore outlives the change, even when the future was dropped and the runtime has ended.
/// [`File::write_at_holding`] says what its destructor must not do.
///
/// # Errors
/// Those of `rename(2)`; an error outside a runtime.
pub async fn rename(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    held: Arc<dyn Any + Send + Sync>,
) -> io::Result<()> {
    let core = executor::current()?;
    let from = path_of(from.as_ref().as_os_str().as_bytes())?;
    let to = path_of(to.as_ref().as_os_str().as_bytes())?;
    FileFuture::new(&core, Request::Rename { from, to, held }).await.map(drop)
}

impl FilePart {
    /// A part of an open file that belongs to no runtime. It can be sent on connections of any number of runtimes.
    ///
    /// # Errors
    /// `InvalidInput` for a part that no file can have.
    pub fn of_descriptor(file: Arc<OwnedFd>, offset: u64, length: u64) -> io::Result<Self> {
        check(offset, length)?;
        Ok(Self::new(file, offset, length as usize))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if let Some(descriptor) = self.descriptor.take() {
            self.core.with_driver(|driver| driver.close_file(descriptor));
        }
    }
}

/// A folder. Only files below it can be opened through it.
///
/// The kernel resolves a path (`openat2(2)`), so a symbolic link may lead elsewhere within the folder but not out of
/// it, even if somebody changes it meanwhile. It belongs to no runtime; clones are the same folder, even after a
/// rename.
#[derive(Clone, Debug)]
pub struct Folder {
    descriptor: Arc<OwnedFd>,
}

impl Folder {
    /// Opens the folder. The thread waits for the disk.
    ///
    /// # Errors
    /// Those of `open(2)`; `Unsupported` where the kernel has no `openat2` or forbids it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = rustix::fs::open(path, flags, Mode::empty())?;
        match files::open_below(&descriptor, c".", READ_WITHOUT_WAITING, Mode::empty(), &Counters::default())
        {
            Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => {
                let reason =
                    "the kernel does not let this process use openat2, which keeps files below the folder";
                Err(io::Error::new(io::ErrorKind::Unsupported, reason))
            }
            outcome => Ok(outcome.map(|_| Self { descriptor: Arc::new(descriptor) })?),
        }
    }

    /// Opens a path below the folder for reading. Never waits for the other end of a pipe.
    ///
    /// # Errors
    /// Those of `openat2(2)`: EXDEV for a path that leads out of the folder; an error outside a runtime.
    pub async fn open_file(&self, path: &[u8]) -> io::Result<File> {
        let (below, path) = (Some(Arc::clone(&self.descriptor)), path_of(path)?);
        let request = Request::Open { below, path, flags: READ_WITHOUT_WAITING, mode: Mode::empty() };
        File::perform_open(executor::current()?, request).await
    }
}

/// A file that others may see can be a pipe or a terminal.
const READ_WITHOUT_WAITING: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

fn path_of(bytes: &[u8]) -> io::Result<CString> {
    CString::new(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a path has no zero byte in it"))
}

/// Whether a file can have these bytes. The kernel counts them in signed numbers, and some calls give the highest
/// offset another meaning.
fn check(offset: u64, length: u64) -> io::Result<()> {
    match offset.checked_add(length) {
        Some(end) if end <= i64::MAX as u64 => Ok(()),
        Some(_) | None => {
            let reason = format!("no file has {length} bytes at {offset}");
            Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
        }
    }
}

/// Waits for one operation.
struct FileFuture<'a> {
    core: &'a Rc<Core>,
    operation: FileOperation,
}

impl<'a> FileFuture<'a> {
    fn new(core: &'a Rc<Core>, request: Request) -> Self {
        Self { core, operation: FileOperation::New(request) }
    }
}

impl Future for FileFuture<'_> {
    type Output = FileResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<FileResult> {
        let this = &mut *self;
        poll_driver!(this.core, driver => driver.poll_file(&mut this.operation, context.waker()))
    }
}

impl Drop for FileFuture<'_> {
    fn drop(&mut self) {
        if let FileOperation::Waiting(..) | FileOperation::Begun(_) = self.operation {
            self.core.with_driver(|driver| driver.forget_file(&mut self.operation));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_kernel_can_count_is_a_part_of_a_file() {
        let end = i64::MAX as u64;
        for (offset, length) in [(0, 0), (0, end), (end, 0), (end - 5, 5)] {
            check(offset, length).unwrap_or_else(|error| panic!("{error}"));
        }
        for (offset, length) in [(0, end + 1), (end, 1), (u64::MAX, 1), (u64::MAX, u64::MAX)] {
            let error = check(offset, length).expect_err("no file is so long");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn options_become_the_flags_of_the_call() {
        let reading = OpenOptions::default();
        assert_eq!(reading.flags(), OFlags::RDONLY);
        let writing = OpenOptions { read: false, write: true, create: true, truncate: true, mode: 0o600 };
        assert_eq!(writing.flags(), OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC);
        assert_eq!(OpenOptions { write: true, ..reading }.flags(), OFlags::RDWR);
    }
}
