//! Checks that do not depend on the file: one sentence for each error, with the name of the setting. Pure.

use std::fmt;

use weir_record::storage::{
    BlockSizes, DeviceClock, RingMode, Sequencer, Skew, SleepPrimitive, StorageEngine, StorageEngineOptions,
    StorageJob,
};

use super::{
    offsets::{blocks, unit_bytes},
    units::shown_bytes,
};
use crate::predict::PredictorSpec;

/// Largest block.
pub const BLOCK_BYTES_MAX: u32 = 64 << 20;
/// Most operations in flight per thread.
pub const DEPTH_MAX: u32 = 4096;
/// Most threads of one run.
pub const THREADS_MAX: u32 = 1024;
/// Most blocks in the map of used blocks: half a GiB of bits.
pub const MAP_BLOCKS_MAX: u64 = 1 << 32;
/// Buffers of all threads together.
const BUFFERS_BYTES_MAX: u64 = 4 << 30;
/// Smallest unit of `O_DIRECT`.
const DIRECT_BYTES: u64 = 512;
/// Smallest block with room for a checksum and its header.
const VERIFIED_BYTES_MIN: u32 = 512;
/// Longest time of a job: 30 days.
const TIME_NS_MAX: u64 = 30 * 86_400 * 1_000_000_000;
/// Shortest interval of the measurement points.
const INTERVAL_NS_MIN: u64 = 1_000_000;

/// A setting with both of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Flag on the command line, without the dashes.
    pub flag: &'static str,
    /// Key in a job file.
    pub key: &'static str,
}

impl Field {
    const fn new(flag: &'static str, key: &'static str) -> Self {
        Self { flag, key }
    }
}

const SIZE: Field = Field::new("size", "size");
const OFFSET: Field = Field::new("offset", "offset");
const BLOCK: Field = Field::new("bs", "bs");
const READ_PERCENT: Field = Field::new("read-percent", "rwmixread");
const DEPTH: Field = Field::new("depth", "iodepth");
const THREADS: Field = Field::new("jobs", "numjobs");
const RUNTIME: Field = Field::new("runtime", "runtime");
const TIME_BASED: Field = Field::new("runtime", "time_based");
const RAMP: Field = Field::new("ramp", "ramp_time");
const OPERATIONS: Field = Field::new("operations", "number_ios");
const RATE: Field = Field::new("rate", "rate_iops");
const RATE_BYTES: Field = Field::new("rate", "rate");
const LOOPS: Field = Field::new("loops", "loops");
const IO_SIZE: Field = Field::new("size", "io_size");
const RANGE: Field = Field::new("bs", "bsrange");
const SPLIT: Field = Field::new("bs", "bssplit");
const PERCENT: Field = Field::new("size", "size");
const FDATASYNC: Field = Field::new("fdatasync", "fdatasync");
const SKEW: Field = Field::new("rw", "random_distribution");
const SEQUENCE: Field = Field::new("rw", "rw");
const GENERATOR: Field = Field::new("rw", "random_generator");
const SEQUENCER: Field = Field::new("rw", "rw_sequencer");
const BATCH: Field = Field::new("batch", "iodepth_batch");
const FSYNC: Field = Field::new("fsync", "fsync");
const VERIFY: Field = Field::new("verify", "verify");
const COMPLETION: Field = Field::new("completion", "weir_completion");
const ARMED: Field = Field::new("armed", "weir_armed");
const SLEEP: Field = Field::new("sleep", "weir_sleep");
const RING_MODE: Field = Field::new("ring-mode", "weir_ring_mode");
const SQPOLL: Field = Field::new("sqpoll", "sqthread_poll");
const IOPOLL: Field = Field::new("iopoll", "hipri");
const HYBRID_IOPOLL: Field = Field::new("hybrid-iopoll", "weir_hybrid_iopoll");
const FIXED_BUFFERS: Field = Field::new("fixed-buffers", "fixedbufs");
const FIXED_FILES: Field = Field::new("fixed-files", "registerfiles");
const HIGH_PRIORITY: Field = Field::new("high-priority", "hipri");
const MAP: Field = Field::new("no-random-map", "norandommap");
const PERCENTILES: Field = Field::new("percentiles", "percentile_list");
const INTERVAL: Field = Field::new("interval", "weir_interval");
const DEVICE_CLOCK: Field = Field::new("device-clock", "weir_device_clock");

