//! One worker of the gateway: an order comes from a client's session and leaves through the upstream session of its
//! route, and its answer comes back the same way. Everything here runs on one thread and never blocks.

mod handoff;
mod records;

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    rc::{Rc, Weak},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use foldhash::HashMap;
use weir_engine::{
    JoinHandle,
    handoff::Port,
    spawn, spawn_last,
    sync::{Notify, Signal},
    time::{self, Instant, yield_now},
};
use weir_proto::ouch::{CancelReject, Inbound, Outbound, Rejected, Symbol, reject_reason};
use weir_trading::{AccountId, Origin, References};

use super::{
    absences::Absences,
    counters::{GatewayCounters, total},
    hop_latency::{Hop, Hops},
    notices::{Begun, Notices},
    order_id_timestamp,
    orders_of_other_workers::OrdersElsewhere,
    outstanding::OutstandingOrders,
    pre_trade_checks::Checks,
    record_kinds::GatewayRecord,
    upstream::{self, Upstream},
    venue_record::Endpoint,
    worker_message::{Kind, MESSAGE_BYTES_MAX, Reject, WorkerMessage},
};
use crate::{
    journal::Lsn,
    orders::{Application, ApplicationKind, ClientMessage, SessionStore, Waiting},
    overflow::{Bounds, Overflow},
};

use handoff::drain_overflow;

#[cfg(test)]
use super::simulated_days::{Plant, is_planted};

pub(super) const RECORD_SESSION: ApplicationKind = GatewayRecord::Session.kind();
pub(super) const RECORD_CONTROL: ApplicationKind = GatewayRecord::Control.kind();
pub(super) const RECORD_VENUES: ApplicationKind = GatewayRecord::Venues.kind();
pub(super) const RECORD_STRAY: ApplicationKind = GatewayRecord::Stray.kind();
pub(super) const RECORD_HOME: ApplicationKind = GatewayRecord::Home.kind();
pub(super) const RECORD_ENDPOINT: ApplicationKind = GatewayRecord::Endpoint.kind();
pub(super) const RECORD_OPERATOR: ApplicationKind = GatewayRecord::Operator.kind();

/// Messages of other workers that are taken before the worker's other tasks run.
const TAKES_MAX: usize = 512;

/// How long a drain waits for answers and for cancels to be confirmed.
const SETTLE_LIMIT: Duration = Duration::from_secs(1);
/// How often it checks for them.
const DRAIN_LOOK: Duration = Duration::from_millis(1);

/// The internal reason for a refused cancel: it has none on the wire.
const CANCEL_REJECT: u16 = 0;

/// The venue of each symbol.
#[derive(Clone, Debug, Default)]
pub(super) struct Symbols {
    pub(super) venues: HashMap<Symbol, usize>,
    /// The venue of all other symbols.
    pub(super) other: Option<usize>,
}

impl Symbols {
    /// The venue for orders of a symbol.
    pub(super) fn route(&self, symbol: Symbol) -> Option<usize> {
        self.venues.get(&symbol).copied().or(self.other)
    }
}

/// The state that all workers share.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) workers: usize,
    pub(super) venues: Vec<String>,
    /// The configured venues, followed by others at which the journals have orders that expire now.
    pub(super) venues_recorded: Vec<String>,
    /// By worker and venue, at the start.
    pub(super) endpoints: BTreeMap<(usize, usize), Endpoint>,
    /// The routes at the start.
    pub(super) symbols: Arc<Symbols>,
    /// By account: the worker that sends its orders.
    pub(super) senders: Vec<u16>,
    /// Whether any of them differs from the account's home, or did when a still open order was sent.
    pub(super) hands_off: bool,
    pub(super) hop_times: bool,
    /// By worker: answers are undelivered there, and no order may be sent through it.
    pub(super) behind: Vec<AtomicBool>,
    /// By worker: in a drain, whether nothing is in flight there.
    pub(super) settled: Vec<AtomicBool>,
    /// By worker.
    pub(super) counters: Vec<Arc<GatewayCounters>>,
    /// By upstream session: whether it accepts orders.
    pub(super) open: Vec<AtomicBool>,
    /// The reference prices.
    pub(super) references: Arc<References>,
    /// Why an upstream session is unavailable, for operators.
    pub(super) troubles: Mutex<Vec<Option<String>>>,
    /// By upstream session: the sessions that its exchange has begun.
    pub(super) begun: Mutex<Vec<Begun>>,
    /// Lines for operators.
    pub(super) notices: Notices,
}

