//! SoupBinTCP without I/O: frames, packets, logins, and the rules of a session with time as an argument.
//!
//! Source: Nasdaq, "SoupBinTCP Version 4.10"; the login without a heartbeat timeout is that of versions 3.00 and
//! 4.00. A frame is `length: u16` (big-endian, counting the type and the payload), `type: u8`, `payload`.
//!
//! | type | from | packet | payload |
//! | --- | --- | --- | --- |
//! | `L` | client | login request | username 6, password 10, session 10, sequence 20, and in 4.1 timeout 5 |
//! | `U` | both | unsequenced data | one message |
//! | `R` | client | heartbeat | none |
//! | `O` | client | logout request | none |
//! | `A` | server | login accepted | session 10, next sequence 20 |
//! | `J` | server | login rejected | reason 1 |
//! | `S` | server | sequenced data | one message; its number is counted, not sent |
//! | `H` | server | heartbeat | none |
//! | `Z` | server | end of session | none |
//! | `+` | both | debug | text that is ignored |
//!
//! * [`Deframer`] cuts a stream into frames and lends those that are whole in its input.
//! * [`ClientPacket`] and [`ServerPacket`] give a frame its meaning for the receiver.
//! * [`ServerSession`] and [`ClientSession`] hold the rules: which packets are valid when, when a heartbeat is due,
//!   when a silent peer is given up.
//!
//! Where the specification leaves a choice the module is strict, because a stream that is misread once is misread
//! forever: a frame without a type, one longer than allowed, an unknown type and a type of the other direction are
//! [`ProtocolError`]s, and after an error the connection ends. Padding is parsed liberally: spaces and NULs on either
//! side, since real clients justify their fields either way.
//!
//! ```
//! use weir_proto::soup::{ClientPacket, Deframer, ServerInput, ServerSession, Timing};
//!
//! let mut deframer = Deframer::new(512);
//! let mut session = ServerSession::new(0, Timing::default());
//! let mut messages = 0;
//! // A login and a message as a peer may send them, cut in the middle of the login.
//! let pieces: [&[u8]; 2] =
//!     [b"\0\x2fLC00001DEMO      ", b"                             1\0\x02UQ"];
//! for mut input in pieces {
//!     while let Some(frame) = deframer.next(&mut input)? {
//!         match session.on_packet(0, ClientPacket::parse(frame)?)? {
//!             ServerInput::Login(login) => {
//!                 assert_eq!((login.username.as_str(), login.sequence), ("C00001", 1));
//!                 session.accepted(0, login.heartbeat_timeout_ms);
//!             }
//!             ServerInput::Message(message) => messages += message.len(),
//!             ServerInput::Logout | ServerInput::Nothing => {}
//!         }
//!     }
//! }
//! assert_eq!((messages, deframer.is_empty()), (1, true));
//! # Ok::<(), weir_proto::soup::ProtocolError>(())
//! ```
//!
//! What this module does not do: it checks no password, keeps no messages for replay, and owns no socket.

mod client_session;
mod error;
mod frame;
mod login;
mod name;
mod packet;
mod server_session;
mod timing;

pub use crate::padded::TextError;
pub use client_session::{ClientInput, ClientSession};
pub use error::ProtocolError;
pub use frame::{
    CLIENT_HEARTBEAT_FRAME, Deframer, END_OF_SESSION_FRAME, Frame, HEADER_BYTES, LOGOUT_FRAME,
    PAYLOAD_BYTES_MAX, SERVER_HEARTBEAT_FRAME, encode_frame, header,
};
pub use login::{HEARTBEAT_TIMEOUT_MS_MAX, LoginAccepted, LoginReject, LoginRequest};
pub use name::Name;
pub use packet::{
    CLIENT_HEARTBEAT, ClientPacket, DEBUG, END_OF_SESSION, LOGIN_ACCEPTED, LOGIN_REJECTED, LOGIN_REQUEST,
    LOGOUT, SEQUENCED, SERVER_HEARTBEAT, ServerPacket, UNSEQUENCED,
};
pub use server_session::{ServerInput, ServerSession};
pub use timing::{CloseReason, Due, HEARTBEAT_TIMEOUT_NS_MAX, HEARTBEAT_TIMEOUT_NS_MIN, Timing};
