//! The validity checks of a report, each with its result in numbers. Pure.

use std::collections::BTreeMap;

use weir_record::{
    check::{Check, CheckName},
    cpu_account::CpuDifference,
    effect::Effects,
    evidence::ArmEvidence,
    failure::FailureCounts,
    finding::{Finding, MessageKind, RateHeld, Stopped, UnitKind},
    load::LoadReport,
    machine::{Fingerprint, STEAL_SHARE_MAX},
    metric::Metric,
    protocol::Proof,
    spec::{CellRole, CellSpec, LoadMode, StudySpec},
    study::MissingArm,
    trial::{Exclusion, TrialRecord},
};
use weir_stats::order::median;

use crate::{
    arm_checks, drift, evidence,
    exclusion::{self, LITTLES_LAW_ERROR_MAX},
    exclusion_balance,
    gate::{TrialState, ValidityGate},
    link_losses,
    plan::{self, PlannedBlock},
    planted,
    progress::{self, Progress},
    rungs, slice_length, slice_order, tcp_segments, variance_components, warm,
};

/// All checks, the ones about correctness first.
pub(crate) fn all(
    spec: &StudySpec,
    (fingerprint, gate): (&Fingerprint, &ValidityGate),
    trials: &[&TrialRecord],
    (effects, observed, differences): (&Effects, &[ArmEvidence], &[CpuDifference]),
) -> Vec<Check> {
    let loads: Vec<&LoadReport> = trials.iter().filter_map(|trial| trial.load.as_ref()).collect();
    let mut checks = match spec.protocol_row().proof {
        Proof::Accounts => {
            let arms = arm_checks::all(spec, fingerprint, trials);
            return of_storage(spec, gate, trials, effects).into_iter().chain(arms).collect();
        }
        Proof::Bytes => vec![bytes_verified(&loads)],
        Proof::Responses => vec![responses_checked(&loads)],
        Proof::Replies => vec![replies_checked(&loads), chain_whole(trials), wakes_recovered(&loads)],
    };
    checks.extend([
        failures_classified(&loads),
        processes(trials),
        littles_law(spec, trials, &loads),
        generator_headroom(&loads),
        rate_kept(spec, trials),
        completion_overflow(&loads),
        machine_states(spec, gate, trials),
        steal(trials),
        foreign_cpu(trials),
        warm_up(trials),
        interleaving(spec, trials),
        baseline_itself(spec, effects),
    ]);
    checks.extend(drift::check(spec, gate, trials));
    checks.extend(slice_order::check(spec, gate, trials));
    checks.extend(tcp_segments::check(spec, gate, trials));
    checks.extend(link_losses::check(spec, trials));
    checks.extend(slice_length::check(spec, gate, trials));
    checks.extend(warm::check(spec, gate, trials));
    checks.extend(variance_components::check(spec, gate, trials));
    checks.extend(exclusion_balance::check(spec, gate, trials));
    checks.extend(evidence::check(trials));
    checks.extend(evidence::calls_agree(observed));
    checks.extend(evidence::calls_cover(observed));
    checks.extend(planted::check(spec, differences, observed));
    checks.extend(arm_checks::all(spec, fingerprint, trials));
    checks
}

/// The checks of storage; those about the machine use the trials that ran on it.
fn of_storage(
    spec: &StudySpec,
    gate: &ValidityGate,
    trials: &[&TrialRecord],
    effects: &Effects,
) -> Vec<Check> {
    let is_simulated = |id: &str| spec.cells.iter().any(|cell| cell.id == id && cell.is_simulated());
    let (computed, measured): (Vec<&TrialRecord>, Vec<&TrialRecord>) =
        trials.iter().copied().partition(|trial| is_simulated(&trial.cell_id));
    let loads: Vec<&LoadReport> = measured.iter().filter_map(|trial| trial.load.as_ref()).collect();
    let mut checks = vec![processes(trials)];
    if spec.cells.iter().any(|cell| !cell.is_simulated()) {
        checks.insert(0, operations_counted(&loads));
        checks.extend([
            in_flight_as_given(&measured, &loads),
            machine_states(spec, gate, &measured),
            steal(&measured),
            foreign_cpu(&measured),
        ]);
        checks.extend(exclusion_balance::check(spec, gate, &measured));
    }
    if !computed.is_empty() {
        checks.push(repeatable(&computed));
    }
    checks.extend([
        interleaving(spec, trials),
        baseline_itself(spec, effects),
        check(CheckName::NotAsked, true, Finding::NotAsked),
    ]);
    checks
}

