//! How far a study is: which planned blocks have run, and which of them lack pairs because of noise. Pure, so that a
//! stored study gives the same result as the session that stored it.

use weir_record::{
    finding::{Finding, Stopped},
    spec::{CellRole, CellSpec, StudySpec},
    study::MissingArm,
    trial::{Exclusion, TrialRecord},
};

use crate::{
    gate::{self, Against, ValidityGate},
    missing,
    plan::{self, PlannedBlock},
};

/// Most attempts at one block, including the first. A cell without a claim gets at most one further attempt: on a
/// machine whose near state does not return, the study would take three times as long as planned.
pub const fn attempts_max(role: CellRole) -> u32 {
    match role {
        CellRole::Primary | CellRole::Confirmatory => 4,
        CellRole::Exploratory => 2,
    }
}

/// How far a study is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Planned blocks that ran, including those of cells with nothing left to compare.
    pub blocks_done: u32,
    /// Planned blocks.
    pub blocks: u32,
    /// Completed blocks that lack a clean pair and may be repeated.
    pub blocks_to_repeat: u32,
    /// Whether trials ran in the near state of a machine with two. If so, clean pairs are needed in that one.
    pub has_near_state: bool,
}

impl Progress {
    /// The progress of a study with these trials.
    pub fn of(spec: &StudySpec, trials: &[&TrialRecord], missing: &[MissingArm]) -> Self {
        let gaps = gaps(spec, trials, missing);
        let to_run = gaps.iter().filter(|(_, attempts)| *attempts == 0).count();
        let blocks = spec.cells.iter().map(|cell| cell.blocks).sum();
        Self {
            blocks_done: blocks - count(to_run),
            blocks,
            blocks_to_repeat: count(gaps.len() - to_run),
            has_near_state: ValidityGate::new(trials.iter().copied()).has_near_state(trials.iter().copied()),
        }
    }

    /// Whether every planned round and block ran.
    pub fn is_finished(&self) -> bool {
        self.blocks_done >= self.blocks
    }

    /// Whether another session would have nothing to do.
    pub fn is_complete(&self) -> bool {
        self.blocks_done == self.blocks && self.blocks_to_repeat == 0
    }

    /// The finding about the schedule, and why it was not finished.
    pub fn finding(&self, stopped: Option<Stopped>) -> Finding {
        let Self { blocks_done, blocks, blocks_to_repeat, has_near_state } = *self;
        Finding::Schedule { blocks_done, blocks, blocks_to_repeat, has_near_state, stopped }
    }
}

/// Blocks that have not run, or lack a pair in the wanted state ([`ValidityGate::wanted_state`]) and may be repeated,
/// with the number of the next attempt; primary first. A cell with nothing left to compare has none.
pub fn gaps(spec: &StudySpec, trials: &[&TrialRecord], missing: &[MissingArm]) -> Vec<(PlannedBlock, u32)> {
    let gate = ValidityGate::new(trials.iter().copied());
    let wanted = gate.wanted_state(trials);
    let others: Vec<&str> = spec
        .arms
        .iter()
        .skip(1)
        .map(|arm| arm.name.as_str())
        .filter(|arm| !never_served(trials, arm))
        .collect();
    let first = spec.arms[0].name.as_str();
    // For a study that ended because its baseline is missing, the actual progress is reported.
    let has_ended = has_nothing_to_compare(spec, missing);
    let is_gone =
        |arm: &str, cell: &CellSpec| missing::is_gone(missing, &cell.id, arm, trials.iter().copied());
    let is_empty = |cell: &CellSpec| {
        spec.arms.iter().filter(|arm| cell.has_arm(&arm.name)).all(|arm| is_gone(&arm.name, cell))
    };
    let is_over = |cell: &CellSpec| {
        let has_pairs_left = cell.is_series() || !missing::is_over(spec, cell, trials.iter().copied());
        !has_ended && (!has_pairs_left || is_empty(cell))
    };
    let are_over: Vec<bool> = spec.cells.iter().map(is_over).collect();
    let mut gaps: Vec<(PlannedBlock, u32)> = plan::schedule(spec)
        .into_iter()
        .filter(|planned| !are_over[planned.cell])
        .filter_map(|planned| {
            let cell = &spec.cells[planned.cell];
            let is_own = |trial: &&TrialRecord| trial.cell_id == cell.id && trial.block == planned.block;
            let own: Vec<&TrialRecord> = trials.iter().copied().filter(is_own).collect();
            let attempts = own.iter().map(|trial| trial.attempt + 1).max().unwrap_or(0);
            if cell.is_series() {
                return (attempts == 0).then_some((planned, attempts));
            }
            let has_pair = |against: Against<'_>| {
                let of_arm = |name: &str| spec.arms.iter().find(|arm| arm.name == name);
                let baseline = match against {
                    Against::Arm(name) => of_arm(name).map_or(first, |arm| spec.baseline_of(arm)),
                    Against::Itself => first,
                };
                !gate.pairs(&own, baseline, against, Some(wanted)).used.is_empty()
            };
            // Only noise is a reason to run a block again: what failed for other reasons would otherwise be
            // repeated until it does not. Arms that take turns meet the same noise. A host that was lost says nothing
            // of any arm.
            let last = own.iter().filter(|trial| trial.attempt + 1 == attempts);
            let was_lost = last.flat_map(|trial| &trial.exclusions).any(is_loss);
            let takes_turns = cell.alternation.is_some();
            if attempts > 0 && !was_lost && (takes_turns || !own.iter().copied().all(gate::is_comparable)) {
                return None;
            }
            let own_others = others.iter().copied().filter(|arm| cell.has_arm(arm) && !is_gone(arm, cell));
            let is_filled = own_others.map(Against::Arm).chain([Against::Itself]).all(has_pair);
            (attempts < attempts_max(cell.role) && !is_filled).then_some((planned, attempts))
        })
        .collect();
    gaps.sort_by_key(|(planned, attempts)| (role_rank(spec, planned.cell), *attempts));
    gaps
}

