//! The measurement points of each interval as CSV: the source of the figures over time. Pure.

use weir_record::storage::{StorageReport, WaitingInterval};

/// A header, then one row for each interval of each job.
pub fn csv(report: &StorageReport) -> String {
    let mut text = String::from(
        "job,start_s,length_s,operations,iops,slept,misses,miss_rate,sleep_requested_mean_us,sleep_effective_mean_us,\
         sleep_actual_mean_us,cpu_share,machine_busy_share\n",
    );
    for (number, job) in report.jobs.iter().enumerate() {
        let name = job.job.as_ref().map_or_else(|| number.to_string(), |job| quoted(&job.name));
        for interval in &job.intervals {
            text.push_str(&format!("{name},{}\n", row(interval)));
        }
    }
    text
}

fn row(interval: &WaitingInterval) -> String {
    let WaitingInterval { start_ns, elapsed_ns, operations, slept, misses, .. } = *interval;
    let mean_us = |sum_ns: u64, count: u64| ratio(sum_ns, count) / 1e3;
    format!(
        "{:.3},{:.3},{operations},{:.1},{slept},{misses},{:.6},{:.3},{:.3},{:.3},{:.6},{:.6}",
        start_ns as f64 / 1e9,
        elapsed_ns as f64 / 1e9,
        ratio(operations, elapsed_ns) * 1e9,
        // As in the paper, a share of all operations, like the effective sleep below.
        ratio(misses, operations),
        mean_us(interval.sleep_requested_ns, slept),
        mean_us(interval.sleep_requested_ns, operations),
        mean_us(interval.sleep_actual_ns, slept),
        ratio(interval.cpu_ns, elapsed_ns),
        ratio(interval.machine_busy_ns, elapsed_ns),
    )
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A field of CSV (RFC 4180).
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use weir_record::storage::{StorageJob, StorageJobReport};

    use super::*;

    #[test]
    fn an_interval_is_a_row_and_nothing_is_divided_by_zero() {
        let interval = WaitingInterval {
            start_ns: 1_000_000_000,
            elapsed_ns: 500_000_000,
            operations: 1000,
            slept: 500,
            misses: 50,
            sleep_requested_ns: 5_000_000,
            sleep_actual_ns: 7_500_000,
            cpu_ns: 250_000_000,
            machine_busy_ns: 750_000_000,
        };
        let job = StorageJob { name: "a, b".into(), ..StorageJob::default() };
        let report = StorageReport {
            jobs: vec![StorageJobReport {
                job: Some(job),
                intervals: vec![interval, WaitingInterval::default()],
                ..StorageJobReport::default()
            }],
            ..StorageReport::default()
        };
        let text = csv(&report);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        let names = lines[0].split(',').count();
        assert_eq!(
            lines[1],
            "\"a, b\",1.000,0.500,1000,2000.0,500,50,0.050000,10.000,5.000,15.000,0.500000,1.500000"
        );
        assert_eq!(lines[2].replace("\"a, b\"", "name").split(',').count(), names);
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}
