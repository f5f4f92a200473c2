//! `host [":" port]` (RFC 3986, 3.2.2 and 3.2.3; RFC 9110, 4.2 and 7.2): the server that is meant.
//!
//! `Host`, targets that name a server and URLs share one grammar, so that they cannot disagree. It is narrower than
//! RFC 3986: no user information, no comma in a name (a sign that two fields were merged), no address in brackets
//! other than IPv6, and none with a zone.

use core::net::{Ipv4Addr, Ipv6Addr};

/// A host and perhaps a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Authority<'a> {
    /// A name, an IPv4 address, or an IPv6 address in brackets. May be empty, but not in front of a port.
    pub(super) host: &'a [u8],
    /// The port, unless it is absent or empty.
    pub(super) port: Option<u16>,
}

/// Reads the whole text as an authority.
pub(super) fn parse(text: &[u8]) -> Option<Authority<'_>> {
    let host_bytes = if text.starts_with(b"[") {
        bracketed_bytes(text)?
    } else {
        text.iter().position(|byte| !is_name(*byte)).unwrap_or(text.len())
    };
    let (host, rest) = text.split_at(host_bytes);
    let port = match rest {
        [] => None,
        _ if host.is_empty() => return None,
        b":" => None,
        [b':', digits @ ..] => Some(decimal(digits)?),
        _ => return None,
    };
    Some(Authority { host, port })
}

/// Whether a `Host` names the machine by an address or as `localhost`. After DNS rebinding, a page of a foreign name
/// that now resolves to this machine sends that name in its requests.
///
/// ```
/// use weir_proto::http1::is_address_or_localhost;
///
/// let is_meant = |host: &&str| is_address_or_localhost(host.as_bytes());
/// assert!(["127.0.0.1:9190", "[::1]", "LocalHost:80"].iter().all(is_meant));
/// assert!(!["rebound.example:9190", "127.0.0.1.example", ""].iter().any(is_meant));
/// ```
pub fn is_address_or_localhost(host: &[u8]) -> bool {
    let Some(Authority { host, .. }) = parse(host) else { return false };
    // A name in brackets is an address.
    let is_address = |name: &str| name.starts_with('[') || name.parse::<Ipv4Addr>().is_ok();
    std::str::from_utf8(host).is_ok_and(is_address) || host.eq_ignore_ascii_case(b"localhost")
}

/// The authority of a target in absolute form, which may not be empty, and the rest of the target: nothing, a path,
/// or a query.
pub(super) fn split_absolute(target: &[u8]) -> Option<(Authority<'_>, &[u8])> {
    let scheme_bytes = ["http://", "https://"].into_iter().find_map(|scheme| {
        let start = target.get(..scheme.len())?;
        start.eq_ignore_ascii_case(scheme.as_bytes()).then_some(scheme.len())
    })?;
    let rest = &target[scheme_bytes..];
    let end = rest.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(rest.len());
    let authority = parse(&rest[..end])?;
    (!authority.host.is_empty()).then_some((authority, &rest[end..]))
}

/// The length of an IPv6 address in brackets at the start of the text.
fn bracketed_bytes(text: &[u8]) -> Option<usize> {
    let end = text.iter().position(|byte| *byte == b']')?;
    let address = std::str::from_utf8(&text[1..end]).ok()?;
    address.parse::<Ipv6Addr>().ok()?;
    Some(end + 1)
}

fn decimal(digits: &[u8]) -> Option<u16> {
    digits.iter().try_fold(0_u16, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| u16::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

/// A character of `reg-name` other than the comma. The two digits after a `%` are not checked.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'%' | b'!' | b'$' | b'&' | b'\'')
        || matches!(byte, b'(' | b')' | b'*' | b'+' | b';' | b'=')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_told_apart() {
        let read = |text: &'static str| parse(text.as_bytes()).map(|found| (found.host, found.port));
        assert_eq!(read(""), Some((&b""[..], None)));
        assert_eq!(read("weir.example"), Some((&b"weir.example"[..], None)));
        assert_eq!(read("10.0.0.1:8088"), Some((&b"10.0.0.1"[..], Some(8088))));
        assert_eq!(read("[::1]:080"), Some((&b"[::1]"[..], Some(80))));
        assert_eq!(read("[2001:db8::7.8.9.10]"), Some((&b"[2001:db8::7.8.9.10]"[..], None)));
        assert_eq!(read("x:"), Some((&b"x"[..], None)));
        assert_eq!(read("x:65535"), Some((&b"x"[..], Some(65535))));
    }

    #[test]
    fn everything_else_is_no_authority() {
        for text in [
            ":80",
            "x:65536",
            "x:8a",
            "x:+8",
            "x:80:80",
            "::1",
            "[::1",
            "[]",
            "[::1]x",
            "[::1%25lo]",
            "[v1.a]",
            "a b",
            "a,b",
            "user@x",
            "x/y",
            "x?",
            "x#",
            "a\\b",
            "a\"b",
            "\u{e9}",
            "[x]",
            "]",
            "x[",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn an_absolute_target_is_split_behind_its_authority() {
        let split = |text: &'static str| {
            split_absolute(text.as_bytes()).map(|(authority, rest)| (authority.host, authority.port, rest))
        };
        assert_eq!(split("http://x"), Some((&b"x"[..], None, &b""[..])));
        assert_eq!(split("HTTPS://x:1/a?b"), Some((&b"x"[..], Some(1), &b"/a?b"[..])));
        assert_eq!(split("http://[::1]?b"), Some((&b"[::1]"[..], None, &b"?b"[..])));
        for text in
            ["http:/x", "http://", "http:///x", "http://?", "http://u@x/", "ftp://x/", "x", "http://x\\@y/"]
        {
            assert_eq!(split(text), None, "{text}");
        }
    }
}
