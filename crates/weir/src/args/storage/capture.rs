//! Arguments of `weir storage capture`.

use std::path::PathBuf;

use clap::Args;

use crate::flags::number;

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct StorageCapture {
    /// The disk, or a file on it, whose requests are recorded
    #[arg(value_name = "DEVICE|FILE")]
    pub(crate) target: PathBuf,
    /// File for the trace (docs/formats/latency-trace.md)
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Time after which it ends: 10s, 2min
    #[arg(long, short = 'd', default_value = "10s", value_name = "TIME")]
    pub(crate) duration: String,
    /// Requests after which it ends, at most 4194304: the longest trace that is read
    #[arg(long, short = 'n', default_value_t = 1_000_000, value_parser = number::<u64>)]
    pub(crate) operations: u64,
    /// Record only what threads of this process issue; it must run when the recording begins
    #[arg(long, value_name = "PID", value_parser = number::<u32>)]
    pub(crate) process: Option<u32>,
    /// No progress display
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Language: en, ko or zh [default: the locale's]
    #[arg(long)]
    pub(crate) lang: Option<String>,
}
