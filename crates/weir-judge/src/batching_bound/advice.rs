//! Advice from the calls of an observed process: where it sleeps, which calls could be fewer without another I/O
//! model, and which operations its rings hand to kernel worker threads.
//!
//! Every entry is based on counts, and promises a count: this many calls instead of that many. The effect on the
//! throughput is unknown. That CPU does not limit a process says nothing about the gain from batches or concurrency
//! for one that waits, and frequent kernel entries say nothing about the effect of io_uring.

use weir_record::observation::{
    Advice, BATCHED_OPERATIONS, CallFigures, GATHERED_BYTES, Observation, Trace, WaitsFor, total,
};

/// Sleeping for less of the window than this is not reported.
const SLEPT_SHARE: f64 = 0.05;
/// Most kinds of calls whose sleeping is reported.
const SLEPT_KINDS_MAX: usize = 4;
/// Calls that transfer fewer bytes than this on average are small: the transfer costs less than the call itself.
const SMALL_BYTES: u64 = 512;
/// Small calls of a kind are reported from this share of the CPU on,
const SMALL_SHARE: f64 = 0.10;
/// and opens and closes likewise;
const OPENS_SHARE: f64 = 0.10;
/// a kind with fewer calls than this is never reported.
const CALLS_MIN: u64 = 100;
/// With fewer operations per call than this they are submitted one by one.
const ONE_BY_ONE: f64 = 1.5;
/// From this share of the operations on, worker threads execute a ring's operations.
const WORKERS_SHARE: f64 = 0.50;

/// All advice, in display order; empty for a process that was not traced.
pub fn advice(observation: &Observation) -> Vec<Advice> {
    let Some(trace) = &observation.trace else { return Vec::new() };
    let mut advice = Vec::new();
    // Without the scheduler's data sleeps are unknown.
    if trace.is_split {
        advice.extend(slept(trace));
    }
    advice.extend(to_workers(trace));
    let whole_ns = observation.unwatched_cpu_ns();
    advice.extend(trace.calls.iter().filter_map(|call| coalesce(call, trace, whole_ns)));
    advice.extend(trace.calls.iter().filter_map(one_by_one));
    advice.extend(keep_open(trace, whole_ns));
    advice
}

/// Kinds of calls in which threads slept longest, combined.
fn slept(trace: &Trace) -> Vec<Advice> {
    let least_ns = SLEPT_SHARE * trace.window_ns as f64;
    let mut slept: Vec<&CallFigures> =
        trace.calls.iter().filter(|call| call.count > 0 && call.blocked_ns as f64 > least_ns).collect();
    slept.sort_by_key(|call| std::cmp::Reverse(call.blocked_ns));
    let of_call = |call: &CallFigures| Advice::Slept {
        call: call.name.clone(),
        waits_for: waits_for(&call.name),
        calls: call.count,
        slept_ns: call.blocked_ns,
    };
    slept.into_iter().take(SLEPT_KINDS_MAX).map(of_call).collect()
}

/// What a call waits for when it sleeps.
fn waits_for(name: &str) -> WaitsFor {
    match name {
        "fsync" | "fdatasync" | "msync" | "sync_file_range" | "syncfs" | "sync" => WaitsFor::Durability,
        "pread64" | "preadv" | "preadv2" | "pwrite64" | "pwritev" | "pwritev2" | "copy_file_range"
        | "readahead" | "getdents64" => WaitsFor::File,
        "read" | "readv" | "write" | "writev" | "sendfile" | "splice" | "tee" | "vmsplice" => {
            WaitsFor::FileOrPeer
        }
        "recvfrom" | "recvmsg" | "recvmmsg" | "sendto" | "sendmsg" | "sendmmsg" | "accept" | "accept4"
        | "connect" => WaitsFor::Peer,
        "epoll_wait" | "epoll_pwait" | "epoll_pwait2" | "poll" | "ppoll" | "select" | "pselect6" => {
            WaitsFor::Readiness
        }
        "io_uring_enter" | "io_getevents" | "io_pgetevents" | "io_submit" => WaitsFor::Operations,
        "nanosleep" | "clock_nanosleep" => WaitsFor::Time,
        "futex" | "futex_waitv" | "wait4" | "waitid" => WaitsFor::Own,
        _ => WaitsFor::Other,
    }
}

/// Whether a call returns the number of bytes that it transferred between a file or a socket and the process.
pub(super) fn moves_bytes(name: &str) -> bool {
    matches!(
        name,
        "read"
            | "write"
            | "readv"
            | "writev"
            | "pread64"
            | "pwrite64"
            | "preadv"
            | "pwritev"
            | "preadv2"
            | "pwritev2"
            | "recvfrom"
            | "sendto"
            | "recvmsg"
            | "sendmsg"
    )
}

