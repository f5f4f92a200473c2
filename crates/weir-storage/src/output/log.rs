//! Latency, IOPS and bandwidth logs of one thread in fio's format.
//!
//! Files are named `PREFIX_lat.N.log`, `_slat`, `_clat`, `_iops` and `_bw`, with the thread's number in the run. A
//! line contains milliseconds since the start, value, direction (0 reads, 1 writes), bytes of the operation and
//! priority (always 0). Latencies are in nanoseconds; with an average each line is the mean over that time and its
//! bytes are 0. IOPS and KiB a second are counted over the same time, or over half a second if every latency is
//! logged; a shorter remainder has no line, because it would look like a drop.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
};

use weir_record::storage::StorageJob;

/// One completed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logged {
    /// Completion time since the thread's measured start.
    pub at_ns: u64,
    /// Whether it read; otherwise it wrote.
    pub reads: bool,
    /// Offset in the file.
    pub offset_bytes: u64,
    /// Its length.
    pub bytes: u32,
    /// From the decision to issue to the return of the system call.
    pub submission_ns: u64,
    /// From there to the notice of the completion.
    pub completion_ns: u64,
    /// From the issue, or the intended start, to the notice of the completion.
    pub total_ns: u64,
}

/// Window of rates, if latencies are not averaged.
const RATE_WINDOW_NS: u64 = 500_000_000;

/// The logs of one thread. The first error stops the writing and is returned at the end, so that a full disk does not
/// disturb a run.
#[derive(Debug)]
pub struct OperationLog<W: Write = BufWriter<File>> {
    /// The files of lat, slat, clat, iops, bw.
    files: [W; 5],
    average_ns: u64,
    window_ns: u64,
    latencies: [Sums; 2],
    latencies_end_ns: u64,
    rates: [Sums; 2],
    rates_end_ns: u64,
    /// Whether a line of rates was written.
    has_rates: bool,
    failed: Option<io::Error>,
}

/// Sums of one direction in one window.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    operations: u64,
    bytes: u64,
    /// Sums of lat, slat, clat.
    ns: [u64; 3],
}

const NAMES: [&str; 5] = ["lat", "slat", "clat", "iops", "bw"];

fn of_thread(prefix: &str, number: u32) -> [String; 5] {
    NAMES.map(|name| format!("{prefix}_{name}.{number}.log"))
}

/// The paths of a job's logs; existing files are overwritten.
pub fn paths(job: &StorageJob) -> Vec<String> {
    let Some(prefix) = &job.log_prefix else { return Vec::new() };
    let numbers = (0..job.threads).map(|thread| job.thread_first.saturating_add(thread));
    numbers.flat_map(|number| of_thread(prefix, number)).collect()
}

impl OperationLog {
    /// Creates the files of a thread (from 0 within its job). `None` when the job has no logs.
    pub fn create(job: &StorageJob, thread: u32) -> io::Result<Option<Self>> {
        let Some(prefix) = &job.log_prefix else { return Ok(None) };
        let mut files = Vec::with_capacity(NAMES.len());
        for path in of_thread(prefix, job.thread_first.saturating_add(thread)) {
            let file = File::create(&path)
                .map_err(|error| io::Error::new(error.kind(), format!("cannot write {path}: {error}")))?;
            files.push(BufWriter::new(file));
        }
        let files = <[_; 5]>::try_from(files).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok(Some(Self::new(files, job.log_average_ms)))
    }
}

impl<W: Write> OperationLog<W> {
    fn new(files: [W; 5], average_ms: u32) -> Self {
        let average_ns = u64::from(average_ms) * 1_000_000;
        let window_ns = if average_ns == 0 { RATE_WINDOW_NS } else { average_ns };
        Self {
            files,
            average_ns,
            window_ns,
            latencies: [Sums::default(); 2],
            latencies_end_ns: average_ns,
            rates: [Sums::default(); 2],
            rates_end_ns: window_ns,
            has_rates: false,
            failed: None,
        }
    }

