//! Geometric mean with its interval, for tables of rates and for ratios over many cells.

use crate::{
    interval::{CONFIDENCE, Interval, Method},
    power::sample_deviation,
    student,
};

/// A geometric mean and where it lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GeometricMean {
    /// `exp(mean of logarithms)`.
    pub mean: f64,
    /// Student interval of that mean, in the unit of the values.
    pub interval: Interval,
}

/// Geometric mean with a 95 % Student interval on the logarithms.
///
/// The only mean of ratios that does not depend on which side is the baseline (Fleming and Wallace, "How Not to
/// Lie with Statistics", CACM 29, 1986). The interval assumes independent, roughly normal logarithms. `None`
/// below two values, when a value is not finite and above zero, or when the interval overflows.
pub fn geometric_mean(values: &[f64]) -> Option<GeometricMean> {
    if values.iter().any(|value| !value.is_finite() || *value <= 0.0) {
        return None;
    }
    let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let deviation = sample_deviation(&logarithms)?;
    let count = values.len() as f64;
    let mean = logarithms.iter().sum::<f64>() / count;
    let degrees_of_freedom = u32::try_from(values.len() - 1).ok()?;
    let half_width =
        student::quantile(0.5 + CONFIDENCE / 2.0, degrees_of_freedom)? * deviation / count.sqrt();
    let (low, high) = ((mean - half_width).exp(), (mean + half_width).exp());
    high.is_finite().then(|| GeometricMean {
        mean: mean.exp(),
        interval: Interval { low, high, confidence: CONFIDENCE, method: Method::StudentT },
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn two_and_eight_have_the_mean_four() {
        let found = geometric_mean(&[2.0, 8.0]).unwrap();
        assert!((found.mean - 4.0).abs() < 1e-12);
        // Deviation ln 4 / sqrt 2, divided by sqrt 2, times t(.975, 1) = 12.7062.
        let half_width = 12.706_204_7 * 2.0_f64.ln();
        assert!(((found.interval.high / 4.0).ln() - half_width).abs() < 1e-5, "{found:?}");
    }

    #[test]
    fn one_value_zero_and_negative_values_have_none() {
        for values in [&[][..], &[1.0], &[1.0, 0.0], &[1.0, -1.0], &[1.0, f64::NAN], &[1.0, f64::INFINITY]] {
            assert_eq!(geometric_mean(values), None);
        }
        assert_eq!(geometric_mean(&[1e-300, 1e300]), None);
        assert!(
            geometric_mean(&[5.0; 3]).unwrap().interval.contains(geometric_mean(&[5.0; 3]).unwrap().mean)
        );
    }

    proptest! {
        #[test]
        fn the_mean_of_inverses_is_the_inverse_of_the_mean(values in prop::collection::vec(0.5_f64..2.0, 2..30)) {
            let found = geometric_mean(&values).unwrap();
            let inverses: Vec<f64> = values.iter().map(|value| 1.0 / value).collect();
            let other = geometric_mean(&inverses).unwrap();
            prop_assert!((other.mean * found.mean - 1.0).abs() < 1e-9);
            prop_assert!((other.interval.low * found.interval.high - 1.0).abs() < 1e-9);
            prop_assert!(found.interval.contains(found.mean));
        }
    }
}
