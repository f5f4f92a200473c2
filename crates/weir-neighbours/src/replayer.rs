//! A client of the gateway that places orders and stores every answer. Later the same client requests all of them
//! again and again, at full speed or at a fixed rate. The replayed messages are compared with the live ones byte by
//! byte: a missing, duplicate, changed or misplaced message differs from the expected one. A server that stays silent
//! for longer than its heartbeat interval is an error too.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, BufWriter, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use weir_proto::{
    ouch::{Accepted, Appendage, Enter, Inbound},
    soup::{
        CLIENT_HEARTBEAT_FRAME, Deframer, HEADER_BYTES, LOGIN_ACCEPTED, LOGIN_REJECTED, LoginAccepted,
        LoginReject, LoginRequest, Name, SEQUENCED, SERVER_HEARTBEAT, UNSEQUENCED, encode_frame, header,
    },
};

/// Orders in flight while the journal is filled.
const IN_FLIGHT_MAX: u32 = 512;

/// Longest accepted message.
const PAYLOAD_BYTES_MAX: usize = 1024;

/// Most bytes per read, at full speed.
const READ_BYTES_MAX: usize = 64 << 10;

/// Time between two reads at a fixed rate.
const SIP: Duration = Duration::from_millis(100);

/// A logged-in client sends something at least once a second.
const HEARTBEAT: Duration = Duration::from_millis(900);

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(10);

/// Longest wait for an account whose last connection the gateway still considers open, and the time between two
/// attempts.
const LOGIN_MAX: Duration = Duration::from_secs(5);
const LOGIN_AGAIN: Duration = Duration::from_millis(20);

/// An otherwise silent server sends a heartbeat after at most a second and a half. The client gets half a second more
/// because it may share its CPU.
const SILENCE_MAX: Duration = Duration::from_secs(2);

/// Where the client logs in, and with which account.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Login<'a> {
    /// The gateway.
    pub(crate) address: SocketAddr,
    /// Its account.
    pub(crate) account: &'a str,
}

/// A logged-in connection.
struct Connection {
    stream: TcpStream,
    deframer: Deframer,
    buffer: Vec<u8>,
    spoke: Instant,
    heard: Instant,
    /// The longest time during which nothing could be read.
    silence_max: Duration,
}

impl Connection {
    /// Logs in and asks for everything from the first message on.
    fn log_in(login: Login<'_>) -> Result<Self, String> {
        let until = Instant::now() + LOGIN_MAX;
        loop {
            match Self::try_log_in(login).map_err(|error| format!("{}: {error}", login.account))? {
                Ok(connection) => return Ok(connection),
                Err(LoginReject::SessionNotAvailable) if Instant::now() < until => thread::sleep(LOGIN_AGAIN),
                Err(reject) => return Err(format!("the login of {} was refused: {reject}", login.account)),
            }
        }
    }

