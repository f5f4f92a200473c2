//! The validity checks a reader sees: each with what was found, in numbers. Pure.

use std::collections::BTreeMap;

use weir_record::{
    load::{FailureCounts, LoadReport},
    spec::{LoadMode, StudySpec},
    study::{Check, MissingArm},
    trial::{Taint, TrialRecord},
    verdict::{Comparison, Metric},
};
use weir_stats::{interval::order_statistics_interval, order::median};

use crate::{
    gate::{Gate, TrialState},
    judge::RATE_KEPT_SHARE_MIN,
    neighbours,
    plan::{self, PlannedBlock},
    progress::{self, Progress, seconds},
    taint::{self, BACKGROUND_SHARE_MAX, FOREIGN_CPUS_MAX, LITTLES_LAW_ERROR_MAX, STEAL_SHARE_MAX},
};

/// All checks, the ones about correctness first.
pub(crate) fn all(
    spec: &StudySpec,
    gate: &Gate,
    trials: &[&TrialRecord],
    comparisons: &[Comparison],
) -> Vec<Check> {
    let loads: Vec<&LoadReport> = trials.iter().filter_map(|trial| trial.load.as_ref()).collect();
    if spec.is_storage() {
        return vec![
            operations_counted(&loads),
            processes(trials),
            in_flight_as_given(trials, &loads),
            machine_states(gate, trials),
            steal(&loads),
            foreign_cpu(trials),
            interleaving(spec, trials),
            baseline_itself(comparisons, "operation"),
            check(NOT_ASKED, true, NOT_ASKED_WHY.to_owned()),
        ];
    }
    let unit = match spec {
        _ if spec.is_http() => "request",
        _ if spec.is_orders() => "order",
        _ => "message",
    };
    let mut checks = vec![
        match spec {
            _ if spec.is_http() => responses_checked(&loads),
            _ if spec.is_orders() => replies_checked(&loads),
            _ => bytes_verified(&loads),
        },
        failures_classified(&loads),
        processes(trials),
        littles_law(trials, &loads, unit),
        generator_headroom(&loads),
        rate_kept(spec, &loads),
        completion_overflow(&loads),
        machine_states(gate, trials),
        steal(&loads),
        foreign_cpu(trials),
        warm_up(&loads),
        interleaving(spec, trials),
        baseline_itself(comparisons, unit),
    ];
    checks.extend(neighbours::check(spec, trials, unit));
    if spec.is_orders() {
        checks.insert(1, chain_whole(trials));
        checks.insert(2, wakes_recovered(&loads));
    }
    checks
}

/// Every reply has the next sequence number, and comes in its order's turn.
fn replies_checked(loads: &[&LoadReport]) -> Check {
    let orders = || loads.iter().filter_map(|load| load.orders.as_ref());
    let checked: u64 = orders().map(|it| it.sequenced_checked).sum();
    let inversions: u64 = orders().map(|it| it.inversions).sum();
    let unbalanced = orders().filter(|it| !it.shares.is_conserved()).count();
    let detail = format!(
        "{checked} replies checked for their number and their turn, {inversions} out of turn; shares do not add up in \
         {unbalanced} of {} trials",
        loads.len()
    );
    check("replies-checked", checked > 0 && inversions == 0 && unbalanced == 0, detail)
}

/// Whether the gateway received twice what the exchange did: every order once, and its reply.
fn chain_whole(trials: &[&TrialRecord]) -> Check {
    let chains: Vec<_> = trials.iter().filter_map(|trial| trial.chain).collect();
    let whole = chains.iter().filter(|chain| chain.is_whole()).count();
    let reported = trials.iter().filter(|trial| trial.load.is_some()).count();
    let detail = format!(
        "without questions about numbers, the gateway received exactly twice what the exchange received in {whole} of \
         {reported} trials"
    );
    check("chain-whole", reported > 0 && whole == reported, detail)
}

/// Whether nobody had to be found asleep on work.
fn wakes_recovered(loads: &[&LoadReport]) -> Check {
    let handoffs = loads.iter().filter_map(|load| load.observed.as_ref()?.node.as_ref()?.handoff.as_ref());
    let (recovered, pushed) =
        handoffs.fold((0, 0), |(recovered, pushed), it| (recovered + it.wakes_recovered, pushed + it.pushed));
    let detail = format!("{recovered} of {pushed} messages handed over lay until the once-a-second look");
    check("wakes-recovered", recovered == 0, detail)
}

/// Name of the line that says which checks a study of storage does without. Reports give it no outcome.
const NOT_ASKED: &str = "not-asked";

