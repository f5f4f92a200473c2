//! One upstream session: the connection to an exchange, its login, its heartbeats, and the handling of its loss.
//!
//! Two tasks: one receives and watches the clock, one sends. Clients' messages collect in a buffer; the sender takes
//! all of it, waits until the journal contains the corresponding records, and sends it, in pieces if it is large.
//! Logins, heartbeats and the gateway's own cancels are not journaled and collect in another buffer, which waits for
//! nothing. Clients' cancels are sent in order, and a second time outside it when the journal fails or is slow: a
//! cancel that is sent twice does no harm.

mod login;
mod mass_cancel;
mod moves;
mod operator_cancel;
mod orphaned_orders;
mod sender;

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    rc::Rc,
    task::Poll,
    time::Duration,
};

use foldhash::HashMap;
use weir_engine::{
    Lease,
    net::{Address, Stream},
    sync::{Notify, Signal},
    time::{self, Instant, Sleep},
};
use weir_proto::{
    ouch::{Cancel, Outbound, reject_reason},
    soup::{
        CLIENT_HEARTBEAT_FRAME, ClientInput, ClientSession, CloseReason, Deframer, Due, Frame, LOGOUT_FRAME,
        LoginReject, Name, ProtocolError, ServerPacket, Timing,
    },
};
use weir_trading::{AccountId, Origin};

use super::{
    backoff::Backoff,
    config::WORKERS_MAX,
    hop_latency::Hop,
    outstanding::{OutstandingOrders, Sending, traded_order},
    unsolicited_cancels::Untold,
    upstream_login::{Doubtful, Joining},
    worker::Gateway,
    worker_message::{MESSAGE_BYTES_MAX, home_record, pack_sequence, sent_key, session_key},
};
use crate::journal::Lsn;
use crate::orders::EventKind;

use mass_cancel::PendingMassCancel;
pub(super) use operator_cancel::Cancelling;
use sender::Waiting;
pub(super) use sender::send;

/// Longest payload accepted from an exchange.
const PAYLOAD_BYTES_MAX: usize = 4096;
/// Longest attempt to connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// The offset of the reason in a cancellation.
const CANCEL_REASON_OFFSET: usize = 17;
/// How long an exchange may be silent before it answers the account query.
const QUERY_LIMIT: Duration = Duration::from_secs(5);
/// Bytes of clients' messages that may wait to be sent. Above it messages are refused, except one cancel of each
/// order.
const WAITING_BYTES_MAX: usize = 256 << 10;

/// The login of a worker at a venue. It contains a password and must not be printed.
#[derive(Clone)]
pub(super) struct Login {
    pub(super) address: Address,
    pub(super) username: Name<6>,
    pub(super) password: Name<10>,
    pub(super) timing: Timing,
}

/// Identifies a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct UpstreamId {
    pub(super) worker: usize,
    pub(super) venue: usize,
    /// The number of venues.
    pub(super) venues: usize,
}

/// The known state of an upstream session when the gateway ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Resume {
    /// The session; none if nothing is known.
    pub(super) session: Option<Name<10>>,
    /// See `pack_sequence`.
    pub(super) epoch: u16,
    /// The first message to request.
    pub(super) next: u64,
    /// The last message that any client has received.
    pub(super) heard: u64,
    /// By account: the last message of this session whose answers its client has.
    pub(super) delivered: HashMap<AccountId, u64>,
}

