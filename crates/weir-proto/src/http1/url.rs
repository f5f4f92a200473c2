//! URLs for the client: `http://host[:port][/path][?query]` (RFC 9110, 4.2.1; RFC 3986).
//!
//! `https`, HTTP/2, user names and everything else that this client does not support are refused with a sentence that
//! says what to do. A fragment is dropped: it is never sent (RFC 9110, 7.1). Names are not resolved.
//!
//! ```
//! use weir_proto::http1::url::{Url, UrlError};
//!
//! let url: Url = "http://[::1]:8088/a?b#c".parse()?;
//! assert_eq!((url.host(), url.port(), url.target(), url.authority()), ("::1", 8088, "/a?b", "[::1]:8088"));
//! assert_eq!("https://weir.example/".parse::<Url>(), Err(UrlError::Https));
//! # Ok::<(), UrlError>(())
//! ```

use std::{fmt, str::FromStr};

use thiserror::Error;

use super::authority;

/// The longest accepted URL.
pub const URL_BYTES_MAX: usize = 8192;

/// The port of `http` (RFC 9110, 4.2.1).
const PORT: u16 = 80;

/// The server to connect to, and the target of the request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Url {
    authority: String,
    host_bytes: usize,
    port: u16,
    target: String,
}

impl Url {
    /// The name or address to connect to, IPv6 without brackets.
    pub fn host(&self) -> &str {
        self.authority[..self.host_bytes].trim_matches(['[', ']'])
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Path and query, as in the request line: at least `/`.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The value of `Host`: as it was written, without an empty port.
    pub fn authority(&self) -> &str {
        &self.authority
    }
}

impl fmt::Display for Url {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "http://{}{}", self.authority, self.target)
    }
}

