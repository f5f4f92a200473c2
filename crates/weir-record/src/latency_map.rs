//! Latency against offered load: what the arms of a cell answer in, at rates that all of them are offered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{figure::Figure, finding::Finding};

/// Cells that differ in the rate alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyLadder {
    /// What the rates are shares of; absent where the study has no cell in closed loop with the same levels.
    pub capacity: Option<Capacity>,
    /// Rates, in rising order.
    pub rungs: Vec<LatencyRung>,
}

/// The throughput that all arms of a cell reach: that of the slowest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Capacity {
    /// The cell in closed loop.
    pub cell_id: String,
    /// The arm that does least in it.
    pub arm: String,
    /// Messages a second.
    pub per_second: Figure,
    /// The generator was its limit: the server may do more.
    pub is_bound: bool,
}

/// All arms at one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyRung {
    /// The cell in open loop.
    pub cell_id: String,
    /// Messages a second that are offered.
    pub rate_per_second: f64,
    /// Share of the capacity that the closed loop of the same study found. Where the rate is a share, a pilot chose it
    /// before that was known.
    pub share: Option<f64>,
    /// The arms that were loaded.
    pub arms: Vec<LatencyPoint>,
}

/// One arm at one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyPoint {
    /// The arm.
    pub arm: String,
    /// Median response time in nanoseconds, from the intended start; absent where it is no latency.
    pub p50_ns: Option<Figure>,
    /// The same of the 99th percentile.
    pub p99_ns: Option<Figure>,
    /// The generator's own lag was a large part of the median: starts that are late make answers late, so that the
    /// times are upper bounds, and nothing is compared.
    pub is_upper_bound: bool,
    /// By how much later than intended the latest hundredth of the messages was started at least, in nanoseconds.
    pub lag_p99_ns: Option<f64>,
    /// Messages a second that were answered.
    pub achieved_per_second: f64,
    /// In most of its trials a thread of the generator had its CPU for itself: where the rate was not kept, the
    /// generator may be the reason.
    #[serde(default)]
    pub is_generator_busy: bool,
    /// Why there is no latency: where the rate is not kept a queue grows as long as the load lasts.
    pub reasons: Vec<Finding>,
    /// Rounds or blocks.
    pub units: u32,
}
