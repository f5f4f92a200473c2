//! The reference price of each symbol, from which the distance of an order's price is measured: one table for all
//! workers, read and written without a lock. The latest price counts, whichever thread set it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use weir_proto::ouch::Symbol;

use crate::admit;

/// Reference prices by symbol, with a stated maximum of symbols.
#[derive(Debug)]
pub struct References {
    /// At most half of them are in use, so every search reaches an empty one.
    cells: Box<[Cell]>,
    symbols: AtomicUsize,
    symbols_max: usize,
}

/// A symbol never leaves its cell. Zeros mean an empty cell, and no price yet.
#[derive(Debug, Default)]
struct Cell {
    key: AtomicU64,
    price: AtomicU64,
}

impl References {
    /// A table without prices, with room for `symbols_max` symbols.
    pub fn new(symbols_max: usize) -> Self {
        let cells = (symbols_max * 2).next_power_of_two().max(2);
        let cells = (0..cells).map(|_| Cell::default()).collect();
        Self { cells, symbols: AtomicUsize::new(0), symbols_max }
    }

    /// The price of a symbol.
    pub fn get(&self, symbol: Symbol) -> Option<u64> {
        let key = key_of(symbol);
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

    /// Sets the price of a symbol; 0 removes it. False if the symbol is new and there is no room for it, or if it is
    /// not a symbol.
    pub fn set(&self, symbol: Symbol, price: u64) -> bool {
        let cell = self.cell_of(symbol);
        if let Some(cell) = cell {
            cell.price.store(price, Ordering::Relaxed);
        }
        cell.is_some()
    }

    /// Reserves a place for the price of a symbol: [`Self::set`] succeeds from then on. False as for [`Self::set`].
    pub fn reserve(&self, symbol: Symbol) -> bool {
        self.cell_of(symbol).is_some()
    }

    /// The symbols that have a price, in alphabetical order.
    pub fn all(&self) -> Vec<(Symbol, u64)> {
        let cells = self.cells.iter().filter_map(|cell| {
            let (key, price) = (cell.key.load(Ordering::Acquire), cell.price.load(Ordering::Relaxed));
            (key != 0 && price > 0).then(|| (admit::symbol_of_key(key), price))
        });
        let mut all: Vec<_> = cells.collect();
        all.sort_unstable_by_key(|(symbol, _)| symbol.0);
        all
    }

    /// The cell of a symbol, which is allocated if there is room.
    fn cell_of(&self, symbol: Symbol) -> Option<&Cell> {
        let key = key_of(symbol);
        if key == 0 {
            return None;
        }
        for cell in self.cells_from(key) {
            let found = match cell.key.load(Ordering::Acquire) {
                0 => self.claim(cell, key)?,
                found => found,
            };
            if found == key {
                return Some(cell);
            }
        }
        None
    }

    /// Takes an empty cell; returns its owner's key, which belongs to another thread's symbol if that thread was
    /// faster. `None`: the maximum number of symbols is reached.
    fn claim(&self, cell: &Cell, key: u64) -> Option<u64> {
        // Concurrent threads may exceed the maximum by their number; there are twice as many cells.
        if self.symbols.load(Ordering::Relaxed) >= self.symbols_max {
            // Another thread may have added this symbol in the meantime.
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

/// One key for all forms of a symbol; 0 for a field without one.
fn key_of(symbol: Symbol) -> u64 {
    match symbol.canonical() {
        Symbol::BLANK => 0,
        canonical => admit::symbol_key(canonical),
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
        let all = references.all();
        assert_eq!((all.len(), &all[..3]), (100, &[(symbol(0), 1), (symbol(1), 2), (symbol(10), 11)][..]));
        assert!(references.set(symbol(0), 0), "it is taken away");
        assert_eq!((references.get(symbol(0)), references.all().len()), (None, 99));
        assert!(references.reserve(symbol(0)) && !references.reserve(symbol(100)));
        assert!(!References::new(0).set(symbol(1), 1));
        assert!(!references.set(Symbol([0; 8]), 1), "it is no symbol");
        assert!(references.set(Symbol(*b"s7\0     "), 77), "it is there in another form");
        assert_eq!(references.get(symbol(7)), Some(77));
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
