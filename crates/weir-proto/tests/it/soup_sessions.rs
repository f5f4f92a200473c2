//! The rules of a session in virtual time, on both sides and between them.

use proptest::prelude::*;
use weir_proto::soup::{
    ClientInput, ClientPacket, ClientSession, CloseReason, Due, LoginAccepted, LoginReject, LoginRequest,
    Name, ProtocolError, ServerInput, ServerPacket, ServerSession, Timing,
};

const SECOND_NS: u64 = 1_000_000_000;

/// Not zero, so that a time mistaken for a duration shows.
const START_NS: u64 = 77 * SECOND_NS;

fn login() -> LoginRequest {
    LoginRequest {
        username: "C00001".parse().expect("short"),
        password: "DEMO".parse().expect("short"),
        session: Name::BLANK,
        sequence: 1,
        heartbeat_timeout_ms: None,
    }
}

fn accepted(next_sequence: u64) -> ServerPacket<'static> {
    let session = "WEIR01".parse().expect("short");
    ServerPacket::LoginAccepted(LoginAccepted { session, next_sequence })
}

fn server() -> ServerSession {
    ServerSession::new(START_NS, Timing::default())
}

fn server_logged_in(heartbeat_timeout_ms: Option<u32>) -> ServerSession {
    let mut session = server();
    assert_eq!(session.on_packet(START_NS, ClientPacket::Login(login())), Ok(ServerInput::Login(login())));
    session.accepted(START_NS, heartbeat_timeout_ms);
    assert!(session.is_logged_in());
    session
}

fn client(login: &LoginRequest) -> ClientSession {
    ClientSession::new(START_NS, Timing::default(), login)
}

fn client_logged_in(next: u64) -> ClientSession {
    let mut session = client(&login());
    assert_eq!(session.on_packet(START_NS, accepted(next)), Ok(ClientInput::LoggedIn { next }));
    session
}

#[test]
fn a_client_that_does_not_log_in_is_closed_after_five_seconds() {
    let mut session = server();
    assert_eq!(session.deadline_ns(), START_NS + 5 * SECOND_NS);
    // Debug packets, whole or byte by byte, do not extend the login timeout.
    let later = START_NS + 4 * SECOND_NS;
    assert_eq!(session.on_packet(later, ClientPacket::Debug(b"slowly")), Ok(ServerInput::Nothing));
    assert_eq!(session.deadline_ns(), START_NS + 5 * SECOND_NS);
    assert_eq!(session.on_time(START_NS + 5 * SECOND_NS - 1), Due::Nothing);
    assert_eq!(session.on_time(START_NS + 5 * SECOND_NS), Due::Close(CloseReason::NoLogin));
}

#[test]
fn nothing_but_debug_may_come_before_the_login() {
    for (packet, kind) in [
        (ClientPacket::Unsequenced(b"Q"), b'U'),
        (ClientPacket::Heartbeat, b'R'),
        (ClientPacket::Logout, b'O'),
    ] {
        assert_eq!(server().on_packet(START_NS, packet), Err(ProtocolError::BeforeLogin(kind)));
    }
    assert_eq!(server().on_packet(START_NS, ClientPacket::Debug(b"")), Ok(ServerInput::Nothing));
}

#[test]
fn while_a_login_is_judged_the_clock_does_not_count_and_messages_are_early() {
    let mut session = server();
    assert!(matches!(session.on_packet(START_NS, ClientPacket::Login(login())), Ok(ServerInput::Login(_))));
    assert_eq!(session.deadline_ns(), u64::MAX);
    assert_eq!(session.on_time(START_NS + 100 * SECOND_NS), Due::Nothing);
    assert_eq!(session.on_packet(START_NS, ClientPacket::Heartbeat), Ok(ServerInput::Nothing));
    assert_eq!(
        session.on_packet(START_NS, ClientPacket::Unsequenced(b"Q")),
        Err(ProtocolError::BeforeLogin(b'U'))
    );
    assert_eq!(session.on_packet(START_NS, ClientPacket::Login(login())), Err(ProtocolError::SecondLogin));
    session.refused();
    assert_eq!((session.is_logged_in(), session.deadline_ns()), (false, u64::MAX));
}

