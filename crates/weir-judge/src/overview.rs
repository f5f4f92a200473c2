//! The tables of a map: arms over all cells, by connections, by workers, their best cells, and failures. Pure.
//!
//! Means are geometric: for cells that differ by orders of magnitude an arithmetic mean would be dominated by the
//! largest. The cells of a table are the same at every level and for every arm: those in which every measured arm has
//! both figures. An arm's figure in a cell is the baseline's times their paired effect, so that two figures of a
//! table have the ratio of their pairs. Ratios are those of the map (`grid`), within rounds and over the cells in
//! which arm and baseline are comparable; cells known to contradict their mean are named with it.

use std::collections::{BTreeMap, BTreeSet};

use weir_record::{
    effect::Effects,
    failure::FailureCounts,
    figure::Figure,
    grid::{Difference, Grid, GridFactor},
    metric::Metric,
    overview::{BestCell, MeanRatio, MeanRow, Overview, Quantity, SuccessRow},
    spec::CellSpec,
    trial::TrialRecord,
};
use weir_stats::{
    decide::{self, ALPHA, Estimate, estimate},
    proportion,
};

use crate::{
    across_cells::{ByRound, Measured, difference, estimate_of, figure_at, mean_over, weighted},
    exclusion,
    factors::{self, FACTORS},
    gate::TrialState,
    grid,
    scaling::{self, Scope},
};

/// One for each measured map.
pub(crate) fn all(scope: &Scope<'_>, effects: &Effects, grids: &[Grid]) -> Vec<Overview> {
    let of = |(map, group): (u32, &grid::Group<'_>)| {
        let found = Map::of(scope, &group.cells, effects, grids).overview()?;
        Some(Overview { map, ..found })
    };
    (0..).zip(&grid::groups(scope.spec)).filter_map(of).collect()
}

/// The paired effect of an arm on a quantity in a cell, as a logarithm.
fn paired(
    effects: &Effects,
    (cell_id, arm, baseline): (&str, &str, &str),
    quantity: Quantity,
) -> Option<f64> {
    let (metric, sign) = match quantity {
        Quantity::Throughput => (Metric::Throughput, 1.0),
        Quantity::PerCpuSecond => (Metric::ServerCpuPerMessage, -1.0),
    };
    let ratio = effects.comparison(cell_id, (arm, baseline), metric)?.estimate?;
    Some(sign * ratio.ln()).filter(|log| log.is_finite())
}

/// A map with the figures of its cells.
struct Map<'a> {
    scope: &'a Scope<'a>,
    cells: &'a [&'a CellSpec],
    effects: &'a Effects,
    grids: Vec<&'a Grid>,
    /// Arms with figures in some cell.
    arms: Vec<&'a str>,
    figures: BTreeMap<(&'a str, &'a str, Quantity), Measured<'a>>,
}

