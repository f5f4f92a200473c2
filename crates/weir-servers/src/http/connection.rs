//! One connection: what arrives is decoded and answered in order, without waiting, into a batch; then the batch is
//! sent. Everything that waits is in [`Connection::run`] and below; everything that decides is plain code.

use std::{io, rc::Rc, thread, time::Duration};

use weir_engine::{
    Lease,
    net::Stream,
    time::{self, Instant},
};
use weir_proto::http1::{
    BodyLength, Event, Fault, Method, RequestDecoder, Version,
    encode::{self, AfterMessage, Framing},
};

use super::{
    config::{Body, Timeouts},
    counters::Refusal,
    files::{Answer, Asked, FileFault, FileReply, Unopened},
    input::Input,
    replies::{COPIED_BYTES_MAX, Form, Replies, write_head, write_refusal},
    served::FileSlice,
    stored::Stored,
    worker::Worker,
};
use crate::deadline::Deadline;

mod sending;

/// Replies are sent when a batch has reached this size, although more requests are there.
const BATCH_BYTES_MAX: usize = 64 << 10;

/// Content that [`Timeouts::content`](super::Timeouts::content) is for, in either direction.
const CONTENT_WINDOW_BYTES: usize = 256 << 10;

/// What the access log says of a target: its queue is bounded in lines.
const LOGGED_TARGET_BYTES_MAX: usize = 1024;

/// How long a connection that we end may take to see that.
const LINGER: Duration = Duration::from_secs(2);

/// What such a connection may still send meanwhile.
const LINGER_BYTES_MAX: usize = 1 << 20;

/// Serves one connection to its end.
pub(super) async fn serve(worker: Rc<Worker>, stream: Stream) {
    let now = worker.greet();
    let mut connection = Connection::new(worker, stream, now);
    match connection.run().await {
        Ending::Gone => {}
        Ending::Done => connection.finish().await,
        Ending::Ours => connection.linger().await,
    }
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The other side is gone, or does not read: what is queued is given up.
    Gone,
    /// Nothing more is expected of either side.
    Done,
    /// By us, and the client may still be sending.
    Ours,
}

/// What a decoded head says, as far as it matters later.
#[derive(Clone, Copy, Debug)]
struct Request {
    method: Method,
    version: Version,
    body: BodyLength,
    keep_alive: bool,
    /// The head of its reply is written already.
    is_replied: bool,
    /// Content that was sent back.
    echoed_bytes: u64,
}

/// What the next bytes are, without a tie to the decoder.
enum Found<'i> {
    More,
    Request(Request),
    Continue,
    Content(&'i [u8]),
    End,
    Finished,
}

/// What a client keeps us waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Request,
    Head,
    Content,
}

/// … and until when.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    stage: Stage,
    until: Instant,
    /// Content that came since `until` was set.
    content_bytes: usize,
}

/// Why decoding pauses: the batch is to be sent and what else is named here, and then something else comes.
#[derive(Debug)]
struct Pause {
    /// A reply that is sent as it was rendered, because nothing was batched before it.
    rendered: Option<Form>,
    content: Behind,
    then: Then,
}

impl Pause {
    fn batch_then(then: Then) -> Self {
        Self { rendered: None, content: Behind::None, then }
    }
}

/// Content that follows from where it lies.
#[derive(Debug)]
enum Behind {
    None,
    Stored(Stored),
    File(FileSlice),
    /// The head too: the file is not open yet.
    Unopened(Box<(Unopened, Request, Form)>),
}

#[derive(Clone, Copy, Debug)]
enum Then {
    Receive,
    Decode,
    End(Ending),
}

struct Connection {
    worker: Rc<Worker>,
    stream: Stream,
    decoder: RequestDecoder,
    deadline: Deadline,
    waiting: Waiting,
    /// The request whose content is being read.
    request: Option<Request>,
    requests_left: u64,
    requests_answered: u64,
    /// Replies that are not sent yet. Empty, and without memory, whenever something is received.
    batch: Vec<u8>,
    /// Bytes handed to the engine since nothing was queued for certain.
    queued_bytes: u64,
    /// Bytes sent since others had their turn.
    share_bytes: usize,
    /// The target of the last request, if there is a log.
    target: String,
    /// What the request gets, where that is a file.
    file: Option<FileReply>,
}

impl Connection {
    fn new(worker: Rc<Worker>, stream: Stream, now: Instant) -> Self {
        let config = &worker.shared.config;
        let until = now + config.timeouts.idle;
        Self {
            decoder: RequestDecoder::new(config.limits, config.body.rules()),
            deadline: Deadline::new(),
            waiting: Waiting { stage: Stage::Request, until, content_bytes: 0 },
            request: None,
            requests_left: config.requests_max,
            requests_answered: 0,
            batch: Vec::new(),
            queued_bytes: 0,
            share_bytes: 0,
            target: String::new(),
            file: None,
            stream,
            worker,
        }
    }

