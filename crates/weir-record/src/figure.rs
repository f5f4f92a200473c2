//! Figures, each with the interval or the range that shows how far it can be trusted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A figure with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// The figure.
    pub value: f64,
    /// Its ends; absent where there are too few rounds or blocks for any.
    pub interval: Option<(f64, f64)>,
}

/// A paired ratio with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairedRatio {
    /// exp(mean of paired log-ratios), by the rule of every estimate.
    pub ratio: f64,
    /// Lower and upper end.
    pub interval: Option<(f64, f64)>,
    /// Pairs used.
    pub pairs: u32,
}

/// Median with minimum and maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}
