//! Receive and send buffers of one runtime: a few sizes, stable addresses, stated maxima, one owner at a time.
//!
//! A [`Buffer`] is writable and exclusive; a [`Lease`] is what a handler gets: readable bytes, which return to the
//! pool when the lease is dropped. On io_uring the free buffers of a size sit in a ring the kernel picks from; a
//! buffer is then in exactly one of three places: free list, kernel ring, or owned by a `Buffer`.
//!
//! Invariants: (1) regions are never unmapped while the pool lives, and every `Buffer` keeps the pool alive; (2) an
//! index is handed out (by `take`, `take_for_kernel` or `adopt`) at most once before it comes back through
//! `Buffer::drop`; (3) region memory is initialised from the start (zero pages); (4) only the owner of the `Buffer`,
//! or the kernel while the index is in its ring, touches the buffer's bytes; (5) a buffer of the class `HEAP` belongs
//! to no region: it owns a boxed slice of `capacity` bytes, and frees that.

use std::{
    cell::RefCell,
    fmt, io,
    ops::{Deref, Range},
    ptr::NonNull,
    rc::Rc,
};

use weir_sys::region::Region;

/// Sizes a connection's receive buffer moves between. Measured bursts (16 messages of 64 B to 4 KiB in flight) fit
/// one each.
pub(crate) const CLASS_BYTES: [u32; 4] = [2 << 10, 8 << 10, 32 << 10, 128 << 10];

/// Most buffers of one size: the entries of a kernel buffer ring.
pub(crate) const CLASS_BUFFERS_MAX: u32 = 4096;

/// The class of bytes that were moved out of the pool.
const HEAP: u8 = u8::MAX;

const REGION_BYTES: u32 = 256 << 10;
const REGION_BUFFERS_MIN: u32 = 8;

/// Buffers of one size.
#[derive(Debug)]
struct Class {
    bytes: u32,
    buffers_per_region: u32,
    regions_max: u32,
    /// Keeps the memory mapped (invariant 1).
    regions: Vec<Region>,
    /// First byte of each buffer. It is looked up for every message, so it is not computed each time.
    pointers: Vec<NonNull<u8>>,
    free: Vec<u16>,
}

impl Class {
    fn pointer(&self, index: u16) -> NonNull<u8> {
        self.pointers[usize::from(index)]
    }

    /// Doubles the number of regions, up to the maximum. False when nothing was added.
    fn grow(&mut self) -> bool {
        let before = self.regions.len() as u32;
        let target = (before * 2).max(1).min(self.regions_max);
        for region in before..target {
            let length = self.buffers_per_region as usize * self.bytes as usize;
            let Ok(memory) = Region::new(length) else { break };
            for buffer in 0..self.buffers_per_region as usize {
                // SAFETY: the region holds `buffers_per_region * bytes` bytes and the offset is below that.
                self.pointers.push(unsafe { memory.base().add(buffer * self.bytes as usize) });
            }
            self.regions.push(memory);
            let first = region * self.buffers_per_region;
            // Reversed, so that the lowest address is taken first.
            self.free.extend((first..first + self.buffers_per_region).rev().map(|index| index as u16));
        }
        self.regions.len() as u32 > before
    }

    fn buffers(&self) -> u32 {
        self.regions.len() as u32 * self.buffers_per_region
    }
}

/// The pool of one runtime.
pub(crate) struct Pool {
    classes: RefCell<Vec<Class>>,
}

impl fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pool").finish_non_exhaustive()
    }
}

/// Sizes, start and maximum of a pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolShape {
    /// One fixed size instead of [`CLASS_BYTES`].
    pub(crate) bytes: Option<u32>,
    /// A fixed number of buffers for each size instead of a growing one.
    pub(crate) count: Option<u32>,
    /// Most memory for one size.
    pub(crate) class_bytes_max: usize,
}

impl Pool {
    pub(crate) fn new(shape: PoolShape) -> Rc<Self> {
        let fixed = shape.bytes.map(|bytes| [bytes]);
        let sizes: &[u32] = fixed.as_ref().map_or(&CLASS_BYTES, |size| size.as_slice());
        let classes = sizes.iter().map(|&bytes| {
            let natural = (REGION_BYTES / bytes).clamp(REGION_BUFFERS_MIN, CLASS_BUFFERS_MAX);
            let per_region = shape.count.map_or(natural, |count| count.clamp(1, CLASS_BUFFERS_MAX));
            let by_memory = shape.class_bytes_max / (per_region as usize * bytes as usize);
            let by_entries = CLASS_BUFFERS_MAX / per_region;
            let growing = (by_memory.min(by_entries as usize) as u32).max(1);
            Class {
                bytes,
                buffers_per_region: per_region,
                regions_max: if shape.count.is_some() { 1 } else { growing },
                regions: Vec::new(),
                pointers: Vec::new(),
                free: Vec::new(),
            }
        });
        Rc::new(Self { classes: RefCell::new(classes.collect()) })
    }

