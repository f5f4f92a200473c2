//! Guidance from a map for someone who must choose an I/O model. Pure: codes with arguments, and never a cause.
//!
//! Access comes first: an unavailable I/O model needs no figures. Then each arm's standing, and the regions it is
//! based on: runs of adjacent cells with the same result along the map's first factor; lines of the map with the same
//! run are one region. So a mean is only reported over cells that agree, and contradicting cells are in separate
//! regions. Cells limited by the generator form a region without a result.

use std::collections::{BTreeMap, BTreeSet};

use weir_record::{
    effect::{Effect, Effects},
    finding::Finding,
    grid::{Difference, Grid, GridCell},
    guidance::{Access, Advice, Guidance, Region, Standing},
    kernel::{self, KernelVersion},
    machine::Fingerprint,
    metric::Metric,
    spec::{StudySpec, Subject},
    study::MissingArm,
    trial::TrialRecord,
};
use weir_stats::decide::{Estimate, estimate};

use crate::grid::mean_of;

/// The driver that may be unavailable.
const RING: &str = "uring";

/// Guidance, if there is a map of server CPU and the schedule is finished; before that, no difference is called.
pub(crate) fn of(
    spec: &StudySpec,
    fingerprint: &Fingerprint,
    missing: &[MissingArm],
    grids: &[Grid],
    effects: &Effects,
    trials: &[TrialRecord],
) -> Option<Guidance> {
    let of_cpu = grids
        .iter()
        .filter(|grid| grid.metric == Metric::ServerCpuPerMessage)
        .filter(|grid| is_choice(spec, &grid.arm, &grid.baseline));
    let advice: Vec<Advice> = of_cpu.map(|grid| advice(grid, effects)).collect();
    (!advice.is_empty()).then(|| Guidance {
        access: access(spec, fingerprint, missing, trials),
        advice,
        observed: None,
    })
}

/// A comparison with an older build of the same server is no advice, because users do not choose between them.
fn is_choice(spec: &StudySpec, arm: &str, baseline: &str) -> bool {
    let find = |name: &str| spec.arms.iter().find(|arm| arm.name == name);
    let builds = find(arm).zip(find(baseline));
    builds.is_none_or(|(arm, baseline)| !arm.is_other_build_of(baseline))
}

/// Whether the driver is available; an arm that was loaded has run.
fn access(
    spec: &StudySpec,
    fingerprint: &Fingerprint,
    missing: &[MissingArm],
    trials: &[TrialRecord],
) -> Option<Access> {
    // An arm that emulates an older kernel says nothing about this one.
    let is_ring = |subject: &Subject| match subject {
        Subject::Weir { driver, .. } => driver == RING && subject.as_on_kernel().is_none(),
        _ => false,
    };
    let arm = spec.arms.iter().find(|arm| is_ring(&arm.subject));
    let is_of_ring = |reason: &Finding| {
        matches!(
            reason,
            Finding::NoIoUring
                | Finding::IoUringDisabled { .. }
                | Finding::IoUringForbidden
                | Finding::IoUringMemory
                | Finding::IoUringTooOld
        )
    };
    // If an arm that emulates an older kernel is refused, that is because of the emulation. An arm with that option
    // is still in the study.
    let is_own = |missing: &&MissingArm| {
        let its = spec.arms.iter().find(|arm| arm.name == missing.name);
        its.is_none_or(|arm| arm.subject.as_on_kernel().is_none())
    };
    // If other arms replace it, it is no longer an arm of the study.
    let refused = missing.iter().filter(is_own).find(|missing| match arm {
        Some(arm) => missing.name == arm.name,
        None => is_of_ring(&missing.reason),
    });
    let has_run = |name: &str| trials.iter().any(|trial| trial.arm == name && trial.load.is_some());
    if refused.is_none() && !arm.is_some_and(|arm| has_run(&arm.name)) {
        return None;
    }
    let kernel = KernelVersion::of_release(&fingerprint.kernel_release);
    let lacking = kernel.into_iter().flat_map(|version| kernel::lacking(version, RING));
    let limit = |name: &str| fingerprint.limits.get(name).map(String::as_str);
    Some(Access {
        refused: refused.map(|missing| missing.reason.clone()),
        unlock: refused.and_then(|missing| missing.unlock.clone()),
        kernel,
        lacking: lacking.map(|row| row.name.to_owned()).collect(),
        disabled: limit("io_uring_disabled").and_then(|level| level.parse().ok()),
        is_filtered: limit("seccomp").map(|mode| mode != "off"),
    })
}

