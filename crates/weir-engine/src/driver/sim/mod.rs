//! A simulated kernel: virtual time, and sockets between the tasks of one runtime, with seeded latency and faults.
//!
//! Time stands still while tasks run and jumps to the next event or timer when all of them wait, so a program that
//! sleeps for an hour is over at once, and every duration it measures is exact. The seed decides latencies, faults,
//! spurious wake-ups and the order of events; the same program with the same options runs the same way, bit for bit.
//! When everybody waits and nothing can happen any more, the run ends with an error that lists who waits.
//!
//! It is the kernel drivers' behaviour above the seam, not their mechanism: there are no descriptors, so real
//! sockets are refused. Other threads have no place in virtual time; what they sent before the runtime would
//! declare a deadlock is still taken. Files are the real ones: an operation is performed when it is begun, and its
//! answer comes after as long as a message would take.

use std::{
    collections::VecDeque,
    io,
    os::fd::OwnedFd,
    task::{Poll, Waker},
};

use rustix::io::Errno;

use super::{
    Mechanism, Parts, Wait,
    files::{Answer, Operations, Stage, Step, perform_here},
    output::Outlet,
    readiness::ACCEPT_RETRY,
    socket::{self, ListenOptions},
};
use crate::{
    net::Address,
    pool::Lease,
    slots::{SlotId, Slots},
    time::Instant,
};

mod agenda;
mod clock;
mod closing;
mod endpoint;
mod input;
mod names;
mod network;
mod output;
mod random;
mod side;
#[cfg(test)]
mod tests;

use endpoint::{Kind, Socket};
use network::{Network, Notice};

/// The driver.
pub(crate) struct Sim {
    network: Network,
    parts: Parts,
    sockets: Slots<Socket>,
    /// Sockets with output queued since the last flush.
    dirty: Vec<SlotId>,
    notices: Vec<Notice>,
    /// Listeners waiting for free descriptors, and when to try again.
    starved_listeners: Vec<SlotId>,
    retry_at: Option<Instant>,
    /// Receivers waiting for a buffer, first come first served.
    starved_receivers: VecDeque<SlotId>,
    /// Closing sockets in the order of their linger deadlines.
    lingering: VecDeque<(Instant, SlotId)>,
    /// When to look whether those that a drain waits for have taken everything.
    look_at: Option<Instant>,
    /// With the answers that are on their way.
    files: Operations<Answer>,
    turn: u64,
    looks: u32,
    draining: bool,
}

impl Sim {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            network: Network::new(parts.config.sim),
            sockets: Slots::new(parts.config.limits.sockets_max),
            files: Operations::new(parts.config.limits.file_operations_max),
            parts,
            dirty: Vec::new(),
            notices: Vec::new(),
            starved_listeners: Vec::new(),
            retry_at: None,
            starved_receivers: VecDeque::new(),
            lingering: VecDeque::new(),
            look_at: None,
            turn: 0,
            looks: 0,
            draining: false,
        }
    }

    /// Whether the simulated process has a descriptor left.
    fn has_descriptor(&self) -> bool {
        self.sockets.len() < self.parts.config.sim.descriptors_max as usize
    }

    fn insert(&mut self, kind: Kind) -> io::Result<SlotId> {
        let limit = self.parts.config.limits.sockets_max;
        let inserted = self.sockets.insert(Socket::new(kind));
        let id = inserted.map_err(|_| {
            self.end_kind(kind);
            socket::too_many(limit)
        })?;
        match kind {
            Kind::Listener(listener) => self.network.assign_listener(listener, id),
            Kind::Connecting(end) => self.network.assign(end, id),
            Kind::Stream(end) => {
                self.network.assign(end, id);
                self.parts.counters.connections_open.increment();
            }
        }
        Ok(id)
    }

    /// Closes the network's part of a socket.
    fn end_kind(&mut self, kind: Kind) {
        match kind {
            Kind::Listener(listener) => self.network.close_listener(listener),
            Kind::Connecting(end) | Kind::Stream(end) => self.network.close(end),
        }
    }

    fn mark_dirty(&mut self, id: SlotId) {
        if let Some(socket) = self.sockets.get_mut(id)
            && socket.output.mark_dirty()
        {
            self.dirty.push(id);
        }
    }

    /// Remembers who waits to receive or accept.
    fn wait_to_receive(&mut self, id: SlotId, waker: &Waker) {
        if let Some(socket) = self.sockets.get_mut(id) {
            socket.receive_waiter = Some(waker.clone());
            self.network.perhaps_wake_for_nothing(id);
        }
    }

    fn wait_to_connect(&mut self, id: SlotId, waker: &Waker) {
        if let Some(socket) = self.sockets.get_mut(id) {
            socket.output.waiter = Some(waker.clone());
            self.network.perhaps_wake_for_nothing(id);
        }
    }

    /// Passes on what the network has to say.
    fn distribute(&mut self) {
        let mut notices = std::mem::take(&mut self.notices);
        for notice in notices.drain(..) {
            let id = match notice {
                Notice::Readable(id)
                | Notice::Writable(id)
                | Notice::Connected(id, _)
                | Notice::Reset(id)
                | Notice::Spurious(id) => id,
                Notice::File(operation) => {
                    if let Some(answer) = self.files.take_work(operation) {
                        self.files.finish(operation, answer);
                    }
                    continue;
                }
            };
            let Some(socket) = self.sockets.get_mut(id) else {
                self.parts.counters.events_stale.increment();
                continue;
            };
            match notice {
                Notice::Readable(_) if socket.discarding => self.finish_closing(id),
                Notice::Readable(_) => socket.wake_receiver(),
                Notice::Writable(_) => {
                    socket.writable = true;
                    self.write(id);
                }
                Notice::Connected(_, outcome) => self.connected(id, outcome),
                Notice::Reset(_) => {
                    socket.fail(Errno::CONNRESET);
                    if socket.closing {
                        self.release(id);
                    }
                }
                Notice::Spurious(_) => {
                    socket.wake_receiver();
                    socket.output.wake();
                }
                // Names no socket.
                Notice::File(_) => {}
            }
        }
        self.notices = notices;
    }

    fn connected(&mut self, id: SlotId, outcome: Result<(), Errno>) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        match (outcome, socket.kind) {
            (Ok(()), Kind::Connecting(end)) => {
                socket.kind = Kind::Stream(end);
                socket.writable = true;
                self.parts.counters.connects.increment();
                self.parts.counters.connections_open.increment();
                socket.output.wake();
            }
            (Ok(()), Kind::Stream(_) | Kind::Listener(_)) => {}
            (Err(error), _) => socket.fail(error),
        }
    }
}

