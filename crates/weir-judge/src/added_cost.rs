//! Added cost of arms over the baseline, and whether the least costly one stays within its share of a reference's
//! added cost. Pure.
//!
//! The added cost is a difference within a block: a figure of the arm less the baseline's, which does the same work
//! without the arm's addition. An arm's share is the quotient of the means of its added costs and the reference's; it
//! does not exist if the reference's added cost is not distinguishable from zero.
//!
//! The least costly arm is the one with the smallest maximum share over all cells, because one arm has to be the
//! default. It is judged on the data that chose it, so its intervals hold simultaneously for all candidates
//! (Bonferroni). Before the schedule is finished, and from few blocks, the limit stays open: a look after each block
//! would find it met by chance sooner or later.

use std::collections::BTreeSet;

use weir_record::{
    added_cost::AddedCostSpec,
    effect::{Effect, EffectScale, Question},
    goal::{Goal, Outcome},
    metric::Metric,
    spec::StudySpec,
};
use weir_stats::decide::{ALPHA, UNITS_MIN};

use crate::{
    cell_trials::CellTrials,
    question::{self, Measured, Summed, Term},
};

/// The rows of each question of the specification, in its order.
pub(crate) fn all(
    spec: &StudySpec,
    measured: Measured<'_>,
    cells: &[CellTrials<'_>],
    is_finished: bool,
) -> Vec<Effect> {
    let asked = spec.added_costs.iter().enumerate();
    asked
        .flat_map(|(place, asked)| {
            Asked { spec: asked, place: question::place(place), is_finished }.rows(measured, cells)
        })
        .collect()
}

/// One question.
struct Asked<'s> {
    spec: &'s AddedCostSpec,
    place: u32,
    /// The whole schedule ran.
    is_finished: bool,
}

impl Asked<'_> {
    fn rows(&self, measured: Measured<'_>, cells: &[CellTrials<'_>]) -> Vec<Effect> {
        let own: Vec<&CellTrials<'_>> =
            cells.iter().filter(|cell| self.spec.cells.contains(&cell.spec.id)).collect();
        let runs = |arm: &&String| own.iter().any(|cell| cell.spec.has_arm(arm));
        let candidates: BTreeSet<&String> =
            self.spec.arms.iter().filter(|arm| **arm != self.spec.reference).filter(runs).collect();
        let alpha = ALPHA / candidates.len().max(1) as f64;
        let mut rows = Vec::new();
        for cell in own {
            for arm in self.spec.arms.iter().filter(|arm| cell.spec.has_arm(arm)) {
                rows.extend(self.spec.metrics.iter().map(|metric| self.added(measured, cell, arm, *metric)));
                rows.extend(self.share(measured, cell, arm, alpha));
            }
        }
        rows.extend(self.spec.share_max.and_then(|limit| self.least(&rows, limit)));
        rows
    }

    fn term<'a>(
        measured: Measured<'a>,
        cell: &'a CellTrials<'a>,
        arm: &'a str,
        metric: Metric,
    ) -> [Term<'a>; 1] {
        [Term { weight: 1.0, cell, arm, baseline: Some(measured.first), row: metric.row() }]
    }

    /// Added cost over the baseline in the same block.
    fn added(&self, measured: Measured<'_>, cell: &CellTrials<'_>, arm: &str, metric: Metric) -> Effect {
        let terms = Self::term(measured, cell, arm, metric);
        let found = measured.sum(&terms, Summed::InItsUnit, ALPHA);
        Effect {
            cell_id: cell.spec.id.clone(),
            arm: arm.to_owned(),
            baseline: measured.first.to_owned(),
            metric,
            is_paired: true,
            ..question::row(Question::Added(self.place), EffectScale::Difference, found.as_ref())
        }
    }

    /// The arm's added cost as a share of the reference's, for the first metric, with confidence `1 - alpha`; no
    /// estimate if the reference's is not distinguishable from zero.
    fn share(&self, measured: Measured<'_>, cell: &CellTrials<'_>, arm: &str, alpha: f64) -> Option<Effect> {
        let reference = self.spec.reference.as_str();
        let metric = *self.spec.metrics.first().filter(|_| arm != reference)?;
        let (of, over) =
            (Self::term(measured, cell, arm, metric), Self::term(measured, cell, reference, metric));
        let found = measured.quotient(&of, &over, Summed::InItsUnit, alpha);
        let question = Question::AddedShare(self.place);
        Some(Effect {
            cell_id: cell.spec.id.clone(),
            arm: arm.to_owned(),
            baseline: reference.to_owned(),
            metric,
            ..question::row_of_quotient(question, EffectScale::Ratio, found.as_ref())
        })
    }

    /// The arm with the smallest maximum share, and whether it is within the limit everywhere.
    fn least(&self, rows: &[Effect], limit: f64) -> Option<Effect> {
        let shares = || rows.iter().filter(|row| row.question == Question::AddedShare(self.place));
        let worst =
            |arm: &str| shares().filter(|row| row.arm == arm).filter_map(|row| row.estimate).reduce(f64::max);
        let arms: BTreeSet<&str> = shares().map(|row| row.arm.as_str()).collect();
        // The first in the study, if two are equal.
        let in_order = self.spec.arms.iter().map(String::as_str).filter(|arm| arms.contains(arm));
        let (arm, share) = in_order
            .filter_map(|arm| Some((arm, worst(arm)?)))
            .min_by(|(_, one), (_, other)| one.total_cmp(other))?;
        let limit = Goal::AtMost(limit);
        let is_enough = |row: &Effect| self.is_finished && row.units as usize >= UNITS_MIN;
        let outcome = |row: &Effect| {
            row.interval.filter(|_| is_enough(row)).map_or(Outcome::Open, |interval| limit.outcome(interval))
        };
        let outcomes: Vec<Outcome> = shares().filter(|row| row.arm == arm).map(outcome).collect();
        Some(Effect {
            question: Question::LeastAdded(self.place),
            arm: arm.to_owned(),
            baseline: self.spec.reference.clone(),
            metric: *self.spec.metrics.first()?,
            scale: EffectScale::Ratio,
            estimate: Some(share),
            outcome: Some(of_all(&outcomes)),
            ..Effect::default()
        })
    }
}

