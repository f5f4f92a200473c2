//! The report of `weir storage run` as people read it.

use weir_record::{
    load::LatencySummary,
    storage::{
        DeviceClock, DirectionReport, NeverBegun, StorageJob, StorageJobReport, StorageReport, WaitingReport,
    },
};
use weir_storage::job::units::shown_bytes;

use crate::command::load_text::latency;

/// Intervals that are shown; `--csv` has all of them.
const INTERVALS_SHOWN: usize = 20;

pub(super) fn table(report: &StorageReport, width_columns: usize) -> String {
    let mut rows = Vec::new();
    for job in &report.jobs {
        if !rows.is_empty() {
            rows.push("-".repeat(width_columns.min(72)));
        }
        rows.extend(one_job(job));
    }
    if !report.notes.is_empty() {
        rows.push(String::new());
        rows.extend(report.notes.iter().cloned());
    }
    rows.join("\n")
}

fn one_job(report: &StorageJobReport) -> Vec<String> {
    let mut rows = report.job.as_ref().map(head).unwrap_or_default();
    let state = if report.failed { " (FAILED: see below)" } else { "" };
    if report.job.as_ref().is_some_and(|job| job.verify_only) {
        return checked(rows, report);
    }
    rows.push(format!("window        {:.2} s{state}", report.elapsed_ns as f64 / 1e9));
    for (name, direction) in [("reads", &report.reads), ("writes", &report.writes)] {
        if direction.operations > 0 {
            rows.extend(one_direction(name, direction, report.elapsed_ns));
        }
    }
    if report.reads.operations + report.writes.operations == 0 {
        rows.push("operations    none was completed in the window".to_owned());
    }
    rows.extend(never_begun(&report.never_begun));
    rows.extend(cpu(report));
    if let Some(waiting) = &report.waiting {
        rows.extend(waits(waiting));
        rows.extend(intervals(report));
    }
    rows.extend(trouble(report));
    rows
}

fn head(job: &StorageJob) -> Vec<String> {
    let direct = if job.direct { "direct" } else { "buffered" };
    let size = job.size_bytes.map(shown_bytes).unwrap_or_else(|| "all".to_owned());
    let mix = if job.pattern.reads() && job.pattern.writes() {
        format!(" ({} % reads)", job.read_percent)
    } else {
        String::new()
    };
    let threads = if job.threads == 1 { String::new() } else { format!("{} threads x ", job.threads) };
    let armed = if job.completion.armed { ", armed" } else { "" };
    let rate = job.rate_iops.map(|rate| format!(", {rate} a second each")).unwrap_or_default();
    vec![
        format!("job           {}: {size} of {}, {direct}", job.name, job.file),
        format!(
            "operations    {}{mix} of {}, {threads}{} in flight{rate}",
            job.pattern,
            shown_bytes(u64::from(job.block_bytes)),
            job.depth
        ),
        format!("engine        {}, waiting by {}{armed}", job.engine, job.completion.predictor),
    ]
}

fn one_direction(name: &str, report: &DirectionReport, elapsed_ns: u64) -> Vec<String> {
    let bandwidth = report.bytes as f64 / 1048.576 / (elapsed_ns.max(1) as f64 / 1e6);
    let mut rows = vec![
        format!("{name:<14}{:.0} IOPS, {bandwidth:.1} MiB/s ({} operations)", report.iops, report.operations),
        format!("  latency     {}", latency(&report.total)),
    ];
    if has_parts(&report.submission) {
        rows.push(format!("  submission  {}", latency(&report.submission)));
        rows.push(format!("  completion  {}", latency(&report.completion)));
    }
    rows
}

/// An engine that is inside the system call until the end has no submission of its own.
fn has_parts(submission: &LatencySummary) -> bool {
    submission.count > 0 && submission.ns_max > 0
}

/// Latencies of what was completed say too little when the rate asked for more.
fn never_begun(report: &NeverBegun) -> Vec<String> {
    if report.operations == 0 {
        return Vec::new();
    }
    vec![
        format!(
            "never begun   {} operations that were due by the rate when the time was over; latencies above are without \
             them",
            report.operations
        ),
        format!("  waited      {}", latency(&report.waited)),
        format!("  latency     of all that were due, at least: {}", latency(&report.total_at_least)),
    ]
}

