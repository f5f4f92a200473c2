//! Receives: armed, filled by the kernel, handed to their connection, armed again.

use std::os::fd::AsFd;

use io_uring::opcode;
use rustix::{event::PollFlags, io::Errno};

#[cfg(test)]
use super::fault_injection::{self, Plant};
use super::{
    BUNDLE, CQE_BUFFER, CQE_MORE, CQE_NONEMPTY, Kind, MULTISHOT, POLL_FIRST, PlainEntry, Receiving, Socket,
    SocketKind, Target, Uring, ring::Completion,
};
use crate::{
    counters::Counters,
    driver::{connection::AfterReceive, socket::has_event},
    pool::CLASS_BYTES,
    slab::SlotId,
};

/// Up to this much memory for one size, buffers are added as soon as the kernel has run out of them. Beyond it they
/// are added only if the buffers are still in use after the received bytes have been handled: one turn fills as many
/// buffers as sockets have data, and with 128 KiB each a ring that never runs out is larger than the cache. The
/// memory that the next receive writes to and the next send reads from is then not cached (100 connections with 16
/// messages of 4 KiB in flight: 1.5 times the CPU of epoll, which reads all of them into one hot buffer).
const HOT_BYTES: usize = 1 << 20;

/// Consecutive turns in which most buffers of a size are in use. After that many, sends cannot be the cause: sends
/// return their buffers every second turn. Otherwise handlers that keep their buffers would block receives forever,
/// as long as others send in every turn.
const HELD_TURNS: u8 = 16;

/// Buffers that the kernel fills for an armed receive before it serves others (`MULTISHOT_MAX_RETRY`).
const KERNEL_BURST: u8 = 32;

impl Uring {
    /// Starts a receive, unless one is in flight or no more input is expected.
    pub(super) fn arm_receive(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        if socket.connection.receiving() != Receiving::Idle || !socket.connection.may_receive() {
            return;
        }
        if !self.provided {
            return if socket.nonempty { self.receive_own(id) } else { self.poll_first(id) };
        }
        let class = socket.size.class();
        if self.buffers.provide(class, &self.ring).is_err() {
            socket.fail(Errno::NOMEM, &self.parts);
            return;
        }
        let multishot = self.multishot;
        // A receive that starts with waiting would merge data and a reset behind it, if both are already there, into
        // one event: it returns the data and then waits forever.
        let priority = match (multishot, socket.nonempty) {
            (true, _) if self.bundles => MULTISHOT | BUNDLE,
            (true, _) => MULTISHOT,
            (false, true) => 0,
            (false, false) => POLL_FIRST,
        };
        let entry = PlainEntry::receive_provided(socket.target, priority, class);
        socket.connection.begin_receive(Receiving::Armed(class));
        self.push(entry.token(Kind::Receive(class).token(id)));
    }

    /// If the kernel cannot pick a buffer when data arrives (before 5.19), a poll for data comes first: idle
    /// connections then hold no buffer, at the cost of one more submission for each receive.
    fn poll_first(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let entry = PlainEntry::poll(socket.target, libc::POLLIN | libc::POLLRDHUP);
        socket.connection.begin_receive(Receiving::Polling);
        self.push(entry.token(Kind::Readable.token(id)));
    }

    /// A receive into a buffer of the socket, for data that is there.
    fn receive_own(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let class = socket.size.class();
        let Some(buffer) = self.parts.receive_pool.take(class) else {
            self.parts.counters.buffers_exhausted.increment();
            socket.connection.starve();
            self.starved_receivers.push_back(id);
            return;
        };
        let Target { fd, flags } = socket.target;
        let receive = opcode::Recv::new(fd, buffer.as_ptr(), buffer.capacity());
        let entry = receive.flags(libc::MSG_DONTWAIT).build().flags(flags);
        socket.own_buffer = Some(buffer);
        socket.connection.begin_receive(Receiving::Armed(class));
        // SAFETY: the slot owns the buffer until `on_arrival` sees the only completion; its memory belongs to the pool
        // and does not move with it.
        unsafe { self.push_naming_memory(entry.user_data(Kind::Receive(class).token(id))) };
    }

