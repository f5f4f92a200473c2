//! Whether slices are long enough to be more than a ramp and a drain. Pure.
//!
//! A slice starts with a message on every connection at once and ends with its last answer. If a connection carries
//! only a few messages in between, ramp and drain are most of the slice, and it measures something other than a
//! continuous load.

use weir_record::{
    check::{Check, CheckName},
    finding::{Finding, MessagesInSlices},
    spec::{CellSpec, LoadMode, StudySpec},
    trial::{SliceRecord, TrialRecord},
};
use weir_stats::order::median;

use crate::{cell_trials::CellTrials, gate::ValidityGate};

/// Messages per connection that a slice in closed loop should contain.
pub const MESSAGES_EACH: u32 = 30;

/// The check over all cells in closed loop whose arms take turns; `None` if there is none. In an open loop the rate
/// determines the messages.
pub(crate) fn check(spec: &StudySpec, gate: &ValidityGate, trials: &[&TrialRecord]) -> Option<Check> {
    let mut arms = Vec::new();
    for cell in spec.cells.iter().filter(|cell| is_asked(cell)) {
        let cell = CellTrials::of(cell, gate, trials);
        for arm in spec.arms.iter().filter(|arm| cell.spec.has_arm(&arm.name)) {
            let usable = cell.of_arm(&arm.name).filter(|trial| gate.is_usable(trial, cell.state));
            let rounds: Vec<&TrialRecord> = usable.collect();
            arms.extend(of_arm(cell.spec, &arm.name, &rounds));
        }
    }
    let is_short = |it: &MessagesInSlices| it.each < f64::from(MESSAGES_EACH);
    let passed = !arms.iter().any(is_short);
    if passed {
        // The one with fewest shows the margin.
        arms.sort_by(|one, other| one.each.total_cmp(&other.each));
        arms.truncate(1);
    }
    arms.retain(|it| passed || is_short(it));
    let detail = (!arms.is_empty()).then_some(Finding::SliceMessages { arms, each_min: MESSAGES_EACH })?;
    Some(Check { name: CheckName::SliceLength, passed, detail })
}

/// Whether the requirement applies to a cell.
pub fn is_asked(cell: &CellSpec) -> bool {
    cell.alternation.is_some() && cell.load == LoadMode::Closed && cell.storage.is_none()
}

/// Messages in an arm's slices, by the median of its rounds and of the slices in each; and the slice length that
/// would contain enough.
pub fn of_arm(cell: &CellSpec, arm: &str, rounds: &[&TrialRecord]) -> Option<MessagesInSlices> {
    let connections = f64::from(cell.connections.max(1));
    let of_rounds = |figure: &dyn Fn(&SliceRecord) -> f64| {
        let of_round = |trial: &&TrialRecord| median(&trial.slices.iter().map(figure).collect::<Vec<_>>());
        median(&rounds.iter().filter_map(of_round).collect::<Vec<_>>())
    };
    let each = of_rounds(&|slice| slice.messages as f64 / connections)?;
    let length_ns = of_rounds(&|slice| slice.length_ns as f64)?;
    let needed_ns = f64::from(MESSAGES_EACH) * length_ns / each;
    needed_ns.is_finite().then(|| MessagesInSlices {
        arm: arm.to_owned(),
        cell_id: cell.id.clone(),
        each,
        length_ns: length_ns as u64,
        needed_ns: needed_ns as u64,
    })
}

#[cfg(test)]
mod tests {
    use weir_record::spec::Alternation;

    use super::*;
    use crate::sample;

    fn checked(load: LoadMode, messages: u64) -> Option<Check> {
        let mut spec = sample::study(&["epoll", "uring"], 6, 1);
        let cell = &mut spec.cells[0];
        let slice_ns = 25_000_000;
        (cell.connections, cell.load) = (100, load);
        cell.alternation = Some(Alternation { slice_ns, permutations: 3, prime_messages: 2, evidence: None });
        let slice = |messages| SliceRecord { messages, length_ns: slice_ns, ..SliceRecord::default() };
        let trial = |block: u32, arm: &str, messages: u64| TrialRecord {
            // Nothing ran in one slice of three.
            slices: vec![slice(messages), slice(0), slice(messages)],
            ..sample::trial(&spec.cells[0].id, arm, block, 10.0)
        };
        let of_round = |block| [trial(block, "epoll", 4_000), trial(block, "uring", messages)];
        let trials: Vec<TrialRecord> = (0..6).flat_map(of_round).collect();
        check(&spec, &ValidityGate::new(&trials), &trials.iter().collect::<Vec<_>>())
    }

    #[test]
    fn slices_in_which_a_connection_carries_few_messages_are_named_with_their_arm() {
        let enough = checked(LoadMode::Closed, 3_000).expect("its arms take turns");
        let Finding::SliceMessages { arms, .. } = &enough.detail else { panic!("{enough:?}") };
        assert!(enough.passed && arms.len() == 1 && (arms[0].arm.as_str(), arms[0].each) == ("uring", 30.0));
        let few = checked(LoadMode::Closed, 1_000).expect("its arms take turns");
        let Finding::SliceMessages { arms, .. } = &few.detail else { panic!("{few:?}") };
        assert!(!few.passed && arms.len() == 1 && arms[0].arm == "uring", "{few:?}");
        assert_eq!((arms[0].each, arms[0].length_ns, arms[0].needed_ns), (10.0, 25_000_000, 75_000_000));
    }

    #[test]
    fn an_open_loop_has_its_messages_from_its_rate() {
        assert_eq!(checked(LoadMode::Open { rate_per_second: 100.0, poisson: true, share: None }, 5), None);
    }
}
