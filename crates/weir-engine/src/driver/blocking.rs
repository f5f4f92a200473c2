//! Blocking calls: one thread and one runtime for each connection, and each wait is the system call itself.
//!
//! A runtime on this driver runs one future. In one poll it may start to wait for one operation; the next turn
//! performs it, for at most as long as the nearest timer allows (`SO_RCVTIMEO`, `SO_SNDTIMEO`). Waiting for two
//! operations at once is an error that says so, because a thread can block in one call only. Output is written when
//! the future yields, and blocks the thread until the kernel has taken it. There is no mailbox.
//!
//! Another thread reaches this one between two calls. A receive blocks no longer than [`RECEIVE_WAIT_MAX`]; after
//! that long without input, the thread waits with `poll` for the connection and the wake-up descriptor together, and
//! so notices a drain at once. A busy connection never pays for that. Ending a receive at once by `shutdown(SHUT_RD)`
//! could lose replies. When bytes arrive for a socket that was shut down for reading and has sent its own end, the
//! kernel answers with a reset. The reset discards whatever the peer has not read yet and whatever is still unsent. A
//! listener has no such bytes, so it is shut down.
//!
//! Direct calls read and write files. They end before the future is polled again.
//!
//! A handle that is closed with bytes still queued leaves its socket *lingering*: later turns send the rest without
//! blocking, until the deadline; then the connection is reset. In a drain our end of the stream follows the queued
//! bytes. Input is then discarded until the peer ends too, or has received everything.

use std::{
    collections::VecDeque,
    io,
    net::SocketAddr,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    task::{Poll, Waker},
    time::Duration,
};

use rustix::{
    io::Errno,
    net::{RecvFlags, SendFlags, SocketFlags, sockopt::Timeout},
};
use socket2::SockRef;

use super::{
    connection::Connection,
    contract::{DriverOps, DriverParts, Wait},
    error::{self, ACCEPT_RETRY, AcceptFailure, SEND_RETRY, SendFailure},
    files::{self, FileOperation, FileResult},
    lingering::Lingering,
    send_state::{SendAccess, SendState},
    socket::{self, ListenOptions, Reserve},
};
use crate::{
    address::Address,
    clock::{Instant, monotonic},
    counters::Counters,
    pool::{Lease, SizeChoice},
    send_queue::Front,
    slab::{Slab, SlotId},
};

/// Longest time a receive blocks before the thread checks for requests from other threads; from then on it waits for
/// both. A measurement that counts the calls of a slice waits longer than this before it (`SETTLE_BLOCKING` in the
/// laboratory's `process/server_round.rs`): idle threads switch from one call to the other in that time.
const RECEIVE_WAIT_MAX: Duration = Duration::from_millis(50);

/// Longest time a send or a connect blocks.
const CALL_WAIT_MAX: Duration = Duration::from_millis(500);

/// Longest time a call blocks while sockets linger, which are checked between two calls.
const LINGER_LOOK: Duration = Duration::from_millis(10);

/// Consecutive sends that the kernel may refuse for lack of memory, about five seconds of them, before the connection
/// fails.
const REFUSALS_MAX: u32 = 500;

/// Pause before a receive that found no free buffer is tried again.
const BUFFER_RETRY: Duration = Duration::from_millis(1);

/// Most bytes of a file in one call: the amount that the kernel moves at once, so that the call blocks no longer than
/// a send.
const FILE_CALL_BYTES_MAX: usize = 64 << 10;

mod closing;
#[cfg(test)]
mod tests;
mod wait;

use wait::wait_writable;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockedOn {
    Accept,
    Connect,
    Receive,
}

#[derive(Debug)]
struct Socket {
    descriptor: OwnedFd,
    is_listener: bool,
    address: Option<Address>,
    /// The results of the last turn.
    accepted: Option<OwnedFd>,
    received: Option<Lease>,
    connected: bool,
    connection: Connection,
    send: SendState,
    size: SizeChoice,
    /// The time limits set on the socket, to set them only when they change.
    receive_limit: Option<Duration>,
    send_limit: Option<Duration>,
    /// The last send was short; the next turn continues it.
    has_pending_write: bool,
    /// Consecutive sends that the kernel refused for lack of memory.
    refusals: u32,
}

