//! Engines: operations go to the kernel and come back, one file for each way.
//!
//! An engine belongs to one thread and to one file. It owns a buffer for each operation that can be in flight; the
//! buffer with number `slot` goes with the operation that names it, and cannot be touched until that operation is
//! complete. How the thread spends the time in between is not decided here: [`Engine::poll`] never sleeps,
//! [`Engine::wait`] sleeps until the interrupt, and who wants to sleep first and look later does so between the two.
//!
//! What goes wrong with one operation is that operation's result ([`Completed::result`]), never an error of the call.
//! A call fails only if the engine itself does not work any more. Dropping an engine waits for all that is in flight.
//!
//! | engine | hands over with | tells of completions by |
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

/// Most bytes of buffers one thread can have.
pub const BUFFERS_BYTES_MAX: u64 = 4 << 30;

/// One thread's way to one file. See the module's text for the rules.
pub trait Engine {
    /// The buffer of a slot that has no operation in flight.
    ///
    /// # Panics
    /// If the slot has an operation in flight or is not below the depth: a mistake of the caller.
    fn buffer(&mut self, slot: u32) -> &mut [u8];

    /// Hands operations over, in one system call where the engine has such a call. Returns how many it took, from the
    /// first on: fewer than all when the kernel has no room now (`EAGAIN`).
    fn submit(&mut self, operations: &[Operation]) -> io::Result<usize>;

    /// Adds what is complete, and never sleeps. It makes a system call only if completions cannot be seen without.
    fn poll(&mut self, completed: &mut Vec<Completed>) -> io::Result<()>;

    /// Adds what is complete; sleeps until that is at least one. Returns at once if nothing is in flight.
    ///
    /// An engine whose completions come in order may gather a few when many are in flight; never when it is one.
    fn wait(&mut self, completed: &mut Vec<Completed>) -> io::Result<()>;

    /// As [`Self::wait`], but sleeps no longer than the limit (an armed sleep): it may add nothing.
    fn wait_at_most(&mut self, limit: Duration, completed: &mut Vec<Completed>) -> io::Result<()>;

    /// [`Self::submit`] and [`Self::wait`] in one: in a single system call where the engine has such a call.
    ///
    /// The number it took is as for `submit`. If it took none and nothing is in flight it returns at once.
    fn submit_and_wait(
        &mut self,
        operations: &[Operation],
        completed: &mut Vec<Completed>,
    ) -> io::Result<usize> {
        let taken = self.submit(operations)?;
        self.wait(completed)?;
        Ok(taken)
    }

    /// Sleeps for the whole length inside the engine, whether or not something completes (an unarmed sleep). `None`:
    /// the engine has no such sleep, use another primitive.
    fn sleep_whole(&mut self, length: Duration) -> Option<io::Result<()>>;

    /// Whether operations go on while the thread does something else: only then is there a wait to choose.
    fn is_asynchronous(&self) -> bool {
        true
    }
}

/// Why an engine cannot be opened for a job. Each says what was asked and what would work.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The file cannot be opened.
    #[error("cannot open {path}: {source}")]
    Open {
        /// What was asked for.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// Not something that has blocks.
    #[error("{path} is {kind}; use a regular file or a block device")]
    NotBlocks {
        /// What was asked for.
        path: String,
        /// What it is.
        kind: &'static str,
    },
    /// `O_DIRECT` is refused.
    #[error(
        "{path}: the file system ({filesystem}) does not do O_DIRECT; use a file elsewhere or buffered I/O"
    )]
    NoDirect {
        /// What was asked for.
        path: String,
        /// Name of the file system.
        filesystem: String,
    },
    /// The part of the file that is asked for does not exist.
    #[error("{path}: bytes {from} to {to} are asked for, but it has {has}")]
    TooSmall {
        /// What was asked for.
        path: String,
        /// First byte.
        from: u64,
        /// First byte after.
        to: u64,
        /// Length of the file.
        has: u64,
    },
    /// Blocks do not lie as `O_DIRECT` needs them.
    #[error("{path}: {what} of {bytes} bytes is no multiple of {multiple}, which O_DIRECT needs here")]
    Misaligned {
        /// What was asked for.
        path: String,
        /// Which number.
        what: &'static str,
        /// Its value.
        bytes: u64,
        /// What it must be a multiple of.
        multiple: u32,
    },
    /// The job asks for what no engine does, or not this one.
    #[error("{0}")]
    Unsupported(String),
    /// The kernel or the device does not do this.
    #[error("{mode} does not work here: {reason}")]
    Refused {
        /// The engine or its mode.
        mode: String,
        /// Why.
        reason: String,
    },
}

/// Opens the file of a job and makes the engine of one of its threads, in that thread.
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

/// Whether a job writes.
pub fn writes(pattern: AccessPattern) -> bool {
    !matches!(pattern, AccessPattern::Read | AccessPattern::RandRead)
}

/// What the engines cannot do whatever the file is.
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

/// Options that belong to another engine, and those that exclude each other.
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
    /// Fewer bytes than asked for; at the end of the file that is none or a rest.
    #[error("{done} of {asked} bytes")]
    Short {
        /// Bytes it did.
        done: u32,
        /// Bytes it was asked to do.
        asked: u32,
    },
    /// The kernel's error number.
    #[error("{}", error_name(*.0))]
    System(i32),
}

impl OperationError {
    /// The name under which errors are counted: `EIO`, `ENOSPC`, `short`.
    pub fn name(self) -> Cow<'static, str> {
        match self {
            Self::Short { .. } => Cow::Borrowed("short"),
            Self::System(number) => error_name(number),
        }
    }
}

/// Whether an operation did all it was asked to do.
pub fn outcome(operation: &Operation, completed: Completed) -> Result<(), OperationError> {
    match u32::try_from(completed.result) {
        Err(_) => Err(OperationError::System(completed.result.saturating_neg())),
        Ok(_) if !operation.kind.transfers() => Ok(()),
        Ok(done) if done < operation.bytes => Err(OperationError::Short { done, asked: operation.bytes }),
        Ok(_) => Ok(()),
    }
}

/// Symbol of an error number that file operations give; others as `errno N`.
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
