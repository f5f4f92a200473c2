//! Defects that are planted into whole maps, with real servers, a real generator and a real CPU hog: each is reported
//! by name, and the sound parts beside it are not. The studies are `docs/studies/planted-*.toml`, which a user can run
//! by hand.
//!
//! They check times, and the other work on the machine. So they are not part of `it`: they run one after the other,
//! only with `WEIR_SLOW_TESTS=1`, on an otherwise idle machine.

#![expect(clippy::print_stdout, reason = "tests say what they skip")]

#[expect(dead_code, reason = "the other tests of the program need more of it")]
#[path = "../it/harness.rs"]
mod harness;
#[path = "../it/still_running.rs"]
mod still_running;

use std::{
    collections::BTreeSet,
    env, hint,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use harness::{PATIENCE, Running, folder, judged, shown, study_file, weir};
use weir_record::{
    check::CheckName,
    finding::Finding,
    grid::{Difference, GridFactor},
    metric::Metric,
    overview::ScalingCause,
    stable_name,
    study::StudyResult,
};

const SCALING: &str = include_str!("../../../../docs/studies/planted-scaling.toml");
const REVERSAL: &str = include_str!("../../../../docs/studies/planted-reversal.toml");
const GENERATOR: &str = include_str!("../../../../docs/studies/planted-generator.toml");
const DRIFT: &str = include_str!("../../../../docs/studies/planted-drift.toml");

/// Reserves the machine for one test. `None`, and a line that says so, without slow tests.
fn alone() -> Option<MutexGuard<'static, ()>> {
    static MACHINE: Mutex<()> = Mutex::new(());
    if env::var_os("WEIR_SLOW_TESTS").is_none() {
        println!("skipped: it measures for a minute; WEIR_SLOW_TESTS=1 runs it");
        return None;
    }
    Some(MACHINE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The defects in a result, each with its subject.
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
        said.extend(it.reasons.iter().filter(is_told).map(|reason| format!("{} {}", reason.code(), it.arm)));
    }
    said.extend(of_grids(result));
    said.extend(of_overviews(result));
    said
}

/// Cells that the generator limited, and those that a mean by level hides.
fn of_grids(result: &StudyResult) -> BTreeSet<String> {
    let mut said = BTreeSet::new();
    for grid in &result.grids {
        let limited = grid.cells.iter().filter(|cell| cell.difference == Difference::GeneratorLimited);
        said.extend(limited.map(|cell| format!("generator-limited {} {}", grid.arm, cell.cell_id)));
        let reversed = grid.marginals.iter().flat_map(|mean| &mean.reversed);
        said.extend(reversed.map(|cell| format!("reversed {} {cell}", grid.arm)));
    }
    said
}

/// What scales too well, what failed, and cells that a mean over all hides.
fn of_overviews(result: &StudyResult) -> BTreeSet<String> {
    let mut said = BTreeSet::new();
    for map in &result.overviews {
        let alarms = map.scaling_lines.iter().filter(|it| it.is_alarm);
        said.extend(alarms.map(|it| format!("scaling {} {} {}", it.arm, it.quantity.key(), it.cell_id)));
        for row in &map.success {
            said.extend(
                row.classes.iter().map(|it| format!("failed {} {}", row.arm, stable_name(&it.class))),
            );
        }
        for row in &map.overall {
            let ratios = [&row.throughput_ratio, &row.per_cpu_second_ratio].into_iter().flatten();
            let reversed = ratios.flat_map(|ratio| &ratio.reversed);
            said.extend(reversed.map(|cell| format!("reversed {} {cell}", row.arm)));
        }
    }
    said
}

fn expected<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into_iter().collect()
}

#[test]
fn an_arm_that_scales_too_well_is_named_in_every_line_with_what_else_may_have_changed() {
    let Some(_machine) = alone() else { return };
    let (_, result) = judged("planted-scaling", SCALING);
    let names = expected([
        "scaling slow-alone throughput c16-d1-m64-w2-closed",
        "scaling slow-alone throughput c24-d1-m64-w2-closed",
        "scaling slow-alone messages-per-cpu-second c16-d1-m64-w2-closed",
        "scaling slow-alone messages-per-cpu-second c24-d1-m64-w2-closed",
    ]);
    assert_eq!(said(&result), names);
    for alarm in result.overviews[0].scaling_lines.iter().filter(|it| it.is_alarm) {
        assert!(alarm.candidates.iter().all(|it| it.holds.is_some()), "{alarm:?}");
        let generator = alarm.candidates.iter().find(|it| it.cause == ScalingCause::GeneratorAtLimit);
        assert_eq!(generator.and_then(|it| it.holds), Some(false), "it waits for a slow server: {alarm:?}");
    }
}

