//! What was typed. Close to the command line; validated and resolved in `command`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

mod compare;
mod ctl;
mod dashboard;
#[cfg(test)]
mod documented;
mod history;
mod journal;
mod observe;
mod origin;
mod storage;
mod study;
mod study_arm;
mod top;

pub(crate) use compare::Compare;
pub(crate) use ctl::{Ctl, CtlTask, ListFormat, Paging, Which};
pub(crate) use dashboard::Dashboard;
pub(crate) use history::{History, HistoryFormat};
pub(crate) use journal::{
    Journal, JournalArchive, JournalExport, JournalPrint, JournalRepair, JournalStats, JournalTail,
    JournalTask, JournalVerify, RecordFormat, RecordSelection, StatsFormat,
};
pub(crate) use observe::Observe;
pub(crate) use origin::OriginFlags;
pub(crate) use storage::{
    OnOff, Storage, StorageCapture, StorageRun, StorageSimulate, StorageTask, Workload,
};
pub(crate) use study::{
    PEERS, PairFormat, PoolFormat, Study, StudyDiff, StudyPool, StudyTask, all_study_names,
};
pub(crate) use study_arm::ArmFlags;
pub(crate) use top::Top;

use crate::{
    exit::UsageError,
    protocol::{LoadProtocol, ServeProtocol},
};

/// What the first screen ends with.
const AFTER_HELP: &str = "\
Begin with:
  weir study quick                  epoll against io_uring, in 90 seconds
  weir compare 'old x' 'new x'      two programs of yours, by CPU time
  weir doctor                       what can run here, what would unlock the rest
  weir serve echo --driver epoll    a server, and in another terminal
  weir load echo -c 100             its load, with every byte checked
  weir top                          what it does, thread by thread
  weir dashboard                    all studies in a browser, on port 3000
  weir observe -p PID --trace       where the time of any process goes, call by call
  weir help serve gateway           about a command

Exit codes: 0 done, 1 failed while running, 2 wrong command line or study file, 11 inconclusive, \
12 not comparable or too noisy, 13 this environment cannot run it, 130 interrupted (finished blocks are kept); \
10 a threshold is not met (--max-errors, --fail-if); 14 there is no baseline to compare with; \
15 a server hung when it was asked to end";

