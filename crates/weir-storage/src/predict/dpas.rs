//! DPAS (FAST '26): PAS, polling or interrupts, by the thread's own queue depth.
//!
//! It runs PAS for 100 operations; then polling if there was never more than one in flight (for 1000 operations), or
//! PAS under overload if a sleep was at its floor. Under overload it decides every 100 operations: back to PAS at a
//! mean depth of one, to interrupts (for 10 000 operations) above one, the published threshold for NAND. As in the
//! authors' kernel, ten times the mean is compared with ten, both whole numbers, rounded down: a mean of 1.09 counts
//! as one, 1.1 is above it. `no-poll` omits polling, the saving mode that its authors leave to future work.

use super::{
    Issued, Outcome, Plan, Predictor,
    pas::PasSleep,
    size_class::{CLASSES, size_class},
};

/// Ten times the mean depth of a thread that never had two operations in flight, and the threshold for NAND.
const TENTHS_ALONE: u64 = 10;

/// PAS with modes.
pub struct Dpas {
    polls: bool,
    mode: Mode,
    operations: u64,
    depth_sum: u64,
    at_floor: bool,
    classes: [PasSleep; CLASSES],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Sleeping,
    Polling,
    Overloaded,
    Interrupts,
}

impl Mode {
    fn operations(self) -> u64 {
        match self {
            Self::Sleeping | Self::Overloaded => 100,
            Self::Polling => 1_000,
            Self::Interrupts => 10_000,
        }
    }
}

impl Dpas {
    pub fn new(polls: bool) -> Self {
        Self {
            polls,
            mode: Mode::Sleeping,
            operations: 0,
            depth_sum: 0,
            at_floor: false,
            classes: [PasSleep::new(); CLASSES],
        }
    }

    fn end_mode(&mut self) {
        let tenths = self.depth_sum * 10 / self.operations;
        self.mode = match self.mode {
            Mode::Sleeping if self.at_floor => Mode::Overloaded,
            Mode::Sleeping if tenths == TENTHS_ALONE && self.polls => Mode::Polling,
            Mode::Sleeping | Mode::Polling => Mode::Sleeping,
            Mode::Overloaded if tenths <= TENTHS_ALONE => Mode::Sleeping,
            Mode::Overloaded => Mode::Interrupts,
            Mode::Interrupts => Mode::Overloaded,
        };
        self.operations = 0;
        self.depth_sum = 0;
        self.at_floor = false;
    }
}

impl Predictor for Dpas {
    fn plan(&mut self, issued: &Issued) -> Plan {
        if self.operations == self.mode.operations() {
            self.end_mode();
        }
        self.operations += 1;
        self.depth_sum += u64::from(issued.in_flight);
        match self.mode {
            Mode::Polling => Plan::Poll,
            Mode::Interrupts => Plan::Interrupt,
            Mode::Sleeping | Mode::Overloaded => {
                let next = self.classes[size_class(issued.bytes, issued.direction)].next();
                self.at_floor |= next.at_floor;
                next.plan
            }
        }
    }

    fn observe(&mut self, outcome: &Outcome) {
        self.classes[size_class(outcome.bytes, outcome.direction)].observe(outcome);
    }
}

#[cfg(test)]
mod tests {
    use crate::predict::{Plan, rehearsal::Rehearsal};

    fn plans(rehearsal: &mut Rehearsal, operations: usize, device_ns: u64) -> Vec<Plan> {
        (0..operations).map(|_| rehearsal.wait(device_ns).plan).collect()
    }

    #[test]
    fn alone_on_its_core_it_polls_ten_operations_in_eleven() {
        let mut rehearsal = Rehearsal::new("dpas");
        for _ in 0..3 {
            let sleeping = plans(&mut rehearsal, 100, 15_000);
            assert!(sleeping.iter().all(|plan| matches!(plan, Plan::Sleep { .. })));
            assert!(plans(&mut rehearsal, 1_000, 15_000).iter().all(|plan| *plan == Plan::Poll));
        }
        let mut saving = Rehearsal::new("dpas:no-poll");
        assert!(plans(&mut saving, 3_000, 15_000).iter().all(|plan| matches!(plan, Plan::Sleep { .. })));
    }

    /// A hundred operations, of which this many meet another one in flight.
    fn meeting(rehearsal: &mut Rehearsal, of_a_hundred: usize, device_ns: u64) {
        for operation in 0..100 {
            rehearsal.in_flight = if operation < of_a_hundred { 2 } else { 1 };
            rehearsal.wait(device_ns);
        }
        rehearsal.in_flight = 1;
    }

    #[test]
    fn a_mean_depth_is_compared_in_tenths() {
        // A mean of 1.09 is one, and polls; 1.1 is not.
        for (of_a_hundred, polls) in [(0, true), (9, true), (10, false), (90, false)] {
            let mut rehearsal = Rehearsal::new("dpas");
            meeting(&mut rehearsal, of_a_hundred, 15_000);
            assert_eq!(rehearsal.wait(15_000).plan == Plan::Poll, polls, "{of_a_hundred} of 100");
        }
        // Under overload the same means lead back to sleeps, or on to interrupts.
        for (of_a_hundred, interrupts) in [(9, false), (10, true)] {
            let mut rehearsal = Rehearsal::new("dpas");
            plans(&mut rehearsal, 100, 0);
            meeting(&mut rehearsal, of_a_hundred, 0);
            let next = rehearsal.wait(0).plan;
            assert_eq!(next == Plan::Interrupt, interrupts, "{of_a_hundred} of 100: {next:?}");
        }
    }

    #[test]
    fn overload_leads_to_interrupts_and_back() {
        let mut rehearsal = Rehearsal::new("dpas");
        rehearsal.in_flight = 4;
        // Every sleep is too long and reaches the floor.
        plans(&mut rehearsal, 200, 0);
        assert!(plans(&mut rehearsal, 10_000, 0).iter().all(|plan| *plan == Plan::Interrupt));
        rehearsal.in_flight = 1;
        let overloaded = plans(&mut rehearsal, 100, 15_000);
        assert!(overloaded.iter().all(|plan| matches!(plan, Plan::Sleep { .. })));
        plans(&mut rehearsal, 100, 15_000);
        assert_eq!(rehearsal.wait(15_000).plan, Plan::Poll);
    }
}
