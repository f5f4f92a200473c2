//! The gateway's own cancels in one upstream session: for a kill switch, or for a client that is not connected. They
//! are repeated until none of their orders is open, and counted. These orders are no longer sent: unsent ones are
//! taken back, and unanswered ones are not resent.

use std::{
    cell::{Cell, RefCell},
    ops::RangeInclusive,
    rc::Rc,
};

use weir_proto::ouch::{Canceled, codes::cancel_reason, reject_reason};
use weir_trading::AccountId;

use super::{Upstream, sender::Waiting};
use crate::gateway::{commands::Cancels, outstanding::OutstandingOrders, worker::Gateway};

/// Cancels of the orders of an account, or of all accounts.
#[derive(Debug)]
pub(super) struct PendingMassCancel {
    /// For orders up to this number.
    through: u32,
    /// The reason for clients; to the exchange each is a cancel like any other.
    reason: u8,
    /// Orders that were open then, and how many of them have since ended here without a message from the exchange.
    orders: u64,
    expired: u64,
    /// Cancels that were given to the current connection, and how many of them have been sent.
    queued: u64,
    sent: Rc<Cell<u64>>,
}

impl PendingMassCancel {
    /// The exchange has begun another session, and numbers start again.
    pub(super) fn leave_orders(&mut self) {
        self.through = 0;
    }
}

/// The reason for clients if an order was to be cancelled for this reason and was not sent.
fn refusal_of(reason: u8) -> u16 {
    match reason {
        cancel_reason::SUPERVISORY => reject_reason::FIRM_NOT_AUTHORIZED,
        _ => reject_reason::DESTINATION_CLOSED,
    }
}

impl Upstream {
    /// Cancels every open order of an account, or of all accounts; returns their number. Clients get this reason.
    ///
    /// Orders that were given to a connection are cancelled at once, and again on every new connection until none of
    /// them is open. The others are not sent, and are refused; with a failed journal they will never be sent anyway,
    /// and cannot be reported before the next start.
    pub(in crate::gateway) fn cancel_all(
        &self,
        account: Option<AccountId>,
        reason: u8,
        has_failed: bool,
    ) -> u64 {
        let handed = self.handed.get();
        let through = if has_failed { handed } else { self.outstanding.borrow().last_number() };
        let orders = self.outstanding.borrow().count_open(account, through);
        let mut all = self.mass_cancels.borrow_mut();
        let earlier = all.remove(&account);
        if orders == 0 {
            return 0;
        }
        let (first, queued, sent) = match earlier {
            // Earlier cancels are on their way, and are not sent twice.
            Some(pending) if pending.sent.get() < pending.queued => {
                (pending.through.saturating_add(1), pending.queued, pending.sent)
            }
            _ => (0, 0, Rc::default()),
        };
        let mut pending = PendingMassCancel { through, reason, orders, expired: 0, queued, sent };
        if self.is_up.get() {
            #[cfg(test)]
            let is_behind = crate::gateway::simulated_days::is_planted(
                crate::gateway::simulated_days::Plant::CancelBehindJournal,
            );
            #[cfg(not(test))]
            let is_behind = false;
            let at_once = if is_behind { &self.waiting } else { &self.urgent };
            self.queue_cancels(account, first..=through.min(handed), at_once, &mut pending);
            self.flush.raise();
        }
        all.insert(account, pending);
        drop(all);
        if !has_failed {
            self.take_back(account, refusal_of(reason));
        }
        orders
    }

    /// Ends orders that were never given to a connection. Those that only an earlier connection had are not resent.
    fn take_back(&self, account: Option<AccountId>, refusal: u16) {
        let last = self.outstanding.borrow().last_number();
        let handed = self.handed.get();
        if last > handed {
            let expiries = self.end_here(|outstanding| outstanding.withdraw(account, handed, refusal));
            self.expire(expiries, self.epoch.get());
            self.taken_back.set(last);
        }
        // Without a connection, the next one decides that.
        if self.is_up.get() && handed > self.handed_here.get() {
            let above = self.handed_here.get();
            if self.outstanding.borrow_mut().withhold(account, above, refusal) {
                self.stale.set(Some(last.saturating_add(1)));
                self.taken_back.set(last);
            }
        }
    }

