//! Defects of a map are found by name: each is planted into recorded rounds of a real machine, and exactly that
//! defect is reported. Without a planted defect nothing is reported.

mod replayed;
mod replayed_map;

use std::collections::{BTreeMap, BTreeSet};

use replayed::rounds;
use weir_judge::judge::judged;
use weir_record::{
    check::{Check, CheckName},
    cpu_account::CpuPart,
    failure::FailureCounts,
    finding::Finding,
    grid::Difference,
    observation::Rung,
    overview::ScalingCause,
    spec::{CellSpec, StudySpec, Subject},
    stable_name,
    study::StudyResult,
    trial::{EvidenceSlice, Exclusion, Reading, SliceRecord, TrialRecord},
};

const ROUNDS: u32 = 40;

/// Messages of a slice of evidence.
const MESSAGES: f64 = 1_000.0;

fn spec() -> StudySpec {
    replayed_map::spec(ROUNDS, &[1, 100, 4000], &[1, 2], &[1])
}

/// Recorded rounds in which the server uses a quarter of a CPU.
fn trials(spec: &StudySpec, effect: impl Fn(&CellSpec) -> f64, seed: u64) -> Vec<TrialRecord> {
    let mut trials = replayed_map::trials(spec, &rounds(), effect, |_| 1.0, seed);
    for slice in trials.iter_mut().flat_map(|trial| &mut trial.slices) {
        slice.length_ns = 4 * slice.server_cpu_ns;
    }
    trials
}

/// A map without a defect: the arm needs 15 % more everywhere.
fn sound(spec: &StudySpec) -> Vec<TrialRecord> {
    trials(spec, |_| 0.15, 29)
}

/// The reported defects, each with its subject.
fn said(result: &StudyResult) -> BTreeSet<String> {
    let checks = ["generator-headroom", "steady-machine", "failures-classified", "processes"];
    let failed = result.checks.iter().filter(|check| !check.passed && checks.contains(&check.name.as_str()));
    let mut said: BTreeSet<String> = failed.map(|check| check.name.to_string()).collect();
    for it in result.effects.comparisons() {
        let is_told = |reason: &&Finding| {
            matches!(
                reason,
                Finding::TrialsFailed { .. } | Finding::WrongBytes { .. } | Finding::Unexplained { .. }
            )
        };
        said.extend(it.reasons.iter().filter(is_told).map(|it| it.code().to_owned()));
    }
    for grid in &result.grids {
        let limited = grid.cells.iter().filter(|cell| cell.difference == Difference::GeneratorLimited);
        said.extend(limited.map(|cell| format!("generator-limited {}", cell.cell_id)));
        let reversed = grid.marginals.iter().flat_map(|mean| &mean.reversed);
        said.extend(reversed.map(|cell| format!("reversed {cell}")));
    }
    for map in &result.overviews {
        let alarms = map.scaling_lines.iter().filter(|it| it.is_alarm);
        said.extend(alarms.map(|it| format!("scaling {} {}", it.quantity.key(), it.cell_id)));
        for row in &map.success {
            said.extend(
                row.classes.iter().map(|it| format!("failed {} {}", row.arm, stable_name(&it.class))),
            );
        }
        let reversed = map.overall.iter().filter_map(|row| row.per_cpu_second_ratio.as_ref());
        said.extend(reversed.flat_map(|it| &it.reversed).map(|cell| format!("reversed {cell}")));
    }
    for it in &result.cpu_differences {
        let (part, amount) = &it.parts[0];
        let is_known = amount.interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0);
        said.extend(is_known.then(|| format!("{} {} {}", it.arm, part.key(), it.cell_id)));
    }
    said
}

fn expected<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into_iter().collect()
}

