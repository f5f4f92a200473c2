//! Answers to a study's own comparisons and goals. Pure.
//!
//! The rule is the same as everywhere: a two-sided t test at 1 % over the values of usable rounds or blocks in one
//! state of the machine. How two sides are compared depends on how they were measured:
//!
//! - Two figures of one cell within each round or block; figures of two cells unpaired (`question`).
//! - The best of several: the intervals hold for all candidates simultaneously (Bonferroni), and of the differences
//!   to each the largest counts, with its ends. No candidate is chosen, so no correction for a choice is needed.
//!
//! A goal is compared with the interval. It is no claim, takes no part in Holm's correction, and is independent of
//! other goals.

use weir_record::{
    effect::{Effect, EffectScale, Question},
    finding::Finding,
    goal::{ComparisonSpec, Goal, Outcome, Side},
    metric::{Family, Metric},
    metric_rows::MetricRow,
    spec::{CellRole, StudySpec},
    study::MissingArm,
    trial::TrialRecord,
};
use weir_stats::decide::{ALPHA, Estimate, UNITS_MIN, estimate};

use crate::{
    cell_trials::CellTrials,
    gate::{TrialState, ValidityGate},
    obstacle,
    progress::Progress,
    question::{self, Measured, Summed, Term},
    units,
    witnesses::{Claim, Witnesses},
};

