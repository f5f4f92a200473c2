//! The order of a study. Pure: it follows from spec and seed, so that a resumed study repeats its plan.

use weir_record::spec::StudySpec;
use weir_stats::random::{Random, derived_seed};

/// One block of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlannedBlock {
    /// Index into the spec's cells.
    pub cell: usize,
    /// Block number in the cell, from 0.
    pub block: u32,
}

/// One trial of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlannedTrial {
    /// Index into the spec's arms.
    pub arm: usize,
    /// The baseline's second run (A/A).
    pub repeat: bool,
}

/// Parts of the study's seed; each random choice has its own sequence, so that one does not affect the others.
#[derive(Clone, Copy)]
enum Choice {
    Schedule = 1,
    Order = 2,
    Trial = 3,
    Permutation = 6,
}

/// All blocks in the order in which they run.
///
/// Each cell's blocks are spread over the whole session: with n blocks, one starts somewhere in each n-th of it.
/// Drift of the machine then affects every cell, and two blocks of a cell are rarely adjacent, so that they run at
/// different moments. The seed determines the position of a block within its n-th.
pub fn schedule(spec: &StudySpec) -> Vec<PlannedBlock> {
    remaining(spec, |_| false)
}

/// The remaining blocks, spread in the same way over the rest of the session: additional blocks of a cell are not all
/// at its beginning.
pub fn remaining(spec: &StudySpec, is_done: impl Fn(PlannedBlock) -> bool) -> Vec<PlannedBlock> {
    let mut random = Random::seeded(part(spec.seed, Choice::Schedule, &[]));
    let mut placed: Vec<(f64, PlannedBlock)> = Vec::new();
    for (cell, cell_spec) in spec.cells.iter().enumerate() {
        let blocks = (0..cell_spec.blocks).map(|block| PlannedBlock { cell, block });
        let left: Vec<PlannedBlock> = blocks.filter(|planned| !is_done(*planned)).collect();
        for (number, planned) in left.iter().enumerate() {
            placed.push(((number as f64 + random.uniform()) / left.len() as f64, *planned));
        }
    }
    placed.sort_by(|(one, one_block), (other, other_block)| {
        one.total_cmp(other).then(one_block.cmp(other_block))
    });
    placed.into_iter().map(|(_, block)| block).collect()
}

/// The trials of one attempt at a block: every arm once and the baseline twice, in seeded random order.
///
/// Which of the baseline's runs is the repeat is also drawn. A missing arm does not change the others' order.
pub fn order(
    spec: &StudySpec,
    block: PlannedBlock,
    attempt: u32,
    runs: impl Fn(usize) -> bool,
) -> Vec<PlannedTrial> {
    let mut trials: Vec<PlannedTrial> =
        (0..spec.arms.len()).map(|arm| PlannedTrial { arm, repeat: false }).collect();
    trials.push(PlannedTrial { arm: 0, repeat: true });
    let seed =
        part(spec.seed, Choice::Order, &[block.cell as u64, u64::from(block.block), u64::from(attempt)]);
    Random::seeded(seed).shuffle(&mut trials);
    trials.retain(|trial| runs(trial.arm));
    trials
}

/// The order in which the runs of a round are loaded, for each permutation: all orders are equally likely.
pub fn permutations(
    spec: &StudySpec,
    block: PlannedBlock,
    attempt: u32,
    runs: usize,
    count: u32,
) -> Vec<Vec<usize>> {
    let path = [block.cell as u64, u64::from(block.block), u64::from(attempt)];
    let mut random = Random::seeded(part(spec.seed, Choice::Permutation, &path));
    let shuffled = |_| {
        let mut order: Vec<usize> = (0..runs).collect();
        random.shuffle(&mut order);
        order
    };
    (0..count).map(shuffled).collect()
}

/// Seed of payloads and arrivals: the same for all arms of an attempt, so that they get the same load.
pub fn trial_seed(spec: &StudySpec, block: PlannedBlock, attempt: u32) -> u64 {
    part(spec.seed, Choice::Trial, &[block.cell as u64, u64::from(block.block), u64::from(attempt)])
}

