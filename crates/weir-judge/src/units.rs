//! From trials to the values a decision rests on: one log-ratio for each independent unit. Pure.
//!
//! A unit is a block of whole trials, whose log-ratio is that of a pair; or a round in which the arms take turns. The
//! slices of a round share their processes and are not independent, so a round gives one value: the median over its
//! permutations of the arm's logarithm less the mean of the baseline's two. The median, because single slices have
//! heavy tails; both baselines, because they are the same program and halve its share of the noise.

use std::collections::BTreeMap;

use weir_record::{
    finding::Exclusion,
    trial::{SliceRecord, TrialRecord},
    verdict::Metric,
};
use weir_stats::order::median;

use crate::gate::{Gate, Pair, TrialState};

/// The values of one comparison.
#[derive(Clone, Debug, Default)]
pub(crate) struct Units {
    /// Arm against baseline, one for each unit.
    pub(crate) logs: Vec<f64>,
    /// State of the machine in each.
    pub(crate) states: Vec<TrialState>,
    /// The baseline's second run against its first.
    pub(crate) logs_self: Vec<f64>,
    /// Units without a value, counted by reason.
    pub(crate) excluded: BTreeMap<Exclusion, u32>,
}

/// The rounds of a cell in which the arms take turns.
pub(crate) fn of_rounds(
    gate: &Gate,
    trials: &[&TrialRecord],
    baseline: &str,
    arm: &str,
    metric: Metric,
) -> Units {
    let mut rounds: BTreeMap<(u32, u32), Vec<&TrialRecord>> = BTreeMap::new();
    for trial in trials {
        rounds.entry((trial.block, trial.attempt)).or_default().push(trial);
    }
    let mut units = Units::default();
    for trials in rounds.values() {
        let run = |name: &str, repeat: bool| {
            trials.iter().copied().find(|trial| trial.arm == name && trial.repeat == repeat)
        };
        let runs = [run(baseline, false), run(baseline, true).or(run(baseline, false)), run(arm, false)];
        let [Some(first), Some(second), Some(arm)] = runs else { continue };
        if let Some(reason) = [arm, first, second].into_iter().find_map(|trial| trial.taints.first()) {
            *units.excluded.entry(Exclusion::from(reason)).or_default() += 1;
            continue;
        }
        match round_value(arm, first, second, metric) {
            Some(value) => {
                units.logs.push(value);
                units.states.push(gate.state(arm));
            }
            None => *units.excluded.entry(Exclusion::WithoutFigure).or_default() += 1,
        }
        if !std::ptr::eq(first, second) {
            units.logs_self.extend(round_value(second, first, first, metric));
        }
    }
    units
}

/// Log-ratio of an arm to the baseline's two runs in one round.
fn round_value(arm: &TrialRecord, first: &TrialRecord, second: &TrialRecord, metric: Metric) -> Option<f64> {
    let ratio = |arm: f64, first: f64, second: f64| {
        let log = arm.ln() - 0.5 * (first.ln() + second.ln());
        log.is_finite().then_some(log)
    };
    let Some(figure) = of_slice(metric) else {
        return ratio(value(arm, metric)?, value(first, metric)?, value(second, metric)?);
    };
    let of = |trial: &TrialRecord, permutation: u32| {
        trial.slices.iter().find(|slice| slice.permutation == permutation).and_then(figure)
    };
    let logs: Vec<f64> = arm
        .slices
        .iter()
        .filter_map(|slice| {
            let number = slice.permutation;
            ratio(figure(slice)?, of(first, number)?, of(second, number)?)
        })
        .collect();
    median(&logs)
}

/// How a slice has a metric; `None` where only the whole round has it.
fn of_slice(metric: Metric) -> Option<fn(&SliceRecord) -> Option<f64>> {
    match metric {
        Metric::ServerCpuPerMessage => Some(server_cpu_ns_per_message),
        Metric::MachineCpuPerMessage => Some(|slice| per_message(slice.machine_cpu_ns, slice)),
        Metric::Throughput => Some(|slice| {
            let is_measured = slice.messages > 0 && slice.length_ns > 0;
            is_measured.then(|| slice.messages as f64 / slice.length_ns as f64)
        }),
        Metric::SwitchesPerMessage | Metric::LatencyP50 | Metric::LatencyP99 => None,
    }
}

