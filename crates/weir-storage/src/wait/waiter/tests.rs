//! Single waits, over a fake engine in virtual time.

use std::{
    cell::RefCell,
    rc::Rc,
    sync::{Arc, Mutex},
};

use super::*;
use crate::{
    measure::Parts,
    wait::fake::{FakeEngine, FakeTime, INTERRUPT_NS, LAG_NS, LOOK_NS, SUBMIT_NS, World},
};

const COSTS: Costs = Costs {
    submit_ns: SUBMIT_NS,
    sleep_cpu_ns: 1_500,
    interrupt_cpu_ns: 2_500,
    interrupt_lag_ns: INTERRUPT_NS,
    wake_lag_ns: LAG_NS,
};

/// Returns the plans in turn and keeps its inputs.
struct Scripted {
    plans: Vec<Plan>,
    next: usize,
    outcomes: Arc<Mutex<Vec<Outcome>>>,
}

impl Predictor for Scripted {
    fn plan(&mut self, _issued: &Issued) -> Plan {
        self.next += 1;
        self.plans[(self.next - 1) % self.plans.len()]
    }

    fn observe(&mut self, outcome: &Outcome) {
        self.outcomes.lock().expect("no test panics with it").push(*outcome);
    }
}

struct Bench {
    world: World,
    engine: FakeEngine,
    waiter: Waiter<FakeTime>,
    flights: InFlightTable,
    outcomes: Arc<Mutex<Vec<Outcome>>>,
    completed: Rc<RefCell<Vec<Completed>>>,
}

impl Bench {
    fn new(times_ns: &[u64], plans: &[Plan], armed: bool) -> Self {
        let outcomes = Arc::default();
        let predictor =
            Box::new(Scripted { plans: plans.to_vec(), next: 0, outcomes: Arc::clone(&outcomes) });
        Self::with_method(times_ns, Method::Hybrid { predictor, armed }, outcomes)
    }

    fn with_method(times_ns: &[u64], method: Method, outcomes: Arc<Mutex<Vec<Outcome>>>) -> Self {
        let world = World::default();
        Self {
            engine: FakeEngine::new(&world, times_ns),
            waiter: Waiter::new(FakeTime(world.clone()), method, COSTS),
            flights: InFlightTable::new(8),
            world,
            outcomes,
            completed: Rc::default(),
        }
    }

    fn submit(&mut self, slots: std::ops::Range<u32>) {
        for slot in slots {
            let operation = Operation { slot, kind: OperationKind::Read, offset_bytes: 0, bytes: 4096 };
            let started_ns = self.world.now_ns();
            self.engine.submit(&[operation]).expect("a fake");
            let mut flight = InFlight {
                operation,
                intended_ns: started_ns,
                started_ns,
                handed_ns: self.world.now_ns(),
                plan: Plan::Poll,
                in_flight: self.flights.count() + 1,
                woken_ns: None,
            };
            self.waiter.plan(&mut flight);
            self.flights.insert(flight);
        }
    }

    /// Waits once; returns slots and measurements of the completions.
    fn wait(&mut self, limit_ns: Option<u64>) -> Vec<(u32, Measured)> {
        let mut completed = self.completed.borrow_mut();
        completed.clear();
        let now_ns = self.world.now_ns();
        let wait = self
            .waiter
            .wait(&mut self.engine, &mut self.flights, now_ns, limit_ns, &mut completed)
            .expect("a fake");
        let finish = |done: &Completed| {
            let flight = self.flights.remove(done.slot).expect("it was in flight");
            (done.slot, self.waiter.complete(&flight, wait, true))
        };
        completed.iter().map(finish).collect()
    }

    fn one(&mut self) -> Measured {
        self.submit(0..1);
        let found = self.wait(None);
        assert_eq!(found.len(), 1);
        found[0].1
    }

    fn last_outcome(&self) -> Outcome {
        *self.outcomes.lock().expect("no test panics with it").last().expect("something was told")
    }
}

#[test]
fn a_sleep_in_time_is_followed_by_looking() {
    let mut bench = Bench::new(&[40_000], &[Plan::Sleep { ns: 20_000 }], false);
    let measured = bench.one();
    assert_eq!(measured.woken_ns, Some(SUBMIT_NS + 20_000 + LAG_NS));
    assert!(!measured.complete_at_wake && !measured.woken_early);
    assert!((40_000..=40_000 + LOOK_NS).contains(&measured.noticed_ns));
    let outcome = bench.last_outcome();
    assert_eq!((outcome.wake_lag_ns, outcome.complete_at_wake), (LAG_NS, false));
    assert_eq!(outcome.elapsed_ns, measured.noticed_ns - SUBMIT_NS);
    assert_eq!(outcome.cpu_ns, SUBMIT_NS + 1_500 + measured.noticed_ns - 31_000);
}

#[test]
fn an_unarmed_sleep_that_was_too_long_is_a_miss() {
    let mut bench = Bench::new(&[40_000], &[Plan::Sleep { ns: 45_000 }], false);
    let measured = bench.one();
    assert_eq!(measured.woken_ns, Some(SUBMIT_NS + 45_000 + LAG_NS));
    assert!(measured.complete_at_wake && !measured.woken_early);
    assert_eq!(measured.noticed_ns, 56_000 + LOOK_NS);
    let parts = Parts::of(&measured, 40_000);
    let expected = Parts { device_ns: 39_000, oversleep_ns: 6_000, wake_ns: LAG_NS, notice_ns: LOOK_NS };
    assert_eq!(parts, expected);
    assert!(bench.last_outcome().complete_at_wake);
}

