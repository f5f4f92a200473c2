//! Turns the kernel's sums into the record of a trace. Pure.

use std::collections::HashMap;

use weir_record::observation::{
    CallFigures, ErrorFigures, OPENED_ROWS_MAX, OpenedFile, OperationFigures, ProbeCost, Purpose,
    SoftirqFigures, TIMER, Trace, UringFigures, WAKE_ROWS_MAX, WakeFigures, total,
};
use weir_sys::{errors, ring_operations, syscalls};

use super::{
    tables::{
        CALLS_BEYOND, CALLS_OF_32_BITS, TracedCall, TracedSoftirq, TracedThread, TracedWake, WakeContext,
    },
    tracer::KernelCounts,
};

/// Kinds of softirqs, in the kernel's order (`include/linux/interrupt.h`).
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// The record of `counts`, the difference of two readings, the first of which was taken at `began_ns`.
pub fn trace(counts: &KernelCounts, began_ns: u64, is_split: bool, cost: ProbeCost) -> Trace {
    let wakes_left_out = counts.wakes.len().saturating_sub(WAKE_ROWS_MAX);
    let mut wakes: Vec<WakeFigures> = counts.wakes.iter().map(wake).collect();
    wakes.sort_by_key(|wake| std::cmp::Reverse(wake.count));
    wakes.truncate(WAKE_ROWS_MAX);
    Trace {
        window_ns: counts.at_ns.saturating_sub(began_ns),
        calls: calls(counts, began_ns),
        calls_cut: counts.calls_cut,
        is_split,
        wakes,
        wakes_left_out: wakes_left_out as u64,
        queued_ns: of_threads(counts, |it| it.queued_ns, counts.ended_queued_ns),
        ran_ns: of_threads(counts, |it| it.ran_ns, counts.ended_ran_ns),
        sleeps: of_threads(counts, |it| it.sleeps, counts.ended_sleeps),
        preemptions: of_threads(counts, |it| it.preemptions, counts.ended_preemptions),
        softirqs: softirqs(counts),
        uring: counts.uring.iter().map(|(name, (own, elsewhere))| event(name, *own, *elsewhere)).collect(),
        operations: operations(counts),
        descriptors: None,
        switches_missed: counts.switches_missed,
        threads_lost: counts.threads_lost,
        wakes_lost: counts.wakes_lost,
        misses: counts.misses,
        cost,
        probe_ns: of_threads(counts, |it| it.probe.ns, counts.ended_probe.ns),
        probe_runs: of_threads(counts, |it| it.probe.runs, counts.ended_probe.runs),
        softirqs_are_apart: None,
        ..opened(counts)
    }
}

/// File names that were opened more than once.
fn opened(counts: &KernelCounts) -> Trace {
    let again = counts.opened.iter().filter(|(_, opens)| *opens > 1);
    let mut files: Vec<OpenedFile> =
        again.map(|(path, opens)| OpenedFile { path: path.clone(), opens: *opens }).collect();
    files.sort_by(|one, other| (other.opens, &one.path).cmp(&(one.opens, &other.path)));
    let (files_opened_again, opens_of_those) = (files.len() as u64, total(files.iter().map(|it| it.opens)));
    files.truncate(OPENED_ROWS_MAX);
    Trace { opened_again: files, files_opened_again, opens_of_those, ..Trace::default() }
}

/// A figure summed over living threads, plus the value of ended ones.
fn of_threads(counts: &KernelCounts, figure: fn(&TracedThread) -> u64, ended: u64) -> u64 {
    total(counts.threads.iter().map(figure).chain([ended]))
}

