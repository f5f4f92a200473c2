//! `weir storage run`: its errors, a small run on every engine, and the same job in fio.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use rustix::process::Signal;
use serde_json::Value;
use weir_record::storage::{StorageEngine, StorageReport};
use weir_storage::job::{JobFile, Offsets, requested_bytes};

use super::{
    filled_disk::SmallDisk,
    harness::{
        Folder, PATIENCE, Running, Said, bytes, expect_refusal, folder, shell, shown, skip_without_disk, weir,
    },
};

/// A file with something in it.
pub fn data(folder: &Folder, length: usize) -> String {
    let path = folder.join("data");
    fs::write(&path, bytes(length, 7)).expect("a file can be written");
    shown(&path).to_owned()
}

pub fn run(words: &[&str]) -> Said {
    weir(&[&["storage", "run"], words].concat())
}

/// The JSON of a run, in fio's form, and our own report in it.
fn report(said: &Said) -> (Value, StorageReport) {
    let value: Value =
        serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {}", said.stderr));
    let ours = serde_json::from_value(value["weir"].clone()).expect("our own report is under its key");
    (value, ours)
}

pub fn job_file(folder: &Folder, text: &str) -> PathBuf {
    let path = folder.join("jobs.fio");
    fs::write(&path, text).expect("a file can be written");
    path
}

#[test]
fn a_wrong_value_is_told_with_its_flag() {
    let folder = folder("storage-flags");
    let file = data(&folder, 8192);
    let cases: [(&[&str], &[&str]); 22] = [
        (&["--engine", "purple"], &["--engine", "purple", "io_uring"]),
        (&["--rw", "sideways"], &["--rw", "sideways", "randread"]),
        (&["--bs", "much"], &["--bs", "much", "4k"]),
        (&["--bs", "1000"], &["--bs", "1000", "512", "O_DIRECT"]),
        (&["--offset", "100"], &["--offset", "100", "512", "O_DIRECT"]),
        (&["--bs", "16k"], &["--bs", "8192 bytes", "smaller blocks"]),
        (&["--size", "1m"], &["--size", "8192 bytes", "ask for less"]),
        (&["--offset", "1m"], &["--offset", "8192 bytes"]),
        (&["--size", "512", "--bs", "4k"], &["--size", "less than one block"]),
        (&["--depth", "0"], &["--depth", "1 to 4096"]),
        (&["--engine", "pread", "--depth", "8"], &["--depth", "one operation in flight", "8 threads"]),
        (&["--engine", "libaio", "--sqpoll"], &["--sqpoll", "only io_uring"]),
        (&["--engine", "pread", "--completion", "poll"], &["--completion", "system call"]),
        (&["--completion", "crystal-ball"], &["--completion", "crystal-ball"]),
        (&["--completion", "quantile:7"], &["--completion", "7"]),
        (&["--completion", "poll", "--armed"], &["--armed", "no timed sleep"]),
        (&["--sleep", "deeply"], &["--sleep", "deeply", "timerfd"]),
        (&["--runtime", "soon"], &["--runtime", "soon", "500ms"]),
        (&["--fsync", "4"], &["--fsync", "writes nothing"]),
        (&["--read-percent", "70"], &["--read-percent", "not mixed"]),
        (&["--cpus", "4095"], &["--cpus", "4095", "use some of"]),
        (&["--device-clock", "sundial"], &["--device-clock", "sundial", "tracepoint"]),
    ];
    for (words, expected) in cases {
        expect_refusal(&run(&[&["--file", &file], words].concat()), 2, expected);
    }
    assert_eq!(fs::metadata(&file).expect("it is there").len(), 8192);
    for words in
        [&["--depth", "x"][..], &["--json", "--nonsense"], &["--direct=perhaps"], &["jobs.fio", "--bs", "4k"]]
    {
        let said = run(words);
        assert_eq!(said.code, Some(2), "{words:?}: {}", said.stderr);
        assert!(said.stderr.starts_with("error: "), "{}", said.stderr);
    }
}

#[test]
fn a_target_that_cannot_be_one_is_named() {
    let folder = folder("storage-target");
    let missing = folder.join("missing");
    expect_refusal(&run(&["--file", shown(&missing)]), 2, &["--file", "missing", "does not exist"]);
    assert!(!missing.exists());
    expect_refusal(&run(&["--file", shown(&missing), "--rw", "write"]), 2, &["missing", "say with size"]);
    assert!(!missing.exists());
    expect_refusal(&run(&["--file", shown(&folder)]), 2, &["--file", "folder"]);
    expect_refusal(&run(&["--file", "/dev/null"]), 2, &["--file", "/dev/null", "neither"]);
}

