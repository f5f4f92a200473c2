//! `quantile`, and a watch for changes: cumulative sums (Page, 1954) of the logarithm of the device's time.
//!
//! Times are compared with the mean and deviation of up to 256 operations since the last change, in deviations and at
//! most three at once, so that a single stray time says little. When the sum of what lies beyond half a deviation, up
//! or down, reaches ten, the latency has changed: the tracker begins again with its first polls, takes larger steps for
//! 32 operations, and the statistics start anew. Censored times take part with their bound: where all sleeps are too
//! long, the bound is what lies low.

use super::{
    Costs, Issued, Outcome, Plan, Predictor,
    quantile::too_late,
    size_class::{CLASSES, size_class},
    tracker::{Aim, Tracker},
    wake_lag::WakeLag,
};

const STEP: f64 = 0.15;
const STEP_AFTER_CHANGE: f64 = 0.5;
const OPERATIONS_AFTER_CHANGE: u32 = 32;

const LEARNING: u32 = 32;
const MEMORY: u32 = 256;
const DEVIATION_MIN: f64 = 0.02;
const STRAY_MAX: f64 = 3.0;
const ALLOWANCE: f64 = 0.5;
const ALARM: f64 = 10.0;

/// A tracker and a watch for each size class.
pub struct Cusum {
    aim: Aim,
    aim_after_change: Aim,
    costs: Costs,
    lag: WakeLag,
    classes: [Class; CLASSES],
}

#[derive(Clone, Copy)]
struct Class {
    tracker: Tracker,
    watch: Watch,
    since_change: u32,
}

/// Mean, variance and both sums.
#[derive(Clone, Copy, Default)]
struct Watch {
    operations: u32,
    mean: f64,
    variance: f64,
    above: f64,
    below: f64,
}

impl Cusum {
    pub fn new(quantile: f64, costs: &Costs) -> Self {
        let class =
            Class { tracker: Tracker::new(), watch: Watch::default(), since_change: OPERATIONS_AFTER_CHANGE };
        Self {
            aim: Aim::steady(quantile, STEP),
            aim_after_change: Aim::steady(quantile, STEP_AFTER_CHANGE),
            costs: *costs,
            lag: WakeLag::new(costs),
            classes: [class; CLASSES],
        }
    }
}

impl Watch {
    /// Takes one time; says whether there has been a change.
    fn note(&mut self, device_ns: u64) -> bool {
        let value = (device_ns.max(1) as f64).ln();
        let error = value - self.mean;
        let alarm = self.operations >= LEARNING && self.add_up(error);
        if alarm {
            *self = Self::default();
            return true;
        }
        self.operations = (self.operations + 1).min(MEMORY);
        let weight = 1.0 / f64::from(self.operations);
        self.mean += weight * error;
        self.variance += weight * (error * (value - self.mean) - self.variance);
        false
    }

    fn add_up(&mut self, error: f64) -> bool {
        let deviation = self.variance.max(0.0).sqrt().max(DEVIATION_MIN);
        let score = (error / deviation).clamp(-STRAY_MAX, STRAY_MAX);
        self.above = (self.above + score - ALLOWANCE).max(0.0);
        self.below = (self.below - score - ALLOWANCE).max(0.0);
        self.above.max(self.below) >= ALARM
    }
}

impl Predictor for Cusum {
    fn plan(&mut self, issued: &Issued) -> Plan {
        self.classes[size_class(issued.bytes, issued.direction)].tracker.plan(self.lag.ns())
    }

    fn observe(&mut self, outcome: &Outcome) {
        self.lag.learn(outcome);
        let class = &mut self.classes[size_class(outcome.bytes, outcome.direction)];
        let bound_ns = outcome.device_time(&self.costs).bound_ns();
        if class.watch.note(bound_ns) {
            class.tracker = Tracker::new();
            class.since_change = 0;
            return;
        }
        let changed = class.since_change < OPERATIONS_AFTER_CHANGE && class.tracker.has_begun();
        let aim = if changed { &self.aim_after_change } else { &self.aim };
        class.since_change += u32::from(changed);
        class.tracker.learn(aim, bound_ns, too_late(&class.tracker, outcome, bound_ns));
    }
}

#[cfg(test)]
mod tests {
    use crate::predict::{Plan, rehearsal::Rehearsal};

    fn operations_until_asleep_for(rehearsal: &mut Rehearsal, sleep_ns: u64, device_ns: u64) -> u32 {
        (1..100_000)
            .find(|_| matches!(rehearsal.wait(device_ns).plan, Plan::Sleep { ns } if ns >= sleep_ns))
            .expect("it gets there")
    }

    #[test]
    fn a_slower_device_is_known_within_fifty_operations() {
        let mut plain = Rehearsal::new("quantile:0.01");
        let mut watching = Rehearsal::new("cusum:0.01");
        for rehearsal in [&mut plain, &mut watching] {
            rehearsal.misses_in(2_000, |random| 14_000 + random % 2_000);
        }
        let (plain, watching) = (
            operations_until_asleep_for(&mut plain, 100_000, 150_000),
            operations_until_asleep_for(&mut watching, 100_000, 150_000),
        );
        assert!(watching < 50 && plain > 1_000, "{watching} and {plain}");
    }

    #[test]
    fn a_faster_device_costs_few_misses() {
        let mut rehearsal = Rehearsal::new("cusum:0.01");
        rehearsal.misses_in(2_000, |random| 140_000 + random % 20_000);
        let share = rehearsal.misses_in(1_000, |random| 14_000 + random % 2_000);
        assert!(share < 0.03, "{share}");
    }

    #[test]
    fn without_a_change_the_share_of_misses_is_the_one_asked_for() {
        let mut rehearsal = Rehearsal::new("cusum:0.05");
        rehearsal.misses_in(2_000, |random| 12_000 + random % 8_000);
        let share = rehearsal.misses_in(100_000, |random| 12_000 + random % 8_000);
        assert!((share - 0.05).abs() < 0.005, "{share}");
    }
}
