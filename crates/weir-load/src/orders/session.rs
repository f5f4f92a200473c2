//! The connection of an account: login, replay, account query, and the numbers of the stream. Pure: takes bytes,
//! returns verdicts, and keeps what must be sent besides requests.
//!
//! A connection begins with a login, and continues with an account query when the login is accepted. The answer to
//! the query follows everything that the server had to replay and contains the next number; then requests may be
//! sent. The first login asks for the newest message, because an account may have history from before this run; later
//! logins ask for the message at which the stream stopped. Requests in flight are sent again, under the same numbers.

use std::fmt;

use weir_proto::{
    ouch::{Inbound, Outbound},
    soup::{
        self, ClientInput, ClientSession, Deframer, LoginReject, LoginRequest, Name, ServerPacket, Timing,
    },
};
use weir_record::orders::Mismatch;

use super::{
    generator::hop,
    notes::{Hop, OrderTotals},
    trader::{Trader, Verdict},
};
use crate::failure::{Class, Failure};

/// Longest accepted message.
const PAYLOAD_BYTES_MAX: usize = 1024;

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionState {
    /// Not connected.
    Away,
    /// The login was sent.
    LoggingIn,
    /// The account query was sent, and older messages may be replayed.
    Asking,
    /// Requests may be sent.
    Live,
}

/// Where a login starts the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// At the newest message.
    Newest,
    /// At the first message that exists.
    All,
    /// Where the stream stopped: the session and the number of the next message.
    At(Name<10>, u64),
}

/// An account and its connection.
pub(crate) struct Session {
    account: Name<6>,
    password: Name<10>,
    entry: Entry,
    state: SessionState,
    deframer: Deframer,
    client: ClientSession,
    trader: Trader,
    /// Bytes to send next, besides requests.
    aside: Vec<u8>,
    /// When the account query was sent, since midnight.
    query_sent_ns: u64,
    /// Drop the connection after this many answers.
    reconnect_every: Option<u64>,
    /// Answers on this connection.
    answers: u64,
    /// The connection was dropped on purpose.
    is_dropped: bool,
    /// Something was sent since the last check.
    has_spoken: bool,
    refusal: Option<LoginReject>,
    has_logged_in: bool,
    reconnects: u64,
    sequenced: u64,
}

/// A sequenced message.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// Letter of its type.
    pub(crate) letter: u8,
    pub(crate) bytes: usize,
    pub(crate) verdict: Verdict,
}

/// One moment on two clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// Nanoseconds on the engine's clock.
    pub(crate) now_ns: u64,
    /// Nanoseconds since midnight UTC.
    pub(crate) wall_ns: u64,
}

/// The options of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionOptions {
    pub(crate) account: Name<6>,
    pub(crate) password: Name<10>,
    /// Start at the first message that exists.
    pub(crate) resume: bool,
    pub(crate) reconnect_every: Option<u64>,
}

impl Session {
    pub(crate) fn new(options: SessionOptions, trader: Trader) -> Self {
        let SessionOptions { account, password, resume, reconnect_every } = options;
        let entry = if resume { Entry::All } else { Entry::Newest };
        Self {
            account,
            password,
            entry,
            state: SessionState::Away,
            deframer: Deframer::new(PAYLOAD_BYTES_MAX),
            client: ClientSession::new(0, Timing::default(), &login(account, password, entry)),
            trader,
            aside: Vec::new(),
            query_sent_ns: 0,
            reconnect_every,
            answers: 0,
            is_dropped: false,
            has_spoken: false,
            refusal: None,
            has_logged_in: false,
            reconnects: 0,
            sequenced: 0,
        }
    }

    pub(crate) fn trader(&mut self) -> &mut Trader {
        &mut self.trader
    }

    pub(crate) fn account(&self) -> Name<6> {
        self.account
    }

    /// Whether requests may be sent.
    pub(crate) fn is_live(&self) -> bool {
        self.state == SessionState::Live
    }

