//! The decision rule that every comparison uses: a two-sided t test of the mean at [`ALPHA`], and the confidence
//! interval of the same test.
//!
//! A value is the log-ratio of one *unit*. A unit is a round of fresh processes ([`crate::round`], so that the heavy
//! tails of single slices do not reach it) or a block of whole trials. **Values come in time order.** Whether the
//! measurement was valid at all is decided elsewhere.
//!
//! An effect may move while it is measured: the cost of two programs depends on what the machine does, and rounds
//! close in time are alike. The rule never assumes independent values. From [`long_run::UNITS_MIN`] values on it
//! computes two standard errors, the independent one and the long-run one, and uses the wider interval. The p-value
//! is the larger of the two, which is the level at which this interval just reaches zero. With fewer values only the
//! independent error exists, and movement goes unnoticed. Neither error includes what moves between runs.
//!
//! Because the interval and the test are the same, *faster* is printed exactly when the interval excludes one, before
//! a correction for several claims. The rule tests the mean, not the median. The mean has an interval without steps
//! even for few values (order statistics of six values reach at most 97 %), and the same method works at every number
//! of values.

use crate::{
    long_run,
    student::{self, Quantiles},
};

/// Probability of a false positive (calling a difference where there is none), for one claim.
pub const ALPHA: f64 = 0.01;

/// Power at which a detectable effect is printed.
pub const POWER: f64 = 0.8;

static OF_INTERVALS: Quantiles = Quantiles::at(1.0 - ALPHA / 2.0);
static OF_POWER: Quantiles = Quantiles::at(POWER);

/// Fewest units that decide anything. With fewer the deviation itself is a guess.
pub const UNITS_MIN: usize = 6;

/// Which standard error an interval rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// The independent standard error.
    #[default]
    Independent,
    /// The long-run standard error, where it was the wider one. For a sum: one of its parts uses it.
    LongRun,
}

/// The mean of log-ratios in time order, with its interval and test.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Mean log-ratio.
    pub mean: f64,
    /// Lower end of the interval with confidence `1 - ALPHA`.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Two-sided p-value of a mean of zero.
    pub p_value: f64,
    /// Smallest log-ratio, as a positive number, that this test finds with probability [`POWER`].
    pub detectable: f64,
    /// Number of values.
    pub units: usize,
    /// Standard error that the interval rests on.
    pub error: f64,
    /// Its degrees of freedom.
    pub degrees_of_freedom: u32,
    /// Which standard error was used.
    pub method: Method,
    /// Lag-1 autocorrelation; absent for a sum, for fewer than three values and for equal values.
    pub lag_1: Option<f64>,
}

/// Estimates the mean of log-ratios in time order.
///
/// Student's t (Student, "The Probable Error of a Mean", Biometrika 6, 1908) with the wider of two standard errors
/// (module documentation), and for the detectable effect `(t(1 - alpha/2) + t(power)) * error` (Cohen, Statistical
/// Power Analysis, 1988, chapter 2, with t in place of normal quantiles). Assumes that the mean is roughly normal.
/// `None` below two values, or with one that is not finite. Equal values give an interval of length zero.
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    estimate_at(values, ALPHA)
}

/// Like [`estimate`], with confidence `1 - alpha`: for several intervals that must hold together.
pub fn estimate_at(values: &[f64], alpha: f64) -> Option<Estimate> {
    let count = values.len() as f64;
    let error = sample_deviation(values)? / count.sqrt();
    let mean = mean(values);
    let independent = of_mean(mean, error, u32::try_from(values.len() - 1).ok()?, values.len(), alpha)?;
    let residuals: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let long_run = long_run::terms(values.len()).zip(long_run::variance(&residuals));
    let long_run = long_run.and_then(|(terms, variance)| {
        let found = of_mean(mean, (variance / count).sqrt(), terms, values.len(), alpha)?;
        Some(Estimate { method: Method::LongRun, ..found })
    });
    let p_value = long_run.map_or(0.0, |it| it.p_value).max(independent.p_value);
    let wider = long_run.filter(|it| it.half_width() > independent.half_width()).unwrap_or(independent);
    Some(Estimate { p_value, lag_1: long_run::lag_1(values), ..wider })
}

