//! The gateway's own cancels in one session: of all orders of an account or of all accounts, for a kill switch, at the
//! end of a session of the trading day or for a client that is not connected; and of single orders, for an operator.
//!
//! The former are repeated on every connection until none of their orders is open, and counted. Their orders are no
//! longer sent: unsent ones are taken back, and unanswered ones are not resent. The latter go the way of clients'
//! cancels, but are also accepted without a connection, and clients see who cancelled.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
};

use weir_proto::ouch::{codes::cancel_reason, reject_reason};
use weir_trading::{AccountId, Origin};

use super::{
    Effects, UpstreamSession,
    outgoing::{Numbered, Waiting},
};
use crate::{
    gateway::{
        kill_switch::Cancels,
        outstanding::{OutstandingOrders, Sending},
    },
    orders::ClientMessage,
};

/// The set of orders that operators cancelled may have this many more than twice the open ones, before ended orders are
/// removed.
const ENDED_SLACK: usize = 64;

/// The cancels of one session.
#[derive(Debug, Default)]
pub(super) struct OwnCancels {
    /// By account; no account stands for all of them.
    all: BTreeMap<Option<AccountId>, MassCancel>,
    /// Numbers of the orders that operators cancelled.
    of_operators: BTreeSet<u32>,
    /// Distinguishes the mass cancels of an account, and of one of them the repetitions.
    serial: u64,
}

/// Cancels of the orders of an account, or of all accounts.
#[derive(Debug)]
struct MassCancel {
    /// For orders up to this number.
    through: u32,
    /// The reason for clients; to the exchange each is a cancel like any other.
    reason: u8,
    /// Orders that were open then, and how many of them have since ended here without a message from the exchange.
    orders: u64,
    expired: u64,
    /// Cancels that were given to the current connection, and how many of them have been sent.
    queued: u64,
    sent: u64,
    serial: u64,
}

/// Cancels among waiting messages: whose, and their number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    account: Option<AccountId>,
    serial: u64,
    count: u64,
}

/// What becomes of an operator's cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Cancelling {
    /// It leaves behind its order.
    OnItsWay,
    /// It is journaled, and leaves on the next connection.
    Waits,
    /// The order is not open any more.
    Ended,
}

impl MassCancel {
    /// Those among its orders that are still open.
    fn open(&self, outstanding: &OutstandingOrders, account: Option<AccountId>) -> u64 {
        outstanding.count_open(account, self.through).min(self.orders)
    }

    fn queue(
        &mut self,
        outstanding: &OutstandingOrders,
        account: Option<AccountId>,
        numbers: RangeInclusive<u32>,
        to: &mut Waiting,
    ) {
        let count = outstanding.cancel_all(account, numbers, &mut to.bytes);
        if count > 0 {
            to.messages += count;
            to.cancels.push(Queued { account, serial: self.serial, count });
            self.queued += count;
        }
    }

    /// The reason for clients if one of its orders was not sent.
    fn refusal(&self) -> u16 {
        match self.reason {
            cancel_reason::SUPERVISORY => reject_reason::FIRM_NOT_AUTHORIZED,
            // Their session of the trading day has ended.
            cancel_reason::TIMEOUT => reject_reason::HALTED,
            _ => reject_reason::DESTINATION_CLOSED,
        }
    }
}

impl OwnCancels {
    fn of_order(&self, number: u32, account: AccountId) -> Option<&MassCancel> {
        let mut of_it = [Some(account), None].into_iter().filter_map(|key| self.all.get(&key));
        of_it.find(|cancel| number <= cancel.through)
    }

    /// Why an order is refused instead of resent, if the exchange does not have it; `None`: it is resent.
    pub(super) fn refusal_of(&self, number: u32, account: AccountId) -> Option<u16> {
        let of_operator = || self.of_operators.contains(&number).then_some(reject_reason::DESTINATION_CLOSED);
        self.of_order(number, account).map(MassCancel::refusal).or_else(of_operator)
    }

    /// The reason of a cancellation that the exchange attributes to the user, if the gateway requested it.
    pub(super) fn reason_of(&self, number: u32, account: AccountId) -> Option<u8> {
        let of_operator = || self.of_operators.contains(&number).then_some(cancel_reason::SUPERVISORY);
        self.of_order(number, account).map(|cancel| cancel.reason).or_else(of_operator)
    }

    /// Orders end here: those that the gateway has cancelled are counted, because no exchange has confirmed their
    /// end.
    pub(super) fn count_ended<T>(
        &mut self,
        outstanding: &mut OutstandingOrders,
        end: impl FnOnce(&mut OutstandingOrders) -> T,
    ) -> T {
        let open = |(account, cancel): (&Option<AccountId>, &MassCancel)| cancel.open(outstanding, *account);
        let before: Vec<u64> = self.all.iter().map(open).collect();
        let outcome = end(outstanding);
        for ((account, cancel), before) in self.all.iter_mut().zip(before) {
            cancel.expired += before.saturating_sub(cancel.open(outstanding, *account));
        }
        outcome
    }

    /// Their orders are at an exchange that is left. Those on their way count for none of the later ones.
    pub(super) fn forget(&mut self) {
        self.all.clear();
        self.of_operators.clear();
    }

    /// The exchange has begun another session, and numbers start again.
    pub(super) fn leave_orders(&mut self) {
        self.all.values_mut().for_each(|cancel| cancel.through = 0);
        self.of_operators.clear();
    }

