//! Sending: tried first, waited for only after `EAGAIN`. The rest of a short send continues when the kernel reports
//! room.

use std::{
    io::{self, IoSlice},
    task::{Poll, Waker},
};

use rustix::io::Errno;

#[cfg(test)]
use super::planted_bugs::{self, Plant};
use super::{Backend, Interest, Kernel, Kind, Readiness, Socket};
use crate::{
    counters::Counters,
    driver::{
        connection::Step,
        contract::DriverParts,
        error::{self, SendFailure},
        files::{self, SendOutcome},
        socket::{self, Sent},
    },
    send_queue::Front,
    slab::SlotId,
};

impl<B: Backend<K>, K: Kernel> Readiness<B, K> {
    /// Sends as much of the queue as the kernel takes, from where the last send stopped; of a file no more than a
    /// share. In a flush, a file that has used its share continues after it.
    pub(super) fn send_queued(&mut self, id: SlotId) {
        let (limits, turn) = (self.parts.config.limits, self.turn);
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let queued = socket.send.queue.len();
        // A blocking socket takes everything unless a signal interrupts it: a short send there does not show a lack
        // of room.
        let waits = self.backend.blocks_on_writes();
        while socket.connection.has_room()
            && !socket.send.queue.is_empty()
            && socket.connection.error().is_none()
        {
            let outcome = if let Some(Front::File(_)) = socket.send.queue.front() {
                let share_bytes = limits.turn_bytes_max.saturating_sub(queued - socket.send.queue.len());
                socket.send_file(share_bytes, &self.kernel, &self.parts.counters)
            } else {
                socket.send(&self.kernel, &self.parts.counters)
            };
            match outcome {
                Ok(SendOutcome::SocketFull) if !waits => socket.connection.await_room(),
                Ok(SendOutcome::Done | SendOutcome::SocketFull) => {}
                Ok(SendOutcome::ShareSpent) => {
                    if socket.send.mark_dirty() {
                        self.unfinished.push(id);
                    }
                    break;
                }
                Err(error) => {
                    if socket.was_refused(error, &self.kernel, &self.parts) {
                        return self.wait_for_memory(id);
                    }
                }
            }
        }
        if socket.send_turn != turn {
            socket.send_turn = turn;
            socket.send_turn_bytes = 0;
        }
        socket.send_turn_bytes += queued - socket.send.queue.len();
        socket.send.wake_if_low(limits.output_low_water_bytes, &self.parts.departed);
        self.after_send(id);
    }

    /// As [`Self::send_queued`], outside a flush.
    pub(super) fn send_queued_outside_flush(&mut self, id: SlotId) {
        self.send_queued(id);
        self.dirty.append(&mut self.unfinished);
    }

    /// The kernel has room for a socket that had none.
    pub(super) fn on_writable(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        if !socket.connection.find_room() {
            return;
        }
        if socket.kind == Kind::Connecting {
            socket.send.wake(&self.parts.departed);
        } else {
            self.send_queued_outside_flush(id);
        }
    }

    /// The kernel is short of memory: the queue waits, including bytes that are added to it.
    fn wait_for_memory(&mut self, id: SlotId) {
        let low_water = self.parts.config.limits.output_low_water_bytes;
        let Some(socket) = self.sockets.get_mut(id) else { return };
        socket.send.wake_if_low(low_water, &self.parts.departed);
        if socket.send.mark_dirty() {
            self.retries.pause_send(id, self.kernel.now());
        }
        // There is room, and a level-triggered call would report it all the time until there is memory too.
        self.stop_watching_for_room(id);
    }

    /// Stops watching a socket that no longer waits for room.
    fn stop_watching_for_room(&mut self, id: SlotId) {
        #[cfg(test)]
        if planted_bugs::is_planted(Plant::RoomStaysWatched) {
            return;
        }
        let Some(socket) = self.sockets.get(id) else { return };
        if socket.interest.write && !self.backend.is_edge_triggered() {
            let wanted = Interest { write: false, ..socket.interest };
            self.narrow(id, wanted);
        }
    }

