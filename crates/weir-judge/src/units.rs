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

use crate::{
    cell_trials::CellTrials,
    gate::{Against, Gate, Pair, Pairs},
};

/// The values of one comparison.
#[derive(Clone, Debug, Default)]
pub(crate) struct Units {
    /// Arm against baseline, one for each unit.
    pub(crate) logs: Vec<f64>,
    /// The baseline's second run against its first.
    pub(crate) logs_self: Vec<f64>,
    /// Units without a value, counted by reason.
    pub(crate) excluded: BTreeMap<Exclusion, u32>,
}

/// The values of one comparison in the cell's state, and of the study's first arm against itself.
pub(crate) fn of(
    gate: &Gate,
    cell: &CellTrials<'_>,
    (arm, baseline): (&str, &str),
    first: &str,
    metric: Metric,
) -> Units {
    match cell.spec.alternation {
        Some(_) => of_rounds(gate, cell, (arm, baseline), first, metric),
        None => of_blocks(gate, cell, (arm, baseline), first, metric),
    }
}

/// Of blocks in which each arm has a trial of its own.
fn of_blocks(
    gate: &Gate,
    cell: &CellTrials<'_>,
    (arm, baseline): (&str, &str),
    first: &str,
    metric: Metric,
) -> Units {
    let Pairs { used, mut excluded, .. } = gate.pairs(&cell.trials, baseline, Against::Arm(arm), cell.state);
    let logs = log_ratios(&used, metric);
    let without = used.len() - logs.len();
    if without > 0 {
        excluded.insert(Exclusion::WithoutFigure, u32::try_from(without).unwrap_or(u32::MAX));
    }
    let itself = gate.pairs(&cell.trials, first, Against::Itself, cell.state);
    Units { logs, logs_self: log_ratios(&itself.used, metric), excluded }
}

/// Of rounds in which the arms took turns.
fn of_rounds(
    gate: &Gate,
    cell: &CellTrials<'_>,
    (arm, baseline): (&str, &str),
    first: &str,
    metric: Metric,
) -> Units {
    let mut rounds: BTreeMap<(u32, u32), Vec<&TrialRecord>> = BTreeMap::new();
    for trial in &cell.trials {
        rounds.entry((trial.block, trial.attempt)).or_default().push(trial);
    }
    let mut units = Units::default();
    for trials in rounds.values() {
        let run = |name: &str, repeat: bool| {
            trials.iter().copied().find(|trial| trial.arm == name && trial.repeat == repeat)
        };
        let usable = |runs: &[&TrialRecord]| {
            let obstacle = runs.iter().find_map(|trial| gate.obstacle(trial, cell.state));
            obstacle.map_or(Ok(()), Err)
        };
        if let (Some(arm), Some(one)) = (run(arm, false), run(baseline, false)) {
            let other = run(baseline, true).unwrap_or(one);
            let value = usable(&[arm, one, other])
                .and_then(|()| round_value(arm, one, other, metric).ok_or(Exclusion::WithoutFigure));
            match value {
                Ok(value) => units.logs.push(value),
                Err(reason) => *units.excluded.entry(reason).or_default() += 1,
            }
        }
        if let (Some(one), Some(other)) = (run(first, false), run(first, true))
            && usable(&[one, other]).is_ok()
        {
            units.logs_self.extend(round_value(other, one, one, metric));
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
    use weir_record::{spec::Alternation, trial::Taint};

    use super::*;
    use crate::sample;

    fn trial(arm: &str, repeat: bool, block: u32, costs: &[u64]) -> TrialRecord {
        let slices = (0..).zip(costs).map(|(permutation, cost)| SliceRecord {
            permutation,
            messages: 1_000,
            server_cpu_ns: 1_000 * cost,
            ..SliceRecord::default()
        });
        TrialRecord {
            cell_id: "c100-d1-m64-closed".to_owned(),
            arm: arm.to_owned(),
            repeat,
            block,
            slices: slices.collect(),
            ..TrialRecord::default()
        }
    }

    fn units(trials: &[TrialRecord]) -> Units {
        let mut spec = sample::study(&["epoll", "uring"], 1, 1);
        spec.cells[0].alternation = Some(Alternation { slice_ns: 1, permutations: 1, prime_messages: 1 });
        let gate = Gate::new(trials);
        let cell = CellTrials::of(&spec.cells[0], &gate, &trials.iter().collect::<Vec<_>>());
        of(&gate, &cell, ("uring", "epoll"), "epoll", Metric::ServerCpuPerMessage)
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
