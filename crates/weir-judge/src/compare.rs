//! Compares two stored runs. Pure.
//!
//! Machines drift, so figures of two times are not comparable. Comparable is what each run measured within itself:
//! the ratio of an arm to its baseline, in the same rounds or blocks. Two such ratios are compared by the same rule
//! as everything else, unpaired (Welch), because rounds of one run are unrelated to rounds of the other. The claims
//! of cells with a claim in both runs share Holm's correction. An effect that is not comparable in its own run, or
//! that is contradicted there by its other figures, is not compared, nor are two effects in different states of the
//! machine.
//!
//! The interval follows from the scatter of rounds within the runs. It does not include what moved between the runs
//! and would also move between two runs of one program, whatever the number of rounds: every view of a change must
//! say so.

use std::collections::BTreeMap;

use weir_record::{
    SCHEMA_VERSION,
    effect::{Effect, EffectScale, IntervalMethod, Question},
    finding::Finding,
    goal::{ComparisonSpec, Outcome},
    machine::{FactDifference, differences, record_differences},
    metric::{Metric, Scale},
    metric_rows::{self, Part},
    run_pair::{Change, FigurePair, PairObstacle, Parts, RunEffect, RunFacts, RunPair},
    spec::{Alternation, ArmSpec, CellRole, CellSpec, StudySpec},
    study::StudyResult,
    verdict::Verdict,
};
use weir_stats::{
    decide::{ALPHA, Estimate, Reading, UNITS_MIN, decide, estimate_unpaired},
    holm::holm,
};

use crate::{answers, judge, progress::Progress};

/// A stored run.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Its result.
    pub result: &'a StudyResult,
    /// Its progress.
    pub progress: &'a Progress,
}

/// Compares one run with another, and the changes with thresholds on ratios.
pub fn compare(one: Run<'_>, other: Run<'_>, thresholds: &[ComparisonSpec]) -> RunPair {
    let (before, after) = (one.result, other.result);
    let obstacles = obstacles(one, other);
    let changes = if obstacles.is_empty() { changes(before, after) } else { Vec::new() };
    RunPair {
        schema_version: SCHEMA_VERSION,
        one: facts(before),
        other: facts(after),
        machine: differences(&before.fingerprint, &after.fingerprint),
        asked: asked_differently(&before.spec, &after.spec),
        only_one: only(before, after),
        only_other: only(after, before),
        figures: figures(before, after),
        answers: (0..).zip(thresholds).map(|(place, asked)| answer(&changes, asked, place)).collect(),
        thresholds: thresholds.to_vec(),
        obstacles,
        changes,
    }
}

fn facts(result: &StudyResult) -> RunFacts {
    RunFacts {
        name: result.spec.name.clone(),
        seed: result.spec.seed,
        weir_version: result.fingerprint.weir_version.clone(),
        kernel_release: result.fingerprint.kernel_release.clone(),
        elapsed_ns: result.elapsed_ns,
        reproduce: result.reproduce.clone(),
    }
}

/// Arms that ran, by name.
fn arms(result: &StudyResult) -> impl Iterator<Item = &ArmSpec> {
    let ran = |arm: &&ArmSpec| result.missing_arms.iter().all(|missing| missing.name != arm.name);
    result.spec.arms.iter().filter(ran)
}

/// Cells and arms of one run that the other lacks.
fn only(of: &StudyResult, without: &StudyResult) -> Parts {
    let cells = of.spec.cells.iter().filter(|cell| find(&without.spec, &cell.id).is_none());
    let has = |arm: &&ArmSpec| arms(without).all(|other| other.name != arm.name);
    Parts {
        cells: cells.map(|cell| cell.id.clone()).collect(),
        arms: arms(of).filter(has).map(|arm| arm.name.clone()).collect(),
    }
}

fn find<'s>(spec: &'s StudySpec, cell_id: &str) -> Option<&'s CellSpec> {
    spec.cells.iter().find(|cell| cell.id == cell_id)
}

