//! `regime` with the visible load: a table of quantiles by operations in flight, the thread's own and those of
//! others. When the load changes, another line of the table applies, and nothing must be learned again.
//!
//! An unused line starts as a copy of the line used last. All lines share the choice between sleeping and the
//! interrupt: it weighs the cost of the mixture of loads.
//!
//! The load at the last issue is used for the operation that completes. At a depth of one they are the same.

use super::{
    Costs, Issued, Outcome, Plan, Predictor,
    choice::{Choice, Ladder, Terms},
    size_class::{CLASSES, size_class},
};

/// Lines of the table, by powers of two: 1, 2 or 3, 4 to 7, up to 128 and more.
const LOADS: usize = 8;

/// A table for each size class.
pub struct LoadAware {
    terms: Terms,
    classes: Vec<Class>,
}

#[derive(Clone)]
struct Class {
    choice: Choice,
    ladders: [Ladder; LOADS],
    load: usize,
}

impl LoadAware {
    pub fn new(quantile: f64, price: f64, costs: &Costs) -> Self {
        let class = Class { choice: Choice::new(), ladders: [Ladder::new(); LOADS], load: 0 };
        Self { terms: Terms::new(quantile, price, costs), classes: vec![class; CLASSES] }
    }
}

fn load(issued: &Issued) -> usize {
    let in_flight = issued.in_flight.saturating_add(issued.in_flight_others.unwrap_or(0));
    (in_flight.max(1).ilog2() as usize).min(LOADS - 1)
}

impl Predictor for LoadAware {
    fn plan(&mut self, issued: &Issued) -> Plan {
        let class = &mut self.classes[size_class(issued.bytes, issued.direction)];
        let load = load(issued);
        if !class.ladders[load].has_begun() {
            class.ladders[load] = class.ladders[class.load];
        }
        class.load = load;
        class.choice.plan(&self.terms, &class.ladders[load])
    }

    fn observe(&mut self, outcome: &Outcome) {
        self.terms.note(outcome);
        let class = &mut self.classes[size_class(outcome.bytes, outcome.direction)];
        class.choice.observe(&self.terms, &mut class.ladders[class.load], outcome);
    }
}

#[cfg(test)]
mod tests {
    use crate::predict::{Plan, rehearsal::Rehearsal};

    #[test]
    fn each_load_has_its_own_sleep() {
        let mut rehearsal = Rehearsal::new("load-aware:0.01,1000000");
        for _ in 0..20 {
            rehearsal.in_flight_others = Some(0);
            rehearsal.misses_in(500, |random| 15_000 + random % 1_000);
            rehearsal.in_flight_others = Some(31);
            rehearsal.misses_in(500, |random| 60_000 + random % 4_000);
        }
        rehearsal.in_flight_others = Some(0);
        assert!(matches!(rehearsal.wait(15_500).plan, Plan::Sleep { ns: 10_000..=16_000 }));
        rehearsal.in_flight_others = Some(31);
        assert!(matches!(rehearsal.wait(62_000).plan, Plan::Sleep { ns: 40_000..=64_000 }));
        // An unseen load starts where the last one was.
        rehearsal.in_flight_others = Some(200);
        assert!(matches!(rehearsal.wait(62_000).plan, Plan::Sleep { ns: 40_000..=64_000 }));
    }

    #[test]
    fn without_sight_of_others_it_is_the_same_as_regime() {
        let mut blind = Rehearsal::new("load-aware:0.01");
        let mut regime = Rehearsal::new("regime:0.01");
        for index in 0..5_000_u64 {
            let device_ns = 15_000 + index * 7_919 % 1_000;
            assert_eq!(blind.wait(device_ns).plan, regime.wait(device_ns).plan);
        }
    }
}
