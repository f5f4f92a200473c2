//! Every error in a peer's bytes.

use std::ascii::{EscapeDefault, escape_default};

use thiserror::Error;

/// Why a connection has to end. No answer is sent: a peer that breaks the framing cannot be answered in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum ProtocolError {
    /// A frame of length 0 has not even a type.
    #[error("a frame of length 0")]
    EmptyFrame,
    /// The header declares more payload than allowed. Detected on the header, before any of it is stored.
    #[error("a payload of {declared} bytes is declared, at most {max} are allowed")]
    TooLong {
        /// Bytes of payload the header declares.
        declared: usize,
        /// Bytes of payload allowed.
        max: usize,
    },
    /// A type that does not exist in the protocol.
    #[error("unknown packet type '{}'", letter(.0))]
    UnknownType(u8),
    /// A type that only the other side sends.
    #[error("packet type '{}' comes from the wrong side", letter(.0))]
    WrongDirection(u8),
    /// Something before the login (at a server) or before the answer to it (at a client).
    #[error("packet type '{}' before the login", letter(.0))]
    BeforeLogin(u8),
    /// A login, or an answer to one, after the first.
    #[error("a second login")]
    SecondLogin,
    /// A login request whose length field is neither 47 nor 52.
    #[error("a login request of length {0}; 47 and 52 are known")]
    LoginLength(usize),
    /// A number that is not decimal digits, or exceeds 64 bits.
    #[error("a malformed number")]
    BadNumber,
    /// A name with bytes outside printable ASCII.
    #[error("a name that is not printable ASCII")]
    BadText,
    /// A payload in a packet that has none.
    #[error("packet type '{}' with a payload", letter(.0))]
    PayloadUnexpected(u8),
    /// An answer to a login whose payload has the wrong length.
    #[error("packet type '{}' with {bytes} bytes of payload", letter(.kind))]
    PayloadLength {
        /// Type of the packet.
        kind: u8,
        /// Bytes of its payload.
        bytes: usize,
    },
    /// An unknown reason for a refused login.
    #[error("unknown reason '{}' of a refused login", letter(.0))]
    RejectReason(u8),
    /// A sequenced message beyond the last sequence number.
    #[error("no sequence number is left")]
    SequenceExhausted,
}

impl ProtocolError {
    /// Its name in counters.
    pub fn kind(self) -> &'static str {
        match self {
            Self::EmptyFrame => "len0",
            Self::TooLong { .. } => "too_long",
            Self::UnknownType(_) => "unknown_type",
            Self::WrongDirection(_) => "wrong_direction",
            Self::BeforeLogin(_) => "before_login",
            Self::SecondLogin => "second_login",
            Self::LoginLength(_) => "login_length",
            Self::BadNumber => "bad_number",
            Self::BadText => "bad_text",
            Self::PayloadUnexpected(_) => "payload_unexpected",
            Self::PayloadLength { .. } => "payload_length",
            Self::RejectReason(_) => "reject_reason",
            Self::SequenceExhausted => "sequence_exhausted",
        }
    }
}

fn letter(kind: &u8) -> EscapeDefault {
    escape_default(*kind)
}
