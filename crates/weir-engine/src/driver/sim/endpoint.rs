//! The driver's side of a simulated socket: who waits for it, and what it still has to send.

use std::task::Waker;

use rustix::io::Errno;

use super::network::End;
use crate::{
    driver::{output::Output, socket::StoredError},
    pool::SizeChoice,
    slots::SlotId,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Listener(SlotId),
    Connecting(End),
    Stream(End),
}

/// Where a socket stands in the queue for receive buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Turn {
    /// Not in it.
    #[default]
    None,
    /// In it.
    Waiting,
    /// Its turn has come: it may take a buffer although others wait.
    Granted,
}

#[derive(Debug)]
pub(super) struct Socket {
    pub(super) kind: Kind,
    pub(super) writable: bool,
    pub(super) end_of_stream: bool,
    pub(super) error: Option<StoredError>,
    pub(super) receive_waiter: Option<Waker>,
    pub(super) output: Output,
    pub(super) closing: bool,
    /// The handle is gone and our end is sent: what still arrives is thrown away until the peer ends too.
    pub(super) discarding: bool,
    pub(super) buffer_turn: Turn,
    pub(super) size: SizeChoice,
    pub(super) turn: u64,
    pub(super) turn_bytes: usize,
}

impl Socket {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            writable: matches!(kind, Kind::Stream(_)),
            end_of_stream: false,
            error: None,
            receive_waiter: None,
            output: Output::default(),
            closing: false,
            discarding: false,
            buffer_turn: Turn::default(),
            size: SizeChoice::default(),
            turn: 0,
            turn_bytes: 0,
        }
    }

    /// The end of a connection that stands.
    pub(super) fn stream(&self) -> Option<End> {
        match self.kind {
            Kind::Stream(end) => Some(end),
            Kind::Connecting(_) | Kind::Listener(_) => None,
        }
    }

    pub(super) fn fail(&mut self, error: Errno) {
        self.error.get_or_insert(StoredError(error));
        self.output.queue.clear();
        self.wake_receiver();
        self.output.wake();
    }

    pub(super) fn wake_receiver(&mut self) {
        if let Some(waker) = self.receive_waiter.take() {
            waker.wake();
        }
    }

    /// What its waiters wait for, in words; empty when nobody waits.
    pub(super) fn waits(&self) -> Vec<&'static str> {
        let receiving = self.receive_waiter.is_some().then_some(match (self.kind, self.buffer_turn) {
            (Kind::Listener(_), _) => "accept",
            (_, Turn::Waiting) => "a receive buffer",
            (_, Turn::None | Turn::Granted) => "receive",
        });
        let sending = self.output.waiter.is_some().then_some(match self.kind {
            Kind::Connecting(_) => "connect",
            Kind::Listener(_) | Kind::Stream(_) => "room to send",
        });
        receiving.into_iter().chain(sending).collect()
    }
}
