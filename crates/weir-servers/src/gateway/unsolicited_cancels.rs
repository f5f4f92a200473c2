//! Orders that end without a word of their exchange: because it has begun another session, because they are too old to
//! be sent again, because they are to be cancelled and were not sent, or because an operator gives them up. Their
//! clients are told by the protocol's own means.
//!
//! Each is told once. What a client is told is a record of its stream that names the session the order was sent in, and
//! so ends the order for every later start, however far the telling had come when the gateway ended.

use std::{cell::RefCell, collections::VecDeque};

use weir_proto::ouch::{
    Canceled, ClientOrderId, Outbound, Rejected, codes::cancel_reason::TIMEOUT,
    reject_reason::DESTINATION_CLOSED,
};
use weir_trading::Origin;

use super::worker::Gateway;

/// So many are told when the journal and the other workers have room.
pub(super) const SHARE_MAX: usize = 256;

/// An order that has ended here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expiry {
    pub(super) origin: Origin,
    /// Shares that were left of an accepted order. None: it was never answered.
    pub(super) left: Option<u32>,
    client_order_id: ClientOrderId,
    /// Why it is refused, where it was never answered.
    refusal: u16,
}

impl Expiry {
    pub(super) fn new(origin: Origin, left: Option<u32>, id: Option<ClientOrderId>) -> Self {
        let client_order_id = id.unwrap_or(ClientOrderId([b' '; 14]));
        Self { origin, left, client_order_id, refusal: DESTINATION_CLOSED }
    }

    /// The same, refused for another reason than that its exchange was not there.
    pub(super) fn refused_with(self, refusal: u16) -> Self {
        Self { refusal, ..self }
    }

    /// What its client is told: that its time has run out, or that it was never taken.
    fn message(&self, timestamp_ns: u64) -> Outbound {
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

/// Expiries that are not told yet, each with what names the session of its order (`pack_sequence`). No more than orders
/// may be open.
pub(super) type Untold = RefCell<VecDeque<(u64, Expiry)>>;

impl Gateway {
    /// Tells all of them, a share at a time. Several tasks may do so at once, as many as there are clients that go
    /// away: each waits for room before its first share too, so that they bring no more than one does.
    pub(super) async fn expire(&self, untold: &Untold) {
        while !untold.borrow().is_empty() {
            self.all_room().await;
            for _ in 0..SHARE_MAX {
                let Some((upstream_sequence, expiry)) = untold.borrow_mut().pop_front() else { return };
                self.tell_expiry(&expiry, upstream_sequence);
            }
        }
    }

    /// Whether a client can be told that its order has ended. It is by the next start, if its journal has failed.
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
        let now = self.store.now();
        let mut raw = Vec::new();
        expiry.message(self.store.time_of_day_ns(now)).encode(&mut raw);
        self.counters.taken.add(1);
        self.counters.expired.add(1);
        if expiry.left.is_none() {
            self.store.counters().count_reject(expiry.refusal);
        }
        self.reply(&expiry.origin, &raw, upstream_sequence, now);
    }
}
