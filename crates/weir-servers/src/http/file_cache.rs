//! The files that one worker caches between requests: the bytes of short ones, otherwise the descriptors.
//!
//! An entry is used for [`FileCache::validity`] from the moment when the file was looked at. Then the path is opened
//! again, under the same rules as the first time: a file that was replaced, changed, removed, hidden or moved out of
//! the root is noticed after that time at the latest, whatever the file system says about its times. So nothing is
//! compared, and no metadata has to be trusted.
//!
//! Limits. [`FileQuotas`] limits files and descriptors of all workers together; the number of files limits the bytes,
//! because each file has at most 32 KiB and its head. Files that are evicted while they are being sent stay open
//! until that is over. Requests that find no entry each open the path separately: the engine's limit on file
//! operations applies. A task closes files that were not requested during three validities; it lives as long as the
//! cache is not empty.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use weir_engine::{
    draining,
    time::{Instant, timeout},
    try_spawn,
};

use super::{
    cache::{Cache, Look},
    config::{Clock, FileCache},
    counters::HttpCounters,
    file_body::Served,
    file_quotas::{FileQuotas, Quota},
};

/// The counts of a worker; the server's counters are the sum over all workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileCacheCounts {
    /// Requests that were answered without opening a file.
    pub hits: u64,
    /// Requests for a path that was not in the cache.
    pub misses: u64,
    /// Requests for a path whose entry had expired and that was opened again.
    pub revalidations: u64,
    /// Files that were evicted before they expired, because others needed the place or because they had become
    /// shorter.
    pub evictions: u64,
}

/// The cached files of one worker.
#[derive(Debug)]
pub(super) struct WorkerFileCache {
    entries: RefCell<Cache<Rc<Served>>>,
    /// How many of them are open.
    open: Cell<usize>,
    quotas: Arc<FileQuotas>,
    validity: Duration,
    clock: Clock,
    /// Counts that have not been added to the server's counters.
    counts: Cell<FileCacheCounts>,
    is_swept: Cell<bool>,
}

impl WorkerFileCache {
    pub(super) fn new(config: FileCache, clock: Clock, quotas: Arc<FileQuotas>) -> Self {
        quotas.enter();
        Self {
            entries: RefCell::new(Cache::new(config.validity)),
            open: Cell::new(0),
            quotas,
            validity: config.validity,
            clock,
            counts: Cell::default(),
            is_swept: Cell::new(false),
        }
    }

    /// The file of a path, if it is cached and valid.
    #[inline]
    pub(super) fn find(&self, path: &[u8], now: Instant) -> Option<Rc<Served>> {
        let look = self.entries.borrow_mut().look(path, now);
        self.count(|counts| match look {
            Look::Fresh(_) => counts.hits += 1,
            Look::Expired => counts.revalidations += 1,
            Look::Absent => counts.misses += 1,
        });
        match look {
            Look::Fresh(file) => Some(file),
            Look::Expired | Look::Absent => None,
        }
    }

    /// Caches a file that was looked at at this time, if there is or can be made room.
    pub(super) fn keep(self: &Rc<Self>, path: &[u8], file: &Rc<Served>, looked_at: Instant) {
        // Its room is needed first, and may be the only room.
        let older = self.entries.borrow_mut().remove(path);
        older.iter().for_each(|file| self.let_go(file));
        if !self.take(&self.quotas.entries, |_| true, || self.entries.borrow().len()) {
            return;
        }
        if file.is_open() {
            if !self.take(&self.quotas.descriptors, |other| other.is_open(), || self.open.get()) {
                return self.quotas.entries.release();
            }
            self.open.set(self.open.get() + 1);
        }
        self.entries.borrow_mut().insert(path, Rc::clone(file), looked_at);
        if !self.is_swept.get() {
            // If no task can be spawned, as on the blocking driver, the cache is emptied when the connection ends.
            self.is_swept.set(try_spawn(sweep(Rc::clone(self))).is_ok());
        }
    }

    /// Closes every open file: descriptors are needed elsewhere, or one of the files has changed. False: none was
    /// open.
    pub(super) fn close_all(&self) -> bool {
        let mut closed = false;
        while self.evict(|file| file.is_open()) {
            closed = true;
        }
        closed
    }

    /// A connection of this thread has ended. If no task can run beside a connection, nothing else would empty the
    /// cache, and the thread may wait a long time for the next connection.
    pub(super) fn connection_ended(&self) {
        if !self.is_swept.get() {
            let all = self.entries.borrow_mut().expire(Instant::from_nanos(u64::MAX));
            all.iter().for_each(|file| self.let_go(file));
        }
    }

    fn is_empty(&self) -> bool {
        self.entries.borrow().len() == 0
    }

    /// Adds the counts to the server's counters.
    pub(super) fn tell(&self, counters: &HttpCounters) {
        counters.add_files(self.counts.take());
    }

