//! One test body for every engine: common promises and refusals.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process,
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use rustix::io::Errno;
use weir_record::storage::{AccessPattern, RingMode, StorageEngine, StorageEngineOptions, StorageJob};

use super::{
    Completed, DEPTH_MAX, Engine, EngineError, Operation, OperationError, OperationKind, open, outcome,
    probe, target, threads,
};
use crate::{
    layout,
    verify::{self, Stamp},
};

const BLOCK: u32 = 4096;
const BLOCKS: u64 = 64;
const SEED: u64 = 11;
const CANARY: u8 = 0xc5;

/// A temporary folder with a laid-out file; removed at the end.
struct Place {
    folder: PathBuf,
    file: PathBuf,
    /// Not every temporary file system supports `O_DIRECT`.
    is_direct: bool,
}

impl Place {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("weir-engine-{name}-{}", process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("data");
        layout::prepare(&file, BLOCKS * u64::from(BLOCK), SEED, &|_, _| {}, &AtomicBool::new(false))
            .expect("laid out");
        let mut place = Self { folder, file, is_direct: true };
        let direct = target::open(&place.job(StorageEngine::Pread, 1));
        place.is_direct = !matches!(direct, Err(EngineError::NoDirect { .. }));
        place
    }

    fn job(&self, engine: StorageEngine, depth: u32) -> StorageJob {
        StorageJob {
            file: self.file.display().to_string(),
            file_given: true,
            block_bytes: BLOCK,
            pattern: AccessPattern::RandRead,
            direct: self.is_direct,
            engine,
            depth,
            ..StorageJob::default()
        }
    }

    /// A job for every engine and mode that works on any device, with a depth it supports.
    fn jobs(&self, depth: u32) -> Vec<(String, StorageJob)> {
        let mut jobs = Vec::new();
        for engine in StorageEngine::ALL {
            let depth = match engine {
                StorageEngine::Pread | StorageEngine::Pwritev => 1,
                StorageEngine::Threads => depth.min(threads::WORKERS_MAX),
                _ => depth,
            };
            let job = self.job(engine, depth);
            let default = StorageEngineOptions::default();
            let variants = match engine {
                StorageEngine::IoUring => vec![
                    ("default", StorageEngineOptions { ring_mode: RingMode::Default, ..default }),
                    ("coop", StorageEngineOptions { ring_mode: RingMode::Coop, ..default }),
                    ("defer", default),
                    ("fixed", StorageEngineOptions { fixed_buffers: true, fixed_files: true, ..default }),
                    ("sqpoll", StorageEngineOptions { sqpoll: true, ..default }),
                ],
                _ => vec![("", default)],
            };
            for (mode, options) in variants {
                jobs.push((format!("{engine} {mode}"), StorageJob { options, ..job.clone() }));
            }
        }
        jobs
    }

    /// Runs one body on every engine the kernel allows.
    fn each(&self, depth: u32, change: impl Fn(&mut StorageJob), body: impl Fn(&str, u32, &mut dyn Engine)) {
        for (name, mut job) in self.jobs(depth) {
            change(&mut job);
            match open(&job, 0) {
                Ok(mut engine) => body(&name, job.depth, engine.as_mut()),
                // A container may forbid io_uring; the other engines always work.
                Err(EngineError::Refused { .. }) if job.engine == StorageEngine::IoUring => {}
                Err(error) => panic!("{name}: {error}"),
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _: io::Result<()> = fs::remove_dir_all(&self.folder);
    }
}

fn read(slot: u32, block: u64) -> Operation {
    Operation { slot, kind: OperationKind::Read, offset_bytes: block * u64::from(BLOCK), bytes: BLOCK }
}

fn expected(block: u64) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK as usize];
    verify::fill(SEED, block * u64::from(BLOCK), &mut bytes);
    bytes
}

/// Submits one operation and waits for it.
fn one(engine: &mut dyn Engine, operation: Operation) -> Completed {
    let mut completed = Vec::new();
    assert_eq!(engine.submit_and_wait(&[operation], &mut completed).expect("it works"), 1);
    assert_eq!(completed.len(), 1);
    completed[0]
}

