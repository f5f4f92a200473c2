//! One report from those of several generators that loaded one target together. Counts are added, distributions are
//! the sums of histograms, and what is derived from them is derived anew. Pure.

use std::collections::BTreeSet;

use hdrhistogram::Histogram;
use thiserror::Error;

use super::{LittlesLaw, LoadReport, SecondRow, parts::LoadPart, too_short};
use crate::{
    failure::FailureCounts,
    http::{HttpLoadReport, LoadRows, RequestOutcome, StatusCount},
    latency::{HistogramError, LatencySummary, add_decoded, empty_histogram},
    orders::{MISMATCHES_MAX, OrdersLoadReport, ShareBalance},
};

/// Why reports cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MergeError {
    /// There is none.
    #[error("no generator gave a report")]
    Nothing,
    /// A distribution of a generator cannot be read.
    #[error("the {name} of generator {generator} cannot be read: {reason}")]
    Histogram {
        /// Which generator, from 0.
        generator: usize,
        /// Which distribution.
        name: &'static str,
        /// What is wrong with it.
        reason: HistogramError,
    },
    /// It counted more than any generator can in a day.
    #[error("generator {generator} reports {count} of something, which cannot be right")]
    Count {
        /// Which generator, from 0.
        generator: usize,
        /// The count.
        count: u64,
    },
    /// The server gave generators different contents, and each compared with its own.
    #[error(
        "generators {one} and {other} got different contents of {url} as the first right response; the check of one \
         generator would have found that: give the content with --expect-content"
    )]
    Contents {
        /// A generator, from 0.
        one: usize,
        /// Another one.
        other: usize,
        /// The URL, or the name of the request.
        url: String,
    },
}

/// What is the load's own, beside its parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Whole {
    /// Offered rate of all generators; `None` in a closed loop.
    pub rate_per_second: Option<f64>,
    /// Rows of the whole seconds of the window.
    pub seconds: Vec<SecondRow>,
    /// Seconds of the window in which connections were being added.
    pub ramp_seconds: usize,
}

/// The report of all generators together. Their windows have the same length but for what a clock is late; the longest
/// is that of the whole.
///
/// # Errors
/// If there is no part, a histogram cannot be read, or they compared with different contents.
pub fn merged(parts: &[LoadPart], whole: Whole) -> Result<LoadReport, MergeError> {
    let first = parts.first().ok_or(MergeError::Nothing)?;
    check_counts(parts)?;
    check_contents(parts)?;
    let sum = |count: fn(&LoadReport) -> u64| total(parts, |part| count(&part.report));
    let times =
        |name, of: fn(&LoadReport) -> &LatencySummary| summary(parts, name, |part| Some(of(&part.report)));
    let service = times("service times", |report| &report.service)?;
    let window_ns = parts.iter().map(|part| part.report.window_ns).max().unwrap_or(0);
    let mut failures = FailureCounts::default();
    parts.iter().for_each(|part| failures.merge(&part.report.failures));
    let (messages, failed_starts) = (sum(|report| report.messages), sum(|report| report.failed_starts));
    let messages_whole_run = sum(|report| report.messages_whole_run);
    let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let mut report = LoadReport {
        schema_version: first.report.schema_version,
        target: names(parts, |report| &report.target),
        driver: names(parts, |report| &report.driver),
        mode: first.report.mode.clone(),
        connections: narrow(sum(|report| report.connections.into())),
        depth: first.report.depth,
        message_bytes: equal(parts, |part| part.report.message_bytes).unwrap_or(0),
        workers: narrow(sum(|report| report.workers.into())),
        seed: first.report.seed,
        rate_per_second: whole.rate_per_second,
        warmup_ns: parts.iter().map(|part| part.report.warmup_ns).max().unwrap_or(0),
        messages_asked: first.report.messages_asked.map(|_| sum(|report| report.messages_asked.unwrap_or(0))),
        warmup_steady: parts.iter().all(|part| part.report.warmup_steady),
        window_ns,
        messages,
        messages_started: sum(|report| report.messages_started),
        messages_whole_run,
        throughput_per_second: per_second(messages, window_ns),
        bytes_verified: sum(|report| report.bytes_verified),
        failures,
        error_share: error_share(failures.errors().saturating_add(failed_starts), messages_whole_run),
        failure_first: earliest(parts, |part| part.failure_first_ns)
            .and_then(|part| part.report.failure_first.clone()),
        response: times("response times", |report| &report.response)?,
        response_at_least: sum(|report| report.response_at_least),
        send_lag: times("send lags", |report| &report.send_lag)?,
        missed_starts: sum(|report| report.missed_starts),
        missed_starts_free: sum(|report| report.missed_starts_free),
        failed_starts,
        littles_law: LittlesLaw {
            in_flight_mean: in_flight_mean(parts, window_ns),
            throughput_times_latency: if window_ns == 0 {
                0.0
            } else {
                messages as f64 / window_ns as f64 * service.ns_mean
            },
        },
        service,
        generator_cpu_ns: sum(|report| report.generator_cpu_ns),
        generator_busy_max: parts.iter().map(|part| part.report.generator_busy_max).fold(0.0, f64::max),
        generator_bound: parts.iter().any(|part| part.report.generator_bound),
        seconds: whole.seconds,
        ..LoadReport::default()
    };
    report.http = http(parts, &report, whole.ramp_seconds)?;
    report.orders = orders(parts);
    Ok(report)
}

