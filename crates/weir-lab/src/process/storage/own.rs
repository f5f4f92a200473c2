//! The command line of a job for `weir storage run`, and its report.

use std::path::Path;

use serde::Deserialize;
use weir_record::{
    spec::StorageSubject,
    storage::{
        CompletionMethod, RingMode, SleepPrimitive, StorageEngineOptions, StorageJobReport, StorageReport,
    },
};

use super::{Job, JobResult, milliseconds};

/// The command line of an arm's job.
pub(super) fn words(weir: &Path, job: &Job<'_>, subject: &StorageSubject) -> Vec<String> {
    let mut words = common(weir, job);
    words.extend(options(&subject.options));
    words.extend(completion(&subject.completion));
    words
}

/// The command line of a background job, which waits for its interrupts.
pub(super) fn background(weir: &Path, job: &Job<'_>) -> Vec<String> {
    common(weir, job)
}

fn common(weir: &Path, job: &Job<'_>) -> Vec<String> {
    let program = weir.display().to_string();
    let mut words: Vec<String> = [program.as_str(), "storage", "run", "--json"].map(str::to_owned).into();
    let mut say = |name: &str, value: String| words.extend([name.to_owned(), value]);
    say("--file", job.file.display().to_string());
    say("--size", job.file_bytes.to_string());
    say("--engine", job.engine.to_string());
    say("--rw", job.pattern.to_string());
    say("--bs", job.block_bytes.to_string());
    say("--depth", job.depth.to_string());
    say("--jobs", job.threads.to_string());
    say("--ramp", format!("{}ms", milliseconds(job.ramp)));
    say("--runtime", format!("{}ms", milliseconds(job.runtime)));
    say("--seed", job.seed.to_string());
    if let Some(interval) = job.interval {
        say("--interval", format!("{}ms", milliseconds(interval)));
    }
    // The job and the background job.
    words.push("--share".to_owned());
    words
}

fn options(options: &StorageEngineOptions) -> Vec<String> {
    let switches = [
        ("--sqpoll", options.sqpoll),
        ("--iopoll", options.iopoll || options.hybrid_iopoll),
        ("--hybrid-iopoll", options.hybrid_iopoll),
        ("--fixed-buffers", options.fixed_buffers),
        ("--fixed-files", options.fixed_files),
        ("--high-priority", options.high_priority),
    ];
    let mut words: Vec<String> =
        switches.iter().filter(|(_, is_on)| *is_on).map(|(name, _)| (*name).to_owned()).collect();
    let mode = match options.ring_mode {
        // The program's default; engines without a ring get no such option.
        RingMode::Defer => return words,
        RingMode::Default => "default",
        RingMode::Coop => "coop",
    };
    words.extend(["--ring-mode".to_owned(), mode.to_owned()]);
    words
}

fn completion(completion: &CompletionMethod) -> Vec<String> {
    let mut words = vec!["--completion".to_owned(), completion.predictor.clone()];
    if completion.armed {
        words.push("--armed".to_owned());
    }
    let sleep = match completion.sleep {
        SleepPrimitive::Auto => return words,
        SleepPrimitive::ClockNanosleep => "clock-nanosleep",
        SleepPrimitive::RingTimeout => "ring-timeout",
        SleepPrimitive::Timerfd => "timerfd",
    };
    words.extend(["--sleep".to_owned(), sleep.to_owned()]);
    words
}

/// The fields that are read of the output.
#[derive(Deserialize)]
struct Printed {
    #[serde(rename = "fio version")]
    version: String,
    weir: StorageReport,
}

