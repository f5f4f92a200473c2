//! Executed shares of accounts by symbol. Pure sums: what an account had before the first execution, and what it does
//! elsewhere, is unknown here, so a position is a difference and not a holding.

use weir_proto::ouch::{Symbol, codes::side};

use crate::{account::AccountId, key_table::KeyTable, slab::Slab};

/// Executed shares of an account in one symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The account.
    pub account: AccountId,
    /// The symbol, in its canonical form.
    pub symbol: Symbol,
    /// Shares of buy orders.
    pub bought: u64,
    /// Shares of all other orders.
    pub sold: u64,
}

impl Position {
    /// Shares bought less those sold.
    pub fn net(&self) -> i64 {
        let (bought, sold) = (i128::from(self.bought), i128::from(self.sold));
        (bought - sold).clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

/// What belongs to an account and to none of its positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unattributed {
    /// Executed shares of orders whose symbol or side is unknown, or for which there was no room.
    pub shares: u64,
    /// Broken trades. Their messages do not say how many shares they had, so they are still in the positions.
    pub broken_trades: u64,
}

/// The positions of all accounts. None is ever removed.
pub struct Positions {
    table: KeyTable,
    all: Slab<Position>,
    /// By account.
    unattributed: Vec<Unattributed>,
}

impl Positions {
    /// No positions, of these accounts: valid indices are below `accounts_max`. An execution in more pairs of account
    /// and symbol than `positions_max` is counted as unattributed.
    pub fn new(accounts_max: usize, positions_max: usize) -> Self {
        Self {
            table: KeyTable::new(positions_max),
            all: Slab::new(positions_max),
            unattributed: vec![Unattributed::default(); accounts_max],
        }
    }

    /// Adds executed shares of an order of this side.
    pub fn add(&mut self, account: AccountId, symbol: Symbol, of_side: u8, shares: u64) {
        let (bought, sold) = if of_side == side::BUY { (shares, 0) } else { (0, shares) };
        self.add_both(&Position { account, symbol, bought, sold });
    }

    /// Adds what another set has of one position.
    pub fn add_both(&mut self, more: &Position) {
        let symbol = more.symbol.canonical();
        let key = key(more.account, symbol);
        let is_it = |place: u32| {
            let position = self.all.at(place);
            position.account == more.account && position.symbol == symbol
        };
        if let Some(place) = self.table.get(key, is_it) {
            let position = self.all.at_mut(place);
            position.bought = position.bought.saturating_add(more.bought);
            position.sold = position.sold.saturating_add(more.sold);
            return;
        }
        match self.all.insert(Position { symbol, ..*more }) {
            Some(place) => {
                let inserted = self.table.insert(key, place);
                assert!(inserted, "the table has as many places as the slab");
            }
            None => self.add_unattributed(more.account, more.bought.saturating_add(more.sold)),
        }
    }

    /// Adds executed shares of an order whose symbol or side is unknown.
    pub fn add_unattributed(&mut self, account: AccountId, shares: u64) {
        if let Some(rest) = self.unattributed.get_mut(account.index()) {
            rest.shares = rest.shares.saturating_add(shares);
        }
    }

    /// Counts broken trades of an account.
    pub fn add_broken(&mut self, account: AccountId, trades: u64) {
        if let Some(rest) = self.unattributed.get_mut(account.index()) {
            rest.broken_trades = rest.broken_trades.saturating_add(trades);
        }
    }

    /// The number of positions. Each keeps its place.
    pub fn len(&self) -> u32 {
        self.all.places()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The position in a place below [`Self::len`].
    pub fn at(&self, place: u32) -> Option<&Position> {
        (place < self.len()).then(|| self.all.at(place))
    }

    /// What belongs to none of an account's positions.
    pub fn unattributed(&self, account: AccountId) -> Unattributed {
        self.unattributed.get(account.index()).copied().unwrap_or_default()
    }
}

/// One key for account and symbol; the table compares the two themselves.
fn key(account: AccountId, symbol: Symbol) -> u64 {
    let symbol = u64::from_le_bytes(symbol.0).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    let mixed =
        (symbol ^ symbol >> 32).wrapping_add(u64::from(account.0).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: AccountId = AccountId(0);
    const SECOND: AccountId = AccountId(1);

    fn symbol(number: u32) -> Symbol {
        format!("S{number}").parse().expect("a symbol")
    }

    /// Bought, sold and net of a place.
    fn shares(positions: &Positions, place: u32) -> (u64, u64, i64) {
        let position = positions.at(place).expect("there is one");
        (position.bought, position.sold, position.net())
    }

    #[test]
    fn executions_add_up_by_account_symbol_and_side() {
        let mut positions = Positions::new(2, 8);
        positions.add(FIRST, symbol(1), b'B', 100);
        positions.add(FIRST, Symbol(*b"s1\0     "), b'S', 30);
        positions.add(SECOND, symbol(1), b'T', 7);
        positions.add(SECOND, symbol(1), b'E', 3);
        positions.add(FIRST, symbol(2), b'B', 5);
        assert_eq!(positions.len(), 3);
        assert_eq!(shares(&positions, 0), (100, 30, 70), "all forms of a symbol are one");
        assert_eq!(shares(&positions, 1), (0, 10, -10), "short sales are sales");
        assert_eq!(shares(&positions, 2), (5, 0, 5));
        assert_eq!(positions.at(3), None);
    }

    #[test]
    fn what_has_no_room_or_no_symbol_is_counted_and_not_lost() {
        let mut positions = Positions::new(1, 2);
        (1..=3).for_each(|number| positions.add(FIRST, symbol(number), b'B', 10));
        positions.add(FIRST, symbol(2), b'S', 4);
        positions.add_unattributed(FIRST, 5);
        positions.add_broken(FIRST, 2);
        assert_eq!((positions.len(), shares(&positions, 1)), (2, (10, 4, 6)), "those that exist go on");
        assert_eq!(positions.unattributed(FIRST), Unattributed { shares: 15, broken_trades: 2 });
        positions.add_unattributed(SECOND, 5);
        assert_eq!(positions.unattributed(SECOND), Unattributed::default(), "there is no such account");
    }

    #[test]
    fn sums_end_at_their_ranges() {
        let mut positions = Positions::new(1, 1);
        positions.add(FIRST, symbol(1), b'B', u64::MAX);
        positions.add(FIRST, symbol(1), b'B', 1);
        assert_eq!(shares(&positions, 0), (u64::MAX, 0, i64::MAX));
    }
}
