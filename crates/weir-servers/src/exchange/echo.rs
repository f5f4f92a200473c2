//! The venue that answers each message once, behind one worker's sessions.

use std::{cell::RefCell, rc::Rc};

use weir_engine::time::Instant;
use weir_proto::ouch::{Inbound, Outbound};
use weir_trading::{AccountId, EchoConfig, EchoVenue, Handled, Venue};

use crate::orders::{Application, Hub};

/// One worker's part of the exchange.
pub(super) struct EchoExchange {
    hub: Rc<Hub>,
    venue: RefCell<EchoVenue>,
}

impl EchoExchange {
    /// `given_max`: references up to this one were given out before.
    pub(super) fn new(hub: Rc<Hub>, given_max: u64) -> Self {
        let config = EchoConfig {
            accounts_max: hub.account_count(),
            // Each worker gives every so-manieth reference.
            reference_first: given_max.saturating_add(hub.worker() as u64 + 1),
            reference_step: hub.workers() as u64,
            ..EchoConfig::default()
        };
        Self { hub, venue: RefCell::new(EchoVenue::new(config)) }
    }
}

impl Application for EchoExchange {
    #[inline]
    fn on_message(&self, account: AccountId, message: Inbound<'_>, _raw: &[u8], now: Instant) {
        let hub = &*self.hub;
        let mut emit = |account: AccountId, message: &Outbound| {
            if let Outbound::Rejected(rejected) = message {
                hub.counters().count_reject(rejected.reason);
            }
            hub.emit_message(account, message);
        };
        let now_ns = hub.time_of_day_ns(now);
        let handled = self.venue.borrow_mut().handle(now_ns, account, &message, &mut emit);
        if handled == Handled::NotConsumed
            && let Inbound::Replace(replace, _) = message
        {
            hub.give_back(account, replace.user_ref_num);
        }
    }

    fn on_disconnect(&self, account: AccountId) {
        let hub = &*self.hub;
        if !hub.account(account).cancel_on_disconnect {
            return;
        }
        let mut cancelled = 0;
        let mut emit = |account: AccountId, message: &Outbound| {
            cancelled += 1;
            hub.emit_message(account, message);
        };
        let now_ns = hub.time_of_day_ns(hub.tick());
        self.venue.borrow_mut().disconnected(now_ns, account, &mut emit);
        hub.counters().add_cancels_on_disconnect(cancelled);
    }
}