fn is_loss(exclusion: &Exclusion) -> bool {
    matches!(exclusion, Exclusion::HostLost { .. })
}

/// Whether of every arm it is missing itself or its baseline.
pub fn has_nothing_to_compare(spec: &StudySpec, missing: &[MissingArm]) -> bool {
    let is_missing = |name: &str| missing.iter().any(|arm| arm.name == name);
    spec.arms.iter().skip(1).all(|arm| is_missing(&arm.name) || is_missing(spec.baseline_of(arm)))
}

/// Whether the arm's server failed in every trial.
fn never_served(trials: &[&TrialRecord], arm: &str) -> bool {
    let failed = |trial: &&TrialRecord| {
        trial.exclusions.iter().any(|exclusion| matches!(exclusion, Exclusion::ServerFailed { .. }))
    };
    let own: Vec<&TrialRecord> = trials.iter().copied().filter(|trial| trial.arm == arm).collect();
    !own.is_empty() && own.iter().all(failed)
}

fn role_rank(spec: &StudySpec, cell: usize) -> u8 {
    match spec.cells[cell].role {
        CellRole::Primary => 0,
        CellRole::Confirmatory => 1,
        CellRole::Exploratory => 2,
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    /// Attempts at the blocks of a study whose arms take turns, where every trial of the first block ended so.
    fn gaps_after(exclusion: Exclusion) -> Vec<(u32, u32)> {
        let mut spec = sample::study(&["epoll", "uring"], 2, 1);
        spec.cells[0].alternation = Some(weir_record::spec::Alternation {
            slice_ns: 25_000_000,
            permutations: 2,
            prime_messages: 2,
            evidence: None,
        });
        let trial = |arm: &str, repeat: bool| TrialRecord {
            cell_id: spec.cells[0].id.clone(),
            arm: arm.to_owned(),
            repeat,
            exclusions: vec![exclusion.clone()],
            ..TrialRecord::default()
        };
        let trials = [trial("epoll", false), trial("uring", false), trial("epoll", true)];
        let gaps = gaps(&spec, &trials.iter().collect::<Vec<_>>(), &[]);
        gaps.into_iter().map(|(planned, attempts)| (planned.block, attempts)).collect()
    }

    #[test]
    fn a_round_whose_host_was_lost_is_run_again_and_one_whose_server_failed_is_not() {
        let reason = "b: the way to it exited with status 255".to_owned();
        assert_eq!(gaps_after(Exclusion::HostLost { reason: reason.clone() }), [(1, 0), (0, 1)]);
        assert_eq!(gaps_after(Exclusion::LoadFailed { reason }), [(1, 0)]);
    }
}
