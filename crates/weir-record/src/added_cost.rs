//! What arms cost beyond the baseline, which does the same work without what they add; and the least costly of them as
//! a share of a reference's cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    figure::{PairedDifference, PairedRatio},
    goal::Outcome,
    metric::Metric,
};

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
    /// The arm whose added cost that of the others is held against.
    pub reference: String,
    /// What is counted. Shares are of the first.
    pub metrics: Vec<Metric>,
    /// Largest share of the reference's cost that the least costly arm may have in every cell; absent where the costs
    /// are only looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_max: Option<f64>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AddedCosts {
    /// What was asked.
    pub asked: AddedCostSpec,
    /// By cell and arm.
    pub costs: Vec<AddedCost>,
    /// The arm whose largest share over all cells is the smallest; absent where no limit was asked for, or no share is
    /// known.
    pub least: Option<LeastCost>,
}

impl AddedCosts {
    /// What an arm adds in a cell.
    pub fn cost(&self, cell_id: &str, arm: &str) -> Option<&AddedCost> {
        self.costs.iter().find(|it| it.cell_id == cell_id && it.arm == arm)
    }
}

/// What an arm adds in a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AddedCost {
    /// Cell.
    pub cell_id: String,
    /// Arm.
    pub arm: String,
    /// Figures beyond the baseline's of the same block, in the units of their metrics; without those that no block has.
    pub added: Vec<(Metric, PairedDifference)>,
    /// Of the first metric, over what the reference adds; absent for the reference itself, and where its cost cannot be
    /// told from zero. The interval is as wide as for all arms together.
    pub share: Option<PairedRatio>,
}

impl AddedCost {
    /// What the arm adds of one metric.
    pub fn of(&self, metric: Metric) -> Option<PairedDifference> {
        self.added.iter().find(|(own, _)| *own == metric).map(|(_, difference)| *difference)
    }
}

/// The arm with the least cost in its worst cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeastCost {
    /// Arm.
    pub arm: String,
    /// Of so many that were compared with the reference.
    pub arms: u32,
    /// Whether its share is within the limit in every cell, by the whole interval; missed where one is beyond it.
    pub outcome: Outcome,
}