fn advice(grid: &Grid, effects: &Effects) -> Advice {
    let count = |difference: Difference| {
        let own = grid.cells.iter().filter(|cell| cell.difference == difference);
        u32::try_from(own.count()).unwrap_or(u32::MAX)
    };
    let (less, more) = (count(Difference::Less), count(Difference::More));
    let (undetected, equivalent) = (count(Difference::Undetected), count(Difference::Equivalent));
    Advice {
        map: grid.map,
        arm: grid.arm.clone(),
        baseline: grid.baseline.clone(),
        standing: match (less, more, undetected + equivalent) {
            (0, 0, 0) => Standing::Untold,
            (0, 0, _) => Standing::Undetected,
            (_, 0, _) => Standing::Less,
            (0, _, _) => Standing::More,
            _ => Standing::Both,
        },
        less,
        more,
        undetected,
        equivalent,
        not_borne_out: count(Difference::NotBorneOut),
        not_comparable: count(Difference::Invalid) + count(Difference::Unfinished),
        generator_limited: count(Difference::GeneratorLimited),
        cells: u32::try_from(grid.cells.len()).unwrap_or(u32::MAX),
        regions: regions(grid, effects),
    }
}

/// Runs along the first factor; equal runs of several lines are combined.
fn regions(grid: &Grid, effects: &Effects) -> Vec<Region> {
    let mut lines: BTreeMap<&[u64], Vec<&GridCell>> = BTreeMap::new();
    for cell in &grid.cells {
        lines.entry(&cell.levels[1..]).or_default().push(cell);
    }
    let lines_count = lines.len();
    let mut runs: BTreeMap<(usize, u64, u64), Vec<&GridCell>> = BTreeMap::new();
    for mut line in lines.into_values() {
        line.sort_by_key(|cell| cell.levels[0]);
        for run in line.chunk_by(|one, next| one.difference == next.difference) {
            let key = (place(run[0].difference), run[0].levels[0], run[run.len() - 1].levels[0]);
            runs.entry(key).or_default().extend(run);
        }
    }
    let region = |((_, from, to), cells): ((usize, u64, u64), Vec<&GridCell>)| {
        let own: BTreeSet<Vec<u64>> = cells.iter().map(|cell| cell.levels[1..].to_vec()).collect();
        let is_everywhere = own.len() == lines_count;
        let bare = Region {
            difference: cells[0].difference,
            cells: cells.iter().map(|cell| cell.cell_id.clone()).collect(),
            levels: (from, to),
            lines: own.into_iter().collect(),
            is_everywhere,
            ratio: None,
            interval: None,
            ratio_range: None,
            arm_range: None,
            baseline_range: None,
            detectable: None,
        };
        measured(bare, grid, effects)
    };
    runs.into_iter().map(region).collect()
}

/// Display order of regions.
fn place(difference: Difference) -> usize {
    let order = [
        Difference::Less,
        Difference::More,
        Difference::Equivalent,
        Difference::Undetected,
        Difference::NotBorneOut,
        Difference::GeneratorLimited,
        Difference::Invalid,
        Difference::Unfinished,
    ];
    order.iter().position(|it| *it == difference).unwrap_or(order.len())
}

