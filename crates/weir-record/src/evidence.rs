//! What the kernel and the engines say of an arm beside its figures: rows, each with who says it.
//!
//! Evidence is read in slices of its own. They are in no figure, so that nothing that is compared was ever observed by
//! more than its clocks.

use serde::{Deserialize, Serialize};

use crate::{observation::Rung, trial::SliceRecord};

/// One number, over one slice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// What it is of: `engine`, `process`, `thread NAME`, `call NAME`.
    pub source: String,
    /// What it counts, with its unit: `cpu-ns`, `context-switches-voluntary`.
    pub key: String,
    /// How much of it there was.
    pub value: f64,
}

/// A slice of evidence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EvidenceSlice {
    /// The highest rung that observed it. Slices of [`Rung::Process`] stand beside those of a higher one, and show what
    /// observing costs.
    pub rung: Rung,
    /// Its messages and clocks; `permutation` counts the pairs of a round.
    pub slice: SliceRecord,
    /// What was observed.
    pub readings: Vec<Reading>,
}
