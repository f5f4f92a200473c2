//! The aggregate report of a load tester, for each server of an HTTP study. Pure.
//!
//! Times are those of right responses, from the intended start in an open loop. They come from merged histograms of
//! the compared trials and of those that were excluded because responses failed: without the trials that went wrong
//! the table would only show the survivors. Failures are counted over all trials.

use hdrhistogram::Histogram;
use weir_record::{
    finding::ExclusionKind,
    load::LoadReport,
    overview::{Aggregate, AggregateRow, Statistic},
    spec::StudySpec,
    trial::TrialRecord,
};

use crate::{
    cell_trials::CellTrials,
    gate::ValidityGate,
    histogram::{is_held, merged, quantile_ns},
    obstacle,
};

/// One for each server of each cell; empty if the messages are not requests.
pub(crate) fn all(spec: &StudySpec, gate: &ValidityGate, cells: &[CellTrials<'_>]) -> Vec<Aggregate> {
    let cells = cells.iter().filter(|cell| cell.spec.http.is_some());
    cells.flat_map(|cell| spec.arms.iter().filter_map(|arm| aggregate(gate, cell, &arm.name))).collect()
}

fn aggregate(gate: &ValidityGate, cell: &CellTrials<'_>, arm: &str) -> Option<Aggregate> {
    let is_taken = |trial: &&TrialRecord| {
        trial.load.is_some()
            && gate.obstacle(trial, cell.state).is_none_or(|reason| reason == ExclusionKind::Errors)
    };
    let trials: Vec<&TrialRecord> = cell.of_arm(arm).filter(is_taken).collect();
    if trials.is_empty() {
        return None;
    }
    let loads = trials.iter().filter_map(|trial| trial.load.as_ref());
    let whole = loads.filter(|load| load.failures.errors() == 0);
    let is_rare = |quantile: f64| {
        cell.spec.alternation.is_some() && whole.clone().any(|load| !is_held(load.response.count, quantile))
    };
    let all = figures(&trials);
    let each: Vec<Vec<Option<f64>>> = trials.iter().map(|trial| figures(&[*trial])).collect();
    let row = |index: usize, statistic: Statistic| {
        if quantile_of(statistic).is_some_and(is_rare) {
            return None;
        }
        let value = all[index]?;
        let each: Vec<f64> = each.iter().filter_map(|figures| figures[index]).collect();
        let is_sum = matches!(statistic, Statistic::Samples | Statistic::Errors);
        let range = (!is_sum && !each.is_empty()).then(|| {
            let least = each.iter().copied().fold(f64::INFINITY, f64::min);
            (least, each.iter().copied().fold(f64::NEG_INFINITY, f64::max))
        });
        Some(AggregateRow { statistic, value, range })
    };
    let errors = errors(cell, arm);
    let rows = Statistic::ALL.into_iter().enumerate().filter_map(|(index, statistic)| match statistic {
        Statistic::Errors => errors.map(|value| AggregateRow { statistic, value, range: None }),
        _ => row(index, statistic),
    });
    Some(Aggregate {
        cell_id: cell.spec.id.clone(),
        arm: arm.to_owned(),
        trials: u32::try_from(trials.len()).unwrap_or(u32::MAX),
        is_bound: obstacle::generator_bound(cell.spec, arm, &trials).is_some(),
        rows: rows.collect(),
    })
}

/// Share of failures among everything that ended in all trials.
fn errors(cell: &CellTrials<'_>, arm: &str) -> Option<f64> {
    let loads = || cell.of_arm(arm).filter_map(|trial| trial.load.as_ref());
    let failed: u64 = loads().map(|load| load.failures.errors()).sum();
    let right: u64 = loads().map(|load| load.messages_whole_run.max(load.messages)).sum();
    (failed + right > 0).then(|| failed as f64 / (failed + right) as f64)
}

/// The quantile of a statistic, if it is one.
fn quantile_of(statistic: Statistic) -> Option<f64> {
    match statistic {
        Statistic::Median => Some(0.5),
        Statistic::P90 => Some(0.9),
        Statistic::P95 => Some(0.95),
        Statistic::P99 => Some(0.99),
        _ => None,
    }
}

/// Most messages in a second; if arms take turns the rate of the best slice, which is shorter than a second.
fn peak(trials: &[&TrialRecord]) -> Option<f64> {
    let slices = trials.iter().flat_map(|trial| &trial.slices).filter(|slice| slice.length_ns > 0);
    let of_slices = slices.map(|slice| slice.messages as f64 * 1e9 / slice.length_ns as f64);
    let seconds = trials.iter().filter_map(|trial| trial.load.as_ref()).flat_map(|load| &load.seconds);
    seconds.map(|second| second.messages as f64).chain(of_slices).reduce(f64::max)
}

/// Every statistic over several trials combined, in their order. The distribution is decoded once for all of them.
fn figures(trials: &[&TrialRecord]) -> Vec<Option<f64>> {
    let loads: Vec<&LoadReport> = trials.iter().filter_map(|trial| trial.load.as_ref()).collect();
    let times = merged(loads.iter().map(|load| load.response.histogram_v2_base64.as_str())).ok();
    let figure = |statistic: Statistic| match statistic {
        Statistic::Peak => peak(trials),
        _ => of_loads(statistic, &loads, times.as_ref()),
    };
    Statistic::ALL.into_iter().map(figure).collect()
}

/// A figure over several reports combined; `None` if there are too few samples for it.
fn of_loads(statistic: Statistic, loads: &[&LoadReport], times: Option<&Histogram<u64>>) -> Option<f64> {
    let quantile = |quantile: f64| Some(quantile_ns(times?, quantile)? as f64);
    let known = |of: fn(&Histogram<u64>) -> f64| times.filter(|it| !it.is_empty()).map(of);
    match statistic {
        Statistic::Samples => known(|it| it.len() as f64),
        Statistic::Mean => known(|it| it.mean()),
        Statistic::Median | Statistic::P90 | Statistic::P95 | Statistic::P99 => {
            quantile(quantile_of(statistic)?)
        }
        Statistic::Max => known(|it| it.max() as f64),
        Statistic::Deviation => known(|it| it.stdev()),
        Statistic::Errors | Statistic::Peak => None,
        Statistic::Throughput => {
            let messages: u64 = loads.iter().map(|load| load.messages).sum();
            let window_ns: u64 = loads.iter().map(|load| load.window_ns).sum();
            (window_ns > 0).then(|| messages as f64 * 1e9 / window_ns as f64)
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_record::{
        failure::FailureCounts,
        latency::{LatencySummary, empty_histogram},
        load::SecondRow,
        spec::HttpCell,
        trial::{Exclusion, SliceRecord},
    };

    use super::*;
    use crate::{cell_trials, sample};

    fn study() -> StudySpec {
        let mut spec = sample::study(&["epoll", "uring"], 3, 1);
        spec.cells[0].http = Some(HttpCell { content: "html".to_owned(), ..HttpCell::default() });
        spec
    }

    /// A trial with `count` responses of this many milliseconds and a hundredth as many of ten times that.
    fn trial(block: u32, count: u64, milliseconds: u64) -> TrialRecord {
        let mut histogram = empty_histogram();
        histogram.saturating_record_n(milliseconds * 1_000_000, count);
        histogram.saturating_record_n(milliseconds * 10_000_000, count / 100);
        let second = |messages| SecondRow { messages, ..SecondRow::default() };
        TrialRecord {
            cell_id: "c100-d1-m64-closed".to_owned(),
            arm: "epoll".to_owned(),
            block,
            load: Some(LoadReport {
                messages: count,
                window_ns: 2_000_000_000,
                throughput_per_second: count as f64 / 2.0,
                response: LatencySummary::from_histogram(&histogram),
                seconds: vec![second(count / 3), second(count / 2)],
                ..LoadReport::default()
            }),
            ..TrialRecord::default()
        }
    }

    fn found(trials: &[TrialRecord]) -> Vec<Aggregate> {
        let (spec, gate) = (study(), ValidityGate::new(trials));
        all(&spec, &gate, &cell_trials::by_role(&spec, &gate, trials))
    }

    fn value(it: &Aggregate, statistic: Statistic) -> Option<AggregateRow> {
        it.rows.iter().copied().find(|row| row.statistic == statistic)
    }

    #[test]
    fn percentiles_are_of_all_requests_and_ranges_of_the_trials() {
        let [one] = &found(&[trial(0, 10_000, 10), trial(1, 30_000, 20)])[..] else {
            panic!("one server ran")
        };
        let ms = |statistic| value(one, statistic).map(|row| (row.value / 1e6).round()).expect("it is known");
        assert_eq!((ms(Statistic::Median), ms(Statistic::P90), ms(Statistic::Max)), (20.0, 20.0, 200.0));
        let median = value(one, Statistic::Median).and_then(|row| row.range).expect("each trial has one");
        assert_eq!(((median.0 / 1e6).round(), (median.1 / 1e6).round()), (10.0, 20.0));
        let plain = |statistic| value(one, statistic).map(|row| (row.value, row.range)).expect("it is known");
        assert_eq!(plain(Statistic::Samples), (40_400.0, None));
        assert_eq!(plain(Statistic::Throughput), (10_000.0, Some((5_000.0, 15_000.0))));
        assert_eq!(plain(Statistic::Peak), (15_000.0, Some((5_000.0, 15_000.0))));
        assert_eq!(plain(Statistic::Errors), (0.0, None));
        assert_eq!(one.rows.len(), Statistic::ALL.len());
    }

    #[test]
    fn a_trial_set_aside_for_errors_is_in_it_and_one_set_aside_for_noise_is_not() {
        let mut trials = vec![trial(0, 10_000, 10), trial(1, 10_000, 30), trial(2, 10_000, 90)];
        trials[1].exclusions.push(Exclusion::Errors { count: 500 });
        trials[1].load.as_mut().expect("it has one").failures =
            FailureCounts { response_timeout: 500, ..FailureCounts::default() };
        trials[2].exclusions.push(Exclusion::Steal);
        let [one] = &found(&trials)[..] else { panic!("one server ran") };
        assert_eq!(one.trials, 2);
        let errors = value(one, Statistic::Errors).expect("it is known").value;
        assert!((errors - 500.0 / 30_500.0).abs() < 1e-12, "{errors}");
        assert!(value(one, Statistic::Max).is_some_and(|row| (row.value / 1e6).round() == 300.0));
    }

    #[test]
    fn the_peak_of_arms_that_take_turns_is_the_rate_of_the_best_slice() {
        let mut sliced = trial(0, 500, 10);
        sliced.load.as_mut().expect("it has one").seconds.clear();
        let slice = |messages| SliceRecord { messages, length_ns: 25_000_000, ..SliceRecord::default() };
        sliced.slices = vec![slice(200), slice(250), SliceRecord::default()];
        let [one] = &found(&[sliced])[..] else { panic!("one server ran") };
        assert_eq!(value(one, Statistic::Peak).map(|row| row.value), Some(10_000.0));
    }

    #[test]
    fn too_few_samples_have_no_percentile_and_without_a_second_or_a_slice_there_is_no_peak() {
        let mut few = trial(0, 500, 10);
        few.load.as_mut().expect("it has one").seconds.clear();
        let [one] = &found(&[few])[..] else { panic!("one server ran") };
        assert!(value(one, Statistic::P99).is_none() && value(one, Statistic::P95).is_some());
        assert_eq!(value(one, Statistic::Peak), None);
        let echo = sample::study(&["epoll"], 3, 1);
        let trials = [trial(0, 500, 10)];
        let gate = ValidityGate::new(&trials);
        assert!(all(&echo, &gate, &cell_trials::by_role(&echo, &gate, &trials)).is_empty());
    }
}
