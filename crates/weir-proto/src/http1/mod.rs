//! HTTP/1.1 without I/O: bytes become events, and values become bytes.
//!
//! Sources: RFC 9112 (message syntax, framing, connections) and RFC 9110 (fields, statuses, methods, dates).
//!
//! * [`RequestDecoder`] and [`ResponseDecoder`] take input in pieces of any size and give one [`Event`] a call. A
//!   head that is whole in the input is returned as slices of it; only a split one is gathered, within [`Limits`].
//!   Content is never copied. A message ends where the next one starts, and the rest of the input stays with the
//!   caller: for pipelining, call again.
//! * [`encode`] writes heads and chunk framing into the caller's buffer, and refuses output that some reader could
//!   take for another message.
//! * [`date`] formats and reads HTTP dates, [`range`] reads `Range`, [`conditional`] evaluates preconditions,
//!   [`content_coding`] lists the codings that a client accepts, [`target`] decodes paths, [`media_type`] gives a
//!   file's media type, and [`url`] parses a client's URL.
//!
//! The way a message is split into pieces never changes its events: neither the heads, nor the joined content, nor
//! the [`ParseError`].
//!
//! The module is stricter than the standard requires, because a disagreement between two readers is a security hole:
//! a repeated `Content-Length` is refused even when the values agree, both framings together are refused, a lone line
//! feed ends no line, and responses with a transfer coding other than `chunked` are refused instead of being read
//! until the connection closes.
//!
//! Left to the caller: which methods a target allows (405); a target in absolute form outranks `Host` (RFC 9112,
//! 3.2.2), and a 100 Continue may be left out when bytes of the content are already there.
//!
//! What this module does not do: it times nothing (408 is the caller's job), knows no connection and no file, follows
//! no redirect, and treats CONNECT and 101 as the end of HTTP on the connection.

pub mod conditional;
pub mod content_coding;
pub mod date;
pub mod encode;
pub mod limits;
pub mod media_type;
pub mod range;
pub mod target;
pub mod url;

mod authority;
mod body;
mod decoder;
mod error;
mod framing;
mod head;
mod method;
mod scan;

pub use authority::is_address_or_localhost;
pub use body::BodyLength;
pub use decoder::{Ending, Event, RequestDecoder, ResponseDecoder, Step};
pub use error::ParseError;
pub use head::{Headers, RequestHead, ResponseHead, Version};
pub use limits::Limits;
pub use method::{Method, MethodSet};
