//! Checks whether the fields of an order are valid here. `risk` checks what an account is allowed.

use weir_proto::ouch::{Enter, PRICE_MARKET, PRICE_MAX, QUANTITY_MAX, Replace, Symbol, reject_reason};

/// Prices from here to `PRICE_MARKET` mean "at any price": 200,000 and more.
const MARKET_PRICE_MIN: u64 = 2_000_000_000;

/// The first wrong field decides; fields are checked in the order of the message.
pub(crate) fn enter(enter: &Enter) -> Result<(), u16> {
    if !matches!(enter.side, b'B' | b'S' | b'T' | b'E') {
        return Err(reject_reason::INVALID_SIDE);
    }
    if !is_quantity(enter.quantity) {
        return Err(reject_reason::INVALID_QUANTITY);
    }
    if symbol_key(enter.symbol) == 0 || enter.symbol.0[0] == b' ' {
        return Err(reject_reason::INVALID_SYMBOL);
    }
    if !is_price(enter.price) {
        return Err(reject_reason::INVALID_PRICE);
    }
    if !is_display(enter.display) {
        return Err(reject_reason::INVALID_DISPLAY);
    }
    let known = is_time_in_force(enter.time_in_force)
        && matches!(enter.capacity, b'A' | b'P' | b'R' | b'O')
        && matches!(enter.intermarket_sweep, b'Y' | b'N')
        && enter.cross_type == b'N';
    if known { Ok(()) } else { Err(reject_reason::PROCESSING_ERROR) }
}

/// Whether the details of a replacement are valid.
pub(crate) fn replace(replace: &Replace) -> bool {
    is_quantity(replace.quantity)
        && is_price(replace.price)
        && is_time_in_force(replace.time_in_force)
        && is_display(replace.display)
        && matches!(replace.intermarket_sweep, b'Y' | b'N')
}

pub(crate) fn is_buy(side: u8) -> bool {
    side == b'B'
}

pub(crate) fn is_market(price: u64) -> bool {
    (MARKET_PRICE_MIN..=PRICE_MARKET).contains(&price)
}

pub(crate) fn is_immediate(time_in_force: u8) -> bool {
    time_in_force == b'3'
}

pub(crate) fn symbol_key(symbol: Symbol) -> u64 {
    u64::from_be_bytes(symbol.0)
}

/// The inverse: the symbol of a key.
pub(crate) fn symbol_of_key(key: u64) -> Symbol {
    Symbol(key.to_be_bytes())
}

fn is_quantity(quantity: u32) -> bool {
    (1..=QUANTITY_MAX).contains(&quantity)
}

fn is_price(price: u64) -> bool {
    (1..=PRICE_MAX).contains(&price) || is_market(price)
}

/// Display settings are echoed and have no effect: all orders at a price are in one queue.
fn is_display(display: u8) -> bool {
    matches!(display, b'Y' | b'N' | b'A')
}

/// Day, immediate or cancel, extended hours, after hours. The venue has no trading sessions, so all but the second
/// rest until they are cancelled. "Good till time" is refused, because nothing here would end such an order.
fn is_time_in_force(time_in_force: u8) -> bool {
    matches!(time_in_force, b'0' | b'3' | b'5' | b'E')
}
