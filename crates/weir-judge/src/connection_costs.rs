//! Costs of connections themselves, from cells that differ only in silent connections, or in whether every message
//! has its own connection. Pure.
//!
//! Each is a comparison of two cells by the common rule (`answers`): unpaired, at 99 %. Memory per connection is the
//! difference of the same server under the same load with more connections and with fewest: fixed memory cancels.

use weir_record::{
    connection_costs::{ChurnCost, ConnectionCosts, IdleCost, KernelCost},
    effect::Effect,
    figure::Figure,
    finding::Finding,
    goal::{ComparisonSpec, Side},
    metric::Metric,
    spec::{CellSpec, LoadMode, StudySpec},
    study::MissingArm,
};

use crate::{answers, cell_trials::CellTrials, gate::ValidityGate, witnesses::is_same_shape};

/// The costs of a study that requests any.
pub(crate) fn all(
    spec: &StudySpec,
    missing: &[MissingArm],
    measured: (&ValidityGate, &[CellTrials<'_>]),
) -> Option<ConnectionCosts> {
    let costs = Costs { spec, missing, measured };
    let closed = || spec.cells.iter().filter(|cell| cell.load == LoadMode::Closed);
    let idle: Vec<(&CellSpec, &CellSpec)> =
        closed().filter_map(|cell| Some((cell, fewest_silent(spec, cell)?))).collect();
    let churn = closed().filter(|cell| cell.has_connection_per_message());
    let found = ConnectionCosts {
        idle: idle.iter().flat_map(|pair| costs.each_arm(pair.0, |arm| costs.idle(arm, *pair))).collect(),
        kernel: idle.iter().filter_map(|pair| costs.kernel(*pair)).collect(),
        churn: churn.flat_map(|cell| costs.each_arm(cell, |arm| costs.churn(arm, cell))).collect(),
    };
    (!(found.idle.is_empty() && found.churn.is_empty())).then_some(found)
}

/// The otherwise equal cell with the fewest silent connections; `None` if that is this one.
fn fewest_silent<'a>(spec: &'a StudySpec, cell: &CellSpec) -> Option<&'a CellSpec> {
    let is_its = |other: &&CellSpec| {
        let with = CellSpec { idle_connections: cell.idle_connections, ..(*other).clone() };
        other.load == cell.load
            && other.idle_connections < cell.idle_connections
            && is_same_shape(&with, cell)
    };
    spec.cells.iter().filter(is_its).min_by_key(|other| other.idle_connections)
}

/// The cell with persistent connections.
fn without_churn<'a>(spec: &'a StudySpec, cell: &CellSpec) -> Option<&'a CellSpec> {
    let mut kept = CellSpec { close: false, ..cell.clone() };
    if let Some(http) = &mut kept.http {
        http.close = false;
    }
    spec.cells.iter().find(|other| other.load == cell.load && is_same_shape(other, &kept))
}

