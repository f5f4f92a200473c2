//! Operations on blocks of a file, and the buffers that belong to them while they are in flight.
//!
//! Invariants of [`Blocks`]:
//! 1. `region` holds one buffer for each slot, `stride_bytes` apart and all initialised; none is longer than its
//!    stride.
//! 2. A slot is idle or in flight. The buffer of an idle slot is touched only through `&mut self`; of a slot in
//!    flight no reference exists, and only the kernel (or the C library on its behalf) touches it.
//! 3. The memory is unmapped only when every slot is idle. If an owner could not wait for its operations, it stays
//!    mapped forever: a leak is better than a kernel that writes into reused memory.

use std::{io, mem::ManuallyDrop};

use crate::region::Region;

/// Buffers begin at multiples of this: enough for `O_DIRECT` on every common device.
pub const ALIGNMENT_BYTES: usize = 4096;

/// Kinds of operations on a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// From the file into the slot's buffer.
    Read,
    /// From the slot's buffer into the file.
    Write,
    /// Makes everything written so far durable; offset and length are ignored.
    Fsync,
    /// Like `Fsync`, without metadata that is not needed to read the data back: `fdatasync(2)`.
    Fdatasync,
}

impl OperationKind {
    /// Whether bytes are transferred from or to the buffer.
    pub fn transfers(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }
}

/// One operation. The bytes come from or go to the buffer of its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Number of the buffer; it identifies the operation until it is complete.
    pub slot: u32,
    /// See [`OperationKind`].
    pub kind: OperationKind,
    /// Offset in the file.
    pub offset_bytes: u64,
    /// Length; at most that of the buffer.
    pub bytes: u32,
}

/// A completed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// The operation's slot, idle again.
    pub slot: u32,
    /// Bytes transferred, or a negative error number.
    pub result: i32,
}

/// Buffers for a fixed number of operations.
#[derive(Debug)]
pub struct Blocks {
    region: ManuallyDrop<Region>,
    stride_bytes: usize,
    block_bytes: u32,
    busy: Box<[bool]>,
    in_flight: u32,
}

impl Blocks {
    /// `slots` zeroed buffers of `block_bytes` bytes; every page is touched, so that none faults later.
    pub fn new(slots: u32, block_bytes: u32) -> io::Result<Self> {
        let stride_bytes = (block_bytes as usize).next_multiple_of(ALIGNMENT_BYTES);
        let total = stride_bytes.checked_mul(slots as usize).ok_or(io::ErrorKind::InvalidInput)?;
        let region = ManuallyDrop::new(Region::new(total)?);
        let busy = vec![false; slots as usize].into_boxed_slice();
        let mut blocks = Self { region, stride_bytes, block_bytes, busy, in_flight: 0 };
        for slot in 0..slots {
            if let Some(buffer) = blocks.idle(slot) {
                buffer.fill(0xff);
                buffer.fill(0);
            }
        }
        Ok(blocks)
    }

    /// Number of slots.
    pub fn slots(&self) -> u32 {
        self.busy.len() as u32
    }

    /// Slots in flight.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The buffer of an idle slot.
    pub fn idle(&mut self, slot: u32) -> Option<&mut [u8]> {
        if *self.busy.get(slot as usize)? {
            return None;
        }
        let address = self.address(slot);
        // SAFETY: invariants 1 and 2: the slot exists and is idle, so the memory is initialised and this borrow of
        // `self` is the only way to it.
        Some(unsafe { std::slice::from_raw_parts_mut(address, self.block_bytes as usize) })
    }

    /// Marks a slot as in flight and returns its address for the kernel, valid until the slot is finished.
    ///
    /// Returns an error for caller mistakes: a slot that does not exist or is in flight, or a length beyond the
    /// buffer.
    pub(crate) fn start(&mut self, operation: &Operation) -> io::Result<*mut u8> {
        let state = self.busy.get_mut(operation.slot as usize).ok_or(io::ErrorKind::InvalidInput)?;
        if *state || (operation.kind.transfers() && operation.bytes > self.block_bytes) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        *state = true;
        self.in_flight += 1;
        Ok(self.address(operation.slot))
    }

