//! Complete runs on real files, without checks of their durations.

use std::{cell::RefCell, collections::HashMap, fs, path::PathBuf};

use weir_record::storage::{
    AccessPattern, CompletionMethod, RingMode, SleepPrimitive, StorageEngine, StorageEngineOptions,
};

use super::*;
use crate::engine::target;

/// A temporary folder, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("weir-run-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for temporary files");
        Self(path)
    }

    /// A job over a file of 256 blocks that is laid out at its run. Buffered, which every file system supports.
    fn job(&self, name: &str) -> StorageJob {
        StorageJob {
            name: name.to_owned(),
            file: self.0.join("data").to_string_lossy().into_owned(),
            file_given: false,
            size_bytes: Some(1 << 20),
            direct: false,
            pattern: AccessPattern::RandRead,
            engine: StorageEngine::Pread,
            runtime_ns: None,
            time_based: false,
            ramp_ns: 0,
            ..StorageJob::default()
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn quietly(jobs: &[StorageJob]) -> Result<StorageReport, RunError> {
    run(jobs, &AtomicBool::new(false), &|_| {})
}

#[expect(clippy::print_stderr, reason = "what a machine cannot do must not look tested")]
fn skipped(mode: &str, reason: &str) {
    eprintln!("skipped: {mode}: {reason}");
}

/// Whether a byte of a file is in the page cache; `None` if the file system does not report it. The check itself
/// caches that block, and more of the file unless it is advised as random.
fn is_cached(file: &File, offset_bytes: u64) -> Option<bool> {
    use rustix::io::{Errno, ReadWriteFlags, preadv2};
    let mut byte = [0];
    let buffers = &mut [io::IoSliceMut::new(&mut byte)];
    match preadv2(file, buffers, offset_bytes, ReadWriteFlags::NOWAIT) {
        Ok(_) => Some(true),
        Err(Errno::AGAIN) => Some(false),
        Err(_) => None,
    }
}

fn waiting(predictor: &str, armed: bool) -> CompletionMethod {
    CompletionMethod { predictor: predictor.to_owned(), armed, ..CompletionMethod::default() }
}

#[test]
fn every_engine_reads_every_block_once() {
    let folder = Folder::new("engines");
    for engine in StorageEngine::ALL {
        let depth = if engine.is_asynchronous() { 4 } else { 1 };
        let job = StorageJob { engine, depth, ..folder.job("read") };
        let report = match quietly(&[job]) {
            Err(RunError::Engine { source: EngineError::Refused { mode, reason }, .. }) => {
                skipped(&mode, &reason);
                continue;
            }
            other => other.expect("it runs"),
        };
        let job = &report.jobs[0];
        assert!(!job.failed, "{engine}: {:?} {:?}", job.errors, report.notes);
        assert_eq!(
            (job.reads.operations, job.reads.bytes, job.writes.operations),
            (256, 1 << 20, 0),
            "{engine}"
        );
        assert_eq!(job.reads.total.count, 256, "{engine}");
        assert_eq!(job.waiting.is_some(), engine.is_asynchronous(), "{engine}");
        assert_eq!(job.intervals.iter().map(|interval| interval.operations).sum::<u64>(), 256, "{engine}");
    }
}

/// The file of a job that reads only its first block, dropped from the page cache; `None` if that is impossible.
fn forgotten(job: &StorageJob) -> Option<File> {
    fs::write(&job.file, vec![5; 1 << 20]).expect("there is room");
    let file = File::open(&job.file).expect("it was written");
    file.sync_all().expect("it can be synced");
    target::drop_cache(&StorageJob { size_bytes: None, ..job.clone() }).expect("it is there");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random).expect("it is a file");
    // A memory file system drops nothing.
    (!is_cached(&file, 128 * 4096)?).then_some(file)
}

fn first_block(folder: &Folder, pattern: AccessPattern) -> StorageJob {
    StorageJob { pattern, operations_max: Some(1), file_given: true, ..folder.job("cached") }
}

#[test]
fn what_was_cached_before_is_read_from_the_device_where_that_is_asked_for() {
    let folder = Folder::new("cache");
    for drops_cache in [false, true] {
        let job = StorageJob { drops_cache, ..first_block(&folder, AccessPattern::Read) };
        let Some(file) = forgotten(&job) else {
            return skipped("page cache", "the file system keeps its files in memory, or does not say");
        };
        fs::read(&job.file).expect("it is there");
        quietly(&[job]).expect("it runs");
        assert_eq!(is_cached(&file, 0), Some(true));
        // Only the first block and some readahead were read.
        assert_eq!(is_cached(&file, 255 * 4096), Some(!drops_cache));
    }
}

#[test]
fn the_kernel_reads_ahead_as_the_pattern_says_where_it_is_told() {
    let folder = Folder::new("ahead");
    for advises_order in [false, true] {
        let random = first_block(&folder, AccessPattern::RandRead);
        // The kernel reads ahead of a single read only at the start of a file.
        let job = StorageJob { advises_order, size_bytes: Some(4096), ..random };
        let Some(file) = forgotten(&job) else {
            return skipped("page cache", "the file system keeps its files in memory, or does not say");
        };
        quietly(&[job]).expect("it runs");
        assert_eq!(is_cached(&file, 4096), Some(!advises_order));
    }
}

#[test]
fn a_job_that_ends_inside_its_ramp_says_so_and_has_figures() {
    let folder = Folder::new("ramp");
    let short = StorageJob { ramp_ns: 60_000_000_000, threads: 2, ..folder.job("short") };
    let report = quietly(&[short]).expect("it runs");
    let job = &report.jobs[0];
    assert_eq!((job.reads.operations, job.ended_in_ramp, job.failed), (512, true, false));
    assert!(job.elapsed_ns > 0 && job.reads.iops > 0.0, "{job:?}");
    let told = report.notes.iter().filter(|note| note.contains("inside its ramp of 60.00 s")).count();
    assert_eq!(told, 1, "{:?}", report.notes);
}

#[test]
fn jobs_that_ask_for_one_row_are_added_up() {
    let folder = Folder::new("rows");
    let job = |name: &str, stonewall| {
        let file = folder.0.join(name).to_string_lossy().into_owned();
        StorageJob { group_reporting: true, stonewall, file, ..folder.job(name) }
    };
    let jobs = [job("a", false), job("b", false), job("alone", true)];
    let report = quietly(&jobs).expect("it runs");
    let told: Vec<(usize, u64)> =
        report.told().iter().map(|(place, _, report)| (*place, report.reads.operations)).collect();
    assert_eq!(told, [(0, 512), (2, 256)]);
    let [row] = &report.rows[..] else { panic!("{} rows", report.rows.len()) };
    assert_eq!((row.first, row.count, row.report.reads.total.count), (0, 2, 512));
    let asked = row.report.job.as_ref().expect("it was asked");
    assert_eq!((asked.threads, asked.file.as_str()), (2, ""));
    assert!(row.report.elapsed_ns >= report.jobs[0].elapsed_ns.max(report.jobs[1].elapsed_ns));
    let each = jobs.map(|job| StorageJob { group_reporting: false, ..job });
    let report = quietly(&each).expect("it runs");
    assert_eq!((report.told().len(), report.rows.len()), (3, 1));
    assert!(!report.rows[0].replaces_jobs && report.rows[0].report.reads.operations == 512);
}

#[test]
fn a_mode_without_effect_is_told() {
    let folder = Folder::new("told");
    let job = StorageJob { engine: StorageEngine::Posixaio, ..folder.job("aio") };
    let report = quietly(&[job]).expect("it runs");
    assert!(report.notes.iter().any(|note| note.starts_with("aio: posixaio is")), "{:?}", report.notes);
}

#[test]
fn a_file_of_our_own_keeps_its_seal_when_the_user_names_it() {
    let folder = Folder::new("seal");
    quietly(&[folder.job("lay out")]).expect("it runs");
    let named = StorageJob {
        file_given: true,
        size_bytes: None,
        pattern: AccessPattern::Write,
        ..folder.job("named")
    };
    assert_eq!(quietly(&[named]).expect("it runs").jobs[0].writes.operations, 256);
    quietly(&[folder.job("again")]).expect("the file is still ours");
}

#[test]
fn every_method_of_completion_reads_every_block_once() {
    let folder = Folder::new("methods");
    let methods =
        [("interrupt", false), ("poll", false), ("linux-mean", false), ("fixed:20us", true), ("dpas", false)];
    for engine in [StorageEngine::Libaio, StorageEngine::IoUring] {
        for (predictor, armed) in methods {
            let job = StorageJob { engine, completion: waiting(predictor, armed), ..folder.job("wait") };
            let report = match quietly(&[job]) {
                Err(RunError::Engine { source: EngineError::Refused { mode, reason }, .. }) => {
                    skipped(&mode, &reason);
                    continue;
                }
                other => other.expect("it runs"),
            };
            let waited = report.jobs[0].waiting.as_ref().expect("there was a wait");
            assert_eq!(waited.operations, 256, "{engine} {predictor}");
            let sum_ns = waited.device_ns + waited.oversleep_ns + waited.wake_ns + waited.notice_ns;
            assert_eq!(sum_ns, waited.total_ns, "{engine} {predictor}");
            assert_eq!(waited.latency.count, 256, "{engine} {predictor}");
        }
    }
}

#[test]
fn ring_modes_and_sleeps_in_the_ring_work_together() {
    let folder = Folder::new("rings");
    for ring_mode in [RingMode::Default, RingMode::Coop, RingMode::Defer] {
        let options = StorageEngineOptions { ring_mode, ..StorageEngineOptions::default() };
        let sleep = SleepPrimitive::RingTimeout;
        let completion =
            CompletionMethod { predictor: "fixed:5us".to_owned(), sleep, ..CompletionMethod::default() };
        let job = StorageJob { engine: StorageEngine::IoUring, options, completion, ..folder.job("ring") };
        match quietly(&[job]) {
            Err(RunError::Engine { source: EngineError::Refused { mode, reason }, .. }) => {
                skipped(&mode, &reason);
            }
            other => assert_eq!(other.expect("it runs").jobs[0].reads.operations, 256, "{ring_mode:?}"),
        }
    }
}

/// Needs root, tracefs and a disk under the folder for temporary files; reports what is missing.
#[test]
fn the_kernel_tells_device_times_where_it_may() {
    let folder = Folder::new("truth");
    for predictor in ["poll", "fixed:200us"] {
        let job = StorageJob {
            engine: StorageEngine::Libaio,
            direct: true,
            device_clock: DeviceClock::Tracepoint,
            completion: waiting(predictor, false),
            ..folder.job("truth")
        };
        let report = match quietly(&[job]) {
            Err(error) if error.is_environment() => return skipped("tracepoint", &error.to_string()),
            other => other.expect("it runs"),
        };
        if let Some(note) = report.notes.iter().find(|note| note.contains("saw no request")) {
            return skipped("tracepoint", note);
        }
        let waited = report.jobs[0].waiting.as_ref().expect("there was a wait");
        assert_eq!((waited.device_clock, waited.operations), (DeviceClock::Tracepoint, 256), "{predictor}");
        assert!(waited.device_known > 0, "{predictor}: {:?}", report.notes);
        assert_eq!(waited.added.count, waited.device_known, "{predictor}");
        let sum_ns = waited.device_ns + waited.oversleep_ns + waited.wake_ns + waited.notice_ns;
        assert_eq!(sum_ns, waited.total_ns, "{predictor}");
        if predictor != "poll" && waited.device_known == 256 {
            assert!(waited.oversleep_ns > 0, "a device that takes 200 us for each would be a surprise");
        }
    }
}

#[test]
fn what_is_written_is_verified_by_all_threads() {
    let folder = Folder::new("verify");
    let job = StorageJob {
        pattern: AccessPattern::RandWrite,
        verify_crc32c: true,
        threads: 2,
        fsync_every: 64,
        ..folder.job("write")
    };
    let report = quietly(&[job]).expect("it runs");
    let job = &report.jobs[0];
    assert!(!job.failed, "{:?} {:?}", job.errors, report.notes);
    assert_eq!((job.writes.operations, job.fsyncs), (512, 8));
    assert_eq!((job.verified_blocks, job.verify_failures), (256, 0));
}

#[test]
fn a_wrong_block_is_found_and_fails_the_job() {
    let folder = Folder::new("wrong");
    let first = StorageJob { pattern: AccessPattern::Write, verify_crc32c: true, ..folder.job("first") };
    // At the same time, each overwrites the other's data.
    let second = StorageJob { seed: 77, name: "second".to_owned(), ..first.clone() };
    let report = quietly(&[first, second]).expect("it runs");
    assert_eq!(report.jobs.iter().map(|job| job.verified_blocks).collect::<Vec<_>>(), [256, 256]);
    let failures: u64 = report.jobs.iter().map(|job| job.verify_failures).sum();
    assert_eq!(failures, 256, "each block is one of theirs and wrong for the other");
    assert!(report.jobs.iter().any(|job| job.failed));
    assert!(report.notes.iter().any(|note| note.contains("is wrong")), "{:?}", report.notes);
}

/// Every block of 4 KiB of these files, and every word of 8 bytes in them: the highest number of occurrences.
fn repeats(files: &[PathBuf]) -> (usize, usize) {
    let (mut blocks, mut words) = (HashMap::<Vec<u8>, usize>::new(), HashMap::<Vec<u8>, usize>::new());
    for file in files {
        let bytes = fs::read(file).expect("it is there");
        for block in bytes[..1 << 20].chunks(4096) {
            *blocks.entry(block.to_vec()).or_default() += 1;
            block.chunks(8).for_each(|word| *words.entry(word.to_vec()).or_default() += 1);
        }
    }
    let most = |counts: HashMap<Vec<u8>, usize>| counts.into_values().max().unwrap_or(0);
    (most(blocks), most(words))
}

/// Storage that compresses or deduplicates must find no redundancy.
#[test]
fn what_is_written_never_repeats_within_a_job_or_beside_it() {
    let folder = Folder::new("unique");
    quietly(&[folder.job("lay out")]).expect("it runs");
    let file = folder.0.join("data");
    for (pattern, depth) in [(AccessPattern::Write, 1), (AccessPattern::RandRw, 4)] {
        let write = StorageJob {
            pattern,
            depth,
            threads: 2,
            read_percent: 50,
            engine: StorageEngine::Threads,
            ..folder.job("write")
        };
        let beside = StorageJob { thread_first: 3, ..write.clone() };
        let report = quietly(&[write, beside]).expect("it runs");
        assert!(report.jobs.iter().all(|job| !job.failed && job.fill_ns.is_some_and(|ns| ns > 0)));
        assert!(report.notes.iter().any(|note| note.contains("unique bytes")), "{:?}", report.notes);
        assert_eq!(repeats(std::slice::from_ref(&file)), (1, 1), "{pattern}");
    }
}

#[test]
fn two_files_of_our_own_have_no_block_in_common() {
    let folder = Folder::new("two-files");
    let files = [folder.0.join("data"), folder.0.join("other")];
    let other = StorageJob { file: files[1].to_string_lossy().into_owned(), ..folder.job("b") };
    quietly(&[folder.job("a"), other]).expect("it runs");
    assert_eq!(repeats(&files), (1, 1));
}

/// A verified job of two threads, with a ledger, and the same job for the check alone.
fn kept(folder: &Folder) -> [StorageJob; 2] {
    let job = StorageJob {
        pattern: AccessPattern::RandWrite,
        verify_crc32c: true,
        threads: 2,
        engine: StorageEngine::Threads,
        depth: 4,
        fsync_every: 8,
        ledger: Some(folder.0.join("ledger").to_string_lossy().into_owned()),
        ..folder.job("kept")
    };
    [job.clone(), StorageJob { verify_only: true, ..job }]
}

fn checked(job: &StorageJob) -> (StorageJobReport, Vec<String>) {
    let mut report = quietly(std::slice::from_ref(job)).expect("it can be read");
    (report.jobs.remove(0), report.notes)
}

#[test]
fn what_a_run_acknowledged_is_found_by_a_later_one_and_a_lost_write_too() {
    let folder = Folder::new("kept");
    let [write, check] = kept(&folder);
    let written = quietly(std::slice::from_ref(&write)).expect("it runs");
    assert!(!written.jobs[0].failed, "{:?}", written.notes);
    let (found, _) = checked(&check);
    // The last writes of each thread may not be covered by an fsync.
    assert!(
        found.verified_blocks > 200 && found.verified_blocks + found.unacknowledged_blocks == 256,
        "{found:?}"
    );
    assert_eq!((found.verify_failures, found.never_written_blocks, found.failed), (0, 0, false));

    let again = quietly(std::slice::from_ref(&write)).expect_err("the ledger is there").to_string();
    assert!(again.contains("exists") && again.contains("--verify-only"), "{again}");

    // The ledger does not know blocks of a later run without a ledger.
    let stranger = StorageJob { ledger: None, operations_max: Some(10), threads: 1, ..write.clone() };
    quietly(&[stranger]).expect("it runs");
    let (found, notes) = checked(&check);
    assert!(found.failed && (1..=10).contains(&found.verify_failures), "{found:?}");
    assert!(notes.iter().any(|note| note.contains("another run")), "{notes:?}");

    // A truncated file.
    let file = fs::File::options().write(true).open(&write.file).expect("ours");
    file.set_len(128 * 4096).expect("cut");
    let (found, _) = checked(&StorageJob { file_given: true, ..check.clone() });
    assert!(found.verify_failures > 100, "{found:?}");
}

#[test]
fn without_a_ledger_what_carries_a_stamp_must_be_whole() {
    let folder = Folder::new("no-ledger");
    let write = StorageJob {
        pattern: AccessPattern::Write,
        verify_crc32c: true,
        operations_max: Some(100),
        ..folder.job("write")
    };
    let check = StorageJob { verify_only: true, ..write.clone() };
    quietly(std::slice::from_ref(&write)).expect("it runs");
    let (found, notes) = checked(&check);
    assert_eq!((found.verified_blocks, found.never_written_blocks, found.failed), (100, 156, true));
    assert!(notes.iter().any(|note| note.contains("without a ledger")), "{notes:?}");
    assert!(notes.iter().any(|note| note.contains("156 blocks carry no stamp")), "{notes:?}");
    let written = StorageJob { size_bytes: Some(100 * 4096), ..check.clone() };
    let (found, notes) = checked(&written);
    assert_eq!(
        (found.verified_blocks, found.never_written_blocks, found.failed),
        (100, 0, false),
        "{notes:?}"
    );
    let file = fs::File::options().write(true).open(&write.file).expect("ours");
    file.set_len(40 * 4096).expect("it can be cut");
    let (found, _) = checked(&written);
    assert_eq!((found.verified_blocks, found.never_written_blocks, found.failed), (40, 60, true));
    let (found, _) = checked(&StorageJob { size_bytes: None, ..check.clone() });
    assert_eq!((found.verified_blocks, found.failed), (40, false), "nobody says that there was more");
    file.set_len(100).expect("it can be cut");
    let (found, notes) = checked(&StorageJob { size_bytes: None, ..check.clone() });
    assert_eq!((found.verified_blocks, found.failed), (0, true));
    assert!(notes.iter().any(|note| note.contains("no block to check")), "{notes:?}");
    quietly(&[StorageJob { file_given: false, ..write.clone() }])
        .expect_err("it is no file of ours any more");
    fs::remove_file(&write.file).expect("ours");
    quietly(std::slice::from_ref(&write)).expect("it runs");
    let file = fs::File::options().write(true).open(&write.file).expect("ours");
    std::os::unix::fs::FileExt::write_all_at(&file, b"!", 7 * 4096 + 1000).expect("written");
    let (found, notes) = checked(&check);
    assert_eq!((found.verify_failures, found.failed), (1, true));
    assert!(notes.iter().any(|note| note.contains("the block at 28672 is wrong")), "{notes:?}");
    let many = quietly(&[check.clone(), check]).expect_err("one by one").to_string();
    assert!(many.contains("single job"), "{many}");
}

#[test]
fn a_run_that_cannot_begin_leaves_no_ledger() {
    let folder = Folder::new("ledger-unused");
    let [write, _] = kept(&folder);
    let pinned = StorageJob { cpus: vec![100_000], ..write.clone() };
    assert!(matches!(quietly(&[pinned]), Err(RunError::Pin { .. })));
    assert!(!folder.0.join("ledger").exists(), "nothing was written");
    let nowhere = Some("/nowhere/ledger".to_owned());
    let file = folder.0.join("other").to_string_lossy().into_owned();
    let other = StorageJob { name: "other".to_owned(), file, ledger: nowhere, ..write.clone() };
    assert!(matches!(quietly(&[write.clone(), other]), Err(RunError::Ledger(_))));
    assert!(!folder.0.join("ledger").exists(), "nothing was written beside a job without its ledger");
    assert!(!quietly(&[write]).expect("the name is free").jobs[0].failed);
    assert!(folder.0.join("ledger").exists());
}

#[test]
fn a_pipe_is_refused_and_not_waited_for() {
    let folder = Folder::new("pipe");
    let job = StorageJob { verify_only: true, file_given: true, ..folder.job("pipe") };
    rustix::fs::mknodat(rustix::fs::CWD, &job.file, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .expect("a pipe can be made");
    let error = quietly(&[job]).expect_err("it is no file").to_string();
    assert!(error.contains("neither a regular file nor a block device"), "{error}");
}

#[test]
fn a_ledger_that_cannot_be_written_ends_the_run_that_would_be_unknown() {
    let folder = Folder::new("ledger-nowhere");
    let [write, _] = kept(&folder);
    let nowhere = StorageJob { ledger: Some("/nowhere/ledger".to_owned()), ..write.clone() };
    let error = quietly(&[nowhere]).expect_err("no folder").to_string();
    assert!(error.contains("/nowhere/ledger"), "{error}");
    let unverified = StorageJob { verify_crc32c: false, ..write };
    assert!(quietly(&[unverified]).expect_err("no stamps").is_usage());
}

#[test]
fn a_second_run_on_a_file_is_refused_and_told_who_has_it() {
    let folder = Folder::new("claimed");
    let job = folder.job("a");
    let inner = folder.job("b");
    let refused = RefCell::new(None);
    let report = run(std::slice::from_ref(&job), &AtomicBool::new(false), &|progress| {
        if matches!(progress, Progress::Running { .. }) {
            *refused.borrow_mut() = quietly(std::slice::from_ref(&inner)).err();
        }
    });
    assert!(!report.expect("it runs").jobs[0].failed);
    let error = refused.into_inner().expect("the second was refused");
    assert!(error.is_usage(), "{error}");
    let text = error.to_string();
    assert!(text.contains(&job.file) && text.contains("in use by another run"), "{text}");
    quietly(&[inner]).expect("nobody has it any more");
}

#[test]
fn a_stonewall_waits_and_later_jobs_find_the_same_file() {
    let folder = Folder::new("stonewall");
    let told = RefCell::new(0_u64);
    let jobs = [folder.job("a"), folder.job("b"), StorageJob { stonewall: true, ..folder.job("c") }];
    let progress = |progress: &Progress<'_>| {
        if let Progress::Running { jobs, .. } = progress {
            *told.borrow_mut() += jobs.iter().map(|job| job.operations).sum::<u64>();
        }
    };
    let report = run(&jobs, &AtomicBool::new(false), &progress).expect("it runs");
    let names: Vec<String> =
        report.jobs.iter().map(|job| job.job.as_ref().expect("a job").name.clone()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert!(report.jobs.iter().all(|job| job.reads.operations == 256 && !job.failed));
    assert!(*told.borrow() >= 3 * 256, "the end of each group is reported");
}

#[test]
fn an_interrupted_run_keeps_its_figures_and_says_so() {
    let folder = Folder::new("interrupt");
    quietly(&[folder.job("lay out")]).expect("it runs");
    let endless = StorageJob { time_based: true, runtime_ns: Some(1 << 50), ..folder.job("endless") };
    let jobs = [endless.clone(), StorageJob { stonewall: true, ..endless }];
    let interrupt = AtomicBool::new(false);
    // The first progress report ends it, after some operations.
    let report = run(&jobs, &interrupt, &|progress| {
        if matches!(progress, Progress::Running { .. }) {
            interrupt.store(true, Ordering::Relaxed);
        }
    })
    .expect("it ran");
    assert_eq!(report.jobs.len(), 1);
    assert!(report.jobs[0].failed && report.jobs[0].reads.operations > 0);
    assert!(report.notes.iter().any(|note| note.starts_with("interrupted")), "{:?}", report.notes);
    let left: Vec<_> =
        fs::read_dir(&folder.0).expect("the folder").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["data"]);
}

#[test]
fn a_panic_of_the_one_that_looks_on_ends_the_threads() {
    let folder = Folder::new("panic");
    let endless =
        StorageJob { time_based: true, runtime_ns: Some(1 << 50), threads: 2, ..folder.job("endless") };
    let interrupt = AtomicBool::new(false);
    let ended = std::panic::catch_unwind(|| {
        run(&[endless], &interrupt, &|progress| {
            assert!(!matches!(progress, Progress::Running { .. }), "on purpose");
        })
    });
    assert!(ended.is_err(), "it is handed on, and not before the threads have ended");
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    let folder = Folder::new("refused");
    let wait = |predictor| waiting(predictor, false);
    let sentence = |job: StorageJob| {
        let error = quietly(&[job]).expect_err("it cannot run");
        assert!(error.is_usage(), "{error}");
        error.to_string()
    };
    let none = sentence(StorageJob { completion: wait("poll"), ..folder.job("a") });
    assert!(none.contains("there is no wait for poll to choose"), "{none}");
    let unknown = StorageJob { engine: StorageEngine::Libaio, completion: wait("oracle"), ..folder.job("a") };
    assert!(sentence(unknown).contains("oracle"));
    let deep = StorageJob {
        device_clock: DeviceClock::Tracepoint,
        depth: 2,
        engine: StorageEngine::Libaio,
        ..folder.job("a")
    };
    assert!(sentence(deep).contains("depth of 1"));
    let pinned = sentence(StorageJob { cpus: vec![100_000], ..folder.job("a") });
    assert!(pinned.contains("CPU 100000"), "{pinned}");
    let missing = StorageJob { file: "/nowhere/at/all".to_owned(), file_given: true, ..folder.job("a") };
    assert!(quietly(&[missing]).expect_err("no file").to_string().contains("/nowhere/at/all"));
}

#[test]
fn a_later_group_that_cannot_begin_leaves_the_earlier_reports() {
    let folder = Folder::new("later");
    let jobs = [folder.job("a"), StorageJob { stonewall: true, cpus: vec![100_000], ..folder.job("b") }];
    let report = quietly(&jobs).expect("the first ran");
    assert_eq!(report.jobs.iter().map(|job| job.failed).collect::<Vec<_>>(), [false, true]);
    assert_eq!(report.jobs[0].reads.operations, 256);
    assert!(report.notes.iter().any(|note| note.contains("CPU 100000")), "{:?}", report.notes);
}

#[test]
fn more_blocks_than_can_be_remembered_are_refused() {
    let job = StorageJob { pattern: AccessPattern::RandWrite, block_bytes: 512, ..StorageJob::default() };
    // A terabyte in blocks of 512 bytes: a quarter of a GiB of bits, and 8 GiB of counts.
    let terabyte = 1 << 40;
    assert!(check_memory(std::slice::from_ref(&job), &[terabyte]).is_ok());
    let verified = StorageJob { verify_crc32c: true, ..job.clone() };
    let many = StorageJob { threads: 17, ..job.clone() };
    for wrong in [vec![verified], vec![many], vec![job.clone(); 17]] {
        let used = vec![terabyte; wrong.len()];
        let error = check_memory(&wrong, &used).expect_err("too many");
        assert!(error.is_usage() && error.to_string().contains("larger blocks"), "{error}");
    }
    let free = StorageJob { no_random_map: true, threads: 1000, ..job };
    assert!(check_memory(&[free], &[terabyte]).is_ok());
}

#[test]
fn groups_begin_where_a_job_waits() {
    let job = |stonewall| StorageJob { stonewall, ..StorageJob::default() };
    let jobs = [true, false, true, true, false].map(job);
    assert_eq!(groups(&jobs), [0..2, 2..3, 3..5]);
    assert_eq!(groups(&[]), []);
}
