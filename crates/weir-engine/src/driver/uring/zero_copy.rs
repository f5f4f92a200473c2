//! Sends without a copy (`IORING_OP_SEND_ZC`): the kernel reads the bytes in place, until the peer has acknowledged
//! them.
//!
//! Such a send completes twice: with its result, as any send, and with a notification when the kernel no longer uses
//! the bytes. The bytes leave the queue with the submission and belong to a separate slot until both completions are
//! there, whatever happens to the socket in between; the socket itself waits only for the result. The rest of a short
//! send is copied, because the notification covers the whole chunk. A driver that ends waits for notifications as for
//! everything else, and leaks what is still lent then.
//!
//! Only memory that nothing else needs is lent: a peer that reads slowly would keep a receive buffer, or one of the
//! send pool, indefinitely. At most [`SENDS_MAX`] chunks and `Limits::pool_bytes_max` bytes are lent at a time, and a
//! send beyond that is copied. A send to a peer whose window is smaller than [`WINDOW_MIN`] is copied too, and every
//! further send on a socket that cannot lend (of the sockets that this engine opens only TCP can), or for which the
//! kernel has refused one: the process may pin no more memory.

use std::{io, os::fd::AsFd};

use io_uring::opcode;
use weir_engine_types::kernel::KernelFeature;
use weir_sys::output::peer_window;

use super::{
    CQE_MORE, CQE_NOTIFICATION, SEND_BYTES_MAX, Sending, Socket, Uring,
    ring::{Completion, Ring},
    send::SEND_FLAGS,
    table::Target,
    token::Kind,
};
use crate::{
    config::Config,
    counters::Counters,
    driver::error,
    send_queue::LentChunk,
    slab::{Slab, SlotId},
};

/// Chunks lent at a time.
const SENDS_MAX: usize = 1024;

/// Smallest window of a peer for which bytes are lent.
///
/// A segment is at most half of the largest window so far, and lent bytes are charged to both ends as whole pages: 2
/// KiB that lie on two pages count as 9 KiB. On the same machine a peer with a small buffer then sees more overhead
/// than it expected, and shrinks its window below half of its former size. From then on no segment fits the window,
/// and each is sent by a probe, 200 ms after the one before. If segments span many pages the overhead never takes
/// half of a window. Linux offers more than this size in a connection's first segment. A peer that does not keep up
/// also has a small window, and would keep the pages for a long time.
const WINDOW_MIN: u32 = 48 << 10;

/// A send that has not completed twice.
struct Lent {
    socket: SlotId,
    /// The bytes; `None` once they are back in the queue because nothing of them was sent.
    chunk: Option<LentChunk>,
    /// The number of lent bytes that it counts for.
    bytes: usize,
    has_result: bool,
    is_released: bool,
}

/// The memory lent to the kernel.
pub(super) struct ZeroCopy {
    /// Chunks of at least this many bytes are lent; `usize::MAX`: none.
    pub(super) bytes_min: usize,
    /// Bytes that may be lent at a time.
    pub(super) bytes_max: usize,
    bytes: usize,
    sends: Slab<Lent>,
}

impl ZeroCopy {
    /// Applies the options.
    ///
    /// # Errors
    /// If the kernel has no such operation.
    pub(super) fn new(config: &Config, ring: &Ring) -> io::Result<Self> {
        let Some(bytes_min) = config.uring.zero_copy_bytes_min else { return Ok(Self::none()) };
        if !ring.supports(opcode::SendZc::CODE, KernelFeature::ZeroCopySend)? {
            return Err(error::missing(KernelFeature::ZeroCopySend, "IORING_OP_SEND_ZC"));
        }
        Ok(Self {
            bytes_min: (bytes_min as usize).max(1),
            bytes_max: config.limits.pool_bytes_max,
            bytes: 0,
            sends: Slab::new(SENDS_MAX),
        })
    }

    /// Lends nothing.
    pub(super) fn none() -> Self {
        Self { bytes_min: usize::MAX, bytes_max: 0, bytes: 0, sends: Slab::new(0) }
    }

    /// Whether the next send of this socket shall be a zero-copy send.
    #[inline]
    pub(super) fn admits(&self, socket: &mut Socket, counters: &Counters) -> bool {
        socket.send.queue.len() >= self.bytes_min && self.can_lend(socket) && socket.has_window(counters)
    }