const NOT_ASKED_WHY: &str = "headroom of the generator, the offered rate and a steady warm-up: a storage job is its own \
                             load and waits for its own operations, after a ramp of fixed length";

/// Largest difference between a tool's own operations a second and the kernel's account of them, in the median trial.
const COUNT_ERROR_MAX: f64 = 0.05;

/// Whether the tools' own counts are borne out by the kernel's account of the bytes. The tools' windows are a little
/// longer than ours, so that a disk that changes its speed makes some difference in single trials.
fn operations_counted(loads: &[&LoadReport]) -> Check {
    let error = |load: &&LoadReport| {
        let reported = load.storage.as_ref()?.iops_reported;
        (load.throughput_per_second > 0.0).then(|| (reported / load.throughput_per_second - 1.0).abs())
    };
    let errors: Vec<f64> = loads.iter().filter_map(error).collect();
    let operations: u64 = loads.iter().map(|load| load.messages).sum();
    let differ = median(&errors);
    let detail = format!(
        "{operations} operations by the kernel's account of the bytes; the tools' own rates differ from it by {:.1} % in \
         the median trial, at most {:.0} % are allowed",
        100.0 * differ.unwrap_or(0.0),
        100.0 * COUNT_ERROR_MAX
    );
    check("operations-counted", differ.is_some_and(|differ| differ <= COUNT_ERROR_MAX), detail)
}

/// Little's law for a job that says what it has in flight: it cannot be more than it was given.
fn in_flight_as_given(trials: &[&TrialRecord], loads: &[&LoadReport]) -> Check {
    let surplus: Vec<f64> = loads.iter().filter_map(|load| taint::surplus_in_flight(load)).collect();
    let over = trials.iter().filter(|trial| trial.taints.contains(&Taint::LittlesLaw)).count();
    let detail = format!(
        "operations a second times mean latency exceed the operations in flight by {:.1} % in the median trial; {over} of \
         {} trials over {:.0} % and set aside",
        100.0 * median(&surplus).unwrap_or(0.0),
        surplus.len(),
        100.0 * LITTLES_LAW_ERROR_MAX
    );
    check("littles-law", 4 * over <= surplus.len(), detail)
}

fn check(name: &str, passed: bool, detail: String) -> Check {
    Check { name: name.to_owned(), passed, detail }
}

fn bytes_verified(loads: &[&LoadReport]) -> Check {
    let verified: u64 = loads.iter().map(|load| load.bytes_verified).sum();
    let expected: u64 = loads.iter().map(|load| load.messages * u64::from(load.message_bytes)).sum();
    let wrong: u64 = loads.iter().map(|load| load.failures.wrong_bytes).sum();
    let detail = format!("{verified} of {expected} bytes compared, {wrong} responses wrong");
    check("bytes-verified", verified == expected && wrong == 0 && expected > 0, detail)
}

/// The same for HTTP, where every response has its framing and its length checked, and is compared byte for byte where
/// its content is known.
fn responses_checked(loads: &[&LoadReport]) -> Check {
    let verified: u64 = loads.iter().map(|load| load.bytes_verified).sum();
    let expected: u64 = loads.iter().map(|load| load.messages * u64::from(load.message_bytes)).sum();
    let responses: u64 = loads.iter().map(|load| load.messages).sum();
    let https = || loads.iter().filter_map(|load| load.http.as_ref());
    let compared: u64 = https().map(|http| http.responses_compared).sum();
    let wrong: u64 = loads.iter().map(|load| load.failures.wrong_bytes).sum();
    let share = if responses == 0 { 0.0 } else { 100.0 * compared as f64 / responses as f64 };
    let detail = format!(
        "{verified} of {expected} content bytes checked for framing and length; {compared} of {responses} responses \
         compared byte for byte ({share:.1} %), {wrong} wrong"
    );
    check("responses-checked", verified == expected && wrong == 0 && expected > 0 && compared > 0, detail)
}

fn failures_classified(loads: &[&LoadReport]) -> Check {
    let mut total = FailureCounts::default();
    for load in loads {
        total.merge(&load.failures);
    }
    let seen = taint::failure_classes(&total);
    let detail = match total.errors() {
        0 => "no response failed".to_owned(),
        errors => format!("{errors} responses failed: {}", seen.join(", ")),
    };
    check("failures-classified", total.unexplained == 0, detail)
}