/// Estimates by how much the mean of one set of values exceeds the mean of another unpaired set, with confidence `1 -
/// alpha`.
///
/// Welch's t (Welch, "The generalization of Student's problem when several different population variances are
/// involved", Biometrika 34, 1947), as the [`weighted_sum`] of both. `None` below two values on either side.
pub fn estimate_unpaired(of: &[f64], to: &[f64], alpha: f64) -> Option<Estimate> {
    weighted_sum([(1.0, estimate_at(of, alpha)?), (-1.0, estimate_at(to, alpha)?)], alpha)
}

/// The mean of several estimates that share no values. `None` for an empty list.
pub fn mean_of(estimates: &[Estimate]) -> Option<Estimate> {
    let weight = 1.0 / estimates.len() as f64;
    weighted_sum(estimates.iter().map(|it| (weight, *it)), ALPHA)
}

/// A weighted sum of estimates that share no values, with confidence `1 - alpha`. Every question about several cells
/// uses it.
///
/// Each term has the standard error that [`estimate_at`] found; the sum has degrees of freedom by Welch and
/// Satterthwaite, rounded down. `None` for an empty list, or where something is not finite. The number of units is
/// the smallest among the terms.
pub fn weighted_sum(terms: impl IntoIterator<Item = (f64, Estimate)>, alpha: f64) -> Option<Estimate> {
    let (mut sum, mut parts, mut units) = (0.0, Vec::new(), usize::MAX);
    for (weight, estimate) in terms {
        sum += weight * estimate.mean;
        parts.push(estimate.part(weight));
        units = units.min(estimate.units);
    }
    if parts.is_empty() { None } else { of_sum(sum, &parts, units, alpha) }
}

/// An independent part of a sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// Square of its standard error.
    pub variance: f64,
    /// Degrees of freedom of that error.
    pub degrees_of_freedom: f64,
    /// How the error was made.
    pub method: Method,
}

impl Part {
    /// A part from the residuals of a mean's values in time order, scaled so that their squares add up to the square
    /// of the independent standard error, and its degrees of freedom. It uses the wider of both errors, like
    /// [`estimate`].
    pub fn of_residuals(residuals: &[f64], degrees_of_freedom: f64) -> Self {
        let independent = Self {
            variance: residuals.iter().map(|it| it.powi(2)).sum(),
            degrees_of_freedom,
            method: Method::Independent,
        };
        let terms = long_run::terms(residuals.len()).map(f64::from);
        let long_run = terms.zip(long_run::variance(residuals)).map(|(terms, variance)| Self {
            variance: variance * (residuals.len() - 1) as f64,
            degrees_of_freedom: terms.min(degrees_of_freedom),
            method: Method::LongRun,
        });
        let width = |part: &Self| reach(part.degrees_of_freedom as u32).unwrap_or(0.0) * part.variance.sqrt();
        long_run.filter(|it| width(it) > width(&independent)).unwrap_or(independent)
    }
}

/// Estimates a sum of independent parts from its value and its parts, with confidence `1 - alpha`.
///
/// Degrees of freedom by Welch and Satterthwaite, rounded down. `None` where something is not finite.
pub fn of_sum(sum: f64, parts: &[Part], units: usize, alpha: f64) -> Option<Estimate> {
    let variance: f64 = parts.iter().map(|it| it.variance).sum();
    let weight: f64 = parts.iter().map(|it| it.variance.powi(2) / it.degrees_of_freedom).sum();
    // Parts without deviation have no weight. The small addend keeps a rounding error from rounding a whole number
    // down.
    let degrees_of_freedom = if weight > 0.0 { variance.powi(2) / weight + 1e-6 } else { 1.0 };
    let found = of_mean(sum, variance.sqrt(), degrees_of_freedom.max(1.0) as u32, units, alpha)?;
    let is_long_run = parts.iter().any(|it| it.method == Method::LongRun);
    Some(Estimate { method: if is_long_run { Method::LongRun } else { Method::Independent }, ..found })
}

