//! Tests of limits that apply across workers, across starts, and to unanswered orders.

use weir_proto::ouch::{
    Inbound, Modified, Modify, Outbound, codes::side, inbound_user_ref_num, reject_reason,
};
use weir_servers::{
    exchange::Mode,
    gateway::{GatewayConfig, GatewayServer, Limits},
};

use super::{
    rig::{
        Folder, Script, Trader, cancel, drivers, end_exchange, end_gateway, eventually, exchange_in, gateway,
        loopback, order, replace, strict,
    },
    rules::{expect_accepted, expect_refused, priced},
};

fn expect_executed(trader: &mut Trader, number: u32) {
    match trader.next() {
        Outbound::Executed(executed) => assert_eq!(executed.user_ref_num, number),
        other => panic!("{other:?} instead of an execution of {number}"),
    }
}

/// Accounts of the first worker traded a hundred shares at 9: the second worker measures prices from there, and the
/// buyer has 100 of 1000 left.
fn expect_limits(gateway: &GatewayServer, number: u32) {
    eventually("everybody has gone", || gateway.control().node_stats().sessions_open == 0);
    let mut buyer = Trader::login(gateway, "C00001", 0);
    buyer.send(&[priced(number, side::BUY, 90_000)]);
    expect_refused(&mut buyer, number, reject_reason::RISK_AGGREGATE_EXPOSURE);
    let mut other = Trader::login(gateway, "C00002", 0);
    other.send(&[priced(number, side::BUY, 100_000)]);
    expect_refused(&mut other, number, reject_reason::RISK_FAT_FINGER);
    other.send(&[priced(number + 1, side::BUY, 91_000), cancel(number + 1)]);
    expect_accepted(&mut other, number + 1);
    let next = other.next();
    assert!(matches!(next, Outbound::Canceled(_)), "{next:?}");
}

#[test]
fn a_trade_counts_for_all_workers_and_after_each_start() {
    for driver in drivers() {
        println!("{driver}");
        let (venue, folder) = (exchange_in(Mode::Match, driver, loopback()), Folder::new());
        let start = || {
            let limits =
                Limits { exposure_max: Some(1_000.0), fat_finger_percent: Some(10.0), ..Limits::default() };
            let config = GatewayConfig { limits, ..strict(3, venue.address().clone(), &folder) };
            gateway(driver, 2, config)
        };
        let mut gateway = start();
        let mut buyer = Trader::login(&gateway, "C00001", 1);
        buyer.send(&[priced(1, side::BUY, 90_000)]);
        expect_accepted(&mut buyer, 1);
        let mut seller = Trader::login(&gateway, "C00003", 1);
        seller.send(&[priced(1, side::SELL, 90_000)]);
        expect_accepted(&mut seller, 1);
        expect_executed(&mut seller, 1);
        expect_executed(&mut buyer, 1);
        drop((buyer, seller));
        for number in [10, 20, 30] {
            expect_limits(&gateway, number);
            end_gateway(gateway);
            gateway = start();
        }
        end_gateway(gateway);
        end_exchange(venue);
    }
}

#[test]
fn replaces_in_one_write_count_together_although_none_has_an_answer() {
    for driver in drivers() {
        println!("{driver}");
        let venue = Script::new();
        let mut config = GatewayConfig::demo(1, venue.address());
        config.limits.exposure_max = Some(1_000.0);
        let starting = std::thread::spawn(move || gateway(driver, 1, config));
        let mut session = venue.accept_session("DAY", 1, 1);
        let gateway = starting.join().expect("it starts");
        let mut trader = Trader::login(&gateway, "C00001", 1);
        for number in 1..=10 {
            trader.send(&[order(number, 50)]);
            let raw = session.next();
            session.accept_order(&raw);
            expect_accepted(&mut trader, number);
        }
        // With 500 open, each of them alone would make the order count 500 instead of 50.
        let replaces: Vec<_> = (1..=10).map(|number| replace(number, 10 + number, 250)).collect();
        trader.send(&replaces);
        for number in 12..=20 {
            expect_refused(&mut trader, number, reject_reason::RISK_AGGREGATE_EXPOSURE);
        }
        assert_eq!(session.next()[0], b'U');
        trader.send(&[cancel(2)]);
        assert_eq!(session.next()[0], b'X', "no other one has left");
        drop(trader);
        end_gateway(gateway);
    }
}

#[test]
fn a_change_that_would_make_an_order_larger_is_refused_and_one_that_an_exchange_makes_larger_counts() {
    for driver in drivers() {
        println!("{driver}");
        let venue = Script::new();
        let mut config = GatewayConfig::demo(1, venue.address());
        config.limits.exposure_max = Some(1_000.0);
        let starting = std::thread::spawn(move || gateway(driver, 1, config));
        let mut session = venue.accept_session("DAY", 1, 1);
        let gateway = starting.join().expect("it starts");
        let mut trader = Trader::login(&gateway, "C00001", 1);
        trader.send(&[order(1, 100)]);
        let raw = session.next();
        session.accept_order(&raw);
        expect_accepted(&mut trader, 1);
        let change = |quantity| Inbound::Modify(Modify { user_ref_num: 1, side: side::BUY, quantity });
        trader.send(&[change(101)]);
        let next = trader.next();
        assert!(matches!(next, Outbound::CancelReject(reject) if reject.user_ref_num == 1), "{next:?}");
        // Nothing has been sent. A modification that lowers the order passes the kill switch, as a cancel does.
        gateway.control().kill(Some("C00001"), true).expect("it is on");
        let killed = session.next();
        assert_eq!((killed[0], inbound_user_ref_num(&killed)), (b'X', Some(1)));
        trader.send(&[change(90)]);
        let raw = session.next();
        assert_eq!((raw[0], inbound_user_ref_num(&raw)), (b'M', Some(1)));
        gateway.control().kill(Some("C00001"), false).expect("it is off");
        let modified = Modified { timestamp_ns: 1, user_ref_num: 1, side: side::BUY, quantity: 1_000 };
        session.say(&Outbound::Modified(modified));
        let next = trader.next();
        assert!(matches!(next, Outbound::Modified(modified) if modified.quantity == 1_000), "{next:?}");
        trader.send(&[order(2, 100)]);
        expect_refused(&mut trader, 2, reject_reason::RISK_AGGREGATE_EXPOSURE);
        drop(trader);
        end_gateway(gateway);
    }
}