/// The driver.
pub(crate) struct Blocking {
    parts: DriverParts,
    sockets: Slab<Socket>,
    dirty: Vec<SlotId>,
    waiting: Option<(SlotId, BlockedOn, Waker)>,
    /// The operation that was waited for before, in the same poll. It was given up (a timeout expired), or is waited
    /// for at the same time. The latter shows when the future waits for it again first.
    displaced: Option<(SlotId, BlockedOn)>,
    /// Sockets whose last send was short, each once.
    pending_writes: VecDeque<SlotId>,
    /// Sockets whose handle is gone.
    lingering: Lingering,
    reserve: Reserve,
    /// Descriptors or memory were short: nothing is tried before this moment.
    retry_at: Option<Instant>,
    draining: bool,
}

fn two_at_once() -> io::Error {
    let reason = "this handler waits for two operations at once, which the blocking driver cannot do: \
                  a thread blocks in one call";
    io::Error::new(io::ErrorKind::Unsupported, reason)
}

impl Blocking {
    pub(crate) fn new(parts: DriverParts) -> io::Result<Self> {
        let sockets = Slab::new(parts.config.limits.sockets_max);
        Ok(Self {
            reserve: Reserve::new(parts.config.limits.descriptors_reserved, parts.wake.as_fd()),
            parts,
            sockets,
            dirty: Vec::new(),
            waiting: None,
            displaced: None,
            pending_writes: VecDeque::new(),
            lingering: Lingering::default(),
            retry_at: None,
            draining: false,
        })
    }

    fn insert(
        &mut self,
        descriptor: OwnedFd,
        is_listener: bool,
        address: Option<Address>,
    ) -> io::Result<SlotId> {
        let connected = address.is_none();
        let socket = Socket {
            descriptor,
            is_listener,
            address,
            accepted: None,
            received: None,
            connected,
            connection: Connection::new(),
            send: SendState::default(),
            size: SizeChoice::default(),
            receive_limit: None,
            send_limit: None,
            has_pending_write: false,
            refusals: 0,
        };
        let limit = self.parts.config.limits.sockets_max;
        let id = self.sockets.insert(socket).map_err(|_| error::too_many(limit))?;
        if connected && !is_listener {
            self.parts.counters.connections_open.increment();
        }
        Ok(id)
    }

    /// Records the operation for the next turn.
    fn wait_for<T>(&mut self, id: SlotId, operation: BlockedOn, waker: &Waker) -> Poll<io::Result<T>> {
        let wanted = (id, operation);
        match &self.waiting {
            Some((other, present, _)) if (*other, *present) != wanted => {
                self.displaced = Some((*other, *present));
            }
            Some(_) => {}
            None if self.displaced.take() == Some(wanted) => return Poll::Ready(Err(two_at_once())),
            None => {}
        }
        match &mut self.waiting {
            Some((other, present, waiter)) => {
                (*other, *present) = wanted;
                self.parts.departed.replace(waiter, waker);
            }
            None => self.waiting = Some((id, operation, waker.clone())),
        }
        Poll::Pending
    }

