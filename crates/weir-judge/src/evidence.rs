//! Sums over the slices of evidence, per message. They are used in no comparison. Pure.
//!
//! If engine and kernel both count the calls for I/O, they must agree for every kind: a difference is a bug, not a
//! property of the machine. The cost of observing is a ratio of two slices of the same round, one observed and one
//! not.

use std::collections::BTreeSet;

use weir_record::{
    check::{Check, CheckName},
    evidence::{
        AllCalls, ArmEvidence, Batches, CallEvidence, CallsOfKind, Coverage, GroupTax, Needed, OverRounds,
        WAKERS_MAX, Waker,
    },
    figure::{Figure, PairedRatio},
    finding::{CallsApart, CallsLacking, Finding},
    machine::NetworkCounters,
    observation::Rung,
    spec::{CellSpec, StudySpec},
    trial::{EvidenceSlice, Reading, SliceRecord, TrialRecord},
};
use weir_stats::decide::estimate;

use crate::{
    cpu_account,
    sums::{
        ENGINE_KINDS, GROUP_OF_CALLS, GROUP_OF_PROC, Kind, OBSERVER, PROGRAMS_FAILED, Sums, WAITS, by_group,
        right, softirqs_are_apart,
    },
    syscall_coverage,
};

/// With fewer rounds the cost of observing has no useful interval.
const TAX_ROUNDS_MIN: usize = 4;

/// With fewer rounds the interval of a figure of calls would be a guess of two values.
const CALLS_ROUNDS_MIN: usize = 3;

const ENTERS: [&str; 1] = ["io_uring_enter"];

/// Most differences that a check names.
const APART_MAX: usize = 8;

/// Whether engine and kernel counted the same calls of every kind; `None` if the kernel's programs observed no Weir
/// engine, or if it is older and did not count all kinds.
pub(crate) fn calls_agree(evidence: &[ArmEvidence]) -> Option<Check> {
    let known =
        || evidence.iter().filter_map(|arm| Some((arm, arm.coverage.as_ref().filter(|it| !it.is_unknown)?)));
    known().next()?;
    let apart_of = |(arm, coverage): (&ArmEvidence, &Coverage)| {
        let apart = |of: &CallsOfKind| CallsApart {
            cell_id: arm.cell_id.clone(),
            arm: arm.arm.clone(),
            kind: of.kind.clone(),
            engine: of.engine,
            kernel: of.kernel,
        };
        coverage.apart().map(apart).collect::<Vec<_>>()
    };
    let mut apart: Vec<CallsApart> = known().flat_map(apart_of).collect();
    let passed = apart.is_empty();
    apart.truncate(APART_MAX);
    let servers = known().count() as u64;
    Some(Check { name: CheckName::CallsAgree, passed, detail: Finding::CallsAgree { servers, apart } })
}

/// Whether the observed calls suffice to transfer the messages, for every arm; `None` if none were observed.
pub(crate) fn calls_cover(evidence: &[ArmEvidence]) -> Option<Check> {
    let seen = || {
        let arms = evidence.iter().filter(|arm| arm.rung >= Rung::Programs);
        arms.filter_map(|arm| Some((arm, arm.needed.as_ref()?)))
    };
    seen().next()?;
    let lacking_of = |(arm, needed): (&ArmEvidence, &Needed)| CallsLacking {
        cell_id: arm.cell_id.clone(),
        arm: arm.arm.clone(),
        share: needed.share(),
    };
    let mut lacking: Vec<CallsLacking> =
        seen().filter(|(_, needed)| !needed.is_covered()).map(lacking_of).collect();
    let passed = lacking.is_empty();
    lacking.truncate(APART_MAX);
    let servers = seen().count() as u64;
    let detail = Finding::CallsCover { servers, share_min: Needed::SHARE_MIN, lacking };
    Some(Check { name: CheckName::CallsCover, passed, detail })
}

