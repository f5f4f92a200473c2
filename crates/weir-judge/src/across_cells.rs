//! Figures of one arm in several cells, by the number of their round or block. Pure.
//!
//! The plan draws the n-th round of every cell within the n-th part of the session (`plan`): two rounds of one number
//! belong to one stratum of the design and meet the same slow drift, though not the same moment. A comparison of cells
//! is made of their differences within rounds, and its interval counts rounds. It is right whether or not the two
//! rounds have anything in common, and narrower where they have. Comparisons that a study asks for by itself may be of
//! cells with different numbers of rounds, and are unpaired (`answers`).

use std::collections::BTreeMap;

use weir_record::{
    metric::Metric,
    overview::{Figure, Quantity},
    trial::TrialRecord,
};
use weir_stats::decide::{ALPHA, estimate, estimate_at};

use crate::{
    cell_trials::CellTrials,
    gate::Gate,
    obstacle,
    units::{self},
};

/// Logarithms of a figure by the number of the round.
pub(crate) type ByRound = BTreeMap<u32, f64>;

/// Microseconds in a second.
const MICROS: f64 = 1e6;

/// What one arm does in one cell.
pub(crate) struct Measured<'a> {
    /// By round.
    pub(crate) logs: ByRound,
    /// The trials that the figures are of.
    pub(crate) trials: Vec<&'a TrialRecord>,
    /// Whether the generator was the limit.
    pub(crate) is_bound: bool,
}

impl<'a> Measured<'a> {
    /// The arm's figures in the cell's state; `None` where something makes them invalid, or there are none.
    pub(crate) fn of(gate: &Gate, cell: &CellTrials<'a>, arm: &str, quantity: Quantity) -> Option<Self> {
        let metric = match quantity {
            Quantity::Throughput => Metric::Throughput,
            Quantity::PerCpuSecond => Metric::ServerCpuPerMessage,
        };
        let found = units::alone(gate, cell, arm, metric.row());
        let trials: Vec<&TrialRecord> = found.values().map(|(_, trial)| *trial).collect();
        let is_valid = obstacle::of_side(cell, arm, metric.row(), &trials).is_empty();
        let log = |figure: f64| match quantity {
            Quantity::Throughput => figure,
            Quantity::PerCpuSecond => MICROS.ln() - figure,
        };
        let is_bound = obstacle::generator_bound(cell.spec, arm, &trials).is_some();
        let logs: ByRound = found.into_iter().map(|(round, (figure, _))| (round, log(figure))).collect();
        (is_valid && !logs.is_empty()).then_some(Self { logs, trials, is_bound })
    }
}

/// One less the other, in the rounds that both have.
pub(crate) fn differences(of: &ByRound, to: &ByRound) -> ByRound {
    of.iter().filter_map(|(round, log)| Some((*round, log - to.get(round)?))).collect()
}

/// The mean over rounds, with an interval at `alpha`.
pub(crate) fn figure_at(logs: &ByRound, alpha: f64) -> Option<Figure> {
    let values: Vec<f64> = logs.values().copied().collect();
    let mean = mean(&values)?;
    let interval = estimate_at(&values, alpha).map(|it| (it.low.exp(), it.high.exp()));
    Some(Figure { value: mean.exp(), interval })
}

/// The geometric mean over cells. Its error is that of the rounds: of each what its cells have more or less than their
/// own means, so that a drift which all cells share widens the interval as it should.
pub(crate) fn mean_over(cells: &[&ByRound]) -> Option<Figure> {
    let means: Option<Vec<f64>> =
        cells.iter().map(|cell| mean(&cell.values().copied().collect::<Vec<_>>())).collect();
    let means = means?;
    let overall = mean(&means)?;
    let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (cell, own) in cells.iter().zip(&means) {
        for (round, log) in *cell {
            rounds.entry(*round).or_default().push(log - own);
        }
    }
    let residuals: Vec<f64> = rounds.values().filter_map(|own| mean(own)).collect();
    let half = estimate(&residuals).map(|it| it.high - it.mean);
    Some(Figure {
        value: overall.exp(),
        interval: half.map(|half| ((overall - half).exp(), (overall + half).exp())),
    })
}

/// The mean over rounds as every estimate has it.
pub(crate) fn figure(logs: &ByRound) -> Option<Figure> {
    figure_at(logs, ALPHA)
}

fn mean(values: &[f64]) -> Option<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    mean.is_finite().then_some(mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_round(values: &[f64]) -> ByRound {
        (0..).zip(values.iter().map(|value| value.ln())).collect()
    }

    fn width(figure: Figure) -> f64 {
        figure.interval.map(|(low, high)| (high / low).ln()).expect("there are rounds")
    }

    #[test]
    fn a_drift_that_cells_share_widens_their_mean_and_not_their_difference() {
        let drift: Vec<f64> = (0..20).map(|round| 1.0 + 0.02 * f64::from(round)).collect();
        let noise = |round: u32, seed: u32| 1.0 + 0.001 * f64::from(round * seed % 7);
        let cell = |level: f64, seed: u32| {
            by_round(
                &(0..20).zip(&drift).map(|(round, it)| level * it * noise(round, seed)).collect::<Vec<_>>(),
            )
        };
        let (one, other) = (cell(100.0, 3), cell(400.0, 5));
        let both = mean_over(&[&one, &other]).expect("there are cells");
        assert!((both.value / (200.0 * 1.19) - 1.0).abs() < 0.02, "{both:?}");
        let alone = figure(&one).expect("there are rounds");
        assert!(
            (width(both) / width(alone) - 1.0).abs() < 0.05,
            "no narrower than one cell: {both:?} {alone:?}"
        );
        let ratio = figure(&differences(&other, &one)).expect("they share rounds");
        assert!(width(ratio) < 0.05 * width(alone) && (ratio.value - 4.0).abs() < 0.01, "{ratio:?}");
    }

    #[test]
    fn rounds_that_one_cell_lacks_are_in_no_difference_and_spoil_no_mean() {
        let (one, mut other) = (by_round(&[1.0, 2.0, 4.0, 2.0]), by_round(&[2.0, 4.0, 8.0, 4.0]));
        other.remove(&2);
        assert_eq!(differences(&other, &one).keys().copied().collect::<Vec<_>>(), [0, 1, 3]);
        assert_eq!(mean_over(&[&one]).map(|it| it.value), figure(&one).map(|it| it.value));
        assert!(mean_over(&[&one, &other]).is_some());
        assert_eq!(mean_over(&[&one, &ByRound::new()]), None);
        let once = by_round(&[3.0]);
        assert_eq!(figure(&once).and_then(|it| it.interval), None, "one round has no interval");
    }
}
