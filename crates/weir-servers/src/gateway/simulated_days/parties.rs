//! The parties of a simulated day besides the gateway: venues, lines to them, and clients.

use std::{
    cell::{Cell, RefCell},
    future::{Future, pending},
    path::{Path, PathBuf},
    rc::Rc,
    time::Duration,
};

use weir_engine::{
    net::{Address, Listener, Stream},
    spawn, time,
};
use weir_proto::{
    ouch::{
        Appendage, Cancel, ClientOrderId, Enter, Inbound, Modify, Outbound, PRICE_MARKET, Replace,
        codes::time_in_force, outbound_user_ref_num,
    },
    soup::{Deframer, LoginRequest, ServerPacket, UNSEQUENCED, encode_frame},
};

use super::{
    Random, SYMBOLS,
    model::Truth,
    replaces::{Arrived, Tap},
};
use crate::{
    exchange::{self, Mode},
    journal::Level,
    orders::{LocalOrders, OrdersConfig, accounts_named},
};

/// Every order has this price or none, so that they trade. It is ten units of the currency.
pub(super) const PRICE: u64 = 100_000;
/// By this time, both ends of a lost line have noticed.
const NOTICED: Duration = Duration::from_secs(5);
/// How often a connection that is lost before it is accepted is retried, and how long its login may take.
const CONNECTS_MAX: u32 = 20;
const LOGIN_WAIT_MS: u32 = 2_000;

/// Listens, and serves every connection.
pub(super) fn open<F: Future<Output = ()> + 'static>(serve: impl Fn(Stream) -> F + 'static) -> Address {
    let any = "127.0.0.1:0".parse().expect("an address");
    let listener = Listener::bind(&any, Default::default()).expect("a simulated port");
    let address = listener.local_address().expect("it has one");
    spawn(async move {
        while let Ok(stream) = listener.accept().await {
            spawn(serve(stream));
        }
    });
    address
}

/// One session of a venue.
struct Session {
    folder: PathBuf,
    name: String,
    /// When another session followed it.
    ended_ns: Option<u64>,
    /// How much of it has been reported, and whether that is all.
    reported: usize,
    is_all_reported: bool,
}

/// One exchange during a day.
pub(super) struct Venue {
    number: usize,
    folder: PathBuf,
    sessions: Vec<Session>,
    names: u32,
    arrived: Arrived,
    current: Rc<RefCell<Option<LocalOrders>>>,
}

impl Venue {
    pub(super) fn new(number: usize, folder: &Path) -> Self {
        let mut venue = Self {
            number,
            folder: folder.join(format!("venue-{number}")),
            sessions: Vec::new(),
            names: 0,
            arrived: Arrived::default(),
            current: Rc::default(),
        };
        venue.begin_anew(true, time::Instant::from_nanos(0));
        venue
    }

    /// The contents of its journal are lost. Its next session has the same name, or another one.
    pub(super) fn begin_anew(&mut self, has_other_name: bool, now: time::Instant) {
        if let Some(session) = self.sessions.last_mut() {
            session.ended_ns = Some(now.as_nanos());
        }
        self.names += u32::from(has_other_name);
        let folder = self.folder.join(self.sessions.len().to_string());
        self.sessions.push(Session {
            folder,
            name: format!("DAY{}", self.names),
            ended_ns: None,
            reported: 0,
            is_all_reported: false,
        });
    }

    fn config(session: &Session) -> OrdersConfig {
        OrdersConfig {
            session: session.name.parse().expect("a name"),
            journal: Some((session.folder.clone(), Level::Os)),
            journal_segment_bytes: 64 << 10,
            ..OrdersConfig::new(accounts_named('G', 2))
        }
    }

    async fn start_exchange(&self) {
        let config = Self::config(self.sessions.last().expect("there is one"));
        let recovered = exchange::recover(&config, Mode::Match).expect("its journal is right");
        let make = exchange::match_alone(&recovered);
        drop(recovered);
        let exchange = LocalOrders::start(config, make).await.expect("it starts");
        *self.current.borrow_mut() = Some(exchange);
    }

    /// Starts it in this phase, and creates a line to it.
    pub(super) async fn start(&mut self) -> Line {
        self.current = Rc::default();
        self.start_exchange().await;
        let current = Rc::clone(&self.current);
        let served = open(move |stream| {
            let exchange = current.borrow().clone();
            async move {
                if let Some(exchange) = exchange {
                    exchange.serve(stream).await;
                }
            }
        });
        Line::lay(served, self.arrived.clone())
    }

