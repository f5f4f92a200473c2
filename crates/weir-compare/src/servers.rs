//! Servers that are up together while a load takes turns between them.
//!
//! A *start* is a fresh process of each server, with its own port and folder; the baseline has two processes. The
//! clocks of a server are read before each run of its load and a moment after it.

mod house;
mod loading;
mod places;
mod up;

use std::time::Duration;

use weir_record::commands::{FailedEnd, LoadRun, NotReady};

use crate::run::{RunError, RunOutcome};

pub use house::House;
pub use places::{FOLDER, OUT, PORT};

/// Most pairs of one start.
pub const PAIRS_PER_START_MAX: u32 = 1_000;

/// Longest wait after a load run.
pub const SETTLE_MAX: Duration = Duration::from_secs(60);

/// A server among those that are up: the baseline has two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    /// Place of its command.
    pub command: usize,
    /// Whether it is the baseline's second.
    pub repeat: bool,
}

/// A run of the load.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The load's end and time, with the cost of the server.
    pub outcome: RunOutcome,
    /// Units of work; `None` where none are counted, or the load reported no number.
    pub work: Option<u64>,
    /// The load ended with status 0 and should have reported a number, but reported none.
    pub lacks_count: bool,
    /// Other figures of the load.
    pub beside: LoadRun,
}

/// Why a server was not started, not loaded, or not ended.
#[derive(Debug)]
pub enum ServerFailure {
    /// A run could not be made, or was stopped.
    Run(RunError),
    /// A command around servers and loads failed: its flag, and the outcome.
    Around(&'static str, Box<Result<RunOutcome, RunError>>),
    /// It was not ready.
    NotReady {
        /// Why.
        why: NotReady,
        /// The end of what it wrote.
        said: String,
    },
    /// It ended although nothing asked it to.
    Ended {
        /// How.
        end: FailedEnd,
        /// The end of what it wrote.
        said: String,
    },
}

impl From<RunError> for ServerFailure {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}
