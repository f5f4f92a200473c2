//! Storage: what a job asks, and what was measured.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::LatencySummary;

mod blocks;

pub use blocks::{BlockShare, BlockSizes, Sequencer, Skew};

/// How operations reach the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StorageEngine {
    /// `pread(2)` and `pwrite(2)` in the job's own thread.
    Pread,
    /// `preadv2(2)` and `pwritev2(2)` in the job's own thread.
    Pwritev,
    /// A pool of our threads, each in `pread(2)` or `pwrite(2)`.
    Threads,
    /// `aio_read(3)` and `aio_write(3)`: threads of the C library.
    Posixaio,
    /// `io_submit(2)`: the kernel's own asynchronous I/O.
    Libaio,
    /// io_uring.
    IoUring,
}

impl StorageEngine {
    /// All, in the order people list them.
    pub const ALL: [Self; 6] =
        [Self::Pread, Self::Pwritev, Self::Threads, Self::Posixaio, Self::Libaio, Self::IoUring];

    /// Name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pread => "pread",
            Self::Pwritev => "pwritev",
            Self::Threads => "threads",
            Self::Posixaio => "posixaio",
            Self::Libaio => "libaio",
            Self::IoUring => "io_uring",
        }
    }

    /// Whether the kernel has the operation while the thread goes on: only then is there a wait to choose.
    pub fn is_asynchronous(self) -> bool {
        !matches!(self, Self::Pread | Self::Pwritev)
    }
}

impl fmt::Display for StorageEngine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for StorageEngine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The driver of sockets goes by this name.
        let known = if text == "uring" { Self::IoUring.name() } else { text };
        let found = Self::ALL.into_iter().find(|engine| engine.name() == known);
        found.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.into_iter().map(Self::name).collect();
            format!("there is no storage engine {text}; use one of {}", names.join(", "))
        })
    }
}

/// Which blocks are touched, in which order. Names are those of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AccessPattern {
    /// Reads, one block after the other.
    Read,
    /// Writes, one block after the other.
    Write,
    /// Reads at random.
    RandRead,
    /// Writes at random.
    RandWrite,
    /// Reads and writes mixed, one block after the other.
    ReadWrite,
    /// Reads and writes mixed, at random.
    RandRw,
}

impl AccessPattern {
    /// All, in the order people list them.
    pub const ALL: [Self; 6] =
        [Self::Read, Self::Write, Self::RandRead, Self::RandWrite, Self::ReadWrite, Self::RandRw];

    /// Name on the command line, in job files and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::RandRead => "randread",
            Self::RandWrite => "randwrite",
            Self::ReadWrite => "readwrite",
            Self::RandRw => "randrw",
        }
    }

    /// Whether some operations read.
    pub fn reads(self) -> bool {
        !matches!(self, Self::Write | Self::RandWrite)
    }

    /// Whether some operations write.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Read | Self::RandRead)
    }

    /// Whether blocks are chosen at random.
    pub fn is_random(self) -> bool {
        matches!(self, Self::RandRead | Self::RandWrite | Self::RandRw)
    }
}

impl fmt::Display for AccessPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for AccessPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // `rw` is fio's other name of `readwrite`.
        let text = if text == "rw" { "readwrite" } else { text };
        let found = Self::ALL.into_iter().find(|pattern| pattern.name() == text);
        found.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.into_iter().map(Self::name).collect();
            format!("there is no access pattern {text}; use one of {}", names.join(", "))
        })
    }
}

/// When completions of an io_uring are made visible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RingMode {
    /// The thread is interrupted.
    Default,
    /// `IORING_SETUP_COOP_TASKRUN` with `IORING_SETUP_TASKRUN_FLAG`: at the next system call.
    Coop,
    /// `IORING_SETUP_DEFER_TASKRUN`: when the thread enters the ring.
    #[default]
    Defer,
}

