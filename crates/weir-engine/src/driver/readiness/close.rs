//! The end of a socket: its queue is sent for a limited time, in a drain our end of the stream follows, and then it
//! is closed.

use rustix::io::Errno;

use super::{Backend, Interest, Kernel, Kind, Readiness, token, unwatch, watch::telling};
use crate::{clock::Instant, driver::contract::DriverOps, slab::SlotId};

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
        self.wake_starved_listeners();
    }

    /// Ends our direction and discards input. Closing with unread bytes would make the kernel send a reset, and the
    /// peer could lose replies it has not read yet. True: no input was there.
    pub(super) fn discard(&mut self, id: SlotId) -> bool {
        self.lingering.plan_look(self.kernel.now());
        let Some(socket) = self.sockets.get_mut(id) else { return false };
        if !std::mem::replace(&mut socket.discarding, true)
            && self.kernel.end_output(&socket.descriptor, &self.parts.counters).is_err()
        {
            self.release(id);
            return false;
        }
        let mut scratch = [0u8; 4096];
        let most = self.parts.config.limits.turn_bytes_max;
        let mut left = most;
        let counters = &self.parts.counters;
        let is_empty = loop {
            counters.recv_calls.increment();
            let receive = || self.kernel.receive(&socket.descriptor, &mut scratch);
            match counters.clock.call(receive) {
                Ok(0) => {
                    self.release(id);
                    return false;
                }
                Ok(length) if length < left => left -= length,
                // A peer that keeps sending must not block the others.
                Ok(_) => break false,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break true,
                Err(_) => {
                    self.release(id);
                    return false;
                }
            }
        };
        let known = socket.watched;
        let interest = Interest { read: true, ..socket.interest };
        let mut watched = self.watch(id, interest);
        if known
            && !is_empty
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
        is_empty && left == most
    }

    /// Limits how long a closing socket may wait for its peer.
    pub(super) fn linger(&mut self, id: SlotId) {
        let until = self.kernel.now() + self.parts.config.limits.linger;
        self.lingering.add(until, id, |id| self.sockets.get(id).is_none());
    }

    /// Handles the deadlines that have passed: retries operations that lacked resources, and ends sockets that
    /// lingered too long.
    pub(super) fn handle_deadlines(&mut self, now: Instant) {
        if self.retry_at.is_some_and(|at| at <= now) {
            self.dirty.append(&mut self.refused);
            self.wake_starved_listeners();
        }
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
            if self.sockets.get(id).is_none_or(|socket| !socket.discarding) {
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
