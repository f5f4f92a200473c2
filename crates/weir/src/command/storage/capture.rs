//! `weir storage capture`: device times from the kernel's block tracepoints, as a trace.

use std::{
    cell::Cell,
    fs::{self, File},
    io::{BufWriter, Write},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use weir_storage::{
    capture::{self, CaptureCounts, CaptureError, Limits},
    trace,
};

use crate::{
    args::StorageCapture,
    command::engine,
    exit::{Exit, UsageError},
    output, signals,
};

/// Progress is told this often.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

pub(crate) fn run(arguments: &StorageCapture) -> Result<Exit> {
    let limits = limits(arguments)?;
    if !arguments.target.exists() {
        let target = arguments.target.display();
        return Err(UsageError(format!("{target} does not exist; name a disk, or a file on it")).into());
    }
    let device = match capture::device_of(&arguments.target) {
        Ok(device) => device,
        Err(error) => return refused(error),
    };
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    signals::on_stop(move |_| flag.store(true, Ordering::Relaxed))?;
    let partial = arguments.out.with_extension("partial");
    let cannot = || format!("cannot write {}", arguments.out.display());
    let mut file = BufWriter::new(File::create(&partial).with_context(cannot)?);
    let shown = Cell::new(Instant::now());
    let progress = |counts: CaptureCounts| {
        if !arguments.quiet && shown.get().elapsed() >= PROGRESS_EVERY {
            shown.set(Instant::now());
            output::tell(&format!("{} requests", counts.operations));
        }
    };
    let outcome = capture::record(Some(device), limits, &mut file, &stop, &progress);
    let counts = match outcome {
        Ok(counts) => counts,
        Err(error) => {
            drop(file);
            let _ = fs::remove_file(&partial);
            return refused(error);
        }
    };
    let is_interrupted = stop.load(Ordering::Relaxed);
    if counts.operations == 0 {
        drop(file);
        fs::remove_file(&partial)?;
        output::tell(&format!(
            "no request reached the disk under {}, so there is no trace",
            arguments.target.display()
        ));
        return Ok(if is_interrupted { Exit::Interrupted } else { Exit::RuntimeError });
    }
    keep(file, &partial, &arguments.out).with_context(cannot)?;
    output::print(&summary(&counts, &arguments.out))?;
    Ok(if is_interrupted { Exit::Interrupted } else { Exit::Ok })
}

fn limits(arguments: &StorageCapture) -> Result<Limits> {
    let length = engine::time("--duration", &arguments.duration)?;
    if arguments.operations == 0 || length.is_zero() {
        return Err(UsageError("--operations and --duration must be more than 0".into()).into());
    }
    // What nobody could read again is not written.
    if arguments.operations > trace::OPERATIONS_MAX as u64 {
        let most = trace::OPERATIONS_MAX;
        return Err(UsageError(format!(
            "--operations must be at most {most}, the longest trace that is read"
        ))
        .into());
    }
    Ok(Limits { length, operations_max: arguments.operations })
}

/// What this machine or user may not do is told as one sentence; anything else is an error of the run.
fn refused(error: CaptureError) -> Result<Exit> {
    if matches!(error, CaptureError::System { .. }) {
        return Err(error.into());
    }
    output::tell(&format!("weir: {error}"));
    Ok(Exit::Environment)
}

fn keep(file: BufWriter<File>, partial: &Path, path: &Path) -> std::io::Result<()> {
    let mut file = file.into_inner()?;
    file.flush()?;
    file.sync_all()?;
    fs::rename(partial, path)
}

fn summary(counts: &CaptureCounts, path: &Path) -> String {
    let mut text = format!("{} requests in {}", counts.operations, path.display());
    if counts.lost > 0 {
        text.push_str(&format!("; the kernel dropped {} records that were not read in time", counts.lost));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_says_what_is_missing() {
        let whole = CaptureCounts { operations: 12, unmatched: 1, lost: 0 };
        assert_eq!(summary(&whole, Path::new("a.csv")), "12 requests in a.csv");
        let lossy = CaptureCounts { lost: 3, ..whole };
        assert!(
            summary(&lossy, Path::new("a.csv")).ends_with("dropped 3 records that were not read in time")
        );
    }
}
