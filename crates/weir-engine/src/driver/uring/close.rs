//! The end of a socket: cancel the operations in flight, wait for them, then close. Teardown does the same for all
//! sockets.

use std::{os::fd::AsFd, time::Duration};

use rustix::io::Errno;

use super::{Arm, Kind, SocketKind, TEARDOWN, Uring, has_input};
use crate::{
    clock::{Instant, monotonic},
    driver::{contract::DriverOps, error::StoredError, socket},
    slab::SlotId,
};

impl Uring {
    /// Cancels every operation of a socket, once.
    pub(super) fn cancel_all(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        if socket.operations == 0 || std::mem::replace(&mut socket.cancelled, true) {
            return;
        }
        let (kind, sending, awaits_room) = (socket.kind, socket.sending > 0, socket.awaits_room);
        let lent = socket.lent;
        match kind {
            SocketKind::Listener if socket.arm == Arm::Polling => self.cancel(Kind::Readable, id),
            SocketKind::Listener => self.cancel(Kind::Accept, id),
            SocketKind::Connecting => self.cancel(Kind::Connect, id),
            SocketKind::Stream => self.stop_receive(id),
        }
        match lent {
            Some(number) => self.cancel(Kind::ZeroCopy, number),
            None if sending => self.cancel(if awaits_room { Kind::Room } else { Kind::Send }, id),
            None => {}
        }
    }

    /// Closes the socket once nothing is queued or in flight; starts the operations that this still needs.
    pub(super) fn finish_closing(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let failed = socket.error.is_some();
        if !failed && (socket.sending > 0 || !socket.send.queue.is_empty()) {
            return;
        }
        if self.draining.is_some() && socket.kind == SocketKind::Stream && !socket.end_of_stream && !failed {
            // Closing with unread bytes would make the kernel send a reset, and the peer could lose replies.
            if socket.discarding {
                return self.arm_receive(id);
            }
            // If our end cannot be sent, the peer has already reset the connection. The driver must not wait for it
            // then: a receive that is started on such a socket may never complete.
            if socket::end_output(&socket.descriptor, &self.parts.counters).is_ok() {
                socket.discarding = true;
                // A receive that was cancelled when the socket was closed is restarted, and may have to be cancelled
                // again.
                socket.cancelled = false;
                self.lingering.plan_look(monotonic());
                self.linger(id);
                return self.arm_receive(id);
            }
        }
        let Some(socket) = self.sockets.get(id) else { return };
        if socket.operations > 0 {
            return self.cancel_all(id);
        }
        self.release(id);
    }

    pub(super) fn release(&mut self, id: SlotId) {
        let Some(socket) = self.remove(id) else { return };
        if socket.kind != SocketKind::Listener {
            self.parts.counters.closes.increment();
        }
        if socket.kind == SocketKind::Stream {
            self.parts.counters.connections_open.decrement();
        }
        drop(socket);
        self.wake_starved_listeners();
    }

    /// Limits how long a closing socket may wait for its peer.
    pub(super) fn linger(&mut self, id: SlotId) {
        let until = monotonic() + self.parts.config.limits.linger;
        self.lingering.add(until, id, |id| self.sockets.get(id).is_none());
    }

    /// Handles the deadlines that have passed: retries operations that lacked resources, and ends sockets that
    /// lingered too long.
    pub(super) fn handle_deadlines(&mut self, now: Instant) {
        if self.retry_at.is_some_and(|at| at <= now) {
            self.wake_starved_listeners();
        }
        if self.resend_at.is_some_and(|at| at <= now) {
            self.resend_at = None;
            self.dirty.append(&mut self.refused);
        }
        while let Some(id) = self.lingering.take_expired(now) {
            self.abort(id);
        }
        if self.lingering.take_look(now) {
            self.look_at_discarding(now);
        }
    }

    /// During a drain, closes each discarding socket whose peer has received everything and sends nothing more.
    fn look_at_discarding(&mut self, now: Instant) {
        for place in 0..self.lingering.len() {
            let id = self.lingering.at(place);
            let Some(socket) = self.sockets.get_mut(id) else { continue };
            if !socket.discarding || socket.end_of_stream {
                continue;
            }
            let counters = &self.parts.counters;
            if !has_input(socket, counters) && socket::has_taken_all(socket.descriptor.as_fd(), counters) {
                // Counts as the peer's end of stream.
                socket.end_of_stream = true;
                self.finish_closing(id);
            } else {
                self.lingering.plan_look(now);
            }
        }
    }

    /// Cancels everything and reaps until nothing is in flight, or the time is up. Returns the number of operations
    /// left.
    pub(super) fn cancel_and_reap(&mut self) -> usize {
        let deadline = monotonic() + TEARDOWN;
        self.workers.ending = true;
        for id in self.sockets.ids() {
            if let Some(socket) = self.sockets.get_mut(id) {
                socket.closing = true;
                socket.discarding = false;
                socket.cancelled = false;
                socket.error.get_or_insert(StoredError(Errno::CANCELED));
                socket.inbound.clear();
            }
            self.finish_closing(id);
        }
        for id in self.files.running() {
            self.cancel(Kind::File, id);
        }
        while self.left() > 0 && monotonic() < deadline {
            let limit = Some(Duration::from_millis(50));
            if self.ring.turn(Some(limit), &self.parts.counters).is_err() {
                break;
            }
            let submitted = self.tried_submitted();
            self.ring.reap(&mut self.completions);
            self.dispatch();
            self.settle_tried(submitted);
        }
        self.left()
    }

    /// The operations that must end before the ring may be closed.
    fn left(&self) -> usize {
        self.sockets.len() + self.zero_copy.in_flight() + self.files.in_flight() + self.files_closing
    }
}
