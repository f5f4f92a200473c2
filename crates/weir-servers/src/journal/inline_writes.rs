//! When a worker writes its journal itself at level `os`, and when it has the engine do it.
//!
//! A write of that level is a copy into the page cache. To hand it to another thread costs more than the copy: a
//! gateway that did so with each batch needed 1.20 [1.17, 1.24] times the CPU an order under a flood, and 1.12 [1.01,
//! 1.23] times on io_uring, which hands such a write to a thread of the kernel's. But the kernel makes a writer wait
//! where too much of the page cache is dirty, for up to 200 ms each time, and while the file system cannot take the
//! write, and the worker's cancels, heartbeats and logins wait with it. Nothing tells beforehand: ext4 refuses
//! `RWF_NOWAIT` for buffered writes. So the first write that was held up is the last one for a while that a worker
//! waits for.

use std::{cell::Cell, time::Duration};

use weir_engine::time::Instant;

/// A write that took this long was held up. A copy takes some tens of microseconds, and a worker that lost its CPU in
/// the middle of one has it back sooner than that on a machine that is not overloaded.
const HELD_UP_MIN: Duration = Duration::from_millis(10);

/// For how long the engine writes then.
const OFFLOADED_FOR: Duration = Duration::from_secs(1);

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct InlineWrites {
    /// The engine writes until then.
    offloaded_until: Cell<Option<Instant>>,
}

impl InlineWrites {
    /// Whether the worker writes itself.
    pub(super) fn are_allowed(&self, now: Instant) -> bool {
        self.offloaded_until.get().is_none_or(|until| now >= until)
    }

    /// Takes note of how long a write took, whoever made it: while one is held up, the time begins anew.
    pub(super) fn took(&self, begun: Instant, ended: Instant) {
        if ended.since(begun) >= HELD_UP_MIN {
            self.offloaded_until.set(Some(ended + OFFLOADED_FOR));
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_engine::time::monotonic;

    use super::*;

    #[test]
    fn after_a_write_that_was_held_up_the_engine_writes_for_a_while() {
        let writes = InlineWrites::default();
        let begun = monotonic();
        let ended = begun + HELD_UP_MIN;
        assert!(writes.are_allowed(begun));
        writes.took(begun, ended);
        assert!(!writes.are_allowed(ended));
        assert!(!writes.are_allowed(ended + OFFLOADED_FOR - Duration::from_nanos(1)));
        assert!(writes.are_allowed(ended + OFFLOADED_FOR));
    }

    #[test]
    fn a_quick_write_changes_nothing() {
        let writes = InlineWrites::default();
        let begun = monotonic();
        let quick = begun + HELD_UP_MIN - Duration::from_nanos(1);
        writes.took(begun, quick);
        assert!(writes.are_allowed(quick));
        writes.took(begun, begun + HELD_UP_MIN);
        writes.took(begun + HELD_UP_MIN, begun + HELD_UP_MIN);
        assert!(!writes.are_allowed(begun + HELD_UP_MIN), "one quick write does not end it");
    }

    #[test]
    fn the_time_begins_anew_while_the_engines_writes_are_held_up() {
        let writes = InlineWrites::default();
        let begun = monotonic();
        writes.took(begun, begun + HELD_UP_MIN);
        let later = begun + HELD_UP_MIN + OFFLOADED_FOR;
        writes.took(begun + HELD_UP_MIN, later);
        assert!(!writes.are_allowed(later));
        assert!(writes.are_allowed(later + OFFLOADED_FOR));
    }
}
