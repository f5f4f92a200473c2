//! Comparisons before their verdicts: the effect of an arm relative to its baseline by one metric in one cell, with
//! all data that a verdict needs. Pure.
//!
//! This module finds what bars a comparison and what accompanies it; `judge` decides its verdict when all claims of
//! the study are known.

use std::collections::BTreeSet;

use weir_record::{
    effect::{Effect, EffectScale, Question},
    finding::{Finding, UnitKind},
    metric::{Family, Metric, Scale},
    metric_rows::{self, MetricRow, Part},
    spec::{CellRole, CellSpec, StudySpec},
    study::MissingArm,
    trial::TrialRecord,
    verdict::Verdict,
};
use weir_stats::{
    decide::{ALPHA, Estimate, estimate, estimate_unpaired},
    order::median,
};

use crate::{
    cell_notes::{
        ran_before, rate_missed, reopened, stopped, whole_trials, without_placebo, workers_not_told,
    },
    cell_trials::CellTrials,
    gate::{Against, Pairs, TrialState, ValidityGate, has_reading},
    obstacle, progress,
    question::{self, count},
    units::{self, Compared, Units},
    witnesses::equal_rate_of,
};

/// A comparison before its verdict, with the data that the verdict needs.
pub(crate) struct Draft {
    pub(crate) comparison: Effect,
    /// Further estimates of the same comparison: by state, including excluded units, at achieved rates.
    pub(crate) beside: Vec<Effect>,
    pub(crate) row: &'static MetricRow,
    pub(crate) part: Part,
    pub(crate) role: CellRole,
    /// Index of its cell in the judge's order.
    pub(crate) cell: usize,
    /// The machine's state of its units; near on a machine with one state.
    pub(crate) state: Option<TrialState>,
    pub(crate) effect: Option<Estimate>,
    /// The same including the slices that missed the offered rate, if there are any.
    pub(crate) achieved: Option<Estimate>,
    /// Why there is no verdict at the offered rate.
    pub(crate) rate_missed: Option<Finding>,
    /// The kind of its units.
    pub(crate) unit: UnitKind,
    /// Why the cell is not valid for this metric.
    pub(crate) obstacles: Vec<Finding>,
    /// Lower bounds of throughput, if the generator was the limit for either side.
    pub(crate) bounds: Vec<Finding>,
}