/// Calls that returned and calls still in progress, by kind.
fn calls(counts: &KernelCounts, began_ns: u64) -> Vec<CallFigures> {
    let mut in_flight: HashMap<u32, (u64, u64)> = HashMap::new();
    for (number, since_ns) in counts.threads.iter().filter_map(|thread| thread.in_call) {
        let sum = in_flight.entry(number).or_default();
        sum.0 += 1;
        sum.1 = sum.1.saturating_add(counts.at_ns.saturating_sub(since_ns.max(began_ns)));
    }
    let nothing = TracedCall::default();
    let mut numbers: Vec<u32> = counts.calls.keys().chain(in_flight.keys()).copied().collect();
    numbers.sort_unstable();
    numbers.dedup();
    let of_number = |number: &u32| {
        let returned = counts.calls.get(number).unwrap_or(&nothing);
        let errors = errors_of(counts, *number);
        CallFigures {
            errors_by_kind: errors,
            ..call(*number, returned, in_flight.get(number).copied().unwrap_or_default())
        }
    };
    let mut calls: Vec<CallFigures> = numbers.iter().map(of_number).collect();
    calls.sort_by_key(|call| (std::cmp::Reverse(call.on_cpu_ns), call.number));
    calls
}

fn call(number: u32, sums: &TracedCall, (in_flight, in_flight_ns): (u64, u64)) -> CallFigures {
    let name = syscalls::name(number);
    let used = sums.buckets.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    CallFigures {
        number,
        name: name_of(number),
        purpose: purpose(name.unwrap_or_default()),
        count: sums.count,
        errors: sums.errors,
        again: sums.again,
        again_ns: sums.again_ns,
        returned: sums.returned,
        on_cpu_ns: sums.on_cpu_ns,
        softirq_ns: sums.softirq_ns,
        probe_ns: sums.probe.ns,
        probe_runs: sums.probe.runs,
        blocked_ns: sums.blocked_ns,
        queued_ns: sums.queued_ns,
        in_flight,
        in_flight_ns,
        unreturned: sums.unreturned,
        buckets: sums.buckets[..used].to_vec(),
        ..CallFigures::default()
    }
}

/// The name of a kind of call; also for unknown numbers.
pub(crate) fn name_of(number: u32) -> String {
    match number {
        _ if syscalls::name(number).is_some() => syscalls::name(number).unwrap_or_default().to_owned(),
        CALLS_OF_32_BITS => "calls_of_32_bits".to_owned(),
        CALLS_BEYOND => format!("syscall_{CALLS_OF_32_BITS}_and_above"),
        _ => format!("syscall_{number}"),
    }
}

/// Errors of a kind of call, most frequent first.
fn errors_of(counts: &KernelCounts, call: u32) -> Vec<ErrorFigures> {
    let own = counts.errors.range((call, 0)..=(call, u32::MAX));
    let of = |(&(_, number), &count): (&(u32, u32), &u64)| ErrorFigures {
        number,
        name: errors::name(number).map_or_else(|| format!("error_{number}"), str::to_owned),
        count,
    };
    let mut found: Vec<ErrorFigures> = own.map(of).collect();
    found.sort_by_key(|it| (std::cmp::Reverse(it.count), it.number));
    found
}

/// The purpose of a call.
pub fn purpose(name: &str) -> Purpose {
    match name {
        "read" | "write" | "readv" | "writev" | "pread64" | "pwrite64" | "preadv" | "pwritev" | "preadv2"
        | "pwritev2" | "recvfrom" | "sendto" | "recvmsg" | "sendmsg" | "recvmmsg" | "sendmmsg"
        | "sendfile" | "splice" | "tee" | "vmsplice" | "copy_file_range" | "accept" | "accept4"
        | "connect" | "shutdown" | "close" | "openat" | "open" | "openat2" | "fsync" | "fdatasync"
        | "sync_file_range" | "statx" | "fallocate" | "socket" => Purpose::Transfer,
        "epoll_wait" | "epoll_pwait" | "epoll_pwait2" | "poll" | "ppoll" | "select" | "pselect6" => {
            Purpose::Readiness
        }
        "epoll_ctl" => Purpose::Interest,
        "io_uring_enter" | "io_submit" | "io_getevents" | "io_pgetevents" => Purpose::Ring,
        _ => Purpose::Other,
    }
}

