//! Random-effects meta-analysis of several runs of one comparison: their common mean, how far they differ beyond
//! their own errors, and where the next run is expected.
//!
//! The effect of a run is drawn around a common mean with a variance between runs, and measured with the error of
//! that run. The interval of one run includes only its own error. The variance between runs includes what moves from
//! one hour or machine to the next; it takes several runs to estimate.
//!
//! - The variance between runs is the estimate of Paule and Mandel ("Consensus values and weighting factors", Journal
//!   of Research of the National Bureau of Standards 87, 1982): the variance at which the weighted sum of squares
//!   equals the degrees of freedom. It assumes no distribution of the effects, and its iteration always converges.
//! - The interval of the mean follows Hartung and Knapp ("On tests of the overall treatment effect in meta-analysis
//!   with normally distributed responses", Statistics in Medicine 20, 2001) and Sidik and Jonkman ("A simple
//!   confidence interval for meta-analysis", Statistics in Medicine 21, 2002), with t on k - 1 degrees of freedom.
//!   Its variance factor is at least 1 (Knapp and Hartung 2003; Röver, Knapp and Friede 2015): runs that happen to
//!   agree better than their errors allow do not make the interval shorter than these errors.
//! - The prediction interval of the next run has t on k - 2 degrees of freedom (Higgins, Thompson and Spiegelhalter,
//!   "A re-evaluation of random-effects meta-analysis", Journal of the Royal Statistical Society A 172, 2009;
//!   IntHout, Ioannidis and Borm, BMC Medical Research Methodology 14, 2014). Theirs is the range of the next run's
//!   true effect. The figure that the next run prints also has its own error, so [`Next`] contains both ranges. A run
//!   is compared with the second.

use crate::{
    decide::{ALPHA, Direction, Reading},
    student,
};

/// Fewest runs that have a pooled interval. With two, the variance between runs would have a single degree of
/// freedom.
pub const RUNS_MIN: usize = 3;

/// Fewest runs from which the next one is predicted.
pub const RUNS_MIN_NEXT: usize = 5;

/// Smallest error that counts, as a fraction of the largest: a run whose units do not scatter at all would otherwise
/// have an infinite weight.
const ERROR_PART_MIN: f64 = 1e-6;

/// What one run found: a log-ratio, or a difference, and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunEffect {
    /// The effect.
    pub value: f64,
    /// Its standard error, from the units of that run alone.
    pub error: f64,
}

/// The pooled result of several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pooled {
    /// Number of runs.
    pub runs: usize,
    /// The common mean.
    pub mean: f64,
    /// Lower end of its interval with confidence `1 - ALPHA`.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Two-sided p-value of a mean of zero.
    pub p_value: f64,
    /// Standard deviation of effects between runs, beyond the runs' own errors.
    pub between: f64,
    /// Where the next run is expected; from [`RUNS_MIN_NEXT`] runs on.
    pub next: Option<Next>,
}

/// Prediction interval of the next run, with confidence `1 - ALPHA`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Next {
    /// Range of its true effect, as an infinitely long run would find it.
    pub effect: (f64, f64),
    /// Range of the figure that it prints, for a run as long as these.
    pub figure: (f64, f64),
}

/// Why runs are not pooled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotPooled {
    /// There are fewer than [`RUNS_MIN`].
    TooFewRuns {
        /// How many there are.
        runs: usize,
    },
    /// An effect is not finite, or an error is negative or not finite.
    NotFinite,
}

/// Pools runs at [`ALPHA`].
pub fn random_effects(effects: &[RunEffect]) -> Result<Pooled, NotPooled> {
    random_effects_at(effects, ALPHA)
}