/// Whether the kernel's programs observed everything they should; `None` if they were not requested.
pub(crate) fn check(trials: &[&TrialRecord]) -> Option<Check> {
    let slices = || trials.iter().flat_map(|trial| right(trial).filter(|slice| slice.rung == Rung::Programs));
    let rows = || slices().flat_map(|slice| &slice.readings).filter(|row| row.source == "trace");
    let sum = |key: &str| rows().filter(|row| row.key == key).map(|row| row.value).sum::<f64>() as u64;
    let (missed, without_room) = (sum("misses"), sum("threads-lost") + sum("wakes-lost"));
    let could_not = |row: &Reading| row.source == OBSERVER && row.key == PROGRAMS_FAILED;
    let all = trials.iter().flat_map(|trial| &trial.evidence);
    let failed = all.filter(|slice| slice.readings.iter().any(could_not)).count() as u64;
    let slices = slices().count() as u64;
    let detail = Finding::ProgramsComplete { missed, without_room, slices, failed };
    let passed = missed == 0 && without_room == 0 && failed == 0;
    (slices + failed > 0).then_some(Check { name: CheckName::ProgramsComplete, passed, detail })
}

/// One entry for each arm and cell with valid slices.
pub(crate) fn all(spec: &StudySpec, trials: &[&TrialRecord]) -> Vec<ArmEvidence> {
    let arms = |cell| spec.arms.iter().map(move |arm| (cell, arm.name.as_str()));
    spec.cells.iter().flat_map(arms).filter_map(|(cell, arm)| of_arm(cell, arm, trials)).collect()
}

fn of_arm(cell: &CellSpec, arm: &str, trials: &[&TrialRecord]) -> Option<ArmEvidence> {
    let own: Vec<&TrialRecord> =
        trials.iter().copied().filter(|trial| trial.cell_id == cell.id && trial.arm == arm).collect();
    let all: Vec<&EvidenceSlice> =
        own.iter().flat_map(|trial| right(trial)).filter(|slice| slice.rung < Rung::Strace).collect();
    let rung = all.iter().map(|slice| slice.rung).max()?;
    let highest: Vec<&EvidenceSlice> = all.iter().copied().filter(|slice| slice.rung == rung).collect();
    let sums = Sums::of(&highest);
    let per_message = |value: f64| value / sums.messages as f64;
    let of_process = |key| per_message(sums.value("process", key));
    Some(ArmEvidence {
        cell_id: cell.id.clone(),
        arm: arm.to_owned(),
        rung,
        slices: u32::try_from(highest.len()).unwrap_or(u32::MAX),
        messages: sums.messages,
        server_cpu_ns: per_message(sums.server_cpu_ns as f64),
        context_switches: (
            of_process("context-switches-voluntary"),
            of_process("context-switches-involuntary"),
        ),
        batches: batches(&sums),
        wakers: wakers(&sums),
        softirq_ns: softirq_ns(&sums),
        softirqs_are_apart: softirqs_are_apart(&sums),
        machine_cpu_ns: of_lowest_rung(&all, |slice| slice.machine_cpu_ns),
        generator_cpu_ns: Some(of_lowest_rung(&all, |slice| slice.generator_cpu_ns)),
        network: network(&Sums::of(&all)),
        calls: calls(&sums),
        all_calls: all_calls(&own, rung),
        coverage: coverage(&sums),
        needed: syscall_coverage::of_sums(cell, &sums),
        tax: tax(&own, watched, unwatched),
        tax_by_group: tax_by_group(&own),
        account: cpu_account::of_arm(&cpu_account::rounds(&cell.id, arm, trials)),
    })
}

/// Operations per call: from the engine if it counts them, otherwise from the calls' results and the kernel's events.
fn batches(sums: &Sums<'_>) -> Batches {
    let over = |above: f64, below: f64| (below > 0.0 && above > 0.0).then(|| above / below);
    let engine = |key| sums.value("engine", key);
    let of_calls =
        |names: &[&str], key| names.iter().map(|name| sums.value(&format!("call {name}"), key)).sum::<f64>();
    let returned = |names: &[&str]| over(of_calls(names, "returned"), of_calls(names, "count"));
    // An engine that never waits for readiness has no such batches: a blocking call waits for itself.
    let has_engine = sums.rows.keys().any(|(source, _)| *source == "engine");
    let completed =
        sums.value("io_uring complete", "count") + sums.value("io_uring complete", "elsewhere-count");
    Batches {
        events_per_wait: match has_engine {
            true => over(engine("completions"), engine("wait-calls")),
            false => returned(&WAITS),
        },
        submissions_per_enter: over(engine("submissions"), engine("enters")).or_else(|| returned(&ENTERS)),
        completions_per_enter: match engine("enters") {
            0.0 => over(completed, of_calls(&ENTERS, "count")),
            enters => over(engine("completions"), enters),
        },
    }
}