/// Smallest log-ratio, as a positive number, that [`estimate`] of `units` values would find with probability
/// [`POWER`], if they scatter like earlier values within each of several sets.
///
/// The deviation is pooled over the sets, each around its own mean, so that it excludes movement between sets. It
/// uses the standard error by which [`estimate`] would have decided each set: if the values of one set moved, the
/// planned values will too. `None` without a set of two values, and below two planned values.
pub fn expected_detectable(earlier: &[Vec<f64>], units: u32) -> Option<f64> {
    let (mut squares, mut weights, mut method) = (0.0, 0.0, Method::Independent);
    for values in earlier.iter().filter(|values| values.len() > 1) {
        let own = estimate(values)?;
        let weight = (values.len() - 1) as f64;
        squares += own.error.powi(2) * values.len() as f64 * weight;
        weights += weight;
        if own.method == Method::LongRun {
            method = Method::LongRun;
        }
    }
    let error = (squares / weights / f64::from(units)).sqrt();
    let independent = units.checked_sub(1)?;
    let degrees_of_freedom = match method {
        Method::Independent => independent,
        Method::LongRun => long_run::terms(units as usize).unwrap_or(independent),
    };
    let estimate = of_mean(0.0, error, degrees_of_freedom, units as usize, ALPHA)?;
    Some(estimate.detectable).filter(|found| found.is_finite())
}

impl Estimate {
    /// This estimate as a part of a sum, with this weight.
    pub fn part(&self, weight: f64) -> Part {
        Part {
            variance: (weight * self.error).powi(2),
            degrees_of_freedom: f64::from(self.degrees_of_freedom),
            method: self.method,
        }
    }

    fn half_width(&self) -> f64 {
        0.5 * (self.high - self.low)
    }
}

/// Half-width of an interval with confidence `1 - ALPHA`, in standard errors.
pub fn reach(degrees_of_freedom: u32) -> Option<f64> {
    OF_INTERVALS.of(degrees_of_freedom)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().map(|value| value / values.len() as f64).sum()
}

/// An estimate from a mean and its standard error.
fn of_mean(mean: f64, error: f64, degrees_of_freedom: u32, units: usize, alpha: f64) -> Option<Estimate> {
    let is_usual = alpha.to_bits() == ALPHA.to_bits();
    let reach = if is_usual {
        reach(degrees_of_freedom)
    } else {
        student::quantile(1.0 - alpha / 2.0, degrees_of_freedom)
    };
    let half = reach? * error;
    let p_value = match (error > 0.0, mean == 0.0) {
        (true, _) => student::two_sided(mean / error, degrees_of_freedom)?,
        (false, true) => 1.0,
        (false, false) => 0.0,
    };
    let detectable = half + OF_POWER.of(degrees_of_freedom)? * error;
    let (low, high) = (mean - half, mean + half);
    [mean, low, high].iter().all(|end| end.is_finite()).then_some(Estimate {
        mean,
        low,
        high,
        p_value,
        detectable,
        units,
        error,
        degrees_of_freedom,
        ..Estimate::default()
    })
}

/// The result of the units for the arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The arm is better.
    Better,
    /// The arm is worse.
    Worse,
    /// Any difference is smaller than what matters.
    Equivalent,
    /// The units do not decide.
    Undecided,
}

/// How an estimate is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// The p-value after correction for several claims; the estimate's own where there is one claim.
    pub p_value: f64,
    /// Equivalence margin as a positive log-ratio: `1.01_f64.ln()` for 1 %.
    pub margin: f64,
    /// Whether a positive log-ratio is an improvement.
    pub larger_is_better: bool,
}

/// Decides the direction of an effect.
///
/// *Equivalent* needs the whole interval strictly inside the margin, whatever the test says: a known difference that
/// is too small to matter is no reason to choose. This is stricter than two one-sided tests at the same alpha, which
/// need an interval of `1 - 2 alpha` (Schuirmann 1987). *Better* and *worse* need a corrected p-value of at most
/// [`ALPHA`]. Fewer than [`UNITS_MIN`] units decide nothing.
pub fn decide(estimate: &Estimate, reading: &Reading) -> Direction {
    let Estimate { mean, low, high, units, .. } = *estimate;
    if units < UNITS_MIN {
        return Direction::Undecided;
    }
    if -reading.margin < low && high < reading.margin {
        return Direction::Equivalent;
    }
    if reading.p_value > ALPHA || mean == 0.0 {
        return Direction::Undecided;
    }
    if (mean > 0.0) == reading.larger_is_better { Direction::Better } else { Direction::Worse }
}