impl Common {
    /// The worker that sends the orders of an account. An account without a login sends none.
    #[inline]
    pub(super) fn sender_of(&self, account: AccountId) -> u16 {
        let home = || (account.0 as usize % self.workers) as u16;
        self.senders.get(account.0 as usize).copied().unwrap_or_else(home)
    }

    /// Whether a worker sends orders of accounts whose home is `home`.
    pub(super) fn feeds(&self, worker: usize, home: usize) -> bool {
        let mut senders = self.senders.iter().enumerate();
        senders.any(|(account, sender)| account % self.workers == home && usize::from(*sender) == worker)
    }
}

/// One worker of the gateway.
pub(super) struct Gateway {
    pub(super) this: Weak<Gateway>,
    pub(super) store: Rc<SessionStore>,
    pub(super) counters: Arc<GatewayCounters>,
    hops: Arc<Hops>,
    pub(super) common: Arc<Common>,
    pub(super) worker: usize,
    pub(super) upstreams: Vec<Rc<Upstream>>,
    port: Port<WorkerMessage>,
    /// By worker: messages that the port did not take. While there are some, several sources are not read: the
    /// exchanges ([`Gateway::after_receive`]), the clients whose orders go to that worker
    /// ([`Gateway::is_congested`]), and, if answers are among them, the clients whose orders are sent here
    /// ([`Gateway::fall_behind`]).
    overflow: Vec<Overflow<WorkerMessage>>,
    /// By worker: `overflow` has become non-empty.
    overflowed: Vec<Signal>,
    /// `overflow` contains answers.
    is_behind: Cell<bool>,
    pub(super) checks: RefCell<Checks>,
    elsewhere: RefCell<OrdersElsewhere>,
    waiters: Notify,
    pub(super) absences: Absences,
    /// Answers emitted since the last receive began.
    answered: Cell<u64>,
    tasks: RefCell<Vec<JoinHandle<()>>>,
    is_draining: Cell<bool>,
    are_venues_named: Cell<bool>,
    /// By venue: where the worker logs in.
    endpoints: RefCell<Vec<Endpoint>>,
    /// By venue: the journal contains that the worker has logged in there in this start.
    endpoints_kept: Cell<u64>,
    /// The routes.
    pub(super) symbols: RefCell<Arc<Symbols>>,
}

/// A message for a client: its bytes, and what they say, with the client's numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report<'a> {
    pub(super) raw: &'a [u8],
    pub(super) message: &'a Outbound,
}

/// The parts of a gateway worker.
pub(super) struct Parts {
    pub(super) common: Arc<Common>,
    pub(super) counters: Arc<GatewayCounters>,
    pub(super) hops: Arc<Hops>,
    pub(super) upstreams: Vec<Upstream>,
    pub(super) port: Port<WorkerMessage>,
    /// Limits of the messages that the port does not take.
    pub(super) bounds: Bounds,
    pub(super) checks: Checks,
    pub(super) elsewhere: OrdersElsewhere,
}