    /// Replaces the previous session by the one that has just begun.
    pub(super) async fn restart(&self, line: &Line) {
        self.current.borrow_mut().take();
        line.break_off();
        self.start_exchange().await;
    }

    /// The number of its current session.
    pub(super) fn place(&self) -> (usize, usize) {
        (self.number, self.sessions.len() - 1)
    }

    /// Ends the phase.
    pub(super) fn leave(&mut self) {
        self.current.borrow_mut().take();
    }

    /// Reports its sessions' messages, and the messages that arrived.
    pub(super) fn tell(&mut self, truth: &mut Truth) {
        truth.arrived.append(&mut self.arrived.names());
        let sessions = self.sessions.iter_mut().enumerate();
        for (index, session) in sessions.filter(|(_, session)| !session.is_all_reported) {
            let key = (self.number, index);
            let mut seen = 0;
            let mut show = |record: &crate::orders::Record<'_>| {
                if let crate::orders::RecordKind::Sequenced { account, message, .. } = record.kind {
                    seen += 1;
                    if seen > session.reported {
                        truth.take(key, account.0, record.t_ns, message);
                    }
                }
            };
            if session.folder.exists() {
                crate::orders::recover(&Self::config(session), &mut show).expect("its journal is right");
            }
            session.reported = seen;
            if let Some(ended_ns) = session.ended_ns {
                truth.end(key, ended_ns);
                session.is_all_reported = true;
            }
        }
    }
}

/// The state of a line.
#[derive(Default)]
struct Cuts {
    dead: Cell<u32>,
    broken: Cell<u32>,
}

/// A line that may go dead silently, or break.
pub(super) struct Line {
    pub(super) address: Address,
    cuts: Rc<Cuts>,
    /// When it was last cut or broken.
    troubled: Cell<Option<time::Instant>>,
}

impl Line {
    /// Records the messages that arrive at the other end.
    fn lay(to: Address, arrived: Arrived) -> Self {
        let cuts = Rc::new(Cuts::default());
        let of_each = Rc::clone(&cuts);
        let address = open(move |near| {
            let (to, cuts, tap) = (to.clone(), Rc::clone(&of_each), Tap::new(&arrived));
            async move {
                let Ok(far) = Stream::connect(&to).await else { return };
                let (near, far) = (Rc::new(near), Rc::new(far));
                spawn(carry(Rc::clone(&near), Rc::clone(&far), Rc::clone(&cuts), Some(tap)));
                carry(far, near, cuts, None).await;
            }
        });
        Self { address, cuts, troubled: Cell::new(None) }
    }

    pub(super) fn cut(&self) {
        self.troubled.set(Some(time::now()));
        self.cuts.dead.set(self.cuts.dead.get() + 1);
    }

    pub(super) fn break_off(&self) {
        self.troubled.set(Some(time::now()));
        self.cuts.broken.set(self.cuts.broken.get() + 1);
    }

    /// Whether both ends of it are really connected.
    pub(super) fn is_sound(&self) -> bool {
        self.troubled.get().is_none_or(|troubled| time::now() >= troubled + NOTICED)
    }
}

async fn carry(from: Rc<Stream>, to: Rc<Stream>, cuts: Rc<Cuts>, mut tap: Option<Tap>) {
    let begun = (cuts.dead.get(), cuts.broken.get());
    loop {
        let received = time::timeout(Duration::from_millis(1_000), from.recv()).await;
        if cuts.broken.get() != begun.1 {
            break;
        }
        if cuts.dead.get() != begun.0 {
            // Tasks that wait for it are ended by their own timeouts.
            return pending().await;
        }
        if let (Some(tap), Ok(Ok(Some(bytes)))) = (&mut tap, &received) {
            // Including a message that a venue receives only in part before it ends.
            tap.note(bytes);
        }
        match received {
            Err(_) => {}
            Ok(Ok(Some(bytes))) if to.send_slice(&bytes).await.is_ok() && to.flush().await.is_ok() => {}
            Ok(_) => break,
        }
    }
    // The end of one side ends the other.
    let _ = to.shutdown().await;
    let _ = from.shutdown().await;
}

/// The messages of a client.
#[derive(Default)]
struct Got {
    messages: RefCell<Vec<Vec<u8>>>,
    /// The login was answered, by acceptance or rejection.
    is_answered: Cell<bool>,
    is_over: Cell<bool>,
    trouble: RefCell<Option<String>>,
}

