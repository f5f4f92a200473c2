//! Messages as they were sent: unanswered ones, and the last ones about open orders.

use weir_proto::ouch::ClientOrderId;
use weir_trading::AccountId;

use crate::gateway::worker_message::MESSAGE_BYTES_MAX;

/// A numbered message that was sent and is unanswered.
pub(super) struct Unanswered {
    pub(super) received_ns: u64,
    pub(super) sent_ns: u64,
    /// It may be resent until then; 0 if not any more.
    pub(super) resend_until_ns: u64,
    pub(super) number: u32,
    pub(super) account: AccountId,
    /// Its shares, as sent.
    pub(super) quantity: u32,
    /// The upstream number of the order that it replaces; 0 stands for one that has ended. `None`: it is an order.
    pub(super) original: Option<u32>,
    /// The client's name for it.
    pub(super) client_order_id: ClientOrderId,
    /// The reason of the refusal, if it ends here.
    pub(super) refusal: u16,
    pub(super) length: u8,
    /// An earlier start has journaled it, and it is unknown whether it was sent.
    pub(super) is_restored: bool,
    /// A journal has the answer, and the next [`super::OutstandingOrders::sweep`] removes this.
    pub(super) is_answered: bool,
    pub(super) message: [u8; MESSAGE_BYTES_MAX],
}

impl Unanswered {
    pub(super) fn message(&self) -> &[u8] {
        &self.message[..usize::from(self.length)]
    }

    /// Whether it replaces another order.
    pub(super) fn is_replace(&self) -> bool {
        self.original.is_some()
    }
}

/// A message about an open order, as it was sent.
#[derive(Clone, Copy)]
pub(super) struct Passed {
    /// The last number assigned before it.
    pub(super) after: u32,
    /// Its position among all of these.
    pub(super) place: u64,
    /// The resulting size of the order.
    pub(super) quantity: u32,
    pub(super) length: u8,
    pub(super) message: [u8; MESSAGE_BYTES_MAX],
}

impl Passed {
    pub(super) fn message(&self) -> &[u8] {
        &self.message[..usize::from(self.length)]
    }
}

/// The last cancel and the last change of an order.
#[derive(Clone, Copy, Default)]
pub(super) struct About {
    pub(super) cancel: Option<Passed>,
    pub(super) change: Option<Passed>,
}
