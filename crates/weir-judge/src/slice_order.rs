//! Effects of order on slices: whether going earlier matters (position), and what one arm leaves to the next
//! (carry-over). Pure.
//!
//! The baseline's two runs are the same program, so any difference between their slices that depends on their order
//! is an order effect. Both effects cancel in a comparison as far as the random order balances them; a large one
//! means that slices are too short, or that an arm leaves work behind for another.

use weir_record::{
    check::{Check, CheckName},
    finding::{Finding, OrderEffect, SlicePlace},
    spec::StudySpec,
    trial::{SliceRecord, TrialRecord},
};
use weir_stats::{
    decide::{Estimate, UNITS_MIN, estimate},
    order::median,
};

use crate::{
    cell_trials::{CellTrials, Round},
    gate::ValidityGate,
};

/// Largest effect of order or of carry-over, as a share of the equivalence margin.
pub(crate) const MARGIN_SHARE_MAX: f64 = 0.25;

/// The check, over the rounds in which each cell is compared; `None` if no cell's arms take turns.
pub(crate) fn check(spec: &StudySpec, gate: &ValidityGate, trials: &[&TrialRecord]) -> Option<Check> {
    let limit = MARGIN_SHARE_MAX * (1.0 + spec.equivalence_margin).ln();
    let baseline = &spec.arms[0].name;
    let mut effects = Vec::new();
    let mut passed = true;
    for cell in spec.cells.iter().filter(|cell| cell.alternation.is_some()) {
        let slices = slices(gate, &CellTrials::of(cell, gate, trials));
        let first = slices.iter().filter_map(|round| round.going_first(baseline)).collect();
        let mut found: Vec<(SlicePlace, Vec<f64>)> = vec![(SlicePlace::GoingFirst, first)];
        for arm in spec.arms.iter().skip(1).filter(|arm| cell.has_arm(&arm.name)) {
            let carried = slices.iter().filter_map(|round| round.carried(baseline, &arm.name));
            found.push((SlicePlace::Following { arm: arm.name.clone() }, carried.collect()));
        }
        for (place, values) in found {
            let Some(estimate) = estimate(&values).filter(|it| it.units >= UNITS_MIN) else { continue };
            let holds = !is_shown(&estimate) || estimate.mean.abs() <= limit;
            passed &= holds;
            if !holds || effects.len() < spec.arms.len() {
                effects.push(effect(place, &cell.id, &estimate));
            }
        }
    }
    if effects.is_empty() {
        return None;
    }
    let detail = Finding::SliceOrder { effects, change_max: limit.exp_m1() };
    Some(Check { name: CheckName::SliceOrder, passed, detail })
}

pub(crate) fn is_shown(estimate: &Estimate) -> bool {
    estimate.low > 0.0 || estimate.high < 0.0
}

fn effect(place: SlicePlace, cell_id: &str, estimate: &Estimate) -> OrderEffect {
    let Estimate { mean, low, high, .. } = *estimate;
    OrderEffect {
        place,
        cell_id: cell_id.to_owned(),
        change: mean.exp_m1(),
        interval: (low.exp_m1(), high.exp_m1()),
    }
}

/// One slice of a round.
struct Slice<'a> {
    arm: &'a str,
    is_repeat: bool,
    record: &'a SliceRecord,
}

impl Slice<'_> {
    fn log_cpu(&self) -> Option<f64> {
        let cost = self.record.server_cpu_ns as f64 / self.record.messages as f64;
        Some(cost.ln()).filter(|log| log.is_finite())
    }
}

/// The slices of one round in the order in which they ran.
struct Slices<'a>(Vec<Slice<'a>>);

/// Slices of the usable trials of every round.
fn slices<'a>(gate: &ValidityGate, cell: &CellTrials<'a>) -> Vec<Slices<'a>> {
    let of_round = |round: &Round<'a>| {
        let usable = round.trials.iter().copied().filter(|trial| gate.is_usable(trial, cell.state));
        let mut slices: Vec<Slice<'a>> = usable
            .flat_map(|trial| {
                let slice = |record| Slice { arm: &trial.arm, is_repeat: trial.repeat, record };
                trial.slices.iter().map(slice)
            })
            .collect();
        slices.sort_by_key(|slice| (slice.record.permutation, slice.record.place));
        Slices(slices)
    };
    cell.rounds().map(of_round).collect()
}

