//! The interest in each socket; on epoll every change is a system call.

use std::io;

use rustix::io::Errno;

use super::{Backend, Interest, Kernel, Kind, Readiness, token};
use crate::{counters::Counters, driver::error, slab::SlotId};

impl<B: Backend<K>, K: Kernel> Readiness<B, K> {
    /// Makes sure that the backend reports the events that the socket waits for.
    pub(super) fn watch(&mut self, id: SlotId, wanted: Interest) -> io::Result<()> {
        let Some(socket) = self.sockets.get_mut(id) else { return Err(error::gone()) };
        let edge = self.backend.is_edge_triggered();
        if socket.watched && (edge || socket.interest == wanted) {
            return Ok(());
        }
        let descriptor = &socket.descriptor;
        let exclusive = matches!(socket.kind, Kind::Listener { exclusive: true });
        telling(&mut self.backend, &self.parts.counters, |backend| match socket.watched {
            true => backend.change(descriptor, token(id), wanted),
            false => backend.add(descriptor, token(id), wanted, exclusive),
        })?;
        socket.watched = true;
        socket.interest = wanted;
        Ok(())
    }

    /// Adds a direction to the interest. If watching fails, the connection fails.
    pub(super) fn watch_or_fail(&mut self, id: SlotId, read: bool, write: bool) -> io::Result<()> {
        let Some(socket) = self.sockets.get(id) else { return Err(error::gone()) };
        let wanted = Interest { read: socket.interest.read || read, write: socket.interest.write || write };
        self.watch(id, wanted).inspect_err(|_| {
            if let Some(socket) = self.sockets.get_mut(id) {
                socket.fail(Errno::NOMEM, &self.kernel, &self.parts);
            }
        })
    }

    /// There is no reader: a level-triggered call must not report the same bytes again and again.
    pub(super) fn pause_reading(&mut self, id: SlotId, ended: bool) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        if self.backend.is_edge_triggered() || !socket.watched {
            return;
        }
        if ended && (socket.send.queue.is_empty() || socket.send.dirty) {
            // Errors are reported regardless of the interest: stop watching until a task asks, or until a retried
            // send finds no room.
            return self.stop_watching(id);
        }
        let wanted = Interest { read: false, ..socket.interest };
        self.narrow(id, wanted);
    }

    /// Removes directions from the interest. Watching ends if the kernel refuses the change, as it does for an
    /// exclusive watch: otherwise a level-triggered call would report the same event again and again.
    pub(super) fn narrow(&mut self, id: SlotId, wanted: Interest) {
        if self.watch(id, wanted).is_err() {
            self.stop_watching(id);
            if wanted != Interest::default() {
                // The socket stores a failure.
                let _ = self.watch_or_fail(id, wanted.read, wanted.write);
            }
        }
    }

    /// Stops watching a socket that stays open.
    fn stop_watching(&mut self, id: SlotId) {
        if let Some(socket) = self.sockets.get_mut(id)
            && socket.watched
        {
            unwatch(&mut self.backend, &socket.descriptor, &self.parts.counters);
            socket.watched = false;
            socket.interest = Interest::default();
        }
    }
}

/// Stops watching.
pub(super) fn unwatch<K: Kernel>(backend: &mut impl Backend<K>, socket: &K::Socket, counters: &Counters) {
    telling(backend, counters, |backend| backend.remove(socket));
}

/// Changes the interest. The change is counted and timed if it is a system call.
pub(super) fn telling<B: Backend<K>, K: Kernel, T>(
    backend: &mut B,
    counters: &Counters,
    change: impl FnOnce(&mut B) -> T,
) -> T {
    if !backend.enters_for_interest() {
        return change(backend);
    }
    counters.interest_calls.increment();
    counters.clock.call(|| change(backend))
}
