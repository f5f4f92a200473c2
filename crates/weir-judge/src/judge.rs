//! From trials to verdicts. Pure: judging the same trials again gives the same result.
//!
//! The rules, in the order in which they apply to one comparison (a cell, an arm, a metric):
//!
//! 1. The values come from `units`: one log-ratio (or a difference, if figures may be zero) for each round in which
//!    the arms took turns, or for each block of whole trials; all in one state of the machine (`gate`), with the
//!    effect in the other state reported separately.
//! 2. A cell is valid only if responses were right: a wrong byte or an unexplained failure, or more than a quarter of
//!    an arm's trials with failures of the arm itself, makes it *not comparable*. In open loop, an arm that did
//!    not keep the offered rate does so too. Throughput is barred if the generator was the limit.
//! 3. One rule decides ([`weir_stats::decide`]): a two-sided t test at 1 % with its interval, and *equivalent* if the
//!    interval lies inside the margin. The claims of the primary and confirmatory cells that are not barred share
//!    Holm's correction with the declared contrasts (`contrast`). Exploratory cells have no claims. The comparison of
//!    the baseline with itself is an additional check, not a second test.
//! 4. A verdict on server CPU stands only if three figures are known not to go the other way by more than the margin
//!    (`witnesses`): the CPU of both sides, server CPU including waiting and, if the generator was the limit, both
//!    arms at the measured equal rates (at least one). An unfinished schedule gives no verdict.
//! 5. Each arm is compared with the study's first, or with the baseline that it names. A published figure of two
//!    other arms is shown with a comparison of these two, in its cell and in the open-loop cells of the same shape.
//!    The noise floor is always that of the first arm, the only one that runs twice in a block.
//! 6. Latency has no verdict if the generator's own lag is more than a tenth of it.
//! 7. A storage job generates its own load. Rules 4 and 6 do not apply to it: there is no generator that could be the
//!    limit or lag, and all its figures are compared in closed loop.
//! 8. On a simulated device the claims are misses and the share of CPU, and the primary comparison is the joint
//!    statement about both (`frontier`).

use weir_record::{
    SCHEMA_VERSION,
    contrast::ContrastSpec,
    effect::{Effect, Effects, Question},
    finding::{Finding, MessageKind},
    goal::Side,
    machine::Fingerprint,
    metric::{Family, Metric, Scale},
    spec::{CellRole, LoadMode, StudySpec},
    study::{ArmSummary, MissingArm, StudyResult, TimelineEntry},
    trial::TrialRecord,
    verdict::Verdict,
};
use weir_stats::{
    decide::{Direction, Estimate, Reading, UNITS_MIN, decide},
    holm::holm,
};

use crate::{
    accept_queue, added_cost, aggregate, answers, attribution, cause,
    cell_trials::{self, CellTrials},
    check, connection_costs,
    contrast::{self, CellEffect},
    cpu_account,
    draft::{self, Draft},
    evidence, frontier,
    gate::{TrialState, ValidityGate},
    grid, guidance, latency_map, oversubscription, overview,
    progress::Progress,
    question::{self, Measured},
    rungs,
    scaling::Scope,
    strace, summary,
    syn_ladder::syn_ladder_s,
    thread_use, units, wait_series,
    witnesses::{AtRate, Claim, Seen, Witnesses, equal_rate_of, is_same_shape, verdict_left},
};

/// The input of the judge.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    /// The specification, with fixed rates.
    pub spec: &'a StudySpec,
    /// The machine.
    pub fingerprint: &'a Fingerprint,
    /// Every stored trial; pilots help to find the machine's states and are not compared.
    pub trials: &'a [TrialRecord],
    /// Arms that could not run.
    pub missing_arms: &'a [MissingArm],
    /// Time of all sessions.
    pub elapsed_ns: u64,
    /// Command that runs the study again.
    pub reproduce: &'a str,
}

/// Judges a study, finished or not.
pub fn judge(judged: &Judged<'_>) -> StudyResult {
    let settled = rungs::settled(judged.spec, judged.trials);
    judge_settled(&Judged { spec: settled.as_ref().unwrap_or(judged.spec), ..*judged })
}

