//! The interface of a venue: its messages, and the sink for its answers.

use weir_proto::ouch;

use crate::account::AccountId;

/// Receives a venue's messages. Messages of one account are emitted in the order in which it must see them.
pub trait Emit {
    /// One sequenced message to one account.
    fn emit(&mut self, account: AccountId, message: &ouch::Outbound);
}

impl<F: FnMut(AccountId, &ouch::Outbound)> Emit for F {
    fn emit(&mut self, account: AccountId, message: &ouch::Outbound) {
        self(account, message);
    }
}

/// The effect of a message on a venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    /// It took effect or was answered; its new number, if it has one, is used up.
    Consumed,
    /// It had no effect that its new number names: a replacement of an order that does not exist, or one that
    /// cancelled the original. The number may be used again:
    /// [`UserRefNums::release_number`](crate::UserRefNums::release_number).
    NotConsumed,
}

/// A venue of orders. It is behind the rule of [`UserRefNums`](crate::UserRefNums): it never sees a number twice.
pub trait Venue {
    /// Applies one message of an account. `now_ns` counts from midnight; the answers carry it as their time stamp.
    fn handle(
        &mut self,
        now_ns: u64,
        account: AccountId,
        message: &ouch::Inbound<'_>,
        emit: &mut impl Emit,
    ) -> Handled;

    /// The account's connection ended and its orders must not outlive it: cancels all of them.
    fn disconnected(&mut self, now_ns: u64, account: AccountId, emit: &mut impl Emit);
}
