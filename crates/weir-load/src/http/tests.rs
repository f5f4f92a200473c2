//! The HTTP workload without sockets: bytes in, notes out.

use std::{any::Any, cell::Cell, collections::VecDeque, sync::Arc};

use proptest::prelude::*;

use super::{
    across_workers::HttpCommon,
    content_check::ExpectedContents,
    notes::ResponseNotes,
    request_order::RequestOrder,
    spec::{ExpectedContent, HttpSpec, tests::http},
    workload::{ConnectionState, Http},
};
use crate::{
    failure::{Class, Failure},
    recorder::{IntervalNotes, Outbox, PendingMessage, Recorder, WindowBounds},
    spec::ProtocolSpec,
    workload::{Accepted, End, Loss, Notes, Workload},
};

const PAGE: &[u8] = b"0123456789";
const USUAL: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789";
const CHUNKED: &[u8] =
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n012\r\n7\r\n3456789\r\n0\r\n\r\n";

/// One connection and everything around it.
struct Rig {
    http: Http,
    state: ConnectionState,
    pending: VecDeque<PendingMessage>,
    recorder: Recorder,
    outbox: Outbox,
    now_ns: Cell<u64>,
}

impl Rig {
    fn new(spec: HttpSpec, in_flight: usize) -> Self {
        let bounds = Arc::new(WindowBounds::default());
        bounds.open(0);
        let (expected, order) = (ExpectedContents::new(&spec), RequestOrder::new(&spec, 1));
        let common = HttpCommon { expected, order, results: None };
        let http = Http::new(&spec, Arc::new(common));
        let outbox = Outbox::default();
        let keeps = spec.facts().sections;
        let mut recorder = Recorder::new(0, keeps, bounds, 0, Arc::clone(&outbox));
        let pending = PendingMessage { intended_ns: 0, started_ns: 0 };
        let pending: VecDeque<PendingMessage> = std::iter::repeat_n(pending, in_flight).collect();
        pending.iter().for_each(|pending| recorder.started(*pending));
        let state = http.open(0, 0, 0);
        Self { http, state, pending, recorder, outbox, now_ns: Cell::new(0) }
    }

    fn notes(&mut self) -> (&Http, &mut ConnectionState, Notes<'_>) {
        self.now_ns.set(self.now_ns.get() + 100);
        let notes = Notes {
            now_ns: self.now_ns.get(),
            sent: 0,
            pending: &mut self.pending,
            recorder: &mut self.recorder,
        };
        (&self.http, &mut self.state, notes)
    }

    fn accept(&mut self, bytes: &[u8]) -> Result<Accepted, Failure> {
        let (http, state, notes) = self.notes();
        http.accept(state, bytes, notes)
    }

    fn end(&mut self) -> End {
        let (http, state, notes) = self.notes();
        http.end(state, None, notes)
    }

    /// The notes of the interval.
    fn noted(mut self) -> IntervalNotes {
        self.recorder.finish(self.now_ns.get());
        self.outbox.lock().expect("no thread panicked").remove(0)
    }
}

/// The notes about responses.
fn responses(notes: &IntervalNotes) -> &ResponseNotes {
    let section: &dyn Any = &**notes.section.as_ref().expect("it is kept");
    section.downcast_ref().expect("it is of HTTP")
}

fn expecting(content: &[u8]) -> HttpSpec {
    HttpSpec { expect_content: ExpectedContent::Bytes(content.to_vec()), ..http() }
}

#[test]
fn a_right_response_is_noted_with_its_first_byte_and_a_wrong_one_with_its_status_alone() {
    let mut rig = Rig::new(expecting(PAGE), 2);
    let absent = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    for (piece, messages) in [(&USUAL[..20], 0), (&USUAL[20..], 1), (absent, 1)] {
        assert_eq!(rig.accept(piece).expect("framed right").messages, messages);
    }
    let notes = rig.noted();
    assert_eq!((notes.messages, notes.bytes, notes.errors), (1, 10, 1));
    let responses = responses(&notes);
    assert_eq!((notes.service.max(), responses.first_byte.max(), responses.compared), (200, 100, 1));
    assert_eq!((responses.statuses.of(200), responses.statuses.of(404)), (1, 1));
}

