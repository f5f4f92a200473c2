//! The supported keys of job files: fio's, and our own under `weir_`. One table; all other keys are unknown.

use std::{collections::BTreeMap, time::Duration};

use weir_record::storage::{
    AccessPattern, DeviceClock, RingMode, Sequencer, Skew, SleepPrimitive, StorageEngine, StorageJob,
};

use super::units::{TimeUnit, block_by_direction, block_range, block_split, cpus, fio_bytes, fio_time, skew};

/// A job between its lines and its specification. It starts with fio's defaults.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) job: StorageJob,
    pub(super) filename: Option<String>,
    pub(super) directory: Option<String>,
    pub(super) filename_format: Option<String>,
    /// `hipri`, whose meaning depends on the engine.
    pub(super) polled: bool,
    /// Target of each log key, empty for the job's name.
    pub(super) log_prefixes: BTreeMap<&'static str, String>,
    /// `end_fsync` and `fsync_on_close`, which mean the same here.
    pub(super) syncs_at_end: [bool; 2],
    /// For reads and for writes.
    pub(super) rates_iops: Option<[u32; 2]>,
    pub(super) rates_bytes: Option<[u64; 2]>,
    /// Bytes to transfer, if the size is only the area.
    pub(super) io_bytes: Option<u64>,
    /// Size of the file, if the size is the part to transfer.
    pub(super) file_bytes: Option<u64>,
    /// Offset between consecutive threads.
    pub(super) offset_increment_bytes: u64,
    /// The job whose end this one waits for.
    pub(super) wait_for: Option<String>,
    /// No two operations in flight may touch the same block.
    pub(super) serialize_overlap: bool,
    /// Notes for the reader about the keys.
    pub(super) notes: Vec<String>,
}

impl Draft {
    pub(super) fn new(name: &str) -> Self {
        let job = StorageJob {
            name: name.to_owned(),
            pattern: AccessPattern::Read,
            direct: false,
            drops_cache: true,
            advises_order: true,
            engine: StorageEngine::Pread,
            seed: 0x89,
            random_repeat: true,
            syncs_as_fio: true,
            ..StorageJob::default()
        };
        Self {
            job,
            filename: None,
            directory: None,
            filename_format: None,
            polled: false,
            log_prefixes: BTreeMap::new(),
            syncs_at_end: [false; 2],
            rates_iops: None,
            rates_bytes: None,
            io_bytes: None,
            file_bytes: None,
            offset_increment_bytes: 0,
            wait_for: None,
            serialize_overlap: false,
            notes: Vec::new(),
        }
    }
}

impl Draft {
    fn note(&mut self, text: &str) -> Result<(), String> {
        self.notes.push(text.to_owned());
        Ok(())
    }
}

/// One key with its other names.
pub(super) struct Key {
    /// The first one appears in errors.
    pub(super) names: &'static [&'static str],
    pub(super) apply: fn(&mut Draft, &str) -> Result<(), String>,
}

/// The key with this name.
pub(super) fn find(name: &str) -> Option<&'static Key> {
    [FILE, SHAPE, TIME, RANDOM, REPORT, WITHOUT_EFFECT, OURS]
        .into_iter()
        .flatten()
        .find(|key| key.names.contains(&name))
}

const FILE: &[Key] = &[
    Key {
        names: &["name"],
        apply: |draft, value| {
            draft.job.name = text(value)?;
            Ok(())
        },
    },
    Key { names: &["filename"], apply: filename },
    Key { names: &["directory"], apply: |draft, value| set(&mut draft.directory, text(value)?) },
    Key { names: &["filename_format"], apply: |draft, value| set(&mut draft.filename_format, text(value)?) },
    Key { names: &["size"], apply: size },
    Key {
        names: &["io_size", "io_limit"],
        apply: |draft, value| set(&mut draft.io_bytes, fio_bytes(value)?),
    },
    Key { names: &["filesize"], apply: |draft, value| set(&mut draft.file_bytes, fio_bytes(value)?) },
    Key {
        names: &["offset"],
        apply: |draft, value| {
            draft.job.offset_bytes = fio_bytes(value)?;
            Ok(())
        },
    },
    Key {
        names: &["offset_increment"],
        apply: |draft, value| {
            draft.offset_increment_bytes = fio_bytes(value)?;
            Ok(())
        },
    },
    Key {
        names: &["direct"],
        apply: |draft, value| {
            draft.job.direct = flag(value)?;
            Ok(())
        },
    },
    Key {
        names: &["buffered"],
        apply: |draft, value| {
            draft.job.direct = !flag(value)?;
            Ok(())
        },
    },
    Key {
        names: &["invalidate"],
        apply: |draft, value| {
            draft.job.drops_cache = flag(value)?;
            Ok(())
        },
    },
    Key {
        names: &["fadvise_hint", "fadvise"],
        apply: |draft, value| {
            draft.job.advises_order =
                flag(value).map_err(|_| "only 1 (by the pattern) and 0 are possible here")?;
            Ok(())
        },
    },
];

