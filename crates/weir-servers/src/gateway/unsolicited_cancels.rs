//! Orders that end without a message from their exchange: because it has begun another session, because they are too
//! old to be resent, because they are to be cancelled and were not sent, or because an operator gives them up. Their
//! clients are informed by the protocol's own messages.
//!
//! Each is reported once. The report is a record of the client's stream that names the session in which the order was
//! sent. So it ends the order for every later start, however many reports were sent when the gateway ended.

use std::{cell::RefCell, collections::VecDeque};

use weir_proto::ouch::{
    Canceled, ClientOrderId, Outbound, Rejected, codes::cancel_reason::TIMEOUT,
    reject_reason::DESTINATION_CLOSED,
};
use weir_trading::Origin;

use super::worker::{Gateway, Report};

/// This many are reported at a time, when the journal and the other workers have room.
pub(super) const SHARE_MAX: usize = 256;

/// An order that has ended here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expiry {
    pub(super) origin: Origin,
    /// Remaining shares of an accepted order. None: it was never answered.
    pub(super) left: Option<u32>,
    client_order_id: ClientOrderId,
    /// The reason of the refusal, if it was never answered.
    refusal: u16,
}

impl Expiry {
    pub(super) fn new(origin: Origin, left: Option<u32>, id: Option<ClientOrderId>) -> Self {
        let client_order_id = id.unwrap_or(ClientOrderId::BLANK);
        Self { origin, left, client_order_id, refusal: DESTINATION_CLOSED }
    }

    /// The same, refused for another reason than an unreachable exchange.
    pub(super) fn refused_with(self, refusal: u16) -> Self {
        Self { refusal, ..self }
    }

    /// The message to its client: that it has timed out, or that it was never accepted.
    pub(super) fn message(&self, timestamp_ns: u64) -> Outbound {
        let user_ref_num = self.origin.user_ref_num;
        match self.left {
            Some(quantity) => {
                Outbound::Canceled(Canceled { timestamp_ns, user_ref_num, quantity, reason: TIMEOUT })
            }
            None => Outbound::Rejected(Rejected {
                timestamp_ns,
                user_ref_num,
                reason: self.refusal,
                client_order_id: self.client_order_id,
            }),
        }
    }
}

/// Expiries that have not been reported, each with the key of its order's session (`pack_sequence`). At most as many
/// as orders may be open.
pub(super) type Untold = RefCell<VecDeque<(u64, Expiry)>>;

impl Gateway {
    /// Reports all of them, a share at a time. Several tasks may do so at once, one for each client that disconnects:
    /// each waits for room before its first share too, so that together they send no more than one does.
    pub(super) async fn expire(&self, untold: &Untold) {
        while !untold.borrow().is_empty() {
            self.all_room().await;
            for _ in 0..SHARE_MAX {
                let Some((upstream_sequence, expiry)) = untold.borrow_mut().pop_front() else { return };
                self.tell_expiry(&expiry, upstream_sequence);
            }
        }
    }

    /// Whether a client can be informed that its order has ended. If its journal has failed, the next start does
    /// that.
    pub(super) fn can_tell(&self, expiry: &Expiry) -> bool {
        let home = usize::from(expiry.origin.home);
        if home == self.worker {
            return !self.has_failed();
        }
        self.common.counters.get(home).is_some_and(|home| home.has_failed.get() == 0)
    }

    fn tell_expiry(&self, expiry: &Expiry, upstream_sequence: u64) {
        if !self.can_tell(expiry) {
            return;
        }
        // The last tick may be long ago: nothing of this worker has to have happened before an expiry. A record with a
        // time before that of a checkpoint would make the checkpoint useless.
        let now = self.store.tick();
        let (message, mut raw) = (expiry.message(self.store.time_of_day_ns(now)), Vec::new());
        message.encode(&mut raw);
        self.counters.taken.add(1);
        self.counters.expired.add(1);
        if expiry.left.is_none() {
            self.store.counters().count_reject(expiry.refusal);
        }
        let report = Report { raw: &raw, message: &message };
        self.reply(&expiry.origin, &report, upstream_sequence, now);
    }
}
