//! Device times as the kernel's block layer records them: when a request was issued to the device, and when the
//! device completed it, from the tracepoints `block_rq_issue` and `block_rq_complete`.
//!
//! Tracing uses a separate tracing instance, so that it does not disturb other tracing on the machine, and the
//! monotonic clock, so that its times can be compared with those of a run. The instance is removed when the capture
//! is dropped; one that a killed process left behind is removed by the next capture. It needs root, and its errors
//! say so.
//!
//! The kernel prints these times in microseconds, which is the resolution. A traced machine is a little slower: each
//! request costs two records, and formatting them costs the reader about a microsecond each.

mod instance;
mod line;
mod matching;

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use instance::Instance;
use line::Line;
use matching::Matcher;

use crate::{
    predict::Direction,
    trace::{HEADING, LATENCY_NS_MAX},
};

/// Pause between two reads of the trace.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Bytes per read.
const READ_BYTES: usize = 256 * 1024;
/// Reads per call: a disk that is busier than its reader must not keep it forever.
const READS_MAX: usize = 64;

/// Device number of a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceNumber {
    /// Major.
    pub major: u32,
    /// Minor.
    pub minor: u32,
}

/// A completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedOperation {
    /// When it was issued to the device, by the monotonic clock.
    pub issued_ns: u64,
    /// When the device completed it.
    pub completed_ns: u64,
    /// Thread that issued it: the requesting thread, unless the queue was busy and the kernel issued it later.
    pub thread: u32,
    /// The whole disk.
    pub device: DeviceNumber,
    /// Position in units of 512 bytes from the start of the disk.
    pub sector: u64,
    /// Length.
    pub bytes: u32,
    /// Direction of the transfer.
    pub direction: Direction,
}

/// Counts of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureCounts {
    /// Requests with both times.
    pub operations: u64,
    /// Completions of requests that were issued before the capture began, or whose issue was lost.
    pub unmatched: u64,
    /// Records the kernel dropped because they were not read in time.
    pub lost: u64,
}

/// Why capturing is not possible.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// tracefs is not mounted.
    #[error(
        "device times need the kernel's tracefs, which is not mounted here; as root: mount -t tracefs nodev /sys/kernel/tracing"
    )]
    NoTracefs,
    /// Tracing is not permitted.
    #[error(
        "device times come from block tracepoints, and those need root: {path} cannot be written ({source})"
    )]
    NotPermitted {
        /// The file that could not be written.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel lacks these tracepoints.
    #[error("this kernel has no block tracepoints (CONFIG_BLK_DEV_IO_TRACE): {0} is missing")]
    NoTracepoints(PathBuf),
    /// Not on a block device.
    #[error("{path} lies on no block device that can be traced ({reason})")]
    NoDevice {
        /// The requested path.
        path: PathBuf,
        /// Why.
        reason: NoDisk,
    },
    /// Another system error.
    #[error("cannot {doing}: {source}")]
    System {
        /// The failed step.
        doing: String,
        /// The system's error.
        source: io::Error,
    },
}

/// Why a path has no disk whose requests could be traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoDisk {
    /// A file system without a disk, or over several disks.
    #[error("its file system has no disk, or more than one")]
    OfItsOwn,
    /// A partition whose disk is unknown.
    #[error("the disk of partition {major}:{minor} is not known")]
    OfPartition {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
}

/// The whole disk that a file or a device lies on.
pub fn device_of(path: &Path) -> Result<DeviceNumber, CaptureError> {
    let failed =
        |doing: &str, source| CaptureError::System { doing: format!("{doing} {}", path.display()), source };
    let metadata = fs::metadata(path).map_err(|source| failed("look at", source))?;
    let number = if metadata.file_type().is_block_device() { metadata.rdev() } else { metadata.dev() };
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    if major == 0 {
        return Err(CaptureError::NoDevice { path: path.to_owned(), reason: NoDisk::OfItsOwn });
    }
    let node = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    if !node.join("partition").exists() {
        return Ok(DeviceNumber { major, minor });
    }
    // Requests carry the number of the disk, and a partition's directory lies in that of its disk.
    let disk =
        fs::canonicalize(&node).ok().and_then(|node| fs::read_to_string(node.parent()?.join("dev")).ok());
    disk.as_deref().and_then(device_number).ok_or_else(|| CaptureError::NoDevice {
        path: path.to_owned(),
        reason: NoDisk::OfPartition { major, minor },
    })
}

