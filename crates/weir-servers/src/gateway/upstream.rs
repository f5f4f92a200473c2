//! The input and output of one upstream session: it connects, moves bytes, and executes what the session decides
//! ([`UpstreamSession`]).
//!
//! Two tasks: one receives and watches the clock, one sends ([`sender`]).

mod moves;
mod sender;

use std::{
    cell::RefCell,
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    rc::Rc,
    task::Poll,
    time::Duration,
};

use weir_engine::{
    Lease,
    net::{Address, Stream},
    sync::{Notify, Signal},
    time::{self, Instant, Sleep},
};
use weir_proto::soup::{Deframer, LOGOUT_FRAME};
use weir_trading::{AccountId, Origin};

use super::{
    backoff::Backoff,
    hop_latency::Hop,
    outstanding::OutstandingOrders,
    unsolicited_cancels::Untold,
    upstream_session::{
        Cancelling, Credentials, Delivery, Effect, Effects, End, Expired, Numbered, Passed, Resume, Step,
        UpstreamSession,
    },
    worker::{Gateway, Report},
    worker_message::session_key,
};
use crate::orders::{ClientMessage, EventKind};

pub(super) use sender::send;

/// Longest payload accepted from an exchange.
const PAYLOAD_BYTES_MAX: usize = 4096;
/// Longest attempt to connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Where and how a worker logs in at a venue. It contains a password and must not be printed.
#[derive(Clone)]
pub(super) struct Login {
    address: Address,
    credentials: Credentials,
}

/// Identifies a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct UpstreamId {
    pub(super) worker: usize,
    pub(super) venue: usize,
    /// The number of venues.
    pub(super) venues: usize,
}

