//! Figures of one arm in several cells, by the number of the round or block. Pure.
//!
//! For a cell with n rounds the plan draws each within its own n-th part of the session (`plan`). Two rounds with the
//! same number belong to one stratum if both cells have equally many: there they meet the same slow drift, though not
//! at the same moment, and such cells are compared by their differences within rounds. That is valid whether or not
//! the two rounds are correlated, and narrower if they are. Cells with different numbers of rounds are unpaired: each
//! has its own error over all its rounds, and common drift is not removed.

use std::collections::BTreeMap;

use weir_record::{figure::Figure, metric::Metric, overview::Quantity, trial::TrialRecord};
use weir_stats::decide::{ALPHA, Estimate, Part, of_sum};

use crate::{
    cell_trials::CellTrials,
    gate::ValidityGate,
    obstacle,
    units::{self},
};

/// The number of the cell's rounds, and the number of this one: both equal for two rounds of one stratum.
pub(crate) type Round = (u32, u32);

/// Logarithms of a figure by round, of one cell or of cells with equally many rounds.
pub(crate) type ByRound = BTreeMap<Round, f64>;

/// A sum of means, each with its weight.
pub(crate) type Terms = Vec<(f64, ByRound)>;

/// Microseconds in a second.
const MICROS: f64 = 1e6;

/// One arm's measurements in one cell.
pub(crate) struct Measured<'a> {
    /// By round.
    pub(crate) logs: ByRound,
    /// The trials behind the figures.
    pub(crate) trials: Vec<&'a TrialRecord>,
    /// Whether the generator was the limit.
    pub(crate) is_bound: bool,
}

impl<'a> Measured<'a> {
    /// The arm's figures in the cell's state; `None` if they are invalid or missing.
    pub(crate) fn of(
        gate: &ValidityGate,
        cell: &CellTrials<'a>,
        arm: &str,
        quantity: Quantity,
    ) -> Option<Self> {
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
        let planned = cell.spec.blocks;
        let logs: ByRound =
            found.into_iter().map(|(round, (figure, _))| ((planned, round), log(figure))).collect();
        (is_valid && !logs.is_empty()).then_some(Self { logs, trials, is_bound })
    }
}

impl Measured<'_> {
    /// Shifts the figures so that their mean is the baseline's plus this effect, on the logarithmic scale: then two
    /// figures in a table have the ratio of their pairs, not the ratio of two averages.
    pub(crate) fn set_beside(&mut self, baseline: &ByRound, effect: f64) {
        if let (Some(own), Some(base)) = (mean(&self.logs), mean(baseline)) {
            let shift = base + effect - own;
            self.logs.values_mut().for_each(|log| *log += shift);
        }
    }
}

/// The difference of two: within common rounds, or unpaired if the cells have different numbers of rounds.
pub(crate) fn difference(of: &ByRound, to: &ByRound) -> Terms {
    let planned = |it: &ByRound| it.keys().next().map(|(planned, _)| *planned);
    if planned(of) != planned(to) {
        return vec![(1.0, of.clone()), (-1.0, to.clone())];
    }
    vec![(1.0, of.iter().filter_map(|(round, log)| Some((*round, log - to.get(round)?))).collect())]
}

/// The mean over rounds, with an interval at `alpha`.
pub(crate) fn figure_at(logs: &ByRound, alpha: f64) -> Option<Figure> {
    let interval = estimate_of(&[(1.0, logs)], alpha).map(|it| (it.low.exp(), it.high.exp()));
    Some(Figure { value: mean(logs)?.exp(), interval })
}

/// The geometric mean over cells.
pub(crate) fn mean_over(cells: &[&ByRound]) -> Option<Figure> {
    let weight = 1.0 / cells.len() as f64;
    figure_of(&cells.iter().map(|cell| (weight, *cell)).collect::<Vec<_>>())
}

/// The value of a sum of logarithms; without an interval if a term has a single round.
pub(crate) fn figure_of(terms: &[(f64, &ByRound)]) -> Option<Figure> {
    let mean = sum(terms)?;
    let interval = estimate_of(terms, ALPHA).map(|it| (it.low.exp(), it.high.exp()));
    Some(Figure { value: mean.exp(), interval })
}

