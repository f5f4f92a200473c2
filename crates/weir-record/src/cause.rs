//! Causes as experiments: what part of a difference goes when one switch of an arm is turned back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{figure::PairedRatio, metric::Metric};

/// A switch that an arm has and another, which is the same otherwise, has not.
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
    /// Of which figure.
    pub metric: Metric,
}

/// What a switch accounts for in one cell, on the scale of logarithms, paired by round or block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CauseShare {
    /// What was asked.
    pub asked: CauseSpec,
    /// Cell.
    pub cell_id: String,
    /// The arm over the study's first.
    pub difference: Option<PairedRatio>,
    /// The arm over the one without the switch.
    pub effect: Option<PairedRatio>,
    /// The logarithm of the effect over that of the difference: 1 is all of it, less than nothing works against it.
    /// Absent where there is no difference that can be told from none.
    pub share: Option<PairedRatio>,
}

impl CauseShare {
    /// Whether the switch is a cause: its share is known to be above zero.
    pub fn is_cause(&self) -> bool {
        self.share.and_then(|share| share.interval).is_some_and(|(low, _)| low > 0.0)
    }

    /// Whether the difference is known to be smaller for the switch.
    pub fn works_against(&self) -> bool {
        self.share.and_then(|share| share.interval).is_some_and(|(_, high)| high < 0.0)
    }
}
