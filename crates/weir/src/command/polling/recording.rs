//! Traces of this machine's disk for the study `polling`: how long each read of one thread took while another kept so
//! many more in flight. They come from the kernel's block tracepoints; where those may not be read, the study has none
//! and says why.
//!
//! The other thread's reads are left out. Replayed they would be waited for one at a time, and beside a deep background
//! they are nearly all there is: the replay would be of a thread that nobody asked about.

use std::{
    fs::{self, File},
    io::{BufReader, BufWriter},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    thread,
    time::Duration,
};

use weir_evidence::placement::{self, Topology};
use weir_record::storage::{StorageEngine, StorageJob};
use weir_storage::{
    capture::{self, Capture, CapturedOperation, DeviceNumber, Limits},
    job::number_threads,
    predict::Direction,
    run,
    sweep::{plans, world::RecordedTrace},
    trace::{self, Trace},
};

use crate::output;

/// Reads of one piece: it must outlast what the kernel's mean takes to know anything, 100 ms.
const PIECE_MIN: usize = 2_500;
/// How long the disk is loaded for one trace, at most: until there are reads enough for its pieces. A thread that reads
/// beside 128 others has its turn some 700 times a second where the disk answers 95,000.
const LENGTH_MAX: Duration = Duration::from_secs(240);
/// How much longer than that nobody records, whatever becomes of the load.
const PATIENCE: Duration = Duration::from_secs(60);
/// The job whose reads are recorded.
const FOREGROUND: &str = "foreground";
/// No thread has this number.
const NOBODY: u32 = 0;

/// What is recorded.
pub(super) struct Asked<'a> {
    /// Where the traces are kept.
    pub(super) folder: &'a Path,
    /// The file that is read.
    pub(super) file: &'a Path,
    /// Reads that another thread keeps in flight, a trace each.
    pub(super) depths: &'a [u32],
    /// Into how many pieces each trace must be cut.
    pub(super) pieces: usize,
    pub(super) seed: u64,
    pub(super) quiet: bool,
}

/// What came of it.
pub(super) enum Recording {
    /// The traces in the order of the depths, and what they are called together.
    Traces {
        source: String,
        traces: Vec<RecordedTrace>,
    },
    /// Why there are none.
    Unavailable(String),
    Interrupted,
}

/// Reads the traces in the folder, and records those that are missing.
pub(super) fn traces(asked: &Asked<'_>, interrupt: &AtomicBool) -> Recording {
    let (mut traces, mut fingerprint) = (Vec::new(), 0_u64);
    for depth in asked.depths {
        let path = path(asked.folder, *depth);
        if !path.exists() {
            if !asked.quiet {
                let seconds = LENGTH_MAX.as_secs();
                output::tell(&format!(
                    "recording the disk beside a background of {depth}, for {seconds} s at most"
                ));
            }
            let recorded = record(asked, *depth, &path, interrupt);
            if interrupt.load(Ordering::Relaxed) {
                return Recording::Interrupted;
            }
            if let Err(reason) = recorded {
                return Recording::Unavailable(reason);
            }
        }
        let trace = match read(&path, asked.pieces) {
            Ok(trace) => trace,
            Err(reason) => return Recording::Unavailable(reason),
        };
        fingerprint = fingerprint.rotate_left(1) ^ trace.fingerprint();
        traces.push(RecordedTrace { name: plans::phase_name(*depth), operations: trace.operations });
    }
    let count: usize = traces.iter().map(|trace| trace.operations.len()).sum();
    // Other traces are another sweep: none goes on with the results of the other.
    let source =
        format!("{} ({count} reads of one thread, fingerprint {fingerprint:016x})", asked.file.display());
    Recording::Traces { source, traces }
}

fn path(folder: &Path, depth: u32) -> PathBuf {
    folder.join(format!("recorded-reads-{depth}.csv"))
}

fn read(path: &Path, pieces: usize) -> Result<Trace, String> {
    let file = File::open(path).map_err(|error| format!("cannot open {}: {error}", path.display()))?;
    let trace = trace::read(BufReader::new(file), &path.display().to_string()).map_err(told)?;
    let least = least(pieces);
    if trace.operations.len() < least {
        return Err(format!(
            "{} has {} reads, and fewer than {least} are too few for {pieces} pieces",
            path.display(),
            trace.operations.len()
        ));
    }
    Ok(trace)
}

/// Reads that so many pieces need.
fn least(pieces: usize) -> usize {
    PIECE_MIN * pieces
}

