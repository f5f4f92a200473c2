//! Heads: the first line and the header fields, as slices of the received bytes (RFC 9112, 2 to 5).
//!
//! `httparse` finds the parts. It is more lenient than this module allows. This module or the scanner checks the
//! following: `httparse` takes a lone line feed as a line end, any number of empty lines in front, any visible or
//! non-ASCII character in a target. It distinguishes neither minor versions after 1.1, nor an unknown version from no
//! version at all. Two points stay as lenient as in `httparse`: a status line without the space before an absent
//! reason, bytes above 0x7F in values.

use std::mem::MaybeUninit;

use super::{
    authority,
    body::BodyLength,
    error::ParseError,
    framing::Fields,
    limits::{HEADER_COUNT_MAX, Limits},
    method::Method,
    scan::Section,
};

/// The supported versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0: a connection carries one message unless a field says otherwise.
    Http10,
    /// HTTP/1.1, or a later one of the same major version, which is read as this one.
    Http11,
}

/// Header fields in the order they came, checked. They are split again while they are read: nothing is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Headers<'a> {
    /// Lines, each with its line end.
    lines: &'a [u8],
}

impl<'a> Headers<'a> {
    /// Fields that were stored: the bytes from [`Self::lines`].
    pub fn of_lines(lines: &'a [u8]) -> Self {
        Self { lines }
    }

    /// The fields as they were written, to keep them after the received bytes are gone.
    pub fn lines(self) -> &'a [u8] {
        self.lines
    }

    /// Names as they were written, and values without surrounding whitespace.
    pub fn iter(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.lines.split(|byte| *byte == b'\n').filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        })
    }

    /// The value of the first field with this name, in any case.
    pub fn get(self, name: &str) -> Option<&'a [u8]> {
        self.iter().find(|(other, _)| other.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    /// Whether there is no field.
    pub fn is_empty(self) -> bool {
        self.lines.is_empty()
    }
}

