//! Counters of a journal, readable from any thread.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use weir_engine::time::{Instant, monotonic};
use weir_record::orders::JournalStats;

use super::{Level, Lsn};
use crate::counter::Counter;

/// Counters of one journal. They count from its opening; its own thread writes them.
#[derive(Debug)]
pub struct JournalCounters {
    worker: u16,
    level: Level,
    /// On the kernel's monotonic clock; 0 if no commit is under way.
    commit_begun_ns: Counter,
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
    pub(super) fn new(worker: u16, level: Level, durable: Lsn) -> Self {
        Self {
            worker,
            level,
            commit_begun_ns: Counter::default(),
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

    /// Records that a batch is being written from now on.
    pub(super) fn begin(&self, now: Instant) {
        self.commit_begun_ns.set(now.as_nanos());
    }

    /// Records a durable batch.
    pub(super) fn committed(&self, records: u64, bytes: u64, took: Duration, last: Lsn) {
        self.commit_begun_ns.set(0);
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

    /// The worker that writes it.
    pub fn worker(&self) -> u16 {
        self.worker
    }

    /// How long the commit under way has been, at this time of the kernel's monotonic clock; 0 if there is none, or if
    /// the journal has failed.
    pub fn waiting_ns(&self, now: Instant) -> u64 {
        match self.commit_begun_ns.get() {
            0 => 0,
            _ if self.is_failed() => 0,
            begun_ns => now.as_nanos().saturating_sub(begun_ns),
        }
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
        stats.waiting_ns = stats.waiting_ns.max(self.waiting_ns(monotonic()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_workers_add_up_and_maxima_stay_maxima() {
        let of = |worker, durable| JournalCounters::new(worker, Level::Disk, durable);
        let (first, second) = (of(0, 5), of(1, 0));
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
            ..JournalStats::default()
        };
        assert_eq!(stats, expected);
        assert_eq!((first.commit_ns_total(), first.commit_ns_max(), first.durable_lsn()), (30, 20, 9));
    }

    #[test]
    fn a_commit_under_way_is_waited_for_until_it_is_over_or_the_journal_has_failed() {
        let at = Instant::from_nanos;
        let counters = JournalCounters::new(3, Level::Disk, 0);
        assert_eq!((counters.worker(), counters.waiting_ns(at(9))), (3, 0));
        counters.begin(at(100));
        assert_eq!([99, 100, 150].map(|now| counters.waiting_ns(at(now))), [0, 0, 50]);
        counters.committed(1, 40, Duration::from_nanos(60), 1);
        assert_eq!(counters.waiting_ns(at(200)), 0);
        counters.begin(at(200));
        counters.failed();
        assert_eq!(counters.waiting_ns(at(300)), 0);
    }
}
