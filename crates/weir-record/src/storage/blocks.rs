//! Which blocks a job touches, and how long its operations are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many bytes an operation has, where not all have the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BlockSizes {
    /// All have the same.
    #[default]
    Same,
    /// Any multiple of the smallest, up to the largest.
    Range {
        /// The smallest.
        bytes_min: u32,
    },
    /// Some of them.
    Split(Vec<BlockShare>),
    /// Reads have one length and writes another.
    ByDirection {
        /// Length of reads.
        reads: u32,
        /// Length of writes.
        writes: u32,
    },
}

/// Operations of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockShare {
    /// Their bytes.
    pub bytes: u32,
    /// How many of a hundred they are.
    pub percent: u8,
}

/// Which random blocks are likelier than others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Skew {
    /// None.
    #[default]
    None,
    /// The block of rank k with a probability like 1/k^theta.
    Zipf {
        /// Not 1.
        theta: f64,
        /// Where in the file the likeliest is, 0 to 1; absent for anywhere.
        center: Option<f64>,
    },
    /// A power law: at 0.2 a fifth of the blocks has four fifths of the operations.
    Pareto {
        /// Between 0 and 1.
        share: f64,
        /// Where in the file the likeliest is, 0 to 1; absent for anywhere.
        center: Option<f64>,
    },
    /// A normal distribution, made of twelve uniform numbers.
    Normal {
        /// How much further it is scattered, in percent of the file.
        percent: f64,
        /// Where in the file its middle is, 0 to 1; absent for the middle.
        center: Option<f64>,
    },
}

/// What follows a random block, where not each is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sequencer {
    /// The block behind it.
    #[default]
    Sequential,
    /// The same block.
    Identical,
}
