//! `Range` with one range of bytes, and `Content-Range` (RFC 9110, 14.1.1, 14.1.2, 14.2 and 14.4).
//!
//! More than one range, another unit and anything malformed are ignored, which 14.2 allows: the answer is then
//! the whole content. Not here: whether `If-Range` holds (see [`conditional`](super::conditional)), and
//! `multipart/byteranges`.
//!
//! ```
//! use weir_proto::http1::range::{ContentRange, Selection, select_value};
//!
//! let Selection::Partial(range) = select_value(b"bytes=500-", 1234) else { panic!("satisfiable") };
//! assert_eq!((range.first(), range.length()), (500, 734));
//! assert_eq!(ContentRange { range: Some(range), content_bytes: 1234 }.to_string(), "bytes 500-1233/1234");
//! assert_eq!(select_value(b"bytes=1234-", 1234), Selection::Unsatisfiable);
//! ```

use std::fmt;

use super::{head::Headers, method::Method};

/// Bytes of a content, in one piece: at least one, and all within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    first: u64,
    last: u64,
}

impl ByteRange {
    /// The position of the first byte.
    pub fn first(self) -> u64 {
        self.first
    }

    /// The position of the last byte, which is included.
    pub fn last(self) -> u64 {
        self.last
    }

    /// Its length in bytes, at least 1.
    pub fn length(self) -> u64 {
        self.last - self.first + 1
    }
}

/// The part of a content that a request selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All of it: 200. Also if a `Range` has to be ignored.
    Whole,
    /// One range: 206 with a [`ContentRange`]. It may be as long as the content.
    Partial(ByteRange),
    /// Nothing within the content: 416 with a [`ContentRange`] without a range.
    Unsatisfiable,
}

/// The part of a content of `content_bytes` bytes that the fields of a request select. Only GET has ranges (14.2);
/// two `Range` fields cancel each other.
pub fn select(method: Method, headers: Headers<'_>, content_bytes: u64) -> Selection {
    if method != Method::Get {
        return Selection::Whole;
    }
    let mut values = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"range"));
    match (values.next(), values.next()) {
        (Some((_, value)), None) => select_value(value, content_bytes),
        _ => Selection::Whole,
    }
}

/// The part of a content of `content_bytes` bytes that one value of `Range` selects.
///
/// Numbers beyond 64 bits are larger than any content, and are treated as the largest number. The last bytes of an
/// empty content are satisfiable by 14.1.2 but cannot be written as a `Content-Range`: they select the whole.
pub fn select_value(value: &[u8], content_bytes: u64) -> Selection {
    let Some((first, last)) = single_range(value) else { return Selection::Whole };
    let ends = match (first, last) {
        (None, None) => return Selection::Whole,
        (Some(first), Some(last)) if first > last => return Selection::Whole,
        (None, Some(0)) => return Selection::Unsatisfiable,
        (None, Some(_)) if content_bytes == 0 => return Selection::Whole,
        (None, Some(suffix)) => (content_bytes.saturating_sub(suffix), content_bytes),
        (Some(first), Some(last)) => (first, content_bytes.min(last.saturating_add(1))),
        (Some(first), None) => (first, content_bytes),
    };
    let (first, end) = ends;
    if first < content_bytes {
        Selection::Partial(ByteRange { first, last: end - 1 })
    } else {
        Selection::Unsatisfiable
    }
}

/// The numbers before and after the `-` of the only range, if it is in bytes and well formed. A list may have empty
/// elements (5.6.1.2).
fn single_range(value: &[u8]) -> Option<(Option<u64>, Option<u64>)> {
    let equals = value.iter().position(|byte| *byte == b'=')?;
    if !value[..equals].eq_ignore_ascii_case(b"bytes") {
        return None;
    }
    let elements = value[equals + 1..].split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let mut ranges = elements.filter(|element| !element.is_empty());
    let (Some(range), None) = (ranges.next(), ranges.next()) else { return None };
    let dash = range.iter().position(|byte| *byte == b'-')?;
    Some((number(&range[..dash])?, number(&range[dash + 1..])?))
}

/// Parses digits as a number, and an empty text as no number.
fn number(digits: &[u8]) -> Option<Option<u64>> {
    if digits.is_empty() {
        return Some(None);
    }
    let value = digits.iter().try_fold(0_u64, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        Some(value.saturating_mul(10).saturating_add(digit))
    });
    value.map(Some)
}

/// The value of `Content-Range`, as its `Display`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// The range that is sent; absent with 416.
    pub range: Option<ByteRange>,
    /// The length of the whole content.
    pub content_bytes: u64,
}