/// Why a connection ended, or could not be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    #[error("{0}")]
    Failed(#[from] io::Error),
    #[error("no answer within {} s", CONNECT_LIMIT.as_secs())]
    NoAnswer,
    #[error("the exchange closed the connection")]
    Closed,
    #[error("the exchange ended the session")]
    SessionOver,
    #[error("the exchange does not know this user name and password")]
    NotAuthorised,
    #[error("the exchange does not have this session, or somebody is logged in")]
    NotAvailable,
    #[error("the exchange broke the protocol: {0}")]
    Protocol(#[from] ProtocolError),
    #[error("the exchange did not answer the account query within {} s", QUERY_LIMIT.as_secs())]
    NoNumbers,
    #[error("the exchange was silent")]
    HeartbeatTimeout,
    #[error(
        "the exchange has begun another session, and the journal can count no more of them; end the session with \
         clients, and go on with another journal"
    )]
    Uncounted,
    #[error("another worker does not take the answers, and they are asked for again")]
    Backpressure,
    #[error("the exchange did not answer the login")]
    NoLogin,
    #[error("the exchange does not give what comes next of its session, or somebody was logged in")]
    Withheld,
    #[error("a reload has given the venue another address")]
    Moved,
    #[error("the exchange has the session that is known, and is asked for what comes next of it")]
    Proven,
    #[error("the exchange has said how far its session has come, and is asked for what comes next of it")]
    Measured,
    #[error(
        "orders depend on what the exchange has still to say, and it is asked how far its session has come"
    )]
    Unmeasured,
    #[error(
        "the exchange may have begun its session anew, and is asked for the end of the one that is known"
    )]
    Doubtful,
}

/// One worker's session with one venue.
pub(super) struct Upstream {
    /// Its index among all sessions of the gateway.
    pub(super) index: usize,
    /// Its key in journals.
    pub(super) key: u32,
    pub(super) venue: usize,
    login: RefCell<Login>,
    /// Counts the changes after which the connection is made anew.
    moves: Cell<u64>,
    moved: Notify,
    /// The connection that was left for that was in use.
    was_in_use: Cell<bool>,
    /// A reload changes it, or asks whether it may: no order is taken.
    is_held: Cell<bool>,
    pub(super) outstanding: RefCell<OutstandingOrders>,
    /// Waiting messages of clients.
    waiting: RefCell<Waiting>,
    /// Messages that do not wait for the journal.
    urgent: RefCell<Waiting>,
    /// Orders of the exchange's session up to this number were given to a connection. Those above it are in
    /// `waiting`, or on their way from it.
    handed: Cell<u32>,
    /// The same for the current connection: orders given to an earlier one may be in `waiting` again.
    handed_here: Cell<u32>,
    stream: RefCell<Option<Rc<Stream>>>,
    rules: RefCell<Option<ClientSession>>,
    /// Counts connections, so that the sender notices that its own is gone.
    generation: Cell<u64>,
    is_up: Cell<bool>,
    /// When the account query has to be answered, if it has not been.
    answer_due: Cell<Option<Instant>>,
    session: Cell<Option<Name<10>>>,
    /// Counts the sessions that the exchange has begun.
    epoch: Cell<u16>,
    next: Cell<u64>,
    joining: Cell<Joining>,
    /// From the session of the previous start.
    delivered: HashMap<AccountId, u64>,
    /// The last message that `delivered` applies to; 0 once the exchange has begun another session.
    replay_until: Cell<u64>,
    lsn: Cell<Lsn>,
    /// By account, the cancels of its orders, which are repeated until none of these is open: a cancel may be lost
    /// with the connection. No account stands for all accounts.
    mass_cancels: RefCell<BTreeMap<Option<AccountId>, PendingMassCancel>>,
    /// Numbers of orders that an operator cancelled; see `operator_cancel`.
    operator_cancels: RefCell<BTreeSet<u32>>,
    /// Orders that have ended here and have to be reported to clients.
    pub(super) untold: Untold,
    /// Orders were not resent, because they were too old or are to be cancelled: see `refuse_stale`. Or it is unknown
    /// whether all older answers have come. An answer to this number, or a later one, shows that they have.
    stale: Cell<Option<u32>>,
    /// Waiting orders up to this number may have ended, and are not sent then.
    taken_back: Cell<u32>,
    /// How old an order may be when it is first sent.
    wait_max_ns: u64,
    /// Workers with clients that the session has answers for, as recorded in the journal in this start.
    homes: Cell<[u64; WORKERS_MAX / 64]>,
    flush: Signal,
}

