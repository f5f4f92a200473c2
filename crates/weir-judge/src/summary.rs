//! Absolute figures of one arm in one cell. Pure.

use weir_record::{
    engine::EngineStats,
    load::LoadReport,
    metric_rows::{self, MetricRow},
    spec::CellSpec,
    study::{ArmSummary, MetricFigures},
    trial::TrialRecord,
};

use weir_stats::decide::estimate;

use crate::histogram::{is_held, merged_quantiles};

/// Counters that are levels or maxima, not events; a value per message would be meaningless.
const NOT_EVENTS: [&str; 2] = ["completions_per_turn_max", "connections_open"];

/// The arm over these trials, which are its clean ones in time order; `figures` contains those of each metric, one
/// per unit.
pub(crate) fn summarize(
    cell: &CellSpec,
    arm: &str,
    trials: &[&TrialRecord],
    figures: impl Fn(&'static MetricRow) -> Vec<f64>,
) -> ArmSummary {
    let loads: Vec<&LoadReport> = trials.iter().filter_map(|trial| trial.load.as_ref()).collect();
    let bound = loads.iter().filter(|load| load.generator_bound).count();
    let curve = |text: fn(&LoadReport) -> &str| {
        let mut curve = merged_quantiles(loads.iter().map(|load| text(load))).unwrap_or_default();
        curve.retain(|(quantile, _)| is_known(cell, &loads, *quantile));
        curve
    };
    let response_quantiles = curve(|load| &load.response.histogram_v2_base64);
    // In a closed loop both are the same distribution, which is decoded once.
    let is_one = |load: &&LoadReport| load.response.histogram_v2_base64 == load.service.histogram_v2_base64;
    let service_quantiles = match loads.iter().all(is_one) {
        true => response_quantiles.clone(),
        false => curve(|load| &load.service.histogram_v2_base64),
    };
    ArmSummary {
        cell_id: cell.id.clone(),
        arm: arm.to_owned(),
        trials: u32::try_from(trials.len()).unwrap_or(u32::MAX),
        figures: metric_rows::shown(cell).filter_map(|row| absolute(row, figures(row))).collect(),
        generator_bound: 2 * bound > loads.len(),
        syscalls_per_message: syscalls_per_message(&loads),
        engine_per_message: engine_per_message(&loads),
        response_quantiles,
        service_quantiles,
    }
}

/// Figures of an arm's units, in time order, with the interval of their mean.
fn absolute(row: &MetricRow, units: Vec<f64>) -> Option<MetricFigures> {
    let values: Vec<f64> = units.iter().map(|figure| row.scale.value(*figure)).collect();
    let found = estimate(&values);
    let interval = found.map(|found| (row.scale.figure(found.low), row.scale.figure(found.high)));
    Some(MetricFigures { interval, ..MetricFigures::of(row.metric, units)? })
}

/// Higher quantiles are not valid for slices: each slice has an edge, and messages waiting there are among its
/// slowest.
const SLICES_QUANTILE_MAX: f64 = 0.99;

/// Whether a quantile is a valid figure. If arms take turns every round must have enough samples for it. A job that
/// is stopped between its turns only keeps quantiles that the operations in flight meanwhile do not affect, because
/// its histogram contains them.
fn is_known(cell: &CellSpec, loads: &[&LoadReport], quantile: f64) -> bool {
    if cell.alternation.is_none() {
        return true;
    }
    let largest = |load: &LoadReport| load.response.quantiles.iter().map(|it| it.0).fold(0.0, f64::max);
    quantile <= SLICES_QUANTILE_MAX
        && loads.iter().all(|load| match cell.storage {
            Some(_) => quantile <= largest(load),
            None => is_held(load.response.count, quantile),
        })
}

/// Sums of the counters over all trials that have them, with their messages.
fn engine_total(loads: &[&LoadReport]) -> Option<(EngineStats, f64)> {
    let mut total = EngineStats::default();
    let mut messages = 0;
    for load in loads {
        if let Some(engine) = load.observed.as_ref().and_then(|seen| seen.engine.as_ref()) {
            total.merge(engine);
            messages += load.messages;
        }
    }
    (messages > 0).then_some((total, messages as f64))
}

fn engine_per_message(loads: &[&LoadReport]) -> Vec<(String, f64)> {
    let Some((total, messages)) = engine_total(loads) else {
        return Vec::new();
    };
    // A record of plain numbers always serialises to an object of numbers.
    let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(total) else {
        return Vec::new();
    };
    let mut counters: Vec<(String, f64)> = fields
        .into_iter()
        .filter(|(name, _)| !NOT_EVENTS.contains(&name.as_str()))
        .filter_map(|(name, value)| value.as_u64().map(|count| (name, count as f64 / messages)))
        .collect();
    counters.sort_by(|(one, _), (other, _)| one.cmp(other));
    counters
}

/// Record version from which engines count all of these calls.
const COUNTED_SINCE: u32 = 2;

/// The calls for I/O that the engine counts: entering the ring, waiting, asking, accepting, receiving, sending,
/// changing interest. `None` if some of them were not counted yet: a different sum must not pass for this one.
fn syscalls_per_message(loads: &[&LoadReport]) -> Option<f64> {
    if loads.iter().any(|load| load.schema_version < COUNTED_SINCE) {
        return None;
    }
    let (total, messages) = engine_total(loads)?;
    let calls = total.enters
        + total.wait_calls
        + total.poll_calls
        + total.accept_calls
        + total.recv_calls
        + total.send_calls
        + total.interest_calls;
    Some(calls as f64 / messages)
}

#[cfg(test)]
mod tests {
    use weir_record::{SCHEMA_VERSION, metric::Metric, window::ObservedWindow};

    use super::*;
    use crate::sample;

    fn of_trials(arm: &str, trials: &[&TrialRecord]) -> ArmSummary {
        let figures = |row: &'static MetricRow| trials.iter().filter_map(|it| row.of_trial(it)).collect();
        summarize(&sample::study(&[arm], 1, 1).cells[0], arm, trials, figures)
    }

    fn trial(messages: u64, cpu_ns: u64, bound: bool) -> TrialRecord {
        let engine = EngineStats {
            enters: messages / 10,
            recv_calls: messages,
            connections_open: 100,
            ..EngineStats::default()
        };
        TrialRecord {
            load: Some(LoadReport {
                schema_version: SCHEMA_VERSION,
                messages,
                throughput_per_second: messages as f64,
                generator_bound: bound,
                observed: Some(ObservedWindow { cpu_ns, engine: Some(engine), ..ObservedWindow::default() }),
                ..LoadReport::default()
            }),
            ..TrialRecord::default()
        }
    }

    #[test]
    fn calls_that_were_not_all_counted_yet_are_no_figure_beside_those_that_are() {
        let mut trials = [trial(100, 400_000, false), trial(200, 800_000, false)];
        let calls = |trials: &[TrialRecord]| {
            of_trials("epoll", &trials.iter().collect::<Vec<_>>()).syscalls_per_message
        };
        assert_eq!(calls(&trials), Some(1.1));
        trials[0].load.as_mut().expect("it was loaded").schema_version = 1;
        assert_eq!(calls(&trials), None);
    }

    #[test]
    fn figures_are_per_message_and_geometric_means_of_trials() {
        let trials = [trial(100, 400_000, true), trial(200, 1_000_000, true), trial(100, 600_000, false)];
        let trials: Vec<&TrialRecord> = trials.iter().collect();
        let summary = of_trials("epoll", &trials);
        let figures = |metric| summary.figures(metric).expect("it was observed");
        let cpu = figures(Metric::ServerCpuPerMessage);
        assert!((cpu.mean - 120.0_f64.cbrt()).abs() < 1e-9, "{cpu:?}");
        assert_eq!(cpu.range(), (4.0, 6.0));
        let (low, high) = cpu.interval.expect("three units have one");
        assert!(
            (low * high - cpu.mean.powi(2)).abs() < 1e-6 && low < 4.0,
            "an interval of logarithms: {cpu:?}"
        );
        let alone = of_trials("epoll", &trials[..1]);
        assert_eq!(alone.figures(Metric::ServerCpuPerMessage).and_then(|it| it.interval), None);
        assert_eq!(cpu.units, [4.0, 5.0, 6.0]);
        assert_eq!(figures(Metric::Throughput).units, [100.0, 200.0, 100.0]);
        assert_eq!(summary.mean(Metric::SwitchesPerMessage), Some(0.0), "zero is a figure too");
        assert_eq!(summary.figures(Metric::LastByteP50), None, "that is for HTTP");
        assert!(summary.generator_bound);
        assert_eq!(summary.syscalls_per_message, Some(1.1));
        let enters = summary.engine_per_message.iter().find(|(name, _)| name == "enters");
        assert_eq!(enters, Some(&("enters".to_owned(), 0.1)));
        assert!(summary.engine_per_message.iter().all(|(name, _)| !NOT_EVENTS.contains(&name.as_str())));
    }

    #[test]
    fn wakes_are_counted_for_each_order_and_for_each_that_was_handed_over() {
        use weir_record::orders::{HandoffStats, NodeWindow};
        let handoff = |wakes_sent: u64| HandoffStats {
            pushed: 100,
            drains: 50,
            wakes_sent,
            orders: 200,
            orders_handed_off: 50,
            ..HandoffStats::default()
        };
        let trial = |wakes_sent: u64| {
            let mut trial = trial(200, 1, false);
            let load = trial.load.as_mut().expect("it has a report");
            let node = NodeWindow { handoff: Some(handoff(wakes_sent)), ..NodeWindow::default() };
            load.observed.as_mut().expect("it was observed").node = Some(node);
            trial
        };
        let (one, other) = (trial(10), trial(30));
        let mut spec = sample::study(&["mesh"], 1, 1);
        spec.cells[0].orders = Some(weir_record::spec::OrdersCell::default());
        let trials = [&one, &other];
        let figures = |row: &'static MetricRow| trials.iter().filter_map(|it| row.of_trial(it)).collect();
        let found = summarize(&spec.cells[0], "mesh", &trials, figures);
        let units = |metric| found.figures(metric).map(|it| it.units.clone());
        assert_eq!(units(Metric::WakesPerOrder), Some(vec![0.05, 0.15]));
        assert_eq!(units(Metric::WakesPerHandoff), Some(vec![0.1, 0.3]));
        assert_eq!(found.mean(Metric::HandoffsPerDrain), Some(2.0));
        assert_eq!(found.mean(Metric::HandedOffShare), Some(0.25));
        assert_eq!(units(Metric::LatencyP99), None, "no quantile was given");
        assert_eq!(
            of_trials("mesh", &trials).figures(Metric::WakesPerOrder),
            None,
            "echo hands nothing over"
        );
    }

    #[test]
    fn of_a_job_that_is_stopped_between_its_turns_the_curve_ends_where_its_quantiles_do() {
        let mut spec = sample::study(&["pread"], 1, 1);
        let cell = &mut spec.cells[0];
        let mut one = trial(100, 1, false);
        let load = one.load.as_mut().expect("it has a report");
        load.response.quantiles = vec![(0.5, 80_000), (0.95, 120_000)];
        assert!(is_known(cell, &[load], 0.99999), "messages wait for nobody's turn");
        cell.storage = Some(weir_record::spec::StorageCell {
            device: weir_record::storage::StorageDevice::Disk,
            pattern: weir_record::storage::AccessPattern::RandRead,
            engine: None,
            background_depth: 0,
            background_cores: 1,
            core_steps: Vec::new(),
            file_bytes: 1 << 30,
            file: None,
        });
        assert!(is_known(cell, &[load], 0.99999), "nor do whole trials");
        let turns = weir_record::spec::Alternation {
            slice_ns: 1,
            permutations: 2,
            prime_messages: 0,
            evidence: None,
        };
        cell.alternation = Some(turns);
        assert!(is_known(cell, &[load], 0.95) && !is_known(cell, &[load], 0.99));
    }

    #[test]
    fn no_quantile_of_slices_is_rarer_than_what_each_round_holds() {
        let mut spec = sample::study(&["epoll"], 1, 1);
        let cell = &mut spec.cells[0];
        let with_samples = |count: u64| {
            let mut trial = trial(100, 1, false);
            trial.load.as_mut().expect("it has a report").response.count = count;
            trial.load.expect("it has a report")
        };
        let (many, enough, few) = (with_samples(1 << 40), with_samples(1_000), with_samples(999));
        assert!(is_known(cell, &[&many, &few], 0.99999), "whole trials are pooled");
        cell.alternation = Some(weir_record::spec::Alternation {
            slice_ns: 1,
            permutations: 2,
            prime_messages: 2,
            evidence: None,
        });
        assert!(is_known(cell, &[&many, &enough], 0.99) && is_known(cell, &[&many, &enough], 0.01));
        assert!(!is_known(cell, &[&many, &many], 0.999), "none rarer than p99");
        assert!(!is_known(cell, &[&many, &few], 0.99) && is_known(cell, &[&many, &few], 0.95));
    }

    #[test]
    fn a_foreign_server_has_no_engine_counters() {
        let mut foreign = trial(100, 400_000, false);
        if let Some(seen) = foreign.load.as_mut().and_then(|load| load.observed.as_mut()) {
            seen.engine = None;
        }
        let summary = of_trials("nginx", &[&foreign]);
        assert_eq!((summary.syscalls_per_message, summary.engine_per_message.len()), (None, 0));
        assert_eq!(of_trials("nginx", &[]).trials, 0);
    }
}