/// Whether the baseline's second run, with the same seed, equals the first one bit for bit: computed results do not
/// depend on the machine.
fn repeatable(trials: &[&TrialRecord]) -> Check {
    let repeats: Vec<&&TrialRecord> = trials.iter().filter(|trial| trial.repeat).collect();
    let first_of = |repeat: &TrialRecord| {
        trials.iter().find(|it| {
            !it.repeat
                && (&it.arm, &it.cell_id, it.block, it.attempt)
                    == (&repeat.arm, &repeat.cell_id, repeat.block, repeat.attempt)
        })
    };
    let is_same = |repeat: &&&TrialRecord| first_of(repeat).is_some_and(|first| first.load == repeat.load);
    let same = count(repeats.iter().copied().filter(is_same).count());
    let repeats = count(repeats.len());
    check(
        CheckName::Repeatable,
        same == repeats,
        Finding::Repeatable { same, repeats, simulated: count(trials.len()) },
    )
}

/// Every reply has the next sequence number, and arrives in its order's turn.
fn replies_checked(loads: &[&LoadReport]) -> Check {
    let orders = || loads.iter().filter_map(|load| load.orders.as_ref());
    let checked: u64 = orders().map(|it| it.sequenced_checked).sum();
    let inversions: u64 = orders().map(|it| it.inversions).sum();
    let unbalanced = count(orders().filter(|it| !it.shares.is_conserved()).count());
    let found = Finding::RepliesChecked { checked, inversions, unbalanced, trials: count(loads.len()) };
    check(CheckName::RepliesChecked, checked > 0 && inversions == 0 && unbalanced == 0, found)
}

/// Whether the gateway received twice as many messages as the exchange: every order once, and its reply.
fn chain_whole(trials: &[&TrialRecord]) -> Check {
    let chains: Vec<_> = trials.iter().filter_map(|trial| trial.chain).collect();
    let whole = count(chains.iter().filter(|chain| chain.is_whole()).count());
    let reported = count(trials.iter().filter(|trial| trial.load.is_some()).count());
    let found = Finding::ChainWhole { whole, trials: reported };
    check(CheckName::ChainWhole, reported > 0 && whole == reported, found)
}

/// Whether no thread was found asleep although it had work.
fn wakes_recovered(loads: &[&LoadReport]) -> Check {
    let handoffs = loads.iter().filter_map(|load| load.observed.as_ref()?.node.as_ref()?.handoff.as_ref());
    let (recovered, pushed) =
        handoffs.fold((0, 0), |(recovered, pushed), it| (recovered + it.wakes_recovered, pushed + it.pushed));
    check(CheckName::WakesRecovered, recovered == 0, Finding::WakesRecovered { recovered, pushed })
}

/// Largest difference between a tool's own operations a second and the kernel's count, in the median trial.
const COUNT_ERROR_MAX: f64 = 0.05;

/// Whether the kernel's byte counts confirm the tools' own counts. The tools' windows are a little longer than ours,
/// so that a disk with varying speed causes some difference in single trials.
fn operations_counted(loads: &[&LoadReport]) -> Check {
    let error = |load: &&LoadReport| {
        let reported = load.storage.as_ref()?.iops_reported;
        (load.throughput_per_second > 0.0).then(|| (reported / load.throughput_per_second - 1.0).abs())
    };
    let errors: Vec<f64> = loads.iter().filter_map(error).collect();
    let error = median(&errors);
    let found = Finding::OperationsCounted {
        operations: loads.iter().map(|load| load.messages).sum(),
        error: error.unwrap_or(0.0),
        error_max: COUNT_ERROR_MAX,
    };
    check(CheckName::OperationsCounted, error.is_some_and(|error| error <= COUNT_ERROR_MAX), found)
}