#[test]
fn a_sound_map_says_nothing_of_defects() {
    let spec = spec();
    let mut trials = sound(&spec);
    let result = judged(&spec, &trials);
    assert_eq!(said(&result), expected([]));
    assert!(result.checks.iter().any(|check| check.name == CheckName::SteadyMachine), "{:?}", result.checks);
    add_evidence(&mut trials, 0.0, None);
    let result = judged(&spec, &trials);
    assert_eq!(result.cpu_differences.len(), spec.cells.len());
    assert_eq!(said(&result), expected([]));
}

#[test]
fn of_sound_maps_nothing_is_said_whichever_rounds_they_meet() {
    let spec = spec();
    for (seed, effect) in (0..10).flat_map(|seed| [(seed, 0.0), (seed, 0.15), (seed, -0.15)]) {
        let result = judged(&spec, &trials(&spec, |_| effect, seed));
        assert_eq!(said(&result), expected([]), "seed {seed}, {effect}");
    }
}

#[test]
fn a_cell_that_the_generator_limited_is_named() {
    let spec = spec();
    let mut trials = sound(&spec);
    for trial in trials.iter_mut().filter(|trial| trial.cell_id == "c4000-d1-w2") {
        trial.load.as_mut().expect("it was loaded").generator_bound = true;
    }
    let names = ["generator-headroom", "generator-limited c4000-d1-w2"];
    assert_eq!(said(&judged(&spec, &trials)), expected(names));
}

#[test]
fn a_machine_that_another_process_takes_half_way_is_named() {
    let spec = spec();
    let mut trials = sound(&spec);
    for trial in trials.iter_mut().filter(|trial| trial.block >= ROUNDS / 2) {
        let load = trial.load.as_mut().expect("it was loaded");
        load.observed.as_mut().expect("it was observed").noise.foreign_cpus = 0.93;
        for slice in &mut trial.slices {
            (slice.server_cpu_ns, slice.length_ns) = (slice.server_cpu_ns * 6 / 5, slice.length_ns * 2);
        }
    }
    let result = judged(&spec, &trials);
    assert_eq!(said(&result), expected(["steady-machine"]));
    let check =
        result.checks.iter().find(|check| check.name == CheckName::SteadyMachine).expect("it is there");
    let Finding::MachineDrift {
        foreign_cpus,
        server_cpu: Some(server_cpu),
        throughput: Some(throughput),
        ..
    } = check.detail
    else {
        panic!("{check:?}")
    };
    assert_eq!(foreign_cpus, (0.0, 0.93));
    assert!((1.1..1.3).contains(&server_cpu) && (0.45..0.55).contains(&throughput), "{check:?}");
}

#[test]
fn recorded_rounds_of_a_machine_that_nobody_disturbed_are_steady() {
    const STUDIES: u64 = 20;
    let spec = spec();
    let is_steady = |seed: &u64| {
        let result = judged(&spec, &trials(&spec, |_| 0.0, *seed));
        result.checks.iter().any(|check| check.name == CheckName::SteadyMachine && check.passed)
    };
    assert_eq!((0..STUDIES).filter(is_steady).count() as u64, STUDIES);
}

fn reading(source: &str, key: &str, each: f64) -> Reading {
    Reading { source: source.to_owned(), key: key.to_owned(), value: each * MESSAGES }
}