impl Slices<'_> {
    /// Positions of the baseline's two slices in every permutation that has both, the earlier first.
    fn pairs(&self, baseline: &str) -> Vec<[usize; 2]> {
        let own = |(place, slice): (usize, &Slice<'_>)| (slice.arm == baseline).then_some(place);
        let places: Vec<usize> = self.0.iter().enumerate().filter_map(own).collect();
        places
            .windows(2)
            .filter(|pair| {
                let [one, other] = [&self.0[pair[0]], &self.0[pair[1]]];
                one.record.permutation == other.record.permutation && one.is_repeat != other.is_repeat
            })
            .map(|pair| [pair[0], pair[1]])
            .collect()
    }

    fn log_ratio(&self, one: usize, other: usize) -> Option<f64> {
        Some(self.0[one].log_cpu()? - self.0[other].log_cpu()?)
    }

    /// The baseline's cost in its earlier slice, relative to its later one: the median over permutations.
    fn going_first(&self, baseline: &str) -> Option<f64> {
        let logs: Vec<f64> = self
            .pairs(baseline)
            .into_iter()
            .filter_map(|[earlier, later]| self.log_ratio(earlier, later))
            .collect();
        median(&logs)
    }

    /// The baseline's cost right after a slice of the arm, relative to its cost right after its own slice, in the
    /// same permutation.
    fn carried(&self, baseline: &str, arm: &str) -> Option<f64> {
        let follows = |place: usize, name: &str| place > 0 && self.0[place - 1].arm == name;
        let logs: Vec<f64> = self
            .pairs(baseline)
            .into_iter()
            .filter_map(|[one, other]| match () {
                () if follows(one, arm) && follows(other, baseline) => self.log_ratio(one, other),
                () if follows(other, arm) && follows(one, baseline) => self.log_ratio(other, one),
                () => None,
            })
            .collect();
        median(&logs)
    }
}

#[cfg(test)]
mod tests {
    use weir_record::spec::Alternation;
    use weir_stats::random::Random;

    use super::*;
    use crate::{plan, plan::PlannedBlock, sample};

    /// Rounds on a machine on which a slice costs 10 µs, times `first` at the first position and `after` after the
    /// arm.
    fn study(first: f64, after: f64) -> (StudySpec, Vec<TrialRecord>) {
        let mut spec = sample::study(&["epoll", "uring"], 40, 7);
        spec.cells[0].alternation =
            Some(Alternation { slice_ns: 1, permutations: 8, prime_messages: 1, evidence: None });
        let mut random = Random::seeded(11);
        let mut trials = Vec::new();
        for block in 0..40 {
            let mut runs =
                [("epoll", false), ("epoll", true), ("uring", false)].map(|(arm, repeat)| TrialRecord {
                    cell_id: spec.cells[0].id.clone(),
                    arm: arm.to_owned(),
                    repeat,
                    block,
                    ..TrialRecord::default()
                });
            let orders = plan::permutations(&spec, PlannedBlock { cell: 0, block }, 0, 3, 8);
            let mut before = None;
            for (permutation, order) in (0_u32..).zip(orders) {
                for (place, run) in (0_u32..).zip(order) {
                    let noise = 1.0 + 0.002 * (random.uniform() - 0.5);
                    let cost = 10_000.0
                        * noise
                        * if place == 0 { first } else { 1.0 }
                        * if before == Some(2) { after } else { 1.0 };
                    runs[run].slices.push(SliceRecord {
                        permutation,
                        place,
                        messages: 100,
                        server_cpu_ns: (cost * 100.0) as u64,
                        ..SliceRecord::default()
                    });
                    before = Some(run);
                }
            }
            trials.extend(runs);
        }
        (spec, trials)
    }

    fn checked(first: f64, after: f64) -> Check {
        let (spec, trials) = study(first, after);
        check_of(&spec, &trials).expect("its arms take turns")
    }

    fn effects(check: &Check) -> &[OrderEffect] {
        let Finding::SliceOrder { effects, .. } = &check.detail else { panic!("{check:?}") };
        effects
    }

    #[test]
    fn slices_that_do_not_depend_on_their_place_pass() {
        let check = checked(1.0, 1.0);
        assert!(check.passed, "{check:?}");
        let [first, following] = effects(&check) else { panic!("{check:?}") };
        assert_eq!((&first.place, first.cell_id.as_str()), (&SlicePlace::GoingFirst, "c100-d1-m64-closed"));
        assert_eq!(following.place, SlicePlace::Following { arm: "uring".to_owned() });
    }

    #[test]
    fn a_dear_first_place_is_found() {
        let check = checked(1.05, 1.0);
        assert!(!check.passed, "{check:?}");
        // The other arm goes first in a third of the permutations, and in some rounds in half of them.
        assert!((0.04..0.05).contains(&effects(&check)[0].change), "{check:?}");
    }

    #[test]
    fn what_an_arm_leaves_to_the_next_is_found() {
        let check = checked(1.0, 1.03);
        assert!(!check.passed, "{check:?}");
        assert!((0.02..0.04).contains(&effects(&check)[1].change), "{check:?}");
        let (spec, mut trials) = study(1.0, 1.0);
        trials.iter_mut().for_each(|trial| trial.slices.clear());
        assert_eq!(check_of(&spec, &trials), None, "whole trials have no slices");
    }

    fn check_of(spec: &StudySpec, trials: &[TrialRecord]) -> Option<Check> {
        check(spec, &ValidityGate::new(trials), &trials.iter().collect::<Vec<_>>())
    }
}
