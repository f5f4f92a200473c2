//! Checks before an order is passed on. All checks are off until a limit is set; limits may change at any time and
//! apply from the next message on.
//!
//! New orders and replacements are checked. **Cancels and modifications are not**, except for their own rate: an
//! account may always reduce its risk, whatever it is no longer allowed, and OUCH lets a modification only lower the
//! shares of an order. The rate ([`RiskLimits::cancel_rate`]) keeps a client from flooding a venue with them. A
//! modification that asks for more shares than its order can have is refused. If a venue should still make an order
//! larger, the larger size counts from then on. For an order from before a restart the executed shares are unknown, and
//! the venue decides. A symbol is compared in one form ([`Symbol::canonical`]), so that writing it differently passes
//! no limit; it gets that form where an order or a limit comes in. The rates are checked first, so that a refused order
//! uses them too. A replacement does not name its symbol; the symbol is known for followed orders: orders are followed
//! always ([`RiskConfig::follows_orders`]), or while a limit needs it. If a limit needs it and not every order was
//! followed, the replacement of an unknown order is refused. If a value is limited, an order at any price without a
//! reference price is refused: its value is unknown.
//!
//! Exposure is the value of an account's live orders plus the value of its executions since the state was created.
//! Orders and executions from before count as far as they were restored ([`RiskState::restore`],
//! [`RiskState::restore_executed`]); rates and duplicates start empty. Orders and replacements count from the moment
//! they pass: until the venue has answered, an order counts as the most valuable of its possible outcomes. A
//! replacement that does not raise that value is never refused for exposure.

mod duplicates;
mod exposure;
mod flood;
mod limits;
mod reference_prices;
mod symbols;

pub use duplicates::DuplicateLimit;
pub use exposure::Trade;
pub use limits::RiskLimits;
pub use reference_prices::References;

use std::sync::Arc;

use weir_proto::ouch::{Enter, Inbound, Modify, Outbound, Replace, Symbol, reject_reason};

use self::{
    duplicates::Duplicates,
    exposure::{Change, OpenOrder, OpenOrders},
    flood::Flood,
    limits::OrderTerms,
    symbols::SymbolBuckets,
};
use crate::{
    account::AccountId,
    admit,
    rate::{Rate, TokenBucket},
};

/// Maxima of a [`RiskState`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RiskConfig {
    /// Number of accounts: valid indices are below this.
    pub accounts_max: usize,
    /// Live orders that are followed, of all accounts together. Under a limit that needs to know orders, an order
    /// beyond this maximum is refused.
    pub orders_max: usize,
    /// Follow orders even while no limit needs it: then a limit that is set later also counts earlier orders.
    pub follows_orders: bool,
    /// Pairs of account and symbol whose rate is in use at one time.
    pub symbol_rates_max: usize,
}

impl Default for RiskConfig {
    fn default() -> Self {
        Self { accounts_max: 16_384, orders_max: 131_072, follows_orders: false, symbol_rates_max: 16_384 }
    }
}

/// The state behind the limits, for all accounts that live on one worker.
pub struct RiskState {
    /// The limits of accounts without their own.
    common: RiskLimits,
    own: Vec<Option<Box<RiskLimits>>>,
    /// Whether no account is limited.
    is_off: bool,
    /// See [`RiskConfig::follows_orders`].
    follows_orders: bool,
    /// There may be an open order that is not followed.
    has_unfollowed: bool,
    accounts: Vec<Option<Box<Account>>>,
    symbol_buckets: SymbolBuckets,
    open: OpenOrders,
    references: Arc<References>,
}

/// An order from before that is still open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The account's number for it.
    pub user_ref_num: u32,
    /// The symbol.
    pub symbol: Symbol,
    /// The side, as in the order's message.
    pub side: u8,
    /// Limit, four implied decimals.
    pub price: u64,
    /// Shares that may still execute.
    pub shares: u32,
    /// For a replacement that the venue has not answered: the account's number of the order that it replaces. Restore
    /// that order first.
    pub original: Option<u32>,
}

/// The terms of a live order that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveTerms {
    /// The symbol, in its canonical form; after a replacement as the venue confirmed it.
    pub symbol: Symbol,
    /// The side, as in the order's message.
    pub side: u8,
    /// The price at which a share counts, four implied decimals: the limit, or for an order at any price the reference
    /// price; 0 if there was none.
    pub price: u64,
    /// Shares that may still execute.
    pub shares: u32,
}

/// One account, created when it is first checked against a limit.
struct Account {
    port: TokenBucket,
    flood: Flood,
    cancels: TokenBucket,
    cancel_flood: Flood,
    is_flooding: bool,
    duplicates: Duplicates,
    exposure: u64,
}

