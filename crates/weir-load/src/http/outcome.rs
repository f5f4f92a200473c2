//! The HTTP part of a report, from what was gathered. Pure.

use weir_record::{
    http::{HttpLoadReport, LoadRows, RequestOutcome},
    latency::LatencySummary,
    load::{LoadReport, SecondRow},
};

use super::{
    across_workers::HttpCommon,
    notes::{HttpTotals, RequestCounts, ResponseNotes},
    spec::HttpSpec,
    workload::is_redirect,
};
use crate::{connection_notes::ConnectionNotes, outcome::WorkerOutcomes, spec::LoadSpec};

/// With fewer whole seconds than this the variation of a rate is unknown.
const SECONDS_MIN: usize = 5;
/// The mean rate should be known to within this fraction of itself.
const RATE_ERROR_MAX: f64 = 0.05;
/// Two standard errors on each side are about 95 %.
const STANDARD_ERRORS: f64 = 2.0;

/// The HTTP part of a report, from the rest of the report, the notes of responses, and the number of failures.
pub(crate) fn section(
    http: &HttpSpec,
    report: &LoadReport,
    spec: &LoadSpec,
    (responses, errors): (&ResponseNotes, u64),
    outcomes: &WorkerOutcomes<'_>,
) -> HttpLoadReport {
    let totals = || outcomes.totals::<HttpTotals>();
    let written = outcomes.common().map(HttpCommon::written).unwrap_or_default();
    let mut connections = ConnectionNotes::default();
    outcomes
        .each
        .iter()
        .filter_map(|end| end.connections.as_ref())
        .for_each(|notes| connections.merge(notes));
    let mut statuses = responses.statuses.list().to_vec();
    statuses.sort_unstable_by_key(|entry| entry.status);
    let redirects = statuses.iter().filter(|entry| is_redirect(entry.status)).map(|entry| entry.count).sum();
    let connect = LatencySummary::from_histogram(&connections.connect);
    // Responses followed by extra bytes were right when they were compared.
    let compared = responses.compared.min(report.messages);
    let ramp_seconds = ramp_seconds(spec);
    HttpLoadReport {
        urls: http.urls.iter().map(|url| url.text.clone()).collect(),
        method: if http.is_mix() { String::new() } else { http.method.clone() },
        connection_per_request: http.connection_per_request,
        connections_opened: connect.count,
        connect,
        first_byte: LatencySummary::from_histogram(&responses.first_byte),
        last_byte: report.service.clone(),
        responses_by_status: statuses,
        responses_compared: compared,
        compared_share: if report.messages == 0 { 0.0 } else { compared as f64 / report.messages as f64 },
        connections_closed_as_said: connections.closed_as_said,
        connections_closed_between: connections.closed_between,
        connections_kept_open: connections.kept_open,
        requests_withdrawn: connections.withdrawn,
        redirects,
        redirect_location: totals().find_map(|totals| totals.redirect_location.clone()),
        bad_response: totals()
            .filter_map(|totals| totals.bad_response.as_ref())
            .min_by_key(|sample| sample.at_ns)
            .map(|sample| sample.report(http)),
        content_bytes_per_second: if report.window_ns == 0 {
            0.0
        } else {
            report.bytes_verified as f64 * 1e9 / report.window_ns as f64
        },
        rows: rows(report, errors, ramp_seconds),
        too_short: too_short(steady(&report.seconds, ramp_seconds)),
        requests: by_request(http, responses, outcomes.common(), totals()),
        jtl_rows: written.rows,
        jtl_rows_dropped: written.dropped,
    }
}

/// Counts of each request of a mix, over all workers.
fn by_request<'a>(
    http: &HttpSpec,
    responses: &ResponseNotes,
    common: Option<&HttpCommon>,
    totals: impl Iterator<Item = &'a HttpTotals>,
) -> Vec<RequestOutcome> {
    let mix = http.urls.iter().filter_map(|url| Some((url, url.own.as_deref()?)));
    let mut rows: Vec<RequestOutcome> = mix
        .map(|(url, own)| RequestOutcome {
            name: url.text.clone(),
            weight: own.weight,
            ..RequestOutcome::default()
        })
        .collect();
    let mut sums = vec![RequestCounts::default(); rows.len()];
    for totals in totals {
        sums.iter_mut().zip(&totals.by_request).for_each(|(sum, counts)| sum.merge(counts));
    }
    for (request, (row, RequestCounts { right, failures })) in rows.iter_mut().zip(sums).enumerate() {
        (row.right, row.failures) = (right, failures);
        let in_window = responses.by_request.get(request).copied().unwrap_or_default();
        row.right_in_window = Some(in_window.right);
        let is_compared = common.is_some_and(|common| !common.expected.is_any(request));
        row.compared_in_window = is_compared.then_some(in_window.compared);
        row.content_bytes = common.and_then(|common| common.expected.length(request));
    }
    rows
}

/// Seconds of the window in which connections were still being added.
fn ramp_seconds(spec: &LoadSpec) -> usize {
    // With a warm-up the ramp is over before the window opens.
    if spec.warmup_max.is_zero() { spec.ramp_up.as_nanos().div_ceil(1_000_000_000) as usize } else { 0 }
}

fn steady(seconds: &[SecondRow], ramp_seconds: usize) -> &[SecondRow] {
    seconds.get(ramp_seconds..).unwrap_or_default()
}

fn rows(report: &LoadReport, errors: u64, ramp_seconds: usize) -> LoadRows {
    let LatencySummary { count, ns_mean, ns_stddev, ns_max, .. } = report.response;
    let quantile = |quantile| report.response.quantile_ns(quantile);
    let steady = steady(&report.seconds, ramp_seconds);
    let steady_messages: u64 = steady.iter().map(|second| second.messages).sum();
    let peak = report.seconds.iter().map(|second| second.messages).max();
    LoadRows {
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

/// Why these seconds are too few, if they are.
fn too_short(seconds: &[SecondRow]) -> Option<String> {
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
    use std::time::Duration;

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
        let ramped = rows(&report, 4, 2);
        assert_eq!((ramped.samples, ramped.errors, ramped.max_ns), (40, 4, 9));
        assert_eq!((ramped.median_ns, ramped.p90_ns, ramped.p99_ns), (Some(1), Some(5), None));
        assert_eq!((ramped.throughput_per_second, ramped.throughput_peak_per_second), (16.0, 20.0));
        let short = rows(&LoadReport { seconds: Vec::new(), ..report }, 0, 2);
        assert_eq!((short.throughput_per_second, short.throughput_peak_per_second), (7.0, 7.0));
    }

    #[test]
    fn a_ramp_is_part_of_the_window_only_without_a_warm_up() {
        let spec = LoadSpec { ramp_up: Duration::from_millis(1500), ..crate::spec::tests::spec() };
        assert_eq!(ramp_seconds(&spec), 2);
        assert_eq!(ramp_seconds(&LoadSpec { warmup_max: Duration::from_secs(1), ..spec }), 0);
    }

    #[test]
    fn few_or_wild_seconds_are_too_short_and_level_ones_are_not() {
        assert_eq!(too_short(&seconds([1000; 5])), None);
        assert!(
            too_short(&seconds([1000; 4])).expect("too few").starts_with("it has 4 steady whole seconds")
        );
        let wild = too_short(&seconds([100, 900, 300, 1500, 50])).expect("too wild");
        assert!(wild.contains("known only to within"), "{wild}");
        assert!(too_short(&seconds([0; 9])).is_none());
    }
}
