//! The capture beside a run: a separate thread reads the kernel's trace of the run's threads.

use std::{
    collections::HashSet,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use weir_record::storage::StorageJob;

use crate::capture::{Capture, CaptureCounts, CaptureError, CapturedOperation, DeviceNumber, device_of};

/// Name of the reading thread. It belongs to no job.
pub(super) const THREAD_NAME: &str = "weir-trace";
/// Most requests kept, of all threads. The first ones are kept: they are compared with journals, which keep the first
/// ones too.
const REQUESTS_MAX: usize = 1 << 21;
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// An active capture.
pub(super) struct Tracing {
    stop: Arc<AtomicBool>,
    opens_ns: Arc<AtomicU64>,
    thread: Option<JoinHandle<Result<Captured, CaptureError>>>,
}

/// Captured requests of the run's threads, in order of completion.
#[derive(Debug, Default)]
pub(super) struct Captured {
    pub(super) operations: Vec<CapturedOperation>,
    /// Issue time of the first request without room: everything completed before is complete in the list.
    pub(super) full_from_ns: Option<u64>,
    pub(super) counts: CaptureCounts,
}

impl Captured {
    /// Note for the reader.
    pub(super) fn note(&self) -> Option<String> {
        let lost = self.counts.lost;
        (lost > 0).then(|| {
            format!("tracepoints: {lost} records were lost; their operations count as those of unknown device time")
        })
    }

    /// Keeps a request that completed in the window, while there is room.
    fn add(&mut self, operation: CapturedOperation, opens_ns: u64, maximum: usize) {
        if operation.completed_ns < opens_ns {
            return;
        }
        if self.operations.len() < maximum {
            self.operations.push(operation);
            return;
        }
        // Requests arrive in the order of completion, so one that was issued earlier may arrive later.
        let from_ns =
            self.full_from_ns.map_or(operation.issued_ns, |known_ns| known_ns.min(operation.issued_ns));
        self.full_from_ns = Some(from_ns);
    }
}

impl Tracing {
    /// Starts tracing the disks under the files of jobs, for requests of these threads. Nothing is kept before the
    /// window opens.
    pub(super) fn start<'a>(
        jobs: impl Iterator<Item = &'a StorageJob>,
        threads: HashSet<u32>,
    ) -> Result<Self, CaptureError> {
        let disks = jobs.map(|job| device_of(Path::new(&job.file))).collect::<Result<Vec<_>, _>>()?;
        let mut capture = Capture::start(only(&disks))?;
        let (stop, opens_ns) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(u64::MAX)));
        let (is_over, window_ns) = (Arc::clone(&stop), Arc::clone(&opens_ns));
        let take = move || {
            let mut captured = Captured::default();
            let mut is_last = false;
            loop {
                if !is_last && is_over.load(Ordering::Relaxed) {
                    // Events traced before the end are still read.
                    capture.stop()?;
                    is_last = true;
                }
                let has_more = capture.read(&mut |operation| {
                    if threads.contains(&operation.thread) {
                        captured.add(operation, window_ns.load(Ordering::Acquire), REQUESTS_MAX);
                    }
                })?;
                if has_more {
                    continue;
                }
                if is_last {
                    captured.counts = capture.counts();
                    return Ok(captured);
                }
                thread::sleep(LOOK_EVERY);
            }
        };
        let spawned = thread::Builder::new().name(THREAD_NAME.to_owned()).spawn(take);
        let thread = spawned.map_err(|source| CaptureError::System {
            doing: "start the thread that reads the trace".to_owned(),
            source,
        })?;
        Ok(Self { stop, opens_ns, thread: Some(thread) })
    }

    /// Sets the start of the first window. Call it before the jobs start.
    pub(super) fn open(&self, opens_ns: u64) {
        self.opens_ns.store(opens_ns, Ordering::Release);
    }

    /// Ends the capture.
    pub(super) fn finish(mut self) -> Result<Captured, CaptureError> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(Captured::default()),
        }
    }
}

/// The disk of all jobs. If they are on several disks, all disks of the machine are traced.
fn only(disks: &[DeviceNumber]) -> Option<DeviceNumber> {
    let (first, others) = disks.split_first()?;
    others.iter().all(|disk| disk == first).then_some(*first)
}

impl Drop for Tracing {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The capture was given up: its result is not needed, but nothing of it may stay.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::Direction;

    fn operation(issued_ns: u64, completed_ns: u64) -> CapturedOperation {
        CapturedOperation {
            issued_ns,
            completed_ns,
            thread: 1,
            device: DeviceNumber { major: 254, minor: 0 },
            sector: 0,
            bytes: 4096,
            direction: Direction::Read,
        }
    }

    fn issued_ns(captured: &Captured) -> Vec<u64> {
        captured.operations.iter().map(|operation| operation.issued_ns).collect()
    }

    #[test]
    fn the_first_are_kept_and_it_is_known_from_when_on_some_are_missing() {
        let mut captured = Captured::default();
        (0..3).for_each(|start_ns| captured.add(operation(start_ns, start_ns + 2), 0, 3));
        assert_eq!((issued_ns(&captured), captured.full_from_ns), (vec![0, 1, 2], None));
        captured.add(operation(5, 6), 0, 3);
        captured.add(operation(3, 9), 0, 3);
        assert_eq!((issued_ns(&captured), captured.full_from_ns), (vec![0, 1, 2], Some(3)));
        assert_eq!(captured.note(), None, "nothing of what is reported is missing");
    }

    #[test]
    fn requests_of_the_ramp_take_no_room() {
        let mut captured = Captured::default();
        for (start_ns, end_ns) in [(0, 40), (50, 99), (90, 100), (110, 150)] {
            captured.add(operation(start_ns, end_ns), 100, 2);
        }
        // Requests in flight when the window opened count in it.
        assert_eq!((issued_ns(&captured), captured.full_from_ns), (vec![90, 110], None));
    }

    #[test]
    fn one_disk_is_traced_alone_and_several_are_traced_with_all() {
        let [one, other] = [0, 16].map(|minor| DeviceNumber { major: 254, minor });
        assert_eq!((only(&[one]), only(&[one, one])), (Some(one), Some(one)));
        assert_eq!((only(&[one, other]), only(&[])), (None, None));
    }

    #[test]
    fn losses_are_told() {
        assert_eq!(Captured::default().note(), None);
        let counts = CaptureCounts { lost: 3, ..CaptureCounts::default() };
        let lossy = Captured { counts, ..Captured::default() };
        assert!(lossy.note().is_some_and(|note| note.contains("3 records were lost")));
    }
}
