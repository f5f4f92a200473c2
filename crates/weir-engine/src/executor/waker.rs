//! Task wakers without allocation or reference counts: a waker is a number.
//!
//! The number names a runtime, a slot and a generation, so copying a waker is free, waking a task that is gone does
//! nothing, and a wake-up from another thread finds its runtime through a table. The price: a waker that is kept for
//! more than 2^24 generations of one slot could wake a later task once without need. Every future must tolerate that
//! anyway.
//!
//! Invariant: the data pointer is never dereferenced; it only carries bits.

use std::task::{RawWaker, RawWakerVTable, Waker};

use crate::{
    inbox,
    slab::{GENERATION_MASK, SlotId},
};

const _: () = assert!(size_of::<usize>() == 8, "wakers carry 64 bits: 16 runtime, 24 generation, 24 index");

/// Most tasks a runtime can name; the last index stands for the main future.
pub(crate) const INDEX_MAIN: u32 = (1 << 24) - 1;

/// Names one task of one runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskName {
    pub(crate) runtime: u16,
    pub(crate) slot: SlotId,
}

impl TaskName {
    pub(crate) fn main(runtime: u16) -> Self {
        Self { runtime, slot: SlotId { index: INDEX_MAIN, generation: 0 } }
    }

    fn bits(self) -> usize {
        let generation = (self.slot.generation & GENERATION_MASK) as usize;
        (self.runtime as usize) << 48 | generation << 24 | self.slot.index as usize & INDEX_MAIN as usize
    }

    fn from_bits(bits: usize) -> Self {
        let slot =
            SlotId { index: bits as u32 & INDEX_MAIN, generation: (bits >> 24) as u32 & GENERATION_MASK };
        Self { runtime: (bits >> 48) as u16, slot }
    }

    pub(crate) fn waker(self) -> Waker {
        // SAFETY: the vtable's functions treat the data as bits only (invariant), are thread-safe, and cloning or
        // dropping has no effect, which meets the contract of `RawWaker`.
        unsafe { Waker::from_raw(raw(self.bits())) }
    }
}

const fn raw(bits: usize) -> RawWaker {
    RawWaker::new(std::ptr::without_provenance(bits), &VTABLE)
}

/// The table of all wakers of this module, and of no others.
pub(super) static VTABLE: RawWakerVTable = RawWakerVTable::new(|data| raw(data.addr()), wake, wake, |_| {});

fn wake(data: *const ()) {
    let name = TaskName::from_bits(data.addr());
    if !super::wake_local(name) {
        inbox::wake(name.runtime, name.slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_at_their_limits() {
        for (runtime, index, generation) in
            [(0, 0, 0), (u16::MAX, INDEX_MAIN, GENERATION_MASK), (7, 12_345, 99)]
        {
            let name = TaskName { runtime, slot: SlotId { index, generation } };
            assert_eq!(TaskName::from_bits(name.bits()), name);
        }
    }

    #[test]
    fn equal_names_make_wakers_that_would_wake_each_other() {
        let name = TaskName::main(3);
        assert!(name.waker().will_wake(&name.waker().clone()));
        assert!(!name.waker().will_wake(&TaskName::main(4).waker()));
    }
}