/// The outcome of a limit that must hold in every cell.
fn of_all(outcomes: &[Outcome]) -> Outcome {
    match () {
        () if outcomes.contains(&Outcome::Missed) => Outcome::Missed,
        () if outcomes.contains(&Outcome::Open) => Outcome::Open,
        () => Outcome::Met,
    }
}

#[cfg(test)]
mod tests {
    use weir_record::{spec::CellSpec, trial::TrialRecord};

    use super::*;
    use crate::{gate::ValidityGate, sample};

    const CELLS: [&str; 3] = ["one", "paced", "flood"];

    /// Three cells; `share` is reported but is not a candidate.
    fn study() -> StudySpec {
        let mut spec = sample::study(&["plain", "naive", "edge", "mesh", "share"], 6, 7);
        let cell = |id: &str| CellSpec { id: id.to_owned(), ..spec.cells[0].clone() };
        spec.cells = CELLS.map(cell).to_vec();
        let asked = |arms: &[&str], share_max: Option<f64>| AddedCostSpec {
            group: String::new(),
            cells: CELLS.map(str::to_owned).to_vec(),
            arms: arms.iter().map(|arm| (*arm).to_owned()).collect(),
            reference: "naive".to_owned(),
            metrics: vec![Metric::ServerCpuPerMessage, Metric::SwitchesPerMessage],
            share_max,
        };
        spec.added_costs = vec![asked(&["naive", "edge", "mesh"], Some(0.5)), asked(&["share"], None)];
        spec
    }

    fn trial(cell: &str, arm: &str, block: u32, cpu_us: f64) -> TrialRecord {
        let mut trial = sample::trial(cell, arm, block, cpu_us);
        let load = trial.load.get_or_insert_default();
        load.response.quantiles = vec![(0.5, 30_000)];
        let switches = if arm == "plain" { 2_000 } else { 3_100 };
        load.observed.get_or_insert_default().context_switches_voluntary = switches;
        trial
    }

    fn found(extra_us: &[(&str, [f64; 3])]) -> Vec<Effect> {
        found_after(extra_us, 6, true)
    }

    /// A machine on which the baseline costs 10 µs, and arms cost the given amounts more, increasing slightly with
    /// each block; after this number of blocks.
    fn found_after(extra_us: &[(&str, [f64; 3])], blocks: u32, is_finished: bool) -> Vec<Effect> {
        let spec = study();
        let mut trials = Vec::new();
        for (index, cell) in CELLS.into_iter().enumerate() {
            for block in 0..blocks {
                let drift = f64::from(block) * 0.5;
                trials.push(trial(cell, "plain", block, 10.0 + drift));
                for (arm, extra_us) in extra_us {
                    let wobble = 1.0 + 0.01 * f64::from(block);
                    trials.push(trial(cell, arm, block, 10.0 + drift + extra_us[index] * wobble));
                }
            }
        }
        let gate = ValidityGate::new(&trials);
        let trials: Vec<&TrialRecord> = trials.iter().collect();
        let cells: Vec<CellTrials<'_>> =
            spec.cells.iter().map(|cell| CellTrials::of(cell, &gate, &trials)).collect();
        all(&spec, Measured { gate: &gate, first: "plain" }, &cells, is_finished)
    }

