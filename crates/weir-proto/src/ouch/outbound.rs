//! Messages from a host to a client.

use super::{
    Appendage, ClientOrderId, DecodeError, DecodeErrorKind, Enter, Symbol, codes::order_state, layout::layout,
};

/// Bytes of the longest outbound message without its appendage.
pub const OUTBOUND_BYTES_MAX: usize = Replaced::BYTES;

layout! {
    struct SystemEvent (b'S', 10, Nothing) {
        timestamp_ns: u64 = 1,
        event: u8 = 9,
    }
}

layout! {
    /// `A`: an order was accepted.
    pub struct Accepted (b'A', 64, Appendage) {
        /// When, in nanoseconds since midnight.
        timestamp_ns: u64 = 1,
        /// The client's number for the order.
        user_ref_num: u32 = 9,
        /// See [`codes::side`](super::codes::side).
        side: u8 = 13,
        /// Shares.
        quantity: u32 = 14,
        /// The traded symbol.
        symbol: Symbol = 18,
        /// Limit, four implied decimals.
        price: u64 = 26,
        /// See [`codes::time_in_force`](super::codes::time_in_force).
        time_in_force: u8 = 34,
        /// See [`codes::display`](super::codes::display).
        display: u8 = 35,
        /// The host's number for the order.
        order_reference: u64 = 36,
        /// See [`codes::capacity`](super::codes::capacity).
        capacity: u8 = 44,
        /// See [`codes::intermarket_sweep`](super::codes::intermarket_sweep).
        intermarket_sweep: u8 = 45,
        /// See [`codes::cross_type`](super::codes::cross_type).
        cross_type: u8 = 46,
        /// See [`codes::order_state`](super::codes::order_state).
        order_state: u8 = 47,
        /// The client's name for the order.
        client_order_id: ClientOrderId = 48,
    }
}

impl Accepted {
    /// The host's acceptance of a new order that is live and unchanged.
    pub fn of(enter: &Enter, timestamp_ns: u64, order_reference: u64) -> Self {
        Self {
            timestamp_ns,
            user_ref_num: enter.user_ref_num,
            side: enter.side,
            quantity: enter.quantity,
            symbol: enter.symbol,
            price: enter.price,
            time_in_force: enter.time_in_force,
            display: enter.display,
            order_reference,
            capacity: enter.capacity,
            intermarket_sweep: enter.intermarket_sweep,
            cross_type: enter.cross_type,
            order_state: order_state::LIVE,
            client_order_id: enter.client_order_id,
        }
    }
}

layout! {
    /// `U`: an order was replaced by a new one.
    pub struct Replaced (b'U', 68, Appendage) {
        /// When, in nanoseconds since midnight.
        timestamp_ns: u64 = 1,
        /// The client's number for the order that was replaced.
        original_user_ref_num: u32 = 9,
        /// The client's number of the new order.
        user_ref_num: u32 = 13,
        /// See [`codes::side`](super::codes::side).
        side: u8 = 17,
        /// Remaining shares.
        quantity: u32 = 18,
        /// The traded symbol.
        symbol: Symbol = 22,
        /// Limit, four implied decimals.
        price: u64 = 30,
        /// See [`codes::time_in_force`](super::codes::time_in_force).
        time_in_force: u8 = 38,
        /// See [`codes::display`](super::codes::display).
        display: u8 = 39,
        /// The host's number of the new order.
        order_reference: u64 = 40,
        /// See [`codes::capacity`](super::codes::capacity).
        capacity: u8 = 48,
        /// See [`codes::intermarket_sweep`](super::codes::intermarket_sweep).
        intermarket_sweep: u8 = 49,
        /// See [`codes::cross_type`](super::codes::cross_type).
        cross_type: u8 = 50,
        /// See [`codes::order_state`](super::codes::order_state).
        order_state: u8 = 51,
        /// The client's name of the new order.
        client_order_id: ClientOrderId = 52,
    }
}

