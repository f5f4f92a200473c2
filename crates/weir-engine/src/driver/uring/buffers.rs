//! Receive buffers as the kernel uses them: one ring of provided buffers for each size, filled from the pool.
//!
//! Invariants: (1) a buffer index pushed into a ring came from `Pool::take_for_kernel` and is not used until the
//! kernel names it in a completion; (2) a ring has as many entries as its size may have buffers, so it cannot
//! overflow; (3) the rings are unregistered, or leaked with the pool, before their memory is freed.

use std::{io, ptr::NonNull, rc::Rc};

use weir_sys::ring::BufferRing;

use super::ring::Ring;
use crate::{
    counters::Counters,
    pool::{Buffer, CLASS_BUFFERS_MAX, Pool, out_of_buffers},
};

struct Group {
    ring: BufferRing,
    /// Buffers the kernel may still pick.
    available: usize,
    /// The last position of each buffer in the ring.
    positions: Vec<u16>,
}

/// A part of a receive that filled several buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Bytes in this buffer.
    pub(super) bytes: u32,
    /// The buffer that the kernel took after it.
    pub(super) next: u16,
}

/// All groups; the group's number is the size's.
pub(super) struct Buffers {
    pool: Rc<Pool>,
    groups: Vec<Option<Group>>,
    /// Entries of each ring.
    entries: u16,
}

impl Buffers {
    /// Twice as many entries where receives are bundled: the ring itself shows which buffers such a receive filled.
    pub(super) fn new(pool: Rc<Pool>, bundles: bool) -> Self {
        let groups = (0..pool.classes()).map(|_| None).collect();
        let entries = CLASS_BUFFERS_MAX as u16 * if bundles { 2 } else { 1 };
        Self { pool, groups, entries }
    }

    /// Makes sure that the kernel has buffers of this size to pick from.
    pub(super) fn provide(&mut self, class: u8, ring: &Ring) -> io::Result<()> {
        if self.groups[usize::from(class)].is_some() {
            return Ok(());
        }
        if self.pool.buffers(class) == 0 && !self.pool.grow(class) {
            return Err(out_of_buffers());
        }
        let group = BufferRing::new(self.entries)?;
        // SAFETY: the ring's memory lives in `self.groups` until it is unregistered or leaked (invariant 3).
        unsafe {
            ring.submitter().register_buf_ring_with_flags(
                group.address(),
                group.entries(),
                class.into(),
                0,
            )?;
        }
        let positions = vec![0; CLASS_BUFFERS_MAX as usize];
        self.groups[usize::from(class)] = Some(Group { ring: group, available: 0, positions });
        self.refill_class(class);
        Ok(())
    }

    /// Gives the kernel every buffer that has been returned since the last turn.
    pub(super) fn refill(&mut self) {
        for class in 0..self.groups.len() {
            self.refill_class(class as u8);
        }
    }

    fn refill_class(&mut self, class: u8) {
        let Some(group) = &mut self.groups[usize::from(class)] else { return };
        if self.pool.free(class) == 0 {
            return;
        }
        let give = |pointer: NonNull<u8>, bytes, index: u16| {
            group.positions[usize::from(index)] = group.ring.position();
            // SAFETY: invariants 1 and 2; the pool keeps the memory mapped for as long as it lives.
            unsafe { group.ring.push(pointer.as_ptr(), bytes, index) };
            group.available += 1;
        };
        // SAFETY: each goes into the kernel's ring, once.
        unsafe { self.pool.take_for_kernel(class, give) };
        group.ring.publish();
    }

    /// Adds buffers of a size, if its maximum allows.
    pub(super) fn grow(&mut self, class: u8, counters: &Counters) -> bool {
        let grown = self.pool.grow(class);
        if grown {
            counters.pool_growths.increment();
            self.refill_class(class);
        }
        grown
    }

    /// Buffers of a size that the kernel may still pick.
    pub(super) fn available(&self, class: u8) -> usize {
        self.groups[usize::from(class)].as_ref().map_or(0, |group| group.available)
    }

    /// Bytes of all buffers of a size, used or free.
    pub(super) fn bytes(&self, class: u8) -> usize {
        self.pool.buffers(class) as usize * self.pool.buffer_bytes(class) as usize
    }

    /// This buffer's share of the `bytes` that one receive put into it and the following ones. The kernel takes
    /// buffers in the order in which they were pushed, and fills each as far as its record says.
    ///
    /// No record is overwritten before its receive has been handled, whatever the order of completions. After a
    /// receive, at most all other buffers are pushed before the ring is entered, and all again while the results of
    /// that call are handled. That is less than the number of records.
    pub(super) fn part(&self, class: u8, index: u16, bytes: u32) -> Part {
        let whole = Part { bytes, next: index };
        let Some(group) = self.groups.get(usize::from(class)).and_then(Option::as_ref) else { return whole };
        let Some(&position) = group.positions.get(usize::from(index)) else { return whole };
        let capacity = self.pool.buffer_bytes(class);
        let (_, length) = group.ring.taken(position);
        let (next, _) = group.ring.taken(position.wrapping_add(1));
        Part { bytes: length.clamp(1, capacity).min(bytes), next }
    }

    /// Takes over the buffer that a completion names.
    ///
    /// # Safety
    /// A completion of a receive of this class names the buffer, and it is taken once for that completion.
    #[inline]
    pub(super) unsafe fn take(&mut self, class: u8, index: u16) -> Buffer {
        if let Some(group) = &mut self.groups[usize::from(class)] {
            group.available = group.available.saturating_sub(1);
        }
        // SAFETY: it was pushed into the ring of this class (invariant 1), and the kernel no longer uses it.
        unsafe { self.pool.adopt(class, index) }
    }

    /// Unregisters all groups.
    pub(super) fn unregister(&mut self, ring: &Ring) {
        for (class, group) in self.groups.iter_mut().enumerate() {
            if group.is_some() && ring.submitter().unregister_buf_ring(class as u16).is_ok() {
                *group = None;
            } else if let Some(group) = group.take() {
                // The kernel still knows the memory: it must not be freed.
                std::mem::forget(group);
            }
        }
    }
}
