//! io_uring: operations are submitted together with the wait for their completions, in one system call a turn.
//!
//! Receives are multishot where the kernel reports every end (`crate::multishot_probe`) and take provided buffers;
//! the buffer is chosen when data arrives, so an idle connection holds none. Each connection has at most one send in
//! flight, so bytes leave in order; the send reads directly from the lease or send buffer. Every submission is
//! counted on its socket. A socket is forgotten, its descriptor closed and its memory reused only when the count is
//! zero again.
//!
//! If an option asks for it, large chunks are sent without a copy (`zero_copy.rs`); their bytes outlive the send.
//!
//! File operations also go to the ring, and the ring closes files.
//!
//! Invariants: (1) memory named by a submission is owned by its socket's slot, by its operation on a file, by a
//! zero-copy send's slot, or by a buffer ring, and does not move or change until the final completion; (2)
//! `Connection::operations` counts submissions without a final completion, and a slot is removed only at zero; (3) on
//! teardown everything is cancelled and reaped, and memory of operations that do not complete is leaked, never freed;
//! (4) a tried send (`send.rs`) counts as successful only when the kernel has consumed its submission, its batch's
//! completions are dispatched, and no overflow hides one.

use std::{
    collections::VecDeque,
    io,
    net::SocketAddr,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    sync::Arc,
    task::{Poll, Waker},
    time::Duration,
};

use io_uring::{squeue::Entry, types::Fd};
use rustix::{io::Errno, net::RecvFlags};
use socket2::SockAddr;
use weir_engine_types::kernel::KernelFeature;

use super::{
    connection::{Connection, Receiving, Sending},
    contract::{DriverOps, DriverParts, Wait},
    error,
    files::{FileOperation, FileResult, Operations},
    lingering::Lingering,
    retries::Retries,
    send_state::{SendAccess, SendState},
    socket::{self, ListenOptions, Reserve, SLICES_MAX},
};
use crate::{
    address::Address,
    clock::{Instant, monotonic},
    config::{Config, ReceiveMode},
    counters::Counters,
    doorbell::Doorbell,
    pool::{Buffer, CLASS_BYTES, Lease, SizeChoice},
    slab::{Slab, SlotId},
    wakers::Departed,
};

mod accept;
mod buffers;
mod close;
mod detach;
#[cfg(test)]
mod fault_injection;
mod files;
mod inbound;
mod plain_entry;
mod receive;
mod ring;
mod send;
mod setup;
mod table;
#[cfg(test)]
mod tests;
mod token;
mod wake_message;
mod zero_copy;

use buffers::Buffers;
use files::{Submitted, Workers};
use inbound::Inbound;
use plain_entry::PlainEntry;
use ring::{Completion, Ring};
use table::{FileTable, Target};
use token::Kind;
use wake_message::Unsent;
use zero_copy::ZeroCopy;

/// `IORING_RECVSEND_POLL_FIRST`: wait for data before a buffer is chosen.
const POLL_FIRST: u16 = 1;
/// `IORING_RECV_MULTISHOT`.
const MULTISHOT: u16 = 2;
/// `IORING_RECVSEND_BUNDLE`.
const BUNDLE: u16 = 16;
/// `IORING_ACCEPT_MULTISHOT` is set by the opcode; these are completion flags.
const CQE_BUFFER: u32 = 1;
const CQE_MORE: u32 = 2;
const CQE_NONEMPTY: u32 = 4;
const CQE_NOTIFICATION: u32 = 8;

/// Accepted connections waiting for `accept` before accepting pauses.
const ACCEPTED_MAX: usize = 1024;
/// Bytes of one send: the kernel moves at most `0x7fff_f000` in a call, and reports that only by a short count.
const SEND_BYTES_MAX: usize = 1 << 30;
/// Largest arrival that is appended to a waiting one by a copy.
const JOIN_BYTES_MAX: usize = 4096;
/// Most turns at the end of a `block_on`: a peer that sends without a pause would keep it busy forever.
const SUBMIT_TURNS_MAX: usize = 64;
/// How long teardown waits for cancelled operations.
const TEARDOWN: Duration = Duration::from_secs(2);

enum SocketKind {
    /// With the connections that wait for `accept`.
    Listener(VecDeque<OwnedFd>),
    /// With the address, which the kernel reads.
    Connecting(Box<SockAddr>),
    Stream,
}

