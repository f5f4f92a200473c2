//! What cells say together that differ in levels of factors alone: the map of a study.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// A factor that spans a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GridFactor {
    /// Open connections.
    Connections,
    /// Server threads.
    Workers,
    /// Messages in flight on each connection.
    Depth,
    /// Bytes of a message.
    MessageBytes,
    /// CPUs of the servers; 0 where no cell of the study has its own.
    ServerCpus,
}

/// One arm against the baseline by one metric, over cells that differ in these factors alone: in closed loop, or each
/// at one rate for all arms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Grid {
    /// Which map of the study it is of, from 0: cells that differ in more than levels are of several.
    #[serde(default)]
    pub map: u32,
    /// The arm.
    pub arm: String,
    /// The baseline.
    pub baseline: String,
    /// What is compared.
    pub metric: Metric,
    /// The factors that have several levels.
    pub factors: Vec<GridFactor>,
    /// Its cells, in the order of the study.
    pub cells: Vec<GridCell>,
    /// Geometric means over the cells of each level.
    pub marginals: Vec<Marginal>,
    /// Whether the effect of one factor depends on another's level, for pairs of factors that cells cross completely;
    /// empty before the schedule is finished.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interactions: Vec<Interaction>,
    /// Where the arm goes from needing more to needing less, or back, as connections grow.
    pub crossings: Vec<Crossing>,
    /// Cells that are in no mean and no crossing, because the generator was the limit there.
    #[serde(default)]
    pub cells_left_out: u32,
}

/// The result of a cell, as one of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// The arm's figure is smaller.
    Less,
    /// It is larger.
    More,
    /// Any difference is smaller than what matters: of declared contrasts.
    Equivalent,
    /// None that could be distinguished from noise.
    Undetected,
    /// One that something else which was measured does not confirm, above all the CPU of both sides.
    NotBorneOut,
    /// The generator was the limit, and nothing shows the two at one equal rate: what differs may be the rate alone.
    GeneratorLimited,
    /// Nothing may be compared.
    Invalid,
    /// Nothing is concluded yet: the schedule is not finished.
    Unfinished,
}

/// A cell of a grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GridCell {
    /// Cell.
    pub cell_id: String,
    /// Level of each of the grid's factors.
    pub levels: Vec<u64>,
    /// Arm over baseline; absent where nothing may be compared, and for rates that the generator limited.
    pub ratio: Option<f64>,
    /// Its interval by itself.
    pub interval: Option<(f64, f64)>,
    /// p-value corrected for all cells of all arms that were looked at by this metric (false-discovery rate); absent
    /// where no difference is claimed.
    pub p_value_adjusted: Option<f64>,
    /// What follows.
    pub difference: Difference,
}

/// The geometric mean of the ratios of the cells that have a level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Marginal {
    /// Factor.
    pub factor: GridFactor,
    /// Its level.
    pub level: u64,
    /// Geometric mean of the ratios.
    pub ratio: f64,
    /// Its interval: of these cells, and not of all that could have been asked.
    pub interval: Option<(f64, f64)>,
    /// Cells in it.
    pub cells: u32,
    /// Cells of the level that are not in it, because the generator was the limit there.
    #[serde(default)]
    pub cells_left_out: u32,
    /// Cells in which the difference is known to go the other way.
    pub reversed: Vec<String>,
}

/// What the ratio of a cell has beyond what two factors have by themselves: the largest of all residuals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interaction {
    /// The factors.
    pub factors: (GridFactor, GridFactor),
    /// Their levels where the residual is.
    pub levels: (u64, u64),
    /// The ratio there over the one that follows from each factor by itself.
    pub ratio: f64,
    /// Its interval, which holds for all residuals and all pairs of factors together.
    pub interval: (f64, f64),
    /// p-value of its being one, corrected for all of them.
    pub p_value: f64,
    /// Cells that it is found in.
    pub cells: u32,
}

/// Where a ratio passes one between two numbers of connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Crossing {
    /// A cell on the line, for the levels of the other factors.
    pub cell_id: String,
    /// Connections, between two levels on the scale of logarithms.
    pub connections: f64,
    /// Lower end, absent where the interval reaches below the smallest level.
    pub low: Option<f64>,
    /// Upper end, absent where it reaches beyond the largest.
    pub high: Option<f64>,
    /// What the arm's figure is above the crossing: less, or more.
    pub beyond: Difference,
    /// Cells of the line that it leaves out, because the generator was the limit there.
    #[serde(default)]
    pub cells_left_out: u32,
}
