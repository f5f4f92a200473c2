//! Two stored runs of a study side by side: what differs between them, and how the effects that each measured within
//! itself differ. Absolute figures stand beside each other and are not compared.

use serde::{Deserialize, Serialize};

use crate::{
    effect::{Effect, EffectScale},
    finding::Finding,
    goal::ComparisonSpec,
    machine::FactDifference,
    metric::Metric,
    spec::CellRole,
    verdict::Verdict,
};

/// Two runs. The other is compared with the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunPair {
    /// [`crate::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The first run.
    pub one: RunFacts,
    /// The other.
    pub other: RunFacts,
    /// What differs between the machines, or the machine at two times, by the names of the fingerprint.
    pub machine: Vec<FactDifference>,
    /// What differs in what was asked of both: CPUs, arms and cells of the same name.
    pub asked: Vec<FactDifference>,
    /// Cells and arms of the first run alone.
    pub only_one: Parts,
    /// Those of the other alone.
    pub only_other: Parts,
    /// Why nothing can be compared; empty where something can.
    pub obstacles: Vec<PairObstacle>,
    /// How the effects differ, the primary cell first.
    pub changes: Vec<Change>,
    /// Absolute figures of both.
    pub figures: Vec<FigurePair>,
    /// Thresholds on the changes.
    pub thresholds: Vec<ComparisonSpec>,
    /// What came of each, in the same order.
    pub answers: Vec<Effect>,
}

/// Which run it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// Name of the study.
    pub name: String,
    /// Seed of its choices.
    pub seed: u64,
    /// Version of Weir that ran it.
    pub weir_version: String,
    /// Kernel it ran on.
    pub kernel_release: String,
    /// Time of all its sessions.
    pub elapsed_ns: u64,
    /// Command that runs it again.
    pub reproduce: String,
}

/// Parts of a study that another lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// Cells, by their identifiers.
    pub cells: Vec<String>,
    /// Arms, by their names.
    pub arms: Vec<String>,
}

/// Why nothing of two runs can be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairObstacle {
    /// Other messages were sent.
    Protocols {
        /// Protocol of the first run.
        one: String,
        /// Protocol of the other.
        other: String,
    },
    /// The first run's schedule is not finished.
    OneUnfinished {
        /// Rounds and blocks that ran.
        blocks_done: u32,
        /// Those that were planned.
        blocks: u32,
    },
    /// The other's is not.
    OtherUnfinished {
        /// Rounds and blocks that ran.
        blocks_done: u32,
        /// Those that were planned.
        blocks: u32,
    },
    /// No cell is in both.
    NoCommonCell,
    /// No arm was compared with a baseline of the same name in a cell of both.
    NoCommonPair {
        /// Baseline of the first run.
        one: String,
        /// Baseline of the other.
        other: String,
    },
}

/// An effect as one run measured it, arm and baseline in the same rounds or blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEffect {
    /// Ratio, or difference in the metric's unit; absent where nothing was measured.
    pub figure: Option<f64>,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// Rounds or blocks it rests on.
    pub units: u32,
    /// The verdict of its run.
    pub verdict: Verdict,
}

/// How the effect of an arm against its baseline differs between two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Cell.
    pub cell_id: String,
    /// What may be claimed: the less of what both runs may.
    pub role: CellRole,
    /// Arm.
    pub arm: String,
    /// What it was compared with in both.
    pub baseline: String,
    /// What is compared.
    pub metric: Metric,
    /// Ratio: the other run's ratio over the first's. Difference: the other's less the first's.
    pub scale: EffectScale,
    /// The effect in the first run.
    pub one: RunEffect,
    /// In the other.
    pub other: RunEffect,
    /// How they differ, on that scale; absent where a side was not measured or must not be compared.
    pub figure: Option<f64>,
    /// Its interval, from the rounds of both.
    pub interval: Option<(f64, f64)>,
    /// Confidence of the interval.
    pub confidence: f64,
    /// Two-sided p of no change.
    pub p_value: Option<f64>,
    /// The same after Holm; present only for claims.
    pub p_value_holm: Option<f64>,
    /// Smallest change that these rounds find with 80 % power: a ratio less one, or a difference.
    pub detectable: Option<f64>,
    /// Whether the other run is better or worse for the arm, beside its baseline.
    pub verdict: Verdict,
    /// Why there is no verdict.
    pub reasons: Vec<Finding>,
}

/// An absolute figure in both runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigurePair {
    /// Cell.
    pub cell_id: String,
    /// Arm.
    pub arm: String,
    /// Metric.
    pub metric: Metric,
    /// In the first run.
    pub one: f64,
    /// In the other.
    pub other: f64,
}
