//! From trials to verdicts. Pure: judging the same trials again gives the same result.
//!
//! The rules, in the order they apply to one comparison (a cell, an arm, a metric):
//!
//! 1. The values come from `units`: one log-ratio (a difference, where figures may be zero) for each round in which the
//!    arms took turns, or for each block of whole trials; all in one state of the machine (`gate`), and the effect in
//!    the other one beside it.
//! 2. A cell is valid only if responses were right: a wrong byte or an unexplained failure, or more than a quarter
//!    of an arm's trials failing for reasons of its own, makes it *not comparable*. So does, in open loop, an arm that
//!    did not keep the offered rate. Throughput is barred where the generator was the limit.
//! 3. One rule decides ([`weir_stats::decide`]): a two-sided t test at 1 % with its interval, and *equivalent* when
//!    the interval lies inside the margin. The claims of the primary and confirmatory cells that are not barred share
//!    Holm's correction with the declared contrasts (`contrast`). Exploratory cells claim nothing. The baseline against
//!    itself is a check beside, and no second test.
//! 4. A verdict on server CPU stands only if the CPU of both sides, server CPU with waiting included and, where the
//!    generator was the limit, both arms at the equal rates that were measured (one at least), are known not to go the
//!    other way by more than the margin (`witnesses`). No verdict comes from an unfinished schedule.
//! 5. Each arm is compared with the study's first, or with the baseline of its own that it names. A published figure of
//!    two other arms is set beside a comparison of these two, in its cell and in the open-loop cells of the same shape.
//!    The noise floor is always that of the first arm, the only one that runs twice in a block.
//! 6. Latency has no verdict when the generator's own lag is more than a tenth of it.
//! 7. A storage job is its own load. Rules 4 and 6 do not apply to it: there is no generator that could be the limit or
//!    lag, and all its figures are compared in closed loop.
//! 8. On a simulated device the claims are misses and the share of CPU, and the primary comparison is the joint
//!    statement on both (`frontier`).

use std::collections::BTreeSet;

use weir_record::{
    SCHEMA_VERSION,
    contrast::{Contrast, ContrastSpec},
    finding::{Finding, MessageKind, UnitKind},
    goal::Side,
    machine::Fingerprint,
    metric::{Family, Metric, Scale},
    metric_rows::{self, MetricRow, Part},
    spec::{CellRole, CellSpec, LoadMode, StudySpec},
    study::{ArmSummary, MissingArm, StudyResult, TimelineEntry},
    trial::TrialRecord,
    verdict::{Comparison, DifferenceEffect, StateEffect, Verdict},
};
use weir_stats::{
    decide::{ALPHA, Direction, Estimate, Reading, UNITS_MIN, decide, estimate, estimate_unpaired},
    holm::holm,
    order::median,
};

use crate::{
    accept_queue, added_cost, aggregate, answers, attribution, cause,
    cell_notes::{rate_missed, reopened, stopped, whole_trials, without_placebo, workers_not_told},
    cell_trials::{self, CellTrials},
    check, connection_costs,
    contrast::{self, CellEffect},
    cpu_account, evidence, frontier,
    gate::{Against, Pairs, TrialState, ValidityGate, has_reading},
    grid, guidance, latency_map, obstacle, oversubscription, overview,
    progress::Progress,
    rungs,
    scaling::Scope,
    strace, summary,
    syn_ladder::syn_ladder_s,
    thread_use,
    units::{self, Compared, Units},
    witnesses::{AtRate, Claim, Seen, Witnesses, equal_rate_of, is_same_shape, verdict_left},
};

/// What is judged.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    /// What was asked, rates fixed.
    pub spec: &'a StudySpec,
    /// Where it ran.
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