impl Gateway {
    pub(super) fn new(store: Rc<SessionStore>, parts: Parts) -> Rc<Self> {
        let worker = store.worker();
        let of_worker = parts.common.endpoints.range((worker, 0)..(worker + 1, 0));
        let endpoints = of_worker.map(|(_, endpoint)| endpoint.clone()).collect();
        let symbols = Arc::clone(&parts.common.symbols);
        Rc::new_cyclic(|this| Self {
            this: this.clone(),
            store,
            counters: parts.counters,
            hops: parts.hops,
            overflow: (0..parts.common.workers).map(|_| Overflow::new(parts.bounds)).collect(),
            overflowed: (0..parts.common.workers).map(|_| Signal::default()).collect(),
            is_behind: Cell::new(false),
            common: parts.common,
            worker,
            upstreams: parts.upstreams.into_iter().map(Rc::new).collect(),
            port: parts.port,
            checks: RefCell::new(parts.checks),
            elsewhere: RefCell::new(parts.elsewhere),
            waiters: Notify::default(),
            absences: Absences::default(),
            answered: Cell::new(0),
            tasks: RefCell::default(),
            is_draining: Cell::new(false),
            are_venues_named: Cell::new(false),
            endpoints: RefCell::new(endpoints),
            endpoints_kept: Cell::new(0),
            symbols: RefCell::new(symbols),
        })
    }

    /// Starts the tasks besides the clients' sessions.
    pub(super) fn start(self: &Rc<Self>) {
        let mut tasks = self.tasks.borrow_mut();
        for upstream in &self.upstreams {
            tasks.push(spawn(upstream::run(Rc::clone(self), Rc::clone(upstream))));
            // After the clients' tasks: the messages of one turn leave at its end, in one piece.
            tasks.push(spawn_last(upstream::send(Rc::clone(self), Rc::clone(upstream))));
        }
        if self.common.hands_off {
            tasks.push(spawn(take_messages(Rc::clone(self))));
        }
        for worker in self.others() {
            // Now rather than when something is undelivered: later no task might be available, and undelivered
            // messages would stay forever.
            tasks.push(spawn(drain_overflow(Rc::clone(self), worker)));
        }
    }

    /// Runs a task until the worker drains.
    pub(super) fn keep(&self, task: JoinHandle<()>) {
        let mut tasks = self.tasks.borrow_mut();
        tasks.retain(|task| !task.is_finished());
        tasks.push(task);
    }

    #[inline]
    pub(super) fn record(&self, hop: Hop, nanoseconds: u64) {
        if self.common.hop_times {
            self.hops.record(hop, nanoseconds);
        }
    }

    /// The worker that sends the orders of an account.
    #[inline]
    fn sender_of(&self, account: AccountId) -> usize {
        self.common.sender_of(account).into()
    }

    /// The worker responsible for a message: the one that has the order, if that is a different one.
    #[inline]
    fn worker_for(&self, account: AccountId, message: &ClientMessage<'_>) -> usize {
        let elsewhere = self.elsewhere.borrow();
        let of_order = if elsewhere.is_empty() { None } else { elsewhere.worker_of(account, message) };
        of_order.map_or_else(|| self.sender_of(account), usize::from)
    }

    /// Every worker that may have orders of an account.
    pub(super) fn workers_of(&self, account: AccountId) -> BTreeSet<usize> {
        let elsewhere = self.elsewhere.borrow();
        let of_orders = elsewhere.workers_of(account).iter().map(|worker| usize::from(*worker));
        of_orders.chain([self.sender_of(account)]).collect()
    }

    /// Whether a worker accepts orders from clients here.
    #[inline]
    fn takes_from_here(&self, worker: usize) -> bool {
        !self.is_behind_at(worker) && (worker == self.worker || !self.is_congested(worker))
    }

