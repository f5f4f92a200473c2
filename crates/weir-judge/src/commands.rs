//! Commands that end, and servers under a load: from their runs to rows, verdicts and findings. Pure.
//!
//! The rules are those of studies, by the same functions. A round has a robust value ([`Slices::value`]), one rule
//! decides ([`judge::claimed`]), claims share Holm's correction, and an unfinished schedule decides nothing. The
//! figures differ: the cost of a run does not depend on a load generator, so no generator can be the limit, and no
//! second figure beside CPU time could contradict it. A pair is one run each of the baseline, of the baseline again and
//! of every other command, each in a fresh process. With many pairs, consecutive pairs form a round ([`unit_pairs`]),
//! so that one disturbed run reaches no value. Otherwise each pair is one. For servers a round is a start, because
//! pairs of the same processes are not independent.
//!
//! A study judges its arms by their answers. Here [`facts`] judges commands by what they write and how they end.

mod facts;
mod family;
mod plan;

use std::collections::{BTreeMap, BTreeSet};

use weir_record::{
    commands::{
        CommandArm, CommandFinding, CommandRole, CommandRun, FirstDifference, MeasuredBy, RunEnding,
        RunPhase, Stream,
    },
    effect::{Effect, Effects, Question},
    finding::{ExclusionKind, Finding},
    goal::{ComparisonSpec, Goal, Outcome},
    metric::{Metric, Scale},
    metric_rows::{COMMAND_METRICS, MetricRow},
    spec::CellRole,
    verdict::Verdict,
};
use weir_stats::{
    decide::{Estimate, Reading, UNITS_MIN, estimate},
    holm::holm,
    order::{log_ratio, median},
};

use crate::{
    answers, draft,
    judge::{self, claimed, withhold},
    progress::Progress,
    question::{self, count},
    slice_order::{self, MARGIN_SHARE_MAX},
    units::{Slices, Units},
};

pub use facts::has_many_errors;
pub use family::correct_together;
pub use plan::{PAIRS_DECIDING_MIN, PAIRS_MAX, Pilot, order, planned, unit_pairs};

/// Commands and their runs, finished or not.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    /// The baseline first.
    pub commands: &'a [CommandArm],
    /// Every run, in time order.
    pub runs: &'a [CommandRun],
    /// Pairs that were planned.
    pub pairs: u32,
    /// Pairs of a unit where servers are started anew for each. `None` where the number of pairs decides.
    pub unit_pairs: Option<u32>,
    /// Whether it was interrupted, where it is not finished.
    pub is_interrupted: bool,
    /// Whether the end of a server ended it, where it is not finished.
    pub is_ended_by_server: bool,
    /// Share of a difference that matters.
    pub equivalence_margin: f64,
    /// Whether runs that fail are compared.
    pub ignore_failure: bool,
    /// Whether these are servers, and their runs those of a load.
    pub is_served: bool,
    /// Longest that a run may take.
    pub limit_ns: u64,
    /// How costs are read.
    pub measured_by: &'a MeasuredBy,
    /// What fails the comparison.
    pub thresholds: &'a [ComparisonSpec],
    /// Findings of the machine: commands that do not start, files that changed.
    pub seen: &'a [CommandFinding],
    /// Where first runs differ.
    pub partings: &'a [Parting],
}

/// Where the first run of a command and that of the baseline begin to write different things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parting {
    /// Place of the command.
    pub command: usize,
    /// Where it wrote.
    pub stream: Stream,
    /// The first difference.
    pub at: FirstDifference,
}

/// The results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conclusion {
    /// Comparisons, then the baseline against itself.
    pub effects: Effects,
    /// A row for each threshold, in their order.
    pub thresholds: Effects,
    /// Findings for the reader, the most serious first.
    pub findings: Vec<CommandFinding>,
    /// Pairs in which every run ended.
    pub pairs_done: u32,
}

