//! How long to continue after accepts that failed with unforeseen errors. Pure.

use std::time::Duration;

use crate::clock::Instant;

/// Consecutive accepts that may fail, about a second of them.
const FAILURES_MAX: u32 = 10;
/// Pause after the first; each further one doubles it.
const PAUSE: Duration = Duration::from_millis(1);
/// An accept that fails this long after the last pause has waited for a connection meanwhile, and starts a new count.
const ROW_ENDS: Duration = Duration::from_secs(1);

/// Consecutive failures.
#[derive(Debug, Default)]
pub(super) struct Failures {
    in_row: u32,
    pause_ends: Option<Instant>,
}

impl Failures {
    /// How long to wait after a failure. `None`: there were too many consecutive ones.
    pub(super) fn pause(&mut self, now: Instant) -> Option<Duration> {
        if self.pause_ends.is_some_and(|end| now > end + ROW_ENDS) {
            self.in_row = 0;
        }
        if self.in_row == FAILURES_MAX {
            return None;
        }
        let pause = PAUSE * (1 << self.in_row);
        self.in_row += 1;
        self.pause_ends = Some(now + pause);
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_failures_in_a_row_are_waited_out_for_a_second_in_all_and_no_more() {
        let (mut failures, mut now) = (Failures::default(), Instant::default());
        while let Some(pause) = failures.pause(now) {
            now = now + pause;
        }
        assert_eq!(now.since(Instant::default()), Duration::from_millis(1023));
    }

    #[test]
    fn a_failure_long_after_the_last_one_begins_anew() {
        let (mut failures, mut now) = (Failures::default(), Instant::default());
        for _ in 0..100 {
            assert_eq!(failures.pause(now), Some(PAUSE));
            now = now + 2 * ROW_ENDS;
        }
    }
}