fn wake(wake: &TracedWake) -> WakeFigures {
    let named = |kind: u32| {
        let known = SOFTIRQS.get(kind as usize);
        known.map_or_else(|| format!("softirq_{kind}"), |name| (*name).to_owned())
    };
    WakeFigures {
        sleeper_tid: wake.sleeper_tid,
        waker_pid: wake.waker_pid,
        waker_tid: wake.waker_tid,
        waker_name: wake.waker_name.clone(),
        context: wake.context.map(|context| match context {
            WakeContext::Softirq(kind) => named(kind),
            WakeContext::Timer => TIMER.to_owned(),
        }),
        count: wake.count,
        blocked_ns: wake.blocked_ns,
    }
}

fn softirqs(counts: &KernelCounts) -> Vec<SoftirqFigures> {
    let figures = |(kind, [own, elsewhere]): (&u32, &[TracedSoftirq; 2])| SoftirqFigures {
        kind: SOFTIRQS
            .get(*kind as usize)
            .map_or_else(|| format!("softirq_{kind}"), |name| (*name).to_owned()),
        count: own.count,
        ns: own.ns,
        probe_ns: own.probe.ns,
        probe_runs: own.probe.runs,
        elsewhere_count: elsewhere.count,
        elsewhere_ns: elsewhere.ns,
    };
    counts.softirqs.iter().map(figures).collect()
}

/// Operations of io_uring by kind.
fn operations(counts: &KernelCounts) -> Vec<OperationFigures> {
    let figures = |(&opcode, &(submitted, to_workers)): (&u32, &(u64, u64))| OperationFigures {
        opcode,
        name: ring_operations::name(opcode).map_or_else(|| format!("operation_{opcode}"), str::to_owned),
        submitted,
        to_workers,
    };
    let mut found: Vec<OperationFigures> = counts.operations.iter().map(figures).collect();
    found.sort_by_key(|it| (std::cmp::Reverse(it.submitted), it.opcode));
    found
}

