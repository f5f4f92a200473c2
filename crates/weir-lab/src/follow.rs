//! A study that a session works on, as far as it is stored: what `weir study` shows while it runs, for others to see.
//! It reads blocks that are new since it last looked, and has the judge say what they come to so far.

use std::path::Path;

use weir_judge::{
    judge::{RunningEstimate, so_far},
    missing::missing_arms,
    progress::Progress,
};
use weir_record::{finding::MessageKind, spec::Text, trial::TrialRecord};
use weir_store::{Store, StoreError};

/// What was read of a study so far.
#[derive(Clone, Debug, Default)]
pub struct Follower {
    /// Without what only reports show of them.
    trials: Vec<TrialRecord>,
    last_block: i64,
    last_cell: String,
}

/// How far a study is, and what its primary comparison looks like before anything is decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Followed {
    /// The study's name.
    pub name: String,
    /// Its question.
    pub title: Text,
    /// What is counted.
    pub kind: MessageKind,
    /// How far it is.
    pub progress: Progress,
    /// The cell of the block that was stored last; empty before the first.
    pub last_cell: String,
    /// Absent with fewer rounds or blocks than would decide anything.
    pub estimate: Option<RunningEstimate>,
    /// Time of all sessions when that block was stored.
    pub elapsed_ns: u64,
}

impl Follower {
    /// Reads what is new in the run folder.
    pub fn look(&mut self, folder: &Path) -> Result<Followed, StoreError> {
        let store = Store::open_read_only(folder)?;
        let header = store.study()?;
        for (number, block) in store.blocks_after(self.last_block)? {
            self.last_block = number;
            self.last_cell = block.key.cell_id;
            self.trials.extend(block.trials.into_iter().map(brief));
        }
        let missing = missing_arms(&header.spec, &header.missing_arms, self.trials.iter());
        let trials: Vec<&TrialRecord> = self.trials.iter().collect();
        Ok(Followed {
            progress: Progress::of(&header.spec, &trials, &missing),
            estimate: so_far(&header.spec, &trials),
            last_cell: self.last_cell.clone(),
            kind: MessageKind::of_study(&header.spec),
            name: header.spec.name,
            title: header.spec.title,
            elapsed_ns: header.elapsed_ns,
        })
    }
}

/// A trial without its histograms and its evidence: most of its bytes, and in no running estimate.
fn brief(mut trial: TrialRecord) -> TrialRecord {
    trial.evidence.clear();
    if let Some(load) = &mut trial.load {
        load.response.histogram_v2_base64.clear();
        load.service.histogram_v2_base64.clear();
    }
    trial
}
