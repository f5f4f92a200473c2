//! The command line of a job for fio, and the conversion of fio's report.

use std::collections::BTreeMap;

use serde::Deserialize;
use weir_record::{
    latency::LatencySummary,
    storage::{AccessPattern, StorageEngine},
};

use super::{Job, JobResult, milliseconds};

/// Quantiles requested from fio.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// Samples that a quantile q needs: this number divided by 1 - q.
const SAMPLES_BEYOND: f64 = 10.0;

/// The command line. It asks for threads instead of processes (`thread`), as ours are: a switch between processes
/// costs more, and that is not what is compared. All jobs report as one.
pub(super) fn words(program: &str, job: &Job<'_>) -> Vec<String> {
    let percentiles = PERCENTILES.map(|percentile| percentile.to_string()).join(":");
    let set = |name: &str, value: String| format!("--{name}={value}");
    let mut words = vec![program.to_owned()];
    words.extend([
        set("name", "weir".to_owned()),
        // A colon would begin another file name.
        set("filename", job.file.display().to_string().replace(':', "\\:")),
        set("size", job.file_bytes.to_string()),
        set("ioengine", engine(job.engine).to_owned()),
        set("rw", job.pattern.to_string()),
        set("bs", job.block_bytes.to_string()),
        set("direct", "1".to_owned()),
        set("iodepth", job.depth.to_string()),
        set("numjobs", job.threads.to_string()),
        set("ramp_time", format!("{}ms", milliseconds(job.ramp))),
        set("runtime", format!("{}ms", milliseconds(job.runtime))),
        // Without the second option the first does not affect offsets, and every trial would read the same blocks.
        set("randseed", job.seed.to_string()),
        set("randrepeat", "0".to_owned()),
        set("percentile_list", percentiles),
        set("lat_percentiles", "1".to_owned()),
        set("allow_file_create", "0".to_owned()),
        set("fallocate", "none".to_owned()),
        set("output-format", "json".to_owned()),
        set("eta", "never".to_owned()),
    ]);
    words.extend(["--time_based", "--thread", "--group_reporting"].map(str::to_owned));
    words
}

/// fio's name of an engine. fio has no counterpart of our thread pool, which `validate` refuses for it.
fn engine(engine: StorageEngine) -> &'static str {
    match engine {
        StorageEngine::Pread | StorageEngine::Threads => "psync",
        StorageEngine::Pwritev => "pvsync2",
        StorageEngine::Posixaio => "posixaio",
        StorageEngine::Libaio => "libaio",
        StorageEngine::IoUring => "io_uring",
    }
}

/// The fields that are read of a report. fio writes undefined numbers as NaN; no value read here can be undefined.
#[derive(Deserialize)]
struct Report {
    #[serde(rename = "fio version")]
    version: String,
    jobs: Vec<JobReport>,
}

#[derive(Deserialize)]
struct JobReport {
    #[serde(default)]
    error: i64,
    read: Direction,
    write: Direction,
    #[serde(default)]
    usr_cpu: f64,
    #[serde(default)]
    sys_cpu: f64,
}

#[derive(Deserialize)]
struct Direction {
    total_ios: u64,
    iops: f64,
    /// Milliseconds.
    runtime: u64,
    lat_ns: Latency,
    clat_ns: Latency,
}

#[derive(Deserialize)]
struct Latency {
    min: u64,
    max: u64,
    mean: f64,
    stddev: f64,
    #[serde(rename = "N", default)]
    samples: u64,
    #[serde(default)]
    percentile: BTreeMap<String, u64>,
}

/// Parses fio's output. Messages may precede the JSON.
pub(super) fn parse_report(printed: &str, job: &Job<'_>) -> Result<JobResult, String> {
    let at = printed.find("\n{").map_or_else(|| printed.find('{').unwrap_or(0), |at| at + 1);
    let mut documents = serde_json::Deserializer::from_str(&printed[at..]).into_iter::<Report>();
    let report = documents.next().ok_or("there is none")?.map_err(|error| error.to_string())?;
    let [own] = report.jobs.as_slice() else {
        return Err(format!("{} jobs report, and one was asked for", report.jobs.len()));
    };
    let writes = matches!(job.pattern, AccessPattern::Write | AccessPattern::RandWrite);
    let direction = if writes { &own.write } else { &own.read };
    let operations = own.read.total_ios + own.write.total_ios;
    let runtime_ns = own.read.runtime.max(own.write.runtime) as f64 * 1e6;
    // Percentages of one thread's time, averaged over all threads.
    let cpu_ns = (own.usr_cpu + own.sys_cpu) / 100.0 * runtime_ns * f64::from(job.threads);
    Ok(JobResult {
        tool: report.version,
        operations,
        iops: own.read.iops + own.write.iops,
        cpu_ns_per_operation: (operations > 0).then(|| cpu_ns / operations as f64),
        latency: latency(direction),
        errors: if own.error == 0 { Vec::new() } else { vec![(error_name(own.error), 1)] },
        ..JobResult::default()
    })
}

