//! Sends: one in flight for each connection, from the front of its output queue.
//!
//! A send is first tried with `MSG_DONTWAIT` and `IOSQE_CQE_SKIP_SUCCESS`: it is over when the kernel has consumed
//! its submission, and only a failure or a short count makes a completion. So a successful send costs no completion
//! and does not end the wait for the next request. A connection with one message in flight then enters the kernel
//! once a message instead of twice. Bytes that could not be sent at once are copied out of the runtime's buffers and
//! sent again by a waiting send. Before 5.17 the completion cannot be left out; there too, the first try does not
//! wait.
//!
//! A missing completion says enough here. liburing's issue 1264 argues that a send needs one, because it says when the
//! bytes may be reused. But a send that may not wait is performed while its submission is consumed, and never later in
//! a worker: then its bytes are in the socket, or it has failed. And [`SEND_FLAGS`] make a part a failure.
//!
//! A chunk that is sent without a copy needs a separate send (`zero_copy.rs`): the bytes queued before it go first.
//!
//! A file is sent by a direct `sendfile(2)` call, after the bytes queued before it, and the ring waits for room. A
//! response head sent through the ring would leave only when the kernel is entered, and the file a turn later. The
//! ring's alternative (`IORING_OP_SPLICE` into a pipe and out of it) always needs a kernel worker and two of its
//! operations for each pipeful, to move the same pages.

use std::{
    io::{self, IoSlice},
    os::fd::AsFd,
    task::{Poll, Waker},
};

use io_uring::{opcode, squeue::Flags};
use rustix::{io::Errno, net::SendFlags};

#[cfg(test)]
use super::fault_injection::{self, Plant};
use super::{Kind, PlainEntry, SEND_BYTES_MAX, SLICES_MAX, SendHeader, Sending, Socket, Target, Uring};
use crate::{
    clock::monotonic,
    counters::Counters,
    driver::{
        contract::DriverParts,
        error::{self, SendFailure},
        files::{self, SendOutcome},
        socket,
    },
    send_queue::{Front, SendQueue},
    slab::SlotId,
};

/// Flags of every send. `MSG_WAITALL` makes a short count a failure, for which the kernel always makes a completion
/// (`io_send` marks a request as failed if it sent less than the flag asks for). Without it a part that was sent counts
/// as success: a tried send would stay silent, and its rest would be lost. A waiting send goes on by itself after a
/// part.
pub(super) const SEND_FLAGS: i32 = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;

/// A gathered send, described for the kernel.
struct GatheredSend {
    header: *const libc::msghdr,
    bytes: u32,
    /// `MSG_MORE` if a chunk with a separate send follows.
    flags: i32,
}

/// The step after a completed send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Nothing,
    /// The next send.
    Send,
    /// The steps after an empty queue.
    End,
    /// The same send again when the kernel has memory.
    Memory,
}

impl Uring {
    pub(super) fn mark_dirty(&mut self, id: SlotId) {
        if let Some(socket) = self.sockets.get_mut(id)
            && socket.send.mark_dirty()
        {
            self.dirty.push(id);
        }
    }

