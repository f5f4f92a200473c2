//! The quotient of two paired means, with the interval of the test that decides everything else.

use crate::{long_run, student};

/// A quotient with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quotient {
    /// Mean of the first over mean of the second.
    pub ratio: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Pairs.
    pub pairs: usize,
}

/// The quotient of the means of pairs in time order, with confidence `1 - alpha`.
///
/// Fieller's interval (Fieller, "Some problems in interval estimation", Journal of the Royal Statistical Society B
/// 16, 1954): every limit `r` for which the test of the mean of `over - r * under` ([`crate::decide`]) does not
/// exclude zero. With many pairs it is the hull of the intervals from independent and from long-run errors. It
/// divides no single pair. `None` below two pairs, with a value that is not finite, and where the second mean is
/// below zero or not distinguishable from zero at the same alpha: then the quotient is unbounded, or meaningless as a
/// share.
pub fn quotient(pairs: &[(f64, f64)], alpha: f64) -> Option<Quotient> {
    let degrees_of_freedom = u32::try_from(pairs.len().checked_sub(1)?).ok().filter(|it| *it > 0)?;
    let count = pairs.len() as f64;
    let means =
        pairs.iter().fold((0.0, 0.0), |(over, under), pair| (over + pair.0 / count, under + pair.1 / count));
    let (over, under): (Vec<f64>, Vec<f64>) =
        pairs.iter().map(|pair| (pair.0 - means.0, pair.1 - means.1)).unzip();
    let product =
        |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(one, other)| one * other).sum::<f64>();
    let independent = [product(&over, &over), product(&over, &under), product(&under, &under)]
        .map(|sum| sum / (count - 1.0) / count);
    let (low, high) = limits(means, independent, student::quantile(1.0 - alpha / 2.0, degrees_of_freedom)?)?;
    let mut found = Quotient { ratio: means.0 / means.1, low, high, pairs: pairs.len() };
    if let Some(terms) = long_run::terms(pairs.len()) {
        let of = |one: &[f64], other: &[f64]| long_run::covariance(one, other).map(|it| it / count);
        let long_run = [of(&over, &over)?, of(&over, &under)?, of(&under, &under)?];
        let (low, high) = limits(means, long_run, student::quantile(1.0 - alpha / 2.0, terms)?)?;
        (found.low, found.high) = (found.low.min(low), found.high.max(high));
    }
    [found.ratio, found.low, found.high].iter().all(|end| end.is_finite()).then_some(found)
}

/// The limits of a quotient of means, from the variance of the first, their covariance and the variance of the second.
fn limits((over, under): (f64, f64), variances: [f64; 3], critical: f64) -> Option<(f64, f64)> {
    let [oo, ou, uu] = variances.map(|variance| critical * critical * variance);
    // They are the roots of a r^2 - 2 b r + c.
    let (a, b, c) = (under * under - uu, over * under - ou, over * over - oo);
    let root = (b * b - a * c).max(0.0).sqrt();
    (a > 0.0 && under > 0.0).then(|| ((b - root) / a, (b + root) / a))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decide::ALPHA, random::Random};

    #[test]
    fn a_limit_is_where_the_test_of_the_difference_just_fails() {
        let pairs = [(3.0, 8.1), (3.4, 8.0), (2.9, 7.7), (3.3, 8.4), (3.1, 7.9), (3.2, 8.2)];
        let found = quotient(&pairs, ALPHA).expect("the second is far from zero");
        assert!((found.ratio - 18.9 / 48.3).abs() < 1e-12, "{found:?}");
        // Also with many pairs, which drift.
        let drifting: Vec<(f64, f64)> =
            (0..18).map(|place| (3.0 + 0.02 * f64::from(place), 8.0 + 0.1 * f64::from(place % 3))).collect();
        for pairs in [&pairs[..], &drifting[..]] {
            let found = quotient(pairs, ALPHA).expect("the second is far from zero");
            for limit in [found.low, found.high] {
                let differences: Vec<f64> = pairs.iter().map(|(over, under)| over - limit * under).collect();
                let test = crate::decide::estimate(&differences).expect("finite");
                assert!((test.p_value - ALPHA).abs() < 1e-6, "{limit}: {test:?}");
            }
            assert!(found.low < found.ratio && found.ratio < found.high);
        }
    }

    #[test]
    fn what_is_under_the_line_must_be_told_from_zero() {
        let unsure = [(3.0, 1.0), (3.1, -0.8), (3.0, 0.4), (2.9, 0.1)];
        assert_eq!(quotient(&unsure, ALPHA), None);
        let below = [(3.0, -8.0), (3.1, -8.1), (2.9, -8.0)];
        assert_eq!(quotient(&below, ALPHA), None);
        assert_eq!(quotient(&[(1.0, 2.0)], ALPHA), None);
        assert_eq!(quotient(&[], ALPHA), None);
        assert_eq!(quotient(&[(1.0, 2.0), (f64::NAN, 2.0), (1.0, 2.1)], ALPHA), None);
        let equal = quotient(&[(1.0, 2.0); 4], ALPHA).expect("equal pairs have an interval of no length");
        assert_eq!((equal.ratio, equal.low, equal.high), (0.5, 0.5, 0.5));
    }

    #[test]
    fn the_interval_holds_the_quotient_as_often_as_it_says() {
        let mut random = Random::seeded(5);
        let mut missed = 0;
        for _ in 0..2_000 {
            let pairs: Vec<(f64, f64)> = (0..8)
                .map(|_| {
                    let shared = 0.3 * random.normal();
                    (3.0 + shared + 0.2 * random.normal(), 8.0 + shared + 0.5 * random.normal())
                })
                .collect();
            let found = quotient(&pairs, ALPHA).expect("far from zero");
            missed += u32::from(!(found.low..=found.high).contains(&0.375));
        }
        // 20 expected, standard deviation 4.4: four deviations.
        assert!((3..=38).contains(&missed), "{missed} of 2000");
    }
}
