//! The documented exit codes: how a session or a comparison of two runs ended, for scripts.

use weir_record::{
    commands::{CommandComparison, CommandEnd, CommandFinding},
    effect::Effect,
    finding::{Finding, WitnessBearing},
    goal::{ComparisonSpec, Outcome},
    run_pair::RunPair,
    run_pool::RunPool,
    study::StudyResult,
    verdict::Verdict,
};
use weir_store::StoreError;

use crate::run::{Ended, RunError};

/// Exit codes of `weir study`. They are part of the interface and never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// The primary comparison has a verdict: better, worse or equivalent. With thresholds: all hold.
    Decided = 0,
    /// Something failed that should not.
    RuntimeError = 1,
    /// The request is invalid.
    Usage = 2,
    /// A threshold does not hold: the whole interval is beyond it.
    Threshold = 10,
    /// The data of the primary comparison are inconclusive. With thresholds: an interval includes the bound.
    Inconclusive = 11,
    /// The primary comparison's validity checks failed, or those of a threshold; or the blocks are of another machine.
    NotComparable = 12,
    /// The environment cannot run this, or not all of it; the report names what is missing.
    Environment = 13,
    /// The baseline of the comparison is not there: a stored run, or a program.
    NoBaseline = 14,
    /// Interrupted; finished blocks are kept.
    Interrupted = 130,
}

impl ExitCode {
    /// The number.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Code of a session that ended in good order. An interruption takes precedence over a missing arm, and a missing
    /// arm over the verdict: a script that reads 0 must be able to rely on the whole study.
    pub fn of_session(ended: Ended, result: &StudyResult) -> Self {
        match ended {
            Ended::Interrupted => Self::Interrupted,
            Ended::ArmsMissing => Self::Environment,
            Ended::Complete | Ended::TimeCap | Ended::StayedFar => Self::of_result(result),
        }
    }

    /// Code of a result without a missing arm or cell: the code of its thresholds, or else of its primary comparison.
    pub fn of_result(result: &StudyResult) -> Self {
        if !(result.missing_arms.is_empty() && result.spec.missing_cells.is_empty()) {
            return Self::Environment;
        }
        if let Some(code) = Self::of_thresholds(result.asked()) {
            return code;
        }
        Self::of_verdict(result.verdict)
    }

    /// Code of two runs side by side: the code of the thresholds, or else whether anything could be compared.
    pub fn of_pair(pair: &RunPair) -> Self {
        let is_compared = pair.changes.iter().any(|change| change.figure.is_some());
        match Self::of_thresholds(pair.thresholds.iter().zip(&pair.answers)) {
            Some(code) if is_compared => code,
            None if is_compared => Self::Decided,
            _ => Self::NotComparable,
        }
    }

    /// Code of compared commands, in this order: what ended the comparison, what could not run or is not comparable,
    /// the thresholds, or else the verdict on the first command that was compared.
    pub fn of_commands(comparison: &CommandComparison) -> Self {
        let is_baseline = |name: &String| comparison.commands.first().is_some_and(|it| it.name == *name);
        let left_out = comparison.findings.iter().filter_map(|found| match found {
            CommandFinding::NotStarted { command, .. }
            | CommandFinding::ServerNotReady { command, .. }
            | CommandFinding::ServersCollide { command, .. } => Some((command, Self::Environment)),
            CommandFinding::Failed { command, .. } | CommandFinding::ServerEnded { command, .. } => {
                Some((command, Self::NotComparable))
            }
            CommandFinding::LoadFailed { command, failed, runs, .. } if failed == runs => {
                Some((command, Self::NotComparable))
            }
            _ => None,
        });
        let left_out: Vec<(&String, Self)> = left_out.collect();
        match comparison.ended {
            CommandEnd::Interrupted => return Self::Interrupted,
            CommandEnd::Broken => return Self::RuntimeError,
            _ if left_out.iter().any(|(name, _)| is_baseline(name)) => return Self::NoBaseline,
            _ => {}
        }
        if let Some((_, code)) = left_out.iter().find(|(_, code)| *code == Self::Environment) {
            return *code;
        }
        let thresholds =
            Self::of_thresholds(comparison.thresholds_asked.iter().zip(&comparison.thresholds.rows));
        let has_barred = comparison.effects.comparisons().any(|row| row.verdict == Verdict::NotComparable);
        match thresholds {
            Some(Self::Threshold) => Self::Threshold,
            _ if has_barred || !left_out.is_empty() => Self::NotComparable,
            Some(code) => code,
            None => Self::of_verdict(comparison.verdict()),
        }
    }

