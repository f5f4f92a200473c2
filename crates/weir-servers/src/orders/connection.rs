//! One connection, from its arrival to its end: the login on the worker where it arrived, everything else on the home
//! of its account.

mod greeting;

use std::{
    future::{Future, poll_fn},
    net::SocketAddr,
    pin::pin,
    rc::Rc,
    task::Poll,
    time::Duration,
};

use weir_engine::{
    Lease,
    net::Stream,
    time::{self, Instant},
};
use weir_proto::{
    ouch::{Cancel, ClientOrderId, DecodeErrorKind, Inbound, reject_reason},
    soup::{
        ClientPacket, DEBUG, Deframer, Due, END_OF_SESSION_FRAME, LoginAccepted, LoginReject, LoginRequest,
        ProtocolError, SERVER_HEARTBEAT_FRAME, ServerInput, ServerSession, UNSEQUENCED, encode_frame,
    },
};
use weir_trading::{AccountId, NumberVerdict};

use super::{
    Application, CutOff, LastEnding,
    account::Slot,
    admission,
    client_message::ClientMessage,
    connection_events::{self, note_refused},
    counters::AccountCells,
    session::{End, Next, Session},
    store::SessionStore,
    worker::{Arrival, Worker},
};
use crate::connection_timer::ConnectionTimer;

use greeting::greet;

/// How long a client may take to notice that its connection is over.
const LINGER: Duration = Duration::from_millis(500);

/// Timers of connections fire at multiples of this, so that those of idle connections fire together. This delays
/// heartbeats by at most as much, which the protocol allows.
const TIMER_GRID_NS: u64 = 500_000_000;

/// Send buffer requested from the kernel; the kernel doubles it. A fixed size keeps the kernel's queue small, and
/// makes the kernel report often that a slow client has taken bytes.
const KERNEL_SEND_BYTES: usize = 64 << 10;

/// The text for clients, in a debug packet, when nothing can be acknowledged any more.
const JOURNAL_FAILED: &[u8] = b"the journal has failed: orders are neither taken nor answered any more";

/// Why the connection of a client ends that sends many times what it may.
const TOO_FAST: &str = "ten times the rate that is allowed";

/// The label of a client that sends a message to a server that takes none.
const READ_ONLY: &str = "read_only";

/// Why the connection of an account ends that a reload has removed.
const REMOVED: &str = "the account was removed";

/// The text for a client whose connection an operator ends.
const ENDED_BY_OPERATOR: &[u8] = b"this connection is ended by an operator";

/// How often a drain checks for its end.
const DRAIN_LOOK: Duration = Duration::from_millis(1);

/// Serves a connection that has just been accepted.
pub(super) async fn serve(worker: Rc<Worker>, stream: Stream) {
    let store = worker.store().await;
    let began = store.tick();
    let Some((stream, peer)) = introduce(&store, stream) else { return };
    let permit = match store.shared.admission.admit(peer.map(|peer| peer.ip())) {
        Ok(permit) => permit,
        Err(limit) => return note_refused(&store, None, peer, limit.label()),
    };
    let Some(arrival) = greet(&store, stream, peer, began).await else { return };
    drop(permit);
    let home = store.home_of(arrival.account);
    if home == store.worker() {
        join(store, arrival).await;
    } else {
        // A connection that fails while it moves has ended.
        let (name, peer) = (arrival.login.username, arrival.peer);
        let Ok(arrival) = arrival.pack().await else { return };
        if !store.shared.send(home, arrival) {
            note_refused(&store, Some(name), peer, "home_busy");
        }
    }
}

/// The address of the connection. Its socket gets the send buffer size of an order session.
fn introduce(store: &SessionStore, stream: Stream) -> Option<(Stream, Option<SocketAddr>)> {
    if store.shared.is_local {
        return Some((stream, None));
    }
    let socket = stream.into_descriptor().ok()?;
    let peer = admission::peer(&socket);
    // If the kernel refuses, its maximum is smaller, which is fine too.
    let _ = rustix::net::sockopt::set_socket_send_buffer_size(&socket, KERNEL_SEND_BYTES);
    Some((Stream::from_descriptor(socket).ok()?, peer))
}