/// Keeps `depth` reads in flight until every block was read once, and compares each with the laid-out data.
fn read_all(
    name: &str,
    depth: u32,
    engine: &mut dyn Engine,
    fetch: fn(&mut dyn Engine, &mut Vec<Completed>) -> io::Result<()>,
) {
    let mut block_of_slot = vec![u64::MAX; depth as usize];
    let mut idle: Vec<u32> = (0..depth).collect();
    let (mut next, mut seen) = (0, 0);
    let mut completed = Vec::new();
    while seen < BLOCKS {
        let mut operations = Vec::new();
        while next < BLOCKS
            && let Some(slot) = idle.pop()
        {
            engine.buffer(slot).fill(CANARY);
            block_of_slot[slot as usize] = next;
            operations.push(read(slot, next));
            next += 1;
        }
        let taken = engine.submit(&operations).expect("it takes them");
        for left in &operations[taken..] {
            idle.push(left.slot);
            next -= 1;
        }
        fetch(engine, &mut completed).expect("it works");
        for done in completed.drain(..) {
            let block = block_of_slot[done.slot as usize];
            assert_eq!(outcome(&read(done.slot, block), done), Ok(()), "{name}: block {block}");
            assert!(engine.buffer(done.slot) == expected(block), "{name}: block {block} is another one");
            idle.push(done.slot);
            seen += 1;
        }
    }
    assert_eq!(idle.len(), depth as usize, "{name}: every slot is idle again");
}

#[test]
fn every_engine_reads_what_was_laid_out_by_waiting() {
    let place = Place::new("waiting");
    place.each(
        8,
        |_| {},
        |name, depth, engine| {
            read_all(name, depth, engine, |engine, completed| engine.wait(completed));
        },
    );
}

#[test]
fn every_engine_reads_what_was_laid_out_by_polling() {
    let place = Place::new("polling");
    place.each(
        8,
        |_| {},
        |name, depth, engine| {
            read_all(name, depth, engine, |engine, completed| engine.poll(completed));
        },
    );
}

#[test]
fn every_engine_reads_what_was_laid_out_by_armed_sleeps() {
    let place = Place::new("armed");
    place.each(
        8,
        |_| {},
        |name, depth, engine| {
            read_all(name, depth, engine, |engine, completed| {
                engine.wait_at_most(Duration::from_micros(30), completed)
            });
        },
    );
}

#[test]
fn the_depth_can_be_used_up_and_no_slot_twice() {
    let place = Place::new("depth");
    place.each(
        DEPTH_MAX,
        |_| {},
        |name, depth, engine| {
            let operations: Vec<Operation> =
                (0..depth).map(|slot| read(slot, u64::from(slot) % BLOCKS)).collect();
            let mut completed = Vec::new();
            let mut handed = 0;
            while handed < operations.len() {
                handed += engine.submit(&operations[handed..]).expect("it takes them");
                if handed < operations.len() {
                    engine.wait(&mut completed).expect("it works");
                }
            }
            while completed.len() < operations.len() {
                engine.wait(&mut completed).expect("it works");
            }
            let mut slots: Vec<u32> = completed.iter().map(|done| done.slot).collect();
            slots.sort_unstable();
            assert!(slots.iter().copied().eq(0..depth), "{name}");
            assert!(completed.iter().all(|done| done.result == BLOCK as i32), "{name}");
            for slot in (0..depth).step_by(97) {
                assert!(engine.buffer(slot) == expected(u64::from(slot) % BLOCKS), "{name}: slot {slot}");
            }
            // With nothing in flight no call may sleep.
            completed.clear();
            engine.wait(&mut completed).expect("it works");
            engine.wait_at_most(Duration::from_secs(60), &mut completed).expect("it works");
            engine.poll(&mut completed).expect("it works");
            assert!(completed.is_empty(), "{name}");
        },
    );
}

#[test]
fn operations_that_do_not_fit_are_refused_and_leave_the_engine_usable() {
    let place = Place::new("misfit");
    place.each(
        2,
        |_| {},
        |name, depth, engine| {
            let too_long = Operation { bytes: BLOCK + 1, ..read(0, 0) };
            assert!(engine.submit(&[too_long]).is_err(), "{name}: longer than the buffer");
            assert!(engine.submit(&[read(depth, 0)]).is_err(), "{name}: no such slot");
            // The second names an occupied slot: only the first is submitted, or both in sequence.
            assert_eq!(engine.submit(&[read(0, 1), read(0, 2)]).expect("the first fits"), 1, "{name}");
            let mut completed = Vec::new();
            engine.wait(&mut completed).expect("it works");
            assert_eq!(completed, [Completed { slot: 0, result: BLOCK as i32 }], "{name}");
            assert!(engine.buffer(0) == expected(1), "{name}");
            assert_eq!(engine.submit(&[]).expect("nothing to do"), 0, "{name}");
        },
    );
}

