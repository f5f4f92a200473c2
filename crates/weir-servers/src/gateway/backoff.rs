//! How long to wait before the next attempt to reach an exchange. Pure.

use std::time::Duration;

use weir_stats::random::Random;

/// The first wait, before it is spread.
pub(super) const WAIT_MIN: Duration = Duration::from_millis(50);
/// The longest wait.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(5);

/// Waits that double from [`WAIT_MIN`] to [`WAIT_MAX`], each randomised over its upper half, so that gateways that
/// lost an exchange together do not reconnect together.
#[derive(Clone, Debug)]
pub(super) struct Backoff {
    failures: u32,
    random: Random,
}

impl Backoff {
    /// Waits that differ from those of another seed.
    pub(super) fn new(seed: u64) -> Self {
        Self { failures: 0, random: Random::seeded(seed) }
    }

    /// The wait after one more failure.
    pub(super) fn next(&mut self) -> Duration {
        let doubled = WAIT_MIN.saturating_mul(1 << self.failures.min(16)).min(WAIT_MAX);
        self.failures = self.failures.saturating_add(1);
        let half = doubled / 2;
        half + half.mul_f64(self.random.uniform())
    }

    /// Call it after a success: the next wait is short again.
    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_stay_bounded() {
        let mut backoff = Backoff::new(1);
        let waits: Vec<Duration> = (0..40).map(|_| backoff.next()).collect();
        assert!(waits[0] >= WAIT_MIN / 2 && waits[0] <= WAIT_MIN);
        assert!(waits.iter().all(|wait| *wait <= WAIT_MAX));
        assert!(waits[20..].iter().all(|wait| *wait >= WAIT_MAX / 2));
        backoff.reset();
        assert!(backoff.next() <= WAIT_MIN);
    }

    #[test]
    fn waits_of_two_gateways_differ() {
        let (mut first, mut second) = (Backoff::new(1), Backoff::new(2));
        assert!((0..10).any(|_| first.next() != second.next()));
    }
}
