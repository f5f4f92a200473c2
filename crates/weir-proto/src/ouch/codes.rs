//! The letters of one-byte fields.

/// Sides of an order.
pub mod side {
    /// Buy.
    pub const BUY: u8 = b'B';
    /// Sell.
    pub const SELL: u8 = b'S';
    /// Sell short.
    pub const SELL_SHORT: u8 = b'T';
    /// Sell short, exempt.
    pub const SELL_SHORT_EXEMPT: u8 = b'E';
}

/// How long an order is valid.
pub mod time_in_force {
    /// Until the end of the day.
    pub const DAY: u8 = b'0';
    /// Shares that are not executed at once are cancelled.
    pub const IMMEDIATE_OR_CANCEL: u8 = b'3';
    /// Into the extended hours.
    pub const EXTENDED_HOURS: u8 = b'5';
    /// Until the time in its appendage.
    pub const GOOD_TILL_TIME: u8 = b'6';
    /// After hours.
    pub const AFTER_HOURS: u8 = b'E';
}

/// The visibility of an order.
pub mod display {
    /// Shown without a name.
    pub const VISIBLE: u8 = b'Y';
    /// Not shown.
    pub const HIDDEN: u8 = b'N';
    /// Shown with the name of its firm.
    pub const ATTRIBUTABLE: u8 = b'A';
}

/// The capacity in which a firm trades.
pub mod capacity {
    /// For a customer.
    pub const AGENCY: u8 = b'A';
    /// For itself.
    pub const PRINCIPAL: u8 = b'P';
    /// For itself, with a customer behind it.
    pub const RISKLESS: u8 = b'R';
    /// Otherwise.
    pub const OTHER: u8 = b'O';
}

/// Whether an order may execute regardless of other markets.
pub mod intermarket_sweep {
    /// It may.
    pub const ELIGIBLE: u8 = b'Y';
    /// It may not.
    pub const NOT_ELIGIBLE: u8 = b'N';
}

/// The auction an order is for.
pub mod cross_type {
    /// None: continuous trading.
    pub const CONTINUOUS: u8 = b'N';
}

/// Whether an accepted order is on the book.
pub mod order_state {
    /// It is live.
    pub const LIVE: u8 = b'L';
    /// It is not, and no further message about it follows.
    pub const DEAD: u8 = b'D';
}

/// Why shares of an order were cancelled.
pub mod cancel_reason {
    /// Its owner asked.
    pub const USER: u8 = b'U';
    /// It was immediate-or-cancel.
    pub const IMMEDIATE: u8 = b'I';
    /// Its time ran out.
    pub const TIMEOUT: u8 = b'T';
    /// The venue's staff, or a kill switch.
    pub const SUPERVISORY: u8 = b'S';
    /// It would have traded with its owner.
    pub const SELF_MATCH: u8 = b'Q';
    /// The system.
    pub const SYSTEM: u8 = b'Z';
    /// Trading is halted.
    pub const HALTED: u8 = b'H';
}

/// Why a trade is broken.
pub mod broken_trade_reason {
    /// It was clearly an error.
    pub const ERRONEOUS: u8 = b'E';
    /// Both sides agreed to break it.
    pub const CONSENT: u8 = b'C';
    /// The exchange's own decision.
    pub const SUPERVISORY: u8 = b'S';
    /// The decision of another party.
    pub const EXTERNAL: u8 = b'X';
}

/// Whether an execution took from the book.
pub mod liquidity {
    /// The order was on the book.
    pub const ADDED: u8 = b'A';
    /// The order took liquidity from the book.
    pub const REMOVED: u8 = b'R';
}

/// Events of the system.
pub mod event {
    /// The day starts.
    pub const START_OF_DAY: u8 = b'S';
    /// The day ends.
    pub const END_OF_DAY: u8 = b'E';
}