impl Upstream {
    pub(super) fn new(
        place: UpstreamId,
        login: Login,
        outstanding: OutstandingOrders,
        resume: Resume,
    ) -> Self {
        let UpstreamId { worker, venue, venues } = place;
        let mut joining = Joining::after(resume.next, resume.heard);
        if resume.session.is_some() {
            joining = joining.with_older_answers();
        }
        Self {
            index: worker * venues + venue,
            key: session_key(worker, venue),
            venue,
            login: RefCell::new(login),
            moves: Cell::new(0),
            moved: Notify::default(),
            was_in_use: Cell::new(false),
            is_held: Cell::new(false),
            // Journaled orders may have been sent.
            handed: Cell::new(outstanding.last_number()),
            handed_here: Cell::new(0),
            wait_max_ns: outstanding.wait_max_ns(),
            outstanding: RefCell::new(outstanding),
            waiting: RefCell::default(),
            urgent: RefCell::default(),
            stream: RefCell::default(),
            rules: RefCell::default(),
            generation: Cell::new(0),
            is_up: Cell::new(false),
            answer_due: Cell::new(None),
            session: Cell::new(resume.session),
            epoch: Cell::new(resume.epoch),
            next: Cell::new(resume.next),
            joining: Cell::new(joining),
            replay_until: Cell::new(resume.delivered.values().copied().max().unwrap_or(0)),
            delivered: resume.delivered,
            lsn: Cell::new(0),
            mass_cancels: RefCell::default(),
            operator_cancels: RefCell::default(),
            untold: Untold::default(),
            stale: Cell::default(),
            taken_back: Cell::new(0),
            homes: Cell::default(),
            flush: Signal::default(),
        }
    }

    /// The journal record before the first answer for clients of a worker: if that worker's journal loses this answer
    /// and every other one, the record shows where they begin. `None`: the journal has it already.
    #[inline]
    pub(super) fn note_home(&self, home: u16) -> Option<[u8; 12]> {
        let mut homes = self.homes.get();
        let (place, bit) = (usize::from(home) / 64, 1_u64 << (home % 64));
        if self.session.get().is_none() || homes[place] & bit != 0 {
            return None;
        }
        homes[place] |= bit;
        self.homes.set(homes);
        Some(home_record(self.epoch.get(), home, self.next.get().saturating_sub(1)))
    }

    /// The key of the session in an order's record.
    #[inline]
    pub(super) fn sent_key(&self) -> u32 {
        #[cfg(test)]
        if super::simulated_days::is_planted(super::simulated_days::Plant::VenueNotRecorded) {
            return sent_key(self.key - self.venue as u32, self.epoch.get());
        }
        sent_key(self.key, self.epoch.get())
    }

    /// Whether it accepts orders.
    pub(super) fn is_up(&self) -> bool {
        self.is_up.get()
    }

    /// Accepts a client's message for sending. `log` journals it with its number. Returns whether it is on its way
    /// now; the error is an OUCH reason.
    #[inline]
    pub(super) fn send(&self, origin: Origin, raw: &[u8], log: impl FnOnce(u32) -> Lsn) -> Result<bool, u16> {
        if !self.is_up.get() || self.is_held.get() {
            return Err(reject_reason::DESTINATION_CLOSED);
        }
        let mut waiting = self.waiting.borrow_mut();
        let is_behind = waiting.bytes.len() > WAITING_BYTES_MAX;
        match raw.first() {
            Some(&Cancel::KIND) if is_behind => return Ok(self.send_late(&origin, raw, &mut waiting, log)),
            Some(b'O' | b'U') if self.outstanding.borrow().is_full() => {
                return Err(reject_reason::PROCESSING_ERROR);
            }
            _ if is_behind => return Err(reject_reason::PROCESSING_ERROR),
            _ => {}
        }
        let number =
            match self.outstanding.borrow_mut().assign_upstream_number(origin, raw, &mut waiting.bytes) {
                Sending::Numbered(number) => {
                    waiting.last = number;
                    waiting.through = number;
                    if waiting.first == 0 {
                        waiting.first = number;
                    }
                    // An order that another worker has handed over late comes behind younger ones.
                    let until_ns = origin.received_ns.saturating_add(self.wait_max_ns);
                    waiting.until_ns = Some(waiting.until_ns.map_or(until_ns, |first| first.min(until_ns)));
                    number
                }
                Sending::Passed(number) => number,
                Sending::Unknown => return Ok(false),
                Sending::Full => return Err(reject_reason::PROCESSING_ERROR),
            };
        waiting.messages += 1;
        waiting.orders += 1;
        let lsn = log(number);
        if raw.first() == Some(&Cancel::KIND) && number <= self.handed.get() {
            waiting.copy(number, raw);
        }
        self.note_lsn(&mut waiting, lsn);
        drop(waiting);
        self.flush.raise();
        Ok(true)
    }