/// The same with the claim at the rate that decides.
fn judge_settled(judged: &Judged<'_>) -> StudyResult {
    let Judged { spec, fingerprint, trials, missing_arms, .. } = *judged;
    let gate = ValidityGate::new(trials);
    let cells = cell_trials::by_role(spec, &gate, trials);
    let mut drafts = draft_all(judged, &gate, &cells);
    let (mut comparisons, contrasts) = decide_all(spec, &cells, &mut drafts);
    let witnesses = confirm_server_cpu(spec, &cells, &drafts, &mut comparisons);
    let progress = Progress::of(spec, &trials.iter().collect::<Vec<_>>(), missing_arms);
    withhold_unfinished(&progress, &mut comparisons);
    let primary = primary(spec, &comparisons);
    let arms: Vec<ArmSummary> = cells.iter().flat_map(|cell| arm_summaries(spec, &gate, cell)).collect();
    note_syscalls(spec, &arms, &mut comparisons);
    let shown = |of: &Side, to: &Side| beside(&cells, &drafts, of, to);
    let answers = answers::all(spec, missing_arms, (&gate, &cells), &progress, &shown);
    let (cpus_allowed, is_finished) =
        (fingerprint.cpus_allowed.len(), progress.blocks_done >= progress.blocks);
    let oversubscribed = oversubscription::noted(spec, cpus_allowed, &mut comparisons);
    let planned: Vec<&TrialRecord> = cells.iter().flat_map(|cell| cell.trials.iter().copied()).collect();
    let (observed, differences) = (evidence::all(spec, &planned), cpu_account::differences(spec, &planned));
    let found = (&comparisons[..], &observed[..], &differences[..]);
    let mut checks = check::all(spec, (fingerprint, &gate), &planned, found);
    checks.push(check::schedule(spec, missing_arms, &progress, judged.elapsed_ns));
    let frontier = frontier::rows(spec, &arms, &comparisons);
    let frontier_answers = frontier::answers(spec, &frontier);
    let syn_ladder_s = syn_ladder_s(&fingerprint.limits);
    let grids = grid::all(spec, &comparisons, &witnesses, is_finished);
    let scope = Scope { spec, gate: &gate, cells: &cells, cpus_allowed, is_finished };
    let listening = accept_queue::all(spec, &planned, &syn_ladder_s);
    StudyResult {
        schema_version: SCHEMA_VERSION,
        spec: spec.clone(),
        fingerprint: fingerprint.clone(),
        primary,
        verdict: frontier::verdict_of(primary.map(|index| &comparisons[index]), &frontier_answers),
        checks,
        states: gate.summary(planned.iter().copied()),
        timeline: timeline(&gate, &cells),
        overviews: overview::all(&scope, &comparisons, &grids),
        latency_ladders: latency_map::all(spec, (&gate, &cells), &arms),
        connection_costs: connection_costs::all(spec, missing_arms, (&gate, &cells)),
        aggregates: aggregate::all(spec, &gate, &cells),
        guidance: is_finished
            .then(|| guidance::of(spec, fingerprint, missing_arms, &grids, &comparisons, trials))
            .flatten(),
        grids,
        contrasts: contrast::withhold_unfinished(contrasts, is_finished),
        comparisons,
        answers,
        arms,
        missing_arms: missing_arms.to_vec(),
        complete: progress.is_complete(),
        elapsed_ns: judged.elapsed_ns,
        reproduce: judged.reproduce.to_owned(),
        attributions: attribution::all(spec, &gate, &cells),
        syn_ladder_s: if listening.is_empty() { Vec::new() } else { syn_ladder_s },
        listening,
        added_costs: added_cost::all(spec, &gate, &cells),
        causes: cause::all(spec, &gate, &cells, is_finished),
        oversubscribed,
        evidence: observed,
        strace: strace::all(spec, &planned),
        threads: thread_use::all(spec, &gate, &cells),
        cpu_differences: differences,
        frontier,
        frontier_answers,
        period: None,
        among_runs: None,
    }
}

/// What the primary comparison looks like before the schedule is finished. It decides nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct RunningEstimate {
    /// The arm compared with the baseline.
    pub arm: String,
    /// The baseline.
    pub baseline: String,
    /// Ratio of their server CPU per message so far.
    pub ratio: f64,
    /// Its interval: lower, upper.
    pub interval: (f64, f64),
    /// Units it rests on.
    pub units: usize,
    /// Whether they are of the machine's far state; absent when it was met in one state, or the units are of both.
    pub is_far: Option<bool>,
}

