//! Questions of operators about what the workers have: open orders, positions, exposures; and cancels of single orders.
//!
//! A question reaches a worker through a mailbox beside that of commands, so that a kill switch never waits behind
//! one. Each is a slice of bounded work: [`SLICE_MAX`] places of a table, or [`CANCELS_MAX`] cancels, some tens of
//! microseconds. Between two slices the worker runs its other tasks, and the asking thread sends the next slice only
//! when it has the answer to the last. So an order waits for at most one slice for each of the few askers, and a worker
//! that nobody asks does nothing for this: no list is kept beside the tables that orders need anyway.

use std::{
    ops::Range,
    rc::Rc,
    sync::mpsc::{SyncSender, sync_channel},
    time::Duration,
};

use weir_engine::{
    mailbox::{MailboxReceiver, MailboxSender},
    time::yield_now,
};
use weir_proto::ouch::{Cancel, Inbound};
use weir_trading::{AccountId, LiveOrder, LiveTerms, Origin, Position, Unattributed};

use super::{upstream_session::Cancelling, worker::Gateway};
use crate::orders::ClientMessage;

/// Places, accounts or orders of one question.
pub(super) const SLICE_MAX: u32 = 256;
/// Cancels of one question: each is journaled.
pub(super) const CANCELS_MAX: usize = 64;
/// Questions that may wait for a worker: more than callers may ask at a time.
pub(super) const WAITING_MAX: usize = 16;
/// How long a worker may take for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// An order of a client, by its own number.
pub(super) type OrderKey = (AccountId, u32);

/// An open order in a session with an exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenOrder {
    pub(super) live: LiveOrder,
    /// What its home worker knows of it. `None` if it knows nothing, or if another worker is its home: ask that one.
    pub(super) terms: Option<LiveTerms>,
    /// A cancel of all its shares was sent, or will be.
    pub(super) is_cancelled: bool,
    /// No connection was given it, and none will be: the journal has failed.
    pub(super) is_never_sent: bool,
    /// How long it has been here; `None` for an order of an earlier start.
    pub(super) age_ns: Option<u64>,
}

/// Some of the open orders in a session.
#[derive(Debug)]
pub(super) struct OrderSlice {
    pub(super) orders: Vec<OpenOrder>,
    /// The first place behind the slice; `None` if there are no more.
    pub(super) next: Option<u32>,
    /// The last number assigned in the session.
    pub(super) last_number: u32,
}

/// Some positions.
#[derive(Debug)]
pub(super) struct PositionSlice {
    pub(super) positions: Vec<Position>,
    /// As in [`OrderSlice`].
    pub(super) next: Option<u32>,
}

/// One account of a worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct AccountSums {
    pub(super) account: AccountId,
    pub(super) exposure: u64,
    pub(super) exposure_max: Option<u64>,
    pub(super) unattributed: Unattributed,
}

/// The state of named orders at one venue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CancelCount {
    /// Orders that were open.
    pub(super) orders: u64,
    /// Cancels that are on their way to the exchange. The others wait for a connection.
    pub(super) sent: u64,
}

/// The result of cancels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CancelOutcome {
    /// By venue.
    pub(super) counts: Vec<CancelCount>,
    /// The journal takes no more records now, and some orders were not cancelled.
    pub(super) is_journal_full: bool,
}

/// A question, with the destination of its answer.
#[derive(Debug)]
pub(super) enum Query {
    /// The open orders in these places of the session with a venue, of an account or of all.
    Orders { venue: usize, places: Range<u32>, account: Option<AccountId>, answer: SyncSender<OrderSlice> },
    /// The terms of these orders of clients of this worker.
    Terms { orders: Vec<OrderKey>, answer: SyncSender<Vec<Option<LiveTerms>>> },
    /// Cancel those of these orders that are open here.
    Cancel { orders: Vec<OrderKey>, answer: SyncSender<CancelOutcome> },
    /// Those of these orders that are open here, by venue.
    StillOpen { orders: Vec<OrderKey>, answer: SyncSender<Vec<u64>> },
    /// Positions in these places.
    Positions { places: Range<u32>, answer: SyncSender<PositionSlice> },
    /// The accounts of this worker among these.
    Accounts { accounts: Range<u32>, answer: SyncSender<Vec<AccountSums>> },
    /// End the connection of an account of this worker; the answer is whether there is one.
    Disconnect { account: AccountId, answer: SyncSender<bool> },
}

