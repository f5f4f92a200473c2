//! The report in fio's format, with all additions under the single key `weir`. Pure.
//!
//! Values that fio measures and weir does not (`latency_depth` and the like) are omitted, not invented.

use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};
use weir_record::{
    calendar,
    latency::LatencySummary,
    storage::{DirectionReport, Sequencer, StorageEngine, StorageJob, StorageJobReport, StorageReport},
};

use crate::job::units::{shown_bytes, shown_sizes, shown_skew};

/// Percentiles that fio prints by default.
const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// The caller's facts about the run.
#[derive(Clone, Debug, Default)]
pub struct HostDefaults {
    /// Version of the program.
    pub version: String,
    /// End of the run, in milliseconds since 1970.
    pub timestamp_ms: u64,
    /// From the start of the run to its end.
    pub elapsed_ns: u64,
    /// Entries of `disk_util`.
    pub disks: Vec<Value>,
    /// Global options of a job file, in order.
    pub global_options: Vec<(String, String)>,
    /// Whether completion times include all bins with counts, as in fio's `json+`.
    pub has_bins: bool,
}

/// The report as one object.
pub fn fio_json(report: &StorageReport, host_defaults: &HostDefaults) -> Value {
    let groups = groups(report);
    let row = |(place, _, job): (usize, usize, &StorageJobReport)| {
        let beside = report.jobs.iter().zip(&groups).filter(|(_, group)| **group == groups[place]);
        let beside: Vec<&StorageJobReport> = beside.map(|(job, _)| job).collect();
        one_job(job, &beside, groups[place], host_defaults)
    };
    let mut value = json!({
        "fio version": format!("weir-{}", host_defaults.version),
        "timestamp": host_defaults.timestamp_ms / 1000,
        "timestamp_ms": host_defaults.timestamp_ms,
        "time": written_out(host_defaults.timestamp_ms / 1000),
        "jobs": report.told().into_iter().map(row).collect::<Vec<_>>(),
        "disk_util": host_defaults.disks,
        "weir": report,
    });
    // As in fio, it is present if a job file has any.
    if !host_defaults.global_options.is_empty() {
        let said = host_defaults.global_options.iter();
        let said = said.map(|(key, value)| (key.clone(), Value::String(value.clone())));
        value["global options"] = Value::Object(said.collect());
    }
    value
}

/// A group of fio contains the jobs that run together: it ends where a job waits for earlier ones.
fn groups(report: &StorageReport) -> Vec<u32> {
    let mut group = 0;
    let waits = |job: &StorageJobReport| job.job.as_ref().is_some_and(|job| job.stonewall || job.new_group);
    let number = |(index, job): (usize, &StorageJobReport)| {
        group += u32::from(index > 0 && waits(job));
        group
    };
    report.jobs.iter().enumerate().map(number).collect()
}

/// `beside`: the jobs that ran at the same time, including this one.
fn one_job(
    report: &StorageJobReport,
    beside: &[&StorageJobReport],
    group: u32,
    host_defaults: &HostDefaults,
) -> Value {
    let job = report.job.clone().unwrap_or_default();
    let percentiles = if job.percentiles.is_empty() { PERCENTILES.to_vec() } else { job.percentiles.clone() };
    let direction = |of: fn(&StorageJobReport) -> &DirectionReport| {
        let all = beside.iter().map(|job| rate(of(job).bytes, job.elapsed_ns)).sum();
        let mut value = one_direction(of(report), report.elapsed_ns, all, &percentiles);
        if host_defaults.has_bins {
            value["clat_ns"]["bins"] = bins(&of(report).completion);
        }
        value
    };
    // Relative to the time of all threads, as in fio: 100 % is one CPU per thread.
    let thread_time_ns = (report.elapsed_ns * u64::from(job.threads.max(1))).max(1) as f64;
    let share = |ns: u64| ns as f64 * 100.0 / thread_time_ns;
    let mut value = json!({
        "jobname": job.name,
        "groupid": group,
        "error": u8::from(report.failed),
        "elapsed": host_defaults.elapsed_ns.div_ceil(1_000_000_000),
        "job options": options(&job),
        "read": direction(|report| &report.reads),
        "write": direction(|report| &report.writes),
        "trim": one_direction(&DirectionReport::default(), report.elapsed_ns, 0.0, &percentiles),
        "sync": {
            "total_ios": report.fsyncs,
            "lat_ns": latency(&report.fsync_latency, Some(&percentiles)),
        },
        "job_runtime": report.elapsed_ns / 1_000_000 * u64::from(job.threads.max(1)),
        "usr_cpu": share(report.cpu.user_ns),
        "sys_cpu": share(report.cpu.system_ns),
        "ctx": report.cpu.context_switches_voluntary + report.cpu.context_switches_involuntary,
        "majf": report.cpu.page_faults_major,
        "minf": report.cpu.page_faults_minor,
        "iodepth_level": depths(&report.in_flight),
        "iodepth_submit": at_once(&report.submitted_at_once),
        "iodepth_complete": at_once(&report.completed_at_once),
    });
    let shares = latency_shares(&[&report.reads.completion, &report.writes.completion]);
    if let Value::Object(object) = &mut value {
        object.extend(shares);
    }
    value
}