/// Differences in the specifications of common parts.
fn asked_differently(one: &StudySpec, other: &StudySpec) -> Vec<FactDifference> {
    let mut all = Vec::new();
    let mut add = |part: &str, found: Vec<FactDifference>| {
        let named = |it: FactDifference| FactDifference { name: format!("{part}.{}", it.name), ..it };
        all.extend(found.into_iter().map(named));
    };
    let cpus = [one, other]
        .map(|spec| BTreeMap::from([("server_cpus", &spec.server_cpus), ("load_cpus", &spec.load_cpus)]));
    add("study", record_differences(&cpus[0], &cpus[1]));
    for arm in &one.arms {
        let Some(twin) = other.arms.iter().find(|it| it.name == arm.name) else { continue };
        add(&arm.name, record_differences(arm, twin));
    }
    // The number of rounds is reflected in the interval, and the claim in the verdict. The distribution of
    // connections is only compared for equal numbers of workers.
    let accept = |cell: &CellSpec, twin: &CellSpec| match cell.workers == twin.workers {
        true => cell.accept().to_owned(),
        false => String::new(),
    };
    // The program chooses the length of slices that no file sets, and a pilot the rate of a share: these are not asked.
    let is_given = |id: &String| [one, other].iter().any(|spec| spec.slices_given.contains(id));
    let alternation = |cell: &CellSpec, twin: &CellSpec| match (cell.alternation, twin.alternation) {
        (Some(own), Some(its)) if own.slice_ns != its.slice_ns && !is_given(&cell.id) => {
            Some(Alternation { slice_ns: 0, permutations: 0, ..own })
        }
        (own, _) => own,
    };
    let plain = |cell: &CellSpec, twin: &CellSpec| CellSpec {
        role: CellRole::Exploratory,
        load: cell.load.without_rate(),
        alternation: alternation(cell, twin),
        blocks: 0,
        arms: Vec::new(),
        protocol: cell.protocol().to_owned(),
        accept: accept(cell, twin),
        ..cell.clone()
    };
    for cell in &one.cells {
        let Some(twin) = find(other, &cell.id) else { continue };
        add(&cell.id, record_differences(&plain(cell, twin), &plain(twin, cell)));
    }
    all
}

fn obstacles(one: Run<'_>, other: Run<'_>) -> Vec<PairObstacle> {
    let mut found = Vec::new();
    let Progress { blocks_done, blocks, .. } = *one.progress;
    if blocks_done < blocks {
        found.push(PairObstacle::OneUnfinished { blocks_done, blocks });
    }
    let Progress { blocks_done, blocks, .. } = *other.progress;
    if blocks_done < blocks {
        found.push(PairObstacle::OtherUnfinished { blocks_done, blocks });
    }
    let (one, other) = (one.result, other.result);
    let protocol = |result: &StudyResult| result.spec.cells.first().map(|cell| cell.protocol().to_owned());
    let baseline =
        |result: &StudyResult| result.spec.arms.first().map(|arm| arm.name.clone()).unwrap_or_default();
    let is_common = |cell: &CellSpec| find(&other.spec, &cell.id).is_some();
    match (protocol(one), protocol(other)) {
        (Some(one), Some(other)) if one != other => found.push(PairObstacle::Protocols { one, other }),
        _ if !one.spec.cells.iter().any(is_common) => found.push(PairObstacle::NoCommonCell),
        _ if other.effects.comparisons().all(|it| twin(one, it).is_none()) => {
            found.push(PairObstacle::NoCommonPair { one: baseline(one), other: baseline(other) });
        }
        _ => {}
    }
    found
}

/// The same comparison in another run.
fn twin<'r>(result: &'r StudyResult, of: &Effect) -> Option<&'r Effect> {
    let key = |it: &Effect| (it.cell_id.clone(), it.arm.clone(), it.baseline.clone(), it.metric);
    let own = key(of);
    result.effects.comparisons().find(|it| key(it) == own)
}

fn figures(one: &StudyResult, other: &StudyResult) -> Vec<FigurePair> {
    let mut all = Vec::new();
    for after in &other.arms {
        let before = one.arms.iter().find(|it| (&it.cell_id, &it.arm) == (&after.cell_id, &after.arm));
        let (Some(before), Some(cell)) = (before, find(&other.spec, &after.cell_id)) else { continue };
        for row in metric_rows::compared(cell) {
            let (Some(one), Some(other)) = (before.mean(row.metric), after.mean(row.metric)) else {
                continue;
            };
            let (cell_id, arm) = (after.cell_id.clone(), after.arm.clone());
            all.push(FigurePair { cell_id, arm, metric: row.metric, one, other });
        }
    }
    all
}

