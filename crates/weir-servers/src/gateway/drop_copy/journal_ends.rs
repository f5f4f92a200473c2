//! How far the journals of the gateway's workers are durable, for the thread that copies them, and how far it is.

use std::{
    collections::BTreeMap,
    rc::Rc,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

use crate::journal::{Journal, Lsn, Position};

/// The journals by worker: those that are written, and those that earlier starts left.
#[derive(Debug)]
pub(in crate::gateway) struct JournalEnds {
    all: BTreeMap<u16, JournalEnd>,
    is_stuck: AtomicBool,
}

#[derive(Debug, Default)]
struct JournalEnd {
    /// The end of the last durable record, and its number. A worker holds this lock for two moves, once in a commit.
    durable: Mutex<(Position, Lsn)>,
    /// Number of the last record that was looked at.
    seen: AtomicU64,
}

impl JournalEnds {
    /// The ends that a recovery has found, and those of the workers that have no journal yet.
    pub(in crate::gateway) fn new(recovered: &BTreeMap<u16, (Position, Lsn)>, workers: usize) -> Arc<Self> {
        let new = (0..workers).map(|worker| (worker as u16, JournalEnd::default()));
        let known = recovered.iter().map(|(worker, end)| {
            (*worker, JournalEnd { durable: Mutex::new(*end), seen: AtomicU64::default() })
        });
        Arc::new(Self { all: new.chain(known).collect(), is_stuck: AtomicBool::default() })
    }

    /// Notes each commit of a journal from now on.
    pub(in crate::gateway) fn follow(self: &Arc<Self>, journal: &Rc<Journal>) {
        let (ends, worker) = (Arc::clone(self), journal.counters().worker());
        let weak = Rc::downgrade(journal);
        journal.on_durable(Box::new(move |durable| {
            if let (Some(journal), Some(end)) = (weak.upgrade(), ends.all.get(&worker)) {
                *end.durable.lock().unwrap_or_else(PoisonError::into_inner) =
                    (journal.durable_end(), durable);
            }
        }));
    }

    pub(super) fn workers(&self) -> impl Iterator<Item = u16> {
        self.all.keys().copied()
    }

    /// The end of the last durable record of a worker.
    pub(super) fn durable(&self, worker: u16) -> Position {
        self.all.get(&worker).map(|end| end.get().0).unwrap_or_default()
    }

    /// This record of a worker, and everything before it, was looked at.
    pub(super) fn note_seen(&self, worker: u16, lsn: Lsn) {
        if let Some(end) = self.all.get(&worker) {
            end.seen.store(lsn, Relaxed);
        }
    }

    /// Durable records that were not looked at yet in this start.
    pub(super) fn behind(&self) -> u64 {
        self.all.values().map(|end| end.get().1.saturating_sub(end.seen.load(Relaxed))).sum()
    }

    /// Whether a journal cannot be read.
    pub(super) fn is_stuck(&self) -> bool {
        self.is_stuck.load(Relaxed)
    }

    pub(super) fn set_stuck(&self, is_stuck: bool) {
        self.is_stuck.store(is_stuck, Relaxed);
    }
}

impl JournalEnd {
    fn get(&self) -> (Position, Lsn) {
        *self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journals_of_earlier_starts_and_new_ones_have_ends() {
        let end = Position { segment: 2, offset: 640 };
        let ends = JournalEnds::new(&BTreeMap::from([(0, (end, 9)), (3, (end, 5))]), 2);
        assert_eq!(ends.workers().collect::<Vec<_>>(), [0, 1, 3]);
        assert_eq!(
            [0, 1, 3, 7].map(|worker| ends.durable(worker)),
            [end, Position::default(), end, Position::default()]
        );
        assert_eq!(ends.behind(), 14);
        ends.note_seen(0, 7);
        ends.note_seen(3, 5);
        assert_eq!(ends.behind(), 2);
    }
}
