//! Amounts transferred by the observed calls, compared with the messages' needs. Pure.
//!
//! A table of system calls that does not cover the data path says nothing about it, however long it is. Every server
//! must receive every request and send every answer: the bytes are known, and one call transfers at most as many
//! messages as a connection has in flight. Operations of io_uring are not calls. The kernel's programs count their
//! starts and ends, but not the amounts.

use weir_record::{
    evidence::{Needed, SeenOfNeeded},
    observation::StraceRow,
    spec::CellSpec,
};

use crate::sums::Sums;

/// Calls that receive from a connection.
const RECEIVES: [&str; 5] = ["read", "readv", "recvfrom", "recvmsg", "recvmmsg"];
/// Calls that send to one.
const SENDS: [&str; 8] =
    ["write", "writev", "sendto", "sendmsg", "sendmmsg", "sendfile", "sendfile64", "splice"];
/// Calls among them that return the number of messages instead of bytes.
const BY_MESSAGES: [&str; 2] = ["recvmmsg", "sendmmsg"];

/// The shortest request: `GET / HTTP/1.1` and two line ends.
const REQUEST_BYTES_MIN: u64 = 18;

/// Start and end events of io_uring operations: an operation that is silent on success has no end, and a multishot
/// one has several.
const RING_EVENTS: [&str; 2] = ["io_uring submit_req", "io_uring complete"];

/// `None` if no calls were observed.
pub(crate) fn of_sums(cell: &CellSpec, sums: &Sums<'_>) -> Option<Needed> {
    sums.calls().next()?;
    let value = |source: &str, key: &str| sums.value(source, key) as u64;
    let of_calls =
        |names: &[&str], key: &str| names.iter().map(|it| value(&format!("call {it}"), key)).sum::<u64>();
    let moved = |names: &[&str]| {
        let failed = of_calls(names, "errors") + of_calls(names, "again");
        of_calls(names, "count").saturating_sub(failed)
    };
    let operations: u64 = RING_EVENTS.iter().map(|event| value(event, "count")).sum();
    let messages = Messages::of(cell, sums.messages, value("trace", "calls-cut"));
    let knows_bytes = operations == 0 && of_calls(&BY_MESSAGES, "count") == 0;
    let bytes = |names: &[&str], needed| {
        knows_bytes.then(|| SeenOfNeeded { seen: of_calls(names, "returned"), needed })
    };
    Some(Needed {
        received_bytes: bytes(&RECEIVES, messages.received * messages.request_bytes),
        sent_bytes: bytes(&SENDS, messages.sent * messages.answer_bytes),
        moves: SeenOfNeeded { seen: moved(&RECEIVES) + moved(&SENDS) + operations, needed: messages.moves() },
    })
}

/// Calls that received or sent something by `strace`'s count; it does not see operations of io_uring.
pub(crate) fn under_strace(cell: &CellSpec, messages: u64, rows: &[StraceRow]) -> SeenOfNeeded {
    let moves = |row: &&StraceRow| {
        let name = row.name.as_str();
        RECEIVES.contains(&name) || SENDS.contains(&name)
    };
    let seen = rows.iter().filter(moves).map(|row| row.calls.saturating_sub(row.errors)).sum();
    SeenOfNeeded { seen, needed: Messages::of(cell, messages, 0).moves() }
}

/// The messages of a slice.
struct Messages {
    received: u64,
    sent: u64,
    /// Most messages in one call.
    in_one_call: u64,
    request_bytes: u64,
    answer_bytes: u64,
}

impl Messages {
    /// Calls in progress at the start of the slice have no observed end: each may have received something.
    fn of(cell: &CellSpec, messages: u64, calls_cut: u64) -> Self {
        let in_one_call = u64::from(cell.depth.max(1));
        // The content length of a mix's answers is unknown.
        let is_mix = cell.http.as_ref().is_some_and(|http| http.mix);
        let bytes = if is_mix { 0 } else { u64::from(cell.message_bytes) };
        let is_http = cell.protocol() == "http";
        Self {
            received: messages.saturating_sub(calls_cut * in_one_call),
            sent: messages,
            in_one_call,
            request_bytes: if is_http { REQUEST_BYTES_MIN } else { bytes },
            answer_bytes: bytes,
        }
    }

    fn moves(&self) -> u64 {
        self.received.div_ceil(self.in_one_call) + self.sent.div_ceil(self.in_one_call)
    }
}

#[cfg(test)]
mod tests {
    use weir_record::{
        observation::Rung,
        spec::HttpCell,
        trial::{EvidenceSlice, Reading, SliceRecord},
    };

    use super::*;
    use crate::sample::study;

    fn cell() -> CellSpec {
        study(&["epoll", "uring"], 8, 1).cells[0].clone()
    }