/// Why a job cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobError {
    /// The setting.
    pub field: Field,
    /// What is wrong with it and what would be valid.
    pub reason: String,
}

impl JobError {
    pub(crate) fn new(field: Field, reason: impl Into<String>) -> Self {
        Self { field, reason: reason.into() }
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "--{}: {}", self.field.flag, self.reason)
    }
}

impl std::error::Error for JobError {}

fn refuse_if(is_wrong: bool, field: Field, reason: impl FnOnce() -> String) -> Result<(), JobError> {
    if is_wrong { Err(JobError::new(field, reason())) } else { Ok(()) }
}

/// Checks whether a job can run at all; [another function](super::check_target) checks its file.
pub fn validate(job: &StorageJob) -> Result<(), JobError> {
    sizes(job)?;
    amounts(job)?;
    times(job)?;
    engine(job)?;
    options(job.engine, &job.options)?;
    completion(job)?;
    writes(job)?;
    report(job)
}

/// Checks whether several jobs can run together.
pub fn validate_all(jobs: &[StorageJob]) -> Result<(), JobError> {
    for job in jobs {
        validate(job)?;
    }
    let differ = |pair: &&[StorageJob]| {
        pair[1].group_reporting
            && !pair[1].new_group
            && !pair[1].stonewall
            && pair[0].interval_ns != pair[1].interval_ns
    };
    refuse_if(jobs.windows(2).any(|pair| differ(&pair)), INTERVAL, || {
        "jobs of one row (group_reporting) need intervals of one length".to_owned()
    })?;
    let threads: u64 = jobs.iter().map(|job| u64::from(job.threads)).sum();
    refuse_if(threads > u64::from(THREADS_MAX), THREADS, || {
        format!("{threads} threads in all are too many; at most {THREADS_MAX}")
    })?;
    let buffer_bytes =
        |job: &StorageJob| u64::from(job.threads) * u64::from(job.depth) * u64::from(job.block_bytes);
    let buffers_bytes: u64 = jobs.iter().map(buffer_bytes).sum();
    refuse_if(buffers_bytes > BUFFERS_BYTES_MAX, DEPTH, || {
        format!(
            "blocks in flight need {} bytes of buffers in all, at most {} are given; use fewer or smaller ones",
            shown_bytes(buffers_bytes),
            shown_bytes(BUFFERS_BYTES_MAX)
        )
    })
}