/// Larger counts of a report are wrong. So no sum of some counts of all generators overflows.
const COUNT_MAX: u64 = 1 << 56;

fn check_counts(parts: &[LoadPart]) -> Result<(), MergeError> {
    for (generator, LoadPart { report, .. }) in parts.iter().enumerate() {
        let counts = [
            report.window_ns,
            report.warmup_ns,
            report.messages,
            report.messages_started,
            report.messages_whole_run,
            report.bytes_verified,
            report.failures.errors(),
            report.failures.cut_off_at_end,
            report.missed_starts,
            report.missed_starts_free,
            report.failed_starts,
            report.generator_cpu_ns,
        ];
        if let Some(count) = counts.into_iter().find(|count| *count > COUNT_MAX) {
            return Err(MergeError::Count { generator, count });
        }
    }
    Ok(())
}

/// Failures among all that ended.
pub fn error_share(errors: u64, messages: u64) -> f64 {
    if errors == 0 { 0.0 } else { errors as f64 / (errors as f64 + messages as f64) }
}

fn per_second(count: u64, window_ns: u64) -> f64 {
    if window_ns == 0 { 0.0 } else { count as f64 * 1e9 / window_ns as f64 }
}

fn total(parts: &[LoadPart], count: impl Fn(&LoadPart) -> u64) -> u64 {
    parts.iter().map(count).fold(0, u64::saturating_add)
}

