//! The open orders and executions of accounts, according to the journals, and the last trade of each symbol. Journals
//! are read one after the other, so an execution may be read before its order.

mod saved;

use foldhash::HashMap;
use weir_proto::ouch::{self, Inbound, Outbound, Symbol, codes::side::BUY};
use weir_trading::{AccountId, Position, Restored, Unattributed};

use super::{
    recovery::Key,
    reference_prices::{Prices, resolve},
};

/// Collects the positions.
#[derive(Default)]
pub(super) struct Positions {
    /// Orders that were sent, as they were. Some of them have ended.
    pub(super) orders: HashMap<Key, Restored>,
    /// The last trade of orders whose records have not been read: its time and price.
    early_trades: HashMap<Key, (u64, u64)>,
    /// The last trade by symbol, or the price that was set; 0 if it was removed.
    trades: HashMap<Symbol, (u64, u64)>,
    /// The executions of each account.
    pub(super) executed: HashMap<AccountId, Executed>,
    /// Executed shares, of all sessions.
    shares: HashMap<(AccountId, Symbol), Position>,
    /// Executed shares of orders whose records have not been read.
    early_shares: HashMap<Key, u64>,
    /// Broken trades, and executed shares that found no room.
    unattributed: HashMap<AccountId, Unattributed>,
}

/// Most pairs of account and symbol with executed shares; those of further ones are unattributed. About 60 MiB.
const POSITIONS_MAX: usize = 1 << 20;

/// What the journals say about executed shares.
#[derive(Clone, Debug, Default)]
pub(super) struct ExecutedShares {
    pub(super) positions: Vec<Position>,
    pub(super) unattributed: Vec<(AccountId, Unattributed)>,
}

/// The executed value of an account in one session with the clients, the last one that had executions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Executed {
    /// The number of sessions that had ended before.
    pub(super) generation: u16,
    /// In ten-thousandths of the currency.
    pub(super) value: u64,
}

impl ExecutedShares {
    /// Those of the accounts whose home is this worker.
    pub(super) fn of_home(&self, workers: usize, home: usize) -> Self {
        let is_own = |account: AccountId| account.0 as usize % workers == home;
        let positions = self.positions.iter().filter(|position| is_own(position.account));
        let unattributed = self.unattributed.iter().filter(|(account, _)| is_own(*account));
        Self { positions: positions.copied().collect(), unattributed: unattributed.copied().collect() }
    }

    /// Adds them to what a worker has.
    pub(super) fn add_to(&self, positions: &mut weir_trading::Positions) {
        self.positions.iter().for_each(|position| positions.add_both(position));
        for (account, rest) in &self.unattributed {
            positions.add_unattributed(*account, rest.shares);
            positions.add_broken(*account, rest.broken_trades);
        }
    }
}

impl Executed {
    fn add(&mut self, generation: u16, value: u64) {
        if generation > self.generation {
            *self = Self { generation, value: 0 };
        }
        if generation == self.generation {
            self.value = self.value.saturating_add(value);
        }
    }
}

impl Positions {
    /// Stores the terms of an order; a replacement has the symbol and side of its original.
    pub(super) fn sent(&mut self, key: Key, message: &Inbound<'_>) {
        let (symbol, side, price, shares) = match message {
            Inbound::Enter(enter, _) => (enter.symbol, enter.side, enter.price, enter.quantity),
            Inbound::Replace(replace, _) => {
                let Some(original) = self.orders.get(&(key.0, replace.original_user_ref_num)) else { return };
                (original.symbol, original.side, replace.price, replace.quantity)
            }
            Inbound::Cancel(_) | Inbound::Modify(_) | Inbound::AccountQuery => return,
        };
        let restored = Restored { user_ref_num: key.1, symbol, side, price, shares, original: None };
        self.orders.insert(key, restored);
        if let Some(trade) = self.early_trades.remove(&key) {
            self.note_trade(symbol, trade);
        }
        if let Some(early) = self.early_shares.remove(&key) {
            self.note_shares(AccountId(key.0), (symbol, side), early);
        }
    }

    fn note_shares(&mut self, account: AccountId, (symbol, side): (Symbol, u8), shares: u64) {
        let symbol = symbol.canonical();
        let key = (account, symbol);
        if self.shares.len() >= POSITIONS_MAX && !self.shares.contains_key(&key) {
            return self.leave_shares(account, shares);
        }
        let none = Position { account, symbol, bought: 0, sold: 0 };
        let position = self.shares.entry(key).or_insert(none);
        let sum = if side == BUY { &mut position.bought } else { &mut position.sold };
        *sum = sum.saturating_add(shares);
    }

    /// From here on numbers name other orders. An execution whose order has ended before, or was not read, must not
    /// count for the next order with its number: its symbol stays unknown, and it gives no symbol a price.
    pub(super) fn forget_numbers(&mut self) {
        self.orders.clear();
        self.early_trades.clear();
        self.leave_early_shares();
    }

    /// The orders of these will not be read.
    fn leave_early_shares(&mut self) {
        for ((account, _), shares) in std::mem::take(&mut self.early_shares) {
            self.leave_shares(AccountId(account), shares);
        }
    }

    fn leave_shares(&mut self, account: AccountId, shares: u64) {
        let rest = self.unattributed.entry(account).or_default();
        rest.shares = rest.shares.saturating_add(shares);
    }

