//! The part that epoll, poll and select share: each socket operation is tried first, and waited for only when the
//! kernel returns `EAGAIN`.
//!
//! Receives read when the handler asks, into the buffer that was returned last and is therefore still in the cache. A
//! read that does not fill its buffer has drained the socket, so no second read is needed to see `EAGAIN`: the kernel
//! reports a later arrival again. After a reported end of stream, or urgent data, reads continue until `EAGAIN`. Output
//! is written when the task yields, all queued chunks in one call.
//!
//! Files are always ready, so readiness cannot show whether a call would block. Bytes in the page cache are read at
//! once. Helper threads do everything else; the wake-up descriptor announces their answers.

use std::{
    collections::VecDeque,
    io,
    net::SocketAddr,
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
    task::{Poll, Waker},
};

use rustix::io::Errno;

use super::{
    connection::Step,
    contract::{DriverOps, DriverParts, Wait},
    error,
    files::{FileOperation, FileResult, Outcome},
    lingering::Lingering,
    retries::Retries,
    send_state::SendAccess,
    socket::{ListenOptions, Reserve},
};
use crate::{
    address::Address,
    clock::Instant,
    pool::Lease,
    slab::{Slab, SlotId},
};

mod accept;
mod backend;
mod buffer_turns;
mod close;
#[cfg(test)]
mod consistency;
mod deadlock;
mod endpoint;
#[cfg(test)]
pub(crate) mod planted_bugs;
mod receive;
mod send;
mod syscalls;
#[cfg(test)]
mod tests;
mod watch;

pub(crate) use backend::{Backend, Interest, Ready};
use endpoint::{Kind, Socket};
pub(crate) use syscalls::{Files, Kernel, Linux};
use watch::{telling, unwatch};

/// Token of the wake-up descriptor.
const WAKE_TOKEN: u64 = u64::MAX;

/// Bytes of files that may be read directly in a turn: some 50 µs of copying. A reader that wants more lets all
/// others run first; otherwise a task whose reads are always ready would never end its turn.
const TURN_FILE_BYTES_MAX: usize = 256 << 10;

/// The smallest number of bytes that a read counts as.
const FILE_READ_BYTES_MIN: usize = 1 << 10;

fn token(id: SlotId) -> u64 {
    u64::from(id.generation) << 32 | u64::from(id.index)
}

fn id(token: u64) -> SlotId {
    SlotId { index: token as u32, generation: (token >> 32) as u32 }
}

/// A driver over one readiness call and one kernel.
pub(crate) struct Readiness<B, K: Kernel> {
    backend: B,
    kernel: K,
    parts: DriverParts,
    sockets: Slab<Socket<K::Socket>>,
    /// Sockets with output queued since the last flush.
    dirty: Vec<SlotId>,
    /// Sockets whose file has used its share in this flush.
    unfinished: Vec<SlotId>,
    ready: Vec<Ready>,
    reserve: Reserve,
    retries: Retries,
    /// Receivers waiting for a buffer, first come, first served.
    starved_receivers: VecDeque<SlotId>,
    /// Closing sockets.
    lingering: Lingering,
    turn: u64,
    /// Bytes of files read directly since the last turn.
    file_bytes: usize,
    draining: bool,
    /// Number of receive buffer sizes.
    classes: u8,
    files: K::Files,
}

impl<B: Backend<K>, K: Kernel> Readiness<B, K> {
    pub(crate) fn new(mut backend: B, kernel: K, parts: DriverParts) -> io::Result<Self> {
        let wake = Arc::clone(&parts.wake);
        let classes = parts.receive_pool.classes();
        let files = kernel.files(&parts);
        let reserved = kernel.reserved(parts.config.limits.descriptors_reserved, wake.as_fd());
        telling(&mut backend, &parts.counters, |backend| backend.watch_wake_up(&wake, WAKE_TOKEN))?;
        Ok(Self {
            backend,
            kernel,
            sockets: Slab::new(parts.config.limits.sockets_max),
            dirty: Vec::new(),
            unfinished: Vec::new(),
            ready: Vec::new(),
            reserve: Reserve::from_number(reserved),
            retries: Retries::default(),
            starved_receivers: VecDeque::new(),
            lingering: Lingering::default(),
            turn: 0,
            file_bytes: 0,
            draining: false,
            classes,
            parts,
            files,
        })
    }