/// One answer for each comparison of the specification, in its order. `beside` returns the witnesses of one arm's
/// server CPU against another's.
pub(crate) fn all(
    spec: &StudySpec,
    missing: &[MissingArm],
    (gate, cells): (&ValidityGate, &[CellTrials<'_>]),
    progress: &Progress,
    beside: &dyn Fn(&Side, &Side) -> Option<Witnesses>,
) -> Vec<Effect> {
    let judge = Judge { spec, missing, gate, cells };
    let places = spec.comparisons.iter().enumerate();
    let rows = places.map(|(place, asked)| judge.answer(asked, question::place(place)));
    let mut rows: Vec<Effect> = rows.map(|row| withheld(row, progress)).collect();
    hold_thresholds(spec, &mut rows, beside);
    rows
}

/// The answer to one comparison; a goal is compared with whatever was measured so far.
pub(crate) fn one(
    spec: &StudySpec,
    missing: &[MissingArm],
    (gate, cells): (&ValidityGate, &[CellTrials<'_>]),
    asked: &ComparisonSpec,
) -> Effect {
    Judge { spec, missing, gate, cells }.answer(asked, 0)
}

/// Checks thresholds on server CPU against the same witnesses as a verdict on it: if other figures contradict the
/// outcome, or nothing confirms it, it is unknown whether the threshold holds.
fn hold_thresholds(
    spec: &StudySpec,
    rows: &mut [Effect],
    beside: &dyn Fn(&Side, &Side) -> Option<Witnesses>,
) {
    let asked = spec.comparisons.iter().zip(rows.iter_mut());
    for (asked, answer) in asked.filter(|(asked, _)| asked.is_threshold) {
        let ComparisonSpec { of, to, goal, .. } = asked;
        let ([to], Metric::ServerCpuPerMessage) = (&to[..], of.metric) else { continue };
        let (Some(goal), Some(outcome), Some(witnesses)) = (*goal, answer.outcome, beside(of, to)) else {
            continue;
        };
        let claim = Claim::of_threshold(goal, outcome, spec.equivalence_margin, &witnesses);
        let held = claim.map(|claim| witnesses.held(&claim)).unwrap_or_default();
        let against: Vec<Finding> =
            held.into_iter().filter_map(|(finding, verdict)| verdict.map(|_| finding)).collect();
        if !against.is_empty() {
            answer.outcome = Some(Outcome::Open);
            answer.reasons.extend(against);
        }
    }
}

/// Whether a finding says that other figures contradict the comparison, or fail to confirm it.
pub(crate) fn is_of_witness(found: &Finding) -> bool {
    matches!(
        found,
        Finding::Witness { .. }
            | Finding::NoWitness { .. }
            | Finding::WitnessOtherState { .. }
            | Finding::NoEqualRate
    )
}

/// Withholds the answer while the schedule is unfinished.
pub(crate) fn withheld(mut answer: Effect, progress: &Progress) -> Effect {
    let Progress { blocks_done, blocks, .. } = *progress;
    if blocks_done < blocks && answer.outcome.is_some() {
        answer.outcome = Some(Outcome::Open);
        answer.reasons.push(Finding::Unfinished { blocks_done, blocks });
    }
    answer
}

/// The answer to a comparison or goal from values in time order alone: differences on the metric's scale, or figures
/// on it.
pub(crate) fn of_values(
    asked: &ComparisonSpec,
    place: u32,
    values: &[f64],
    obstacles: Vec<Finding>,
) -> Effect {
    let found = Found {
        estimate: estimate(values),
        is_paired: !asked.to.is_empty(),
        was_tried: !values.is_empty(),
        obstacles,
        ..Found::default()
    };
    answered(asked, place, CellRole::Primary, found)
}

/// The row of an answer.
fn answered(asked: &ComparisonSpec, place: u32, role: CellRole, found: Found) -> Effect {
    let of = &asked.of;
    let scale = if asked.to.is_empty() { EffectScale::Figure } else { EffectScale::of(of.metric) };
    let mut answer = Effect {
        cell_id: of.cell_id.clone(),
        arm: of.arm.clone(),
        baseline: if let [to] = &asked.to[..] { to.arm.clone() } else { String::new() },
        metric: of.metric,
        is_paired: found.is_paired,
        role,
        ..question::row(Question::Asked(place), scale, found.estimate.as_ref())
    };
    // Figures of a metric without a zero are averaged as logarithms.
    if scale == EffectScale::Figure {
        let shown = |value: f64| of.metric.row().scale.figure(value);
        answer.estimate = answer.estimate.map(shown);
        answer.interval = answer.interval.map(|(low, high)| (shown(low), shown(high)));
    }
    answer.outcome = asked.goal.map(|goal| outcome(goal, answer.interval, &found));
    answer.reasons = reasons(asked, &answer, found);
    answer
}

struct Judge<'a> {
    spec: &'a StudySpec,
    missing: &'a [MissingArm],
    gate: &'a ValidityGate,
    cells: &'a [CellTrials<'a>],
}

/// The measurements of one side.
struct Figures<'a> {
    cell: CellTrials<'a>,
    arm: &'a str,
    row: &'static MetricRow,
    /// Trials with a figure, one for each round or block.
    trials: Vec<&'a TrialRecord>,
}

impl<'a> Figures<'a> {
    fn of(gate: &ValidityGate, side: &'a Side, cell: CellTrials<'a>) -> Self {
        let row = side.metric.row();
        let found = units::alone(gate, &cell, &side.arm, row);
        let trials = found.into_values().map(|(_, trial)| trial).collect();
        Self { cell, arm: &side.arm, row, trials }
    }

    fn term(&self, weight: f64) -> Term<'_> {
        Term { weight, cell: &self.cell, arm: self.arm, baseline: None, row: self.row }
    }

    fn was_tried(&self) -> bool {
        self.cell.of_arm(self.arm).next().is_some()
    }

    fn obstacles(&self) -> Vec<Finding> {
        obstacle::of_side(&self.cell, self.arm, self.row, &self.trials)
    }

    /// Whether the generator was the limit, so that the figure is a lower bound.
    fn bound(&self) -> Option<Finding> {
        let is_rate = self.row.family == Family::Rate && self.cell.spec.storage.is_none();
        obstacle::generator_bound(self.cell.spec, self.arm, &self.trials).filter(|_| is_rate)
    }
}

/// The result before the goal is applied.
#[derive(Default)]
struct Found {
    estimate: Option<Estimate>,
    is_paired: bool,
    /// Whether every side has trials, usable or not.
    was_tried: bool,
    obstacles: Vec<Finding>,
    /// Whether the true figure may be larger, or smaller, because the generator limited a side.
    may_be_larger: bool,
    may_be_smaller: bool,
    bounds: Vec<Finding>,
}

impl<'a> Judge<'a> {
    fn answer(&self, asked: &'a ComparisonSpec, place: u32) -> Effect {
        let found = match self.absent(asked) {
            Some(reason) => Found { obstacles: vec![reason], ..Found::default() },
            None => self.found(asked),
        };
        let role = self.cell(&asked.of).map_or(CellRole::Exploratory, |cell| cell.spec.role);
        answered(asked, place, role, found)
    }

