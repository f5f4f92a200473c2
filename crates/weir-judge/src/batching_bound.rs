//! The cost of a process's system calls for I/O, and the advice that follows (`advice`).
//!
//! The share is an accounting figure: the calls' time on a CPU, plus entering and leaving the kernel. It is neither a
//! bound on the gain from fewer calls nor a forecast. The program's own work around each call would also disappear,
//! but is in no call; the transfers' work in the kernel (TCP, copying) would remain. Two parts are reported
//! separately: asking (what is ready, what is of interest, attempts that found nothing), and entering the kernel once
//! for each other call.
//!
//! A traced process is slower, by a separately measured cost per call, and by the programs' time at events within its
//! calls and outside of them, which they measure themselves. Both are subtracted: the lowest measured cost for the
//! calls for I/O, the median for the whole process. So the share without tracing is at most the reported one, as far
//! as that cost is known. Softirqs are in the calls they interrupt, unless they count in no process's CPU; the
//! programs' time within them is only known by kind of softirq, and is subtracted from calls in proportion.
//!
//! If calls and softirqs add up to more CPU than the process had, their times are wrong, and there is no bound.

mod advice;

pub use self::advice::advice;

use weir_record::{
    guidance::ObservedProcess,
    observation::{
        Advice, Bound, CallFigures, Conclusion, Observation, ProbeCost, Purpose, Totals, Trace, total,
    },
};

/// Below this share of a CPU a process is idle.
const IDLE_SHARE: f64 = 0.01;
/// Below this share of the CPU, most of it is spent outside of system calls for I/O.
const SMALL_SHARE: f64 = 0.10;
/// A thread that wanted a CPU for less of the window than this was not limited by it.
const BUSY_SHARE: f64 = 0.70;
/// From this number of operations per submission on, a ring is used in batches.
const BATCH: f64 = 4.0;

/// The cost of calls for I/O in a traced process.
pub fn bound(observation: &Observation) -> Option<Bound> {
    let trace = observation.trace.as_ref()?;
    // Without the scheduler's data, or with missed switches, time asleep would count as work.
    if !trace.is_split || observation.are_times_wrong() {
        return None;
    }
    // Assumes the lowest measured cost per call.
    let cost = ProbeCost { untraced_ns: trace.cost.traced_ns - trace.cost.added_ns.0.max(0.0), ..trace.cost };
    let softirqs_left = softirqs_left(trace);
    let of_call = |call: &CallFigures| {
        let own_ns = call.on_cpu_ns.saturating_sub(call.softirq_ns) as f64;
        let taken = (call.probe_ns as f64, call.probe_runs as f64);
        let on_cpu_ns = own_ns + softirqs_left * call.softirq_ns as f64;
        cost.without(on_cpu_ns, call.count as f64, taken).max(0.0)
    };
    let concerned: Vec<&CallFigures> =
        trace.calls.iter().filter(|call| call.purpose != Purpose::Other).collect();
    let calls = total(concerned.iter().map(|call| call.count));
    let io_ns = concerned.iter().map(|call| of_call(call)).sum::<f64>();
    let asking_ns: f64 = concerned.iter().map(|call| asking_ns(call, of_call(call), &cost)).sum();
    let entered = total(concerned.iter().map(|call| transfers(call)));
    let entering_ns = (entered as f64 * trace.cost.untraced_ns).min(io_ns - asking_ns).max(0.0);
    let cpu_ns = observation.totals.cpu_ns;
    let share_max = if io_ns > 0.0 { io_ns / observation.unwatched_cpu_ns().max(io_ns) } else { 0.0 };
    let window_ns = observation.window_ns.max(1) as f64;
    let busiest_share = wanted_ns(observation) / window_ns;
    let bound = Bound {
        cpu_ns,
        calls,
        io_ns,
        asking_ns,
        entering_ns,
        share_max,
        busiest_share,
        conclusion: Conclusion::Idle,
    };
    let goes_to_workers = advice(observation).iter().any(|advice| matches!(advice, Advice::ToWorkers { .. }));
    Some(Bound { conclusion: conclusion(&bound, &concerned, window_ns, goes_to_workers), ..bound })
}

