//! Parts of one load that run beside each other under a coordinator, against a real server.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::Duration,
};

use weir_load::{Arrivals, LoadError, LoadSpec, PartControl, run_part};
use weir_record::load::{
    LoadReport,
    merge::{Whole, merged},
    parts::{LoadPart, PartAnswer, PartOrder, PartPhase, SecondPart, SecondSums, WorkerShare},
};

use crate::servers::{echo, spec};

/// One part, as it is led.
struct Led {
    orders: Receiver<PartOrder>,
    answers: Sender<PartAnswer>,
}

impl PartControl for Led {
    fn next(&mut self, longest: Duration) -> Option<PartOrder> {
        match self.orders.recv_timeout(longest) {
            Ok(order) => Some(order),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(PartOrder::Stop),
        }
    }

    fn answer(&mut self, answer: PartAnswer) {
        // A coordinator that has left needs no answer.
        let _ = self.answers.send(answer);
    }
}

/// The coordinator's ends of a part.
struct Lead {
    orders: Sender<PartOrder>,
    answers: Receiver<PartAnswer>,
}

impl Lead {
    fn ask(&self, order: PartOrder) -> Option<PartAnswer> {
        self.orders.send(order).ok()?;
        self.answers.recv().ok()
    }

    /// Looks until a part has come so far; its seconds are kept.
    fn until(&self, phase: PartPhase, seconds: &Mutex<Vec<SecondPart>>) {
        while let Some(answer) = self.ask(PartOrder::Look) {
            seconds.lock().expect("no thread panicked").extend(answer.seconds);
            if answer.phase >= phase {
                return;
            }
            thread::park_timeout(Duration::from_millis(1));
        }
    }
}

type Outcome = Result<(LoadPart, Vec<SecondPart>), LoadError>;

/// Runs a load in parts, each led by `lead`. Returns what they left, with the seconds that were taken before.
fn led(
    spec: &LoadSpec,
    shares: &[WorkerShare],
    lead: impl Fn(&[Lead], &[Mutex<Vec<SecondPart>>]),
) -> Vec<(Outcome, Vec<SecondPart>)> {
    let seconds: Vec<Mutex<Vec<SecondPart>>> = shares.iter().map(|_| Mutex::default()).collect();
    let never = AtomicBool::new(false);
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let (mut leads, mut parts) = (Vec::new(), Vec::new());
        for share in shares.iter().copied() {
            let (orders, ordered) = mpsc::channel();
            let (answer, answers) = mpsc::channel();
            let mut control = Led { orders: ordered, answers: answer };
            let never = &never;
            parts.push(scope.spawn(move || run_part(spec, share, &mut control, never)));
            leads.push(Lead { orders, answers });
        }
        lead(&leads, &seconds);
        drop(leads);
        parts.into_iter().map(|part| part.join().expect("it does not panic")).collect()
    });
    let taken = seconds.into_iter().map(|seconds| seconds.into_inner().expect("no thread panicked"));
    outcomes.into_iter().zip(taken).collect()
}

/// Starts all parts, and follows them to the end of their windows.
fn start_and_follow(leads: &[Lead], seconds: &[Mutex<Vec<SecondPart>>]) {
    let each = || leads.iter().zip(seconds);
    each().for_each(|(lead, seconds)| lead.until(PartPhase::Connected, seconds));
    leads.iter().for_each(|lead| drop(lead.ask(PartOrder::Start)));
    each().for_each(|(lead, seconds)| lead.until(PartPhase::Ending, seconds));
}

fn whole(outcomes: Vec<(Outcome, Vec<SecondPart>)>, rate_per_second: Option<f64>) -> LoadReport {
    let mut sums = SecondSums::new(outcomes.len());
    let mut parts = Vec::new();
    for (place, (outcome, taken)) in outcomes.into_iter().enumerate() {
        let (part, left) = outcome.expect("a part");
        assert!(part.report.seconds.is_empty(), "the coordinator makes the rows");
        taken.iter().chain(&left).for_each(|second| sums.add(place, second).expect("it is right"));
        parts.push(part);
    }
    let own: Vec<u64> = parts.iter().map(|part| part.report.window_ns).collect();
    let (seconds, _) = sums.finish(own.iter().copied().max().unwrap_or(0), &own);
    merged(&parts, Whole { rate_per_second, seconds, ramp_seconds: 0 }).expect("they fit")
}

#[test]
fn a_counted_load_in_parts_sends_exactly_that_many_messages() {
    let spec = LoadSpec { connections: 7, workers: 4, messages: Some(2003), ..spec(echo()) };
    let shares: Vec<WorkerShare> = WorkerShare::of_each(2, 2).collect();
    let report = whole(led(&spec, &shares, start_and_follow), None);
    assert_eq!((report.messages, report.messages_asked, report.messages_started), (2003, Some(2003), 2003));
    assert_eq!((report.connections, report.workers, report.bytes_verified), (7, 4, 2003 * 64));
    assert_eq!((report.service.count, report.failures.errors()), (2003, 0));
}