/// Little's law for a job that reports its operations in flight: they cannot exceed the configured depth.
fn in_flight_as_given(trials: &[&TrialRecord], loads: &[&LoadReport]) -> Check {
    let surplus: Vec<f64> = loads.iter().filter_map(|load| exclusion::surplus_in_flight(load)).collect();
    let over = trials.iter().filter(|trial| trial.exclusions.contains(&Exclusion::LittlesLaw)).count();
    let found = Finding::InFlightAsGiven {
        surplus: median(&surplus).unwrap_or(0.0),
        over: count(over),
        trials: count(surplus.len()),
        surplus_max: LITTLES_LAW_ERROR_MAX,
    };
    check(CheckName::LittlesLaw, 4 * over <= surplus.len(), found)
}

fn check(name: CheckName, passed: bool, detail: Finding) -> Check {
    Check { name, passed, detail }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

fn bytes_verified(loads: &[&LoadReport]) -> Check {
    let compared: u64 = loads.iter().map(|load| load.bytes_verified).sum();
    let expected: u64 = loads.iter().map(|load| load.messages * u64::from(load.message_bytes)).sum();
    let wrong: u64 = loads.iter().map(|load| load.failures.wrong_bytes).sum();
    let passed = compared == expected && wrong == 0 && expected > 0;
    check(CheckName::BytesVerified, passed, Finding::BytesCompared { compared, expected, wrong })
}

/// The same for HTTP: every response's framing and length are checked, and its content is compared byte for byte if
/// it is known.
fn responses_checked(loads: &[&LoadReport]) -> Check {
    let bytes: u64 = loads.iter().map(|load| load.bytes_verified).sum();
    let bytes_expected: u64 = loads.iter().map(|load| exclusion::bytes_expected(load)).sum();
    let responses: u64 = loads.iter().map(|load| load.messages).sum();
    let https = loads.iter().filter_map(|load| load.http.as_ref());
    let compared: u64 = https.map(|http| http.responses_compared).sum();
    let wrong: u64 = loads.iter().map(|load| load.failures.wrong_bytes).sum();
    let compared_share = if responses == 0 { 0.0 } else { compared as f64 / responses as f64 };
    // A mix may have answers without content, and contents that differ each time.
    let is_mix = !loads.is_empty() && loads.iter().all(|load| exclusion::is_mix(load));
    let has_content = is_mix || bytes_expected > 0 && compared > 0;
    let passed = bytes == bytes_expected && wrong == 0 && responses > 0 && has_content;
    let found =
        Finding::ResponsesChecked { bytes, bytes_expected, compared, responses, compared_share, wrong };
    check(CheckName::ResponsesChecked, passed, found)
}

fn failures_classified(loads: &[&LoadReport]) -> Check {
    let mut total = FailureCounts::default();
    for load in loads {
        total.merge(&load.failures);
    }
    let found = Finding::Failures { count: total.errors(), classes: exclusion::failure_classes(&total) };
    check(CheckName::FailuresClassified, total.unexplained == 0, found)
}

fn processes(trials: &[&TrialRecord]) -> Check {
    let failed: Vec<&TrialRecord> = trials.iter().copied().filter(|trial| trial.load.is_none()).collect();
    let found = Finding::Reports {
        missing: count(failed.len()),
        trials: count(trials.len()),
        first: failed.first().map(|trial| exclusion::failed_trial(trial)),
    };
    check(CheckName::Processes, failed.is_empty(), found)
}

fn littles_law(spec: &StudySpec, trials: &[&TrialRecord], loads: &[&LoadReport]) -> Check {
    let errors: Vec<f64> = loads.iter().filter_map(|load| exclusion::littles_law_error(load)).collect();
    let over = trials.iter().filter(|trial| trial.exclusions.contains(&Exclusion::LittlesLaw)).count();
    let found = Finding::LittlesLaw {
        kind: MessageKind::of_study(spec),
        error: median(&errors).unwrap_or(0.0),
        over: count(over),
        trials: count(errors.len()),
        error_max: LITTLES_LAW_ERROR_MAX,
    };
    check(CheckName::LittlesLaw, 4 * over <= errors.len(), found)
}

fn generator_headroom(loads: &[&LoadReport]) -> Check {
    let closed: Vec<&&LoadReport> = loads.iter().filter(|load| load.rate_per_second.is_none()).collect();
    let bound = count(closed.iter().filter(|load| load.generator_bound).count());
    check(
        CheckName::GeneratorHeadroom,
        bound == 0,
        Finding::GeneratorLimit { bound, trials: count(closed.len()) },
    )
}

/// Whether every arm kept the rates with a claim; without claims, all rates.
fn rate_kept(spec: &StudySpec, trials: &[&TrialRecord]) -> Check {
    let is_open = |cell: &&CellSpec| cell.load != LoadMode::Closed && cell.storage.is_none();
    let open = || spec.cells.iter().filter(is_open);
    let is_claim = |cell: &&CellSpec| cell.role != CellRole::Exploratory;
    let has_claims = open().any(|cell| is_claim(&cell));
    let meant: Vec<&CellSpec> = open().filter(|cell| !has_claims || is_claim(cell)).collect();
    let of = |id: &str| meant.iter().any(|cell| cell.id == id);
    let loads: Vec<&LoadReport> =
        trials.iter().filter(|trial| of(&trial.cell_id)).filter_map(|trial| trial.load.as_ref()).collect();
    let missed: u64 = loads.iter().map(|load| load.missed_starts).sum();
    let starts = missed + loads.iter().map(|load| load.messages_started).sum::<u64>();
    let of_cells = meant.iter().map(|cell| (*cell, rungs::least_kept(cell, trials.iter().copied())));
    let of_cells = of_cells.filter_map(|(cell, least)| Some((cell, least?)));
    let least = of_cells.min_by(|(_, one), (_, other)| one.share().total_cmp(&other.share()));
    let is_kept = least.as_ref().is_none_or(|(_, least)| least.is_enough());
    let held = least.map(|(cell, least)| RateHeld {
        cell_id: cell.id.clone(),
        arm: least.arm,
        kept: least.kept,
        of: least.of,
        unit: UnitKind::of_cell(cell),
    });
    let found = match open().next() {
        Some(_) => Finding::RateKept { missed, starts, least: held },
        None => Finding::NoOpenLoop,
    };
    check(CheckName::RateKept, is_kept, found)
}

fn completion_overflow(loads: &[&LoadReport]) -> Check {
    let engines = loads.iter().filter_map(|load| load.observed.as_ref()?.engine.as_ref());
    let overflows: u64 = engines.map(|engine| engine.completion_overflows).sum();
    check(CheckName::CompletionOverflow, overflows == 0, Finding::CompletionOverflows { count: overflows })
}

fn machine_states(spec: &StudySpec, gate: &ValidityGate, trials: &[&TrialRecord]) -> Check {
    if spec.server_host.is_some() {
        // There is no distance between the CPUs of both sides that could change.
        return check(CheckName::MachineStates, true, Finding::TwoHosts);
    }
    let states = gate.summary(trials.iter().copied());
    let (near, far, changed) = states.trials;
    let changed_trials = trials.iter().filter(|trial| gate.state(trial) == TrialState::Changed).count();
    let unread = trials.iter().all(|trial| trial.reading_before.round_trip_ns <= 0.0);
    let found = match states.far_ns {
        _ if trials.is_empty() => Finding::NoTrial,
        _ if unread => Finding::NoCrossCore,
        None => Finding::OneState { ns: states.near_ns, trials: near },
        Some(far_ns) => Finding::TwoStates { near_ns: states.near_ns, far_ns, near, far, changed },
    };
    check(CheckName::MachineStates, !unread && 2 * changed_trials <= trials.len(), found)
}

/// The trials that noise can affect: whole ones. Slices that are compared run under the same conditions, and are only
/// reported if there is nothing else.
fn noise_can_spoil<'a>(trials: &[&'a TrialRecord]) -> (Vec<&'a TrialRecord>, UnitKind) {
    let whole: Vec<&TrialRecord> = trials.iter().copied().filter(|trial| trial.slices.is_empty()).collect();
    if whole.is_empty() && !trials.is_empty() {
        return (trials.to_vec(), UnitKind::Round);
    }
    (whole, UnitKind::Pair)
}

