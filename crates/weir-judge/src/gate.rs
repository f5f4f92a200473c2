//! Which trials are comparable: machine states, and the pairs within one of them. Pure.
//!
//! The rules are fixed before the data are seen and never use an outcome. A trial has a state only if its readings
//! before and after agree. A pair is an arm and a baseline run of the same attempt at the same block, both clean and
//! both in the cell's state; of several attempts the first with a pair counts. A cell is compared in the state in
//! which it has more clean trials, because ratios differ between states: a mixture would depend on how the states
//! happened to alternate. This holds for rounds in which the arms took turns as well. If no state has enough of those
//! for a decision all are compared together.

use std::collections::{BTreeMap, BTreeSet};

use weir_record::{
    finding::ExclusionKind,
    machine::CrossCoreReading,
    study::MachineStates,
    trial::{Exclusion, TrialRecord},
};
use weir_stats::{
    decide::UNITS_MIN,
    states::{States, find_states},
};

use crate::exclusion;

/// State of the machine during a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialState {
    /// Both readings near, or the machine has one state, or no readings were taken.
    Near,
    /// Both readings far.
    Far,
    /// The machine changed its state during the trial.
    Changed,
}

/// Decides which trials are comparable, by the machine's states in the study's own readings.
#[derive(Clone, Debug)]
pub struct ValidityGate {
    states: Option<States>,
}

/// What the baseline's first run is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against<'a> {
    /// The named arm against the baseline.
    Arm(&'a str),
    /// The baseline's second run against its first.
    Itself,
}

/// An arm's trial and the baseline's trial it is compared with.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// The arm's.
    pub arm: &'a TrialRecord,
    /// The baseline's.
    pub baseline: &'a TrialRecord,
}

/// The pairs of one comparison.
#[derive(Clone, Debug, Default)]
pub struct Pairs<'a> {
    /// At most one per block, in block order.
    pub used: Vec<Pair<'a>>,
    /// Blocks without a pair, counted by reason.
    pub excluded: BTreeMap<ExclusionKind, u32>,
    /// Pairs of every attempt in which both trials gave figures, including those excluded for noise.
    pub all: Vec<Pair<'a>>,
}