impl SocketKind {
    const LISTENER: Self = SocketKind::Listener(VecDeque::new());
}

/// A gathered send's header; its address is stable while it is in flight.
struct SendHeader {
    msghdr: libc::msghdr,
    slices: [libc::iovec; SLICES_MAX],
}

struct Socket {
    descriptor: OwnedFd,
    /// Its name in submissions.
    target: Target,
    kind: SocketKind,
    /// Its operations are the submissions without a final completion.
    connection: Connection,
    inbound: Inbound,
    /// The buffer of a receive in flight, where the kernel has no buffer rings.
    own_buffer: Option<Buffer>,
    /// More data waits, according to the last completion.
    nonempty: bool,
    /// Consecutive arrivals that each had more data waiting behind them.
    burst: u8,
    receive_waiter: Option<Waker>,
    send: SendState,
    /// The kernel has refused a zero-copy send on it.
    copies: bool,
    send_header: Option<Box<SendHeader>>,
    size: SizeChoice,
}

impl Socket {
    fn new(descriptor: OwnedFd, kind: SocketKind) -> Self {
        Self {
            target: Target::descriptor(&descriptor),
            descriptor,
            kind,
            connection: Connection::new(),
            inbound: Inbound::default(),
            own_buffer: None,
            nonempty: false,
            burst: 0,
            receive_waiter: None,
            send: SendState::default(),
            copies: false,
            send_header: None,
            size: SizeChoice::default(),
        }
    }

    fn is_stream(&self) -> bool {
        matches!(self.kind, SocketKind::Stream)
    }

    fn fail(&mut self, error: Errno, parts: &DriverParts) {
        self.connection.fail(error);
        self.lose_idle_output(&parts.counters);
        self.wake_receiver(&parts.departed);
        self.send.wake(&parts.departed);
    }

    /// Gives up what is queued; no send may be in flight. If that is anything, the next close is a reset.
    fn lose_output(&mut self, counters: &Counters) {
        if !self.send.queue.is_empty() {
            socket::reset_on_close(self.descriptor.as_fd(), counters);
            self.send.queue.clear();
        }
    }

    /// As [`Self::lose_output`], unless an operation is in flight: its completion shows what is left.
    fn lose_idle_output(&mut self, counters: &Counters) {
        if matches!(self.connection.sending(), Sending::Idle | Sending::Stalled) {
            self.lose_output(counters);
        }
    }

    #[inline]
    fn wake_receiver(&mut self, departed: &Departed) {
        departed.wake(self.receive_waiter.take());
    }
}

/// The driver.
pub(crate) struct Uring {
    ring: Ring,
    parts: DriverParts,
    buffers: Buffers,
    sockets: Slab<Socket>,
    table: FileTable,
    zero_copy: ZeroCopy,
    files: Operations<Submitted>,
    /// Close requests in flight.
    files_closing: usize,
    workers: Workers,
    /// The doorbells that this ring has sent messages to, each once: at most one for each other runtime.
    doorbells: Vec<Arc<Doorbell>>,
    /// Messages that the kernel may not have taken: one for each sleep of another runtime that this one ended since
    /// the submission queue was last seen empty.
    unsent: Vec<Unsent>,
    /// Number of receive buffer sizes.
    classes: u8,
    /// Receives stay armed.
    multishot: bool,
    /// A multishot receive may fill several buffers at once.
    bundles: bool,
    provided: bool,
    accept_multishot: bool,
    completions: Vec<Completion>,
    dirty: Vec<SlotId>,
    /// Sends whose success shows only by a missing completion, each with its number.
    tried: Vec<(SlotId, u32)>,
    /// Number of the last one.
    tries: u32,
    /// A task waits for one of them: do not sleep before they are settled.
    follow_up: bool,
    starved_receivers: VecDeque<SlotId>,
    /// For how many consecutive turns most buffers of each size were in use while receives waited for buffers.
    held_turns: [u8; CLASS_BYTES.len()],
    reserve: Reserve,
    /// All connections that wait in the kernel may be accepted at once.
    accepts_in_bursts: bool,
    retries: Retries,
    lingering: Lingering,
    turn: u64,
    /// The turn in which draining began.
    draining: Option<u64>,
    /// Receivers to wake after the next look, while draining.
    recheck: Vec<SlotId>,
}

