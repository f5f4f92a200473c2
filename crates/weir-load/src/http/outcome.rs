//! The HTTP part of a report, from what was gathered. Pure.

use weir_record::{
    http::{HttpLoadReport, LoadRows, RequestOutcome},
    latency::LatencySummary,
    load::{LoadReport, too_short},
};

use super::{
    across_workers::HttpCommon,
    notes::{HttpTotals, RequestCounts, ResponseNotes},
    sample::Sample,
    spec::HttpSpec,
    workload::is_redirect,
};
use crate::{connection_notes::ConnectionNotes, outcome::WorkerOutcomes, spec::LoadSpec};

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
        bad_response: bad_response(outcomes).map(|sample| sample.report(http)),
        content_bytes_per_second: if report.window_ns == 0 {
            0.0
        } else {
            report.bytes_verified as f64 * 1e9 / report.window_ns as f64
        },
        rows: LoadRows::of(report, errors, ramp_seconds),
        too_short: too_short(&report.seconds, ramp_seconds),
        requests: by_request(http, responses, outcomes.common(), totals()),
        jtl_rows: written.rows,
        jtl_rows_dropped: written.dropped,
    }
}

/// The first bad response of all workers.
pub(crate) fn bad_response<'a>(outcomes: &'a WorkerOutcomes<'_>) -> Option<&'a Sample> {
    let all = outcomes.totals::<HttpTotals>().filter_map(|totals| totals.bad_response.as_ref());
    all.min_by_key(|sample| sample.at_ns)
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
pub(crate) fn ramp_seconds(spec: &LoadSpec) -> usize {
    // With a warm-up the ramp is over before the window opens.
    if spec.warmup_max.is_zero() { spec.ramp_up.as_nanos().div_ceil(1_000_000_000) as usize } else { 0 }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_ramp_is_part_of_the_window_only_without_a_warm_up() {
        let spec = LoadSpec { ramp_up: Duration::from_millis(1500), ..crate::spec::tests::spec() };
        assert_eq!(ramp_seconds(&spec), 2);
        assert_eq!(ramp_seconds(&LoadSpec { warmup_max: Duration::from_secs(1), ..spec }), 0);
    }
}