fn cpu(report: &StorageJobReport) -> Vec<String> {
    let operations = (report.reads.operations + report.writes.operations).max(1) as f64;
    let elapsed_ns = report.elapsed_ns.max(1) as f64;
    let cpu = &report.cpu;
    let own_ns = (cpu.user_ns + cpu.system_ns) as f64;
    let mut rows = vec![
        format!(
            "CPU           {:.2} µs an operation; {:.1} % of a CPU ({:.1} user, {:.1} kernel)",
            (own_ns + cpu.kernel_threads_ns as f64) / 1e3 / operations,
            own_ns * 100.0 / elapsed_ns,
            cpu.user_ns as f64 * 100.0 / elapsed_ns,
            cpu.system_ns as f64 * 100.0 / elapsed_ns
        ),
        format!(
            "switches      {:.4} an operation ({} voluntary, {} not)",
            (cpu.context_switches_voluntary + cpu.context_switches_involuntary) as f64 / operations,
            cpu.context_switches_voluntary,
            cpu.context_switches_involuntary
        ),
    ];
    if cpu.kernel_threads_ns > 0 {
        rows[0].push_str(&format!(
            ", and {:.1} % by kernel threads for it",
            cpu.kernel_threads_ns as f64 * 100.0 / elapsed_ns
        ));
    }
    if cpu.machine_busy_ns > 0 {
        rows.push(format!(
            "machine       {:.1} % of a CPU busy in all",
            cpu.machine_busy_ns as f64 * 100.0 / elapsed_ns
        ));
    }
    rows
}

/// The measurement points.
fn waits(waiting: &WaitingReport) -> Vec<String> {
    if waiting.operations == 0 {
        return Vec::new();
    }
    let share = |part: u64, whole: u64| part as f64 * 100.0 / whole.max(1) as f64;
    let mean = |sum_ns: u64, count: u64| micros(sum_ns as f64 / count.max(1) as f64);
    let WaitingReport { operations, slept, .. } = *waiting;
    let mut rows = vec![format!(
        "waits         {:.1} % slept, {:.1} % polled at once, {:.1} % left to the interrupt",
        share(slept, operations),
        share(waiting.polled, operations),
        share(waiting.interrupted, operations)
    )];
    if slept > 0 {
        rows.push(format!(
            "  misses      {:.2} % of all operations ({:.2} % later than the interrupt); {:.2} % woken by the completion",
            share(waiting.misses, operations),
            share(waiting.misses_harmful, operations),
            share(waiting.woken_early, operations)
        ));
        rows.push(format!(
            "  sleeps      {} asked, {} in fact; effective {}",
            mean(waiting.sleep_requested_ns, slept),
            mean(waiting.sleep_actual_ns, slept),
            mean(waiting.sleep_requested_ns, operations)
        ));
    }
    let whose = match waiting.device_clock {
        DeviceClock::Observed => "device (as seen)",
        DeviceClock::Tracepoint => "device (tracepoints)",
        DeviceClock::Simulated => "device (model)",
    };
    rows.push(format!(
        "  time        {} {whose} + {} overslept + {} waking + {} noticing = {}",
        mean(waiting.device_ns, operations),
        mean(waiting.oversleep_ns, operations),
        mean(waiting.wake_ns, operations),
        mean(waiting.notice_ns, operations),
        mean(waiting.total_ns, operations)
    ));
    if waiting.added.count > 0 {
        rows.push(format!("  added       {}", latency(&waiting.added)));
    }
    rows
}

fn intervals(report: &StorageJobReport) -> Vec<String> {
    if report.intervals.len() < 2 {
        return Vec::new();
    }
    let header = ["second", "IOPS", "misses", "eff. sleep", "CPU"];
    let mut rows = vec![
        String::new(),
        format!("{:>10} {:>10} {:>10} {:>12} {:>8}", header[0], header[1], header[2], header[3], header[4]),
    ];
    for interval in report.intervals.iter().take(INTERVALS_SHOWN) {
        let elapsed_ns = interval.elapsed_ns.max(1) as f64;
        let operations = interval.operations.max(1) as f64;
        rows.push(format!(
            "{:>10.2} {:>10.0} {:>8.2} % {:>12} {:>6.1} %",
            interval.start_ns as f64 / 1e9,
            interval.operations as f64 * 1e9 / elapsed_ns,
            interval.misses as f64 * 100.0 / operations,
            micros(interval.sleep_requested_ns as f64 / operations),
            interval.cpu_ns as f64 * 100.0 / elapsed_ns
        ));
    }
    if report.intervals.len() > INTERVALS_SHOWN {
        rows.push(format!("     ... {} intervals in all; --csv FILE has them", report.intervals.len()));
    }
    rows
}

/// What was found of an earlier run.
fn checked(mut rows: Vec<String>, report: &StorageJobReport) -> Vec<String> {
    rows.truncate(2);
    rows.push(format!(
        "verified      {} blocks read back, {} wrong{}",
        report.verified_blocks,
        report.verify_failures,
        if report.failed { " (FAILED: see below)" } else { "" }
    ));
    rows.push(format!(
        "  apart from  {} that were being written when it ended, never acknowledged",
        report.unacknowledged_blocks
    ));
    rows.push(format!("              {} never written", report.never_written_blocks));
    rows
}

/// What makes a run a failed one, and what was found when it was checked.
fn trouble(report: &StorageJobReport) -> Vec<String> {
    let mut rows = Vec::new();
    if report.fsyncs > 0 {
        rows.push(format!("fsyncs        {}", report.fsyncs));
    }
    if report.verified_blocks > 0 {
        rows.push(format!(
            "verified      {} blocks read back, {} wrong",
            report.verified_blocks, report.verify_failures
        ));
    }
    if !report.errors.is_empty() {
        let list: Vec<String> = report.errors.iter().map(|(name, count)| format!("{count} {name}")).collect();
        rows.push(format!("errors        {}", list.join(", ")));
    }
    rows
}