/// Loads the disk and records it, and gives the trace its name when it is whole.
fn record(asked: &Asked<'_>, depth: u32, path: &Path, interrupt: &AtomicBool) -> Result<(), String> {
    let device = capture::device_of(asked.file).map_err(told)?;
    // Whether it may be traced is known before it is loaded.
    drop(Capture::start(Some(device)).map_err(told)?);
    let partial = path.with_extension("partial");
    let written = || -> Result<(), String> {
        let mut out = BufWriter::new(File::create(&partial).map_err(told)?);
        load_and_capture(&jobs(asked, depth), device, least(asked.pieces), &mut out, interrupt)?;
        let file = out.into_inner().map_err(|error| told(error.into_error()))?;
        file.sync_all().map_err(told)?;
        if interrupt.load(Ordering::Relaxed) { Err("interrupted".to_owned()) } else { Ok(()) }
    };
    written().and_then(|()| fs::rename(&partial, path).map_err(told)).inspect_err(|_| {
        // What was never made cannot be removed.
        let _ = fs::remove_file(&partial);
    })
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Whether a request is a read of the thread with this number. Until that is known none is.
///
/// What the kernel issued later in another thread's name, because the queue was full, cannot be told from the others'
/// and is left out with them; whoever shows the trace says so.
fn is_foregrounds(operation: &CapturedOperation, number: u32) -> bool {
    number != NOBODY && operation.thread == number && operation.direction == Direction::Read
}

/// Number of the thread that reads, once it is at work.
fn foreground(progress: &run::Progress<'_>) -> Option<u32> {
    let run::Progress::Running { jobs, .. } = progress else { return None };
    jobs.iter().find(|job| job.job == FOREGROUND).and_then(|job| job.thread)
}

/// Ends when the trace has reads enough, when the load ends, or when the user says so.
fn load_and_capture(
    jobs: &[StorageJob],
    device: DeviceNumber,
    reads: usize,
    out: &mut BufWriter<File>,
    interrupt: &AtomicBool,
) -> Result<(), String> {
    let (is_loaded, end_load) = (AtomicBool::new(false), AtomicBool::new(false));
    let number = AtomicU32::new(NOBODY);
    let limits = Limits { length: LENGTH_MAX + PATIENCE, operations_max: reads as u64 };
    let (recorded, loaded) = thread::scope(|scope| {
        let capture = scope.spawn(|| {
            let wanted =
                |operation: &CapturedOperation| is_foregrounds(operation, number.load(Ordering::Relaxed));
            let recorded = capture::record_only(Some(device), limits, &wanted, out, &is_loaded, &|_| {});
            end_load.store(true, Ordering::Relaxed);
            recorded
        });
        let look = |progress: &run::Progress<'_>| {
            if let Some(found) = foreground(progress) {
                number.store(found, Ordering::Relaxed);
            }
            if interrupt.load(Ordering::Relaxed) {
                end_load.store(true, Ordering::Relaxed);
            }
        };
        let loaded = run::run(jobs, &end_load, &look);
        is_loaded.store(true, Ordering::Relaxed);
        (capture.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), loaded)
    });
    recorded.map_err(told)?;
    let failed = loaded.map_err(told)?.jobs.into_iter().flat_map(|job| job.errors).next();
    failed.map_or(Ok(()), |(name, count)| Err(format!("{count} reads of the disk failed with {name}")))
}

