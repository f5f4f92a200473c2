//! Restores outstanding orders from journals after a restart: the messages sent with their numbers, the answers, and
//! the orders that the gateway ended itself.

use weir_proto::ouch::{Outbound, set_inbound_user_ref_num};
use weir_trading::{AccountId, Origin};

use super::OutstandingOrders;
use crate::{gateway::worker_message::MESSAGE_BYTES_MAX, orders::ClientMessage};

impl OutstandingOrders {
    /// A journal contains this enter or replace, sent with this number; it may be resent until `resend_until_ns`. Those
    /// of one session must come in order of their numbers. False: there is no room for it until an earlier one has
    /// ended. Call [`Self::sweep`] after the last record.
    pub(in crate::gateway) fn restore(
        &mut self,
        number: u32,
        origin: Origin,
        message: &ClientMessage<'_>,
        resend_until_ns: u64,
    ) -> bool {
        let original = message
            .earlier_order()
            .and_then(|client| self.upstream_numbers.upstream_of(origin.account, client));
        if number < self.upstream_numbers.next() || message.raw().len() > MESSAGE_BYTES_MAX {
            return true;
        }
        if self.upstream_numbers.restore(number, origin, original).is_err() {
            if self.answers_unswept <= self.limits.open_max {
                return false;
            }
            self.sweep();
            return self.restore(number, origin, message, resend_until_ns);
        }
        self.owners.note(number, &origin);
        self.bury_orphans();
        self.keep_used();
        self.note(number, &origin, (message.inbound(), original), &mut message.raw().to_vec());
        if let Some(last) = self.unanswered.back_mut() {
            (last.resend_until_ns, last.is_restored) = (resend_until_ns, true);
        }
        true
    }

    /// A journal contains this cancel or change, in the client's numbers. Nothing shows whether it has arrived.
    pub(in crate::gateway) fn restore_passed(&mut self, account: AccountId, message: &ClientMessage<'_>) {
        let number = self.upstream_numbers.upstream_of(account, message.user_ref_num());
        if let Some(number) = number.filter(|_| message.raw().len() <= MESSAGE_BYTES_MAX) {
            let mut raw = message.raw().to_vec();
            set_inbound_user_ref_num(&mut raw, number);
            self.note_passed(number, message.inbound(), &raw);
        }
    }

    /// A journal shows that the client has this answer; its numbers are the client's.
    pub(in crate::gateway) fn restore_answer(&mut self, account: AccountId, message: &Outbound) {
        let upstream = |client: u32| self.upstream_numbers.upstream_of(account, client);
        let Some(number) = message.user_ref_num().and_then(upstream) else { return };
        let original = match message {
            Outbound::Replaced(replaced) => upstream(replaced.original_user_ref_num).unwrap_or(0),
            _ => 0,
        };
        let mut message = *message;
        message.set_user_ref_nums(number, original);
        self.note_answered(account, number);
        self.upstream_numbers.apply(&message);
        self.bury(&message);
        self.keep_used();
    }

    /// A journal shows that the gateway ended a client's order itself, in the current session.
    pub(in crate::gateway) fn restore_end(&mut self, account: AccountId, user_ref_num: u32) {
        self.give_up([(account, user_ref_num)]);
        self.keep_used();
    }

    /// Recovery: other accounts than these no longer exist, and it is unknown whether they have open orders.
    pub(in crate::gateway) fn leave_accounts(&mut self, is_there: impl Fn(AccountId) -> bool) {
        let of_others = |(_, origin): &(u32, Origin)| !is_there(origin.account);
        let open = self.upstream_numbers.all_open_orders().filter(of_others);
        let numbers: Vec<u32> = open.map(|(number, _)| number).collect();
        self.end_all(&numbers);
        // Including forgotten ones.
        self.unanswered.retain(|sent| is_there(sent.account));
        self.skipped.retain(|_, sent| is_there(sent.account));
        self.owners.leave(is_there);
        self.keep_used();
    }

    /// A journal contains an answer to this number. It shows nothing about lower numbers of other accounts: the
    /// journals of their homes may be read later, and may have lost the exchange's earlier messages to them.
    fn note_answered(&mut self, account: AccountId, number: u32) {
        if let Ok(place) = self.unanswered.binary_search_by_key(&number, |sent| sent.number) {
            self.unanswered[place].is_answered = true;
        }
        while self.unanswered.front().is_some_and(|front| front.is_answered) {
            self.unanswered.pop_front();
        }
        if account.0 as usize >= self.answered.len() {
            self.answered.resize(account.0 as usize + 1, 0);
        }
        let last = &mut self.answered[account.0 as usize];
        *last = number.max(*last);
        self.answers_unswept += 1;
    }

    /// Removes messages that have answers in the journals. An account's stream has its answers in order, so a later
    /// answer shows that a lower number of the same account was handled too, unless it may not have been resent: a
    /// replace among these got no answer, because it was ignored.
    pub(in crate::gateway) fn sweep(&mut self) {
        self.answers_unswept = 0;
        for sent in std::mem::take(&mut self.unanswered) {
            let Some(origin) = self.upstream_numbers.origin_of(sent.number).filter(|_| !sent.is_answered)
            else {
                continue;
            };
            let is_handled =
                self.answered.get(origin.account.0 as usize).is_some_and(|last| sent.number < *last);
            if !is_handled {
                self.unanswered.push_back(sent);
            } else if self.may_be_skipped(&sent) {
                self.skipped.insert(sent.number, sent);
            } else if sent.is_replace() {
                self.upstream_numbers.finish(sent.number);
            }
        }
        self.bury_orphans();
        self.keep_used();
    }

    /// No number is released because of a journal: that was done at the time, and the client may have used the number
    /// for another order since. If it were released again, that order would be accepted twice.
    fn keep_used(&mut self) {
        self.ignored.clear();
    }
}