/// Parts of one time stand in one unit, so that they can be added up by eye.
fn micros(nanoseconds: f64) -> String {
    format!("{:.1} µs", nanoseconds / 1000.0)
}

#[cfg(test)]
mod tests {
    use weir_record::{
        latency::empty_histogram,
        storage::{StorageCpu, WaitingInterval},
    };

    use super::*;

    fn summary() -> LatencySummary {
        let mut histogram = empty_histogram();
        (1..=2000_u64).for_each(|step| histogram.saturating_record(step * 50));
        LatencySummary::from_histogram(&histogram)
    }

    fn report() -> StorageReport {
        let job = StorageJob {
            name: "one".into(),
            file: "data".into(),
            size_bytes: Some(1 << 30),
            ..StorageJob::default()
        };
        let waiting = WaitingReport {
            operations: 2000,
            slept: 1000,
            polled: 1000,
            misses: 50,
            sleep_requested_ns: 20_000_000,
            sleep_actual_ns: 30_000_000,
            device_ns: 80_000_000,
            oversleep_ns: 1_000_000,
            wake_ns: 2_000_000,
            notice_ns: 1_000_000,
            total_ns: 84_000_000,
            ..WaitingReport::default()
        };
        let reads = DirectionReport {
            operations: 2000,
            bytes: 2000 * 4096,
            iops: 1000.0,
            submission: summary(),
            completion: summary(),
            total: summary(),
            ..DirectionReport::default()
        };
        StorageReport {
            jobs: vec![StorageJobReport {
                job: Some(job),
                elapsed_ns: 2_000_000_000,
                reads,
                cpu: StorageCpu { user_ns: 200_000_000, system_ns: 400_000_000, ..StorageCpu::default() },
                waiting: Some(waiting),
                intervals: vec![
                    WaitingInterval { operations: 20, slept: 10, misses: 1, ..Default::default() };
                    30
                ],
                ..StorageJobReport::default()
            }],
            notes: vec!["what a reader must know".into()],
            ..StorageReport::default()
        }
    }

    #[test]
    fn a_job_is_told_from_what_it_was_to_what_it_cost() {
        let text = table(&report(), 100);
        for line in [
            "job           one: 1g of data, direct",
            "operations    randread of 4k, 1 in flight",
            "engine        io_uring, waiting by interrupt",
            "window        2.00 s",
            "reads         1000 IOPS, 3.9 MiB/s (2000 operations)",
            "CPU           300.00 µs an operation; 30.0 % of a CPU (10.0 user, 20.0 kernel)",
            "waits         50.0 % slept, 50.0 % polled at once, 0.0 % left to the interrupt",
            "  misses      2.50 % of all operations (0.00 % later than the interrupt); 0.00 % woken by the completion",
            "  sleeps      20.0 µs asked, 30.0 µs in fact; effective 10.0 µs",
            "  time        40.0 µs device (as seen) + 0.5 µs overslept + 1.0 µs waking + 0.5 µs noticing = 42.0 µs",
            "     ... 30 intervals in all; --csv FILE has them",
            "what a reader must know",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line:?} is not in:\n{text}");
        }
        assert!(!text.contains("writes ") && !text.contains("FAILED"), "{text}");
    }

    #[test]
    fn what_was_never_begun_is_told_beside_the_latencies_that_lack_it() {
        let mut late = report();
        assert!(!table(&late, 100).contains("never begun"));
        let waited = summary();
        late.jobs[0].never_begun = NeverBegun { operations: 2000, total_at_least: waited.clone(), waited };
        let text = table(&late, 100);
        let rows: Vec<&str> =
            text.lines().skip_while(|line| !line.starts_with("never begun")).take(3).collect();
        assert!(rows[0].starts_with("never begun   2000 operations that were due"), "{text}");
        assert!(rows[1].starts_with("  waited      mean ") && rows[2].contains("at least: mean "), "{text}");
    }

    #[test]
    fn a_failed_run_says_what_failed_and_keeps_its_numbers() {
        let mut failed = report();
        failed.jobs[0].failed = true;
        failed.jobs[0].errors = vec![("EIO".into(), 3), ("ENOSPC".into(), 1)];
        (failed.jobs[0].verified_blocks, failed.jobs[0].verify_failures) = (100, 2);
        let text = table(&failed, 100);
        for words in ["FAILED", "3 EIO, 1 ENOSPC", "100 blocks read back, 2 wrong", "1000 IOPS"] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn a_run_without_operations_says_so() {
        let report = StorageReport { jobs: vec![StorageJobReport::default()], ..StorageReport::default() };
        let text = table(&report, 100);
        assert!(text.contains("none was completed") && !text.contains("NaN"), "{text}");
    }
}