#[test]
fn a_second_login_is_a_fault() {
    let mut session = server_logged_in(None);
    assert_eq!(session.on_packet(START_NS, ClientPacket::Login(login())), Err(ProtocolError::SecondLogin));
    let mut session = client_logged_in(1);
    assert_eq!(session.on_packet(START_NS, accepted(1)), Err(ProtocolError::SecondLogin));
    let refusal = ServerPacket::LoginRejected(LoginReject::NotAuthorised);
    assert_eq!(session.on_packet(START_NS, refusal), Err(ProtocolError::SecondLogin));
}

#[test]
fn messages_pass_and_a_logout_ends_the_session() {
    let mut session = server_logged_in(None);
    assert_eq!(session.on_packet(START_NS, ClientPacket::Unsequenced(b"Q")), Ok(ServerInput::Message(b"Q")));
    assert_eq!(session.on_packet(START_NS, ClientPacket::Debug(b"hm")), Ok(ServerInput::Nothing));
    assert_eq!(session.on_packet(START_NS, ClientPacket::Logout), Ok(ServerInput::Logout));
    assert!(!session.is_logged_in());
    assert_eq!(session.on_packet(START_NS, ClientPacket::Unsequenced(b"Q")), Ok(ServerInput::Nothing));
    assert_eq!(session.on_time(u64::MAX), Due::Nothing);
}

#[test]
fn a_heartbeat_is_due_after_one_second_of_sending_nothing() {
    let mut session = server_logged_in(None);
    assert_eq!(session.deadline_ns(), START_NS + SECOND_NS);
    assert_eq!(session.on_time(START_NS + SECOND_NS - 1), Due::Nothing);
    assert_eq!(session.on_time(START_NS + SECOND_NS), Due::Heartbeat);
    assert_eq!(session.on_time(START_NS + SECOND_NS), Due::Nothing);
    assert_eq!(session.deadline_ns(), START_NS + 2 * SECOND_NS);
}

#[test]
fn a_busy_session_sends_no_heartbeat() {
    let mut session = server_logged_in(None);
    for step in 1..100 {
        let now_ns = START_NS + step * SECOND_NS / 2;
        assert_eq!(session.on_time(now_ns), Due::Nothing);
        session.on_sent(now_ns);
        assert_eq!(session.on_packet(now_ns, ClientPacket::Heartbeat), Ok(ServerInput::Nothing));
    }
}

#[test]
fn a_silent_client_is_closed_after_fifteen_seconds_or_its_own_timeout_within_bounds() {
    for (timeout_ms, heartbeat_timeout_ns) in [
        (None, 15 * SECOND_NS),
        (Some(10_000), 10 * SECOND_NS),
        (Some(0), SECOND_NS),
        (Some(999), SECOND_NS),
        (Some(60_001), 60 * SECOND_NS),
        (Some(u32::MAX), 60 * SECOND_NS),
    ] {
        let mut session = server_logged_in(timeout_ms);
        let heard_ns = START_NS + SECOND_NS / 2;
        assert_eq!(session.on_packet(heard_ns, ClientPacket::Debug(b"")), Ok(ServerInput::Nothing));
        // A send does not count as a receive.
        session.on_sent(heard_ns + heartbeat_timeout_ns - 1);
        assert_eq!(session.on_time(heard_ns + heartbeat_timeout_ns - 1), Due::Nothing, "{timeout_ms:?}");
        assert_eq!(session.deadline_ns(), heard_ns + heartbeat_timeout_ns);
        assert_eq!(
            session.on_time(heard_ns + heartbeat_timeout_ns),
            Due::Close(CloseReason::HeartbeatTimeout)
        );
    }
}

