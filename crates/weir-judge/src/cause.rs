//! What part of a difference between two arms one switch accounts for. Pure.
//!
//! The switch was turned back in an arm of its own, which is the same otherwise, so what that arm lacks of the
//! difference is due to the switch: an experiment, where a count of system calls is an observation. On the scale of
//! logarithms differences add up, so a share is a quotient of two means over the same rounds or blocks. Shares of
//! several switches need not add up to one: a switch may do more, or less, when another is turned back as well.
//!
//! The intervals of the causes of one difference hold together (Bonferroni): they are looked at beside each other.

use std::collections::BTreeMap;

use weir_record::{
    cause::{CauseShare, CauseSpec},
    figure::PairedRatio,
    spec::StudySpec,
};
use weir_stats::{
    decide::{ALPHA, UNITS_MIN},
    quotient::quotient,
};

use crate::{
    cell_trials::CellTrials,
    gate::ValidityGate,
    units::{self, Compared},
};

/// One entry for each cause in each of its cells, in their order. Before the schedule is finished no share has an
/// interval, and nothing is a cause: whoever looks again and again finds some.
pub(crate) fn all(
    spec: &StudySpec,
    gate: &ValidityGate,
    cells: &[CellTrials<'_>],
    is_finished: bool,
) -> Vec<CauseShare> {
    let of_cause = |asked| cells.iter().filter_map(move |cell| share(spec, gate, cell, asked));
    let mut found: Vec<CauseShare> = spec.causes.iter().flat_map(of_cause).collect();
    for share in found.iter_mut().filter_map(|it| it.share.as_mut()) {
        share.interval = share.interval.filter(|_| is_finished && share.pairs as usize >= UNITS_MIN);
    }
    found
}

fn share(
    spec: &StudySpec,
    gate: &ValidityGate,
    cell: &CellTrials<'_>,
    asked: &CauseSpec,
) -> Option<CauseShare> {
    let first = &spec.arms.first()?.name;
    let is_here = |other: &CauseSpec| other.cells.contains(&cell.spec.id);
    if !is_here(asked) {
        return None;
    }
    let of = |baseline: &str| {
        units::of(gate, cell, Compared { arm: &asked.arm, baseline, first, row: asked.metric.row() })
    };
    let (difference, effect) = (of(first), of(&asked.without));
    let beside =
        |other: &&CauseSpec| is_here(other) && (&other.arm, other.metric) == (&asked.arm, asked.metric);
    let alpha = ALPHA / spec.causes.iter().filter(beside).count().max(1) as f64;
    Some(CauseShare {
        asked: asked.clone(),
        cell_id: cell.spec.id.clone(),
        difference: difference.ratio(),
        effect: effect.ratio(),
        share: share_of(&effect.by_block(), &difference.by_block(), alpha),
    })
}

/// The quotient of the means over the units that both have.
fn share_of(effect: &BTreeMap<u32, f64>, difference: &BTreeMap<u32, f64>, alpha: f64) -> Option<PairedRatio> {
    // A quotient needs what is below the line above zero; a difference may be either way.
    let sign = difference.values().sum::<f64>().signum();
    let both: Vec<(f64, f64)> = effect
        .iter()
        .filter_map(|(block, effect)| Some((sign * effect, sign * difference.get(block)?)))
        .collect();
    let found = quotient(&both, alpha)?;
    Some(PairedRatio {
        ratio: found.ratio,
        interval: Some((found.low, found.high)),
        pairs: u32::try_from(found.pairs).unwrap_or(u32::MAX),
    })
}

#[cfg(test)]
mod tests {
    use weir_record::{metric::Metric, trial::TrialRecord};

    use super::*;
    use crate::sample;

    const CELL: &str = "c100-d1-m64-closed";

    /// epoll at 10 µs, uring at 6.4, and at what is given with a switch turned back; noise of 1 % each.
    fn found(without: f64, uring: f64) -> CauseShare {
        of_study(without, uring, 8, true)
    }

    fn of_study(without: f64, uring: f64, blocks: u32, is_finished: bool) -> CauseShare {
        let mut spec = sample::study(&["epoll", "uring", "uring-single"], 8, 1);
        spec.causes = vec![CauseSpec {
            arm: "uring".to_owned(),
            without: "uring-single".to_owned(),
            switch: "options.receive".to_owned(),
            cells: vec![CELL.to_owned()],
            metric: Metric::ServerCpuPerMessage,
        }];
        let mut trials = Vec::new();
        for block in 0..blocks {
            let noise = |arm: u32| 1.0 + 0.01 * f64::from((block * 3 + arm * 5) % 7) / 7.0;
            let slow = 1.0 + 0.2 * f64::from(block % 3);
            trials.push(sample::trial(CELL, "epoll", block, 10.0 * slow * noise(0)));
            trials.push(sample::trial(CELL, "uring", block, uring * slow * noise(1)));
            trials.push(sample::trial(CELL, "uring-single", block, without * slow * noise(2)));
        }
        let gate = ValidityGate::new(&trials);
        let trials: Vec<&TrialRecord> = trials.iter().collect();
        let cells = [CellTrials::of(&spec.cells[0], &gate, &trials)];
        let [one] = &all(&spec, &gate, &cells, is_finished)[..] else { panic!("one was asked for") };
        one.clone()
    }

    #[test]
    fn a_switch_without_which_half_of_the_logarithm_is_left_accounts_for_half() {
        let half = found(8.0, 6.4);
        let share = half.share.expect("there is a difference");
        let (low, high) = share.interval.expect("eight rounds have one");
        assert!((share.ratio - 0.5).abs() < 0.02 && low < 0.5 && 0.5 < high && high - low < 0.1, "{share:?}");
        assert!(half.is_cause());
        assert!((half.effect.expect("it ran").ratio - 0.8).abs() < 0.01, "{half:?}");
        assert!((half.difference.expect("it ran").ratio - 0.64).abs() < 0.01, "{half:?}");
        let slower = found(12.5, 15.625).share.expect("there is a difference");
        assert!((slower.ratio - 0.5).abs() < 0.02, "a difference the other way: {slower:?}");
    }

    #[test]
    fn a_switch_that_changes_nothing_is_no_cause_and_without_a_difference_there_is_no_share() {
        let nothing = found(6.4, 6.4);
        assert!(nothing.share.is_some() && !nothing.is_cause(), "{nothing:?}");
        assert_eq!(found(8.0, 10.0).share, None);
        let against = found(5.0, 6.4);
        assert!(!against.is_cause() && against.works_against(), "{against:?}");
        assert!(against.share.is_some_and(|share| share.ratio < 0.0), "{against:?}");
    }

    #[test]
    fn nothing_is_a_cause_before_the_schedule_is_finished_or_by_few_units() {
        assert!(of_study(8.0, 6.4, 8, true).is_cause());
        for early in [of_study(8.0, 6.4, 8, false), of_study(8.0, 6.4, 5, true)] {
            assert!(early.share.is_some_and(|share| share.interval.is_none()), "{early:?}");
            assert!(!early.is_cause() && !early.works_against());
        }
    }
}