    /// These have been sent.
    pub(super) fn note_sent(&mut self, queued: &[Queued]) {
        for Queued { account, serial, count } in queued {
            if let Some(cancel) = self.all.get_mut(account).filter(|cancel| cancel.serial == *serial) {
                cancel.sent += count;
            }
        }
    }

    /// At most as many as are open, and some that have ended.
    fn note_operators(&mut self, number: u32, outstanding: &OutstandingOrders) {
        if self.of_operators.len() >= 2 * outstanding.open() + ENDED_SLACK {
            self.of_operators.retain(|number| outstanding.is_open(*number));
        }
        self.of_operators.insert(number);
    }
}

impl UpstreamSession {
    /// Cancels every open order of an account, or of all accounts; returns their number. Clients get this reason.
    ///
    /// Orders that were given to a connection are cancelled at once, and again on every new connection until none of
    /// them is open. The others are not sent, and are refused; with a failed journal they will never be sent anyway,
    /// and cannot be reported before the next start.
    pub(in crate::gateway) fn cancel_all(
        &mut self,
        account: Option<AccountId>,
        reason: u8,
        has_failed: bool,
        effects: &mut Effects,
    ) -> u64 {
        let is_up = self.is_up();
        let Self { outstanding, cancels, waiting, urgent, handed, .. } = self;
        let through = if has_failed { *handed } else { outstanding.last_number() };
        let orders = outstanding.count_open(account, through);
        let earlier = cancels.all.remove(&account);
        if orders == 0 {
            return 0;
        }
        cancels.serial += 1;
        let (first, queued, sent, serial) = match earlier {
            // Earlier cancels are on their way, and are not sent twice.
            Some(earlier) if earlier.sent < earlier.queued => {
                (earlier.through.saturating_add(1), earlier.queued, earlier.sent, earlier.serial)
            }
            _ => (0, 0, 0, cancels.serial),
        };
        let mut cancel = MassCancel { through, reason, orders, expired: 0, queued, sent, serial };
        if is_up {
            #[cfg(test)]
            let is_behind = crate::gateway::simulated_days::is_planted(
                crate::gateway::simulated_days::Plant::CancelBehindJournal,
            );
            #[cfg(not(test))]
            let is_behind = false;
            let at_once = if is_behind { waiting } else { urgent };
            cancel.queue(outstanding, account, first..=through.min(*handed), at_once);
            effects.has_output = true;
        }
        let refusal = cancel.refusal();
        cancels.all.insert(account, cancel);
        if !has_failed {
            self.take_back(account, refusal, effects);
        }
        orders
    }

    /// Repeats the cancels on a new connection: after the resent messages, and if those have to wait for the journal
    /// also at once, with clients' cancels.
    pub(super) fn cancel_again(&mut self, must_wait: bool) {
        let Self { outstanding, cancels, waiting, urgent, handed, .. } = self;
        if must_wait {
            urgent.messages += outstanding.resend_cancels(*handed, &mut urgent.bytes);
        }
        for (account, cancel) in &mut cancels.all {
            cancels.serial += 1;
            (cancel.queued, cancel.sent, cancel.serial) = (0, 0, cancels.serial);
            if must_wait {
                cancel.queue(outstanding, *account, 0..=cancel.through.min(*handed), urgent);
            }
            cancel.queue(outstanding, *account, 0..=cancel.through, waiting);
        }
    }

    /// The state of the last cancels of an account's orders, or of all orders.
    pub(in crate::gateway) fn cancels_of(&self, account: Option<AccountId>) -> Cancels {
        let Some(cancel) = self.cancels.all.get(&account) else { return Cancels::default() };
        let MassCancel { orders, expired, sent, .. } = *cancel;
        let open = cancel.open(&self.outstanding, account);
        Cancels { orders, sent: sent.min(orders), open, expired: expired.min(orders - open) }
    }

    /// Whether an order that the gateway has cancelled is still open.
    pub(in crate::gateway) fn has_cancels_open(&self) -> bool {
        let is_open = |(account, cancel): (&Option<AccountId>, &MassCancel)| {
            self.outstanding.has_open(*account, cancel.through)
        };
        self.cancels.all.iter().any(is_open)
    }

    /// Whether an order is cancelled until it has ended.
    pub(in crate::gateway) fn is_cancelled(&self, number: u32, account: AccountId) -> bool {
        self.outstanding.has_cancel(number) || self.cancels.refusal_of(number, account).is_some()
    }

    /// Cancels an order for an operator. `message` is the cancel, in the client's numbers.
    pub(in crate::gateway) fn cancel_for_operator(
        &mut self,
        origin: Origin,
        message: &ClientMessage<'_>,
    ) -> (Cancelling, Option<Numbered>) {
        let ended = (Cancelling::Ended, None);
        let number = self.outstanding.number_of(origin.account, origin.user_ref_num);
        let Some(number) = number else { return ended };
        self.cancels.note_operators(number, &self.outstanding);
        if self.is_up() {
            // A client's cancel is refused only without a connection.
            return match self.accept(origin, message) {
                Ok(Some(numbered)) => (Cancelling::OnItsWay, Some(numbered)),
                Ok(None) | Err(_) => ended,
            };
        }
        match self.outstanding.assign_upstream_number(origin, message, &mut Vec::new()) {
            // The next connection waits for the record.
            Sending::Passed(number) => (Cancelling::Waits, Some(self.numbered(number, origin.home))),
            Sending::Numbered(_) | Sending::Unknown | Sending::Full => ended,
        }
    }
}
