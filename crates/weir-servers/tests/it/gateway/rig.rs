//! Clients, exchanges and gateways for the tests of the gateway.

use std::{
    collections::VecDeque,
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    sync::{
        atomic::{AtomicU32, Ordering},
        mpsc::Receiver,
    },
    time::{Duration, Instant},
};

use weir_engine::{Config, Driver, Runtime, StartError, net::Address, serve::ServerConfig};
use weir_proto::{
    ouch::{
        Accepted, Appendage, Cancel, ClientOrderId, Enter, Inbound, Outbound, Replace, Symbol,
        inbound_user_ref_num,
    },
    soup::{
        CLIENT_HEARTBEAT, DEBUG, Deframer, LOGOUT, LoginAccepted, LoginReject, LoginRequest, SEQUENCED,
        SERVER_HEARTBEAT, SERVER_HEARTBEAT_FRAME, UNSEQUENCED, encode_frame,
    },
};
use weir_servers::{
    exchange::{self, Mode},
    gateway::{GatewayConfig, GatewayServer, VenueCancels},
    journal::Level,
    metrics::Source,
    orders::{AccountConfig, Event, OrdersConfig, OrdersServer, demo_accounts},
};
use weir_trading::WhenFull;

/// Longest wait on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The drivers that a gateway runs on, as far as the kernel allows them.
pub fn drivers() -> Vec<Driver> {
    let all = [Driver::Uring, Driver::Epoll, Driver::Poll, Driver::Select];
    all.into_iter().filter(|driver| is_there(*driver)).collect()
}

fn is_there(driver: Driver) -> bool {
    let Err(StartError::Refused { refusal, .. }) = Runtime::new(&Config::with_driver(driver)) else {
        return true;
    };
    println!("skipped: {driver}: {refusal}");
    let required = std::env::var("WEIR_REQUIRE_DRIVERS").unwrap_or_default();
    assert!(!required.split(',').any(|name| name.trim() == driver.name()), "{driver} is required");
    false
}

/// Runs a test for each case at the same time: tests mostly wait.
pub fn beside_each_other<T: Send>(cases: impl IntoIterator<Item = T>, test: impl Fn(T) + Sync) {
    let test = &test;
    std::thread::scope(|scope| {
        for case in cases {
            scope.spawn(move || test(case));
        }
    });
}

/// A port of the system's choice on a loopback address that is given only once. On 127.0.0.1, a server of another test
/// may get the port of a venue that is down.
pub fn loopback() -> Address {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let [.., high, low] = GIVEN.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    // 127.0.0.0/16 has the address that all others use.
    SocketAddr::from(([127, 1 + high % 254, low, 1 + (std::process::id() % 254) as u8], 0)).into()
}

pub fn server(driver: Driver, workers: usize) -> ServerConfig {
    let mut config = ServerConfig::new(Config::with_driver(driver), loopback());
    config.workers = workers;
    config
}

/// An exchange that accepts every order, with the gateway's accounts.
pub fn exchange(driver: Driver, listen: Address) -> OrdersServer {
    exchange_in(Mode::EchoAccept, driver, listen)
}

/// An exchange in this mode.
pub fn exchange_in(mode: Mode, driver: Driver, listen: Address) -> OrdersServer {
    let hash = demo_accounts(1).remove(0).password_hash;
    let account = |number: u32| AccountConfig {
        name: format!("G{number:05}").parse().expect("a name"),
        password_hash: hash.clone(),
        cancel_on_disconnect: false,
        cancel_after: Duration::ZERO,
        takeover: true,
    };
    let orders = OrdersConfig::new((1..=4).map(account).collect());
    let config = ServerConfig { listen, ..server(driver, 1) };
    exchange::start(config, orders, mode).expect("the driver runs here")
}

/// A configuration for this many accounts in front of an exchange whose orders end, with a journal in a folder.
pub fn strict(accounts: u32, venue: Address, folder: &Folder) -> GatewayConfig {
    let mut config = GatewayConfig {
        journal: Some((folder.0.clone(), Level::Os)),
        journal_segment_bytes: 64 << 10,
        ..GatewayConfig::demo(accounts, venue)
    };
    config.venues[0].limits.when_full = WhenFull::Refuse;
    config
}

/// A gateway that has logged in.
pub fn gateway(driver: Driver, workers: usize, config: GatewayConfig) -> GatewayServer {
    let gateway = GatewayServer::start(server(driver, workers), config).expect("the driver runs here");
    assert!(gateway.wait_for_upstreams(PATIENCE), "{:?}", gateway.control().upstreams());
    gateway
}