    fn insert(&mut self, descriptor: K::Socket, kind: Kind) -> io::Result<SlotId> {
        let limit = self.parts.config.limits.sockets_max;
        let id = self.sockets.insert(Socket::new(descriptor, kind)).map_err(|_| error::too_many(limit))?;
        if kind == Kind::Stream {
            self.parts.counters.connections_open.increment();
        }
        Ok(id)
    }

    /// Forgets a socket without closing it.
    fn take_out(&mut self, id: SlotId) -> io::Result<K::Socket> {
        let mut removed = self.sockets.remove(id).ok_or_else(error::gone)?;
        removed.forget_waiters(&self.parts.departed);
        if removed.watched {
            unwatch(&mut self.backend, &removed.descriptor, &self.parts.counters);
        }
        if removed.kind == Kind::Stream {
            self.parts.counters.connections_open.decrement();
        }
        Ok(removed.descriptor)
    }

    fn mark_dirty(&mut self, id: SlotId) {
        if let Some(socket) = self.sockets.get_mut(id)
            && socket.send.mark_dirty()
        {
            self.dirty.push(id);
        }
    }

    /// A descriptor is free, or a pause is over.
    fn resume_accepts(&mut self) {
        for id in self.retries.take_listeners() {
            if let Some(socket) = self.sockets.get_mut(id) {
                socket.wake_receiver(&self.parts.departed);
            }
        }
    }

    /// Delivers events to the sockets that they name.
    fn distribute(&mut self) {
        let ready = std::mem::take(&mut self.ready);
        for event in &ready {
            if event.token == WAKE_TOKEN {
                // It is always writable, and that is no wake-up.
                self.parts.woken.set(self.parts.woken.get() | event.readable);
                if !self.backend.is_edge_triggered() {
                    // Level-triggered calls would report it repeatedly.
                    self.parts.take_wake_up();
                }
                self.files.collect();
                continue;
            }
            let id = id(event.token);
            let Some(socket) = self.sockets.get_mut(id) else {
                self.parts.counters.events_stale.increment();
                continue;
            };
            socket.ended |= event.ended;
            if event.readable || event.ended {
                socket.connection.find_input();
            }
            if socket.connection.is_discarding() {
                let _ = self.discard(id);
                continue;
            }
            if socket.connection.has_input() {
                match socket.receive_waiter.take() {
                    waiter @ Some(_) => self.parts.departed.wake(waiter),
                    None => self.pause_reading(id, event.ended),
                }
            }
            if event.writable || event.ended {
                self.on_writable(id);
            }
        }
        self.ready = ready;
        self.ready.clear();
    }
}

impl<B: Backend<K>, K: Kernel> DriverOps for Readiness<B, K> {
    fn listen(&mut self, address: &Address, options: &ListenOptions) -> io::Result<SlotId> {
        let listener = self.kernel.listen(address, options, &self.parts)?;
        self.insert(listener, Kind::Listener { exclusive: options.exclusive })
    }

    fn adopt_listener(&mut self, descriptor: OwnedFd) -> io::Result<SlotId> {
        let listener = self.kernel.adopt(descriptor, false, &self.parts.counters)?;
        self.insert(listener, Kind::Listener { exclusive: true })
    }

    fn adopt_stream(&mut self, descriptor: OwnedFd) -> io::Result<SlotId> {
        let stream = self.kernel.adopt(descriptor, self.backend.blocks_on_writes(), &self.parts.counters)?;
        self.insert(stream, Kind::Stream)
    }

    fn detach(&mut self, socket: SlotId) -> io::Result<OwnedFd> {
        self.kernel.may_leave()?;
        let taken = self.take_out(socket)?;
        self.kernel.leave(taken)
    }

    fn poll_detach(&mut self, id: SlotId, _waker: &Waker) -> Poll<io::Result<(OwnedFd, Vec<u8>)>> {
        let Some(socket) = self.sockets.get(id) else { return Poll::Ready(Err(error::gone())) };
        if let Some(error) = socket.connection.error() {
            return Poll::Ready(Err(error.into()));
        }
        // Bytes are read only when a handler asks for them: bytes that nobody has taken are still in the kernel.
        Poll::Ready(self.detach(id).map(|descriptor| (descriptor, Vec::new())))
    }

