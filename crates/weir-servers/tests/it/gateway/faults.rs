//! Tests of a gateway with a failing disk: no order is sent and no answer is given that is not journaled, and each
//! order has one outcome when the disk works again.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
};

use weir_engine::{Config, Driver, Runtime};
use weir_proto::{
    ouch::{Appendage, Enter, Inbound, Outbound, inbound_user_ref_num, reject_reason},
    soup::DEBUG,
};
use weir_servers::{
    gateway::{GatewayConfig, GatewayServer, LocalGateway},
    journal::{
        Level,
        faults::{Operation, Verdict},
    },
    metrics::MetricsPort,
    orders::OrdersConfig,
};
use weir_trading::Route;

use super::{
    changes::get,
    rig::{
        Folder, Script, Scripted, Trader, cancel, drivers, end_gateway, eventually, gateway, line_with, order,
    },
    world,
};
use crate::orders::client::{Packet, accepted, enter, order as plain_order};

const EIO: i32 = 5;

/// A function that judges disk operations.
type Judge = fn(u16, &Operation) -> Verdict;

/// A gateway with the test's disk, in front of a scripted exchange, logged in.
fn start(
    driver: Driver,
    workers: usize,
    venue: &Script,
    config: GatewayConfig,
) -> (GatewayServer, Vec<Scripted>) {
    let starting = std::thread::spawn(move || gateway(driver, workers, config));
    let mut sessions: Vec<Scripted> = (0..workers).map(|_| venue.accept_session("DAY", 1, 1)).collect();
    sessions.sort_by_key(|session| session.login.username.to_string());
    (starting.join().expect("it starts"), sessions)
}

fn config(venue: &Script, folder: &Folder, route: Route) -> GatewayConfig {
    GatewayConfig {
        journal: Some((folder.0.clone(), Level::Os)),
        journal_segment_bytes: 64 << 10,
        route,
        ..GatewayConfig::demo(2, venue.address())
    }
}

/// Whether the health page reports a healthy server.
fn is_healthy(address: SocketAddr) -> bool {
    let page = get(address, "/healthz");
    if page.starts_with("HTTP/1.1 200 ") {
        return true;
    }
    assert!(page.starts_with("HTTP/1.1 503 ") && page.contains("the journal has failed"), "{page}");
    false
}

pub fn health_page(gateway: &GatewayServer) -> SocketAddr {
    let port = MetricsPort::bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let address = port.address().expect("it has one");
    port.answer(Arc::new(gateway.control())).expect("a thread");
    address
}

/// The client gets only the notice of the failure, and then the end.
fn expect_notice(trader: &mut Trader) {
    let rest = trader.rest();
    let [(kind, text)] = rest.as_slice() else { panic!("{rest:?}") };
    assert_eq!(*kind, DEBUG);
    assert!(text.starts_with(b"the journal has failed"), "{text:?}");
}

fn expect_accepted(trader: &mut Trader, number: u32) {
    match trader.next() {
        Outbound::Accepted(accepted) => assert_eq!(accepted.user_ref_num, number),
        other => panic!("{other:?} instead of an acceptance of {number}"),
    }
}

static IS_ORDER_LOST: AtomicBool = AtomicBool::new(false);

fn lose_orders(_: u16, operation: &Operation) -> Verdict {
    match operation {
        Operation::Write { .. } if IS_ORDER_LOST.load(SeqCst) => {
            Verdict::Refuse(io::Error::from_raw_os_error(EIO))
        }
        _ => Verdict::Pass,
    }
}

#[test]
fn an_order_that_cannot_be_journaled_is_not_sent_and_everybody_is_told() {
    for driver in drivers() {
        IS_ORDER_LOST.store(false, SeqCst);
        let (venue, folder) = (Script::new(), Folder::new());
        let works = config(&venue, &folder, Route::Own);
        let fails = GatewayConfig { journal_faults: Some(lose_orders), ..works.clone() };
        let (first, mut sessions) = start(driver, 1, &venue, fails);
        let (page, mut session) = (health_page(&first), sessions.remove(0));
        let mut traders = ["C00001", "C00002"].map(|client| Trader::login(&first, client, 1));
        traders[0].send(&[order(1, 100)]);
        let raw = session.next();
        session.accept_order(&raw);
        expect_accepted(&mut traders[0], 1);
        assert!(is_healthy(page));
        IS_ORDER_LOST.store(true, SeqCst);
        traders[0].send(&[order(2, 100)]);
        traders.iter_mut().for_each(expect_notice);
        eventually("it is not healthy any more", || !is_healthy(page));
        assert_eq!(Trader::try_login(&first, "C00001", 2).err(), Some(b'S'));
        drop(traders);
        end_gateway(first);
        assert_eq!(session.try_next(), None, "nothing was sent");

        // With a working disk it is accepted when it is resent.
        let starting = std::thread::spawn(move || gateway(driver, 1, works));
        let mut session = venue.accept();
        assert_eq!((session.login.session.as_str(), session.login.sequence), ("DAY", 3));
        session.let_in("DAY", 3);
        session.answer_query(2);
        let second = starting.join().expect("it starts");
        let mut trader = Trader::login(&second, "C00001", 2);
        trader.send(&[order(1, 100), order(2, 100)]);
        let raw = session.next();
        assert_eq!(inbound_user_ref_num(&raw), Some(2));
        session.accept_order(&raw);
        expect_accepted(&mut trader, 2);
        drop(trader);
        end_gateway(second);
    }
}