/// Parses `8:16` or `8,16`.
fn device_number(text: &str) -> Option<DeviceNumber> {
    let (major, minor) = text.trim().split_once([':', ','])?;
    Some(DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? })
}

/// An active capture.
#[derive(Debug)]
pub struct Capture {
    instance: Instance,
    matcher: Matcher,
    buffer: Vec<u8>,
    /// Bytes of an incomplete line at the start of the buffer.
    held: usize,
}

impl Capture {
    /// Starts tracing one disk, or all disks.
    pub fn start(device: Option<DeviceNumber>) -> Result<Self, CaptureError> {
        let instance = Instance::create(device)?;
        Ok(Self { instance, matcher: Matcher::default(), buffer: vec![0; READ_BYTES], held: 0 })
    }

    /// Reads what has been traced so far, up to some MB of text, and never sleeps. Returns whether there may be more.
    pub fn read(&mut self, sink: &mut dyn FnMut(CapturedOperation)) -> Result<bool, CaptureError> {
        for _ in 0..READS_MAX {
            let count = self.instance.read(&mut self.buffer[self.held..])?;
            if count == 0 {
                return Ok(false);
            }
            let filled = self.held + count;
            let whole =
                self.buffer[..filled].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            for line in self.buffer[..whole].split(|byte| *byte == b'\n') {
                if let Some(operation) = self.matcher.add(Line::parse(&String::from_utf8_lossy(line))) {
                    sink(operation);
                }
            }
            self.buffer.copy_within(whole..filled, 0);
            // A longer line is not one of ours.
            self.held = if filled - whole == self.buffer.len() { 0 } else { filled - whole };
        }
        Ok(true)
    }

    /// Stops tracing. What was traced so far can still be read to its end.
    pub fn stop(&mut self) -> Result<(), CaptureError> {
        self.instance.stop()
    }

    /// The counts so far.
    pub fn counts(&self) -> CaptureCounts {
        self.matcher.counts
    }
}

/// Limits of a recording; it ends at the first one reached.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest duration.
    pub length: Duration,
    /// Most requests. This also bounds the length of the file: a line has at most [`crate::trace::LINE_BYTES_MAX`]
    /// bytes, and usually some fifty.
    pub operations_max: u64,
}

/// The result of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Counts of the recording, including missing requests.
    pub counts: CaptureCounts,
    /// It ended at its limit of requests, while the disk was still active.
    pub is_full: bool,
}

/// Source of requests: the kernel, or a test.
trait Source {
    /// As [`Capture::read`].
    fn read(&mut self, sink: &mut dyn FnMut(CapturedOperation)) -> Result<bool, CaptureError>;
    /// As [`Capture::stop`].
    fn stop(&mut self) -> Result<(), CaptureError>;
    /// As [`Capture::counts`].
    fn counts(&self) -> CaptureCounts;
}

impl Source for Capture {
    fn read(&mut self, sink: &mut dyn FnMut(CapturedOperation)) -> Result<bool, CaptureError> {
        self.read(sink)
    }

    fn stop(&mut self) -> Result<(), CaptureError> {
        self.stop()
    }

    fn counts(&self) -> CaptureCounts {
        self.counts()
    }
}

/// Records the selected requests as CSV, one line for each in the order of completion, until a limit or the
/// interrupt. Other requests do not count, and none are kept in memory.
pub fn record(
    device: Option<DeviceNumber>,
    limits: Limits,
    wanted: &dyn Fn(&CapturedOperation) -> bool,
    out: &mut dyn Write,
    interrupt: &AtomicBool,
    progress: &dyn Fn(CaptureCounts),
) -> Result<Recorded, CaptureError> {
    record_from(&mut Capture::start(device)?, limits, wanted, out, interrupt, progress)
}

