//! Orders of earlier starts that are in a session of another worker than the one that now sends for their account:
//! the clients or the route have changed since. A client's messages about such an order, and its replacements, go to
//! that session. Pure.

use std::collections::{BTreeMap, HashMap};

use weir_proto::ouch::Outbound;
use weir_trading::AccountId;

use crate::orders::ClientMessage;

/// The orders of one worker's clients. At most those that were open at the start, and their unanswered replacements.
#[derive(Debug, Default)]
pub(super) struct OrdersElsewhere {
    /// By the client's number: the worker whose session has the order. Some of them have ended.
    orders: HashMap<(AccountId, u32), u16>,
    /// By account: all workers whose sessions have or had some.
    workers: BTreeMap<AccountId, Vec<u16>>,
}

impl OrdersElsewhere {
    /// Records that this worker has this order.
    pub(super) fn add(&mut self, account: AccountId, number: u32, worker: u16) {
        self.orders.insert((account, number), worker);
        let workers = self.workers.entry(account).or_default();
        if !workers.contains(&worker) {
            workers.push(worker);
        }
    }

    /// Whether there are none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.orders.is_empty()
    }

    /// The worker whose session has the order of a message.
    pub(super) fn worker_of(&self, account: AccountId, message: &ClientMessage<'_>) -> Option<u16> {
        self.orders.get(&(account, message.earlier_order()?)).copied()
    }

    /// Every worker whose sessions have or had orders of an account.
    pub(super) fn workers_of(&self, account: AccountId) -> &[u16] {
        self.workers.get(&account).map_or(&[][..], Vec::as_slice)
    }

    /// Removes a replacement that had no effect.
    pub(super) fn forget(&mut self, account: AccountId, number: u32) {
        self.orders.remove(&(account, number));
    }

    /// Applies a message to a client: of an order and its replacement only one stays open.
    pub(super) fn follow(&mut self, account: AccountId, message: &Outbound) {
        match message {
            Outbound::Replaced(replaced) => self.forget(account, replaced.original_user_ref_num),
            Outbound::Rejected(rejected) => self.forget(account, rejected.user_ref_num),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_proto::ouch::{Cancel, ClientOrderId, Inbound, Rejected};

    use super::*;
    use crate::gateway::test_messages;

    const ACCOUNT: AccountId = AccountId(3);
    const ID: ClientOrderId = ClientOrderId::BLANK;

    fn of(orders: &OrdersElsewhere, account: AccountId, inbound: Inbound<'_>) -> Option<u16> {
        orders.worker_of(account, &ClientMessage::encode(inbound, &mut Vec::new()))
    }

    #[test]
    fn what_is_said_about_an_order_and_what_replaces_it_goes_where_it_is() {
        let cancel = |user_ref_num| Inbound::Cancel(Cancel { user_ref_num, quantity: 0 });
        let mut orders = OrdersElsewhere::default();
        orders.add(ACCOUNT, 1, 7);
        orders.add(ACCOUNT, 2, 5);
        assert_eq!(of(&orders, AccountId(4), cancel(1)), None, "another one's");
        let of = |orders: &OrdersElsewhere, inbound| of(orders, ACCOUNT, inbound);
        assert_eq!(of(&orders, cancel(1)), Some(7));
        assert_eq!(of(&orders, test_messages::enter(1, 100)), None);
        assert_eq!(of(&orders, test_messages::replace(1, 9)), Some(7));
        orders.add(ACCOUNT, 9, 7);
        assert_eq!(orders.workers_of(ACCOUNT), [7, 5]);
        assert_eq!(of(&orders, cancel(9)), Some(7), "before it is answered");
        let replaced = test_messages::replaced(1, 9);
        orders.follow(ACCOUNT, &Outbound::decode(&replaced).expect("a message").0);
        assert_eq!((of(&orders, cancel(1)), of(&orders, cancel(9))), (None, Some(7)));
        orders.add(ACCOUNT, 10, 7);
        let (timestamp_ns, reason, client_order_id) = (1, 2, ID);
        let rejected = Rejected { timestamp_ns, user_ref_num: 10, reason, client_order_id };
        orders.follow(ACCOUNT, &Outbound::Rejected(rejected));
        assert_eq!((of(&orders, cancel(9)), of(&orders, cancel(10))), (Some(7), None));
        orders.forget(ACCOUNT, 9);
        orders.forget(ACCOUNT, 2);
        assert!(orders.is_empty());
    }
}
