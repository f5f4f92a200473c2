//! The report of a run, from the gathered notes. Pure.

use std::collections::BTreeMap;

use weir_record::{
    SCHEMA_VERSION,
    failure::{FailureCounts, FailureSample},
    latency::LatencySummary,
    load::{
        GENERATOR_BUSY_MAX, LoadReport,
        merge::error_share,
        parts::{LoadPart, WorkerShare, dealt},
    },
    window::ObservedWindow,
};

use crate::{
    gather::Gather,
    littles_law::littles_law,
    outcome::{MissedStarts, WorkerOutcomes},
    recorder::FirstFailure,
    spec::{Arrivals, LoadSpec},
    window_readings::ThreadTimes,
};

/// Missing more than one start in this many is more than the end of a window explains.
const STARTS_PER_MISS: u64 = 1000;

/// The coordinator's readings when the window is closed.
pub(crate) struct Measured {
    pub(crate) driver: &'static str,
    /// The workers of this process.
    pub(crate) share: WorkerShare,
    /// When the load started.
    pub(crate) origin_ns: u64,
    pub(crate) warmup_ns: u64,
    pub(crate) warmup_steady: bool,
    pub(crate) window_ns: u64,
    /// CPU time of the workers in order, then of the coordinator, and how long they waited for a CPU.
    pub(crate) threads: ThreadTimes,
    /// Time that each worker spent watching the clock.
    pub(crate) spun_ns: Vec<u64>,
    pub(crate) observed: Option<ObservedWindow>,
}

/// The report of this process, with what only the coordinator of several generators needs.
pub(crate) fn build_part(
    spec: &LoadSpec,
    measured: &Measured,
    gather: &mut Gather,
    outcomes: &WorkerOutcomes<'_>,
) -> LoadPart {
    let report = build(spec, measured, gather, outcomes);
    let first = outcomes.first_failure();
    let mut part = LoadPart {
        report,
        failure_first_ns: first.map(|first| first.at_ns.saturating_sub(measured.origin_ns)),
        ..LoadPart::default()
    };
    spec.protocol.0.add_to_part(&mut part, measured.origin_ns, outcomes);
    part
}

pub(crate) fn build(
    spec: &LoadSpec,
    measured: &Measured,
    gather: &mut Gather,
    outcomes: &WorkerOutcomes<'_>,
) -> LoadReport {
    let workers = outcomes.each;
    let window_ns = measured.window_ns;
    gather.finish(window_ns);
    let mut failures = FailureCounts::default();
    workers.iter().for_each(|end| failures.merge(&end.leftover.failures));
    let missed = MissedStarts::sum(workers.iter().map(|end| end.missed));
    let area = workers.iter().map(|end| end.leftover.window_area).sum();
    let service = LatencySummary::from_histogram(&gather.window.service);
    let (response, response_at_least, send_lag) = match &gather.paced {
        Some(paced) => {
            let [response, lag] = [&paced.response, &paced.lag].map(LatencySummary::from_histogram);
            (response, paced.at_least, lag)
        }
        None => (service.clone(), 0, LatencySummary::default()),
    };
    let started = u64::try_from(gather.window.started).unwrap_or(0);
    let messages_whole_run: u64 = workers.iter().map(|end| end.completed).sum();
    let (share, messages) = (measured.share, gather.window.messages);
    let mut report = LoadReport {
        schema_version: SCHEMA_VERSION,
        target: spec.target.clone(),
        driver: measured.driver.into(),
        mode: if gather.paced.is_some() { "open" } else { "closed" }.into(),
        connections: share.part_of(spec.connections),
        depth: spec.depth,
        message_bytes: spec.protocol.0.facts().message_bytes,
        workers: share.workers,
        seed: spec.seed,
        settings: BTreeMap::new(), // added by the command line
        rate_per_second: rate_per_second(spec, share),
        warmup_ns: measured.warmup_ns,
        warmup_steady: measured.warmup_steady,
        window_ns,
        messages,
        messages_asked: messages_asked(spec, share),
        messages_started: started,
        messages_whole_run,
        throughput_per_second: if window_ns == 0 { 0.0 } else { messages as f64 * 1e9 / window_ns as f64 },
        bytes_verified: gather.window.bytes,
        failures,
        error_share: error_share(failures.errors() + missed.overdue, messages_whole_run),
        failure_first: outcomes.first_failure().map(sample),
        littles_law: littles_law(area, window_ns, messages, service.ns_mean),
        response,
        response_at_least,
        service,
        send_lag,
        missed_starts: missed.starts,
        missed_starts_free: missed.with_free_connection,
        failed_starts: missed.overdue,
        generator_cpu_ns: measured.threads.cpu_ns.iter().sum(),
        generator_busy_max: busy_max(measured),
        generator_bound: is_generator_bound(measured, &missed, started),
        seconds: gather.seconds.clone(),
        observed: measured.observed.clone(),
        generators: None,
        http: None,
        orders: None,
        storage: None,
    };
    spec.protocol.0.add_section(&mut report, spec, gather, outcomes);
    report
}

