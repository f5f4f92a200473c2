//! One run of a command: its specification, its cost, its end. A small helper process starts the runs ([`Runner`] is
//! this end of it, [`launcher_main`] the other), so that a fork is cheap, and a run begins without Weir's memory.
//!
//! CPU is the CPU time of every process of a run. It comes from a control group where one can be made, and otherwise
//! from the kernel's figures for each process when it is reaped ([`CpuSource`]). Weir's own work in a run, from the
//! fork to the command's own exec, is left out of each figure.
//!
//! A server is started in the same way and runs until it is asked to end ([`Runner::serve`]). Its figures so far are
//! read while it runs ([`ServerClock`]).

mod cpu_group;
mod digest;
mod household;
mod launch;
mod launcher;
mod noop;
mod outputs;
mod program;
mod runner;
mod serve;
mod server_clock;
mod server_log;
mod wire;

use std::{ffi::OsString, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use launcher::launcher_main;
pub use program::program_path;
pub use runner::{Runner, launcher_words};
pub use server_clock::{Reading, ServerClock};

/// How long processes that a run leaves may take to end by themselves. A pipeline's members do not end at one moment.
pub const LEAVE_MAX: Duration = Duration::from_millis(100);

/// Most bytes of the end of an output that are kept for messages.
pub const TAIL_BYTES_MAX: usize = 2 << 10;

/// Bytes of a block of an output.
pub const BLOCK_BYTES: usize = 256 << 10;

/// Most blocks of an output that are compared separately: its first 16 GiB.
pub const BLOCKS_MAX: u32 = 1 << 16;

/// Bytes of the beginning of a server's log that are kept: all in which a line is looked for that shows readiness.
pub(crate) const LOG_BEGINNING_BYTES: u64 = 8 << 20;

/// A tick in which the kernel counts the CPU time of processes that ended (`_SC_CLK_TCK`: 100 a second).
const TICK_NS: u64 = 10_000_000;

/// Most names of processes left behind that are kept.
pub const NAMES_LEFT_MAX: usize = 4;

/// A run's specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSpec {
    /// The program and its arguments, without a shell.
    pub words: Vec<OsString>,
    /// Variables that are added to Weir's environment, or replace variables in it.
    pub environment: Vec<(OsString, OsString)>,
    /// The folder it runs in; Weir's own if there is none.
    pub folder: Option<PathBuf>,
    /// A file that it reads as its input; `/dev/null` if there is none.
    pub input: Option<PathBuf>,
    /// Where its output goes.
    pub output: OutputTo,
    /// The longest it may take.
    pub limit: Duration,
}

/// Where the output of a run goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputTo {
    /// Both outputs are read and hashed as they arrive, and only their ends are kept.
    Digest,
    /// The same, with a hash of each block, and the first block is kept.
    Blocks,
    /// The same as [`Self::Digest`], and the block with this number is kept.
    Block(u32),
    /// Standard output goes to `/dev/null`. Standard error is hashed.
    Discard,
    /// Standard output goes to a file, which is emptied first. Standard error is hashed.
    File(PathBuf),
    /// Both are added to a file.
    Log(PathBuf),
    /// Both go where Weir's go.
    Inherit,
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunOutcome {
    /// Its cost, without Weir's work before the command begins.
    pub cost: RunCost,
    /// How it ended.
    pub end: RunEnd,
    /// Its standard output; empty where that was not read.
    pub stdout: OutputDigest,
    /// Its standard error; empty where that was not read.
    pub stderr: OutputDigest,
    /// Processes that still lived [`LEAVE_MAX`] after the command had ended, and were killed.
    pub children_left: u32,
    /// Names of some of these, at most [`NAMES_LEFT_MAX`].
    pub children_left_names: Vec<String>,
    /// Weir's work in it before the command began. It is in no figure of `cost`.
    pub launch: LaunchCost,
}

/// The cost of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCost {
    /// From the exec to the end of the command.
    pub wall_ns: u64,
    /// CPU in user mode, of all its processes. The kernel samples how CPU divides between user and system; their sum is
    /// exact.
    pub user_ns: u64,
    /// CPU in the kernel.
    pub system_ns: u64,
    /// Resident memory of its largest process at its peak. The kernel includes the launcher's memory, which a fork
    /// copies; `None` where the peak does not stand out from that.
    pub memory_bytes_max: Option<u64>,
    /// Where the peak does not stand out: its upper bound.
    pub memory_bytes_below: Option<u64>,
    /// Page faults that needed no disk.
    pub faults_minor: u64,
    /// Page faults that did.
    pub faults_major: u64,
    /// Context switches because a thread waited for something.
    pub switches_voluntary: u64,
    /// Context switches because another thread got the CPU.
    pub switches_involuntary: u64,
    /// Bytes that system calls read, of the command and the children that it waited for.
    pub read_bytes: Option<u64>,
    /// Bytes that system calls wrote, of the same.
    pub written_bytes: Option<u64>,
    /// Instructions in user mode, where the machine counts them.
    pub instructions: Option<u64>,
}

