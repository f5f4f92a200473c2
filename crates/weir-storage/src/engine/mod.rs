//! Engines submit operations to the kernel and collect completions; one file for each engine.
//!
//! An engine belongs to one thread and to one file. It owns a buffer for each operation that can be in flight; buffer
//! `slot` belongs to the operation that names it, and cannot be accessed until that operation is complete. The engine
//! does not decide how the thread spends the time in between: [`Engine::poll`] never sleeps, [`Engine::wait`] sleeps
//! until the interrupt, and a caller that wants to sleep first and poll later does so between the two.
//!
//! An operation's failure is its result ([`Completed::result`]), never an error of the call. A call fails only if the
//! engine itself no longer works. Dropping an engine waits for all operations in flight.
//!
//! | engine | submits with | reports completions by |
//! | --- | --- | --- |
//! | `pread` | `pread`, `pwrite` | returning |
//! | `pwritev` | `preadv2`, `pwritev2` | returning |
//! | `threads` | a queue to a bounded pool | a queue from it |
//! | `posixaio` | `aio_read`, `aio_write` | `aio_error` (memory), `aio_suspend` |
//! | `libaio` | `io_submit`; `fsync` returns | the mapped ring, `io_getevents` |
//! | `io_uring` | `io_uring_enter` | the mapped ring, `io_uring_enter` |

mod blocking;
mod libaio;
mod posix_aio;
mod threads;
mod uring;

pub mod probe;
pub mod target;

#[cfg(test)]
mod tests;

use std::{borrow::Cow, io, time::Duration};

pub(crate) use blocking::AlignedBuffer;
pub use weir_sys::blocks::{Completed, Operation, OperationKind};

use weir_record::storage::{AccessPattern, StorageEngine, StorageEngineOptions, StorageJob};
use weir_sys::blocks::Blocks;

/// Most operations one thread can have in flight.
pub const DEPTH_MAX: u32 = 4096;

/// Most bytes of buffers of one thread.
pub const BUFFERS_BYTES_MAX: u64 = 4 << 30;

/// One thread's access to one file. The module documentation has the rules.
pub trait Engine {
    /// The buffer of a slot that has no operation in flight.
    ///
    /// # Panics
    /// Panics if the slot has an operation in flight or is not below the depth, which is a bug in the caller.
    fn buffer(&mut self, slot: u32) -> &mut [u8];

    /// Submits operations, in one system call if the engine supports that. Returns how many were taken, from the
    /// first on: fewer than all when the kernel has no room now (`EAGAIN`).
    fn submit(&mut self, operations: &[Operation]) -> io::Result<usize>;

    /// Appends completed operations, and never sleeps. It makes a system call only if completions are not visible
    /// without one.
    fn poll(&mut self, completed: &mut Vec<Completed>) -> io::Result<()>;

    /// Appends completed operations; sleeps until there is at least one. Returns at once if nothing is in flight.
    ///
    /// An engine that completes in order may gather several when many are in flight; never when there is only one.
    fn wait(&mut self, completed: &mut Vec<Completed>) -> io::Result<()>;

    /// Like [`Self::wait`], but sleeps no longer than the limit (an armed sleep), so it may append nothing.
    fn wait_at_most(&mut self, limit: Duration, completed: &mut Vec<Completed>) -> io::Result<()>;

    /// [`Self::submit`] and [`Self::wait`] in one: in a single system call if the engine supports that.
    ///
    /// Returns the number taken, like `submit`. If none was taken and nothing is in flight it returns at once.
    fn submit_and_wait(
        &mut self,
        operations: &[Operation],
        completed: &mut Vec<Completed>,
    ) -> io::Result<usize> {
        let taken = self.submit(operations)?;
        self.wait(completed)?;
        Ok(taken)
    }

    /// Sleeps for the whole length inside the engine, whatever completes (an unarmed sleep). `None` if the engine has
    /// no such sleep: use another primitive.
    fn sleep_whole(&mut self, length: Duration) -> Option<io::Result<()>>;

    /// Whether operations continue while the thread does something else: only then is there a choice of how to wait.
    fn is_asynchronous(&self) -> bool {
        true
    }
}