/// A draft for each arm against its baseline by each metric, in every cell with both.
pub(crate) fn all(
    spec: &StudySpec,
    missing: &[MissingArm],
    gate: &ValidityGate,
    cells: &[CellTrials<'_>],
) -> Vec<Draft> {
    let is_missing = |name: &str| missing.iter().any(|arm| arm.name == name);
    let mut drafts = Vec::new();
    if progress::has_nothing_to_compare(spec, missing) {
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

/// Pairs of arms other than the study's first with published figures: in the cell they name, and in those that show
/// the two at one equal rate.
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
    let compared_by = Compared { arm, baseline, row };
    let units = units::of(gate, cell, compared_by);
    let is_cpu = row.metric == Metric::ServerCpuPerMessage;
    let subject = |found: Effect| Effect {
        cell_id: cell.spec.id.clone(),
        arm: arm.to_owned(),
        baseline: baseline.to_owned(),
        metric: row.metric,
        role: cell.spec.role,
        ..found
    };
    let (by_state, interaction) = by_state(gate, cell, compared_by);
    let achieved = units::at_achieved_rates(gate, cell, compared_by)
        .filter(|_| is_cpu)
        .and_then(|units| estimate(&units.values));
    let with_noise = median(&units::of_pairs(&pairs.all, row).log_ratios());
    let beside = [
        with_noise.map(|log| without_interval(Question::WithNoise, log)),
        ratio_beside(row, &units),
        achieved.map(|it| question::row(Question::AchievedRates, EffectScale::Ratio, Some(&it))),
    ];
    let effect = estimate(&units.values);
    let found = of_values(Question::Comparison, row.metric, effect.as_ref(), units.values.clone());
    let comparison = subject(Effect {
        figures: units.means(row.scale),
        excluded: excluded(&units),
        verdict: Verdict::Inconclusive,
        notes: [
            (cell.state == Some(TrialState::Far)).then_some(Finding::FarState),
            without_placebo(spec, arm, baseline),
            whole_trials(spec, cell.spec),
            workers_not_told(spec, arm),
            ran_before(spec, baseline),
            ran_before(spec, arm),
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
        ..found
    });
    Draft {
        comparison,
        beside: by_state.into_iter().chain(beside.into_iter().flatten()).map(subject).collect(),
        row,
        part: (row.part)(cell.spec),
        role: cell.spec.role,
        cell: index,
        state: if gate.has_two_states() { cell.state } else { Some(TrialState::Near) },
        effect,
        achieved,
        rate_missed: rate_missed(cell, arm, baseline),
        unit: UnitKind::of_cell(cell.spec),
        obstacles: obstacles(cell, baseline, arm, row, pairs),
        bounds: generator_bounds(pairs, baseline, arm, cell.spec),
    }
}

/// Excluded units, counted by reason.
fn excluded(units: &Units) -> Vec<Finding> {
    let counted = units.excluded.iter();
    counted.map(|(reason, count)| Finding::Excluded { reason: *reason, count: *count }).collect()
}

/// The ratio of figures that are compared as differences. It is only displayed.
fn ratio_beside(row: &MetricRow, units: &Units) -> Option<Effect> {
    let logs = match row.scale {
        Scale::Ratio => Vec::new(),
        Scale::Difference { .. } => units.log_ratios(),
    };
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    (!logs.is_empty()).then(|| Effect { units: count(logs.len()), ..without_interval(Question::Ratio, mean) })
}

/// A ratio from its logarithm.
fn without_interval(question: Question, log: f64) -> Effect {
    Effect { question, estimate: Some(log.exp()), is_paired: true, ..Effect::default() }
}

/// Units per state that an effect by state requires.
pub const UNITS_BY_STATE_MIN: usize = 4;

/// The effect in each state of the machine, if both occurred often enough, and their difference: pairing removes
/// additive noise, but no interaction. Rounds of one state are never counted in the other.
fn by_state(
    gate: &ValidityGate,
    cell: &CellTrials<'_>,
    compared: Compared<'_>,
) -> (Vec<Effect>, Option<Finding>) {
    // A trial without a state reading would count in both. A machine with one state has no effect in the other.
    let has_states = gate.has_two_states() && cell.trials.iter().all(|trial| has_reading(trial));
    if !has_states || compared.row.scale != Scale::Ratio {
        return (Vec::new(), None);
    }
    let values = |state: TrialState| units::of(gate, &cell.in_state(state), compared).values;
    let [near, far] = [TrialState::Near, TrialState::Far].map(values);
    let effect = |values: &[f64], question: Question| {
        let effect = estimate(values).filter(|effect| effect.units >= UNITS_BY_STATE_MIN)?;
        let row = question::row(question, EffectScale::Ratio, Some(&effect));
        Some(Effect { is_paired: true, ..row })
    };
    let of_near = effect(&near, Question::NearState);
    let (Some(of_near), Some(of_far)) = (of_near, effect(&far, Question::FarState)) else {
        return (Vec::new(), None);
    };
    let interaction = estimate_unpaired(&far, &near, ALPHA).map(|apart| Finding::StateInteraction {
        ratio: apart.mean.exp(),
        interval: (apart.low.exp(), apart.high.exp()),
    });
    (vec![of_near, of_far], interaction)
}

/// All reasons that make the cell invalid for this metric.
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

/// A lower bound for each side most of whose pairs were limited by the generator.
fn generator_bounds(pairs: &Pairs<'_>, baseline: &str, arm: &str, cell: &CellSpec) -> Vec<Finding> {
    let sides = sides(pairs, baseline, arm).into_iter();
    sides.filter_map(|(side, trials)| obstacle::generator_bound(cell, side, &trials)).collect()
}

impl Draft {
    /// Whether only its values can still prevent a decision.
    pub(crate) fn is_open(&self) -> bool {
        let is_bound = self.row.family == Family::Rate && !self.bounds.is_empty();
        self.obstacles.is_empty() && !is_bound && self.effect.is_some()
    }

    /// Whether it has a claim. A barred comparison cannot be called, so it takes no part in the correction; nor does
    /// a condition of another claim.
    pub(crate) fn is_claim(&self) -> bool {
        self.role != CellRole::Exploratory && self.part == Part::Claim && self.is_open()
    }
}

/// The study's first arm compared with its own second run in a cell, by every metric that is compared there.
pub(crate) fn itself(spec: &StudySpec, gate: &ValidityGate, cell: &CellTrials<'_>) -> Vec<Effect> {
    let Some(first) = spec.arms.first().map(|arm| arm.name.as_str()) else { return Vec::new() };
    let one = |row: &'static MetricRow| {
        let values = units::of_itself(gate, cell, first, row);
        let effect = estimate(&values);
        let found = Effect {
            cell_id: cell.spec.id.clone(),
            arm: first.to_owned(),
            baseline: first.to_owned(),
            metric: row.metric,
            role: cell.spec.role,
            ..of_values(Question::Itself, row.metric, effect.as_ref(), values)
        };
        (!found.values.is_empty()).then_some(found)
    };
    metric_rows::compared(cell.spec).filter_map(one).collect()
}

/// A row with the effects of units; one unit has no interval.
pub(crate) fn of_values(
    question: Question,
    metric: Metric,
    effect: Option<&Estimate>,
    values: Vec<f64>,
) -> Effect {
    let scale = EffectScale::of(metric);
    let row = question::row(question, scale, effect);
    let alone = values.first().filter(|_| values.len() == 1).map(|value| scale.shown(*value));
    Effect {
        metric,
        estimate: row.estimate.or(alone),
        units: count(values.len()),
        is_paired: true,
        p_value: effect.map(|it| it.p_value),
        detectable: effect.map(|it| scale.excess(it.detectable)).filter(|it| it.is_finite()),
        values,
        ..row
    }
}
