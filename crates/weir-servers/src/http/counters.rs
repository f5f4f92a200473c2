//! Counters of a server's replies and refusals, by kind. Read from any thread.

use std::{
    fmt,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use weir_proto::http1::ParseError;

use super::{file_cache::FileCacheCounts, file_lookup::FileError};

/// Why a request was not answered as asked, or a connection was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The message was malformed. [`ParseError::Truncated`]: the client ended in the middle of one.
    Malformed(ParseError),
    /// The head was not complete in time.
    HeadLate,
    /// The content was not complete in time.
    ContentLate,
    /// The client took no further part of a reply in time.
    ReplyNotTaken,
    /// The target does not support the method; the connection continues.
    Method,
    /// The limit on connections was reached.
    TooManyConnections,
    /// The client's limit on connections was reached.
    TooManyOfClient,
    /// There was no file to answer with; the connection continues.
    File(FileError),
}

impl Refusal {
    /// The status of the reply; `None` if no reply is possible.
    pub fn status(self) -> Option<u16> {
        match self {
            Refusal::Malformed(ParseError::Truncated) | Refusal::ReplyNotTaken => None,
            Refusal::Malformed(error) => Some(error.status()),
            Refusal::HeadLate | Refusal::ContentLate => Some(408),
            Refusal::Method => Some(405),
            Refusal::TooManyConnections | Refusal::TooManyOfClient => Some(503),
            Refusal::File(error) => error.status(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Malformed(error) => error.fmt(formatter),
            Refusal::HeadLate => formatter.write_str("the head took too long"),
            Refusal::ContentLate => formatter.write_str("the content took too long"),
            Refusal::ReplyNotTaken => formatter.write_str("the reply was not taken"),
            Refusal::Method => formatter.write_str("a method that is not allowed"),
            Refusal::TooManyConnections => formatter.write_str("too many connections"),
            Refusal::TooManyOfClient => formatter.write_str("too many connections of one client"),
            Refusal::File(error) => error.fmt(formatter),
        }
    }
}

/// Counters of one server.
#[derive(Debug, Default)]
pub struct HttpCounters {
    requests: AtomicU64,
    idle_closed: AtomicU64,
    log_lines_dropped: AtomicU64,
    log_lines_failed: AtomicU64,
    file_hits: AtomicU64,
    file_misses: AtomicU64,
    file_revalidations: AtomicU64,
    file_evictions: AtomicU64,
    /// At most as many entries as there are kinds.
    refusals: Mutex<Vec<(Refusal, u64)>>,
}

impl HttpCounters {
    /// Requests answered on connections that have ended.
    pub fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }

    /// Connections that were closed because they were idle for too long.
    pub fn idle_closed(&self) -> u64 {
        self.idle_closed.load(Relaxed)
    }

    /// Access log lines that found the queue full, or came after its end.
    pub fn log_lines_dropped(&self) -> u64 {
        self.log_lines_dropped.load(Relaxed)
    }

    /// Lines of either log that could not be written.
    pub fn log_lines_failed(&self) -> u64 {
        self.log_lines_failed.load(Relaxed)
    }

    /// Cache statistics of files. Counted when a connection ends, and once a second by workers that are busy.
    pub fn files(&self) -> FileCacheCounts {
        FileCacheCounts {
            hits: self.file_hits.load(Relaxed),
            misses: self.file_misses.load(Relaxed),
            revalidations: self.file_revalidations.load(Relaxed),
            evictions: self.file_evictions.load(Relaxed),
        }
    }

    /// How often each kind was refused, the most frequent first.
    pub fn refusals(&self) -> Vec<(Refusal, u64)> {
        let mut all = self.lock().clone();
        all.sort_by_key(|(kind, count)| (u64::MAX - count, kind.to_string()));
        all
    }

    pub(super) fn add_requests(&self, count: u64) {
        self.requests.fetch_add(count, Relaxed);
    }

    pub(super) fn add_files(&self, counts: FileCacheCounts) {
        self.file_hits.fetch_add(counts.hits, Relaxed);
        self.file_misses.fetch_add(counts.misses, Relaxed);
        self.file_revalidations.fetch_add(counts.revalidations, Relaxed);
        self.file_evictions.fetch_add(counts.evictions, Relaxed);
    }

    pub(super) fn count_idle(&self) {
        self.idle_closed.fetch_add(1, Relaxed);
    }

    pub(super) fn count_dropped_line(&self) {
        self.log_lines_dropped.fetch_add(1, Relaxed);
    }

    pub(super) fn count_failed_lines(&self, count: u64) {
        self.log_lines_failed.fetch_add(count, Relaxed);
    }

    /// A refusal costs a connection: a lock is negligible beside that.
    pub(super) fn count_refusal(&self, refusal: Refusal) {
        let mut all = self.lock();
        match all.iter_mut().find(|(kind, _)| *kind == refusal) {
            Some((_, count)) => *count += 1,
            None => all.push((refusal, 1)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Refusal, u64)>> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_counted_by_kind_and_the_most_frequent_comes_first() {
        let counters = HttpCounters::default();
        let refused = [
            Refusal::HeadLate,
            Refusal::Malformed(ParseError::Target),
            Refusal::Malformed(ParseError::Target),
        ];
        refused.into_iter().for_each(|refusal| counters.count_refusal(refusal));
        assert_eq!(
            counters.refusals(),
            [(Refusal::Malformed(ParseError::Target), 2), (Refusal::HeadLate, 1)]
        );
    }

    #[test]
    fn a_status_is_given_to_those_who_can_still_read_it() {
        assert_eq!(Refusal::HeadLate.status(), Some(408));
        assert_eq!(Refusal::Malformed(ParseError::HeaderCount).status(), Some(431));
        assert_eq!(Refusal::Malformed(ParseError::Truncated).status(), None);
        assert_eq!(Refusal::ReplyNotTaken.status(), None);
    }
}
