//! The parts of io_uring that the `io-uring` crate does not offer in a usable form: `io_uring_enter` on a
//! registered ring descriptor with every flag, and a provided-buffer ring that owns its memory.
//!
//! Sources: `io_uring_enter(2)`, `io_uring_register(2)`, `io_uring_setup_buf_ring(3)` of liburing 2.9.
//!
//! Invariants of [`BufferRing`]: (1) `region` holds `entries` records of 16 bytes; (2) the tail lies in the reserved
//! field of record 0, as the kernel defines; (3) only this value writes the records and the tail, except that the
//! kernel may shorten the length of a record that it is about to take.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
    sync::atomic::{AtomicU16, Ordering},
    time::Duration,
};

use io_uring::types::{BufRingEntry, Timespec};

use crate::region::Region;

/// Wait for completions and run deferred task work.
pub const ENTER_GETEVENTS: u32 = 1;
/// Wake the kernel's submission thread (`IORING_SETUP_SQPOLL`).
pub const ENTER_SQ_WAKEUP: u32 = 2;
/// Wait until that thread has made room in the submission queue (5.10 and later).
pub const ENTER_SQ_WAIT: u32 = 4;
/// The argument is a `struct io_uring_getevents_arg`.
pub const ENTER_EXT_ARG: u32 = 8;
/// The descriptor is an index from [`register_ring`].
pub const ENTER_REGISTERED_RING: u32 = 16;
/// Do not count the wait as I/O wait (6.15 and later).
pub const ENTER_NO_IOWAIT: u32 = 128;

const REGISTER_RING_FDS: libc::c_uint = 20;
const UNREGISTER_RING_FDS: libc::c_uint = 21;

/// `struct io_uring_getevents_arg` with a time limit.
#[repr(C)]
#[derive(Debug)]
struct GetEventsArgument {
    signal_mask: u64,
    signal_mask_bytes: u32,
    minimum_wait_us: u32,
    timespec: u64,
}

/// `struct io_uring_rsrc_update`.
#[repr(C)]
struct ResourceUpdate {
    offset: u32,
    reserved: u32,
    data: u64,
}

/// How long an enter waits for completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EnterWait {
    /// Wait for this many completions.
    pub completions: u32,
    /// Wait no longer than this, with [`ENTER_EXT_ARG`].
    pub limit: Option<Duration>,
    /// After this time one completion is enough, with [`ENTER_EXT_ARG`] (6.12 and later; older kernels only accept
    /// zero). It must be shorter than `limit`, and requires one: the kernel applies `limit` only after this time, and
    /// without a limit it returns at this time whatever has happened.
    pub minimum: Duration,
}

/// One `io_uring_enter`. `ring` is a descriptor number, or an index with [`ENTER_REGISTERED_RING`].
///
/// Returns the number of entries the kernel consumed. `EINTR` and `ETIME` are returned as errors.
///
/// # Safety
/// Every entry in the submission queue must describe memory and descriptors that stay valid until its final
/// completion has been seen.
pub unsafe fn enter(ring: i32, to_submit: u32, flags: u32, wait: EnterWait) -> io::Result<u32> {
    let timespec = wait.limit.map(Timespec::from);
    let argument = GetEventsArgument {
        signal_mask: 0,
        signal_mask_bytes: 0,
        minimum_wait_us: u32::try_from(wait.minimum.as_micros()).unwrap_or(u32::MAX),
        timespec: timespec.as_ref().map_or(0, |value| std::ptr::from_ref(value) as u64),
    };
    let (pointer, length) = if flags & ENTER_EXT_ARG != 0 {
        (std::ptr::from_ref(&argument), size_of::<GetEventsArgument>())
    } else {
        (std::ptr::null(), 0)
    };
    // SAFETY: the argument and its timespec live on this stack frame for the whole call; the caller vouches for
    // the queue's contents.
    let result = unsafe {
        libc::syscall(libc::SYS_io_uring_enter, ring, to_submit, wait.completions, flags, pointer, length)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as u32) }
}

