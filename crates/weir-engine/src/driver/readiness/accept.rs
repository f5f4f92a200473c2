//! Accepting, tried before waiting: the next connection, its admission, and listeners that may not accept now.

use std::{
    io,
    os::fd::AsFd,
    task::{Poll, Waker},
};

use super::{Backend, Kernel, Kind, Readiness};
use crate::{
    driver::error::{self, AcceptFailure},
    slab::SlotId,
};

/// Connections one listener may accept in one turn before other sockets are served.
const TURN_ACCEPTS_MAX: usize = 64;

impl<B: Backend<K>, K: Kernel> Readiness<B, K> {
    /// The next connection of a listener, when a task waits and there is room.
    pub(super) fn accept_next(&mut self, listener: SlotId, waker: &Waker) -> Poll<io::Result<SlotId>> {
        loop {
            let Some(socket) = self.sockets.get_mut(listener) else {
                return Poll::Ready(Err(error::gone()));
            };
            if !socket.connection.has_input() {
                return self.wait_readable(listener, waker);
            }
            if socket.turn != self.turn {
                socket.turn = self.turn;
                socket.turn_bytes = 0;
            }
            if socket.turn_bytes >= TURN_ACCEPTS_MAX {
                self.parts.departed.wake_by_ref(waker);
                return Poll::Pending;
            }
            socket.turn_bytes += 1;
            let lowest_free = || self.kernel.lowest_free(self.parts.wake.as_fd());
            if !self.reserve.has_room(&self.parts.counters, lowest_free) {
                self.pause_accepts(listener, waker);
                return Poll::Pending;
            }
            let counters = &self.parts.counters;
            counters.accept_calls.increment();
            let waits = self.backend.blocks_on_writes();
            let accept = || self.kernel.accept(&socket.descriptor, waits);
            let error = match counters.clock.call(accept) {
                Ok(descriptor) => match self.admit(descriptor) {
                    Some(id) => return Poll::Ready(Ok(id)),
                    None => continue,
                },
                Err(error) => error,
            };
            match error::accept_failure(error) {
                AcceptFailure::Empty => socket.connection.await_input(),
                AcceptFailure::Again => {}
                AcceptFailure::Starved => {
                    self.pause_accepts(listener, waker);
                    return Poll::Pending;
                }
                AcceptFailure::Unforeseen => {
                    self.parts.counters.accepts_failed.increment();
                    return Poll::Ready(Err(error.into()));
                }
            }
        }
    }

    /// Registers an accepted connection. `None`: there is no room for it, and it is closed and counted.
    fn admit(&mut self, descriptor: K::Socket) -> Option<SlotId> {
        self.parts.counters.accepts.increment();
        self.reserve.note(self.kernel.number(&descriptor));
        let admitted = self.backend.check(&descriptor);
        let admitted = admitted.and_then(|()| self.insert(descriptor, Kind::Stream));
        admitted.inspect_err(|_| error::count_refused(&self.parts.counters)).ok()
    }

    /// Descriptors or memory are short: accepting resumes when some are free, or after a pause.
    fn pause_accepts(&mut self, listener: SlotId, waker: &Waker) {
        self.parts.counters.starved();
        if let Some(socket) = self.sockets.get_mut(listener) {
            self.parts.departed.wait(&mut socket.receive_waiter, waker);
        }
        self.retries.pause_accepts(listener, self.kernel.now());
        // Level-triggered calls would report the waiting connections all the time; an exclusive watch cannot be
        // changed, only ended.
        self.pause_reading(listener, true);
    }
}
