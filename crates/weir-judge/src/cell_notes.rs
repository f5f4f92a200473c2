//! Notes on how the arms of a cell were measured, for its comparisons. Pure.

use weir_record::{
    finding::{Finding, UnitKind},
    spec::{CellSpec, LoadMode, StudySpec},
};
use weir_stats::order::median;

use crate::{cell_trials::CellTrials, rungs};

/// The note about an arm that does not receive the cell's number of workers.
pub(crate) fn workers_not_told(spec: &StudySpec, arm: &str) -> Option<Finding> {
    Some(Finding::WorkersNotTold { arm: arm.to_owned(), workers: spec.workers_not_told(arm)? })
}

/// The note about an arm that the laboratory did not start.
pub(crate) fn ran_before(spec: &StudySpec, arm: &str) -> Option<Finding> {
    let found = spec.arms.iter().find(|it| it.name == arm)?;
    found.running().map(|_| Finding::RanBefore { arm: arm.to_owned() })
}

/// Why the arms of a cell were measured whole, one after the other.
pub(crate) fn whole_trials(spec: &StudySpec, cell: &CellSpec) -> Option<Finding> {
    let whole = spec.whole_trials.iter().find(|it| it.cell_id == cell.id && cell.alternation.is_none())?;
    Some(Finding::WholeTrials { why: whole.why })
}

/// The note about the side that kept the offered rate least often, if that was too seldom.
pub(crate) fn rate_missed(cell: &CellTrials<'_>, arm: &str, baseline: &str) -> Option<Finding> {
    if cell.spec.load == LoadMode::Closed {
        return None;
    }
    let sides = cell.trials.iter().copied().filter(|trial| [arm, baseline].contains(&trial.arm.as_str()));
    let least = rungs::least_kept(cell.spec, sides).filter(|least| !least.is_enough())?;
    let rungs::Kept { arm, kept, of, .. } = least;
    Some(Finding::RateMissed { arm, kept, of, unit: UnitKind::of_cell(cell.spec) })
}

/// Number of connections that an arm had closed since its previous slice.
pub(crate) fn reopened(cell: &CellTrials<'_>, arm: &str) -> Option<Finding> {
    let slices = || cell.of_arm(arm).flat_map(|trial| &trial.slices);
    let connections: u64 = slices().map(|slice| u64::from(slice.reopened)).sum();
    let slices = slices().count() as u64;
    (connections > 0).then(|| Finding::Reopened { arm: arm.to_owned(), connections, slices })
}

/// The note about an arm that was stopped between its slices, so that it used no CPU of the others.
pub(crate) fn stopped(cell: &CellTrials<'_>, arm: &str) -> Option<Finding> {
    let (mut runs, mut shares) = (0, Vec::new());
    for trial in cell.of_arm(arm).filter(|trial| !trial.slices.is_empty()) {
        runs += 1;
        if trial.slices.iter().any(|slice| slice.stopped) {
            shares.extend(trial.waiting_share());
        }
    }
    Some(Finding::StoppedBetweenSlices {
        arm: arm.to_owned(),
        share: median(&shares)?,
        stopped: u32::try_from(shares.len()).unwrap_or(u32::MAX),
        runs,
    })
}

/// The note about two builds of one program without a placebo for the effect of code layout.
pub(crate) fn without_placebo(spec: &StudySpec, arm: &str, baseline: &str) -> Option<Finding> {
    let find = |name: &str| spec.arms.iter().find(|arm| arm.name == name);
    let has_placebo = spec.arms.iter().any(|arm| arm.is_placebo && spec.baseline_of(arm) == baseline);
    (!has_placebo && find(arm)?.is_other_build_of(find(baseline)?)).then_some(Finding::NoPlacebo)
}