    pub(super) fn on_readable(&mut self, id: SlotId, result: i32) {
        let Some(socket) = self.sockets.get_mut(id) else {
            self.parts.counters.events_stale.increment();
            return;
        };
        socket.connection.end_receive();
        if matches!(socket.kind, SocketKind::Listener(_)) {
            return if socket.connection.is_closing() {
                self.finish_closing(id)
            } else {
                self.arm_accept(id)
            };
        }
        // A poll that failed or was cancelled does not show data.
        socket.nonempty = result >= 0;
        if result < 0 && !matches!(-result, libc::ECANCELED | libc::EINTR | libc::EAGAIN) {
            socket.fail(Errno::from_raw_os_error(-result), &self.parts);
        }
        self.after_receive(id, false);
    }

    /// Asks the kernel to end a receive, or an accept, that is in flight.
    pub(super) fn stop_receive(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let is_listener = matches!(socket.kind, SocketKind::Listener(_));
        match socket.connection.stop_receive() {
            Some(Receiving::Armed(_)) if is_listener => self.cancel(Kind::Accept, id),
            Some(Receiving::Armed(class)) => self.cancel(Kind::Receive(class), id),
            Some(_) => self.cancel(Kind::Readable, id),
            None => {}
        }
    }

    #[inline]
    pub(super) fn on_receive(&mut self, id: SlotId, class: u8, completion: Completion) {
        if self.bundles && completion.result > 0 && completion.flags & CQE_BUFFER != 0 {
            return self.on_bundle(id, class, completion);
        }
        self.on_arrival(id, class, completion);
    }

    /// A receive that filled one buffer or several: each buffer counts as a separate arrival, all but the last with
    /// more to come.
    fn on_bundle(&mut self, id: SlotId, class: u8, completion: Completion) {
        let Completion { token, result, flags } = completion;
        let (mut index, mut rest) = ((flags >> 16) as u16, result as u32);
        while rest > 0 {
            let part = self.buffers.part(class, index, rest);
            rest -= part.bytes;
            let more = if rest > 0 { CQE_MORE | CQE_NONEMPTY } else { 0 };
            let flags = u32::from(index) << 16 | flags & 0xffff | more;
            self.on_arrival(id, class, Completion { token, result: part.bytes as i32, flags });
            index = part.next;
        }
    }

    #[inline]
    fn on_arrival(&mut self, id: SlotId, class: u8, completion: Completion) {
        let Completion { result, flags, .. } = completion;
        // SAFETY: the kernel took this buffer from the group of the receive's class, and names it in this one
        // completion; those of a bundle are named one by one.
        let take = || unsafe { self.buffers.take(class, (flags >> 16) as u16) };
        let provided = (flags & CQE_BUFFER != 0).then(take);
        let classes = self.classes;
        let high_water = self.parts.config.limits.input_high_water_bytes;
        let Some(socket) = self.sockets.get_mut(id) else {
            self.parts.counters.events_stale.increment();
            return;
        };
        let counters = &self.parts.counters;
        let more = flags & CQE_MORE != 0;
        socket.nonempty = flags & CQE_NONEMPTY != 0;
        let own = if more { None } else { socket.own_buffer.take() };
        if let Some(buffer) = &own {
            socket.nonempty = result > 0 && result as u32 == buffer.capacity();
        }
        if !more {
            socket.connection.end_receive();
        }
        #[cfg(test)]
        if !more && result < 0 && fault_injection::is_planted(Plant::EndedReceiveStaysArmed) {
            socket.connection.plant(Receiving::Armed(class));
        }
        if result > 0 {
            let Some(buffer) = provided.or(own) else { return self.on_lost_bytes(id, class, more) };
            let (length, capacity) = (result as usize, buffer.capacity());
            counters.receives.increment();
            counters.bytes_received.add(length as u64);
            if length == capacity as usize {
                counters.receives_full.increment();
            }
            let resized = socket.size.observe(length, capacity, classes);
            if resized {
                counters.buffer_resizes.increment();
            }
            // Bytes behind lost ones are not received: the stream would have a hole.
            if !socket.connection.is_closing() && socket.connection.input().may_arrive() {
                debug_assert_eq!(buffer.class(), class);
                socket.inbound.store(buffer.lease(length));
                socket.wake_receiver(&self.parts.departed);
            }
            let crowded = socket.inbound.bytes() > high_water;
            if more && crowded {
                counters.receive_pauses.increment();
            }
            if more && (resized || crowded || socket.may_miss_end(counters)) {
                self.stop_receive(id);
            }
        } else {
            self.on_receive_end(id, class, result);
        }
        self.after_receive(id, more);
    }

