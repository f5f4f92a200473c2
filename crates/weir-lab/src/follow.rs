//! Follows a running study from its store: what `weir study` shows while it runs, for other processes. Each look
//! reads the blocks that are new since the last one and has the judge estimate the result so far. It
//! keeps the first trials of a study of days, at most [`FOLLOWED_TRIALS_MAX`] with at most [`FOLLOWED_SLICES_MAX`]
//! slices, and for most of these only what shows the progress. It only counts the blocks stored after them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use weir_judge::{
    judge,
    missing::{is_given_up, missing_arms},
    progress::Progress,
    running::{self, RunningEstimate},
};
use weir_record::{
    finding::{Finding, MessageKind},
    load::LoadReport,
    running::{CellSoFar, TrackPoint},
    spec::{ArmSpec, CellRole, CellSpec, StudySpec},
    study::{MissingArm, StudyResult},
    trial::TrialRecord,
};
use weir_store::{Store, StoreError, StoredBlock};

/// Most trials of a study that are kept. The estimate of a longer study stays at these; its report uses all trials.
pub const FOLLOWED_TRIALS_MAX: usize = 20_000;

/// Most slices of these trials: twenty for each of the maximum number of trials. A study has more slices a trial only
/// if its file asks for them.
pub const FOLLOWED_SLICES_MAX: usize = 20 * FOLLOWED_TRIALS_MAX;

/// Blocks that are read at a time: a trial is many times larger in its store than here.
const BLOCKS_AT_A_TIME: u32 = 64;

use crate::time_left;

/// The logarithm of the ratio of each block that is done, by cell.
type RatiosOfBlocks = BTreeMap<String, BTreeMap<u32, f64>>;

/// The part of a study that was read so far.
#[derive(Clone, Debug, Default)]
pub struct Follower {
    /// Trials, without the parts that only reports show.
    trials: Vec<TrialRecord>,
    /// Slices of all of them.
    slices: usize,
    /// By cell and block, the logarithm of the ratio of its first comparison; of blocks that were kept.
    ratios: RatiosOfBlocks,
    /// The study without trials, as it was planned when it was read last.
    plan: Option<Arc<StudyResult>>,
    last_block: i64,
    /// There is more in the store than fits.
    is_full: bool,
}

/// Progress of a study, and an estimate of its primary comparison before there is a verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Followed {
    /// The study without trials: its name, its question and the names of its cells.
    pub plan: Arc<StudyResult>,
    /// The unit that is counted.
    pub kind: MessageKind,
    /// How far it is.
    pub progress: Progress,
    /// The cell of the block that was stored last; empty before the first.
    pub last_cell: String,
    /// Every cell of the plan, in its order.
    pub cells: Vec<CellSoFar>,
    /// Absent while there are fewer rounds or blocks than a verdict needs.
    pub estimate: Option<RunningEstimate>,
    /// How the estimate narrowed; empty while there is none.
    pub track: Vec<TrackPoint>,
    /// Time of all sessions when that block was stored.
    pub elapsed_ns: u64,
    /// More is stored than was read: the estimate, the blocks to repeat and the pace are those of the first trials,
    /// at most [`FOLLOWED_TRIALS_MAX`] with at most [`FOLLOWED_SLICES_MAX`] slices.
    pub is_in_part: bool,
    /// Estimated time of the blocks that are left.
    pub left_ns: u64,
}

impl Follower {
    /// Reads what is new in the run folder.
    pub fn look(&mut self, folder: &Path) -> Result<Followed, StoreError> {
        let store = Store::open_read_only(folder)?;
        let header = store.study()?;
        while !self.is_full {
            let new = store.blocks_after(self.last_block, BLOCKS_AT_A_TIME)?;
            if new.is_empty() {
                break;
            }
            new.into_iter().for_each(|(number, block)| self.take(&header.spec, number, block));
        }
        let mut known = header.missing_arms;
        known.extend(self.left_out(&header.spec, &known));
        let missing = missing_arms(&header.spec, &known, self.trials.iter());
        let trials: Vec<&TrialRecord> = self.trials.iter().collect();
        let unread = self.unread(&store, &header.spec)?;
        let mut progress = Progress::of(&header.spec, &trials, &missing);
        progress.blocks_done = (progress.blocks_done + unread.values().sum::<u32>()).min(progress.blocks);
        let plan = Arc::clone(planned(&mut self.plan, &header.spec));
        Ok(Followed {
            progress,
            estimate: running::so_far(&header.spec, &trials),
            track: running::track(&header.spec, &trials),
            cells: cells(&header.spec, &trials, (&self.ratios, &unread)),
            left_ns: time_left::left_beyond_ns(&header.spec, &trials, &missing, &unread),
            last_cell: store.last_cell()?.unwrap_or_default(),
            kind: MessageKind::of_study(&header.spec),
            plan,
            elapsed_ns: header.elapsed_ns,
            is_in_part: self.is_full,
        })
    }

