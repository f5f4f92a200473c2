//! Arguments of `weir storage sweep`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::args::number;

/// What the help ends with.
const AFTER_HELP: &str = "\
Methods are written with blanks between. Groups: study (all of the study polling), brief, predictors (every one with its
defaults), ratios (the published 50 to 3 %), baselines, published, oracles, disk, candidate. Single ones: any predictor,
interrupt, poll, clairvoyant, constant:SHARE; with +armed for sleeps that end at the completion too, and +true for a
predictor that is told the device's time after a miss (a model only).

  weir storage sweep                                            2 s of each job, 5 seeds, every predictor
  weir storage sweep --job-time 20s --seeds 20 --out full.jsonl
  weir storage sweep --job-time 20s --seeds 20 --out full.jsonl --resume
  weir storage sweep --world trace --trace capture.csv --methods \"ratios baselines candidate\"
  weir storage sweep --world disk --methods disk";

/// What the methods wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum World {
    /// The model of the paper's device, with its three jobs
    Simulator,
    /// A trace (--trace FILE), or traces made from the seeds
    Trace,
    /// A file on this machine, beside background loads of several depths
    Disk,
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true, after_help = AFTER_HELP)]
pub(crate) struct StorageSweep {
    /// What the methods wait for
    #[arg(long, value_enum, default_value = "simulator")]
    pub(crate) world: World,
    /// With --world trace: the trace, as `weir storage capture` or fio writes it
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// With --world disk: the file to read [default: weir-results/storage.dat, which is laid out in full]
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<String>,
    /// Methods and groups of them [default: predictors and ratios; on a disk: disk]
    #[arg(long, value_name = "METHODS")]
    pub(crate) methods: Vec<String>,
    /// Length of each job; on a disk, of each trial; a trace has its own [default: 2s]
    #[arg(long, value_name = "TIME")]
    pub(crate) job_time: Option<String>,
    /// Seeds, counted from 101; on a disk, blocks
    #[arg(long, value_parser = number::<u64>, value_name = "COUNT")]
    pub(crate) seeds: Option<u64>,
    /// With --world disk: operations in flight of the background, a phase each [default: 0,32,128]
    #[arg(long, value_delimiter = ',', value_parser = number::<u32>, value_name = "DEPTHS")]
    pub(crate) background: Vec<u32>,
    /// Append every finished part to this file; on a disk, a folder
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Go on with what is in --out
    #[arg(long, requires = "out")]
    pub(crate) resume: bool,
    /// Language of the tables: en, ko or zh
    #[arg(long, default_value = "en")]
    pub(crate) lang: String,
    /// Print the judged sweep as JSON and no progress
    #[arg(long)]
    pub(crate) json: bool,
}

impl StorageSweep {
    /// Whether processes wait for a file.
    pub(crate) fn is_disk(&self) -> bool {
        self.world == World::Disk
    }

    /// Whether a model of a thread waits for the operations of a trace.
    pub(crate) fn is_trace(&self) -> bool {
        self.world == World::Trace
    }
}
