//! One connection: received bytes are decoded and answered in order, without waiting, into a batch; then the batch is
//! sent. Everything that waits is in [`Connection::run`] and below; all decisions are plain code.

use std::{io, net::IpAddr, rc::Rc, time::Duration};

use weir_engine::{
    net::{Address, Stream},
    time::{self, Instant},
};
use weir_proto::http1::{
    BodyLength, Event, Method, ParseError, RequestDecoder, Version,
    encode::{self, AfterMessage},
};

use super::{
    access_log_line::ConnectionLog,
    admission::Admitted,
    config::{Body, Timeouts},
    counters::Refusal,
    file_body::FileSlice,
    file_lookup::{FileError, FileReply, FileRequest, FileResponse, Unopened},
    input::Input,
    response_encoder::{COPIED_BYTES_MAX, Form, Head, Replies, write_head, write_refusal},
    static_body::Stored,
    worker::Worker,
};
use crate::connection_timer::ConnectionTimer;

mod content;
mod refusals;
mod sending;

/// Replies are sent when a batch has reached this size, even if more requests have arrived.
const BATCH_BYTES_MAX: usize = 64 << 10;

/// The amount of content that [`Timeouts::content`](super::Timeouts::content) applies to, in either direction.
const CONTENT_WINDOW_BYTES: usize = 256 << 10;

/// How long a connection that the server ends may take to notice.
const LINGER: Duration = Duration::from_secs(2);

/// Bytes that such a connection may still send.
const LINGER_BYTES_MAX: usize = 1 << 20;

/// Serves one connection to its end. The first steps are done at once, so that the future contains only the
/// connection.
pub(super) fn serve(worker: Rc<Worker>, stream: Stream) -> impl Future<Output = ()> {
    let now = worker.greet();
    let client = client(&worker, &stream);
    let mut connection = Connection::new(worker, stream, client, now);
    let refusal = connection.enter(client);
    async move {
        if let Some(refusal) = refusal {
            // In a box, because it is rare and would otherwise enlarge every connection.
            return Box::pin(connection.turn_away(refusal)).await;
        }
        match connection.run().await {
            Ending::Gone => {}
            Ending::Done => connection.finish().await,
            Ending::Ours => connection.linger().await,
        }
    }
}

/// The client's address, if it is needed and known. Asking for it costs a system call.
fn client(worker: &Worker, stream: &Stream) -> Option<IpAddr> {
    let shared = &worker.shared;
    if shared.access_log.is_none() && !shared.admission.tells_clients_apart() {
        return None;
    }
    match stream.peer_address() {
        Ok(Address::Tcp(address)) => Some(address.ip()),
        // A Unix socket, or a connection that is already gone.
        _ => None,
    }
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The other side is gone, or does not read: queued bytes are dropped.
    Gone,
    /// Neither side expects more.
    Done,
    /// The server ends it, and the client may still be sending.
    Ours,
}

/// The parts of a decoded head that matter later.
#[derive(Clone, Copy, Debug)]
struct Request {
    method: Method,
    purpose: Purpose,
    version: Version,
    body: BodyLength,
    keep_alive: bool,
    /// The head of its reply has already been written.
    is_replied: bool,
    /// Content that has been sent back.
    echoed_bytes: u64,
}

/// The treatment of a request that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// It gets the page.
    Page,
    /// It is answered with the list of methods.
    Options,
    /// Its method is not in that list.
    Refused,
}

/// A decoded event without a borrow of the decoder.
enum Found<'i> {
    More,
    Request(Request),
    Continue,
    Content(&'i [u8]),
    End,
    Finished,
}

/// What the connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Request,
    Head,
    Content,
}

/// What the connection waits for, and until when.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    stage: Stage,
    until: Instant,
    /// Content that has arrived since `until` was set.
    content_bytes: usize,
}

/// Why decoding pauses: the batch and the parts named here are sent, and then `Then` follows.
#[derive(Debug)]
struct Pause {
    /// A reply that is sent as rendered, because no other was batched before it.
    rendered: Option<Form>,
    content: ContentSource,
    then: Then,
}

impl Pause {
    fn batch_then(then: Then) -> Self {
        Self { rendered: None, content: ContentSource::None, then }
    }
}

/// Content that is sent from where it is stored.
#[derive(Debug)]
enum ContentSource {
    None,
    Stored(Stored),
    File(FileSlice),
    /// The head is also still missing: the file is not open yet.
    Unopened(Box<(Unopened, Form)>),
}