/// The region with its figures, if it has valid ones.
fn measured(region: Region, grid: &Grid, effects: &Effects) -> Region {
    let is_told = matches!(
        region.difference,
        Difference::Less | Difference::More | Difference::Equivalent | Difference::Undetected
    );
    if !is_told {
        return region;
    }
    let is_own = |it: &&Effect| {
        it.metric == grid.metric
            && (&it.arm, &it.baseline) == (&grid.arm, &grid.baseline)
            && region.cells.contains(&it.cell_id)
    };
    let own: Vec<&Effect> = effects.comparisons().filter(is_own).collect();
    let estimates: Vec<Estimate> = own.iter().filter_map(|it| estimate(&it.values)).collect();
    // A common interval over cells that may each be equal could exclude no difference, because the cells were grouped
    // by their results.
    let mean = mean_of(&estimates).filter(|_| region.difference != Difference::Undetected);
    let figures = |side: fn((f64, f64)) -> f64| range(own.iter().filter_map(|it| it.figures).map(side));
    let detectable = range(own.iter().filter_map(|it| it.detectable)).map(|(_, largest)| largest);
    let (arm_range, baseline_range) = (figures(|(arm, _)| arm), figures(|(_, baseline)| baseline));
    Region {
        ratio: mean.map(|(ratio, _)| ratio),
        interval: mean.and_then(|(_, interval)| interval),
        ratio_range: range(estimates.iter().map(|estimate| estimate.mean.exp())),
        arm_range,
        baseline_range,
        detectable: detectable.filter(|_| region.difference == Difference::Undetected),
        ..region
    }
}

/// Smallest and largest.
fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |found, value| match found {
        None => Some((value, value)),
        Some((low, high)) => Some((value.min(low), value.max(high))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn here(release: &str, limits: &[(&str, &str)]) -> Fingerprint {
        Fingerprint {
            kernel_release: release.to_owned(),
            limits: limits.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            ..Fingerprint::default()
        }
    }

    #[test]
    fn whether_io_uring_may_be_used_comes_with_what_decides_it() {
        let spec = sample::study(&["epoll", "uring"], 12, 1);
        let fingerprint = here("6.18.44", &[("io_uring_disabled", "0"), ("seccomp", "off")]);
        assert_eq!(access(&spec, &fingerprint, &[], &[]), None, "it did not run");
        let loaded = TrialRecord {
            arm: "uring".to_owned(),
            load: Some(weir_record::load::LoadReport::default()),
            ..TrialRecord::default()
        };
        let found = access(&spec, &fingerprint, &[], &[loaded]).expect("it has such an arm");
        assert_eq!((found.refused, found.disabled, found.is_filtered), (None, Some(0), Some(false)));
        assert!(found.lacking.is_empty());
        let fingerprint = here("5.15.0-91-generic", &[("io_uring_disabled", "2"), ("seccomp", "filter")]);
        let reason = Finding::IoUringDisabled { level: 2 };
        let missing = MissingArm { name: "uring".to_owned(), reason: reason.clone(), unlock: None };
        let found =
            access(&spec, &fingerprint, std::slice::from_ref(&missing), &[]).expect("it has such an arm");
        assert_eq!((found.refused, found.disabled, found.is_filtered), (Some(reason), Some(2), Some(true)));
        assert!(found.lacking.iter().any(|name| name == "buffer-ring"), "{:?}", found.lacking);
        let without = sample::study(&["epoll", "poll"], 12, 1);
        assert_eq!(access(&without, &fingerprint, &[], &[]), None);
        assert!(access(&without, &fingerprint, &[missing], &[]).is_some(), "others stand in for it");
        let old = MissingArm { name: "uring".to_owned(), reason: Finding::IoUringTooOld, unlock: None };
        let found = access(&without, &here("5.4.0", &[]), &[old], &[]).expect("others stand in for it");
        assert_eq!(found.refused, Some(Finding::IoUringTooOld));
    }

    #[test]
    fn two_builds_of_one_server_are_no_choice() {
        let mut spec = sample::study(&["old", "new", "uring"], 12, 1);
        for (arm, program) in spec.arms.iter_mut().zip(["/old/weir", "/new/weir"]) {
            let argv = [program, "serve", "echo"].map(str::to_owned).to_vec();
            arm.subject = Subject::Command { argv };
        }
        assert!(!is_choice(&spec, "new", "old"));
        assert!(is_choice(&spec, "uring", "old"));
    }

    #[test]
    fn an_arm_that_stands_for_an_older_kernel_says_nothing_of_this_one() {
        let mut spec = sample::study(&["epoll", "uring"], 12, 1);
        let Subject::Weir { options, .. } = &mut spec.arms[1].subject else { panic!("it is Weir's own") };
        options.insert("as-on-kernel".to_owned(), "5.7".to_owned());
        let missing = MissingArm { name: "uring".to_owned(), reason: Finding::IoUringTooOld, unlock: None };
        assert_eq!(access(&spec, &here("6.18.44", &[]), &[missing], &[]), None);
    }
}
