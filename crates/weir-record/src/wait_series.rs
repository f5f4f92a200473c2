//! How an arm waited over time: its measurement points interval by interval, part after part, beside what was
//! published of the same experiment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{storage::WaitingInterval, text::Text};

/// What differs from part to part of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SeriesKind {
    /// The load beside one job that goes on: its background cores.
    Load,
    /// The setting of a way to wait, under one load. Each part is a separate trial.
    Setting,
}

/// The four figures of the published measurement tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SeriesMetric {
    /// Share of the operations that were complete when their sleep ended.
    MissRate,
    /// Operations a second.
    Iops,
    /// Requested sleep over all operations.
    EffectiveSleep,
    /// Share of the time that the waiting thread was on its CPU.
    CpuShare,
}

impl SeriesMetric {
    /// In the order in which they are drawn.
    pub const ALL: [Self; 4] = [Self::MissRate, Self::Iops, Self::EffectiveSleep, Self::CpuShare];
}

/// One value of each figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitFigures {
    /// See [`SeriesMetric::MissRate`].
    pub miss_rate: f64,
    /// Operations a second.
    pub iops: f64,
    /// Nanoseconds an operation.
    pub sleep_effective_ns: f64,
    /// Share of the time.
    pub cpu_share: f64,
}

impl WaitFigures {
    /// The sum of intervals; nothing where no operation completed.
    pub fn of<'a>(intervals: impl Iterator<Item = &'a WaitingInterval>) -> Option<Self> {
        let mut sum = WaitingInterval::default();
        for interval in intervals {
            sum.elapsed_ns += interval.elapsed_ns;
            sum.operations += interval.operations;
            sum.misses += interval.misses;
            sum.sleep_requested_ns += interval.sleep_requested_ns;
            sum.cpu_ns += interval.cpu_ns;
        }
        let per_operation = |part: u64| part as f64 / sum.operations as f64;
        (sum.operations > 0 && sum.elapsed_ns > 0).then(|| Self {
            miss_rate: per_operation(sum.misses),
            iops: sum.operations as f64 * 1e9 / sum.elapsed_ns as f64,
            sleep_effective_ns: per_operation(sum.sleep_requested_ns),
            cpu_share: sum.cpu_ns as f64 / sum.elapsed_ns as f64,
        })
    }

    /// One of them.
    pub fn get(&self, metric: SeriesMetric) -> f64 {
        match metric {
            SeriesMetric::MissRate => self.miss_rate,
            SeriesMetric::Iops => self.iops,
            SeriesMetric::EffectiveSleep => self.sleep_effective_ns,
            SeriesMetric::CpuShare => self.cpu_share,
        }
    }
}

/// The figures of one interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitPoint {
    /// Middle of the interval, since the series began.
    pub at_ns: u64,
    /// What was measured in it.
    pub figures: WaitFigures,
}

/// A stretch of a series in which nothing was changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitPart {
    /// The arm.
    pub arm: String,
    /// Cores of the load beside it.
    pub background_cores: u32,
    /// Since the series began.
    pub start_ns: u64,
    /// Length.
    pub length_ns: u64,
    /// Means over the part; absent where no operation completed.
    pub figures: Option<WaitFigures>,
    /// Operations a second over those of the first part.
    pub iops_of_first: Option<f64>,
    /// What was published of it.
    pub published: Vec<LevelBeside>,
}

/// One arm over time, or the settings of one way to wait after each other, in a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitSeries {
    /// The cell.
    pub cell_id: String,
    /// What differs between its parts.
    pub kind: SeriesKind,
    /// Its parts, one after the other.
    pub parts: Vec<WaitPart>,
    /// One for each interval in which operations completed.
    pub points: Vec<WaitPoint>,
}

/// Which figure of a part a published level is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LevelOf {
    /// The mean.
    Mean,
    /// The largest of its intervals.
    Peak,
    /// The mean over that of the first part.
    First,
}

/// How a published level is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LevelSense {
    /// About that much.
    About,
    /// That much or more.
    AtLeast,
    /// That much or less.
    AtMost,
}

/// A level that was published of a part: a word of a text, where the curve itself is only an image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedLevel {
    /// What was published, in a few words.
    pub claim: Text,
    /// Series it is about.
    pub kind: SeriesKind,
    /// The arm.
    pub arm: String,
    /// Cores of the load beside it.
    pub background_cores: u32,
    /// The figure.
    pub metric: SeriesMetric,
    /// Which one of the part.
    pub of: LevelOf,
    /// How it is meant.
    pub sense: LevelSense,
    /// The level, in the unit of the figure; a share of one where it is of the first part.
    pub level: f64,
}

/// A published level beside what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelBeside {
    /// What was published.
    pub published: PublishedLevel,
    /// What was measured; absent where nothing was.
    pub measured: Option<f64>,
    /// Whether the published bound holds; absent for a level that is only about so much.
    pub holds: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_over_all_intervals_together() {
        let interval = |operations, misses| WaitingInterval {
            elapsed_ns: 1_000_000_000,
            operations,
            misses,
            sleep_requested_ns: operations * 500,
            cpu_ns: 250_000_000,
            ..WaitingInterval::default()
        };
        let figures = WaitFigures::of([interval(100, 50), interval(300, 0)].iter()).expect("some completed");
        assert_eq!(
            SeriesMetric::ALL.map(|metric| figures.get(metric)),
            [0.125, 200.0, 500.0, 0.25],
            "misses are shares of operations, not of intervals"
        );
        assert_eq!(WaitFigures::of([interval(0, 0)].iter()), None);
    }
}
