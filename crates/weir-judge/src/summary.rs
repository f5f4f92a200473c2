//! Absolute figures of one arm in one cell. Pure.

use weir_record::{
    engine::EngineStats,
    gateway::OrderFigures,
    load::LoadReport,
    metric::{self, MetricRow},
    spec::CellSpec,
    study::{ArmSummary, MetricFigures, Spread},
    trial::TrialRecord,
};
use weir_stats::order::median;

use crate::histogram::merged_quantiles;

/// Counters that are levels or maxima, not events; a share per message would mean nothing.
const NOT_EVENTS: [&str; 2] = ["completions_per_turn_max", "connections_open"];

/// The arm over these trials, which are its clean ones in time order; `figures` are those of each metric, one for each
/// unit.
pub(crate) fn summarize(
    cell: &CellSpec,
    arm: &str,
    trials: &[&TrialRecord],
    figures: impl Fn(&'static MetricRow) -> Vec<f64>,
) -> ArmSummary {
    let loads: Vec<&LoadReport> = trials.iter().filter_map(|trial| trial.load.as_ref()).collect();
    let bound = loads.iter().filter(|load| load.generator_bound).count();
    let known = quantile_known(cell, &loads);
    let curve = |text: fn(&LoadReport) -> &str| {
        let mut curve = merged_quantiles(loads.iter().map(|load| text(load))).unwrap_or_default();
        curve.retain(|(quantile, _)| *quantile <= known);
        curve
    };
    ArmSummary {
        cell_id: cell.id.clone(),
        arm: arm.to_owned(),
        trials: u32::try_from(trials.len()).unwrap_or(u32::MAX),
        figures: metric::shown(cell).filter_map(|row| spread_of(row, figures(row))).collect(),
        generator_bound: 2 * bound > loads.len(),
        syscalls_per_message: syscalls_per_message(&loads),
        engine_per_message: engine_per_message(&loads),
        response_quantiles: curve(|load| &load.response.histogram_v2_base64),
        service_quantiles: curve(|load| &load.service.histogram_v2_base64),
        orders: orders(&loads),
    }
}

/// The largest quantile that is a figure. A job that is stopped between its turns keeps only those that the operations
/// in flight meanwhile do not reach, and its histogram has all.
fn quantile_known(cell: &CellSpec, loads: &[&LoadReport]) -> f64 {
    if cell.storage.is_none() || cell.alternation.is_none() {
        return 1.0;
    }
    let largest = |load: &&LoadReport| load.response.quantiles.iter().map(|it| it.0).fold(0.0, f64::max);
    loads.iter().map(largest).fold(1.0, f64::min)
}

/// One metric; `None` when no unit has it.
fn spread_of(row: &MetricRow, units: Vec<f64>) -> Option<MetricFigures> {
    let spread = known(units.iter().copied())?;
    Some(MetricFigures { metric: row.metric, spread, units })
}

/// What only orders have; `None` for everything else.
fn orders(loads: &[&LoadReport]) -> Option<OrderFigures> {
    let own: Vec<&LoadReport> = loads.iter().copied().filter(|load| load.orders.is_some()).collect();
    if own.is_empty() {
        return None;
    }
    let latency = |quantile: f64| {
        let micros = |load: &&LoadReport| Some(load.response.quantile_ns(quantile)? as f64 / 1_000.0);
        known(own.iter().filter_map(micros))
    };
    let handoffs = || {
        let seen = |load: &&&LoadReport| load.messages > 0;
        let handoff = |load: &&LoadReport| load.observed.as_ref()?.node.as_ref()?.handoff.clone();
        own.iter().filter(seen).filter_map(move |load| Some((load.messages, handoff(load)?)))
    };
    let share = |(part, whole): (u64, u64)| (whole > 0).then(|| part as f64 / whole as f64);
    Some(OrderFigures {
        p99_us: latency(0.99),
        wakes_per_order: known(handoffs().filter_map(|(orders, it)| share((it.wakes_sent, orders)))),
        wakes_per_handoff: known(handoffs().filter_map(|(_, it)| share((it.wakes_sent, it.pushed)))),
        handoffs_per_drain: known(handoffs().filter_map(|(_, it)| share((it.pushed, it.drains)))),
        handed_off_share: known(handoffs().filter_map(|(_, it)| share((it.orders_handed_off, it.orders)))),
        wakes_recovered: handoffs().map(|(_, it)| it.wakes_recovered).sum(),
    })
}

/// The spread of what there is; `None` of nothing.
fn known(values: impl Iterator<Item = f64>) -> Option<Spread> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| spread(&values))
}

