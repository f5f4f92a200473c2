//! What was found while commands were compared, as codes with arguments. A report has the sentences, in its reader's
//! language.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NotReady;

/// A stream of a command's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How a run failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FailedEnd {
    /// With this status.
    Status(i32),
    /// By this signal.
    Signal(i32),
    /// The kernel ended it because memory was short.
    OutOfMemory,
    /// It took longer than this.
    Overran {
        /// Longest that a run may take.
        limit_ns: u64,
    },
    /// A load did not say how many units of work it did.
    NoCount,
}

/// The first byte in which two outputs differ, or the end of one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FirstDifference {
    /// Bytes before it, which are the same.
    pub offset_bytes: u64,
    /// Its line, from 1.
    pub line: u64,
    /// What stands there in the command's output and in the baseline's, with a few bytes before: printable, with
    /// escapes in place of anything else, and empty at the end of an output.
    pub excerpts: (String, String),
}

/// One thing that was found. Names are those of commands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum CommandFinding {
    /// A command wrote something else than the baseline, which always wrote the same, in one run at least.
    OutputDiffers {
        /// The command.
        command: String,
        /// The baseline.
        baseline: String,
        /// Where.
        stream: Stream,
        /// Bytes of the command and of the baseline.
        bytes: (u64, u64),
        /// Runs of the command that wrote something else, and all whose output was looked at.
        #[serde(default)]
        runs: (u32, u32),
        /// Where the outputs of the first runs begin to differ; absent where they wrote the same, or the place was not
        /// found.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first: Option<Box<FirstDifference>>,
    },
    /// Runs of one command wrote different things, so that nothing is known of a difference between commands.
    OutputVaries {
        /// The command.
        command: String,
        /// Where.
        stream: Stream,
    },
    /// A command ended, in one run at least, as the baseline never did.
    StatusDiffers {
        /// The command.
        command: String,
        /// The baseline.
        baseline: String,
        /// Ends of the command and of the baseline; status 0 where it was no failure.
        ends: (FailedEnd, FailedEnd),
    },
    /// A command could not be started.
    NotStarted {
        /// The command.
        command: String,
        /// Why, in the system's words.
        reason: String,
    },
    /// A command failed in its first run.
    Failed {
        /// The command.
        command: String,
        /// How.
        end: FailedEnd,
        /// The end of what it wrote to standard error.
        said: String,
    },
    /// Some measured runs of a command were ended from outside. These are the expensive ones, so the others say too
    /// little and the command is not compared.
    CutSometimes {
        /// The command.
        command: String,
        /// How, the first time.
        end: FailedEnd,
        /// Runs that were cut.
        cut: u32,
        /// All of its measured runs.
        runs: u32,
    },
    /// A command failed in some of its runs. Measured runs that were cut are not among them.
    FailedSometimes {
        /// The command.
        command: String,
        /// How, the first time.
        end: FailedEnd,
        /// Runs that failed.
        failed: u32,
        /// All of its runs.
        runs: u32,
        /// The end of what it wrote to standard error, the first time.
        said: String,
    },
    /// Processes of a command outlived it; they were counted until it ended, and then ended.
    LeftProcesses {
        /// The command.
        command: String,
        /// Names of some of them.
        names: Vec<String>,
        /// Most in one run.
        processes_max: u32,
        /// Runs that left some.
        runs: u32,
        /// Whether they are part of the figures: a control group counts them.
        is_counted: bool,
    },
    /// A file that a command's words name changed while the comparison ran.
    FileChanged {
        /// The command.
        command: String,
        /// The file.
        path: String,
    },
    /// Commands are the same, so that nothing but noise is to be expected.
    SameCommands {
        /// The command.
        command: String,
        /// The baseline.
        baseline: String,
    },
    /// The CPU time of a run is close to what the source shows at least.
    ShortRuns {
        /// The command.
        command: String,
        /// CPU time of a run, in the middle.
        cpu_ns: u64,
        /// Smallest difference that the source shows.
        resolution_ns: u64,
    },
    /// User and system time have no rows: the kernel divides each run's exact CPU time by the timer ticks that fell on
    /// either side, and runs are too short for that.
    SplitByTicks,
    /// What every run is charged with for its start is a part of the figures that matters.
    StartCost {
        /// CPU time, at most.
        charged_cpu_ns: u64,
        /// As a share of the baseline's run.
        share: f64,
    },
    /// The baseline differs from itself: order, or something that is not balanced.
    BaselineDiffers {
        /// Ratio of its second run to its first.
        ratio: f64,
        /// Its interval.
        interval: (f64, f64),
    },
    /// What the earlier of the baseline's two runs in a pair costs over the later one.
    OrderEffect {
        /// Ratio less one.
        change: f64,
        /// Its interval.
        interval: (f64, f64),
        /// Largest that is harmless.
        change_max: f64,
    },
    /// A verdict does not stand, because placebos differ from the baseline by as much.
    WithinPlacebos {
        /// The command.
        command: String,
        /// Largest difference of a placebo, as a ratio less one.
        floor: f64,
    },
    /// The comparison did not finish.
    CutShort {
        /// Pairs that ran.
        pairs_done: u32,
        /// Pairs that were planned.
        pairs: u32,
        /// Whether a user interrupted it; otherwise it took several times its budget.
        is_interrupted: bool,
    },
    /// CPU time does not come from a control group.
    NoControlGroup {
        /// Why.
        reason: String,
    },
    /// System calls were not counted.
    NoSystemCalls {
        /// Why.
        reason: NoCalls,
    },
    /// Runs could not go on.
    Broken {
        /// Why.
        reason: String,
    },
    /// A command around the runs could not be started.
    AroundNotStarted {
        /// The flag that has it.
        flag: String,
        /// Why, in the system's words.
        reason: String,
    },
    /// A command around the runs failed.
    AroundFailed {
        /// The flag that has it.
        flag: String,
        /// How.
        end: FailedEnd,
        /// The end of what it wrote to standard error.
        said: String,
    },
    /// A server was not ready to be loaded.
    ServerNotReady {
        /// The server.
        command: String,
        /// Why.
        why: NotReady,
        /// The end of what it wrote.
        said: String,
    },
    /// A server starts alone and not beside the others: they need the same port, lock or file.
    ServersCollide {
        /// The server.
        command: String,
        /// The end of what it wrote when it did not start.
        said: String,
    },
    /// A server ended while it was loaded, or between two loads.
    ServerEnded {
        /// The server.
        command: String,
        /// How; status 0 where it was no failure.
        end: FailedEnd,
        /// The end of what it wrote.
        said: String,
    },
    /// The load of a server failed.
    LoadFailed {
        /// The server.
        command: String,
        /// How, the first time.
        end: FailedEnd,
        /// Runs that failed.
        failed: u32,
        /// All load runs of the server; as many as failed where the first one did.
        runs: u32,
        /// The end of what the load wrote, the first time.
        said: String,
    },
    /// A load run costs its server so little CPU time that it is close to what the source shows at least.
    ShortLoads {
        /// The server.
        command: String,
        /// CPU time of a run, in the middle.
        cpu_ns: u64,
        /// Smallest difference that the source shows.
        resolution_ns: u64,
    },
    /// The load reported errors.
    LoadErrors {
        /// The server that was loaded.
        command: String,
        /// Errors of all load runs.
        errors: u64,
        /// Units of work of the same runs; absent where the load reports none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        work: Option<u64>,
        /// Runs with errors.
        runs: u32,
    },
    /// A server works while it has no load, and this is a part of its figures that matters.
    BackgroundCpu {
        /// The server.
        command: String,
        /// CPU time in a second without load.
        cpu_ns_per_second: u64,
        /// As a share of the CPU time of its load runs.
        share: f64,
    },
}

/// Why system calls were not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoCalls {
    /// The kernel takes no programs from this user, and there is no `strace`.
    NotInstalled,
    /// A run for it did not end by itself, or `strace` could not trace it.
    Refused,
    /// A command leaves processes behind, and `strace` would wait for them.
    LeavesProcesses,
    /// The comparison was interrupted, or nothing was compared.
    NotReached,
}

impl CommandFinding {
    /// Whether the comparison of a command, or all of it, is worth less for it. The others are notes.
    pub fn is_defect(&self) -> bool {
        !matches!(
            self,
            Self::SameCommands { .. }
                | Self::SplitByTicks
                | Self::StartCost { .. }
                | Self::NoControlGroup { .. }
                | Self::NoSystemCalls { .. }
                | Self::OutputVaries { .. }
                | Self::BackgroundCpu { .. }
        )
    }
}
