//! Holm's correction for testing several cells at once.

/// p-values adjusted by Holm's step-down procedure, in the order given.
///
/// The k-th smallest of m (from 0) is multiplied by `m - k`, then the values are made monotone and capped at one.
/// Rejecting the tests with an adjusted p-value of at most alpha keeps the probability of any false rejection at
/// alpha, whatever the dependence between the tests: Holm, "A Simple Sequentially Rejective Multiple Test Procedure",
/// Scandinavian Journal of Statistics 6 (1979). `None` when a value is not a probability; an empty family returns an
/// empty list.
pub fn holm(p_values: &[f64]) -> Option<Vec<f64>> {
    if p_values.iter().any(|p_value| !(0.0..=1.0).contains(p_value)) {
        return None;
    }
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|left, right| p_values[*left].total_cmp(&p_values[*right]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut running_maximum = 0.0_f64;
    for (rank, index) in order.into_iter().enumerate() {
        let hypotheses_left = (p_values.len() - rank) as f64;
        running_maximum = running_maximum.max((p_values[index] * hypotheses_left).min(1.0));
        adjusted[index] = running_maximum;
    }
    Some(adjusted)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn adjusted_values_are_those_r_prints() {
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") gives 0.03 0.06 0.06 0.02
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]).unwrap();
        for (found, expected) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - expected).abs() < 1e-12, "{adjusted:?}");
        }
    }

    #[test]
    fn one_test_is_left_as_it_is_and_nonsense_is_refused() {
        assert_eq!(holm(&[0.031]), Some(vec![0.031]));
        assert_eq!(holm(&[]), Some(vec![]));
        for wrong in [-0.1, 1.1, f64::NAN] {
            assert_eq!(holm(&[0.5, wrong]), None);
        }
    }

    proptest! {
        #[test]
        fn adjusting_keeps_the_order_and_lies_between_the_raw_value_and_bonferroni(
            p_values in prop::collection::vec(0.0..=1.0_f64, 1..40),
        ) {
            let adjusted = holm(&p_values).unwrap();
            for (raw, found) in p_values.iter().zip(&adjusted) {
                let bonferroni = (raw * p_values.len() as f64).min(1.0);
                prop_assert!(raw <= found && *found <= bonferroni + 1e-15);
            }
            for (left, right) in (0..p_values.len()).flat_map(|i| (0..i).map(move |j| (i, j))) {
                prop_assert!(p_values[left] > p_values[right] || adjusted[left] <= adjusted[right]);
            }
        }

        #[test]
        fn adjusting_does_not_depend_on_the_order_given(
            mut p_values in prop::collection::vec(0.0..=1.0_f64, 1..40),
        ) {
            let mut forward = holm(&p_values).unwrap();
            p_values.reverse();
            forward.reverse();
            prop_assert_eq!(holm(&p_values).unwrap(), forward);
        }
    }
}