layout! {
    /// `C`: shares of an order were cancelled.
    pub struct Canceled (b'C', 18, Nothing) {
        /// When, in nanoseconds since midnight.
        timestamp_ns: u64 = 1,
        /// The client's number of the order.
        user_ref_num: u32 = 9,
        /// The number of shares removed.
        quantity: u32 = 13,
        /// See [`codes::cancel_reason`](super::codes::cancel_reason).
        reason: u8 = 17,
    }
}

layout! {
    /// `D`: shares of an order were cancelled because it would have traded with its owner.
    pub struct AiqCanceled (b'D', 32, Nothing) {
        /// When, in nanoseconds since midnight.
        timestamp_ns: u64 = 1,
        /// The client's number of the order.
        user_ref_num: u32 = 9,
        /// The number of shares removed.
        quantity: u32 = 13,
        /// See [`codes::cancel_reason`](super::codes::cancel_reason).
        reason: u8 = 17,
        /// Shares that would have traded.
        quantity_prevented: u32 = 18,
        /// The price they would have traded at.
        price: u64 = 22,
        /// See [`codes::liquidity`](super::codes::liquidity).
        liquidity: u8 = 30,
        /// The owner's rule that was applied.
        strategy: u8 = 31,
    }
}

layout! {
    /// `E`: shares of an order were executed.
    pub struct Executed (b'E', 36, Appendage) {
        /// When, in nanoseconds since midnight.
        timestamp_ns: u64 = 1,
        /// The client's number of the order.
        user_ref_num: u32 = 9,
        /// Shares executed.
        quantity: u32 = 13,
        /// The execution price.
        price: u64 = 17,
        /// See [`codes::liquidity`](super::codes::liquidity).
        liquidity: u8 = 25,
        /// The trade; both sides of it have the same.
        match_number: u64 = 26,
    }
}

layout! {
    /// `B`: an execution was undone.
    pub struct BrokenTrade (b'B', 36, Nothing) {
        /// When, in nanoseconds since midnight.
        timestamp_ns: u64 = 1,
        /// The client's number of the order.
        user_ref_num: u32 = 9,
        /// The trade.
        match_number: u64 = 13,
        /// Why.
        reason: u8 = 21,
        /// The client's name of the order.
        client_order_id: ClientOrderId = 22,
    }
}

layout! {
    /// `J`: an order was refused; its number is used up.
    pub struct Rejected (b'J', 29, Nothing) {
        /// When, in nanoseconds since midnight.
        timestamp_ns: u64 = 1,
        /// The client's number of the order.
        user_ref_num: u32 = 9,
        /// See [`reject_reason`](super::reject_reason).
        reason: u16 = 13,
        /// The client's name of the order.
        client_order_id: ClientOrderId = 15,
    }
}

layout! {
    /// `P`: a cancel will be carried out later.
    pub struct CancelPending (b'P', 13, Nothing) {
        /// When, in nanoseconds since midnight.
        timestamp_ns: u64 = 1,
        /// The client's number of the order.
        user_ref_num: u32 = 9,
    }
}

layout! {
    /// `I`: a cancel cannot be carried out.
    pub struct CancelReject (b'I', 13, Nothing) {
        /// When, in nanoseconds since midnight.
        timestamp_ns: u64 = 1,
        /// The client's number of the order.
        user_ref_num: u32 = 9,
    }
}

layout! {
    /// `T`: an order has a new place in the queue.
    pub struct PriorityUpdate (b'T', 30, Nothing) {
        /// When, in nanoseconds since midnight.
        timestamp_ns: u64 = 1,
        /// The client's number of the order.
        user_ref_num: u32 = 9,
        /// Its price.
        price: u64 = 13,
        /// See [`codes::display`](super::codes::display).
        display: u8 = 21,
        /// The host's number of the order.
        order_reference: u64 = 22,
    }
}

layout! {
    /// `M`: an order was modified.
    pub struct Modified (b'M', 18, Nothing) {
        /// When, in nanoseconds since midnight.
        timestamp_ns: u64 = 1,
        /// The client's number of the order.
        user_ref_num: u32 = 9,
        /// See [`codes::side`](super::codes::side).
        side: u8 = 13,
        /// Shares.
        quantity: u32 = 14,
    }
}

