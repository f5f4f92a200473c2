//! A study before its schedule is finished: the primary comparison so far, how its estimate narrowed, and the ratio of
//! one block. None of it is a verdict. Pure.

use weir_record::{
    metric::Metric,
    running::{TRACK_POINTS_MAX, TrackPoint},
    spec::{CellRole, CellSpec, StudySpec},
    trial::TrialRecord,
};
use weir_stats::decide::{UNITS_MIN, estimate};

use crate::{
    cell_trials::CellTrials,
    gate::{TrialState, ValidityGate},
    units::{self, Compared, Units},
};

/// The primary comparison before the schedule is finished. It has no verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct RunningEstimate {
    /// The arm compared with the baseline.
    pub arm: String,
    /// The baseline.
    pub baseline: String,
    /// Ratio of their server CPU per message so far.
    pub ratio: f64,
    /// Its interval: lower, upper.
    pub interval: (f64, f64),
    /// Number of its units.
    pub units: usize,
    /// Whether they are from the machine's far state; `None` on a machine with one state, or if the units are from
    /// both.
    pub is_far: Option<bool>,
}

/// The first arm of a cell beside the baseline, and its baseline.
pub fn compared<'s>(spec: &'s StudySpec, cell: &CellSpec) -> Option<(&'s str, &'s str)> {
    let arm = spec.arms.iter().skip(1).find(|arm| cell.has_arm(&arm.name))?;
    Some((&arm.name, spec.baseline_of(arm)))
}

/// The cell of the primary comparison. Simulated trials are so fast that a running estimate is pointless.
fn primary(spec: &StudySpec) -> Option<&CellSpec> {
    spec.cells.iter().find(|cell| cell.role == CellRole::Primary && !cell.is_simulated())
}

/// The values of a cell's first comparison.
fn values(gate: &ValidityGate, cell: &CellTrials<'_>, (arm, baseline): (&str, &str)) -> Units {
    units::of(gate, cell, Compared { arm, baseline, row: Metric::ServerCpuPerMessage.row() })
}

/// The running estimate of the primary comparison; `None` with too few units for a decision.
pub fn so_far(spec: &StudySpec, trials: &[&TrialRecord]) -> Option<RunningEstimate> {
    let cell = primary(spec)?;
    let (arm, baseline) = compared(spec, cell)?;
    let gate = ValidityGate::new(trials.iter().copied());
    let cell = CellTrials::of(cell, &gate, trials);
    let units = values(&gate, &cell, (arm, baseline));
    let effect = estimate(&units.values).filter(|effect| effect.units >= UNITS_MIN)?;
    Some(RunningEstimate {
        arm: arm.to_owned(),
        baseline: baseline.to_owned(),
        ratio: effect.mean.exp(),
        interval: (effect.low.exp(), effect.high.exp()),
        units: effect.units,
        is_far: cell.state.filter(|_| gate.has_two_states()).map(|state| state == TrialState::Far),
    })
}

/// The same from the first units alone, in equal steps up to all of them: at most [`TRACK_POINTS_MAX`] points.
pub fn track(spec: &StudySpec, trials: &[&TrialRecord]) -> Vec<TrackPoint> {
    let Some((cell, pair)) = primary(spec).and_then(|cell| Some((cell, compared(spec, cell)?))) else {
        return Vec::new();
    };
    let gate = ValidityGate::new(trials.iter().copied());
    let cell = CellTrials::of(cell, &gate, trials);
    track_of(&values(&gate, &cell, pair).values)
}

fn track_of(values: &[f64]) -> Vec<TrackPoint> {
    let Some(steps) = values.len().checked_sub(UNITS_MIN) else { return Vec::new() };
    let last = steps.min(TRACK_POINTS_MAX - 1);
    let point = |place: usize| {
        let effect = estimate(&values[..UNITS_MIN + steps * place / last.max(1)])?;
        Some(TrackPoint {
            units: effect.units,
            ratio: effect.mean.exp(),
            interval: (effect.low.exp(), effect.high.exp()),
        })
    };
    (0..=last).filter_map(point).collect()
}

/// The logarithm of the ratio of server CPU per message in one block; `None` if the block has no such pair.
pub fn block_log_ratio(spec: &StudySpec, cell: &CellSpec, trials: &[&TrialRecord]) -> Option<f64> {
    let pair = compared(spec, cell)?;
    let gate = ValidityGate::new(trials.iter().copied());
    let cell = CellTrials::of(cell, &gate, trials);
    values(&gate, &cell, pair).values.first().copied().filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn a_track_ends_at_the_estimate_of_all_units_and_has_as_many_points_as_is_stated() {
        let values = |count: usize| -> Vec<f64> { (0..count).map(|it| 0.01 * (it % 3) as f64).collect() };
        assert!(track_of(&values(UNITS_MIN - 1)).is_empty());
        for (count, points) in
            [(UNITS_MIN, 1), (UNITS_MIN + 1, 2), (UNITS_MIN + 47, 48), (500, TRACK_POINTS_MAX)]
        {
            let track = track_of(&values(count));
            assert_eq!(track.len(), points, "{count}");
            assert_eq!((track[0].units, track[points - 1].units), (UNITS_MIN, count));
            assert!(track.is_sorted_by(|one, next| one.units < next.units), "{track:?}");
        }
        let track = track_of(&values(500));
        let width = |point: &TrackPoint| point.interval.1 - point.interval.0;
        assert!(width(&track[TRACK_POINTS_MAX - 1]) < width(&track[0]) / 4.0, "it narrows");
    }

    #[test]
    fn a_block_has_the_ratio_of_its_own_trials() {
        let spec = sample::study(&["epoll", "uring"], 2, 1);
        let cell = &spec.cells[0];
        let trial = |arm: &str, cpu_us: f64| sample::trial(&cell.id, arm, 0, cpu_us);
        let (baseline, arm) = (trial("epoll", 10.0), trial("uring", 8.0));
        let found = block_log_ratio(&spec, cell, &[&baseline, &arm]).expect("it has a pair");
        assert!((found - 0.8_f64.ln()).abs() < 1e-9, "{found}");
        assert_eq!(block_log_ratio(&spec, cell, &[&baseline]), None);
    }
}