    /// Receives and answers until the end.
    async fn run(&mut self) -> Ending {
        loop {
            let received = self.deadline.until(self.waiting.until, self.stream.recv()).await;
            let ending = match received {
                Some(Ok(Some(lease))) => {
                    if self.deadline.take_has_waited() {
                        self.share_bytes = 0;
                    }
                    self.take(lease).await
                }
                Some(Ok(None)) => Some(self.ended()),
                Some(Err(error)) => Some(self.failed(&error)),
                None => self.late().await,
            };
            if let Some(ending) = ending {
                return ending;
            }
        }
    }

    /// Answers what a lease completes. `None`: the connection goes on.
    async fn take(&mut self, lease: Lease) -> Option<Ending> {
        let mut input = Input::Lease(lease);
        loop {
            let now = self.worker.tick();
            let replies = self.worker.replies();
            let pause = self.answer(&mut input, &replies, now);
            input.release();
            let then = pause.then;
            if !self.send(pause, &replies).await {
                return Some(Ending::Gone);
            }
            match then {
                Then::Receive => {
                    if self.deadline.take_has_waited() {
                        // The time that our own replies took is not the client's.
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

    /// The connection has failed, which is the client's affair, unless the engine missed the end of a file.
    fn failed(&self, error: &io::Error) -> Ending {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            self.count_refusal(Refusal::File(FileFault::Shrunk));
            self.worker.distrust_files();
        }
        Ending::Gone
    }

    /// Nothing more comes: the client has ended its direction, or the server drains.
    fn ended(&mut self) -> Ending {
        if let Err(fault) = self.decoder.end_of_input() {
            self.count_refusal(Refusal::Fault(fault));
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
        let explains = self.request.is_some_and(|request| request.method != Method::Head);
        let pause = self.refuse(refusal, explains, &replies);
        Some(if self.send(pause, &replies).await { Ending::Ours } else { Ending::Gone })
    }

    /// No request came. A client that has still to take what we sent has the time of content for that, from when it
    /// was queued; then its next request is waited for anew.
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

    /// Waits until the client has taken the last replies, as it would have been waited for were they not the last:
    /// what a closed connection has queued, the engine gives up sooner.
    async fn finish(&mut self) {
        // The kernel takes a small one at once, and it is not worth the look.
        if self.queued_bytes > BATCH_BYTES_MAX as u64 {
            let limit = self.worker.shared.config.timeouts.content;
            let flushed = self.deadline.within(limit, self.stream.flush()).await;
            self.is_sent(&flushed);
        }
    }

    /// Ends our direction, and throws away what still arrives until the client has ended too.
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
            let begins = self.request.is_none() && self.decoder.is_between_messages();
            let rest = input.rest();
            let (consumed, found) = match self.next(rest, replies, now) {
                Ok(found) => found,
                Err(fault) => {
                    let explains = self.may_explain(begins, rest);
                    return self.refuse(Refusal::Fault(fault), explains, replies);
                }
            };
            let is_last = consumed == rest.len();
            let mut ended = false;
            match found {
                Found::More => {
                    self.wait_on(now);
                    return Pause::batch_then(Then::Receive);
                }
                Found::Request(request) => self.begin(request),
                Found::Continue => self.go_ahead(is_last),
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
    ) -> Result<(usize, Found<'i>), Fault> {
        let step = self.decoder.decode(input)?;
        let found = match step.event {
            Event::NeedMore => Found::More,
            Event::Head(head) => {
                if self.worker.shared.access_log.is_some() {
                    self.target.clear();
                    match head.target.get(..LOGGED_TARGET_BYTES_MAX) {
                        Some(start) if start.len() < head.target.len() => {
                            self.target.extend([start, "..."]);
                        }
                        _ => self.target.push_str(head.target),
                    }
                }
                if let Body::Files { .. } = &self.worker.shared.config.body {
                    let now_seconds = replies.seconds();
                    let asked = Asked { method: head.method, headers: head.headers, now_seconds };
                    self.file = Some(self.worker.look_up(head.target, &asked, now));
                }
                Found::Request(Request {
                    method: head.method,
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

    /// A head is there.
    fn begin(&mut self, request: Request) {
        self.waiting.stage = Stage::Request;
        self.requests_left -= 1;
        self.request = Some(request);
    }

    /// The client waits to be told that it may send its content; not if some of it is there already.
    fn go_ahead(&mut self, nothing_came: bool) {
        if nothing_came {
            self.batch().extend_from_slice(encode::CONTINUE);
        }
    }

    /// An echo replies when the first of the content is there: it goes back as it comes.
    fn reply_early(&mut self, request: &mut Request, replies: &Replies) {
        let framing = match request.body {
            BodyLength::Length(bytes) => Framing::Length(bytes),
            BodyLength::Chunked => Framing::Chunked,
            BodyLength::None | BodyLength::UntilClose => Framing::Length(0),
        };
        let after = self.after(request);
        let fields = [("Content-Type", &b"application/octet-stream"[..])];
        write_head(self.batch(), 200, replies.date(), &fields, framing, after);
        request.is_replied = true;
    }

    /// Content of the request.
    fn take_content(&mut self, bytes: &[u8], replies: &Replies) {
        self.waiting.content_bytes += bytes.len();
        if self.waiting.content_bytes >= CONTENT_WINDOW_BYTES {
            // The next window has its own time.
            self.waiting.stage = Stage::Request;
        }
        let Some(mut request) = self.request else { return };
        if !matches!(self.worker.shared.config.body, Body::Echo) {
            return;
        }
        if !request.is_replied {
            self.reply_early(&mut request, replies);
        }
        if request.method != Method::Head {
            self.echo(&mut request, bytes);
        }
        self.request = Some(request);
    }

    /// Sends content back, in the framing it came in.
    fn echo(&mut self, request: &mut Request, bytes: &[u8]) {
        request.echoed_bytes += bytes.len() as u64;
        let is_chunked = request.body == BodyLength::Chunked;
        let batch = self.batch();
        if is_chunked {
            // Content comes in pieces that are never empty, the only reason to refuse one.
            let _ = encode::chunk_start(batch, bytes.len() as u64);
        }
        batch.extend_from_slice(bytes);
        if is_chunked {
            batch.extend_from_slice(encode::CHUNK_END);
        }
    }

    /// The request is there as a whole: what is left of its reply.
    #[inline]
    fn complete(&mut self, is_last: bool, replies: &Replies, now: Instant) -> Option<Pause> {
        let mut request = self.request.take()?;
        let handler_time = self.worker.shared.config.handler_time;
        if !handler_time.is_zero() {
            thread::sleep(handler_time);
        }
        self.requests_answered += 1;
        let form = Form { after: self.after(&request), head_only: request.method == Method::Head };
        let (mut rendered, mut content) = (None, Behind::None);
        if let Some(reply) = self.file.take() {
            content = match reply {
                FileReply::Plain(file) if form.after == AfterMessage::Unsaid => {
                    file.write_head(self.batch(), replies.date());
                    let sent_bytes = if form.head_only { 0 } else { file.bytes };
                    self.log(Some(&request), 200, replies, sent_bytes);
                    self.add_file(FileSlice::whole(file), form)
                }
                FileReply::Plain(file) => {
                    let answer = Answer::of_whole(file, replies.seconds());
                    self.answer_with_file(answer, &request, form, replies)
                }
                FileReply::Answer(answer) => self.answer_with_file(*answer, &request, form, replies),
                FileReply::Unopened(unopened) => Behind::Unopened(Box::new((*unopened, request, form))),
            };
        } else if matches!(self.worker.shared.config.body, Body::Echo) {
            if !request.is_replied {
                self.reply_early(&mut request, replies);
            }
            if request.body == BodyLength::Chunked && !form.head_only {
                self.batch().extend_from_slice(encode::LAST_CHUNK);
            }
            self.log(Some(&request), 200, replies, request.echoed_bytes);
        } else {
            self.log(Some(&request), 200, replies, replies.content_bytes(form));
            let behind = replies.behind(form);
            content = if behind.len() == 0 { Behind::None } else { Behind::Stored(behind) };
            if is_last && self.batch.is_empty() {
                // The usual case: one request, one reply, copied once.
                rendered = Some(form);
            } else {
                self.batch().extend_from_slice(replies.bytes(form));
            }
        }
        let then = if !request.keep_alive || self.requests_left == 0 {
            // Who asked for the end, and has nothing more on its way, needs no time to see it.
            let is_agreed = !request.keep_alive && is_last;
            Then::End(if is_agreed { Ending::Done } else { Ending::Ours })
        } else if is_last {
            self.wait_on(now);
            Then::Receive
        } else if matches!(content, Behind::None) {
            return None;
        } else {
            Then::Decode
        };
        Some(Pause { rendered, content, then })
    }

    /// Writes the head of a file's reply, and gives what follows it.
    fn answer_with_file(
        &mut self,
        answer: Answer,
        request: &Request,
        form: Form,
        replies: &Replies,
    ) -> Behind {
        if let Some(fault) = answer.fault {
            self.count_refusal(Refusal::File(fault));
        }
        answer.write(self.batch(), replies.date(), form.after, form.head_only);
        let sent_bytes = if form.head_only { 0 } else { answer.content_bytes };
        self.log(Some(request), answer.status, replies, sent_bytes);
        answer.part.map_or(Behind::None, |part| self.add_file(part, form))
    }

    /// The content of a reply: behind its head if it is short and in memory, else from where it lies.
    #[inline]
    fn add_file(&mut self, slice: FileSlice, form: Form) -> Behind {
        if form.head_only || slice.length == 0 {
            return Behind::None;
        }
        match slice.in_memory() {
            Some(bytes) if bytes.len() <= COPIED_BYTES_MAX => {
                self.batch().extend_from_slice(bytes);
                Behind::None
            }
            _ => Behind::File(slice),
        }
    }

    /// The last reply of a connection, to whoever asked wrongly or too slowly.
    #[cold]
    fn refuse(&mut self, refusal: Refusal, explains: bool, replies: &Replies) -> Pause {
        self.count_refusal(refusal);
        let request = self.request.take();
        // A reply that has begun cannot become another one: it stays unfinished, which the client sees.
        if let Some(status) = refusal.status()
            && !request.is_some_and(|request| request.is_replied)
        {
            let sentence = explains.then(|| refusal.to_string());
            let allowed = self.worker.shared.config.body.rules().methods;
            write_refusal(self.batch(), status, replies.date(), allowed, sentence.as_deref());
            self.log(request.as_ref(), status, replies, 0);
        }
        Pause::batch_then(Then::End(Ending::Ours))
    }

    /// Whether a refusal may have content: not if the request is a HEAD, and a head that came in pieces may be one.
    fn may_explain(&self, begins: bool, input: &[u8]) -> bool {
        match self.request {
            Some(request) => request.method != Method::Head,
            None => begins && !input.trim_ascii_start().starts_with(b"HEAD "),
        }
    }

    /// What a reply says about the connection.
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

    /// Settles what the client keeps us waiting for, and until when: a head that has begun keeps its deadline, and so
    /// does content until a window of it is there.
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

    /// How long a client may keep us waiting.
    #[inline]
    fn limit(&self, stage: Stage) -> Duration {
        let timeouts = &self.worker.shared.config.timeouts;
        match stage {
            Stage::Request => timeouts.idle,
            Stage::Head => timeouts.head,
            Stage::Content => timeouts.content,
        }
    }

    /// Where replies are gathered.
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

    #[inline]
    fn log(&self, request: Option<&Request>, status: u16, replies: &Replies, content_bytes: u64) {
        if let Some(log) = &self.worker.shared.access_log {
            log.line(self.line(request, status, replies, content_bytes));
        }
    }

    /// `[date] "GET /path HTTP/1.1" 200 615`; of a request that could not be read, dashes.
    fn line(&self, request: Option<&Request>, status: u16, replies: &Replies, content_bytes: u64) -> String {
        let date = String::from_utf8_lossy(replies.date());
        let asked = request.map_or_else(
            || "-".to_owned(),
            |request| {
                let version = if request.version == Version::Http10 { "1.0" } else { "1.1" };
                // The only visible character that would end the field.
                let target = self.target.replace('"', "%22");
                format!("{} {target} HTTP/{version}", request.method.name())
            },
        );
        format!("[{date}] \"{asked}\" {status} {content_bytes}\n")
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.worker.shared.counters.add_requests(self.requests_answered);
        self.worker.tell_counts();
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
    use crate::http::{HttpConfig, HttpLogs, worker::Shared};

    #[test]
    fn an_idle_connection_is_small() {
        let runtime = Runtime::new(&Config::with_driver(Driver::Sim)).expect("it runs everywhere");
        runtime.block_on(async {
            let any = "127.0.0.1:0".parse().expect("an address");
            let listener = Listener::bind(&any, Default::default()).expect("a simulated port");
            let address = listener.local_address().expect("it has one");
            let stream = Stream::connect(&address).await.expect("it listens");
            let shared = Shared::new(HttpConfig::new(Body::Echo), HttpLogs::default()).expect("no thread");
            let bytes = size_of_val(&serve(Worker::of_thread(&Arc::new(shared)), stream));
            // Ten thousand of them may cost 2 KiB each, and the engine's part is in that.
            assert!(bytes <= 1200, "{bytes} bytes");
        });
    }
}
