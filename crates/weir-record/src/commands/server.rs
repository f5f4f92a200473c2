//! What is asked of servers that are compared under a load, and what a run of the load showed beside its cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::Ready;

/// What was asked of servers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerSettings {
    /// The load, as it was typed.
    pub load: String,
    /// Where the number of its units of work comes from.
    pub count: CountSource,
    /// What a unit of work is.
    pub unit: WorkUnit,
    /// How a server shows that it is ready.
    pub ready: Ready,
    /// Longest time for that.
    pub ready_ns_max: u64,
    /// From the end of a load run to the reading of its server's clocks.
    pub settle_ns: u64,
    /// Most pairs of one start of the servers.
    pub pairs_per_start: u32,
}

/// Where the number of units of work of a load run comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CountSource {
    /// The load reports none: figures are those of a run.
    #[default]
    None,
    /// What this tool prints.
    Tool(String),
    /// The group of this regular expression.
    Regex(String),
    /// The number at this pointer of a JSON document.
    Json(String),
}

/// What a unit of work is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkUnit {
    /// A run of the load: it reports no smaller one.
    #[default]
    Run,
    /// A request.
    Request,
    /// A transaction.
    Transaction,
    /// An operation.
    Operation,
    /// A message.
    Message,
    /// Whatever the load counts.
    Unit,
}

/// What a load run showed beside its cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadRun {
    /// Errors that the load reported.
    pub errors: u64,
    /// Time over which the server's clocks were read: the load run and what was waited after it.
    pub counted_ns: u64,
    /// Time before the run in which its server had no load.
    pub idle_ns: u64,
    /// CPU time of the server in that time.
    pub idle_cpu_ns: u64,
}

/// Why a server was not ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NotReady {
    /// It ended before.
    Ended(super::FailedEnd),
    /// It did not show in time that it is.
    TooLate {
        /// What was waited for.
        ready: Ready,
        /// Longest time for it.
        limit_ns: u64,
    },
}
