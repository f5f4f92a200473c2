//! Receiving: tried first, into a buffer taken for it; waited for only after `EAGAIN`.

use std::{
    io,
    task::{Poll, Waker},
};

use rustix::io::Errno;

#[cfg(test)]
use super::planted_bugs;
use super::{Backend, Kernel, Readiness};
use crate::{
    driver::{connection::Receiving, error},
    pool::Lease,
    slab::SlotId,
};

impl<B: Backend<K>, K: Kernel> Readiness<B, K> {
    /// One receive into a pooled buffer.
    pub(super) fn receive(&mut self, id: SlotId, waker: &Waker) -> Poll<io::Result<Option<Lease>>> {
        let classes = self.classes;
        let Some(socket) = self.sockets.get_mut(id) else { return Poll::Ready(Err(error::gone())) };
        // A new receiver waits behind those that already wait.
        let is_granted = socket.connection.receiving() == Receiving::Granted;
        let must_queue = !self.starved_receivers.is_empty() && !is_granted;
        let taken = if must_queue { None } else { self.parts.receive_pool.take(socket.size.class()) };
        let Some(mut buffer) = taken else {
            self.wait_for_buffer(id, waker);
            return Poll::Pending;
        };
        socket.connection.feed();
        let counters = &self.parts.counters;
        let capacity = buffer.capacity();
        loop {
            counters.recv_calls.increment();
            let receive = || self.kernel.receive(&socket.descriptor, buffer.as_mut_slice());
            let received = counters.clock.call(receive);
            match received {
                Ok(0) => {
                    socket.connection.end_input();
                    return Poll::Ready(socket.connection.input().answer_if_empty());
                }
                Ok(length) => {
                    counters.receives.increment();
                    counters.bytes_received.add(length as u64);
                    socket.turn_bytes += length;
                    let full = length == capacity as usize;
                    if full {
                        counters.receives_full.increment();
                    } else if !socket.ended
                        && socket.connection.error().is_none()
                        && self.backend.trusts_short_reads()
                    {
                        socket.connection.await_input();
                    }
                    if socket.size.observe(length, capacity, classes) {
                        counters.buffer_resizes.increment();
                    }
                    #[cfg(test)]
                    if !full && planted_bugs::mistakes_for_end(id) {
                        socket.connection.end_input();
                    }
                    return Poll::Ready(Ok(Some(buffer.lease(length))));
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    #[cfg(test)]
                    planted_bugs::note_empty(id);
                    counters.would_block.increment();
                    if socket.connection.would_block() || self.draining {
                        return Poll::Ready(socket.connection.input().answer_if_empty());
                    }
                    return self.wait_readable(id, waker);
                }
                Err(error) => {
                    socket.connection.break_off(error);
                    socket.fail(error, &self.kernel, &self.parts);
                    return Poll::Ready(socket.connection.input().answer_if_empty());
                }
            }
        }
    }

    pub(super) fn wait_readable<T>(&mut self, id: SlotId, waker: &Waker) -> Poll<io::Result<T>> {
        let Some(socket) = self.sockets.get_mut(id) else { return Poll::Ready(Err(error::gone())) };
        self.parts.departed.wait(&mut socket.receive_waiter, waker);
        if socket.watched && (socket.interest.read || self.backend.is_edge_triggered()) {
            return Poll::Pending;
        }
        match self.watch_or_fail(id, true, false) {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}
