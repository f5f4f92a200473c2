//! OUCH 5.0 order entry without I/O: messages of fixed layout, big-endian, with optional tags behind some.
//!
//! Source: Nasdaq, "OUCH 5.0 Order Entry Specification, Updated April 2023". Messages are the payloads of
//! SoupBinTCP frames: [`Inbound`] ones go from a client to a host in unsequenced packets, [`Outbound`] ones come back
//! in sequenced packets. Prices have four implied decimals, text is left-justified, timestamps count nanoseconds
//! since midnight.
//!
//! * [`Inbound`] and [`Outbound`] decode and encode whole messages; the layout of each is a table in its file.
//! * [`Appendage`] is the list of tags behind a message. It is checked as a whole when the message is decoded;
//!   unknown tags are kept and passed on.
//! * [`inbound_user_ref_num`] and its like read and change single numbers in place, for a gateway that passes
//!   messages on.
//! * [`codes`] names the letters, [`reject_reason`] the numbers of refused orders.
//!
//! A decoder takes exactly the bytes of one message: fewer and more are errors. It checks only the layout; the venue
//! decides whether a side, a quantity or a price is valid, and has an answer for each case.

pub mod codes;
pub mod reject_reason;

mod appendage;
mod error;
mod fields;
mod inbound;
mod layout;
mod outbound;
mod rewrite;

pub use crate::padded::TextError;
pub use appendage::{Appendage, Tags, encode_tag};
pub use error::{DecodeError, DecodeErrorKind};
pub use fields::{ClientOrderId, PRICE_MARKET, PRICE_MAX, QUANTITY_MAX, Symbol};
pub use inbound::{ACCOUNT_QUERY, Cancel, Enter, Inbound, MESSAGE_BYTES_MAX, Modify, Replace};
pub use outbound::{
    Accepted, AiqCanceled, BrokenTrade, CancelPending, CancelReject, Canceled, Executed, Modified,
    OUTBOUND_BYTES_MAX, Outbound, PriorityUpdate, Rejected, Replaced, Restated,
};
pub use rewrite::{
    inbound_user_ref_num, original_user_ref_num, outbound_original_user_ref_num, outbound_user_ref_num,
    set_inbound_user_ref_num, set_original_user_ref_num, set_outbound_original_user_ref_num,
    set_outbound_user_ref_num,
};