/// Share of softirq time that is in the process's CPU and does not belong to the observing programs.
fn softirqs_left(trace: &Trace) -> f64 {
    if trace.softirqs_are_apart == Some(true) {
        return 0.0;
    }
    let whole_ns = total(trace.softirqs.iter().map(|softirq| softirq.ns));
    if whole_ns == 0 { 1.0 } else { trace.softirqs_ns() / whole_ns as f64 }
}

/// Guidance about an observed process; `None` if it was not traced, because its calls were not counted, or if its
/// times are wrong.
pub fn observed(observation: &Observation) -> Option<ObservedProcess> {
    // An older record contains a bound despite this.
    if observation.are_times_wrong() {
        return None;
    }
    let bound = observation.bound.or_else(|| bound(observation))?;
    Some(ObservedProcess {
        pid: observation.pid,
        command: observation.command.clone(),
        window_ns: observation.window_ns,
        is_idle: bound.conclusion == Conclusion::Idle,
        share_max: bound.share_max,
    })
}

/// How long the busiest thread had a CPU or waited for one; or the sum of all threads divided by the number of CPUs,
/// if that is longer: runtimes move work between threads, so that the process may be busy although no single thread
/// is.
fn wanted_ns(observation: &Observation) -> f64 {
    let Totals { cpu_ns, run_delay_ns, ended_cpu_ns, .. } = observation.totals;
    let threads = observation.threads.iter().map(|thread| thread.cpu_ns.saturating_add(thread.run_delay_ns));
    // An ended thread may have been the busiest one.
    let busiest_ns = threads.max().unwrap_or(0).max(ended_cpu_ns);
    let cpus = f64::from(observation.fingerprint.cpus_online.max(1));
    (busiest_ns as f64).max(cpu_ns.saturating_add(run_delay_ns) as f64 / cpus)
}

/// The part of a kind of call's cost that is asking.
fn asking_ns(call: &CallFigures, whole_ns: f64, cost: &ProbeCost) -> f64 {
    match call.purpose {
        Purpose::Readiness | Purpose::Interest => whole_ns,
        // A call that found nothing woke no thread, so no programs ran within it.
        Purpose::Transfer => cost.without(call.again_ns as f64, call.again as f64, (0.0, 0.0)).max(0.0),
        Purpose::Ring | Purpose::Other => 0.0,
    }
}

/// Calls that transferred something, or submitted or collected operations.
fn transfers(call: &CallFigures) -> u64 {
    match call.purpose {
        Purpose::Transfer | Purpose::Ring => call.count.saturating_sub(call.again),
        Purpose::Readiness | Purpose::Interest | Purpose::Other => 0,
    }
}

fn conclusion(bound: &Bound, calls: &[&CallFigures], window_ns: f64, goes_to_workers: bool) -> Conclusion {
    let submissions = || calls.iter().filter(|call| advice::is_submission(&call.name));
    let submitting = total(submissions().map(|call| call.count));
    let submitted = total(submissions().map(|call| call.returned));
    let of_ring = calls.iter().filter(|call| call.purpose == Purpose::Ring);
    let ring_ns: f64 = of_ring.map(|call| call.on_cpu_ns as f64).sum();
    let is_batched = ring_ns > bound.io_ns / 2.0 && submitted as f64 >= BATCH * submitting as f64;
    if bound.cpu_ns as f64 / window_ns < IDLE_SHARE {
        Conclusion::Idle
    } else if bound.busiest_share < BUSY_SHARE {
        // Checked before its calls: a process that waits is not limited by their cost.
        Conclusion::NotBusy
    } else if bound.share_max < SMALL_SHARE {
        Conclusion::NotIo
    } else if is_batched && !goes_to_workers {
        Conclusion::AlreadyBatched
    } else {
        Conclusion::AtMost
    }
}

