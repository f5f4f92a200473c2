//! From trials to the values behind a decision: one for each independent unit. Pure.
//!
//! A value is a log-ratio, or a difference if figures may be zero. A unit is a block of whole trials, whose value
//! comes from a pair; or a round in which the arms take turns. The slices of a round share their processes and are
//! not independent, so a round gives one value, from differences within its permutations (`weir_stats::round`): both
//! runs of the baseline count, because they are the same program and halve its share of the noise. Values are in the
//! order in which their rounds or blocks ran, because the decision rule uses their autocorrelation.

use std::collections::BTreeMap;

use weir_record::{
    finding::{ExclusionKind, Finding},
    metric::Scale,
    metric_rows::MetricRow,
    spec::LoadMode,
    trial::{SliceRecord, TrialRecord},
};
use weir_stats::{movement::moves, round};

use crate::{
    cell_trials::{CellTrials, Round},
    gate::{Against, Pair, Pairs, ValidityGate},
    rungs,
};

/// The values of one comparison, on its metric's scale (log-ratios or differences) and in time order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Units {
    /// Arm against baseline, one for each unit.
    pub(crate) values: Vec<f64>,
    /// Figures of the arm and of the baseline in each: the first equals the second combined with the unit's effect.
    pub(crate) levels: Vec<(f64, f64)>,
    /// Number of the round or block of each.
    blocks: Vec<u32>,
    /// Units without a value, counted by reason.
    pub(crate) excluded: BTreeMap<ExclusionKind, u32>,
}

impl Units {
    pub(crate) fn push(&mut self, block: u32, value: Value) {
        self.values.push(value.effect);
        self.levels.push(value.levels);
        self.blocks.push(block);
    }

    /// The values by round or block, in time order, for pairing with others.
    pub(crate) fn by_block(&self) -> Vec<(u32, f64)> {
        self.blocks.iter().copied().zip(self.values.iter().copied()).collect()
    }

    /// Means of the figures behind the values, so that the arm's equals the baseline's combined with the mean effect.
    pub(crate) fn means(&self, scale: Scale) -> Option<(f64, f64)> {
        let of =
            |level: fn(&(f64, f64)) -> f64| scale.mean(&self.levels.iter().map(level).collect::<Vec<_>>());
        Some((of(|level| level.0)?, of(|level| level.1)?))
    }

    /// Whether the effect moved while it was measured.
    pub(crate) fn movement(&self, scale: Scale) -> Option<Finding> {
        let found = moves(&self.values).filter(|_| scale == Scale::Ratio)?;
        let halves = (found.halves.0.exp(), found.halves.1.exp());
        Some(Finding::EffectMoves { lag_1: found.lag_1, halves })
    }

    /// Logarithms of the ratios of the figures, where they exist.
    pub(crate) fn log_ratios(&self) -> Vec<f64> {
        let logs = self.levels.iter().map(|(arm, baseline)| (arm / baseline).ln());
        logs.filter(|log| log.is_finite()).collect()
    }
}

/// The compared arm and metric.
#[derive(Clone, Copy)]
pub(crate) struct Compared<'a> {
    pub(crate) arm: &'a str,
    pub(crate) baseline: &'a str,
    pub(crate) row: &'static MetricRow,
}

/// Which slices of an open loop count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Slices of permutations in which every compared run kept the rate.
    Kept,
    /// All slices, at the rates they achieved.
    Achieved,
}

/// The values of one comparison in the cell's state, at the offered rate if there is one.
pub(crate) fn of(gate: &ValidityGate, cell: &CellTrials<'_>, compared: Compared<'_>) -> Units {
    match cell.spec.alternation {
        Some(_) => of_rounds(gate, cell, compared, Counted::Kept),
        None => of_blocks(gate, cell, compared),
    }
}

/// The same including the slices that missed their rate, if there are any. Excluding these favours the arm that is
/// disturbed more often, because only its good slices remain. So both estimates must agree.
pub(crate) fn at_achieved_rates(
    gate: &ValidityGate,
    cell: &CellTrials<'_>,
    compared: Compared<'_>,
) -> Option<Units> {
    let sides = [compared.arm, compared.baseline];
    let of_sides = cell.trials.iter().filter(|trial| sides.contains(&trial.arm.as_str()));
    let has_missed = of_sides.flat_map(|trial| &trial.slices).any(|slice| !rungs::is_kept(slice));
    let is_paced = cell.spec.alternation.is_some() && cell.spec.load != LoadMode::Closed;
    (is_paced && has_missed).then(|| of_rounds(gate, cell, compared, Counted::Achieved))
}