pub(crate) fn server_cpu_ns_per_message(slice: &SliceRecord) -> Option<f64> {
    per_message(slice.server_cpu_ns, slice)
}

fn per_message(total: u64, slice: &SliceRecord) -> Option<f64> {
    (slice.messages > 0 && total > 0).then(|| total as f64 / slice.messages as f64)
}

/// Logarithms of the ratios of one figure, of the pairs that have it.
pub(crate) fn log_ratios(pairs: &[Pair<'_>], metric: Metric) -> Vec<f64> {
    pairs
        .iter()
        .filter_map(|pair| Some(value(pair.arm, metric)? / value(pair.baseline, metric)?))
        .map(f64::ln)
        .filter(|log| log.is_finite())
        .collect()
}

/// A trial's figure; `None` when it was not observed.
fn value(trial: &TrialRecord, metric: Metric) -> Option<f64> {
    let load = trial.load.as_ref()?;
    let observed = load.observed.as_ref();
    let per_message = |total: u64| total as f64 / load.messages as f64;
    let figure = match metric {
        Metric::ServerCpuPerMessage => per_message(observed?.cpu_ns),
        Metric::MachineCpuPerMessage => per_message(observed?.noise.machine_busy_ns),
        Metric::SwitchesPerMessage => per_message(observed?.switches_voluntary),
        Metric::Throughput => load.throughput_per_second,
        Metric::LatencyP50 => load.response.quantile_ns(0.5)? as f64,
        Metric::LatencyP99 => load.response.quantile_ns(0.99)? as f64,
    };
    (figure.is_finite() && figure > 0.0).then_some(figure)
}

#[cfg(test)]
mod tests {
    use weir_record::trial::Taint;

    use super::*;

    fn trial(arm: &str, repeat: bool, block: u32, costs: &[u64]) -> TrialRecord {
        let slices = (0..).zip(costs).map(|(permutation, cost)| SliceRecord {
            permutation,
            messages: 1_000,
            server_cpu_ns: 1_000 * cost,
            ..SliceRecord::default()
        });
        TrialRecord { arm: arm.to_owned(), repeat, block, slices: slices.collect(), ..TrialRecord::default() }
    }

    fn units(trials: &[TrialRecord]) -> Units {
        let gate = Gate::new(trials);
        let trials: Vec<&TrialRecord> = trials.iter().collect();
        of_rounds(&gate, &trials, "epoll", "uring", Metric::ServerCpuPerMessage)
    }

    #[test]
    fn a_round_gives_the_median_of_its_permutations_against_both_baselines() {
        // The machine is twice as slow in the second permutation, and something happened in the third.
        let trials = [
            trial("epoll", false, 0, &[1_000, 2_000, 1_000]),
            trial("epoll", true, 0, &[1_000, 2_000, 1_000]),
            trial("uring", false, 0, &[900, 1_800, 9_000]),
        ];
        let found = units(&trials);
        assert_eq!(found.logs.len(), 1);
        assert!((found.logs[0] - 0.9_f64.ln()).abs() < 1e-12, "{found:?}");
        assert_eq!(found.logs_self, [0.0]);
    }

    #[test]
    fn both_baselines_count_alike() {
        let trials = [
            trial("epoll", false, 0, &[1_000]),
            trial("epoll", true, 0, &[1_210]),
            trial("uring", false, 0, &[1_100]),
        ];
        let found = units(&trials);
        assert!(found.logs[0].abs() < 1e-12, "{found:?}");
        assert!((found.logs_self[0] - 1.21_f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn a_round_in_which_a_run_failed_has_no_value_and_says_why() {
        let mut trials = vec![
            trial("epoll", false, 3, &[1_000]),
            trial("epoll", true, 3, &[1_000]),
            trial("uring", false, 3, &[1_000]),
        ];
        trials[1].taints.push(Taint::Errors { count: 2 });
        let found = units(&trials);
        assert!(found.logs.is_empty() && found.logs_self.is_empty());
        assert_eq!(found.excluded, BTreeMap::from([(Exclusion::Errors, 1)]));
        trials[1].taints.clear();
        trials[2].slices[0].messages = 0;
        assert_eq!(units(&trials).excluded, BTreeMap::from([(Exclusion::WithoutFigure, 1)]));
    }
}