fn event(name: &str, count: u64, elsewhere_count: u64) -> UringFigures {
    let event = name.strip_prefix("io_uring_").unwrap_or(name).to_owned();
    UringFigures { event, count, elsewhere_count }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::ladder::tables::ProbeTime;

    #[test]
    fn a_call_that_only_blocked_is_in_flight_and_counts_from_the_windows_begin() {
        let thread =
            |tid, since_ns| TracedThread { tid, in_call: Some((232, since_ns)), ..Default::default() };
        let counts = KernelCounts {
            at_ns: 1_000,
            threads: vec![thread(1, 100), thread(2, 700)],
            ..KernelCounts::default()
        };
        let trace = trace(&counts, 400, true, ProbeCost::default());
        assert_eq!(trace.window_ns, 600);
        let [call] = &trace.calls[..] else { panic!("one kind: {:?}", trace.calls) };
        assert_eq!((call.count, call.in_flight, call.in_flight_ns), (0, 2, 600 + 300));
    }

    #[test]
    fn what_the_programs_took_of_threads_that_ended_is_in_what_they_took() {
        let probe = |ns, runs| ProbeTime { ns, runs };
        let thread = |tid| TracedThread { tid, probe: probe(100, 2), ..Default::default() };
        let counts = KernelCounts {
            threads: vec![thread(1), thread(2)],
            ended_probe: probe(7, 1),
            ..KernelCounts::default()
        };
        let trace = trace(&counts, 0, true, ProbeCost::default());
        assert_eq!((trace.probe_ns, trace.probe_runs), (207, 5));
        let none = counts.since(&counts);
        assert_eq!((none.ended_probe, none.threads[0].probe), (probe(0, 0), probe(0, 0)));
    }

    #[test]
    fn wakes_beyond_the_list_are_counted() {
        let wake = |tid: u32| TracedWake { sleeper_tid: tid, count: u64::from(tid), ..Default::default() };
        let counts = KernelCounts {
            wakes: (0..WAKE_ROWS_MAX as u32 + 3).map(wake).collect(),
            ..KernelCounts::default()
        };
        let trace = trace(&counts, 0, true, ProbeCost::default());
        assert_eq!((trace.wakes.len(), trace.wakes_left_out), (WAKE_ROWS_MAX, 3));
        assert_eq!(trace.wakes[0].sleeper_tid as usize, WAKE_ROWS_MAX + 2, "the most frequent stays");
    }

    #[test]
    fn numbers_without_a_name_are_told_as_numbers_and_places_of_several_as_that() {
        let mut counts = KernelCounts::default();
        for number in [509, CALLS_OF_32_BITS, CALLS_BEYOND] {
            let once = TracedCall { count: 1, on_cpu_ns: 8, ..TracedCall::default() };
            counts.calls.insert(number, once);
        }
        let trace = trace(&counts, 0, true, ProbeCost::default());
        let names: Vec<_> = trace.calls.iter().map(|call| (call.name.as_str(), call.purpose)).collect();
        let expected = ["syscall_509", "calls_of_32_bits", "syscall_510_and_above"];
        assert_eq!(names, expected.map(|name| (name, Purpose::Other)));
    }

    #[test]
    fn a_call_that_failed_says_how_and_how_often() {
        let mut counts = KernelCounts::default();
        let failed = TracedCall { count: 400, errors: 303, ..TracedCall::default() };
        counts.calls.insert(257, failed);
        for (error, count) in [(13, 3), (2, 300), (4_000, 1)] {
            counts.errors.insert((257, error), count);
        }
        counts.errors.insert((258, 2), 9);
        let trace = trace(&counts, 0, true, ProbeCost::default());
        let told: Vec<_> =
            trace.calls[0].errors_by_kind.iter().map(|it| (it.name.as_str(), it.count)).collect();
        assert_eq!(told, [("ENOENT", 300), ("EACCES", 3), ("error_4000", 1)]);
    }

    #[test]
    fn files_that_were_opened_once_are_in_no_list_and_those_beyond_it_are_counted() {
        let many = (0..OPENED_ROWS_MAX as u64 + 3).map(|file| (format!("/many/{file:03}"), 2));
        let counts = KernelCounts {
            opened: [("/once".to_owned(), 1), ("/often".to_owned(), 900)].into_iter().chain(many).collect(),
            ..KernelCounts::default()
        };
        let trace = trace(&counts, 0, true, ProbeCost::default());
        let files = OPENED_ROWS_MAX as u64 + 4;
        assert_eq!((trace.files_opened_again, trace.opens_of_those), (files, 900 + 2 * (files - 1)));
        assert_eq!(trace.opened_again.len(), OPENED_ROWS_MAX);
        assert_eq!(trace.opened_again[0], OpenedFile { path: "/often".to_owned(), opens: 900 });
    }

    #[test]
    fn operations_have_their_names_and_those_that_are_submitted_most_stand_first() {
        let counts = KernelCounts {
            operations: BTreeMap::from([(22, (5, 0)), (3, (70, 70)), (127, (1, 0))]),
            ..KernelCounts::default()
        };
        let trace = trace(&counts, 0, true, ProbeCost::default());
        let told: Vec<_> =
            trace.operations.iter().map(|it| (it.name.as_str(), it.submitted, it.to_workers)).collect();
        assert_eq!(told, [("fsync", 70, 70), ("read", 5, 0), ("operation_127", 1, 0)]);
    }

    #[test]
    fn what_threads_did_that_ended_is_in_the_sums() {
        let thread = |tid| TracedThread { tid, ran_ns: 10, sleeps: 2, preemptions: 1, ..Default::default() };
        let counts = KernelCounts {
            threads: vec![thread(1), thread(2)],
            ended_ran_ns: 5,
            ended_sleeps: 7,
            ended_preemptions: 9,
            ..KernelCounts::default()
        };
        let trace = trace(&counts, 0, true, ProbeCost::default());
        assert_eq!((trace.ran_ns, trace.sleeps, trace.preemptions), (25, 11, 11));
    }
}
