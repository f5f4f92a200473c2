//! What is asked of the side of the servers in a round, and what it answers: plain data, the same whether the servers
//! are on this machine or on another.
//!
//! Nothing here is a time of day or a reading of a clock. What was read at two edges is subtracted where it was read,
//! and only the difference is told, so that clocks of two hosts never meet.

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

/// The servers of a round, as they are asked for.
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
    /// What a round asks of the side of its servers.
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
            // What an arm that takes turns is told does not depend on it.
            block: 0,
            position,
            interrupt,
        })
    }
}

/// What observes a slice of evidence, beside the clocks and counters that are always there.
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

/// What a slice is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SliceUse {
    /// It is in no figure.
    WarmUp,
    /// It is in the report on its arm.
    Timed,
    /// It is observed.
    Evidence(Look),
}

/// One thing to do, in the order of a round. Arms are named by their places.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RoundCommand {
    /// The connections to these arms are there: from here on they wait.
    Rest { arms: Vec<u32> },
    /// All that is timed begins.
    BeginTimed,
    /// An arm's turn begins.
    Enter { arm: u32 },
    /// A slice of the arm is about to begin.
    BeginSlice { arm: u32, of: SliceUse },
    /// The slice has ended and nothing is in flight; with it ends the arm's turn.
    EndSlice { arm: u32 },
    /// All that is timed has ended; these arms are still there, of so many that were loaded.
    EndTimed { arms: Vec<u32>, loaded: u32 },
    /// Whether an arm has ended, and why. One that may be about to end is waited for a moment.
    HasEnded { arm: u32, waits: bool },
    /// What was seen of each arm in all its timed slices.
    Totals,
    /// Ends all servers.
    Stop,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RoundAnswer {
    Done,
    /// What the arm did since its turn before.
    Entered(Waited),
    /// What the arm did in the slice.
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
    /// Whether it is a process that observers can follow, which a control group is not.
    pub(crate) is_process: bool,
}

/// The servers of a round when each was started, or failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServersStarted {
    pub(crate) arms: Vec<Result<Started, TrialFailure>>,
    /// Whether programs may be let into the kernel for slices of evidence.
    pub(crate) may_trace: bool,
}

/// What an arm did since its slice before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Waited {
    pub(crate) cpu_ns: u64,
    pub(crate) length_ns: u64,
    /// Whether it was stopped meanwhile.
    pub(crate) stopped: bool,
}

/// What was seen of a slice on the side of its server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SliceSeen {
    pub(crate) server_cpu_ns: u64,
    pub(crate) softirq_cpu_ns: u64,
    /// TCP segments that were sent in the network namespace of the servers.
    pub(crate) segments_sent: u64,
    /// What was observed, of a slice of evidence.
    pub(crate) evidence: Option<(Rung, Vec<Reading>)>,
    /// The slice was the arm's end.
    pub(crate) failure: Option<TrialFailure>,
}

/// What the servers left behind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stopped {
    pub(crate) arms: Vec<ArmStopped>,
    /// What the kernel counted in the namespace of the servers since before they started; where that is this
    /// laboratory's as well, whoever asks counts it and this is zero.
    pub(crate) network: NetworkCounters,
}

/// What one of them left behind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ArmStopped {
    /// The end of what a foreign server said.
    pub(crate) said: String,
    /// What failed in ending it.
    pub(crate) failure: Option<TrialFailure>,
}

/// Why the side of the servers gives no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// The session must stop.
    Stop(LaunchError),
    /// The host, or the way to it, was lost.
    Lost(String),
}

impl From<LaunchError> for NoAnswer {
    fn from(error: LaunchError) -> Self {
        Self::Stop(error)
    }
}

/// The servers of a round that were started, wherever they are.
pub(crate) trait RoundServers {
    /// Does one thing, and answers when it is done.
    fn ask(&mut self, command: RoundCommand) -> Result<RoundAnswer, NoAnswer>;

    /// Whether they are on another host than the generator.
    fn are_elsewhere(&self) -> bool;
}