/// Judges them.
pub fn conclude(judged: &Judged<'_>) -> Conclusion {
    let pairs = Pairs::of(judged);
    let mut findings = facts::all(judged);
    let barred = facts::barred(judged, &findings);
    let mut drafts = drafts(judged, &pairs);
    let claims = decide_all(judged, &barred, &mut drafts);
    let is_finished = pairs.done() >= judged.pairs && judged.pairs > 0;
    if !is_finished {
        let cut = Finding::Unfinished { blocks_done: pairs.done(), blocks: judged.pairs };
        drafts.iter_mut().for_each(|it| withhold(&mut it.row, cut.clone()));
        let (pairs_done, pairs, is_interrupted) = (pairs.done(), judged.pairs, judged.is_interrupted);
        // Where nothing could be compared, or the end of a server ended all, another finding says so. A server that was
        // left out before the pairs has such a finding too, and did not end them.
        let has_ended = |it: &CommandFinding| matches!(it, CommandFinding::ServerEnded { .. });
        let is_told = judged.is_ended_by_server && findings.iter().any(has_ended);
        if (pairs > 0 || is_interrupted) && !is_told {
            findings.push(CommandFinding::CutShort { pairs_done, pairs, is_interrupted });
        }
    }
    let floor = placebo_floor(judged.commands, &drafts);
    findings.extend(floor.into_iter().flat_map(|floor| hold_against(floor, &claims, &mut drafts)));
    let rows: Vec<Effect> = drafts.into_iter().map(|it| it.row).chain(itself(judged, &pairs)).collect();
    let effects = Effects { rows };
    findings.extend(of_baseline(judged, &pairs, &effects));
    findings.sort_by_key(facts::gravity);
    let thresholds = thresholds(judged, &pairs, &barred, floor);
    Conclusion { effects, thresholds, findings, pairs_done: pairs.done() }
}

/// The measured runs by pair. The slots of a pair are the baseline's first run, its second, then the others in their
/// order.
pub(crate) struct Pairs<'a>(Vec<Vec<Option<&'a CommandRun>>>);

impl<'a> Pairs<'a> {
    fn of(judged: &Judged<'a>) -> Self {
        Self::in_phase(judged.commands.len(), judged.runs, RunPhase::Measured)
    }

    /// Those of one phase, in the order in which they ran.
    pub(crate) fn in_phase(commands: usize, runs: &'a [CommandRun], phase: RunPhase) -> Self {
        let mut pairs: Vec<(u32, Vec<Option<&CommandRun>>)> = Vec::new();
        for run in runs.iter().filter(|run| run.phase == phase) {
            if pairs.last().is_none_or(|(number, _)| *number != run.pair) {
                pairs.push((run.pair, vec![None; commands + 1]));
            }
            let slot = if run.command == 0 { usize::from(run.repeat) } else { run.command as usize + 1 };
            if let Some((_, slots)) = pairs.last_mut()
                && let Some(place) = slots.get_mut(slot)
            {
                *place = Some(run);
            }
        }
        Self(pairs.into_iter().map(|(_, slots)| slots).collect())
    }

    /// Slots that ran at all: a command that cannot run has none.
    pub(crate) fn live(&self) -> Vec<usize> {
        let slots = self.0.first().map_or(0, Vec::len);
        (0..slots).filter(|slot| self.0.iter().any(|pair| pair[*slot].is_some())).collect()
    }

    /// Pairs in which every run ended.
    fn done(&self) -> u32 {
        let live = self.live();
        count(self.0.iter().filter(|pair| live.iter().all(|slot| pair[*slot].is_some())).count())
    }

    /// Runs of the named slots in each pair that has them.
    pub(crate) fn slots<const N: usize>(
        &self,
        slots: [usize; N],
    ) -> impl Iterator<Item = [&'a CommandRun; N]> {
        self.0.iter().filter_map(move |pair| {
            let found: Vec<&CommandRun> = slots.iter().filter_map(|slot| *pair.get(*slot)?).collect();
            found.try_into().ok()
        })
    }
}

/// A comparison before its verdict.
struct Draft {
    row: Effect,
    metric: &'static MetricRow,
    effect: Option<Estimate>,
}

fn drafts(judged: &Judged<'_>, pairs: &Pairs<'_>) -> Vec<Draft> {
    let arms = || judged.commands.iter().enumerate().skip(1);
    let of_metric = |row: &'static MetricRow| arms().filter_map(move |arm| draft(judged, pairs, arm, row));
    COMMAND_METRICS.iter().flat_map(of_metric).collect()
}

