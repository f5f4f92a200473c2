//! Which rounds of a cell are observed by more than clocks, and how.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much evidence a cell gives: in some of its rounds every arm has pairs of further slices, one that is observed by
/// all available means and one by its clocks alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvidencePlan {
    /// Rounds that have them, spread evenly over those of the cell.
    pub rounds: u32,
    /// How long messages are started in one.
    pub slice_ns: u64,
    /// Pairs of each arm in such a round. A round is one value however many it has; more of them make it steadier.
    #[serde(default = "one_pair", skip_serializing_if = "is_one_pair")]
    pub pairs: u32,
    /// Whether every arm has further ones in each of these rounds, in which fewer groups of programs look, so that
    /// the cost of each group is known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_group: bool,
    /// Whether every arm has one more in the first of these rounds, under `strace`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strace: bool,
    /// Rounds of the cell that ran before it had any evidence: it got its claim later. None of them is counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub after: u32,
}

impl EvidencePlan {
    /// Which of the rounds with evidence a cell's block is, from 0; `None` where it has none. The first rounds of many
    /// have none, so that a running estimate comes early, and the machine is observed over the whole study.
    pub fn place(&self, block: u32, blocks: u32) -> Option<u32> {
        let (block, blocks) = (block.checked_sub(self.after)?, blocks.saturating_sub(self.after));
        let rounds = u64::from(self.rounds.min(blocks));
        let up_to = |block: u64| block * rounds / u64::from(blocks.max(1));
        let (before, with_it) = (up_to(block.into()), up_to(u64::from(block) + 1));
        (with_it > before).then(|| u32::try_from(before).unwrap_or(u32::MAX))
    }
}

fn one_pair() -> u32 {
    1
}

fn is_one_pair(pairs: &u32) -> bool {
    *pairs == 1
}

fn is_zero(rounds: &u32) -> bool {
    *rounds == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_with_evidence_are_spread_over_those_of_a_cell() {
        let places = |rounds: u32, blocks: u32, after: u32| -> Vec<(u32, u32)> {
            let plan = EvidencePlan { rounds, slice_ns: 1, pairs: 1, by_group: false, strace: false, after };
            (0..blocks).filter_map(|block| Some((block, plan.place(block, blocks)?))).collect()
        };
        let of = |rounds: u32, blocks: u32| places(rounds, blocks, 0);
        let after = |after: u32| places(2, 12, after);
        assert_eq!(of(4, 50), [(12, 0), (24, 1), (37, 2), (49, 3)]);
        assert_eq!(of(2, 6), [(2, 0), (5, 1)]);
        assert_eq!(of(9, 3), [(0, 0), (1, 1), (2, 2)], "more than there are");
        assert_eq!((of(0, 8), of(4, 0)), (vec![], vec![]));
        assert_eq!(after(4), [(7, 0), (11, 1)], "all of them come when the claim did");
        assert_eq!((after(11), after(12)), (vec![(11, 0)], vec![]));
    }
}
