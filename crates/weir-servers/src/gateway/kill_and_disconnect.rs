//! Cancels that the worker sends without its clients' request: because of a kill switch, or because their client is
//! not connected. Nothing here waits, neither for a journal nor for an exchange.

use std::rc::Rc;

use weir_engine::spawn;
use weir_proto::ouch::codes::cancel_reason;
use weir_trading::AccountId;

use super::{commands::Cancels, upstream::Upstream, worker::Gateway};

impl Gateway {
    /// Cancels the open orders of an account, or of all accounts, in this worker's sessions, because of a kill
    /// switch.
    pub(super) fn cancel_killed(&self, account: Option<AccountId>) -> u64 {
        self.cancel_here(account, cancel_reason::SUPERVISORY)
    }

    fn cancel_here(&self, account: Option<AccountId>, reason: u8) -> u64 {
        let has_failed = self.has_failed();
        let mut orders = 0;
        for upstream in &self.upstreams {
            orders += upstream.cancel_all(self, account, reason, has_failed);
            // A cancel waits for nothing.
            self.tell_untold(upstream);
        }
        orders
    }

    /// Starts to inform clients of orders that have ended here, and does not wait for that.
    pub(super) fn tell_untold(&self, upstream: &Rc<Upstream>) {
        let Some(gateway) = self.this.upgrade().filter(|_| upstream.has_untold()) else { return };
        let upstream = Rc::clone(upstream);
        self.keep(spawn(async move { gateway.expire(&upstream.untold).await }));
    }

    /// The state of the last cancels of an account's orders, or of all orders, on this worker, by venue.
    pub(super) fn cancels_of(&self, account: Option<AccountId>) -> Vec<Cancels> {
        self.upstreams.iter().map(|upstream| upstream.session.borrow().cancels_of(account)).collect()
    }

    /// Cancels the open orders of an account in this worker's sessions, because its client is not connected.
    pub(super) fn cancel_of_disconnected(&self, account: AccountId) {
        let count = self.cancel_here(Some(account), cancel_reason::SYSTEM);
        self.store.counters().add_cancels_on_disconnect(count);
    }
}
