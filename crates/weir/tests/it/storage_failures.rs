//! `weir storage run` when the device, the file or a limit fails during the run: failures are counted by kind, the run
//! has failed and a script can see it, and successful operations keep their times.

use std::{
    fs::{self, File},
    path::Path,
    process::Command,
};

use serde_json::Value;
use weir_record::storage::{DirectionReport, StorageEngine, StorageJobReport, StorageReport};

use super::{
    harness::{PATIENCE, Running, Said, bytes, folder, shell, shown, weir},
    storage::until_it_measures,
};

const BLOCK: usize = 64 << 10;
const BLOCKS: usize = 32;

/// The one job of a run that failed, after its fio keys were checked.
fn failed_job(said: &Said, engine: StorageEngine, side: &str) -> StorageJobReport {
    assert_eq!(said.code, Some(1), "{engine}: {}{}", said.stderr, said.stdout);
    let value: Value = serde_json::from_str(&said.stdout).expect("a failed run prints its JSON");
    let mut report: StorageReport = serde_json::from_value(value["weir"].clone()).expect("our own report");
    let (fio, job) = (&value["jobs"][0], report.jobs.remove(0));
    let of_side = if side == "read" { &job.reads } else { &job.writes };
    assert_eq!(fio["error"], 1, "{engine}");
    assert_eq!(fio[side]["total_ios"], of_side.operations, "{engine}");
    assert_eq!(fio[side]["lat_ns"]["N"], of_side.operations, "{engine}");
    job
}

/// This many operations succeeded and have their times, and all others failed in one way.
fn expect_failures(job: &StorageJobReport, side: &DirectionReport, succeeded: u64, kind: &str, what: &str) {
    assert!(job.failed, "{what}");
    assert_eq!(job.errors, [(kind.to_owned(), BLOCKS as u64 - succeeded)], "{what}");
    assert_eq!((side.operations, side.bytes), (succeeded, succeeded * BLOCK as u64), "{what}");
    assert_eq!((side.completion.count, side.total.count), (succeeded, succeeded), "{what}");
    assert!(side.total.ns_min > 0 && side.total.ns_max >= side.total.ns_min, "{what}: {:?}", side.total);
    if let Some(waiting) = &job.waiting {
        assert_eq!((waiting.operations, waiting.latency.count), (succeeded, succeeded), "{what}");
    }
}

fn depth(engine: StorageEngine) -> &'static str {
    if engine.is_asynchronous() { "4" } else { "1" }
}

/// A process may write no file beyond a limit (`ulimit -f`, in units of 512 bytes): blocks beyond it fail in the
/// kernel, on every engine, and without any privilege.
#[test]
fn writes_that_the_kernel_refuses_are_counted_and_the_others_keep_their_times() {
    let folder = folder("storage-limit");
    let file = folder.join("data");
    fs::write(&file, bytes(BLOCKS * BLOCK, 7)).expect("a file can be written");
    let limited = |engine: StorageEngine, more: &str| {
        let units = BLOCKS / 4 * BLOCK / 512;
        shell(&format!(
            "ulimit -f {units} && exec \"$WEIR\" storage run --file '{}' --rw write --bs 64k --once --engine {engine} \
             --depth {} {more}",
            shown(&file),
            depth(engine)
        ))
    };
    for engine in StorageEngine::ALL {
        let said = limited(engine, "--json");
        if said.code == Some(13) {
            println!("skipped: {}", said.stderr);
            continue;
        }
        let job = failed_job(&said, engine, "write");
        expect_failures(&job, &job.writes, BLOCKS as u64 / 4, "EFBIG", engine.name());
    }
    let table = limited(StorageEngine::Pread, "");
    assert_eq!(table.code, Some(1), "{}", table.stderr);
    for words in ["FAILED", "24 EFBIG", "(8 operations)"] {
        assert!(table.stdout.contains(words), "no {words:?} in {}", table.stdout);
    }
}

#[test]
fn a_file_that_is_cut_while_it_is_read_ends_the_run_with_what_was_measured() {
    let folder = folder("storage-cut");
    let file = folder.join("data");
    fs::write(&file, bytes(1 << 20, 7)).expect("a file can be written");
    let words = ["storage", "run", "--file", shown(&file), "--runtime", "10min", "--engine", "pread"];
    let mut running = Running::weir(&words);
    until_it_measures(&running);
    File::options().write(true).open(&file).expect("ours").set_len(0).expect("cut");
    // After a hundred failures, the rest of ten minutes would show nothing new.
    assert_eq!(running.wait(PATIENCE), 1);
    let table: Vec<String> = std::iter::from_fn(|| running.next_line()).collect();
    let has = |words: &str| table.iter().any(|line| line.contains(words));
    assert!(has("FAILED") && has("100 short") && has(" IOPS") && !has("none was completed"), "{table:?}");
}

/// A loop device whose file was truncated in the middle: the second half cannot be read. Detached when dropped.
struct HalfDisk(String);

impl HalfDisk {
    fn attach(image: &Path) -> Option<Self> {
        fs::write(image, bytes(BLOCKS * BLOCK, 3)).expect("a file can be written");
        let output = Command::new("losetup").args(["--find", "--show", shown(image)]).output().ok()?;
        let device = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
        let device = Self(device.trim().to_owned());
        let half = (BLOCKS / 2 * BLOCK) as u64;
        File::options().write(true).open(image).expect("ours").set_len(half).expect("cut");
        Some(device)
    }
}

impl Drop for HalfDisk {
    fn drop(&mut self) {
        // If it fails, it stays until the system's next start.
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

#[test]
fn blocks_that_the_device_cannot_read_are_counted_as_such() {
    let folder = folder("storage-eio");
    let Some(device) = HalfDisk::attach(&folder.join("image")) else {
        return println!("skipped: making a block device with a fault needs root, losetup and a loop device");
    };
    let read = |engine: StorageEngine, more: &[&str]| {
        let words =
            ["storage", "run", "--file", &device.0, "--rw", "read", "--bs", "64k", "--once", "--json"];
        weir(&[&words[..], &["--engine", engine.name(), "--depth", depth(engine)], more].concat())
    };
    let predicted = ["--completion", "fixed:5us"];
    let plain = StorageEngine::ALL.map(|engine| (engine, &[][..]));
    let waits = [StorageEngine::Libaio, StorageEngine::IoUring].map(|engine| (engine, &predicted[..]));
    for (engine, more) in plain.into_iter().chain(waits) {
        let said = read(engine, more);
        if said.code == Some(13) {
            println!("skipped: {}", said.stderr);
            continue;
        }
        let job = failed_job(&said, engine, "read");
        expect_failures(&job, &job.reads, BLOCKS as u64 / 2, "EIO", &format!("{engine} {more:?}"));
    }
}
