//! That the reports of generators, merged, are the report of one generator with all their workers.

use std::sync::Arc;

use proptest::prelude::*;
use weir_record::{
    failure::FailureCounts,
    latency::empty_histogram,
    load::{
        LittlesLaw,
        merge::{MergeError, Whole, merged},
        parts::{LoadPart, SecondSums, WorkerShare},
    },
};

use super::*;
use crate::{
    connection_notes::ConnectionNotes,
    failure::{self, Class},
    http::{
        notes::{HttpTotals, ResponseNotes, Right},
        spec::{ExpectedContent, HttpSpec, tests},
    },
    outcome::Outcome,
    recorder::{Interval, IntervalNotes, Leftover, PacedTimes, Section, WindowBounds},
    spec::Protocol,
};

const WORKERS: u32 = 6;
const SECONDS: u64 = 4;
const WINDOW_NS: u64 = 3_200_000_000;
const ORIGIN_NS: u64 = 1_000_000;

fn http() -> HttpSpec {
    HttpSpec { expect_content: ExpectedContent::Bytes(b"content".to_vec()), ..tests::http() }
}

/// A message, or a failure, of one worker.
#[derive(Clone, Debug)]
struct Seen {
    worker: u32,
    second: u64,
    service_ns: u64,
    lag_ns: u64,
    status: u16,
    fails: bool,
}

fn seen() -> impl Strategy<Value = Vec<Seen>> {
    let one = (0..WORKERS, 0..=SECONDS, 1_u64..4_000_000_000_000, 0_u64..9_000_000, 200_u16..204, 0_u32..8);
    prop::collection::vec(one, 0..300).prop_map(|all| {
        let one = |(worker, second, service_ns, lag_ns, status, fails)| Seen {
            worker,
            second,
            service_ns,
            lag_ns,
            status,
            fails: fails == 0,
        };
        all.into_iter().map(one).collect()
    })
}

/// The notes of one worker of this process over one interval; the last second is that after the window.
fn notes(spec: &LoadSpec, share: WorkerShare, worker: u32, second: u64, seen: &[Seen]) -> IntervalNotes {
    let own = || seen.iter().filter(|it| it.worker == worker && it.second == second);
    let right = || own().filter(|it| !it.fails);
    let sections = spec.sections();
    let (mut service, mut paced) = (empty_histogram(), sections.paced.then(PacedTimes::default));
    let mut responses = ResponseNotes::default();
    for it in right() {
        service.saturating_record(it.service_ns);
        if let Some(paced) = &mut paced {
            paced.response.saturating_record(it.service_ns + it.lag_ns);
            paced.lag.saturating_record(it.lag_ns);
            paced.at_least += 1;
        }
        let first_byte_ns = it.service_ns / 2;
        let right = Right { first_byte_ns, content_bytes: 7, compared: it.status == 200, request: None };
        responses.right(&right, 0);
        responses.statuses.add(it.status, 1);
    }
    let messages = right().count() as u64;
    let section: Option<Box<dyn Section>> = sections.own.map(|_| Box::new(responses) as Box<dyn Section>);
    IntervalNotes {
        worker: (worker - share.first) as usize,
        interval: if second == SECONDS { Interval::After } else { Interval::Window(second) },
        messages,
        bytes: 7 * messages,
        started: own().count() as i64,
        errors: own().filter(|it| it.fails).count() as u64,
        service,
        paced,
        section,
        retracted: None,
    }
}

fn outcome(spec: &LoadSpec, worker: u32, seen: &[Seen]) -> Outcome {
    let own = || seen.iter().filter(|it| it.worker == worker);
    let mut failures = FailureCounts { cut_off_at_end: u64::from(worker), ..FailureCounts::default() };
    own().filter(|it| it.fails).for_each(|_| failure::count(&mut failures, Class::Reset, 1));
    let at_ns = |it: &Seen| ORIGIN_NS + it.second * 1_000_000_000 + it.service_ns % 1_000_000_000;
    let mut connections = ConnectionNotes { closed_between: u64::from(worker), ..Default::default() };
    connections.connect.saturating_record(1000 + u64::from(worker));
    Outcome {
        leftover: Leftover { window_area: own().map(|it| u128::from(it.service_ns)).sum(), failures },
        missed: MissedStarts { starts: 2, with_free_connection: 1, overdue: 1 },
        completed: own().filter(|it| !it.fails).count() as u64,
        failure_first: own()
            .filter(|it| it.fails)
            .map(|it| FirstFailure { at_ns: at_ns(it), class: Class::Reset, text: format!("{it:?}") })
            .min_by_key(|first| first.at_ns),
        connections: spec.sections().connections.then_some(connections),
        totals: spec.sections().own.map(|_| Box::new(HttpTotals::default()) as Box<dyn std::any::Any + Send>),
    }
}

