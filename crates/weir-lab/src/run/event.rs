//! Events of a session while it runs.

use weir_judge::{rungs::Kept, running::RunningEstimate};
use weir_record::{study::MissingArm, trial::TrialRecord};

/// An event, sent when it happens. It is for progress displays; the measurement does not depend on it.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The session begins.
    Started {
        /// Blocks that earlier sessions finished.
        blocks_done: u32,
        /// Blocks of the whole study.
        blocks: u32,
        /// Estimated time of the remaining blocks, at most until the time cap.
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
        /// Its record.
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
        /// Estimated time of the remaining blocks, at the pace of those that ran and at most until the time cap.
        left_ns: u64,
    },
    /// A running estimate of the primary comparison. It decides nothing: the schedule goes on for any estimate.
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
    /// An arm missed the rate of the deciding cell too often, so a lower rate decides.
    Descended {
        /// The cell that decided until now.
        from: String,
        /// The cell that decides from now on.
        to: String,
        /// The arm that kept the rate least often: slices or trials that kept it, and all.
        least_kept: Kept,
    },
    /// A cell does not run, because no arm runs in the pilot that would determine its rate.
    LeftOut {
        /// Cell.
        cell_id: String,
        /// The failure of one of the arms.
        reason: String,
    },
    /// The machine is in its far state, and blocks wait to be repeated in the near one.
    WaitingForNear {
        /// Number of such blocks.
        blocks: u32,
    },
    /// An arm was given up.
    ArmMissing {
        /// The arm and the reason.
        arm: Box<MissingArm>,
    },
}
