//! Accepts and connects.

use std::{
    io,
    net::SocketAddr,
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
    task::{Poll, Waker},
};

use io_uring::opcode;
use rustix::io::Errno;

use super::{ACCEPTED_MAX, Arm, CQE_MORE, Kind, PlainEntry, SocketKind, Target, Uring, ring::Completion};
use crate::{
    address::Address,
    clock::monotonic,
    driver::{
        error::{self, ACCEPT_RETRY, AcceptFailure},
        socket,
    },
    slab::SlotId,
};

impl Uring {
    /// The next connection of a listener, if there is one.
    pub(super) fn accept_next(&mut self, listener: SlotId, waker: &Waker) -> Poll<io::Result<SlotId>> {
        if self.draining.is_some() {
            return Poll::Ready(Err(error::draining()));
        }
        while let Some(descriptor) =
            self.sockets.get_mut(listener).and_then(|socket| socket.accepted.pop_front())
        {
            self.arm_accept(listener);
            match self.insert(descriptor, SocketKind::Stream) {
                Ok(id) => return Poll::Ready(Ok(id)),
                // There is no room for it, and it is closed.
                Err(_) => error::count_refused(&self.parts.counters),
            }
        }
        let Some(socket) = self.sockets.get_mut(listener) else { return Poll::Ready(Err(error::gone())) };
        if let Some(error) = socket.error.take() {
            // The next call tries again.
            return Poll::Ready(Err(error.into()));
        }
        self.parts.departed.wait(&mut socket.receive_waiter, waker);
        self.arm_accept(listener);
        Poll::Pending
    }

    pub(super) fn wake_starved_listeners(&mut self) {
        self.retry_at = None;
        for id in std::mem::take(&mut self.starved_listeners) {
            self.arm_accept(id);
        }
    }

    /// Starts an accept, unless one is in flight, enough connections wait, or the listener waits for descriptors.
    pub(super) fn arm_accept(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let blocked = socket.arm != Arm::Idle || socket.closing || socket.accepted.len() >= ACCEPTED_MAX / 2;
        // Connections of a burst are handed out while their listener waits for descriptors: none of them may start
        // another try or prolong the wait.
        if blocked || self.draining.is_some() || self.starved_listeners.contains(&id) {
            return;
        }
        if !self.reserve.has_room(&self.parts.counters, || socket::lowest_free(socket.descriptor.as_fd())) {
            return self.pause_accepts(id);
        }
        socket.arm = Arm::Armed(0);
        socket.operations += 1;
        let entry = PlainEntry::accept(socket.target, self.accept_multishot && self.accepts_in_bursts);
        self.push(entry.token(Kind::Accept.token(id)));
    }

    pub(super) fn on_accept(&mut self, id: SlotId, completion: Completion) {
        // SAFETY: a non-negative result of an accept is a new descriptor that nobody else owns.
        let accepted = (completion.result >= 0).then(|| unsafe { OwnedFd::from_raw_fd(completion.result) });
        let Some(socket) = self.sockets.get_mut(id) else {
            self.parts.counters.events_stale.increment();
            return;
        };
        let more = completion.flags & CQE_MORE != 0;
        if !more {
            socket.operations -= 1;
            socket.arm = Arm::Idle;
        }
        if socket.closing {
            return self.finish_closing(id);
        }
        if let Some(descriptor) = accepted {
            self.parts.counters.accepts.increment();
            self.reserve.note(descriptor.as_raw_fd());
            self.accepts_in_bursts = self.reserve.leaves_a_burst(descriptor.as_fd());
            socket.accepted.push_back(descriptor);
            socket.wake_receiver(&self.parts.departed);
            if more
                && (socket.accepted.len() >= ACCEPTED_MAX || !self.accepts_in_bursts)
                && socket.arm != Arm::Stopping
            {
                socket.arm = Arm::Stopping;
                self.cancel(Kind::Accept, id);
            } else if !more {
                if self.accept_multishot && self.accepts_in_bursts {
                    self.parts.counters.rearms.increment();
                }
                self.arm_accept(id);
            }
            return;
        }
        let error = Errno::from_raw_os_error(-completion.result);
        match error::accept_failure(error) {
            _ if error == Errno::CANCELED => self.arm_accept(id),
            AcceptFailure::Empty => self.await_arrival(id),
            AcceptFailure::Again => self.arm_accept(id),
            AcceptFailure::Starved => self.pause_accepts(id),
            AcceptFailure::Unforeseen => {
                self.parts.counters.accepts_failed.increment();
                socket.fail(error, &self.parts);
            }
        }
    }

    /// Descriptors or memory are short: accepting resumes when some are free, or after a pause.
    fn pause_accepts(&mut self, id: SlotId) {
        self.parts.counters.starved();
        self.starved_listeners.push(id);
        self.retry_at = Some(monotonic() + ACCEPT_RETRY);
    }

    /// An accept that found no connection ended instead of waiting. Before 5.18 (and the stable kernels that have its
    /// fix) that happens on a non-blocking listener, and restarting it at once would spin. The flag belongs to
    /// everyone who shares the listener, including other processes, so it stays as it is: the driver waits for an
    /// arrival first.
    fn await_arrival(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        if self.draining.is_some() {
            return;
        }
        socket.arm = Arm::Polling;
        socket.operations += 1;
        let entry = PlainEntry::poll(socket.target, libc::POLLIN);
        self.push(entry.token(Kind::Readable.token(id)));
    }

    /// Starts a connection.
    pub(super) fn start_connect(
        &mut self,
        address: &Address,
        local: Option<SocketAddr>,
    ) -> io::Result<SlotId> {
        let descriptor = socket::for_connect(address, local, &self.parts)?;
        let name = address.to_socket_address()?;
        let id = self.insert(descriptor, SocketKind::Connecting)?;
        let socket = self.sockets.get_mut(id).ok_or_else(error::gone)?;
        let Target { fd, flags } = socket.target;
        // In its place before its address is taken.
        let name = socket.address.insert(Box::new(name));
        let entry = opcode::Connect::new(fd, name.as_ptr().cast(), name.len()).build();
        socket.operations += 1;
        // SAFETY: the slot owns the name, in a separate box, until `on_connect` sees the only completion.
        unsafe { self.push_naming_memory(entry.flags(flags).user_data(Kind::Connect.token(id))) };
        Ok(id)
    }

    pub(super) fn on_connect(&mut self, id: SlotId, result: i32) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        socket.operations -= 1;
        socket.address = None;
        if socket.closing {
            return self.finish_closing(id);
        }
        socket.kind = SocketKind::Stream;
        self.parts.counters.connections_open.increment();
        if result < 0 {
            socket.fail(Errno::from_raw_os_error(-result), &self.parts);
        } else {
            self.parts.counters.connects.increment();
            socket.send.wake(&self.parts.departed);
        }
    }
}
