//! What follows from the calls of an observed process, each with the figures that it rests on. No entry has a factor:
//! what another I/O model would bring does not follow from counts.

use serde::{Deserialize, Serialize};

/// Bytes of a call that small ones are gathered into, where [`Advice::Coalesce`] says how many calls are left.
pub const GATHERED_BYTES: u64 = 4096;
/// Operations of a call, where [`Advice::OneASubmission`] says how many calls are left.
pub const BATCHED_OPERATIONS: u64 = 16;

/// Something that follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "code")]
pub enum Advice {
    /// Threads slept in calls of this kind, for a noticeable part of the window.
    Slept {
        /// Its name.
        call: String,
        /// What such a call waits for.
        waits_for: WaitsFor,
        /// Calls that returned.
        calls: u64,
        /// How long all threads together slept in them.
        slept_ns: u64,
    },
    /// Calls of this kind move few bytes each, and cost a noticeable part of the CPU.
    Coalesce {
        /// Its name.
        call: String,
        /// Calls that moved something.
        calls: u64,
        /// What they moved.
        bytes: u64,
        /// Calls that move as much in pieces of [`GATHERED_BYTES`].
        calls_gathered: u64,
    },
    /// Calls of this kind hand over hardly more than one operation each.
    OneASubmission {
        /// Its name.
        call: String,
        /// Calls that returned.
        calls: u64,
        /// Operations that they handed over.
        operations: u64,
        /// Calls that hand over as many, [`BATCHED_OPERATIONS`] at once.
        calls_batched: u64,
    },
    /// The same files were opened again and again, for a noticeable part of the CPU.
    KeepOpen {
        /// Names that were opened more than once.
        files: u64,
        /// How often.
        opens: u64,
        /// The one that was opened most often,
        path: String,
        /// and how often.
        path_opens: u64,
    },
    /// Most operations of its rings went to worker threads of the kernel (io-wq).
    ToWorkers {
        /// Operations that were submitted.
        submitted: u64,
        /// Those given to a worker.
        to_workers: u64,
    },
}

/// What a call that sleeps waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitsFor {
    /// Changes to be on the disk: fsync.
    Durability,
    /// A place of a file that is named with the call: pread64.
    File,
    /// A file, or the other end of a pipe, a socket or a terminal: read.
    FileOrPeer,
    /// A peer: recvfrom, accept.
    Peer,
    /// That something is ready: epoll_wait.
    Readiness,
    /// Its own operations that are in flight: io_uring_enter.
    Operations,
    /// Time to pass: nanosleep.
    Time,
    /// Its own threads or children: futex, wait4.
    Own,
    /// Something else.
    Other,
}
