//! Mean less deviations, both moving averages: a retransmission timer (RFC 6298) in reverse.
//!
//! The sleep is that target less the lag of waking, which is also an average. The time after a sleep that was too
//! long is censored and not used; eight such sleeps in a row show that the average is outdated, and it restarts with
//! a poll.

use super::{
    Costs, DeviceTime, Issued, Outcome, Plan, Predictor,
    size_class::{CLASSES, size_class},
};

const MISSES_IN_A_ROW_MAX: u32 = 8;

/// Moving averages of each size class.
pub struct Ewma {
    weight: f64,
    deviations: f64,
    costs: Costs,
    wake_lag_ns: f64,
    classes: [Class; CLASSES],
}

#[derive(Clone, Copy, Default)]
struct Class {
    average: Option<Average>,
    misses_in_a_row: u32,
}

#[derive(Clone, Copy)]
struct Average {
    mean_ns: f64,
    deviation_ns: f64,
}

impl Ewma {
    pub fn new(weight: f64, deviations: f64, costs: &Costs) -> Self {
        Self {
            weight,
            deviations,
            costs: *costs,
            wake_lag_ns: costs.wake_lag_ns as f64,
            classes: [Class::default(); CLASSES],
        }
    }
}

impl Class {
    fn learn(&mut self, device_ns: f64, weight: f64) {
        self.misses_in_a_row = 0;
        // The first deviation is half of the first time, as in RFC 6298.
        let average =
            self.average.get_or_insert(Average { mean_ns: device_ns, deviation_ns: device_ns / 2.0 });
        let error_ns = device_ns - average.mean_ns;
        average.deviation_ns += weight * (error_ns.abs() - average.deviation_ns);
        average.mean_ns += weight * error_ns;
    }

    fn miss(&mut self) {
        self.misses_in_a_row += 1;
        if self.misses_in_a_row == MISSES_IN_A_ROW_MAX {
            *self = Self::default();
        }
    }
}

impl Predictor for Ewma {
    fn plan(&mut self, issued: &Issued) -> Plan {
        let class = &self.classes[size_class(issued.bytes, issued.direction)];
        let Some(average) = class.average else { return Plan::Poll };
        let sleep_ns = average.mean_ns - self.deviations * average.deviation_ns - self.wake_lag_ns;
        // A negative sleep becomes zero.
        Plan::sleep_or_poll(sleep_ns as u64)
    }

    fn observe(&mut self, outcome: &Outcome) {
        let class = &mut self.classes[size_class(outcome.bytes, outcome.direction)];
        match outcome.device_time(&self.costs) {
            DeviceTime::Exactly(device_ns) => class.learn(device_ns as f64, self.weight),
            DeviceTime::AtMost(_) => class.miss(),
        }
        let slept_in_full = matches!(outcome.plan, Plan::Sleep { .. }) && !outcome.woken_early;
        if slept_in_full {
            self.wake_lag_ns += self.weight * (outcome.wake_lag_ns as f64 - self.wake_lag_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::predict::{Plan, rehearsal::Rehearsal};

    #[test]
    fn a_constant_device_is_slept_on_but_for_the_lag() {
        let mut rehearsal = Rehearsal::new("ewma");
        rehearsal.wake_lag_ns = 12_000;
        assert_eq!(rehearsal.wait(40_000).plan, Plan::Poll);
        rehearsal.misses_in(60, |_| 40_000);
        let Plan::Sleep { ns } = rehearsal.wait(40_000).plan else { panic!("no sleep") };
        assert!((26_000..28_000).contains(&ns), "{ns}");
    }

    #[test]
    fn scatter_keeps_it_away_from_misses() {
        let mut rehearsal = Rehearsal::new("ewma");
        rehearsal.misses_in(300, |random| 20_000 + random % 4_000);
        let share = rehearsal.misses_in(20_000, |random| 20_000 + random % 4_000);
        assert!(share < 0.01, "{share}");
        assert!(matches!(rehearsal.wait(22_000).plan, Plan::Sleep { ns: 15_000.. }));
    }

    #[test]
    fn a_device_that_became_fast_is_found_after_eight_misses() {
        let mut rehearsal = Rehearsal::new("ewma");
        rehearsal.misses_in(60, |_| 100_000);
        assert!((0..8).all(|_| rehearsal.wait(10_000).complete_at_wake));
        assert_eq!(rehearsal.wait(10_000).plan, Plan::Poll);
        assert!(rehearsal.misses_in(100, |_| 10_000) < 0.1);
    }
}
