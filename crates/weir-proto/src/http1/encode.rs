//! Heads and chunk framing written into the caller's buffer (RFC 9112, 2 to 4, 6 and 7.1).
//!
//! The output cannot be split elsewhere by a reader: names, values, targets and reasons are checked, and the fields
//! that frame a message are written only from [`Framing`]. A call that fails leaves the buffer unchanged.

use thiserror::Error;

use super::{
    authority,
    head::{Version, check_target, is_token},
    method::Method,
};

/// The destination of encoded bytes: a `Vec<u8>`, or a [`Window`] of fixed size.
pub trait Output {
    /// Appends all the bytes, or none.
    fn append(&mut self, bytes: &[u8]) -> Result<(), EncodeError>;
    /// How many bytes there are.
    fn written_bytes(&self) -> usize;
    /// Removes everything behind the first `bytes`.
    fn take_back_to(&mut self, bytes: usize);
}

impl Output for Vec<u8> {
    fn append(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.extend_from_slice(bytes);
        Ok(())
    }

    fn written_bytes(&self) -> usize {
        self.len()
    }

    fn take_back_to(&mut self, bytes: usize) {
        self.truncate(bytes);
    }
}

/// A slice that is filled from its start.
#[derive(Debug)]
pub struct Window<'a> {
    buffer: &'a mut [u8],
    filled: usize,
}

impl<'a> Window<'a> {
    /// An empty window over the whole slice.
    pub fn new(buffer: &'a mut [u8]) -> Self {
        Self { buffer, filled: 0 }
    }

    /// The bytes written so far.
    pub fn written(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }
}

impl Output for Window<'_> {
    fn append(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        let end = self.filled + bytes.len();
        let place = self.buffer.get_mut(self.filled..end).ok_or(EncodeError::NoRoom)?;
        place.copy_from_slice(bytes);
        self.filled = end;
        Ok(())
    }

    fn written_bytes(&self) -> usize {
        self.filled
    }

    fn take_back_to(&mut self, bytes: usize) {
        self.filled = self.filled.min(bytes);
    }
}

/// Why something was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// The window is too small.
    #[error("the buffer is too small")]
    NoRoom,
    /// A status outside 100 to 999.
    #[error("not a status")]
    Status,
    /// A reason with control bytes or beyond ASCII.
    #[error("not a reason phrase")]
    Reason,
    /// A method that is no token.
    #[error("not a method name")]
    Method,
    /// A target with whitespace, control bytes, `#` or beyond ASCII, or in a form its method does not have.
    #[error("not a request target")]
    Target,
    /// A `Host` that is not a host with an optional port, or a second `Host`.
    #[error("not a host, or a second Host header")]
    Host,
    /// A header name that is no token.
    #[error("not a header name")]
    HeaderName,
    /// A header value with CR, LF, NUL or another control byte, or with whitespace around it.
    #[error("not a header value")]
    HeaderValue,
    /// `Content-Length`, `Transfer-Encoding` or `Connection`: these are written only from the framing.
    #[error("a header that the framing decides")]
    FramingHeader,
    /// A framing that this kind of message cannot have.
    #[error("a framing this message cannot have")]
    Framing,
    /// A chunk without bytes, which would end the content.
    #[error("an empty chunk")]
    EmptyChunk,
}

/// How the reader of a message finds the end of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// No content, and no header about it: most requests, and responses with 1xx, 204 or 304.
    NoContent,
    /// This many bytes follow; in an answer to HEAD, would follow.
    Length(u64),
    /// Chunks follow.
    Chunked,
    /// Bytes follow until the connection closes. Responses only; implies [`AfterMessage::Close`].
    UntilClose,
}

/// The sender's statement about the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterMessage {
    /// Nothing: the default of the version.
    Unsaid,
    /// It stays open; stated explicitly for readers of HTTP/1.0.
    KeepAlive,
    /// It closes.
    Close,
}

/// Writes a head. If it is dropped without [`finish`](Self::finish), it removes what it wrote.
#[derive(Debug)]
pub struct HeadWriter<'o, O: Output> {
    output: &'o mut O,
    start: usize,
    kind: Kind,
    finished: bool,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Request,
    Response(Version, u16),
}