/// Why a text is not a URL for this client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UrlError {
    /// There is no `://`.
    #[error("no scheme: write http:// in front")]
    SchemeMissing,
    /// `https`.
    #[error("https is not spoken here: there is no TLS; use an http:// URL")]
    Https,
    /// `h2`, `h2c` or `http2`.
    #[error("HTTP/2 is not spoken here: use an http:// URL, which means HTTP/1.1")]
    Http2,
    /// Another scheme.
    #[error("not a scheme for HTTP: use an http:// URL")]
    Scheme,
    /// `user@` or `user:password@`.
    #[error("a user in the URL is not sent: give an Authorization header instead")]
    User,
    /// The text after `http://` is not a host with an optional port.
    #[error("not host or host:port after http:// (the port 1 to 65535, an IPv6 address in brackets)")]
    Authority,
    /// Whitespace, control bytes, or letters beyond ASCII.
    #[error("a character that URLs do not have: write it as %XX, and a name beyond ASCII as xn--")]
    Character,
    /// More than [`URL_BYTES_MAX`].
    #[error("a URL has at most {URL_BYTES_MAX} bytes")]
    TooLong,
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        if text.len() > URL_BYTES_MAX {
            return Err(UrlError::TooLong);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(UrlError::Character);
        }
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::SchemeMissing)?;
        match scheme.to_ascii_lowercase().as_str() {
            "http" => {}
            "https" => return Err(UrlError::Https),
            "h2" | "h2c" | "http2" => return Err(UrlError::Http2),
            _ => return Err(UrlError::Scheme),
        }
        let rest = rest.split_once('#').map_or(rest, |(sent, _)| sent);
        let (written, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if written.contains('@') {
            return Err(UrlError::User);
        }
        let found = authority::parse(written.as_bytes()).ok_or(UrlError::Authority)?;
        if found.host.is_empty() || found.port == Some(0) {
            return Err(UrlError::Authority);
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Self {
            authority: written.strip_suffix(':').unwrap_or(written).into(),
            host_bytes: found.host.len(),
            port: found.port.unwrap_or(PORT),
            target: format!("{slash}{path}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn urls_are_split_where_they_should() {
        for (text, host, port, authority, target) in [
            ("http://x", "x", 80, "x", "/"),
            ("HTTP://weir.example:80/", "weir.example", 80, "weir.example:80", "/"),
            ("http://127.0.0.1:8088/a/b?c=d&e", "127.0.0.1", 8088, "127.0.0.1:8088", "/a/b?c=d&e"),
            ("http://[::1]", "::1", 80, "[::1]", "/"),
            ("http://[2001:db8::1]:65535?q", "2001:db8::1", 65535, "[2001:db8::1]:65535", "/?q"),
            ("http://x:/a", "x", 80, "x", "/a"),
            ("http://x#/a?b", "x", 80, "x", "/"),
            ("http://x/a#b/c?d", "x", 80, "x", "/a"),
            ("http://x/http://y/@", "x", 80, "x", "/http://y/@"),
        ] {
            let url: Url = text.parse().expect(text);
            assert_eq!(
                (url.host(), url.port(), url.authority(), url.target()),
                (host, port, authority, target)
            );
        }
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_by_name() {
        for (text, error) in [
            ("", UrlError::SchemeMissing),
            ("localhost:8088/", UrlError::SchemeMissing),
            ("http:/x", UrlError::SchemeMissing),
            ("https://x/", UrlError::Https),
            ("HTTPS://x/", UrlError::Https),
            ("h2c://x/", UrlError::Http2),
            ("h2://x/", UrlError::Http2),
            ("ftp://x/", UrlError::Scheme),
            ("://x/", UrlError::Scheme),
            ("http://user:word@x/", UrlError::User),
            ("http://", UrlError::Authority),
            ("http:///a", UrlError::Authority),
            ("http://:80/", UrlError::Authority),
            ("http://x:0/", UrlError::Authority),
            ("http://x:65536/", UrlError::Authority),
            ("http://::1/", UrlError::Authority),
            ("http://[::1/", UrlError::Authority),
            ("http://[::1%25lo]/", UrlError::Authority),
            ("http://x\\y/", UrlError::Authority),
            ("http://x/a b", UrlError::Character),
            ("http://x/\r\nHost:y", UrlError::Character),
            ("http://\u{fc}.example/", UrlError::Character),
        ] {
            assert_eq!(text.parse::<Url>(), Err(error), "{text:?}");
        }
        let long =
            |bytes: usize| format!("http://x/{}", "a".repeat(bytes - "http://x/".len())).parse::<Url>();
        assert!(long(URL_BYTES_MAX).is_ok());
        assert_eq!(long(URL_BYTES_MAX + 1), Err(UrlError::TooLong));
    }

    #[test]
    fn refusals_say_what_to_do() {
        assert_eq!(
            UrlError::Https.to_string(),
            "https is not spoken here: there is no TLS; use an http:// URL"
        );
        assert_eq!(
            UrlError::Http2.to_string(),
            "HTTP/2 is not spoken here: use an http:// URL, which means HTTP/1.1"
        );
    }

    proptest! {
        #[test]
        fn a_url_reads_as_it_prints(
            host in "[a-z0-9.-]{1,12}|\\[::[0-9a-f]{1,4}\\]", port in prop::option::of(1..=u16::MAX),
            target in "([/?][!$-~]{0,20})?",
        ) {
            let port_text = port.map(|port| format!(":{port}")).unwrap_or_default();
            let url: Url = format!("http://{host}{port_text}{target}").parse().expect("a URL");
            prop_assert_eq!(url.host(), host.trim_matches(['[', ']']));
            prop_assert_eq!(url.port(), port.unwrap_or(80));
            prop_assert!(url.target().starts_with('/') && url.target().ends_with(target.as_str()));
            prop_assert_eq!(url.to_string().parse::<Url>(), Ok(url));
        }

        #[test]
        fn any_text_is_read(text in "(http://)?.{0,40}") {
            if let Ok(url) = text.parse::<Url>() {
                prop_assert_eq!(url.to_string().parse::<Url>(), Ok(url));
            }
        }
    }
}
