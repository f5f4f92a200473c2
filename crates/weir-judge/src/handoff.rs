//! What handing an order to another worker costs by itself, and the answer to the wish that it should cost less. Pure.
//!
//! The cost is a difference within a block: server CPU per order of an arm that hands over, less that of the baseline,
//! which does the same work without. What one way costs over what another costs is the quotient of the means of such
//! differences; there is none where the cost below the line cannot be told from zero.
//!
//! The best way is chosen by its worst share over all loads: one has to be the default. It is judged on the data that
//! chose it, so its intervals are as wide as for all ways that could have been chosen together (Bonferroni).

use std::collections::BTreeMap;

use weir_record::{
    gateway::{
        AnsweredLoad, GatewayFindings, HandoffAnswer, HandoffCost, NamedRun, OversubscribedCell,
        PairedDifference,
    },
    machine::Fingerprint,
    metric::Metric,
    spec::{CellSpec, GatewaySubject, OrdersCell, StudySpec, Subject},
    study::{ArmSummary, PairedRatio},
};
use weir_stats::{
    decide::{ALPHA, estimate},
    quotient::quotient,
};

use crate::{
    cell_trials::CellTrials,
    gate::{Against, Gate, Pair},
    threads::oversubscribed,
};

/// The arm that hands nothing over.
pub const BASELINE: &str = "owner";

/// The document's way: a lock, and a wake for every task.
pub const REFERENCE: &str = "naive";

/// The document's way for the share of orders it handed over.
pub const MODULO: &str = "naive-modulo";

/// The baseline with one worker.
pub const ONE_WORKER: &str = "one-worker";

/// A run of the document: its name, the kind of load and the arm that is its counterpart, and what was published.
pub struct DocumentRun {
    /// Name in the document.
    pub name: &'static str,
    /// Kind of load.
    pub load: &'static str,
    /// Arm that is its counterpart.
    pub arm: &'static str,
    /// Voluntary and involuntary switches a second, of all threads.
    pub context_switches_per_second: Option<f64>,
    /// The same for each order.
    pub context_switches_per_order: Option<f64>,
    /// Orders a second.
    pub orders_per_second: Option<f64>,
    /// Median round trip.
    pub p50_us: Option<f64>,
}

const UNPUBLISHED: DocumentRun = DocumentRun {
    name: "",
    load: "",
    arm: "",
    context_switches_per_second: None,
    context_switches_per_order: None,
    orders_per_second: None,
    p50_us: None,
};

/// What document 001 published, and its source beside it. Switches per order are those of the audit: the document has
/// them per second, at request rates that differ.
pub const DOCUMENT_RUNS: [DocumentRun; 8] = [
    DocumentRun {
        name: "s1",
        load: "closed",
        arm: ONE_WORKER,
        context_switches_per_second: Some(43_729.0),
        context_switches_per_order: Some(2.0),
        p50_us: Some(32.0),
        ..UNPUBLISHED
    },
    DocumentRun {
        name: "s2",
        load: "closed",
        arm: BASELINE,
        context_switches_per_second: Some(43_722.0),
        context_switches_per_order: Some(2.0),
        p50_us: Some(32.1),
        ..UNPUBLISHED
    },
    DocumentRun { name: "s3", load: "closed", arm: REFERENCE, ..UNPUBLISHED },
    DocumentRun {
        name: "s3-modulo",
        load: "closed",
        arm: MODULO,
        context_switches_per_second: Some(59_692.0),
        context_switches_per_order: Some(3.13),
        p50_us: Some(41.1),
        ..UNPUBLISHED
    },
    DocumentRun {
        name: "tps-1w",
        load: "tps",
        arm: ONE_WORKER,
        orders_per_second: Some(69_000.0),
        ..UNPUBLISHED
    },
    DocumentRun {
        name: "tps-2w",
        load: "tps",
        arm: BASELINE,
        orders_per_second: Some(125_000.0),
        ..UNPUBLISHED
    },
    DocumentRun { name: "deep-1w", load: "flood", arm: ONE_WORKER, ..UNPUBLISHED },
    DocumentRun { name: "deep-2w", load: "flood", arm: BASELINE, ..UNPUBLISHED },
];

