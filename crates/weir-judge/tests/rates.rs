//! How often the rule calls what is not there, and how often it finds what is: tried on recorded rounds of a real
//! machine, in the design of `weir study quick`.
//!
//! `recorded/echo-aa.txt` holds rounds of fresh processes in which one server ran three times (echo on epoll, 100
//! connections, 64 B, slices of 25 ms, two virtual CPUs that change between two states). A simulated study takes as
//! many neighbouring rounds as the real one has, so that slow noise stays as slow as it is, and draws in each which of
//! the three is the arm: they are the same program, so that every draw is as good as the one that happened. An effect
//! is planted as nanoseconds: a share of what the same round's baseline took.

use weir_judge::{
    judge::{Judged, judge},
    sample,
};
use weir_record::{
    load::LoadReport,
    machine::{CrossCoreReading, Fingerprint},
    spec::{Alternation, StudySpec},
    trial::{ObservedWindow, SliceRecord, TrialRecord},
    verdict::Verdict,
};
use weir_stats::{
    order::median,
    random::{Random, derived_seed},
};

const ROUNDS: &str = include_str!("recorded/echo-aa.txt");

/// Rounds, permutations and margin of the built-in study.
const STUDY_ROUNDS: u32 = 44;
const PERMUTATIONS: u32 = 8;
const MARGIN: f64 = 0.02;

/// Simulated studies for each effect.
const STUDIES: u64 = 1_000;

/// Server CPU per message of three runs, in nanoseconds, by permutation.
struct Round {
    round_trips_ns: [f64; 2],
    runs: [Vec<f64>; 3],
}

/// A line: the round trips before and after, then the three runs, each after a semicolon.
fn rounds() -> Vec<Round> {
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

fn spec() -> StudySpec {
    let mut spec = sample::study(&["epoll", "planted"], STUDY_ROUNDS, 1);
    spec.equivalence_margin = MARGIN;
    spec.cells[0].alternation = Some(Alternation {
        slice_ns: 25_000_000,
        permutations: PERMUTATIONS,
        prime_messages: 2,
        evidence: None,
    });
    spec
}

fn trial(
    spec: &StudySpec,
    block: u32,
    (arm, repeat): (&str, bool),
    round: &Round,
    costs: &[f64],
) -> TrialRecord {
    let reading =
        |round_trip_ns| CrossCoreReading { cpu_a: 0, cpu_b: 1, round_trip_ns, ..CrossCoreReading::default() };
    let slice = |(permutation, cost): (u32, &f64)| SliceRecord {
        permutation,
        length_ns: 25_000_000,
        messages: 1_000,
        server_cpu_ns: (1_000.0 * cost) as u64,
        machine_cpu_ns: (2_000.0 * cost) as u64,
        ..SliceRecord::default()
    };
    let slices: Vec<SliceRecord> = (0..).zip(costs).map(slice).collect();
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
        cell_id: spec.cells[0].id.clone(),
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

/// The verdict of one simulated study in which the arm costs this much more.
fn verdict(rounds: &[Round], spec: &StudySpec, planted: f64, seed: u64) -> Verdict {
    let mut random = Random::seeded(seed);
    let start = random.below(rounds.len() as u64) as usize;
    let mut trials = Vec::new();
    for block in 0..STUDY_ROUNDS {
        let round = &rounds[(start + block as usize) % rounds.len()];
        let mut labels = [0, 1, 2];
        random.shuffle(&mut labels);
        let [one, other, arm] = labels.map(|run| &round.runs[run]);
        let baseline: Vec<f64> = one.iter().chain(other).copied().collect();
        let extra_ns = planted * median(&baseline).expect("there are slices");
        let dearer: Vec<f64> = arm.iter().map(|cost| cost + extra_ns).collect();
        trials.push(trial(spec, block, ("epoll", false), round, one));
        trials.push(trial(spec, block, ("epoll", true), round, other));
        trials.push(trial(spec, block, ("planted", false), round, &dearer));
    }
    let fingerprint = Fingerprint::default();
    judge(&Judged {
        spec,
        fingerprint: &fingerprint,
        trials: &trials,
        missing_arms: &[],
        elapsed_ns: 0,
        reproduce: "",
    })
    .verdict
}

/// Shares of studies that call the arm dearer, cheaper, and equivalent.
fn rates(planted: f64) -> [f64; 3] {
    let (rounds, spec) = (rounds(), spec());
    let mut counts = [0_u32; 3];
    for study in 0..STUDIES {
        match verdict(&rounds, &spec, planted, derived_seed(7, study)) {
            Verdict::Worse => counts[0] += 1,
            Verdict::Better => counts[1] += 1,
            Verdict::Equivalent => counts[2] += 1,
            Verdict::Inconclusive => {}
            other => panic!("{other:?}"),
        }
    }
    counts.map(|count| f64::from(count) / STUDIES as f64)
}

#[test]
fn there_are_rounds_enough() {
    let rounds = rounds();
    assert!(rounds.len() >= 500, "{}", rounds.len());
    assert!(rounds.iter().flat_map(|round| &round.runs).all(|run| run.len() == PERMUTATIONS as usize));
}

#[test]
fn what_is_not_there_is_called_in_at_most_one_study_of_a_hundred() {
    let [slower, faster, equivalent] = rates(0.0);
    assert!(slower + faster <= 0.01, "{slower} {faster}, and equivalent in {equivalent}");
}

#[test]
fn two_per_cent_are_found_in_seven_of_ten_studies_and_three_in_nine() {
    for (planted, share_min) in [(0.02, 0.7), (0.03, 0.9), (-0.02, 0.0)] {
        let [slower, faster, _] = rates(planted);
        let (found, wrong) = if planted > 0.0 { (slower, faster) } else { (faster, slower) };
        assert!(found >= share_min && wrong == 0.0, "{planted}: {found} found, {wrong} the other way");
    }
}