    /// Ends the stream: the kernel did not report where it put the bytes of a receive.
    fn on_lost_bytes(&mut self, id: SlotId, class: u8, more: bool) {
        self.on_receive_end(id, class, -Errno::IO.raw_os_error());
        if more {
            self.stop_receive(id);
        }
        self.after_receive(id, more);
    }

    /// Handles a receive without bytes.
    pub(super) fn on_receive_end(&mut self, id: SlotId, class: u8, result: i32) {
        let low_water = self.parts.config.limits.input_high_water_bytes / 2;
        let Some(socket) = self.sockets.get_mut(id) else { return };
        if result == 0 {
            socket.connection.end_input();
            return socket.wake_receiver(&self.parts.departed);
        }
        match Errno::from_raw_os_error(-result) {
            Errno::NOBUFS => {
                self.parts.counters.buffers_exhausted.increment();
                // This connection may itself hold all buffers. Its handler takes the waiting bytes first, and that
                // starts the receive again.
                let wanted = socket.connection.is_discarding() || socket.receive_waiter.is_some();
                if !wanted && !socket.inbound.has_room(low_water) {
                    return;
                }
                socket.connection.starve();
                self.starved_receivers.push_back(id);
                if self.buffers.bytes(class) < HOT_BYTES {
                    self.buffers.grow(class, &self.parts.counters);
                }
            }
            Errno::CANCELED | Errno::INTR | Errno::AGAIN => {}
            error => {
                socket.connection.break_off(error);
                socket.fail(error, &self.parts);
            }
        }
    }

    /// Arms the receive again, or continues closing.
    #[inline]
    pub(super) fn after_receive(&mut self, id: SlotId, more: bool) {
        let multishot = self.multishot;
        let low_water = self.parts.config.limits.input_high_water_bytes / 2;
        let Some(socket) = self.sockets.get_mut(id) else { return };
        match socket.connection.after_receive(more) {
            AfterReceive::Nothing => return,
            AfterReceive::Receive => {}
            AfterReceive::Move => return socket.wake_receiver(&self.parts.departed),
            AfterReceive::Close => return self.finish_closing(id),
        }
        // A task still waits after the receive returned nothing: an interruption, or data that was not there.
        let wanted = socket.connection.is_discarding() || socket.receive_waiter.is_some();
        if wanted || multishot && socket.inbound.has_room(low_water) {
            // A receive without a buffer is started again later, and single receives end by themselves.
            self.parts
                .counters
                .rearms
                .add(u64::from(multishot && socket.connection.receiving() == Receiving::Idle));
            self.arm_receive(id);
        }
    }

