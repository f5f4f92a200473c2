//! One upstream session: the connection to an exchange, its login, its heartbeats, and what happens when it is lost.
//!
//! Two tasks: one receives and watches the clock, one sends. What is to be sent collects in a buffer; the sender takes
//! all of it, waits until the journal has what it names, and hands it over in one piece.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, HashMap},
    future::{Future, poll_fn},
    io,
    pin::Pin,
    rc::Rc,
    task::Poll,
    time::Duration,
};

use weir_engine::{
    Lease,
    net::{Address, Stream},
    time::{self, Instant, Sleep},
};
use weir_proto::{
    ouch::{ACCOUNT_QUERY, Canceled, Outbound, codes::cancel_reason, reject_reason},
    soup::{
        CLIENT_HEARTBEAT_FRAME, ClientInput, ClientSession, CloseReason, Deframer, Due, Fault, Frame,
        LOGOUT_FRAME, LoginReject, LoginRequest, Name, ServerPacket, Timing, UNSEQUENCED, encode_frame,
    },
};
use weir_trading::{AccountId, Origin};

use super::{
    application::Gateway,
    backoff::Backoff,
    hops::Hop,
    joining::{Joined, Joining},
    ledger::{Ledger, Sending},
    signal::Signal,
    task::{MESSAGE_BYTES_MAX, pack_sequence, session_key},
};
use crate::journal::Lsn;

/// Longest payload an exchange may send.
const PAYLOAD_BYTES_MAX: usize = 4096;
/// Longest attempt to connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Where a cancellation has its reason.
const CANCEL_REASON_OFFSET: usize = 17;
/// Bytes that wait to be sent; more stop the clients that send here.
const WAITING_BYTES_MAX: usize = 256 << 10;

/// Where a worker logs in. It has a password and is not to be printed.
#[derive(Clone)]
pub(super) struct Login {
    pub(super) address: Address,
    pub(super) username: Name<6>,
    pub(super) password: Name<10>,
    pub(super) timing: Timing,
}

/// Which session it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) worker: usize,
    pub(super) venue: usize,
    /// How many venues there are.
    pub(super) venues: usize,
}

/// What was known of an upstream session when the gateway ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Resume {
    /// The session; none when nothing is known.
    pub(super) session: Option<Name<10>>,
    /// See `pack_sequence`.
    pub(super) epoch: u8,
    /// The first message wanted.
    pub(super) next: u64,
    /// By account: up to which message of this session its client has the answers.
    pub(super) delivered: HashMap<AccountId, u64>,
}

/// What collects until it is sent.
#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// Data messages among them.
    messages: u64,
    /// Of these, from clients and not counted as passed on yet.
    orders: u64,
    /// Numbers of the orders among them, or 0.
    first: u32,
    last: u32,
    /// The journal has to have this before they may be sent.
    lsn: Lsn,
}

/// Cancels of our own.
#[derive(Clone, Copy, Debug)]
struct Owed {
    /// Of orders up to this number.
    through: u32,
    /// What clients are told; to the exchange each is a cancel like any other.
    reason: u8,
}

/// Why a connection ended, or was not made.
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
    Fault(#[from] Fault),
    #[error("the exchange was silent")]
    Silent,
    #[error("the exchange did not answer the login")]
    NoLogin,
    #[error("the exchange does not give what comes next of its session, or somebody was logged in")]
    Withheld,
    #[error("the exchange has begun its session anew")]
    BegunAnew,
}

