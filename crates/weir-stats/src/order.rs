//! Order statistics: median, quantiles and the spread of a sample. Not histograms: these are for a few hundred
//! values.

use std::cmp::Ordering;

/// Median with minimum and maximum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

/// Median: the middle value, or the mean of the two middle ones.
///
/// Assumes nothing about the distribution. `None` for an empty sample or one with a value that is not finite.
pub fn median(values: &[f64]) -> Option<f64> {
    sorted(values).map(|ordered| median_of_sorted(&ordered))
}

/// Quantile by linear interpolation between the two nearest order statistics: definition 7 of Hyndman and Fan,
/// "Sample Quantiles in Statistical Packages", The American Statistician 50 (1996); what R and NumPy use.
///
/// With `n` values the position is `(n - 1) * probability`, so 0 is the minimum and 1 the maximum. `None` for an
/// empty sample, a value that is not finite, or a probability outside 0 to 1.
pub fn quantile(values: &[f64], probability: f64) -> Option<f64> {
    if !(0.0..=1.0).contains(&probability) {
        return None;
    }
    sorted(values).map(|ordered| quantile_of_sorted(&ordered, probability))
}

/// Median, smallest and largest value; `None` as for [`median`].
pub fn spread(values: &[f64]) -> Option<Spread> {
    let ordered = sorted(values)?;
    let (min, max) = (*ordered.first()?, *ordered.last()?);
    Some(Spread { median: median_of_sorted(&ordered), min, max })
}

/// `ln(value / baseline)`, the unit of every paired comparison.
///
/// `None` unless both are finite and above zero: a ratio with zero or with a negative value has no logarithm.
pub fn log_ratio(value: f64, baseline: f64) -> Option<f64> {
    let positive = |number: f64| number.is_finite() && number > 0.0;
    // The difference of logarithms cannot overflow where the quotient can.
    (positive(value) && positive(baseline)).then(|| value.ln() - baseline.ln())
}

/// A log-ratio as a ratio minus one: `ln(1.03)` becomes 0.03. Precise for small ones.
pub fn fraction(log_ratio: f64) -> f64 {
    log_ratio.exp_m1()
}

/// The values in ascending order; `None` for an empty sample or one with a value that is not finite.
pub(crate) fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut ordered = values.to_vec();
    ordered.sort_by(f64::total_cmp);
    Some(ordered)
}

/// Median of an ascending, non-empty slice.
pub(crate) fn median_of_sorted(ordered: &[f64]) -> f64 {
    between(ordered[(ordered.len() - 1) / 2], ordered[ordered.len() / 2], 0.5)
}

/// Type 7 quantile of an ascending, non-empty slice; the probability must lie in 0 to 1.
pub(crate) fn quantile_of_sorted(ordered: &[f64], probability: f64) -> f64 {
    let position = (ordered.len() - 1) as f64 * probability;
    let below = (position.floor() as usize).min(ordered.len() - 1);
    let above = (below + 1).min(ordered.len() - 1);
    between(ordered[below], ordered[above], position - below as f64)
}

/// Interpolation that cannot overflow and never leaves the two ends, whatever the rounding.
fn between(low: f64, high: f64, share: f64) -> f64 {
    match low.total_cmp(&high) {
        Ordering::Equal => low,
        _ => (low * (1.0 - share) + high * share).clamp(low, high),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn median_takes_the_middle_or_the_mean_of_the_two_middle_values() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[7.0]), Some(7.0));
    }

    #[test]
    fn quantiles_are_those_r_prints_for_type_seven() {
        // R: quantile(c(1, 2, 4, 8, 16), c(0, .1, .25, .5, .9, 1)) gives 1.0 1.4 2.0 4.0 12.8 16.0
        let sample = [16.0, 1.0, 4.0, 2.0, 8.0];
        for (probability, expected) in
            [(0.0, 1.0), (0.1, 1.4), (0.25, 2.0), (0.5, 4.0), (0.9, 12.8), (1.0, 16.0)]
        {
            let found = quantile(&sample, probability).unwrap();
            assert!((found - expected).abs() < 1e-12, "{probability}: {found} instead of {expected}");
        }
    }

    #[test]
    fn nothing_infinite_values_and_impossible_probabilities_have_no_quantile() {
        for sample in [&[][..], &[f64::NAN], &[1.0, f64::INFINITY]] {
            assert_eq!(median(sample), None);
            assert_eq!(quantile(sample, 0.5), None);
            assert_eq!(spread(sample), None);
        }
        for probability in [-0.1, 1.1, f64::NAN] {
            assert_eq!(quantile(&[1.0, 2.0], probability), None);
        }
    }

    #[test]
    fn the_mean_of_two_huge_middle_values_does_not_overflow() {
        assert_eq!(median(&[f64::MAX, f64::MAX]), Some(f64::MAX));
        assert_eq!(median(&[f64::MIN, f64::MAX]), Some(0.0));
    }

    #[test]
    fn log_ratios_exist_only_between_positive_finite_numbers() {
        assert_eq!(log_ratio(1.0, 1.0), Some(0.0));
        assert!((log_ratio(1.03, 1.0).map(fraction).unwrap() - 0.03).abs() < 1e-12);
        for (value, baseline) in [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (f64::NAN, 1.0), (1.0, f64::INFINITY)]
        {
            assert_eq!(log_ratio(value, baseline), None);
        }
        assert!(log_ratio(f64::MAX, f64::MIN_POSITIVE).unwrap().is_finite());
    }

    proptest! {
        #[test]
        fn quantiles_rise_and_stay_between_the_extremes(
            sample in prop::collection::vec(-1e300_f64..1e300, 1..60), low in 0.0..=1.0_f64, high in 0.0..=1.0_f64,
        ) {
            let (low, high) = (low.min(high), low.max(high));
            let whole = spread(&sample).unwrap();
            let (at_low, at_high) = (quantile(&sample, low).unwrap(), quantile(&sample, high).unwrap());
            prop_assert!(whole.min <= at_low && at_low <= at_high && at_high <= whole.max);
        }

        #[test]
        fn the_median_ignores_order_and_follows_sign(mut sample in prop::collection::vec(-1e9_f64..1e9, 1..60)) {
            let forward = median(&sample).unwrap();
            sample.reverse();
            prop_assert_eq!(median(&sample).unwrap(), forward);
            let mirrored: Vec<f64> = sample.iter().map(|value| -value).collect();
            prop_assert_eq!(median(&mirrored).unwrap(), -forward);
        }
    }
}
