//! Pilots measure the throughput of a cell's arms in closed loop, so that the cell's rate can be a share of the
//! smallest capacity. Pure.
//!
//! Cells that differ in the share alone have one pilot, and so one capacity: the ratio of their rates is the ratio of
//! their shares. A pilot is a few rounds, or a block of whole trials. Its figure is a calibration and not a result.
//! For each rate, the report says which share it is of the capacity that the study itself measured in closed loop.

use std::collections::BTreeMap;

use weir_judge::{missing::PILOT_SUFFIX, plan::PlannedBlock};
use weir_record::{
    finding::Finding,
    spec::{Alternation, CellRole, CellSpec, LoadMode, MissingCell, StudySpec},
    trial::TrialRecord,
};
use weir_stats::order::median;

use crate::protocol;

/// Rounds of a pilot whose arms take turns, each half as long as a round of its cell. Three, so that no single round
/// decides: with a single one, the first of its study, an arm of six was measured at half its rate, and so were all
/// of the study's equal rates.
const ROUNDS: u32 = 3;

/// Further rounds or blocks after one in which no answer came back.
const FURTHER: u32 = 1;

/// Name of a pilot's blocks in the store.
pub fn id(cell_id: &str) -> String {
    format!("{cell_id}{PILOT_SUFFIX}")
}

/// The pilot of a cell whose rate is a share.
pub(crate) struct Pilot {
    /// The cell of the pilot, in closed loop.
    pub(crate) cell: CellSpec,
    /// The planned block whose seeds it uses.
    pub(crate) planned: PlannedBlock,
    /// Number of rounds or blocks that suffice.
    pub(crate) rounds: u32,
}

impl Pilot {
    /// The pilot of this cell, which other cells may share.
    pub(crate) fn of(spec: &StudySpec, index: usize) -> Self {
        let first = first_alike(spec, index);
        let cell = &spec.cells[first];
        let mut pilot = CellSpec { id: id(&cell.id), load: LoadMode::Closed, ..cell.clone() };
        if protocol::of(cell).has_capacity_of_baseline() {
            pilot.arms = vec![spec.arms[0].name.clone()];
        }
        if let Some(turns) = &mut pilot.alternation {
            turns.permutations = turns.permutations.div_ceil(2);
            turns.evidence = None;
        }
        let rounds = if cell.alternation.is_some() { ROUNDS } else { 1 };
        Self { cell: pilot, planned: PlannedBlock { cell: first, block: 0 }, rounds }
    }

    /// Most rounds or blocks, including those in which no answer came back.
    pub(crate) fn rounds_max(&self) -> u32 {
        self.rounds + FURTHER
    }
}

/// Whether a cell is to run and has no rate yet.
pub(crate) fn wants_rate(cell: &CellSpec) -> bool {
    matches!(cell.load, LoadMode::OpenShare { .. }) && cell.blocks > 0
}

/// The pilot that a cell adds to its study; `None` if its rate is no share, or an earlier cell has the same pilot.
pub(crate) fn added(spec: &StudySpec, cell: &CellSpec) -> Option<Pilot> {
    let index = spec.cells.iter().position(|own| own.id == cell.id).filter(|_| wants_rate(cell))?;
    let pilot = Pilot::of(spec, index);
    let has_it =
        |other: usize| wants_rate(&spec.cells[other]) && Pilot::of(spec, other).cell.id == pilot.cell.id;
    (!(0..index).any(has_it)).then_some(pilot)
}

/// The first cell that has the same pilot.
fn first_alike(spec: &StudySpec, index: usize) -> usize {
    spec.cells.iter().position(|cell| is_alike(cell, &spec.cells[index])).unwrap_or(index)
}

/// Whether a cell is in open loop and differs from another only in its rate or in how long it is measured. A cell
/// with a fixed rate counts too: the rate may have been a share in an earlier session.
fn is_alike(cell: &CellSpec, other: &CellSpec) -> bool {
    let bare = |cell: &CellSpec| CellSpec {
        id: String::new(),
        role: CellRole::Exploratory,
        load: LoadMode::Closed,
        blocks: 0,
        is_rung: false,
        alternation: cell.alternation.map(|turns| Alternation {
            slice_ns: 0,
            permutations: 0,
            evidence: None,
            ..turns
        }),
        ..cell.clone()
    };
    cell.load != LoadMode::Closed && bare(cell) == bare(other)
}