    /// Whether an order from another worker has become too old on its way here.
    pub(super) fn is_late(&self, origin: &Origin, now_ns: u64) -> bool {
        now_ns.saturating_sub(origin.received_ns) > self.wait_max_ns
    }

    /// Whether no message waits to be sent or answered.
    pub(super) fn is_idle(&self) -> bool {
        let waits = |waiting: &RefCell<Waiting>| waiting.borrow().messages > 0;
        self.outstanding.borrow().unanswered() == 0 && !waits(&self.waiting) && !waits(&self.urgent)
    }

    /// Whether ended orders have to be reported to clients.
    pub(super) fn has_untold(&self) -> bool {
        !self.untold.borrow().is_empty()
    }

    /// Sends a logout and closes the connection.
    pub(super) fn leave(&self) {
        let Some(stream) = self.stream.borrow_mut().take() else { return };
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        // Queued bytes are sent while the connection closes. If the queue is full, the logout is skipped.
        let _ = pin!(stream.send_slice(&LOGOUT_FRAME)).poll(&mut context);
        self.is_up.set(false);
    }

    fn note_lsn(&self, waiting: &mut Waiting, lsn: Lsn) {
        waiting.lsn = waiting.lsn.max(lsn);
        self.lsn.set(self.lsn.get().max(lsn));
    }

    fn say(&self, frame: &[u8]) {
        self.urgent.borrow_mut().bytes.extend_from_slice(frame);
        self.flush.raise();
    }

    /// Sends a heartbeat, unless other bytes are on their way.
    fn beat(&self) {
        if self.urgent.borrow().bytes.is_empty() {
            self.say(&CLIENT_HEARTBEAT_FRAME);
        }
    }

    async fn attempt(&self, gateway: &Rc<Gateway>) -> Ended {
        let moves = self.moves.get();
        let (address, timing) = {
            let login = self.login.borrow();
            (login.address.clone(), login.timing)
        };
        let stream = match time::timeout(CONNECT_LIMIT, Stream::connect(&address)).await {
            _ if self.moves.get() != moves => return Ended::Moved,
            Ok(Ok(stream)) => Rc::new(stream),
            Ok(Err(error)) => return Ended::Failed(error),
            Err(_) => return Ended::NoAnswer,
        };
        self.begin_login();
        let login = self.login();
        let rules = ClientSession::new(time::now().as_nanos(), timing, &login);
        *self.rules.borrow_mut() = Some(rules);
        *self.stream.borrow_mut() = Some(Rc::clone(&stream));
        let mut frame = Vec::new();
        login.encode(&mut frame);
        self.say(&frame);
        let mut has_moved = pin!(self.moved.until(|| self.moves.get() != moves));
        let mut conversing = pin!(self.converse(gateway, &stream));
        poll_fn(|context| match has_moved.as_mut().poll(context) {
            // Between two messages, which are handled without a wait.
            Poll::Ready(()) => Poll::Ready(Ended::Moved),
            Poll::Pending => conversing.as_mut().poll(context),
        })
        .await
    }