fn sizes(job: &StorageJob) -> Result<(), JobError> {
    let block = u64::from(job.block_bytes);
    refuse_if(job.block_bytes == 0 || job.block_bytes > BLOCK_BYTES_MAX, BLOCK, || {
        format!(
            "a block of {block} bytes is not possible; use 1 to {}",
            shown_bytes(u64::from(BLOCK_BYTES_MAX))
        )
    })?;
    let lengths = match &job.block_sizes {
        BlockSizes::Same => BLOCK,
        BlockSizes::Range { .. } => RANGE,
        BlockSizes::Split(_) => SPLIT,
        BlockSizes::ByDirection { .. } => BLOCK,
    };
    let unit = u64::from(unit_bytes(job));
    refuse_if(unit == 0, lengths, || "a block of no bytes is not possible".to_owned())?;
    refuse_if(job.size_percent.is_some() && !job.file_given, PERCENT, || {
        "a share of which file? name one, or give its size".to_owned()
    })?;
    for (field, bytes) in [(lengths, block), (lengths, unit), (OFFSET, job.offset_bytes)] {
        refuse_if(job.direct && !bytes.is_multiple_of(DIRECT_BYTES), field, || {
            format!(
                "{bytes} bytes are no multiple of {DIRECT_BYTES}, the smallest unit of O_DIRECT; use one, or buffered \
                 I/O (--direct=off, direct=0)"
            )
        })?;
    }
    if let BlockSizes::ByDirection { reads, writes } = job.block_sizes {
        refuse_if(!block.is_multiple_of(unit), BLOCK, || {
            format!("{block} bytes are no multiple of {unit}, the length of the other direction; use one")
        })?;
        let lengths = [(job.pattern.reads(), reads), (job.pattern.writes(), writes)];
        let has_longer = lengths.iter().any(|(is_done, bytes)| *is_done && u64::from(*bytes) > unit);
        // fio silently ends such a job at the first block that exceeds the end.
        refuse_if(has_longer && job.skew != Skew::None, BLOCK, || {
            "random_distribution draws blocks of the shorter length, and a longer one would lie behind the end; use one \
             length for reads and writes"
                .to_owned()
        })?;
    }
    sequence(job)?;
    let Some(size_bytes) = job.size_bytes else { return Ok(()) };
    refuse_if(size_bytes < block, SIZE, || {
        format!("{size_bytes} bytes are less than one block of {block}; give more, or smaller blocks with bs")
    })?;
    refuse_if(
        job.offset_bytes.checked_add(size_bytes).is_none_or(|end| end > i64::MAX as u64),
        OFFSET,
        || "no file is that long".to_owned(),
    )?;
    let remembered = job.pattern.is_random() && !job.no_random_map;
    refuse_if(remembered && blocks(size_bytes, unit_bytes(job)) > MAP_BLOCKS_MAX, MAP, || {
        format!(
            "more than {MAP_BLOCKS_MAX} blocks cannot be remembered; leave the map out, or use larger blocks"
        )
    })
}

/// Checks options of sequences, at random or with a stride.
fn sequence(job: &StorageJob) -> Result<(), JobError> {
    refuse_if(job.random_every == 0, SEQUENCE, || "a random block after no operation is none".to_owned())?;
    let (is_random, has_stride) = (job.random_every > 1, job.stride_bytes != 0);
    refuse_if(job.sequencer != Sequencer::default() && !is_random, SEQUENCER, || {
        "it is about what follows a random block; say after how many one comes: rw=randread:8".to_owned()
    })?;
    let again = job.loops > 1 || job.done_bytes.is_some();
    refuse_if(again && (is_random || has_stride), SEQUENCE, || {
        "fio goes on where it was when the size is done, and here it is begun again; use time_based"
            .to_owned()
    })?;
    refuse_if((is_random || has_stride) && job.block_sizes != BlockSizes::Same, SEQUENCE, || {
        "operations that follow each other so need one length; give one with bs".to_owned()
    })?;
    let stride = job.stride_bytes.unsigned_abs();
    refuse_if(has_stride && !stride.is_multiple_of(u64::from(job.block_bytes.max(1))), SEQUENCE, || {
        format!("a stride of {stride} bytes is no multiple of the block of {}; use one", job.block_bytes)
    })?;
    refuse_if(job.random_wide && !matches!(job.block_sizes, BlockSizes::Same), GENERATOR, || {
        "with lengths that differ only tausworthe is possible; leave it out".to_owned()
    })?;
    refuse_if(job.stride_bytes < 0 && job.offset_bytes > 0, SEQUENCE, || {
        "backwards from an offset fio begins elsewhere; leave the offset out".to_owned()
    })
}