#[test]
fn an_engine_dropped_with_operations_in_flight_waits_for_them() {
    let place = Place::new("drop");
    for round in 0..4 {
        place.each(
            64,
            |_| {},
            |_, depth, engine| {
                let operations: Vec<Operation> =
                    (0..depth).map(|slot| read(slot, u64::from(slot + round) % BLOCKS)).collect();
                engine.submit(&operations).expect("it takes them");
            },
        );
    }
    // If one had written into freed memory, it would be the memory of these.
    place.each(
        64,
        |_| {},
        |name, depth, engine| {
            read_all(name, depth, engine, |engine, completed| engine.wait(completed));
        },
    );
}

#[test]
fn at_the_end_of_the_file_reads_are_short_and_the_rest_of_the_buffer_is_untouched() {
    let place = Place::new("end");
    let file = File::options().write(true).open(&place.file).expect("ours");
    file.set_len(3 * u64::from(BLOCK) + 100).expect("cut");
    place.each(
        2,
        |job| job.direct = false,
        |name, _, engine| {
            engine.buffer(0).fill(CANARY);
            let last = one(engine, read(0, 3));
            assert_eq!(last, Completed { slot: 0, result: 100 }, "{name}");
            assert_eq!(
                outcome(&read(0, 3), last),
                Err(OperationError::Short { done: 100, asked: BLOCK }),
                "{name}"
            );
            assert!(engine.buffer(0)[..100] == expected(3)[..100], "{name}");
            assert!(engine.buffer(0)[100..].iter().all(|&byte| byte == CANARY), "{name}: beyond the end");
            engine.buffer(0).fill(CANARY);
            assert_eq!(one(engine, read(0, 1000)).result, 0, "{name}");
            assert!(engine.buffer(0).iter().all(|&byte| byte == CANARY), "{name}: nothing was read");
        },
    );
}

#[test]
fn what_was_written_is_read_back_whole() {
    let place = Place::new("write");
    let change = |job: &mut StorageJob| job.pattern = AccessPattern::RandRw;
    place.each(4, change, |name, depth, engine| {
        for block in 0..8_u64 {
            let slot = (block % u64::from(depth)) as u32;
            let stamp = Stamp { seed: SEED, offset_bytes: block * u64::from(BLOCK), generation: 1 };
            verify::fill(SEED + 1, stamp.offset_bytes, engine.buffer(slot));
            verify::stamp(engine.buffer(slot), &stamp);
            let write = Operation { kind: OperationKind::Write, ..read(slot, block) };
            assert_eq!(outcome(&write, one(engine, write)), Ok(()), "{name}");
            let fsync = Operation { slot, kind: OperationKind::Fsync, offset_bytes: 0, bytes: 0 };
            assert_eq!(outcome(&fsync, one(engine, fsync)), Ok(()), "{name}");
            engine.buffer(slot).fill(CANARY);
            assert_eq!(one(engine, read(slot, block)).result, BLOCK as i32, "{name}");
            assert_eq!(verify::check(engine.buffer(slot), &stamp), Ok(()), "{name}");
        }
    });
    let mut beyond = vec![0; BLOCK as usize];
    let file = File::open(&place.file).expect("ours");
    file.read_exact_at(&mut beyond, 8 * u64::from(BLOCK)).expect("readable");
    assert!(beyond == expected(8), "a block was written that nobody asked for");
}

#[test]
fn an_engine_of_native_aio_makes_durable_in_the_call_and_in_order() {
    let place = Place::new("durable");
    let change = |job: &mut StorageJob| job.pattern = AccessPattern::RandRw;
    place.each(4, change, |name, depth, engine| {
        if depth < 4 || !name.starts_with("libaio") {
            return;
        }
        let write = |slot| Operation { kind: OperationKind::Write, ..read(slot, 0) };
        let durable = |slot, kind| Operation { slot, kind, offset_bytes: 0, bytes: 0 };
        let operations =
            [write(0), durable(1, OperationKind::Fsync), durable(2, OperationKind::Fdatasync), write(3)];
        assert_eq!(engine.submit(&operations).expect("taken"), 4, "{name}");
        let mut completed = Vec::new();
        engine.poll(&mut completed).expect("polled");
        let synced: Vec<(u32, i32)> = completed.iter().map(|done| (done.slot, done.result)).take(2).collect();
        assert_eq!(synced, [(1, 0), (2, 0)], "{name}");
        while completed.len() < 4 {
            engine.wait(&mut completed).expect("waited");
        }
        assert!(completed[2..].iter().all(|done| done.result == BLOCK as i32), "{name}: {completed:?}");
    });
}

