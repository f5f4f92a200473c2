//! A counter with one writer and any number of readers.
//!
//! It is an atomic that is only loaded and stored relaxed, without read-modify-write: an increment costs one plain
//! addition in memory and needs no lock prefix. That is correct because there is one writer. The few counters that
//! other threads write are always written by an atomic addition.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One counter. Only the owning runtime's thread may change it, unless all its writers use `increment_shared`.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    #[inline]
    pub(crate) fn add(&self, amount: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(amount), Relaxed);
    }

    #[inline]
    pub(crate) fn increment(&self) {
        self.add(1);
    }

    #[inline]
    pub(crate) fn decrement(&self) {
        self.0.store(self.0.load(Relaxed).wrapping_sub(1), Relaxed);
    }

    /// Increments by an atomic addition. Use it only for the few counters that only other threads write.
    pub(crate) fn increment_shared(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    #[inline]
    pub(crate) fn raise_to(&self, value: u64) {
        if value > self.0.load(Relaxed) {
            self.0.store(value, Relaxed);
        }
    }
}
