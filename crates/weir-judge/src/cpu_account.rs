//! Where an arm's CPU goes, and where it exceeds the baseline's. Pure.
//!
//! A round has a slice in which the kernel's programs observed an arm, and one without observers. The parts come from
//! the first, with the cost of observing subtracted:
//!
//! - A call is slower when it is observed. The overhead between the programs' two clock readings is in its time,
//!   while the overhead of entering and leaving the kernel is not: both were measured on a trivial call.
//! - Programs at events within a call or a softirq (wake-ups, switches, softirqs, events of io_uring) are also in its
//!   time. They measure themselves, in place and with the same cold caches, and count for the call or the softirq
//!   they ran in. The part of a run outside of its own two readings was measured on an empty program.
//! - A Weir server times its work between its calls. Each stretch includes one clock reading. Other work of these
//!   threads in the stretches is subtracted: calls that the engine does not time, softirqs, programs. The time
//!   in which others had the worker's CPU is subtracted too: a preempting interrupt may come anywhere, and takes effect
//!   at the end of a call if it came in one, which the engine counts in the call.
//! - The scheduler charges a thread from the moment at which its CPU starts to switch to it. On an idle CPU that is
//!   microseconds before the thread runs, and in no call: the CPU of the threads by the scheduler's clock is compared
//!   with the time for which the programs saw them run.
//! - Softirqs are a part if the kernel charges the process they interrupt for them. If it does not
//!   (`CONFIG_IRQ_TIME_ACCOUNTING`), they are in no part.
//!
//! The difference between the sum of the parts and the CPU of the other slice is reported as unexplained, and is
//! never distributed over them. An observed server works in different batches: the rest shows the size of this
//! effect.

use std::collections::{BTreeMap, BTreeSet};

use weir_record::{
    cpu_account::{Amount, CpuAccount, CpuDifference, CpuPart, Explained},
    goal::{Goal, Outcome},
    observation::{ProbeCost, Rung},
    spec::StudySpec,
    trial::{EvidenceSlice, TrialRecord},
};
use weir_stats::decide::estimate;

use crate::sums::{ENGINE_CALLS, Sums, right, softirqs_are_apart};

/// With fewer rounds there is no useful interval.
const ROUNDS_MIN: usize = 4;

/// Kinds of calls below this share of the CPU are combined.
const SMALL: f64 = 0.005;

/// Prefixes of the rows of threads whose engine has a clock: they serve connections, or accept them for others.
const WORKERS: [&str; 3] = ["thread weir-worker", THREADS_OF_CONNECTIONS, "thread weir-acceptor"];

/// Threads of blocking calls: each serves one connection after the other.
const THREADS_OF_CONNECTIONS: &str = "thread weir-connection";

/// Threads of blocking calls wait for new connections with it. Their clock counts that like any other call, so that
/// setting up and closing a connection count as the server's own work.
const HAND_OVER: &str = "futex";

/// Prefix of the rows of kernel threads for io_uring.
const URING_THREADS: &str = "thread iou-";

/// An arm in one round, in nanoseconds per message.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Round {
    cpu_ns: f64,
    parts: BTreeMap<CpuPart, f64>,
    /// Softirqs that ran within a call, by call.
    softirqs_in: BTreeMap<CpuPart, f64>,
}

/// Keyed by block and attempt.
pub(crate) type Rounds = BTreeMap<(u32, u32), Round>;

/// The rounds with both an observed and an unobserved slice of an arm.
pub(crate) fn rounds(cell_id: &str, arm: &str, trials: &[&TrialRecord]) -> Rounds {
    let own = trials.iter().filter(|trial| trial.cell_id == cell_id && trial.arm == arm);
    own.filter_map(|trial| Some(((trial.block, trial.attempt), round(trial)?))).collect()
}

fn round(trial: &TrialRecord) -> Option<Round> {
    let (watched, others): (Vec<&EvidenceSlice>, Vec<&EvidenceSlice>) = right(trial)
        .filter(|slice| slice.rung < Rung::Strace)
        .partition(|slice| slice.rung >= Rung::Programs);
    let (watched, others) = (Sums::of(&watched), Sums::of(&others));
    // Without the scheduler's data, time asleep would count as work.
    let is_split = watched.value("trace", "is-split") as usize == watched.slices;
    if watched.messages == 0 || others.messages == 0 || !is_split {
        return None;
    }
    let cpu_ns = others.server_cpu_ns as f64 / others.messages as f64;
    let mut parts = measured(&watched);
    let softirqs_in = softirqs_in_calls(&watched, parts.get(&CpuPart::Softirqs).copied());
    parts.insert(CpuPart::UringThreads, uring_threads(&others));
    parts.insert(CpuPart::Switching, switching(&watched));
    let own_ns = own_work(&watched);
    parts.extend(own_ns.map(|ns| (CpuPart::Server, ns)));
    parts.retain(|_, ns| *ns != 0.0);
    let left = cpu_ns - parts.values().sum::<f64>();
    parts.insert(if own_ns.is_some() { CpuPart::Unexplained } else { CpuPart::OutsideCalls }, left);
    Some(Round { cpu_ns, parts, softirqs_in })
}

