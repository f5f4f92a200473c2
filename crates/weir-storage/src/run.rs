//! Runs jobs: from their specifications to their reports.
//!
//! Jobs run at the same time until one waits for earlier ones (`stonewall`). Every thread of a job has its own
//! engine, waiter and notes (the loop is in `job_thread`); the calling thread supervises, and adds up at the end.
//! Latency counts from the issue, or from the intended start if there is a rate: a device that stalls cannot hide its
//! queue, which avoids coordinated omission. Failed operations are counted and make the run a failed one; its
//! measurements are kept.
//!
//! A file belongs to one run at a time. The contents written by an earlier run can be checked without a run
//! (`verify_only`), with the ledger that it kept.
//!
//! An interrupt ends all jobs after their operations in flight, and their figures are kept. Nothing is left behind.

mod claim;
mod contents;
mod cpu;
mod gather;
mod group;
mod job_thread;
mod ledger;
mod pace;
mod payload;
mod recorder;
mod rows;
mod tracing;
mod truth;
mod verify_only;
mod worker;

use std::{
    collections::HashMap,
    fs::File,
    io,
    ops::Range,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

pub use ledger::LedgerError;
use weir_record::storage::{DeviceClock, StorageJob, StorageJobReport, StorageReport, StorageRow};

use self::claim::{Claim, Claiming, claim};
use crate::{
    capture::CaptureError,
    engine::{EngineError, probe, target::length_bytes},
    job::{offsets, requested_bytes},
    layout::{self, LayoutError},
    predict::PredictorSpec,
};

/// Most memory of all threads for the used blocks and the written contents.
const REMEMBERED_BYTES_MAX: u64 = 4 << 30;

/// Seed of the data in our own files, combined with each file's path. It is not the job's seed, so that jobs with
/// different seeds share the file.
pub const LAYOUT_SEED: u64 = 1;

/// Progress of a run.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A file is laid out.
    Preparing {
        /// The file.
        path: &'a str,
        /// Bytes written.
        done_bytes: u64,
        /// Bytes in all.
        total_bytes: u64,
    },
    /// The costs of waiting are being measured.
    Calibrating {
        /// For this job.
        job: &'a str,
    },
    /// Jobs are running. Reported about twice a second, and at their end.
    Running {
        /// Since they started.
        elapsed_ns: u64,
        /// Jobs that run at the same time.
        jobs: &'a [JobProgress<'a>],
    },
    /// Written data is read back.
    Verifying {
        /// By this job.
        job: &'a str,
        /// Blocks compared.
        done_blocks: u64,
    },
}

/// One running job.
#[derive(Clone, Copy, Debug)]
pub struct JobProgress<'a> {
    /// Its name.
    pub job: &'a str,
    /// Operations since its start, the ramp included.
    pub operations: u64,
    /// Rate since the last progress report.
    pub operations_per_second: f64,
    /// Elapsed share of its time, 0 to 1, if time is its limit.
    pub share: Option<f64>,
    /// Id of its first thread, as used by tracepoints.
    pub thread: Option<u32>,
}

/// Why a run could not be made. A run that was made and failed is a report, not an error.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Our own file has an error.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The user's file has an error.
    #[error("cannot open {path}: {source}")]
    File {
        /// The file.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// Another run uses the file.
    #[error(
        "{path} is in use by another run: {holder}; wait until it ends, name another file, or say --share to both"
    )]
    InUse {
        /// The file.
        path: String,
        /// The process that uses it.
        holder: String,
    },
    /// The ledger has an error.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The job is impossible.
    #[error("{job}: {reason}")]
    Impossible {
        /// Its name.
        job: String,
        /// Why, and what would work.
        reason: String,
    },
    /// The engine cannot be opened.
    #[error("{job}: {source}")]
    Engine {
        /// Name of the job.
        job: String,
        /// Why.
        source: EngineError,
    },
    /// The thread cannot be pinned to its CPU.
    #[error("{job}: cannot run on CPU {cpu} ({source}); choose one that this process may use")]
    Pin {
        /// Name of the job.
        job: String,
        /// The CPU.
        cpu: usize,
        /// The system's error.
        source: io::Error,
    },
    /// The calibration failed.
    #[error("{job}: cannot measure what waiting costs here: {source}")]
    Calibrate {
        /// Name of the job.
        job: String,
        /// The system's error.
        source: io::Error,
    },
    /// The log cannot be written.
    #[error("{job}: cannot write its log: {source}")]
    Log {
        /// Name of the job.
        job: String,
        /// The system's error.
        source: io::Error,
    },
    /// The tracepoints cannot be used.
    #[error(transparent)]
    Capture(CaptureError),
    /// A thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl RunError {
    /// Whether the command was wrong, rather than the machine.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Impossible { .. } | Self::Pin { .. } | Self::InUse { .. } => true,
            Self::Ledger(error) => error.is_usage(),
            Self::Engine { source, .. } => {
                matches!(
                    source,
                    EngineError::Unsupported(_)
                        | EngineError::Misaligned { .. }
                        | EngineError::TooSmall { .. }
                )
            }
            _ => false,
        }
    }

    /// Whether this machine lacks support.
    pub fn is_environment(&self) -> bool {
        match self {
            Self::Capture(error) => !matches!(error, CaptureError::System { .. }),
            Self::Engine { source, .. } => {
                matches!(source, EngineError::Refused { .. } | EngineError::NoDirect { .. })
            }
            Self::Layout(error) => matches!(error, LayoutError::NoSpace { .. }),
            _ => false,
        }
    }

    /// Whether the user interrupted it before anything was measured.
    pub fn is_interrupted(&self) -> bool {
        matches!(self, Self::Layout(LayoutError::Interrupted))
    }
}

