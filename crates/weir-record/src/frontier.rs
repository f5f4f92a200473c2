//! Ways to wait in the plane of misses and CPU: which are on its frontier, and which are ahead of the candidate or
//! behind it on both.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How an arm stands to the study's first arm, the candidate, in one cell.
///
/// Each part is a separate claim under the one rule. One arm is ahead of the other only with both parts, so the joint
/// statement needs no correction beyond theirs (an intersection-union test).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// The candidate has less of one and no more of the other.
    Behind,
    /// The arm has less of one and no more of the other.
    Ahead,
    /// Both differ by less than their margins.
    Level,
    /// Each has less of something.
    TradeOff,
    /// The data do not decide one of them.
    Open,
}

/// An arm in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FrontierRow {
    /// Cell.
    pub cell_id: String,
    /// Arm.
    pub arm: String,
    /// Arms of a family differ in a parameter of their predictor and make one curve.
    pub family: String,
    /// It knows what no thread can know, and shows what is left to gain.
    pub is_oracle: bool,
    /// No other arm but an oracle has less of one and no more of the other, by the medians.
    pub is_on_frontier: bool,
    /// Against the candidate; absent for itself and where nothing is claimed.
    pub standing: Option<Standing>,
}

/// How the family of the study's second arm stands to the candidate in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FrontierAnswer {
    /// Cell.
    pub cell_id: String,
    /// The study's first arm.
    pub candidate: String,
    /// The family.
    pub family: String,
    /// Its arms in the cell, all that follow together.
    pub settings: u32,
    /// Those that the candidate is ahead of.
    pub behind: u32,
    /// Those that are ahead of the candidate.
    pub ahead: u32,
    /// Those for which neither holds, by name and with what is known: level, a trade-off, or open.
    pub others: Vec<(String, Standing)>,
    /// Share of the operations that the candidate leaves to the interrupt there.
    #[serde(default)]
    pub interrupted: f64,
}

impl FrontierAnswer {
    /// Whether the candidate predicts too little there for a statement about predictions: it leaves half of the
    /// operations or more to the interrupt.
    pub fn is_of_interrupts(&self) -> bool {
        self.interrupted >= 0.5
    }
}
