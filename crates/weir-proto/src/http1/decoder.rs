//! The state machine that turns bytes into messages, one event per call, for servers and clients.
//!
//! It copies nothing that it reads, except a head or trailer section that arrived in pieces.

use super::{
    body::{self, Body, BodyLength},
    error::ParseError,
    head::{self, Attempt, Grammar, Headers, Plan, RequestHead, Requests, ResponseHead, Responses},
    limits::{EMPTY_LINES_MAX, INTERIM_RESPONSES_MAX, Limits},
    method::Method,
    scan::{self, Bounds, Scanner, Section},
};

/// The next event in the input.
///
/// `'i` is the input, `'h` the decoder: a head or trailers may be in its buffer, content never is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'h, 'i, H> {
    /// The input is used up and more is needed.
    NeedMore,
    /// A head.
    Head(H),
    /// The client waits for `100 Continue`. A server that already holds bytes of the content need not send it.
    ExpectContinue,
    /// Bytes of the content, at least one.
    Body(&'i [u8]),
    /// The message is complete. Trailers are separate from the head's fields and must not be merged blindly.
    End {
        /// The trailer section of a chunked body.
        trailers: Headers<'h>,
    },
    /// No message follows on this connection; the input was not touched.
    Finished,
}

/// One step of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<'h, 'i, H> {
    /// How many bytes of the input were consumed. The next call starts behind them.
    pub consumed: usize,
    /// The event in these bytes.
    pub event: Event<'h, 'i, H>,
}

/// The meaning of the end of the peer's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It came between two messages.
    BetweenMessages,
    /// It completed a response whose content lasts until the connection closes.
    CompletedResponse,
}

/// Reads requests, for servers.
#[derive(Debug)]
pub struct RequestDecoder {
    core: Core,
}

impl RequestDecoder {
    /// A decoder at the start of a connection.
    pub fn new(limits: Limits) -> Self {
        Self { core: Core::new(limits) }
    }

    /// Reads up to the next event. Call it again with the rest of the input until it returns `NeedMore`.
    pub fn decode<'h, 'i: 'h>(
        &'h mut self,
        input: &'i [u8],
    ) -> Result<Step<'h, 'i, RequestHead<'h>>, ParseError> {
        self.core.decode(&Requests, input)
    }

    /// Call it when the peer sends nothing more and everything it sent has been decoded.
    pub fn end_of_input(&mut self) -> Result<Ending, ParseError> {
        self.core.end_of_input()
    }

    /// Whether no message is in progress: the connection is idle.
    pub fn is_between_messages(&self) -> bool {
        self.core.is_between_messages()
    }

    /// Whether the head in progress, or the refused head, is that of a HEAD or may still become one: then the refusal
    /// has no content.
    pub fn may_be_head(&self) -> bool {
        match self.core.message.phase {
            Phase::Failed(_) => self.core.refused_head,
            _ => may_be_head(self.core.scanner.bytes()),
        }
    }

    /// The first line of the head in progress, or of the refused head, if it is complete. It need not be well formed.
    pub fn request_line(&self) -> Option<&[u8]> {
        match self.core.message.phase {
            Phase::Failed(_) if self.core.refused_line.is_some() => self.core.refused_line.as_deref(),
            Phase::Failed(_) => first_line(self.core.scanner.bytes()),
            Phase::Head if !self.core.shown => first_line(self.core.scanner.bytes()),
            _ => None,
        }
    }

    /// Bytes held on the heap: none unless a head or trailer section is split, or a head was refused.
    pub fn held_bytes(&self) -> usize {
        self.core.scanner.capacity_bytes()
    }
}

/// The first of these lines, without its line end.
fn first_line(lines: &[u8]) -> Option<&[u8]> {
    let end = lines.windows(2).position(|pair| pair == b"\r\n")?;
    Some(&lines[..end])
}

/// Whether a request that starts with these bytes can be a HEAD.
fn may_be_head(start: &[u8]) -> bool {
    b"HEAD ".starts_with(&start[..start.len().min(5)])
}

/// Reads responses, for clients.
#[derive(Debug)]
pub struct ResponseDecoder {
    core: Core,
}

impl ResponseDecoder {
    /// A decoder at the start of a connection.
    pub fn new(limits: Limits) -> Self {
        Self { core: Core::new(limits) }
    }