/// A sum of means of logarithms. Its error is computed from the rounds: for each, the sum over its cells of the
/// deviations from their means, so that a drift which cells of one stratum share widens the interval correctly, and
/// so does one that lasts for several rounds. Strata of different lengths are independent parts; each has the degrees
/// of freedom of its cell with fewest rounds.
pub(crate) fn estimate_of(terms: &[(f64, &ByRound)], alpha: f64) -> Option<Estimate> {
    let sum = sum(terms)?;
    let mut residuals = ByRound::new();
    let mut degrees: BTreeMap<u32, f64> = BTreeMap::new();
    for (weight, cell) in terms {
        let (own, rounds) = (mean(cell)?, cell.len() as f64);
        let scale = weight / (rounds * (rounds - 1.0)).sqrt();
        for (round, log) in *cell {
            *residuals.entry(*round).or_default() += scale * (log - own);
            let fewest = degrees.entry(round.0).or_insert(f64::INFINITY);
            *fewest = fewest.min(rounds - 1.0);
        }
    }
    let part = |(planned, degrees): (&u32, &f64)| {
        let own = residuals.iter().filter(|((it, _), _)| it == planned).map(|(_, residual)| *residual);
        Part::of_residuals(&own.collect::<Vec<_>>(), *degrees)
    };
    let parts: Vec<Part> = degrees.iter().map(part).collect();
    let units = terms.iter().map(|(_, cell)| cell.len()).min()?;
    of_sum(sum, &parts, units, alpha)
}

fn sum(terms: &[(f64, &ByRound)]) -> Option<f64> {
    let parts: Option<Vec<f64>> =
        terms.iter().map(|(weight, cell)| mean(cell).map(|mean| weight * mean)).collect();
    parts.filter(|parts| !parts.is_empty()).map(|parts| parts.iter().sum())
}

/// References to terms, each with its weight times a common one.
pub(crate) fn weighted(terms: &Terms, weight: f64) -> impl Iterator<Item = (f64, &ByRound)> {
    terms.iter().map(move |(own, cell)| (own * weight, cell))
}

fn mean(logs: &ByRound) -> Option<f64> {
    let mean = logs.values().sum::<f64>() / logs.len() as f64;
    mean.is_finite().then_some(mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cell with all of its planned rounds.
    fn by_round(values: &[f64]) -> ByRound {
        let planned = u32::try_from(values.len()).expect("they are few");
        (0..).zip(values).map(|(round, value)| ((planned, round), value.ln())).collect()
    }

    fn figure(logs: &ByRound) -> Option<Figure> {
        figure_at(logs, ALPHA)
    }

    fn ratio(of: &ByRound, to: &ByRound) -> Option<Figure> {
        figure_of(&weighted(&difference(of, to), 1.0).collect::<Vec<_>>())
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
        let ratio = ratio(&other, &one).expect("they share rounds");
        assert!(width(ratio) < 0.05 * width(alone) && (ratio.value - 4.0).abs() < 0.01, "{ratio:?}");
    }

    #[test]
    fn rounds_that_one_cell_lacks_are_in_no_difference_and_spoil_no_mean() {
        let (one, mut other) = (by_round(&[1.0, 2.0, 4.0, 2.0]), by_round(&[2.0, 4.0, 8.0, 4.0]));
        other.remove(&(4, 2));
        let [(_, shared)] = difference(&other, &one).try_into().expect("they are paired");
        assert_eq!(shared.keys().map(|(_, round)| *round).collect::<Vec<_>>(), [0, 1, 3]);
        assert_eq!(mean_over(&[&one]).map(|it| it.value), figure(&one).map(|it| it.value));
        assert!(mean_over(&[&one, &other]).is_some());
        assert_eq!(mean_over(&[&one, &ByRound::new()]), None);
        let once = by_round(&[3.0]);
        assert_eq!(figure(&once).and_then(|it| it.interval), None, "one round has no interval");
    }

    #[test]
    fn cells_with_different_numbers_of_rounds_keep_their_own_errors() {
        let scattered = |rounds: u32, step: f64| {
            let sign = |round: u32| if round.is_multiple_of(2) { 1.0 } else { -1.0 };
            by_round(&(0..rounds).map(|round| (step * sign(round)).exp()).collect::<Vec<_>>())
        };
        let (long, short, calm) = (scattered(44, 0.01), scattered(6, 0.1), scattered(6, 0.0));
        let mean = mean_over(&[&long, &short, &calm]).expect("there are cells");
        // The six noisier rounds dominate: 4.032 is the quantile of t with five degrees of freedom.
        let error = (0.01_f64.powi(2) / 43.0 + 0.1_f64.powi(2) / 5.0).sqrt() / 3.0;
        assert!((width(mean) / (2.0 * 4.032 * error) - 1.0).abs() < 1e-3, "{mean:?} {error}");
        let unpaired = ratio(&long, &short).expect("there are rounds");
        assert!((width(unpaired) / width(mean) / 3.0 - 1.0).abs() < 1e-9, "the same error: {unpaired:?}");
        assert_eq!(
            difference(&long, &short).len(),
            2,
            "rounds of one number are of unlike parts of the session"
        );
    }
}
