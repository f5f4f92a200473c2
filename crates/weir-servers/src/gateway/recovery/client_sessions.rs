//! Sessions with clients, if order numbers begin with 1 in each of them: what a number means ends with its session.

use weir_proto::ouch::Outbound;
use weir_trading::{Origin, WhenFull};

use super::{Recovering, Session};
use crate::{
    gateway::outstanding::OutstandingLimits,
    orders::{Record, RecordKind},
};

/// The sessions that the records belong to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClientSessions {
    /// Whether order numbers begin with 1 in each; otherwise the rest does not matter.
    pub(super) numbers_restart: bool,
    /// The last one that has records of orders, counted from 0.
    pub(super) last: u16,
    /// The one that clients can join with this start.
    current: u16,
}

impl ClientSessions {
    /// Whether every order in the journals is of a session that has ended.
    pub(super) fn are_over(self) -> bool {
        self.numbers_restart && self.current > self.last
    }
}

impl Recovering<'_> {
    /// Order numbers begin with 1 in each session with clients.
    pub(in crate::gateway) fn with_numbers_that_restart(mut self, numbers_restart: bool) -> Self {
        self.clients.numbers_restart = numbers_restart;
        self
    }

    /// Call it when everything has been read: clients can join this session.
    pub(in crate::gateway) fn set_current_session(&mut self, generation: u16) {
        self.clients.current = generation;
        if self.clients.are_over() {
            self.forget_numbers();
        }
    }

    /// Whether a record belongs to a session that has ended before others that were read: a clock was set back between
    /// two starts. No order of it is open: otherwise the later session would not have begun. Only their answers
    /// count, as received.
    pub(super) fn is_of_ended_session(&mut self, record: &Record<'_>) -> bool {
        let (account, message) = match record.kind {
            RecordKind::Sequenced { account, upstream_sequence, message, .. } => {
                (account, Some((upstream_sequence, message)))
            }
            RecordKind::Inbound { account, .. }
            | RecordKind::Sent { account, .. }
            | RecordKind::Refused { account, .. } => (account, None),
            // These name no order.
            RecordKind::Application { .. } => return false,
        };
        if !self.clients.numbers_restart || record.generation == self.clients.last {
            return false;
        }
        if record.generation > self.clients.last {
            self.clients.last = record.generation;
            self.forget_numbers();
            self.leave_orders();
            return false;
        }
        if let Some((upstream_sequence, message)) = message {
            if let Ok((message, _)) = Outbound::decode(message) {
                self.positions.note_ended_execution(record.generation, account, &message);
            }
            self.note_heard(record.worker, account, upstream_sequence);
        }
        true
    }

    /// A session has ended: its numbers name other orders from now on. What an exchange still says about an order of
    /// that session reaches no client, because it would name one of theirs.
    fn forget_numbers(&mut self) {
        for session in self.sessions.values_mut() {
            // Orders that wait for room have their answers in `early`.
            session.finish_orders(&mut self.early);
            session.outstanding.forget_ended_orders();
        }
        // Their exchanges have left these orders with their sessions.
        self.former.clear();
        self.unsent.clear();
        self.refused_in_stream.clear();
        self.sent_first.clear();
        self.last_sent.clear();
        self.early.clear();
        self.positions.forget_numbers();
    }

    /// An operator has given up the orders that were open when their session with clients ended: no later session would
    /// have begun otherwise.
    fn leave_orders(&mut self) {
        for ((_, venue), session) in &mut self.sessions {
            let limits = self.limits.get(*venue).copied().unwrap_or_default();
            session.leave_orders(limits);
        }
    }
}

impl Session {
    /// Ends all open orders, without a report to their clients. They are cancelled at every login, unless it is unknown
    /// whether they are open.
    pub(super) fn leave_orders(&mut self, limits: OutstandingLimits) {
        if limits.when_full == WhenFull::ForgetOldest {
            return self.outstanding.leave_accounts(|_| false);
        }
        let key = |(origin, _): (Origin, Option<u32>)| (origin.account, origin.user_ref_num);
        let open: Vec<_> = self.outstanding.open_orders().map(key).collect();
        // The expiries name orders of the ended session.
        self.outstanding.give_up(open);
    }
}
