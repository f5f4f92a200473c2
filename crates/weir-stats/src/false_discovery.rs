//! Correction for testing many cells: controls the false discovery rate, the expected share of false ones among the
//! called differences.

/// p-values adjusted by the step-up procedure of Benjamini and Hochberg, in the order given.
///
/// The k-th smallest of m (from 1) is multiplied by `m / k`, then the values are made monotone and capped at one.
/// Calling the differences with an adjusted p-value of at most `q` keeps the false discovery rate at `q`, for tests
/// that are independent or positively dependent, as tests of cells with a common baseline are: Benjamini and
/// Hochberg, "Controlling the False Discovery Rate", Journal of the Royal Statistical Society B 57 (1995); Benjamini
/// and Yekutieli, "The Control of the False Discovery Rate in Multiple Testing under Dependency", Annals of
/// Statistics 29 (2001). `None` when a value is not a probability; an empty family returns an empty list.
pub fn benjamini_hochberg(p_values: &[f64]) -> Option<Vec<f64>> {
    if p_values.iter().any(|p_value| !(0.0..=1.0).contains(p_value)) {
        return None;
    }
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|left, right| p_values[*left].total_cmp(&p_values[*right]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut running_minimum = 1.0_f64;
    for (rank, index) in order.into_iter().enumerate().rev() {
        let factor = p_values.len() as f64 / (rank + 1) as f64;
        running_minimum = running_minimum.min(p_values[index] * factor);
        adjusted[index] = running_minimum;
    }
    Some(adjusted)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::holm::holm;

    #[test]
    fn adjusted_values_are_those_r_prints() {
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "BH") gives 0.02 0.04 0.04 0.02
        let adjusted = benjamini_hochberg(&[0.01, 0.04, 0.03, 0.005]).expect("they are probabilities");
        for (found, expected) in adjusted.iter().zip([0.02, 0.04, 0.04, 0.02]) {
            assert!((found - expected).abs() < 1e-12, "{adjusted:?}");
        }
    }

    #[test]
    fn one_test_is_left_as_it_is_and_nonsense_is_refused() {
        assert_eq!(benjamini_hochberg(&[0.031]), Some(vec![0.031]));
        assert_eq!(benjamini_hochberg(&[]), Some(vec![]));
        for wrong in [-0.1, 1.1, f64::NAN] {
            assert_eq!(benjamini_hochberg(&[0.5, wrong]), None);
        }
    }

    proptest! {
        #[test]
        fn adjusting_keeps_the_order_and_is_never_stricter_than_holm(
            p_values in prop::collection::vec(0.0..=1.0_f64, 1..40),
        ) {
            let adjusted = benjamini_hochberg(&p_values).expect("they are probabilities");
            let strict = holm(&p_values).expect("they are probabilities");
            for ((raw, found), strict) in p_values.iter().zip(&adjusted).zip(&strict) {
                prop_assert!(raw <= found && *found <= strict + 1e-12);
            }
            for (left, right) in (0..p_values.len()).flat_map(|i| (0..i).map(move |j| (i, j))) {
                prop_assert!(p_values[left] > p_values[right] || adjusted[left] <= adjusted[right] + 1e-15);
            }
        }
    }
}
