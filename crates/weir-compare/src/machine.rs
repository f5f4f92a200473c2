//! What a comparison needs of the machine: runs, the time, and what the kernel counts of a run.

use std::{sync::atomic::AtomicBool, time::Instant};

use weir_evidence::ladder::run_calls::{CallsByName, RunCalls};

use crate::run::{RunError, RunOutcome, RunSpec, Runner};

/// What runs commands: the kernel, or a test.
pub trait Launch {
    /// Runs one and waits for its end.
    ///
    /// # Errors
    /// When it could not be started, or was stopped.
    fn run(&mut self, spec: &RunSpec, stop: &AtomicBool) -> Result<RunOutcome, RunError>;

    /// Whether the kernel counts the system calls of a run.
    fn counts_calls(&mut self) -> bool {
        false
    }

    /// A run with its system calls by kind, from its exec on. `None` where they could not be counted.
    fn run_counted(&mut self, _spec: &RunSpec, _stop: &AtomicBool) -> Option<CountedRun> {
        None
    }

    /// Time since some moment.
    fn now_ns(&mut self) -> u64;
}

/// A run whose system calls were counted.
pub type CountedRun = Result<(RunOutcome, CallsByName), RunError>;

/// The kernel, by the helper that starts runs.
pub struct Machine {
    runner: Runner,
    began: Instant,
    /// Programs in the kernel, once they are wanted; `None` in there where it takes none.
    calls: Option<Option<RunCalls>>,
}

impl Machine {
    /// Runs by this helper.
    pub fn new(runner: Runner) -> Self {
        Self { runner, began: Instant::now(), calls: None }
    }
}

impl Machine {
    fn calls(&mut self) -> Option<&mut RunCalls> {
        let launcher = self.runner.launcher();
        self.calls.get_or_insert_with(|| RunCalls::load(launcher).ok()).as_mut()
    }
}

impl Launch for Machine {
    fn run(&mut self, spec: &RunSpec, stop: &AtomicBool) -> Result<RunOutcome, RunError> {
        self.runner.run(spec, stop)
    }

    fn counts_calls(&mut self) -> bool {
        self.calls().is_some()
    }

    fn run_counted(&mut self, spec: &RunSpec, stop: &AtomicBool) -> Option<CountedRun> {
        self.calls()?.begin().ok()?;
        let outcome = self.runner.run(spec, stop);
        // Whatever became of the run, the programs rest again.
        let counted = self.calls()?.end().ok()?;
        Some(outcome.map(|outcome| (outcome, counted)))
    }

    fn now_ns(&mut self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
