//! The simulated disk: a deterministic queueing model of a fast SSD, the host that waits for it, and every method of
//! waiting. It also replays recorded latencies with the same host.
//!
//! What is modelled, in the order an operation meets it:
//!
//! ```text
//! host core (first come, first served) -> one of K units, at random, first come, first served -> one pipe -> delay
//! ```
//!
//! Loops are closed. The foreground thread has one operation in flight and issues the next when it has noticed the
//! last, so a method that wakes late also loads the device less. A background core has as many in flight as its depth
//! and issues a further one for each completion it has handled. [`device`] is the part after the host, [`thread`] the
//! foreground's waiting; [`coupled`] joins them with the [`background`] cores, and [`schedule`] decides what happens
//! next. [`replay`] gives the same thread recorded latencies, [`oracle`] contains the methods that know more than a
//! thread can, and [`calibration`] compares the constants with the published figures of the device they describe.
//! [`trial`] makes a trial of a study from a cell.
//!
//! **What is emulated.** All of it: no disk is touched and no clock is read. The device has no writes, no garbage
//! collection, no errors, no cache and no reordering, and its units do not differ. The host has a core for the
//! foreground alone, polls continuously (a completion is noticed in the nanosecond it becomes visible), is never
//! preempted, and pays constant CPU for each kind of wait; the lag of a wake-up has a floor and an exponential part.
//! Polled operations and unarmed sleeps use a queue without interrupts; an operation left to the interrupt, or armed,
//! uses one with interrupts. `docs/guide/simulated-disk.md` has the constants with their sources.
//!
//! Times are whole nanoseconds, and nothing here depends on the floating point of the processor or a library: the
//! same scenario, method and seed give the same report, bit for bit, if the predictor also avoids it.
//!
//! **An event** is one entry taken from the schedule: an operation reaches a unit, an operation leaves a unit, an
//! interval ends. Everything else that happens to an operation (its turn in the pipe and on the host, its delay, the
//! wake and the notice) follows from these by arithmetic and does not count. An operation is two events.

pub mod calibration;
pub mod method;
pub mod scenario;
pub mod trial;

mod background;
mod coupled;
mod device;
mod draws;
mod oracle;
mod replay;
mod report;
mod ring;
mod schedule;
mod synthetic;
mod thread;

pub use coupled::simulate;
pub use method::Method;
pub use replay::{Pace, replay};
pub use report::{PhaseReport, SimulationReport};
pub use scenario::{DeviceModel, HostModel, Lag, LagTail, Phase, Scenario, ScenarioError, StartTransient};
pub use synthetic::synthetic;

/// The disclaimer for every figure of the simulation, in one sentence.
pub const EMULATED: &str = "Everything here is emulated: a queueing model with the constants of a 983 ZET SSD and a Xeon Gold 6230, fitted to \
     published figures; no disk was touched.";
/// The disclaimer for methods that should sleep and did not, in a phase of this length.
pub fn never_slept(phase: &str, elapsed_ns: u64, methods: &[String]) -> String {
    format!(
        "Never slept in {phase}, which lasts {:.1} ms: {}. Their figures are those of polling, with nothing to miss. \
         Methods that learn over epochs (linux-mean and lmd 100 ms, ehp 10 ms) need several of them.",
        elapsed_ns as f64 / 1e6,
        methods.join(", ")
    )
}

/// The disclaimer for a replayed trace.
pub const EMULATED_REPLAY: &str = "The latencies were recorded; the host that waits for them is emulated, and waiting otherwise does not change \
     them.";

#[cfg(test)]
mod tests;