impl<'a> Map<'a> {
    fn of(scope: &'a Scope<'a>, cells: &'a [&'a CellSpec], effects: &'a Effects, grids: &'a [Grid]) -> Self {
        let mut figures = BTreeMap::new();
        for cell in cells {
            let Some(trials) = scope.cell(&cell.id) else { continue };
            for arm in &scope.spec.arms {
                for quantity in Quantity::ALL {
                    if let Some(found) = Measured::of(scope.gate, trials, &arm.name, quantity) {
                        figures.insert((cell.id.as_str(), arm.name.as_str(), quantity), found);
                    }
                }
            }
        }
        for arm in scope.spec.arms.iter().skip(1) {
            for (cell, quantity) in cells.iter().flat_map(|cell| Quantity::ALL.map(|of| (cell, of))) {
                let key = |arm: &'a str| (cell.id.as_str(), arm, quantity);
                let first: &str = &scope.spec.arms[0].name;
                let Some(effect) = paired(effects, (&cell.id, &arm.name, first), quantity) else {
                    continue;
                };
                let Some(baseline) = figures.get(&key(first)).map(|it: &Measured<'_>| it.logs.clone()) else {
                    continue;
                };
                if let Some(own) = figures.get_mut(&key(&arm.name)) {
                    own.set_beside(&baseline, effect);
                }
            }
        }
        let has_figures = |arm: &&str| figures.keys().any(|(_, own, _)| own == arm);
        let arms = scope.spec.arms.iter().map(|arm| arm.name.as_str()).filter(has_figures).collect();
        let is_own =
            |grid: &&Grid| grid.cells.iter().any(|own| cells.iter().any(|cell| cell.id == own.cell_id));
        Self { scope, cells, effects, grids: grids.iter().filter(is_own).collect(), arms, figures }
    }

    fn overview(&self) -> Option<Overview> {
        let (scaling, scaling_lines) = scaling::all(self.scope, self.cells);
        let found = Overview {
            map: 0,
            cells: self.cells.iter().map(|cell| cell.id.clone()).collect(),
            cells_far: self.compared_in(Some(TrialState::Far)),
            cells_in_both_states: self.compared_in(None),
            overall: self.rows(None),
            by_connections: self.rows(Some(GridFactor::Connections)),
            by_workers: self.rows(Some(GridFactor::Workers)),
            by_server_cpus: self.rows(Some(GridFactor::ServerCpus)),
            best: self.best(|_| true),
            best_by_workers: self.best_by_workers(),
            success: self.success(),
            scaling,
            scaling_lines,
        };
        (!found.success.is_empty()).then_some(found)
    }

    /// On a machine with two states, the cells that are compared in this one.
    fn compared_in(&self, state: Option<TrialState>) -> Vec<String> {
        let is_it = |id: &str| self.scope.cell(id).is_some_and(|cell| cell.state == state);
        let own = self.cells.iter().filter(|cell| self.scope.gate.has_two_states() && is_it(&cell.id));
        own.map(|cell| cell.id.clone()).collect()
    }

    /// Arms at every level of a factor, or over all cells.
    fn rows(&self, factor: Option<GridFactor>) -> Vec<MeanRow> {
        let rest = |cell: &CellSpec| -> Vec<u64> {
            FACTORS.into_iter().filter(|it| Some(*it) != factor).map(|it| factors::level(cell, it)).collect()
        };
        let mut levels: BTreeMap<Option<u64>, BTreeMap<Vec<u64>, &str>> = BTreeMap::new();
        let is_asked = |cell: &CellSpec| factor == Some(GridFactor::ServerCpus) || self.has_all_cpus(cell);
        for cell in self.cells.iter().filter(|cell| self.is_whole(cell) && is_asked(cell)) {
            let level = factor.map(|factor| factors::level(cell, factor));
            levels.entry(level).or_default().insert(rest(cell), &cell.id);
        }
        let shared: BTreeSet<Vec<u64>> = levels
            .values()
            .map(|cells| cells.keys().cloned().collect::<BTreeSet<_>>())
            .reduce(|one, other| one.intersection(&other).cloned().collect())
            .unwrap_or_default();
        if shared.is_empty() || (factor.is_some() && levels.len() < 2) {
            return Vec::new();
        }
        let mut rows = Vec::new();
        for (level, cells) in &levels {
            let own: Vec<&str> =
                cells.iter().filter(|(rest, _)| shared.contains(*rest)).map(|(_, id)| *id).collect();
            rows.extend(self.arms.iter().map(|arm| self.row((factor, *level), arm, &own)));
        }
        rows
    }

    /// Whether the server's side has the map's largest number of CPUs: cells with fewer are only in the table by
    /// CPUs.
    fn has_all_cpus(&self, cell: &CellSpec) -> bool {
        self.cells.iter().all(|other| other.server_cpus.len() <= cell.server_cpus.len())
    }

    /// Whether every arm has both figures.
    fn is_whole(&self, cell: &CellSpec) -> bool {
        let has = |arm: &&str| {
            Quantity::ALL
                .iter()
                .all(|quantity| self.figures.contains_key(&(cell.id.as_str(), *arm, *quantity)))
        };
        self.arms.iter().all(has)
    }

    fn row(&self, (factor, level): (Option<GridFactor>, Option<u64>), arm: &str, cells: &[&str]) -> MeanRow {
        let of = |quantity: Quantity| -> Vec<&Measured<'_>> {
            cells.iter().filter_map(|cell| self.figures.get(&(*cell, arm, quantity))).collect()
        };
        let mean =
            |quantity: Quantity| mean_over(&of(quantity).iter().map(|it| &it.logs).collect::<Vec<_>>());
        let throughput = mean(Quantity::Throughput);
        // The geometric mean over cells of throughput per CPU, like the mean itself.
        let cpus = self.server_cpus(cells);
        let each = |it: Figure| Figure {
            value: it.value / cpus,
            interval: it.interval.map(|(low, high)| (low / cpus, high / cpus)),
        };
        let bound = of(Quantity::Throughput).iter().filter(|it| it.is_bound).count();
        let ratio = |metric: Metric| match factor.zip(level) {
            Some((factor, level)) => self.ratio_at(arm, metric, factor, level),
            None => self.ratio_over_all(arm, metric),
        };
        MeanRow {
            level,
            arm: arm.to_owned(),
            cells: u32::try_from(cells.len()).unwrap_or(u32::MAX),
            cells_bound: u32::try_from(bound).unwrap_or(u32::MAX),
            throughput,
            throughput_per_cpu: throughput.filter(|_| cpus > 0.0).map(each),
            per_cpu_second: mean(Quantity::PerCpuSecond),
            throughput_ratio: ratio(Metric::Throughput),
            per_cpu_second_ratio: ratio(Metric::ServerCpuPerMessage).map(inverted),
        }
    }

    /// CPUs of the servers, geometric mean over cells; 0 if a cell's servers are not pinned.
    fn server_cpus(&self, cells: &[&str]) -> f64 {
        let own = self.cells.iter().filter(|cell| cells.contains(&cell.id.as_str()));
        let logs: Vec<f64> =
            own.map(|cell| (self.scope.spec.server_cpus_in(cell).len() as f64).ln()).collect();
        (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp()
    }

    fn grid(&self, arm: &str, metric: Metric) -> Option<&'a Grid> {
        let baseline = &self.scope.spec.arms[0].name;
        self.grids.iter().copied().find(|it| it.arm == arm && it.baseline == *baseline && it.metric == metric)
    }

    /// The map's ratio at a level.
    fn ratio_at(&self, arm: &str, metric: Metric, factor: GridFactor, level: u64) -> Option<MeanRatio> {
        let marginals = &self.grid(arm, metric)?.marginals;
        let found = marginals.iter().find(|it| it.factor == factor && it.level == level)?;
        Some(MeanRatio {
            ratio: Figure { value: found.ratio, interval: found.interval },
            cells: found.cells,
            reversed: found.reversed.clone(),
        })
    }

    /// The same over all cells in which the two are comparable.
    fn ratio_over_all(&self, arm: &str, metric: Metric) -> Option<MeanRatio> {
        let grid = self.grid(arm, metric)?;
        let effect = |cell: &weir_record::grid::GridCell| {
            let comparison = self.effects.comparison(&cell.cell_id, (arm, &grid.baseline), metric)?;
            estimate(&comparison.values)
        };
        // At rates set by the generator the two are not compared, here as on the map.
        let is_told = |cell: &&weir_record::grid::GridCell| {
            !matches!(cell.difference, Difference::Invalid | Difference::GeneratorLimited)
        };
        let has_all_cpus = |cell: &&weir_record::grid::GridCell| {
            self.cells.iter().any(|own| own.id == cell.cell_id && self.has_all_cpus(own))
        };
        let valid = || grid.cells.iter().filter(is_told).filter(has_all_cpus);
        let estimates: Vec<Estimate> = valid().filter_map(effect).collect();
        let mean = decide::mean_of(&estimates)?;
        let is_known = mean.low > 0.0 || mean.high < 0.0;
        let goes_other_way = |cell: &&weir_record::grid::GridCell| {
            is_known && grid::is_opposite(cell.difference, grid::direction(mean.mean))
        };
        Some(MeanRatio {
            ratio: Figure { value: mean.mean.exp(), interval: Some((mean.low.exp(), mean.high.exp())) },
            cells: u32::try_from(estimates.len()).unwrap_or(u32::MAX),
            reversed: valid().filter(goes_other_way).map(|cell| cell.cell_id.clone()).collect(),
        })
    }

    /// The best cells at each number of workers, if there are several.
    fn best_by_workers(&self) -> Vec<BestCell> {
        let workers: BTreeSet<u32> = self.cells.iter().map(|cell| cell.workers).collect();
        if workers.len() < 2 {
            return Vec::new();
        }
        let has = |id: &str, workers: u32| {
            self.cells.iter().any(|cell| cell.id == id && cell.workers == workers && self.has_all_cpus(cell))
        };
        workers.into_iter().flat_map(|workers| self.best(|id| has(id, workers))).collect()
    }

    /// For each arm and quantity the best of the cells in question. Its interval holds simultaneously for all of
    /// them, because it was chosen among them; the others are compared with it.
    fn best(&self, is_asked: impl Fn(&str) -> bool) -> Vec<BestCell> {
        let of = |arm: &str, quantity: Quantity| {
            let own = self.figures.iter().filter(|((_, own, of), _)| *own == arm && *of == quantity);
            let own: Vec<(&str, &Measured<'_>)> =
                own.map(|((cell, _, _), it)| (*cell, it)).filter(|(cell, _)| is_asked(cell)).collect();
            let alpha = ALPHA / own.len().max(1) as f64;
            let figure = |logs: &ByRound| figure_at(logs, alpha);
            let value = |it: &Measured<'_>| figure(&it.logs).map_or(0.0, |figure| figure.value);
            let (cell, best) =
                own.iter().copied().max_by(|one, other| value(one.1).total_cmp(&value(other.1)))?;
            let is_tie = |other: &Measured<'_>| {
                let apart = difference(&best.logs, &other.logs);
                let apart = estimate_of(&weighted(&apart, 1.0).collect::<Vec<_>>(), alpha);
                apart.is_none_or(|apart| apart.low <= 0.0)
            };
            let ties = own.iter().filter(|(other, it)| *other != cell && is_tie(it));
            let (counts, completed) = self.counted(&[cell], arm);
            Some(BestCell {
                arm: arm.to_owned(),
                quantity,
                cell_id: cell.to_owned(),
                figure: figure(&best.logs)?,
                is_bound: quantity == Quantity::Throughput && best.is_bound,
                ties: ties.map(|(cell, _)| (*cell).to_owned()).collect(),
                success: success(completed, &counts),
            })
        };
        let each = |quantity: Quantity| self.arms.iter().filter_map(move |arm| of(arm, quantity)).collect();
        Quantity::ALL.into_iter().flat_map(|quantity| -> Vec<BestCell> { each(quantity) }).collect()
    }

    /// Trials of an arm in these cells, including excluded ones and the baseline's second runs.
    fn trials(&self, cells: &[&str], arm: &str) -> Vec<&'a TrialRecord> {
        let own = cells.iter().filter_map(|cell| self.scope.cell(cell));
        own.flat_map(|cell| cell.trials.iter().copied().filter(|trial| trial.arm == arm)).collect()
    }

    /// Failures and right answers.
    fn counted(&self, cells: &[&str], arm: &str) -> (FailureCounts, u64) {
        let (mut failures, mut completed) = (FailureCounts::default(), 0);
        for load in self.trials(cells, arm).iter().filter_map(|trial| trial.load.as_ref()) {
            failures.merge(&load.failures);
            completed += load.messages_whole_run.max(load.messages);
        }
        (failures, completed)
    }

    fn success(&self) -> Vec<SuccessRow> {
        let mut levels: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
        for cell in self.cells {
            levels.entry(u64::from(cell.connections)).or_default().push(&cell.id);
        }
        let row = |level: u64, cells: &[&str], arm: &str| {
            let trials = self.trials(cells, arm);
            let (failures, completed) = self.counted(cells, arm);
            let without = trials.iter().filter(|trial| trial.load.is_none()).count();
            (!trials.is_empty()).then(|| SuccessRow {
                level,
                arm: arm.to_owned(),
                completed,
                failed: failures.errors(),
                classes: exclusion::failure_classes(&failures),
                cut_off_at_end: failures.cut_off_at_end,
                success: success(completed, &failures),
                success_interval: proportion::interval(completed, completed + failures.errors()),
                trials: u32::try_from(trials.len()).unwrap_or(u32::MAX),
                trials_without_report: u32::try_from(without).unwrap_or(u32::MAX),
            })
        };
        let mut rows = Vec::new();
        for (level, cells) in &levels {
            rows.extend(self.scope.spec.arms.iter().filter_map(|arm| row(*level, cells, &arm.name)));
        }
        rows
    }
}

/// The share of right answers among everything that ended.
fn success(completed: u64, failures: &FailureCounts) -> Option<f64> {
    let ended = completed + failures.errors();
    (ended > 0).then(|| completed as f64 / ended as f64)
}

/// Messages per CPU-second from CPU per message.
fn inverted(it: MeanRatio) -> MeanRatio {
    let ratio = Figure {
        value: 1.0 / it.ratio.value,
        interval: it.ratio.interval.map(|(low, high)| (1.0 / high, 1.0 / low)),
    };
    MeanRatio { ratio, ..it }
}
