//! What was asked: studies, arms, cells. Complete and explicit; stored with every result.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A whole study, resolved: nothing in it depends on a default that could change later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudySpec {
    /// Short name, also the folder name (`quick`).
    pub name: String,
    /// One sentence that says what the study asks.
    pub title: String,
    /// Seed of every random choice: order of arms, order of cells, payloads, arrivals.
    pub seed: u64,
    /// The arms; the first is the baseline and runs twice in every block (A/A).
    pub arms: Vec<ArmSpec>,
    /// All cells; exactly one has the role `Headline`.
    pub cells: Vec<CellSpec>,
    /// CPUs the server side is pinned to; empty means not pinned.
    pub server_cpus: Vec<usize>,
    /// CPUs the generator is pinned to; empty means not pinned.
    pub load_cpus: Vec<usize>,
    /// Smallest ratio that matters, as a fraction: 0.03 means differences under 3 % are not called.
    pub smallest_effect: f64,
    /// No new block starts after this much time; what is finished is judged.
    pub time_cap_ns: u64,
}

/// One way of serving the workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmSpec {
    /// Name in tables and charts.
    pub name: String,
    /// How the server is started.
    pub subject: Subject,
    /// Engine options of the generator that loads this arm (`spin-us = "50"`, …), sorted by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub load_options: BTreeMap<String, String>,
}

/// What an arm runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// `weir serve echo` on a driver with options (`buffer-bytes = "2048"`, …).
    Weir {
        /// Driver name as on the command line; never `auto` in a study.
        driver: String,
        /// Engine options, sorted by name.
        options: BTreeMap<String, String>,
    },
    /// A foreign server. `{port}`, `{cpus}`, `{workers}` and `{bin}` (the folder of the running `weir`) are
    /// substituted; ready when the port accepts.
    Command {
        /// Program and arguments.
        argv: Vec<String>,
    },
}

/// One combination of factor levels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellSpec {
    /// Stable identifier, e.g. `c100-d1-m64-closed`.
    pub id: String,
    /// What a verdict on this cell may claim.
    pub role: CellRole,
    /// Open connections.
    pub connections: u32,
    /// Messages in flight per connection (closed loop).
    pub depth: u32,
    /// Bytes per message.
    pub message_bytes: u32,
    /// Further connections that stay idle.
    pub idle_connections: u32,
    /// Server workers (threads).
    pub workers: u32,
    /// Closed loop, or open loop at a rate.
    pub load: LoadMode,
    /// Measured window per trial.
    pub window_ns: u64,
    /// Longest warm-up before the window.
    pub warmup_ns_max: u64,
    /// Blocks to run.
    pub blocks: u32,
}

/// How much a cell's verdict may claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellRole {
    /// Decides the study's sentence and exit code.
    Headline,
    /// Declared beforehand; corrected for multiplicity by Holm.
    Declared,
    /// Looked at without a claim.
    Exploratory,
}

/// How requests are started.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadMode {
    /// A new message as soon as an old one returned.
    Closed,
    /// Messages start at intended times, whatever the server does.
    Open {
        /// Messages a second over all connections.
        rate_per_second: f64,
        /// Exponential gaps (`true`) or equal gaps.
        poisson: bool,
    },
    /// Open loop at a share of the smaller of the arms' pilot capacities, fixed before the first block.
    OpenShare {
        /// Share of the smaller capacity, 0 to 1.
        share: f64,
        /// Exponential gaps (`true`) or equal gaps.
        poisson: bool,
    },
}