const SHAPE: &[Key] = &[
    Key {
        names: &["bs", "blocksize"],
        apply: |draft, value| {
            let [reads, writes] = by_direction(value)?;
            (draft.job.block_bytes, draft.job.block_sizes) = block_by_direction(reads, writes)?;
            Ok(())
        },
    },
    Key {
        names: &["bsrange", "blocksize_range"],
        apply: |draft, value| {
            (draft.job.block_bytes, draft.job.block_sizes) = block_range(single(value)?)?;
            Ok(())
        },
    },
    Key {
        names: &["bssplit"],
        apply: |draft, value| {
            (draft.job.block_bytes, draft.job.block_sizes) = block_split(single(value)?)?;
            Ok(())
        },
    },
    Key { names: &["rw", "readwrite"], apply: pattern },
    Key {
        names: &["rw_sequencer"],
        apply: |draft, value| {
            draft.job.sequencer = match value {
                "sequential" => Sequencer::Sequential,
                "identical" => Sequencer::Identical,
                _ => return Err(format!("{value:?} is not known; use sequential or identical")),
            };
            Ok(())
        },
    },
    Key {
        names: &["rwmixread"],
        apply: |draft, value| {
            draft.job.read_percent = number(value)?;
            Ok(())
        },
    },
    Key {
        names: &["rwmixwrite"],
        apply: |draft, value| {
            draft.job.read_percent = 100_u8.checked_sub(number(value)?).ok_or("more than 100 percent")?;
            Ok(())
        },
    },
    Key { names: &["ioengine"], apply: fio_engine },
    Key {
        names: &["iodepth"],
        apply: |draft, value| {
            draft.job.depth = number(value)?;
            Ok(())
        },
    },
    Key {
        names: &["iodepth_batch", "iodepth_batch_submit"],
        apply: |draft, value| {
            draft.job.batch_max = number(value)?;
            Ok(())
        },
    },
    Key {
        names: &["numjobs"],
        apply: |draft, value| {
            draft.job.threads = number(value)?;
            Ok(())
        },
    },
    Key {
        names: &["hipri"],
        apply: |draft, value| {
            draft.polled = flag(value)?;
            Ok(())
        },
    },
    Key {
        names: &["sqthread_poll"],
        apply: |draft, value| {
            draft.job.options.sqpoll = flag(value)?;
            Ok(())
        },
    },
    Key {
        names: &["fixedbufs"],
        apply: |draft, value| {
            draft.job.options.fixed_buffers = flag(value)?;
            Ok(())
        },
    },
    Key {
        names: &["registerfiles"],
        apply: |draft, value| {
            draft.job.options.fixed_files = flag(value)?;
            Ok(())
        },
    },
    Key {
        names: &["cpus_allowed"],
        apply: |draft, value| {
            draft.job.cpus = cpus(value)?;
            Ok(())
        },
    },
    Key { names: &["cpus_allowed_policy"], apply: |_, value| only(value, "split") },
];

