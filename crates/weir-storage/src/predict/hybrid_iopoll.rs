//! io_uring's `IORING_SETUP_HYBRID_IOPOLL`, Linux 6.13 and later: half of the shortest time spent beyond the sleep.
//!
//! There is one state for the whole ring. It keeps the minimum of the elapsed time less the requested sleep, and
//! never forgets it: on a constant device it sleeps for a quarter of the device's time, not half, and one sleep that
//! is too long leaves little more than its own lag. That follows from the source; it is not documented upstream.

use super::{Issued, Outcome, Plan, Predictor};

/// The running minimum.
pub struct HybridIopoll {
    shortest_ns: Option<u64>,
}

impl HybridIopoll {
    pub fn new() -> Self {
        Self { shortest_ns: None }
    }
}

impl Predictor for HybridIopoll {
    fn plan(&mut self, _: &Issued) -> Plan {
        Plan::sleep_or_poll(self.shortest_ns.map_or(0, |shortest_ns| shortest_ns / 2))
    }

    fn observe(&mut self, outcome: &Outcome) {
        let requested_ns = match outcome.plan {
            Plan::Sleep { ns } => ns,
            Plan::Poll | Plan::Interrupt => 0,
        };
        let beyond_ns = outcome.elapsed_ns.saturating_sub(requested_ns);
        self.shortest_ns = Some(self.shortest_ns.map_or(beyond_ns, |shortest_ns| shortest_ns.min(beyond_ns)));
    }
}

#[cfg(test)]
mod tests {
    use crate::predict::{Plan, rehearsal::Rehearsal};

    #[test]
    fn a_constant_device_is_slept_on_for_a_quarter_of_its_time() {
        let mut rehearsal = Rehearsal::new("hybrid-iopoll");
        let plans: Vec<Plan> = (0..5).map(|_| rehearsal.wait(16_000).plan).collect();
        let quarter = Plan::Sleep { ns: 4_000 };
        assert_eq!(plans, [Plan::Poll, Plan::Sleep { ns: 8_000 }, quarter, quarter, quarter]);
    }

    #[test]
    fn one_sleep_that_is_too_long_ends_the_sleeping_for_ever() {
        let mut rehearsal = Rehearsal::new("hybrid-iopoll");
        rehearsal.wake_lag_ns = 2_000;
        rehearsal.wait(16_000);
        assert!(rehearsal.wait(5_000).complete_at_wake);
        for _ in 0..100 {
            assert!(matches!(rehearsal.wait(16_000).plan, Plan::Sleep { ns: ..=1_000 }));
        }
    }
}