/// Amount per second.
fn rate(amount: u64, elapsed_ns: u64) -> f64 {
    if elapsed_ns == 0 { 0.0 } else { amount as f64 * 1e9 / elapsed_ns as f64 }
}

/// Percentage of operations by the number in flight at their start, rounded down to powers of two.
fn depths(in_flight: &[u64; 7]) -> Value {
    const NAMES: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
    let total = in_flight.iter().sum::<u64>().max(1) as f64;
    let shares = NAMES
        .iter()
        .zip(in_flight)
        .map(|(name, count)| ((*name).to_owned(), json!(*count as f64 * 100.0 / total)));
    Value::Object(shares.collect())
}

/// Percentage of the calls by the number of operations in each. No call here has zero.
fn at_once(calls: &[u64; 6]) -> Value {
    const NAMES: [&str; 6] = ["4", "8", "16", "32", "64", ">=64"];
    let total = calls.iter().sum::<u64>().max(1) as f64;
    let share = |(name, count): (&&str, &u64)| ((*name).to_owned(), json!(*count as f64 * 100.0 / total));
    let shares = NAMES.iter().zip(calls).map(share);
    Value::Object([("0".to_owned(), json!(0.0))].into_iter().chain(shares).collect())
}

/// A time in fio's form, in UTC: `Mon Nov 30 00:05:30 2026`.
fn written_out(seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let [year, month, day, hour, minute, second] = calendar::utc(seconds);
    let weekday = DAYS[(seconds / 86_400 % 7) as usize];
    let month = MONTHS[(month - 1).rem_euclid(12) as usize];
    format!("{weekday} {month} {day:>2} {hour:02}:{minute:02}:{second:02} {year}")
}

/// `all_bytes` is the bandwidth of all jobs that ran at the same time.
fn one_direction(report: &DirectionReport, elapsed_ns: u64, all_bytes: f64, percentiles: &[f64]) -> Value {
    let rate = |amount: u64| rate(amount, elapsed_ns);
    let runtime_ms = if report.operations == 0 { 0 } else { elapsed_ns / 1_000_000 };
    let (iops, bandwidth) = (&report.iops_spread, &report.bandwidth_spread);
    let kib = |bytes: f64| bytes / 1024.0;
    json!({
        "io_bytes": report.bytes,
        "io_kbytes": report.bytes / 1024,
        "bw_bytes": rate(report.bytes).round() as u64,
        "bw": (rate(report.bytes) / 1024.0).round() as u64,
        "iops": report.iops,
        "runtime": runtime_ms,
        "total_ios": report.operations,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": latency(&report.submission, None),
        "clat_ns": latency(&report.completion, Some(percentiles)),
        "lat_ns": latency(&report.total, None),
        "bw_min": kib(bandwidth.min).round() as u64,
        "bw_max": kib(bandwidth.max).round() as u64,
        "bw_agg": if all_bytes > 0.0 { (bandwidth.mean * 100.0 / all_bytes).min(100.0) } else { 0.0 },
        "bw_mean": kib(bandwidth.mean),
        "bw_dev": kib(bandwidth.stddev),
        "bw_samples": bandwidth.count,
        "iops_min": iops.min.round() as u64,
        "iops_max": iops.max.round() as u64,
        "iops_mean": iops.mean,
        "iops_stddev": iops.stddev,
        "iops_samples": iops.count,
    })
}

