//! The venue that answers each message once, behind one worker's sessions.

use std::{cell::RefCell, rc::Rc};

use weir_engine::time::Instant;
use weir_proto::ouch::{Inbound, Outbound};
use weir_trading::{AccountId, EchoConfig, EchoVenue, Handled, Venue};

use crate::orders::{Application, ClientMessage, SessionStore};

/// One worker's part of the exchange.
pub(super) struct EchoExchange {
    store: Rc<SessionStore>,
    venue: RefCell<EchoVenue>,
}

impl EchoExchange {
    /// `given_max`: references up to this one have been given out before.
    pub(super) fn new(store: Rc<SessionStore>, given_max: u64) -> Self {
        let config = EchoConfig {
            accounts_max: store.account_count(),
            // Each of N workers gives out every N-th reference.
            reference_first: given_max.saturating_add(store.worker() as u64 + 1),
            reference_step: store.workers() as u64,
            ..EchoConfig::default()
        };
        Self { store, venue: RefCell::new(EchoVenue::new(config)) }
    }
}

impl Application for EchoExchange {
    #[inline]
    fn on_message(&self, account: AccountId, message: &ClientMessage<'_>, now: Instant) {
        let store = &*self.store;
        let mut emit = |account: AccountId, message: &Outbound| {
            if let Outbound::Rejected(rejected) = message {
                store.counters().count_reject(rejected.reason);
            }
            store.emit_message(account, message);
        };
        let now_ns = store.time_of_day_ns(now);
        let handled = self.venue.borrow_mut().handle(now_ns, account, message.inbound(), &mut emit);
        if handled == Handled::NotConsumed
            && let Inbound::Replace(replace, _) = message.inbound()
        {
            store.release_number(account, replace.user_ref_num);
        }
    }

    fn on_disconnect(&self, account: AccountId) {
        let store = &*self.store;
        if !store.account(account).cancel_on_disconnect() {
            return;
        }
        let mut cancelled = 0;
        let mut emit = |account: AccountId, message: &Outbound| {
            cancelled += 1;
            store.emit_message(account, message);
        };
        let now_ns = store.time_of_day_ns(store.tick());
        self.venue.borrow_mut().disconnected(now_ns, account, &mut emit);
        store.counters().add_cancels_on_disconnect(cancelled);
    }
}