fn amounts(job: &StorageJob) -> Result<(), JobError> {
    refuse_if(job.depth == 0 || job.depth > DEPTH_MAX, DEPTH, || {
        format!("{} operations in flight are not possible; use 1 to {DEPTH_MAX}", job.depth)
    })?;
    refuse_if(job.threads == 0 || job.threads > THREADS_MAX, THREADS, || {
        format!("{} threads are not possible; use 1 to {THREADS_MAX}", job.threads)
    })?;
    refuse_if(job.read_percent > 100, READ_PERCENT, || {
        format!("{} percent of the operations is more than all; use 0 to 100", job.read_percent)
    })?;
    refuse_if(job.operations_max == Some(0), OPERATIONS, || {
        "no operation is no job; use 1 or more".to_owned()
    })?;
    let no_operation = [job.rate_iops, job.rate_writes_iops].contains(&Some(0));
    refuse_if(no_operation, RATE, || "use 1 operation a second or more".to_owned())?;
    rate(job)?;
    refuse_if(job.loops == 0, LOOPS, || "to be done no time is no job; use 1 or more".to_owned())?;
    let again = job.loops > 1 || job.done_bytes.is_some();
    let field = if job.loops > 1 { LOOPS } else { IO_SIZE };
    let both = job.pattern.reads() && job.pattern.writes() && !job.pattern.is_random();
    refuse_if(again && both, field, || {
        format!(
            "{} goes on where it was, and fio's order there is not ours; use randrw, or time_based",
            job.pattern
        )
    })?;
    refuse_if(again && job.operations_max.is_some(), field, || {
        "with a number of operations it means another number of them; leave one of both out".to_owned()
    })?;
    refuse_if(again && job.verify_crc32c, field, || {
        "fio verifies after each time, and here it is done once at the end; leave one of both out".to_owned()
    })?;
    refuse_if(job.skew != Skew::None && !job.pattern.is_random(), SKEW, || {
        format!("{} chooses no blocks by lot; use randread, randwrite or randrw", job.pattern)
    })
}

fn rate(job: &StorageJob) -> Result<(), JobError> {
    let no_byte = [job.rate_bytes, job.rate_writes_bytes].contains(&Some(0));
    refuse_if(no_byte, RATE_BYTES, || "use 1 byte a second or more".to_owned())?;
    refuse_if(job.rate_bytes.is_some() && job.rate_iops.is_some(), RATE_BYTES, || {
        "operations and bytes a second exclude each other; leave one of both out".to_owned()
    })?;
    let paced = job.rate_iops.is_some() || job.rate_bytes.is_some();
    let field = if job.rate_bytes.is_some() { RATE_BYTES } else { RATE };
    refuse_if(paced && job.think_time_ns > 0, field, || {
        "a rate fixes when operations start, so there is no pause between them; leave one of both out"
            .to_owned()
    })
}

fn times(job: &StorageJob) -> Result<(), JobError> {
    let runtime_ns = job.runtime_ns.unwrap_or(0);
    refuse_if(job.runtime_ns == Some(0), RUNTIME, || "a run needs some time; use 1ms or more".to_owned())?;
    refuse_if(
        job.time_based && job.runtime_ns.is_none() && job.operations_max.is_none(),
        TIME_BASED,
        || "a job that begins again and again needs an end; give a runtime".to_owned(),
    )?;
    for (field, time_ns) in [
        (RUNTIME, runtime_ns),
        (RAMP, job.ramp_ns),
        (Field::new("start-delay", "startdelay"), job.start_delay_ns),
        (Field::new("think-time", "thinktime"), job.think_time_ns),
    ] {
        refuse_if(time_ns > TIME_NS_MAX, field, || "no more than 30 days".to_owned())?;
    }
    refuse_if(job.interval_ns < INTERVAL_NS_MIN, INTERVAL, || {
        "intervals shorter than 1ms have too few operations to say anything".to_owned()
    })
}

fn engine(job: &StorageJob) -> Result<(), JobError> {
    refuse_if(job.batch_max == 0, BATCH, || {
        "nothing would ever be handed over; use 1 operation or more".to_owned()
    })?;
    let is_synchronous = !job.engine.is_asynchronous();
    refuse_if(is_synchronous && job.depth > 1, DEPTH, || {
        format!(
            "{} has one operation in flight for each thread; use {} threads (--jobs, numjobs), or the engine threads",
            job.engine, job.depth
        )
    })
}