    /// Writes the queue, in calls that block for at most `limit`, and begins no call after twice that time; later
    /// turns continue with the rest.
    fn write(&mut self, id: SlotId, limit: Duration) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let counters = &self.parts.counters;
        let (mut is_pending, mut last_start) = (false, None);
        while !socket.send.queue.is_empty() && socket.connection.error().is_none() && !is_pending {
            match socket.send(limit, counters) {
                Ok((sent, offered)) => {
                    counters.sends.increment();
                    counters.bytes_sent.add(sent as u64);
                    counters.sends_short.add(u64::from(sent < offered));
                    socket.send.queue.consume(sent);
                    socket.refusals = 0;
                    is_pending = sent < offered;
                    if !is_pending && !socket.send.queue.is_empty() && !limit.is_zero() {
                        // Only a queue of very many chunks takes several calls and needs the clock.
                        let now = monotonic();
                        is_pending = now > *last_start.get_or_insert(now + limit);
                    }
                }
                Err(error) => {
                    is_pending = true;
                    match error::send_failure(error) {
                        SendFailure::Again => {}
                        SendFailure::Full => counters.would_block.increment(),
                        SendFailure::NoMemory if socket.refusals < REFUSALS_MAX => {
                            socket.refusals += 1;
                            self.retry_at = Some(monotonic() + SEND_RETRY);
                        }
                        SendFailure::NoMemory | SendFailure::Fatal(_) => {
                            is_pending = false;
                            socket.fail(error, counters);
                        }
                    }
                }
            }
        }
        if is_pending && !socket.has_pending_write && !socket.connection.is_closing() {
            self.pending_writes.push_back(id);
        }
        socket.has_pending_write = is_pending;
        if !is_pending && socket.connection.error().is_none() && socket.send.take_end() {
            socket.shut_down_output(&self.parts.counters);
        }
    }

    /// Continues the first short send. False: there is none.
    fn continue_write(&mut self, limit: Option<Duration>) -> bool {
        while let Some(id) = self.pending_writes.pop_front() {
            let Some(socket) = self.sockets.get_mut(id) else { continue };
            // If bytes are still left, it is queued again, behind the others.
            socket.has_pending_write = false;
            if socket.connection.is_closing() {
                continue;
            }
            self.write(id, limit.map_or(CALL_WAIT_MAX, |limit| limit.min(CALL_WAIT_MAX)));
            if let Some(socket) = self.sockets.get_mut(id) {
                socket.send.wake(&self.parts.departed);
            }
            return true;
        }
        false
    }

    /// Waits until at most `limit_bytes` are queued; each short send wakes.
    fn poll_output(&mut self, id: SlotId, limit_bytes: usize, waker: &Waker) -> Poll<io::Result<()>> {
        let Some(socket) = self.sockets.get_mut(id) else { return Poll::Ready(Err(error::gone())) };
        socket.send.poll_at_most(
            socket.connection.error(),
            limit_bytes,
            limit_bytes,
            waker,
            &self.parts.departed,
        )
    }

    /// One receive; its bytes are kept in the socket. False: there is no buffer, and a later turn tries again.
    fn receive(&mut self, id: SlotId, limit: Option<Duration>) -> bool {
        let classes = self.parts.receive_pool.classes();
        let Some(socket) = self.sockets.get_mut(id) else { return true };
        let counters = &self.parts.counters;
        let Some(mut buffer) = self.parts.receive_pool.take(socket.size.class()) else {
            counters.buffers_exhausted.increment();
            self.retry_at = Some(monotonic() + BUFFER_RETRY);
            return false;
        };
        let outcome = if limit == Some(Duration::ZERO) {
            Ok(RecvFlags::DONTWAIT)
        } else {
            socket.limit_receives(limit, counters).map(|()| RecvFlags::empty())
        };
        let outcome = outcome.and_then(|flags| {
            counters.recv_calls.increment();
            let receive = || rustix::net::recv(&socket.descriptor, buffer.as_mut_slice(), flags);
            counters.clock.call(receive).map(|(_, length)| length)
        });
        match outcome {
            Ok(0) => socket.connection.end_input(),
            Ok(length) => {
                counters.receives.increment();
                counters.bytes_received.add(length as u64);
                counters.receives_full.add(u64::from(length == buffer.capacity() as usize));
                if socket.size.observe(length, buffer.capacity(), classes) {
                    counters.buffer_resizes.increment();
                }
                socket.received = Some(buffer.lease(length));
                socket.connection.find_input();
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                counters.would_block.increment();
                if !socket.connection.would_block() && limit == Some(Duration::ZERO) {
                    // Only a receive that has waited shows that the connection is idle.
                    socket.connection.find_input();
                }
            }
            Err(error) => socket.connection.break_off(error),
        }
        true
    }

    fn accept(&mut self, id: SlotId, limit: Option<Duration>) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let counters = &self.parts.counters;
        if !self.reserve.has_room(counters, || socket::lowest_free(socket.descriptor.as_fd())) {
            return self.pause_accepts();
        }
        let outcome = socket.limit_receives(limit, counters).and_then(|()| {
            counters.accept_calls.increment();
            counters.clock.call(|| rustix::net::accept_with(&socket.descriptor, SocketFlags::CLOEXEC))
        });
        match outcome {
            Ok(descriptor) => {
                self.parts.counters.accepts.increment();
                self.reserve.note(descriptor.as_raw_fd());
                socket.accepted = Some(descriptor);
            }
            Err(error) => match error::accept_failure(error) {
                AcceptFailure::Empty | AcceptFailure::Again => {}
                AcceptFailure::Starved => self.pause_accepts(),
                AcceptFailure::Unforeseen => {
                    self.parts.counters.accepts_failed.increment();
                    socket.connection.break_off(error);
                }
            },
        }
    }

    /// Descriptors or memory are short: accepting resumes after a pause.
    fn pause_accepts(&mut self) {
        self.parts.counters.starved();
        self.retry_at = Some(monotonic() + ACCEPT_RETRY);
    }

    fn connect_now(&mut self, id: SlotId, limit: Option<Duration>) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let counters = &self.parts.counters;
        let outcome = match socket.address.take() {
            Some(address) => {
                let outcome = socket.limit_sends(limit, counters).map_err(io::Error::from).and_then(|()| {
                    let name = address.to_socket_address()?;
                    counters.setup_calls.increment();
                    SockRef::from(&socket.descriptor).connect(&name)
                });
                if !matches!(address, Address::Tcp(_)) {
                    // A call that was interrupted did not start the connection: the next turn starts it again.
                    socket.address = Some(address);
                }
                outcome
            }
            // The connection was started before, and a timer interrupted the wait: wait for it to complete.
            None => wait_writable(&socket.descriptor, limit, counters).and_then(|ready| {
                let pending = io::Error::from(Errno::INPROGRESS);
                if ready { socket::take_error(&socket.descriptor, counters) } else { Err(pending) }
            }),
        };
        let pending = [Errno::INPROGRESS, Errno::INTR, Errno::ALREADY, Errno::AGAIN];
        match outcome {
            Ok(()) => {
                socket.connected = true;
                counters.connects.increment();
                counters.connections_open.increment();
            }
            Err(error) => {
                let number = Errno::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EIO));
                if !pending.contains(&number) {
                    socket.connection.break_off(number);
                }
            }
        }
    }

    fn release(&mut self, id: SlotId) {
        let Some(mut socket) = self.sockets.remove(id) else { return };
        self.lingering.forget(id);
        self.parts.departed.let_go(socket.send.waiter.take());
        if !socket.is_listener {
            self.parts.counters.closes.increment();
            if socket.connected {
                self.parts.counters.connections_open.decrement();
            }
        }
    }

    /// Performs the operation that the future waits for.
    fn perform(&mut self, id: SlotId, operation: BlockedOn, limit: Option<Duration>) -> io::Result<()> {
        let at_most = |slice: Duration| Some(limit.map_or(slice, |limit| limit.min(slice)));
        match operation {
            // Another thread ends it by shutting the listener down.
            BlockedOn::Accept => self.accept(id, limit),
            BlockedOn::Connect => self.connect_now(id, at_most(CALL_WAIT_MAX)),
            BlockedOn::Receive if self.draining => _ = self.receive(id, Some(Duration::ZERO)),
            BlockedOn::Receive => {
                let socket = self.sockets.get(id);
                if socket.is_none_or(|socket| socket.connection.has_input()) || self.await_input(id, limit)? {
                    self.receive(id, at_most(RECEIVE_WAIT_MAX));
                }
            }
        }
        Ok(())
    }
}