impl Account {
    fn new() -> Self {
        Self {
            port: TokenBucket::FULL,
            flood: Flood::default(),
            cancels: TokenBucket::FULL,
            cancel_flood: Flood::default(),
            is_flooding: false,
            duplicates: Duplicates::default(),
            exposure: 0,
        }
    }

    /// Counts a message against the rate of the port.
    fn take(&mut self, now_ns: u64, rate: Option<Rate>) -> Result<(), u16> {
        let Some(rate) = rate else { return Ok(()) };
        self.is_flooding |= self.flood.count(now_ns, rate);
        if self.port.take(now_ns, rate) { Ok(()) } else { Err(reject_reason::RISK_PORT_MESSAGE_RATE) }
    }

    /// Whether the exposure stays within the maximum with this much more; `None` means unknown.
    fn check_exposure(&self, max: Option<u64>, more: Option<u64>) -> Result<(), u16> {
        let after = more.map(|more| self.exposure.saturating_add(more));
        let is_beyond = |max: u64| after.is_none_or(|after| after > max);
        if max.is_some_and(is_beyond) { Err(reject_reason::RISK_AGGREGATE_EXPOSURE) } else { Ok(()) }
    }
}

impl RiskState {
    /// A state without limits; the reference prices serve to measure the distance of an order's price.
    pub fn new(config: RiskConfig, references: Arc<References>) -> Self {
        let mut accounts = Vec::new();
        accounts.resize_with(config.accounts_max, || None);
        Self {
            common: RiskLimits::default(),
            own: vec![None; config.accounts_max],
            is_off: true,
            follows_orders: config.follows_orders,
            has_unfollowed: false,
            accounts,
            symbol_buckets: SymbolBuckets::new(config.symbol_rates_max),
            open: OpenOrders::new(config.orders_max),
            references,
        }
    }

    /// Sets the limits of all accounts without their own.
    pub fn set_limits(&mut self, limits: RiskLimits) {
        self.common = limits.canonical();
        self.note_off();
    }

    /// Gives an account its own limits, which replace the common ones, or removes them. False if there is no such
    /// account.
    pub fn set_account_limits(&mut self, account: AccountId, limits: Option<RiskLimits>) -> bool {
        let Some(place) = self.own.get_mut(account.index()) else { return false };
        *place = limits.map(|limits| Box::new(limits.canonical()));
        self.note_off();
        true
    }

    /// The limits that apply to an account.
    pub fn limits_of(&self, account: AccountId) -> &RiskLimits {
        self.own.get(account.index()).and_then(Option::as_deref).unwrap_or(&self.common)
    }

    /// Whether the venue's messages have to be followed ([`Self::follow`]) even while no account is limited.
    pub fn follows_orders(&self) -> bool {
        self.follows_orders
    }

    /// Whether an order may be open that is not followed.
    pub fn has_unfollowed(&self) -> bool {
        self.has_unfollowed
    }

