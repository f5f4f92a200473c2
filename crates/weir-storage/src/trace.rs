//! Latency traces: device times of consecutive operations, read from four formats.
//!
//! A trace does not depend on how anybody waited: the same operations can be replayed with every method
//! ([`crate::simulate::replay`]). `docs/formats/latency-trace.md` describes the formats. The first line determines
//! the format; a line that does not fit is an error with its number.
//!
//! This module opens no files: it reads from a reader, and holds at most [`OPERATIONS_MAX`] operations.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    io::{self, BufRead, Read},
};

use crate::predict::Direction;

/// Most operations of a trace: some 160 MB in memory.
pub const OPERATIONS_MAX: usize = 4 << 20;
/// Most bytes of a line.
pub const LINE_BYTES_MAX: usize = 1024;
/// The longest latency that is accepted: an hour, the longest that the histograms hold.
pub const LATENCY_NS_MAX: u64 = 3_600_000_000_000;
/// Length of an operation, if the format does not contain it.
pub const BYTES_DEFAULT: u32 = 4096;

/// The heading of Weir's own files.
pub const HEADING: &str = "io_time_ns,timestamp_ns,direction,bytes,sector";

/// One operation of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceOperation {
    /// Time of the issue, from any origin, if the format contains it.
    pub issued_ns: Option<u64>,
    /// From issue to completion at the device.
    pub latency_ns: u64,
    /// Length.
    pub bytes: u32,
    /// Direction of the transfer.
    pub direction: Direction,
    /// Operations in flight on the device when it was issued, including itself, if known.
    pub in_flight: Option<u32>,
}

/// Format of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// Weir's own: what [`crate::capture`] writes, under [`HEADING`].
    Weir,
    /// `hybrid_polling_sim`: a heading, then latency and time stamp in nanoseconds.
    HybridPollingSim,
    /// One latency on each line, in nanoseconds or with its unit.
    OnePerLine,
    /// fio's `_lat`, `_clat` and `_slat` logs, since fio 3.
    FioLog,
}

/// A parsed trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Its format.
    pub format: TraceFormat,
    /// In Weir's format in the order of issue, otherwise in the order of the file; never empty.
    pub operations: Vec<TraceOperation>,
}

/// Why a trace could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A line does not fit.
    #[error("{file}, line {line}: {reason}")]
    Malformed {
        /// The name passed to [`read`].
        file: String,
        /// From 1.
        line: u64,
        /// What is wrong and what would be valid.
        reason: String,
    },
    /// The trace contains no operations.
    #[error("{file} holds no operation")]
    Empty {
        /// The name passed to [`read`].
        file: String,
    },
    /// The file could not be read.
    #[error("cannot read {file}: {source}")]
    Unreadable {
        /// The name passed to [`read`].
        file: String,
        /// The error.
        source: io::Error,
    },
}

impl Trace {
    /// A hash of the operations (FNV-1a over the fields that a replay uses); different traces almost certainly
    /// differ.
    pub fn fingerprint(&self) -> u64 {
        let words = self.operations.iter().flat_map(|it| {
            let direction = u64::from(it.direction == Direction::Write);
            [it.latency_ns, it.issued_ns.unwrap_or(u64::MAX), u64::from(it.bytes), direction]
        });
        words
            .flat_map(u64::to_le_bytes)
            .fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
    }
}

/// Reads a whole trace. The name only appears in errors.
pub fn read(mut reader: impl BufRead, file: &str) -> Result<Trace, TraceError> {
    let malformed = |line, reason| TraceError::Malformed { file: file.to_owned(), line, reason };
    let (mut format, mut operations, mut line) = (None, Vec::new(), 0);
    let mut buffer = Vec::with_capacity(LINE_BYTES_MAX + 1);
    loop {
        buffer.clear();
        let mut bounded = (&mut reader).take(LINE_BYTES_MAX as u64 + 1);
        let bytes = bounded
            .read_until(b'\n', &mut buffer)
            .map_err(|source| TraceError::Unreadable { file: file.to_owned(), source })?;
        if bytes == 0 {
            break;
        }
        line += 1;
        if bytes > LINE_BYTES_MAX {
            return Err(malformed(
                line,
                format!("longer than {LINE_BYTES_MAX} bytes: this is no latency trace"),
            ));
        }
        let text =
            std::str::from_utf8(&buffer).map_err(|_| malformed(line, "this is not text".to_owned()))?;
        let operation = read_line(text.trim(), &mut format).map_err(|reason| malformed(line, reason))?;
        let Some(operation) = operation else { continue };
        if operations.len() == OPERATIONS_MAX {
            let reason = format!("more than {OPERATIONS_MAX} operations; cut the file into parts");
            return Err(malformed(line, reason));
        }
        operations.push(operation);
    }
    match format {
        Some(format) if !operations.is_empty() => {
            if format == TraceFormat::Weir {
                count_in_flight(&mut operations);
            }
            Ok(Trace { format, operations })
        }
        _ => Err(TraceError::Empty { file: file.to_owned() }),
    }
}

