//! Tests of one worker's messages for another that does not take them: nothing is lost and nothing is reordered.

use std::{
    io::Read,
    net::TcpStream,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::{Duration, Instant},
};

use weir_engine::{
    Driver,
    handoff::Options,
    net::Address,
    serve::{AcceptMode, ServerConfig},
};
use weir_proto::ouch::{Canceled, Enter, Inbound, Outbound, codes::cancel_reason, inbound_user_ref_num};
use weir_servers::{
    exchange::{self, Mode},
    gateway::{GatewayConfig, GatewayServer, OutstandingLimits},
    journal::{
        Level,
        faults::{Operation, Verdict},
    },
    orders::{OrdersConfig, demo_accounts},
};
use weir_trading::{Route, WhenFull};

use super::{
    anew::{executed, expect_accepted, expect_nothing_more, expect_refused},
    rig::{
        Folder, PATIENCE, Script, Scripted, Trader, counted, drivers, end_exchange, end_gateway, eventually,
        exchange as echoing, gateway, line_with, loopback, order, order_for, replace, server, symbol,
    },
};

/// Queues that are soon full.
fn narrow() -> Options {
    Options { ring_slots: 2, overflow_max: 1, ..Options::default() }
}

/// Idle connections, until each worker has no task for another one.
fn crowd(gateway: &GatewayServer) -> Vec<TcpStream> {
    let Address::Tcp(address) = gateway.address() else { panic!("it listens on TCP") };
    let mut kept = Vec::new();
    let mut closed = 0;
    while closed < 8 {
        let mut idle = TcpStream::connect(address).expect("it listens");
        idle.set_read_timeout(Some(Duration::from_millis(50))).expect("a socket");
        // It is idle: it is closed, or it waits.
        if matches!(idle.read(&mut [0]), Ok(0)) {
            closed += 1;
        } else {
            closed = 0;
            kept.push(idle);
        }
    }
    kept
}

fn crowded(driver: Driver, workers: usize) -> ServerConfig {
    let mut config = server(driver, workers);
    config.engine.limits.tasks_max = 16;
    config
}

#[test]
fn answers_that_are_undelivered_arrive_although_no_task_is_free() {
    const ORDERS: u32 = 200;
    for driver in drivers() {
        println!("{driver}");
        let venue = echoing(driver, loopback());
        let config = GatewayConfig {
            route: Route::Other,
            handoff: narrow(),
            ..GatewayConfig::demo(2, venue.address().clone())
        };
        let gateway = GatewayServer::start(crowded(driver, 2), config).expect("the driver runs here");
        assert!(gateway.wait_for_upstreams(PATIENCE), "{:?}", gateway.control().upstreams());
        let mut traders = ["C00001", "C00002"].map(|name| Trader::login(&gateway, name, 1));
        let idle = crowd(&gateway);
        let orders: Vec<_> = (1..=ORDERS).map(|number| order(number, 100)).collect();
        traders.iter_mut().for_each(|trader| trader.send(&orders));
        for trader in &mut traders {
            for number in 1..=ORDERS {
                let Outbound::Accepted(accepted) = trader.next() else { panic!("an order is accepted") };
                assert_eq!(accepted.user_ref_num, number);
            }
        }
        let handoff = gateway.control().node_stats().handoff.expect("orders are handed off");
        assert!(handoff.overflowed > 0, "nothing was undelivered: {handoff:?}");
        drop((traders, idle));
        end_gateway(gateway);
        end_exchange(venue);
    }
}

/// Blocks the second worker in its journal. Each test has its own.
struct Hold {
    is_wanted: AtomicBool,
    is_held: AtomicBool,
}

impl Hold {
    const fn new() -> Self {
        Self { is_wanted: AtomicBool::new(false), is_held: AtomicBool::new(false) }
    }

    /// Judges a disk.
    fn judge(&self, worker: u16, operation: &Operation) -> Verdict {
        if worker == 1 && matches!(operation, Operation::Write { .. }) {
            while self.is_wanted.load(SeqCst) {
                self.is_held.store(true, SeqCst);
                std::thread::yield_now();
            }
        }
        Verdict::Pass
    }

    /// Blocks the next write.
    fn begin(&self) {
        self.is_held.store(false, SeqCst);
        self.is_wanted.store(true, SeqCst);
    }

    fn wait(&self) {
        eventually("the second worker takes nothing any more", || self.is_held.load(SeqCst));
    }

    fn let_go(&self) {
        self.is_wanted.store(false, SeqCst);
    }
}

static OF_SENDER: Hold = Hold::new();

fn hold_sender(worker: u16, operation: &Operation) -> Verdict {
    OF_SENDER.judge(worker, operation)
}