/// Wakers of the server's threads; the rarest are combined.
fn wakers(sums: &Sums<'_>) -> Vec<Waker> {
    let waker = |source: &str| Waker {
        name: source.trim_start_matches("wake ").to_owned(),
        count: sums.each(source, "count"),
        slept_ns: sums.each(source, "blocked-ns"),
    };
    let mut wakers: Vec<Waker> = sums.sources("wake ").map(waker).collect();
    wakers.sort_by(|one, other| other.count.total_cmp(&one.count));
    let rare = wakers.split_off(wakers.len().min(WAKERS_MAX));
    if !rare.is_empty() {
        let sum = |of: fn(&Waker) -> f64| rare.iter().map(of).sum();
        wakers.push(Waker {
            name: String::new(),
            count: sum(|it| it.count),
            slept_ns: sum(|it| it.slept_ns),
        });
    }
    // From here on per wake-up.
    wakers.iter_mut().for_each(|waker| waker.slept_ns /= waker.count.max(f64::MIN_POSITIVE));
    wakers
}

/// On the server's threads and elsewhere; `None` if it was not observed.
fn softirq_ns(sums: &Sums<'_>) -> Option<(f64, f64)> {
    let kinds: Vec<&str> = sums.sources("softirq ").collect();
    let sum = |key| kinds.iter().map(|kind| sums.each(kind, key)).sum::<f64>();
    (!kinds.is_empty()).then(|| (sum("ns"), sum("elsewhere-ns")))
}

/// CPU per message, from the slices on the lowest rung available: the higher ones cost CPU themselves.
fn of_lowest_rung(slices: &[&EvidenceSlice], cpu_ns: fn(&SliceRecord) -> u64) -> f64 {
    let lowest = slices.iter().map(|slice| slice.rung).min();
    let of_lowest = || slices.iter().filter(|slice| Some(slice.rung) == lowest).map(|slice| &slice.slice);
    let messages: u64 = of_lowest().map(|slice| slice.messages).sum();
    of_lowest().map(cpu_ns).sum::<u64>() as f64 / messages as f64
}

fn network(sums: &Sums<'_>) -> Option<NetworkCounters> {
    let count = |key| sums.value("tcp", key) as u64;
    sums.rows.contains_key(&("tcp", "retransmits")).then(|| NetworkCounters {
        listen_overflows: count("listen-overflows"),
        listen_drops: count("listen-drops"),
        tcp_retransmits: count("retransmits"),
        syn_retransmits: count("syn-retransmits"),
        ..NetworkCounters::default()
    })
}

fn calls(sums: &Sums<'_>) -> Vec<CallEvidence> {
    let of_name = |name: &str| {
        let source = format!("call {name}");
        let value = |key| sums.value(&source, key);
        let each = |key| value(key) / sums.messages as f64;
        let count = value("count");
        CallEvidence {
            name: name.to_owned(),
            count: each("count"),
            on_cpu_ns: each("on-cpu-ns"),
            blocked_ns: each("blocked-ns"),
            queued_ns: each("queued-ns"),
            returned: if count > 0.0 { value("returned") / count } else { 0.0 },
        }
    };
    let mut calls: Vec<CallEvidence> = sums.calls().map(of_name).collect();
    calls.sort_by(|one, other| other.on_cpu_ns.total_cmp(&one.on_cpu_ns));
    calls
}

/// All calls of each round, in the slices on this rung: a round is a value, as in every comparison.
fn all_calls(trials: &[&TrialRecord], rung: Rung) -> Option<AllCalls> {
    let of_round = |trial: &&TrialRecord| {
        let slices: Vec<&EvidenceSlice> = right(trial).filter(|slice| slice.rung == rung).collect();
        let sums = Sums::of(&slices);
        let of_all =
            |key: &str| sums.calls().map(|name| sums.each(&format!("call {name}"), key)).sum::<f64>();
        (sums.messages > 0).then(|| (of_all("count"), of_all("on-cpu-ns")))
    };
    let (count, on_cpu_ns): (Vec<f64>, Vec<f64>) = trials.iter().filter_map(of_round).unzip();
    Some(AllCalls { count: over_rounds(count)?, on_cpu_ns: over_rounds(on_cpu_ns)? })
}