/// Sorts operations by issue, and notes the number in flight at each issue.
fn count_in_flight(operations: &mut [TraceOperation]) {
    operations.sort_by_key(|operation| operation.issued_ns);
    let mut ends = BinaryHeap::new();
    for operation in operations {
        let issued_ns = operation.issued_ns.unwrap_or(0);
        while ends.peek().is_some_and(|Reverse(end_ns)| *end_ns <= issued_ns) {
            ends.pop();
        }
        ends.push(Reverse(issued_ns.saturating_add(operation.latency_ns)));
        operation.in_flight = u32::try_from(ends.len()).ok();
    }
}

/// Parses one line, which may contain an operation. The first line with content determines the format.
fn read_line(text: &str, format: &mut Option<TraceFormat>) -> Result<Option<TraceOperation>, String> {
    if text.is_empty() || text.starts_with('#') {
        return Ok(None);
    }
    if format.is_none() && text == HEADING {
        *format = Some(TraceFormat::Weir);
        return Ok(None);
    }
    let mut fields = [""; FIELDS_MAX];
    let count = split(text, &mut fields)?;
    let fields = &fields[..count];
    let known = match *format {
        Some(known) => known,
        None => {
            let found = recognised(fields)?;
            *format = Some(found);
            if found == TraceFormat::HybridPollingSim && whole(fields[0]).is_none() {
                return Ok(None);
            }
            found
        }
    };
    match known {
        TraceFormat::Weir => weir_line(fields).map(Some),
        TraceFormat::HybridPollingSim => hybrid_polling_sim_line(fields).map(Some),
        TraceFormat::OnePerLine => one_per_line(fields).map(Some),
        TraceFormat::FioLog => fio_line(fields),
    }
}

/// More fields than any format has.
const FIELDS_MAX: usize = 8;

fn split<'a>(text: &'a str, fields: &mut [&'a str; FIELDS_MAX]) -> Result<usize, String> {
    let mut count = 0;
    for field in text.split(',') {
        if count == FIELDS_MAX {
            return Err(format!("more than {FIELDS_MAX} fields: this is no latency trace"));
        }
        fields[count] = field.trim();
        count += 1;
    }
    Ok(count)
}

fn recognised(fields: &[&str]) -> Result<TraceFormat, String> {
    match fields.len() {
        1 => Ok(TraceFormat::OnePerLine),
        2 => Ok(TraceFormat::HybridPollingSim),
        4.. if fields.iter().take(4).all(|field| whole(field).is_some()) => Ok(TraceFormat::FioLog),
        count => Err(format!(
            "{count} fields fit no known format: one latency, latency and time stamp, a line of a fio log, or our own \
             heading {HEADING}"
        )),
    }
}

fn weir_line(fields: &[&str]) -> Result<TraceOperation, String> {
    let [taken, issued, direction, bytes, sector] = fields else {
        return Err(format!("{} fields instead of 5 ({HEADING})", fields.len()));
    };
    let direction = match *direction {
        "read" => Direction::Read,
        "write" => Direction::Write,
        other => return Err(format!("direction {other:?} is neither read nor write")),
    };
    let issued_ns = time_stamp(issued)?;
    whole(sector).ok_or_else(|| format!("sector {sector:?} is not a whole number"))?;
    Ok(TraceOperation {
        issued_ns: Some(issued_ns),
        latency_ns: latency(taken)?,
        bytes: length(bytes)?,
        direction,
        in_flight: None,
    })
}

fn time_stamp(field: &str) -> Result<u64, String> {
    whole(field).ok_or_else(|| format!("time stamp {field:?} is not a whole number of nanoseconds"))
}

/// The time stamp is taken for that of the completion.
fn hybrid_polling_sim_line(fields: &[&str]) -> Result<TraceOperation, String> {
    let [taken, stamp] = fields else {
        return Err(format!("{} fields instead of 2 (latency and time stamp in ns)", fields.len()));
    };
    let latency_ns = latency(taken)?;
    let issued_ns = time_stamp(stamp)?.saturating_sub(latency_ns);
    Ok(TraceOperation { issued_ns: Some(issued_ns), ..plain(latency_ns) })
}