/// Options of the engines; a field that the engine has no use for must have its default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StorageEngineOptions {
    /// io_uring: a kernel thread takes submissions.
    pub sqpoll: bool,
    /// io_uring: the device is polled for completions (needs polled queues).
    pub iopoll: bool,
    /// io_uring: the kernel's own hybrid of both (6.13 and later).
    pub hybrid_iopoll: bool,
    /// io_uring: buffers registered in advance.
    pub fixed_buffers: bool,
    /// io_uring: the file registered in advance.
    pub fixed_files: bool,
    /// io_uring: see [`RingMode`].
    pub ring_mode: RingMode,
    /// pwritev: `RWF_HIPRI` on each call (ignored by the kernel since 5.19).
    pub high_priority: bool,
}

/// What a thread sleeps with, where it sleeps before it polls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SleepPrimitive {
    /// The one with the smallest lag here, by calibration.
    #[default]
    Auto,
    /// `clock_nanosleep(2)` with a timer slack of 1 ns.
    ClockNanosleep,
    /// `io_uring_enter(2)` with a time limit.
    RingTimeout,
    /// `timerfd`, read.
    Timerfd,
}

/// How the thread waits for completions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompletionMethod {
    /// `interrupt`, `poll`, or a predictor with its parameters: `linux-mean:0.5`.
    pub predictor: String,
    /// A sleep ends at the completion or at its time, whichever is first.
    pub armed: bool,
    /// What it sleeps with.
    pub sleep: SleepPrimitive,
    /// The predictor learns what the device took also after a sleep that was too long. Only a simulated device can.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub true_times: bool,
}

impl Default for CompletionMethod {
    fn default() -> Self {
        Self {
            predictor: "interrupt".to_owned(),
            armed: false,
            sleep: SleepPrimitive::Auto,
            true_times: false,
        }
    }
}

/// What a trial of storage waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub enum StorageDevice {
    /// A file on a disk of this machine.
    #[default]
    Disk,
    /// The queueing model of a 983 ZET and of the host beside it.
    Model,
    /// The same with two hypotheses about the published host and device: now and then a wake-up comes late, and the
    /// device is slow when a load begins.
    ModelLate,
    /// Latencies made from the seed of a trial.
    Synthetic(SyntheticTrace),
    /// Latencies of a recorded trace, by its file.
    Trace(String),
}

impl StorageDevice {
    /// Whether its times are computed. They depend on the seed alone, and on nothing of this machine.
    pub fn is_simulated(&self) -> bool {
        *self != Self::Disk
    }
}

impl fmt::Display for StorageDevice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk => formatter.write_str("disk"),
            Self::Model => formatter.write_str("model"),
            Self::ModelLate => formatter.write_str("model-late"),
            Self::Synthetic(trace) => write!(formatter, "synthetic:{}", trace.name()),
            Self::Trace(file) => write!(formatter, "trace:{file}"),
        }
    }
}

impl FromStr for StorageDevice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "disk" => Ok(Self::Disk),
            None if text == "model" => Ok(Self::Model),
            None if text == "model-late" => Ok(Self::ModelLate),
            Some(("trace", file)) if !file.is_empty() => Ok(Self::Trace(file.to_owned())),
            Some(("synthetic", name)) => SyntheticTrace::ALL
                .into_iter()
                .find(|trace| trace.name() == name)
                .map(Self::Synthetic)
                .ok_or_else(|| format!("there is no synthetic trace {name:?}")),
            _ => Err(format!("there is no device {text:?}")),
        }
    }
}

impl TryFrom<String> for StorageDevice {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<StorageDevice> for String {
    fn from(device: StorageDevice) -> Self {
        device.to_string()
    }
}

/// A process that makes latencies, and has nothing in common with the queueing model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyntheticTrace {
    /// A log-normal device with a stall now and then.
    Calm,
    /// A device that changes between a fast and a slow state, each of some hundred operations.
    TwoSpeed,
    /// A crowded device whose mean wanders slowly while single operations scatter widely.
    Drifting,
}

impl SyntheticTrace {
    /// The least loaded first.
    pub const ALL: [Self; 3] = [Self::Calm, Self::TwoSpeed, Self::Drifting];

    /// Name in study files and identifiers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Calm => "calm",
            Self::TwoSpeed => "two-speed",
            Self::Drifting => "drifting",
        }
    }
}

