//! Accounts of servers with known parts, and differences of such accounts.

use weir_record::trial::{Reading, SliceRecord};

use super::*;
use crate::sample::study;

const MESSAGES: u64 = 1_000;

fn row(source: &str, key: &str, value: f64) -> Reading {
    Reading { source: source.to_owned(), key: key.to_owned(), value }
}

/// Calls of a kind, `each` per message, with this time on a CPU.
fn call(name: &str, each: f64, on_cpu_ns: f64) -> [Reading; 3] {
    let source = format!("call {name}");
    let messages = MESSAGES as f64;
    [
        row(&source, "count", each * messages),
        row(&source, "on-cpu-ns", on_cpu_ns * messages),
        row(&source, "softirq-ns", 0.0),
    ]
}

/// A server that sends for 3.05 µs including 0.5 µs of softirqs, receives for 0.95 µs and works for 1 µs in between.
/// While it is observed a call takes 200 ns more, 50 of them in its own time, and a clock reading takes 30.
fn rows(extra: &[[Reading; 3]], slow: f64) -> Vec<Reading> {
    let mut rows = vec![
        row("probe", "untraced-ns", 100.0),
        row("probe", "traced-ns", 300.0),
        row("probe", "inside-ns", 50.0),
        row("probe", "clock-ns", 30.0),
        row("engine", "outside-calls-ns", (1_000.0 + slow + 2.0 * 30.0) * MESSAGES as f64),
        row("engine", "outside-calls-spans", 2.0 * MESSAGES as f64),
        row("softirq NET_RX", "count", MESSAGES as f64),
        row("softirq NET_RX", "ns", 500.0 * MESSAGES as f64),
        row("trace", "is-split", 1.0),
    ];
    let calls = [call("sendto", 1.0, 3_000.0), call("recvfrom", 1.0, 900.0)];
    rows.extend(calls.into_iter().chain(extra.iter().cloned()).flatten());
    let send = rows.iter_mut().find(|row| row.source == "call sendto" && row.key == "softirq-ns");
    send.expect("it is there").value = 500.0 * MESSAGES as f64;
    rows
}

fn slice(rung: Rung, cpu_ns: f64, readings: Vec<Reading>) -> EvidenceSlice {
    let server_cpu_ns = (cpu_ns * MESSAGES as f64) as u64;
    let slice = SliceRecord { messages: MESSAGES, server_cpu_ns, ..SliceRecord::default() };
    EvidenceSlice { rung, slice, readings }
}

/// Six rounds of an arm; consecutive rounds differ by a nanosecond.
fn trials(arm: &str, cpu_ns: f64, readings: &[Reading]) -> Vec<TrialRecord> {
    let spec = study(&["epoll", "uring"], 8, 1);
    let trial = |block: u32| TrialRecord {
        cell_id: spec.cells[0].id.clone(),
        arm: arm.to_owned(),
        block,
        evidence: vec![
            slice(Rung::Process, cpu_ns + f64::from(block), Vec::new()),
            slice(Rung::Programs, cpu_ns + 1_000.0, readings.to_vec()),
        ],
        ..TrialRecord::default()
    };
    (0..6).map(trial).collect()
}

fn account(trials: &[TrialRecord]) -> CpuAccount {
    let spec = study(&["epoll", "uring"], 8, 1);
    let all: Vec<&TrialRecord> = trials.iter().collect();
    of_arm(&rounds(&spec.cells[0].id, &trials[0].arm, &all)).expect("there are rounds")
}

fn named(name: &str) -> CpuPart {
    CpuPart::Call(name.to_owned())
}

fn figures(parts: &[(CpuPart, Amount)]) -> Vec<(CpuPart, f64)> {
    parts.iter().map(|(part, amount)| (part.clone(), amount.ns.round())).collect()
}

#[test]
fn what_watching_adds_is_in_no_part_and_the_parts_close() {
    let found = account(&trials("epoll", 5_100.0, &rows(&[], 0.0)));
    let expected = [
        (named("sendto"), 2_550.0),
        (CpuPart::Server, 1_000.0),
        (named("recvfrom"), 950.0),
        (CpuPart::Softirqs, 500.0),
        (CpuPart::Unexplained, 103.0),
    ];
    assert_eq!(figures(&found.parts), expected);
    let explained = found.explained.expect("the server has a clock");
    assert_eq!(explained.outcome, Outcome::Met, "{explained:?}");
    assert!((explained.share - 0.98).abs() < 0.001, "{explained:?}");
    let sum: f64 = found.parts.iter().map(|(_, amount)| amount.ns).sum();
    assert!((sum - found.server_cpu.ns).abs() < 1e-6, "{sum}: {:?}", found.server_cpu);
}

