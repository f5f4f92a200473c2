//! The driver's side of one socket: its kind, its known readiness, its waiters, its output.

use std::task::Waker;

use rustix::io::Errno;

use super::{Interest, Kernel};
use crate::{
    driver::{contract::DriverParts, error::StoredError, send_state::SendState, socket},
    pool::SizeChoice,
    wakers::Departed,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Listener { exclusive: bool },
    Connecting,
    Stream,
}

/// The state of a socket in the queue for receive buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BufferTurn {
    /// Not in it.
    None,
    /// In it.
    Waiting,
    /// Its turn has come: it may take a buffer although other sockets wait.
    Granted,
}

#[derive(Debug)]
pub(super) struct Socket<D> {
    pub(super) descriptor: D,
    pub(super) kind: Kind,
    /// Registered with the backend.
    pub(super) watched: bool,
    pub(super) interest: Interest,
    pub(super) readable: bool,
    pub(super) writable: bool,
    /// The peer's end or an error was reported: keep reading until the kernel shows it.
    pub(super) ended: bool,
    pub(super) end_of_stream: bool,
    pub(super) error: Option<StoredError>,
    /// A send failed, and bytes that had arrived may still be there: they are received before the error shows.
    pub(super) has_rest: bool,
    pub(super) receive_waiter: Option<Waker>,
    pub(super) send: SendState,
    pub(super) closing: bool,
    /// The handle is gone and our end is sent: input is discarded until the peer ends too, or has received
    /// everything.
    pub(super) discarding: bool,
    pub(super) size: SizeChoice,
    pub(super) buffer_turn: BufferTurn,
    /// Bytes received, or connections accepted, in this turn.
    pub(super) turn: u64,
    pub(super) turn_bytes: usize,
    /// Bytes sent in that turn.
    pub(super) send_turn: u64,
    pub(super) send_turn_bytes: usize,
}

impl<D> Socket<D> {
    pub(super) fn new(descriptor: D, kind: Kind) -> Self {
        Self {
            descriptor,
            kind,
            watched: false,
            interest: Interest::default(),
            readable: kind != Kind::Connecting,
            writable: kind != Kind::Connecting,
            ended: false,
            end_of_stream: false,
            error: None,
            has_rest: false,
            receive_waiter: None,
            send: SendState::default(),
            closing: false,
            discarding: false,
            size: SizeChoice::default(),
            buffer_turn: BufferTurn::None,
            turn: 0,
            turn_bytes: 0,
            send_turn: 0,
            send_turn_bytes: 0,
        }
    }

    pub(super) fn fail(&mut self, error: Errno, kernel: &impl Kernel<Socket = D>, parts: &DriverParts) {
        if self.error.is_none() {
            self.error = Some(StoredError(error));
            self.has_rest = socket::is_over(error) && !self.end_of_stream;
            // The rest can be read without another event.
            self.readable |= self.has_rest;
        }
        if !self.send.queue.is_empty() {
            kernel.reset_on_close(&self.descriptor, &parts.counters);
            self.send.queue.clear();
        }
        self.wake_receiver(&parts.departed);
        self.send.wake(&parts.departed);
    }

    pub(super) fn wake_receiver(&mut self, departed: &Departed) {
        departed.wake(self.receive_waiter.take());
    }

    /// Drops all waiters.
    pub(super) fn forget_waiters(&mut self, departed: &Departed) {
        departed.let_go(self.receive_waiter.take());
        departed.let_go(self.send.waiter.take());
    }
}
