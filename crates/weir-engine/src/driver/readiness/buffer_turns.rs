//! The queue for receive buffers when there are none: first come, first served.

use std::task::Waker;

use super::{Backend, Kernel, Readiness};
use crate::{driver::connection::Receiving, slab::SlotId};

impl<B: Backend<K>, K: Kernel> Readiness<B, K> {
    /// There is no buffer for a receive, or other receivers came before it.
    #[cold]
    pub(super) fn wait_for_buffer(&mut self, id: SlotId, waker: &Waker) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        self.parts.departed.wait(&mut socket.receive_waiter, waker);
        match socket.connection.starve() {
            Receiving::Starved => {}
            // Another receiver took the buffer meanwhile.
            Receiving::Granted => self.starved_receivers.push_front(id),
            _ => {
                self.parts.counters.buffers_exhausted.increment();
                self.starved_receivers.push_back(id);
            }
        }
        let ended = socket.ended;
        self.pause_reading(id, ended);
    }

    /// Wakes as many receivers as there are buffers again, first come first served. True: at least one was woken.
    pub(super) fn grant_buffers(&mut self) -> bool {
        let pool = &self.parts.receive_pool;
        // A size that has no buffers yet may get some at the first request.
        let free = |class| if pool.buffers(class) > 0 { pool.free(class) } else { usize::MAX };
        let mut left: Vec<usize> = (0..self.classes).map(free).collect();
        let mut woken = false;
        let (sockets, departed) = (&mut self.sockets, &self.parts.departed);
        self.starved_receivers.retain(|&id| {
            let Some(socket) = sockets.get_mut(id) else { return false };
            let left = &mut left[usize::from(socket.size.class())];
            if *left == 0 {
                return true;
            }
            #[cfg(test)]
            if super::planted_bugs::is_planted(super::planted_bugs::Plant::TurnIsLost) {
                return true;
            }
            socket.connection.grant();
            if socket.receive_waiter.is_some() {
                *left -= 1;
                woken = true;
                socket.wake_receiver(departed);
            }
            false
        });
        woken
    }
}
