//! Minimum detectable effect: what the blocks at hand could have missed.

use crate::{
    order::{median, median_of_sorted, sorted},
    student,
};

/// Blocks below which no detectable effect is given: a standard deviation of three values is a guess.
pub const BLOCKS_MIN: usize = 4;

/// Minimum detectable effect of these log-ratios as a ratio minus one, with the sample standard deviation.
///
/// See [`detectable_effect_of`] for the formula. `None` below [`BLOCKS_MIN`] blocks or with a value that is not
/// finite.
pub fn detectable_effect(log_ratios: &[f64]) -> Option<f64> {
    detectable_effect_of(sample_deviation(log_ratios)?, log_ratios.len())
}

/// The same for a verdict that rests on the interval of the median: the deviation counts `sqrt(pi / 2)` times.
///
/// That is how much more the median of normal values scatters than their mean. In simulated studies of 6 to 24
/// blocks the interval of [`crate::interval::paired_interval`] excludes zero in about six of ten at the effect
/// that [`detectable_effect`] prints, and in eight of ten at this one. Assumptions and `None` as there.
pub fn detectable_effect_by_median(log_ratios: &[f64]) -> Option<f64> {
    let deviation = sample_deviation(log_ratios)? * std::f64::consts::FRAC_PI_2.sqrt();
    detectable_effect_of(deviation, log_ratios.len())
}

/// `exp((t.975 + t.80) * deviation / sqrt(blocks)) - 1` with Student quantiles of `blocks - 1` degrees of
/// freedom.
///
/// The smallest ratio a two-sided paired t test at 5 % finds in four of five studies (Cohen, Statistical Power
/// Analysis, 1988, chapter 2, with t in place of normal quantiles for few blocks). Assumes roughly normal
/// log-ratios. `None` below [`BLOCKS_MIN`] blocks, for a deviation that is negative or not a number, and when the
/// result overflows.
pub fn detectable_effect_of(deviation: f64, blocks: usize) -> Option<f64> {
    if blocks < BLOCKS_MIN || !deviation.is_finite() || deviation < 0.0 {
        return None;
    }
    let degrees_of_freedom = u32::try_from(blocks - 1).ok()?;
    let quantiles =
        student::quantile(0.975, degrees_of_freedom)? + student::quantile(0.80, degrees_of_freedom)?;
    let effect = (quantiles * deviation / (blocks as f64).sqrt()).exp_m1();
    effect.is_finite().then_some(effect)
}

/// Standard deviation of the sample (divided by n - 1), by two passes.
///
/// `None` below two values or with a value that is not finite.
pub fn sample_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().map(|value| value / count).sum::<f64>();
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (squares / (count - 1.0)).sqrt();
    deviation.is_finite().then_some(deviation)
}

/// 1.4826 times the median absolute deviation from the median: the standard deviation if the values are normal,
/// unmoved by up to half of them being wild (Rousseeuw and Croux, "Alternatives to the Median Absolute
/// Deviation", JASA 88, 1993).
///
/// Not what [`detectable_effect`] uses: with 6 to 24 blocks it scatters by a sixth to a third, is zero when half
/// the blocks agree, and would promise a small effect exactly where wild blocks make the machine unreliable. It
/// is here to be printed beside the other: a sample deviation many times larger means few blocks carry the noise.
/// `None` below two values or with a value that is not finite.
pub fn robust_deviation(values: &[f64]) -> Option<f64> {
    let ordered = sorted(values)?;
    if ordered.len() < 2 {
        return None;
    }
    let middle = median_of_sorted(&ordered);
    let distances: Vec<f64> = ordered.iter().map(|value| (value - middle).abs()).collect();
    let deviation = 1.4826 * median(&distances)?;
    deviation.is_finite().then_some(deviation)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn twelve_blocks_with_one_percent_noise_detect_about_nine_tenths_of_a_percent() {
        // (2.2010 + 0.8755) * 0.01 / sqrt(12) = 0.008881
        let found = detectable_effect_of(0.01, 12).unwrap();
        assert!((found - 0.008_921).abs() < 2e-6, "{found}");
    }

    #[test]
    fn deviations_are_those_computed_by_hand() {
        // 2 4 4 4 5 5 7 9 has mean 5 and squares 32.
        let sample = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert!((sample_deviation(&sample).unwrap() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        // Distances from 4.5: 0.5 0.5 0.5 0.5 0.5 2.5 2.5 4.5.
        assert!((robust_deviation(&sample).unwrap() - 1.4826 * 0.5).abs() < 1e-12);
    }

    #[test]
    fn one_wild_block_moves_the_sample_deviation_and_not_the_robust_one() {
        let calm = [0.01, -0.01, 0.02, -0.02, 0.0, 0.01, -0.01, 0.015];
        let wild = [0.01, -0.01, 0.02, -0.02, 0.0, 0.01, -0.01, 1.5];
        assert!(sample_deviation(&wild).unwrap() > 20.0 * sample_deviation(&calm).unwrap());
        assert!(robust_deviation(&wild).unwrap() < 1.5 * robust_deviation(&calm).unwrap());
    }

    #[test]
    fn too_few_blocks_and_impossible_deviations_have_no_detectable_effect() {
        assert_eq!(detectable_effect(&[0.01, 0.02, 0.03]), None);
        assert_eq!(detectable_effect(&[0.01; 4]), Some(0.0));
        assert_eq!(detectable_effect(&[0.01, 0.02, 0.03, f64::NAN]), None);
        for deviation in [-1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert_eq!(detectable_effect_of(deviation, 12), None);
        }
        assert_eq!(sample_deviation(&[1.0]), None);
        assert_eq!(robust_deviation(&[1.0]), None);
        assert_eq!(sample_deviation(&[f64::MAX, f64::MIN]), None);
        assert_eq!(robust_deviation(&[f64::MAX, f64::MIN]), None);
    }

    proptest! {
        #[test]
        fn more_blocks_detect_less_and_more_noise_detects_less_well(
            blocks in 4_usize..60, deviation in 1e-4_f64..0.5,
        ) {
            let found = detectable_effect_of(deviation, blocks).unwrap();
            prop_assert!(found > 0.0);
            prop_assert!(detectable_effect_of(deviation, blocks + 1).unwrap() < found);
            prop_assert!(detectable_effect_of(deviation * 1.1, blocks).unwrap() > found);
        }

        #[test]
        fn deviations_ignore_shifts_and_follow_scale(sample in prop::collection::vec(-1.0_f64..1.0, 2..40)) {
            for deviation in [sample_deviation, robust_deviation] {
                let found = deviation(&sample).unwrap();
                let moved: Vec<f64> = sample.iter().map(|value| -3.0 * value + 5.0).collect();
                prop_assert!((deviation(&moved).unwrap() - 3.0 * found).abs() < 1e-9);
            }
        }
    }
}
