//! Flags that people try first, of `weir study` and of the commands that read its results.

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
fn a_misspelt_study_is_told_the_one_that_is_meant_and_its_help_describes_it() {
    expect_refusal(&weir(&["study", "quik"]), 2, &["\"quik\"", "did you mean quick?", "--list"]);
    expect_refusal(&weir(&["study", "list"]), 2, &["weir study --list"]);
    for words in [&["help", "study", "quick"][..], &["study", "quick", "--help"]] {
        let said = weir(words);
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{words:?}");
        assert!(
            said.stdout.contains("arms: epoll, uring") && said.stdout.contains("--dry-run"),
            "{}",
            said.stdout
        );
    }
    let apart = weir(&["study", "quick", "--arm", "mine", "./server --port {port}"]);
    assert_eq!(apart.code, Some(2));
    assert!(apart.stderr.contains("--arm NAME="), "{}", apart.stderr);
}

#[test]
fn help_is_in_the_language_that_is_asked_for() {
    for (words, expected) in [
        (
            &["--help", "--lang", "ko"][..],
            ["사용법: weir", "명령:", "이 머신에서 실행하고 측정할 수 있는 것"],
        ),
        (&["--lang", "zh", "--help"], ["用法：weir", "命令:", "运行实验"]),
        (&["help", "study", "--lang", "ko"], ["사용법: weir study", "--rounds", "라운드 수"]),
        (&["study", "--help", "--lang=zh"], ["用法：weir study", "--only-arms", "第一个为基线"]),
    ] {
        let said = weir(words);
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{words:?}");
        assert!(expected.iter().all(|it| said.stdout.contains(it)), "{words:?}: {}", said.stdout);
    }
}

#[test]
fn a_plan_names_the_programs_that_are_not_there_and_what_goes_with_the_arms_that_are_gone() {
    let own = ["--arm", "old=./no-such-server {port} {content}", "--arm", "new=./no-other {port} {content}"];
    let said = weir(&[&["study", "http", "--dry-run", "--lang", "en", "--only-arms"], &own[..]].concat());
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let missing = said.stdout.split("missing here").nth(1).unwrap_or_default();
    assert!(missing.contains("old: ") && missing.contains("./no-such-server"), "{}", said.stdout);
    assert!(
        said.stdout.contains("left out") && said.stdout.contains("4 published figures"),
        "{}",
        said.stdout
    );
}

#[test]
fn a_level_that_cannot_be_names_its_flag() {
    let zero = weir(&["study", "tps", "--dry-run", "--levels", "connections=0"]);
    expect_refusal(&zero, 2, &["weir: --levels connections=0: "]);
    let kernel = weir(&["study", "quick", "--dry-run", "--kernels", "5"]);
    expect_refusal(&kernel, 2, &["weir: --kernels: arm uring-as-on-5"]);
}

#[test]
fn a_report_can_be_refreshed_without_being_read() {
    let run = stored("study-flags-quiet");
    let said = weir(&["report", shown(&run), "--quiet", "--lang", "en"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), ""), "{}", said.stderr);
    assert!(said.stderr.starts_with("report: ") && run.join("report.md").exists(), "{}", said.stderr);
    let beside = std::fs::read_dir(&*run).expect("a folder").map(|it| it.expect("an entry").file_name());
    let logs: Vec<_> = beside.filter(|name| name.to_string_lossy().starts_with("study.db-")).collect();
    assert!(logs.is_empty(), "{logs:?}");
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
