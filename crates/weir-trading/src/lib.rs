//! Orders as values: number rules, translation, routing, venues, the book, risk. No I/O and no clock.
//!
//! Everything here is told the time and hands out what it has to say; who owns sockets, journals and sessions does
//! the rest. What a **gateway** puts together: [`UserRefNums`] (one for each account), [`RiskState`] and
//! [`KillSwitch`] (one for each worker), [`Route`], and a [`Translation`] (one for each upstream session). What an
//! **exchange** puts together: [`UserRefNums`] and a [`Venue`], either [`EchoVenue`] or [`MatchingVenue`].
//!
//! Every structure has a stated maximum, is allocated when it is made (or when an account or a symbol is first
//! seen), and does not allocate afterwards. None is shared between threads.

mod admit;
mod echo;
mod key_table;
mod kill;
mod matching;
mod numbers;
mod reply;
pub mod risk;
mod route;
mod slab;
mod translation;

pub use echo::{EchoConfig, EchoVenue};
pub use kill::{KillScope, KillSwitch};
pub use matching::{MatchingConfig, MatchingVenue, Quote, SelfMatch};
pub use numbers::{NumberVerdict, UserRefNums};
pub use risk::{DuplicateLimit, Rate, References, Restored, RiskConfig, RiskLimits, RiskState};
pub use route::Route;
pub use translation::{Full, Origin, Translation, WhenFull, new_number};

use weir_proto::ouch;

/// An account: its index in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountId(pub u32);

impl AccountId {
    fn index(self) -> usize {
        self.0 as usize
    }

    /// The order of this account with this number, as one key.
    fn key(self, user_ref_num: u32) -> u64 {
        u64::from(self.0) << 32 | u64::from(user_ref_num)
    }
}

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
    /// the cancellation of the original. The number may be used again: [`UserRefNums::give_back`].
    NotConsumed,
}

/// Where orders end up. It stands behind the rule of [`UserRefNums`]: it is never shown a number twice.
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