struct Costs<'a> {
    spec: &'a StudySpec,
    missing: &'a [MissingArm],
    measured: (&'a ValidityGate, &'a [CellTrials<'a>]),
}

impl Costs<'_> {
    fn each_arm<T>(&self, cell: &CellSpec, of: impl Fn(&str) -> T) -> Vec<T> {
        let is_there = |arm: &str| cell.has_arm(arm) && self.missing.iter().all(|gone| gone.name != arm);
        let arms = self.spec.arms.iter().filter(|arm| is_there(&arm.name));
        arms.map(|arm| of(&arm.name)).collect()
    }

    fn answer(&self, arm: &str, metric: Metric, cell: &CellSpec, base: Option<&CellSpec>) -> Effect {
        let side = |cell: &CellSpec| Side { arm: arm.to_owned(), cell_id: cell.id.clone(), metric };
        let to = base.map(side).into_iter().collect();
        let asked = ComparisonSpec { of: side(cell), to, goal: None, is_threshold: false };
        answers::one(self.spec, self.missing, self.measured, &asked)
    }

    fn idle(&self, arm: &str, (cell, base): (&CellSpec, &CellSpec)) -> IdleCost {
        let cpu = |cell, base| self.answer(arm, Metric::ServerCpuPerMessage, cell, base);
        let ratio = cpu(cell, Some(base));
        let connections = cell.idle_connections - base.idle_connections;
        let each = |metric| per_connection(&self.answer(arm, metric, cell, Some(base)), connections);
        IdleCost {
            arm: arm.to_owned(),
            cell_id: cell.id.clone(),
            cell_id_base: base.id.clone(),
            connections,
            cpu_us: figure(&cpu(cell, None)),
            cpu_us_base: figure(&cpu(base, None)),
            ratio: figure(&ratio),
            is_bound: self.is_bound(arm, cell) || self.is_bound(arm, base),
            private_bytes: each(Metric::ServerMemory),
            proportional_bytes: each(Metric::ServerPss),
            reasons: ratio.reasons,
        }
    }

    /// Every arm of a round has the same figure, so the first is used.
    fn kernel(&self, (cell, base): (&CellSpec, &CellSpec)) -> Option<KernelCost> {
        let first = &self.spec.arms.first()?.name;
        let connections = cell.idle_connections - base.idle_connections;
        let answer = self.answer(first, Metric::KernelMemory, cell, Some(base));
        Some(KernelCost {
            cell_id: cell.id.clone(),
            cell_id_base: base.id.clone(),
            connections,
            bytes: per_connection(&answer, connections)?,
        })
    }

    fn churn(&self, arm: &str, cell: &CellSpec) -> ChurnCost {
        let cpu = |cell, base| self.answer(arm, Metric::ServerCpuPerMessage, cell, base);
        let (own, base) = (cpu(cell, None), without_churn(self.spec, cell));
        ChurnCost {
            arm: arm.to_owned(),
            cell_id: cell.id.clone(),
            per_second: figure(&self.answer(arm, Metric::Throughput, cell, None)),
            cpu_us: figure(&own),
            cell_id_base: base.map(|base| base.id.clone()),
            cpu_us_base: base.and_then(|base| figure(&cpu(base, None))),
            ratio: base.and_then(|base| figure(&cpu(cell, Some(base)))),
            is_bound: self.is_bound(arm, cell),
            is_base_bound: base.is_some_and(|base| self.is_bound(arm, base)),
            reasons: own.reasons,
        }
    }

    /// Whether the generator was the limit.
    fn is_bound(&self, arm: &str, cell: &CellSpec) -> bool {
        let reasons = self.answer(arm, Metric::Throughput, cell, None).reasons;
        reasons.iter().any(|reason| matches!(reason, Finding::LowerBound { .. }))
    }
}

/// An invalid figure is omitted.
fn figure(answer: &Effect) -> Option<Figure> {
    let is_valid = answer.reasons.iter().all(|reason| matches!(reason, Finding::LowerBound { .. }));
    Some(Figure { value: answer.estimate.filter(|_| is_valid)?, interval: answer.interval })
}

fn per_connection(answer: &Effect, connections: u32) -> Option<Figure> {
    let each = |bytes: f64| bytes / f64::from(connections);
    let Figure { value, interval } = figure(answer)?;
    Some(Figure { value: each(value), interval: interval.map(|(low, high)| (each(low), each(high))) })
}

#[cfg(test)]
mod tests {
    use weir_record::{load::LoadReport, trial::TrialRecord, window::ObservedWindow};

    use super::*;
    use crate::{judge, sample};

    /// Messages of a trial.
    const MESSAGES: u64 = 10_000;

