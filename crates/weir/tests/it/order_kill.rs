//! A gateway or an exchange is killed, or ended in good order, while orders are in flight, again and again. Messages to
//! a client stay true and can be requested again, every order is answered once, and the exchange has executed none
//! twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    time::Instant,
};

use rustix::process::Signal;
use weir_proto::{
    ouch::{Appendage, ClientOrderId, Enter, Inbound, Outbound},
    soup::{Deframer, LoginRequest, Name, SEQUENCED, UNSEQUENCED, encode_frame},
};
use weir_stats::random::splitmix;

use super::harness::{Folder, PATIENCE, Running, folder, own_address, shown};

/// Orders in flight for each client at the kill.
const WINDOW: usize = 32;
/// Id of the order that marks the end of a stream.
const LAST: &str = "LAST";

/// A gateway or an exchange that comes back at the same address with the same journal.
pub struct Node {
    words: Vec<String>,
    pub address: String,
    process: Running,
}

impl Node {
    /// The words contain `127.0.0.1:0`, which stands for an address of which no other test has a port.
    pub fn start(words: &[&str]) -> Self {
        let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let place = words.iter().position(|word| word == "127.0.0.1:0").expect("a free port is asked for");
        words[place] = own_address();
        let (process, address) = run(&words);
        words[place].clone_from(&address);
        Self { words, address, process }
    }

    /// Ends at once, or in good order.
    pub fn end(&mut self, signal: Signal) {
        self.process.signal(signal);
        self.expect_end(if signal == Signal::KILL { -9 } else { 0 });
    }

    /// Waits until it ends by itself, with this code.
    pub fn expect_end(&mut self, code: i32) {
        let ended = self.process.wait(PATIENCE);
        assert_eq!(ended, code, "it said: {}", self.process.rest_of_errors());
    }

    pub fn start_again(&mut self, driver: &str) {
        self.start_once_with(driver, &[]);
    }

    /// As [`Self::start_again`], with flags that only this start has.
    pub fn start_once_with(&mut self, driver: &str, words: &[&str]) {
        let place = self.words.iter().position(|word| word == "--driver").expect("a driver is named");
        self.words[place + 1] = driver.to_owned();
        let all: Vec<String> =
            self.words.iter().cloned().chain(words.iter().map(|word| (*word).to_owned())).collect();
        self.process = run(&all).0;
    }

    /// The next line on standard error that contains these words.
    pub fn error_line_with(&self, words: &str) -> String {
        self.process.error_line_with(words)
    }

    /// The output of a start that is refused.
    pub fn refused_start(&self) -> String {
        let mut process = Running::weir(&self.words.iter().map(String::as_str).collect::<Vec<_>>());
        let errors = process.rest_of_errors();
        assert_ne!(process.wait(PATIENCE), 0, "{errors}");
        errors
    }
}

fn run(words: &[String]) -> (Running, String) {
    let process = Running::weir(&words.iter().map(String::as_str).collect::<Vec<_>>());
    match process.next_line().as_deref().and_then(|line| line.strip_prefix("listening on ")) {
        Some(address) => (process, address.to_owned()),
        None => panic!("it does not start: {}", process.rest_of_errors()),
    }
}

/// A Soup connection that is logged in.
pub struct Session {
    socket: TcpStream,
    deframer: Deframer,
    /// Messages that came together with the answer to the login.
    early: Vec<(u8, Vec<u8>)>,
}

impl Session {
    /// `None`: the peer was absent, went away, or has not noticed yet that the connection before is gone.
    pub fn login(address: &str, name: &str, sequence: u64) -> Option<Self> {
        let mut socket = TcpStream::connect(address).ok()?;
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let login = LoginRequest {
            username: name.parse().expect("a name"),
            password: "DEMO".parse().expect("a password"),
            session: Name::BLANK,
            sequence,
            heartbeat_timeout_ms: None,
        };
        let mut frame = Vec::new();
        login.encode(&mut frame);
        socket.write_all(&frame).ok()?;
        let mut session = Self { socket, deframer: Deframer::new(4096), early: Vec::new() };
        while session.early.is_empty() {
            session.early = session.read(|kind, payload| Some((kind, payload.to_vec())))?;
        }
        let (answer, _) = session.early.remove(0);
        (answer == b'A').then_some(session)
    }