static IS_ANSWER_LOST: AtomicBool = AtomicBool::new(false);

fn lose_answers(_: u16, operation: &Operation) -> Verdict {
    match operation {
        Operation::Write { .. } if IS_ANSWER_LOST.load(SeqCst) => {
            Verdict::Refuse(io::Error::from_raw_os_error(EIO))
        }
        _ => Verdict::Pass,
    }
}

#[test]
fn an_answer_that_cannot_be_journaled_is_given_once_and_after_a_restart() {
    for driver in drivers() {
        IS_ANSWER_LOST.store(false, SeqCst);
        let (venue, folder) = (Script::new(), Folder::new());
        let works = config(&venue, &folder, Route::Own);
        let fails = GatewayConfig { journal_faults: Some(lose_answers), ..works.clone() };
        let (first, mut sessions) = start(driver, 1, &venue, fails);
        let mut session = sessions.remove(0);
        let mut trader = Trader::login(&first, "C00001", 1);
        trader.send(&[order(1, 100), order(2, 100)]);
        let (answered, lost) = (session.next(), session.next());
        session.accept_order(&answered);
        expect_accepted(&mut trader, 1);
        IS_ANSWER_LOST.store(true, SeqCst);
        session.accept_order(&lost);
        expect_notice(&mut trader);
        drop(trader);
        end_gateway(first);

        let starting = std::thread::spawn(move || gateway(driver, 1, works));
        let mut session = venue.accept();
        // The answer to the query, that to one order, and now the other one's.
        assert_eq!((session.login.session.as_str(), session.login.sequence), ("DAY", 3));
        session.let_in("DAY", 3);
        session.accept_order(&lost);
        session.answer_query(3);
        let second = starting.join().expect("it starts");
        let mut trader = Trader::login(&second, "C00001", 2);
        expect_accepted(&mut trader, 2);
        trader.send(&[order(2, 100), order(3, 100)]);
        let raw = session.next();
        assert_eq!(inbound_user_ref_num(&raw), Some(3), "it was answered, and is not sent again");
        session.accept_order(&raw);
        expect_accepted(&mut trader, 3);
        drop(trader);
        end_gateway(second);
    }
}

static IS_SENDER_LOST: AtomicBool = AtomicBool::new(false);

/// The disk of the second worker.
fn lose_sender(worker: u16, operation: &Operation) -> Verdict {
    match operation {
        Operation::Write { .. } if worker == 1 && IS_SENDER_LOST.load(SeqCst) => {
            Verdict::Refuse(io::Error::from_raw_os_error(EIO))
        }
        _ => Verdict::Pass,
    }
}

