//! A simulated kernel: virtual time, and sockets between the tasks of one runtime, with seeded latency and faults.
//!
//! Time stands still while tasks run and jumps to the next event or timer when all of them wait, so a program that
//! sleeps for an hour is over at once, and every duration it measures is exact. The seed decides latencies, faults,
//! spurious wake-ups and the order of events; the same program with the same options runs the same way, bit for bit.
//! When everybody waits and nothing can happen any more, the run ends with an error that lists who waits.
//!
//! It is the kernel drivers' behaviour above the seam, not their mechanism: there are no descriptors, so real
//! sockets are refused. Other threads have no place in virtual time; what they sent before the runtime would
//! declare a deadlock is still taken.

use std::{
    collections::VecDeque,
    io::{self, IoSlice},
    os::fd::OwnedFd,
    task::{Poll, Waker},
    time::Duration,
};

use rustix::io::Errno;

use super::{
    Mechanism, Parts, Wait,
    readiness::ACCEPT_RETRY,
    socket::{self, ListenOptions},
};
use crate::{
    net::Address,
    outbound::Outgoing,
    pool::Lease,
    slots::{SlotId, Slots},
    time::Instant,
};

mod agenda;
mod closing;
mod endpoint;
mod names;
mod network;
mod random;
mod side;
#[cfg(test)]
mod tests;

use endpoint::{Kind, Socket, Turn};
use network::{End, Network, Notice};

/// Turns in a row in which tasks only looked: then time goes on although somebody is always ready, so that a loop
/// that yields until its time has come does come to an end.
const LOOKS_MAX: u32 = 1000;
/// How far time goes on at each further look.
const LOOK: Duration = Duration::from_micros(1);
/// Chunks gathered into one send.
const SLICES_MAX: usize = 16;

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
    turn: u64,
    looks: u32,
    draining: bool,
}

impl Sim {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            network: Network::new(parts.config.sim),
            sockets: Slots::new(parts.config.limits.sockets_max),
            parts,
            dirty: Vec::new(),
            notices: Vec::new(),
            starved_listeners: Vec::new(),
            retry_at: None,
            starved_receivers: VecDeque::new(),
            lingering: VecDeque::new(),
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
            && !std::mem::replace(&mut socket.dirty, true)
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

    fn wait_to_send(&mut self, id: SlotId, target: usize, waker: &Waker) {
        if let Some(socket) = self.sockets.get_mut(id) {
            socket.send_waiter = Some(waker.clone());
            socket.send_waits_for = target;
            self.network.perhaps_wake_for_nothing(id);
        }
    }