#[test]
fn what_the_kernel_refuses_is_the_result_of_that_operation_alone() {
    let place = Place::new("refused");
    place.each(
        4,
        |_| {},
        |name, _, engine| {
            // The file is open for reading only.
            let write = Operation { kind: OperationKind::Write, ..read(0, 0) };
            let done = one(engine, write);
            assert_eq!(
                outcome(&write, done),
                Err(OperationError::System(Errno::BADF.raw_os_error())),
                "{name}"
            );
            assert_eq!(OperationError::System(-done.result).name(), "EBADF", "{name}");
            assert_eq!(one(engine, read(0, 5)).result, BLOCK as i32, "{name}");
            assert!(engine.buffer(0) == expected(5), "{name}");
            if place.is_direct {
                let crooked = Operation { offset_bytes: 100, ..read(0, 0) };
                // Some file systems use the page cache for such a read instead.
                let result = one(engine, crooked).result;
                assert!([-Errno::INVAL.raw_os_error(), BLOCK as i32].contains(&result), "{name}: {result}");
            }
        },
    );
    assert!(fs::read(&place.file).expect("ours")[..BLOCK as usize] == expected(0), "it was written");
}

#[test]
fn a_sleep_inside_the_engine_lasts_although_an_operation_completes() {
    let place = Place::new("sleep");
    let length = Duration::from_millis(3);
    place.each(
        4,
        |_| {},
        |name, _, engine| {
            assert_eq!(engine.submit(&[read(0, 7)]).expect("it takes it"), 1);
            let start = Instant::now();
            let slept = engine.sleep_whole(length);
            assert_eq!(slept.is_some(), name.starts_with("io_uring"), "{name}");
            if let Some(slept) = slept {
                slept.expect("it sleeps");
                assert!(start.elapsed() >= length, "{name}: {:?}", start.elapsed());
            }
            let mut completed = Vec::new();
            engine.wait(&mut completed).expect("it works");
            assert_eq!(completed, [Completed { slot: 0, result: BLOCK as i32 }], "{name}");
        },
    );
}

#[test]
fn libaio_without_the_mapped_ring_does_the_same() {
    let place = Place::new("getevents");
    let file = || target::open(&place.job(StorageEngine::Libaio, 8)).expect("ours");
    let engine = || {
        super::libaio::Libaio::with(file(), 8, BLOCK, weir_sys::aio::Reaping::SystemCall).expect("a context")
    };
    assert!(!engine().is_mapped());
    read_all("libaio", 8, &mut engine(), |engine, completed| engine.wait(completed));
    read_all("libaio", 8, &mut engine(), |engine, completed| engine.poll(completed));
}