fn record_from(
    requests: &mut dyn Source,
    limits: Limits,
    wanted: &dyn Fn(&CapturedOperation) -> bool,
    out: &mut dyn Write,
    interrupt: &AtomicBool,
    progress: &dyn Fn(CaptureCounts),
) -> Result<Recorded, CaptureError> {
    let writing = |source| CaptureError::System { doing: "write the capture".to_owned(), source };
    writeln!(out, "{HEADING}").map_err(writing)?;
    let start = Instant::now();
    let (mut written, mut failure, mut is_over) = (0, None, false);
    while written < limits.operations_max {
        if !is_over && (start.elapsed() >= limits.length || interrupt.load(Ordering::Relaxed)) {
            // Events traced before the end belong to the recording.
            requests.stop()?;
            is_over = true;
        }
        let has_more = requests.read(&mut |operation| {
            if written < limits.operations_max && failure.is_none() && wanted(&operation) {
                failure = write_row(out, &operation).err();
                written += 1;
            }
        })?;
        if let Some(source) = failure {
            return Err(writing(source));
        }
        if is_over && !has_more {
            break;
        }
        progress(CaptureCounts { operations: written, ..requests.counts() });
        if !has_more {
            std::thread::sleep(LOOK_EVERY);
        }
    }
    out.flush().map_err(writing)?;
    let counts = CaptureCounts { operations: written, ..requests.counts() };
    Ok(Recorded { counts, is_full: written >= limits.operations_max })
}

