//! Reasons that make one side of a comparison invalid, or its figure only a bound. Pure.

use weir_record::{
    finding::{Finding, MessageKind},
    metric::Family,
    metric_rows::MetricRow,
    spec::{CellSpec, LoadMode},
    trial::TrialRecord,
};
use weir_stats::order::median;

use crate::{cell_trials::CellTrials, exclusion, rungs};

/// Largest share of an arm's trials in a cell with failures of the arm itself.
pub const FAILED_SHARE_MAX: f64 = 0.25;

/// Largest p99 of the generator's lag, as a share of the median response time.
pub const LAG_SHARE_MAX: f64 = 0.10;

/// All reasons that make the arm's figures of this metric invalid in the cell. The trials are the used ones.
pub(crate) fn of_side(
    cell: &CellTrials<'_>,
    arm: &str,
    row: &MetricRow,
    trials: &[&TrialRecord],
) -> Vec<Finding> {
    let mut found: Vec<Finding> = failures(cell, arm).into_iter().chain(not_stopped(arm, trials)).collect();
    if matches!(cell.spec.load, LoadMode::Closed) {
        return found;
    }
    if row.family == Family::Time {
        let kept = trials.iter().filter(|trial| rungs::is_trial_kept(trial)).count();
        if 2 * kept < trials.len() {
            found.push(Finding::RateNotKept {
                arm: arm.to_owned(),
                missed: count(trials.len() - kept),
                trials: count(trials.len()),
            });
        }
        found.extend(lag(arm, trials, MessageKind::of_cell(cell.spec)));
    }
    found
}

/// Failures of an arm's responses that make the cell invalid.
fn failures(cell: &CellTrials<'_>, arm: &str) -> Option<Finding> {
    let loads = || cell.of_arm(arm).filter_map(|trial| trial.load.as_ref());
    let responses: u64 = loads().map(|load| load.failures.wrong_bytes).sum();
    if responses > 0 {
        return Some(Finding::WrongBytes { arm: arm.to_owned(), responses });
    }
    let failures: u64 = loads().map(|load| load.failures.unexplained).sum();
    if failures > 0 {
        return Some(Finding::Unexplained { arm: arm.to_owned(), failures });
    }
    let trials = cell.of_arm(arm).count();
    let is_own =
        |trial: &&TrialRecord| trial.exclusions.iter().any(|exclusion| !exclusion::is_noise(exclusion));
    let failed: Vec<&TrialRecord> = cell.of_arm(arm).filter(is_own).collect();
    let first = exclusion::failed_trial(failed.first()?);
    (failed.len() as f64 > FAILED_SHARE_MAX * trials as f64).then(|| Finding::TrialsFailed {
        arm: arm.to_owned(),
        failed: count(failed.len()),
        trials: count(trials),
        first,
    })
}

/// An arm that could not be stopped kept running in the slices of all others.
fn not_stopped(arm: &str, trials: &[&TrialRecord]) -> Option<Finding> {
    let shares: Vec<f64> = trials.iter().filter_map(|trial| trial.stopped_share()).collect();
    Some(Finding::NotStopped { arm: arm.to_owned(), share: median(&shares)?, trials: count(shares.len()) })
}

fn lag(arm: &str, trials: &[&TrialRecord], kind: MessageKind) -> Option<Finding> {
    let shares: Vec<f64> = trials
        .iter()
        .filter_map(|trial| {
            let load = trial.load.as_ref()?;
            let lag_ns = load.send_lag.quantile_ns(0.99)?;
            let response_ns = load.response.quantile_ns(0.5)?;
            Some(lag_ns as f64 / response_ns as f64)
        })
        .collect();
    match median(&shares) {
        None if trials.is_empty() => None,
        None => Some(Finding::LagUnknown { arm: arm.to_owned(), kind }),
        Some(share) => (share > LAG_SHARE_MAX).then(|| Finding::LagTooLarge { arm: arm.to_owned(), share }),
    }
}

/// A lower bound of the arm's throughput, if the generator limited most of the trials.
pub(crate) fn generator_bound(cell: &CellSpec, arm: &str, trials: &[&TrialRecord]) -> Option<Finding> {
    if !matches!(cell.load, LoadMode::Closed) {
        return None;
    }
    let loads: Vec<_> = trials.iter().filter_map(|trial| trial.load.as_ref()).collect();
    let throughput: Vec<f64> = loads.iter().map(|load| load.throughput_per_second).collect();
    let bound = loads.iter().filter(|load| load.generator_bound).count();
    let per_second = median(&throughput).filter(|_| 2 * bound > loads.len())?;
    Some(Finding::LowerBound { arm: arm.to_owned(), per_second, kind: MessageKind::of_cell(cell) })
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use weir_record::trial::SliceRecord;

    use super::*;

    #[test]
    fn an_arm_that_goes_on_while_it_is_stopped_bars_what_it_is_compared_in() {
        let trial = |waiting_cpu_ns: u64| {
            let slice =
                SliceRecord { waiting_cpu_ns, waiting_ns: 1_000, stopped: true, ..SliceRecord::default() };
            TrialRecord { slices: vec![slice], ..TrialRecord::default() }
        };
        let (stands, works) = (trial(4), trial(500));
        assert_eq!(not_stopped("spin", &[&stands]), None);
        let found = Finding::NotStopped { arm: "spin".to_owned(), share: 0.5, trials: 1 };
        assert_eq!(not_stopped("spin", &[&stands, &works]), Some(found));
    }
}
