//! The value and the symbols of an account's live orders. An order is added when it passes the checks, so orders in
//! flight count; the venue's messages remove it.
//!
//! A live order and its replacements that the venue has not answered, including replacements of a replacement, form a
//! chain. At most one of them is ever live, and it is not yet known which: so a chain counts as its most valuable
//! member. It ends with its live order, because the venue then ignores the pending replacements.

use weir_proto::ouch::{AiqCanceled, Canceled, Outbound, Symbol};

use crate::{
    account::AccountId,
    admit,
    key_table::KeyTable,
    slab::{NONE, Slab},
};

/// Most unanswered replacements of one order.
pub(super) const UNANSWERED_MAX: usize = 64;

/// A live order as risk sees it, or a pending replacement.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenOrder {
    pub(super) account: AccountId,
    pub(super) user_ref_num: u32,
    pub(super) symbol: Symbol,
    /// As in its message.
    pub(super) side: u8,
    /// The price at which a share is counted.
    pub(super) price: u64,
    pub(super) leaves: u32,
    /// Executed shares, including those of the orders that it replaced; `None`: unknown.
    pub(super) filled: Option<u32>,
}

impl OpenOrder {
    /// The total of its shares, open and executed, as a modification counts them.
    pub(super) fn size(&self) -> Option<u32> {
        self.filled.map(|filled| self.leaves.saturating_add(filled))
    }

    pub(super) fn value(&self) -> u64 {
        value(self.price, self.leaves)
    }
}

/// Price times shares, in ten-thousandths of the currency. At most about 2^51.
pub(super) fn value(price: u64, shares: u32) -> u64 {
    price.saturating_mul(shares.into())
}

/// The change of the value of an account's orders by a venue message: to be added and subtracted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) more: u64,
    pub(super) less: u64,
    /// An execution of a known order: its price is the symbol's price now.
    pub(super) traded: Option<Trade>,
}

/// An execution of a known order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trade {
    /// The symbol, in its canonical form.
    pub symbol: Symbol,
    /// The side of the order, as in its message.
    pub side: u8,
    /// Executed shares.
    pub shares: u32,
    /// Four implied decimals.
    pub price: u64,
}

impl Change {
    fn between(before: u64, after: u64) -> Self {
        Self { more: after.saturating_sub(before), less: before.saturating_sub(after), traded: None }
    }
}

/// An order in its chain.
#[derive(Clone, Copy)]
struct Member {
    order: OpenOrder,
    /// The live order, which is first in the chain.
    head: u32,
    next: u32,
    /// Valid in the head: the value that the chain counts as.
    counted: u64,
}

pub(super) struct OpenOrders {
    table: KeyTable,
    members: Slab<Member>,
}

impl OpenOrders {
    pub(super) fn new(orders_max: usize) -> Self {
        Self { table: KeyTable::new(orders_max), members: Slab::new(orders_max) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.table.len() == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.members.is_full()
    }

    /// The symbol of each order.
    pub(super) fn symbols(&self) -> impl Iterator<Item = Symbol> + '_ {
        self.members.iter().map(|member| member.order.symbol)
    }

    pub(super) fn find(&self, account: AccountId, number: u32) -> Option<&OpenOrder> {
        Some(&self.members.at(self.place(account, number)?).order)
    }

    /// Adds an order; returns its value. There must be room. If the number exists already, its order stays.
    pub(super) fn insert(&mut self, order: OpenOrder) -> u64 {
        if self.find(order.account, order.user_ref_num).is_some() {
            return 0;
        }
        self.add(order, NONE).map_or(0, |place| self.recount(place).more)
    }

    /// How much more an order's chain would count as with another member of this value. `None` if the order is
    /// unknown.
    pub(super) fn more_with(&self, account: AccountId, number: u32, value: u64) -> Option<u64> {
        let head = self.members.at(self.place(account, number)?).head;
        Some(value.saturating_sub(self.members.at(head).counted))
    }

    /// Adds a replacement; returns how much more its chain counts as. `None`: there is no room for it.
    pub(super) fn insert_replacement(&mut self, original: u32, order: OpenOrder) -> Option<u64> {
        if self.find(order.account, order.user_ref_num).is_some() {
            return Some(0);
        }
        let head = self.members.at(self.place(order.account, original)?).head;
        if self.chain(head).count() > UNANSWERED_MAX {
            return None;
        }
        self.add(order, head)?;
        Some(self.recount(head).more)
    }

    /// Applies a venue message about an order of this account.
    pub(super) fn follow(&mut self, account: AccountId, message: &Outbound) -> Change {
        match message {
            Outbound::Accepted(accepted) if accepted.order_state == b'D' => {
                self.end(account, accepted.user_ref_num)
            }
            Outbound::Rejected(rejected) => self.end(account, rejected.user_ref_num),
            Outbound::Canceled(Canceled { user_ref_num, quantity, .. })
            | Outbound::AiqCanceled(AiqCanceled { user_ref_num, quantity, .. }) => {
                let place = self.place(account, *user_ref_num);
                place.map(|place| self.lessen(place, *quantity)).unwrap_or_default()
            }
            Outbound::Modified(modified) => {
                let place = self.place(account, modified.user_ref_num);
                place.map(|place| self.leave(place, modified.quantity)).unwrap_or_default()
            }
            Outbound::Executed(executed) => {
                let place = self.place(account, executed.user_ref_num);
                let traded = place.map(|place| self.fill(place, executed.quantity, executed.price));
                // The shares that were open at the order's price are now held at the trade's price. If the order has
                // already ended, it had no open shares, but the trade still counts.
                let change = place.map(|place| self.lessen(place, executed.quantity)).unwrap_or_default();
                let more = change.more.saturating_add(value(executed.price, executed.quantity));
                Change { more, traded, ..change }
            }
            Outbound::Replaced(replaced) => {
                let Some(original) = self.place(account, replaced.original_user_ref_num) else {
                    return Change::default();
                };
                // At any price it counts at the price that was used when it passed.
                let asked = self.find(account, replaced.user_ref_num).map(|order| order.price);
                let price = if admit::is_market(replaced.price) {
                    asked.unwrap_or(self.members.at(original).order.price)
                } else {
                    replaced.price
                };
                let order = OpenOrder {
                    account,
                    user_ref_num: replaced.user_ref_num,
                    symbol: replaced.symbol,
                    side: replaced.side,
                    price,
                    leaves: replaced.quantity,
                    filled: self.members.at(original).order.filled,
                };
                let change = self.replace(original, order);
                if replaced.order_state != b'D' {
                    return change;
                }
                let end = self.end(account, replaced.user_ref_num);
                Change { more: change.more + end.more, less: change.less + end.less, traded: None }
            }
            _ => Change::default(),
        }
    }