    fn row<'r>(rows: &'r [Effect], question: Question, (cell, arm): (&str, &str)) -> &'r Effect {
        let is_it = |row: &&Effect| row.question == question && row.cell_id == cell && row.arm == arm;
        rows.iter().find(is_it).expect("there is a row")
    }

    fn least(rows: &[Effect]) -> (&str, Outcome) {
        let row = rows.iter().find(|row| row.question == Question::LeastAdded(0)).expect("there are shares");
        (row.arm.as_str(), row.outcome.expect("there is a limit"))
    }

    #[test]
    fn the_cost_is_what_stands_above_the_baseline_of_the_same_block() {
        let found = found(&[("naive", [8.0; 3]), ("mesh", [3.0; 3])]);
        let added = |arm: &str| row(&found, Question::Added(0), (CELLS[0], arm));
        let naive = added("naive");
        assert!((naive.estimate.expect("it has pairs") - 8.2).abs() < 0.01, "the drift cancels: {naive:?}");
        let (low, high) = naive.interval.expect("six pairs have one");
        // Half of t(0.995, 5) = 4.032 standard errors of 0.0611.
        assert!((low - 7.954).abs() < 0.01 && (high - 8.446).abs() < 0.01, "{low} {high}");
        let share = row(&found, Question::AddedShare(0), (CELLS[0], "mesh"));
        assert!((share.estimate.expect("both cost") - 0.375).abs() < 0.001);
        let is_of_switches = |row: &&Effect| row.arm == "mesh" && row.metric == Metric::SwitchesPerMessage;
        let switches = found.iter().find(is_of_switches).and_then(|row| row.estimate);
        assert!((switches.expect("they were counted") - 1.1).abs() < 1e-9);
        let is_share = |row: &Effect| row.question == Question::AddedShare(0);
        assert!(!found.iter().any(|row| is_share(row) && row.arm == "naive"), "it is the reference");
        let gone = row(&found, Question::AddedShare(0), (CELLS[0], "edge"));
        assert_eq!((added("edge").estimate, gone.estimate), (None, None), "it was not run");
    }

    #[test]
    fn the_least_is_the_one_whose_worst_cell_is_best_among_those_that_are_asked() {
        let found = found(&[
            ("naive", [8.0, 8.0, 8.0]),
            ("mesh", [3.0, 2.0, 1.0]),
            ("edge", [6.0, 1.0, 0.5]),
            ("share", [0.1, 0.1, 0.1]),
        ]);
        assert_eq!(least(&found), ("mesh", Outcome::Met));
        assert!(!found.iter().any(|row| row.question == Question::LeastAdded(1)), "no limit was asked for");
        let beside = found.iter().filter(|row| row.question == Question::AddedShare(1));
        assert_eq!(beside.count(), 3);
    }

    #[test]
    fn nothing_is_decided_before_the_end_or_from_few_blocks() {
        let extra_us = [("naive", [8.0; 3]), ("mesh", [3.0, 2.0, 1.0])];
        for (blocks, is_finished, outcome) in
            [(6, true, Outcome::Met), (6, false, Outcome::Open), (UNITS_MIN as u32 - 1, true, Outcome::Open)]
        {
            let found = found_after(&extra_us, blocks, is_finished);
            assert_eq!(least(&found), ("mesh", outcome), "{blocks} blocks");
            let share = row(&found, Question::AddedShare(0), (CELLS[0], "mesh"));
            assert!(share.estimate.is_some(), "what is known is shown");
        }
    }

    #[test]
    fn one_cell_beyond_the_limit_misses_it_and_a_reference_without_a_cost_leaves_it_open() {
        let missed = found(&[("naive", [8.0; 3]), ("mesh", [6.0, 1.0, 1.0])]);
        assert_eq!(least(&missed).1, Outcome::Missed);
        let open = found(&[("naive", [8.0, 8.0, -0.5]), ("mesh", [1.0, 1.0, 1.0])]);
        assert_eq!(least(&open).1, Outcome::Open);
        assert_eq!(row(&open, Question::AddedShare(0), (CELLS[2], "mesh")).estimate, None);
        assert!(!found(&[]).iter().any(|row| row.question == Question::LeastAdded(0)));
    }
}