fn latency(summary: &LatencySummary, percentiles: Option<&[f64]>) -> Value {
    let mut value = json!({
        "min": summary.ns_min,
        "max": summary.ns_max,
        "mean": summary.ns_mean,
        "stddev": summary.ns_stddev,
        "N": summary.count,
    });
    let histogram = summary.histogram().ok().filter(|histogram| !histogram.is_empty());
    if let (Some(percentiles), Some(histogram)) = (percentiles, histogram) {
        let at = |percentile: &f64| {
            let nanoseconds = histogram.value_at_quantile(percentile / 100.0);
            (format!("{percentile:.6}"), json!(nanoseconds))
        };
        value["percentile"] = Value::Object(percentiles.iter().map(at).collect());
    }
    value
}

/// A histogram as the largest time of each nonempty bin, with its count.
fn bins(summary: &LatencySummary) -> Value {
    let histogram = summary.histogram().ok();
    let recorded = histogram.iter().flat_map(|histogram| {
        histogram
            .iter_recorded()
            .map(|step| (step.value_iterated_to().to_string(), json!(step.count_at_value())))
    });
    Value::Object(recorded.collect())
}

/// Upper limits of fio's latency classes, in the unit of their table.
const CLASSES: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// Percentage of operations in classes of their completion time: `latency_ns`, `latency_us`, `latency_ms`.
fn latency_shares(summaries: &[&LatencySummary]) -> Map<String, Value> {
    let histograms: Vec<Histogram<u64>> =
        summaries.iter().filter_map(|summary| summary.histogram().ok()).collect();
    let total: u64 = histograms.iter().map(Histogram::len).sum();
    let count = |from: u64, to: u64| -> u64 {
        let inside = |histogram: &Histogram<u64>| {
            let in_class = |value: u64| (from..to).contains(&value);
            histogram
                .iter_recorded()
                .filter(|step| in_class(step.value_iterated_to()))
                .map(|step| step.count_at_value())
                .sum::<u64>()
        };
        histograms.iter().map(inside).sum()
    };
    let percent = |from: u64, to: u64| json!(count(from, to) as f64 * 100.0 / total.max(1) as f64);
    let table = |unit: u64, below: u64| -> Map<String, Value> {
        let mut from = below;
        let mut class = |limit: u64| {
            let entry = (limit.to_string(), percent(from, limit * unit));
            from = limit * unit;
            entry
        };
        CLASSES.into_iter().map(&mut class).collect()
    };
    let mut milliseconds = table(1_000_000, 1_000_000);
    milliseconds.insert("2000".to_owned(), percent(1_000_000_000, 2_000_000_000));
    milliseconds.insert(">=2000".to_owned(), percent(2_000_000_000, u64::MAX));
    Map::from_iter([
        ("latency_ns".to_owned(), Value::Object(table(1, 0))),
        ("latency_us".to_owned(), Value::Object(table(1_000, 1_000))),
        ("latency_ms".to_owned(), Value::Object(milliseconds)),
    ])
}

