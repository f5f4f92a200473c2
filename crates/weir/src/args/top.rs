//! `weir top` as it is typed.

use clap::Args;

use crate::flags::number;

#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Watch the server behind this statistics socket; repeatable
    #[arg(long, value_name = "@NAME")]
    pub(crate) socket: Vec<String>,
    /// Watch this process; repeatable. Its socket is found in its command line; without one only threads are shown
    #[arg(long, value_name = "PID", value_parser = number::<u32>)]
    pub(crate) pid: Vec<u32>,
    /// Time between two readings
    #[arg(long, default_value = "1s", value_name = "TIME")]
    pub(crate) interval: String,
    /// Print one interval with everything there is, and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Print one JSON object for each interval
    #[arg(long)]
    pub(crate) json: bool,
    /// Plain lines with threads, hand-off, hop times and sessions
    #[arg(long, conflicts_with = "json")]
    pub(crate) threads: bool,
    /// Plain lines on a terminal too, instead of the live view
    #[arg(long)]
    pub(crate) plain: bool,
    /// Language of the sentences, not of columns and JSON: en, ko or zh [default: the locale's]
    #[arg(long)]
    pub(crate) lang: Option<String>,
}
