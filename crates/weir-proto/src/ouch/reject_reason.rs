//! Why an order was refused: the reasons of the specification's table, as numbers and as labels.

/// The quote is not available.
pub const QUOTE_UNAVAILABLE: u16 = 0x0001;
/// The order's destination is closed, or cannot be reached.
pub const DESTINATION_CLOSED: u16 = 0x0002;
/// The display is not known, or not allowed.
pub const INVALID_DISPLAY: u16 = 0x0003;
/// The largest floor is not valid.
pub const INVALID_MAX_FLOOR: u16 = 0x0004;
/// The peg is not known.
pub const INVALID_PEG_TYPE: u16 = 0x0005;
/// The price is too far from the market.
pub const FAT_FINGER: u16 = 0x0006;
/// Trading is halted.
pub const HALTED: u16 = 0x0007;
/// An intermarket sweep is not allowed.
pub const ISO_NOT_ALLOWED: u16 = 0x0008;
/// The side is not known.
pub const INVALID_SIDE: u16 = 0x0009;
/// Something went wrong in the system.
pub const PROCESSING_ERROR: u16 = 0x000A;
/// A cancel is pending.
pub const CANCEL_PENDING: u16 = 0x000B;
/// The firm may not do this.
pub const FIRM_NOT_AUTHORIZED: u16 = 0x000C;
/// The least quantity is not valid.
pub const INVALID_MIN_QUANTITY: u16 = 0x000D;
/// There is no closing price to refer to.
pub const NO_CLOSING_REFERENCE_PRICE: u16 = 0x000E;
/// Any other reason.
pub const OTHER: u16 = 0x000F;
/// A cancel is not allowed.
pub const CANCEL_NOT_ALLOWED: u16 = 0x0010;
/// Pegging is not allowed.
pub const PEGGING_NOT_ALLOWED: u16 = 0x0011;
/// The market is crossed.
pub const CROSSED_MARKET: u16 = 0x0012;
/// The quantity is 0 or too large.
pub const INVALID_QUANTITY: u16 = 0x0013;
/// The order is not valid for an auction.
pub const INVALID_CROSS_ORDER: u16 = 0x0014;
/// A replace is not allowed.
pub const REPLACE_NOT_ALLOWED: u16 = 0x0015;
/// Routing is not allowed.
pub const ROUTING_NOT_ALLOWED: u16 = 0x0016;
/// The symbol is not known.
pub const INVALID_SYMBOL: u16 = 0x0017;
/// A test.
pub const TEST: u16 = 0x0018;
/// A late order for the close is too aggressive.
pub const LATE_LOC_TOO_AGGRESSIVE: u16 = 0x0019;
/// A retail order is not allowed.
pub const RETAIL_NOT_ALLOWED: u16 = 0x001A;
/// The price is not valid for a midpoint order that only posts.
pub const INVALID_MIDPOINT_POST_ONLY_PRICE: u16 = 0x001B;
/// The destination is not known.
pub const INVALID_DESTINATION: u16 = 0x001C;
/// The price is 0 or too high.
pub const INVALID_PRICE: u16 = 0x001D;
/// More shares than the threshold.
pub const SHARES_EXCEED_THRESHOLD: u16 = 0x001E;
/// A greater value than allowed.
pub const NOTIONAL_EXCEEDED: u16 = 0x001F;
/// Risk: the aggregate exposure would be exceeded.
pub const RISK_AGGREGATE_EXPOSURE: u16 = 0x0020;
/// Risk: the order would move the market.
pub const RISK_MARKET_IMPACT: u16 = 0x0021;
/// Risk: the stock is restricted.
pub const RISK_RESTRICTED_STOCK: u16 = 0x0022;
/// Risk: selling short is restricted.
pub const RISK_SHORT_SELL_RESTRICTED: u16 = 0x0023;
/// Risk: an intermarket sweep is not allowed.
pub const RISK_ISO_NOT_ALLOWED: u16 = 0x0024;
/// Risk: too large for the average daily volume.
pub const RISK_EXCEEDS_ADV: u16 = 0x0025;
/// Risk: the price is too far from the market.
pub const RISK_FAT_FINGER: u16 = 0x0026;
/// Risk: shares to sell short must be located.
pub const RISK_LOCATE_REQUIRED: u16 = 0x0027;
/// Risk: too many messages for the symbol.
pub const RISK_SYMBOL_MESSAGE_RATE: u16 = 0x0028;
/// Risk: too many messages on the port.
pub const RISK_PORT_MESSAGE_RATE: u16 = 0x0029;
/// Risk: too many equal orders.
pub const RISK_DUPLICATE_MESSAGE_RATE: u16 = 0x002A;

/// A reason as a label; `unknown` for numbers that are not in the table.
pub fn name(reason: u16) -> &'static str {
    match reason {
        QUOTE_UNAVAILABLE => "quote_unavailable",
        DESTINATION_CLOSED => "destination_closed",
        INVALID_DISPLAY => "invalid_display",
        INVALID_MAX_FLOOR => "invalid_max_floor",
        INVALID_PEG_TYPE => "invalid_peg_type",
        FAT_FINGER => "fat_finger",
        HALTED => "halted",
        ISO_NOT_ALLOWED => "iso_not_allowed",
        INVALID_SIDE => "invalid_side",
        PROCESSING_ERROR => "processing_error",
        CANCEL_PENDING => "cancel_pending",
        FIRM_NOT_AUTHORIZED => "firm_not_authorized",
        INVALID_MIN_QUANTITY => "invalid_min_quantity",
        NO_CLOSING_REFERENCE_PRICE => "no_closing_reference_price",
        OTHER => "other",
        CANCEL_NOT_ALLOWED => "cancel_not_allowed",
        PEGGING_NOT_ALLOWED => "pegging_not_allowed",
        CROSSED_MARKET => "crossed_market",
        INVALID_QUANTITY => "invalid_quantity",
        INVALID_CROSS_ORDER => "invalid_cross_order",
        REPLACE_NOT_ALLOWED => "replace_not_allowed",
        ROUTING_NOT_ALLOWED => "routing_not_allowed",
        INVALID_SYMBOL => "invalid_symbol",
        TEST => "test",
        LATE_LOC_TOO_AGGRESSIVE => "late_loc_too_aggressive",
        RETAIL_NOT_ALLOWED => "retail_not_allowed",
        INVALID_MIDPOINT_POST_ONLY_PRICE => "invalid_midpoint_post_only_price",
        INVALID_DESTINATION => "invalid_destination",
        INVALID_PRICE => "invalid_price",
        SHARES_EXCEED_THRESHOLD => "shares_exceed_threshold",
        NOTIONAL_EXCEEDED => "notional_exceeded",
        RISK_AGGREGATE_EXPOSURE => "risk_aggregate_exposure",
        RISK_MARKET_IMPACT => "risk_market_impact",
        RISK_RESTRICTED_STOCK => "risk_restricted_stock",
        RISK_SHORT_SELL_RESTRICTED => "risk_short_sell_restricted",
        RISK_ISO_NOT_ALLOWED => "risk_iso_not_allowed",
        RISK_EXCEEDS_ADV => "risk_exceeds_adv",
        RISK_FAT_FINGER => "risk_fat_finger",
        RISK_LOCATE_REQUIRED => "risk_locate_required",
        RISK_SYMBOL_MESSAGE_RATE => "risk_symbol_message_rate",
        RISK_PORT_MESSAGE_RATE => "risk_port_message_rate",
        RISK_DUPLICATE_MESSAGE_RATE => "risk_duplicate_message_rate",
        _ => "unknown",
    }
}