/// One job, complete: what a line of `weir storage run` or a section of a job file resolves to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StorageJob {
    /// Name in tables.
    pub name: String,
    /// File or block device.
    pub file: String,
    /// Whether the user named the file: then it is never laid out.
    pub file_given: bool,
    /// Other runs that say so too may use the file at the same time.
    pub file_shared: bool,
    /// Bytes of the file that are used; absent means all of it.
    pub size_bytes: Option<u64>,
    /// Where the used part begins.
    pub offset_bytes: u64,
    /// The used part in percent of the file, in place of its bytes.
    pub size_percent: Option<u8>,
    /// Bytes of one operation; where they differ, of the largest.
    pub block_bytes: u32,
    /// Whether operations differ in their bytes; see [`BlockSizes`].
    pub block_sizes: BlockSizes,
    /// See [`AccessPattern`].
    pub pattern: AccessPattern,
    /// Percent of operations that read, for mixed patterns.
    pub read_percent: u8,
    /// `O_DIRECT`.
    pub direct: bool,
    /// The page cache is asked to forget the used part of the file before the run.
    pub drops_cache: bool,
    /// The kernel gets to know whether blocks follow each other, by which it decides how far it reads ahead.
    pub advises_order: bool,
    /// See [`StorageEngine`].
    pub engine: StorageEngine,
    /// See [`StorageEngineOptions`].
    pub options: StorageEngineOptions,
    /// See [`CompletionMethod`].
    pub completion: CompletionMethod,
    /// Operations in flight of one thread.
    pub depth: u32,
    /// Operations handed over in one system call, at most.
    pub batch_max: u32,
    /// Threads that do the same.
    pub threads: u32,
    /// Longest run, warm-up not included; absent means until the size is done once.
    pub runtime_ns: Option<u64>,
    /// Begin again when the size is done, until the run time is over.
    pub time_based: bool,
    /// How often the size is done.
    pub loops: u32,
    /// Operations of one thread at most.
    pub operations_max: Option<u64>,
    /// Time before anything is counted.
    pub ramp_ns: u64,
    /// Time before the job begins.
    pub start_delay_ns: u64,
    /// Wait for all jobs before it to end.
    pub stonewall: bool,
    /// Reported in one row with the job before it, if they run side by side.
    pub group_reporting: bool,
    /// Begins a separate row although it asks for a shared one.
    pub new_group: bool,
    /// All that runs beside it ends when one of its threads does.
    pub exit_all: bool,
    /// Operations a second of one thread; latency counts from the intended start.
    pub rate_iops: Option<u32>,
    /// Bytes a second of one thread; the same.
    pub rate_bytes: Option<u64>,
    /// Writes a second, where they have a separate rate; the one above is then that of reads.
    pub rate_writes_iops: Option<u32>,
    /// Bytes a second that are written; the same.
    pub rate_writes_bytes: Option<u64>,
    /// Pause after an operation, when all in flight are complete.
    pub think_time_ns: u64,
    /// CPUs the threads are pinned to, in turn; empty means not pinned.
    pub cpus: Vec<usize>,
    /// Seed of offsets and data.
    pub seed: u64,
    /// Random offsets depend on the thread's number alone, not on the seed (`randrepeat` of fio).
    pub random_repeat: bool,
    /// Number of the job's first thread among all threads of the run, from 1: no two threads have the same offsets.
    pub thread_first: u32,
    /// Which random blocks are likelier than others; see [`Skew`].
    pub skew: Skew,
    /// Random blocks may repeat before all were touched.
    pub no_random_map: bool,
    /// Random blocks come from 64-bit numbers (`random_generator=tausworthe64` of fio).
    pub random_wide: bool,
    /// One of this many operations has a random block, and the others follow it; 1 for each.
    pub random_every: u32,
    /// How they follow it; see [`Sequencer`].
    pub sequencer: Sequencer,
    /// Bytes between two sequential operations, left out forwards, or backwards from one to the next.
    pub stride_bytes: i64,
    /// Bytes of the whole file, where they are not those up to the end of the used part. A stride depends on it.
    pub file_bytes: Option<u64>,
    /// Bytes that are done in all, where that is more than the used part: it is begun again.
    pub done_bytes: Option<u64>,
    /// `fsync(2)` after this many writes; 0 for never.
    pub fsync_every: u32,
    /// `fdatasync(2)` after this many writes; 0 for never. Where both are due there is one `fsync(2)`.
    pub fdatasync_every: u32,
    /// `fsync(2)` when all is written, in the time of the job.
    pub end_fsync: bool,
    /// Those after a number of writes come where fio makes them: again after each read while no further write was made,
    /// and not after the last operation.
    pub syncs_as_fio: bool,
    /// Written blocks carry a checksum and are read back when the job is done.
    pub verify_crc32c: bool,
    /// Nothing is run: what an earlier run of this job wrote is read and checked.
    pub verify_only: bool,
    /// File that says which writes were begun and acknowledged; absent for none.
    pub ledger: Option<String>,
    /// Path before the names of latency and IOPS logs in fio's format; absent for none.
    pub log_prefix: Option<String>,
    /// Mean over this many milliseconds for each line of a log; 0 for every operation.
    pub log_average_ms: u32,
    /// Percentiles (0 to 100) of the printed report; empty means fio's own list.
    pub percentiles: Vec<f64>,
    /// Length of an interval of the measurement tool.
    pub interval_ns: u64,
    /// Where the truth about device times shall come from.
    pub device_clock: DeviceClock,
}

