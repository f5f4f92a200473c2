//! Joins an upstream session: the requested messages, the meaning of an accepted login, and the answer to the account
//! query that makes the session usable.

use weir_engine::time::{self, Instant};
use weir_proto::{
    ouch::ACCOUNT_QUERY,
    soup::{ClientSession, LoginRequest, UNSEQUENCED, encode_frame},
};

use super::{Ended, Login, QUERY_LIMIT, Upstream};
use crate::gateway::{
    upstream_login::{LoginOutcome, QueryAnswer},
    worker::Gateway,
};

impl Upstream {
    /// Called when a connection begins. If orders are refused unless the exchange shows an answer to them, it matters
    /// when it has sent everything.
    pub(super) fn begin_login(&self) {
        let withheld = |number, account| self.withheld(number, account);
        let refuses = self.outstanding.borrow().refuses(time::now().as_nanos(), withheld);
        let mut joining = self.joining.get();
        joining.begin(refuses);
        self.joining.set(joining);
    }

    pub(super) fn login(&self) -> LoginRequest {
        let (session, sequence) = self.joining.get().wanted(self.session.get(), self.next.get());
        let Login { username, password, .. } = *self.login.borrow();
        LoginRequest { username, password, session, sequence, heartbeat_timeout_ms: None }
    }

    /// Logged in: asks for the next number. Orders are sent when that is answered.
    pub(super) fn on_login(&self, gateway: &Gateway, next: u64, now: Instant) -> Result<(), Ended> {
        let session = self.rules.borrow().as_ref().map(ClientSession::session).unwrap_or_default();
        let known = self.session.get().map(|session| (session, self.next.get()));
        let patience_ns = self.login.borrow().timing.heartbeat_timeout_ns.saturating_mul(2);
        let mut joining = self.joining.get();
        let joined = joining.accepted(known, (session, next), now.as_nanos(), patience_ns);
        if joined == LoginOutcome::NewSession {
            self.begin_anew(gateway, session, next)?;
        }
        self.joining.set(joining);
        match joined {
            LoginOutcome::Continued | LoginOutcome::NewSession => {}
            LoginOutcome::Gap(messages) => {
                gateway.counters.missed.add(messages);
                gateway.tell_gap(self, messages, (session, next));
                self.outstanding.borrow_mut().note_gap();
                self.next.set(next);
            }
            LoginOutcome::Proven => return Err(Ended::Proven),
            LoginOutcome::Probed => return Err(Ended::Withheld),
            LoginOutcome::Measured => return Err(Ended::Measured),
        }
        gateway.log_endpoint(self.key);
        gateway.show_session(self, session, None);
        let mut query = Vec::new();
        encode_frame(UNSEQUENCED, &[ACCOUNT_QUERY], &mut query);
        self.urgent.borrow_mut().messages += 1;
        self.answer_due.set(Some(now + QUERY_LIMIT));
        self.say(&query);
        Ok(())
    }

    /// Handles an answer to an account query, of this connection or of an earlier one. In any case it shows which
    /// numbers the exchange had handled by then.
    #[cold]
    pub(super) fn on_numbers(&self, gateway: &Gateway, (sequence, next): (u64, u32), now: Instant) {
        self.outstanding.borrow_mut().raise_next(next);
        let mut joining = self.joining.get();
        if joining.is_open() {
            // It may be the answer of another session than the known one.
            return;
        }
        let answer = joining.answered(sequence);
        self.joining.set(joining);
        if answer == QueryAnswer::Older {
            return;
        }
        self.answer_due.set(None);
        if !self.is_up.get() {
            self.come_up(gateway, now);
        } else if self.outstanding.borrow_mut().set_aside_passed_over() {
            let last = self.outstanding.borrow().last_number();
            self.stale.set(Some(last.saturating_add(1)));
        }
    }

    /// An order that was sent after this connection's query has its answer.
    #[cold]
    pub(super) fn note_all_heard(&self) {
        let mut joining = self.joining.get();
        joining.note_all_heard();
        self.joining.set(joining);
    }
}
