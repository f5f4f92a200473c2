//! `weir storage run`: from the command line, or a job file, to complete jobs.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Result;
use rustix::fs::OFlags;
use weir_record::storage::{CompletionMethod, StorageEngine, StorageEngineOptions, StorageJob};
use weir_storage::{
    job::{self, FioWords, JobError, JobFile, Lines, fio_file::TEXT_BYTES_MAX, units},
    layout,
};

use super::run_outputs;
use crate::{
    args::{OnOff, StorageRun, Workload},
    engine,
    exit::UsageError,
};

/// The program's own file, if the user names none.
const FILE_DEFAULT: &str = "./weir-storage.dat";
/// Default measured time.
const RUNTIME_DEFAULT_NS: u64 = 10_000_000_000;

/// Jobs that can run, and notes for the reader.
#[derive(Debug)]
pub(super) struct PreparedJobs {
    pub(super) jobs: Vec<StorageJob>,
    pub(super) notes: Vec<String>,
    /// The global section of a job file.
    pub(super) global_options: Vec<(String, String)>,
}

/// Reads, completes and checks the request.
pub(super) fn prepare(arguments: &StorageRun, words: &FioWords) -> Result<PreparedJobs> {
    let may_destroy = arguments.i_know_this_destroys_data;
    let job_files = arguments.job_file.iter().cloned().chain(words.files.iter().map(PathBuf::from));
    match job_files.collect::<Vec<_>>().as_slice() {
        [] if arguments.fio.is_empty() => {
            if arguments.fio_lenient {
                let text = "--fio-lenient is about keys of a job file or of fio's options; name one, or leave it out";
                return Err(UsageError(text.to_owned()).into());
            }
            from_flags(arguments, may_destroy)
        }
        [] => from_lines(words.lines.clone(), arguments, words, &[]),
        [path] => from_lines(lines_of(path)?, arguments, words, std::slice::from_ref(path)),
        [_, second, ..] => {
            let text = format!("{}: one job file at a time; another one needs its own run", second.display());
            Err(UsageError(text).into())
        }
    }
}

/// The lines of a job file and of those that it includes.
fn lines_of(path: &Path) -> Result<Lines> {
    let shown = path.display().to_string();
    // It may be a pipe of the shell.
    let text = File::open(path).and_then(|file| read_at_most(file, TEXT_BYTES_MAX)).map_err(|error| {
        UsageError(format!("{shown} cannot be read: {error}; name a job file, or use flags such as --file"))
    })?;
    Ok(Lines::expanded(&shown, &text, &|name| std::env::var(name).ok(), &read_included)?)
}

/// An included file is a regular one: a file must not make the program wait for a pipe or read a device.
fn read_included(name: &str, bytes_max: usize) -> Result<String, String> {
    let at_once = OFlags::NONBLOCK.bits() as i32;
    let read = || {
        let file = OpenOptions::new().read(true).custom_flags(at_once).open(name)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        read_at_most(file, bytes_max)
    };
    read().map_err(|error| format!("{name} cannot be read: {error}"))
}

fn read_at_most(file: File, bytes_max: usize) -> io::Result<String> {
    let mut text = String::new();
    file.take(bytes_max as u64 + 1).read_to_string(&mut text)?;
    if text.len() > bytes_max {
        return Err(io::Error::other(format!(
            "it is too long; a job file has at most {TEXT_BYTES_MAX} bytes, with what it includes"
        )));
    }
    Ok(text)
}

fn from_lines(
    lines: Lines,
    arguments: &StorageRun,
    words: &FioWords,
    job_files: &[PathBuf],
) -> Result<PreparedJobs> {
    let may_destroy = arguments.i_know_this_destroys_data;
    let job_files = [job_files, &lines.included().iter().map(PathBuf::from).collect::<Vec<_>>()].concat();
    let mut file = JobFile::of_lines(lines, arguments.fio_lenient)?;
    file.validate()?;
    if let Some(job) = file.jobs.iter().find(|job| words.readonly && job.pattern.writes()) {
        let text =
            format!("--readonly: job {} does {}, which writes; leave one of both out", job.name, job.pattern);
        return Err(UsageError(text).into());
    }
    // Before any file is made.
    run_outputs::check(arguments, words.output.as_deref(), &job_files, &file.jobs)?;
    let mut notes = words.notes.clone();
    notes.extend(file.warnings.iter().cloned());
    for index in 0..file.jobs.len() {
        engine::check_cpus(&file.jobs[index].cpus)
            .map_err(|reason| file.error_of_key(index, "cpus_allowed", reason))?;
        let end_bytes = job::written_until_bytes(&file.jobs, &file.jobs[index].file);
        let (before, rest) = file.jobs.split_at_mut(index);
        use_if_foreign(&mut rest[0], &mut notes);
        lay_out_if_missing(before, &mut rest[0], &mut notes);
        let found = find_target(&mut file.jobs[index], end_bytes, may_destroy, &mut notes);
        found.map_err(|error| file.locate(index, error))?;
    }
    Ok(PreparedJobs { jobs: file.jobs, notes, global_options: file.global_options })
}

