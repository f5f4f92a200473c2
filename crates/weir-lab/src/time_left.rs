//! Estimates how much longer a study takes: the planned time of the blocks that are left, at the pace of those that
//! ran. Pure, so that a session and a process that follows its store report the same.

use std::collections::{BTreeMap, BTreeSet};

use weir_judge::missing;
use weir_record::{
    spec::{ArmSpec, CellSpec, StudySpec},
    study::MissingArm,
    trial::TrialRecord,
};

use crate::outline;

/// The planned pace has the weight of blocks of this length, in nanoseconds, so that the first few blocks do not
/// decide.
const TRUSTED_NS: f64 = 30e9;

/// Longest pause between two blocks of one session, for starting servers and for waiting for the machine's state. A
/// longer pause is one between sessions.
const PAUSE_NS: u64 = 60_000_000_000;

/// Estimated time of the blocks that have not run, in nanoseconds. Repeats because of noise count in the pace of the
/// blocks that ran; the plan does not contain them.
pub fn left_ns(spec: &StudySpec, trials: &[&TrialRecord], missing: &[MissingArm]) -> u64 {
    left_beyond_ns(spec, trials, missing, &BTreeMap::new())
}

/// The same if more blocks of some cells ran than there are trials here: this many more, the next ones in the order
/// of the plan. The pace is that of the trials.
pub fn left_beyond_ns(
    spec: &StudySpec,
    trials: &[&TrialRecord],
    missing: &[MissingArm],
    beyond: &BTreeMap<String, u32>,
) -> u64 {
    let is_there = |arm: &ArmSpec| missing.iter().all(|gone| gone.name != arm.name);
    let spec =
        &StudySpec { arms: spec.arms.iter().filter(|arm| is_there(arm)).cloned().collect(), ..spec.clone() };
    if spec.arms.is_empty() {
        return 0;
    }
    let ran = blocks(trials);
    let (mut left, mut planned, mut took) = (0.0, 0.0, 0.0);
    for cell in &spec.cells {
        let own = ran.get(cell.id.as_str());
        let done: BTreeSet<u32> = own.into_iter().flat_map(|it| it.keys().map(|(block, _)| *block)).collect();
        if own.is_none() || !is_over(spec, cell, trials) {
            let beyond = beyond.get(&cell.id).copied().unwrap_or(0) as usize;
            let to_run = (0..cell.blocks).filter(|block| !done.contains(block)).skip(beyond);
            left += to_run.map(|block| outline::block_ns(spec, cell, block) as f64).sum::<f64>();
        }
        left += outline::pilots_ns(spec, cell) as f64;
        for ((block, _), length) in own.into_iter().flatten() {
            planned += outline::block_ns(spec, cell, *block) as f64;
            took += *length as f64;
        }
    }
    (left * ((took + TRUSTED_NS) / (planned + TRUSTED_NS))) as u64
}

/// Blocks and attempts, each with its length.
type Lengths = BTreeMap<(u32, u32), u64>;

/// Length of each attempt at a block, by cell, measured from the end of the attempt before, so that starting and
/// ending its servers counts, as it does in a plan. Arms that take turns have one length: their round's.
fn blocks<'t>(trials: &[&'t TrialRecord]) -> BTreeMap<&'t str, Lengths> {
    let mut spans: BTreeMap<(&str, u32, u32), (u64, u64)> = BTreeMap::new();
    for trial in trials {
        let ended = trial.started_ns.saturating_add(trial.elapsed_ns);
        let key = (trial.cell_id.as_str(), trial.block, trial.attempt);
        let span = spans.entry(key).or_insert((trial.started_ns, ended));
        *span = (span.0.min(trial.started_ns), span.1.max(ended));
    }
    let mut in_order: Vec<_> = spans.into_iter().collect();
    in_order.sort_by_key(|(_, (began, _))| *began);
    let mut all: BTreeMap<&str, Lengths> = BTreeMap::new();
    let mut before = 0;
    for ((cell, block, attempt), (began, ended)) in in_order {
        // After a longer pause the study was resumed.
        let since = if began.saturating_sub(before) < PAUSE_NS { before.min(began) } else { began };
        all.entry(cell).or_default().insert((block, attempt), ended.saturating_sub(since));
        before = before.max(ended);
    }
    all
}

/// Whether nothing is left in the cell that could be compared.
fn is_over(spec: &StudySpec, cell: &CellSpec, trials: &[&TrialRecord]) -> bool {
    missing::is_over(spec, cell, trials.iter().copied())
}

#[cfg(test)]
mod tests {
    use weir_judge::sample;