/// The value of all parts; `None` if they differ.
fn equal<T: PartialEq>(parts: &[LoadPart], value: impl Fn(&LoadPart) -> T) -> Option<T> {
    let mut values = parts.iter().map(value);
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

/// The different names of the parts, in order.
fn names(parts: &[LoadPart], name: fn(&LoadReport) -> &String) -> String {
    let mut seen = BTreeSet::new();
    let new = parts.iter().map(|part| name(&part.report).as_str()).filter(|name| seen.insert(*name));
    new.collect::<Vec<_>>().join(", ")
}

/// The part in which something was seen first, each by its own clock from its own start.
fn earliest(parts: &[LoadPart], at_ns: impl Fn(&LoadPart) -> Option<u64>) -> Option<&LoadPart> {
    let seen = parts.iter().filter_map(|part| Some((at_ns(part)?, part)));
    seen.min_by_key(|(at_ns, _)| *at_ns).map(|(_, part)| part)
}

/// The distribution over all parts that have one.
fn summary<'p>(
    parts: &'p [LoadPart],
    name: &'static str,
    of: impl Fn(&'p LoadPart) -> Option<&'p LatencySummary>,
) -> Result<LatencySummary, MergeError> {
    let mut sum: Histogram<u64> = empty_histogram();
    for (generator, part) in parts.iter().enumerate() {
        let Some(summary) = of(part).filter(|summary| !summary.histogram_v2_base64.is_empty()) else {
            continue;
        };
        add_decoded(&summary.histogram_v2_base64, &mut sum).map_err(|reason| MergeError::Histogram {
            generator,
            name,
            reason,
        })?;
    }
    Ok(LatencySummary::from_histogram(&sum))
}

/// Messages in flight, in the mean over the longest window.
fn in_flight_mean(parts: &[LoadPart], window_ns: u64) -> f64 {
    let area = |part: &LoadPart| part.report.littles_law.in_flight_mean * part.report.window_ns as f64;
    if window_ns == 0 { 0.0 } else { parts.iter().map(area).sum::<f64>() / window_ns as f64 }
}

/// Generators without a given content compare with the first right response that each got by itself.
fn check_contents(parts: &[LoadPart]) -> Result<(), MergeError> {
    let longest = parts.iter().map(|part| part.contents.len()).max().unwrap_or(0);
    for place in 0..longest {
        let of = |part: &'_ LoadPart| part.contents.get(place).cloned().flatten();
        let known: Vec<(usize, String)> =
            parts.iter().enumerate().filter_map(|(number, part)| Some((number, of(part)?))).collect();
        let Some(((one, content), rest)) = known.split_first() else { continue };
        if let Some((other, _)) = rest.iter().find(|(_, other)| other != content) {
            let http = parts[*one].report.http.as_ref();
            let name = http.and_then(|http| match http.requests.get(place) {
                Some(request) => Some(request.name.clone()),
                None => http.urls.get(place).cloned(),
            });
            let (one, other) = (*one, *other);
            return Err(MergeError::Contents {
                one,
                other,
                url: name.unwrap_or_else(|| format!("URL {place}")),
            });
        }
    }
    Ok(())
}

fn http(
    parts: &[LoadPart],
    report: &LoadReport,
    ramp_seconds: usize,
) -> Result<Option<HttpLoadReport>, MergeError> {
    let Some(first) = parts.iter().find_map(|part| part.report.http.as_ref()) else { return Ok(None) };
    let all = || parts.iter().filter_map(|part| part.report.http.as_ref());
    let sum = |count: fn(&HttpLoadReport) -> u64| all().map(count).fold(0, u64::saturating_add);
    let times = |name, of: fn(&HttpLoadReport) -> &LatencySummary| {
        summary(parts, name, |part| part.report.http.as_ref().map(of))
    };
    let compared = sum(|http| http.responses_compared);
    Ok(Some(HttpLoadReport {
        urls: first.urls.clone(),
        method: first.method.clone(),
        connection_per_request: first.connection_per_request,
        connect: times("connect times", |http| &http.connect)?,
        first_byte: times("times to the first byte", |http| &http.first_byte)?,
        last_byte: report.service.clone(),
        responses_by_status: statuses(all()),
        responses_compared: compared,
        compared_share: if report.messages == 0 { 0.0 } else { compared as f64 / report.messages as f64 },
        connections_opened: sum(|http| http.connections_opened),
        connections_closed_as_said: sum(|http| http.connections_closed_as_said),
        connections_closed_between: sum(|http| http.connections_closed_between),
        connections_kept_open: sum(|http| http.connections_kept_open),
        requests_withdrawn: sum(|http| http.requests_withdrawn),
        redirects: sum(|http| http.redirects),
        redirect_location: all().find_map(|http| http.redirect_location.clone()),
        bad_response: earliest(parts, |part| part.bad_response_ns)
            .and_then(|part| part.report.http.as_ref()?.bad_response.clone()),
        content_bytes_per_second: per_second(report.bytes_verified, report.window_ns),
        rows: LoadRows::of(report, sum(|http| http.rows.errors), ramp_seconds),
        too_short: too_short(&report.seconds, ramp_seconds),
        requests: requests(first, all()),
        jtl_rows: sum(|http| http.jtl_rows),
        jtl_rows_dropped: sum(|http| http.jtl_rows_dropped),
    }))
}

fn statuses<'p>(all: impl Iterator<Item = &'p HttpLoadReport>) -> Vec<StatusCount> {
    let mut sums: Vec<StatusCount> = Vec::new();
    for StatusCount { status, count } in all.flat_map(|http| &http.responses_by_status).copied() {
        match sums.iter_mut().find(|sum| sum.status == status) {
            Some(sum) => sum.count = sum.count.saturating_add(count),
            None => sums.push(StatusCount { status, count }),
        }
    }
    sums.sort_unstable_by_key(|sum| sum.status);
    sums
}

