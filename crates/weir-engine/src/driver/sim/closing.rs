//! How simulated sockets end: linger, discarding while draining, release, and what released descriptors let go on.

use rustix::io::Errno;

use super::{
    Sim,
    endpoint::{Kind, Socket},
};
use crate::{
    driver::{Mechanism, socket::DRAIN_LOOK},
    slots::SlotId,
    time::Instant,
};

impl Sim {
    /// The handle is gone. What is queued is still sent, for at most the linger time.
    pub(super) fn start_closing(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        socket.receive_waiter = None;
        socket.output.waiter = None;
        let unfinished = !socket.output.queue.is_empty() || self.draining && !socket.end_of_stream;
        if socket.stream().is_none() || !unfinished || socket.error.is_some() {
            return self.release(id);
        }
        socket.closing = true;
        self.lingering.push_back((self.network.now() + self.parts.config.limits.linger, id));
        self.mark_dirty(id);
    }

    /// Everything queued is sent, or lost with the connection. While draining, our direction ends and what still
    /// arrives is thrown away: closing with unread bytes would reset the peer, which could lose replies.
    pub(super) fn finish_closing(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let Some(end) = socket.stream() else { return self.release(id) };
        if !self.draining || socket.end_of_stream || socket.error.is_some() {
            return self.release(id);
        }
        socket.discarding = true;
        self.look_at.get_or_insert(self.network.now() + DRAIN_LOOK);
        self.network.shutdown(end);
        let mut scratch = [0u8; 4096];
        loop {
            match self.network.receive(end, &mut scratch) {
                Ok(1..) => {}
                Err(Errno::AGAIN) => return,
                Ok(0) | Err(_) => return self.release(id),
            }
        }
    }

    /// Closes the socket and forgets it.
    pub(super) fn release(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.remove(id) else { return };
        let counters = &self.parts.counters;
        if !matches!(socket.kind, Kind::Listener(_)) {
            counters.closes.increment();
        }
        if socket.stream().is_some() {
            counters.connections_open.decrement();
        }
        self.end_kind(socket.kind);
        self.wake_starved_listeners();
    }

    fn wake_starved_listeners(&mut self) {
        self.retry_at = None;
        for id in self.starved_listeners.drain(..) {
            if let Some(socket) = self.sockets.get_mut(id) {
                socket.wake_receiver();
            }
        }
    }

    /// Tries again what had to wait, and ends what has lingered long enough.
    pub(super) fn retry(&mut self) {
        let now = self.network.now();
        if self.retry_at.is_some_and(|at| at <= now) {
            self.wake_starved_listeners();
        }
        while let Some(&(at, id)) = self.lingering.front()
            && at <= now
        {
            self.lingering.pop_front();
            self.abort(id);
        }
        if self.look_at.is_some_and(|at| at <= now) {
            self.look_at = None;
            self.look_at_discarding(now);
        }
    }

    /// Closes what a drain waits for if the peer has taken everything and says nothing more.
    fn look_at_discarding(&mut self, now: Instant) {
        for place in 0..self.lingering.len() {
            let (_, id) = self.lingering[place];
            let Some(socket) = self.sockets.get(id) else { continue };
            let Some(end) = socket.stream().filter(|_| socket.discarding) else { continue };
            if self.network.arrived(end) == 0 && self.network.has_taken_all(end) {
                self.release(id);
            } else {
                self.look_at = Some(now + DRAIN_LOOK);
            }
        }
    }

    /// Drops linger deadlines of sockets that are closed: nobody needs time to reach them.
    pub(super) fn forget_lingered(&mut self) {
        let sockets = &self.sockets;
        let is_closing = |id: SlotId| sockets.get(id).is_some_and(|socket: &Socket| socket.closing);
        while self.lingering.front().is_some_and(|&(_, id)| !is_closing(id)) {
            self.lingering.pop_front();
        }
    }
}