#[test]
fn orders_for_a_worker_whose_journal_has_failed_are_refused_cancels_pass_and_none_has_two_ends() {
    for driver in drivers() {
        IS_SENDER_LOST.store(false, SeqCst);
        let (venue, folder) = (Script::new(), Folder::new());
        let works = config(&venue, &folder, Route::Other);
        let fails = GatewayConfig { journal_faults: Some(lose_sender), ..works.clone() };
        let (first, mut sessions) = start(driver, 2, &venue, fails);
        let page = health_page(&first);
        // The first account's home is the first worker, and its orders are sent by the second one.
        let mut session = sessions.pop().expect("two");
        let mut trader = Trader::login(&first, "C00001", 1);
        let mut of_failed = Trader::login(&first, "C00002", 1);
        trader.send(&[order(1, 100)]);
        let raw = session.next();
        session.accept_order(&raw);
        expect_accepted(&mut trader, 1);
        IS_SENDER_LOST.store(true, SeqCst);
        // It is unknown whether the disk has this one: it is not reported before the next start.
        trader.send(&[order(2, 100)]);
        expect_notice(&mut of_failed);
        eventually("it is not healthy any more", || !is_healthy(page));
        trader.send(&[order(3, 100)]);
        let Outbound::Rejected(rejected) = trader.next() else { panic!("it is refused") };
        assert_eq!((rejected.user_ref_num, rejected.reason), (3, reject_reason::DESTINATION_CLOSED));
        // Orders that were sent before can still be cancelled, repeatedly.
        for _ in 0..2 {
            trader.send(&[cancel(1)]);
            let raw = session.next();
            assert_eq!((raw[0], inbound_user_ref_num(&raw)), (b'X', Some(1)));
        }
        drop((trader, of_failed));
        end_gateway(first);
        assert_eq!(session.try_next(), None, "nothing else was sent");
        drop(sessions);

        let starting = std::thread::spawn(move || gateway(driver, 2, works));
        let mut sessions = [venue.accept(), venue.accept()];
        for session in &mut sessions {
            let next = session.login.sequence.max(1);
            session.let_in("DAY", next);
            session.answer_query(2);
        }
        let second = starting.join().expect("it starts");
        let mut trader = Trader::login(&second, "C00001", 1);
        expect_accepted(&mut trader, 1);
        let mut refused = [trader.next(), trader.next()].map(|message| match message {
            Outbound::Rejected(rejected) => (rejected.user_ref_num, rejected.reason),
            other => panic!("{other:?} instead of a refusal"),
        });
        refused.sort_unstable();
        let closed = reject_reason::DESTINATION_CLOSED;
        assert_eq!(refused, [(2, closed), (3, closed)]);
        trader.send(&[order(2, 100), order(3, 100), Inbound::AccountQuery]);
        assert!(matches!(trader.next(), Outbound::AccountQueryResponse { next_user_ref_num: 4, .. }));
        drop((trader, sessions));
        end_gateway(second);
    }
}

static IS_HOME_LOST: AtomicBool = AtomicBool::new(false);

/// The disk of the first worker.
fn lose_home(worker: u16, operation: &Operation) -> Verdict {
    match operation {
        Operation::Write { .. } if worker == 0 && IS_HOME_LOST.load(SeqCst) => {
            Verdict::Refuse(io::Error::from_raw_os_error(EIO))
        }
        _ => Verdict::Pass,
    }
}

#[test]
fn an_order_that_only_a_lost_journal_had_is_refused_once_although_a_later_one_was_sent() {
    for driver in drivers() {
        println!("{driver}");
        IS_HOME_LOST.store(false, SeqCst);
        let (venue, folder) = (Script::new(), Folder::new());
        let mut works = config(&venue, &folder, Route::Other);
        works.limits.shares_max = Some(500);
        let fails = GatewayConfig { journal_faults: Some(lose_home), ..works.clone() };
        let (first, mut sessions) = start(driver, 2, &venue, fails);
        // The first account's home is the first worker, and its orders are sent by the second one.
        let mut session = sessions.pop().expect("two");
        let mut trader = Trader::login(&first, "C00001", 1);
        trader.send(&[order(1, 100)]);
        let raw = session.next();
        session.accept_order(&raw);
        expect_accepted(&mut trader, 1);
        IS_HOME_LOST.store(true, SeqCst);
        trader.send(&[refused(2), order(3, 100)]);
        let sent = session.next();
        assert_eq!(inbound_user_ref_num(&sent), Some(2), "the second one that is sent");
        expect_notice(&mut trader);
        session.accept_order(&sent);
        drop(trader);
        end_gateway(first);
        drop((session, sessions));

        let starting = std::thread::spawn(move || gateway(driver, 2, works));
        let mut sessions = [venue.accept(), venue.accept()];
        sessions.sort_by_key(|session| session.login.username.to_string());
        let [own, other] = &mut sessions;
        let next = own.login.sequence.max(1);
        own.let_in("DAY", next);
        own.answer_query(1);
        // The answers to the query and to one order are stored.
        assert_eq!((other.login.session.as_str(), other.login.sequence), ("DAY", 3));
        other.let_in("DAY", 3);
        other.accept_order(&sent);
        other.answer_query(3);
        let second = starting.join().expect("it starts");
        let notices = second.control().events().expect("nobody has them");
        let mut trader = Trader::login(&second, "C00001", 1);
        expect_accepted(&mut trader, 1);
        expect_accepted(&mut trader, 3);
        let next_of = |message: &Outbound| match message {
            Outbound::AccountQueryResponse { next_user_ref_num, .. } => *next_user_ref_num,
            other => panic!("{other:?} instead of the next number"),
        };
        trader.send(&[refused(2), order(3, 100), Inbound::AccountQuery]);
        let Outbound::Rejected(rejected) = trader.next() else { panic!("it is refused") };
        assert_eq!((rejected.user_ref_num, rejected.reason), (2, reject_reason::DESTINATION_CLOSED));
        assert_eq!(next_of(&trader.next()), 4, "what was answered is a retransmission");
        line_with(&notices, "order number 2, which no journal has");
        trader.send(&[refused(2), Inbound::AccountQuery]);
        assert_eq!(next_of(&trader.next()), 4, "it is answered once");
        drop((trader, sessions));
        end_gateway(second);
    }
}