impl Default for StorageJob {
    /// Random reads of 4 KiB, one at a time, past the page cache, until the size is done once. Without a file.
    fn default() -> Self {
        Self {
            name: "job".to_owned(),
            file: String::new(),
            file_given: false,
            file_shared: false,
            size_bytes: None,
            offset_bytes: 0,
            size_percent: None,
            block_bytes: 4096,
            block_sizes: BlockSizes::Same,
            pattern: AccessPattern::RandRead,
            read_percent: 50,
            direct: true,
            drops_cache: false,
            advises_order: false,
            engine: StorageEngine::IoUring,
            options: StorageEngineOptions::default(),
            completion: CompletionMethod::default(),
            depth: 1,
            batch_max: 1,
            threads: 1,
            runtime_ns: None,
            time_based: false,
            loops: 1,
            operations_max: None,
            ramp_ns: 0,
            start_delay_ns: 0,
            stonewall: false,
            group_reporting: false,
            new_group: false,
            exit_all: false,
            rate_iops: None,
            rate_bytes: None,
            rate_writes_iops: None,
            rate_writes_bytes: None,
            think_time_ns: 0,
            cpus: Vec::new(),
            seed: 1,
            random_repeat: false,
            thread_first: 1,
            skew: Skew::None,
            no_random_map: false,
            random_wide: false,
            random_every: 1,
            sequencer: Sequencer::default(),
            stride_bytes: 0,
            file_bytes: None,
            done_bytes: None,
            fsync_every: 0,
            fdatasync_every: 0,
            end_fsync: false,
            syncs_as_fio: false,
            verify_crc32c: false,
            verify_only: false,
            ledger: None,
            log_prefix: None,
            log_average_ms: 0,
            percentiles: Vec::new(),
            interval_ns: 1_000_000_000,
            device_clock: DeviceClock::default(),
        }
    }
}

/// Result of `weir storage run`, the `weir` key of its JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StorageReport {
    /// Version of the records; rises when a field changes its meaning or disappears.
    pub schema_version: u32,
    /// One for each job, in the order asked.
    pub jobs: Vec<StorageJobReport>,
    /// What jobs that ran side by side did together.
    pub rows: Vec<StorageRow>,
    /// Things a reader must know: what was refused and why, how the file lies on the device.
    pub notes: Vec<String>,
}