    /// Submits the front of the output queue, unless a send is in flight.
    pub(super) fn submit_send(&mut self, id: SlotId) {
        let tries_first = self.ring.granted.skip_success;
        let Some(socket) = self.sockets.get_mut(id) else { return };
        if socket.connection.error().is_some() {
            return;
        }
        match socket.connection.sending() {
            Sending::Idle => {}
            // A task needs this socket again once its send is over.
            Sending::Tried { number: Some(_), .. } => return self.follow_up = true,
            // A slow peer must not hold the runtime's buffers.
            Sending::Stalled => socket.send.queue.release_leases(0),
            // Nor buffers of bytes that were queued meanwhile.
            in_flight => return socket.send.queue.release_leases(in_flight.borrowed()),
        }
        socket.send.queue.seal();
        if self.zero_copy.admits(socket, &self.parts.counters) {
            return self.submit_zero_copy(id);
        }
        let waits = socket.connection.sending() == Sending::Stalled;
        let nowait = if waits { 0 } else { libc::MSG_DONTWAIT };
        let flags = SEND_FLAGS | nowait;
        let Target { fd, flags: named } = socket.target;
        let (entry, bytes) = match socket.send.queue.front() {
            None => return self.after_send(id),
            Some(Front::File(_)) => return self.submit_file(id),
            Some(Front::Bytes(bytes)) if !socket.send.queue.is_scattered() => {
                let length = bytes.len().min(SEND_BYTES_MAX) as u32;
                let offered = if waits { self.ring.offered(length) } else { length };
                (opcode::Send::new(fd, bytes.as_ptr(), offered).flags(flags).build(), length)
            }
            Some(Front::Bytes(_)) if !waits && socket.send.queue.leads_to_file(SLICES_MAX) => {
                return self.submit_file(id);
            }
            Some(Front::Bytes(_)) => {
                let alone_from = if socket.copies { usize::MAX } else { self.zero_copy.bytes_min };
                let gathered = gather(&socket.send.queue, &mut socket.send_header, alone_from);
                let flags = flags | gathered.flags;
                (opcode::SendMsg::new(fd, gathered.header).flags(flags as u32).build(), gathered.bytes)
            }
        };
        let mut entry = entry.flags(named).user_data(Kind::Send.token(id));
        let mut number = None;
        if tries_first && !waits {
            let more = socket.send.queue.len() > bytes as usize;
            let is_ending = socket.connection.is_closing() || socket.send.wants_end();
            self.follow_up |= more || is_ending || socket.send.waiter.is_some();
            self.tries = self.tries.wrapping_add(1);
            self.tried.push((id, self.tries));
            number = Some(self.tries);
            entry = entry.flags(Flags::SKIP_SUCCESS);
        }
        let sending = if waits { Sending::Waiting { bytes } } else { Sending::Tried { bytes, number } };
        socket.connection.begin_send(sending);
        // SAFETY: the queue keeps the chunks in their place, and the slot the header, while the send is in flight:
        // until `on_send` sees the completion, or knows that there is none (invariant 4).
        unsafe { self.push_naming_memory(entry) };
    }

    /// How many tried sends the kernel has consumed, with their completions ready to be reaped; call it right after
    /// entering the ring.
    pub(super) fn tried_submitted(&mut self) -> usize {
        if self.tried.is_empty() || !self.ring.is_caught_up() { 0 } else { self.tried.len() }
    }

    /// The kernel has consumed the first `count` tried sends, and their completions, if any, are dispatched: those
    /// without one have succeeded.
    pub(super) fn settle_tried(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        self.follow_up = self.tried.len() > count;
        let later = self.tried.split_off(count);
        let consumed = std::mem::replace(&mut self.tried, later);
        for &(id, number) in &consumed {
            // One that failed may already have been followed by another one, which is not consumed.
            if let Some(socket) = self.sockets.get(id)
                && let Sending::Tried { bytes, number: Some(present) } = socket.connection.sending()
                && present == number
            {
                self.on_send(id, bytes as i32);
            }
        }
        if self.tried.is_empty() {
            // Kept to reuse its memory.
            self.tried = consumed;
            self.tried.clear();
        }
    }

    #[inline]
    pub(super) fn on_send(&mut self, id: SlotId, result: i32) {
        let low_water = self.parts.config.limits.output_low_water_bytes;
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let next = socket.complete_send(result, low_water, &self.parts, SendQueue::consume);
        self.go_on(id, next);
    }

    /// Performs the step after a completed send.
    #[inline]
    pub(super) fn go_on(&mut self, id: SlotId, next: Next) {
        match next {
            Next::Nothing => {}
            Next::Send => self.submit_send(id),
            Next::End => self.after_send(id),
            Next::Memory => self.wait_for_memory(id),
        }
    }