fn part(seed: u64, choice: Choice, path: &[u64]) -> u64 {
    path.iter().fold(derived_seed(seed, choice as u64), |seed, step| derived_seed(seed, *step))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::sample::study;

    #[test]
    fn the_order_of_a_small_study_is_fixed_by_its_seed() {
        let spec = study(&["epoll", "uring"], 3, 7);
        let again = study(&["epoll", "uring"], 3, 7);
        let other = study(&["epoll", "uring"], 3, 8);
        let orders = |spec: &StudySpec| -> Vec<_> {
            schedule(spec).into_iter().flat_map(|block| order(spec, block, 0, |_| true)).collect()
        };
        assert_eq!(orders(&spec), orders(&again));
        assert_ne!(orders(&spec), orders(&other));
    }

    #[test]
    fn a_missing_arm_leaves_the_order_of_the_others() {
        let spec = study(&["epoll", "uring", "poll"], 8, 3);
        for block in schedule(&spec) {
            let mut all = order(&spec, block, 0, |_| true);
            all.retain(|trial| trial.arm != 1);
            assert_eq!(order(&spec, block, 0, |arm| arm != 1), all);
        }
    }

    #[test]
    fn another_attempt_draws_another_order() {
        let spec = study(&["epoll", "uring", "poll"], 8, 3);
        let differing = schedule(&spec)
            .into_iter()
            .filter(|block| order(&spec, *block, 0, |_| true) != order(&spec, *block, 1, |_| true));
        assert!(differing.count() >= 4);
    }

    #[test]
    fn every_position_is_taken_by_every_run_about_equally_often() {
        let spec = study(&["epoll", "uring"], 600, 11);
        let mut counts = [[0_u32; 3]; 3];
        for block in schedule(&spec) {
            for (position, trial) in order(&spec, block, 0, |_| true).into_iter().enumerate() {
                counts[if trial.repeat { 2 } else { trial.arm }][position] += 1;
            }
        }
        // 200 expected, standard deviation 11.5: four deviations.
        assert!(counts.iter().flatten().all(|count| (154..=246).contains(count)), "{counts:?}");
    }

    #[test]
    fn every_run_is_loaded_once_in_each_permutation_and_goes_first_about_equally_often() {
        let spec = study(&["epoll", "uring"], 100, 5);
        let mut first = [0_u32; 3];
        for block in schedule(&spec) {
            let orders = permutations(&spec, block, 0, 3, 6);
            assert_eq!(orders, permutations(&spec, block, 0, 3, 6));
            for mut order in orders {
                first[order[0]] += 1;
                order.sort_unstable();
                assert_eq!(order, [0, 1, 2]);
            }
        }
        // 200 expected, standard deviation 11.5: four deviations.
        assert!(first.iter().all(|count| (154..=246).contains(count)), "{first:?}");
    }

    proptest! {
        #[test]
        fn every_block_runs_once_and_cells_are_spread(seed: u64, first in 1_u32..20, second in 1_u32..20) {
            let mut spec = study(&["epoll", "uring"], first, seed);
            let mut cell = spec.cells[0].clone();
            cell.blocks = second;
            spec.cells.push(cell);
            let schedule = schedule(&spec);
            let distinct: BTreeSet<_> = schedule.iter().collect();
            prop_assert_eq!(distinct.len(), schedule.len());
            prop_assert_eq!(schedule.len() as u32, first + second);
            for (cell, blocks) in [(0, first), (1, second)] {
                let own = schedule.iter().filter(|block| block.cell == cell);
                let numbers: Vec<u32> = own.map(|block| block.block).collect();
                prop_assert_eq!(numbers, (0..blocks).collect::<Vec<_>>());
            }
            prop_assert!(are_cells_spread(&schedule, &[first, second]), "{:?}", schedule);
        }
    }

    #[test]
    fn cells_that_run_one_after_the_other_are_not_spread() {
        let of_cell = |cell: usize, blocks: u32| (0..blocks).map(move |block| PlannedBlock { cell, block });
        for blocks in [[2, 3], [6, 6], [19, 4]] {
            let order: Vec<PlannedBlock> = of_cell(0, blocks[0]).chain(of_cell(1, blocks[1])).collect();
            assert!(!are_cells_spread(&order, &blocks), "{order:?}");
        }
    }

    /// Whether block b of n of each cell starts in the b-th n-th of the order. Its position within is drawn, so that
    /// of each other cell one block more or less than on average may precede it: this is the tolerance.
    fn are_cells_spread(order: &[PlannedBlock], blocks: &[u32]) -> bool {
        let (all, others) = (order.len() as u64, blocks.len() as u64 - 1);
        order.iter().zip(0_u64..).all(|(planned, place)| {
            let (own, block) = (u64::from(blocks[planned.cell]), u64::from(planned.block));
            (place + others) * own >= block * all && (place + 1) * own <= (block + 1) * all + others * own
        })
    }
}