#[test]
fn an_account_that_lacks_more_than_its_gap_does_not_close_nor_does_one_that_has_too_much() {
    let outcome = |cpu_ns| {
        let explained = account(&trials("epoll", cpu_ns, &rows(&[], 0.0))).explained;
        explained.map(|it| (it.outcome, it.is_beyond))
    };
    assert_eq!(outcome(5_000.0 / 0.93), Some((Outcome::Missed, false)));
    assert_eq!(outcome(5_000.0 / 0.96), Some((Outcome::Met, false)));
    assert_eq!(outcome(5_000.0 / 1.07), Some((Outcome::Missed, true)));
    let few = &trials("epoll", 5_100.0, &rows(&[], 0.0))[..3];
    assert_eq!(
        account(few).explained.map(|it| it.outcome),
        Some(Outcome::Open),
        "three rounds decide nothing"
    );
}

#[test]
fn a_call_the_engine_does_not_time_is_not_counted_twice_and_one_of_another_thread_not_taken_out() {
    let not_timed = call("getppid", 1.0, 50.0);
    let slept = [call("read", 1.0, 700.0).to_vec(), vec![row("call read", "blocked-ns", 9.0)]].concat();
    // Between its calls the worker was in getppid for 50 ns, and entered and left the kernel for 250.
    let mut readings = rows(&[not_timed], 300.0);
    readings.extend(slept);
    let found = account(&trials("epoll", 6_000.0, &readings));
    let of =
        |part: CpuPart| figures(&found.parts).into_iter().find(|(own, _)| *own == part).map(|(_, ns)| ns);
    assert_eq!(of(CpuPart::Server), Some(1_000.0));
    assert_eq!(of(named("getppid")), Some(100.0));
    assert_eq!(of(named("read")), Some(750.0));
}

#[test]
fn what_others_had_of_the_cpu_is_not_the_servers_own_work() {
    let mut readings = rows(&[], 250.0);
    // Of 1.725 µs without a CPU 0.5 were in calls; of the rest a part fell outside of them: 1 µs of 4.9.
    readings.push(row("trace", "queued-ns", 1_725.0 * MESSAGES as f64));
    readings.push(row("call sendto", "queued-ns", 500.0 * MESSAGES as f64));
    let found = account(&trials("epoll", 5_100.0, &readings));
    let own = figures(&found.parts).into_iter().find(|(part, _)| *part == CpuPart::Server).map(|(_, ns)| ns);
    assert_eq!(own, Some(1_000.0));
}

/// Times of programs at wake-ups, switches and softirqs: 120 ns themselves and 20 for each of two runs within a send,
/// 60 and 20 within the softirq, and between calls, where the worker's thread also waited and was interrupted.
fn with_probes() -> Vec<Reading> {
    let messages = MESSAGES as f64;
    let mut readings = rows(&[], 160.0 + 60.0 + 80.0);
    for row in &mut readings {
        match (row.source.as_str(), row.key.as_str()) {
            ("call sendto", "on-cpu-ns") => row.value += (160.0 + 80.0) * messages,
            ("call sendto", "softirq-ns") => row.value += 80.0 * messages,
            ("softirq NET_RX", "ns") => row.value += (80.0 + 60.0) * messages,
            _ => {}
        }
    }
    let worker = "thread weir-worker-0";
    readings.extend([
        row("probe", "run-ns", 20.0),
        row("call sendto", "probe-ns", 120.0 * messages),
        row("call sendto", "probe-runs", 2.0 * messages),
        row("softirq NET_RX", "probe-ns", 60.0 * messages),
        row("softirq NET_RX", "probe-runs", messages),
        row(worker, "calls", 2.0 * messages),
        row(worker, "in-calls-ns", (3_240.0 + 900.0) * messages),
        row(worker, "softirq-ns", (580.0 + 60.0) * messages),
        row(worker, "in-calls-softirq-ns", 580.0 * messages),
        row(worker, "probe-ns", (120.0 + 120.0) * messages),
        row(worker, "in-calls-probe-ns", 120.0 * messages),
        row(worker, "probe-runs", 4.0 * messages),
        row(worker, "in-calls-probe-runs", 2.0 * messages),
    ]);
    readings
}

