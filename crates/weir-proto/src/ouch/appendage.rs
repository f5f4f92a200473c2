//! Tags behind a message: each a length, a tag and a value.

use std::fmt;

use super::{DecodeError, DecodeErrorKind};

/// The most bytes that the length field in front of them can declare.
const APPENDAGE_BYTES_MAX: usize = u16::MAX as usize;

/// The tags behind a message, checked as a whole: iterating gives `(tag, value)` and cannot fail.
///
/// Each is `length: u8` (counting the tag and the value, so never 0), `tag: u8`, value. This module does not
/// interpret tags.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Appendage<'a> {
    bytes: &'a [u8],
}

impl<'a> Appendage<'a> {
    /// No tags.
    pub const EMPTY: Self = Self { bytes: &[] };

    /// Parses bytes that consist only of tags.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut tags = Tags { rest: bytes };
        while tags.next().is_some() {}
        if tags.rest.is_empty() && bytes.len() <= APPENDAGE_BYTES_MAX {
            Ok(Self { bytes })
        } else {
            Err(DecodeErrorKind::Appendage.of(bytes))
        }
    }

    /// All tags as they are on the wire, without the length in front of them.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether there is no tag.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The tags in order.
    pub fn iter(&self) -> Tags<'a> {
        Tags { rest: self.bytes }
    }

    /// The first value of a tag.
    pub fn value(&self, tag: u8) -> Option<&'a [u8]> {
        self.iter().find(|(found, _)| *found == tag).map(|(_, value)| value)
    }

    /// Its length, for the field in front of it.
    pub(super) fn declared(&self) -> u16 {
        u16::try_from(self.bytes.len()).expect("checked when it was made")
    }
}

impl fmt::Debug for Appendage<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self).finish()
    }
}

impl<'a> IntoIterator for Appendage<'a> {
    type Item = (u8, &'a [u8]);
    type IntoIter = Tags<'a>;

    fn into_iter(self) -> Tags<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &Appendage<'a> {
    type Item = (u8, &'a [u8]);
    type IntoIter = Tags<'a>;

    fn into_iter(self) -> Tags<'a> {
        self.iter()
    }
}

/// The tags of an [`Appendage`], in order.
#[derive(Clone, Debug)]
pub struct Tags<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Tags<'a> {
    type Item = (u8, &'a [u8]);

    /// Stops at bytes that are not a tag.
    fn next(&mut self) -> Option<Self::Item> {
        let (length, rest) = self.rest.split_first()?;
        let (entry, rest) = rest.split_at_checked(usize::from(*length))?;
        let (tag, value) = entry.split_first()?;
        self.rest = rest;
        Some((*tag, value))
    }
}

/// Appends one tag; [`Appendage::parse`] accepts any number of them.
///
/// # Panics
/// When the value has more than 254 bytes.
pub fn encode_tag(tag: u8, value: &[u8], out: &mut Vec<u8>) {
    let length = u8::try_from(1 + value.len()).expect("a value of at most 254 bytes");
    out.extend_from_slice(&[length, tag]);
    out.extend_from_slice(value);
}
