//! What `weir doctor` shows: parts of the machine, and how well each is set up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::finding::Finding;

/// One line of `weir doctor`: a part of the machine, and how well it is set up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosis {
    /// Section (`drivers`, `cpus`, `limits`, `noise`, `evidence`).
    pub section: String,
    /// What was looked at.
    pub name: String,
    /// Verdict on it.
    pub state: FindingState,
    /// What was found.
    pub found: Finding,
    /// What would unlock or fix it.
    pub unlock: Option<Finding>,
}

/// How a finding stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingState {
    /// Available, or good.
    Yes,
    /// Available with a limit that matters.
    Limited,
    /// Not available.
    No,
}
