//! Paired sign-flip permutation test: could the arm and the baseline be the same thing?

use crate::random::Random;

/// Up to this many pairs all sign patterns are counted (16 384); above, patterns are drawn.
pub const PAIRS_EXACT_MAX: usize = 14;

/// Sign patterns drawn above [`PAIRS_EXACT_MAX`]; the smallest p is then 1 in 20 001.
pub const PATTERNS_DRAWN: u32 = 20_000;

/// Two-sided p-value of the paired sign-flip test on the **mean** log-ratio.
///
/// If arm and baseline do not differ, their random order in the block makes each log-ratio as likely to have come
/// out with the other sign; p is the share of sign patterns whose mean is at least as far from zero as the one
/// seen (Fisher, The Design of Experiments, 1935, section 21). Assumes symmetry around zero under the hypothesis,
/// which the randomised order provides, and nothing about the shape. With B pairs the smallest p is `2 / 2^B`.
///
/// Why the mean, when the effect that is reported is the median: flipping the sign of the smaller half of the
/// values leaves the median of a one-sided sample where it was, so at six pairs a median test cannot get under
/// 0.05 even when all six agree. The mean uses every magnitude and reaches 2/64. A wild pair costs it power,
/// never validity, because the same pair stands in every pattern. The verdict rests on the interval of the
/// median.
///
/// Up to [`PAIRS_EXACT_MAX`] pairs the count is exact. Above, [`PATTERNS_DRAWN`] patterns are drawn from `seed`
/// and the observed one is counted in, `(hits + 1) / (drawn + 1)`, so that p is never zero (Phipson and Smyth,
/// "Permutation P-values Should Never Be Zero", Statistical Applications in Genetics and Molecular Biology 9,
/// 2010). `None` without a pair or with a value that is not finite.
pub fn sign_flip_p_value(log_ratios: &[f64], seed: u64) -> Option<f64> {
    let largest = log_ratios.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    if log_ratios.is_empty() || log_ratios.iter().any(|value| !value.is_finite()) {
        return None;
    }
    if largest == 0.0 {
        return Some(1.0);
    }
    // Only relative size matters; scaling first means that no sum can overflow.
    let magnitudes: Vec<f64> = log_ratios.iter().map(|value| value.abs() / largest).collect();
    let observed = log_ratios.iter().map(|value| value / largest).sum::<f64>().abs();
    // Patterns with the same sum in exact arithmetic must tie here too, whatever the order of addition.
    let threshold = observed - 1e-12 * log_ratios.len() as f64;
    if log_ratios.len() <= PAIRS_EXACT_MAX {
        Some(share_of_all_patterns(&magnitudes, threshold))
    } else {
        Some(share_of_drawn_patterns(&magnitudes, threshold, Random::seeded(seed)))
    }
}

/// Counts every sign pattern. A pattern and its mirror image are equally far from zero, so the first sign stays
/// up.
fn share_of_all_patterns(magnitudes: &[f64], threshold: f64) -> f64 {
    let patterns = 1_u32 << (magnitudes.len() - 1);
    let hits = (0..patterns)
        .filter(|pattern| {
            let sum: f64 = magnitudes[1..]
                .iter()
                .enumerate()
                .map(|(index, magnitude)| signed(*magnitude, pattern >> index & 1 == 1))
                .sum();
            (magnitudes[0] + sum).abs() >= threshold
        })
        .count();
    hits as f64 / f64::from(patterns)
}

fn share_of_drawn_patterns(magnitudes: &[f64], threshold: f64, mut random: Random) -> f64 {
    let mut hits = 1_u32;
    for _ in 0..PATTERNS_DRAWN {
        let mut sum = 0.0;
        for word in magnitudes.chunks(64) {
            let signs = random.next_u64();
            for (index, magnitude) in word.iter().enumerate() {
                sum += signed(*magnitude, signs >> index & 1 == 1);
            }
        }
        hits += u32::from(sum.abs() >= threshold);
    }
    f64::from(hits) / f64::from(PATTERNS_DRAWN + 1)
}

fn signed(magnitude: f64, negative: bool) -> f64 {
    if negative { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pairs_that_all_agree_reach_the_smallest_p_there_is() {
        for pairs in 1..=PAIRS_EXACT_MAX {
            let sample: Vec<f64> = (1..=pairs).map(|value| value as f64).collect();
            assert_eq!(sign_flip_p_value(&sample, 1), Some(2.0 / 2_f64.powi(pairs as i32)));
        }
    }

    #[test]
    fn a_case_counted_by_hand_agrees() {
        // Of the sums ±1 ±2 ±4 the observed 5 = -1 + 2 + 4 is reached by 7, 5, -5 and -7: four of eight patterns.
        assert_eq!(sign_flip_p_value(&[-1.0, 2.0, 4.0], 1), Some(0.5));
        // Equal magnitudes: 4 of 5 up means at least 4 alike, (1 + 5) * 2 of 32 patterns.
        assert_eq!(sign_flip_p_value(&[0.1, 0.1, 0.1, 0.1, -0.1], 1), Some(12.0 / 32.0));
    }

    #[test]
    fn drawn_patterns_agree_with_the_binomial_count() {
        // Sixteen equal magnitudes, 12 up: 2 * (1 + 16 + 120 + 560 + 1820) / 65536 of the patterns are as far
        // out.
        let sample: Vec<f64> = (0..16).map(|index| if index < 12 { 1.0 } else { -1.0 }).collect();
        let expected = 2.0 * 2517.0 / 65536.0;
        let found = sign_flip_p_value(&sample, 11).unwrap();
        // Five standard errors of 20 000 draws.
        assert!((found - expected).abs() < 5.0 * (expected / 20_000.0).sqrt(), "{found} against {expected}");
    }

    #[test]
    fn drawn_patterns_never_reach_zero() {
        // Only 2 of 2^40 patterns are as far out as forty pairs that all agree: none of them is drawn.
        assert_eq!(sign_flip_p_value(&[0.1; 40], 1), Some(1.0 / f64::from(PATTERNS_DRAWN + 1)));
    }

    #[test]
    fn no_difference_at_all_is_no_evidence_and_no_data_has_no_p() {
        assert_eq!(sign_flip_p_value(&[0.0; 8], 1), Some(1.0));
        assert_eq!(sign_flip_p_value(&[0.0; 30], 1), Some(1.0));
        assert_eq!(sign_flip_p_value(&[], 1), None);
        assert_eq!(sign_flip_p_value(&[0.1, f64::NAN], 1), None);
        assert_eq!(sign_flip_p_value(&[f64::MAX; 6], 1), Some(2.0 / 64.0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn p_is_a_probability_above_zero_and_blind_to_sign_order_and_scale(
            sample in prop::collection::vec(-1.0_f64..1.0, 1..20), seed: u64,
        ) {
            let found = sign_flip_p_value(&sample, seed).unwrap();
            prop_assert!(found > 0.0 && found <= 1.0);
            let mirrored: Vec<f64> = sample.iter().map(|value| -value).collect();
            prop_assert_eq!(sign_flip_p_value(&mirrored, seed), Some(found));
            let scaled: Vec<f64> = sample.iter().map(|value| value * 8.0).collect();
            prop_assert_eq!(sign_flip_p_value(&scaled, seed), Some(found));
            if sample.len() <= PAIRS_EXACT_MAX {
                let reversed: Vec<f64> = sample.iter().rev().copied().collect();
                prop_assert_eq!(sign_flip_p_value(&reversed, seed), Some(found));
            }
        }
    }
}