/// Values of blocks with separate trials per arm.
fn of_blocks(gate: &ValidityGate, cell: &CellTrials<'_>, compared: Compared<'_>) -> Units {
    let Compared { arm, baseline, row } = compared;
    let Pairs { used, mut excluded, .. } = gate.pairs(&cell.trials, baseline, Against::Arm(arm), cell.state);
    let units = of_pairs(&used, row);
    let without = used.len() - units.values.len();
    if without > 0 {
        excluded.insert(ExclusionKind::WithoutFigure, u32::try_from(without).unwrap_or(u32::MAX));
    }
    Units { excluded, ..units }
}

/// Values of rounds in which the arms took turns.
fn of_rounds(gate: &ValidityGate, cell: &CellTrials<'_>, compared: Compared<'_>, counted: Counted) -> Units {
    let Compared { arm, baseline, row } = compared;
    let usable = |runs: &[&TrialRecord]| {
        let obstacle = runs.iter().find_map(|trial| gate.obstacle(trial, cell.state));
        obstacle.map_or(Ok(()), Err)
    };
    let mut units = Units::default();
    for round in cell.rounds() {
        if let (Some(arm), Some(one)) = (round.run(arm, false), round.run(baseline, false)) {
            let other = round.run(baseline, true).unwrap_or(one);
            let value = usable(&[arm, one, other]).and_then(|()| {
                round_value(arm, [one, other], row, counted).ok_or(ExclusionKind::WithoutFigure)
            });
            match value {
                Ok(value) => units.push(arm.block, value),
                Err(reason) => *units.excluded.entry(reason).or_default() += 1,
            }
        }
    }
    units
}

/// An arm's second run compared with its first, in time order, at the offered rate.
pub(crate) fn of_itself(
    gate: &ValidityGate,
    cell: &CellTrials<'_>,
    arm: &str,
    row: &'static MetricRow,
) -> Vec<f64> {
    if cell.spec.alternation.is_none() {
        return of_pairs(&gate.pairs(&cell.trials, arm, Against::Itself, cell.state).used, row).values;
    }
    let of_round = |round: &Round<'_>| {
        let (one, other) = (round.run(arm, false)?, round.run(arm, true)?);
        let is_usable = [one, other].iter().all(|trial| gate.is_usable(trial, cell.state));
        is_usable.then(|| round_value(other, [one, one], row, Counted::Kept)).flatten()
    };
    cell.rounds().filter_map(of_round).map(|value| value.effect).collect()
}

/// The value of one unit.
#[derive(Clone, Copy)]
pub(crate) struct Value {
    effect: f64,
    /// Figures of the arm and of the baseline.
    levels: (f64, f64),
}

/// An arm's figure compared with the baseline's two.
fn value(row: &MetricRow, arm: f64, first: f64, second: f64) -> Option<Value> {
    if ![arm, first, second].into_iter().all(|figure| row.has(figure)) {
        return None;
    }
    let (effect, baseline) = match row.scale {
        Scale::Ratio => {
            let baseline = 0.5 * (first.ln() + second.ln());
            (arm.ln() - baseline, baseline.exp())
        }
        Scale::Difference { .. } => {
            let baseline = f64::midpoint(first, second);
            (arm - baseline, baseline)
        }
    };
    effect.is_finite().then_some(Value { effect, levels: (arm, baseline) })
}

/// The value of one round: over its permutations, if slices have the figure.
fn round_value(
    arm: &TrialRecord,
    [first, second]: [&TrialRecord; 2],
    row: &MetricRow,
    counted: Counted,
) -> Option<Value> {
    let Some(slices) = Slices::of(arm, [first, second], row, counted) else {
        return value(row, (row.read)(arm)?, (row.read)(first)?, (row.read)(second)?);
    };
    slices.value(row.scale)
}

/// Figures of the runs of one round on the metric's scale, by permutation: those in which all three exist.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slices {
    arm: Vec<f64>,
    first: Vec<f64>,
    second: Vec<f64>,
}