/// The rule of every comparison, on logarithms. `None` without rounds, and if one has no value.
fn over_rounds(rounds: Vec<f64>) -> Option<OverRounds> {
    let logs: Vec<f64> = rounds.iter().map(|value| value.ln()).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let found = estimate(&logs).filter(|_| logs.len() >= CALLS_ROUNDS_MIN);
    let interval = found.map(|found| (found.low.exp(), found.high.exp()));
    mean.is_finite().then(|| OverRounds { rounds, mean: Figure { value: mean.exp(), interval } })
}

/// `None` unless both counted.
fn coverage(sums: &Sums<'_>) -> Option<Coverage> {
    let counted = |rows: f64| rows.round() as u64;
    let has = |source: &str| sums.rows.keys().any(|(own, _)| own.starts_with(source));
    if !has("engine") || !has("call ") {
        return None;
    }
    let of_kind = |kind: &Kind| {
        let engine = kind.counters.iter().map(|key| sums.value("engine", key)).sum::<f64>();
        // An engine counts a call at its start, including one in progress at the end.
        let begun = |name: &&str| {
            let source = format!("call {name}");
            sums.value(&source, "count") + sums.value(&source, "in-flight")
        };
        let kernel = kind.calls.iter().map(begun).sum::<f64>();
        CallsOfKind { kind: kind.name.to_owned(), engine: counted(engine), kernel: counted(kernel) }
    };
    let kinds: Vec<CallsOfKind> = ENGINE_KINDS.iter().map(of_kind).collect();
    let mut counters = ENGINE_KINDS.iter().flat_map(|kind| kind.counters);
    Some(Coverage {
        engine: kinds.iter().map(|kind| kind.engine).sum(),
        kernel: kinds.iter().map(|kind| kind.kernel).sum(),
        // A server's own timer may end a wait between the two readings.
        at_edges: sums.slices as u64,
        is_unknown: counters.any(|key| !sums.rows.contains_key(&("engine", *key))),
        kinds,
    })
}

/// Slices of a round.
type Slices<'a> = Vec<&'a EvidenceSlice>;

fn watched(trial: &TrialRecord) -> Slices<'_> {
    right(trial).filter(|slice| slice.rung == Rung::Programs).collect()
}

fn unwatched(trial: &TrialRecord) -> Slices<'_> {
    right(trial).filter(|slice| slice.rung < Rung::Programs).collect()
}

