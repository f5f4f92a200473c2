//! One child process pair and what was seen of it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    finding::ExclusionKind,
    gateway::ChainTotals,
    load::LoadReport,
    machine::{CrossCoreReading, NetworkCounters},
    observation::Rung,
};

/// Why a trial is kept out of the comparison. It stays in the store with this reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Exclusion {
    /// More than 1 % of CPU time was stolen by the hypervisor.
    Steal,
    /// Other processes used more than 2 % of a core.
    ForeignCpu,
    /// The cross-core readings before and after belong to different machine states.
    StateChanged,
    /// Responses failed.
    Errors {
        /// How many, over all classes but cut-off-at-end.
        count: u64,
    },
    /// Little's law does not hold within 5 % and what the edges of the window explain.
    LittlesLaw,
    /// The server died or never became ready.
    ServerFailed {
        /// What it said.
        reason: String,
    },
    /// The generator died or gave no report.
    LoadFailed {
        /// What it said.
        reason: String,
    },
    /// Completion queue overflowed.
    CompletionOverflow,
    /// A storage job failed or gave no report.
    JobFailed {
        /// What it said.
        reason: String,
    },
    /// A process beside the server died or never began its work.
    NeighbourFailed {
        /// Which one, and what it said.
        reason: String,
    },
    /// The host of the servers, or the way to it, was lost.
    HostLost {
        /// Which one, and how.
        reason: String,
    },
}

impl From<&Exclusion> for ExclusionKind {
    fn from(exclusion: &Exclusion) -> Self {
        match exclusion {
            Exclusion::Steal => Self::Steal,
            Exclusion::ForeignCpu => Self::ForeignCpu,
            Exclusion::StateChanged => Self::StateChanged,
            Exclusion::Errors { .. } => Self::Errors,
            Exclusion::LittlesLaw => Self::LittlesLaw,
            Exclusion::ServerFailed { .. } => Self::ServerFailed,
            Exclusion::LoadFailed { .. } => Self::LoadFailed,
            Exclusion::CompletionOverflow => Self::CompletionOverflow,
            Exclusion::JobFailed { .. } => Self::JobFailed,
            Exclusion::NeighbourFailed { .. } => Self::NeighbourFailed,
            Exclusion::HostLost { .. } => Self::HostLost,
        }
    }
}

/// One arm, run once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TrialRecord {
    /// Cell it belongs to.
    pub cell_id: String,
    /// Block number in the cell, from 0.
    pub block: u32,
    /// Attempt at this block, from 0; a block that straddles machine states is run again.
    pub attempt: u32,
    /// Position in the block's random order, from 0.
    pub position: u32,
    /// Arm name.
    pub arm: String,
    /// `true` for the baseline's second run (A/A).
    pub repeat: bool,
    /// Start, nanoseconds since the start of the study's first session.
    pub started_ns: u64,
    /// Full length of the trial with start-up and teardown.
    pub elapsed_ns: u64,
    /// Cross-core reading before, while neither child ran.
    pub reading_before: CrossCoreReading,
    /// Cross-core reading after, when both children were gone.
    pub reading_after: CrossCoreReading,
    /// What the kernel counted between the two readings: also while connections opened, before the window.
    pub network: NetworkCounters,
    /// Files of the programs that its servers were started from, each with a hash of its content.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub programs: BTreeMap<String, String>,
    /// The generator's report; absent when it failed.
    pub load: Option<LoadReport>,
    /// What gateway and exchange counted over the whole trial; absent for everything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain: Option<ChainTotals>,
    /// Reasons to keep it out of the comparison; empty when it is clean.
    #[serde(alias = "taints")]
    pub exclusions: Vec<Exclusion>,
    /// The arm's slices, in time order, where the arms of a block take turns; empty for a whole trial. The report is
    /// then the sum over them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<SliceRecord>,
    /// Its slices of evidence, which are in no figure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EvidenceSlice>,
}

/// A server that uses more of a CPU than this while it waits works while it waits, and is stopped between its slices.
pub const WAITING_SHARE_MAX: f64 = 0.005;