/// Whether bytes have arrived that no receive has taken. The kernel completes only some receives in one turn.
fn has_input(socket: &Socket, counters: &Counters) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    counters.recv_calls.increment();
    let look = || rustix::net::recv(&socket.descriptor, &mut [0u8; 1][..], flags);
    matches!(counters.clock.call(look), Ok((_, 1..)))
}

/// Whether receives shall stay armed if the kernel supports that. The layer above the drivers tests whether the
/// kernel reports every end to such receives; without that test they do not stay armed.
fn wants_multishot(config: &Config) -> bool {
    let is_hidden = config.masked().hides(KernelFeature::MultishotReceive);
    !is_hidden && matches!(config.uring.receive, ReceiveMode::Multishot | ReceiveMode::Bundle)
}

/// The features that the kernel grants a driver with this configuration, as stable names.
pub(super) fn granted(config: &Config) -> io::Result<Vec<&'static str>> {
    let ring = Ring::new(&config.uring, config.masked())?;
    let granted = ring.granted;
    let list = [
        (granted.defer_taskrun, "deferred-task-run"),
        (granted.single_issuer, "single-issuer"),
        (granted.single_issuer && wants_multishot(config), "multishot-receive"),
        (granted.no_sqarray, "no-index-array"),
        (granted.registered_ring, "registered-ring"),
        (granted.skip_success, "completions-skipped-on-success"),
        (granted.no_iowait, "no-iowait"),
        (!config.uring.minimum_wait.is_zero(), "minimum-wait"),
        (config.uring.receive == ReceiveMode::Bundle, "receive-bundle"),
        (config.uring.poll_idle_ms.is_some(), "submission-polling"),
        (config.uring.fixed_files, "fixed-files"),
        (config.uring.zero_copy_bytes_min.is_some(), "zero-copy-send"),
    ];
    let names: Vec<&str> = list.iter().filter(|(has, _)| *has).map(|(_, name)| *name).collect();
    Ok(if names.is_empty() { vec!["basic-ring"] } else { names })
}

impl Uring {
    pub(crate) fn new(parts: DriverParts) -> io::Result<Self> {
        let masked = parts.config.masked();
        let mut ring = Ring::new(&parts.config.uring, masked)?;
        let table = FileTable::new(&parts.config, &mut ring)?;
        let zero_copy = ZeroCopy::new(&parts.config, &ring)?;
        let bundles = parts.config.uring.receive == ReceiveMode::Bundle;
        let mut buffers = Buffers::new(std::rc::Rc::clone(&parts.receive_pool), bundles);
        // Buffer rings and multishot accept came with 5.19, multishot receive and the single-issuer flag with 6.0.
        let provided = !masked.hides(KernelFeature::BufferRing) && buffers.provide(0, &ring).is_ok();
        let multishot = provided && ring.granted.single_issuer && wants_multishot(&parts.config);
        let reserve = Reserve::new(parts.config.limits.descriptors_reserved, parts.wake.as_fd());
        let mut driver = Self {
            multishot,
            bundles: multishot && bundles,
            accept_multishot: provided && !masked.hides(KernelFeature::MultishotAccept),
            provided,
            ring,
            buffers,
            sockets: Slab::new(parts.config.limits.sockets_max),
            table,
            zero_copy,
            files: Operations::new(parts.config.limits.file_operations_max, &parts.departed),
            files_closing: 0,
            workers: Workers::default(),
            doorbells: Vec::new(),
            unsent: Vec::new(),
            classes: parts.receive_pool.classes(),
            parts,
            completions: Vec::with_capacity(1024),
            dirty: Vec::new(),
            tried: Vec::new(),
            tries: 0,
            follow_up: false,
            starved_receivers: VecDeque::new(),
            held_turns: Default::default(),
            reserve,
            accepts_in_bursts: false,
            retries: Retries::default(),
            lingering: Lingering::default(),
            turn: 0,
            draining: None,
            recheck: Vec::new(),
        };
        #[cfg(test)]
        {
            driver.ring.disorder = fault_injection::Disorder::installed(driver.ring.granted.skip_success);
        }
        driver.arm_wake();
        Ok(driver)
    }

    #[inline]
    fn push(&mut self, entry: PlainEntry) {
        self.ring.push(entry, &self.parts.counters);
    }

