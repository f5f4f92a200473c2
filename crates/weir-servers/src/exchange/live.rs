//! The live orders, derived from the answers to them: the worker of an account uses them to find the book of an
//! order, and an exchange that was killed uses them to find the orders that it has lost.

use std::collections::HashMap;

use weir_proto::ouch::{Outbound, codes::order_state};
use weir_trading::AccountId;

/// One order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Live {
    /// The worker whose book contains it.
    pub(super) worker: u16,
    pub(super) shares: u32,
}

/// Orders by account and number. Bounded by the live orders and those on their way.
#[derive(Clone, Debug, Default)]
pub(super) struct LiveOrders {
    orders: HashMap<(AccountId, u32), Live>,
}

impl LiveOrders {
    pub(super) fn len(&self) -> usize {
        self.orders.len()
    }

    pub(super) fn find(&self, account: AccountId, number: u32) -> Option<Live> {
        self.orders.get(&(account, number)).copied()
    }

    /// Records that an order is on its way to a worker.
    pub(super) fn enter(&mut self, account: AccountId, number: u32, live: Live) {
        self.orders.insert((account, number), live);
    }

    /// Removes a number that turned out not to be an order.
    pub(super) fn remove(&mut self, account: AccountId, number: u32) {
        self.orders.remove(&(account, number));
    }

    /// Each live order: account, number and shares.
    pub(super) fn iter(&self) -> impl Iterator<Item = (AccountId, u32, u32)> {
        self.orders.iter().map(|((account, number), live)| (*account, *number, live.shares))
    }

    /// Records an answer to an account.
    pub(super) fn note(&mut self, account: AccountId, message: &Outbound) {
        match message {
            Outbound::Accepted(accepted) => {
                let is_live = accepted.order_state == order_state::LIVE;
                self.set(account, accepted.user_ref_num, if is_live { accepted.quantity } else { 0 });
            }
            Outbound::Replaced(replaced) => {
                let worker = self.orders.remove(&(account, replaced.original_user_ref_num));
                let is_live = replaced.order_state == order_state::LIVE;
                if let (Some(original), None) = (worker, self.find(account, replaced.user_ref_num)) {
                    self.enter(account, replaced.user_ref_num, original);
                }
                self.set(account, replaced.user_ref_num, if is_live { replaced.quantity } else { 0 });
            }
            Outbound::Executed(executed) => self.take(account, executed.user_ref_num, executed.quantity),
            Outbound::Canceled(canceled) => self.take(account, canceled.user_ref_num, canceled.quantity),
            Outbound::AiqCanceled(canceled) => self.take(account, canceled.user_ref_num, canceled.quantity),
            Outbound::Modified(modified) => self.set(account, modified.user_ref_num, modified.quantity),
            Outbound::Rejected(rejected) => self.remove(account, rejected.user_ref_num),
            Outbound::SystemEvent { .. }
            | Outbound::BrokenTrade(_)
            | Outbound::CancelPending(_)
            | Outbound::CancelReject(_)
            | Outbound::PriorityUpdate(_)
            | Outbound::Restated(_)
            | Outbound::AccountQueryResponse { .. } => {}
        }
    }

    fn set(&mut self, account: AccountId, number: u32, shares: u32) {
        if shares == 0 {
            self.remove(account, number);
        } else {
            let live = self.orders.entry((account, number)).or_insert(Live { worker: 0, shares });
            live.shares = shares;
        }
    }

    fn take(&mut self, account: AccountId, number: u32, shares: u32) {
        if let Some(live) = self.orders.get_mut(&(account, number)) {
            live.shares = live.shares.saturating_sub(shares);
            if live.shares == 0 {
                self.orders.remove(&(account, number));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_proto::ouch::{Canceled, Executed, Rejected};

    use super::*;

    const ACCOUNT: AccountId = AccountId(3);

    #[test]
    fn an_order_is_live_until_its_shares_are_gone() {
        let mut live = LiveOrders::default();
        for number in [1, 2, 3] {
            live.enter(ACCOUNT, number, Live { worker: 1, shares: 100 });
        }
        let executed = |quantity| {
            Outbound::Executed(Executed {
                timestamp_ns: 0,
                user_ref_num: 1,
                quantity,
                price: 1,
                liquidity: b'A',
                match_number: 1,
            })
        };
        live.note(ACCOUNT, &executed(60));
        assert_eq!(live.find(ACCOUNT, 1), Some(Live { worker: 1, shares: 40 }));
        live.note(ACCOUNT, &executed(40));
        assert_eq!(live.find(ACCOUNT, 1), None);
        live.note(
            ACCOUNT,
            &Outbound::Canceled(Canceled { timestamp_ns: 0, user_ref_num: 2, quantity: 100, reason: b'U' }),
        );
        let client_order_id = "X".parse().expect("an identifier");
        live.note(
            ACCOUNT,
            &Outbound::Rejected(Rejected { timestamp_ns: 0, user_ref_num: 3, reason: 1, client_order_id }),
        );
        assert_eq!(live.len(), 0);
        assert_eq!(live.find(AccountId(4), 1), None);
    }
}