/// The cost of observing, as measured by the same programs.
struct Probe {
    cost: ProbeCost,
    /// Time of a clock reading.
    clock_ns: f64,
}

impl Probe {
    fn of(sums: &Sums<'_>) -> Self {
        let value = |key| sums.value("probe", key) / sums.slices as f64;
        let cost = ProbeCost {
            untraced_ns: value("untraced-ns"),
            traced_ns: value("traced-ns"),
            inside_ns: value("inside-ns"),
            run_ns: value("run-ns"),
            ..ProbeCost::default()
        };
        Self { cost, clock_ns: value("clock-ns") }
    }

    /// Overhead of an observed call for its caller outside of the call's own time.
    fn watched_way_ns(&self) -> f64 {
        self.cost.traced_ns - self.cost.inside_ns
    }
}

/// Calls by kind, and softirqs.
fn measured(sums: &Sums<'_>) -> BTreeMap<CpuPart, f64> {
    let probe = Probe::of(sums);
    let call = |name: &str| {
        let each = |key| sums.each(&format!("call {name}"), key);
        let own_ns = each("on-cpu-ns") - each("softirq-ns");
        let ns = probe.cost.without(own_ns, each("count"), (each("probe-ns"), each("probe-runs")));
        (CpuPart::Call(name.to_owned()), ns)
    };
    let mut parts: BTreeMap<CpuPart, f64> = sums.calls().map(call).collect();
    // If their place is unknown they stay in the calls; if the kernel charges no process for them they are in no CPU.
    if tells_softirqs(sums) && softirqs_are_apart(sums) != Some(true) {
        let each = |source: &str, key| sums.each(source, key);
        let softirq = |source: &str| {
            each(source, "ns") - probe.cost.taken_ns(each(source, "probe-ns"), each(source, "probe-runs"))
        };
        parts.insert(CpuPart::Softirqs, sums.sources("softirq ").map(softirq).sum());
    }
    parts
}

/// The part of softirqs that ran within calls. The observers' time within them is distributed evenly.
fn softirqs_in_calls(sums: &Sums<'_>, part_ns: Option<f64>) -> BTreeMap<CpuPart, f64> {
    let all_ns: f64 = sums.sources("softirq ").map(|source| sums.each(source, "ns")).sum();
    let Some(part_ns) = part_ns.filter(|_| all_ns > 0.0) else { return BTreeMap::new() };
    let within = |name: &str| part_ns * sums.each(&format!("call {name}"), "softirq-ns") / all_ns;
    sums.calls().map(|name| (CpuPart::Call(name.to_owned()), within(name))).collect()
}

fn uring_threads(sums: &Sums<'_>) -> f64 {
    let own =
        sums.rows.iter().filter(|((source, key), _)| source.starts_with(URING_THREADS) && *key == "cpu-ns");
    own.map(|(_, ns)| ns).sum::<f64>() / sums.messages as f64
}

/// CPU of the server's threads beyond the time for which they ran, without the switch program's time; zero for
/// evidence without run times.
fn switching(sums: &Sums<'_>) -> f64 {
    let has_run = |(source, key): &&(&str, &str)| {
        *key == "ran-ns" && !source.starts_with(URING_THREADS) && sums.rows.contains_key(&(*source, "cpu-ns"))
    };
    let beyond = |(source, _): &(&str, &str)| {
        let each = |key| sums.each(source, key);
        each("cpu-ns") - each("ran-ns") - each("switch-probe-ns")
    };
    sums.rows.keys().filter(has_run).map(beyond).sum()
}

