//! Predictors: they take history and return a plan. One file for each.
//!
//! A predictor decides how the thread spends the time until an operation is complete: sleep a while and then poll,
//! poll at once, or wait for the interrupt. It sees only what user space can observe: after a sleep that was too long
//! the operation's own time is censored, because the thread did not observe when it became complete.
//!
//! No predictor reads a clock, allocates after its creation, or knows whether the device is real. Whatever its input,
//! it never requests a sleep longer than [`SLEEP_NS_MAX`].
//!
//! | spec | file | idea |
//! | --- | --- | --- |
//! | `poll`, `interrupt`, `fixed:5us` | `control.rs` | controls |
//! | `linux-mean:0.5` | `linux_mean.rs` | Linux 4.10 to 6.3: half of a mean that may be outdated |
//! | `lmd` | `lmd.rs` | mean less four deviations below it, backing off at misses |
//! | `ehp` | `ehp.rs` | the minimum less what waking costs; slow devices get interrupts |
//! | `hybrid-iopoll` | `hybrid_iopoll.rs` | `IORING_SETUP_HYBRID_IOPOLL` |
//! | `pas` | `pas.rs` | up a little after too short a sleep, down a lot after too long a one |
//! | `dpas` | `dpas.rs` | PAS, or polling, or interrupts, by load |
//! | `ewma:0.125` | `ewma.rs` | mean less deviations, a retransmission timer in reverse |
//! | `quantile:0.01` | `quantile.rs` | the sleep that is too long once in a hundred times |
//! | `regime:0.003` | `regime.rs` | the same, unless the interrupt is worth its lag |
//! | `load-aware:0.003` | `load_aware.rs` | the same, for each load of the device |
//!
//! # One setting for every load
//!
//! The candidate is `regime:0.003`, price 16. These are the alternatives and the reasons, all measured with
//! [`crate::simulate`] over training seeds 1 to 10 (jobs of 4 s):
//!
//! | miss % / CPU % / IOPS | Job1 | Job2 | Job3 |
//! | --- | --- | --- | --- |
//! | `linux-mean:0.5` | 0.0 / 56 / 63 577 | 11.6 / 54 / 38 785 | 36.6 / 52 / 5 520 |
//! | `linux-mean:0.4` | 0.0 / 65 / 63 577 | 0.1 / 63 / 38 885 | 28.8 / 61 / 5 730 |
//! | `linux-mean:0.3` | 0.0 / 74 / 63 577 | 0.0 / 72 / 38 885 | 20.8 / 71 / 5 873 |
//! | `linux-mean:0.03` | 0.0 / 98 / 63 577 | 0.0 / 98 / 38 885 | 0.0 / 97 / 6 035 |
//! | `quantile:0.003` | 0.3 / 42 / 63 525 | 0.3 / 62 / 38 878 | 0.3 / 95 / 6 039 |
//! | `regime:0.003` | 0.3 / 40 / 63 525 | 0.3 / 60 / 38 883 | 0.0 / 3 / 6 016 |
//! | `interrupt` | 0.0 / 20 / 57 542 | 0.0 / 13 / 36 710 | 0.0 / 2 / 6 001 |
//!
//! * **The quantile.** While a unit of the device is idle the earliest completions are all alike, and a wake just
//!   before them is hardly ever late. A mean moves away from there as soon as operations queue. The share of misses
//!   equals the requested one; 0.3 % stays well below the half point that does not count as a difference. At 0.5 %
//!   the CPU is one point less, at 0.1 % two to three points more.
//! * **The step.** A miss that moves the wake by 15 % costs CPU time on the way back. With steps from 1 % on,
//!   doubling, the CPU is within 0.2 points of the best constant sleep with as many misses, found with hindsight: a
//!   method that only chooses when to wake cannot gain more while the load stays the same. `quantile` is made for a
//!   changing load: its window costs up to 2 points here because it adapts within 32 operations.
//! * **The price.** What a microsecond of latency costs in CPU, compared with the interrupt: about 2 µs in Job1, 9 in
//!   Job2, 93 in Job3. Prices from 12 to 80 give the same decisions; 16 keeps a margin from Job2, also on the way
//!   back (a factor of 0.7), and leaves a saturated disk to the interrupt early. In Job3 the cost is the interrupt's
//!   lag of 1.6 µs: up to 1 % of the operations a second, compared with methods that poll nearly all the time.
//! * **The load.** `load-aware` gives the same result. With up to 32 other operations in flight some unit is idle
//!   more often than the allowed one miss in 300 operations, so the wake is the same at every load; with 128 the
//!   interrupt is best. The candidate does not use it.
//! * **Armed.** Not for polled queues that are compared by their misses: they have no interrupt that could end a
//!   sleep. On a disk that interrupts anyway it is the better form: nothing is missed, and on a device with two
//!   speeds `regime` sleeps through the fast operations at the cost of an interrupt and is awake for the slow ones.

