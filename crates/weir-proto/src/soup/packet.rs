//! The meaning of a frame for its receiver.

use super::{Frame, LoginAccepted, LoginReject, LoginRequest, ProtocolError};

/// Client: login request.
pub const LOGIN_REQUEST: u8 = b'L';
/// Server: login accepted.
pub const LOGIN_ACCEPTED: u8 = b'A';
/// Server: login rejected.
pub const LOGIN_REJECTED: u8 = b'J';
/// Server: one message of the sequenced stream.
pub const SEQUENCED: u8 = b'S';
/// Both: one message outside the sequenced stream.
pub const UNSEQUENCED: u8 = b'U';
/// Server: nothing was sent for a second.
pub const SERVER_HEARTBEAT: u8 = b'H';
/// Client: nothing was sent for a second.
pub const CLIENT_HEARTBEAT: u8 = b'R';
/// Server: the session is over and cannot be joined again.
pub const END_OF_SESSION: u8 = b'Z';
/// Client: a request to close the connection.
pub const LOGOUT: u8 = b'O';
/// Both: text for people.
pub const DEBUG: u8 = b'+';

/// A packet that a server receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientPacket<'a> {
    /// `L`
    Login(LoginRequest),
    /// `U`: one message.
    Unsequenced(&'a [u8]),
    /// `R`
    Heartbeat,
    /// `O`
    Logout,
    /// `+`: ignore it.
    Debug(&'a [u8]),
}

impl<'a> ClientPacket<'a> {
    /// The meaning of a frame from a client.
    pub fn parse(frame: Frame<'a>) -> Result<Self, ProtocolError> {
        match frame.kind {
            UNSEQUENCED => Ok(Self::Unsequenced(frame.payload)),
            CLIENT_HEARTBEAT => without_payload(frame, Self::Heartbeat),
            LOGIN_REQUEST => LoginRequest::parse(frame.payload).map(Self::Login),
            LOGOUT => without_payload(frame, Self::Logout),
            DEBUG => Ok(Self::Debug(frame.payload)),
            LOGIN_ACCEPTED | LOGIN_REJECTED | SEQUENCED | SERVER_HEARTBEAT | END_OF_SESSION => {
                Err(ProtocolError::WrongDirection(frame.kind))
            }
            unknown => Err(ProtocolError::UnknownType(unknown)),
        }
    }

    /// Its type on the wire.
    pub fn kind(&self) -> u8 {
        match self {
            Self::Login(_) => LOGIN_REQUEST,
            Self::Unsequenced(_) => UNSEQUENCED,
            Self::Heartbeat => CLIENT_HEARTBEAT,
            Self::Logout => LOGOUT,
            Self::Debug(_) => DEBUG,
        }
    }
}

/// A packet that a client receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerPacket<'a> {
    /// `A`
    LoginAccepted(LoginAccepted),
    /// `J`
    LoginRejected(LoginReject),
    /// `S`: the next message of the session.
    Sequenced(&'a [u8]),
    /// `U`: a message that is not counted and not replayed.
    Unsequenced(&'a [u8]),
    /// `H`
    Heartbeat,
    /// `Z`
    EndOfSession,
    /// `+`: ignore it.
    Debug(&'a [u8]),
}

impl<'a> ServerPacket<'a> {
    /// The meaning of a frame from a server.
    pub fn parse(frame: Frame<'a>) -> Result<Self, ProtocolError> {
        match frame.kind {
            SEQUENCED => Ok(Self::Sequenced(frame.payload)),
            UNSEQUENCED => Ok(Self::Unsequenced(frame.payload)),
            SERVER_HEARTBEAT => without_payload(frame, Self::Heartbeat),
            LOGIN_ACCEPTED => LoginAccepted::parse(frame.payload).map(Self::LoginAccepted),
            LOGIN_REJECTED => LoginReject::parse(frame.payload).map(Self::LoginRejected),
            END_OF_SESSION => without_payload(frame, Self::EndOfSession),
            DEBUG => Ok(Self::Debug(frame.payload)),
            LOGIN_REQUEST | CLIENT_HEARTBEAT | LOGOUT => Err(ProtocolError::WrongDirection(frame.kind)),
            unknown => Err(ProtocolError::UnknownType(unknown)),
        }
    }

    /// Its type on the wire.
    pub fn kind(&self) -> u8 {
        match self {
            Self::LoginAccepted(_) => LOGIN_ACCEPTED,
            Self::LoginRejected(_) => LOGIN_REJECTED,
            Self::Sequenced(_) => SEQUENCED,
            Self::Unsequenced(_) => UNSEQUENCED,
            Self::Heartbeat => SERVER_HEARTBEAT,
            Self::EndOfSession => END_OF_SESSION,
            Self::Debug(_) => DEBUG,
        }
    }
}

fn without_payload<T>(frame: Frame<'_>, packet: T) -> Result<T, ProtocolError> {
    if frame.payload.is_empty() { Ok(packet) } else { Err(ProtocolError::PayloadUnexpected(frame.kind)) }
}