/// The only packet of a connection that is refused.
async fn refuse(stream: Stream, reason: LoginReject) {
    let mut frame = Vec::new();
    reason.encode(&mut frame);
    say_last(&stream, &frame).await;
}

async fn say_last(stream: &Stream, frame: &[u8]) {
    if stream.send_slice(frame).await.is_ok() {
        linger(stream).await;
    }
}

/// Ends our direction and waits a while for the client's end: closing with unread bytes would send a reset, which may
/// overtake the last bytes.
async fn linger(stream: &Stream) {
    let mut deadline = ConnectionTimer::new();
    let until = time::now() + LINGER;
    if let Some(Ok(())) = deadline.until(until, stream.shutdown()).await {
        while let Some(Ok(Some(_))) = deadline.until(until, stream.recv()).await {}
    }
}

/// Connects a client with a valid password to its account, on the account's home, and serves it to its end.
pub(super) async fn join(store: Rc<SessionStore>, arrival: Arrival<Stream>) {
    let Arrival { socket: stream, peer, account, login, rest } = arrival;
    let slot = store.slot(account);
    let next = match place(&store, slot, &login, peer).await {
        Ok(next) => next,
        Err(label) => {
            note_refused(&store, Some(login.username), peer, label);
            return refuse(stream, LoginReject::SessionNotAvailable).await;
        }
    };
    let Some(application) = store.application() else { return };
    let now = store.tick();
    let next_sequence = match next {
        Next::Buffered(mark) => mark.sequence,
        Next::Journal(sequence) => sequence,
    };
    let mut frame = Vec::new();
    LoginAccepted { session: store.shared.session, next_sequence }.encode(&mut frame);
    let mut rules = ServerSession::new(now.as_nanos(), store.shared.config.timing);
    rules.accepted(now.as_nanos(), login.heartbeat_timeout_ms);
    let session = Session::new(stream, peer, rules, next);
    enter(&store, slot, &session, &frame, now);
    application.on_login(account);
    let mut connection = Connection {
        deframer: Deframer::new(store.shared.config.payload_bytes_max),
        deadline: ConnectionTimer::new(),
        rest,
        is_held_back: false,
        takes_all: true,
        account,
        store: Rc::clone(&store),
        application: Rc::clone(&application),
        session: Rc::clone(&session),
    };
    let mut ending = connection.run().await;
    drop(connection);
    match ending {
        Ending::Drained => ending = finish(&store, slot, &session).await,
        Ending::CutOff(CutOff::JournalFailed) => tell_end(&store, &session, JOURNAL_FAILED).await,
        Ending::CutOff(CutOff::Operator) => tell_end(&store, &session, ENDED_BY_OPERATOR).await,
        _ => {}
    }
    if let Ending::Broken(label) = ending {
        store.note_fault(account, label);
    }
    let is_told = tell_fault(&store, &session, ending);
    // If cancels are reported at once, the journal gets them account by account.
    while application.emits_on_disconnect() && store.is_congested() {
        store.room().await;
    }
    leave(&store, slot);
    note_ending(&store, account, peer, ending);
    application.on_disconnect(account);
    if is_told {
        linger(&session.stream).await;
    }
    Session::close(session, matches!(ending, Ending::HeartbeatTimeout | Ending::CutOff(CutOff::Slow)));
}

