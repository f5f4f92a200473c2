//! Arguments of `weir storage run`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::flags::{number, whole_rate};

/// What the help ends with.
const AFTER_HELP: &str = "\
A job file is the part of fio's format that docs/formats/storage-job.md names, and runs in fio too.

Completion methods: interrupt, poll, and predictors, which sleep a predicted time and then poll: fixed:5us, linux-mean,
linux-mean:0.3, lmd, ehp, hybrid-iopoll, pas, dpas, ewma, quantile, regime, load-aware.

  weir storage run                      4 KiB random reads, one at a time, for 10 s
  weir storage run --depth 32 --engine libaio --runtime 30s
  weir storage run --completion quantile:0.01 --armed --cpus 0
  weir storage run --file data.bin --rw randwrite --fsync 64 --verify
  weir storage run --file data.bin --rw randwrite --fsync 64 --verify \\
                   --ledger /other/disk/ledger
  and, after a crash:
  weir storage run --file data.bin --rw randwrite --fsync 64 --verify-only \\
                   --ledger /other/disk/ledger
  weir storage run jobs.fio --json
  weir storage run -- --name=a --filename=data.bin --rw=randread \\
                      --bs=4k --direct=1 --runtime=10 --output-format=json";

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnOff {
    /// Yes
    On,
    /// No
    Off,
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true, after_help = AFTER_HELP)]
pub(crate) struct StorageRun {
    /// Job file; instead of the flags that say what to do
    #[arg(value_name = "JOBFILE")]
    pub(crate) job_file: Option<PathBuf>,
    /// Command line of fio's, instead of a job file
    #[arg(value_name = "FIO_OPTIONS", last = true, conflicts_with = "job_file")]
    pub(crate) fio: Vec<String>,
    #[command(flatten)]
    pub(crate) workload: Workload,
    /// Leave out keys of a job file, or of fio's options, that are not known, with a warning
    #[arg(long)]
    pub(crate) fio_lenient: bool,
    /// Write to a block device: everything on it is lost
    #[arg(long)]
    pub(crate) i_know_this_destroys_data: bool,
    /// Write the measurement points of every interval to this file as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Print the report as JSON in the shape of fio's, and no progress
    #[arg(long)]
    pub(crate) json: bool,
    /// Language of progress and report: en, ko or zh [default: the locale's]
    #[arg(long)]
    pub(crate) lang: Option<String>,
}