/// The requests of a mix, which all parts have in one order.
fn requests<'p>(
    first: &HttpLoadReport,
    all: impl Iterator<Item = &'p HttpLoadReport> + Clone,
) -> Vec<RequestOutcome> {
    let add = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
    let of = |(place, row): (usize, &RequestOutcome)| {
        let mut rows = all.clone().filter_map(|http| http.requests.get(place));
        let begun = RequestOutcome {
            right: 0,
            failures: FailureCounts::default(),
            right_in_window: row.right_in_window.map(|_| 0),
            compared_in_window: row.compared_in_window.map(|_| 0),
            content_bytes: None,
            ..row.clone()
        };
        rows.try_fold(begun, |mut sum, row| {
            sum.right = sum.right.saturating_add(row.right);
            sum.failures.merge(&row.failures);
            sum.right_in_window = add(sum.right_in_window, row.right_in_window);
            sum.compared_in_window = add(sum.compared_in_window, row.compared_in_window);
            // A generator that got none of them does not know the length.
            sum.content_bytes = sum.content_bytes.or(row.content_bytes);
            Some(sum)
        })
    };
    first.requests.iter().enumerate().filter_map(of).collect()
}

/// Ways are left out: the exchange stamps by the clock of its host, and each generator reads another one.
fn orders(parts: &[LoadPart]) -> Option<OrdersLoadReport> {
    let first = parts.iter().find_map(|part| part.report.orders.as_ref())?;
    let all = || parts.iter().filter_map(|part| part.report.orders.as_ref());
    let sum = |count: fn(&OrdersLoadReport) -> u64| all().map(count).fold(0, u64::saturating_add);
    let mut received = first.received.clone();
    for (letter, count) in all().skip(1).flat_map(|orders| &orders.received) {
        let sum = received.entry(letter.clone()).or_default();
        *sum = sum.saturating_add(*count);
    }
    Some(OrdersLoadReport {
        sessions: u32::try_from(sum(|orders| orders.sessions.into())).unwrap_or(u32::MAX),
        in_flight: first.in_flight,
        in_flight_scope: first.in_flight_scope.clone(),
        entered: sum(|orders| orders.entered),
        cancels: sum(|orders| orders.cancels),
        replaces: sum(|orders| orders.replaces),
        received,
        sequenced_checked: sum(|orders| orders.sequenced_checked),
        inversions: sum(|orders| orders.inversions),
        shares: ShareBalance {
            entered: sum(|orders| orders.shares.entered),
            executed: sum(|orders| orders.shares.executed),
            cancelled: sum(|orders| orders.shares.cancelled),
            live: sum(|orders| orders.shares.live),
        },
        reconnects: sum(|orders| orders.reconnects),
        mismatches: all().flat_map(|orders| orders.mismatches.iter().cloned()).take(MISMATCHES_MAX).collect(),
        out: None,
        back: None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::orders::Mismatch;

    fn part(change: impl FnOnce(&mut LoadReport)) -> LoadPart {
        let mut report = LoadReport { window_ns: 1_000_000_000, ..LoadReport::default() };
        change(&mut report);
        LoadPart { report, ..LoadPart::default() }
    }

    fn orders_of(parts: &[LoadPart]) -> OrdersLoadReport {
        merged(parts, Whole::default()).expect("they fit").orders.expect("they have orders")
    }

    #[test]
    fn orders_are_added_without_ways_and_with_the_first_mismatches() {
        let of = |sessions, letter: &str, mismatches| {
            part(|report| {
                let times = LatencySummary { count: 1, ..LatencySummary::default() };
                report.orders = Some(OrdersLoadReport {
                    sessions,
                    in_flight: 4,
                    in_flight_scope: "session".into(),
                    entered: 10,
                    cancels: 2,
                    replaces: 3,
                    received: BTreeMap::from([("A".into(), 10), (letter.into(), 5)]),
                    sequenced_checked: 15,
                    inversions: 1,
                    shares: ShareBalance { entered: 100, executed: 60, cancelled: 10, live: 30 },
                    reconnects: 6,
                    mismatches: vec![Mismatch::default(); mismatches],
                    out: Some(times.clone()),
                    back: Some(times),
                });
            })
        };
        let orders = orders_of(&[of(2, "C", 5), of(3, "E", 6)]);
        assert_eq!((orders.sessions, orders.in_flight, orders.mismatches.len()), (5, 4, MISMATCHES_MAX));
        assert_eq!((orders.entered, orders.cancels, orders.replaces), (20, 4, 6));
        let received: Vec<(&str, u64)> =
            orders.received.iter().map(|(letter, count)| (letter.as_str(), *count)).collect();
        assert_eq!(received, [("A", 20), ("C", 5), ("E", 5)]);
        assert_eq!((orders.sequenced_checked, orders.inversions, orders.reconnects), (30, 2, 12));
        let ShareBalance { entered, executed, cancelled, live } = orders.shares;
        assert_eq!([entered, executed, cancelled, live], [200, 120, 20, 60]);
        assert_eq!((orders.out, orders.back), (None, None));
    }

    #[test]
    fn requests_of_a_mix_are_added_by_their_place() {
        let of = |rights: [u64; 2], bytes| {
            let row = |right| RequestOutcome {
                name: "page".into(),
                weight: 2,
                right,
                failures: FailureCounts { short: 1, ..FailureCounts::default() },
                right_in_window: Some(right),
                compared_in_window: Some(1),
                content_bytes: bytes,
            };
            let requests = rights.map(row).to_vec();
            part(|report| report.http = Some(HttpLoadReport { requests, ..HttpLoadReport::default() }))
        };
        let merged = merged(&[of([1, 2], None), of([10, 20], Some(7))], Whole::default()).expect("they fit");
        let requests = merged.http.expect("it is HTTP").requests;
        let seen: Vec<_> = requests
            .iter()
            .map(|row| (row.right, row.right_in_window, row.compared_in_window, row.failures.short))
            .collect();
        assert_eq!(seen, [(11, Some(11), Some(2), 2), (22, Some(22), Some(2), 2)]);
        assert!(requests.iter().all(|row| (row.weight, row.content_bytes) == (2, Some(7))), "{requests:?}");
    }

    #[test]
    fn one_generator_that_was_the_limit_marks_the_whole() {
        let of = |is_bound, driver: &str, window_ns| {
            part(|report| {
                (report.generator_bound, report.driver, report.window_ns) =
                    (is_bound, driver.into(), window_ns);
                report.messages = 500;
            })
        };
        let parts =
            [of(false, "uring", 1_000_000_000), of(true, "epoll", 2_000_000_000), of(false, "uring", 5)];
        let report = merged(&parts, Whole::default()).expect("they fit");
        assert_eq!((report.generator_bound, report.driver.as_str()), (true, "uring, epoll"));
        assert_eq!((report.window_ns, report.throughput_per_second), (2_000_000_000, 750.0));
    }
}