    /// The workers that this one may hand messages to.
    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let (own, count) = (self.worker, if self.common.hands_off { self.common.workers } else { 0 });
        (0..count).filter(move |worker| *worker != own)
    }

    /// Whether clients whose orders are sent by a worker have to wait.
    #[inline]
    fn is_behind_at(&self, worker: usize) -> bool {
        self.common.behind[worker].load(Ordering::Relaxed)
    }

    /// Whether an account's orders are cancelled because the gateway drains: no order may follow that.
    fn is_leaving(&self, account: AccountId) -> bool {
        self.is_draining.get() && self.store.account(account).cancel_on_disconnect()
    }

    /// Checks a client's message before it is routed.
    #[inline]
    fn admit(&self, account: AccountId, message: &ClientMessage<'_>, now: Instant) -> Result<(), u16> {
        match message.inbound() {
            Inbound::Enter(..) | Inbound::Replace(..) => {
                if self.is_leaving(account) {
                    return Err(reject_reason::DESTINATION_CLOSED);
                }
                let outcome = self.checks.borrow_mut().admit(now.as_nanos(), account, message.inbound());
                if outcome.is_err() && self.checks.borrow_mut().risk.must_drop(account) {
                    self.store.disconnect(account);
                }
                outcome?;
            }
            Inbound::Modify(modify) => {
                self.count_cancel(account, now)?;
                self.checks.borrow().risk.check_modify(account, modify)?;
            }
            Inbound::Cancel(_) => self.count_cancel(account, now)?,
            Inbound::AccountQuery => {}
        }
        if message.raw().len() > MESSAGE_BYTES_MAX {
            self.counters.too_long.add(1);
            return Err(reject_reason::PROCESSING_ERROR);
        }
        Ok(())
    }

    /// Counts a cancel or a modification: its only limit is its rate.
    #[inline]
    fn count_cancel(&self, account: AccountId, now: Instant) -> Result<(), u16> {
        let outcome = self.checks.borrow_mut().risk.count_cancel(now.as_nanos(), account);
        if outcome.is_err() {
            self.counters.cancels_limited.add(1);
            if self.checks.borrow_mut().risk.must_drop(account) {
                self.store.disconnect(account);
            }
        }
        outcome
    }

    /// Hands an order to the sending worker.
    fn hand_over(&self, worker: usize, origin: &Origin, message: &ClientMessage<'_>) -> Result<(), u16> {
        let worker_message = WorkerMessage::new(Kind::Order, origin.account.0, message.raw());
        let mut worker_message = worker_message.ok_or(reject_reason::PROCESSING_ERROR)?;
        worker_message.received_ns = origin.received_ns;
        worker_message.handed_ns = origin.received_ns;
        if !self.overflow[worker].takes_message() {
            return Err(reject_reason::PROCESSING_ERROR);
        }
        self.name_venues();
        self.store.log_inbound(origin.account, message.raw());
        if self.store.is_failed() {
            // An order that would be unknown after a restart is not sent.
            return Err(reject_reason::DESTINATION_CLOSED);
        }
        if self.port.has_ended(worker) {
            return Err(reject_reason::PROCESSING_ERROR);
        }
        // Behind the undelivered messages: a cancel of all orders from an earlier connection must not affect this
        // order.
        self.push(worker, worker_message);
        self.counters.handed_off.add(1);
        Ok(())
    }

    /// Sends an order through this worker's own session.
    #[inline]
    fn send_up(&self, origin: &Origin, message: &ClientMessage<'_>) -> Result<(), u16> {
        let Some(venue) = self.venue_of(origin, message)? else { return self.come_to_nothing(message) };
        let upstream = &self.upstreams[venue];
        if usize::from(origin.home) != self.worker
            && message.is_order()
            && upstream.session.borrow().is_late(origin, self.store.now().as_nanos())
        {
            return Err(reject_reason::DESTINATION_CLOSED);
        }
        let log = |numbered| self.log_sent(upstream.key, origin, message.raw(), numbered);
        if upstream.send(*origin, message, log)? { Ok(()) } else { self.come_to_nothing(message) }
    }

    /// Handles a message about an order that is not open; it is not sent. A replace has its own number, and is
    /// refused under it. OUCH also allows silence, but a client that waits for a new order must know that there is
    /// none. A cancel has nothing left to do, and OUCH has no answer for it except the one that ended its order.
    #[cold]
    fn come_to_nothing(&self, message: &ClientMessage<'_>) -> Result<(), u16> {
        self.counters.without_order.add(1);
        #[cfg(test)]
        if is_planted(Plant::ReplaceUntold) {
            self.counters.passed.add(1);
            return Ok(());
        }
        if matches!(message.inbound(), Inbound::Replace(..)) {
            return Err(reject_reason::REPLACE_NOT_ALLOWED);
        }
        self.counters.passed.add(1);
        Ok(())
    }

    /// A replace had no effect: its number may be used again, if no later one was used.
    pub(super) fn release_number(&self, origin: &Origin) {
        let number = origin.user_ref_num;
        if usize::from(origin.home) == self.worker {
            self.release_number_here(origin.account, number);
        } else if let Some(worker_message) =
            WorkerMessage::new(Kind::ReleaseNumber, origin.account.0, &number.to_be_bytes())
        {
            self.push(origin.home.into(), worker_message);
        }
    }

    fn release_number_here(&self, account: AccountId, number: u32) {
        self.store.release_number(account, number);
        self.elsewhere.borrow_mut().forget(account, number);
        self.checks.borrow_mut().risk.forget_replacement(account, number);
    }

    /// The venue of a new order depends on its symbol; messages about an order go where the order is.
    #[inline]
    fn venue_of(&self, origin: &Origin, message: &ClientMessage<'_>) -> Result<Option<usize>, u16> {
        if self.upstreams.len() == 1 && self.symbols.borrow().other.is_some() {
            return Ok(Some(0));
        }
        if let Inbound::Enter(enter, _) = message.inbound() {
            let venue = self.symbols.borrow().route(enter.symbol);
            return venue.ok_or(reject_reason::INVALID_SYMBOL).map(Some);
        }
        let Some(number) = message.earlier_order() else { return Ok(None) };
        Ok(self.venue_with(origin.account, number))
    }

    /// The venue at which this worker has an open order.
    pub(super) fn venue_with(&self, account: AccountId, number: u32) -> Option<usize> {
        let knows = |upstream: &Rc<Upstream>| upstream.session.borrow().outstanding().knows(account, number);
        self.upstreams.iter().position(knows)
    }

    /// The last record that the journal contains; none: it has failed.
    pub(super) fn kept(&self) -> Option<Lsn> {
        (!self.has_failed()).then(|| self.store.journal().map_or(Lsn::MAX, |journal| journal.durable()))
    }

    /// Whether the journal already contains a record.
    pub(super) fn is_kept(&self, lsn: Lsn) -> bool {
        self.kept().is_some_and(|kept| kept >= lsn)
    }

    /// Waits until the journal contains a record. False: it never will.
    pub(super) async fn is_durable(&self, lsn: Lsn) -> bool {
        if self.has_failed() {
            // A record that found no room has no number to wait for, although the journal continues.
            return false;
        }
        let is_durable = match self.store.journal() {
            Some(journal) if journal.durable() < lsn => journal.committed(lsn).await.is_ok(),
            _ => true,
        };
        is_durable && !self.has_failed()
    }

    /// Whether this worker can no longer journal; other threads see it from now on.
    pub(super) fn has_failed(&self) -> bool {
        let has_failed = self.store.is_failed();
        if has_failed {
            self.counters.has_failed.set(1);
        }
        has_failed
    }

    /// Informs the client, through its home, that its order was not accepted.
    fn reject(&self, origin: &Origin, message: &ClientMessage<'_>, reason: u16) {
        let reject = Reject {
            user_ref_num: message.user_ref_num(),
            // A cancel or a modification has no client order id; this reason marks an answer that cannot be sent.
            reason: if message.is_order() { reason } else { CANCEL_REJECT },
            client_order_id: message.client_order_id(),
        };
        if usize::from(origin.home) == self.worker {
            self.tell(origin.account, reject);
        } else if let Some(worker_message) =
            WorkerMessage::new(Kind::Reject, origin.account.0, &reject.to_bytes())
        {
            self.push(origin.home.into(), worker_message);
        }
    }

    /// Informs a client of this worker.
    fn tell(&self, account: AccountId, reject: Reject) {
        self.counters.passed.add(1);
        let Reject { user_ref_num, reason, client_order_id } = reject;
        if reason == CANCEL_REJECT {
            let timestamp_ns = self.store.time_of_day_ns(self.store.now());
            let message = Outbound::CancelReject(CancelReject { timestamp_ns, user_ref_num });
            self.store.emit_message(account, &message);
        } else {
            self.store.reject(account, user_ref_num, reason, client_order_id);
            self.elsewhere.borrow_mut().forget(account, user_ref_num);
            let mut checks = self.checks.borrow_mut();
            if checks.follows {
                // Its value no longer counts.
                let rejected = Rejected { timestamp_ns: 0, user_ref_num, reason, client_order_id };
                checks.risk.follow(account, &Outbound::Rejected(rejected));
            }
        }
    }

    /// Delivers an answer to its client.
    #[inline]
    pub(super) fn deliver(&self, origin: &Origin, report: &Report<'_>, upstream_sequence: u64, now: Instant) {
        if usize::from(origin.home) == self.worker {
            self.answered.set(self.answered.get() + 1);
        }
        self.reply(origin, report, upstream_sequence, now);
    }

    /// Appends a message to the stream of a client, through its home.
    #[inline]
    pub(super) fn reply(&self, origin: &Origin, report: &Report<'_>, upstream_sequence: u64, now: Instant) {
        let Report { raw, message } = *report;
        if usize::from(origin.home) == self.worker {
            return self.emit(origin.account, raw, Some(message), upstream_sequence);
        }
        let Some(mut worker_message) = WorkerMessage::new(Kind::Reply, origin.account.0, raw) else { return };
        worker_message.received_ns = now.as_nanos();
        worker_message.handed_ns = now.as_nanos();
        worker_message.upstream_sequence = upstream_sequence;
        self.push(origin.home.into(), worker_message);
    }

    /// Appends an answer to its client's stream. `message` is the decoded form of `raw`, if that was decoded on this
    /// worker.
    #[inline]
    fn emit(&self, account: AccountId, raw: &[u8], message: Option<&Outbound>, upstream_sequence: u64) {
        if upstream_sequence != 0 {
            self.name_venues();
        }
        self.store.emit(account, &[raw], upstream_sequence);
        self.counters.passed.add(1);
        let (mut elsewhere, mut checks) = (self.elsewhere.borrow_mut(), self.checks.borrow_mut());
        if elsewhere.is_empty() && !checks.follows {
            return;
        }
        let decoded = if message.is_none() { Outbound::decode(raw).ok() } else { None };
        let Some(message) = message.or(decoded.as_ref().map(|(message, _)| message)) else { return };
        elsewhere.follow(account, message);
        if checks.follows {
            checks.follow(account, message);
        }
    }

    /// Call it after processing received messages: waits if a later stage is slower.
    pub(super) async fn after_receive(&self, upstream: &Upstream, now: Instant) {
        let answered = self.answered.replace(0);
        if answered > 0 && self.common.hop_times {
            let back = time::now().since(now).as_nanos() as u64;
            self.hops.record_many(Hop::GatewayBack, back, answered);
        }
        self.update_gauges(upstream);
        self.all_room().await;
    }

    /// Waits until the other workers and the journal have room.
    pub(super) async fn all_room(&self) {
        for worker in self.others() {
            self.room(worker).await;
        }
        self.journal_room().await;
    }

    /// Waits until the journal has room. A failed journal gets none, and nothing is stored in it either.
    async fn journal_room(&self) {
        while !self.has_failed() && self.store.is_congested() {
            self.store.room().await;
        }
    }

    /// Whether every order is answered and every requested cancel is done, or cannot be in this process.
    fn is_settled(&self) -> bool {
        let has_failed = self.store.is_failed();
        let is_settled = |upstream: &Rc<Upstream>| {
            let session = upstream.session.borrow();
            let is_over = (has_failed || session.is_idle()) && !session.has_cancels_open();
            !upstream.has_untold() && (!session.is_up() || is_over)
        };
        self.upstreams.iter().all(is_settled)
    }

    /// Whether that holds for every worker, and no answer is in flight between two workers.
    fn are_all_settled(&self) -> bool {
        let (settled, counters) = (&self.common.settled, &self.common.counters);
        settled[self.worker].store(self.is_settled(), Ordering::Relaxed);
        let is_idle = || {
            total(counters, |counters| &counters.has_failed) > 0
                || total(counters, |counters| &counters.taken) <= total(counters, |counters| &counters.passed)
        };
        settled.iter().all(|settled| settled.load(Ordering::Relaxed)) && is_idle()
    }

    fn update_gauges(&self, upstream: &Upstream) {
        if upstream.venue == 0 {
            let sum = |count: fn(&OutstandingOrders) -> usize| {
                let of = |upstream: &Rc<Upstream>| count(upstream.session.borrow().outstanding()) as u64;
                self.upstreams.iter().map(of).sum()
            };
            self.counters.open_orders.set(sum(OutstandingOrders::open));
            self.counters.unanswered.set(sum(OutstandingOrders::unanswered));
        }
    }

    /// Processes a message from another worker.
    #[inline]
    fn take(&self, from: usize, worker_message: &WorkerMessage, now: Instant) {
        let account = AccountId(worker_message.account);
        self.record(Hop::Handoff, now.as_nanos().saturating_sub(worker_message.handed_ns));
        match worker_message.kind {
            Kind::Order => {
                let message = ClientMessage::decode(worker_message.message());
                // The worker that handed it over had decoded it.
                let Ok(message) = message else { return self.counters.passed.add(1) };
                let (user_ref_num, received_ns) = (message.user_ref_num(), worker_message.received_ns);
                let origin = Origin { account, user_ref_num, home: from as u16, received_ns };
                let allowed = self.allow(account, &message);
                if let Err(reason) = allowed.and_then(|()| self.send_up(&origin, &message)) {
                    // Later orders may be sent: without a separate record this one would count as sent too.
                    self.store.log_refused(account, message.raw(), reason);
                    self.reject(&origin, &message, reason);
                }
            }
            Kind::Reply => {
                self.emit(account, worker_message.message(), None, worker_message.upstream_sequence);
                self.record(Hop::GatewayBack, now.as_nanos().saturating_sub(worker_message.received_ns));
            }
            Kind::Reject => {
                if let Some(reject) = Reject::from_bytes(worker_message.message()) {
                    self.tell(account, reject);
                }
            }
            Kind::ReleaseNumber => {
                if let Some(number) = worker_message.message().first_chunk() {
                    self.release_number_here(account, u32::from_be_bytes(*number));
                }
            }
            Kind::CancelAll => self.cancel_of_disconnected(account),
            Kind::Room => self.waiters.notify_all(),
        }
    }

    /// Checks an order that another worker has admitted.
    fn allow(&self, account: AccountId, message: &ClientMessage<'_>) -> Result<(), u16> {
        match message.inbound() {
            // It does not wait for the journal if its order has been sent.
            Inbound::Cancel(_) => Ok(()),
            // It would wait for the journal forever.
            _ if self.store.is_failed() => Err(reject_reason::DESTINATION_CLOSED),
            Inbound::Enter(..) | Inbound::Replace(..) if self.is_leaving(account) => {
                Err(reject_reason::DESTINATION_CLOSED)
            }
            Inbound::Enter(..) | Inbound::Replace(..) => self.checks.borrow().kills(account),
            Inbound::Modify(_) | Inbound::AccountQuery => Ok(()),
        }
    }

    /// Informs the client of an order of an earlier start that was never sent.
    pub(super) fn reject_unsent(&self, account: AccountId, reject: Reject) {
        self.counters.taken.add(1);
        self.tell(account, reject);
    }
}