/// A command against the baseline by one metric; none where no run has the figure.
fn draft(
    judged: &Judged<'_>,
    pairs: &Pairs<'_>,
    (place, arm): (usize, &CommandArm),
    row: &'static MetricRow,
) -> Option<Draft> {
    let units = units_of(judged, pairs, place, row);
    let is_measured = !units.values.is_empty() || !units.excluded.is_empty();
    if !is_measured && row.metric != Metric::CommandCpu {
        return None;
    }
    let effect = estimate(&units.values);
    let found = draft::of_values(Question::Comparison, row.metric, effect.as_ref(), units.values.clone());
    let excluded = units.excluded.iter();
    let row_found = Effect {
        arm: arm.name.clone(),
        baseline: judged.commands[0].name.clone(),
        role: role(judged.commands, place, row.metric),
        figures: units.means(row.scale),
        excluded: excluded.map(|(&reason, &count)| Finding::Excluded { reason, count }).collect(),
        notes: units.movement(row.scale).into_iter().collect(),
        ..found
    };
    Some(Draft { row: row_found, metric: row, effect })
}

/// How much a row may claim: CPU time of what is compared, and nothing else.
fn role(commands: &[CommandArm], place: usize, metric: Metric) -> CellRole {
    let is_candidate = |it: &CommandArm| it.role == CommandRole::Candidate;
    if metric != Metric::CommandCpu || !is_candidate(&commands[place]) {
        return CellRole::Exploratory;
    }
    match commands.iter().position(is_candidate) {
        Some(first) if first == place => CellRole::Primary,
        _ => CellRole::Confirmatory,
    }
}

/// The values of a command against the baseline, one for each round. Pairs with a run that failed are in none. Where
/// any run lacks the figure there is no value at all: which runs lack it may depend on their cost.
fn units_of(judged: &Judged<'_>, pairs: &Pairs<'_>, place: usize, row: &MetricRow) -> Units {
    of_rounds(judged, pairs.slots([place + 1, 0, 1]), row)
}

fn of_rounds<'a>(
    judged: &Judged<'_>,
    pairs: impl Iterator<Item = [&'a CommandRun; 3]>,
    row: &MetricRow,
) -> Units {
    let (mut units, mut rounds) = (Units::default(), BTreeMap::<u32, Slices>::new());
    if is_without_use(judged, row.metric) {
        return units;
    }
    let (mut is_read, mut lacking) = (false, 0);
    // Failures are counted by command, and reported as such.
    for runs in pairs.filter(|runs| runs.iter().all(|run| is_usable(judged, run))) {
        let figures = runs.map(|run| figure(judged, run, row.metric));
        is_read |= figures.iter().any(Option::is_some);
        let [Some(arm), Some(first), Some(second)] = figures else {
            lacking += 1;
            continue;
        };
        let size = judged.unit_pairs.unwrap_or_else(|| unit_pairs(judged.pairs));
        let round = plan::round_of(runs[0].pair, judged.pairs, size);
        let round = rounds.entry(round).or_default();
        if !round.push(row, [arm, first, second]) {
            *units.excluded.entry(ExclusionKind::WithoutFigure).or_default() += 1;
        }
    }
    if is_read && lacking > 0 {
        *units.excluded.entry(ExclusionKind::WithoutFigure).or_default() += lacking;
        return units;
    }
    for (round, slices) in rounds {
        if let Some(value) = slices.value(row.scale) {
            units.push(round, value);
        }
    }
    units
}

/// The figure of a run in the unit of its metric, without Weir's own part of every run. That part is work of the
/// kernel, and the same for every command. Differences cancel it in any case; ratios of short runs would include it.
fn figure(judged: &Judged<'_>, run: &CommandRun, metric: Metric) -> Option<f64> {
    let figure = run.cost.figure(metric)?;
    let subtracted_us = judged.measured_by.subtracted_cpu_ns.unwrap_or_default() as f64 / 1e3;
    match metric {
        Metric::CommandCpu | Metric::CommandSystemCpu => Some((figure - subtracted_us).max(0.0)),
        _ => Some(figure),
    }
}