    async fn converse(&self, gateway: &Rc<Gateway>, stream: &Stream) -> Ended {
        let mut deframer = Deframer::new(PAYLOAD_BYTES_MAX);
        let mut timer = Box::pin(time::sleep_until(self.deadline()));
        loop {
            match next(stream, timer.as_mut()).await {
                Happened::Received(Ok(Some(lease))) => {
                    let now = gateway.store.tick();
                    if let Err(ended) = self.take_in(gateway, &mut deframer, &lease, now) {
                        return ended;
                    }
                    drop(lease);
                    self.deal(gateway, now, timer.as_mut()).await;
                }
                Happened::Received(Ok(None)) => return Ended::Closed,
                Happened::Received(Err(error)) => return Ended::Failed(error),
                Happened::Due => {
                    if let Err(ended) = self.on_time() {
                        return ended;
                    }
                    timer.set(time::sleep_until(self.deadline()));
                }
            }
        }
    }

    /// Waits until the received messages are processed. Meanwhile heartbeats are sent. Nothing is read, so a silence
    /// of the exchange does not count: its timeout starts again afterwards.
    async fn deal(&self, gateway: &Gateway, now: Instant, mut timer: Pin<&mut Sleep>) {
        let heartbeat = Duration::from_nanos(self.login.borrow().timing.heartbeat_ns);
        let dealing = pin!(async {
            gateway.expire(&self.untold).await;
            gateway.after_receive(self, now).await;
        });
        if !meanwhile(dealing, timer.as_mut(), heartbeat, || self.beat()).await {
            return;
        }
        if let Some(rules) = self.rules.borrow_mut().as_mut()
            && rules.is_logged_in()
        {
            // Messages that arrived meanwhile are read only now.
            let _ = rules.on_packet(time::now().as_nanos(), ServerPacket::Heartbeat);
        }
        self.await_numbers();
        timer.set(time::sleep_until(self.deadline()));
    }

    fn deadline(&self) -> Instant {
        let deadline_ns = self.rules.borrow().as_ref().map_or(u64::MAX, ClientSession::deadline_ns);
        let deadline = Instant::from_nanos(deadline_ns);
        self.answer_due.get().map_or(deadline, |due| deadline.min(due))
    }

    /// Extends the deadline of the account query, while it is unanswered: the exchange has just sent something.
    fn await_numbers(&self) {
        if self.answer_due.get().is_some() {
            self.answer_due.set(Some(time::now() + QUERY_LIMIT));
        }
    }

    fn on_time(&self) -> Result<(), Ended> {
        if self.answer_due.get().is_some_and(|due| time::now() >= due) {
            return Err(Ended::NoNumbers);
        }
        let due = self.rules.borrow_mut().as_mut().map(|rules| rules.on_time(time::now().as_nanos()));
        match due {
            Some(Due::Heartbeat) => self.beat(),
            Some(Due::Close(CloseReason::NoLogin)) => return Err(Ended::NoLogin),
            Some(Due::Close(CloseReason::HeartbeatTimeout)) => return Err(Ended::HeartbeatTimeout),
            Some(Due::Nothing) | None => {}
        }
        Ok(())
    }

    fn take_in(
        &self,
        gateway: &Gateway,
        deframer: &mut Deframer,
        mut input: &[u8],
        now: Instant,
    ) -> Result<(), Ended> {
        while let Some(frame) = deframer.next(&mut input)? {
            self.on_frame(gateway, frame, now)?;
        }
        Ok(())
    }

    #[inline]
    fn on_frame(&self, gateway: &Gateway, frame: Frame<'_>, now: Instant) -> Result<(), Ended> {
        let packet = ServerPacket::parse(frame)?;
        if packet == ServerPacket::Heartbeat {
            self.on_heartbeat(gateway)?;
        }
        let input = match self.rules.borrow_mut().as_mut() {
            Some(rules) => rules.on_packet(now.as_nanos(), packet)?,
            None => return Err(Ended::Closed),
        };
        match input {
            ClientInput::Message { sequence, payload } => self.on_message(gateway, sequence, payload, now)?,
            ClientInput::LoggedIn { next } => self.on_login(gateway, next, now)?,
            ClientInput::Refused(LoginReject::NotAuthorised) => return Err(Ended::NotAuthorised),
            ClientInput::Refused(LoginReject::SessionNotAvailable) => return Err(Ended::NotAvailable),
            ClientInput::Ended => return Err(Ended::SessionOver),
            ClientInput::Unsequenced(_) | ClientInput::Nothing => {}
        }
        Ok(())
    }

