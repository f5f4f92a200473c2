//! `weir storage capture`: with root, tracefs and a disk it leaves a trace; without them it says what is missing.

use std::fs;

use super::harness::{expect_refusal, folder, weir};

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
    assert_eq!(fs::read_dir(&*folder).expect("the folder").count(), 0);
}

#[test]
fn a_capture_is_a_trace_that_can_be_replayed_or_the_reason_is_told() {
    let folder = folder("storage-capture");
    let (target, out) = (folder.join("data"), folder.join("trace.csv"));
    fs::write(&target, [7; 4096]).expect("the folder is ours");
    let path = |path: &std::path::Path| path.to_str().expect("a plain path").to_owned();
    let said =
        weir(&["storage", "capture", &path(&target), "--duration", "50ms", "--out", &path(&out), "--quiet"]);
    match said.code {
        Some(0) => {
            let replay = weir(&["storage", "simulate", "--trace", &path(&out), "-p", "interrupt"]);
            assert_eq!(replay.code, Some(0), "{}", replay.stderr);
        }
        // Nobody touched the disk meanwhile.
        Some(1) => assert!(said.stderr.contains("no request reached the disk"), "{}", said.stderr),
        code => {
            let reasons = ["tracefs", "need root", "no block tracepoints", "no block device"];
            assert_eq!(code, Some(13), "{}", said.stderr);
            assert!(reasons.iter().any(|reason| said.stderr.contains(reason)), "{}", said.stderr);
            println!("skipped: {}", said.stderr.trim());
        }
    }
    assert!(said.code == Some(0) || !out.exists());
}
