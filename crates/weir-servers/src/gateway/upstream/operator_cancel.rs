//! Cancels of single orders by an operator, in one upstream session. They go the way of clients' cancels; two things
//! differ: they are also taken without a connection, and clients see who cancelled.

use std::collections::BTreeSet;

use weir_proto::ouch::{Canceled, codes::cancel_reason, reject_reason};
use weir_trading::{AccountId, Origin};

use super::Upstream;
use crate::{gateway::outstanding::Sending, journal::Lsn};

/// The set of cancelled orders may have this many more than twice the open ones, before ended orders are removed.
const ENDED_SLACK: usize = 64;

/// What becomes of a cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Cancelling {
    /// It leaves behind its order.
    OnItsWay,
    /// It is journaled, and leaves on the next connection.
    Waits,
    /// The order is not open any more.
    Ended,
}

impl Upstream {
    /// Cancels an order. `raw` is the cancel, in the client's numbers; `log` journals it.
    pub(in crate::gateway) fn cancel_for_operator(
        &self,
        origin: Origin,
        raw: &[u8],
        log: impl FnOnce(u32) -> Lsn,
    ) -> Cancelling {
        let number = self.outstanding.borrow().number_of(origin.account, origin.user_ref_num);
        let Some(number) = number else { return Cancelling::Ended };
        self.note_cancelled(number);
        if self.is_up.get() {
            // A client's cancel is refused only without a connection.
            return match self.send(origin, raw, log) {
                Ok(true) => Cancelling::OnItsWay,
                Ok(false) | Err(_) => Cancelling::Ended,
            };
        }
        let sending = self.outstanding.borrow_mut().assign_upstream_number(origin, raw, &mut Vec::new());
        if !matches!(sending, Sending::Passed(_)) {
            return Cancelling::Ended;
        }
        // The next connection waits for the record.
        self.lsn.set(log(number).max(self.lsn.get()));
        Cancelling::Waits
    }

    /// At most as many as are open, and some that have ended.
    fn note_cancelled(&self, number: u32) {
        let mut cancelled = self.operator_cancels.borrow_mut();
        let outstanding = self.outstanding.borrow();
        if cancelled.len() >= 2 * outstanding.open() + ENDED_SLACK {
            cancelled.retain(|number| outstanding.is_open(*number));
        }
        cancelled.insert(number);
    }

    /// The exchange has begun another session, and numbers start again.
    pub(super) fn forget_operator_cancels(&self) {
        self.operator_cancels.borrow_mut().clear();
    }

    /// Why an order is refused instead of resent, if the exchange does not have it and an operator cancelled it.
    pub(super) fn withheld_for_operator(&self, number: u32) -> Option<u16> {
        self.operator_cancels.borrow().contains(&number).then_some(reject_reason::DESTINATION_CLOSED)
    }

    /// The reason of a cancellation that the exchange attributes to the user, if an operator requested it.
    pub(super) fn operators_reason(&self, canceled: &Canceled) -> Option<u8> {
        let cancelled: &BTreeSet<u32> = &self.operator_cancels.borrow();
        (canceled.reason == cancel_reason::USER && cancelled.contains(&canceled.user_ref_num))
            .then_some(cancel_reason::SUPERVISORY)
    }

    /// Whether a kill switch, or the end of its client's connection, cancels an order until it has ended.
    pub(in crate::gateway) fn cancels_all(&self, number: u32, account: AccountId) -> bool {
        self.withheld(number, account).is_some()
    }
}
