//! Counters of a journal, readable from any thread.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use weir_record::orders::JournalStats;

use super::{Level, Lsn};
use crate::counter::Counter;

/// Counters of one journal. They count from its opening; its own thread writes them.
#[derive(Debug)]
pub struct JournalCounters {
    level: Level,
    records: Counter,
    bytes: Counter,
    commits: Counter,
    records_per_commit_max: Counter,
    commit_ns_total: Counter,
    commit_ns_max: Counter,
    durable_lsn: Counter,
    is_failed: AtomicBool,
}

impl JournalCounters {
    pub(super) fn new(level: Level, durable: Lsn) -> Self {
        Self {
            level,
            records: Counter::default(),
            bytes: Counter::default(),
            commits: Counter::default(),
            records_per_commit_max: Counter::default(),
            commit_ns_total: Counter::default(),
            commit_ns_max: Counter::default(),
            durable_lsn: Counter::new(durable),
            is_failed: AtomicBool::new(false),
        }
    }

    /// Records a durable batch.
    pub(super) fn committed(&self, records: u64, bytes: u64, took: Duration, last: Lsn) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.records.add(records);
        self.bytes.add(bytes);
        self.commits.add(1);
        self.commit_ns_total.add(took);
        self.records_per_commit_max.raise_to(records);
        self.commit_ns_max.raise_to(took);
        self.durable_lsn.set(last);
    }

    /// Records that nothing more becomes durable: because of a disk error, or because a record was not taken.
    pub(crate) fn failed(&self) {
        self.is_failed.store(true, Relaxed);
    }

    /// Records that became durable.
    pub fn records(&self) -> u64 {
        self.records.get()
    }

    /// Bytes written, padding included.
    pub fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Commits: one write, and at level `disk` one sync, each.
    pub fn commits(&self) -> u64 {
        self.commits.get()
    }

    /// Time of all commits together.
    pub fn commit_ns_total(&self) -> u64 {
        self.commit_ns_total.get()
    }

    /// Time of the longest commit.
    pub fn commit_ns_max(&self) -> u64 {
        self.commit_ns_max.get()
    }

    /// Number of the last durable record, including those of earlier runs.
    pub fn durable_lsn(&self) -> Lsn {
        self.durable_lsn.get()
    }

    /// Whether a write or a sync has failed, or the appending code has given up because a record was not taken.
    pub fn is_failed(&self) -> bool {
        self.is_failed.load(Relaxed)
    }

    /// Adds these counters to those of other workers.
    pub fn add_to(&self, stats: &mut JournalStats) {
        stats.level = self.level.name().to_owned();
        stats.records += self.records();
        stats.bytes += self.bytes();
        stats.commits += self.commits();
        stats.records_per_commit_max = stats.records_per_commit_max.max(self.records_per_commit_max.get());
        stats.failed |= self.is_failed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_workers_add_up_and_maxima_stay_maxima() {
        let (first, second) = (JournalCounters::new(Level::Disk, 5), JournalCounters::new(Level::Disk, 0));
        first.committed(3, 300, Duration::from_nanos(20), 8);
        first.committed(1, 40, Duration::from_nanos(10), 9);
        second.committed(2, 80, Duration::from_nanos(5), 2);
        second.failed();
        let mut stats = JournalStats::default();
        first.add_to(&mut stats);
        assert!(!stats.failed);
        second.add_to(&mut stats);
        let expected = JournalStats {
            level: "disk".into(),
            records: 6,
            bytes: 420,
            commits: 3,
            records_per_commit_max: 3,
            failed: true,
        };
        assert_eq!(stats, expected);
        assert_eq!((first.commit_ns_total(), first.commit_ns_max(), first.durable_lsn()), (30, 20, 9));
    }
}
