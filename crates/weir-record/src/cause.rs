//! Causes as experiments: what part of a difference goes when one switch of an arm is turned back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// A switch that one arm has and an otherwise equal arm lacks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CauseSpec {
    /// The arm whose difference from the study's first is to be explained.
    pub arm: String,
    /// The arm without the switch.
    pub without: String,
    /// The one thing in which the two differ, as a study file says it: `options.receive`.
    pub switch: String,
    /// Where it is asked.
    pub cells: Vec<String>,
    /// The figure in question.
    pub metric: Metric,
}