/// What the simulator says to a real descriptor.
fn no_descriptors() -> io::Error {
    let reason =
        "the simulated kernel has no descriptors: its sockets exist between the tasks of one runtime";
    io::Error::new(io::ErrorKind::Unsupported, reason)
}

impl Mechanism for Sim {
    fn listen(&mut self, address: &Address, options: &ListenOptions) -> io::Result<SlotId> {
        if !self.has_descriptor() {
            return Err(Errno::MFILE.into());
        }
        let listener = self.network.listen(address, options.backlog, options.share_port)?;
        self.insert(Kind::Listener(listener))
    }

    fn adopt_listener(&mut self, _descriptor: OwnedFd) -> io::Result<SlotId> {
        Err(no_descriptors())
    }

    fn adopt_stream(&mut self, _descriptor: OwnedFd) -> io::Result<SlotId> {
        Err(no_descriptors())
    }

    fn detach(&mut self, _socket: SlotId) -> io::Result<OwnedFd> {
        Err(no_descriptors())
    }

    fn poll_detach(&mut self, _stream: SlotId, _waker: &Waker) -> Poll<io::Result<(OwnedFd, Vec<u8>)>> {
        Poll::Ready(Err(no_descriptors()))
    }

    fn poll_accept(&mut self, id: SlotId, waker: &Waker) -> Poll<io::Result<SlotId>> {
        if self.draining {
            return Poll::Ready(Err(socket::draining()));
        }
        let Some(Kind::Listener(listener)) = self.sockets.get(id).map(|socket| socket.kind) else {
            return Poll::Ready(Err(socket::gone()));
        };
        let waiting = self.network.waiting(listener) > 0;
        if waiting && !self.has_descriptor() {
            self.parts.counters.accepts_starved.increment();
            if !self.starved_listeners.contains(&id) {
                self.starved_listeners.push(id);
            }
            self.retry_at = Some(self.network.now() + ACCEPT_RETRY);
            self.wait_to_receive(id, waker);
            return Poll::Pending;
        }
        match self.network.accept(listener) {
            Some(end) => {
                self.parts.counters.accepts.increment();
                let admitted = self.insert(Kind::Stream(end));
                Poll::Ready(admitted.map_err(|error| socket::refuse(&self.parts.counters, error)))
            }
            None => {
                self.wait_to_receive(id, waker);
                Poll::Pending
            }
        }
    }

    fn connect(&mut self, address: &Address) -> io::Result<SlotId> {
        if !self.has_descriptor() {
            return Err(Errno::MFILE.into());
        }
        let end = self.network.connect(address)?;
        self.insert(Kind::Connecting(end))
    }

    fn poll_connect(&mut self, id: SlotId, waker: &Waker) -> Poll<io::Result<()>> {
        let Some(socket) = self.sockets.get(id) else { return Poll::Ready(Err(socket::gone())) };
        if let Some(error) = socket.error {
            return Poll::Ready(Err(error.into()));
        }
        if socket.stream().is_some() {
            return Poll::Ready(Ok(()));
        }
        self.wait_to_connect(id, waker);
        Poll::Pending
    }

