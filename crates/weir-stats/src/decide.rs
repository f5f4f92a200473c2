//! From an effect and its limits to a direction. Whether the measurement was valid at all is decided elsewhere.

use crate::interval::{CONFIDENCE, Interval};

/// What the pairs say about the arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The arm is better by more than noise and more than what matters.
    Better,
    /// The arm is worse by more than noise and more than what matters.
    Worse,
    /// Any difference is smaller than what matters.
    Equivalent,
    /// The pairs do not decide.
    Undecided,
}

/// An effect with its interval, both as log-ratios of arm over baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// Median log-ratio.
    pub median: f64,
    /// Interval of that median.
    pub interval: Interval,
}

/// What an effect must exceed, as positive log-ratios: 3 % is `1.03_f64.ln()`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Noise floor of the baseline against itself; without one nothing is decided.
    pub noise_floor: Option<f64>,
    /// Smallest effect that matters.
    pub smallest_effect: f64,
    /// Whether a positive log-ratio is an improvement.
    pub larger_is_better: bool,
}

/// The direction of an effect.
///
/// *Better* and *worse* need an interval that excludes zero and a median beyond both the noise floor and the
/// smallest effect: significant, above what the machine does by itself, and worth mentioning. *Equivalent* needs
/// the whole interval strictly inside the smallest effect, and a noise floor that is not larger than it: the
/// absence of significance is never equality, and a machine that shows such differences by itself cannot prove
/// their absence. With a 95 % interval this is stricter than the usual two one-sided tests, which need 90 %
/// (Schuirmann 1987).
///
/// An interval of less than [`CONFIDENCE`] (five pairs or fewer) or a number that is not finite decides nothing.
pub fn decide(effect: &Effect, limits: &Limits) -> Direction {
    let Some(noise_floor) = limits.noise_floor else {
        return Direction::Undecided;
    };
    let Interval { low, high, confidence, .. } = effect.interval;
    let numbers = [effect.median, low, high, noise_floor, limits.smallest_effect, confidence];
    if numbers.iter().any(|number| !number.is_finite()) || confidence < CONFIDENCE {
        return Direction::Undecided;
    }
    let excludes_zero = low > 0.0 || high < 0.0;
    if excludes_zero && effect.median.abs() > noise_floor.max(limits.smallest_effect) {
        let improved = (effect.median > 0.0) == limits.larger_is_better;
        return if improved { Direction::Better } else { Direction::Worse };
    }
    let inside = -limits.smallest_effect < low && high < limits.smallest_effect;
    if inside && noise_floor <= limits.smallest_effect { Direction::Equivalent } else { Direction::Undecided }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::interval::Method;

    fn effect(low: f64, median: f64, high: f64) -> Effect {
        Effect { median, interval: Interval { low, high, confidence: 0.95, method: Method::Bootstrap } }
    }

    const LIMITS: Limits = Limits { noise_floor: Some(0.02), smallest_effect: 0.03, larger_is_better: true };

    #[test]
    fn a_clear_gain_is_better_and_its_mirror_worse() {
        assert_eq!(decide(&effect(0.04, 0.06, 0.08), &LIMITS), Direction::Better);
        assert_eq!(decide(&effect(-0.08, -0.06, -0.04), &LIMITS), Direction::Worse);
    }

    #[test]
    fn for_a_cost_smaller_is_better() {
        let cost = Limits { larger_is_better: false, ..LIMITS };
        assert_eq!(decide(&effect(-0.08, -0.06, -0.04), &cost), Direction::Better);
        assert_eq!(decide(&effect(0.04, 0.06, 0.08), &cost), Direction::Worse);
    }

    #[test]
    fn an_effect_below_the_floor_or_below_what_matters_is_not_called() {
        let noisy = Limits { noise_floor: Some(0.07), ..LIMITS };
        assert_eq!(decide(&effect(0.04, 0.06, 0.08), &noisy), Direction::Undecided);
        assert_eq!(decide(&effect(0.01, 0.025, 0.04), &LIMITS), Direction::Undecided);
        assert_eq!(decide(&effect(-0.01, 0.06, 0.13), &LIMITS), Direction::Undecided);
    }

    #[test]
    fn equality_must_be_shown_and_a_noisy_machine_cannot_show_it() {
        assert_eq!(decide(&effect(-0.01, 0.001, 0.012), &LIMITS), Direction::Equivalent);
        assert_eq!(decide(&effect(0.005, 0.01, 0.015), &LIMITS), Direction::Equivalent);
        assert_eq!(decide(&effect(-0.01, 0.001, 0.03), &LIMITS), Direction::Undecided);
        let noisy = Limits { noise_floor: Some(0.031), ..LIMITS };
        assert_eq!(decide(&effect(-0.01, 0.001, 0.012), &noisy), Direction::Undecided);
    }

    #[test]
    fn without_a_floor_enough_confidence_or_numbers_nothing_is_decided() {
        let clear = effect(0.04, 0.06, 0.08);
        assert_eq!(decide(&clear, &Limits { noise_floor: None, ..LIMITS }), Direction::Undecided);
        let unsure = Effect { interval: Interval { confidence: 0.9375, ..clear.interval }, ..clear };
        assert_eq!(decide(&unsure, &LIMITS), Direction::Undecided);
        assert_eq!(decide(&effect(f64::NAN, 0.06, 0.08), &LIMITS), Direction::Undecided);
        let endless = Limits { noise_floor: Some(f64::NAN), ..LIMITS };
        assert_eq!(decide(&clear, &endless), Direction::Undecided);
    }

    proptest! {
        #[test]
        fn swapping_arm_and_baseline_swaps_better_and_worse(
            ends in prop::array::uniform3(-0.2_f64..0.2),
            floor in 0.0_f64..0.1,
            smallest in 0.0_f64..0.1,
            larger: bool,
        ) {
            let mut ends = ends;
            ends.sort_by(f64::total_cmp);
            let limits = Limits { noise_floor: Some(floor), smallest_effect: smallest, larger_is_better: larger };
            let forward = decide(&effect(ends[0], ends[1], ends[2]), &limits);
            let expected = match forward {
                Direction::Better => Direction::Worse,
                Direction::Worse => Direction::Better,
                same => same,
            };
            prop_assert_eq!(decide(&effect(-ends[2], -ends[1], -ends[0]), &limits), expected);
        }
    }
}
