//! A scripted client, written once: a blocking socket for kernel drivers, a stream in the same runtime on the
//! simulator.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    time::Duration,
};

use weir_engine::net::{Address, Stream};
use weir_proto::{
    ouch::{Appendage, Cancel, ClientOrderId, Enter, Inbound, Outbound, Symbol},
    soup::{Deframer, LoginAccepted, LoginRequest, ServerPacket, UNSEQUENCED, encode_frame},
};

/// Longest wait for a server on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

enum End {
    Socket(TcpStream),
    Simulated(Stream),
}

/// A received packet, without a borrow of its buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    Accepted {
        session: String,
        next: u64,
    },
    Rejected(u8),
    Sequenced(Vec<u8>),
    Heartbeat,
    EndOfSession,
    Debug(Vec<u8>),
    /// The end of the connection, with an end of stream.
    End,
    /// The end of the connection, with a reset.
    Reset,
}

/// A connection to the server.
pub struct Client {
    end: End,
    deframer: Deframer,
    input: Vec<u8>,
    taken: usize,
}

impl Client {
    pub async fn connect(address: &Address, is_simulated: bool) -> Self {
        if is_simulated {
            return Self::simulated(Stream::connect(address).await.expect("it listens"));
        }
        let Address::Tcp(address) = address else { panic!("{address} is no TCP address") };
        let socket = TcpStream::connect(address).expect("it listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        socket.set_nodelay(true).expect("a socket");
        Self::over(End::Socket(socket))
    }

    pub fn simulated(stream: Stream) -> Self {
        Self::over(End::Simulated(stream))
    }

    fn over(end: End) -> Self {
        Self { end, deframer: Deframer::new(1024), input: Vec::new(), taken: 0 }
    }

    pub async fn try_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.end {
            End::Socket(socket) => socket.write_all(bytes),
            End::Simulated(stream) => {
                stream.send_slice(bytes).await?;
                stream.flush().await
            }
        }
    }

    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_write(bytes.as_ref()).await.expect("the server listens");
    }

    /// Sends a message in a frame.
    pub async fn send(&mut self, message: &Inbound<'_>) {
        self.write(framed(message)).await;
    }

    /// Ends our direction.
    pub async fn shutdown(&mut self) {
        match &mut self.end {
            End::Socket(socket) => socket.shutdown(Shutdown::Write).expect("open"),
            End::Simulated(stream) => stream.shutdown().await.expect("open"),
        }
    }

    /// Receives at most this many bytes; 0 at the end.
    pub async fn read(&mut self, bytes_max: usize) -> io::Result<usize> {
        self.input.drain(..std::mem::take(&mut self.taken));
        match &mut self.end {
            End::Socket(socket) => {
                let mut bytes = vec![0; bytes_max];
                let count = loop {
                    match socket.read(&mut bytes) {
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        outcome => break outcome?,
                    }
                };
                self.input.extend_from_slice(&bytes[..count]);
                Ok(count)
            }
            End::Simulated(stream) => {
                let lease = stream.recv().await?;
                let bytes: &[u8] = lease.as_deref().unwrap_or_default();
                self.input.extend_from_slice(bytes);
                Ok(bytes.len())
            }
        }
    }

    /// The next packet that has already been received.
    pub fn held(&mut self) -> Option<Packet> {
        let mut rest = &self.input[self.taken..];
        let before = rest.len();
        let frame = self.deframer.next(&mut rest).expect("the server keeps to the protocol");
        let packet = frame.map(|frame| match ServerPacket::parse(frame).expect("a packet of a server") {
            ServerPacket::LoginAccepted(LoginAccepted { session, next_sequence }) => {
                Packet::Accepted { session: session.to_string(), next: next_sequence }
            }
            ServerPacket::LoginRejected(reason) => Packet::Rejected(reason.code()),
            ServerPacket::Sequenced(message) => Packet::Sequenced(message.to_vec()),
            ServerPacket::Unsequenced(_) => panic!("nothing is sent that way"),
            ServerPacket::Heartbeat => Packet::Heartbeat,
            ServerPacket::EndOfSession => Packet::EndOfSession,
            ServerPacket::Debug(text) => Packet::Debug(text.to_vec()),
        });
        self.taken += before - rest.len();
        packet
    }

    /// The next packet of any kind.
    pub async fn next(&mut self) -> Packet {
        loop {
            if let Some(packet) = self.held() {
                return packet;
            }
            match self.read(64 << 10).await {
                Ok(0) => return Packet::End,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Packet::Reset,
                Err(error) => panic!("no packet: {error}"),
            }
        }
    }

    /// The next packet that is not a heartbeat.
    pub async fn packet(&mut self) -> Packet {
        loop {
            match self.next().await {
                Packet::Heartbeat => {}
                packet => return packet,
            }
        }
    }

    /// The next message of the stream, as received.
    pub async fn raw_message(&mut self) -> Vec<u8> {
        match self.packet().await {
            Packet::Sequenced(message) => message,
            other => panic!("{other:?} instead of a message"),
        }
    }

    /// The next message of the stream.
    pub async fn message(&mut self) -> Outbound {
        let raw = self.raw_message().await;
        Outbound::decode(&raw).expect("a message").0
    }

    /// This many messages of the stream, as received.
    pub async fn messages(&mut self, count: usize) -> Vec<Vec<u8>> {
        let mut messages = Vec::with_capacity(count);
        while messages.len() < count {
            messages.push(self.raw_message().await);
        }
        messages
    }

    /// Checks that only the end of the connection comes.
    pub async fn expect_end(&mut self) {
        let end = self.packet().await;
        assert!(matches!(end, Packet::End | Packet::Reset), "{end:?} instead of the end");
    }

    /// A text arrives that acknowledges nothing, and ends with these words.
    pub async fn expect_text(&mut self, words: &str) {
        match self.packet().await {
            Packet::Debug(text) => {
                let text = String::from_utf8_lossy(&text);
                assert!(text.ends_with(words), "{text:?} instead of {words}");
            }
            other => panic!("{other:?} instead of a text"),
        }
    }

    /// The connection ends with a text that says why.
    pub async fn expect_cut_off(&mut self, kind: &str) {
        self.expect_text(kind).await;
        self.expect_end().await;
    }

    /// Logs in; returns the session and the next number, or the letter of the refusal.
    pub async fn log_in(&mut self, account: &str, sequence: u64) -> Result<(String, u64), u8> {
        self.log_in_with(&login(account, sequence)).await
    }

    pub async fn log_in_with(&mut self, login: &LoginRequest) -> Result<(String, u64), u8> {
        let mut bytes = Vec::new();
        login.encode(&mut bytes);
        self.write(bytes).await;
        match self.packet().await {
            Packet::Accepted { session, next } => Ok((session, next)),
            Packet::Rejected(reason) => Err(reason),
            other => panic!("{other:?} instead of an answer to a login"),
        }
    }

    /// Ends the connection with a reset.
    pub fn reset(self) {
        match self.end {
            End::Socket(socket) => {
                rustix::net::sockopt::set_socket_linger(&socket, Some(Duration::ZERO)).expect("a socket")
            }
            End::Simulated(stream) => stream.abort(),
        }
    }
}

