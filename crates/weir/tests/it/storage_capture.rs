//! `weir storage capture`: with root, tracefs and a disk it leaves a trace; without them it says what is missing.

use std::fs;

use super::harness::{Running, expect_refusal, folder, shown, weir};

#[test]
fn mistakes_are_told_in_one_sentence_and_leave_no_file() {
    let folder = folder("storage-capture-mistakes");
    let out = folder.join("trace.csv");
    let out = out.to_str().expect("a plain path");
    let cases: [(&[&str], i32, &[&str]); 4] = [
        (&["/nowhere/at/all"], 2, &["/nowhere/at/all does not exist"]),
        (&["/proc/self/stat"], 13, &["/proc/self/stat lies on no block device"]),
        (&["/proc/self/stat", "--operations", "0"], 2, &["--operations"]),
        (&["/proc/self/stat", "--duration", "soon"], 2, &["--duration", "soon"]),
    ];
    for (arguments, code, words) in cases {
        let said = weir(&[&["storage", "capture"], arguments, &["--out", out]].concat());
        expect_refusal(&said, code, words);
    }
    let onto_a_folder = weir(&["storage", "capture", "/proc/self/stat", "--out", shown(&folder)]);
    expect_refusal(&onto_a_folder, 2, &["--out", "it is a folder"]);
    let onto_a_device = weir(&["storage", "capture", "/proc/self/stat", "--out", "/dev/null"]);
    expect_refusal(&onto_a_device, 2, &["--out /dev/null", "no regular file"]);
    assert_eq!(fs::read_dir(&*folder).expect("the folder").count(), 0);
    let target = folder.join("data");
    fs::write(&target, "precious").expect("the folder is ours");
    let onto_itself = weir(&["storage", "capture", shown(&target), "--out", shown(&target)]);
    expect_refusal(&onto_itself, 2, &["--out", "data", "name another file"]);
    assert_eq!(fs::read_to_string(&target).expect("it is there"), "precious");
}

#[test]
fn a_capture_ends_at_its_maximum_and_says_so() {
    let folder = folder("storage-capture-full");
    let (target, out) = (folder.join("data"), folder.join("trace.csv"));
    fs::write(&target, vec![7; 1 << 20]).expect("the folder is ours");
    let load =
        Running::weir(&["storage", "run", "--file", shown(&target), "--engine", "pread", "--runtime", "60s"]);
    if !load.next_error_line().is_some_and(|line| line.contains("measuring")) {
        return println!("skipped: this disk cannot be kept busy: {}", load.rest_of_errors());
    }
    let words = ["storage", "capture", shown(&target), "--operations", "5", "--duration", "30s", "--quiet"];
    let said = weir(&[&words[..], &["--out", shown(&out)]].concat());
    if said.code == Some(13) {
        return println!("skipped: {}", said.stderr.trim());
    }
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stdout.starts_with("5 requests in ") && said.stdout.contains("that is the maximum"));
    let trace = fs::read_to_string(&out).expect("a trace");
    assert_eq!(trace.lines().count(), 6, "{trace}");
}

#[test]
fn a_capture_is_a_trace_that_can_be_replayed_or_the_reason_is_told() {
    let folder = folder("storage-capture");
    let (target, out) = (folder.join("data"), folder.join("trace.csv"));
    fs::write(&target, [7; 4096]).expect("the folder is ours");
    let others = folder.join("trace.partial");
    fs::write(&others, "precious").expect("the folder is ours");
    let path = |path: &std::path::Path| path.to_str().expect("a plain path").to_owned();
    let said =
        weir(&["storage", "capture", &path(&target), "--duration", "50ms", "--out", &path(&out), "--quiet"]);
    match said.code {
        Some(0) => {
            let replay = weir(&["storage", "simulate", "--trace", &path(&out), "-p", "interrupt"]);
            assert_eq!(replay.code, Some(0), "{}", replay.stderr);
        }
        // The disk had no requests meanwhile.
        Some(1) => assert!(said.stderr.contains("no request reached the disk"), "{}", said.stderr),
        code => {
            let reasons = ["tracefs", "need root", "no block tracepoints", "no block device"];
            assert_eq!(code, Some(13), "{}", said.stderr);
            assert!(reasons.iter().any(|reason| said.stderr.contains(reason)), "{}", said.stderr);
            println!("skipped: {}", said.stderr.trim());
        }
    }
    assert!(said.code == Some(0) || !out.exists());
    assert_eq!(fs::read_to_string(&others).expect("it is not ours to remove"), "precious");
    let names = 2 + usize::from(said.code == Some(0));
    assert_eq!(fs::read_dir(&*folder).expect("the folder").count(), names, "nothing half is left");
}
