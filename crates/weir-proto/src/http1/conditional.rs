//! Preconditions (RFC 9110, 13) and the validators they are compared with (8.8): whether the client's copy is still
//! current.
//!
//! Evaluates all five fields, in the order of 13.2.2, for a target that exists and whose answer would otherwise be
//! 2xx. Malformed values never match; malformed dates are ignored, as 13.1.3 requires.
//!
//! ```
//! use weir_proto::http1::{Headers, Method, conditional::{Evaluation, FileTag, Validators, evaluate}};
//!
//! let tag = FileTag::new(1234, 784_111_777, 0);
//! assert_eq!(tag.as_bytes(), b"\"2ebc98a1-0-4d2\"");
//! let validators = Validators { tag: Some(tag.tag()), modified_seconds: Some(784_111_777) };
//! let now_seconds = 1_700_000_000;
//! assert_eq!(evaluate(Method::Get, Headers::default(), &validators, now_seconds), Evaluation::Proceed);
//! ```

use std::fmt;

use super::{content_coding::Coding, date, head::Headers, method::Method};

/// An entity tag (8.8.3).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct EntityTag<'a> {
    weak: bool,
    opaque: &'a [u8],
}

impl<'a> EntityTag<'a> {
    /// Parses a text that is exactly one tag, including its quotes.
    pub fn parse(text: &'a [u8]) -> Option<Self> {
        Self::split(text).and_then(|(tag, rest)| rest.is_empty().then_some(tag))
    }

    /// A tag at the start of the text, and the rest of the text.
    fn split(text: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (weak, quoted) = match text.strip_prefix(b"W/") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let inside = quoted.strip_prefix(b"\"")?;
        let end = inside.iter().position(|byte| *byte == b'"')?;
        let opaque = &inside[..end];
        let fits = opaque.iter().all(|byte| *byte > b' ' && *byte != 0x7f);
        fits.then_some((Self { weak, opaque }, &inside[end + 1..]))
    }

    /// Whether the tag is weak: it identifies equivalent content rather than identical bytes.
    pub fn is_weak(self) -> bool {
        self.weak
    }

    /// The text between the quotes.
    pub fn opaque(self) -> &'a [u8] {
        self.opaque
    }

    /// Strong comparison: byte for byte the same content (8.8.3.2).
    pub fn matches_strongly(self, other: Self) -> bool {
        !self.weak && self == other
    }

    /// Weak comparison: equivalent content (8.8.3.2).
    pub fn matches_weakly(self, other: Self) -> bool {
        self.opaque == other.opaque
    }
}

impl fmt::Debug for EntityTag<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}\"{}\"", if self.weak { "W/" } else { "" }, self.opaque.escape_ascii())
    }
}

const FILE_TAG_BYTES_MAX: usize = "\"0123456789abcdef-01234567-0123456789abcdef-zstd\"".len();

/// The strong tag of a file: seconds and nanoseconds of its last change and its length, in hexadecimal.
///
/// It is only as strong as the file system's clock is fine: two changes within one tick of that clock that keep the
/// length get the same tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileTag {
    text: [u8; FILE_TAG_BYTES_MAX],
    start: usize,
}

impl FileTag {
    /// The tag of a file with this length and time of last change. Times before 1970 count as 1970.
    pub fn new(file_bytes: u64, modified_seconds: u64, modified_nanoseconds: u32) -> Self {
        Self::encoded(None, file_bytes, modified_seconds, modified_nanoseconds)
    }

    /// The tag of a file whose content is in a coding: it differs from the tags of the file's other forms, even with
    /// equal length and time.
    pub fn encoded(
        coding: Option<Coding>,
        file_bytes: u64,
        modified_seconds: u64,
        modified_nanoseconds: u32,
    ) -> Self {
        let mut tag = Self { text: [b'"'; FILE_TAG_BYTES_MAX], start: FILE_TAG_BYTES_MAX - 1 };
        if let Some(coding) = coding {
            coding.name().bytes().rev().for_each(|byte| tag.prepend(byte));
            tag.prepend(b'-');
        }
        tag.prepend_hex(file_bytes);
        tag.prepend(b'-');
        tag.prepend_hex(modified_nanoseconds.into());
        tag.prepend(b'-');
        tag.prepend_hex(modified_seconds);
        tag.prepend(b'"');
        tag
    }

    /// The value of `ETag`.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text[self.start..]
    }

    /// The tag to compare with.
    pub fn tag(&self) -> EntityTag<'_> {
        EntityTag { weak: false, opaque: &self.text[self.start + 1..FILE_TAG_BYTES_MAX - 1] }
    }

    fn prepend_hex(&mut self, mut number: u64) {
        loop {
            self.prepend(b"0123456789abcdef"[(number % 16) as usize]);
            number /= 16;
            if number == 0 {
                return;
            }
        }
    }

    fn prepend(&mut self, byte: u8) {
        self.start -= 1;
        self.text[self.start] = byte;
    }
}

