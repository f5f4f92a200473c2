//! A venue that a reload gives another address, password or heartbeat, while the gateway runs.

use weir_trading::AccountId;

use super::{Login, Resume, Upstream};
use crate::gateway::{
    config::VenueConfig, outstanding::OutstandingOrders, unsolicited_cancels::Expiry, upstream_login::Joining,
};

impl Login {
    /// The login of a worker.
    pub(in crate::gateway) fn new(venue: &VenueConfig, worker: usize) -> Self {
        Self {
            address: venue.address.clone(),
            username: venue.usernames[worker],
            password: venue.password,
            timing: venue.timing,
        }
    }
}

impl Upstream {
    /// While this is on, orders and cancels are refused as if the exchange were away.
    pub(in crate::gateway) fn hold(&self, is_held: bool) {
        self.is_held.set(is_held);
    }

    /// Orders of an account, or of all, whose end would have to be reported to clients if the exchange were gone: those
    /// that may be open there, and those whose end has not been reported yet.
    pub(in crate::gateway) fn orders_at_stake(&self, account: Option<AccountId>) -> usize {
        let is_of = |expiry: &Expiry| account.is_none_or(|account| expiry.origin.account == account);
        let open = self.outstanding.borrow().expiries().iter().filter(|expiry| is_of(expiry)).count();
        open + self.untold.borrow().iter().filter(|(_, expiry)| is_of(expiry)).count()
    }

    /// Where the exchange is.
    pub(in crate::gateway) fn address(&self) -> String {
        self.login.borrow().address.to_string()
    }

    /// Uses this login from the next connection on.
    pub(in crate::gateway) fn relog(&self, login: Login) {
        *self.login.borrow_mut() = login;
    }

    /// Leaves the connection and makes the next one with this login. If it is the same exchange at another address,
    /// everything continues. Otherwise nothing that is known applies there: its numbers are other orders.
    pub(in crate::gateway) fn move_to(&self, login: Login, is_same_exchange: bool) {
        self.relog(login);
        self.was_in_use.set(self.is_up());
        self.leave();
        if !is_same_exchange {
            let Resume { session, next, heard, .. } = Resume::default();
            self.session.set(session);
            self.next.set(next);
            self.joining.set(Joining::after(next, heard));
            self.replay_until.set(0);
            self.handed.set(0);
            self.handed_here.set(0);
            self.taken_back.set(0);
            self.stale.take();
            self.mass_cancels.borrow_mut().clear();
            self.outstanding.replace_with(|outstanding| OutstandingOrders::new(1, outstanding.limits()));
        }
        self.moves.set(self.moves.get() + 1);
        self.moved.notify_all();
    }
}
