//! Lines of the access log, as one connection writes them: the request, the client, and the result.
//!
//! A line is written when its reply has been handed to the engine, so that its time and its bytes are those of the
//! whole reply. Text from a client is truncated and escaped: it cannot end a field or a line.

use std::{fmt::Write, net::IpAddr, str};

use weir_engine::time::{self, Instant};
use weir_proto::http1::{Headers, RequestHead, Version, date::DATE_BYTES};

use super::{access_log_writer::AccessLog, config::LogFormat};

/// Longest text of an unknown method or version in a line.
const METHOD_BYTES_MAX: usize = 32;

/// Longest text of a target in a line, before it is escaped.
const TARGET_BYTES_MAX: usize = 1024;

/// Longest text of a referrer or a user agent in a line.
const FIELD_BYTES_MAX: usize = 512;

/// The log's data about a connection.
#[derive(Debug)]
pub(super) struct ConnectionLog {
    format: LogFormat,
    client: Option<IpAddr>,
    /// The request in progress, as text; empty if no head has been read.
    request: String,
    referer: String,
    agent: String,
    /// When the bytes being decoded arrived.
    arrived: Instant,
    /// When the first byte of the request arrived.
    began: Instant,
    /// Lines of replies that have not been handed over: as many as the batch has replies.
    pending: Vec<Pending>,
    /// Bytes of the content of the last pending line that have been handed over, if the content follows its head.
    sent_bytes: u64,
}

#[derive(Debug)]
struct Pending {
    before: String,
    content_bytes: u64,
    /// The content follows separately, and the client may not take all of it.
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

    /// Records that bytes have arrived.
    pub(super) fn arrive(&mut self, is_idle: bool) {
        self.arrived = time::now();
        if is_idle {
            self.began = self.arrived;
        }
    }

    /// Records a complete head.
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

    /// Records a refused or incomplete head, whose first line is `line`. A malformed first line is not logged.
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

    /// Whether the head of the current request was read.
    pub(super) fn has_request(&self) -> bool {
        !self.request.is_empty()
    }

    /// Records a reply: content of this many bytes, in the batch or behind it.
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

    /// Records content of the last reply that was handed over.
    pub(super) fn add_sent(&mut self, bytes: u64) {
        self.sent_bytes += bytes;
    }

    /// Queues the lines of replies that have been handed over, or never will be.
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