    /// Ends an order, and with a live one all pending replacements of it; or removes a replacement that had no
    /// effect.
    pub(super) fn end(&mut self, account: AccountId, number: u32) -> Change {
        self.place(account, number).map(|place| self.end_at(place)).unwrap_or_default()
    }

    fn end_at(&mut self, place: u32) -> Change {
        let Member { head, counted, .. } = *self.members.at(place);
        if place == head {
            self.forget_all(head);
            return Change::between(counted, 0);
        }
        self.unlink(head, place);
        self.forget(place);
        self.recount(head)
    }

    fn place(&self, account: AccountId, user_ref_num: u32) -> Option<u32> {
        self.table.get(account.key(user_ref_num), |place| {
            let order = &self.members.at(place).order;
            order.user_ref_num == user_ref_num && order.account == account
        })
    }

    fn lessen(&mut self, place: u32, shares: u32) -> Change {
        let leaves = self.members.at(place).order.leaves;
        self.leave(place, leaves.saturating_sub(shares))
    }

    /// Sets the open shares. The venue may report more than before; then these count.
    fn leave(&mut self, place: u32, leaves: u32) -> Change {
        let member = self.members.at_mut(place);
        member.order.leaves = leaves;
        let head = member.head;
        if leaves == 0 { self.end_at(place) } else { self.recount(head) }
    }

    /// Records executed shares; returns the trade.
    fn fill(&mut self, place: u32, shares: u32, price: u64) -> Trade {
        let order = &mut self.members.at_mut(place).order;
        order.filled = order.filled.map(|filled| filled.saturating_add(shares));
        Trade { symbol: order.symbol, side: order.side, shares, price }
    }

    /// Makes an order the head of its chain, in place of the original.
    fn replace(&mut self, original: u32, order: OpenOrder) -> Change {
        let head = self.members.at(original).head;
        let counted = self.members.at(head).counted;
        let mut rest = self.unlink(head, original);
        self.forget(original);
        if let Some(asked) = self.place(order.account, order.user_ref_num) {
            if self.members.at(asked).head != head {
                // The venue has used a number twice. That order is already followed.
                self.forget_all(rest);
                return Change::between(counted, 0);
            }
            rest = self.unlink(rest, asked);
            self.forget(asked);
        }
        let Some(place) = self.add(order, NONE) else { return Change::between(counted, 0) };
        self.members.at_mut(place).next = rest;
        let mut at = rest;
        while at != NONE {
            let member = self.members.at_mut(at);
            (member.head, at) = (place, member.next);
        }
        self.recount(place);
        Change::between(counted, self.members.at(place).counted)
    }

    /// The places of a chain.
    fn chain(&self, head: u32) -> impl Iterator<Item = u32> {
        let next = |place: u32| Some(place).filter(|place| *place != NONE);
        std::iter::successors(next(head), move |place| next(self.members.at(*place).next))
    }

    /// Recomputes the value that a chain counts as.
    fn recount(&mut self, head: u32) -> Change {
        let dearest = self.chain(head).map(|place| self.members.at(place).order.value()).max().unwrap_or(0);
        let before = std::mem::replace(&mut self.members.at_mut(head).counted, dearest);
        Change::between(before, dearest)
    }

    /// Adds an order with a new number behind the head of a chain, or as the head of a new one.
    fn add(&mut self, order: OpenOrder, head: u32) -> Option<u32> {
        let next = if head == NONE { NONE } else { self.members.at(head).next };
        let place = self.members.insert(Member { order, head, next, counted: 0 })?;
        let first = if head == NONE { place } else { head };
        self.members.at_mut(place).head = first;
        if first != place {
            self.members.at_mut(first).next = place;
        }
        let inserted = self.table.insert(order.account.key(order.user_ref_num), place);
        assert!(inserted, "the table has as many places as the slab");
        Some(place)
    }

    /// Removes a member from its chain; returns the first of the remaining ones.
    fn unlink(&mut self, first: u32, place: u32) -> u32 {
        let next = self.members.at(place).next;
        if first == place {
            return next;
        }
        let before = self.chain(first).find(|at| self.members.at(*at).next == place);
        if let Some(before) = before {
            self.members.at_mut(before).next = next;
        }
        first
    }

    fn forget_all(&mut self, first: u32) {
        let mut at = first;
        while at != NONE {
            let next = self.members.at(at).next;
            self.forget(at);
            at = next;
        }
    }

    fn forget(&mut self, place: u32) {
        let order = self.members.at(place).order;
        self.table.remove(order.account.key(order.user_ref_num), place);
        self.members.remove(place);
    }
}