/// The cost of observing: the ratio of the server's CPU per message in some slices to that in others, in each round.
fn tax<'a>(
    trials: &[&'a TrialRecord],
    with: impl Fn(&'a TrialRecord) -> Slices<'a>,
    without: impl Fn(&'a TrialRecord) -> Slices<'a>,
) -> Option<PairedRatio> {
    // The rows, which are most of a slice, are not needed.
    let log_cpu = |slices: Slices<'a>| {
        let sum = |of: fn(&SliceRecord) -> u64| slices.iter().map(|it| of(&it.slice)).sum::<u64>();
        let cost = sum(|it| it.server_cpu_ns) as f64 / sum(|it| it.messages) as f64;
        Some(cost.ln()).filter(|log| log.is_finite())
    };
    let logs: Vec<f64> =
        trials.iter().filter_map(|trial| Some(log_cpu(with(trial))? - log_cpu(without(trial))?)).collect();
    let found = estimate(&logs).filter(|_| logs.len() >= TAX_ROUNDS_MIN)?;
    let interval = Some((found.low.exp(), found.high.exp()));
    Some(PairedRatio {
        ratio: found.mean.exp(),
        interval,
        pairs: u32::try_from(logs.len()).unwrap_or(u32::MAX),
    })
}

/// Groups whose slices are compared with unobserved ones; slices of the other groups include the calls.
const ALONE: [&str; 2] = [GROUP_OF_CALLS, GROUP_OF_PROC];

/// The groups at system calls first.
fn tax_by_group(trials: &[&TrialRecord]) -> Vec<GroupTax> {
    let found: BTreeSet<&str> =
        trials.iter().flat_map(|trial| by_group(trial)).map(|(group, _)| group).collect();
    let (alone, further): (Vec<&str>, Vec<&str>) = found.into_iter().partition(|it| ALONE.contains(it));
    let of_group = |group: &str| {
        let with = |trial| slices_of(trial, group);
        let ratio = if ALONE.contains(&group) {
            tax(trials, with, unwatched)
        } else {
            tax(trials, with, |trial| slices_of(trial, GROUP_OF_CALLS))
        }?;
        Some(GroupTax { group: group.to_owned(), ratio })
    };
    alone.into_iter().chain(further).filter_map(of_group).collect()
}

fn slices_of<'a>(trial: &'a TrialRecord, group: &str) -> Slices<'a> {
    by_group(trial).filter(|(own, _)| *own == group).map(|(_, slice)| slice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::study;

    fn row(source: &str, key: &str, value: f64) -> Reading {
        Reading { source: source.to_owned(), key: key.to_owned(), value }
    }

    fn slice(rung: Rung, messages: u64, cpu_ns: u64, readings: Vec<Reading>) -> EvidenceSlice {
        let slice = SliceRecord { messages, server_cpu_ns: messages * cpu_ns, ..SliceRecord::default() };
        EvidenceSlice { rung, slice, readings }
    }

    /// Rounds of one arm: a message costs 5 µs, and 6 µs while the programs observe.
    fn trials(kernel_sends: f64) -> Vec<TrialRecord> {
        let spec = study(&["epoll", "uring"], 8, 1);
        let of_engine = |key: &&str| {
            let is_made = ["recv-calls", "send-calls"].contains(key);
            row("engine", key, if is_made { 1_000.0 } else { 0.0 })
        };
        let seen = || {
            let mut rows = vec![
                row("engine", "turns", 77.0),
                row("call recvfrom", "count", 1_000.0),
                row("call recvfrom", "on-cpu-ns", 1_000_000.0),
                row("call sendto", "count", kernel_sends),
                row("call sendto", "on-cpu-ns", 3_000_000.0),
                row("call sendto", "returned", 64.0 * kernel_sends),
                row("call getpid", "count", 5.0),
                row("process", "context-switches-voluntary", 10.0),
                row("trace", "calls-cut", 1.0),
                row("call recvfrom", "in-flight", 1.0),
            ];
            rows.extend(ENGINE_KINDS.iter().flat_map(|kind| kind.counters).map(of_engine));
            rows
        };
        let trial = |block| TrialRecord {
            cell_id: spec.cells[0].id.clone(),
            arm: "epoll".to_owned(),
            block,
            evidence: vec![
                slice(Rung::Process, 1_000, 5_000, Vec::new()),
                slice(Rung::Programs, 1_000, 6_000 + u64::from(block), seen()),
            ],
            ..TrialRecord::default()
        };
        (0..6).map(trial).collect()
    }

    fn found(trials: &[TrialRecord]) -> Vec<ArmEvidence> {
        all(&study(&["epoll", "uring"], 8, 1), &trials.iter().collect::<Vec<_>>())
    }

    #[test]
    fn calls_are_for_each_message_and_the_dearest_is_first() {
        let found = found(&trials(1_000.0));
        let [epoll] = found.as_slice() else { panic!("one arm has evidence: {found:?}") };
        assert_eq!((epoll.rung, epoll.slices, epoll.messages), (Rung::Programs, 6, 6_000));
        let names: Vec<&str> = epoll.calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["sendto", "recvfrom", "getpid"]);
        let send = &epoll.calls[0];
        assert_eq!((send.count, send.on_cpu_ns, send.returned), (1.0, 3_000.0, 64.0));
        assert_eq!(epoll.context_switches, (0.01, 0.0));
    }

    #[test]
    fn all_calls_have_an_interval_over_rounds_when_there_are_three() {
        let mut trials = trials(1_000.0);
        for (trial, getpids) in trials.iter_mut().zip([0.0, 20.0, 40.0, 0.0, 20.0, 40.0]) {
            trial.evidence[1].readings.push(row("call gettid", "count", getpids));
        }
        let of = |trials: &[TrialRecord]| found(trials)[0].all_calls.clone().expect("calls were seen");
        let all = of(&trials);
        let pooled = found(&trials)[0].calls.iter().map(|call| call.count).sum::<f64>();
        let (low, high) = all.count.mean.interval.expect("there are six rounds");
        assert!((all.count.mean.value / pooled - 1.0).abs() < 0.001, "{all:?}");
        assert!(low < pooled && pooled < high && high / low < 1.1, "{all:?}");
        assert_eq!((all.count.rounds.len(), all.on_cpu_ns.rounds.len()), (6, 6));
        let apart = all.count.rounds[2] - all.count.rounds[0];
        assert!((apart - 0.04).abs() < 1e-9, "a round is a value: {all:?}");
        assert!(of(&trials[..3]).count.mean.interval.is_some());
        let of_two = of(&trials[..2]);
        assert_eq!((of_two.count.rounds.len(), of_two.count.mean.interval), (2, None));
        trials.iter_mut().for_each(|trial| trial.evidence.truncate(1));
        assert_eq!(found(&trials)[0].all_calls, None, "nobody saw calls");
    }

    #[test]
    fn events_that_no_program_saw_fail_a_check_that_only_watched_slices_have() {
        let checked = |trials: &[TrialRecord]| check(&trials.iter().collect::<Vec<_>>());
        let mut trials = trials(1_000.0);
        assert!(checked(&trials).is_some_and(|check| check.passed));
        for slice in &mut trials[0].evidence {
            slice.readings.extend([row("trace", "misses", 2.0), row("trace", "wakes-lost", 3.0)]);
        }
        trials[0].evidence[0].readings.clear();
        let found = checked(&trials).expect("there are such slices");
        let detail = Finding::ProgramsComplete { missed: 2, without_room: 3, slices: 6, failed: 0 };
        assert_eq!((found.passed, found.detail), (false, detail));
        trials.iter_mut().for_each(|trial| trial.evidence.truncate(1));
        assert_eq!(checked(&trials), None);
    }

    #[test]
    fn slices_that_the_programs_could_not_observe_fail_the_same_check_also_where_there_are_no_others() {
        let mut trials = trials(1_000.0);
        for slice in trials.iter_mut().map(|trial| &mut trial.evidence[1]) {
            slice.rung = Rung::Process;
            slice.readings = vec![row("observer", "programs-failed", 1.0)];
        }
        let found = check(&trials.iter().collect::<Vec<_>>()).expect("they were to observe");
        let detail = Finding::ProgramsComplete { missed: 0, without_room: 0, slices: 0, failed: 6 };
        assert_eq!((found.passed, found.detail), (false, detail));
    }

    #[test]
    fn calls_that_cannot_have_moved_the_messages_fail_a_check_that_names_their_arm() {
        let checked = |trials: &[TrialRecord]| calls_cover(&found(trials));
        let mut trials = trials(1_000.0);
        let found = checked(&trials).expect("calls were seen");
        let Finding::CallsCover { servers: 1, lacking, .. } = &found.detail else { panic!("{found:?}") };
        let [epoll] = lacking.as_slice() else { panic!("{lacking:?}") };
        assert_eq!((found.passed, epoll.arm.as_str(), epoll.share), (false, "epoll", 0.0), "none received");
        for trial in &mut trials {
            trial.evidence[1].readings.push(row("call recvfrom", "returned", 64_000.0));
        }
        assert!(checked(&trials).is_some_and(|check| check.passed));
        trials.iter_mut().for_each(|trial| trial.evidence.truncate(1));
        assert_eq!(checked(&trials), None, "nobody saw calls");
    }

    #[test]
    fn what_observing_costs_is_a_ratio_with_an_interval() {
        let tax = found(&trials(1_000.0))[0].tax.expect("there are pairs");
        assert!((tax.ratio - 1.2).abs() < 0.001, "{tax:?}");
        let (low, high) = tax.interval.expect("there are several");
        assert!(low < tax.ratio && tax.ratio < high && high - low < 0.01, "{tax:?}");
        assert_eq!(tax.pairs, 6);
    }

    #[test]
    fn each_group_of_programs_has_its_cost_and_slices_with_few_of_them_are_in_nothing_else() {
        let mut trials = trials(1_000.0);
        let before = found(&trials)[0].clone();
        assert_eq!(before.tax_by_group, []);
        for trial in &mut trials {
            let at = |cpu_ns, groups: &[&str]| {
                let rows = groups.iter().map(|group| row("trace", &format!("group-{group}"), 1.0)).collect();
                slice(Rung::Programs, 1_000, cpu_ns + u64::from(trial.block), rows)
            };
            let fewer = [
                at(5_500, &["calls"]),
                at(6_600, &["calls", "softirqs"]),
                at(5_500, &["scheduling", "calls"]),
            ];
            trial.evidence.extend(fewer);
        }
        let after = found(&trials)[0].clone();
        let of = |tax: &GroupTax| (tax.group.clone(), (tax.ratio.ratio * 100.0).round(), tax.ratio.pairs);
        let groups: Vec<_> = after.tax_by_group.iter().map(of).collect();
        let expected = [("calls", 110.0), ("scheduling", 100.0), ("softirqs", 120.0)];
        assert_eq!(groups, expected.map(|(group, ratio)| (group.to_owned(), ratio, 6)));
        assert_eq!(ArmEvidence { tax_by_group: Vec::new(), ..after }, before);
    }

    #[test]
    fn what_reading_proc_costs_is_held_against_slices_that_nobody_watched_and_is_in_nothing_else() {
        let mut trials = trials(1_000.0);
        let before = found(&trials)[0].clone();
        for trial in &mut trials {
            let cpu_ns = 5_100 + u64::from(trial.block);
            trial.evidence.push(slice(Rung::Process, 1_000, cpu_ns, vec![row("trace", "group-proc", 1.0)]));
        }
        let after = found(&trials)[0].clone();
        let [proc] = after.tax_by_group.as_slice() else { panic!("one group: {:?}", after.tax_by_group) };
        assert_eq!((proc.group.as_str(), proc.ratio.pairs), (GROUP_OF_PROC, 6));
        assert!((proc.ratio.ratio - 1.02).abs() < 0.001, "{proc:?}");
        assert_eq!(ArmEvidence { tax_by_group: Vec::new(), ..after }, before);
    }

    #[test]
    fn engine_and_kernel_agree_of_every_kind_when_calls_that_began_are_the_same() {
        let coverage = |sends| found(&trials(sends))[0].coverage.clone().expect("both counted");
        // One receive was in progress at the end of each slice, and the engine had counted it.
        let even = coverage(1_000.0);
        assert_eq!((even.engine, even.kernel, even.at_edges), (12_000, 12_006, 6));
        let of = |name: &str| even.kinds.iter().find(|it| it.kind == name).map(|it| (it.engine, it.kernel));
        assert_eq!(
            (of("receive"), of("send"), of("accept")),
            (Some((6_000, 6_006)), Some((6_000, 6_000)), Some((0, 0)))
        );
        assert!(even.agrees());
        assert!(coverage(1_002.0).agrees(), "12 of 6,000, 6 of them at the edges");
        assert!(!coverage(1_003.0).agrees(), "18 of 6,000");
        assert!(!coverage(997.0).agrees());
    }

    #[test]
    fn calls_that_only_one_of_them_counted_fail_a_check_that_names_them() {
        let checked = |trials: &[TrialRecord]| calls_agree(&found(trials));
        let same = checked(&trials(1_000.0)).expect("both counted");
        assert_eq!((same.passed, same.detail), (true, Finding::CallsAgree { servers: 1, apart: Vec::new() }));
        let other = checked(&trials(900.0)).expect("both counted");
        let Finding::CallsAgree { servers: 1, apart } = &other.detail else { panic!("{other:?}") };
        assert!(!other.passed && apart.len() == 1, "{other:?}");
        assert_eq!((apart[0].kind.as_str(), apart[0].engine, apart[0].kernel), ("send", 6_000, 5_400));
        let mut foreign = trials(900.0);
        for slice in foreign.iter_mut().flat_map(|trial| &mut trial.evidence) {
            slice.readings.retain(|row| row.source != "engine");
        }
        assert_eq!(checked(&foreign), None, "nobody counted beside the kernel");
    }

    #[test]
    fn an_engine_that_did_not_count_a_kind_yet_is_not_said_to_differ() {
        let mut trials = trials(1_000.0);
        for trial in &mut trials {
            let readings = &mut trial.evidence[1].readings;
            readings.push(row("call accept4", "count", 40.0));
            readings.retain(|row| row.key != "accept-calls");
        }
        let coverage = found(&trials)[0].coverage.clone().expect("both counted something");
        assert_eq!(calls_agree(&found(&trials)), None, "it is not said to differ");
        assert!(coverage.is_unknown && !coverage.agrees(), "{coverage:?}");
        for trial in &mut trials {
            trial.evidence[1].readings.push(row("engine", "accept-calls", 40.0));
        }
        assert_eq!(
            found(&trials)[0].coverage.as_ref().map(|it| (it.is_unknown, it.agrees())),
            Some((false, true))
        );
    }

    #[test]
    fn batches_wakers_and_softirqs_are_found_and_the_rarest_wakers_stand_together() {
        let mut trials = trials(1_000.0);
        for slice in trials.iter_mut().map(|trial| &mut trial.evidence[1]) {
            slice.readings.extend([
                row("engine", "completions", 1_000.0),
                row("engine", "wait-calls", 40.0),
                row("softirq NET_RX", "count", 9.0),
                row("softirq NET_RX", "ns", 2_000_000.0),
                row("softirq NET_RX", "elsewhere-ns", 500_000.0),
                row("tcp", "retransmits", 2.0),
                row("trace", "softirqs-are-apart", 1.0),
            ]);
            for (number, count) in (0_u32..8).zip([40.0, 30.0, 20.0, 10.0, 5.0, 4.0, 2.0, 2.0]) {
                let source = format!("wake thread-{number}");
                slice
                    .readings
                    .extend([row(&source, "count", count), row(&source, "blocked-ns", 100.0 * count)]);
            }
            slice.slice.machine_cpu_ns = 99_000_000;
        }
        for slice in trials.iter_mut().map(|trial| &mut trial.evidence[0].slice) {
            (slice.machine_cpu_ns, slice.generator_cpu_ns) = (12_000_000, 4_000_000);
        }
        let found = &found(&trials)[0];
        assert_eq!(found.batches, Batches { events_per_wait: Some(25.0), ..Batches::default() });
        assert_eq!(found.softirq_ns, Some((2_000.0, 500.0)));
        assert_eq!(found.softirqs_are_apart, Some(true));
        assert_eq!(found.machine_cpu_ns, 12_000.0, "of slices that nobody watched");
        assert_eq!(found.generator_cpu_ns, Some(4_000.0));
        assert_eq!(found.network.map(|it| it.tcp_retransmits), Some(12));
        assert_eq!(found.wakers.len(), WAKERS_MAX + 1);
        let of = |waker: &Waker| (waker.name.clone(), waker.count, waker.slept_ns.round());
        assert_eq!(of(&found.wakers[0]), ("thread-0".to_owned(), 0.04, 100.0));
        assert_eq!(of(&found.wakers[WAKERS_MAX]), (String::new(), 0.004, 100.0));
    }

    #[test]
    fn an_engine_that_never_waits_for_readiness_has_no_events_of_a_wait() {
        let mut trials = trials(1_000.0);
        for slice in trials.iter_mut().map(|trial| &mut trial.evidence[1]) {
            // Silent connections, on blocking calls.
            slice
                .readings
                .extend([("count", 50.0), ("returned", 50.0)].map(|(key, it)| row("call ppoll", key, it)));
            slice.readings.push(row("engine", "poll-calls", 50.0));
        }
        let found = &found(&trials)[0];
        assert_eq!(found.batches.events_per_wait, None);
        assert_eq!(
            found.coverage.as_ref().map(Coverage::agrees),
            Some(true),
            "they are counted all the same"
        );
    }

    #[test]
    fn a_foreign_server_has_batches_by_what_its_calls_returned() {
        let mut trials = trials(1_000.0);
        for slice in trials.iter_mut().flat_map(|trial| &mut trial.evidence) {
            slice.readings.retain(|row| row.source != "engine");
            if slice.rung == Rung::Programs {
                let rows = [("count", 50.0), ("returned", 1_000.0)];
                slice.readings.extend(rows.map(|(key, value)| row("call epoll_wait", key, value)));
            }
        }
        assert_eq!(found(&trials)[0].batches.events_per_wait, Some(20.0));
    }

    #[test]
    fn slices_with_errors_and_foreign_servers_are_no_mistake() {
        let mut trials = trials(1_000.0);
        trials[0].evidence[1].slice.errors = 3;
        for slice in trials.iter_mut().flat_map(|trial| &mut trial.evidence) {
            slice.readings.retain(|row| row.source != "engine");
        }
        let found = found(&trials);
        assert_eq!((found[0].slices, found[0].coverage.as_ref()), (5, None));
        assert!(found[0].needed.is_some(), "what its messages need is known of any server");
        assert_eq!(found[0].tax.expect("there are pairs").pairs, 5);
    }
}
