//! CPU that a server uses while others have their turn is in none of its slices. A verdict on server CPU stands only
//! if including it does not reverse the result.

use weir_judge::{judge, sample};
use weir_record::{
    finding::{Finding, Witness, WitnessBearing},
    metric::Metric,
    spec::{Alternation, StudySpec},
    study::StudyResult,
    trial::{SliceRecord, TrialRecord},
    verdict::Verdict,
};

const ROUNDS: u32 = 12;
const PERMUTATIONS: u32 = 4;

fn spec() -> StudySpec {
    let mut spec = sample::study(&["epoll", "busy"], ROUNDS, 1);
    spec.cells[0].alternation = Some(Alternation {
        slice_ns: 20_000_000,
        permutations: PERMUTATIONS,
        prime_messages: 2,
        evidence: None,
    });
    spec
}

/// A run whose slices cost `cost_ns` per message. The server uses this share of a CPU while it waits, and is stopped
/// after its second slice unless it is allowed to run.
fn run(arm: &str, repeat: bool, block: u32, cost_ns: u64, (waiting, is_let): (f64, bool)) -> TrialRecord {
    let spec = spec();
    // Rounds differ a little, or there would be no interval.
    let server_cpu_ns = 1_000 * (cost_ns + u64::from(block % 3));
    let slice = |permutation: u32| {
        let stopped = !is_let && permutation > 1;
        SliceRecord {
            permutation,
            length_ns: 20_000_000,
            messages: 1_000,
            server_cpu_ns,
            machine_cpu_ns: 2 * server_cpu_ns,
            waiting_cpu_ns: if stopped { 0 } else { (40e6 * waiting) as u64 },
            waiting_ns: 40_000_000,
            stopped,
            ..SliceRecord::default()
        }
    };
    let slices = (0..PERMUTATIONS).map(slice).collect();
    TrialRecord { repeat, slices, ..sample::trial(&spec.cells[0].id, arm, block, cost_ns as f64 / 1e3) }
}

/// The study of an arm that costs a tenth less in its slices.
fn judged(waiting: f64, is_let: bool) -> StudyResult {
    let round = |block: u32| {
        [
            run("epoll", false, block, 10_000, (0.0, true)),
            run("epoll", true, block, 10_010, (0.0, true)),
            run("busy", false, block, 9_000, (waiting, is_let)),
        ]
    };
    judge::judged(&spec(), &(0..ROUNDS).flat_map(round).collect::<Vec<_>>())
}

fn bearing(result: &StudyResult) -> Option<WitnessBearing> {
    let primary = result.primary().expect("it was compared");
    primary.reasons.iter().chain(&primary.notes).find_map(|found| match found {
        Finding::Witness { witness: Witness::WaitingCpu, bearing, .. } => Some(*bearing),
        _ => None,
    })
}

#[test]
fn work_while_waiting_takes_a_verdict_away_that_it_turns_round() {
    let idle = judged(0.0, true);
    assert_eq!((idle.verdict, bearing(&idle)), (Verdict::Better, Some(WitnessBearing::Supports)));
    let some = judged(0.02, true);
    assert_eq!((some.verdict, bearing(&some)), (Verdict::Better, Some(WitnessBearing::Supports)));
    let much = judged(0.2, true);
    assert_eq!((much.verdict, bearing(&much)), (Verdict::NotComparable, Some(WitnessBearing::Contradicts)));
    let figure = |result: &StudyResult| {
        let found = result.effects.comparisons().find(|it| it.metric == Metric::ServerCpuWithWaiting);
        found.and_then(|it| it.estimate).expect("it is compared")
    };
    // A fifth of a CPU over a slice of 20 ms is 4 ms in addition to 9.
    assert!((figure(&much) - 1.3).abs() < 0.002, "{}", figure(&much));
    assert!((figure(&idle) - 0.9).abs() < 0.002, "{}", figure(&idle));
}

#[test]
fn an_arm_that_was_stopped_is_judged_by_what_it_did_before_and_named() {
    let stopped = judged(0.2, false);
    assert_eq!(bearing(&stopped), Some(WitnessBearing::Contradicts));
    let primary = stopped.primary().expect("it was compared");
    let expected =
        Finding::StoppedBetweenSlices { arm: "busy".to_owned(), share: 0.2, stopped: ROUNDS, runs: ROUNDS };
    assert!(primary.notes.contains(&expected), "{:?}", primary.notes);
    let let_be = judged(0.2, true);
    let notes = &let_be.primary().expect("it was compared").notes;
    assert!(!notes.iter().any(|it| matches!(it, Finding::StoppedBetweenSlices { .. })), "{notes:?}");
}