/// Whether a second figure of the same comparison contradicts a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bearing {
    /// The whole interval excludes a worsening by the margin or more.
    Supports,
    /// It could be worse by the margin or more.
    Uncertain,
    /// The whole interval lies beyond the margin on the worse side.
    Contradicts,
}

/// Whether `other` supports a claim that the arm is better, worse or equivalent. Both are log-ratios of costs or both
/// of gains; `claimed` is the direction of the claim on that scale: negative, positive, or zero for equivalence.
///
/// This is a test of non-inferiority: the claim stands only if the other figure is known not to go the other way by
/// more than the margin. For a claim of equivalence both directions count as the other way, so the whole interval
/// must lie inside the margin. An interval that merely includes one is not enough, because a wide one always does.
pub fn bearing(claimed: f64, other: &Estimate, margin: f64) -> Bearing {
    let (worst, best) = match claimed.partial_cmp(&0.0) {
        Some(std::cmp::Ordering::Less) => (other.high, other.low),
        Some(std::cmp::Ordering::Greater) => (-other.low, -other.high),
        _ => (other.high.max(-other.low), other.low.max(-other.high)),
    };
    match (worst < margin, best > margin) {
        (true, _) => Bearing::Supports,
        (false, true) => Bearing::Contradicts,
        (false, false) => Bearing::Uncertain,
    }
}

