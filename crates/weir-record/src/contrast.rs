//! Contrasts that a study declares beforehand: whether an arm's ratio at some levels, or in one cell, differs from that
//! at others, or is the same within a margin. They are claims, and share their correction.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{grid::Difference, metric::Metric};

/// What is asked, cells chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContrastSpec {
    /// The arm.
    pub arm: String,
    /// What it is compared with.
    pub baseline: String,
    /// What their ratio is of.
    pub metric: Metric,
    /// The cells in question.
    pub of: Vec<String>,
    /// Those that they are held against: as many combinations of all other levels.
    pub to: Vec<String>,
    /// Equivalence margin of this contrast; that of the study without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equivalence_margin: Option<f64>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contrast {
    /// What was asked.
    pub asked: ContrastSpec,
    /// Geometric mean of the ratios of the first cells over that of the others; absent where a cell has none that may
    /// be compared.
    pub ratio: Option<f64>,
    /// Its interval by itself.
    pub interval: Option<(f64, f64)>,
    /// Two-sided p of its being one.
    pub p_value: Option<f64>,
    /// The same after Holm, over all claims of the study.
    pub p_value_holm: Option<f64>,
    /// What that comes to: the ratio is smaller at the first levels, or larger, or the same within the margin.
    pub difference: Difference,
}