/// One client during a day.
pub(super) struct Client {
    pub(super) account: u32,
    pub(super) address: Option<Address>,
    /// Every numbered message that was sent: the number, the name, and the message.
    pub(super) sent: Vec<(u32, String, Vec<u8>)>,
    /// Messages received on all its connections, in order.
    stream: Vec<Vec<u8>>,
    connection: Option<(Rc<Stream>, Rc<Got>)>,
    /// A connection may be lost before it is accepted: then it is retried, as a client would.
    pub(super) loses_some: bool,
    /// Its messages refer to one of this many last orders.
    pub(super) reach: u64,
    trouble: Option<String>,
}

impl Client {
    pub(super) fn new(account: u32) -> Self {
        Self {
            account,
            address: None,
            sent: Vec::new(),
            stream: Vec::new(),
            connection: None,
            loses_some: false,
            reach: 5,
            trouble: None,
        }
    }

    /// Receives a message.
    pub(super) fn hear(&mut self, raw: Vec<u8>) {
        self.stream.push(raw);
    }

    /// The number of the last order that it has sent.
    pub(super) fn last_number(&self) -> u32 {
        self.sent.last().map_or(0, |(number, ..)| *number)
    }

    /// All messages received.
    pub(super) fn stream(&self) -> &[Vec<u8>] {
        &self.stream
    }

    pub(super) fn trouble(&self) -> Option<String> {
        let now = self.connection.as_ref().and_then(|(_, got)| got.trouble.borrow().clone());
        self.trouble.clone().or(now).map(|trouble| format!("client {}: {trouble}", self.account))
    }

    /// Takes the messages that have arrived.
    fn collect(&mut self) {
        if let Some((_, got)) = &self.connection {
            self.stream.append(&mut got.messages.borrow_mut());
            self.trouble = self.trouble.take().or_else(|| got.trouble.take());
        }
    }

    pub(super) fn leave(&mut self) {
        self.collect();
        if let Some((_, got)) = self.connection.take() {
            got.is_over.set(true);
        }
    }

    async fn connect(&mut self, sequence: u64) {
        for _ in 0..CONNECTS_MAX {
            self.connect_once(sequence).await;
            if !self.loses_some || self.address.is_none() || self.is_answered().await {
                return;
            }
        }
    }

    /// Whether the gateway has the connection. An established connection without messages counts as such.
    async fn is_answered(&self) -> bool {
        let Some((_, got)) = &self.connection else { return false };
        for _ in 0..LOGIN_WAIT_MS {
            if got.is_answered.get() || got.is_over.get() {
                break;
            }
            time::sleep(Duration::from_millis(1)).await;
        }
        got.is_answered.get() || !got.is_over.get()
    }

    async fn connect_once(&mut self, sequence: u64) {
        let Some(address) = &self.address else { return };
        let Ok(stream) = Stream::connect(address).await else { return };
        let (stream, got) = (Rc::new(stream), Rc::new(Got::default()));
        let login = LoginRequest {
            username: format!("C{:05}", self.account + 1).parse().expect("a name"),
            password: "DEMO".parse().expect("a password"),
            session: Default::default(),
            sequence,
            heartbeat_timeout_ms: Some(60_000),
        };
        let mut bytes = Vec::new();
        login.encode(&mut bytes);
        // The receiver notices a closed connection.
        let _ = stream.send_slice(&bytes).await;
        spawn(receive(Rc::clone(&stream), Rc::clone(&got), sequence));
        self.connection = Some((stream, got));
    }

    /// Logs in, and resends unanswered messages.
    pub(super) async fn come_back(&mut self) {
        self.collect();
        if self.connection.as_ref().is_some_and(|(_, got)| !got.is_over.get()) {
            return;
        }
        self.leave();
        self.connect(self.stream.len() as u64 + 1).await;
        for raw in self.unanswered() {
            self.send(&raw).await;
        }
    }

    /// The numbered messages that have no answer yet.
    pub(super) fn unanswered(&self) -> Vec<Vec<u8>> {
        let is_answered = |number: u32| {
            let is_it = |raw: &Vec<u8>| {
                matches!(raw.first(), Some(b'A' | b'J' | b'U')) && outbound_user_ref_num(raw) == Some(number)
            };
            self.stream.iter().any(is_it)
        };
        let unanswered = self.sent.iter().filter(|(number, ..)| !is_answered(*number));
        unanswered.map(|(_, _, raw)| raw.clone()).collect()
    }

    async fn send(&self, raw: &[u8]) {
        let mut bytes = Vec::new();
        encode_frame(UNSEQUENCED, raw, &mut bytes);
        if let Some((stream, _)) = &self.connection {
            // Messages lost with the connection are resent on the next one.
            let _ = stream.send_slice(&bytes).await;
        }
    }

