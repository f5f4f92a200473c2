//! The share of a difference between two arms that one switch accounts for. Pure.
//!
//! The switch was turned off in a separate arm that is otherwise the same, so the part of the difference that this
//! arm lacks is due to the switch: an experiment, whereas a count of system calls is only an observation. On the
//! logarithmic scale differences add up, so a share is a quotient of two means over the same rounds or blocks. Shares
//! of several switches need not add up to one: a switch may have more or less effect when another is also turned off.
//!
//! The intervals of the causes of one difference hold simultaneously (Bonferroni), because they are reported
//! together.

use weir_record::{
    cause::CauseSpec,
    effect::{Effect, EffectScale, Question},
    spec::StudySpec,
};
use weir_stats::decide::{ALPHA, UNITS_MIN};

use crate::{
    cell_trials::CellTrials,
    question::{self, Measured, Summed, Term},
};

/// The effect of each switch in each of its cells, and its share of the arm's difference from the study's first arm,
/// in their order. Before the schedule is finished no share has an interval, and nothing is called a cause: repeated
/// looks find some by chance.
pub(crate) fn all(
    spec: &StudySpec,
    measured: Measured<'_>,
    cells: &[CellTrials<'_>],
    is_finished: bool,
) -> Vec<Effect> {
    let mut rows = Vec::new();
    for (place, asked) in spec.causes.iter().enumerate() {
        for cell in cells.iter().filter(|cell| asked.cells.contains(&cell.spec.id)) {
            rows.push(switch(measured, cell, (asked, question::place(place))));
            let mut share = share(spec, measured, cell, (asked, question::place(place)));
            if !is_finished || (share.units as usize) < UNITS_MIN {
                (share.interval, share.level) = (None, 0.0);
            }
            rows.push(share);
        }
    }
    rows
}

/// The arm over the one without the switch.
fn switch(measured: Measured<'_>, cell: &CellTrials<'_>, (asked, place): (&CauseSpec, u32)) -> Effect {
    let terms = [term(1.0, cell, asked, &asked.without)];
    let found = measured.sum(&terms, Summed::OnItsScale, ALPHA);
    Effect {
        cell_id: cell.spec.id.clone(),
        arm: asked.arm.clone(),
        baseline: asked.without.clone(),
        metric: asked.metric,
        is_paired: true,
        ..question::row(Question::Switch(place), EffectScale::of(asked.metric), found.as_ref())
    }
}

/// The effect of the switch over the difference: 1 is all of it, a negative value works against it. `None` if the
/// difference is not distinguishable from zero.
fn share(
    spec: &StudySpec,
    measured: Measured<'_>,
    cell: &CellTrials<'_>,
    (asked, place): (&CauseSpec, u32),
) -> Effect {
    let beside = |other: &&CauseSpec| {
        other.cells.contains(&cell.spec.id) && (&other.arm, other.metric) == (&asked.arm, asked.metric)
    };
    let alpha = ALPHA / spec.causes.iter().filter(beside).count().max(1) as f64;
    let difference = |weight: f64| [term(weight, cell, asked, measured.first)];
    // The quotient requires a positive denominator, while a difference may have either sign.
    let sign = measured.sum(&difference(1.0), Summed::OnItsScale, ALPHA).map(|it| it.mean.signum());
    let found = sign.and_then(|sign| {
        let effect = [term(sign, cell, asked, &asked.without)];
        measured.quotient(&effect, &difference(sign), Summed::OnItsScale, alpha)
    });
    Effect {
        cell_id: cell.spec.id.clone(),
        arm: asked.arm.clone(),
        baseline: measured.first.to_owned(),
        metric: asked.metric,
        ..question::row_of_quotient(Question::CauseShare(place), EffectScale::Share, found.as_ref())
    }
}

fn term<'a>(weight: f64, cell: &'a CellTrials<'a>, asked: &'a CauseSpec, baseline: &'a str) -> Term<'a> {
    Term { weight, cell, arm: &asked.arm, baseline: Some(baseline), row: asked.metric.row() }
}

#[cfg(test)]
mod tests {
    use weir_record::{metric::Metric, trial::TrialRecord};

    use super::*;
    use crate::{gate::ValidityGate, sample};

    const CELL: &str = "c100-d1-m64-closed";

    /// The effect of a switch and its share.
    struct Found {
        switch: Effect,
        share: Effect,
    }

    /// epoll at 10 µs, uring at 6.4, and the given cost with a switch turned off; noise of 1 % each.
    fn found(without: f64, uring: f64) -> Found {
        of_study(without, uring, 8, true)
    }

    fn of_study(without: f64, uring: f64, blocks: u32, is_finished: bool) -> Found {
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
        let measured = Measured { gate: &gate, first: "epoll" };
        let rows = all(&spec, measured, &cells, is_finished);
        let [switch, share] = rows.try_into().expect("one switch in one cell has two rows");
        assert_eq!((switch.question, share.question), (Question::Switch(0), Question::CauseShare(0)));
        Found { switch, share }
    }

    #[test]
    fn a_switch_without_which_half_of_the_logarithm_is_left_accounts_for_half() {
        let Found { switch, share } = found(8.0, 6.4);
        let half = share.estimate.expect("there is a difference");
        let (low, high) = share.interval.expect("eight rounds have one");
        assert!((half - 0.5).abs() < 0.02 && low < 0.5 && 0.5 < high && high - low < 0.1, "{share:?}");
        assert!(share.is_above_zero());
        assert!((switch.estimate.expect("it ran") - 0.8).abs() < 0.01, "{switch:?}");
        let slower = found(12.5, 15.625).share;
        assert!(
            (slower.estimate.expect("there is a difference") - 0.5).abs() < 0.02,
            "the other way: {slower:?}"
        );
    }

    #[test]
    fn a_switch_that_changes_nothing_is_no_cause_and_without_a_difference_there_is_no_share() {
        let nothing = found(6.4, 6.4).share;
        assert!(nothing.estimate.is_some() && !nothing.is_above_zero(), "{nothing:?}");
        assert_eq!(found(8.0, 10.0).share.estimate, None);
        let against = found(5.0, 6.4).share;
        assert!(!against.is_above_zero() && against.is_below_zero(), "{against:?}");
        assert!(against.estimate.is_some_and(|share| share < 0.0), "{against:?}");
    }

    #[test]
    fn nothing_is_a_cause_before_the_schedule_is_finished_or_by_few_units() {
        assert!(of_study(8.0, 6.4, 8, true).share.is_above_zero());
        for early in [of_study(8.0, 6.4, 8, false).share, of_study(8.0, 6.4, 5, true).share] {
            assert!(early.estimate.is_some() && early.interval.is_none(), "{early:?}");
            assert!(!early.is_above_zero() && !early.is_below_zero());
        }
    }
}