    /// Reads up to the next event. `request` is the method of the oldest request without a complete answer: a
    /// response to HEAD or CONNECT ends elsewhere.
    pub fn decode<'h, 'i: 'h>(
        &'h mut self,
        request: Method,
        input: &'i [u8],
    ) -> Result<Step<'h, 'i, ResponseHead<'h>>, ParseError> {
        self.core.decode(&Responses(request), input)
    }

    /// Call it when the peer sends nothing more and everything it sent has been decoded.
    pub fn end_of_input(&mut self) -> Result<Ending, ParseError> {
        self.core.end_of_input()
    }

    /// Whether no message is in progress.
    pub fn is_between_messages(&self) -> bool {
        self.core.is_between_messages()
    }

    /// Bytes held on the heap: none unless a head or trailer section is split.
    pub fn held_bytes(&self) -> usize {
        self.core.scanner.capacity_bytes()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Head,
    Continue,
    Body,
    Trailer,
    Finished,
    Failed(ParseError),
}

/// The connection's position in a message.
#[derive(Debug)]
struct Message {
    phase: Phase,
    body: Body,
    keep_alive: bool,
    interim_count: u8,
}

impl Message {
    fn begin(&mut self, plan: &Plan) -> Result<(), ParseError> {
        if plan.interim {
            if self.interim_count == INTERIM_RESPONSES_MAX {
                return Err(self.fail(ParseError::InterimResponses));
            }
            self.interim_count += 1;
            return Ok(());
        }
        self.phase = if plan.expects_continue { Phase::Continue } else { Phase::Body };
        self.body = Body::new(plan.body);
        self.keep_alive = plan.keep_alive;
        self.interim_count = 0;
        Ok(())
    }

    fn end(&mut self) {
        self.phase = if self.keep_alive { Phase::Head } else { Phase::Finished };
    }

    fn fail(&mut self, error: ParseError) -> ParseError {
        self.phase = Phase::Failed(error);
        error
    }
}

/// The state that requests and responses have in common.
#[derive(Debug)]
struct Core {
    limits: Limits,
    message: Message,
    scanner: Scanner,
    /// The refused message is a HEAD, or could have become one.
    refused_head: bool,
    /// The first line of a request whose head was refused, if it is not stored elsewhere.
    refused_line: Option<Box<[u8]>>,
    /// The last event pointed into the scanner's bytes; the next call drops them.
    shown: bool,
}

impl Core {
    fn new(limits: Limits) -> Self {
        let body = Body::new(BodyLength::None);
        let message = Message { phase: Phase::Head, body, keep_alive: true, interim_count: 0 };
        let scanner = Scanner::default();
        Self { limits, message, scanner, refused_head: false, refused_line: None, shown: false }
    }

