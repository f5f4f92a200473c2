//! The header fields that determine the framing of the connection: where the content ends, and what happens after it
//! (RFC 9112, 3.2, 6.1 to 6.3 and 9.3; RFC 9110, 10.1.1).
//!
//! If two readers could disagree about a message, it is refused.

use super::{authority, body::BodyLength, error::ParseError, head::Version, limits::Limits, method::Method};

/// The result of one pass over the header fields.
#[derive(Debug, Default)]
pub(super) struct Fields {
    host_count: usize,
    host_valid: bool,
    content_length: Option<u64>,
    coded: bool,
    chunked: bool,
    unknown_coding: bool,
    close: bool,
    keep_alive: bool,
    expects_continue: bool,
    expects_other: bool,
}

impl Fields {
    pub(super) fn gather(headers: &[httparse::Header<'_>]) -> Result<Self, ParseError> {
        let mut fields = Self::default();
        for header in headers {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            match header.name.len() {
                4 if is("host") => {
                    fields.host_count += 1;
                    fields.host_valid = authority::parse(header.value).is_some();
                }
                6 if is("expect") => fields.add_expectation(header.value),
                10 if is("connection") => fields.add_connection(header.value),
                14 if is("content-length") => {
                    let length = decimal(header.value).ok_or(ParseError::ContentLength)?;
                    if fields.content_length.replace(length).is_some() {
                        return Err(ParseError::ContentLengthRepeated);
                    }
                }
                17 if is("transfer-encoding") => fields.add_codings(header.value)?,
                _ => {}
            }
        }
        Ok(fields)
    }

    fn add_expectation(&mut self, value: &[u8]) {
        if value.eq_ignore_ascii_case(b"100-continue") {
            self.expects_continue = true;
        } else {
            self.expects_other = true;
        }
    }

    fn add_connection(&mut self, value: &[u8]) {
        for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    fn add_codings(&mut self, value: &[u8]) -> Result<(), ParseError> {
        self.coded = true;
        for coding in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            if self.chunked || coding.is_empty() {
                return Err(ParseError::TransferEncoding);
            }
            self.chunked = coding.eq_ignore_ascii_case(b"chunked");
            self.unknown_coding |= !self.chunked;
        }
        Ok(())
    }

    /// Exactly one valid `Host` in HTTP/1.1, at most one in HTTP/1.0. Empty is valid: the target has none.
    pub(super) fn check_host(&self, version: Version) -> Result<(), ParseError> {
        match self.host_count {
            0 if version == Version::Http11 => Err(ParseError::HostMissing),
            0 => Ok(()),
            1 if self.host_valid => Ok(()),
            1 => Err(ParseError::HostInvalid),
            _ => Err(ParseError::HostRepeated),
        }
    }

    /// Whether a request waits for `100 Continue`. HTTP/1.0 cannot, even if it asks for it.
    pub(super) fn expectation(&self, version: Version, body: BodyLength) -> Result<bool, ParseError> {
        if self.expects_other {
            return Err(ParseError::Expectation);
        }
        let has_body = !matches!(body, BodyLength::None | BodyLength::Length(0));
        Ok(self.expects_continue && version == Version::Http11 && has_body)
    }

    pub(super) fn keeps_alive(&self, version: Version) -> bool {
        !self.close && (version == Version::Http11 || self.keep_alive)
    }

    /// The length that the headers declare, if they declare one.
    fn declared(&self, version: Version) -> Result<Option<BodyLength>, ParseError> {
        if !self.coded {
            return Ok(self.content_length.map(BodyLength::Length));
        }
        if self.content_length.is_some() {
            return Err(ParseError::FramingConflict);
        }
        if !self.chunked || version == Version::Http10 {
            return Err(ParseError::TransferEncoding);
        }
        if self.unknown_coding {
            return Err(ParseError::TransferCodingUnknown);
        }
        Ok(Some(BodyLength::Chunked))
    }

    /// A request without a length has no content, for any method (RFC 9112, 6.3).
    pub(super) fn request_body(&self, version: Version, limits: &Limits) -> Result<BodyLength, ParseError> {
        within(self.declared(version)?.unwrap_or(BodyLength::None), limits)
    }

    pub(super) fn response_body(
        &self,
        version: Version,
        status: u16,
        request: Method,
        limits: &Limits,
    ) -> Result<BodyLength, ParseError> {
        let declared = self.declared(version)?;
        let tunnel = request == Method::Connect && (200..300).contains(&status);
        if request == Method::Head || tunnel || matches!(status, 100..=199 | 204 | 304) {
            return Ok(BodyLength::None);
        }
        within(declared.unwrap_or(BodyLength::UntilClose), limits)
    }
}

fn within(length: BodyLength, limits: &Limits) -> Result<BodyLength, ParseError> {
    match length {
        BodyLength::Length(bytes) if bytes > limits.body_bytes_max => Err(ParseError::BodyTooLarge),
        _ => Ok(length),
    }
}

/// Digits only: no sign, no list, no whitespace inside.
fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}
