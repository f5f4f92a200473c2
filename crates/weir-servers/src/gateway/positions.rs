//! The open orders and executions of accounts, according to the journals, and the last trade of each symbol. Journals
//! are read one after the other, so an execution may be read before its order.

use foldhash::HashMap;
use weir_proto::ouch::{Inbound, Outbound, Symbol};
use weir_trading::{AccountId, Restored};

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
}

/// The executed value of an account in one session with the clients, the last one that had executions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Executed {
    /// The number of sessions that had ended before.
    pub(super) generation: u16,
    /// In ten-thousandths of the currency.
    pub(super) value: u64,
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
    pub(super) fn sent(&mut self, key: Key, raw: &[u8]) {
        let (symbol, price, shares) = match Inbound::decode(raw) {
            Ok(Inbound::Enter(enter, _)) => (enter.symbol, enter.price, enter.quantity),
            Ok(Inbound::Replace(replace, _)) => {
                let Some(original) = self.orders.get(&(key.0, replace.original_user_ref_num)) else { return };
                (original.symbol, replace.price, replace.quantity)
            }
            _ => return,
        };
        let restored = Restored { user_ref_num: key.1, symbol, price, shares, original: None };
        self.orders.insert(key, restored);
        if let Some(trade) = self.early_trades.remove(&key) {
            self.note_trade(symbol, trade);
        }
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

    /// Records an execution that a client was informed of. Each is in one journal, that of the client's home at the
    /// time.
    pub(super) fn note_execution(
        &mut self,
        (t_ns, generation): (u64, u16),
        account: AccountId,
        message: &[u8],
    ) {
        let Ok((Outbound::Executed(executed), _)) = Outbound::decode(message) else { return };
        let value = executed.price.saturating_mul(executed.quantity.into());
        self.executed.entry(account).or_default().add(generation, value);
        let key = (account.0, executed.user_ref_num);
        match self.orders.get(&key).map(|order| order.symbol) {
            Some(symbol) => self.note_trade(symbol, (t_ns, executed.price)),
            None => {
                let last = self.early_trades.entry(key).or_default();
                *last = (t_ns, executed.price).max(*last);
            }
        }
    }

    /// The price of each symbol's last trade, or the one set since; 0 if it was removed.
    pub(super) fn prices(&self) -> Vec<(Symbol, u64)> {
        self.trades.iter().map(|(symbol, (_, price))| (*symbol, *price)).collect()
    }
}