#[test]
fn a_mean_names_the_cells_that_it_hides_and_one_over_cells_that_agree_names_none() {
    let Some(_machine) = alone() else { return };
    let (told, result) = judged("planted-reversal", REVERSAL);
    let names = expected(["reversed reversing c4-d1-m64-closed", "reversed reversing c8-d1-m64-closed"]);
    assert_eq!(said(&result), names);
    for metric in [Metric::ServerCpuPerMessage, Metric::Throughput] {
        let grid = result.grids.iter().find(|grid| grid.arm == "reversing" && grid.metric == metric);
        let means = &grid.expect("it was compared").marginals;
        let reversed = |factor: GridFactor| -> Vec<usize> {
            means.iter().filter(|mean| mean.factor == factor).map(|mean| mean.reversed.len()).collect()
        };
        assert_eq!(reversed(GridFactor::Connections), [1, 1], "{metric:?}: {means:?}");
        assert_eq!(reversed(GridFactor::Workers), [0, 0], "{metric:?}: {means:?}");
    }
    // Line breaks depend on the text before.
    let text = told.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("the mean over all cells hides cells that go the other way"), "{text}");
}

#[test]
fn a_cell_in_closed_loop_that_the_generator_limits_is_named_and_those_beside_it_are_not() {
    const LIMITED: &str = "c16-d128-m16-closed";
    let Some(_machine) = alone() else { return };
    let (_, result) = judged("planted-generator", GENERATOR);
    let names = expected(["generator-headroom", "generator-limited same c16-d128-m16-closed"]);
    assert_eq!(said(&result), names);
    let bound = result.arms.iter().filter(|arm| arm.generator_bound);
    let bound: Vec<(&str, &str)> = bound.map(|arm| (arm.cell_id.as_str(), arm.arm.as_str())).collect();
    assert_eq!(bound, [(LIMITED, "plain"), (LIMITED, "same")]);
    let check =
        result.checks.iter().find(|check| check.name == CheckName::GeneratorHeadroom).expect("it is there");
    let Finding::GeneratorLimit { bound, trials } = check.detail else { panic!("{check:?}") };
    assert!(bound > 0 && 4 * bound <= trials, "at most every trial of one cell of four: {check:?}");
    let overall = &result.overviews[0].overall;
    assert!(overall.iter().all(|row| (row.cells, row.cells_bound) == (4, 1)), "{overall:?}");
}

/// Uses a CPU until it is dropped. To a study this is another user's process.
struct Hog {
    has_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hog {
    fn start() -> Self {
        let has_ended = Arc::new(AtomicBool::new(false));
        let own = Arc::clone(&has_ended);
        let compute = move || {
            while !own.load(Ordering::Relaxed) {
                hint::spin_loop();
            }
        };
        Self { has_ended, thread: Some(thread::spawn(compute)) }
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It cannot panic.
            let _ = thread.join();
        }
    }
}

#[test]
fn a_machine_that_another_process_takes_half_way_is_named_and_one_that_is_left_alone_is_not() {
    let Some(_machine) = alone() else { return };
    let (_, left_alone) = judged("planted-drift", DRIFT);
    assert_eq!(said(&left_alone), expected([]));
    let folder = folder("planted-drift-hog");
    let (file, out) = study_file(&folder, DRIFT);
    let mut study = Running::weir(&["study", &file, "--out", shown(&out)]);
    study.error_line_with("30/60 blocks");
    let hog = Hog::start();
    let code = study.wait(4 * PATIENCE);
    drop(hog);
    assert!(matches!(code, 0 | 11 | 12), "{code}: {}", study.rest_of_errors());
    let data: serde_json::Value =
        serde_json::from_str(&weir(&["export", shown(&out)]).stdout).expect("it is JSON");
    let result: StudyResult = serde_json::from_value(data["result"].clone()).expect("the judged result");
    assert_eq!(said(&result), expected(["steady-machine"]));
    let check =
        result.checks.iter().find(|check| check.name == CheckName::SteadyMachine).expect("it is there");
    let Finding::MachineDrift { foreign_cpus: (first, second), foreign_cpus_change_max, .. } = check.detail
    else {
        panic!("{check:?}")
    };
    assert!(second > first + foreign_cpus_change_max, "{check:?}");
}