/// One worker's session with one venue.
pub(super) struct Upstream {
    /// Place among all sessions of the gateway.
    pub(super) index: usize,
    /// Its name in journals.
    pub(super) key: u32,
    pub(super) venue: usize,
    login: Login,
    pub(super) ledger: RefCell<Ledger>,
    waiting: RefCell<Waiting>,
    stream: RefCell<Option<Rc<Stream>>>,
    rules: RefCell<Option<ClientSession>>,
    /// Counts connections, so that the sender sees that its own is gone.
    generation: Cell<u64>,
    is_up: Cell<bool>,
    is_full: Cell<bool>,
    session: Cell<Option<Name<10>>>,
    /// Counts sessions the exchange began.
    epoch: Cell<u8>,
    next: Cell<u64>,
    joining: Cell<Joining>,
    /// Of the session of the start before.
    delivered: HashMap<AccountId, u64>,
    /// Up to which message that holds; 0 once the exchange has begun another session.
    replay_until: Cell<u64>,
    lsn: Cell<Lsn>,
    /// By account, whose orders are to be cancelled until none of these is open: a cancel may be lost with the
    /// connection. No account stands for all.
    cancels_owed: RefCell<BTreeMap<Option<AccountId>, Owed>>,
    flush: Signal,
}

impl Upstream {
    pub(super) fn new(place: Place, login: Login, ledger: Ledger, resume: Resume) -> Self {
        let Place { worker, venue, venues } = place;
        Self {
            index: worker * venues + venue,
            key: session_key(worker, venue),
            venue,
            login,
            ledger: RefCell::new(ledger),
            waiting: RefCell::default(),
            stream: RefCell::default(),
            rules: RefCell::default(),
            generation: Cell::new(0),
            is_up: Cell::new(false),
            is_full: Cell::new(false),
            session: Cell::new(resume.session),
            epoch: Cell::new(resume.epoch),
            next: Cell::new(resume.next),
            joining: Cell::default(),
            replay_until: Cell::new(resume.delivered.values().copied().max().unwrap_or(0)),
            delivered: resume.delivered,
            lsn: Cell::new(0),
            cancels_owed: RefCell::default(),
            flush: Signal::default(),
        }
    }

    /// Whether orders can be sent.
    pub(super) fn is_up(&self) -> bool {
        self.is_up.get()
    }

    /// Takes a client's message to be sent. `log` writes it to the journal with its number. Says whether it is under
    /// way now; an error is an OUCH reason.
    #[inline]
    pub(super) fn send(&self, origin: Origin, raw: &[u8], log: impl FnOnce(u32) -> Lsn) -> Result<bool, u16> {
        if !self.is_up.get() {
            return Err(reject_reason::DESTINATION_CLOSED);
        }
        let mut waiting = self.waiting.borrow_mut();
        let number = match self.ledger.borrow_mut().send(origin, raw, &mut waiting.bytes) {
            Sending::Numbered(number) => {
                waiting.last = number;
                if waiting.first == 0 {
                    waiting.first = number;
                }
                number
            }
            Sending::Passed(number) => number,
            Sending::Unknown => return Ok(false),
            Sending::Full => return Err(reject_reason::PROCESSING_ERROR),
        };
        waiting.messages += 1;
        waiting.orders += 1;
        self.note_lsn(&mut waiting, log(number));
        drop(waiting);
        self.flush.raise();
        Ok(true)
    }

    /// Sends cancels of every order of an account that is open now, or of all; says how many. They are sent on every
    /// new connection until none of these orders is open. Clients are told this reason.
    pub(super) fn cancel_all(&self, account: Option<AccountId>, reason: u8) -> u64 {
        let ledger = self.ledger.borrow();
        let through = ledger.last_number();
        let mut cancels = Vec::new();
        let count = ledger.cancel_all(account, through, &mut cancels);
        if count > 0 {
            self.cancels_owed.borrow_mut().insert(account, Owed { through, reason });
        }
        if self.is_up.get() {
            let mut waiting = self.waiting.borrow_mut();
            waiting.bytes.append(&mut cancels);
            waiting.messages += count;
            drop(waiting);
            self.flush.raise();
        }
        count
    }

