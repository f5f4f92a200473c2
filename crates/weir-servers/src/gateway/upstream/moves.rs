//! A venue that a reload gives another address, password or heartbeat, while the gateway runs.

use weir_trading::AccountId;

use super::{Login, Upstream};
use crate::gateway::{config::VenueConfig, unsolicited_cancels::Expiry, upstream_session::Credentials};

impl Login {
    /// The login of a worker.
    pub(in crate::gateway) fn new(venue: &VenueConfig, worker: usize) -> Self {
        let credentials =
            Credentials { username: venue.usernames[worker], password: venue.password, timing: venue.timing };
        Self { address: venue.address.clone(), credentials }
    }
}

impl Upstream {
    /// Orders of an account, or of all, whose end would have to be reported to clients if the exchange were gone: those
    /// that may be open there, and those whose end has not been reported yet.
    pub(in crate::gateway) fn orders_at_stake(&self, account: Option<AccountId>) -> usize {
        let is_of = |expiry: &Expiry| account.is_none_or(|account| expiry.origin.account == account);
        let open = self.session.borrow().outstanding().expiries().iter().filter(|it| is_of(it)).count();
        open + self.untold.borrow().iter().filter(|(_, expiry)| is_of(expiry)).count()
    }

    /// Where the exchange is.
    pub(in crate::gateway) fn address(&self) -> String {
        self.line.borrow().login.address.to_string()
    }

    /// Uses this login from the next connection on.
    pub(in crate::gateway) fn relog(&self, login: Login) {
        self.line.borrow_mut().login = login;
    }

    /// Leaves the connection and makes the next one with this login. If it is the same exchange at another address,
    /// everything continues. Otherwise nothing that is known applies there: its numbers are other orders.
    pub(in crate::gateway) fn move_to(&self, login: Login, is_same_exchange: bool) {
        self.relog(login);
        self.leave();
        if !is_same_exchange {
            self.session.borrow_mut().forget_exchange();
        }
        self.line.borrow_mut().moves += 1;
        self.moved.notify_all();
    }
}
