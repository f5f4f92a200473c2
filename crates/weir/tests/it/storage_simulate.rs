//! `weir storage simulate`: no disk, no waiting; the same arguments give the same figures.

use std::fs;

use super::harness::{expect_refusal, folder, weir};

const SHORT: [&str; 4] = ["storage", "simulate", "--job-time", "50ms"];

#[test]
fn every_method_has_a_row_for_each_job_and_what_is_emulated_is_said() {
    let said = weir(&SHORT);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stdout.starts_with("Everything here is emulated"), "{}", said.stdout);
    for word in ["poll", "interrupt", "linux-mean", "pas", "clairvoyant", "Job1", "Job3", "added p99"] {
        assert!(said.stdout.contains(word), "no {word} in {}", said.stdout);
    }
}

#[test]
fn a_seed_gives_the_same_figures_every_time_and_another_one_others() {
    let run = |seed| {
        weir(&[&SHORT[..], &["-p", "linux-mean:0.3", "--armed", "--json", "--seed", seed]].concat()).stdout
    };
    let first = run("5");
    assert_eq!(first, run("5"));
    assert_ne!(first, run("6"));
    let value: serde_json::Value = serde_json::from_str(&first).expect("one object of JSON");
    assert_eq!(value["results"][0]["phases"][2]["name"], "Job3");
    assert_eq!(value["results"][0]["armed"], true);
    assert!(value["results"][0]["events"].as_u64() > Some(1_000));
}

#[test]
fn the_calibration_stands_beside_what_was_published() {
    let said = weir(&["storage", "simulate", "--calibration"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    for word in ["65.4", "639.8", "interrupt", "FAST '26"] {
        assert!(said.stdout.contains(word), "no {word} in {}", said.stdout);
    }
}

#[test]
fn a_trace_is_replayed_and_a_malformed_line_is_named() {
    let folder = folder("storage-simulate");
    let path = folder.join("disk.txt");
    let name = path.to_str().expect("a plain path");
    fs::write(&path, "45us\n44us\n47us\n").expect("the folder is ours");
    let said = weir(&["storage", "simulate", "--trace", name, "-p", "fixed:20us"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stdout.contains("disk.txt") && said.stdout.contains("were recorded"), "{}", said.stdout);
    let paused = weir(&["storage", "simulate", "--trace", name, "-p", "poll", "--pauses"]);
    expect_refusal(&paused, 2, &["--pauses", "disk.txt", "when operations were issued"]);

    fs::write(&path, "45us\nsoon\n").expect("the folder is ours");
    expect_refusal(&weir(&["storage", "simulate", "--trace", name]), 2, &["disk.txt, line 2", "soon"]);
    fs::write(&path, "").expect("the folder is ours");
    expect_refusal(&weir(&["storage", "simulate", "--trace", name]), 2, &["disk.txt holds no operation"]);
}

#[test]
fn a_trace_too_short_for_a_method_to_sleep_says_so() {
    let folder = folder("storage-simulate-short");
    let path = folder.join("short.txt");
    let name = path.to_str().expect("a plain path");
    fs::write(&path, "45us\n".repeat(1000)).expect("the folder is ours");
    let words = ["storage", "simulate", "--trace", name, "-p", "linux-mean", "-p", "fixed:20us"];
    let said = weir(&words);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let note = said.stdout.lines().last().expect("it says something");
    assert!(
        note.starts_with("Never slept in short.txt, which lasts ") && note.contains("linux-mean"),
        "{note}"
    );
    assert!(!note.contains("fixed"), "{note}");
    let json = weir(&[&words[..], &["--json"]].concat());
    let value: serde_json::Value = serde_json::from_str(&json.stdout).expect("one object of JSON");
    assert_eq!(value["notes"], serde_json::json!([note]));
    // Long enough for a few epochs.
    fs::write(&path, "45us\n".repeat(10_000)).expect("the folder is ours");
    assert!(!weir(&words).stdout.contains("Never slept"));
}

#[test]
fn the_table_its_notes_and_mistakes_are_in_the_language_that_is_asked_for() {
    let folder = folder("storage-simulate-told");
    let path = folder.join("short.txt");
    let name = path.to_str().expect("a plain path");
    fs::write(&path, "45us\n".repeat(1000)).expect("the folder is ours");
    for (language, head, note, mistake) in
        [("ko", "방식", "잠들지 않은", "이상이어야"), ("zh", "方法", "从未睡眠", "至少为 1ms")]
    {
        let words = ["storage", "simulate", "--lang", language, "--trace", name, "-p", "linux-mean"];
        let said = weir(&words);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        assert!(said.stdout.contains(head) && said.stdout.contains(note), "{}", said.stdout);
        assert!(!said.stdout.contains("recorded") && !said.stdout.contains("Never"), "{}", said.stdout);
        let refused = weir(&[&words[..], &["--interval", "1us"]].concat());
        expect_refusal(&refused, 2, &["--interval", mistake]);
        let unknown = weir(&["storage", "simulate", "--lang", language, "--seed", "x"]);
        assert_eq!(unknown.code, Some(2));
        assert!(unknown.stderr.contains("--seed") && !unknown.stderr.contains("error"), "{}", unknown.stderr);
        let captured = weir(&["storage", "capture", "/nowhere/at/all", "--out", name, "--lang", language]);
        assert!(captured.code == Some(2) && !captured.stderr.contains("does not"), "{}", captured.stderr);
        let json = weir(&[&words[..], &["--json"]].concat());
        assert!(json.stdout.contains("Never slept"), "JSON does not follow the reader: {}", json.stdout);
    }
}

#[test]
fn mistakes_are_told_in_one_sentence() {
    let cases: [(&[&str], &[&str]); 8] = [
        (&["-p", "poll", "--armed"], &["--predictor", "poll", "no timed sleep"]),
        (&["-p", "purple"], &["--predictor", "purple", "linux-mean"]),
        (&["-p", "linux-mean:7"], &["--predictor", "linux-mean"]),
        (&["-p", "constant:0.9"], &["--predictor", "0 to 0.5"]),
        (&["--job-time", "0s"], &["--job-time", "1ms to 1h"]),
        (&["--job-time", "soon"], &["--job-time", "soon"]),
        (&["--interval", "1us"], &["--interval", "1ms"]),
        (&["--trace", "/nowhere/trace.csv"], &["--trace", "/nowhere/trace.csv"]),
    ];
    for (words, expected) in cases {
        expect_refusal(&weir(&[&["storage", "simulate"], words].concat()), 2, expected);
    }
}
