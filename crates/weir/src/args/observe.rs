//! `weir observe` as it is typed.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use weir_evidence::{ladder::Group, selection::Wanted};

use crate::flags::number;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("target")
    .args(["pid", "cgroup", "unit", "container", "name", "command"])
    .required(true))]
pub(crate) struct Observe {
    /// Observe this process and its children; several are observed together: 1,2,3, or repeated
    #[arg(short, long, value_name = "PID", value_delimiter = ',', value_parser = number::<u32>)]
    pub(crate) pid: Vec<u32>,
    /// Observe the processes of this control group and of those below it, with their children: a path as in
    /// /proc/PID/cgroup, of version 1 or 2, or a folder below /sys/fs/cgroup
    #[arg(long, value_name = "PATH")]
    pub(crate) cgroup: Option<String>,
    /// Observe the processes of this unit of systemd, with their children; .service may be left out
    #[arg(long, value_name = "UNIT")]
    pub(crate) unit: Option<String>,
    /// Observe the processes of this container, with their children: the beginning of its ID, or its name. If no
    /// control group has the name, docker or podman is asked
    #[arg(long, value_name = "NAME|ID")]
    pub(crate) container: Option<String>,
    /// Observe all processes with this name, or with a program of this name, with their children
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Observe this process and its children beside it, in the same window and by the same programs
    #[arg(long, value_name = "PID", conflicts_with_all = ["command", "strace", "cgroup", "unit", "container", "name"],
          value_parser = number::<u32>)]
    pub(crate) compare: Option<u32>,
    /// How long [default: 10s, or until the command ends; a command that still runs then is ended]
    #[arg(short, long, value_name = "TIME")]
    pub(crate) duration: Option<String>,
    /// Keep what is done in each interval of this length, at least 100ms: CPU, and with --trace system calls by kind,
    /// bytes and time asleep. A record has at most 1000 intervals
    #[arg(long, value_name = "TIME")]
    pub(crate) interval: Option<String>,
    /// Count and time every system call with programs in the kernel. Meanwhile the calls of the whole machine are a
    /// little slower
    #[arg(long)]
    pub(crate) trace: bool,
    /// Count what system calls move through each descriptor, and say what it is: a file or the peer of a socket. Needs
    /// x86-64; each call that moves bytes is a little slower still
    #[arg(long, requires = "trace")]
    pub(crate) descriptors: bool,
    /// Leave this out of the trace; repeatable
    #[arg(long, value_name = "PART", value_enum, requires = "trace")]
    pub(crate) without: Vec<ObservedGroup>,
    /// Afterwards, watch the process for the same time under strace, to compare the two. strace may slow it a
    /// hundredfold
    #[arg(long, conflicts_with_all = ["command", "cgroup", "unit", "container", "name"])]
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
    /// Language of the report: en, ko or zh [default: the locale's]
    #[arg(long)]
    pub(crate) lang: Option<String>,
    /// Start this program and observe it from its first call on
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

impl Observe {
    /// Which processes are asked for, and by which flag; none where a command is started.
    pub(crate) fn wanted(&self) -> Option<(&'static str, Wanted)> {
        type Kind = fn(String) -> Wanted;
        let by_text: [(&'static str, &Option<String>, Kind); 4] = [
            ("--cgroup", &self.cgroup, Wanted::Cgroup),
            ("--unit", &self.unit, Wanted::Unit),
            ("--container", &self.container, Wanted::Container),
            ("--name", &self.name, Wanted::Name),
        ];
        let named = by_text.into_iter().find_map(|(flag, text, kind)| Some((flag, kind(text.clone()?))));
        let numbered = || ("--pid", Wanted::Pids(self.pid.clone()));
        named.or_else(|| (!self.pid.is_empty()).then(numbered))
    }
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
