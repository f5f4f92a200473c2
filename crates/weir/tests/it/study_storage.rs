//! Studies of storage, from the file to the report: jobs as processes, measured from outside.

use std::{
    fs::{self, File},
    path::Path,
};

use rustix::process::{Pid, Signal, kill_process};
use weir_record::trial::TrialRecord;

use super::harness::{Folder, PATIENCE, Running, Said, expect_refusal, folder, shown, until, weir};

const HEAD: &str = r#"
name = "waits"
protocol = "storage"
rounds = 8
window = "100ms"
warmup_max = "50ms"
file_size = "8MiB"
time_cap = "30s"

[factors]
depth = [2]
background_depth = [2]
"#;

const ARMS: &str = r#"
[[arm]]
name = "interrupt"
engine = "io_uring"

[[arm]]
name = "pread"
engine = "pread"

[[arm]]
name = "fio"
tool = "/nowhere/fio"
engine = "io_uring"
"#;

fn study(folder: &Folder, text: &str) -> (Said, String) {
    let file = folder.join("waits.toml");
    fs::write(&file, text).expect("it can be written");
    let out = folder.join("run");
    let said = weir(&["study", shown(&file), "--out", shown(&out)]);
    (said, shown(&out).to_owned())
}

#[test]
fn a_study_of_storage_measures_every_job_from_outside() {
    let whole = HEAD.replace("rounds = 8", "alternate = false\nblocks = 6");
    for (name, head, takes_turns) in
        [("study-storage", HEAD, true), ("study-storage-whole", whole.as_str(), false)]
    {
        measures_from_outside(&folder(name), head, takes_turns);
    }
}

fn measures_from_outside(folder: &Folder, head: &str, takes_turns: bool) {
    let (said, out) = study(folder, &format!("{head}{ARMS}"));
    if said.code == Some(13) && said.stderr.contains("--file") {
        println!("skipped: {}", said.stderr.trim());
        return;
    }
    // There is no fio at this path; the other arms are compared all the same.
    assert!(matches!(said.code, Some(0 | 11 | 12 | 13)), "{:?} {}", said.code, said.stderr);
    assert!(said.stderr.contains("arm fio is missing"), "{}", said.stderr);
    let data: serde_json::Value = serde_json::from_str(&weir(&["export", &out]).stdout).expect("it is JSON");
    let trials: Vec<TrialRecord> = serde_json::from_value(data["trials"].clone()).expect("the trials");
    let loads: Vec<_> = trials.iter().filter_map(|trial| trial.load.as_ref()).collect();
    assert!(loads.len() >= 8, "{} trials gave a report: {:?}", loads.len(), trials[0].exclusions);
    for trial in trials.iter().filter(|trial| trial.load.is_some()) {
        assert_eq!(trial.slices.is_empty(), !takes_turns, "{}", trial.cell_id);
        assert!(trial.slices.iter().all(|slice| slice.messages > 0 && slice.server_cpu_ns > 0), "{trial:?}");
    }
    for load in &loads {
        let storage = load.storage.as_ref().expect("it is of storage");
        let observed = load.observed.as_ref().expect("it was observed");
        assert!(load.messages > 0 && observed.cpu_ns > 0 && load.response.count > 0, "{load:?}");
        assert!(storage.background_iops.is_some(), "{storage:?}");
        assert!(storage.tool.starts_with("weir"), "{}", storage.tool);
    }
    // On a busy machine the background may stand still for as long as one trial.
    let mut background = loads.iter().filter_map(|load| load.storage.as_ref()?.background_iops);
    assert!(background.any(|iops| iops > 0.0), "{loads:?}");
    let report = fs::read_to_string(folder.join("run/report.md")).expect("it is written");
    for words in
        ["apt-get install fio", "CPU per I/O", "IOPS", "4 KiB random read", "2 more in the background"]
    {
        assert!(report.contains(words), "no {words:?} in {report}");
    }
    assert!(!report.contains("messages/s") && !report.contains("Server CPU"), "{report}");
}

/// Jobs of this folder's study that run, by engine.
fn jobs(folder: &Folder, engine: &str) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").expect("/proc is there").flatten();
    let is_it = |process: &fs::DirEntry| {
        let text = fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
        let words: Vec<&str> = text.split('\0').collect();
        // Their supervisors have these words too, behind others.
        words.get(1) == Some(&"storage")
            && text.contains(shown(folder))
            && words.iter().any(|it| it.contains(engine))
    };
    let number = |process: fs::DirEntry| process.file_name().to_str()?.parse().ok();
    processes.filter(is_it).filter_map(number).filter_map(Pid::from_raw).collect()
}