#[test]
fn the_same_responses_are_noted_the_same_whether_or_not_their_head_is_known() {
    let mut rig = Rig::new(expecting(PAGE), 5);
    // The first is decoded, the second and third are known, the fourth is cut, the fifth is chunked.
    for (piece, messages) in
        [(USUAL, 1), (&USUAL.repeat(2)[..], 2), (&USUAL[..20], 0), (&USUAL[20..], 1), (CHUNKED, 1)]
    {
        assert_eq!(rig.accept(piece).expect("right").messages, messages);
    }
    let notes = rig.noted();
    let responses = responses(&notes);
    assert_eq!((notes.messages, notes.bytes, notes.errors), (5, 50, 0));
    assert_eq!((responses.compared, responses.statuses.of(200), responses.first_byte.len()), (5, 5, 5));
    assert!(responses.first_byte.mean() < notes.service.mean(), "the fourth began before it ended");
}

#[test]
fn a_known_head_with_another_content_is_still_wrong() {
    let mut rig = Rig::new(expecting(PAGE), 3);
    let wrong = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234567x9";
    for piece in [USUAL, wrong, USUAL] {
        assert_eq!(rig.accept(piece).expect("well framed"), Accepted { messages: 1, closes: false });
    }
    assert_eq!(rig.recorder.failure_last(), Some("the content differs from what was expected at byte 8"));
    assert_eq!(rig.recorder.failures().wrong_bytes, 1);
    assert_eq!(rig.noted().messages, 2);
}

#[test]
fn a_response_that_closes_is_the_last() {
    let closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 10\r\n\r\n0123456789";
    let mut rig = Rig::new(expecting(PAGE), 3);
    assert_eq!(rig.accept(closing).expect("right"), Accepted { messages: 1, closes: true });
    let mut rig = Rig::new(expecting(PAGE), 3);
    let failure = rig.accept(&[&closing[..], USUAL].concat()).expect_err("nothing may follow");
    assert_eq!(failure.class, Class::Malformed);
    assert_eq!(rig.pending.len(), 2);
}

#[test]
fn an_end_is_a_right_a_completion_or_a_loss() {
    let mut idle = Rig::new(expecting(PAGE), 0);
    assert!(matches!(idle.end(), End::Closed));
    assert_eq!(idle.recorder.connections().expect("kept").closed_between, 1);

    let mut until = Rig::new(expecting(PAGE), 2);
    assert_eq!(until.accept(b"HTTP/1.1 200 OK\r\n\r\n0123456789").expect("right").messages, 0);
    assert!(matches!(until.end(), End::Closed));
    assert_eq!(until.recorder.connections().expect("kept").closed_as_said, 1);
    assert_eq!((until.pending.len(), until.noted().messages), (1, 1));

    for piece in [&b""[..], &USUAL[..5], &USUAL[..45], b"HTTP/1.1 100 Continue\r\n\r\n"] {
        let mut cut = Rig::new(expecting(PAGE), 1);
        assert_eq!(cut.accept(piece).expect("nothing wrong so far").messages, 0);
        let End::Failed(failure) = cut.end() else { panic!("cut off") };
        assert_eq!(failure.class, Class::Short);
    }
}

#[test]
fn every_byte_of_a_large_content_is_compared() {
    let content = vec![7; 300_000];
    let mut response = b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n".to_vec();
    response.extend_from_slice(&content);
    let feed = |rig: &mut Rig, bytes: &[u8]| {
        for piece in bytes.chunks(30_000) {
            rig.accept(piece).expect("well framed");
        }
    };
    let mut rig = Rig::new(expecting(&content), 40);
    for place in [0, 1, 65_536, 299_999] {
        for _ in 0..9 {
            feed(&mut rig, &response);
        }
        let mut wrong = response.clone();
        let at = response.len() - content.len() + place;
        wrong[at] ^= 1;
        feed(&mut rig, &wrong);
        let said = format!("the content differs from what was expected at byte {place}");
        assert_eq!(rig.recorder.failure_last(), Some(said.as_str()));
    }
    assert_eq!(rig.recorder.failures().wrong_bytes, 4);
    let notes = rig.noted();
    assert_eq!((notes.messages, responses(&notes).compared), (36, 36));
}

/// Bytes of a sample, its failure, and its beginning.
fn sample(rig: &Rig) -> Option<(u64, String, String)> {
    let totals = rig.http.noted();
    let report = totals.bad_response.map(|sample| sample.report(&http()))?;
    assert_eq!(report.url, http().urls[0].text);
    Some((report.bytes, report.failure.class, report.start))
}

