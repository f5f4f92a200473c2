//! `weir study` and what stands below it.

use std::{net::IpAddr, path::PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use weir_lab::builtin;

use super::{origin::OriginFlags, study_arm::ArmFlags};
use crate::flags::number;

/// The study of other runtimes; its protocol chooses the file.
pub(crate) const PEERS: &str = "peers";

/// Most runs of one command.
const REPEAT_MAX: i64 = 1_000;

/// Studies that need no file.
pub(crate) fn study_names() -> Vec<&'static str> {
    builtin::ALL.iter().map(|study| study.name).chain([PEERS]).collect()
}

/// The same with studies of single options of io_uring, which the guidance of a map names.
pub(crate) fn all_study_names() -> Vec<&'static str> {
    study_names().into_iter().chain(builtin::OF_OPTIONS.iter().map(|study| study.name)).collect()
}

#[derive(Clone, Debug, Args)]
#[command(
    allow_negative_numbers = true,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true
)]
pub(crate) struct Study {
    #[command(subcommand)]
    pub(crate) task: Option<StudyTask>,
    #[arg(
        required_unless_present_any = ["resume", "list"],
        conflicts_with = "resume",
        help = format!(
            "Built-in study ({}) or a study file (NAME.toml); not needed with --resume",
            study_names().join(", ")
        )
    )]
    pub(crate) study: Option<String>,
    /// List the built-in studies, each with its question, and run nothing
    #[arg(long, conflicts_with_all = ["resume", "study"])]
    pub(crate) list: bool,
    /// Protocol of the peers study: echo or http
    #[arg(long, value_name = "PROTOCOL")]
    pub(crate) protocol: Option<String>,
    /// Run as published: the survey's users, ramp-up and length (under two hours), polling's jobs of 20 s; gateway runs
    /// every driver with one worker and with two (several hours)
    #[arg(long, conflicts_with = "resume")]
    pub(crate) published_plan: bool,
    /// Run only a part: a plan of the file (tps has quick, standard and full), or FACTOR=LEVEL,LEVEL; repeatable, once
    /// for each factor
    #[arg(long, value_name = "PLAN|FACTOR=LEVELS", conflicts_with = "resume")]
    pub(crate) levels: Vec<String>,
    /// A further arm, NAME="./server --port {port}", also with {cpus}, {workers} and {address}, and in a study of HTTP
    /// with {content}, the file to answer with, and {content_type}; NAME=tcp://HOST:PORT or, in a study of HTTP,
    /// NAME=http://HOST:PORT for a server that runs already; or NAME of an arm of the file, with --only-arms
    #[arg(long, value_name = "NAME=COMMAND", conflicts_with = "resume")]
    pub(crate) arm: Vec<String>,
    /// File with the requests of a study of HTTP, each with its method, path, headers, body, weight and right answer,
    /// instead of one content
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    pub(crate) request_mix: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) arms: ArmFlags,
    /// io_uring as these older kernels would let it run, an arm each: 5.19,6.1 (features masked on this kernel); epoll
    /// too where they had less for it
    #[arg(long, value_delimiter = ',', value_name = "VERSIONS", conflicts_with = "resume")]
    pub(crate) kernels: Vec<String>,
    /// Only the arms given with --arm; the first is the baseline
    #[arg(long, conflicts_with = "resume")]
    pub(crate) only_arms: bool,
    /// Time for which every arm is loaded before it is timed, at most 1min, like `warmup` of an arm in a file (not for
    /// storage): for servers that are slow until they have run for a while
    #[arg(long, value_name = "DURATION", conflicts_with = "resume")]
    pub(crate) warmup: Option<String>,
    /// Rounds, or blocks of whole trials, of each claim, 2 to 1000 [default: the study's]
    #[arg(long, value_name = "N", conflicts_with = "resume", value_parser = number::<u32>)]
    pub(crate) rounds: Option<u32>,
    /// No round or block starts later than this after the first, such as 5min [default: the study's, or as much as its
    /// rounds take]
    #[arg(long, value_name = "DURATION", conflicts_with = "resume")]
    pub(crate) time: Option<String>,
    /// An older build of weir: every arm of a driver runs beside the same arm of that build, which is its baseline
    #[arg(long, value_name = "BINARY", conflicts_with = "resume")]
    pub(crate) baseline: Option<PathBuf>,
    /// The baseline's source built once more: a further arm that shows what the layout of code alone does
    #[arg(long, value_name = "BINARY", requires = "baseline")]
    pub(crate) placebo: Option<PathBuf>,
    /// A threshold, "[ARM] METRIC [ratio] > NUMBER[UNIT] [at CELL]", such as "cpu_per_message ratio > 1.05" or
    /// "p99 > 2ms": exit code 10 when the whole interval is beyond it, 11 when it includes the bound, 0 when all hold
    #[arg(long, value_name = "THRESHOLD", conflicts_with = "resume")]
    pub(crate) fail_if: Vec<String>,
    /// With thresholds: an interval that includes the bound fails nothing
    #[arg(long)]
    pub(crate) inconclusive_passes: bool,
    /// The storage half of the survey: every engine on one disk, in under ten minutes
    #[arg(long, conflicts_with = "resume")]
    pub(crate) storage: bool,
    /// Existing data file for a study of storage; a study that writes (such as the survey) overwrites its contents
    /// [default: storage.dat beside the results, laid out once]
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    pub(crate) file: Option<PathBuf>,
    /// Run the servers on this host; ssh gets the name, so its configuration, keys and known hosts apply. weir is
    /// copied there once. The load comes from here
    #[arg(long, value_name = "[USER@]HOST", conflicts_with_all = ["resume", "baseline", "storage"])]
    pub(crate) server_host: Option<String>,
    /// Command that reaches the host of the servers instead of ssh, such as "ip netns exec b", "docker exec -i c" or
    /// "srun -w b": it runs its arguments there. With --hosts it reaches each host, and {host} in it is the host's name
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["resume", "baseline", "storage"])]
    pub(crate) rsh: Option<String>,
    /// Address of that host at which its servers listen [default: the one that ssh arrived at, or its only one]
    #[arg(long, value_name = "IP", conflicts_with = "resume")]
    pub(crate) server_address: Option<IpAddr>,
    /// Run the whole study, servers and load, on each machine of this file by itself, one [user@]HOST a line, and pool
    /// the results. Exit code by the pooled primary comparison, or 13 if a host gave no result
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "resume", "list", "request_mix", "baseline", "placebo", "fail_if", "inconclusive_passes", "server_host",
            "server_address", "print", "dry_run", "earlier", "observed", "repeat", "json"
        ]
    )]
    pub(crate) hosts: Option<PathBuf>,
    /// With --hosts: hosts that run the study at one time, 1 to 256 [default: 16]
    #[arg(long, value_name = "N", requires = "hosts", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) at_once: Option<u16>,
    /// Print the study file, to start your own file from, and run nothing
    #[arg(long, conflicts_with_all = ["resume", "dry_run"])]
    pub(crate) print: bool,
    /// Print the plan of the study here (arms, cells, rounds or blocks, and the time it takes) and run nothing
    #[arg(long, conflicts_with = "resume")]
    pub(crate) dry_run: bool,
    /// Stored results of one study, or a folder of several: the run and --dry-run first say which differences this
    /// schedule can be expected to find, from the rounds stored there
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub(crate) earlier: Option<PathBuf>,
    /// A record of your own server (weir observe -p PID --trace --record FILE): the guidance of a map says how much of
    /// its CPU the choice can touch
    #[arg(long, value_name = "FILE")]
    pub(crate) observed: Option<PathBuf>,
    /// Run the study N times, each time in a new folder NAME-TIME, and pool the runs: what they have in common, how far
    /// they lie apart, where the next one is expected. Exit code by the pooled primary comparison
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ["print", "dry_run"],
        value_parser = clap::value_parser!(u32).range(2..=REPEAT_MAX)
    )]
    pub(crate) repeat: Option<u32>,
    /// With --repeat: time from one start to the next, such as 10min; after a longer run the next begins at once
    /// [default: back to back]
    #[arg(long, value_name = "DURATION", requires = "repeat")]
    pub(crate) every: Option<String>,
    #[command(flatten)]
    pub(crate) origin: OriginFlags,
    /// Folder for the results; with --repeat or --hosts the folder for those of all runs [default:
    /// weir-results/NAME-TIME]
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub(crate) out: Option<PathBuf>,
    /// Go on with the study in this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) resume: Option<PathBuf>,
    /// Seed of every random choice [default: from the clock; it is stored and printed]
    #[arg(long, conflicts_with = "resume", value_parser = number::<u64>)]
    pub(crate) seed: Option<u64>,
    /// Language of the report: en, ko or zh [default: the locale's]
    #[arg(long)]
    pub(crate) lang: Option<String>,
    /// Print the judged comparisons as JSON on standard output, in place of the tables
    #[arg(long, conflicts_with_all = ["repeat", "print", "dry_run"])]
    pub(crate) json: bool,
    /// Print the whole report: every cell, note and check, in place of the answer on one screen
    #[arg(long, conflicts_with_all = ["json", "print", "dry_run"])]
    pub(crate) long: bool,
    /// No progress display
    #[arg(long)]
    pub(crate) quiet: bool,
    /// The study as another machine, which fetches the results, names it: nothing is reported here
    #[arg(long, hide = true, value_name = "STUDY")]
    pub(crate) asked_as: Option<String>,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum StudyTask {
    /// Compare a stored study with an earlier one, cell by cell: ratios of arms, never absolute figures
    Diff(StudyDiff),
    /// Pool several stored runs of one study: what they have in common, how far they lie apart, where the next is
    /// expected
    Pool(StudyPool),
}