    /// Marks a slot as idle. Returns false if it was not in flight: then the completion is not ours.
    ///
    /// Call only for operations that are complete or never reached the kernel.
    pub(crate) fn finish(&mut self, slot: u32) -> bool {
        let Some(state) = self.busy.get_mut(slot as usize) else { return false };
        let was = std::mem::replace(state, false);
        self.in_flight -= u32::from(was);
        was
    }

    /// Marks all slots as idle. Call only when the kernel has reported that nothing is in flight.
    pub(crate) fn finish_all(&mut self) {
        self.busy.fill(false);
        self.in_flight = 0;
    }

    /// Address and length of every buffer, in order.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = (*mut u8, usize)> {
        (0..self.slots()).map(|slot| (self.address(slot), self.block_bytes as usize))
    }

    fn address(&self, slot: u32) -> *mut u8 {
        debug_assert!(slot < self.slots());
        // SAFETY: invariant 1: the callers have checked the slot, so the offset is inside the region.
        unsafe { self.region.base().as_ptr().add(slot as usize * self.stride_bytes) }
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        if self.in_flight == 0 {
            // SAFETY: invariant 3 holds, and the value is not used again.
            unsafe { ManuallyDrop::drop(&mut self.region) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(slot: u32, bytes: u32) -> Operation {
        Operation { slot, kind: OperationKind::Read, offset_bytes: 0, bytes }
    }

    #[test]
    fn buffers_are_aligned_apart_and_their_own() {
        let mut blocks = Blocks::new(3, 512).expect("memory");
        for slot in 0..3 {
            let buffer = blocks.idle(slot).expect("idle");
            assert_eq!((buffer.len(), buffer.as_ptr() as usize % ALIGNMENT_BYTES), (512, 0));
            buffer.fill(slot as u8 + 1);
        }
        for slot in 0..3 {
            assert!(blocks.idle(slot).expect("idle").iter().all(|&byte| byte == slot as u8 + 1));
        }
    }

    #[test]
    fn a_slot_in_flight_cannot_be_touched_or_started_again() {
        let mut blocks = Blocks::new(2, 4096).expect("memory");
        blocks.start(&read(1, 4096)).expect("idle");
        assert_eq!(blocks.in_flight(), 1);
        assert!(blocks.idle(1).is_none());
        assert!(blocks.start(&read(1, 1)).is_err());
        assert!(blocks.finish(1));
        assert!(!blocks.finish(1), "it is finished once");
        assert!(blocks.idle(1).is_some());
        assert_eq!(blocks.in_flight(), 0);
    }

    #[test]
    fn memory_with_a_slot_in_flight_is_never_given_back() {
        let is_mapped = |address: usize| {
            let maps = std::fs::read_to_string("/proc/self/maps").expect("own mappings");
            maps.lines().any(|line| {
                let (from, rest) = line.split_once('-').expect("a range");
                let to = rest.split(' ').next().expect("its end");
                let number = |text| usize::from_str_radix(text, 16).expect("an address");
                (number(from)..number(to)).contains(&address)
            })
        };
        // Large enough for a separate mapping in any allocator.
        let mut blocks = Blocks::new(3, 1 << 20).expect("memory");
        let address = blocks.start(&read(1, 1)).expect("idle") as usize;
        drop(blocks);
        assert!(is_mapped(address), "the kernel may still write there");
    }

    #[test]
    fn slots_and_lengths_out_of_range_are_refused() {
        let mut blocks = Blocks::new(1, 4096).expect("memory");
        assert!(blocks.idle(1).is_none());
        assert!(blocks.start(&read(1, 1)).is_err());
        assert!(blocks.start(&read(0, 4097)).is_err());
        assert!(!blocks.finish(7));
        assert!(Blocks::new(0, 4096).is_err());
        assert!(Blocks::new(1, 0).is_err());
    }
}