const TIME: &[Key] = &[
    Key {
        names: &["runtime", "timeout"],
        apply: |draft, value| set(&mut draft.job.runtime_ns, time_ns(value, TimeUnit::Seconds)?),
    },
    Key {
        names: &["time_based"],
        apply: |draft, value| {
            draft.job.time_based = flag(value)?;
            Ok(())
        },
    },
    Key {
        names: &["ramp_time"],
        apply: |draft, value| {
            draft.job.ramp_ns = time_ns(value, TimeUnit::Seconds)?;
            Ok(())
        },
    },
    Key {
        names: &["startdelay"],
        apply: |draft, value| {
            draft.job.start_delay_ns = time_ns(value, TimeUnit::Seconds)?;
            Ok(())
        },
    },
    Key {
        names: &["stonewall", "wait_for_previous"],
        apply: |draft, value| {
            draft.job.stonewall = flag(value)?;
            Ok(())
        },
    },
    Key { names: &["wait_for"], apply: |draft, value| set(&mut draft.wait_for, text(value)?) },
    Key {
        names: &["exitall"],
        apply: |draft, value| {
            draft.job.exit_all = flag(value)?;
            Ok(())
        },
    },
    Key {
        names: &["end_fsync"],
        apply: |draft, value| {
            draft.syncs_at_end[0] = flag(value)?;
            Ok(())
        },
    },
    Key {
        names: &["fsync_on_close"],
        apply: |draft, value| {
            draft.syncs_at_end[1] = flag(value)?;
            Ok(())
        },
    },
    Key {
        names: &["loops"],
        apply: |draft, value| {
            draft.job.loops = number(value)?;
            Ok(())
        },
    },
    Key { names: &["number_ios"], apply: |draft, value| set(&mut draft.job.operations_max, number(value)?) },
    Key {
        names: &["rate_iops"],
        apply: |draft, value| {
            let [reads, writes] = by_direction(value)?;
            set(&mut draft.rates_iops, [number(reads)?, number(writes)?])
        },
    },
    Key {
        names: &["rate"],
        apply: |draft, value| {
            let [reads, writes] = by_direction(value)?;
            set(&mut draft.rates_bytes, [fio_bytes(reads)?, fio_bytes(writes)?])
        },
    },
    Key {
        names: &["thinktime"],
        apply: |draft, value| {
            draft.job.think_time_ns = time_ns(value, TimeUnit::Microseconds)?;
            Ok(())
        },
    },
    Key {
        names: &["fsync"],
        apply: |draft, value| {
            draft.job.fsync_every = number(value)?;
            Ok(())
        },
    },
    Key {
        names: &["fdatasync"],
        apply: |draft, value| {
            draft.job.fdatasync_every = number(value)?;
            Ok(())
        },
    },
    Key { names: &["verify"], apply: verify },
];

const RANDOM: &[Key] = &[
    Key {
        names: &["randseed"],
        apply: |draft, value| {
            draft.job.seed = match value.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).map_err(|_| "not a number")?,
                None => number(value)?,
            };
            Ok(())
        },
    },
    Key {
        names: &["randrepeat"],
        apply: |draft, value| {
            draft.job.random_repeat = flag(value)?;
            Ok(())
        },
    },
    Key {
        names: &["norandommap"],
        apply: |draft, value| {
            draft.job.no_random_map = flag(value)?;
            Ok(())
        },
    },
    Key {
        names: &["random_generator"],
        apply: |draft, value| {
            one_of(value, &["tausworthe", "tausworthe64"])?;
            draft.job.random_wide = value == "tausworthe64";
            Ok(())
        },
    },
    Key {
        names: &["random_distribution"],
        apply: |draft, value| {
            draft.job.skew = if value == "random" { Skew::None } else { skew(value)? };
            Ok(())
        },
    },
];

const REPORT: &[Key] = &[
    Key {
        names: &["percentile_list"],
        apply: |draft, value| {
            let percentiles: Result<_, _> = value.split(':').map(|part| part.trim().parse::<f64>()).collect();
            draft.job.percentiles = percentiles.map_err(|_| "write percentiles as 50:99:99.9")?;
            Ok(())
        },
    },
    Key { names: &["write_lat_log"], apply: |draft, value| log_prefix(draft, "write_lat_log", value) },
    Key { names: &["write_iops_log"], apply: |draft, value| log_prefix(draft, "write_iops_log", value) },
    Key { names: &["write_bw_log"], apply: |draft, value| log_prefix(draft, "write_bw_log", value) },
    Key {
        names: &["log_avg_msec"],
        apply: |draft, value| {
            draft.job.log_average_ms = milliseconds(value)?;
            Ok(())
        },
    },
    Key {
        names: &["group_reporting"],
        apply: |draft, value| {
            draft.job.group_reporting = flag(value)?;
            Ok(())
        },
    },
    Key {
        names: &["new_group"],
        apply: |draft, value| {
            draft.job.new_group = flag(value)?;
            Ok(())
        },
    },
    // Makes fio use threads instead of processes; jobs here always use threads.
    Key { names: &["thread"], apply: |_, value| flag(value).map(drop) },
    Key { names: &["description"], apply: |_, _| Ok(()) },
];