impl ValidityGate {
    /// Finds the states in the readings of all trials.
    pub fn new<'a>(trials: impl IntoIterator<Item = &'a TrialRecord>) -> Self {
        let readings: Vec<f64> = trials
            .into_iter()
            .flat_map(|trial| [trial.reading_before, trial.reading_after])
            .filter(is_taken)
            .map(|reading| reading.round_trip_ns)
            .collect();
        Self { states: find_states(&readings) }
    }

    /// Whether the machine has a near and a far state.
    pub fn has_two_states(&self) -> bool {
        self.states.is_some_and(|states| states.boundary_ns().is_some())
    }

    /// Whether a reading belongs to the far state.
    pub fn is_far(&self, reading: &CrossCoreReading) -> bool {
        is_taken(reading) && self.states.is_some_and(|states| states.is_far(reading.round_trip_ns))
    }

    /// State of the machine during a trial. A missing reading agrees with the other one.
    pub fn state(&self, trial: &TrialRecord) -> TrialState {
        let readings = [&trial.reading_before, &trial.reading_after];
        let has = |is_far: bool| {
            readings.into_iter().any(|reading| is_taken(reading) && self.is_far(reading) == is_far)
        };
        match (has(true), has(false)) {
            (true, true) => TrialState::Changed,
            (true, false) => TrialState::Far,
            (false, _) => TrialState::Near,
        }
    }

    /// All reasons to exclude a trial, including its machine state.
    pub fn exclusions(&self, trial: &TrialRecord) -> Vec<Exclusion> {
        let mut exclusions = trial.exclusions.clone();
        if self.has_changed(trial) && !exclusions.contains(&Exclusion::StateChanged) {
            exclusions.push(Exclusion::StateChanged);
        }
        exclusions
    }

    /// Whether the machine changed its state during a trial without turns: with turns the change affects all arms.
    fn has_changed(&self, trial: &TrialRecord) -> bool {
        self.state(trial) == TrialState::Changed && !took_turns(trial)
    }

    /// Whether there is no reason to exclude the trial.
    pub fn is_clean(&self, trial: &TrialRecord) -> bool {
        trial.exclusions.is_empty() && !self.has_changed(trial)
    }

    /// Whether the machine has two states and a clean trial ran in the near one. Excluded trials and those that
    /// changed state help to find the states; but a state without a valid measurement is not worth waiting for.
    pub fn has_near_state<'a>(&self, trials: impl IntoIterator<Item = &'a TrialRecord>) -> bool {
        self.has_two_states() && self.has_met(TrialState::Near, trials)
    }

    /// The state in which every block should have its pairs: near, unless all clean trials were far.
    pub fn wanted_state(&self, trials: &[&TrialRecord]) -> TrialState {
        let has_met = |state| self.has_met(state, trials.iter().copied());
        if has_met(TrialState::Far) && !has_met(TrialState::Near) {
            TrialState::Far
        } else {
            TrialState::Near
        }
    }

    fn has_met<'a>(&self, state: TrialState, trials: impl IntoIterator<Item = &'a TrialRecord>) -> bool {
        trials
            .into_iter()
            .any(|trial| has_reading(trial) && self.state(trial) == state && self.is_clean(trial))
    }

    /// The state in which a cell is compared: the one with more clean trials, near if equal. `None` if its arms took
    /// turns and neither state has [`UNITS_MIN`] rounds.
    pub fn cell_state(&self, trials: &[&TrialRecord]) -> Option<TrialState> {
        let own = |state| -> Vec<&TrialRecord> {
            let is_own = |trial: &&TrialRecord| self.is_clean(trial) && self.state(trial) == state;
            trials.iter().copied().filter(is_own).collect()
        };
        let (near, far) = (own(TrialState::Near), own(TrialState::Far));
        let (state, most) =
            if far.len() > near.len() { (TrialState::Far, far) } else { (TrialState::Near, near) };
        let rounds: BTreeSet<u32> = most.iter().map(|trial| trial.block).collect();
        let is_mixed = rounds.len() < UNITS_MIN && trials.iter().copied().any(took_turns);
        (!is_mixed).then_some(state)
    }

    /// The record's view of the states.
    pub fn summary<'a>(&self, trials: impl IntoIterator<Item = &'a TrialRecord>) -> MachineStates {
        let mut counts = (0, 0, 0);
        for trial in trials {
            match self.state(trial) {
                _ if self.states.is_some() && !has_reading(trial) => {}
                TrialState::Near => counts.0 += 1,
                TrialState::Far => counts.1 += 1,
                TrialState::Changed => counts.2 += 1,
            }
        }
        let (near_ns, far_ns) = match self.states {
            None => (0.0, None),
            Some(States::One { median_ns }) => (median_ns, None),
            Some(States::Two { near_ns, far_ns, .. }) => (near_ns, Some(far_ns)),
        };
        let boundary_ns = self.states.and_then(|states| states.boundary_ns());
        MachineStates { boundary_ns, near_ns, far_ns, trials: counts }
    }

    /// The pairs of one comparison within a cell.
    ///
    /// The baseline's first run is the partner: the arm and the repeat then have the same relation to it, and the A/A
    /// ratios show exactly the noise of the arm's ratios. (The mean of both runs would be a better baseline but would
    /// make A/A overstate that noise.) If the first run is not usable the repeat takes its place; both are the same
    /// program at a random position in the block.
    pub fn pairs<'a>(
        &self,
        cell: &[&'a TrialRecord],
        baseline: &str,
        against: Against<'_>,
        state: Option<TrialState>,
    ) -> Pairs<'a> {
        let mut attempts: BTreeMap<u32, BTreeMap<u32, Vec<&'a TrialRecord>>> = BTreeMap::new();
        for trial in cell {
            attempts.entry(trial.block).or_default().entry(trial.attempt).or_default().push(trial);
        }
        let mut pairs = Pairs::default();
        for attempts in attempts.values() {
            let mut found = None;
            let mut reason = None;
            for trials in attempts.values() {
                let runs = Runs::of(trials, baseline, against);
                pairs.all.extend(runs.pair(is_comparable));
                if found.is_none() {
                    found = runs.pair(|trial| self.is_usable(trial, state));
                    reason = runs.obstacle(|trial| self.obstacle(trial, state)).or(reason);
                }
            }
            match (found, reason) {
                (Some(pair), _) => pairs.used.push(pair),
                (None, Some(reason)) => *pairs.excluded.entry(reason).or_default() += 1,
                (None, None) => {}
            }
        }
        // An attempt may have run after blocks with higher numbers.
        pairs.used.sort_by_key(|pair| pair.arm.started_ns);
        pairs
    }

    /// Whether the trial is comparable in this state, or in any.
    pub fn is_usable(&self, trial: &TrialRecord, state: Option<TrialState>) -> bool {
        self.obstacle(trial, state).is_none()
    }

    /// Why not.
    pub(crate) fn obstacle(&self, trial: &TrialRecord, state: Option<TrialState>) -> Option<ExclusionKind> {
        if let Some(first) = trial.exclusions.first() {
            return Some(ExclusionKind::from(first));
        }
        if self.has_changed(trial) {
            return Some(ExclusionKind::StateChanged);
        }
        match (self.state(trial), state?) {
            (own, wanted) if own == wanted => None,
            // A computed trial has no state.
            _ if !has_reading(trial) => None,
            (TrialState::Far, _) => Some(ExclusionKind::InFarState),
            (TrialState::Near, _) => Some(ExclusionKind::InNearState),
            (TrialState::Changed, _) => Some(ExclusionKind::from(&Exclusion::StateChanged)),
        }
    }
}

