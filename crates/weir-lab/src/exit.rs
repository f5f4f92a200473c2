//! What a session's end means to a script: the documented exit codes.

use weir_record::{goal::Outcome, study::StudyResult, verdict::Verdict};
use weir_store::StoreError;

use crate::run::{Ended, RunError};

/// Exit codes of `weir study`. They are part of the interface and never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// The primary comparison has a verdict: better, worse or equivalent. Of a study with thresholds: all hold.
    Decided = 0,
    /// Something failed that should not.
    RuntimeError = 1,
    /// What was asked cannot be meant.
    Usage = 2,
    /// A threshold does not hold: the whole interval is beyond it.
    Threshold = 10,
    /// The primary comparison's data do not decide. Of a study with thresholds: those of one of them.
    Inconclusive = 11,
    /// The primary comparison's validity checks failed, or the blocks are of another machine.
    NotComparable = 12,
    /// The environment cannot run this, or not all of it; the report names what is missing.
    Environment = 13,
    /// Interrupted; finished blocks are kept.
    Interrupted = 130,
}

impl ExitCode {
    /// The number.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Code of a session that ended in good order. An interruption says more than a missing arm, a missing arm more
    /// than the verdict: a script that reads 0 must be able to rely on the whole study.
    pub fn of_session(ended: Ended, result: &StudyResult) -> Self {
        match ended {
            Ended::Interrupted => Self::Interrupted,
            Ended::ArmsMissing => Self::Environment,
            Ended::Complete | Ended::TimeCap | Ended::StayedFar => Self::of_result(result),
        }
    }

    /// Code of a result without a missing arm or cell: that of its thresholds, or of its primary comparison where it
    /// has none.
    fn of_result(result: &StudyResult) -> Self {
        if !(result.missing_arms.is_empty() && result.spec.missing_cells.is_empty()) {
            return Self::Environment;
        }
        let thresholds = || result.answers.iter().filter(|answer| answer.asked.is_threshold);
        if thresholds().next().is_some() {
            let is_any = |outcome| thresholds().any(|answer| answer.outcome == Some(outcome));
            return match () {
                () if is_any(Outcome::Missed) => Self::Threshold,
                () if is_any(Outcome::Open) => Self::Inconclusive,
                () => Self::Decided,
            };
        }
        match result.verdict {
            Verdict::Better | Verdict::Worse | Verdict::Equivalent => Self::Decided,
            Verdict::Inconclusive | Verdict::NoClaim => Self::Inconclusive,
            Verdict::NotComparable => Self::NotComparable,
        }
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

/// Whether another folder was meant.
fn is_wrong_folder(error: &StoreError) -> bool {
    matches!(error, StoreError::NotFound { .. } | StoreError::Exists { .. } | StoreError::NotAStore { .. })
}