/// Keys whose only allowed value is the behaviour here, and keys without an effect; each causes a note.
const WITHOUT_EFFECT: &[Key] = &[
    Key { names: &["gtod_reduce"], apply: timed },
    Key { names: &["disable_lat"], apply: timed },
    Key { names: &["disable_clat"], apply: timed },
    Key { names: &["disable_slat"], apply: timed },
    Key { names: &["disable_bw_measurement"], apply: timed },
    Key {
        names: &["iodepth_batch_complete_max"],
        apply: |draft, value| {
            let _: u32 = number(value)?;
            draft.note("without effect: all that is complete is taken at once, up to the depth")
        },
    },
    Key {
        names: &["iodepth_batch_complete_min", "iodepth_batch_complete"],
        apply: |_, value| only(value, "1"),
    },
    Key { names: &["kb_base"], apply: |_, value| only(value, "1024") },
    Key { names: &["overwrite"], apply: |_, value| only_flag(flag(value)?, "0") },
    Key {
        names: &["serialize_overlap"],
        apply: |draft, value| {
            draft.serialize_overlap = flag(value)?;
            Ok(())
        },
    },
    Key {
        names: &["fallocate"],
        apply: |draft, value| {
            one_of(value, &["none", "native", "posix", "keep", "truncate", "0", "1"])?;
            draft.note("without effect: a file of reads is laid out with data, one of writes is made with its length")
        },
    },
    Key { names: &["zonemode"], apply: |_, value| only(value, "none") },
    Key { names: &["io_submit_mode"], apply: |_, value| only(value, "inline") },
    Key {
        names: &["sync"],
        apply: |_, value| match value {
            "0" | "none" => Ok(()),
            _ => {
                Err(format!("{value:?} is not possible here; fsync=1 or fdatasync=1 make each write durable"))
            }
        },
    },
    Key {
        names: &["verify_backlog"],
        apply: |draft, value| {
            let _: u64 = number(value)?;
            draft.note("without effect: blocks are compared when the job is done")
        },
    },
    Key { names: &["do_verify"], apply: |_, value| only_flag(flag(value)?, "1") },
    Key {
        names: &["verify_fatal"],
        apply: |draft, value| match flag(value)? {
            true => draft.note("without effect: all blocks are compared, and a wrong one fails the run"),
            false => Ok(()),
        },
    },
    Key {
        names: &["verify_dump"],
        apply: |draft, value| match flag(value)? {
            true => draft.note("without effect: a wrong block is named and not written out"),
            false => Ok(()),
        },
    },
    Key {
        names: &["verify_state_save"],
        apply: |draft, value| match flag(value)? {
            true => draft.note("without effect: what was written is kept with the flag --ledger"),
            false => Ok(()),
        },
    },
];

/// Handles keys that ask for fewer clock readings.
fn timed(draft: &mut Draft, value: &str) -> Result<(), String> {
    match flag(value)? {
        true => draft.note("without effect: every operation is timed"),
        false => Ok(()),
    }
}

fn only_flag(value: bool, known: &str) -> Result<(), String> {
    only(if value { "1" } else { "0" }, known)
}

