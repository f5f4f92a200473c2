//! Whether servers were warm when their rounds were timed. Pure.
//!
//! Every round has fresh processes. A program that compiles itself while it runs costs more in the first slices of a
//! round than in the last, and its start would be measured. Changes of the machine also affect the baseline's slices
//! of the same permutations, and are subtracted.

use weir_record::{
    check::{Check, CheckName},
    finding::{Finding, WarmingArm},
    spec::{ArmSpec, StudySpec},
    trial::{SliceRecord, TrialRecord},
};
use weir_stats::{
    decide::{ALPHA, Estimate, UNITS_MIN, estimate_at},
    order::median,
};

use crate::{
    cell_trials::{CellTrials, Round},
    gate::ValidityGate,
};

/// Largest change within the rounds, as a share of the equivalence margin.
const MARGIN_SHARE_MAX: f64 = 0.25;

/// The check over all cells whose arms take turns; `None` with too few rounds. There may be many cells and arms, so
/// all intervals hold simultaneously.
pub(crate) fn check(spec: &StudySpec, gate: &ValidityGate, trials: &[&TrialRecord]) -> Option<Check> {
    let mut values: Vec<(&ArmSpec, &str, Vec<f64>)> = Vec::new();
    for cell in spec.cells.iter().filter(|cell| cell.alternation.is_some()) {
        let cell = CellTrials::of(cell, gate, trials);
        for arm in spec.arms.iter().skip(1).filter(|arm| cell.spec.has_arm(&arm.name)) {
            let of_round = |round: &Round<'_>| of_round(gate, &cell, round, (arm, spec.baseline_of(arm)));
            let own: Vec<f64> = cell.rounds().filter_map(of_round).collect();
            if own.len() >= UNITS_MIN {
                values.push((arm, &cell.spec.id, own));
            }
        }
    }
    let alpha = ALPHA / values.len().max(1) as f64;
    let limit = MARGIN_SHARE_MAX * spec.equivalence_margin.ln_1p();
    let mut arms = Vec::new();
    let (mut passed, mut largest) = (true, None::<(f64, WarmingArm)>);
    for (arm, cell_id, own) in values {
        let Some(change) = estimate_at(&own, alpha) else { continue };
        let holds = (change.low <= 0.0 && change.high >= 0.0) || change.mean.abs() <= limit;
        let found = warming(spec, arm, cell_id, &change);
        passed &= holds;
        if !holds {
            arms.push(found);
        } else if largest.as_ref().is_none_or(|(size, _)| change.mean.abs() > *size) {
            largest = Some((change.mean.abs(), found));
        }
    }
    if arms.is_empty() {
        arms.extend(largest.map(|(_, found)| found));
    }
    let detail = (!arms.is_empty()).then_some(Finding::Warming { arms, change_max: limit.exp_m1() })?;
    Some(Check { name: CheckName::Warm, passed, detail })
}

/// The side that became cheaper, and by how much relative to the other: a server warms up, and does not cool down.
fn warming(spec: &StudySpec, arm: &ArmSpec, cell_id: &str, change: &Estimate) -> WarmingArm {
    let is_own = change.mean <= 0.0;
    let name = if is_own { arm.name.as_str() } else { spec.baseline_of(arm) };
    let Estimate { mean, low, high, .. } = *change;
    let (mean, low, high) = if is_own { (mean, low, high) } else { (-mean, -high, -low) };
    WarmingArm {
        arm: name.to_owned(),
        cell_id: cell_id.to_owned(),
        change: mean.exp_m1(),
        interval: (low.exp_m1(), high.exp_m1()),
    }
}

/// The change of an arm's cost within a round, less the baseline's change.
fn of_round(
    gate: &ValidityGate,
    cell: &CellTrials<'_>,
    round: &Round<'_>,
    (arm, baseline): (&ArmSpec, &str),
) -> Option<f64> {
    let change = |name: &str, repeat: bool| {
        let trial = round.run(name, repeat).filter(|trial| gate.is_usable(trial, cell.state))?;
        change_within(trial)
    };
    let of_baseline: Vec<f64> = [false, true].into_iter().filter_map(|it| change(baseline, it)).collect();
    let mean = of_baseline.iter().sum::<f64>() / of_baseline.len() as f64;
    Some(change(&arm.name, false)? - mean).filter(|change| change.is_finite())
}

/// Logarithm of a message's cost in the last third of the slices relative to the first third.
fn change_within(trial: &TrialRecord) -> Option<f64> {
    let log = |slice: &SliceRecord| (slice.server_cpu_ns as f64 / slice.messages as f64).ln();
    let logs: Vec<f64> = trial.slices.iter().map(log).filter(|log| log.is_finite()).collect();
    let third = (logs.len() / 3).max(1);
    if logs.len() < 2 {
        return None;
    }
    Some(median(&logs[logs.len() - third..])? - median(&logs[..third])?)
}

#[cfg(test)]
mod tests {
    use weir_record::spec::Alternation;

    use super::*;
    use crate::sample;

    /// Rounds of nine slices, with the cost of a message changing linearly from the first to the last.
    fn checked(rounds: u32, epoll: (f64, f64), uring: (f64, f64)) -> Option<Check> {
        let mut spec = sample::study(&["epoll", "uring"], rounds, 1);
        spec.cells[0].alternation =
            Some(Alternation { slice_ns: 1, permutations: 9, prime_messages: 1, evidence: None });
        let slices = |block: u32, (first, last): (f64, f64)| -> Vec<SliceRecord> {
            let cost = |place: u32| {
                // What the machine does in this round, and a little of the arm's own.
                let machine = 1.0 + 0.02 * f64::from(place * (block % 3));
                let own = first + (last - first) * f64::from(place) / 8.0;
                own * machine * (1.0 + 0.002 * f64::from((place + block) % 2))
            };
            let slice = |place: u32| SliceRecord {
                permutation: place,
                messages: 1_000,
                server_cpu_ns: (1e6 * cost(place)) as u64,
                ..SliceRecord::default()
            };
            (0..9).map(slice).collect()
        };
        let trial = |block: u32, arm: &str, repeat: bool, cost: (f64, f64)| TrialRecord {
            repeat,
            slices: slices(block, cost),
            ..sample::trial(&spec.cells[0].id, arm, block, 10.0)
        };
        let of_round = |block: u32| {
            [("epoll", false, epoll), ("epoll", true, epoll), ("uring", false, uring)]
                .map(|(arm, repeat, cost)| trial(block, arm, repeat, cost))
        };
        let trials: Vec<TrialRecord> = (0..rounds).flat_map(of_round).collect();
        check(&spec, &ValidityGate::new(&trials), &trials.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_server_that_becomes_cheaper_within_its_rounds_is_named() {
        let steady = checked(8, (5.0, 5.0), (4.0, 4.0)).expect("there are rounds enough");
        assert!(steady.passed, "what the machine does meets both: {steady:?}");
        for (epoll, uring, named) in [((5.0, 5.0), (8.0, 4.0), "uring"), ((9.0, 5.0), (4.0, 4.0), "epoll")] {
            let cold = checked(8, epoll, uring).expect("there are rounds enough");
            let Finding::Warming { arms, .. } = &cold.detail else { panic!("{cold:?}") };
            assert!(!cold.passed && arms.len() == 1 && arms[0].arm == named, "{cold:?}");
            assert!((-0.5..-0.2).contains(&arms[0].change) && arms[0].interval.1 < 0.0, "{arms:?}");
        }
    }

    #[test]
    fn few_rounds_say_nothing() {
        assert_eq!(checked(3, (5.0, 5.0), (8.0, 4.0)), None);
    }
}
