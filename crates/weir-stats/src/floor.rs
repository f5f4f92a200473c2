//! Noise floor: how different the baseline looks from itself.

use crate::order;

/// Pairs of the baseline with itself below which there is no floor: a 95th percentile of three values is a guess.
pub const PAIRS_MIN: usize = 4;

/// 95th percentile (type 7) of |log-ratio| of the baseline against itself, as a log-ratio.
///
/// Each block runs the baseline twice; whatever those two differ by is not an effect of any arm. Assumes that
/// both runs stand at random places in the block. An effect inside the floor gets no verdict, however narrow its
/// interval: the floor also holds what is common to many blocks, such as placement. `None` below [`PAIRS_MIN`]
/// pairs or with a value that is not finite.
pub fn noise_floor(log_ratios_self: &[f64]) -> Option<f64> {
    if log_ratios_self.len() < PAIRS_MIN {
        return None;
    }
    let magnitudes: Vec<f64> = log_ratios_self.iter().map(|value| value.abs()).collect();
    order::quantile(&magnitudes, 0.95)
}

/// The floor over several neighbouring cells, each pair counting once.
///
/// One cell of six blocks says little about a 95th percentile; neighbours share the machine and the hour. Assumes
/// that their noise is alike: pool cells of like connection counts, not a latency cell with a throughput cell.
pub fn noise_floor_pooled(cells: &[&[f64]]) -> Option<f64> {
    noise_floor(&cells.concat())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_floor_is_near_the_largest_of_a_few_pairs() {
        let pairs: Vec<f64> = (1..=21).map(|step| f64::from(step) / 100.0).collect();
        assert!((noise_floor(&pairs).unwrap() - 0.20).abs() < 1e-12);
        assert_eq!(noise_floor(&[0.0; 6]), Some(0.0));
    }

    #[test]
    fn cells_with_too_few_pairs_have_a_floor_only_together() {
        let (one, other) = ([0.01, -0.02], [0.03, -0.01, 0.0]);
        assert_eq!(noise_floor(&one), None);
        assert_eq!(noise_floor_pooled(&[&one]), None);
        assert_eq!(noise_floor_pooled(&[&one, &other]), noise_floor(&[0.01, -0.02, 0.03, -0.01, 0.0]));
        assert_eq!(noise_floor_pooled(&[]), None);
        assert_eq!(noise_floor(&[0.0, 0.0, 0.0, f64::NAN]), None);
    }

    proptest! {
        #[test]
        fn the_floor_ignores_which_run_came_first(pairs in prop::collection::vec(-1.0_f64..1.0, 4..40)) {
            let found = noise_floor(&pairs).unwrap();
            let swapped: Vec<f64> = pairs.iter().map(|value| -value).collect();
            prop_assert_eq!(noise_floor(&swapped), Some(found));
            prop_assert!(pairs.iter().any(|value| value.abs() >= found));
        }
    }
}
