//! `weir storage sweep` and `weir study polling` as people and scripts use them.

use weir_record::sweep::{SweepResult, SweepWorld};

use super::harness::{Running, expect_refusal, folder, shown, weir};

const SMALL: [&str; 8] =
    ["storage", "sweep", "--job-time", "20ms", "--seeds", "2", "--methods", "poll interrupt linux-mean:0.5"];

#[test]
fn a_sweep_prints_its_judged_result_as_json() {
    let said = weir(&[&SMALL[..], &["--json"]].concat());
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{}", said.stdout);
    let result: SweepResult = serde_json::from_str(&said.stdout).expect("a result");
    assert_eq!((result.plan.world, result.complete, result.parts_done), (SweepWorld::Simulator, true, 6));
    let phases: Vec<&str> = result.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(phases, ["Job1", "Job2", "Job3"]);
    let poll = result.phases[2].method("poll").expect("it was tried");
    assert_eq!(poll.miss_rate.median, 0.0);
    assert!(poll.cpu_share.median > 0.99, "{poll:?}");
}

#[test]
fn a_job_too_short_for_a_method_to_sleep_says_so() {
    let result: SweepResult =
        serde_json::from_str(&weir(&[&SMALL[..], &["--json"]].concat()).stdout).expect("a result");
    let of_job = |job: &str| format!("Never slept in {job}, which lasts 20.0 ms: linux-mean:0.5.");
    for (note, job) in result.notes.iter().zip(["Job1", "Job2", "Job3"]) {
        assert!(note.starts_with(&of_job(job)), "{note}");
    }
    assert_eq!(result.notes.len(), 3);
    assert!(weir(&SMALL).stdout.contains(&result.notes[2]));
    let longer =
        ["storage", "sweep", "--job-time", "300ms", "--seeds", "1", "--methods", "poll linux-mean:0.5"];
    assert!(!weir(&longer).stdout.contains("Never slept"));
}

#[test]
fn the_tables_name_every_phase_and_method() {
    let said = weir(&SMALL);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    for expected in
        ["Simulator", "queueing model", "Job1", "Job2", "Job3", "linux-mean:0.5", "interrupt", "poll"]
    {
        assert!(said.stdout.contains(expected), "{expected}\n{}", said.stdout);
    }
}

#[test]
fn a_sweep_goes_on_where_it_ended_and_asks_before_it_does() {
    let folder = folder("sweep-resume");
    let file = folder.join("parts.jsonl");
    let file = file.to_str().expect("text");
    let first = weir(&[&SMALL[..], &["--out", file]].concat());
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let stored = std::fs::read_to_string(file).expect("the parts");
    assert_eq!(stored.lines().count(), 7);
    expect_refusal(&weir(&[&SMALL[..], &["--out", file]].concat()), 2, &["parts.jsonl exists", "--resume"]);
    // A killed sweep leaves half a line; what was whole is not measured again.
    let whole: usize = stored.lines().take(4).map(|line| line.len() + 1).sum();
    std::fs::write(file, &stored[..whole + 9]).expect("cut");
    let second = weir(&[&SMALL[..], &["--out", file, "--resume", "--json"]].concat());
    assert_eq!(second.code, Some(0), "{}", second.stderr);
    let result: SweepResult = serde_json::from_str(&second.stdout).expect("a result");
    assert!(result.complete);
    assert_eq!(std::fs::read_to_string(file).expect("the parts").lines().count(), 7);
    let other = ["storage", "sweep", "--job-time", "30ms", "--methods", "poll", "--out", file, "--resume"];
    expect_refusal(&weir(&other), 2, &["another source"]);
}

#[test]
fn two_sweeps_do_not_write_to_one_file() {
    let folder = folder("sweep-busy");
    let file = folder.join("parts.jsonl");
    let long = ["storage", "sweep", "--job-time", "1h", "--seeds", "1", "--methods", "poll"];
    let long = [&long[..], &["--out", shown(&file)]].concat();
    let first = Running::weir(&long);
    // It shows its progress when the file is its own.
    assert!(first.next_error_line().is_some_and(|line| line.contains("0 of 1 runs")));
    let stored = std::fs::read_to_string(&file).expect("the plan");
    let second = weir(&[&long[..], &["--resume"]].concat());
    expect_refusal(&second, 1, &["parts.jsonl is being written by another sweep", "--out"]);
    assert_eq!(std::fs::read_to_string(&file).expect("the plan"), stored);
    // However the first one ends, the file is free then: what is refused is the other plan.
    drop(first);
    expect_refusal(
        &weir(&[&SMALL[..], &["--out", shown(&file), "--resume"]].concat()),
        2,
        &["another source"],
    );
}

#[test]
fn a_trace_is_swept_and_its_bad_line_named() {
    let folder = folder("sweep-trace");
    let file = folder.join("latencies.txt");
    let path = file.to_str().expect("text");
    let lines: String = (0..2_000).map(|index| format!("{}\n", 15_000 + index % 7 * 500)).collect();
    std::fs::write(&file, &lines).expect("a trace");
    let words =
        ["storage", "sweep", "--world", "trace", "--trace", path, "--methods", "poll fixed:5us", "--json"];
    let said = weir(&words);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let result: SweepResult = serde_json::from_str(&said.stdout).expect("a result");
    assert_eq!(result.plan.world, SweepWorld::Trace);
    assert!(result.plan.source.starts_with("latencies.txt (2000 operations, "), "{}", result.plan.source);
    assert_eq!(result.phases[0].method("fixed:5us").expect("it was tried").miss_rate.median, 0.0);
    // Another trace with the same name is not mixed with this one.
    let parts = folder.join("parts.jsonl");
    let kept = [&words[..], &["--out", parts.to_str().expect("text")]].concat();
    assert_eq!(weir(&kept).code, Some(0));
    std::fs::write(&file, format!("{lines}15000\n")).expect("a trace");
    expect_refusal(&weir(&[&kept[..], &["--resume"]].concat()), 2, &["another source", "--out"]);
    std::fs::write(&file, format!("{lines}soon\n")).expect("a trace");
    expect_refusal(&weir(&words), 2, &["latencies.txt", "2001"]);
}

#[test]
fn mistakes_are_told_in_one_sentence() {
    for (words, expected) in [
        (&["storage", "sweep", "--methods", "purple"][..], "--methods: "),
        (&["storage", "sweep", "--methods", "quantile:7"], "quantile"),
        (&["storage", "sweep", "--methods", " "], "names none"),
        (&["storage", "sweep", "--seeds", "0"], "--seeds must be"),
        (&["storage", "sweep", "--job-time", "1us"], "--job-time must be"),
        (&["storage", "sweep", "--trace", "x"], "--trace belongs to --world trace"),
        (&["storage", "sweep", "--file", "x"], "--file belongs to --world disk"),
        (&["storage", "sweep", "--background", "8"], "--background belongs to --world disk"),
        (
            &["storage", "sweep", "--world", "trace", "--job-time", "2s"],
            "--job-time belongs to the simulator",
        ),
        (&["storage", "sweep", "--world", "trace", "--trace", "nowhere.csv"], "nowhere.csv"),
        (&["study", "polling", "--protocol", "echo"], "--protocol belongs"),
        (&["study", "polling", "--storage"], "--storage belongs"),
        (&["study", "polling", "--file", "/nowhere/data"], "--file /nowhere/data does not exist"),
    ] {
        expect_refusal(&weir(words), 2, &[expected]);
    }
}
