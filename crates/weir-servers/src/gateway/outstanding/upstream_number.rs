//! Assigns upstream numbers to orders: an order gets its number when it is sent, from the numbers of its session. A
//! message about an order gets that order's number. A numbered message is kept until it is answered, the last cancel
//! and the last change of an order as long as it is open.

use weir_proto::ouch::{Inbound, reject_reason, set_inbound_user_ref_num, set_original_user_ref_num};
use weir_trading::Origin;

use super::{
    OutstandingOrders, PASSED_SLACK, Sending, frame,
    messages::{Passed, Unanswered},
};
use crate::{gateway::worker_message::MESSAGE_BYTES_MAX, orders::ClientMessage};

impl OutstandingOrders {
    /// Gives a client's message, at most [`MESSAGE_BYTES_MAX`] long, its upstream number, and appends the frame to
    /// send to `out`.
    pub(in crate::gateway) fn assign_upstream_number(
        &mut self,
        origin: Origin,
        message: &ClientMessage<'_>,
        out: &mut Vec<u8>,
    ) -> Sending {
        let earlier = message.earlier_order();
        let concerned = earlier.map(|client| self.upstream_numbers.upstream_of(origin.account, client));
        if concerned == Some(None) {
            return Sending::Unknown;
        }
        let concerned = concerned.flatten();
        if !message.is_order() {
            let Some(number) = concerned else { return Sending::Unknown };
            let begin = frame(message.raw(), out);
            set_inbound_user_ref_num(&mut out[begin..], number);
            self.note_passed(number, message.inbound(), &out[begin..]);
            return Sending::Passed(number);
        }
        let Ok(number) = self.upstream_numbers.assign(origin, concerned) else { return Sending::Full };
        self.owners.note(number, &origin);
        self.bury_orphans();
        let begin = frame(message.raw(), out);
        self.note(number, &origin, (message.inbound(), concerned), &mut out[begin..]);
        Sending::Numbered(number)
    }

    /// Writes the numbers into the bytes of an enter or a replace and keeps them until it is answered. If it is read
    /// from a journal, the original of a replace may have ended. Then number 0 stands for it, which no order has: the
    /// client's own number would name another client's order there.
    pub(super) fn note(
        &mut self,
        number: u32,
        origin: &Origin,
        (message, original): (&Inbound<'_>, Option<u32>),
        bytes: &mut [u8],
    ) {
        let (quantity, client_order_id, original) = match message {
            Inbound::Enter(enter, _) => (enter.quantity, enter.client_order_id, None),
            Inbound::Replace(replace, _) => {
                (replace.quantity, replace.client_order_id, Some(original.unwrap_or(0)))
            }
            Inbound::Cancel(_) | Inbound::Modify(_) | Inbound::AccountQuery => return,
        };
        set_inbound_user_ref_num(bytes, number);
        set_original_user_ref_num(bytes, original.unwrap_or(0));
        let mut kept = [0; MESSAGE_BYTES_MAX];
        kept[..bytes.len()].copy_from_slice(bytes);
        let length = bytes.len() as u8;
        let received_ns = origin.received_ns;
        let resend_until_ns = received_ns.saturating_add(self.limits.resend_age_max_ns);
        self.unanswered.push_back(Unanswered {
            received_ns,
            sent_ns: 0,
            resend_until_ns,
            number,
            account: origin.account,
            quantity,
            original,
            client_order_id,
            refusal: reject_reason::DESTINATION_CLOSED,
            length,
            is_restored: false,
            is_answered: false,
            message: kept,
        });
    }

    /// Keeps a cancel or a change. The one of two cancels that leaves less counts, in either order.
    pub(super) fn note_passed(&mut self, number: u32, message: &Inbound<'_>, bytes: &[u8]) {
        let (is_cancel, quantity) = match message {
            Inbound::Cancel(cancel) => (true, cancel.quantity),
            Inbound::Modify(modify) => (false, modify.quantity),
            Inbound::Enter(..) | Inbound::Replace(..) | Inbound::AccountQuery => return,
        };
        if self.passed.len() >= 2 * self.upstream_numbers.len() + PASSED_SLACK {
            self.passed.retain(|number, _| self.upstream_numbers.origin_of(*number).is_some());
        }
        self.passed_count += 1;
        let mut kept = [0; MESSAGE_BYTES_MAX];
        kept[..bytes.len()].copy_from_slice(bytes);
        let (after, place) = (self.last_number(), self.passed_count);
        let passed = Passed { after, place, quantity, length: bytes.len() as u8, message: kept };
        let about = self.passed.entry(number).or_default();
        if !is_cancel {
            about.change = Some(passed);
        } else if about.cancel.is_none_or(|cancel| cancel.quantity > quantity) {
            about.cancel = Some(passed);
        }
    }
}
