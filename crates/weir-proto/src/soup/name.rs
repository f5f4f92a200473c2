//! Names of fixed length: usernames, passwords and sessions.

use std::{fmt, str::FromStr};

use crate::padded::{TextError, left_justified, trimmed};

/// A text of at most `N` printable ASCII characters without spaces or NULs around it.
///
/// Equality and order are exact; usernames and passwords are compared with [`eq_ignore_case`](Self::eq_ignore_case)
/// or after [`folded`](Self::folded), because the protocol treats them as case-insensitive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name<const N: usize>([u8; N]);

impl<const N: usize> Name<N> {
    /// Only padding. As a requested session it means the current one.
    pub const BLANK: Self = Self([b' '; N]);

    /// Parses a field from a peer, justified either way.
    pub fn from_padded(field: &[u8]) -> Result<Self, TextError> {
        left_justified(trimmed(field)).map(Self)
    }

    /// Without its padding.
    pub fn as_str(&self) -> &str {
        // The constructors guarantee ASCII.
        str::from_utf8(trimmed(&self.0)).unwrap_or_default()
    }

    /// With its padding, text first.
    pub fn as_bytes(&self) -> &[u8; N] {
        &self.0
    }

    /// Whether it is only padding.
    pub fn is_blank(&self) -> bool {
        *self == Self::BLANK
    }

    /// Whether both are equal, ignoring case.
    pub fn eq_ignore_case(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }

    /// In capital letters: equal for all names that differ only in case.
    pub fn folded(&self) -> Self {
        Self(self.0.map(|byte| byte.to_ascii_uppercase()))
    }

    /// Appends the field with its padding in front.
    pub(super) fn encode_right_justified(&self, out: &mut Vec<u8>) {
        let text = self.as_str().as_bytes();
        out.resize(out.len() + N - text.len(), b' ');
        out.extend_from_slice(text);
    }
}

impl<const N: usize> Default for Name<N> {
    fn default() -> Self {
        Self::BLANK
    }
}

impl<const N: usize> FromStr for Name<N> {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        Self::from_padded(text.as_bytes())
    }
}

impl<const N: usize> fmt::Display for Name<N> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl<const N: usize> fmt::Debug for Name<N> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}
