//! Tests whether an effect moved while it was measured. Pure.
//!
//! There are three tests: values follow those before them (lag-1 correlation, one-sided, because alternating values
//! never make an interval too short), the two halves have different means (Student's t), and several stretches have
//! different means (analysis of variance, Fisher 1925). All use ranks (Conover and Iman, "Rank Transformations as a
//! Bridge", The American Statistician 35, 1981), so that heavy tails and skew do not affect them. Each is tested at
//! less than a third of [`ALPHA`] (Bonferroni): independent values show a movement at most once in a hundred times,
//! whatever their tails; in 0.9 % by simulation (tests). The effect of io_uring over epoll in 360 recorded rounds of
//! a closed loop (lag 1: 0.47) is shown to move in all of them, in 55 % of the windows of 48 rounds and in 89 % of
//! those of 96; at one rate, and between equal programs, in none (`weir-judge/tests/interval.rs`).
//!
//! A finding changes no other rule: the interval of [`crate::decide`] allows for movement whether or not it is shown.
//! It means that there is no single effect to which a longer run of the same minutes would converge.

use crate::{decide::ALPHA, long_run, student};

/// Stretches whose means are compared. Odd, so that the probability has a short sum.
const STRETCHES: usize = 5;

/// Probability of a false alarm per test: a little less than a third of [`ALPHA`], because the distributions of ranks
/// are approximations.
const ALPHA_EACH: f64 = 0.9 * ALPHA / 3.0;

/// Quantile of the standard normal distribution at `1 - ALPHA_EACH`.
const NORMAL_QUANTILE: f64 = 2.748;

/// Fewest values in which movement can be shown: a stretch needs at least four values for its test.
pub const UNITS_MIN: usize = 24;

/// How an effect moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Movement {
    /// Lag-1 correlation.
    pub lag_1: f64,
    /// Means of the first and of the second half; a middle value belongs to the second.
    pub halves: (f64, f64),
    /// Whether the lag-1 correlation shows movement.
    pub is_shown_by_lag: bool,
    /// Whether the two halves show movement.
    pub is_shown_by_halves: bool,
    /// Whether the five stretches show movement.
    pub is_shown_by_stretches: bool,
}

/// The movement of values in time order; `None` where none is shown, and below [`UNITS_MIN`] values.
pub fn moves(values: &[f64]) -> Option<Movement> {
    if values.len() < UNITS_MIN || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let (half, ranks) = (values.len() / 2, ranks(values));
    let edge = |place: usize| place * values.len() / STRETCHES;
    let stretches: Vec<&[f64]> = (0..STRETCHES).map(|place| &ranks[edge(place)..edge(place + 1)]).collect();
    let found = Movement {
        lag_1: long_run::lag_1(values)?,
        halves: (mean(&values[..half]), mean(&values[half..])),
        is_shown_by_lag: is_correlated(long_run::lag_1(&ranks)?, values.len()),
        is_shown_by_halves: p_value_of_halves(&ranks[..half], &ranks[half..])? <= ALPHA_EACH,
        is_shown_by_stretches: p_value_of_stretches(&stretches)? <= ALPHA_EACH,
    };
    let is_shown = found.is_shown_by_lag || found.is_shown_by_halves || found.is_shown_by_stretches;
    is_shown.then_some(found)
}

/// Rank of each value in ascending order; ties have the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for alike in order.chunk_by(|one, other| values[*one] == values[*other]) {
        let mean = first as f64 + 0.5 * (alike.len() - 1) as f64;
        alike.iter().for_each(|place| ranks[*place] = mean);
        first += alike.len();
    }
    ranks
}

/// For independent values the correlation has a mean of `-1 / n`, and a variance of `(n - 2)^2 / (n^2 (n - 1))`
/// (Moran, "Some theorems on time series", Biometrika 35, 1948).
fn is_correlated(lag_1: f64, units: usize) -> bool {
    let count = units as f64;
    let deviation = (count - 2.0) / count / (count - 1.0).sqrt();
    lag_1 > NORMAL_QUANTILE * deviation - 1.0 / count
}

/// Two-sided p-value of no difference between the means of both halves.
fn p_value_of_halves(first: &[f64], second: &[f64]) -> Option<f64> {
    let degrees_of_freedom = u32::try_from(first.len() + second.len() - 2).ok()?;
    let variance = (squares(first) + squares(second)) / f64::from(degrees_of_freedom);
    let error = (variance * (1.0 / first.len() as f64 + 1.0 / second.len() as f64)).sqrt();
    student::two_sided((mean(first) - mean(second)) / error, degrees_of_freedom)
}

