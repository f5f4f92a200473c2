//! What the kernel and the engines say of an arm beside its figures: rows, each with who says it.
//!
//! Evidence is read in slices of its own. They are in no figure, so that nothing that is compared was ever observed by
//! more than its clocks.

use serde::{Deserialize, Serialize};

use crate::trial::SliceRecord;

/// How evidence is come by, the cheapest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rung {
    /// L0: what an engine counts of itself.
    Engine,
    /// L1: what the kernel keeps of every process and thread.
    #[default]
    Process,
    /// L2: programs at the kernel's tracepoints.
    Programs,
    /// L3: `strace`, which distorts what it sees.
    Strace,
}

impl Rung {
    /// Its name in records and exports.
    pub fn key(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Process => "process",
            Self::Programs => "programs",
            Self::Strace => "strace",
        }
    }
}

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
