//! Noise floor: how different the baseline looks from itself.

use crate::{
    interval::{RESAMPLES, expanded_tail, resampled_medians},
    order,
    random::Random,
};

/// Pairs of the baseline with itself below which there is no floor: how far the median of so few can lie from zero
/// is a guess. It is also the fewest pairs an interval of full confidence needs.
pub const PAIRS_MIN: usize = 6;

/// 95th percentile of what this estimator says of the baseline against itself, as a positive log-ratio: of the size
/// of medians of `pairs` log-ratios drawn with replacement from those of the baseline's two runs in each block.
///
/// Whatever the two runs differ by is not an effect of any arm. The effect that is held against the floor is a
/// median of `pairs`, so the floor is one too: a single pair scatters about `sqrt(pairs)` times as far, and a floor
/// of single pairs would not fall however long one measured. The signs are those of the pairs, so what all blocks
/// have in common (placement, the order in which things start) raises the floor and does not cancel. The percentile
/// is expanded for few pairs as that of the interval is (`interval::bootstrap_interval`). Assumes that both runs
/// stand at random places in the block. `None` below [`PAIRS_MIN`] pairs, for no `pairs`, or with a value
/// that is not finite.
pub fn noise_floor(log_ratios_self: &[f64], pairs: usize, seed: u64) -> Option<f64> {
    if log_ratios_self.len() < PAIRS_MIN
        || pairs == 0
        || log_ratios_self.iter().any(|value| !value.is_finite())
    {
        return None;
    }
    let mut ordered = log_ratios_self.to_vec();
    ordered.sort_unstable_by(f64::total_cmp);
    let medians = resampled_medians(&ordered, pairs, &mut Random::seeded(seed));
    debug_assert_eq!(medians.len(), RESAMPLES);
    let magnitudes: Vec<f64> = medians.iter().map(|value| value.abs()).collect();
    order::quantile(&magnitudes, 1.0 - 2.0 * expanded_tail(ordered.len())?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_floor_falls_with_the_pairs_and_a_common_shift_does_not_cancel() {
        let pairs: Vec<f64> = (-10..=10).map(|step| f64::from(step) / 100.0).collect();
        let floors = [1, 12, 48].map(|count| noise_floor(&pairs, count, 7).unwrap());
        // A single draw: about the 95th percentile of the sizes themselves.
        assert!((floors[0] - 0.095).abs() < 0.011, "{floors:?}");
        assert!(floors[1] < 0.06 && floors[2] < 0.7 * floors[1], "{floors:?}");
        let shifted: Vec<f64> = pairs.iter().map(|value| value + 0.05).collect();
        assert!(noise_floor(&shifted, 48, 7).unwrap() > 0.06);
    }

    #[test]
    fn there_is_no_floor_of_few_pairs_or_of_what_is_no_number() {
        assert_eq!(noise_floor(&[0.0; 6], 12, 1), Some(0.0));
        assert_eq!(noise_floor(&[0.0; 5], 12, 1), None);
        assert_eq!(noise_floor(&[0.0; 6], 0, 1), None);
        assert_eq!(noise_floor(&[0.0, 0.0, 0.0, 0.0, 0.0, f64::NAN], 12, 1), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn the_floor_lies_within_the_pairs_and_ignores_their_order(
            pairs in prop::collection::vec(-1.0_f64..1.0, 6..40), count in 1_usize..40, seed: u64,
        ) {
            let found = noise_floor(&pairs, count, seed).unwrap();
            let reversed: Vec<f64> = pairs.iter().rev().copied().collect();
            prop_assert_eq!(noise_floor(&reversed, count, seed), Some(found));
            prop_assert!(pairs.iter().any(|value| value.abs() >= found));
        }
    }
}
