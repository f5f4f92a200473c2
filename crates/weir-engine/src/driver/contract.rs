//! The interface of an I/O model, and the parts it is built from.
//!
//! The contract, for every driver:
//!
//! - A socket is named by a [`SlotId`]; a stale name gives an error, never another socket.
//! - Received bytes belong to the connection: `poll_receive` only takes bytes that are there, so dropping the future
//!   that called it loses nothing. Bytes that arrived before a send failed are received before the error shows.
//!   The error shows even if the peer's end was received before the send failed.
//! - `push` queues; `flush` (called whenever a task yields) hands the queues to the kernel; at most one send is in
//!   flight for a socket, so bytes leave in order. `poll_output_room` waits while the queue is above the
//!   high-water mark.
//! - `close` ends the handle, not the bytes: queued bytes are still sent, for at most
//!   [`Limits::linger`](crate::config::Limits). A descriptor is closed only after the last operation that names it.
//!   In a drain our end of the stream goes first, and the descriptor is closed when the peer has received everything:
//!   an earlier close would answer crossing bytes with a reset, and the peer could lose a reply.
//! - No operation fails because an engine queue is full: the engine waits until a receive buffer, a submission queue
//!   entry or a descriptor (`EMFILE`) is free. It also waits when the kernel has no memory for a send; on the
//!   blocking driver only for some seconds.
//! - One `turn` enters the kernel as rarely as the mechanism allows, and wakes every task that can continue.
//! - No foreign waker is woken or dropped, because that may run code which calls the driver: wakers to wake, and
//!   wakers that are replaced or given up, go to [`Departed`].
//! - A file operation belongs to the driver once it has begun: dropping its future does not stop it, and its memory
//!   is returned after its end. At most [`Limits::file_operations_max`](crate::config::Limits) are in flight; more
//!   wait.
//! - A file in the output is sent in order with the bytes around it. A file that ends early ends the connection.
//!
//! The operations are methods of one trait rather than variants of one enum: an operation on a connection has a typed
//! result, the compiler names every driver that lacks a method, and no call pays for wrapping its result. File
//! operations are data (`files/`), because they leave the runtime's thread.

use std::{
    cell::Cell,
    io,
    net::SocketAddr,
    os::fd::OwnedFd,
    rc::Rc,
    sync::Arc,
    task::{Poll, Waker},
};

use super::{
    error,
    files::{FileOperation, FileResult},
    send_state::SendAccess,
    socket::ListenOptions,
};
use crate::{
    address::Address,
    clock::Instant,
    config::Config,
    counters::Counters,
    doorbell::Doorbell,
    pool::{Lease, Pool, PoolShape},
    send_queue::SendBuf,
    slab::SlotId,
    wakers::Departed,
};

/// How long a turn may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Do not wait.
    No,
    /// Sleep until an event or this moment.
    Until(Instant),
    /// Sleep until an event.
    Forever,
}

impl Wait {
    /// The wait as a time limit; `None` means no limit.
    pub(super) fn limit(self, now: Instant) -> Option<std::time::Duration> {
        match self {
            Wait::No => Some(std::time::Duration::ZERO),
            Wait::Until(deadline) => Some(deadline.since(now)),
            Wait::Forever => None,
        }
    }

    /// The shorter of two waits.
    pub(crate) fn at_most(self, deadline: Option<Instant>) -> Wait {
        match (self, deadline) {
            (Wait::No, _) => Wait::No,
            (wait, None) => wait,
            (Wait::Forever, Some(deadline)) => Wait::Until(deadline),
            (Wait::Until(own), Some(deadline)) => Wait::Until(own.min(deadline)),
        }
    }
}

/// An I/O model.
pub(crate) trait DriverOps {
    /// Listens on an address.
    fn listen(&mut self, address: &Address, options: &ListenOptions) -> io::Result<SlotId>;

    /// Listens on a socket that is already bound and listening.
    fn adopt_listener(&mut self, descriptor: OwnedFd) -> io::Result<SlotId>;

    /// Takes over a connected socket.
    fn adopt_stream(&mut self, descriptor: OwnedFd) -> io::Result<SlotId>;