/// Time between the engine's calls by its own clock, without clock readings and without other work of its threads
/// there; `None` for a server without such a clock.
fn own_work(sums: &Sums<'_>) -> Option<f64> {
    let outside_ns = Some(sums.each("engine", "outside-calls-ns")).filter(|ns| *ns > 0.0)?;
    let probe = Probe::of(sums);
    let clock_ns = sums.each("engine", "outside-calls-spans") * probe.clock_ns;
    let of_others =
        if has_threads(sums) { beside_work(sums, &probe) } else { beside_work_by_kind(sums, &probe) };
    let own_ns = outside_ns - clock_ns - of_others.ns;
    Some(without_others(own_ns, of_others.calls_ns, of_others.queued_ns))
}

/// Other activities of threads with a clock, between the calls that it times.
struct BesideWork {
    /// Calls that are not timed, softirqs, observing programs.
    ns: f64,
    /// Their time in calls.
    calls_ns: f64,
    /// Time in which others had their CPU, outside of calls.
    queued_ns: f64,
}

/// Sums over the threads with a clock, by the programs' key.
fn of_workers(sums: &Sums<'_>, key: &str) -> f64 {
    let is_worker = |source: &str| WORKERS.iter().any(|name| source.starts_with(name));
    let own = sums.rows.iter().filter(|((source, own), _)| *own == key && is_worker(source));
    own.map(|(_, value)| value).sum::<f64>() / sums.messages as f64
}

/// Older evidence does not distinguish threads.
fn has_threads(sums: &Sums<'_>) -> bool {
    of_workers(sums, "in-calls-ns") > 0.0
}

fn beside_work(sums: &Sums<'_>, probe: &Probe) -> BesideWork {
    let outside = |all: &str, inside: &str| (of_workers(sums, all) - of_workers(sums, inside)).max(0.0);
    let has_connections = sums.rows.keys().any(|(source, _)| source.starts_with(THREADS_OF_CONNECTIONS));
    let names = || ENGINE_CALLS.into_iter().chain(has_connections.then_some(HAND_OVER));
    let timed = |key| names().map(|name| sums.each(&format!("call {name}"), key)).sum::<f64>();
    let calls_ns = of_workers(sums, "in-calls-ns");
    let calls = of_workers(sums, "calls") - of_workers(sums, "in-flight");
    let not_timed_ns =
        (calls_ns - timed("on-cpu-ns")).max(0.0) + (calls - timed("count")).max(0.0) * probe.watched_way_ns();
    let probe_ns = probe
        .cost
        .taken_ns(outside("probe-ns", "in-calls-probe-ns"), outside("probe-runs", "in-calls-probe-runs"));
    BesideWork {
        ns: not_timed_ns + outside("softirq-ns", "in-calls-softirq-ns") + probe_ns,
        calls_ns,
        queued_ns: outside("queued-ns", "in-calls-queued-ns"),
    }
}

/// The same for evidence that only distinguishes calls by kind. Calls that slept belong to other threads, because a
/// worker sleeps in its engine's calls.
fn beside_work_by_kind(sums: &Sums<'_>, probe: &Probe) -> BesideWork {
    let not_timed = sums.calls().filter(|name| !ENGINE_CALLS.contains(name)).map(|name| {
        let each = |key| sums.each(&format!("call {name}"), key);
        let slept = each("blocked-ns") > 0.0;
        if slept { 0.0 } else { each("on-cpu-ns") + each("count") * probe.watched_way_ns() }
    });
    let of_calls = |key| sums.calls().map(|name| sums.each(&format!("call {name}"), key)).sum::<f64>();
    BesideWork {
        ns: not_timed.sum::<f64>() + softirqs_outside(sums),
        calls_ns: of_calls("on-cpu-ns"),
        queued_ns: (sums.each("trace", "queued-ns") - of_calls("queued-ns")).max(0.0),
    }
}

/// Softirqs between calls, which are a separate part. Zero for evidence that does not distinguish them.
fn softirqs_outside(sums: &Sums<'_>) -> f64 {
    if !tells_softirqs(sums) {
        return 0.0;
    }
    let all_ns: f64 = sums.sources("softirq ").map(|source| sums.each(source, "ns")).sum();
    let in_calls_ns: f64 = sums.calls().map(|name| sums.each(&format!("call {name}"), "softirq-ns")).sum();
    (all_ns - in_calls_ns).max(0.0)
}

/// Whether the share of softirqs within calls is known. Older evidence lacks it.
fn tells_softirqs(sums: &Sums<'_>) -> bool {
    sums.rows.keys().any(|(_, key)| *key == "softirq-ns")
}

