//! What a gateway does when an exchange goes and comes.

use std::time::Duration;

use weir_engine::Driver;
use weir_proto::{
    ouch::{Outbound, inbound_user_ref_num, reject_reason},
    soup::LoginReject,
};
use weir_servers::gateway::{GatewayConfig, GatewayServer};

use super::rig::{
    PATIENCE, Script, Trader, cancel, drivers, end_exchange, end_gateway, eventually, exchange, gateway,
    loopback, order, server,
};

#[test]
fn without_an_exchange_orders_are_refused_and_with_one_they_are_taken_again() {
    for driver in drivers() {
        // A port that was free a moment ago.
        let address = Script::new().address();
        let config = GatewayConfig::demo(1, address.clone());
        let gateway = GatewayServer::start(server(driver, 1), config).expect("the driver runs here");
        assert!(!gateway.wait_for_upstreams(Duration::from_millis(50)));
        assert!(gateway.control().health().is_err());
        let mut trader = Trader::login(&gateway, "C00001", 1);
        trader.send(&[order(1, 100), cancel(1)]);
        let Outbound::Rejected(rejected) = trader.next() else { panic!("it is refused") };
        assert_eq!((rejected.user_ref_num, rejected.reason), (1, reject_reason::DESTINATION_CLOSED));
        assert!(matches!(trader.next(), Outbound::CancelReject(reject) if reject.user_ref_num == 1));
        let venue = exchange(driver, address);
        assert!(gateway.wait_for_upstreams(PATIENCE), "{:?}", gateway.control().upstreams());
        assert_eq!(gateway.control().health(), Ok(()));
        trader.send(&[order(2, 100)]);
        assert!(matches!(trader.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == 2));
        drop(trader);
        end_gateway(gateway);
        end_exchange(venue);
    }
}

#[test]
fn an_order_sent_before_the_exchange_died_is_sent_again_with_its_number() {
    for driver in drivers() {
        let venue = Script::new();
        let config = GatewayConfig::demo(1, venue.address());
        let starting = std::thread::spawn(move || gateway(driver, 1, config));
        let mut session = venue.accept_session("FIRST", 1, 41);
        let gateway = starting.join().expect("it starts");
        let mut trader = Trader::login(&gateway, "C00001", 1);
        trader.send(&[order(1, 100), order(2, 100)]);
        let first = session.next();
        assert_eq!(inbound_user_ref_num(&first), Some(41), "numbers go on where the exchange is");
        session.accept_order(&first);
        assert!(matches!(trader.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == 1));
        let second = session.next();
        drop(session);
        let mut session = venue.accept();
        // The query and one order were answered: the third message is the next.
        assert_eq!((session.login.session.as_str(), session.login.sequence), ("FIRST", 3));
        session.let_in("FIRST", 3);
        session.answer_query(43);
        assert_eq!(session.next(), second, "the same, with the same number");
        session.accept_order(&second);
        assert!(matches!(trader.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == 2));
        trader.send(&[order(3, 100)]);
        let third = session.next();
        assert_eq!(inbound_user_ref_num(&third), Some(43));
        session.accept_order(&third);
        assert!(matches!(trader.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == 3));
        drop(trader);
        end_gateway(gateway);
    }
}

#[test]
fn an_answer_that_comes_again_after_a_reconnect_is_not_passed_on_twice() {
    let venue = Script::new();
    let config = GatewayConfig::demo(1, venue.address());
    let starting = std::thread::spawn(move || gateway(Driver::Poll, 1, config));
    let mut session = venue.accept_session("FIRST", 1, 1);
    let gateway = starting.join().expect("it starts");
    let mut trader = Trader::login(&gateway, "C00001", 1);
    trader.send(&[order(1, 100)]);
    let first = session.next();
    session.accept_order(&first);
    assert!(matches!(trader.next(), Outbound::Accepted(_)));
    drop(session);
    // It does not have what it is asked for, then it does, and says everything from the beginning.
    venue.accept().refuse(LoginReject::SessionNotAvailable);
    let mut session = venue.accept();
    assert_eq!((session.login.session.is_blank(), session.login.sequence), (true, 1));
    session.let_in("FIRST", 1);
    session.say(&Outbound::AccountQueryResponse { timestamp_ns: 1, next_user_ref_num: 1 });
    session.accept_order(&first);
    session.answer_query(2);
    eventually("it is up again", || gateway.control().upstreams()[0].is_open);
    trader.send(&[order(2, 100)]);
    let second = session.next();
    assert_eq!(inbound_user_ref_num(&second), Some(2));
    session.accept_order(&second);
    assert!(matches!(trader.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == 2));
    end_gateway(gateway);
}

#[test]
fn symbols_go_to_their_venues_and_what_concerns_an_order_follows_it() {
    let (first, second) = (Script::new(), Script::new());
    let mut config = GatewayConfig::demo(1, first.address());
    let mut other = config.venues[0].clone();
    other.name = "OTHER".into();
    other.address = second.address();
    config.venues.push(other);
    config.symbols = vec![(super::rig::symbol("BRIDGE"), 1)];
    let starting = std::thread::spawn(move || gateway(Driver::Poll, 1, config));
    let mut sessions = [first.accept_session("X", 1, 1), second.accept_session("Y", 1, 100)];
    let gateway = starting.join().expect("it starts");
    let mut trader = Trader::login(&gateway, "C00001", 1);
    trader.send(&[super::rig::order_for(1, 10, "WEIR"), super::rig::order_for(2, 10, "BRIDGE")]);
    for (session, number) in sessions.iter_mut().zip([1, 100]) {
        let raw = session.next();
        assert_eq!(inbound_user_ref_num(&raw), Some(number));
        session.accept_order(&raw);
        assert!(matches!(trader.next(), Outbound::Accepted(_)));
    }
    trader.send(&[cancel(2)]);
    assert_eq!(inbound_user_ref_num(&sessions[1].next()), Some(100));
    end_gateway(gateway);
}

#[test]
fn a_client_that_goes_has_its_orders_cancelled_if_it_wants_that() {
    let venue = exchange(Driver::Poll, loopback());
    let mut config = GatewayConfig::demo(2, venue.address().clone());
    config.accounts[0].cancel_on_disconnect = true;
    let gateway = gateway(Driver::Poll, 1, config);
    for (account, is_cancelled) in [("C00001", true), ("C00002", false)] {
        let mut trader = Trader::login(&gateway, account, 1);
        trader.send(&[order(1, 100), order(2, 30)]);
        assert!(matches!(trader.next(), Outbound::Accepted(_)));
        assert!(matches!(trader.next(), Outbound::Accepted(_)));
        let (before, expected) = (gateway.control().node_stats(), trader.expected);
        drop(trader);
        if is_cancelled {
            eventually("both are cancelled", || {
                gateway.control().node_stats().received >= before.received + 2
            });
            let mut trader = Trader::login(&gateway, account, expected);
            let mut quantities = [0; 2].map(|_| match trader.next() {
                Outbound::Canceled(canceled) => canceled.quantity,
                other => panic!("{other:?}"),
            });
            quantities.sort_unstable();
            assert_eq!(quantities, [30, 100]);
        }
    }
    assert_eq!(gateway.control().node_stats().cancels_on_disconnect, 2);
    end_gateway(gateway);
    end_exchange(venue);
}