#[test]
fn an_open_loop_in_parts_keeps_the_schedule_of_the_whole() {
    let rate_per_second = 1000.0;
    let spec = LoadSpec {
        connections: 6,
        workers: 3,
        arrivals: Arrivals::Open { rate_per_second, poisson: false, spin: Duration::ZERO },
        messages: None,
        duration: Duration::from_millis(1200),
        ..spec(echo())
    };
    let shares: Vec<WorkerShare> = WorkerShare::of_each(3, 1).collect();
    let report = whole(led(&spec, &shares, start_and_follow), Some(rate_per_second));
    // Every start of the window that was intended has a response time.
    let intended = report.window_ns as f64 / 1e9 * rate_per_second;
    assert!((report.response.count as f64 - intended).abs() <= 3.0, "{intended} {report:?}");
    assert_eq!((report.seconds.len(), report.mode.as_str()), (1, "open"));
    // A message counts in the second of its answer, which comes late on a busy machine.
    let late = 10 + report.response.ns_max / 1_000_000;
    assert!(report.seconds[0].messages.abs_diff(1000) <= late, "{:?} {late}", report.seconds);
}

#[test]
fn the_window_opens_when_the_coordinator_says_so_and_an_order_to_stop_ends_it() {
    let spec = LoadSpec {
        connections: 2,
        messages: None,
        warmup_max: Duration::from_secs(3600),
        duration: Duration::from_secs(3600),
        ..spec(echo())
    };
    let share = WorkerShare { first: 0, workers: 1, all: 1 };
    let outcomes = led(&spec, &[share], |leads, seconds| {
        let [lead] = leads else { panic!("one part") };
        lead.until(PartPhase::Connected, &seconds[0]);
        let started = lead.ask(PartOrder::Start).expect("it answers");
        assert_eq!(started.phase, PartPhase::WarmingUp);
        lead.until(PartPhase::WarmingUp, &seconds[0]);
        let opened = lead.ask(PartOrder::Open).expect("it answers");
        assert_eq!(opened.phase, PartPhase::Measuring);
        while lead.ask(PartOrder::Look).is_some_and(|answer| answer.messages == 0) {}
        assert!(lead.ask(PartOrder::Stop).is_some());
    });
    let report = whole(outcomes, None);
    assert!(report.messages_whole_run > 0 && report.window_ns < 60_000_000_000, "{report:?}");
}

#[test]
fn a_load_that_is_ended_as_it_starts_has_a_window_of_no_length() {
    let spec = LoadSpec { messages: None, duration: Duration::from_secs(3600), ..spec(echo()) };
    let share = WorkerShare { first: 0, workers: 1, all: 1 };
    let outcomes = led(&spec, &[share], |leads, seconds| {
        leads[0].until(PartPhase::Connected, &seconds[0]);
        // Workers begin some milliseconds after the order.
        leads[0].orders.send(PartOrder::Start).expect("it listens");
        leads[0].orders.send(PartOrder::Stop).expect("it listens");
    });
    let report = whole(outcomes, None);
    assert!(report.window_ns < 1_000_000_000, "{report:?}");
}

#[test]
fn a_part_ends_with_its_coordinator_and_refuses_a_share_of_another_load() {
    let spec = LoadSpec { messages: None, duration: Duration::from_secs(3600), ..spec(echo()) };
    let share = WorkerShare { first: 0, workers: 1, all: 1 };
    let mut outcomes = led(&spec, &[share], |leads, seconds| {
        leads[0].until(PartPhase::Connected, &seconds[0]);
    });
    let (outcome, _) = outcomes.remove(0);
    assert!(matches!(outcome, Err(LoadError::Interrupted)), "{outcome:?}");
    for share in [
        WorkerShare { first: 1, workers: 1, all: 1 },
        WorkerShare { first: 0, workers: 0, all: 1 },
        WorkerShare { first: 0, workers: 1, all: 2 },
        WorkerShare { first: u32::MAX, workers: 2, all: 1 },
    ] {
        let (outcome, _) = led(&spec, &[share], |_, _| ()).remove(0);
        assert!(matches!(outcome, Err(LoadError::Invalid { field: "workers", .. })), "{outcome:?}");
    }
    let stopped = AtomicBool::new(true);
    let (orders, ordered) = mpsc::channel();
    let mut control = Led { orders: ordered, answers: mpsc::channel().0 };
    let outcome = run_part(&spec, share, &mut control, &stopped);
    assert!(matches!(outcome, Err(LoadError::Interrupted)) && stopped.load(Ordering::Relaxed));
    drop(orders);
}