#[test]
fn the_first_bad_response_is_kept_as_it_came_however_it_was_cut() {
    let bad = b"HTTP/1.1 503 No\r\nContent-Length: 5\r\n\r\n\x1b[2J!";
    let kept = (bad.len() as u64, "wrong_status", r"HTTP/1.1 503 No\r\nContent-Length: 5\r\n\r\n\x1b[2J!");
    for cut in 1..bad.len() {
        let mut rig = Rig::new(expecting(PAGE), 4);
        rig.accept(USUAL).expect("right");
        assert_eq!(sample(&rig), None);
        rig.accept(&bad[..cut]).expect("nothing wrong so far");
        rig.accept(&[&bad[cut..], USUAL].concat()).expect("well framed");
        rig.accept(b"HTTP/1.1 404 Later\r\nContent-Length: 0\r\n\r\n").expect("well framed");
        let (bytes, class, start) = sample(&rig).expect("a bad one came");
        assert_eq!((bytes, class.as_str(), start.as_str()), kept, "cut at {cut}");
    }
}

#[test]
fn a_response_that_is_none_is_kept_too_and_a_connection_that_ends_in_silence_leaves_nothing() {
    for (bytes, class) in [(&b"SSH-2.0-x\r\n"[..], "malformed"), (&USUAL[..45], "short")] {
        let mut rig = Rig::new(expecting(PAGE), 1);
        let failure = match rig.accept(bytes) {
            Err(failure) => failure,
            Ok(_) => match rig.end() {
                End::Failed(failure) => failure,
                other => panic!("it is over, not {other:?}"),
            },
        };
        let loss = Loss { failure: &failure, now_ns: 9 };
        rig.http.lost(Some(&rig.state), &rig.pending, &loss);
        let (kept, kept_class, start) = sample(&rig).expect("a bad one came");
        assert_eq!((kept, kept_class.as_str()), (bytes.len() as u64, class));
        assert_eq!(start, bytes.escape_ascii().to_string());
    }
    let silent = Rig::new(expecting(PAGE), 1);
    let failure = Failure::short(1);
    silent.http.lost(Some(&silent.state), &silent.pending, &Loss { failure: &failure, now_ns: 9 });
    assert_eq!(sample(&silent), None);
}

#[test]
fn a_redirect_says_where_to_and_steers_no_terminal() {
    let mut rig = Rig::new(expecting(PAGE), 2);
    for location in ["/new", "/\u{9b}2J"] {
        let moved =
            format!("HTTP/1.1 301 Moved Permanently\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
        rig.accept(moved.as_bytes()).expect("well framed");
    }
    let last = rig.recorder.failure_last().expect("it failed");
    assert_eq!(
        last,
        "status 301 Moved Permanently instead of 200, a redirect to /\u{fffd}2J; redirects are not followed"
    );
    let totals = rig.http.noted();
    assert_eq!(totals.redirect_location.as_deref(), Some("/new"));
}

proptest! {
    #[test]
    fn how_a_stream_of_responses_is_cut_changes_nothing(
        kinds in prop::collection::vec(0_usize..5, 1..12),
        cuts in prop::collection::vec(1_usize..90, 1..40),
    ) {
        let all: [&[u8]; 5] = [
            USUAL,
            CHUNKED,
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789",
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno",
            b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456780",
        ];
        let stream = kinds.iter().map(|kind| all[*kind]).collect::<Vec<_>>().concat();
        let mut rig = Rig::new(expecting(PAGE), kinds.len());
        let (mut rest, mut messages) = (&stream[..], 0);
        for cut in cuts.iter().cycle() {
            let (piece, later) = rest.split_at((*cut).min(rest.len()));
            messages += rig.accept(piece).expect("well framed").messages;
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        let wrong = |kind| kinds.iter().filter(|other| **other == kind).count() as u64;
        let failures = *rig.recorder.failures();
        prop_assert_eq!(messages, kinds.len() as u64);
        prop_assert_eq!((failures.wrong_status, failures.wrong_bytes), (wrong(3), wrong(4)));
        prop_assert_eq!(failures.errors(), wrong(3) + wrong(4));
        prop_assert_eq!(rig.noted().messages, messages - failures.errors());
    }

    #[test]
    fn bytes_from_anywhere_never_make_it_panic(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..10),
        first in 0_usize..3,
        in_flight in 0_usize..4,
    ) {
        let mut rig = Rig::new(http(), in_flight);
        let opening: [&[u8]; 3] = [b"", USUAL, &CHUNKED[..50]];
        let mut failed = rig.accept(opening[first]).is_err();
        for piece in pieces {
            failed = failed || rig.accept(&piece).is_err();
        }
        if !failed {
            rig.end();
        }
    }
}
