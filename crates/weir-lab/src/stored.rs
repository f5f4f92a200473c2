//! Judges a stored study as it is now: also if its session was killed before it could judge, and while a session
//! writes it. Compares two of them.

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

/// A stored study that can be compared with another.
#[derive(Clone, Debug)]
pub struct StoredRun {
    /// The judged result.
    pub result: StudyResult,
    /// Progress of the study.
    pub progress: Progress,
}

impl StoredRun {
    /// Judges the study in a run folder.
    pub fn read(folder: &Path) -> Result<Self, StoreError> {
        Self::read_asking(folder, Vec::new())
    }

    /// Judges it with further comparisons and goals beyond those of the study.
    pub fn read_asking(folder: &Path, further: Vec<ComparisonSpec>) -> Result<Self, StoreError> {
        let (result, trials) = read_asking(folder, further)?;
        Ok(Self::of(result, &trials))
    }

    /// A study that is judged already, with its trials.
    pub fn of(result: StudyResult, trials: &[TrialRecord]) -> Self {
        let progress = Progress::of(&result.spec, &trials.iter().collect::<Vec<_>>(), &result.missing_arms);
        Self { result, progress }
    }

    /// Differences from an earlier run, and the outcome of thresholds on these changes.
    pub fn against(&self, earlier: &Self, thresholds: &[ComparisonSpec]) -> RunPair {
        compare(earlier.run(), self.run(), thresholds)
    }

    /// The part that is compared and pooled.
    pub fn run(&self) -> Run<'_> {
        Run { result: &self.result, progress: &self.progress }
    }
}

/// Judges the study in a run folder from its blocks. Returns the trials too, including pilots, in the order they ran.
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
    let (period, created_unix_s) = (store.period(None)?, store.created_unix_s()?);
    let result = StudyResult { period, created_unix_s, ..judged };
    Ok((result, trials))
}

/// Arms that the last session left out before trying them, so that no trial records them.
fn never_tried(store: &Store, trials: &[TrialRecord]) -> Vec<MissingArm> {
    // Results of every version record this. An unreadable result is damaged; the trials are judged anyway.
    let judged = store.result_brief().ok().flatten().map(|brief| brief.missing_arms).unwrap_or_default();
    judged.into_iter().filter(|arm| trials.iter().all(|trial| trial.arm != arm.name)).collect()
}
