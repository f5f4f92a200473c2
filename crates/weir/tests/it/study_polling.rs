//! `weir study polling` and studies on simulated devices as people and scripts use them.

use std::fs;

use weir_record::{frontier::Standing, metric::Metric, study::StudyResult, verdict::Verdict};

use super::{
    harness::{expect_refusal, folder, shown, weir},
    weight::{COMPRESSED_BYTES_MAX, compressed_bytes, unfolded_words},
};

/// Most words of its page before anything is unfolded: as many as the page of `quick` may have.
const WORDS_MAX: usize = 1_800;

/// A form of the study that takes a second: no disk, two settings of the kernel's mean.
const SMALL: &str = r#"
name = "small"
protocol = "storage"
window = "100ms"
warmup_max = "200ms"
blocks = 8

[[cell]]
role = "primary"
device = "model"

[[cell]]
role = "confirmatory"
device = "model"
background_depth = 32
background_cores = 4

[[cell]]
role = "confirmatory"
device = "synthetic:calm"

[[cell]]
device = "model"
background_depth = 32
core_steps = [0, 4]
window = "200ms"
arms = ["mean-half"]

[[arm]]
name = "regime"
wait = "regime:0.003"

[[arm]]
name = "mean-half"
wait = "linux-mean:0.5"

[[arm]]
name = "mean-tenth"
wait = "linux-mean:0.1"

[[arm]]
name = "clairvoyant"
wait = "clairvoyant"
"#;

fn result(out: &std::path::Path) -> StudyResult {
    let exported = weir(&["export", shown(out)]);
    assert_eq!(exported.code, Some(0), "{}", exported.stderr);
    let data: serde_json::Value = serde_json::from_str(&exported.stdout).expect("it is JSON");
    serde_json::from_value(data["result"].clone()).expect("the judged result")
}

#[test]
fn a_study_on_simulated_devices_answers_from_its_seed_alone() {
    let folder = folder("polling-small");
    let file = folder.join("small.toml");
    fs::write(&file, SMALL).expect("a file can be written");
    let run = |name: &str| {
        let out = folder.join(name);
        let said = weir(&["study", shown(&file), "--seed", "7", "--long", "--out", shown(&out)]);
        assert_eq!(said.code, Some(0), "{}\n{}", said.stdout, said.stderr);
        (said.stdout, result(&out))
    };
    let ((text, first), (_, again)) = (run("first"), run("again"));
    assert_eq!(first.effects, again.effects);
    assert_eq!((first.verdict, first.complete), (Verdict::Better, true));
    let standing = |cell: &str, arm: &str| {
        first.frontier.iter().find(|row| row.cell_id == cell && row.arm == arm).and_then(|row| row.standing)
    };
    assert_eq!(standing("model-bg32-cores4", "mean-half"), Some(Standing::Behind));
    assert_eq!(standing("synthetic-calm", "clairvoyant"), Some(Standing::Ahead));
    assert!(
        text.contains("Simulated SSD · nothing beside: regime is ahead of 2 of 2 settings of linux-mean"),
        "{text}"
    );
    // Beside four cores the candidate predicts nothing: that is no answer about predictions, and is reported.
    let saturated = first.frontier_answers.iter().find(|it| it.cell_id == "model-bg32-cores4");
    assert!(saturated.is_some_and(|answer| answer.is_of_interrupts()), "{:?}", first.frontier_answers);
    assert!(text.contains("but 100 % of its operations are"), "{text}");
    let [series] = &first.wait_series[..] else { panic!("one cell over time: {:?}", first.wait_series) };
    let tenth = series.parts[1].iops_of_first.expect("both parts ran");
    assert!((0.05..0.2).contains(&tenth) && series.points.len() >= 38, "{tenth}: {}", series.points.len());
    assert!(first.checks.iter().all(|check| check.passed), "{:?}", first.checks);
    let names: Vec<&str> = first.checks.iter().map(|check| check.name.as_str()).collect();
    assert!(names.contains(&"repeatable") && !names.contains(&"machine-states"), "{names:?}");
    let misses = |arm: &str| {
        let summary = first.arms.iter().find(|it| it.cell_id == "model-bg32-cores4" && it.arm == arm);
        summary.and_then(|it| it.mean(Metric::MissRate)).expect("it was simulated")
    };
    assert!(misses("mean-half") > 0.2 && misses("regime") < 0.01);
    let page = fs::read_to_string(folder.join("first/report.html")).expect("it was written");
    let (words, bytes) = (unfolded_words(&page), compressed_bytes(&page));
    assert!((WORDS_MAX / 4..=WORDS_MAX).contains(&words), "{words} words");
    assert!(bytes <= COMPRESSED_BYTES_MAX, "{bytes} bytes");
}