impl Slices {
    /// `None` if slices do not have the figure.
    fn of(
        arm: &TrialRecord,
        [first, second]: [&TrialRecord; 2],
        row: &MetricRow,
        counted: Counted,
    ) -> Option<Self> {
        let figure = row.read_slice?;
        let counts = |slice: &SliceRecord| counted == Counted::Achieved || rungs::is_kept(slice);
        let scaled = |slice: &SliceRecord, trial: &TrialRecord| {
            Some(slice)
                .filter(|slice| counts(slice))
                .and_then(|slice| figure(slice, trial))
                .filter(|figure| row.has(*figure))
                .map(|figure| row.scale.value(figure))
        };
        let of = |trial: &TrialRecord, permutation: u32| {
            scaled(trial.slices.iter().find(|slice| slice.permutation == permutation)?, trial)
        };
        let mut found = Self::default();
        for slice in &arm.slices {
            let (one, other) = (of(first, slice.permutation), of(second, slice.permutation));
            if let (Some(arm), Some(one), Some(other)) = (scaled(slice, arm), one, other) {
                found.arm.push(arm);
                found.first.push(one);
                found.second.push(other);
            }
        }
        Some(found)
    }

    /// Adds a permutation with this figure for all three; returns whether it is valid on the metric's scale.
    pub(crate) fn push(&mut self, row: &MetricRow, [arm, first, second]: [f64; 3]) -> bool {
        let is_there = [arm, first, second].into_iter().all(|figure| row.has(figure));
        if is_there {
            self.arm.push(row.scale.value(arm));
            self.first.push(row.scale.value(first));
            self.second.push(row.scale.value(second));
        }
        is_there
    }

    /// The value of the round.
    pub(crate) fn value(&self, scale: Scale) -> Option<Value> {
        let (effect, baseline) = (self.effect()?, self.baseline()?);
        // The trimmed mean of the arm's slices does not equal the baseline's combined with the effect, and would
        // contradict the ratio.
        let levels = match scale {
            Scale::Ratio => ((baseline + effect).exp(), baseline.exp()),
            Scale::Difference { .. } => (baseline + effect, baseline),
        };
        Some(Value { effect, levels })
    }

    pub(crate) fn permutations(&self) -> usize {
        self.arm.len()
    }

    /// The arm compared with both runs of the baseline.
    pub(crate) fn effect(&self) -> Option<f64> {
        round::effect(&self.arm, &self.first, &self.second)
    }

    fn baseline(&self) -> Option<f64> {
        let both = self.first.iter().zip(&self.second).map(|(one, other)| 0.5 * (one + other));
        round::middle(&both.collect::<Vec<_>>())
    }

    /// Every other permutation, from this one on.
    pub(crate) fn every_other(&self, first: usize) -> Self {
        let of = |run: &[f64]| run.iter().copied().skip(first).step_by(2).collect();
        Self { arm: of(&self.arm), first: of(&self.first), second: of(&self.second) }
    }
}

/// The slices of a comparison's rounds, with the arm's trial.
pub(crate) fn by_permutation<'a>(
    gate: &ValidityGate,
    cell: &CellTrials<'a>,
    compared: Compared<'_>,
) -> Vec<(&'a TrialRecord, Slices)> {
    let Compared { arm, baseline, row, .. } = compared;
    let of_round = |round: &Round<'a>| {
        let (arm, one) = (round.run(arm, false)?, round.run(baseline, false)?);
        let other = round.run(baseline, true).unwrap_or(one);
        let is_usable = [arm, one, other].iter().all(|trial| gate.is_usable(trial, cell.state));
        Some((arm, is_usable.then(|| Slices::of(arm, [one, other], row, Counted::Kept))??))
    };
    cell.rounds().filter_map(of_round).collect()
}

