//! One worker's session with one exchange, as a value: what is known of it, what waits to be sent, and what follows
//! from each event. No socket, no clock, no task: times are arguments, and [`Effects`] say what has to be done.
//! [`Upstream`](super::upstream::Upstream) connects, moves bytes and executes the effects.
//!
//! # States
//!
//! ```text
//!             connect                   login accepted                the exchange names
//!             (the login leaves)        (the query leaves)            its next number
//!     Down ───────────────► LoggingIn ───────────────► Asking ───────────────► Up
//!      ▲                        │                         │                     │
//!      └────────────────────────┴─────────────────────────┴─────────────────────┘
//!                    lost: the exchange, the line, a bound, or a question to ask first
//! ```
//!
//! - **Down.** Clients' messages are refused. Orders and cancels that were sent before are kept.
//! - **LoggingIn.** [`joining`] decides what is requested, and whether the accepted session is the known one, the known
//!   one with a gap, or another one. In the last case the orders of the known one expire. Some logins only ask a
//!   question; they end the connection, and the next one uses the answer.
//! - **Asking.** Answers to earlier orders come in. Nothing is sent until the exchange has answered the account query:
//!   its next number shows which numbers it has handled.
//! - **Up.** Unanswered messages leave again, with the same numbers, and then clients' messages are accepted.
//!
//! # The way of a client's message
//!
//! [`accept`](UpstreamSession::accept) gives an order its number, and a message about an order that order's number. The
//! owner journals it and says so ([`journaled`](UpstreamSession::journaled)). Its bytes collect in [`Waiting`]. The
//! owner takes all of them as a [`Batch`], waits until the journal contains the batch, and gives it to the connection
//! in pieces ([`next_piece`](UpstreamSession::next_piece)). Between two pieces orders that have become too old, or are
//! to be cancelled, are removed. An answer finds its order by number ([`OutstandingOrders`]), gets the client's numbers
//! back, and leaves as [`Effect::Deliver`].
//!
//! Logins, queries, heartbeats and the gateway's own cancels are urgent: they collect apart and wait for no journal.
//! A client's cancel is sent in order, and a second time ahead of it when the journal fails or is slow: a cancel that
//! is sent twice does no harm.
//!
//! # Orders that end here
//!
//! An order that no connection was given (above `handed`) ends at once when it is late or cancelled. One that only an
//! earlier connection was given is set aside: the exchange may have it. It ends when everything that the exchange had
//! to say has come (`stale`), and is cancelled in case the exchange has it all the same. Orders of a session that
//! another one follows expire together. Each end is reported once: [`Effect::Expired`].
//!
//! # Bounds
//!
//! Unanswered and open orders: [`OutstandingLimits`](super::outstanding::OutstandingLimits). Waiting bytes:
//! [`WAITING_BYTES_MAX`], and above it one cancel of each open order. Cancels of operators: twice the open orders.

mod cancels;
mod effects;
mod endings;
mod joining;
mod outgoing;
#[cfg(test)]
mod tests;

use foldhash::HashMap;
use weir_proto::{
    ouch::{ACCOUNT_QUERY, Outbound, codes::cancel_reason},
    soup::{
        CLIENT_HEARTBEAT_FRAME, ClientInput, ClientSession, CloseReason, Due, Frame, LoginReject,
        LoginRequest, Name, ProtocolError, ServerPacket, Timing, UNSEQUENCED, encode_frame,
    },
};
use weir_trading::AccountId;

use super::{
    config::WORKERS_MAX,
    outstanding::{OutstandingOrders, traded_order},
    worker_message::{MESSAGE_BYTES_MAX, home_record, pack_sequence, sent_key},
};
use crate::journal::Lsn;

pub(super) use cancels::Cancelling;
use cancels::OwnCancels;
pub(super) use effects::{Delivery, Effect, Effects, Expired, Passed, Why};
use joining::{Doubtful, Joining, LoginOutcome, QueryAnswer};
use outgoing::Waiting;
pub(super) use outgoing::{Batch, Numbered, Piece};