    fn poll_accept(&mut self, listener: SlotId, waker: &Waker) -> Poll<io::Result<SlotId>> {
        if self.draining {
            return Poll::Ready(Err(error::draining()));
        }
        self.accept_next(listener, waker)
    }

    fn connect(&mut self, address: &Address, local: Option<SocketAddr>) -> io::Result<SlotId> {
        let (descriptor, stands) = self.kernel.connect(address, local, &self.parts)?;
        let id = self.insert(descriptor, Kind::Connecting)?;
        if stands && let Some(socket) = self.sockets.get_mut(id) {
            socket.connection.find_room();
        }
        Ok(id)
    }

    fn poll_connect(&mut self, stream: SlotId, waker: &Waker) -> Poll<io::Result<()>> {
        let Some(socket) = self.sockets.get_mut(stream) else { return Poll::Ready(Err(error::gone())) };
        if let Some(error) = socket.connection.error() {
            return Poll::Ready(Err(error.into()));
        }
        if !socket.connection.has_room() {
            self.parts.departed.wait(&mut socket.send.waiter, waker);
            return match self.watch_or_fail(stream, false, true) {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            };
        }
        let outcome = self.kernel.take_error(&socket.descriptor, &self.parts.counters);
        if outcome.is_ok() {
            socket.kind = Kind::Stream;
            socket.connection.find_input();
            self.parts.counters.connects.increment();
            self.parts.counters.connections_open.increment();
            self.after_send(stream);
        }
        Poll::Ready(outcome)
    }

    fn poll_receive(&mut self, stream: SlotId, waker: &Waker) -> Poll<io::Result<Option<Lease>>> {
        let turn = self.turn;
        let Some(socket) = self.sockets.get_mut(stream) else { return Poll::Ready(Err(error::gone())) };
        if let Some(answer) = socket.connection.input().answer() {
            return Poll::Ready(answer);
        }
        if !socket.connection.has_input() {
            if self.draining {
                return Poll::Ready(Ok(None));
            }
            return self.wait_readable(stream, waker);
        }
        if socket.turn != turn {
            socket.turn = turn;
            socket.turn_bytes = 0;
        }
        if socket.turn_bytes >= self.parts.config.limits.turn_bytes_max {
            self.parts.departed.wake_by_ref(waker);
            return Poll::Pending;
        }
        self.receive(stream, waker)
    }

    fn poll_output_room(&mut self, stream: SlotId, waker: &Waker) -> Poll<io::Result<()>> {
        let limits = self.parts.config.limits;
        self.poll_output(stream, limits.output_high_water_bytes, limits.output_low_water_bytes, waker)
    }

    fn poll_flushed(&mut self, stream: SlotId, waker: &Waker) -> Poll<io::Result<()>> {
        if self.sockets.get(stream).is_some_and(|socket| socket.send.wants_end()) {
            // The end of the stream counts as something to send.
            self.send_queued_outside_flush(stream);
        }
        self.poll_output(stream, 0, 0, waker)
    }