/// Values of pairs of whole trials with the figure.
pub(crate) fn of_pairs(pairs: &[Pair<'_>], row: &MetricRow) -> Units {
    let mut units = Units::default();
    for pair in pairs {
        let figures = (row.read)(pair.arm).zip((row.read)(pair.baseline));
        if let Some(value) = figures.and_then(|(arm, baseline)| value(row, arm, baseline, baseline)) {
            units.push(pair.arm.block, value);
        }
    }
    units
}

/// The figures in tables and charts: those behind the ratio. An arm uses the units in which it was compared with the
/// study's first arm, and the first arm those of its comparison with `other`, the first arm it was compared with.
/// Without a comparison they come from the arm's own units.
pub(crate) fn figures(
    gate: &ValidityGate,
    cell: &CellTrials<'_>,
    (arm, first, other): (&str, &str, Option<&str>),
    row: &'static MetricRow,
) -> Vec<f64> {
    let is_first = arm == first;
    let compared = if is_first { other } else { Some(arm) };
    let compared = compared.map(|arm| of(gate, cell, Compared { arm, baseline: first, row }));
    let levels = compared.map(|units| units.levels).unwrap_or_default();
    if !levels.is_empty() {
        return levels.into_iter().map(|(arm, baseline)| if is_first { baseline } else { arm }).collect();
    }
    let alone = alone_in_time_order(gate, cell, arm, row);
    alone.into_iter().map(|(_, value)| row.scale.figure(value)).collect()
}

/// Figures as returned by [`alone`], each with its round or block, in the order in which their trials ran.
pub(crate) fn alone_in_time_order(
    gate: &ValidityGate,
    cell: &CellTrials<'_>,
    arm: &str,
    row: &MetricRow,
) -> Vec<(u32, f64)> {
    let mut found: Vec<(u64, u32, f64)> = alone(gate, cell, arm, row)
        .into_iter()
        .map(|(block, (figure, trial))| (trial.started_ns, block, figure))
        .collect();
    found.sort_by_key(|(started_ns, block, _)| (*started_ns, *block));
    found.into_iter().map(|(_, block, figure)| (block, figure)).collect()
}

/// Differences of the arm's figure from the baseline's in the same block, in the metric's unit, by block and in time
/// order.
pub(crate) fn differences(
    gate: &ValidityGate,
    cell: &CellTrials<'_>,
    (arm, baseline): (&str, &str),
    row: &MetricRow,
) -> Vec<(u32, f64)> {
    let pairs = gate.pairs(&cell.trials, baseline, Against::Arm(arm), cell.state).used;
    let one = |pair: &Pair<'_>| {
        let difference = (row.read)(pair.arm)? - (row.read)(pair.baseline)?;
        difference.is_finite().then_some((pair.arm.block, difference))
    };
    pairs.iter().filter_map(one).collect()
}

/// The figures of one arm in a state, on the metric's scale (logarithms, or the figures themselves), one per unit
/// with its block and its trials. The first of several attempts at a block with a figure counts, and the two runs of
/// the study's first arm give one.
pub(crate) fn alone<'a>(
    gate: &ValidityGate,
    cell: &CellTrials<'a>,
    arm: &str,
    row: &MetricRow,
) -> BTreeMap<u32, (f64, &'a TrialRecord)> {
    let mut found = BTreeMap::new();
    for round in cell.rounds() {
        let usable = [false, true].into_iter().filter_map(|repeat| round.run(arm, repeat));
        let usable = usable.filter(|trial| gate.is_usable(trial, cell.state));
        let figures: Vec<(f64, &TrialRecord)> =
            usable.filter_map(|trial| Some((figure_of(trial, row)?, trial))).collect();
        if let Some((_, trial)) = figures.first() {
            let mean = figures.iter().map(|(figure, _)| figure / figures.len() as f64).sum();
            found.entry(trial.block).or_insert((mean, *trial));
        }
    }
    found
}

