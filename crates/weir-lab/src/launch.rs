//! The interface between the session and the launcher of trials and rounds: real processes, or the fake.

use std::{collections::BTreeMap, sync::atomic::AtomicBool, time::Duration};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use weir_record::{
    gateway::ChainTotals,
    load::LoadReport,
    machine::{CrossCoreReading, NetworkCounters},
    spec::{Alternation, ArmSpec, CellSpec, NeighbourSpec, StudySpec},
    study::MissingArm,
    trial::{EvidenceSlice, Exclusion, SliceRecord},
};

/// One trial to run: a fresh server process and a fresh generator process.
#[derive(Clone, Copy, Debug)]
pub struct TrialRequest<'a> {
    /// The arm that serves.
    pub arm: &'a ArmSpec,
    /// The cell to measure. Its rate is fixed: `LoadMode::OpenShare` never gets here.
    pub cell: &'a CellSpec,
    /// CPUs of the server; empty means not pinned.
    pub server_cpus: &'a [usize],
    /// CPUs of the generator; empty means not pinned.
    pub load_cpus: &'a [usize],
    /// Neighbours of the study; the cell names its own.
    pub neighbours: &'a [NeighbourSpec],
    /// Seed of payloads and arrivals.
    pub seed: u64,
    /// Number of the block in its cell.
    pub block: u32,
    /// Position in the block; with the seed it varies the processes' environment between trials.
    pub position: u32,
    /// Set when the session must stop; a launcher looks at it at least ten times a second.
    pub interrupt: &'a AtomicBool,
}

/// Outcome of a trial. A server that fails is an outcome, not an error: the session goes on and reports it.
#[derive(Clone, Debug)]
pub struct TrialOutcome {
    /// Cross-core reading before the trial, while neither child ran.
    pub reading_before: CrossCoreReading,
    /// Cross-core reading after the trial, when both children were gone.
    pub reading_after: CrossCoreReading,
    /// Network counters of the kernel between the two readings.
    pub network: NetworkCounters,
    /// Totals of gateway and exchange over the whole trial; absent for other protocols.
    pub chain: Option<ChainTotals>,
    /// Files that its servers were started from, each with a hash of its content.
    pub programs: BTreeMap<String, String>,
    /// The generator's report, or what failed.
    pub report: Result<Box<LoadReport>, TrialFailure>,
}

/// One round to run: fresh servers that are up together, and one generator that loads them in turn.
#[derive(Clone, Copy, Debug)]
pub struct RoundRequest<'a> {
    /// The cell to measure. Its rate is fixed, and it says how the arms take turns.
    pub cell: &'a CellSpec,
    /// Slices and permutations.
    pub alternation: Alternation,
    /// Length of a slice of evidence in nanoseconds; absent in a round without evidence.
    pub evidence_slice_ns: Option<u64>,
    /// Pairs of slices of evidence for each arm.
    pub evidence_pairs: u32,
    /// Whether each arm has further slices of evidence, observed by fewer groups of programs or by readings of /proc
    /// alone.
    pub evidence_by_group: bool,
    /// Whether each arm has one more slice of evidence, under `strace`.
    pub evidence_strace: bool,
    /// The arms that serve, in the order in which they start.
    pub arms: &'a [&'a ArmSpec],
    /// For each permutation the order of the arms, as indices.
    pub orders: &'a [Vec<usize>],
    /// CPUs of the servers; empty means not pinned.
    pub server_cpus: &'a [usize],
    /// CPUs of the generator; empty means not pinned.
    pub load_cpus: &'a [usize],
    /// Neighbours of the study; the cell names its own.
    pub neighbours: &'a [NeighbourSpec],
    /// Seed of payloads, arrivals and environments.
    pub seed: u64,
    /// Set when the session must stop; a launcher looks at it at least ten times a second.
    pub interrupt: &'a AtomicBool,
}

impl<'a> RoundRequest<'a> {
    /// One of its arms as a trial, at this place.
    pub(crate) fn of_arm<'b>(&self, arm: &'b ArmSpec, position: u32) -> TrialRequest<'b>
    where
        'a: 'b,
    {
        TrialRequest {
            arm,
            cell: self.cell,
            server_cpus: self.server_cpus,
            load_cpus: self.load_cpus,
            neighbours: self.neighbours,
            seed: self.seed,
            // The arguments of an arm that takes turns do not depend on the block.
            block: 0,
            position,
            interrupt: self.interrupt,
        }
    }
}