/// The effects of both, and their changes.
fn changes(one: &StudyResult, other: &StudyResult) -> Vec<Change> {
    let pairs = other.effects.comparisons().filter_map(|after| Some((twin(one, after)?, after)));
    let mut drafts: Vec<Draft> = pairs.filter_map(|pair| Draft::of(one, other, pair)).collect();
    let claims: Vec<usize> = (0..drafts.len()).filter(|index| drafts[*index].is_claim()).collect();
    let p_values: Vec<f64> = claims.iter().filter_map(|index| drafts[*index].change.p_value).collect();
    for (index, adjusted) in claims.iter().zip(holm(&p_values).unwrap_or_default()) {
        drafts[*index].change.p_value_holm = Some(adjusted);
    }
    let margin = one.spec.equivalence_margin.min(other.spec.equivalence_margin);
    drafts.into_iter().map(|draft| draft.decided(margin)).collect()
}

/// A change before its verdict.
struct Draft {
    change: Change,
    part: Part,
    estimate: Option<Estimate>,
}

impl Draft {
    fn of(one: &StudyResult, other: &StudyResult, (before, after): (&Effect, &Effect)) -> Option<Self> {
        let (cell, twin) = (find(&other.spec, &after.cell_id)?, find(&one.spec, &after.cell_id)?);
        let row = after.metric.row();
        let mut reasons = barred(before);
        reasons.extend(barred(after).into_iter().filter(|it| !reasons.contains(it)).collect::<Vec<_>>());
        let is_far = |it: &Effect| it.notes.contains(&Finding::FarState);
        if is_far(before) != is_far(after) {
            reasons.push(Finding::OtherStates);
        }
        let is_barred = !reasons.is_empty() || [before, after].iter().any(|it| is_not_comparable(it));
        let estimate = if is_barred { None } else { estimate_unpaired(&after.values, &before.values, ALPHA) };
        let is_ratio = row.scale == Scale::Ratio;
        let shown = |value: f64| if is_ratio { value.exp() } else { value };
        let detectable = |it: f64| if is_ratio { it.exp_m1() } else { it };
        let is_exploratory = [cell.role, twin.role].contains(&CellRole::Exploratory);
        let change = Change {
            cell_id: after.cell_id.clone(),
            role: if is_exploratory { CellRole::Exploratory } else { cell.role },
            arm: after.arm.clone(),
            baseline: after.baseline.clone(),
            metric: after.metric,
            scale: EffectScale::of(after.metric),
            one: effect(before),
            other: effect(after),
            figure: estimate.map(|it| shown(it.mean)),
            interval: estimate.map(|it| (shown(it.low), shown(it.high))),
            confidence: estimate.map_or(0.0, |_| 1.0 - ALPHA),
            p_value: estimate.map(|it| it.p_value),
            p_value_holm: None,
            detectable: estimate.map(|it| detectable(it.detectable)).filter(|it| it.is_finite()),
            verdict: Verdict::NotComparable,
            reasons,
        };
        Some(Self { change, part: (row.part)(cell), estimate })
    }

    fn is_claim(&self) -> bool {
        self.change.role != CellRole::Exploratory && self.part == Part::Claim && self.estimate.is_some()
    }

    fn decided(self, margin: f64) -> Change {
        let is_claim = self.is_claim();
        let Self { mut change, estimate, .. } = self;
        let Some(estimate) = estimate else {
            if change.reasons.is_empty() {
                change.reasons.push(Finding::NothingMeasured);
            }
            return change;
        };
        let row = change.metric.row();
        let reading = Reading {
            p_value: change.p_value_holm.unwrap_or(estimate.p_value),
            margin: match row.scale {
                Scale::Ratio => margin.ln_1p(),
                Scale::Difference { margin } => margin,
            },
            larger_is_better: change.metric.larger_is_better(),
        };
        change.verdict =
            if is_claim { judge::verdict_of(decide(&estimate, &reading)) } else { Verdict::NoClaim };
        if change.verdict == Verdict::Inconclusive {
            change.reasons.push(judge::undecided(&estimate, &reading, row.scale));
        }
        change
    }
}

pub(crate) fn is_not_comparable(comparison: &Effect) -> bool {
    comparison.verdict == Verdict::NotComparable
}

/// Why an effect must not be compared with that of another run.
pub(crate) fn barred(comparison: &Effect) -> Vec<Finding> {
    let is_reason = |it: &&Finding| is_not_comparable(comparison) || answers::is_of_witness(it);
    // If a rate was missed too often, the remaining good slices are biased, with or without a claim.
    let is_missed = |it: &&Finding| matches!(it, Finding::RateMissed { .. });
    let missed = comparison.reasons.iter().chain(&comparison.notes).filter(is_missed);
    comparison.reasons.iter().filter(|it| is_reason(it) && !is_missed(it)).chain(missed).cloned().collect()
}