    /// Code of several runs together: whether something could be pooled, whether more runs would do, or nothing is
    /// comparable.
    pub fn of_pool(pool: &RunPool) -> Self {
        match pool.effects.iter().any(|it| it.all.figure.is_some()) {
            true => Self::Decided,
            false if pool.effects.iter().any(|it| !it.runs.is_empty()) => Self::Inconclusive,
            false => Self::NotComparable,
        }
    }

    /// Code of the runs of one command, with the meanings of a single run: the code of the pooled primary comparison,
    /// unless a run lacks an arm or a cell.
    pub fn of_pooled_primary(pool: &RunPool, results: &[&StudyResult]) -> Self {
        let lacks = |it: &&StudyResult| !(it.missing_arms.is_empty() && it.spec.missing_cells.is_empty());
        if results.iter().any(lacks) {
            return Self::Environment;
        }
        let primary = pool.primary.and_then(|index| pool.effects.get(index));
        primary.map_or(Self::NotComparable, |effect| Self::of_verdict(effect.verdict))
    }

    fn of_verdict(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Better | Verdict::Worse | Verdict::Equivalent => Self::Decided,
            Verdict::Inconclusive | Verdict::NoClaim => Self::Inconclusive,
            Verdict::NotComparable => Self::NotComparable,
        }
    }

    /// Code of all thresholds together; `None` without a threshold.
    fn of_thresholds<'r>(asked: impl Iterator<Item = (&'r ComparisonSpec, &'r Effect)>) -> Option<Self> {
        let thresholds: Vec<Self> = asked.filter_map(|(asked, row)| Self::of_threshold(asked, row)).collect();
        let by_weight = [Self::Threshold, Self::NotComparable, Self::Inconclusive, Self::Decided];
        by_weight.into_iter().find(|code| thresholds.contains(code))
    }

    /// Code of a threshold; `None` for a goal. An interval that includes the bound is inconclusive; wrong answers or
    /// a schedule that was cut are not comparable.
    fn of_threshold(asked: &ComparisonSpec, row: &Effect) -> Option<Self> {
        let is_width = |reason: &Finding| {
            matches!(
                reason,
                Finding::IncludesBound { .. }
                    | Finding::TooFewUnits { .. }
                    | Finding::WithinPlacebos { .. }
                    | Finding::Witness { bearing: WitnessBearing::Uncertain, .. }
            )
        };
        let code = match row.outcome? {
            Outcome::Met => Self::Decided,
            Outcome::Missed => Self::Threshold,
            Outcome::Open if row.reasons.iter().all(is_width) => Self::Inconclusive,
            Outcome::Open => Self::NotComparable,
        };
        asked.is_threshold.then_some(code)
    }

    /// Code of a session that broke off.
    pub fn of_error(error: &RunError) -> Self {
        match error {
            RunError::Store { source, .. } if is_wrong_folder(source) => Self::Usage,
            RunError::Store { .. } | RunError::Busy { .. } => Self::RuntimeError,
            RunError::Usage(_) => Self::Usage,
            RunError::Environment(_) => Self::Environment,
            RunError::OtherMachine { .. } => Self::NotComparable,
        }
    }
}

/// Whether the user probably meant another folder.
fn is_wrong_folder(error: &StoreError) -> bool {
    matches!(error, StoreError::NotFound { .. } | StoreError::Exists { .. } | StoreError::NotAStore { .. })
}

#[cfg(test)]
mod tests {
    use weir_judge::{
        compare::Run,
        judge,
        pool::{self, PlacedRun},
        progress::Progress,
        sample,
    };
    use weir_record::{
        effect::Question,
        finding::{Witness, WitnessFigure},
        goal::{Goal, Side},
        metric::Metric,
        study::MissingArm,
    };

    use super::*;

    /// A bound, and what came of it.
    fn threshold(outcome: Outcome, reasons: Vec<Finding>) -> (ComparisonSpec, Effect) {
        let of =
            Side { arm: "new".to_owned(), cell_id: "c10".to_owned(), metric: Metric::ServerCpuPerMessage };
        let asked = ComparisonSpec { of, to: Vec::new(), goal: Some(Goal::AtMost(1.03)), is_threshold: true };
        let row =
            Effect { question: Question::Asked(0), outcome: Some(outcome), reasons, ..Effect::default() };
        (asked, row)
    }

