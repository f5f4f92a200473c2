//! Lines of the access log, as one connection writes them: what was asked, by whom, and what came of it.
//!
//! A line is written when its reply has been handed to the engine, so that its time and its bytes are those of the
//! whole reply. What comes from a client is cut and escaped: no byte of it ends a field or a line.

use std::{fmt::Write, net::IpAddr, str};

use weir_engine::time::{self, Instant};
use weir_proto::http1::{Headers, RequestHead, Version, date::DATE_BYTES};

use super::{access_log_writer::AccessLog, config::LogFormat};

/// What a line says of a method that is unknown, or of a version that is.
const METHOD_BYTES_MAX: usize = 32;

/// What a line says of a target, before it is escaped.
const TARGET_BYTES_MAX: usize = 1024;

/// What a line says of a referrer or a user agent.
const FIELD_BYTES_MAX: usize = 512;

/// What the log knows of a connection.
#[derive(Debug)]
pub(super) struct ConnectionLog {
    format: LogFormat,
    client: Option<IpAddr>,
    /// The line of the request that is under way; empty when none was read.
    request: String,
    referer: String,
    agent: String,
    /// When the bytes that are being decoded arrived.
    arrived: Instant,
    /// When the first byte of the request did.
    began: Instant,
    /// Lines of replies that are not handed over yet: as many as a batch has replies.
    pending: Vec<Pending>,
    /// Content of the last pending line that follows its head, as far as it is handed over.
    sent_bytes: u64,
}

#[derive(Debug)]
struct Pending {
    before: String,
    content_bytes: u64,
    /// The content follows, and may not all be taken.
    is_behind: bool,
    after: String,
    began: Instant,
}

impl ConnectionLog {
    pub(super) fn new(format: LogFormat, client: Option<IpAddr>) -> Self {
        let now = time::now();
        Self {
            format,
            client,
            request: String::new(),
            referer: String::new(),
            agent: String::new(),
            arrived: now,
            began: now,
            pending: Vec::new(),
            sent_bytes: 0,
        }
    }

    /// Bytes have arrived.
    pub(super) fn arrive(&mut self, is_idle: bool) {
        self.arrived = time::now();
        if is_idle {
            self.began = self.arrived;
        }
    }

    /// A head is there.
    pub(super) fn begin(&mut self, head: &RequestHead<'_>) {
        self.request.clear();
        self.request.push_str(head.method.name());
        self.request.push(' ');
        escape(&mut self.request, head.target.as_bytes(), TARGET_BYTES_MAX);
        self.request.push_str(if head.version == Version::Http10 { " HTTP/1.0" } else { " HTTP/1.1" });
        if self.format != LogFormat::Common {
            keep(&mut self.referer, head.headers, "referer");
            keep(&mut self.agent, head.headers, "user-agent");
        }
    }

    /// The head of a request was refused, or did not come as a whole; this is its first line. What is none is not told.
    pub(super) fn begin_refused(&mut self, line: &[u8]) {
        let mut parts = line.split(|byte| *byte == b' ');
        let (Some(method), Some(target), Some(version), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return;
        };
        if method.is_empty() || target.is_empty() || !version.starts_with(b"HTTP/") {
            return;
        }
        self.request.clear();
        escape(&mut self.request, method, METHOD_BYTES_MAX);
        self.request.push(' ');
        escape(&mut self.request, target, TARGET_BYTES_MAX);
        self.request.push(' ');
        escape(&mut self.request, version, METHOD_BYTES_MAX);
    }

    /// Whether the head of the request that is under way was read.
    pub(super) fn has_request(&self) -> bool {
        !self.request.is_empty()
    }

    /// A reply is decided: content of so many bytes, in the batch or behind it.
    pub(super) fn reply(
        &mut self,
        date: &[u8; DATE_BYTES],
        status: u16,
        content_bytes: u64,
        is_behind: bool,
    ) {
        let mut before = match self.client {
            Some(client) => client.to_canonical().to_string(),
            None => "-".to_owned(),
        };
        let (request, clock) = (or_dash(&self.request), local_time(date));
        // Writing to a string does not fail.
        let _ = write!(before, " - - [{clock}] \"{request}\" {status} ");
        let after = match self.format {
            LogFormat::Common => String::new(),
            _ => format!(" \"{}\" \"{}\"", or_dash(&self.referer), or_dash(&self.agent)),
        };
        self.pending.push(Pending { before, content_bytes, is_behind, after, began: self.began });
        self.began = self.arrived;
        self.sent_bytes = 0;
        [&mut self.request, &mut self.referer, &mut self.agent].into_iter().for_each(String::clear);
    }

