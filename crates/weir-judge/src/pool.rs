//! Pools several stored runs of one study. Pure.
//!
//! The unit is a run: its effect and the standard error of the effect (`weir_stats::random_effects` describes the
//! method). An effect is pooled over the runs with the same question: the same cell, arm and baseline, the same
//! programs, the same build of Weir. If runs differ in that, the majority stays, and the others are listed with the
//! facts that differ. An effect that is not comparable in its own run is left out as in `compare`, and so is one
//! measured in another state of the machine than most.
//!
//! Cells at a share of a capacity have one identifier, and a rate that differs from run to run: the share is the
//! question, and each run's rate is shown with its effect.
//!
//! A group of machines shares what determines a cost: CPU model, architecture, number of CPUs, kernel release. Each
//! group of machines is pooled separately, and all runs together.

mod asked;

use std::collections::{BTreeMap, BTreeSet};

use weir_record::{
    SCHEMA_VERSION,
    effect::{Effect, EffectScale},
    finding::Finding,
    machine::Fingerprint,
    metric::{Metric, Scale},
    metric_rows::Part,
    run_pool::{
        AmongRuns, GroupFigure, LeftOut, MachineGroup, Period, PoolLack, PoolRun, PooledEffect, PooledFigure,
        RunFigure, RunLeftOut, RunPool,
    },
    spec::{CellRole, LoadMode},
    study::StudyResult,
    verdict::Verdict,
};
use weir_stats::{
    decide::{ALPHA, Reading, UNITS_MIN, estimate},
    holm::holm,
    random_effects::{NotPooled, Pooled, RUNS_MIN, RUNS_MIN_NEXT, RunEffect, random_effects},
};

use crate::{
    compare::{self, Run},
    judge,
    progress::Progress,
};
use asked::Asked;

/// A run with its storage location.
#[derive(Clone, Copy, Debug)]
pub struct PlacedRun<'a> {
    /// The run.
    pub run: Run<'a>,
    /// Where it is stored.
    pub place: &'a str,
}

/// What identifies an effect in a run.
type Key = (String, String, String, Metric);

/// Pools the runs of the study that most of them belong to.
pub fn pool(runs: &[PlacedRun<'_>]) -> RunPool {
    let mut ordered = runs.to_vec();
    ordered.sort_by_key(|it| (it.run.result.period.map(|period| period.began_unix_s), it.place.to_owned()));
    let groups = groups(&ordered);
    let names = ordered.iter().map(|it| it.run.result.spec.name.as_str());
    let study = asked::most(names).unwrap_or_default().to_owned();
    let members: Vec<Member<'_>> =
        ordered.iter().zip(1..).map(|(it, number)| Member::of(it.run.result, number, &groups)).collect();
    let left_out = left_out(&ordered, &study);
    let used: Vec<&Member<'_>> =
        members.iter().zip(&left_out).filter(|(_, why)| why.is_none()).map(|(member, _)| member).collect();
    let mut effects = effects(&used, groups.len());
    let primary = primary(&used).and_then(|key| effects.iter().position(|it| key_of(it) == key));
    if let Some(primary) = primary {
        let first = effects.remove(primary);
        effects.insert(0, first);
    }
    decide_all(&mut effects, primary.map(|_| 0), &used);
    RunPool {
        schema_version: SCHEMA_VERSION,
        study,
        runs: ordered
            .iter()
            .zip(&members)
            .zip(left_out)
            .map(|((it, own), why)| facts(it, own, why))
            .collect(),
        groups,
        primary: primary.map(|_| 0),
        effects,
    }
}

/// The rank of a run's primary comparison among earlier runs of its study on the same kind of machine. `None` if it
/// has no figure, or no earlier run has a comparable one.
pub fn among(this: PlacedRun<'_>, earlier: &[PlacedRun<'_>]) -> Option<AmongRuns> {
    let result = this.run.result;
    let began = |it: &StudyResult| it.period.map(|period| period.began_unix_s);
    // If two began within one second the other one counts as the earlier.
    let is_earlier = |it: &&PlacedRun<'_>| {
        it.run.result.spec.name == result.spec.name
            && is_same_group(&it.run.result.fingerprint, &result.fingerprint)
            && began(it.run.result) <= began(result)
            && identity(it.run.result) != identity(result)
    };
    let own = result.primary()?;
    let asked = Asked::of(result);
    let question = asked.of_row(&own.cell_id, &own.arm, &own.baseline);
    let has_question = |it: &&PlacedRun<'_>| {
        let other = Asked::of(it.run.result);
        question.differences(&other.of_row(&own.cell_id, &own.arm, &own.baseline)).is_empty()
    };
    let others = earlier.iter().filter(is_earlier).filter(has_question).copied();
    let all: Vec<PlacedRun<'_>> = others.chain([this]).collect();
    let number = u32::try_from(all.len()).ok()?;
    let pool = pool(&all);
    let key = (own.cell_id.clone(), own.arm.clone(), own.baseline.clone(), own.metric);
    let effect = pool.effects.into_iter().find(|it| key_of(it) == key)?;
    // Runs are ordered, and this one is the last of those that began at its time.
    let figure = effect.runs.iter().find(|it| it.run == number)?.figure;
    let before: Vec<&RunFigure> = effect.runs.iter().filter(|it| it.run != number).collect();
    (!before.is_empty()).then(|| AmongRuns {
        cell_id: effect.cell_id,
        arm: effect.arm,
        baseline: effect.baseline,
        metric: effect.metric,
        scale: effect.scale,
        figure,
        earlier: pooled(&before, effect.scale).1,
    })
}