    #[test]
    fn what_is_not_known_for_another_reason_than_a_wide_interval_cannot_be_let_pass() {
        let code = |outcome, reasons| {
            let (asked, row) = threshold(outcome, reasons);
            ExitCode::of_threshold(&asked, &row)
        };
        assert_eq!(code(Outcome::Met, Vec::new()), Some(ExitCode::Decided));
        assert_eq!(code(Outcome::Missed, Vec::new()), Some(ExitCode::Threshold));
        let wide = vec![Finding::IncludesBound { bound: 1.03 }];
        assert_eq!(code(Outcome::Open, wide), Some(ExitCode::Inconclusive));
        let within = vec![Finding::WithinPlacebos { floor: 0.05 }];
        assert_eq!(code(Outcome::Open, within), Some(ExitCode::Inconclusive), "as a verdict on it is");
        let held = |bearing: WitnessBearing| {
            let seen = WitnessFigure { ratio: 1.02, interval: (0.97, 1.07), units: 12 };
            vec![Finding::Witness { witness: Witness::MachineCpu, seen, bearing }]
        };
        assert_eq!(code(Outcome::Open, held(WitnessBearing::Uncertain)), Some(ExitCode::Inconclusive));
        assert_eq!(code(Outcome::Open, held(WitnessBearing::Contradicts)), Some(ExitCode::NotComparable));
        let others = [
            Finding::NoUnitLeft,
            Finding::Unfinished { blocks_done: 3, blocks: 12 },
            Finding::NoWitness { witness: Witness::MachineCpu },
        ];
        for reason in others {
            let reasons = vec![Finding::IncludesBound { bound: 1.03 }, reason];
            assert_eq!(code(Outcome::Open, reasons), Some(ExitCode::NotComparable));
        }
        let (mut goal, missed) = threshold(Outcome::Missed, Vec::new());
        goal.is_threshold = false;
        assert_eq!(ExitCode::of_threshold(&goal, &missed), None, "a goal fails nothing");
    }

    /// Runs of the sample study, uring at these ratios of epoll, pooled.
    fn pool_of(ratios: &[f64]) -> (RunPool, Vec<StudyResult>) {
        let run = |(seed, ratio): (u64, &f64)| {
            let of_block = |block: u32| {
                let own = 1.0 + 0.004 * (f64::from(block * 5 % 8) / 8.0 - 0.5);
                [("epoll", 10.0), ("uring", 10.0 * ratio * own)]
                    .map(|(arm, cpu_us)| sample::trial("c100-d1-m64-closed", arm, block, cpu_us))
            };
            let trials: Vec<_> = (0..8).flat_map(of_block).collect();
            judge::judged(&sample::study(&["epoll", "uring"], 8, seed), &trials)
        };
        let results: Vec<StudyResult> = (1..).zip(ratios).map(run).collect();
        let progress = Progress { blocks_done: 8, blocks: 8, blocks_to_repeat: 0, has_near_state: false };
        let placed = |result| PlacedRun { run: Run { result, progress: &progress }, place: "" };
        (pool::pool(&results.iter().map(placed).collect::<Vec<_>>()), results)
    }

    #[test]
    fn a_pool_ends_as_what_it_has_in_common_and_repeated_runs_as_a_single_one() {
        let codes = |ratios: &[f64], change: fn(&mut StudyResult)| {
            let (pool, mut results) = pool_of(ratios);
            results.iter_mut().for_each(change);
            let all: Vec<&StudyResult> = results.iter().collect();
            (ExitCode::of_pool(&pool), ExitCode::of_pooled_primary(&pool, &all))
        };
        let keep: fn(&mut StudyResult) = |_| {};
        assert_eq!(codes(&[0.78, 0.79, 0.80], keep), (ExitCode::Decided, ExitCode::Decided));
        // The ratios are too far apart for a verdict, but there is a pooled figure.
        assert_eq!(codes(&[0.7, 1.3, 1.0], keep), (ExitCode::Decided, ExitCode::Inconclusive));
        assert_eq!(codes(&[0.78, 0.79], keep), (ExitCode::Inconclusive, ExitCode::Inconclusive));
        assert_eq!(codes(&[], keep), (ExitCode::NotComparable, ExitCode::NotComparable));
        let missing: fn(&mut StudyResult) = |it| {
            let reason = Finding::NoUnitLeft;
            it.missing_arms.push(MissingArm { name: "poll".to_owned(), reason, unlock: None });
        };
        assert_eq!(codes(&[0.78, 0.79, 0.80], missing).1, ExitCode::Environment);
    }
}
