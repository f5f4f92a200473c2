//! `weir observe` as it is typed.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use weir_evidence::ladder::Group;

use crate::flags::number;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("target").args(["pid", "command"]).required(true))]
pub(crate) struct Observe {
    /// Observe this process and its children
    #[arg(short, long, value_name = "PID", value_parser = number::<u32>)]
    pub(crate) pid: Option<u32>,
    /// Observe this process and its children beside it, in the same window and by the same programs
    #[arg(long, value_name = "PID", conflicts_with_all = ["command", "strace"], value_parser = number::<u32>)]
    pub(crate) compare: Option<u32>,
    /// How long [default: 10s, or until the command ends; a command that still runs then is ended]
    #[arg(short, long, value_name = "TIME")]
    pub(crate) duration: Option<String>,
    /// Count and time every system call with programs in the kernel. Those of the whole machine are a little slower
    /// meanwhile
    #[arg(long)]
    pub(crate) trace: bool,
    /// Leave this out of the trace; repeatable
    #[arg(long, value_name = "PART", value_enum, requires = "trace")]
    pub(crate) without: Vec<ObservedGroup>,
    /// Afterwards, watch it for as long under strace, to see what that makes of it. It may slow it a hundredfold
    #[arg(long, conflicts_with = "command")]
    pub(crate) strace: bool,
    /// Print the record as JSON instead of a report
    #[arg(long)]
    pub(crate) json: bool,
    /// Keep the record in this file; `weir report FILE` draws it again
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Write the report as one page to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// No live view on a terminal
    #[arg(long)]
    pub(crate) plain: bool,
    /// Language of the report: en, ko or zh [default: that of the locale]
    #[arg(long)]
    pub(crate) lang: Option<String>,
    /// Start this program and observe it from its first call on
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// A part of the trace that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ObservedGroup {
    /// Sleeping, waiting for a CPU, who woke whom: times of calls are wall times without it
    Scheduling,
    /// Events of io_uring
    Uring,
    /// Softirqs
    Softirqs,
}

impl ObservedGroup {
    pub(crate) fn group(self) -> Group {
        match self {
            Self::Scheduling => Group::Scheduling,
            Self::Uring => Group::Uring,
            Self::Softirqs => Group::Softirqs,
        }
    }
}
