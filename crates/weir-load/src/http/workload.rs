//! One worker's side of HTTP: writes requests and judges what comes back on each connection.
//!
//! A response must have valid framing, an expected status, and the expected content. The decoder of `weir-proto`
//! reads the framing once; contents are compared in the buffers they arrived in. Servers send the same head to all
//! clients for a second at a time, so the worker remembers the last good head of each URL. A response that begins
//! with the very same bytes has the same meaning, and a response that lies whole in a buffer then costs two
//! comparisons.
//!
//! Every byte of every content is compared. For large contents that is a tenth of the generator's work, and a fifth
//! if other threads compete for the caches.
//!
//! A response that is complete but not what was expected is a failure of its own request alone. Bad framing ends the
//! connection, because the start of the next response is unknown.

use std::{
    any::Any,
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::Future,
    io,
    pin::pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll},
};

use weir_engine::net::Stream;
use weir_proto::http1::{BodyLength, Ending, Event, Limits, Method, ResponseDecoder, encode::reason};

use super::{
    across_workers::HttpCommon,
    content_check::Content,
    notes::{HttpTotals, RequestCounts, ResponseNotes, Right},
    result_log::{ResultLog, ResultSender, Row},
    sample::{Sample, Start},
    spec::HttpSpec,
};
use crate::{
    failure::{self, Class, Failure, Stage},
    payload::Arrival,
    recorder::{PendingMessage, Recorder},
    worker::{Plan, RunnableWorkload},
    workload::{Accepted, End, Loss, Notes, Workload},
};

/// Requests up to this size are copied into the queue, so that a pipeline leaves together.
const COPIED_BYTES_MAX: usize = 2048;
/// Larger contents never lie in one buffer together with their head.
const WHOLE_BYTES_MAX: usize = 64 << 10;
/// Longest location of a redirect that is kept.
const LOCATION_BYTES_MAX: usize = 1024;

/// What the connections of one worker share.
pub(crate) struct Http {
    requests: Vec<Rc<[u8]>>,
    /// How to read the response to each URL, and its right statuses.
    expected: Vec<(Method, Vec<u16>)>,
    /// Counts of each request of a mix, over the whole run; empty without a mix.
    by_request: Vec<Cell<RequestCounts>>,
    connection_per_request: bool,
    /// This worker's sender of the log.
    results: Option<ResultSender>,
    common: Arc<HttpCommon>,
    /// Bytes held back until the expected content is known.
    held_bytes: Rc<Cell<usize>>,
    /// The last good head of each URL.
    heads: RefCell<Vec<KnownHead>>,
    redirect_location: RefCell<Option<String>>,
    /// The first bad response.
    bad_response: RefCell<Option<Sample>>,
}

/// A head with a known meaning: an expected status, and the expected content length.
#[derive(Debug, Default)]
struct KnownHead {
    bytes: Vec<u8>,
    status: u16,
}

/// The state of one connection.
pub(crate) struct ConnectionState {
    decoder: ResponseDecoder,
    connection: u32,
    connect_ns: u64,
    /// Requests answered so far.
    answered: u64,
    /// When the first byte of the current response arrived.
    first_byte_ns: Option<u64>,
    /// Its bytes so far, head included.
    bytes: u64,
    /// The first of these bytes, until a bad response was found.
    start: Start,
    /// What the head of the current response contained.
    response: Option<Response>,
}

/// A response whose head is known.
#[derive(Debug)]
struct Response {
    status: u16,
    keeps_alive: bool,
    content: Content,
    /// Target of a redirect.
    location: Option<String>,
}

/// A finished response.
struct Answer<'a> {
    status: u16,
    first_byte_ns: u64,
    bytes: u64,
    failure: Option<&'a Failure>,
}

