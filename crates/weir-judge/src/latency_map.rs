//! Latency against offered load: the arms of cells that differ only in the rate, each at common rates. Pure.
//!
//! Times count from the intended start, so that waiting caused by an overloaded server is included (no coordinated
//! omission). If the rate was not kept there is no latency: the queue grows for as long as the load lasts, and the
//! times only reflect that duration. If the generator was late, times are upper bounds: if a message had left on
//! time, a first-come first-served server would have answered it and all others no later. Rates that are shares are
//! chosen by a pilot before the first round; the closed loop of the same study shows the actual share of the
//! capacity.

use weir_record::{
    figure::Figure,
    finding::Finding,
    latency_map::{Capacity, LatencyLadder, LatencyPoint, LatencyRung},
    load::GENERATOR_BUSY_MAX,
    metric::Metric,
    spec::{CellSpec, LoadMode, StudySpec},
    study::ArmSummary,
    trial::TrialRecord,
};
use weir_stats::{decide::estimate, order::median};

use crate::{cell_trials::CellTrials, gate::ValidityGate, obstacle, witnesses::is_same_shape};

/// With fewer rates there is no line.
const RATES_MIN: usize = 2;

/// One for each set of cells in open loop that differ only in the rate, if there are several.
pub(crate) fn all(
    spec: &StudySpec,
    (gate, cells): (&ValidityGate, &[CellTrials<'_>]),
    arms: &[ArmSummary],
) -> Vec<LatencyLadder> {
    let mut ladders: Vec<Vec<(&CellTrials<'_>, f64)>> = Vec::new();
    // Disk jobs and orders have no common rate that is a share of a capacity.
    for cell in cells.iter().filter(|cell| cell.spec.storage.is_none() && cell.spec.orders.is_none()) {
        let LoadMode::Open { rate_per_second, .. } = cell.spec.load else { continue };
        match ladders.iter_mut().find(|ladder| is_one_ladder(ladder[0].0.spec, cell.spec)) {
            Some(ladder) => ladder.push((cell, rate_per_second)),
            None => ladders.push(vec![(cell, rate_per_second)]),
        }
    }
    ladders.retain(|ladder| ladder.len() >= RATES_MIN);
    ladders
        .into_iter()
        .map(|mut ladder| {
            ladder.sort_by(|(_, one), (_, other)| one.total_cmp(other));
            let capacity = capacity(spec, cells, ladder[0].0.spec, arms);
            let rung = |(cell, rate): (&CellTrials<'_>, f64)| {
                rung(spec, gate, (cell, rate), capacity.as_ref(), arms)
            };
            LatencyLadder { rungs: ladder.into_iter().map(rung).collect(), capacity }
        })
        .collect()
}

fn is_one_ladder(one: &CellSpec, other: &CellSpec) -> bool {
    let is_poisson = |cell: &CellSpec| matches!(cell.load, LoadMode::Open { poisson: true, .. });
    is_same_shape(one, other) && is_poisson(one) == is_poisson(other)
}

/// The capacity of the ladder's slowest arm in closed loop, with the same levels.
fn capacity(
    spec: &StudySpec,
    cells: &[CellTrials<'_>],
    shape: &CellSpec,
    arms: &[ArmSummary],
) -> Option<Capacity> {
    let is_its = |cell: &&CellTrials<'_>| {
        matches!(cell.spec.load, LoadMode::Closed) && is_same_shape(cell.spec, shape)
    };
    let of_arm = |cell: &CellSpec, name: &str| {
        let summary = arms.iter().find(|it| it.cell_id == cell.id && it.arm == name)?;
        Some(Capacity {
            cell_id: cell.id.clone(),
            arm: name.to_owned(),
            per_second: mean_of(summary, Metric::Throughput)?,
            is_bound: summary.generator_bound,
        })
    };
    let of_cell = |cell: &CellTrials<'_>| {
        let own = spec.arms.iter().filter(|arm| shape.has_arm(&arm.name));
        let found = own.filter_map(|arm| of_arm(cell.spec, &arm.name));
        found.min_by(|one, other| one.per_second.value.total_cmp(&other.per_second.value))
    };
    cells.iter().filter(is_its).find_map(of_cell)
}

/// A figure over the rounds of the arm's ratios.
fn mean_of(summary: &ArmSummary, metric: Metric) -> Option<Figure> {
    let figures = summary.figures(metric)?;
    let logs: Vec<f64> = figures.units.iter().map(|unit| unit.ln()).collect();
    let interval = estimate(&logs).map(|it| (it.low.exp(), it.high.exp()));
    Some(Figure { value: figures.mean, interval })
}

fn rung(
    spec: &StudySpec,
    gate: &ValidityGate,
    (cell, rate_per_second): (&CellTrials<'_>, f64),
    capacity: Option<&Capacity>,
    arms: &[ArmSummary],
) -> LatencyRung {
    let point = |arm: &str| {
        let used: Vec<&TrialRecord> =
            cell.of_arm(arm).filter(|trial| gate.is_usable(trial, cell.state)).collect();
        let achieved_per_second = rate_per_second * answered(&used)?;
        let mut reasons = obstacle::of_side(cell, arm, Metric::LatencyP99.row(), &used);
        let is_lag = |reason: &Finding| matches!(reason, Finding::LagTooLarge { .. });
        let is_upper_bound = reasons.iter().any(is_lag);
        reasons.retain(|reason| !is_lag(reason));
        let summary = arms.iter().find(|it| it.cell_id == cell.spec.id && it.arm == arm);
        let time = |metric: Metric| mean_of(summary?, metric).filter(|_| reasons.is_empty());
        let (p50_ns, p99_ns) = (time(Metric::LatencyP50), time(Metric::LatencyP99));
        let units = summary.and_then(|it| it.figures(Metric::LatencyP50)).map_or(0, |it| it.units.len());
        Some(LatencyPoint {
            arm: arm.to_owned(),
            p50_ns,
            p99_ns,
            is_upper_bound,
            lag_p99_ns: median(&lags(&used)),
            achieved_per_second,
            is_generator_busy: is_generator_busy(&used),
            reasons,
            units: u32::try_from(units).unwrap_or(u32::MAX),
        })
    };
    LatencyRung {
        cell_id: cell.spec.id.clone(),
        rate_per_second,
        share: capacity.map(|it| rate_per_second / it.per_second.value),
        arms: spec.arms.iter().filter_map(|arm| point(&arm.name)).collect(),
    }
}

fn lags(trials: &[&TrialRecord]) -> Vec<f64> {
    let loads = trials.iter().filter_map(|trial| trial.load.as_ref());
    loads.filter_map(|load| Some(load.send_lag.quantile_ns(0.99)? as f64)).collect()
}

fn is_generator_busy(trials: &[&TrialRecord]) -> bool {
    let loads: Vec<_> = trials.iter().filter_map(|trial| trial.load.as_ref()).collect();
    2 * loads.iter().filter(|load| load.generator_busy_max > GENERATOR_BUSY_MAX).count() > loads.len()
}

/// The share of due messages that were answered.
fn answered(trials: &[&TrialRecord]) -> Option<f64> {
    let loads = || trials.iter().filter_map(|trial| trial.load.as_ref());
    let due: u64 = loads().map(|load| load.messages_started + load.missed_starts).sum();
    let answered: u64 = loads().map(|load| load.messages).sum();
    (due > 0).then(|| answered as f64 / due as f64)
}

#[cfg(test)]
mod tests {
    use weir_record::{latency::LatencySummary, load::LoadReport};

    use super::*;
    use crate::{judge, sample};

    const CAPACITY: f64 = 100_000.0;

    fn cell(base: &CellSpec, percent: u32) -> CellSpec {
        let load = match percent {
            0 => LoadMode::Closed,
            _ => LoadMode::Open {
                rate_per_second: CAPACITY * f64::from(percent) / 100.0,
                poisson: true,
                share: None,
            },
        };
        CellSpec { id: format!("c100-{percent}"), load, ..base.clone() }
    }

    /// A trial in which the arm answers this share of the due messages, with a generator that is late by this much.
    fn trial(cell: &CellSpec, arm: &str, block: u32, (answers, lag_ns): (f64, u64)) -> TrialRecord {
        let due = match cell.load {
            LoadMode::Open { rate_per_second, .. } => rate_per_second as u64,
            _ => CAPACITY as u64,
        };
        let p50_ns = 50_000 + 100 * u64::from(block);
        let times = |p50_ns: u64| LatencySummary {
            count: due,
            quantiles: vec![(0.5, p50_ns), (0.99, 3 * p50_ns)],
            ..LatencySummary::default()
        };
        let messages = (due as f64 * answers) as u64;
        let load = LoadReport {
            messages,
            messages_started: messages,
            missed_starts: due - messages,
            throughput_per_second: messages as f64,
            response: times(p50_ns),
            send_lag: times(lag_ns),
            ..LoadReport::default()
        };
        TrialRecord {
            cell_id: cell.id.clone(),
            arm: arm.to_owned(),
            block,
            load: Some(load),
            ..TrialRecord::default()
        }
    }

    fn ladders(percents: &[u32], answers: impl Fn(&CellSpec, &str) -> f64) -> Vec<LatencyLadder> {
        ladders_with(percents, 100, answers)
    }

    fn ladders_with(
        percents: &[u32],
        lag_ns: u64,
        answers: impl Fn(&CellSpec, &str) -> f64,
    ) -> Vec<LatencyLadder> {
        let mut spec = sample::study(&["epoll", "uring"], 8, 1);
        let base = spec.cells[0].clone();
        spec.cells = percents.iter().map(|percent| cell(&base, *percent)).collect();
        let mut trials = Vec::new();
        for cell in &spec.cells {
            for arm in ["epoll", "uring"] {
                trials.extend((0..8).map(|block| trial(cell, arm, block, (answers(cell, arm), lag_ns))));
            }
        }
        judge::judged(&spec, &trials).latency_ladders
    }

    #[test]
    fn every_arm_has_its_times_at_every_rate_with_their_intervals() {
        let [ladder] = &ladders(&[0, 90, 50, 70], |_, _| 1.0)[..] else { panic!("there is one") };
        let capacity = ladder.capacity.as_ref().expect("it was measured");
        assert_eq!((capacity.cell_id.as_str(), capacity.per_second.value.round()), ("c100-0", CAPACITY));
        let shares: Vec<f64> = ladder.rungs.iter().filter_map(|rung| rung.share).collect();
        assert!(shares.iter().zip([0.5, 0.7, 0.9]).all(|(is, should)| (is - should).abs() < 1e-9));
        for point in ladder.rungs.iter().flat_map(|rung| &rung.arms) {
            let (p50, p99) = (point.p50_ns.expect("it kept up"), point.p99_ns.expect("it kept up"));
            let (low, high) = p50.interval.expect("there are rounds");
            assert!(low < p50.value && p50.value < high && (50_000.0..50_800.0).contains(&p50.value));
            assert!((p99.value / p50.value - 3.0).abs() < 1e-6 && point.units == 8);
        }
    }

    #[test]
    fn an_arm_that_does_not_keep_the_rate_is_told_as_that_and_has_no_latency() {
        let slow = |cell: &CellSpec, arm: &str| match (cell.id.as_str(), arm) {
            ("c100-90", "uring") => 0.9,
            _ => 1.0,
        };
        let [ladder] = &ladders(&[0, 50, 90], slow)[..] else { panic!("there is one") };
        let point = |rung: usize, arm: usize| &ladder.rungs[rung].arms[arm];
        assert!(point(0, 1).p99_ns.is_some() && point(1, 0).p99_ns.is_some());
        let late = point(1, 1);
        assert_eq!((late.p50_ns, late.p99_ns), (None, None));
        assert!((late.achieved_per_second / (0.9 * 0.9 * CAPACITY) - 1.0).abs() < 1e-3);
        assert!(matches!(&late.reasons[..], [Finding::RateNotKept { arm, .. }] if arm == "uring"));
    }

    #[test]
    fn where_the_generator_was_late_times_are_upper_bounds() {
        let [ladder] = &ladders_with(&[0, 50, 90], 5_000, |_, _| 1.0)[..] else { panic!("there is one") };
        for point in ladder.rungs.iter().flat_map(|rung| &rung.arms) {
            assert!(point.is_upper_bound && point.p99_ns.is_some() && point.reasons.is_empty());
            assert_eq!(point.lag_p99_ns, Some(15_000.0));
        }
        let prompt = ladders(&[50, 90], |_, _| 1.0);
        assert!(prompt[0].rungs.iter().flat_map(|rung| &rung.arms).all(|point| !point.is_upper_bound));
    }

    #[test]
    fn one_rate_is_no_line_and_without_a_closed_loop_there_is_no_capacity() {
        assert!(ladders(&[0, 60], |_, _| 1.0).is_empty());
        let [ladder] = &ladders(&[50, 90], |_, _| 1.0)[..] else { panic!("there is one") };
        assert_eq!(ladder.capacity, None);
        assert!(ladder.rungs.iter().all(|rung| rung.share.is_none()));
    }
}
