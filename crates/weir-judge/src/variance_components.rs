//! Variance components of a round's value: between its permutations, and from one round of fresh processes to the
//! next. Pure.
//!
//! More permutations reduce the first and not the second, and fresh processes cost time. Kalibera and Jones
//! ("Rigorous benchmarking in reasonable time", ISMM 2013) give the best number of repetitions at a level: the square
//! root of the ratio of the two costs, times the ratio of the two standard deviations. A round's value is a robust
//! mean, so its within-round variance is estimated from halves: the difference between the values of every other
//! permutation.

use weir_record::{
    check::{Check, CheckName},
    finding::{Finding, RoundComponents},
    metric::Metric,
    spec::{ArmSpec, CellRole, CellSpec, StudySpec},
    trial::TrialRecord,
};
use weir_stats::{decide::UNITS_MIN, order::median};

use crate::{
    cell_trials::CellTrials,
    gate::ValidityGate,
    units::{self, Compared, Slices},
};

/// Most permutations that are recommended: a longer round spans several states of the machine.
const PERMUTATIONS_MAX: f64 = 20.0;

/// Fewest, so that orders are balanced.
const PERMUTATIONS_MIN: f64 = 2.0;

/// The check of the primary cell, an entry for each arm; `None` if its arms take no turns or there are too few
/// rounds. It cannot fail: it recommends the design of a further study of this kind.
pub(crate) fn check(spec: &StudySpec, gate: &ValidityGate, trials: &[&TrialRecord]) -> Option<Check> {
    let is_primary = |cell: &&CellSpec| cell.role == CellRole::Primary && cell.alternation.is_some();
    let cell = CellTrials::of(spec.cells.iter().find(is_primary)?, gate, trials);
    let row = Metric::ServerCpuPerMessage.row();
    let of_arm = |arm: &ArmSpec| {
        let compared = Compared { arm: &arm.name, baseline: spec.baseline_of(arm), row };
        components(&arm.name, &units::by_permutation(gate, &cell, compared))
    };
    let arms: Vec<RoundComponents> = spec.arms.iter().skip(1).filter_map(of_arm).collect();
    let found = (!arms.is_empty()).then_some(Finding::RoundComponents { arms })?;
    Some(Check { name: CheckName::RoundComponents, passed: true, detail: found })
}

/// The components of one arm's rounds.
fn components(arm: &str, rounds: &[(&TrialRecord, Slices)]) -> Option<RoundComponents> {
    let several: Vec<&(&TrialRecord, Slices)> =
        rounds.iter().filter(|(_, slices)| slices.permutations() > 1).collect();
    if several.len() < UNITS_MIN {
        return None;
    }
    let count = several.len() as f64;
    let permutations =
        median(&several.iter().map(|(_, slices)| slices.permutations() as f64).collect::<Vec<_>>())?;
    let values: Vec<f64> = several.iter().filter_map(|(_, slices)| slices.effect()).collect();
    let mean = values.iter().sum::<f64>() / count;
    let total = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let of_one = several.iter().filter_map(|(_, slices)| variance_of_one(slices)).sum::<f64>() / count;
    let within = of_one / permutations;
    let between = (total - within).max(0.0);
    let (start_ns, permutation_ns) = costs_ns(&several, permutations)?;
    let best = best_permutations(of_one, between, start_ns / permutation_ns);
    let round_ns = |permutations: f64| start_ns + permutations * permutation_ns;
    let rounds_best = (count * round_ns(permutations) / round_ns(best)).round();
    Some(RoundComponents {
        arm: arm.to_owned(),
        within: within.sqrt(),
        between: between.sqrt(),
        permutations: permutations as u32,
        rounds: several.len() as u32,
        permutations_best: best as u32,
        rounds_best: rounds_best as u32,
    })
}

/// Variance of a value from a single permutation, estimated from the values of every other one: a value over `n`
/// permutations has this variance divided by `n`.
fn variance_of_one(slices: &Slices) -> Option<f64> {
    let (even, odd) = (slices.every_other(0), slices.every_other(1));
    let apart = even.effect()? - odd.effect()?;
    Some(apart.powi(2) / (1.0 / even.permutations() as f64 + 1.0 / odd.permutations() as f64))
}

/// Cost of a round besides its permutations, and cost of one permutation: from one slice of an arm to its next.
fn costs_ns(rounds: &[&(&TrialRecord, Slices)], permutations: f64) -> Option<(f64, f64)> {
    let turn_ns = |trial: &TrialRecord| {
        let later = trial.slices.get(1..)?;
        let sum: u64 = later.iter().map(|slice| slice.waiting_ns + slice.length_ns).sum();
        (sum > 0).then(|| sum as f64 / later.len() as f64)
    };
    let turns: Vec<f64> = rounds.iter().filter_map(|(trial, _)| turn_ns(trial)).collect();
    let elapsed: Vec<f64> = rounds.iter().map(|(trial, _)| trial.elapsed_ns as f64).collect();
    let permutation_ns = median(&turns)?;
    let start_ns = median(&elapsed)? - permutations * permutation_ns;
    (start_ns > 0.0).then_some((start_ns, permutation_ns))
}

