//! The books of a venue: one for each symbol, with two ladders and the queue of orders at each price. This file keeps
//! orders in their places; `trade.rs` decides which orders trade.

use weir_proto::ouch::Symbol;

use super::{
    Quote,
    ladder::{KEY_MAX, Ladder, Level, Levels},
    orders::{Order, Orders},
};
use crate::{admit, key_table::KeyTable, slab::NONE};

/// One symbol.
pub(crate) struct Book {
    pub(crate) symbol: Symbol,
    /// Bids and asks.
    ladders: [Ladder; 2],
}

/// The ladder in which an order of this side rests.
fn own(side: u8) -> usize {
    usize::from(!admit::is_buy(side))
}

/// The key of a price for an order of this side: lower is better.
pub(crate) fn key_of(side: u8, price: u64) -> u32 {
    let price = u32::try_from(price).unwrap_or(KEY_MAX).min(KEY_MAX);
    if admit::is_buy(side) { KEY_MAX - price } else { price }
}

/// The price of a key.
pub(crate) fn price_of(side: u8, key: u32) -> u64 {
    u64::from(if admit::is_buy(side) { KEY_MAX - key } else { key })
}

pub(crate) struct Books {
    books: Vec<Book>,
    by_symbol: KeyTable,
    levels: Levels,
    /// Symbols beyond the listed ones that may still be opened.
    openable: usize,
}

impl Books {
    pub(crate) fn new(symbols: &[Symbol], openable: usize, orders_max: usize) -> Self {
        let mut books = Self {
            books: Vec::with_capacity(symbols.len()),
            by_symbol: KeyTable::new(symbols.len() + openable),
            levels: Levels::new(orders_max),
            openable: symbols.len() + openable,
        };
        for symbol in symbols {
            books.find_or_open(*symbol);
        }
        books.openable = openable;
        books
    }

    pub(crate) fn find(&self, symbol: Symbol) -> Option<u32> {
        self.by_symbol.get(admit::symbol_key(symbol), |book| self.at(book).symbol == symbol)
    }

    /// The book of a symbol; a new one if the venue may open books for unlisted symbols.
    pub(crate) fn find_or_open(&mut self, symbol: Symbol) -> Option<u32> {
        if let Some(book) = self.find(symbol) {
            return Some(book);
        }
        if self.openable == 0 {
            return None;
        }
        self.openable -= 1;
        let book = self.books.len() as u32;
        self.books.push(Book { symbol, ladders: [Ladder::new(), Ladder::new()] });
        let inserted = self.by_symbol.insert(admit::symbol_key(symbol), book);
        assert!(inserted, "the table has a place for every symbol that may be opened");
        Some(book)
    }

    pub(crate) fn at(&self, book: u32) -> &Book {
        &self.books[book as usize]
    }

    /// The best level that an order of this side could trade with, and its oldest order, if the price is good enough.
    #[inline]
    pub(crate) fn opposite(&self, book: u32, side: u8, key_max: u32) -> Option<(&Level, u32)> {
        let level = self.levels.at(self.books[book as usize].ladders[1 - own(side)].best()?);
        (level.key <= key_max).then_some((level, level.oldest))
    }

    /// Adds an order at the end of the queue for this key.
    pub(crate) fn rest(&mut self, orders: &mut Orders, mut order: Order, key: u32) {
        let ladder = &mut self.books[order.book as usize].ladders[own(order.side)];
        order.level = self.levels.find_or_add(ladder, key);
        let level = self.levels.at_mut(order.level);
        let older = level.newest;
        let place = orders.insert(order, older);
        level.shares += u64::from(order.leaves);
        level.orders += 1;
        level.newest = place;
        match older {
            NONE => level.oldest = place,
            older => orders.links(older).newer = place,
        }
    }

    /// Removes an order from its queue and from the venue; returns its last state.
    pub(crate) fn take_out(&mut self, orders: &mut Orders, place: u32) -> Order {
        let (order, links) = orders.remove(place);
        let level = self.levels.at_mut(order.level);
        level.shares -= u64::from(order.leaves);
        level.orders -= 1;
        if level.orders == 0 {
            let ladder = &mut self.books[order.book as usize].ladders[own(order.side)];
            self.levels.remove(ladder, order.level);
            return order;
        }
        match links.older {
            NONE => level.oldest = links.newer,
            older => orders.links(older).newer = links.newer,
        }
        match links.newer {
            NONE => level.newest = links.older,
            newer => orders.links(newer).older = links.older,
        }
        order
    }

    /// Reduces an order's shares; it keeps its place in the queue. Some shares must remain.
    pub(crate) fn lessen(&mut self, orders: &mut Orders, place: u32, less: u32) {
        let order = orders.at_mut(place);
        order.leaves -= less;
        self.levels.at_mut(order.level).shares -= u64::from(less);
    }

    /// The price levels of a symbol, best first.
    pub(crate) fn quotes(&self, book: u32, side: u8) -> impl Iterator<Item = Quote> + '_ {
        self.levels.iter(&self.books[book as usize].ladders[own(side)]).map(move |level| Quote {
            price: price_of(side, level.key),
            shares: level.shares,
            orders: level.orders,
        })
    }
}