mod control;
mod dpas;
mod ehp;
mod ewma;
mod hybrid_iopoll;
mod linux_mean;
mod lmd;
mod load_aware;
mod pas;
mod quantile;
mod regime;

mod choice;
mod epoch;
mod size_class;
mod tracker;
mod wake_lag;

mod spec;

#[cfg(test)]
mod rehearsal;
#[cfg(test)]
mod tests;

pub use spec::{ALL_DEFAULTS, PredictorSpec, SpecError};

/// The longest sleep that a predictor requests. For longer waits CPU time is not the problem.
pub const SLEEP_NS_MAX: u64 = 1_000_000_000;

/// The longest wait that is accepted; keeps sums far from overflow.
const ELAPSED_NS_MAX: u64 = 10 * SLEEP_NS_MAX;

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the device.
    Read,
    /// To the device.
    Write,
}

/// What is known after an operation was handed to the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Issued {
    /// Now; any monotonic origin, the same for all calls.
    pub now_ns: u64,
    /// Length of the operation.
    pub bytes: u32,
    /// Direction of the transfer.
    pub direction: Direction,
    /// Operations of this thread in flight, this one included.
    pub in_flight: u32,
    /// Operations of others in flight on the device, if visible.
    pub in_flight_others: Option<u32>,
}

/// How to spend the time until the operation is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Poll from now on.
    Poll,
    /// Sleep for the requested time (the kernel adds its own lag), then poll.
    Sleep {
        /// Requested sleep.
        ns: u64,
    },
    /// Sleep until the interrupt.
    Interrupt,
}

impl Plan {
    /// A sleep within the limit; polling if the sleep would be zero.
    fn sleep_or_poll(ns: u64) -> Self {
        if ns == 0 { Self::Poll } else { Self::Sleep { ns: ns.min(SLEEP_NS_MAX) } }
    }
}

/// The outcome of a wait.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// The time at which the completion was noticed.
    pub now_ns: u64,
    /// Length of the operation.
    pub bytes: u32,
    /// Direction of the transfer.
    pub direction: Direction,
    /// The plan.
    pub plan: Plan,
    /// From hand-over to the notice of the completion. After a sleep that was too long this is an upper bound of the
    /// device's time.
    pub elapsed_ns: u64,
    /// The operation was complete when the (unarmed) sleep ended: a miss.
    pub complete_at_wake: bool,
    /// The completion ended the (armed) sleep early.
    pub woken_early: bool,
    /// Time that the sleep lasted beyond the request; 0 without a sleep.
    pub wake_lag_ns: u64,
    /// CPU time the operation cost the thread, from hand-over to notice; 0 when unknown.
    pub cpu_ns: u64,
}

impl Outcome {
    /// Whether the sleep was longer than the operation needed, whether or not the completion could end it. For an
    /// armed sleep that its timer ended, this follows from the times alone: the completion was noticed at the time of
    /// waking.
    pub fn overslept(&self) -> bool {
        let Plan::Sleep { ns } = self.plan else { return false };
        let at_wake = self.elapsed_ns <= ns.saturating_add(self.wake_lag_ns);
        self.complete_at_wake || self.woken_early || at_wake
    }

    /// What the wait shows about the device's own time.
    pub fn device_time(&self, costs: &Costs) -> DeviceTime {
        let elapsed_ns = self.elapsed_ns.min(ELAPSED_NS_MAX);
        let interrupted = self.woken_early || self.plan == Plan::Interrupt;
        if interrupted {
            DeviceTime::Exactly(elapsed_ns.saturating_sub(costs.interrupt_lag_ns))
        } else if self.overslept() {
            DeviceTime::AtMost(elapsed_ns)
        } else {
            DeviceTime::Exactly(elapsed_ns)
        }
    }
}

/// What is known of the device's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceTime {
    /// The completion was observed directly, or by an interrupt with a known lag.
    Exactly(u64),
    /// The thread did not poll before: the time is censored.
    AtMost(u64),
}

impl DeviceTime {
    /// The time, or its bound.
    pub fn bound_ns(self) -> u64 {
        match self {
            Self::Exactly(ns) | Self::AtMost(ns) => ns,
        }
    }
}

/// Costs of waiting on this machine: measured when a run starts, or constants of the simulator. A predictor is
/// created with them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// CPU to hand an operation over.
    pub submit_ns: u64,
    /// CPU of one timed sleep.
    pub sleep_cpu_ns: u64,
    /// CPU of one wait for the interrupt, in addition to the hand-over.
    pub interrupt_cpu_ns: u64,
    /// Delay of an interrupt's notice compared with polling.
    pub interrupt_lag_ns: u64,
    /// Median of the time that a sleep lasts beyond its request.
    pub wake_lag_ns: u64,
}

/// A predictor. Its state per size class and direction is internal.
pub trait Predictor: Send {
    /// Plans the wait for an operation that was just handed over.
    fn plan(&mut self, issued: &Issued) -> Plan;

    /// Learns from the outcome of a wait. Called once for each plan, in order of completion.
    fn observe(&mut self, outcome: &Outcome);
}