/// Fixes the rate of a cell and of all others that share its pilot, so that all are shares of one number even if the
/// session ends. Returns their identifiers and rates.
pub(crate) fn fix_rates(spec: &mut StudySpec, index: usize, capacity: f64) -> Vec<(String, f64)> {
    let own = spec.cells[index].clone();
    let alike = spec.cells.iter_mut().filter(|cell| is_alike(cell, &own));
    let fix = |cell: &mut CellSpec| {
        let LoadMode::OpenShare { share, poisson } = cell.load else { return None };
        let rate_per_second = (capacity * share).floor().max(1.0);
        cell.load = LoadMode::Open { rate_per_second, poisson, share: Some(share) };
        Some((cell.id.clone(), rate_per_second))
    };
    alike.filter_map(fix).collect()
}

/// Leaves out a cell in whose pilot no arm runs any more, and all others that share the pilot: without a rate they
/// cannot run. Returns their identifiers.
pub(crate) fn leave_out(spec: &mut StudySpec, index: usize, said: &str) -> Vec<String> {
    let own = spec.cells[index].clone();
    let alike = spec.cells.iter_mut().filter(|cell| wants_rate(cell) && is_alike(cell, &own));
    let leave_out = |cell: &mut CellSpec| {
        // The other cells keep their places, because the study's random numbers depend on them.
        cell.blocks = 0;
        cell.id.clone()
    };
    let left_out: Vec<String> = alike.map(leave_out).collect();
    let reason = Finding::NoCapacity { said: said.to_owned() };
    let missing = left_out.iter().map(|id| MissingCell { id: id.clone(), reason: reason.clone() });
    spec.missing_cells.extend(missing);
    left_out
}

/// The trials of a pilot's round or block, of the arms that run.
pub(crate) type PilotRound<'t> = Vec<&'t TrialRecord>;

