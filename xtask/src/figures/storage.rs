//! Figures of storage that are no ratio of two arms' medians: tails held against fio's own spread, misses, CPU shares.

use weir_record::{
    storage::WaitingReport,
    trial::TrialRecord,
    verdict::{Metric, Verdict},
};
use weir_stats::{interval::paired_interval, order::median};

use super::{
    Row,
    catalog::{STORAGE_PARITY, STORAGE_QD1},
    goal::{self, Goal, Measured, Outcome},
    sample::{self, Export},
};

/// Arms of the study of one read at a time.
const POLL: &str = "uring-poll";
const HALF_THE_MEAN: &str = "linux-mean";
const OVERSHOOT_AWARE: &str = "quantile";

/// "About 99 %" and "at or below 5 %", as shares of all operations.
const MISSES_SHOWN_MIN: f64 = 0.95;
const MISSES_MAX: f64 = 0.05;

/// How much less of a CPU than pure polling.
const CPU_SAVED_MIN: f64 = 0.10;

/// The tail of each engine against fio's, within what fio differs from itself in the same run.
pub fn parity(export: &Export) -> Vec<Row> {
    let mut rows: Vec<Row> = STORAGE_PARITY.iter().map(|cell| tail(export, cell)).collect();
    rows.push(versions(export));
    rows
}

fn tail(export: &Export, cell: &str) -> Row {
    let own = |it: &&weir_record::verdict::Comparison| {
        it.cell_id == *cell && it.arm == "weir" && it.metric == Metric::LatencyP99
    };
    let floor = export.result.comparisons.iter().find(own).and_then(|comparison| comparison.noise_floor);
    let measured = sample::judged(export, cell, "weir", Metric::LatencyP99);
    let (goal, measured, outcome) = match (measured, floor) {
        (Ok(measured), Some(floor)) => {
            let goal = Goal::Within(1.0 / (1.0 + floor), 1.0 + floor);
            // Whether the laboratory calls it slower does not matter here, only where it lies.
            let barred = measured.verdict.filter(|verdict| *verdict == Verdict::NotComparable);
            let measured = Measured { verdict: barred, ..measured };
            (format!("{goal} (fio against itself)"), measured.to_string(), goal::judge(goal, &measured))
        }
        (Ok(measured), None) => (
            String::from("fio's own spread"),
            format!("{measured}; fio was never paired with itself"),
            Outcome::NotMeasured,
        ),
        (Err(reason), _) => (String::from("fio's own spread"), reason, Outcome::NotMeasured),
    };
    row("storage-parity", format!("weir / fio, p99, {cell}"), goal, measured, outcome)
}

/// Which versions were compared.
fn versions(export: &Export) -> Row {
    let mut tools: Vec<&str> = export
        .trials
        .iter()
        .filter_map(|trial| trial.load.as_ref()?.storage.as_ref())
        .map(|storage| storage.tool.as_str())
        .collect();
    tools.sort_unstable();
    tools.dedup();
    let outcome = if tools.len() > 1 { Outcome::Listed } else { Outcome::NotMeasured };
    row("storage-parity", "versions compared".to_owned(), String::new(), tools.join(", "), outcome)
}

/// What becomes of sleeping first, one read at a time.
pub fn qd1(export: &Export) -> Vec<Row> {
    let misses = |arm: &str| -> Vec<f64> { of_trials(export, arm, miss_share) };
    let shown = misses(HALF_THE_MEAN);
    let aware = misses(OVERSHOOT_AWARE);
    vec![
        share_row("misses of half the mean", &shown, |share| share >= MISSES_SHOWN_MIN, ">= 95 %"),
        share_row(
            "misses of a predictor that knows its overshoot",
            &aware,
            |share| share <= MISSES_MAX,
            "<= 5 %",
        ),
        saved(export),
    ]
}

/// CPU share of polling less that of the predictor, block by block.
fn saved(export: &Export) -> Row {
    let name = "CPU share of polling less that of the predictor".to_owned();
    let goal = "at least 10 points".to_owned();
    let blocks = export.result.spec.cells.iter().map(|cell| cell.blocks).max().unwrap_or(0);
    let differences: Vec<f64> = (0..blocks)
        .filter_map(|block| {
            let of = |arm: &str| clean(export, arm).find(|trial| trial.block == block).and_then(cpu_share);
            Some(of(POLL)? - of(OVERSHOOT_AWARE)?)
        })
        .collect();
    let interval = paired_interval(&differences, export.result.spec.seed);
    let (Some(saved), Some(interval)) = (median(&differences), interval) else {
        let reason = "no pair of clean trials".to_owned();
        return row("storage-qd1", name, goal, reason, Outcome::NotMeasured);
    };
    let (low, high) = (interval.low, interval.high);
    let measured = format!("{:.1} [{:.1}, {:.1}] points", 100.0 * saved, 100.0 * low, 100.0 * high);
    let outcome = match (low >= CPU_SAVED_MIN, high < CPU_SAVED_MIN, saved >= CPU_SAVED_MIN) {
        (true, ..) => Outcome::Met,
        (_, true, _) => Outcome::Missed,
        (.., true) => Outcome::MetByPointOnly,
        _ => Outcome::Inconclusive,
    };
    row("storage-qd1", name, goal, measured, outcome)
}