const OURS: &[Key] = &[
    Key {
        names: &["weir_completion", "weir_predictor"],
        apply: |draft, value| {
            draft.job.completion.predictor = text(value)?;
            Ok(())
        },
    },
    Key {
        names: &["weir_armed"],
        apply: |draft, value| {
            draft.job.completion.armed = flag(value)?;
            Ok(())
        },
    },
    Key {
        names: &["weir_sleep"],
        apply: |draft, value| {
            draft.job.completion.sleep = sleep_primitive(value)?;
            Ok(())
        },
    },
    Key {
        names: &["weir_engine"],
        apply: |draft, value| {
            draft.job.engine = value.parse::<StorageEngine>()?;
            Ok(())
        },
    },
    Key {
        names: &["weir_ring_mode"],
        apply: |draft, value| {
            draft.job.options.ring_mode = ring_mode(value)?;
            Ok(())
        },
    },
    Key {
        names: &["weir_hybrid_iopoll"],
        apply: |draft, value| {
            draft.job.options.hybrid_iopoll = flag(value)?;
            Ok(())
        },
    },
    Key {
        names: &["weir_interval"],
        apply: |draft, value| {
            draft.job.interval_ns = time_ns(value, TimeUnit::Milliseconds)?;
            Ok(())
        },
    },
    Key {
        names: &["weir_device_clock"],
        apply: |draft, value| {
            draft.job.device_clock = device_clock(value)?;
            Ok(())
        },
    },
];

/// A sleep primitive by its name.
pub fn sleep_primitive(value: &str) -> Result<SleepPrimitive, String> {
    match value {
        "auto" => Ok(SleepPrimitive::Auto),
        "clock-nanosleep" => Ok(SleepPrimitive::ClockNanosleep),
        "ring-timeout" => Ok(SleepPrimitive::RingTimeout),
        "timerfd" => Ok(SleepPrimitive::Timerfd),
        _ => Err(format!("{value:?} is not known; use auto, clock-nanosleep, ring-timeout or timerfd")),
    }
}

/// A ring mode by its name.
pub fn ring_mode(value: &str) -> Result<RingMode, String> {
    match value {
        "default" => Ok(RingMode::Default),
        "coop" => Ok(RingMode::Coop),
        "defer" => Ok(RingMode::Defer),
        _ => Err(format!("{value:?} is not known; use default, coop or defer")),
    }
}

/// A clock of the device by its name.
pub fn device_clock(value: &str) -> Result<DeviceClock, String> {
    match value {
        "observed" => Ok(DeviceClock::Observed),
        "tracepoint" => Ok(DeviceClock::Tracepoint),
        _ => Err(format!("{value:?} is not known; use observed or tracepoint")),
    }
}

fn fio_engine(draft: &mut Draft, value: &str) -> Result<(), String> {
    draft.job.engine = match value {
        "psync" | "sync" => StorageEngine::Pread,
        "pvsync" | "pvsync2" => StorageEngine::Pwritev,
        "libaio" => StorageEngine::Libaio,
        "posixaio" => StorageEngine::Posixaio,
        "io_uring" => StorageEngine::IoUring,
        _ => {
            return Err(format!(
                "the engine {value} is not ours; use psync, sync, pvsync, pvsync2, libaio, posixaio or io_uring"
            ));
        }
    };
    Ok(())
}

/// fio's checksums that CRC-32C replaces.
const CHECKSUMS: [&str; 16] = [
    "crc7",
    "crc16",
    "crc32",
    "crc64",
    "md5",
    "sha1",
    "sha256",
    "sha512",
    "sha3-224",
    "sha3-256",
    "sha3-384",
    "sha3-512",
    "xxhash",
    "meta",
    "sha224",
    "crc32c-intel",
];

/// Whether written blocks are verified. Another checksum causes a note, because CRC-32C is used instead.
fn verify(draft: &mut Draft, value: &str) -> Result<(), String> {
    draft.job.verify_crc32c = value != "0";
    match value {
        "0" | "crc32c" | "crc32c-intel" => Ok(()),
        "pattern" | "null" => Err(format!(
            "{value:?} is not possible here: a block without a checksum cannot say which writing it is; use crc32c"
        )),
        _ => {
            one_of(value, &CHECKSUMS)?;
            draft.note(&format!("blocks carry a CRC-32C in place of {value}, and are verified by it"))
        }
    }
}