impl Http {
    pub(crate) fn new(spec: &HttpSpec, common: Arc<HttpCommon>) -> Self {
        // The specification was validated, so writing the requests cannot fail.
        let requests = spec.requests().unwrap_or_default().into_iter().map(Rc::from).collect();
        Self {
            requests,
            expected: spec
                .urls
                .iter()
                .map(|url| (spec.reads_as(url), spec.expect_status(url).to_vec()))
                .collect(),
            by_request: spec.urls.iter().filter(|_| spec.is_mix()).map(|_| Cell::default()).collect(),
            connection_per_request: spec.connection_per_request,
            results: common.results.as_ref().and_then(ResultLog::sender),
            common,
            held_bytes: Rc::default(),
            heads: RefCell::new(spec.urls.iter().map(|_| KnownHead::default()).collect()),
            redirect_location: RefCell::new(None),
            bad_response: RefCell::new(None),
        }
    }

    /// The counts of the whole run.
    pub(crate) fn noted(&self) -> HttpTotals {
        HttpTotals {
            redirect_location: self.redirect_location.borrow().clone(),
            bad_response: self.bad_response.borrow().clone(),
            by_request: self.by_request.iter().map(Cell::get).collect(),
        }
    }

    /// The index of a request of a mix; `None` without a mix.
    #[inline]
    fn request(&self, url: usize) -> Option<usize> {
        (!self.by_request.is_empty()).then_some(url)
    }

    /// Counts the outcome of a request of a mix.
    #[inline]
    fn count(&self, url: usize, failed: Option<Class>) {
        let Some(cell) = self.by_request.get(url) else { return };
        let mut counts = cell.get();
        match failed {
            None => counts.right += 1,
            Some(class) => failure::count(&mut counts.failures, class, 1),
        }
        cell.set(counts);
    }

    /// URL of request `number` of a connection.
    #[inline]
    fn url(&self, connection: u32, number: u64) -> usize {
        self.common.order.at(connection, number)
    }

    fn expected(&self, url: usize) -> Option<&[u8]> {
        self.common.expected.get(url)
    }

    /// Takes a response that lies whole in the input and equals the last good one byte for byte.
    #[inline]
    fn take_known(&self, state: &mut ConnectionState, input: &[u8], notes: &mut Notes<'_>) -> Option<usize> {
        let url = self.url(state.connection, state.answered);
        let expected = self.expected(url)?;
        let heads = self.heads.borrow();
        let known = &heads[url];
        let (head, rest) = input.split_at_checked(known.bytes.len())?;
        if head.is_empty() || head != known.bytes || rest.get(..expected.len()) != Some(expected) {
            return None;
        }
        let pending = notes.pending.pop_front()?;
        self.count(url, None);
        let size = head.len() + expected.len();
        answered(notes.recorder, known.status);
        let right = Right {
            first_byte_ns: notes.now_ns,
            content_bytes: expected.len() as u64,
            compared: true,
            request: self.request(url),
        };
        responded(notes, pending, &right);
        if self.results.is_some() {
            let answer = Answer {
                status: known.status,
                first_byte_ns: notes.now_ns,
                bytes: size as u64,
                failure: None,
            };
            self.log_row(state, pending, &answer, notes.now_ns);
        }
        state.answered += 1;
        Some(size)
    }