    /// A heartbeat shows that the exchange has no more messages to send. If orders set aside since the connection
    /// began wait for something that this connection cannot show, the next connection begins with a probe.
    fn on_heartbeat(&self, gateway: &Gateway) -> Result<(), Ended> {
        if self.is_up.get() {
            let mut joining = self.joining.get();
            if joining.has_heard_all() {
                self.refuse_stale(gateway);
            } else if self.outstanding.borrow().has_stale() && joining.leaves_to_look() {
                self.joining.set(joining);
                return Err(Ended::Unmeasured);
            }
        }
        self.prove(Joining::beaten)
    }

    /// Checks a received message against the known session.
    #[inline]
    fn prove(&self, hear: impl FnOnce(&mut Joining) -> Result<(), Doubtful>) -> Result<(), Ended> {
        let mut joining = self.joining.get();
        if !joining.is_open() {
            return Ok(());
        }
        let outcome = hear(&mut joining);
        self.joining.set(joining);
        outcome.map_err(|Doubtful| Ended::Doubtful)
    }

    #[inline]
    fn on_message(
        &self,
        gateway: &Gateway,
        sequence: u64,
        payload: &[u8],
        now: Instant,
    ) -> Result<(), Ended> {
        if gateway.is_full() {
            return Err(Ended::Backpressure);
        }
        let counters = &gateway.counters;
        counters.upstream_received.add(1);
        counters.taken.add(1);
        gateway.store.counters().add_received(1);
        self.await_numbers();
        if sequence < self.next.get() {
            // Received before, on an earlier connection.
            counters.passed.add(1);
            return Ok(());
        }
        let decoded = Outbound::decode(payload);
        self.prove(|joining| {
            let is_answer = decoded.as_ref().is_ok_and(|(message, _)| message.user_ref_num().is_some());
            joining.heard(sequence, is_answer)
        })?;
        self.next.set(sequence + 1);
        let Ok((message, _)) = decoded else {
            counters.malformed.add(1);
            counters.passed.add(1);
            gateway.tell_malformed(self, sequence, payload);
            return Ok(());
        };
        if let Outbound::AccountQueryResponse { next_user_ref_num, .. } = message {
            counters.passed.add(1);
            self.on_numbers(gateway, (sequence, next_user_ref_num), now);
            return Ok(());
        }
        if let Some(later) = self.stale.get()
            && message.user_ref_num().is_some_and(|number| number >= later)
        {
            self.note_all_heard();
            self.refuse_stale(gateway);
        }
        if sequence <= self.replay_until.get() && self.is_delivered(&message, sequence) {
            counters.replayed.add(1);
            counters.passed.add(1);
            return Ok(());
        }
        if payload.len() <= MESSAGE_BYTES_MAX {
            let mut place = [0; MESSAGE_BYTES_MAX];
            let raw = &mut place[..payload.len()];
            raw.copy_from_slice(payload);
            self.pass_back(gateway, &message, raw, sequence, now);
        } else {
            // If the appendage does not fit, the answer is delivered without it.
            let mut raw = Vec::new();
            message.encode(&mut raw);
            self.pass_back(gateway, &message, &mut raw, sequence, now);
        }
        Ok(())
    }

