//! Recorded rounds of a real machine as the trials of a study.
//!
//! `recorded/echo-aa.txt` contains rounds of fresh processes in which one server ran three times (echo on epoll, 100
//! connections, 64 B, slices of 25 ms, two virtual CPUs that alternate between two states).

use weir_record::{
    load::LoadReport,
    machine::CrossCoreReading,
    trial::{SliceRecord, TrialRecord},
    window::ObservedWindow,
};
use weir_stats::order::median;

const ROUNDS: &str = include_str!("../recorded/echo-aa.txt");

/// Server CPU per message of three runs, in nanoseconds, by permutation.
pub struct Round {
    pub round_trips_ns: [f64; 2],
    pub runs: [Vec<f64>; 3],
}

/// Parses a line: the round trips before and after, then the three runs, each after a semicolon.
pub fn rounds() -> Vec<Round> {
    let numbers = |text: &str| -> Vec<f64> {
        text.split_whitespace().map(|word| word.parse().expect("a number")).collect()
    };
    let round = |line: &str| {
        let parts: Vec<Vec<f64>> = line.split(';').map(numbers).collect();
        let [trips, a, b, c] = parts.as_slice() else { panic!("{line}") };
        Round { round_trips_ns: [trips[0], trips[1]], runs: [a.clone(), b.clone(), c.clone()] }
    };
    ROUNDS.lines().filter(|line| !line.starts_with('#')).map(round).collect()
}

fn trial(
    cell_id: &str,
    block: u32,
    (arm, repeat): (&str, bool),
    round: &Round,
    [costs, generator]: [&[f64]; 2],
) -> TrialRecord {
    let reading =
        |round_trip_ns| CrossCoreReading { cpu_a: 0, cpu_b: 1, round_trip_ns, ..CrossCoreReading::default() };
    let slice = |(permutation, (cost, of_generator)): (u32, (&f64, &f64))| SliceRecord {
        permutation,
        length_ns: 25_000_000,
        messages: 1_000,
        server_cpu_ns: (1_000.0 * cost) as u64,
        machine_cpu_ns: (1_000.0 * (cost + of_generator)) as u64,
        ..SliceRecord::default()
    };
    let slices: Vec<SliceRecord> = (0..).zip(costs.iter().zip(generator)).map(slice).collect();
    let load = LoadReport {
        messages: 1_000 * slices.len() as u64,
        message_bytes: 64,
        bytes_verified: 64_000 * slices.len() as u64,
        throughput_per_second: 1.0,
        observed: Some(ObservedWindow {
            cpu_ns: slices.iter().map(|slice| slice.server_cpu_ns).sum(),
            ..ObservedWindow::default()
        }),
        ..LoadReport::default()
    };
    TrialRecord {
        cell_id: cell_id.to_owned(),
        block,
        started_ns: u64::from(block),
        arm: arm.to_owned(),
        repeat,
        reading_before: reading(round.round_trips_ns[0]),
        reading_after: reading(round.round_trips_ns[1]),
        load: Some(load),
        slices,
        ..TrialRecord::default()
    }
}

/// The labels of the runs in a recorded round: the baseline, its second run, and the arm.
pub const RECORDED: [usize; 3] = [0, 1, 2];

/// The three trials of a round in which the arm costs this much more than the baseline. The labels assign the three
/// runs to the baseline, its second run and the arm. The effect is added in nanoseconds: a share of the same round's
/// baseline cost. A run's generator cost is another run's cost in the same round, in reverse slice order, plus the
/// effect: so machine CPU scatters independently.
pub fn planted(
    cell_id: &str,
    block: u32,
    [baseline, arm]: [&str; 2],
    round: &Round,
    effect: f64,
    labels: [usize; 3],
) -> [TrialRecord; 3] {
    let [one, other, own] = labels.map(|run| &round.runs[run]);
    let both: Vec<f64> = one.iter().chain(other).copied().collect();
    let extra_ns = effect * median(&both).expect("there are slices");
    let more = |costs: &[f64]| -> Vec<f64> { costs.iter().map(|cost| cost + extra_ns).collect() };
    let reversed = |costs: &[f64]| -> Vec<f64> { costs.iter().rev().copied().collect() };
    [
        trial(cell_id, block, (baseline, false), round, [one, &reversed(other)]),
        trial(cell_id, block, (baseline, true), round, [other, &reversed(own)]),
        trial(cell_id, block, (arm, false), round, [&more(own), &more(&reversed(one))]),
    ]
}
