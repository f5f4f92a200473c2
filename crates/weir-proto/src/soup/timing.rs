//! The timeouts of a session, and the actions that are due when they expire.
//!
//! Times are nanoseconds on any clock that does not go back; a step of the wall clock changes nothing here.

const SECOND_NS: u64 = 1_000_000_000;

/// The shortest heartbeat timeout that a client of version 4.1 can request.
pub const HEARTBEAT_TIMEOUT_NS_MIN: u64 = SECOND_NS;
/// The longest heartbeat timeout that a client of version 4.1 can request.
pub const HEARTBEAT_TIMEOUT_NS_MAX: u64 = 60 * SECOND_NS;

/// The timeouts of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// From the start to the login request (server), or to the answer (client).
    pub login_ns: u64,
    /// From the last byte sent to a heartbeat.
    pub heartbeat_ns: u64,
    /// From the last packet received to giving up the peer.
    pub heartbeat_timeout_ns: u64,
}

impl Default for Timing {
    /// 5 s for the login, a heartbeat after 1 s as the protocol requires, 15 s of silence.
    fn default() -> Self {
        Self { login_ns: 5 * SECOND_NS, heartbeat_ns: SECOND_NS, heartbeat_timeout_ns: 15 * SECOND_NS }
    }
}

/// The action that is due now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Nothing before the deadline.
    Nothing,
    /// Send a heartbeat. It counts as sent.
    Heartbeat,
    /// Close the connection.
    Close(CloseReason),
}

/// The timeout that closes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloseReason {
    /// No login, or no answer to it, in time.
    NoLogin,
    /// The peer was silent too long.
    HeartbeatTimeout,
}

impl CloseReason {
    /// Its name in counters.
    pub fn label(self) -> &'static str {
        match self {
            Self::NoLogin => "no_login",
            Self::HeartbeatTimeout => "silent",
        }
    }
}

/// The times of the last send and the last receive of a logged-in session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Liveness {
    pub heartbeat_ns: u64,
    pub heartbeat_timeout_ns: u64,
    pub sent_at_ns: u64,
    pub heard_at_ns: u64,
}

impl Liveness {
    pub fn on_sent(&mut self, now_ns: u64) {
        self.sent_at_ns = self.sent_at_ns.max(now_ns);
    }

    pub fn on_heard(&mut self, now_ns: u64) {
        self.heard_at_ns = self.heard_at_ns.max(now_ns);
    }

    pub fn deadline_ns(&self) -> u64 {
        self.heartbeat_at_ns().min(self.close_at_ns())
    }

    pub fn on_time(&mut self, now_ns: u64) -> Due {
        if now_ns >= self.close_at_ns() {
            return Due::Close(CloseReason::HeartbeatTimeout);
        }
        if now_ns >= self.heartbeat_at_ns() {
            self.on_sent(now_ns);
            return Due::Heartbeat;
        }
        Due::Nothing
    }

    fn heartbeat_at_ns(&self) -> u64 {
        self.sent_at_ns.saturating_add(self.heartbeat_ns)
    }

    fn close_at_ns(&self) -> u64 {
        self.heard_at_ns.saturating_add(self.heartbeat_timeout_ns)
    }
}