impl<'o, O: Output> HeadWriter<'o, O> {
    /// Starts a request of HTTP/1.1 with its `Host`, which may be empty only if the target has no host.
    pub fn request(output: &'o mut O, method: Method, target: &str, host: &str) -> Result<Self, EncodeError> {
        Self::request_of(output, method.name(), target, host)
    }

    /// As [`Self::request`], with a method by name, which may be unknown to Weir.
    pub fn request_of(
        output: &'o mut O,
        method: &str,
        target: &str,
        host: &str,
    ) -> Result<Self, EncodeError> {
        if method.is_empty() || !method.bytes().all(is_token) {
            return Err(EncodeError::Method);
        }
        check_target(method.as_bytes(), target.as_bytes()).map_err(|_| EncodeError::Target)?;
        authority::parse(host.as_bytes()).ok_or(EncodeError::Host)?;
        let mut writer = Self::start(output, Kind::Request);
        for part in [method, " ", target, " HTTP/1.1\r\n"] {
            writer.output.append(part.as_bytes())?;
        }
        writer.append_field("Host", host.as_bytes())?;
        Ok(writer)
    }

    /// Starts a response. The version is the sender's: 1.1, unless an old client has to be imitated.
    pub fn response(
        output: &'o mut O,
        version: Version,
        status: u16,
        reason: &str,
    ) -> Result<Self, EncodeError> {
        if !(100..=999).contains(&status) {
            return Err(EncodeError::Status);
        }
        if !reason.bytes().all(|byte| byte == b' ' || byte == b'\t' || byte.is_ascii_graphic()) {
            return Err(EncodeError::Reason);
        }
        let writer = Self::start(output, Kind::Response(version, status));
        writer.output.append(if version == Version::Http10 { b"HTTP/1.0 " } else { b"HTTP/1.1 " })?;
        append_decimal(writer.output, u64::from(status))?;
        for part in [" ", reason, "\r\n"] {
            writer.output.append(part.as_bytes())?;
        }
        Ok(writer)
    }

    fn start(output: &'o mut O, kind: Kind) -> Self {
        let start = output.written_bytes();
        Self { output, start, kind, finished: false }
    }

    /// Adds a field.
    pub fn header(&mut self, name: &str, value: &[u8]) -> Result<&mut Self, EncodeError> {
        check_header(name, value)?;
        if matches!(self.kind, Kind::Request) && name.eq_ignore_ascii_case("host") {
            return Err(EncodeError::Host);
        }
        self.append_field(name, value)?;
        Ok(self)
    }

    /// Writes the fields that frame the content, and the end of the head.
    pub fn finish(mut self, framing: Framing, after: AfterMessage) -> Result<(), EncodeError> {
        self.check_framing(framing)?;
        match framing {
            Framing::Length(bytes) => {
                self.output.append(b"Content-Length: ")?;
                append_decimal(self.output, bytes)?;
                self.output.append(b"\r\n")?;
            }
            Framing::Chunked => self.append_field("Transfer-Encoding", b"chunked")?,
            Framing::NoContent | Framing::UntilClose => {}
        }
        match after {
            _ if framing == Framing::UntilClose => self.append_field("Connection", b"close")?,
            AfterMessage::Close => self.append_field("Connection", b"close")?,
            AfterMessage::KeepAlive => self.append_field("Connection", b"keep-alive")?,
            AfterMessage::Unsaid => {}
        }
        self.output.append(b"\r\n")?;
        self.finished = true;
        Ok(())
    }

    fn check_framing(&self, framing: Framing) -> Result<(), EncodeError> {
        let allowed = match (self.kind, framing) {
            (Kind::Request, framing) => framing != Framing::UntilClose,
            // HTTP/1.0 has no chunks (RFC 9112, 6.1).
            (Kind::Response(Version::Http10, _), Framing::Chunked) => false,
            (Kind::Response(_, 100..=199 | 204), framing) => framing == Framing::NoContent,
            (Kind::Response(_, 304), framing) => framing != Framing::UntilClose,
            // Without any framing the reader would wait for the connection to close.
            (Kind::Response(..), framing) => framing != Framing::NoContent,
        };
        if allowed { Ok(()) } else { Err(EncodeError::Framing) }
    }