#[test]
fn a_client_counts_sequenced_messages_from_the_number_in_the_answer() {
    let mut session = client(&LoginRequest { sequence: 5, ..login() });
    assert_eq!((session.expected(), session.session()), (5, Name::BLANK));
    assert_eq!(session.on_packet(START_NS, ServerPacket::Debug(b"")), Ok(ClientInput::Nothing));
    assert_eq!(session.on_packet(START_NS, accepted(7)), Ok(ClientInput::LoggedIn { next: 7 }));
    assert_eq!(session.session().as_str(), "WEIR01");
    for (packet, input) in [
        (ServerPacket::Sequenced(b"a"), ClientInput::Message { sequence: 7, payload: b"a" }),
        (ServerPacket::Unsequenced(b"b"), ClientInput::Unsequenced(b"b")),
        (ServerPacket::Heartbeat, ClientInput::Nothing),
        (ServerPacket::Debug(b"c"), ClientInput::Nothing),
        (ServerPacket::Sequenced(b"d"), ClientInput::Message { sequence: 8, payload: b"d" }),
        (ServerPacket::EndOfSession, ClientInput::Ended),
        (ServerPacket::Sequenced(b"e"), ClientInput::Nothing),
    ] {
        assert_eq!(session.on_packet(START_NS, packet), Ok(input));
    }
    assert_eq!((session.expected(), session.is_logged_in(), session.deadline_ns()), (9, false, u64::MAX));
}

#[test]
fn a_sequence_number_does_not_wrap() {
    let mut session = client_logged_in(u64::MAX);
    assert_eq!(
        session.on_packet(START_NS, ServerPacket::Sequenced(b"")),
        Err(ProtocolError::SequenceExhausted)
    );
    assert_eq!(session.expected(), u64::MAX);
}

#[test]
fn a_client_takes_nothing_before_the_answer_and_waits_five_seconds_for_it() {
    for (packet, kind) in [
        (ServerPacket::Sequenced(b""), b'S'),
        (ServerPacket::Unsequenced(b""), b'U'),
        (ServerPacket::Heartbeat, b'H'),
        (ServerPacket::EndOfSession, b'Z'),
    ] {
        assert_eq!(client(&login()).on_packet(START_NS, packet), Err(ProtocolError::BeforeLogin(kind)));
    }
    let mut session = client(&login());
    assert_eq!(session.on_time(START_NS + 5 * SECOND_NS - 1), Due::Nothing);
    assert_eq!(session.deadline_ns(), START_NS + 5 * SECOND_NS);
    assert_eq!(session.on_time(START_NS + 5 * SECOND_NS), Due::Close(CloseReason::NoLogin));
    let refusal = ServerPacket::LoginRejected(LoginReject::SessionNotAvailable);
    let refused = Ok(ClientInput::Refused(LoginReject::SessionNotAvailable));
    assert_eq!(session.on_packet(START_NS, refusal), refused);
    assert_eq!((session.on_time(u64::MAX), session.deadline_ns()), (Due::Nothing, u64::MAX));
}

#[test]
fn a_client_with_a_short_timeout_has_heartbeats_more_often() {
    for (timeout_ms, heartbeat_ns) in
        [(None, SECOND_NS), (Some(15_000), SECOND_NS), (Some(1_000), 400_000_000), (Some(0), 400_000)]
    {
        let mut session = client(&LoginRequest { heartbeat_timeout_ms: timeout_ms, ..login() });
        assert!(session.on_packet(START_NS, accepted(1)).is_ok());
        assert_eq!(session.deadline_ns(), START_NS + heartbeat_ns);
        assert_eq!(session.on_time(START_NS + heartbeat_ns), Due::Heartbeat);
    }
}

#[test]
fn a_clock_that_seems_to_go_back_changes_nothing() {
    let mut session = server_logged_in(None);
    session.on_sent(START_NS + 3 * SECOND_NS);
    session.on_sent(START_NS);
    assert_eq!(session.deadline_ns(), START_NS + 4 * SECOND_NS);
    assert_eq!(session.on_time(0), Due::Nothing);
}

/// A server and a client connected by a line that loses nothing until it breaks.
struct Pair {
    server: ServerSession,
    client: ClientSession,
    server_heartbeats: u64,
    client_heartbeats: u64,
    steps: u64,
}

impl Pair {
    fn new(timeout_ms: Option<u32>) -> Self {
        let login = LoginRequest { heartbeat_timeout_ms: timeout_ms, ..login() };
        let mut client = client(&login);
        assert!(client.on_packet(START_NS, accepted(1)).is_ok());
        Self {
            server: server_logged_in(timeout_ms),
            client,
            server_heartbeats: 0,
            client_heartbeats: 0,
            steps: 0,
        }
    }