fn one_per_line(fields: &[&str]) -> Result<TraceOperation, String> {
    let [text] = fields else {
        return Err(format!("{} fields instead of one latency", fields.len()));
    };
    let unit_at = text.find(|letter: char| letter.is_ascii_alphabetic() || letter == 'µ');
    let Some(unit_at) = unit_at.filter(|at| *at > 0) else { return Ok(plain(latency(text)?)) };
    let scale = match &text[unit_at..] {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        unit => return Err(format!("{unit:?} is no unit of time; use ns, us, ms or s")),
    };
    let number = text[..unit_at].trim().parse::<f64>().ok().filter(|number| number.is_finite());
    let number = number.ok_or_else(|| format!("latency {text:?} is not a time"))?;
    Ok(plain(in_range((number * scale).round().clamp(0.0, u64::MAX as f64) as u64)?))
}

/// Time in ms, value in ns, direction (0 read, 1 write, 2 trim), bytes, then offset and priority, which are ignored.
/// Trims are skipped.
fn fio_line(fields: &[&str]) -> Result<Option<TraceOperation>, String> {
    let (Some(taken), Some(direction), Some(bytes)) = (fields.get(1), fields.get(2), fields.get(3)) else {
        return Err(format!("{} fields instead of the 5 or 6 of a fio log", fields.len()));
    };
    let direction = match *direction {
        "0" => Direction::Read,
        "1" => Direction::Write,
        "2" => return Ok(None),
        other => return Err(format!("direction {other:?} of a fio log is not 0, 1 or 2")),
    };
    let operation = TraceOperation { bytes: length(bytes)?, direction, ..plain(latency(taken)?) };
    Ok(Some(operation))
}

/// An operation with only a known latency.
fn plain(latency_ns: u64) -> TraceOperation {
    TraceOperation {
        issued_ns: None,
        latency_ns,
        bytes: BYTES_DEFAULT,
        direction: Direction::Read,
        in_flight: None,
    }
}

fn whole(field: &str) -> Option<u64> {
    // `parse` alone would accept a sign.
    field.bytes().all(|byte| byte.is_ascii_digit()).then(|| field.parse().ok()).flatten()
}

fn latency(field: &str) -> Result<u64, String> {
    let value = whole(field).ok_or_else(|| {
        let hint =
            if field.contains('.') { "; one with a fraction needs its unit, as in 14.3us" } else { "" };
        format!("latency {field:?} is not a whole number of nanoseconds{hint}")
    })?;
    in_range(value)
}

fn in_range(latency_ns: u64) -> Result<u64, String> {
    if (1..=LATENCY_NS_MAX).contains(&latency_ns) {
        Ok(latency_ns)
    } else {
        Err(format!("a latency of {latency_ns} ns is not between 1 ns and one hour"))
    }
}

