//! One connection, from its arrival to its end: the login where it arrived, everything else on the home of its account.

use std::{
    future::{Future, poll_fn},
    net::IpAddr,
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
    Application, CutOff,
    account::Slot,
    admission,
    counters::AccountCells,
    password_verifier,
    session::{End, Next, Session},
    store::SessionStore,
    worker::{Arrival, Worker},
};
use crate::connection_timer::ConnectionTimer;

/// How long after a login its refusal leaves, whatever the reason and however long finding it took.
const REFUSAL_DELAY: Duration = Duration::from_millis(250);

/// How long a client that was told that it is over may take to see that.
const LINGER: Duration = Duration::from_millis(500);

/// Timers of connections fire at multiples of this, so that those of idle connections fire together. It makes
/// heartbeats late by at most as much, which the protocol allows.
const TIMER_GRID_NS: u64 = 500_000_000;

/// Send buffer asked of the kernel; it takes twice as much. A fixed one keeps what waits in the kernel small, and makes
/// it say often that a slow client has taken something.
const KERNEL_SEND_BYTES: usize = 64 << 10;

/// What clients are told when nothing can be acknowledged any more, in a debug packet.
const JOURNAL_FAILED: &[u8] = b"the journal has failed: orders are neither taken nor answered any more";

/// How often the end of a drain is looked for.
const DRAIN_LOOK: Duration = Duration::from_millis(1);

/// Serves a connection that has just been accepted.
pub(super) async fn serve(worker: Rc<Worker>, stream: Stream) {
    let store = worker.store().await;
    let began = store.tick();
    let Some((stream, address)) = introduce(&store, stream) else { return };
    let permit = match store.shared.admission.admit(address) {
        Ok(permit) => permit,
        Err(limit) => return store.counters().count_login(limit.label()),
    };
    let Some(arrival) = greet(&store, stream, address, began).await else { return };
    drop(permit);
    let home = store.home_of(arrival.account);
    if home == store.worker() {
        join(store, arrival).await;
    } else {
        // A connection that fails while it moves is one that has ended.
        let Ok(arrival) = arrival.pack().await else { return };
        if !store.shared.send(home, arrival) {
            store.counters().count_login("home_busy");
        }
    }
}

/// Where the connection comes from. Its socket gets the send buffer of an order session.
fn introduce(store: &SessionStore, stream: Stream) -> Option<(Stream, Option<IpAddr>)> {
    if store.shared.is_local {
        return Some((stream, None));
    }
    let socket = stream.into_descriptor().ok()?;
    let address = admission::peer(&socket);
    // A kernel that refuses has a smaller maximum, which is as good.
    let _ = rustix::net::sockopt::set_socket_send_buffer_size(&socket, KERNEL_SEND_BYTES);
    Some((Stream::from_descriptor(socket).ok()?, address))
}

/// Waits for the login and verifies it. `None`: the connection is over.
async fn greet(
    store: &SessionStore,
    stream: Stream,
    address: Option<IpAddr>,
    began: Instant,
) -> Option<Arrival<Stream>> {
    let config = &store.shared.config;
    let mut rules = ServerSession::new(began.as_nanos(), config.timing);
    let mut deframer = Deframer::new(config.payload_bytes_max);
    let until = Instant::from_nanos(rules.deadline_ns());
    let mut deadline = ConnectionTimer::new();
    let (login, rest) = loop {
        let lease = match deadline.until(until, stream.recv()).await {
            Some(Ok(Some(lease))) => lease,
            Some(Ok(None) | Err(_)) => return None,
            None => {
                store.counters().count_login("no_login");
                return None;
            }
        };
        match first_login(&mut deframer, &mut rules, &lease, store.tick()) {
            Ok(Some((login, consumed))) => break (login, lease[consumed..].to_vec()),
            Ok(None) => {}
            Err(error) => {
                store.counters().count_protocol_error(error.kind());
                deadline.until(until, say_last(&stream, &fault(error.kind()))).await;
                return None;
            }
        }
    };
    let came = store.now();
    let account = store.account_named(&login.username);
    // A name that nobody has takes as long as one that somebody has.
    let hash = config.accounts.get(account.map_or(0, |account| account.0 as usize))?.password_hash.clone();
    let verdict = match &store.shared.verifier {
        Some(verifier) => deadline.until(until, verifier.verify(address, hash, login.password)).await,
        None => Some(Ok(password_verifier::verify(&hash, &login.password))),
    };
    let label = match (verdict, account) {
        (Some(Ok(true)), Some(account)) => return Some(Arrival { socket: stream, account, login, rest }),
        (Some(Ok(_)), _) => {
            store.counters().count_login("not_authorised");
            time::sleep_until(came + REFUSAL_DELAY).await;
            refuse(stream, LoginReject::NotAuthorised).await;
            return None;
        }
        (Some(Err(password_verifier::Busy)), _) => "verifier_busy",
        (None, _) => "verification_late",
    };
    store.counters().count_login(label);
    None
}