/// Like [`random_effects`], with confidence `1 - alpha`. The order of the runs does not matter. Assumes that they are
/// independent of each other.
pub fn random_effects_at(effects: &[RunEffect], alpha: f64) -> Result<Pooled, NotPooled> {
    let is_usable = |it: &RunEffect| it.value.is_finite() && it.error.is_finite() && it.error >= 0.0;
    if !effects.iter().all(is_usable) {
        return Err(NotPooled::NotFinite);
    }
    let runs = effects.len();
    if runs < RUNS_MIN {
        return Err(NotPooled::TooFewRuns { runs });
    }
    // Sums in a fixed order, so that the same runs give the same bits in any order.
    let mut effects = effects.to_vec();
    effects.sort_by(|one, other| one.value.total_cmp(&other.value).then(one.error.total_cmp(&other.error)));
    let floor = ERROR_PART_MIN * effects.iter().map(|it| it.error).fold(0.0, f64::max);
    let variances: Vec<f64> = effects.iter().map(|it| it.error.max(floor).powi(2)).collect();
    let values: Vec<f64> = effects.iter().map(|it| it.value).collect();
    let between = between(&values, &variances);
    of_variance(&values, &variances, between, alpha).ok_or(NotPooled::NotFinite)
}

/// The estimate once the variance between runs is known.
fn of_variance(values: &[f64], variances: &[f64], between: f64, alpha: f64) -> Option<Pooled> {
    let runs = values.len();
    let weighed = Weighed::of(values, variances, between);
    let degrees = u32::try_from(runs - 1).ok()?;
    let factor = (weighed.squares / f64::from(degrees)).max(1.0);
    let error = (factor * weighed.variance).sqrt();
    let quantile = |degrees| student::quantile(1.0 - alpha / 2.0, degrees);
    let half = quantile(degrees)? * error;
    let mean = weighed.mean;
    let around = |half: f64| (mean - half, mean + half);
    let next = (runs >= RUNS_MIN_NEXT).then(|| {
        let within = variances.iter().sum::<f64>() / runs as f64;
        let reach = quantile(degrees - 1)?;
        let range = |further: f64| around(reach * (between + error.powi(2) + further).sqrt());
        Some(Next { effect: range(0.0), figure: range(within) })
    });
    let p_value = match (error > 0.0, mean == 0.0) {
        (true, _) => student::two_sided(mean / error, degrees)?,
        (false, true) => 1.0,
        (false, false) => 0.0,
    };
    let (low, high) = around(half);
    let is_finite = [mean, low, high].iter().all(|it| it.is_finite());
    let found = Pooled { runs, mean, low, high, p_value, between: between.sqrt(), next: next.flatten() };
    is_finite.then_some(found)
}

/// Effects weighed by the inverse of their variance.
struct Weighed {
    mean: f64,
    /// Variance of the mean that follows from the weights.
    variance: f64,
    /// Weighted sum of squares around the mean.
    squares: f64,
}

impl Weighed {
    fn of(values: &[f64], variances: &[f64], between: f64) -> Self {
        let total: f64 = variances.iter().map(|variance| variance + between).sum();
        // If there is neither an error nor a distance between runs, all weights are equal.
        let (weights, variance): (Vec<f64>, f64) = if total > 0.0 {
            let weights: Vec<f64> = variances.iter().map(|variance| 1.0 / (variance + between)).collect();
            let sum: f64 = weights.iter().sum();
            (weights, 1.0 / sum)
        } else {
            (vec![1.0; values.len()], 0.0)
        };
        let sum: f64 = weights.iter().sum();
        let mean = weights.iter().zip(values).map(|(weight, value)| weight / sum * value).sum::<f64>();
        let squares =
            weights.iter().zip(values).map(|(weight, value)| weight * (value - mean).powi(2)).sum::<f64>();
        Self { mean, variance, squares }
    }
}

