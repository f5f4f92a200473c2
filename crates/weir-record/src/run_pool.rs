//! Several stored runs of one study, pooled: what the effects that each run measured within itself have in common, how
//! far they lie apart beyond their own intervals, and where the next run can be expected. The unit is a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    effect::EffectScale, finding::Finding, machine::FactDifference, metric::Metric, spec::CellRole,
    verdict::Verdict,
};

/// Runs of one study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunPool {
    /// [`crate::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Name of the study.
    pub study: String,
    /// Every run that was given, in the order in which they began.
    pub runs: Vec<PoolRun>,
    /// Groups of machines that share CPU model, architecture, number of CPUs and kernel, in the order of their first
    /// runs.
    pub groups: Vec<MachineGroup>,
    /// Index into `effects` of the primary comparison; none where no run has one.
    pub primary: Option<usize>,
    /// The effects of every comparison that a run has, the primary one first.
    pub effects: Vec<PooledEffect>,
}

/// One of the runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PoolRun {
    /// Its number in the pool, from 1.
    pub number: u32,
    /// Where it is stored, as it was named.
    pub place: String,
    /// When it ran; absent where that is not known.
    pub period: Option<Period>,
    /// Time of all its sessions.
    pub elapsed_ns: u64,
    /// Seed of its choices.
    pub seed: u64,
    /// Version of Weir that ran it.
    pub weir_version: String,
    /// Number of its machine's group.
    pub group: u32,
    /// Why the whole run is left out; absent where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
}

/// When a run ran, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Period {
    /// When its first session began.
    pub began_unix_s: u64,
    /// When its last one ended.
    pub ended_unix_s: u64,
    /// Sessions; it stood still between them.
    pub sessions: u32,
}

/// Machines that share what decides a cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineGroup {
    /// Its number, from 1.
    pub number: u32,
    /// CPU model name.
    pub cpu_model: String,
    /// `uname -m`.
    pub architecture: String,
    /// CPUs online.
    pub cpus_online: u32,
    /// `uname -r`.
    pub kernel_release: String,
    /// Numbers of the runs on it.
    pub runs: Vec<u32>,
}

/// The effect of an arm against its baseline over several runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PooledEffect {
    /// Cell.
    pub cell_id: String,
    /// What may be claimed: the least of what the runs may.
    pub role: CellRole,
    /// Arm.
    pub arm: String,
    /// What it was compared with in every run.
    pub baseline: String,
    /// What is compared.
    pub metric: Metric,
    /// Ratio of the arm over its baseline, or difference in the metric's unit.
    pub scale: EffectScale,
    /// All runs together.
    pub all: PooledFigure,
    /// The runs of each group of machines; empty where there is one group.
    pub groups: Vec<GroupFigure>,
    /// What each run measured, in the order in which they began.
    pub runs: Vec<RunFigure>,
    /// Runs that are not in it, and why; those that are left out of everything are not named again.
    pub left_out: Vec<RunLeftOut>,
    /// p of no effect over all runs after Holm; present only for claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_value_holm: Option<f64>,
    /// What all runs together say of the arm.
    pub verdict: Verdict,
}

/// What several runs have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PooledFigure {
    /// Runs.
    pub runs: u32,
    /// Smallest and largest figure of a run; absent without a run.
    pub range: Option<(f64, f64)>,
    /// The common figure on the effect's scale; absent where runs are not pooled.
    pub figure: Option<f64>,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// Confidence of intervals and of the ranges of the next run.
    pub confidence: f64,
    /// Two-sided p of no effect.
    pub p_value: Option<f64>,
    /// Standard deviation of effects between runs beyond what their own errors explain: a ratio less one, or a
    /// difference.
    pub between: Option<f64>,
    /// Range of the next run's effect; absent below five runs.
    pub next_effect: Option<(f64, f64)>,
    /// Range of the figure that the next run prints, which has its own error as well.
    pub next_figure: Option<(f64, f64)>,
    /// Why there is no common figure, or no range of the next run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<PoolLack>,
}

/// What a pooled figure lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PoolLack {
    /// There are too few runs for an interval.
    Interval {
        /// Fewest that have one.
        runs_min: u32,
    },
    /// There are too few runs to say where the next one lies.
    Next {
        /// Fewest that say it.
        runs_min: u32,
    },
    /// The figures cannot be pooled: one of them is not finite.
    NotFinite,
}

/// The runs of one group of machines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupFigure {
    /// Number of the group.
    pub group: u32,
    /// What its runs have in common.
    pub pooled: PooledFigure,
}

/// What one run measured, arm and baseline in the same rounds or blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunFigure {
    /// Number of the run.
    pub run: u32,
    /// Number of its machine's group.
    pub group: u32,
    /// Ratio, or difference in the metric's unit.
    pub figure: f64,
    /// Its interval in its own run.
    pub interval: Option<(f64, f64)>,
    /// Its standard error: of the logarithm of a ratio, or of a difference.
    pub standard_error: f64,
    /// Rounds or blocks it rests on.
    pub units: u32,
    /// Messages a second that were offered, where the cell has a rate; those of a share of a capacity differ from run
    /// to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_second: Option<f64>,
    /// The verdict of its run.
    pub verdict: Verdict,
}

/// A run that is not in an effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunLeftOut {
    /// Its number.
    pub run: u32,
    /// Why.
    pub reason: LeftOut,
}

/// Why a run is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LeftOut {
    /// It is of another study.
    OtherStudy {
        /// Its name.
        name: String,
    },
    /// It is the same run as another, or a copy of it.
    SameRun {
        /// Number of that one.
        run: u32,
    },
    /// Its schedule is not finished.
    Unfinished {
        /// Rounds and blocks that ran.
        blocks_done: u32,
        /// Those that were planned.
        blocks: u32,
    },
    /// It asked or ran something else than most runs: the facts that differ, theirs first.
    AskedDifferently {
        /// Facts, by name.
        facts: Vec<FactDifference>,
    },
    /// It does not have the cell.
    NoCell,
    /// It does not have the arm, or the arm could not run.
    NoArm,
    /// The arm was compared with something else.
    OtherBaseline {
        /// With what.
        baseline: String,
    },
    /// It has no figure of the metric.
    NotMeasured,
    /// It is not comparable in its own run.
    NotComparable {
        /// Why.
        reasons: Vec<Finding>,
    },
    /// It was measured in another state of the machine than most runs.
    OtherState {
        /// Whether that is the state in which cross-core round trips are long.
        is_far: bool,
    },
}

/// A run among earlier runs of the same study on the same kind of machine, by its primary comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AmongRuns {
    /// Cell.
    pub cell_id: String,
    /// Arm.
    pub arm: String,
    /// Baseline.
    pub baseline: String,
    /// What is compared.
    pub metric: Metric,
    /// Ratio or difference.
    pub scale: EffectScale,
    /// The figure of this run.
    pub figure: f64,
    /// What the earlier runs have in common.
    pub earlier: PooledFigure,
}

impl AmongRuns {
    /// Whether this run lies outside the range that the earlier ones predict; absent where they predict none.
    pub fn is_outside(&self) -> Option<bool> {
        let (low, high) = self.earlier.next_figure?;
        Some(self.figure < low || high < self.figure)
    }
}