/// The server's own time without the time in which others had its CPU.
///
/// Others had the time `q` outside of calls. Its part `q u / (u + c)` is in the server's own time `own = u + q u / (u +
/// c)`, where `c` is its time in calls: this equation is solved for `u`.
fn without_others(own_ns: f64, calls_ns: f64, others_ns: f64) -> f64 {
    let own_ns = own_ns.max(0.0);
    let linear = calls_ns + others_ns - own_ns;
    ((linear * linear + 4.0 * own_ns * calls_ns).sqrt() - linear) / 2.0
}

/// The account of an arm over its rounds.
pub(crate) fn of_arm(rounds: &Rounds) -> Option<CpuAccount> {
    // A round in which the server's clock was unreadable would lack the own part.
    let is_timed = |round: &&Round| round.parts.contains_key(&CpuPart::Unexplained);
    let has_clock = rounds.values().any(|round| is_timed(&round));
    let all: Vec<&Round> = rounds.values().filter(|round| !has_clock || is_timed(round)).collect();
    let notable = Notable::of(&[rounds]);
    let folded: Vec<Round> = all.iter().map(|round| round.folded(&notable)).collect();
    let server_cpu = amount(&folded.iter().map(|round| round.cpu_ns).collect::<Vec<f64>>())?;
    let mut parts = amounts(&folded);
    parts.sort_by(|(one, own), (other, its)| {
        other.is_measured().cmp(&one.is_measured()).then(its.ns.total_cmp(&own.ns))
    });
    let with_softirqs = with_softirqs(&folded, &notable);
    let explained = explained(&folded);
    Some(CpuAccount { rounds: count(all.len()), server_cpu, parts, with_softirqs, explained })
}

/// The arms of each cell against the baseline.
pub(crate) fn differences(spec: &StudySpec, trials: &[&TrialRecord]) -> Vec<CpuDifference> {
    let Some((baseline, arms)) = spec.arms.split_first() else { return Vec::new() };
    let of_cell = |cell_id: &str| {
        let to = rounds(cell_id, &baseline.name, trials);
        let one = |arm: &str| {
            let found = difference(&rounds(cell_id, arm, trials), &to)?;
            Some(CpuDifference {
                cell_id: cell_id.to_owned(),
                arm: arm.to_owned(),
                baseline: baseline.name.clone(),
                ..found
            })
        };
        arms.iter().filter_map(|arm| one(&arm.name)).collect::<Vec<_>>()
    };
    spec.cells.iter().flat_map(|cell| of_cell(&cell.id)).collect()
}

fn difference(of: &Rounds, to: &Rounds) -> Option<CpuDifference> {
    let notable = Notable::of(&[of, to]);
    // Parts that one side does not distinguish are combined.
    let is_whole =
        |rounds: &Rounds| rounds.values().all(|round| round.parts.contains_key(&CpuPart::Unexplained));
    let are_whole = is_whole(of) && is_whole(to);
    let prepared = |round: &Round| {
        let folded = round.folded(&notable);
        if are_whole { folded } else { folded.without_own_work() }
    };
    let pairs = of.iter().filter_map(|(key, round)| Some((prepared(round), prepared(to.get(key)?))));
    let rounds: Vec<Round> = pairs.map(|(of, to)| of.less(&to)).collect();
    let whole = amount(&rounds.iter().map(|round| round.cpu_ns).collect::<Vec<f64>>())?;
    let mut parts = amounts(&rounds);
    // Parts that may be noise come last, however large they are.
    let place = |amount: &Amount| (amount.is_told_from_nothing(), amount.ns.abs());
    parts.sort_by(|(_, own), (_, its)| {
        let (own, its) = (place(own), place(its));
        its.0.cmp(&own.0).then(its.1.total_cmp(&own.1))
    });
    let with_softirqs = with_softirqs(&rounds, &notable);
    Some(CpuDifference {
        rounds: count(rounds.len()),
        parts,
        with_softirqs,
        whole,
        ..CpuDifference::default()
    })
}

/// Parts that exceed a small share of the CPU of one of the arms.
struct Notable {
    parts: BTreeSet<CpuPart>,
    /// Calls whose softirqs are shown with them.
    softirqs_in: BTreeSet<CpuPart>,
}

impl Notable {
    fn of(arms: &[&Rounds]) -> Self {
        let of_all = |figures: fn(&Round) -> &BTreeMap<CpuPart, f64>| {
            arms.iter().flat_map(|rounds| notable(rounds, figures)).collect()
        };
        Self { parts: of_all(|round| &round.parts), softirqs_in: of_all(|round| &round.softirqs_in) }
    }
}