    /// Keeps a block if all of it fits.
    fn take(&mut self, spec: &StudySpec, number: i64, block: StoredBlock) {
        let is_estimated = spec
            .cells
            .iter()
            .any(|cell| cell.id == block.key.cell_id && (cell.is_rung || cell.role == CellRole::Primary));
        let cell = spec.cells.iter().find(|cell| cell.id == block.key.cell_id);
        let ratio = cell
            .and_then(|cell| running::block_log_ratio(spec, cell, &block.trials.iter().collect::<Vec<_>>()));
        let kept = |trial| if is_estimated { brief(trial) } else { counted(brief(trial)) };
        let trials: Vec<TrialRecord> = block.trials.into_iter().map(kept).collect();
        let slices: usize = trials.iter().map(|trial| trial.slices.len()).sum();
        self.is_full |= self.trials.len() + trials.len() > FOLLOWED_TRIALS_MAX;
        self.is_full |= self.slices + slices > FOLLOWED_SLICES_MAX;
        if self.is_full {
            return;
        }
        if let Some(ratio) = ratio {
            self.ratios.entry(block.key.cell_id).or_default().insert(block.key.block, ratio);
        }
        self.trials.extend(trials);
        self.slices += slices;
        self.last_block = number;
    }

    /// Planned blocks that are stored but did not fit, by cell. Further attempts do not count.
    fn unread(&self, store: &Store, spec: &StudySpec) -> Result<BTreeMap<String, u32>, StoreError> {
        if !self.is_full {
            return Ok(BTreeMap::new());
        }
        let mut read: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
        for trial in &self.trials {
            read.entry(&trial.cell_id).or_default().insert(trial.block);
        }
        let stored = store.brief()?.blocks;
        let of_cell = |id: &String| {
            let read = read.get(id.as_str()).map_or(0, |blocks| blocks.len() as u32);
            Some((id.clone(), stored.get(id)?.saturating_sub(read)))
        };
        Ok(spec.cells.iter().filter_map(|cell| of_cell(&cell.id)).collect())
    }

    /// Arms that the session goes on without: the last block of a cell that has them holds no trial of theirs. The
    /// reason for a refusal is stored when a session ends; until then the blocks show it.
    fn left_out(&self, spec: &StudySpec, known: &[MissingArm]) -> Vec<MissingArm> {
        let is_left_out = |arm: &&ArmSpec| {
            let has_arm =
                |cell_id: &str| spec.cells.iter().any(|cell| cell.id == cell_id && cell.has_arm(&arm.name));
            let Some(last) = self.trials.iter().rev().find(|trial| has_arm(&trial.cell_id)) else {
                return false;
            };
            let of_block = |trial: &TrialRecord| (trial.cell_id.clone(), trial.block, trial.attempt);
            let has_trial = self.trials.iter().any(|it| it.arm == arm.name && of_block(it) == of_block(last));
            !has_trial && !is_given_up(&last.cell_id, &arm.name, self.trials.iter())
        };
        let is_unknown = |arm: &&ArmSpec| known.iter().all(|missing| missing.name != arm.name);
        let arms = spec.arms.iter().filter(is_unknown).filter(is_left_out);
        arms.map(|arm| {
            let reason = Finding::ArmMissing { arm: arm.name.clone() };
            MissingArm { name: arm.name.clone(), reason, unlock: None }
        })
        .collect()
    }
}

/// The study without trials; it is made again only when the plan has changed.
fn planned<'p>(known: &'p mut Option<Arc<StudyResult>>, spec: &StudySpec) -> &'p Arc<StudyResult> {
    if known.as_ref().is_some_and(|plan| plan.spec != *spec) {
        *known = None;
    }
    known.get_or_insert_with(|| Arc::new(judge::judged(spec, &[])))
}

