//! Moving bytes: tried first, waited for only after `EAGAIN`.

use std::{
    io::{self, IoSlice},
    os::fd::{AsFd, OwnedFd},
    task::{Poll, Waker},
};

use rustix::{
    io::Errno,
    net::{RecvFlags, SendFlags, Shutdown},
};

use super::{Backend, Interest, Readiness, token};
use crate::{driver::socket, outbound::Outbound, pool::Lease, slots::SlotId};

impl<B: Backend> Readiness<B> {
    /// Writes as much of the queue as the kernel takes.
    pub(super) fn write(&mut self, id: SlotId) {
        let low_water = self.parts.config.limits.output_low_water_bytes;
        let Some(socket) = self.sockets.get_mut(id) else { return };
        while socket.writable && !socket.output.queue.is_empty() && socket.error.is_none() {
            let queued = socket.output.queue.len();
            self.parts.counters.send_calls.increment();
            match send(&socket.descriptor, &socket.output.queue) {
                Ok(sent) => {
                    self.parts.counters.sends.increment();
                    self.parts.counters.bytes_sent.add(sent as u64);
                    socket.output.queue.consume(sent);
                    if sent < queued && !socket.output.queue.is_empty() {
                        self.parts.counters.sends_short.increment();
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.parts.counters.would_block.increment();
                    socket.writable = false;
                }
                Err(Errno::NOBUFS | Errno::NOMEM) => {
                    // The kernel is short of memory: the queue waits, and the next turn tries again.
                    if socket.output.mark_dirty() {
                        self.refused.push(id);
                    }
                    break;
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
        if !socket.output.queue.is_empty() && socket.error.is_none() {
            if !socket.writable {
                // A slow peer must not hold the runtime's buffers.
                socket.output.queue.release_leases();
                // A failure is stored in the socket.
                let _ = self.watch_or_fail(id, false, true);
            }
            return;
        }
        if socket.output.end_wanted && socket.error.is_none() {
            socket.output.end_wanted = false;
            if let Err(error) = rustix::net::shutdown(&socket.descriptor, Shutdown::Write)
                && error != Errno::NOTCONN
            {
                socket.fail(error);
            }
        }
        if socket.closing && self.draining && !socket.end_of_stream && socket.error.is_none() {
            self.discard(id);
        } else if socket.closing {
            self.release(id);
        } else if socket.interest.write && !self.backend.is_edge_triggered() {
            let wanted = Interest { write: false, ..socket.interest };
            let _ = self.watch(id, wanted);
        }
    }

    /// Ends our direction and throws away what still arrives. Closing with unread bytes would make the kernel send
    /// a reset, and the peer could lose replies it has not read yet.
    pub(super) fn discard(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        if !std::mem::replace(&mut socket.discarding, true)
            && rustix::net::shutdown(&socket.descriptor, Shutdown::Write).is_err()
        {
            return self.release(id);
        }
        let mut scratch = [0u8; 4096];
        let mut left = self.parts.config.limits.turn_bytes_max;
        let is_empty = loop {
            match rustix::net::recv(&socket.descriptor, &mut scratch[..], RecvFlags::empty()) {
                Ok((_, 0)) => return self.release(id),
                Ok((_, length)) if length < left => left -= length,
                // A peer that does not stop must not stop everybody else.
                Ok(_) => break false,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break true,
                Err(_) => return self.release(id),
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
            // What is left is no news to the kernel: a change makes it look again.
            watched = watched.and(self.backend.change(socket.descriptor.as_fd(), token(id), interest));
        }
        if watched.is_err() {
            self.release(id);
        }
    }

    /// One receive into a pooled buffer.
    pub(super) fn receive(&mut self, id: SlotId, waker: &Waker) -> Poll<io::Result<Option<Lease>>> {
        let classes = self.classes;
        let Some(socket) = self.sockets.get_mut(id) else { return Poll::Ready(Err(socket::gone())) };
        let counters = &self.parts.counters;
        let Some(mut buffer) = self.parts.receive_pool.take(socket.size.class()) else {
            counters.buffers_exhausted.increment();
            socket.wait_to_receive(waker);
            if !std::mem::replace(&mut socket.starved, true) {
                self.starved_receivers.push_back(id);
            }
            let ended = socket.ended;
            self.pause_reading(id, ended);
            return Poll::Pending;
        };
        let capacity = buffer.capacity();
        loop {
            counters.recv_calls.increment();
            match rustix::net::recv(&socket.descriptor, buffer.as_mut_slice(), RecvFlags::empty()) {
                Ok((_, 0)) => {
                    socket.end_of_stream = true;
                    return Poll::Ready(Ok(None));
                }
                Ok((_, length)) => {
                    counters.receives.increment();
                    counters.bytes_received.add(length as u64);
                    socket.turn_bytes += length;
                    let full = length == capacity as usize;
                    if full {
                        counters.receives_full.increment();
                    } else if !socket.ended && self.backend.trusts_short_reads() {
                        socket.readable = false;
                    }
                    if socket.size.observe(length, capacity, classes) {
                        counters.buffer_resizes.increment();
                    }
                    return Poll::Ready(Ok(Some(buffer.lease(length))));
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    counters.would_block.increment();
                    socket.readable = false;
                    if self.draining {
                        return Poll::Ready(Ok(None));
                    }
                    return self.wait_readable(id, waker);
                }
                Err(error) => {
                    socket.fail(error);
                    return Poll::Ready(Err(error.into()));
                }
            }
        }
    }

    pub(super) fn wait_readable<T>(&mut self, id: SlotId, waker: &Waker) -> Poll<io::Result<T>> {
        let Some(socket) = self.sockets.get_mut(id) else { return Poll::Ready(Err(socket::gone())) };
        socket.wait_to_receive(waker);
        if socket.watched && (socket.interest.read || self.backend.is_edge_triggered()) {
            return Poll::Pending;
        }
        match self.watch_or_fail(id, true, false) {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
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
        let Some(socket) = self.sockets.get(id) else { return Poll::Ready(Err(socket::gone())) };
        if socket.error.is_none() && socket.output.queue.len() > limit {
            self.write(id);
        }
        let Some(socket) = self.sockets.get_mut(id) else { return Poll::Ready(Err(socket::gone())) };
        socket.output.poll_at_most(socket.error, limit, target, waker)
    }
}

fn send(descriptor: &OwnedFd, outbound: &Outbound) -> Result<usize, Errno> {
    if !outbound.is_scattered() {
        return rustix::net::send(descriptor, outbound.front().unwrap_or(&[]), SendFlags::NOSIGNAL);
    }
    let mut slices: [IoSlice<'_>; 16] = std::array::from_fn(|_| IoSlice::new(&[]));
    let count = outbound.gather(&mut slices);
    let mut ancillary = rustix::net::SendAncillaryBuffer::default();
    rustix::net::sendmsg(descriptor, &slices[..count], &mut ancillary, SendFlags::NOSIGNAL)
}
