//! Logins and the two answers to them.

use std::{fmt, ops::Range};

use super::{
    Name, ProtocolError, header,
    packet::{LOGIN_ACCEPTED, LOGIN_REJECTED, LOGIN_REQUEST},
};
use crate::padded::trimmed;

/// The longest heartbeat timeout that fits into its five digits. Longer ones are sent as this value.
pub const HEARTBEAT_TIMEOUT_MS_MAX: u32 = 99_999;

// Payload of a login request.
const USERNAME: Range<usize> = 0..6;
const PASSWORD: Range<usize> = USERNAME.end..16;
const REQUESTED_SESSION: Range<usize> = PASSWORD.end..26;
const REQUESTED_SEQUENCE: Range<usize> = REQUESTED_SESSION.end..46;
const HEARTBEAT_TIMEOUT: Range<usize> = REQUESTED_SEQUENCE.end..51;

// Payload of a login accepted.
const SESSION: Range<usize> = 0..10;
const NEXT_SEQUENCE: Range<usize> = SESSION.end..30;

const SEQUENCE_DIGITS: usize = 20;
const TIMEOUT_DIGITS: usize = 5;

// The length fields of the specification count the type as well.
const _: () = assert!(1 + REQUESTED_SEQUENCE.end == 47 && 1 + HEARTBEAT_TIMEOUT.end == 52);
const _: () = assert!(REQUESTED_SEQUENCE.end - REQUESTED_SEQUENCE.start == SEQUENCE_DIGITS);
const _: () = assert!(HEARTBEAT_TIMEOUT.end - HEARTBEAT_TIMEOUT.start == TIMEOUT_DIGITS);
const _: () = assert!(1 + NEXT_SEQUENCE.end == 31);

/// A client's first packet. Its password is not shown by `Debug`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LoginRequest {
    /// The user's name; case-insensitive.
    pub username: Name<6>,
    /// In plain text; case-insensitive.
    pub password: Name<10>,
    /// The session to join; blank for the current one.
    pub session: Name<10>,
    /// The number of the first requested message: 1 for all. 0 is for the most recent one, and some servers begin with
    /// the one after it.
    pub sequence: u64,
    /// The server has to close after this silence (version 4.1); absent in 3.00 and 4.00.
    pub heartbeat_timeout_ms: Option<u32>,
}

impl LoginRequest {
    /// Reads the payload of an `L`.
    pub fn parse(payload: &[u8]) -> Result<Self, ProtocolError> {
        if ![REQUESTED_SEQUENCE.end, HEARTBEAT_TIMEOUT.end].contains(&payload.len()) {
            return Err(ProtocolError::LoginLength(1 + payload.len()));
        }
        let heartbeat_timeout_ms = match payload.get(HEARTBEAT_TIMEOUT) {
            Some(field) => Some(u32::try_from(number(field)?).map_err(|_| ProtocolError::BadNumber)?),
            None => None,
        };
        Ok(Self {
            username: name(&payload[USERNAME])?,
            password: name(&payload[PASSWORD])?,
            session: name(&payload[REQUESTED_SESSION])?,
            sequence: number(&payload[REQUESTED_SEQUENCE])?,
            heartbeat_timeout_ms,
        })
    }

    /// Appends the whole frame: 49 bytes, or 54 with a heartbeat timeout.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let payload_bytes =
            if self.heartbeat_timeout_ms.is_some() { HEARTBEAT_TIMEOUT.end } else { REQUESTED_SEQUENCE.end };
        out.extend_from_slice(&header(LOGIN_REQUEST, payload_bytes));
        out.extend_from_slice(self.username.as_bytes());
        out.extend_from_slice(self.password.as_bytes());
        self.session.encode_right_justified(out);
        encode_number::<SEQUENCE_DIGITS>(self.sequence, out);
        if let Some(timeout_ms) = self.heartbeat_timeout_ms {
            encode_number::<TIMEOUT_DIGITS>(timeout_ms.min(HEARTBEAT_TIMEOUT_MS_MAX).into(), out);
        }
    }
}

impl fmt::Debug for LoginRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LoginRequest")
            .field("username", &self.username)
            .field("password", &format_args!("redacted"))
            .field("session", &self.session)
            .field("sequence", &self.sequence)
            .field("heartbeat_timeout_ms", &self.heartbeat_timeout_ms)
            .finish()
    }
}

/// The first packet of a server that lets the client in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginAccepted {
    /// The session that was joined.
    pub session: Name<10>,
    /// The number of the next sequenced message on this connection.
    pub next_sequence: u64,
}

impl LoginAccepted {
    /// Reads the payload of an `A`.
    pub fn parse(payload: &[u8]) -> Result<Self, ProtocolError> {
        if payload.len() != NEXT_SEQUENCE.end {
            return Err(ProtocolError::PayloadLength { kind: LOGIN_ACCEPTED, bytes: payload.len() });
        }
        Ok(Self { session: name(&payload[SESSION])?, next_sequence: number(&payload[NEXT_SEQUENCE])? })
    }

    /// Appends the whole frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&header(LOGIN_ACCEPTED, NEXT_SEQUENCE.end));
        self.session.encode_right_justified(out);
        encode_number::<SEQUENCE_DIGITS>(self.next_sequence, out);
    }
}

/// The only packet of a server that does not let the client in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoginReject {
    /// `A`: unknown username or wrong password.
    NotAuthorised,
    /// `S`: no such session, a sequence beyond its end, or a session already in use.
    SessionNotAvailable,
}

impl LoginReject {
    /// Reads the payload of a `J`.
    pub fn parse(payload: &[u8]) -> Result<Self, ProtocolError> {
        match payload {
            b"A" => Ok(Self::NotAuthorised),
            b"S" => Ok(Self::SessionNotAvailable),
            [reason] => Err(ProtocolError::RejectReason(*reason)),
            _ => Err(ProtocolError::PayloadLength { kind: LOGIN_REJECTED, bytes: payload.len() }),
        }
    }

    /// Its letter on the wire.
    pub fn code(self) -> u8 {
        match self {
            Self::NotAuthorised => b'A',
            Self::SessionNotAvailable => b'S',
        }
    }

    /// Appends the whole frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&header(LOGIN_REJECTED, 1));
        out.push(self.code());
    }
}

impl fmt::Display for LoginReject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::NotAuthorised => "not authorised",
            Self::SessionNotAvailable => "session not available",
        })
    }
}

fn name<const N: usize>(field: &[u8]) -> Result<Name<N>, ProtocolError> {
    Name::from_padded(field).map_err(|_| ProtocolError::BadText)
}

/// Decimal digits with padding on either side.
fn number(field: &[u8]) -> Result<u64, ProtocolError> {
    let digits = trimmed(field);
    if digits.is_empty() {
        return Err(ProtocolError::BadNumber);
    }
    digits.iter().try_fold(0_u64, |value, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10).ok_or(ProtocolError::BadNumber)?;
        value
            .checked_mul(10)
            .and_then(|value| value.checked_add(digit.into()))
            .ok_or(ProtocolError::BadNumber)
    })
}

/// Appends a number that has at most `N` digits, spaces in front.
fn encode_number<const N: usize>(value: u64, out: &mut Vec<u8>) {
    let mut field = [b' '; N];
    let mut rest = value;
    for place in field.iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&field);
}