    /// Why an order is refused instead of resent, if the exchange does not have it; `None`: it is resent.
    pub(super) fn withheld(&self, number: u32, account: AccountId) -> Option<u16> {
        let pending = self.mass_cancels.borrow();
        let mut of_it = [Some(account), None].into_iter().filter_map(|key| pending.get(&key));
        let of_all = of_it.find(|pending| number <= pending.through);
        of_all.map(|pending| refusal_of(pending.reason)).or_else(|| self.withheld_for_operator(number))
    }

    fn queue_cancels(
        &self,
        account: Option<AccountId>,
        numbers: RangeInclusive<u32>,
        to: &RefCell<Waiting>,
        pending: &mut PendingMassCancel,
    ) {
        let to = &mut *to.borrow_mut();
        let count = self.outstanding.borrow().cancel_all(account, numbers, &mut to.bytes);
        if count > 0 {
            to.messages += count;
            to.cancels.push((Rc::clone(&pending.sent), count));
            pending.queued += count;
        }
    }

    /// The state of the last cancels of an account's orders, or of all orders.
    pub(in crate::gateway) fn cancels_of(&self, account: Option<AccountId>) -> Cancels {
        let all = self.mass_cancels.borrow();
        let Some(pending) = all.get(&account) else { return Cancels::default() };
        let PendingMassCancel { orders, expired, .. } = *pending;
        let open = self.outstanding.borrow().count_open(account, pending.through).min(orders);
        Cancels { orders, sent: pending.sent.get().min(orders), open, expired: expired.min(orders - open) }
    }

    /// Orders end here: those that the gateway has cancelled are counted, because no exchange has confirmed their
    /// end.
    pub(super) fn end_here<T>(&self, work: impl FnOnce(&mut OutstandingOrders) -> T) -> T {
        let (mut all, mut outstanding) = (self.mass_cancels.borrow_mut(), self.outstanding.borrow_mut());
        let count =
            |outstanding: &OutstandingOrders, account: Option<AccountId>, pending: &PendingMassCancel| {
                outstanding.count_open(account, pending.through).min(pending.orders)
            };
        let open: Vec<u64> =
            all.iter().map(|(account, pending)| count(&outstanding, *account, pending)).collect();
        let outcome = work(&mut outstanding);
        for ((account, pending), before) in all.iter_mut().zip(open) {
            pending.expired += before.saturating_sub(count(&outstanding, *account, pending));
        }
        outcome
    }

    /// Whether an order that the gateway has cancelled is still open.
    pub(in crate::gateway) fn has_cancels_open(&self) -> bool {
        let outstanding = self.outstanding.borrow();
        self.mass_cancels
            .borrow()
            .iter()
            .any(|(account, pending)| outstanding.has_open(*account, pending.through))
    }

    /// Repeats the cancels on a new connection: after the resent messages, and also at once, with clients' cancels,
    /// if those have to wait.
    pub(super) fn cancel_again(&self, gateway: &Gateway) {
        let must_wait = !gateway.is_kept(self.lsn.get());
        let handed = self.handed.get();
        if must_wait {
            let mut urgent = self.urgent.borrow_mut();
            urgent.messages += self.outstanding.borrow().resend_cancels(handed, &mut urgent.bytes);
        }
        for (account, pending) in self.mass_cancels.borrow_mut().iter_mut() {
            (pending.queued, pending.sent) = (0, Rc::default());
            if must_wait {
                self.queue_cancels(*account, 0..=pending.through.min(handed), &self.urgent, pending);
            }
            self.queue_cancels(*account, 0..=pending.through, &self.waiting, pending);
        }
    }

    /// The reason of a cancellation that the exchange attributes to the user, if the gateway requested it.
    pub(super) fn reason_of(&self, canceled: &Canceled, account: AccountId) -> Option<u8> {
        let pending = self.mass_cancels.borrow();
        if canceled.reason != cancel_reason::USER || pending.is_empty() {
            return self.operators_reason(canceled);
        }
        let mut of_it = [Some(account), None].into_iter().filter_map(|key| pending.get(&key));
        let of_all = of_it.find(|pending| canceled.user_ref_num <= pending.through);
        of_all.map(|pending| pending.reason).or_else(|| self.operators_reason(canceled))
    }
}