fn steal(trials: &[&TrialRecord]) -> Check {
    let (trials, unit) = noise_can_spoil(trials);
    let observed = trials.iter().filter_map(|trial| trial.load.as_ref()?.observed.as_ref());
    let shares: Vec<f64> = observed.map(|seen| seen.noise.steal_share).collect();
    let over = shares.iter().filter(|share| **share > STEAL_SHARE_MAX).count();
    let found = Finding::Steal {
        share: median(&shares).unwrap_or(0.0),
        over: count(over),
        trials: count(shares.len()),
        share_max: STEAL_SHARE_MAX,
        unit,
    };
    check(CheckName::Steal, unit == UnitKind::Round || 4 * over <= shares.len(), found)
}

fn foreign_cpu(trials: &[&TrialRecord]) -> Check {
    let (trials, unit) = noise_can_spoil(trials);
    let observed = trials.iter().filter_map(|trial| trial.load.as_ref()?.observed.as_ref());
    let used: Vec<f64> = observed.map(|seen| seen.noise.foreign_cpus).collect();
    let over = trials.iter().filter(|trial| trial.exclusions.contains(&Exclusion::ForeignCpu)).count();
    let found = Finding::ForeignCpu {
        cpus: median(&used).unwrap_or(0.0),
        over: count(over),
        trials: count(used.len()),
        unit,
    };
    check(CheckName::ForeignCpu, unit == UnitKind::Round || 4 * over <= used.len(), found)
}