layout! {
    /// `R`: something about an order changed; the appendage says which.
    pub struct Restated (b'R', 16, Appendage) {
        /// When, in nanoseconds since midnight.
        timestamp_ns: u64 = 1,
        /// The client's number of the order.
        user_ref_num: u32 = 9,
        /// Why.
        reason: u8 = 13,
    }
}

layout! {
    struct AccountQueryResponse (b'Q', 13, Nothing) {
        timestamp_ns: u64 = 1,
        next_user_ref_num: u32 = 9,
    }
}

/// A message from a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outbound {
    /// `S`
    SystemEvent {
        /// When, in nanoseconds since midnight.
        timestamp_ns: u64,
        /// See [`codes::event`](super::codes::event).
        event: u8,
    },
    /// `A`
    Accepted(Accepted),
    /// `U`
    Replaced(Replaced),
    /// `C`
    Canceled(Canceled),
    /// `D`
    AiqCanceled(AiqCanceled),
    /// `E`
    Executed(Executed),
    /// `B`
    BrokenTrade(BrokenTrade),
    /// `J`
    Rejected(Rejected),
    /// `P`
    CancelPending(CancelPending),
    /// `I`
    CancelReject(CancelReject),
    /// `T`
    PriorityUpdate(PriorityUpdate),
    /// `M`
    Modified(Modified),
    /// `R`
    Restated(Restated),
    /// `Q`
    AccountQueryResponse {
        /// When, in nanoseconds since midnight.
        timestamp_ns: u64,
        /// The lowest number that a new order may have.
        next_user_ref_num: u32,
    },
}

impl Outbound {
    /// Reads one whole message, and its appendage, which is empty for messages that have none.
    pub fn decode(message: &[u8]) -> Result<(Self, Appendage<'_>), DecodeError> {
        // Decodes as this layout and wraps it.
        macro_rules! decoded {
            ($name:ident) => {
                $name::decode(message).map(|(fields, tags)| (Self::$name(fields), tags))
            };
        }
        let Some(kind) = message.first() else { return Err(DecodeErrorKind::Empty.of(message)) };
        match *kind {
            Accepted::KIND => decoded!(Accepted),
            Executed::KIND => decoded!(Executed),
            Canceled::KIND => decoded!(Canceled),
            Replaced::KIND => decoded!(Replaced),
            Rejected::KIND => decoded!(Rejected),
            AiqCanceled::KIND => decoded!(AiqCanceled),
            BrokenTrade::KIND => decoded!(BrokenTrade),
            CancelPending::KIND => decoded!(CancelPending),
            CancelReject::KIND => decoded!(CancelReject),
            PriorityUpdate::KIND => decoded!(PriorityUpdate),
            Modified::KIND => decoded!(Modified),
            Restated::KIND => decoded!(Restated),
            SystemEvent::KIND => {
                SystemEvent::decode(message).map(|(SystemEvent { timestamp_ns, event }, tags)| {
                    (Self::SystemEvent { timestamp_ns, event }, tags)
                })
            }
            AccountQueryResponse::KIND => AccountQueryResponse::decode(message).map(
                |(AccountQueryResponse { timestamp_ns, next_user_ref_num }, tags)| {
                    (Self::AccountQueryResponse { timestamp_ns, next_user_ref_num }, tags)
                },
            ),
            _ => Err(DecodeErrorKind::UnknownType.of(message)),
        }
    }