/// The head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// The method.
    pub method: Method,
    /// The target: as it was written, ASCII, without a fragment, in a form that fits the method.
    pub target: &'a str,
    /// The version of the message.
    pub version: Version,
    /// All fields, including those that are interpreted below.
    pub headers: Headers<'a>,
    /// Where the content ends.
    pub body: BodyLength,
    /// Whether another request may follow on this connection.
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue` before it sends its content.
    pub expects_continue: bool,
}

/// The head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead<'a> {
    /// The version of the message.
    pub version: Version,
    /// The status, 100 to 999.
    pub status: u16,
    /// The reason phrase. It has no meaning, and is empty here if it contains bytes beyond ASCII.
    pub reason: &'a str,
    /// All fields, including those that are interpreted below.
    pub headers: Headers<'a>,
    /// Where the content ends.
    pub body: BodyLength,
    /// Whether another response may follow on this connection.
    pub keep_alive: bool,
}

impl ResponseHead<'_> {
    /// Whether another head follows for the same request, without content in between. 101 is final: the bytes after
    /// it are no longer HTTP/1.
    pub fn is_interim(&self) -> bool {
        matches!(self.status, 100..=199) && self.status != 101
    }
}

/// The parts of a head that a decoder needs.
pub(super) struct Plan {
    pub(super) body: BodyLength,
    pub(super) keep_alive: bool,
    pub(super) expects_continue: bool,
    pub(super) interim: bool,
}

/// The result of parsing bytes that may or may not contain a whole head.
pub(super) enum Attempt<H> {
    /// A head of this many bytes.
    Head(usize, H),
    /// A whole, well-formed head that is refused.
    Refused(ParseError),
    /// Not a whole, well-formed head. The scanner finds the error, or waits for the rest.
    Unfit(Option<httparse::Error>),
}

/// One of the two kinds of heads.
pub(super) trait Grammar {
    type Head<'a>;
    const SECTION: Section;

    /// Checks the first line alone, without its line end: if it is wrong, do not wait for the rest. Returns the
    /// position of the digit of the minor version: a later one than ours is read as ours (RFC 9110, 2.5).
    fn check_first_line(&self, line: &[u8]) -> Result<usize, ParseError>;
    fn parse<'a>(&self, bytes: &'a [u8], limits: &Limits) -> Attempt<Self::Head<'a>>;
    fn plan(head: &Self::Head<'_>) -> Plan;
}

/// Requests, as a server reads them.
pub(super) struct Requests;

impl Grammar for Requests {
    type Head<'a> = RequestHead<'a>;
    const SECTION: Section = Section::Request;

    fn check_first_line(&self, line: &[u8]) -> Result<usize, ParseError> {
        let mut parts = line.split(|byte| *byte == b' ');
        let (Some(method), Some(target), Some(version), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(ParseError::RequestLine);
        };
        if method.is_empty() || !method.iter().all(|byte| is_token(*byte)) || target.is_empty() {
            return Err(ParseError::RequestLine);
        }
        check_version(version).map_err(|error| error.unwrap_or(ParseError::RequestLine))?;
        check_target(method, target)?;
        Ok(line.len() - 1)
    }

    fn parse<'a>(&self, bytes: &'a [u8], limits: &Limits) -> Attempt<RequestHead<'a>> {
        let mut slots = [const { MaybeUninit::uninit() }; HEADER_COUNT_MAX];
        let mut parsed = httparse::Request::new(&mut []);
        let slots = &mut slots[..limits.header_count_max.min(HEADER_COUNT_MAX)];
        let size = match parsed.parse_with_uninit_headers(bytes, slots) {
            Ok(httparse::Status::Complete(size)) => size,
            Ok(httparse::Status::Partial) => return Attempt::Unfit(None),
            Err(error) => return Attempt::Unfit(Some(error)),
        };
        let (Some(lines), Some(method), Some(target), Some(version)) = (
            header_lines(&bytes[..size], parsed.headers, limits),
            parsed.method,
            parsed.path,
            parsed.version,
        ) else {
            return Attempt::Unfit(None);
        };
        let version = if version == 0 { Version::Http10 } else { Version::Http11 };
        let judged = self.judge(method, target, version, parsed.headers, limits);
        match judged {
            Ok(head) => Attempt::Head(size, RequestHead { target, headers: Headers { lines }, ..head }),
            Err(error) => Attempt::Refused(error),
        }
    }

    fn plan(head: &RequestHead<'_>) -> Plan {
        Plan {
            body: head.body,
            keep_alive: head.keep_alive,
            expects_continue: head.expects_continue,
            interim: false,
        }
    }
}

impl Requests {
    fn judge(
        &self,
        method: &str,
        target: &str,
        version: Version,
        headers: &[httparse::Header<'_>],
        limits: &Limits,
    ) -> Result<RequestHead<'static>, ParseError> {
        check_target(method.as_bytes(), target.as_bytes())?;
        let fields = Fields::gather(headers)?;
        fields.check_host(version)?;
        let method = Method::from_name(method).ok_or(ParseError::MethodUnknown)?;
        let body = fields.request_body(version, limits)?;
        Ok(RequestHead {
            method,
            target: "",
            version,
            headers: Headers::default(),
            body,
            keep_alive: fields.keeps_alive(version) && method != Method::Connect,
            expects_continue: fields.expectation(version, body)?,
        })
    }
}

/// Responses, as read by a client that sent this method.
pub(super) struct Responses(pub(super) Method);

impl Grammar for Responses {
    type Head<'a> = ResponseHead<'a>;
    const SECTION: Section = Section::Response;

    fn check_first_line(&self, line: &[u8]) -> Result<usize, ParseError> {
        let (version, rest) = line.split_at_checked(8).ok_or(ParseError::StatusLine)?;
        check_version(version).map_err(|error| error.unwrap_or(ParseError::StatusLine))?;
        match rest {
            [b' ', b'1'..=b'9', b'0'..=b'9', b'0'..=b'9']
            | [b' ', b'1'..=b'9', b'0'..=b'9', b'0'..=b'9', b' ', ..] => Ok(version.len() - 1),
            _ => Err(ParseError::StatusLine),
        }
    }

    fn parse<'a>(&self, bytes: &'a [u8], limits: &Limits) -> Attempt<ResponseHead<'a>> {
        let mut slots = [const { MaybeUninit::uninit() }; HEADER_COUNT_MAX];
        let mut parsed = httparse::Response::new(&mut []);
        let slots = &mut slots[..limits.header_count_max.min(HEADER_COUNT_MAX)];
        let config = httparse::ParserConfig::default();
        let size = match config.parse_response_with_uninit_headers(&mut parsed, bytes, slots) {
            Ok(httparse::Status::Complete(size)) => size,
            Ok(httparse::Status::Partial) => return Attempt::Unfit(None),
            Err(error) => return Attempt::Unfit(Some(error)),
        };
        let (Some(lines), Some(status @ 100..), Some(version)) =
            (header_lines(&bytes[..size], parsed.headers, limits), parsed.code, parsed.version)
        else {
            return Attempt::Unfit(None);
        };
        let version = if version == 0 { Version::Http10 } else { Version::Http11 };
        let judged = Fields::gather(parsed.headers).and_then(|fields| {
            let body = fields.response_body(version, status, self.0, limits)?;
            let tunnel = status == 101 || (self.0 == Method::Connect && (200..300).contains(&status));
            let ends = tunnel || body == BodyLength::UntilClose;
            Ok((body, fields.keeps_alive(version) && !ends))
        });
        match judged {
            Ok((body, keep_alive)) => {
                let (reason, headers) = (parsed.reason.unwrap_or(""), Headers { lines });
                Attempt::Head(size, ResponseHead { version, status, reason, headers, body, keep_alive })
            }
            Err(error) => Attempt::Refused(error),
        }
    }

    fn plan(head: &ResponseHead<'_>) -> Plan {
        Plan {
            body: head.body,
            keep_alive: head.keep_alive,
            expects_continue: false,
            interim: head.is_interim(),
        }
    }
}

/// The lines between first and empty line, if every line of the head ends in CR and LF and the first is not too long.
/// Values cannot contain either byte, so a check in front of each name is enough.
fn header_lines<'a>(head: &'a [u8], headers: &[httparse::Header<'_>], limits: &Limits) -> Option<&'a [u8]> {
    let offset_of = |name: &str| name.as_ptr() as usize - head.as_ptr() as usize;
    let end = head.len().checked_sub(2)?;
    let start = headers.first().map_or(end, |header| offset_of(header.name));
    let well_ended = |offset: usize| head[..offset].ends_with(b"\r\n");
    let strict = well_ended(head.len())
        && well_ended(end)
        && headers.iter().all(|header| well_ended(offset_of(header.name)));
    let first_line_bytes = start.checked_sub(2)?;
    (strict && first_line_bytes <= limits.first_line_bytes_max).then(|| &head[start..end])
}

/// The error that corresponds to a parser's error in text that has passed the scanner and the check of the first
/// line.
pub(super) fn error_of(error: Option<httparse::Error>, section: Section) -> ParseError {
    use httparse::Error;
    match error {
        Some(Error::HeaderName) => ParseError::HeaderName,
        Some(Error::TooManyHeaders) => ParseError::HeaderCount,
        Some(Error::Version) => ParseError::Version,
        Some(Error::HeaderValue) => ParseError::HeaderValue,
        _ if section == Section::Request => ParseError::RequestLine,
        _ => ParseError::StatusLine,
    }
}

/// `Err(None)`: this is not a version.
fn check_version(text: &[u8]) -> Result<(), Option<ParseError>> {
    match text {
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0'..=b'9'] => Ok(()),
        [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => Err(Some(ParseError::Version)),
        _ => Err(None),
    }
}

/// Checks that the form fits the method (RFC 9112, 3.2), and that every character is visible ASCII other than `#`.
/// Characters that RFC 3986 requires to be escaped but that change no boundary (`|`, `{`, `^` …) are common, and are
/// accepted.
pub(super) fn check_target(method: &[u8], target: &[u8]) -> Result<(), ParseError> {
    // Without an early exit, so that many bytes are checked in one step.
    let visible = target.iter().fold(true, |fits, byte| fits & byte.is_ascii_graphic() & (*byte != b'#'));
    let form = match (method, target) {
        (b"CONNECT", _) => {
            authority::parse(target).is_some_and(|found| !found.host.is_empty() && found.port.is_some())
        }
        (_, [b'/', ..]) => true,
        (_, b"*") => method == b"OPTIONS",
        _ => authority::split_absolute(target).is_some(),
    };
    if visible && form { Ok(()) } else { Err(ParseError::Target) }
}

/// A `tchar` of RFC 9110, 5.6.2.
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