#[derive(Clone, Copy, Debug)]
enum Then {
    Receive,
    Decode,
    End(Ending),
}

struct Connection {
    worker: Rc<Worker>,
    /// It counts against the limit on connections.
    _admitted: Option<Admitted>,
    stream: Stream,
    decoder: RequestDecoder,
    deadline: ConnectionTimer,
    waiting: Waiting,
    /// The request whose content is being read.
    request: Option<Request>,
    requests_left: u64,
    requests_answered: u64,
    /// Replies that have not been sent. Empty, and without memory, whenever something is received.
    batch: Vec<u8>,
    /// Bytes handed to the engine since its queue was last known to be empty.
    queued_bytes: u64,
    /// Bytes sent since other connections were served.
    share_bytes: usize,
    /// The state for the access log, if there is one.
    log: Option<Box<ConnectionLog>>,
    /// The reply to the request, if it is a file.
    file: Option<FileReply>,
}

impl Connection {
    fn new(worker: Rc<Worker>, stream: Stream, client: Option<IpAddr>, now: Instant) -> Self {
        let config = &worker.shared.config;
        let log = || Box::new(ConnectionLog::new(config.log_format, client));
        let until = now + config.timeouts.idle;
        Self {
            _admitted: None,
            decoder: RequestDecoder::new(config.limits),
            deadline: ConnectionTimer::new(),
            waiting: Waiting { stage: Stage::Request, until, content_bytes: 0 },
            request: None,
            requests_left: config.requests_max,
            requests_answered: 0,
            batch: Vec::new(),
            queued_bytes: 0,
            share_bytes: 0,
            log: worker.shared.access_log.is_some().then(log),
            file: None,
            stream,
            worker,
        }
    }

    /// Receives and answers until the end.
    async fn run(&mut self) -> Ending {
        loop {
            let mut input = match self.deadline.until(self.waiting.until, self.stream.recv()).await {
                Some(Ok(Some(lease))) => Some(Input::Lease(lease)),
                Some(Ok(None)) => return self.ended(),
                Some(Err(error)) => return self.failed(&error),
                None => None,
            };
            let ending = match &mut input {
                Some(input) => {
                    if self.deadline.take_has_waited() {
                        self.share_bytes = 0;
                    }
                    self.take(input).await
                }
                None => self.late().await,
            };
            if let Some(ending) = ending {
                return ending;
            }
        }
    }

    /// Answers the requests that a lease completes. `None`: the connection continues.
    async fn take(&mut self, input: &mut Input) -> Option<Ending> {
        if let Some(log) = &mut self.log {
            log.arrive(self.request.is_none() && self.decoder.is_between_messages());
        }
        loop {
            let now = self.worker.tick();
            let replies = self.worker.replies();
            let pause = self.answer(input, &replies, now);
            input.release();
            let then = pause.then;
            let is_sent = self.send(pause, &replies).await;
            self.flush_log();
            if !is_sent {
                return Some(Ending::Gone);
            }
            match then {
                Then::Receive => {
                    if self.deadline.take_has_waited() {
                        // The time that our own replies took does not count against the client.
                        self.waiting.until = self.worker.tick() + self.limit(self.waiting.stage);
                    }
                    return None;
                }
                Then::Decode => {}
                Then::End(ending) => return Some(ending),
            }
        }
    }

    fn is_sent(&self, outcome: &Option<io::Result<()>>) -> bool {
        match outcome {
            Some(Ok(())) => return true,
            Some(Err(error)) => _ = self.failed(error),
            None => self.count_refusal(Refusal::ReplyNotTaken),
        }
        false
    }

