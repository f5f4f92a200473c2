//! Upper tail of the normal distribution, for corrections that are stated in normal quantiles.

/// Probability that a standard normal variable exceeds `deviate`, for `deviate >= 0`; the error is below 7.5e-8.
///
/// Abramowitz and Stegun, Handbook of Mathematical Functions, 26.2.17. `None` for a negative deviate or one that
/// is not a number; infinity has no tail.
pub fn upper_tail(deviate: f64) -> Option<f64> {
    if deviate.is_nan() || deviate < 0.0 {
        return None;
    }
    let ratio = 1.0 / (1.0 + 0.231_641_9 * deviate);
    let coefficients = [1.330_274_429, -1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_530];
    let series = coefficients.iter().fold(0.0, |sum, coefficient| (sum + coefficient) * ratio);
    let density = (-0.5 * deviate * deviate).exp() / std::f64::consts::TAU.sqrt();
    Some(density * series)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_the_printed_tables() {
        for (deviate, expected) in [
            (0.0, 0.5),
            (0.5, 0.308_537_54),
            (1.0, 0.158_655_25),
            (1.644_853_63, 0.05),
            (1.959_963_98, 0.025),
            (3.0, 0.001_349_90),
            (f64::INFINITY, 0.0),
        ] {
            let found = upper_tail(deviate).unwrap();
            assert!((found - expected).abs() < 1e-7, "{deviate}: {found} instead of {expected}");
        }
    }

    #[test]
    fn the_other_side_and_nonsense_have_no_answer() {
        assert_eq!(upper_tail(-0.1), None);
        assert_eq!(upper_tail(f64::NAN), None);
    }
}