/// The job, if no job file describes it.
#[derive(Debug, Args)]
#[group(id = "workload", conflicts_with_all = ["job_file", "fio"], multiple = true)]
pub(crate) struct Workload {
    /// File or block device; never made for reading [default: ./weir-storage.dat, which is laid out in full]
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<String>,
    /// Bytes of it that are used: 64m, 4g [default: all of FILE; of our own file 256m]
    #[arg(long, value_name = "BYTES")]
    pub(crate) size: Option<String>,
    /// Share the file with other runs that have this flag too
    #[arg(long)]
    pub(crate) share: bool,
    /// Where the used part begins
    #[arg(long, default_value = "0", value_name = "BYTES")]
    pub(crate) offset: String,
    /// Bytes of one operation
    #[arg(long, default_value = "4k", value_name = "BYTES")]
    pub(crate) bs: String,
    /// read, write, randread, randwrite, readwrite or randrw
    #[arg(long, default_value = "randread", value_name = "PATTERN")]
    pub(crate) rw: String,
    /// With readwrite and randrw: percent of the operations that read [default: 50]
    #[arg(long, value_name = "PERCENT", value_parser = number::<u8>)]
    pub(crate) read_percent: Option<u8>,
    /// pread, pwritev, threads, posixaio, libaio or io_uring (uring)
    #[arg(long, default_value = "io_uring")]
    pub(crate) engine: String,
    /// Operations in flight of each thread
    #[arg(long, default_value_t = 1, value_parser = number::<u32>)]
    pub(crate) depth: u32,
    /// Most operations in one system call: with more of them each costs less CPU and begins later
    #[arg(long, default_value_t = 1, value_name = "OPERATIONS", value_parser = number::<u32>)]
    pub(crate) batch: u32,
    /// Threads that do the same
    #[arg(long, default_value_t = 1, value_name = "THREADS", value_parser = number::<u32>)]
    pub(crate) jobs: u32,
    /// Bypass the page cache (O_DIRECT)
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_value = "on", default_missing_value = "on")]
    pub(crate) direct: OnOff,
    /// Keep what the page cache has of the file; without this flag the cache drops it before the run
    #[arg(long)]
    pub(crate) keep_cache: bool,
    /// Measured time: 1.5s, 500ms, 2min [default: 10s, unless --operations or --once says when to end]
    #[arg(long, value_name = "TIME")]
    pub(crate) runtime: Option<String>,
    /// End after N operations of each thread
    #[arg(long, short = 'n', value_name = "COUNT", value_parser = number::<u64>)]
    pub(crate) operations: Option<u64>,
    /// End when the size is done once
    #[arg(long)]
    pub(crate) once: bool,
    /// Time before anything is counted
    #[arg(long, default_value = "0s", value_name = "TIME")]
    pub(crate) ramp: String,
    /// Operations a second of each thread, such as 10k; latency counts from the intended start
    #[arg(long, value_name = "PER_SECOND", value_parser = whole_rate)]
    pub(crate) rate: Option<u32>,
    /// Pause after an operation, when all in flight are complete: from the first pause on one is in flight
    #[arg(long, default_value = "0s", value_name = "TIME")]
    pub(crate) think_time: String,
    /// fsync after N writes
    #[arg(long, default_value_t = 0, value_name = "WRITES", value_parser = number::<u32>)]
    pub(crate) fsync: u32,
    /// Give written blocks a checksum (CRC-32C) and read them back at the end
    #[arg(long)]
    pub(crate) verify: bool,
    /// Run nothing: check what an earlier run with the same arguments and --verify wrote, whether it ended or was
    /// killed. Without --ledger, a block without a stamp fails the check
    #[arg(long, conflicts_with = "verify")]
    pub(crate) verify_only: bool,
    /// Record in this new file which writes were begun and acknowledged (with --fsync: made durable); with
    /// --verify-only, read it. A check against it finds lost writes
    #[arg(long, value_name = "FILE")]
    pub(crate) ledger: Option<String>,
    /// Random blocks may repeat before all were touched
    #[arg(long)]
    pub(crate) no_random_map: bool,
    /// Seed of offsets and of what --verify writes
    #[arg(long, default_value_t = 1, value_parser = number::<u64>)]
    pub(crate) seed: u64,
    /// CPUs to pin the threads to, in turn: 0,2-3
    #[arg(long, value_name = "CPUS")]
    pub(crate) cpus: Option<String>,
    /// How to wait for a completion
    #[arg(long, default_value = "interrupt", value_name = "SPEC")]
    pub(crate) completion: String,
    /// A sleep ends at the completion or at its time, whichever is first
    #[arg(long)]
    pub(crate) armed: bool,
    /// What to sleep with: auto, clock-nanosleep, ring-timeout or timerfd
    #[arg(long, default_value = "auto", value_name = "PRIMITIVE")]
    pub(crate) sleep: String,
    /// Source of device times: observed, or tracepoint (needs root)
    #[arg(long, default_value = "observed", value_name = "CLOCK")]
    pub(crate) device_clock: String,
    /// io_uring: when completions are made visible: default, coop or defer
    #[arg(long, default_value = "defer", value_name = "MODE")]
    pub(crate) ring_mode: String,
    /// io_uring: a kernel thread takes submissions
    #[arg(long)]
    pub(crate) sqpoll: bool,
    /// io_uring: the device is polled (needs polled queues)
    #[arg(long)]
    pub(crate) iopoll: bool,
    /// io_uring: the kernel's own hybrid of sleeping and polling (Linux 6.13)
    #[arg(long, requires = "iopoll")]
    pub(crate) hybrid_iopoll: bool,
    /// io_uring: buffers registered in advance
    #[arg(long)]
    pub(crate) fixed_buffers: bool,
    /// io_uring: the file registered in advance
    #[arg(long)]
    pub(crate) fixed_files: bool,
    /// pwritev: RWF_HIPRI on each call (without effect since Linux 5.19)
    #[arg(long)]
    pub(crate) high_priority: bool,
    /// Length of an interval of the measurement points
    #[arg(long, default_value = "1s", value_name = "TIME")]
    pub(crate) interval: String,
    /// Percentiles in the JSON: 50:99:99.9 [default: fio's]
    #[arg(long, value_name = "LIST")]
    pub(crate) percentiles: Option<String>,
    /// Write latency, IOPS and bandwidth logs in fio's format, with names that begin with this
    #[arg(long, value_name = "PREFIX")]
    pub(crate) log_prefix: Option<String>,
    /// Mean over this time for each line of the latency logs [default: a line for each operation]
    #[arg(long, value_name = "TIME", requires = "log_prefix")]
    pub(crate) log_average: Option<String>,
}