/// Whether a figure, although every run has it, is too coarse to be compared, with another one or with a threshold.
fn is_without_use(judged: &Judged<'_>, metric: Metric) -> bool {
    matches!(metric, Metric::CommandUserCpu | Metric::CommandSystemCpu) && facts::is_split_by_ticks(judged)
}

/// Whether a run may be compared. A run that took too long was cut, so it may not, whatever the flags say.
fn is_usable(judged: &Judged<'_>, run: &CommandRun) -> bool {
    match run.end {
        RunEnding::Exited(0) => true,
        RunEnding::Exited(_) | RunEnding::Killed(_) => judged.ignore_failure,
        RunEnding::OutOfMemory | RunEnding::Overran | RunEnding::NoCount => false,
    }
}

/// Holm over the claims, then a verdict for each of them. Gives the places of the claims that had one.
fn decide_all(judged: &Judged<'_>, barred: &BTreeSet<String>, drafts: &mut [Draft]) -> Vec<usize> {
    let mut claims = Vec::new();
    for (place, draft) in drafts.iter_mut().enumerate() {
        if draft.row.role == CellRole::Exploratory {
            continue;
        }
        if barred.contains(&draft.row.arm) || barred.contains(&draft.row.baseline) {
            draft.row.verdict = Verdict::NotComparable;
        } else if draft.effect.is_some() {
            claims.push(place);
        } else {
            draft.row.verdict = Verdict::Inconclusive;
            let units = draft.row.units;
            draft.row.reasons.push(Finding::TooFewUnits { units, units_min: UNITS_MIN as u32 });
        }
    }
    let p_values: Vec<f64> = claims.iter().filter_map(|place| drafts[*place].row.p_value).collect();
    let adjusted = holm(&p_values).unwrap_or_default();
    for (place, adjusted) in claims.iter().zip(adjusted) {
        let Draft { row, metric, effect } = &mut drafts[*place];
        let Some(effect) = effect else { continue };
        row.p_value_holm = Some(adjusted);
        let reading = Reading {
            p_value: adjusted,
            margin: judge::margin(metric.scale, judged.equivalence_margin),
            larger_is_better: metric.metric.larger_is_better(),
        };
        let (verdict, reason) = claimed(effect, &reading, metric.scale);
        row.verdict = verdict;
        row.reasons.extend(reason);
    }
    claims
}

/// The largest difference of a placebo in CPU time, as a logarithm; none without a placebo.
fn placebo_floor(commands: &[CommandArm], drafts: &[Draft]) -> Option<f64> {
    let is_placebo =
        |name: &str| commands.iter().any(|it| it.name == name && it.role == CommandRole::Placebo);
    let of_placebos =
        drafts.iter().filter(|it| it.metric.metric == Metric::CommandCpu && is_placebo(&it.row.arm));
    of_placebos.filter_map(|it| it.effect).map(|it| it.mean.abs()).reduce(f64::max)
}

/// A difference that a placebo shows too is no difference of the command, because layout alone may cause it.
fn hold_against(floor: f64, claims: &[usize], drafts: &mut [Draft]) -> Vec<CommandFinding> {
    let mut found = Vec::new();
    for place in claims {
        let Draft { row, effect: Some(effect), .. } = &mut drafts[*place] else { continue };
        let is_called = matches!(row.verdict, Verdict::Better | Verdict::Worse);
        if is_called && effect.low <= floor && effect.high >= -floor {
            row.verdict = Verdict::Inconclusive;
            let command = row.arm.clone();
            found.push(CommandFinding::WithinPlacebos { command, floor: floor.exp_m1() });
        }
    }
    found
}

/// The baseline against its own second run, by every metric that it has.
fn itself(judged: &Judged<'_>, pairs: &Pairs<'_>) -> Vec<Effect> {
    let baseline = &judged.commands[0].name;
    let one = |row: &'static MetricRow| {
        let second_to_first = pairs.slots([1, 0]).map(|[second, first]| [second, first, first]);
        let values = of_rounds(judged, second_to_first, row).values;
        let effect = estimate(&values);
        let found = draft::of_values(Question::Itself, row.metric, effect.as_ref(), values);
        let role = CellRole::Exploratory;
        let found = Effect { arm: baseline.clone(), baseline: baseline.clone(), role, ..found };
        (!found.values.is_empty()).then_some(found)
    };
    COMMAND_METRICS.iter().filter_map(one).collect()
}

