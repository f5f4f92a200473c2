//! `weir history` as it is typed.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Runs of a series that are shown.
const RUNS: i64 = 50;

/// Most of them.
const RUNS_MAX: i64 = weir_judge::history::RUNS_MAX as i64;

/// How a history is shown.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum HistoryFormat {
    /// For a terminal
    Text,
    /// For a comment or a page of a wiki
    Markdown,
    /// A line for each run, for other programs
    Csv,
    /// The record
    Json,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct History {
    /// Folders with runs of studies and with comparisons that weir compare --out stored, or single ones of both
    /// [default: weir-results]
    #[arg(value_name = "DIR")]
    pub(crate) folders: Vec<PathBuf>,
    /// Only this study, or comparisons with a command of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) study: Option<String>,
    /// Only runs of this branch
    #[arg(long, value_name = "NAME")]
    pub(crate) branch: Option<String>,
    /// Only runs with this label; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) label: Vec<String>,
    /// Metric to show, by its name in --fail-if [default: the primary comparison of a study,
    /// CPU time of commands]
    #[arg(long, value_name = "METRIC")]
    pub(crate) metric: Option<String>,
    /// Newest runs of each series that are shown
    #[arg(long, value_name = "N", default_value_t = RUNS, value_parser = clap::value_parser!(i64).range(1..=RUNS_MAX))]
    pub(crate) limit: i64,
    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: HistoryFormat,
    /// Language: en, ko or zh [default: the locale's]
    #[arg(long)]
    pub(crate) lang: Option<String>,
}
