//! A session: runs the schedule block by block, stores each block, repeats blocks that noise spoiled, and has the
//! study judged.
//!
//! What is stored is never changed and never deleted. A session that is interrupted, runs out of time, or meets a
//! full disk leaves all finished blocks; the next one continues the same schedule.

mod descent;
mod error_words;
mod event;
mod longer_slices;
mod resume_hint;

use std::{
    error::Error,
    fmt,
    io::ErrorKind,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use weir_judge::{
    exclusion,
    gate::ValidityGate,
    judge::{self, Judged},
    missing::{is_gone, is_over, missing_arms},
    plan::{self, PlannedBlock, PlannedTrial},
    progress::{self, Progress},
    running,
};
use weir_record::{
    finding::Finding,
    load::LoadReport,
    machine::{FactDifference, Fingerprint, NetworkCounters, other_machine},
    protocol::ProtocolRow,
    spec::{Alternation, ArmSpec, CellRole, CellSpec, StudySpec, Subject},
    study::{MissingArm, StudyResult},
    trial::{Exclusion, TrialRecord},
};
use weir_report::Language;
use weir_store::{BlockKey, NewStudy, Store, StoreError, StoredBlock, StudyHeader};

pub use event::Event;

use crate::{
    launch::{LaunchError, Launcher, RoundRequest, Sliced, TrialFailure, TrialRequest},
    pilot::{self, Pilot, PilotRound},
    run_locks::RunLock,
    time_left,
};

/// How to install a missing fio.
const INSTALL_FIO: &str = "apt-get install fio";

/// Folder of the programs that `peers/build` builds.
const PEERS: &str = "peers/bin/";

/// Time between two readings of the machine while waiting for its near state.
const NEAR_WAIT: Duration = Duration::from_millis(250);

/// Longest single wait for the near state. Stretches last up to a minute; after two minutes the machine has changed.
const NEAR_WAIT_MAX: Duration = Duration::from_secs(120);

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every planned block ran, and every block that could be repeated was repeated.
    Complete,
    /// The time cap came first.
    TimeCap,
    /// Every planned block ran. Some had to be repeated in the machine's near state, which did not come back.
    StayedFar,
    /// The interrupt flag was set.
    Interrupted,
    /// The baseline, or every other arm, cannot run.
    ArmsMissing,
}

/// A session that ended in good order.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub ended: Ended,
    /// Progress of the study.
    pub progress: Progress,
    /// The study as judged now; also in the store.
    pub result: StudyResult,
    /// Every trial, pilots included, in time order.
    pub trials: Vec<TrialRecord>,
}

/// Why a session broke off.
#[derive(Debug)]
pub enum RunError {
    /// The store failed.
    Store {
        /// The error.
        source: StoreError,
        /// Blocks on disk.
        blocks_done: usize,
    },
    /// Another session works on the same run folder.
    Busy {
        /// The run folder.
        folder: String,
    },
    /// The request is invalid.
    Usage(String),
    /// This environment cannot run the study.
    Environment(String),
    /// The study was begun on another machine.
    OtherMachine {
        /// The facts that differ.
        differences: Vec<FactDifference>,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.localized(Language::English))
    }
}

impl Error for RunError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Store { source, .. } => Some(source),
            Self::Busy { .. } | Self::Usage(_) | Self::Environment(_) | Self::OtherMachine { .. } => None,
        }
    }
}

/// The launcher, the interrupt flag and the receiver of events of a session.
pub struct Callbacks<'a> {
    /// Runs the trials.
    pub launcher: &'a mut dyn Launcher,
    /// Set to end the session.
    pub interrupt: &'a AtomicBool,
    /// Receives the events.
    pub progress: &'a mut dyn FnMut(&Event),
}

/// Begins a study in a new run folder and runs its first session.
pub fn start(folder: &Path, study: &NewStudy, callbacks: Callbacks<'_>) -> Result<Outcome, RunError> {
    // If the folder cannot be created, the store reports the error.
    let _lock = if std::fs::create_dir_all(folder).is_ok() { Some(lock(folder)?) } else { None };
    let store = Store::create(folder, study).map_err(|source| RunError::Store { source, blocks_done: 0 })?;
    run_locked(store, callbacks)
}

