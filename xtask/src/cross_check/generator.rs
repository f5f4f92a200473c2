//! A load generator that shares no code with `weir load`: one thread, epoll, nonblocking sockets, and messages of 64
//! bytes that are compared byte by byte when they come back.
//!
//! It exists so that a bug in the laboratory's generator does not affect the check. It has no options, no histogram
//! and no recovery: any error ends the measurement with a message.

use std::{
    collections::VecDeque,
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

use weir_stats::random::Random;
use weir_sys::readiness::{EpollEvent, epoll_add, epoll_create, epoll_wait};

pub const MESSAGE_BYTES: usize = 64;

/// Longest wait for answers after the last start of a slice.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// Most events per call.
const EVENTS_MAX: usize = 256;

/// Counts of one slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SliceCount {
    /// Messages that came back unchanged.
    pub answered: u64,
    /// Starts that were due in the slice.
    pub intended: u64,
    /// From the first start to the last answer.
    pub length: Duration,
}

impl SliceCount {
    /// Whether at least 99 % of the starts were made in the slice.
    pub fn kept_its_rate(&self) -> bool {
        self.answered * 100 >= self.intended * 99
    }
}

/// The schedule of messages.
pub struct Starts {
    pub mean_gap_ns: f64,
    /// Whether gaps are exponential, as for independent users; otherwise they are equal.
    pub is_poisson: bool,
    pub random: Random,
}

impl Starts {
    fn gap(&mut self) -> Duration {
        let gap_ns =
            if self.is_poisson { self.random.exponential(self.mean_gap_ns) } else { self.mean_gap_ns };
        Duration::from_nanos(gap_ns as u64)
    }
}

struct Connection {
    stream: TcpStream,
    /// Number of messages sent before the one in flight.
    sequence: u64,
    is_in_flight: bool,
    received: [u8; MESSAGE_BYTES],
    received_bytes: usize,
}

/// Connections to one server.
pub struct Generator {
    epoll: OwnedFd,
    connections: Vec<Connection>,
    /// Connections without a message in flight, in the order in which they became free.
    free: VecDeque<usize>,
    answered: u64,
}

