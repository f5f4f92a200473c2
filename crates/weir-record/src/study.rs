//! A judged study: everything a report needs, nothing it must compute.

use serde::{Deserialize, Serialize};

use crate::{
    machine::Fingerprint,
    spec::StudySpec,
    verdict::{Comparison, Verdict},
};

/// One finished study. Report, terminal and export draw this and recompute nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyResult {
    /// [`crate::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// What was asked.
    pub spec: StudySpec,
    /// Where it ran.
    pub fingerprint: Fingerprint,
    /// Index into `comparisons` of the headline (server CPU per message in the headline cell).
    pub headline: Option<usize>,
    /// The headline verdict; decides the exit code.
    pub verdict: Verdict,
    /// Every comparison of every cell, headline cell first.
    pub comparisons: Vec<Comparison>,
    /// Absolute figures per cell and arm.
    pub arms: Vec<ArmSummary>,
    /// Validity checks with their outcome.
    pub checks: Vec<Check>,
    /// Machine states found from the study's own readings.
    pub states: MachineStates,
    /// Every trial in time order, for the timeline.
    pub timeline: Vec<TimelineEntry>,
    /// Arms that could not run, with the reason and what would unlock them.
    pub missing_arms: Vec<MissingArm>,
    /// Whether every planned block was finished.
    pub complete: bool,
    /// Wall time of all sessions.
    pub elapsed_ns: u64,
    /// Command that runs this study again.
    pub reproduce: String,
}

/// Median figures of one arm in one cell over its clean trials.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ArmSummary {
    /// Cell.
    pub cell_id: String,
    /// Arm.
    pub arm: String,
    /// Clean trials.
    pub trials: u32,
    /// Messages per second: median, minimum, maximum.
    pub throughput_per_second: Spread,
    /// The throughput is only a lower bound: the generator was the limit.
    pub generator_bound: bool,
    /// Server-process CPU per message in microseconds.
    pub server_cpu_us_per_message: Spread,
    /// Whole-machine CPU per message in microseconds.
    pub machine_cpu_us_per_message: Spread,
    /// Generator CPU per message in microseconds.
    pub generator_cpu_us_per_message: Spread,
    /// Context switches per message (voluntary, involuntary).
    pub switches_voluntary_per_message: Spread,
    /// Involuntary context switches per message.
    pub switches_involuntary_per_message: Spread,
    /// Engine counters per message, by name, sorted; empty for foreign servers.
    pub engine_per_message: Vec<(String, f64)>,
    /// System calls per message derived from engine counters; absent for foreign servers.
    pub syscalls_per_message: Option<f64>,
    /// Response-time curve merged over trials: (quantile, ns).
    pub response_quantiles: Vec<(f64, u64)>,
    /// Service-time curve merged over trials: (quantile, ns).
    pub service_quantiles: Vec<(f64, u64)>,
    /// Throughput of each clean trial, in time order.
    pub throughput_trials: Vec<f64>,
    /// Server CPU per message (µs) of each clean trial, in time order.
    pub server_cpu_trials: Vec<f64>,
}

/// Median with minimum and maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

/// One validity check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Stable name (`bytes-verified`, `failures-classified`, `littles-law`, `generator-headroom`, …).
    pub name: String,
    /// Whether it holds.
    pub passed: bool,
    /// What was found, with the numbers.
    pub detail: String,
}

/// States of the machine, found by clustering the cross-core readings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineStates {
    /// Boundary between near and far in nanoseconds; absent when there is one state.
    pub boundary_ns: Option<f64>,
    /// Median reading of the near state (or of the only one).
    pub near_ns: f64,
    /// Median reading of the far state.
    pub far_ns: Option<f64>,
    /// Trials in the near state, far state, and with readings on both sides.
    pub trials: (u32, u32, u32),
}

/// One trial on the timeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelineEntry {
    /// Arm name.
    pub arm: String,
    /// Cell.
    pub cell_id: String,
    /// Block.
    pub block: u32,
    /// Start since the study began.
    pub started_ns: u64,
    /// Length.
    pub elapsed_ns: u64,
    /// Mean of the two cross-core readings.
    pub round_trip_ns: f64,
    /// Steal share in the window.
    pub steal_share: f64,
    /// Whether the trial was used.
    pub clean: bool,
}

/// An arm that could not run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissingArm {
    /// Arm.
    pub name: String,
    /// Why.
    pub reason: String,
    /// What would unlock it.
    pub unlock: Option<String>,
}