/// How long an exchange may be silent before it answers the account query.
const QUERY_LIMIT_NS: u64 = 5_000_000_000;
/// Bytes of clients' messages that may wait to be sent. Above it messages are refused, except one cancel of each
/// order.
const WAITING_BYTES_MAX: usize = 256 << 10;

/// How the worker logs in. It contains a password and must not be printed.
#[derive(Clone, Copy)]
pub(super) struct Credentials {
    pub(super) username: Name<6>,
    pub(super) password: Name<10>,
    pub(super) timing: Timing,
}

/// What earlier starts and the journal know of a session.
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

/// What a step may use of the worker around it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) now_ns: u64,
    /// Whether the worker takes more answers.
    pub(super) has_room: bool,
    /// The journal contains the records up to this one; none: it has failed.
    pub(super) kept: Option<Lsn>,
}

/// Why the session ends its connection.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum End {
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
    #[error("the exchange did not answer the account query within {} s", QUERY_LIMIT_NS / 1_000_000_000)]
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

impl End {
    /// Whether the connection was made to ask how far the exchange is, and the next login follows at once. An exchange
    /// that noticed its end late would refuse that login because somebody is logged in, as it refuses a request for
    /// messages that it does not have: so the gateway logs out.
    pub(super) fn is_of_question(&self) -> bool {
        matches!(self, Self::Withheld | Self::Proven | Self::Measured | Self::Doubtful)
    }
}

/// One worker's session with one exchange.
pub(super) struct UpstreamSession {
    /// Its key in journals.
    key: u32,
    /// Whether a journal names it: then its epochs have to be distinct.
    is_journaled: bool,
    known: Known,
    outstanding: OutstandingOrders,
    cancels: OwnCancels,
    /// Waiting messages of clients.
    waiting: Waiting,
    /// Messages that do not wait for the journal.
    urgent: Waiting,
    /// Orders of the exchange's session up to this number were given to a connection. Those above it are in
    /// `waiting`, or on their way from it.
    handed: u32,
    /// The last record of a client's message in it.
    lsn: Lsn,
    /// A reload changes it, or asks whether it may: no order is taken.
    is_held: bool,
    /// Counts the connections that were lost, so that a batch of an earlier one is not given to the next.
    generation: u64,
    connection: Option<Connection>,
}

/// What is known of the exchange's session.
struct Known {
    name: Option<Name<10>>,
    /// Counts the sessions that the exchange has begun.
    epoch: u16,
    /// The next message.
    next: u64,
    joining: Joining,
    /// From the session of the previous start.
    delivered: HashMap<AccountId, u64>,
    /// The last message that `delivered` applies to; 0 once the exchange has begun another session.
    replay_until: u64,
    /// Workers with clients that the session has answers for, as recorded in the journal in this start.
    homes: [u64; WORKERS_MAX / 64],
}

impl Known {
    fn of(resume: Resume) -> Self {
        let Resume { session: name, epoch, next, heard, delivered } = resume;
        let joining = Joining::after(next, heard);
        Self {
            name,
            epoch,
            next,
            joining: if name.is_some() { joining.with_older_answers() } else { joining },
            replay_until: delivered.values().copied().max().unwrap_or(0),
            delivered,
            homes: Default::default(),
        }
    }
}

/// The state of a connection.
struct Connection {
    rules: ClientSession,
    timing: Timing,
    phase: Phase,
    /// Orders up to this number were given to this connection: orders given to an earlier one may be in `waiting`
    /// again.
    handed_here: u32,
    /// Orders were not resent, because they were too old or are to be cancelled: see `refuse_stale`. Or it is unknown
    /// whether all older answers have come. An answer to this number, or a later one, shows that they have.
    stale: Option<u32>,
    /// Waiting orders up to this number may have ended, and are not sent then.
    taken_back: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    LoggingIn,
    /// Until then the exchange has to answer the account query, or to send anything else.
    Asking {
        answer_due_ns: u64,
    },
    Up,
    /// The worker has left it.
    Left {
        was_up: bool,
    },
}

