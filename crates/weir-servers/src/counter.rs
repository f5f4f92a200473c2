//! A number that one thread writes and any thread reads: counting costs a load and a store, without a lock.
//!
//! Counters with several writers, those of HTTP, are different: they add with `fetch_add`. The engine has its own
//! similar type; exporting it for a few lines would make it part of the engine's public interface.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counter with one writer: only one thread may change it.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    #[inline]
    pub(crate) fn add(&self, count: u64) {
        self.set(self.get().wrapping_add(count));
    }

    #[inline]
    pub(crate) fn subtract(&self, count: u64) {
        self.set(self.get().wrapping_sub(count));
    }

    /// Raises the value, for a maximum.
    #[inline]
    pub(crate) fn raise_to(&self, value: u64) {
        self.set(self.get().max(value));
    }

    /// Sets the value, for a state rather than a count.
    #[inline]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
