//! The foreground thread: one operation in flight, and how the thread spends the time until it has noticed the
//! completion.

use weir_stats::random::{Random, derived_seed};

use super::{draws, method::Method, scenario::HostModel};
use crate::{
    measure::Measured,
    predict::{Direction, Issued, Outcome, Plan, Predictor},
};

/// The source of plans.
pub(super) enum Planner {
    Predictor {
        predictor: Box<dyn Predictor>,
        true_times: bool,
    },
    /// The same sleep for each operation of a phase; 0 polls.
    Constant {
        sleep_ns: Vec<u64>,
    },
    /// Knows when the device will complete, and how long waking will take.
    Clairvoyant,
}

/// The operation that is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub(super) issued_ns: u64,
    pub(super) bytes: u32,
    pub(super) direction: Direction,
    /// Operations of others on the device, if known.
    pub(super) in_flight_others: Option<u32>,
}

/// The outcome of a wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waited {
    pub(super) measured: Measured,
    /// When the thread can issue its next operation.
    pub(super) ready_ns: u64,
}

/// A wait, without the thread's own costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Course {
    woken_ns: Option<u64>,
    complete_at_wake: bool,
    woken_early: bool,
    noticed_ns: u64,
    /// CPU between hand-over and notice.
    cpu_ns: u64,
}

pub(super) struct Thread {
    host: HostModel,
    planner: Planner,
    armed: bool,
    lags: Random,
}

impl Thread {
    pub(super) fn new(host: HostModel, planner: Planner, armed: bool, seed: u64) -> Self {
        Self { host, planner, armed, lags: lags(seed) }
    }

    /// A thread with this method; `sleep_ns` is the best constant sleep of each phase, for the method that uses it.
    pub(super) fn with_method(host: HostModel, method: &Method, seed: u64, sleep_ns: Vec<u64>) -> Self {
        let planner = match method {
            Method::Predicted { predictor, true_times, .. } => {
                Planner::Predictor { predictor: predictor.build(&host.costs()), true_times: *true_times }
            }
            Method::ConstantSleep { .. } => Planner::Constant { sleep_ns },
            Method::Clairvoyant => Planner::Clairvoyant,
        };
        Self::new(host, planner, method.armed(), seed)
    }

    /// Plans the wait for an operation that was just issued.
    #[inline]
    pub(super) fn plan(&mut self, phase: usize, operation: &Operation) -> Plan {
        match &mut self.planner {
            Planner::Predictor { predictor, .. } => predictor.plan(&Issued {
                now_ns: operation.issued_ns,
                bytes: operation.bytes,
                direction: operation.direction,
                in_flight: 1,
                in_flight_others: operation.in_flight_others,
            }),
            Planner::Constant { sleep_ns } => match sleep_ns[phase] {
                0 => Plan::Poll,
                ns => Plan::Sleep { ns },
            },
            // Decided in `wait`, when the completion time is known.
            Planner::Clairvoyant => Plan::Poll,
        }
    }

    /// Simulates the wait for an operation that completes at `done_ns`, and lets the predictor learn from it.
    #[inline]
    pub(super) fn wait(&mut self, operation: &Operation, plan: Plan, done_ns: u64) -> Waited {
        let (plan, course) = match self.planner {
            Planner::Clairvoyant => self.just_in_time(operation.issued_ns, done_ns),
            Planner::Predictor { .. } | Planner::Constant { .. } => {
                (plan, self.follow(plan, operation.issued_ns, done_ns))
            }
        };
        let issued_ns = operation.issued_ns;
        let Course { woken_ns, complete_at_wake, woken_early, noticed_ns, cpu_ns } = course;
        if let Planner::Predictor { predictor, true_times } = &mut self.planner {
            let requested_end_ns = match plan {
                Plan::Sleep { ns } if !woken_early => Some(issued_ns.saturating_add(ns)),
                Plan::Sleep { .. } | Plan::Poll | Plan::Interrupt => None,
            };
            let lag_of = |(woken_ns, end_ns): (u64, u64)| woken_ns.saturating_sub(end_ns);
            predictor.observe(&Outcome {
                now_ns: noticed_ns,
                bytes: operation.bytes,
                direction: operation.direction,
                plan,
                elapsed_ns: if *true_times { done_ns } else { noticed_ns } - issued_ns,
                complete_at_wake,
                woken_early,
                wake_lag_ns: woken_ns.zip(requested_end_ns).map_or(0, lag_of),
                cpu_ns,
            });
        }
        let handing_over_ns = self.host.submit_ns + if woken_ns.is_some() { self.host.cold_ns } else { 0 };
        let measured = Measured {
            issued_ns,
            plan,
            woken_ns,
            complete_at_wake,
            woken_early,
            noticed_ns,
            device_done_ns: Some(done_ns),
            cpu_ns: handing_over_ns + cpu_ns,
        };
        Waited { measured, ready_ns: noticed_ns.saturating_add(handing_over_ns) }
    }