fn spread(values: &[f64]) -> Spread {
    let Some(median) = median(values) else {
        return Spread::default();
    };
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Spread { median, min, max }
}

/// Counters of all trials that have them, summed, with the messages they belong to.
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
    // A record of plain numbers always serialises to an object of them.
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

/// The calls the engine counts: entering the ring, waiting, receiving, sending, changing interest.
fn syscalls_per_message(loads: &[&LoadReport]) -> Option<f64> {
    let (total, messages) = engine_total(loads)?;
    let calls = total.enters + total.wait_calls + total.recv_calls + total.send_calls + total.interest_calls;
    Some(calls as f64 / messages)
}

#[cfg(test)]
mod tests {
    use weir_record::{metric::Metric, trial::ObservedWindow};

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
    fn figures_are_per_message_and_medians_of_trials() {
        let trials = [trial(100, 400_000, true), trial(200, 1_000_000, true), trial(100, 600_000, false)];
        let trials: Vec<&TrialRecord> = trials.iter().collect();
        let summary = of_trials("epoll", &trials);
        let figures = |metric| summary.figures(metric).expect("it was observed");
        let cpu = figures(Metric::ServerCpuPerMessage);
        assert_eq!(cpu.spread, Spread { median: 5.0, min: 4.0, max: 6.0 });
        assert_eq!(cpu.units, [4.0, 5.0, 6.0]);
        assert_eq!(figures(Metric::Throughput).units, [100.0, 200.0, 100.0]);
        assert_eq!(summary.median(Metric::SwitchesPerMessage), Some(0.0), "zero is a figure too");
        assert_eq!(summary.figures(Metric::LastByteP50), None, "that is for HTTP");
        assert!(summary.generator_bound);
        assert_eq!(summary.syscalls_per_message, Some(1.1));
        let enters = summary.engine_per_message.iter().find(|(name, _)| name == "enters");
        assert_eq!(enters, Some(&("enters".to_owned(), 0.1)));
        assert!(summary.engine_per_message.iter().all(|(name, _)| !NOT_EVENTS.contains(&name.as_str())));
    }

    #[test]
    fn wakes_are_counted_for_each_order_and_for_each_that_was_handed_over() {
        use weir_record::orders::{HandoffStats, NodeWindow, OrdersLoadReport};
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
            load.orders = Some(OrdersLoadReport::default());
            let node = NodeWindow { handoff: Some(handoff(wakes_sent)), ..NodeWindow::default() };
            load.observed.as_mut().expect("it was observed").node = Some(node);
            trial
        };
        let (one, other) = (trial(10), trial(30));
        let found = of_trials("mesh", &[&one, &other]).orders.expect("it has orders");
        assert_eq!(found.wakes_per_order, Some(Spread { median: 0.1, min: 0.05, max: 0.15 }));
        assert_eq!(found.wakes_per_handoff, Some(Spread { median: 0.2, min: 0.1, max: 0.3 }));
        assert_eq!(found.handoffs_per_drain.map(|it| it.median), Some(2.0));
        assert_eq!(found.handed_off_share.map(|it| it.median), Some(0.25));
        assert_eq!(found.p99_us, None, "no quantile was given");
    }

    #[test]
    fn of_a_job_that_is_stopped_between_its_turns_the_curve_ends_where_its_quantiles_do() {
        let mut spec = sample::study(&["pread"], 1, 1);
        let cell = &mut spec.cells[0];
        let mut one = trial(100, 1, false);
        let load = one.load.as_mut().expect("it has a report");
        load.response.quantiles = vec![(0.5, 80_000), (0.95, 120_000)];
        assert_eq!(quantile_known(cell, &[load]), 1.0, "messages wait for nobody's turn");
        cell.storage = Some(weir_record::spec::StorageCell {
            device: weir_record::storage::StorageDevice::Disk,
            pattern: weir_record::storage::AccessPattern::RandRead,
            engine: None,
            background_depth: 0,
            background_cores: 1,
            file_bytes: 1 << 30,
            file: None,
        });
        assert_eq!(quantile_known(cell, &[load]), 1.0, "nor do whole trials");
        let turns = weir_record::spec::Alternation {
            slice_ns: 1,
            permutations: 2,
            prime_messages: 0,
            evidence: None,
        };
        cell.alternation = Some(turns);
        assert_eq!(quantile_known(cell, &[load]), 0.95);
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