/// A pattern, and after a colon its modifier: `randread:8`, `read:4k`.
fn pattern(draft: &mut Draft, value: &str) -> Result<(), String> {
    let (name, modifier) = value.split_once(':').map_or((value, None), |(name, rest)| (name, Some(rest)));
    if ["trim", "randtrim", "trimwrite", "randtrimwrite"].contains(&name) {
        return Err(format!(
            "{name}: trims are not made; use read, write, randread, randwrite, rw or randrw"
        ));
    }
    draft.job.pattern = name.parse()?;
    (draft.job.random_every, draft.job.stride_bytes) = (1, 0);
    match modifier {
        None => {}
        Some(count) if draft.job.pattern.is_random() => {
            draft.job.random_every = number(count)?;
        }
        Some(bytes) => {
            let (bytes, sign) = bytes.strip_prefix('-').map_or((bytes, 1), |bytes| (bytes, -1));
            let bytes = i64::try_from(fio_bytes(bytes)?).map_err(|_| "too large")?;
            draft.job.stride_bytes = sign * bytes;
        }
    }
    Ok(())
}

/// Bytes, or a share of the file's size.
fn size(draft: &mut Draft, value: &str) -> Result<(), String> {
    let Some(percent) = value.strip_suffix('%') else {
        draft.job.size_percent = None;
        return set(&mut draft.job.size_bytes, fio_bytes(value)?);
    };
    let wrong = || format!("{value:?} is no share of a file; write 1% to 100%");
    let percent = percent.parse().ok().filter(|percent| (1..=100).contains(percent)).ok_or_else(wrong)?;
    draft.job.size_bytes = None;
    set(&mut draft.job.size_percent, percent)
}

fn filename(draft: &mut Draft, value: &str) -> Result<(), String> {
    if value.contains(':') {
        return Err("several files in one job are not read; give each its own job".to_owned());
    }
    set(&mut draft.filename, text(value)?)
}

/// The last value of a key wins: a job's value replaces the global one.
fn log_prefix(draft: &mut Draft, key: &'static str, value: &str) -> Result<(), String> {
    draft.log_prefixes.insert(key, value.to_owned());
    Ok(())
}

fn set<T>(place: &mut Option<T>, value: T) -> Result<(), String> {
    *place = Some(value);
    Ok(())
}

fn text(value: &str) -> Result<String, String> {
    if value.is_empty() { Err("it has no value".to_owned()) } else { Ok(value.to_owned()) }
}

/// A key whose value may be omitted.
fn flag(value: &str) -> Result<bool, String> {
    match value {
        "" | "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(format!("{value:?} is not known; write 1 or 0")),
    }
}

fn number<N: std::str::FromStr>(value: &str) -> Result<N, String> {
    value.parse().map_err(|_| format!("{value:?} is not a whole number that is possible here"))
}

/// A single value, where reads and writes could differ.
fn single(value: &str) -> Result<&str, String> {
    let [reads, writes] = by_direction(value)?;
    if reads == writes {
        Ok(reads)
    } else {
        Err(format!("{value:?} has different values for reads and writes; give them separate jobs"))
    }
}

/// The values for reads and for writes. A third one is for trims, which no job has.
fn by_direction(value: &str) -> Result<[&str; 2], String> {
    let parts: Vec<&str> = value.split(',').map(str::trim).collect();
    match parts[..] {
        [both] => Ok([both, both]),
        // For fio that means the default, or no limit.
        [reads, writes] | [reads, writes, _] if reads.is_empty() || writes.is_empty() => {
            Err(format!("{value:?} leaves out the value of a direction; write both, or one for both"))
        }
        [reads, writes] | [reads, writes, _] => Ok([reads, writes]),
        _ => Err(format!("{value:?} has more values than there are directions")),
    }
}

fn one_of(value: &str, known: &[&str]) -> Result<(), String> {
    if known.contains(&value) {
        Ok(())
    } else {
        Err(format!("{value:?} is not known; use one of {}", known.join(", ")))
    }
}

fn only(value: &str, known: &str) -> Result<(), String> {
    if value == known { Ok(()) } else { Err(format!("{value:?} is not possible here; only {known} is")) }
}

fn time_ns(value: &str, unit: TimeUnit) -> Result<u64, String> {
    nanoseconds(fio_time(value, unit)?)
}

fn nanoseconds(time: Duration) -> Result<u64, String> {
    u64::try_from(time.as_nanos()).map_err(|_| "that is longer than centuries".to_owned())
}

fn milliseconds(value: &str) -> Result<u32, String> {
    let time = fio_time(value, TimeUnit::Milliseconds)?;
    u32::try_from(time.as_millis()).map_err(|_| "that is longer than weeks".to_owned())
}