fn processes(trials: &[&TrialRecord]) -> Check {
    let failed: Vec<&TrialRecord> = trials.iter().copied().filter(|trial| trial.load.is_none()).collect();
    let detail = match failed.first() {
        Some(first) => {
            format!(
                "{} of {} trials gave no report; first: {}: {}",
                failed.len(),
                trials.len(),
                first.arm,
                taint::reason(first)
            )
        }
        None => format!("all {} trials gave a report", trials.len()),
    };
    check("processes", failed.is_empty(), detail)
}

fn littles_law(trials: &[&TrialRecord], loads: &[&LoadReport], unit: &str) -> Check {
    let errors: Vec<f64> = loads.iter().filter_map(|load| taint::littles_law_error(load)).collect();
    let over = trials.iter().filter(|trial| trial.taints.contains(&Taint::LittlesLaw)).count();
    let detail = format!(
        "{unit}s in flight as counted and as throughput times latency differ by {:.1} % in the median trial; {over} \
         of {} trials over {:.0} % (and what the window's edges explain) and set aside",
        100.0 * median(&errors).unwrap_or(0.0),
        errors.len(),
        100.0 * LITTLES_LAW_ERROR_MAX
    );
    check("littles-law", 4 * over <= errors.len(), detail)
}

fn generator_headroom(loads: &[&LoadReport]) -> Check {
    let closed: Vec<&&LoadReport> = loads.iter().filter(|load| load.rate_per_second.is_none()).collect();
    let bound = closed.iter().filter(|load| load.generator_bound).count();
    let detail = format!("the generator was the limit in {bound} of {} closed-loop trials", closed.len());
    check("generator-headroom", bound == 0, detail)
}

fn rate_kept(spec: &StudySpec, loads: &[&LoadReport]) -> Check {
    let open: Vec<&&LoadReport> = loads.iter().filter(|load| load.rate_per_second.is_some()).collect();
    let missed: u64 = open.iter().map(|load| load.missed_starts).sum();
    let started: u64 = open.iter().map(|load| load.messages_started).sum();
    let has_rates = spec.cells.iter().any(|cell| !matches!(cell.load, LoadMode::Closed));
    let detail = if has_rates {
        format!("{missed} of {} intended starts were missed in open loop", started + missed)
    } else {
        "no open-loop cell".to_owned()
    };
    let missed_max = (1.0 - RATE_KEPT_SHARE_MIN) * (started + missed) as f64;
    check("rate-kept", missed as f64 <= missed_max, detail)
}

fn completion_overflow(loads: &[&LoadReport]) -> Check {
    let engines = loads.iter().filter_map(|load| load.observed.as_ref()?.engine.as_ref());
    let overflows: u64 = engines.map(|engine| engine.completion_overflows).sum();
    check("completion-overflow", overflows == 0, format!("{overflows} completion queue overflows"))
}

fn machine_states(gate: &Gate, trials: &[&TrialRecord]) -> Check {
    let states = gate.summary(trials.iter().copied());
    let (near, far, changed) = states.trials;
    let changed_trials = trials.iter().filter(|trial| gate.state(trial) == TrialState::Changed).count();
    let unread = trials.iter().all(|trial| trial.reading_before.round_trip_ns <= 0.0);
    let detail = match states.far_ns {
        _ if trials.is_empty() => "no trial was run".to_owned(),
        _ if unread => "no cross-core readings: the two sides do not have a CPU each".to_owned(),
        None => format!("one state, {:.0} ns between the cores, in all {near} trials", states.near_ns),
        Some(far_ns) if near == 0 && far > 0 => format!(
            "two states, {:.0} and {far_ns:.0} ns between the cores: no trial near from beginning to end, {far} far, {changed} on both sides; all pairs lie in the far one",
            states.near_ns
        ),
        Some(far_ns) => format!(
            "two states, {:.0} and {far_ns:.0} ns between the cores: {near} trials near, {far} far, {changed} on both sides; pairs lie within one",
            states.near_ns
        ),
    };
    check("machine-states", !unread && 2 * changed_trials <= trials.len(), detail)
}

fn steal(loads: &[&LoadReport]) -> Check {
    let shares: Vec<f64> =
        loads.iter().filter_map(|load| load.observed.as_ref()).map(|seen| seen.noise.steal_share).collect();
    let over = shares.iter().filter(|share| **share > STEAL_SHARE_MAX).count();
    let detail = format!(
        "{:.2} % of CPU time stolen by the hypervisor in the median trial; {over} of {} trials over {:.0} % and set aside",
        100.0 * median(&shares).unwrap_or(0.0),
        shares.len(),
        100.0 * STEAL_SHARE_MAX
    );
    check("steal", 4 * over <= shares.len(), detail)
}

