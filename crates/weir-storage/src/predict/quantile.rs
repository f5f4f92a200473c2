//! The sleep that is too long with a chosen probability, and nothing else: see [`super::tracker`].

use super::{
    Costs, Issued, Outcome, Plan, Predictor,
    size_class::{CLASSES, size_class},
    tracker::{Aim, Tracker},
    wake_lag::WakeLag,
};

const STEP: f64 = 0.15;

/// A tracker for each size class.
pub struct Quantile {
    aim: Aim,
    costs: Costs,
    lag: WakeLag,
    classes: [Tracker; CLASSES],
}

impl Quantile {
    pub fn new(quantile: f64, costs: &Costs) -> Self {
        Self {
            aim: Aim::steady(quantile, STEP),
            costs: *costs,
            lag: WakeLag::new(costs),
            classes: [Tracker::new(); CLASSES],
        }
    }
}

impl Predictor for Quantile {
    fn plan(&mut self, issued: &Issued) -> Plan {
        self.classes[size_class(issued.bytes, issued.direction)].plan(self.lag.ns())
    }

    fn observe(&mut self, outcome: &Outcome) {
        self.lag.learn(outcome);
        let tracker = &mut self.classes[size_class(outcome.bytes, outcome.direction)];
        let bound_ns = outcome.device_time(&self.costs).bound_ns();
        tracker.learn(&self.aim, bound_ns, too_late(tracker, outcome, bound_ns));
    }
}

/// Whether waking when the tracker says was, or would have been, too late.
pub fn too_late(tracker: &Tracker, outcome: &Outcome, bound_ns: u64) -> bool {
    match outcome.plan {
        Plan::Sleep { .. } => outcome.overslept(),
        Plan::Poll | Plan::Interrupt => bound_ns <= tracker.wake_ns(),
    }
}

#[cfg(test)]
mod tests {
    use crate::predict::{
        Costs, Plan, PredictorSpec,
        rehearsal::{COSTS, Rehearsal},
    };

    type Draw = fn(u64) -> u64;

    /// Numbers from 0 to 2^32, as exponential times with a mean of 50 µs.
    fn exponential(random: u64) -> u64 {
        let uniform = (random + 1) as f64 / (u64::from(u32::MAX) + 2) as f64;
        10_000 + (-uniform.ln() * 50_000.0) as u64
    }

    #[test]
    fn the_share_of_misses_is_the_one_asked_for_whatever_the_distribution() {
        let distributions: [(&str, Draw); 3] = [
            ("uniform", |random| 12_000 + random % 8_000),
            ("exponential", exponential),
            (
                "two peaks",
                |random| if random % 10 < 3 { 9_000 + random % 500 } else { 60_000 + random % 9_000 },
            ),
        ];
        for (name, draw) in distributions {
            for (spec, quantile) in [("quantile:0.01", 0.01), ("quantile:0.05", 0.05), ("quantile:0.2", 0.2)]
            {
                let mut rehearsal = Rehearsal::new(spec);
                rehearsal.misses_in(20_000, draw);
                let operations = 200_000;
                let share = rehearsal.misses_in(operations, draw);
                let sigma = (quantile * (1.0 - quantile) / f64::from(operations)).sqrt();
                assert!((share - quantile).abs() < 3.0 * sigma, "{name}, {spec}: {share}");
            }
        }
    }

    #[test]
    fn the_lag_of_waking_is_learned_without_being_told() {
        let mut rehearsal = Rehearsal::new("quantile:0.01");
        // Eight times what the costs say.
        rehearsal.wake_lag_ns = 16_000;
        rehearsal.misses_in(20_000, |random| 40_000 + random % 5_000);
        let share = rehearsal.misses_in(100_000, |random| 40_000 + random % 5_000);
        assert!((share - 0.01).abs() < 0.001, "{share}");
    }

    #[test]
    fn a_device_faster_than_any_sleep_is_polled_and_comes_back() {
        let mut rehearsal = Rehearsal::new("quantile:0.01").lagging(2_000);
        rehearsal.misses_in(1_000, |_| 1_500);
        // A sleep is tried now and then; it counts as any other.
        assert!(rehearsal.misses_in(100_000, |_| 1_500) < 0.0105);
        let polled = (0..10_000).filter(|_| rehearsal.wait(1_500).plan == Plan::Poll).count();
        assert!(polled > 9_800, "{polled}");
        rehearsal.misses_in(5_000, |_| 30_000);
        assert!(matches!(rehearsal.wait(30_000).plan, Plan::Sleep { ns: 20_000.. }));
    }

    #[test]
    fn a_device_is_slept_on_where_only_a_short_sleep_fits() {
        // The run began with longer sleeps, which are late by more than the device takes.
        let costs = Costs { wake_lag_ns: 24_000, ..COSTS };
        let spec: PredictorSpec = "quantile:0.01".parse().expect("a predictor");
        let mut rehearsal = Rehearsal::with(spec.build(&costs)).lagging(14_000);
        rehearsal.misses_in(10_000, |random| 21_000 + random % 5_000);
        let slept = (0..1_000).filter(|_| rehearsal.wait(23_000).plan != Plan::Poll).count();
        assert_eq!(slept, 1_000);
    }
}
