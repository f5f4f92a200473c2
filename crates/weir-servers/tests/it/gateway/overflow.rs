//! What one worker has for another that does not take it: nothing is lost, nothing is turned round.

use std::{
    io::Read,
    net::TcpStream,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::Duration,
};

use weir_engine::{
    Driver,
    handoff::Options,
    net::Address,
    serve::{AcceptMode, ServerConfig},
};
use weir_proto::ouch::{Enter, Inbound, Outbound};
use weir_servers::{
    exchange::{self, Mode},
    gateway::{GatewayConfig, GatewayServer},
    journal::{
        Level,
        faults::{Operation, Verdict},
    },
    orders::{OrdersConfig, demo_accounts},
};
use weir_trading::Route;

use super::rig::{
    Folder, PATIENCE, Script, Trader, drivers, end_exchange, end_gateway, eventually, exchange as echoing,
    loopback, order, order_for, server, symbol,
};

/// Queues that are full at once.
fn narrow() -> Options {
    Options { ring_slots: 2, overflow_max: 1, ..Options::default() }
}

/// Connections that say nothing, until one worker after the other has no task for one more.
fn crowd(gateway: &GatewayServer) -> Vec<TcpStream> {
    let Address::Tcp(address) = gateway.address() else { panic!("it listens on TCP") };
    let mut kept = Vec::new();
    let mut closed = 0;
    while closed < 8 {
        let mut idle = TcpStream::connect(address).expect("it listens");
        idle.set_read_timeout(Some(Duration::from_millis(50))).expect("a socket");
        // Nobody says anything to it: it is closed, or it waits.
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
fn answers_that_are_stuck_arrive_although_no_task_is_free() {
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
        assert!(handoff.overflowed > 0, "nothing was stuck: {handoff:?}");
        drop((traders, idle));
        end_gateway(gateway);
        end_exchange(venue);
    }
}

static IS_HELD: AtomicBool = AtomicBool::new(false);
static IS_HOLDING: AtomicBool = AtomicBool::new(false);

/// Holds the second worker at its journal.
fn hold(worker: u16, operation: &Operation) -> Verdict {
    if worker == 1 && matches!(operation, Operation::Write { .. }) {
        while IS_HELD.load(SeqCst) {
            IS_HOLDING.store(true, SeqCst);
            std::thread::yield_now();
        }
    }
    Verdict::Pass
}

/// What the gateway sent: the kind, and of an order its client's name for it.
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
        IS_HELD.store(false, SeqCst);
        IS_HOLDING.store(false, SeqCst);
        let (venue, folder) = (Script::new(), Folder::new());
        let mut config = GatewayConfig {
            journal: Some((folder.0.clone(), Level::Os)),
            journal_segment_bytes: 64 << 10,
            journal_faults: Some(hold),
            route: Route::Other,
            handoff: narrow(),
            ..GatewayConfig::demo(3, venue.address())
        };
        config.accounts[0].cancel_on_disconnect = true;
        config.accounts[0].takeover = true;
        // Connections go to the workers in turn, beginning with the second one.
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
        // Both live on the first worker, and their orders leave by the second one.
        let mut first = Trader::login(&gateway, "C00001", 1);
        let mut neighbour = Trader::login(&gateway, "C00003", 1);
        let Address::Tcp(address) = gateway.address() else { panic!("it listens on TCP") };
        let for_the_second = TcpStream::connect(address).expect("it listens");
        first.send(&[order(1, 100)]);
        let raw = session.next();
        session.accept_order(&raw);
        assert!(matches!(first.next(), Outbound::Accepted(_)));
        IS_HELD.store(true, SeqCst);
        neighbour.send(&[order(101, 100)]);
        eventually("the second worker takes nothing any more", || IS_HOLDING.load(SeqCst));
        neighbour.send(&(102..=120).map(|number| order(number, 100)).collect::<Vec<_>>());
        let handoff = || gateway.control().node_stats().handoff.expect("orders are handed off");
        eventually("the queue is full", || handoff().overflowed > 0);
        // The one before it is cut off, and its order is to be cancelled.
        let mut second = Trader::login(&gateway, "C00001", 2);
        second.send(&[order(2, 100)]);
        IS_HELD.store(false, SeqCst);
        let mut of_client = Vec::new();
        for _ in 0..22 {
            let (kind, name) = sent(&session.next());
            if kind != b'O' || name == "ORDER-00000002" {
                of_client.push(kind as char);
            }
        }
        assert_eq!(of_client, ['X', 'O'], "{driver}");
        // Nobody waits for answers then.
        drop((first, second, neighbour, for_the_second, other, session, venue));
        end_gateway(gateway);
    }
}

static IS_HELD_THERE: AtomicBool = AtomicBool::new(false);
static IS_HOLDING_THERE: AtomicBool = AtomicBool::new(false);

/// As [`hold`], below an exchange.
fn hold_there(worker: u16, operation: &Operation) -> Verdict {
    if worker == 1 && matches!(operation, Operation::Write { .. }) {
        while IS_HELD_THERE.load(SeqCst) {
            IS_HOLDING_THERE.store(true, SeqCst);
            std::thread::yield_now();
        }
    }
    Verdict::Pass
}

/// A symbol that an exchange of so many workers trades on the first one: by FNV-1a of its bytes.
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
    /// More than the queue to a worker takes, and what may wait before it.
    const ORDERS: u32 = 6000;
    for driver in drivers() {
        println!("{driver}");
        IS_HELD_THERE.store(false, SeqCst);
        IS_HOLDING_THERE.store(false, SeqCst);
        let folder = Folder::new();
        let config = OrdersConfig {
            journal: Some((folder.0.clone(), Level::Os)),
            journal_faults: Some(hold_there),
            ..OrdersConfig::new(demo_accounts(3))
        };
        let exchange = exchange::start(server(driver, 3), config, Mode::Match).expect("the driver runs here");
        let login = |name: &str| match Trader::login_at(exchange.address(), "", name, 1) {
            Some(Ok(trader)) => trader,
            _ => panic!("{name} is not let in"),
        };
        // They live on the second and on the third worker, and trade on the first.
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
        IS_HELD_THERE.store(true, SeqCst);
        seller.send(&[sale(ORDERS + 1)]);
        eventually("the second worker is held", || IS_HOLDING_THERE.load(SeqCst));
        buyer.send(&[order_for(1, ORDERS, &traded)]);
        assert!(matches!(buyer.next(), Outbound::Accepted(_)));
        for _ in 0..ORDERS {
            assert!(matches!(buyer.next(), Outbound::Executed(_)));
        }
        IS_HELD_THERE.store(false, SeqCst);
        assert!(matches!(seller.next(), Outbound::Accepted(_)));
        for number in 1..=ORDERS {
            let Outbound::Executed(executed) = seller.next() else { panic!("an execution") };
            assert_eq!(executed.user_ref_num, number);
        }
        drop((seller, buyer));
        end_exchange(exchange);
    }
}