fn foreign_cpu(trials: &[&TrialRecord]) -> Check {
    let observed = trials.iter().filter_map(|trial| trial.load.as_ref()?.observed.as_ref());
    let used: Vec<f64> = observed.map(|seen| seen.noise.foreign_cpus).collect();
    let over = trials.iter().filter(|trial| trial.taints.contains(&Taint::ForeignCpu)).count();
    let detail = format!(
        "other processes used {:.3} of a CPU in the median trial; {over} of {} trials over the machine's background \
         ({:.0} % of the machine at most) by {FOREIGN_CPUS_MAX} or a quarter of it and set aside",
        median(&used).unwrap_or(0.0),
        used.len(),
        100.0 * BACKGROUND_SHARE_MAX
    );
    check("foreign-cpu", 4 * over <= used.len(), detail)
}

fn warm_up(loads: &[&LoadReport]) -> Check {
    let steady = loads.iter().filter(|load| load.warmup_steady).count();
    let detail =
        format!("steady before the window in {steady} of {} trials; the others ran to the cap", loads.len());
    check("steady-warm-up", 2 * steady >= loads.len(), detail)
}

/// Whether each stored block ran in the order its seed gives.
fn interleaving(spec: &StudySpec, trials: &[&TrialRecord]) -> Check {
    /// Position, arm and whether it is the repeat.
    type Runs<'a> = Vec<(u32, &'a str, bool)>;
    let mut blocks: BTreeMap<(usize, u32, u32), Runs<'_>> = BTreeMap::new();
    for trial in trials {
        if let Some(cell) = spec.cells.iter().position(|cell| cell.id == trial.cell_id) {
            let run = (trial.position, trial.arm.as_str(), trial.repeat);
            blocks.entry((cell, trial.block, trial.attempt)).or_default().push(run);
        }
    }
    blocks.values_mut().for_each(|runs| runs.sort_unstable());
    let planned = blocks.iter().filter(|((cell, block, attempt), runs)| {
        let ran = |arm: usize| runs.iter().any(|(_, name, _)| *name == spec.arms[arm].name);
        let order = plan::order(spec, PlannedBlock { cell: *cell, block: *block }, *attempt, ran);
        order.len() == runs.len()
            && order.iter().zip(runs.iter()).all(|(planned, (_, arm, repeat))| {
                spec.arms[planned.arm].name == *arm && planned.repeat == *repeat
            })
    });
    let (matching, all) = (planned.count(), blocks.len());
    let detail = format!("{matching} of {all} blocks ran in the random order of seed {}", spec.seed);
    check("interleaving", matching == all, detail)
}

/// Whether the schedule was finished. The time cap stands beside the time, because it is what cuts most studies short.
/// Another session helps only while there are arms to compare.
pub(crate) fn schedule(
    spec: &StudySpec,
    missing: &[MissingArm],
    progress: &Progress,
    elapsed_ns: u64,
) -> Check {
    let mut detail = progress.words();
    let (cap, elapsed) = (seconds(spec.time_cap_ns), seconds(elapsed_ns));
    if !progress.is_complete() && progress::has_nothing_to_compare(spec, missing) {
        let Progress { blocks_done, blocks, .. } = progress;
        detail =
            format!("nothing is left to compare after {elapsed}: {blocks_done} of {blocks} blocks are done");
    } else if !progress.is_complete() {
        detail = format!(
            "cut short after {elapsed}, with a time cap of {cap} for a session: {detail}; weir study --resume goes on"
        );
    }
    check("schedule", progress.is_complete(), detail)
}

fn baseline_itself(comparisons: &[Comparison], unit: &str) -> Check {
    let headline = comparisons.iter().find(|comparison| comparison.metric == Metric::ServerCpuPerMessage);
    let logs: Vec<f64> = headline
        .map(|comparison| comparison.ratios_self.iter().map(|ratio| ratio.ln()).collect())
        .unwrap_or_default();
    let Some(median) = median(&logs) else {
        return check(
            "baseline-against-itself",
            false,
            "the baseline was never paired with itself".to_owned(),
        );
    };
    let detail = format!(
        "in {} blocks the baseline's second run took {:.1} % {} CPU per {unit} than its first (median)",
        logs.len(),
        100.0 * median.exp_m1().abs(),
        if median < 0.0 { "less" } else { "more" }
    );
    let interval = order_statistics_interval(&logs);
    check("baseline-against-itself", interval.is_some_and(|interval| interval.contains(0.0)), detail)
}