    fn try_log_in(login: Login<'_>) -> io::Result<Result<Self, LoginReject>> {
        let wrong = |what: &str| io::Error::new(ErrorKind::InvalidData, what.to_owned());
        let request = LoginRequest {
            username: login.account.parse().map_err(|_| wrong("it is no account"))?,
            password: "DEMO".parse().map_err(|_| wrong("it is no password"))?,
            session: Name::BLANK,
            sequence: 1,
            heartbeat_timeout_ms: None,
        };
        let mut stream = TcpStream::connect(login.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut frame = Vec::new();
        request.encode(&mut frame);
        stream.write_all(&frame)?;
        let mut start = [0; HEADER_BYTES];
        stream.read_exact(&mut start)?;
        let payload_bytes = usize::from(u16::from_be_bytes([start[0], start[1]])).saturating_sub(1);
        let mut payload = vec![0; payload_bytes.min(PAYLOAD_BYTES_MAX)];
        stream.read_exact(&mut payload)?;
        match start[2] {
            LOGIN_ACCEPTED => {
                let accepted = LoginAccepted::parse(&payload).map_err(|error| wrong(&error.to_string()))?;
                if accepted.next_sequence != 1 {
                    return Err(wrong("the stream does not begin with its first message"));
                }
            }
            LOGIN_REJECTED => {
                return LoginReject::parse(&payload).map(Err).map_err(|error| wrong(&error.to_string()));
            }
            _ => return Err(wrong("a login is not answered with a login")),
        }
        let now = Instant::now();
        Ok(Ok(Self {
            stream,
            deframer: Deframer::new(PAYLOAD_BYTES_MAX),
            buffer: vec![0; READ_BYTES_MAX],
            spoke: now,
            heard: now,
            silence_max: Duration::ZERO,
        }))
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.spoke = Instant::now();
        self.stream.write_all(bytes).map_err(|error| format!("the gateway takes nothing: {error}"))
    }

    /// Sends a heartbeat if one is due.
    fn beat(&mut self) -> Result<(), String> {
        if self.spoke.elapsed() < HEARTBEAT { Ok(()) } else { self.send(&CLIENT_HEARTBEAT_FRAME) }
    }

    /// Reads at most this many bytes and hands over the complete frames. Without a wait, or after a timed-out one, it
    /// is no error if there is nothing to read.
    fn receive(
        &mut self,
        bytes_max: usize,
        mut take: impl FnMut(u8, &[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        let buffer = &mut self.buffer[..bytes_max.min(READ_BYTES_MAX)];
        let count = match self.stream.read(buffer) {
            Ok(0) => return Err("the gateway ended the connection".to_owned()),
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(());
            }
            Err(error) => return Err(format!("nothing can be read: {error}")),
        };
        let now = Instant::now();
        self.silence_max = self.silence_max.max(now - self.heard);
        self.heard = now;
        let mut input = &buffer[..count];
        while let Some(frame) =
            self.deframer.next(&mut input).map_err(|error| format!("the gateway sent {error}"))?
        {
            take(frame.kind, frame.payload)?;
        }
        Ok(())
    }
}

/// Places this many orders and writes the answers to a file, in order of arrival.
fn place_orders(login: Login<'_>, orders: u32, live: &Path) -> Result<(), String> {
    let mut connection = Connection::log_in(login)?;
    let failed = |error: io::Error| format!("{}: {error}", live.display());
    let mut file = BufWriter::new(File::create(live).map_err(failed)?);
    let (mut sent, mut answered) = (0, 0);
    let mut batch = Vec::new();
    while answered < orders {
        batch.clear();
        while sent < orders && sent - answered < IN_FLIGHT_MAX {
            sent += 1;
            order(sent, &mut batch);
        }
        if !batch.is_empty() {
            connection.send(&batch)?;
        }
        let before = answered;
        connection.receive(READ_BYTES_MAX, |kind, payload| match (kind, payload.first()) {
            (SEQUENCED, Some(&Accepted::KIND)) => {
                answered += 1;
                file.write_all(&header(SEQUENCED, payload.len())).map_err(failed)?;
                file.write_all(payload).map_err(failed)
            }
            (SERVER_HEARTBEAT, _) => Ok(()),
            _ => Err(format!("order {} was not accepted", answered + 1)),
        })?;
        if before == answered && connection.heard.elapsed() >= PATIENCE {
            return Err("the gateway answers no more".to_owned());
        }
    }
    file.flush().map_err(failed)
}

/// Appends an order in its frame.
fn order(number: u32, out: &mut Vec<u8>) {
    let enter = Enter {
        user_ref_num: number,
        side: b'B',
        quantity: 100,
        symbol: "WEIR".parse().unwrap_or_default(),
        price: 1_000_000,
        time_in_force: b'0',
        display: b'Y',
        capacity: b'P',
        intermarket_sweep: b'N',
        cross_type: b'N',
        client_order_id: format!("{number}").parse().unwrap_or_default(),
    };
    let mut message = Vec::with_capacity(Enter::BYTES);
    Inbound::Enter(enter, Appendage::EMPTY).encode(&mut message);
    encode_frame(UNSEQUENCED, &message, out);
}

/// Places this many orders, and requests their answers again and again without end: at full speed, or at most at this
/// many bytes a second.
pub(crate) fn replay_again(
    login: Login<'_>,
    orders: u32,
    scratch: &Path,
    bytes_per_second: Option<u32>,
    ready: impl FnOnce() -> io::Result<()>,
) -> Result<String, String> {
    let live = scratch.join("live");
    place_orders(login, orders, &live)?;
    ready().map_err(|error| format!("no server listens: {error}"))?;
    loop {
        replay(login, orders, &live, bytes_per_second)?;
    }
}

/// Requests all messages once.
fn replay(login: Login<'_>, messages: u32, live: &Path, bytes_per_second: Option<u32>) -> Result<(), String> {
    let file = File::open(live).map_err(|error| format!("{}: {error}", live.display()))?;
    let mut again = Again::of(BufReader::with_capacity(READ_BYTES_MAX, file));
    let mut connection = Connection::log_in(login)?;
    // Short waits, so that the client's own heartbeats continue.
    let waits = connection.stream.set_read_timeout(Some(HEARTBEAT / 2));
    waits.map_err(|error| format!("the connection of {}: {error}", login.account))?;
    let sip_bytes = bytes_per_second.map(|bytes| (bytes as usize / 10).max(1));
    let mut next = Instant::now();
    while again.messages < messages {
        let bytes_max = sip_bytes.unwrap_or(READ_BYTES_MAX);
        connection.receive(bytes_max, |kind, payload| again.take(kind, payload))?;
        connection.beat()?;
        let silence = connection.silence_max.max(connection.heard.elapsed());
        if silence > SILENCE_MAX {
            return Err(format!("the gateway said nothing for {silence:?} after message {}", again.messages));
        }
        if sip_bytes.is_some() {
            next += SIP;
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    }
    again.expect_end()
}

/// Compares replayed messages with the live ones.
struct Again<R> {
    live: R,
    expected: Vec<u8>,
    messages: u32,
}

impl<R: BufRead> Again<R> {
    fn of(live: R) -> Self {
        Self { live, expected: Vec::new(), messages: 0 }
    }

    fn take(&mut self, kind: u8, payload: &[u8]) -> Result<(), String> {
        match kind {
            SEQUENCED => self.compare(payload),
            SERVER_HEARTBEAT => Ok(()),
            other => Err(format!("{:?} among the messages", char::from(other))),
        }
    }

    fn compare(&mut self, payload: &[u8]) -> Result<(), String> {
        self.messages += 1;
        self.expected.resize(HEADER_BYTES + payload.len(), 0);
        let is_there = self.live.read_exact(&mut self.expected).is_ok();
        let (start, rest) = self.expected.split_at(HEADER_BYTES);
        if is_there && start == header(SEQUENCED, payload.len()).as_slice() && rest == payload {
            return Ok(());
        }
        Err(format!("message {} is not what came live", self.messages))
    }

    /// Checks that no message is missing.
    fn expect_end(&mut self) -> Result<(), String> {
        match self.live.fill_buf() {
            Ok([]) => Ok(()),
            Ok(_) => Err(format!("only {} messages came again", self.messages)),
            Err(error) => Err(format!("what came live cannot be read: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_proto::soup::{END_OF_SESSION, ServerPacket};

    use super::*;

    fn live(messages: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        messages.iter().for_each(|message| encode_frame(SEQUENCED, message, &mut bytes));
        bytes
    }

    #[test]
    fn the_same_messages_in_the_same_order_are_a_replay_and_heartbeats_belong_to_none() {
        let live = live(&[b"one", b"three"]);
        let mut again = Again::of(live.as_slice());
        assert_eq!(again.take(SEQUENCED, b"one"), Ok(()));
        assert_eq!(again.take(SERVER_HEARTBEAT, b""), Ok(()));
        assert!(again.expect_end().is_err_and(|reason| reason.contains("only 1")));
        assert_eq!(again.take(SEQUENCED, b"three"), Ok(()));
        assert_eq!((again.expect_end(), again.messages), (Ok(()), 2));
    }

    #[test]
    fn a_message_that_is_changed_missing_doubled_or_too_many_is_found() {
        let list = live(&[b"one", b"two", b"six"]);
        let second = |message: &[u8]| {
            let mut again = Again::of(list.as_slice());
            again.take(SEQUENCED, b"one").expect("it is the first");
            again.take(SEQUENCED, message)
        };
        assert_eq!(second(b"two"), Ok(()));
        for wrong in [&b"twO"[..], b"six", b"one", b"tw", b"twos", b""] {
            assert_eq!(second(wrong), Err("message 2 is not what came live".to_owned()), "{wrong:?}");
        }
        // The remainder of the last comparison is not a live message.
        let mut again = Again::of(&list[..6]);
        again.take(SEQUENCED, b"one").expect("it is the first");
        assert!(again.take(SEQUENCED, b"one").is_err());
        assert!(again.take(END_OF_SESSION, b"").is_err_and(|reason| reason.contains("'Z'")));
    }

    #[test]
    fn an_order_is_what_a_gateway_takes() {
        let mut bytes = Vec::new();
        order(7, &mut bytes);
        let mut deframer = Deframer::new(PAYLOAD_BYTES_MAX);
        let frame = deframer.next(&mut &bytes[..]).expect("it is a frame").expect("it is whole");
        assert_eq!(frame.kind, UNSEQUENCED);
        let Ok(Inbound::Enter(enter, _)) = Inbound::decode(frame.payload) else { panic!("it is an order") };
        assert_eq!((enter.user_ref_num, enter.quantity, enter.symbol.as_str()), (7, 100, "WEIR"));
        // The other direction uses different packets.
        assert!(matches!(ServerPacket::parse(frame), Ok(ServerPacket::Unsequenced(_))));
    }
}
