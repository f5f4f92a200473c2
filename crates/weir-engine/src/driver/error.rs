//! Errors of socket operations, and the reactions to a failed accept or send, the same for every driver.

use std::{io, time::Duration};

use rustix::io::Errno;
use weir_engine_types::kernel::{FEATURES, KernelFeature, KernelVersion};

use crate::counters::Counters;

/// The error of a connection whose file ends before the requested length: the rest that was promised to the peer does
/// not exist, and nothing else may be sent instead. No socket call fails with this number.
pub(crate) const FILE_ENDED: Errno = Errno::NODATA;

/// Pause before accepting is tried again after descriptors ran out.
pub(super) const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Pause before a send is tried again after the kernel had no memory for it. It is the same on every driver: with a
/// longer pause a driver would look slower, with a shorter one busier. The kernel has already tried to find memory
/// itself, so an immediate retry would fail too; a blocking TCP send waits two ticks to 200 ms for memory.
pub(super) const SEND_RETRY: Duration = Duration::from_millis(10);

/// The reaction to a failed accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AcceptFailure {
    /// No connection is waiting.
    Empty,
    /// That one connection was lost, or a signal interrupted the call: try again at once.
    Again,
    /// Descriptors or memory ran out: wait until there are some again.
    Starved,
    /// An error that is neither known to concern one connection nor known to be transient: the caller of accept
    /// decides.
    Unforeseen,
}

/// Classifies the errors of `accept(2)`; pending network errors of the new socket count as `Again`, as the manual
/// says.
pub(crate) fn accept_failure(error: Errno) -> AcceptFailure {
    match error {
        Errno::AGAIN => AcceptFailure::Empty,
        Errno::INTR
        | Errno::CONNABORTED
        | Errno::NETDOWN
        | Errno::PROTO
        | Errno::NOPROTOOPT
        | Errno::HOSTDOWN
        | Errno::NONET
        | Errno::HOSTUNREACH
        | Errno::OPNOTSUPP
        | Errno::NETUNREACH
        | Errno::NOSR
        | Errno::SOCKTNOSUPPORT
        | Errno::PROTONOSUPPORT
        | Errno::TIMEDOUT
        | Errno::PERM => AcceptFailure::Again,
        Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM => AcceptFailure::Starved,
        _ => AcceptFailure::Unforeseen,
    }
}

/// The reaction to a failed send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendFailure {
    /// A signal interrupted it: try again at once.
    Again,
    /// The socket has no room.
    Full,
    /// The kernel has no memory for it: try again after a pause.
    NoMemory,
    /// The connection has failed.
    Fatal(Errno),
}

/// Classifies the errors of a send.
#[inline]
pub(crate) fn send_failure(error: Errno) -> SendFailure {
    match error {
        Errno::INTR => SendFailure::Again,
        Errno::AGAIN => SendFailure::Full,
        Errno::NOBUFS | Errno::NOMEM => SendFailure::NoMemory,
        // Only the driver cancels, and only on a connection that it ends.
        Errno::CANCELED => SendFailure::Fatal(Errno::CONNABORTED),
        error => SendFailure::Fatal(error),
    }
}

/// An option needs a feature that this kernel lacks or that is masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the option {option} needs {what}, which this kernel lacks; it came with {since}")]
pub struct MissingFeature {
    /// The option.
    pub option: &'static str,
    /// The feature it needs, in the kernel's words.
    pub what: &'static str,
    /// The kernel version that introduced it.
    pub since: KernelVersion,
}

/// The refusal to start without a feature that an option needs.
pub(crate) fn missing(feature: KernelFeature, what: &'static str) -> io::Error {
    let row = FEATURES.iter().find(|row| row.feature == feature);
    let asked = row.and_then(|row| row.option.map(|option| (option, row.since)));
    asked.map_or_else(
        || io::ErrorKind::Unsupported.into(),
        |(option, since)| io::Error::other(MissingFeature { option, what, since }),
    )
}

/// A stale name: its socket is gone.
pub(crate) fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the socket is closed")
}

/// The runtime is at its socket limit.
pub(crate) fn too_many(limit: usize) -> io::Error {
    let reason = format!("the runtime's limit of {limit} sockets is reached");
    io::Error::new(io::ErrorKind::QuotaExceeded, reason)
}

/// Counts an accepted connection that is closed because there is no room for it. The accept goes on: such a connection
/// is no error of its listener.
pub(crate) fn count_refused(counters: &Counters) {
    counters.accepts_refused.increment();
    counters.closes.increment();
}

/// Accepting has ended because the runtime drains.
pub(crate) fn draining() -> io::Error {
    io::Error::new(
        io::ErrorKind::ConnectionAborted,
        "the runtime is draining: it accepts no more connections",
    )
}

/// An error that every later operation of a connection returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredError(pub(crate) Errno);

impl From<StoredError> for io::Error {
    fn from(error: StoredError) -> Self {
        if error.0 == FILE_ENDED {
            let reason = "a file that was being sent ended before the length that was asked for";
            return io::Error::new(io::ErrorKind::UnexpectedEof, reason);
        }
        error.0.into()
    }
}