    /// The symbol of each order that is open, or may be, and is followed.
    pub fn open_symbols(&self) -> impl Iterator<Item = Symbol> + '_ {
        self.open.symbols()
    }

    /// Records that an order is open that this state does not know.
    pub fn note_unfollowed(&mut self) {
        self.has_unfollowed = true;
    }

    /// Whether a message may be passed on; the error is the reason of the reject. `now_ns` is any clock that does not
    /// go back.
    pub fn check(&mut self, now_ns: u64, account: AccountId, message: &Inbound<'_>) -> Result<(), u16> {
        if self.is_off && !self.follows_orders {
            self.has_unfollowed = true;
            return Ok(());
        }
        match message {
            Inbound::Enter(enter, _) => self.check_enter(now_ns, account, enter),
            Inbound::Replace(replace, _) => self.check_replace(now_ns, account, replace),
            Inbound::Modify(modify) => self.check_modify(account, modify),
            Inbound::Cancel(_) | Inbound::AccountQuery => Ok(()),
        }
    }

    /// Whether a modification lowers its order, as far as that is known; the error is the reason of the reject. A
    /// modification that lowers its order is not subject to rates, kill switches and limits.
    pub fn check_modify(&self, account: AccountId, modify: &Modify) -> Result<(), u16> {
        let size = self.open.find(account, modify.user_ref_num).and_then(OpenOrder::size);
        let asks_for_more = size.is_some_and(|size| modify.quantity > size);
        if asks_for_more { Err(reject_reason::INVALID_QUANTITY) } else { Ok(()) }
    }

    /// Counts a message that is not an order but costs as much against the account's rate; the error is the reason of
    /// the reject if it exceeds the rate.
    pub fn count(&mut self, now_ns: u64, account: AccountId) -> Result<(), u16> {
        let rate = self.limits_of(account).port_rate;
        match (rate, self.accounts.get_mut(account.index())) {
            (Some(_), Some(place)) => {
                place.get_or_insert_with(|| Box::new(Account::new())).take(now_ns, rate)
            }
            _ => Ok(()),
        }
    }

    /// Counts a cancel or a modification against the account's rate of these; the error is the reason of the reject if
    /// it exceeds the rate.
    pub fn count_cancel(&mut self, now_ns: u64, account: AccountId) -> Result<(), u16> {
        let Some(rate) = self.limits_of(account).cancel_rate else { return Ok(()) };
        let Some(place) = self.accounts.get_mut(account.index()) else { return Ok(()) };
        let state = place.get_or_insert_with(|| Box::new(Account::new()));
        state.is_flooding |= state.cancel_flood.count(now_ns, rate);
        if state.cancels.take(now_ns, rate) { Ok(()) } else { Err(reject_reason::RISK_PORT_MESSAGE_RATE) }
    }

    /// Adds an open order that passed before this state was created, without a check. If there is no room to follow
    /// it, it counts permanently: no limit is exceeded because of that.
    pub fn restore(&mut self, account: AccountId, order: &Restored) {
        let Some(place) = self.accounts.get_mut(account.index()) else { return };
        let reference = self.references.get(order.symbol);
        let open = OpenOrder {
            account,
            user_ref_num: order.user_ref_num,
            symbol: order.symbol.canonical(),
            side: order.side,
            price: if admit::is_market(order.price) { reference.unwrap_or(0) } else { order.price },
            leaves: order.shares,
            filled: None,
        };
        let chained = order.original.and_then(|original| self.open.insert_replacement(original, open));
        let more = match chained {
            Some(more) => more,
            None if self.open.is_full() => {
                self.has_unfollowed = true;
                open.value()
            }
            None => self.open.insert(open),
        };
        let state = place.get_or_insert_with(|| Box::new(Account::new()));
        state.exposure = state.exposure.saturating_add(more);
    }

    /// Counts an account's executions from before this state was created.
    pub fn restore_executed(&mut self, account: AccountId, value: u64) {
        if let Some(place) = self.accounts.get_mut(account.index()) {
            let state = place.get_or_insert_with(|| Box::new(Account::new()));
            state.exposure = state.exposure.saturating_add(value);
        }
    }

    /// Applies a venue message to an account, in the account's own numbers. Returns the trade, if the message is an
    /// execution of a followed order.
    pub fn follow(&mut self, account: AccountId, message: &Outbound) -> Option<Trade> {
        if self.open.is_empty() && !matches!(message, Outbound::Executed(_)) {
            return None;
        }
        let change = self.open.follow(account, message);
        self.apply(account, change);
        if let Some(Trade { symbol, price, .. }) = change.traded {
            // A full table keeps the symbols it has.
            let _ = self.references.set(symbol, price);
        }
        change.traded
    }

    /// The terms of a live order; `None` if it is not followed.
    pub fn terms_of(&self, account: AccountId, user_ref_num: u32) -> Option<LiveTerms> {
        let OpenOrder { symbol, side, price, leaves, .. } = *self.open.find(account, user_ref_num)?;
        Some(LiveTerms { symbol, side, price, shares: leaves })
    }

    /// Removes a replacement that had no effect and that the venue does not report.
    pub fn forget_replacement(&mut self, account: AccountId, user_ref_num: u32) {
        let change = self.open.end(account, user_ref_num);
        self.apply(account, change);
    }

    fn apply(&mut self, account: AccountId, change: Change) {
        if let Some(Some(account)) = self.accounts.get_mut(account.index()) {
            account.exposure = account.exposure.saturating_add(change.more).saturating_sub(change.less);
        }
    }

    /// Whether the account's session must be ended: ten times one of its rates was offered for three consecutive clock
    /// seconds. Asking clears it.
    pub fn must_drop(&mut self, account: AccountId) -> bool {
        let Some(Some(account)) = self.accounts.get_mut(account.index()) else { return false };
        let must = std::mem::take(&mut account.is_flooding);
        if must {
            (account.flood, account.cancel_flood) = (Flood::default(), Flood::default());
        }
        must
    }

    /// The value that counts against the account's exposure.
    pub fn exposure(&self, account: AccountId) -> u64 {
        match self.accounts.get(account.index()) {
            Some(Some(account)) => account.exposure,
            _ => 0,
        }
    }

    fn note_off(&mut self) {
        self.is_off = self.common.is_off() && self.own.iter().flatten().all(|limits| limits.is_off());
    }

    fn check_enter(&mut self, now_ns: u64, account: AccountId, enter: &Enter) -> Result<(), u16> {
        let enter = &Enter { symbol: enter.symbol.canonical(), ..*enter };
        let Some(place) = self.accounts.get_mut(account.index()) else {
            return Err(reject_reason::PROCESSING_ERROR);
        };
        let limits = self.own[account.index()].as_deref().unwrap_or(&self.common);
        let is_followed = self.follows_orders || limits.needs_orders();
        self.has_unfollowed |= !is_followed;
        if limits.is_off() && !is_followed {
            return Ok(());
        }
        let state = place.get_or_insert_with(|| Box::new(Account::new()));
        state.take(now_ns, limits.port_rate)?;
        if let Some(rate) = limits.symbol_rate {
            self.symbol_buckets.take(now_ns, account, enter.symbol, rate)?;
        }
        if let Some(limit) = limits.duplicates
            && !state.duplicates.count(now_ns, limit, enter)
        {
            return Err(reject_reason::RISK_DUPLICATE_MESSAGE_RATE);
        }
        let terms = OrderTerms::by_enter(enter, self.references.get(enter.symbol));
        limits.check_order(&terms)?;
        state.check_exposure(limits.exposure_max, terms.value())?;
        if limits.needs_orders() && self.open.is_full() {
            return Err(reject_reason::PROCESSING_ERROR);
        }
        if is_followed {
            let order = of_enter(account, enter, terms.reference);
            // An order that no limit needs yet and that has no room counts permanently, as in `restore`.
            self.has_unfollowed |= self.open.is_full();
            let more = if self.open.is_full() { order.value() } else { self.open.insert(order) };
            state.exposure = state.exposure.saturating_add(more);
        }
        Ok(())
    }

    fn check_replace(&mut self, now_ns: u64, account: AccountId, replace: &Replace) -> Result<(), u16> {
        let Some(place) = self.accounts.get_mut(account.index()) else {
            return Err(reject_reason::PROCESSING_ERROR);
        };
        let limits = self.own[account.index()].as_deref().unwrap_or(&self.common);
        let is_followed = self.follows_orders || limits.needs_orders();
        if limits.is_off() && !is_followed {
            self.has_unfollowed = true;
            return Ok(());
        }
        let state = place.get_or_insert_with(|| Box::new(Account::new()));
        state.take(now_ns, limits.port_rate)?;
        let original = self.open.find(account, replace.original_user_ref_num);
        let side = original.map_or(0, |order| order.side);
        let symbol = original.map(|order| order.symbol);
        if let (Some(rate), Some(symbol)) = (limits.symbol_rate, symbol) {
            self.symbol_buckets.take(now_ns, account, symbol, rate)?;
        }
        let reference = symbol.and_then(|symbol| self.references.get(symbol));
        let terms = OrderTerms::by_replace(replace, symbol, reference);
        limits.check_order(&terms)?;
        let Some(symbol) = symbol else {
            // The order of this message has ended and the venue will ignore it, or the order is unknown.
            if limits.needs_orders() && self.has_unfollowed {
                return Err(reject_reason::PROCESSING_ERROR);
            }
            return state.check_exposure(limits.exposure_max, terms.value());
        };
        let original = replace.original_user_ref_num;
        let value = terms.value();
        let more = value.map(|value| self.open.more_with(account, original, value).unwrap_or_default());
        if more != Some(0) {
            state.check_exposure(limits.exposure_max, more)?;
        }
        if is_followed {
            let order = of_replace(account, replace, (symbol, side), terms.reference);
            let more = match self.open.insert_replacement(original, order) {
                Some(more) => more,
                None if limits.needs_orders() => return Err(reject_reason::PROCESSING_ERROR),
                None => {
                    self.has_unfollowed = true;
                    order.value()
                }
            };
            state.exposure = state.exposure.saturating_add(more);
        }
        Ok(())
    }
}

fn of_enter(account: AccountId, enter: &Enter, reference: Option<u64>) -> OpenOrder {
    OpenOrder {
        account,
        user_ref_num: enter.user_ref_num,
        symbol: enter.symbol,
        side: enter.side,
        price: OrderTerms::by_enter(enter, reference).price_counted().unwrap_or(0),
        leaves: enter.quantity,
        filled: Some(0),
    }
}

fn of_replace(
    account: AccountId,
    replace: &Replace,
    (symbol, side): (Symbol, u8),
    reference: Option<u64>,
) -> OpenOrder {
    OpenOrder {
        account,
        user_ref_num: replace.user_ref_num,
        symbol,
        side,
        price: OrderTerms::by_replace(replace, Some(symbol), reference).price_counted().unwrap_or(0),
        leaves: replace.quantity,
        filled: None,
    }
}
