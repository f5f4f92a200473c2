//! Job files: the part of fio's format that is read (`docs/formats/storage-job.md`). Pure: text in, jobs out.
//!
//! A section is a job; what stands in `[global]` holds for the jobs after it. What follows `;` or `#` is a comment. A
//! key that is not known is an error with its line, because a job that is not the one that was meant measures nothing.

use std::{collections::BTreeMap, fmt};

use weir_record::storage::{BlockSizes, Skew, StorageEngine, StorageJob};

use super::{
    keys::{self, Draft},
    lines::Lines,
    validate::{Field, JobError, THREADS_MAX, validate, validate_all},
    waits,
};

/// Longest job file.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

const NO_JOB: &str = "there is no job in it; begin one with a line such as [name], or with --name=NAME";

/// What is wrong with a job file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFileError {
    /// Name of the file, or the word of a command line.
    pub file: String,
    /// Line, from 1; 0 for a word of a command line.
    pub line: usize,
    /// What is wrong and what would be right.
    pub reason: String,
}

impl fmt::Display for JobFileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(formatter, "{}: {}", self.file, self.reason),
            line => write!(formatter, "{}:{line}: {}", self.file, self.reason),
        }
    }
}

impl std::error::Error for JobFileError {}

/// Jobs that were read, with the places where they were asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFile {
    /// In the order of the file.
    pub jobs: Vec<StorageJob>,
    /// What was left out, when that was allowed, and keys without effect.
    pub warnings: Vec<String>,
    /// Keys that are said for all jobs and were read, each with its last value.
    pub global_options: Vec<(String, String)>,
    lines: Lines,
    places: Vec<Places>,
}

/// Where a job's section and keys stand.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Places {
    section: usize,
    keys: BTreeMap<&'static str, usize>,
}

/// One `key=value`.
struct Entry<'a> {
    key: &'a str,
    value: &'a str,
    line: usize,
}

struct Section<'a> {
    name: &'a str,
    line: usize,
    /// Global entries that stand above it.
    globals: usize,
    entries: Vec<Entry<'a>>,
}

impl JobFile {
    /// Reads a job file. With `lenient` a key that is not known is a warning.
    pub fn parse(file: &str, text: &str, lenient: bool) -> Result<Self, JobFileError> {
        Self::of_lines(Lines::of_text(file, text), lenient)
    }

    /// Reads the lines of job files, or of a command line.
    pub fn of_lines(lines: Lines, lenient: bool) -> Result<Self, JobFileError> {
        let error = |line: usize, reason: String| lines.error(line, reason);
        if lines.bytes() > TEXT_BYTES_MAX {
            return Err(error(1, format!("{} bytes are too long for a job file", lines.bytes())));
        }
        let (globals, sections) = split(&lines).map_err(|(line, reason)| error(line, reason))?;
        let mut read = Self {
            jobs: Vec::new(),
            warnings: Vec::new(),
            global_options: last_values(&globals),
            lines: lines.clone(),
            places: Vec::new(),
        };
        let mut waits = Vec::new();
        for section in &sections {
            let mut draft = Draft::new(section.name);
            let mut places = Places { section: section.line, keys: BTreeMap::new() };
            // As in fio, a name is its job's own: one for all would be told of each.
            let shared = globals[..section.globals].iter().filter(|entry| entry.key != "name");
            for entry in shared.chain(&section.entries) {
                match apply(&mut draft, entry) {
                    Ok(name) => {
                        places.keys.insert(name, entry.line);
                        for note in std::mem::take(&mut draft.notes) {
                            read.warn(entry.line, &format!("{name}: {note}"));
                        }
                    }
                    Err(Wrong::Unknown(reason)) if lenient => read.warn(entry.line, &reason),
                    Err(Wrong::Unknown(reason)) => {
                        let remedy =
                            "see docs/formats/storage-job.md, or leave unknown keys out with --fio-lenient";
                        return Err(error(entry.line, format!("{reason}; {remedy}")));
                    }
                    Err(Wrong::Value(reason)) => return Err(error(entry.line, reason)),
                }
            }
            let wait_for = draft.wait_for.take();
            let jobs = finish(draft, section.name).map_err(|(key, reason)| {
                error(places.keys.get(key).copied().unwrap_or(section.line), reason)
            })?;
            // Before they are kept: a short file can ask for millions.
            let all = read.jobs.len() + jobs.len();
            if all > THREADS_MAX as usize {
                let reason = format!("{all} jobs in all are too many; at most {THREADS_MAX}");
                return Err(error(section.line, reason));
            }
            read.places.extend(std::iter::repeat_n(places, jobs.len()));
            waits.extend(std::iter::repeat_n(wait_for, jobs.len()));
            read.jobs.extend(jobs);
        }
        // As in fio 3.33: whoever says it says it for all.
        let exit_all = read.jobs.iter().any(|job| job.exit_all);
        read.jobs.iter_mut().for_each(|job| job.exit_all = exit_all);
        waits::resolve(&mut read.jobs, &waits)
            .map_err(|(job, reason)| read.locate(job, JobError::new(waits::FIELD, reason)))?;
        if read.jobs.is_empty() {
            return Err(error(1, NO_JOB.to_owned()));
        }
        number_threads(&mut read.jobs);
        Ok(read)
    }

