//! From a histogram to what a report says about a distribution, and back. Pure.

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::histogram_encoding::{HistogramError, add_decoded, base64, decode, histogram_v2};

/// Smallest and largest time a histogram distinguishes, and its digits. Part of the format: only equal ones add up.
pub const HISTOGRAM_NS_MIN: u64 = 1;
/// One hour; longer times count as one hour.
pub const HISTOGRAM_NS_MAX: u64 = 3_600_000_000_000;
/// Significant decimal digits.
pub const HISTOGRAM_DIGITS: u8 = 3;

/// Quantiles of the curve, as far as there are samples for them.
const QUANTILES: [f64; 20] = [
    0.05,
    0.1,
    0.25,
    0.5,
    0.75,
    0.8,
    0.9,
    0.95,
    0.975,
    0.99,
    0.995,
    0.9975,
    0.999,
    0.9995,
    0.9999,
    0.999_95,
    0.999_99,
    0.999_995,
    0.999_999,
    0.999_999_9,
];
/// Samples that must lie above a quantile for it to be more than an anecdote.
const SAMPLES_ABOVE_MIN: f64 = 10.0;

/// An empty histogram with the bounds of the format.
pub fn empty_histogram() -> Histogram<u64> {
    match Histogram::new_with_bounds(HISTOGRAM_NS_MIN, HISTOGRAM_NS_MAX, HISTOGRAM_DIGITS) {
        Ok(histogram) => histogram,
        Err(error) => panic!("the bounds are constants: {error}"),
    }
}

/// A latency distribution: summary, curve, and the histogram itself for lossless merging.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencySummary {
    /// Samples.
    pub count: u64,
    /// Smallest.
    pub ns_min: u64,
    /// Arithmetic mean.
    pub ns_mean: f64,
    /// Standard deviation.
    pub ns_stddev: f64,
    /// Largest.
    pub ns_max: u64,
    /// (quantile 0..1, nanoseconds), rising; a quantile q is present only with at least 10/(1-q) samples.
    pub quantiles: Vec<(f64, u64)>,
    /// HdrHistogram V2 (uncompressed) in base64, bounds 1 ns to 1 h, three significant digits; may be empty.
    pub histogram_v2_base64: String,
}

impl LatencySummary {
    /// Everything a report says about a distribution.
    pub fn from_histogram(histogram: &Histogram<u64>) -> Self {
        if histogram.is_empty() {
            return Self::default();
        }
        let count = histogram.len();
        let shown = QUANTILES.into_iter().filter(|quantile| is_supported(*quantile, count));
        Self {
            count,
            ns_min: histogram.min(),
            ns_mean: histogram.mean(),
            ns_stddev: histogram.stdev(),
            ns_max: histogram.max(),
            quantiles: shown.map(|quantile| (quantile, histogram.value_at_quantile(quantile))).collect(),
            histogram_v2_base64: base64(&histogram_v2(histogram)),
        }
    }

    /// The histogram it was made from, empty where there is none.
    pub fn histogram(&self) -> Result<Histogram<u64>, HistogramError> {
        match self.histogram_v2_base64.as_str() {
            "" => Ok(empty_histogram()),
            text => decode(text),
        }
    }

    /// The value at a quantile that is in the list.
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        self.quantiles.iter().find(|(q, _)| (q - quantile).abs() < 1e-9).map(|(_, ns)| *ns)
    }
}

fn is_supported(quantile: f64, count: u64) -> bool {
    // A hair of slack: 10 / (1 - 0.99) is a little more than 1000 in binary.
    count as f64 * (1.0 - quantile) >= SAMPLES_ABOVE_MIN * (1.0 - 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(values: impl IntoIterator<Item = u64>) -> Histogram<u64> {
        let mut histogram = empty_histogram();
        values.into_iter().for_each(|value| histogram.saturating_record(value));
        histogram
    }

    #[test]
    fn a_quantile_is_shown_with_ten_samples_above_it_and_not_with_nine() {
        let shown = |count| {
            LatencySummary::from_histogram(&filled(1..=count))
                .quantiles
                .iter()
                .map(|(q, _)| *q)
                .collect::<Vec<_>>()
        };
        assert!(shown(1000).contains(&0.99) && !shown(999).contains(&0.99));
        assert!(shown(20).contains(&0.5) && !shown(19).contains(&0.5));
        assert_eq!(shown(10), [] as [f64; 0]);
    }

    #[test]
    fn the_numbers_are_those_of_the_samples_within_three_digits() {
        let summary = LatencySummary::from_histogram(&filled((1..=10_000).map(|step| step * 1000)));
        assert_eq!((summary.count, summary.ns_min), (10_000, 1000));
        assert!(summary.quantiles.is_sorted_by_key(|(quantile, _)| *quantile));
        let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 0.001;
        assert!(near(summary.quantile_ns(0.5).expect("enough samples") as f64, 5e6));
        assert!(near(summary.quantile_ns(0.99).expect("enough samples") as f64, 9.9e6));
        assert!(near(summary.ns_mean, 5_000_500.0) && near(summary.ns_stddev, 2_886_751.0));
    }

    #[test]
    fn nothing_recorded_is_an_empty_summary() {
        assert_eq!(LatencySummary::from_histogram(&empty_histogram()), LatencySummary::default());
        assert_eq!(LatencySummary::default().histogram(), Ok(empty_histogram()));
    }

    #[test]
    fn a_summary_gives_its_histogram_back() {
        let histogram = filled((0..3000_u64).map(|step| step * step * 17));
        assert_eq!(LatencySummary::from_histogram(&histogram).histogram(), Ok(histogram));
    }

    #[test]
    fn parts_added_up_are_the_same_as_the_whole() {
        let values: Vec<u64> = (0..5000_u64).map(|step| step * step * 731 % 90_000_000_000).collect();
        let mut sum = empty_histogram();
        for part in values.chunks(700) {
            sum.add(filled(part.iter().copied())).expect("equal bounds");
        }
        assert_eq!(LatencySummary::from_histogram(&sum), LatencySummary::from_histogram(&filled(values)));
    }

    #[test]
    fn more_than_an_hour_counts_as_an_hour() {
        let summary = LatencySummary::from_histogram(&filled([u64::MAX]));
        assert!((3.6e12..3.61e12).contains(&(summary.ns_max as f64)));
    }
}
