//! Measures how long a runtime's thread is outside kernel calls: its own work, measured by the thread itself.
//!
//! The clock is off by default. Off, it costs every call one load and a branch that never changes. On, it costs two
//! readings of the clock. It times the calls that serve connections and wait for them. Calls on files and for setup
//! are not timed: they count as outside. The waits between threads of the blocking driver count as outside too. Only
//! the runtime's thread writes the times; any thread may switch the clock and read it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use weir_engine_types::EngineStats;

use crate::{clock::monotonic, counter::Counter};

/// The clock of one runtime.
#[derive(Debug, Default)]
pub(crate) struct CallClock {
    is_on: AtomicBool,
    /// When the last timed call returned; 0 when none has since the clock was switched on.
    returned_ns: AtomicU64,
    outside_ns: Counter,
    spans: Counter,
}

impl CallClock {
    /// Makes a kernel call, or a call that waits through one, and times it.
    #[inline]
    pub(crate) fn call<T>(&self, call: impl FnOnce() -> T) -> T {
        if self.is_on.load(Relaxed) { self.timed(call) } else { call() }
    }

    #[cold]
    fn timed<T>(&self, call: impl FnOnce() -> T) -> T {
        let returned_ns = self.returned_ns.load(Relaxed);
        if returned_ns > 0 {
            self.outside_ns.add(monotonic().as_nanos().saturating_sub(returned_ns));
            self.spans.increment();
        }
        let outcome = call();
        self.returned_ns.store(monotonic().as_nanos(), Relaxed);
        outcome
    }

    /// Switches the clock. Time between two calls while it was off is not counted.
    pub(crate) fn switch(&self, on: bool) {
        if !self.is_on.load(Relaxed) {
            self.returned_ns.store(0, Relaxed);
        }
        self.is_on.store(on, Relaxed);
    }

    pub(crate) fn fill(&self, stats: &mut EngineStats) {
        stats.outside_calls_ns = self.outside_ns.get();
        stats.outside_calls_spans = self.spans.get();
    }
}

#[cfg(test)]
mod tests {
    use std::{hint::black_box, time::Duration};

    use super::*;

    fn stats(clock: &CallClock) -> (u64, u64) {
        let mut stats = EngineStats::default();
        clock.fill(&mut stats);
        (stats.outside_calls_ns, stats.outside_calls_spans)
    }

    fn pass(time: Duration) {
        let end = monotonic() + time;
        while black_box(monotonic()) < end {}
    }

    #[test]
    fn what_is_between_two_calls_counts_and_the_calls_do_not() {
        let clock = CallClock::default();
        clock.switch(true);
        let (inside, outside) = (Duration::from_millis(1), Duration::from_micros(100));
        let now_ns = || monotonic().as_nanos();
        let (began_ns, mut in_calls_ns) = (now_ns(), 0);
        for _ in 0..3 {
            in_calls_ns += clock.call(|| {
                let entered_ns = now_ns();
                pass(inside);
                now_ns() - entered_ns
            });
            pass(outside);
        }
        let all_ns = now_ns() - began_ns;
        let (outside_ns, spans) = stats(&clock);
        assert_eq!(spans, 2, "what follows the last call is not over");
        assert!(u128::from(outside_ns) >= 2 * outside.as_nanos(), "{outside_ns}");
        // The time also contains whatever other threads used of the CPU.
        assert!(outside_ns <= all_ns - in_calls_ns, "{outside_ns}: no call is in it");
    }

    #[test]
    fn nothing_counts_while_it_is_off_nor_the_time_until_it_is_on_again() {
        let clock = CallClock::default();
        clock.call(|| ());
        clock.call(|| ());
        assert_eq!(stats(&clock), (0, 0));
        clock.switch(true);
        clock.call(|| ());
        clock.switch(false);
        pass(Duration::from_millis(50));
        clock.switch(true);
        clock.call(|| ());
        assert_eq!(stats(&clock), (0, 0));
        clock.call(|| ());
        assert_eq!(stats(&clock).1, 1);
    }
}