/// Standard deviation of the sample (divided by n - 1), by two passes.
///
/// `None` below two values or with a value that is not finite.
fn sample_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().map(|value| value / count).sum::<f64>();
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (squares / (count - 1.0)).sqrt();
    deviation.is_finite().then_some(deviation)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::random::Random;

    const MARGIN: f64 = 0.01;

    fn read(values: &[f64]) -> Direction {
        let estimate = estimate(values).expect("finite values");
        let reading = Reading { p_value: estimate.p_value, margin: MARGIN, larger_is_better: true };
        decide(&estimate, &reading)
    }

    #[test]
    fn the_interval_is_that_of_the_printed_example() {
        // Mean 5, deviation sqrt(32 / 7), t(.995, 7) = 3.499.
        let found = estimate(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).expect("finite");
        let half = 3.4995 * (32.0_f64 / 7.0 / 8.0).sqrt();
        assert!((found.mean - 5.0).abs() < 1e-12);
        assert!((found.high - 5.0 - half).abs() < 1e-3, "{found:?}");
        assert!((found.low + found.high - 10.0).abs() < 1e-9);
    }

    #[test]
    fn the_mean_of_estimates_has_the_error_of_all_of_them() {
        // Standard errors 1 and 2 with 3 and 7 degrees of freedom: 25 / (1 / 3 + 16 / 7) = 9.5, rounded down to 9.
        let with = |mean: f64, error: f64, units: usize| {
            let degrees_of_freedom = units as u32 - 1;
            Estimate { mean, units, error, degrees_of_freedom, ..Estimate::default() }
        };
        let found = mean_of(&[with(3.0, 1.0, 4), with(5.0, 2.0, 8)]).expect("there are two");
        let half = student::quantile(1.0 - ALPHA / 2.0, 9).expect("there is one") * 5.0_f64.sqrt() / 2.0;
        assert!((found.mean - 4.0).abs() < 1e-12 && (found.high - 4.0 - half).abs() < 1e-9, "{found:?}");
        assert_eq!((found.units, mean_of(&[])), (4, None));
        let exact = mean_of(&[with(1.0, 0.0, 6), with(3.0, 0.0, 6)]).expect("values that do not differ");
        assert_eq!((exact.low, exact.high), (2.0, 2.0));
    }

    #[test]
    fn clear_differences_are_called_and_their_mirror_too() {
        let values = [0.05, 0.06, 0.055, 0.045, 0.05, 0.058];
        assert_eq!(read(&values), Direction::Better);
        assert_eq!(read(&values.map(|value| -value)), Direction::Worse);
        assert_eq!(read(&values[..5]), Direction::Undecided, "five units decide nothing");
    }

    #[test]
    fn two_sets_without_pairs_are_compared_by_welchs_t() {
        // Means 5 and 8, variances of the means 0.5 and 1: t has 1.5^2 / (0.25 / 4 + 1 / 5) = 8.57 degrees of freedom,
        // rounded down to 8, whose quantile at 0.995 is 3.3554.
        let spread = |center: f64, deviation: f64, count: usize| -> Vec<f64> {
            let raw: Vec<f64> = (0..count).map(|place| place as f64).collect();
            let scale = deviation / sample_deviation(&raw).expect("finite");
            raw.iter().map(|value| center + (value - (count - 1) as f64 / 2.0) * scale).collect()
        };
        let (of, to) = (spread(5.0, 2.5_f64.sqrt(), 5), spread(8.0, 6.0_f64.sqrt(), 6));
        let found = estimate_unpaired(&of, &to, ALPHA).expect("finite");
        let half = 3.3554 * 1.5_f64.sqrt();
        assert!((found.mean + 3.0).abs() < 1e-9 && found.units == 5, "{found:?}");
        assert!((found.low + 3.0 + half).abs() < 1e-3 && (found.high + 3.0 - half).abs() < 1e-3, "{found:?}");
        let back = estimate_unpaired(&to, &of, ALPHA).expect("finite");
        assert!((back.low + found.high).abs() < 1e-9);
        assert_eq!(estimate_unpaired(&[1.0], &to, ALPHA), None);
        let equal = estimate_unpaired(&[2.0; 8], &[1.0; 4], ALPHA).expect("finite");
        assert_eq!((equal.low, equal.high, equal.p_value), (1.0, 1.0, 0.0));
    }

    #[test]
    fn intervals_that_must_hold_together_are_wider() {
        let values = [0.05, 0.06, 0.055, 0.045, 0.05, 0.058];
        let (one, two) =
            (estimate(&values).expect("finite"), estimate_at(&values, ALPHA / 2.0).expect("finite"));
        assert!(two.low < one.low && one.high < two.high && two.mean.to_bits() == one.mean.to_bits());
    }

    #[test]
    fn a_known_difference_below_the_margin_is_equivalence() {
        let values = [0.004, 0.005, 0.0045, 0.005, 0.0055, 0.005, 0.0045, 0.005];
        let found = estimate(&values).expect("finite");
        assert!(found.p_value < ALPHA && found.low > 0.0);
        assert_eq!(read(&values), Direction::Equivalent);
    }

    #[test]
    fn what_will_be_found_follows_from_what_scattered_before() {
        let values = [0.05, 0.06, 0.055, 0.045, 0.05, 0.058];
        let found = estimate(&values).expect("finite");
        let expected = |earlier: &[Vec<f64>], units| expected_detectable(earlier, units);
        let same = expected(&[values.to_vec()], 6).expect("six values");
        assert!((same - found.detectable).abs() < 1e-12, "as many again find the same");
        // A shift between two runs does not count as scatter within one.
        let moved: Vec<f64> = values.iter().map(|value| value + 0.3).collect();
        let both = expected(&[values.to_vec(), moved, vec![0.1]], 6).expect("twelve values");
        assert!((both - same).abs() < 1e-12, "{both} {same}");
        assert!(expected(&[values.to_vec()], 30).expect("thirty") < same / 2.0);
        for (earlier, units) in
            [(vec![], 6), (vec![vec![0.1]], 6), (vec![values.to_vec()], 1), (vec![values.to_vec()], 0)]
        {
            assert_eq!(expected(&earlier, units), None);
        }
    }

    #[test]
    fn nothing_and_nonsense_estimate_nothing_and_equal_values_are_no_puzzle() {
        assert_eq!(estimate(&[]), None);
        assert_eq!(estimate(&[0.1]), None);
        assert_eq!(estimate(&[0.1, f64::NAN]), None);
        assert_eq!(read(&[0.0; 8]), Direction::Equivalent);
        assert_eq!(read(&[0.5; 8]), Direction::Better);
    }

    #[test]
    fn a_second_figure_must_be_known_not_to_go_the_other_way() {
        let at = |low: f64, high: f64| Estimate {
            mean: 0.5 * (low + high),
            low,
            high,
            units: 12,
            ..Estimate::default()
        };
        // The claim: the arm costs less.
        assert_eq!(bearing(-0.05, &at(-0.06, 0.005), MARGIN), Bearing::Supports);
        assert_eq!(bearing(-0.05, &at(-0.06, 0.02), MARGIN), Bearing::Uncertain);
        assert_eq!(bearing(-0.05, &at(0.005, 0.02), MARGIN), Bearing::Uncertain);
        assert_eq!(bearing(-0.05, &at(0.015, 0.02), MARGIN), Bearing::Contradicts);
        assert_eq!(bearing(0.05, &at(-0.02, -0.015), MARGIN), Bearing::Contradicts);
        assert_eq!(bearing(0.05, &at(-0.005, 0.06), MARGIN), Bearing::Supports);
        // The claim: they cost the same. A wide interval does not show it.
        assert_eq!(bearing(0.0, &at(-0.009, 0.008), MARGIN), Bearing::Supports);
        assert_eq!(bearing(0.0, &at(-0.02, 0.02), MARGIN), Bearing::Uncertain);
        assert_eq!(bearing(0.0, &at(0.005, 0.02), MARGIN), Bearing::Uncertain);
        assert_eq!(bearing(0.0, &at(-0.02, -0.011), MARGIN), Bearing::Contradicts);
        assert_eq!(bearing(0.0, &at(0.011, 0.02), MARGIN), Bearing::Contradicts);
    }

    /// The design as it is run: rounds of fresh processes; slices within a round share the machine's state; a
    /// baseline runs twice and serves all comparisons; the machine drifts and changes its state. Returns the round's
    /// value.
    fn round(random: &mut Random, effect: f64) -> f64 {
        let mut process = || 0.015 * random.normal();
        let (one, two, arm) = (process(), process(), effect + process());
        let mut drift = 0.0;
        let mut runs = [const { Vec::new() }; 3];
        for _ in 0..8 {
            // Lag-1 correlation of 0.84, as measured; the machine changes its state now and then.
            drift = 0.84 * drift + 0.1 * random.normal();
            if random.uniform() < 0.02 {
                drift += 0.3;
            }
            // A disturbed slice is long, never short.
            let mut slice = |level: f64| {
                let tail = if random.uniform() < 0.1 { random.exponential(0.25) } else { 0.0 };
                level + drift + 0.04 * random.normal() + tail
            };
            for (run, level) in runs.iter_mut().zip([one, two, arm]) {
                run.push(slice(level));
            }
        }
        let [one, two, arm] = &runs;
        crate::round::effect(arm, one, two).expect("eight slices")
    }

    fn called(rounds: usize, effect: f64, studies: u64) -> f64 {
        let mut random = Random::seeded(20_261_122);
        let one = |_| {
            let values: Vec<f64> = (0..rounds).map(|_| round(&mut random, effect)).collect();
            let estimate = estimate(&values).expect("finite");
            estimate.p_value <= ALPHA
        };
        (0..studies).map(one).filter(|called| *called).count() as f64 / studies as f64
    }

    #[test]
    fn false_calls_are_as_rare_as_alpha_says_when_data_come_as_the_design_makes_them() {
        // 4000 studies at 1 %: four standard deviations are 0.63 points.
        let share = called(12, 0.0, 4_000);
        assert!(share < 0.0165, "{share}");
    }

    #[test]
    fn the_detectable_effect_is_found_as_often_as_it_says() {
        let (mut random, studies) = (Random::seeded(5), 400);
        let mut printed = || {
            let values: Vec<f64> = (0..40).map(|_| round(&mut random, 0.0)).collect();
            estimate(&values).expect("finite").detectable
        };
        let effect = (0..studies).map(|_| printed()).sum::<f64>() / f64::from(studies);
        let share = called(40, effect, 1_000);
        assert!((0.74..0.87).contains(&share), "{share}");
    }

    proptest! {
        #[test]
        fn the_interval_excludes_zero_exactly_when_the_test_calls(
            values in prop::collection::vec(-0.2_f64..0.2, 6..40),
        ) {
            let found = estimate(&values).unwrap();
            prop_assert_eq!(found.low > 0.0 || found.high < 0.0, found.p_value < ALPHA);
        }

        #[test]
        fn swapping_arm_and_baseline_swaps_better_and_worse(
            values in prop::collection::vec(-0.2_f64..0.2, 6..40),
        ) {
            let mirrored: Vec<f64> = values.iter().map(|value| -value).collect();
            let expected = match read(&values) {
                Direction::Better => Direction::Worse,
                Direction::Worse => Direction::Better,
                same => same,
            };
            prop_assert_eq!(read(&mirrored), expected);
        }
    }
}