fn length(field: &str) -> Result<u32, String> {
    let bytes = whole(field).and_then(|bytes| u32::try_from(bytes).ok()).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| format!("length {field:?} is not a number of bytes from 1 to {}", u32::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> Trace {
        read(text.as_bytes(), "x.csv").unwrap_or_else(|error| panic!("{error}"))
    }

    fn latencies(text: &str) -> Vec<u64> {
        parsed(text).operations.iter().map(|operation| operation.latency_ns).collect()
    }

    fn refused(text: &str) -> String {
        read(text.as_bytes(), "x.csv").expect_err(text).to_string()
    }

    #[test]
    fn each_format_is_recognised_by_its_first_line() {
        let cases = [
            (TraceFormat::OnePerLine, "14300\n15000\n"),
            (TraceFormat::OnePerLine, "# from a probe\n\n14.3us\n0.015 ms\n"),
            (TraceFormat::HybridPollingSim, "io_time,timestamp\n14300,100000\n15000,200000\n"),
            (TraceFormat::FioLog, "0, 14300, 0, 4096, 0\n1, 15000, 0, 4096, 8192, 0\n"),
            (
                TraceFormat::Weir,
                "io_time_ns,timestamp_ns,direction,bytes,sector\n14300,1,read,4096,0\n15000,20000,write,4096,8\n",
            ),
        ];
        for (format, text) in cases {
            assert_eq!(parsed(text).format, format, "{text}");
            assert_eq!(latencies(text), [14_300, 15_000], "{text}");
        }
    }

    #[test]
    fn what_a_format_knows_beside_the_latency_is_kept() {
        let trace = parsed("heading,heading\n14300,100000\n");
        assert_eq!(trace.operations[0].issued_ns, Some(85_700));

        let trace = parsed("5, 14300, 1, 8192, 0\n6, 1, 2, 4096, 0\n7, 9, 0, 4096, 0\n");
        assert_eq!(trace.operations.len(), 2, "a trim is no operation to wait for here");
        assert_eq!((trace.operations[0].bytes, trace.operations[0].direction), (8192, Direction::Write));
    }

    #[test]
    fn a_malformed_line_is_named_with_its_file_and_number() {
        let cases = [
            ("14300\nfast\n", "x.csv, line 2: latency \"fast\""),
            ("14300\n0\n", "line 2: a latency of 0 ns"),
            ("-5\n", "line 1: latency \"-5\""),
            ("0.000014\n", "needs its unit"),
            ("14 parsecs\n", "\"parsecs\" is no unit"),
            ("a,b\n1,2\n1\n", "line 3: 1 fields instead of 2"),
            ("a,b\nx,2\n", "line 2: latency \"x\""),
            ("a,b\n1,y\n", "time stamp \"y\""),
            ("0, 1, 0, 4096, 0\n0, 1, 7, 4096, 0\n", "line 2: direction \"7\""),
            ("0, 1, 0, 4096, 0\n0, 1, 0, 0, 0\n", "length \"0\""),
            ("0, 1, 0, 4096, 0\n0, 1\n", "line 2: 2 fields instead of the 5 or 6"),
            ("a,b,c\n", "3 fields fit no known format"),
            ("1,2,3,4,5,6,7,8,9\n", "more than 8 fields"),
            (
                "io_time_ns,timestamp_ns,direction,bytes,sector\n1,2,sideways,4096,0\n",
                "\"sideways\" is neither",
            ),
            ("io_time_ns,timestamp_ns,direction,bytes,sector\n1,2,read,4096,x\n", "sector \"x\""),
            ("io_time_ns,timestamp_ns,direction,bytes,sector\n1,2\n", "line 2: 2 fields instead of 5"),
            ("io_time_ns,bytes,direction,timestamp_ns,sector\n", "5 fields fit no known format"),
            ("3600000000001\n", "one hour"),
            ("99999999999999999999\n", "is not a whole number"),
        ];
        for (text, expected) in cases {
            let told = refused(text);
            assert!(told.contains(expected), "{text:?} gives {told:?}");
        }
    }

    #[test]
    fn a_file_without_operations_is_refused() {
        for text in ["", "\n\n", "# nothing\n", "a,b\n", HEADING, "1, 1, 2, 4096, 0\n"] {
            assert_eq!(refused(text), "x.csv holds no operation", "{text:?}");
        }
    }

    #[test]
    fn a_fingerprint_follows_from_the_operations() {
        let fingerprint = |text: &str| parsed(text).fingerprint();
        assert_eq!(fingerprint("14300\n15000\n"), fingerprint("# the same\n14.3us\n15us\n"));
        assert_ne!(fingerprint("14300\n15000\n"), fingerprint("15000\n14300\n"));
        assert_ne!(fingerprint("14300\n"), fingerprint("14300\n14300\n"));
    }

    #[test]
    fn lines_have_a_limit() {
        let longest = format!("{}\n", "0".repeat(LINE_BYTES_MAX - 3) + "14");
        assert_eq!(longest.len(), LINE_BYTES_MAX);
        assert_eq!(latencies(&longest), [14]);
        assert!(refused(&format!("0{longest}")).contains("longer than 1024 bytes"));
    }

    #[test]
    fn what_is_not_text_is_refused() {
        let error = read(&[b'1', b'\n', 0xff, b'\n'][..], "x.csv").expect_err("no text");
        assert_eq!(error.to_string(), "x.csv, line 2: this is not text");
    }

    #[test]
    fn our_own_traces_are_put_into_the_order_of_issue_with_what_was_in_flight() {
        // The file is in the order of completion, like a capture.
        let text = "50,100,read,512,0\n20,140,write,4096,8\n200,90,read,4096,16\n5,290,read,4096,24\n";
        let operations = parsed(&format!("{HEADING}\n{text}")).operations;
        let found: Vec<_> = operations
            .iter()
            .map(|operation| {
                (operation.issued_ns, operation.latency_ns, operation.bytes, operation.in_flight)
            })
            .collect();
        let expected = [
            (Some(90), 200, 4096, Some(1)),
            (Some(100), 50, 512, Some(2)),
            (Some(140), 20, 4096, Some(3)),
            // The first ends at the moment this one is issued.
            (Some(290), 5, 4096, Some(1)),
        ];
        assert_eq!(found, expected);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[0-9a-z,.# µ-]{0,40}(\n[0-9a-z,.# -]{0,40}){0,4}") {
            let _ = read(text.as_bytes(), "x.csv");
        }
    }
}