/// What the baseline shows about the method: whether it agrees with itself, the effect of going first, and which share
/// of a run its start is.
fn of_baseline(judged: &Judged<'_>, pairs: &Pairs<'_>, effects: &Effects) -> Vec<CommandFinding> {
    let mut found = Vec::new();
    let mut own = effects.of(Question::Itself).filter(|row| row.metric == Metric::CommandCpu);
    if let Some((ratio, interval)) = own.next().and_then(|row| row.estimate.zip(row.interval))
        && (interval.0 > 1.0 || interval.1 < 1.0)
    {
        found.push(CommandFinding::BaselineDiffers { ratio, interval });
    }
    found.extend(order_effect(judged, pairs));
    let all = pairs.slots([0, 1]).flatten();
    let cpu: Vec<f64> = all.filter_map(|run| figure(judged, run, Metric::CommandCpu)).collect();
    let charged = judged.measured_by.charged_cpu_ns;
    if let (Some(charged_cpu_ns), Some(cpu_us)) = (charged, median(&cpu).filter(|it| *it > 0.0)) {
        let share = charged_cpu_ns as f64 / 1e3 / cpu_us;
        if share > START_SHARE_MAX {
            found.push(CommandFinding::StartCost { charged_cpu_ns, share });
        }
    }
    found
}

/// Largest share of a run that its start may be without a finding.
const START_SHARE_MAX: f64 = 0.01;

/// Cost of the earlier of the baseline's two runs over the later one, where it is too large for the random order to
/// remove.
fn order_effect(judged: &Judged<'_>, pairs: &Pairs<'_>) -> Option<CommandFinding> {
    let earlier_over_later = |[one, other]: [&CommandRun; 2]| {
        let (earlier, later) = if one.place < other.place { (one, other) } else { (other, one) };
        let cpu = |run: &CommandRun| figure(judged, run, Metric::CommandCpu);
        log_ratio(cpu(earlier)?, cpu(later)?)
    };
    let values: Vec<f64> = pairs.slots([0, 1]).filter_map(earlier_over_later).collect();
    let found = estimate(&values).filter(|it| it.units >= UNITS_MIN)?;
    let limit = MARGIN_SHARE_MAX * judged.equivalence_margin.ln_1p();
    let is_large = slice_order::is_shown(&found) && found.mean.abs() > limit;
    is_large.then(|| CommandFinding::OrderEffect {
        change: found.mean.exp_m1(),
        interval: (found.low.exp_m1(), found.high.exp_m1()),
        change_max: limit.exp_m1(),
    })
}

/// A row for each threshold: the command against the baseline, or its figure alone.
fn thresholds(
    judged: &Judged<'_>,
    pairs: &Pairs<'_>,
    barred: &BTreeSet<String>,
    floor: Option<f64>,
) -> Effects {
    let progress = Progress {
        blocks_done: pairs.done(),
        blocks: judged.pairs.max(1),
        blocks_to_repeat: 0,
        has_near_state: false,
    };
    let one = |(place, asked): (usize, &ComparisonSpec)| {
        let row = asked.of.metric.row();
        let arm = judged.commands.iter().position(|it| it.name == asked.of.arm).unwrap_or_default();
        let values = match asked.to.is_empty() {
            false => units_of(judged, pairs, arm, row).values,
            true => alone(judged, pairs, arm, row),
        };
        let is_barred = barred.contains(&asked.of.arm) || barred.contains(&judged.commands[0].name);
        let obstacles = if is_barred { vec![why_barred(pairs, arm, &asked.of.arm)] } else { Vec::new() };
        let answer = answers::of_values(asked, question::place(place), &values, obstacles);
        let is_bound = asked.to.is_empty() && has_bounds(judged, pairs, arm, row);
        let mut answer = if is_bound { of_bounds(asked.goal, answer) } else { answer };
        if let Some(floor) = floor {
            hold_threshold(asked, &mut answer, floor);
        }
        answers::withheld(answer, &progress)
    };
    Effects { rows: judged.thresholds.iter().enumerate().map(one).collect() }
}

