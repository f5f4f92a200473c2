//! The rows of an aggregate table from the rest of a report, and whether the run was long enough for them. Pure.

use super::{LoadReport, SecondRow};
use crate::{http::LoadRows, latency::LatencySummary};

/// With fewer whole seconds than this the variation of a rate is unknown.
const SECONDS_MIN: usize = 5;
/// The mean rate should be known to within this fraction of itself.
const RATE_ERROR_MAX: f64 = 0.05;
/// Two standard errors on each side are about 95 %.
const STANDARD_ERRORS: f64 = 2.0;

fn steady(seconds: &[SecondRow], ramp_seconds: usize) -> &[SecondRow] {
    seconds.get(ramp_seconds..).unwrap_or_default()
}

impl LoadRows {
    /// The rows of a report with this many failures, whose first seconds belong to a ramp.
    pub fn of(report: &LoadReport, errors: u64, ramp_seconds: usize) -> Self {
        let LatencySummary { count, ns_mean, ns_stddev, ns_max, .. } = report.response;
        let quantile = |quantile| report.response.quantile_ns(quantile);
        let steady = steady(&report.seconds, ramp_seconds);
        let steady_messages = steady.iter().fold(0_u64, |sum, second| sum.saturating_add(second.messages));
        let peak = report.seconds.iter().map(|second| second.messages).max();
        Self {
            samples: count,
            mean_ns: ns_mean,
            median_ns: quantile(0.5),
            p90_ns: quantile(0.9),
            p95_ns: quantile(0.95),
            p99_ns: quantile(0.99),
            p999_ns: quantile(0.999),
            max_ns: ns_max,
            errors,
            stddev_ns: ns_stddev,
            throughput_per_second: if steady.is_empty() {
                report.throughput_per_second
            } else {
                steady_messages as f64 / steady.len() as f64
            },
            throughput_peak_per_second: peak.map_or(report.throughput_per_second, |peak| peak as f64),
        }
    }
}

/// Why the steady ones of these seconds are too few, if they are.
pub fn too_short(seconds: &[SecondRow], ramp_seconds: usize) -> Option<String> {
    let seconds = steady(seconds, ramp_seconds);
    let number = seconds.len();
    if number < SECONDS_MIN {
        let whole = if number == 1 { "whole second" } else { "whole seconds" };
        return Some(format!(
            "it has {number} steady {whole}, and fewer than {SECONDS_MIN} do not show how much the rate varies"
        ));
    }
    let rates: Vec<f64> = seconds.iter().map(|second| second.messages as f64).collect();
    let mean = rates.iter().sum::<f64>() / number as f64;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (number - 1) as f64;
    let error = STANDARD_ERRORS * (variance / number as f64).sqrt();
    (error > RATE_ERROR_MAX * mean).then(|| {
        format!(
            "over its {number} steady seconds the rate is known only to within {:.0} %",
            100.0 * error / mean.max(1.0)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(messages: impl IntoIterator<Item = u64>) -> Vec<SecondRow> {
        messages.into_iter().map(|messages| SecondRow { messages, ..SecondRow::default() }).collect()
    }

    #[test]
    fn the_rows_are_those_of_the_report_over_its_steady_seconds() {
        let report = LoadReport {
            throughput_per_second: 7.0,
            response: LatencySummary {
                count: 40,
                ns_mean: 2.0,
                ns_stddev: 3.0,
                ns_max: 9,
                quantiles: vec![(0.5, 1), (0.9, 5)],
                ..LatencySummary::default()
            },
            seconds: seconds([2, 10, 20, 12]),
            ..LoadReport::default()
        };
        let ramped = LoadRows::of(&report, 4, 2);
        assert_eq!((ramped.samples, ramped.errors, ramped.max_ns), (40, 4, 9));
        assert_eq!((ramped.median_ns, ramped.p90_ns, ramped.p99_ns), (Some(1), Some(5), None));
        assert_eq!((ramped.throughput_per_second, ramped.throughput_peak_per_second), (16.0, 20.0));
        let short = LoadRows::of(&LoadReport { seconds: Vec::new(), ..report }, 0, 2);
        assert_eq!((short.throughput_per_second, short.throughput_peak_per_second), (7.0, 7.0));
    }

    #[test]
    fn few_or_wild_seconds_are_too_short_and_level_ones_are_not() {
        assert_eq!(too_short(&seconds([1000; 5]), 0), None);
        assert!(
            too_short(&seconds([1000; 4]), 0).expect("too few").starts_with("it has 4 steady whole seconds")
        );
        let wild = too_short(&seconds([100, 900, 300, 1500, 50]), 0).expect("too wild");
        assert!(wild.contains("known only to within"), "{wild}");
        assert!(too_short(&seconds([0; 9]), 0).is_none());
    }
}