    /// Logs one operation. Times must not decrease.
    pub fn record(&mut self, operation: &Logged) {
        if self.failed.is_none()
            && let Err(error) = self.note(operation)
        {
            self.failed = Some(error);
        }
    }

    /// Writes the rest, of a window that ended at this time.
    pub fn finish(mut self, end_ns: u64) -> io::Result<()> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if self.average_ns > 0 {
            self.write_latencies(self.latencies_end_ns)?;
        }
        if end_ns >= self.rates_end_ns {
            self.write_rates(self.rates_end_ns, self.window_ns)?;
        } else if !self.has_rates {
            // A partial window has a line only if there is no other, because its rate is over another length.
            let length_ns = (end_ns + self.window_ns).saturating_sub(self.rates_end_ns);
            self.write_rates(end_ns, length_ns.max(1))?;
        }
        self.files.iter_mut().try_for_each(Write::flush)
    }

    fn note(&mut self, operation: &Logged) -> io::Result<()> {
        let Logged { at_ns, reads, bytes, submission_ns, completion_ns, total_ns, .. } = *operation;
        let values = [total_ns, submission_ns, completion_ns];
        let direction = usize::from(!reads);
        if self.average_ns == 0 {
            let milliseconds = at_ns / 1_000_000;
            for (file, value) in self.files.iter_mut().zip(values) {
                writeln!(file, "{milliseconds}, {value}, {direction}, {bytes}, 0")?;
            }
        } else {
            while at_ns >= self.latencies_end_ns {
                self.write_latencies(self.latencies_end_ns)?;
                self.latencies_end_ns += self.skip(at_ns, self.latencies_end_ns, self.average_ns);
            }
        }
        while at_ns >= self.rates_end_ns {
            self.write_rates(self.rates_end_ns, self.window_ns)?;
            self.rates_end_ns += self.skip(at_ns, self.rates_end_ns, self.window_ns);
        }
        for sums in [&mut self.latencies[direction], &mut self.rates[direction]] {
            sums.operations += 1;
            sums.bytes += u64::from(bytes);
            sums.ns.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
        Ok(())
    }

    /// The end of the window of a given time: windows without operations have no line.
    fn skip(&self, at_ns: u64, end_ns: u64, length_ns: u64) -> u64 {
        ((at_ns - end_ns) / length_ns + 1) * length_ns
    }

    fn write_latencies(&mut self, end_ns: u64) -> io::Result<()> {
        for (direction, sums) in std::mem::take(&mut self.latencies).into_iter().enumerate() {
            if sums.operations == 0 {
                continue;
            }
            for (file, sum) in self.files.iter_mut().zip(sums.ns) {
                writeln!(file, "{}, {}, {direction}, 0, 0", end_ns / 1_000_000, sum / sums.operations)?;
            }
        }
        Ok(())
    }

    fn write_rates(&mut self, end_ns: u64, length_ns: u64) -> io::Result<()> {
        let seconds = length_ns as f64 / 1e9;
        let [_, _, _, iops_file, bandwidth_file] = &mut self.files;
        for (direction, sums) in std::mem::take(&mut self.rates).into_iter().enumerate() {
            if sums.operations == 0 {
                continue;
            }
            self.has_rates = true;
            let iops = (sums.operations as f64 / seconds).round();
            let kibibytes = (sums.bytes as f64 / 1024.0 / seconds).round();
            writeln!(iops_file, "{}, {iops}, {direction}, 0, 0", end_ns / 1_000_000)?;
            writeln!(bandwidth_file, "{}, {kibibytes}, {direction}, 0, 0", end_ns / 1_000_000)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(at_ms: u64, reads: bool, total_ns: u64) -> Logged {
        Logged {
            at_ns: at_ms * 1_000_000,
            reads,
            offset_bytes: 0,
            bytes: 4096,
            submission_ns: 100,
            completion_ns: total_ns - 100,
            total_ns,
        }
    }

    /// Contents of the lat, slat, clat, iops and bw logs.
    fn logged(average_ms: u32, operations: &[Logged]) -> [String; 5] {
        logged_until(1_000, average_ms, operations)
    }

    fn logged_until(end_ms: u64, average_ms: u32, operations: &[Logged]) -> [String; 5] {
        let mut buffers: [Vec<u8>; 5] = Default::default();
        let mut log = OperationLog::new(buffers.each_mut(), average_ms);
        operations.iter().for_each(|operation| log.record(operation));
        log.finish(end_ms * 1_000_000).expect("memory does not fail");
        buffers.map(|buffer| String::from_utf8(buffer).expect("text"))
    }

    #[test]
    fn every_operation_is_a_line() {
        let [lat, slat, clat, iops, bw] = logged(
            0,
            &[operation(1, true, 50_000), operation(7, false, 60_000), operation(612, true, 70_000)],
        );
        assert_eq!(lat, "1, 50000, 0, 4096, 0\n7, 60000, 1, 4096, 0\n612, 70000, 0, 4096, 0\n");
        assert!(slat.lines().all(|line| line.contains(", 100, ")) && slat.lines().count() == 3, "{slat}");
        assert!(clat.starts_with("1, 49900, 0, 4096, 0\n"), "{clat}");
        assert_eq!(iops, "500, 2, 0, 0, 0\n500, 2, 1, 0, 0\n1000, 2, 0, 0, 0\n");
        assert_eq!(bw, "500, 8, 0, 0, 0\n500, 8, 1, 0, 0\n1000, 8, 0, 0, 0\n");
    }

    #[test]
    fn an_average_is_over_its_window_and_empty_windows_are_left_out() {
        let operations =
            [operation(10, true, 40_000), operation(90, true, 60_000), operation(450, true, 70_000)];
        let [lat, _, _, iops, _] = logged(100, &operations);
        assert_eq!(lat, "100, 50000, 0, 0, 0\n500, 70000, 0, 0, 0\n");
        assert_eq!(iops, "100, 20, 0, 0, 0\n500, 10, 0, 0, 0\n");
    }

    #[test]
    fn a_last_part_of_a_window_has_no_rate_unless_there_is_no_other() {
        let operations: Vec<Logged> = (0..23).map(|step| operation(step * 10, true, 50_000)).collect();
        let [lat, _, _, iops, bw] = logged_until(230, 100, &operations);
        assert_eq!(lat.lines().count(), 3, "a mean is one of any part");
        assert_eq!(iops, "100, 100, 0, 0, 0\n200, 100, 0, 0, 0\n");
        assert_eq!(bw.lines().count(), 2);
        let [_, _, _, iops, _] = logged_until(50, 100, &operations[..5]);
        assert_eq!(iops, "50, 100, 0, 0, 0\n");
        // Operations in flight at the end of the time complete after it, in a separate window.
        let [_, _, _, iops, _] = logged_until(201, 100, &operations[..21]);
        assert_eq!(iops, "100, 100, 0, 0, 0\n200, 100, 0, 0, 0\n");
    }

    #[test]
    fn a_disk_that_is_full_is_told_at_the_end() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::from(io::ErrorKind::StorageFull))
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut log = OperationLog::new([Full, Full, Full, Full, Full], 0);
        log.record(&operation(1, true, 50_000));
        log.record(&operation(2, true, 50_000));
        assert_eq!(log.finish(0).map_err(|error| error.kind()), Err(io::ErrorKind::StorageFull));
    }

    #[test]
    fn a_job_without_a_prefix_has_no_logs() {
        assert!(OperationLog::create(&StorageJob::default(), 0).expect("nothing is opened").is_none());
        let nowhere = StorageJob { log_prefix: Some("/dev/null/log".into()), ..StorageJob::default() };
        let error = OperationLog::create(&nowhere, 0).expect_err("no such folder");
        assert!(error.to_string().contains("/dev/null/log_lat.1.log"), "{error}");
    }
}
