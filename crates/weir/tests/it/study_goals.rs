//! Comparisons, goals and neighbours with real processes: goals that are met or missed, and the cause.

use std::fs;

use rustix::process::Signal;
use weir_record::{
    effect::Effect,
    finding::{ExclusionKind, Finding},
    goal::Outcome,
    study::StudyResult,
};

use super::harness::{PATIENCE, Running, TWO_ARMS, folder, shown, study_file, until, weir};

/// Three cells, one of them with a neighbour that stays and one with a neighbour that does not.
fn study(stays: &str, rounds: u32) -> String {
    format!(
        r#"name = "goals"
saturation = true
rounds = {rounds}
slice = "5ms"
permutations = 1
time_cap = "2min"

[[cell]]
role = "primary"
connections = 1

[[cell]]
connections = 4
neighbours = ["stays"]
rounds = {rounds}

[[cell]]
connections = 2
neighbours = ["leaves"]
rounds = 2

[[neighbour]]
name = "stays"
command = ["sh", "-c", "test {{port}} -gt 0 && echo ready && exec {stays}"]

[[neighbour]]
name = "leaves"
command = ["sh", "-c", "echo no luck at {{address}} >&2; exit 3"]

[[comparison]]
of = {{ arm = "poll", connections = 4, neighbours = ["stays"] }}
to = {{ connections = 1, neighbours = [] }}
metric = "server-cpu-per-message"
at_most = 1000

[[comparison]]
of = {{ arm = "epoll", connections = 1 }}
to = {{ metric = "generator-cpu-per-message" }}
metric = "server-cpu-per-message"
at_most = 0.0001

[[goal]]
of = {{ arm = "poll", connections = 2, neighbours = ["leaves"] }}
metric = "server-cpu-per-message"
at_most = 1

{TWO_ARMS}"#
    )
}

/// How many processes have this command line.
fn running(command: &str) -> usize {
    let processes = fs::read_dir("/proc").expect("/proc is there").flatten();
    let is_it = |process: &fs::DirEntry| {
        let words = fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
        words.replace('\0', " ").trim() == command
    };
    processes.filter(is_it).count()
}

#[test]
fn goals_are_met_and_missed_by_what_was_measured_and_a_neighbour_that_leaves_is_named() {
    let folder = folder("study-goals");
    // A length of time that no other process sleeps for.
    let stays = format!("sleep {}", 200_000 + std::process::id());
    let (file, out) = study_file(&folder, &study(&stays, 24));
    let said = weir(&["study", &file, "--long", "--out", shown(&out)]);
    assert!(matches!(said.code, Some(0 | 11 | 12)), "{:?} {}{}", said.code, said.stdout, said.stderr);
    let data: serde_json::Value =
        serde_json::from_str(&weir(&["export", shown(&out)]).stdout).expect("it is JSON");
    let result: StudyResult = serde_json::from_value(data["result"].clone()).expect("the judged result");
    let answers: Vec<&Effect> = result.asked().map(|(_, row)| row).collect();
    let [grown, spent, left] = answers[..] else { panic!("{answers:?}") };
    // A machine that changes its state all the time may leave too few rounds in which both cells had the same one.
    let expected = if grown.units < 6 { Outcome::Open } else { Outcome::Met };
    assert_eq!((grown.outcome, grown.is_paired), (Some(expected), false), "{grown:?}");
    assert_eq!((spent.outcome, spent.is_paired), (Some(Outcome::Missed), true), "{spent:?}");
    assert_eq!((left.outcome, left.estimate), (Some(Outcome::Open), None), "{left:?}");
    let [Finding::TrialsFailed { first, failed: 2, .. }] = &left.reasons[..] else { panic!("{left:?}") };
    assert_eq!(first.reason, Some(ExclusionKind::NeighbourFailed));
    let reason = first.said.as_deref().unwrap_or_default();
    assert!(reason.starts_with("leaves: exited with status 3: no luck at 127.0.0.1:"), "{reason}");
    assert!(said.stdout.contains("Goals and further comparisons"), "{}", said.stdout);
    assert_eq!(running(&stays), 0, "{stays} is left");
}

#[test]
fn an_interrupted_study_leaves_no_neighbour() {
    let folder = folder("study-neighbours-interrupted");
    let stays = format!("sleep {}", 300_000 + std::process::id());
    let (file, out) = study_file(&folder, &study(&stays, 400));
    let mut study = Running::weir(&["study", &file, "--out", shown(&out)]);
    until("its neighbour", || running(&stays) > 0);
    study.signal(Signal::INT);
    assert_eq!(study.wait(PATIENCE), 130);
    assert_eq!(running(&stays), 0, "{stays} is left");
}
