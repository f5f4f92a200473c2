//! Contrasts that a study declares beforehand: whether an arm's ratio at some levels, or in one cell, differs from that
//! at others, or is the same within a margin. They are claims, and share their correction.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;

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
    /// Those that they are compared with: as many combinations of all other levels.
    pub to: Vec<String>,
    /// Equivalence margin of this contrast; that of the study without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equivalence_margin: Option<f64>,
}