    /// Whether the last login was refused because the session is taken, which lasts until the server has noticed that
    /// its previous client left.
    pub(crate) fn is_taken(&self) -> bool {
        self.refusal == Some(LoginReject::SessionNotAvailable)
    }

    /// Whether the connection has received [`SessionOptions::reconnect_every`] answers.
    pub(crate) fn is_due_to_leave(&self) -> bool {
        self.is_live() && self.reconnect_every.is_some_and(|every| self.answers >= every)
    }

    /// Starts a new connection: queues the login.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.state = SessionState::LoggingIn;
        self.answers = 0;
        self.refusal = None;
        self.deframer = Deframer::new(PAYLOAD_BYTES_MAX);
        let login = login(self.account, self.password, self.entry);
        self.client = ClientSession::new(now_ns, Timing::default(), &login);
        self.aside.clear();
        login.encode(&mut self.aside);
    }

    /// Drops the connection on purpose; requests in flight stay in flight.
    pub(crate) fn leave(&mut self) {
        self.state = SessionState::Away;
        self.is_dropped = true;
    }

    /// Gives up a failed connection and everything in flight.
    pub(crate) fn give_up(&mut self) {
        self.state = SessionState::Away;
        self.is_dropped = false;
        self.trader.give_up();
    }

    /// Gives up following the stream: the next login starts anew.
    pub(crate) fn distrust(&mut self) {
        self.entry = Entry::Newest;
    }

    /// Moves the bytes to send besides requests into `out`.
    pub(crate) fn take_aside(&mut self, out: &mut Vec<u8>) {
        out.clear();
        out.append(&mut self.aside);
    }

    /// Notes that a request was sent.
    #[inline]
    pub(crate) fn spoke(&mut self) {
        self.has_spoken = true;
    }

    /// Whether a heartbeat is due: nothing was sent since the last call.
    pub(crate) fn is_silent(&mut self) -> bool {
        !std::mem::take(&mut self.has_spoken) && self.is_live()
    }

    /// Takes the next message from the input; `None` when the input is used up. An error ends the connection.
    #[inline]
    pub(crate) fn next(&mut self, input: &mut &[u8], at: Moment) -> Result<Option<Message>, Failure> {
        // Accesses fields separately, because a frame may borrow from the deframer.
        while let Some(frame) = self.deframer.next(input).map_err(|error| stray(error, &mut self.entry))? {
            let heard = ServerPacket::parse(frame)
                .and_then(|packet| self.client.on_packet(at.now_ns, packet))
                .map_err(|error| stray(error, &mut self.entry))?;
            let payload = match heard {
                ClientInput::Message { payload, .. } => payload,
                ClientInput::LoggedIn { next } => {
                    self.logged_in(next, at.wall_ns)?;
                    continue;
                }
                ClientInput::Refused(reject) => return Err(self.refused(reject)),
                ClientInput::Ended => return Err(ended()),
                ClientInput::Unsequenced(_) | ClientInput::Nothing => continue,
            };
            self.sequenced += 1;
            let (letter, bytes) = (payload.first().copied().unwrap_or_default(), payload.len());
            let verdict = if self.state == SessionState::Live {
                self.trader.judge(payload, at.wall_ns)
            } else {
                let answer = answer_to_query(payload, self.query_sent_ns, at.wall_ns, self.entry);
                match answer {
                    Some(next) => self.answered(next).map(|()| Verdict::Aside),
                    None if matches!(self.entry, Entry::At(..)) => self.trader.judge(payload, at.wall_ns),
                    None => Ok(Verdict::Aside),
                }
            };
            let verdict = verdict.inspect_err(|_| self.entry = Entry::Newest)?;
            if !matches!(verdict, Verdict::Aside) {
                self.answers += 1;
            }
            if self.state == SessionState::Live || matches!(self.entry, Entry::At(..)) {
                self.entry = Entry::At(self.client.session(), self.client.expected());
            }
            return Ok(Some(Message { letter, bytes, verdict }));
        }
        Ok(None)
    }

    /// Counts of the session over the whole run.
    pub(crate) fn totals(&self) -> OrderTotals {
        OrderTotals {
            sessions: u32::from(self.has_logged_in),
            reconnects: self.reconnects,
            sequenced: self.sequenced,
            inversions: self.trader.inversions(),
            shares: self.trader.blotter().shares(),
            mismatches: self.mismatches(),
        }
    }

    fn mismatches(&self) -> Vec<Mismatch> {
        let named = |mismatch: &Mismatch| Mismatch { session: self.account.to_string(), ..mismatch.clone() };
        self.trader.mismatches().iter().map(named).collect()
    }

    fn logged_in(&mut self, next: u64, wall_ns: u64) -> Result<(), Failure> {
        let asked = match self.entry {
            Entry::Newest => None,
            Entry::All => Some(1),
            Entry::At(_, expected) => Some(expected),
        };
        if let Some(asked) = asked.filter(|asked| *asked != next) {
            self.entry = Entry::Newest;
            let text = format!("message {asked} was asked for, but the server goes on with message {next}");
            return Err(Failure { class: Class::WrongBytes, text });
        }
        self.has_logged_in = true;
        self.reconnects += u64::from(std::mem::take(&mut self.is_dropped));
        self.state = SessionState::Asking;
        self.query_sent_ns = wall_ns;
        let mut query = Vec::with_capacity(1);
        Inbound::AccountQuery.encode(&mut query);
        soup::encode_frame(soup::UNSEQUENCED, &query, &mut self.aside);
        Ok(())
    }

    /// Handles the answer to the account query: everything before it is known, and requests may be sent.
    fn answered(&mut self, next: u32) -> Result<(), Failure> {
        match self.entry {
            Entry::Newest | Entry::All => self.trader.begin(next),
            Entry::At(..) => self.trader.go_on(next)?,
        }
        self.trader.resend(&mut self.aside);
        self.state = SessionState::Live;
        Ok(())
    }

    #[cold]
    fn refused(&mut self, reject: LoginReject) -> Failure {
        self.refusal = Some(reject);
        let text = format!("the login of {} was refused: {reject}", self.account);
        Failure { class: Class::Refused, text }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Session")
            .field("account", &self.account)
            .field("entry", &self.entry)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

fn login(username: Name<6>, password: Name<10>, entry: Entry) -> LoginRequest {
    let (session, sequence) = match entry {
        Entry::Newest => (Name::BLANK, 0),
        Entry::All => (Name::BLANK, 1),
        Entry::At(session, expected) => (session, expected),
    };
    LoginRequest { username, password, session, sequence, heartbeat_timeout_ms: None }
}

/// The next number from an answer to the account query. Old messages may include old answers: if all of them are
/// replayed, only an answer written after our query is ours.
fn answer_to_query(payload: &[u8], query_sent_ns: u64, wall_ns: u64, entry: Entry) -> Option<u32> {
    let Ok((Outbound::AccountQueryResponse { timestamp_ns, next_user_ref_num }, _)) =
        Outbound::decode(payload)
    else {
        return None;
    };
    let is_ours = entry != Entry::All || hop(query_sent_ns, timestamp_ns, wall_ns) != Hop::Implausible;
    is_ours.then_some(next_user_ref_num)
}

/// Handles broken framing: neither the start of the next message nor the number of lost ones is known.
#[cold]
fn stray(error: soup::ProtocolError, entry: &mut Entry) -> Failure {
    *entry = Entry::Newest;
    Failure { class: Class::Malformed, text: format!("the server sent {error}") }
}

#[cold]
fn ended() -> Failure {
    Failure { class: Class::Short, text: "the server ended the session".into() }
}