/// The client's position in the stream; otherwise the reason for a refusal.
async fn place(
    store: &SessionStore,
    slot: &Slot,
    login: &LoginRequest,
    peer: Option<SocketAddr>,
) -> Result<Next, &'static str> {
    if !login.session.is_blank() && !login.session.eq_ignore_case(&store.shared.session) {
        return Err("other_session");
    }
    vacate(store, slot, peer).await?;
    if !store.account(slot.account).has_login() {
        // It was removed after the check of the password.
        return Err("removed");
    }
    if store.draining.get() || store.is_failed() {
        return Err("closed");
    }
    let state = slot.state.borrow();
    let end = state.retransmit.end();
    match login.sequence {
        0 => Ok(Next::Buffered(end)),
        sequence if sequence > end.sequence => Err("sequence_too_high"),
        sequence => match state.retransmit.find(sequence) {
            Some(mark) => Ok(Next::Buffered(mark)),
            None if store.journal().is_some() && state.index.find(sequence).is_some() => {
                Ok(Next::Journal(sequence))
            }
            None => Err("sequence_gone"),
        },
    }
}

/// Waits until the account has no connection, if a second one may replace the first.
async fn vacate(store: &SessionStore, slot: &Slot, peer: Option<SocketAddr>) -> Result<(), &'static str> {
    let until = time::now() + Duration::from_nanos(store.shared.config.timing.login_ns);
    let mut deadline = ConnectionTimer::new();
    loop {
        let Some(session) = slot.state.borrow().session.clone() else { return Ok(()) };
        if !store.account(slot.account).takeover() {
            return Err("occupied");
        }
        if session.requested_end().is_none() {
            connection_events::tell_takeover(store, slot.account, session.peer, peer);
        }
        session.end(End::CutOff(CutOff::TakenOver));
        drop(session);
        let vacated = slot.vacated.until(|| slot.state.borrow().session.is_none());
        if deadline.until(until, vacated).await.is_none() {
            return Err("occupied");
        }
    }
}

/// Registers the account's connection.
fn enter(store: &SessionStore, slot: &Slot, session: &Rc<Session>, accepted: &[u8], now: Instant) {
    let cells = &store.shared.cells[slot.account.0 as usize];
    let counters = store.counters();
    counters.count_login("accepted");
    connection_events::tell_login(store, slot.account, session.peer);
    counters.sessions_open.add(1);
    store.sessions_open.set(store.sessions_open.get() + 1);
    cells.state.set(AccountCells::LIVE);
    // The queue is still empty: there is room.
    session.push(accepted, now);
    let state = &mut *slot.state.borrow_mut();
    state.session = Some(Rc::clone(session));
    let is_behind = match session.next() {
        Next::Buffered(mark) => {
            cells.sequence_sent.set(mark.sequence - 1);
            mark.sequence < state.durable.sequence
        }
        Next::Journal(sequence) => {
            cells.sequence_sent.set(sequence - 1);
            true
        }
    };
    if is_behind {
        store.fall_behind(slot, session);
    } else {
        session.catch_up();
    }
}

/// Removes the account's connection.
fn leave(store: &SessionStore, slot: &Slot) {
    slot.state.borrow_mut().session = None;
    let cells = &store.shared.cells[slot.account.0 as usize];
    cells.state.set(AccountCells::AWAY);
    cells.queued_bytes.set(0);
    store.counters().sessions_open.subtract(1);
    store.sessions_open.set(store.sessions_open.get() - 1);
    slot.vacated.notify_all();
    store.session_left.notify_all();
}

/// Counts and reports that a connection has ended.
fn note_ending(store: &SessionStore, account: AccountId, peer: Option<SocketAddr>, ending: Ending) {
    match ending {
        Ending::HeartbeatTimeout => store.counters().heartbeat_timeouts.add(1),
        Ending::CutOff(CutOff::Slow) => store.counters().slow_consumers.add(1),
        Ending::Broken(label) => store.counters().count_protocol_error(label),
        Ending::Gone | Ending::Drained | Ending::CutOff(_) => {}
    }
    store.note_ending(account, ending.as_last(), peer.map(|peer| peer.ip()));
    connection_events::tell_ending(store, account, peer, ending.words());
}