#[cfg(test)]
mod tests {
    use weir_record::{
        SCHEMA_VERSION,
        machine::Fingerprint,
        observation::{Ending, OpenedFile, Rung, SoftirqFigures, ThreadFigures, UringFigures},
    };

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn call(name: &str, purpose: Purpose, count: u64, on_cpu_ns: u64) -> CallFigures {
        CallFigures { name: name.to_owned(), purpose, count, on_cpu_ns, ..CallFigures::default() }
    }

    /// A process with this much CPU time in a window of a second.
    fn observed(cpu_ns: u64, calls: Vec<CallFigures>) -> Observation {
        let cost = ProbeCost {
            untraced_ns: 150.0,
            traced_ns: 400.0,
            inside_ns: 100.0,
            run_ns: 0.0,
            added_ns: (200.0, 300.0),
        };
        Observation {
            schema_version: SCHEMA_VERSION,
            fingerprint: Fingerprint { cpus_online: 2, ..Fingerprint::default() },
            began_unix_s: 0,
            pid: 7,
            command: "server".to_owned(),
            window_ns: SECOND_NS,
            ending: Ending::Time,
            rung: Rung::Programs,
            ladder: Vec::new(),
            notes: Vec::new(),
            totals: Totals { cpu_ns, ..Totals::default() },
            descriptors: None,
            threads: vec![ThreadFigures { cpu_ns, ..ThreadFigures::default() }],
            threads_left_out: 0,
            trace: Some(Trace { calls, is_split: true, cost, ..Trace::default() }),
            ..Observation::default()
        }
    }

    #[test]
    fn the_way_into_the_kernel_counts_with_each_call() {
        let mut receives = call("recvfrom", Purpose::Transfer, 100_000, 60_000_000);
        receives.again = 10_000;
        receives.again_ns = 2_000_000;
        let waits = call("epoll_wait", Purpose::Readiness, 100_000, 40_000_000);
        let found = bound(&observed(900_000_000, vec![receives, waits])).expect("it was traced");
        // 300 ns outside the programs' own measure for each of 200,000 calls, of which tracing added at least 200.
        assert_eq!((found.io_ns, found.cpu_ns), (100e6 + 200_000.0 * 100.0, 900_000_000));
        assert_eq!(found.asking_ns, 40e6 + 100_000.0 * 100.0 + 2e6 + 10_000.0 * 100.0);
        assert_eq!((found.calls, found.conclusion), (200_000, Conclusion::AtMost));
        assert_eq!(found.entering_ns, 90_000.0 * 150.0, "of those that found something");
        // Tracing added 250 ns to each.
        assert!((found.share_max - 120.0 / (900.0 - 50.0)).abs() < 1e-9, "{}", found.share_max);
    }

    #[test]
    fn what_the_programs_took_and_softirqs_that_nobody_pays_for_are_in_no_bound() {
        let mut sends = call("sendto", Purpose::Transfer, 100_000, 100_000_000);
        (sends.softirq_ns, sends.probe_ns, sends.probe_runs) = (40_000_000, 9_000_000, 100_000);
        let mut observation = observed(900_000_000, vec![sends]);
        let trace = observation.trace.as_mut().expect("it was traced");
        (trace.cost.run_ns, trace.probe_ns, trace.probe_runs) = (10.0, 12_000_000, 300_000);
        let io_ns = |observation: &Observation| bound(observation).expect("it was traced").io_ns;
        // The programs' own 9 ms, and 10 ns more for each run; entering and leaving takes 100 ns per call.
        assert_eq!(io_ns(&observation), 100e6 - 9e6 - 1e6 + 10e6);
        // For the whole process all program time, and 250 ns per call.
        assert_eq!(observation.unwatched_cpu_ns(), 900e6 - 25e6 - 12e6 - 3e6);
        observation.trace.as_mut().expect("it was traced").softirqs_are_apart = Some(true);
        assert_eq!(io_ns(&observation), 60e6 - 9e6 - 1e6 + 10e6);
    }