/// Outcome of a round.
#[derive(Clone, Debug)]
pub struct RoundOutcome {
    /// Cross-core reading before the round, while no child ran.
    pub reading_before: CrossCoreReading,
    /// Cross-core reading after the round, when all children were gone.
    pub reading_after: CrossCoreReading,
    /// Network counters of the kernel between the two readings, for all arms together.
    pub network: NetworkCounters,
    /// For each arm the files that its servers were started from, each with a hash of its content.
    pub programs: Vec<BTreeMap<String, String>>,
    /// For each arm the sum over its slices, and the slices; or the failure.
    pub arms: Vec<Result<Sliced, TrialFailure>>,
}

/// Measurements of one arm in a round.
#[derive(Clone, Debug)]
pub struct Sliced {
    /// The sum over the slices.
    pub report: Box<LoadReport>,
    /// The slices, in time order.
    pub slices: Vec<SliceRecord>,
    /// The slices of evidence, in time order; the sum excludes them.
    pub evidence: Vec<EvidenceSlice>,
}

/// Why a trial gave no report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialFailure {
    /// The server died or never became ready.
    Server {
        /// Its error message, in one line.
        reason: String,
    },
    /// The server reports that this environment cannot run it.
    ServerEnvironment {
        /// Its error message, in one line.
        reason: String,
    },
    /// The generator died or gave no report.
    Load {
        /// Its error message, in one line.
        reason: String,
    },
    /// A storage job failed or gave no report.
    Job {
        /// Its error message, in one line.
        reason: String,
    },
    /// A process beside the server died or never began its work.
    Neighbour {
        /// Its name and its error message, in one line.
        reason: String,
    },
    /// The host of the servers, or the connection to it, was lost.
    Host {
        /// The host and the cause, in one line.
        reason: String,
    },
}

impl TrialFailure {
    /// The exclusion stored with the trial.
    pub fn exclusion(&self) -> Exclusion {
        match self {
            Self::Server { reason } | Self::ServerEnvironment { reason } => {
                Exclusion::ServerFailed { reason: reason.clone() }
            }
            Self::Load { reason } => Exclusion::LoadFailed { reason: reason.clone() },
            Self::Job { reason } => Exclusion::JobFailed { reason: reason.clone() },
            Self::Neighbour { reason } => Exclusion::NeighbourFailed { reason: reason.clone() },
            Self::Host { reason } => Exclusion::HostLost { reason: reason.clone() },
        }
    }
}

/// Why no trial can run; ends the session.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The interrupt flag was set; no child is left.
    #[error("interrupted")]
    Interrupted,
    /// The request is invalid: an unknown option, or a size that the generator refuses.
    #[error("{0}")]
    Usage(String),
    /// This environment cannot run the trial: descriptors, permissions, no second CPU.
    #[error("{0}")]
    Environment(String),
}

/// Runs trials and rounds one after the other, and keeps the session's clock.
pub trait Launcher {
    /// Arms that cannot run here, as far as known before any trial.
    fn missing(&self, _spec: &StudySpec) -> Vec<MissingArm> {
        Vec::new()
    }

    /// Refuses a study that exceeds the limits of this machine, as far as known before any trial. The specification
    /// holds only the arms and cells that the session would run.
    fn check(&self, _spec: &StudySpec) -> Result<(), LaunchError> {
        Ok(())
    }

    /// How long a question to another host of the servers takes that asks for nothing, in nanoseconds; `None` if they
    /// run on this machine.
    fn control_delay_ns(&self) -> Option<u64> {
        None
    }

    /// Runs one trial; when it returns, no child of the trial is left, whatever the outcome.
    fn run_trial(&mut self, request: &TrialRequest<'_>) -> Result<TrialOutcome, LaunchError>;

    /// Runs one round; when it returns, no child of it is left, whatever the outcome.
    fn run_round(&mut self, request: &RoundRequest<'_>) -> Result<RoundOutcome, LaunchError>;

    /// A cross-core reading with no trial around it.
    fn read_machine(&mut self) -> Result<CrossCoreReading, LaunchError>;

    /// Time since the launcher was made.
    fn elapsed(&self) -> Duration;

    /// Lets time pass, to wait for the machine to change its state.
    fn pause(&mut self, length: Duration);
}
