//! The limits of an account, and the checks of one order that need no state.

use weir_proto::ouch::{Enter, Replace, Symbol, reject_reason};

use super::{duplicates::DuplicateLimit, exposure::value};
use crate::{admit, rate::Rate};

/// The limits of an account. Values are in ten-thousandths of the currency, as prices are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RiskLimits {
    /// New orders and replacements of the account.
    pub port_rate: Option<Rate>,
    /// Cancels and modifications of the account.
    pub cancel_rate: Option<Rate>,
    /// New orders and replacements of the account in each symbol.
    pub symbol_rate: Option<Rate>,
    /// Identical orders.
    pub duplicates: Option<DuplicateLimit>,
    /// How far a limit price may be from the symbol's reference price, up or down, in hundredths of a percent. Has no
    /// effect while the symbol has no reference price.
    pub fat_finger_basis_points: Option<u32>,
    /// Shares of one order.
    pub shares_max: Option<u32>,
    /// Value of one order. An order at any price counts at the symbol's reference price, and is refused without one.
    pub notional_max: Option<u64>,
    /// Value of the account's live orders and of its executions together. An order at any price is handled as above.
    pub exposure_max: Option<u64>,
    /// Symbols the account may not trade, in any form ([`Symbol::canonical`]).
    pub restricted: Vec<Symbol>,
}

/// One order, new or as it would be after a replacement. The symbol is `None` if it is unknown.
#[derive(Clone, Copy)]
pub(super) struct OrderTerms {
    pub(super) symbol: Option<Symbol>,
    pub(super) quantity: u32,
    pub(super) price: u64,
    pub(super) reference: Option<u64>,
}

impl OrderTerms {
    pub(super) fn by_enter(enter: &Enter, reference: Option<u64>) -> Self {
        Self { symbol: Some(enter.symbol), quantity: enter.quantity, price: enter.price, reference }
    }

    pub(super) fn by_replace(replace: &Replace, symbol: Option<Symbol>, reference: Option<u64>) -> Self {
        Self { symbol, quantity: replace.quantity, price: replace.price, reference }
    }

    /// The price at which a share is counted: an order at any price counts at the reference price. `None`: there is
    /// none.
    pub(super) fn price_counted(&self) -> Option<u64> {
        if admit::is_market(self.price) { self.reference } else { Some(self.price) }
    }

    /// The value of the order; `None`: unknown.
    pub(super) fn value(&self) -> Option<u64> {
        self.price_counted().map(|price| value(price, self.quantity))
    }
}

impl RiskLimits {
    /// With restricted symbols in the form in which orders have theirs here.
    pub(super) fn canonical(mut self) -> Self {
        self.restricted.iter_mut().for_each(|symbol| *symbol = symbol.canonical());
        self
    }

    /// Whether there are no limits.
    pub fn is_off(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a limit needs the symbols or the value of the account's live orders.
    pub fn needs_orders(&self) -> bool {
        self.symbol_rate.is_some()
            || self.fat_finger_basis_points.is_some()
            || self.exposure_max.is_some()
            || !self.restricted.is_empty()
    }

    /// Checks the limits of a single order.
    pub(super) fn check_order(&self, terms: &OrderTerms) -> Result<(), u16> {
        if terms.symbol.is_some_and(|symbol| self.restricted.contains(&symbol)) {
            return Err(reject_reason::RISK_RESTRICTED_STOCK);
        }
        if self.shares_max.is_some_and(|max| terms.quantity > max) {
            return Err(reject_reason::SHARES_EXCEED_THRESHOLD);
        }
        if self.is_too_far(terms) {
            return Err(reject_reason::RISK_FAT_FINGER);
        }
        if self.notional_max.is_some_and(|max| terms.value().is_none_or(|value| value > max)) {
            return Err(reject_reason::NOTIONAL_EXCEEDED);
        }
        Ok(())
    }

    fn is_too_far(&self, terms: &OrderTerms) -> bool {
        let (Some(basis_points), Some(reference)) = (self.fat_finger_basis_points, terms.reference) else {
            return false;
        };
        let distance = u128::from(terms.price.abs_diff(reference));
        !admit::is_market(terms.price) && distance * 10_000 > u128::from(basis_points) * u128::from(reference)
    }
}