/// Why an engine cannot be opened for a job. Each error names the request and what would work.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The file cannot be opened.
    #[error("cannot open {path}: {source}")]
    Open {
        /// The requested path.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// Neither a regular file nor a block device.
    #[error("{path} is {kind}; use a regular file or a block device")]
    NotBlocks {
        /// The requested path.
        path: String,
        /// Its type.
        kind: &'static str,
    },
    /// `O_DIRECT` is refused.
    #[error(
        "{path}: the file system ({filesystem}) does not do O_DIRECT; use a file elsewhere or buffered I/O"
    )]
    NoDirect {
        /// The requested path.
        path: String,
        /// Name of the file system.
        filesystem: String,
    },
    /// The requested part of the file does not exist.
    #[error("{path}: bytes {from} to {to} are asked for, but it has {has}")]
    TooSmall {
        /// The requested path.
        path: String,
        /// First byte.
        from: u64,
        /// First byte after.
        to: u64,
        /// Length of the file.
        has: u64,
    },
    /// Blocks lack the alignment that `O_DIRECT` needs.
    #[error("{path}: {what} of {bytes} bytes is no multiple of {multiple}, which O_DIRECT needs here")]
    Misaligned {
        /// The requested path.
        path: String,
        /// The misaligned number.
        what: &'static str,
        /// Its value.
        bytes: u64,
        /// What it must be a multiple of.
        multiple: u32,
    },
    /// The job needs a feature that no engine has, or not this one.
    #[error("{0}")]
    Unsupported(String),
    /// The kernel or the device lacks support.
    #[error("{mode} does not work here: {reason}")]
    Refused {
        /// The engine or its mode.
        mode: String,
        /// Why.
        reason: String,
    },
}

/// Opens the file of a job and creates the engine of one of its threads; call it in that thread.
pub fn open(job: &StorageJob, thread: u32) -> Result<Box<dyn Engine>, EngineError> {
    check(job)?;
    let file = target::open(job)?;
    let (depth, block_bytes) = (job.depth, job.block_bytes);
    let refused = |source: io::Error| EngineError::Refused {
        mode: job.engine.to_string(),
        reason: probe::explain(job.engine, &source),
    };
    Ok(match job.engine {
        StorageEngine::Pread => Box::new(blocking::Pread::new(file, block_bytes)),
        StorageEngine::Pwritev => {
            Box::new(blocking::Pwritev::new(file, block_bytes, job.options.high_priority))
        }
        StorageEngine::Threads => {
            Box::new(threads::Threads::new(file, depth, block_bytes, thread).map_err(refused)?)
        }
        StorageEngine::Posixaio => {
            Box::new(posix_aio::PosixAio::new(file, depth, block_bytes).map_err(refused)?)
        }
        StorageEngine::Libaio => Box::new(libaio::Libaio::new(file, depth, block_bytes).map_err(refused)?),
        StorageEngine::IoUring => Box::new(uring::Uring::new(file, job)?),
    })
}

/// The buffer of an idle slot, for [`Engine::buffer`].
fn idle_buffer(blocks: &mut Blocks, slot: u32) -> &mut [u8] {
    blocks.idle(slot).unwrap_or_else(|| panic!("slot {slot} is not idle"))
}

/// Whether a pattern writes.
pub fn writes(pattern: AccessPattern) -> bool {
    !matches!(pattern, AccessPattern::Read | AccessPattern::RandRead)
}

/// Refuses what the engines cannot do with any file.
fn check(job: &StorageJob) -> Result<(), EngineError> {
    let refuse = |message: String| Err(EngineError::Unsupported(message));
    if job.block_bytes == 0 {
        return refuse("the block size is 0".to_owned());
    }
    if job.depth == 0 || job.depth > DEPTH_MAX {
        return refuse(format!("a depth of {} is out of range; use 1 to {DEPTH_MAX}", job.depth));
    }
    let buffers_bytes = u64::from(job.depth) * u64::from(job.block_bytes);
    if buffers_bytes > BUFFERS_BYTES_MAX {
        return refuse(format!(
            "a depth of {} with blocks of {} bytes needs {buffers_bytes} bytes of buffers in each thread; at most \
             {BUFFERS_BYTES_MAX} are allowed",
            job.depth, job.block_bytes
        ));
    }
    if !job.engine.is_asynchronous() && job.depth > 1 {
        return refuse(format!(
            "{} does one operation at a time, so its depth is 1 and not {}; for more use the engine threads, or more \
             threads of the job",
            job.engine, job.depth
        ));
    }
    if job.engine == StorageEngine::Threads && job.depth > threads::WORKERS_MAX {
        return refuse(format!(
            "the engine threads has a thread for each operation in flight, at most {}, and not {}",
            threads::WORKERS_MAX,
            job.depth
        ));
    }
    check_options(job)
}