    /// Restarts receives that waited for buffers: as many as there are buffers, first come, first served. True if
    /// others still wait for those buffers: they need another turn soon, because a started receive may find no data
    /// and take no buffer (Unix sockets before 6.17 do not report how much is there, and a receive that looks for
    /// more fails for lack of a buffer, not of data).
    pub(super) fn rearm_starved(&mut self) -> bool {
        let mut promised = [0_usize; CLASS_BYTES.len()];
        self.count_held_turns();
        for _ in 0..self.starved_receivers.len() {
            let Some(id) = self.starved_receivers.pop_front() else { return false };
            let Some(socket) = self.sockets.get_mut(id) else { continue };
            if socket.connection.receiving() != Receiving::Starved {
                continue;
            }
            let class = socket.size.class();
            let waiting = self.starved_receivers.len();
            let is_exhausted = if self.provided {
                self.is_promised(class, &mut promised[usize::from(class)])
            } else {
                self.parts.receive_pool.free(class) == 0 && self.parts.receive_pool.buffers(class) > 0
            };
            if is_exhausted {
                self.starved_receivers.push_back(id);
                continue;
            }
            let Some(socket) = self.sockets.get_mut(id) else { continue };
            if socket.connection.receiving() != Receiving::Starved {
                // Its bytes had to leave their buffers, and it is not read again before its handler asks.
                continue;
            }
            socket.connection.feed();
            socket.nonempty = true;
            self.parts.counters.rearms.increment();
            self.arm_receive(id);
            if self.starved_receivers.len() > waiting {
                // No buffer after all: the rest would find none either.
                return false;
            }
        }
        if self.starved_receivers.is_empty() {
            self.held_turns.fill(0);
            return false;
        }
        promised.iter().any(|count| *count > 0)
    }

    /// Records the sizes of which most buffers are in use, right after returned buffers were given out.
    fn count_held_turns(&mut self) {
        for class in 0..self.classes {
            let are_held =
                2 * self.buffers.available(class) < self.parts.receive_pool.buffers(class) as usize;
            let turns = &mut self.held_turns[usize::from(class)];
            *turns = if are_held { turns.saturating_add(1) } else { 0 };
        }
    }

    /// Whether every buffer of a size that the kernel may pick is promised to a starved receive; promises one more
    /// otherwise. With more receives than buffers some would only fail again, each at the cost of a completion and a
    /// submission.
    fn is_promised(&mut self, class: u8, promised: &mut usize) -> bool {
        // The size may have changed when the receive ended: its buffer ring may not exist yet.
        if self.buffers.provide(class, &self.ring).is_err() {
            return false;
        }
        let are_held = self.held_turns[usize::from(class)] >= HELD_TURNS;
        if self.buffers.available(class) <= *promised && (self.tried.is_empty() || are_held) {
            if !self.buffers.grow(class, &self.parts.counters) {
                self.release_inbound(class);
            }
            self.held_turns[usize::from(class)] = 0;
        }
        let is_promised = self.buffers.available(class) <= *promised;
        *promised += usize::from(!is_promised);
        is_promised
    }

    /// Moves the bytes that no handler has asked for out of the buffers of a size that is at its maximum: handlers
    /// that wait for slow peers, or for anything else, must not stop all other connections from being read.
    /// Connections whose bytes are moved are not read again before their handlers ask.
    fn release_inbound(&mut self, class: u8) {
        for id in self.sockets.ids() {
            let Some(socket) = self.sockets.get_mut(id) else { continue };
            if !socket.inbound.release(class) {
                continue;
            }
            if socket.connection.receiving() == Receiving::Starved && socket.receive_waiter.is_none() {
                socket.connection.feed();
            }
            self.stop_receive(id);
        }
        self.buffers.refill();
    }
}

impl Socket {
    /// Whether an armed receive has missed the end of the stream behind the bytes that it has just returned.
    ///
    /// If more than a burst is there when the receive begins, the kernel continues it after polling the socket. If
    /// that poll finds data and the end, it merges them into one event: it receives the data, and waits forever. (The
    /// kernel's fix of the spring of 2026 looks once more only if two events were counted.) A receive that starts
    /// anew finds the end.
    #[inline]
    fn may_miss_end(&mut self, counters: &Counters) -> bool {
        if self.nonempty {
            self.burst = self.burst.saturating_add(1);
            return false;
        }
        // The restarted receive will take the end, or the error.
        std::mem::take(&mut self.burst) >= KERNEL_BURST
            && has_event(self.descriptor.as_fd(), PollFlags::RDHUP, counters) == Ok(true)
    }
}