/// The same with the claim at the deciding rate.
fn judge_settled(judged: &Judged<'_>) -> StudyResult {
    let Judged { spec, fingerprint, trials, missing_arms, .. } = *judged;
    let gate = ValidityGate::new(trials);
    let cells = cell_trials::by_role(spec, &gate, trials);
    let progress = Progress::of(spec, &trials.iter().collect::<Vec<_>>(), missing_arms);
    let arms: Vec<ArmSummary> = cells.iter().flat_map(|cell| arm_summaries(spec, &gate, cell)).collect();
    let (mut effects, witnesses) = effects(judged, &gate, &cells, &progress);
    note_syscalls(spec, &arms, &mut effects);
    let (cpus_allowed, is_finished) = (fingerprint.cpus_allowed.len(), progress.is_finished());
    let oversubscribed = oversubscription::noted(spec, cpus_allowed, &mut effects);
    let primary = primary(spec, &effects);
    let planned: Vec<&TrialRecord> = cells.iter().flat_map(|cell| cell.trials.iter().copied()).collect();
    let (observed, differences) = (evidence::all(spec, &planned), cpu_account::differences(spec, &planned));
    let found = (&effects, &observed[..], &differences[..]);
    let mut checks = check::all(spec, (fingerprint, &gate), &planned, found);
    checks.push(check::schedule(spec, missing_arms, &progress, judged.elapsed_ns));
    let frontier = frontier::rows(spec, &arms, &effects);
    let frontier_answers = frontier::answers(spec, &arms, &frontier);
    let syn_ladder_s = syn_ladder_s(&fingerprint.limits);
    let grids = grid::all(spec, &effects, &witnesses, is_finished);
    let scope = Scope { spec, gate: &gate, cells: &cells, cpus_allowed, is_finished };
    let listening = accept_queue::all(spec, &planned, &syn_ladder_s);
    StudyResult {
        schema_version: SCHEMA_VERSION,
        spec: spec.clone(),
        fingerprint: fingerprint.clone(),
        primary,
        verdict: frontier::verdict_of(primary.map(|index| &effects.rows[index]), &frontier_answers),
        checks,
        states: gate.summary(planned.iter().copied()),
        timeline: timeline(&gate, &cells),
        overviews: overview::all(&scope, &effects, &grids),
        latency_ladders: latency_map::all(spec, (&gate, &cells), &arms),
        connection_costs: connection_costs::all(spec, missing_arms, (&gate, &cells)),
        aggregates: aggregate::all(spec, &gate, &cells),
        guidance: is_finished
            .then(|| guidance::of(spec, fingerprint, missing_arms, &grids, &effects, trials))
            .flatten(),
        grids,
        effects,
        arms,
        missing_arms: missing_arms.to_vec(),
        complete: progress.is_complete(),
        elapsed_ns: judged.elapsed_ns,
        reproduce: judged.reproduce.to_owned(),
        syn_ladder_s: if listening.is_empty() { Vec::new() } else { syn_ladder_s },
        listening,
        oversubscribed,
        evidence: observed,
        strace: strace::all(spec, &planned),
        threads: thread_use::all(spec, &gate, &cells),
        cpu_differences: differences,
        frontier,
        frontier_answers,
        wait_series: wait_series::all(spec, trials),
        period: None,
        created_unix_s: None,
        among_runs: None,
    }
}

