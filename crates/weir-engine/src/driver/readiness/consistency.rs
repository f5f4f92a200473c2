//! Invariants of the driver's state whenever it does not run, for tests.

use std::io;

use super::{Backend, Interest, Kernel, Kind, Readiness, Socket, token};
use crate::{
    driver::{connection::Receiving, contract::DriverOps},
    slab::SlotId,
};

impl<B: Backend<K>, K: Kernel> Readiness<B, K> {
    pub(crate) fn kernel(&self) -> &K {
        &self.kernel
    }

    /// Moves a socket within the same driver: it becomes a new stream.
    pub(crate) fn hand_over(&mut self, id: SlotId) -> io::Result<SlotId> {
        if let Some(error) = self.sockets.get(id).and_then(|socket| socket.connection.error()) {
            return Err(error.into());
        }
        let taken = self.take_out(id)?;
        self.insert(taken, Kind::Stream)
    }

    /// Every violated invariant, in words. `watched` is the backend's interest list, by token.
    pub(crate) fn inconsistencies(&self, watched: &[(u64, Interest)]) -> Vec<String> {
        let mut found = Vec::new();
        let mut streams = 0;
        for id in self.sockets.ids() {
            let Some(socket) = self.sockets.get(id) else { continue };
            streams += u64::from(socket.kind == Kind::Stream);
            for (wrong, what) in self.wrong_with(id, socket, watched) {
                if wrong {
                    found.push(format!("{what}: {}", describe(socket)));
                }
            }
        }
        if self.parts.counters.connections_open.get() != streams {
            found.push(format!("{streams} streams are not what is counted"));
        }
        if watched.iter().any(|(name, _)| self.sockets.get(super::id(*name)).is_none()) {
            found.push("a socket is watched that is gone".into());
        }
        let (paused, are_due) = self.retries.streams();
        if !paused.is_empty() && !are_due {
            found.push("nothing tries again what was refused".into());
        }
        found
    }

    fn wrong_with(
        &self,
        id: SlotId,
        socket: &Socket<K::Socket>,
        watched: &[(u64, Interest)],
    ) -> Vec<(bool, &'static str)> {
        let edge = self.backend.is_edge_triggered();
        let lists = [&self.dirty[..], self.retries.streams().0, &self.unfinished[..]];
        let listed = lists.into_iter().flatten().filter(|other| **other == id).count();
        let in_line = self.starved_receivers.iter().filter(|other| **other == id).count();
        let waits_for_buffer = socket.connection.receiving() == Receiving::Starved;
        let kept = watched.iter().find(|(name, _)| *name == token(id)).map(|(_, interest)| *interest);
        let hears = |direction: bool| socket.watched && (edge || direction);
        let is_well = socket.connection.error().is_none();
        let waits_for_room = !socket.send.queue.is_empty() && !socket.send.dirty;
        let needs_room = !socket.send.queue.is_empty() && !socket.connection.has_room();
        let waits_for_bytes = socket.receive_waiter.is_some() && !socket.connection.has_input();
        let is_lingering = self.lingering.ids().any(|other| other == id);
        vec![
            (listed != usize::from(socket.send.dirty), "to be flushed, and not listed once"),
            (in_line != usize::from(waits_for_buffer), "waits for a buffer, and is not in line once"),
            (kept.is_some() != socket.watched, "what is watched is not what is known"),
            (!edge && kept.is_some_and(|kept| kept != socket.interest), "interest is not what is known"),
            (is_well && waits_for_room && socket.connection.has_room(), "there is room, and nobody sends"),
            (is_well && waits_for_room && !hears(socket.interest.write), "nobody hears of room"),
            (
                !edge && is_well && socket.kind == Kind::Stream && socket.interest.write && !needs_room,
                "watched for room that nobody waits for",
            ),
            (
                is_well && waits_for_bytes && !self.draining && !hears(socket.interest.read),
                "nobody hears of bytes",
            ),
            (socket.connection.is_closing() && !is_lingering, "closing without a limit"),
        ]
    }

    /// State that remains although every handle is gone.
    pub(crate) fn left_over(&self) -> Vec<String> {
        let mut left = Vec::new();
        // An entry whose socket is gone is a stale deadline, which is harmless.
        let lingering = self.lingering.ids().filter(|id| self.sockets.get(*id).is_some());
        let counters = &self.parts.counters;
        let (opened, closed) = (counters.accepts.get(), counters.closes.get());
        if self.sockets() > 0 {
            left.push(format!("{} sockets", self.sockets()));
        }
        if closed < opened {
            left.push(format!("{} accepted connections that were never closed", opened - closed));
        }
        for (name, pool) in [("receive", &self.parts.receive_pool), ("send", &self.parts.send_pool)] {
            for class in 0..pool.classes() {
                let out = pool.buffers(class) as usize - pool.free(class);
                if out > 0 {
                    left.push(format!("{out} {name} buffers of size {class}"));
                }
            }
        }
        for (name, count) in [
            ("sockets to flush", self.dirty.len() + self.retries.streams().0.len() + self.unfinished.len()),
            ("deadlines of closing", lingering.count()),
        ] {
            if count > 0 {
                left.push(format!("{count} {name}"));
            }
        }
        left
    }
}

/// A socket without its bytes.
fn describe<D>(socket: &Socket<D>) -> String {
    let Socket { kind, watched, interest, connection, .. } = socket;
    let (queued, is_dirty) = (socket.send.queue.len(), socket.send.dirty);
    format!(
        "{kind:?}, watched {watched} for {interest:?}, {queued} bytes queued, dirty {is_dirty}, {connection:?}"
    )
}
