//! Orders that end without a message from the exchange: when it has begun another session, and when they are not sent,
//! or not resent.

use weir_proto::soup::Name;
use weir_trading::{AccountId, Origin, WhenFull};

use super::{Effect, Effects, End, Expired, UpstreamSession, Why};
use crate::gateway::{
    outstanding::OutstandingOrders,
    unsolicited_cancels::Expiry,
    worker_message::{next_epoch, pack_sequence},
};

impl UpstreamSession {
    /// The exchange has begun another session than the known one, if there is one. Its earlier messages in it concern
    /// nobody here.
    ///
    /// # Errors
    /// If no count is left for it, nothing has changed.
    pub(super) fn begin_anew(
        &mut self,
        session: Name<10>,
        next: u64,
        effects: &mut Effects,
    ) -> Result<(), End> {
        let former = self.known.epoch;
        // Without a journal, epochs need not be distinct.
        let epoch = next_epoch(former).or((!self.is_journaled).then_some(former)).ok_or(End::Uncounted)?;
        let before = self.known.name.replace(session);
        (self.known.epoch, self.known.next, self.known.replay_until) = (epoch, next, 0);
        self.known.homes = Default::default();
        let Some(before) = before else {
            effects.push(Effect::Begun { epoch, session });
            return Ok(());
        };
        let expiries = self.leave_orders();
        let ended = Expired { why: Why::SessionOver, session: pack_sequence(self.key, former, 0), expiries };
        effects.push(Effect::BegunAnew { epoch, session, before, ended });
        Ok(())
    }

    /// No order continues in the next session, whose numbers start again.
    pub(super) fn leave_orders(&mut self) -> Vec<Expiry> {
        self.forget_handed();
        let expiries = self.cancels.count_ended(&mut self.outstanding, OutstandingOrders::begin_anew);
        self.cancels.leave_orders();
        expiries
    }

    /// The key of the current session, for the orders that end in it.
    pub(super) fn session_key(&self) -> u64 {
        pack_sequence(self.key, self.known.epoch, 0)
    }

    /// Ends every open order here. Call it when they have been cancelled: those that no connection was given are over
    /// then. At a venue that forgets orders they are not known to be open, and stay.
    pub(in crate::gateway) fn give_up_orders(&mut self, effects: &mut Effects) {
        if self.outstanding.limits().when_full == WhenFull::ForgetOldest {
            return;
        }
        let key = |(origin, _): (Origin, Option<u32>)| (origin.account, origin.user_ref_num);
        let open: Vec<_> = self.outstanding.open_orders().map(key).collect();
        let give_up = |outstanding: &mut OutstandingOrders| outstanding.give_up(open);
        let expiries = self.cancels.count_ended(&mut self.outstanding, give_up);
        self.release_ignored(effects);
        effects.expire(Why::GivenUp, self.session_key(), expiries);
    }

    fn release_ignored(&mut self, effects: &mut Effects) {
        for origin in self.outstanding.take_ignored() {
            effects.push(Effect::Release(origin));
        }
    }

    /// Refuses unanswered orders that were not resent. Their answers may be among the messages that the exchange had
    /// to send when it was joined, and heartbeats may come anywhere among these. Two events show that all of them
    /// have come: an answer to a number that was assigned later; or a heartbeat, which is sent only when there is
    /// nothing else to send, after the answer to this connection's account query.
    #[cold]
    pub(super) fn refuse_stale(&mut self, effects: &mut Effects) {
        if self.connection.as_mut().and_then(|connection| connection.stale.take()).is_none() {
            return;
        }
        let Self { cancels, outstanding, urgent, .. } = self;
        let stale = cancels.count_ended(outstanding, |outstanding| outstanding.take_stale(&mut urgent.bytes));
        urgent.messages += stale.len() as u64;
        effects.has_output = true;
        self.release_ignored(effects);
        effects.expire(Why::Stale, self.session_key(), stale);
    }

    /// Refuses orders that have waited too long to be sent, for the journal or for an exchange that does not read:
    /// their prices are out of date. Those that only an earlier connection was given are set aside: they wait until it
    /// is known whether the exchange has them. Returns when the next one will be due.
    #[cold]
    pub(super) fn refuse_late(&mut self, now_ns: u64, effects: &mut Effects) -> Option<u64> {
        let Self { cancels, outstanding, handed, .. } = self;
        let late = cancels.count_ended(outstanding, |outstanding| outstanding.withdraw_late(*handed, now_ns));
        self.release_ignored(effects);
        let (last, is_any) = (self.outstanding.last_number(), !late.is_empty());
        effects.expire(Why::Late, self.session_key(), late);
        let connection = self.connection.as_mut()?;
        let above = connection.handed_here;
        let is_withheld = self.outstanding.withhold_late(above, now_ns);
        if is_withheld {
            connection.stale = Some(last.saturating_add(1));
        }
        if is_withheld || is_any {
            connection.taken_back = last;
        }
        self.outstanding.first_wait_until_ns(above)
    }

    /// Ends orders, of an account or of all, that no connection was given. Those that only an earlier connection was
    /// given are not resent.
    pub(super) fn take_back(&mut self, account: Option<AccountId>, refusal: u16, effects: &mut Effects) {
        let (last, handed, session) = (self.outstanding.last_number(), self.handed, self.session_key());
        if last > handed {
            let withdraw =
                |outstanding: &mut OutstandingOrders| outstanding.withdraw(account, handed, refusal);
            effects.expire(
                Why::Cancelled,
                session,
                self.cancels.count_ended(&mut self.outstanding, withdraw),
            );
        }
        // Without a connection, the next one decides about the others.
        let is_up = self.is_up();
        let Some(connection) = &mut self.connection else { return };
        if last > handed {
            connection.taken_back = last;
        }
        let above = connection.handed_here;
        if is_up && handed > above && self.outstanding.withhold(account, above, refusal) {
            (connection.stale, connection.taken_back) = (Some(last.saturating_add(1)), last);
        }
    }
}
