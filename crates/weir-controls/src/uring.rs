//! Echo on io_uring: multishot accept, multishot receive into provided buffers, sends directly from the receive
//! buffer, and one kernel entry per turn that submits, runs deferred work and waits.
//!
//! A connection has one send in flight, so its bytes stay in order; buffers that arrive meanwhile queue behind it.
//! When the kernel finds no provided buffer (`ENOBUFS`), the connection sends what it holds, receives once into its
//! own buffer, and only then asks for provided ones again. So a peer that never reads may hold buffers forever
//! without starving others, and no list of starved connections is needed. With [`Receive::Single`] every receive is
//! single-shot into the connection's own buffer.
//!
//! Invariants, cited by the safety comments:
//! 1. Every address handed to the kernel is in a `BufferRing`, in a leaked own buffer or in a static:
//!    none is freed.
//! 2. A buffer is written only by the receive that holds it and read only by the send that holds it: an
//!    own buffer has one operation in flight at most, a provided buffer is recycled only when no send
//!    names it.
//! 3. A descriptor is closed, and its slot reused, only when no receive and no send of it is in flight, so no
//!    completion refers to a reassigned slot, and no operation to a reassigned descriptor.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;

use io_uring::types::{Fd, Timespec};
use io_uring::{CompletionQueue, EnterFlags, IoUring, SubmissionQueue, Submitter, cqueue, opcode, squeue};
use rustix::net::Shutdown;

use crate::buffer_ring::{self, BufferRing, NONE};
use crate::{ACCEPT_PAUSE_MS, is_shortage};

/// Small enough to stay in the first-level cache; a turn that needs more is split in two.
const SUBMISSIONS: u32 = 256;
const COMPLETIONS: u32 = 4096;

/// Most submissions that one completion can cause: a new connection's receive, and the next accept.
const SUBMISSIONS_PER_COMPLETION_MAX: usize = 2;

static ACCEPT_PAUSE: Timespec = Timespec::new().nsec(ACCEPT_PAUSE_MS * 1_000_000);

const BUFFER_COUNT_MAX: u16 = 1 << 15;
const BUFFER_BYTES_MAX: u32 = 1 << 20;

/// How the loop receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Receive {
    /// One submission for the life of a connection; the kernel picks a provided buffer when data is there.
    Multishot,
    /// One submission for each receive, into a buffer of the connection.
    Single,
}

/// The options that a study may vary.
#[derive(Clone, Debug)]
pub struct Options {
    /// How the loop receives.
    pub receive: Receive,
    /// Size of a provided buffer and of an own one; a size below the arriving burst is very slow.
    pub buffer_bytes: u32,
    /// Provided buffers, a power of two.
    pub buffer_count: u16,
}

impl Default for Options {
    fn default() -> Self {
        Options { receive: Receive::Multishot, buffer_bytes: 4096, buffer_count: 256 }
    }
}

impl Options {
    /// Names what is wrong with a value that the loop cannot use.
    pub fn validate(&self) -> Result<(), &'static str> {
        if !(1..=BUFFER_BYTES_MAX).contains(&self.buffer_bytes) {
            return Err("--buffer-bytes takes 1 to 1048576");
        }
        if !self.buffer_count.is_power_of_two() || self.buffer_count > BUFFER_COUNT_MAX {
            return Err("--buffer-count takes a power of two up to 32768");
        }
        Ok(())
    }
}

/// A ring with every flag that makes this loop faster; older kernels than 6.1 refuse it.
pub fn open() -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    builder.setup_single_issuer().setup_defer_taskrun().setup_coop_taskrun().setup_submit_all();
    builder.setup_clamp().setup_cqsize(COMPLETIONS);
    // Without the index array (6.6) a submission is one store less; a kernel that does not know the flag
    // says EINVAL.
    match builder.clone().setup_no_sqarray().build(SUBMISSIONS) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => builder.build(SUBMISSIONS),
        built => built,
    }
}

/// Serves until the kernel refuses to wait. The ring must come from [`open`] on this thread.
pub fn run(mut ring: IoUring, listener: TcpListener, options: &Options) -> io::Result<Infallible> {
    let mut wait = EnterFlags::GETEVENTS;
    wait.set(EnterFlags::NO_IOWAIT, ring.params().is_feature_no_iowait());
    let (mut submitter, submissions, mut completions) = ring.split();
    // Kept for all entries: the registration would be lost with the temporary submitter of `IoUring`.
    submitter.register_ring_fd()?;
    let pool = BufferRing::register(&submitter, options.buffer_count, options.buffer_bytes)?;
    let mut server = Server {
        submissions,
        listener: Fd(listener.as_raw_fd()),
        connections: Vec::new(),
        free: Vec::new(),
        pool,
        receive: options.receive,
        own_buffer_bytes: options.buffer_bytes,
    };
    server.start_accept();
    loop {
        server.pool.publish();
        enter(&submitter, &mut server.submissions, wait)?;
        server.serve_completions(&mut completions);
    }
}