/// The asking side, for other threads.
pub(super) struct Asker {
    workers: Vec<MailboxSender<Query>>,
    patience: Duration,
}

impl Asker {
    pub(super) fn new(workers: Vec<MailboxSender<Query>>) -> Self {
        Self { workers, patience: PATIENCE }
    }

    /// The number of workers.
    pub(super) fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Asks a worker, and waits.
    ///
    /// # Errors
    /// The reason, in words: it does not answer.
    pub(super) fn ask<T>(
        &self,
        worker: usize,
        query: impl FnOnce(SyncSender<T>) -> Query,
    ) -> Result<T, String> {
        let (answer, answered) = sync_channel(1);
        let silent = |_| format!("worker {worker} does not answer now; ask again");
        self.workers[worker].try_send(query(answer)).map_err(|_| silent(()))?;
        answered.recv_timeout(self.patience).map_err(|_| silent(()))
    }
}

/// Answers questions, for as long as the worker runs.
pub(super) async fn answer(gateway: Rc<Gateway>, mut queries: MailboxReceiver<Query>) {
    while let Some(query) = queries.recv().await {
        gateway.answer(query);
        // The next one may be here already: orders first.
        yield_now().await;
    }
}

impl Gateway {
    /// The asking thread may have given up; then the answer is dropped.
    fn answer(&self, query: Query) {
        match query {
            Query::Orders { venue, places, account, answer } => {
                _ = answer.try_send(self.orders_in(venue, places, account));
            }
            Query::Terms { orders, answer } => {
                let checks = self.checks.borrow();
                let terms = |(account, number): &OrderKey| checks.risk.terms_of(*account, *number);
                _ = answer.try_send(orders.iter().map(terms).collect());
            }
            Query::Cancel { orders, answer } => _ = answer.try_send(self.cancel_for_operator(&orders)),
            Query::StillOpen { orders, answer } => {
                let mut open = vec![0; self.upstreams.len()];
                let places = orders.iter().filter_map(|(account, number)| self.venue_with(*account, *number));
                places.for_each(|venue| open[venue] += 1);
                _ = answer.try_send(open);
            }
            Query::Positions { places, answer } => {
                let checks = self.checks.borrow();
                let end = bounded(&places, checks.positions.len());
                let positions = (places.start..end).filter_map(|place| checks.positions.at(place)).copied();
                let next = (end < checks.positions.len()).then_some(end);
                _ = answer.try_send(PositionSlice { positions: positions.collect(), next });
            }
            Query::Accounts { accounts, answer } => {
                let end = bounded(&accounts, self.store.account_count() as u32);
                let all = (accounts.start..end).map(AccountId);
                let own = all.filter(|account| self.store.home_of(*account) == self.worker);
                _ = answer.try_send(own.map(|account| self.sums_of(account)).collect());
            }
            Query::Disconnect { account, answer } => {
                _ = answer.try_send(self.store.disconnect_for_operator(account));
            }
        }
    }