/// Slices have no separate warm-up: each is primed.
fn warm_up(trials: &[&TrialRecord]) -> Check {
    let whole = trials.iter().filter(|trial| trial.slices.is_empty());
    let loads: Vec<&LoadReport> = whole.filter_map(|trial| trial.load.as_ref()).collect();
    let steady = loads.iter().filter(|load| load.warmup_steady).count();
    let found = Finding::WarmUp { steady: count(steady), trials: count(loads.len()) };
    check(CheckName::SteadyWarmUp, 2 * steady >= loads.len(), found)
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
    let (matching, blocks) = (count(planned.count()), count(blocks.len()));
    let found = Finding::Interleaving { matching, blocks, seed: spec.seed };
    check(CheckName::Interleaving, matching == blocks, found)
}

/// Whether the schedule was finished. The time limit is shown with the elapsed time, because it is what ends most
/// studies early. Another session only helps while there are arms to compare.
pub(crate) fn schedule(
    spec: &StudySpec,
    missing: &[MissingArm],
    progress: &Progress,
    elapsed_ns: u64,
) -> Check {
    // Blocks that were excluded for noise and not repeated are reported, but did not cut the study short.
    let stopped = match progress.is_finished() {
        true => None,
        false if progress::has_nothing_to_compare(spec, missing) => {
            Some(Stopped::NothingToCompare { elapsed_ns })
        }
        false => Some(Stopped::CutShort { elapsed_ns, cap_ns: spec.time_cap_ns }),
    };
    check(CheckName::Schedule, stopped.is_none(), progress.finding(stopped))
}

/// The baseline compared with itself in the primary cell, by the decision rule.
fn baseline_itself(spec: &StudySpec, effects: &Effects) -> Check {
    const NAME: CheckName = CheckName::BaselineAgainstItself;
    let mut comparisons = effects.comparisons();
    let primary = comparisons.find(|comparison| comparison.metric == Metric::ServerCpuPerMessage);
    let Some((itself, ratio)) =
        primary.and_then(|it| effects.itself(it)).and_then(|it| Some((it, it.estimate?)))
    else {
        return check(NAME, false, Finding::NeverAgainstItself);
    };
    let cell = spec.cells.iter().find(|cell| cell.id == itself.cell_id);
    let found = Finding::AgainstItself {
        units: u64::from(itself.units),
        unit: cell.map(UnitKind::of_cell).unwrap_or_default(),
        kind: MessageKind::of_study(spec),
        ratio,
        interval: itself.interval,
    };
    check(NAME, itself.interval.is_some_and(|(low, high)| low <= 1.0 && high >= 1.0), found)
}
