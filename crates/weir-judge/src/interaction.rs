//! Whether the effect of one factor depends on the level of another. Pure.
//!
//! On cells of a map that cross two factors completely, a cell's residual is its mean log-ratio minus the two
//! factors' main effects: a contrast of all these means. Rounds of different cells are independent, so its error
//! combines the cells' own, with degrees of freedom by Welch and Satterthwaite. The largest residual decides: its
//! p-value is corrected for all residuals and for all pairs of factors of the map (Bonferroni), and its interval
//! holds for all of them simultaneously. Further factors are averaged over, if they have all these cells.

use std::collections::{BTreeMap, BTreeSet};

use weir_record::{
    grid::{GridFactor, Interaction},
    spec::CellSpec,
};
use weir_stats::decide::{ALPHA, Estimate, weighted_sum};

use crate::factors::{FACTORS, level};

/// Fewest levels of a factor that can cross another's.
const LEVELS_MIN: usize = 2;

/// Levels of the two factors of a cell.
type Place = (u64, u64);

/// One for each pair of these factors that cells cross completely.
pub(crate) fn all(factors: &[GridFactor], cells: &[(&CellSpec, Estimate)]) -> Vec<Interaction> {
    let others = |(place, one): (usize, &GridFactor)| {
        factors[place + 1..].iter().map(|other| (*one, *other)).collect::<Vec<_>>()
    };
    let pairs: Vec<(GridFactor, GridFactor)> = factors.iter().enumerate().flat_map(others).collect();
    let crossed = |pair: &(GridFactor, GridFactor)| Crossed::of(*pair, cells)?.largest(pairs.len());
    pairs.iter().filter_map(crossed).collect()
}

/// Two factors, crossed completely at every combination of the others.
struct Crossed {
    factors: (GridFactor, GridFactor),
    levels: (Vec<u64>, Vec<u64>),
    tables: Vec<BTreeMap<Place, Estimate>>,
}

impl Crossed {
    fn of(factors: (GridFactor, GridFactor), cells: &[(&CellSpec, Estimate)]) -> Option<Self> {
        let mut tables: BTreeMap<Vec<u64>, BTreeMap<Place, Estimate>> = BTreeMap::new();
        for (cell, effect) in cells {
            let others = FACTORS.into_iter().filter(|it| ![factors.0, factors.1].contains(it));
            let rest: Vec<u64> = others.map(|it| level(cell, it)).collect();
            let place = (level(cell, factors.0), level(cell, factors.1));
            tables.entry(rest).or_default().insert(place, *effect);
        }
        let fullest = tables.values().max_by_key(|table| table.len())?;
        let levels = rectangle(&fullest.keys().copied().collect())?;
        let places = || levels.0.iter().flat_map(|one| levels.1.iter().map(move |other| (*one, *other)));
        let is_whole = |table: &BTreeMap<Place, Estimate>| places().all(|place| table.contains_key(&place));
        let tables = tables.into_values().filter(is_whole).collect();
        Some(Self { factors, levels, tables })
    }

    /// The residual with the smallest p-value.
    fn largest(&self, pairs: usize) -> Option<Interaction> {
        let (rows, columns) = (self.levels.0.len(), self.levels.1.len());
        // With two levels of a factor the residuals of one equal those of the other with the opposite sign.
        let free = |levels: usize| if levels == LEVELS_MIN { 1 } else { levels };
        let corrected_for = (free(rows) * free(columns) * pairs) as f64;
        let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        let residuals =
            places.filter_map(|place| Some((place, self.residual(place, ALPHA / corrected_for)?)));
        let ((row, column), found) = residuals.min_by(|(_, one), (_, other)| {
            one.p_value.total_cmp(&other.p_value).then(other.mean.abs().total_cmp(&one.mean.abs()))
        })?;
        Some(Interaction {
            factors: self.factors,
            levels: (self.levels.0[row], self.levels.1[column]),
            ratio: found.mean.exp(),
            interval: (found.low.exp(), found.high.exp()),
            p_value: (found.p_value * corrected_for).min(1.0),
            cells: u32::try_from(rows * columns * self.tables.len()).unwrap_or(u32::MAX),
        })
    }

    /// The effect of a cell minus those of its row and column.
    fn residual(&self, (row, column): (usize, usize), alpha: f64) -> Option<Estimate> {
        let (rows, columns) = (&self.levels.0, &self.levels.1);
        let share =
            |own: usize, other: usize, count: usize| f64::from(u8::from(own == other)) - 1.0 / count as f64;
        let mut terms = Vec::new();
        for (down, one) in rows.iter().enumerate() {
            for (across, other) in columns.iter().enumerate() {
                let weight = share(row, down, rows.len()) * share(column, across, columns.len())
                    / self.tables.len() as f64;
                for table in &self.tables {
                    terms.push((weight, *table.get(&(*one, *other))?));
                }
            }
        }
        weighted_sum(terms, alpha)
    }
}

