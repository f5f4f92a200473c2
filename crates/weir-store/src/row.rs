//! Plain data that the store writes and reads.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use weir_record::{machine::Fingerprint, spec::StudySpec, study::MissingArm, trial::TrialRecord};

use crate::error::StoreError;

/// Facts known when a study begins.
#[derive(Clone, Debug, PartialEq)]
pub struct NewStudy {
    /// The requested study.
    pub spec: StudySpec,
    /// The machine on which it runs.
    pub fingerprint: Fingerprint,
    /// Arms that cannot run here.
    pub missing_arms: Vec<MissingArm>,
    /// Command that runs the study again.
    pub reproduce: String,
}

/// The study as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyHeader {
    /// The requested study, before pilots fixed any rate.
    pub spec_asked: StudySpec,
    /// The study that runs: the same with every rate fixed, once the pilots ran.
    pub spec: StudySpec,
    /// The machine of the first session.
    pub fingerprint: Fingerprint,
    /// Arms that could not run when the study began.
    pub missing_arms: Vec<MissingArm>,
    /// Command that runs the study again.
    pub reproduce: String,
    /// Time spent in all sessions so far.
    pub elapsed_ns: u64,
}

/// A stored study in brief, without its trials.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyBrief {
    /// The requested study.
    pub spec: StudySpec,
    /// The machine of the first session.
    pub fingerprint: Fingerprint,
    /// When it was made, in seconds since 1970; absent if the stored text is no date.
    pub created_unix_s: Option<u64>,
    /// Time spent in all sessions so far.
    pub elapsed_ns: u64,
    /// Blocks on disk by cell, without further attempts. Pilots have separate cells.
    pub blocks: BTreeMap<String, u32>,
}

/// A stored result in brief: only the fields that results of every version have.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ResultBrief {
    /// Version of its records.
    pub schema_version: u32,
    /// Arms that could not run.
    pub missing_arms: Vec<MissingArm>,
    /// Whether every planned block was finished.
    pub complete: bool,
}

/// Key of a block: its cell, its number and the attempt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockKey {
    /// Cell.
    pub cell_id: String,
    /// Block number in the cell, from 0.
    pub block: u32,
    /// Attempt, from 0.
    pub attempt: u32,
}

/// One stored block with its trials in the order they ran.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredBlock {
    /// Its key.
    pub key: BlockKey,
    /// Its trials.
    pub trials: Vec<TrialRecord>,
}

/// Serialises a record and checks that it can be read back. JSON has no infinity and no NaN, and a record that holds
/// one would make the whole study unreadable later.
pub(crate) fn to_json<T: Serialize + DeserializeOwned>(what: &str, value: &T) -> Result<String, StoreError> {
    let unstorable = |error: serde_json::Error| StoreError::Unstorable {
        what: what.to_owned(),
        reason: format!("it cannot be read back from JSON ({error})"),
    };
    let text = serde_json::to_string(value).map_err(unstorable)?;
    serde_json::from_str::<T>(&text).map_err(unstorable)?;
    Ok(text)
}

/// Converts to SQLite's signed integers. A value that does not fit (292 years in nanoseconds) is stored as the
/// largest.
pub(crate) fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
