//! The counters of one port: written by its worker, readable by any thread.

use std::sync::atomic::{AtomicU64, Ordering};

use weir_engine_types::HandoffStats;

use super::Strategy;
use crate::counter::Counter;

/// Counters of one worker's port. The fields are those of [`HandoffStats`], which explains them.
#[derive(Debug)]
pub struct HandoffCounters {
    pub(super) strategy: Strategy,
    pub(super) pushed: Counter,
    pub(super) drains: Counter,
    pub(super) wakes_sent: Counter,
    pub(super) wakes_suppressed: Counter,
    pub(super) wakes_spurious: Counter,
    pub(super) wakes_recovered: Counter,
    pub(super) overflowed: Counter,
    pub(super) overflow_depth_max: Counter,
    /// Messages of this worker that others have taken: each of them writes it once a turn.
    taken: AtomicU64,
}

impl HandoffCounters {
    pub(super) fn new(strategy: Strategy) -> Self {
        Self {
            strategy,
            pushed: Counter::default(),
            drains: Counter::default(),
            wakes_sent: Counter::default(),
            wakes_suppressed: Counter::default(),
            wakes_spurious: Counter::default(),
            wakes_recovered: Counter::default(),
            overflowed: Counter::default(),
            overflow_depth_max: Counter::default(),
            taken: AtomicU64::new(0),
        }
    }

    /// Another worker has taken `count` of this one's messages.
    pub(super) fn add_taken(&self, count: u32) {
        self.taken.fetch_add(count.into(), Ordering::Relaxed);
    }

    /// A snapshot; the fields are not read at the same moment. This component does not count orders: those counters
    /// are zero. `depth` is the number of messages that this worker has pushed and that have not been taken.
    pub fn stats(&self) -> HandoffStats {
        let taken = self.taken.load(Ordering::Relaxed);
        let pushed = self.pushed.get();
        HandoffStats {
            strategy: self.strategy.name().into(),
            pushed,
            drains: self.drains.get(),
            wakes_sent: self.wakes_sent.get(),
            wakes_suppressed: self.wakes_suppressed.get(),
            wakes_spurious: self.wakes_spurious.get(),
            wakes_recovered: self.wakes_recovered.get(),
            overflowed: self.overflowed.get(),
            overflow_depth_max: self.overflow_depth_max.get(),
            depth: pushed.saturating_sub(taken),
            orders: 0,
            orders_handed_off: 0,
        }
    }
}