pub(crate) fn effect(comparison: &Effect) -> RunEffect {
    RunEffect {
        figure: comparison.estimate,
        interval: comparison.interval,
        units: comparison.units,
        verdict: comparison.verdict,
    }
}

/// The outcome of a threshold on a ratio: the change must satisfy it with its whole interval.
fn answer(changes: &[Change], asked: &ComparisonSpec, place: u32) -> Effect {
    let of = &asked.of;
    let key = |metric: Metric| (of.cell_id.as_str(), of.arm.as_str(), metric);
    let is_own = |it: &&Change| (it.cell_id.as_str(), it.arm.as_str(), it.metric) == key(of.metric);
    let found = changes.iter().filter(is_own).find(|it| asked.to.iter().any(|to| to.arm == it.baseline));
    let interval = found.and_then(|it| it.interval);
    let mut answer = Effect {
        question: Question::Asked(place),
        cell_id: of.cell_id.clone(),
        arm: of.arm.clone(),
        baseline: found.map(|it| it.baseline.clone()).unwrap_or_default(),
        metric: of.metric,
        estimate: found.and_then(|it| it.figure),
        interval,
        level: found.map_or(0.0, |it| it.confidence),
        method: interval.map_or(IntervalMethod::None, |_| IntervalMethod::StudentT),
        units: found.map_or(0, |it| it.one.units.min(it.other.units)),
        outcome: Some(Outcome::Open),
        ..Effect::default()
    };
    let (Some(interval), Some(goal)) = (answer.interval, asked.goal) else {
        answer.reasons = found.map_or_else(|| vec![Finding::NothingMeasured], |it| it.reasons.clone());
        return answer;
    };
    if (answer.units as usize) < UNITS_MIN {
        answer.reasons = vec![Finding::TooFewUnits { units: answer.units, units_min: UNITS_MIN as u32 }];
        return answer;
    }
    answer.outcome = Some(goal.outcome(interval));
    if answer.outcome == Some(Outcome::Open) {
        let (least, most) = goal.range();
        let bounds = [least, most].into_iter().filter(|bound| bound.is_finite());
        answer.reasons = bounds.map(|bound| Finding::IncludesBound { bound }).collect();
    }
    answer
}

#[cfg(test)]
mod tests {
    use weir_record::{
        goal::{Goal, Side},
        machine::CrossCoreReading,
        spec::{LoadMode, Subject},
        trial::TrialRecord,
    };

    use super::*;
    use crate::sample;

    const CELL: &str = "c100-d1-m64-closed";

    fn study() -> StudySpec {
        sample::study(&["epoll", "uring"], 8, 7)
    }

    /// Eight blocks: epoll costs `epoll_us` per message and uring `ratio` times that, each block with its own noise.
    fn trials(epoll_us: f64, ratio: f64) -> Vec<TrialRecord> {
        let of_block = |block: u32| {
            let shared = 1.0 + 0.04 * (f64::from(block * 3 % 8) / 8.0 - 0.5);
            let own = 1.0 + 0.004 * (f64::from(block * 5 % 8) / 8.0 - 0.5);
            [("epoll", epoll_us * shared), ("uring", epoll_us * ratio * shared * own)]
                .map(|(arm, cpu_us)| sample::trial(CELL, arm, block, cpu_us))
        };
        (0..8).flat_map(of_block).collect()
    }

    fn pair_of(one: &StudyResult, other: &StudyResult, thresholds: &[ComparisonSpec]) -> RunPair {
        let progress = Progress { blocks_done: 8, blocks: 8, blocks_to_repeat: 0, has_near_state: false };
        let run = |result| Run { result, progress: &progress };
        compare(run(one), run(other), thresholds)
    }

    fn pair(one: &[TrialRecord], other: &[TrialRecord]) -> RunPair {
        pair_of(&judge::judged(&study(), one), &judge::judged(&study(), other), &[])
    }

    fn cpu(pair: &RunPair) -> &Change {
        let found = pair.changes.iter().find(|it| it.metric == Metric::ServerCpuPerMessage);
        found.unwrap_or_else(|| panic!("{pair:?}"))
    }

