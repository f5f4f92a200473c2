//! The history of a question: what stored runs found, one after the other, by the commits that they are of. The format
//! is `docs/formats/history.md`.
//!
//! A *series* is one question: the same study, cell, arms and metric, or commands of the same names. Its runs are in
//! *stretches*: in one stretch all effects are against one reference program, on one kind of machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{effect::EffectScale, finding::MessageKind, metric::Metric, origin::Origin, verdict::Verdict};

/// Version of the document; raised when a field changes its meaning or disappears.
pub const HISTORY_VERSION: u32 = 1;

/// Series of all runs that were found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct History {
    /// Version of this document.
    pub schema_version: u32,
    /// One for each question, the one with the newest run first.
    pub series: Vec<HistorySeries>,
    /// Series that were left out, because there are too many.
    #[serde(default)]
    pub series_left_out: u32,
    /// What was found and could not be read, or is not finished.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<HistoryLeftOut>,
    /// Older results that were not read, because there are so many. References come from those that were read.
    #[serde(default)]
    pub results_unread: u32,
}

/// A stored run that is in no series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryLeftOut {
    /// Where it is stored.
    pub place: String,
    /// Why.
    pub reason: HistoryLack,
}

/// Why a stored run is in no series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HistoryLack {
    /// It cannot be read, or is something else.
    Unreadable,
    /// It is longer than what is read.
    TooLong,
    /// It is not finished.
    Unfinished,
    /// A later version of Weir wrote it.
    Newer,
}

/// The runs of one question, in the order in which they began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistorySeries {
    /// What it is of.
    pub of: HistoryQuestion,
    /// The arm, or the command.
    pub arm: String,
    /// What it is compared with.
    pub baseline: String,
    /// What is compared.
    pub metric: Metric,
    /// What is counted, in a study.
    #[serde(default)]
    pub kind: MessageKind,
    /// Ratio or difference.
    pub scale: EffectScale,
    /// Stretches by their numbers.
    pub stretches: Vec<HistoryStretch>,
    /// The newest runs.
    pub runs: Vec<HistoryRun>,
    /// Older runs that are not among them.
    pub runs_older: u32,
}

/// What a series is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HistoryQuestion {
    /// Runs of a study.
    Study {
        /// Its name.
        name: String,
        /// The cell.
        cell_id: String,
    },
    /// Comparisons of commands.
    Commands {
        /// Parameters and their values; empty without.
        parameters: Vec<(String, String)>,
    },
}

impl Default for HistoryQuestion {
    fn default() -> Self {
        Self::Commands { parameters: Vec::new() }
    }
}

/// Runs with one reference, on one kind of machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryStretch {
    /// Its number in the series, from 1.
    pub number: u32,
    /// Why it is another one than that of the run before; absent in the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub break_by: Option<HistoryBreak>,
    /// The baseline of its first run, which every effect of the stretch is against.
    pub reference: HistoryProgram,
    /// CPU model.
    pub cpu_model: String,
    /// CPUs online.
    pub cpus_online: u32,
    /// Release of the kernel.
    pub kernel_release: String,
}

/// What ends one stretch and begins another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HistoryBreak {
    /// The baseline is another program, and no run of the stretch measured it.
    Reference,
    /// The machine is of another group: other CPUs, or another kernel.
    Machine,
}

/// A program as it was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct HistoryProgram {
    /// What it was called.
    pub name: String,
    /// What distinguishes it from another: its words or options, with the contents of files in the place of their
    /// paths.
    pub identity: String,
    /// Hashes of its files, with blanks between, or the version of Weir; empty where that is not known.
    pub content: String,
}

/// What one run found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryRun {
    /// Where it is stored.
    pub place: String,
    /// When it began, in seconds since 1970; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_unix_s: Option<u64>,
    /// Commit, branch, labels and a note.
    #[serde(default, skip_serializing_if = "Origin::is_empty")]
    pub origin: Origin,
    /// Number of its stretch.
    pub stretch: u32,
    /// The program that was compared with the baseline.
    pub program: HistoryProgram,
    /// Its effect against its own baseline.
    pub effect: HistoryFigure,
    /// Confidence of the interval.
    pub level: f64,
    /// What followed.
    pub verdict: Verdict,
    /// The effect against the reference of the stretch; absent where the run has no figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_reference: Option<HistoryFigure>,
    /// How many effects that is the product (of differences the sum) of: 1 where the baseline is the reference.
    pub links: u32,
    /// Whether it differs from the run before it in its stretch, and which way. Absent where the content of the
    /// reference is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<HistoryChange>,
}

/// An effect with its interval, on the scale of the series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryFigure {
    /// The effect; absent where nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<f64>,
    /// Its interval; absent where there are too few units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
}

/// Which way a run differs from the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HistoryChange {
    /// Its interval lies below.
    Down,
    /// Its interval lies above.
    Up,
}