    /// Sends the bytes before the file at the front of the queue, and the file: as much as there is room for, and no
    /// more than a share before other sockets are served.
    fn submit_file(&mut self, id: SlotId) {
        let limits = self.parts.config.limits;
        let Some(socket) = self.sockets.get_mut(id) else { return };
        // No other send on this socket is in flight, and no submission is consumed meanwhile.
        let outcome = socket.send_to_file(limits.turn_bytes_max, &self.parts.counters);
        socket.send.wake_if_low(limits.output_low_water_bytes, &self.parts.departed);
        match outcome {
            Ok(SendOutcome::Done) if socket.send.queue.is_empty() => self.after_send(id),
            Ok(SendOutcome::Done) => self.submit_send(id),
            Ok(SendOutcome::ShareSpent | SendOutcome::SocketFull) => self.await_room(id),
            Err(error) => match error::send_failure(error) {
                SendFailure::Again => self.await_room(id),
                SendFailure::Full => {
                    self.parts.counters.would_block.increment();
                    self.await_room(id);
                }
                SendFailure::NoMemory => self.wait_for_memory(id),
                SendFailure::Fatal(error) => {
                    socket.fail(error, &self.parts);
                    self.after_send(id);
                }
            },
        }
    }

    /// Waits until the socket has room for a considerable part, then continues the file at the front of the queue.
    fn await_room(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        // A slow peer must not hold the runtime's buffers.
        socket.send.queue.release_leases(0);
        socket.connection.begin_send(Sending::AwaitsRoom);
        let entry = PlainEntry::poll(socket.target, libc::POLLOUT);
        self.push(entry.token(Kind::Room.token(id)));
    }

    pub(super) fn on_room(&mut self, id: SlotId, result: i32) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        socket.connection.end_send(0);
        if result < 0 {
            match error::send_failure(Errno::from_raw_os_error(-result)) {
                SendFailure::Again | SendFailure::Full => {}
                SendFailure::NoMemory => socket.fail(Errno::NOMEM, &self.parts),
                SendFailure::Fatal(error) => socket.fail(error, &self.parts),
            }
        }
        if socket.connection.error().is_some() {
            socket.lose_output(&self.parts.counters);
            return self.after_send(id);
        }
        self.submit_send(id);
    }

    /// The kernel is short of memory: the queue waits, including bytes that are added to it.
    fn wait_for_memory(&mut self, id: SlotId) {
        if let Some(socket) = self.sockets.get_mut(id)
            && socket.send.mark_dirty()
        {
            self.retries.pause_send(id, monotonic());
        }
    }

    /// The steps when everything queued is sent, or lost with the connection.
    #[inline]
    pub(super) fn after_send(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        if socket.connection.error().is_none() && socket.send.take_end() {
            let counters = &self.parts.counters;
            if let Err(error) = socket::end_output(&socket.descriptor, counters)
                && error != Errno::NOTCONN
            {
                socket.fail(error, &self.parts);
            }
        }
        if socket.connection.is_closing() {
            self.finish_closing(id);
        }
    }

    #[inline]
    pub(super) fn poll_output(
        &mut self,
        id: SlotId,
        limit: usize,
        target: usize,
        waker: &Waker,
    ) -> Poll<io::Result<()>> {
        let Some(socket) = self.sockets.get_mut(id) else { return Poll::Ready(Err(error::gone())) };
        let outcome =
            socket.send.poll_at_most(socket.connection.error(), limit, target, waker, &self.parts.departed);
        if outcome.is_pending() && socket.send.mark_dirty() {
            self.dirty.push(id);
        }
        outcome
    }
}

