//! What operators are shown of a running gateway, as it crosses the control socket: open orders, positions and
//! exposures, a page at a time. Pure: how the rows are asked for is in `listing_pages`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Most rows of a page.
pub const ROWS_MAX: usize = 1_000;

/// Which orders are meant: those that match everything that is given. Nothing given means all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OrderFilter {
    /// Orders of this account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Orders of this symbol, in any of its forms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// Orders that were sent to this venue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub venue: Option<String>,
}

impl OrderFilter {
    /// Whether all orders are meant.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The state of an order that the exchange never gets, because the journal of its worker has failed.
pub const NEVER_SENT: &str = "never_sent";

/// An open order. Absent fields are unknown: the gateway follows a bounded number of orders.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OrderRow {
    /// The account.
    pub account: String,
    /// The client's number.
    pub order: u32,
    /// The symbol, in upper case and without padding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// `B` buy, `S` sell, `T` sell short, `E` sell short exempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub side: Option<char>,
    /// Shares that may still execute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shares: Option<u32>,
    /// The price at which a share counts, in units of the currency: the limit; for an order at any price, the reference
    /// price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<f64>,
    /// `unanswered`, `open`, `cancelling`: a cancel of all its shares was sent, or will be; or [`NEVER_SENT`].
    pub state: String,
    /// The venue that it was sent to, or will be.
    pub venue: String,
    /// The worker whose session with the venue has it.
    pub worker: u32,
    /// Its number in that session.
    pub upstream_order: u32,
    /// How long it has been here; absent for an order of an earlier start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
}

impl OrderRow {
    /// What its open shares are worth, in units of the currency.
    pub fn value(&self) -> Option<f64> {
        Some(self.price? * f64::from(self.shares?))
    }
}

/// Executed shares of an account in a symbol, or those that belong to none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PositionRow {
    /// The account.
    pub account: String,
    /// The symbol; absent: what belongs to the account and to no symbol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// Shares bought.
    pub bought: u64,
    /// Shares sold.
    pub sold: u64,
    /// Bought less sold.
    pub net: i64,
    /// Without a symbol: executed shares of orders whose symbol or side is unknown.
    pub unattributed: u64,
    /// Without a symbol: broken trades, whose shares are still in the account's positions.
    pub broken_trades: u64,
}

/// What counts against the exposure of an account, in units of the currency.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExposureRow {
    /// The account.
    pub account: String,
    /// Open orders and executions of the session with clients.
    pub used: f64,
    /// `exposure_max`; absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
}

/// A page of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page<R> {
    /// At most [`ROWS_MAX`].
    pub rows: Vec<R>,
    /// Where the next page begins; `None` if this is the last.
    pub next: Option<Cursor>,
}

/// A place between two pages: a worker, one of its tables, and a place in that. An order or a position keeps its place
/// for as long as it exists, so pages have each of those that exist all the time exactly once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    pub(super) worker: u32,
    pub(super) table: u32,
    pub(super) place: u32,
}

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.worker, self.table, self.place)
    }
}

impl FromStr for Cursor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} is no place in a list: give the one that the page before ended with");
        let mut numbers = text.split('.').map(|number| number.parse::<u32>());
        let mut next = || numbers.next().and_then(Result::ok).ok_or_else(wrong);
        let cursor = Self { worker: next()?, table: next()?, place: next()? };
        if numbers.next().is_some() { Err(wrong()) } else { Ok(cursor) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_is_written_and_nothing_else_is() {
        let cursor = Cursor { worker: 1, table: 2, place: u32::MAX };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for wrong in ["", "1", "1.2", "1.2.x", "1.2.3.4", "-1.2.3", "1.2.4294967296"] {
            assert!(wrong.parse::<Cursor>().is_err_and(|error| error.contains(wrong)), "{wrong}");
        }
    }

    #[test]
    fn what_an_order_is_worth_is_known_if_its_terms_are() {
        let row = OrderRow { shares: Some(30), price: Some(12.5), ..OrderRow::default() };
        assert_eq!(row.value(), Some(375.0));
        assert_eq!(OrderRow { price: None, ..row }.value(), None);
    }
}