/// Runs jobs. `interrupt` ends them early; `progress` is called in this thread.
///
/// When a later group of jobs cannot start, the reports of earlier ones are kept: its jobs count as failed, and a
/// note says why.
pub fn run(
    jobs: &[StorageJob],
    interrupt: &AtomicBool,
    progress: &dyn Fn(&Progress<'_>),
) -> Result<StorageReport, RunError> {
    jobs.iter().try_for_each(check)?;
    let mut claims = Claims::default();
    claims.take(jobs)?;
    if let Some(job) = jobs.iter().find(|job| job.verify_only) {
        return verify_only(jobs, job, interrupt, progress);
    }
    let mut report =
        StorageReport { schema_version: weir_record::SCHEMA_VERSION, ..StorageReport::default() };
    let used_bytes = prepare(jobs, interrupt, progress, &mut report.notes)?;
    // Files that were laid out now have other identities.
    claims.take(jobs)?;
    check_memory(jobs, &used_bytes)?;
    for group in groups(jobs) {
        if interrupt.load(Ordering::Relaxed) {
            break;
        }
        match group::run(&jobs[group.clone()], &used_bytes[group.clone()], interrupt, progress) {
            Ok(gathered) => {
                let place = report.jobs.len();
                let placed = |row: StorageRow| StorageRow { first: place + row.first, ..row };
                report.rows.extend(gathered.rows.into_iter().map(placed));
                report.jobs.extend(gathered.reports);
                report.notes.extend(gathered.notes);
            }
            Err(error) if report.jobs.is_empty() => return Err(error),
            Err(error) => {
                report.notes.push(format!("not all jobs were run: {error}"));
                report.jobs.extend(jobs[group].iter().map(|job| StorageJobReport {
                    job: Some(job.clone()),
                    failed: true,
                    ..StorageJobReport::default()
                }));
                break;
            }
        }
    }
    if interrupt.load(Ordering::Relaxed) {
        report.notes.push("interrupted: figures are those of the time until then".to_owned());
    }
    Ok(report)
}

/// Checks what one job wrote earlier.
fn verify_only(
    jobs: &[StorageJob],
    job: &StorageJob,
    interrupt: &AtomicBool,
    progress: &dyn Fn(&Progress<'_>),
) -> Result<StorageReport, RunError> {
    if jobs.len() > 1 {
        let reason =
            "only what a single job wrote is checked without a run; ask for each by itself".to_owned();
        return Err(RunError::Impossible { job: job.name.clone(), reason });
    }
    let mut report = verify_only::run(job, interrupt, progress)?;
    if interrupt.load(Ordering::Relaxed) {
        report.notes.push("interrupted: what was found is that of the blocks until then".to_owned());
    }
    Ok(report)
}

/// The claimed files of a run, which no other run may use.
#[derive(Default)]
struct Claims(HashMap<(u64, u64), Claim>);

impl Claims {
    /// Claims the existing files that are not claimed yet.
    fn take(&mut self, jobs: &[StorageJob]) -> Result<(), RunError> {
        for job in jobs {
            let Ok(metadata) = std::fs::metadata(&job.file) else { continue };
            let kind = metadata.file_type();
            // A pipe would be waited for. What is no file is refused later.
            if !kind.is_file() && !kind.is_block_device() {
                continue;
            }
            let file = (metadata.dev(), metadata.ino());
            if self.0.contains_key(&file) {
                continue;
            }
            match claim(Path::new(&job.file), job.file_shared) {
                Claiming::Held(held) => drop(self.0.insert(file, held)),
                Claiming::Taken(holder) => return Err(RunError::InUse { path: job.file.clone(), holder }),
                Claiming::Impossible => {}
            }
        }
        Ok(())
    }
}

/// Errors that are only known at the run.
fn check(job: &StorageJob) -> Result<(), RunError> {
    let refuse = |reason: String| Err(RunError::Impossible { job: job.name.clone(), reason });
    let predictor = job.completion.predictor.as_str();
    if let Err(error) = predictor.parse::<PredictorSpec>() {
        return refuse(error.to_string());
    }
    if !job.engine.is_asynchronous() && predictor != "interrupt" {
        return refuse(format!(
            "{} is complete when its system call returns, so there is no wait for {predictor} to choose; use libaio or \
             io_uring",
            job.engine
        ));
    }
    if job.ledger.is_some() && !job.verify_crc32c && !job.verify_only {
        return refuse(
            "a ledger (--ledger) is about blocks with checksums; write them with --verify".to_owned(),
        );
    }
    if job.device_clock == DeviceClock::Tracepoint && (job.depth > 1 || !job.engine.is_asynchronous()) {
        return refuse(
            "device times from tracepoints are matched to operations one at a time: they need a depth of 1, and \
             libaio or io_uring"
                .to_owned(),
        );
    }
    Ok(())
}

/// A file may have more blocks than the memory can track.
fn check_memory(jobs: &[StorageJob], used_bytes: &[u64]) -> Result<(), RunError> {
    let mut bytes = 0_u64;
    for (job, used_bytes) in jobs.iter().zip(used_bytes) {
        bytes = bytes.saturating_add(remembered_bytes(job, *used_bytes));
        if bytes > REMEMBERED_BYTES_MAX {
            let reason = format!(
                "to remember its blocks takes {} MiB, and all jobs may take {}; use a smaller size, larger blocks or \
                 fewer threads, or leave out the verification, or the map of random blocks",
                bytes >> 20,
                REMEMBERED_BYTES_MAX >> 20
            );
            return Err(RunError::Impossible { job: job.name.clone(), reason });
        }
    }
    Ok(())
}

/// A bit for each block that is accessed at random once, and a count for each that is verified; in every thread.
fn remembered_bytes(job: &StorageJob, used_bytes: u64) -> u64 {
    let blocks = offsets::blocks(used_bytes, offsets::unit_bytes(job));
    let map = if job.pattern.is_random() && !job.no_random_map { blocks / 8 } else { 0 };
    let counts = if job.verify_crc32c { blocks.saturating_mul(4) } else { 0 };
    map.saturating_add(counts).saturating_mul(u64::from(job.threads.max(1)))
}

/// Creates our own files, and determines how much of each file a job uses.
fn prepare(
    jobs: &[StorageJob],
    interrupt: &AtomicBool,
    progress: &dyn Fn(&Progress<'_>),
    notes: &mut Vec<String>,
) -> Result<Vec<u64>, RunError> {
    // A file is laid out once, with the largest size that a job needs.
    let mut asked: HashMap<&str, Option<u64>> = HashMap::new();
    for job in jobs.iter().filter(|job| !job.file_given) {
        let end = job.size_bytes.map(|size_bytes| job.offset_bytes.saturating_add(size_bytes));
        let most = asked.entry(&job.file).or_insert(end);
        *most = most.zip(end).map(|(most, end)| most.max(end));
    }
    let mut usable: HashMap<&str, u64> = HashMap::new();
    for job in jobs {
        let path = job.file.as_str();
        if usable.contains_key(path) {
            continue;
        }
        let failed = |source| RunError::File { path: path.to_owned(), source };
        let bytes = match asked.get(path) {
            Some(end) => {
                let size =
                    end.map_or_else(|| layout::default_size_bytes(Path::new(path)), Ok).map_err(failed)?;
                let tell = |done_bytes, total_bytes| {
                    progress(&Progress::Preparing { path, done_bytes, total_bytes })
                };
                let seed = layout::data_seed(Path::new(path), LAYOUT_SEED);
                layout::prepare(Path::new(path), size, seed, &tell, interrupt)?.data_bytes
            }
            // If the user names one of our own files, the seal after its data must stay intact.
            None => match layout::data_bytes(Path::new(path)) {
                Some(data_bytes) => data_bytes,
                None => File::open(path).and_then(|file| length_bytes(&file)).map_err(failed)?,
            },
        };
        usable.insert(path, bytes);
        let standing = layout::examine(Path::new(path)).map_err(failed)?;
        notes.extend(
            standing
                .refusals
                .into_iter()
                .map(|reason| format!("{path}: {reason}; what is measured here says nothing about a device")),
        );
    }
    for job in jobs {
        notes.extend(probe::notes(job).into_iter().map(|note| format!("{}: {note}", job.name)));
    }
    let used = |job: &StorageJob| {
        let behind = usable.get(job.file.as_str()).copied().unwrap_or(0).saturating_sub(job.offset_bytes);
        requested_bytes(job, behind.saturating_add(job.offset_bytes)).unwrap_or(behind).min(behind)
    };
    Ok(jobs.iter().map(used).collect())
}

/// Jobs that run at the same time: each job that waits for earlier ones starts a new group.
fn groups(jobs: &[StorageJob]) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        match groups.last_mut() {
            Some(group) if !job.stonewall => group.end = index + 1,
            _ => groups.push(index..index + 1),
        }
    }
    groups
}

#[cfg(test)]
mod tests;