    /// Goes to the next deadline; returns which side closes, if one does.
    fn step(&mut self, is_broken: bool) -> (u64, Option<&'static str>) {
        self.steps += 1;
        assert!(self.steps < 100_000, "a deadline at which nothing is due comes forever");
        let now_ns = self.server.deadline_ns().min(self.client.deadline_ns());
        match self.server.on_time(now_ns) {
            Due::Nothing => {}
            Due::Heartbeat => {
                self.server_heartbeats += 1;
                if !is_broken {
                    let taken = self.client.on_packet(now_ns, ServerPacket::Heartbeat);
                    assert_eq!(taken, Ok(ClientInput::Nothing));
                }
            }
            Due::Close(reason) => return (now_ns, Some(reason.label())),
        }
        match self.client.on_time(now_ns) {
            Due::Nothing => {}
            Due::Heartbeat => {
                self.client_heartbeats += 1;
                if !is_broken {
                    let taken = self.server.on_packet(now_ns, ClientPacket::Heartbeat);
                    assert_eq!(taken, Ok(ServerInput::Nothing));
                }
            }
            Due::Close(reason) => return (now_ns, Some(reason.label())),
        }
        (now_ns, None)
    }
}

#[test]
fn an_idle_pair_lives_on_heartbeats_until_the_line_breaks() {
    for timeout_ms in [None, Some(1_000), Some(15_000)] {
        let mut pair = Pair::new(timeout_ms);
        let mut now_ns = START_NS;
        while now_ns < START_NS + 3_600 * SECOND_NS {
            let (at_ns, closed) = pair.step(false);
            assert_eq!(closed, None, "{timeout_ms:?}");
            assert!(at_ns >= now_ns);
            now_ns = at_ns;
        }
        assert_eq!(pair.server_heartbeats, 3_600);
        assert!(pair.client_heartbeats >= 3_600);
        let broken_at_ns = now_ns;
        let (closed_at_ns, reason) = loop {
            if let (at_ns, Some(reason)) = pair.step(true) {
                break (at_ns, reason);
            }
        };
        assert_eq!(reason, "silent");
        assert!((1..=15 * SECOND_NS).contains(&(closed_at_ns - broken_at_ns)));
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Pass(u64),
    Sent,
    Packet(u8),
    Due,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..3 * SECOND_NS).prop_map(Step::Pass),
        Just(Step::Sent),
        prop::sample::select(b"LURO+".to_vec()).prop_map(Step::Packet),
        Just(Step::Due),
    ]
}

proptest! {
    /// Compared with a model that stores only times.
    #[test]
    fn heartbeats_and_closes_come_when_the_times_say(steps in prop::collection::vec(step(), 0..60)) {
        let mut session = server_logged_in(None);
        let (mut now_ns, mut sent_ns, mut heard_ns) = (START_NS, START_NS, START_NS);
        for step in steps {
            match step {
                Step::Pass(span_ns) => now_ns += span_ns,
                Step::Sent => {
                    session.on_sent(now_ns);
                    sent_ns = now_ns;
                }
                Step::Packet(kind) => {
                    let packet = match kind {
                        b'L' => ClientPacket::Login(login()),
                        b'U' => ClientPacket::Unsequenced(b"Q"),
                        b'R' => ClientPacket::Heartbeat,
                        b'O' => ClientPacket::Logout,
                        _ => ClientPacket::Debug(b""),
                    };
                    heard_ns = now_ns;
                    let taken = session.on_packet(now_ns, packet);
                    prop_assert_eq!(taken.is_err(), kind == b'L');
                    if kind == b'O' {
                        return Ok(());
                    }
                }
                Step::Due => {
                    let due = session.on_time(now_ns);
                    if now_ns - heard_ns >= 15 * SECOND_NS {
                        prop_assert_eq!(due, Due::Close(CloseReason::HeartbeatTimeout));
                    } else if now_ns - sent_ns >= SECOND_NS {
                        prop_assert_eq!(due, Due::Heartbeat);
                        sent_ns = now_ns;
                    } else {
                        prop_assert_eq!(due, Due::Nothing);
                    }
                }
            }
            prop_assert_eq!(session.deadline_ns(), (sent_ns + SECOND_NS).min(heard_ns + 15 * SECOND_NS));
        }
    }
}
