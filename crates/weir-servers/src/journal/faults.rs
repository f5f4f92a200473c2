//! A seam below the journal, for tests: what it asks of the disk can be watched, held up, refused, or done in part.
//!
//! It is no part of any configuration. What a fault does is what a disk does: an operation that is held up has not
//! returned, one that is refused was not done, and of a write that is done in part the first bytes are in the file.

use std::{io, rc::Rc};

use super::Position;

/// Something the journal is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A segment is made.
    Create {
        /// Its number.
        segment: u64,
    },
    /// A batch is written.
    Write {
        /// Where.
        at: Position,
        /// How much.
        bytes: usize,
    },
    /// A segment is synced.
    Sync {
        /// Its number.
        segment: u64,
    },
    /// The names in the folder are synced.
    SyncDirectory,
}

/// What becomes of it.
#[derive(Debug)]
pub enum Verdict {
    /// It is done.
    Pass,
    /// It is not done.
    Refuse(io::Error),
    /// Of a write, so many bytes are done. Anything else is not done.
    Part(usize, io::Error),
    /// It has not returned yet: after a moment it is judged again.
    Hold,
}

/// Judges each operation before it is begun, and again for as long as it is held up.
pub type Faults = Rc<dyn Fn(&Operation) -> Verdict>;