pub fn end_gateway(gateway: GatewayServer) {
    gateway.drain();
    gateway.join();
}

pub fn end_exchange(exchange: OrdersServer) {
    exchange.drain();
    exchange.join();
}

/// The state of a kill switch at one venue.
pub fn cancels(venue: &str, orders: u64, sent: u64, confirmed: u64) -> Vec<VenueCancels> {
    vec![VenueCancels { venue: venue.into(), orders, sent, confirmed, expired: 0 }]
}

/// The value of one of the gateway's counters.
pub fn counted(gateway: &GatewayServer, name: &str) -> u64 {
    let text = gateway.control().metrics();
    let count = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    count.unwrap_or_else(|| panic!("{name} is not in\n{text}"))
}

/// Waits until a condition holds.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::yield_now();
    }
}

/// The first operator line that contains these words.
pub fn line_with(lines: &Receiver<Event>, words: &str) -> String {
    loop {
        let event = lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no line has {words:?}"));
        let line = event.to_string();
        if line.contains(words) {
            return line;
        }
    }
}

/// A test's folder, removed at its end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("weir-gateway-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder can be made");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A leftover folder is not an error.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// One end of a Soup connection.
struct Wire {
    socket: TcpStream,
    deframer: Deframer,
    frames: VecDeque<(u8, Vec<u8>)>,
}

impl Wire {
    fn new(socket: TcpStream) -> Self {
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        socket.set_write_timeout(Some(PATIENCE)).expect("a socket");
        socket.set_nodelay(true).expect("a socket");
        Self { socket, deframer: Deframer::new(4096), frames: VecDeque::new() }
    }

    /// The next frame; `None` when the peer has ended.
    fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        loop {
            if let Some(frame) = self.frames.pop_front() {
                return Some(frame);
            }
            let mut bytes = [0; 4096];
            let count = match self.socket.read(&mut bytes) {
                Ok(0) => return None,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => {
                    println!("the connection failed: {error}");
                    return None;
                }
                Ok(count) => count,
            };
            let mut input = &bytes[..count];
            while let Some(frame) = self.deframer.next(&mut input).expect("frames are right") {
                self.frames.push_back((frame.kind, frame.payload.to_vec()));
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("the peer listens");
    }
}

/// A client of the gateway.
pub struct Trader {
    wire: Wire,
    /// Number of the next message.
    pub expected: u64,
}

impl Trader {
    /// Logs in, and requests the messages from `sequence` on.
    pub fn login(gateway: &GatewayServer, name: &str, sequence: u64) -> Self {
        Self::try_login(gateway, name, sequence).unwrap_or_else(|reason| {
            let logins = gateway.control().node_stats().logins;
            panic!("the login of {name} is refused with {}: {logins:?}", char::from(reason))
        })
    }

    /// Logs in, or returns the reason of the refusal.
    pub fn try_login(gateway: &GatewayServer, name: &str, sequence: u64) -> Result<Self, u8> {
        Self::try_login_to(gateway, "", name, sequence)
    }

    /// The same, for a session by its name.
    pub fn try_login_to(
        gateway: &GatewayServer,
        session: &str,
        name: &str,
        sequence: u64,
    ) -> Result<Self, u8> {
        let logins = || gateway.control().node_stats().logins;
        Self::login_at(gateway.address(), session, name, sequence)
            .unwrap_or_else(|| panic!("the login of {name} was not answered: {:?}", logins()))
    }

    /// The same at any server; `None`: there was no answer.
    pub fn login_at(address: &Address, session: &str, name: &str, sequence: u64) -> Option<Result<Self, u8>> {
        let login = LoginRequest {
            username: name.parse().expect("a name"),
            password: "DEMO".parse().expect("a password"),
            session: session.parse().expect("a name"),
            sequence,
            heartbeat_timeout_ms: None,
        };
        Self::login_with(address, &login)
    }

    /// Logs in with another password.
    pub fn try_password(gateway: &GatewayServer, name: &str, password: &str) -> Option<Result<Self, u8>> {
        let login = LoginRequest {
            username: name.parse().expect("a name"),
            password: password.parse().expect("a password"),
            session: "".parse().expect("a name"),
            sequence: 1,
            heartbeat_timeout_ms: None,
        };
        Self::login_with(gateway.address(), &login)
    }

    /// Sends these bytes in place of a login; returns the type of the only answer.
    pub fn try_bytes(gateway: &GatewayServer, bytes: &[u8]) -> Option<u8> {
        let Address::Tcp(address) = gateway.address() else { panic!("it listens on TCP") };
        let mut wire = Wire::new(TcpStream::connect(address).expect("it listens"));
        wire.write(bytes);
        wire.frame().map(|(kind, _)| kind)
    }

