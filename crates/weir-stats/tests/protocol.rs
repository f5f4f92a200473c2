//! The whole protocol on simulated studies: how often it calls a difference that is not there, and misses one
//! that is. Every study follows from its seed; a failure names how many studies went wrong, and the seeds are 0,
//! 1, 2, …

use weir_stats::{
    decide::{Direction, Effect, Limits, decide},
    floor::noise_floor,
    holm::holm,
    interval::paired_interval,
    order::median,
    power::{detectable_effect_by_median, detectable_effect_of},
    random::{Random, derived_seed},
    signflip::sign_flip_p_value,
};

/// Noise of one log-ratio with standard deviation and median as named.
type Noise = fn(&mut Random) -> f64;

const NORMAL: Noise = |random| random.normal();

/// Student's t with 3 degrees of freedom, scaled to standard deviation 1: now and then a wild block.
const WILD: Noise = |random| {
    let scale: f64 = (0..3).map(|_| random.normal().powi(2)).sum();
    random.normal() / scale.sqrt()
};

/// Exponential shifted to median 0: skewed.
const SKEWED: Noise = |random| random.exponential(1.0) - std::f64::consts::LN_2;

fn pairs(random: &mut Random, blocks: usize, effect: f64, deviation: f64, noise: Noise) -> Vec<f64> {
    (0..blocks).map(|_| effect + deviation * noise(random)).collect()
}

/// One simulated study: arm against baseline with a true effect, and the baseline against itself with the same
/// noise.
struct Study {
    blocks: usize,
    effect: f64,
    deviation: f64,
    noise: Noise,
    smallest_effect: f64,
}

impl Study {
    fn run(&self, seed: u64) -> Direction {
        let mut random = Random::seeded(seed);
        let arm = pairs(&mut random, self.blocks, self.effect, self.deviation, self.noise);
        let itself = pairs(&mut random, self.blocks, 0.0, self.deviation, self.noise);
        let interval = paired_interval(&arm, derived_seed(seed, 1)).expect("finite pairs");
        decide(
            &Effect { median: median(&arm).expect("finite pairs"), interval },
            &Limits {
                noise_floor: noise_floor(&itself, arm.len(), derived_seed(seed, 2)),
                smallest_effect: self.smallest_effect,
                larger_is_better: false,
            },
        )
    }

    fn count(&self, studies: u64, wanted: &[Direction]) -> u64 {
        (0..studies).filter(|seed| wanted.contains(&self.run(*seed))).count() as u64
    }
}

const CALLED: [Direction; 2] = [Direction::Better, Direction::Worse];

#[test]
fn the_baseline_against_itself_is_called_different_in_less_than_one_study_of_a_hundred() {
    for (blocks, deviation, noise) in
        [(12, 0.01, NORMAL), (12, 0.02, NORMAL), (12, 0.02, WILD), (6, 0.02, NORMAL), (6, 0.02, WILD)]
    {
        let study = Study { blocks, effect: 0.0, deviation, noise, smallest_effect: 1.03_f64.ln() };
        let wrong = study.count(400, &CALLED);
        assert!(wrong < 4, "{wrong} of 400 studies of {blocks} blocks with noise {deviation}");
    }
}

#[test]
fn the_floor_and_the_interval_hold_without_a_smallest_effect_too() {
    let study = Study { blocks: 12, effect: 0.0, deviation: 0.02, noise: NORMAL, smallest_effect: 0.0 };
    let wrong = study.count(500, &CALLED);
    // One in a hundred, with what chance leaves open in 500 studies (three standard deviations).
    assert!(wrong <= 11, "{wrong} of 500");
}

#[test]
fn a_floor_of_medians_finds_what_a_floor_of_single_pairs_would_hide() {
    // Single pairs of such noise differ by 8 % in one block of twenty; the median of twelve does not.
    let study =
        Study { blocks: 12, effect: 1.07_f64.ln(), deviation: 0.03, noise: NORMAL, smallest_effect: 0.03 };
    let found = study.count(200, &[Direction::Worse]);
    assert!(found >= 170, "{found} of 200");
}

#[test]
fn a_planted_six_percent_is_found_with_its_sign() {
    for (effect, expected) in [(1.06_f64.ln(), Direction::Worse), (-(1.06_f64.ln()), Direction::Better)] {
        let study =
            Study { blocks: 12, effect, deviation: 0.015, noise: NORMAL, smallest_effect: 1.03_f64.ln() };
        let found = study.count(300, &[expected]);
        assert!(found >= 285, "{found} of 300");
    }
}