    /// Returns a socket on which nothing has been started.
    fn detach(&mut self, socket: SlotId) -> io::Result<OwnedFd>;

    /// Stops receiving on a stream whose output has been sent, and returns its socket with the received bytes that
    /// nobody has taken, in order. Later arrivals stay in the kernel, for the next owner.
    fn poll_detach(&mut self, stream: SlotId, waker: &Waker) -> Poll<io::Result<(OwnedFd, Vec<u8>)>>;

    /// The next connection of a listener. A connection for which there is no room is closed and counted, and the next
    /// one is taken.
    fn poll_accept(&mut self, listener: SlotId, waker: &Waker) -> Poll<io::Result<SlotId>>;

    /// Starts a connection, from a local TCP address if one is given; `poll_connect` waits for it.
    fn connect(&mut self, address: &Address, local: Option<SocketAddr>) -> io::Result<SlotId>;

    /// Waits until the connection is established or has failed.
    fn poll_connect(&mut self, stream: SlotId, waker: &Waker) -> Poll<io::Result<()>>;

    /// The next bytes; `None` at the end of the stream.
    fn poll_receive(&mut self, stream: SlotId, waker: &Waker) -> Poll<io::Result<Option<Lease>>>;

    /// Waits while the output queue is above the high-water mark.
    fn poll_output_room(&mut self, stream: SlotId, waker: &Waker) -> Poll<io::Result<()>>;

    /// Waits until the kernel has taken everything that is queued.
    fn poll_flushed(&mut self, stream: SlotId, waker: &Waker) -> Poll<io::Result<()>>;

    /// Access to a stream's output queue.
    fn send_access(&mut self, stream: SlotId) -> Option<SendAccess<'_>>;

    /// Queues bytes.
    #[inline]
    fn push(&mut self, stream: SlotId, bytes: SendBuf) -> io::Result<()> {
        let access = self.send_access(stream).ok_or_else(error::gone)?;
        if access.send.push(access.error, bytes)? {
            access.dirty.push(stream);
        }
        Ok(())
    }

    /// Queues a copy of bytes.
    #[inline]
    fn push_copy(&mut self, stream: SlotId, bytes: &[u8]) -> io::Result<()> {
        let access = self.send_access(stream).ok_or_else(error::gone)?;
        if access.send.push_copy(access.error, bytes, access.pool)? {
            access.dirty.push(stream);
        }
        Ok(())
    }

    /// Queues a copy of bytes if there is room. False: there is none.
    #[inline]
    fn try_push_copy(&mut self, stream: SlotId, bytes: &[u8]) -> io::Result<bool> {
        let access = self.send_access(stream).ok_or_else(error::gone)?;
        if access.error.is_none() && access.send.queue.len() > access.limit_bytes {
            return Ok(false);
        }
        if access.send.push_copy(access.error, bytes, access.pool)? {
            access.dirty.push(stream);
        }
        Ok(true)
    }

    /// Queues `bytes` once there is room, taking them out of the option.
    #[inline]
    fn poll_push(
        &mut self,
        stream: SlotId,
        bytes: &mut Option<SendBuf>,
        waker: &Waker,
    ) -> Poll<io::Result<()>> {
        match self.poll_output_room(stream, waker) {
            Poll::Ready(Ok(())) => Poll::Ready(bytes.take().map_or(Ok(()), |bytes| self.push(stream, bytes))),
            other => {
                // A peer that reads slowly must not hold a receive buffer, whether its bytes are queued or still wait
                // for room.
                if let Some(bytes) = bytes {
                    bytes.release_lease();
                }
                other
            }
        }
    }

    /// Queues a copy of `bytes` once there is room.
    #[inline]
    fn poll_push_copy(&mut self, stream: SlotId, bytes: &[u8], waker: &Waker) -> Poll<io::Result<()>> {
        match self.poll_output_room(stream, waker) {
            Poll::Ready(Ok(())) => Poll::Ready(self.push_copy(stream, bytes)),
            other => other,
        }
    }

    /// Sends the end of the stream after everything that is queued.
    fn end_output(&mut self, stream: SlotId) -> io::Result<()> {
        let access = self.send_access(stream).ok_or_else(error::gone)?;
        if access.send.end() {
            access.dirty.push(stream);
        }
        Ok(())
    }

