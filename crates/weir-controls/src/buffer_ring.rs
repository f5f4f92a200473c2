//! The provided buffers of the io_uring control: a ring from which the kernel takes receive buffers, and the place of
//! each filled buffer in the queue of its connection.
//!
//! Invariants, cited by the safety comments:
//! 1. The ring and the buffers are allocated once, zeroed, and never freed, so the kernel may write at
//!    any time.
//! 2. The kernel owns a buffer from [`BufferRing::recycle`] until a completion names it; the loop owns it from then
//!    until the next `recycle`. Each buffer is recycled once per completion that named it, so the ring never holds
//!    more buffers than it has entries, and an entry is free when it is written.
//! 3. Entries are written before the tail that covers them is stored with release ordering.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;

const PAGE_BYTES: usize = 4096;

/// Added to the distance between buffers, so that their first lines do not all map to the same cache set.
const COLOUR_BYTES: usize = 64;

/// The only buffer group of the ring.
pub const GROUP: u16 = 0;

/// No buffer: the end of a queue. A ring has at most 32768 buffers, so no buffer has this number.
pub const NONE: u16 = u16::MAX;

/// What the loop knows about a filled buffer.
#[derive(Clone, Copy)]
pub struct Filled {
    pub bytes: u32,
    /// The buffer to send after this one, or [`NONE`].
    pub next: u16,
}

pub struct BufferRing {
    entries: NonNull<BufRingEntry>,
    storage: NonNull<u8>,
    buffer_bytes: u32,
    count: u16,
    tail: u16,
    filled: Box<[Filled]>,
}

impl BufferRing {
    /// Registers `count` buffers, a power of two, with the ring and hands all of them to the kernel.
    pub fn register(submitter: &Submitter<'_>, count: u16, buffer_bytes: u32) -> io::Result<Self> {
        let entries = allocate(usize::from(count) * size_of::<BufRingEntry>()).cast();
        let storage = allocate(usize::from(count) * (buffer_bytes as usize + COLOUR_BYTES));
        // SAFETY: invariant 1: `entries` is page-aligned, has room for `count` entries and is never freed.
        unsafe { submitter.register_buf_ring_with_flags(entries.as_ptr() as u64, count, GROUP, 0)? };
        let filled = vec![Filled { bytes: 0, next: NONE }; usize::from(count)].into_boxed_slice();
        let mut ring = BufferRing { entries, storage, buffer_bytes, count, tail: 0, filled };
        (0..count).for_each(|id| ring.recycle(id));
        ring.publish();
        Ok(ring)
    }

    /// Where a buffer begins. The address never changes.
    pub fn address(&self, id: u16) -> NonNull<u8> {
        assert!(id < self.count);
        let offset_bytes = usize::from(id) * (self.buffer_bytes as usize + COLOUR_BYTES);
        // SAFETY: `id` is below the count the storage was allocated for, so the sum stays inside of it.
        unsafe { self.storage.add(offset_bytes) }
    }

    pub fn filled(&mut self, id: u16) -> &mut Filled {
        &mut self.filled[usize::from(id)]
    }

    /// Gives a buffer back; the kernel sees it at the next [`BufferRing::publish`].
    pub fn recycle(&mut self, id: u16) {
        let address = self.address(id).as_ptr() as u64;
        let index = usize::from(self.tail & (self.count - 1));
        // SAFETY: invariant 2: `index` is below `count`, and the entry is not one the kernel may still read.
        let entry = unsafe { self.entries.add(index).as_mut() };
        entry.set_addr(address);
        entry.set_len(self.buffer_bytes);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
    }

    /// Makes everything recycled since the last time visible to the kernel.
    pub fn publish(&self) {
        // SAFETY: invariants 1 and 3: the tail lies inside the ring, is aligned, is never freed, and only the kernel
        // reads it meanwhile, as an atomic.
        unsafe {
            let tail = BufRingEntry::tail(self.entries.as_ptr()).cast_mut();
            AtomicU16::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }
}

/// Zeroed pages that are never freed.
fn allocate(bytes: usize) -> NonNull<u8> {
    let layout = Layout::from_size_align(bytes, PAGE_BYTES).expect("a size that the options bound");
    // SAFETY: the size is not zero: the count and the buffer size are at least one.
    let address = unsafe { alloc_zeroed(layout) };
    NonNull::new(address).unwrap_or_else(|| handle_alloc_error(layout))
}