    /// Sends as much of the queue as the network takes.
    fn write(&mut self, id: SlotId) {
        let low_water = self.parts.config.limits.output_low_water_bytes;
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let Some(end) = socket.stream() else { return };
        let counters = &self.parts.counters;
        while socket.writable && !socket.outbound.is_empty() && socket.error.is_none() {
            let mut slices: [IoSlice<'_>; SLICES_MAX] = std::array::from_fn(|_| IoSlice::new(&[]));
            let count = socket.outbound.gather(&mut slices);
            let asked: usize = slices[..count].iter().map(|slice| slice.len()).sum();
            counters.send_calls.increment();
            match self.network.send(end, &slices[..count]) {
                Ok(sent) => {
                    counters.sends.increment();
                    counters.bytes_sent.add(sent as u64);
                    socket.outbound.consume(sent);
                    if sent < asked {
                        counters.sends_short.increment();
                        socket.writable = false;
                    }
                }
                Err(Errno::AGAIN) => {
                    counters.would_block.increment();
                    socket.writable = false;
                }
                Err(error) => socket.fail(error),
            }
        }
        if socket.outbound.len() <= socket.send_waits_for.min(low_water) {
            socket.wake_sender();
        }
        self.after_write(id);
    }

    /// What follows when the queue is empty, or could not be emptied.
    fn after_write(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let Some(end) = socket.stream() else { return };
        if !socket.outbound.is_empty() && socket.error.is_none() {
            // A slow peer must not hold the runtime's buffers.
            return socket.outbound.release_leases();
        }
        if std::mem::take(&mut socket.end_output) {
            self.network.shutdown(end);
        }
        if socket.closing {
            self.finish_closing(id);
        }
    }

    /// Waits until at most `limit` bytes are queued.
    fn poll_output(
        &mut self,
        id: SlotId,
        limit: usize,
        target: usize,
        waker: &Waker,
    ) -> Poll<io::Result<()>> {
        let queued = self.sockets.get(id).map_or(0, |socket| socket.outbound.len());
        if queued > limit {
            self.write(id);
        }
        let Some(socket) = self.sockets.get(id) else { return Poll::Ready(Err(socket::gone())) };
        if let Some(error) = socket.error {
            return Poll::Ready(Err(error.into()));
        }
        if socket.outbound.len() <= limit {
            return Poll::Ready(Ok(()));
        }
        self.wait_to_send(id, target, waker);
        Poll::Pending
    }

    /// One receive into a pooled buffer.
    fn receive(&mut self, id: SlotId, end: End, waker: &Waker) -> Poll<io::Result<Option<Lease>>> {
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
    fn receive_nothing(&mut self, id: SlotId, end: End, waker: &Waker) -> Poll<io::Result<Option<Lease>>> {
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
    fn grant_buffers(&mut self) -> bool {
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

    /// Passes on what the network has to say.
    fn distribute(&mut self) {
        let mut notices = std::mem::take(&mut self.notices);
        for notice in notices.drain(..) {
            let (Notice::Readable(id)
            | Notice::Writable(id)
            | Notice::Connected(id, _)
            | Notice::Reset(id)
            | Notice::Spurious(id)) = notice;
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
                    socket.wake_sender();
                }
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
                socket.wake_sender();
            }
            (Ok(()), Kind::Stream(_) | Kind::Listener(_)) => {}
            (Err(error), _) => socket.fail(error),
        }
    }

    /// Moves time to where `wait` ends. An error: it would never end.
    fn pass_time(&mut self, wait: Wait) -> io::Result<()> {
        let next = self.network.next_at();
        self.looks = if wait == Wait::No { self.looks.saturating_add(1) } else { 0 };
        match (wait, next) {
            (Wait::No, _) if self.looks > LOOKS_MAX => self.network.advance(self.network.now() + LOOK),
            (Wait::No, _) => {}
            (Wait::Until(deadline), next) => {
                self.network.advance(next.map_or(deadline, |next| next.min(deadline)));
            }
            (Wait::Forever, Some(next)) => self.network.advance(next),
            (Wait::Forever, None) => {
                // Another thread may have said something after the runtime last looked.
                if rustix::io::read(&*self.parts.wake, &mut [0u8; 8]).is_err() {
                    return Err(self.deadlock());
                }
            }
        }
        Ok(())
    }

    /// Everybody waits, and nothing will ever happen: who waits for what.
    fn deadlock(&self) -> io::Error {
        const LISTED_MAX: usize = 16;
        let waiting = self.sockets.ids().into_iter().filter_map(|id| {
            let waits = self.sockets.get(id)?.waits();
            (!waits.is_empty()).then(|| format!("{} waits for {}", self.describe(id), waits.join(" and ")))
        });
        let mut listed: Vec<String> = waiting.collect();
        let more = listed.len().saturating_sub(LISTED_MAX);
        listed.truncate(LISTED_MAX);
        if more > 0 {
            listed.push(format!("{more} more"));
        }
        if listed.is_empty() {
            listed.push("no task waits for a socket or a timer, they wait for each other".into());
        }
        let time = self.network.now().as_nanos();
        io::Error::new(
            io::ErrorKind::Deadlock,
            format!("deadlock at virtual time {time} ns, nothing can happen any more: {}", listed.join("; ")),
        )
    }

    fn describe(&self, id: SlotId) -> String {
        let name = |address: Option<&Address>| address.map_or("unnamed".to_owned(), Address::to_string);
        match self.sockets.get(id).map(|socket| socket.kind) {
            Some(Kind::Listener(listener)) => {
                format!("listener {}", name(self.network.listener_address(listener)))
            }
            Some(Kind::Connecting(end) | Kind::Stream(end)) => {
                let (own, peer) = (self.network.address(end), self.network.peer_address(end));
                format!("stream {} to {}", name(own), name(peer))
            }
            None => "a closed socket".into(),
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
                Poll::Ready(self.insert(Kind::Stream(end)))
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
        self.wait_to_send(id, 0, waker);
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

    fn push(&mut self, stream: SlotId, bytes: Outgoing) -> io::Result<()> {
        let socket = self.sockets.get_mut(stream).ok_or_else(socket::gone)?;
        if let Some(error) = socket.error {
            return Err(error.into());
        }
        socket.outbound.push(bytes);
        self.mark_dirty(stream);
        Ok(())
    }

    fn push_copy(&mut self, stream: SlotId, bytes: &[u8]) -> io::Result<()> {
        let socket = self.sockets.get_mut(stream).ok_or_else(socket::gone)?;
        if let Some(error) = socket.error {
            return Err(error.into());
        }
        socket.outbound.push_copy(bytes, &self.parts.send_pool);
        self.mark_dirty(stream);
        Ok(())
    }

    fn end_output(&mut self, stream: SlotId) -> io::Result<()> {
        let socket = self.sockets.get_mut(stream).ok_or_else(socket::gone)?;
        socket.end_output = true;
        self.mark_dirty(stream);
        Ok(())
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
                socket.dirty = false;
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
        self.retry_at.into_iter().chain(linger).min()
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
        let unnamed = || io::Error::new(io::ErrorKind::Unsupported, "the socket has no name");
        name.cloned().ok_or_else(unnamed)
    }

    fn virtual_now(&self) -> Option<Instant> {
        Some(self.network.now())
    }
}
