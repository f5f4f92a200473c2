//! Orders through the gateway, on every driver, route and way of handing off.

use weir_engine::{
    Driver,
    handoff::{Options, Strategy},
};
use weir_proto::ouch::{Inbound, Outbound, reject_reason};
use weir_servers::gateway::{GatewayConfig, LedgerLimits};
use weir_trading::Route;

use super::rig::{
    Script, Trader, cancel, drivers, end_exchange, end_gateway, eventually, exchange, gateway, loopback,
    order, replace,
};

const ACCOUNTS: u32 = 4;
const ORDERS: u32 = 60;

/// Everybody sends all orders at once and must see them accepted in the same order.
fn run(driver: Driver, workers: usize, route: Route, strategy: Strategy) {
    println!("{driver}, {workers} workers, route {route}, {strategy}");
    let venue = exchange(driver, loopback());
    let mut config = GatewayConfig::demo(ACCOUNTS, venue.address().clone());
    config.route = route;
    config.handoff = Options { strategy, ..Options::default() };
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

#[test]
fn every_order_is_answered_once_and_in_order_by_every_way_of_handing_off() {
    for driver in drivers() {
        for strategy in Strategy::ALL {
            let is_possible = match strategy {
                Strategy::Owner => false,
                Strategy::MsgRing => driver == Driver::Uring,
                _ => true,
            };
            if is_possible {
                run(driver, 2, Route::Other, strategy);
                run(driver, 2, Route::Modulo, strategy);
            }
        }
    }
}

#[test]
fn cancels_and_replaces_find_their_orders() {
    for driver in drivers() {
        for route in [Route::Own, Route::Other] {
            let venue = exchange(driver, loopback());
            let config = GatewayConfig { route, ..GatewayConfig::demo(2, venue.address().clone()) };
            let gateway = gateway(driver, 2, config);
            let mut trader = Trader::login(&gateway, "C00002", 1);
            // A cancel of an order that is not there is not answered.
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
            // A replace of an order that is not there is ignored, and its number may be used again.
            trader.send(&[replace(9, 40, 70)]);
            eventually("the number is given back", || {
                trader.send(&[Inbound::AccountQuery]);
                match trader.next() {
                    Outbound::AccountQueryResponse { next_user_ref_num, .. } => next_user_ref_num == 31,
                    other => panic!("{other:?}"),
                }
            });
            trader.send(&[order(40, 10)]);
            assert!(matches!(trader.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == 40));
            end_gateway(gateway);
            end_exchange(venue);
        }
    }
}

#[test]
fn an_order_with_too_long_an_appendage_is_refused_and_counted() {
    let venue = exchange(Driver::Poll, loopback());
    let gateway = gateway(Driver::Poll, 1, GatewayConfig::demo(1, venue.address().clone()));
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
    end_gateway(gateway);
    end_exchange(venue);
}

#[test]
fn an_exchange_that_does_not_answer_stops_the_clients_that_send_there() {
    for (driver, route) in [(Driver::Poll, Route::Own), (Driver::Epoll, Route::Other)] {
        println!("{driver}, {route}");
        let venue = Script::new();
        let mut config = GatewayConfig { route, ..GatewayConfig::demo(1, venue.address()) };
        config.venues[0].limits = LedgerLimits { unanswered_max: 8, ..LedgerLimits::default() };
        let starting = std::thread::spawn(move || gateway(driver, 2, config));
        let mut sessions = [venue.accept_session("X", 1, 1), venue.accept_session("X", 1, 1)].map(Some);
        let gateway = starting.join().expect("it starts");
        let mut trader = Trader::login(&gateway, "C00001", 1);
        const COUNT: u32 = 20_000;
        let orders = (1..=COUNT).map(|number| {
            let mut raw = Vec::new();
            order(number, 100).encode(&mut raw);
            raw
        });
        let sending = trader.send_beside(orders.collect());
        // What is under way stays small, however much the client sends.
        let unanswered = || gateway.control().node_stats();
        eventually("the first orders leave", || unanswered().sent >= 8);
        let taken_in = gateway.control().node_stats().orders;
        assert!(taken_in < u64::from(COUNT) / 2, "{taken_in} orders were taken in");
        // The one session that gets them answers now.
        let user = if route == Route::Own { "G00001" } else { "G00002" };
        let place = sessions
            .iter_mut()
            .find(|session| session.as_ref().is_some_and(|session| session.login.username.as_str() == user));
        let mut session = place.and_then(Option::take).expect("it is logged in");
        let answering = std::thread::spawn(move || {
            for number in 1..=COUNT {
                let raw = session.next();
                assert_eq!(weir_proto::ouch::inbound_user_ref_num(&raw), Some(number));
                session.accept_order(&raw);
            }
            session
        });
        for number in 1..=COUNT {
            assert!(matches!(trader.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == number));
        }
        sending.join().expect("all are taken");
        let session = answering.join().expect("all are answered");
        drop(trader);
        end_gateway(gateway);
        drop((session, sessions));
    }
}
