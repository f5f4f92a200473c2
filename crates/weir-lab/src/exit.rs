//! What a session's end means to a script: the documented exit codes.

use weir_record::{study::StudyResult, verdict::Verdict};
use weir_store::StoreError;

use crate::run::{Ended, RunError};

/// Exit codes of `weir study`. They are part of the interface and never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// The primary comparison has a verdict: better, worse or equivalent.
    Decided = 0,
    /// Something failed that should not.
    RuntimeError = 1,
    /// What was asked cannot be meant.
    Usage = 2,
    /// The primary comparison's data do not decide.
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

    /// Code of a stored result, for `weir report`.
    pub fn of_result(result: &StudyResult) -> Self {
        if !(result.missing_arms.is_empty() && result.spec.missing_cells.is_empty()) {
            return Self::Environment;
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
