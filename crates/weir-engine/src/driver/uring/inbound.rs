//! Arrivals that wait for the handler of their connection.

use super::JOIN_BYTES_MAX;
use crate::{inline_queue::InlineQueue, pool::Lease};

/// The waiting arrivals of one connection.
#[derive(Default)]
pub(super) struct Inbound {
    leases: InlineQueue<Lease>,
    /// Memory held by them: whole buffers, however few bytes are in them.
    bytes: usize,
}

impl Inbound {
    /// The memory that they hold.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Stores an arrival behind the others. A small one is appended to the previous buffer, so that a slow handler does
    /// not hold one buffer for every few bytes.
    #[inline]
    pub(super) fn store(&mut self, mut lease: Lease) {
        if let Some(last) = self.leases.back_mut()
            && lease.len() <= JOIN_BYTES_MAX
        {
            let joined = last.append(&lease);
            lease.advance(joined);
            if lease.is_empty() {
                return;
            }
        }
        self.bytes += lease.capacity();
        self.leases.push_back(lease);
    }

    #[inline]
    pub(super) fn take(&mut self) -> Option<Lease> {
        let lease = self.leases.pop_front()?;
        self.bytes -= lease.capacity();
        Some(lease)
    }

    /// Moves the arrivals out of the buffers of a size. Returns whether there were any.
    pub(super) fn release(&mut self, class: u8) -> bool {
        let mut is_any = false;
        for lease in self.leases.iter_mut().filter(|lease| lease.class() == class) {
            self.bytes -= lease.capacity();
            lease.move_to_heap();
            self.bytes += lease.capacity();
            is_any = true;
        }
        is_any
    }

    /// Whether more may arrive before the handler has asked for the waiting bytes. False if these had to leave their
    /// buffers.
    #[inline]
    pub(super) fn has_room(&self, low_water_bytes: usize) -> bool {
        self.bytes <= low_water_bytes && !self.leases.front().is_some_and(Lease::is_on_heap)
    }
}
