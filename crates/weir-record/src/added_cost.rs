//! What arms cost beyond the baseline, which does the same work without what they add; and the least costly of them as
//! a share of a reference's cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AddedCostSpec {
    /// The level that all cells have and those of the other groups do not; empty where there is one group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Cells.
    pub cells: Vec<String>,
    /// Arms that add something, each in those of the cells in which it runs.
    pub arms: Vec<String>,
    /// The arm whose added cost the others are compared with.
    pub reference: String,
    /// What is counted. Shares are of the first.
    pub metrics: Vec<Metric>,
    /// Largest share of the reference's cost that the least costly arm may have in every cell; absent where the costs
    /// are only looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_max: Option<f64>,
}