/// Measures which I/O model is faster on this machine, by how much, why, and whether the number may be
/// believed.
#[derive(Debug, Parser)]
#[command(name = "weir", version, max_term_width = 100, after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// The load in the setup of a generator that this program has started.
    ///
    /// # Errors
    /// What the parser says is not passed on: it quotes words, and one of them may be a password. The same build has
    /// made the words.
    pub(crate) fn load_of_setup(words: &[String]) -> Result<LoadProtocol, UsageError> {
        let words = std::iter::once("weir").chain(words.iter().map(String::as_str));
        match Self::try_parse_from(words) {
            Ok(Self { command: Command::Load(load) }) => Ok(load),
            _ => Err(UsageError("the words of the setup are no load of this build".to_owned())),
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a study: plan, run, observe, judge, report
    Study(Box<Study>),
    /// Compare commands that end: which costs less CPU time, by how much, and whether that may be believed
    Compare(Box<Compare>),
    /// Show what this machine can run and measure, what it cannot, and what would unlock it
    Doctor(Doctor),
    /// Run a server on any driver
    #[command(subcommand)]
    Serve(ServeProtocol),
    /// Load a server and check every byte
    #[command(subcommand)]
    Load(LoadProtocol),
    /// Wait for a disk in every way, on a file or in a simulator
    Storage(Storage),
    /// Watch running servers: message rates, switches and CPU of each thread, hand-off, sessions
    Top(Top),
    /// Observe any process: its threads, and with --trace every system call, where time goes, and what calls for I/O
    /// cost
    Observe(Observe),
    /// Change a running gateway: limits, kill switches, drain
    Ctl(Ctl),
    /// Read, check and repair the journals of a gateway or an exchange
    Journal(Journal),
    /// Write the report of a study, or of an observation, again
    Report(Report),
    /// Print a study's data
    Export(Export),
    /// Show the results of stored runs by commit: effects with intervals against a fixed reference
    History(History),
    /// Show stored studies in a browser: a list, reports, and charts that other pages may frame
    Dashboard(Dashboard),
    /// Print a script that completes commands in a shell
    Completions(Completions),
    /// Print a manual page, or write all of them
    Man(Man),
    /// Start the runs of a comparison
    #[command(hide = true)]
    LaunchRuns,
    /// Load several servers in turn for the laboratory
    #[command(hide = true)]
    LoadSlices,
    /// Run one of several generators of a load
    #[command(hide = true)]
    LoadPart,
    /// Run servers for a laboratory on another host
    #[command(hide = true)]
    Agent(Agent),
    /// Supervise a foreign server for the laboratory
    #[command(hide = true)]
    Supervise(Supervise),
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Examine this host instead of this machine; ssh gets the name
    #[arg(long, value_name = "[USER@]HOST")]
    pub(crate) host: Option<String>,
    /// Command that reaches the host instead of ssh, such as "ip netns exec b": it runs its arguments there
    #[arg(long, value_name = "COMMAND")]
    pub(crate) rsh: Option<String>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Language: en, ko or zh [default: the locale's]
    #[arg(long)]
    pub(crate) lang: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Folder of a study's results, or the file of an observation
    pub(crate) run: PathBuf,
    /// Language: en, ko or zh [default: the locale's]
    #[arg(long)]
    pub(crate) lang: Option<String>,
    /// Folder for report.html and, for a study, report.md [default: the study's own, or the observation's]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// With a study that has a map: a record of your own server (weir observe -p PID --trace --record FILE), for how
    /// much of its CPU the choice can touch
    #[arg(long, value_name = "FILE")]
    pub(crate) observed: Option<PathBuf>,
    /// Print the whole report: every cell, note and check, in place of the answer on one screen
    #[arg(long)]
    pub(crate) long: bool,
    /// Write the pages, and print where they are instead of the report
    #[arg(long, conflicts_with = "long")]
    pub(crate) quiet: bool,
    /// Judge the stored run by a threshold, as `weir study --fail-if` does: exit code 10 when the whole interval is
    /// beyond it, 11 when it includes the bound
    #[arg(long, value_name = "THRESHOLD")]
    pub(crate) fail_if: Vec<String>,
    /// With thresholds: an interval that includes the bound fails nothing
    #[arg(long, requires = "fail_if")]
    pub(crate) inconclusive_passes: bool,
}

/// Format of exported data.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Format {
    /// One row for each figure
    Csv,
    /// One row for each slice of a study whose arms took turns
    Slices,
    /// One row for each reading of a slice of evidence
    Evidence,
    /// Threads of every whole trial, as `pidstat -w -t` prints them
    Pidstat,
    /// The judged result and every trial
    Json,
    /// The verdict and one object for each comparison and goal, as JSON
    Summary,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Folder of a study's results
    #[arg(required_unless_present = "schema")]
    pub(crate) run: Option<PathBuf>,
    /// What to print
    #[arg(long, value_enum, default_value = "json")]
    pub(crate) format: Format,
    /// Print the JSON Schema of what --format json prints
    #[arg(long, conflicts_with_all = ["run", "format"])]
    pub(crate) schema: bool,
}

/// What the help of completions ends with.
const AFTER_COMPLETIONS: &str = "\
  source <(weir completions bash)           in this shell
  weir completions zsh > ~/.zfunc/_weir     for every zsh, with ~/.zfunc in fpath
  weir completions fish > ~/.config/fish/completions/weir.fish";

#[derive(Debug, Args)]
#[command(after_help = AFTER_COMPLETIONS)]
pub(crate) struct Completions {
    /// Shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// What the help of man ends with.
const AFTER_MAN: &str = "\
  weir man serve http | man -l -
  weir man --out ~/.local/share/man/man1";

#[derive(Debug, Args)]
#[command(after_help = AFTER_MAN)]
pub(crate) struct Man {
    /// Command to describe, such as serve http [default: all commands]
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    pub(crate) command: Vec<String>,
    /// Write the pages of all commands into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Agent {
    /// Questions come on standard input, answers go to standard output
    #[arg(long, required = true)]
    pub(crate) stdio: bool,
    /// Name of the laboratory's session
    #[arg(long, default_value = "")]
    pub(crate) session: String,
}

#[derive(Debug, Args)]
pub(crate) struct Supervise {
    /// CPUs to pin to
    #[arg(long, value_delimiter = ',')]
    pub(crate) pin: Vec<usize>,
    /// Supervise until the command has ended; what it leaves outside its process group stays
    #[arg(long)]
    pub(crate) until_exit: bool,
    /// Program and arguments
    #[arg(last = true, required = true)]
    pub(crate) argv: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_no_load_are_not_repeated() {
        let parsed = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            Arguments::load_of_setup(&words).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(parsed(&["load", "echo", "--target", "127.0.0.1:1"]), Ok(()));
        for words in [&["load", "orders", "--pasword", "SECRET"][..], &["serve", "echo"], &[]] {
            assert_eq!(parsed(words), Err("the words of the setup are no load of this build".to_owned()));
        }
    }
}
