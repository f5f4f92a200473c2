//! The results of a simulation.

use serde::Serialize;
use weir_record::storage::{WaitingInterval, WaitingReport};

use super::method::Method;

/// One phase, or one replayed trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseReport {
    /// Name of the phase.
    pub name: String,
    /// The foreground's measurement points.
    pub waiting: WaitingReport,
    /// The same for each interval.
    pub intervals: Vec<WaitingInterval>,
    /// Operations the background completed.
    pub background_operations: u64,
}

impl PhaseReport {
    /// Share of operations that were complete when their sleep ended.
    pub fn miss_share(&self) -> f64 {
        self.of_operations(self.waiting.misses)
    }

    /// Share of operations that a miss made later than an interrupt would have.
    pub fn miss_harmful_share(&self) -> f64 {
        self.of_operations(self.waiting.misses_harmful)
    }

    /// Share of the time that the thread was on its CPU.
    pub fn cpu_share(&self) -> f64 {
        share(self.waiting.cpu_ns, self.waiting.elapsed_ns)
    }

    /// Operations of the foreground a second.
    pub fn iops(&self) -> f64 {
        share(self.waiting.operations, self.waiting.elapsed_ns) * 1e9
    }

    /// Requested sleep over all operations, including those without a sleep: the "effective sleep".
    pub fn sleep_effective_ns(&self) -> f64 {
        self.of_operations(self.waiting.sleep_requested_ns)
    }

    /// Mean time from completion at the device to notice.
    pub fn added_ns_mean(&self) -> f64 {
        self.of_operations(self.waiting.total_ns - self.waiting.device_ns)
    }

    /// Whether a method that should sleep did not: then this is polling under another name, and nothing can be
    /// missed.
    pub fn never_slept(&self, method: &Method) -> bool {
        method.has_sleeps() && self.waiting.slept == 0 && self.waiting.polled > 0
    }

    fn of_operations(&self, sum: u64) -> f64 {
        share(sum, self.waiting.operations)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A whole scenario with one method and one seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SimulationReport {
    /// In the order of the scenario.
    pub phases: Vec<PhaseReport>,
    /// Entries taken from the schedule; [`crate::simulate`] defines them.
    pub events: u64,
}