    /// Appends the message, with an empty appendage where it has one.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.encode_with(Appendage::EMPTY, out);
    }

    /// Appends the message with this appendage. Messages that have no place for one go without.
    pub fn encode_with(&self, appendage: Appendage<'_>, out: &mut Vec<u8>) {
        match *self {
            Self::SystemEvent { timestamp_ns, event } => {
                SystemEvent { timestamp_ns, event }.encode(appendage, out);
            }
            Self::Accepted(fields) => fields.encode(appendage, out),
            Self::Replaced(fields) => fields.encode(appendage, out),
            Self::Canceled(fields) => fields.encode(appendage, out),
            Self::AiqCanceled(fields) => fields.encode(appendage, out),
            Self::Executed(fields) => fields.encode(appendage, out),
            Self::BrokenTrade(fields) => fields.encode(appendage, out),
            Self::Rejected(fields) => fields.encode(appendage, out),
            Self::CancelPending(fields) => fields.encode(appendage, out),
            Self::CancelReject(fields) => fields.encode(appendage, out),
            Self::PriorityUpdate(fields) => fields.encode(appendage, out),
            Self::Modified(fields) => fields.encode(appendage, out),
            Self::Restated(fields) => fields.encode(appendage, out),
            Self::AccountQueryResponse { timestamp_ns, next_user_ref_num } => {
                AccountQueryResponse { timestamp_ns, next_user_ref_num }.encode(appendage, out);
            }
        }
    }

    /// The first byte of the message.
    pub fn kind(&self) -> u8 {
        match self {
            Self::SystemEvent { .. } => SystemEvent::KIND,
            Self::Accepted(_) => Accepted::KIND,
            Self::Replaced(_) => Replaced::KIND,
            Self::Canceled(_) => Canceled::KIND,
            Self::AiqCanceled(_) => AiqCanceled::KIND,
            Self::Executed(_) => Executed::KIND,
            Self::BrokenTrade(_) => BrokenTrade::KIND,
            Self::Rejected(_) => Rejected::KIND,
            Self::CancelPending(_) => CancelPending::KIND,
            Self::CancelReject(_) => CancelReject::KIND,
            Self::PriorityUpdate(_) => PriorityUpdate::KIND,
            Self::Modified(_) => Modified::KIND,
            Self::Restated(_) => Restated::KIND,
            Self::AccountQueryResponse { .. } => AccountQueryResponse::KIND,
        }
    }

    /// The order that the message is about: the new one of a replaced.
    pub fn user_ref_num(&self) -> Option<u32> {
        match self {
            Self::SystemEvent { .. } | Self::AccountQueryResponse { .. } => None,
            Self::Accepted(fields) => Some(fields.user_ref_num),
            Self::Replaced(fields) => Some(fields.user_ref_num),
            Self::Canceled(fields) => Some(fields.user_ref_num),
            Self::AiqCanceled(fields) => Some(fields.user_ref_num),
            Self::Executed(fields) => Some(fields.user_ref_num),
            Self::BrokenTrade(fields) => Some(fields.user_ref_num),
            Self::Rejected(fields) => Some(fields.user_ref_num),
            Self::CancelPending(fields) => Some(fields.user_ref_num),
            Self::CancelReject(fields) => Some(fields.user_ref_num),
            Self::PriorityUpdate(fields) => Some(fields.user_ref_num),
            Self::Modified(fields) => Some(fields.user_ref_num),
            Self::Restated(fields) => Some(fields.user_ref_num),
        }
    }

    /// Names another order; in a replaced also another original.
    pub fn set_user_ref_nums(&mut self, user_ref_num: u32, original_user_ref_num: u32) {
        let number = match self {
            Self::SystemEvent { .. } | Self::AccountQueryResponse { .. } => return,
            Self::Replaced(fields) => {
                fields.original_user_ref_num = original_user_ref_num;
                &mut fields.user_ref_num
            }
            Self::Accepted(fields) => &mut fields.user_ref_num,
            Self::Canceled(fields) => &mut fields.user_ref_num,
            Self::AiqCanceled(fields) => &mut fields.user_ref_num,
            Self::Executed(fields) => &mut fields.user_ref_num,
            Self::BrokenTrade(fields) => &mut fields.user_ref_num,
            Self::Rejected(fields) => &mut fields.user_ref_num,
            Self::CancelPending(fields) => &mut fields.user_ref_num,
            Self::CancelReject(fields) => &mut fields.user_ref_num,
            Self::PriorityUpdate(fields) => &mut fields.user_ref_num,
            Self::Modified(fields) => &mut fields.user_ref_num,
            Self::Restated(fields) => &mut fields.user_ref_num,
        };
        *number = user_ref_num;
    }
}