    /// # Safety
    /// That of [`Ring::push_naming_memory`]: something owns the memory until the final completion (invariants 1 and 3).
    #[inline]
    unsafe fn push_naming_memory(&mut self, entry: Entry) {
        // SAFETY: the caller's.
        unsafe { self.ring.push_naming_memory(entry, &self.parts.counters) };
    }

    fn arm_wake(&mut self) {
        let token = Kind::Wake.token(SlotId { index: 0, generation: 0 });
        let descriptor = Fd(self.parts.wake.as_raw_fd());
        // A poll that cannot stay armed is armed again after each wake-up.
        self.push(PlainEntry::poll_input(descriptor, self.ring.granted.multishot_poll).token(token));
    }

    fn insert(&mut self, descriptor: OwnedFd, kind: SocketKind) -> io::Result<SlotId> {
        let limit = self.parts.config.limits.sockets_max;
        let is_stream = matches!(kind, SocketKind::Stream);
        let id = self.sockets.insert(Socket::new(descriptor, kind)).map_err(|_| error::too_many(limit))?;
        if self.table.has_place(id.index)
            && let Some(socket) = self.sockets.get_mut(id)
        {
            socket.target = self.table.place(id.index, &socket.descriptor, &self.ring, &self.parts.counters);
        }
        if is_stream {
            self.parts.counters.connections_open.increment();
        }
        Ok(id)
    }

    /// Removes a socket that has nothing in flight.
    fn remove(&mut self, id: SlotId) -> Option<Socket> {
        let mut socket = self.sockets.remove(id)?;
        self.parts.departed.let_go(socket.receive_waiter.take());
        self.parts.departed.let_go(socket.send.waiter.take());
        debug_assert_eq!(socket.connection.operations(), 0, "a socket is given up after its last operation");
        self.table.clear(id.index, socket.target, &self.ring, &self.parts.counters);
        Some(socket)
    }

    fn cancel(&mut self, kind: Kind, id: SlotId) {
        self.push(PlainEntry::cancel(kind.token(id)).token(Kind::Cancel.token(id)));
    }

    fn dispatch(&mut self) {
        let mut completions = std::mem::take(&mut self.completions);
        for &completion in &completions {
            let (kind, id) = Kind::split(completion.token);
            match kind {
                Some(Kind::Receive(class)) => self.on_receive(id, class, completion),
                Some(Kind::Readable) => self.on_readable(id, completion.result),
                Some(Kind::Send) => self.on_send(id, completion.result),
                Some(Kind::ZeroCopy) => self.on_zero_copy(id, completion),
                Some(Kind::Accept) => self.on_accept(id, completion),
                Some(Kind::Connect) => self.on_connect(id, completion.result),
                Some(Kind::Room) => self.on_room(id, completion.result),
                Some(Kind::File) => self.on_file(id, completion.result),
                Some(Kind::CloseFile) => self.files_closing -= 1,
                Some(Kind::Wake | Kind::Woken) => {
                    self.parts.woken.set(true);
                    if kind == Some(Kind::Wake) && completion.flags & CQE_MORE == 0 {
                        // The written value stays readable, and the next poll would find it again.
                        self.parts.take_wake_up();
                        self.arm_wake();
                    }
                }
                Some(Kind::Message) => self.on_message_sent(id, completion.result),
                Some(Kind::Cancel) => {}
                None => self.parts.counters.events_stale.increment(),
            }
        }
        completions.clear();
        self.completions = completions;
    }
}

impl DriverOps for Uring {
    fn listen(&mut self, address: &Address, options: &ListenOptions) -> io::Result<SlotId> {
        let descriptor = socket::listen(address, options, self.parts.config.congestion_control.as_deref())?;
        self.insert(descriptor, SocketKind::LISTENER)
    }

    fn adopt_listener(&mut self, descriptor: OwnedFd) -> io::Result<SlotId> {
        self.insert(descriptor, SocketKind::LISTENER)
    }

    fn adopt_stream(&mut self, descriptor: OwnedFd) -> io::Result<SlotId> {
        // A non-blocking socket would end a send with EAGAIN instead of waiting for room.
        socket::set_nonblocking(&descriptor, false, &self.parts.counters)?;
        self.insert(descriptor, SocketKind::Stream)
    }