    /// Number of sizes.
    pub(crate) fn classes(&self) -> u8 {
        self.classes.borrow().len() as u8
    }

    /// The smallest size that holds `bytes`, or the largest there is.
    pub(crate) fn class_for(&self, bytes: usize) -> u8 {
        let classes = self.classes.borrow();
        let found = classes.iter().position(|class| class.bytes as usize >= bytes);
        found.unwrap_or(classes.len() - 1) as u8
    }

    /// A free buffer; grows the pool if that is allowed. `None`: every buffer is in use and the maximum is reached.
    #[inline]
    pub(crate) fn take(self: &Rc<Self>, class: u8) -> Option<Buffer> {
        let mut classes = self.classes.borrow_mut();
        let entry = &mut classes[usize::from(class)];
        if entry.free.is_empty() {
            entry.grow();
        }
        let index = entry.free.pop()?;
        let (pointer, capacity) = (entry.pointer(index), entry.bytes);
        Some(Buffer { pointer, capacity, class, index, pool: Rc::clone(self) })
    }

    /// Takes every free buffer of a size, for the kernel's ring: its address, bytes and index. Never grows.
    ///
    /// # Safety
    /// `give` becomes the owner of each buffer: it passes it on to one place, from which it comes back at most once, by
    /// [`Self::adopt`].
    pub(crate) unsafe fn take_for_kernel(&self, class: u8, mut give: impl FnMut(NonNull<u8>, u32, u16)) {
        let mut classes = self.classes.borrow_mut();
        let Class { bytes, pointers, free, .. } = &mut classes[usize::from(class)];
        for index in free.drain(..).rev() {
            give(pointers[usize::from(index)], *bytes, index);
        }
    }

    /// Number of free buffers.
    pub(crate) fn free(&self, class: u8) -> usize {
        self.classes.borrow()[usize::from(class)].free.len()
    }

    /// Number of buffers, free or not.
    pub(crate) fn buffers(&self, class: u8) -> u32 {
        self.classes.borrow()[usize::from(class)].buffers()
    }

    /// Bytes of one buffer of a size.
    pub(crate) fn buffer_bytes(&self, class: u8) -> u32 {
        self.classes.borrow()[usize::from(class)].bytes
    }

    /// Doubles the number of buffers of a size, up to its maximum. False when nothing was added.
    pub(crate) fn grow(&self, class: u8) -> bool {
        self.classes.borrow_mut()[usize::from(class)].grow()
    }

    /// Takes ownership of a buffer that the kernel has given back.
    ///
    /// # Safety
    /// The index came from [`Self::take_for_kernel`] for this class, the kernel no longer uses the buffer, and it has
    /// not been adopted since.
    #[inline]
    pub(crate) unsafe fn adopt(self: &Rc<Self>, class: u8, index: u16) -> Buffer {
        let classes = self.classes.borrow();
        let entry = &classes[usize::from(class)];
        Buffer { pointer: entry.pointer(index), capacity: entry.bytes, class, index, pool: Rc::clone(self) }
    }
}

/// One writable buffer with one owner.
#[derive(Debug)]
pub(crate) struct Buffer {
    pointer: NonNull<u8>,
    capacity: u32,
    class: u8,
    index: u16,
    pool: Rc<Pool>,
}

impl Buffer {
    /// A buffer of these bytes, outside the pool.
    fn on_heap(bytes: Box<[u8]>, pool: Rc<Pool>) -> Self {
        let capacity = bytes.len() as u32;
        let pointer = NonNull::from(Box::leak(bytes)).cast();
        Self { pointer, capacity, class: HEAP, index: 0, pool }
    }

    /// The whole buffer.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: invariants 1, 3 and 4: `capacity` initialised bytes that only this value may touch.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr(), self.capacity as usize) }
    }

    pub(crate) fn class(&self) -> u8 {
        self.class
    }

    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.pointer.as_ptr()
    }

    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// The first `length` bytes, for reading.
    #[inline]
    pub(crate) fn lease(self, length: usize) -> Lease {
        let end = length.min(self.capacity as usize) as u32;
        Lease { buffer: self, start: 0, end }
    }
}

