//! For tests: operations one after the other on a device with given times.

use super::{Costs, Direction, Issued, Outcome, Plan, Predictor, PredictorSpec};

/// The machine of source document 003, as the simulator has it.
pub const COSTS: Costs = Costs {
    submit_ns: 1_000,
    sleep_cpu_ns: 1_500,
    interrupt_cpu_ns: 2_500,
    interrupt_lag_ns: 2_100,
    wake_lag_ns: 1_950,
};

/// A predictor, a device and a clock. Sleeps are exact unless configured otherwise.
pub struct Rehearsal {
    predictor: Box<dyn Predictor>,
    random: u64,
    pub now_ns: u64,
    pub wake_lag_ns: u64,
    pub direction: Direction,
    pub in_flight: u32,
    pub in_flight_others: Option<u32>,
    pub armed: bool,
}

impl Rehearsal {
    pub fn new(spec: &str) -> Self {
        let spec: PredictorSpec = spec.parse().expect("a predictor");
        Self::with(spec.build(&COSTS))
    }

    pub fn with(predictor: Box<dyn Predictor>) -> Self {
        Self {
            predictor,
            random: 0x9E37_79B9_7F4A_7C15,
            now_ns: 1_000_000,
            wake_lag_ns: 0,
            direction: Direction::Read,
            in_flight: 1,
            in_flight_others: None,
            armed: false,
        }
    }

    /// Sleeps last this much longer than requested.
    pub fn lagging(mut self, wake_lag_ns: u64) -> Self {
        self.wake_lag_ns = wake_lag_ns;
        self
    }

    /// One operation of 4 KiB.
    pub fn wait(&mut self, device_ns: u64) -> Outcome {
        let plan = self.predictor.plan(&Issued {
            now_ns: self.now_ns,
            bytes: 4096,
            direction: self.direction,
            in_flight: self.in_flight,
            in_flight_others: self.in_flight_others,
        });
        let told_ns = device_ns.saturating_add(COSTS.interrupt_lag_ns);
        let (elapsed_ns, complete_at_wake, woken_early) = match plan {
            Plan::Poll => (device_ns, false, false),
            Plan::Interrupt => (told_ns, false, false),
            Plan::Sleep { ns } if self.armed && device_ns < ns => {
                (told_ns.min(ns + self.wake_lag_ns), false, true)
            }
            Plan::Sleep { ns } => {
                let wake_ns = ns + self.wake_lag_ns;
                (device_ns.max(wake_ns), device_ns <= wake_ns && !self.armed, false)
            }
        };
        self.now_ns = self.now_ns.saturating_add(elapsed_ns);
        let slept_in_full = matches!(plan, Plan::Sleep { .. }) && !woken_early;
        let outcome = Outcome {
            now_ns: self.now_ns,
            bytes: 4096,
            direction: self.direction,
            plan,
            elapsed_ns,
            complete_at_wake,
            woken_early,
            wake_lag_ns: if slept_in_full { self.wake_lag_ns } else { 0 },
            cpu_ns: 0,
        };
        self.predictor.observe(&outcome);
        outcome
    }

    /// Runs one operation, and others until this much time has passed since its completion.
    pub fn wait_for(&mut self, length_ns: u64, device_ns: u64) {
        let end_ns = self.wait(device_ns).now_ns + length_ns;
        while self.now_ns < end_ns {
            self.wait(device_ns);
        }
    }

    /// The share of misses in this many operations, whose times are drawn from numbers below 2^32.
    pub fn misses_in(&mut self, operations: u32, draw: impl Fn(u64) -> u64) -> f64 {
        let mut misses = 0;
        for _ in 0..operations {
            let device_ns = draw(self.next_random());
            misses += u32::from(self.wait(device_ns).complete_at_wake);
        }
        f64::from(misses) / f64::from(operations)
    }

    /// xorshift64*, the upper half.
    fn next_random(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32
    }
}