/// The job's options in the form of a job file.
fn options(job: &StorageJob) -> Value {
    let mut options = Map::new();
    let mut say = |key: &str, value: String| drop(options.insert(key.to_owned(), Value::String(value)));
    say("name", job.name.clone());
    if !job.file.is_empty() {
        say("filename", job.file.clone());
    }
    say("rw", pattern(job));
    let (key, value) = shown_sizes(job);
    say(key, value);
    say("direct", u8::from(job.direct).to_string());
    match engine(job.engine) {
        Some(name) => say("ioengine", name.to_owned()),
        None => say("weir_engine", job.engine.to_string()),
    }
    say("iodepth", job.depth.to_string());
    say("numjobs", job.threads.to_string());
    let is_mixed = job.pattern.reads() && job.pattern.writes();
    let seconds = |ns: u64| match ns % 1_000_000_000 {
        0 => (ns / 1_000_000_000).to_string(),
        _ => format!("{}us", ns / 1000),
    };
    let optional = [
        ("rwmixread", is_mixed.then(|| job.read_percent.to_string())),
        ("iodepth_batch", (job.batch_max > 1).then(|| job.batch_max.to_string())),
        ("size", job.size_bytes.map(shown_bytes)),
        ("io_size", job.done_bytes.map(shown_bytes)),
        ("rw_sequencer", (job.sequencer == Sequencer::Identical).then(|| "identical".to_owned())),
        ("random_generator", job.random_wide.then(|| "tausworthe64".to_owned())),
        ("new_group", job.new_group.then(|| "1".to_owned())),
        ("exitall", job.exit_all.then(|| "1".to_owned())),
        ("end_fsync", job.end_fsync.then(|| "1".to_owned())),
        ("loops", (job.loops > 1).then(|| job.loops.to_string())),
        ("offset", (job.offset_bytes > 0).then(|| shown_bytes(job.offset_bytes))),
        ("runtime", job.runtime_ns.map(seconds)),
        ("time_based", job.time_based.then(|| "1".to_owned())),
        ("ramp_time", (job.ramp_ns > 0).then(|| seconds(job.ramp_ns))),
        ("number_ios", job.operations_max.map(|count| count.to_string())),
        (
            "rate_iops",
            by_direction(job.rate_iops.map(u64::from), job.rate_writes_iops.map(u64::from), |rate| {
                rate.to_string()
            }),
        ),
        ("thinktime", (job.think_time_ns > 0).then(|| format!("{}us", job.think_time_ns / 1000))),
        ("rate", by_direction(job.rate_bytes, job.rate_writes_bytes, shown_bytes)),
        ("fdatasync", (job.fdatasync_every > 0).then(|| job.fdatasync_every.to_string())),
        ("random_distribution", shown_skew(job.skew)),
        ("fsync", (job.fsync_every > 0).then(|| job.fsync_every.to_string())),
        ("invalidate", (!job.drops_cache).then(|| "0".to_owned())),
        ("group_reporting", job.group_reporting.then(|| "1".to_owned())),
        ("norandommap", job.no_random_map.then(|| "1".to_owned())),
        ("randrepeat", (!job.random_repeat).then(|| "0".to_owned())),
        ("randseed", Some(job.seed.to_string())),
        ("verify", job.verify_crc32c.then(|| "crc32c".to_owned())),
        ("verify_only", job.verify_only.then(|| "1".to_owned())),
        (
            "weir_completion",
            (job.completion.predictor != "interrupt").then(|| job.completion.predictor.clone()),
        ),
        ("weir_armed", job.completion.armed.then(|| "1".to_owned())),
    ];
    for (key, value) in optional {
        if let Some(value) = value {
            say(key, value);
        }
    }
    Value::Object(options)
}

/// A pattern with its modifier: `randread:8`, `read:4096`.
fn pattern(job: &StorageJob) -> String {
    match (job.random_every, job.stride_bytes) {
        (2.., _) => format!("{}:{}", job.pattern, job.random_every),
        (_, 0) => job.pattern.to_string(),
        (_, stride) => format!("{}:{stride}", job.pattern),
    }
}

/// A value, or separate values for reads and writes if they differ.
fn by_direction(reads: Option<u64>, writes: Option<u64>, shown: impl Fn(u64) -> String) -> Option<String> {
    let reads = shown(reads?);
    Some(match writes.map(shown) {
        Some(writes) if writes != reads => format!("{reads},{writes}"),
        _ => reads,
    })
}

/// fio's name of an engine, if it has that engine.
fn engine(engine: StorageEngine) -> Option<&'static str> {
    match engine {
        StorageEngine::Pread => Some("psync"),
        StorageEngine::Pwritev => Some("pvsync2"),
        StorageEngine::Threads => None,
        StorageEngine::Posixaio => Some("posixaio"),
        StorageEngine::Libaio => Some("libaio"),
        StorageEngine::IoUring => Some("io_uring"),
    }
}

#[cfg(test)]
mod tests {
    use weir_record::{
        latency::empty_histogram,
        storage::{RateSpread, StorageCpu, StorageRow},
    };

    use super::*;

    fn summary(values: impl IntoIterator<Item = u64>) -> LatencySummary {
        let mut histogram = empty_histogram();
        values.into_iter().for_each(|value| histogram.saturating_record(value));
        LatencySummary::from_histogram(&histogram)
    }

