//! The advice of `weir observe --trace`, followed: small programs have the reported habit, and then follow the advice.
//! The promises are numbers of calls, and so are the checks. Times are not checked.
//!
//! The programs are in this file. The test binary starts itself with the name of one, under `weir observe`.

use std::{
    fs::{File, OpenOptions},
    io::{BufWriter, Write},
    os::unix::fs::FileExt,
    path::Path,
    process::Command,
};

use weir_record::observation::{Advice, Observation, WaitsFor};
use weir_sys::{
    aio::{AioQueue, Reaping},
    block_ring::{BlockRing, RingOptions, TaskRun},
    blocks::{Operation, OperationKind},
};

use super::{
    harness::{PATIENCE, Running, WEIR, folder, shown},
    observe_ends::traced,
};

/// The variable that names the program of this binary, its file, and a number.
const PROGRAM: &str = "WEIR_TEST_PROGRAM";

/// Upper bound of the test harness's own writes and reads beside a program.
const BESIDE_MAX: u64 = 64;

const BLOCK_BYTES: u32 = 512;
const SLOTS: u32 = 16;
/// Changes, operations and reads of the programs.
const CHANGES: u64 = 300;
const OPERATIONS: u64 = 1_600;
const WRITES: u64 = 20_000;
const OPENS: u64 = 4_000;
/// The harness opens its own files: libraries, and one for each level of its control group.
const OPENS_BESIDE_MAX: u64 = OPENS / 8;
const SMALL: [u8; 16] = [7; 16];

/// The programs. As an ordinary test, this function is none of them.
#[test]
fn as_program() {
    let Ok(words) = std::env::var(PROGRAM) else { return };
    let words: Vec<&str> = words.split(' ').collect();
    let [name, path, number] = words[..] else { panic!("{words:?}") };
    let number: u64 = number.parse().expect("a number");
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    let mut file = file.expect("a file");
    match name {
        "writes" => (0..WRITES).for_each(|_| file.write_all(&SMALL).expect("there is room")),
        "writes-gathered" => {
            let mut gathered = BufWriter::with_capacity(number as usize, file);
            (0..WRITES).for_each(|_| gathered.write_all(&SMALL).expect("there is room"));
            gathered.flush().expect("there is room");
        }
        "opens-again" => (0..OPENS).for_each(|_| drop(File::open(path).expect("it is there"))),
        "opens-once" => {
            let file = File::open(path).expect("it is there");
            (0..OPENS).for_each(|_| assert!(file.metadata().is_ok()));
        }
        "opens-each" => {
            (0..OPENS).for_each(|number| drop(File::create(format!("{path}-{number}")).expect("room")))
        }
        "opens-in-vain" => (0..OPENS).for_each(|_| assert!(File::open(format!("{path}-not")).is_err())),
        "looks-up" => (0..OPENS).for_each(|_| assert!(Path::new(path).metadata().is_ok())),
        "changes" => changes(&file, number),
        "reads-by-libaio" => reads_by_libaio(file, number as usize),
        "syncs-by-ring" => syncs_by_ring(file, number as usize),
        other => panic!("{other}"),
    }
}

/// This many changes, synced after each `group` of them.
fn changes(file: &File, group: u64) {
    for change in 0..CHANGES {
        file.write_all_at(&SMALL, change * SMALL.len() as u64).expect("there is room");
        if (change + 1) % group == 0 {
            file.sync_all().expect("it can be synced");
        }
    }
}

fn operation(slot: u32, kind: OperationKind) -> Operation {
    Operation { slot, kind, offset_bytes: u64::from(slot) * u64::from(BLOCK_BYTES), bytes: BLOCK_BYTES }
}

