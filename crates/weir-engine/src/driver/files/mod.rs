//! File operations, the same for every driver: the requests as data, the waiters, and the calls.
//!
//! A file operation leaves the runtime's thread, for a kernel worker or one of our helpers, and cannot be called
//! back. So it is a value that owns everything it works on, unlike socket operations.
//!
//! Calls that cannot block are made at once on every driver: `metadata`, because the inode of an open file is in
//! memory (a network file system may ask its server), and [`try_now`] for bytes in the page cache.

use std::{
    any::Any,
    ffi::{CStr, CString},
    io::{self, IoSliceMut},
    os::fd::OwnedFd,
    rc::Rc,
    sync::Arc,
};

use rustix::{
    fs::{CWD, FallocateFlags, Mode, OFlags, ResolveFlags},
    io::{Errno, ReadWriteFlags},
};

use crate::{
    counters::Counters,
    file_bytes::FileBytes,
    pool::{Buffer, CLASS_BYTES, Pool},
};

mod operations;
mod sending;

pub(crate) use operations::{FileOperation, Operations, Step};
#[cfg(feature = "sim")]
pub(crate) use sending::read_part;
pub(crate) use sending::{
    SendOutcome, has_room, pass_front, send_part, send_part_without_waiting, send_share,
};

/// Most bytes read directly from the page cache, on the runtime's thread: the default for the bytes that one
/// connection may receive in a turn.
const TRIED_BYTES_MAX: usize = 1 << 20;

/// The largest buffer of a runtime's pool.
const POOLED_BYTES_MAX: usize = CLASS_BYTES[CLASS_BYTES.len() - 1] as usize;

/// How a path is resolved below a folder. Links in `/proc` could lead anywhere.
pub(crate) const RESOLVE_BELOW: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

/// How often a path resolution is tried when a concurrent rename disturbs it.
const RESOLVE_TRIES_MAX: usize = 4;

/// Final errors of a path: they do not depend on what is in memory.
const PATH_ERRORS: [Errno; 6] =
    [Errno::NOENT, Errno::NOTDIR, Errno::ACCESS, Errno::XDEV, Errno::LOOP, Errno::NAMETOOLONG];

/// The caller's value. It is dropped when the operation can change nothing any more, and not before: the thread that
/// performs the operation keeps it until the last call has returned.
pub(crate) type Held = Arc<dyn Any + Send + Sync>;

/// One operation.
#[derive(Debug)]
pub(crate) enum Request {
    Open {
        /// If set, nothing outside this folder is opened, whatever the path and its links say.
        below: Option<Arc<OwnedFd>>,
        path: CString,
        flags: OFlags,
        mode: Mode,
    },
    /// Reads until `length` bytes are read or the file ends.
    Read {
        file: Arc<OwnedFd>,
        offset: u64,
        length: usize,
    },
    /// Writes all bytes and returns their memory.
    Write {
        file: Arc<OwnedFd>,
        offset: u64,
        bytes: Vec<u8>,
        held: Option<Held>,
    },
    Sync {
        file: Arc<OwnedFd>,
        data_only: bool,
    },
    /// Reserves the first `length` bytes.
    Allocate {
        file: Arc<OwnedFd>,
        length: u64,
    },
    Rename {
        from: CString,
        to: CString,
        held: Held,
    },
}

/// The result of an operation; `B` is the type that holds a read's bytes.
#[derive(Debug)]
pub(crate) enum Outcome<B = FileBytes> {
    Opened(OwnedFd),
    Read(B),
    Written(Vec<u8>),
    /// The operation has no result.
    Done,
}

/// The result for the future.
pub(crate) type FileResult = io::Result<Outcome>;

impl From<Outcome<Vec<u8>>> for Outcome {
    fn from(outcome: Outcome<Vec<u8>>) -> Self {
        match outcome {
            Outcome::Opened(descriptor) => Outcome::Opened(descriptor),
            Outcome::Read(bytes) => Outcome::Read(bytes.into()),
            Outcome::Written(bytes) => Outcome::Written(bytes),
            Outcome::Done => Outcome::Done,
        }
    }
}

/// The memory of a read. Moving this value does not move the bytes.
#[derive(Debug)]
pub(crate) enum Storage {
    Pooled(Buffer),
    /// Longer than a buffer of the pool, or the pool has none left.
    Heap(Vec<u8>),
}

impl Storage {
    pub(crate) fn take(pool: &Rc<Pool>, length: usize) -> Self {
        let buffer = if length <= POOLED_BYTES_MAX { pool.take(pool.class_for(length)) } else { None };
        match buffer.filter(|buffer| buffer.capacity() as usize >= length) {
            Some(buffer) => Storage::Pooled(buffer),
            None => Storage::Heap(vec![0; length]),
        }
    }

    /// The whole memory: at least as long as requested.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        match self {
            Storage::Pooled(buffer) => buffer.as_mut_slice(),
            Storage::Heap(bytes) => bytes,
        }
    }

    /// The first `length` bytes, as a readable value.
    pub(crate) fn into_bytes(self, length: usize) -> FileBytes {
        match self {
            Storage::Pooled(buffer) => buffer.lease(length).into(),
            Storage::Heap(mut bytes) => {
                bytes.truncate(length);
                bytes.into()
            }
        }
    }
}

