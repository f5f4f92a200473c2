//! The quantile, unless the interrupt is worth its lag: see [`super::tracker`] and [`super::choice`].
//!
//! The price is what the user accepts: microseconds of CPU per microsecond of latency. At 15 µs an operation, polling
//! for 4 µs gains 2 µs; at 160 µs the same 2 µs cost 100. Rules about the minimum or the mean miss that, because a
//! saturated device has the same minimum as an idle one.

use super::{
    Costs, Issued, Outcome, Plan, Predictor,
    choice::{Choice, Ladder, Terms},
    size_class::{CLASSES, size_class},
};

/// A choice for each size class.
pub struct Regime {
    terms: Terms,
    classes: [Class; CLASSES],
}

#[derive(Clone, Copy)]
struct Class {
    choice: Choice,
    ladder: Ladder,
}

impl Regime {
    pub fn new(quantile: f64, price: f64, costs: &Costs) -> Self {
        let class = Class { choice: Choice::new(), ladder: Ladder::new() };
        Self { terms: Terms::new(quantile, price, costs), classes: [class; CLASSES] }
    }
}

impl Predictor for Regime {
    fn plan(&mut self, issued: &Issued) -> Plan {
        let class = &self.classes[size_class(issued.bytes, issued.direction)];
        class.choice.plan(&self.terms, &class.ladder)
    }

    fn observe(&mut self, outcome: &Outcome) {
        self.terms.note(outcome);
        let class = &mut self.classes[size_class(outcome.bytes, outcome.direction)];
        class.choice.observe(&self.terms, &mut class.ladder, outcome);
    }
}

#[cfg(test)]
mod tests {
    use crate::predict::{
        Plan,
        rehearsal::{COSTS, Rehearsal},
    };

    fn idle(random: u64) -> u64 {
        12_000 + random % 5_000
    }

    fn saturated(random: u64) -> u64 {
        12_000 + random % 300_000
    }

    fn rehearsal(spec: &str) -> Rehearsal {
        Rehearsal::new(spec).lagging(COSTS.wake_lag_ns)
    }

    #[test]
    fn an_idle_device_is_slept_on_with_few_misses() {
        let mut rehearsal = rehearsal("regime:0.003");
        rehearsal.misses_in(10_000, idle);
        let share = rehearsal.misses_in(200_000, idle);
        assert!((0.002..0.004).contains(&share), "{share}");
        assert!(matches!(rehearsal.wait(14_000).plan, Plan::Sleep { ns: 9_000..=10_500 }));
    }

    #[test]
    fn a_saturated_device_is_left_to_the_interrupt_and_taken_back() {
        let mut rehearsal = rehearsal("regime");
        rehearsal.misses_in(10_000, idle);
        rehearsal.misses_in(400, saturated);
        assert_eq!(rehearsal.wait(100_000).plan, Plan::Interrupt);
        rehearsal.misses_in(5_000, saturated);
        assert!(rehearsal.misses_in(1_000, idle) < 0.05);
        assert!(matches!(rehearsal.wait(14_000).plan, Plan::Sleep { .. }));
    }

    #[test]
    fn the_price_decides() {
        for (spec, plan_is) in [
            ("regime:0.003,0", (|plan| plan == Plan::Interrupt) as fn(Plan) -> bool),
            ("regime:0.003,1000000", |plan| plan != Plan::Interrupt),
        ] {
            for device in [idle, saturated] {
                let mut rehearsal = rehearsal(spec);
                rehearsal.misses_in(5_000, device);
                assert!(plan_is(rehearsal.wait(20_000).plan), "{spec}");
            }
        }
    }

    #[test]
    fn armed_it_wakes_in_time_although_nothing_is_ever_missed() {
        let mut rehearsal = rehearsal("regime");
        rehearsal.armed = true;
        assert_eq!(rehearsal.misses_in(20_000, idle), 0.0);
        for _ in 0..1_000 {
            let Plan::Sleep { ns } = rehearsal.wait(17_000).plan else { panic!("no sleep") };
            assert!(ns + COSTS.wake_lag_ns < 15_000, "{ns}");
            rehearsal.misses_in(1, idle);
        }
    }

    #[test]
    fn armed_it_sleeps_through_what_the_interrupt_ends_cheaply() {
        // Two speeds, and an interrupt whose lag is small beside the slow one.
        let two_speeds =
            |random: u64| if random % 100 < 15 { 40_000 + random % 9 } else { 300_000 + random % 8_000 };
        let asleep_ns = |armed: bool| {
            let mut rehearsal = rehearsal("regime:0.003,200");
            rehearsal.armed = armed;
            rehearsal.misses_in(20_000, two_speeds);
            match rehearsal.wait(300_000).plan {
                Plan::Sleep { ns } => ns,
                other => panic!("{other:?}"),
            }
        };
        assert!(asleep_ns(false) < 40_000);
        assert!(asleep_ns(true) > 250_000);
    }
}