/// The gateway's message: the kind, and for an order the client's name for it.
fn sent(raw: &[u8]) -> (u8, String) {
    match Inbound::decode(raw) {
        Ok(Inbound::Enter(enter, _)) => (b'O', enter.client_order_id.as_str().to_owned()),
        _ => (raw[0], String::new()),
    }
}

#[test]
fn an_order_of_a_client_that_came_back_does_not_overtake_the_cancel_of_those_before() {
    for driver in drivers() {
        println!("{driver}");
        let (venue, folder) = (Script::new(), Folder::new());
        let mut config = GatewayConfig {
            journal: Some((folder.0.clone(), Level::Os)),
            journal_segment_bytes: 64 << 10,
            journal_faults: Some(hold_sender),
            route: Route::Other,
            handoff: narrow(),
            ..GatewayConfig::demo(3, venue.address())
        };
        config.accounts[0].cancel_on_disconnect = true;
        config.accounts[0].takeover = true;
        // Connections are distributed to the workers in turn, starting with the second one.
        let by_turns = ServerConfig { accept: AcceptMode::Acceptor, ..server(driver, 2) };
        let starting = std::thread::spawn(move || {
            let gateway = GatewayServer::start(by_turns, config).expect("the driver runs here");
            assert!(gateway.wait_for_upstreams(PATIENCE), "{:?}", gateway.control().upstreams());
            gateway
        });
        let mut sessions = [0; 2].map(|_| venue.accept_session("DAY", 1, 1));
        sessions.sort_by_key(|session| session.login.username.to_string());
        let [other, mut session] = sessions;
        let gateway = starting.join().expect("it starts");
        // Both have the first worker as home, and the second one sends their orders.
        let mut first = Trader::login(&gateway, "C00001", 1);
        let mut neighbour = Trader::login(&gateway, "C00003", 1);
        let Address::Tcp(address) = gateway.address() else { panic!("it listens on TCP") };
        let for_the_second = TcpStream::connect(address).expect("it listens");
        first.send(&[order(1, 100)]);
        let raw = session.next();
        session.accept_order(&raw);
        assert!(matches!(first.next(), Outbound::Accepted(_)));
        OF_SENDER.begin();
        neighbour.send(&[order(101, 100)]);
        OF_SENDER.wait();
        neighbour.send(&(102..=120).map(|number| order(number, 100)).collect::<Vec<_>>());
        let handoff = || gateway.control().node_stats().handoff.expect("orders are handed off");
        eventually("the queue is full", || handoff().overflowed > 0);
        // The previous connection is cut off, and its order is to be cancelled.
        let mut second = Trader::login(&gateway, "C00001", 2);
        second.send(&[order(2, 100)]);
        OF_SENDER.let_go();
        let mut of_client = Vec::new();
        for _ in 0..22 {
            let (kind, name) = sent(&session.next());
            if kind != b'O' || name == "ORDER-00000002" {
                of_client.push(kind as char);
            }
        }
        assert_eq!(of_client, ['X', 'O'], "{driver}");
        // Then nothing waits for answers.
        drop((first, second, neighbour, for_the_second, other, session, venue));
        end_gateway(gateway);
    }
}

/// The gateway's workers and their sessions, in order.
fn start(driver: Driver, venue: &Script, config: GatewayConfig) -> (GatewayServer, [Scripted; 2]) {
    let starting = std::thread::spawn(move || gateway(driver, 2, config));
    let mut sessions = [0; 2].map(|_| venue.accept_session("DAY", 1, 1));
    sessions.sort_by_key(|session| session.login.username.to_string());
    (starting.join().expect("it starts"), sessions)
}

/// The second client's home is the blocked worker, and the first one sends its orders.
fn with_home(venue: &Script, folder: &Folder, hold: fn(u16, &Operation) -> Verdict) -> GatewayConfig {
    GatewayConfig {
        journal: Some((folder.0.clone(), Level::Os)),
        journal_segment_bytes: 1 << 20,
        journal_faults: Some(hold),
        route: Route::Other,
        handoff: narrow(),
        ..GatewayConfig::demo(2, venue.address())
    }
}

static OF_LATE: Hold = Hold::new();

fn hold_late(worker: u16, operation: &Operation) -> Verdict {
    OF_LATE.judge(worker, operation)
}

