//! What threads did in a window: each by itself, as it was read, and by name, as it was judged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{figure::Spread, observation::ThreadFigures};

/// Most threads of one process in a window, those with most CPU.
pub const THREADS_OF_PROCESS_MAX: usize = 64;

/// Threads of a target and of what runs beside it, over the window of a whole trial. They come from the two readings
/// that the window has anyway: nothing more is observed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ThreadWindow {
    /// When it ended, by the machine's calendar: `2026-02-09 13:09:25`; empty where that is not known.
    pub ended_local: String,
    /// How long it was.
    pub length_ns: u64,
    /// Processes, those of the target first.
    pub processes: Vec<ProcessThreads>,
}

/// A process with its threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProcessThreads {
    /// What it is in its trial (`exchange`); empty for the target.
    pub node: String,
    /// Number.
    pub pid: u32,
    /// Who runs it.
    pub uid: u32,
    /// Its threads by rising number, so that the first is the one it began with.
    pub threads: Vec<ThreadFigures>,
    /// Threads that are not in the list.
    pub threads_left_out: u64,
}

/// Threads of one name in one process of an arm's trials, or slices of evidence. Each figure is one for each of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ThreadUse {
    /// Cell.
    pub cell_id: String,
    /// Arm.
    pub arm: String,
    /// What their process is (`exchange`); empty for the server.
    pub node: String,
    /// Their name.
    pub name: String,
    /// Trials or slices.
    pub windows: u32,
    /// Voluntary and involuntary switches a second.
    pub per_second: (Spread, Spread),
    /// The same for each message of the same windows.
    pub per_message: (Spread, Spread),
    /// CPUs in use, in the mean over the window.
    pub cpus: Spread,
    /// Time runnable without a CPU for each message, in nanoseconds.
    pub run_delay_ns: Spread,
}