    #[test]
    fn what_the_programs_took_in_softirqs_is_taken_out_of_the_calls_they_interrupted() {
        let mut sends = call("sendto", Purpose::Transfer, 100_000, 100_000_000);
        sends.softirq_ns = 40_000_000;
        let mut observation = observed(900_000_000, vec![sends]);
        let softirqs = SoftirqFigures {
            ns: 80_000_000,
            probe_ns: 15_000_000,
            probe_runs: 500_000,
            ..Default::default()
        };
        let trace = observation.trace.as_mut().expect("it was traced");
        (trace.cost.run_ns, trace.softirqs) = (10.0, vec![softirqs]);
        // A quarter of them belonged to the programs, and half of them were within these calls.
        let found = bound(&observation).expect("it was traced");
        assert_eq!(found.io_ns, 60e6 + 40e6 * 0.75 + 10e6);
        assert_eq!(observation.unwatched_cpu_ns(), 900e6 - 25e6 - 20e6);
    }

    #[test]
    fn where_the_parts_exceed_the_whole_no_bound_follows() {
        let waits = |ns| vec![call("epoll_wait", Purpose::Readiness, 1_000, ns)];
        // A sleep of 300 ms was counted as work.
        let mut wrong = observed(100_000_000, waits(380_000_000));
        assert!(wrong.are_times_wrong());
        assert_eq!(bound(&wrong), None);
        wrong.bound = Some(Bound { share_max: 1.0, ..Bound::default() });
        assert_eq!(super::observed(&wrong), None, "not by an older record either");
        assert!(bound(&observed(100_000_000, waits(105_000_000))).is_some(), "within a tenth");
        assert!(bound(&observed(1_000_000, waits(1_500_000))).is_some(), "the windows have edges");
        let mut in_softirqs = observed(100_000_000, waits(60_000_000));
        let softirqs = SoftirqFigures { ns: 60_000_000, ..Default::default() };
        in_softirqs.trace.as_mut().expect("it was traced").softirqs = vec![softirqs];
        assert_eq!(bound(&in_softirqs), None);
    }

    #[test]
    fn what_its_calls_for_io_are_to_its_cpu_is_said() {
        let calls = |ns| vec![call("recvfrom", Purpose::Transfer, 1_000, ns)];
        let conclusion = |cpu_ns, calls| bound(&observed(cpu_ns, calls)).expect("it was traced").conclusion;
        assert_eq!(conclusion(5_000_000, calls(4_000_000)), Conclusion::Idle);
        assert_eq!(conclusion(900_000_000, calls(50_000_000)), Conclusion::NotIo);
        assert_eq!(conclusion(300_000_000, calls(200_000_000)), Conclusion::NotBusy);
        assert_eq!(conclusion(300_000_000, calls(4_000_000)), Conclusion::NotBusy, "it waits all the same");
        let mut starved = observed(300_000_000, calls(200_000_000));
        starved.threads[0].run_delay_ns = 600_000_000;
        assert_eq!(bound(&starved).expect("it was traced").conclusion, Conclusion::AtMost);
        let mut spread = observed(300_000_000, calls(200_000_000));
        spread.totals.run_delay_ns = 1_300_000_000;
        assert_eq!(bound(&spread).expect("it was traced").conclusion, Conclusion::AtMost);
        let futexes = vec![call("futex", Purpose::Other, 100_000, 800_000_000)];
        assert_eq!(conclusion(900_000_000, futexes), Conclusion::NotIo);
    }

    #[test]
    fn batches_are_those_of_submissions_and_not_such_that_workers_carry_out() {
        let ring = |name: &str, on_cpu_ns, each: u64| {
            let call = call(name, Purpose::Ring, 1_000, on_cpu_ns);
            CallFigures { returned: each * 1_000, ..call }
        };
        let conclusion = |observation: &Observation| bound(observation).expect("it was traced").conclusion;
        let mut enters = observed(900_000_000, vec![ring("io_uring_enter", 700_000_000, 50)]);
        assert_eq!(conclusion(&enters), Conclusion::AlreadyBatched);
        let event = |event: &str| UringFigures { event: event.to_owned(), count: 50_000, elsewhere_count: 0 };
        enters.trace.as_mut().expect("it was traced").uring =
            vec![event("submit_req"), event("queue_async_work")];
        assert_eq!(conclusion(&enters), Conclusion::AtMost);
        for (each, said) in [(1, Conclusion::AtMost), (16, Conclusion::AlreadyBatched)] {
            let calls = vec![ring("io_submit", 600_000_000, each), ring("io_getevents", 100_000_000, 1)];
            assert_eq!(conclusion(&observed(900_000_000, calls)), said, "{each} operations a call of libaio");
        }
    }

