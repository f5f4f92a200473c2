//! The best constant sleep: what is possible with a distribution but without knowledge of single operations.

use weir_stats::random::Random;

use super::{
    draws,
    scenario::{HostModel, Lag},
    thread,
};

/// Most operations of a phase that are used: later ones have the same distribution.
const SEEN_MAX: usize = 4 << 20;

/// Observations of a polling run: for each phase and operation, the longest sleep that would not have missed it.
pub(super) struct Seen {
    phases: Vec<Vec<u64>>,
    lag: Lag,
    lags: Random,
}

impl Seen {
    pub(super) fn new(phases: usize, host: &HostModel, seed: u64) -> Self {
        Self { phases: vec![Vec::new(); phases], lag: host.sleep_lag, lags: thread::lags(seed) }
    }

    pub(super) fn add(&mut self, phase: usize, latency_ns: u64) {
        if self.phases[phase].len() == SEEN_MAX {
            return;
        }
        let lag_ns = draws::lag(&mut self.lags, &self.lag);
        // Completion in the very nanosecond of the wake is a miss.
        self.phases[phase].push(latency_ns.saturating_sub(lag_ns).saturating_sub(1));
    }

    /// For each phase the longest sleep that misses at most this share of the operations; 0 if there is none.
    pub(super) fn longest_sleeps(mut self, miss_share: f64) -> Vec<u64> {
        self.phases.iter_mut().map(|sleeps| longest_sleep(sleeps, miss_share)).collect()
    }
}

/// A sleep misses the operations whose own longest sleep is shorter.
fn longest_sleep(sleeps: &mut [u64], miss_share: f64) -> u64 {
    let missed = (sleeps.len() as f64 * miss_share) as usize;
    let Some(last) = sleeps.len().checked_sub(1) else { return 0 };
    let (_, sleep_ns, _) = sleeps.select_nth_unstable(missed.min(last));
    *sleep_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_looked_at_has_a_limit() {
        let mut seen = Seen::new(1, &HostModel { sleep_lag: Lag::constant(10), ..HostModel::xeon_6230() }, 1);
        (0..SEEN_MAX as u64 + 5).for_each(|_| seen.add(0, 100));
        assert_eq!(seen.phases[0].len(), SEEN_MAX);
        assert_eq!(seen.longest_sleeps(0.01), [89]);
    }

    #[test]
    fn the_longest_sleep_misses_no_more_than_allowed() {
        let sleeps: Vec<u64> = (1..=100).rev().collect();
        for (share, expected) in [(0.0, 1), (0.01, 2), (0.1, 11), (0.5, 51), (1.0, 100)] {
            let found = longest_sleep(&mut sleeps.clone(), share);
            assert_eq!(found, expected, "{share}");
            let missed = sleeps.iter().filter(|sleep_ns| **sleep_ns < found).count();
            assert!(missed as f64 <= share * 100.0);
        }
        assert_eq!(longest_sleep(&mut [], 0.1), 0);
    }
}