    #[inline]
    fn pass_back(&self, gateway: &Gateway, message: &Outbound, raw: &mut [u8], sequence: u64, now: Instant) {
        let (answer, ignored) = {
            let mut outstanding = self.outstanding.borrow_mut();
            (outstanding.apply_response(message, raw), outstanding.take_ignored())
        };
        for origin in ignored {
            gateway.release_number(&origin);
        }
        let Some(answer) = answer else {
            gateway.counters.unmatched.add(u64::from(message.user_ref_num().is_some()));
            gateway.counters.passed.add(1);
            if traded_order(message).is_some() {
                // This has to be settled by people: the journal stores it, and a line reports it.
                gateway.log_stray(self.sent_key(), sequence, raw);
                gateway.tell_unknown(self, message);
            }
            return;
        };
        if answer.is_overfill {
            // A trade is valid even after an error: the client is informed, and a line reports it.
            gateway.counters.overfills.add(1);
            let what = format_args!("the exchange has executed more shares of an order than were left of it");
            gateway.notice(self, EventKind::Overfill, what);
        }
        if answer.sent_ns > 0 {
            gateway.record(Hop::Upstream, now.as_nanos().saturating_sub(answer.sent_ns));
        }
        if let Outbound::Canceled(canceled) = message
            && let Some(reason) = self.reason_of(canceled, answer.origin.account)
            && let Some(place) = raw.get_mut(CANCEL_REASON_OFFSET)
        {
            *place = reason;
        }
        gateway.deliver(&answer.origin, raw, pack_sequence(self.key, self.epoch.get(), sequence), now);
    }

    /// Whether the client received this answer before the gateway was restarted.
    #[cold]
    fn is_delivered(&self, message: &Outbound, sequence: u64) -> bool {
        let account = message.user_ref_num().and_then(|number| self.outstanding.borrow().account_of(number));
        // All answers to an order too old for its owner to be known were delivered.
        account.is_none_or(|account| self.delivered.get(&account).is_some_and(|until| sequence <= *until))
    }

    /// The session is up, and the numbers are known.
    fn come_up(&self, gateway: &Gateway, now: Instant) {
        let again = {
            let (mut waiting, mut outstanding) = (self.waiting.borrow_mut(), self.outstanding.borrow_mut());
            let mut urgent = self.urgent.borrow_mut();
            // First of all, and even if the journal has failed: the clients of these orders were informed that they
            // have ended.
            urgent.messages += outstanding.cancel_given_up(&mut urgent.bytes);
            let withheld = |number, account| self.withheld(number, account);
            let again = outstanding.resend(now.as_nanos(), withheld, &mut waiting.bytes);
            let is_open = outstanding.has_stale() || !self.joining.get().has_heard_all();
            self.stale.set(is_open.then_some(outstanding.last_number().saturating_add(1)));
            waiting.messages += again;
            waiting.through = outstanding.last_number();
            waiting.until_ns = outstanding.first_wait_until_ns(0);
            waiting.lsn = waiting.lsn.max(self.lsn.get());
            if again == 0 {
                // Nothing has to come before messages about them.
                self.handed_here.set(waiting.through);
            }
            again
        };
        self.cancel_again(gateway);
        gateway.counters.resent.add(again);
        self.is_up.set(true);
        gateway.show(self);
        gateway.tell_up(self, again);
        self.flush.raise();
    }

    /// The connection is gone. Unanswered messages are resent on the next one.
    fn go_down(&self, gateway: &Gateway) -> bool {
        self.generation.set(self.generation.get() + 1);
        self.stream.borrow_mut().take();
        self.rules.borrow_mut().take();
        self.stale.take();
        let mut joining = self.joining.get();
        joining.left();
        self.joining.set(joining);
        let mut waiting = self.waiting.borrow_mut();
        let (orders, lsn) = (waiting.orders, waiting.lsn);
        waiting.bytes.clear();
        *waiting = Waiting { bytes: std::mem::take(&mut waiting.bytes), orders, lsn, ..Waiting::default() };
        drop(waiting);
        *self.urgent.borrow_mut() = Waiting::default();
        self.answer_due.set(None);
        self.handed_here.set(0);
        self.taken_back.set(0);
        self.flush.wake();
        let was_up = self.is_up.replace(false) | self.was_in_use.take();
        gateway.show(self);
        was_up
    }
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
        let was_up = upstream.go_down(&gateway);
        if was_up {
            backoff.reset();
        }
        if matches!(ended, Ended::NotAvailable) {
            let mut joining = upstream.joining.get();
            joining.refused();
            upstream.joining.set(joining);
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
