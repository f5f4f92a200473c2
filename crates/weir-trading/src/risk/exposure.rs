//! What the live orders of an account are worth, and what they are about. Orders are taken in when they pass the
//! checks, so those under way count; they leave with the venue's messages.
//!
//! A live order and the replacements of it that the venue has not answered, also those of a replacement, are a chain.
//! At most one of them is ever live, and nobody knows yet which it will be: so a chain counts as much as the dearest.
//! It ends with its live order, because what would have replaced that is ignored then.

use weir_proto::ouch::{AiqCanceled, Canceled, Outbound, Symbol};

use crate::{
    account::AccountId,
    admit,
    key_table::KeyTable,
    slab::{NONE, Slab},
};

/// Most replacements of one order that the venue has not answered.
pub(super) const UNANSWERED_MAX: usize = 64;

/// A live order as risk sees it, or one that is to replace it.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenOrder {
    pub(super) account: AccountId,
    pub(super) user_ref_num: u32,
    pub(super) symbol: Symbol,
    /// What a share counts for.
    pub(super) price: u64,
    pub(super) leaves: u32,
    /// Shares that were executed, also of what it has replaced; `None`: nobody knows.
    pub(super) filled: Option<u32>,
}

impl OpenOrder {
    /// How many shares it may come to in all, as a modification counts them.
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

/// What a message of the venue did to the value of an account's orders: to be added and subtracted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) more: u64,
    pub(super) less: u64,
    /// A trade: it is the symbol's price now.
    pub(super) traded: Option<(Symbol, u64)>,
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
    /// Of the head: what the chain counts for.
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

    pub(super) fn find(&self, account: AccountId, number: u32) -> Option<&OpenOrder> {
        Some(&self.members.at(self.place(account, number)?).order)
    }

    /// Takes an order in; gives what it is worth. There must be room. A number that is there already keeps its order.
    pub(super) fn insert(&mut self, order: OpenOrder) -> u64 {
        if self.find(order.account, order.user_ref_num).is_some() {
            return 0;
        }
        self.add(order, NONE).map_or(0, |place| self.recount(place).more)
    }

    /// How much more an order and its replacements count for with one of this value beside them. `None` if the order
    /// is not known.
    pub(super) fn more_with(&self, account: AccountId, number: u32, value: u64) -> Option<u64> {
        let head = self.members.at(self.place(account, number)?).head;
        Some(value.saturating_sub(self.members.at(head).counted))
    }

    /// Takes a replacement in; gives how much more its chain counts for. `None`: there is no room for it.
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

    /// Follows a message of the venue about an order of this account.
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
                let symbol = place.map(|place| self.fill(place, executed.quantity));
                // What was open at the order's price is now held at the trade's. Of an order that is over nothing was
                // open, and it was traded all the same.
                let change = place.map(|place| self.lessen(place, executed.quantity)).unwrap_or_default();
                let more = change.more.saturating_add(value(executed.price, executed.quantity));
                Change { more, traded: symbol.map(|symbol| (symbol, executed.price)), ..change }
            }
            Outbound::Replaced(replaced) => {
                let Some(original) = self.place(account, replaced.original_user_ref_num) else {
                    return Change::default();
                };
                // At any price it counts for what it did when it passed.
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

    /// An order ends, and with a live one all that would have replaced it; or a replacement comes to nothing.
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

    /// So many shares are open now. The venue may say more than before, and then they count.
    fn leave(&mut self, place: u32, leaves: u32) -> Change {
        let member = self.members.at_mut(place);
        member.order.leaves = leaves;
        let head = member.head;
        if leaves == 0 { self.end_at(place) } else { self.recount(head) }
    }

    /// So many shares were executed: of this symbol.
    fn fill(&mut self, place: u32, shares: u32) -> Symbol {
        let order = &mut self.members.at_mut(place).order;
        order.filled = order.filled.map(|filled| filled.saturating_add(shares));
        order.symbol
    }

    /// An order stands instead of another one of its chain, at the chain's head.
    fn replace(&mut self, original: u32, order: OpenOrder) -> Change {
        let head = self.members.at(original).head;
        let counted = self.members.at(head).counted;
        let mut rest = self.unlink(head, original);
        self.forget(original);
        if let Some(asked) = self.place(order.account, order.user_ref_num) {
            if self.members.at(asked).head != head {
                // The venue uses a number twice. That order is followed already.
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

    /// Finds anew what a chain counts for.
    fn recount(&mut self, head: u32) -> Change {
        let dearest = self.chain(head).map(|place| self.members.at(place).order.value()).max().unwrap_or(0);
        let before = std::mem::replace(&mut self.members.at_mut(head).counted, dearest);
        Change::between(before, dearest)
    }

    /// Adds an order whose number is not there behind the head of a chain, or as the head of one of its own.
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

    /// Takes a member out of its chain; gives the first of those that are left.
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