/// One slice: the load went to this arm alone while the others waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SliceRecord {
    /// Which permutation of the arms it belongs to, from 0. Slices of one permutation are compared with each other.
    pub permutation: u32,
    /// Place within the permutation, from 0.
    pub place: u32,
    /// From the first start to the last answer.
    pub length_ns: u64,
    /// Messages completed and verified.
    pub messages: u64,
    /// CPU of the server's processes, read while it slept before and after.
    pub server_cpu_ns: u64,
    /// CPU of the server, the generator and the kernel's softirq threads together; for servers on another host without
    /// the generator.
    pub machine_cpu_ns: u64,
    /// CPU of the generator's threads.
    pub generator_cpu_ns: u64,
    /// CPU the server used since its slice before, while it had nothing to do.
    pub waiting_cpu_ns: u64,
    /// How long that was.
    pub waiting_ns: u64,
    /// Whether it was stopped meanwhile, because it had worked while it waited.
    pub stopped: bool,
    /// Failed messages and connections.
    pub errors: u64,
    /// Intended starts of an open loop that were not made before its end; 0 in closed loop, and in studies that were
    /// stored before slices counted them.
    pub missed_starts: u64,
    /// Connections opened again before it, because the server had closed them.
    pub reopened: u32,
    /// TCP segments that were sent in the network namespaces of both ends during it, without acknowledgements that the
    /// timer of delayed ones sent (they answer an earlier slice); 0 where nobody counted.
    pub segments: u64,
}

/// A slice of evidence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvidenceSlice {
    /// The highest rung that observed it. Slices of [`Rung::Process`] stand beside those of a higher one, and show what
    /// observing costs.
    pub rung: Rung,
    /// Its messages and clocks; `permutation` counts the pairs of a round.
    pub slice: SliceRecord,
    /// What was observed.
    pub readings: Vec<Reading>,
}

/// One number, over one slice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reading {
    /// What it is of: `engine`, `process`, `thread NAME`, `call NAME`.
    pub source: String,
    /// What it counts, with its unit: `cpu-ns`, `context-switches-voluntary`.
    pub key: String,
    /// How much of it there was.
    pub value: f64,
}

impl TrialRecord {
    /// What part of a CPU the server used while it waited and was let, or went on although it was stopped; absent where
    /// it never did, or nothing waited.
    pub fn waiting_share(&self) -> Option<f64> {
        let goes_on = self.stopped_share().is_some();
        share_of_waits(self.slices.iter().filter(|slice| goes_on || !slice.stopped))
    }

    /// The same of the waits in which it was stopped, where that is more than a stopped process uses: a thread of the
    /// kernel may go on for it.
    pub fn stopped_share(&self) -> Option<f64> {
        let stopped = self.slices.iter().filter(|slice| slice.stopped);
        share_of_waits(stopped).filter(|share| *share > WAITING_SHARE_MAX)
    }
}

fn share_of_waits<'a>(slices: impl Iterator<Item = &'a SliceRecord>) -> Option<f64> {
    let sum = |(length_ns, cpu_ns): (u64, u64), slice: &SliceRecord| {
        (length_ns + slice.waiting_ns, cpu_ns + slice.waiting_cpu_ns)
    };
    let (length_ns, cpu_ns) = slices.fold((0, 0), sum);
    (length_ns > 0).then(|| cpu_ns as f64 / length_ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_does_while_it_waits_is_seen_where_it_is_not_stopped() {
        let wait = |waiting_cpu_ns: u64, waiting_ns: u64, stopped: bool| SliceRecord {
            waiting_cpu_ns,
            waiting_ns,
            stopped,
            ..SliceRecord::default()
        };
        let share = |slices: &[SliceRecord]| {
            TrialRecord { slices: slices.to_vec(), ..TrialRecord::default() }.waiting_share()
        };
        assert_eq!(share(&[wait(10, 100, false), wait(50, 100, false), wait(0, 800, true)]), Some(0.3));
        assert_eq!((share(&[]), share(&[wait(0, 5, true)])), (None, None));
        // What a kernel thread does for it while its processes stand is work too.
        let goes_on = [wait(100, 100, false), wait(500, 1_000, true)];
        assert_eq!(share(&goes_on), Some(600.0 / 1_100.0));
        let trial = TrialRecord { slices: goes_on.to_vec(), ..TrialRecord::default() };
        assert_eq!(trial.stopped_share(), Some(0.5));
    }

    #[test]
    fn a_trial_stored_before_http_opens() {
        let old = r#"{"cell_id":"c100-d1-m64-closed","block":3,"attempt":0,"position":1,"arm":"epoll","repeat":true,
            "started_ns":5,"elapsed_ns":6,"load":null,"taints":[{"kind":"errors","count":2}]}"#;
        let trial: TrialRecord = serde_json::from_str(old).expect("it is a trial");
        assert_eq!((trial.block, trial.repeat, trial.network), (3, true, NetworkCounters::default()));
        assert_eq!(trial.exclusions, [Exclusion::Errors { count: 2 }]);
    }
}
