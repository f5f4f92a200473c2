//! What was concluded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The words, and none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The arm is better than the baseline: the interval excludes one after correction for several claims.
    #[serde(alias = "faster")]
    Better,
    /// The arm is worse than the baseline, likewise.
    #[serde(alias = "slower")]
    Worse,
    /// The interval lies entirely inside the equivalence margin.
    Equivalent,
    /// The data do not decide.
    Inconclusive,
    /// A validity check failed; the reason is in the estimate.
    NotComparable,
    /// Looked at without a claim: a figure of an exploratory cell, or a condition of another claim.
    #[default]
    NoClaim,
}