#[test]
fn an_order_that_its_sender_takes_too_late_is_refused_and_does_not_leave() {
    for driver in drivers() {
        println!("{driver}");
        let (venue, folder) = (Script::new(), Folder::new());
        let mut config = with_home(&venue, &folder, hold_late);
        // An unsent order may always wait for a second.
        config.venues[0].limits.resend_age_max_ns = 0;
        let (gateway, [mut other, mut session]) = start(driver, &venue, config);
        // The first client's orders are sent by the worker that is the second client's home, and that is blocked.
        let mut trader = Trader::login(&gateway, "C00001", 1);
        let mut neighbour = Trader::login(&gateway, "C00002", 1);
        OF_LATE.begin();
        neighbour.send(&[Inbound::AccountQuery]);
        OF_LATE.wait();
        trader.send(&[order(1, 100)]);
        let handoff = || gateway.control().node_stats().handoff.expect("orders are handed off");
        eventually("it is handed over", || handoff().orders_handed_off > 0);
        let handed = Instant::now();
        while handed.elapsed() <= Duration::from_secs(1) {
            // There is one every second.
            other.hear_heartbeat();
        }
        OF_LATE.let_go();
        expect_refused(&mut trader, 1);
        expect_nothing_more(&mut trader);
        drop((trader, neighbour));
        end_gateway(gateway);
        assert!(session.is_left(), "nothing but the good-bye");
    }
}

/// Answers of one exchange that may be undelivered.
const ANSWERS_MAX: u32 = 16_384;

static OF_EXECUTIONS: Hold = Hold::new();

fn hold_executions(worker: u16, operation: &Operation) -> Verdict {
    OF_EXECUTIONS.judge(worker, operation)
}

#[test]
fn executions_for_a_worker_that_takes_nothing_are_not_read_and_arrive_once_and_in_order() {
    const EXECUTIONS: u32 = ANSWERS_MAX + 4000;
    for driver in drivers() {
        println!("{driver}");
        let (venue, folder) = (Script::new(), Folder::new());
        let config = with_home(&venue, &folder, hold_executions);
        let (gateway, [mut session, other]) = start(driver, &venue, config);
        let mut trader = Trader::login(&gateway, "C00002", 1);
        trader.send(&[order(1, EXECUTIONS)]);
        let raw = session.next();
        session.accept_order(&raw);
        expect_accepted(&mut trader, 1);
        OF_EXECUTIONS.begin();
        trader.send(&[Inbound::AccountQuery]);
        OF_EXECUTIONS.wait();
        let stats = || gateway.control().node_stats();
        let overflowed = || stats().handoff.expect("answers are handed over").overflowed;
        let (received_before, overflowed_before) = (stats().received, overflowed());
        let executions: Vec<_> = (1..=EXECUTIONS).map(|number| executed(1, 1, number.into())).collect();
        std::thread::scope(|scope| {
            // Bytes that the gateway does not read wait in the kernel, and here.
            scope.spawn(|| session.say_all(&executions));
            eventually("answers are undelivered", || overflowed() > overflowed_before);
            let received = stats().received - received_before;
            assert!(received <= u64::from(ANSWERS_MAX), "{received}: no more is read");
            OF_EXECUTIONS.let_go();
            assert!(matches!(trader.next(), Outbound::AccountQueryResponse { .. }));
            for number in 1..=EXECUTIONS {
                let next = trader.next();
                let Outbound::Executed(executed) = next else { panic!("{next:?} is no execution") };
                assert_eq!((executed.user_ref_num, executed.match_number), (1, u64::from(number)));
            }
        });
        assert_eq!(counted(&gateway, "weir_upstreams_lost_total"), 0, "nothing was said again");
        trader.send(&[order(2, 100)]);
        let raw = session.next();
        session.accept_order(&raw);
        expect_accepted(&mut trader, 2);
        expect_nothing_more(&mut trader);
        drop((trader, session, other));
        end_gateway(gateway);
    }
}

static OF_NUMBERS: Hold = Hold::new();

fn hold_numbers(worker: u16, operation: &Operation) -> Verdict {
    OF_NUMBERS.judge(worker, operation)
}

fn canceled(user_ref_num: u32) -> Outbound {
    Outbound::Canceled(Canceled { timestamp_ns: 1, user_ref_num, quantity: 100, reason: cancel_reason::USER })
}

fn expect_canceled(trader: &mut Trader, number: u32) {
    let next = trader.next();
    assert!(matches!(next, Outbound::Canceled(canceled) if canceled.user_ref_num == number), "{next:?}");
}