/// Number of rounds in which every arm that has a trial got an answer.
pub(crate) fn whole_rounds(rounds: &[PilotRound<'_>]) -> usize {
    rounds.iter().filter(|round| is_whole(round)).count()
}

fn is_whole(round: &[&TrialRecord]) -> bool {
    !round.is_empty() && round.iter().all(|trial| throughput(trial).is_some())
}

/// The smallest capacity: the median of each arm's trials, because a disturbance may hit a single round. All arms use
/// the same rounds: the whole ones, or all rounds if none is whole. `None` if no arm measured any.
pub(crate) fn capacity(rounds: &[PilotRound<'_>]) -> Option<f64> {
    let has_whole = whole_rounds(rounds) > 0;
    let mut arms: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for trial in rounds.iter().filter(|round| is_whole(round) || !has_whole).flatten() {
        arms.entry(&trial.arm).or_default().extend(throughput(trial));
    }
    arms.values().filter_map(|rates| median(rates)).min_by(f64::total_cmp)
}

/// Throughput of a trial; `None` if no answer came back, because a capacity of zero is not a capacity.
fn throughput(trial: &TrialRecord) -> Option<f64> {
    trial.load.as_ref().map(|load| load.throughput_per_second).filter(|rate| *rate > 0.0)
}

#[cfg(test)]
mod tests {
    use weir_judge::sample;
    use weir_record::load::LoadReport;

    use super::*;
    use crate::alternation;

    fn spec(shares: &[f64]) -> StudySpec {
        let mut spec = sample::study(&["epoll", "uring"], 8, 1);
        for (number, share) in shares.iter().enumerate() {
            let load = LoadMode::OpenShare { share: *share, poisson: true };
            let cell = CellSpec { id: format!("open-{number}"), load, ..spec.cells[0].clone() };
            spec.cells.push(cell);
        }
        spec
    }

    #[test]
    fn cells_that_differ_in_the_share_alone_have_one_pilot() {
        let mut spec = spec(&[0.5, 0.7, 0.9]);
        spec.cells[3].connections = 10;
        alternation::apply(&mut spec);
        let pilots: Vec<String> = (1..4).map(|index| Pilot::of(&spec, index).cell.id).collect();
        assert_eq!(pilots, ["open-0-pilot", "open-0-pilot", "open-2-pilot"]);
        let rounds = spec.cells.iter().map(|cell| added(&spec, cell).map_or(0, |pilot| pilot.rounds));
        let rounds: Vec<u32> = rounds.collect();
        assert_eq!(rounds, [0, 3, 0, 3]);
        // The number of turns in a round does not change the load.
        let turns = spec.cells[2].alternation.as_mut().expect("arms take turns");
        turns.permutations += 2;
        assert_eq!(Pilot::of(&spec, 2).cell.id, "open-0-pilot");
        // The first rate is fixed; a session that resumes here finds the same pilot.
        spec.cells[1].load = LoadMode::Open { rate_per_second: 50_000.0, poisson: true, share: None };
        assert_eq!(Pilot::of(&spec, 2).cell.id, "open-0-pilot");
        assert_eq!(Pilot::of(&spec, 2).planned, PlannedBlock { cell: 1, block: 0 });
    }

    #[test]
    fn whole_trials_have_one_block_and_at_most_one_more() {
        let spec = spec(&[0.5]);
        let pilot = Pilot::of(&spec, 1);
        assert_eq!((pilot.rounds, pilot.rounds_max(), pilot.cell.load), (1, 2, LoadMode::Closed));
    }

    fn rounds(epoll: &[f64], uring: &[f64]) -> Vec<[TrialRecord; 2]> {
        let trial = |arm: &str, throughput_per_second: f64| TrialRecord {
            arm: arm.to_owned(),
            load: Some(LoadReport { throughput_per_second, ..LoadReport::default() }),
            ..TrialRecord::default()
        };
        epoll.iter().zip(uring).map(|(one, other)| [trial("epoll", *one), trial("uring", *other)]).collect()
    }

    fn capacity_of(rounds: &[[TrialRecord; 2]]) -> Option<f64> {
        capacity(&rounds.iter().map(|round| round.iter().collect()).collect::<Vec<PilotRound<'_>>>())
    }

    #[test]
    fn the_capacity_is_that_of_the_slowest_arm_and_no_single_round_decides_it() {
        assert_eq!(capacity_of(&rounds(&[100.0, 10.0, 105.0], &[150.0, 150.0, 140.0])), Some(100.0));
        assert_eq!(capacity_of(&rounds(&[0.0], &[0.0])), None, "a capacity of zero is none");
    }

    #[test]
    fn all_arms_have_their_capacity_of_the_same_rounds() {
        // In the first round the machine was slow and one arm silent: the round does not count for the other arm
        // either.
        let one_failed = rounds(&[40.0, 100.0, 104.0], &[0.0, 150.0, 140.0]);
        assert_eq!(capacity_of(&one_failed), Some(102.0));
        // No round is whole.
        assert_eq!(capacity_of(&rounds(&[40.0, 0.0], &[0.0, 150.0])), Some(40.0));
    }

    #[test]
    fn rates_that_have_one_pilot_are_fixed_together() {
        let mut spec = spec(&[0.5, 0.7, 0.9]);
        spec.cells[2].connections = 10;
        let fixed = fix_rates(&mut spec, 1, 1_000.5);
        assert_eq!(fixed, [("open-0".to_owned(), 500.0), ("open-2".to_owned(), 900.0)]);
        assert_eq!(
            spec.cells[3].load,
            LoadMode::Open { rate_per_second: 900.0, poisson: true, share: Some(0.9) }
        );
        assert_eq!(fix_rates(&mut spec, 2, 1_000.0), [("open-1".to_owned(), 700.0)], "it has its own pilot");
        assert_eq!(spec.cells[0].load, LoadMode::Closed);
    }
}