/// A command that ran and may not be compared has no unit; one that never ran is missing.
fn why_barred(pairs: &Pairs<'_>, place: usize, name: &str) -> Finding {
    let slot = if place == 0 { 0 } else { place + 1 };
    match pairs.slots([slot]).next() {
        Some(_) => Finding::NoUnitLeft,
        None => Finding::ArmMissing { arm: name.to_owned() },
    }
}

/// A threshold on a ratio of CPU time is compared with the placebos as a verdict is. Layout may have added or removed
/// the floor, so the outcome must be the same with either.
fn hold_threshold(asked: &ComparisonSpec, answer: &mut Effect, floor: f64) {
    let is_ratio = asked.of.metric == Metric::CommandCpu && !asked.to.is_empty();
    let (true, Some(goal), Some((low, high))) = (is_ratio, asked.goal, answer.interval) else { return };
    let is_decided = answer.outcome.is_some_and(|outcome| outcome != Outcome::Open);
    if is_decided && goal.outcome((low * (-floor).exp(), high * floor.exp())) == Outcome::Open {
        answer.outcome = Some(Outcome::Open);
        answer.reasons.push(Finding::WithinPlacebos { floor: floor.exp_m1() });
    }
}

/// Figures of one command on the metric's scale: one for each pair, or the middle one of each start of servers, because
/// runs of one start have one process. None where of any run not even a bound is known.
fn alone(judged: &Judged<'_>, pairs: &Pairs<'_>, place: usize, row: &MetricRow) -> Vec<f64> {
    if is_without_use(judged, row.metric) {
        return Vec::new();
    }
    let slot = if place == 0 { 0 } else { place + 1 };
    let usable = pairs.slots([slot]).filter(|[run]| is_usable(judged, run));
    let bounded = |run: &CommandRun| figure(judged, run, row.metric).or(run.cost.figure_at_most(row.metric));
    let figures: Option<Vec<(u32, f64)>> = usable.map(|[run]| Some((run.pair, bounded(run)?))).collect();
    let figures = figures.unwrap_or_default().into_iter().filter(|(_, figure)| row.has(*figure));
    let size = judged.unit_pairs.unwrap_or(1);
    let mut units = BTreeMap::<u32, Vec<f64>>::new();
    for (pair, figure) in figures {
        units.entry(plan::round_of(pair, judged.pairs, size)).or_default().push(row.scale.value(figure));
    }
    units.into_values().filter_map(|values| median(&values)).collect()
}

/// Whether some runs have only an upper bound of a figure.
fn has_bounds(judged: &Judged<'_>, pairs: &Pairs<'_>, place: usize, row: &MetricRow) -> bool {
    let slot = if place == 0 { 0 } else { place + 1 };
    let is_bound = |run: &CommandRun| {
        run.cost.figure(row.metric).is_none() && run.cost.figure_at_most(row.metric).is_some()
    };
    pairs.slots([slot]).any(|[run]| is_usable(judged, run) && is_bound(run))
}

/// What follows from figures that are bounds in part: they are below a goal. They are no estimate.
fn of_bounds(goal: Option<Goal>, answer: Effect) -> Effect {
    let is_met = matches!(goal, Some(Goal::AtMost(_))) && answer.outcome == Some(Outcome::Met);
    let outcome = goal.map(|_| if is_met { Outcome::Met } else { Outcome::Open });
    Effect { estimate: None, interval: None, outcome, ..answer }
}

/// The running estimate of the first command that is compared: its ratio and the interval. It decides nothing. `None`
/// with fewer pairs than would decide anything.
pub fn so_far(judged: &Judged<'_>) -> Option<(f64, (f64, f64))> {
    let place = judged.commands.iter().position(|it| it.role == CommandRole::Candidate)?;
    let row = Metric::CommandCpu.row();
    let units = units_of(judged, &Pairs::of(judged), place, row);
    let found = estimate(&units.values).filter(|it| it.units >= UNITS_MIN && row.scale == Scale::Ratio)?;
    Some((found.mean.exp(), (found.low.exp(), found.high.exp())))
}

#[cfg(test)]
mod tests;