impl Socket {
    fn fail(&mut self, error: Errno, counters: &Counters) {
        self.connection.fail(error);
        self.lose_output(counters);
    }

    /// Gives up what is queued. If that is anything, the next close is a reset.
    fn lose_output(&mut self, counters: &Counters) {
        if !self.send.queue.is_empty() {
            socket::reset_on_close(self.descriptor.as_fd(), counters);
            self.send.queue.clear();
        }
    }

    /// Limits how long the next receive or accept blocks. `None` removes the limit.
    fn limit_receives(&mut self, limit: Option<Duration>, counters: &Counters) -> Result<(), Errno> {
        set_limit(&self.descriptor, Timeout::Recv, limit, &mut self.receive_limit, counters)
    }

    /// Limits how long the next send or connect blocks. `None` removes the limit.
    fn limit_sends(&mut self, limit: Option<Duration>, counters: &Counters) -> Result<(), Errno> {
        set_limit(&self.descriptor, Timeout::Send, limit, &mut self.send_limit, counters)
    }

    /// One send from the queue; returns the bytes sent and the bytes offered.
    fn send(&mut self, limit: Duration, counters: &Counters) -> Result<(usize, usize), Errno> {
        let flags = if limit.is_zero() {
            SendFlags::DONTWAIT
        } else {
            self.limit_sends(Some(limit), counters)?;
            SendFlags::empty()
        };
        counters.send_calls.increment();
        #[cfg(test)]
        tests::refuse()?;
        if let Some(Front::File(range)) = self.send.queue.front() {
            let offered = range.length.min(FILE_CALL_BYTES_MAX);
            return self.send_file(offered, limit, counters);
        }
        let send = || socket::send_front(self.descriptor.as_fd(), &self.send.queue, flags);
        let sent = counters.clock.call(send)?;
        Ok((sent.bytes, sent.offered))
    }