    /// The messages of one receive; `None` when the peer is gone.
    pub fn read<T>(&mut self, mut take: impl FnMut(u8, &[u8]) -> Option<T>) -> Option<Vec<T>> {
        if !self.early.is_empty() {
            let early = std::mem::take(&mut self.early);
            return Some(early.iter().filter_map(|(kind, payload)| take(*kind, payload)).collect());
        }
        let mut bytes = [0; 16 << 10];
        let count = loop {
            match self.socket.read(&mut bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("nothing for {PATIENCE:?}"),
                Ok(0) | Err(_) => return None,
                Ok(count) => break count,
            }
        };
        let (mut input, mut taken) = (&bytes[..count], Vec::new());
        while let Some(frame) = self.deframer.next(&mut input).expect("frames are right") {
            taken.extend(take(frame.kind, frame.payload));
        }
        Some(taken)
    }

    /// The same connection, for sends from another thread.
    pub fn twin(&self) -> Self {
        let socket = self.socket.try_clone().expect("a descriptor");
        Self { socket, deframer: Deframer::new(4096), early: Vec::new() }
    }

    pub fn send(&mut self, orders: impl Iterator<Item = Vec<u8>>) {
        let mut bytes = Vec::new();
        orders.for_each(|payload| encode_frame(UNSEQUENCED, &payload, &mut bytes));
        // A peer that is gone is detected on a read.
        let _ = self.socket.write_all(&bytes);
    }
}

pub fn order(user_ref_num: u32, id: &str) -> Vec<u8> {
    let mut payload = Vec::new();
    let order = Enter {
        user_ref_num,
        side: b'B',
        quantity: 100,
        symbol: "WEIR".parse().expect("a symbol"),
        price: 10_000,
        time_in_force: b'0',
        display: b'Y',
        capacity: b'P',
        intermarket_sweep: b'N',
        cross_type: b'N',
        client_order_id: id.parse::<ClientOrderId>().expect("an id"),
    };
    Inbound::Enter(order, Appendage::EMPTY).encode(&mut payload);
    payload
}

/// A client that records all messages to it.
struct Client {
    name: String,
    session: Option<Session>,
    next: u32,
    unanswered: BTreeSet<u32>,
    /// The result of each order: `A` or `J`.
    answers: BTreeMap<u32, u8>,
    stream: Vec<Vec<u8>>,
}