#[test]
fn a_block_device_is_not_written_to_unless_that_is_said() {
    let names = fs::read_dir("/sys/block").into_iter().flatten().filter_map(Result::ok);
    let devices = names.map(|entry| Path::new("/dev").join(entry.file_name()));
    let Some(device) = devices.into_iter().find(|device| device.exists()) else {
        println!("skipped: no block device can be named here");
        return;
    };
    // An offset beyond every device: even a defective program could write nothing there.
    let words = ["--file", shown(&device), "--rw", "randwrite", "--offset", "4096t", "-n", "1"];
    expect_refusal(&run(&words), 2, &["block device", "--i-know-this-destroys-data"]);
}

#[test]
fn a_file_system_without_direct_io_says_so() {
    let file = "/sys/kernel/btf/vmlinux";
    if !Path::new(file).exists() {
        println!("skipped: no file without O_DIRECT is known here");
        return;
    }
    expect_refusal(&run(&["--file", file, "-n", "1"]), 13, &["O_DIRECT", "vmlinux"]);
    let buffered = run(&["--file", file, "-n", "10", "--direct=off", "--engine", "pread", "--json"]);
    assert_eq!(buffered.code, Some(0), "{}", buffered.stderr);
}

#[test]
fn a_disk_that_fills_up_fails_the_run_and_keeps_what_was_measured() {
    let folder = folder("storage-full");
    let disk = folder.join("disk");
    fs::create_dir(&disk).expect("a folder can be made");
    let Some(_mounted) = SmallDisk::mount(&disk, "size=1m") else {
        skip_without_disk("mounting a small disk needs root");
        return;
    };
    let file = disk.join("data");
    let said = run(&[
        "--file",
        shown(&file),
        "--size",
        "8m",
        "--rw",
        "write",
        "--bs",
        "64k",
        "--once",
        "--direct=off",
        "--engine",
        "pread",
        "--json",
    ]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    let (_, ours) = report(&said);
    let job = &ours.jobs[0];
    assert!(
        job.failed && job.errors.iter().any(|(name, count)| name == "ENOSPC" && *count > 0),
        "{:?}",
        job.errors
    );
    assert!(job.writes.operations > 0 && job.writes.total.count == job.writes.operations, "{job:?}");
}

#[test]
fn a_small_run_on_every_engine_does_what_it_says() {
    let folder = folder("storage-engines");
    let file = data(&folder, 4 << 20);
    for engine in StorageEngine::ALL {
        let depth = if engine.is_asynchronous() { "4" } else { "1" };
        let said = run(&[
            "--file",
            &file,
            "--engine",
            engine.name(),
            "--depth",
            depth,
            "-n",
            "400",
            "--rw",
            "randrw",
            "--json",
        ]);
        if said.code == Some(13) {
            println!("skipped: {}", said.stderr);
            continue;
        }
        assert_eq!(said.code, Some(0), "{engine}: {}", said.stderr);
        let (fio, ours) = report(&said);
        let job = &ours.jobs[0];
        assert_eq!(job.reads.operations + job.writes.operations, 400, "{engine}");
        assert_eq!(fio["jobs"][0]["read"]["total_ios"], job.reads.operations, "{engine}");
        assert_eq!(job.reads.bytes, job.reads.operations * 4096, "{engine}");
        assert!(job.reads.total.ns_min > 0 && job.reads.total.count == job.reads.operations, "{engine}");
        assert!(!job.failed && job.errors.is_empty(), "{engine}: {:?}", job.errors);
    }
    assert_eq!(fs::metadata(&file).expect("it is there").len(), 4 << 20);
}

#[test]
fn what_a_rate_asked_for_and_nobody_began_is_counted_and_shown() {
    let folder = folder("storage-rate");
    let file = data(&folder, 1 << 20);
    // No device is this fast, so a queue is left on any machine.
    let words = ["--file", &file, "--engine", "pread", "--rate", "4000000000", "--runtime", "50ms"];
    let said = run(&[&words[..], &["--json"]].concat());
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let (_, ours) = report(&said);
    let (reads, never_begun) = (&ours.jobs[0].reads, &ours.jobs[0].never_begun);
    assert_eq!(reads.operations + never_begun.operations, 200_000_000, "{reads:?}");
    assert_eq!((reads.total.count, never_begun.waited.count), (reads.operations, never_begun.operations));
    assert_eq!(never_begun.total_at_least.count, 200_000_000);
    let table = run(&words).stdout;
    assert!(
        table.contains("never begun   ") && table.contains("of all that were due, at least: "),
        "{table}"
    );
}

#[test]
fn parts_of_the_wait_add_up_for_every_completion_method() {
    let folder = folder("storage-waits");
    let file = data(&folder, 4 << 20);
    for words in [
        &["--completion", "interrupt"][..],
        &["--completion", "poll"],
        &["--completion", "fixed:5us"],
        &["--completion", "quantile:0.01", "--armed"],
        &["--completion", "regime", "--engine", "libaio"],
    ] {
        let said = run(&[&["--file", &file, "-n", "500", "--json"], words].concat());
        if said.code == Some(13) {
            println!("skipped: {}", said.stderr);
            continue;
        }
        assert_eq!(said.code, Some(0), "{words:?}: {}", said.stderr);
        let (_, ours) = report(&said);
        let waiting = ours.jobs[0].waiting.as_ref().expect("the wait is ours to choose");
        assert_eq!(waiting.operations, 500, "{words:?}");
        assert_eq!(waiting.slept + waiting.polled + waiting.interrupted, 500, "{words:?}: {waiting:?}");
        let parts = waiting.device_ns + waiting.oversleep_ns + waiting.wake_ns + waiting.notice_ns;
        let distance = parts.abs_diff(waiting.total_ns);
        assert!(distance * 100 <= waiting.total_ns, "{words:?}: {parts} against {}", waiting.total_ns);
    }
}

#[test]
fn written_blocks_are_read_back() {
    let folder = folder("storage-verify");
    let file = folder.join("new");
    let said = run(&[
        "--file",
        shown(&file),
        "--size",
        "1m",
        "--rw",
        "randwrite",
        "--once",
        "--verify",
        "--fsync",
        "16",
        "--json",
    ]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let (_, ours) = report(&said);
    let job = &ours.jobs[0];
    assert_eq!((job.writes.operations, job.verified_blocks, job.verify_failures), (256, 256, 0));
    assert_eq!((job.fsyncs, job.fsync_latency.count), (16, 16));
    assert!(ours.notes.iter().any(|note| note.contains("was made for this run")), "{:?}", ours.notes);
    assert_eq!(fs::metadata(&file).expect("it is there").len(), 1 << 20);
}

#[test]
fn without_a_file_one_of_our_own_is_laid_out_and_used_again() {
    let folder = folder("storage-own");
    let line = format!("cd '{}' && exec \"$WEIR\" storage run --size 4m --once", shown(&folder));
    let first = shell(&line);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert!(
        first.stdout.contains("reads ") && first.stdout.contains("(1024 operations)"),
        "{}",
        first.stdout
    );
    let told = "./weir-storage.dat is laid out with 4m of data and kept";
    assert!(first.stderr.contains(told), "{}", first.stderr);
    let file = folder.join("weir-storage.dat");
    let made = fs::metadata(&file).expect("it was made").modified().expect("a time");
    let second = shell(&line);
    assert_eq!(second.code, Some(0), "{}", second.stderr);
    assert_eq!(fs::metadata(&file).expect("it is there").modified().expect("a time"), made);
    assert!(!second.stderr.contains("laid out"), "{}", second.stderr);
}

/// Waits until a run has completed operations: while a disk or the machine is busy, its first lines show none.
pub fn until_it_measures(running: &Running) {
    let measures = |line: &str| {
        let before = line.contains("measuring").then(|| line.split_once(" IOPS")).flatten();
        before.and_then(|(before, _)| before.rsplit(' ').next()).is_some_and(|rate| rate != "0")
    };
    let seen = std::iter::from_fn(|| running.next_error_line()).any(|line| measures(&line));
    assert!(seen, "it shows its progress");
}

#[test]
fn an_interrupted_run_prints_what_it_measured() {
    let folder = folder("storage-interrupt");
    let file = data(&folder, 1 << 20);
    let mut running =
        Running::weir(&["storage", "run", "--file", &file, "--runtime", "60s", "--engine", "pread"]);
    until_it_measures(&running);
    running.signal(Signal::INT);
    assert_eq!(running.wait(PATIENCE), 130);
    let table: Vec<String> = std::iter::from_fn(|| running.next_line()).collect();
    assert!(table.iter().any(|line| line.contains("IOPS")), "{table:?}");
}

#[test]
fn a_job_file_is_run_or_refused_with_its_line() {
    let folder = folder("storage-jobs");
    let file = data(&folder, 1 << 20);
    let head = format!("[global]\nfilename={file}\nbs=4k\nioengine=psync\ndirect=1\n");
    let good =
        job_file(&folder, &format!("{head}[a]\nrw=randread\n[b]\nstonewall\nrw=read\nnumber_ios=10\n"));
    let said = run(&[shown(&good), "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let (fio, ours) = report(&said);
    let counts: Vec<u64> = ours.jobs.iter().map(|job| job.reads.operations).collect();
    assert_eq!(counts, [256, 10]);
    assert_eq!((&fio["jobs"][1]["jobname"], &fio["jobs"][1]["groupid"]), (&"b".into(), &1.into()));
    assert_eq!((&fio["global options"]["bs"], &fio["global options"]["direct"]), (&"4k".into(), &"1".into()));
    assert_eq!(fio["jobs"][0]["iodepth_submit"]["4"], 100.0, "one call for each read");
    assert!(fio["jobs"][0]["minf"].is_u64() && fio["jobs"][0]["majf"].is_u64());

    let unknown = format!("{head}lockmem=1g\n[a]\nrw=read\n");
    let unknown = job_file(&folder, &unknown);
    expect_refusal(&run(&[shown(&unknown)]), 2, &["jobs.fio:6: ", "lockmem", "--fio-lenient"]);
    let lenient = run(&[shown(&unknown), "--fio-lenient", "--json"]);
    assert_eq!(lenient.code, Some(0), "{}", lenient.stderr);
    assert!(
        lenient.stderr.contains("jobs.fio:6: ") && lenient.stderr.contains("lockmem"),
        "{}",
        lenient.stderr
    );

    for (text, words) in [
        ("[a]\nfilename=/nonexistent/x\nrw=read\n", &["jobs.fio:2: ", "filename", "does not exist"][..]),
        ("[a]\nrw=read\n", &["jobs.fio:1: ", "size"]),
        ("rw=read\n", &["jobs.fio:1: ", "no section"]),
        ("", &["jobs.fio:1: ", "no job"]),
    ] {
        expect_refusal(&run(&[shown(&job_file(&folder, text))]), 2, words);
    }
    expect_refusal(&run(&[shown(&folder.join("none.fio"))]), 2, &["none.fio", "cannot be read"]);
}

#[test]
fn logs_and_intervals_are_files_that_others_can_read() {
    let folder = folder("storage-logs");
    let file = data(&folder, 1 << 20);
    let (prefix, csv) = (folder.join("log"), folder.join("intervals.csv"));
    let said = run(&[
        "--file",
        &file,
        "-n",
        "300",
        "--completion",
        "poll",
        "--log-prefix",
        shown(&prefix),
        "--csv",
        shown(&csv),
        "--json",
    ]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let text = fs::read_to_string(folder.join("log_lat.1.log")).expect("a log");
    assert_eq!(text.lines().count(), 300);
    for line in text.lines() {
        let fields: Vec<u64> = line.split(", ").map(|field| field.parse().expect("a number")).collect();
        assert!(matches!(fields[..], [_, latency, 0, 4096, 0] if latency > 0), "{line}");
    }
    let rows = fs::read_to_string(&csv).expect("a table");
    assert!(rows.starts_with("job,start_s,") && rows.lines().count() >= 2, "{rows}");
    let nowhere = run(&["--file", &file, "-n", "1", "--csv", "/dev/null/x.csv"]);
    expect_refusal(&nowhere, 1, &["--csv", "/dev/null/x.csv"]);
    let new = folder.join("new");
    let words = ["--", "--name=a", "--filename", shown(&new), "--rw=write", "--size=64k", "--output"];
    expect_refusal(&run(&[&words[..], &["/dev/null/x.json"]].concat()), 1, &["--output", "/dev/null/x.json"]);
    assert!(!new.exists(), "it is refused before anything is made");
}

/// The version line of fio, or a line that names the skipped test.
fn fio_version() -> Option<String> {
    match Command::new("fio").arg("--version").output() {
        Ok(output) if output.status.success() => {
            Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        _ => {
            println!("skipped: fio is not installed; `apt-get install fio` brings it");
            None
        }
    }
}

/// Job files with fio's keys alone: what differs between them is the order of offsets.
const SHARED_JOBS: [(&str, &str); 55] = [
    ("sequential", "rw=read\n"),
    ("sequential-part", "rw=write\noffset=64k\nsize=256k\nbs=8k\n"),
    ("random", "rw=randread\n"),
    ("random-seeded", "rw=randread\nrandrepeat=0\nrandseed=42\n"),
    ("random-free", "rw=randwrite\nnorandommap\nrandrepeat=0\nrandseed=7\n"),
    ("random-count", "rw=randread\nnumber_ios=77\noffset=128k\nsize=512k\n"),
    ("mixed", "rw=randrw\nrwmixread=70\n"),
    ("mixed-seeded", "rw=randrw\nrwmixread=30\nrandseed=99\nrandrepeat=0\n"),
    ("mixed-sequential", "rw=rw\nrwmixread=50\n"),
    ("loops", "rw=randread\nloops=2\nsize=512k\n"),
    ("loops-seeded", "rw=randrw\nloops=3\nsize=512k\nrandrepeat=0\nrandseed=11\n"),
    ("loops-sequential", "ioengine=sync\nrw=write\nloops=3\nsize=256k\n"),
    ("range", "rw=randread\nbsrange=4k-64k\n"),
    ("range-mixed", "rw=randrw\nbsrange=4k-16k\nrandrepeat=0\nrandseed=3\n"),
    ("range-loops", "rw=randwrite\nbsrange=4k-16k\nloops=2\n"),
    ("range-free", "rw=randread\nbsrange=8k-32k\nnorandommap\n"),
    ("split", "rw=randwrite\nbssplit=4k/10:64k/50:32k/40\n"),
    ("split-rest", "rw=read\nbssplit=4k/50:8k/:16k/\nloops=2\n"),
    ("zipf", "rw=randread\nrandom_distribution=zipf:1.2\n"),
    ("zipf-seeded", "rw=randrw\nrandom_distribution=zipf:0.8:0.25\nrandrepeat=0\nrandseed=42\n"),
    ("zipf-lengths", "rw=randread\nrandom_distribution=zipf\nbsrange=4k-16k\n"),
    ("pareto", "rw=randwrite\nrandom_distribution=pareto:0.3\nloops=2\nsize=512k\n"),
    ("share", "rw=randread\nsize=25%\noffset=1m\n"),
    ("named", "name=another\nrw=randread\nrate=64m\nverify=0\n"),
    ("synced", "rw=randwrite\nfdatasync=16\nsize=512k\n"),
    ("synced-twice", "rw=randwrite\nfsync=8\nfdatasync=4\nsize=512k\n"),
    ("synced-mixed", "rw=randrw\nfsync=16\nsize=512k\n"),
    ("part-of-size", "rw=randread\nsize=1m\nio_size=258k\n"),
    ("part-of-file", "rw=randrw\nfilesize=1m\nsize=256k\n"),
    ("without-effect", "rw=read\ngtod_reduce=1\noverwrite=0\nkb_base=1024\niodepth_batch_complete_max=8\n"),
    ("follow", "rw=randread:4\n"),
    ("follow-free", "rw=randwrite:3\nnorandommap\nrandrepeat=0\nrandseed=5\n"),
    ("follow-mixed", "rw=randrw:3\n"),
    ("follow-identical", "rw=randwrite:4\nrw_sequencer=identical\n"),
    ("stride", "rw=read:4k\n"),
    ("stride-over", "rw=read:8k\n"),
    ("stride-back", "rw=write:-8k\n"),
    ("stride-part", "rw=read:4k\noffset=16k\nsize=32k\n"),
    ("stride-mixed", "rw=rw:4k\n"),
    ("lengths", "rw=randrw\nbs=4k,16k\n"),
    ("lengths-free", "rw=randrw\nbs=16k,4k\nnorandommap\n"),
    ("lengths-sequential", "rw=rw\nbs=4k,16k\n"),
    ("lengths-read", "rw=randread\nbs=16k,4k\n"),
    ("normal", "rw=randread\nrandom_distribution=normal\n"),
    ("normal-wide", "rw=randwrite\nrandom_distribution=normal:10\n"),
    ("normal-seeded", "rw=randrw\nrandom_distribution=normal:30:0.2\nrandrepeat=0\nrandseed=5\n"),
    ("more-than-size", "rw=randread\nsize=256k\nio_size=640k\n"),
    ("more-seeded", "rw=randrw\nsize=256k\nio_size=640k\nrandrepeat=0\nrandseed=3\n"),
    ("more-sequential", "rw=write\nsize=256k\nio_size=640k\n"),
    ("wide", "rw=randread\nrandom_generator=tausworthe64\n"),
    (
        "wide-seeded",
        "rw=randrw\nrandom_generator=tausworthe64\nrandrepeat=0\nrandseed=9\nloops=2\nsize=512k\n",
    ),
    ("durable", "rw=write\nend_fsync=1\nfsync_on_close=1\nsize=256k\n"),
    (
        "as-it-is",
        "rw=read\nfallocate=none\nserialize_overlap=1\nzonemode=none\nsync=0\nio_submit_mode=inline\n",
    ),
    ("deep", "ioengine=libaio\niodepth=8\ndirect=1\nrw=randread\n"),
    ("deep-mixed", "ioengine=io_uring\niodepth=4\ndirect=1\nrw=randrw\n"),
];

/// Reads and writes of one of fio's I/O logs, in order: (reads, offset, bytes).
fn operations_of_log(path: &Path) -> Vec<(bool, u64, u32)> {
    let text = fs::read_to_string(path).expect("fio wrote its log");
    let operation = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let place = words.iter().position(|word| matches!(*word, "read" | "write"))?;
        let number = |behind: usize| words.get(place + behind).and_then(|word| word.parse::<u64>().ok());
        Some((words[place] == "read", number(1)?, number(2)? as u32))
    };
    text.lines().filter_map(operation).collect()
}

#[test]
fn a_job_means_the_same_in_fio() {
    let Some(version) = fio_version() else { return };
    let folder = folder("storage-fio");
    let file = data(&folder, 2 << 20);
    for (name, keys) in SHARED_JOBS {
        // Two jobs, so that a thread's number counts.
        let text = |extra: [&str; 2]| {
            format!(
                "[global]\nfilename={file}\nbs=4k\nioengine=psync\nthread\n{keys}[{name}]\n{}[again]\nstonewall\n{}",
                extra[0], extra[1]
            )
        };
        let shared = job_file(&folder, &text(["", ""]));
        let said = run(&[shown(&shared), "--json"]);
        assert_eq!(said.code, Some(0), "{name}: {}", said.stderr);
        let (ours, _) = report(&said);

        let logs = ["first", "second"].map(|job| folder.join(format!("{name}-{job}")));
        let keys_of_logs = logs.each_ref().map(|log| format!("write_iolog={}\n", shown(log)));
        let logged = folder.join("logged.fio");
        fs::write(&logged, text([&keys_of_logs[0], &keys_of_logs[1]])).expect("a file can be written");
        let output = Command::new("fio")
            .args(["--output-format=json", shown(&logged)])
            .current_dir(&*folder)
            .output()
            .expect("fio starts");
        assert!(output.status.success(), "{version}: {name}: {}", String::from_utf8_lossy(&output.stderr));
        let theirs: Value = serde_json::from_slice(&output.stdout).expect("fio prints JSON");

        let jobs = JobFile::parse("jobs.fio", &text(["", ""]), false).expect("it was run").jobs;
        for (index, job) in jobs.iter().enumerate() {
            // fio's total of syncs leaves out data syncs.
            for count in ["read/total_ios", "write/total_ios", "sync/lat_ns/N"] {
                let of = |value: &Value| value["jobs"][index].pointer(&format!("/{count}")).cloned();
                assert_eq!(of(&ours), of(&theirs), "{version}: {name}: {count} of job {index}");
            }
            let used = requested_bytes(job, 2 << 20).unwrap_or((2 << 20) - job.offset_bytes);
            let mut offsets = Offsets::new(job, 0, used);
            let steps = std::iter::from_fn(|| offsets.next());
            let own: Vec<(bool, u64, u32)> =
                steps.map(|step| (step.reads, step.offset_bytes, step.bytes)).collect();
            let fio = operations_of_log(&logs[index]);
            let differ = own.iter().zip(&fio).position(|(own, fio)| own != fio);
            assert_eq!((differ, own.len()), (None, fio.len()), "{version}: {name}: job {index}");
        }
    }
}

#[test]
fn the_published_jobs_of_hybrid_polling_run_alike_in_fio() {
    let folder = folder("storage-published");
    data(&folder, 4 << 20);
    fs::rename(folder.join("data"), folder.join("data.bin")).expect("it can be renamed");
    for (number, behind) in [(1, 0), (2, 1), (3, 4)] {
        let path =
            format!("{}/../../docs/studies/hybrid-polling-job{number}.fio", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(path).expect("it is there");
        let jobs = JobFile::parse("job.fio", &text, false).expect("it can be read").jobs;
        let expected = [("front", StorageEngine::Pwritev, 1), ("behind", StorageEngine::Libaio, behind)];
        let found = jobs.iter().map(|job| (job.name.as_str(), job.engine, job.threads));
        assert!(found.eq(expected.into_iter().filter(|(_, _, threads)| *threads > 0)), "{jobs:?}");
        // A short run of the same jobs over a small file.
        let file = shown(&folder.join("data.bin")).to_owned();
        let short = text.replace("=data.bin", &format!("={file}")).replace("=1g", "=4m");
        // Long enough for one operation of each job beside anything else that the machine does.
        let short = job_file(&folder, &short.replace("runtime=20", "runtime=2"));
        let (ours, _) = report(&run(&[shown(&short), "--json"]));
        let Some(version) = fio_version() else { continue };
        let output =
            Command::new("fio").args(["--output-format=json", shown(&short)]).output().expect("fio starts");
        assert!(output.status.success(), "{version}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout);
        // fio may print notes before it.
        let theirs: Value =
            serde_json::from_str(&text[text.find('{').unwrap_or(0)..]).expect("fio prints JSON");
        for (job, threads) in [("front", 1), ("behind", behind as usize)] {
            let of = |value: &Value, key: &str| -> Vec<Value> {
                let rows = value["jobs"].as_array().expect("jobs").clone();
                rows.iter().filter(|row| row["jobname"] == job).map(|row| row["read"][key].clone()).collect()
            };
            // All threads of a job are one row here.
            assert_eq!(
                (of(&ours, "total_ios").len(), of(&theirs, "total_ios").len()),
                (threads.min(1), threads)
            );
            for counts in [of(&ours, "total_ios"), of(&theirs, "total_ios")] {
                assert!(counts.iter().all(|count| count.as_u64() > Some(0)), "{version}: {job}: {counts:?}");
            }
        }
    }
}

#[test]
fn a_file_that_a_job_reads_and_that_is_not_there_is_laid_out() {
    let folder = folder("storage-missing");
    let text = |file: &Path| format!("[a]\nfilename={}\nsize=1m\nrw=randread\nbs=4k\n", shown(file));
    let path = folder.join("ours");
    let shared = job_file(&folder, &text(&path));
    for notes in [1, 0] {
        // The second time the file exists.
        let (ours, told) = report(&run(&[shown(&shared), "--json"]));
        assert_eq!(ours["jobs"][0]["read"]["total_ios"], 256);
        let laid_out = told.notes.iter().filter(|note| note.contains("it is laid out with 1m")).count();
        assert_eq!(laid_out, notes, "{:?}", told.notes);
    }
    let shared = folder.join("shared");
    let both =
        format!("{}[b]\nstonewall\nfilename={}\nrw=randwrite\nsize=64k\n", text(&shared), shown(&shared));
    let (ours, _) = report(&run(&[shown(&job_file(&folder, &both)), "--json"]));
    assert_eq!(
        ours["jobs"][1]["write"]["total_ios"], 16,
        "what another job of the file lays out is written to"
    );
    let below_dev = text(Path::new("/dev/weir-none"));
    expect_refusal(&run(&[shown(&job_file(&folder, &below_dev))]), 2, &["filename", "does not exist"]);
    let Some(version) = fio_version() else { return };
    let theirs = job_file(&folder, &text(&folder.join("theirs")));
    let output =
        Command::new("fio").args(["--output-format=json", shown(&theirs)]).output().expect("fio starts");
    let value: Value = serde_json::from_slice(&output.stdout).expect("fio prints JSON");
    assert_eq!(value["jobs"][0]["read"]["total_ios"], 256, "{version}");
}

#[test]
fn a_command_line_of_fio_means_the_same_in_fio() {
    let folder = folder("storage-words");
    let file = data(&folder, 1 << 20);
    let (ours, theirs) = (folder.join("ours.json"), folder.join("theirs.json"));
    let words = |output: &Path| {
        let words = format!(
            "--bs=4k --filename={file} --ioengine psync --thread --output={} --output-format=json --name=first --rw=randread \
             --name=second --stonewall --rw=randwrite:2 --size=256k --numjobs=2 --group_reporting",
            shown(output)
        );
        words.split(' ').map(str::to_owned).collect::<Vec<_>>()
    };
    let own = words(&ours);
    let own: Vec<&str> = ["--"].into_iter().chain(own.iter().map(String::as_str)).collect();
    let said = run(&own);
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), ""), "{}", said.stderr);
    let rows = |path: &Path| -> Vec<(String, u64, u64)> {
        let text = fs::read_to_string(path).expect("it was written");
        let value: Value = serde_json::from_str(&text).expect("it is JSON");
        let count = |row: &Value, of: &str| row[of]["total_ios"].as_u64().unwrap_or(0);
        let rows = value["jobs"].as_array().expect("rows").iter();
        rows.map(|row| (row["jobname"].to_string(), count(row, "read"), count(row, "write"))).collect()
    };
    assert_eq!(rows(&ours), [("\"first\"".to_owned(), 256, 0), ("\"second\"".to_owned(), 0, 128)]);
    for (words, parts) in [
        (&["--", "--name=a", "--filename", &file, "--bs=4q"][..], &["--bs=4q: bs:", "4q"][..]),
        (&["--", "--readonly", "--name=a", "--filename", &file, "--rw=write"], &["--readonly", "job a"]),
        (&["--", "--name=a", "--filename", &file, "--output", &file], &["--output", "the file of job a"]),
    ] {
        expect_refusal(&run(words), 2, parts);
    }
    let both = run(&["--file", &file, "--", "--name=a"]);
    assert!(both.code == Some(2) && both.stderr.contains("cannot be used with"), "{}", both.stderr);
    let Some(version) = fio_version() else { return };
    let output = Command::new("fio").args(words(&theirs)).output().expect("fio starts");
    assert!(output.status.success(), "{version}: {}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(rows(&ours), rows(&theirs), "{version}");
}

#[test]
fn included_files_offsets_of_threads_and_jobs_that_end_others_are_those_of_fio() {
    let folder = folder("storage-others");
    let file = data(&folder, 1 << 20);
    fs::write(folder.join("common.inc"), format!("filename={file}\nbs=4k\nioengine=psync\nthread\n"))
        .expect("a file can be written");
    let parts =
        "[global]\ninclude common.inc\n[parts]\nrw=randwrite\nnumjobs=3\noffset_increment=256k\nsize=128k\n";
    let text = "[global]\ninclude common.inc\n\
                [short]\nexitall\nrw=read\nsize=64k\n[endless]\nrw=read\ntime_based\nruntime=600\n\
                [last]\nwait_for=endless\nrw=read\nsize=32k\n";
    let wrong = job_file(&folder, text);
    expect_refusal(&run(&[shown(&wrong)]), 2, &["jobs.fio:", "wait_for", "job short runs beside endless"]);
    let shared = job_file(&folder, &text.replace("wait_for=endless", "stonewall"));
    let rows = |value: &Value| -> Vec<(String, u64)> {
        let rows = value["jobs"].as_array().expect("rows").iter();
        let count = |row: &Value, of: &str| row[of]["total_ios"].as_u64().unwrap_or(0);
        rows.filter(|row| row["jobname"] != "endless")
            .map(|row| (row["jobname"].to_string(), count(row, "read") + count(row, "write")))
            .collect()
    };
    let part = ("\"parts\"".to_owned(), 32);
    let apart = folder.join("parts.fio");
    fs::write(&apart, parts).expect("a file can be written");
    let (others, told) = report(&run(&[shown(&apart), "--json"]));
    let offsets: Vec<u64> =
        told.jobs.iter().filter_map(|job| Some(job.job.as_ref()?.offset_bytes >> 10)).collect();
    assert_eq!((offsets.as_slice(), rows(&others)), (&[0, 256, 512][..], vec![part.clone(); 3]));
    let (missing, alone) = (folder.join("missing"), folder.join("alone.fio"));
    let text_of_missing =
        parts.replace("include common.inc", &format!("filename={}\nbs=4k", shown(&missing)));
    fs::write(&alone, text_of_missing).expect("a file can be written");
    let (made, _) = report(&run(&[shown(&alone), "--json"]));
    assert_eq!(rows(&made), vec![part; 3], "the first makes the file for all");
    assert_eq!(fs::metadata(&missing).expect("it was made").len(), (512 + 128) << 10);
    let (ours, _) = report(&run(&[shown(&shared), "--json"]));
    assert_eq!(rows(&ours), [("\"short\"".to_owned(), 16), ("\"last\"".to_owned(), 8)]);
    let Some(version) = fio_version() else { return };
    let theirs = |file: &Path| {
        let output =
            Command::new("fio").args(["--output-format=json", shown(file)]).output().expect("fio starts");
        let text = String::from_utf8_lossy(&output.stdout);
        let value: Value =
            serde_json::from_str(&text[text.find('{').unwrap_or(0)..]).expect("fio prints JSON");
        rows(&value)
    };
    assert_eq!(rows(&others), theirs(&apart), "{version}");
    // On a busy machine the end of the first group can reach fio's last one too, before it has done anything.
    let of_fio: Vec<_> = (0..5).map(|_| theirs(&shared)).collect();
    assert!(of_fio.contains(&rows(&ours)), "{version}: {of_fio:?}, ours {:?}", rows(&ours));
}

#[test]
fn rows_are_those_of_fio_where_a_job_file_asks_for_one_of_several() {
    let folder = folder("storage-rows");
    let text = format!(
        "[global]\ngroup_reporting\ndirectory={}\nsize=256k\nrw=randread\nioengine=psync\n[a]\nnumjobs=3\n[b]\nnumjobs=2\n\
         [c]\nstonewall\nnumjobs=2\n",
        shown(&folder)
    );
    let shared = job_file(&folder, &text);
    let rows = |value: &Value| -> Vec<(String, u64)> {
        let rows = value["jobs"].as_array().expect("rows").iter();
        rows.map(|row| (row["jobname"].to_string(), row["read"]["total_ios"].as_u64().unwrap_or(0))).collect()
    };
    let (ours, told) = report(&run(&[shown(&shared), "--json"]));
    assert_eq!(rows(&ours), [("\"a\"".to_owned(), 320), ("\"c\"".to_owned(), 128)]);
    assert_eq!((ours["jobs"][1]["job options"]["numjobs"].as_str(), told.jobs.len()), (Some("2"), 7));
    let alone = job_file(&folder, &text.replace("group_reporting\n", ""));
    let table = run(&[shown(&alone)]).stdout;
    assert!(table.contains("5 that ran side by side, together"), "{table}");
    let Some(version) = fio_version() else { return };
    // Files that other programs laid out are not touched.
    fs::create_dir(folder.join("theirs")).expect("a folder can be made");
    let theirs = text.replace(shown(&folder), shown(&folder.join("theirs")));
    let theirs = job_file(&folder, &theirs);
    let output =
        Command::new("fio").args(["--output-format=json", shown(&theirs)]).output().expect("fio starts");
    let theirs: Value = serde_json::from_slice(&output.stdout).expect("fio prints JSON");
    assert_eq!(rows(&ours), rows(&theirs), "{version}");
}

/// Keys of an object that holds numbers or objects, with those of the objects in it.
fn keys(value: &Value, prefix: &str) -> Vec<String> {
    let Some(object) = value.as_object() else { return vec![prefix.to_owned()] };
    object.iter().flat_map(|(key, value)| keys(value, &format!("{prefix}/{key}"))).collect()
}

#[test]
fn every_key_of_our_json_but_one_is_fios() {
    let Some(version) = fio_version() else { return };
    let folder = folder("storage-shape");
    let file = data(&folder, 1 << 20);
    let text = format!("[a]\nfilename={file}\nrw=randrw\nioengine=psync\nbs=4k\npercentile_list=50:99\n");
    let shared = job_file(&folder, &text);
    let (ours, _) = report(&run(&[shown(&shared), "--json"]));
    let output =
        Command::new("fio").args(["--output-format=json", shown(&shared)]).output().expect("fio starts");
    let theirs: Value = serde_json::from_slice(&output.stdout).expect("fio prints JSON");
    let known = keys(&theirs["jobs"][0], "");
    for key in keys(&ours["jobs"][0], "") {
        let is_option = key.starts_with("/job options/");
        assert!(is_option || known.contains(&key), "{version} has no {key}");
    }
    let top: Vec<&String> = ours.as_object().expect("an object").keys().collect();
    for key in top {
        assert!(key == "weir" || theirs.get(key).is_some(), "{version} has no {key}");
    }
}