#[test]
fn recorded_reads_are_a_device_and_a_bad_line_of_them_is_named() {
    let folder = folder("polling-trace");
    let (file, reads) = (folder.join("replay.toml"), folder.join("reads.csv"));
    let lines: String = (0..6_000).map(|index| format!("{}\n", 15_000 + index % 7 * 500)).collect();
    fs::write(&reads, &lines).expect("a trace");
    let device = format!("device = \"trace:{}\"", shown(&reads));
    let text = SMALL.replacen("device = \"model\"", &device, 1);
    fs::write(&file, text).expect("a file can be written");
    let out = folder.join("out");
    let said = weir(&["study", shown(&file), "--seed", "7", "--out", shown(&out)]);
    assert!(matches!(said.code, Some(0 | 11)), "{}", said.stderr);
    let clairvoyant =
        result(&out).arms.into_iter().find(|it| it.cell_id == "trace-reads" && it.arm == "clairvoyant");
    let figures = clairvoyant.expect("it ran").figures(Metric::MissRate).expect("it has misses").clone();
    assert_eq!((figures.units.len(), figures.range().1), (8, 0.0), "a piece for each block");
    fs::write(&reads, format!("{lines}soon\n")).expect("a trace");
    let other = folder.join("other");
    expect_refusal(&weir(&["study", shown(&file), "--out", shown(&other)]), 2, &["reads.csv", "6001"]);
}

#[test]
fn a_disk_that_says_nothing_is_left_out_and_named_and_the_rest_goes_on() {
    let folder = folder("polling-memory");
    let file = folder.join("small.toml");
    let disk = "\n[[cell]]\narms = [\"regime\", \"mean-half\"]\n";
    let text = SMALL.replace("wait = \"regime:0.003\"", "wait = \"regime:0.003\"\nengine = \"io_uring\"");
    let text = text.replace("wait = \"linux-mean:0.5\"", "wait = \"linux-mean:0.5\"\nengine = \"io_uring\"");
    fs::write(
        &file,
        text.replace("\n[[arm]]\nname = \"regime\"", &format!("{disk}\n[[arm]]\nname = \"regime\"")),
    )
    .expect("a file can be written");
    let memory = std::path::PathBuf::from(format!("/dev/shm/weir-polling-{}", std::process::id()));
    fs::write(&memory, vec![1_u8; 2 << 20]).expect("memory has room");
    let out = folder.join("out");
    let words = ["study", shown(&file), "--seed", "7", "--out", shown(&out), "--file", shown(&memory)];
    let said = weir(&words);
    let _ = fs::remove_file(&memory);
    assert_eq!(said.code, Some(13), "a script that reads 0 relies on the whole study: {}", said.stderr);
    assert!(
        said.stdout.contains("randread-b4096-qd1: ") && said.stderr.contains("the disk is left out"),
        "{}",
        said.stdout
    );
    assert_eq!(result(&out).verdict, Verdict::Better);
}

#[test]
fn the_built_in_study_is_a_file_and_a_sweep_of_earlier_versions_is_refused() {
    let folder = folder("polling-built-in");
    let printed = weir(&["study", "polling", "--print"]);
    let file = folder.join("polling.toml");
    fs::write(&file, &printed.stdout).expect("a file can be written");
    let plan = |study: &str| weir(&["study", study, "--dry-run", "--seed", "7"]);
    assert_eq!(plan("polling").stdout, plan(shown(&file)).stdout);
    fs::write(folder.join("polling.json"), "{}").expect("a file can be written");
    for words in [["report", shown(&folder)], ["export", shown(&folder)]] {
        expect_refusal(&weir(&words), 2, &["holds a sweep", "96a1a42", "that one reads it"]);
    }
    expect_refusal(&weir(&["study", "--resume", shown(&folder)]), 2, &["holds a sweep"]);
}

#[test]
fn mistakes_are_told_in_one_sentence() {
    let folder = folder("polling-mistakes");
    let file = folder.join("wrong.toml");
    for (from, to, expected) in [
        ("wait = \"linux-mean:0.1\"", "wait = \"linux-mean:7\"", "wait: linux-mean"),
        ("wait = \"clairvoyant\"", "wait = \"clairvoyant\"\ntrue_times = true", "leave true_times out"),
        ("device = \"synthetic:calm\"", "device = \"disk\"", "clairvoyant"),
        ("device = \"synthetic:calm\"", "device = \"syntetic:calm\"", "there is no device"),
    ] {
        let text = SMALL.replace(from, to).replace("\nwait =", "\nengine = \"io_uring\"\nwait =");
        fs::write(&file, text).expect("a file can be written");
        expect_refusal(&weir(&["study", shown(&file)]), 2, &["wrong.toml:", expected]);
    }
    expect_refusal(&weir(&["study", "polling", "--protocol", "echo"]), 2, &["--protocol belongs"]);
    expect_refusal(&weir(&["study", "polling", "--storage"]), 2, &["--storage belongs"]);
}
