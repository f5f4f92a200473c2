//! A request target as a path below a root (RFC 9112, 3.2; RFC 3986, 2.1, 3.3 and 6.2.2).
//!
//! Percent-escapes are decoded once, `.` and empty segments are dropped, and everything that could lead elsewhere is
//! refused: `..` in any spelling, an escaped slash, control bytes. The code that opens files checks what exists, and
//! links out of the root.
//!
//! ```
//! use weir_proto::http1::target;
//!
//! let mut buffer = Vec::new();
//! let path = target::decode("/a//./caf%C3%A9/?page=1", &mut buffer)?;
//! assert_eq!(path.joined(), "a/café".as_bytes());
//! assert!(path.ends_with_slash());
//! assert_eq!(target::query("/a?page=1"), Some("page=1"));
//! assert!(target::decode("/a/%2e%2e/b", &mut buffer).is_err());
//! # Ok::<(), target::TargetError>(())
//! ```

use thiserror::Error;

use super::authority;

/// The most bytes of one segment, decoded: no file has a longer name on Linux (NAME_MAX).
pub const SEGMENT_BYTES_MAX: usize = 255;

/// The most segments of a path.
pub const SEGMENT_COUNT_MAX: usize = 64;

/// Why a target is not a path here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TargetError {
    /// `*`, an authority, or anything else without a path.
    #[error("a target without a path")]
    NoPath,
    /// A `%` without two hexadecimal digits.
    #[error("a malformed percent-escape")]
    Escape,
    /// `%2F`: some readers would take it for a separator, others for a part of a name.
    #[error("an escaped slash")]
    EscapedSlash,
    /// NUL or another control byte, escaped or not.
    #[error("a control byte in a path")]
    ControlByte,
    /// `..`, escaped or not.
    #[error("a path to a parent")]
    Parent,
    /// More than [`SEGMENT_BYTES_MAX`] or [`SEGMENT_COUNT_MAX`].
    #[error("a path that is too long")]
    TooLong,
}

impl TargetError {
    /// The status a server answers with.
    pub fn status(self) -> u16 {
        match self {
            Self::TooLong => 414,
            Self::NoPath | Self::Escape | Self::EscapedSlash | Self::ControlByte | Self::Parent => 400,
        }
    }
}

/// A decoded path below a root. Its segments are names: none is empty, `.` or `..`, and none contains a slash or a
/// control byte. They are bytes, not always UTF-8, as file names are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path<'b> {
    joined: &'b [u8],
    ends_with_slash: bool,
}

impl<'b> Path<'b> {
    /// The segments, joined by slashes: relative to the root, and empty for the root itself.
    pub fn joined(self) -> &'b [u8] {
        self.joined
    }

    /// The segments.
    pub fn segments(self) -> impl Iterator<Item = &'b [u8]> {
        self.joined.split(|byte| *byte == b'/').filter(|segment| !segment.is_empty())
    }

    /// Whether the path means a folder: it ends with a slash or `/.`.
    pub fn ends_with_slash(self) -> bool {
        self.ends_with_slash
    }
}

/// Decodes the path of a target in origin or absolute form into `buffer`, replacing its contents.
pub fn decode<'b>(target: &str, buffer: &'b mut Vec<u8>) -> Result<Path<'b>, TargetError> {
    buffer.clear();
    let path = written_path(target).ok_or(TargetError::NoPath)?;
    let (mut count, mut ends_with_slash) = (0, true);
    for segment in path.split(|byte| *byte == b'/') {
        let before = buffer.len();
        if before > 0 {
            buffer.push(b'/');
        }
        let start = buffer.len();
        decode_segment(segment, buffer)?;
        ends_with_slash = false;
        match &buffer[start..] {
            b"" | b"." => {
                buffer.truncate(before);
                ends_with_slash = true;
            }
            b".." => return Err(TargetError::Parent),
            name if name.len() > SEGMENT_BYTES_MAX => return Err(TargetError::TooLong),
            _ => count += 1,
        }
        if count > SEGMENT_COUNT_MAX {
            return Err(TargetError::TooLong);
        }
    }
    Ok(Path { joined: buffer, ends_with_slash })
}

/// The text after the first `?` of a target, as it was written.
pub fn query(target: &str) -> Option<&str> {
    target.split_once('?').map(|(_, query)| query)
}

/// The path as it was written. The path of `http://host` is empty and means the root.
fn written_path(target: &str) -> Option<&[u8]> {
    let bytes = target.as_bytes();
    let rest = if bytes.starts_with(b"/") { bytes } else { authority::split_absolute(bytes)?.1 };
    rest.split(|byte| *byte == b'?').next()
}

fn decode_segment(segment: &[u8], buffer: &mut Vec<u8>) -> Result<(), TargetError> {
    let mut rest = segment;
    while let [first, behind @ ..] = rest {
        let mut byte = *first;
        rest = behind;
        if byte == b'%' {
            let [high, low, behind @ ..] = rest else { return Err(TargetError::Escape) };
            let (Some(high), Some(low)) = (hex_value(*high), hex_value(*low)) else {
                return Err(TargetError::Escape);
            };
            byte = high << 4 | low;
            rest = behind;
        }
        match byte {
            b'/' => return Err(TargetError::EscapedSlash),
            byte if byte.is_ascii_control() => return Err(TargetError::ControlByte),
            byte => buffer.push(byte),
        }
    }
    Ok(())
}

