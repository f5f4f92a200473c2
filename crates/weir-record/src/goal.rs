//! What a study asks beside its verdicts: comparisons of two sides that the baseline does not give, goals, and what
//! came of them. A goal is no claim: it takes no part in the correction for several claims and has no verdict.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// A figure of one arm in one cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// Arm.
    pub arm: String,
    /// Cell.
    pub cell_id: String,
    /// What its figure is of.
    pub metric: Metric,
}

/// What is asked of one figure, or of two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonSpec {
    /// What stands above the line.
    pub of: Side,
    /// What stands below it: nothing where the figure itself is meant, one side, or several, of which the best is
    /// meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<Side>,
    /// What it is compared with; absent where it is only looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<Goal>,
    /// Whether the exit code says what came of the goal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_threshold: bool,
}

/// A bound, on the scale of the comparison: of a ratio, of a difference, or in the metric's unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
    /// From the first to the second, both allowed.
    Within(f64, f64),
}

impl Goal {
    /// The smallest and the largest figure that it allows.
    pub fn range(self) -> (f64, f64) {
        match self {
            Self::AtMost(high) => (f64::NEG_INFINITY, high),
            Self::AtLeast(low) => (low, f64::INFINITY),
            Self::Within(low, high) => (low, high),
        }
    }

    /// What an interval says of it: never the figure in its middle.
    pub fn outcome(self, (low, high): (f64, f64)) -> Outcome {
        let (least, most) = self.range();
        match () {
            () if least <= low && high <= most => Outcome::Met,
            () if high < least || most < low => Outcome::Missed,
            () => Outcome::Open,
        }
    }
}

/// What came of a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The whole interval is on its side.
    Met,
    /// The whole interval is beyond it.
    Missed,
    /// Neither is known.
    Open,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_or_missed_by_a_whole_interval_only() {
        let at_most = Goal::AtMost(1.2);
        assert_eq!(at_most.outcome((1.0, 1.2)), Outcome::Met);
        assert_eq!(at_most.outcome((1.1, 1.21)), Outcome::Open);
        assert_eq!(at_most.outcome((1.21, 1.3)), Outcome::Missed);
        assert_eq!(Goal::AtLeast(3.0).outcome((3.0, 9.0)), Outcome::Met);
        assert_eq!(Goal::AtLeast(3.0).outcome((1.0, 2.9)), Outcome::Missed);
        let within = Goal::Within(0.95, 1.05);
        assert_eq!(within.outcome((0.95, 1.05)), Outcome::Met);
        assert_eq!(within.outcome((0.94, 1.0)), Outcome::Open);
        assert_eq!(within.outcome((0.5, 1.5)), Outcome::Open);
        assert_eq!([within.outcome((0.5, 0.9)), within.outcome((1.1, 1.2))], [Outcome::Missed; 2]);
    }

    #[test]
    fn what_is_not_asked_is_not_stored() {
        let of =
            Side { arm: "epoll".to_owned(), cell_id: "c1".to_owned(), metric: Metric::ServerCpuPerMessage };
        let asked =
            ComparisonSpec { of, to: Vec::new(), goal: Some(Goal::Within(0.5, 2.0)), is_threshold: false };
        let text = serde_json::to_string(&asked).expect("it serialises");
        assert!(text.ends_with(r#","goal":{"within":[0.5,2.0]}}"#) && !text.contains("\"to\""), "{text}");
        assert_eq!(serde_json::from_str::<ComparisonSpec>(&text).expect("it is one"), asked);
    }
}