    /// Whether so much is under way that the clients that send here should wait. True once, when that begins.
    pub(super) fn becomes_full(&self) -> bool {
        let is_full = self.ledger.borrow().is_full() || self.waiting.borrow().bytes.len() > WAITING_BYTES_MAX;
        self.is_up.get() && is_full && !self.is_full.replace(true)
    }

    /// True once, when that is over. Without a connection nobody waits: orders are refused.
    pub(super) fn gets_room(&self) -> bool {
        let is_over = !self.is_up.get() || self.has_room();
        self.is_full.get() && is_over && self.is_full.replace(false)
    }

    fn has_room(&self) -> bool {
        self.ledger.borrow().has_room() && self.waiting.borrow().bytes.len() <= WAITING_BYTES_MAX
    }

    /// Whether nothing waits to be sent or answered.
    pub(super) fn is_idle(&self) -> bool {
        self.ledger.borrow().unanswered() == 0 && self.waiting.borrow().bytes.is_empty()
    }

    /// Says good-bye and lets the connection go.
    pub(super) fn leave(&self) {
        let Some(stream) = self.stream.borrow_mut().take() else { return };
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        // What is queued leaves while the connection closes; a full queue loses a courtesy.
        let _ = std::pin::pin!(stream.send_slice(&LOGOUT_FRAME)).poll(&mut context);
        self.is_up.set(false);
    }

    fn note_lsn(&self, waiting: &mut Waiting, lsn: Lsn) {
        waiting.lsn = waiting.lsn.max(lsn);
        self.lsn.set(self.lsn.get().max(lsn));
    }

    fn say(&self, frame: &[u8]) {
        self.waiting.borrow_mut().bytes.extend_from_slice(frame);
        self.flush.raise();
    }

    fn login(&self) -> LoginRequest {
        let (session, sequence) = self.joining.get().wanted(self.session.get(), self.next.get());
        let Login { username, password, .. } = self.login;
        LoginRequest { username, password, session, sequence, heartbeat_timeout_ms: None }
    }

    async fn attempt(&self, gateway: &Rc<Gateway>) -> Ended {
        let stream = match time::timeout(CONNECT_LIMIT, Stream::connect(&self.login.address)).await {
            Ok(Ok(stream)) => Rc::new(stream),
            Ok(Err(error)) => return Ended::Failed(error),
            Err(_) => return Ended::NoAnswer,
        };
        let login = self.login();
        let rules = ClientSession::new(time::now().as_nanos(), self.login.timing, &login);
        *self.rules.borrow_mut() = Some(rules);
        *self.stream.borrow_mut() = Some(Rc::clone(&stream));
        let mut frame = Vec::new();
        login.encode(&mut frame);
        self.say(&frame);
        self.converse(gateway, &stream).await
    }