/// Continues the study in a run folder. The time cap starts again.
pub fn resume(folder: &Path, here: &Fingerprint, callbacks: Callbacks<'_>) -> Result<Outcome, RunError> {
    // Opening upgrades an older store, which must not happen while another session works on it. If the folder does
    // not exist, the store reports it.
    let _lock = if folder.is_dir() { Some(lock(folder)?) } else { None };
    let wrap = |source| RunError::Store { source, blocks_done: 0 };
    let store = Store::open(folder).map_err(wrap)?;
    let differences = other_machine(&store.study().map_err(wrap)?.fingerprint, here);
    if !differences.is_empty() {
        return Err(RunError::OtherMachine { differences });
    }
    run_locked(store, callbacks)
}

/// Runs a session on an open store. Only one session may run at a time.
pub fn run(store: Store, callbacks: Callbacks<'_>) -> Result<Outcome, RunError> {
    let _lock = lock(store.path().parent().unwrap_or(store.path()))?;
    run_locked(store, callbacks)
}

fn run_locked(mut store: Store, callbacks: Callbacks<'_>) -> Result<Outcome, RunError> {
    let wrap = |source| RunError::Store { source, blocks_done: 0 };
    let header = store.study().map_err(wrap)?;
    let blocks = store.blocks().map_err(wrap)?;
    let session = store.begin_session().map_err(wrap)?;
    let cap = Duration::from_nanos(header.spec.time_cap_ns);
    let begin = callbacks.launcher.elapsed();
    let mut session = Session {
        store,
        callbacks,
        header,
        blocks,
        session,
        begin,
        cap,
        refused: Vec::new(),
        announced: Vec::new(),
    };
    let ended = session.run()?;
    session.finish(ended)
}

/// Locks a run folder.
pub fn lock(folder: &Path) -> Result<RunLock, RunError> {
    RunLock::of(folder).map_err(|error| {
        let shown = folder.display().to_string();
        match error.kind() {
            ErrorKind::WouldBlock => RunError::Busy { folder: shown },
            _ => RunError::Environment(format!("cannot lock {shown}: {error}")),
        }
    })
}

/// An attempt at a block.
struct Attempt<'a> {
    cell: &'a CellSpec,
    planned: PlannedBlock,
    number: u32,
}

struct Session<'a> {
    store: Store,
    callbacks: Callbacks<'a>,
    header: StudyHeader,
    /// All stored blocks, pilots included.
    blocks: Vec<StoredBlock>,
    session: i64,
    /// The launcher's time when the session began.
    begin: Duration,
    cap: Duration,
    /// Arms whose server reported in this session that the environment cannot run it.
    refused: Vec<MissingArm>,
    /// Arms whose absence was reported.
    announced: Vec<String>,
}

/// Why a session stops before its schedule ends.
enum Stop {
    Ended(Ended),
    Failed(RunError),
}

impl From<RunError> for Stop {
    fn from(error: RunError) -> Self {
        Self::Failed(error)
    }
}

impl From<LaunchError> for Stop {
    fn from(error: LaunchError) -> Self {
        match error {
            LaunchError::Interrupted => Self::Ended(Ended::Interrupted),
            LaunchError::Usage(reason) => Self::Failed(RunError::Usage(reason)),
            LaunchError::Environment(reason) => Self::Failed(RunError::Environment(reason)),
        }
    }
}

