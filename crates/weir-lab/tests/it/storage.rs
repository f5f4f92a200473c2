//! Studies of storage, with the same sessions and the same judge.

use weir_lab::{
    fake::{FakeArm, FakeFault, FakeLauncher, FakeStates},
    host_defaults::HostDefaults,
    study_file,
};
use weir_record::{check::CheckName, metric::Metric, spec::StudySpec, verdict::Verdict};

use crate::fixture::{comparison, start};

const CELL: &str = "randread-b4096-qd1";

const STUDY: &str = r#"
name = "waits"
protocol = "storage"
alternate = false
equivalence_margin = 0.05
exploratory_blocks = 12

[factors]
background_depth = [0, 32, 128]

[primary]
background_depth = 32

[[arm]]
name = "interrupt"
engine = "io_uring"

[[arm]]
name = "poll"
engine = "io_uring"
wait = "poll"
"#;

fn study() -> StudySpec {
    let host_defaults =
        HostDefaults { seed: 11, server_cpus: vec![0], load_cpus: vec![1], ..HostDefaults::default() };
    study_file::parse(std::path::Path::new("waits.toml"), STUDY, &host_defaults).expect("it is right").spec
}

fn launcher(poll: FakeArm) -> FakeLauncher {
    FakeLauncher::new(11, FakeStates::Near, &[("interrupt", FakeArm::costing(25.0)), ("poll", poll)])
}

#[test]
fn a_disk_is_judged_by_cpu_rate_and_latency_in_closed_loop() {
    let outcome = start("disk", &study(), &mut launcher(FakeArm::costing(40.0))).expect("it runs");
    assert!(outcome.result.complete);
    let interval = |metric| comparison(&outcome, CELL, metric).interval.expect("it was measured");
    for metric in
        [Metric::ServerCpuPerMessage, Metric::MachineCpuPerMessage, Metric::LatencyP50, Metric::LatencyP99]
    {
        assert!(interval(metric).0 > 1.0, "{metric:?}");
        let verdict = comparison(&outcome, CELL, metric).verdict;
        assert_eq!(verdict, Verdict::NoClaim, "the cell is looked at: {metric:?}");
    }
    assert!(interval(Metric::Throughput).1 < 1.0, "nothing but the job limits it");
}

#[test]
fn checks_that_storage_cannot_have_are_named_and_not_passed_in_silence() {
    let outcome = start("disk-checks", &study(), &mut launcher(FakeArm::costing(40.0))).expect("it runs");
    let names: Vec<&str> = outcome.result.checks.iter().map(|check| check.name.as_str()).collect();
    for name in ["operations-counted", "littles-law", "processes", "baseline-against-itself", "not-asked"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    for name in ["generator-headroom", "rate-kept", "steady-warm-up", "bytes-verified"] {
        assert!(!names.contains(&name), "{name} in {names:?}");
    }
    let not_asked =
        outcome.result.checks.iter().find(|check| check.name == CheckName::NotAsked).expect("it is there");
    assert_eq!(not_asked.detail, weir_record::finding::Finding::NotAsked);
}

#[test]
fn an_arm_that_this_machine_refuses_is_missing_and_the_others_go_on() {
    let refused = FakeArm { fault: FakeFault::Environment, ..FakeArm::costing(40.0) };
    let outcome = start("disk-refused", &study(), &mut launcher(refused)).expect("it runs");
    assert_eq!(outcome.result.missing_arms[0].name, "poll");
}

const OVER_TIME: &str = r#"
name = "over-time"
protocol = "storage"
blocks = 6

[[cell]]
role = "primary"
device = "model"
background_depth = 32

[[cell]]
device = "model"
background_depth = 32
core_steps = [0, 1, 4]
window = "2s"
arms = ["half"]

[[arm]]
name = "poll"
wait = "poll"

[[arm]]
name = "half"
wait = "linux-mean:0.5"

[[published_level]]
series = "load"
arm = "half"
cores = 4
metric = "iops"
of = "first"
sense = "about"
level = 0.1
claim = "a tenth"
"#;

#[test]
fn a_load_that_changes_is_one_trial_that_needs_no_baseline_and_claims_nothing() {
    let read = |text: &str| {
        let host_defaults = HostDefaults::default();
        let study = study_file::parse(std::path::Path::new("t.toml"), text, &host_defaults);
        study.map(|study| study.spec).map_err(|error| error.to_string())
    };
    let spec = read(OVER_TIME).expect("it is right");
    let cell = &spec.cells[1];
    assert_eq!((cell.id.as_str(), cell.blocks, cell.warmup_ns_max), ("model-bg32-steps-0-1-4", 1, 0));
    assert_eq!((cell.trial_window_ns(), cell.series_interval_ns()), (6_000_000_000, 100_000_000));
    assert_eq!(spec.published_levels.len(), 1);
    for (from, to, expected) in [
        ("core_steps = [0, 1, 4]", "core_steps = [17]", "core_steps: 17 is out of range"),
        ("core_steps = [0, 1, 4]", "core_steps = [1]\nblocks = 3", "leave blocks out"),
        ("core_steps = [0, 1, 4]", "core_steps = [1]\nrole = \"confirmatory\"", "leave `role` out"),
        (
            "device = \"model\"\nbackground_depth = 32\ncore_steps",
            "device = \"model\"\ncore_steps",
            "say background_depth",
        ),
        (
            "device = \"model\"\nbackground_depth = 32\ncore",
            "device = \"synthetic:calm\"\nbackground_depth = 32\ncore",
            "load already",
        ),
        ("metric = \"iops\"", "metric = \"miss-rate\"", "say metric = \"iops\""),
        ("sense = \"about\"", "sense = \"nearly\"", "there is no sense \"nearly\""),
        ("arm = \"half\"\ncores", "arm = \"third\"\ncores", "there is no arm \"third\""),
    ] {
        let text = OVER_TIME.replace(from, to);
        assert_ne!(text, OVER_TIME, "{from}");
        let said = read(&text).expect_err("it is wrong");
        assert!(said.contains(expected), "{said}");
    }
}
