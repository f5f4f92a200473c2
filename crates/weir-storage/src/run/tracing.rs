//! The capture beside a run: a thread of its own takes what the kernel traced about the run's threads.

use std::{
    collections::{HashSet, VecDeque},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use weir_record::storage::StorageJob;

use crate::capture::{Capture, CaptureCounts, CaptureError, CapturedOperation, device_of};

/// Most requests kept; the oldest go first.
const REQUESTS_MAX: usize = 1 << 21;
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A capture that goes on.
pub(super) struct Tracing {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Captured, CaptureError>>>,
}

/// What was captured of the run's threads, in order of completion.
#[derive(Debug, Default)]
pub(super) struct Captured {
    pub(super) operations: Vec<CapturedOperation>,
    counts: CaptureCounts,
    dropped: u64,
}

impl Captured {
    /// What a reader must know.
    pub(super) fn note(&self) -> Option<String> {
        let missing = self.counts.lost + self.dropped;
        (missing > 0).then(|| {
            format!("tracepoints: {missing} records were lost; their operations count as those of unknown device time")
        })
    }
}

impl Tracing {
    /// Begins to trace the disk under a job's file, for requests of these threads.
    pub(super) fn start(job: &StorageJob, threads: HashSet<u32>) -> Result<Self, CaptureError> {
        let mut capture = Capture::start(Some(device_of(Path::new(&job.file))?))?;
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stop);
        let take = move || {
            let mut kept = VecDeque::new();
            let mut dropped = 0;
            let mut is_last = false;
            loop {
                if !is_last && is_over.load(Ordering::Relaxed) {
                    // Whatever was traced before the end is still taken.
                    capture.stop()?;
                    is_last = true;
                }
                let has_more = capture.read(&mut |operation| {
                    if threads.contains(&operation.thread) {
                        dropped += u64::from(keep(&mut kept, operation, REQUESTS_MAX));
                    }
                })?;
                if has_more {
                    continue;
                }
                if is_last {
                    return Ok(Captured { operations: kept.into(), counts: capture.counts(), dropped });
                }
                thread::sleep(LOOK_EVERY);
            }
        };
        let spawned = thread::Builder::new().name("weir-trace".to_owned()).spawn(take);
        let thread = spawned.map_err(|source| CaptureError::System {
            doing: "start the thread that reads the trace".to_owned(),
            source,
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Ends it.
    pub(super) fn finish(mut self) -> Result<Captured, CaptureError> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(Captured::default()),
        }
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Given up: what it found is of no interest, but nothing of it may stay.
            let _ = thread.join();
        }
    }
}

/// Keeps the newest. Says whether one had to go.
fn keep(kept: &mut VecDeque<CapturedOperation>, operation: CapturedOperation, maximum: usize) -> bool {
    let is_full = kept.len() >= maximum;
    if is_full {
        kept.pop_front();
    }
    kept.push_back(operation);
    is_full
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{capture::DeviceNumber, predict::Direction};

    #[test]
    fn the_ring_keeps_the_newest() {
        let operation = |issued_ns| CapturedOperation {
            issued_ns,
            completed_ns: issued_ns + 1,
            thread: 1,
            device: DeviceNumber { major: 254, minor: 0 },
            sector: 0,
            bytes: 4096,
            direction: Direction::Read,
        };
        let mut kept = VecDeque::new();
        let dropped = (0..5).filter(|issued_ns| keep(&mut kept, operation(*issued_ns), 3)).count();
        assert_eq!(dropped, 2);
        assert_eq!(kept.iter().map(|operation| operation.issued_ns).collect::<Vec<_>>(), [2, 3, 4]);
    }

    #[test]
    fn losses_are_told() {
        assert_eq!(Captured::default().note(), None);
        let lossy = Captured {
            dropped: 2,
            counts: CaptureCounts { lost: 3, ..CaptureCounts::default() },
            ..Captured::default()
        };
        assert!(lossy.note().is_some_and(|note| note.contains("5 records were lost")));
    }
}