fn coalesce(call: &CallFigures, trace: &Trace, whole_ns: f64) -> Option<Advice> {
    let calls = call.count.saturating_sub(call.errors).saturating_sub(call.again);
    let is_small =
        calls >= CALLS_MIN && call.returned > 0 && call.returned < SMALL_BYTES.saturating_mul(calls);
    let is_much = call.cpu_ns(&trace.cost) > SMALL_SHARE * whole_ns;
    (moves_bytes(&call.name) && is_small && is_much).then(|| Advice::Coalesce {
        call: call.name.clone(),
        calls,
        bytes: call.returned,
        calls_gathered: call.returned.div_ceil(GATHERED_BYTES),
    })
}

/// Calls that only wait submit nothing: a kind with less than one operation per call may still submit in batches, and
/// is not reported.
fn one_by_one(call: &CallFigures) -> Option<Advice> {
    let each = call.returned as f64 / call.count.max(1) as f64;
    let is_one = is_submission(&call.name) && call.returned >= CALLS_MIN && (0.9..ONE_BY_ONE).contains(&each);
    is_one.then(|| Advice::OneASubmission {
        call: call.name.clone(),
        calls: call.count,
        operations: call.returned,
        calls_batched: call.returned.div_ceil(BATCHED_OPERATIONS),
    })
}

/// Whether a call returns the number of operations that it submitted.
pub(super) fn is_submission(name: &str) -> bool {
    matches!(name, "io_uring_enter" | "io_submit")
}

/// Repeated opens of the same name, if these and as many closes cost a noticeable share of the CPU. Single opens of
/// different files, failed opens and other queries about files do not count.
fn keep_open(trace: &Trace, whole_ns: f64) -> Option<Advice> {
    let most = trace.opened_again.first()?;
    let (files, opens) = (trace.files_opened_again, trace.opens_of_those);
    let cost_ns = |names: &[&str]| {
        let calls = || trace.calls.iter().filter(|call| names.contains(&call.name.as_str()));
        let count = total(calls().map(|call| call.count));
        let cpu_ns: f64 = calls().map(|call| call.cpu_ns(&trace.cost)).sum();
        cpu_ns * (opens as f64 / count.max(1) as f64).min(1.0)
    };
    let is_much = cost_ns(&["open", "openat", "openat2"]) + cost_ns(&["close"]) > OPENS_SHARE * whole_ns;
    let is_often = opens.saturating_sub(files) >= CALLS_MIN;
    (is_often && is_much).then(|| Advice::KeepOpen {
        files,
        opens,
        path: most.path.clone(),
        path_opens: most.opens,
    })
}

/// Operations submitted by its threads, and operations given to workers.
fn to_workers(trace: &Trace) -> Option<Advice> {
    let of = |event: &str| trace.uring.iter().find(|it| it.event == event).map_or(0, |it| it.count);
    let (submitted, to_workers) = (of("submit_req"), of("queue_async_work"));
    let is_most = submitted >= CALLS_MIN && to_workers as f64 > WORKERS_SHARE * submitted as f64;
    is_most.then_some(Advice::ToWorkers { submitted, to_workers })
}

#[cfg(test)]
mod tests {
    use weir_record::observation::{OpenedFile, Purpose, Totals, UringFigures};

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn call(name: &str, count: u64, returned: u64) -> CallFigures {
        CallFigures { name: name.to_owned(), count, returned, ..CallFigures::default() }
    }

    fn observed(calls: Vec<CallFigures>) -> Observation {
        let trace = Trace { window_ns: SECOND_NS, is_split: true, calls, ..Trace::default() };
        let totals = Totals { cpu_ns: 500_000_000, ..Totals::default() };
        Observation { window_ns: SECOND_NS, totals, trace: Some(trace), ..Observation::default() }
    }

    #[test]
    fn where_it_slept_is_told_with_what_it_waited_for_and_the_longest_first() {
        let slept = |name: &str, blocked_ns| CallFigures { blocked_ns, ..call(name, 300, 0) };
        let mut seen = observed(vec![
            slept("pread64", 200_000_000),
            slept("fsync", 600_000_000),
            slept("futex", 40_000_000),
            slept("recvfrom", 60_000_000),
        ]);
        let told = |observation: &Observation| -> Vec<(String, WaitsFor)> {
            let of = |it| match it {
                Advice::Slept { call, waits_for, .. } => Some((call, waits_for)),
                _ => None,
            };
            advice(observation).into_iter().filter_map(of).collect()
        };
        let name = |name: &str, waits_for| (name.to_owned(), waits_for);
        let expected = [
            name("fsync", WaitsFor::Durability),
            name("pread64", WaitsFor::File),
            name("recvfrom", WaitsFor::Peer),
        ];
        assert_eq!(told(&seen), expected);
        seen.trace.as_mut().expect("it was traced").is_split = false;
        assert!(told(&seen).is_empty(), "a sleep is not distinguished from work");
        seen.trace = None;
        assert!(told(&seen).is_empty());
    }