impl Generator {
    pub fn connect(address: SocketAddr, connections: usize) -> Result<Self, String> {
        let failed = |error| format!("connecting to {address}: {error}");
        let epoll = epoll_create().map_err(failed)?;
        let mut opened = Vec::with_capacity(connections);
        for place in 0..connections {
            let stream = TcpStream::connect(address).map_err(failed)?;
            stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true)).map_err(failed)?;
            epoll_add(
                epoll.as_fd(),
                stream.as_fd(),
                rustix::event::epoll::EventFlags::IN.bits(),
                place as u64,
            )
            .map_err(failed)?;
            opened.push(Connection {
                stream,
                sequence: 0,
                is_in_flight: false,
                received: [0; MESSAGE_BYTES],
                received_bytes: 0,
            });
        }
        Ok(Self { epoll, connections: opened, free: (0..connections).collect(), answered: 0 })
    }

    /// Starts messages on schedule, independent of the server, on a free connection. A start without a free
    /// connection waits; one that still waits at the end of the slice is not made.
    pub fn open_loop(&mut self, starts: &mut Starts, length: Duration) -> Result<SliceCount, String> {
        self.answered = 0;
        let began = Instant::now();
        let end = began + length;
        let (mut next, mut due, mut intended) = (began + starts.gap(), 0_u64, 0_u64);
        loop {
            let now = Instant::now();
            while next <= now.min(end) {
                (due, intended, next) = (due + 1, intended + 1, next + starts.gap());
            }
            while due > 0
                && let Some(place) = self.free.pop_front()
            {
                self.send(place)?;
                due -= 1;
            }
            if now >= end {
                break;
            }
            let until = if due > 0 { end } else { next.min(end) };
            self.receive(until.saturating_duration_since(Instant::now()))?;
        }
        self.all_answers()?;
        Ok(SliceCount { answered: self.answered, intended, length: began.elapsed() })
    }

    /// Every connection sends its next message when the previous one has come back.
    pub fn closed_loop(&mut self, length: Duration) -> Result<SliceCount, String> {
        self.answered = 0;
        let (began, mut sent) = (Instant::now(), 0);
        while began.elapsed() < length {
            while let Some(place) = self.free.pop_front() {
                self.send(place)?;
                sent += 1;
            }
            self.receive(length.saturating_sub(began.elapsed()))?;
        }
        self.all_answers()?;
        Ok(SliceCount { answered: self.answered, intended: sent, length: began.elapsed() })
    }

    fn all_answers(&mut self) -> Result<(), String> {
        let limit = Instant::now() + ANSWERS_WITHIN;
        while self.free.len() < self.connections.len() {
            let left = limit.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let missing = self.connections.len() - self.free.len();
                return Err(format!("{missing} answers did not come within {} s", ANSWERS_WITHIN.as_secs()));
            }
            self.receive(left)?;
        }
        Ok(())
    }

    fn send(&mut self, place: usize) -> Result<(), String> {
        let connection = &mut self.connections[place];
        let bytes = message(place, connection.sequence);
        // A message is far smaller than an empty socket buffer.
        match connection.stream.write(&bytes) {
            Ok(MESSAGE_BYTES) => {}
            Ok(sent) => return Err(format!("connection {place}: the kernel took {sent} bytes of a message")),
            Err(error) => return Err(format!("connection {place}: sending: {error}")),
        }
        (connection.is_in_flight, connection.received_bytes) = (true, 0);
        Ok(())
    }

    /// Receives what has arrived, after waiting for it at most for `limit`.
    fn receive(&mut self, limit: Duration) -> Result<(), String> {
        let mut events = [EpollEvent { events: 0, u64: 0 }; EVENTS_MAX];
        let count = epoll_wait(self.epoll.as_fd(), &mut events, Some(limit));
        let count = count.map_err(|error| format!("waiting for answers: {error}"))?;
        for event in &events[..count] {
            self.take(event.u64 as usize)?;
        }
        Ok(())
    }

    fn take(&mut self, place: usize) -> Result<(), String> {
        let connection = &mut self.connections[place];
        let mut bytes = [0; 2 * MESSAGE_BYTES];
        let count = match connection.stream.read(&mut bytes) {
            Ok(0) => return Err(format!("connection {place}: the server closed it")),
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(());
            }
            Err(error) => return Err(format!("connection {place}: receiving: {error}")),
        };
        let filled = connection.received_bytes + count;
        if !connection.is_in_flight || filled > MESSAGE_BYTES {
            return Err(format!("connection {place}: the server sent bytes that nobody sent to it"));
        }
        connection.received[connection.received_bytes..filled].copy_from_slice(&bytes[..count]);
        connection.received_bytes = filled;
        if filled < MESSAGE_BYTES {
            return Ok(());
        }
        verify(place, connection.sequence, &connection.received)?;
        connection.sequence += 1;
        connection.is_in_flight = false;
        self.free.push_back(place);
        self.answered += 1;
        Ok(())
    }
}

/// The bytes of a message: each word follows from the connection, the message number and its position, so that an
/// answer to another message, or of another connection, is detected.
fn message(connection: usize, sequence: u64) -> [u8; MESSAGE_BYTES] {
    let mut bytes = [0; MESSAGE_BYTES];
    for (place, word) in (0_u64..).zip(bytes.chunks_exact_mut(8)) {
        let number = (connection as u64) << 48 | sequence << 3 | place;
        // An odd factor and a rotation are bijective: all words differ.
        word.copy_from_slice(&number.wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(29).to_le_bytes());
    }
    bytes
}

