//! Receiving on simulated sockets, and the queue of those who wait for a buffer.

use std::{
    io,
    task::{Poll, Waker},
};

use rustix::io::Errno;

use super::{Sim, endpoint::Turn, network::End, socket};
use crate::{pool::Lease, slots::SlotId};

impl Sim {
    /// One receive into a pooled buffer.
    pub(super) fn receive(&mut self, id: SlotId, end: End, waker: &Waker) -> Poll<io::Result<Option<Lease>>> {
        let classes = self.parts.receive_pool.classes();
        let Some(socket) = self.sockets.get_mut(id) else { return Poll::Ready(Err(socket::gone())) };
        let counters = &self.parts.counters;
        // Who comes new waits behind those who wait already.
        let must_queue = !self.starved_receivers.is_empty() && socket.buffer_turn != Turn::Granted;
        let taken = if must_queue { None } else { self.parts.receive_pool.take(socket.size.class()) };
        let Some(mut buffer) = taken else {
            match std::mem::replace(&mut socket.buffer_turn, Turn::Waiting) {
                Turn::None => {
                    counters.buffers_exhausted.increment();
                    self.starved_receivers.push_back(id);
                }
                // Somebody else was quicker.
                Turn::Granted => self.starved_receivers.push_front(id),
                Turn::Waiting => {}
            }
            self.wait_to_receive(id, waker);
            return Poll::Pending;
        };
        socket.buffer_turn = Turn::None;
        let capacity = buffer.capacity();
        counters.recv_calls.increment();
        match self.network.receive(end, buffer.as_mut_slice()) {
            Ok(length) => {
                counters.receives.increment();
                counters.bytes_received.add(length as u64);
                socket.turn_bytes += length;
                if length == capacity as usize {
                    counters.receives_full.increment();
                }
                if socket.size.observe(length, capacity, classes) {
                    counters.buffer_resizes.increment();
                }
                Poll::Ready(Ok(Some(buffer.lease(length))))
            }
            Err(error) => {
                socket.fail(error);
                Poll::Ready(Err(error.into()))
            }
        }
    }

    /// What a connection without bytes to read says: its failure, its end, or nothing yet.
    pub(super) fn receive_nothing(
        &mut self,
        id: SlotId,
        end: End,
        waker: &Waker,
    ) -> Poll<io::Result<Option<Lease>>> {
        let Some(socket) = self.sockets.get_mut(id) else { return Poll::Ready(Err(socket::gone())) };
        let counters = &self.parts.counters;
        if let Some(error) = socket.error {
            return Poll::Ready(Err(error.into()));
        }
        counters.recv_calls.increment();
        match self.network.receive(end, &mut []) {
            Ok(_) => {
                socket.end_of_stream = true;
                Poll::Ready(Ok(None))
            }
            Err(Errno::AGAIN) if self.draining => Poll::Ready(Ok(None)),
            Err(Errno::AGAIN) => {
                counters.would_block.increment();
                self.wait_to_receive(id, waker);
                Poll::Pending
            }
            Err(error) => {
                socket.fail(error);
                Poll::Ready(Err(error.into()))
            }
        }
    }

    /// Wakes as many receivers as there are buffers again, first come first served. True: somebody was woken.
    pub(super) fn grant_buffers(&mut self) -> bool {
        if self.starved_receivers.is_empty() {
            return false;
        }
        let classes = self.parts.receive_pool.classes();
        let mut free: Vec<usize> = (0..classes).map(|class| self.parts.receive_pool.free(class)).collect();
        let mut woken = false;
        let sockets = &mut self.sockets;
        self.starved_receivers.retain(|&id| {
            let Some(socket) = sockets.get_mut(id) else { return false };
            let left = &mut free[usize::from(socket.size.class())];
            if *left == 0 {
                return true;
            }
            socket.buffer_turn = Turn::Granted;
            if socket.receive_waiter.is_some() {
                *left -= 1;
                woken = true;
                socket.wake_receiver();
            }
            false
        });
        woken
    }
}