fn reads_by_libaio(file: File, batch: usize) {
    file.set_len(u64::from(SLOTS * BLOCK_BYTES)).expect("there is room");
    let mut queue = match AioQueue::new(file, SLOTS, BLOCK_BYTES, Reaping::SystemCall) {
        Ok(queue) => queue,
        Err(error) => return println!("skipped: no io_setup: {error}"),
    };
    let operations: Vec<_> = (0..batch as u32).map(|slot| operation(slot, OperationKind::Read)).collect();
    let mut completed = Vec::new();
    for _ in 0..OPERATIONS as usize / batch {
        assert_eq!(queue.submit(&operations).expect("it takes them"), batch);
        completed.clear();
        while completed.len() < batch {
            queue.wait(None, &mut completed).expect("they complete");
        }
    }
}

/// Syncs are carried out by worker threads on every kernel: they may wait.
fn syncs_by_ring(file: File, batch: usize) {
    let options = RingOptions {
        submission_thread: false,
        polled: false,
        polled_hybrid: false,
        fixed_buffers: false,
        fixed_file: false,
        task_run: TaskRun::Interrupting,
    };
    let mut ring = match BlockRing::new(file, SLOTS, BLOCK_BYTES, options) {
        Ok(ring) => ring,
        Err(error) => return println!("skipped: no io_uring: {error:?}"),
    };
    let operations: Vec<_> =
        (0..batch as u32).map(|slot| operation(slot, OperationKind::Fdatasync)).collect();
    let mut completed = Vec::new();
    for _ in 0..OPERATIONS as usize / batch {
        assert_eq!(ring.submit(&operations).expect("it takes them"), batch);
        completed.clear();
        while completed.len() < batch {
            ring.wait(None, &mut completed).expect("they complete");
        }
    }
}

/// The observation of a program, from its first call to its last; none if this user may not trace, or the kernel lacks
/// the program's calls.
fn observed(name: &str, file: &Path, number: u64) -> Option<Observation> {
    let own = std::env::current_exe().expect("this program");
    let program = [shown(&own), "--exact", "observe_advice::as_program", "--nocapture", "--test-threads=1"];
    let mut command = Command::new(WEIR);
    command.args(["observe", "--trace", "--json", "--"]).args(program);
    let words = format!("{name} {} {number}", shown(file));
    let mut observer = Running::start(command.env(PROGRAM, words).env("LC_ALL", "C"));
    let text: String = std::iter::from_fn(|| observer.next_line()).collect();
    let said = observer.rest_of_errors();
    assert_eq!(observer.wait(PATIENCE), 0, "{said}");
    if said.contains("skipped: ") {
        println!("{said}");
        return None;
    }
    let observation: Observation =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    traced(&observation).is_some().then_some(observation)
}

fn calls(observation: &Observation, name: &str) -> u64 {
    let calls = observation.trace.iter().flat_map(|trace| &trace.calls);
    calls.filter(|call| call.name == name).map(|call| call.count).sum()
}

#[test]
fn small_writes_that_are_gathered_as_advised_are_as_few_calls_as_it_promises() {
    let folder = folder("advice-writes");
    let Some(before) = observed("writes", &folder.join("before"), 0) else { return };
    let told = before.advice.iter().find_map(|advice| match advice {
        Advice::Coalesce { call, calls, calls_gathered, .. } if call == "write" => {
            Some((*calls, *calls_gathered))
        }
        _ => None,
    });
    let (made, gathered) = told.unwrap_or_else(|| panic!("{:?}", before.advice));
    assert!((WRITES..=WRITES + BESIDE_MAX).contains(&made), "{made}");
    let after = observed("writes-gathered", &folder.join("after"), 4_096).expect("it could be traced before");
    let left = calls(&after, "write");
    assert!((gathered..=gathered + BESIDE_MAX).contains(&left), "{gathered} promised, {left} left");
    assert!(
        !after.advice.iter().any(|advice| matches!(advice, Advice::Coalesce { .. })),
        "{:?}",
        after.advice
    );
}