impl Drop for Buffer {
    #[inline]
    fn drop(&mut self) {
        if self.class == HEAP {
            let bytes = std::ptr::slice_from_raw_parts_mut(self.pointer.as_ptr(), self.capacity as usize);
            // SAFETY: invariant 5, and the only owner ends here.
            return drop(unsafe { Box::from_raw(bytes) });
        }
        self.pool.classes.borrow_mut()[usize::from(self.class)].free.push(self.index);
    }
}

/// Received bytes. Dropping the lease gives its buffer back to the engine.
///
/// A lease may be sent as it is (no copy). Holding many leases for a long time makes receives wait: copy bytes that
/// must be kept.
#[derive(Debug)]
pub struct Lease {
    buffer: Buffer,
    start: u32,
    end: u32,
}

impl Lease {
    /// Drops the first `count` bytes (all of them when there are fewer).
    pub fn advance(&mut self, count: usize) {
        self.start = self.start.saturating_add(count.min(u32::MAX as usize) as u32).min(self.end);
    }

    /// Keeps only the first `length` bytes (all of them when there are fewer).
    pub fn truncate(&mut self, length: usize) {
        self.end = self.start.saturating_add(length.min(u32::MAX as usize) as u32).min(self.end);
    }

    /// Size of the buffer behind the bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.buffer.capacity as usize
    }

    /// Size class of the buffer behind the bytes.
    pub(crate) fn class(&self) -> u8 {
        self.buffer.class
    }

    /// Whether the bytes were moved to the heap.
    pub(crate) fn is_on_heap(&self) -> bool {
        self.buffer.class == HEAP
    }

    /// Moves the bytes to the heap, so that their buffer goes back to the pool.
    pub(crate) fn move_to_heap(&mut self) {
        let bytes: Box<[u8]> = self[..].into();
        (self.start, self.end) = (0, bytes.len() as u32);
        self.buffer = Buffer::on_heap(bytes, Rc::clone(&self.buffer.pool));
    }

    /// The bytes behind `end`, which the owner may still write.
    fn room(&self) -> Range<usize> {
        self.end as usize..self.buffer.capacity as usize
    }

    /// Copies as much of `bytes` as fits behind the present bytes; returns how much.
    #[inline]
    pub(crate) fn append(&mut self, bytes: &[u8]) -> usize {
        let room = self.room();
        let count = bytes.len().min(room.len());
        self.buffer.as_mut_slice()[room.start..room.start + count].copy_from_slice(&bytes[..count]);
        self.end += count as u32;
        count
    }
}

impl Deref for Lease {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: invariants 1, 3 and 4, and start <= end <= capacity by construction; `&self` allows no writer.
        unsafe {
            let first = self.buffer.pointer.as_ptr().add(self.start as usize);
            std::slice::from_raw_parts(first, (self.end - self.start) as usize)
        }
    }
}

impl AsRef<[u8]> for Lease {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// Chooses the receive buffer size of a connection from its past arrivals.
///
/// Two full buffers in a row move it up: the burst is larger than the buffer, and each further piece costs a
/// receive and usually a send (measured: 0.69x of epoll with buffers of half the burst, 1.33x with large enough
/// ones). 64 arrivals in a row that fit half of the next smaller size move it down.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SizeChoice {
    class: u8,
    full_in_a_row: u8,
    small_in_a_row: u8,
}

impl SizeChoice {
    pub(crate) fn class(self) -> u8 {
        self.class
    }

    /// Records an arrival; true when the size to use has changed.
    #[inline]
    pub(crate) fn observe(&mut self, length: usize, capacity: u32, classes: u8) -> bool {
        if length == capacity as usize {
            self.small_in_a_row = 0;
            self.full_in_a_row = self.full_in_a_row.saturating_add(1);
            if self.full_in_a_row >= 2 && self.class + 1 < classes {
                self.class += 1;
                self.full_in_a_row = 0;
                return true;
            }
            return false;
        }
        self.full_in_a_row = 0;
        if self.class == 0 || length > CLASS_BYTES[usize::from(self.class) - 1] as usize / 2 {
            self.small_in_a_row = 0;
            return false;
        }
        self.small_in_a_row += 1;
        if self.small_in_a_row < 64 {
            return false;
        }
        self.small_in_a_row = 0;
        self.class -= 1;
        true
    }
}