#[test]
fn a_quiet_machine_shows_equality_and_a_real_difference_is_never_called_equal() {
    let quiet =
        Study { blocks: 12, effect: 0.0, deviation: 0.007, noise: NORMAL, smallest_effect: 1.03_f64.ln() };
    let equal = quiet.count(200, &[Direction::Equivalent]);
    assert!(equal >= 190, "{equal} of 200");
    // Just at the limit the interval would have to miss the truth: half of the 5 % on one side.
    let different = Study { effect: 1.03_f64.ln(), ..quiet };
    let wrong = different.count(400, &[Direction::Equivalent]);
    assert!(wrong <= 20, "{wrong} of 400");
}

#[test]
fn intervals_hold_the_true_median_as_often_as_they_say() {
    for (blocks, studies) in [(6, 4_000), (9, 4_000), (11, 4_000), (12, 200), (13, 200), (24, 200)] {
        for noise in [NORMAL, WILD, SKEWED] {
            let (mut hits, mut confidence) = (0, 0.0);
            for seed in 0..studies {
                let sample = pairs(&mut Random::seeded(seed), blocks, 0.0, 1.0, noise);
                let found = paired_interval(&sample, seed).expect("finite pairs");
                hits += u64::from(found.contains(0.0));
                confidence = found.confidence;
            }
            let covered = hits as f64 / studies as f64;
            let error = (confidence * (1.0 - confidence) / studies as f64).sqrt();
            assert!(covered > confidence - 3.5 * error, "{covered} of {confidence} with {blocks} blocks");
            assert!(covered < 0.9975, "{covered} of {confidence} with {blocks} blocks is needlessly wide");
        }
    }
}

#[test]
fn a_detectable_effect_is_detected_in_about_eight_studies_of_ten() {
    const DEVIATION: f64 = 0.015;
    for blocks in [6, 12, 18] {
        let by_test = detectable_effect_of(DEVIATION, blocks).expect("enough blocks").ln_1p();
        let by_median = by_test * std::f64::consts::FRAC_PI_2.sqrt();
        let (mut by_test_count, mut by_median_count) = (0, 0);
        for seed in 0..400 {
            let noise = pairs(&mut Random::seeded(seed), blocks, 0.0, DEVIATION, NORMAL);
            let shifted = |effect: f64| noise.iter().map(|value| effect + value).collect::<Vec<_>>();
            let p_value = sign_flip_p_value(&shifted(by_test), seed).expect("finite pairs");
            by_test_count += u32::from(p_value <= 0.05);
            let interval = paired_interval(&shifted(by_median), seed).expect("finite pairs");
            by_median_count += u32::from(interval.low > 0.0);
        }
        // At six blocks the sign-flip test needs all six to agree, which costs it power against t.
        let expected = if blocks == 6 { 230..=300 } else { 290..=350 };
        assert!(expected.contains(&by_test_count), "{by_test_count} of 400 by test with {blocks} blocks");
        assert!((290..=370).contains(&by_median_count), "{by_median_count} of 400 with {blocks} blocks");
    }
    let sample = pairs(&mut Random::seeded(1), 12, 0.0, DEVIATION, NORMAL);
    let printed = detectable_effect_by_median(&sample).expect("enough blocks");
    assert!((0.008..0.03).contains(&printed), "{printed}");
}

#[test]
fn the_sign_flip_test_rejects_a_true_hypothesis_no_more_than_five_times_in_a_hundred() {
    for (blocks, studies) in [(6, 4_000), (12, 1_000), (20, 300)] {
        for noise in [NORMAL, WILD] {
            let rejected = |seed: &u64| {
                let sample = pairs(&mut Random::seeded(*seed), blocks, 0.0, 1.0, noise);
                sign_flip_p_value(&sample, *seed).expect("finite pairs") <= 0.05
            };
            let count = (0..studies).filter(rejected).count() as f64;
            let expected = 0.05 * studies as f64;
            assert!(count < expected + 3.5 * expected.sqrt(), "{count} of {studies} with {blocks} blocks");
            assert!(count > 0.2 * expected, "{count} of {studies}: a test that never rejects tests nothing");
        }
    }
}

#[test]
fn a_matrix_of_twenty_equal_cells_rarely_has_a_winner_after_holm_and_often_before() {
    const MATRICES: u64 = 200;
    let (mut before, mut after) = (0, 0);
    for matrix in 0..MATRICES {
        let p_values: Vec<f64> = (0..20)
            .map(|cell| {
                let sample = pairs(&mut Random::seeded(derived_seed(matrix, cell)), 12, 0.0, 1.0, NORMAL);
                sign_flip_p_value(&sample, cell).expect("finite pairs")
            })
            .collect();
        let adjusted = holm(&p_values).expect("probabilities");
        before += u64::from(p_values.iter().any(|p_value| *p_value <= 0.05));
        after += u64::from(adjusted.iter().any(|p_value| *p_value <= 0.05));
    }
    // Expected 64 % (128) before and at most 5 % (10, standard deviation 3) after.
    assert!(before > 100, "{before} of {MATRICES}");
    assert!(after <= 20, "{after} of {MATRICES}");
}