    /// Decodes up to the end of the current response, or of the input. Returns the number of bytes used and, if a
    /// response was completed, whether the peer closes the connection.
    fn decode(
        &self,
        state: &mut ConnectionState,
        input: &[u8],
        notes: &mut Notes<'_>,
    ) -> Result<(usize, Option<bool>), Failure> {
        let begins = state.is_between();
        state.first_byte_ns.get_or_insert(notes.now_ns);
        let mut used = 0;
        loop {
            let rest = &input[used..];
            let url = self.url(state.connection, state.answered);
            let step = match state.decoder.decode(self.expected[url].0, rest) {
                Ok(step) => step,
                Err(error) => {
                    state.bytes += rest.len() as u64;
                    state.start.push(rest);
                    return Err(malformed(error));
                }
            };
            state.bytes += step.consumed as u64;
            if self.bad_response.borrow().is_none() {
                state.start.push(&rest[..step.consumed]);
            }
            used += step.consumed;
            match step.event {
                Event::NeedMore | Event::ExpectContinue => return Ok((used, None)),
                // The decoder is called only if there are bytes, and there should be none.
                Event::Finished => return Err(Failure::unsolicited(Self::UNASKED, rest.len())),
                Event::Head(head) if head.is_interim() => state.first_byte_ns = None,
                Event::Head(head) => {
                    let is_expected = self.expected[url].1.contains(&head.status);
                    let content = if is_expected { self.content(url) } else { Content::measured() };
                    if begins && used == step.consumed && is_expected && head.keep_alive {
                        self.remember(url, &input[..used], head.status, head.body);
                    }
                    let location = self.redirect(head.status, head.headers.get("location"));
                    let (status, keeps_alive) = (head.status, head.keep_alive);
                    state.first_byte_ns.get_or_insert(notes.now_ns);
                    state.response = Some(Response { status, keeps_alive, content, location });
                }
                Event::Body(bytes) => {
                    if let Some(response) = &mut state.response {
                        response.content.push(bytes, self.expected(url));
                    }
                }
                Event::End { .. } => return Ok((used, Some(self.finish(state, notes)))),
            }
        }
    }

    /// How to check the content of a response that begins now.
    fn content(&self, url: usize) -> Content {
        let expected = &self.common.expected;
        if expected.is_any(url) {
            return Content::measured();
        }
        match expected.get(url) {
            None => Content::held_back(&self.held_bytes, expected.hash_bytes(url)),
            Some(_) => Content::compared(),
        }
    }

    /// Remembers a head for [`Self::take_known`]. Connections that close after the response never use it.
    fn remember(&self, url: usize, head: &[u8], status: u16, body: BodyLength) {
        let Some(expected) = self.expected(url) else { return };
        let fits = body == BodyLength::Length(expected.len() as u64);
        if fits && expected.len() <= WHOLE_BYTES_MAX && !self.connection_per_request {
            let known = &mut self.heads.borrow_mut()[url];
            known.bytes.clear();
            known.bytes.extend_from_slice(head);
            known.status = status;
        }
    }

