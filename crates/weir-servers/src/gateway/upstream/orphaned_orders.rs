//! Orders of an upstream session that end without a message from the exchange: when it has begun another session, and
//! when they are not sent, or not resent.

use weir_proto::soup::Name;

use super::{Ended, Upstream, mass_cancel::PendingMassCancel};
use crate::gateway::{
    outstanding::OutstandingOrders,
    unsolicited_cancels::Expiry,
    worker::Gateway,
    worker_message::{next_epoch, pack_sequence},
};
use crate::orders::EventKind;

impl Upstream {
    /// The exchange has begun another session than the known one, if there is one. Its earlier messages in it concern
    /// nobody here.
    ///
    /// # Errors
    /// If no count is left for it, nothing has changed.
    pub(super) fn begin_anew(&self, gateway: &Gateway, session: Name<10>, next: u64) -> Result<(), Ended> {
        let epoch = self.epoch.get();
        // Without a journal, epochs need not be distinct.
        let is_kept = gateway.store.journal().is_some();
        let count = next_epoch(epoch).or((!is_kept).then_some(epoch)).ok_or(Ended::Uncounted)?;
        self.epoch.set(count);
        let before = self.session.replace(Some(session));
        self.next.set(next);
        self.replay_until.set(0);
        self.homes.set(Default::default());
        // Its record separates earlier messages from later ones.
        gateway.log_session(self.key, self.epoch.get(), &session);
        let Some(before) = before else { return Ok(()) };
        let expiries = self.leave_orders();
        gateway.counters.begun_anew.add(1);
        let expired = expiries.iter().filter(|expiry| gateway.can_tell(expiry)).count();
        let is_all = expired == expiries.len();
        self.expire(expiries, epoch);
        gateway.show_session(self, session, Some(expired as u64));
        let rest = if is_all {
            ""
        } else {
            ", and others do when the gateway is started again: a journal has failed"
        };
        let what = format_args!(
            "the exchange has begun session {session} after {before}; {expired} orders expired{rest}"
        );
        gateway.notice(self, EventKind::VenueSessionNew, what);
        Ok(())
    }

    /// No order continues in the next session, whose numbers start again.
    pub(super) fn leave_orders(&self) -> Vec<Expiry> {
        self.handed.set(0);
        self.handed_here.set(0);
        self.taken_back.set(0);
        let expiries = self.end_here(OutstandingOrders::begin_anew);
        self.mass_cancels.borrow_mut().values_mut().for_each(PendingMassCancel::leave_orders);
        self.forget_operator_cancels();
        expiries
    }

    /// These orders of a session have ended here: clients are informed as soon as there is room.
    pub(super) fn expire(&self, expiries: Vec<Expiry>, epoch: u16) {
        let session = pack_sequence(self.key, epoch, 0);
        self.untold.borrow_mut().extend(expiries.into_iter().map(|expiry| (session, expiry)));
    }

    /// Refuses unanswered orders that were not resent. Their answers may be among the messages that the exchange had
    /// to send when it was joined, and heartbeats may come anywhere among these. Two events show that all of them
    /// have come: an answer to a number that was assigned later; or a heartbeat, which is sent only when there is
    /// nothing else to send, after the answer to this connection's account query.
    #[cold]
    pub(super) fn refuse_stale(&self, gateway: &Gateway) {
        if self.stale.take().is_none() {
            return;
        }
        let stale = {
            let mut urgent = self.urgent.borrow_mut();
            let stale = self.end_here(|outstanding| outstanding.take_stale(&mut urgent.bytes));
            urgent.messages += stale.len() as u64;
            stale
        };
        self.flush.raise();
        let ignored = self.outstanding.borrow_mut().take_ignored();
        ignored.iter().for_each(|origin| gateway.release_number(origin));
        let refused = stale.iter().filter(|expiry| gateway.can_tell(expiry)).count();
        if refused > 0 {
            let what = format_args!(
                "{refused} orders were too old or are to be cancelled, and are refused instead of sent again"
            );
            gateway.notice(self, EventKind::OrdersStale, what);
        }
        self.expire(stale, self.epoch.get());
    }

    /// Refuses orders that have waited too long to be sent, for the journal or for an exchange that does not read:
    /// their prices are out of date. Returns when the next one will be due.
    #[cold]
    pub(super) fn refuse_late(&self, gateway: &Gateway, now_ns: u64) -> Option<u64> {
        let (late, until_ns) = self.end_late(now_ns);
        let ignored = self.outstanding.borrow_mut().take_ignored();
        ignored.iter().for_each(|origin| gateway.release_number(origin));
        if late.is_empty() {
            return until_ns;
        }
        let refused = late.iter().filter(|expiry| gateway.can_tell(expiry)).count();
        let what = format_args!("{refused} orders were too old when they could be sent, and are refused");
        gateway.notice(self, EventKind::OrdersStale, what);
        self.expire(late, self.epoch.get());
        until_ns
    }

    /// Ends orders that have waited too long and were never given to a connection. Those that only an earlier
    /// connection had are set aside: they wait until it is known whether the exchange has them. Returns the ended
    /// ones, and when the next of the rest will be too old.
    pub(super) fn end_late(&self, now_ns: u64) -> (Vec<Expiry>, Option<u64>) {
        let last = self.outstanding.borrow().last_number();
        let handed = self.handed.get();
        let late = self.end_here(|outstanding| outstanding.withdraw_late(handed, now_ns));
        let above = self.handed_here.get();
        let is_withheld = self.outstanding.borrow_mut().withhold_late(above, now_ns);
        if is_withheld {
            self.stale.set(Some(last.saturating_add(1)));
        }
        if is_withheld || !late.is_empty() {
            self.taken_back.set(last);
        }
        (late, self.outstanding.borrow().first_wait_until_ns(above))
    }
}