/// Levels that cross completely: while a combination is missing, the level with most gaps is removed. `None` if too
/// few are left.
fn rectangle(there: &BTreeSet<Place>) -> Option<(Vec<u64>, Vec<u64>)> {
    let mut rows: BTreeSet<u64> = there.iter().map(|place| place.0).collect();
    let mut columns: BTreeSet<u64> = there.iter().map(|place| place.1).collect();
    loop {
        let gaps_of_row = |row: &u64| columns.iter().filter(|it| !there.contains(&(*row, **it))).count();
        let gaps_of_column =
            |column: &u64| rows.iter().filter(|it| !there.contains(&(**it, *column))).count();
        let row = rows.iter().copied().max_by_key(gaps_of_row)?;
        let column = columns.iter().copied().max_by_key(gaps_of_column)?;
        let (in_row, in_column) = (gaps_of_row(&row), gaps_of_column(&column));
        if in_row == 0 && in_column == 0 {
            break;
        }
        // Shares of a complete level.
        if in_row * rows.len() >= in_column * columns.len() {
            rows.remove(&row);
        } else {
            columns.remove(&column);
        }
    }
    let is_enough = rows.len() >= LEVELS_MIN && columns.len() >= LEVELS_MIN;
    is_enough.then(|| (rows.into_iter().collect(), columns.into_iter().collect()))
}

#[cfg(test)]
mod tests {
    use weir_stats::decide::estimate;

    use super::*;
    use crate::sample;

    const BOTH: [GridFactor; 2] = [GridFactor::Connections, GridFactor::Workers];

    /// Cells of all combinations, each with rounds that scatter a little around its effect.
    fn found(
        connections: &[u32],
        workers: &[u32],
        depths: &[u32],
        effect: impl Fn(&CellSpec) -> Option<f64>,
    ) -> Vec<Interaction> {
        let shape = sample::study(&["epoll"], 1, 1).cells.remove(0);
        let mut cells = Vec::new();
        for connections in connections {
            for workers in workers {
                for depth in depths {
                    let (connections, workers, depth) = (*connections, *workers, *depth);
                    cells.push(CellSpec { connections, workers, depth, ..shape.clone() });
                }
            }
        }
        let rounds = |mean: f64| [-0.02, 0.015, 0.01, -0.01, 0.02, -0.015].map(|it| mean + it);
        let cells = cells.iter().filter_map(|cell| Some((cell, estimate(&rounds(effect(cell)?))?)));
        all(&BOTH, &cells.collect::<Vec<_>>())
    }

    #[test]
    fn effects_that_only_add_up_are_no_interaction() {
        let additive =
            |cell: &CellSpec| Some(0.1 * f64::from(cell.connections).ln() - 0.2 * f64::from(cell.workers));
        let [one] = &found(&[1, 10, 100], &[1, 2], &[1], additive)[..] else { panic!("one pair") };
        assert!((one.ratio - 1.0).abs() < 1e-9 && one.p_value == 1.0, "{one:?}");
        assert_eq!((one.factors, one.cells), ((BOTH[0], BOTH[1]), 6));
    }

    #[test]
    fn a_cell_that_has_more_than_its_factors_is_named_with_what_it_has() {
        let odd =
            |cell: &CellSpec| Some(if (cell.connections, cell.workers) == (100, 2) { 0.6 } else { 0.0 });
        let [one] = &found(&[1, 10, 100], &[1, 2], &[1], odd)[..] else { panic!("one pair") };
        // 0.6 - 0.3 - 0.2 + 0.1.
        assert!((one.ratio.ln() - 0.2).abs() < 1e-9 || (one.ratio.ln() + 0.2).abs() < 1e-9, "{one:?}");
        assert!(one.levels.0 == 100 && one.p_value < 0.001, "{one:?}");
        let (low, high) = one.interval;
        assert!(low < one.ratio && one.ratio < high && (low > 1.0 || high < 1.0), "{one:?}");
    }

    #[test]
    fn what_crosses_completely_is_taken_and_the_rest_left_out() {
        let holed = |cell: &CellSpec| (cell.connections < 100 || cell.workers > 1).then_some(0.0);
        let [one] = &found(&[1, 10, 100], &[1, 2, 4], &[1], holed)[..] else { panic!("one pair") };
        assert_eq!(one.cells, 6, "two numbers of connections, or of workers");
        assert!(found(&[1, 10], &[1, 2], &[1], |cell| (cell.workers == 1).then_some(0.0)).is_empty());
        let [both] = &found(&[1, 10], &[1, 2], &[1, 16], |_| Some(0.0))[..] else { panic!("one pair") };
        assert_eq!(both.cells, 8, "over both depths");
        let partly = |cell: &CellSpec| (cell.depth == 1 || cell.connections == 1).then_some(0.0);
        let [one] = &found(&[1, 10], &[1, 2], &[1, 16], partly)[..] else { panic!("one pair") };
        assert_eq!(one.cells, 4, "a depth that lacks cells is left out");
    }
}
