//! Flags of `weir study` and of what reads its results that people try first.

use serde_json::Value;

use super::{
    harness::{Folder, TWO_ARMS, expect_refusal, folder, shown, study_head, weir},
    study_earlier::store_run,
};

/// A stored run in which poll costs four microseconds and epoll five.
fn stored(name: &str) -> Folder {
    let folder = folder(name);
    store_run(&folder, &(study_head(12, "2min") + TWO_ARMS), 1, 4.0);
    folder
}

#[test]
fn every_built_in_study_is_listed_with_its_question() {
    let english = weir(&["study", "--list"]);
    assert_eq!(english.code, Some(0), "{}", english.stderr);
    for name in ["quick", "why", "tps", "http-confounders", "survey-storage", "gateway", "polling", "peers"] {
        let line = english.stdout.lines().find(|line| line.split(' ').next() == Some(name));
        assert!(line.is_some_and(|line| line.ends_with('?')), "{name}: {}", english.stdout);
    }
    let korean = weir(&["study", "--list", "--lang", "ko"]);
    assert!(korean.stdout.contains("이 머신의 에코 서버"), "{}", korean.stdout);
}

#[test]
fn rounds_and_time_change_the_plan_and_more_rounds_are_not_cut_by_the_cap_of_the_file() {
    let plan = |words: &[&str]| {
        let said = weir(&[&["study", "quick", "--dry-run", "--lang", "en"], words].concat());
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        said.stdout
    };
    let long = plan(&["--rounds", "540"]);
    assert!(long.contains("324 rounds"), "three fifths of the rounds are at the deciding rate: {long}");
    assert!(!long.contains("starts after 150 s"), "{long}");
    let capped = plan(&["--rounds", "540", "--time", "3min"]);
    assert!(capped.contains("starts after 3 min"), "{capped}");
    expect_refusal(&weir(&["study", "quick", "--dry-run", "--rounds", "1"]), 2, &["--rounds"]);
    expect_refusal(&weir(&["study", "quick", "--dry-run", "--time", "soon"]), 2, &["--time"]);
}

#[test]
fn a_mistake_in_a_flag_names_the_flag_and_one_in_a_file_its_line() {
    let unknown = weir(&["study", "quick", "--dry-run", "--fail-if", "foo > 1"]);
    expect_refusal(&unknown, 2, &["weir: --fail-if: \"foo > 1\""]);
    expect_refusal(&weir(&["study", "quick", "--dry-run", "--arm", "own=./server"]), 2, &["weir: --arm: "]);
    let folder = folder("study-flags-file");
    let file = folder.join("own.toml");
    std::fs::write(&file, format!("connections = 3\n{}{TWO_ARMS}", study_head(12, "2min")))
        .expect("it is written");
    let words = ["study", shown(&file), "--dry-run", "--fail-if", "cpu > 3%"];
    expect_refusal(&weir(&words), 2, &["own.toml:1: connections"]);
}

#[test]
fn a_stored_run_is_judged_by_thresholds_and_told_in_short() {
    let run = stored("study-flags-stored");
    let judged = |line: &str| weir(&["report", shown(&run), "--fail-if", line]).code;
    assert_eq!(judged("cpu > 3%"), Some(0), "it is 0.8");
    assert_eq!(judged("cpu_per_message ratio < 0.95"), Some(10));
    assert_eq!(judged("poll cpu > 3us"), Some(10), "absolute figures are those of this run");
    let unknown = ["report", shown(&run), "--fail-if", "cost > 1"];
    expect_refusal(&weir(&unknown), 2, &["--fail-if \"cost > 1\""]);
    let said = weir(&["export", shown(&run), "--format", "summary"]);
    let summary: Value = serde_json::from_str(&said.stdout).expect("it is JSON");
    assert_eq!((&summary["verdict"], &summary["primary"]["arm"]), (&"better".into(), &"poll".into()));
    let rows = summary["effects"].as_array().expect("there are rows");
    assert!(
        rows.iter().all(|row| row["question"] == "comparison" && row.get("values").is_none()),
        "{rows:?}"
    );
}