/// The running estimate of the primary comparison; `None` with fewer units than would decide anything.
pub fn so_far(spec: &StudySpec, trials: &[&TrialRecord]) -> Option<RunningEstimate> {
    // Simulated trials come so fast that there is nothing to wait for.
    let cell = spec.cells.iter().find(|cell| cell.role == CellRole::Primary && !cell.is_simulated())?;
    let first = &spec.arms[0].name;
    let arm = spec.arms.iter().skip(1).find(|arm| cell.has_arm(&arm.name))?;
    let (arm, baseline) = (&arm.name, spec.baseline_of(arm));
    let gate = ValidityGate::new(trials.iter().copied());
    let cell = CellTrials::of(cell, &gate, trials);
    let units =
        units::of(&gate, &cell, Compared { arm, baseline, first, row: Metric::ServerCpuPerMessage.row() });
    let effect = estimate(&units.values).filter(|effect| effect.units >= UNITS_MIN)?;
    Some(RunningEstimate {
        arm: arm.clone(),
        baseline: baseline.to_owned(),
        ratio: effect.mean.exp(),
        interval: (effect.low.exp(), effect.high.exp()),
        units: effect.units,
        is_far: cell.state.filter(|_| gate.has_two_states()).map(|state| state == TrialState::Far),
    })
}

/// A comparison before its verdict, with what the verdict needs.
struct Draft {
    comparison: Comparison,
    row: &'static MetricRow,
    part: Part,
    role: CellRole,
    /// Index of its cell in the judge's order.
    cell: usize,
    /// The machine's state that it is of; of a machine with one state the near one.
    state: Option<TrialState>,
    effect: Option<Estimate>,
    /// The same with the slices that missed the offered rate, where there are any.
    achieved: Option<Estimate>,
    /// Why there is no verdict at the offered rate.
    rate_missed: Option<Finding>,
    /// What its values come from.
    unit: UnitKind,
    /// Why the cell is not valid for this metric.
    obstacles: Vec<Finding>,
    /// Lower bounds of throughput, when the generator was the limit for either side.
    bounds: Vec<Finding>,
}

fn draft_all(judged: &Judged<'_>, gate: &ValidityGate, cells: &[CellTrials<'_>]) -> Vec<Draft> {
    let spec = judged.spec;
    let is_missing = |name: &str| judged.missing_arms.iter().any(|arm| arm.name == name);
    let mut drafts = Vec::new();
    if crate::progress::has_nothing_to_compare(spec, judged.missing_arms) {
        return drafts;
    }
    let mut add = |(index, cell): (usize, &CellTrials<'_>), arm: &str, baseline: &str| {
        let has_run = |name: &str| cell.spec.has_arm(name) && !is_missing(name);
        if !has_run(arm) || !has_run(baseline) {
            return;
        }
        let pairs = gate.pairs(&cell.trials, baseline, Against::Arm(arm), cell.state);
        for row in metric_rows::compared(cell.spec) {
            drafts.push(draft(spec, gate, (index, cell), (arm, baseline, &pairs), row));
        }
    };
    for cell in cells.iter().enumerate() {
        for arm in spec.arms.iter().skip(1) {
            add(cell, &arm.name, spec.baseline_of(arm));
        }
    }
    for (cell, arm, baseline) in published_pairs(spec, cells) {
        add((cell, &cells[cell]), arm, baseline);
    }
    drafts
}