/// Submits everything and waits for one completion.
fn enter(
    submitter: &Submitter<'_>,
    submissions: &mut SubmissionQueue<'_>,
    wait: EnterFlags,
) -> io::Result<()> {
    submissions.sync();
    let submission_count = submissions.len() as u32;
    // SAFETY: no extended argument is announced and none is passed; what the entries name is good by
    // invariant 1.
    let entered = unsafe { submitter.enter::<libc::sigset_t>(submission_count, 1, wait.bits(), None) };
    submissions.sync();
    match entered.map_err(|error| (error.raw_os_error(), error)) {
        // Temporarily refused: entries that were not submitted are still queued and go out in the next turn.
        Ok(_) | Err((Some(libc::EINTR | libc::EAGAIN | libc::EBUSY), _)) => Ok(()),
        Err((_, error)) => Err(error),
    }
}

/// User data of a completion: the slot in the upper bits, the kind in the low bits.
mod token {
    pub const ACCEPT: u64 = 0;
    pub const ACCEPT_PAUSE: u64 = 1;
    pub const RECEIVE: u64 = 2;
    pub const SEND: u64 = 3;
    const KIND_BITS: u32 = 2;

    pub fn of(slot: usize, kind: u64) -> u64 {
        (slot as u64) << KIND_BITS | kind
    }

    pub fn split(user_data: u64) -> (usize, u64) {
        ((user_data >> KIND_BITS) as usize, user_data & ((1 << KIND_BITS) - 1))
    }
}

/// One connection. Its queue consists either of provided buffers, linked through the pool, or of the own buffer. The
/// own buffer receives only when nothing is queued, and nothing else is received until it was sent.
struct Connection {
    socket: Option<OwnedFd>,
    is_receiving: bool,
    is_sending: bool,
    /// The peer sends no more; the connection closes when its queue is sent.
    is_ended: bool,
    /// Reset or broken; the queue is dropped.
    is_failed: bool,
    /// The pool was empty: the next receive goes to the own buffer.
    is_starved: bool,
    queue_first: u16,
    queue_last: u16,
    /// Bytes of the first buffer in the queue that were sent.
    sent_bytes: u32,
    own_bytes: u32,
    /// Allocated on first use, and kept for the next connection in this slot.
    own_buffer: Option<NonNull<u8>>,
}

impl Connection {
    fn new(socket: OwnedFd, own_buffer: Option<NonNull<u8>>) -> Self {
        Connection {
            socket: Some(socket),
            is_receiving: false,
            is_sending: false,
            is_ended: false,
            is_failed: false,
            is_starved: false,
            queue_first: NONE,
            queue_last: NONE,
            sent_bytes: 0,
            own_bytes: 0,
            own_buffer,
        }
    }

    fn fd(&self) -> Fd {
        Fd(self.socket.as_ref().expect("operations end before the descriptor is closed").as_raw_fd())
    }

    /// Shuts down both directions, so that operations in flight complete.
    fn fail(&mut self) {
        self.is_failed = true;
        self.is_ended = true;
        if let Some(socket) = &self.socket {
            // A connection that is already gone needs no shutdown.
            let _ = rustix::net::shutdown(socket, Shutdown::Both);
        }
    }
}

struct Server<'ring> {
    submissions: SubmissionQueue<'ring>,
    listener: Fd,
    connections: Vec<Connection>,
    /// Slots whose connection was closed.
    free: Vec<usize>,
    pool: BufferRing,
    receive: Receive,
    own_buffer_bytes: u32,
}