    fn report() -> StorageReport {
        let times = || (1..=1000_u64).map(|step| step * 1000);
        let reads = DirectionReport {
            operations: 1000,
            bytes: 4_096_000,
            iops: 500.0,
            submission: summary(times().map(|time| time / 10)),
            completion: summary(times()),
            total: summary(times().map(|time| time + time / 10)),
            iops_spread: RateSpread { count: 2, min: 400.4, max: 599.6, mean: 500.0, stddev: 141.0 },
            bandwidth_spread: RateSpread { count: 2, min: 1024.0, max: 4096.0, mean: 2560.0, stddev: 512.0 },
        };
        let job = StorageJob {
            file: "data".into(),
            size_bytes: Some(1 << 30),
            percentiles: vec![50.0, 99.9],
            runtime_ns: Some(2_000_000_000),
            ..StorageJob::default()
        };
        let of = |job: StorageJob| StorageJobReport {
            job: Some(job),
            elapsed_ns: 2_000_000_000,
            reads: reads.clone(),
            in_flight: [250, 0, 750, 0, 0, 0, 0],
            submitted_at_once: [75, 25, 0, 0, 0, 0],
            completed_at_once: [0, 0, 0, 0, 0, 5],
            fsyncs: 9,
            fsync_latency: summary((1..=9).map(|step| step * 1_000_000)),
            cpu: StorageCpu {
                user_ns: 500_000_000,
                system_ns: 1_000_000_000,
                page_faults_major: 2,
                page_faults_minor: 30,
                ..StorageCpu::default()
            },
            ..StorageJobReport::default()
        };
        let walled = StorageJob { stonewall: true, percentiles: Vec::new(), ..job.clone() };
        StorageReport { jobs: vec![of(job), of(walled)], ..StorageReport::default() }
    }

    #[test]
    fn the_shape_is_fios_and_ours_is_under_one_key() {
        let host_defaults = HostDefaults {
            version: "9.9".into(),
            timestamp_ms: 1500,
            elapsed_ns: 7_000_000_001,
            ..HostDefaults::default()
        };
        let value = fio_json(&report(), &host_defaults);
        assert_eq!(value["jobs"][0]["elapsed"], 8, "of the run, ramp and delay included, as in fio");
        assert_eq!(value["fio version"], "weir-9.9");
        let job = &value["jobs"][0];
        assert_eq!(job["read"]["total_ios"], 1000);
        assert_eq!(job["read"]["bw_bytes"], 2_048_000);
        assert_eq!(job["read"]["bw"], 2000);
        assert_eq!(job["read"]["iops"], 500.0);
        assert_eq!(job["read"]["runtime"], 2000);
        for (key, value) in [
            ("iops_min", json!(400)),
            ("iops_max", json!(600)),
            ("iops_mean", json!(500.0)),
            ("iops_stddev", json!(141.0)),
            ("iops_samples", json!(2)),
            ("bw_min", json!(1)),
            ("bw_max", json!(4)),
            ("bw_mean", json!(2.5)),
            ("bw_dev", json!(0.5)),
            ("bw_samples", json!(2)),
        ] {
            assert_eq!(job["read"][key], value, "{key}");
        }
        assert_eq!((&job["usr_cpu"], &job["sys_cpu"]), (&json!(25.0), &json!(50.0)));
        assert_eq!(job["write"]["total_ios"], 0);
        assert_eq!(job["write"]["clat_ns"].get("percentile"), None);
        assert_eq!((&job["trim"]["total_ios"], &job["trim"]["bw_agg"]), (&json!(0), &json!(0.0)));
        assert_eq!(
            job["iodepth_level"],
            json!({"1": 25.0, "2": 0.0, "4": 75.0, "8": 0.0, "16": 0.0, "32": 0.0, ">=64": 0.0})
        );
        let at_once =
            ["0", "4", "8", "16", "32", "64", ">=64"].map(|name| job["iodepth_submit"][name].as_f64());
        assert_eq!(at_once, [0.0, 75.0, 25.0, 0.0, 0.0, 0.0, 0.0].map(Some));
        assert_eq!(job["iodepth_complete"][">=64"], 100.0);
        assert_eq!((&job["majf"], &job["minf"]), (&json!(2), &json!(30)));
        assert_eq!(value.get("global options"), None, "nothing was said for all jobs");
        // 2560 bytes a second of the 2,048,000 that it transferred.
        assert_eq!(job["read"]["bw_agg"], json!(0.125));
        assert_eq!(value["time"], "Thu Jan  1 00:00:01 1970");
        assert_eq!(job["job options"]["runtime"], "2");
        assert_eq!(job["job options"]["bs"], "4k");
        assert_eq!(job["job options"]["ioengine"], "io_uring");
        assert_eq!((&value["jobs"][0]["groupid"], &value["jobs"][1]["groupid"]), (&json!(0), &json!(1)));
        let ours: StorageReport = serde_json::from_value(value["weir"].clone()).expect("our own report");
        assert_eq!(ours, report());
    }