    /// The same with any login.
    pub fn login_with(address: &Address, login: &LoginRequest) -> Option<Result<Self, u8>> {
        let Address::Tcp(address) = address else { panic!("it listens on TCP") };
        let mut wire = Wire::new(TcpStream::connect(address).expect("it listens"));
        let mut frame = Vec::new();
        login.encode(&mut frame);
        wire.write(&frame);
        let (kind, payload) = wire.frame()?;
        Some(match kind {
            b'A' => {
                let accepted = LoginAccepted::parse(&payload).expect("an answer");
                Ok(Self { wire, expected: accepted.next_sequence })
            }
            _ => Err(payload[0]),
        })
    }

    pub fn send(&mut self, messages: &[Inbound<'_>]) {
        let mut bytes = Vec::new();
        for message in messages {
            let mut payload = Vec::new();
            message.encode(&mut payload);
            encode_frame(UNSEQUENCED, &payload, &mut bytes);
        }
        self.wire.write(&bytes);
    }

    pub fn send_raw(&mut self, payload: &[u8]) {
        let mut bytes = Vec::new();
        encode_frame(UNSEQUENCED, payload, &mut bytes);
        self.wire.write(&bytes);
    }

    /// The next message of the stream.
    pub fn next(&mut self) -> Outbound {
        Outbound::decode(&self.next_raw()).expect("a message").0
    }

    /// The next message of the stream, as received.
    pub fn next_raw(&mut self) -> Vec<u8> {
        loop {
            let (kind, payload) = self.wire.frame().expect("the gateway goes on");
            if kind == SEQUENCED {
                self.expected += 1;
                return payload;
            }
        }
    }

    /// Waits for a heartbeat of the gateway, and checks that nothing else came before it.
    pub fn hear_heartbeat(&mut self) {
        let (kind, payload) = self.wire.frame().expect("the gateway goes on");
        assert_eq!(kind, SERVER_HEARTBEAT, "{payload:?}");
    }

    /// The next text that acknowledges nothing.
    pub fn next_text(&mut self) -> String {
        loop {
            match self.wire.frame().expect("the gateway goes on") {
                (DEBUG, text) => return String::from_utf8_lossy(&text).into_owned(),
                (SERVER_HEARTBEAT, _) => {}
                other => panic!("{other:?} instead of a text"),
            }
        }
    }

    /// Everything but heartbeats until the gateway ends the connection: the kind of each frame and its contents.
    pub fn rest(&mut self) -> Vec<(u8, Vec<u8>)> {
        let mut frames = Vec::new();
        while let Some(frame) = self.wire.frame() {
            if frame.0 != SERVER_HEARTBEAT {
                frames.push(frame);
            }
        }
        frames
    }
}

pub fn symbol(text: &str) -> Symbol {
    text.parse().expect("a symbol")
}

pub fn order_for(user_ref_num: u32, quantity: u32, name: &str) -> Inbound<'static> {
    let client_order_id = format!("ORDER-{user_ref_num:08}").parse::<ClientOrderId>().expect("an id");
    Inbound::Enter(
        Enter {
            user_ref_num,
            side: b'B',
            quantity,
            symbol: symbol(name),
            price: 10_000,
            time_in_force: b'0',
            display: b'Y',
            capacity: b'P',
            intermarket_sweep: b'N',
            cross_type: b'N',
            client_order_id,
        },
        Appendage::EMPTY,
    )
}

pub fn order(user_ref_num: u32, quantity: u32) -> Inbound<'static> {
    order_for(user_ref_num, quantity, "WEIR")
}

pub fn cancel(user_ref_num: u32) -> Inbound<'static> {
    Inbound::Cancel(Cancel { user_ref_num, quantity: 0 })
}

pub fn replace(original_user_ref_num: u32, user_ref_num: u32, quantity: u32) -> Inbound<'static> {
    Inbound::Replace(
        Replace {
            original_user_ref_num,
            user_ref_num,
            quantity,
            price: 20_000,
            time_in_force: b'0',
            display: b'Y',
            intermarket_sweep: b'N',
            client_order_id: format!("ORDER-{user_ref_num:08}").parse().expect("an id"),
        },
        Appendage::EMPTY,
    )
}

/// An exchange that a test scripts.
pub struct Script {
    listener: TcpListener,
}

/// One connection of the gateway to it.
pub struct Scripted {
    wire: Wire,
    pub login: LoginRequest,
}

impl Script {
    pub fn new() -> Self {
        let Address::Tcp(address) = loopback() else { unreachable!("it is of TCP") };
        Self { listener: TcpListener::bind(address).expect("a port") }
    }