impl fmt::Display for ContentRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.range {
            Some(ByteRange { first, last }) => {
                write!(formatter, "bytes {first}-{last}/{}", self.content_bytes)
            }
            None => write!(formatter, "bytes */{}", self.content_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn partial(first: u64, last: u64) -> Selection {
        Selection::Partial(ByteRange { first, last })
    }

    #[test]
    fn the_examples_of_the_standard_read_as_it_says() {
        for (value, expected) in [
            ("bytes=0-499", partial(0, 499)),
            ("bytes=500-999", partial(500, 999)),
            ("bytes=-500", partial(9500, 9999)),
            ("bytes=9500-", partial(9500, 9999)),
            ("bytes=0-0", partial(0, 0)),
            ("bytes=0-0,-1", Selection::Whole),
            ("bytes=500-600,601-999", Selection::Whole),
        ] {
            assert_eq!(select_value(value.as_bytes(), 10_000), expected, "{value}");
        }
    }

    #[test]
    fn a_range_is_cut_to_the_content_or_lies_behind_it() {
        for (value, content_bytes, expected) in [
            ("bytes=0-99999999999999999999", 10, partial(0, 9)),
            ("bytes=-99999999999999999999", 10, partial(0, 9)),
            ("bytes=9-", 10, partial(9, 9)),
            ("bytes=10-", 10, Selection::Unsatisfiable),
            ("bytes=99999999999999999999-", u64::MAX, Selection::Unsatisfiable),
            ("bytes=99999999999999999999-0", 10, Selection::Whole),
            ("bytes=0-18446744073709551615", u64::MAX, partial(0, u64::MAX - 1)),
            ("bytes=-0", 10, Selection::Unsatisfiable),
            ("bytes=-0", 0, Selection::Unsatisfiable),
            ("bytes=-1", 0, Selection::Whole),
            ("bytes=0-", 0, Selection::Unsatisfiable),
            ("bytes=0-0", 1, partial(0, 0)),
        ] {
            assert_eq!(select_value(value.as_bytes(), content_bytes), expected, "{value} of {content_bytes}");
        }
    }

    #[test]
    fn other_units_and_malformed_ranges_are_ignored() {
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=,",
            "lines=0-1",
            "byte=0-1",
            "bytes =0-1",
            "bytes:0-1",
            "0-1",
            "bytes=1",
            "bytes=2-1",
            "bytes=0--1",
            "bytes=-1-",
            "bytes=0-1-2",
            "bytes=a-b",
            "bytes=+0-1",
            "bytes=0 - 1",
            "bytes=0x0-1",
            "bytes=0-1;",
            "bytes=0-1, 2-3",
            "bytes=*",
        ] {
            assert_eq!(select_value(value.as_bytes(), 10), Selection::Whole, "{value:?}");
        }
        for value in ["BYTES=0-1", "bytes=0-1,", "bytes=,0-1 ,", "bytes= 0-1", "bytes=00-001"] {
            assert_eq!(select_value(value.as_bytes(), 10), partial(0, 1), "{value:?}");
        }
    }

    #[test]
    fn only_get_has_ranges_and_only_one() {
        let once = Headers::of_lines(b"Host: x\r\nRange: bytes=0-1\r\n");
        let twice = Headers::of_lines(b"Range: bytes=0-1\r\nrange: bytes=0-1\r\n");
        assert_eq!(select(Method::Get, once, 10), partial(0, 1));
        assert_eq!(select(Method::Head, once, 10), Selection::Whole);
        assert_eq!(select(Method::Get, twice, 10), Selection::Whole);
        assert_eq!(select(Method::Get, Headers::default(), 10), Selection::Whole);
    }

    #[test]
    fn the_field_for_the_answer_is_written_as_the_standard_shows_it() {
        let whole = ContentRange { range: Some(ByteRange { first: 42, last: 1233 }), content_bytes: 1234 };
        assert_eq!(whole.to_string(), "bytes 42-1233/1234");
        assert_eq!(ContentRange { range: None, content_bytes: 1234 }.to_string(), "bytes */1234");
    }

    proptest! {
        #[test]
        fn a_range_selects_the_places_it_names(
            first in prop::option::of(0..40_u64), last in prop::option::of(0..40_u64), content_bytes in 0..30_u64,
        ) {
            let text = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
            let value = format!("bytes={}-{}", text(first), text(last));
            let named = |place: u64| match (first, last) {
                (Some(first), last) => place >= first && last.is_none_or(|last| place <= last),
                (None, Some(suffix)) => place + suffix >= content_bytes,
                (None, None) => false,
            };
            let expected: Vec<u64> = (0..content_bytes).filter(|place| named(*place)).collect();
            match select_value(value.as_bytes(), content_bytes) {
                Selection::Partial(range) => {
                    prop_assert_eq!((range.first()..=range.last()).collect::<Vec<_>>(), expected);
                }
                Selection::Unsatisfiable => prop_assert!(expected.is_empty()),
                Selection::Whole => {
                    let malformed = first.is_none() && last.is_none()
                        || first.zip(last).is_some_and(|(first, last)| first > last);
                    prop_assert!(malformed || content_bytes == 0);
                }
            }
        }

        #[test]
        fn any_bytes_select_something_within_the_content(
            value in prop::collection::vec(any::<u8>(), 0..40), content_bytes: u64,
        ) {
            let value = [b"bytes=", &value[..]].concat();
            if let Selection::Partial(range) = select_value(&value, content_bytes) {
                prop_assert!(range.first() <= range.last() && range.last() < content_bytes);
            }
        }
    }
}
