//! Reference prices in the form used in files and on the control socket. `weir_trading` stores and uses them.

use std::collections::BTreeMap;

use weir_proto::ouch::{PRICE_MAX, Symbol};
use weir_trading::References;

use super::account_limits::{UNIT, symbol};

/// Most symbols with a reference price.
pub(super) const REFERENCES_MAX: usize = 16_384;

/// By symbol: its price in units of the currency, or none.
pub(super) type Prices = BTreeMap<String, Option<f64>>;

/// The table that all workers share, filled with these prices.
pub(super) fn table(prices: &[(Symbol, u64)]) -> References {
    let references = References::new(REFERENCES_MAX);
    for (symbol, price) in prices {
        // As many as fit.
        let _ = references.set(*symbol, *price);
    }
    references
}

/// Parses a price.
pub(super) fn price(price: f64) -> Result<u64, String> {
    let scaled = (price * UNIT).round();
    if (1.0..=PRICE_MAX as f64).contains(&scaled) {
        Ok(scaled as u64)
    } else {
        Err(format!("price: {price} must be from 0.0001 to {}", units(PRICE_MAX)))
    }
}

/// A price in units of the currency.
pub(super) fn units(price: u64) -> f64 {
    price as f64 / UNIT
}

/// Symbols and prices in the table's form; 0 for none.
///
/// # Errors
/// The reason, in words: the first invalid symbol or price.
pub(super) fn resolve(prices: &Prices) -> Result<Vec<(Symbol, u64)>, String> {
    let one = |(text, units): (&String, &Option<f64>)| {
        let scaled = units.map_or(Ok(0), |units| price(units).map_err(|wrong| format!("{text}: {wrong}")));
        Ok((symbol(text)?, scaled?))
    };
    prices.iter().map(one).collect()
}

/// Reserves a place in the table for each symbol that gets a price.
///
/// # Errors
/// The reason, in words: there is no room for a symbol.
pub(super) fn reserve(references: &References, prices: &[(Symbol, u64)]) -> Result<(), String> {
    match prices.iter().find(|(symbol, price)| *price > 0 && !references.reserve(*symbol)) {
        Some((symbol, _)) => {
            Err(format!("{symbol}: {REFERENCES_MAX} symbols have a price, and more may not have one"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_scaled_and_what_is_none_is_refused_by_its_symbol() {
        let prices = |all: &[(&str, Option<f64>)]| {
            resolve(&all.iter().map(|(symbol, price)| ((*symbol).to_owned(), *price)).collect())
        };
        let found = prices(&[("WEIR", Some(12.5)), ("BRIDGE", None), ("LOW", Some(0.0001))]);
        let expected = [("BRIDGE", 0), ("LOW", 1), ("WEIR", 125_000)];
        let named = |found: Vec<(Symbol, u64)>| {
            found.into_iter().map(|(symbol, price)| (symbol.to_string(), price)).collect::<Vec<_>>()
        };
        assert_eq!(found.map(named), Ok(expected.map(|(symbol, price)| (symbol.to_owned(), price)).to_vec()));
        for price in [0.0, 0.00001, -1.0, 199_999.990_1, f64::NAN, f64::INFINITY] {
            let wrong = prices(&[("WEIR", Some(price))]).expect_err("it is no price");
            assert!(wrong.starts_with("WEIR: price: ") && wrong.contains("199999.99"), "{wrong}");
        }
        assert!(prices(&[("TOOLONGSYMBOL", Some(1.0))]).is_err() && prices(&[("", None)]).is_err());
    }

    #[test]
    fn a_symbol_for_which_there_is_no_room_is_refused_and_one_without_a_price_needs_none() {
        let references = References::new(1);
        let named = |text: &str, price| (text.parse::<Symbol>().expect("a symbol"), price);
        assert_eq!(reserve(&references, &[named("A", 1), named("A", 2), named("B", 0)]), Ok(()));
        assert!(reserve(&references, &[named("B", 1)]).is_err_and(|wrong| wrong.starts_with("B: ")));
    }
}