    /// One send of `offered` bytes of the file at the front; otherwise as [`Self::send`].
    fn send_file(
        &mut self,
        offered: usize,
        limit: Duration,
        counters: &Counters,
    ) -> Result<(usize, usize), Errno> {
        let descriptor = self.descriptor.as_fd();
        let sent = files::pass_front(&mut self.send.queue, counters, |range| {
            if limit.is_zero() {
                files::send_part_without_waiting(descriptor, range, offered, counters)
            } else {
                files::send_part(descriptor, range, offered, counters)
            }
        })?;
        // If it is zero, the next bytes of the file are now in the queue, and nothing was offered to the socket.
        Ok((sent, if sent == 0 { 0 } else { offered }))
    }
}

/// Sets a time limit on a socket unless it is already set.
fn set_limit(
    descriptor: &OwnedFd,
    kind: Timeout,
    limit: Option<Duration>,
    present: &mut Option<Duration>,
    counters: &Counters,
) -> Result<(), Errno> {
    // Zero would mean no limit; the kernel counts in microseconds.
    let limit = limit.map(|limit| limit.max(Duration::from_micros(1)));
    if *present != limit {
        counters.setup_calls.increment();
        rustix::net::sockopt::set_socket_timeout(descriptor, kind, limit)?;
        *present = limit;
    }
    Ok(())
}

impl DriverOps for Blocking {
    fn listen(&mut self, address: &Address, options: &ListenOptions) -> io::Result<SlotId> {
        let descriptor = socket::listen(address, options, self.parts.config.congestion_control.as_deref())?;
        self.insert(descriptor, true, None)
    }

    fn adopt_listener(&mut self, descriptor: OwnedFd) -> io::Result<SlotId> {
        socket::set_nonblocking(&descriptor, false, &self.parts.counters)?;
        self.insert(descriptor, true, None)
    }

    fn adopt_stream(&mut self, descriptor: OwnedFd) -> io::Result<SlotId> {
        socket::set_nonblocking(&descriptor, false, &self.parts.counters)?;
        self.insert(descriptor, false, None)
    }

    fn detach(&mut self, id: SlotId) -> io::Result<OwnedFd> {
        let mut socket = self.sockets.remove(id).ok_or_else(error::gone)?;
        self.parts.departed.let_go(socket.send.waiter.take());
        if !socket.is_listener {
            self.parts.counters.connections_open.decrement();
        }
        Ok(socket.descriptor)
    }

    fn poll_detach(&mut self, id: SlotId, _waker: &Waker) -> Poll<io::Result<(OwnedFd, Vec<u8>)>> {
        let Some(socket) = self.sockets.get_mut(id) else { return Poll::Ready(Err(error::gone())) };
        if let Some(error) = socket.connection.error() {
            return Poll::Ready(Err(error.into()));
        }
        // Left over from a receive that was given up.
        let received = socket.received.take().map_or(Vec::new(), |lease| lease.to_vec());
        let counters = &self.parts.counters;
        let unlimited =
            socket.limit_receives(None, counters).and_then(|()| socket.limit_sends(None, counters));
        if self.waiting.as_ref().is_some_and(|(waiting, ..)| *waiting == id) {
            self.parts.departed.let_go(self.waiting.take().map(|(_, _, waiter)| waiter));
        }
        let outcome = unlimited.map_err(io::Error::from).and_then(|()| self.detach(id));
        Poll::Ready(outcome.map(|descriptor| (descriptor, received)))
    }

