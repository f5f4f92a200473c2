//! A stored study as it is judged now: also when its session was killed before it could judge, and while one writes it;
//! and two of them side by side.

use std::path::Path;

use weir_judge::{
    compare::{Run, compare},
    judge::{self, Judged},
    missing::missing_arms,
    progress::Progress,
};
use weir_record::{
    goal::ComparisonSpec,
    run_pair::RunPair,
    study::{MissingArm, StudyResult},
    trial::TrialRecord,
};
use weir_store::{Store, StoreError};

/// A stored study that can be held against another.
#[derive(Clone, Debug)]
pub struct StoredRun {
    /// What it comes to.
    pub result: StudyResult,
    /// How far it is.
    pub progress: Progress,
}

impl StoredRun {
    /// Judges the study in a run folder.
    pub fn read(folder: &Path) -> Result<Self, StoreError> {
        Self::read_asking(folder, Vec::new())
    }

    /// The same with further comparisons and goals than the study asked.
    pub fn read_asking(folder: &Path, further: Vec<ComparisonSpec>) -> Result<Self, StoreError> {
        let (result, trials) = read_asking(folder, further)?;
        Ok(Self::of(result, &trials))
    }

    /// A study that is judged already, with its trials.
    pub fn of(result: StudyResult, trials: &[TrialRecord]) -> Self {
        let progress = Progress::of(&result.spec, &trials.iter().collect::<Vec<_>>(), &result.missing_arms);
        Self { result, progress }
    }

    /// How it differs from an earlier run, and what thresholds on changes say of that.
    pub fn against(&self, earlier: &Self, thresholds: &[ComparisonSpec]) -> RunPair {
        compare(earlier.run(), self.run(), thresholds)
    }

    /// What is compared and pooled.
    pub fn run(&self) -> Run<'_> {
        Run { result: &self.result, progress: &self.progress }
    }
}

/// Judges the study in a run folder from its blocks. Gives the trials too, pilots included, in the order they ran.
pub fn read(folder: &Path) -> Result<(StudyResult, Vec<TrialRecord>), StoreError> {
    read_asking(folder, Vec::new())
}

fn read_asking(
    folder: &Path,
    further: Vec<ComparisonSpec>,
) -> Result<(StudyResult, Vec<TrialRecord>), StoreError> {
    let store = Store::open_read_only(folder)?;
    let mut header = store.study()?;
    header.spec.comparisons.extend(further);
    let trials: Vec<TrialRecord> = store.blocks()?.into_iter().flat_map(|block| block.trials).collect();
    let mut known = header.missing_arms.clone();
    for arm in never_tried(&store, &trials) {
        if known.iter().all(|other| other.name != arm.name) {
            known.push(arm);
        }
    }
    let missing = missing_arms(&header.spec, &known, trials.iter());
    let judged = judge::judge(&Judged {
        spec: &header.spec,
        fingerprint: &header.fingerprint,
        trials: &trials,
        missing_arms: &missing,
        elapsed_ns: header.elapsed_ns,
        reproduce: &header.reproduce,
    });
    let result = StudyResult { period: store.period(None)?, ..judged };
    Ok((result, trials))
}

/// Arms that the last session did without before it tried them, so that no trial tells of them.
fn never_tried(store: &Store, trials: &[TrialRecord]) -> Vec<MissingArm> {
    // Results of every version tell it. What cannot be read is damaged, and the trials are judged all the same.
    let judged = store.result_brief().ok().flatten().map(|brief| brief.missing_arms).unwrap_or_default();
    judged.into_iter().filter(|arm| trials.iter().all(|trial| trial.arm != arm.name)).collect()
}