impl StorageReport {
    /// What is reported of the jobs, in order: a report of each, or one of those that asked for a shared one. With it
    /// the place of its first job and how many they are.
    pub fn told(&self) -> Vec<(usize, usize, &StorageJobReport)> {
        let mut told = Vec::new();
        let mut place = 0;
        while let Some(job) = self.jobs.get(place) {
            let row = self.rows.iter().find(|row| row.replaces_jobs && row.first == place && row.count > 0);
            let (count, report) = row.map_or((1, job), |row| (row.count, &row.report));
            told.push((place, count, report));
            place += count;
        }
        told
    }
}

/// Several jobs that ran side by side, as one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StorageRow {
    /// Place of the first one among the jobs.
    pub first: usize,
    /// How many they are, with the first one.
    pub count: usize,
    /// They asked for one row; otherwise it is a total beside theirs.
    pub replaces_jobs: bool,
    /// Sums, and distributions over all operations. Its job is the first one with the threads of all, and without a
    /// file where they have several.
    pub report: StorageJobReport,
}

/// What one job measured. Sums over its threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StorageJobReport {
    /// What was asked; absent only in a default value.
    pub job: Option<StorageJob>,
    /// Measured window, without the ramp.
    pub elapsed_ns: u64,
    /// The job ended before its ramp was over: all figures are those of the ramp, in place of a window.
    pub ended_in_ramp: bool,
    /// Reads.
    pub reads: DirectionReport,
    /// Writes.
    pub writes: DirectionReport,
    /// Reads and writes by how many were in flight when they began, with the operation itself: 1, from 2, 4, 8, 16, 32,
    /// and 64 on.
    pub in_flight: [u64; 7],
    /// Calls that handed operations over, by how many were taken: up to 4, 8, 16, 32, 64, and more.
    pub submitted_at_once: [u64; 6],
    /// Looks that found complete operations, by how many, in the same classes.
    pub completed_at_once: [u64; 6],
    /// `fsync(2)` and `fdatasync(2)` calls.
    pub fsyncs: u64,
    /// What they took, from the decision to make them.
    pub fsync_latency: LatencySummary,
    /// What the rate asked for and the job never began.
    pub never_begun: NeverBegun,
    /// Failed operations by error name (`EIO`).
    pub errors: Vec<(String, u64)>,
    /// Blocks whose checksum was compared after the run.
    pub verified_blocks: u64,
    /// Blocks whose checksum or header was wrong.
    pub verify_failures: u64,
    /// Blocks that an earlier run was writing when it ended and that were never acknowledged. They may hold anything.
    pub unacknowledged_blocks: u64,
    /// Blocks that an earlier run never wrote.
    pub never_written_blocks: u64,
    /// CPU time to make the bytes of one block that is written, before it is issued; absent where nothing is written.
    pub fill_ns: Option<u64>,
    /// Reads before the run that measured what waiting costs; no other figure has them.
    pub calibration_reads: u64,
    /// An error, a wrong block or an interruption makes the run a failed one; what was measured stays.
    pub failed: bool,
    /// CPU of the job.
    pub cpu: StorageCpu,
    /// The measurement points, where the wait was ours to choose.
    pub waiting: Option<WaitingReport>,
    /// The same for each interval.
    pub intervals: Vec<WaitingInterval>,
}

/// One direction of one job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DirectionReport {
    /// Operations completed in the window.
    pub operations: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Operations a second.
    pub iops: f64,
    /// From the decision to issue (before the system call) to its return.
    pub submission: LatencySummary,
    /// From the return of the submission to the completion being noticed.
    pub completion: LatencySummary,
    /// From the issue, or the intended start when there is a rate, to the completion being noticed.
    pub total: LatencySummary,
    /// Operations a second, over the whole intervals of the window.
    pub iops_spread: RateSpread,
    /// Bytes a second, over the same.
    pub bandwidth_spread: RateSpread,
}

/// How a rate differs from interval to interval. All 0 when no whole interval was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RateSpread {
    /// Intervals.
    pub count: u64,
    /// Rate of the slowest one.
    pub min: f64,
    /// Rate of the fastest one.
    pub max: f64,
    /// Mean of all.
    pub mean: f64,
    /// Standard deviation of a sample (divided by one less than the count); 0 for a single one.
    pub stddev: f64,
}