/// A trial's figure on the metric's scale: the trimmed mean of its slices, if slices have it.
fn figure_of(trial: &TrialRecord, row: &MetricRow) -> Option<f64> {
    let figures: Vec<f64> = match row.read_slice.filter(|_| !trial.slices.is_empty()) {
        Some(of_slice) => {
            let kept = trial.slices.iter().filter(|slice| rungs::is_kept(slice));
            kept.filter_map(|slice| of_slice(slice, trial)).collect()
        }
        None => (row.read)(trial).into_iter().collect(),
    };
    let has_figure = figures.into_iter().filter(|figure| row.has(*figure));
    round::middle(&has_figure.map(|figure| row.scale.value(figure)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use weir_record::{
        load::LoadReport, metric::Metric, spec::Alternation, trial::Exclusion, window::ObservedWindow,
    };

    use super::*;
    use crate::sample;

    fn trial(arm: &str, repeat: bool, block: u32, costs: &[u64]) -> TrialRecord {
        let slices = (0..).zip(costs).map(|(permutation, cost)| SliceRecord {
            permutation,
            messages: 1_000,
            server_cpu_ns: 1_000 * cost,
            ..SliceRecord::default()
        });
        TrialRecord {
            cell_id: "c100-d1-m64-closed".to_owned(),
            arm: arm.to_owned(),
            repeat,
            block,
            slices: slices.collect(),
            ..TrialRecord::default()
        }
    }

    fn units(trials: &[TrialRecord]) -> Units {
        with_cell(trials, |gate, cell, row| of(gate, cell, Compared { arm: "uring", baseline: "epoll", row }))
    }

    fn with_cell<T>(
        trials: &[TrialRecord],
        of: impl FnOnce(&ValidityGate, &CellTrials<'_>, &'static MetricRow) -> T,
    ) -> T {
        let mut spec = sample::study(&["epoll", "uring"], 1, 1);
        spec.cells[0].alternation =
            Some(Alternation { slice_ns: 1, permutations: 1, prime_messages: 1, evidence: None });
        let gate = ValidityGate::new(trials);
        let cell = CellTrials::of(&spec.cells[0], &gate, &trials.iter().collect::<Vec<_>>());
        of(&gate, &cell, Metric::ServerCpuPerMessage.row())
    }

    fn itself(trials: &[TrialRecord]) -> Vec<f64> {
        with_cell(trials, |gate, cell, row| of_itself(gate, cell, "epoll", row))
    }

    #[test]
    fn a_round_gives_the_median_of_its_permutations_against_both_baselines() {
        // The machine is twice as slow in the second permutation, and something happened in the third.
        let trials = [
            trial("epoll", false, 0, &[1_000, 2_000, 1_000]),
            trial("epoll", true, 0, &[1_000, 2_000, 1_000]),
            trial("uring", false, 0, &[900, 1_800, 9_000]),
        ];
        let found = units(&trials);
        assert_eq!(found.values.len(), 1);
        assert!((found.values[0] - 0.9_f64.ln()).abs() < 1e-12, "{found:?}");
        let (arm, baseline) = found.means(Scale::Ratio).expect("there is a round");
        assert!(
            (arm / baseline - 0.9).abs() < 1e-12 && baseline == 1.0,
            "the arm's median slice has 1.8: {found:?}"
        );
    }

    #[test]
    fn values_come_in_the_order_in_which_their_rounds_ran() {
        let round = |block: u32, attempt: u32, started_ns: u64, cost: u64| {
            let own = [("epoll", false, 1_000), ("epoll", true, 1_000), ("uring", false, cost)];
            own.map(|(arm, repeat, cost)| TrialRecord {
                attempt,
                started_ns,
                ..trial(arm, repeat, block, &[cost])
            })
        };
        let mut broken = round(0, 0, 1, 1_100);
        broken[0].exclusions.push(Exclusion::Errors { count: 2 });
        let trials = [broken, round(1, 0, 2, 1_200), round(0, 1, 3, 1_300)].concat();
        let ratios: Vec<f64> = units(&trials).values.iter().map(|value| value.exp()).collect();
        assert!((ratios[0] - 1.2).abs() < 1e-9 && (ratios[1] - 1.3).abs() < 1e-9, "{ratios:?}");
    }

    #[test]
    fn both_baselines_count_alike() {
        let trials = [
            trial("epoll", false, 0, &[1_000]),
            trial("epoll", true, 0, &[1_210]),
            trial("uring", false, 0, &[1_100]),
        ];
        let found = units(&trials);
        assert!(found.values[0].abs() < 1e-12, "{found:?}");
        let itself = itself(&trials);
        assert!((itself[0] - 1.21_f64.ln()).abs() < 1e-12, "{itself:?}");
    }

    #[test]
    fn a_round_in_which_a_run_failed_has_no_value_and_says_why() {
        let mut trials = vec![
            trial("epoll", false, 3, &[1_000]),
            trial("epoll", true, 3, &[1_000]),
            trial("uring", false, 3, &[1_000]),
        ];
        trials[1].exclusions.push(Exclusion::Errors { count: 2 });
        let found = units(&trials);
        assert!(found.values.is_empty() && itself(&trials).is_empty());
        assert_eq!(found.excluded, BTreeMap::from([(ExclusionKind::Errors, 1)]));
        trials[1].exclusions.clear();
        trials[2].slices[0].messages = 0;
        assert_eq!(units(&trials).excluded, BTreeMap::from([(ExclusionKind::WithoutFigure, 1)]));
    }

    #[test]
    fn figures_of_zero_are_differences_and_have_no_ratio() {
        let with_switches = |context_switches_voluntary: u64| {
            let observed = Some(ObservedWindow { context_switches_voluntary, ..ObservedWindow::default() });
            let load = LoadReport { messages: 100, observed, ..LoadReport::default() };
            TrialRecord { load: Some(load), ..TrialRecord::default() }
        };
        let (none, some) = (with_switches(0), with_switches(50));
        let pairs = [Pair { arm: &some, baseline: &none }, Pair { arm: &some, baseline: &some }];
        let found = of_pairs(&pairs, Metric::SwitchesPerMessage.row());
        assert_eq!(
            (found.values.as_slice(), found.means(Metric::SwitchesPerMessage.row().scale)),
            (&[0.5, 0.0][..], Some((0.5, 0.25)))
        );
        assert_eq!(found.log_ratios(), [0.0]);
    }
}
