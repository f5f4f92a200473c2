//! The driver's side of one socket: its kind, its known readiness, its waiters, its output.

use std::task::Waker;

use rustix::io::Errno;

use super::{Interest, Kernel};
use crate::{
    counters::Counters,
    driver::{connection::Connection, contract::DriverParts, send_state::SendState},
    pool::SizeChoice,
    wakers::Departed,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Listener { exclusive: bool },
    Connecting,
    Stream,
}

#[derive(Debug)]
pub(super) struct Socket<D> {
    pub(super) descriptor: D,
    pub(super) kind: Kind,
    /// Registered with the backend.
    pub(super) watched: bool,
    pub(super) interest: Interest,
    /// The peer's end, urgent data or an error was reported: keep reading until the kernel has nothing more.
    pub(super) ended: bool,
    pub(super) connection: Connection,
    pub(super) receive_waiter: Option<Waker>,
    pub(super) send: SendState,
    pub(super) size: SizeChoice,
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
            ended: false,
            connection: if kind == Kind::Connecting { Connection::connecting() } else { Connection::new() },
            receive_waiter: None,
            send: SendState::default(),
            size: SizeChoice::default(),
            turn: 0,
            turn_bytes: 0,
            send_turn: 0,
            send_turn_bytes: 0,
        }
    }

    pub(super) fn fail(&mut self, error: Errno, kernel: &impl Kernel<Socket = D>, parts: &DriverParts) {
        self.connection.fail(error);
        self.lose_output(kernel, &parts.counters);
        self.wake_receiver(&parts.departed);
        self.send.wake(&parts.departed);
    }

    /// Gives up what is queued. If that is anything, the next close is a reset.
    pub(super) fn lose_output(&mut self, kernel: &impl Kernel<Socket = D>, counters: &Counters) {
        if !self.send.queue.is_empty() {
            kernel.reset_on_close(&self.descriptor, counters);
            self.send.queue.clear();
        }
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
