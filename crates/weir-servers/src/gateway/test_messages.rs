//! Messages about one order, for tests.

use weir_proto::ouch::{
    Accepted, Appendage, ClientOrderId, Enter, Inbound, Outbound, Replace, Replaced, Symbol,
};

/// A buy order of this many shares.
pub(super) fn enter(user_ref_num: u32, quantity: u32) -> Inbound<'static> {
    Inbound::Enter(order(user_ref_num, quantity), Appendage::EMPTY)
}

fn order(user_ref_num: u32, quantity: u32) -> Enter {
    Enter {
        user_ref_num,
        side: b'B',
        quantity,
        symbol: Symbol(*b"WEIR    "),
        price: 10_000,
        time_in_force: b'0',
        display: b'Y',
        capacity: b'P',
        intermarket_sweep: b'N',
        cross_type: b'N',
        client_order_id: ClientOrderId([b' '; 14]),
    }
}

/// The same order as bytes.
pub(super) fn entered(user_ref_num: u32, quantity: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    enter(user_ref_num, quantity).encode(&mut bytes);
    bytes
}

/// An exchange's acceptance of such an order of 100 shares, live (`L`) or ended at once (`D`).
pub(super) fn accepted(user_ref_num: u32, order_state: u8) -> Vec<u8> {
    let accepted = Accepted { order_state, ..Accepted::of(&order(user_ref_num, 100), 1, 1) };
    let message = Outbound::Accepted(accepted);
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    bytes
}

/// A replacement of such an order by one of 50 shares.
pub(super) fn replace(original_user_ref_num: u32, user_ref_num: u32) -> Inbound<'static> {
    let Enter { price, time_in_force, display, intermarket_sweep, client_order_id, .. } =
        order(user_ref_num, 50);
    let message = Replace {
        original_user_ref_num,
        user_ref_num,
        quantity: 50,
        price,
        time_in_force,
        display,
        intermarket_sweep,
        client_order_id,
    };
    Inbound::Replace(message, Appendage::EMPTY)
}

/// An exchange's confirmation of that replacement: it is live.
pub(super) fn replaced(original_user_ref_num: u32, user_ref_num: u32) -> Vec<u8> {
    let order = order(user_ref_num, 50);
    let message = Outbound::Replaced(Replaced {
        timestamp_ns: 1,
        original_user_ref_num,
        user_ref_num,
        side: order.side,
        quantity: order.quantity,
        symbol: order.symbol,
        price: order.price,
        time_in_force: order.time_in_force,
        display: order.display,
        order_reference: 1,
        capacity: order.capacity,
        intermarket_sweep: order.intermarket_sweep,
        cross_type: order.cross_type,
        order_state: b'L',
        client_order_id: order.client_order_id,
    });
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    bytes
}
