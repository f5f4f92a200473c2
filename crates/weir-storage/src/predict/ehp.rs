//! EHP (Lee, Shin and Jeong, 2022): sleep until shortly before the earliest completion of the last 10 ms.
//!
//! "Shortly" is the time of going to sleep and waking: two context switches and an interrupt, 4.05 µs on the machine
//! of the authors of DPAS, or the cost on this machine if that is more. A device whose earliest completion takes more
//! than ten times as long gets interrupts.

use super::{
    Costs, Issued, Outcome, Plan, Predictor,
    epoch::Epoch,
    size_class::{CLASSES, size_class},
};

const EPOCH_NS: u64 = 10_000_000;
const CONTEXT_SWITCH_NS: u64 = 1_487;
const INTERRUPT_NS: u64 = 1_076;

/// The minimum of the last epoch, less the time of waking.
pub struct Ehp {
    overhead_ns: u64,
    epoch: Epoch,
    gathered_ns: [Option<u64>; CLASSES],
    minimum_ns: [Option<u64>; CLASSES],
}

impl Ehp {
    pub fn new(costs: &Costs) -> Self {
        let published_ns = 2 * CONTEXT_SWITCH_NS + INTERRUPT_NS;
        Self {
            overhead_ns: published_ns.max(costs.wake_lag_ns.saturating_add(costs.sleep_cpu_ns)),
            epoch: Epoch::new(EPOCH_NS),
            gathered_ns: [None; CLASSES],
            minimum_ns: [None; CLASSES],
        }
    }

    fn close_epoch(&mut self, now_ns: u64) {
        if !self.epoch.has_ended(now_ns) {
            return;
        }
        for (gathered_ns, minimum_ns) in self.gathered_ns.iter_mut().zip(&mut self.minimum_ns) {
            *minimum_ns = gathered_ns.take().or(*minimum_ns);
        }
    }
}

impl Predictor for Ehp {
    fn plan(&mut self, issued: &Issued) -> Plan {
        self.close_epoch(issued.now_ns);
        match self.minimum_ns[size_class(issued.bytes, issued.direction)] {
            None => Plan::Poll,
            Some(minimum_ns) if minimum_ns >= self.overhead_ns.saturating_mul(10) => Plan::Interrupt,
            Some(minimum_ns) => Plan::sleep_or_poll(minimum_ns.saturating_sub(self.overhead_ns)),
        }
    }

    fn observe(&mut self, outcome: &Outcome) {
        self.close_epoch(outcome.now_ns);
        self.epoch.note_completion(outcome.now_ns);
        let gathered_ns = &mut self.gathered_ns[size_class(outcome.bytes, outcome.direction)];
        let minimum_ns = gathered_ns.unwrap_or(u64::MAX).min(outcome.elapsed_ns);
        *gathered_ns = Some(minimum_ns);
    }
}

#[cfg(test)]
mod tests {
    use crate::predict::{Plan, rehearsal::Rehearsal};

    #[test]
    fn it_sleeps_for_the_minimum_less_what_waking_takes() {
        let mut rehearsal = Rehearsal::new("ehp");
        assert_eq!(rehearsal.wait(15_000).plan, Plan::Poll);
        rehearsal.wait(14_000);
        rehearsal.wait_for(10_000_000, 16_000);
        assert_eq!(rehearsal.wait(16_000).plan, Plan::Sleep { ns: 14_000 - 4_050 });
    }

    #[test]
    fn slow_devices_are_left_to_the_interrupt_and_come_back() {
        let mut rehearsal = Rehearsal::new("ehp");
        rehearsal.wait_for(10_000_000, 40_500);
        assert_eq!(rehearsal.wait(40_500).plan, Plan::Interrupt);
        rehearsal.wait_for(20_000_000, 20_000);
        assert!(matches!(rehearsal.wait(20_000).plan, Plan::Sleep { .. }));
    }
}
