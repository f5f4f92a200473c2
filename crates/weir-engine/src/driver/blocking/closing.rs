//! The end of sockets whose handle is gone: their queues are sent without blocking, and in a drain our end of the
//! stream goes first.

use std::{os::fd::AsFd, time::Duration};

use rustix::{io::Errno, net::RecvFlags};

use super::{Blocking, Socket};
use crate::{
    clock::{Instant, monotonic},
    counters::Counters,
    driver::{contract::DriverOps, error::StoredError, socket},
    slab::SlotId,
};

impl Blocking {
    /// Continues with the sockets whose handle is gone.
    pub(super) fn settle(&mut self) {
        let now = monotonic();
        for _ in 0..self.lingering.len() {
            let Some(id) = self.lingering.pop_front() else { return };
            if self.settle_one(id, now) {
                self.lingering.push_back(id);
            }
        }
    }

    /// Sends the rest without blocking, and closes. True: there is more to do.
    pub(super) fn settle_one(&mut self, id: SlotId, now: Instant) -> bool {
        self.write(id, Duration::ZERO);
        let Some(socket) = self.sockets.get_mut(id) else { return false };
        let ends_in_order = self.draining && !socket.end_of_stream;
        let bytes_max = self.parts.config.limits.turn_bytes_max;
        let is_done = if socket.error.is_some() {
            true
        } else if socket.send.queue.is_empty() {
            !ends_in_order || !socket.discard(bytes_max, &self.parts.counters)
        } else {
            false
        };
        if is_done {
            self.release(id);
        } else if socket.closing_at.is_some_and(|at| at <= now) {
            self.abort(id);
        } else {
            return true;
        }
        false
    }
}

impl Socket {
    pub(super) fn shut_down_output(&mut self, counters: &Counters) {
        if let Err(error) = socket::end_output(&self.descriptor, counters)
            && error != Errno::NOTCONN
        {
            self.error = Some(StoredError(error));
        }
    }

    /// Ends our direction and discards input, at most `bytes_max` bytes: closing with unread bytes would make the
    /// kernel send a reset. False: the peer has ended too, or is gone, or has received everything and sends nothing
    /// more.
    fn discard(&mut self, bytes_max: usize, counters: &Counters) -> bool {
        let is_first = !std::mem::replace(&mut self.discarding, true);
        if is_first && socket::end_output(&self.descriptor, counters).is_err() {
            return false;
        }
        let mut is_silent = !is_first;
        let mut scratch = [0u8; 4096];
        for _ in 0..bytes_max.div_ceil(scratch.len()) {
            counters.recv_calls.increment();
            let receive = || rustix::net::recv(&self.descriptor, &mut scratch[..], RecvFlags::DONTWAIT);
            match counters.clock.call(receive) {
                Ok((_, 0)) => return false,
                Ok(_) => is_silent = false,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    return !(is_silent && socket::has_taken_all(self.descriptor.as_fd(), counters));
                }
                Err(_) => return false,
            }
        }
        true
    }
}
