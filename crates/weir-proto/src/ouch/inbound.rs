//! Messages from a client to a host.

use super::{Appendage, ClientOrderId, DecodeError, DecodeErrorKind, Symbol, layout::layout};

/// The only byte of an account query.
pub const ACCOUNT_QUERY: u8 = b'Q';

/// Type and number: messages reported as [`DecodeErrorKind::Unsupported`] have at least these.
const UNSUPPORTED_BYTES_MIN: usize = 5;

/// Bytes of the longest inbound message without its appendage.
pub const MESSAGE_BYTES_MAX: usize = Enter::BYTES;

layout! {
    /// `O`: enter a new order.
    pub struct Enter (b'O', 47, Appendage) {
        /// The client's number for the order, above all that it used before.
        user_ref_num: u32 = 1,
        /// See [`codes::side`](super::codes::side).
        side: u8 = 5,
        /// Shares.
        quantity: u32 = 6,
        /// The symbol to trade.
        symbol: Symbol = 10,
        /// Limit, four implied decimals.
        price: u64 = 18,
        /// See [`codes::time_in_force`](super::codes::time_in_force).
        time_in_force: u8 = 26,
        /// See [`codes::display`](super::codes::display).
        display: u8 = 27,
        /// See [`codes::capacity`](super::codes::capacity).
        capacity: u8 = 28,
        /// See [`codes::intermarket_sweep`](super::codes::intermarket_sweep).
        intermarket_sweep: u8 = 29,
        /// See [`codes::cross_type`](super::codes::cross_type).
        cross_type: u8 = 30,
        /// The client's name for the order.
        client_order_id: ClientOrderId = 31,
    }
}

layout! {
    /// `U`: replace a live order by a new one.
    pub struct Replace (b'U', 40, Appendage) {
        /// The order to replace.
        original_user_ref_num: u32 = 1,
        /// The number of the new order, above all used before.
        user_ref_num: u32 = 5,
        /// Shares of the whole chain, including executed ones.
        quantity: u32 = 9,
        /// Limit, four implied decimals.
        price: u64 = 13,
        /// See [`codes::time_in_force`](super::codes::time_in_force).
        time_in_force: u8 = 21,
        /// See [`codes::display`](super::codes::display).
        display: u8 = 22,
        /// See [`codes::intermarket_sweep`](super::codes::intermarket_sweep).
        intermarket_sweep: u8 = 23,
        /// The client's name for the new order.
        client_order_id: ClientOrderId = 24,
    }
}

layout! {
    /// `X`: cancel an order, in whole or in part.
    pub struct Cancel (b'X', 9, Nothing) {
        /// The order.
        user_ref_num: u32 = 1,
        /// The intended new size; 0 cancels all.
        quantity: u32 = 5,
    }
}

layout! {
    /// `M`: change the side or lower the size of an order without losing its place.
    pub struct Modify (b'M', 10, Nothing) {
        /// The order.
        user_ref_num: u32 = 1,
        /// See [`codes::side`](super::codes::side).
        side: u8 = 5,
        /// Shares.
        quantity: u32 = 6,
    }
}

/// A message from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inbound<'a> {
    /// `O`
    Enter(Enter, Appendage<'a>),
    /// `U`
    Replace(Replace, Appendage<'a>),
    /// `X`
    Cancel(Cancel),
    /// `M`
    Modify(Modify),
    /// `Q`: which number comes next?
    AccountQuery,
}

impl<'a> Inbound<'a> {
    /// Reads one whole message.
    pub fn decode(message: &'a [u8]) -> Result<Self, DecodeError> {
        match message.first() {
            Some(&Enter::KIND) => Enter::decode(message).map(|(enter, tags)| Self::Enter(enter, tags)),
            Some(&Replace::KIND) => {
                Replace::decode(message).map(|(replace, tags)| Self::Replace(replace, tags))
            }
            Some(&Cancel::KIND) => Cancel::decode(message).map(|(cancel, _)| Self::Cancel(cancel)),
            Some(&Modify::KIND) => Modify::decode(message).map(|(modify, _)| Self::Modify(modify)),
            Some(&ACCOUNT_QUERY) if message.len() == 1 => Ok(Self::AccountQuery),
            Some(&ACCOUNT_QUERY) => Err(DecodeErrorKind::Length.of(message)),
            Some(b'C' | b'D' | b'E') if message.len() < UNSUPPORTED_BYTES_MIN => {
                Err(DecodeErrorKind::Length.of(message))
            }
            Some(b'C' | b'D' | b'E') => Err(DecodeErrorKind::Unsupported.of(message)),
            Some(_) => Err(DecodeErrorKind::UnknownType.of(message)),
            None => Err(DecodeErrorKind::Empty.of(message)),
        }
    }

    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Enter(enter, tags) => enter.encode(*tags, out),
            Self::Replace(replace, tags) => replace.encode(*tags, out),
            Self::Cancel(cancel) => cancel.encode(Appendage::EMPTY, out),
            Self::Modify(modify) => modify.encode(Appendage::EMPTY, out),
            Self::AccountQuery => out.push(ACCOUNT_QUERY),
        }
    }

    /// The first byte of the message.
    pub fn kind(&self) -> u8 {
        match self {
            Self::Enter(..) => Enter::KIND,
            Self::Replace(..) => Replace::KIND,
            Self::Cancel(_) => Cancel::KIND,
            Self::Modify(_) => Modify::KIND,
            Self::AccountQuery => ACCOUNT_QUERY,
        }
    }

    /// The order that the message is about: the new one of an enter and a replace.
    pub fn user_ref_num(&self) -> Option<u32> {
        match self {
            Self::Enter(enter, _) => Some(enter.user_ref_num),
            Self::Replace(replace, _) => Some(replace.user_ref_num),
            Self::Cancel(cancel) => Some(cancel.user_ref_num),
            Self::Modify(modify) => Some(modify.user_ref_num),
            Self::AccountQuery => None,
        }
    }

    /// The client's name for the new order of an enter or a replace.
    pub fn client_order_id(&self) -> Option<ClientOrderId> {
        match self {
            Self::Enter(enter, _) => Some(enter.client_order_id),
            Self::Replace(replace, _) => Some(replace.client_order_id),
            Self::Cancel(_) | Self::Modify(_) | Self::AccountQuery => None,
        }
    }
}