/// The validators of the content that would be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validators<'a> {
    /// Its `ETag`.
    pub tag: Option<EntityTag<'a>>,
    /// Its `Last-Modified`, in seconds since 1970.
    pub modified_seconds: Option<u64>,
}

/// The result of a request's preconditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evaluation {
    /// They hold, or there are none: answer as usual.
    Proceed,
    /// The client already has the content: 304 with the same validators and without content.
    NotModified,
    /// The client expected another content: 412.
    PreconditionFailed,
}

/// Evaluates the preconditions in the order of 13.2.2. `If-Range` is for [`range_applies`].
///
/// `now_seconds` determines the century of dates with two-digit years.
pub fn evaluate(
    method: Method,
    headers: Headers<'_>,
    validators: &Validators<'_>,
    now_seconds: u64,
) -> Evaluation {
    let fields = Fields::gather(headers, validators, now_seconds);
    let modified = validators.modified_seconds;
    let reads = matches!(method, Method::Get | Method::Head);

    let still_meant = fields.match_found.or_else(|| Some(modified? <= fields.unmodified_since.only()?));
    if still_meant == Some(false) {
        return Evaluation::PreconditionFailed;
    }
    let already_there = fields.none_match_found.or_else(|| {
        let since = fields.modified_since.only().filter(|_| reads)?;
        Some(modified? <= since)
    });
    match already_there {
        Some(true) if reads => Evaluation::NotModified,
        Some(true) => Evaluation::PreconditionFailed,
        _ => Evaluation::Proceed,
    }
}

/// Whether a `Range` applies (13.1.5): always without `If-Range`; otherwise only if the client's validator is strong
/// and equal. A date is strong if a second has passed since (8.8.2.2).
pub fn range_applies(headers: Headers<'_>, validators: &Validators<'_>, now_seconds: u64) -> bool {
    let mut values = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"if-range"));
    let (value, other) = (values.next(), values.next());
    let Some((_, value)) = value else { return true };
    if other.is_some() {
        return false;
    }
    match EntityTag::parse(value) {
        Some(tag) => validators.tag.is_some_and(|own| own.matches_strongly(tag)),
        None => validators.modified_seconds.is_some_and(|modified| {
            modified < now_seconds && date::parse(value, now_seconds) == Some(modified)
        }),
    }
}

/// A field that contains one date. A repeated or malformed field has no effect.
#[derive(Default)]
enum OnlyDate {
    #[default]
    Absent,
    Is(u64),
    Unusable,
}

impl OnlyDate {
    fn add(&mut self, value: &[u8], now_seconds: u64) {
        *self = match (&*self, date::parse(value, now_seconds)) {
            (Self::Absent, Some(seconds)) => Self::Is(seconds),
            _ => Self::Unusable,
        };
    }

    fn only(&self) -> Option<u64> {
        match self {
            Self::Is(seconds) => Some(*seconds),
            Self::Absent | Self::Unusable => None,
        }
    }
}

/// The result of one pass over the header fields.
#[derive(Default)]
struct Fields {
    /// Whether `If-Match` names the content, if the field exists.
    match_found: Option<bool>,
    /// Whether `If-None-Match` names the content, if the field exists.
    none_match_found: Option<bool>,
    modified_since: OnlyDate,
    unmodified_since: OnlyDate,
}

impl Fields {
    fn gather(headers: Headers<'_>, validators: &Validators<'_>, now_seconds: u64) -> Self {
        let mut fields = Self::default();
        let add =
            |found: &mut Option<bool>, value: &[u8], alike: fn(EntityTag<'_>, EntityTag<'_>) -> bool| {
                let named = names_tag(value, |tag| validators.tag.is_some_and(|own| alike(own, tag)));
                *found = Some(found.unwrap_or(false) || named);
            };
        for (name, value) in headers.iter() {
            let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
            match name.len() {
                8 if is("if-match") => {
                    add(&mut fields.match_found, value, |own, tag| own.matches_strongly(tag))
                }
                13 if is("if-none-match") => {
                    add(&mut fields.none_match_found, value, |own, tag| own.matches_weakly(tag));
                }
                17 if is("if-modified-since") => fields.modified_since.add(value, now_seconds),
                19 if is("if-unmodified-since") => fields.unmodified_since.add(value, now_seconds),
                _ => {}
            }
        }
        fields
    }
}