    #[inline]
    fn follow(&mut self, plan: Plan, issued_ns: u64, done_ns: u64) -> Course {
        match plan {
            Plan::Poll | Plan::Sleep { ns: 0 } => polled(issued_ns, done_ns),
            Plan::Interrupt => {
                let woken_ns = done_ns + draws::lag(&mut self.lags, &self.host.interrupt_lag);
                Course {
                    woken_ns: Some(woken_ns),
                    complete_at_wake: false,
                    woken_early: false,
                    noticed_ns: woken_ns,
                    cpu_ns: self.host.interrupt_cpu_ns,
                }
            }
            Plan::Sleep { ns } if self.armed => self.sleep_armed(issued_ns.saturating_add(ns), done_ns),
            Plan::Sleep { ns } => self.sleep(issued_ns.saturating_add(ns), done_ns),
        }
    }

    /// Sleeps for the whole time, then checks once, then polls.
    #[inline]
    fn sleep(&mut self, end_ns: u64, done_ns: u64) -> Course {
        let woken_ns = end_ns.saturating_add(draws::lag(&mut self.lags, &self.host.sleep_lag));
        let noticed_ns = woken_ns.max(done_ns);
        Course {
            woken_ns: Some(woken_ns),
            complete_at_wake: done_ns <= woken_ns,
            woken_early: false,
            noticed_ns,
            cpu_ns: self.host.sleep_cpu_ns + (noticed_ns - woken_ns),
        }
    }

    /// The sleep ends at its time or by the interrupt. The interrupt occurs in any case: it costs its service, and
    /// the completion becomes visible only after that. The thread cannot distinguish whether it woke the thread or
    /// came while the timer was doing so: both count as "woken early", and neither is a miss.
    #[inline]
    fn sleep_armed(&mut self, end_ns: u64, done_ns: u64) -> Course {
        let by_timer_ns = end_ns.saturating_add(draws::lag(&mut self.lags, &self.host.sleep_lag));
        let visible_ns = done_ns + self.host.interrupt_service_ns;
        let mut woken_ns = by_timer_ns;
        if done_ns <= end_ns {
            woken_ns = woken_ns.min(done_ns + draws::lag(&mut self.lags, &self.host.interrupt_lag));
        }
        let is_visible = visible_ns <= woken_ns;
        let noticed_ns = woken_ns.max(visible_ns);
        // When the thread is awake, the service is part of the time until the notice; when it is asleep, it is added.
        let service_ns = if is_visible { self.host.interrupt_service_ns } else { 0 };
        Course {
            woken_ns: Some(woken_ns),
            complete_at_wake: false,
            woken_early: is_visible,
            noticed_ns,
            cpu_ns: self.host.sleep_cpu_ns + service_ns + (noticed_ns - woken_ns),
        }
    }

    /// Awake at the exact time; polls from the start if there is not even enough time to wake.
    fn just_in_time(&mut self, issued_ns: u64, done_ns: u64) -> (Plan, Course) {
        let lag_ns = draws::lag(&mut self.lags, &self.host.sleep_lag);
        match (done_ns - issued_ns).checked_sub(lag_ns) {
            None | Some(0) => (Plan::Poll, polled(issued_ns, done_ns)),
            Some(ns) => {
                let course = Course {
                    woken_ns: Some(done_ns),
                    complete_at_wake: false,
                    woken_early: false,
                    noticed_ns: done_ns,
                    cpu_ns: self.host.sleep_cpu_ns,
                };
                (Plan::Sleep { ns }, course)
            }
        }
    }
}

/// The random sequence of a thread's lags.
pub(super) fn lags(seed: u64) -> Random {
    Random::seeded(derived_seed(seed, 3))
}