impl Application for Gateway {
    fn on_message(&self, account: AccountId, message: &ClientMessage<'_>, now: Instant) {
        self.counters.taken.add(1);
        if self.common.hop_times
            && let Some(sent_ns) = order_id_timestamp::read(&message.client_order_id())
            && let Some(passed_ns) = self.store.time_of_day_ns(now).checked_sub(sent_ns)
        {
            self.hops.record(Hop::ClientToGateway, passed_ns);
        }
        let user_ref_num = message.user_ref_num();
        let home = self.worker as u16;
        let origin = Origin { account, user_ref_num, home, received_ns: now.as_nanos() };
        let sender = self.worker_for(account, message);
        if let Inbound::Replace(..) = message.inbound()
            && sender != self.sender_of(account)
        {
            // Before it is sent: it may be refused at once.
            self.elsewhere.borrow_mut().add(account, user_ref_num, sender as u16);
        }
        let outcome = self.admit(account, message, now).and_then(|()| {
            if sender == self.worker {
                self.send_up(&origin, message)
            } else {
                self.hand_over(sender, &origin, message)
            }
        });
        if let Err(reason) = outcome {
            self.store.log_refused(account, message.raw(), reason);
            self.reject(&origin, message, reason);
        }
    }

    fn on_other(&self, account: AccountId, now: Instant) -> Result<(), u16> {
        let outcome = self.checks.borrow_mut().risk.count(now.as_nanos(), account);
        if outcome.is_err() && self.checks.borrow_mut().risk.must_drop(account) {
            self.store.disconnect(account);
        }
        outcome
    }