#[test]
fn a_round_whose_background_load_ends_does_not_count() {
    let folder = folder("study-storage-background");
    let (arms, _) = ARMS.split_once("[[arm]]\nname = \"fio\"").expect("it is the last one");
    // Long enough for the look at all processes and the kill, also on a busy machine.
    let head = HEAD.replace("window = \"100ms\"", "window = \"1s\"");
    fs::write(folder.join("waits.toml"), format!("{head}{arms}")).expect("it can be written");
    let out = folder.join("run");
    let mut study =
        Running::weir(&["study", shown(&folder.join("waits.toml")), "--out", shown(&out), "--rounds", "2"]);
    // The background load is of libaio. It begins before the jobs of a round.
    let mut has_jobs = false;
    until("a background load beside two jobs, or the end", || {
        has_jobs = !jobs(&folder, "pread").is_empty() && !jobs(&folder, "libaio").is_empty();
        has_jobs || study.has_ended()
    });
    if !has_jobs {
        println!("skipped: {}", study.rest_of_errors());
        return;
    }
    for pid in jobs(&folder, "libaio") {
        kill_process(pid, Signal::KILL).expect("it runs");
    }
    assert!(matches!(study.wait(PATIENCE), 0 | 11 | 12));
    let data: serde_json::Value =
        serde_json::from_str(&weir(&["export", shown(&out)]).stdout).expect("it is JSON");
    let trials: Vec<TrialRecord> = serde_json::from_value(data["trials"].clone()).expect("the trials");
    let failed = trials.iter().filter(|it| format!("{:?}", it.exclusions).contains("the background load"));
    assert_eq!(failed.count(), 2, "each arm of that round: {trials:?}");
}

#[test]
fn mistakes_of_a_study_of_storage_are_told_with_file_and_line() {
    let folder = folder("study-storage-mistakes");
    for (from, to, line, words) in [
        ("[2]\nback", "[0]\nback", 11, &["depth", "from 1 to 1024"][..]),
        ("\"8MiB\"", "\"1KiB\"", 7, &["file_size"]),
        ("engine = \"pread\"", "engine = \"prad\"", 20, &["there is no \"prad\""]),
        ("engine = \"pread\"", "engine = \"libaio\"\nwait = \"guess\"", 19, &["pread", "guess"]),
    ] {
        // An arm that predicts does not take turns.
        let head =
            if to.contains("wait") { HEAD.replace("rounds = 8", "blocks = 6") } else { HEAD.to_owned() };
        let text = format!("{head}{ARMS}").replace(from, to);
        let (said, out) = study(&folder, &text);
        expect_refusal(&said, 2, words);
        assert!(said.stderr.contains(&format!("waits.toml:{line}: ")), "{line}: {}", said.stderr);
        assert!(!fs::exists(&out).expect("it can be looked at"), "{}", said.stderr);
    }
}

#[test]
fn a_data_file_that_is_not_there_is_named() {
    let folder = folder("study-storage-file");
    let said = with_file(&folder, "", Path::new("/nowhere/data"));
    expect_refusal(&said, 2, &["/nowhere/data"]);
    let echo = weir(&["study", "quick", "--file", "/nowhere/data"]);
    expect_refusal(&echo, 2, &["--file belongs to studies of storage"]);
    let survey = weir(&["study", "survey", "--file", "/nowhere/data"]);
    expect_refusal(&survey, 2, &["--file belongs to studies of storage", "add --storage"]);
}

/// A study that reads, and writes if `factors` say so, on a file of the user.
fn with_file(folder: &Folder, factors: &str, data: &Path) -> Said {
    let file = folder.join("waits.toml");
    // Arms that write do not take turns.
    let head = if factors.is_empty() { HEAD.to_owned() } else { HEAD.replace("rounds = 8", "blocks = 6") };
    fs::write(&file, format!("{head}{factors}{ARMS}")).expect("it can be written");
    weir(&["study", shown(&file), "--out", shown(&folder.join("run")), "--file", shown(data)])
}

#[test]
fn a_file_of_the_user_is_never_laid_out_and_one_that_will_be_overwritten_is_told() {
    let folder = folder("study-storage-own");
    let data = folder.join("data");
    fs::write(&data, [7; 4096]).expect("it can be written");
    let small = with_file(&folder, "", &data);
    if small.code == Some(13) {
        return println!("skipped: {}", small.stderr.trim());
    }
    expect_refusal(&small, 2, &["has 4096 bytes", "1m at least", "name a larger file"]);

    File::create(&data).expect("ours").set_len(8 << 20).expect("it grows");
    expect_refusal(&with_file(&folder, "", &data), 13, &["holes", "is not laid out", "leave --file out"]);
    assert!(fs::read(&data).expect("ours").iter().all(|byte| *byte == 0), "it was laid out");

    // An existing store ends both studies before their first block.
    let precious = vec![7; 8 << 20];
    fs::write(&data, &precious).expect("it can be written");
    fs::create_dir(folder.join("run")).expect("it can be made");
    fs::write(folder.join("run").join(weir_store::FILE_NAME), "").expect("it can be written");
    let read = with_file(&folder, "", &data);
    assert!(read.code != Some(0) && !read.stderr.contains("warning"), "{}", read.stderr);
    let written = with_file(&folder, "pattern = [\"randwrite\"]\n", &data);
    let warning =
        format!("warning: {} is used as it is, not laid out, and this study writes", data.display());
    assert!(written.stderr.contains(&warning), "{}", written.stderr);
    assert!(written.stderr.contains("what its first 8m hold is overwritten"), "{}", written.stderr);
    assert!(fs::read(&data).expect("ours") == precious, "it was written to although the study never began");
}