/// An additional system call per message, and its time.
type FurtherCall = (&'static str, f64);

/// Evidence of a server that works for `own_ns` between a receive and a send, and optionally makes an additional
/// call.
fn evidence(own_ns: f64, further: Option<FurtherCall>) -> Vec<EvidenceSlice> {
    const CALL_NS: f64 = 1_500.0;
    let mut calls = BTreeMap::from([("sendto", (1.0, CALL_NS)), ("recvfrom", (1.0, CALL_NS))]);
    // The engine's clock continues during calls that are not the engine's.
    let mut outside_ns = own_ns;
    if let Some((call, ns)) = further {
        outside_ns += if calls.contains_key(call) { 0.0 } else { ns };
        let (count, on_cpu_ns) = calls.entry(call).or_default();
        (*count, *on_cpu_ns) = (*count + 1.0, *on_cpu_ns + ns);
    }
    let mut readings =
        vec![reading("engine", "outside-calls-ns", outside_ns), reading("trace", "is-split", 1.0 / MESSAGES)];
    for (call, (count, on_cpu_ns)) in &calls {
        readings.extend([
            reading(&format!("call {call}"), "count", *count),
            reading(&format!("call {call}"), "on-cpu-ns", *on_cpu_ns),
        ]);
    }
    let calls_ns: f64 = calls.values().map(|(_, on_cpu_ns)| on_cpu_ns).sum();
    let slice = |rung, readings| EvidenceSlice {
        rung,
        slice: SliceRecord {
            messages: MESSAGES as u64,
            server_cpu_ns: ((calls_ns + own_ns) * MESSAGES) as u64,
            ..SliceRecord::default()
        },
        readings,
    };
    vec![slice(Rung::Process, Vec::new()), slice(Rung::Programs, readings)]
}

/// Relative duration of an additional call in each of six rounds.
const CALL_SCATTER: [f64; 6] = [0.95, 1.02, 1.04, 0.97, 1.03, 0.99];

/// Adds evidence to six rounds of every cell; the arm's own work is `slower_ns` longer than the baseline's, and it
/// optionally makes an additional call.
fn add_evidence(trials: &mut [TrialRecord], slower_ns: f64, further: Option<FurtherCall>) {
    for trial in trials.iter_mut().filter(|trial| trial.block < 6 && !trial.repeat) {
        let is_arm = trial.arm == "uring";
        let scatter = f64::from((trial.block * 3 + u32::from(is_arm)) % 7) * 10.0;
        let own_ns = 1_000.0 + scatter + if is_arm { slower_ns } else { 0.0 };
        let further = further.filter(|_| is_arm);
        let further = further.map(|(call, ns)| (call, ns * CALL_SCATTER[trial.block as usize]));
        trial.evidence = evidence(own_ns, further);
    }
}

#[test]
fn a_handler_that_works_a_microsecond_longer_leads_the_table_of_parts_as_the_servers_own_work() {
    let spec = spec();
    let mut trials = sound(&spec);
    add_evidence(&mut trials, 1_000.0, None);
    let result = judged(&spec, &trials);
    let names: BTreeSet<String> = spec.cells.iter().map(|cell| format!("uring server {}", cell.id)).collect();
    assert_eq!(said(&result), names);
    for it in &result.cpu_differences {
        let (CpuPart::Server, amount) = &it.parts[0] else { panic!("{it:?}") };
        let (low, high) = amount.interval.expect("there are six rounds");
        assert!(low <= 1_000.0 && 1_000.0 <= high && (it.whole.ns - amount.ns).abs() < 1.0, "{it:?}");
    }
}

/// A `getppid` is the shortest possible call; a wake-up is a write to an eventfd; two writes in place of one are an
/// additional send.
#[test]
fn a_system_call_a_wake_up_or_a_send_more_for_each_message_leads_the_table_of_parts_with_its_size() {
    let spec = spec();
    for (call, ns) in [("getppid", 90.0), ("write", 2_600.0), ("sendto", 1_900.0)] {
        let mut trials = sound(&spec);
        add_evidence(&mut trials, 0.0, Some((call, ns)));
        let result = judged(&spec, &trials);
        let names = spec.cells.iter().map(|cell| format!("uring call-{call} {}", cell.id)).collect();
        assert_eq!(said(&result), names, "{call}");
        for it in &result.cpu_differences {
            let (low, high) = it.parts[0].1.interval.expect("there are six rounds");
            assert!(0.0 < low && low <= ns && ns <= high && high < 1.1 * ns, "{call}: {it:?}");
            let sum: f64 = it.parts.iter().map(|(_, amount)| amount.ns).sum();
            assert!((sum - it.whole.ns).abs() < 1e-6, "{call}: {it:?}");
        }
    }
}

#[test]
fn a_study_says_itself_whether_what_its_arguments_plant_leads_with_its_size() {
    let mut spec = spec();
    // It must lead if nothing else differs.
    spec.arms[1].subject = spec.arms[0].subject.clone();
    let Subject::Weir { arguments, .. } = &mut spec.arms[1].subject else { panic!("it is Weir's") };
    *arguments = ["--plant", "getppid"].map(str::to_owned).to_vec();
    let checked = |further| {
        let mut trials = sound(&spec);
        add_evidence(&mut trials, 0.0, further);
        let result = judged(&spec, &trials);
        let check = result.checks.iter().find(|check| check.name == CheckName::PlantedLeads);
        let Some(Check { passed, detail: Finding::PlantedLeads { differences, apart }, .. }) = check else {
            panic!("{check:?}")
        };
        (*passed, *differences, apart.len())
    };
    let cells = spec.cells.len();
    assert_eq!(checked(Some(("getppid", 90.0))), (true, cells as u64, 0));
    assert_eq!(
        checked(Some(("write", 2_600.0))),
        (false, cells as u64, cells),
        "it is not where it was planted"
    );
    assert_eq!(checked(None), (false, cells as u64, cells), "it is not there");
}

/// Adds resets to every n-th round of an arm in a cell, which are excluded for them.
fn lose(trials: &mut [TrialRecord], cell_id: &str, every: u32) {
    let own = trials.iter_mut().filter(|it| it.arm == "uring" && it.cell_id == cell_id);
    for trial in own.filter(|trial| trial.block % every == 0) {
        let load = trial.load.as_mut().expect("it was loaded");
        load.failures = FailureCounts { reset: 3, ..FailureCounts::default() };
        trial.exclusions.push(Exclusion::Errors { count: 3 });
    }
}

#[test]
fn an_arm_that_loses_responses_is_named_with_the_class_and_where_it_loses_many_it_is_not_compared() {
    let spec = spec();
    let mut trials = sound(&spec);
    lose(&mut trials, "c100-d1-w1", 20);
    let few = judged(&spec, &trials);
    assert_eq!(said(&few), expected(["failed uring reset"]));
    lose(&mut trials, "c100-d1-w1", 3);
    let many = judged(&spec, &trials);
    assert_eq!(said(&many), expected(["failed uring reset", "trials-failed"]));
    let difference = |result: &StudyResult| {
        let cell = result.grids[0].cells.iter().find(|cell| cell.cell_id == "c100-d1-w1").expect("it is one");
        cell.difference
    };
    assert_eq!([difference(&few), difference(&many)], [Difference::More, Difference::Invalid]);
}

#[test]
fn a_mean_that_a_cell_contradicts_names_it() {
    let spec = spec();
    let effect = |cell: &CellSpec| if cell.connections == 4000 { -0.1 } else { 0.25 };
    let result = judged(&spec, &trials(&spec, effect, 29));
    assert_eq!(said(&result), expected(["reversed c4000-d1-w1", "reversed c4000-d1-w2"]));
}

#[test]
fn an_efficiency_above_105_per_cent_is_an_alarm_with_what_may_be_behind_it() {
    let spec = spec();
    let mut trials = sound(&spec);
    // With two workers 2.6 times the throughput: 130 % of ideal scaling.
    for trial in trials.iter_mut().filter(|trial| trial.cell_id.ends_with("w2")) {
        trial.slices.iter_mut().for_each(|slice| slice.length_ns = slice.length_ns * 5 / 13);
    }
    let result = judged(&spec, &trials);
    let names = ["c1-d1-w2", "c100-d1-w2", "c4000-d1-w2"].map(|cell| format!("scaling throughput {cell}"));
    assert_eq!(said(&result), names.into_iter().collect());
    let alarms = result.overviews[0].scaling_lines.iter().filter(|it| it.is_alarm);
    for alarm in alarms {
        let idle = alarm.candidates.iter().find(|it| it.cause == ScalingCause::ServerIdle);
        assert_eq!(idle.and_then(|it| it.holds), Some(true), "a quarter of a CPU is in use: {alarm:?}");
    }
}