fn from_flags(arguments: &StorageRun, may_destroy: bool) -> Result<PreparedJobs> {
    let workload = &arguments.workload;
    let mut job = job_of(workload)?;
    if workload.read_percent.is_some() && !(job.pattern.reads() && job.pattern.writes()) {
        let text = format!("--read-percent: {} is not mixed; use it with readwrite or randrw", job.pattern);
        return Err(UsageError(text).into());
    }
    check_ledger(workload)?;
    let mut notes = Vec::new();
    if !job.file_given && !job.verify_only {
        complete_own_file(&mut job, &mut notes)?;
    }
    job::validate_all(std::slice::from_ref(&job))?;
    engine::check_cpus(&job.cpus).map_err(|reason| UsageError(format!("--cpus: {reason}")))?;
    run_outputs::check(arguments, None, &[], std::slice::from_ref(&job))?;
    find_target(&mut job, 0, may_destroy, &mut notes)?;
    Ok(PreparedJobs { jobs: vec![job], notes, global_options: Vec::new() })
}

fn check_ledger(workload: &Workload) -> Result<()> {
    if workload.ledger.is_some() && !workload.verify && !workload.verify_only {
        let text =
            "--ledger is about blocks with checksums; say --verify too, or --verify-only to check them";
        return Err(UsageError(text.to_owned()).into());
    }
    Ok(())
}

fn job_of(workload: &Workload) -> Result<StorageJob> {
    let (runtime_ns, time_based) = end(workload)?;
    Ok(StorageJob {
        name: workload.rw.clone(),
        file: workload.file.clone().unwrap_or_else(|| FILE_DEFAULT.to_owned()),
        file_given: workload.file.is_some(),
        file_shared: workload.share,
        size_bytes: workload.size.as_deref().map(|text| size("--size", text)).transpose()?,
        offset_bytes: size("--offset", &workload.offset)?,
        block_bytes: u32::try_from(size("--bs", &workload.bs)?)
            .map_err(|_| UsageError(format!("--bs: {} is too large; use 64m or less", workload.bs)))?,
        pattern: known("--rw", &workload.rw)?,
        read_percent: workload.read_percent.unwrap_or(50),
        direct: workload.direct == OnOff::On,
        drops_cache: !workload.keep_cache,
        advises_order: true,
        engine: known::<StorageEngine>("--engine", &workload.engine)?,
        options: StorageEngineOptions {
            sqpoll: workload.sqpoll,
            iopoll: workload.iopoll,
            hybrid_iopoll: workload.hybrid_iopoll,
            fixed_buffers: workload.fixed_buffers,
            fixed_files: workload.fixed_files,
            ring_mode: of_flag("--ring-mode", job::ring_mode(&workload.ring_mode))?,
            high_priority: workload.high_priority,
        },
        completion: CompletionMethod {
            predictor: workload.completion.clone(),
            armed: workload.armed,
            sleep: of_flag("--sleep", job::sleep_primitive(&workload.sleep))?,
            ..CompletionMethod::default()
        },
        depth: workload.depth,
        batch_max: workload.batch,
        threads: workload.jobs,
        runtime_ns,
        time_based,
        operations_max: workload.operations,
        ramp_ns: time_ns("--ramp", &workload.ramp)?,
        rate_iops: workload.rate,
        think_time_ns: time_ns("--think-time", &workload.think_time)?,
        cpus: match &workload.cpus {
            Some(text) => of_flag("--cpus", units::cpus(text))?,
            None => Vec::new(),
        },
        seed: workload.seed,
        no_random_map: workload.no_random_map,
        fsync_every: workload.fsync,
        verify_crc32c: workload.verify || workload.verify_only,
        verify_only: workload.verify_only,
        ledger: workload.ledger.clone(),
        log_prefix: workload.log_prefix.clone(),
        log_average_ms: log_average_ms(workload)?,
        percentiles: percentiles(workload)?,
        interval_ns: time_ns("--interval", &workload.interval)?,
        device_clock: of_flag("--device-clock", job::device_clock(&workload.device_clock))?,
        ..StorageJob::default()
    })
}

/// Run time, and whether the job starts over until it has passed.
fn end(workload: &Workload) -> Result<(Option<u64>, bool)> {
    let runtime_ns = workload.runtime.as_deref().map(|text| time_ns("--runtime", text)).transpose()?;
    Ok(match (runtime_ns, workload.once, workload.operations) {
        (given, true, _) => (given, false),
        (given, false, Some(_)) => (given, true),
        (given, false, None) => (Some(given.unwrap_or(RUNTIME_DEFAULT_NS)), true),
    })
}

/// Chooses how much of the program's own file is used, and reports the files that stay.
fn complete_own_file(job: &mut StorageJob, notes: &mut Vec<String>) -> Result<()> {
    if job.size_bytes.is_none() {
        let size_bytes = layout::default_size_bytes(Path::new(&job.file)).map_err(|error| {
            UsageError(format!("--size: how much is free here is not known: {error}; say how much to use"))
        })?;
        // The used part ends with the file.
        job.size_bytes = Some(size_bytes.saturating_sub(job.offset_bytes));
    }
    let needed = job.size_bytes.unwrap_or_default().saturating_add(job.offset_bytes);
    if layout::data_bytes(Path::new(&job.file)).is_none_or(|has| has < needed) {
        notes.push(format!(
            "{} is laid out with {} of data and kept for later runs; --size asks for another size, --file for another \
             place",
            job.file,
            units::shown_bytes(needed)
        ));
    }
    Ok(())
}