/// The runs of one attempt that a comparison uses.
struct Runs<'a> {
    arm: Option<&'a TrialRecord>,
    /// In order of preference.
    baselines: Vec<&'a TrialRecord>,
}

impl<'a> Runs<'a> {
    fn of(trials: &[&'a TrialRecord], baseline: &str, against: Against<'_>) -> Self {
        let run = |arm: &str, repeat: bool| {
            trials.iter().copied().find(|trial| trial.arm == arm && trial.repeat == repeat)
        };
        let (first, second) = (run(baseline, false), run(baseline, true));
        match against {
            Against::Itself => Self { arm: second, baselines: first.into_iter().collect() },
            Against::Arm(arm) => {
                Self { arm: run(arm, false), baselines: first.into_iter().chain(second).collect() }
            }
        }
    }

    fn pair(&self, usable: impl Fn(&TrialRecord) -> bool) -> Option<Pair<'a>> {
        let arm = self.arm.filter(|arm| usable(arm))?;
        let baseline = self.baselines.iter().copied().find(|baseline| usable(baseline))?;
        Some(Pair { arm, baseline })
    }

    /// Why there is no pair, for the first run with an obstacle.
    fn obstacle(&self, obstacle: impl Fn(&TrialRecord) -> Option<ExclusionKind>) -> Option<ExclusionKind> {
        self.arm.into_iter().chain(self.baselines.iter().copied()).find_map(obstacle)
    }
}

/// Whether it is one of several that ran at the same time and were loaded in turn.
fn took_turns(trial: &TrialRecord) -> bool {
    !trial.slices.is_empty()
}

/// Whether the trial gave figures, however noisy the machine was.
pub(crate) fn is_comparable(trial: &TrialRecord) -> bool {
    trial.load.is_some() && trial.exclusions.iter().all(exclusion::is_noise)
}

/// Whether the machine's state was read around it; a computed trial has no reading.
pub(crate) fn has_reading(trial: &TrialRecord) -> bool {
    is_taken(&trial.reading_before) || is_taken(&trial.reading_after)
}

fn is_taken(reading: &CrossCoreReading) -> bool {
    reading.round_trip_ns.is_finite() && reading.round_trip_ns > 0.0
}
