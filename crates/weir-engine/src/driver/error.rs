//! What operations on sockets fail with, and what a failed accept is followed by, the same for every driver.

use std::{io, time::Duration};

use rustix::io::Errno;
use weir_engine_types::kernel::{FEATURES, KernelFeature, KernelVersion};

use crate::counters::Counters;

/// What a connection fails with when a file ends before the length that was asked for: what is left of a promise to
/// the peer cannot be kept, and nothing else may be sent instead. No call on a socket fails with this number.
pub(crate) const FILE_ENDED: Errno = Errno::NODATA;

/// Accepting is tried again this long after descriptors ran out.
pub(super) const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// A send is tried again this long after the kernel had no memory for it, on every driver: who waits longer must not
/// look slower, nor who tries more often busier. By then the kernel has looked for memory itself, so what fails now
/// fails a moment later too; a TCP send that blocks waits two ticks to 200 ms for it.
pub(super) const SEND_RETRY: Duration = Duration::from_millis(10);

/// What to do after a failed accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AcceptFailure {
    /// Nothing is waiting.
    Empty,
    /// That one connection was lost, or a signal came: try again at once.
    Again,
    /// Descriptors or memory ran out: wait until some are free.
    Starved,
    /// Nothing that is known of single connections, or passes for certain: whoever accepts decides.
    Unforeseen,
}

/// Sorts the errors of `accept(2)`; pending network errors of the new socket count as `Again`, as the manual asks.
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

/// An option needs what this kernel lacks, or is to be used as if it lacked it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the option {option} needs {what}, which this kernel lacks; it came with {since}")]
pub struct MissingFeature {
    /// Option.
    pub option: &'static str,
    /// What it needs, in the kernel's words.
    pub what: &'static str,
    /// The version that brought it.
    pub since: KernelVersion,
}

/// The refusal to start without a feature that an option asks for.
pub(crate) fn missing(feature: KernelFeature, what: &'static str) -> io::Error {
    let row = FEATURES.iter().find(|row| row.feature == feature);
    let asked = row.and_then(|row| row.option.map(|option| (option, row.since)));
    asked.map_or_else(
        || io::ErrorKind::Unsupported.into(),
        |(option, since)| io::Error::other(MissingFeature { option, what, since }),
    )
}

/// A stale name: the socket it meant is gone.
pub(crate) fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the socket is closed")
}

/// The runtime has as many sockets as its limit allows.
pub(crate) fn too_many(limit: usize) -> io::Error {
    let reason = format!("the runtime's limit of {limit} sockets is reached");
    io::Error::new(io::ErrorKind::QuotaExceeded, reason)
}

/// An accepted connection for which there is no room is closed.
pub(crate) fn refuse(counters: &Counters, error: io::Error) -> io::Error {
    counters.accepts_refused.increment();
    counters.closes.increment();
    io::Error::new(io::ErrorKind::QuotaExceeded, error)
}

/// Accepting has ended because the runtime drains.
pub(crate) fn draining() -> io::Error {
    io::Error::new(
        io::ErrorKind::ConnectionAborted,
        "the runtime is draining: it accepts no more connections",
    )
}

/// An error that can be given to every later operation of a connection.
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
