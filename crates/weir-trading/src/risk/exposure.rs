//! What the live orders of an account are worth, and what they are about. Orders are taken in when they pass the
//! checks, so those under way count; they leave with the venue's messages.

use weir_proto::ouch::{Outbound, Symbol};

use crate::{AccountId, admit, key_table::KeyTable, slab::Slab};

/// A live order as risk sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenOrder {
    pub(super) account: AccountId,
    pub(super) user_ref_num: u32,
    pub(super) symbol: Symbol,
    /// What a share counts for.
    pub(super) price: u64,
    pub(super) leaves: u32,
}

impl OpenOrder {
    pub(super) fn value(&self) -> u64 {
        value(self.price, self.leaves)
    }
}

/// Price times shares, in ten-thousandths of the currency. At most about 2^51.
pub(super) fn value(price: u64, shares: u32) -> u64 {
    price.saturating_mul(shares.into())
}

/// What a message of the venue did to the value of an account's orders: to be added and subtracted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) more: u64,
    pub(super) less: u64,
    /// A trade: it is the symbol's price now.
    pub(super) traded: Option<(Symbol, u64)>,
}

pub(super) struct OpenOrders {
    table: KeyTable,
    orders: Slab<OpenOrder>,
}

impl OpenOrders {
    pub(super) fn new(orders_max: usize) -> Self {
        Self { table: KeyTable::new(orders_max), orders: Slab::new(orders_max) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.table.len() == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.orders.is_full()
    }

    pub(super) fn find(&self, account: AccountId, number: u32) -> Option<&OpenOrder> {
        Some(self.orders.at(self.place(account, number)?))
    }

    /// Takes an order in; gives what it is worth. There must be room. A number that is there already keeps its order.
    pub(super) fn insert(&mut self, order: OpenOrder) -> u64 {
        let OpenOrder { account, user_ref_num, .. } = order;
        if self.find(account, user_ref_num).is_some() {
            return 0;
        }
        let Some(place) = self.orders.insert(order) else { return 0 };
        let inserted = self.table.insert(account.key(user_ref_num), place);
        assert!(inserted, "the table has as many places as the slab");
        order.value()
    }

    /// Follows a message of the venue about an order of this account.
    pub(super) fn follow(&mut self, account: AccountId, message: &Outbound) -> Change {
        match message {
            Outbound::Accepted(accepted) if accepted.order_state == b'D' => {
                self.end(account, accepted.user_ref_num)
            }
            Outbound::Rejected(rejected) => self.end(account, rejected.user_ref_num),
            Outbound::Canceled(canceled) => self.lessen(account, canceled.user_ref_num, canceled.quantity),
            Outbound::AiqCanceled(canceled) => self.lessen(account, canceled.user_ref_num, canceled.quantity),
            Outbound::Modified(modified) => {
                let leaves = self.find(account, modified.user_ref_num).map_or(0, |order| order.leaves);
                self.lessen(account, modified.user_ref_num, leaves.saturating_sub(modified.quantity))
            }
            Outbound::Executed(executed) => {
                let Some(order) = self.find(account, executed.user_ref_num) else { return Change::default() };
                let symbol = order.symbol;
                // What was open at the order's price is now held at the trade's.
                let less = self.lessen(account, executed.user_ref_num, executed.quantity);
                let more = value(executed.price, executed.quantity);
                Change { more, traded: Some((symbol, executed.price)), ..less }
            }
            Outbound::Replaced(replaced) => {
                let Some(original) = self.find(account, replaced.original_user_ref_num) else {
                    return Change::default();
                };
                let price = if admit::is_market(replaced.price) { original.price } else { replaced.price };
                let order = OpenOrder {
                    account,
                    user_ref_num: replaced.user_ref_num,
                    symbol: replaced.symbol,
                    price,
                    leaves: replaced.quantity,
                };
                let change = self.end(account, replaced.original_user_ref_num);
                let more = self.insert(order);
                Change { more, ..change }
            }
            _ => Change::default(),
        }
    }

    fn place(&self, account: AccountId, user_ref_num: u32) -> Option<u32> {
        self.table.get(account.key(user_ref_num), |place| {
            let order = self.orders.at(place);
            order.user_ref_num == user_ref_num && order.account == account
        })
    }

    fn lessen(&mut self, account: AccountId, number: u32, shares: u32) -> Change {
        let Some(place) = self.place(account, number) else { return Change::default() };
        let order = self.orders.at_mut(place);
        let shares = shares.min(order.leaves);
        order.leaves -= shares;
        let less = value(order.price, shares);
        if order.leaves == 0 {
            self.end(account, number);
        }
        Change { less, ..Change::default() }
    }

    fn end(&mut self, account: AccountId, number: u32) -> Change {
        let Some(place) = self.place(account, number) else { return Change::default() };
        self.table.remove(account.key(number), place);
        Change { less: self.orders.remove(place).value(), ..Change::default() }
    }
}