    /// An arm that did not run.
    fn absent(&self, asked: &ComparisonSpec) -> Option<Finding> {
        let arms = [&asked.of].into_iter().chain(&asked.to).map(|side| &side.arm);
        let absent = arms.into_iter().find(|arm| self.missing.iter().any(|gone| gone.name == **arm));
        absent.map(|arm| Finding::ArmMissing { arm: arm.clone() })
    }

    fn found(&self, asked: &'a ComparisonSpec) -> Found {
        let candidates = asked.to.len().max(1);
        let alpha = ALPHA / candidates as f64;
        match asked.to.as_slice() {
            [] => self.alone(&asked.of),
            [to] => self.pair(&asked.of, to, alpha),
            several => {
                let found = several.iter().map(|to| self.pair(&asked.of, to, alpha));
                against_best(found.collect(), asked.of.metric.larger_is_better())
            }
        }
    }

    fn cell(&self, side: &Side) -> Option<&'a CellTrials<'a>> {
        self.cells.iter().find(|cell| cell.spec.id == side.cell_id)
    }

    fn measured(&self) -> Measured<'a> {
        Measured { gate: self.gate, first: &self.spec.arms[0].name }
    }

    fn alone(&self, side: &'a Side) -> Found {
        let Some(cell) = self.cell(side) else { return Found::default() };
        let figures = Figures::of(self.gate, side, cell.clone());
        let bounds: Vec<Finding> = figures.bound().into_iter().collect();
        Found {
            estimate: self.measured().sum(&[figures.term(1.0)], Summed::OnItsScale, ALPHA),
            was_tried: figures.was_tried(),
            obstacles: figures.obstacles(),
            may_be_larger: !bounds.is_empty(),
            bounds,
            ..Found::default()
        }
    }

    fn pair(&self, of: &'a Side, to: &'a Side, alpha: f64) -> Found {
        let (Some(above), Some(below)) = (self.cell(of), self.cell(to)) else { return Found::default() };
        if of.cell_id != to.cell_id {
            return self.across_cells((of, above), (to, below), alpha);
        }
        let sides = [Figures::of(self.gate, of, above.clone()), Figures::of(self.gate, to, below.clone())];
        // A comparison between two arms is computed like one with the baseline.
        let terms = if of.metric == to.metric {
            vec![Term { baseline: Some(&to.arm), ..sides[0].term(1.0) }]
        } else {
            vec![sides[0].term(1.0), sides[1].term(-1.0)]
        };
        let estimate = self.measured().sum(&terms, Summed::OnItsScale, alpha);
        Found { is_paired: true, ..found_of(&sides, estimate) }
    }

    /// On a machine with two states, both cells are compared in the one in which the side with fewer units has more.
    fn across_cells(
        &self,
        (of, above): (&'a Side, &'a CellTrials<'a>),
        (to, below): (&'a Side, &'a CellTrials<'a>),
        alpha: f64,
    ) -> Found {
        let states: &[TrialState] = if self.gate.has_two_states() {
            &[TrialState::Near, TrialState::Far]
        } else {
            &[TrialState::Near]
        };
        let in_state = |state: &TrialState| {
            [
                Figures::of(self.gate, of, above.in_state(*state)),
                Figures::of(self.gate, to, below.in_state(*state)),
            ]
        };
        let fewer = |sides: &[Figures<'_>; 2]| sides[0].trials.len().min(sides[1].trials.len());
        let all: Vec<[Figures<'_>; 2]> = states.iter().map(in_state).collect();
        let is_met = |side: usize| all.iter().any(|sides| !sides[side].trials.is_empty());
        let is_apart = is_met(0) && is_met(1) && all.iter().all(|sides| fewer(sides) == 0);
        let best = all.into_iter().reduce(|one, other| if fewer(&other) > fewer(&one) { other } else { one });
        let Some(sides) = best else { return Found::default() };
        let terms = [sides[0].term(1.0), sides[1].term(-1.0)];
        let mut found = found_of(&sides, self.measured().sum(&terms, Summed::OnItsScale, alpha));
        if is_apart {
            found.obstacles.push(Finding::OtherStates);
        }
        found
    }
}

fn found_of([of, to]: &[Figures<'_>; 2], estimate: Option<Estimate>) -> Found {
    let (above, below) = (of.bound(), to.bound());
    let mut obstacles = of.obstacles();
    for obstacle in to.obstacles() {
        if !obstacles.contains(&obstacle) {
            obstacles.push(obstacle);
        }
    }
    Found {
        estimate,
        was_tried: of.was_tried() && to.was_tried(),
        obstacles,
        may_be_larger: above.is_some(),
        may_be_smaller: below.is_some(),
        bounds: above.into_iter().chain(below).collect(),
        ..Found::default()
    }
}

/// Against the best: the largest of the differences if less is better, otherwise the smallest.
fn against_best(found: Vec<Found>, larger_is_better: bool) -> Found {
    let estimates: Option<Vec<Estimate>> = found.iter().map(|it| it.estimate).collect();
    let extreme = |one: f64, other: f64| if larger_is_better { one.min(other) } else { one.max(other) };
    let merged = estimates.and_then(|estimates| {
        estimates.into_iter().reduce(|one, other| Estimate {
            mean: extreme(one.mean, other.mean),
            low: extreme(one.low, other.low),
            high: extreme(one.high, other.high),
            units: one.units.min(other.units),
            ..one
        })
    });
    let mut all = Found {
        estimate: merged,
        is_paired: found.iter().all(|it| it.is_paired),
        was_tried: found.iter().all(|it| it.was_tried),
        ..Found::default()
    };
    for one in found {
        all.may_be_larger |= one.may_be_larger;
        all.may_be_smaller |= one.may_be_smaller;
        let new = |list: &[Finding], it: &Finding| !list.contains(it);
        let obstacles: Vec<Finding> =
            one.obstacles.into_iter().filter(|it| new(&all.obstacles, it)).collect();
        all.obstacles.extend(obstacles);
        let bounds: Vec<Finding> = one.bounds.into_iter().filter(|it| new(&all.bounds, it)).collect();
        all.bounds.extend(bounds);
    }
    all
}

/// The outcome of the goal. A figure that may be larger in truth meets no upper bound and misses no lower one.
fn outcome(goal: Goal, interval: Option<(f64, f64)>, found: &Found) -> Outcome {
    let is_enough = found.estimate.is_some_and(|it| it.units >= UNITS_MIN) && found.obstacles.is_empty();
    let Some((low, high)) = interval.filter(|_| is_enough) else { return Outcome::Open };
    let low = if found.may_be_smaller { f64::NEG_INFINITY } else { low };
    let high = if found.may_be_larger { f64::INFINITY } else { high };
    goal.outcome((low, high))
}

/// Why the figure is not enough; without a goal only its invalidity.
fn reasons(asked: &ComparisonSpec, answer: &Effect, found: Found) -> Vec<Finding> {
    let mut reasons = found.obstacles;
    match found.estimate {
        None if reasons.is_empty() && found.was_tried => reasons.push(Finding::NoUnitLeft),
        None if reasons.is_empty() => reasons.push(Finding::NothingMeasured),
        Some(it) if it.units < UNITS_MIN && asked.goal.is_some() => {
            reasons.push(Finding::TooFewUnits { units: answer.units, units_min: UNITS_MIN as u32 });
        }
        _ => {}
    }
    let is_decided = answer.outcome.is_some_and(|outcome| outcome != Outcome::Open);
    if !is_decided {
        reasons.extend(found.bounds);
    }
    if let (true, Some(goal), Some((low, high))) = (reasons.is_empty(), asked.goal, answer.interval) {
        let (least, most) = goal.range();
        let inside =
            [least, most].into_iter().filter(|bound| bound.is_finite() && low < *bound && *bound < high);
        reasons.extend(inside.map(|bound| Finding::IncludesBound { bound }));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use weir_record::{machine::CrossCoreReading, metric::Metric, spec::CellSpec, trial::Exclusion};

    use super::*;
    use crate::{cell_trials, sample};

    const SMALL: &str = "c100-d1-m64-closed";
    const LARGE: &str = "c4000-d1-m64-closed";

    fn study() -> StudySpec {
        let mut spec = sample::study(&["epoll", "uring", "poll"], 8, 7);
        let large = CellSpec { id: LARGE.to_owned(), connections: 4000, ..spec.cells[0].clone() };
        spec.cells.push(large);
        spec
    }

    /// Eight blocks: epoll costs 10 µs, uring 8, poll 9, and in the large cell everything a fifth more; each block
    /// has common noise, and each trial a little.
    fn trials() -> Vec<TrialRecord> {
        let mut all = Vec::new();
        for (cell, factor) in [(SMALL, 1.0), (LARGE, 1.2)] {
            for block in 0..8 {
                let shared = 1.0 + 0.02 * (f64::from(block * 3 % 8) / 8.0 - 0.5);
                for (number, (arm, cost)) in (0_u32..).zip([("epoll", 10.0), ("uring", 8.0), ("poll", 9.0)]) {
                    let own = 1.0 + 0.002 * (f64::from((block * 5 + number * 3) % 8) / 8.0 - 0.5);
                    all.push(sample::trial(cell, arm, block, cost * factor * shared * own));
                }
            }
        }
        all
    }

    fn side(arm: &str, cell: &str) -> Side {
        Side { arm: arm.to_owned(), cell_id: cell.to_owned(), metric: Metric::ServerCpuPerMessage }
    }

    fn spec_of(of: Side, to: Vec<Side>, goal: Goal) -> ComparisonSpec {
        ComparisonSpec { of, to, goal: Some(goal), is_threshold: false }
    }

    fn answer_in(trials: &[TrialRecord], missing: &[MissingArm], asked: ComparisonSpec) -> Effect {
        let spec = StudySpec { comparisons: vec![asked], ..study() };
        let gate = ValidityGate::new(trials);
        let cells = cell_trials::by_role(&spec, &gate, trials);
        let progress = Progress { blocks_done: 16, blocks: 16, blocks_to_repeat: 0, has_near_state: false };
        all(&spec, missing, (&gate, &cells), &progress, &|_, _| None).remove(0)
    }

    fn answer(asked: ComparisonSpec) -> Effect {
        answer_in(&trials(), &[], asked)
    }

    #[test]
    fn arms_of_one_cell_are_compared_within_their_blocks_and_cells_are_not() {
        let within = answer(spec_of(side("uring", SMALL), vec![side("poll", SMALL)], Goal::AtMost(0.9)));
        assert_eq!((within.outcome, within.is_paired, within.units), (Some(Outcome::Met), true, 8));
        assert!((within.estimate.expect("it has") - 8.0 / 9.0).abs() < 0.001, "{within:?}");
        let across = |goal| answer(spec_of(side("uring", LARGE), vec![side("uring", SMALL)], goal));
        let grown = across(Goal::AtMost(1.25));
        assert_eq!((grown.outcome, grown.is_paired), (Some(Outcome::Met), false));
        assert!((grown.estimate.expect("it has") - 1.2).abs() < 0.001, "{grown:?}");
        // The blocks' noise cancels within a cell, but not between cells.
        let width =
            |answer: &Effect| answer.interval.map(|(low, high)| high / low - 1.0).expect("it has one");
        assert!(width(&grown) > 3.0 * width(&within), "{grown:?} {within:?}");
        assert_eq!(across(Goal::AtMost(1.1)).outcome, Some(Outcome::Missed));
        let open = across(Goal::AtMost(1.2));
        assert_eq!(
            (open.outcome, open.reasons),
            (Some(Outcome::Open), vec![Finding::IncludesBound { bound: 1.2 }])
        );
    }

    #[test]
    fn two_metrics_of_one_trial_are_compared_and_a_figure_alone_has_its_unit() {
        let generator = Side { metric: Metric::GeneratorCpuPerMessage, ..side("uring", SMALL) };
        let found = answer(spec_of(generator, vec![side("uring", SMALL)], Goal::AtMost(1.1)));
        assert_eq!((found.outcome, found.scale), (Some(Outcome::Met), EffectScale::Ratio));
        assert!((found.estimate.expect("it has") - 0.5).abs() < 0.001, "{found:?}");
        let alone = answer(spec_of(side("epoll", SMALL), Vec::new(), Goal::AtMost(9.0)));
        assert_eq!((alone.outcome, alone.scale), (Some(Outcome::Missed), EffectScale::Figure));
        assert!((alone.estimate.expect("it has") - 10.0).abs() < 0.1, "{alone:?}");
    }

    #[test]
    fn the_best_of_several_is_the_hardest_to_match_and_widens_the_interval() {
        let several = vec![side("epoll", SMALL), side("uring", SMALL)];
        let best = answer(spec_of(side("poll", SMALL), several, Goal::AtMost(1.05)));
        let alone = answer(spec_of(side("poll", SMALL), vec![side("uring", SMALL)], Goal::AtMost(1.05)));
        assert_eq!((best.estimate, best.outcome), (alone.estimate, Some(Outcome::Missed)));
        let width = |answer: &Effect| answer.interval.map(|(low, high)| high / low).expect("it has one");
        assert!(width(&best) > width(&alone));
        let rate = |arm| Side { metric: Metric::Throughput, ..side(arm, SMALL) };
        let most = answer(spec_of(rate("poll"), vec![rate("epoll"), rate("uring")], Goal::AtLeast(0.8)));
        assert!((most.estimate.expect("it has") - 8.0 / 9.0).abs() < 0.001, "{most:?}");
    }

    #[test]
    fn few_units_a_missing_arm_and_an_unfinished_schedule_decide_nothing() {
        let goal = || spec_of(side("uring", SMALL), vec![side("epoll", SMALL)], Goal::AtMost(2.0));
        let mut few = trials();
        few.retain(|trial| trial.block < 5);
        let found = answer_in(&few, &[], goal());
        assert_eq!(found.outcome, Some(Outcome::Open));
        assert_eq!(found.reasons, [Finding::TooFewUnits { units: 5, units_min: 6 }]);
        let mut spoilt = trials();
        spoilt.iter_mut().for_each(|trial| trial.exclusions.push(Exclusion::Steal));
        assert_eq!(answer_in(&spoilt, &[], goal()).reasons, [Finding::NoUnitLeft]);
        assert_eq!(answer_in(&[], &[], goal()).reasons, [Finding::NothingMeasured]);
        let gone = MissingArm { name: "uring".to_owned(), reason: Finding::NoIoUring, unlock: None };
        let found = answer_in(&trials(), &[gone], goal());
        assert_eq!(
            (found.estimate, found.reasons),
            (None, vec![Finding::ArmMissing { arm: "uring".to_owned() }])
        );
        let met = answer(goal());
        let progress = Progress { blocks_done: 3, blocks: 16, blocks_to_repeat: 0, has_near_state: false };
        let found = withheld(met, &progress);
        assert_eq!(found.outcome, Some(Outcome::Open));
        assert_eq!(found.reasons, [Finding::Unfinished { blocks_done: 3, blocks: 16 }]);
        let open = answer(spec_of(side("uring", SMALL), vec![side("epoll", SMALL)], Goal::AtMost(0.8)));
        assert_eq!(open.outcome, Some(Outcome::Open), "{open:?}");
        let unfinished = Finding::Unfinished { blocks_done: 3, blocks: 16 };
        assert!(
            withheld(open, &progress).reasons.contains(&unfinished),
            "it is not open for its width alone"
        );
    }

    #[test]
    fn where_the_generator_was_the_limit_only_what_a_bound_allows_is_decided() {
        let mut bound = trials();
        for load in
            bound.iter_mut().filter(|trial| trial.arm == "uring").filter_map(|trial| trial.load.as_mut())
        {
            load.generator_bound = true;
        }
        let rate = |arm| Side { metric: Metric::Throughput, ..side(arm, SMALL) };
        let of = |goal| answer_in(&bound, &[], spec_of(rate("uring"), vec![rate("epoll")], goal));
        assert_eq!(of(Goal::AtLeast(1.2)).outcome, Some(Outcome::Met), "it is 1.25 or more");
        let open = of(Goal::AtMost(1.3));
        assert_eq!(open.outcome, Some(Outcome::Open));
        assert!(matches!(open.reasons[..], [Finding::LowerBound { .. }]), "{open:?}");
        let turned = answer_in(&bound, &[], spec_of(rate("epoll"), vec![rate("uring")], Goal::AtMost(0.9)));
        assert_eq!(turned.outcome, Some(Outcome::Met), "it is 0.8 or less");
    }

    #[test]
    fn cells_that_were_met_in_different_states_are_not_compared() {
        let mut trials = trials();
        for trial in &mut trials {
            let jitter = f64::from(trial.block % 3);
            let round_trip_ns = if trial.cell_id == SMALL { 80.0 } else { 400.0 } + jitter;
            trial.reading_before = CrossCoreReading { round_trip_ns, ..CrossCoreReading::default() };
            trial.reading_after = trial.reading_before;
        }
        let found = answer_in(
            &trials,
            &[],
            spec_of(side("uring", LARGE), vec![side("uring", SMALL)], Goal::AtMost(9.0)),
        );
        assert_eq!((found.outcome, found.estimate), (Some(Outcome::Open), None));
        assert_eq!(found.reasons, [Finding::OtherStates]);
    }
}