/// Pairs of arms without the study's first that published figures stand beside: in the cell they name, and in those
/// that show the two at one equal rate.
fn published_pairs<'s>(spec: &'s StudySpec, cells: &[CellTrials<'_>]) -> BTreeSet<(usize, &'s str, &'s str)> {
    let first = &spec.arms[0].name;
    let own = spec.published.iter().filter(|it| ![&it.arm, &it.baseline].contains(&first));
    own.filter(|claim| claim.arm != claim.baseline)
        .flat_map(|claim| {
            let shape = spec.cells.iter().find(|cell| cell.id == claim.cell_id);
            let is_there = move |cell: &CellSpec| {
                shape.is_some_and(|shape| cell.id == shape.id || equal_rate_of(cell, shape).is_some())
            };
            let there = cells.iter().enumerate().filter(move |(_, cell)| is_there(cell.spec));
            there.map(|(index, _)| (index, claim.arm.as_str(), claim.baseline.as_str()))
        })
        .collect()
}

fn draft(
    spec: &StudySpec,
    gate: &ValidityGate,
    (index, cell): (usize, &CellTrials<'_>),
    (arm, baseline, pairs): (&str, &str, &Pairs<'_>),
    row: &'static MetricRow,
) -> Draft {
    let first = &spec.arms[0].name;
    let compared_by = Compared { arm, baseline, first, row };
    let units_of = |cell: &CellTrials<'_>| units::of(gate, cell, compared_by);
    let units = units_of(cell);
    let is_cpu = row.metric == Metric::ServerCpuPerMessage;
    let (by_state, interaction) = match row.scale {
        // A trial whose state was not read would count in both. A machine of one state has no effect in the other.
        Scale::Ratio if gate.has_two_states() && cell.trials.iter().all(|trial| has_reading(trial)) => {
            by_state(|state| units_of(&cell.in_state(state)))
        }
        Scale::Ratio | Scale::Difference { .. } => (Vec::new(), None),
    };
    let comparison = Comparison {
        cell_id: cell.spec.id.clone(),
        arm: arm.to_owned(),
        baseline: baseline.to_owned(),
        ratio_all_pairs: median(&units::of_pairs(&pairs.all, row).log_ratios()).map(f64::exp),
        by_state,
        notes: [
            (cell.state == Some(TrialState::Far)).then_some(Finding::FarState),
            without_placebo(spec, arm, baseline),
            whole_trials(spec, cell.spec),
            workers_not_told(spec, arm),
            stopped(cell, baseline).filter(|_| is_cpu),
            stopped(cell, arm).filter(|_| is_cpu),
            reopened(cell, baseline).filter(|_| is_cpu),
            reopened(cell, arm).filter(|_| is_cpu),
            interaction,
            units.movement(row.scale),
        ]
        .into_iter()
        .flatten()
        .collect(),
        ..compared(row, &units)
    };
    Draft {
        comparison,
        row,
        part: (row.part)(cell.spec),
        role: cell.spec.role,
        cell: index,
        state: if gate.has_two_states() { cell.state } else { Some(TrialState::Near) },
        effect: estimate(&units.values),
        achieved: units::at_achieved_rates(gate, cell, compared_by)
            .filter(|_| is_cpu)
            .and_then(|units| estimate(&units.values)),
        rate_missed: rate_missed(cell, arm, baseline),
        unit: UnitKind::of_cell(cell.spec),
        obstacles: obstacles(cell, baseline, arm, row, pairs),
        bounds: generator_bounds(pairs, baseline, arm, cell.spec),
    }
}

/// The figures of a comparison, before anything is decided.
fn compared(row: &MetricRow, units: &Units) -> Comparison {
    let effect = estimate(&units.values);
    // Of a metric that is compared as a difference the ratio is shown, and nothing rests on it.
    let logs = match row.scale {
        Scale::Ratio => units.values.clone(),
        Scale::Difference { .. } => units.log_ratios(),
    };
    let of_ratios = effect.filter(|_| row.scale == Scale::Ratio);
    let itself = estimate(&units.values_self).filter(|_| row.scale == Scale::Ratio);
    let mean = (!logs.is_empty()).then(|| logs.iter().sum::<f64>() / logs.len() as f64);
    Comparison {
        cell_id: String::new(),
        arm: String::new(),
        baseline: String::new(),
        metric: row.metric,
        ratio: of_ratios.map(|effect| effect.mean).or(mean).map(f64::exp),
        interval: of_ratios.map(|effect| (effect.low.exp(), effect.high.exp())),
        difference: match row.scale {
            Scale::Ratio => None,
            Scale::Difference { .. } => difference(units),
        },
        levels: units.means(row.scale),
        confidence: effect.map_or(0.0, |_| 1.0 - ALPHA),
        interval_method: effect.map_or("", |effect| units::method_name(effect.method)).to_owned(),
        p_value: effect.map(|effect| effect.p_value),
        p_value_holm: None,
        noise_floor: itself.map(|itself| itself.high.max(-itself.low).exp_m1()),
        interval_self: itself.map(|itself| (itself.low.exp(), itself.high.exp())),
        detectable_effect: of_ratios.map(|effect| effect.detectable.exp_m1()).filter(|it| it.is_finite()),
        pairs: u32::try_from(units.values.len()).unwrap_or(u32::MAX),
        pairs_excluded: units
            .excluded
            .iter()
            .map(|(reason, count)| Finding::Excluded { reason: *reason, count: *count })
            .collect(),
        effects: units.values.clone(),
        effects_self: units.values_self.clone(),
        ratio_all_pairs: None,
        by_state: Vec::new(),
        verdict: Verdict::Inconclusive,
        reasons: Vec::new(),
        notes: Vec::new(),
    }
}

/// The effect of a metric whose figures may be zero.
fn difference(units: &Units) -> Option<DifferenceEffect> {
    let effect = estimate(&units.values);
    let itself = estimate(&units.values_self);
    let alone = units.values.first().filter(|_| units.values.len() == 1).copied();
    Some(DifferenceEffect {
        difference: effect.map(|effect| effect.mean).or(alone)?,
        interval: effect.map(|effect| (effect.low, effect.high)),
        interval_self: itself.map(|itself| (itself.low, itself.high)),
        noise_floor: itself.map(|itself| itself.high.max(-itself.low)),
        detectable_effect: effect.map(|effect| effect.detectable).filter(|it| it.is_finite()),
    })
}

/// Units of each state that it takes to tell an effect by state.
pub const UNITS_BY_STATE_MIN: usize = 4;

/// The effect in each state of the machine, where both were met often enough, and how far they differ: pairing removes
/// noise that adds, and no interaction. Rounds of one state belong to none of the other.
fn by_state(units_in: impl Fn(TrialState) -> Units) -> (Vec<StateEffect>, Option<Finding>) {
    let [near, far] = [TrialState::Near, TrialState::Far].map(|state| units_in(state).values);
    let effect = |values: &[f64], is_far: bool| {
        let effect = estimate(values).filter(|effect| effect.units >= UNITS_BY_STATE_MIN)?;
        Some(StateEffect {
            is_far,
            units: u32::try_from(effect.units).unwrap_or(u32::MAX),
            ratio: effect.mean.exp(),
            interval: (effect.low.exp(), effect.high.exp()),
        })
    };
    let (Some(of_near), Some(of_far)) = (effect(&near, false), effect(&far, true)) else {
        return (Vec::new(), None);
    };
    let interaction = estimate_unpaired(&far, &near, ALPHA).map(|apart| Finding::StateInteraction {
        ratio: apart.mean.exp(),
        interval: (apart.low.exp(), apart.high.exp()),
    });
    (vec![of_near, of_far], interaction)
}

/// Everything that makes the cell invalid for this metric.
fn obstacles(
    cell: &CellTrials<'_>,
    baseline: &str,
    arm: &str,
    row: &MetricRow,
    pairs: &Pairs<'_>,
) -> Vec<Finding> {
    let sides = sides(pairs, baseline, arm).into_iter();
    sides.flat_map(|(side, trials)| obstacle::of_side(cell, side, row, &trials)).collect()
}

fn sides<'a, 's>(pairs: &Pairs<'a>, baseline: &'s str, arm: &'s str) -> [(&'s str, Vec<&'a TrialRecord>); 2] {
    [
        (baseline, pairs.used.iter().map(|pair| pair.baseline).collect()),
        (arm, pairs.used.iter().map(|pair| pair.arm).collect()),
    ]
}

/// A lower bound for each side whose pairs were mostly limited by the generator.
fn generator_bounds(pairs: &Pairs<'_>, baseline: &str, arm: &str, cell: &CellSpec) -> Vec<Finding> {
    let sides = sides(pairs, baseline, arm).into_iter();
    sides.filter_map(|(side, trials)| obstacle::generator_bound(cell, side, &trials)).collect()
}

impl Draft {
    /// Whether nothing speaks against deciding it but what its values say.
    fn is_open(&self) -> bool {
        let is_bound = self.row.family == Family::Rate && !self.bounds.is_empty();
        self.obstacles.is_empty() && !is_bound && self.effect.is_some()
    }

    /// Whether it claims something. What is barred cannot be called, so it takes no part in the correction; nor does a
    /// condition of another claim.
    fn is_claim(&self) -> bool {
        self.role != CellRole::Exploratory && self.part == Part::Claim && self.is_open()
    }
}

/// Holm over the claims, then a verdict for each comparison and each contrast.
fn decide_all(
    spec: &StudySpec,
    cells: &[CellTrials<'_>],
    drafts: &mut [Draft],
) -> (Vec<Comparison>, Vec<Contrast>) {
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
    let mut decide = |draft: &contrast::Draft<'_>| {
        let p_value_holm = draft.p_value().and_then(|_| adjusted.next());
        draft.decided(p_value_holm)
    };
    let contrasts = contrasts.iter().map(&mut decide).collect();
    (drafts.iter().map(|draft| decided(spec, draft)).collect(), contrasts)
}

/// What a contrast finds of a metric in a cell.
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

/// Whether the generator was the limit in a cell of a contrast, and no equal rate speaks for all of its cells.
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

fn decided(spec: &StudySpec, draft: &Draft) -> Comparison {
    let mut comparison = draft.comparison.clone();
    comparison.reasons.extend(draft.obstacles.iter().cloned());
    let bounds = draft.bounds.iter().cloned();
    match draft.row.family {
        Family::Rate => comparison.reasons.extend(bounds),
        _ => comparison.notes.extend(bounds),
    }
    let effect = match &draft.effect {
        Some(effect) if draft.is_open() => effect,
        None if draft.obstacles.is_empty() && comparison.pairs_excluded.is_empty() => {
            let left_out = spec.missing_cells.iter().find(|cell| cell.id == comparison.cell_id);
            let found = match (comparison.pairs, left_out) {
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
        margin: match draft.row.scale {
            Scale::Ratio => spec.equivalence_margin.ln_1p(),
            Scale::Difference { margin } => margin,
        },
        larger_is_better: comparison.metric.larger_is_better(),
    };
    comparison.verdict =
        if draft.is_claim() { verdict_of(decide(effect, &reading)) } else { Verdict::NoClaim };
    if comparison.verdict == Verdict::Inconclusive {
        comparison.reasons.push(undecided(effect, &reading, draft.row.scale));
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

/// The verdict on a claim that the rule has decided so.
pub(crate) fn verdict_of(direction: Direction) -> Verdict {
    match direction {
        Direction::Better => Verdict::Better,
        Direction::Worse => Verdict::Worse,
        Direction::Equivalent => Verdict::Equivalent,
        Direction::Undecided => Verdict::Inconclusive,
    }
}

/// Why an estimate decides nothing.
pub(crate) fn undecided(effect: &Estimate, reading: &Reading, scale: Scale) -> Finding {
    if effect.units < UNITS_MIN {
        let units = u32::try_from(effect.units).unwrap_or(u32::MAX);
        return Finding::TooFewUnits { units, units_min: UNITS_MIN as u32 };
    }
    if effect.low > 0.0 || effect.high < 0.0 {
        return Finding::NotSignificant { p_value: reading.p_value };
    }
    // What can be detected shrinks with the root of the units.
    let wanted = effect.units as f64 * (effect.detectable / reading.margin).powi(2);
    let is_known = wanted.is_finite() && wanted > effect.units as f64 && wanted < UNITS_WANTED_MAX;
    let none = if scale == Scale::Ratio { 1.0 } else { 0.0 };
    Finding::IncludesNone { none, units_wanted: is_known.then_some(wanted.ceil() as u32) }
}

/// More units than this are not worth a hint.
const UNITS_WANTED_MAX: f64 = 100_000.0;

/// Holds each verdict on server CPU against what could contradict it: the CPU of both sides and softirqs, because on
/// loopback a server carries work of the generator's; that with waiting included, where arms took turns; and both arms
/// at one equal rate, because a closed loop gives each arm another load. Where the generator was the limit an equal
/// rate must have been measured. The most severe of what they say is the verdict. Gives what stands beside each
/// comparison.
fn confirm_server_cpu(
    spec: &StudySpec,
    cells: &[CellTrials<'_>],
    drafts: &[Draft],
    comparisons: &mut [Comparison],
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

/// What stands beside the server CPU of one arm against another's.
fn beside(cells: &[CellTrials<'_>], drafts: &[Draft], of: &Side, to: &Side) -> Option<Witnesses> {
    let is_it = |draft: &&Draft| {
        let it = &draft.comparison;
        (&it.cell_id, &it.arm, &it.baseline, it.metric) == (&of.cell_id, &of.arm, &to.arm, of.metric)
    };
    drafts.iter().find(is_it).map(|draft| witnesses(cells, drafts, draft))
}

/// What stands beside a comparison of server CPU.
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
        // A claim about one rate says nothing of another.
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

/// What a comparison in another cell shows in this state of the machine.
fn seen_in(state: Option<TrialState>, other: &Draft) -> Seen {
    let is_valid = other.is_open() && other.rate_missed.is_none();
    let Some(effect) = other.effect.filter(|_| is_valid) else { return Seen::Invalid };
    if other.state == state {
        return Seen::Known(effect);
    }
    let own = other
        .comparison
        .by_state
        .iter()
        .find(|own| state.is_some_and(|state| own.is_far == (state == TrialState::Far)));
    own.map_or(Seen::OtherState, |own| {
        let (low, high) = own.interval;
        Seen::Known(Estimate {
            mean: own.ratio.ln(),
            low: low.ln(),
            high: high.ln(),
            units: own.units as usize,
            ..effect
        })
    })
}

/// System calls per message must differ by this factor before they are named beside a verdict.
const SYSCALLS_FACTOR_MIN: f64 = 1.2;

/// Notes where the engines' own counters point the same way as a verdict on server CPU. That it goes together is no
/// proof of a cause: nothing in the study switches it alone.
fn note_syscalls(spec: &StudySpec, arms: &[ArmSummary], comparisons: &mut [Comparison]) {
    for comparison in comparisons.iter_mut().filter(|it| it.metric == Metric::ServerCpuPerMessage) {
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

/// A schedule that is not finished decides nothing: who looks at every moment until a difference shows will see one.
fn withhold_unfinished(progress: &Progress, comparisons: &mut [Comparison]) {
    if progress.blocks_done >= progress.blocks {
        return;
    }
    let Progress { blocks_done, blocks, .. } = progress;
    for comparison in comparisons {
        if matches!(comparison.verdict, Verdict::Better | Verdict::Worse | Verdict::Equivalent) {
            comparison.verdict = Verdict::Inconclusive;
            let found = Finding::Unfinished { blocks_done: *blocks_done, blocks: *blocks };
            comparison.reasons.push(found);
        }
    }
}

fn primary(spec: &StudySpec, comparisons: &[Comparison]) -> Option<usize> {
    let cell = spec.cells.iter().find(|cell| cell.role == CellRole::Primary)?;
    let metric = if cell.is_simulated() { Metric::WaitingCpuShare } else { Metric::ServerCpuPerMessage };
    comparisons.iter().position(|comparison| comparison.cell_id == cell.id && comparison.metric == metric)
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
    // What was computed says nothing of the machine over time.
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

/// What trials come to on a machine of which nothing is known: for tests and simulations.
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