    #[test]
    fn a_slower_machine_is_no_change_and_a_dearer_arm_is_one() {
        let before = trials(10.0, 0.8);
        let slower = pair(&before, &trials(15.0, 0.8));
        let change = cpu(&slower);
        assert_eq!((change.verdict, change.role), (Verdict::Equivalent, CellRole::Primary));
        assert!((change.figure.expect("it has") - 1.0).abs() < 1e-4, "{change:?}");
        let figure = slower.figures.iter().find(|it| it.metric == Metric::ServerCpuPerMessage);
        let figure = figure.expect("both have it");
        assert!((figure.other / figure.one - 1.5).abs() < 1e-3, "{figure:?}");
        let dearer = pair(&before, &trials(15.0, 0.84));
        let change = cpu(&dearer);
        assert_eq!(change.verdict, Verdict::Worse, "{change:?}");
        assert!((change.figure.expect("it has") - 1.05).abs() < 1e-3, "{change:?}");
        let (low, high) = change.interval.expect("it has one");
        assert!(1.0 < low && low < 1.05 && 1.05 < high, "{change:?}");
        assert!(change.p_value_holm >= change.p_value && change.detectable.is_some());
        assert_eq!(cpu(&pair(&trials(15.0, 0.84), &before)).verdict, Verdict::Better);
    }

    #[test]
    fn an_exploratory_cell_claims_nothing() {
        let mut spec = study();
        let before = judge::judged(&spec, &trials(10.0, 0.8));
        spec.cells[0].role = CellRole::Exploratory;
        let after = judge::judged(&spec, &trials(10.0, 1.2));
        let change = cpu(&pair_of(&before, &after, &[])).clone();
        assert_eq!((change.verdict, change.p_value_holm), (Verdict::NoClaim, None));
        assert!(change.interval.is_some());
    }

    #[test]
    fn what_is_not_comparable_in_its_own_run_is_not_compared() {
        let mut wrong = trials(10.0, 0.8);
        for load in wrong.iter_mut().filter_map(|trial| trial.load.as_mut()) {
            load.failures.wrong_bytes = 3;
        }
        let change = cpu(&pair(&wrong, &trials(10.0, 0.8))).clone();
        assert_eq!((change.verdict, change.figure), (Verdict::NotComparable, None), "{change:?}");
        assert!(!change.reasons.is_empty());
        // A verdict that the CPU of both sides does not confirm is not compared either.
        let mut alone = trials(10.0, 0.8);
        for seen in alone.iter_mut().filter_map(|trial| trial.load.as_mut()?.observed.as_mut()) {
            seen.noise.machine_busy_ns = 0;
        }
        let change = cpu(&pair(&alone, &trials(10.0, 0.8))).clone();
        assert!(matches!(change.reasons[..], [Finding::NoWitness { .. }]), "{change:?}");
        assert_eq!(change.verdict, Verdict::NotComparable);
    }

    #[test]
    fn effects_of_different_states_of_a_machine_are_not_compared() {
        let in_state = |far: u32| {
            let mut trials = trials(10.0, 0.8);
            for trial in &mut trials {
                let base = if trial.block < far { 400.0 } else { 80.0 };
                let round_trip_ns = base + f64::from(trial.block % 3);
                trial.reading_before = CrossCoreReading { round_trip_ns, ..CrossCoreReading::default() };
                trial.reading_after = trial.reading_before;
            }
            trials
        };
        let apart = cpu(&pair(&in_state(2), &in_state(6))).clone();
        assert_eq!(apart.reasons, [Finding::OtherStates], "{apart:?}");
        assert_eq!(cpu(&pair(&in_state(2), &in_state(2))).reasons, []);
    }

    #[test]
    fn two_runs_without_anything_in_common_are_told_why() {
        let before = judge::judged(&study(), &trials(10.0, 0.8));
        let obstacles = |change: fn(&mut StudySpec)| {
            let mut spec = study();
            change(&mut spec);
            let mut trials = trials(10.0, 0.8);
            for trial in &mut trials {
                trial.cell_id.clone_from(&spec.cells[0].id);
                let place = usize::from(trial.arm != "epoll");
                trial.arm.clone_from(&spec.arms[place].name);
            }
            let pair = pair_of(&before, &judge::judged(&spec, &trials), &[]);
            assert!(pair.changes.is_empty());
            pair.obstacles
        };
        let http = PairObstacle::Protocols { one: "echo".to_owned(), other: "http".to_owned() };
        assert_eq!(obstacles(|spec| spec.cells[0].protocol = "http".to_owned()), [http]);
        assert_eq!(obstacles(|spec| spec.cells[0].id = "c5".to_owned()), [PairObstacle::NoCommonCell]);
        let baselines = PairObstacle::NoCommonPair { one: "epoll".to_owned(), other: "poll".to_owned() };
        assert_eq!(obstacles(|spec| spec.arms[0].name = "poll".to_owned()), [baselines]);
        let begun = Progress { blocks_done: 3, blocks: 8, blocks_to_repeat: 0, has_near_state: false };
        let run = Run { result: &before, progress: &begun };
        let unfinished = [
            PairObstacle::OneUnfinished { blocks_done: 3, blocks: 8 },
            PairObstacle::OtherUnfinished { blocks_done: 3, blocks: 8 },
        ];
        assert_eq!(compare(run, run, &[]).obstacles, unfinished);
    }