    fn append_field(&mut self, name: &str, value: &[u8]) -> Result<(), EncodeError> {
        let before = self.output.written_bytes();
        let parts = [name.as_bytes(), b": ", value, b"\r\n"];
        let written = parts.into_iter().try_for_each(|part| self.output.append(part));
        if written.is_err() {
            self.output.take_back_to(before);
        }
        written
    }
}

impl<O: Output> Drop for HeadWriter<'_, O> {
    fn drop(&mut self) {
        if !self.finished {
            self.output.take_back_to(self.start);
        }
    }
}

/// Whether a field could be added to a response: use it to check fields from elsewhere before there is a response.
pub fn check_header(name: &str, value: &[u8]) -> Result<(), EncodeError> {
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(EncodeError::HeaderName);
    }
    let framing = ["content-length", "transfer-encoding", "connection"];
    if framing.iter().any(|framing| framing.eq_ignore_ascii_case(name)) {
        return Err(EncodeError::FramingHeader);
    }
    let padded = value.trim_ascii().len() != value.len();
    if padded || value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return Err(EncodeError::HeaderValue);
    }
    Ok(())
}

/// The bytes that close one chunk.
pub const CHUNK_END: &[u8] = b"\r\n";

/// The end of chunked content, without trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The bytes of `100 Continue`.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The line in front of a chunk of this many bytes. [`CHUNK_END`] follows the bytes, and [`LAST_CHUNK`] ends the
/// content.
pub fn chunk_start<O: Output>(output: &mut O, chunk_bytes: u64) -> Result<(), EncodeError> {
    if chunk_bytes == 0 {
        return Err(EncodeError::EmptyChunk);
    }
    let mut text = [0; 18];
    let mut start = 16;
    text[start..].copy_from_slice(b"\r\n");
    let mut left = chunk_bytes;
    while left > 0 {
        start -= 1;
        text[start] = b"0123456789abcdef"[(left % 16) as usize];
        left /= 16;
    }
    output.append(&text[start..])
}

fn append_decimal<O: Output>(output: &mut O, value: u64) -> Result<(), EncodeError> {
    let mut text = [0; 20];
    let (mut start, mut left) = (text.len(), value);
    loop {
        start -= 1;
        text[start] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            return output.append(&text[start..]);
        }
    }
}