#[test]
fn an_armed_sleep_is_ended_by_the_completion() {
    let mut bench = Bench::new(&[40_000], &[Plan::Sleep { ns: 90_000 }], true);
    let measured = bench.one();
    assert!(measured.woken_early && !measured.complete_at_wake);
    assert_eq!((measured.woken_ns, measured.noticed_ns), (Some(43_000), 43_000));
    let outcome = bench.last_outcome();
    assert!(outcome.woken_early && !outcome.complete_at_wake);
    assert_eq!(outcome.wake_lag_ns, 0);
}

#[test]
fn an_armed_sleep_that_ended_in_time_is_like_an_unarmed_one() {
    let mut bench = Bench::new(&[40_000], &[Plan::Sleep { ns: 20_000 }], true);
    let measured = bench.one();
    assert!(!measured.woken_early && !measured.complete_at_wake);
    assert_eq!(measured.woken_ns, Some(31_000));
    assert!((40_000..=40_000 + LOOK_NS).contains(&measured.noticed_ns));
}

#[test]
fn polling_and_the_interrupt_differ_by_what_an_interrupt_costs() {
    let mut polled = Bench::with_method(&[40_000], Method::Poll, Arc::default());
    let measured = polled.one();
    assert!((40_000..=40_000 + LOOK_NS).contains(&measured.noticed_ns));
    assert_eq!((measured.plan, measured.woken_ns), (Plan::Poll, None));
    let mut interrupted = Bench::with_method(&[40_000], Method::Interrupt, Arc::default());
    let measured = interrupted.one();
    assert_eq!((measured.plan, measured.noticed_ns), (Plan::Interrupt, 40_000 + INTERRUPT_NS));
    assert_eq!(measured.woken_ns, Some(measured.noticed_ns));
}

#[test]
fn a_predictor_may_choose_to_poll_or_to_leave_it_to_the_interrupt() {
    let mut bench = Bench::new(&[40_000], &[Plan::Poll, Plan::Interrupt], false);
    let polled = bench.one();
    assert_eq!((polled.plan, polled.woken_ns), (Plan::Poll, None));
    assert_eq!(bench.last_outcome().cpu_ns, SUBMIT_NS + bench.last_outcome().elapsed_ns);
    let start_ns = bench.world.now_ns();
    let interrupted = bench.one();
    assert_eq!(interrupted.noticed_ns, start_ns + 40_000 + INTERRUPT_NS);
    assert_eq!(bench.last_outcome().cpu_ns, SUBMIT_NS + 2_500);
}

#[test]
fn the_thread_sleeps_until_the_first_of_several_is_due() {
    let plans = [Plan::Sleep { ns: 200_000 }, Plan::Sleep { ns: 20_000 }];
    let mut bench = Bench::new(&[60_000, 45_000], &plans, false);
    bench.submit(0..2);
    let first = bench.wait(None);
    assert_eq!(first.iter().map(|(slot, _)| *slot).collect::<Vec<_>>(), [1]);
    assert!(!first[0].1.complete_at_wake);
    // The sleep for the other one continues, and then it is a miss.
    let second = bench.wait(None);
    assert_eq!(second[0].0, 0);
    assert!(second[0].1.complete_at_wake);
    assert_eq!(second[0].1.woken_ns, Some(SUBMIT_NS + 200_000 + LAG_NS));
    assert_eq!(bench.last_outcome().cpu_ns, SUBMIT_NS + 1_500 + LOOK_NS);
}

#[test]
fn one_that_is_found_while_another_is_looked_for_was_complete_before_its_time() {
    let plans = [Plan::Sleep { ns: 200_000 }, Plan::Poll];
    let mut bench = Bench::new(&[30_000, 45_000], &plans, false);
    bench.submit(0..2);
    let found = bench.wait(None);
    assert_eq!(found[0].0, 0);
    assert_eq!((found[0].1.woken_ns, found[0].1.complete_at_wake), (None, false));
    assert!(bench.last_outcome().woken_early);
    assert_eq!(bench.last_outcome().wake_lag_ns, 0);
}

#[test]
fn a_limit_ends_every_kind_of_wait_with_nothing_complete() {
    let mut bench =
        Bench::new(&[900_000], &[Plan::Poll, Plan::Interrupt, Plan::Sleep { ns: 500_000 }], false);
    for _ in 0..3 {
        bench.submit(0..1);
        let limit_ns = bench.world.now_ns() + 50_000;
        assert!(bench.wait(Some(limit_ns)).is_empty());
        assert!((limit_ns..=limit_ns + LAG_NS + LOOK_NS).contains(&bench.world.now_ns()));
        assert_eq!(bench.wait(None).len(), 1);
    }
    assert_eq!(bench.outcomes.lock().expect("no test panics with it").len(), 3);
}

#[test]
fn flights_know_their_slots() {
    let mut bench = Bench::with_method(&[1], Method::Poll, Arc::default());
    bench.submit(0..8);
    assert_eq!(bench.flights.count(), 8);
    assert!(bench.flights.remove(9).is_none());
    assert!(bench.flights.remove(3).is_some() && bench.flights.remove(3).is_none());
    assert_eq!(bench.flights.count(), 7);
}