impl RunCost {
    /// User and system time together.
    pub fn cpu_ns(&self) -> u64 {
        self.user_ns.saturating_add(self.system_ns)
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunEnd {
    /// By itself, with this status.
    Exited(i32),
    /// By a signal.
    Killed {
        /// Its number.
        signal: i32,
        /// The kernel killed processes for want of memory meanwhile.
        out_of_memory: bool,
    },
    /// It took longer than its limit, and was killed with all it had started.
    Overran,
}

/// A server that has started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Serving {
    /// Its first process.
    pub process: u32,
    /// The process that holds it, the ancestor of all its processes.
    pub launcher: u32,
    /// Its control group; `None` where none could be made.
    pub group: Option<OsString>,
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerEnd {
    /// How its first process ended; with status 0 where the server was asked to end.
    pub end: RunEnd,
    /// Whether it ended although nothing asked it to.
    pub by_itself: bool,
}

/// An output that was read: equal outputs have equal length and hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputDigest {
    /// Its length.
    pub bytes: u64,
    /// Its hash (BLAKE2b, 128 bits), in hexadecimal.
    pub hash: String,
    /// Its end as text, at most [`TAIL_BYTES_MAX`] bytes.
    pub tail: String,
    /// Its blocks of [`BLOCK_BYTES`], the last of them shorter; at most [`BLOCKS_MAX`], and only of
    /// [`OutputTo::Blocks`].
    pub blocks: Vec<OutputBlock>,
    /// The block to keep, as far as the output reaches it.
    pub kept: Vec<u8>,
}

/// A block of an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputBlock {
    /// Its hash.
    pub hash: u64,
    /// Ends of lines in it.
    pub lines: u32,
}

/// Weir's work in a process of a run, from the fork to the exec.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchCost {
    /// From just before the fork to just before the exec.
    pub wall_ns: u64,
    /// CPU of the child up to its exec.
    pub cpu_ns: u64,
}

/// Weir's own cost in a run that does nothing: a process that ends where others become the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnCost {
    /// The median of the CPU before the exec. No figure includes it.
    pub launch: LaunchCost,
    /// The median of CPU that is still charged to a run: at most the release of the launcher's memory.
    pub cpu_ns_left: u64,
    /// The same, measured with a program that does nothing: its cost with a copy of the launcher's memory less its cost
    /// without one. None where such a program cannot be run.
    pub charged_cpu_ns: Option<u64>,
}

/// Where CPU comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CpuSource {
    /// `cpu.stat` of a control group (v2) of the run.
    GroupSecond,
    /// `cpuacct.usage` of a control group (v1) of the run.
    GroupFirst,
    /// The figures of `wait4(2)` for each process of the run, including those that it left. Processes whose parent
    /// ignores their end (`SIGCHLD`) are missing: the kernel adds them to no process.
    Rusage,
}

impl CpuSource {
    /// All, the best first.
    pub const ALL: [Self; 3] = [Self::GroupSecond, Self::GroupFirst, Self::Rusage];

    /// Its name in every language.
    pub fn name(self) -> &'static str {
        match self {
            Self::GroupSecond => "cgroup v2",
            Self::GroupFirst => "cgroup v1",
            Self::Rusage => "wait4",
        }
    }

    /// The step in which it counts a run that ends.
    pub fn resolution_ns(self) -> u64 {
        match self {
            Self::GroupSecond | Self::Rusage => 1_000,
            Self::GroupFirst => 1,
        }
    }

    /// The step in which it counts a server that goes on. Without a group there is no sum of the whole server: the CPU
    /// time of each process that ended comes from its parent, in ticks.
    pub fn resolution_of_servers_ns(self) -> u64 {
        match self {
            Self::Rusage => TICK_NS,
            Self::GroupSecond | Self::GroupFirst => self.resolution_ns(),
        }
    }
}

/// Why there is no outcome.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum RunError {
    /// There are no words.
    #[error("the command is empty; name a program")]
    Empty,
    /// There is no such program.
    #[error("there is no program {0}; give its path, or put its folder into PATH")]
    Missing(String),
    /// It is there and cannot be executed.
    #[error("cannot start {program}: {reason}")]
    NotStarted {
        /// The program.
        program: String,
        /// What the system said.
        reason: String,
    },
    /// The folder, the input or the output cannot be used.
    #[error("{flag} {path}: {reason}")]
    File {
        /// The flag that names it.
        flag: String,
        /// Its path.
        path: String,
        /// The error.
        reason: String,
    },
    /// The run was stopped, and all of it was killed.
    #[error("the run was stopped")]
    Stopped,
    /// Some processes cannot be killed.
    #[error("these processes of the run cannot be killed: {0}; end them by hand, as root if need be")]
    Unkillable(String),
    /// The helper that starts runs failed or is gone.
    #[error("the process that starts runs: {0}")]
    Launcher(String),
}