    use super::*;

    const BLOCKS: u32 = 40;

    fn spec() -> StudySpec {
        sample::study(&["epoll", "uring"], BLOCKS, 1)
    }

    /// Blocks that took this many times the planned time.
    fn ran(spec: &StudySpec, blocks: u32, times: u64) -> Vec<TrialRecord> {
        let length = times * outline::block_ns(spec, &spec.cells[0], 0);
        let of_block = |block: u32| {
            ["epoll", "uring", "epoll"].map(|arm| TrialRecord {
                started_ns: u64::from(block) * length,
                elapsed_ns: length,
                ..sample::trial(&spec.cells[0].id, arm, block, 5.0)
            })
        };
        (0..blocks).flat_map(of_block).collect()
    }

    #[test]
    fn a_study_that_has_not_begun_takes_as_long_as_it_is_planned_and_a_finished_one_no_longer() {
        let spec = spec();
        assert_eq!(left_ns(&spec, &[], &[]), outline::study_ns(&spec));
        let all = ran(&spec, BLOCKS, 1);
        assert_eq!(left_ns(&spec, &all.iter().collect::<Vec<_>>(), &[]), 0);
    }

    #[test]
    fn what_is_left_goes_on_at_the_pace_of_what_ran() {
        let spec = spec();
        let half = outline::study_ns(&spec) as f64 / 2.0;
        let left = |times: u64| {
            let ran = ran(&spec, BLOCKS / 2, times);
            left_ns(&spec, &ran.iter().collect::<Vec<_>>(), &[]) as f64 / half
        };
        assert!((left(1) - 1.0).abs() < 1e-6, "{}", left(1));
        assert!((1.6..2.0).contains(&left(2)), "{}", left(2));
        let few = ran(&spec, 1, 10);
        let told = left_ns(&spec, &few.iter().collect::<Vec<_>>(), &[]) as f64 / (2.0 * half);
        assert!(told < 3.0, "one slow block does not decide: {told}");
    }

    #[test]
    fn blocks_that_are_only_counted_are_not_left() {
        let spec = spec();
        let half = ran(&spec, BLOCKS / 2, 2);
        let trials: Vec<&TrialRecord> = half.iter().collect();
        let left = |beyond: u32| {
            let beyond = BTreeMap::from([(spec.cells[0].id.clone(), beyond)]);
            left_beyond_ns(&spec, &trials, &[], &beyond) as f64 / left_ns(&spec, &trials, &[]) as f64
        };
        assert!(
            (left(0) - 1.0).abs() < 1e-6 && (left(BLOCKS / 4) - 0.5).abs() < 1e-6,
            "{}",
            left(BLOCKS / 4)
        );
        assert_eq!(left(BLOCKS / 2), 0.0);
        assert_eq!(left(BLOCKS), 0.0, "more than are planned");
    }

    #[test]
    fn what_lies_between_two_blocks_is_part_of_their_pace() {
        let spec = spec();
        let length = outline::block_ns(&spec, &spec.cells[0], 0);
        // Half of a block's time is the start of its servers.
        let ran: Vec<TrialRecord> = ran(&spec, BLOCKS / 2, 1)
            .into_iter()
            .map(|trial| TrialRecord {
                elapsed_ns: length / 2,
                started_ns: trial.started_ns + length / 2,
                ..trial
            })
            .collect();
        let left = left_ns(&spec, &ran.iter().collect::<Vec<_>>(), &[]) as f64;
        let planned = outline::study_ns(&spec) as f64 / 2.0;
        assert!((0.95..1.05).contains(&(left / planned)), "{}", left / planned);
    }

    #[test]
    fn a_night_between_two_sessions_is_not() {
        let spec = spec();
        let night = 8 * 3600 * 1_000_000_000;
        let mut ran = ran(&spec, BLOCKS / 2, 1);
        for trial in ran.iter_mut().filter(|trial| trial.block >= BLOCKS / 4) {
            trial.started_ns += night;
        }
        let left = left_ns(&spec, &ran.iter().collect::<Vec<_>>(), &[]) as f64;
        let planned = outline::study_ns(&spec) as f64 / 2.0;
        assert!((0.95..1.05).contains(&(left / planned)), "{}", left / planned);
    }

    #[test]
    fn an_arm_that_is_missing_takes_no_time() {
        let spec = spec();
        let reason = weir_record::finding::Finding::InstallProgram;
        let gone = MissingArm { name: "uring".to_owned(), reason, unlock: None };
        assert!(left_ns(&spec, &[], &[gone]) < outline::study_ns(&spec));
    }
}