    /// Target of a redirect, without terminal control characters; the first is remembered.
    fn redirect(&self, status: u16, location: Option<&[u8]>) -> Option<String> {
        let location = location.filter(|_| is_redirect(status))?;
        let kept = String::from_utf8_lossy(&location[..location.len().min(LOCATION_BYTES_MAX)]);
        let printable = |letter: char| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter };
        let text: String = kept.chars().map(printable).collect();
        self.redirect_location.borrow_mut().get_or_insert_with(|| text.clone());
        Some(text)
    }

    /// Keeps a bad response if it is the first and at least one byte of it has arrived.
    #[cold]
    fn keep_sample(&self, state: &ConnectionState, bytes: u64, failure: &Failure, now_ns: u64) {
        let mut kept = self.bad_response.borrow_mut();
        if bytes > 0 && kept.is_none() {
            *kept = Some(Sample {
                at_ns: now_ns,
                url: self.url(state.connection, state.answered),
                failure: failure.clone(),
                bytes,
                start: state.start.clone(),
            });
        }
    }

    /// Judges and notes the current response, which is complete. Returns whether the peer closes the connection.
    fn finish(&self, state: &mut ConnectionState, notes: &mut Notes<'_>) -> bool {
        let url = self.url(state.connection, state.answered);
        let first_byte_ns = state.first_byte_ns.take().unwrap_or(notes.now_ns);
        let bytes = std::mem::take(&mut state.bytes);
        let (Some(response), Some(pending)) = (state.response.take(), notes.pending.pop_front()) else {
            return false;
        };
        let Response { status, keeps_alive, content, location } = response;
        let content_bytes = content.bytes() as u64;
        answered(notes.recorder, status);
        let failure = if self.expected[url].1.contains(&status) {
            match content.finish(&self.common.expected, url) {
                Ok(compared) => {
                    let right = Right { first_byte_ns, content_bytes, compared, request: self.request(url) };
                    responded(notes, pending, &right);
                    None
                }
                Err(mismatch) => Some(Failure { class: Class::WrongBytes, text: mismatch.to_string() }),
            }
        } else {
            Some(self.wrong_status(url, status, location.as_deref()))
        };
        self.count(url, failure.as_ref().map(|failure| failure.class));
        if let Some(failure) = &failure {
            self.keep_sample(state, bytes, failure, notes.now_ns);
            notes.recorder.failed(notes.now_ns, failure.class, 1, failure.text.clone());
        }
        let answer = Answer { status, first_byte_ns, bytes, failure: failure.as_ref() };
        self.log_row(state, pending, &answer, notes.now_ns);
        state.answered += 1;
        state.start.clear();
        !keeps_alive || self.connection_per_request
    }

    #[cold]
    fn wrong_status(&self, url: usize, status: u16, location: Option<&str>) -> Failure {
        let expected: Vec<String> = self.expected[url].1.iter().map(u16::to_string).collect();
        let followed = match (is_redirect(status), location) {
            (true, Some(location)) => format!(", a redirect to {location}; redirects are not followed"),
            (true, None) => "; redirects are not followed".into(),
            (false, _) => String::new(),
        };
        let got = format!("{status} {}", reason(status));
        let text = format!("status {} instead of {}{followed}", got.trim_end(), expected.join(" or "));
        Failure { class: Class::WrongStatus, text }
    }

    fn log_row(&self, state: &ConnectionState, pending: PendingMessage, answer: &Answer<'_>, now_ns: u64) {
        let Some(results) = &self.results else { return };
        results.note(Row {
            started_ns: pending.started_ns,
            ended_ns: now_ns,
            first_byte_ns: Some(answer.first_byte_ns),
            connect_ns: if state.answered == 0 { state.connect_ns } else { 0 },
            status: answer.status,
            failure: answer.failure.map(|failure| (failure.class, failure.text.clone())),
            bytes: answer.bytes,
            url: self.url(state.connection, state.answered),
            connection: state.connection,
        });
    }
}

impl ConnectionState {
    /// Whether no response is partly received.
    fn is_between(&self) -> bool {
        self.response.is_none() && self.decoder.is_between_messages()
    }
}

impl RunnableWorkload for Http {
    type Spec = HttpSpec;

    fn of(plan: &Plan<'_>, spec: &HttpSpec) -> Self {
        Self::new(spec, plan.common())
    }
}

impl Workload for Http {
    type ConnectionState = ConnectionState;

    fn open(&self, _place: usize, connection: u32, connect_ns: u64) -> ConnectionState {
        // Contents are not stored, so their length is unlimited.
        let limits = Limits { body_bytes_max: u64::MAX, ..Limits::default() };
        ConnectionState {
            decoder: ResponseDecoder::new(limits),
            connection,
            connect_ns,
            answered: 0,
            first_byte_ns: None,
            bytes: 0,
            start: Start::default(),
            response: None,
        }
    }

    #[inline]
    fn poll_request(
        &self,
        state: &ConnectionState,
        sent: u64,
        stream: &Stream,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let request = &self.requests[self.url(state.connection, sent)];
        if request.len() <= COPIED_BYTES_MAX {
            pin!(stream.send_slice(request)).poll(context)
        } else {
            pin!(stream.send(Rc::clone(request))).poll(context)
        }
    }

