//! What is left when the threads of a load have ended.

use std::{any::Any, sync::Arc};

use crate::{
    connection_notes::ConnectionNotes,
    recorder::{FirstFailure, Leftover},
};

/// What the workers of a load share for its protocol alone, of a type that only the protocol knows.
pub(crate) type Common = Arc<dyn Any + Send + Sync>;

/// Starts of a window that were never made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MissedStarts {
    /// All of them.
    pub(crate) starts: u64,
    /// Those for which a connection was free: the generator was late.
    pub(crate) with_free_connection: u64,
    /// Those that had been due for long.
    pub(crate) overdue: u64,
}

impl MissedStarts {
    /// Those of all workers.
    pub(crate) fn sum(of: impl Iterator<Item = Self>) -> Self {
        of.fold(Self::default(), |sum, more| Self {
            starts: sum.starts + more.starts,
            with_free_connection: sum.with_free_connection + more.with_free_connection,
            overdue: sum.overdue + more.overdue,
        })
    }
}

/// What a worker leaves behind.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) leftover: Leftover,
    pub(crate) missed: MissedStarts,
    /// Messages completed since the beginning.
    pub(crate) completed: u64,
    pub(crate) failure_first: Option<FirstFailure>,
    /// Where what becomes of connections is kept.
    pub(crate) connections: Option<ConnectionNotes>,
    /// What only the protocol counted.
    pub(crate) totals: Option<Box<dyn Any + Send>>,
}

/// What all workers have left when every thread has ended.
pub(crate) struct WorkerOutcomes<'a> {
    /// One of each worker.
    pub(crate) each: &'a [Outcome],
    /// What they shared.
    pub(crate) common: Common,
}

impl WorkerOutcomes<'_> {
    /// What only the protocol counted, of each worker.
    pub(crate) fn totals<T: 'static>(&self) -> impl Iterator<Item = &T> {
        self.each.iter().filter_map(|outcome| outcome.totals.as_ref()?.downcast_ref())
    }

    /// What the workers shared, if it is of this kind.
    pub(crate) fn common<T: 'static>(&self) -> Option<&T> {
        self.common.downcast_ref()
    }
}