    fn send_access(&mut self, stream: SlotId) -> Option<SendAccess<'_>> {
        let Socket { send, connection, .. } = self.sockets.get_mut(stream)?;
        let limit_bytes = self.parts.config.limits.output_high_water_bytes;
        let (dirty, pool) = (&mut self.dirty, &self.parts.send_pool);
        Some(SendAccess { send, error: connection.error(), limit_bytes, dirty, pool })
    }

    fn poll_file(&mut self, operation: &mut FileOperation, waker: &Waker) -> Poll<FileResult> {
        if self.file_bytes >= TURN_FILE_BYTES_MAX && matches!(operation, FileOperation::New(_)) {
            self.parts.departed.wake_by_ref(waker);
            return Poll::Pending;
        }
        match self.files.try_now(operation, &self.parts) {
            Some(answer) => {
                if let Ok(Outcome::Read(bytes)) = &answer {
                    self.file_bytes += bytes.len().max(FILE_READ_BYTES_MIN);
                }
                Poll::Ready(answer)
            }
            None => self.files.poll(operation, waker),
        }
    }

    fn forget_file(&mut self, operation: &mut FileOperation) {
        self.files.forget(operation);
    }

    fn close(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        socket.forget_waiters(&self.parts.departed);
        socket.connection.close();
        let step = socket.connection.step(!socket.send.queue.is_empty(), self.draining);
        if socket.kind != Kind::Stream || step == Step::Close {
            return self.release(id);
        }
        self.linger(id);
        self.mark_dirty(id);
        self.pause_reading(id, false);
    }

    fn abort(&mut self, id: SlotId) {
        if let Some(socket) = self.sockets.get(id) {
            self.kernel.reset_on_close(&socket.descriptor, &self.parts.counters);
        }
        self.release(id);
    }

    fn flush(&mut self) {
        while let Some(id) = self.dirty.pop() {
            if let Some(socket) = self.sockets.get_mut(id) {
                socket.send.dirty = false;
                self.send_queued(id);
            }
        }
        if !self.unfinished.is_empty() {
            // They continue after the next turn, not at once.
            self.dirty.append(&mut self.unfinished);
        }
    }

    fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    fn turn(&mut self, wait: Wait) -> io::Result<()> {
        self.turn += 1;
        self.file_bytes = 0;
        let mut wait = wait;
        if !self.starved_receivers.is_empty() {
            // Buffers return while tasks run or output is sent, and both happen before this turn.
            if self.grant_buffers() {
                wait = Wait::No;
            }
        }
        let counters = &self.parts.counters;
        counters.turns.increment();
        counters.wait_calls.increment();
        if wait != Wait::No {
            counters.waits.increment();
        }
        let now = if matches!(wait, Wait::Until(_)) { self.kernel.now() } else { Instant::default() };
        if let Err(error) = self.backend.wait(wait.limit(now), &mut self.ready, &counters.clock) {
            return Err(self.explain(error));
        }
        counters.completions.add(self.ready.len() as u64);
        counters.completions_per_turn_max.raise_to(self.ready.len() as u64);
        self.distribute();
        if self.deadline().is_some() {
            self.handle_deadlines(self.kernel.now());
        }
        Ok(())
    }

    fn deadline(&self) -> Option<Instant> {
        self.retries.deadline().into_iter().chain(self.lingering.deadline()).min()
    }

    fn drain(&mut self) {
        self.draining = true;
        for id in self.sockets.ids() {
            if let Some(socket) = self.sockets.get_mut(id) {
                // Bytes that have arrived without a report are still received: the next receive asks the kernel, and
                // continues after a short read, because later reports have no waiter.
                if socket.kind == Kind::Stream {
                    socket.connection.find_input();
                    socket.ended = true;
                }
                socket.wake_receiver(&self.parts.departed);
            }
        }
    }

    fn abort_all(&mut self) {
        for id in self.sockets.ids() {
            if let Some(socket) = self.sockets.get_mut(id) {
                if socket.kind == Kind::Stream {
                    self.kernel.reset_on_close(&socket.descriptor, &self.parts.counters);
                }
                socket.fail(Errno::CONNABORTED, &self.kernel, &self.parts);
                if socket.connection.is_closing() {
                    self.abort(id);
                }
            }
        }
    }

    fn sockets(&self) -> usize {
        self.sockets.len()
    }

    fn local_address(&self, socket: SlotId) -> io::Result<Address> {
        let socket = self.sockets.get(socket).ok_or_else(error::gone)?;
        self.parts.counters.setup_calls.increment();
        self.kernel.local_address(&socket.descriptor)
    }

    fn peer_address(&self, stream: SlotId) -> io::Result<Address> {
        let socket = self.sockets.get(stream).ok_or_else(error::gone)?;
        self.parts.counters.setup_calls.increment();
        self.kernel.peer_address(&socket.descriptor)
    }

    fn virtual_now(&self) -> Option<Instant> {
        self.kernel.virtual_now()
    }
}

impl<B, K: Kernel> Drop for Readiness<B, K> {
    /// No turn follows any more: output that is left is lost.
    fn drop(&mut self) {
        for id in self.sockets.ids() {
            if let Some(socket) = self.sockets.get_mut(id) {
                socket.lose_output(&self.kernel, &self.parts.counters);
            }
        }
    }
}