fn share_row(name: &str, shares: &[f64], is_reached: impl Fn(f64) -> bool, goal: &str) -> Row {
    let name = format!("{name}, {STORAGE_QD1}");
    let Some(middle) = median(shares) else {
        let reason = "no clean trial".to_owned();
        return row("storage-qd1", name, goal.to_owned(), reason, Outcome::NotMeasured);
    };
    let lowest = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = shares.iter().copied().fold(0.0, f64::max);
    let measured = format!(
        "{:.1} % in the median of {} trials ({:.1} to {:.1})",
        100.0 * middle,
        shares.len(),
        100.0 * lowest,
        100.0 * highest
    );
    // From the smallest to the largest of six trials the median lies with 97 % confidence.
    let outcome = match (is_reached(lowest) && is_reached(highest), is_reached(middle)) {
        (true, _) if shares.len() >= 6 => Outcome::Met,
        (_, true) => Outcome::MetByPointOnly,
        _ if is_reached(lowest) || is_reached(highest) => Outcome::Inconclusive,
        _ => Outcome::Missed,
    };
    row("storage-qd1", name, goal.to_owned(), measured, outcome)
}

fn clean<'a>(export: &'a Export, arm: &'a str) -> impl Iterator<Item = &'a TrialRecord> {
    export.trials.iter().filter(move |trial| trial.arm == arm && !trial.repeat && trial.taints.is_empty())
}

fn of_trials(export: &Export, arm: &str, value: impl Fn(&TrialRecord) -> Option<f64>) -> Vec<f64> {
    clean(export, arm).filter_map(value).collect()
}

fn waiting(trial: &TrialRecord) -> Option<&WaitingReport> {
    trial.load.as_ref()?.storage.as_ref()?.waiting.as_ref()
}

/// Operations that were complete when the sleep ended, of all.
fn miss_share(trial: &TrialRecord) -> Option<f64> {
    let waiting = waiting(trial).filter(|waiting| waiting.operations > 0)?;
    Some(waiting.misses as f64 / waiting.operations as f64)
}

/// CPU of the process over its window, seen from outside.
fn cpu_share(trial: &TrialRecord) -> Option<f64> {
    let load = trial.load.as_ref().filter(|load| load.window_ns > 0)?;
    Some(load.observed.as_ref()?.cpu_ns as f64 / load.window_ns as f64)
}

fn row(group: &str, figure: String, goal: String, measured: String, outcome: Outcome) -> Row {
    Row { figure, goal, measured, outcome, command: format!("cargo xtask figures --only {group}") }
}

#[cfg(test)]
mod tests {
    use weir_record::{load::LoadReport, storage_trial::StorageTrial, trial::ObservedWindow};

    use super::*;
    use crate::figures::sample::tests::export;

    fn trial(arm: &str, block: u32, misses: u64, cpu_ns: u64) -> TrialRecord {
        let waiting = WaitingReport { operations: 1_000, misses, ..WaitingReport::default() };
        let storage =
            StorageTrial { tool: "weir 1".to_owned(), waiting: Some(waiting), ..StorageTrial::default() };
        let load = LoadReport {
            messages: 1_000,
            window_ns: 1_000,
            observed: Some(ObservedWindow { cpu_ns, ..ObservedWindow::default() }),
            storage: Some(storage),
            ..LoadReport::default()
        };
        TrialRecord { arm: arm.to_owned(), block, load: Some(load), ..TrialRecord::default() }
    }

    #[test]
    fn misses_and_cpu_shares_are_held_against_what_is_asked() {
        let mut found = export();
        for block in 0..6 {
            found.trials.push(trial(HALF_THE_MEAN, block, 990, 440));
            found.trials.push(trial(OVERSHOOT_AWARE, block, 30 + u64::from(block), 850));
            found.trials.push(trial(POLL, block, 0, 1_000));
        }
        let outcomes: Vec<Outcome> = qd1(&found).iter().map(|row| row.outcome).collect();
        assert_eq!(outcomes, [Outcome::Met; 3]);
        found.trials.iter_mut().filter(|trial| trial.arm == OVERSHOOT_AWARE).for_each(|trial| {
            *trial = self::trial(OVERSHOOT_AWARE, trial.block, 90, 950);
        });
        let outcomes: Vec<Outcome> = qd1(&found).iter().map(|row| row.outcome).collect();
        assert_eq!(outcomes, [Outcome::Met, Outcome::Missed, Outcome::Missed]);
        let nothing: Vec<Outcome> = qd1(&export()).iter().map(|row| row.outcome).collect();
        assert_eq!(nothing, [Outcome::NotMeasured; 3]);
    }

    #[test]
    fn a_tail_that_was_not_measured_is_none() {
        let rows = parity(&export());
        assert_eq!(rows.len(), STORAGE_PARITY.len() + 1);
        assert!(rows.iter().all(|row| row.outcome == Outcome::NotMeasured));
    }
}