    fn poll_accept(&mut self, listener: SlotId, waker: &Waker) -> Poll<io::Result<SlotId>> {
        if self.draining {
            return Poll::Ready(Err(error::draining()));
        }
        let Some(socket) = self.sockets.get_mut(listener) else { return Poll::Ready(Err(error::gone())) };
        if let Some(descriptor) = socket.accepted.take() {
            self.displaced = None;
            match self.insert(descriptor, false, None) {
                Ok(id) => return Poll::Ready(Ok(id)),
                // There is no room for it, and it is closed.
                Err(_) => error::count_refused(&self.parts.counters),
            }
        } else if let Some(error) = socket.connection.take_error() {
            // The next call tries again.
            return Poll::Ready(Err(error.into()));
        }
        self.wait_for(listener, BlockedOn::Accept, waker)
    }

    fn connect(&mut self, address: &Address, local: Option<SocketAddr>) -> io::Result<SlotId> {
        let descriptor = socket::for_connect(address, local, &self.parts)?;
        self.insert(descriptor, false, Some(address.clone()))
    }

    fn poll_connect(&mut self, stream: SlotId, waker: &Waker) -> Poll<io::Result<()>> {
        let Some(socket) = self.sockets.get(stream) else { return Poll::Ready(Err(error::gone())) };
        match socket.connection.error() {
            None if !socket.connected => self.wait_for(stream, BlockedOn::Connect, waker),
            outcome => {
                self.displaced = None;
                Poll::Ready(outcome.map_or(Ok(()), |error| Err(error.into())))
            }
        }
    }

    fn poll_receive(&mut self, stream: SlotId, waker: &Waker) -> Poll<io::Result<Option<Lease>>> {
        let Some(socket) = self.sockets.get_mut(stream) else { return Poll::Ready(Err(error::gone())) };
        if let Some(lease) = socket.received.take() {
            self.displaced = None;
            return Poll::Ready(Ok(Some(lease)));
        }
        if let Some(answer) = socket.connection.input().answer() {
            self.displaced = None;
            return Poll::Ready(answer);
        }
        if self.draining && self.receive(stream, Some(Duration::ZERO)) {
            let Some(socket) = self.sockets.get_mut(stream) else { return Poll::Ready(Err(error::gone())) };
            let received = socket.received.take();
            return Poll::Ready(
                received.map_or_else(|| socket.connection.input().answer_if_empty(), |lease| Ok(Some(lease))),
            );
        }
        self.wait_for(stream, BlockedOn::Receive, waker)
    }

    fn poll_output_room(&mut self, stream: SlotId, waker: &Waker) -> Poll<io::Result<()>> {
        let high_water = self.parts.config.limits.output_high_water_bytes;
        let Some(socket) = self.sockets.get(stream) else { return Poll::Ready(Err(error::gone())) };
        if socket.send.queue.len() > high_water && !socket.has_pending_write {
            self.write(stream, CALL_WAIT_MAX);
        }
        self.poll_output(stream, high_water, waker)
    }

    fn poll_flushed(&mut self, stream: SlotId, waker: &Waker) -> Poll<io::Result<()>> {
        if self.sockets.get(stream).is_some_and(|socket| !socket.has_pending_write) {
            self.write(stream, CALL_WAIT_MAX);
        }
        self.poll_output(stream, 0, waker)
    }

