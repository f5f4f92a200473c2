//! Where orders end up: what a venue is given, and where it leaves what it has to say.

use weir_proto::ouch;

use crate::account::AccountId;

/// Takes what a venue has to say. Messages of one account are emitted in the order in which it must see them.
pub trait Emit {
    /// One sequenced message to one account.
    fn emit(&mut self, account: AccountId, message: &ouch::Outbound);
}

impl<F: FnMut(AccountId, &ouch::Outbound)> Emit for F {
    fn emit(&mut self, account: AccountId, message: &ouch::Outbound) {
        self(account, message);
    }
}

/// What became of a message given to a venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    /// It took effect or was answered; its number, where it brought a new one, is used up.
    Consumed,
    /// It changed nothing that its new number names: a replacement of an order that is not there or that ended in
    /// the cancellation of the original. The number may be used again:
    /// [`UserRefNums::release_number`](crate::UserRefNums::release_number).
    NotConsumed,
}

/// Where orders end up. It stands behind the rule of [`UserRefNums`](crate::UserRefNums): it is never shown a number
/// twice.
pub trait Venue {
    /// Applies one message of an account. `now_ns` counts from midnight; it becomes the time stamp of the answers.
    fn handle(
        &mut self,
        now_ns: u64,
        account: AccountId,
        message: &ouch::Inbound<'_>,
        emit: &mut impl Emit,
    ) -> Handled;

    /// The account's connection ended and its orders are not to outlive it: cancels all of them.
    fn disconnected(&mut self, now_ns: u64, account: AccountId, emit: &mut impl Emit);
}