/// Whether a value is `*` or a list with a tag that matches. Commas may be part of a tag, so tags are parsed one
/// after the other, up to the first that is malformed.
fn names_tag(value: &[u8], matches: impl Fn(EntityTag<'_>) -> bool) -> bool {
    if value == b"*" {
        return true;
    }
    let mut rest = value;
    loop {
        let between = rest.iter().position(|byte| !b" \t,".contains(byte)).unwrap_or(rest.len());
        let Some((tag, behind)) = EntityTag::split(&rest[between..]) else { return false };
        // Tags without a separator are not a list.
        if !matches!(behind, [] | [b' ' | b'\t' | b',', ..]) {
            return false;
        }
        if matches(tag) {
            return true;
        }
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: u64 = 1_700_000_000;
    const MODIFIED: u64 = 784_111_777;
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const SAME: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

    fn validators(tag: &'static str) -> Validators<'static> {
        Validators { tag: EntityTag::parse(tag.as_bytes()), modified_seconds: Some(MODIFIED) }
    }

    fn evaluated(method: Method, fields: &str, tag: &'static str) -> Evaluation {
        evaluate(method, Headers::of_lines(fields.as_bytes()), &validators(tag), NOW)
    }

    #[test]
    fn tags_are_read_and_compared_as_the_standard_shows() {
        let tag = |text: &'static str| EntityTag::parse(text.as_bytes()).expect("a tag");
        // The table of 8.8.3.2.
        for (one, other, strongly, weakly) in [
            ("W/\"1\"", "W/\"1\"", false, true),
            ("W/\"1\"", "W/\"2\"", false, false),
            ("W/\"1\"", "\"1\"", false, true),
            ("\"1\"", "\"1\"", true, true),
        ] {
            let (one, other) = (tag(one), tag(other));
            assert_eq!(
                (one.matches_strongly(other), one.matches_weakly(other)),
                (strongly, weakly),
                "{one:?}"
            );
            assert_eq!(
                (other.matches_strongly(one), other.matches_weakly(one)),
                (strongly, weakly),
                "{one:?}"
            );
        }
        assert_eq!((tag("\"\"").opaque(), tag("W/\"a,b\"").opaque()), (&b""[..], &b"a,b"[..]));
        assert!(tag("W/\"\u{e9}\"").is_weak());
        for text in
            ["", "a", "\"", "\"a", "a\"", "w/\"a\"", "W/ \"a\"", "W/a", "\"a b\"", "\"a\" ", "\"a\"\"", "*"]
        {
            assert_eq!(EntityTag::parse(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn a_file_has_a_tag_that_changes_with_it() {
        let tag = FileTag::new(u64::MAX, u64::MAX, u32::MAX);
        assert_eq!(tag.as_bytes(), b"\"ffffffffffffffff-ffffffff-ffffffffffffffff\"");
        assert_eq!(FileTag::new(0, 0, 0).as_bytes(), b"\"0-0-0\"");
        for tag in [tag, FileTag::new(0, 0, 0), FileTag::new(10, 20, 30)] {
            assert_eq!(EntityTag::parse(tag.as_bytes()), Some(tag.tag()));
        }
        assert!(!FileTag::new(1, 2, 3).tag().matches_weakly(FileTag::new(1, 2, 4).tag()));
        let longest = FileTag::encoded(Some(Coding::Zstandard), u64::MAX, u64::MAX, u32::MAX);
        assert_eq!(longest.as_bytes(), b"\"ffffffffffffffff-ffffffff-ffffffffffffffff-zstd\"");
        assert_eq!(FileTag::encoded(Some(Coding::Brotli), 1, 2, 3).as_bytes(), b"\"2-3-1-br\"");
    }

    #[test]
    fn if_none_match_spares_the_content_of_what_is_known() {
        let with = |value: &str| evaluated(Method::Get, &format!("If-None-Match: {value}\r\n"), "\"a,b\"");
        for value in
            ["\"a,b\"", "W/\"a,b\"", "*", "\"x\", \"a,b\"", ",,\"x\" ,\t\"a,b\",", "\"a,b\" nonsense"]
        {
            assert_eq!(with(value), Evaluation::NotModified, "{value}");
        }
        for value in
            ["", "\"a\"", "a,b", "\"x\"\"a,b\"", "x, \"a,b\"", "\"a,b", "*, \"x\"", "\"a,b\"nonsense"]
        {
            assert_eq!(with(value), Evaluation::Proceed, "{value}");
        }
        let twice = "If-None-Match: \"x\"\r\nif-none-match: \"a\"\r\n";
        assert_eq!(evaluated(Method::Head, twice, "\"a\""), Evaluation::NotModified);
        assert_eq!(evaluated(Method::Put, twice, "\"a\""), Evaluation::PreconditionFailed);
        assert_eq!(evaluated(Method::Put, "If-None-Match: *\r\n", "none"), Evaluation::PreconditionFailed);
        assert_eq!(evaluated(Method::Put, twice, "none"), Evaluation::Proceed);
    }

    #[test]
    fn if_modified_since_counts_for_reading_and_without_a_tag_only() {
        let with = |date: &str| evaluated(Method::Get, &format!("If-Modified-Since: {date}\r\n"), "\"a\"");
        assert_eq!(
            [BEFORE, SAME, AFTER].map(with),
            [Evaluation::Proceed, Evaluation::NotModified, Evaluation::NotModified]
        );
        assert_eq!(with("Sunday, 06-Nov-94 08:49:37 GMT"), Evaluation::NotModified);
        assert_eq!(with("yesterday"), Evaluation::Proceed);
        let same = format!("If-Modified-Since: {SAME}\r\n");
        assert_eq!(evaluated(Method::Post, &same, "\"a\""), Evaluation::Proceed);
        assert_eq!(evaluated(Method::Get, &same.repeat(2), "\"a\""), Evaluation::Proceed);
        let other_tag = format!("{same}If-None-Match: \"b\"\r\n");
        assert_eq!(evaluated(Method::Get, &other_tag, "\"a\""), Evaluation::Proceed);
        let undated = Validators { tag: None, modified_seconds: None };
        let headers = Headers::of_lines(same.as_bytes());
        assert_eq!(evaluate(Method::Get, headers, &undated, NOW), Evaluation::Proceed);
    }

    #[test]
    fn if_match_and_if_unmodified_since_come_first() {
        let with = |fields: &str| evaluated(Method::Get, fields, "\"a\"");
        assert_eq!(with("If-Match: \"a\"\r\n"), Evaluation::Proceed);
        assert_eq!(with("If-Match: *\r\n"), Evaluation::Proceed);
        assert_eq!(with("If-Match: W/\"a\"\r\n"), Evaluation::PreconditionFailed);
        assert_eq!(with("If-Match: \"b\"\r\nIf-None-Match: \"a\"\r\n"), Evaluation::PreconditionFailed);
        assert_eq!(with("If-Match: \"a\"\r\nIf-None-Match: \"a\"\r\n"), Evaluation::NotModified);
        let dated = |date: &str| with(&format!("If-Unmodified-Since: {date}\r\n"));
        assert_eq!(
            [BEFORE, SAME, AFTER].map(dated),
            [Evaluation::PreconditionFailed, Evaluation::Proceed, Evaluation::Proceed]
        );
        let both = format!("If-Match: \"a\"\r\nIf-Unmodified-Since: {BEFORE}\r\n");
        assert_eq!(with(&both), Evaluation::Proceed);
    }

    #[test]
    fn a_range_applies_to_the_very_same_content_only() {
        let applies =
            |fields: &str, tag| range_applies(Headers::of_lines(fields.as_bytes()), &validators(tag), NOW);
        assert!(applies("", "\"a\""));
        assert!(applies("If-Range: \"a\"\r\n", "\"a\""));
        for (value, tag) in [("W/\"a\"", "\"a\""), ("W/\"a\"", "W/\"a\""), ("\"b\"", "\"a\""), ("*", "\"a\"")]
        {
            assert!(!applies(&format!("If-Range: {value}\r\n"), tag), "{value} {tag}");
        }
        assert_eq!(
            [BEFORE, SAME, AFTER].map(|date| applies(&format!("If-Range: {date}\r\n"), "\"a\"")),
            [false, true, false]
        );
        assert!(!applies("If-Range: \"a\"\r\nIf-Range: \"a\"\r\n", "\"a\""));
        let just_now = format!("If-Range: {SAME}\r\n");
        let headers = Headers::of_lines(just_now.as_bytes());
        assert!(!range_applies(headers, &validators("\"a\""), MODIFIED));
    }

    proptest! {
        #[test]
        fn a_tag_in_a_list_is_found_whatever_else_is_there(
            before in prop::collection::vec("(W/)?\"[!#-~]{0,5}\"", 0..4),
            tag in "\"[!#-~]{0,5}\"",
            after in prop::collection::vec("(W/)?\"[!#-~]{0,5}\"", 0..4),
        ) {
            let list = [before, vec![tag.clone()], after].concat().join(", ");
            let field = format!("If-None-Match: {list}\r\n");
            let validators = Validators { tag: EntityTag::parse(tag.as_bytes()), modified_seconds: None };
            let found = evaluate(Method::Get, Headers::of_lines(field.as_bytes()), &validators, NOW);
            prop_assert_eq!(found, Evaluation::NotModified);
        }

        #[test]
        fn any_bytes_are_evaluated(value in prop::collection::vec(any::<u8>(), 0..60), own in "\"[a-z]{0,2}\"") {
            let own = EntityTag::parse(own.as_bytes()).expect("a tag");
            let _ = names_tag(&value, |tag| tag.matches_weakly(own));
            if let Some(tag) = EntityTag::parse(&value) {
                let written = [if tag.is_weak() { &b"W/\""[..] } else { b"\"" }, tag.opaque(), b"\""].concat();
                prop_assert_eq!(written, value);
            }
        }
    }
}