static IS_TORN: AtomicBool = AtomicBool::new(false);
static BYTES_KEPT: AtomicUsize = AtomicUsize::new(0);

/// A part of one batch is stored.
fn tear(_: u16, operation: &Operation) -> Verdict {
    match operation {
        Operation::Write { .. } if IS_TORN.load(SeqCst) => {
            Verdict::Part(BYTES_KEPT.load(SeqCst), io::Error::from_raw_os_error(EIO))
        }
        _ => Verdict::Pass,
    }
}

/// A disk that refuses everything.
fn refuse(_: u16, operation: &Operation) -> Verdict {
    match operation {
        Operation::Write { .. } => Verdict::Refuse(io::Error::from_raw_os_error(EIO)),
        _ => Verdict::Pass,
    }
}

/// An order of more shares than the test's limit.
fn refused(number: u32) -> Inbound<'static> {
    Inbound::Enter(Enter { quantity: 1000, ..plain_order(number) }, Appendage::EMPTY)
}

#[test]
fn an_order_whose_refusal_was_lost_is_refused_once_and_for_its_reason_whatever_the_disk_kept() {
    let mut did_not_begin = 0;
    // More bytes than one refused order leaves.
    for kept in (0..=256).step_by(8) {
        let (of_exchange, of_gateway) = (Folder::new(), Folder::new());
        let exchange = || OrdersConfig {
            journal: Some((of_exchange.0.clone(), Level::Os)),
            journal_segment_bytes: 64 << 10,
            ..world::exchange_config()
        };
        let config = |at, journal_faults: Option<Judge>| {
            let mut config = GatewayConfig::demo(1, at);
            config.limits.shares_max = Some(500);
            config.journal = Some((of_gateway.0.clone(), Level::Os));
            config.journal_segment_bytes = 64 << 10;
            config.journal_faults = journal_faults;
            config
        };
        IS_TORN.store(false, SeqCst);
        BYTES_KEPT.store(kept, SeqCst);
        world::on_sim(
            exchange(),
            |at| config(at, Some(tear)),
            async |world| {
                let mut client = world.enter("C00001").await;
                client.send(&enter(1)).await;
                assert_eq!(accepted(&client.message().await), 1);
                IS_TORN.store(true, SeqCst);
                client.send(&refused(2)).await;
                assert!(matches!(client.packet().await, Packet::Debug(_)), "it is not refused yet");
            },
        );
        // A gateway that cannot journal its first records does not start.
        let nobody = "127.0.0.1:1".parse().expect("an address");
        let begun = Runtime::new(&Config::with_driver(Driver::Sim))
            .expect("it runs everywhere")
            .block_on(LocalGateway::start(config(nobody, Some(refuse))));
        did_not_begin += usize::from(begun.is_err());
        drop(begun);
        world::on_sim(
            exchange(),
            |at| config(at, None),
            async |world| {
                let mut client = world.enter_at("C00001", 2).await;
                client.send(&refused(2)).await;
                client.send(&Inbound::AccountQuery).await;
                match client.message().await {
                    Outbound::Rejected(rejected) => {
                        let expected = (2, reject_reason::SHARES_EXCEED_THRESHOLD);
                        assert_eq!((rejected.user_ref_num, rejected.reason), expected, "{kept} bytes kept");
                    }
                    other => panic!("{other:?} instead of a refusal, with {kept} bytes kept"),
                }
                match client.message().await {
                    Outbound::AccountQueryResponse { next_user_ref_num, .. } => {
                        assert_eq!(next_user_ref_num, 3)
                    }
                    other => panic!("{other:?} instead of an answer, with {kept} bytes kept"),
                }
            },
        );
    }
    assert!(did_not_begin > 0, "the refusal is never what is missing");
}