    fn trial(cell: &CellSpec, arm: &str, block: u32) -> TrialRecord {
        // Silent connections cost the second arm a tenth more per thousand, and every arm memory.
        let silent = u64::from(cell.idle_connections);
        let each_ns = match (cell.close, arm) {
            (true, _) => 40_000,
            (false, "poll") => 5_000 + silent / 2,
            (false, _) => 5_000,
        };
        let observed = ObservedWindow {
            cpu_ns: MESSAGES * (each_ns + u64::from(block)),
            rss_anon_bytes: 1_000_000 + 512 * silent + 4_096 * u64::from(block % 2),
            pss_bytes: 2_000_000 + 640 * silent,
            kernel_bytes: Some(7_000 * silent),
            ..ObservedWindow::default()
        };
        let load = LoadReport {
            messages: MESSAGES,
            messages_started: MESSAGES,
            throughput_per_second: 20_000.0,
            generator_bound: cell.idle_connections == 0,
            observed: Some(observed),
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

    fn costs(cells: impl Fn(&CellSpec) -> Vec<CellSpec>) -> Option<ConnectionCosts> {
        let mut spec = sample::study(&["epoll", "poll"], 8, 1);
        spec.cells = cells(&spec.cells[0]);
        let of_cell = |cell: &CellSpec| -> Vec<TrialRecord> {
            let arms = ["epoll", "poll"].into_iter();
            arms.flat_map(|arm| (0..8).map(|block| trial(cell, arm, block)).collect::<Vec<_>>()).collect()
        };
        let trials: Vec<TrialRecord> = spec.cells.iter().flat_map(of_cell).collect();
        judge::judged(&spec, &trials).connection_costs
    }

    fn near(figure: Option<Figure>, expected: f64) -> bool {
        figure.is_some_and(|it| (it.value / expected - 1.0).abs() < 0.01 && it.interval.is_some())
    }

    #[test]
    fn silent_connections_are_held_against_the_cell_that_has_fewest_and_is_the_same_in_all_else() {
        let silent = |base: &CellSpec, idle: u32| CellSpec {
            id: format!("i{idle}"),
            idle_connections: idle,
            ..base.clone()
        };
        let more =
            |base: &CellSpec| CellSpec { id: "c200".to_owned(), connections: 200, ..silent(base, 900) };
        let found = costs(|base| vec![base.clone(), silent(base, 1_000), silent(base, 3_000), more(base)]);
        let ConnectionCosts { idle, kernel, churn } = found.expect("there are some");
        let cells: Vec<&str> = idle.iter().map(|cost| cost.cell_id.as_str()).collect();
        assert_eq!(cells, ["i1000", "i1000", "i3000", "i3000"], "nothing is like the other");
        assert!(idle.iter().all(|cost| cost.cell_id_base == "c100-d1-m64-closed" && cost.is_bound));
        let [_, _, epoll, poll] = &idle[..] else { panic!("{idle:?}") };
        assert!(near(epoll.ratio, 1.0) && near(poll.ratio, 1.3), "{:?} {:?}", epoll.ratio, poll.ratio);
        assert!(near(poll.cpu_us, 6.5) && near(poll.cpu_us_base, 5.0));
        assert!(near(epoll.private_bytes, 512.0) && near(epoll.proportional_bytes, 640.0), "{epoll:?}");
        assert!(kernel.len() == 2 && near(Some(kernel[1].bytes), 7_000.0), "{kernel:?}");
        assert!(churn.is_empty());
    }

    #[test]
    fn a_connection_for_each_message_stands_beside_messages_on_connections_that_stay() {
        let close = |base: &CellSpec| CellSpec { id: "close".to_owned(), close: true, ..base.clone() };
        let found = costs(|base| vec![base.clone(), close(base)]).expect("there are some");
        let [epoll, _] = &found.churn[..] else { panic!("{found:?}") };
        assert_eq!(epoll.cell_id_base.as_deref(), Some("c100-d1-m64-closed"));
        assert!(near(epoll.cpu_us, 40.0) && near(epoll.ratio, 8.0) && near(epoll.per_second, 20_000.0));
        let alone = costs(|base| vec![close(base)]).expect("there are some");
        assert_eq!((&alone.churn[0].cell_id_base, alone.churn[0].ratio), (&None, None));
        assert!(costs(|base| vec![base.clone()]).is_none(), "nothing is asked");
    }
}