impl Client {
    fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            session: None,
            next: 1,
            unanswered: BTreeSet::new(),
            answers: BTreeMap::new(),
            stream: Vec::new(),
        }
    }

    fn id(&self, number: u32) -> String {
        format!("{}-{number}", self.name)
    }

    /// Logs in if necessary, and sends unanswered orders once more.
    fn be_there(&mut self, address: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.session.is_none() {
            let promised = self.stream.len() + 1;
            assert!(Instant::now() < deadline, "{} does not get message {promised}", self.name);
            self.session = Session::login(address, &self.name, self.stream.len() as u64 + 1);
            let again: Vec<Vec<u8>> =
                self.unanswered.iter().map(|number| order(*number, &self.id(*number))).collect();
            if let Some(session) = &mut self.session {
                session.send(again.into_iter());
            }
        }
    }

    /// Sends new orders up to the limit.
    fn fill(&mut self) {
        let first = self.next;
        while self.unanswered.len() < WINDOW {
            self.unanswered.insert(self.next);
            self.next += 1;
        }
        let orders: Vec<Vec<u8>> = (first..self.next).map(|number| order(number, &self.id(number))).collect();
        if let Some(session) = &mut self.session {
            session.send(orders.into_iter());
        }
    }

    /// Handles one receive. Detects a peer that is gone.
    fn take(&mut self) {
        let Some(session) = &mut self.session else { return };
        let Some(messages) = session.read(|kind, payload| (kind == SEQUENCED).then(|| payload.to_vec()))
        else {
            self.session = None;
            return;
        };
        for message in messages {
            let (number, kind) = match Outbound::decode(&message).expect("a message").0 {
                Outbound::Accepted(accepted) => (accepted.user_ref_num, b'A'),
                Outbound::Rejected(rejected) => (rejected.user_ref_num, b'J'),
                other => panic!("{other:?}"),
            };
            assert!(self.unanswered.remove(&number), "{}: order {number} is answered twice", self.name);
            assert_eq!(self.answers.insert(number, kind), None);
            self.stream.push(message);
        }
    }

    /// Works until this many more orders are answered.
    fn work(&mut self, address: &str, orders: usize) {
        let wanted = self.answers.len() + orders;
        let deadline = Instant::now() + PATIENCE;
        while self.answers.len() < wanted {
            assert!(Instant::now() < deadline, "{} of {wanted} orders are answered", self.answers.len());
            self.be_there(address);
            self.fill();
            self.take();
        }
    }

    /// Waits for the open orders.
    fn finish(&mut self, address: &str) {
        while !self.unanswered.is_empty() {
            self.be_there(address);
            self.take();
        }
    }

    /// Requests the whole stream once more: it must equal the one before.
    fn ask_again(&mut self, address: &str) {
        self.session = None;
        let mut again = Vec::new();
        let deadline = Instant::now() + PATIENCE;
        let mut session = loop {
            assert!(Instant::now() < deadline, "{} does not get in", self.name);
            if let Some(session) = Session::login(address, &self.name, 1) {
                break session;
            }
        };
        while again.len() < self.stream.len() {
            let found = session.read(|kind, payload| (kind == SEQUENCED).then(|| payload.to_vec()));
            let (count, all) = (again.len(), self.stream.len());
            again.extend(
                found.unwrap_or_else(|| panic!("{} gets {count} of {all} messages again", self.name)),
            );
        }
        assert!(again == self.stream, "{}: the stream is another one when it is asked for again", self.name);
    }
}

/// The ids of the orders that an exchange has accepted from an account in this session.
pub fn accepted_by_exchange(address: &str, name: &str) -> Vec<String> {
    taken_by_exchange(address, name).into_iter().map(|(_, id)| id).collect()
}

/// Every message of an account's stream up to its marker; numbers and ids of the orders that were accepted.
pub fn taken_by_exchange(address: &str, name: &str) -> Vec<(u32, String)> {
    let deadline = Instant::now() + PATIENCE;
    let mut session = loop {
        assert!(Instant::now() < deadline, "{name} does not get in");
        if let Some(session) = Session::login(address, name, 1) {
            break session;
        }
    };
    session.send(std::iter::once(order(u32::MAX, LAST)));
    let mut taken: Vec<(u32, String)> = Vec::new();
    while taken.last().is_none_or(|(_, id)| id != LAST) {
        let found = session.read(|kind, payload| match (kind, Outbound::decode(payload)) {
            (SEQUENCED, Ok((Outbound::Accepted(accepted), _))) => {
                Some((accepted.user_ref_num, accepted.client_order_id.as_str().to_owned()))
            }
            _ => None,
        });
        taken.extend(found.expect("the exchange goes on"));
    }
    taken.pop();
    taken
}

pub fn journal(folder: &Folder, name: &str) -> String {
    shown(&folder.join(name)).to_owned()
}

#[test]
fn nothing_that_was_acknowledged_is_lost_and_nothing_is_executed_twice() {
    kill_again_and_again("own");
}

