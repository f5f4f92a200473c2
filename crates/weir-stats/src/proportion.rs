//! Wilson's interval of a proportion that was counted.

/// Quantile of the standard normal distribution at 0.995: two-sided intervals at 99 %, as
/// [`ALPHA`](crate::decide::ALPHA) requires.
const Z: f64 = 2.575_829_303_548_900_4;

/// The 99 % interval of a share: `were` of `of` independent cases.
///
/// The score interval (E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", Journal
/// of the American Statistical Association 22, 1927): it stays within 0 and 1, and has a positive length even if none
/// or all were counted. `None` when `of` is zero or `were` exceeds it.
pub fn interval(were: u64, of: u64) -> Option<(f64, f64)> {
    if of == 0 || were > of {
        return None;
    }
    let (count, share) = (of as f64, were as f64 / of as f64);
    let weight = Z * Z / count;
    let middle = share + weight / 2.0;
    let half = Z * ((share * (1.0 - share) + weight / 4.0) / count).sqrt();
    let [low, high] = [middle - half, middle + half].map(|end| end / (1.0 + weight));
    // At the ends the interval reaches these values exactly but for rounding.
    let low = if were == 0 { 0.0 } else { low.clamp(0.0, share) };
    let high = if were == of { 1.0 } else { high.clamp(share, 1.0) };
    Some((low, high))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{decide::ALPHA, student};

    #[test]
    fn it_is_as_wide_as_every_other_interval_here() {
        let normal = student::quantile(1.0 - ALPHA / 2.0, 100_000).expect("a quantile");
        assert!((normal - Z).abs() < 5e-5, "{normal}");
    }

    #[test]
    fn its_ends_are_where_the_test_just_rejects() {
        // By the definition: the shares at which the counted share is Z standard errors away.
        for (were, of) in [(1, 2), (3, 40), (39, 40), (999_990, 1_000_000)] {
            let (low, high) = interval(were, of).expect("possible counts");
            let (count, share) = (of as f64, were as f64 / of as f64);
            for end in [low, high] {
                let errors = (share - end).abs() / (end * (1.0 - end) / count).sqrt();
                assert!((errors - Z).abs() < 1e-6, "{were} of {of}: {end} is {errors} away");
            }
        }
    }

    #[test]
    fn without_a_failure_the_share_is_one_and_not_known_to_be() {
        let (low, high) = interval(1_000_000, 1_000_000).expect("possible counts");
        assert!(high == 1.0 && (1.0 - low) > 6e-6 && (1.0 - low) < 7e-6, "{low}");
        assert_eq!(interval(0, 10).map(|(low, _)| low), Some(0.0));
        assert_eq!([interval(0, 0), interval(2, 1)], [None, None]);
    }

    proptest! {
        #[test]
        fn it_holds_the_share_and_narrows_with_the_count(of in 1_u64..1_000_000_000, part in 0.0..=1.0_f64) {
            let were = (of as f64 * part) as u64;
            let (low, high) = interval(were, of).expect("possible counts");
            let share = were as f64 / of as f64;
            prop_assert!(0.0 <= low && low <= share && share <= high && high <= 1.0 && low < high);
            let (lower, higher) = interval(4 * were, 4 * of).expect("possible counts");
            prop_assert!(higher - lower <= high - low);
        }
    }
}
