//! What only a trial of storage has: what the kernel counted beside what the tool says of itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::storage::{WaitingInterval, WaitingReport};

/// One storage job, run once, seen from outside and from inside.
///
/// `messages`, `throughput_per_second` and the CPU of the load report it belongs to are from outside, by one method
/// for every tool: bytes the kernel accounted to the process, and CPU time of all its threads, between the same two
/// moments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StorageTrial {
    /// Who did the job: `weir 0.1.0`, `fio-3.33`.
    pub tool: String,
    /// Threads it had the work done by.
    pub threads: u32,
    /// Operations a second, as the tool says, over its own window.
    pub iops_reported: f64,
    /// CPU per operation in nanoseconds, as the tool says; absent when it says nothing.
    pub cpu_ns_reported: Option<f64>,
    /// Operations a second of the background load in the same window; absent without one.
    pub background_iops: Option<f64>,
    /// The measurement points, where the wait was the tool's to choose.
    pub waiting: Option<WaitingReport>,
    /// The same for each interval.
    pub intervals: Vec<WaitingInterval>,
    /// What the tool said that a reader must know.
    pub notes: Vec<String>,
}
