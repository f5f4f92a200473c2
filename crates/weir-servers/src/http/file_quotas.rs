//! Limits how many files all workers of a server may cache together, as entries and as descriptors. The quotas are
//! used only when an entry is added or removed, so a cache hit costs no other core anything.
//!
//! A worker whose share is used up evicts its own entries; one that finds everything taken by others, whose shares
//! were larger when there were fewer workers, does not cache.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rustix::process::{Resource, getrlimit};

/// One in this many of the descriptors that the process may open can be used for cached files.
const DESCRIPTORS_PART: u64 = 4;

/// The quotas of one server.
#[derive(Debug)]
pub(super) struct FileQuotas {
    /// Cached files, in either form.
    pub(super) entries: Quota,
    /// Cached files that are open.
    pub(super) descriptors: Quota,
    workers: AtomicUsize,
}

impl FileQuotas {
    /// Quotas for this many files, with this many descriptors in the process.
    pub(super) fn new(files_max: usize, descriptors_max: Option<u64>) -> Self {
        let descriptors = descriptors_max.map_or(u64::MAX, |most| most / DESCRIPTORS_PART);
        let descriptors = usize::try_from(descriptors).unwrap_or(usize::MAX).min(files_max);
        Self {
            entries: Quota::new(files_max),
            descriptors: Quota::new(descriptors),
            workers: AtomicUsize::new(0),
        }
    }

    /// Quotas for this many files, in this process.
    pub(super) fn in_process(files_max: usize) -> Self {
        Self::new(files_max, getrlimit(Resource::Nofile).current)
    }

    pub(super) fn enter(&self) {
        self.workers.fetch_add(1, Relaxed);
    }

    pub(super) fn leave(&self) {
        self.workers.fetch_sub(1, Relaxed);
    }

    /// One worker's share of a quota.
    pub(super) fn share(&self, quota: &Quota) -> usize {
        (quota.most / self.workers.load(Relaxed).max(1)).max(1)
    }
}

/// A limited number of units that can be taken.
#[derive(Debug)]
pub(super) struct Quota {
    most: usize,
    taken: AtomicUsize,
}

impl Quota {
    fn new(most: usize) -> Self {
        Self { most, taken: AtomicUsize::new(0) }
    }

    /// False: none is left.
    pub(super) fn try_take(&self) -> bool {
        let next = |taken| (taken < self.most).then_some(taken + 1);
        self.taken.fetch_update(Relaxed, Relaxed, next).is_ok()
    }

    pub(super) fn release(&self) {
        self.taken.fetch_sub(1, Relaxed);
    }

    pub(super) fn taken(&self) -> usize {
        self.taken.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_gives_what_it_has_and_no_more() {
        let quota = Quota::new(2);
        assert!(quota.try_take() && quota.try_take() && !quota.try_take());
        quota.release();
        assert_eq!(quota.taken(), 1);
        assert!(quota.try_take() && !quota.try_take());
        assert!(!Quota::new(0).try_take());
    }

    #[test]
    fn descriptors_are_a_part_of_those_of_the_process_and_no_more_than_files() {
        let most = |files_max, descriptors_max| FileQuotas::new(files_max, descriptors_max).descriptors.most;
        assert_eq!(most(1000, Some(1024)), 256);
        assert_eq!(most(100, Some(1024)), 100);
        assert_eq!(most(1000, Some(3)), 0);
        assert_eq!(most(1000, None), 1000);
    }

    #[test]
    fn workers_share_and_each_may_have_one() {
        let quotas = FileQuotas::new(10, None);
        assert_eq!(quotas.share(&quotas.entries), 10);
        for (workers, share) in [(1, 10), (2, 5), (3, 3), (4, 2)] {
            quotas.enter();
            assert_eq!(quotas.share(&quotas.entries), share, "{workers} workers");
        }
        (0..20).for_each(|_| quotas.enter());
        assert_eq!(quotas.share(&quotas.entries), 1);
        (0..23).for_each(|_| quotas.leave());
        assert_eq!(quotas.share(&quotas.entries), 10);
    }
}