    /// The steps after the queue has become empty or could not be emptied.
    pub(super) fn after_send(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        if !socket.send.queue.is_empty() && socket.connection.error().is_none() {
            if !socket.connection.has_room() {
                // A slow peer must not hold the runtime's buffers.
                socket.send.queue.release_leases(0);
                #[cfg(test)]
                if planted_bugs::is_planted(Plant::RoomNotWatched) {
                    return;
                }
                // The socket stores a failure.
                let _ = self.watch_or_fail(id, false, true);
            } else if socket.interest.write {
                // A file has used its share, and continues without an event.
                self.stop_watching_for_room(id);
            }
            return;
        }
        if socket.connection.error().is_none() && socket.send.take_end() {
            let counters = &self.parts.counters;
            if let Err(error) = self.kernel.end_output(&socket.descriptor, counters)
                && error != Errno::NOTCONN
            {
                socket.fail(error, &self.kernel, &self.parts);
            }
        }
        match socket.connection.step(false, self.draining) {
            Step::Wait if socket.interest.write => self.stop_watching_for_room(id),
            Step::Wait => {}
            Step::EndOutput | Step::Discard => _ = self.discard(id),
            Step::Cancel | Step::Close => self.release(id),
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
        let Some(socket) = self.sockets.get(id) else { return Poll::Ready(Err(error::gone())) };
        if socket.connection.error().is_none() && socket.send.queue.len() > limit {
            let has_had_its_share = socket.send_turn == self.turn
                && socket.send_turn_bytes >= self.parts.config.limits.turn_bytes_max;
            if has_had_its_share && socket.connection.has_room() {
                // A peer that takes everything at once must not starve the others.
                self.parts.departed.wake_by_ref(waker);
                return Poll::Pending;
            }
            self.send_queued_outside_flush(id);
        }
        let Some(socket) = self.sockets.get_mut(id) else { return Poll::Ready(Err(error::gone())) };
        socket.send.poll_at_most(socket.connection.error(), limit, target, waker, &self.parts.departed)
    }
}

impl<D> Socket<D> {
    /// One send of the bytes at the front of the queue.
    #[inline]
    fn send(&mut self, kernel: &impl Kernel<Socket = D>, counters: &Counters) -> Result<SendOutcome, Errno> {
        counters.send_calls.increment();
        #[cfg(test)]
        super::tests::refuse()?;
        let socket = &self.descriptor;
        let send = |bytes: &[u8]| kernel.send(socket, bytes);
        let send_slices = |slices: &[IoSlice<'_>], more| kernel.send_slices(socket, slices, more);
        let pass = || socket::pass_bytes(&self.send.queue, send, send_slices);
        let Sent { bytes, offered } = counters.clock.call(pass)?;
        counters.sends.increment();
        counters.bytes_sent.add(bytes as u64);
        #[cfg(test)]
        let bytes =
            bytes - usize::from(bytes < offered && planted_bugs::is_planted(Plant::RestFromWrongPlace));
        self.send.queue.consume(bytes);
        if bytes == offered {
            return Ok(SendOutcome::Done);
        }
        counters.sends_short.increment();
        Ok(SendOutcome::SocketFull)
    }

    /// Sends a share of the file at the front of the queue.
    fn send_file(
        &mut self,
        share_bytes: usize,
        kernel: &impl Kernel<Socket = D>,
        counters: &Counters,
    ) -> Result<SendOutcome, Errno> {
        let (socket, queue) = (&self.descriptor, &mut self.send.queue);
        let has_room = || kernel.has_room(socket, counters);
        files::send_share(queue, share_bytes, counters, has_room, |range, bytes_max| {
            kernel.send_file(socket, range, bytes_max, counters)
        })
    }

    /// Records a failed send. True: the kernel had no memory for it.
    fn was_refused(&mut self, error: Errno, kernel: &impl Kernel<Socket = D>, parts: &DriverParts) -> bool {
        match error::send_failure(error) {
            SendFailure::Again => {}
            SendFailure::Full => {
                parts.counters.would_block.increment();
                self.connection.await_room();
            }
            SendFailure::NoMemory => return true,
            SendFailure::Fatal(error) => self.fail(error, kernel, parts),
        }
        false
    }
}
