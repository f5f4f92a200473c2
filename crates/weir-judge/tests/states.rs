//! The effect by state of the machine: both effects, and their difference. Also the note about reopened connections.

use weir_judge::{judge, sample};
use weir_record::{
    effect::Effect,
    finding::Finding,
    machine::CrossCoreReading,
    spec::Alternation,
    trial::{SliceRecord, TrialRecord},
};

/// A study in which every second round is in the far state, where the arm costs this much more per message.
fn primary(far_ratio: f64) -> Effect {
    let mut spec = sample::study(&["epoll", "uring"], 24, 1);
    spec.cells[0].alternation =
        Some(Alternation { slice_ns: 20_000_000, permutations: 2, prime_messages: 2, evidence: None });
    let round = |block: u32| {
        let is_far = block % 2 == 1;
        let round_trip_ns = if is_far { 400.0 } else { 100.0 };
        let reading = CrossCoreReading { cpu_a: 0, cpu_b: 1, round_trip_ns, ..CrossCoreReading::default() };
        let run = |arm: &str, repeat: bool, cost_ns: f64| {
            let slice = |permutation: u32| SliceRecord {
                permutation,
                length_ns: 20_000_000,
                messages: 1_000,
                server_cpu_ns: (1_000.0 * cost_ns) as u64 + u64::from(block % 3),
                reopened: u32::from(arm == "uring") * 5,
                ..SliceRecord::default()
            };
            TrialRecord {
                repeat,
                slices: (0..2).map(slice).collect(),
                reading_before: reading,
                reading_after: reading,
                ..sample::trial(&spec.cells[0].id, arm, block, cost_ns / 1e3)
            }
        };
        let cost_ns = if is_far { 13_000.0 } else { 10_000.0 };
        let ratio = if is_far { far_ratio } else { 0.9 };
        [run("epoll", false, cost_ns), run("epoll", true, cost_ns), run("uring", false, ratio * cost_ns)]
    };
    let result = judge::judged(&spec, &(0..24).flat_map(round).collect::<Vec<_>>());
    result.primary().expect("it was compared").clone()
}

fn interaction(comparison: &Effect) -> (f64, (f64, f64)) {
    let found = comparison.notes.iter().find_map(|found| match found {
        Finding::StateInteraction { ratio, interval } => Some((*ratio, *interval)),
        _ => None,
    });
    found.expect("both states were met")
}

#[test]
fn how_far_the_effect_depends_on_the_state_is_told_with_its_interval() {
    let (ratio, interval) = interaction(&primary(0.99));
    assert!((ratio - 1.1).abs() < 1e-3 && interval.0 > 1.0 && interval.1 < 1.2, "{ratio} {interval:?}");
    let (ratio, interval) = interaction(&primary(0.9));
    assert!((ratio - 1.0).abs() < 1e-3 && interval.0 <= ratio && ratio <= interval.1, "{ratio} {interval:?}");
}

#[test]
fn connections_that_were_opened_again_are_counted() {
    let expected = Finding::Reopened { arm: "uring".to_owned(), connections: 240, slices: 48 };
    assert!(primary(0.9).notes.contains(&expected), "{:?}", primary(0.9).notes);
}