/// In a drain: sends everything that waits for the client, and the end of the session if it has ended.
async fn finish(store: &SessionStore, slot: &Slot, session: &Rc<Session>) -> Ending {
    let until = time::now() + store.shared.session_drain_limit;
    loop {
        if let Some(End::CutOff(reason)) = session.requested_end() {
            return Ending::CutOff(reason);
        }
        let has_everything = {
            let state = slot.state.borrow();
            session.is_live()
                && state.durable == state.retransmit.end()
                && session.next() == Next::Buffered(state.retransmit.end())
        };
        if store.settled.get() && has_everything {
            break;
        }
        if time::now() >= until {
            return Ending::CutOff(CutOff::Slow);
        }
        time::sleep(DRAIN_LOOK).await;
    }
    if !store.is_over.get() || session.push(&END_OF_SESSION_FRAME, store.tick()) {
        linger(&session.stream).await;
    }
    Ending::Drained
}

/// Says why the connection ends to a client that has received everything it may be sent. This acknowledges nothing.
async fn tell_end(store: &SessionStore, session: &Session, text: &[u8]) {
    let mut frame = Vec::new();
    encode_frame(DEBUG, text, &mut frame);
    if session.is_live() && session.push(&frame, store.tick()) {
        linger(&session.stream).await;
    }
}

/// Informs a client that broke the protocol or a limit of its mistake, unless other messages have to be sent first.
/// This acknowledges nothing.
fn tell_fault(store: &SessionStore, session: &Session, ending: Ending) -> bool {
    let text = match ending {
        Ending::Broken(label) => label,
        Ending::CutOff(CutOff::Flooding) => TOO_FAST,
        Ending::CutOff(CutOff::Removed) => REMOVED,
        _ => return false,
    };
    session.is_live() && session.push(&fault(text), store.tick())
}

/// The text about a mistake.
fn fault(label: &str) -> Vec<u8> {
    let mut frame = Vec::new();
    encode_frame(DEBUG, format!("this connection is ended: {label}").as_bytes(), &mut frame);
    frame
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// Its client closed it.
    Gone,
    /// Its client broke the protocol.
    Broken(&'static str),
    /// Its client was silent for too long.
    HeartbeatTimeout,
    CutOff(CutOff),
    /// The server drains.
    Drained,
}

impl Ending {
    /// For operators.
    fn as_last(self) -> LastEnding {
        match self {
            Self::Gone => LastEnding::Closed,
            Self::Broken(kind) => LastEnding::Broken(kind),
            Self::HeartbeatTimeout => LastEnding::Silent,
            Self::CutOff(CutOff::TakenOver) => LastEnding::TakenOver,
            Self::CutOff(CutOff::Slow) => LastEnding::Slow,
            Self::CutOff(CutOff::Flooding) => LastEnding::Flooding,
            Self::CutOff(CutOff::Removed) => LastEnding::Removed,
            Self::CutOff(CutOff::Operator) => LastEnding::Operator,
            Self::CutOff(CutOff::JournalFailed) => LastEnding::JournalFailed,
            Self::Drained => LastEnding::Drained,
        }
    }

    /// A label, and the same in words.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Gone => ("left", "the client has left"),
            Self::Broken(label) => (label, "the client broke the protocol"),
            Self::HeartbeatTimeout => ("silent", "the client was silent"),
            Self::Drained => ("drained", "the server drains"),
            Self::CutOff(CutOff::TakenOver) => ("taken_over", "another login has taken its place"),
            Self::CutOff(CutOff::Slow) => ("slow", "the client does not take its messages"),
            Self::CutOff(CutOff::Flooding) => ("flooding", "the client sent ten times its rate"),
            Self::CutOff(CutOff::Removed) => ("removed", "the account was removed from the configuration"),
            Self::CutOff(CutOff::Operator) => ("operator", "an operator has ended it"),
            Self::CutOff(CutOff::JournalFailed) => ("journal_failed", "the journal has failed"),
        }
    }
}

/// The result of processing received bytes.
enum Taken {
    All,
    /// This many bytes; the rest has to wait.
    Part(usize),
    End(Ending),
}

