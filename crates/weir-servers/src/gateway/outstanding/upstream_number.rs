//! Assigns upstream numbers to orders: an order gets its number when it is sent, from the numbers of its session. A
//! message about an order gets that order's number. A numbered message is kept until it is answered, the last cancel
//! and the last change of an order as long as it is open.

use weir_proto::ouch::{
    inbound_user_ref_num, original_user_ref_num, reject_reason, set_inbound_user_ref_num,
    set_original_user_ref_num,
};
use weir_trading::Origin;

use super::{
    OutstandingOrders, PASSED_SLACK, Sending, frame,
    messages::{Passed, Unanswered},
};
use crate::gateway::worker_message::MESSAGE_BYTES_MAX;

impl OutstandingOrders {
    /// Gives a client's message, at most [`MESSAGE_BYTES_MAX`] long, its upstream number, and appends the frame to
    /// send to `out`.
    pub(in crate::gateway) fn assign_upstream_number(
        &mut self,
        origin: Origin,
        raw: &[u8],
        out: &mut Vec<u8>,
    ) -> Sending {
        let concerned = match raw.first() {
            Some(b'O') => None,
            Some(b'U') => original_user_ref_num(raw),
            _ => inbound_user_ref_num(raw),
        };
        let concerned = concerned.map(|client| self.upstream_numbers.upstream_of(origin.account, client));
        if concerned == Some(None) {
            return Sending::Unknown;
        }
        let concerned = concerned.flatten();
        match (raw.first(), concerned) {
            (Some(b'O' | b'U'), _) => {
                let Ok(number) = self.upstream_numbers.assign(origin, concerned) else {
                    return Sending::Full;
                };
                self.owners.note(number, &origin);
                self.bury_orphans();
                let message = frame(raw, out);
                self.note(number, &origin, concerned, &mut out[message..]);
                Sending::Numbered(number)
            }
            (_, Some(number)) => {
                let message = frame(raw, out);
                set_inbound_user_ref_num(&mut out[message..], number);
                self.note_passed(number, &out[message..]);
                Sending::Passed(number)
            }
            (_, None) => Sending::Unknown,
        }
    }

    /// Writes the numbers into a message and keeps it until it is answered. If it is read from a journal, the
    /// original of a replace may have ended. Then number 0 stands for it, which no order has: the client's own number
    /// would name another client's order there.
    pub(super) fn note(&mut self, number: u32, origin: &Origin, original: Option<u32>, message: &mut [u8]) {
        set_inbound_user_ref_num(message, number);
        set_original_user_ref_num(message, original.unwrap_or(0));
        let mut kept = [0; MESSAGE_BYTES_MAX];
        kept[..message.len()].copy_from_slice(message);
        let length = message.len() as u8;
        let received_ns = origin.received_ns;
        let resend_until_ns = received_ns.saturating_add(self.limits.resend_age_max_ns);
        self.unanswered.push_back(Unanswered {
            received_ns,
            sent_ns: 0,
            resend_until_ns,
            number,
            account: origin.account,
            refusal: reject_reason::DESTINATION_CLOSED,
            length,
            is_restored: false,
            is_answered: false,
            message: kept,
        });
    }

    /// Keeps a cancel or a change. The one of two cancels that leaves less counts, in either order.
    pub(super) fn note_passed(&mut self, number: u32, message: &[u8]) {
        if self.passed.len() >= 2 * self.upstream_numbers.len() + PASSED_SLACK {
            self.passed.retain(|number, _| self.upstream_numbers.origin_of(*number).is_some());
        }
        self.passed_count += 1;
        let mut kept = [0; MESSAGE_BYTES_MAX];
        kept[..message.len()].copy_from_slice(message);
        let (after, place) = (self.last_number(), self.passed_count);
        let passed = Passed { after, place, length: message.len() as u8, message: kept };
        let about = self.passed.entry(number).or_default();
        match message.first() {
            Some(b'X') if about.cancel.is_some_and(|cancel| cancel.quantity() <= passed.quantity()) => {}
            Some(b'X') => about.cancel = Some(passed),
            _ => about.change = Some(passed),
        }
    }
}
