//! What arms cost beyond the baseline by themselves, and whether the least costly stays within its share of a
//! reference's cost. Pure.
//!
//! The cost is a difference within a block: a figure of the arm less that of the baseline, which does the same work
//! without what the arm adds. What one arm costs over what another costs is the quotient of the means of such
//! differences; there is none where the cost below the line cannot be told from zero.
//!
//! The least costly arm is chosen by its worst share over all cells: one has to be the default. It is judged on the
//! data that chose it, so its intervals are as wide as for all arms that could have been chosen together (Bonferroni).

use std::collections::BTreeMap;

use weir_record::{
    added_cost::{AddedCost, AddedCostSpec, AddedCosts, LeastCost},
    figure::{PairedDifference, PairedRatio},
    goal::{Goal, Outcome},
    metric::Metric,
    spec::StudySpec,
};
use weir_stats::{
    decide::{ALPHA, estimate},
    quotient::quotient,
};

use crate::{
    cell_trials::CellTrials,
    gate::{Against, Pair, ValidityGate},
};

/// What came of each question of the specification, in its order.
pub(crate) fn all(spec: &StudySpec, gate: &ValidityGate, cells: &[CellTrials<'_>]) -> Vec<AddedCosts> {
    let Some(baseline) = spec.arms.first() else { return Vec::new() };
    spec.added_costs.iter().map(|asked| answer(&baseline.name, asked, gate, cells)).collect()
}

fn answer(
    baseline: &str,
    asked: &AddedCostSpec,
    gate: &ValidityGate,
    cells: &[CellTrials<'_>],
) -> AddedCosts {
    let own: Vec<&CellTrials<'_>> = cells.iter().filter(|cell| asked.cells.contains(&cell.spec.id)).collect();
    let runs = |arm: &&str| own.iter().any(|cell| cell.spec.has_arm(arm));
    let candidates: Vec<&str> =
        asked.arms.iter().map(String::as_str).filter(|arm| *arm != asked.reference).filter(runs).collect();
    let alpha = ALPHA / candidates.len().max(1) as f64;
    let costs: Vec<AddedCost> =
        own.iter().flat_map(|cell| costs(baseline, asked, gate, cell, alpha)).collect();
    let least = asked.share_max.and_then(|limit| least(&candidates, &costs, limit));
    AddedCosts { asked: asked.clone(), costs, least }
}

fn costs(
    baseline: &str,
    asked: &AddedCostSpec,
    gate: &ValidityGate,
    cell: &CellTrials<'_>,
    alpha: f64,
) -> Vec<AddedCost> {
    let pairs = |arm: &str| gate.pairs(&cell.trials, baseline, Against::Arm(arm), cell.state).used;
    let first = |pairs: &[Pair<'_>]| asked.metrics.first().map(|metric| by_block(pairs, *metric));
    let reference = first(&pairs(&asked.reference)).unwrap_or_default();
    let one = |arm: &String| {
        let own = pairs(arm);
        let share = first(&own).filter(|_| *arm != asked.reference);
        AddedCost {
            cell_id: cell.spec.id.clone(),
            arm: arm.clone(),
            added: asked
                .metrics
                .iter()
                .filter_map(|metric| Some((*metric, difference(&by_block(&own, *metric))?)))
                .collect(),
            share: share.and_then(|cost| share_of(&cost, &reference, alpha)),
        }
    };
    asked.arms.iter().filter(|arm| cell.spec.has_arm(arm)).map(one).collect()
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
fn share_of(own: &BTreeMap<u32, f64>, reference: &BTreeMap<u32, f64>, alpha: f64) -> Option<PairedRatio> {
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

/// The arm whose worst share is the smallest, and whether it is within the limit everywhere.
fn least(candidates: &[&str], costs: &[AddedCost], limit: f64) -> Option<LeastCost> {
    let of_arm = |arm: &str| -> Vec<&AddedCost> { costs.iter().filter(|cost| cost.arm == arm).collect() };
    let worst = |arm: &str| of_arm(arm).iter().filter_map(|cost| Some(cost.share?.ratio)).reduce(f64::max);
    let (arm, _) = candidates
        .iter()
        .filter_map(|arm| Some((*arm, worst(arm)?)))
        .min_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let limit = Goal::AtMost(limit);
    let outcome = |cost: &AddedCost| {
        let interval = cost.share.and_then(|share| share.interval);
        interval.map_or(Outcome::Open, |interval| limit.outcome(interval))
    };
    let outcomes: Vec<Outcome> = of_arm(arm).into_iter().map(outcome).collect();
    let outcome = match () {
        () if outcomes.contains(&Outcome::Missed) => Outcome::Missed,
        () if outcomes.contains(&Outcome::Open) => Outcome::Open,
        () => Outcome::Met,
    };
    Some(LeastCost { arm: arm.to_owned(), arms: count(candidates.len()), outcome })
}

#[cfg(test)]
mod tests {
    use weir_record::{spec::CellSpec, trial::TrialRecord};

    use super::*;
    use crate::sample;

    const CELLS: [&str; 3] = ["one", "paced", "flood"];

    /// Three cells; what `share` costs is looked at beside, and is no candidate.
    fn study() -> StudySpec {
        let mut spec = sample::study(&["plain", "naive", "edge", "mesh", "share"], 6, 7);
        let cell = |id: &str| CellSpec { id: id.to_owned(), ..spec.cells[0].clone() };
        spec.cells = CELLS.map(cell).to_vec();
        let asked = |arms: &[&str], share_max: Option<f64>| AddedCostSpec {
            group: String::new(),
            cells: CELLS.map(str::to_owned).to_vec(),
            arms: arms.iter().map(|arm| (*arm).to_owned()).collect(),
            reference: "naive".to_owned(),
            metrics: vec![Metric::ServerCpuPerMessage, Metric::SwitchesPerMessage],
            share_max,
        };
        spec.added_costs = vec![asked(&["naive", "edge", "mesh"], Some(0.5)), asked(&["share"], None)];
        spec
    }

    fn trial(cell: &str, arm: &str, block: u32, cpu_us: f64) -> TrialRecord {
        let mut trial = sample::trial(cell, arm, block, cpu_us);
        let load = trial.load.get_or_insert_default();
        load.response.quantiles = vec![(0.5, 30_000)];
        let switches = if arm == "plain" { 2_000 } else { 3_100 };
        load.observed.get_or_insert_default().context_switches_voluntary = switches;
        trial
    }

    /// A machine on which the baseline costs 10 µs, and arms what they are given beyond it, a little more each block.
    fn found(extra_us: &[(&str, [f64; 3])]) -> Vec<AddedCosts> {
        let spec = study();
        let mut trials = Vec::new();
        for (index, cell) in CELLS.into_iter().enumerate() {
            for block in 0..6 {
                let drift = f64::from(block) * 0.5;
                trials.push(trial(cell, "plain", block, 10.0 + drift));
                for (arm, extra_us) in extra_us {
                    let wobble = 1.0 + 0.01 * f64::from(block);
                    trials.push(trial(cell, arm, block, 10.0 + drift + extra_us[index] * wobble));
                }
            }
        }
        let gate = ValidityGate::new(&trials);
        let trials: Vec<&TrialRecord> = trials.iter().collect();
        let cells: Vec<CellTrials<'_>> =
            spec.cells.iter().map(|cell| CellTrials::of(cell, &gate, &trials)).collect();
        all(&spec, &gate, &cells)
    }

    fn least(found: &[AddedCosts]) -> (&str, Outcome) {
        found[0].least.as_ref().map(|it| (it.arm.as_str(), it.outcome)).expect("there are shares")
    }

    #[test]
    fn the_cost_is_what_stands_above_the_baseline_of_the_same_block() {
        let found = found(&[("naive", [8.0; 3]), ("mesh", [3.0; 3])]);
        let cost = |arm: &str| found[0].cost(CELLS[0], arm).expect("it is there");
        let naive = cost("naive").of(Metric::ServerCpuPerMessage).expect("it has pairs");
        assert!((naive.difference - 8.2).abs() < 0.01, "the drift cancels: {naive:?}");
        let (low, high) = naive.interval.expect("six pairs have one");
        // Half of t(0.995, 5) = 4.032 standard errors of 0.0611.
        assert!((low - 7.954).abs() < 0.01 && (high - 8.446).abs() < 0.01, "{low} {high}");
        assert!((cost("mesh").share.expect("both cost").ratio - 0.375).abs() < 0.001);
        let switches = cost("mesh").of(Metric::SwitchesPerMessage).expect("they were counted");
        assert!((switches.difference - 1.1).abs() < 1e-9);
        assert_eq!(cost("naive").share, None, "it is the reference");
        assert_eq!((cost("edge").added.len(), cost("edge").share), (0, None), "it was not run");
    }

    #[test]
    fn the_least_is_the_one_whose_worst_cell_is_best_among_those_that_are_asked() {
        let found = found(&[
            ("naive", [8.0, 8.0, 8.0]),
            ("mesh", [3.0, 2.0, 1.0]),
            ("edge", [6.0, 1.0, 0.5]),
            ("share", [0.1, 0.1, 0.1]),
        ]);
        assert_eq!(least(&found), ("mesh", Outcome::Met));
        assert_eq!(found[0].least.as_ref().map(|it| it.arms), Some(2));
        assert!(found[1].least.is_none() && found[1].costs.len() == 3, "no limit was asked for");
    }

    #[test]
    fn one_cell_beyond_the_limit_misses_it_and_a_reference_without_a_cost_leaves_it_open() {
        let missed = found(&[("naive", [8.0; 3]), ("mesh", [6.0, 1.0, 1.0])]);
        assert_eq!(least(&missed).1, Outcome::Missed);
        let open = found(&[("naive", [8.0, 8.0, -0.5]), ("mesh", [1.0, 1.0, 1.0])]);
        assert_eq!(least(&open).1, Outcome::Open);
        assert_eq!(open[0].cost(CELLS[2], "mesh").and_then(|cost| cost.share), None);
        assert!(found(&[])[0].least.is_none());
    }
}
