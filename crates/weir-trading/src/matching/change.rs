//! Changes to existing orders: cancelled, replaced, modified.

use weir_proto::ouch::{Cancel, Modify, Replace, codes::cancel_reason};

use super::{MatchingVenue, orders::Order, trade::Terms};
use crate::{
    account::AccountId,
    admit,
    reply::{self, Kept},
    slab::NONE,
    venue::{Emit, Handled},
};

impl MatchingVenue {
    pub(super) fn cancel(&mut self, now_ns: u64, account: AccountId, cancel: &Cancel, emit: &mut impl Emit) {
        let number = cancel.user_ref_num;
        let Some(place) = self.orders.find(account, number) else { return };
        let order = *self.orders.at(place);
        let left = cancel.quantity.saturating_sub(order.executed);
        if left >= order.leaves {
            return;
        }
        self.leave(place, left);
        emit.emit(account, &reply::canceled(now_ns, number, order.leaves - left, cancel_reason::USER));
    }

    pub(super) fn replace(
        &mut self,
        now_ns: u64,
        account: AccountId,
        replace: &Replace,
        emit: &mut impl Emit,
    ) -> Handled {
        let number = replace.user_ref_num;
        let Some(place) = self.orders.find(account, replace.original_user_ref_num) else {
            return Handled::NotConsumed;
        };
        if self.orders.find(account, number).is_some() {
            return Handled::NotConsumed;
        }
        let old = self.books.take_out(&mut self.orders, place);
        if !admit::replace(replace) || replace.quantity <= old.executed {
            let reason = cancel_reason::USER;
            emit.emit(account, &reply::canceled(now_ns, old.user_ref_num, old.leaves, reason));
            return Handled::NotConsumed;
        }
        let leaves = replace.quantity - old.executed;
        let order = Order { user_ref_num: number, leaves, level: NONE, ..old };
        let reference = self.next_reference();
        let kept = Kept {
            symbol: self.books.at(old.book).symbol,
            side: old.side,
            capacity: old.capacity,
            cross_type: old.cross_type,
        };
        emit.emit(account, &reply::replaced(now_ns, replace, kept, leaves, reference));
        self.execute(now_ns, order, Terms::new(replace.price, replace.time_in_force), emit);
        Handled::Consumed
    }

    pub(super) fn modify(&mut self, now_ns: u64, account: AccountId, modify: &Modify, emit: &mut impl Emit) {
        let number = modify.user_ref_num;
        let Some(place) = self.orders.find(account, number) else { return };
        let order = *self.orders.at(place);
        let is_same_way = matches!(modify.side, b'B' | b'S' | b'T' | b'E')
            && admit::is_buy(modify.side) == admit::is_buy(order.side);
        if !is_same_way || modify.quantity == 0 {
            return;
        }
        let left = modify.quantity.saturating_sub(order.executed).min(order.leaves);
        self.leave(place, left);
        if left == 0 {
            emit.emit(account, &reply::canceled(now_ns, number, order.leaves, cancel_reason::USER));
            return;
        }
        self.orders.at_mut(place).side = modify.side;
        emit.emit(account, &reply::modified(now_ns, number, modify.side, left));
    }

    /// Lowers the open shares to `left`; zero ends the order.
    fn leave(&mut self, place: u32, left: u32) {
        let leaves = self.orders.at(place).leaves;
        if left == 0 {
            self.books.take_out(&mut self.orders, place);
        } else {
            self.books.lessen(&mut self.orders, place, leaves - left);
        }
    }
}
