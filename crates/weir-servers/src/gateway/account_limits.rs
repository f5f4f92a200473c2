//! Limits in the form used in configuration files and on the control socket.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use weir_proto::ouch::Symbol;
use weir_trading::{DuplicateLimit, Rate, RiskLimits};

/// Prices and values have four implied decimals.
pub(super) const UNIT: f64 = 10_000.0;
const MILLISECOND_NS: u64 = 1_000_000;
/// Most restricted symbols of an account.
const RESTRICTED_MAX: usize = 10_000;

/// An account with a limit of orders, and none of cancels, has this many times as many cancels and modifications per
/// second, and at least so many: it can cancel whatever it has at once, and cannot flood an exchange.
const CANCELS_PER_ORDER: u32 = 10;
const CANCELS_PER_SECOND_MIN: u32 = 1_000;
/// Seconds' worth of cancels in a burst.
const CANCELS_BURST_S: u32 = 10;

/// Limits of an account; absent keys mean no limit, except for cancels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// New orders and replaces per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orders_per_second: Option<u32>,
    /// Burst of new orders and replaces; one second's worth if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orders_burst: Option<u32>,
    /// Cancels and modifications per second; 0: no limit. If absent, it follows `orders_per_second`, see
    /// [`CANCELS_PER_ORDER`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancels_per_second: Option<u32>,
    /// Burst of cancels and modifications; ten seconds' worth if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancels_burst: Option<u32>,
    /// New orders and replaces per second for each symbol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol_orders_per_second: Option<u32>,
    /// Burst of new orders and replaces for each symbol; one second's worth if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol_orders_burst: Option<u32>,
    /// Identical orders (symbol, side, quantity and price) within the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicates_max: Option<u32>,
    /// The window for identical orders; one second if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicates_window_ms: Option<u32>,
    /// How far a price may be from the symbol's last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fat_finger_percent: Option<f64>,
    /// Shares of one order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shares_max: Option<u32>,
    /// Value of one order, in units of the currency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notional_max: Option<f64>,
    /// Value of all open and executed orders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exposure_max: Option<f64>,
    /// Symbols that may not be traded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub restricted: Vec<String>,
}

impl Limits {
    /// These limits with single keys changed; `null` removes a limit.
    ///
    /// # Errors
    /// The reason, in words: no such limit, or an invalid value for it.
    pub(super) fn with(&self, changes: Map<String, Value>) -> Result<Self, String> {
        let mut all = match serde_json::to_value(self).map_err(|error| error.to_string())? {
            Value::Object(all) => all,
            _ => Map::new(),
        };
        for (key, value) in changes {
            // The error about a value does not name its key.
            let single = Map::from_iter([(key.clone(), value.clone())]);
            if let (false, Err(error)) = (value.is_null(), serde_json::from_value::<Self>(single.into())) {
                return Err(format!("{key}: {error}"));
            }
            if value.is_null() {
                all.remove(&key);
            } else {
                all.insert(key, value);
            }
        }
        serde_json::from_value(all.into()).map_err(|error| error.to_string())
    }

    /// These limits without those that mean nothing without another one. A configuration has none of them; together
    /// with an operator's values it may.
    pub(super) fn settled(mut self) -> Self {
        if self.orders_per_second.is_none() {
            self.orders_burst = None;
        }
        if self.symbol_orders_per_second.is_none() {
            self.symbol_orders_burst = None;
        }
        if self.cancels_per_second.is_none() {
            self.cancels_burst = None;
        }
        if self.duplicates_max.is_none() {
            self.duplicates_window_ms = None;
        }
        self
    }

