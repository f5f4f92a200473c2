//! Sending on simulated sockets: from the output queue into the network, and waiting for room.

use std::{
    io::{self, IoSlice},
    task::{Poll, Waker},
};

use rustix::io::Errno;

use super::{Sim, socket};
use crate::slots::SlotId;

/// Chunks gathered into one send.
const SLICES_MAX: usize = 16;

impl Sim {
    /// Sends as much of the queue as the network takes.
    pub(super) fn write(&mut self, id: SlotId) {
        let low_water = self.parts.config.limits.output_low_water_bytes;
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let Some(end) = socket.stream() else { return };
        let counters = &self.parts.counters;
        while socket.writable && !socket.outbound.is_empty() && socket.error.is_none() {
            let mut slices: [IoSlice<'_>; SLICES_MAX] = std::array::from_fn(|_| IoSlice::new(&[]));
            let count = socket.outbound.gather(&mut slices);
            let asked: usize = slices[..count].iter().map(|slice| slice.len()).sum();
            counters.send_calls.increment();
            match self.network.send(end, &slices[..count]) {
                Ok(sent) => {
                    counters.sends.increment();
                    counters.bytes_sent.add(sent as u64);
                    socket.outbound.consume(sent);
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
        if socket.outbound.len() <= socket.send_waits_for.min(low_water) {
            socket.wake_sender();
        }
        self.after_write(id);
    }

    /// What follows when the queue is empty, or could not be emptied.
    pub(super) fn after_write(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let Some(end) = socket.stream() else { return };
        if !socket.outbound.is_empty() && socket.error.is_none() {
            // A slow peer must not hold the runtime's buffers.
            return socket.outbound.release_leases();
        }
        if std::mem::take(&mut socket.end_output) {
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
        let queued = self.sockets.get(id).map_or(0, |socket| socket.outbound.len());
        if queued > limit {
            self.write(id);
        }
        let Some(socket) = self.sockets.get(id) else { return Poll::Ready(Err(socket::gone())) };
        if let Some(error) = socket.error {
            return Poll::Ready(Err(error.into()));
        }
        if socket.outbound.len() <= limit {
            return Poll::Ready(Ok(()));
        }
        self.wait_to_send(id, target, waker);
        Poll::Pending
    }
}
