//! A fault injection point below the journal, for tests: disk operations can be observed, delayed, refused, or done
//! in part.
//!
//! No configuration can enable it. A fault behaves like a disk: a delayed operation has not returned, a refused one
//! was not done, and after a partial write the first bytes are in the file.

use std::{io, rc::Rc};

use super::Position;

/// An operation that the journal is about to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A segment is created.
    Create {
        /// Its number.
        segment: u64,
    },
    /// A batch is written.
    Write {
        /// Its position.
        at: Position,
        /// Its length.
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

/// The verdict on an operation.
#[derive(Debug)]
pub enum Verdict {
    /// It is done.
    Pass,
    /// It is not done.
    Refuse(io::Error),
    /// For a write, this many bytes are written. Any other operation is not done.
    Part(usize, io::Error),
    /// It has not returned yet: it is judged again after a moment.
    Hold,
}

/// Judges each operation before it begins, and again as long as it is delayed.
pub type Faults = Rc<dyn Fn(&Operation) -> Verdict>;