    /// Executed shares since the first record. In the order of their accounts and symbols.
    pub(super) fn executed_shares(&mut self) -> ExecutedShares {
        let mut positions: Vec<Position> = std::mem::take(&mut self.shares).into_values().collect();
        positions.sort_unstable_by_key(|position| (position.account, position.symbol.0));
        self.leave_early_shares();
        let unattributed = std::mem::take(&mut self.unattributed).into_iter().collect();
        ExecutedShares { positions, unattributed }
    }

    /// Records prices that were set; they override earlier trades.
    pub(super) fn priced(&mut self, t_ns: u64, prices: &Prices) {
        // They were valid when they were set.
        for (symbol, price) in resolve(prices).unwrap_or_default() {
            self.note_trade(symbol, (t_ns, price));
        }
    }

    fn note_trade(&mut self, symbol: Symbol, trade: (u64, u64)) {
        // All forms of a symbol have one price.
        let last = self.trades.entry(symbol.canonical()).or_default();
        *last = trade.max(*last);
    }

    /// Records an execution, or a broken trade, that a client was informed of. Each is in one journal, that of the
    /// client's home at the time.
    pub(super) fn note_execution(
        &mut self,
        (t_ns, generation): (u64, u16),
        account: AccountId,
        message: &Outbound,
    ) {
        let Some(executed) = self.note_value(generation, account, message) else { return };
        let key = (account.0, executed.user_ref_num);
        match self.orders.get(&key).map(|order| (order.symbol, order.side)) {
            Some((symbol, side)) => {
                self.note_trade(symbol, (t_ns, executed.price));
                self.note_shares(account, (symbol, side), executed.quantity.into());
            }
            None => {
                let early = self.early_shares.entry(key).or_default();
                *early = early.saturating_add(executed.quantity.into());
                let last = self.early_trades.entry(key).or_default();
                *last = (t_ns, executed.price).max(*last);
            }
        }
    }

    /// The same for a session with clients whose numbers name other orders by now.
    pub(super) fn note_ended_execution(&mut self, generation: u16, account: AccountId, message: &Outbound) {
        if let Some(executed) = self.note_value(generation, account, message) {
            self.leave_shares(account, executed.quantity.into());
        }
    }

    /// Counts what needs no order: the value of an execution, which is returned, and broken trades.
    fn note_value<'m>(
        &mut self,
        generation: u16,
        account: AccountId,
        message: &'m Outbound,
    ) -> Option<&'m ouch::Executed> {
        match message {
            Outbound::Executed(executed) => {
                let value = executed.price.saturating_mul(executed.quantity.into());
                self.executed.entry(account).or_default().add(generation, value);
                Some(executed)
            }
            Outbound::BrokenTrade(_) => {
                self.unattributed.entry(account).or_default().broken_trades += 1;
                None
            }
            _ => None,
        }
    }

    /// The price of each symbol's last trade, or the one set since; 0 if it was removed.
    pub(super) fn prices(&self) -> Vec<(Symbol, u64)> {
        self.trades.iter().map(|(symbol, (_, price))| (*symbol, *price)).collect()
    }
}

#[cfg(test)]
mod tests {
    use weir_proto::ouch::{Appendage, Enter};

    use super::*;
    use crate::gateway::test_messages::enter;

    const ACCOUNT: AccountId = AccountId(1);

    /// Reads that order 1 was sent, for this symbol.
    fn sent(positions: &mut Positions, symbol: &str) {
        let Inbound::Enter(order, _) = enter(1, 100) else { panic!("it is an order") };
        let order = Enter { symbol: symbol.parse().expect("a symbol"), ..order };
        positions.sent((ACCOUNT.0, 1), &Inbound::Enter(order, Appendage::EMPTY));
    }

    fn executed(quantity: u32) -> Outbound {
        Outbound::Executed(ouch::Executed {
            timestamp_ns: 1,
            user_ref_num: 1,
            quantity,
            price: 70_000,
            liquidity: b'A',
            match_number: 1,
        })
    }

    #[test]
    fn a_late_execution_counts_for_no_order_of_the_next_session_that_has_the_same_number() {
        let mut positions = Positions::default();
        sent(&mut positions, "OLD");
        // The gateway has ended the order, and its exchange has executed it all the same.
        positions.orders.remove(&(ACCOUNT.0, 1));
        positions.note_execution((5, 0), ACCOUNT, &executed(40));
        positions.forget_numbers();
        sent(&mut positions, "NEW");
        assert!(positions.prices().is_empty(), "nothing was traded at that price");
        positions.note_execution((9, 1), ACCOUNT, &executed(10));
        // Read last, because a clock was set back.
        positions.note_ended_execution(0, ACCOUNT, &executed(3));
        let new = "NEW".parse().expect("a symbol");
        assert_eq!(positions.prices(), [(new, 70_000)]);
        let shares = positions.executed_shares();
        let held = Position { account: ACCOUNT, symbol: new, bought: 10, sold: 0 };
        let rest = Unattributed { shares: 43, ..Unattributed::default() };
        assert_eq!((shares.positions, shares.unattributed), (vec![held], vec![(ACCOUNT, rest)]));
        assert_eq!(positions.executed[&ACCOUNT], Executed { generation: 1, value: 700_000 });
    }
}