impl UpstreamSession {
    pub(super) fn new(key: u32, outstanding: OutstandingOrders, resume: Resume, is_journaled: bool) -> Self {
        Self {
            key,
            is_journaled,
            known: Known::of(resume),
            // Journaled orders may have been sent.
            handed: outstanding.last_number(),
            outstanding,
            cancels: OwnCancels::default(),
            waiting: Waiting::default(),
            urgent: Waiting::default(),
            lsn: 0,
            is_held: false,
            generation: 0,
            connection: None,
        }
    }

    /// Its orders.
    pub(super) fn outstanding(&self) -> &OutstandingOrders {
        &self.outstanding
    }

    /// Whether a connection was given the order with this number.
    pub(super) fn was_given(&self, number: u32) -> bool {
        number <= self.handed
    }

    /// Whether it accepts orders.
    pub(super) fn is_up(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.phase == Phase::Up)
    }

    /// Whether no message waits to be sent or answered.
    pub(super) fn is_idle(&self) -> bool {
        self.outstanding.unanswered() == 0 && self.waiting.is_idle() && self.urgent.is_idle()
    }

    /// While this is on, orders and cancels are refused as if the exchange were away.
    pub(super) fn hold(&mut self, is_held: bool) {
        self.is_held = is_held;
    }

    /// The connections that were lost.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// The key of the session in an order's record.
    #[inline]
    pub(super) fn sent_key(&self) -> u32 {
        #[cfg(test)]
        if super::simulated_days::is_planted(super::simulated_days::Plant::VenueNotRecorded) {
            let (_, venue) = super::worker_message::of_session_key(self.key);
            return sent_key(self.key - venue as u32, self.known.epoch);
        }
        sent_key(self.key, self.known.epoch)
    }

    /// The journal record before the first answer for clients of a worker: if that worker's journal loses this answer
    /// and every other one, the record shows where they begin. `None`: the journal has it already.
    #[inline]
    pub(super) fn note_home(&mut self, home: u16) -> Option<[u8; 12]> {
        let (place, bit) = (usize::from(home) / 64, 1_u64 << (home % 64));
        let known = &mut self.known;
        if known.name.is_none() || known.homes[place] & bit != 0 {
            return None;
        }
        known.homes[place] |= bit;
        Some(home_record(known.epoch, home, known.next.saturating_sub(1)))
    }

    /// A connection has been made: the login leaves.
    pub(super) fn connect(&mut self, now_ns: u64, credentials: &Credentials) {
        let Credentials { username, password, timing } = *credentials;
        let (outstanding, cancels) = (&self.outstanding, &self.cancels);
        // If orders are refused unless the exchange shows an answer to them, it matters when it has sent everything.
        let refuses = outstanding.refuses(now_ns, |number, account| cancels.refusal_of(number, account));
        self.known.joining.begin(refuses);
        let (session, sequence) = self.known.joining.wanted(self.known.name, self.known.next);
        let login = LoginRequest { username, password, session, sequence, heartbeat_timeout_ms: None };
        self.connection = Some(Connection {
            rules: ClientSession::new(now_ns, timing, &login),
            timing,
            phase: Phase::LoggingIn,
            handed_here: 0,
            stale: None,
            taken_back: 0,
        });
        login.encode(&mut self.urgent.bytes);
    }

    /// The worker leaves the connection.
    pub(super) fn leave(&mut self) {
        let was_up = self.is_up();
        if let Some(connection) = &mut self.connection {
            connection.phase = Phase::Left { was_up };
        }
    }

    /// The connection is gone, or could not be made. Unanswered messages are resent on the next one. Returns whether
    /// orders were accepted on it.
    pub(super) fn lost(&mut self, end: Option<&End>) -> bool {
        let was_up = match self.connection.take().map(|connection| connection.phase) {
            Some(Phase::Left { was_up }) => was_up,
            phase => phase == Some(Phase::Up),
        };
        self.generation += 1;
        self.known.joining.left();
        if end == Some(&End::NotAvailable) {
            self.known.joining.refused();
        }
        self.waiting.forget_bytes();
        self.urgent = Waiting::default();
        was_up
    }

    /// The next exchange is another one at the same place: nothing that is known applies to it.
    pub(super) fn forget_exchange(&mut self) {
        let Resume { session, next, heard, .. } = Resume::default();
        (self.known.name, self.known.next, self.known.replay_until) = (session, next, 0);
        self.known.joining = Joining::after(next, heard);
        self.forget_handed();
        self.cancels.forget();
        self.outstanding = OutstandingOrders::new(1, self.outstanding.limits());
    }

    /// Numbers start again: no connection was given any of them.
    fn forget_handed(&mut self) {
        self.handed = 0;
        if let Some(connection) = &mut self.connection {
            (connection.handed_here, connection.taken_back) = (0, 0);
        }
    }

    /// When [`Self::on_time`] must be called.
    pub(super) fn deadline_ns(&self) -> u64 {
        let Some(connection) = &self.connection else { return u64::MAX };
        let deadline_ns = connection.rules.deadline_ns();
        match connection.phase {
            Phase::Asking { answer_due_ns } => deadline_ns.min(answer_due_ns),
            Phase::LoggingIn | Phase::Up | Phase::Left { .. } => deadline_ns,
        }
    }

    /// Time has passed.
    pub(super) fn on_time(&mut self, now_ns: u64, effects: &mut Effects) -> Result<(), End> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        if let Phase::Asking { answer_due_ns } = connection.phase
            && now_ns >= answer_due_ns
        {
            return Err(End::NoNumbers);
        }
        match connection.rules.on_time(now_ns) {
            Due::Heartbeat => self.beat(effects),
            Due::Close(CloseReason::NoLogin) => return Err(End::NoLogin),
            Due::Close(CloseReason::HeartbeatTimeout) => return Err(End::HeartbeatTimeout),
            Due::Nothing => {}
        }
        Ok(())
    }

    /// Sends a heartbeat, unless other bytes are on their way.
    pub(super) fn beat(&mut self, effects: &mut Effects) {
        if self.urgent.bytes.is_empty() {
            self.urgent.bytes.extend_from_slice(&CLIENT_HEARTBEAT_FRAME);
            effects.has_output = true;
        }
    }

    /// The owner was busy with what had been received, and has read nothing meanwhile: the exchange's silence does not
    /// count.
    pub(super) fn was_not_read(&mut self, now_ns: u64) {
        if let Some(connection) = &mut self.connection
            && connection.rules.is_logged_in()
        {
            // Messages that arrived meanwhile are read only now.
            let _ = connection.rules.on_packet(now_ns, ServerPacket::Heartbeat);
            connection.await_numbers(now_ns);
        }
    }

    /// Bytes were given to the connection.
    pub(super) fn on_sent(&mut self, now_ns: u64) {
        if let Some(connection) = &mut self.connection {
            connection.rules.on_sent(now_ns);
        }
    }

    /// A frame of the exchange. The effects apply also if the connection ends.
    #[inline]
    pub(super) fn on_frame(
        &mut self,
        frame: Frame<'_>,
        step: Step,
        effects: &mut Effects,
    ) -> Result<(), End> {
        let packet = ServerPacket::parse(frame)?;
        if packet == ServerPacket::Heartbeat {
            self.on_heartbeat(effects)?;
        }
        let Some(connection) = &mut self.connection else { return Err(End::Closed) };
        match connection.rules.on_packet(step.now_ns, packet)? {
            ClientInput::Message { sequence, payload } => self.on_message(sequence, payload, step, effects),
            ClientInput::LoggedIn { next } => self.on_login(next, step.now_ns, effects),
            ClientInput::Refused(LoginReject::NotAuthorised) => Err(End::NotAuthorised),
            ClientInput::Refused(LoginReject::SessionNotAvailable) => Err(End::NotAvailable),
            ClientInput::Ended => Err(End::SessionOver),
            ClientInput::Unsequenced(_) | ClientInput::Nothing => Ok(()),
        }
    }

    /// A heartbeat shows that the exchange has no more messages to send. If orders set aside since the connection
    /// began wait for something that this connection cannot show, the next connection begins with a probe.
    fn on_heartbeat(&mut self, effects: &mut Effects) -> Result<(), End> {
        if self.is_up() {
            if self.known.joining.has_heard_all() {
                self.refuse_stale(effects);
            } else if self.outstanding.has_stale() && self.known.joining.leaves_to_look() {
                return Err(End::Unmeasured);
            }
        }
        if self.known.joining.is_open() { Ok(self.known.joining.beaten()?) } else { Ok(()) }
    }

    /// Logged in: asks for the next number. Orders are sent when that is answered.
    fn on_login(&mut self, next: u64, now_ns: u64, effects: &mut Effects) -> Result<(), End> {
        let Some(Connection { rules, timing, .. }) = &self.connection else { return Ok(()) };
        let (session, patience_ns) = (rules.session(), timing.heartbeat_timeout_ns.saturating_mul(2));
        let known = self.known.name.map(|name| (name, self.known.next));
        let mut joining = self.known.joining;
        let outcome = joining.accepted(known, (session, next), now_ns, patience_ns);
        if outcome == LoginOutcome::NewSession {
            self.begin_anew(session, next, effects)?;
        }
        self.known.joining = joining;
        match outcome {
            LoginOutcome::Continued | LoginOutcome::NewSession => {}
            LoginOutcome::Gap(messages) => {
                self.outstanding.note_gap();
                self.known.next = next;
                effects.push(Effect::Gap { messages, session, next });
            }
            LoginOutcome::Proven => return Err(End::Proven),
            LoginOutcome::Probed => return Err(End::Withheld),
            LoginOutcome::Measured => return Err(End::Measured),
        }
        effects.push(Effect::LoggedIn(session));
        encode_frame(UNSEQUENCED, &[ACCOUNT_QUERY], &mut self.urgent.bytes);
        self.urgent.messages += 1;
        effects.has_output = true;
        if let Some(connection) = &mut self.connection {
            connection.phase = Phase::Asking { answer_due_ns: now_ns.saturating_add(QUERY_LIMIT_NS) };
        }
        Ok(())
    }

    #[inline]
    fn on_message(
        &mut self,
        sequence: u64,
        payload: &[u8],
        step: Step,
        effects: &mut Effects,
    ) -> Result<(), End> {
        if !step.has_room {
            return Err(End::Backpressure);
        }
        if let Some(connection) = &mut self.connection {
            connection.await_numbers(step.now_ns);
        }
        if sequence < self.known.next {
            effects.pass(Passed::Again);
            return Ok(());
        }
        let decoded = Outbound::decode(payload);
        if self.known.joining.is_open() {
            let is_answer = decoded.as_ref().is_ok_and(|(message, _)| message.user_ref_num().is_some());
            self.known.joining.heard(sequence, is_answer)?;
        }
        self.known.next = sequence + 1;
        let message = match decoded {
            Ok((message, _)) => message,
            Err(error) => {
                effects.pass(Passed::Malformed { sequence, error });
                return Ok(());
            }
        };
        if let Outbound::AccountQueryResponse { next_user_ref_num, .. } = message {
            effects.pass(Passed::Numbers);
            self.on_numbers((sequence, next_user_ref_num), step, effects);
            return Ok(());
        }
        let number = message.user_ref_num();
        if let Some(later) = self.connection.as_ref().and_then(|connection| connection.stale)
            && number.is_some_and(|number| number >= later)
        {
            // An order that was sent after this connection's query has its answer.
            self.known.joining.note_all_heard();
            self.refuse_stale(effects);
        }
        if sequence <= self.known.replay_until && self.is_delivered(number, sequence) {
            effects.pass(Passed::Delivered);
            return Ok(());
        }
        effects.raw.clear();
        if payload.len() <= MESSAGE_BYTES_MAX {
            effects.raw.extend_from_slice(payload);
        } else {
            // If the appendage does not fit, the answer is delivered without it.
            message.encode(&mut effects.raw);
        }
        self.pass_back(message, sequence, effects);
        Ok(())
    }

    #[inline]
    fn pass_back(&mut self, mut message: Outbound, sequence: u64, effects: &mut Effects) {
        let number = message.user_ref_num();
        let answer = self.outstanding.apply_response(&mut message, &mut effects.raw);
        for origin in self.outstanding.take_ignored() {
            effects.push(Effect::Release(origin));
        }
        let Some(answer) = answer else {
            let is_trade = traded_order(&message).is_some();
            effects.message = Some(message);
            effects.pass(if is_trade {
                Passed::Stray { session: self.sent_key(), sequence }
            } else {
                Passed::Unmatched { is_about_order: number.is_some() }
            });
            return;
        };
        if let (Outbound::Canceled(canceled), Some(number)) = (&mut message, number)
            && canceled.reason == cancel_reason::USER
            && let Some(reason) = self.cancels.reason_of(number, answer.origin.account)
        {
            canceled.reason = reason;
            effects.raw.clear();
            message.encode(&mut effects.raw);
        }
        effects.message = Some(message);
        effects.push(Effect::Deliver(Delivery {
            origin: answer.origin,
            upstream_sequence: pack_sequence(self.key, self.known.epoch, sequence),
            sent_ns: answer.sent_ns,
            is_overfill: answer.is_overfill,
        }));
    }

    /// Whether the client received this answer before the gateway was restarted.
    #[cold]
    fn is_delivered(&self, number: Option<u32>, sequence: u64) -> bool {
        let account = number.and_then(|number| self.outstanding.account_of(number));
        // All answers to an order too old for its owner to be known were delivered.
        account
            .is_none_or(|account| self.known.delivered.get(&account).is_some_and(|until| sequence <= *until))
    }

    /// Handles an answer to an account query, of this connection or of an earlier one. In any case it shows which
    /// numbers the exchange had handled by then.
    #[cold]
    fn on_numbers(&mut self, (sequence, next): (u64, u32), step: Step, effects: &mut Effects) {
        self.outstanding.raise_next(next);
        // Without proof it may be the answer of another session than the known one.
        if self.known.joining.is_open() || self.known.joining.answered(sequence) == QueryAnswer::Older {
            return;
        }
        let Some(connection) = &mut self.connection else { return };
        match connection.phase {
            Phase::Asking { .. } => self.come_up(step, effects),
            Phase::Up if self.outstanding.set_aside_passed_over() => {
                connection.stale = Some(self.outstanding.last_number().saturating_add(1));
            }
            Phase::LoggingIn | Phase::Up | Phase::Left { .. } => {}
        }
    }

    /// The session is up, and the numbers are known.
    fn come_up(&mut self, step: Step, effects: &mut Effects) {
        let Self { outstanding, cancels, waiting, urgent, connection: Some(connection), .. } = self else {
            return;
        };
        // First of all, and even if the journal has failed: the clients of these orders were informed that they have
        // ended.
        urgent.messages += outstanding.cancel_given_up(&mut urgent.bytes);
        let refusal = |number, account| cancels.refusal_of(number, account);
        let again = outstanding.resend(step.now_ns, refusal, &mut waiting.bytes);
        let last = outstanding.last_number();
        let is_open = outstanding.has_stale() || !self.known.joining.has_heard_all();
        connection.stale = is_open.then_some(last.saturating_add(1));
        connection.phase = Phase::Up;
        waiting.messages += again;
        waiting.through = last;
        waiting.until_ns = outstanding.first_wait_until_ns(0);
        waiting.lsn = waiting.lsn.max(self.lsn);
        if again == 0 {
            // Nothing has to come before messages about them.
            connection.handed_here = last;
        }
        let must_wait = step.kept.is_none_or(|kept| kept < self.lsn);
        self.cancel_again(must_wait);
        effects.push(Effect::Up { again });
        effects.has_output = true;
    }
}

impl Connection {
    /// Extends the deadline of the account query, while it is unanswered: the exchange has just sent something.
    #[inline]
    fn await_numbers(&mut self, now_ns: u64) {
        if let Phase::Asking { answer_due_ns } = &mut self.phase {
            *answer_due_ns = now_ns.saturating_add(QUERY_LIMIT_NS);
        }
    }
}

impl From<Doubtful> for End {
    fn from(Doubtful: Doubtful) -> Self {
        Self::Doubtful
    }
}