fn sample(first: &FirstFailure) -> FailureSample {
    FailureSample { class: first.class.name().into(), text: first.text.clone() }
}

fn rate_per_second(spec: &LoadSpec, share: WorkerShare) -> Option<f64> {
    match spec.arrivals {
        Arrivals::Closed { .. } => None,
        Arrivals::Open { rate_per_second, .. } if share.workers == share.all => Some(rate_per_second),
        Arrivals::Open { rate_per_second, .. } => {
            Some(rate_per_second * f64::from(share.workers) / f64::from(share.all))
        }
    }
}

/// Messages of a counted run that these workers were to send.
fn messages_asked(spec: &LoadSpec, share: WorkerShare) -> Option<u64> {
    let all = spec.messages?;
    if share.workers == share.all {
        return Some(all);
    }
    Some(match spec.protocol.0.facts().messages_each {
        Some(each) => each.saturating_mul(share.part_of(spec.connections).into()),
        None => (share.first..share.first + share.workers).map(|worker| dealt(all, worker, share.all)).sum(),
    })
}

/// Whether the generator was the limit. Missed starts alone do not show it: if every connection waits for the server,
/// the server is slow.
fn is_generator_bound(measured: &Measured, missed: &MissedStarts, started: u64) -> bool {
    // A ready thread that waits for a CPU does not notice that its connections are free.
    let is_occupied = || share_max(measured, |cpu_ns, delay_ns| cpu_ns + delay_ns) > GENERATOR_BUSY_MAX;
    busy_max(measured) > GENERATOR_BUSY_MAX
        || is_late(missed.with_free_connection, started)
        || (is_late(missed.starts, started) && is_occupied())
}

/// Share of the window for which the busiest worker had work. Spinning on the clock counts as waiting.
fn busy_max(measured: &Measured) -> f64 {
    share_max(measured, |cpu_ns, _| cpu_ns)
}

/// The largest share of the window over all workers, of a time computed from a worker's CPU time and its waiting for
/// a CPU.
fn share_max(measured: &Measured, time_ns: impl Fn(u64, u64) -> u64) -> f64 {
    let window_ns = measured.window_ns.max(1) as f64;
    let ThreadTimes { cpu_ns, delay_ns } = &measured.threads;
    let worked =
        cpu_ns.iter().zip(&measured.spun_ns).map(|(cpu_ns, spun_ns)| cpu_ns.saturating_sub(*spun_ns));
    let shares =
        worked.zip(delay_ns).map(|(worked_ns, delay_ns)| time_ns(worked_ns, *delay_ns) as f64 / window_ns);
    shares.fold(0.0, f64::max).min(1.0)
}

fn is_late(missed: u64, started: u64) -> bool {
    missed.saturating_mul(STARTS_PER_MISS) > missed + started
}

#[cfg(test)]
mod merging;

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(cpu_ns: Vec<u64>, spun_ns: Vec<u64>) -> Measured {
        let delay_ns = vec![0; cpu_ns.len()];
        Measured {
            driver: "epoll",
            share: WorkerShare { first: 0, workers: 1, all: 1 },
            origin_ns: 0,
            warmup_ns: 0,
            warmup_steady: true,
            window_ns: 1000,
            threads: ThreadTimes { cpu_ns, delay_ns },
            spun_ns,
            observed: None,
        }
    }

    #[test]
    fn missed_starts_blame_the_generator_only_where_it_was_late_or_had_no_time() {
        let is_bound = |cpu_ns, delay_ns, starts, with_free_connection| {
            let mut measured = measured(vec![cpu_ns, 0], vec![0]);
            measured.threads.delay_ns[0] = delay_ns;
            let missed = MissedStarts { starts, with_free_connection, overdue: 0 };
            is_generator_bound(&measured, &missed, 100)
        };
        assert!(!is_bound(10, 0, 1205, 0), "every connection waits for the server");
        assert!(is_bound(10, 0, 1205, 400), "connections were free");
        assert!(is_bound(600, 390, 1205, 0), "its thread waited for a CPU");
        assert!(!is_bound(600, 390, 0, 0), "and kept its rate all the same");
        assert!(is_bound(960, 0, 0, 0), "its thread was busy");
    }

    #[test]
    fn the_busiest_worker_counts_without_its_spinning_and_without_the_coordinator() {
        assert_eq!(busy_max(&measured(vec![900, 990, 1000], vec![0, 590])), 0.9);
        assert_eq!(busy_max(&measured(vec![1200, 10], vec![0])), 1.0);
    }

    #[test]
    fn the_share_of_errors_is_one_of_all_that_ended() {
        assert_eq!((error_share(0, 0), error_share(3, 0), error_share(1, 3)), (0.0, 1.0, 0.25));
    }

    #[test]
    fn a_start_cut_off_by_the_end_of_the_window_is_not_lateness() {
        assert!(!is_late(0, 0) && !is_late(1, 1000) && !is_late(20, 20_000));
        assert!(is_late(1, 10) && is_late(30, 20_000) && is_late(5, 0));
    }
}
