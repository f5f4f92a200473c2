//! Counts of HTTP responses and connections, besides the times that every message has. Pure.

use std::any::Any;

use hdrhistogram::Histogram;
use weir_record::{failure::FailureCounts, http::StatusCount, latency::empty_histogram};

use super::sample::Sample;
use crate::{recorder::Section, summary::add};

/// A right response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right {
    /// When its first byte arrived.
    pub first_byte_ns: u64,
    /// Bytes of its content.
    pub content_bytes: u64,
    /// The content was compared byte for byte, or with its hash.
    pub compared: bool,
    /// Index of its request in a mix, if there is a mix.
    pub request: Option<usize>,
}

/// Right responses to one request of a mix in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RightOfRequest {
    /// All of them.
    pub right: u64,
    /// Those that were compared.
    pub compared: u64,
}

/// Counts of responses in one interval.
#[derive(Clone, Debug)]
pub struct ResponseNotes {
    /// Time to first byte of right responses.
    pub first_byte: Histogram<u64>,
    /// All complete responses.
    pub statuses: StatusCounts,
    /// Right responses that were compared.
    pub compared: u64,
    /// Right responses by the index of their request in a mix, up to the last index that occurred.
    pub by_request: Vec<RightOfRequest>,
}

impl Default for ResponseNotes {
    fn default() -> Self {
        Self {
            first_byte: empty_histogram(),
            statuses: StatusCounts::default(),
            compared: 0,
            by_request: Vec::new(),
        }
    }
}

impl ResponseNotes {
    /// Notes a right response to a request that started at `started_ns`.
    #[inline]
    pub fn right(&mut self, right: &Right, started_ns: u64) {
        self.first_byte.saturating_record(right.first_byte_ns.saturating_sub(started_ns));
        self.compared += u64::from(right.compared);
        if let Some(request) = right.request {
            let own = self.of_request(request);
            own.right += 1;
            own.compared += u64::from(right.compared);
        }
    }

    /// The counts of a request. There are as many entries as a mix has requests.
    #[inline]
    fn of_request(&mut self, request: usize) -> &mut RightOfRequest {
        if self.by_request.len() <= request {
            self.by_request.resize(request + 1, RightOfRequest::default());
        }
        &mut self.by_request[request]
    }
}

impl Section for ResponseNotes {
    fn add(&mut self, other: &dyn Section) {
        let Some(other) = (other as &dyn Any).downcast_ref::<Self>() else { return };
        add(&mut self.first_byte, &other.first_byte);
        other.statuses.list().iter().for_each(|entry| self.statuses.add(entry.status, entry.count));
        self.compared += other.compared;
        for (request, added) in other.by_request.iter().enumerate() {
            let own = self.of_request(request);
            own.right += added.right;
            own.compared += added.compared;
        }
    }
}

/// A worker's counts of a whole run.
#[derive(Clone, Debug, Default)]
pub(crate) struct HttpTotals {
    /// Where the first redirect pointed to.
    pub(crate) redirect_location: Option<String>,
    /// The first bad response.
    pub(crate) bad_response: Option<Sample>,
    /// Counts of each request of a mix; empty without a mix.
    pub(crate) by_request: Vec<RequestCounts>,
}

/// Counts of a request of a mix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestCounts {
    /// Right responses.
    pub(crate) right: u64,
    pub(crate) failures: FailureCounts,
}

impl RequestCounts {
    /// Adds another worker's counts.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.right += other.right;
        self.failures.merge(&other.failures);
    }
}

/// Counts by status. A server uses a handful, so a list is searched faster than a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusCounts {
    counts: Vec<StatusCount>,
}

impl StatusCounts {
    /// Adds to the count of a status.
    #[inline]
    pub fn add(&mut self, status: u16, count: u64) {
        match self.counts.iter_mut().find(|entry| entry.status == status) {
            Some(entry) => entry.count += count,
            None => self.counts.push(StatusCount { status, count }),
        }
    }

    /// In order of first occurrence; at most 900.
    pub fn list(&self) -> &[StatusCount] {
        &self.counts
    }

    /// Responses with a status.
    #[cfg(test)]
    pub fn of(&self, status: u16) -> u64 {
        self.counts.iter().find(|entry| entry.status == status).map_or(0, |entry| entry.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_two_workers_add_up() {
        let right = Right { first_byte_ns: 1500, content_bytes: 3, compared: true, request: Some(1) };
        let mut sum = ResponseNotes::default();
        sum.right(&right, 1000);
        sum.statuses.add(200, 1);
        let mut other = ResponseNotes::default();
        other.right(&Right { compared: false, ..right }, 1200);
        other.statuses.add(404, 2);
        other.statuses.add(200, 5);
        sum.add(&other);
        assert_eq!((sum.first_byte.len(), sum.first_byte.max(), sum.compared), (2, 500, 1));
        let own = RightOfRequest { right: 2, compared: 1 };
        assert_eq!(sum.by_request, [RightOfRequest::default(), own]);
        assert_eq!((sum.statuses.of(200), sum.statuses.of(404), sum.statuses.of(500)), (6, 2, 0));
    }
}