/// The receiving side of a connection that is logged in.
struct Connection {
    store: Rc<SessionStore>,
    application: Rc<dyn Application>,
    account: AccountId,
    session: Rc<Session>,
    deframer: Deframer,
    deadline: ConnectionTimer,
    /// Received bytes that have to wait, at most those of one receive.
    rest: Vec<u8>,
    /// Its client is not read at present.
    is_held_back: bool,
    /// It accepts all messages, not only those that need not wait for the disk.
    takes_all: bool,
}

impl Connection {
    async fn run(&mut self) -> Ending {
        loop {
            if let Err(ending) = self.allowed().await {
                return ending;
            }
            let taken = if self.rest.is_empty() {
                let session = Rc::clone(&self.session);
                match self.wait(session.stream.recv()).await {
                    Ok(Ok(Some(lease))) => self.take_lease(lease),
                    Ok(Ok(None)) if weir_engine::is_draining() => return Ending::Drained,
                    Ok(Ok(None) | Err(_)) => return Ending::Gone,
                    Err(ending) => return ending,
                }
            } else {
                self.take_rest()
            };
            if let Some(ending) = taken {
                return ending;
            }
        }
    }

    /// Waits until the application and the journal can accept more. It does not wait for a slow disk if the next
    /// message may be a cancel.
    async fn allowed(&mut self) -> Result<(), Ending> {
        self.takes_all = true;
        if !self.store.is_failed() && self.is_allowed() {
            return Ok(());
        }
        if self.takes_at_once(&self.rest) {
            self.takes_all = false;
            return Ok(());
        }
        self.is_held_back = true;
        let outcome = self.held_back().await;
        self.is_held_back = false;
        self.excuse(self.store.tick());
        outcome
    }

    /// The client was not read, so its silence is not its fault: its timeout starts now.
    fn excuse(&self, now: Instant) {
        // A heartbeat is always valid.
        let _ = self.session.rules.borrow_mut().on_packet(now.as_nanos(), ClientPacket::Heartbeat);
    }

    async fn held_back(&mut self) -> Result<(), Ending> {
        loop {
            if self.store.is_failed() {
                return Err(Ending::CutOff(CutOff::JournalFailed));
            }
            if self.store.is_congested() {
                self.wait(self.store.room()).await?;
            } else if self.application.is_ready(self.account) {
                return Ok(());
            } else {
                self.wait(self.application.ready(self.account)).await?;
            }
            // A task that was woken first may have taken the room.
            if !self.is_allowed() {
                self.wait(time::yield_now()).await?;
            }
        }
    }

    #[inline]
    fn is_allowed(&self) -> bool {
        !self.store.is_congested() && self.application.is_ready(self.account)
    }

    /// Whether the first message is accepted regardless of how much waits for the disk. This has a maximum too.
    fn takes_at_once(&self, rest: &[u8]) -> bool {
        waits_for_no_disk(rest) && self.store.takes_cancels() && self.application.is_ready(self.account)
    }

    /// Waits for a future; meanwhile heartbeats continue, and the end of the connection is noticed.
    async fn wait<F: Future>(&mut self, future: F) -> Result<F::Output, Ending> {
        let mut future = pin!(future);
        loop {
            let (session, deadline) = (&self.session, &mut self.deadline);
            let event = poll_fn(|context| {
                if let Some(end) = session.requested_end() {
                    return Poll::Ready(Event::End(end));
                }
                if let Poll::Ready(output) = future.as_mut().poll(context) {
                    return Poll::Ready(Event::Output(output));
                }
                session.wake_at_end(context.waker());
                deadline.poll(session.timer(), context).map(|()| Event::Time)
            })
            .await;
            match event {
                Event::Output(output) => return Ok(output),
                Event::End(End::Drained) => return Err(Ending::Drained),
                Event::End(End::CutOff(reason)) => return Err(Ending::CutOff(reason)),
                Event::Time => self.on_time()?,
            }
        }
    }

