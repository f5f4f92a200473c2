//! What a session tells while it runs.

use weir_judge::{judge::RunningEstimate, rungs::Kept};
use weir_record::{study::MissingArm, trial::TrialRecord};

/// What happens, as it happens. For progress displays; nothing depends on it.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The session begins.
    Started {
        /// Blocks that earlier sessions finished.
        blocks_done: u32,
        /// Blocks of the whole study.
        blocks: u32,
        /// What the others take, at most until the time cap.
        left_ns: u64,
    },
    /// A trial begins.
    TrialStarted {
        /// Cell.
        cell_id: String,
        /// Block.
        block: u32,
        /// Attempt.
        attempt: u32,
        /// Position in the block, from 0.
        position: u32,
        /// Trials in the block.
        trials: u32,
        /// Arm.
        arm: String,
    },
    /// A trial ended.
    TrialFinished {
        /// What was measured.
        trial: Box<TrialRecord>,
    },
    /// A block is on disk.
    BlockStored {
        /// Cell.
        cell_id: String,
        /// Block.
        block: u32,
        /// Attempt.
        attempt: u32,
        /// Blocks of the schedule on disk; further attempts do not count.
        blocks_done: u32,
        /// Blocks of the whole study.
        blocks: u32,
        /// What the others take, at the pace of those that ran and at most until the time cap.
        left_ns: u64,
    },
    /// What the primary comparison looks like so far. The schedule goes on whatever it is, and nothing is decided by
    /// it.
    SoFar {
        /// The estimate.
        estimate: RunningEstimate,
    },
    /// The pilots fixed the rate of an open-loop cell.
    RateFixed {
        /// Cell.
        cell_id: String,
        /// Messages a second.
        rate_per_second: f64,
    },
    /// An arm missed the rate of the deciding cell too often, so that a lower rate decides.
    Descended {
        /// The cell that decided until now.
        from: String,
        /// The one that decides from here on.
        to: String,
        /// The arm that kept the rate least often: slices or trials that kept it, and all.
        least_kept: Kept,
    },
    /// A cell is not run: no arm runs in the pilot from which its rate would come.
    LeftOut {
        /// Cell.
        cell_id: String,
        /// What went wrong with one of them.
        reason: String,
    },
    /// The machine is in its far state, and blocks wait to be repeated in the near one.
    WaitingForNear {
        /// Blocks that wait.
        blocks: u32,
    },
    /// An arm was given up.
    ArmMissing {
        /// Which one and why.
        arm: Box<MissingArm>,
    },
}
