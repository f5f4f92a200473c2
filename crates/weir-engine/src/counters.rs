//! Counters a runtime keeps about itself: one writer (the runtime's thread), any number of readers.
//!
//! A counter is an atomic that is only ever loaded and stored relaxed, never read-modify-written: an increment
//! costs one plain addition in memory and needs no lock prefix. That is correct because there is one writer. The
//! counters of wake-ups and of calls on files are the exception: other threads write them, always by an atomic
//! addition.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weir_engine_types::EngineStats;

use crate::call_clock::CallClock;

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

    /// For the few counters that other threads count, and nobody else: an atomic addition.
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

macro_rules! counters {
    ($($field:ident)*) => {
        /// All counters of one runtime; the fields are those of [`EngineStats`], where they are explained.
        #[derive(Debug, Default)]
        pub struct Counters {
            $(pub(crate) $field: Counter,)*
            pub(crate) clock: CallClock,
        }

        impl Counters {
            /// A consistent enough copy: each field is exact at its own moment.
            pub fn snapshot(&self) -> EngineStats {
                let mut stats =
                    EngineStats { $($field: self.$field.0.load(Relaxed),)* ..EngineStats::default() };
                self.clock.fill(&mut stats);
                stats
            }
        }
    };
}

// Other threads write the last four; they stand apart from those a worker writes at every turn.
counters!(turns waits completions completions_per_turn_max submissions enters wait_calls recv_calls send_calls
          interest_calls poll_calls accept_calls setup_calls
          accepts accepts_starved accepts_refused accepts_failed connects closes
          receives bytes_received sends bytes_sent sends_short would_block receives_full
          buffers_exhausted rearms completion_overflows buffer_resizes pool_growths
          receive_pauses events_stale task_polls timers_fired connections_open
          wakes_sent wakes_suppressed wake_calls file_calls);