#[test]
fn programs_within_calls_softirqs_and_between_them_are_in_no_part() {
    // Between its calls: 160 ns of programs, 60 of a softirq, 80 in a call that is not timed, plus 250 for entering
    // and leaving.
    let mut readings = with_probes();
    let worker = "thread weir-worker-0";
    let outside = readings.iter_mut().find(|row| row.key == "outside-calls-ns").expect("it is there");
    outside.value += 250.0 * MESSAGES as f64;
    for row in &mut readings {
        match (row.source.as_str(), row.key.as_str()) {
            (source, "calls") if source == worker => row.value += MESSAGES as f64,
            (source, "in-calls-ns") if source == worker => row.value += 80.0 * MESSAGES as f64,
            _ => {}
        }
    }
    // Another thread's calls are in the table of calls, and not in the worker's time.
    readings.extend(call("read", 1.0, 700.0));
    let found = account(&trials("epoll", 6_000.0, &readings));
    let expected = [
        (named("sendto"), 2_550.0),
        (CpuPart::Server, 1_000.0),
        (named("recvfrom"), 950.0),
        (named("read"), 750.0),
        (CpuPart::Softirqs, 560.0),
    ];
    assert_eq!(figures(&found.parts)[..5], expected);
}

#[test]
fn accepting_and_handing_over_are_calls_of_a_blocking_server_like_any_other() {
    // One thread accepts for 600 ns and hands over for 200; the other receives, sends and waits for 300, and closes
    // for 400, which is not timed and takes 250 for entering and leaving.
    let messages = MESSAGES as f64;
    let further = [call("accept4", 1.0, 600.0), call("futex", 2.0, 500.0), call("close", 1.0, 400.0)];
    let mut readings = rows(&further, 2.0 * 30.0 + 400.0 + 250.0);
    let threads = [("thread weir-acceptor", 2.0, 800.0), ("thread weir-connection", 4.0, 4_600.0)];
    for (thread, calls, in_calls_ns) in threads {
        readings.push(row(thread, "calls", calls * messages));
        readings.push(row(thread, "in-calls-ns", in_calls_ns * messages));
        let softirq_ns = if thread.ends_with("connection") { 500.0 } else { 0.0 };
        readings.push(row(thread, "softirq-ns", softirq_ns * messages));
        readings.push(row(thread, "in-calls-softirq-ns", softirq_ns * messages));
    }
    let spans = readings.iter_mut().find(|row| row.key == "outside-calls-spans").expect("it is there");
    spans.value += 2.0 * messages;
    let found = account(&trials("blocking", 7_000.0, &readings));
    let of =
        |part: CpuPart| figures(&found.parts).into_iter().find(|(own, _)| *own == part).map(|(_, ns)| ns);
    assert_eq!(of(CpuPart::Server), Some(1_000.0), "{:?}", found.parts);
    let calls = ["accept4", "futex", "close"].map(|name| of(named(name)));
    assert_eq!(calls, [Some(650.0), Some(600.0), Some(450.0)]);
}

#[test]
fn what_threads_are_charged_with_and_did_not_run_for_is_switching_to_them() {
    let messages = MESSAGES as f64;
    let mut readings = rows(&[], 0.0);
    let threads = [("thread weir-worker-0", 7_000.0), ("thread iou-wrk-7", 9_000.0), ("thread new", 0.0)];
    for (thread, cpu_ns) in threads {
        if cpu_ns > 0.0 {
            readings.push(row(thread, "cpu-ns", cpu_ns * messages));
        }
        readings.push(row(thread, "ran-ns", 5_000.0 * messages));
        readings.push(row(thread, "switch-probe-ns", 300.0 * messages));
    }
    let found = account(&trials("epoll", 6_800.0, &readings));
    let of =
        |part: CpuPart| figures(&found.parts).into_iter().find(|(own, _)| *own == part).map(|(_, ns)| ns);
    assert_eq!((of(CpuPart::Switching), of(CpuPart::Unexplained)), (Some(1_700.0), Some(103.0)));
}