/// Refuses options of another engine, and options that exclude each other.
fn check_options(job: &StorageJob) -> Result<(), EngineError> {
    let refuse = |message: String| Err(EngineError::Unsupported(message));
    let options = &job.options;
    if options.high_priority && job.engine != StorageEngine::Pwritev {
        return refuse(format!("RWF_HIPRI is an option of pwritev, not of {}", job.engine));
    }
    let of_the_ring = StorageEngineOptions { high_priority: false, ..*options };
    if job.engine != StorageEngine::IoUring && of_the_ring != StorageEngineOptions::default() {
        return refuse(format!(
            "sqpoll, iopoll, hybrid_iopoll, fixed buffers and files, and ring modes are options of io_uring, not of {}",
            job.engine
        ));
    }
    let polled = options.iopoll || options.hybrid_iopoll;
    if polled && !job.direct {
        return refuse("polled completion needs direct I/O: the page cache has no queue to poll".to_owned());
    }
    if polled && (job.fsync_every > 0 || job.fdatasync_every > 0) {
        return refuse("a ring with polled completion cannot fsync; leave one of the two out".to_owned());
    }
    Ok(())
}

/// What is wrong with a completed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperationError {
    /// Fewer bytes than requested; at the end of the file there are none or a remainder.
    #[error("{done} of {asked} bytes")]
    Short {
        /// Bytes transferred.
        done: u32,
        /// Bytes requested.
        asked: u32,
    },
    /// The kernel's error number.
    #[error("{}", error_name(*.0))]
    System(i32),
}

impl OperationError {
    /// The name under which the error is counted: `EIO`, `ENOSPC`, `short`.
    pub fn name(self) -> Cow<'static, str> {
        match self {
            Self::Short { .. } => Cow::Borrowed("short"),
            Self::System(number) => error_name(number),
        }
    }
}

/// Whether an operation transferred everything.
pub fn outcome(operation: &Operation, completed: Completed) -> Result<(), OperationError> {
    match u32::try_from(completed.result) {
        Err(_) => Err(OperationError::System(completed.result.saturating_neg())),
        Ok(_) if !operation.kind.transfers() => Ok(()),
        Ok(done) if done < operation.bytes => Err(OperationError::Short { done, asked: operation.bytes }),
        Ok(_) => Ok(()),
    }
}

/// Symbol of an error number of file operations; others as `errno N`.
pub fn error_name(number: i32) -> Cow<'static, str> {
    use rustix::io::Errno;
    let known = [
        (Errno::IO, "EIO"),
        (Errno::NOSPC, "ENOSPC"),
        (Errno::AGAIN, "EAGAIN"),
        (Errno::INTR, "EINTR"),
        (Errno::INVAL, "EINVAL"),
        (Errno::BADF, "EBADF"),
        (Errno::FAULT, "EFAULT"),
        (Errno::FBIG, "EFBIG"),
        (Errno::DQUOT, "EDQUOT"),
        (Errno::ROFS, "EROFS"),
        (Errno::PERM, "EPERM"),
        (Errno::ACCESS, "EACCES"),
        (Errno::NXIO, "ENXIO"),
        (Errno::NODEV, "ENODEV"),
        (Errno::NOMEM, "ENOMEM"),
        (Errno::OPNOTSUPP, "EOPNOTSUPP"),
        (Errno::NOSYS, "ENOSYS"),
        (Errno::CANCELED, "ECANCELED"),
        (Errno::TIMEDOUT, "ETIMEDOUT"),
        (Errno::STALE, "ESTALE"),
        (Errno::REMOTEIO, "EREMOTEIO"),
        (Errno::NODATA, "ENODATA"),
        (Errno::BUSY, "EBUSY"),
        (Errno::MFILE, "EMFILE"),
    ];
    let found = known.iter().find(|(errno, _)| errno.raw_os_error() == number);
    found.map_or_else(|| Cow::Owned(format!("errno {number}")), |(_, name)| Cow::Borrowed(*name))
}
