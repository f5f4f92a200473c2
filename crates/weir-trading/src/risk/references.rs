//! The price of each symbol from which the distance of an order is measured.

use weir_proto::ouch::Symbol;

use crate::{admit, key_table::KeyTable, slab::Slab};

pub(super) struct References {
    table: KeyTable,
    prices: Slab<(Symbol, u64)>,
}

impl References {
    pub(super) fn new(symbols_max: usize) -> Self {
        Self { table: KeyTable::new(symbols_max), prices: Slab::new(symbols_max) }
    }

    pub(super) fn get(&self, symbol: Symbol) -> Option<u64> {
        Some(self.prices.at(self.find(symbol)?).1)
    }

    /// False if the symbol is new and there is no place for it.
    pub(super) fn set(&mut self, symbol: Symbol, price: u64) -> bool {
        if let Some(place) = self.find(symbol) {
            self.prices.at_mut(place).1 = price;
            return true;
        }
        let Some(place) = self.prices.insert((symbol, price)) else { return false };
        self.table.insert(admit::symbol_key(symbol), place)
    }

    fn find(&self, symbol: Symbol) -> Option<u32> {
        self.table.get(admit::symbol_key(symbol), |place| self.prices.at(place).0 == symbol)
    }
}