/// A file that fio laid out under the default name of a job is used as it is, like one that the job names.
fn use_if_foreign(job: &mut StorageJob, notes: &mut Vec<String>) {
    let path = Path::new(&job.file);
    if job.file_given || !path.is_file() || layout::data_bytes(path).is_some() {
        return;
    }
    job.file_given = true;
    notes.push(format!("{} is there and was not laid out by weir: it is used as it is", job.file));
}

/// fio lays out a missing file that a job reads. A job file does the same here, with the program's own file; not below
/// `/dev`, where a wrong name would make a file in memory instead of a device.
fn lay_out_if_missing(before: &[StorageJob], job: &mut StorageJob, notes: &mut Vec<String>) {
    if before.iter().any(|other| !other.file_given && other.file == job.file) {
        job.file_given = false;
        return;
    }
    let path = Path::new(&job.file);
    let missing = matches!(path.try_exists(), Ok(false)) && path.symlink_metadata().is_err();
    if !job.file_given || !missing || path.starts_with("/dev") || !job.pattern.reads() {
        return;
    }
    let Some(size_bytes) = job.size_bytes else { return };
    job.file_given = false;
    notes.push(format!("{} is not there: it is laid out with {}", job.file, units::shown_bytes(size_bytes)));
}

/// Checks a file that the user named, and records how much of it is used. A new one reaches to `end_bytes`.
fn find_target(
    job: &mut StorageJob,
    end_bytes: u64,
    may_destroy: bool,
    notes: &mut Vec<String>,
) -> Result<(), JobError> {
    // A file that is only checked is neither made nor laid out, and may be truncated.
    if !job.file_given || job.verify_only {
        return Ok(());
    }
    let target = job::check_target(job, end_bytes, may_destroy)?;
    job.size_bytes = Some(target.used_bytes);
    // Beyond the used part a stride goes on to the end of the file.
    job.file_bytes = (job.stride_bytes != 0).then_some(target.size_bytes);
    if target.is_new {
        notes.push(format!(
            "{} was made for this run: the first write to each of its blocks costs the file system more than a later one",
            job.file
        ));
    }
    Ok(())
}

fn size(flag: &str, text: &str) -> Result<u64> {
    of_flag(flag, units::bytes(text))
}

fn time_ns(flag: &str, text: &str) -> Result<u64> {
    let time: Duration = engine::time(flag, text)?;
    u64::try_from(time.as_nanos()).map_err(|_| UsageError(format!("{flag} {text} is too long")).into())
}

fn known<T: std::str::FromStr<Err = String>>(flag: &str, text: &str) -> Result<T> {
    of_flag(flag, text.parse())
}

fn of_flag<T>(flag: &str, result: Result<T, String>) -> Result<T> {
    result.map_err(|reason| UsageError(format!("{flag}: {reason}")).into())
}

fn log_average_ms(workload: &Workload) -> Result<u32> {
    let Some(text) = &workload.log_average else { return Ok(0) };
    let milliseconds = engine::time("--log-average", text)?.as_millis();
    match u32::try_from(milliseconds) {
        Ok(milliseconds @ 1..) => Ok(milliseconds),
        _ => Err(UsageError(format!("--log-average {text}: use 1ms or more, and less than weeks")).into()),
    }
}

fn percentiles(workload: &Workload) -> Result<Vec<f64>> {
    let Some(text) = &workload.percentiles else { return Ok(Vec::new()) };
    let list: Result<Vec<f64>, _> = text.split(':').map(str::parse).collect();
    list.map_err(|_| UsageError(format!("--percentiles {text:?} is no list; write 50:99:99.9")).into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_included_is_a_regular_file_of_bounded_length() {
        let folder = std::env::temp_dir().join(format!("weir-include-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder can be made");
        let named = |name: &str| folder.join(name).display().to_string();
        let (pipe, file) = (named("pipe"), named("file"));
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .expect("a pipe can be made");
        fs::write(&file, "bs=4k\n").expect("a file can be written");
        for name in [pipe.as_str(), "/dev/zero", folder.to_str().expect("a plain path")] {
            let refused = read_included(name, TEXT_BYTES_MAX).expect_err("it is no file");
            assert!(refused.contains("no regular file"), "{name}: {refused}");
        }
        assert_eq!(read_included(&file, 6), Ok("bs=4k\n".to_owned()));
        assert!(read_included(&file, 5).expect_err("it is longer").contains("too long"));
        let zeros = File::open("/dev/zero").and_then(|file| read_at_most(file, TEXT_BYTES_MAX));
        assert!(zeros.expect_err("it has no end").to_string().contains("too long"));
        fs::remove_dir_all(&folder).expect("it can be removed");
    }
}
