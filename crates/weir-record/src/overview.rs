//! A map in tables: means over its cells, its best cells, its failures, and how it scales with workers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{figure::Figure, finding::FailureCount};

/// The tables of cells in closed loop that differ in levels of factors alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overview {
    /// Which map of the study it is of, as in [`crate::grid::Grid::map`].
    #[serde(default)]
    pub map: u32,
    /// Its cells.
    pub cells: Vec<String>,
    /// Cells whose figures are of the far state, on a machine with two states. Means over these and others, and the
    /// best of them all, are of both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells_far: Vec<String>,
    /// The same of cells in which neither state had rounds enough, so that their figures are of both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells_in_both_states: Vec<String>,
    /// Arms over all cells.
    pub overall: Vec<MeanRow>,
    /// Arms at each number of connections; empty where there is one number only.
    pub by_connections: Vec<MeanRow>,
    /// Arms at each number of workers; likewise.
    pub by_workers: Vec<MeanRow>,
    /// Arms at each number of server CPUs; likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_server_cpus: Vec<MeanRow>,
    /// The best cell of each arm, by each quantity.
    pub best: Vec<BestCell>,
    /// The same among the cells of each number of workers, from the fewest on; empty where there is one number only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub best_by_workers: Vec<BestCell>,
    /// What failed, by number of connections.
    pub success: Vec<SuccessRow>,
    /// How each arm scales with workers, means over the lines of cells with the most server CPUs.
    pub scaling: Vec<ScalingMean>,
    /// The same for each line of cells that differ in workers alone.
    pub scaling_lines: Vec<Scaling>,
}

/// What a server does, in two ways whose difference shows without a generator of unlimited speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Messages a second: a lower bound where the generator was the limit.
    Throughput,
    /// Messages for each second of the server's CPU time, the inverse of its CPU per message.
    PerCpuSecond,
}

impl Quantity {
    /// Both, in the order in which they are shown.
    pub const ALL: [Self; 2] = [Self::Throughput, Self::PerCpuSecond];

    /// Stable name, as in exports.
    pub fn key(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::PerCpuSecond => "messages-per-cpu-second",
        }
    }
}

/// One arm over cells that share a level: geometric means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeanRow {
    /// The level; absent over all cells.
    pub level: Option<u64>,
    /// The arm.
    pub arm: String,
    /// Cells that the figures are means of: the same for every arm and level of a table.
    pub cells: u32,
    /// Those among them in which the generator was the limit, so that throughput is a lower bound.
    pub cells_bound: u32,
    /// Messages a second.
    pub throughput: Option<Figure>,
    /// The same for each CPU that the server's side has; absent where it is not pinned.
    pub throughput_per_cpu: Option<Figure>,
    /// Messages for each second of the server's CPU time.
    pub per_cpu_second: Option<Figure>,
    /// Throughput over the baseline's.
    pub throughput_ratio: Option<MeanRatio>,
    /// Messages a CPU-second over the baseline's.
    pub per_cpu_second_ratio: Option<MeanRatio>,
}

/// The geometric mean of the ratios of cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeanRatio {
    /// Arm over baseline.
    pub ratio: Figure,
    /// Cells in it: those in which the two may be compared.
    pub cells: u32,
    /// Cells in which the difference is known to go the other way.
    pub reversed: Vec<String>,
}

/// The cell in which an arm does most.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BestCell {
    /// The arm.
    pub arm: String,
    /// What it does most of.
    pub quantity: Quantity,
    /// The cell.
    pub cell_id: String,
    /// What it does there, with an interval that holds for all cells it was chosen among together.
    pub figure: Figure,
    /// Whether the generator was the limit there.
    pub is_bound: bool,
    /// Other cells that cannot be distinguished from it.
    pub ties: Vec<String>,
    /// The right share of what ended there.
    pub success: Option<f64>,
}

/// What became of the messages of an arm, counted over all trials, those that were set aside included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuccessRow {
    /// Connections.
    pub level: u64,
    /// The arm.
    pub arm: String,
    /// Messages that came back right.
    pub completed: u64,
    /// Those that failed.
    pub failed: u64,
    /// The same by class, without the classes nothing fell into.
    pub classes: Vec<FailureCount>,
    /// In flight when a run ended: neither right nor failed.
    pub cut_off_at_end: u64,
    /// The right share of what ended.
    pub success: Option<f64>,
    /// Its 99 % interval where each message fails by itself. Absent in results of earlier versions.
    #[serde(default)]
    pub success_interval: Option<(f64, f64)>,
    /// Trials.
    pub trials: u32,
    /// Those among them that gave no report: their messages are not counted anywhere.
    pub trials_without_report: u32,
}