    fn is_ready(&self, account: AccountId) -> bool {
        let elsewhere = self.elsewhere.borrow();
        let of_orders: &[u16] = if elsewhere.is_empty() { &[] } else { elsewhere.workers_of(account) };
        let take = of_orders.iter().all(|worker| self.takes_from_here(usize::from(*worker)));
        take && self.takes_from_here(self.sender_of(account))
    }

    fn ready(&self, account: AccountId) -> Waiting {
        let Some(gateway) = self.this.upgrade() else { return Box::pin(std::future::ready(())) };
        Box::pin(async move {
            for sender in gateway.workers_of(account) {
                if sender != gateway.worker {
                    gateway.room(sender).await;
                }
                gateway.waiters.until(|| !gateway.is_behind_at(sender)).await;
            }
        })
    }

    fn on_login(&self, account: AccountId) {
        self.note_present(account);
    }

    fn on_disconnect(&self, account: AccountId) {
        if self.store.account(account).cancel_on_disconnect() && !self.is_draining.get() {
            self.note_absent(account);
        }
    }

    /// Other threads see this at once.
    fn on_journal_failed(&self) {
        self.counters.has_failed.set(1);
    }

    /// Cancels go to exchanges, and do not wait for the journal.
    fn emits_on_disconnect(&self) -> bool {
        false
    }

