//! Student's t distribution for a whole number of degrees of freedom: probability and quantile.
//!
//! For whole degrees of freedom the probability is a finite trigonometric sum, which needs no series, no
//! approximation and no gamma function. The cost grows with the degrees of freedom, which never exceed the number of
//! measured pairs.

use std::{f64::consts::FRAC_PI_2, sync::OnceLock};

/// Quantiles are cached below this number of degrees of freedom; studies have tens of rounds.
const KEPT: usize = 256;

/// Cached quantiles of one probability. A map needs the same dozen ten thousand times, and computing one takes some
/// fifty steps.
#[derive(Debug)]
pub struct Quantiles {
    probability: f64,
    kept: [OnceLock<Option<f64>>; KEPT],
}

impl Quantiles {
    /// An empty cache for this probability.
    pub const fn at(probability: f64) -> Self {
        Self { probability, kept: [const { OnceLock::new() }; KEPT] }
    }

    /// Like [`quantile`].
    pub fn of(&self, degrees_of_freedom: u32) -> Option<f64> {
        let find = || quantile(self.probability, degrees_of_freedom);
        match self.kept.get(degrees_of_freedom as usize) {
            Some(kept) => *kept.get_or_init(find),
            None => find(),
        }
    }
}

/// The value below which a t-distributed variable stays with this probability.
///
/// Bisection over the angle `atan(t / sqrt(degrees))`, which is bounded where `t` is not. `None` for zero degrees of
/// freedom, or a probability that is not strictly between 0 and 1.
pub fn quantile(probability: f64, degrees_of_freedom: u32) -> Option<f64> {
    if degrees_of_freedom == 0 || !(probability > 0.0 && probability < 1.0) {
        return None;
    }
    let inside = (2.0 * probability - 1.0).abs();
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    // The midpoint equals one of the ends when the interval contains no further floating-point number.
    loop {
        let angle = 0.5 * (low + high);
        if angle <= low || angle >= high {
            break;
        }
        if probability_inside(angle, degrees_of_freedom) < inside {
            low = angle;
        } else {
            high = angle;
        }
    }
    let magnitude = f64::from(degrees_of_freedom).sqrt() * low.tan();
    Some(if probability < 0.5 { -magnitude } else { magnitude })
}

/// Probability that a t-distributed variable is at least this far from zero, on either side.
///
/// `None` for zero degrees of freedom, or a value that is not a number.
pub fn two_sided(t: f64, degrees_of_freedom: u32) -> Option<f64> {
    if degrees_of_freedom == 0 || t.is_nan() {
        return None;
    }
    let angle = (t.abs() / f64::from(degrees_of_freedom).sqrt()).atan();
    Some((1.0 - probability_inside(angle, degrees_of_freedom)).clamp(0.0, 1.0))
}

/// `P(|T| <= t)` for `t = sqrt(degrees) * tan(angle)`: Abramowitz and Stegun, Handbook of Mathematical Functions,
/// 26.7.3 (odd) and 26.7.4 (even degrees of freedom).
fn probability_inside(angle: f64, degrees_of_freedom: u32) -> f64 {
    let (sine, cosine) = angle.sin_cos();
    let odd = degrees_of_freedom % 2 == 1;
    if degrees_of_freedom == 1 {
        return angle / FRAC_PI_2;
    }
    let mut term = if odd { cosine } else { 1.0 };
    let mut sum = term;
    let mut factor = if odd { 2 } else { 1 };
    while factor + 2 < degrees_of_freedom {
        term *= f64::from(factor) / f64::from(factor + 1) * cosine * cosine;
        sum += term;
        factor += 2;
    }
    if odd { (angle + sine * sum) / FRAC_PI_2 } else { sine * sum }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_two_sided_probability_is_the_quantiles_inverse() {
        for degrees in [1, 2, 5, 11, 40] {
            for probability in [0.6, 0.9, 0.995] {
                let t = quantile(probability, degrees).unwrap();
                for t in [t, -t] {
                    let found = two_sided(t, degrees).unwrap();
                    assert!((found - 2.0 * (1.0 - probability)).abs() < 1e-9, "{degrees} {probability}");
                }
            }
        }
        assert_eq!(two_sided(f64::INFINITY, 3), Some(0.0));
        assert_eq!((two_sided(1.0, 0), two_sided(f64::NAN, 3)), (None, None));
    }

    #[test]
    fn quantiles_are_those_of_the_printed_tables() {
        let table = [
            (1, 0.80, 1.376),
            (1, 0.975, 12.706),
            (2, 0.80, 1.061),
            (2, 0.975, 4.303),
            (3, 0.80, 0.978),
            (3, 0.975, 3.182),
            (4, 0.975, 2.776),
            (5, 0.80, 0.920),
            (5, 0.975, 2.571),
            (11, 0.80, 0.876),
            (11, 0.975, 2.201),
            (23, 0.975, 2.069),
            (30, 0.995, 2.750),
            (60, 0.975, 2.000),
            (120, 0.80, 0.845),
            (120, 0.975, 1.980),
        ];
        for (degrees, probability, expected) in table {
            let found = quantile(probability, degrees).unwrap();
            assert!((found - expected).abs() < 6e-4, "t({probability}, {degrees}) = {found}, not {expected}");
        }
    }

    #[test]
    fn many_degrees_of_freedom_approach_the_normal_quantile() {
        assert!((quantile(0.975, 100_000).unwrap() - 1.959_964).abs() < 5e-5);
    }

    #[test]
    fn impossible_questions_have_no_answer() {
        assert_eq!(quantile(0.5, 0), None);
        for probability in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(quantile(probability, 5), None);
        }
    }

    #[test]
    fn a_quantile_that_was_found_is_the_same_again_and_so_is_one_that_is_not_kept() {
        let quantiles = Quantiles::at(0.995);
        let degrees = || [0, 1, 5, 30, KEPT as u32 - 1, KEPT as u32, 100_000].into_iter();
        for degrees in degrees().chain(degrees()) {
            assert_eq!(quantiles.of(degrees), quantile(0.995, degrees), "{degrees}");
        }
        assert_eq!(quantiles.kept.iter().filter(|kept| kept.get().is_some()).count(), 5);
        assert_eq!(Quantiles::at(f64::NAN).of(5), None);
    }

    proptest! {
        #[test]
        fn quantiles_are_symmetric_and_rise(degrees in 1_u32..200, low in 0.001..0.5_f64, high in 0.5..0.999_f64) {
            let at = |probability| quantile(probability, degrees).unwrap();
            prop_assert!((at(low) + at(1.0 - low)).abs() <= 1e-9 * at(1.0 - low).abs());
            prop_assert!(at(low) <= 0.0 && at(high) >= 0.0);
        }
    }
}