/// Looks for a login at the beginning of what a client sent, and says where it ends.
fn first_login(
    deframer: &mut Deframer,
    rules: &mut ServerSession,
    bytes: &[u8],
    now: Instant,
) -> Result<Option<(LoginRequest, usize)>, ProtocolError> {
    let mut rest = bytes;
    while let Some(frame) = deframer.next(&mut rest)? {
        match rules.on_packet(now.as_nanos(), ClientPacket::parse(frame)?)? {
            ServerInput::Login(login) => return Ok(Some((login, bytes.len() - rest.len()))),
            ServerInput::Message(_) | ServerInput::Logout | ServerInput::Nothing => {}
        }
    }
    Ok(None)
}

/// The only packet of a connection that is not let in.
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

/// Ends our direction and waits a while for the client's end: closing with unread bytes would be a reset, which may
/// overtake what was sent.
async fn linger(stream: &Stream) {
    let mut deadline = ConnectionTimer::new();
    let until = time::now() + LINGER;
    if let Some(Ok(())) = deadline.until(until, stream.shutdown()).await {
        while let Some(Ok(Some(_))) = deadline.until(until, stream.recv()).await {}
    }
}

/// Lets a client whose password was right into its account, on the account's home, and serves it to its end.
pub(super) async fn join(store: Rc<SessionStore>, arrival: Arrival<Stream>) {
    let Arrival { socket: stream, account, login, rest } = arrival;
    let slot = store.slot(account);
    let next = match place(&store, slot, &login).await {
        Ok(next) => next,
        Err(label) => {
            store.counters().count_login(label);
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
    let session = Session::new(stream, rules, next);
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
        Ending::CutOff(CutOff::JournalFailed) => tell_failure(&store, &session).await,
        _ => {}
    }
    let is_told = match ending {
        Ending::Broken(label) => {
            store.note_fault(account, label);
            tell_fault(&store, &session, label)
        }
        _ => false,
    };
    // Where what is cancelled now is told at once, the journal gets that account by account.
    while application.emits_on_disconnect() && store.is_congested() {
        store.room().await;
    }
    leave(&store, slot);
    count_ending(&store, ending);
    application.on_disconnect(account);
    if is_told {
        linger(&session.stream).await;
    }
    Session::close(session, matches!(ending, Ending::HeartbeatTimeout | Ending::CutOff(CutOff::Slow)));
}

/// Where in its stream the client goes on; otherwise why it cannot.
async fn place(store: &SessionStore, slot: &Slot, login: &LoginRequest) -> Result<Next, &'static str> {
    if !login.session.is_blank() && !login.session.eq_ignore_case(&store.shared.session) {
        return Err("other_session");
    }
    vacate(store, slot).await?;
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

/// Waits until the account has no connection, where a second one may take the place of the first.
async fn vacate(store: &SessionStore, slot: &Slot) -> Result<(), &'static str> {
    let until = time::now() + Duration::from_nanos(store.shared.config.timing.login_ns);
    let mut deadline = ConnectionTimer::new();
    loop {
        let Some(session) = slot.state.borrow().session.clone() else { return Ok(()) };
        if !store.account(slot.account).takeover {
            return Err("occupied");
        }
        session.end(End::CutOff(CutOff::TakenOver));
        drop(session);
        let vacated = slot.vacated.until(|| slot.state.borrow().session.is_none());
        if deadline.until(until, vacated).await.is_none() {
            return Err("occupied");
        }
    }
}