/// Both times are in microseconds, so a faster request has equal times, and a stuck one may exceed the longest
/// latency of a trace. An unreadable row would make the whole trace unreadable.
fn write_row(out: &mut dyn Write, operation: &CapturedOperation) -> io::Result<()> {
    let direction = match operation.direction {
        Direction::Read => "read",
        Direction::Write => "write",
    };
    let io_time_ns = operation.completed_ns.saturating_sub(operation.issued_ns).clamp(1, LATENCY_NS_MAX);
    writeln!(out, "{io_time_ns},{},{direction},{},{}", operation.issued_ns, operation.bytes, operation.sector)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taking(io_time_ns: u64) -> CapturedOperation {
        CapturedOperation {
            issued_ns: 5_000,
            completed_ns: 5_000 + io_time_ns,
            thread: 9,
            device: DeviceNumber { major: 254, minor: 0 },
            sector: 2_048,
            bytes: 4_096,
            direction: Direction::Write,
        }
    }

    fn row(operation: &CapturedOperation) -> String {
        let mut out = Vec::new();
        write_row(&mut out, operation).expect("memory");
        String::from_utf8(out).expect("text")
    }

    fn read_back(rows: &str) -> Vec<crate::trace::TraceOperation> {
        crate::trace::read(format!("{HEADING}\n{rows}").as_bytes(), "capture").expect("a trace").operations
    }

    #[test]
    fn a_row_has_the_columns_of_the_header() {
        let text = row(&taking(42_000));
        assert_eq!(text, "42000,5000,write,4096,2048\n");
        let read = read_back(&text);
        assert_eq!(read.len(), 1);
        assert_eq!((read[0].latency_ns, read[0].issued_ns), (42_000, Some(5_000)));
    }

    #[test]
    fn a_request_faster_than_the_clock_or_slower_than_a_trace_believes_can_be_read_back() {
        for (io_time_ns, told_ns) in [(0, 1), (1_000, 1_000), (2 * LATENCY_NS_MAX, LATENCY_NS_MAX)] {
            assert_eq!(read_back(&row(&taking(io_time_ns)))[0].latency_ns, told_ns);
        }
    }

    /// A disk that is never idle: until it is stopped there is always more, and then this many pieces are left.
    struct Busy {
        left: u64,
        is_stopped: bool,
        reads: u64,
    }

    const PIECE: u64 = 1_000;

    impl Source for Busy {
        fn read(&mut self, sink: &mut dyn FnMut(CapturedOperation)) -> Result<bool, CaptureError> {
            if self.is_stopped && self.left == 0 {
                return Ok(false);
            }
            self.left -= u64::from(self.is_stopped);
            for number in 0..PIECE {
                let issued_ns = (self.reads * PIECE + number) * 1_000;
                sink(CapturedOperation {
                    issued_ns,
                    completed_ns: issued_ns + 42_000,
                    thread: 9,
                    device: DeviceNumber { major: 254, minor: 0 },
                    sector: number,
                    bytes: 4_096,
                    direction: Direction::Read,
                });
            }
            self.reads += 1;
            Ok(true)
        }

        fn stop(&mut self) -> Result<(), CaptureError> {
            self.is_stopped = true;
            Ok(())
        }

        fn counts(&self) -> CaptureCounts {
            CaptureCounts { operations: self.reads * PIECE, unmatched: 2, lost: 3 }
        }
    }

    fn recorded(disk: &mut Busy, operations_max: u64, is_interrupted: bool) -> (Recorded, usize) {
        let limits = Limits { length: Duration::from_secs(3600), operations_max };
        let (mut out, interrupt) = (Vec::new(), AtomicBool::new(is_interrupted));
        let recorded = record_from(disk, limits, &|_| true, &mut out, &interrupt, &|_| {}).expect("memory");
        let trace = crate::trace::read(out.as_slice(), "capture").expect("a trace");
        (recorded, trace.operations.len())
    }

    #[test]
    fn a_recording_ends_at_its_maximum_however_busy_the_disk_is() {
        let mut disk = Busy { left: 5, is_stopped: false, reads: 0 };
        let counts = CaptureCounts { operations: 2_500, unmatched: 2, lost: 3 };
        assert_eq!(recorded(&mut disk, 2_500, false), (Recorded { counts, is_full: true }, 2_500));
        assert_eq!(disk.reads, 3, "nothing is taken from the kernel that has no place any more");
    }

    #[test]
    fn what_was_traced_before_the_end_belongs_to_the_recording() {
        let mut disk = Busy { left: 5, is_stopped: false, reads: 0 };
        let (recorded, rows) = recorded(&mut disk, 1_000_000, true);
        assert_eq!((recorded.counts.operations, recorded.is_full, rows), (5_000, false, 5_000));
    }

    /// A disk with two threads: one of its three requests belongs to the first thread, and took 50 µs.
    struct Shared {
        left: u64,
    }

    impl Source for Shared {
        fn read(&mut self, sink: &mut dyn FnMut(CapturedOperation)) -> Result<bool, CaptureError> {
            for thread in [7, 8, 8] {
                let issued_ns = self.left * 1_000;
                sink(CapturedOperation {
                    issued_ns,
                    completed_ns: issued_ns + if thread == 7 { 50_000 } else { 900_000 },
                    thread,
                    device: DeviceNumber { major: 254, minor: 0 },
                    sector: 8,
                    bytes: 4_096,
                    direction: Direction::Read,
                });
            }
            self.left -= 1;
            Ok(self.left > 0)
        }

        fn stop(&mut self) -> Result<(), CaptureError> {
            Ok(())
        }

        fn counts(&self) -> CaptureCounts {
            CaptureCounts::default()
        }
    }

    #[test]
    fn requests_that_are_not_wanted_are_neither_in_the_recording_nor_counted() {
        let recorded = |operations_max, left| {
            let limits = Limits { length: Duration::from_secs(3600), operations_max };
            let (mut out, is_over) = (Vec::new(), AtomicBool::new(true));
            let first = |operation: &CapturedOperation| operation.thread == 7;
            let found = record_from(&mut Shared { left }, limits, &first, &mut out, &is_over, &|_| {});
            let trace = crate::trace::read(out.as_slice(), "capture").expect("a trace");
            assert!(trace.operations.iter().all(|operation| operation.latency_ns == 50_000));
            let found = found.expect("memory");
            (found.counts.operations, found.is_full, trace.operations.len())
        };
        assert_eq!(recorded(1_000, 40), (40, false, 40));
        assert_eq!(recorded(25, 40), (25, true, 25), "what is not wanted takes no place");
    }

    #[test]
    fn a_file_without_a_disk_is_refused_with_the_reason() {
        let error = device_of(Path::new("/proc/self/stat")).expect_err("proc has no disk");
        assert!(error.to_string().starts_with("/proc/self/stat lies on no block device"), "{error}");
        assert!(matches!(device_of(Path::new("/nowhere/at/all")), Err(CaptureError::System { .. })));
    }

    #[test]
    fn device_numbers_are_read_as_sysfs_and_tracepoints_write_them() {
        let number = Some(DeviceNumber { major: 259, minor: 3 });
        assert_eq!((device_number("259:3\n"), device_number("259,3")), (number, number));
        assert_eq!((device_number("259"), device_number("a:b")), (None, None));
    }

    /// Needs root and tracefs; without them it tests the error that names the missing one.
    #[test]
    fn a_capture_begins_and_leaves_nothing_behind_or_says_why_not() {
        match Capture::start(None) {
            Ok(mut capture) => {
                let directory = capture.instance.directory().to_owned();
                capture.read(&mut |_| {}).expect("it can be read");
                assert!(directory.exists());
                drop(capture);
                assert!(!directory.exists());
            }
            Err(error) => {
                let known = matches!(
                    error,
                    CaptureError::NoTracefs
                        | CaptureError::NotPermitted { .. }
                        | CaptureError::NoTracepoints(_)
                );
                assert!(known, "{error}");
            }
        }
    }
}
