//! The price of each symbol from which the distance of an order is measured: one table for all workers, read and moved
//! without a lock. The price that was set last counts, whoever set it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use weir_proto::ouch::Symbol;

use crate::admit;

/// Reference prices by symbol, with a stated maximum of symbols.
#[derive(Debug)]
pub struct References {
    /// At most half of them are in use, so a search comes to an empty one.
    cells: Box<[Cell]>,
    symbols: AtomicUsize,
    symbols_max: usize,
}

/// A symbol never leaves its cell. Zeros are an empty cell, and no price yet.
#[derive(Debug, Default)]
struct Cell {
    key: AtomicU64,
    price: AtomicU64,
}

impl References {
    /// No prices, and room for those of so many symbols.
    pub fn new(symbols_max: usize) -> Self {
        let cells = (symbols_max * 2).next_power_of_two().max(2);
        let cells = (0..cells).map(|_| Cell::default()).collect();
        Self { cells, symbols: AtomicUsize::new(0), symbols_max }
    }

    /// The price of a symbol.
    pub fn get(&self, symbol: Symbol) -> Option<u64> {
        let key = admit::symbol_key(symbol);
        for cell in self.cells_from(key) {
            match cell.key.load(Ordering::Acquire) {
                0 => return None,
                found if found == key => {
                    return Some(cell.price.load(Ordering::Relaxed)).filter(|price| *price > 0);
                }
                _ => {}
            }
        }
        None
    }

    /// Sets the price of a symbol. False if the symbol is new and there is no place for it, or it is no symbol.
    pub fn set(&self, symbol: Symbol, price: u64) -> bool {
        let key = admit::symbol_key(symbol);
        if key == 0 {
            return false;
        }
        for cell in self.cells_from(key) {
            let found = match cell.key.load(Ordering::Acquire) {
                0 => match self.claim(cell, key) {
                    Some(found) => found,
                    None => return false,
                },
                found => found,
            };
            if found == key {
                cell.price.store(price, Ordering::Relaxed);
                return true;
            }
        }
        false
    }

    /// Takes an empty cell; gives whose it is then, which may be that of another thread that was faster. `None`: there
    /// are as many symbols as there may be.
    fn claim(&self, cell: &Cell, key: u64) -> Option<u64> {
        // Threads that come at once may pass the maximum by as many as they are; there are twice as many cells.
        if self.symbols.load(Ordering::Relaxed) >= self.symbols_max {
            // Somebody may have brought this very symbol since.
            return Some(cell.key.load(Ordering::Acquire)).filter(|found| *found == key);
        }
        match cell.key.compare_exchange(0, key, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                self.symbols.fetch_add(1, Ordering::Relaxed);
                Some(key)
            }
            Err(found) => Some(found),
        }
    }

    /// The cells in which a key may be, each once.
    fn cells_from(&self, key: u64) -> impl Iterator<Item = &Cell> {
        let mask = self.cells.len() - 1;
        // The upper bits of the product are mixed best (Knuth, The Art of Computer Programming, volume 3, 6.4).
        let home = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize;
        (0..self.cells.len()).map(move |step| &self.cells[(home + step) & mask])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(number: u32) -> Symbol {
        format!("S{number}").parse().expect("it is short")
    }

    #[test]
    fn each_symbol_has_its_last_price_and_there_are_as_many_as_may_be() {
        let references = References::new(100);
        assert!((0..100).all(|number| references.set(symbol(number), u64::from(number) + 1)));
        assert!(!references.set(symbol(100), 1), "there is no place");
        assert!(references.set(symbol(7), 70), "one that is there moves");
        assert_eq!((references.get(symbol(7)), references.get(symbol(8))), (Some(70), Some(9)));
        assert_eq!(references.get(symbol(100)), None);
        assert!(!References::new(0).set(symbol(1), 1));
        assert!(!references.set(Symbol([0; 8]), 1), "it is no symbol");
    }

    #[test]
    fn threads_that_bring_the_same_symbols_share_their_places() {
        let references = References::new(64);
        std::thread::scope(|scope| {
            for first in [0, 21, 42] {
                let references = &references;
                scope.spawn(move || {
                    for number in (0..64).map(|step| (first + step) % 64) {
                        assert!(references.set(symbol(number), u64::from(number) + 1));
                    }
                });
            }
        });
        assert!((0..64).all(|number| references.get(symbol(number)) == Some(u64::from(number) + 1)));
        assert!(!references.set(symbol(64), 1));
    }
}
