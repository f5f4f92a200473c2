//! Arguments of `weir storage simulate`.

use std::path::PathBuf;

use clap::Args;

use crate::flags::number;

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct StorageSimulate {
    /// Simulated time of each of the three jobs: 20s, 500ms
    #[arg(long, default_value = "20s", value_name = "TIME", conflicts_with = "trace")]
    pub(crate) job_time: String,
    /// Way to wait, repeatable: interrupt, poll, a predictor such as linux-mean:0.3, clairvoyant, or constant:SHARE
    /// [default: all]
    #[arg(long = "predictor", short = 'p', value_name = "SPEC")]
    pub(crate) predictors: Vec<String>,
    /// A sleep ends at the completion or at its time, whichever is first
    #[arg(long)]
    pub(crate) armed: bool,
    /// Seed of everything that varies
    #[arg(long, default_value_t = 1, value_parser = number::<u64>)]
    pub(crate) seed: u64,
    /// Wait for the operations of this latency trace instead (docs/formats/latency-trace.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// With --trace: keep the pauses between the recorded operations
    #[arg(long, requires = "trace")]
    pub(crate) pauses: bool,
    /// Interval of the measurement points
    #[arg(long, default_value = "1s", value_name = "TIME")]
    pub(crate) interval: String,
    /// Hypothesis: the device is three times as slow in the first half second of each job
    #[arg(long, conflicts_with = "trace")]
    pub(crate) start_transient: bool,
    /// Hypothesis: one wake-up in twenty takes 133 us longer, as from a deep idle state
    #[arg(long)]
    pub(crate) wake_tail: bool,
    /// Compare the model with the published figures it was fitted to, and end
    #[arg(long, conflicts_with_all = ["trace", "predictors", "start_transient", "wake_tail"])]
    pub(crate) calibration: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Language of the table: en, ko or zh [default: the locale's]
    #[arg(long)]
    pub(crate) lang: Option<String>,
}