    #[test]
    fn what_a_job_file_says_for_all_jobs_is_told_as_it_stands_there() {
        let said = [("bs", "4k"), ("time_based", "")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let host_defaults = HostDefaults { global_options: said.to_vec(), ..HostDefaults::default() };
        let value = fio_json(&report(), &host_defaults);
        assert_eq!(value["global options"], json!({"bs": "4k", "time_based": ""}));
    }

    #[test]
    fn jobs_that_asked_for_one_row_have_one() {
        let mut report = report();
        report.jobs.push(report.jobs[0].clone());
        let mut job = report.jobs[1].job.clone().expect("it was asked");
        (job.threads, job.file, job.group_reporting) = (2, String::new(), true);
        let sum = StorageJobReport { job: Some(job), ..report.jobs[1].clone() };
        let row = |replaces_jobs| StorageRow { first: 1, count: 2, replaces_jobs, report: sum.clone() };
        report.rows = vec![row(true)];
        let value = fio_json(&report, &HostDefaults::default());
        let jobs = value["jobs"].as_array().expect("rows");
        assert_eq!((jobs.len(), &jobs[1]["groupid"]), (2, &json!(1)));
        let options = &jobs[1]["job options"];
        assert_eq!((&options["numjobs"], options.get("filename")), (&json!("2"), None));
        report.rows = vec![row(false)];
        let value = fio_json(&report, &HostDefaults::default());
        assert_eq!(value["jobs"].as_array().map(Vec::len), Some(3), "a total is beside them");
    }

    #[test]
    fn percentiles_are_those_asked_for_or_fios_own() {
        let value = fio_json(&report(), &HostDefaults::default());
        let asked = value["jobs"][0]["read"]["clat_ns"]["percentile"].as_object().expect("an object");
        assert_eq!(asked.keys().map(String::as_str).collect::<Vec<_>>(), ["50.000000", "99.900000"]);
        let median = asked["50.000000"].as_u64().expect("a number");
        assert!((499_000..=501_000).contains(&median), "{median}");
        let syncs = &value["jobs"][0]["sync"];
        assert_eq!((&syncs["total_ios"], &syncs["lat_ns"]["N"]), (&json!(9), &json!(9)));
        assert!(syncs["lat_ns"]["percentile"]["99.900000"].as_u64() > Some(8_000_000), "{syncs}");
        assert_eq!(value["jobs"][1]["sync"]["lat_ns"]["N"], 9);
        let own = value["jobs"][1]["read"]["clat_ns"]["percentile"].as_object().expect("an object");
        assert_eq!(own.len(), PERCENTILES.len());
        assert!(own.contains_key("99.990000"));
    }

    #[test]
    fn bins_hold_all_operations_and_are_there_only_where_they_are_asked_for() {
        let bins_of = |has_bins| {
            let value = fio_json(&report(), &HostDefaults { has_bins, ..HostDefaults::default() });
            let read = &value["jobs"][0]["read"];
            let bins = read["clat_ns"]["bins"].as_object().cloned();
            (
                bins.map(|bins| bins.values().filter_map(Value::as_u64).sum::<u64>()),
                read["clat_ns"]["N"].as_u64(),
            )
        };
        assert_eq!(bins_of(false).0, None);
        let (sum, all) = bins_of(true);
        assert!(sum == all && all > Some(0), "{sum:?} {all:?}");
    }

    #[test]
    fn classes_of_latency_hold_all_operations() {
        let value = fio_json(&report(), &HostDefaults::default());
        let job = &value["jobs"][0];
        let sum: f64 = ["latency_ns", "latency_us", "latency_ms"]
            .iter()
            .flat_map(|table| job[*table].as_object().expect("a table").values())
            .map(|share| share.as_f64().expect("a number"))
            .sum();
        assert!((sum - 100.0).abs() < 1e-6, "{sum}");
        let below_50_us = job["latency_us"]["50"].as_f64().expect("a number");
        assert!((2.8..3.2).contains(&below_50_us), "20 to 49 µs: {below_50_us}");
    }
}
