//! The controls: polling, interrupts, and a constant sleep. They do not learn.

use super::{Issued, Outcome, Plan, Predictor};

/// The same plan for every operation.
pub struct Control(pub Plan);

impl Predictor for Control {
    fn plan(&mut self, _: &Issued) -> Plan {
        self.0
    }

    fn observe(&mut self, _: &Outcome) {}
}

#[cfg(test)]
mod tests {
    use crate::predict::{Plan, rehearsal::Rehearsal};

    #[test]
    fn controls_plan_the_same_for_ever() {
        let asked =
            [("poll", Plan::Poll), ("interrupt", Plan::Interrupt), ("fixed:5us", Plan::Sleep { ns: 5_000 })];
        for (spec, plan) in asked {
            let mut rehearsal = Rehearsal::new(spec);
            for device_ns in [10_000, 1, 40_000_000, 7] {
                assert_eq!(rehearsal.wait(device_ns).plan, plan);
            }
        }
    }
}