    /// Sends this many messages.
    pub(super) async fn trade(&mut self, count: u64, random: &mut Random) {
        self.come_back().await;
        for _ in 0..count {
            let raw = self.next_message(random);
            self.send(&raw).await;
        }
    }

    /// A new order, or a message about one of the last ones.
    pub(super) fn next_message(&mut self, random: &mut Random) -> Vec<u8> {
        let number = self.last_number() + 1;
        let name = format!("{}-{number}", self.account);
        let id: ClientOrderId = name.parse().expect("it is short");
        let quantity = 1 + random.below(100) as u32;
        // One of the last orders, which may be open.
        let any = number.saturating_sub(random.below(self.reach) as u32).max(1);
        let message = match random.below(100) {
            0..60 => Inbound::Enter(self.enter(number, quantity, id, random), Appendage::EMPTY),
            60..75 => Inbound::Replace(
                Replace {
                    original_user_ref_num: any,
                    user_ref_num: number,
                    quantity,
                    price: PRICE,
                    time_in_force: time_in_force::DAY,
                    display: b'Y',
                    intermarket_sweep: b'N',
                    client_order_id: id,
                },
                Appendage::EMPTY,
            ),
            75..85 => Inbound::Cancel(Cancel { user_ref_num: any, quantity: 0 }),
            85..93 => Inbound::Cancel(Cancel { user_ref_num: any, quantity }),
            _ => Inbound::Modify(Modify { user_ref_num: any, side: self.side(), quantity }),
        };
        let mut raw = Vec::new();
        message.encode(&mut raw);
        if matches!(message, Inbound::Enter(..) | Inbound::Replace(..)) {
            self.sent.push((number, name, raw.clone()));
        }
        raw
    }

    fn side(&self) -> u8 {
        if self.account.is_multiple_of(2) { b'B' } else { b'S' }
    }

    /// An order, possibly immediate-or-cancel or at any price.
    pub(super) fn enter(
        &self,
        user_ref_num: u32,
        quantity: u32,
        id: ClientOrderId,
        random: &mut Random,
    ) -> Enter {
        let (price, time_in_force) = match random.below(10) {
            0 => (PRICE_MARKET, time_in_force::DAY),
            1 => (PRICE, time_in_force::IMMEDIATE_OR_CANCEL),
            _ => (PRICE, time_in_force::DAY),
        };
        Enter {
            user_ref_num,
            side: self.side(),
            quantity,
            symbol: SYMBOLS[random.below(2) as usize].parse().expect("a symbol"),
            price,
            time_in_force,
            display: b'Y',
            capacity: b'A',
            intermarket_sweep: b'N',
            cross_type: b'N',
            client_order_id: id,
        }
    }

    /// Requests everything from the first message on: the result must equal the messages received before.
    pub(super) async fn read_again(&mut self) {
        self.leave();
        let before = std::mem::take(&mut self.stream);
        self.connect(1).await;
        time::sleep(Duration::from_secs(2)).await;
        self.collect();
        if self.stream != before {
            let at = before.iter().zip(&self.stream).take_while(|(before, now)| before == now).count();
            let tell = |raw: Option<&Vec<u8>>| {
                raw.and_then(|raw| Some(format!("{:?}", Outbound::decode(raw).ok()?.0)))
            };
            self.trouble = Some(format!(
                "what was said is not said again: {} messages and {}, different at {at}: {:?}, {:?}",
                before.len(),
                self.stream.len(),
                tell(before.get(at)),
                tell(self.stream.get(at))
            ));
        }
    }
}

async fn receive(stream: Rc<Stream>, got: Rc<Got>, sequence: u64) {
    let mut deframer = Deframer::new(1024);
    while let Ok(Some(bytes)) = stream.recv().await {
        if got.is_over.get() {
            break;
        }
        let mut input: &[u8] = &bytes;
        while let Ok(Some(frame)) = deframer.next(&mut input) {
            match ServerPacket::parse(frame) {
                Ok(ServerPacket::Sequenced(message)) => got.messages.borrow_mut().push(message.to_vec()),
                Ok(ServerPacket::LoginAccepted(accepted)) => {
                    got.is_answered.set(true);
                    if accepted.next_sequence != sequence {
                        *got.trouble.borrow_mut() =
                            Some(format!("{} comes next, and not {sequence}", accepted.next_sequence));
                    }
                }
                Ok(ServerPacket::LoginRejected(_)) => {
                    got.is_answered.set(true);
                    got.is_over.set(true);
                }
                _ => {}
            }
        }
    }
    got.is_over.set(true);
    let _ = stream.shutdown().await;
}