    fn orders_in(&self, venue: usize, places: Range<u32>, account: Option<AccountId>) -> OrderSlice {
        let Some(upstream) = self.upstreams.get(venue) else {
            return OrderSlice { orders: Vec::new(), next: None, last_number: 0 };
        };
        let (session, checks) = (upstream.session.borrow(), self.checks.borrow());
        let outstanding = session.outstanding();
        let count = outstanding.places();
        let end = bounded(&places, count);
        let (now_ns, has_failed) = (self.store.now().as_nanos(), self.has_failed());
        let is_asked = |live: &LiveOrder| account.is_none_or(|account| live.origin.account == account);
        let open = outstanding.live_in(places.start..end).filter(is_asked).map(|live| {
            let Origin { account, user_ref_num, home, received_ns } = live.origin;
            let is_own = usize::from(home) == self.worker;
            OpenOrder {
                live,
                terms: is_own.then(|| checks.risk.terms_of(account, user_ref_num)).flatten(),
                is_cancelled: session.is_cancelled(live.upstream, account),
                is_never_sent: has_failed && !session.was_given(live.upstream),
                age_ns: (received_ns > 0).then(|| now_ns.saturating_sub(received_ns)),
            }
        });
        OrderSlice {
            orders: open.collect(),
            next: (end < count).then_some(end),
            last_number: outstanding.last_number(),
        }
    }

    fn sums_of(&self, account: AccountId) -> AccountSums {
        let checks = self.checks.borrow();
        AccountSums {
            account,
            exposure: checks.risk.exposure(account),
            exposure_max: checks.risk.limits_of(account).exposure_max,
            unattributed: checks.positions.unattributed(account),
        }
    }

    /// Cancels orders as their clients would: each cancel is journaled, is sent behind its order, and is repeated on
    /// every connection until the order has ended, also after a restart. It passes no check, as a client's does not.
    fn cancel_for_operator(&self, orders: &[OrderKey]) -> CancelOutcome {
        let mut counts = vec![CancelCount::default(); self.upstreams.len()];
        for (account, user_ref_num) in orders.iter().take(CANCELS_MAX) {
            let Some(venue) = self.venue_with(*account, *user_ref_num) else { continue };
            // A record too many would end the journal. One that has failed takes none, and the cancel leaves anyway.
            if !self.has_failed() && !self.store.takes_cancels() {
                return CancelOutcome { counts, is_journal_full: true };
            }
            let upstream = &self.upstreams[venue];
            let (mut raw, user_ref_num) = (Vec::new(), *user_ref_num);
            let cancel = Inbound::Cancel(Cancel { user_ref_num, quantity: 0 });
            let message = ClientMessage::encode(cancel, &mut raw);
            let home = self.store.home_of(*account) as u16;
            let received_ns = self.store.now().as_nanos();
            let origin = Origin { account: *account, user_ref_num, home, received_ns };
            self.counters.taken.add(1);
            let log = |numbered| self.log_sent(upstream.key, &origin, message.raw(), numbered);
            let cancelling = upstream.cancel_for_operator(origin, &message, log);
            if cancelling != Cancelling::OnItsWay {
                self.counters.passed.add(1);
            }
            if cancelling != Cancelling::Ended {
                counts[venue].orders += 1;
                counts[venue].sent += u64::from(cancelling == Cancelling::OnItsWay);
            }
        }
        CancelOutcome { counts, is_journal_full: false }
    }
}

/// The end of a range in a table of this many places, if only a slice is examined.
fn bounded(places: &Range<u32>, count: u32) -> u32 {
    places.end.min(places.start.saturating_add(SLICE_MAX)).min(count).max(places.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_bounded_whatever_is_asked_for() {
        assert_eq!(bounded(&(0..u32::MAX), 1_000_000), SLICE_MAX);
        assert_eq!(bounded(&(100..u32::MAX), 150), 150);
        assert_eq!(bounded(&(100..110), 150), 110);
        assert_eq!(bounded(&(200..u32::MAX), 150), 200, "behind the end there is nothing");
        assert_eq!(bounded(&(u32::MAX..u32::MAX), 150), u32::MAX);
    }

    #[test]
    fn a_worker_that_does_not_answer_is_named() {
        let (sender, _queries) = weir_engine::mailbox::mailbox(1);
        let asker = Asker { workers: vec![sender], patience: Duration::from_millis(1) };
        let ask = || asker.ask(0, |answer| Query::Disconnect { account: AccountId(0), answer });
        let silent = Err("worker 0 does not answer now; ask again".to_owned());
        assert_eq!(ask(), silent, "it does not read");
        assert_eq!(ask(), silent, "and its mailbox is full");
    }
}
