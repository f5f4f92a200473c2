//! What a map recommends to someone who must choose: whether io_uring may be used here at all, and in which regions of
//! the map an arm needs less CPU, in which more, and which show nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{finding::Finding, grid::Difference, kernel::KernelVersion};

/// Guidance of a study that has a map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Guidance {
    /// Whether io_uring may be used here; absent where the study has no arm of ours that uses it.
    pub access: Option<Access>,
    /// One for each arm that is compared, by server CPU per message.
    pub advice: Vec<Advice>,
    /// A process of the reader's, where one was observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<ObservedProcess>,
}

/// How much of the CPU of a process an I/O model can touch, as `weir observe` saw it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedProcess {
    /// Its number.
    pub pid: u32,
    /// What it ran.
    pub command: String,
    /// How long it was watched.
    pub window_ns: u64,
    /// Whether it hardly used a CPU meanwhile: then its share says nothing.
    pub is_idle: bool,
    /// The largest share of its CPU that system calls for I/O may cost.
    pub share_max: f64,
}

/// What stands between a process of this machine and io_uring.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Access {
    /// Why it could not run; absent where it ran.
    pub refused: Option<Finding>,
    /// What would unlock it.
    pub unlock: Option<Finding>,
    /// Version of this kernel, where its release begins with one.
    pub kernel: Option<KernelVersion>,
    /// What a kernel of this version lacks of what our driver uses, by stable names: its number says so, and a
    /// distribution may have carried it back.
    pub lacking: Vec<String>,
    /// `kernel.io_uring_disabled`: 0 for nobody, 1 for all but a group, 2 for everybody; absent where there is none.
    pub disabled: Option<u8>,
    /// Whether a seccomp filter was in force; absent where that is not known.
    pub is_filtered: Option<bool>,
}

/// The map's result for one arm, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Less in some cells or all, and more in none.
    Less,
    /// More in some cells or all, and less in none.
    More,
    /// Less in some and more in others: no one figure stands for all.
    Both,
    /// No cell is known to differ.
    Undetected,
    /// Nothing is known of any cell: not compared, or at rates that the generator set, or not borne out.
    Untold,
}

/// What the map says of one arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    /// The map that it is read from, as in [`crate::grid::Grid::map`].
    #[serde(default)]
    pub map: u32,
    /// The arm.
    pub arm: String,
    /// What it is compared with.
    pub baseline: String,
    /// In one word.
    pub standing: Standing,
    /// Cells of the map.
    pub cells: u32,
    /// Those in which the arm needs less.
    pub less: u32,
    /// Those in which it needs more.
    pub more: u32,
    /// Those in which nothing was detected.
    pub undetected: u32,
    /// Those in which any difference is smaller than what matters.
    #[serde(default)]
    pub equivalent: u32,
    /// Those without a conclusion, because another figure does not confirm what was found.
    #[serde(default)]
    pub not_borne_out: u32,
    /// Those without a conclusion, because the generator was the limit.
    pub generator_limited: u32,
    /// Those in which nothing may be compared. With the others they are all cells of the map.
    #[serde(default)]
    pub not_comparable: u32,
    /// Adjacent cells with the same result, those of which most is known first.
    pub regions: Vec<Region>,
}

/// Adjacent cells with the same result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Region {
    /// What is known of each of them.
    pub difference: Difference,
    /// Its cells.
    pub cells: Vec<String>,
    /// Lowest and highest level of the map's first factor.
    pub levels: (u64, u64),
    /// Levels of the map's other factors, one entry for each line of the map that is in the region.
    pub lines: Vec<Vec<u64>>,
    /// Whether these are all lines of the map.
    pub is_everywhere: bool,
    /// Geometric mean of the cells' ratios; absent where nothing may be said.
    pub ratio: Option<f64>,
    /// Its interval, of these cells.
    pub interval: Option<(f64, f64)>,
    /// Smallest and largest ratio of a cell.
    pub ratio_range: Option<(f64, f64)>,
    /// Smallest and largest median of the arm's figure in a cell, in the metric's unit.
    pub arm_range: Option<(f64, f64)>,
    /// The same of the baseline.
    pub baseline_range: Option<(f64, f64)>,
    /// The effect that is found in 8 of 10 such runs, the largest over the cells in which nothing was detected.
    pub detectable: Option<f64>,
}