/// Performs an operation; blocks the thread until the disk has answered.
pub(crate) fn perform(request: Request, counters: &Counters) -> io::Result<Outcome<Vec<u8>>> {
    match request {
        Request::Open { below: None, path, flags, mode } => {
            let opened = again(counters, || rustix::fs::open(path.as_c_str(), flags | OFlags::CLOEXEC, mode));
            Ok(Outcome::Opened(opened?))
        }
        Request::Open { below: Some(folder), path, flags, mode } => {
            Ok(Outcome::Opened(open_below(&folder, &path, flags, mode, counters)?))
        }
        Request::Read { file, offset, length } => {
            let mut bytes = vec![0; length];
            let count = read(&file, offset, &mut bytes, ReadWriteFlags::empty(), counters)?;
            bytes.truncate(count);
            Ok(Outcome::Read(bytes))
        }
        Request::Write { file, offset, bytes, held: _held } => {
            let mut done = 0;
            while done < bytes.len() {
                match again(counters, || rustix::io::pwrite(&file, &bytes[done..], offset + done as u64))? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    count => done += count,
                }
            }
            Ok(Outcome::Written(bytes))
        }
        Request::Sync { file, data_only: true } => {
            again(counters, || rustix::fs::fdatasync(&file))?;
            Ok(Outcome::Done)
        }
        Request::Sync { file, data_only: false } => {
            again(counters, || rustix::fs::fsync(&file))?;
            Ok(Outcome::Done)
        }
        Request::Allocate { file, length } => {
            again(counters, || rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, length))?;
            Ok(Outcome::Done)
        }
        Request::Rename { from, to, held: _held } => {
            again(counters, || rustix::fs::rename(from.as_c_str(), to.as_c_str()))?;
            Ok(Outcome::Done)
        }
    }
}

/// As [`perform`], on the runtime's thread, where reads use a buffer of its pool.
pub(crate) fn perform_here(request: Request, pool: &Rc<Pool>, counters: &Counters) -> FileResult {
    if let Request::Read { file, offset, length } = request {
        let read = read_pooled(&file, offset, length, ReadWriteFlags::empty(), pool, counters);
        return read.map_err(io::Error::from);
    }
    perform(request, counters).map(Outcome::from)
}

/// Performs an operation if that cannot block. `None`: it might block, or it failed with an error that [`perform`]
/// has to confirm.
pub(crate) fn try_now(request: &Request, pool: &Rc<Pool>, counters: &Counters) -> Option<FileResult> {
    match request {
        Request::Open { below, path, flags, mode } => {
            let flags = *flags | OFlags::CLOEXEC;
            counters.file_calls.increment_shared();
            // Fails with EAGAIN if a part of the path is not in memory, and for files that are to be created.
            let outcome = match below {
                None => rustix::fs::openat2(CWD, path.as_c_str(), flags, *mode, ResolveFlags::CACHED),
                Some(folder) => {
                    let resolve = RESOLVE_BELOW | ResolveFlags::CACHED;
                    rustix::fs::openat2(folder, path.as_c_str(), flags, *mode, resolve)
                }
            };
            match outcome {
                Ok(descriptor) => Some(Ok(Outcome::Opened(descriptor))),
                Err(error) if PATH_ERRORS.contains(&error) => Some(Err(error.into())),
                Err(_) => None,
            }
        }
        Request::Read { file, offset, length } => {
            if *length > TRIED_BYTES_MAX {
                return None;
            }
            read_pooled(file, *offset, *length, ReadWriteFlags::NOWAIT, pool, counters).ok().map(Ok)
        }
        // Few file systems promise not to block a write, and none promise it for the others.
        Request::Write { .. } | Request::Sync { .. } | Request::Allocate { .. } | Request::Rename { .. } => {
            None
        }
    }
}

/// Opens a path below a folder; blocks the thread until the disk has answered.
pub(crate) fn open_below(
    folder: &OwnedFd,
    path: &CStr,
    flags: OFlags,
    mode: Mode,
    counters: &Counters,
) -> Result<OwnedFd, Errno> {
    let mut outcome = Err(Errno::AGAIN);
    for _ in 0..RESOLVE_TRIES_MAX {
        outcome = again(counters, || {
            rustix::fs::openat2(folder, path, flags | OFlags::CLOEXEC, mode, RESOLVE_BELOW)
        });
        if !matches!(outcome, Err(Errno::AGAIN)) {
            break;
        }
    }
    outcome
}

fn read_pooled(
    file: &OwnedFd,
    offset: u64,
    length: usize,
    flags: ReadWriteFlags,
    pool: &Rc<Pool>,
    counters: &Counters,
) -> Result<Outcome, Errno> {
    let mut storage = Storage::take(pool, length);
    let count = read(file, offset, &mut storage.as_mut_slice()[..length], flags, counters)?;
    Ok(Outcome::Read(storage.into_bytes(count)))
}

/// Reads until `into` is full or the file ends.
fn read(
    file: &OwnedFd,
    offset: u64,
    into: &mut [u8],
    flags: ReadWriteFlags,
    counters: &Counters,
) -> Result<usize, Errno> {
    let mut done = 0;
    while done < into.len() {
        let rest = &mut into[done..];
        let at = offset + done as u64;
        match again(counters, || rustix::io::preadv2(file, &mut [IoSliceMut::new(rest)], at, flags))? {
            0 => break,
            count => done += count,
        }
    }
    Ok(done)
}

/// Repeats a call that a signal interrupts; each try is counted.
fn again<T>(counters: &Counters, mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        counters.file_calls.increment_shared();
        match call() {
            Err(Errno::INTR) => {}
            outcome => return outcome,
        }
    }
}
