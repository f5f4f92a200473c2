//! Header fields that a server adds to its replies, checked before it starts.

use thiserror::Error;
use weir_proto::http1::encode::{EncodeError, check_header};

/// The most fields.
pub const HEADERS_MAX: usize = 32;

/// The most bytes of all of them together: they are part of every reply.
pub const HEADERS_BYTES_MAX: usize = 4096;

/// Fields that frame a message or belong to one connection, besides those that [`check_header`] knows.
const FRAMING: [&str; 6] = ["keep-alive", "proxy-connection", "te", "trailer", "upgrade", "http2-settings"];

/// Fields that the server writes itself.
const OURS: [&str; 9] = [
    "accept-ranges",
    "allow",
    "content-encoding",
    "content-range",
    "content-type",
    "date",
    "etag",
    "last-modified",
    "location",
];

/// Why a line cannot be added as a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// There is no colon.
    #[error("has no colon")]
    NoColon,
    /// The text before the colon is not a valid name.
    #[error("does not begin with a header's name")]
    Name,
    /// The value contains non-ASCII or control bytes.
    #[error("has a value with bytes that a header cannot have")]
    Value,
    /// The field determines where a message ends, or the state of the connection.
    #[error("would change how messages are framed")]
    Framing,
    /// The server writes this field itself.
    #[error("is a header that the server itself writes")]
    Ours,
    /// There are more than [`HEADERS_MAX`], or more bytes than [`HEADERS_BYTES_MAX`].
    #[error("is one too many: at most 32 headers with 4096 bytes together can be added")]
    TooMany,
}

/// Fields for every reply with a status below 400, in order. A name may occur more than once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplyHeaders {
    fields: Vec<(String, String)>,
}

impl ReplyHeaders {
    /// Adds `Name: value`.
    ///
    /// # Errors
    /// When a reply with it would be malformed, or a different one.
    pub fn add(&mut self, line: &str) -> Result<(), HeaderError> {
        let (name, value) = line.split_once(':').ok_or(HeaderError::NoColon)?;
        let value = value.trim_matches([' ', '\t']);
        check_header(name, value.as_bytes()).map_err(|error| match error {
            EncodeError::HeaderName => HeaderError::Name,
            EncodeError::FramingHeader => HeaderError::Framing,
            _ => HeaderError::Value,
        })?;
        let is_one_of = |names: &[&str]| names.iter().any(|other| other.eq_ignore_ascii_case(name));
        if is_one_of(&FRAMING) {
            return Err(HeaderError::Framing);
        }
        if is_one_of(&OURS) {
            return Err(HeaderError::Ours);
        }
        if !value.is_ascii() {
            return Err(HeaderError::Value);
        }
        let bytes: usize = self.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        let more = name.len() + value.len() + 4;
        if self.fields.len() == HEADERS_MAX || bytes + more > HEADERS_BYTES_MAX {
            return Err(HeaderError::TooMany);
        }
        self.fields.push((name.into(), value.into()));
        Ok(())
    }

    /// Names and values.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_kept_in_order_without_the_space_around_them() {
        let mut headers = ReplyHeaders::default();
        for line in ["Cache-Control: max-age=60", "X-A:", "X-A:\tb: c "] {
            assert_eq!(headers.add(line), Ok(()), "{line}");
        }
        let all: Vec<_> = headers.iter().collect();
        assert_eq!(all, [("Cache-Control", &b"max-age=60"[..]), ("X-A", b""), ("X-A", b"b: c")]);
    }

    #[test]
    fn what_would_make_another_reply_is_refused() {
        for (line, error) in [
            ("Cache-Control", HeaderError::NoColon),
            (": a", HeaderError::Name),
            ("A b: c", HeaderError::Name),
            ("A : b", HeaderError::Name),
            ("A: b\r\nContent-Length: 0", HeaderError::Value),
            ("A: \0", HeaderError::Value),
            ("A: \u{e9}", HeaderError::Value),
            ("content-length: 1", HeaderError::Framing),
            ("Transfer-Encoding: chunked", HeaderError::Framing),
            ("CONNECTION: close", HeaderError::Framing),
            ("Upgrade: h2c", HeaderError::Framing),
            ("Trailer: A", HeaderError::Framing),
            ("Date: now", HeaderError::Ours),
            ("etag: \"a\"", HeaderError::Ours),
            ("Content-Encoding: gzip", HeaderError::Ours),
        ] {
            assert_eq!(ReplyHeaders::default().add(line), Err(error), "{line:?}");
        }
    }

    #[test]
    fn there_is_a_limit_to_their_number_and_to_their_bytes() {
        let mut many = ReplyHeaders::default();
        (0..HEADERS_MAX).for_each(|_| assert_eq!(many.add("A: b"), Ok(())));
        assert_eq!(many.add("A: b"), Err(HeaderError::TooMany));
        let mut large = ReplyHeaders::default();
        let fits = format!("A: {}", "b".repeat(HEADERS_BYTES_MAX - 5));
        assert_eq!(large.add(&format!("{fits}b")), Err(HeaderError::TooMany));
        assert_eq!(large.add(&fits), Ok(()));
        assert_eq!(large.add("A:"), Err(HeaderError::TooMany));
    }
}