#[test]
fn where_nobody_is_charged_for_softirqs_they_are_in_no_part() {
    let mut readings = with_probes();
    readings.push(row("trace", "softirqs-are-apart", 1.0));
    let found = account(&trials("epoll", 5_000.0, &readings));
    assert!(!found.parts.iter().any(|(part, _)| *part == CpuPart::Softirqs), "{:?}", found.parts);
    assert_eq!(figures(&found.parts)[0], (named("sendto"), 2_550.0));
}

#[test]
fn a_server_without_a_clock_has_a_rest_and_no_verdict() {
    let mut readings = rows(&[], 0.0);
    readings.retain(|row| row.source != "engine");
    let found = account(&trials("epoll", 5_100.0, &readings));
    assert_eq!(figures(&found.parts).last(), Some(&(CpuPart::OutsideCalls, 1_103.0)));
    assert_eq!(found.explained, None);
}

#[test]
fn evidence_from_before_probes_were_tried_is_judged_with_what_it_has() {
    let mut readings = rows(&[], 0.0);
    readings.retain(|row| row.source != "engine" && row.source != "probe" && row.key != "softirq-ns");
    let found = account(&trials("epoll", 5_100.0, &readings));
    let expected = [(named("sendto"), 3_000.0), (named("recvfrom"), 900.0), (CpuPart::OutsideCalls, 1_203.0)];
    assert_eq!(figures(&found.parts), expected);
}

#[test]
fn small_calls_stand_together_and_only_within_their_kind() {
    let small = [call("getpid", 0.01, 1.0), call("futex", 0.01, 2.0)];
    let found = account(&trials("epoll", 5_100.0, &rows(&small, 0.0)));
    let of = |part| figures(&found.parts).into_iter().find(|(own, _)| *own == part).map(|(_, ns)| ns);
    assert_eq!(of(CpuPart::OtherCalls), Some(4.0));
    assert_eq!(of(named("getpid")), None);
}

fn difference(one: &[TrialRecord], other: &[TrialRecord]) -> CpuDifference {
    let spec = study(&["epoll", "uring"], 8, 1);
    let all: Vec<&TrialRecord> = one.iter().chain(other).collect();
    let found = differences(&spec, &all);
    let [found] = found.as_slice() else { panic!("one arm beside the baseline: {found:?}") };
    assert_eq!((found.arm.as_str(), found.baseline.as_str()), ("uring", "epoll"));
    found.clone()
}

#[test]
fn the_planted_call_leads_the_difference_and_the_parts_add_up_to_the_whole() {
    let planted = rows(&[call("getppid", 1.0, 50.0)], 300.0);
    let found = difference(&trials("epoll", 5_100.0, &rows(&[], 0.0)), &trials("uring", 5_200.0, &planted));
    assert_eq!(figures(&found.parts)[0], (named("getppid"), 100.0));
    let (low, high) = found.parts[0].1.interval.expect("there are six rounds");
    assert!((low..=high).contains(&found.parts[0].1.ns), "{low} {high}");
    let rest: Vec<f64> = found.parts[1..].iter().map(|(_, amount)| amount.ns.abs()).collect();
    assert!(rest.iter().all(|ns| *ns < 1.0), "{:?}", found.parts);
    assert_eq!((found.rounds, found.whole.ns.round()), (6, 100.0));
    let sum: f64 = found.parts.iter().map(|(_, amount)| amount.ns).sum();
    assert!((sum - found.whole.ns).abs() < 1e-6, "{sum}: {:?}", found.whole);
}