/// The usual reason phrase of a status that Weir sends; empty for others, which is valid.
pub fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        304 => "Not Modified",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, framing: Framing, after: AfterMessage) -> Result<String, EncodeError> {
        let mut output = b"before".to_vec();
        let written = HeadWriter::response(&mut output, Version::Http11, status, reason(status))
            .and_then(|head| head.finish(framing, after));
        if written.is_err() {
            assert_eq!(output, b"before", "a failure leaves nothing");
        }
        written.map(|()| String::from_utf8(output.split_off(6)).expect("ASCII"))
    }

    #[test]
    fn heads_are_written_as_the_standard_shows_them() {
        let text = |status, framing| response(status, framing, AfterMessage::Unsaid).expect("valid");
        assert_eq!(text(200, Framing::Length(0)), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(
            text(404, Framing::Chunked),
            "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        assert_eq!(text(200, Framing::UntilClose), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
        assert_eq!(text(100, Framing::NoContent).as_bytes(), CONTINUE);
        assert_eq!(text(299, Framing::Length(u64::MAX)).lines().next(), Some("HTTP/1.1 299 "));
        let mut output = Vec::new();
        let mut head = HeadWriter::request(&mut output, Method::Get, "/a?b", "weir.example").expect("valid");
        head.header("Accept", b"*/*").expect("valid");
        head.finish(Framing::NoContent, AfterMessage::KeepAlive).expect("valid");
        let expected =
            "GET /a?b HTTP/1.1\r\nHost: weir.example\r\nAccept: */*\r\nConnection: keep-alive\r\n\r\n";
        assert_eq!(String::from_utf8(output).as_deref(), Ok(expected));
    }

    #[test]
    fn framings_that_would_confuse_a_reader_are_refused() {
        for (status, framing) in [
            (200, Framing::NoContent),
            (204, Framing::Length(0)),
            (100, Framing::Chunked),
            (304, Framing::UntilClose),
        ] {
            assert_eq!(response(status, framing, AfterMessage::Unsaid), Err(EncodeError::Framing));
        }
        assert_eq!(response(99, Framing::Length(0), AfterMessage::Unsaid), Err(EncodeError::Status));
        let mut output = Vec::new();
        let head = HeadWriter::request(&mut output, Method::Options, "*", "").expect("valid");
        assert_eq!(head.finish(Framing::UntilClose, AfterMessage::Close), Err(EncodeError::Framing));
        let head = HeadWriter::response(&mut output, Version::Http10, 200, "OK").expect("valid");
        assert_eq!(head.finish(Framing::Chunked, AfterMessage::Close), Err(EncodeError::Framing));
        assert!(output.is_empty());
    }

    #[test]
    fn nothing_can_be_smuggled_through_a_head() {
        let mut output = Vec::new();
        for target in ["", "/a b", "/\r\nX: y", "/\0", "/#part", "/\u{e9}", "*", "a", "x:80", "http://u@x/"] {
            let refused = HeadWriter::request(&mut output, Method::Get, target, "h").map(|_| ());
            assert_eq!(refused, Err(EncodeError::Target), "{target:?}");
        }
        for host in ["a b", "a\r\nX: y", "a/b", "user@x", "x:80:80", "::1", "a,b"] {
            let refused = HeadWriter::request(&mut output, Method::Get, "/", host).map(|_| ());
            assert_eq!(refused, Err(EncodeError::Host), "{host:?}");
        }
        let mut head = HeadWriter::request(&mut output, Method::Get, "/", "x").expect("valid");
        assert_eq!(head.header("HOST", b"y").map(|_| ()), Err(EncodeError::Host));
        drop(head);
        let refused = HeadWriter::response(&mut output, Version::Http11, 200, "OK\r\nX: y").map(|_| ());
        assert_eq!(refused, Err(EncodeError::Reason));
        let mut head = HeadWriter::response(&mut output, Version::Http10, 200, "OK").expect("valid");
        for name in ["", "a b", "a:", "a\r\n", "\u{e9}"] {
            assert_eq!(head.header(name, b"").map(|_| ()), Err(EncodeError::HeaderName), "{name:?}");
        }
        for value in [&b"a\r\nX: y"[..], b"a\nb", b"a\rb", b"a\0", b" a", b"a ", b"\x7f"] {
            assert_eq!(head.header("A", value).map(|_| ()), Err(EncodeError::HeaderValue), "{value:?}");
        }
        for name in ["Content-Length", "TRANSFER-ENCODING", "connection"] {
            assert_eq!(head.header(name, b"1").map(|_| ()), Err(EncodeError::FramingHeader));
        }
        drop(head);
        assert!(output.is_empty());
    }

    #[test]
    fn a_window_takes_a_head_that_fits_and_nothing_of_one_that_does_not() {
        let whole = response(200, Framing::Length(5), AfterMessage::Close).expect("valid");
        for size in 0..=whole.len() {
            let mut buffer = vec![0; size];
            let mut window = Window::new(&mut buffer);
            let written = HeadWriter::response(&mut window, Version::Http11, 200, "OK")
                .and_then(|head| head.finish(Framing::Length(5), AfterMessage::Close));
            let fits = size == whole.len();
            assert_eq!(written, if fits { Ok(()) } else { Err(EncodeError::NoRoom) });
            assert_eq!(window.written(), if fits { whole.as_bytes() } else { b"" });
        }
    }

    #[test]
    fn chunk_sizes_are_hexadecimal_and_never_zero() {
        let line = |size| {
            let mut output = Vec::new();
            chunk_start(&mut output, size).map(|()| String::from_utf8(output).expect("ASCII"))
        };
        assert_eq!(line(0), Err(EncodeError::EmptyChunk));
        assert_eq!(line(26).as_deref(), Ok("1a\r\n"));
        assert_eq!(line(u64::MAX).as_deref(), Ok("ffffffffffffffff\r\n"));
    }
}
