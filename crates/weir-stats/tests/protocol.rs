//! The decision rule on simulated studies: its rates of false positives and of false negatives. Every study follows
//! from its seed; a failure prints how many studies went wrong, and the seeds are 0, 1, 2, …

use weir_stats::{
    decide::{ALPHA, Direction, Reading, decide, estimate},
    holm::holm,
    random::{Random, derived_seed},
};

/// Noise of one log-ratio with standard deviation and median as named.
type Noise = fn(&mut Random) -> f64;

const NORMAL: Noise = |random| random.normal();

/// Student's t with 3 degrees of freedom, scaled to standard deviation 1: occasional outliers.
const WILD: Noise = |random| {
    let scale: f64 = (0..3).map(|_| random.normal().powi(2)).sum();
    random.normal() / scale.sqrt()
};

fn units(random: &mut Random, count: usize, effect: f64, deviation: f64, noise: Noise) -> Vec<f64> {
    (0..count).map(|_| effect + deviation * noise(random)).collect()
}

/// One simulated comparison with a true effect.
struct Study {
    units: usize,
    effect: f64,
    deviation: f64,
    noise: Noise,
    margin: f64,
}

impl Study {
    fn run(&self, seed: u64) -> Direction {
        let values = units(&mut Random::seeded(seed), self.units, self.effect, self.deviation, self.noise);
        let estimate = estimate(&values).expect("finite values");
        let reading = Reading { p_value: estimate.p_value, margin: self.margin, larger_is_better: false };
        decide(&estimate, &reading)
    }

    fn count(&self, studies: u64, wanted: &[Direction]) -> u64 {
        (0..studies).filter(|seed| wanted.contains(&self.run(*seed))).count() as u64
    }
}

const CALLED: [Direction; 2] = [Direction::Better, Direction::Worse];

#[test]
fn the_baseline_against_itself_is_called_different_in_one_study_of_a_hundred() {
    for (count, noise) in [(6, NORMAL), (12, NORMAL), (40, NORMAL), (6, WILD), (12, WILD), (40, WILD)] {
        let study = Study { units: count, effect: 0.0, deviation: 0.02, noise, margin: 0.0 };
        let wrong = study.count(4_000, &CALLED);
        // 40 expected, standard deviation 6.3: three and a half of them.
        assert!(wrong <= 62, "{wrong} of 4000 studies of {count} units");
        assert!(wrong >= 4, "{wrong} of 4000: a rule that never calls decides nothing");
    }
}

#[test]
fn a_planted_six_percent_is_found_with_its_sign() {
    for (effect, expected) in [(1.06_f64.ln(), Direction::Worse), (-(1.06_f64.ln()), Direction::Better)] {
        let study = Study { units: 12, effect, deviation: 0.015, noise: NORMAL, margin: 1.02_f64.ln() };
        let found = study.count(300, &[expected]);
        assert!(found >= 285, "{found} of 300");
    }
}

#[test]
fn a_quiet_machine_shows_equality_and_a_real_difference_is_rarely_called_equal() {
    let quiet = Study { units: 12, effect: 0.0, deviation: 0.007, noise: NORMAL, margin: 1.02_f64.ln() };
    let equal = quiet.count(200, &[Direction::Equivalent]);
    assert!(equal >= 190, "{equal} of 200");
    // Just at the margin the interval would have to miss the truth: half of the 1 % on one side.
    let different = Study { effect: 1.02_f64.ln(), ..quiet };
    let wrong = different.count(2_000, &[Direction::Equivalent]);
    assert!(wrong <= 22, "{wrong} of 2000");
}

#[test]
fn a_matrix_of_twenty_equal_cells_rarely_has_a_winner_after_holm_and_often_before() {
    const MATRICES: u64 = 1_000;
    let (mut before, mut after) = (0, 0);
    for matrix in 0..MATRICES {
        let p_values: Vec<f64> = (0..20)
            .map(|cell| {
                // Too few values for a long-run error, so the test has its nominal level.
                let values = units(&mut Random::seeded(derived_seed(matrix, cell)), 8, 0.0, 1.0, NORMAL);
                estimate(&values).expect("finite values").p_value
            })
            .collect();
        let adjusted = holm(&p_values).expect("probabilities");
        before += u64::from(p_values.iter().any(|p_value| *p_value <= ALPHA));
        after += u64::from(adjusted.iter().any(|p_value| *p_value <= ALPHA));
    }
    // Expected 18 % (182) before and at most 1 % (10, standard deviation 3) after.
    assert!(before > 130, "{before} of {MATRICES}");
    assert!(after <= 21, "{after} of {MATRICES}");
}