/// The account has a connection from now on.
fn enter(store: &SessionStore, slot: &Slot, session: &Rc<Session>, accepted: &[u8], now: Instant) {
    let cells = &store.shared.cells[slot.account.0 as usize];
    let counters = store.counters();
    counters.count_login("accepted");
    counters.sessions_open.add(1);
    store.sessions_open.set(store.sessions_open.get() + 1);
    cells.state.set(AccountCells::LIVE);
    // Nothing is queued yet: there is room.
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

/// The account has no connection any more.
fn leave(store: &SessionStore, slot: &Slot) {
    slot.state.borrow_mut().session = None;
    let cells = &store.shared.cells[slot.account.0 as usize];
    cells.state.set(AccountCells::AWAY);
    cells.queued_bytes.set(0);
    store.counters().sessions_open.subtract(1);
    store.sessions_open.set(store.sessions_open.get() - 1);
    slot.vacated.notify();
    store.session_left.notify();
}

fn count_ending(store: &SessionStore, ending: Ending) {
    match ending {
        Ending::HeartbeatTimeout => store.counters().heartbeat_timeouts.add(1),
        Ending::CutOff(CutOff::Slow) => store.counters().slow_consumers.add(1),
        Ending::Broken(label) => store.counters().count_protocol_error(label),
        Ending::Gone | Ending::Drained | Ending::CutOff(_) => {}
    }
}

/// In a drain: sends what there is for the client, and that the session is over if it is.
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

/// The journal has failed: says so to a client that has everything it may be sent. That acknowledges nothing.
async fn tell_failure(store: &SessionStore, session: &Session) {
    let mut frame = Vec::new();
    encode_frame(DEBUG, JOURNAL_FAILED, &mut frame);
    if session.is_live() && session.push(&frame, store.tick()) {
        linger(&session.stream).await;
    }
}

/// Says to a client that broke the protocol how it did, unless it has to hear other things first. That acknowledges
/// nothing.
fn tell_fault(store: &SessionStore, session: &Session, label: &str) -> bool {
    session.is_live() && session.push(&fault(label), store.tick())
}

/// Says how the protocol was broken.
fn fault(label: &str) -> Vec<u8> {
    let mut frame = Vec::new();
    encode_frame(DEBUG, format!("this connection is ended: {label}").as_bytes(), &mut frame);
    frame
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// By its client.
    Gone,
    /// Its client broke the protocol.
    Broken(&'static str),
    /// Its client said nothing for too long.
    HeartbeatTimeout,
    CutOff(CutOff),
    /// The server drains.
    Drained,
}

/// What became of bytes that were received.
enum Taken {
    All,
    /// So many; the rest has to wait.
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
    /// What was received and has to wait, at most one receive's.
    rest: Vec<u8>,
    /// Nothing is read of this client for now.
    is_held_back: bool,
    /// Not only what is to wait for no disk.
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

    /// Waits until the application and the journal can take more. A disk that takes its time is not waited for where
    /// what comes next may be a cancel.
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

    /// Nothing was read, so silence says nothing of the client: it counts from now on.
    fn excuse(&self, now: Instant) {
        // A heartbeat is never wrong.
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
            // Whoever is woken first may have taken the room.
            if !self.is_allowed() {
                self.wait(time::yield_now()).await?;
            }
        }
    }

    #[inline]
    fn is_allowed(&self) -> bool {
        !self.store.is_congested() && self.application.is_ready(self.account)
    }

    /// Whether what begins here is taken whatever waits for the disk. There is a maximum for that too.
    fn takes_at_once(&self, rest: &[u8]) -> bool {
        waits_for_no_disk(rest) && self.store.takes_cancels() && self.application.is_ready(self.account)
    }

    /// Waits for something; heartbeats go on, and the end of the connection is seen.
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
        // Whether it takes what is sent is seen by a task that waits for that.
        if self.session.is_live() && self.session.has_unflushed() && !self.session.look_flushed() {
            self.store.fall_behind(self.store.slot(self.account), &self.session);
        }
        let due = self.session.rules.borrow_mut().on_time(now.as_nanos());
        match due {
            Due::Nothing => {}
            // One for whom something waits is no idle one: it gets that instead.
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
                // The lease goes back while this waits.
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

    /// Handles what was received, without waiting.
    fn take(&mut self, bytes: &[u8], now: Instant) -> Taken {
        let mut rest = bytes;
        // Of a message that has come in part before nobody asks what it is: it is one.
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
                // The rules refuse a second one.
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

/// Whether what begins here is to wait for no disk: a client's cancel, and what is no message. So little that nobody
/// can know is taken in until there is more of it.
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

/// Hands one message to the application, unless its number says that it came before. An error: it is no message.
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
    let message = match Inbound::decode(raw) {
        Ok(message) => message,
        Err(error) if error.kind == DecodeErrorKind::Unsupported => {
            store.shared.protocol_errors.note(account, error.label());
            refuse_unsupported(store, application, account, raw, now);
            return Ok(());
        }
        Err(error) => return Err(error.label()),
    };
    let (number, client_order_id) = match &message {
        Inbound::Enter(enter, _) => (enter.user_ref_num, enter.client_order_id),
        Inbound::Replace(replace, _) => (replace.user_ref_num, replace.client_order_id),
        Inbound::Cancel(_) | Inbound::Modify(_) => {
            counters.orders.add(1);
            application.on_message(account, message, raw, now);
            return Ok(());
        }
        Inbound::AccountQuery => {
            // Who does not know its numbers can do nothing else.
            let _ = application.on_other(account, now);
            store.answer_query(store.slot(account));
            return Ok(());
        }
    };
    match store.judge(store.slot(account), number) {
        NumberVerdict::New => {
            counters.orders.add(1);
            application.on_message(account, message, raw, now);
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

/// A message of the protocol that nothing here does: it is refused like an order, under the number it brings.
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
    // What a restart has lost is refused as it was before.
    if verdict == NumberVerdict::Retransmission && !store.take_lost(account, number) {
        return store.ignore(account, number);
    }
    let reason = application.on_other(account, now).err().unwrap_or(reject_reason::OTHER);
    store.reject(account, number, reason, ClientOrderId([b' '; 14]));
}

/// The next time a connection's timer has to fire, given when its rules want to be asked.
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
        // Of so little nobody knows what it will be.
        let order = message(b"O");
        (0..=3).for_each(|bytes| assert!(waits_for_no_disk(&order[..bytes]), "{bytes}"));
        assert!(!waits_for_no_disk(&order));
    }
}