    pub fn address(&self) -> Address {
        self.listener.local_addr().expect("it has one").into()
    }

    /// The next connection and its login, unanswered.
    pub fn accept(&self) -> Scripted {
        let (socket, _) = self.listener.accept().expect("the gateway comes");
        let mut wire = Wire::new(socket);
        let (kind, payload) = wire.frame().expect("a login");
        assert_eq!(kind, b'L');
        Scripted { wire, login: LoginRequest::parse(&payload).expect("a login") }
    }

    /// The next connection is a probe for the session's position, and leaves with the answer.
    pub fn accept_look(&self, session: &str, next_sequence: u64) {
        let mut look = self.accept();
        assert_eq!((look.login.session.as_str(), look.login.sequence), ("", 0));
        look.let_in(session, next_sequence);
        assert_eq!(look.try_next(), None, "it asks for nothing else");
    }

    /// The next connection, logged in, with the next order number sent.
    pub fn accept_session(&self, session: &str, next_sequence: u64, next_number: u32) -> Scripted {
        let mut scripted = self.accept();
        scripted.let_in(session, next_sequence);
        scripted.answer_query(next_number);
        scripted
    }
}

impl Scripted {
    pub fn let_in(&mut self, session: &str, next_sequence: u64) {
        let mut frame = Vec::new();
        LoginAccepted { session: session.parse().expect("a name"), next_sequence }.encode(&mut frame);
        self.wire.write(&frame);
    }

    pub fn refuse(mut self, reason: LoginReject) {
        let mut frame = Vec::new();
        reason.encode(&mut frame);
        self.wire.write(&frame);
    }

    pub fn answer_query(&mut self, next_user_ref_num: u32) {
        assert!(self.try_answer_query(next_user_ref_num), "the gateway has left");
    }

    /// The same, unless the gateway has left before it sent the query.
    pub fn try_answer_query(&mut self, next_user_ref_num: u32) -> bool {
        let Some(query) = self.try_next() else { return false };
        assert_eq!(query, [b'Q']);
        self.say(&Outbound::AccountQueryResponse { timestamp_ns: 1, next_user_ref_num });
        true
    }

    /// The next message of the gateway.
    pub fn next(&mut self) -> Vec<u8> {
        self.try_next().expect("the gateway goes on")
    }

    /// Whether the gateway logs out before it ends the connection, and sends nothing else.
    pub fn is_left(&mut self) -> bool {
        let mut kinds = Vec::new();
        while let Some((kind, _)) = self.wire.frame() {
            if kind != CLIENT_HEARTBEAT {
                kinds.push(kind);
            }
        }
        kinds == [LOGOUT]
    }

    pub fn try_next(&mut self) -> Option<Vec<u8>> {
        loop {
            let (kind, payload) = self.wire.frame()?;
            if kind == UNSEQUENCED {
                return Some(payload);
            }
        }
    }

    /// Waits for a heartbeat of the gateway, and checks that nothing else came before it.
    pub fn hear_heartbeat(&mut self) {
        let (kind, payload) = self.wire.frame().expect("the gateway goes on");
        assert_eq!(kind, CLIENT_HEARTBEAT, "{payload:?}");
    }

    pub fn say(&mut self, message: &Outbound) {
        let mut payload = Vec::new();
        message.encode(&mut payload);
        self.say_raw(&payload);
    }

    pub fn say_raw(&mut self, payload: &[u8]) {
        let mut frame = Vec::new();
        encode_frame(SEQUENCED, payload, &mut frame);
        self.wire.write(&frame);
    }

    /// Sends all of these at once.
    pub fn say_all(&mut self, messages: &[Outbound]) {
        let (mut frames, mut payload) = (Vec::new(), Vec::new());
        for message in messages {
            payload.clear();
            message.encode(&mut payload);
            encode_frame(SEQUENCED, &payload, &mut frames);
        }
        self.wire.write(&frames);
    }

    /// Sends a heartbeat.
    pub fn beat(&mut self) {
        self.wire.write(&SERVER_HEARTBEAT_FRAME);
    }

    /// Accepts an order.
    pub fn accept_order(&mut self, raw: &[u8]) {
        self.say(&accepted(raw));
    }
}

/// An exchange's acceptance of an order.
pub fn accepted(raw: &[u8]) -> Outbound {
    let Ok(Inbound::Enter(enter, _)) = Inbound::decode(raw) else { panic!("an order") };
    assert_eq!(inbound_user_ref_num(raw), Some(enter.user_ref_num));
    Outbound::Accepted(Accepted::of(&enter, 1, enter.user_ref_num.into()))
}