/// How two runs are shown.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PairFormat {
    /// For a terminal
    Text,
    /// For a pull request's comment
    Markdown,
    /// The judged record
    Json,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct StudyDiff {
    /// Folder of the earlier results, the baseline (A)
    pub(crate) one: PathBuf,
    /// Folder of the results that are compared with it (B)
    pub(crate) other: PathBuf,
    /// A threshold on a change, "[ARM] METRIC ratio > NUMBER [at CELL]": B's ratio to its baseline over A's. Exit code
    /// 10 when the whole interval is beyond it, 11 when it includes the bound
    #[arg(long, value_name = "THRESHOLD")]
    pub(crate) fail_if: Vec<String>,
    /// With thresholds: an interval that includes the bound fails nothing
    #[arg(long, requires = "fail_if")]
    pub(crate) inconclusive_passes: bool,
    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: PairFormat,
    /// Language: en, ko or zh [default: the locale's]
    #[arg(long)]
    pub(crate) lang: Option<String>,
}

/// How a pool is shown.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PoolFormat {
    /// For a terminal
    Text,
    /// For a pull request's comment
    Markdown,
    /// A page with a forest of runs
    Html,
    /// The judged record
    Json,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct StudyPool {
    /// Folders of results, or folders of such folders; the order does not matter
    #[arg(required = true, value_name = "DIR")]
    pub(crate) runs: Vec<PathBuf>,
    /// Only runs of this study, where a folder has several
    #[arg(long, value_name = "NAME")]
    pub(crate) study: Option<String>,
    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: PoolFormat,
    /// Language: en, ko or zh [default: the locale's]
    #[arg(long)]
    pub(crate) lang: Option<String>,
}