    /// The timer has fired: about once a second.
    fn on_time(&mut self) -> Result<(), Ending> {
        let now = self.store.tick();
        if self.store.is_failed() {
            return Err(Ending::CutOff(CutOff::JournalFailed));
        }
        // Another task waits for the client to take what is sent, and notices if it does not.
        if self.session.is_live() && self.session.has_unflushed() && !self.session.look_flushed() {
            self.store.fall_behind(self.store.slot(self.account), &self.session);
        }
        let due = self.session.rules.borrow_mut().on_time(now.as_nanos());
        match due {
            Due::Nothing => {}
            // If messages wait for the client, it gets those instead of a heartbeat.
            Due::Heartbeat if self.session.is_waiting() => {}
            Due::Heartbeat => _ = self.session.push(&SERVER_HEARTBEAT_FRAME, now),
            Due::Close(_) if self.is_held_back => self.excuse(now),
            Due::Close(_) => return Err(Ending::HeartbeatTimeout),
        }
        Ok(())
    }

    fn take_lease(&mut self, lease: Lease) -> Option<Ending> {
        let now = self.store.tick();
        match self.take(&lease, now) {
            Taken::All => None,
            Taken::Part(taken) => {
                // The lease is returned while this waits.
                self.rest.extend_from_slice(&lease[taken..]);
                None
            }
            Taken::End(ending) => Some(ending),
        }
    }

    fn take_rest(&mut self) -> Option<Ending> {
        let now = self.store.tick();
        let mut rest = std::mem::take(&mut self.rest);
        match self.take(&rest, now) {
            Taken::All => None,
            Taken::Part(taken) => {
                rest.drain(..taken);
                self.rest = rest;
                None
            }
            Taken::End(ending) => Some(ending),
        }
    }

    /// Processes received bytes, without waiting.
    fn take(&mut self, bytes: &[u8], now: Instant) -> Taken {
        let mut rest = bytes;
        // The rest of a message that has arrived in part is not checked: it is known to be a message.
        if !self.takes_all && self.deframer.is_empty() && !self.is_allowed() && !self.takes_at_once(rest) {
            return Taken::Part(0);
        }
        loop {
            let input = match self.deframer.next(&mut rest) {
                Ok(Some(frame)) => ClientPacket::parse(frame)
                    .and_then(|packet| self.session.rules.borrow_mut().on_packet(now.as_nanos(), packet)),
                Ok(None) => return Taken::All,
                Err(error) => Err(error),
            };
            match input {
                Ok(ServerInput::Message(raw)) => {
                    if let Err(label) = message(&self.store, &*self.application, self.account, raw, now) {
                        return Taken::End(Ending::Broken(label));
                    }
                }
                Ok(ServerInput::Nothing) => continue,
                Ok(ServerInput::Logout) => return Taken::End(Ending::Gone),
                // The protocol's rules refuse a second login.
                Ok(ServerInput::Login(_)) => {
                    return Taken::End(Ending::Broken(ProtocolError::SecondLogin.kind()));
                }
                Err(error) => return Taken::End(Ending::Broken(error.kind())),
            }
            if !rest.is_empty() && !self.is_allowed() && !self.takes_at_once(rest) {
                return Taken::Part(bytes.len() - rest.len());
            }
        }
    }
}

/// Whether the first packet need not wait for the disk: it is a client's cancel, or not a message. A prefix that is
/// too short to classify is accepted until there is more of it.
fn waits_for_no_disk(rest: &[u8]) -> bool {
    match rest {
        [_, _, UNSEQUENCED, kind, ..] => *kind == Cancel::KIND,
        _ => true,
    }
}

enum Event<T> {
    Output(T),
    End(End),
    Time,
}