    /// Cancels the orders of clients that are about to be disconnected and cancel on disconnect. Every worker does so
    /// for all accounts: any worker may have sent their orders, and in a drain the hand-off is not reliable.
    fn on_drain(&self) {
        self.is_draining.set(true);
        for account in 0..self.store.account_count() {
            let account = AccountId(account as u32);
            if self.is_leaving(account) {
                self.cancel_of_disconnected(account);
            }
        }
    }

    fn settled(&self) -> Waiting {
        let Some(gateway) = self.this.upgrade() else { return Box::pin(std::future::ready(())) };
        Box::pin(async move {
            // Work in flight completes, and cancels are confirmed, if the exchange is quick.
            let until = time::now() + SETTLE_LIMIT;
            while !gateway.are_all_settled() && time::now() < until {
                time::sleep(DRAIN_LOOK).await;
            }
            gateway.tasks.take().into_iter().for_each(JoinHandle::abort);
            gateway.upstreams.iter().for_each(|upstream| upstream.leave());
        })
    }
}

/// Takes messages from other workers, for as long as the worker runs.
async fn take_messages(gateway: Rc<Gateway>) {
    loop {
        gateway.port.ready().await;
        let now = gateway.store.tick();
        let mut taken = 0;
        while taken < TAKES_MAX
            && let Some((from, worker_message)) = gateway.port.take()
        {
            gateway.take(from, &worker_message, now);
            taken += 1;
        }
        // Nothing here waits for another worker: otherwise two workers could wait for each other.
        gateway.journal_room().await;
        if taken == TAKES_MAX {
            yield_now().await;
        }
    }
}
