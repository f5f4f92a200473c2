//! The mean of a few values with its interval, written without the laboratory's estimator: only the quantile of
//! Student's t comes from the laboratory.

use weir_stats::student;

/// Confidence of the printed intervals.
const CONFIDENCE: f64 = 0.99;

/// A ratio with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
}

impl Ratio {
    /// The geometric mean of log-ratios, one per round. `None` with fewer than two.
    pub fn of(log_ratios: &[f64]) -> Option<Self> {
        let count = log_ratios.len() as f64;
        let mean = mean(log_ratios)?;
        let degrees_of_freedom = u32::try_from(log_ratios.len()).ok()?.checked_sub(1).filter(|it| *it > 0)?;
        let squares: f64 = log_ratios.iter().map(|value| (value - mean) * (value - mean)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        let reach = student::quantile(f64::midpoint(CONFIDENCE, 1.0), degrees_of_freedom)? * error;
        Some(Self { ratio: mean.exp(), low: (mean - reach).exp(), high: (mean + reach).exp() })
    }

    /// Whether two intervals have a value in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// The plain mean; `None` for an empty slice.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_printed_example() {
        // Mean 5, deviation sqrt(32 / 7), t(.995, 7) = 3.499; divided by a hundred on the logarithmic scale.
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].map(|value| value / 100.0);
        let found = Ratio::of(&values).expect("eight values");
        let half = 3.4995 * (32.0_f64 / 7.0 / 8.0).sqrt() / 100.0;
        assert!((found.ratio.ln() - 0.05).abs() < 1e-12);
        assert!((found.high.ln() - 0.05 - half).abs() < 1e-5 && (found.low.ln() - 0.05 + half).abs() < 1e-5);
        assert_eq!(Ratio::of(&[0.1]), None);
        assert_eq!(mean(&[]), None);
    }

    #[test]
    fn intervals_overlap_where_they_share_a_value() {
        let at = |low, high| Ratio { ratio: f64::midpoint(low, high), low, high };
        assert!(at(0.9, 1.0).overlaps(&at(1.0, 1.1)) && at(0.8, 1.2).overlaps(&at(0.9, 1.0)));
        assert!(!at(0.9, 0.99).overlaps(&at(1.0, 1.1)) && !at(1.0, 1.1).overlaps(&at(0.9, 0.99)));
    }
}
