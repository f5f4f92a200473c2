//! Tests of orders through the gateway, on every driver, route and hand-off strategy.

use std::collections::BTreeMap;

use weir_engine::{
    Driver,
    handoff::{Options, Strategy},
};
use weir_proto::ouch::{Appendage, Enter, Inbound, Outbound, codes::side, encode_tag, reject_reason};
use weir_servers::{
    exchange::Mode,
    gateway::{GatewayConfig, OutstandingLimits},
};
use weir_trading::Route;

use super::rig::{
    Script, Scripted, Trader, accepted, beside_each_other, cancel, counted, drivers, end_exchange,
    end_gateway, eventually, exchange, exchange_in, gateway, loopback, order, replace,
};

const ACCOUNTS: u32 = 4;
const ORDERS: u32 = 60;

fn run(driver: Driver, workers: usize, route: Route, strategy: Strategy) {
    run_with(driver, workers, route, Options { strategy, ..Options::default() });
}

/// Every client sends all orders at once and must see them accepted in the same order.
fn run_with(driver: Driver, workers: usize, route: Route, handoff: Options) {
    let strategy = handoff.strategy;
    println!("{driver}, {workers} workers, route {route}, {strategy}, {} slots", handoff.ring_slots);
    let venue = exchange(driver, loopback());
    let mut config = GatewayConfig::demo(ACCOUNTS, venue.address().clone());
    config.route = route;
    config.handoff = handoff;
    let gateway = gateway(driver, workers, config);
    let (before, venue_before) = (gateway.control().node_stats(), venue.control().node_stats());
    let name = |account: u32| format!("C{account:05}");
    let mut traders: Vec<Trader> =
        (1..=ACCOUNTS).map(|account| Trader::login(&gateway, &name(account), 1)).collect();
    let numbers: Vec<u32> = (1..=ORDERS).collect();
    for chunk in numbers.chunks(7) {
        for trader in &mut traders {
            let orders: Vec<_> = chunk.iter().map(|number| order(*number, 100)).collect();
            trader.send(&orders);
        }
    }
    for trader in &mut traders {
        for number in 1..=ORDERS {
            let Outbound::Accepted(accepted) = trader.next() else { panic!("an order is accepted") };
            assert_eq!(accepted.user_ref_num, number, "{driver} {route} {strategy}");
            assert_eq!(accepted.client_order_id.as_str(), format!("ORDER-{number:08}"));
        }
    }
    let stats = gateway.control().node_stats();
    let (received, venue_received) =
        (stats.received - before.received, venue.control().node_stats().received - venue_before.received);
    assert_eq!(venue_received, u64::from(ACCOUNTS * ORDERS));
    assert_eq!(received, 2 * venue_received);
    eventually("nothing waits any more", || gateway.control().node_stats().backlog == 0);
    let expected = match (route, workers) {
        (Route::Own, _) | (_, 1) => None,
        (Route::Other, _) => Some(u64::from(ACCOUNTS * ORDERS)),
        (Route::Modulo, _) => Some(u64::from(ACCOUNTS * ORDERS) / 2),
    };
    assert_eq!(stats.handoff.map(|handoff| handoff.orders_handed_off), expected);
    assert!(stats.hops.iter().any(|hop| hop.hop == "upstream" && hop.latency.count > 0), "{:?}", stats.hops);
    drop(traders);
    end_gateway(gateway);
    end_exchange(venue);
}

#[test]
fn every_order_is_answered_once_and_in_order_on_every_driver() {
    for driver in drivers() {
        run(driver, 1, Route::Own, Strategy::Mesh);
        run(driver, 2, Route::Own, Strategy::Owner);
    }
}

/// Whether a strategy hands anything off, and a driver supports it.
fn hands_off(driver: Driver, strategy: Strategy) -> bool {
    match strategy {
        Strategy::Owner => false,
        Strategy::MsgRing => driver == Driver::Uring,
        _ => true,
    }
}