/// The cells of the plan: how many of their blocks are stored, and the ratio of those that are done.
fn cells(
    spec: &StudySpec,
    trials: &[&TrialRecord],
    (ratios, unread): (&RatiosOfBlocks, &BTreeMap<String, u32>),
) -> Vec<CellSoFar> {
    let mut read: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for trial in trials {
        read.entry(&trial.cell_id).or_default().insert(trial.block);
    }
    let one = |cell: &CellSpec| {
        let stored = read.get(cell.id.as_str()).map_or(0, |blocks| blocks.len() as u32);
        let done = (stored + unread.get(&cell.id).copied().unwrap_or_default()).min(cell.blocks);
        let of_blocks = ratios.get(&cell.id).filter(|_| done == cell.blocks);
        let mean = of_blocks.map(|all| all.values().sum::<f64>() / all.len() as f64);
        let ratio = mean.map(f64::exp).filter(|ratio| ratio.is_finite());
        CellSoFar { cell_id: cell.id.clone(), blocks_done: done, blocks: cell.blocks, ratio }
    };
    spec.cells.iter().map(one).collect()
}

/// A trial without its histograms and its evidence, which are most of its bytes and in no running estimate. They are
/// replaced, not cleared, because clearing would keep their memory.
fn brief(mut trial: TrialRecord) -> TrialRecord {
    trial.evidence = Vec::new();
    trial.slices.shrink_to_fit();
    if let Some(load) = &mut trial.load {
        load.response.histogram_v2_base64 = String::new();
        load.service.histogram_v2_base64 = String::new();
        load.seconds = Vec::new();
        if let Some(observed) = &mut load.observed {
            observed.thread_window = None;
        }
    }
    trial
}

/// A trial that only counts: when it ran, in which state, and whether it took turns and gave figures.
fn counted(mut trial: TrialRecord) -> TrialRecord {
    trial.slices.truncate(1);
    trial.slices.shrink_to_fit();
    trial.load = trial.load.map(|_| LoadReport::default());
    trial
}

#[cfg(test)]
mod tests {
    use weir_judge::sample;
    use weir_record::trial::{EvidenceSlice, SliceRecord};
    use weir_store::BlockKey;

    use super::*;

    #[test]
    fn what_is_kept_of_a_day_fits_into_a_hundred_and_some_megabytes() {
        let bytes =
            FOLLOWED_TRIALS_MAX * size_of::<TrialRecord>() + FOLLOWED_SLICES_MAX * size_of::<SliceRecord>();
        assert!(bytes < 128 << 20, "{bytes}");
    }

    #[test]
    fn of_trials_with_many_slices_fewer_are_kept() {
        const LARGE: usize = FOLLOWED_SLICES_MAX / 4;
        let spec = sample::study(&["epoll", "uring"], 9, 1);
        let cell_id = spec.cells[0].id.clone();
        let block = |number: u32, slices: usize| {
            let slices = vec![SliceRecord::default(); slices];
            let trial =
                TrialRecord { cell_id: cell_id.clone(), block: number, slices, ..TrialRecord::default() };
            let key = BlockKey { cell_id: cell_id.clone(), block: number, attempt: 0 };
            StoredBlock { key, trials: vec![trial] }
        };
        let mut follower = Follower::default();
        (0..4).for_each(|number| follower.take(&spec, i64::from(number), block(number, LARGE)));
        assert!(!follower.is_full && follower.slices == FOLLOWED_SLICES_MAX, "as many as is stated");
        follower.take(&spec, 4, block(4, 1));
        assert!(follower.is_full && follower.trials.len() == 4, "and no more");
    }

    #[test]
    fn what_is_left_out_of_a_trial_keeps_no_memory() {
        let mut load = LoadReport::default();
        load.response.histogram_v2_base64 = "histogram".repeat(9);
        load.service.histogram_v2_base64 = "histogram".repeat(9);
        let evidence = vec![EvidenceSlice::default(); 9];
        let left = brief(TrialRecord { evidence, load: Some(load), ..TrialRecord::default() });
        let load = left.load.expect("it has a report");
        let texts = [&load.response.histogram_v2_base64, &load.service.histogram_v2_base64];
        assert_eq!((left.evidence.capacity(), texts.map(String::capacity)), (0, [0, 0]));
    }

    #[test]
    fn of_a_trial_that_only_counts_little_is_left() {
        let trial = TrialRecord {
            slices: vec![SliceRecord::default(); 40],
            load: Some(LoadReport {
                messages: 5,
                seconds: vec![Default::default(); 9],
                ..LoadReport::default()
            }),
            ..TrialRecord::default()
        };
        let left = counted(brief(trial));
        assert_eq!((left.slices.len(), left.load), (1, Some(LoadReport::default())));
    }
}
