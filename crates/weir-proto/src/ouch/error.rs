//! Errors in the layout of a message.

use thiserror::Error;

/// Why bytes are not exactly one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error("{kind}: type {message_type:#04x}, {bytes} bytes")]
pub struct DecodeError {
    /// The kind of error.
    pub kind: DecodeErrorKind,
    /// The first byte; 0 for an empty message.
    pub message_type: u8,
    /// Length of the message in bytes.
    pub bytes: usize,
}

/// The kinds of [`DecodeError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum DecodeErrorKind {
    /// No bytes.
    #[error("an empty message")]
    Empty,
    /// A type that does not exist in this direction.
    #[error("an unknown message type")]
    UnknownType,
    /// A type of the specification that is not supported: a mass cancel (`C`), or order entry disabled or enabled
    /// (`D`, `E`). It has the number of the request behind the type, as an order does.
    #[error("a message type that is not supported")]
    Unsupported,
    /// Shorter or longer than its type requires.
    #[error("a message of the wrong length")]
    Length,
    /// An appendage that does not fill the rest of the message, or whose tags do not fill it.
    #[error("a malformed appendage")]
    Appendage,
}

impl DecodeError {
    /// Its name in counters.
    pub fn label(self) -> &'static str {
        match self.kind {
            DecodeErrorKind::Empty => "ouch_empty",
            DecodeErrorKind::UnknownType => "ouch_unknown_type",
            DecodeErrorKind::Unsupported => "ouch_unsupported",
            DecodeErrorKind::Length => "ouch_length",
            DecodeErrorKind::Appendage => "ouch_appendage",
        }
    }
}

impl DecodeErrorKind {
    /// This error for these bytes.
    pub(super) fn of(self, message: &[u8]) -> DecodeError {
        DecodeError {
            kind: self,
            message_type: message.first().copied().unwrap_or_default(),
            bytes: message.len(),
        }
    }
}