/// Operations that were due by the job's rate before its time was over, and that it never began: those in flight took
/// too long. All 0 without a rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NeverBegun {
    /// Operations of all threads and both directions.
    pub operations: u64,
    /// From the intended start to the end of the job's time: the latency of each of them is at least that.
    pub waited: LatencySummary,
    /// Latency of all operations that were due: `total` of those that completed in the window, and `waited` of these.
    /// No quantile of the whole is less. Empty when there are none of these.
    pub total_at_least: LatencySummary,
}

/// CPU time of one job over the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StorageCpu {
    /// The job's threads, those of its engine included: what they used in user mode.
    pub user_ns: u64,
    /// The same in the kernel.
    pub system_ns: u64,
    /// Threads the kernel runs for this process (`iou-sqp-*`, `iou-wrk-*`).
    pub kernel_threads_ns: u64,
    /// All CPUs of the machine, not idle.
    pub machine_busy_ns: u64,
    /// Voluntary context switches of the job's threads.
    #[serde(alias = "switches_voluntary")]
    pub context_switches_voluntary: u64,
    /// Involuntary ones.
    #[serde(alias = "switches_involuntary")]
    pub context_switches_involuntary: u64,
    /// Page faults of the job's own threads that waited for a device.
    pub page_faults_major: u64,
    /// Those that did not.
    pub page_faults_minor: u64,
}

/// Where the truth about device times comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceClock {
    /// Only what the thread saw: after a sleep that was too long the device's time is not known.
    #[default]
    Observed,
    /// The kernel's `block_rq_complete` tracepoint.
    Tracepoint,
    /// The model knows.
    Simulated,
}

/// The measurement points over a whole run. Sums are over `operations`; divide for means.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WaitingReport {
    /// Completed operations.
    pub operations: u64,
    /// Those that slept before polling.
    pub slept: u64,
    /// Polled at once.
    pub polled: u64,
    /// Left to the interrupt.
    pub interrupted: u64,
    /// Complete when an unarmed sleep ended.
    pub misses: u64,
    /// Misses that were noticed later than an interrupt would have reported.
    pub misses_harmful: u64,
    /// Armed sleeps the completion ended.
    pub woken_early: u64,
    /// Requested sleep, summed.
    pub sleep_requested_ns: u64,
    /// Slept, summed.
    pub sleep_actual_ns: u64,
    /// From issue to completion at the device, summed (estimated where [`DeviceClock::Observed`]).
    pub device_ns: u64,
    /// Complete, and the requested sleep not over, summed.
    pub oversleep_ns: u64,
    /// Complete, the requested sleep over (or the interrupt sent), and the thread not yet running, summed.
    pub wake_ns: u64,
    /// Complete, the thread running, and not yet noticed, summed.
    pub notice_ns: u64,
    /// From issue to notice, summed: the four parts above.
    pub total_ns: u64,
    /// Time spent looking, summed.
    pub spin_ns: u64,
    /// Where `device_ns` comes from.
    pub device_clock: DeviceClock,
    /// Operations whose device time was known exactly.
    pub device_known: u64,
    /// From completion at the device to notice, where known.
    pub added: LatencySummary,
    /// From issue to notice.
    pub latency: LatencySummary,
    /// CPU of the thread.
    pub cpu_ns: u64,
    /// Time over which this was measured.
    pub elapsed_ns: u64,
}

/// The measurement points in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WaitingInterval {
    /// Start since the run began.
    pub start_ns: u64,
    /// Length.
    pub elapsed_ns: u64,
    /// Completed operations.
    pub operations: u64,
    /// Operations that slept.
    pub slept: u64,
    /// Operations complete when an unarmed sleep ended.
    pub misses: u64,
    /// Requested sleep, summed.
    pub sleep_requested_ns: u64,
    /// Slept, summed.
    pub sleep_actual_ns: u64,
    /// CPU of the thread.
    pub cpu_ns: u64,
    /// All CPUs of the machine, not idle; 0 where unknown.
    pub machine_busy_ns: u64,
}