    fn detach(&mut self, id: SlotId) -> io::Result<OwnedFd> {
        let socket = self.sockets.get(id).ok_or_else(error::gone)?;
        if socket.connection.operations() > 0 || !socket.send.queue.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::ResourceBusy,
                "operations are in flight on this stream",
            ));
        }
        let removed = self.remove(id).ok_or_else(error::gone)?;
        if removed.is_stream() {
            self.parts.counters.connections_open.decrement();
        }
        Ok(removed.descriptor)
    }

    fn poll_detach(&mut self, id: SlotId, waker: &Waker) -> Poll<io::Result<(OwnedFd, Vec<u8>)>> {
        self.poll_moved(id, waker)
    }

    fn poll_accept(&mut self, listener: SlotId, waker: &Waker) -> Poll<io::Result<SlotId>> {
        self.accept_next(listener, waker)
    }

    fn connect(&mut self, address: &Address, local: Option<SocketAddr>) -> io::Result<SlotId> {
        self.start_connect(address, local)
    }

    fn poll_connect(&mut self, stream: SlotId, waker: &Waker) -> Poll<io::Result<()>> {
        let Some(socket) = self.sockets.get_mut(stream) else { return Poll::Ready(Err(error::gone())) };
        if let Some(error) = socket.connection.error() {
            return Poll::Ready(Err(error.into()));
        }
        if socket.is_stream() {
            return Poll::Ready(Ok(()));
        }
        self.parts.departed.wait(&mut socket.send.waiter, waker);
        Poll::Pending
    }

    fn poll_receive(&mut self, stream: SlotId, waker: &Waker) -> Poll<io::Result<Option<Lease>>> {
        let low_water = self.parts.config.limits.input_high_water_bytes / 2;
        let Some(socket) = self.sockets.get_mut(stream) else { return Poll::Ready(Err(error::gone())) };
        if let Some(lease) = socket.inbound.take() {
            let is_idle = socket.connection.receiving() == Receiving::Idle;
            if is_idle && self.multishot && socket.inbound.has_room(low_water) {
                self.arm_receive(stream);
            }
            return Poll::Ready(Ok(Some(lease)));
        }
        if let Some(answer) = socket.connection.input().answer() {
            return Poll::Ready(answer);
        }
        if let Some(since) = socket.connection.rest_asked_in(self.turn).or(self.draining) {
            if self.turn <= since + 1 || self.ring.has_completions() {
                self.recheck.push(stream);
            } else if !has_input(socket, &self.parts.counters) {
                if !self.ring.completes_late() {
                    return Poll::Ready(socket.connection.input().answer_if_empty());
                }
                self.recheck.push(stream);
            }
        }
        self.parts.departed.wait(&mut socket.receive_waiter, waker);
        if socket.connection.receiving() == Receiving::Idle {
            self.arm_receive(stream);
        }
        Poll::Pending
    }

    #[inline]
    fn poll_output_room(&mut self, stream: SlotId, waker: &Waker) -> Poll<io::Result<()>> {
        let limits = self.parts.config.limits;
        self.poll_output(stream, limits.output_high_water_bytes, limits.output_low_water_bytes, waker)
    }

    fn poll_flushed(&mut self, stream: SlotId, waker: &Waker) -> Poll<io::Result<()>> {
        if self.sockets.get(stream).is_some_and(|socket| socket.send.wants_end()) {
            // The end of the stream counts as something to send.
            self.submit_send(stream);
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
        self.poll_operation(operation, waker)
    }

    fn forget_file(&mut self, operation: &mut FileOperation) {
        self.files.forget(operation);
    }

    fn close_file(&mut self, file: Arc<OwnedFd>) {
        self.submit_close(file);
    }

    fn close(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        self.parts.departed.let_go(socket.receive_waiter.take());
        self.parts.departed.let_go(socket.send.waiter.take());
        socket.inbound = Inbound::default();
        if let SocketKind::Listener(accepted) = &mut socket.kind {
            accepted.clear();
        }
        // Also after a move that was given up: input may have to be discarded.
        socket.connection.close();
        if !socket.send.queue.is_empty() {
            self.linger(id);
            self.mark_dirty(id);
        }
        if self.draining.is_none() {
            self.stop_receive(id);
        }
        self.finish_closing(id);
    }

    fn abort(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        socket.connection.close();
        socket.inbound = Inbound::default();
        socket::reset_on_close(socket.descriptor.as_fd(), &self.parts.counters);
        socket.fail(Errno::CONNABORTED, &self.parts);
        self.finish_closing(id);
    }

    fn flush(&mut self) {
        while let Some(id) = self.dirty.pop() {
            if let Some(socket) = self.sockets.get_mut(id) {
                socket.send.dirty = false;
            }
            self.submit_send(id);
        }
    }

    fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    fn turn(&mut self, wait: Wait) -> io::Result<()> {
        self.turn += 1;
        if self.provided {
            self.buffers.refill();
        }
        let others_wait = !self.starved_receivers.is_empty() && self.rearm_starved();
        let counters = Arc::clone(&self.parts.counters);
        counters.turns.increment();
        // A tried send may hold the buffers that a starved receive waits for, and nothing else may complete.
        let follow_up =
            self.follow_up || others_wait || !self.tried.is_empty() && !self.starved_receivers.is_empty();
        let limit = match wait {
            _ if follow_up => None,
            Wait::No => None,
            Wait::Forever => Some(None),
            Wait::Until(deadline) => Some(Some(deadline.since(monotonic()))),
        };
        if limit.is_some() {
            counters.waits.increment();
        }
        self.ring.turn(limit, &counters)?;
        let (submitted, messages) = (self.tried_submitted(), self.messages_submitted());
        self.ring.reap(&mut self.completions);
        counters.completions.add(self.completions.len() as u64);
        counters.completions_per_turn_max.raise_to(self.completions.len() as u64);
        self.dispatch();
        self.settle_tried(submitted);
        self.unsent.drain(..messages);
        if self.retries.deadline().is_some() || self.lingering.deadline().is_some() {
            self.handle_deadlines(monotonic());
        }
        for id in std::mem::take(&mut self.recheck) {
            if let Some(socket) = self.sockets.get_mut(id) {
                socket.wake_receiver(&self.parts.departed);
            }
        }
        Ok(())
    }

    fn deadline(&self) -> Option<Instant> {
        if !self.recheck.is_empty() {
            return Some(Instant::default());
        }
        self.retries.deadline().into_iter().chain(self.lingering.deadline()).min()
    }

    fn drain(&mut self) {
        self.draining = Some(self.turn);
        for id in self.sockets.ids() {
            if let Some(socket) = self.sockets.get_mut(id) {
                socket.wake_receiver(&self.parts.departed);
            }
        }
    }

    fn abort_all(&mut self) {
        for id in self.sockets.ids() {
            let Some(socket) = self.sockets.get_mut(id) else { continue };
            if socket.connection.is_closing() {
                self.abort(id);
            } else {
                if socket.is_stream() {
                    socket::reset_on_close(socket.descriptor.as_fd(), &self.parts.counters);
                }
                socket.fail(Errno::CONNABORTED, &self.parts);
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

    fn message_ring(&self) -> io::Result<OwnedFd> {
        self.ring.for_messages()
    }

    fn send_message(&mut self, doorbell: &Arc<Doorbell>) {
        self.submit_message(doorbell);
    }

    fn submit_queued(&mut self) {
        // Whole turns, because the completion of one operation queues the next: the rest of a send, or the close of
        // the socket. At least one, because completions may already be there.
        for _ in 0..SUBMIT_TURNS_MAX {
            // The next turn meets the failure again and reports it.
            if self.turn(Wait::No).is_err() || !self.ring.has_queued() {
                return;
            }
        }
    }

    fn settle_messages(&mut self) {
        self.ring_for_unsent();
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // As after a panic in a task, which ends the runtime at any point.
        self.ring_for_unsent();
        if self.cancel_and_reap() > 0 {
            // The kernel may still write to this memory: it is leaked (invariant 3).
            std::mem::forget(std::mem::replace(&mut self.sockets, Slab::new(0)));
            std::mem::forget(std::mem::replace(&mut self.zero_copy, ZeroCopy::none()));
            std::mem::forget(std::mem::replace(&mut self.files, Operations::new(0, &self.parts.departed)));
            std::mem::forget(std::rc::Rc::clone(&self.parts.receive_pool));
            std::mem::forget(std::rc::Rc::clone(&self.parts.send_pool));
        }
        self.buffers.unregister(&self.ring);
    }
}