    fn can_lend(&self, socket: &Socket) -> bool {
        let length = socket.send.queue.lendable_front();
        let is_wanted = !socket.copies && (self.bytes_min..=SEND_BYTES_MAX).contains(&length);
        is_wanted && self.sends.len() < SENDS_MAX && self.bytes.saturating_add(length) <= self.bytes_max
    }

    /// Keeps the lent chunk of a socket's send; returns it if there is no room.
    fn lend(&mut self, socket: SlotId, chunk: LentChunk) -> Result<SlotId, LentChunk> {
        let bytes = chunk.rest().len();
        let empty = Lent { socket, chunk: None, bytes, has_result: false, is_released: false };
        let Ok(number) = self.sends.insert(empty) else { return Err(chunk) };
        self.bytes += bytes;
        if let Some(lent) = self.sends.get_mut(number) {
            lent.chunk = Some(chunk);
        }
        Ok(number)
    }

    /// Releases a chunk when its send has completed twice.
    fn settle(&mut self, number: SlotId) {
        if let Some(lent) = self.sends.get(number)
            && lent.has_result
            && lent.is_released
        {
            self.bytes -= lent.bytes;
            self.sends.remove(number);
        }
    }

    /// Sends that have not completed twice.
    pub(super) fn in_flight(&self) -> usize {
        self.sends.len()
    }
}

impl Socket {
    /// Whether the peer has enough room for bytes to be lent.
    fn has_window(&mut self, counters: &Counters) -> bool {
        counters.setup_calls.increment();
        let window = peer_window(self.descriptor.as_fd());
        self.copies |= window.is_err();
        window.is_ok_and(|window| window >= WINDOW_MIN)
    }
}

impl Uring {
    /// Sends the chunk at the front of the queue, which can be lent.
    pub(super) fn submit_zero_copy(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let Some(chunk) = socket.send.queue.lend_front() else { return };
        let number = match self.zero_copy.lend(id, chunk) {
            Ok(number) => number,
            Err(chunk) => {
                socket.send.queue.return_lent(chunk);
                socket.copies = true;
                return self.submit_send(id);
            }
        };
        // The chunk is in its place before its address is taken.
        let lent = self.zero_copy.sends.get(number).and_then(|lent| lent.chunk.as_ref());
        let bytes = lent.map(LentChunk::rest).unwrap_or_default();
        let length = bytes.len() as u32;
        socket.connection.begin_send(Sending::Lent { bytes: length, slot: number });
        let Target { fd, flags } = socket.target;
        let send = opcode::SendZc::new(fd, bytes.as_ptr(), length).flags(SEND_FLAGS);
        let entry = send.build().flags(flags).user_data(Kind::ZeroCopy.token(number));
        // SAFETY: the slot of the lent chunk keeps its bytes until both completions are there, or the result says that
        // the socket has taken nothing.
        unsafe { self.push_naming_memory(entry) };
    }

    pub(super) fn on_zero_copy(&mut self, number: SlotId, completion: Completion) {
        let Some(lent) = self.zero_copy.sends.get_mut(number) else {
            self.parts.counters.events_stale.increment();
            return;
        };
        if completion.flags & CQE_NOTIFICATION != 0 {
            lent.is_released = true;
        } else {
            lent.has_result = true;
            // If no notification follows, the kernel no longer uses the bytes.
            lent.is_released |= completion.flags & CQE_MORE == 0;
            self.on_zero_copy_result(number, completion.result);
        }
        self.zero_copy.settle(number);
    }

    fn on_zero_copy_result(&mut self, number: SlotId, result: i32) {
        let low_water = self.parts.config.limits.output_low_water_bytes;
        let Some(lent) = self.zero_copy.sends.get_mut(number) else { return };
        let id = lent.socket;
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let queue = &mut socket.send.queue;
        let sent = usize::try_from(result).unwrap_or(0).min(lent.bytes);
        match lent.chunk.take() {
            // The socket has taken nothing, so the kernel no longer reads the chunk.
            Some(chunk) if sent == 0 => queue.return_lent(chunk),
            Some(chunk) => {
                queue.settle_lent(&chunk, sent);
                lent.chunk = Some(chunk);
            }
            None => {}
        }
        let is_refused = matches!(-result, libc::EOPNOTSUPP | libc::ENOMEM | libc::ENOBUFS);
        socket.copies |= is_refused;
        let result = if is_refused { -libc::EINTR } else { result };
        // The sent bytes have already left the queue.
        let next = socket.complete_send(result, low_water, &self.parts, |_, _| {});
        self.go_on(id, next);
    }
}
