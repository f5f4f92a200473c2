//! The rules of a session from the client's side.

use super::{
    CloseReason, Due, LoginReject, LoginRequest, Name, ProtocolError, Timing, packet::ServerPacket,
    timing::Liveness,
};

/// One connection to a server: the answer to the login, then numbered messages.
///
/// Sequence numbers are not on the wire. They are counted here, from the number in the answer to the login;
/// [`expected`](Self::expected) is the number to request on the next connection.
#[derive(Clone, Debug)]
pub struct ClientSession {
    state: State,
    session: Name<10>,
    expected: u64,
    heartbeat_ns: u64,
    heartbeat_timeout_ns: u64,
}

#[derive(Clone, Debug)]
enum State {
    /// The login is sent and not answered.
    Waiting {
        close_at_ns: u64,
    },
    LoggedIn(Liveness),
    /// Refused, or the session is over.
    Ended,
}

/// The meaning of a packet for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientInput<'a> {
    /// The login is accepted.
    LoggedIn {
        /// Number of the next sequenced message.
        next: u64,
    },
    /// The login is refused; the server closes.
    Refused(LoginReject),
    /// The next message of the session.
    Message {
        /// Its number.
        sequence: u64,
        /// Its bytes.
        payload: &'a [u8],
    },
    /// A message outside the sequence.
    Unsequenced(&'a [u8]),
    /// The session is over and cannot be joined again; the server closes.
    Ended,
    /// Nothing.
    Nothing,
}

impl ClientSession {
    /// A session on a connection on which `login` is sent now.
    ///
    /// If the login names a heartbeat timeout, heartbeats are sent at least two and a half times per timeout.
    pub fn new(now_ns: u64, timing: Timing, login: &LoginRequest) -> Self {
        let heartbeat_ns = match login.heartbeat_timeout_ms {
            Some(timeout_ms) => timing.heartbeat_ns.min(u64::from(timeout_ms.max(1)) * 400_000),
            None => timing.heartbeat_ns,
        };
        Self {
            state: State::Waiting { close_at_ns: now_ns.saturating_add(timing.login_ns) },
            session: login.session,
            expected: login.sequence,
            heartbeat_ns,
            heartbeat_timeout_ns: timing.heartbeat_timeout_ns,
        }
    }

    /// Judges a packet. Debug packets are always ignored, and so is everything after the end.
    pub fn on_packet<'a>(
        &mut self,
        now_ns: u64,
        packet: ServerPacket<'a>,
    ) -> Result<ClientInput<'a>, ProtocolError> {
        match &mut self.state {
            State::Waiting { .. } => self.on_answer(now_ns, packet),
            State::LoggedIn(liveness) => {
                liveness.on_heard(now_ns);
                self.on_stream(packet)
            }
            State::Ended => Ok(ClientInput::Nothing),
        }
    }

    /// The joined session; before the answer, the requested one.
    pub fn session(&self) -> Name<10> {
        self.session
    }

    /// Number of the next sequenced message; before the answer, the requested one.
    pub fn expected(&self) -> u64 {
        self.expected
    }

    /// Whether the login was accepted and the session has not ended.
    pub fn is_logged_in(&self) -> bool {
        matches!(self.state, State::LoggedIn(_))
    }

    /// Call it after sending: the next heartbeat is then due later.
    pub fn on_sent(&mut self, now_ns: u64) {
        if let State::LoggedIn(liveness) = &mut self.state {
            liveness.on_sent(now_ns);
        }
    }

    /// When [`on_time`](Self::on_time) must be called, if nothing is sent and nothing arrives before; `u64::MAX`
    /// after the end.
    pub fn deadline_ns(&self) -> u64 {
        match &self.state {
            State::Waiting { close_at_ns } => *close_at_ns,
            State::LoggedIn(liveness) => liveness.deadline_ns(),
            State::Ended => u64::MAX,
        }
    }

    /// The action that is due now.
    pub fn on_time(&mut self, now_ns: u64) -> Due {
        match &mut self.state {
            State::Waiting { close_at_ns } if now_ns >= *close_at_ns => Due::Close(CloseReason::NoLogin),
            State::LoggedIn(liveness) => liveness.on_time(now_ns),
            State::Waiting { .. } | State::Ended => Due::Nothing,
        }
    }

    fn on_answer<'a>(
        &mut self,
        now_ns: u64,
        packet: ServerPacket<'a>,
    ) -> Result<ClientInput<'a>, ProtocolError> {
        match packet {
            ServerPacket::LoginAccepted(accepted) => {
                self.session = accepted.session;
                self.expected = accepted.next_sequence;
                self.state = State::LoggedIn(Liveness {
                    heartbeat_ns: self.heartbeat_ns,
                    heartbeat_timeout_ns: self.heartbeat_timeout_ns,
                    sent_at_ns: now_ns,
                    heard_at_ns: now_ns,
                });
                Ok(ClientInput::LoggedIn { next: accepted.next_sequence })
            }
            ServerPacket::LoginRejected(reason) => {
                self.state = State::Ended;
                Ok(ClientInput::Refused(reason))
            }
            ServerPacket::Debug(_) => Ok(ClientInput::Nothing),
            early => Err(ProtocolError::BeforeLogin(early.kind())),
        }
    }

    fn on_stream<'a>(&mut self, packet: ServerPacket<'a>) -> Result<ClientInput<'a>, ProtocolError> {
        match packet {
            ServerPacket::Sequenced(payload) => {
                let sequence = self.expected;
                self.expected = sequence.checked_add(1).ok_or(ProtocolError::SequenceExhausted)?;
                Ok(ClientInput::Message { sequence, payload })
            }
            ServerPacket::Unsequenced(payload) => Ok(ClientInput::Unsequenced(payload)),
            ServerPacket::Heartbeat | ServerPacket::Debug(_) => Ok(ClientInput::Nothing),
            ServerPacket::EndOfSession => {
                self.state = State::Ended;
                Ok(ClientInput::Ended)
            }
            ServerPacket::LoginAccepted(_) | ServerPacket::LoginRejected(_) => {
                Err(ProtocolError::SecondLogin)
            }
        }
    }
}