#[test]
fn nothing_is_lost_or_executed_twice_where_orders_are_handed_off() {
    kill_again_and_again("other");
}

/// The drivers that a node can come back on.
pub fn drivers() -> Vec<&'static str> {
    let required = std::env::var("WEIR_REQUIRE_DRIVERS").unwrap_or_default();
    let mut drivers = Vec::new();
    for report in weir_engine::probe(&weir_engine::Config::default()) {
        let name = report.driver.name();
        if report.driver == weir_engine::Driver::Blocking {
            continue;
        }
        assert!(report.is_available() || !required.split(',').any(|one| one == name), "{name} is required");
        if report.is_available() {
            drivers.push(name);
        } else {
            println!("skipped: {name}: {}", report.detail());
        }
    }
    drivers
}

fn kill_again_and_again(route: &str) {
    let cycles = if std::env::var_os("WEIR_SLOW_TESTS").is_some() { 200 } else { 10 };
    let mut state = std::env::var("WEIR_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(7);
    let drivers = drivers();
    println!("seed {state} (WEIR_SEED takes another), {cycles} ends, route {route}");
    let folder = folder(&format!("order-kill-{route}"));
    let (ours, theirs) = (journal(&folder, "gateway"), journal(&folder, "exchange"));
    let common = ["--demo", "2", "--listen", "127.0.0.1:0", "--driver", "epoll", "--journal", "os"];
    let mut exchange =
        Node::start(&[&["serve", "exchange"], &common[..], &["--journal-dir", &theirs]].concat());
    let upstream = exchange.address.clone();
    let own = ["--workers", "2", "--route", route, "--journal-dir", &ours, "--upstream", &upstream];
    let mut gateway = Node::start(&[&["serve", "gateway"], &common[..], &own[..]].concat());
    // One on each worker of the gateway.
    let mut clients = [Client::new("C00001"), Client::new("C00002")];
    let began = Instant::now();
    for cycle in 0..cycles {
        for client in &mut clients {
            client.work(&gateway.address, splitmix(&mut state) as usize % 200);
        }
        for client in &mut clients {
            client.be_there(&gateway.address);
            client.fill();
        }
        let driver = drivers[cycle % drivers.len()];
        let signal = if splitmix(&mut state).is_multiple_of(3) { Signal::TERM } else { Signal::KILL };
        let node = if splitmix(&mut state).is_multiple_of(2) { &mut gateway } else { &mut exchange };
        node.end(signal);
        node.start_again(driver);
    }
    println!("{cycles} ends in {:.1} s", began.elapsed().as_secs_f64());
    for client in &mut clients {
        client.work(&gateway.address, 10);
        client.finish(&gateway.address);
        assert!(client.answers.values().any(|kind| *kind == b'A'));
    }
    for client in &mut clients {
        client.ask_again(&gateway.address);
    }
    gateway.end(Signal::KILL);
    let mut executed = accepted_by_exchange(&exchange.address, "G00001");
    executed.extend(accepted_by_exchange(&exchange.address, "G00002"));
    compare(&clients, &executed);
}

/// The exchange has accepted exactly the orders that clients know as accepted, once each.
fn compare(clients: &[Client], executed: &[String]) {
    let told: BTreeSet<String> = clients
        .iter()
        .flat_map(|client| {
            let accepted = client.answers.iter().filter(|(_, kind)| **kind == b'A');
            accepted.map(|(number, _)| client.id(*number))
        })
        .collect();
    let distinct: BTreeSet<String> = executed.iter().cloned().collect();
    assert_eq!(distinct.len(), executed.len(), "an order was executed twice");
    let untold: Vec<&String> = distinct.difference(&told).collect();
    let unknown: Vec<&String> = told.difference(&distinct).collect();
    assert!(untold.is_empty(), "accepted, and their clients were told otherwise: {untold:?}");
    assert!(unknown.is_empty(), "clients got acceptances of orders that the exchange has not: {unknown:?}");
}
