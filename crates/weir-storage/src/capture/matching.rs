//! Pairs completions with issues. Pure.

use std::collections::HashMap;

use super::{
    CaptureCounts, CapturedOperation, DeviceNumber,
    line::{Line, Request},
};
use crate::predict::Direction;

/// Most requests that may be open; further ones are not followed.
const OPEN_MAX: usize = 1 << 16;

/// Pairs lines. A request is identified by its disk, position and direction: no two with the same are open together,
/// except when one was issued again, and then the later issue counts.
#[derive(Debug, Default)]
pub(super) struct Matcher {
    pub(super) counts: CaptureCounts,
    open: HashMap<(DeviceNumber, u64, Direction), Request>,
}

impl Matcher {
    /// Takes a line, in the order of the trace. A completion returns its operation.
    pub(super) fn add(&mut self, line: Line) -> Option<CapturedOperation> {
        match line {
            Line::Issue(request) => {
                let key = (request.device, request.sector, request.direction);
                if self.open.len() < OPEN_MAX || self.open.contains_key(&key) {
                    self.open.insert(key, request);
                }
                None
            }
            Line::Complete(complete) => {
                let key = (complete.device, complete.sector, complete.direction);
                let Some(issue) = self.open.remove(&key).filter(|issue| issue.at_ns <= complete.at_ns) else {
                    self.counts.unmatched += 1;
                    return None;
                };
                self.counts.operations += 1;
                Some(CapturedOperation {
                    issued_ns: issue.at_ns,
                    completed_ns: complete.at_ns,
                    thread: issue.thread,
                    device: issue.device,
                    sector: issue.sector,
                    bytes: issue.bytes,
                    direction: issue.direction,
                })
            }
            Line::Lost(count) => {
                // Open requests may have completed unseen, and their positions may have been reused.
                self.open.clear();
                self.counts.lost += count;
                None
            }
            Line::Other => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(at_ns: u64, sector: u64, direction: Direction) -> Request {
        let device = DeviceNumber { major: 254, minor: 0 };
        Request { at_ns, thread: 7, device, direction, sector, bytes: 4096 }
    }

    fn read(at_ns: u64, sector: u64) -> Request {
        request(at_ns, sector, Direction::Read)
    }

    #[test]
    fn completions_find_their_issues_in_any_order() {
        let mut matcher = Matcher::default();
        assert_eq!(matcher.add(Line::Issue(read(10, 8))), None);
        assert_eq!(matcher.add(Line::Issue(read(11, 16))), None);
        assert_eq!(matcher.add(Line::Issue(request(12, 8, Direction::Write))), None);
        let second = matcher.add(Line::Complete(read(30, 16))).expect("its issue is known");
        assert_eq!((second.issued_ns, second.completed_ns, second.thread), (11, 30, 7));
        let first = matcher.add(Line::Complete(read(40, 8))).expect("its issue is known");
        assert_eq!((first.issued_ns, first.direction), (10, Direction::Read));
        assert_eq!(matcher.counts, CaptureCounts { operations: 2, ..CaptureCounts::default() });
    }

    #[test]
    fn what_was_issued_again_counts_from_the_later_issue() {
        let mut matcher = Matcher::default();
        matcher.add(Line::Issue(read(10, 8)));
        matcher.add(Line::Issue(read(20, 8)));
        assert_eq!(matcher.add(Line::Complete(read(30, 8))).map(|found| found.issued_ns), Some(20));
        assert_eq!(matcher.add(Line::Complete(read(31, 8))), None);
        assert_eq!(matcher.counts.unmatched, 1);
    }

    #[test]
    fn after_a_loss_nothing_is_matched_with_what_was_open_before() {
        let mut matcher = Matcher::default();
        matcher.add(Line::Issue(read(10, 8)));
        matcher.add(Line::Lost(5));
        assert_eq!(matcher.add(Line::Complete(read(30, 8))), None);
        assert_eq!((matcher.counts.lost, matcher.counts.unmatched), (5, 1));
    }

    #[test]
    fn a_completion_before_its_issue_is_no_match() {
        let mut matcher = Matcher::default();
        matcher.add(Line::Issue(read(10, 8)));
        assert_eq!(matcher.add(Line::Complete(read(9, 8))), None);
    }

    #[test]
    fn beyond_the_maximum_new_requests_are_not_followed() {
        let mut matcher = Matcher::default();
        for sector in 0..OPEN_MAX as u64 + 1 {
            matcher.add(Line::Issue(read(10, sector)));
        }
        assert_eq!(matcher.open.len(), OPEN_MAX);
        assert_eq!(matcher.add(Line::Complete(read(30, OPEN_MAX as u64))), None);
        assert!(matcher.add(Line::Complete(read(30, 0))).is_some());
    }
}
