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

use super::{Backend, Interest, Readiness, SEND_RETRY, Socket, token};
use crate::{
    counters::Counters,
    driver::{
        files::{pass_front, send_part},
        socket,
    },
    outbound::{Front, Outbound},
    pool::Lease,
    slots::SlotId,
};

/// Why nothing of the queue was handed over.
enum Hindrance {
    /// A file is next, which `send` cannot send.
    File,
    Refused(Errno),
}

impl From<Errno> for Hindrance {
    fn from(error: Errno) -> Self {
        Hindrance::Refused(error)
    }
}

impl<B: Backend> Readiness<B> {
    /// As [`Self::write`], outside a flush.
    pub(super) fn write_out_of_order(&mut self, id: SlotId) {
        self.write(id);
        self.dirty.append(&mut self.unfinished);
    }

    /// Writes as much of the queue as the kernel takes; of files no more than a share.
    pub(super) fn write(&mut self, id: SlotId) {
        let low_water = self.parts.config.limits.output_low_water_bytes;
        let Some(socket) = self.sockets.get_mut(id) else { return };
        while socket.writable && !socket.output.queue.is_empty() && socket.error.is_none() {
            self.parts.counters.send_calls.increment();
            match send(&socket.descriptor, &socket.output.queue) {
                Ok(sent) => {
                    self.parts.counters.sends.increment();
                    self.parts.counters.bytes_sent.add(sent as u64);
                    socket.output.queue.consume(sent);
                    if socket.output.queue.is_cut() {
                        self.parts.counters.sends_short.increment();
                    }
                }
                Err(Hindrance::File) => {
                    let share_bytes = self.parts.config.limits.turn_bytes_max;
                    match send_file(socket, share_bytes, &self.parts.counters) {
                        Ok(true) => {}
                        Ok(false) => {
                            if socket.output.mark_dirty() {
                                self.unfinished.push(id);
                            }
                            break;
                        }
                        Err(error) if socket.was_refused(error, &self.parts.counters) => {
                            return self.wait_for_memory(id);
                        }
                        Err(_) => {}
                    }
                }
                Err(Hindrance::Refused(error)) => {
                    if socket.was_refused(error, &self.parts.counters) {
                        return self.wait_for_memory(id);
                    }
                }
            }
        }
        socket.output.wake_if_low(low_water);
        self.after_write(id);
    }

    /// The kernel is short of memory: the queue waits, and so does what is added to it.
    fn wait_for_memory(&mut self, id: SlotId) {
        let low_water = self.parts.config.limits.output_low_water_bytes;
        let Some(socket) = self.sockets.get_mut(id) else { return };
        socket.output.wake_if_low(low_water);
        if socket.output.mark_dirty() {
            self.refused.push(id);
            self.retry_after(SEND_RETRY);
        }
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
            match rustix::net::recv(&socket.descriptor, &mut scratch[..], RecvFlags::DONTWAIT) {
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
            match rustix::net::recv(&socket.descriptor, buffer.as_mut_slice(), RecvFlags::DONTWAIT) {
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
            self.write_out_of_order(id);
        }
        let Some(socket) = self.sockets.get_mut(id) else { return Poll::Ready(Err(socket::gone())) };
        socket.output.poll_at_most(socket.error, limit, target, waker)
    }
}

impl Socket {
    /// Takes note of a send that failed. True: the kernel had no memory for it.
    fn was_refused(&mut self, error: Errno, counters: &Counters) -> bool {
        match error {
            Errno::INTR => {}
            Errno::AGAIN => {
                counters.would_block.increment();
                self.writable = false;
            }
            Errno::NOBUFS | Errno::NOMEM => return true,
            error => self.fail(error),
        }
        false
    }
}

#[inline]
fn send(descriptor: &OwnedFd, outbound: &Outbound) -> Result<usize, Hindrance> {
    #[cfg(test)]
    super::tests::refuse()?;
    if !outbound.is_scattered() {
        return match outbound.front() {
            Some(Front::File(_)) => Err(Hindrance::File),
            Some(Front::Bytes(bytes)) => Ok(rustix::net::send(descriptor, bytes, SendFlags::NOSIGNAL)?),
            None => Ok(0),
        };
    }
    let mut slices: [IoSlice<'_>; 16] = std::array::from_fn(|_| IoSlice::new(&[]));
    let gathered = outbound.gather(&mut slices);
    if gathered.count == 0 {
        return Err(Hindrance::File);
    }
    let more = if gathered.file_follows { SendFlags::MORE } else { SendFlags::empty() };
    let mut ancillary = rustix::net::SendAncillaryBuffer::default();
    let slices = &slices[..gathered.count];
    Ok(rustix::net::sendmsg(descriptor, slices, &mut ancillary, SendFlags::NOSIGNAL | more)?)
}

/// Sends from the file at the front of the queue until the socket is full, the file is done, or `share_bytes` have left
/// and others get theirs: false.
fn send_file(socket: &mut Socket, share_bytes: usize, counters: &Counters) -> Result<bool, Errno> {
    let mut left = share_bytes;
    while let Some(Front::File(range)) = socket.output.queue.front() {
        if left == 0 {
            return Ok(false);
        }
        let offered = range.length.min(left);
        let descriptor = socket.descriptor.as_fd();
        let sent = pass_front(&mut socket.output.queue, |range| send_part(descriptor, range, left))?;
        if sent == 0 {
            // Its next bytes are in the queue.
            return Ok(true);
        }
        counters.sends.increment();
        counters.bytes_sent.add(sent as u64);
        counters.sends_short.add(u64::from(sent < offered));
        socket.output.queue.consume(sent);
        left -= sent;
    }
    Ok(true)
}