    /// Checks the limits after single ones were set: these must mean something.
    ///
    /// # Errors
    /// The reason, in words: the key and the error.
    pub(super) fn check_set(&self, set: &Map<String, Value>) -> Result<(), String> {
        let mut limits = self.clone().settled();
        if set.contains_key("orders_burst") {
            limits.orders_burst = self.orders_burst;
        }
        if set.contains_key("cancels_burst") {
            limits.cancels_burst = self.cancels_burst;
        }
        if set.contains_key("symbol_orders_burst") {
            limits.symbol_orders_burst = self.symbol_orders_burst;
        }
        if set.contains_key("duplicates_window_ms") {
            limits.duplicates_window_ms = self.duplicates_window_ms;
        }
        limits.resolve().map(drop)
    }

    /// The limits in the form that the checks use.
    ///
    /// # Errors
    /// The reason, in words: the key and the error.
    pub(super) fn resolve(&self) -> Result<RiskLimits, String> {
        Ok(RiskLimits {
            port_rate: rate("orders", self.orders_per_second, self.orders_burst)?,
            cancel_rate: self.cancel_rate()?,
            symbol_rate: rate("symbol_orders", self.symbol_orders_per_second, self.symbol_orders_burst)?,
            duplicates: self.duplicates()?,
            fat_finger_basis_points: self.fat_finger()?,
            shares_max: self.shares_max,
            notional_max: value("notional_max", self.notional_max)?,
            exposure_max: value("exposure_max", self.exposure_max)?,
            restricted: self.restricted()?,
        })
    }

    fn cancel_rate(&self) -> Result<Option<Rate>, String> {
        let per_second = match (self.cancels_per_second, self.orders_per_second) {
            (Some(0), _) if self.cancels_burst.is_some() => {
                return Err("cancels_burst means nothing if cancels_per_second is 0, no limit".into());
            }
            (Some(0), _) => return Ok(None),
            (None, Some(orders)) => {
                Some(orders.saturating_mul(CANCELS_PER_ORDER).max(CANCELS_PER_SECOND_MIN))
            }
            (own, _) => own,
        };
        if self.cancels_per_second.is_none() && self.cancels_burst.is_some() {
            return rate("cancels", None, self.cancels_burst);
        }
        let burst = self.cancels_burst.or(per_second.map(|rate| rate.saturating_mul(CANCELS_BURST_S)));
        rate("cancels", per_second, burst)
    }

    fn duplicates(&self) -> Result<Option<DuplicateLimit>, String> {
        let window_ms = self.duplicates_window_ms.unwrap_or(1000);
        if window_ms == 0 {
            return Err("duplicates_window_ms must be more than 0".into());
        }
        if self.duplicates_max.is_none() && self.duplicates_window_ms.is_some() {
            return Err("duplicates_window_ms means nothing without duplicates_max".into());
        }
        let window_ns = u64::from(window_ms) * MILLISECOND_NS;
        Ok(self.duplicates_max.map(|orders_max| DuplicateLimit { orders_max, window_ns }))
    }

    fn fat_finger(&self) -> Result<Option<u32>, String> {
        match self.fat_finger_percent {
            None => Ok(None),
            Some(percent) if (0.01..=10_000.0).contains(&percent) => {
                Ok(Some((percent * 100.0).round() as u32))
            }
            Some(percent) => Err(format!("fat_finger_percent {percent} must be from 0.01 to 10000")),
        }
    }

    fn restricted(&self) -> Result<Vec<Symbol>, String> {
        if self.restricted.len() > RESTRICTED_MAX {
            return Err(format!("restricted has more than {RESTRICTED_MAX} symbols"));
        }
        self.restricted.iter().map(|text| symbol(text)).collect()
    }
}

/// Parses a symbol.
pub(super) fn symbol(text: &str) -> Result<Symbol, String> {
    let symbol = text.parse().map_err(|_| format!("{text:?} is no symbol: up to 8 printable characters"))?;
    if text.is_empty() { Err("a symbol is empty".into()) } else { Ok(symbol) }
}