/// The best way must cost at most this share of the reference.
pub const SHARE_MAX: f64 = 0.5;

/// Everything beside the comparisons; `None` for a study of anything else.
pub(crate) fn find(
    spec: &StudySpec,
    fingerprint: &Fingerprint,
    gate: &Gate,
    cells: &[CellTrials<'_>],
    arms: &[ArmSummary],
) -> Option<GatewayFindings> {
    if !spec.is_orders() {
        return None;
    }
    let costs = costs(spec, gate, cells);
    Some(GatewayFindings {
        runs: runs(spec),
        answers: answers(spec, &costs, arms),
        oversubscribed: oversubscribed_cells(spec, fingerprint),
        costs,
    })
}

fn subject<'s>(spec: &'s StudySpec, arm: &str) -> Option<&'s GatewaySubject> {
    spec.arms.iter().find(|it| it.name == arm).and_then(|it| match &it.subject {
        Subject::Gateway(subject) => Some(subject),
        _ => None,
    })
}

/// Whether the arm does the baseline's work and hands it over.
fn hands_over(subject: &GatewaySubject) -> bool {
    subject.handoff != BASELINE && subject.route != "own" && subject.workers.is_none()
}

/// Whether every order is handed over, and not a share.
fn hands_all_over(subject: &GatewaySubject) -> bool {
    hands_over(subject) && subject.route == "other"
}

fn runs(spec: &StudySpec) -> Vec<NamedRun> {
    let mut found = Vec::new();
    for driver in drivers(spec) {
        for run in &DOCUMENT_RUNS {
            let is_its = |(cell, orders): &(&CellSpec, &OrdersCell)| {
                cell.workers > 1
                    && orders.driver == driver
                    && orders.load == run.load
                    && cell.has_arm(run.arm)
                    && subject(spec, run.arm).is_some()
            };
            let Some((cell, _)) = order_cells(spec).find(is_its) else { continue };
            found.push(NamedRun {
                name: run.name.to_owned(),
                driver: driver.to_owned(),
                cell_id: cell.id.clone(),
                arm: run.arm.to_owned(),
                published_context_switches_per_second: run.context_switches_per_second,
                published_context_switches_per_order: run.context_switches_per_order,
                published_orders_per_second: run.orders_per_second,
                published_p50_us: run.p50_us,
            });
        }
    }
    found
}

fn order_cells(spec: &StudySpec) -> impl Iterator<Item = (&CellSpec, &OrdersCell)> {
    spec.cells.iter().filter_map(|cell| Some((cell, cell.orders.as_ref()?)))
}

/// Drivers in the order of the cells.
fn drivers(spec: &StudySpec) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for (_, orders) in order_cells(spec) {
        if !found.contains(&orders.driver.as_str()) {
            found.push(&orders.driver);
        }
    }
    found
}

