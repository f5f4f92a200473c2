//! The end of sockets whose handle is gone: their queues are sent without blocking, and in a drain our end of the
//! stream goes first.

use std::{os::fd::AsFd, time::Duration};

use rustix::{io::Errno, net::RecvFlags};

use super::{Blocking, Socket};
use crate::{
    clock::{Instant, monotonic},
    counters::Counters,
    driver::{
        connection::{Discarded, Step, discard_input},
        contract::DriverOps,
        socket,
    },
    slab::SlotId,
};

impl Blocking {
    /// Continues with the sockets whose handle is gone.
    pub(super) fn settle(&mut self) {
        // From the last on: a socket that is closed leaves the list.
        for place in (0..self.lingering.len()).rev() {
            self.settle_one(self.lingering.at(place));
        }
        self.end_expired(monotonic());
    }

    /// Sends the rest without blocking, and closes.
    pub(super) fn settle_one(&mut self, id: SlotId) {
        self.write(id, Duration::ZERO);
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let is_over = match socket.connection.step(!socket.send.queue.is_empty(), self.draining) {
            Step::Wait => false,
            Step::EndOutput => {
                socket::end_output(&socket.descriptor, &self.parts.counters).is_err() || {
                    socket.connection.begin_discarding();
                    self.discard(id) == Discarded::Over
                }
            }
            Step::Discard => match self.discard(id) {
                Discarded::Over => true,
                Discarded::Silence => self.has_taken_all(id),
                Discarded::Emptied | Discarded::ShareSpent => false,
            },
            Step::Cancel | Step::Close => true,
        };
        if is_over {
            self.release(id);
        }
    }

    /// Resets the sockets whose time is over.
    pub(super) fn end_expired(&mut self, now: Instant) {
        while let Some(id) = self.lingering.take_expired(now) {
            self.abort(id);
        }
    }

    /// Discards input: closing with unread bytes would make the kernel send a reset.
    fn discard(&mut self, id: SlotId) -> Discarded {
        let Some(socket) = self.sockets.get(id) else { return Discarded::Over };
        let counters = &self.parts.counters;
        discard_input(self.parts.config.limits.turn_bytes_max, |bytes| {
            counters.recv_calls.increment();
            let receive = || rustix::net::recv(&socket.descriptor, bytes, RecvFlags::DONTWAIT);
            counters.clock.call(receive).map(|(_, length)| length)
        })
    }

    /// Whether the peer has received everything.
    fn has_taken_all(&self, id: SlotId) -> bool {
        let socket = self.sockets.get(id);
        socket.is_none_or(|socket| socket::has_taken_all(socket.descriptor.as_fd(), &self.parts.counters))
    }
}

impl Socket {
    pub(super) fn shut_down_output(&mut self, counters: &Counters) {
        if let Err(error) = socket::end_output(&self.descriptor, counters)
            && error != Errno::NOTCONN
        {
            self.connection.break_off(error);
        }
    }
}