/// The error when the pool cannot get any memory.
pub(crate) fn out_of_buffers() -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, "no memory for receive buffers")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shape(bytes: Option<u32>, count: Option<u32>) -> PoolShape {
        PoolShape { bytes, count, class_bytes_max: 4 << 20 }
    }

    #[test]
    fn a_fixed_pool_ends_at_its_count_and_buffers_come_back() {
        let pool = Pool::new(shape(Some(512), Some(3)));
        let mut held: Vec<Buffer> = (0..3).map(|_| pool.take(0).unwrap()).collect();
        assert!(pool.take(0).is_none());
        held.pop();
        assert!(pool.take(0).is_some());
    }

    #[test]
    fn a_growing_pool_ends_at_its_maximum() {
        let pool = Pool::new(shape(None, None));
        let mut held = Vec::new();
        while let Some(buffer) = pool.take(3) {
            held.push(buffer);
            assert!(held.len() <= 32, "4 MiB hold 32 buffers of 128 KiB");
        }
        assert_eq!(held.len(), 32);
    }

    #[test]
    fn bytes_moved_to_the_heap_stay_and_their_buffer_comes_back() {
        let pool = Pool::new(shape(Some(512), Some(1)));
        let mut buffer = pool.take(0).unwrap();
        buffer.as_mut_slice()[..4].copy_from_slice(b"kept");
        let mut lease = buffer.lease(4);
        lease.advance(1);
        lease.move_to_heap();
        pool.take(0).expect("it came back").as_mut_slice().fill(0);
        assert_eq!(&lease[..], b"ept");
        assert_eq!(lease.append(b"more"), 0, "there is no room behind them");
        lease.truncate(2);
        lease.move_to_heap();
        assert_eq!((&lease[..], lease.capacity()), (&b"ep"[..], 2));
        drop(lease);
        assert_eq!(pool.free(0), 1, "nothing of the heap comes into the pool");
    }

    #[test]
    fn the_size_goes_up_after_two_full_buffers_and_down_after_64_small_ones() {
        let mut choice = SizeChoice::default();
        assert!(!choice.observe(2048, 2048, 4));
        assert!(choice.observe(2048, 2048, 4));
        assert_eq!(choice.class(), 1);
        for _ in 0..63 {
            assert!(!choice.observe(64, 8192, 4));
        }
        assert!(choice.observe(64, 8192, 4));
        assert_eq!(choice.class(), 0);
    }

    #[test]
    fn one_large_arrival_does_not_move_a_small_connection() {
        let mut choice = SizeChoice::default();
        for _ in 0..100 {
            assert!(!choice.observe(2048, 2048, 4));
            assert!(!choice.observe(64, 2048, 4));
        }
    }

    proptest! {
        #[test]
        fn no_buffer_is_ever_handed_out_twice(operations in prop::collection::vec((0u8..4, any::<u16>()), 0..300)) {
            let pool = Pool::new(shape(None, None));
            let mut held: Vec<Lease> = Vec::new();
            for (serial, (class, value)) in operations.into_iter().enumerate() {
                if value % 3 == 0 && !held.is_empty() {
                    let lease = held.swap_remove(usize::from(value) % held.len());
                    drop(lease);
                } else if value % 7 == 0 && !held.is_empty() {
                    let place = usize::from(value) % held.len();
                    held[place].move_to_heap();
                } else if let Some(mut buffer) = pool.take(class) {
                    // Each owner writes its own mark; if two owned one buffer, a mark would be lost.
                    buffer.as_mut_slice()[..8].copy_from_slice(&(serial as u64).to_le_bytes());
                    held.push(buffer.lease(8));
                }
                let mut marks: Vec<&[u8]> = held.iter().map(|lease| &lease[..]).collect();
                marks.sort_unstable();
                marks.dedup();
                prop_assert_eq!(marks.len(), held.len());
            }
        }

        #[test]
        fn a_lease_is_a_slice_that_shrinks(length in 0usize..600, cut in 0usize..700, keep in 0usize..700) {
            let pool = Pool::new(shape(Some(512), None));
            let mut buffer = pool.take(0).unwrap();
            for (position, byte) in buffer.as_mut_slice().iter_mut().enumerate() {
                *byte = position as u8;
            }
            let whole: Vec<u8> = buffer.as_mut_slice()[..length.min(512)].to_vec();
            let mut lease = buffer.lease(length);
            lease.advance(cut);
            lease.truncate(keep);
            let expected: Vec<u8> = whole.into_iter().skip(cut).take(keep).collect();
            prop_assert_eq!(&lease[..], &expected[..]);
        }
    }
}