/// What a generator with this share of the workers reports, and its seconds.
fn part(spec: &LoadSpec, share: WorkerShare, seen: &[Seen], sums: &mut SecondSums, place: usize) -> LoadPart {
    let mut gather = Gather::new(share.workers as usize, spec.sections());
    gather.hand_over_seconds();
    let workers = share.first..share.first + share.workers;
    for second in 0..=SECONDS {
        workers.clone().for_each(|worker| gather.take(&notes(spec, share, worker, second, seen)));
    }
    let each: Vec<Outcome> = workers.map(|worker| outcome(spec, worker, seen)).collect();
    let bounds = Arc::new(WindowBounds::default());
    let common = spec.protocol.0.common(spec, &bounds).expect("nothing is opened");
    let measured = Measured {
        driver: "epoll",
        share,
        origin_ns: ORIGIN_NS,
        warmup_ns: 5,
        warmup_steady: true,
        window_ns: WINDOW_NS,
        threads: ThreadTimes {
            cpu_ns: vec![1000; share.workers as usize],
            delay_ns: vec![0; share.workers as usize],
        },
        spun_ns: vec![0; share.workers as usize],
        observed: None,
    };
    let part = build_part(spec, &measured, &mut gather, &WorkerOutcomes { each: &each, common });
    for second in gather.take_seconds(usize::MAX) {
        sums.add(place, &second).expect("it was made here");
    }
    part
}

fn spec(is_open: bool, protocol: Protocol) -> LoadSpec {
    let rate_per_second = 6000.0;
    let arrivals = match is_open {
        true => Arrivals::Open { rate_per_second, poisson: true, spin: std::time::Duration::ZERO },
        false => crate::spec::tests::spec().arrivals,
    };
    LoadSpec {
        connections: 20,
        workers: WORKERS,
        messages: (!is_open).then_some(500),
        arrivals,
        protocol,
        ..crate::spec::tests::spec()
    }
}

fn whole_of(spec: &LoadSpec, sums: SecondSums, generators: usize) -> Whole {
    let rate_per_second = match spec.arrivals {
        Arrivals::Open { rate_per_second, .. } => Some(rate_per_second),
        Arrivals::Closed { .. } => None,
    };
    let (seconds, _) = sums.finish(WINDOW_NS, &vec![WINDOW_NS; generators]);
    Whole { rate_per_second, seconds, ramp_seconds: 0 }
}

/// The reports of one generator and of several, for the same messages.
fn both(spec: &LoadSpec, generators: u32, seen: &[Seen]) -> [LoadReport; 2] {
    let all = WorkerShare { first: 0, workers: WORKERS, all: WORKERS };
    let one = part(spec, all, seen, &mut SecondSums::new(1), 0).report;
    let mut sums = SecondSums::new(generators as usize);
    let parts: Vec<LoadPart> = WorkerShare::of_each(generators, WORKERS / generators)
        .enumerate()
        .map(|(place, share)| part(spec, share, seen, &mut sums, place))
        .collect();
    let merged = merged(&parts, whole_of(spec, sums, generators as usize)).expect("they fit");
    [one, merged]
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(1.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn generators_merged_are_one_generator_with_all_their_workers(
        seen in seen(),
        generators in prop::sample::select(vec![1_u32, 2, 3, 6]),
        is_open: bool,
        is_http: bool,
    ) {
        let echo = crate::echo::EchoSpec { message_bytes: 7, connection_per_message: false };
        let protocol = if is_http { http().into() } else { echo.into() };
        let spec = spec(is_open, protocol);
        let [mut one, mut merged] = both(&spec, generators, &seen);
        // Sums of fractions in another order.
        let [law, other] = [one.littles_law, merged.littles_law];
        prop_assert!(near(law.in_flight_mean, other.in_flight_mean), "{law:?} {other:?}");
        prop_assert!(near(law.throughput_times_latency, other.throughput_times_latency), "{law:?} {other:?}");
        // One generator of several that fell behind is not hidden among the others.
        prop_assert!(merged.generator_bound >= one.generator_bound);
        for report in [&mut one, &mut merged] {
            report.littles_law = LittlesLaw::default();
            report.generator_bound = false;
        }
        prop_assert_eq!(merged, one);
    }
}

#[test]
fn generators_that_compared_with_different_contents_are_not_merged() {
    let spec = spec(false, http().into());
    let mut sums = SecondSums::new(2);
    let mut parts: Vec<LoadPart> = WorkerShare::of_each(2, 3)
        .enumerate()
        .map(|(place, share)| part(&spec, share, &[], &mut sums, place))
        .collect();
    assert!(parts[0].contents[0].is_some());
    parts[1].contents[0] = None;
    assert!(merged(&parts, Whole::default()).is_ok(), "it got no right response");
    parts[1].contents[0] = Some("00".into());
    let url = "http://127.0.0.1:7007/".into();
    assert_eq!(merged(&parts, Whole::default()), Err(MergeError::Contents { one: 0, other: 1, url }));
}

#[test]
fn what_no_generator_can_report_is_refused() {
    let spec = spec(false, crate::echo::EchoSpec { message_bytes: 7, connection_per_message: false }.into());
    let share = WorkerShare { first: 0, workers: WORKERS, all: WORKERS };
    let right = part(&spec, share, &[], &mut SecondSums::new(1), 0);
    let mut many = right.clone();
    many.report.messages = u64::MAX;
    assert_eq!(
        merged(&[right.clone(), many], Whole::default()),
        Err(MergeError::Count { generator: 1, count: u64::MAX })
    );
    let mut torn = right.clone();
    torn.report.service.histogram_v2_base64 = "!".into();
    assert!(matches!(
        merged(&[right, torn], Whole::default()),
        Err(MergeError::Histogram { generator: 1, name: "service times", .. })
    ));
    assert_eq!(merged(&[], Whole::default()), Err(MergeError::Nothing));
}