impl Session<'_> {
    fn run(&mut self) -> Result<Ended, RunError> {
        let blocks = self.blocks_planned();
        let blocks_done = self.blocks_done();
        self.tell(&Event::Started { blocks_done, blocks, left_ns: self.left_ns() });
        match self.run_all() {
            Ok(()) => Ok(Ended::Complete),
            Err(Stop::Ended(ended)) => Ok(ended),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    fn run_all(&mut self) -> Result<(), Stop> {
        self.lengthen_for_delay()?;
        let mut refused = self.callbacks.launcher.missing(&self.header.spec);
        refused.iter_mut().for_each(|arm| arm.unlock = Some(self.remedy(&arm.name)));
        self.refused = refused;
        self.check_arms()?;
        self.callbacks.launcher.check(&self.left())?;
        self.run_pilots()?;
        // An interrupted session may have stored the result that gives a rung up, but not yet its consequence.
        while self.descend(self.primary_cell())? {}
        let mut schedule = plan::schedule(&self.header.spec).into_iter();
        while let Some(planned) = schedule.next() {
            if self.attempts_at(planned) == 0 && !self.is_over(planned) {
                self.check_stop()?;
                self.run_block(planned, 0)?;
                if self.descend(planned.cell)? {
                    let is_done = |planned| self.attempts_at(planned) > 0;
                    schedule = plan::remaining(&self.header.spec, is_done).into_iter();
                }
            }
        }
        self.fill_gaps()
    }

    /// What is left to run: the arms that are not missing, and the cells that lack a block.
    fn left(&self) -> StudySpec {
        let spec = &self.header.spec;
        let (missing, gaps) = (self.missing_arms(), self.gaps());
        let is_there = |arm: &&ArmSpec| !missing.iter().any(|gone| gone.name == arm.name);
        let lacks_block = |(index, _): &(usize, &CellSpec)| gaps.iter().any(|(gap, _)| gap.cell == *index);
        let cells = spec.cells.iter().enumerate().filter(lacks_block);
        StudySpec {
            arms: spec.arms.iter().filter(is_there).cloned().collect(),
            cells: cells.map(|(_, cell)| cell.clone()).collect(),
            ..spec.clone()
        }
    }

    fn is_over(&self, planned: PlannedBlock) -> bool {
        is_over(&self.header.spec, &self.header.spec.cells[planned.cell], self.trials())
    }

    fn check_stop(&self) -> Result<(), Stop> {
        if self.callbacks.interrupt.load(Ordering::Relaxed) {
            return Err(Stop::Ended(Ended::Interrupted));
        }
        if self.elapsed() >= self.cap {
            return Err(Stop::Ended(Ended::TimeCap));
        }
        Ok(())
    }

    /// Stores what a session has found out about its schedule.
    fn store_spec(&mut self) -> Result<(), Stop> {
        let stored = self.store.append_pilots(self.session, &[], &self.header.spec, self.session_ns());
        stored.map_err(|source| self.store_error(source).into())
    }

    /// Measures capacities in closed loop and fixes the rates that are shares of the smallest one, for all cells that
    /// have the same pilot at once. If no arm runs in a pilot, its cells are left out.
    fn run_pilots(&mut self) -> Result<(), Stop> {
        while let Some(index) = self.header.spec.cells.iter().position(pilot::wants_rate) {
            let events: Vec<Event> = match self.pilot_capacity(index)? {
                Ok(capacity) => {
                    let fixed = pilot::fix_rates(&mut self.header.spec, index, capacity);
                    let event = |(cell_id, rate_per_second)| Event::RateFixed { cell_id, rate_per_second };
                    fixed.into_iter().map(event).collect()
                }
                Err(reason) => {
                    let left_out = pilot::leave_out(&mut self.header.spec, index, &reason);
                    let event = |cell_id| Event::LeftOut { cell_id, reason: reason.clone() };
                    left_out.into_iter().map(event).collect()
                }
            };
            self.store_spec()?;
            events.iter().for_each(|event| self.tell(event));
        }
        Ok(())
    }

    /// Smallest capacity of the arms that run, from the pilot of a cell, or why none of them runs. Measurements of an
    /// earlier session are not repeated. It is an error if arms run and no answer came back, because the next try may
    /// succeed.
    fn pilot_capacity(&mut self, index: usize) -> Result<Result<f64, String>, Stop> {
        let pilot = Pilot::of(&self.header.spec, index);
        let first = self.attempts(&pilot.cell.id, 0);
        for attempt in first..first + pilot.rounds_max() {
            if pilot::whole_rounds(&self.pilot_rounds(&pilot.cell.id)) >= pilot.rounds as usize {
                break;
            }
            self.check_stop()?;
            let Some(block) = self.run_trials(&pilot.cell, pilot.planned, attempt)? else { break };
            let blocks = std::slice::from_ref(&block);
            let stored = self.store.append_pilots(self.session, blocks, &self.header.spec, self.session_ns());
            stored.map_err(|source| self.store_error(source))?;
            self.blocks.push(block);
            self.check_arms()?;
        }
        if let Some(capacity) = pilot::capacity(&self.pilot_rounds(&pilot.cell.id)) {
            return Ok(Ok(capacity));
        }
        let own = self.trials().filter(|trial| trial.cell_id == pilot.cell.id);
        let failure = own.flat_map(|trial| &trial.exclusions).find_map(failure_reason);
        let failure = failure.unwrap_or("nothing came back").to_owned();
        if self.present_arms(&pilot.cell, &self.missing_arms()).contains(&true) {
            let id = &self.header.spec.cells[index].id;
            return Err(RunError::Environment(format!("no pilot of {id} gave a capacity: {failure}")).into());
        }
        Ok(Err(failure))
    }

    /// The stored rounds of a pilot, with the arms that run there.
    fn pilot_rounds(&self, pilot_id: &str) -> Vec<PilotRound<'_>> {
        let missing = self.missing_arms();
        let is_there = |trial: &&TrialRecord| !is_gone(&missing, pilot_id, &trial.arm, self.trials());
        let own = self.blocks.iter().filter(|block| block.key.cell_id == pilot_id);
        own.map(|block| block.trials.iter().filter(is_there).collect()).collect()
    }

    fn run_block(&mut self, planned: PlannedBlock, attempt: u32) -> Result<(), Stop> {
        let cell = self.header.spec.cells[planned.cell].clone();
        let Some(block) = self.run_trials(&cell, planned, attempt)? else { return Ok(()) };
        let stored = self.store.append_block(self.session, &block, self.session_ns());
        stored.map_err(|source| self.store_error(source))?;
        self.blocks.push(block);
        self.lengthen_slices(planned.cell)?;
        let (blocks_done, blocks) = (self.blocks_done(), self.blocks_planned());
        self.tell(&Event::BlockStored {
            cell_id: cell.id.clone(),
            block: planned.block,
            attempt,
            blocks_done,
            blocks,
            left_ns: self.left_ns(),
        });
        if cell.role == CellRole::Primary
            && let Some(estimate) = running::so_far(&self.header.spec, &self.trials().collect::<Vec<_>>())
        {
            self.tell(&Event::SoFar { estimate });
        }
        self.check_arms()
    }

    /// Runs the trials of a block; `None` if no arm runs any more.
    fn run_trials(
        &mut self,
        cell: &CellSpec,
        planned: PlannedBlock,
        number: u32,
    ) -> Result<Option<StoredBlock>, Stop> {
        let is_present = self.present_arms(cell, &self.missing_arms());
        let order = plan::order(&self.header.spec, planned, number, |arm| is_present[arm]);
        if order.is_empty() {
            return Ok(None);
        }
        let attempt = Attempt { cell, planned, number };
        let trials = match cell.alternation {
            Some(alternation) => self.run_round(&attempt, alternation, &order)?,
            None => self.run_whole_trials(&attempt, &order)?,
        };
        let key = BlockKey { cell_id: cell.id.clone(), block: planned.block, attempt: number };
        Ok(Some(StoredBlock { key, trials }))
    }

    /// For each arm, whether it runs in a cell.
    fn present_arms(&self, cell: &CellSpec, missing: &[MissingArm]) -> Vec<bool> {
        let is_present =
            |arm: &ArmSpec| cell.has_arm(&arm.name) && !is_gone(missing, &cell.id, &arm.name, self.trials());
        self.header.spec.arms.iter().map(is_present).collect()
    }

    /// One trial for each run, one after the other.
    fn run_whole_trials(
        &mut self,
        attempt: &Attempt<'_>,
        order: &[PlannedTrial],
    ) -> Result<Vec<TrialRecord>, Stop> {
        let mut trials = Vec::with_capacity(order.len());
        for (position, run) in (0_u32..).zip(order) {
            let arm = self.header.spec.arms[run.arm].clone();
            self.tell(&Event::TrialStarted {
                cell_id: attempt.cell.id.clone(),
                block: attempt.planned.block,
                attempt: attempt.number,
                position,
                trials: u32::try_from(order.len()).unwrap_or(u32::MAX),
                arm: arm.name.clone(),
            });
            let started = self.elapsed();
            let outcome = self.callbacks.launcher.run_trial(&TrialRequest {
                arm: &arm,
                cell: attempt.cell,
                server_cpus: self.header.spec.server_cpus_in(attempt.cell),
                load_cpus: self.header.spec.load_cpus_in(attempt.cell),
                neighbours: &self.header.spec.neighbours,
                seed: plan::trial_seed(&self.header.spec, attempt.planned, attempt.number),
                block: attempt.planned.block,
                position,
                interrupt: self.callbacks.interrupt,
            })?;
            let frame = TrialRecord {
                reading_before: outcome.reading_before,
                reading_after: outcome.reading_after,
                network: outcome.network,
                chain: outcome.chain,
                programs: outcome.programs,
                ..self.frame(attempt, position, run, started)
            };
            let foreign_max = self.foreign_cpus_max(&trials);
            let trial = self.completed(frame, outcome.report, |load, protocol, network| {
                exclusion::of_report(load, protocol, network, foreign_max)
            });
            self.tell(&Event::TrialFinished { trial: Box::new(trial.clone()) });
            trials.push(trial);
        }
        Ok(trials)
    }

    /// Runs all arms of a round at once, loaded in turn.
    fn run_round(
        &mut self,
        attempt: &Attempt<'_>,
        alternation: Alternation,
        order: &[PlannedTrial],
    ) -> Result<Vec<TrialRecord>, Stop> {
        let Attempt { cell, planned, number } = *attempt;
        let spec = &self.header.spec;
        let arms: Vec<&ArmSpec> = order.iter().map(|run| &spec.arms[run.arm]).collect();
        let permutations = plan::permutations(spec, planned, number, order.len(), alternation.permutations);
        let evidence = alternation.evidence;
        let place = evidence.and_then(|evidence| evidence.place(planned.block, cell.blocks));
        let started = self.elapsed();
        let outcome = self.callbacks.launcher.run_round(&RoundRequest {
            cell,
            alternation,
            evidence_slice_ns: evidence.filter(|_| place.is_some()).map(|evidence| evidence.slice_ns),
            evidence_pairs: evidence.map_or(1, |evidence| evidence.pairs),
            evidence_by_group: evidence.is_some_and(|evidence| evidence.by_group),
            evidence_strace: place == Some(0) && evidence.is_some_and(|evidence| evidence.strace),
            arms: &arms,
            orders: &permutations,
            server_cpus: spec.server_cpus_in(cell),
            load_cpus: spec.load_cpus_in(cell),
            neighbours: &spec.neighbours,
            seed: plan::trial_seed(spec, planned, number),
            interrupt: self.callbacks.interrupt,
        })?;
        let mut trials = Vec::with_capacity(order.len());
        let measured = outcome.arms.into_iter().zip(outcome.programs);
        for ((position, run), (sliced, programs)) in (0_u32..).zip(order).zip(measured) {
            let (report, slices, evidence) = match sliced {
                Ok(Sliced { report, slices, evidence }) => (Ok(report), slices, evidence),
                Err(failure) => (Err(failure), Vec::new(), Vec::new()),
            };
            let frame = TrialRecord {
                reading_before: outcome.reading_before,
                reading_after: outcome.reading_after,
                network: outcome.network,
                programs,
                slices,
                evidence,
                ..self.frame(attempt, position, run, started)
            };
            let trial = self.completed(frame, report, exclusion::of_slices);
            self.tell(&Event::TrialFinished { trial: Box::new(trial.clone()) });
            trials.push(trial);
        }
        Ok(trials)
    }

    /// A trial that has just ended, before its report is known.
    fn frame(
        &self,
        attempt: &Attempt<'_>,
        position: u32,
        run: &PlannedTrial,
        started: Duration,
    ) -> TrialRecord {
        TrialRecord {
            cell_id: attempt.cell.id.clone(),
            block: attempt.planned.block,
            attempt: attempt.number,
            position,
            arm: self.header.spec.arms[run.arm].name.clone(),
            repeat: run.repeat,
            started_ns: self.header.elapsed_ns + nanoseconds(started),
            elapsed_ns: nanoseconds(self.elapsed().saturating_sub(started)),
            ..TrialRecord::default()
        }
    }

    /// The trial with its report and its exclusions, or with the reason why there is no report.
    fn completed(
        &mut self,
        mut trial: TrialRecord,
        report: Result<Box<LoadReport>, TrialFailure>,
        exclusions: impl FnOnce(&LoadReport, &ProtocolRow, &NetworkCounters) -> Vec<Exclusion>,
    ) -> TrialRecord {
        match report {
            Ok(load) => {
                trial.exclusions = exclusions(&load, self.header.spec.protocol_row(), &trial.network);
                trial.load = Some(*load);
            }
            Err(failure) => trial.exclusions = vec![self.noted(&trial.arm, &failure)],
        }
        trial
    }

    /// The most CPU that other processes may use in the next trial of a block, given the block's earlier trials.
    fn foreign_cpus_max(&self, others: &[TrialRecord]) -> f64 {
        let before = self.trials().chain(others).filter_map(|trial| trial.load.as_ref());
        let noise = before.filter_map(|load| load.observed.as_ref()).map(|seen| &seen.noise);
        exclusion::foreign_cpus_max(noise, self.header.fingerprint.cpus_online)
    }

    /// Repeats blocks that lack pairs because of noise or a change of state, primary first, while there is time. If
    /// trials ran in two states, it waits for the near one: an attempt in the far state would fill no gap.
    fn fill_gaps(&mut self) -> Result<(), Stop> {
        loop {
            let gaps = self.gaps();
            let Some((planned, attempt)) = gaps.first().copied() else {
                return Ok(());
            };
            self.check_stop()?;
            let gate = ValidityGate::new(self.trials());
            if gate.has_near_state(self.trials()) && gate.is_far(&self.callbacks.launcher.read_machine()?) {
                self.tell(&Event::WaitingForNear { blocks: u32::try_from(gaps.len()).unwrap_or(u32::MAX) });
                self.wait_for_near(&gate)?;
            }
            self.run_block(planned, attempt)?;
        }
    }

    fn wait_for_near(&mut self, gate: &ValidityGate) -> Result<(), Stop> {
        let begin = self.elapsed();
        while gate.is_far(&self.callbacks.launcher.read_machine()?) {
            self.check_stop()?;
            if self.elapsed() - begin >= NEAR_WAIT_MAX {
                return Err(Stop::Ended(Ended::StayedFar));
            }
            self.callbacks.launcher.pause(NEAR_WAIT);
        }
        self.check_stop()
    }

    /// Blocks that may be repeated, with the attempt's number.
    fn gaps(&self) -> Vec<(PlannedBlock, u32)> {
        let trials: Vec<&TrialRecord> = self.trials().collect();
        progress::gaps(&self.header.spec, &trials, &self.missing_arms())
    }

    fn finish(mut self, ended: Ended) -> Result<Outcome, RunError> {
        let missing_arms = self.missing_arms();
        let trials: Vec<TrialRecord> = self.trials().cloned().collect();
        let elapsed_ns = self.session_ns();
        let judged = judge::judge(&Judged {
            spec: &self.header.spec,
            fingerprint: &self.header.fingerprint,
            trials: &trials,
            missing_arms: &missing_arms,
            elapsed_ns: self.header.elapsed_ns + elapsed_ns,
            reproduce: &self.header.reproduce,
        });
        let period = self.store.period(Some((self.session, elapsed_ns)));
        let period = period.map_err(|source| self.store_error(source))?;
        let created_unix_s = self.store.created_unix_s().map_err(|source| self.store_error(source))?;
        let result = StudyResult { period, created_unix_s, ..judged };
        let saved = self.store.save_result(self.session, &result, elapsed_ns);
        saved.map_err(|source| self.store_error(source))?;
        let progress = Progress::of(&self.header.spec, &trials.iter().collect::<Vec<_>>(), &missing_arms);
        self.store.settle();
        Ok(Outcome { ended, progress, result, trials })
    }

    fn trials(&self) -> impl Iterator<Item = &TrialRecord> + Clone {
        self.blocks.iter().flat_map(|block| &block.trials)
    }

    /// Attempts stored for a block.
    fn attempts(&self, cell_id: &str, number: u32) -> u32 {
        let stored =
            self.blocks.iter().filter(|block| block.key.cell_id == cell_id && block.key.block == number);
        stored.map(|block| block.key.attempt + 1).max().unwrap_or(0)
    }

    fn attempts_at(&self, planned: PlannedBlock) -> u32 {
        self.attempts(&self.header.spec.cells[planned.cell].id, planned.block)
    }

    fn blocks_planned(&self) -> u32 {
        self.header.spec.cells.iter().map(|cell| cell.blocks).sum()
    }

    fn blocks_done(&self) -> u32 {
        let is_cell = |id: &str| self.header.spec.cells.iter().any(|cell| cell.id == id);
        let done =
            self.blocks.iter().filter(|block| block.key.attempt == 0 && is_cell(&block.key.cell_id)).count();
        u32::try_from(done).unwrap_or(u32::MAX)
    }

    /// How much longer the session takes.
    fn left_ns(&self) -> u64 {
        let trials: Vec<&TrialRecord> = self.trials().collect();
        let left_ns = time_left::left_ns(&self.header.spec, &trials, &self.missing_arms());
        left_ns.min(nanoseconds(self.cap.saturating_sub(self.elapsed())))
    }

    /// Time in this session.
    fn elapsed(&self) -> Duration {
        self.callbacks.launcher.elapsed().saturating_sub(self.begin)
    }

    fn session_ns(&self) -> u64 {
        nanoseconds(self.elapsed())
    }

    fn missing_arms(&self) -> Vec<MissingArm> {
        let mut missing = missing_arms(&self.header.spec, &self.header.missing_arms, self.trials());
        for refused in &self.refused {
            if !missing.iter().any(|arm| arm.name == refused.name) {
                missing.push(refused.clone());
            }
        }
        missing
    }

    /// Converts the failure to an exclusion. An arm that the environment refused is remembered.
    fn noted(&mut self, arm: &str, failure: &TrialFailure) -> Exclusion {
        if let TrialFailure::ServerEnvironment { reason } = failure
            && self.refused.iter().all(|refused| refused.name != arm)
        {
            let (reason, unlock) = (Finding::CannotRunHere { said: reason.clone() }, Some(self.remedy(arm)));
            self.refused.push(MissingArm { name: arm.to_owned(), reason, unlock });
        }
        failure.exclusion()
    }

    /// What may make an arm available that the environment refused.
    fn remedy(&self, arm: &str) -> Finding {
        let found = self.header.spec.arms.iter().find(|spec| spec.name == arm).map(|spec| &spec.subject);
        let command = match found {
            Some(Subject::Command { argv }) if argv.first().is_some_and(|it| it.starts_with(PEERS)) => {
                "peers/build"
            }
            Some(Subject::Command { .. }) => return Finding::InstallProgram,
            Some(Subject::Fio { .. }) => INSTALL_FIO,
            _ => "weir doctor",
        };
        Finding::RunCommand { command: command.to_owned() }
    }

    /// Reports arms that went missing, and ends the session if nothing is left to compare.
    fn check_arms(&mut self) -> Result<(), Stop> {
        let missing = self.missing_arms();
        for arm in &missing {
            if !self.announced.contains(&arm.name) {
                self.announced.push(arm.name.clone());
                self.tell(&Event::ArmMissing { arm: Box::new(arm.clone()) });
            }
        }
        let nothing_left = progress::has_nothing_to_compare(&self.header.spec, &missing);
        if nothing_left { Err(Stop::Ended(Ended::ArmsMissing)) } else { Ok(()) }
    }

    fn store_error(&self, source: StoreError) -> RunError {
        RunError::Store { source, blocks_done: self.blocks.len() }
    }

    fn tell(&mut self, event: &Event) {
        (self.callbacks.progress)(event);
    }
}

fn failure_reason(exclusion: &Exclusion) -> Option<&str> {
    match exclusion {
        Exclusion::ServerFailed { reason }
        | Exclusion::LoadFailed { reason }
        | Exclusion::JobFailed { reason }
        | Exclusion::NeighbourFailed { reason }
        | Exclusion::HostLost { reason } => Some(reason),
        _ => None,
    }
}

fn nanoseconds(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}