    fn send_access(&mut self, stream: SlotId) -> Option<SendAccess<'_>> {
        let Socket { send, connection, .. } = self.sockets.get_mut(stream)?;
        let limit_bytes = self.parts.config.limits.output_high_water_bytes;
        let (dirty, pool) = (&mut self.dirty, &self.parts.send_pool);
        Some(SendAccess { send, error: connection.error(), limit_bytes, dirty, pool })
    }

    fn poll_file(&mut self, operation: &mut FileOperation, _waker: &Waker) -> Poll<FileResult> {
        match operation.take() {
            Some(request) => {
                let (pool, counters) = (&self.parts.send_pool, &self.parts.counters);
                Poll::Ready(files::perform_here(request, pool, counters))
            }
            None => Poll::Pending,
        }
    }

    fn forget_file(&mut self, _operation: &mut FileOperation) {}

    fn close(&mut self, id: SlotId) {
        let linger = self.parts.config.limits.linger;
        let Some(socket) = self.sockets.get_mut(id) else { return };
        if socket.is_listener || !socket.connected {
            return self.release(id);
        }
        socket.connection.close();
        self.parts.departed.let_go(socket.send.waiter.take());
        let now = monotonic();
        self.lingering.add(now + linger, id, |_| false);
        self.settle_one(id);
        self.end_expired(now);
    }

    fn abort(&mut self, id: SlotId) {
        if let Some(socket) = self.sockets.get(id) {
            socket::reset_on_close(socket.descriptor.as_fd(), &self.parts.counters);
        }
        self.release(id);
    }

    fn flush(&mut self) {
        for id in std::mem::take(&mut self.dirty) {
            let Some(socket) = self.sockets.get_mut(id) else { continue };
            socket.send.dirty = false;
            if !socket.has_pending_write {
                self.write(id, CALL_WAIT_MAX);
            }
        }
    }

    fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    fn turn(&mut self, wait: Wait) -> io::Result<()> {
        let limit = wait.limit(monotonic());
        self.parts.counters.turns.increment();
        self.parts.counters.waits.add(u64::from(wait != Wait::No));
        if self.retry_at.is_some_and(|at| at > monotonic()) {
            return self.idle(limit);
        }
        self.retry_at = None;
        if !self.lingering.is_empty() {
            self.settle();
        }
        let look = (!self.lingering.is_empty()).then_some(LINGER_LOOK);
        let look = look.map(|look| limit.map_or(look, |limit| limit.min(look))).or(limit);
        if self.continue_write(look) {
            return Ok(());
        }
        let Some((id, operation, waker)) = self.waiting.take() else {
            return self.idle(limit);
        };
        // Only a look, so that the future shows soon whether it still waits for the other operation too.
        let look = if self.displaced.is_some() { Some(Duration::ZERO) } else { look };
        let performed = self.perform(id, operation, look);
        // Whatever the result, the future polls again, and waits again if there is nothing.
        self.parts.departed.wake(Some(waker));
        performed?;
        self.parts.counters.completions.increment();
        Ok(())
    }

    fn deadline(&self) -> Option<Instant> {
        self.retry_at.or(self.lingering.deadline())
    }

    fn drain(&mut self) {
        self.draining = true;
    }

    fn abort_all(&mut self) {
        for id in self.sockets.ids() {
            let Some(socket) = self.sockets.get_mut(id) else { continue };
            if !socket.is_listener {
                socket::reset_on_close(socket.descriptor.as_fd(), &self.parts.counters);
            }
            socket.fail(Errno::CONNABORTED, &self.parts.counters);
            socket.send.wake(&self.parts.departed);
            if socket.connection.is_closing() {
                self.release(id);
            }
        }
    }

    fn sockets(&self) -> usize {
        self.sockets.len()
    }

    fn local_address(&self, socket: SlotId) -> io::Result<Address> {
        let socket = self.sockets.get(socket).ok_or_else(error::gone)?;
        self.parts.counters.setup_calls.increment();
        socket::local_address(socket.descriptor.as_fd())
    }

    fn peer_address(&self, stream: SlotId) -> io::Result<Address> {
        let socket = self.sockets.get(stream).ok_or_else(error::gone)?;
        self.parts.counters.setup_calls.increment();
        socket::peer_address(socket.descriptor.as_fd())
    }
}

impl Drop for Blocking {
    /// No turn follows any more: lingering sockets end here, at the latest at their deadlines.
    fn drop(&mut self) {
        while let Some(deadline) = self.deadline().filter(|_| !self.lingering.is_empty()) {
            self.retry_at = self.retry_at.filter(|at| *at > monotonic());
            if self.idle(Some(deadline.since(monotonic()))).is_err() {
                break;
            }
            self.settle();
        }
        for id in self.sockets.ids() {
            if let Some(socket) = self.sockets.get_mut(id) {
                socket.lose_output(&self.parts.counters);
            }
        }
    }
}