    #[inline]
    fn accept(
        &self,
        state: &mut ConnectionState,
        bytes: &[u8],
        mut notes: Notes<'_>,
    ) -> Result<Accepted, Failure> {
        let mut input = bytes;
        let mut accepted = Accepted::default();
        while !input.is_empty() {
            if state.is_between() {
                if accepted.closes || notes.pending.is_empty() {
                    state.bytes = input.len() as u64;
                    state.start.push(input);
                    return Err(Failure::unsolicited(Self::UNASKED, input.len()));
                }
                if let Some(size) = self.take_known(state, input, &mut notes) {
                    accepted.messages += 1;
                    input = &input[size..];
                    continue;
                }
            }
            let (used, completed) = self.decode(state, input, &mut notes)?;
            input = &input[used..];
            if let Some(closes) = completed {
                accepted.messages += 1;
                accepted.closes = closes;
            }
        }
        Ok(accepted)
    }

    fn end(&self, state: &mut ConnectionState, error: Option<&io::Error>, mut notes: Notes<'_>) -> End {
        if state.is_between() && notes.pending.is_empty() {
            // Between two requests a server may close at any time.
            if let Some(connections) = notes.recorder.connections() {
                connections.closed_between += 1;
            }
            return End::Closed;
        }
        if let Some(error) = error {
            return End::Failed(Failure::system(Stage::Exchange, error));
        }
        match state.decoder.end_of_input() {
            Ok(Ending::CompletedResponse) => {
                self.finish(state, &mut notes);
                if let Some(connections) = notes.recorder.connections() {
                    connections.closed_as_said += 1;
                }
                End::Closed
            }
            Ok(Ending::BetweenMessages) | Err(_) => End::Failed(Failure::short(notes.pending.len())),
        }
    }

    fn lost(&self, state: Option<&ConnectionState>, pending: &VecDeque<PendingMessage>, loss: &Loss<'_>) {
        if let Some(state) = state {
            self.keep_sample(state, state.bytes, loss.failure, loss.now_ns);
            let lost = state.answered..state.answered + pending.len() as u64;
            lost.for_each(|number| self.count(self.url(state.connection, number), Some(loss.failure.class)));
        }
        let Some(results) = &self.results else { return };
        for (number, pending) in pending.iter().enumerate() {
            let answered = state.map_or(0, |state| state.answered);
            let connection = state.map_or(0, |state| state.connection);
            // Only the oldest request can have a partial answer.
            let oldest = state.filter(|_| number == 0);
            results.note(Row {
                started_ns: pending.started_ns,
                ended_ns: loss.now_ns,
                first_byte_ns: oldest.and_then(|state| state.first_byte_ns),
                connect_ns: oldest.filter(|_| answered == 0).map_or(0, |state| state.connect_ns),
                status: 0,
                failure: Some((loss.failure.class, loss.failure.text.clone())),
                bytes: oldest.map_or(0, |state| state.bytes),
                url: self.url(connection, answered + number as u64),
                connection,
            });
        }
    }

    fn flush(&self) {
        if let Some(results) = &self.results {
            results.flush();
        }
    }

    fn totals(&self) -> Option<Box<dyn Any + Send>> {
        Some(Box::new(self.noted()))
    }
}

/// Notes the status of a complete response, right or wrong.
#[inline]
fn answered(recorder: &mut Recorder, status: u16) {
    if let Some(responses) = recorder.section::<ResponseNotes>() {
        responses.statuses.add(status, 1);
    }
}

/// Notes a right response, which ended the oldest request in flight.
#[inline]
fn responded(notes: &mut Notes<'_>, pending: PendingMessage, right: &Right) {
    let arrival = Arrival { messages: 1, bytes: right.content_bytes, wrong: None };
    notes.recorder.arrived(notes.now_ns, &arrival, std::iter::once(pending));
    if let Some(responses) = notes.recorder.section::<ResponseNotes>() {
        responses.right(right, pending.started_ns);
    }
}

/// Whether a status is a redirect.
pub(crate) fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

#[cold]
fn malformed(error: weir_proto::http1::ParseError) -> Failure {
    Failure { class: Class::Malformed, text: format!("the response is malformed: {error}") }
}