fn notable(rounds: &Rounds, figures: fn(&Round) -> &BTreeMap<CpuPart, f64>) -> Vec<CpuPart> {
    let mut sums: BTreeMap<&CpuPart, f64> = BTreeMap::new();
    for (part, ns) in rounds.values().flat_map(figures) {
        *sums.entry(part).or_default() += ns;
    }
    let cpu_ns: f64 = rounds.values().map(|round| round.cpu_ns).sum();
    sums.into_iter().filter(|(_, ns)| ns.abs() >= SMALL * cpu_ns).map(|(part, _)| part.clone()).collect()
}

impl Round {
    /// The round with small calls combined.
    fn folded(&self, notable: &Notable) -> Self {
        let place = |part: &CpuPart| match part {
            CpuPart::Call(_) if !notable.parts.contains(part) => CpuPart::OtherCalls,
            other => other.clone(),
        };
        self.moved(place)
    }

    /// The round as for an engine without a clock.
    fn without_own_work(&self) -> Self {
        let place = |part: &CpuPart| match part {
            CpuPart::Server | CpuPart::Unexplained => CpuPart::OutsideCalls,
            other => other.clone(),
        };
        self.moved(place)
    }

    fn moved(&self, place: impl Fn(&CpuPart) -> CpuPart) -> Self {
        let mut parts = BTreeMap::new();
        for (part, ns) in &self.parts {
            *parts.entry(place(part)).or_default() += ns;
        }
        Self { cpu_ns: self.cpu_ns, parts, softirqs_in: self.softirqs_in.clone() }
    }

    fn less(mut self, other: &Self) -> Self {
        self.cpu_ns -= other.cpu_ns;
        take(&mut self.parts, &other.parts);
        take(&mut self.softirqs_in, &other.softirqs_in);
        self
    }
}

fn take(from: &mut BTreeMap<CpuPart, f64>, taken: &BTreeMap<CpuPart, f64>) {
    for (part, ns) in taken {
        *from.entry(part.clone()).or_default() -= ns;
    }
}

/// Each part over the rounds; a part that a round lacks is zero there.
fn amounts(rounds: &[Round]) -> Vec<(CpuPart, Amount)> {
    let parts: BTreeSet<&CpuPart> = rounds.iter().flat_map(|round| round.parts.keys()).collect();
    let of_part = |part: &CpuPart| {
        let values: Vec<f64> = rounds.iter().map(|round| figure(&round.parts, part)).collect();
        Some((part.clone(), amount(&values)?))
    };
    parts.into_iter().filter_map(of_part).collect()
}

/// Calls including what ran within them, for calls shown separately in which that is no small part.
fn with_softirqs(rounds: &[Round], notable: &Notable) -> Vec<(String, Amount)> {
    let of_call = |part: &CpuPart| {
        let CpuPart::Call(name) = part else { return None };
        let both = |round: &Round| figure(&round.parts, part) + figure(&round.softirqs_in, part);
        Some((name.clone(), amount(&rounds.iter().map(both).collect::<Vec<f64>>())?))
    };
    notable.softirqs_in.intersection(&notable.parts).filter_map(of_call).collect()
}

fn figure(figures: &BTreeMap<CpuPart, f64>, part: &CpuPart) -> f64 {
    figures.get(part).copied().unwrap_or_default()
}

/// `None` for an empty slice.
fn amount(values: &[f64]) -> Option<Amount> {
    if values.is_empty() {
        return None;
    }
    let ns = values.iter().sum::<f64>() / values.len() as f64;
    let found = estimate(values).filter(|_| values.len() >= ROUNDS_MIN);
    Some(Amount { ns, interval: found.map(|found| (found.low, found.high)) })
}

/// `None` if the server's own work is not measured: then everything counts as explained by definition.
fn explained(rounds: &[Round]) -> Option<Explained> {
    let share = |round: &Round| {
        let share = 1.0 - round.parts.get(&CpuPart::Unexplained)? / round.cpu_ns;
        Some(share).filter(|share| share.is_finite())
    };
    let shares = rounds.iter().map(share).collect::<Option<Vec<f64>>>()?;
    let Amount { ns: share, interval } = amount(&shares)?;
    let is_beyond = interval.is_some_and(|(low, _)| low > 1.0 + Explained::GAP_MAX);
    let goal = Goal::AtLeast(1.0 - Explained::GAP_MAX);
    let outcome = match interval {
        _ if is_beyond => Outcome::Missed,
        interval => interval.map_or(Outcome::Open, |interval| goal.outcome(interval)),
    };
    Some(Explained { share, interval, outcome, is_beyond })
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