/// How much of ideal scaling an arm reaches, over all lines of cells that have both numbers of workers and the most
/// server CPUs of the map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScalingMean {
    /// The arm.
    pub arm: String,
    /// Workers.
    pub workers: u32,
    /// Workers that they are compared with.
    pub workers_base: u32,
    /// Lines in the means.
    pub lines: u32,
    /// Those among them in which the generator was the limit in neither cell. The mean of throughput is over these
    /// alone.
    pub lines_free: u32,
    /// What of throughput.
    pub throughput: Option<Figure>,
    /// What of messages a CPU-second.
    pub per_cpu_second: Option<Figure>,
}

/// How much of ideal scaling an arm reaches between two cells that differ in workers alone.
///
/// For throughput it is `throughput(n) / (n * throughput(1))`. A CPU-second is a share of the CPUs already: for
/// messages a CPU-second it is their ratio, which is what a message costs with one worker over what it costs with many.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scaling {
    /// The arm.
    pub arm: String,
    /// What scales.
    pub quantity: Quantity,
    /// The cell with many workers.
    pub cell_id: String,
    /// The cell with fewest.
    pub cell_id_base: String,
    /// Workers of the former.
    pub workers: u32,
    /// Workers of the latter.
    pub workers_base: u32,
    /// The efficiency; 1 is ideal. Absent where nothing may be compared.
    pub efficiency: Option<Figure>,
    /// Rounds or blocks that both cells have; those of the cell with fewer, where they were given different numbers.
    pub rounds: u32,
    /// Whether the generator was the limit in the cell with many workers: the efficiency may be larger.
    pub is_bound: bool,
    /// The same in the cell with fewest: it may be smaller.
    pub is_base_bound: bool,
    /// Its whole interval is above 1.05: something else than workers was changed.
    pub is_alarm: bool,
    /// Possible causes, each checked against the records; empty without an alarm.
    pub candidates: Vec<ScalingCandidate>,
}

/// Beyond this efficiency a gain is no merit of more workers.
pub const EFFICIENCY_MAX: f64 = 1.05;

/// What may make an efficiency too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScalingCause {
    /// The generator was at its limit with fewest workers. Figures: share of the time its busiest thread had work.
    GeneratorAtLimit,
    /// More threads than CPUs. Figures: threads for each CPU.
    Oversubscribed,
    /// The workers of the cell with fewest were not busy, so that they were not what limited it. Figures: CPUs in use
    /// for each worker.
    ServerIdle,
    /// The figures of the cell with fewest scatter more. Figures: deviation over the rounds.
    BaseNoisier,
}

/// A possible cause, as far as the records say.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScalingCandidate {
    /// Which.
    pub cause: ScalingCause,
    /// Whether it was so; absent where nothing that would show it was recorded.
    pub holds: Option<bool>,
    /// What was found with fewest workers and with many.
    pub figures: Option<(f64, f64)>,
}

/// A row of a load tester's aggregate report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// Right responses.
    Samples,
    /// Mean time, in nanoseconds as all times.
    Mean,
    /// Median.
    Median,
    /// 90th percentile.
    P90,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// Largest.
    Max,
    /// Failures, of all that ended.
    Errors,
    /// Standard deviation.
    Deviation,
    /// Right responses a second of the windows.
    Throughput,
    /// Those of the best whole second, or a second of the best slice where arms take turns.
    Peak,
}

impl Statistic {
    /// The eleven rows.
    pub const ALL: [Self; 11] = [
        Self::Samples,
        Self::Mean,
        Self::Median,
        Self::P90,
        Self::P95,
        Self::P99,
        Self::Max,
        Self::Errors,
        Self::Deviation,
        Self::Throughput,
        Self::Peak,
    ];

    /// Their stable names, as in a study file.
    pub const KEYS: [&'static str; 11] = [
        "samples",
        "mean",
        "median",
        "p90",
        "p95",
        "p99",
        "max",
        "errors",
        "deviation",
        "throughput",
        "peak",
    ];

    /// Its stable name.
    pub fn key(self) -> &'static str {
        Self::KEYS[self as usize]
    }
}

/// The aggregate report of one server in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Aggregate {
    /// Cell.
    pub cell_id: String,
    /// Arm.
    pub arm: String,
    /// Trials that it sums up: those that are compared, and those that were set aside because responses failed.
    pub trials: u32,
    /// The throughput is only a lower bound: the generator was the limit.
    pub is_bound: bool,
    /// Its rows, as far as there are figures for them.
    pub rows: Vec<AggregateRow>,
}

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AggregateRow {
    /// Which.
    pub statistic: Statistic,
    /// The figure of all trials together: times from their merged histogram, never a mean of percentiles.
    pub value: f64,
    /// The smallest and the largest that a trial has by itself, where its samples are enough; absent for sums.
    pub range: Option<(f64, f64)>,
}
