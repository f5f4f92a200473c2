//! Whether short slices have the same traffic as long ones. Pure.
//!
//! A connection that is idle between its slices may have a reduced congestion window, and a burst at a slice's start
//! may be segmented differently from a steady stream: then a slice measures other traffic than it represents. The
//! evidence slices of the same rounds are some twenty times longer, and unobserved ones have the same clocks.

use weir_record::{
    check::{Check, CheckName},
    finding::{Finding, SegmentsOfArm},
    observation::Rung,
    spec::StudySpec,
    trial::{SliceRecord, TrialRecord},
};
use weir_stats::{decide::estimate, order::median};

use crate::{cell_trials::CellTrials, gate::ValidityGate, sums::further_group};

/// Largest difference of segments per message, as a share.
const CHANGE_MAX: f64 = 0.01;

/// With fewer rounds of evidence there is no check.
const ROUNDS_MIN: usize = 4;

/// The check over all cells with slices of evidence; `None` if none has enough rounds.
pub(crate) fn check(spec: &StudySpec, gate: &ValidityGate, trials: &[&TrialRecord]) -> Option<Check> {
    let mut arms = Vec::new();
    let mut passed = true;
    for cell in spec.cells.iter().filter(|cell| cell.alternation.is_some()) {
        let cell = CellTrials::of(cell, gate, trials);
        for arm in &spec.arms {
            let usable = cell.of_arm(&arm.name).filter(|trial| gate.is_usable(trial, cell.state));
            let rounds: Vec<(f64, f64)> = usable.filter_map(of_round).collect();
            let Some((holds, of_arm)) = of_rounds(&rounds) else { continue };
            passed &= holds;
            if !holds || arms.len() < spec.arms.len() {
                let (arm, cell_id) = (arm.name.clone(), cell.spec.id.clone());
                arms.push(SegmentsOfArm { arm, cell_id, ..of_arm });
            }
        }
    }
    let found = (!arms.is_empty()).then_some(Finding::Segments { arms, change_max: CHANGE_MAX })?;
    Some(Check { name: CheckName::Segments, passed, detail: found })
}

/// Segments per message in a round's slices, and in the long unobserved ones. Medians, because the counter covers the
/// machine, and other programs' traffic falls into single slices.
fn of_round(trial: &TrialRecord) -> Option<(f64, f64)> {
    let each = |slice: &SliceRecord| {
        (slice.messages > 0 && slice.segments > 0).then(|| slice.segments as f64 / slice.messages as f64)
    };
    let slices: Vec<f64> = trial.slices.iter().filter_map(each).collect();
    let long = trial.evidence.iter().filter(|it| it.rung == Rung::Process && further_group(it).is_none());
    let long: Vec<f64> = long.filter_map(|it| each(&it.slice)).collect();
    Some((median(&slices)?, median(&long)?))
}

/// Whether they agree over the rounds, and the means of both.
fn of_rounds(rounds: &[(f64, f64)]) -> Option<(bool, SegmentsOfArm)> {
    if rounds.len() < ROUNDS_MIN {
        return None;
    }
    let logs: Vec<f64> = rounds.iter().map(|(slices, long)| (slices / long).ln()).collect();
    let change = estimate(&logs)?;
    let is_shown = change.low > 0.0 || change.high < 0.0;
    let mean = |of: fn(&(f64, f64)) -> f64| rounds.iter().map(of).sum::<f64>() / rounds.len() as f64;
    let found = SegmentsOfArm {
        in_slices: mean(|round| round.0),
        in_long: mean(|round| round.1),
        ..SegmentsOfArm::default()
    };
    Some((!is_shown || change.mean.abs() <= CHANGE_MAX.ln_1p(), found))
}

#[cfg(test)]
mod tests {
    use weir_record::{spec::Alternation, trial::EvidenceSlice};

    use super::*;
    use crate::sample;

    fn checked(rounds: u32, in_slices: u64, in_long: u64) -> Option<Check> {
        let mut spec = sample::study(&["epoll", "uring"], rounds, 1);
        spec.cells[0].alternation =
            Some(Alternation { slice_ns: 1, permutations: 2, prime_messages: 1, evidence: None });
        let slice = |segments: u64| SliceRecord { messages: 10_000, segments, ..SliceRecord::default() };
        let evidence =
            |rung: Rung, segments: u64| EvidenceSlice { rung, slice: slice(segments), readings: Vec::new() };
        let trial = |block: u32| TrialRecord {
            // Another program's traffic falls into one slice of three.
            slices: vec![slice(in_slices + u64::from(block % 2)), slice(2 * in_slices), slice(in_slices)],
            // A slice observed by the programs is of another kind.
            evidence: vec![evidence(Rung::Process, in_long), evidence(Rung::Programs, 90_000)],
            ..sample::trial(&spec.cells[0].id, "uring", block, 10.0)
        };
        let trials: Vec<TrialRecord> = (0..rounds).map(trial).collect();
        check(&spec, &ValidityGate::new(&trials), &trials.iter().collect::<Vec<_>>())
    }

    #[test]
    fn slices_that_send_what_long_ones_do_pass_and_others_are_named() {
        let alike = checked(6, 20_000, 20_100).expect("there is evidence");
        assert!(alike.passed, "{alike:?}");
        let more = checked(6, 20_400, 20_000).expect("there is evidence");
        let Finding::Segments { arms, .. } = &more.detail else { panic!("{more:?}") };
        assert!(!more.passed && arms.len() == 1 && arms[0].arm == "uring", "{more:?}");
        assert!((arms[0].in_slices - 2.04).abs() < 1e-3 && arms[0].in_long == 2.0, "{arms:?}");
    }

    #[test]
    fn few_rounds_and_counters_that_nobody_read_say_nothing() {
        assert_eq!(checked(3, 20_400, 20_000), None);
        assert_eq!(checked(6, 20_400, 0), None);
    }
}