    /// Once, whatever many jobs it is about.
    fn warn(&mut self, line: usize, text: &str) {
        let warning = self.lines.error(line, text.to_owned()).to_string();
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Whether the jobs can run.
    pub fn validate(&self) -> Result<(), JobFileError> {
        for (index, job) in self.jobs.iter().enumerate() {
            validate(job).map_err(|error| self.locate(index, error))?;
        }
        validate_all(&self.jobs).map_err(|error| self.locate(0, error))
    }

    /// What is wrong with a key of a job.
    pub fn error_of_key(&self, job: usize, key: &'static str, reason: String) -> JobFileError {
        self.locate(job, JobError::new(Field { flag: key, key }, reason))
    }

    /// What is wrong with a job, told with its line instead of a flag.
    pub fn locate(&self, job: usize, error: JobError) -> JobFileError {
        let places = &self.places[job];
        let key = error.field.key;
        let (line, reason) = match places.keys.get(key) {
            Some(line) => (*line, format!("{key}: {}", error.reason)),
            None => (places.section, format!("job {}: {key}: {}", self.jobs[job].name, error.reason)),
        };
        self.lines.error(line, reason)
    }
}

/// The text with the values of its variables, `${NAME}`, as `value` knows them; comments stay as they are.
pub fn with_variables(
    file: &str,
    text: &str,
    value: impl Fn(&str) -> Option<String>,
) -> Result<String, JobFileError> {
    let mut written = String::with_capacity(text.len());
    for (index, line) in text.lines().enumerate() {
        let error = |reason: String| JobFileError { file: file.to_owned(), line: index + 1, reason };
        let content = line.split([';', '#']).next().unwrap_or_default();
        let mut rest = content;
        while let Some((before, behind)) = rest.split_once("${") {
            let Some((name, after)) = behind.split_once('}') else {
                return Err(error(format!("{behind:?} has no end; write ${{NAME}}")));
            };
            let found = value(name).filter(|found| !found.contains(|letter: char| letter.is_control()));
            let Some(found) = found else {
                return Err(error(format!("the variable {name} is not set, or is no line of text")));
            };
            written.push_str(before);
            written.push_str(&found);
            if written.len() > TEXT_BYTES_MAX {
                return Err(error("with its variables the job file is too long".to_owned()));
            }
            rest = after;
        }
        written.push_str(rest);
        written.push_str(&line[content.len()..]);
        written.push('\n');
    }
    Ok(written)
}

/// Gives every thread of all jobs its number.
pub fn number_threads(jobs: &mut [StorageJob]) {
    let mut next = 1_u32;
    for job in jobs {
        job.thread_first = next;
        next = next.saturating_add(job.threads);
    }
}

/// Lines to sections: global entries and jobs.
fn split(lines: &Lines) -> Result<(Vec<Entry<'_>>, Vec<Section<'_>>), (usize, String)> {
    let mut globals = Vec::new();
    let mut sections: Vec<Section<'_>> = Vec::new();
    let mut inside = None;
    for (line, content) in lines.contents() {
        if content.is_empty() {
            continue;
        }
        if let Some(header) = content.strip_prefix('[') {
            let name = header.strip_suffix(']').map(str::trim).filter(|name| !name.is_empty());
            let Some(name) = name else {
                return Err((line, format!("{content:?} begins no section; write [name]")));
            };
            inside = Some(name == "global");
            if name != "global" {
                sections.push(Section { name, line, globals: globals.len(), entries: Vec::new() });
            }
            continue;
        }
        let (key, value) = content.split_once('=').unwrap_or((content, ""));
        let entry = Entry { key: key.trim(), value: value.trim(), line };
        match (inside, sections.last_mut()) {
            (Some(true), _) => globals.push(entry),
            (Some(false), Some(section)) => section.entries.push(entry),
            _ => {
                return Err((
                    line,
                    format!("{} stands in no section; begin with [global] or [name]", entry.key),
                ));
            }
        }
    }
    Ok((globals, sections))
}

/// Each key that is known, with its last value.
fn last_values(entries: &[Entry<'_>]) -> Vec<(String, String)> {
    let mut values: Vec<(String, String)> = Vec::new();
    for entry in entries.iter().filter(|entry| keys::find(entry.key).is_some()) {
        match values.iter_mut().find(|(key, _)| key == entry.key) {
            Some((_, value)) => entry.value.clone_into(value),
            None => values.push((entry.key.to_owned(), entry.value.to_owned())),
        }
    }
    values
}

enum Wrong {
    Unknown(String),
    Value(String),
}

/// Carries one entry out; gives the key's first name.
fn apply(draft: &mut Draft, entry: &Entry<'_>) -> Result<&'static str, Wrong> {
    let Some(key) = keys::find(entry.key) else {
        return Err(Wrong::Unknown(format!("there is no key {:?} that is read here", entry.key)));
    };
    let name = key.names[0];
    if entry.value.contains('$') && name != "filename_format" {
        return Err(Wrong::Value(format!("{name}: variables are not read; write the value itself")));
    }
    (key.apply)(draft, entry.value).map_err(|reason| Wrong::Value(format!("{name}: {reason}")))?;
    Ok(name)
}

/// A draft and the name of its section to jobs: one, or one for each thread where each has a file of its own.
fn finish(draft: Draft, section: &str) -> Result<Vec<StorageJob>, (&'static str, String)> {
    let Draft { mut job, filename, directory, filename_format, .. } = draft;
    let Draft { polled, log_prefixes, rates_iops, rates_bytes, io_bytes, file_bytes, .. } = draft;
    let increment = draft.offset_increment_bytes;
    job.end_fsync = draft.syncs_at_end.contains(&true);
    (job.rate_iops, job.rate_writes_iops) = rates(&job, rates_iops);
    (job.rate_bytes, job.rate_writes_bytes) = rates(&job, rates_bytes);
    amount(&mut job, io_bytes, file_bytes)?;
    if !job.pattern.writes() {
        // As in fio: what holds for all jobs of a file has nothing to do in those that only read.
        (job.fsync_every, job.fdatasync_every, job.end_fsync) = (0, 0, false);
    }
    overlap(&job, draft.serialize_overlap)?;
    if polled {
        match job.engine {
            StorageEngine::IoUring => job.options.iopoll = true,
            StorageEngine::Pwritev => job.options.high_priority = true,
            engine => {
                return Err((
                    "hipri",
                    format!("hipri: the engine {engine} has nothing like it; leave it out"),
                ));
            }
        }
    }
    if let Some(first) = log_prefixes.values().next() {
        if log_prefixes.values().any(|prefix| prefix != first) {
            return Err((
                "write_lat_log",
                "all logs of a job have one prefix; name the same in each".to_owned(),
            ));
        }
        job.log_prefix = Some(if first.is_empty() { job.name.clone() } else { first.clone() });
    }
    let below = |name: &str| match directory.as_deref() {
        Some(directory) => format!("{}/{name}", directory.trim_end_matches('/')),
        None => name.to_owned(),
    };
    if let Some(name) = filename {
        job.file_given = true;
        job.file = below(&name);
        // Threads with offsets of their own are jobs of their own.
        let count = if increment > 0 { job.threads } else { 1 };
        return each_thread(&job, count, increment, |job, _| {
            if count > 1 {
                job.threads = 1
            }
        });
    }
    if job.size_bytes.is_none() && job.size_percent.is_none() {
        let text = format!(
            "job {} names no file and no size; give filename, or size for a file of its own",
            job.name
        );
        return Err(("size", text));
    }
    // As in fio, every thread of a job without a file name has a file of its own.
    let format = filename_format.as_deref().unwrap_or("$jobname.$jobnum.$filenum");
    each_thread(&job, job.threads, increment, |job, number| {
        (job.file, job.threads) = (below(&file_name(format, section, number)), 1);
    })
}

/// A job for each of so many threads, which begins so much further than the one before it.
fn each_thread(
    job: &StorageJob,
    count: u32,
    increment: u64,
    change: impl Fn(&mut StorageJob, u32),
) -> Result<Vec<StorageJob>, (&'static str, String)> {
    if !(1..=THREADS_MAX).contains(&count) {
        let text = format!("numjobs: {count} threads are not possible; use 1 to {THREADS_MAX}");
        return Err(("numjobs", text));
    }
    let each = |number: u32| {
        let mut own = job.clone();
        own.offset_bytes = job.offset_bytes.saturating_add(increment.saturating_mul(number.into()));
        (own.stonewall, own.new_group) = (job.stonewall && number == 0, job.new_group && number == 0);
        change(&mut own, number);
        own
    };
    Ok((0..count).map(each).collect())
}

/// Refuses `serialize_overlap` where two operations in flight may touch one block: it repeats, or two sequences that
/// know nothing of each other reach it.
fn overlap(job: &StorageJob, must_not: bool) -> Result<(), (&'static str, String)> {
    let is_random = job.pattern.is_random();
    let repeats = is_random && (job.no_random_map || job.skew != Skew::None || job.random_every > 1);
    let again = job.time_based || job.loops > 1 || job.done_bytes.is_some() || job.stride_bytes != 0;
    let is_mixed = job.pattern.reads() && job.pattern.writes();
    // In sequence each direction has a place of its own; at random with lengths of its own a map of its own.
    let apart = is_mixed && (!is_random || matches!(job.block_sizes, BlockSizes::ByDirection { .. }));
    if must_not && job.depth > 1 && (repeats || again || apart) {
        let text = "serialize_overlap: operations in flight that touch one block are not held back, and here they can be; \
                    use iodepth=1, or each block once";
        return Err(("serialize_overlap", text.to_owned()));
    }
    Ok(())
}

/// `io_size` is what is done of `size`; `size` is what is done of `filesize`.
fn amount(
    job: &mut StorageJob,
    io_bytes: Option<u64>,
    file_bytes: Option<u64>,
) -> Result<(), (&'static str, String)> {
    let done = io_bytes.or(file_bytes.and(job.size_bytes));
    job.size_bytes = file_bytes.or(job.size_bytes);
    // As in fio, where the time is the limit, nothing else is.
    if job.time_based && job.runtime_ns.is_some() {
        job.operations_max = None;
        return Ok(());
    }
    let key = if io_bytes.is_some() { "io_size" } else { "filesize" };
    let Some(done) = done.filter(|done| Some(*done) != job.size_bytes) else { return Ok(()) };
    let refuse = |reason: String| Err((key, format!("{key}: {reason}")));
    match job.size_bytes {
        None => refuse("it is a part of a size; give that too".to_owned()),
        Some(_) if job.loops > 1 => {
            refuse("with loops it means another number of them; leave one of both out".to_owned())
        }
        _ if job.block_sizes != BlockSizes::Same => {
            refuse("it is a number of operations here, which need one length; give bs".to_owned())
        }
        Some(size) if done > size => {
            job.done_bytes = Some(done);
            Ok(())
        }
        Some(_) => {
            let operations = done.div_ceil(u64::from(job.block_bytes.max(1)));
            job.operations_max = Some(job.operations_max.map_or(operations, |given| given.min(operations)));
            Ok(())
        }
    }
}

/// As in fio, each direction of a mixed job has its rate; what a job does not do has none.
fn rates<T: Copy>(job: &StorageJob, by_direction: Option<[T; 2]>) -> (Option<T>, Option<T>) {
    let Some([reads, writes]) = by_direction else { return (None, None) };
    match (job.pattern.reads(), job.pattern.writes()) {
        (true, true) => (Some(reads), Some(writes)),
        (false, _) => (Some(writes), None),
        (true, false) => (Some(reads), None),
    }
}

fn file_name(format: &str, job: &str, number: u32) -> String {
    format.replace("$jobname", job).replace("$jobnum", &number.to_string()).replace("$filenum", "0")
}

#[cfg(test)]
mod tests {
    use weir_record::storage::{AccessPattern, Sequencer};

    use super::*;

    fn read(text: &str) -> JobFile {
        JobFile::parse("jobs.fio", text, false).expect("it can be read")
    }

    fn refused(text: &str) -> String {
        let file = match JobFile::parse("jobs.fio", text, false) {
            Ok(file) => file,
            Err(error) => return error.to_string(),
        };
        file.validate().expect_err("it is refused").to_string()
    }

    #[test]
    fn a_job_without_keys_is_fios_default() {
        let file = read("[job]\nfilename=data\n");
        let expected = StorageJob {
            name: "job".into(),
            file: "data".into(),
            file_given: true,
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
        assert_eq!(file.jobs, [expected]);
        assert_eq!(file.validate(), Ok(()));
    }

    #[test]
    fn globals_hold_for_the_jobs_after_them() {
        let file = read(
            "; a comment\n[global]\nbs=8k   # and another\nfilename=data\n\n[first]\nrw = randread\n\
             [global]\nbs=16k\n[second]\niodepth=4\nioengine=libaio\n[third]\nbs=512\nstonewall\n",
        );
        let blocks: Vec<u32> = file.jobs.iter().map(|job| job.block_bytes).collect();
        assert_eq!(blocks, [8192, 16_384, 512]);
        assert_eq!(file.jobs[0].pattern, AccessPattern::RandRead);
        assert_eq!((file.jobs[1].depth, file.jobs[1].engine), (4, StorageEngine::Libaio));
        let walls: Vec<bool> = file.jobs.iter().map(|job| job.stonewall).collect();
        assert_eq!(walls, [false, false, true]);
    }

    #[test]
    fn every_key_arrives() {
        let file = read(
            "[all]\nfilename=data\ndirectory=/d/\nsize=64m\noffset=4k\nbs=4k,4k\nrw=randrw\nrwmixread=70\ndirect=1\n\
             ioengine=io_uring\nhipri\nsqthread_poll=1\nfixedbufs\nregisterfiles=1\niodepth=32\nnumjobs=2\nruntime=5\n\
             time_based\nramp_time=500ms\nstartdelay=1\nrate_iops=100\ncpus_allowed=0-1\nrandseed=0x2a\nrandrepeat=0\n\
             norandommap\npercentile_list=50:99.9\nwrite_lat_log=log\nwrite_iops_log=log\nlog_avg_msec=100\n\
             verify=crc32c\nfsync=8\nnumber_ios=1000\ngroup_reporting\nthread\nweir_interval=250\n\
             weir_ring_mode=coop\nweir_hybrid_iopoll=1\nweir_device_clock=tracepoint\nweir_sleep=timerfd\n\
             weir_predictor=linux-mean:0.5\nweir_armed=1\n",
        );
        let [job] = &file.jobs[..] else { panic!("{} jobs", file.jobs.len()) };
        assert_eq!((job.file.as_str(), job.size_bytes, job.offset_bytes), ("/d/data", Some(64 << 20), 4096));
        assert_eq!((job.pattern, job.read_percent, job.direct), (AccessPattern::RandRw, 70, true));
        let options = job.options;
        assert!(options.iopoll && options.sqpoll && options.fixed_buffers && options.fixed_files);
        assert!(options.hybrid_iopoll && !options.high_priority);
        assert_eq!((job.depth, job.threads), (32, 2));
        assert_eq!((job.runtime_ns, job.time_based), (Some(5_000_000_000), true));
        assert_eq!((job.ramp_ns, job.start_delay_ns), (500_000_000, 1_000_000_000));
        assert_eq!((job.rate_iops, job.operations_max, job.fsync_every), (Some(100), None, 8));
        assert_eq!(job.rate_writes_iops, Some(100));
        assert_eq!((job.cpus.as_slice(), job.seed, job.random_repeat), (&[0, 1][..], 42, false));
        assert_eq!((job.percentiles.as_slice(), job.log_average_ms), (&[50.0, 99.9][..], 100));
        assert_eq!((job.log_prefix.as_deref(), job.verify_crc32c), (Some("log"), true));
        assert_eq!((job.completion.predictor.as_str(), job.completion.armed), ("linux-mean:0.5", true));
        assert_eq!(job.interval_ns, 250_000_000);
    }

    #[test]
    fn the_keys_that_job_files_have_most_arrive() {
        let file = read(
            "[global]\nioengine=sync\nverify=0\nloops=3\n[a]\nname=first\nfilename=data\nsize=50%\nrw=write\n\
             rate=2m,1m\nfdatasync=4\nbsrange=4k-16k\n[b]\nname=second\nsize=1m\nrw=randread\n\
             random_distribution=zipf:1.2:0.5\nbssplit=4k/10:64k/90\n",
        );
        let [first, second] = &file.jobs[..] else { panic!("{} jobs", file.jobs.len()) };
        assert_eq!((first.engine, first.verify_crc32c, first.loops), (StorageEngine::Pread, false, 3));
        assert_eq!((first.size_bytes, first.size_percent), (None, Some(50)));
        assert_eq!((first.rate_bytes, first.fdatasync_every), (Some(1 << 20), 4));
        assert_eq!((first.block_bytes, &first.block_sizes), (16_384, &BlockSizes::Range { bytes_min: 4096 }));
        // As in fio, a file of its own has the section's name.
        assert_eq!((second.name.as_str(), second.file.as_str()), ("second", "b.0.0"));
        assert_eq!(second.skew, Skew::Zipf { theta: 1.2, center: Some(0.5) });
        assert!(matches!(&second.block_sizes, BlockSizes::Split(shares) if shares.len() == 2));
        assert_eq!(file.validate(), Ok(()));
        let last = read("[a]\nfilename=f\nsize=50%\nsize=1m\nbsrange=4k-8k\nbs=4k\n");
        assert_eq!((last.jobs[0].size_percent, &last.jobs[0].block_sizes), (None, &BlockSizes::Same));
    }

    #[test]
    fn the_page_cache_forgets_the_file_unless_that_is_unwanted() {
        let of = |keys: &str| {
            let job = read(&format!("[j]\nfilename=f\n{keys}")).jobs.remove(0);
            (job.drops_cache, job.advises_order)
        };
        assert_eq!(of(""), (true, true));
        assert_eq!(of("invalidate=0\n"), (false, true));
        assert_eq!(of("invalidate\nfadvise_hint=0\n"), (true, false));
    }

    #[test]
    fn each_direction_of_a_mixed_job_has_its_rate() {
        let of = |rw: &str, rate: &str| {
            let job = read(&format!("[j]\nfilename=f\nrw={rw}\n{rate}\n")).jobs.remove(0);
            ((job.rate_iops, job.rate_writes_iops), (job.rate_bytes, job.rate_writes_bytes))
        };
        assert_eq!(of("randrw", "rate_iops=200").0, (Some(200), Some(200)));
        assert_eq!(of("rw", "rate_iops=200,100").0, (Some(200), Some(100)));
        assert_eq!(of("randread", "rate_iops=200,100").0, (Some(200), None));
        assert_eq!(of("write", "rate_iops=200,100,7").0, (Some(100), None));
        assert_eq!(of("randrw", "rate=4k,8k").1, (Some(4096), Some(8192)));
    }

    #[test]
    fn a_part_of_a_size_or_of_a_file_is_so_many_operations() {
        let of = |keys: &str| {
            let job = read(&format!("[j]\nfilename=f\n{keys}\n")).jobs.remove(0);
            (job.size_bytes, job.operations_max)
        };
        assert_eq!(of("size=1m\nio_size=258k"), (Some(1 << 20), Some(65)));
        assert_eq!(of("size=1m\nio_limit=1m"), (Some(1 << 20), None));
        assert_eq!(of("filesize=1m"), (Some(1 << 20), None));
        assert_eq!(of("filesize=1m\nsize=256k"), (Some(1 << 20), Some(64)));
        assert_eq!(of("size=1m\nio_size=256k\nnumber_ios=9"), (Some(1 << 20), Some(9)));
    }

    #[test]
    fn what_is_more_than_a_size_and_what_time_alone_ends() {
        let of = |keys: &str| read(&format!("[j]\nfilename=f\n{keys}\n")).jobs.remove(0);
        let more = of("size=1m\nio_size=3m");
        assert_eq!(
            (more.size_bytes, more.done_bytes, more.operations_max),
            (Some(1 << 20), Some(3 << 20), None)
        );
        for limit in
            ["size=1m\nio_size=64k", "size=1m\nio_size=3m", "size=1m\nnumber_ios=5", "filesize=1m\nsize=64k"]
        {
            let timed = of(&format!("{limit}\ntime_based\nruntime=1"));
            assert_eq!((timed.operations_max, timed.done_bytes), (None, None), "{limit}");
        }
    }

    #[test]
    fn keys_of_how_operations_follow_each_other_arrive() {
        let of = |keys: &str| read(&format!("[j]\nfilename=f\n{keys}\n")).jobs.remove(0);
        let random = of("rw=randread:8\nrw_sequencer=identical\nrandom_generator=tausworthe64");
        assert_eq!((random.random_every, random.sequencer), (8, Sequencer::Identical));
        assert!(random.random_wide);
        assert_eq!((of("rw=read:64k").stride_bytes, of("rw=write:-8k").stride_bytes), (65_536, -8192));
        let lengths = of("rw=randrw\nbs=4k,64k");
        assert_eq!(lengths.block_bytes, 65_536);
        assert_eq!(lengths.block_sizes, BlockSizes::ByDirection { reads: 4096, writes: 65_536 });
        let normal = of("rw=randread\nrandom_distribution=normal:10");
        assert_eq!(normal.skew, Skew::Normal { percent: 10.0, center: None });
    }

    #[test]
    fn each_thread_begins_further_where_that_is_asked_for() {
        let offsets = |text: &str| -> Vec<(u64, u32)> {
            read(text).jobs.iter().map(|job| (job.offset_bytes, job.threads)).collect()
        };
        let keys = "numjobs=3\noffset=4k\noffset_increment=1m\nsize=1m\n";
        let expected = [(4096, 1), (4096 + (1 << 20), 1), (4096 + (2 << 20), 1)];
        assert_eq!(offsets(&format!("[j]\nfilename=f\n{keys}")), expected);
        assert_eq!(offsets(&format!("[j]\n{keys}")), expected);
    }

    #[test]
    fn groups_waits_and_ends_arrive() {
        let file = read(
            "[global]\nfilename=f\nrw=write\nend_fsync=1\nexitall\n[a]\n[b]\nwait_for=a\nnew_group\n[c]\nwait_for=a\nrw=read\n",
        );
        let [a, b, c] = &file.jobs[..] else { panic!("{} jobs", file.jobs.len()) };
        assert_eq!([a.stonewall, b.stonewall, c.stonewall], [false, true, false]);
        assert_eq!([a.new_group, b.new_group, c.new_group], [false, true, false]);
        assert_eq!([a.end_fsync, b.end_fsync, c.end_fsync], [true, true, false], "it is about writes");
        assert!(a.exit_all && c.exit_all);
    }

    #[test]
    fn a_job_can_undo_what_is_said_for_all() {
        let file = read(
            "[global]\nfilename=f\nrw=write\nend_fsync=1\nwrite_lat_log=all\n[a]\n[b]\nend_fsync=0\n\
             write_lat_log=own\n[c]\nend_fsync=0\nfsync_on_close=1\n[d]\nfsync_on_close=0\n",
        );
        let at_end: Vec<bool> = file.jobs.iter().map(|job| job.end_fsync).collect();
        assert_eq!(at_end, [true, false, true, true]);
        let prefixes: Vec<_> = file.jobs.iter().filter_map(|job| job.log_prefix.as_deref()).collect();
        assert_eq!(prefixes, ["all", "own", "all", "all"]);
    }

    #[test]
    fn overlaps_are_refused_wherever_two_operations_in_flight_can_touch_one_block() {
        let of = |keys: &str| {
            let head = "[j]\nfilename=f\nioengine=libaio\niodepth=4\nserialize_overlap=1\n";
            JobFile::parse("jobs.fio", &format!("{head}{keys}"), false).is_ok()
        };
        for keys in [
            "rw=rw\n",
            "rw=randrw\nbs=4k,16k\n",
            "rw=read:4k\n",
            "rw=write:-4k\n",
            "rw=randread:4\n",
            "rw=randwrite\nrandom_distribution=zipf\n",
            "rw=write\nloops=2\n",
            "rw=read\ntime_based\nruntime=1\n",
        ] {
            assert!(!of(keys), "{keys}");
        }
        for keys in ["rw=write\n", "rw=randrw\n", "rw=randrw\nbsrange=4k-16k\n", "rw=write\nbs=4k,16k\n"] {
            assert!(of(keys), "{keys}");
        }
        assert!(of("rw=rw\niodepth=1\n"), "one at a time");
    }

    #[test]
    fn another_checksum_is_told_to_be_ours() {
        let file = read("[j]\nfilename=f\nrw=write\nverify=md5\n");
        assert!(file.jobs[0].verify_crc32c);
        assert_eq!(
            file.warnings,
            ["jobs.fio:4: verify: blocks carry a CRC-32C in place of md5, and are verified by it"]
        );
        let same = read("[j]\nfilename=f\nrw=write\nverify=crc32c-intel\n");
        assert!(same.jobs[0].verify_crc32c && same.warnings.is_empty());
    }

    #[test]
    fn keys_without_effect_are_told_once_and_those_that_say_what_is_so_are_not() {
        let file = read(
            "[global]\nfilename=f\ngtod_reduce=1\niodepth_batch_complete_max=256\nkb_base=1024\noverwrite=0\n\
             do_verify=1\nverify_dump\nserialize_overlap=0\ndisable_lat=0\n[a]\n[b]\n",
        );
        let starts = [
            "jobs.fio:3: gtod_reduce: ",
            "jobs.fio:4: iodepth_batch_complete_max: ",
            "jobs.fio:8: verify_dump: ",
        ];
        assert_eq!(file.warnings.len(), 3, "{:?}", file.warnings);
        for (warning, start) in file.warnings.iter().zip(starts) {
            assert!(warning.starts_with(start) && warning.contains("without effect"), "{warning}");
        }
    }

    #[test]
    fn variables_have_their_values_outside_of_comments() {
        let value = |name: &str| (name == "SIZE").then(|| "64m".to_owned());
        let with = |text: &str| with_variables("jobs.fio", text, value);
        let text = "[a] # ${NONE}\nsize=${SIZE}\nname=x-${SIZE}-${SIZE};${\n$ncpus\n";
        let expected = "[a] # ${NONE}\nsize=64m\nname=x-64m-64m;${\n$ncpus\n";
        assert_eq!(with(text), Ok(expected.to_owned()));
        for (text, words) in [
            ("[a]\nsize=${NONE}\n", "jobs.fio:2: the variable NONE is not set"),
            ("size=${SIZE\n", "jobs.fio:1: \"SIZE\" has no end"),
        ] {
            let said = with(text).expect_err("it is refused").to_string();
            assert!(said.starts_with(words), "{said}");
        }
        let lines = with_variables("jobs.fio", "${X}\n", |_| Some("a\nb".to_owned()));
        assert!(lines.is_err(), "a value is no second line");
        let long = with_variables("jobs.fio", &"${X}".repeat(100), |_| Some("x".repeat(TEXT_BYTES_MAX / 50)));
        assert!(long.expect_err("it is too long").to_string().contains("too long"));
    }

    #[test]
    fn what_is_said_for_all_jobs_is_known_with_its_last_value() {
        let text = "[global]\nbs=4k\ntime_based\nlockmem=1g\n[a]\nfilename=f\nrw=read\n[global]\nbs=8k\n";
        let file = JobFile::parse("jobs.fio", text, true).expect("it is lenient");
        let said = [("bs", "8k"), ("time_based", "")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(file.global_options, said);
    }

    #[test]
    fn a_name_for_all_is_that_of_none() {
        let file = read("[global]\nname=suite\nfilename=f\n[a]\n[b]\nname=own\n");
        let names: Vec<&str> = file.jobs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names, ["a", "own"]);
    }

    #[test]
    fn engines_of_fio_have_ours_behind_them() {
        for (name, engine) in [
            ("psync", StorageEngine::Pread),
            ("pvsync", StorageEngine::Pwritev),
            ("pvsync2", StorageEngine::Pwritev),
            ("libaio", StorageEngine::Libaio),
            ("posixaio", StorageEngine::Posixaio),
            ("io_uring", StorageEngine::IoUring),
        ] {
            assert_eq!(read(&format!("[j]\nfilename=f\nioengine={name}\n")).jobs[0].engine, engine);
        }
        let polled = read("[j]\nfilename=f\nioengine=pvsync2\nhipri=1\n");
        assert!(polled.jobs[0].options.high_priority);
        let pool = read("[j]\nfilename=f\nweir_engine=threads\n");
        assert_eq!(pool.jobs[0].engine, StorageEngine::Threads);
    }

    #[test]
    fn threads_without_a_file_name_have_files_of_their_own() {
        let file = read(
            "[a b]\nsize=1m\ndirectory=d\nnumjobs=2\nstonewall\n[c]\nfilename=x\nnumjobs=3\n[d]\nfilename=y\n",
        );
        let files: Vec<&str> = file.jobs.iter().map(|job| job.file.as_str()).collect();
        assert_eq!(files, ["d/a b.0.0", "d/a b.1.0", "x", "y"]);
        let numbers: Vec<(u32, u32)> = file.jobs.iter().map(|job| (job.thread_first, job.threads)).collect();
        assert_eq!(numbers, [(1, 1), (2, 1), (3, 3), (6, 1)]);
        assert!(file.jobs[0].stonewall && !file.jobs[1].stonewall);
        let named = read("[j]\nsize=1m\nfilename_format=data.$jobnum\n");
        assert_eq!((named.jobs[0].file.as_str(), named.jobs[0].file_given), ("data.0", false));
    }

    #[test]
    fn a_mistake_is_told_with_its_line() {
        for (text, line, words) in [
            ("", 1, "no job"),
            ("bs=4k\n", 1, "no section"),
            ("[j]\nfilename=f\n\n# x\ncolour=red\n", 5, "no key \"colour\""),
            ("[j\nfilename=f\n", 1, "begins no section"),
            ("[j]\nfilename=f\nbs=4KiB\n", 3, "write 4k"),
            ("[j]\nfilename=f\nbs=4k,6k\nrw=rw\n", 3, "multiple"),
            ("[j]\nfilename=f\nbs=8k,\n", 3, "leaves out"),
            ("[j]\nfilename=f\nio_size=1m\n", 3, "give that too"),
            ("[j]\nfilename=f\nsize=1m\nio_size=2m\nrw=rw\n", 4, "use randrw"),
            ("[j]\nfilename=f\nsize=1m\nio_size=2m\nloops=2\n", 4, "leave one of both out"),
            ("[j]\nfilename=f\nfilesize=2m\nsize=1m\nbsrange=4k-8k\n", 3, "one length"),
            ("[j]\nfilename=f\noverwrite=1\n", 3, "only 0"),
            ("[j]\nfilename=f\nrw=randtrim\n", 3, "trims are not made"),
            ("[j]\nfilename=f\nrw=randread:0\n", 3, "none"),
            ("[j]\nfilename=f\nrw=read:1k\n", 3, "no multiple"),
            ("[j]\nfilename=f\nrw=write:-8k\noffset=8k\n", 3, "leave the offset out"),
            ("[j]\nfilename=f\nrw=randread:4\nsize=1m\nloops=2\n", 3, "goes on where it was"),
            ("[j]\nfilename=f\nrw_sequencer=identical\n", 3, "rw=randread:8"),
            ("[j]\nfilename=f\nbs=4k,6k\nrw=randrw\n", 3, "no multiple of 4096"),
            ("[a]\nfilename=f\n[b]\nfilename=f\nwait_for=c\n", 5, "no job c above"),
            ("[j]\nfilename=f\nbs=4k,16k\nrw=randrw\nrandom_distribution=zipf\n", 3, "one length"),
            ("[j]\nfilename=f\nbs=16k,4k\nrw=randread\nrandom_distribution=normal\n", 3, "one length"),
            ("[j]\nfilename=f\nzonemode=zbd\n", 3, "only none"),
            ("[j]\nfilename=f\nsync=1\n", 3, "fsync=1"),
            ("[j]\nfilename=f\nio_submit_mode=offload\n", 3, "only inline"),
            ("[j]\nfilename=f\nfallocate=much\n", 3, "use one of none"),
            (
                "[j]\nfilename=f\nioengine=libaio\niodepth=4\nrw=randread\nnorandommap\nserialize_overlap=1\n",
                7,
                "iodepth=1",
            ),
            ("[j]\nfilename=f\nrandom_generator=lfsr\n", 3, "tausworthe64"),
            ("[j]\nfilename=f\nrandom_generator=tausworthe64\nbsrange=4k-8k\n", 3, "leave it out"),
            ("[j]\nfilename=f\nkb_base=1000\n", 3, "only 1024"),
            ("[j]\nfilename=f\niodepth_batch_complete_min=0\n", 3, "only 1"),
            ("[j]\nfilename=f\nrw=randrw\nrate_iops=,200\n", 4, "leaves out"),
            ("[j]\nfilename=f\nrate=1m,1m,1m,1m\n", 3, "more values"),
            ("[j]\nfilename=f\nrw=randrw\nrate_iops=200,0\n", 4, "1 operation"),
            ("[j]\nfilename=f\nrw=sideways\n", 3, "randread"),
            ("[j]\nfilename=f\nioengine=mmap\n", 3, "io_uring"),
            ("[j]\nfilename=f:g\n", 2, "several files"),
            ("[j]\nfilename=${F}\n", 2, "variables"),
            ("[j]\nfilename=\n", 2, "no value"),
            ("[j]\nrw=read\n", 1, "no size"),
            ("[a]\nfilename=f\n[b]\nsize=1m\nnumjobs=0\n", 5, "1 to 1024"),
            ("[j]\nfilename=f\nrw=write\nverify=pattern\n", 4, "use crc32c"),
            ("[j]\nfilename=f\nrw=write\nverify=luck\n", 4, "use one of"),
            ("[j]\nfilename=f\nhipri\n", 3, "hipri"),
            ("[j]\nfilename=f\nwrite_lat_log=a\nwrite_bw_log=b\n", 3, "one prefix"),
            ("[j]\nfilename=f\niodepth=0x\n", 3, "whole number"),
            ("[j]\nfilename=f\nsize=0%\n", 3, "1% to 100%"),
            ("[j]\nfilename=f\nbsrange=16k-4k\n", 3, "4k-16k"),
            ("[j]\nfilename=f\nbssplit=4k/60:8k/60\n", 3, "together 100"),
            ("[j]\nfilename=f\nbssplit=4k/50:8k/50,8k/100\n", 3, "reads and writes"),
            ("[j]\nfilename=f\nrandom_distribution=zipf:1\n", 3, "neither 0 nor 1"),
            ("[j]\nfilename=f\nrandom_distribution=zoned:50/5\n", 3, "zipf:THETA"),
            ("[j]\nfilename=f\nloops=0\n", 3, "1 or more"),
            ("[j]\nrw=read\nsize=50%\n", 3, "which file"),
            // What only the whole job shows.
            ("[j]\nfilename=f\niodepth=8\n", 3, "one operation in flight"),
            ("[global]\ndirect=1\nbs=1000\n[j]\nfilename=f\n", 3, "multiple of 512"),
            ("[j]\nfilename=f\ntime_based\n", 3, "needs an end"),
            ("[j]\nfilename=f\nweir_completion=magic\n", 3, "weir_completion"),
        ] {
            let said = refused(text);
            assert!(said.starts_with(&format!("jobs.fio:{line}: ")) && said.contains(words), "{said}");
        }
    }

    #[test]
    fn what_is_unknown_can_be_left_out() {
        let text = "[global]\nunlink=1\n[a]\nfilename=f\n[b]\nfilename=f\nlockmem=1g\n";
        let file = JobFile::parse("jobs.fio", text, true).expect("it is lenient");
        assert_eq!(file.jobs.len(), 2);
        assert_eq!(file.warnings.len(), 2, "{:?}", file.warnings);
        assert!(file.warnings[0].starts_with("jobs.fio:2: ") && file.warnings[1].starts_with("jobs.fio:7: "));
        let wrong = JobFile::parse("jobs.fio", "[a]\nfilename=f\nbs=much\n", true);
        assert!(wrong.is_err(), "a wrong value is not an unknown key");
    }

    #[test]
    fn a_file_that_is_too_long_is_refused() {
        let text = "#".repeat(TEXT_BYTES_MAX + 1);
        assert!(refused(&text).contains("too long"));
        assert!(refused(&text[1..]).contains("no job"));
    }

    #[test]
    fn a_short_file_cannot_ask_for_millions_of_jobs() {
        let head = "[global]\nsize=1m\nnumjobs=1000\n";
        assert_eq!(read(&format!("{head}[a]\n")).jobs.len(), 1000);
        let many = format!("{head}{}", "[a]\n".repeat(100_000));
        assert_eq!(refused(&many), "jobs.fio:5: 2000 jobs in all are too many; at most 1024");
    }
}