#[test]
fn a_session_with_answers_for_which_there_is_no_room_is_ended_by_name_and_says_them_again() {
    const REPLACES: u32 = ANSWERS_MAX + 600;
    for driver in drivers() {
        println!("{driver}");
        let (venue, folder) = (Script::new(), Folder::new());
        let mut config = with_home(&venue, &folder, hold_numbers);
        config.follows_orders = false;
        config.venues[0].limits = OutstandingLimits {
            unanswered_max: 1 << 16,
            when_full: WhenFull::Refuse,
            ..OutstandingLimits::default()
        };
        let (gateway, [mut session, other]) = start(driver, &venue, config);
        let notices = gateway.control().events().expect("nobody has them");
        let mut trader = Trader::login(&gateway, "C00002", 1);
        trader.send(&[order(1, 100), order(2, 100)]);
        for number in [1, 2] {
            let raw = session.next();
            session.accept_order(&raw);
            expect_accepted(&mut trader, number);
        }
        let last = 2 + REPLACES;
        for numbers in (3..=last).collect::<Vec<_>>().chunks(500) {
            trader.send(&numbers.iter().map(|number| replace(1, *number, 50)).collect::<Vec<_>>());
            numbers.iter().for_each(|_| assert_eq!(session.next()[0], b'U'));
        }
        // Then its worker has nothing more to write.
        expect_nothing_more(&mut trader);
        OF_NUMBERS.begin();
        trader.send(&[Inbound::AccountQuery]);
        OF_NUMBERS.wait();
        // With the first order all its pending replacements end, and each number is released at once.
        session.say_all(&[canceled(1), canceled(2)]);
        line_with(&notices, "the session is lost: another worker does not take the answers");
        let mut session = venue.accept();
        assert_eq!((session.login.session.as_str(), session.login.sequence), ("DAY", 5), "behind the first");
        session.let_in("DAY", 5);
        assert_eq!(session.next(), [b'Q']);
        OF_NUMBERS.let_go();
        let numbers = Outbound::AccountQueryResponse { timestamp_ns: 1, next_user_ref_num: last + 1 };
        session.say_all(&[canceled(2), numbers]);
        assert!(matches!(trader.next(), Outbound::AccountQueryResponse { .. }));
        expect_canceled(&mut trader, 1);
        expect_canceled(&mut trader, 2);
        expect_nothing_more(&mut trader);
        assert_eq!(counted(&gateway, "weir_upstreams_lost_total"), 1);
        eventually("it is up again", || gateway.control().upstreams()[0].is_open);
        trader.send(&[order(last + 1, 100)]);
        let raw = session.next();
        assert_eq!((raw[0], inbound_user_ref_num(&raw)), (b'O', Some(last + 1)), "nothing is sent again");
        session.accept_order(&raw);
        expect_accepted(&mut trader, last + 1);
        drop((trader, session, other));
        end_gateway(gateway);
    }
}

static OF_MARKET: Hold = Hold::new();

fn hold_market(worker: u16, operation: &Operation) -> Verdict {
    OF_MARKET.judge(worker, operation)
}

/// A symbol that an exchange with this many workers trades on the first one: by FNV-1a of its bytes.
fn symbol_of_the_first(workers: u64) -> String {
    let hash = |name: &str| {
        symbol(name).0.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        })
    };
    let mut names = (0..).map(|number| format!("S{number}"));
    names.find(|name| hash(name).is_multiple_of(workers)).expect("there are many")
}

#[test]
fn a_worker_that_takes_nothing_holds_up_no_answers_for_others() {
    /// More than fit into the queue to a worker and the queue before it.
    const ORDERS: u32 = 6000;
    for driver in drivers() {
        println!("{driver}");
        let folder = Folder::new();
        let config = OrdersConfig {
            journal: Some((folder.0.clone(), Level::Os)),
            journal_faults: Some(hold_market),
            ..OrdersConfig::new(demo_accounts(3))
        };
        let exchange = exchange::start(server(driver, 3), config, Mode::Match).expect("the driver runs here");
        let login = |name: &str| match Trader::login_at(exchange.address(), "", name, 1) {
            Some(Ok(trader)) => trader,
            _ => panic!("{name} is not let in"),
        };
        // Their homes are the second and the third worker, and they trade on the first.
        let (mut seller, mut buyer) = (login("C00002"), login("C00003"));
        let traded = symbol_of_the_first(3);
        let sale = |number: u32| {
            let Inbound::Enter(enter, rest) = order_for(number, 1, &traded) else { panic!("an order") };
            Inbound::Enter(Enter { side: b'S', ..enter }, rest)
        };
        let sales: Vec<_> = (1..=ORDERS).map(sale).collect();
        sales.chunks(500).for_each(|sales| seller.send(sales));
        for _ in 0..ORDERS {
            assert!(matches!(seller.next(), Outbound::Accepted(_)));
        }
        OF_MARKET.begin();
        seller.send(&[sale(ORDERS + 1)]);
        OF_MARKET.wait();
        buyer.send(&[order_for(1, ORDERS, &traded)]);
        assert!(matches!(buyer.next(), Outbound::Accepted(_)));
        for _ in 0..ORDERS {
            assert!(matches!(buyer.next(), Outbound::Executed(_)));
        }
        OF_MARKET.let_go();
        assert!(matches!(seller.next(), Outbound::Accepted(_)));
        for number in 1..=ORDERS {
            let Outbound::Executed(executed) = seller.next() else { panic!("an execution") };
            assert_eq!(executed.user_ref_num, number);
        }
        drop((seller, buyer));
        end_exchange(exchange);
    }
}