impl Socket {
    /// The end of the send in flight; `consume` removes the sent bytes from the queue.
    #[inline]
    pub(super) fn complete_send(
        &mut self,
        result: i32,
        low_water_bytes: usize,
        parts: &DriverParts,
        consume: impl FnOnce(&mut SendQueue, usize),
    ) -> Next {
        let counters = &parts.counters;
        let taken = result.max(0) as u32;
        let offered = self.connection.end_send(taken);
        if result >= 0 {
            counters.sends.increment();
            counters.bytes_sent.add(taken.into());
            counters.sends_short.add(u64::from(taken < offered));
            #[cfg(test)]
            let taken =
                taken + u32::from(taken < offered && fault_injection::is_planted(Plant::RestFromWrongPlace));
            consume(&mut self.send.queue, taken.min(offered) as usize);
        } else {
            match error::send_failure(Errno::from_raw_os_error(-result)) {
                #[cfg(test)]
                SendFailure::Again if fault_injection::is_planted(Plant::RefusedSendIsLost) => {
                    consume(&mut self.send.queue, offered as usize);
                }
                SendFailure::Again => {}
                SendFailure::Full => counters.would_block.increment(),
                SendFailure::NoMemory if self.connection.error().is_none() => return Next::Memory,
                SendFailure::NoMemory => {}
                SendFailure::Fatal(error) => self.fail(error, parts),
            }
        }
        if self.connection.error().is_some() {
            self.lose_output(counters);
        }
        self.send.wake_if_low(low_water_bytes, &parts.departed);
        if !self.send.queue.is_empty() {
            Next::Send
        } else if self.send.wants_end() || self.connection.is_closing() {
            Next::End
        } else {
            Next::Nothing
        }
    }

    /// Sends directly, without waiting, until no file is among the next chunks.
    fn send_to_file(&mut self, share_bytes: usize, counters: &Counters) -> Result<SendOutcome, Errno> {
        let descriptor = self.descriptor.as_fd();
        let queue = &mut self.send.queue;
        let queued = queue.len();
        while queue.leads_to_file(SLICES_MAX) {
            let left = share_bytes.saturating_sub(queued - queue.len());
            let outcome = if let Some(Front::Bytes(_)) = queue.front() {
                counters.send_calls.increment();
                let sent = match counters
                    .clock
                    .call(|| socket::send_front(descriptor, queue, SendFlags::DONTWAIT))
                {
                    Err(Errno::INTR) => continue,
                    outcome => outcome?,
                };
                counters.sends.increment();
                counters.bytes_sent.add(sent.bytes as u64);
                counters.sends_short.add(u64::from(sent.bytes < sent.offered));
                queue.consume(sent.bytes);
                if sent.bytes < sent.offered { SendOutcome::SocketFull } else { SendOutcome::Done }
            } else {
                let has_room = || files::has_room(descriptor, counters);
                files::send_share(queue, left, counters, has_room, |range, bytes_max| {
                    files::send_part_without_waiting(descriptor, range, bytes_max, counters)
                })?
            };
            if outcome != SendOutcome::Done {
                return Ok(outcome);
            }
        }
        Ok(SendOutcome::Done)
    }
}

/// Describes the next chunks for a gathered send; the header stays in place until it is replaced.
fn gather(queue: &SendQueue, header: &mut Option<Box<SendHeader>>, alone_from: usize) -> GatheredSend {
    let header = header.get_or_insert_with(|| {
        // SAFETY: both types are plain C data for which all-zero is a valid value.
        Box::new(unsafe { std::mem::zeroed() })
    });
    let mut slices: [IoSlice<'_>; SLICES_MAX] = std::array::from_fn(|_| IoSlice::new(&[]));
    let gathered = queue.gather(&mut slices, alone_from);
    let mut bytes = 0;
    for (entry, slice) in header.slices.iter_mut().zip(&slices[..gathered.count]) {
        let length = slice.len().min(SEND_BYTES_MAX - bytes);
        *entry = libc::iovec { iov_base: slice.as_ptr().cast_mut().cast(), iov_len: length };
        bytes += length;
    }
    header.msghdr.msg_iov = header.slices.as_mut_ptr();
    header.msghdr.msg_iovlen = gathered.count as _;
    let flags = if gathered.more_follows { libc::MSG_MORE } else { 0 };
    GatheredSend { header: &raw const header.msghdr, bytes: bytes as u32, flags }
}