/// Registers the ring's own descriptor for the calling thread; the index replaces the descriptor in [`enter`].
///
/// Saves the kernel the file look-up in threaded processes (`io_uring_register_ring_fd(3)`).
pub fn register_ring(ring: BorrowedFd<'_>) -> io::Result<i32> {
    let mut update = ResourceUpdate { offset: u32::MAX, reserved: 0, data: ring.as_raw_fd() as u64 };
    // SAFETY: `update` is one correctly laid out record, as the count says; the kernel writes only its offset.
    let result = unsafe {
        libc::syscall(
            libc::SYS_io_uring_register,
            ring.as_raw_fd(),
            REGISTER_RING_FDS,
            std::ptr::from_mut(&mut update),
            1,
        )
    };
    match result {
        1 => Ok(update.offset as i32),
        0.. => Err(io::ErrorKind::Unsupported.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Undoes [`register_ring`]. Without it the ring lives until the thread ends, even if its descriptor is closed; and a
/// thread has room for only 16.
pub fn unregister_ring(ring: BorrowedFd<'_>, index: i32) -> io::Result<()> {
    let mut update = ResourceUpdate { offset: index as u32, reserved: 0, data: 0 };
    // SAFETY: `update` is one correctly laid out record, as the count says.
    let result = unsafe {
        libc::syscall(
            libc::SYS_io_uring_register,
            ring.as_raw_fd(),
            UNREGISTER_RING_FDS,
            std::ptr::from_mut(&mut update),
            1,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A ring of buffers the kernel picks from. It owns the ring's memory, not the buffers'.
#[derive(Debug)]
pub struct BufferRing {
    region: Region,
    mask: u16,
    tail: u16,
}

impl BufferRing {
    /// Allocates a ring of `entries` (a power of two, at most 32768). Register `address()` with the kernel.
    pub fn new(entries: u16) -> io::Result<Self> {
        if !entries.is_power_of_two() || entries > 1 << 15 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let region = Region::new(usize::from(entries) * size_of::<BufRingEntry>())?;
        Ok(Self { region, mask: entries - 1, tail: 0 })
    }

    /// Address to register.
    pub fn address(&self) -> u64 {
        self.region.base().as_ptr() as u64
    }

    /// Number of records.
    pub fn entries(&self) -> u16 {
        self.mask + 1
    }

    /// Writes one buffer after the unpublished tail. The kernel sees it after [`Self::publish`].
    ///
    /// # Safety
    /// `address` must be valid for `length_bytes` of writes until the kernel has handed the buffer back, and the
    /// ring must have room: never more buffers outstanding than `entries()`.
    pub unsafe fn push(&mut self, address: *mut u8, length_bytes: u32, buffer_id: u16) {
        let index = usize::from(self.tail & self.mask);
        // SAFETY: invariant 1: the masked index is inside the region, which is page-aligned and initialised;
        // `set_*` do not touch the reserved field that holds the tail (invariant 2).
        let record = unsafe { &mut *self.region.base().cast::<BufRingEntry>().as_ptr().add(index) };
        record.set_addr(address as u64);
        record.set_len(length_bytes);
        record.set_bid(buffer_id);
        self.tail = self.tail.wrapping_add(1);
    }

    /// The position of the next record; positions count up and wrap.
    pub fn position(&self) -> u16 {
        self.tail
    }

    /// The buffer of a record that the kernel has taken, and its length as the kernel left it: if the kernel takes
    /// several buffers for one receive, it may use a part of one.
    pub fn taken(&self, position: u16) -> (u16, u32) {
        let index = usize::from(position & self.mask);
        // SAFETY: invariant 1: the masked index is inside the region, which is page-aligned and initialised; the kernel
        // writes no record that it has taken (invariant 3), and the length is read anew all the same.
        let record = unsafe { self.region.base().cast::<BufRingEntry>().as_ptr().add(index).read_volatile() };
        (record.bid(), record.len())
    }

    /// Makes all pushed buffers visible to the kernel.
    pub fn publish(&mut self) {
        // SAFETY: invariant 2: the tail is the reserved u16 of record 0, aligned to two bytes and inside the
        // region; the kernel only reads it.
        let tail = unsafe {
            let base = self.region.base().cast::<BufRingEntry>().as_ptr();
            &*BufRingEntry::tail(base).cast::<AtomicU16>()
        };
        tail.store(self.tail, Ordering::Release);
    }
}