    /// The connection has failed. The client is responsible, unless the engine found a file that ended early.
    fn failed(&self, error: &io::Error) -> Ending {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            self.count_refusal(Refusal::File(FileError::Shrunk));
            self.worker.distrust_files();
        }
        Ending::Gone
    }

    /// No more input comes: the client has ended its direction, or the server drains.
    fn ended(&mut self) -> Ending {
        if let Err(error) = self.decoder.end_of_input() {
            self.count_refusal(Refusal::Malformed(error));
        }
        Ending::Done
    }

    /// The client took too long. `None`: it has time left.
    async fn late(&mut self) -> Option<Ending> {
        let refusal = match self.waiting.stage {
            Stage::Head => Refusal::HeadLate,
            Stage::Content => Refusal::ContentLate,
            Stage::Request => return self.idle().await,
        };
        self.worker.tick();
        let replies = self.worker.replies();
        let pause = self.refuse(refusal, &replies);
        Some(if self.send(pause, &replies).await { Ending::Ours } else { Ending::Gone })
    }

    /// No request came. A client that has not yet taken our replies gets the time of `content` for that, from when
    /// they were queued; then the wait for its next request starts again.
    async fn idle(&mut self) -> Option<Ending> {
        if let Some(flushed) = self.deadline.within(Duration::ZERO, self.stream.flush()).await {
            if let Err(error) = flushed {
                return Some(self.failed(&error));
            }
            self.worker.shared.counters.count_idle();
            return Some(Ending::Done);
        }
        let Timeouts { idle, content, .. } = self.worker.shared.config.timeouts;
        let until = self.waiting.until + content.saturating_sub(idle);
        let flushed = self.deadline.until(until, self.stream.flush()).await;
        if !self.is_sent(&flushed) {
            return Some(Ending::Gone);
        }
        self.queued_bytes = 0;
        self.waiting.until = self.worker.tick() + idle;
        None
    }

    /// Waits until the client has taken the last replies, with the same limit as for any other reply: the engine
    /// drops the queue of a closed connection sooner.
    async fn finish(&mut self) {
        // The kernel takes a small queue at once, so a check is not worth its cost.
        if self.queued_bytes > BATCH_BYTES_MAX as u64 {
            let limit = self.worker.shared.config.timeouts.content;
            let flushed = self.deadline.within(limit, self.stream.flush()).await;
            self.is_sent(&flushed);
        }
    }

    /// Ends our direction, and discards input until the client has ended too.
    async fn linger(&mut self) {
        let limit = self.worker.shared.config.timeouts.content;
        let ended = self.deadline.within(limit, self.stream.shutdown()).await;
        if !self.is_sent(&ended) {
            return;
        }
        let until = time::now() + LINGER;
        let mut left = LINGER_BYTES_MAX;
        loop {
            let received = self.deadline.until(until, self.stream.recv()).await;
            let Some(Ok(Some(lease))) = received else { return };
            let Some(rest) = left.checked_sub(lease.len()) else { return };
            left = rest;
        }
    }

    /// Decodes and answers until the input is used up, or something has to be sent first.
    fn answer(&mut self, input: &mut Input, replies: &Replies, now: Instant) -> Pause {
        loop {
            let rest = input.rest();
            let (consumed, found) = match self.next(rest, replies, now) {
                Ok(found) => found,
                Err(error) => return self.refuse(Refusal::Malformed(error), replies),
            };
            let is_last = consumed == rest.len();
            let mut ended = false;
            match found {
                Found::More => {
                    self.wait_on(now);
                    return Pause::batch_then(Then::Receive);
                }
                Found::Request(request) => self.begin(request),
                Found::Continue => {
                    if let Some(pause) = self.go_ahead(is_last, replies) {
                        return pause;
                    }
                }
                Found::Content(bytes) => self.take_content(bytes, replies),
                Found::End => ended = true,
                Found::Finished => return Pause::batch_then(Then::End(Ending::Ours)),
            }
            input.advance(consumed);
            if ended && let Some(pause) = self.complete(is_last, replies, now) {
                return pause;
            }
            if self.batch.len() >= BATCH_BYTES_MAX {
                return Pause::batch_then(Then::Decode);
            }
        }
    }

    /// One step of the decoder.
    #[inline]
    fn next<'i>(
        &mut self,
        input: &'i [u8],
        replies: &Replies,
        now: Instant,
    ) -> Result<(usize, Found<'i>), ParseError> {
        let step = self.decoder.decode(input)?;
        let found = match step.event {
            Event::NeedMore => Found::More,
            Event::Head(head) => {
                let config = &self.worker.shared.config;
                let purpose = match head.method {
                    method if !config.body.methods().contains(method) => Purpose::Refused,
                    Method::Options => Purpose::Options,
                    _ => Purpose::Page,
                };
                if let Some(log) = &mut self.log {
                    log.begin(&head);
                }
                if let (Body::Files { root, .. }, Purpose::Page) = (&config.body, purpose) {
                    let now_seconds = replies.seconds();
                    let request = FileRequest { method: head.method, headers: head.headers, now_seconds };
                    self.file = Some(self.worker.look_up(root, head.target, &request, now));
                }
                Found::Request(Request {
                    method: head.method,
                    purpose,
                    version: head.version,
                    body: head.body,
                    keep_alive: head.keep_alive,
                    is_replied: false,
                    echoed_bytes: 0,
                })
            }
            Event::ExpectContinue => Found::Continue,
            Event::Body(bytes) => Found::Content(bytes),
            Event::End { .. } => Found::End,
            Event::Finished => Found::Finished,
        };
        Ok((step.consumed, found))
    }

    /// Starts a request after its head.
    fn begin(&mut self, request: Request) {
        self.waiting.stage = Stage::Request;
        self.requests_left -= 1;
        self.request = Some(request);
    }

    /// An experiment: the worker's thread sleeps for the request.
    #[cfg(feature = "lab")]
    #[inline]
    fn take_time(&self) {
        let time = self.worker.shared.config.handler_time;
        if !time.is_zero() {
            std::thread::sleep(time);
        }
    }

    /// Completes a request: adds the rest of its reply.
    #[inline]
    fn complete(&mut self, is_last: bool, replies: &Replies, now: Instant) -> Option<Pause> {
        let mut request = self.request.take()?;
        #[cfg(feature = "lab")]
        self.take_time();
        self.requests_answered += 1;
        let form = Form { after: self.after(&request), head_only: request.method == Method::Head };
        let (mut rendered, mut content) = (None, ContentSource::None);
        match request.purpose {
            Purpose::Page => {
                (rendered, content) = self.answer_with_page(&mut request, form, is_last, replies)
            }
            Purpose::Options => self.tell_options(form.after, replies),
            Purpose::Refused => self.refuse_method(form, replies),
        }
        let then = if !request.keep_alive || self.requests_left == 0 {
            // A client that asked for the end, and has nothing more on its way, needs no time to notice it.
            let is_agreed = !request.keep_alive && is_last;
            Then::End(if is_agreed { Ending::Done } else { Ending::Ours })
        } else if is_last {
            self.wait_on(now);
            Then::Receive
        } else if matches!(content, ContentSource::None) {
            return None;
        } else {
            Then::Decode
        };
        Some(Pause { rendered, content, then })
    }

    /// Writes the page, or returns its source.
    #[inline]
    fn answer_with_page(
        &mut self,
        request: &mut Request,
        form: Form,
        is_last: bool,
        replies: &Replies,
    ) -> (Option<Form>, ContentSource) {
        if let Some(reply) = self.file.take() {
            return (None, self.answer_with_reply(reply, form, replies));
        }
        if matches!(self.worker.shared.config.body, Body::Echo) {
            if !request.is_replied {
                self.reply_early(request, replies);
            }
            if request.body == BodyLength::Chunked && !form.head_only {
                self.batch().extend_from_slice(encode::LAST_CHUNK);
            }
            self.log(200, replies, request.echoed_bytes, false);
            return (None, ContentSource::None);
        }
        let behind = replies.behind(form);
        let content = if behind.len() == 0 { ContentSource::None } else { ContentSource::Stored(behind) };
        self.log(200, replies, replies.content_bytes(form), behind.len() > 0);
        if is_last && self.batch.is_empty() {
            // The usual case: one request, one reply, copied once.
            return (Some(form), content);
        }
        self.batch().extend_from_slice(replies.bytes(form));
        (None, content)
    }

    /// Answers with a cached file, or returns that it must be opened first.
    fn answer_with_reply(&mut self, reply: FileReply, form: Form, replies: &Replies) -> ContentSource {
        match reply {
            FileReply::Plain(file) if form.after == AfterMessage::Unsaid => {
                file.write_head(self.batch(), replies.date());
                let sent_bytes = if form.head_only { 0 } else { file.bytes };
                let content = self.add_file(FileSlice::whole(file), form);
                self.log(200, replies, sent_bytes, !matches!(content, ContentSource::None));
                content
            }
            FileReply::Plain(file) => {
                self.answer_with_file(FileResponse::of_whole(file, replies.seconds()), form, replies)
            }
            FileReply::Response(answer) => self.answer_with_file(*answer, form, replies),
            FileReply::Unopened(unopened) => ContentSource::Unopened(Box::new((*unopened, form))),
        }
    }

    /// Writes the head of a file's reply, and returns the content that follows it.
    fn answer_with_file(&mut self, answer: FileResponse, form: Form, replies: &Replies) -> ContentSource {
        if let Some(error) = answer.error {
            self.count_refusal(Refusal::File(error));
        }
        let worker = Rc::clone(&self.worker);
        let headers = &worker.shared.config.headers;
        answer.write(self.batch(), headers, replies.date(), form.after, form.head_only);
        let sent_bytes = if form.head_only { 0 } else { answer.content_bytes };
        let status = answer.status;
        let content = answer.part.map_or(ContentSource::None, |part| self.add_file(part, form));
        self.log(status, replies, sent_bytes, !matches!(content, ContentSource::None));
        content
    }

    /// The content of a reply: copied behind its head if it is short and in memory, otherwise sent from where it is
    /// stored.
    #[inline]
    fn add_file(&mut self, slice: FileSlice, form: Form) -> ContentSource {
        if form.head_only || slice.length == 0 {
            return ContentSource::None;
        }
        match slice.in_memory() {
            Some(bytes) if bytes.len() <= COPIED_BYTES_MAX => {
                self.batch().extend_from_slice(bytes);
                ContentSource::None
            }
            _ => ContentSource::File(slice),
        }
    }

    /// What a reply states about the connection.
    #[inline]
    fn after(&self, request: &Request) -> AfterMessage {
        let closes = !request.keep_alive || self.requests_left == 0;
        if closes || self.worker.shared.config.say_close {
            AfterMessage::Close
        } else if request.version == Version::Http10 {
            AfterMessage::KeepAlive
        } else {
            AfterMessage::Unsaid
        }
    }

    /// Sets what the connection waits for, and until when: a started head keeps its deadline, and so does content
    /// until a window of it has arrived.
    #[inline]
    fn wait_on(&mut self, now: Instant) {
        let stage = if self.request.is_some() {
            Stage::Content
        } else if self.decoder.is_between_messages() {
            Stage::Request
        } else {
            Stage::Head
        };
        if stage == Stage::Request || stage != self.waiting.stage {
            self.waiting = Waiting { stage, until: now + self.limit(stage), content_bytes: 0 };
        }
    }

    /// How long the connection waits for the client.
    #[inline]
    fn limit(&self, stage: Stage) -> Duration {
        let timeouts = &self.worker.shared.config.timeouts;
        match stage {
            Stage::Request => timeouts.idle,
            Stage::Head => timeouts.head,
            Stage::Content => timeouts.content,
        }
    }

    /// The buffer in which replies are collected.
    #[inline]
    fn batch(&mut self) -> &mut Vec<u8> {
        if self.batch.capacity() == 0 {
            self.batch = self.worker.take_batch();
        }
        &mut self.batch
    }

    fn count_refusal(&self, refusal: Refusal) {
        self.worker.shared.counters.count_refusal(refusal);
    }

    fn write_head(&mut self, head: &Head<'_>) {
        let worker = Rc::clone(&self.worker);
        write_head(self.batch(), &worker.shared.config.headers, head);
    }

    /// Logs a reply.
    #[inline]
    fn log(&mut self, status: u16, replies: &Replies, content_bytes: u64, is_behind: bool) {
        if let Some(log) = &mut self.log {
            log.reply(replies.date(), status, content_bytes, is_behind);
        }
    }

    /// Logs the replies that have been handed over.
    #[inline]
    fn flush_log(&mut self) {
        if let (Some(log), Some(queue)) = (&mut self.log, &self.worker.shared.access_log) {
            log.flush(queue);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A reply cut by a drain is logged with the bytes sent so far.
        self.flush_log();
        self.worker.shared.counters.add_requests(self.requests_answered);
        self.worker.connection_ended();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use weir_engine::{
        Config, Driver, Runtime,
        net::{Listener, Stream},
    };

    use super::*;
    use crate::http::{HttpConfig, HttpLogs, worker::HttpState};

    #[test]
    fn an_idle_connection_is_small() {
        let runtime = Runtime::new(&Config::for_test(Driver::Sim)).expect("it runs everywhere");
        runtime.block_on(async {
            let any = "127.0.0.1:0".parse().expect("an address");
            let listener = Listener::bind(&any, Default::default()).expect("a simulated port");
            let address = listener.local_address().expect("it has one");
            let stream = Stream::connect(&address).await.expect("it listens");
            let shared = HttpState::new(HttpConfig::new(Body::Echo), HttpLogs::default()).expect("no thread");
            let bytes = size_of_val(&serve(Worker::of_thread(&Arc::new(shared)), stream));
            // Ten thousand of them may take 2 KiB each, including the engine's part.
            assert!(bytes <= 1200, "{bytes} bytes");
        });
    }
}
