//! An order arrives, trades with resting orders, and rests or ends.

use weir_proto::ouch::{
    Accepted, Enter, Outbound,
    codes::{cancel_reason, liquidity},
    reject_reason,
};

use super::{
    MatchingVenue,
    books::{key_of, price_of},
    ladder::KEY_MAX,
    orders::Order,
};
use crate::{account::AccountId, admit, reply, slab::NONE, venue::Emit};

/// The price limit of an order, and the treatment of its unexecuted part.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    price: u64,
    is_immediate: bool,
}

impl Terms {
    pub(super) fn new(price: u64, time_in_force: u8) -> Self {
        // An order at any price has no price to rest at.
        Self { price, is_immediate: admit::is_immediate(time_in_force) || admit::is_market(price) }
    }

    /// The worst key on the other side at which an order of this side trades.
    fn key_max(self, side: u8) -> u32 {
        if admit::is_market(self.price) {
            KEY_MAX
        } else {
            let opposite = if admit::is_buy(side) { b'S' } else { b'B' };
            key_of(opposite, self.price)
        }
    }
}

impl MatchingVenue {
    pub(super) fn enter(&mut self, now_ns: u64, account: AccountId, enter: &Enter, emit: &mut impl Emit) {
        let book = match self.admit(account, enter) {
            Ok(book) => book,
            Err(reason) => {
                let answer = reply::rejected(now_ns, enter.user_ref_num, reason, enter.client_order_id);
                emit.emit(account, &answer);
                return;
            }
        };
        let reference = self.next_reference();
        emit.emit(account, &Outbound::Accepted(Accepted::of(enter, now_ns, reference)));
        let order = Order {
            account,
            user_ref_num: enter.user_ref_num,
            leaves: enter.quantity,
            executed: 0,
            book,
            level: NONE,
            side: enter.side,
            capacity: enter.capacity,
            cross_type: enter.cross_type,
        };
        self.execute(now_ns, order, Terms::new(enter.price, enter.time_in_force), emit);
    }

    /// The book of a new order, or the reason to refuse it.
    fn admit(&mut self, account: AccountId, enter: &Enter) -> Result<u32, u16> {
        admit::enter(enter)?;
        let live = self.orders.live_of(account).ok_or(reject_reason::PROCESSING_ERROR)?;
        let book = self.books.find_or_open(enter.symbol).ok_or(reject_reason::INVALID_SYMBOL)?;
        let is_full = self.orders.is_full() || live >= self.orders_per_account_max;
        if is_full || self.orders.find(account, enter.user_ref_num).is_some() {
            return Err(reject_reason::PROCESSING_ERROR);
        }
        Ok(book)
    }

    /// Trades an order that was accepted or has replaced another; then its rest stays in the book or is cancelled.
    pub(super) fn execute(&mut self, now_ns: u64, mut order: Order, terms: Terms, emit: &mut impl Emit) {
        let key_max = terms.key_max(order.side);
        while order.leaves > 0 {
            let Some((level, place)) = self.books.opposite(order.book, order.side, key_max) else { break };
            let key = level.key;
            let resting = *self.orders.at(place);
            let quantity = order.leaves.min(resting.leaves);
            order.leaves -= quantity;
            order.executed += quantity;
            if quantity == resting.leaves {
                self.books.take_out(&mut self.orders, place);
            } else {
                self.books.lessen(&mut self.orders, place, quantity);
                self.orders.at_mut(place).executed += quantity;
            }
            let price = price_of(resting.side, key);
            let number = self.match_number;
            self.match_number += 1;
            let (added, removed) = (liquidity::ADDED, liquidity::REMOVED);
            let there = reply::executed(now_ns, resting.user_ref_num, quantity, price, added, number);
            emit.emit(resting.account, &there);
            let here = reply::executed(now_ns, order.user_ref_num, quantity, price, removed, number);
            emit.emit(order.account, &here);
        }
        if order.leaves == 0 {
            return;
        }
        if terms.is_immediate {
            let reason = cancel_reason::IMMEDIATE;
            emit.emit(order.account, &reply::canceled(now_ns, order.user_ref_num, order.leaves, reason));
        } else {
            self.books.rest(&mut self.orders, order, key_of(order.side, terms.price));
        }
    }

    pub(super) fn next_reference(&mut self) -> u64 {
        let reference = self.reference;
        self.reference += 1;
        reference
    }
}
