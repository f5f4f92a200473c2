//! The end of a socket: its queue is sent for a limited time, in a drain our end of the stream follows, and then it
//! is closed.

use super::{Backend, Interest, Kernel, Kind, Readiness, token, unwatch, watch::telling};
use crate::{
    clock::Instant,
    driver::{
        connection::{Discarded, discard_input},
        contract::DriverOps,
    },
    slab::SlotId,
};

impl<B: Backend<K>, K: Kernel> Readiness<B, K> {
    /// Closes the descriptor and forgets the socket.
    pub(super) fn release(&mut self, id: SlotId) {
        let Some(mut socket) = self.sockets.remove(id) else { return };
        socket.forget_waiters(&self.parts.departed);
        if socket.watched {
            unwatch(&mut self.backend, &socket.descriptor, &self.parts.counters);
        }
        if !matches!(socket.kind, Kind::Listener { .. }) {
            self.parts.counters.closes.increment();
        }
        if socket.kind == Kind::Stream {
            self.parts.counters.connections_open.decrement();
        }
        drop(socket);
        self.resume_accepts();
    }

    /// Ends our direction and discards input. Closing with unread bytes would make the kernel send a reset, and the
    /// peer could lose replies it has not read yet. True: no input was there.
    pub(super) fn discard(&mut self, id: SlotId) -> bool {
        self.lingering.plan_look(self.kernel.now());
        let Some(socket) = self.sockets.get_mut(id) else { return false };
        let counters = &self.parts.counters;
        if !socket.connection.is_discarding() && self.kernel.end_output(&socket.descriptor, counters).is_err()
        {
            self.release(id);
            return false;
        }
        socket.connection.begin_discarding();
        let found = discard_input(self.parts.config.limits.turn_bytes_max, |bytes| {
            counters.recv_calls.increment();
            counters.clock.call(|| self.kernel.receive(&socket.descriptor, bytes))
        });
        if found == Discarded::Over {
            self.release(id);
            return false;
        }
        let known = socket.watched;
        let interest = Interest { read: true, ..socket.interest };
        let mut watched = self.watch(id, interest);
        if known
            && found == Discarded::ShareSpent
            && self.backend.is_edge_triggered()
            && let Some(socket) = self.sockets.get(id)
        {
            // Remaining bytes are not a new event for the kernel: changing the interest makes it check again.
            let descriptor = &socket.descriptor;
            let change = |backend: &mut B| backend.change(descriptor, token(id), interest);
            watched = watched.and(telling(&mut self.backend, &self.parts.counters, change));
        }
        if watched.is_err() {
            self.release(id);
        }
        found == Discarded::Silence
    }

    /// Limits how long a closing socket may wait for its peer.
    pub(super) fn linger(&mut self, id: SlotId) {
        let until = self.kernel.now() + self.parts.config.limits.linger;
        self.lingering.add(until, id, |id| self.sockets.get(id).is_none());
    }

    /// Handles the deadlines that have passed: retries operations that lacked resources, and ends sockets that
    /// lingered too long.
    pub(super) fn handle_deadlines(&mut self, now: Instant) {
        if self.retries.are_accepts_due(now) {
            self.resume_accepts();
        }
        self.retries.take_due_sends(now, &mut self.dirty);
        while let Some(id) = self.lingering.take_expired(now) {
            self.abort(id);
        }
        if self.lingering.take_look(now) {
            self.look_at_discarding();
        }
    }

    /// During a drain, closes each discarding socket whose peer has received everything and sends nothing more.
    fn look_at_discarding(&mut self) {
        for place in 0..self.lingering.len() {
            let id = self.lingering.at(place);
            if self.sockets.get(id).is_none_or(|socket| !socket.connection.is_discarding()) {
                continue;
            }
            let is_silent = self.discard(id);
            if is_silent
                && let Some(socket) = self.sockets.get(id)
                && self.kernel.has_taken_all(&socket.descriptor, &self.parts.counters)
            {
                self.release(id);
            }
        }
    }
}
