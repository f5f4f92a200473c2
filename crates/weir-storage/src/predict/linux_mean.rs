//! Linux's hybrid polling from 4.10 to 6.3 (`io_poll_delay` 0): sleep for half of the mean.
//!
//! It reproduces the weaknesses under study: the mean of an epoch of 100 ms is valid until a later epoch has
//! operations of the same class, even minutes later; and it is a mean of noticed times, so that an operation that was
//! slept through makes the next sleep longer. The ratio, one half in the kernel, and the length of the epoch are
//! parameters.

use super::{
    ELAPSED_NS_MAX, Issued, Outcome, Plan, Predictor,
    epoch::Epoch,
    size_class::{CLASSES, size_class},
};

const MILLION: u64 = 1_000_000;

/// A ratio of the last epoch's mean.
pub struct LinuxMean {
    ratio_millionths: u64,
    epoch: Epoch,
    gathered: [Sum; CLASSES],
    means_ns: [u64; CLASSES],
}

#[derive(Clone, Copy, Default)]
struct Sum {
    total_ns: u64,
    operations: u64,
}

impl LinuxMean {
    pub fn new(ratio: f64, period_ms: u64) -> Self {
        Self {
            ratio_millionths: (ratio.clamp(0.0, 1.0) * MILLION as f64).round() as u64,
            epoch: Epoch::new(period_ms.saturating_mul(MILLION)),
            gathered: [Sum::default(); CLASSES],
            means_ns: [0; CLASSES],
        }
    }

    fn close_epoch(&mut self, now_ns: u64) {
        if !self.epoch.has_ended(now_ns) {
            return;
        }
        for (sum, mean_ns) in self.gathered.iter_mut().zip(&mut self.means_ns) {
            // A class without operations keeps its mean.
            *mean_ns = sum.total_ns.checked_div(sum.operations).unwrap_or(*mean_ns);
            *sum = Sum::default();
        }
    }
}

impl Predictor for LinuxMean {
    fn plan(&mut self, issued: &Issued) -> Plan {
        self.close_epoch(issued.now_ns);
        let mean_ns = self.means_ns[size_class(issued.bytes, issued.direction)];
        // For one half this is the kernel's (mean + 1) / 2.
        Plan::sleep_or_poll((mean_ns * self.ratio_millionths + MILLION / 2) / MILLION)
    }

    fn observe(&mut self, outcome: &Outcome) {
        self.close_epoch(outcome.now_ns);
        self.epoch.note_completion(outcome.now_ns);
        let sum = &mut self.gathered[size_class(outcome.bytes, outcome.direction)];
        sum.total_ns = sum.total_ns.saturating_add(outcome.elapsed_ns.min(ELAPSED_NS_MAX));
        sum.operations += 1;
    }
}

#[cfg(test)]
mod tests {
    use crate::predict::{Direction, Plan, rehearsal::Rehearsal};

    #[test]
    fn the_sleep_is_half_of_the_mean_after_the_first_epoch() {
        let mut rehearsal = Rehearsal::new("linux-mean");
        let first = rehearsal.wait(20_001);
        assert_eq!(first.plan, Plan::Poll);
        let mut plan = first.plan;
        let epoch_end_ns = first.now_ns + 100_000_000;
        while rehearsal.now_ns < epoch_end_ns {
            assert_eq!(plan, Plan::Poll);
            plan = rehearsal.wait(20_001).plan;
        }
        assert_eq!(rehearsal.wait(20_001).plan, Plan::Sleep { ns: 10_001 });
    }

    #[test]
    fn other_ratios_and_periods_are_kept() {
        let mut rehearsal = Rehearsal::new("linux-mean:0.03,1");
        rehearsal.wait_for(1_000_000, 50_000);
        assert_eq!(rehearsal.wait(50_000).plan, Plan::Sleep { ns: 1_500 });
    }

    #[test]
    fn a_class_without_operations_keeps_its_old_mean() {
        let mut rehearsal = Rehearsal::new("linux-mean");
        rehearsal.wait_for(100_000_000, 30_000);
        rehearsal.direction = Direction::Write;
        rehearsal.wait_for(500_000_000, 90_000);
        assert_eq!(rehearsal.wait(90_000).plan, Plan::Sleep { ns: 45_000 });
        rehearsal.direction = Direction::Read;
        assert_eq!(rehearsal.wait(30_000).plan, Plan::Sleep { ns: 15_000 });
    }

    #[test]
    fn a_sleep_that_is_too_long_makes_the_next_one_longer() {
        let mut rehearsal = Rehearsal::new("linux-mean:0.9");
        rehearsal.wake_lag_ns = 30_000;
        rehearsal.wait_for(100_000_000, 40_000);
        assert_eq!(rehearsal.wait(40_000).plan, Plan::Sleep { ns: 36_000 });
        rehearsal.wait_for(200_000_000, 40_000);
        // Every sleep ends at 66 µs or later, which the kernel takes for the device's time.
        assert!(matches!(rehearsal.wait(40_000).plan, Plan::Sleep { ns: 59_000.. }));
    }
}
