//! A number that one thread writes and any thread reads: counting costs a load and a store, and nothing is locked.
//!
//! Counters with several writers, those of HTTP, are not this: they add with `fetch_add`. The engine has a type like
//! this one for its own; to export it from there for a few lines would make it part of what its users depend on.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counter with one writer: whatever changes it is called by one thread only.
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

    /// For a maximum.
    #[inline]
    pub(crate) fn raise_to(&self, value: u64) {
        self.set(self.get().max(value));
    }

    /// For what is a state and no count.
    #[inline]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
