//! How long to poll memory before a sleep, from the expected time of the next message. Pure: time is an argument.

use std::time::Duration;

use crate::clock::Instant;

/// Most budgets that one gap counts for: after a long pause a few quick messages are enough to expect more.
const BUDGETS_MAX: u32 = 4;

/// Weight of the newest gap: one in this many.
const WEIGHT: u64 = 8;

/// Decides whether to poll before a sleep.
#[derive(Debug)]
pub(super) struct AdaptiveSpin {
    budget: Duration,
    /// Moving average of the time between two messages.
    average_ns: u64,
    last: Option<Instant>,
}

impl AdaptiveSpin {
    pub(super) fn new(budget: Duration) -> Self {
        let average_ns = (budget * BUDGETS_MAX).as_nanos() as u64;
        Self { budget, average_ns, last: None }
    }

    /// Records that `count` messages were taken together.
    pub(super) fn observe(&mut self, now: Instant, count: u32) {
        let longest_ns = (self.budget * BUDGETS_MAX).as_nanos() as u64;
        if let Some(last) = self.last.replace(now) {
            let gap_ns = now.since(last).as_nanos() as u64 / u64::from(count.max(1));
            let gap_ns = gap_ns.min(longest_ns);
            // Each of several messages has the weight of one.
            for _ in 0..count.min(16) {
                self.average_ns = (self.average_ns * (WEIGHT - 1) + gap_ns) / WEIGHT;
            }
        }
    }

    /// How long to poll before a sleep: the budget while the next message is expected within it, else not at all.
    pub(super) fn budget(&self) -> Duration {
        if Duration::from_nanos(self.average_ns) < self.budget { self.budget } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(spin: &mut AdaptiveSpin, start_us: u64, gap_us: u64, messages: u64) -> u64 {
        for number in 1..=messages {
            spin.observe(Instant::from_nanos((start_us + number * gap_us) * 1000), 1);
        }
        start_us + messages * gap_us
    }

    #[test]
    fn it_is_worth_it_while_messages_come_quicker_than_the_budget() {
        let mut spin = AdaptiveSpin::new(Duration::from_micros(50));
        assert_eq!(spin.budget(), Duration::ZERO, "nothing is known yet");
        let now = after(&mut spin, 0, 20, 30);
        assert_eq!(spin.budget(), Duration::from_micros(50));
        let now = after(&mut spin, now, 100, 30);
        assert_eq!(spin.budget(), Duration::ZERO);
        // A second without messages is forgotten as quickly as it was learned.
        after(&mut spin, now + 1_000_000, 20, 30);
        assert_eq!(spin.budget(), Duration::from_micros(50));
    }

    #[test]
    fn several_messages_taken_together_are_as_many_short_gaps() {
        let mut spin = AdaptiveSpin::new(Duration::from_micros(50));
        spin.observe(Instant::from_nanos(0), 1);
        spin.observe(Instant::from_nanos(1_000_000), 100);
        assert_eq!(spin.budget(), Duration::from_micros(50));
    }
}
