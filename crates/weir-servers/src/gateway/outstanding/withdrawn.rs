//! Orders that are not sent, or not resent: those that are to be cancelled, and those that have waited too long.

use weir_proto::ouch::reject_reason;
use weir_trading::AccountId;

use super::{OutstandingOrders, messages::Unanswered};
use crate::gateway::unsolicited_cancels::Expiry;

/// An unsent order may always wait for a second, even if its resend age is shorter: it always waits for the journal.
pub(super) const WAIT_MIN_NS: u64 = 1_000_000_000;

impl OutstandingOrders {
    /// Ends the orders of an account, or of all accounts, with numbers above this one. They were never given to a
    /// connection, so the exchange does not have them.
    pub(in crate::gateway) fn withdraw(
        &mut self,
        account: Option<AccountId>,
        above: u32,
        refusal: u16,
    ) -> Vec<Expiry> {
        let open = self.open_among(account, 0..=u32::MAX);
        let numbers: Vec<u32> = open.filter(|number| *number > above).collect();
        let expiries = self.expiries_of(&numbers).into_iter().map(|it| it.refused_with(refusal)).collect();
        self.end_all(&numbers);
        // Including those that were forgotten before they were sent.
        let is_kept =
            |sent: &Unanswered| sent.number <= above || account.is_some_and(|of| of != sent.account);
        self.unanswered.retain(is_kept);
        expiries
    }

    /// How old an order may be when it is first sent.
    pub(in crate::gateway) fn wait_max_ns(&self) -> u64 {
        self.limits.resend_age_max_ns.max(WAIT_MIN_NS)
    }

    /// How long an order that may be resent until `resend_until_ns` may wait to be sent.
    fn wait_until_ns(&self, resend_until_ns: u64) -> u64 {
        resend_until_ns.saturating_add(self.wait_max_ns() - self.limits.resend_age_max_ns)
    }

    /// When the first of the unanswered orders with numbers above this one will have waited too long to be sent. They
    /// come from several workers, so the oldest one may be anywhere among them.
    pub(in crate::gateway) fn first_wait_until_ns(&self, above: u32) -> Option<u64> {
        let waiting = self.unanswered.iter().filter(|sent| sent.number > above);
        waiting.map(|sent| self.wait_until_ns(sent.resend_until_ns)).min()
    }

    fn has_waited_too_long(&self, sent: &Unanswered, now_ns: u64) -> bool {
        self.wait_until_ns(sent.resend_until_ns) < now_ns
    }

    /// Ends the orders with numbers above this one that have waited too long to be sent, and their replacements. They
    /// were never given to a connection, so the exchange does not have them.
    pub(in crate::gateway) fn withdraw_late(&mut self, above: u32, now_ns: u64) -> Vec<Expiry> {
        let mut numbers: Vec<u32> = Vec::new();
        for sent in self.unanswered.iter().filter(|sent| sent.number > above) {
            let ends_with_it = sent.original.is_some_and(|original| numbers.binary_search(&original).is_ok());
            if ends_with_it || self.has_waited_too_long(sent, now_ns) {
                numbers.push(sent.number);
            }
        }
        let expiries = self.expiries_of(&numbers);
        self.end_all(&numbers);
        expiries
    }

    /// Sets aside the orders with numbers above this one that have waited too long to be resent. Returns whether
    /// there are any.
    pub(in crate::gateway) fn withhold_late(&mut self, above: u32, now_ns: u64) -> bool {
        let until_ns = now_ns.saturating_sub(self.wait_max_ns() - self.limits.resend_age_max_ns);
        let is_late = |sent: &Unanswered| sent.number > above && sent.resend_until_ns < until_ns;
        self.set_aside(|sent| is_late(sent).then_some(reject_reason::DESTINATION_CLOSED))
    }

    /// Sets aside the unanswered orders of an account, or of all accounts, with numbers above this one: they are not
    /// resent. Returns whether there are any.
    pub(in crate::gateway) fn withhold(
        &mut self,
        account: Option<AccountId>,
        above: u32,
        refusal: u16,
    ) -> bool {
        let is_it = |sent: &Unanswered| sent.number > above && account.is_none_or(|of| of == sent.account);
        self.set_aside(|sent| is_it(sent).then_some(refusal))
    }
}