fn verify(connection: usize, sequence: u64, received: &[u8; MESSAGE_BYTES]) -> Result<(), String> {
    let expected = message(connection, sequence);
    let wrong = received.iter().zip(&expected).position(|(one, other)| one != other);
    match wrong {
        None => Ok(()),
        Some(place) => Err(format!(
            "connection {connection}, message {sequence}: byte {place} came back as {:#04x} and not as {:#04x}",
            received[place], expected[place]
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        net::TcpListener,
        thread::{self, JoinHandle},
    };

    use super::*;

    /// A server for one connection, which answers with the bytes changed by `answer` until that returns `false`.
    fn server(mut answer: impl FnMut(&mut Vec<u8>) -> bool + Send + 'static) -> (SocketAddr, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let serve = move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut bytes = [0; MESSAGE_BYTES];
            while stream.read_exact(&mut bytes).is_ok() {
                let mut reply = bytes.to_vec();
                if !answer(&mut reply) || stream.write_all(&reply).is_err() {
                    return;
                }
            }
        };
        (address, thread::spawn(serve))
    }

    fn starts(mean_gap_ns: f64, is_poisson: bool) -> Starts {
        Starts { mean_gap_ns, is_poisson, random: Random::seeded(3) }
    }

    #[test]
    fn a_server_that_sends_everything_back_keeps_the_rate() {
        let (address, server) = server(|_| true);
        let mut generator = Generator::connect(address, 1).expect("a connection");
        // One start in a slice of 40 ms: even a thread that gets its CPU only at the end of the slice makes it.
        let count =
            generator.open_loop(&mut starts(30e6, false), Duration::from_millis(40)).expect("no error");
        assert_eq!((count.answered, count.intended, count.kept_its_rate()), (1, 1, true));
        let count = generator.closed_loop(Duration::from_millis(20)).expect("no error");
        assert!(count.answered > 0 && count.answered == count.intended, "{count:?}");
        drop(generator);
        server.join().expect("the server ends with its connection");
    }

    #[test]
    fn a_start_for_which_no_connection_is_free_is_missed() {
        let slice = Duration::from_millis(20);
        let (address, server) = server(move |_| {
            // After its first message it waits for twice the slice, so the slice is over.
            let received = Instant::now();
            while received.elapsed() < 2 * slice {
                thread::yield_now();
            }
            true
        });
        let mut generator = Generator::connect(address, 1).expect("a connection");
        let count = generator.open_loop(&mut starts(1e6, false), slice).expect("the answer comes at last");
        assert_eq!((count.answered, count.intended, count.kept_its_rate()), (1, 20, false));
        drop(generator);
        server.join().expect("the server ends with its connection");
    }

    #[test]
    fn a_wrong_byte_is_named() {
        let mut answered = 0;
        let (address, server) = server(move |reply| {
            answered += 1;
            reply[9] ^= u8::from(answered == 3);
            true
        });
        let mut generator = Generator::connect(address, 1).expect("a connection");
        let error = generator.closed_loop(Duration::from_secs(5)).expect_err("a byte is wrong");
        assert!(error.starts_with("connection 0, message 2: byte 9 came back as 0x"), "{error}");
        drop(generator);
        server.join().expect("the server ends with its connection");
    }

    #[test]
    fn bytes_that_nobody_sent_are_an_error() {
        let (address, server) = server(|reply| {
            reply.push(7);
            true
        });
        let mut generator = Generator::connect(address, 1).expect("a connection");
        let error = generator.closed_loop(Duration::from_secs(5)).expect_err("a byte too many");
        assert_eq!(error, "connection 0: the server sent bytes that nobody sent to it");
        drop(generator);
        server.join().expect("the server ends with its connection");
    }

    #[test]
    fn a_server_that_dies_is_an_error_and_no_short_slice() {
        let mut answered = 0;
        let (address, server) = server(move |_| {
            answered += 1;
            answered < 3
        });
        let mut generator = Generator::connect(address, 1).expect("a connection");
        let error = generator.closed_loop(Duration::from_secs(5)).expect_err("the server has ended");
        assert_eq!(error, "connection 0: the server closed it");
        server.join().expect("it has ended");
        let error = Generator::connect(address, 1).err().expect("nobody listens");
        assert!(error.starts_with(&format!("connecting to {address}: ")), "{error}");
    }

    #[test]
    fn no_two_messages_are_alike() {
        let all: BTreeSet<[u8; MESSAGE_BYTES]> = (0..50)
            .flat_map(|connection| (0..50).map(move |sequence| message(connection, sequence)))
            .collect();
        assert_eq!(all.len(), 2_500);
        assert!(verify(3, 4, &message(3, 4)).is_ok());
        assert!(verify(3, 4, &message(4, 4)).is_err() && verify(3, 4, &message(3, 5)).is_err());
    }

    #[test]
    fn gaps_have_the_mean_that_is_asked_for() {
        let mut poisson = starts(20_000.0, true);
        let sum: Duration = (0..20_000).map(|_| poisson.gap()).sum();
        let mean_ns = sum.as_nanos() as f64 / 20_000.0;
        // Four standard errors of the mean of exponential gaps.
        assert!((mean_ns - 20_000.0).abs() < 4.0 * 20_000.0 / 20_000.0_f64.sqrt(), "{mean_ns}");
        assert_eq!(starts(20_000.0, false).gap(), Duration::from_nanos(20_000));
    }
}
