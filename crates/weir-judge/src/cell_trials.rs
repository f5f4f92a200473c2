//! One cell with its trials, and the state of the machine it is compared in. Pure.

use std::{collections::BTreeMap, rc::Rc};

use weir_record::{
    spec::{CellRole, CellSpec, StudySpec},
    trial::TrialRecord,
};

use crate::gate::{TrialState, ValidityGate};

/// The measurements of a cell.
#[derive(Clone, Debug)]
pub(crate) struct CellTrials<'a> {
    pub(crate) spec: &'a CellSpec,
    /// In the order they ran.
    pub(crate) trials: Vec<&'a TrialRecord>,
    /// `None` if no state has enough rounds: then all states count together.
    pub(crate) state: Option<TrialState>,
    /// Its rounds, or attempts at its blocks, in the order they ran. Cached because every metric needs them, in each
    /// state.
    rounds: Rc<[Round<'a>]>,
}

/// The trials that ran at the same time, or followed one another in a block.
#[derive(Clone, Debug)]
pub(crate) struct Round<'a> {
    pub(crate) trials: Vec<&'a TrialRecord>,
}

impl<'a> Round<'a> {
    /// An arm's first run, or its repeat.
    pub(crate) fn run(&self, arm: &str, repeat: bool) -> Option<&'a TrialRecord> {
        self.trials.iter().copied().find(|trial| trial.arm == arm && trial.repeat == repeat)
    }
}

impl<'a> CellTrials<'a> {
    /// The trials that belong to the cell.
    pub(crate) fn of(spec: &'a CellSpec, gate: &ValidityGate, trials: &[&'a TrialRecord]) -> Self {
        let mut own: Vec<&TrialRecord> =
            trials.iter().copied().filter(|trial| trial.cell_id == spec.id).collect();
        own.sort_by_key(|trial| trial.started_ns);
        let mut rounds: BTreeMap<(u32, u32), Vec<&'a TrialRecord>> = BTreeMap::new();
        for trial in &own {
            rounds.entry((trial.block, trial.attempt)).or_default().push(trial);
        }
        let mut rounds: Vec<Round<'a>> = rounds.into_values().map(|trials| Round { trials }).collect();
        rounds.sort_by_key(|round| round.trials.first().map(|trial| trial.started_ns));
        Self { spec, state: gate.cell_state(&own), trials: own, rounds: rounds.into() }
    }

    /// Its rounds, or attempts at its blocks, in the order they ran.
    pub(crate) fn rounds(&self) -> impl Iterator<Item = &Round<'a>> {
        self.rounds.iter()
    }

    pub(crate) fn of_arm<'s>(&'s self, arm: &'s str) -> impl Iterator<Item = &'s TrialRecord> + 's {
        self.trials.iter().copied().filter(move |trial| trial.arm == arm)
    }

    /// The same, compared in this state.
    pub(crate) fn in_state(&self, state: TrialState) -> Self {
        Self { state: Some(state), ..self.clone() }
    }
}

/// The primary cell first, then confirmatory, then exploratory cells, each in the spec's order. Cells that are drawn
/// over time are excluded, because they have no comparisons.
pub(crate) fn by_role<'a>(
    spec: &'a StudySpec,
    gate: &ValidityGate,
    trials: &'a [TrialRecord],
) -> Vec<CellTrials<'a>> {
    let all: Vec<&TrialRecord> = trials.iter().collect();
    let of_role = |role| spec.cells.iter().filter(move |cell| cell.role == role && !cell.is_series());
    [CellRole::Primary, CellRole::Confirmatory, CellRole::Exploratory]
        .into_iter()
        .flat_map(of_role)
        .map(|cell| CellTrials::of(cell, gate, &all))
        .collect()
}
