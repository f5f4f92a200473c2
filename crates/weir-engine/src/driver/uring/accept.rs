//! Accepts and connects.

use std::{
    io,
    net::SocketAddr,
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
    task::{Poll, Waker},
};

use io_uring::opcode;
use rustix::io::Errno;

use super::{
    ACCEPTED_MAX, CQE_MORE, Kind, PlainEntry, Receiving, Socket, SocketKind, Target, Uring, ring::Completion,
};
use crate::{
    address::Address,
    clock::monotonic,
    driver::{
        error::{self, AcceptFailure},
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
        while let Some(descriptor) = self.sockets.get_mut(listener).and_then(Socket::next_accepted) {
            self.arm_accept(listener);
            match self.insert(descriptor, SocketKind::Stream) {
                Ok(id) => return Poll::Ready(Ok(id)),
                // There is no room for it, and it is closed.
                Err(_) => error::count_refused(&self.parts.counters),
            }
        }
        let Some(socket) = self.sockets.get_mut(listener) else { return Poll::Ready(Err(error::gone())) };
        if let Some(error) = socket.connection.take_error() {
            // The next call tries again.
            return Poll::Ready(Err(error.into()));
        }
        self.parts.departed.wait(&mut socket.receive_waiter, waker);
        self.arm_accept(listener);
        Poll::Pending
    }

    /// A descriptor is free, or a pause is over.
    pub(super) fn resume_accepts(&mut self) {
        for id in self.retries.take_listeners() {
            self.arm_accept(id);
        }
    }

    /// Starts an accept, unless one is in flight, enough connections wait, or the listener waits for descriptors.
    pub(super) fn arm_accept(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let blocked = socket.connection.receiving() != Receiving::Idle
            || socket.connection.is_closing()
            || socket.accepted() >= ACCEPTED_MAX / 2;
        // Connections of a burst are handed out while their listener waits for descriptors: none of them may start
        // another try or prolong the wait.
        if blocked || self.draining.is_some() || self.retries.is_paused(id) {
            return;
        }
        if !self.reserve.has_room(&self.parts.counters, || socket::lowest_free(socket.descriptor.as_fd())) {
            return self.pause_accepts(id);
        }
        socket.connection.begin_receive(Receiving::Armed(0));
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
            socket.connection.end_receive();
        }
        if socket.connection.is_closing() {
            return self.finish_closing(id);
        }
        if let Some(descriptor) = accepted {
            self.parts.counters.accepts.increment();
            self.reserve.note(descriptor.as_raw_fd());
            self.accepts_in_bursts = self.reserve.leaves_a_burst(descriptor.as_fd());
            if let SocketKind::Listener(accepted) = &mut socket.kind {
                accepted.push_back(descriptor);
            }
            socket.wake_receiver(&self.parts.departed);
            if more && (socket.accepted() >= ACCEPTED_MAX || !self.accepts_in_bursts) {
                self.stop_receive(id);
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
        self.retries.pause_accepts(id, monotonic());
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
        socket.connection.begin_receive(Receiving::Polling);
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
        let id = self.insert(descriptor, SocketKind::Connecting(Box::new(name)))?;
        let socket = self.sockets.get_mut(id).ok_or_else(error::gone)?;
        let Target { fd, flags } = socket.target;
        // In its place before its address is taken.
        let SocketKind::Connecting(name) = &socket.kind else { return Err(error::gone()) };
        let entry = opcode::Connect::new(fd, name.as_ptr().cast(), name.len()).build();
        socket.connection.begin();
        // SAFETY: the slot owns the name, in a separate box, until `on_connect` sees the only completion.
        unsafe { self.push_naming_memory(entry.flags(flags).user_data(Kind::Connect.token(id))) };
        Ok(id)
    }

    pub(super) fn on_connect(&mut self, id: SlotId, result: i32) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        socket.connection.finish();
        if socket.connection.is_closing() {
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

impl Socket {
    /// The next accepted connection of a listener.
    fn next_accepted(&mut self) -> Option<OwnedFd> {
        match &mut self.kind {
            SocketKind::Listener(accepted) => accepted.pop_front(),
            SocketKind::Connecting(_) | SocketKind::Stream => None,
        }
    }

    /// Connections that wait for `accept`.
    fn accepted(&self) -> usize {
        match &self.kind {
            SocketKind::Listener(accepted) => accepted.len(),
            SocketKind::Connecting(_) | SocketKind::Stream => 0,
        }
    }
}
