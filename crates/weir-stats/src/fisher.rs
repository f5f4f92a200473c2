//! Fisher's exact test: whether two shares differ by more than chance.

/// Two-sided p-value of Fisher's exact test for `with` of `of` trials against `other_with` of `other_of`. Sums the
/// probabilities, given the margins, of all tables that are at most as likely as this one (R. A. Fisher, "Statistical
/// Methods for Research Workers", 5th edition, 1934, section 21.02). `None` when a count exceeds its number of
/// trials.
pub fn exact_p_value((with, of): (u32, u32), (other_with, other_of): (u32, u32)) -> Option<f64> {
    /// Tables whose probabilities differ by rounding alone are equally likely.
    const ROUNDING: f64 = 1.0 + 1e-7;
    if with > of || other_with > other_of {
        return None;
    }
    let all_with = with + other_with;
    let (least, most) = (all_with.saturating_sub(other_of), all_with.min(of));
    let log = |count: u32| ln_choose(of, count) + ln_choose(other_of, all_with - count);
    let logs: Vec<f64> = (least..=most).map(log).collect();
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logs.iter().map(|log| (log - largest).exp()).collect();
    let own = weights[(with - least) as usize];
    let rarer: f64 = weights.iter().filter(|weight| **weight <= own * ROUNDING).sum();
    Some((rarer / weights.iter().sum::<f64>()).min(1.0))
}

/// Logarithm of the binomial coefficient; the sum is exact enough for realistic numbers of trials.
fn ln_choose(of: u32, count: u32) -> f64 {
    let count = count.min(of - count);
    (0..count).map(|step| (f64::from(of - step) / f64::from(step + 1)).ln()).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_lady_tasting_tea() {
        // Three of four right and one of four wrong: 0.486; all right: 1/70 on either side.
        let p_value = |one, other| exact_p_value(one, other).expect("possible counts");
        assert!((p_value((3, 4), (1, 4)) - 34.0 / 70.0).abs() < 1e-12);
        assert!((p_value((4, 4), (0, 4)) - 2.0 / 70.0).abs() < 1e-12);
        // By whole numbers: the binomial coefficients of every table, added up.
        assert!((p_value((12, 15), (5, 14)) - 0.025_327_687_033_676_143).abs() < 1e-12);
        assert_eq!(p_value((0, 10), (0, 20)), 1.0);
        assert_eq!(exact_p_value((5, 4), (0, 4)), None);
    }

    proptest! {
        #[test]
        fn it_is_a_probability_and_the_same_from_both_sides(
            of in 0_u32..300, other_of in 0_u32..300, share in 0.0..=1.0_f64, other_share in 0.0..=1.0_f64,
        ) {
            let part = |of: u32, share: f64| ((f64::from(of) * share) as u32, of);
            let (one, other) = (part(of, share), part(other_of, other_share));
            let p_value = exact_p_value(one, other).expect("possible counts");
            prop_assert!((0.0..=1.0).contains(&p_value));
            let turned = exact_p_value(other, one).expect("possible counts");
            prop_assert!((p_value - turned).abs() < 1e-9);
        }
    }
}
