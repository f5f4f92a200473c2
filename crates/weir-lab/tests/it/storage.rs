//! Studies of storage through the same sessions and the same judge.

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
