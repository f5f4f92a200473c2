//! What a journal has done, readable from any thread.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use weir_record::orders::JournalStats;

use super::{Level, Lsn};

/// Counters of one journal. They count from its opening; its own thread writes them.
#[derive(Debug)]
pub struct JournalCounters {
    level: Level,
    records: AtomicU64,
    bytes: AtomicU64,
    commits: AtomicU64,
    records_per_commit_max: AtomicU64,
    commit_ns_total: AtomicU64,
    commit_ns_max: AtomicU64,
    durable_lsn: AtomicU64,
    is_failed: AtomicBool,
}

impl JournalCounters {
    pub(super) fn new(level: Level, durable: Lsn) -> Self {
        Self {
            level,
            records: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            records_per_commit_max: AtomicU64::new(0),
            commit_ns_total: AtomicU64::new(0),
            commit_ns_max: AtomicU64::new(0),
            durable_lsn: AtomicU64::new(durable),
            is_failed: AtomicBool::new(false),
        }
    }

    /// A batch is durable.
    pub(super) fn committed(&self, records: u64, bytes: u64, took: Duration, last: Lsn) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        // There is one writer, so that nothing is added twice or lost.
        let add = |counter: &AtomicU64, amount| counter.store(counter.load(Relaxed) + amount, Relaxed);
        let raise = |counter: &AtomicU64, value| counter.store(counter.load(Relaxed).max(value), Relaxed);
        add(&self.records, records);
        add(&self.bytes, bytes);
        add(&self.commits, 1);
        add(&self.commit_ns_total, took);
        raise(&self.records_per_commit_max, records);
        raise(&self.commit_ns_max, took);
        self.durable_lsn.store(last, Relaxed);
    }

    /// Nothing more becomes durable: because of the disk, or because a record was not taken.
    pub(crate) fn failed(&self) {
        self.is_failed.store(true, Relaxed);
    }

    /// Records that became durable.
    pub fn records(&self) -> u64 {
        self.records.load(Relaxed)
    }

    /// Bytes written, padding included.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Commits: one write, and at level `disk` one sync, each.
    pub fn commits(&self) -> u64 {
        self.commits.load(Relaxed)
    }

    /// Time of all commits together.
    pub fn commit_ns_total(&self) -> u64 {
        self.commit_ns_total.load(Relaxed)
    }

    /// Time of the longest commit.
    pub fn commit_ns_max(&self) -> u64 {
        self.commit_ns_max.load(Relaxed)
    }

    /// Number of the last record that is durable, those of earlier runs included.
    pub fn durable_lsn(&self) -> Lsn {
        self.durable_lsn.load(Relaxed)
    }

    /// Whether a write or a sync has failed, or whoever appends has given up because a record was not taken.
    pub fn is_failed(&self) -> bool {
        self.is_failed.load(Relaxed)
    }

    /// Adds these to those of other workers.
    pub fn add_to(&self, stats: &mut JournalStats) {
        stats.level = self.level.name().to_owned();
        stats.records += self.records();
        stats.bytes += self.bytes();
        stats.commits += self.commits();
        stats.records_per_commit_max =
            stats.records_per_commit_max.max(self.records_per_commit_max.load(Relaxed));
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
