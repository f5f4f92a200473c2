//! What becomes of a connection that was accepted, and of a listener that may not accept now.

use std::{io, task::Waker};

use super::{Backend, Kernel, Kind, Readiness};
use crate::{driver::error, slab::SlotId};

impl<B: Backend<K>, K: Kernel> Readiness<B, K> {
    /// Takes an accepted connection in, or closes it because there is no room.
    pub(super) fn admit(&mut self, descriptor: K::Socket) -> io::Result<SlotId> {
        self.parts.counters.accepts.increment();
        self.reserve.note(self.kernel.number(&descriptor));
        let admitted = self.backend.check(&descriptor);
        let admitted = admitted.and_then(|()| self.insert(descriptor, Kind::Stream));
        admitted.map_err(|error| error::refuse(&self.parts.counters, error))
    }

    /// Descriptors or memory are short: accepting goes on when something is free, or after a while.
    pub(super) fn starve(&mut self, listener: SlotId, waker: &Waker) {
        self.parts.counters.accepts_starved.increment();
        if let Some(socket) = self.sockets.get_mut(listener) {
            socket.wait_to_receive(waker);
        }
        if !self.starved_listeners.contains(&listener) {
            self.starved_listeners.push(listener);
        }
        self.retry_after(error::ACCEPT_RETRY);
        // What waits would be reported all the time; an exclusive watch cannot be changed, only ended.
        self.pause_reading(listener, true);
    }
}