#[test]
fn every_order_is_answered_once_and_in_order_by_every_way_of_handing_off() {
    for driver in drivers() {
        for strategy in Strategy::ALL {
            if hands_off(driver, strategy) {
                run(driver, 2, Route::Other, strategy);
                run(driver, 2, Route::Modulo, strategy);
            }
        }
    }
}

#[test]
fn queues_between_workers_that_are_full_both_ways_hold_nobody_up_for_ever_and_turn_nothing_round() {
    for driver in drivers() {
        for strategy in Strategy::ALL {
            if hands_off(driver, strategy) {
                let narrow = Options { strategy, ring_slots: 2, overflow_max: 2, ..Options::default() };
                run_with(driver, 2, Route::Other, narrow);
            }
        }
    }
}

/// The messages about one client's orders.
#[derive(Default)]
struct ClientOrders {
    live: BTreeMap<u32, u32>,
    executed: u64,
}

impl ClientOrders {
    /// Takes messages until everything that this client has entered is accepted and executed.
    fn take_all(&mut self, trader: &mut Trader, orders: u32, sides: &mut BTreeMap<u64, Vec<u32>>) {
        while self.live.len() < orders as usize || self.live.values().any(|shares| *shares > 0) {
            match trader.next() {
                Outbound::Accepted(accepted) => {
                    assert_eq!(self.live.insert(accepted.user_ref_num, accepted.quantity), None);
                }
                Outbound::Executed(executed) => {
                    let number = executed.user_ref_num;
                    let live = self.live.get_mut(&number).expect("it was accepted before");
                    *live = live.checked_sub(executed.quantity).expect("no more than was left");
                    self.executed += u64::from(executed.quantity);
                    sides.entry(executed.match_number).or_default().push(executed.quantity);
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn executions_come_behind_their_acceptances_and_no_share_is_lost_where_orders_are_handed_off() {
    const ORDERS: u32 = 120;
    for driver in drivers() {
        for route in [Route::Own, Route::Other, Route::Modulo] {
            println!("{driver}, route {route}");
            let venue = exchange_in(Mode::Match, driver, loopback());
            let mut config = GatewayConfig { route, ..GatewayConfig::demo(4, venue.address().clone()) };
            config.handoff.strategy = Strategy::Mesh;
            let gateway = gateway(driver, 2, config);
            let mut traders: Vec<(Trader, ClientOrders)> = (1..=4)
                .map(|account| {
                    (Trader::login(&gateway, &format!("C{account:05}"), 1), ClientOrders::default())
                })
                .collect();
            // Two clients buy what two others sell, in different pieces.
            for numbers in (1..=ORDERS).collect::<Vec<_>>().chunks(10) {
                for (index, (trader, _)) in traders.iter_mut().enumerate() {
                    let is_buyer = index < 2;
                    let orders: Vec<_> =
                        numbers.iter().map(|number| traded(*number, is_buyer, numbers[0])).collect();
                    trader.send(&orders);
                }
            }
            let mut sides = BTreeMap::new();
            for (trader, own) in &mut traders {
                own.take_all(trader, ORDERS, &mut sides);
            }
            let executed: Vec<u64> = traders.iter().map(|(_, own)| own.executed).collect();
            assert_eq!(executed[0] + executed[1], executed[2] + executed[3]);
            assert!(sides.values().all(|pair| pair.len() == 2 && pair[0] == pair[1]), "{sides:?}");
            drop(traders);
            end_gateway(gateway);
            end_exchange(venue);
        }
    }
}

/// An order at the only price. Every ten consecutive ones have equally many shares on each side.
fn traded(number: u32, is_buyer: bool, first: u32) -> Inbound<'static> {
    let place = number - first;
    let quantity = if is_buyer { 10 + place } else { 19 - place };
    let Inbound::Enter(enter, _) = order(number, quantity) else { panic!("it is an order") };
    let side = if is_buyer { side::BUY } else { side::SELL };
    Inbound::Enter(Enter { side, ..enter }, Appendage::EMPTY)
}

#[test]
fn cancels_and_replaces_find_their_orders() {
    for driver in drivers() {
        for route in [Route::Own, Route::Other] {
            let venue = exchange(driver, loopback());
            let config = GatewayConfig { route, ..GatewayConfig::demo(2, venue.address().clone()) };
            let gateway = gateway(driver, 2, config);
            let mut trader = Trader::login(&gateway, "C00002", 1);
            // A cancel of an order that does not exist is not answered.
            trader.send(&[
                order(10, 100),
                order(20, 50),
                cancel(9),
                replace(10, 30, 70),
                cancel(20),
                cancel(30),
            ]);
            let mut seen = Vec::new();
            while seen.len() < 5 {
                seen.push(match trader.next() {
                    Outbound::Accepted(accepted) => ('A', 0, accepted.user_ref_num),
                    Outbound::Replaced(replaced) => {
                        ('U', replaced.original_user_ref_num, replaced.user_ref_num)
                    }
                    Outbound::Canceled(canceled) => ('C', canceled.quantity, canceled.user_ref_num),
                    other => panic!("{other:?}"),
                });
            }
            let expected = [('A', 0, 10), ('A', 0, 20), ('U', 10, 30), ('C', 50, 20), ('C', 70, 30)];
            assert_eq!(seen, expected, "{driver} {route}");
            // A replace of such an order is refused under its own number, which is used up.
            trader.send(&[replace(9, 40, 70)]);
            let Outbound::Rejected(rejected) = trader.next() else { panic!("it is refused") };
            let expected = (40, reject_reason::REPLACE_NOT_ALLOWED);
            assert_eq!((rejected.user_ref_num, rejected.reason), expected);
            trader.send(&[order(40, 10), order(41, 10)]);
            assert!(matches!(trader.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == 41));
            assert_eq!(counted(&gateway, "weir_orders_unknown_total"), 2, "the cancel and the replace");
            end_gateway(gateway);
            end_exchange(venue);
        }
    }
}

#[test]
fn an_order_with_too_long_an_appendage_is_refused_and_counted() {
    for driver in drivers() {
        println!("{driver}");
        let venue = exchange(driver, loopback());
        let gateway = gateway(driver, 1, GatewayConfig::demo(1, venue.address().clone()));
        let mut trader = Trader::login(&gateway, "C00001", 1);
        let with_tag = |number: u32, value: usize| {
            let mut raw = Vec::new();
            order(number, 100).encode(&mut raw);
            raw.truncate(45);
            let bytes = value + 2;
            raw.extend_from_slice(&(bytes as u16).to_be_bytes());
            raw.extend_from_slice(&[value as u8 + 1, 99]);
            raw.resize(raw.len() + value, 7);
            raw
        };
        trader.send_raw(&with_tag(1, 47));
        assert!(matches!(trader.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == 1));
        trader.send_raw(&with_tag(2, 48));
        let Outbound::Rejected(rejected) = trader.next() else { panic!("it is refused") };
        assert_eq!((rejected.user_ref_num, rejected.reason), (2, reject_reason::PROCESSING_ERROR));
        assert_eq!(counted(&gateway, "weir_orders_too_long_total"), 1, "the first one fits");
        drop(trader);
        end_gateway(gateway);
        end_exchange(venue);
    }
}

/// The answer to an order, with an appendage of this many bytes.
fn accepted_with(raw: &[u8], bytes: usize) -> Vec<u8> {
    let (mut tags, mut answer) = (Vec::new(), Vec::new());
    encode_tag(1, &vec![7; bytes - 2], &mut tags);
    accepted(raw).encode_with(Appendage::parse(&tags).expect("a tag"), &mut answer);
    answer
}

#[test]
fn an_answer_with_too_long_an_appendage_arrives_without_it() {
    let all =
        drivers().into_iter().flat_map(|driver| [Route::Own, Route::Other].map(|route| (driver, route)));
    beside_each_other(all, |(driver, route)| {
        println!("{driver}, {route}");
        let venue = Script::new();
        let config = GatewayConfig { route, ..GatewayConfig::demo(2, venue.address()) };
        let starting = std::thread::spawn(move || gateway(driver, 2, config));
        let mut sessions = [venue.accept_session("X", 1, 1), venue.accept_session("X", 1, 1)].map(Some);
        let gateway = starting.join().expect("it starts");
        let user = if route == Route::Own { "G00001" } else { "G00002" };
        let mut session = take_session(&mut sessions, user);
        let mut trader = Trader::login(&gateway, "C00001", 1);
        // An appendage that fits, to the byte, arrives unchanged.
        for (number, bytes) in [(1, 32), (2, 33), (3, 60)] {
            trader.send(&[order(number, 100)]);
            let raw = session.next();
            session.say_raw(&accepted_with(&raw, bytes));
            let answer = trader.next_raw();
            let expected = if bytes == 32 { accepted_with(&raw, bytes) } else { plain(&accepted(&raw)) };
            assert_eq!(answer, expected, "{bytes} bytes");
        }
        // The session continues after that.
        trader.send(&[order(4, 100)]);
        let raw = session.next();
        session.accept_order(&raw);
        assert!(matches!(trader.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == 4));
        drop((trader, session, sessions));
        end_gateway(gateway);
    });
}

/// A message without an appendage.
fn plain(message: &Outbound) -> Vec<u8> {
    let mut raw = Vec::new();
    message.encode(&mut raw);
    raw
}

#[test]
fn beyond_what_may_be_unanswered_orders_are_refused_and_nobody_waits() {
    const MOST: u32 = 8;
    for (driver, route) in
        drivers().into_iter().flat_map(|driver| [Route::Own, Route::Other].map(|route| (driver, route)))
    {
        println!("{driver}, {route}");
        let venue = Script::new();
        let mut config = GatewayConfig { route, ..GatewayConfig::demo(2, venue.address()) };
        config.venues[0].limits =
            OutstandingLimits { unanswered_max: MOST as usize, ..OutstandingLimits::default() };
        let starting = std::thread::spawn(move || gateway(driver, 2, config));
        let mut sessions = [venue.accept_session("X", 1, 1), venue.accept_session("X", 1, 1)].map(Some);
        let gateway = starting.join().expect("it starts");
        let users = if route == Route::Own { ["G00001", "G00002"] } else { ["G00002", "G00001"] };
        let [mut session, mut other_session] = users.map(|user| take_session(&mut sessions, user));
        let mut trader = Trader::login(&gateway, "C00001", 1);
        trader.send(&(1..=20).map(|number| order(number, 100)).collect::<Vec<_>>());
        for number in MOST + 1..=20 {
            let Outbound::Rejected(rejected) = trader.next() else { panic!("it is refused") };
            assert_eq!((rejected.user_ref_num, rejected.reason), (number, reject_reason::PROCESSING_ERROR));
        }
        // A replace is an order too; a cancel passes, and orders in the other session are not affected.
        trader.send(&[replace(1, 21, 50), cancel(2)]);
        let Outbound::Rejected(rejected) = trader.next() else { panic!("it is refused") };
        assert_eq!(rejected.user_ref_num, 21);
        let sent: Vec<Vec<u8>> = (0..=MOST).map(|_| session.next()).collect();
        let kinds: Vec<u8> = sent.iter().map(|raw| raw[0]).collect();
        assert_eq!(kinds, b"OOOOOOOOX");
        let mut other = Trader::login(&gateway, "C00002", 1);
        for number in 1..=100 {
            other.send(&[order(number, 100)]);
            let raw = other_session.next();
            other_session.accept_order(&raw);
            assert!(matches!(other.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == number));
        }
        // With the first answer there is room for one more.
        session.accept_order(&sent[0]);
        assert!(matches!(trader.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == 1));
        trader.send(&[order(22, 100)]);
        assert_eq!(session.next()[0], b'O');
        drop((trader, other, session, other_session));
        end_gateway(gateway);
    }
}

/// The session of one of the gateway's workers.
fn take_session(sessions: &mut [Option<Scripted>], user: &str) -> Scripted {
    let is_it = |session: &Scripted| session.login.username.as_str() == user;
    let place = sessions.iter_mut().find(|session| session.as_ref().is_some_and(is_it));
    place.and_then(Option::take).expect("it is logged in")
}