fn options(engine: StorageEngine, options: &StorageEngineOptions) -> Result<(), JobError> {
    let of_ring = [
        (options.sqpoll, SQPOLL),
        (options.iopoll, IOPOLL),
        (options.hybrid_iopoll, HYBRID_IOPOLL),
        (options.fixed_buffers, FIXED_BUFFERS),
        (options.fixed_files, FIXED_FILES),
        (options.ring_mode != RingMode::default(), RING_MODE),
    ];
    for (is_asked, field) in of_ring {
        refuse_if(is_asked && engine != StorageEngine::IoUring, field, || {
            format!("only io_uring has this, and the engine is {engine}; leave it out")
        })?;
    }
    refuse_if(options.high_priority && engine != StorageEngine::Pwritev, HIGH_PRIORITY, || {
        format!("only pwritev has this, and the engine is {engine}; leave it out")
    })?;
    refuse_if(options.hybrid_iopoll && !options.iopoll, HYBRID_IOPOLL, || {
        "it is a form of iopoll; ask for that too".to_owned()
    })
}

fn completion(job: &StorageJob) -> Result<(), JobError> {
    let method = &job.completion;
    let spec: PredictorSpec =
        method.predictor.parse().map_err(|error| JobError::new(COMPLETION, format!("{error}")))?;
    let name = spec.to_string();
    refuse_if(!job.engine.is_asynchronous() && name != "interrupt", COMPLETION, || {
        format!(
            "{name} is not possible with {}: the thread is in the system call until the operation is complete; use \
             libaio or io_uring",
            job.engine
        )
    })?;
    refuse_if(method.armed && !spec.has_sleeps(), ARMED, || {
        format!("{name} has no timed sleep that a completion could end")
    })?;
    refuse_if(job.options.iopoll && name != "interrupt", COMPLETION, || {
        format!("{name} is not possible with iopoll: the kernel polls; leave one of both out")
    })?;
    let needs_ring = method.sleep == SleepPrimitive::RingTimeout && job.engine != StorageEngine::IoUring;
    refuse_if(needs_ring, SLEEP, || {
        format!("only io_uring can sleep in its ring, and the engine is {}; use another", job.engine)
    })?;
    let sleeps_in_polled_ring = method.sleep == SleepPrimitive::RingTimeout && job.options.iopoll;
    refuse_if(sleeps_in_polled_ring, SLEEP, || {
        "a ring that polls the device has no timeouts to sleep with; use another".to_owned()
    })?;
    refuse_if(job.options.iopoll && !job.direct, IOPOLL, || {
        "only direct I/O can be polled; leave out --direct=off (direct=0)".to_owned()
    })
}

fn writes(job: &StorageJob) -> Result<(), JobError> {
    let only_reads = !job.pattern.writes();
    refuse_if(only_reads && job.fsync_every > 0, FSYNC, || {
        format!("{} writes nothing that could be made durable; leave it out", job.pattern)
    })?;
    refuse_if(only_reads && job.fdatasync_every > 0, FDATASYNC, || {
        format!("{} writes nothing that could be made durable; leave it out", job.pattern)
    })?;
    refuse_if(job.verify_crc32c && job.block_sizes != BlockSizes::Same, VERIFY, || {
        "blocks are verified that all have the same length; give one with bs".to_owned()
    })?;
    refuse_if(only_reads && job.verify_crc32c, VERIFY, || {
        format!("{} writes nothing that could be checked; leave it out", job.pattern)
    })?;
    refuse_if(job.verify_crc32c && job.block_bytes < VERIFIED_BYTES_MIN, VERIFY, || {
        format!(
            "a block of {} bytes is too small for its checksum; use {VERIFIED_BYTES_MIN} or more",
            job.block_bytes
        )
    })
}