/// Why a connection ended, or could not be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    #[error("{0}")]
    Failed(#[from] io::Error),
    #[error("no answer within {} s", CONNECT_LIMIT.as_secs())]
    NoAnswer,
    #[error("a reload has given the venue another address")]
    Moved,
    #[error(transparent)]
    Session(#[from] End),
}

/// One worker's session with one venue.
pub(super) struct Upstream {
    /// Its index among all sessions of the gateway.
    pub(super) index: usize,
    /// Its key in journals.
    pub(super) key: u32,
    pub(super) venue: usize,
    pub(super) session: RefCell<UpstreamSession>,
    line: RefCell<Line>,
    moved: Notify,
    /// Orders that have ended here and have to be reported to clients.
    pub(super) untold: Untold,
    flush: Signal,
}

/// Where the exchange is, and the connection there.
struct Line {
    login: Login,
    /// Counts the changes after which the connection is made anew.
    moves: u64,
    stream: Option<Rc<Stream>>,
}

impl Upstream {
    pub(super) fn new(
        place: UpstreamId,
        login: Login,
        (outstanding, resume): (OutstandingOrders, Resume),
        is_journaled: bool,
    ) -> Self {
        let UpstreamId { worker, venue, venues } = place;
        let key = session_key(worker, venue);
        Self {
            index: worker * venues + venue,
            key,
            venue,
            session: RefCell::new(UpstreamSession::new(key, outstanding, resume, is_journaled)),
            line: RefCell::new(Line { login, moves: 0, stream: None }),
            moved: Notify::default(),
            untold: Untold::default(),
            flush: Signal::default(),
        }
    }

    /// Whether it accepts orders.
    pub(super) fn is_up(&self) -> bool {
        self.session.borrow().is_up()
    }

    /// Accepts a client's message for sending. `log` journals it. Returns whether it is on its way now; the error is an
    /// OUCH reason.
    #[inline]
    pub(super) fn send(
        &self,
        origin: Origin,
        message: &ClientMessage<'_>,
        log: impl FnOnce(Numbered) -> u64,
    ) -> Result<bool, u16> {
        let mut session = self.session.borrow_mut();
        let Some(numbered) = session.accept(origin, message)? else { return Ok(false) };
        session.journaled(log(numbered));
        drop(session);
        self.flush.raise();
        Ok(true)
    }

    /// Cancels an order for an operator; see [`UpstreamSession::cancel_for_operator`].
    pub(super) fn cancel_for_operator(
        &self,
        origin: Origin,
        message: &ClientMessage<'_>,
        log: impl FnOnce(Numbered) -> u64,
    ) -> Cancelling {
        let mut session = self.session.borrow_mut();
        let (cancelling, numbered) = session.cancel_for_operator(origin, message);
        if let Some(numbered) = numbered {
            session.journaled(log(numbered));
            self.flush.raise();
        }
        cancelling
    }

    /// Cancels every open order of an account, or of all accounts; see [`UpstreamSession::cancel_all`].
    pub(super) fn cancel_all(
        &self,
        gateway: &Gateway,
        account: Option<AccountId>,
        reason: u8,
        has_failed: bool,
    ) -> u64 {
        let mut effects = Effects::default();
        let orders = self.session.borrow_mut().cancel_all(account, reason, has_failed, &mut effects);
        self.execute(gateway, &mut effects, gateway.store.now());
        orders
    }

    /// Ends every open order here, after its cancel.
    pub(super) fn give_up_orders(&self, gateway: &Gateway) {
        let mut effects = Effects::default();
        self.session.borrow_mut().give_up_orders(&mut effects);
        self.execute(gateway, &mut effects, gateway.store.now());
    }

    /// Whether ended orders have to be reported to clients.
    pub(super) fn has_untold(&self) -> bool {
        !self.untold.borrow().is_empty()
    }

    /// Sends a logout and closes the connection.
    pub(super) fn leave(&self) {
        let Some(stream) = self.line.borrow_mut().stream.take() else { return };
        log_out(&stream);
        self.session.borrow_mut().leave();
    }

    async fn attempt(&self, gateway: &Rc<Gateway>) -> Ended {
        let (moves, address) = {
            let line = self.line.borrow();
            (line.moves, line.login.address.clone())
        };
        let has_moved = || self.line.borrow().moves != moves;
        let stream = match time::timeout(CONNECT_LIMIT, Stream::connect(&address)).await {
            _ if has_moved() => return Ended::Moved,
            Ok(Ok(stream)) => Rc::new(stream),
            Ok(Err(error)) => return Ended::Failed(error),
            Err(_) => return Ended::NoAnswer,
        };
        {
            let mut line = self.line.borrow_mut();
            line.stream = Some(Rc::clone(&stream));
            self.session.borrow_mut().connect(time::now().as_nanos(), &line.login.credentials);
        }
        self.flush.raise();
        let mut moved = pin!(self.moved.until(has_moved));
        let mut conversing = pin!(self.converse(gateway, &stream));
        poll_fn(|context| match moved.as_mut().poll(context) {
            // Between two messages, which are handled without a wait.
            Poll::Ready(()) => Poll::Ready(Ended::Moved),
            Poll::Pending => conversing.as_mut().poll(context),
        })
        .await
    }

    async fn converse(&self, gateway: &Rc<Gateway>, stream: &Stream) -> Ended {
        let (mut deframer, mut effects) = (Deframer::new(PAYLOAD_BYTES_MAX), Effects::default());
        let mut timer = Box::pin(time::sleep_until(self.deadline()));
        loop {
            match next(stream, timer.as_mut()).await {
                Happened::Received(Ok(Some(lease))) => {
                    let now = gateway.store.tick();
                    if let Err(end) = self.receive(gateway, &mut deframer, &lease, now, &mut effects) {
                        return end.into();
                    }
                    drop(lease);
                    self.deal(gateway, now, timer.as_mut()).await;
                }
                Happened::Received(Ok(None)) => return End::Closed.into(),
                Happened::Received(Err(error)) => return Ended::Failed(error),
                Happened::Due => {
                    let outcome = self.session.borrow_mut().on_time(time::now().as_nanos(), &mut effects);
                    self.execute(gateway, &mut effects, gateway.store.now());
                    if let Err(end) = outcome {
                        return end.into();
                    }
                    timer.set(time::sleep_until(self.deadline()));
                }
            }
        }
    }

    /// Processes received bytes, without waiting.
    fn receive(
        &self,
        gateway: &Gateway,
        deframer: &mut Deframer,
        mut input: &[u8],
        now: Instant,
        effects: &mut Effects,
    ) -> Result<(), End> {
        let (now_ns, kept) = (now.as_nanos(), gateway.kept());
        while let Some(frame) = deframer.next(&mut input)? {
            let step = Step { now_ns, has_room: !gateway.is_full(), kept };
            let outcome = self.session.borrow_mut().on_frame(frame, step, effects);
            self.execute(gateway, effects, now);
            outcome?;
        }
        Ok(())
    }

    /// Waits until the received messages are processed. Meanwhile heartbeats are sent. Nothing is read, so a silence
    /// of the exchange does not count: its timeout starts again afterwards.
    async fn deal(&self, gateway: &Gateway, now: Instant, mut timer: Pin<&mut Sleep>) {
        let heartbeat = Duration::from_nanos(self.line.borrow().login.credentials.timing.heartbeat_ns);
        let dealing = pin!(async {
            gateway.expire(&self.untold).await;
            gateway.after_receive(self, now).await;
        });
        let beat = || {
            let mut effects = Effects::default();
            self.session.borrow_mut().beat(&mut effects);
            self.execute(gateway, &mut effects, gateway.store.now());
        };
        if meanwhile(dealing, timer.as_mut(), heartbeat, beat).await {
            self.session.borrow_mut().was_not_read(time::now().as_nanos());
            timer.set(time::sleep_until(self.deadline()));
        }
    }

    fn deadline(&self) -> Instant {
        Instant::from_nanos(self.session.borrow().deadline_ns())
    }

    /// Executes what the session has decided.
    #[inline]
    fn execute(&self, gateway: &Gateway, effects: &mut Effects, now: Instant) {
        // A heartbeat has none.
        if !effects.list.is_empty() {
            let mut list = std::mem::take(&mut effects.list);
            for effect in list.drain(..) {
                match effect {
                    Effect::Deliver(delivery) => self.deliver(gateway, &delivery, effects, now),
                    Effect::Pass(passed) => self.pass(gateway, passed, effects),
                    rare => self.execute_rare(gateway, rare),
                }
            }
            effects.list = list;
        }
        if std::mem::take(&mut effects.has_output) {
            self.flush.raise();
        }
    }

    /// Gives a message of the exchange to its client.
    #[inline]
    fn deliver(&self, gateway: &Gateway, delivery: &Delivery, effects: &Effects, now: Instant) {
        count_received(gateway);
        let Some(message) = &effects.message else { return };
        if delivery.is_overfill {
            // A trade is valid even after an error: the client is informed, and a line reports it.
            gateway.counters.overfills.add(1);
            let what = format_args!("the exchange has executed more shares of an order than were left of it");
            gateway.notice(self, EventKind::Overfill, what);
        }
        if delivery.sent_ns > 0 {
            gateway.record(Hop::Upstream, now.as_nanos().saturating_sub(delivery.sent_ns));
        }
        let report = Report { raw: &effects.raw, message };
        gateway.deliver(&delivery.origin, &report, delivery.upstream_sequence, now);
    }

    /// Counts a message of the exchange that reaches no client.
    fn pass(&self, gateway: &Gateway, passed: Passed, effects: &Effects) {
        count_received(gateway);
        let counters = &gateway.counters;
        counters.passed.add(1);
        match passed {
            Passed::Again | Passed::Numbers => {}
            Passed::Delivered => counters.replayed.add(1),
            Passed::Malformed { sequence, error } => {
                counters.malformed.add(1);
                gateway.tell_malformed(self, sequence, error);
            }
            Passed::Unmatched { is_about_order } => counters.unmatched.add(u64::from(is_about_order)),
            Passed::Stray { session, sequence } => {
                counters.unmatched.add(1);
                // This has to be settled by people: the journal stores it, and a line reports it.
                gateway.log_stray(session, sequence, &effects.raw);
                if let Some(message) = &effects.message {
                    gateway.tell_unknown(self, message);
                }
            }
        }
    }

    #[cold]
    fn execute_rare(&self, gateway: &Gateway, effect: Effect) {
        match effect {
            Effect::Deliver(_) | Effect::Pass(_) => {}
            Effect::LoggedIn(session) => {
                gateway.log_endpoint(self.key);
                gateway.show_session(self, session, None);
            }
            Effect::Begun { epoch, session } => gateway.log_session(self.key, epoch, &session),
            Effect::BegunAnew { epoch, session, before, ended } => {
                // Its record separates earlier messages from later ones.
                gateway.log_session(self.key, epoch, &session);
                gateway.counters.begun_anew.add(1);
                let (all, expired) = (ended.expiries.len(), self.expire(gateway, ended));
                gateway.show_session(self, session, Some(expired as u64));
                gateway.tell_anew(self, (session, before), expired, all);
            }
            Effect::Gap { messages, session, next } => {
                gateway.counters.missed.add(messages);
                gateway.tell_gap(self, messages, (session, next));
            }
            Effect::Up { again } => {
                gateway.counters.resent.add(again);
                gateway.show(self);
                gateway.tell_up(self, again);
            }
            Effect::Release(origin) => gateway.release_number(&origin),
            Effect::Expired(expired) => {
                let why = expired.why;
                let told = self.expire(gateway, expired);
                gateway.tell_refused(self, why, told);
            }
        }
    }

    /// Orders have ended here: clients are informed as soon as there is room. Returns how many of them can be.
    fn expire(&self, gateway: &Gateway, expired: Expired) -> usize {
        let Expired { session, expiries, .. } = expired;
        let told = expiries.iter().filter(|expiry| gateway.can_tell(expiry)).count();
        self.untold.borrow_mut().extend(expiries.into_iter().map(|expiry| (session, expiry)));
        told
    }

    /// The connection is gone.
    fn go_down(&self, gateway: &Gateway, ended: &Ended) -> bool {
        let stream = self.line.borrow_mut().stream.take();
        let end = if let Ended::Session(end) = ended { Some(end) } else { None };
        if let Some(stream) = stream.filter(|_| end.is_some_and(End::is_of_question)) {
            log_out(&stream);
        }
        let was_up = self.session.borrow_mut().lost(end);
        self.flush.wake();
        gateway.show(self);
        was_up
    }
}

/// Queued bytes are sent while the connection closes. If the queue is full, the logout is skipped.
fn log_out(stream: &Stream) {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let _ = pin!(stream.send_slice(&LOGOUT_FRAME)).poll(&mut context);
}

/// Counts a message of an exchange.
#[inline]
fn count_received(gateway: &Gateway) {
    gateway.counters.upstream_received.add(1);
    gateway.counters.taken.add(1);
    gateway.store.counters().add_received(1);
}

/// Keeps one session connected, for as long as the worker runs.
pub(super) async fn run(gateway: Rc<Gateway>, upstream: Rc<Upstream>) {
    let mut backoff = Backoff::new(time::now().as_nanos() ^ (upstream.index as u64) << 32);
    // The record of where answers begin must be durable before there are any; with a failed journal this wait ends
    // without success.
    let begun = gateway.store.journal().map_or(0, |journal| journal.last());
    let _ = gateway.is_durable(begun).await;
    loop {
        let ended = upstream.attempt(&gateway).await;
        let was_up = upstream.go_down(&gateway, &ended);
        if was_up {
            backoff.reset();
        }
        gateway.tell_trouble(&upstream, &ended, was_up);
        let until = time::now() + backoff.next();
        // Reports that the connection's end has left. Those that find no room are sent on the next connection.
        let _ = time::timeout_at(until, gateway.expire(&upstream.untold)).await;
        time::sleep_until(until).await;
    }
}
/// Runs `work` to its end. `beat` is called when the timer fires and as often as `every` from then on; returns
/// whether it was called.
async fn meanwhile(
    mut work: Pin<&mut impl Future<Output = ()>>,
    mut timer: Pin<&mut Sleep>,
    every: Duration,
    mut beat: impl FnMut(),
) -> bool {
    let mut has_beaten = false;
    loop {
        let is_due = poll_fn(|context| {
            if work.as_mut().poll(context).is_ready() {
                return Poll::Ready(false);
            }
            timer.as_mut().poll(context).map(|()| true)
        });
        if !is_due.await {
            return has_beaten;
        }
        has_beaten = true;
        beat();
        timer.set(time::sleep(every));
    }
}

enum Happened {
    Received(io::Result<Option<Lease>>),
    Due,
}

/// Waits for bytes, or the deadline.
async fn next(stream: &Stream, mut timer: Pin<&mut Sleep>) -> Happened {
    let mut receive = pin!(stream.recv());
    poll_fn(|context| {
        if let Poll::Ready(received) = receive.as_mut().poll(context) {
            return Poll::Ready(Happened::Received(received));
        }
        timer.as_mut().poll(context).map(|()| Happened::Due)
    })
    .await
}

#[cfg(test)]
mod tests {
    use weir_engine::{Config, Driver, Runtime};

    use super::*;

    #[test]
    fn a_long_wait_beats_and_a_short_one_does_not() {
        let config = Config::for_test(Driver::Sim);
        Runtime::new(&config).expect("it runs everywhere").block_on(async {
            for (work_ms, expected) in [(0, 0), (990, 0), (3_500, 3)] {
                let work = pin!(time::sleep(Duration::from_millis(work_ms)));
                let mut timer = Box::pin(time::sleep(Duration::from_secs(1)));
                let mut beats = 0;
                let has_beaten = meanwhile(work, timer.as_mut(), Duration::from_secs(1), || beats += 1).await;
                assert_eq!((beats, has_beaten), (expected, expected > 0), "{work_ms} ms");
            }
        });
    }
}