/// Hands one message to the application, unless its number shows a retransmission. An error: it is not a valid
/// message.
#[inline]
fn message(
    store: &SessionStore,
    application: &dyn Application,
    account: AccountId,
    raw: &[u8],
    now: Instant,
) -> Result<(), &'static str> {
    let counters = store.counters();
    counters.received.add(1);
    if store.shared.config.is_read_only {
        return Err(READ_ONLY);
    }
    let message = match ClientMessage::decode(raw) {
        Ok(message) => message,
        Err(error) if error.kind == DecodeErrorKind::Unsupported => {
            store.shared.protocol_errors.note(account, error.label());
            refuse_unsupported(store, application, account, raw, now);
            return Ok(());
        }
        Err(error) => return Err(error.label()),
    };
    let (number, client_order_id) = match message.inbound() {
        Inbound::Enter(enter, _) => (enter.user_ref_num, enter.client_order_id),
        Inbound::Replace(replace, _) => (replace.user_ref_num, replace.client_order_id),
        Inbound::Cancel(_) | Inbound::Modify(_) => {
            counters.orders.add(1);
            application.on_message(account, &message, now);
            return Ok(());
        }
        Inbound::AccountQuery => {
            // A client that does not know its numbers cannot do anything else.
            let _ = application.on_other(account, now);
            store.answer_query(store.slot(account));
            return Ok(());
        }
    };
    match store.judge(store.slot(account), number) {
        NumberVerdict::New => {
            counters.orders.add(1);
            application.on_message(account, &message, now);
        }
        NumberVerdict::Retransmission if store.take_lost(account, number) => {
            let reason = application.on_other(account, now).err();
            let reason = reason.unwrap_or(reject_reason::DESTINATION_CLOSED);
            store.reject(account, number, reason, client_order_id);
        }
        NumberVerdict::Retransmission => store.ignore(account, number),
        NumberVerdict::Exhausted => {
            store.reject(account, number, reject_reason::PROCESSING_ERROR, client_order_id);
        }
    }
    Ok(())
}

/// A protocol message that is not supported here: it is refused like an order, under its number.
#[cold]
fn refuse_unsupported(
    store: &SessionStore,
    application: &dyn Application,
    account: AccountId,
    raw: &[u8],
    now: Instant,
) {
    let number = raw[1..].first_chunk().map_or(0, |number| u32::from_be_bytes(*number));
    let verdict = store.judge(store.slot(account), number);
    // A number lost in a restart is refused, as before.
    if verdict == NumberVerdict::Retransmission && !store.take_lost(account, number) {
        return store.ignore(account, number);
    }
    let reason = application.on_other(account, now).err().unwrap_or(reject_reason::OTHER);
    store.reject(account, number, reason, ClientOrderId([b' '; 14]));
}

/// The next time for a connection's timer, from the time when its rules must be called.
pub(super) fn on_grid(deadline_ns: u64) -> Instant {
    Instant::from_nanos(deadline_ns.checked_next_multiple_of(TIMER_GRID_NS).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use weir_proto::soup::{CLIENT_HEARTBEAT_FRAME, LOGOUT_FRAME};

    use super::*;

    #[test]
    fn cancels_and_what_is_no_message_wait_for_no_disk() {
        let message = |payload: &[u8]| {
            let mut frame = Vec::new();
            encode_frame(UNSEQUENCED, payload, &mut frame);
            frame
        };
        for kind in [b'O', b'U', b'M', b'Q', b'C'] {
            assert!(!waits_for_no_disk(&message(&[kind, 1, 2, 3])), "{}", char::from(kind));
        }
        assert!(waits_for_no_disk(&message(&[b'X', 0, 0, 0, 1, 0, 0, 0, 0])));
        assert!(waits_for_no_disk(&CLIENT_HEARTBEAT_FRAME) && waits_for_no_disk(&LOGOUT_FRAME));
        // A prefix that is too short to classify.
        let order = message(b"O");
        (0..=3).for_each(|bytes| assert!(waits_for_no_disk(&order[..bytes]), "{bytes}"));
        assert!(!waits_for_no_disk(&order));
    }
}