    /// A slice of a thousand messages.
    fn slice(rows: &[(&str, &str, f64)]) -> EvidenceSlice {
        let reading = |(source, key, value): &(&str, &str, f64)| Reading {
            source: (*source).to_owned(),
            key: (*key).to_owned(),
            value: *value,
        };
        EvidenceSlice {
            rung: Rung::Programs,
            slice: SliceRecord { messages: 1_000, ..SliceRecord::default() },
            readings: rows.iter().map(reading).collect(),
        }
    }

    fn needed(cell: &CellSpec, rows: &[(&str, &str, f64)]) -> Option<Needed> {
        of_sums(cell, &Sums::of(&[&slice(rows)]))
    }

    const RECEIVED: [(&str, &str, f64); 3] =
        [("call read", "count", 1_500.0), ("call read", "again", 500.0), ("call read", "returned", 64_000.0)];
    const SENT: [(&str, &str, f64); 3] = [
        ("call write", "count", 1_000.0),
        ("call write", "errors", 0.0),
        ("call write", "returned", 64_000.0),
    ];

    #[test]
    fn a_foreign_server_that_was_seen_whole_moved_every_byte_in_two_calls_a_message() {
        let found = needed(&cell(), &[RECEIVED, SENT].concat()).expect("calls were seen");
        let bytes = Some(SeenOfNeeded { seen: 64_000, needed: 64_000 });
        let moves = SeenOfNeeded { seen: 2_000, needed: 2_000 };
        assert_eq!(found, Needed { received_bytes: bytes, sent_bytes: bytes, moves });
        assert!(found.is_covered());
    }

    /// Shares that add up to all calls, none of which received or sent: document 000's table.
    #[test]
    fn a_table_without_the_data_path_is_found_out() {
        let rows = [
            ("call epoll_wait", "count", 4_000.0),
            ("call fcntl", "count", 8_000.0),
            ("call accept4", "count", 4_000.0),
        ];
        let found = needed(&cell(), &rows).expect("calls were seen");
        assert_eq!((found.share(), found.is_covered()), (0.0, false));
        assert!(needed(&cell(), &RECEIVED).is_some_and(|it| !it.is_covered()), "who answers was not seen");
    }

    #[test]
    fn one_call_moves_what_a_connection_has_in_flight_and_what_was_cut_is_not_asked_for() {
        let deep = CellSpec { depth: 4, ..cell() };
        let rows = |received| {
            [
                ("call recvfrom", "count", received),
                ("call recvfrom", "returned", received * 256.0),
                ("call sendto", "count", 250.0),
                ("call sendto", "returned", 64_000.0),
            ]
        };
        assert!(needed(&deep, &rows(250.0)).is_some_and(|it| it.is_covered()));
        let cut = [rows(240.0).to_vec(), vec![("trace", "calls-cut", 10.0)]].concat();
        assert!(needed(&deep, &cut).is_some_and(|it| it.is_covered()));
        assert!(needed(&deep, &rows(240.0)).is_some_and(|it| !it.is_covered()));
    }

    #[test]
    fn operations_of_a_ring_are_counted_and_their_bytes_are_not_known() {
        let rows = [
            ("call io_uring_enter", "count", 40.0),
            ("io_uring submit_req", "count", 1_000.0),
            ("io_uring complete", "count", 1_000.0),
            ("io_uring complete", "elsewhere-count", 9_000.0),
        ];
        let found = needed(&cell(), &rows).expect("calls were seen");
        let moves = SeenOfNeeded { seen: 2_000, needed: 2_000 };
        assert_eq!(found, Needed { moves, ..Needed::default() });
        assert_eq!(needed(&cell(), &rows[1..]), None, "without calls nobody looked");
    }

    #[test]
    fn an_answer_of_http_has_its_content_and_a_request_at_least_a_line() {
        let http = Some(HttpCell { content: "html".to_owned(), ..HttpCell::default() });
        let http = CellSpec { http, message_bytes: 600, ..cell() };
        let rows = |sent| {
            [
                ("call read", "count", 1_000.0),
                ("call read", "returned", 90_000.0),
                ("call writev", "count", 1_000.0),
                ("call writev", "returned", sent),
            ]
        };
        let found = needed(&http, &rows(780_000.0)).expect("calls were seen");
        assert_eq!(found.received_bytes.map(|it| it.needed), Some(18_000));
        assert!(found.is_covered() && found.share() == 1.0, "{found:?}");
        assert!(needed(&http, &rows(500_000.0)).is_some_and(|it| !it.is_covered()));
    }

    #[test]
    fn strace_sees_calls_and_no_ring() {
        let row = |name: &str, calls, errors| StraceRow { name: name.to_owned(), calls, errors, time_ns: 0 };
        let epoll = [row("recvfrom", 200, 100), row("sendto", 100, 0), row("epoll_wait", 90, 0)];
        assert_eq!(under_strace(&cell(), 100, &epoll), SeenOfNeeded { seen: 200, needed: 200 });
        let uring = [row("io_uring_enter", 130, 0)];
        assert_eq!(under_strace(&cell(), 100, &uring).share(), 0.0);
    }
}
