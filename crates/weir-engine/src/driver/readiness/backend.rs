//! The interface of a readiness call: keep interest, wait, and name ready sockets.

use std::{io, os::fd::OwnedFd, time::Duration};

use super::syscalls::Kernel;
use crate::call_clock::CallClock;

/// The directions a socket is watched for.
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
    /// The peer has ended its direction or sent urgent data, or the socket has failed: a short read does not mean
    /// drained. A receive stops before the urgent byte, whatever follows it.
    pub(crate) ended: bool,
}

/// One readiness call, on the sockets of one kernel.
pub(crate) trait Backend<K: Kernel> {
    /// An event is reported once for each arrival, for both directions; interest is never changed.
    fn is_edge_triggered(&self) -> bool;

    /// A short read means that no bytes are left.
    fn trusts_short_reads(&self) -> bool {
        true
    }

    /// Accepted sockets stay blocking, and a write returns when the kernel has taken all of it.
    fn blocks_on_writes(&self) -> bool {
        false
    }

    /// The kernel keeps the interest list:
    fn enters_for_interest(&self) -> bool {
        false
    }

    /// Whether it can watch this socket.
    fn check(&self, _socket: &K::Socket) -> io::Result<()> {
        Ok(())
    }

    /// Starts watching the descriptor through which other threads wake the runtime; it is a real descriptor on every
    /// backend.
    fn watch_wake_up(&mut self, wake: &OwnedFd, token: u64) -> io::Result<()>;

    /// Starts watching. Edge-triggered backends ignore `interest` and watch both directions.
    fn add(&mut self, socket: &K::Socket, token: u64, interest: Interest, exclusive: bool) -> io::Result<()>;

    /// Changes the interest (level-triggered backends only).
    fn change(&mut self, socket: &K::Socket, token: u64, interest: Interest) -> io::Result<()>;

    /// Stops watching; called before the descriptor is closed.
    fn remove(&mut self, socket: &K::Socket);

    /// Waits and appends the ready sockets; `clock` times the kernel call.
    fn wait(&mut self, limit: Option<Duration>, ready: &mut Vec<Ready>, clock: &CallClock) -> io::Result<()>;
}