/// The message with which a job is refused.
fn refusal(job: &StorageJob) -> String {
    match open(job, 0) {
        Ok(_) => panic!("{job:?} was not refused"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_target_that_has_no_blocks_is_named() {
    let place = Place::new("target");
    let of = |path: &Path| {
        let file = path.display().to_string();
        refusal(&StorageJob { file, ..place.job(StorageEngine::Pread, 1) })
    };
    assert!(of(&place.folder.join("missing")).contains("cannot open"));
    assert!(of(&place.folder).contains("is a directory; use a regular file or a block device"));
    assert!(of(Path::new("/dev/null")).contains("is a character device"));
}

#[test]
fn a_file_that_is_too_small_is_refused_with_both_numbers() {
    let place = Place::new("small");
    let job = place.job(StorageEngine::Pread, 1);
    let has = fs::metadata(&place.file).expect("ours").len();
    let beyond = StorageJob { offset_bytes: has, ..job.clone() };
    let text = refusal(&beyond);
    assert!(
        text.ends_with(&format!("bytes {has} to {} are asked for, but it has {has}", has + 4096)),
        "{text}"
    );
    let larger = StorageJob { size_bytes: Some(has + 1), ..job.clone() };
    assert!(refusal(&larger).contains("are asked for"));
    let endless = StorageJob { size_bytes: Some(u64::MAX), offset_bytes: 4096, ..job.clone() };
    assert!(refusal(&endless).contains("are asked for"));
    let no_room = StorageJob { size_bytes: Some(100), ..job };
    assert!(refusal(&no_room).contains("has no room for one block of 4096"));
}

#[test]
fn crooked_blocks_and_offsets_are_refused_for_direct_and_allowed_for_buffered_reads() {
    let place = Place::new("crooked");
    let crooked = [
        StorageJob { block_bytes: 1000, ..place.job(StorageEngine::Pread, 1) },
        StorageJob { offset_bytes: 100, ..place.job(StorageEngine::Libaio, 1) },
    ];
    for job in crooked {
        if place.is_direct {
            let text = refusal(&job);
            assert!(text.contains("is no multiple of") && text.contains("O_DIRECT"), "{text}");
        }
        let buffered = StorageJob { direct: false, ..job };
        assert!(open(&buffered, 0).is_ok());
    }
}

#[test]
fn a_file_system_without_direct_reads_is_named() {
    let place = Place::new("no-direct");
    let job = StorageJob {
        file: "/proc/self/status".to_owned(),
        direct: true,
        ..place.job(StorageEngine::Pread, 1)
    };
    let text = refusal(&job);
    assert!(text.contains("(proc) does not do O_DIRECT"), "{text}");
}

#[test]
fn numbers_out_of_range_and_options_of_others_are_refused() {
    let place = Place::new("asked");
    let job = |engine, depth| place.job(engine, depth);
    let default = StorageEngineOptions::default();
    let cases = [
        (job(StorageEngine::Pread, 2), "does one operation at a time"),
        (job(StorageEngine::Threads, threads::WORKERS_MAX + 1), "a thread for each operation"),
        (job(StorageEngine::Libaio, 0), "a depth of 0 is out of range"),
        (job(StorageEngine::Libaio, DEPTH_MAX + 1), "use 1 to 4096"),
        (StorageJob { block_bytes: 0, ..job(StorageEngine::Pread, 1) }, "the block size is 0"),
        (
            StorageJob { block_bytes: 1 << 30, ..job(StorageEngine::Libaio, 32) },
            "bytes of buffers in each thread",
        ),
        (
            StorageJob {
                options: StorageEngineOptions { sqpoll: true, ..default },
                ..job(StorageEngine::Libaio, 1)
            },
            "are options of io_uring, not of libaio",
        ),
        (
            StorageJob {
                options: StorageEngineOptions { high_priority: true, ..default },
                ..job(StorageEngine::Pread, 1)
            },
            "RWF_HIPRI is an option of pwritev",
        ),
        (
            StorageJob {
                direct: false,
                options: StorageEngineOptions { iopoll: true, ..default },
                ..job(StorageEngine::IoUring, 1)
            },
            "needs direct I/O",
        ),
        (
            StorageJob {
                fsync_every: 1,
                direct: true,
                options: StorageEngineOptions { hybrid_iopoll: true, ..default },
                ..job(StorageEngine::IoUring, 1)
            },
            "cannot fsync",
        ),
    ];
    for (job, part) in cases {
        let text = refusal(&job);
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn polled_modes_work_or_say_what_is_missing() {
    let place = Place::new("polled");
    if !place.is_direct {
        return;
    }
    let options = StorageEngineOptions::default();
    for options in [
        StorageEngineOptions { iopoll: true, ..options },
        StorageEngineOptions { hybrid_iopoll: true, ..options },
        StorageEngineOptions { iopoll: true, sqpoll: true, ..options },
    ] {
        let job = StorageJob { options, ..place.job(StorageEngine::IoUring, 4) };
        match open(&job, 0) {
            Ok(mut engine) => {
                read_all("polled", 4, engine.as_mut(), |engine, completed| engine.poll(completed));
            }
            Err(error @ EngineError::Refused { .. }) => {
                let text = error.to_string();
                let reasons =
                    ["io_poll is 0", "cannot be polled", "needs Linux 6.13", "not permitted", "no io_uring"];
                assert!(reasons.iter().any(|reason| text.contains(reason)), "{text}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn the_probe_tries_every_mode_and_gives_a_reason_for_each_it_refuses() {
    let place = Place::new("probe");
    let modes = probe::modes(&place.file);
    assert_eq!(modes.len(), 13);
    let mode = |name: &str| modes.iter().find(|mode| mode.name == name).expect("it is tried");
    for name in ["pread", "pwritev", "threads", "posixaio", "libaio"] {
        assert_eq!(mode(name).refusal.is_none(), place.is_direct, "{name}: {:?}", mode(name));
    }
    for refusal in modes.iter().filter_map(|mode| mode.refusal.as_ref()) {
        assert!(refusal.len() > 20, "{refusal}");
    }
    let missing = probe::modes(&place.folder.join("missing"));
    assert!(
        missing.iter().all(|mode| mode.refusal.as_ref().is_some_and(|text| text.contains("cannot open")))
    );
}