/// One thread that reads, and one that keeps so many more in flight, on cores of their own where there are two.
fn jobs(asked: &Asked<'_>, depth: u32) -> Vec<StorageJob> {
    let place = placement::place(&Topology::from(&weir_evidence::fingerprint::fingerprint()));
    let (foreground, background) = place.map(|place| (place.server, place.load)).unwrap_or_default();
    let job = |name: &str, engine, depth, cpus| StorageJob {
        name: name.to_owned(),
        file: asked.file.display().to_string(),
        file_given: true,
        engine,
        depth,
        cpus,
        runtime_ns: Some(LENGTH_MAX.as_nanos() as u64),
        time_based: true,
        seed: asked.seed,
        ..StorageJob::default()
    };
    // An engine that is complete when its call returns has no calibration, which would be in the trace.
    let mut jobs = vec![job(FOREGROUND, StorageEngine::Pread, 1, foreground)];
    if depth > 0 {
        jobs.push(job("background", StorageEngine::Libaio, depth, background));
    }
    number_threads(&mut jobs);
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked<'a>(folder: &'a Path, file: &'a Path, depths: &'a [u32]) -> Asked<'a> {
        Asked { folder, file, depths, pieces: 2, seed: 1, quiet: true }
    }

    /// A folder of its own, removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("weir-recording-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("a folder");
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn write(folder: &Path, depth: u32, requests: usize) {
        let rows: String =
            (0..requests).map(|number| format!("45000,{},read,4096,8\n", number * 50_000)).collect();
        fs::write(path(folder, depth), format!("{}\n{rows}", trace::HEADING)).expect("a trace");
    }

    #[test]
    fn traces_that_are_there_are_read_and_named_by_what_they_hold() {
        let folder = Folder::new("there");
        write(&folder.0, 0, 2 * PIECE_MIN);
        write(&folder.0, 32, 2 * PIECE_MIN + 7);
        let file = Path::new("/nowhere/data");
        let found = |depths: &[u32]| match traces(&asked(&folder.0, file, depths), &AtomicBool::new(false)) {
            Recording::Traces { source, traces } => (source, traces),
            Recording::Unavailable(reason) => panic!("{reason}"),
            Recording::Interrupted => panic!("nobody did"),
        };
        let (source, traces) = found(&[0, 32]);
        let names: Vec<(&str, usize)> =
            traces.iter().map(|trace| (trace.name.as_str(), trace.operations.len())).collect();
        assert_eq!(names, [("background 0", 2 * PIECE_MIN), ("background 32", 2 * PIECE_MIN + 7)]);
        assert!(source.starts_with("/nowhere/data (10007 reads of one thread, fingerprint "), "{source}");
        assert_ne!(source, found(&[32, 0]).0);
    }

    #[test]
    fn what_cannot_be_recorded_or_is_too_short_is_told() {
        let folder = Folder::new("short");
        let reason = |file: &Path| match traces(&asked(&folder.0, file, &[0]), &AtomicBool::new(false)) {
            Recording::Unavailable(reason) => reason,
            Recording::Traces { .. } | Recording::Interrupted => panic!("there is nothing to read"),
        };
        assert!(reason(Path::new("/nowhere/data")).contains("/nowhere/data"));
        assert!(reason(Path::new("/proc/self/stat")).contains("no block device"));
        write(&folder.0, 0, 2 * PIECE_MIN - 1);
        assert!(reason(Path::new("/nowhere/data")).contains("too few for 2 pieces"));
        fs::write(path(&folder.0, 0), "soon\n").expect("a file");
        assert!(reason(Path::new("/nowhere/data")).contains("recorded-reads-0.csv, line 1"));
    }

    #[test]
    fn an_interruption_leaves_no_half_of_a_trace() {
        let folder = Folder::new("interrupt");
        let file = folder.0.join("data");
        fs::write(&file, vec![7; 1 << 20]).expect("a file");
        let interrupt = AtomicBool::new(true);
        assert!(matches!(traces(&asked(&folder.0, &file, &[8]), &interrupt), Recording::Interrupted));
        let left: Vec<_> =
            fs::read_dir(&folder.0).expect("the folder").flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["data"]);
    }

    #[test]
    fn only_reads_of_the_thread_in_front_are_recorded() {
        let job = |job, thread| run::JobProgress {
            job,
            operations: 0,
            operations_per_second: 0.0,
            share: None,
            thread,
        };
        let told =
            |jobs: &[run::JobProgress<'_>]| foreground(&run::Progress::Running { elapsed_ns: 1, jobs });
        assert_eq!(told(&[job("background", Some(8)), job(FOREGROUND, Some(7))]), Some(7));
        assert_eq!(told(&[job("background", Some(8))]), None);
        let operation = |thread, direction| CapturedOperation {
            issued_ns: 1,
            completed_ns: 2,
            thread,
            device: DeviceNumber { major: 254, minor: 0 },
            sector: 8,
            bytes: 4_096,
            direction,
        };
        assert!(is_foregrounds(&operation(7, Direction::Read), 7));
        assert!(!is_foregrounds(&operation(8, Direction::Read), 7), "the background");
        assert!(!is_foregrounds(&operation(7, Direction::Write), 7), "it reads");
        // Requests of nobody are the kernel's own, and it is nobody's until the thread is known.
        assert!(!is_foregrounds(&operation(NOBODY, Direction::Read), NOBODY));
    }

    #[test]
    fn a_run_tells_which_thread_it_is() {
        let folder = Folder::new("thread");
        let file = folder.0.join("data");
        fs::write(&file, vec![7; 1 << 20]).expect("a file");
        let job = StorageJob {
            name: FOREGROUND.to_owned(),
            file: file.display().to_string(),
            file_given: true,
            direct: false,
            engine: StorageEngine::Pread,
            operations_max: Some(8),
            ..StorageJob::default()
        };
        let number = AtomicU32::new(NOBODY);
        let look = |progress: &run::Progress<'_>| {
            number.fetch_max(foreground(progress).unwrap_or(NOBODY), Ordering::Relaxed);
        };
        run::run(&[job], &AtomicBool::new(false), &look).expect("it runs");
        assert_ne!(number.load(Ordering::Relaxed), NOBODY);
    }

    #[test]
    fn the_background_is_a_job_of_its_own_beside_one_that_reads_alone() {
        let asked = asked(Path::new("."), Path::new("data"), &[0, 32]);
        let alone = jobs(&asked, 0);
        assert_eq!((alone.len(), alone[0].depth, alone[0].engine), (1, 1, StorageEngine::Pread));
        let beside = jobs(&asked, 32);
        assert_eq!((beside.len(), beside[1].depth, beside[1].thread_first), (2, 32, 2));
        assert!(beside.iter().all(|job| job.file_given && job.runtime_ns.is_some()));
    }
}