fn report(job: &StorageJob) -> Result<(), JobError> {
    let is_percentile = |percentile: &f64| *percentile > 0.0 && *percentile <= 100.0;
    refuse_if(!job.percentiles.iter().all(is_percentile), PERCENTILES, || {
        "a percentile lies above 0 and is 100 at most; write 50:99:99.9".to_owned()
    })?;
    refuse_if(job.device_clock == DeviceClock::Simulated, DEVICE_CLOCK, || {
        "a real device has no simulated clock; use observed or tracepoint".to_owned()
    })?;
    refuse_if(job.device_clock == DeviceClock::Tracepoint && !job.direct, DEVICE_CLOCK, || {
        "operations of buffered I/O need not reach the device; use direct I/O with the tracepoints".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use weir_record::storage::{AccessPattern, CompletionMethod};

    use super::*;

    fn refused(change: impl FnOnce(&mut StorageJob)) -> String {
        let mut job = StorageJob { file: "data".into(), ..StorageJob::default() };
        assert_eq!(validate(&job), Ok(()));
        change(&mut job);
        validate(&job).expect_err("it is refused").to_string()
    }

    fn method(predictor: &str) -> CompletionMethod {
        CompletionMethod { predictor: predictor.into(), ..CompletionMethod::default() }
    }

    type Change = fn(&mut StorageJob);

    #[test]
    fn every_impossible_value_is_told_with_its_flag() {
        let cases: [(Change, &str, &str); 23] = [
            (|job| job.block_bytes = 0, "--bs", "1 to 64m"),
            (|job| job.block_bytes = 1000, "--bs", "multiple of 512"),
            (|job| job.offset_bytes = 100, "--offset", "multiple of 512"),
            (|job| job.size_bytes = Some(4095), "--size", "less than one block"),
            (|job| job.size_bytes = Some(u64::MAX), "--offset", "no file"),
            (|job| job.depth = 0, "--depth", "1 to 4096"),
            (|job| job.threads = 5000, "--jobs", "1 to 1024"),
            (|job| job.read_percent = 101, "--read-percent", "0 to 100"),
            (|job| job.operations_max = Some(0), "--operations", "1 or more"),
            (|job| job.rate_iops = Some(0), "--rate", "1 operation"),
            (|job| (job.rate_iops, job.think_time_ns) = (Some(9), 5), "--rate", "leave one"),
            (|job| job.runtime_ns = Some(0), "--runtime", "some time"),
            (|job| job.time_based = true, "--runtime", "needs an end"),
            (|job| job.ramp_ns = u64::MAX, "--ramp", "30 days"),
            (|job| job.interval_ns = 1000, "--interval", "1ms"),
            (|job| (job.engine, job.depth) = (StorageEngine::Pread, 8), "--depth", "use 8 threads"),
            (
                |job| (job.engine, job.options.sqpoll) = (StorageEngine::Libaio, true),
                "--sqpoll",
                "only io_uring",
            ),
            (|job| job.options.high_priority = true, "--high-priority", "only pwritev"),
            (|job| job.options.hybrid_iopoll = true, "--hybrid-iopoll", "form of iopoll"),
            (|job| job.fsync_every = 1, "--fsync", "writes nothing"),
            (|job| job.verify_crc32c = true, "--verify", "writes nothing"),
            (|job| job.percentiles = vec![0.0], "--percentiles", "50:99"),
            (
                |job| (job.device_clock, job.direct) = (DeviceClock::Tracepoint, false),
                "--device-clock",
                "direct",
            ),
        ];
        for (change, flag, words) in cases {
            let text = refused(change);
            assert!(text.starts_with(&format!("{flag}: ")) && text.contains(words), "{text}");
            assert!(!text.contains('\n'), "{text}");
        }
    }

    #[test]
    fn what_fio_would_do_otherwise_is_told_with_its_flag() {
        let cases: [(Change, &str, &str); 12] = [
            (|job| job.loops = 0, "--loops", "1 or more"),
            (|job| (job.loops, job.pattern) = (2, AccessPattern::ReadWrite), "--loops", "use randrw"),
            (|job| (job.loops, job.operations_max) = (2, Some(5)), "--loops", "number of operations"),
            (|job| job.rate_bytes = Some(0), "--rate", "1 byte"),
            (|job| (job.rate_bytes, job.rate_iops) = (Some(1), Some(1)), "--rate", "exclude"),
            (|job| (job.rate_bytes, job.think_time_ns) = (Some(1), 1), "--rate", "no pause"),
            (|job| job.fdatasync_every = 1, "--fdatasync", "writes nothing"),
            (|job| job.size_percent = Some(5), "--size", "which file"),
            (|job| job.block_sizes = BlockSizes::Range { bytes_min: 0 }, "--bs", "no bytes"),
            (|job| job.block_sizes = BlockSizes::Range { bytes_min: 1000 }, "--bs", "multiple of 512"),
            (
                |job| {
                    job.pattern = AccessPattern::Write;
                    job.verify_crc32c = true;
                    job.block_sizes = BlockSizes::Range { bytes_min: 512 };
                },
                "--verify",
                "same length",
            ),
            (
                |job| {
                    job.pattern = AccessPattern::Read;
                    job.skew = Skew::Zipf { theta: 1.1, center: None };
                },
                "--rw",
                "by lot",
            ),
        ];
        for (change, flag, words) in cases {
            let text = refused(change);
            assert!(text.starts_with(&format!("{flag}: ")) && text.contains(words), "{text}");
        }
    }

    #[test]
    fn a_completion_method_must_be_known_and_possible() {
        assert!(refused(|job| job.completion = method("crystal-ball")).starts_with("--completion: "));
        let poll_in_call = refused(|job| {
            job.engine = StorageEngine::Pread;
            job.completion = method("poll");
        });
        assert!(poll_in_call.contains("system call") && poll_in_call.contains("libaio"), "{poll_in_call}");
        let armed = refused(|job| job.completion = CompletionMethod { armed: true, ..method("poll") });
        assert!(armed.starts_with("--armed: poll has no timed sleep"), "{armed}");
        let ring = refused(|job| {
            job.engine = StorageEngine::Libaio;
            job.completion = CompletionMethod { sleep: SleepPrimitive::RingTimeout, ..method("linux-mean") };
        });
        assert!(ring.starts_with("--sleep: only io_uring"), "{ring}");
        let polled = refused(|job| {
            job.options.iopoll = true;
            job.completion.sleep = SleepPrimitive::RingTimeout;
        });
        assert!(polled.starts_with("--sleep: a ring that polls"), "{polled}");
    }

    #[test]
    fn an_engine_in_the_call_needs_no_completion_method_but_the_interrupt() {
        for engine in StorageEngine::ALL {
            let job = StorageJob { engine, pattern: AccessPattern::RandRw, ..StorageJob::default() };
            assert_eq!(validate(&job), Ok(()), "{engine}");
        }
    }

    #[test]
    fn jobs_together_have_limits_too() {
        let job = StorageJob { threads: 512, depth: 1, ..StorageJob::default() };
        assert_eq!(validate_all(&[job.clone(), job.clone()]), Ok(()));
        let three = validate_all(&[job.clone(), job.clone(), job.clone()]).expect_err("too many threads");
        assert!(three.to_string().contains("1536 threads"), "{three}");
        let large = StorageJob { block_bytes: BLOCK_BYTES_MAX, depth: 64, ..StorageJob::default() };
        assert_eq!(validate_all(std::slice::from_ref(&large)), Ok(()));
        let both = validate_all(&[large.clone(), large]).expect_err("too many buffers");
        assert!(both.to_string().contains("8g bytes of buffers"), "{both}");
    }
}