fn costs(spec: &StudySpec, gate: &Gate, cells: &[CellTrials<'_>]) -> Vec<HandoffCost> {
    let alpha = ALPHA / choices(spec).count().max(1) as f64;
    let mut found = Vec::new();
    for cell in cells {
        let asked = cell.spec;
        let pairs =
            |arm: &str| gate.pairs(&cell.trials, &spec.arms[0].name, Against::Arm(arm), cell.state).used;
        let reference = by_block(&pairs(REFERENCE), Metric::ServerCpuPerMessage);
        for arm in &spec.arms {
            let is_asked = asked.has_arm(&arm.name) && subject(spec, &arm.name).is_some_and(hands_over);
            let own = if is_asked { pairs(&arm.name) } else { continue };
            let cpu = by_block(&own, Metric::ServerCpuPerMessage);
            let p50_us: BTreeMap<u32, f64> = by_block(&own, Metric::LatencyP50)
                .into_iter()
                .map(|(block, nanoseconds)| (block, nanoseconds / 1_000.0))
                .collect();
            found.push(HandoffCost {
                cell_id: asked.id.clone(),
                arm: arm.name.clone(),
                of_reference: if arm.name == REFERENCE { None } else { share(&cpu, &reference, alpha) },
                cpu_us: difference(&cpu),
                switches: difference(&by_block(&own, Metric::SwitchesPerMessage)),
                p50_us: difference(&p50_us),
            });
        }
    }
    found
}

/// The ways of which the best is chosen.
fn choices(spec: &StudySpec) -> impl Iterator<Item = &str> {
    spec.arms
        .iter()
        .map(|arm| arm.name.as_str())
        .filter(|name| *name != REFERENCE && subject(spec, name).is_some_and(hands_all_over))
}

/// Differences of a figure between the two of a pair, by block.
fn by_block(pairs: &[Pair<'_>], metric: Metric) -> BTreeMap<u32, f64> {
    let figure = metric.row().read;
    let one = |pair: &Pair<'_>| Some((pair.arm.block, figure(pair.arm)? - figure(pair.baseline)?));
    pairs.iter().filter_map(one).filter(|(_, difference)| difference.is_finite()).collect()
}

fn difference(by_block: &BTreeMap<u32, f64>) -> Option<PairedDifference> {
    let values: Vec<f64> = by_block.values().copied().collect();
    let found = estimate(&values)?;
    Some(PairedDifference {
        difference: found.mean,
        interval: Some((found.low, found.high)),
        pairs: count(found.units),
    })
}

/// One cost over the other, with confidence `1 - alpha`; `None` where the other cannot be told from zero.
fn share(own: &BTreeMap<u32, f64>, reference: &BTreeMap<u32, f64>, alpha: f64) -> Option<PairedRatio> {
    let both: Vec<(f64, f64)> =
        own.iter().filter_map(|(block, cost)| Some((*cost, *reference.get(block)?))).collect();
    let found = quotient(&both, alpha)?;
    Some(PairedRatio {
        ratio: found.ratio,
        interval: Some((found.low, found.high)),
        pairs: count(found.pairs),
    })
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn answers(spec: &StudySpec, costs: &[HandoffCost], arms: &[ArmSummary]) -> Vec<HandoffAnswer> {
    drivers(spec).into_iter().filter_map(|driver| answer(spec, driver, costs, arms)).collect()
}

fn answer(
    spec: &StudySpec,
    driver: &str,
    costs: &[HandoffCost],
    arms: &[ArmSummary],
) -> Option<HandoffAnswer> {
    let asked: Vec<(&CellSpec, &OrdersCell)> =
        order_cells(spec).filter(|(cell, orders)| cell.workers > 1 && orders.driver == driver).collect();
    let cost = |cell: &str, arm: &str| costs.iter().find(|it| it.cell_id == cell && it.arm == arm);
    let worst_share = |arm: &str| {
        let shares = asked.iter().filter_map(|(cell, _)| Some(cost(&cell.id, arm)?.of_reference?.ratio));
        shares.reduce(f64::max)
    };
    let (best, _) = choices(spec)
        .filter_map(|arm| Some((arm, worst_share(arm)?)))
        .min_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let wakes = |cell: &str, arm: &str| {
        let summary = arms.iter().find(|it| it.cell_id == cell && it.arm == arm)?;
        Some(summary.orders?.wakes_per_handoff?.median)
    };
    let loads: Vec<AnsweredLoad> = asked
        .iter()
        .filter_map(|(cell, orders)| {
            let (reference, own) = (cost(&cell.id, REFERENCE)?, cost(&cell.id, best)?);
            Some(AnsweredLoad {
                load: orders.load.clone(),
                cell_id: cell.id.clone(),
                reference_us: reference.cpu_us?.difference,
                best_us: own.cpu_us?.difference,
                share: own.of_reference,
                reference_wakes: wakes(&cell.id, REFERENCE),
                best_wakes: wakes(&cell.id, best),
            })
        })
        .collect();
    Some(HandoffAnswer {
        driver: driver.to_owned(),
        reference: REFERENCE.to_owned(),
        best: best.to_owned(),
        is_halved: is_halved(&loads),
        loads,
    })
}

/// Whether every share lies at or below the limit with its whole interval, or one lies above it with its whole one.
fn is_halved(loads: &[AnsweredLoad]) -> Option<bool> {
    let intervals: Vec<Option<(f64, f64)>> =
        loads.iter().map(|load| load.share.and_then(|share| share.interval)).collect();
    if intervals.iter().flatten().any(|(low, _)| *low > SHARE_MAX) {
        return Some(false);
    }
    let all_below = intervals.iter().all(|interval| interval.is_some_and(|(_, high)| high <= SHARE_MAX));
    (all_below && !intervals.is_empty()).then_some(true)
}

/// Cells in which gateway, exchange and generator have more threads than CPUs.
fn oversubscribed_cells(spec: &StudySpec, fingerprint: &Fingerprint) -> Vec<OversubscribedCell> {
    order_cells(spec)
        .filter_map(|(cell, _)| {
            let (threads, cpus) = oversubscribed(spec, cell, fingerprint.cpus_allowed.len())?;
            Some(OversubscribedCell { cell_id: cell.id.clone(), threads, cpus })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use weir_record::{
        gateway::OrderFigures,
        load::{LatencySummary, LoadReport},
        study::Spread,
        trial::{ObservedWindow, TrialRecord},
    };

    use super::*;
    use crate::sample;

    const CELLS: [&str; 3] = ["closed-uring-w2", "paced-uring-w2", "flood-uring-w2"];

    /// Two drivers under four loads, with two workers on two CPUs.
    fn study() -> StudySpec {
        let mut spec = sample::study(&[BASELINE, REFERENCE, "edge", "mesh", MODULO, ONE_WORKER], 6, 7);
        for arm in &mut spec.arms {
            let (handoff, route, workers) = match arm.name.as_str() {
                BASELINE => (BASELINE, "own", None),
                MODULO => (REFERENCE, "modulo", None),
                ONE_WORKER => (BASELINE, "own", Some(1)),
                other => (other, "other", None),
            };
            arm.subject = Subject::Gateway(GatewaySubject {
                handoff: handoff.to_owned(),
                route: route.to_owned(),
                workers,
                ..GatewaySubject::default()
            });
        }
        let cell = |(driver, load): (&str, &str)| CellSpec {
            id: format!("{load}-{driver}-w2"),
            workers: 2,
            orders: Some(OrdersCell {
                driver: driver.to_owned(),
                load: load.to_owned(),
                ..OrdersCell::default()
            }),
            ..spec.cells[0].clone()
        };
        let loads = ["closed", "tps", "paced", "flood"];
        spec.cells =
            ["uring", "epoll"].iter().flat_map(|driver| loads.map(|load| cell((driver, load)))).collect();
        spec
    }

    fn trial(cell: &str, arm: &str, block: u32, cpu_us: f64) -> TrialRecord {
        let load = LoadReport {
            messages: 1_000,
            response: LatencySummary { quantiles: vec![(0.5, 30_000)], ..LatencySummary::default() },
            observed: Some(ObservedWindow {
                cpu_ns: (cpu_us * 1e6) as u64,
                context_switches_voluntary: if arm == BASELINE { 2_000 } else { 3_100 },
                ..ObservedWindow::default()
            }),
            ..LoadReport::default()
        };
        TrialRecord {
            cell_id: cell.to_owned(),
            arm: arm.to_owned(),
            block,
            load: Some(load),
            ..TrialRecord::default()
        }
    }

    /// A machine on which the baseline costs 10 µs, and arms what they are given beyond it, less a little each block.
    fn findings(extra_us: &[(&str, [f64; 3])]) -> GatewayFindings {
        let spec = study();
        let mut trials = Vec::new();
        for (index, cell) in CELLS.into_iter().enumerate() {
            for block in 0..6 {
                let drift = f64::from(block) * 0.5;
                trials.push(trial(cell, BASELINE, block, 10.0 + drift));
                for (arm, extra_us) in extra_us {
                    let wobble = 1.0 + 0.01 * f64::from(block);
                    trials.push(trial(cell, arm, block, 10.0 + drift + extra_us[index] * wobble));
                }
            }
        }
        let gate = Gate::new(&trials);
        let all: Vec<&TrialRecord> = trials.iter().collect();
        let of = |cell: &&CellSpec| CELLS.contains(&cell.id.as_str());
        let cells: Vec<CellTrials<'_>> =
            spec.cells.iter().filter(of).map(|cell| CellTrials::of(cell, &gate, &all)).collect();
        let wakes = Spread { median: 0.05, min: 0.04, max: 0.06 };
        let summary = ArmSummary {
            cell_id: CELLS[2].to_owned(),
            arm: "mesh".to_owned(),
            orders: Some(OrderFigures { wakes_per_handoff: Some(wakes), ..OrderFigures::default() }),
            ..ArmSummary::default()
        };
        find(&spec, &Fingerprint::default(), &gate, &cells, &[summary]).expect("it is a study of orders")
    }

    #[test]
    fn the_cost_of_handing_over_is_what_stands_above_the_baseline_of_the_same_block() {
        let found = findings(&[("naive", [8.0; 3]), ("mesh", [3.0; 3])]);
        let cost = |arm: &str| {
            found.costs.iter().find(|it| it.cell_id == CELLS[0] && it.arm == arm).expect("it is there")
        };
        let naive = cost("naive").cpu_us.expect("it has pairs");
        assert!((naive.difference - 8.2).abs() < 0.01, "the drift cancels: {naive:?}");
        let (low, high) = naive.interval.expect("six pairs have one");
        // Half of t(0.995, 5) = 4.032 standard errors of 0.0611.
        assert!((low - 7.954).abs() < 0.01 && (high - 8.446).abs() < 0.01, "{low} {high}");
        assert!((cost("mesh").of_reference.expect("both cost").ratio - 0.375).abs() < 0.001);
        assert!((cost("mesh").switches.expect("counted").difference - 1.1).abs() < 1e-9);
        assert_eq!(cost("naive").of_reference, None, "it is the reference");
        assert!(found.costs.iter().all(|cost| cost.arm != "one-worker"), "it hands nothing over");
    }

    #[test]
    fn the_best_is_the_one_whose_worst_load_is_best() {
        let found = findings(&[
            ("naive", [8.0, 8.0, 8.0]),
            ("mesh", [3.0, 2.0, 1.0]),
            ("edge", [6.0, 1.0, 0.5]),
            ("naive-modulo", [0.1, 0.1, 0.1]),
        ]);
        let answer = found.answers.iter().find(|answer| answer.driver == "uring").expect("it was measured");
        assert_eq!((answer.best.as_str(), answer.reference.as_str()), ("mesh", "naive"));
        let loads: Vec<&str> = answer.loads.iter().map(|load| load.load.as_str()).collect();
        assert_eq!(loads, ["closed", "paced", "flood"]);
        assert_eq!(answer.is_halved, Some(true));
        assert_eq!((answer.loads[2].best_wakes, answer.loads[2].reference_wakes), (Some(0.05), None));
    }

    #[test]
    fn more_than_half_under_one_load_is_no_and_a_reference_without_a_cost_leaves_it_open() {
        let no = findings(&[("naive", [8.0; 3]), ("mesh", [6.0, 1.0, 1.0])]);
        assert_eq!(no.answers[0].is_halved, Some(false));
        let open = findings(&[("naive", [8.0, 8.0, -0.5]), ("mesh", [1.0, 1.0, 1.0])]);
        assert_eq!((open.answers[0].is_halved, open.answers[0].loads[2].share), (None, None));
        assert!(findings(&[]).answers.is_empty());
    }

    #[test]
    fn two_cores_are_oversubscribed_and_the_runs_of_the_document_are_named() {
        let found = findings(&[]);
        assert_eq!(found.oversubscribed.len(), 8);
        assert_eq!((found.oversubscribed[0].threads, found.oversubscribed[0].cpus), (5, 2));
        let names: Vec<&str> = found.runs.iter().take(8).map(|run| run.name.as_str()).collect();
        assert_eq!(names, ["s1", "s2", "s3", "s3-modulo", "tps-1w", "tps-2w", "deep-1w", "deep-2w"]);
        assert_eq!(found.runs[0].driver, "uring");
        assert_eq!(found.runs[3].published_context_switches_per_order, Some(3.13));
    }
}