/// Whether two machines belong to one group.
pub fn is_same_group(one: &Fingerprint, other: &Fingerprint) -> bool {
    let key = |it: &Fingerprint| {
        (it.cpu_model.clone(), it.architecture.clone(), it.cpus_online, it.kernel_release.clone())
    };
    key(one) == key(other)
}

fn groups(runs: &[PlacedRun<'_>]) -> Vec<MachineGroup> {
    let mut groups: Vec<(&Fingerprint, MachineGroup)> = Vec::new();
    for (it, number) in runs.iter().zip(1..) {
        let own = &it.run.result.fingerprint;
        if let Some((_, group)) = groups.iter_mut().find(|(other, _)| is_same_group(own, other)) {
            group.runs.push(number);
            continue;
        }
        let group = MachineGroup {
            number: u32::try_from(groups.len() + 1).unwrap_or(u32::MAX),
            cpu_model: own.cpu_model.clone(),
            architecture: own.architecture.clone(),
            cpus_online: own.cpus_online,
            kernel_release: own.kernel_release.clone(),
            runs: vec![number],
        };
        groups.push((own, group));
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

fn facts(placed: &PlacedRun<'_>, member: &Member<'_>, left_out: Option<LeftOut>) -> PoolRun {
    let result = placed.run.result;
    PoolRun {
        number: member.number,
        place: placed.place.to_owned(),
        period: result.period,
        elapsed_ns: result.elapsed_ns,
        seed: result.spec.seed,
        weir_version: result.fingerprint.weir_version.clone(),
        group: member.group,
        left_out,
    }
}

/// Identity of a run, wherever it is stored.
fn identity(result: &StudyResult) -> (u64, Option<u64>, &str) {
    let began = result.period.map(|period: Period| period.began_unix_s);
    (result.spec.seed, began, &result.reproduce)
}

/// Why whole runs are left out, by index.
fn left_out(runs: &[PlacedRun<'_>], study: &str) -> Vec<Option<LeftOut>> {
    let why = |(index, it): (usize, &PlacedRun<'_>)| {
        let Progress { blocks_done, blocks, .. } = *it.run.progress;
        let name = &it.run.result.spec.name;
        let same =
            runs[..index].iter().position(|other| identity(other.run.result) == identity(it.run.result));
        match same {
            _ if name != study => Some(LeftOut::OtherStudy { name: name.clone() }),
            Some(same) => Some(LeftOut::SameRun { run: u32::try_from(same + 1).unwrap_or(u32::MAX) }),
            None if blocks_done < blocks => Some(LeftOut::Unfinished { blocks_done, blocks }),
            None => None,
        }
    };
    runs.iter().enumerate().map(why).collect()
}

/// A run with its specification, and its comparisons by key.
struct Member<'a> {
    number: u32,
    group: u32,
    result: &'a StudyResult,
    asked: Asked,
    comparisons: BTreeMap<Key, &'a Effect>,
}

impl<'a> Member<'a> {
    fn of(result: &'a StudyResult, number: u32, groups: &[MachineGroup]) -> Self {
        let comparisons = result.effects.comparisons().map(|it| (key_of_comparison(it), it)).collect();
        let group = groups.iter().find(|group| group.runs.contains(&number)).map_or(0, |group| group.number);
        Self { number, group, result, asked: Asked::of(result), comparisons }
    }

    /// Why it has no effect with this key.
    fn lacks(&self, (cell_id, arm, _, metric): &Key) -> LeftOut {
        let has_cell = self.result.spec.cells.iter().any(|cell| cell.id == *cell_id && cell.blocks > 0);
        let is_missing = self.result.missing_arms.iter().any(|missing| missing.name == *arm);
        let has_arm = !is_missing && self.result.spec.arms.iter().any(|own| own.name == *arm);
        let is_twin = |it: &&Effect| (&it.cell_id, &it.arm, it.metric) == (cell_id, arm, *metric);
        match self.result.effects.comparisons().find(is_twin) {
            _ if !has_cell => LeftOut::NoCell,
            _ if !has_arm => LeftOut::NoArm,
            Some(twin) => LeftOut::OtherBaseline { baseline: twin.baseline.clone() },
            None => LeftOut::NotMeasured,
        }
    }
}

fn key_of_comparison(it: &Effect) -> Key {
    (it.cell_id.clone(), it.arm.clone(), it.baseline.clone(), it.metric)
}

fn key_of(it: &PooledEffect) -> Key {
    (it.cell_id.clone(), it.arm.clone(), it.baseline.clone(), it.metric)
}

/// The primary comparison that most runs have; of several, that of the last run.
fn primary(used: &[&Member<'_>]) -> Option<Key> {
    let keys = used.iter().filter_map(|it| it.result.primary());
    asked::most(keys.map(key_of_comparison))
}

/// Every effect of the runs, in the order of the last run that has it.
fn effects(used: &[&Member<'_>], groups: usize) -> Vec<PooledEffect> {
    let mut keys: Vec<Key> = Vec::new();
    let mut known: BTreeSet<Key> = BTreeSet::new();
    for member in used.iter().rev() {
        for key in member.result.effects.comparisons().map(key_of_comparison) {
            if known.insert(key.clone()) {
                keys.push(key);
            }
        }
    }
    keys.into_iter().filter_map(|key| effect(used, &key, groups)).collect()
}

fn effect(used: &[&Member<'_>], key: &Key, groups: usize) -> Option<PooledEffect> {
    let (cell_id, arm, baseline, metric) = key.clone();
    let mut left_out = Vec::new();
    let mut put_aside = |run: u32, reason: LeftOut| left_out.push(RunLeftOut { run, reason });
    let mut rows: Vec<(&Member<'_>, &Effect)> = Vec::new();
    for member in used {
        match member.comparisons.get(key) {
            Some(comparison) => rows.push((member, comparison)),
            None => put_aside(member.number, member.lacks(key)),
        }
    }
    let questions = rows.iter().map(|(member, _)| member.asked.of_row(&cell_id, &arm, &baseline));
    let question = asked::most(questions)?;
    rows.retain(|(member, _)| {
        let facts = question.differences(&member.asked.of_row(&cell_id, &arm, &baseline));
        if !facts.is_empty() {
            put_aside(member.number, LeftOut::AskedDifferently { facts });
            return false;
        }
        true
    });
    rows.retain(|(member, comparison)| {
        let Some(reasons) = not_comparable(comparison) else { return true };
        put_aside(member.number, LeftOut::NotComparable { reasons });
        false
    });
    let is_far = |it: &Effect| it.notes.contains(&Finding::FarState);
    if let Some(most) = asked::most(rows.iter().map(|(_, comparison)| is_far(comparison))) {
        rows.retain(|(member, comparison)| {
            let is_same = is_far(comparison) == most;
            if !is_same {
                put_aside(member.number, LeftOut::OtherState { is_far: is_far(comparison) });
            }
            is_same
        });
    }
    let runs: Vec<RunFigure> = rows.iter().filter_map(|row| figure(*row)).collect();
    left_out.sort_by_key(|it| it.run);
    let scale = EffectScale::of(metric);
    let of_group = |group: u32| {
        let own: Vec<&RunFigure> = runs.iter().filter(|it| it.group == group).collect();
        (!own.is_empty()).then(|| GroupFigure { group, pooled: pooled(&own, scale).1 })
    };
    let groups = if groups > 1 {
        (1..=u32::try_from(groups).ok()?).filter_map(of_group).collect()
    } else {
        Vec::new()
    };
    Some(PooledEffect {
        role: role(used, &cell_id),
        all: pooled(&runs.iter().collect::<Vec<_>>(), scale).1,
        cell_id,
        arm,
        baseline,
        metric,
        scale,
        groups,
        runs,
        left_out,
        p_value_holm: None,
        verdict: Verdict::NotComparable,
    })
}

/// The role of a cell: the weakest one among the runs.
fn role(used: &[&Member<'_>], cell_id: &str) -> CellRole {
    let rank = |role: &CellRole| match role {
        CellRole::Primary => 0,
        CellRole::Confirmatory => 1,
        CellRole::Exploratory => 2,
    };
    let cells = used.iter().flat_map(|it| it.result.spec.cells.iter().filter(|cell| cell.id == cell_id));
    cells.map(|cell| cell.role).max_by_key(rank).unwrap_or(CellRole::Exploratory)
}

/// Why an effect is not pooled, according to its own run; `None` if it is.
fn not_comparable(comparison: &Effect) -> Option<Vec<Finding>> {
    let mut reasons = compare::barred(comparison);
    let units = run_effect(comparison).map_or(0, |(units, _)| units);
    if reasons.is_empty() && units < UNITS_MIN as u32 {
        let units_min = UNITS_MIN as u32;
        reasons.push(if units == 0 {
            Finding::NothingMeasured
        } else {
            Finding::TooFewUnits { units, units_min }
        });
    }
    let is_barred = !reasons.is_empty() || compare::is_not_comparable(comparison);
    is_barred.then_some(reasons)
}

/// Units and effect of a run: the only place where a run's standard error is computed.
fn run_effect(comparison: &Effect) -> Option<(u32, RunEffect)> {
    let estimate = estimate(&comparison.values)?;
    let effect = RunEffect { value: estimate.mean, error: estimate.error };
    Some((u32::try_from(estimate.units).ok()?, effect))
}

fn figure((member, comparison): (&Member<'_>, &Effect)) -> Option<RunFigure> {
    let (units, effect) = run_effect(comparison)?;
    let shown = compare::effect(comparison);
    let is_ratio = comparison.metric.row().scale == Scale::Ratio;
    let cell = member.result.spec.cells.iter().find(|cell| cell.id == comparison.cell_id)?;
    let rate_per_second = match cell.load {
        LoadMode::Open { rate_per_second, .. } => Some(rate_per_second),
        LoadMode::Closed | LoadMode::OpenShare { .. } => None,
    };
    Some(RunFigure {
        run: member.number,
        group: member.group,
        figure: if is_ratio { effect.value.exp() } else { effect.value },
        interval: shown.interval,
        standard_error: effect.error,
        units,
        rate_per_second,
        verdict: comparison.verdict,
    })
}

/// Pools runs, on the statistical scale and in the recorded form.
fn pooled(runs: &[&RunFigure], scale: EffectScale) -> (Option<Pooled>, PooledFigure) {
    let is_ratio = scale == EffectScale::Ratio;
    let effect = |it: &&RunFigure| RunEffect {
        value: if is_ratio { it.figure.ln() } else { it.figure },
        error: it.standard_error,
    };
    let effects: Vec<RunEffect> = runs.iter().map(effect).collect();
    let shown = |value: f64| if is_ratio { value.exp() } else { value };
    let range = |(low, high): (f64, f64)| (shown(low), shown(high));
    let figures = || runs.iter().map(|it| it.figure);
    let bounds = (figures().fold(f64::INFINITY, f64::min), figures().fold(f64::NEG_INFINITY, f64::max));
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let found = random_effects(&effects);
    let next = found.ok().and_then(|it| it.next);
    let figure = PooledFigure {
        runs: count(runs.len()),
        range: (!runs.is_empty()).then_some(bounds),
        figure: found.ok().map(|it| shown(it.mean)),
        interval: found.ok().map(|it| range((it.low, it.high))),
        confidence: 1.0 - ALPHA,
        p_value: found.ok().map(|it| it.p_value),
        between: found.ok().map(|it| if is_ratio { it.between.exp_m1() } else { it.between }),
        next_effect: next.map(|it| range(it.effect)),
        next_figure: next.map(|it| range(it.figure)),
        lacks: match found {
            Ok(it) if it.next.is_some() => None,
            Ok(_) => Some(PoolLack::Next { runs_min: count(RUNS_MIN_NEXT) }),
            Err(NotPooled::TooFewRuns { .. }) => Some(PoolLack::Interval { runs_min: count(RUNS_MIN) }),
            Err(NotPooled::NotFinite) => Some(PoolLack::NotFinite),
        },
    };
    (found.ok(), figure)
}

/// The verdicts, with claims corrected for multiplicity.
fn decide_all(effects: &mut [PooledEffect], primary: Option<usize>, used: &[&Member<'_>]) {
    let margins = used.iter().map(|it| it.result.spec.equivalence_margin);
    let margin = margins.fold(f64::INFINITY, f64::min);
    let is_claim = |(index, it): &(usize, &PooledEffect)| {
        let cells = used.iter().rev().flat_map(|member| &member.result.spec.cells);
        let part = cells.filter(|cell| cell.id == it.cell_id).map(|cell| (it.metric.row().part)(cell)).next();
        let is_one = it.role != CellRole::Exploratory && part == Some(Part::Claim);
        (is_one || Some(*index) == primary) && it.all.p_value.is_some()
    };
    let claims: Vec<usize> = effects.iter().enumerate().filter(is_claim).map(|(index, _)| index).collect();
    let p_values: Vec<f64> = claims.iter().filter_map(|index| effects[*index].all.p_value).collect();
    for (index, adjusted) in claims.iter().zip(holm(&p_values).unwrap_or_default()) {
        effects[*index].p_value_holm = Some(adjusted);
    }
    for (index, it) in effects.iter_mut().enumerate() {
        it.verdict = verdict(it, claims.contains(&index) || Some(index) == primary, margin);
    }
}

fn verdict(effect: &PooledEffect, is_claim: bool, margin: f64) -> Verdict {
    let own: Vec<&RunFigure> = effect.runs.iter().collect();
    let found = pooled(&own, effect.scale).0;
    match found {
        _ if own.is_empty() => Verdict::NotComparable,
        _ if !is_claim => Verdict::NoClaim,
        None => Verdict::Inconclusive,
        Some(found) => {
            let reading = Reading {
                p_value: effect.p_value_holm.unwrap_or(found.p_value),
                margin: match effect.metric.row().scale {
                    Scale::Ratio => margin.ln_1p(),
                    Scale::Difference { margin } => margin,
                },
                larger_is_better: effect.metric.larger_is_better(),
            };
            judge::verdict_of(found.direction(&reading))
        }
    }
}

#[cfg(test)]
mod tests;
