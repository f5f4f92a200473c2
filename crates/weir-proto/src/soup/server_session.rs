//! The rules of a session from the server's side.

use super::{
    CloseReason, Due, HEARTBEAT_TIMEOUT_NS_MAX, HEARTBEAT_TIMEOUT_NS_MIN, LoginRequest, ProtocolError,
    Timing, packet::ClientPacket, timing::Liveness,
};

/// One client on one connection: first a login, then messages, and at least a heartbeat every few seconds.
///
/// It decides, the caller acts: the caller reports received packets ([`on_packet`](Self::on_packet)), sends
/// ([`on_sent`](Self::on_sent)) and the result of the login ([`accepted`](Self::accepted)), and asks at
/// [`deadline_ns`](Self::deadline_ns) what is due.
#[derive(Clone, Debug)]
pub struct ServerSession {
    timing: Timing,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    /// No login yet.
    Silent {
        close_at_ns: u64,
    },
    /// The login is being judged.
    Judging,
    LoggedIn(Liveness),
    /// Neither packets nor time matter any more.
    Ended,
}

/// A packet's request to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerInput<'a> {
    /// Judge the login, answer it, and call [`ServerSession::accepted`] or [`ServerSession::refused`].
    Login(LoginRequest),
    /// A message of the client.
    Message(&'a [u8]),
    /// Close at once.
    Logout,
    /// No action.
    Nothing,
}

impl ServerSession {
    /// A session on a connection that was accepted now.
    pub fn new(now_ns: u64, timing: Timing) -> Self {
        Self { timing, state: State::Silent { close_at_ns: now_ns.saturating_add(timing.login_ns) } }
    }

    /// Judges a packet. Debug packets are always ignored.
    ///
    /// While a login is judged, heartbeats are accepted and messages are refused: a caller that wants to allow early
    /// messages keeps the bytes behind the login until it has answered.
    pub fn on_packet<'a>(
        &mut self,
        now_ns: u64,
        packet: ClientPacket<'a>,
    ) -> Result<ServerInput<'a>, ProtocolError> {
        match &mut self.state {
            State::LoggedIn(liveness) => liveness.on_heard(now_ns),
            State::Ended => return Ok(ServerInput::Nothing),
            State::Silent { .. } | State::Judging => {}
        }
        match (&self.state, packet) {
            (_, ClientPacket::Debug(_)) => Ok(ServerInput::Nothing),
            (State::LoggedIn(_), ClientPacket::Unsequenced(message)) => Ok(ServerInput::Message(message)),
            (State::LoggedIn(_) | State::Judging, ClientPacket::Heartbeat) => Ok(ServerInput::Nothing),
            (State::Silent { .. }, ClientPacket::Login(login)) => {
                self.state = State::Judging;
                Ok(ServerInput::Login(login))
            }
            (State::LoggedIn(_) | State::Judging, ClientPacket::Logout) => {
                self.state = State::Ended;
                Ok(ServerInput::Logout)
            }
            (_, ClientPacket::Login(_)) => Err(ProtocolError::SecondLogin),
            (_, packet) => Err(ProtocolError::BeforeLogin(packet.kind())),
        }
    }

    /// Call it when the login is good and its answer is sent now. `heartbeat_timeout_ms` is the login's request,
    /// clamped to [`HEARTBEAT_TIMEOUT_NS_MIN`] and [`HEARTBEAT_TIMEOUT_NS_MAX`].
    pub fn accepted(&mut self, now_ns: u64, heartbeat_timeout_ms: Option<u32>) {
        let heartbeat_timeout_ns = match heartbeat_timeout_ms {
            Some(timeout_ms) => {
                (u64::from(timeout_ms) * 1_000_000).clamp(HEARTBEAT_TIMEOUT_NS_MIN, HEARTBEAT_TIMEOUT_NS_MAX)
            }
            None => self.timing.heartbeat_timeout_ns,
        };
        self.state = State::LoggedIn(Liveness {
            heartbeat_ns: self.timing.heartbeat_ns,
            heartbeat_timeout_ns,
            sent_at_ns: now_ns,
            heard_at_ns: now_ns,
        });
    }

    /// Call it when the login is refused: the connection ends with the answer.
    pub fn refused(&mut self) {
        self.state = State::Ended;
    }

    /// Call it after sending: the next heartbeat is then due later.
    pub fn on_sent(&mut self, now_ns: u64) {
        if let State::LoggedIn(liveness) = &mut self.state {
            liveness.on_sent(now_ns);
        }
    }

    /// Whether the login was accepted and the session has not ended.
    pub fn is_logged_in(&self) -> bool {
        matches!(self.state, State::LoggedIn(_))
    }

    /// When [`on_time`](Self::on_time) must be called, if nothing is sent and nothing arrives before; `u64::MAX`
    /// while the login is judged and after the end.
    pub fn deadline_ns(&self) -> u64 {
        match &self.state {
            State::Silent { close_at_ns } => *close_at_ns,
            State::LoggedIn(liveness) => liveness.deadline_ns(),
            State::Judging | State::Ended => u64::MAX,
        }
    }

    /// The action that is due now.
    pub fn on_time(&mut self, now_ns: u64) -> Due {
        match &mut self.state {
            State::Silent { close_at_ns } if now_ns >= *close_at_ns => Due::Close(CloseReason::NoLogin),
            State::LoggedIn(liveness) => liveness.on_time(now_ns),
            State::Silent { .. } | State::Judging | State::Ended => Due::Nothing,
        }
    }
}
