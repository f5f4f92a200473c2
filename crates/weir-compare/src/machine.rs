//! What a comparison needs of the machine: runs, and the time.

use std::{sync::atomic::AtomicBool, time::Instant};

use crate::run::{RunError, RunOutcome, RunSpec, Runner};

/// What runs commands: the kernel, or a test.
pub trait Launch {
    /// Runs one and waits for its end.
    ///
    /// # Errors
    /// When it could not be started, or was stopped.
    fn run(&mut self, spec: &RunSpec, stop: &AtomicBool) -> Result<RunOutcome, RunError>;

    /// Time since some moment.
    fn now_ns(&mut self) -> u64;
}

/// The kernel, by the helper that starts runs.
pub struct Machine {
    runner: Runner,
    began: Instant,
}

impl Machine {
    /// Runs by this helper.
    pub fn new(runner: Runner) -> Self {
        Self { runner, began: Instant::now() }
    }
}

impl Launch for Machine {
    fn run(&mut self, spec: &RunSpec, stop: &AtomicBool) -> Result<RunOutcome, RunError> {
        self.runner.run(spec, stop)
    }

    fn now_ns(&mut self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