    /// Content of the last reply has been handed over.
    pub(super) fn add_sent(&mut self, bytes: u64) {
        self.sent_bytes += bytes;
    }

    /// What was decided is handed over, or never will be.
    pub(super) fn flush(&mut self, log: &AccessLog) {
        if self.pending.is_empty() {
            return;
        }
        let now = time::now();
        for Pending { before, content_bytes, is_behind, after, began } in self.pending.drain(..) {
            let bytes = if is_behind { self.sent_bytes } else { content_bytes };
            let mut line = format!("{before}{bytes}{after}");
            if self.format == LogFormat::Timed {
                let _ = write!(line, " {}", now.since(began).as_micros());
            }
            line.push('\n');
            log.line(line);
        }
        // A burst may have made it large.
        self.pending.shrink_to(8);
    }
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

fn keep(place: &mut String, headers: Headers<'_>, name: &str) {
    place.clear();
    escape(place, headers.get(name).unwrap_or_default(), FIELD_BYTES_MAX);
}

/// `06/Nov/1994:08:49:37 +0000`, of an HTTP date.
fn local_time(date: &[u8; DATE_BYTES]) -> String {
    let part = |range: std::ops::Range<usize>| str::from_utf8(&date[range]).unwrap_or("-");
    format!("{}/{}/{}:{} +0000", part(5..7), part(8..11), part(12..16), part(17..25))
}

/// Visible ASCII as it is, and everything else, quotes and backslashes too, as `\xHH`.
fn escape(line: &mut String, bytes: &[u8], bytes_max: usize) {
    for byte in bytes.iter().take(bytes_max) {
        match byte {
            b' '..=b'~' if !b"\"\\".contains(byte) => line.push(char::from(*byte)),
            byte => _ = write!(line, "\\x{byte:02X}"),
        }
    }
    if bytes.len() > bytes_max {
        line.push_str("...");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_visible_ascii_is_written_in_hexadecimal() {
        let mut line = String::new();
        escape(&mut line, b"a \"b\"\\\r\n\x1b[31m\xc3\xa9~", 100);
        assert_eq!(line, "a \\x22b\\x22\\x5C\\x0D\\x0A\\x1B[31m\\xC3\\xA9~");
        line.clear();
        escape(&mut line, b"\"\"\"", 2);
        assert_eq!(line, "\\x22\\x22...");
    }

    #[test]
    fn a_refused_request_is_told_by_its_line_if_that_is_one() {
        let told = |line: &[u8]| {
            let mut log = ConnectionLog::new(LogFormat::Common, None);
            log.begin_refused(line);
            log.request
        };
        assert_eq!(told(b"BREW /pot HTTP/1.1"), "BREW /pot HTTP/1.1");
        assert_eq!(told(b"GET /a\"b\x80 HTTP/2.0"), "GET /a\\x22b\\x80 HTTP/2.0");
        assert_eq!(
            told(&[&b"x".repeat(40)[..], b" / HTTP/1.1"].concat()),
            format!("{}... / HTTP/1.1", "x".repeat(32))
        );
        for line in [&b""[..], b"GET /", b"GET / a HTTP/1.1", b"\x16\x03\x01 a b", b" / HTTP/1.1"] {
            assert_eq!(told(line), "", "{line:?}");
        }
    }

    #[test]
    fn a_date_is_written_as_log_readers_expect_it() {
        assert_eq!(local_time(b"Sun, 06 Nov 1994 08:49:37 GMT"), "06/Nov/1994:08:49:37 +0000");
    }

    proptest! {
        #[test]
        fn nothing_a_client_sends_ends_a_field_or_a_line(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut line = String::new();
            escape(&mut line, &bytes, 50);
            prop_assert!(line.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'"'));
            prop_assert!(line.len() <= 50 * 4 + 3);
        }
    }
}
