//! The commands to the servers' side of a round and its answers: plain data, the same whether the servers run on this
//! machine or on another.
//!
//! Nothing here is a time of day or a reading of a clock. Two readings are subtracted on the machine where they were
//! taken and only the difference is sent, so clocks of two hosts are never compared.

use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use weir_record::{
    machine::NetworkCounters,
    observation::Rung,
    spec::{ArmSpec, CellSpec, NeighbourSpec},
    trial::Reading,
    window::ObservedWindow,
};

use crate::launch::{LaunchError, RoundRequest, TrialFailure, TrialRequest};

/// The servers of a round, as requested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Serving {
    pub(crate) cell: CellSpec,
    /// In the order in which they start; the baseline is there twice.
    pub(crate) arms: Vec<ArmSpec>,
    /// CPUs of the servers; empty means not pinned.
    pub(crate) server_cpus: Vec<usize>,
    /// CPUs of the generator, which neighbours share.
    pub(crate) load_cpus: Vec<usize>,
    pub(crate) neighbours: Vec<NeighbourSpec>,
    /// Seed of the environments.
    pub(crate) seed: u64,
    /// Number of the first server.
    pub(crate) number: u64,
    /// Whether the round has slices of evidence.
    pub(crate) has_evidence: bool,
}

impl Serving {
    /// The request of a round to its servers' side.
    pub(crate) fn of(request: &RoundRequest<'_>, number: u64) -> Self {
        Self {
            cell: request.cell.clone(),
            arms: request.arms.iter().map(|arm| (*arm).clone()).collect(),
            server_cpus: request.server_cpus.to_vec(),
            load_cpus: request.load_cpus.to_vec(),
            neighbours: request.neighbours.to_vec(),
            seed: request.seed,
            number,
            has_evidence: request.evidence_slice_ns.is_some(),
        }
    }

    /// One of its arms as a trial, at this place.
    pub(crate) fn of_arm<'a>(&'a self, position: u32, interrupt: &'a AtomicBool) -> Option<TrialRequest<'a>> {
        Some(TrialRequest {
            arm: self.arms.get(position as usize)?,
            cell: &self.cell,
            server_cpus: &self.server_cpus,
            load_cpus: &self.load_cpus,
            neighbours: &self.neighbours,
            seed: self.seed,
            // The arguments of an arm that takes turns do not depend on the block.
            block: 0,
            position,
            interrupt,
        })
    }
}

/// The observers of a slice of evidence, beside the clocks and counters that are always read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Look {
    Clocks,
    Readings,
    /// All groups of programs.
    Programs,
    /// Fewer of them: those at this place in [`super::FEWER_GROUPS`].
    FewerPrograms(u32),
    Strace,
}

/// The purpose of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SliceUse {
    /// It counts in no figure.
    WarmUp,
    /// It counts in the report on its arm.
    Timed,
    /// It is observed.
    Evidence(Look),
}

/// One command, in the order of a round. Arms are named by their indices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RoundCommand {
    /// The connections to these arms are open: from now on the arms wait.
    Rest { arms: Vec<u32> },
    /// The timed part begins.
    BeginTimed,
    /// An arm's turn begins.
    Enter { arm: u32 },
    /// A slice of the arm is about to begin.
    BeginSlice { arm: u32, of: SliceUse },
    /// The slice has ended and nothing is in flight; the arm's turn ends too.
    EndSlice { arm: u32 },
    /// The timed part has ended; these arms still run, of the number that were loaded.
    EndTimed { arms: Vec<u32>, loaded: u32 },
    /// Whether an arm has ended, and why. With `waits`, an arm that may be about to end gets a moment to do so.
    HasEnded { arm: u32, waits: bool },
    /// The totals of each arm over all its timed slices.
    Totals,
    /// Ends all servers.
    Stop,
}

/// The answer to a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RoundAnswer {
    Done,
    /// The arm's activity since its previous turn.
    Entered(Waited),
    /// The measurements of the arm in the slice.
    SliceEnded(Box<SliceSeen>),
    /// Why the arm has ended, if it has.
    HasEnded(Option<TrialFailure>),
    Totals(Vec<ObservedWindow>),
    Stopped(Stopped),
}

/// An arm's server that accepts connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Started {
    /// Where it listens.
    pub(crate) address: String,
    /// Whether it is a process, which observers can follow; a control group cannot be followed.
    pub(crate) is_process: bool,
}

/// The servers of a round after each was started or failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServersStarted {
    pub(crate) arms: Vec<Result<Started, TrialFailure>>,
    /// Whether programs may be attached to the kernel for slices of evidence.
    pub(crate) may_trace: bool,
}

/// An arm's activity since its previous slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Waited {
    pub(crate) cpu_ns: u64,
    pub(crate) length_ns: u64,
    /// Whether it was stopped meanwhile.
    pub(crate) stopped: bool,
}

/// Measurements of a slice on the side of its server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SliceSeen {
    pub(crate) server_cpu_ns: u64,
    pub(crate) softirq_cpu_ns: u64,
    /// TCP segments sent in the network namespace of the servers.
    pub(crate) segments_sent: u64,
    /// The observations, for a slice of evidence.
    pub(crate) evidence: Option<(Rung, Vec<Reading>)>,
    /// The failure, if the arm ended in the slice.
    pub(crate) failure: Option<TrialFailure>,
}

/// Final readings of the servers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stopped {
    pub(crate) arms: Vec<ArmStopped>,
    /// Counters of the kernel in the servers' namespace since before they started. Zero for servers on the
    /// laboratory's own host, because the caller counts them.
    pub(crate) network: NetworkCounters,
}

/// Final readings of one server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ArmStopped {
    /// The end of a foreign server's output.
    pub(crate) said: String,
    /// The failure in ending it.
    pub(crate) failure: Option<TrialFailure>,
}

/// Why the servers' side gives no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// The session must stop.
    Stop(LaunchError),
    /// The host, or the connection to it, was lost.
    Lost(String),
}

impl From<LaunchError> for NoAnswer {
    fn from(error: LaunchError) -> Self {
        Self::Stop(error)
    }
}

/// The started servers of a round, on this host or another.
pub(crate) trait RoundServers {
    /// Carries a command out, and answers when it is done.
    fn ask(&mut self, command: RoundCommand) -> Result<RoundAnswer, NoAnswer>;

    /// Reads what the servers print, so that none blocks on a full pipe. Called in every tick of a slice.
    fn read_output(&mut self);

    /// The other host on which they run; `None` if it is the generator's.
    fn host(&self) -> Option<&str>;

    /// Whether they have the generator's network namespace, and with it its counters.
    fn share_network(&self) -> bool;
}