/// The table, comparisons first; and the witnesses that could contradict each of these.
fn effects(
    judged: &Judged<'_>,
    gate: &ValidityGate,
    cells: &[CellTrials<'_>],
    progress: &Progress,
) -> (Effects, Vec<Witnesses>) {
    let Judged { spec, missing_arms, .. } = *judged;
    let mut drafts = draft::all(spec, missing_arms, gate, cells);
    let (mut rows, contrasts) = decide_all(spec, cells, &mut drafts);
    let witnesses = confirm_server_cpu(spec, cells, &drafts, &mut rows);
    withhold_unfinished(progress, &mut rows);
    rows.extend(drafts.iter().flat_map(|draft| draft.beside.iter().cloned()));
    rows.extend(cells.iter().flat_map(|cell| draft::itself(spec, gate, cell)));
    let shown = |of: &Side, to: &Side| beside(cells, &drafts, of, to);
    rows.extend(answers::all(spec, missing_arms, (gate, cells), progress, &shown));
    rows.extend(contrast::withhold_unfinished(contrasts, progress.is_finished()));
    if let Some(first) = spec.arms.first() {
        let measured = Measured { gate, first: &first.name };
        rows.extend(cause::all(spec, measured, cells, progress.is_finished()));
        rows.extend(added_cost::all(spec, measured, cells, progress.is_finished()));
        rows.extend(attribution::all(spec, measured, cells));
    }
    (Effects { rows }, witnesses)
}

/// Holm's correction over the claims, then a verdict for each comparison and each contrast.
fn decide_all(
    spec: &StudySpec,
    cells: &[CellTrials<'_>],
    drafts: &mut [Draft],
) -> (Vec<Effect>, Vec<Effect>) {
    let contrasts = contrast::Draft::all(spec, |asked, metric, cell_id| {
        effect_in(spec, (cells, &*drafts), (asked, metric), cell_id)
    });
    let claims: Vec<usize> = (0..drafts.len()).filter(|index| drafts[*index].is_claim()).collect();
    let own = claims.iter().filter_map(|index| drafts[*index].comparison.p_value);
    let p_values: Vec<f64> = own.chain(contrasts.iter().filter_map(contrast::Draft::p_value)).collect();
    let mut adjusted = holm(&p_values).unwrap_or_default().into_iter();
    for (index, adjusted) in claims.iter().zip(adjusted.by_ref().take(claims.len())) {
        drafts[*index].comparison.p_value_holm = Some(adjusted);
    }
    let mut decide = |(place, draft): (usize, &contrast::Draft<'_>)| {
        let p_value_holm = draft.p_value().and_then(|_| adjusted.next());
        draft.decided(question::place(place), p_value_holm)
    };
    let contrasts = contrasts.iter().enumerate().map(&mut decide).collect();
    (drafts.iter().map(|draft| decided(spec, draft)).collect(), contrasts)
}

/// The effect of a metric in a cell, for a contrast.
fn effect_in(
    spec: &StudySpec,
    (cells, drafts): (&[CellTrials<'_>], &[Draft]),
    (asked, metric): (&ContrastSpec, Metric),
    cell_id: &str,
) -> CellEffect {
    let is_it = |draft: &&Draft| {
        let it = &draft.comparison;
        it.cell_id == cell_id && (&it.arm, &it.baseline, it.metric) == (&asked.arm, &asked.baseline, metric)
    };
    match drafts.iter().find(is_it) {
        Some(draft) if metric == asked.metric && is_limited(spec, (cells, drafts), asked, draft) => {
            CellEffect::Limited
        }
        Some(draft) if draft.rate_missed.is_some() => CellEffect::Barred,
        Some(draft) if draft.is_open() => draft.effect.map_or(CellEffect::Barred, CellEffect::Known),
        // Older stores lack it.
        Some(draft) if draft.effect.is_none() && metric == Metric::ServerCpuWithWaiting => CellEffect::Absent,
        Some(_) => CellEffect::Barred,
        None => CellEffect::Absent,
    }
}

/// Whether the generator was the limit in a cell of a contrast, and no equal rate covers all of its cells.
fn is_limited(
    spec: &StudySpec,
    (cells, drafts): (&[CellTrials<'_>], &[Draft]),
    asked: &ContrastSpec,
    draft: &Draft,
) -> bool {
    let Some(effect) = draft.effect.filter(|_| !draft.bounds.is_empty()) else {
        return !draft.bounds.is_empty();
    };
    let shape = cells[draft.cell].spec;
    let is_alike = |id: &String| spec.cells.iter().any(|cell| cell.id == *id && is_same_shape(cell, shape));
    let is_borne_out = || {
        let witnesses = witnesses(cells, drafts, draft);
        witnesses.rates_bear_out(&Claim::of_effect(&effect, spec.equivalence_margin, &witnesses))
    };
    let is_of_server = asked.metric == Metric::ServerCpuPerMessage;
    !(is_of_server && asked.of.iter().chain(&asked.to).all(is_alike) && is_borne_out())
}

fn decided(spec: &StudySpec, draft: &Draft) -> Effect {
    let mut comparison = draft.comparison.clone();
    comparison.reasons.extend(draft.obstacles.iter().cloned());
    let bounds = draft.bounds.iter().cloned();
    match draft.row.family {
        Family::Rate => comparison.reasons.extend(bounds),
        _ => comparison.notes.extend(bounds),
    }
    let effect = match &draft.effect {
        Some(effect) if draft.is_open() => effect,
        None if draft.obstacles.is_empty() && comparison.excluded.is_empty() => {
            let left_out = spec.missing_cells.iter().find(|cell| cell.id == comparison.cell_id);
            let found = match (comparison.units, left_out) {
                (1, _) => Finding::OneUnit { unit: draft.unit },
                (_, Some(cell)) => cell.reason.clone(),
                (_, None) => Finding::NothingMeasured,
            };
            comparison.reasons.push(found);
            return comparison;
        }
        _ => {
            if draft.effect.is_none() {
                comparison.reasons.push(Finding::NoPairLeft);
            }
            comparison.verdict = Verdict::NotComparable;
            return comparison;
        }
    };
    let reading = Reading {
        p_value: comparison.p_value_holm.unwrap_or(effect.p_value),
        margin: margin(draft.row.scale, spec.equivalence_margin),
        larger_is_better: comparison.metric.larger_is_better(),
    };
    if draft.is_claim() {
        let (verdict, reason) = claimed(effect, &reading, draft.row.scale);
        comparison.verdict = verdict;
        comparison.reasons.extend(reason);
    } else {
        comparison.verdict = Verdict::NoClaim;
    }
    match draft.rate_missed.clone() {
        Some(missed) if comparison.verdict == Verdict::NoClaim => comparison.notes.push(missed),
        Some(missed) => {
            comparison.verdict = Verdict::Inconclusive;
            comparison.reasons.push(missed);
        }
        None => {}
    }
    comparison
}

/// The margin on a scale: a positive log-ratio, or a difference.
pub(crate) fn margin(scale: Scale, equivalence_margin: f64) -> f64 {
    match scale {
        Scale::Ratio => equivalence_margin.ln_1p(),
        Scale::Difference { margin } => margin,
    }
}

/// The verdict of the rule on a claim, and why there is none.
pub(crate) fn claimed(effect: &Estimate, reading: &Reading, scale: Scale) -> (Verdict, Option<Finding>) {
    let verdict = verdict_of(decide(effect, reading));
    let reason = (verdict == Verdict::Inconclusive).then(|| undecided(effect, reading, scale));
    (verdict, reason)
}

/// The verdict for a direction.
pub(crate) fn verdict_of(direction: Direction) -> Verdict {
    match direction {
        Direction::Better => Verdict::Better,
        Direction::Worse => Verdict::Worse,
        Direction::Equivalent => Verdict::Equivalent,
        Direction::Undecided => Verdict::Inconclusive,
    }
}

/// Why an estimate does not decide.
pub(crate) fn undecided(effect: &Estimate, reading: &Reading, scale: Scale) -> Finding {
    if effect.units < UNITS_MIN {
        let units = u32::try_from(effect.units).unwrap_or(u32::MAX);
        return Finding::TooFewUnits { units, units_min: UNITS_MIN as u32 };
    }
    if effect.low > 0.0 || effect.high < 0.0 {
        return Finding::NotSignificant { p_value: reading.p_value };
    }
    // The detectable effect shrinks with the square root of the units.
    let wanted = effect.units as f64 * (effect.detectable / reading.margin).powi(2);
    let is_known = wanted.is_finite() && wanted > effect.units as f64 && wanted < UNITS_WANTED_MAX;
    let none = if scale == Scale::Ratio { 1.0 } else { 0.0 };
    Finding::IncludesNone { none, units_wanted: is_known.then_some(wanted.ceil() as u32) }
}

/// Larger numbers of units are not suggested.
const UNITS_WANTED_MAX: f64 = 100_000.0;

/// Checks each verdict on server CPU against figures that could contradict it: the CPU of both sides and softirqs,
/// because on loopback a server carries work of the generator's; CPU including waiting, if arms took turns; and both
/// arms at one equal rate, because a closed loop gives each arm another load. If the generator was the limit an equal
/// rate must have been measured. The most severe of their results becomes the verdict. Returns the witnesses of each
/// comparison.
fn confirm_server_cpu(
    spec: &StudySpec,
    cells: &[CellTrials<'_>],
    drafts: &[Draft],
    comparisons: &mut [Effect],
) -> Vec<Witnesses> {
    let all: Vec<Witnesses> = drafts.iter().map(|draft| witnesses(cells, drafts, draft)).collect();
    for (comparison, witnesses) in comparisons.iter_mut().zip(&all) {
        let is_decided = matches!(comparison.verdict, Verdict::Better | Verdict::Worse | Verdict::Equivalent);
        if comparison.metric != Metric::ServerCpuPerMessage || !is_decided {
            continue;
        }
        let held = witnesses.held(&Claim::of(comparison, spec.equivalence_margin));
        comparison.verdict = verdict_left(comparison.verdict, &held);
        for (finding, verdict) in held {
            let list = if verdict.is_none() { &mut comparison.notes } else { &mut comparison.reasons };
            list.push(finding);
        }
    }
    all
}

/// The witnesses of one arm's server CPU compared with another's.
fn beside(cells: &[CellTrials<'_>], drafts: &[Draft], of: &Side, to: &Side) -> Option<Witnesses> {
    let is_it = |draft: &&Draft| {
        let it = &draft.comparison;
        (&it.cell_id, &it.arm, &it.baseline, it.metric) == (&of.cell_id, &of.arm, &to.arm, of.metric)
    };
    drafts.iter().find(is_it).map(|draft| witnesses(cells, drafts, draft))
}

/// The witnesses of a comparison of server CPU.
fn witnesses(cells: &[CellTrials<'_>], drafts: &[Draft], draft: &Draft) -> Witnesses {
    if draft.comparison.metric != Metric::ServerCpuPerMessage {
        return Witnesses { is_bound: !draft.bounds.is_empty(), ..Witnesses::default() };
    }
    let same = |other: &&Draft, metric: Metric| {
        let (one, two) = (&draft.comparison, &other.comparison);
        two.metric == metric && (&two.arm, &two.baseline) == (&one.arm, &one.baseline)
    };
    let own_cell =
        |metric: Metric| drafts.iter().find(|other| other.cell == draft.cell && same(other, metric));
    let effect = |other: &Draft| other.effect.filter(|_| other.is_open());
    let shape = cells[draft.cell].spec;
    let rate = |other: &Draft| {
        let cell = cells[other.cell].spec;
        // A claim about one rate says nothing about another.
        let per_second = equal_rate_of(cell, shape).filter(|_| shape.load == LoadMode::Closed)?;
        Some(AtRate { per_second, rounds: cell.blocks, effect: seen_in(draft.state, other) })
    };
    let at_rate = drafts.iter().filter(|other| same(other, Metric::ServerCpuPerMessage));
    Witnesses {
        machine: own_cell(Metric::MachineCpuPerMessage)
            .map(|other| effect(other).map_or(Seen::Invalid, Seen::Known)),
        waiting: own_cell(Metric::ServerCpuWithWaiting).and_then(effect),
        achieved: draft.achieved,
        rate_missed: draft.rate_missed.clone(),
        rates: at_rate.filter_map(rate).collect(),
        is_bound: !draft.bounds.is_empty(),
    }
}

/// The effect of another cell's comparison in this state of the machine.
fn seen_in(state: Option<TrialState>, other: &Draft) -> Seen {
    let is_valid = other.is_open() && other.rate_missed.is_none();
    let Some(effect) = other.effect.filter(|_| is_valid) else { return Seen::Invalid };
    if other.state == state {
        return Seen::Known(effect);
    }
    let wanted = match state {
        Some(TrialState::Near) => Some(Question::NearState),
        Some(TrialState::Far) => Some(Question::FarState),
        Some(TrialState::Changed) | None => None,
    };
    let own = other.beside.iter().find(|row| Some(row.question) == wanted);
    own.and_then(|own| {
        let (low, high) = own.interval?;
        let (mean, low, high) = (own.estimate?.ln(), low.ln(), high.ln());
        Some(Seen::Known(Estimate { mean, low, high, units: own.units as usize, ..effect }))
    })
    .unwrap_or(Seen::OtherState)
}

/// System calls per message must differ by this factor to be mentioned with a verdict.
const SYSCALLS_FACTOR_MIN: f64 = 1.2;

/// Adds notes where the engines' own counters point in the same direction as a verdict on server CPU. A correlation
/// does not prove a cause: nothing in the study switches it alone.
fn note_syscalls(spec: &StudySpec, arms: &[ArmSummary], effects: &mut Effects) {
    for comparison in effects.comparisons_mut().filter(|it| it.metric == Metric::ServerCpuPerMessage) {
        let calls = |arm: &str| {
            let summary = arms.iter().find(|it| it.cell_id == comparison.cell_id && it.arm == arm)?;
            summary.syscalls_per_message
        };
        let (Some(arm), Some(baseline)) = (calls(&comparison.arm), calls(&comparison.baseline)) else {
            continue;
        };
        let agrees = match comparison.verdict {
            Verdict::Better => arm * SYSCALLS_FACTOR_MIN <= baseline,
            Verdict::Worse => baseline * SYSCALLS_FACTOR_MIN <= arm,
            _ => false,
        };
        if agrees {
            let kind = MessageKind::of_study(spec);
            comparison.notes.push(Finding::AlsoSyscalls { arm, baseline, kind });
        }
    }
}

/// Withholds all verdicts of an unfinished schedule: looking repeatedly until a difference shows would always find
/// one.
fn withhold_unfinished(progress: &Progress, comparisons: &mut [Effect]) {
    if progress.is_finished() {
        return;
    }
    let Progress { blocks_done, blocks, .. } = progress;
    for comparison in comparisons {
        withhold(comparison, Finding::Unfinished { blocks_done: *blocks_done, blocks: *blocks });
    }
}

/// Withdraws a verdict, if there is one, for this reason.
pub(crate) fn withhold(comparison: &mut Effect, reason: Finding) {
    if matches!(comparison.verdict, Verdict::Better | Verdict::Worse | Verdict::Equivalent) {
        comparison.verdict = Verdict::Inconclusive;
        comparison.reasons.push(reason);
    }
}

fn primary(spec: &StudySpec, effects: &Effects) -> Option<usize> {
    let cell = spec.cells.iter().find(|cell| cell.role == CellRole::Primary)?;
    let metric = if cell.is_simulated() { Metric::WaitingCpuShare } else { Metric::ServerCpuPerMessage };
    let is_it = |row: &Effect| row.is_comparison() && row.cell_id == cell.id && row.metric == metric;
    effects.rows.iter().position(is_it)
}

fn arm_summaries(spec: &StudySpec, gate: &ValidityGate, cell: &CellTrials<'_>) -> Vec<ArmSummary> {
    let is_used = |trial: &&TrialRecord| gate.is_usable(trial, cell.state);
    let first = spec.arms[0].name.as_str();
    let others = spec.arms.iter().skip(1).map(|arm| arm.name.as_str());
    let other = others.into_iter().find(|arm| cell.of_arm(arm).next().is_some());
    spec.arms
        .iter()
        .map(|arm| {
            let used: Vec<&TrialRecord> = cell.of_arm(&arm.name).filter(is_used).collect();
            let sides = (arm.name.as_str(), first, other);
            summary::summarize(cell.spec, &arm.name, &used, |row| units::figures(gate, cell, sides, row))
        })
        .filter(|summary| summary.trials > 0)
        .collect()
}

fn timeline(gate: &ValidityGate, cells: &[CellTrials<'_>]) -> Vec<TimelineEntry> {
    // Computed trials say nothing about the machine over time.
    let measured = cells.iter().filter(|cell| !cell.spec.is_simulated());
    let trials = measured.flat_map(|cell| cell.trials.iter().map(move |trial| (cell, *trial)));
    let mut entries: Vec<TimelineEntry> = trials
        .map(|(cell, trial)| TimelineEntry {
            arm: trial.arm.clone(),
            cell_id: trial.cell_id.clone(),
            block: trial.block,
            started_ns: trial.started_ns,
            elapsed_ns: trial.elapsed_ns,
            round_trip_ns: 0.5 * (trial.reading_before.round_trip_ns + trial.reading_after.round_trip_ns),
            steal_share: trial
                .load
                .as_ref()
                .and_then(|load| load.observed.as_ref())
                .map_or(0.0, |seen| seen.noise.steal_share),
            clean: gate.is_usable(trial, cell.state),
        })
        .collect();
    entries.sort_by_key(|entry| entry.started_ns);
    entries
}

/// The result of trials on an unknown machine, for tests and simulations.
pub fn judged(spec: &StudySpec, trials: &[TrialRecord]) -> StudyResult {
    judge(&Judged {
        spec,
        fingerprint: &Fingerprint::default(),
        trials,
        missing_arms: &[],
        elapsed_ns: 0,
        reproduce: "",
    })
}