#[test]
fn syncs_after_several_changes_are_as_many_times_fewer() {
    const GROUP: u64 = 100;
    let folder = folder("advice-syncs");
    let Some(before) = observed("changes", &folder.join("before"), 1) else { return };
    assert_eq!(calls(&before, "fsync"), CHANGES);
    let slept = before.advice.iter().find(|advice| {
        matches!(advice, Advice::Slept { call, waits_for: WaitsFor::Durability, calls: CHANGES, .. } if call == "fsync")
    });
    if slept.is_none() {
        println!("skipped: syncing does not sleep in {}", folder.display());
    }
    let after = observed("changes", &folder.join("after"), GROUP).expect("it could be traced before");
    assert_eq!(calls(&after, "fsync"), CHANGES / GROUP);
    assert_eq!(calls(&after, "pwrite64"), calls(&before, "pwrite64"), "the same changes");
}

#[test]
fn operations_handed_over_in_batches_are_as_few_submissions_as_it_promises() {
    let folder = folder("advice-libaio");
    let Some(before) = observed("reads-by-libaio", &folder.join("before"), 1) else { return };
    let told = before.advice.iter().find_map(|advice| match advice {
        Advice::OneASubmission { call, calls, operations, calls_batched } if call == "io_submit" => {
            Some((*calls, *operations, *calls_batched))
        }
        _ => None,
    });
    let (made, operations, batched) = told.unwrap_or_else(|| panic!("{:?}", before.advice));
    assert_eq!((made, operations, batched), (OPERATIONS, OPERATIONS, OPERATIONS / 16));
    let bound = before.bound.filter(|bound| bound.io_ns > 0.0);
    assert!(bound.is_none_or(|bound| bound.entering_ns > 0.0), "{bound:?}");
    let after = observed("reads-by-libaio", &folder.join("after"), 16).expect("it could be traced before");
    assert_eq!(calls(&after, "io_submit"), batched);
    assert!(calls(&after, "io_getevents") > 0, "what is collected has its row");
    let still = |advice: &Advice| matches!(advice, Advice::OneASubmission { .. });
    assert!(!after.advice.iter().any(still), "{:?}", after.advice);
}

#[test]
fn descriptors_that_are_kept_as_advised_are_as_few_opens_as_it_promises() {
    let folder = folder("advice-opens");
    let file = folder.join("file");
    let Some(before) = observed("opens-again", &file, 0) else { return };
    if cfg!(not(target_arch = "x86_64")) {
        println!("skipped: names of files are read on x86-64 alone");
        return;
    }
    let told = before.advice.iter().find_map(|advice| match advice {
        Advice::KeepOpen { files, path, path_opens, .. } if path == shown(&file) => {
            Some((*files, *path_opens))
        }
        _ => None,
    });
    let (files, opens) = told.unwrap_or_else(|| panic!("{:?} {:?}", before.advice, before.trace));
    assert!((OPENS..=OPENS + OPENS_BESIDE_MAX).contains(&opens), "{opens}");
    let after = observed("opens-once", &file, 0).expect("it could be traced before");
    let left = calls(&after, "openat") + calls(&after, "open");
    assert!((files..=files + OPENS_BESIDE_MAX).contains(&left), "{files} promised, {left} left");
    for name in ["opens-once", "opens-each", "opens-in-vain", "looks-up"] {
        let seen = observed(name, &file, 0).expect("it could be traced before");
        let still = |advice: &Advice| matches!(advice, Advice::KeepOpen { .. });
        assert!(!seen.advice.iter().any(still), "{name}: {:?}", seen.advice);
    }
}

#[test]
fn operations_that_workers_carry_out_are_told_in_batches_too() {
    let folder = folder("advice-workers");
    for batch in [1, 16] {
        let Some(seen) = observed("syncs-by-ring", &folder.join("file"), batch) else { return };
        if seen.trace.as_ref().is_some_and(|trace| trace.uring.is_empty()) {
            println!("skipped: this kernel has no events of io_uring: {:?}", seen.notes);
            return;
        }
        let told = Advice::ToWorkers { submitted: OPERATIONS, to_workers: OPERATIONS };
        assert!(seen.advice.contains(&told), "{batch} at once: {:?} {:?}", seen.advice, seen.trace);
    }
}
