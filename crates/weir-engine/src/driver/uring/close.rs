//! The end of a socket: cancel the operations in flight, wait for them, then close. Teardown does the same for all
//! sockets.

use std::{os::fd::AsFd, time::Duration};

use rustix::io::Errno;

use super::{Inbound, Kind, Sending, SocketKind, TEARDOWN, Uring, has_input};
use crate::{
    clock::{Instant, monotonic},
    driver::{connection::Step, contract::DriverOps, socket},
    slab::SlotId,
};

impl Uring {
    /// Cancels every operation of a socket.
    fn cancel_all(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        socket.connection.cancel();
        let sending = socket.connection.sending();
        match socket.kind {
            SocketKind::Connecting(_) => self.cancel(Kind::Connect, id),
            SocketKind::Listener(_) | SocketKind::Stream => self.stop_receive(id),
        }
        match sending {
            Sending::Idle | Sending::Stalled => {}
            Sending::Tried { .. } | Sending::Waiting { .. } => self.cancel(Kind::Send, id),
            Sending::Lent { slot, .. } => self.cancel(Kind::ZeroCopy, slot),
            Sending::AwaitsRoom => self.cancel(Kind::Room, id),
        }
    }

    /// Performs the next step of closing.
    pub(super) fn finish_closing(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let drains = self.draining.is_some() && socket.is_stream();
        let mut step = socket.connection.step(!socket.send.queue.is_empty(), drains);
        if step == Step::EndOutput {
            // If our end cannot be sent, the peer has already reset the connection. The driver must not wait for it
            // then: a receive that is started on such a socket may never complete.
            step = if socket::end_output(&socket.descriptor, &self.parts.counters).is_ok() {
                socket.connection.begin_discarding();
                self.lingering.plan_look(monotonic());
                self.linger(id);
                Step::Discard
            } else {
                socket.connection.step(false, false)
            };
        }
        match step {
            Step::Wait | Step::EndOutput => {}
            Step::Discard => self.arm_receive(id),
            Step::Cancel => self.cancel_all(id),
            Step::Close => self.release(id),
        }
    }

    pub(super) fn release(&mut self, id: SlotId) {
        let Some(socket) = self.remove(id) else { return };
        if !matches!(socket.kind, SocketKind::Listener(_)) {
            self.parts.counters.closes.increment();
        }
        if socket.is_stream() {
            self.parts.counters.connections_open.decrement();
        }
        drop(socket);
        self.resume_accepts();
    }

    /// Limits how long a closing socket may wait for its peer.
    pub(super) fn linger(&mut self, id: SlotId) {
        let until = monotonic() + self.parts.config.limits.linger;
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
            self.look_at_discarding(now);
        }
    }

    /// During a drain, closes each discarding socket whose peer has received everything and sends nothing more.
    fn look_at_discarding(&mut self, now: Instant) {
        for place in 0..self.lingering.len() {
            let id = self.lingering.at(place);
            let Some(socket) = self.sockets.get_mut(id) else { continue };
            // Also one whose receive could not start.
            if !socket.connection.is_discarding() {
                continue;
            }
            let counters = &self.parts.counters;
            if !has_input(socket, counters) && socket::has_taken_all(socket.descriptor.as_fd(), counters) {
                // Counts as the peer's end of stream.
                socket.connection.end_input();
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
                socket.connection.close();
                socket.connection.break_off(Errno::CANCELED);
                socket.inbound = Inbound::default();
                socket.lose_idle_output(&self.parts.counters);
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
