//! Job files: the supported part of fio's format (`docs/formats/storage-job.md`). Pure: takes text, returns jobs.
//!
//! A section is a job; keys in `[global]` apply to the jobs after it. `;` or `#` starts a comment. An unknown key is
//! an error with its line, because a job other than the intended one would be measured.

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

/// An error in a job file, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFileError {
    /// Name of the file, or the argument of a command line.
    pub file: String,
    /// Line, from 1; 0 for an argument of a command line.
    pub line: usize,
    /// What is wrong and what would be valid.
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

/// The parsed jobs, with the positions of their sections and keys.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFile {
    /// In the order of the file.
    pub jobs: Vec<StorageJob>,
    /// Omitted keys, where that was allowed, and keys without effect.
    pub warnings: Vec<String>,
    /// Keys that apply to all jobs, each with its last value.
    pub global_options: Vec<(String, String)>,
    lines: Lines,
    places: Vec<Places>,
}

/// Positions of a job's section and keys.
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
    /// Number of global entries above it.
    globals: usize,
    entries: Vec<Entry<'a>>,
}

impl JobFile {
    /// Parses a job file. With `lenient` an unknown key is a warning.
    pub fn parse(file: &str, text: &str, lenient: bool) -> Result<Self, JobFileError> {
        Self::of_lines(Lines::of_text(file, text), lenient)
    }

    /// Parses the lines of job files, or of a command line.
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
            // As in fio, a name belongs to one job: a common one would name all of them.
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
            // Checked before they are stored: a short file can request millions.
            let all = read.jobs.len() + jobs.len();
            if all > THREADS_MAX as usize {
                let reason = format!("{all} jobs in all are too many; at most {THREADS_MAX}");
                return Err(error(section.line, reason));
            }
            read.places.extend(std::iter::repeat_n(places, jobs.len()));
            waits.extend(std::iter::repeat_n(wait_for, jobs.len()));
            read.jobs.extend(jobs);
        }
        // As in fio 3.33: if one job sets it, it applies to all.
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

    /// Adds a warning once, however many jobs it applies to.
    fn warn(&mut self, line: usize, text: &str) {
        let warning = self.lines.error(line, text.to_owned()).to_string();
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Checks whether the jobs can run.
    pub fn validate(&self) -> Result<(), JobFileError> {
        for (index, job) in self.jobs.iter().enumerate() {
            validate(job).map_err(|error| self.locate(index, error))?;
        }
        validate_all(&self.jobs).map_err(|error| self.locate(0, error))
    }

    /// An error about a key of a job.
    pub fn error_of_key(&self, job: usize, key: &'static str, reason: String) -> JobFileError {
        self.locate(job, JobError::new(Field { flag: key, key }, reason))
    }

    /// A job's error with the line of the key instead of the flag.
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

/// The text with `${NAME}` replaced by the variables' values from `value`; comments stay unchanged.
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

/// Numbers the threads of all jobs.
pub fn number_threads(jobs: &mut [StorageJob]) {
    let mut next = 1_u32;
    for job in jobs {
        job.thread_first = next;
        next = next.saturating_add(job.threads);
    }
}

/// Splits lines into sections: global entries and jobs.
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

/// Each known key, with its last value.
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

/// Applies one entry; returns the key's primary name.
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

/// Makes jobs of a draft and the name of its section: one, or one per thread if each has its own file.
fn finish(draft: Draft, section: &str) -> Result<Vec<StorageJob>, (&'static str, String)> {
    let Draft { mut job, filename, directory, filename_format, .. } = draft;
    let Draft { polled, log_prefixes, rates_iops, rates_bytes, io_bytes, file_bytes, .. } = draft;
    let increment = draft.offset_increment_bytes;
    job.end_fsync = draft.syncs_at_end.contains(&true);
    (job.rate_iops, job.rate_writes_iops) = rates(&job, rates_iops);
    (job.rate_bytes, job.rate_writes_bytes) = rates(&job, rates_bytes);
    amount(&mut job, io_bytes, file_bytes)?;
    if !job.pattern.writes() {
        // As in fio: settings for all jobs of a file do not apply to those that only read.
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
        // Threads with their own offsets are separate jobs.
        let count = if increment > 0 { job.threads } else { 1 };
        return each_thread(&job, count, increment, |job, _| {
            if count > 1 {
                job.threads = 1
            }
        });
    }
    if job.size_bytes.is_none() && job.size_percent.is_none() {
        let text =
            format!("job {} names no file and no size; give filename, or size for its own file", job.name);
        return Err(("size", text));
    }
    // As in fio, every thread of a job without a file name has its own file.
    let format = filename_format.as_deref().unwrap_or("$jobname.$jobnum.$filenum");
    each_thread(&job, job.threads, increment, |job, number| {
        (job.file, job.threads) = (below(&file_name(format, section, number)), 1);
    })
}

/// Makes one job per thread, each starting `increment` bytes after the previous one.
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

/// Refuses `serialize_overlap` where two operations in flight may touch one block: because blocks repeat, or because
/// two independent sequences reach it.
fn overlap(job: &StorageJob, must_not: bool) -> Result<(), (&'static str, String)> {
    let is_random = job.pattern.is_random();
    let repeats = is_random && (job.no_random_map || job.skew != Skew::None || job.random_every > 1);
    let again = job.time_based || job.loops > 1 || job.done_bytes.is_some() || job.stride_bytes != 0;
    let is_mixed = job.pattern.reads() && job.pattern.writes();
    // Sequential directions have separate positions; random ones with their own lengths have separate maps.
    let apart = is_mixed && (!is_random || matches!(job.block_sizes, BlockSizes::ByDirection { .. }));
    if must_not && job.depth > 1 && (repeats || again || apart) {
        let text = "serialize_overlap: operations in flight that touch one block are not held back, and here they can be; \
                    use iodepth=1, or each block once";
        return Err(("serialize_overlap", text.to_owned()));
    }
    Ok(())
}

/// `io_size` is the part of `size` that is transferred; `size` is the part of `filesize`.
fn amount(
    job: &mut StorageJob,
    io_bytes: Option<u64>,
    file_bytes: Option<u64>,
) -> Result<(), (&'static str, String)> {
    let done = io_bytes.or(file_bytes.and(job.size_bytes));
    job.size_bytes = file_bytes.or(job.size_bytes);
    // As in fio, if the time is the limit, it is the only one.
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

/// As in fio, each direction of a mixed job has its rate; a direction that the job does not use has none.
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
mod tests;
