//! What remains when the threads of a load have ended.

use std::{any::Any, sync::Arc};

use crate::{
    connection_notes::ConnectionNotes,
    recorder::{FirstFailure, Leftover},
};

/// Protocol-specific state shared by the workers of a load, of a type that only the protocol knows.
pub(crate) type Common = Arc<dyn Any + Send + Sync>;

/// Starts of a window that were never made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MissedStarts {
    /// All of them.
    pub(crate) starts: u64,
    /// Starts for which a connection was free: the generator was late.
    pub(crate) with_free_connection: u64,
    /// Starts that had been due for longer than [`crate::open`] allows.
    pub(crate) overdue: u64,
}

impl MissedStarts {
    /// The sum over all workers.
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
    /// Counts of connections, where they are kept.
    pub(crate) connections: Option<ConnectionNotes>,
    /// The protocol's own counts.
    pub(crate) totals: Option<Box<dyn Any + Send>>,
}

/// Results of all workers after every thread has ended.
pub(crate) struct WorkerOutcomes<'a> {
    /// One per worker.
    pub(crate) each: &'a [Outcome],
    /// What the workers shared.
    pub(crate) common: Common,
}

impl WorkerOutcomes<'_> {
    /// The protocol's own counts of each worker.
    pub(crate) fn totals<T: 'static>(&self) -> impl Iterator<Item = &T> {
        self.each.iter().filter_map(|outcome| outcome.totals.as_ref()?.downcast_ref())
    }

    /// The first failure of all workers.
    pub(crate) fn first_failure(&self) -> Option<&FirstFailure> {
        let failures = self.each.iter().filter_map(|end| end.failure_first.as_ref());
        failures.min_by_key(|first| first.at_ns)
    }

    /// The shared state, if it is of this type.
    pub(crate) fn common<T: 'static>(&self) -> Option<&T> {
        self.common.downcast_ref()
    }
}
