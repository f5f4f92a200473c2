//! Parses one line of `trace_pipe`. Pure; a line of another kind is `Other`, never a panic.
//!
//! ```text
//!             fio-1234    [001] d..1.  1234.567890: block_rq_issue: 254,0 R 4096 () 123456 + 8 none,0,0 [fio]
//!          <idle>-0       [001] d.h2.  1234.567990: block_rq_complete: 254,0 R () 123456 + 8 none,0,0 [0]
//! CPU:1 [LOST 57 EVENTS]
//! ```

use super::{DeviceNumber, device_number};
use crate::predict::Direction;

/// The parsed line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Issue(Request),
    Complete(Request),
    /// Number of dropped records.
    Lost(u64),
    Other,
}

/// A request at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) at_ns: u64,
    pub(super) thread: u32,
    pub(super) device: DeviceNumber,
    pub(super) direction: Direction,
    pub(super) sector: u64,
    pub(super) bytes: u32,
}

const SECTOR_BYTES: u32 = 512;

impl Line {
    pub(super) fn parse(text: &str) -> Self {
        if let Some(lost) = lost(text) {
            return Self::Lost(lost);
        }
        let issue = text.split_once(": block_rq_issue: ");
        let complete = text.split_once(": block_rq_complete: ");
        match (issue, complete) {
            (Some((head, tail)), _) => request(head, tail).map_or(Self::Other, Self::Issue),
            (None, Some((head, tail))) => request(head, tail).map_or(Self::Other, Self::Complete),
            (None, None) => Self::Other,
        }
    }
}

fn lost(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("[LOST ")?;
    rest.strip_suffix(" EVENTS]").unwrap_or(rest).split(' ').next()?.parse().ok()
}

/// Parses a request: `head` ends with the time, `tail` starts with the device.
fn request(head: &str, tail: &str) -> Option<Request> {
    let (task, _) = head.rsplit_once(" [")?;
    // A task name may contain any characters; the thread number follows the last dash.
    let thread = task.trim_end().rsplit('-').next()?.parse().ok()?;
    let at_ns = seconds_as_ns(head.rsplit(' ').next()?)?;
    let mut words = tail.split(' ');
    let device = device_number(words.next()?)?;
    let direction = direction(words.next()?)?;
    // The bytes (only of an issue) and the command in parentheses are not used.
    let (_, place) = tail.split_once(") ")?;
    let mut words = place.split(' ');
    let sector = words.next()?.parse().ok()?;
    let sectors: u32 = words.nth(1)?.parse().ok()?;
    let bytes = sectors.checked_mul(SECTOR_BYTES).filter(|bytes| *bytes > 0)?;
    Some(Request { at_ns, thread, device, direction, sector, bytes })
}

/// Converts `1234.567890` to nanoseconds.
fn seconds_as_ns(text: &str) -> Option<u64> {
    let (seconds, rest) = text.split_once('.')?;
    let digits = u32::try_from(rest.len()).ok().filter(|digits| (1..=9).contains(digits))?;
    let fraction_ns = rest.parse::<u64>().ok()?.checked_mul(10_u64.pow(9 - digits))?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction_ns)
}

/// Direction from the letters of a request: an `F` before a write is a flush; discards and bare flushes move no data.
fn direction(letters: &str) -> Option<Direction> {
    match letters.strip_prefix('F').unwrap_or(letters).bytes().next()? {
        b'R' => Some(Direction::Read),
        b'W' => Some(Direction::Write),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ISSUE: &str = "             fio-1234    [001] d..1.  1234.567890: block_rq_issue: 254,0 R 4096 () 123456 + 8 none,0,0 [fio]";
    const COMPLETE: &str = "          <idle>-0       [001] d.h2.  1234.567990: block_rq_complete: 254,0 R () 123456 + 8 none,0,0 [0]";

    fn expected(at_ns: u64, thread: u32) -> Request {
        Request {
            at_ns,
            thread,
            device: DeviceNumber { major: 254, minor: 0 },
            direction: Direction::Read,
            sector: 123_456,
            bytes: 4096,
        }
    }

    #[test]
    fn issues_and_completions_are_read() {
        assert_eq!(Line::parse(ISSUE), Line::Issue(expected(1_234_567_890_000, 1234)));
        assert_eq!(Line::parse(COMPLETE), Line::Complete(expected(1_234_567_990_000, 0)));
    }

    #[test]
    fn older_kernels_leave_the_priority_out() {
        let old = COMPLETE.replace(" none,0,0", "");
        assert_eq!(Line::parse(&old), Line::Complete(expected(1_234_567_990_000, 0)));
    }

    #[test]
    fn a_task_may_have_any_name() {
        for name in ["a [b] c", "x-1", "kworker/u8:1-ev", "   ", ": block_rq"] {
            let line = ISSUE.replace("             fio", name);
            assert_eq!(Line::parse(&line), Line::Issue(expected(1_234_567_890_000, 1234)), "{name:?}");
        }
    }

    #[test]
    fn letters_say_which_way_and_what_moves_no_data_is_left_out() {
        let of = |letters: &str| match Line::parse(&ISSUE.replace(" R ", &format!(" {letters} "))) {
            Line::Issue(request) => Some(request.direction),
            _ => None,
        };
        assert_eq!(
            (of("RA"), of("WS"), of("FWS")),
            (Some(Direction::Read), Some(Direction::Write), Some(Direction::Write))
        );
        assert_eq!((of("D"), of("FF"), of("N")), (None, None, None));
        assert_eq!(Line::parse(&ISSUE.replace("+ 8", "+ 0")), Line::Other);
    }

    #[test]
    fn lost_records_are_counted() {
        assert_eq!(Line::parse("CPU:1 [LOST 57 EVENTS]"), Line::Lost(57));
        assert_eq!(Line::parse("CPU:1 [LOST EVENTS]"), Line::Other);
    }

    #[test]
    fn a_line_cut_anywhere_before_its_sectors_is_none_of_ours() {
        let end = ISSUE.find("8 none").expect("the sectors in the fixture");
        for cut in 0..end {
            assert_eq!(Line::parse(&ISSUE[..cut]), Line::Other, "cut at {cut}");
        }
    }

    #[test]
    fn times_have_the_digits_that_are_printed() {
        assert_eq!(seconds_as_ns("0.000001"), Some(1_000));
        assert_eq!(seconds_as_ns("12.5"), Some(12_500_000_000));
        assert_eq!(seconds_as_ns("1.123456789"), Some(1_123_456_789));
        assert_eq!(
            (seconds_as_ns("1."), seconds_as_ns("5"), seconds_as_ns("1.1234567890")),
            (None, None, None)
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[ -~]{0,60}(: block_rq_(issue|complete): )?[ -~]{0,60}") {
            let _ = Line::parse(&text);
        }
    }
}