#[test]
fn a_call_is_told_with_the_softirqs_that_ran_within_it_too() {
    // Of 700 ns in softirqs 500 are within sendto, and of the programs' 70 ns in them the same share.
    let mut readings = rows(&[], 200.0);
    let softirq = readings.iter_mut().find(|row| row.source == "softirq NET_RX" && row.key == "ns");
    softirq.expect("it is there").value = 700.0 * MESSAGES as f64;
    readings.push(row("softirq NET_RX", "probe-ns", 70.0 * MESSAGES as f64));
    let plain = trials("epoll", 5_200.0, &readings);
    let told = |with_softirqs: &[(String, Amount)]| {
        with_softirqs.iter().map(|(name, it)| (name.clone(), it.ns.round())).collect::<Vec<_>>()
    };
    let found = account(&plain);
    assert_eq!(told(&found.with_softirqs), [("sendto".to_owned(), 3_000.0)], "no softirq is in recvfrom");
    for row in readings.iter_mut().filter(|row| row.source == "call sendto" && row.key != "count") {
        row.value *= 2.0;
    }
    let softirq = readings.iter_mut().find(|row| row.source == "softirq NET_RX" && row.key == "ns");
    softirq.expect("it is there").value += 500.0 * MESSAGES as f64;
    let found = difference(&plain, &trials("uring", 8_200.0, &readings));
    let [(name, both)] = found.with_softirqs.as_slice() else { panic!("{:?}", found.with_softirqs) };
    assert_eq!(figures(&found.parts)[..2], [(named("sendto"), 2_500.0), (CpuPart::Softirqs, 500.0)]);
    // 1,000 of 1,200 ns here, and 500 of 700 there.
    let within_ns: f64 = 1_130.0 * 1_000.0 / 1_200.0 - 630.0 * 500.0 / 700.0;
    assert_eq!((name.as_str(), both.ns.round()), ("sendto", (2_500.0 + within_ns).round()));
    assert!(both.is_told_from_nothing(), "{both:?}");
}

#[test]
fn a_part_that_may_be_noise_does_not_lead_a_smaller_one_that_is_known() {
    let plain = trials("epoll", 5_100.0, &rows(&[], 0.0));
    let mut planted = trials("uring", 5_150.0, &rows(&[call("getppid", 1.0, 50.0)], 250.0));
    for trial in planted.iter_mut().filter(|trial| trial.block % 2 == 1) {
        // Every second round took much longer for an unknown reason.
        trial.evidence[0].slice.server_cpu_ns += 3_000 * MESSAGES;
    }
    let found = difference(&planted, &plain);
    let (first, amount) = &found.parts[0];
    assert_eq!((first, amount.ns.round()), (&named("getppid"), 100.0), "{:?}", found.parts);
    let rest = found.parts.iter().find(|(part, _)| *part == CpuPart::Unexplained).expect("it is there");
    assert!(rest.1.ns > 1_000.0 && !rest.1.is_told_from_nothing(), "{rest:?}");
}

#[test]
fn two_servers_of_which_one_has_no_clock_are_compared_by_what_is_outside_of_calls() {
    let mut foreign = rows(&[], 0.0);
    foreign.retain(|row| row.source != "engine");
    let found = difference(&trials("epoll", 5_100.0, &rows(&[], 0.0)), &trials("uring", 5_400.0, &foreign));
    assert_eq!(figures(&found.parts)[0], (CpuPart::OutsideCalls, 300.0));
    assert!(!found.parts.iter().any(|(part, _)| matches!(part, CpuPart::Server | CpuPart::Unexplained)));
}

#[test]
fn rounds_of_which_one_slice_is_wrong_have_no_part() {
    let mut trials = trials("epoll", 5_100.0, &rows(&[], 0.0));
    trials[0].evidence[0].slice.errors = 1;
    trials[1].evidence[1].readings.retain(|row| row.key != "is-split");
    trials[2].evidence.pop();
    assert_eq!(account(&trials).rounds, 3);
}

#[test]
fn a_softirq_between_two_calls_is_not_the_servers_own_work_too() {
    // 500 ns within sendto, and 200 ns during the server's own work.
    let mut readings = rows(&[], 200.0);
    let softirq = readings.iter_mut().find(|row| row.source == "softirq NET_RX" && row.key == "ns");
    softirq.expect("it is there").value = 700.0 * MESSAGES as f64;
    let found = account(&trials("epoll", 5_200.0, &readings));
    let of =
        |part: CpuPart| figures(&found.parts).into_iter().find(|(own, _)| *own == part).map(|(_, ns)| ns);
    assert_eq!((of(CpuPart::Server), of(CpuPart::Softirqs)), (Some(1_000.0), Some(700.0)));
}

#[test]
fn a_slice_under_strace_is_in_no_account() {
    let mut all = trials("epoll", 5_100.0, &rows(&[], 0.0));
    let before = account(&all);
    all[0].evidence.push(slice(Rung::Strace, 90_000.0, Vec::new()));
    assert_eq!(account(&all), before);
}
