//! Builds the venue's messages, in one place.

use weir_proto::ouch::{
    CancelReject, Canceled, ClientOrderId, Enter, Executed, Modified, Outbound, Rejected, Replace, Replaced,
    Symbol,
};

/// The fields that a replacement keeps from its original.
#[derive(Clone, Copy)]
pub(crate) struct Kept {
    pub(crate) symbol: Symbol,
    pub(crate) side: u8,
    pub(crate) capacity: u8,
    pub(crate) cross_type: u8,
}

impl Kept {
    pub(crate) fn of(enter: &Enter) -> Self {
        Self {
            symbol: enter.symbol,
            side: enter.side,
            capacity: enter.capacity,
            cross_type: enter.cross_type,
        }
    }
}

/// `quantity` is the open shares, not the total of the chain.
pub(crate) fn replaced(
    timestamp_ns: u64,
    replace: &Replace,
    kept: Kept,
    quantity: u32,
    order_reference: u64,
) -> Outbound {
    Outbound::Replaced(Replaced {
        timestamp_ns,
        original_user_ref_num: replace.original_user_ref_num,
        user_ref_num: replace.user_ref_num,
        side: kept.side,
        quantity,
        symbol: kept.symbol,
        price: replace.price,
        time_in_force: replace.time_in_force,
        display: replace.display,
        order_reference,
        capacity: kept.capacity,
        intermarket_sweep: replace.intermarket_sweep,
        cross_type: kept.cross_type,
        order_state: b'L',
        client_order_id: replace.client_order_id,
    })
}

pub(crate) fn canceled(timestamp_ns: u64, user_ref_num: u32, quantity: u32, reason: u8) -> Outbound {
    Outbound::Canceled(Canceled { timestamp_ns, user_ref_num, quantity, reason })
}

pub(crate) fn rejected(
    timestamp_ns: u64,
    user_ref_num: u32,
    reason: u16,
    client_order_id: ClientOrderId,
) -> Outbound {
    Outbound::Rejected(Rejected { timestamp_ns, user_ref_num, reason, client_order_id })
}

/// One side of a trade; `liquidity` is `A` for the resting order and `R` for the incoming one.
pub(crate) fn executed(
    timestamp_ns: u64,
    user_ref_num: u32,
    quantity: u32,
    price: u64,
    liquidity: u8,
    match_number: u64,
) -> Outbound {
    Outbound::Executed(Executed { timestamp_ns, user_ref_num, quantity, price, liquidity, match_number })
}

pub(crate) fn modified(timestamp_ns: u64, user_ref_num: u32, side: u8, quantity: u32) -> Outbound {
    Outbound::Modified(Modified { timestamp_ns, user_ref_num, side, quantity })
}

pub(crate) fn cancel_reject(timestamp_ns: u64, user_ref_num: u32) -> Outbound {
    Outbound::CancelReject(CancelReject { timestamp_ns, user_ref_num })
}