    fn decode<'h, 'i: 'h, G: Grammar>(
        &'h mut self,
        grammar: &G,
        input: &'i [u8],
    ) -> Result<Step<'h, 'i, G::Head<'h>>, ParseError> {
        if std::mem::take(&mut self.shown) {
            self.scanner.reset();
        }
        match self.message.phase {
            Phase::Head => self.decode_head(grammar, input),
            Phase::Continue => {
                self.message.phase = Phase::Body;
                Ok(Step { consumed: 0, event: Event::ExpectContinue })
            }
            Phase::Body => self.decode_body(input),
            Phase::Trailer => self.decode_trailer(input, 0),
            Phase::Finished => Ok(Step { consumed: 0, event: Event::Finished }),
            Phase::Failed(error) => Err(error),
        }
    }

    fn decode_head<'h, 'i: 'h, G: Grammar>(
        &'h mut self,
        grammar: &G,
        input: &'i [u8],
    ) -> Result<Step<'h, 'i, G::Head<'h>>, ParseError> {
        let mut consumed = self.skip_empty_lines(G::SECTION, input);
        let rest = &input[consumed..];
        if self.scanner.is_idle() && rest.first().is_some_and(|byte| !b"\r\n".contains(byte)) {
            let window = &rest[..rest.len().min(self.limits.head_bytes_max)];
            match grammar.parse(window, &self.limits) {
                Attempt::Head(size, head) => {
                    self.message.begin(&G::plan(&head))?;
                    self.scanner.reset();
                    return Ok(Step { consumed: consumed + size, event: Event::Head(head) });
                }
                Attempt::Refused(error) => {
                    self.refused_head = may_be_head(rest);
                    self.refused_line = first_line(window).map(Box::from);
                    return Err(self.message.fail(error));
                }
                Attempt::Unfit(_) => {}
            }
        }
        loop {
            let (taken, progress) = self.scan(G::SECTION, &input[consumed..])?;
            consumed += taken;
            match progress {
                scan::Progress::More => return Ok(Step { consumed, event: Event::NeedMore }),
                scan::Progress::FirstLine => {
                    let line = self.scanner.bytes().strip_suffix(b"\r\n").unwrap_or_default();
                    self.refused_head = may_be_head(line);
                    let minor = grammar.check_first_line(line).map_err(|error| self.message.fail(error))?;
                    self.scanner.lower_to_one(minor);
                }
                scan::Progress::End => break,
            }
        }
        self.shown = true;
        self.refused_head = may_be_head(self.scanner.bytes());
        match grammar.parse(self.scanner.bytes(), &self.limits) {
            Attempt::Head(_, head) => {
                self.message.begin(&G::plan(&head))?;
                Ok(Step { consumed, event: Event::Head(head) })
            }
            Attempt::Refused(error) => Err(self.message.fail(error)),
            Attempt::Unfit(error) => Err(self.message.fail(head::error_of(error, G::SECTION))),
        }
    }

    fn skip_empty_lines(&mut self, section: Section, input: &[u8]) -> usize {
        let mut skipped = 0;
        if section == Section::Request && self.scanner.is_idle() {
            while self.scanner.empty_lines < EMPTY_LINES_MAX && input[skipped..].starts_with(b"\r\n") {
                self.scanner.empty_lines += 1;
                skipped += 2;
            }
        }
        skipped
    }

    fn scan(&mut self, section: Section, piece: &[u8]) -> Result<(usize, scan::Progress), ParseError> {
        let (in_trailer, limits) = (section == Section::Trailer, &self.limits);
        let bounds = Bounds {
            section,
            first_line_bytes_max: limits.first_line_bytes_max,
            line_count_max: limits.header_count_max.min(super::limits::HEADER_COUNT_MAX),
            section_bytes_max: if in_trailer { limits.trailer_bytes_max } else { limits.head_bytes_max },
        };
        self.scanner.push(piece, &bounds).map_err(|error| {
            self.refused_head = may_be_head(self.scanner.bytes());
            if section == Section::Request {
                self.refused_line = first_line(self.scanner.bytes()).map(Box::from);
            }
            self.scanner.reset();
            self.message.fail(error)
        })
    }

    fn decode_body<'h, 'i: 'h, H>(&'h mut self, input: &'i [u8]) -> Result<Step<'h, 'i, H>, ParseError> {
        let decoded = self.message.body.decode(input, &self.limits);
        let (consumed, progress) = decoded.map_err(|error| self.message.fail(error))?;
        let event = match progress {
            body::Progress::More => Event::NeedMore,
            body::Progress::Bytes(bytes) => Event::Body(bytes),
            body::Progress::End => {
                self.message.end();
                Event::End { trailers: Headers::default() }
            }
            body::Progress::Trailer => {
                self.message.phase = Phase::Trailer;
                return self.decode_trailer(input, consumed);
            }
        };
        Ok(Step { consumed, event })
    }

    fn decode_trailer<'h, 'i: 'h, H>(
        &'h mut self,
        input: &'i [u8],
        start: usize,
    ) -> Result<Step<'h, 'i, H>, ParseError> {
        // The usual end, without trailers, needs no buffer.
        let end = b"\r\n";
        let plain = self.scanner.is_idle() && self.limits.trailer_bytes_max >= end.len();
        if plain && input[start..].starts_with(end) {
            self.message.end();
            let event = Event::End { trailers: Headers::default() };
            return Ok(Step { consumed: start + end.len(), event });
        }
        let (taken, progress) = self.scan(Section::Trailer, &input[start..])?;
        let consumed = start + taken;
        if progress != scan::Progress::End {
            return Ok(Step { consumed, event: Event::NeedMore });
        }
        self.shown = true;
        let section = self.scanner.bytes();
        let mut slots = [httparse::EMPTY_HEADER; super::limits::HEADER_COUNT_MAX];
        match httparse::parse_headers(section, &mut slots) {
            Ok(_) => {
                self.message.end();
                let trailers = Headers::of_lines(&section[..section.len() - 2]);
                Ok(Step { consumed, event: Event::End { trailers } })
            }
            Err(error) => Err(self.message.fail(head::error_of(Some(error), Section::Trailer))),
        }
    }

    fn end_of_input(&mut self) -> Result<Ending, ParseError> {
        match self.message.phase {
            Phase::Failed(error) => Err(error),
            Phase::Body if self.message.body.ends_with_connection() => {
                self.message.end();
                Ok(Ending::CompletedResponse)
            }
            _ if self.is_between_messages() => Ok(Ending::BetweenMessages),
            _ => Err(self.message.fail(ParseError::Truncated)),
        }
    }

    fn is_between_messages(&self) -> bool {
        match self.message.phase {
            Phase::Head => self.message.interim_count == 0 && (self.shown || self.scanner.is_idle()),
            Phase::Finished => true,
            Phase::Continue | Phase::Body | Phase::Trailer | Phase::Failed(_) => false,
        }
    }
}