fn hex_value(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(target: &str) -> Result<(String, bool), TargetError> {
        let mut buffer = b"left from before".to_vec();
        let path = decode(target, &mut buffer)?;
        Ok((String::from_utf8_lossy(path.joined()).into_owned(), path.ends_with_slash()))
    }

    #[test]
    fn paths_are_decoded_and_normalised() {
        for (target, joined, ends_with_slash) in [
            ("/", "", true),
            ("/a", "a", false),
            ("/a/", "a", true),
            ("//a///b", "a/b", false),
            ("/./a/./b/.", "a/b", true),
            ("/%61", "a", false),
            ("/a%20b%3f?c/../d", "a b?", false),
            ("/%25%32%65", "%2e", false),
            ("/...", "...", false),
            ("/.a/..b/c..", ".a/..b/c..", false),
            ("/a\\b", "a\\b", false),
            ("http://x", "", true),
            ("http://x:80?q", "", true),
            ("HTTP://[::1]/a/b?q", "a/b", false),
        ] {
            assert_eq!(read(target), Ok((joined.into(), ends_with_slash)), "{target}");
        }
        assert_eq!(query("/a?b?c"), Some("b?c"));
        assert_eq!((query("/a?"), query("/a")), (Some(""), None));
    }

    #[test]
    fn what_could_lead_out_of_the_root_is_refused() {
        for (target, error) in [
            ("", TargetError::NoPath),
            ("*", TargetError::NoPath),
            ("a", TargetError::NoPath),
            ("x:443", TargetError::NoPath),
            ("?q", TargetError::NoPath),
            ("http:///a", TargetError::NoPath),
            ("/..", TargetError::Parent),
            ("/a/../b", TargetError::Parent),
            ("/a/%2E%2e/b", TargetError::Parent),
            ("/a/.%2e", TargetError::Parent),
            ("http://x/..", TargetError::Parent),
            ("/a%2fb", TargetError::EscapedSlash),
            ("/..%2F..", TargetError::EscapedSlash),
            ("/a%00.html", TargetError::ControlByte),
            ("/a%0d%0aX:", TargetError::ControlByte),
            ("/a\0", TargetError::ControlByte),
            ("/%7f", TargetError::ControlByte),
            ("/%", TargetError::Escape),
            ("/%4", TargetError::Escape),
            ("/%4/1", TargetError::Escape),
            ("/%g1", TargetError::Escape),
            ("/%+1", TargetError::Escape),
        ] {
            assert_eq!(read(target), Err(error), "{target:?}");
            assert_eq!(error.status(), 400);
        }
    }

    #[test]
    fn names_and_depth_have_a_limit() {
        let name = |bytes: usize| read(&format!("/{}%61", "a".repeat(bytes - 1))).map(|_| ());
        assert_eq!(
            (name(SEGMENT_BYTES_MAX), name(SEGMENT_BYTES_MAX + 1)),
            (Ok(()), Err(TargetError::TooLong))
        );
        let deep = |count: usize| read(&"/a".repeat(count)).map(|_| ());
        assert_eq!(
            (deep(SEGMENT_COUNT_MAX), deep(SEGMENT_COUNT_MAX + 1)),
            (Ok(()), Err(TargetError::TooLong))
        );
        assert_eq!(TargetError::TooLong.status(), 414);
    }

    fn name() -> impl Strategy<Value = Vec<u8>> {
        let byte = (0x20..=0xff_u8).prop_map(|byte| if [b'/', 0x7f].contains(&byte) { b'x' } else { byte });
        prop::collection::vec(byte, 1..20)
    }

    fn escaped(name: &[u8]) -> String {
        name.iter().map(|byte| format!("%{byte:02X}")).collect()
    }

    proptest! {
        #[test]
        fn names_come_back_from_their_escapes(names in prop::collection::vec(name(), 0..6)) {
            prop_assume!(!names.iter().any(|name| [&b"."[..], b".."].contains(&&name[..])));
            let target: String = names.iter().map(|name| format!("/{}", escaped(name))).collect();
            let mut buffer = Vec::new();
            let path = decode(if target.is_empty() { "/" } else { &target }, &mut buffer).expect("a path");
            prop_assert!(path.segments().eq(names.iter().map(Vec::as_slice)));
        }

        #[test]
        fn whatever_is_accepted_stays_below_the_root(target in "/([.%/a?]|%2[eEfF0]|%00|\\.\\.){0,12}") {
            let mut buffer = Vec::new();
            if let Ok(path) = decode(&target, &mut buffer) {
                prop_assert!(!path.joined().starts_with(b"/") && !path.joined().ends_with(b"/"));
                for segment in path.joined().split(|byte| *byte == b'/').filter(|_| !path.joined().is_empty()) {
                    prop_assert!(![&b""[..], b".", b".."].contains(&segment));
                    prop_assert!(!segment.iter().any(u8::is_ascii_control));
                }
            }
        }
    }
}