/// A login with the demonstration password.
pub fn login(account: &str, sequence: u64) -> LoginRequest {
    LoginRequest {
        username: account.parse().expect("a name"),
        password: "DEMO".parse().expect("a password"),
        session: "".parse().expect("blank"),
        sequence,
        heartbeat_timeout_ms: None,
    }
}

pub fn encoded(login: &LoginRequest) -> Vec<u8> {
    let mut bytes = Vec::new();
    login.encode(&mut bytes);
    bytes
}

/// A message in its frame.
pub fn framed(message: &Inbound<'_>) -> Vec<u8> {
    let (mut raw, mut bytes) = (Vec::new(), Vec::new());
    message.encode(&mut raw);
    encode_frame(UNSEQUENCED, &raw, &mut bytes);
    bytes
}

/// An order that a venue accepts.
pub fn order(number: u32) -> Enter {
    Enter {
        user_ref_num: number,
        side: b'B',
        quantity: 100,
        symbol: "WEIR".parse::<Symbol>().expect("a symbol"),
        price: 1_000_000,
        time_in_force: b'0',
        display: b'Y',
        capacity: b'A',
        intermarket_sweep: b'N',
        cross_type: b'N',
        client_order_id: format!("O{number}").parse::<ClientOrderId>().expect("an identifier"),
    }
}

pub fn enter(number: u32) -> Inbound<'static> {
    Inbound::Enter(order(number), Appendage::EMPTY)
}

pub fn cancel(number: u32) -> Inbound<'static> {
    Inbound::Cancel(Cancel { user_ref_num: number, quantity: 0 })
}

/// The order number in an answer.
#[track_caller]
pub fn accepted(message: &Outbound) -> u32 {
    match message {
        Outbound::Accepted(accepted) => accepted.user_ref_num,
        other => panic!("{other:?} instead of an acceptance"),
    }
}
