//! Typical orders and replies.

use weir_proto::ouch::{
    Accepted, Appendage, Cancel, Canceled, ClientOrderId, Enter, Executed, Inbound, Outbound, Rejected,
    Replace, Replaced, Symbol,
};

const CLIENT_ORDER_ID: ClientOrderId = ClientOrderId(*b"W0000000000001");
const SYMBOL: Symbol = Symbol(*b"WEIR    ");
const TIMESTAMP_NS: u64 = 34_200_000_000_000;

/// Messages from clients.
pub fn inbound() -> [(&'static str, Inbound<'static>); 3] {
    [
        ("enter", Inbound::Enter(ENTER, Appendage::EMPTY)),
        ("replace", Inbound::Replace(REPLACE, Appendage::EMPTY)),
        ("cancel", Inbound::Cancel(Cancel { user_ref_num: 7, quantity: 0 })),
    ]
}

/// Messages to clients.
pub fn outbound() -> [(&'static str, Outbound); 5] {
    let (timestamp_ns, user_ref_num) = (TIMESTAMP_NS, 7);
    let canceled = Canceled { timestamp_ns, user_ref_num, quantity: 100, reason: b'U' };
    let executed = Executed {
        timestamp_ns,
        user_ref_num,
        quantity: 100,
        price: 1_502_500,
        liquidity: b'A',
        match_number: 12,
    };
    let rejected = Rejected { timestamp_ns, user_ref_num, reason: 0x13, client_order_id: CLIENT_ORDER_ID };
    [
        ("accepted", Outbound::Accepted(ACCEPTED)),
        ("replaced", Outbound::Replaced(REPLACED)),
        ("canceled", Outbound::Canceled(canceled)),
        ("executed", Outbound::Executed(executed)),
        ("rejected", Outbound::Rejected(rejected)),
    ]
}

const ENTER: Enter = Enter {
    user_ref_num: 7,
    side: b'B',
    quantity: 100,
    symbol: SYMBOL,
    price: 1_502_500,
    time_in_force: b'0',
    display: b'Y',
    capacity: b'P',
    intermarket_sweep: b'N',
    cross_type: b'N',
    client_order_id: CLIENT_ORDER_ID,
};

const REPLACE: Replace = Replace {
    original_user_ref_num: 7,
    user_ref_num: 8,
    quantity: 200,
    price: 1_502_400,
    time_in_force: b'0',
    display: b'Y',
    intermarket_sweep: b'N',
    client_order_id: CLIENT_ORDER_ID,
};

const ACCEPTED: Accepted = Accepted {
    timestamp_ns: TIMESTAMP_NS,
    user_ref_num: 7,
    side: b'B',
    quantity: 100,
    symbol: SYMBOL,
    price: 1_502_500,
    time_in_force: b'0',
    display: b'Y',
    order_reference: 9,
    capacity: b'P',
    intermarket_sweep: b'N',
    cross_type: b'N',
    order_state: b'L',
    client_order_id: CLIENT_ORDER_ID,
};

const REPLACED: Replaced = Replaced {
    timestamp_ns: TIMESTAMP_NS,
    original_user_ref_num: 7,
    user_ref_num: 8,
    side: b'B',
    quantity: 200,
    symbol: SYMBOL,
    price: 1_502_400,
    time_in_force: b'0',
    display: b'Y',
    order_reference: 10,
    capacity: b'P',
    intermarket_sweep: b'N',
    cross_type: b'N',
    order_state: b'L',
    client_order_id: CLIENT_ORDER_ID,
};