fn rate(key: &str, per_second: Option<u32>, burst: Option<u32>) -> Result<Option<Rate>, String> {
    match (per_second, burst) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(format!("{key}_burst means nothing without {key}_per_second")),
        (Some(per_second), burst) => {
            let burst = burst.unwrap_or(per_second).max(1);
            Ok(Some(Rate { per_second: per_second.into(), burst: burst.into() }))
        }
    }
}

fn value(key: &str, value: Option<f64>) -> Result<Option<u64>, String> {
    match value {
        None => Ok(None),
        Some(value) if (0.0..=1e14).contains(&value) => Ok(Some((value * UNIT).round() as u64)),
        Some(value) => Err(format!("{key} {value} must be from 0 to 1e14")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_scaled_and_bursts_default_to_a_second() {
        let limits = Limits {
            orders_per_second: Some(100),
            notional_max: Some(12.5),
            fat_finger_percent: Some(2.5),
            duplicates_max: Some(3),
            restricted: vec!["WEIR".into()],
            ..Limits::default()
        };
        let resolved = limits.resolve().expect("they are right");
        assert_eq!(resolved.port_rate, Some(Rate { per_second: 100, burst: 100 }));
        assert_eq!((resolved.notional_max, resolved.fat_finger_basis_points), (Some(125_000), Some(250)));
        assert_eq!(resolved.duplicates, Some(DuplicateLimit { orders_max: 3, window_ns: 1_000_000_000 }));
        assert_eq!(resolved.restricted.len(), 1);
        assert!(Limits::default().resolve().expect("nothing is limited").is_off());
    }

    #[test]
    fn cancels_follow_the_limit_of_orders_unless_they_have_their_own() {
        let rate_of = |orders, cancels, burst| {
            let limits = Limits {
                orders_per_second: orders,
                cancels_per_second: cancels,
                cancels_burst: burst,
                ..Limits::default()
            };
            limits.resolve().map(|limits| limits.cancel_rate.map(|rate| (rate.per_second, rate.burst)))
        };
        assert_eq!(rate_of(None, None, None), Ok(None));
        assert_eq!(rate_of(Some(10), None, None), Ok(Some((1_000, 10_000))));
        assert_eq!(rate_of(Some(500), None, None), Ok(Some((5_000, 50_000))));
        assert_eq!(rate_of(Some(500), Some(7), None), Ok(Some((7, 70))));
        assert_eq!(rate_of(None, Some(7), Some(9)), Ok(Some((7, 9))));
        assert_eq!(rate_of(Some(500), Some(0), None), Ok(None));
        assert!(rate_of(None, Some(0), Some(9)).is_err() && rate_of(Some(10), None, Some(9)).is_err());
    }

    #[test]
    fn a_limit_that_has_lost_the_one_it_belongs_to_is_left_out_and_one_that_is_set_needs_it() {
        let limits = Limits {
            orders_burst: Some(1),
            duplicates_max: Some(2),
            duplicates_window_ms: Some(3),
            ..Limits::default()
        };
        let settled = limits.clone().settled();
        assert_eq!(settled, Limits { orders_burst: None, ..limits.clone() });
        let set = |name: &str| Map::from_iter([(name.to_owned(), Value::from(1))]);
        assert_eq!(limits.check_set(&set("shares_max")), Ok(()));
        assert!(limits.check_set(&set("orders_burst")).is_err_and(|error| error.contains("orders_burst")));
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_its_key() {
        let wrong = |limits: Limits| limits.resolve().expect_err("it makes no sense");
        assert!(wrong(Limits { orders_burst: Some(1), ..Limits::default() }).contains("orders_burst"));
        assert!(wrong(Limits { notional_max: Some(-1.0), ..Limits::default() }).contains("notional_max"));
        assert!(
            wrong(Limits { fat_finger_percent: Some(f64::NAN), ..Limits::default() }).contains("fat_finger")
        );
        assert!(
            wrong(Limits { restricted: vec!["TOOLONGSYMBOL".into()], ..Limits::default() }).contains("TOO")
        );
    }
}
