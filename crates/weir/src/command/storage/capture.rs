//! `weir storage capture`: device times from the kernel's block tracepoints, as a trace.

use std::{
    cell::Cell,
    collections::BTreeSet,
    fs::{self, File},
    io::BufWriter,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use weir_storage::{
    capture::{self, CaptureCounts, CaptureError, CapturedOperation, Limits, Recorded},
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
    check_paths(&arguments.target, &arguments.out)?;
    let threads = arguments.process.map(threads_of).transpose()?;
    let is_wanted = |operation: &CapturedOperation| {
        threads.as_ref().is_none_or(|threads| threads.contains(&operation.thread))
    };
    let device = match capture::device_of(&arguments.target) {
        Ok(device) => device,
        Err(error) => return refused(error),
    };
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    signals::on_stop(move |_| flag.store(true, Ordering::Relaxed))?;
    let cannot = || format!("cannot write {}", arguments.out.display());
    let (partial, file) = output::begin_beside(&arguments.out).with_context(cannot)?;
    let mut file = BufWriter::new(file);
    let shown = Cell::new(Instant::now());
    let progress = |counts: CaptureCounts| {
        if !arguments.quiet && shown.get().elapsed() >= PROGRESS_EVERY {
            shown.set(Instant::now());
            output::tell(&format!("{} requests", counts.operations));
        }
    };
    let outcome = capture::record(Some(device), limits, &is_wanted, &mut file, &stop, &progress);
    let recorded = match outcome {
        Ok(recorded) => recorded,
        Err(error) => {
            drop(file);
            let _ = fs::remove_file(&partial);
            return refused(error);
        }
    };
    let is_interrupted = stop.load(Ordering::Relaxed);
    if recorded.counts.operations == 0 {
        drop(file);
        fs::remove_file(&partial)?;
        output::tell(&format!(
            "no request reached the disk under {}, so there is no trace",
            arguments.target.display()
        ));
        return Ok(if is_interrupted { Exit::Interrupted } else { Exit::RuntimeError });
    }
    keep(file, &partial, &arguments.out).with_context(cannot)?;
    output::print(&output::fitted(&summary(&recorded, &arguments.out)))?;
    Ok(if is_interrupted { Exit::Interrupted } else { Exit::Ok })
}

fn check_paths(target: &Path, out: &Path) -> Result<()> {
    if !target.exists() {
        let text = format!("{} does not exist; name a disk, or a file on it", target.display());
        return Err(UsageError(text).into());
    }
    if out.is_dir() {
        return Err(UsageError(format!("--out {}: it is a folder; name a file in it", out.display())).into());
    }
    Ok(())
}

/// The threads a process has now; those that it starts later are not recorded.
fn threads_of(process: u32) -> Result<BTreeSet<u32>> {
    let threads = fs::read_dir(format!("/proc/{process}/task"))
        .map_err(|_| UsageError(format!("--process {process}: there is no such process; start it first")))?;
    let numbers = threads.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(numbers.collect())
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
    let whole = || {
        file.into_inner()?.sync_all()?;
        fs::rename(partial, path)
    };
    whole().inspect_err(|_| {
        // What failed is told; half a trace is of no use to anybody.
        let _ = fs::remove_file(partial);
    })
}

/// What is in the trace, and what of the disk's requests is not.
fn summary(recorded: &Recorded, path: &Path) -> String {
    let Recorded { counts, is_full } = recorded;
    let mut text = format!("{} requests in {}", counts.operations, path.display());
    if *is_full {
        text.push_str("; that is the maximum (--operations): what the disk did after them is not in it");
    }
    if counts.unmatched > 0 {
        text.push_str(&format!(
            "; {} completions are left out, because nobody saw them being issued",
            counts.unmatched
        ));
    }
    if counts.lost > 0 {
        text.push_str(&format!("; the kernel dropped {} records that were not read in time", counts.lost));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_those_of_the_process() {
        assert!(threads_of(std::process::id()).expect("it runs").contains(&std::process::id()));
        let error = threads_of(u32::MAX).expect_err("no process has that number").to_string();
        assert_eq!(error, "--process 4294967295: there is no such process; start it first");
    }

    #[test]
    fn a_summary_says_what_is_missing() {
        let told = |counts, is_full| summary(&Recorded { counts, is_full }, Path::new("a.csv"));
        let whole = CaptureCounts { operations: 12, unmatched: 0, lost: 0 };
        assert_eq!(told(whole, false), "12 requests in a.csv");
        assert!(told(whole, true).starts_with("12 requests in a.csv; that is the maximum (--operations)"));
        let early = told(CaptureCounts { unmatched: 1, ..whole }, false);
        assert!(early.ends_with("1 completions are left out, because nobody saw them being issued"));
        let lossy = told(CaptureCounts { lost: 3, ..whole }, false);
        assert!(lossy.ends_with("dropped 3 records that were not read in time"));
    }
}
