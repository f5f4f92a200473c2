//! Sending on simulated sockets: from the output queue into the network, and waiting for room.

use std::{
    io::{self, IoSlice},
    task::{Poll, Waker},
};

use rustix::io::Errno;

use super::{Sim, socket};
use crate::{driver::files::read_front, outbound::Front, slots::SlotId};

/// Chunks gathered into one send.
const SLICES_MAX: usize = 16;

impl Sim {
    /// Sends as much of the queue as the network takes.
    pub(super) fn write(&mut self, id: SlotId) {
        let low_water = self.parts.config.limits.output_low_water_bytes;
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let Some(end) = socket.stream() else { return };
        let counters = &self.parts.counters;
        while socket.writable && !socket.output.queue.is_empty() && socket.error.is_none() {
            if let Some(Front::File(_)) = socket.output.queue.front()
                && let Err(error) = read_front(&mut socket.output.queue, counters)
            {
                socket.fail(error);
                // What was promised cannot be sent: the peer must not take it for whole.
                self.network.reset(end);
                break;
            }
            let mut slices: [IoSlice<'_>; SLICES_MAX] = std::array::from_fn(|_| IoSlice::new(&[]));
            let count = socket.output.queue.gather(&mut slices).count;
            let asked: usize = slices[..count].iter().map(|slice| slice.len()).sum();
            counters.send_calls.increment();
            match self.network.send(end, &slices[..count]) {
                Ok(sent) => {
                    counters.sends.increment();
                    counters.bytes_sent.add(sent as u64);
                    socket.output.queue.consume(sent);
                    if sent < asked {
                        counters.sends_short.increment();
                        socket.writable = false;
                    }
                }
                Err(Errno::AGAIN) => {
                    counters.would_block.increment();
                    socket.writable = false;
                }
                Err(error) => socket.fail(error),
            }
        }
        socket.output.wake_if_low(low_water);
        self.after_write(id);
    }

    /// What follows when the queue is empty, or could not be emptied.
    pub(super) fn after_write(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let Some(end) = socket.stream() else { return };
        if !socket.output.queue.is_empty() && socket.error.is_none() {
            // A slow peer must not hold the runtime's buffers.
            return socket.output.queue.release_leases();
        }
        if std::mem::take(&mut socket.output.end_wanted) {
            self.network.shutdown(end);
        }
        if socket.closing {
            self.finish_closing(id);
        }
    }

    /// Waits until at most `limit` bytes are queued.
    pub(super) fn poll_output(
        &mut self,
        id: SlotId,
        limit: usize,
        target: usize,
        waker: &Waker,
    ) -> Poll<io::Result<()>> {
        let queued = self.sockets.get(id).map_or(0, |socket| socket.output.queue.len());
        if queued > limit {
            self.write(id);
        }
        let Some(socket) = self.sockets.get_mut(id) else { return Poll::Ready(Err(socket::gone())) };
        let outcome = socket.output.poll_at_most(socket.error, limit, target, waker);
        if outcome.is_pending() {
            self.network.perhaps_wake_for_nothing(id);
        }
        outcome
    }
}
