//! Protocols as values: bytes in, events out; values in, bytes out.
//!
//! Nothing here performs I/O, reads a clock or starts a task. The owner of the socket decides when bytes arrive and
//! where they go; that is why all of it can be tested with slices: [`http1`], and [`content`] to send and verify;
//! [`soup`] sessions, whose rules take the time as an argument, the [`ouch`] orders in them, and their [`drop_copy`];
//! and the [`exposition`] of metrics. [`client`] maps an address to the client that limits count.
//!
//! ```
//! use weir_proto::http1::{
//!     Event, Limits, RequestDecoder, Version,
//!     encode::{AfterMessage, Framing, HeadWriter},
//! };
//!
//! let mut decoder = RequestDecoder::new(Limits::default());
//!
//! // Two pipelined requests as a peer may send them, cut in the middle of the second head.
//! let pieces: [&[u8]; 2] = [
//!     b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhelloGET /b HT",
//!     b"TP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
//! ];
//! let (mut content, mut replies) = (Vec::new(), Vec::new());
//! for mut input in pieces {
//!     loop {
//!         let step = decoder.decode(input)?;
//!         input = &input[step.consumed..];
//!         match step.event {
//!             Event::Head(head) => {
//!                 assert!(head.target.starts_with('/'));
//!                 HeadWriter::response(&mut replies, Version::Http11, 200, "OK")?
//!                     .finish(Framing::Length(0), AfterMessage::Unsaid)?;
//!             }
//!             Event::Body(bytes) => content.extend_from_slice(bytes),
//!             Event::ExpectContinue | Event::End { .. } => {}
//!             Event::NeedMore | Event::Finished => break,
//!         }
//!     }
//! }
//! assert_eq!(content, b"hello");
//! assert_eq!(replies, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".repeat(2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod client;
pub mod content;
pub mod drop_copy;
pub mod exposition;
pub mod http1;
pub mod ouch;
pub mod soup;

mod padded;