/// The variance between runs at which the weighted sum of squares equals the degrees of freedom; zero where the sum
/// is already smaller without it. The sum falls as the variance grows, so there is only one solution.
fn between(values: &[f64], variances: &[f64]) -> f64 {
    let degrees = (values.len() - 1) as f64;
    let (least, most) = (values[0], values[values.len() - 1]);
    let is_too_small = |between: f64| Weighed::of(values, variances, between).squares > degrees;
    if least == most || !is_too_small(0.0) && variances.iter().any(|variance| *variance > 0.0) {
        return 0.0;
    }
    // No effect is further from the mean than the longest distance, so the sum of squares is below the degrees of
    // freedom here.
    let (mut low, mut high) = (0.0, 2.0 * (most - least).powi(2));
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if is_too_small(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
}

impl Pooled {
    /// The direction of the pooled effect, by the rule of [`crate::decide::decide`]: *equivalent* needs the whole
    /// interval inside the margin, *better* and *worse* a corrected p-value of at most [`ALPHA`].
    pub fn direction(&self, reading: &Reading) -> Direction {
        if -reading.margin < self.low && self.high < reading.margin {
            return Direction::Equivalent;
        }
        if reading.p_value > ALPHA || self.mean == 0.0 {
            return Direction::Undecided;
        }
        if (self.mean > 0.0) == reading.larger_is_better { Direction::Better } else { Direction::Worse }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::random::Random;

    fn runs(pairs: &[(f64, f64)]) -> Vec<RunEffect> {
        pairs.iter().map(|(value, error)| RunEffect { value: *value, error: *error }).collect()
    }

    /// Nine laboratories, of Kacker, "Combining information from interlaboratory evaluations using a random effects
    /// model", Metrologia 41, 2004: values and variances.
    const KACKER: [(f64, f64); 9] = [
        (61.0, 0.2025),
        (61.4, 1.21),
        (62.21, 0.09),
        (62.3, 0.2025),
        (62.34, 0.3844),
        (62.6, 0.5625),
        (62.7, 0.0676),
        (62.84, 0.0225),
        (65.9, 1.8225),
    ];

    fn kacker() -> Vec<RunEffect> {
        runs(&KACKER.map(|(value, variance)| (value, variance.sqrt())))
    }

    #[test]
    fn the_variance_between_laboratories_is_the_one_that_was_published() {
        let found = random_effects_at(&kacker(), 0.05).expect("nine runs");
        // Kacker's table 1 (0.8399), and what the R package metafor computes (method PM).
        assert!((found.between - 0.8399).abs() < 6e-5, "{found:?}");
        assert!((found.between.powi(2) - 0.705_395_309_224_248).abs() < 1e-9, "{found:?}");
        assert!((found.mean - 62.407_619_911_328_6).abs() < 1e-9, "{found:?}");
        // Where the variance between runs is above zero, the factor of Hartung and Knapp is 1 by its definition: the
        // standard error is metafor's, with t on eight degrees of freedom.
        let half = 2.306_004_135 * 0.338_030_602_684_471;
        assert!((found.high - found.mean - half).abs() < 1e-7, "{found:?}");
        // The range of the next laboratory: t on seven degrees of freedom.
        let next = found.next.expect("nine runs");
        let reach = |variance: f64| 2.364_624_252 * variance.sqrt();
        let own = KACKER.iter().map(|(_, variance)| variance).sum::<f64>() / 9.0;
        let effect = 0.705_395_309_224_248 + 0.338_030_602_684_471_f64.powi(2);
        assert!((next.effect.1 - found.mean - reach(effect)).abs() < 1e-7, "{next:?}");
        assert!((found.mean - next.figure.0 - reach(effect + own)).abs() < 1e-7, "{next:?}");
    }

    #[test]
    fn the_factor_of_variance_is_no_less_than_one() {
        // Runs that agree better than their errors: the factor would be 0.02, and the interval 7 times too short.
        let agreeing = runs(&[(0.010, 0.01), (0.011, 0.01), (0.012, 0.01), (0.009, 0.01)]);
        let found = random_effects_at(&agreeing, 0.05).expect("four runs");
        assert_eq!(found.between, 0.0);
        let half = 3.182_446_305 * 0.01 / 2.0;
        assert!((found.high - found.mean - half).abs() < 1e-9, "{found:?}");
        assert_eq!(found.next, None, "four runs say nothing of a fifth");
    }

    #[test]
    fn fewer_than_three_runs_are_not_pooled_and_say_so() {
        assert_eq!(random_effects(&[]), Err(NotPooled::TooFewRuns { runs: 0 }));
        let two = runs(&[(0.1, 0.01), (0.2, 0.01)]);
        assert_eq!(random_effects(&two), Err(NotPooled::TooFewRuns { runs: 2 }));
        for (value, error) in
            [(f64::NAN, 0.1), (f64::INFINITY, 0.1), (0.1, f64::NAN), (0.1, -0.1), (0.1, f64::INFINITY)]
        {
            let odd = runs(&[(0.1, 0.01), (0.2, 0.01), (value, error)]);
            assert_eq!(random_effects(&odd), Err(NotPooled::NotFinite), "{value} {error}");
        }
    }

    #[test]
    fn runs_without_any_scatter_are_no_puzzle() {
        let alike = random_effects(&runs(&[(0.2, 0.0); 5])).expect("five runs");
        assert!((alike.low - 0.2).abs() < 1e-12 && alike.low.to_bits() == alike.high.to_bits(), "{alike:?}");
        assert_eq!((alike.between, alike.p_value), (0.0, 0.0));
        // Their errors are zero, so the variance is that of the effects.
        let apart = random_effects(&runs(&[(0.1, 0.0), (0.2, 0.0), (0.3, 0.0)])).expect("three runs");
        assert!((apart.between - 0.1).abs() < 1e-9 && (apart.mean - 0.2).abs() < 1e-12, "{apart:?}");
        let one = random_effects(&runs(&[(0.1, 0.0), (0.2, 0.3), (0.3, 0.3)])).expect("three runs");
        assert!(one.low.is_finite() && (one.mean - 0.1).abs() < 1e-3, "{one:?}");
    }

    #[test]
    fn a_pooled_effect_is_read_by_the_rule_of_every_other() {
        let pooled = |mean: f64| {
            let effects: Vec<RunEffect> = [-0.001, 0.0, 0.001, 0.002, -0.002]
                .iter()
                .map(|step| RunEffect { value: mean + step, error: 0.001 })
                .collect();
            random_effects(&effects).expect("five runs")
        };
        let read = |mean: f64, margin: f64, larger_is_better: bool| {
            let found = pooled(mean);
            found.direction(&Reading { p_value: found.p_value, margin, larger_is_better })
        };
        assert_eq!(read(-0.05, 0.01, false), Direction::Better);
        assert_eq!(read(-0.05, 0.01, true), Direction::Worse);
        assert_eq!(read(0.0, 0.01, false), Direction::Equivalent);
        assert_eq!(read(0.0, 0.001, false), Direction::Undecided);
        // After correction for several claims it is no longer one.
        let corrected = Reading { p_value: 0.02, margin: 0.01, larger_is_better: false };
        assert_eq!(pooled(-0.05).direction(&corrected), Direction::Undecided);
    }

    /// How often the interval of the mean holds the mean, and the two ranges the next run's effect and its figure.
    fn coverage(count: usize, between: f64, errors: &[f64], studies: u32) -> [f64; 3] {
        let mut random = Random::seeded(20_261_129);
        let mut held = [0_u32; 3];
        for _ in 0..studies {
            let mut run = |index: usize| {
                let error = errors[index % errors.len()];
                let effect = 0.02 + between * random.normal();
                (effect, RunEffect { value: effect + error * random.normal(), error })
            };
            let effects: Vec<RunEffect> = (0..count).map(|index| run(index).1).collect();
            let (effect, next) = run(count);
            let found = random_effects(&effects).expect("finite");
            let ranges = found.next.expect("five runs or more");
            let holds = |(low, high): (f64, f64), value: f64| u32::from(low <= value && value <= high);
            let now = [
                holds((found.low, found.high), 0.02),
                holds(ranges.effect, effect),
                holds(ranges.figure, next.value),
            ];
            held.iter_mut().zip(now).for_each(|(sum, one)| *sum += one);
        }
        held.map(|sum| f64::from(sum) / f64::from(studies))
    }

    #[test]
    fn intervals_of_simulated_runs_hold_what_they_say() {
        let studies = 4_000;
        // Runs as alike as their rounds suggest, some that move twice as far, and errors that differ by a factor of
        // four.
        for (count, between, errors) in [
            (5, 0.0, &[0.01][..]),
            (5, 0.02, &[0.01]),
            (8, 0.02, &[0.01]),
            (12, 0.02, &[0.005, 0.02]),
            (6, 0.005, &[0.005, 0.01, 0.02]),
        ] {
            let found = coverage(count, between, errors, studies);
            // Four standard deviations of a share of 4,000 that is 0.99 are 0.0063. The range of the effect is too
            // short where errors are as large as what lies between runs (Partlett and Riley, Statistics in Medicine
            // 36, 2017).
            let [mean, effect, figure] = found;
            for (held, least) in [(mean, 0.99 - 0.0063), (figure, 0.99 - 0.0063), (effect, 0.97)] {
                assert!(held >= least, "{count} runs, {between}, {errors:?}: {found:?}");
            }
        }
    }

    fn any_runs() -> impl Strategy<Value = Vec<RunEffect>> {
        let run = (-0.5..0.5_f64, 0.001..0.1_f64).prop_map(|(value, error)| RunEffect { value, error });
        proptest::collection::vec(run, 3..12)
    }

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() <= 1e-9 * (1.0 + one.abs().max(other.abs()))
    }

    proptest! {
        #[test]
        fn the_order_of_runs_does_not_matter(effects in any_runs(), turn in 0_usize..12) {
            let mut other = effects.clone();
            other.reverse();
            let turn = turn % other.len();
            other.rotate_left(turn);
            prop_assert_eq!(random_effects(&effects), random_effects(&other));
        }

        #[test]
        fn arm_and_baseline_may_change_places(effects in any_runs()) {
            let negated: Vec<RunEffect> = effects.iter().map(|it| RunEffect { value: -it.value, ..*it }).collect();
            let (one, other) = (random_effects(&effects).unwrap(), random_effects(&negated).unwrap());
            prop_assert!(near(one.mean, -other.mean) && near(one.low, -other.high) && near(one.high, -other.low));
            prop_assert!(near(one.between, other.between) && near(one.p_value, other.p_value));
            if let (Some(one), Some(other)) = (one.next, other.next) {
                prop_assert!(near(one.figure.0, -other.figure.1) && near(one.effect.1, -other.effect.0));
            }
        }

        #[test]
        fn another_unit_is_another_scale_and_nothing_else(effects in any_runs(), factor in 0.01..100.0_f64) {
            let scaled: Vec<RunEffect> =
                effects.iter().map(|it| RunEffect { value: factor * it.value, error: factor * it.error }).collect();
            let (one, other) = (random_effects(&effects).unwrap(), random_effects(&scaled).unwrap());
            prop_assert!(near(factor * one.mean, other.mean) && near(factor * one.high, other.high));
            prop_assert!(near(factor * one.between, other.between) && near(one.p_value, other.p_value));
        }

        #[test]
        fn runs_that_agree_have_no_variance_between_them(
            value in -0.5..0.5_f64,
            errors in proptest::collection::vec(0.001..0.1_f64, 3..12),
        ) {
            let effects: Vec<RunEffect> = errors.iter().map(|error| RunEffect { value, error: *error }).collect();
            let found = random_effects(&effects).unwrap();
            prop_assert_eq!(found.between, 0.0);
            prop_assert!(near(found.mean, value) && found.low < value && value < found.high);
        }

        #[test]
        fn the_mean_lies_among_the_runs_and_the_next_figure_reaches_beyond_its_effect(effects in any_runs()) {
            let found = random_effects(&effects).unwrap();
            let over = |pick: fn(f64, f64) -> f64, from| effects.iter().map(|it| it.value).fold(from, pick);
            let (least, most) = (over(f64::min, f64::INFINITY), over(f64::max, f64::NEG_INFINITY));
            prop_assert!(least - 1e-12 <= found.mean && found.mean <= most + 1e-12);
            prop_assert_eq!(found.next.is_some(), effects.len() >= RUNS_MIN_NEXT);
            if let Some(next) = found.next {
                prop_assert!(next.figure.0 < next.effect.0 && next.effect.0 < found.low);
                prop_assert!(found.high < next.effect.1 && next.effect.1 < next.figure.1);
            }
        }
    }
}
