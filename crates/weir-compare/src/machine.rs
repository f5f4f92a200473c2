//! What a comparison uses of the machine: runs, the time, and the kernel's counts of a run.

use std::{path::Path, sync::atomic::AtomicBool, time::Instant};

use weir_evidence::ladder::run_calls::{CallsByName, RunCalls};

use crate::{
    asked::{Asked, AskedServers},
    run::{RunError, RunOutcome, RunSpec, Runner},
    servers::{House, Loaded, ServerFailure, Slot},
};

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

    /// Has a folder removed when this process is gone, even if it is killed.
    fn hold_folder(&mut self, _folder: &Path) {}

    /// Time since some moment.
    fn now_ns(&mut self) -> u64;

    /// Starts a server and waits until it is ready.
    ///
    /// # Errors
    /// When it is not, or what runs around it fails.
    fn start_server(&mut self, asked: &Asked, slot: Slot, stop: &AtomicBool) -> Result<(), ServerFailure>;

    /// Loads a server that is up, once.
    ///
    /// # Errors
    /// When the load could not be started or was stopped, the server ended, or what runs around it fails.
    fn load_server(&mut self, asked: &Asked, slot: Slot, stop: &AtomicBool) -> Result<Loaded, ServerFailure>;

    /// Ends all servers that are up.
    ///
    /// # Errors
    /// When what cleans up after one fails.
    fn end_servers(&mut self, asked: &Asked) -> Result<(), ServerFailure>;
}

/// A run whose system calls were counted.
pub type CountedRun = Result<(RunOutcome, CallsByName), RunError>;

/// The kernel, by the helper that starts runs.
pub struct Machine {
    /// Ends before the runner, which runs what cleans up.
    house: Option<House>,
    runner: Runner,
    began: Instant,
    /// Programs in the kernel, once they are wanted; the inner `None` where the kernel accepts none.
    calls: Option<Option<RunCalls>>,
}

impl Machine {
    /// Runs by this helper.
    pub fn new(runner: Runner) -> Self {
        Self { house: None, runner, began: Instant::now(), calls: None }
    }

    /// The same with servers in this house.
    pub fn with_servers(self, house: House) -> Self {
        Self { house: Some(house), ..self }
    }

    /// What starts servers, where some are asked for.
    fn house<'a>(
        &'a mut self,
        asked: &'a Asked,
    ) -> Option<(&'a mut House, &'a mut Runner, &'a AskedServers)> {
        Some((self.house.as_mut()?, &mut self.runner, asked.servers.as_ref()?))
    }

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
        // Whatever the result of the run, the programs rest again.
        let counted = self.calls()?.end().ok()?;
        Some(outcome.map(|outcome| (outcome, counted)))
    }

    fn hold_folder(&mut self, folder: &Path) {
        // A launcher that is gone is noticed by the next run.
        let _ = self.runner.hold_folder(folder);
    }

    fn now_ns(&mut self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn start_server(&mut self, asked: &Asked, slot: Slot, stop: &AtomicBool) -> Result<(), ServerFailure> {
        match self.house(asked) {
            Some((house, runner, servers)) => house.start(runner, (asked, servers), slot, stop),
            None => Err(RunError::Empty.into()),
        }
    }

    fn load_server(&mut self, asked: &Asked, slot: Slot, stop: &AtomicBool) -> Result<Loaded, ServerFailure> {
        match self.house(asked) {
            Some((house, runner, servers)) => house.load(runner, (asked, servers), slot, stop),
            None => Err(RunError::Empty.into()),
        }
    }

    fn end_servers(&mut self, asked: &Asked) -> Result<(), ServerFailure> {
        self.house(asked).map_or(Ok(()), |(house, runner, _)| house.end_all(runner, asked))
    }
}
