//! Orders as values: number rules, translation, routing, venues, the book, risk. No I/O and no clock.