/// p-value of no difference between the means of all stretches. With an even number of degrees of freedom between them
/// the F distribution is a finite sum (Abramowitz and Stegun, Handbook of Mathematical Functions, 26.6.4).
fn p_value_of_stretches(stretches: &[&[f64]]) -> Option<f64> {
    let units: usize = stretches.iter().map(|it| it.len()).sum();
    let overall = stretches.iter().map(|it| it.iter().sum::<f64>()).sum::<f64>() / units as f64;
    let between: f64 = stretches.iter().map(|it| it.len() as f64 * (mean(it) - overall).powi(2)).sum();
    let within: f64 = stretches.iter().map(|it| squares(it)).sum();
    let share = within / (within + between);
    let half = 0.5 * (units - stretches.len()) as f64;
    let mut term = 1.0;
    let mut sum = 1.0;
    for place in 1..(stretches.len() - 1) / 2 {
        term *= (half + place as f64 - 1.0) / place as f64 * (1.0 - share);
        sum += term;
    }
    Some(share.powf(half) * sum).filter(|it| it.is_finite())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn alarms(units: usize, series: u32, mut next: impl FnMut(usize) -> f64) -> f64 {
        let found = (0..series).filter(|_| moves(&(0..units).map(&mut next).collect::<Vec<_>>()).is_some());
        found.count() as f64 / f64::from(series)
    }

    #[test]
    fn values_that_stand_still_show_movement_at_most_once_in_a_hundred_times() {
        // 10,000 series at 1 %: the standard error is 0.1 points, and 0.02 for the mean of all 24 shares.
        let mut random = Random::seeded(11);
        let mut all = Vec::new();
        for units in [24, 25, 36, 48, 60, 96, 150, 360] {
            let normal = alarms(units, 10_000, |_| random.normal());
            let heavy = alarms(units, 10_000, |_| {
                let tail = if random.uniform() < 0.15 { 4.0 } else { 1.0 };
                tail * random.normal()
            });
            let skewed = alarms(units, 10_000, |_| random.exponential(1.0));
            assert!(
                [normal, heavy, skewed].iter().all(|it| *it <= 0.013),
                "{units}: {normal} {heavy} {skewed}"
            );
            all.extend([normal, heavy, skewed]);
        }
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        assert!(mean <= 0.01, "{mean}");
        assert!(mean > 0.005, "{mean}: a test that never alarms finds nothing");
    }

    #[test]
    fn a_step_a_drift_and_values_that_follow_each_other_are_seen() {
        let mut random = Random::seeded(12);
        let step = alarms(48, 1_000, |place| random.normal() + if place < 24 { 0.0 } else { 1.5 });
        let drift = alarms(48, 1_000, |place| random.normal() + place as f64 / 20.0);
        let mut last = 0.0;
        let mut following = |kept: f64, units: usize| {
            alarms(units, 1_000, |_| {
                last = kept * last + random.normal();
                last
            })
        };
        let (some, much) = (following(0.47, 48), following(0.47, 360));
        assert!(step > 0.9 && drift > 0.7, "{step} {drift}");
        assert!(some > 0.5 && much > 0.999, "{some} {much}");
    }

    #[test]
    fn the_sign_says_what_moved() {
        let steps: Vec<f64> =
            (0..40).map(|place| f64::from(place / 20) + 0.01 * f64::from(place % 3)).collect();
        let found = moves(&steps).expect("it moves");
        assert!(found.is_shown_by_halves && found.is_shown_by_stretches && found.lag_1 > 0.8, "{found:?}");
        assert!(found.halves.0 < 0.02 && found.halves.1 > 1.0, "{found:?}");
    }

    #[test]
    fn the_p_value_of_stretches_is_that_of_the_printed_tables() {
        // F with 4 and 10 degrees of freedom is above 5.99 in 1 of 100 cases, above 3.48 in 5.
        let of = |f: f64| {
            // Five stretches of three: the middle values make the mean squares between them, the others those within.
            let deviation = (f / 3.0 / 2.5).sqrt();
            let stretches: Vec<[f64; 3]> = [-2.0, -1.0, 0.0, 1.0, 2.0]
                .map(|at| [at * deviation - 1.0, at * deviation, at * deviation + 1.0])
                .into();
            p_value_of_stretches(&stretches.iter().map(|it| &it[..]).collect::<Vec<_>>()).expect("finite")
        };
        assert!((of(5.994) - 0.01).abs() < 1e-4, "{}", of(5.994));
        assert!((of(3.478) - 0.05).abs() < 1e-4, "{}", of(3.478));
    }

    #[test]
    fn equal_values_share_a_rank() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, -2.0, 3.0]), [3.0, 1.0, 3.0, 0.0, 3.0]);
        assert_eq!(ranks(&[0.0, -0.0, 1.0]), [0.5, 0.5, 2.0]);
    }

    #[test]
    fn few_values_equal_values_and_nonsense_show_nothing() {
        let steps: Vec<f64> = (0..23).map(f64::from).collect();
        assert_eq!(moves(&steps), None);
        assert_eq!(moves(&[0.5; 40]), None);
        assert_eq!(moves(&[f64::NAN; 40]), None);
        assert_eq!(moves(&[]), None);
    }
}