    async fn converse(&self, gateway: &Rc<Gateway>, stream: &Stream) -> Ended {
        let mut deframer = Deframer::new(PAYLOAD_BYTES_MAX);
        let mut timer = Box::pin(time::sleep_until(self.deadline()));
        loop {
            match next(stream, timer.as_mut()).await {
                Happened::Received(Ok(Some(lease))) => {
                    let now = gateway.hub.tick();
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

    /// Waits until what was received is dealt with. The exchange hears of us meanwhile, and that nothing is heard of it
    /// is no silence of its own: nothing is read.
    async fn deal(&self, gateway: &Gateway, now: Instant, mut timer: Pin<&mut Sleep>) {
        let heartbeat = Duration::from_nanos(self.login.timing.heartbeat_ns);
        let dealing = std::pin::pin!(gateway.after_receive(self, now));
        if !meanwhile(dealing, timer.as_mut(), heartbeat, || self.say(&CLIENT_HEARTBEAT_FRAME)).await {
            return;
        }
        if let Some(rules) = self.rules.borrow_mut().as_mut()
            && rules.is_logged_in()
        {
            // What came meanwhile is read only now.
            let _ = rules.on_packet(time::now().as_nanos(), ServerPacket::Heartbeat);
        }
        timer.set(time::sleep_until(self.deadline()));
    }

    fn deadline(&self) -> Instant {
        let deadline_ns = self.rules.borrow().as_ref().map_or(u64::MAX, ClientSession::deadline_ns);
        Instant::from_nanos(deadline_ns)
    }

    fn on_time(&self) -> Result<(), Ended> {
        let due = self.rules.borrow_mut().as_mut().map(|rules| rules.on_time(time::now().as_nanos()));
        match due {
            Some(Due::Heartbeat) => self.say(&CLIENT_HEARTBEAT_FRAME),
            Some(Due::Close(CloseReason::NoLogin)) => return Err(Ended::NoLogin),
            Some(Due::Close(CloseReason::Silent)) => return Err(Ended::Silent),
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
        let input = match self.rules.borrow_mut().as_mut() {
            Some(rules) => rules.on_packet(now.as_nanos(), packet)?,
            None => return Err(Ended::Closed),
        };
        match input {
            ClientInput::Message { sequence, payload } => self.on_message(gateway, sequence, payload, now),
            ClientInput::LoggedIn { next } => self.on_login(gateway, next, now)?,
            ClientInput::Refused(LoginReject::NotAuthorised) => return Err(Ended::NotAuthorised),
            ClientInput::Refused(LoginReject::SessionNotAvailable) => return Err(Ended::NotAvailable),
            ClientInput::Ended => return Err(Ended::SessionOver),
            ClientInput::Unsequenced(_) | ClientInput::Nothing => {}
        }
        Ok(())
    }

    /// Logged in: asks which number comes next. Orders are sent when that is answered.
    fn on_login(&self, gateway: &Gateway, next: u64, now: Instant) -> Result<(), Ended> {
        let session = self.rules.borrow().as_ref().map(ClientSession::session).unwrap_or_default();
        let known = self.session.get().map(|session| (session, self.next.get()));
        let patience_ns = self.login.timing.silence_ns.saturating_mul(2);
        let mut joining = self.joining.get();
        let joined = joining.accepted(known, (session, next), now.as_nanos(), patience_ns);
        self.joining.set(joining);
        match joined {
            Joined::On => {}
            Joined::Without(messages) => {
                gateway.counters.missed.add(messages);
                self.next.set(next);
            }
            Joined::Looked => return Err(Ended::Withheld),
            Joined::Anew => self.begin_anew(gateway, session, known.is_none(), next)?,
        }
        let mut query = Vec::new();
        encode_frame(UNSEQUENCED, &[ACCOUNT_QUERY], &mut query);
        self.waiting.borrow_mut().messages += 1;
        self.say(&query);
        Ok(())
    }

    /// This session was never heard of: all of it is new, unless it is the very first one.
    fn begin_anew(
        &self,
        gateway: &Gateway,
        session: Name<10>,
        is_first: bool,
        next: u64,
    ) -> Result<(), Ended> {
        self.session.set(Some(session));
        self.next.set(if is_first { next } else { 1 });
        self.replay_until.set(0);
        self.epoch.set(self.epoch.get().wrapping_add(1));
        gateway.log_session(self.key, self.epoch.get(), &session);
        // What was said before this login is asked for by the next one.
        if next == self.next.get() { Ok(()) } else { Err(Ended::BegunAnew) }
    }

    #[inline]
    fn on_message(&self, gateway: &Gateway, sequence: u64, payload: &[u8], now: Instant) {
        let counters = &gateway.counters;
        counters.upstream_received.add(1);
        counters.taken.add(1);
        gateway.hub.counters().add_received(1);
        if sequence < self.next.get() {
            // Heard before, on an earlier connection.
            counters.passed.add(1);
            return;
        }
        self.next.set(sequence + 1);
        let Ok((message, _)) = Outbound::decode(payload) else {
            counters.unmatched.add(1);
            counters.passed.add(1);
            return;
        };
        if let Outbound::AccountQueryResponse { next_user_ref_num, .. } = message {
            counters.passed.add(1);
            // In a session that is said again there are old answers, which come first.
            self.ledger.borrow_mut().raise_next(next_user_ref_num);
            if !self.is_up.get() {
                self.come_up(gateway);
            }
            return;
        }
        if sequence <= self.replay_until.get() && self.is_delivered(&message, sequence) {
            counters.replayed.add(1);
            counters.passed.add(1);
            return;
        }
        if payload.len() <= MESSAGE_BYTES_MAX {
            let mut place = [0; MESSAGE_BYTES_MAX];
            let raw = &mut place[..payload.len()];
            raw.copy_from_slice(payload);
            self.pass_back(gateway, &message, raw, sequence, now);
        } else {
            // The appendage of an answer is worth less than the answer.
            let mut raw = Vec::new();
            message.encode(&mut raw);
            self.pass_back(gateway, &message, &mut raw, sequence, now);
        }
    }

    #[inline]
    fn pass_back(&self, gateway: &Gateway, message: &Outbound, raw: &mut [u8], sequence: u64, now: Instant) {
        let (answer, ignored) = {
            let mut ledger = self.ledger.borrow_mut();
            (ledger.answer(message, raw), ledger.take_ignored())
        };
        for origin in ignored {
            gateway.give_back(&origin);
        }
        let Some(answer) = answer else {
            gateway.counters.unmatched.add(u64::from(message.user_ref_num().is_some()));
            gateway.counters.passed.add(1);
            return;
        };
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

    /// Why an order was cancelled that the exchange says its user cancelled, if that was us.
    fn reason_of(&self, canceled: &Canceled, account: AccountId) -> Option<u8> {
        let owed = self.cancels_owed.borrow();
        if canceled.reason != cancel_reason::USER || owed.is_empty() {
            return None;
        }
        let mut of_it = [Some(account), None].into_iter().filter_map(|key| owed.get(&key));
        of_it.find(|owed| canceled.user_ref_num <= owed.through).map(|owed| owed.reason)
    }

    /// Whether the client had this answer before the gateway was started again.
    #[cold]
    fn is_delivered(&self, message: &Outbound, sequence: u64) -> bool {
        let account = message.user_ref_num().and_then(|number| self.ledger.borrow().account_of(number));
        // Of an order that is over, everything was delivered: its end was.
        account.is_none_or(|account| self.delivered.get(&account).is_some_and(|until| sequence <= *until))
    }

    /// The session stands, and the numbers are known.
    fn come_up(&self, gateway: &Gateway) {
        let mut waiting = self.waiting.borrow_mut();
        let again = self.ledger.borrow().resend(&mut waiting.bytes);
        waiting.messages += again;
        waiting.lsn = waiting.lsn.max(self.lsn.get());
        self.cancels_owed.borrow_mut().retain(|account, owed| {
            let count = self.ledger.borrow().cancel_all(*account, owed.through, &mut waiting.bytes);
            waiting.messages += count;
            count > 0
        });
        drop(waiting);
        gateway.counters.resent.add(again);
        self.is_up.set(true);
        gateway.show(self);
        self.flush.raise();
    }

    /// The connection is gone. What was not answered is sent again on the next one.
    fn go_down(&self, gateway: &Gateway) -> bool {
        self.generation.set(self.generation.get() + 1);
        self.stream.borrow_mut().take();
        self.rules.borrow_mut().take();
        let mut waiting = self.waiting.borrow_mut();
        let (orders, lsn) = (waiting.orders, waiting.lsn);
        waiting.bytes.clear();
        *waiting = Waiting { bytes: std::mem::take(&mut waiting.bytes), orders, lsn, ..Waiting::default() };
        drop(waiting);
        self.flush.wake();
        let was_up = self.is_up.replace(false);
        gateway.show(self);
        was_up
    }
}

/// Keeps one session up, for as long as the worker runs.
pub(super) async fn run(gateway: Rc<Gateway>, upstream: Rc<Upstream>) {
    let mut backoff = Backoff::new(time::now().as_nanos() ^ (upstream.index as u64) << 32);
    loop {
        let ended = upstream.attempt(&gateway).await;
        if upstream.go_down(&gateway) || matches!(ended, Ended::BegunAnew) {
            backoff.reset();
        }
        if matches!(ended, Ended::NotAvailable) {
            let mut joining = upstream.joining.get();
            joining.refused();
            upstream.joining.set(joining);
        }
        gateway.tell_trouble(&upstream, &ended);
        gateway.release(&upstream);
        time::sleep(backoff.next()).await;
    }
}

/// Sends what collects, for as long as the worker runs.
pub(super) async fn send(gateway: Rc<Gateway>, upstream: Rc<Upstream>) {
    let mut sending = Vec::new();
    loop {
        upstream.flush.raised().await;
        let generation = upstream.generation.get();
        let batch = {
            let mut waiting = upstream.waiting.borrow_mut();
            std::mem::swap(&mut waiting.bytes, &mut sending);
            let next = Waiting { bytes: std::mem::take(&mut waiting.bytes), ..Waiting::default() };
            std::mem::replace(&mut *waiting, next)
        };
        if sending.is_empty() {
            continue;
        }
        if !gateway.is_durable(batch.lsn).await {
            // Without a journal that works nothing is sent any more.
            sending.clear();
            continue;
        }
        if generation == upstream.generation.get() {
            hand_over(&gateway, &upstream, &batch, &sending).await;
        }
        gateway.counters.passed.add(batch.orders);
        sending.clear();
        gateway.release(&upstream);
    }
}

async fn hand_over(gateway: &Gateway, upstream: &Upstream, batch: &Waiting, bytes: &[u8]) {
    let Some(stream) = upstream.stream.borrow().clone() else { return };
    let generation = upstream.generation.get();
    {
        let mut send = std::pin::pin!(stream.send_slice(bytes));
        let outcome = poll_fn(|context| {
            if generation != upstream.generation.get() {
                return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
            }
            let outcome = send.as_mut().poll(context);
            if outcome.is_pending() {
                upstream.flush.register(context);
            }
            outcome
        });
        if outcome.await.is_err() {
            // The task that receives sees it too.
            return;
        }
    }
    let now = time::now().as_nanos();
    if let Some(rules) = upstream.rules.borrow_mut().as_mut() {
        rules.on_sent(now);
    }
    if batch.first != 0 {
        let out = |received_ns: u64| gateway.record(Hop::GatewayOut, now.saturating_sub(received_ns));
        upstream.ledger.borrow_mut().stamp(batch.first, batch.last, now, out);
    }
    gateway.counters.upstream_sent.add(batch.messages);
    gateway.hub.counters().add_sent(batch.messages);
}

/// Runs `work` to its end. `beat` is called when the timer fires and as often as `every` from then on; says whether it
/// was.
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

/// Bytes, or the deadline.
async fn next(stream: &Stream, mut timer: Pin<&mut Sleep>) -> Happened {
    let mut receive = std::pin::pin!(stream.recv());
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
        let config = Config::with_driver(Driver::Sim);
        Runtime::new(&config).expect("it runs everywhere").block_on(async {
            for (work_ms, expected) in [(0, 0), (990, 0), (3_500, 3)] {
                let work = std::pin::pin!(time::sleep(Duration::from_millis(work_ms)));
                let mut timer = Box::pin(time::sleep(Duration::from_secs(1)));
                let mut beats = 0;
                let has_beaten = meanwhile(work, timer.as_mut(), Duration::from_secs(1), || beats += 1).await;
                assert_eq!((beats, has_beaten), (expected, expected > 0), "{work_ms} ms");
            }
        });
    }
}
