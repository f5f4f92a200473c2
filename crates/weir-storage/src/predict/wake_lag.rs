//! The time that a sleep lasts beyond its request, near the sleeps in use: on virtual machines a short sleep is late
//! by less than a long one.
//!
//! It is tracked from sleep to sleep, starting with the value measured when the run started. While polling there is
//! nothing to learn from; then the expectation decreases down to one half, so that a short sleep is tried
//! occasionally.

use super::{Costs, Outcome, Plan};

const WEIGHT: f64 = 1.0 / 64.0;
const FORGOTTEN_A_POLL: f64 = 1.0 / 4_096.0;
const SHARE_MIN: f64 = 0.5;
/// A single lag counts at most for this many times the expected one.
const STRAY_MAX: f64 = 4.0;

/// The expected lag.
#[derive(Clone, Copy, Debug)]
pub struct WakeLag {
    ns: f64,
    ns_min: f64,
}

impl WakeLag {
    pub fn new(costs: &Costs) -> Self {
        let ns = costs.wake_lag_ns as f64;
        Self { ns, ns_min: ns * SHARE_MIN }
    }

    pub fn ns(&self) -> u64 {
        self.ns as u64
    }

    pub fn learn(&mut self, outcome: &Outcome) {
        match outcome.plan {
            Plan::Sleep { .. } if !outcome.woken_early => {
                let lag_ns = (outcome.wake_lag_ns as f64).min(STRAY_MAX * self.ns);
                self.ns += WEIGHT * (lag_ns - self.ns);
            }
            Plan::Poll => self.ns -= FORGOTTEN_A_POLL * self.ns,
            Plan::Sleep { .. } | Plan::Interrupt => {}
        }
        self.ns = self.ns.max(self.ns_min);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::rehearsal::{COSTS, Rehearsal};

    #[test]
    fn it_follows_sleeps_and_is_forgotten_by_halves() {
        let mut lag = WakeLag::new(&COSTS);
        let mut rehearsal = Rehearsal::new("fixed:5us").lagging(6_000);
        for _ in 0..1_000 {
            lag.learn(&rehearsal.wait(20_000));
        }
        assert!((5_990..=6_000).contains(&lag.ns()), "{lag:?}");
        let mut polling = Rehearsal::new("poll");
        for _ in 0..20_000 {
            lag.learn(&polling.wait(20_000));
        }
        assert_eq!(lag.ns(), COSTS.wake_lag_ns / 2);
    }

    #[test]
    fn a_stray_lag_moves_it_little() {
        let mut lag = WakeLag::new(&COSTS);
        lag.learn(&Rehearsal::new("fixed:5us").lagging(50_000_000).wait(20_000));
        assert!(lag.ns() < COSTS.wake_lag_ns * 11 / 10);
    }
}