    #[test]
    fn small_calls_that_cost_much_are_to_be_gathered_and_large_few_or_cheap_ones_are_not() {
        let of = |name: &str, count, returned, on_cpu_ns| {
            let call = CallFigures { on_cpu_ns, purpose: Purpose::Transfer, ..call(name, count, returned) };
            advice(&observed(vec![call]))
        };
        let told =
            Advice::Coalesce { call: "write".to_owned(), calls: 20_000, bytes: 320_000, calls_gathered: 79 };
        assert_eq!(of("write", 20_000, 320_000, 400_000_000), [told]);
        for (name, count, returned, on_cpu_ns) in [
            ("write", 20_000, 20_000 << 12, 400_000_000),
            ("write", 20, 320, 400_000_000),
            ("write", 20_000, 320_000, 10_000_000),
            // Empty reads: an end of a file.
            ("read", 20_000, 0, 400_000_000),
            // They return a descriptor, or a number of messages.
            ("accept4", 20_000, 320_000, 400_000_000),
            ("sendmmsg", 20_000, 20_000, 400_000_000),
        ] {
            assert_eq!(of(name, count, returned, on_cpu_ns), [], "{name} {count} {returned} {on_cpu_ns}");
        }
    }

    #[test]
    fn of_calls_that_failed_or_found_nothing_no_bytes_are_expected() {
        let sends =
            CallFigures { again: 9_900, on_cpu_ns: 400_000_000, ..call("sendto", 10_000, 100 * SMALL_BYTES) };
        assert_eq!(advice(&observed(vec![sends])), []);
    }

    #[test]
    fn one_operation_a_submission_is_told_of_libaio_as_of_io_uring_and_batches_are_not() {
        for name in ["io_submit", "io_uring_enter"] {
            let told = Advice::OneASubmission {
                call: name.to_owned(),
                calls: 1_600,
                operations: 1_600,
                calls_batched: 100,
            };
            assert_eq!(advice(&observed(vec![call(name, 1_600, 1_600)])), [told]);
            assert_eq!(advice(&observed(vec![call(name, 1_600, 1_600 * 16)])), []);
            assert_eq!(advice(&observed(vec![call(name, 1_600, 40)])), [], "most of them wait");
        }
        assert_eq!(advice(&observed(vec![call("io_getevents", 1_600, 1_600)])), []);
    }

    #[test]
    fn files_that_are_opened_again_and_again_are_told_and_such_that_are_opened_once_are_not() {
        let of = |files, opens, on_cpu_ns| {
            let mut seen = observed(vec![
                CallFigures { on_cpu_ns, ..call("openat", 20_000, 20_000) },
                CallFigures { on_cpu_ns, ..call("close", 40_000, 0) },
            ]);
            let trace = seen.trace.as_mut().expect("it was traced");
            (trace.files_opened_again, trace.opens_of_those) = (files, opens);
            trace.opened_again =
                vec![OpenedFile { path: "/srv/index.html".to_owned(), opens: opens - files + 1 }];
            advice(&seen)
        };
        let path = "/srv/index.html".to_owned();
        let told = Advice::KeepOpen { files: 3, opens: 20_000, path, path_opens: 19_998 };
        assert_eq!(of(3, 20_000, 100_000_000), [told]);
        assert_eq!(of(3, 20_000, 10_000_000), [], "they cost little");
        assert_eq!(of(3, 2_000, 100_000_000), [], "most were opened once");
        assert_eq!(of(50, 100, 100_000_000), [], "few");
        let tar = observed(vec![CallFigures { on_cpu_ns: 400_000_000, ..call("openat", 20_000, 20_000) }]);
        assert_eq!(advice(&tar), [], "each of them once");
    }

    #[test]
    fn operations_that_go_to_workers_are_told_where_they_are_most() {
        let of = |submitted, to_workers| {
            let event = |event: &str, count| UringFigures {
                event: event.to_owned(),
                count,
                elsewhere_count: 9 * count,
            };
            let mut seen = observed(vec![call("io_uring_enter", 100, 1_600)]);
            let trace = seen.trace.as_mut().expect("it was traced");
            trace.uring = vec![event("submit_req", submitted), event("queue_async_work", to_workers)];
            advice(&seen)
        };
        assert_eq!(of(1_600, 1_600), [Advice::ToWorkers { submitted: 1_600, to_workers: 1_600 }]);
        assert_eq!(of(1_600, 400), []);
        assert_eq!(of(20, 20), []);
    }
}