    #[test]
    fn what_only_one_run_has_and_what_was_asked_differently_is_named() {
        let before = judge::judged(&study(), &trials(10.0, 0.8));
        let mut spec = sample::study(&["epoll", "uring", "poll"], 9, 7);
        spec.cells.push(CellSpec { id: "c7".to_owned(), ..spec.cells[0].clone() });
        spec.server_cpus = vec![2];
        spec.cells[0].workers = 2;
        if let Subject::Weir { options, .. } = &mut spec.arms[1].subject {
            options.insert("spin-us".to_owned(), "50".to_owned());
        }
        let pair = pair_of(&before, &judge::judged(&spec, &trials(10.0, 0.8)), &[]);
        assert_eq!(pair.only_one, Parts::default());
        assert_eq!(
            (&pair.only_other.cells[..], &pair.only_other.arms[..]),
            (&["c7".to_owned()][..], &["poll".to_owned()][..])
        );
        let asked: Vec<(&str, &str, &str)> =
            pair.asked.iter().map(|it| (it.name.as_str(), it.one.as_str(), it.other.as_str())).collect();
        let expected = [
            ("study.server_cpus", "[0]", "[2]"),
            ("uring.subject.weir.options.spin-us", "", "50"),
            ("c100-d1-m64-closed.workers", "1", "2"),
        ];
        assert_eq!(asked, expected, "how many blocks there were is in the interval");
    }

    #[test]
    fn a_slice_that_the_program_chose_and_a_rate_that_a_pilot_found_were_not_asked_differently() {
        let turns =
            |slice_ns| Some(Alternation { slice_ns, permutations: 8, prime_messages: 1, evidence: None });
        let open = |rate_per_second, share| LoadMode::Open { rate_per_second, poisson: true, share };
        let of = |slice_ns, load| {
            let mut spec = study();
            (spec.cells[0].alternation, spec.cells[0].load) = (turns(slice_ns), load);
            spec
        };
        let names = |one: &StudySpec, other: &StudySpec| -> Vec<String> {
            asked_differently(one, other).into_iter().map(|it| it.name).collect()
        };
        let (one, mut other) = (of(25, open(100.0, Some(0.5))), of(31, open(117.0, Some(0.5))));
        assert_eq!(names(&one, &other), [""; 0]);
        other.slices_given = vec![CELL.to_owned()];
        assert_eq!(names(&one, &other), [format!("{CELL}.alternation.slice_ns")], "this one was asked for");
        let fixed = of(25, open(117.0, None));
        assert_eq!(names(&of(25, open(100.0, None)), &fixed), [format!("{CELL}.load.open.rate_per_second")]);
    }

    #[test]
    fn a_threshold_on_a_change_is_kept_or_missed_by_its_whole_interval() {
        let side = |arm: &str| Side {
            arm: arm.to_owned(),
            cell_id: CELL.to_owned(),
            metric: Metric::ServerCpuPerMessage,
        };
        let asked = |arm: &str, high: f64| ComparisonSpec {
            of: side(arm),
            to: vec![side("epoll")],
            goal: Some(Goal::AtMost(high)),
            is_threshold: true,
        };
        let of = |result: &StudyResult, asked| {
            let before = judge::judged(&study(), &trials(10.0, 0.8));
            pair_of(&before, result, &[asked]).answers.remove(0)
        };
        let after = judge::judged(&study(), &trials(12.0, 0.84));
        assert_eq!(of(&after, asked("uring", 1.1)).outcome, Some(Outcome::Met));
        assert_eq!(of(&after, asked("uring", 1.02)).outcome, Some(Outcome::Missed));
        let open = of(&after, asked("uring", 1.05));
        assert_eq!(open.reasons, [Finding::IncludesBound { bound: 1.05 }], "{open:?}");
        let absent = of(&after, asked("poll", 1.05));
        assert_eq!((absent.outcome, absent.reasons), (Some(Outcome::Open), vec![Finding::NothingMeasured]));
    }
}