/// Reads what the job printed.
pub(super) fn parse_report(printed: &str) -> Result<JobResult, String> {
    let printed: Printed = serde_json::from_str(printed.trim()).map_err(|error| error.to_string())?;
    let StorageReport { mut jobs, notes, .. } = printed.weir;
    let (Some(job), true) = (jobs.pop(), jobs.is_empty()) else {
        return Err("one job was asked for, and not one reports".to_owned());
    };
    let StorageJobReport { reads, writes, errors, cpu, waiting, intervals, calibration_reads, .. } = job;
    let operations = reads.operations + writes.operations;
    let cpu_ns = cpu.user_ns + cpu.system_ns + cpu.kernel_threads_ns;
    let iops = reads.iops + writes.iops;
    // The latency of a mixture is that of its reads, as for fio.
    let latency = if reads.operations > 0 { reads.total } else { writes.total };
    Ok(JobResult {
        tool: tool(&printed.version),
        operations,
        calibration_operations: calibration_reads,
        iops,
        cpu_ns_per_operation: (operations > 0).then(|| cpu_ns as f64 / operations as f64),
        latency,
        errors,
        waiting,
        intervals,
        notes,
    })
}

/// `weir-0.1.0`, in place of fio's version.
fn tool(version: &str) -> String {
    if version.starts_with("weir") { version.to_owned() } else { format!("weir {version}") }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, time::Duration};

    use weir_record::{
        latency::LatencySummary,
        storage::{AccessPattern, DirectionReport, StorageCpu, StorageEngine, WaitingReport},
    };

    use super::*;

    #[test]
    fn a_job_says_what_differs_from_the_programs_defaults() {
        let job = Job {
            file: Path::new("data"),
            file_bytes: 1 << 20,
            engine: StorageEngine::IoUring,
            pattern: AccessPattern::RandRead,
            block_bytes: 512,
            depth: 8,
            threads: 1,
            ramp: Duration::from_millis(300),
            runtime: Duration::from_millis(800),
            interval: None,
            seed: 3,
        };
        let plain = words(Path::new("weir"), &job, &StorageSubject::default()).join(" ");
        assert!(plain.contains("--engine io_uring --rw randread --bs 512 --depth 8 --jobs 1"), "{plain}");
        assert!(plain.ends_with("--completion interrupt"), "{plain}");
        let subject = StorageSubject {
            options: StorageEngineOptions {
                fixed_files: true,
                ring_mode: RingMode::Coop,
                ..Default::default()
            },
            completion: CompletionMethod {
                predictor: "quantile:0.05".to_owned(),
                armed: true,
                sleep: SleepPrimitive::Timerfd,
                ..CompletionMethod::default()
            },
            ..StorageSubject::default()
        };
        let words = words(Path::new("weir"), &job, &subject).join(" ");
        let end = "--fixed-files --ring-mode coop --completion quantile:0.05 --armed --sleep timerfd";
        assert!(words.ends_with(end), "{words}");
    }

    #[test]
    fn a_report_is_read_from_its_own_key() {
        let total = LatencySummary { count: 10, ns_mean: 50_000.0, ..LatencySummary::default() };
        let reads = DirectionReport { operations: 10, iops: 100.0, total, ..DirectionReport::default() };
        let job = StorageJobReport {
            reads,
            cpu: StorageCpu { user_ns: 10, system_ns: 20, kernel_threads_ns: 70, ..StorageCpu::default() },
            waiting: Some(WaitingReport { misses: 4, ..WaitingReport::default() }),
            ..StorageJobReport::default()
        };
        let report =
            StorageReport { jobs: vec![job], notes: vec!["a note".to_owned()], ..StorageReport::default() };
        let weir = serde_json::to_string(&report).expect("it serialises");
        let printed = format!("{{\"fio version\":\"weir-0.1.0\",\"jobs\":[],\"weir\":{weir}}}\n");
        let result = parse_report(&printed).expect("it can be read");
        assert_eq!(
            (result.tool.as_str(), result.operations, result.cpu_ns_per_operation),
            ("weir-0.1.0", 10, Some(10.0))
        );
        assert_eq!(result.waiting.map(|waiting| waiting.misses), Some(4));
        assert_eq!(result.latency.ns_mean, 50_000.0);
        let twice = StorageReport { jobs: vec![StorageJobReport::default(); 2], ..report };
        let weir = serde_json::to_string(&twice).expect("it serialises");
        assert!(super::parse_report(&format!("{{\"fio version\":\"weir\",\"weir\":{weir}}}")).is_err());
    }
}
