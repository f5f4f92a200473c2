//! What was concluded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{finding::Finding, metric::Metric};

/// The words, and none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    NoClaim,
}

/// An effect with everything needed to believe or doubt it. Ratios are arm over baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Cell.
    pub cell_id: String,
    /// The arm compared with the baseline.
    pub arm: String,
    /// The baseline.
    pub baseline: String,
    /// What is compared.
    pub metric: Metric,
    /// exp(mean of the units' log-ratios); `None` without a unit.
    pub ratio: Option<f64>,
    /// Interval of the ratio: lower, upper.
    pub interval: Option<(f64, f64)>,
    /// Confidence of the interval.
    pub confidence: f64,
    /// How the interval was made: `student-t`, or `student-t-long-run` where that was wider (studies judged before:
    /// `bootstrap` or `order-statistics`).
    pub interval_method: String,
    /// Two-sided p of the same test.
    pub p_value: Option<f64>,
    /// The same after Holm; present only for claims.
    pub p_value_holm: Option<f64>,
    /// How far the baseline may differ from itself over as many units: the outer end of its interval, as a ratio minus
    /// one.
    pub noise_floor: Option<f64>,
    /// Minimum detectable effect at 80 % power, as a ratio minus one.
    pub detectable_effect: Option<f64>,
    /// Interval of the baseline against itself: lower, upper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_self: Option<(f64, f64)>,
    /// The effect as a difference, where the metric's figures may be zero; the verdict then rests on it, and the ratio
    /// stands beside without an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<DifferenceEffect>,
    /// Figures of the arm and of the baseline: means on the metric's scale over the units that the effect is made of,
    /// so that the first is the second with the effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<(f64, f64)>,
    /// Units used: rounds in which the arms took turns, or pairs of whole trials.
    pub pairs: u32,
    /// Units kept out, counted by reason.
    pub pairs_excluded: Vec<Finding>,
    /// The units' effects in time order, on the metric's scale: logarithms of ratios, or differences. Absent in results
    /// stored before, which are judged again from their trials wherever these are needed.
    #[serde(default)]
    pub effects: Vec<f64>,
    /// The same of the baseline against itself.
    #[serde(default)]
    pub effects_self: Vec<f64>,
    /// The ratio when pairs excluded for noise are included.
    pub ratio_all_pairs: Option<f64>,
    /// The effect in each state of the machine, where both were met often enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_state: Vec<StateEffect>,
    /// The verdict.
    pub verdict: Verdict,
    /// Why there is no verdict, or why the figures alone are not enough for one; empty where they decide.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Finding>,
    /// What else a reader must know.
    pub notes: Vec<Finding>,
}

impl Comparison {
    /// The units' effects as they are shown: ratios, or differences.
    pub fn shown_effects(&self) -> Vec<f64> {
        self.effects.iter().map(|value| self.metric.row().scale.figure(*value)).collect()
    }

    /// The same of the baseline against itself.
    pub fn shown_effects_self(&self) -> Vec<f64> {
        self.effects_self.iter().map(|value| self.metric.row().scale.figure(*value)).collect()
    }
}

/// An effect as a difference, arm less baseline, in the metric's unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DifferenceEffect {
    /// Mean of the units' differences.
    pub difference: f64,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// Interval of the baseline against itself.
    pub interval_self: Option<(f64, f64)>,
    /// How far the baseline may differ from itself, from that interval.
    #[serde(default)]
    pub noise_floor: Option<f64>,
    /// Minimum detectable effect at 80 % power.
    pub detectable_effect: Option<f64>,
}

/// An effect in one state of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateEffect {
    /// The state in which cross-core round trips are long.
    pub is_far: bool,
    /// Units in it.
    pub units: u32,
    /// The ratio.
    pub ratio: f64,
    /// Its interval.
    pub interval: (f64, f64),
}