    fn poll_receive(&mut self, id: SlotId, waker: &Waker) -> Poll<io::Result<Option<Lease>>> {
        let turn = self.turn;
        let Some(socket) = self.sockets.get_mut(id) else { return Poll::Ready(Err(socket::gone())) };
        let Some(end) = socket.stream() else { return Poll::Ready(Err(socket::gone())) };
        if socket.end_of_stream {
            return Poll::Ready(Ok(None));
        }
        if self.network.arrived(end) == 0 {
            return self.receive_nothing(id, end, waker);
        }
        if socket.turn != turn {
            socket.turn = turn;
            socket.turn_bytes = 0;
        }
        if socket.turn_bytes >= self.parts.config.limits.turn_bytes_max {
            waker.wake_by_ref();
            return Poll::Pending;
        }
        self.receive(id, end, waker)
    }

    fn poll_room(&mut self, stream: SlotId, waker: &Waker) -> Poll<io::Result<()>> {
        let limits = self.parts.config.limits;
        self.poll_output(stream, limits.output_high_water_bytes, limits.output_low_water_bytes, waker)
    }

    fn poll_flushed(&mut self, stream: SlotId, waker: &Waker) -> Poll<io::Result<()>> {
        self.poll_output(stream, 0, 0, waker)
    }

    fn outlet(&mut self, stream: SlotId) -> Option<Outlet<'_>> {
        let Socket { output, error, .. } = self.sockets.get_mut(stream)?;
        let limit_bytes = self.parts.config.limits.output_high_water_bytes;
        let (dirty, pool) = (&mut self.dirty, &self.parts.send_pool);
        Some(Outlet { output, error: *error, limit_bytes, dirty, pool })
    }

    fn poll_file(&mut self, stage: &mut Stage, waker: &Waker) -> Poll<Answer> {
        match self.files.poll(stage, waker) {
            Step::Over(answer) => Poll::Ready(answer),
            Step::Pending => Poll::Pending,
            Step::Admitted(request) => {
                let answer = perform_here(request, &self.parts.send_pool, &self.parts.counters);
                let operation = self.files.begin(stage, waker, answer);
                self.network.plan_file(operation);
                Poll::Pending
            }
        }
    }

    fn forget_file(&mut self, stage: &mut Stage) {
        self.files.forget(stage);
    }

    fn close(&mut self, id: SlotId) {
        self.start_closing(id);
    }

    fn abort(&mut self, id: SlotId) {
        if let Some(end) = self.sockets.get(id).and_then(Socket::stream) {
            self.network.reset(end);
        }
        self.release(id);
    }

    fn flush(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for id in dirty.drain(..) {
            if let Some(socket) = self.sockets.get_mut(id) {
                socket.output.dirty = false;
                self.write(id);
            }
        }
        if self.dirty.is_empty() {
            self.dirty = dirty;
        }
    }

    fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    fn turn(&mut self, wait: Wait) -> io::Result<()> {
        self.turn += 1;
        self.forget_lingered();
        let granted = self.grant_buffers();
        let wait = if granted { Wait::No } else { wait };
        let counters = &self.parts.counters;
        counters.turns.increment();
        counters.wait_calls.increment();
        if wait != Wait::No {
            counters.waits.increment();
        }
        self.pass_time(wait)?;
        let events = self.network.run_due(&mut self.notices);
        if events > 0 {
            self.looks = 0;
        }
        self.parts.counters.completions.add(self.notices.len() as u64);
        self.parts.counters.completions_per_turn_max.raise_to(self.notices.len() as u64);
        self.distribute();
        self.retry();
        Ok(())
    }

    fn deadline(&self) -> Option<Instant> {
        let linger = self.lingering.front().map(|(at, _)| *at);
        [self.retry_at, self.look_at, linger].into_iter().flatten().min()
    }

    fn drain(&mut self) {
        self.draining = true;
        for id in self.sockets.ids() {
            if let Some(socket) = self.sockets.get_mut(id) {
                socket.wake_receiver();
            }
        }
    }

    fn abort_all(&mut self) {
        for id in self.sockets.ids() {
            let Some(socket) = self.sockets.get_mut(id) else { continue };
            socket.fail(Errno::CONNABORTED);
            if socket.closing {
                self.abort(id);
            }
        }
    }

    fn sockets(&self) -> usize {
        self.sockets.len()
    }

    fn local_address(&self, id: SlotId) -> io::Result<Address> {
        let name = match self.sockets.get(id).ok_or_else(socket::gone)?.kind {
            Kind::Listener(listener) => self.network.listener_address(listener),
            Kind::Connecting(end) | Kind::Stream(end) => self.network.address(end),
        };
        name.cloned().ok_or_else(unnamed)
    }

    fn peer_address(&self, id: SlotId) -> io::Result<Address> {
        let end = self.sockets.get(id).and_then(Socket::stream).ok_or_else(socket::gone)?;
        self.network.peer_address(end).cloned().ok_or_else(unnamed)
    }

    fn virtual_now(&self) -> Option<Instant> {
        Some(self.network.now())
    }
}

fn unnamed() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "the socket has no name")
}
