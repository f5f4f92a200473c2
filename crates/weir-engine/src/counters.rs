//! Counters a runtime keeps about itself: one writer (the runtime's thread), any number of readers.
//!
//! The counters of wake-ups and of calls on files are the exception: other threads write them, by an atomic addition.

use std::sync::OnceLock;

use weir_engine_types::EngineStats;

use crate::{call_clock::CallClock, counter::Counter};

macro_rules! counters {
    ($($field:ident)*) => {
        /// All counters of one runtime. The fields are those of [`EngineStats`], which explains them.
        #[derive(Debug, Default)]
        pub struct Counters {
            $(pub(crate) $field: Counter,)*
            pub(crate) clock: CallClock,
            /// Called whenever accepting pauses because descriptors or memory are short.
            pub(crate) on_starved: OnceLock<fn()>,
            /// Written once, when the runtime ends.
            pub(crate) blocking_dropped: Counter,
            pub(crate) blocking_left: Counter,
        }

        impl Counters {
            /// A snapshot: each field is exact at its own moment.
            pub fn snapshot(&self) -> EngineStats {
                let mut stats =
                    EngineStats { $($field: self.$field.get(),)* ..EngineStats::default() };
                self.clock.fill(&mut stats);
                stats
            }
        }
    };
}

impl Counters {
    /// What the end of the runtime has left of the closures of [`spawn_blocking`](crate::spawn_blocking()): those that
    /// it dropped before they began, and those whose threads it left behind. Zero while the runtime exists.
    pub fn blocking_unfinished(&self) -> (u64, u64) {
        (self.blocking_dropped.get(), self.blocking_left.get())
    }

    /// Records that accepting pauses: descriptors or memory are short.
    #[cold]
    pub(crate) fn starved(&self) {
        self.accepts_starved.increment();
        if let Some(tell) = self.on_starved.get() {
            tell();
        }
    }
}

// Other threads write the last four, so they are kept apart from those that a worker writes at every turn.
counters!(turns waits completions completions_per_turn_max submissions enters wait_calls recv_calls send_calls
          interest_calls poll_calls accept_calls setup_calls
          accepts accepts_starved accepts_refused accepts_failed connects closes
          receives bytes_received sends bytes_sent sends_short would_block receives_full
          buffers_exhausted rearms completion_overflows buffer_resizes pool_growths
          receive_pauses events_stale task_polls tasks_panicked timers_fired connections_open
          wakes_sent wakes_suppressed wake_calls file_calls);