#[inline]
fn polled(issued_ns: u64, done_ns: u64) -> Course {
    Course {
        woken_ns: None,
        complete_at_wake: false,
        woken_early: false,
        noticed_ns: done_ns,
        cpu_ns: done_ns - issued_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::{super::scenario::Lag, *};

    const HOST: HostModel = HostModel {
        submit_ns: 1_000,
        cold_ns: 100,
        background_ns: 0,
        sleep_cpu_ns: 2_000,
        interrupt_cpu_ns: 2_500,
        interrupt_service_ns: 700,
        sleep_lag: Lag::constant(3_000),
        interrupt_lag: Lag::constant(1_500),
    };
    const OPERATION: Operation =
        Operation { issued_ns: 10_000, bytes: 4096, direction: Direction::Read, in_flight_others: None };

    fn waited(plan: Plan, armed: bool, latency_ns: u64) -> Waited {
        let planner = Planner::Constant { sleep_ns: vec![0] };
        Thread::new(HOST, planner, armed, 1).wait(&OPERATION, plan, OPERATION.issued_ns + latency_ns)
    }

    /// Woken, complete at wake, woken early, noticed: all since the issue; CPU; next issue since the notice.
    fn since_handover(waited: &Waited) -> (Option<u64>, bool, bool, u64, u64, u64) {
        let measured = &waited.measured;
        (
            measured.woken_ns.map(|woken_ns| woken_ns - 10_000),
            measured.complete_at_wake,
            measured.woken_early,
            measured.noticed_ns - 10_000,
            measured.cpu_ns,
            waited.ready_ns - measured.noticed_ns,
        )
    }

    #[test]
    fn polling_notices_at_once_and_is_busy_all_the_time() {
        assert_eq!(
            since_handover(&waited(Plan::Poll, false, 15_000)),
            (None, false, false, 15_000, 16_000, 1_000)
        );
        assert_eq!(
            since_handover(&waited(Plan::Sleep { ns: 0 }, false, 15_000)),
            since_handover(&waited(Plan::Poll, true, 15_000))
        );
    }

    #[test]
    fn an_interrupt_adds_its_lag_and_costs_the_same_however_long_it_takes() {
        for latency_ns in [1, 15_000, 1_000_000] {
            let expected = (Some(latency_ns + 1_500), false, false, latency_ns + 1_500, 3_600, 1_100);
            assert_eq!(since_handover(&waited(Plan::Interrupt, false, latency_ns)), expected);
        }
    }

    #[test]
    fn a_sleep_that_is_short_enough_is_followed_by_polling() {
        let expected = (Some(8_000), false, false, 15_000, 1_100 + 2_000 + 7_000, 1_100);
        assert_eq!(since_handover(&waited(Plan::Sleep { ns: 5_000 }, false, 15_000)), expected);
    }

    #[test]
    fn a_sleep_that_is_too_long_is_a_miss_also_when_only_its_lag_was() {
        for (sleep_ns, woken_ns) in [(20_000, 23_000), (14_000, 17_000), (12_000, 15_000)] {
            let expected = (Some(woken_ns), true, false, woken_ns, 3_100, 1_100);
            assert_eq!(since_handover(&waited(Plan::Sleep { ns: sleep_ns }, false, 15_000)), expected);
        }
        let (_, is_miss, ..) = since_handover(&waited(Plan::Sleep { ns: 11_999 }, false, 15_000));
        assert!(!is_miss);
    }

    #[test]
    fn an_armed_sleep_that_is_too_long_is_an_interrupt_with_a_timer() {
        let expected = (Some(16_500), false, true, 16_500, 1_100 + 2_000 + 700, 1_100);
        assert_eq!(since_handover(&waited(Plan::Sleep { ns: 20_000 }, true, 15_000)), expected);
        // The timer fires while the interrupt's lag runs: the thread is awake then.
        let expected = (Some(16_200), false, true, 16_200, 3_800, 1_100);
        let waited_ = |lag_ns| {
            let planner = Planner::Constant { sleep_ns: vec![0] };
            let host = HostModel { sleep_lag: Lag::constant(lag_ns), ..HOST };
            Thread::new(host, planner, true, 1).wait(&OPERATION, Plan::Sleep { ns: 16_000 }, 25_000)
        };
        assert_eq!(since_handover(&waited_(200)), expected);
    }

    #[test]
    fn an_armed_sleep_that_is_short_enough_still_has_its_interrupt() {
        let expected = (Some(8_000), false, false, 15_700, 1_100 + 2_000 + 7_700, 1_100);
        assert_eq!(since_handover(&waited(Plan::Sleep { ns: 5_000 }, true, 15_000)), expected);
        // Complete while the timer woke the thread.
        let expected = (Some(16_000), false, true, 16_000, 1_100 + 2_000 + 700, 1_100);
        assert_eq!(since_handover(&waited(Plan::Sleep { ns: 13_000 }, true, 15_000)), expected);
        // Complete, but its interrupt has not finished.
        let expected = (Some(15_200), false, false, 15_700, 1_100 + 2_000 + 500, 1_100);
        assert_eq!(since_handover(&waited(Plan::Sleep { ns: 12_200 }, true, 15_000)), expected);
    }

    #[test]
    fn the_clairvoyant_is_awake_in_the_very_moment() {
        let waited = |latency_ns| {
            let mut thread = Thread::new(HOST, Planner::Clairvoyant, false, 1);
            thread.wait(&OPERATION, Plan::Poll, OPERATION.issued_ns + latency_ns)
        };
        assert_eq!(since_handover(&waited(15_000)), (Some(15_000), false, false, 15_000, 3_100, 1_100));
        assert_eq!(waited(15_000).measured.plan, Plan::Sleep { ns: 12_000 });
        // Too short for a wake-up: it polls.
        assert_eq!(since_handover(&waited(3_000)), (None, false, false, 3_000, 4_000, 1_000));
    }
}
