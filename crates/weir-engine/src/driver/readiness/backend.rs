//! What a readiness call must be able to do: keep interest, wait, and name what is ready.

use std::{io, os::fd::OwnedFd, time::Duration};

use super::syscalls::Kernel;
use crate::call_clock::CallClock;

/// Which directions a socket is watched for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interest {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ready {
    pub(crate) token: u64,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The peer has ended its direction, or the socket has failed: a short read does not mean drained.
    pub(crate) ended: bool,
}

/// One readiness call, on the sockets of one kernel.
pub(crate) trait Backend<K: Kernel> {
    /// An event is reported once for each arrival, for both directions; interest is never changed.
    fn is_edge_triggered(&self) -> bool;

    /// A short read means that nothing is left.
    fn trusts_short_reads(&self) -> bool {
        true
    }

    /// Accepted sockets stay blocking, and a write returns when the kernel has taken all of it.
    fn blocks_on_writes(&self) -> bool {
        false
    }

    /// The kernel keeps what is watched: each change is a call.
    fn enters_for_interest(&self) -> bool {
        false
    }

    /// Whether it can watch this socket at all.
    fn check(&self, _socket: &K::Socket) -> io::Result<()> {
        Ok(())
    }

    /// Starts watching the descriptor through which other threads wake the runtime; it is a real one everywhere.
    fn watch_wake_up(&mut self, wake: &OwnedFd, token: u64) -> io::Result<()>;

    /// Starts watching. Edge-triggered backends watch both directions whatever `interest` says.
    fn add(&mut self, socket: &K::Socket, token: u64, interest: Interest, exclusive: bool) -> io::Result<()>;

    /// Changes the interest (level-triggered backends only).
    fn change(&mut self, socket: &K::Socket, token: u64, interest: Interest) -> io::Result<()>;

    /// Stops watching; called before the descriptor is closed.
    fn remove(&mut self, socket: &K::Socket);

    /// Waits and appends what is ready; the kernel's call is timed by `clock`.
    fn wait(&mut self, limit: Option<Duration>, ready: &mut Vec<Ready>, clock: &CallClock) -> io::Result<()>;
}