/// Kalibera and Jones's rule, within the recommended range.
fn best_permutations(of_one: f64, between: f64, start_over_permutation: f64) -> f64 {
    let best = (start_over_permutation * of_one / between).sqrt();
    // For identical rounds any number would do.
    let best = if best.is_nan() { PERMUTATIONS_MIN } else { best };
    best.round().clamp(PERMUTATIONS_MIN, PERMUTATIONS_MAX)
}

#[cfg(test)]
mod tests {
    use weir_record::{spec::Alternation, trial::SliceRecord};
    use weir_stats::random::Random;

    use super::*;
    use crate::sample;

    const MILLISECOND_NS: u64 = 1_000_000;
    const ROUNDS: u32 = 400;
    const PERMUTATIONS: u32 = 8;

    /// Rounds that take 600 ms besides eight permutations of 75 ms, with these standard deviations of a slice of the
    /// arm and of its processes. The baseline does not scatter.
    fn checked(rounds: u32, within: f64, between: f64) -> Option<Check> {
        let mut spec = sample::study(&["epoll", "uring"], rounds, 1);
        spec.cells[0].alternation = Some(Alternation {
            slice_ns: 25 * MILLISECOND_NS,
            permutations: PERMUTATIONS,
            prime_messages: 2,
            evidence: None,
        });
        let mut random = Random::seeded(3);
        let mut trials = Vec::new();
        for block in 0..rounds {
            let process = between * random.normal();
            for (arm, repeat) in [("epoll", false), ("epoll", true), ("uring", false)] {
                let mut slice = |permutation: u32| {
                    let log = if arm == "uring" { process + within * random.normal() } else { 0.0 };
                    SliceRecord {
                        permutation,
                        length_ns: 25 * MILLISECOND_NS,
                        waiting_ns: 50 * MILLISECOND_NS,
                        messages: 1_000,
                        server_cpu_ns: (1e7 * log.exp()) as u64,
                        ..SliceRecord::default()
                    }
                };
                let slices = (0..PERMUTATIONS).map(&mut slice).collect();
                let elapsed_ns = 1_200 * MILLISECOND_NS;
                let trial = sample::trial(&spec.cells[0].id, arm, block, 10.0);
                trials.push(TrialRecord { repeat, slices, elapsed_ns, ..trial });
            }
        }
        check(&spec, &ValidityGate::new(&trials), &trials.iter().collect::<Vec<_>>())
    }

    fn found(within: f64, between: f64) -> RoundComponents {
        let check = checked(ROUNDS, within, between).expect("its arms take turns");
        let Finding::RoundComponents { arms } = check.detail else { panic!("it is of components") };
        arms.into_iter().next().expect("there is an arm")
    }

    #[test]
    fn both_components_are_told_apart() {
        // The median of eight normal values has a variance of some 0.168 of one's.
        let found = found(0.05, 0.02);
        assert!((found.within - 0.05 * 0.168_f64.sqrt()).abs() < 0.002, "{found:?}");
        assert!((found.between - 0.02).abs() < 0.003, "{found:?}");
        assert_eq!((found.permutations, found.rounds), (PERMUTATIONS, ROUNDS));
    }

    #[test]
    fn rounds_that_differ_should_be_short_and_many_and_those_that_do_not_long_and_few() {
        // A round costs as much as eight permutations; one of these adds a variance of some (0.05)^2 x 1.2, a round
        // (0.05)^2.
        let differ = found(0.05, 0.05);
        assert!((3..=4).contains(&differ.permutations_best), "{differ:?}");
        assert!(differ.rounds_best > ROUNDS, "{differ:?}");
        let alike = found(0.05, 0.0);
        assert!(alike.permutations_best >= 12 && alike.rounds_best < ROUNDS, "{alike:?}");
        assert_eq!(best_permutations(0.0, 0.0, 8.0), PERMUTATIONS_MIN);
        assert_eq!(best_permutations(0.01, 0.0, 8.0), PERMUTATIONS_MAX);
    }

    #[test]
    fn few_rounds_and_whole_trials_tell_nothing() {
        let spec = sample::study(&["epoll", "uring"], 12, 1);
        assert_eq!(check(&spec, &ValidityGate::new([]), &[]), None);
        let few = UNITS_MIN as u32 - 1;
        assert!(checked(few, 0.05, 0.02).is_none() && checked(few + 1, 0.05, 0.02).is_some());
    }
}