    #[test]
    fn entering_the_kernel_counts_for_rings_as_for_transfers() {
        let submits = call("io_submit", Purpose::Ring, 100_000, 60_000_000);
        let collects = call("io_getevents", Purpose::Ring, 50_000, 30_000_000);
        let found = bound(&observed(900_000_000, vec![submits, collects])).expect("it was traced");
        assert_eq!(found.entering_ns, 150_000.0 * 150.0);
    }

    #[test]
    fn of_an_observed_process_its_share_is_told_unless_nobody_counted_its_calls() {
        let calls = || vec![call("recvfrom", Purpose::Transfer, 1_000, 200_000_000)];
        let mut observation = observed(900_000_000, calls());
        let found = super::observed(&observation).expect("it was traced");
        assert_eq!((found.pid, found.is_idle), (7, false));
        assert!((0.2..0.25).contains(&found.share_max), "{found:?}");
        let few = vec![call("recvfrom", Purpose::Transfer, 10, 4_000_000)];
        assert!(super::observed(&observed(5_000_000, few)).is_some_and(|it| it.is_idle));
        observation.trace = None;
        assert_eq!(super::observed(&observation), None);
    }

    #[test]
    fn of_a_record_of_the_largest_numbers_something_follows_or_nothing_does() {
        const MOST: u64 = u64::MAX;
        let of = |name: &str, purpose| CallFigures {
            errors: MOST,
            again: MOST,
            again_ns: MOST,
            returned: MOST,
            softirq_ns: MOST,
            probe_ns: MOST,
            probe_runs: MOST,
            blocked_ns: MOST,
            ..call(name, purpose, MOST, MOST)
        };
        let calls =
            [("read", Purpose::Transfer), ("io_uring_enter", Purpose::Ring), ("openat", Purpose::Transfer)];
        let twice = calls.into_iter().chain(calls).map(|(name, purpose)| of(name, purpose)).collect();
        let mut seen = observed(MOST, twice);
        (seen.totals.run_delay_ns, seen.totals.ended_cpu_ns, seen.threads[0].run_delay_ns) =
            (MOST, MOST, MOST);
        let trace = seen.trace.as_mut().expect("it was traced");
        let softirqs = SoftirqFigures { ns: MOST, probe_ns: MOST, probe_runs: MOST, ..Default::default() };
        trace.softirqs = vec![softirqs.clone(), softirqs];
        (trace.files_opened_again, trace.opens_of_those) = (MOST, MOST);
        let file = OpenedFile { path: "/etc/hosts".to_owned(), opens: MOST };
        trace.opened_again = vec![file];
        for window_ns in [0, 1, MOST] {
            seen.window_ns = window_ns;
            seen.trace.as_mut().expect("it was traced").window_ns = window_ns;
            let _ = (bound(&seen), advice(&seen), super::observed(&seen));
        }
        assert!(!advice(&seen).is_empty(), "it slept");
    }

    #[test]
    fn no_share_is_above_one_and_without_a_trace_there_is_none() {
        let calls = vec![call("recvfrom", Purpose::Transfer, 100_000, 890_000_000)];
        let mut observation = observed(900_000_000, calls);
        assert_eq!(bound(&observation).expect("it was traced").share_max, 1.0);
        observation.trace.as_mut().expect("it was traced").is_split = false;
        assert_eq!(bound(&observation), None, "time asleep would pass for work");
        observation.trace = None;
        assert_eq!(bound(&observation), None);
        assert_eq!(bound(&observed(0, Vec::new())).expect("it was traced").share_max, 0.0);
        let many = vec![call("futex", Purpose::Other, 10_000, 1)];
        let share = bound(&observed(1_000, many)).expect("it was traced").share_max;
        assert_eq!(share, 0.0, "more was added than there was");
    }
}