    /// Begins a file operation when there is room for it, and waits for its answer.
    fn poll_file(&mut self, operation: &mut FileOperation, waker: &Waker) -> Poll<FileResult>;

    /// Called when the future of a file operation is dropped.
    fn forget_file(&mut self, operation: &mut FileOperation);

    /// Releases the handle of a file. The file is closed when no operation and no queue uses it any more.
    fn close_file(&mut self, file: Arc<OwnedFd>) {
        drop(file);
    }

    /// Closes the handle: stops receiving, sends the queue, then closes.
    fn close(&mut self, socket: SlotId);

    /// Ends the connection now; queued bytes are lost.
    fn abort(&mut self, socket: SlotId);

    /// Hands the output queued since the last call to the kernel.
    fn flush(&mut self);

    /// Whether `flush` has something to do.
    fn is_dirty(&self) -> bool;

    /// Waits for events and wakes the tasks that wait for them.
    fn turn(&mut self, wait: Wait) -> io::Result<()>;

    /// When the driver must run again even if no event arrives (a retry, a linger).
    fn deadline(&self) -> Option<Instant>;

    /// Stops accepting; receives end after the bytes that have already arrived.
    fn drain(&mut self);

    /// Aborts every socket.
    fn abort_all(&mut self);

    /// Sockets that are open or still being closed.
    fn sockets(&self) -> usize;

    /// The address a socket is bound to.
    fn local_address(&self, socket: SlotId) -> io::Result<Address>;

    /// The address of a stream's other end.
    fn peer_address(&self, stream: SlotId) -> io::Result<Address>;

    /// The ring on which other runtimes may leave a message that wakes this one; an error on a driver without one.
    fn message_ring(&self) -> io::Result<OwnedFd> {
        let reason = "messages from ring to ring are io_uring's";
        Err(io::Error::new(io::ErrorKind::Unsupported, reason))
    }

    /// Wakes another runtime by a message, which is sent with the next submissions.
    fn send_message(&mut self, doorbell: &Arc<Doorbell>) {
        doorbell.ring();
    }

    /// There may be no next turn: submits the kernel's queue now, and closes released handles as far as that needs no
    /// waiting.
    fn submit_queued(&mut self) {}

    /// There may be no next submission: wakes the receivers of unsent messages in another way.
    fn settle_messages(&mut self) {}

    /// Virtual time, on a driver that has one.
    fn virtual_now(&self) -> Option<Instant> {
        None
    }
}

/// The parts that every driver is built from.
pub(crate) struct DriverParts {
    pub(crate) config: Config,
    pub(crate) counters: Arc<Counters>,
    pub(crate) receive_pool: Rc<Pool>,
    pub(crate) send_pool: Rc<Pool>,
    /// Readable when another thread wakes the runtime.
    pub(crate) wake: Arc<OwnedFd>,
    /// Set when the events included another thread's wake-up.
    pub(crate) woken: Rc<Cell<bool>>,
    /// Wakers that must not be woken or dropped while the driver is borrowed.
    pub(crate) departed: Rc<Departed>,
}

impl DriverParts {
    pub(crate) fn new(
        config: &Config,
        counters: Arc<Counters>,
        wake: Arc<OwnedFd>,
        departed: Rc<Departed>,
    ) -> Self {
        let limits = &config.limits;
        let receive = PoolShape {
            bytes: config.buffers.bytes,
            count: config.buffers.count,
            class_bytes_max: limits.pool_bytes_max,
        };
        let send = PoolShape { bytes: None, count: None, class_bytes_max: limits.pool_bytes_max };
        Self {
            config: config.clone(),
            counters,
            receive_pool: Pool::new(receive),
            send_pool: Pool::new(send),
            wake,
            woken: Rc::default(),
            departed,
        }
    }

    /// Reads the wake-up descriptor. It does not matter if another reader was first.
    pub(crate) fn take_wake_up(&self) {
        self.counters.wake_calls.increment_shared();
        let _ = rustix::io::read(&*self.wake, &mut [0u8; 8]);
    }
}