/// Latency from submission to completion. An engine that completes while it submits has the same figures under both
/// names.
fn latency(direction: &Direction) -> LatencySummary {
    let total = &direction.lat_ns;
    let with_quantiles = if total.percentile.is_empty() { &direction.clat_ns } else { total };
    let count = if total.samples > 0 { total.samples } else { direction.total_ios };
    let quantiles = with_quantiles.percentile.iter().filter_map(|(percent, ns)| {
        let quantile = percent.parse::<f64>().ok()? / 100.0;
        // As everywhere, a quantile with too few samples is left out.
        (count as f64 * (1.0 - quantile) >= SAMPLES_BEYOND - 1e-6).then_some((quantile, *ns))
    });
    let mut quantiles: Vec<(f64, u64)> = quantiles.collect();
    quantiles.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    LatencySummary {
        count,
        ns_min: total.min,
        ns_mean: total.mean,
        ns_stddev: total.stddev,
        ns_max: total.max,
        quantiles,
        histogram_v2_base64: String::new(),
    }
}

fn error_name(number: i64) -> String {
    let error = i32::try_from(number).map(std::io::Error::from_raw_os_error);
    error.map_or_else(|_| format!("error {number}"), |error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::{path::Path, time::Duration};

    use super::*;

    fn job(pattern: AccessPattern) -> Job<'static> {
        Job {
            file: Path::new("weir-results/storage.dat"),
            file_bytes: 1 << 30,
            engine: StorageEngine::Pwritev,
            pattern,
            block_bytes: 4_096,
            depth: 1,
            threads: 32,
            ramp: Duration::from_millis(300),
            runtime: Duration::from_millis(1_300),
            interval: None,
            seed: 9,
        }
    }

    /// A report, reduced to the fields that are read and a few more.
    fn printed(error: i64) -> String {
        let direction = |total_ios: u64, iops: f64, mean: f64| {
            format!(
                r#"{{"io_bytes":1,"total_ios":{total_ios},"iops":{iops},"runtime":1300,"slat_ns":{{"min":0,"max":0,
                "mean":0.0,"stddev":0.0,"N":0}},"clat_ns":{{"min":1,"max":2,"mean":{mean},"stddev":0.5,"N":{total_ios},
                "percentile":{{"50.000000":7}}}},"lat_ns":{{"min":30000,"max":90000,"mean":{mean},"stddev":0.5,
                "N":{total_ios},"percentile":{{"50.000000":68096,"99.000000":98304,"99.990000":1200000}}}}}}"#
            )
        };
        format!(
            "fio: a word before\n{{\n\"fio version\" : \"fio-3.33\", \"time\":\"x\", \"jobs\":[{{\"jobname\":\"weir\",\
             \"error\":{error},\"read\":{},\"write\":{},\"usr_cpu\":1.0,\"sys_cpu\":3.0,\"ctx\":5}}],\
             \"disk_util\":[]}}\n",
            direction(13_000, 10_000.0, 70_500.5),
            direction(0, 0.0, 0.0),
        )
    }

    #[test]
    fn a_report_is_read_past_what_stands_before_it() {
        let result = parse_report(&printed(0), &job(AccessPattern::RandRead)).expect("it can be read");
        assert_eq!((result.tool.as_str(), result.operations, result.iops), ("fio-3.33", 13_000, 10_000.0));
        // 4 % of 1.3 s of 32 threads over 13,000 operations.
        assert!((result.cpu_ns_per_operation.expect("it says so") - 128_000.0).abs() < 1.0);
        assert_eq!((result.latency.count, result.latency.ns_mean), (13_000, 70_500.5));
        let quantiles = [(0.5, 68_096), (0.99, 98_304)];
        assert_eq!(result.latency.quantiles, quantiles, "the last one rests on two samples");
        assert_eq!(result.errors, []);
    }

    #[test]
    fn an_error_is_one_and_what_is_no_report_is_none() {
        let result_of = |error| parse_report(&printed(error), &job(AccessPattern::RandRead));
        let failed = result_of(5).expect("it can be read");
        assert!(failed.errors[0].0.contains("os error 5"), "{:?}", failed.errors);
        assert!(parse_report("fio: no such engine\n", &job(AccessPattern::RandRead)).is_err());
        assert!(
            parse_report("{\"fio version\":\"fio-3.33\",\"jobs\":[]}", &job(AccessPattern::RandRead))
                .is_err()
        );
    }

    #[test]
    fn the_job_is_said_in_fios_words() {
        let job = Job { file: Path::new("by-path/pci-0:1"), ..job(AccessPattern::RandWrite) };
        let words = words("fio", &job);
        assert_eq!(words[0], "fio");
        for word in [
            "--filename=by-path/pci-0\\:1",
            "--ioengine=pvsync2",
            "--rw=randwrite",
            "--numjobs=32",
            "--ramp_time=300ms",
            "--runtime=1300ms",
            "--randseed=9",
            "--randrepeat=0",
        ] {
            assert!(words.iter().any(|own| own == word), "{word} in {words:?}");
        }
    }
}
