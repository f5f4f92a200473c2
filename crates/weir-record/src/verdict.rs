//! What was concluded.

use serde::{Deserialize, Serialize};

/// The five words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The arm is better than the baseline by more than the noise floor and the smallest effect.
    Faster,
    /// The arm is worse than the baseline by more than the noise floor and the smallest effect.
    Slower,
    /// The interval lies entirely inside the smallest effect.
    Equivalent,
    /// The data do not decide.
    Inconclusive,
    /// A validity check failed; the reason is in the estimate.
    NotComparable,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// CPU time of the server's processes per message; smaller is better. The headline metric.
    ServerCpuPerMessage,
    /// Non-idle CPU of the whole machine per message; smaller is better.
    MachineCpuPerMessage,
    /// Voluntary context switches of the server's threads per message; smaller is better.
    SwitchesPerMessage,
    /// Verified messages per second; larger is better.
    Throughput,
    /// Median response time at equal offered rate; smaller is better.
    LatencyP50,
    /// 99th percentile of response time at equal offered rate; smaller is better.
    LatencyP99,
}

impl Metric {
    /// Whether a ratio above one is an improvement.
    pub fn larger_is_better(self) -> bool {
        matches!(self, Metric::Throughput)
    }
}

/// An effect with everything needed to believe or doubt it. Ratios are arm over baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Cell.
    pub cell_id: String,
    /// The arm compared with the baseline.
    pub arm: String,
    /// The baseline.
    pub baseline: String,
    /// What is compared.
    pub metric: Metric,
    /// exp(median of paired log-ratios); `None` without a clean pair.
    pub ratio: Option<f64>,
    /// Interval of the ratio: lower, upper.
    pub interval: Option<(f64, f64)>,
    /// Confidence the interval really has (0.969 for six blocks, minimum to maximum).
    pub confidence: f64,
    /// How the interval was made: `bootstrap` or `order-statistics`.
    pub interval_method: String,
    /// Two-sided p of the paired sign-flip test.
    pub p_value: Option<f64>,
    /// The same after Holm; present only for declared cells.
    pub p_value_holm: Option<f64>,
    /// Noise floor: 95th percentile of what a median of as many pairs of the baseline against itself differs from one,
    /// as a ratio minus one.
    pub noise_floor: Option<f64>,
    /// Minimum detectable effect at 80 % power, as a ratio minus one.
    pub detectable_effect: Option<f64>,
    /// Pairs used.
    pub pairs: u32,
    /// Pairs kept out, with reasons counted in words (`2 state changed`).
    pub pairs_excluded: Vec<String>,
    /// Paired ratios, block by block.
    pub ratios: Vec<f64>,
    /// Paired ratios of baseline against itself.
    pub ratios_self: Vec<f64>,
    /// The ratio when pairs set aside for noise are included.
    pub ratio_all_pairs: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
    /// Why it is not comparable, generator-bound, or what else a reader must know.
    pub notes: Vec<String>,
}
