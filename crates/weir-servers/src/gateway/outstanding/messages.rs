//! Messages as they were sent: unanswered ones, and the last ones about open orders.

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
}

/// A message about an open order, as it was sent.
#[derive(Clone, Copy)]
pub(super) struct Passed {
    /// The last number assigned before it.
    pub(super) after: u32,
    /// Its position among all of these.
    pub(super) place: u64,
    pub(super) length: u8,
    pub(super) message: [u8; MESSAGE_BYTES_MAX],
}

impl Passed {
    pub(super) fn message(&self) -> &[u8] {
        &self.message[..usize::from(self.length)]
    }

    /// The resulting size of the order.
    pub(super) fn quantity(&self) -> u32 {
        self.message[5..9].try_into().map_or(0, u32::from_be_bytes)
    }
}

/// The last cancel and the last change of an order.
#[derive(Clone, Copy, Default)]
pub(super) struct About {
    pub(super) cancel: Option<Passed>,
    pub(super) change: Option<Passed>,
}