impl Server<'_> {
    /// Handles completions while there is room for the submissions they cause; the rest waits for the next turn, for
    /// which the kernel returns at once because they are still there.
    fn serve_completions(&mut self, completions: &mut CompletionQueue<'_>) {
        completions.sync();
        while self.submissions.capacity() - self.submissions.len() >= SUBMISSIONS_PER_COMPLETION_MAX {
            let Some(completion) = completions.next() else { break };
            let (slot, kind) = token::split(completion.user_data());
            match kind {
                token::RECEIVE => self.received(slot, completion.result(), completion.flags()),
                token::SEND => self.sent(slot, completion.result()),
                token::ACCEPT => self.accepted(completion.result(), completion.flags()),
                _ => self.start_accept(),
            }
        }
        completions.sync();
    }

    fn start_accept(&mut self) {
        let accept = opcode::AcceptMulti::new(self.listener).flags(libc::SOCK_CLOEXEC).build();
        self.push(accept.user_data(token::ACCEPT));
    }

    fn accepted(&mut self, result: RawFd, flags: u32) {
        if result >= 0 {
            // SAFETY: the kernel made this descriptor for this completion, so nobody else owns it.
            self.open(unsafe { OwnedFd::from_raw_fd(result) });
        }
        if cqueue::more(flags) {
            return;
        }
        if is_shortage(-result) {
            let pause = opcode::Timeout::new(&raw const ACCEPT_PAUSE).build();
            self.push(pause.user_data(token::ACCEPT_PAUSE));
        } else {
            self.start_accept();
        }
    }

    fn open(&mut self, socket: OwnedFd) {
        if rustix::net::sockopt::set_tcp_nodelay(&socket, true).is_err() {
            return;
        }
        let slot = match self.free.pop() {
            Some(slot) => {
                let own_buffer = self.connections[slot].own_buffer;
                self.connections[slot] = Connection::new(socket, own_buffer);
                slot
            }
            None => {
                self.connections.push(Connection::new(socket, None));
                self.connections.len() - 1
            }
        };
        self.advance(slot);
    }

    fn received(&mut self, slot: usize, result: i32, flags: u32) {
        let connection = &mut self.connections[slot];
        connection.is_receiving = cqueue::more(flags);
        match result {
            1.. => self.enqueue(slot, result as u32, cqueue::buffer_select(flags)),
            0 => connection.is_ended = true,
            _ => match -result {
                libc::ENOBUFS => connection.is_starved = true,
                libc::EINTR | libc::EAGAIN => {}
                _ => connection.fail(),
            },
        }
        self.advance(slot);
    }

    /// Queues received bytes: a provided buffer when one is named, else the own one.
    fn enqueue(&mut self, slot: usize, bytes: u32, buffer: Option<u16>) {
        let connection = &mut self.connections[slot];
        let Some(id) = buffer else {
            connection.own_bytes = bytes;
            return;
        };
        *self.pool.filled(id) = buffer_ring::Filled { bytes, next: NONE };
        if connection.queue_first == NONE {
            connection.queue_first = id;
        } else {
            self.pool.filled(connection.queue_last).next = id;
        }
        connection.queue_last = id;
    }

    fn sent(&mut self, slot: usize, result: i32) {
        let connection = &mut self.connections[slot];
        connection.is_sending = false;
        match result {
            0.. => {
                connection.sent_bytes += result as u32;
                self.dequeue_if_sent(slot);
            }
            _ if matches!(-result, libc::EINTR | libc::EAGAIN) => {}
            _ => connection.fail(),
        }
        self.advance(slot);
    }

    /// Removes the first buffer of the queue when all of it was sent.
    fn dequeue_if_sent(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        let id = connection.queue_first;
        let bytes = if id == NONE { connection.own_bytes } else { self.pool.filled(id).bytes };
        if connection.sent_bytes < bytes {
            return;
        }
        connection.sent_bytes = 0;
        if id == NONE {
            connection.own_bytes = 0;
        } else {
            connection.queue_first = self.pool.filled(id).next;
            self.pool.recycle(id);
        }
    }

    /// Starts the connection's next operation: a send, a receive, its end, or nothing because one is in flight.
    fn advance(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        if connection.is_sending {
            return;
        }
        if connection.is_failed {
            self.drop_queue(slot);
        }
        let connection = &self.connections[slot];
        if connection.queue_first != NONE || connection.own_bytes > 0 {
            return self.start_send(slot);
        }
        if connection.is_receiving {
            return;
        }
        if !connection.is_ended {
            return self.start_receive(slot);
        }
        self.connections[slot].socket = None;
        self.free.push(slot);
    }

    /// Call only while no send is in flight.
    fn drop_queue(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        connection.own_bytes = 0;
        while connection.queue_first != NONE {
            let id = connection.queue_first;
            connection.queue_first = self.pool.filled(id).next;
            self.pool.recycle(id);
        }
    }

    fn start_send(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        let (start, bytes) = match connection.queue_first {
            NONE => (connection.own_buffer.expect("it was received into"), connection.own_bytes),
            id => (self.pool.address(id), self.pool.filled(id).bytes),
        };
        // SAFETY: `sent_bytes` is below `bytes`, and `bytes` were received into the buffer that begins at
        // `start`.
        let rest = unsafe { start.add(connection.sent_bytes as usize) };
        connection.is_sending = true;
        let send = opcode::Send::new(connection.fd(), rest.as_ptr(), bytes - connection.sent_bytes)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build();
        self.push(send.user_data(token::of(slot, token::SEND)));
    }

    fn start_receive(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        connection.is_receiving = true;
        let fd = connection.fd();
        let receive = if self.receive == Receive::Single || std::mem::take(&mut connection.is_starved) {
            let length = self.own_buffer_bytes;
            let buffer = *connection.own_buffer.get_or_insert_with(|| leak_buffer(length));
            opcode::Recv::new(fd, buffer.as_ptr(), length).build()
        } else {
            opcode::RecvMulti::new(fd, buffer_ring::GROUP).build()
        };
        self.push(receive.user_data(token::of(slot, token::RECEIVE)));
    }

    fn push(&mut self, entry: squeue::Entry) {
        // SAFETY: invariants 1 and 2: what the entry names outlives the operation and is its alone.
        unsafe { self.submissions.push(&entry) }.expect("room for what a completion causes was checked");
    }
}

/// One own buffer. Their number is the peak number of open connections, which the descriptor limit bounds.
fn leak_buffer(bytes: u32) -> NonNull<u8> {
    NonNull::from(Box::leak(vec![0; bytes as usize].into_boxed_slice())).cast()
}