    /// Takes one from a quota. If necessary, evicts one of our files that use it, of which there are `own`.
    fn take(&self, quota: &Quota, has_one: impl Fn(&Served) -> bool, own: impl Fn() -> usize) -> bool {
        loop {
            if own() < self.quotas.share(quota) && quota.try_take() {
                return true;
            }
            if !self.evict(&has_one) {
                return false;
            }
        }
    }

    fn evict(&self, may_go: impl Fn(&Served) -> bool) -> bool {
        let gone = self.entries.borrow_mut().evict(self.clock.now(), |file| may_go(file));
        if let Some(file) = &gone {
            self.let_go(file);
            self.count(|counts| counts.evictions += 1);
        }
        gone.is_some()
    }

    /// Returns the quota of a file that is no longer cached.
    fn let_go(&self, file: &Served) {
        self.quotas.entries.release();
        if file.is_open() {
            self.quotas.descriptors.release();
            self.open.set(self.open.get() - 1);
        }
    }

    fn count(&self, add: impl FnOnce(&mut FileCacheCounts)) {
        let mut counts = self.counts.get();
        add(&mut counts);
        self.counts.set(counts);
    }
}

impl Drop for WorkerFileCache {
    fn drop(&mut self) {
        let all = self.entries.get_mut().expire(Instant::from_nanos(u64::MAX));
        all.iter().for_each(|file| self.let_go(file));
        self.quotas.leave();
    }
}

/// Drops files that were not requested since they expired, until the cache is empty or the server drains.
async fn sweep(cache: Rc<WorkerFileCache>) {
    let _ends = Sweeping(&cache);
    while !cache.is_empty() && timeout(cache.validity, draining()).await.is_err() {
        // Not immediately at expiry: for a file in constant use, the next request opens it again.
        let gone = cache.entries.borrow_mut().expire(cache.clock.now() - cache.validity);
        gone.iter().for_each(|file| cache.let_go(file));
    }
}

/// However the task ends, another one may start.
struct Sweeping<'a>(&'a WorkerFileCache);

impl Drop for Sweeping<'_> {
    fn drop(&mut self) {
        self.0.is_swept.set(false);
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use weir_engine::fs::Metadata;

    use super::*;
    use crate::http::file_body::Content;

    fn file() -> Rc<Served> {
        let metadata = Metadata {
            len: 5,
            modified: SystemTime::UNIX_EPOCH,
            is_file: true,
            is_folder: false,
            inode: 1,
            device: 1,
        };
        Served::new(
            b"a",
            &metadata,
            Default::default(),
            Content::Memory(b"bytes"[..].into()),
            0,
            &Default::default(),
        )
    }

    fn cache(quotas: &Arc<FileQuotas>) -> Rc<WorkerFileCache> {
        let config = FileCache { files_max: 4, validity: Duration::from_secs(3600) };
        Rc::new(WorkerFileCache::new(config, Clock::Kernel, Arc::clone(quotas)))
    }

    #[test]
    fn workers_share_the_quotas_and_whoever_has_too_much_gives_way() {
        let quotas = Arc::new(FileQuotas::new(4, None));
        let now = Clock::Kernel.now();
        let first = cache(&quotas);
        for path in [b"a", b"b", b"c", b"d", b"e"] {
            first.keep(path, &file(), now);
        }
        assert_eq!((first.entries.borrow().len(), quotas.entries.taken()), (4, 4));
        let second = cache(&quotas);
        second.keep(b"a", &file(), now);
        assert_eq!(second.entries.borrow().len(), 0, "the first one has taken everything");
        first.keep(b"f", &file(), now);
        assert_eq!((first.entries.borrow().len(), quotas.entries.taken()), (2, 2), "its share is a half now");
        for path in [b"a", b"b", b"c"] {
            second.keep(path, &file(), now);
        }
        assert_eq!((second.entries.borrow().len(), quotas.entries.taken()), (2, 4));
        drop(first);
        assert_eq!(quotas.entries.taken(), 2, "what it had is free");
        second.keep(b"d", &file(), now);
        assert_eq!((second.entries.borrow().len(), quotas.entries.taken()), (3, 3));
    }

    #[test]
    fn a_file_that_is_looked_at_anew_takes_the_place_of_the_old_one() {
        let quotas = Arc::new(FileQuotas::new(1, None));
        let (cache, now) = (cache(&quotas), Clock::Kernel.now());
        for _ in 0..3 {
            cache.keep(b"a", &file(), now);
        }
        let counters = HttpCounters::default();
        assert!(cache.find(b"a", now).is_some() && cache.find(b"b", now).is_none());
        assert!(cache.find(b"a", now + Duration::from_secs(3600)).is_none());
        cache.tell(&counters);
        cache.tell(&counters);
        let expected = FileCacheCounts { hits: 1, misses: 1, revalidations: 1, evictions: 0 };
        assert_eq!((quotas.entries.taken(), counters.files()), (1, expected));
    }
}
