//! Tests of a gateway whose exchange disconnects and comes back.

use std::time::{Duration, Instant};

use weir_engine::Driver;
use weir_proto::{
    ouch::{Canceled, Outbound, codes::cancel_reason, inbound_user_ref_num, reject_reason},
    soup::LoginReject,
};
use weir_servers::gateway::{GatewayConfig, GatewayServer, OutstandingLimits};

use super::rig::{
    PATIENCE, Script, Scripted, Trader, beside_each_other, cancel, cancels, drivers, end_exchange,
    end_gateway, eventually, exchange, gateway, loopback, order, order_for, replace, server,
};

#[test]
fn without_an_exchange_orders_are_refused_and_with_one_they_are_taken_again() {
    for driver in drivers() {
        // A port that was free a moment ago.
        let address = Script::new().address();
        let mut config = GatewayConfig::demo(1, address.clone());
        // Less than the value of two orders; refused ones do not count.
        config.limits.exposure_max = Some(150.0);
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
fn a_start_does_not_wait_for_its_exchange_when_the_gateway_is_told_to_end() {
    for driver in drivers() {
        // A port that was free a moment ago.
        let config = GatewayConfig::demo(1, Script::new().address());
        let gateway = GatewayServer::start(server(driver, 1), config).expect("the driver runs here");
        gateway.drain();
        let begun = Instant::now();
        assert!(!gateway.wait_for_upstreams(PATIENCE));
        assert!(begun.elapsed() < PATIENCE, "{driver}: it was waited for");
        gateway.join();
    }
}

#[test]
fn an_order_sent_before_the_exchange_died_is_sent_again_with_its_number() {
    for driver in drivers() {
        let venue = Script::new();
        let config = GatewayConfig::demo(1, venue.address());
        let starting = std::thread::spawn(move || gateway(driver, 1, config));
        let mut session = venue.accept();
        assert_eq!(requested(&session), ("", 0), "who knows nothing does not ask for the past");
        session.let_in("FIRST", 1);
        session.answer_query(41);
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

/// A gateway of one client in front of a scripted exchange: the client's first orders were accepted.
fn with_accepted_orders(driver: Driver, venue: &Script, orders: u32) -> (GatewayServer, Trader, Scripted) {
    let config = GatewayConfig::demo(1, venue.address());
    let starting = std::thread::spawn(move || gateway(driver, 1, config));
    let mut session = venue.accept_session("FIRST", 1, 1);
    let gateway = starting.join().expect("it starts");
    let mut trader = Trader::login(&gateway, "C00001", 1);
    for number in 1..=orders {
        trader.send(&[order(number, 100)]);
        let raw = session.next();
        session.accept_order(&raw);
        assert!(matches!(trader.next(), Outbound::Accepted(_)));
    }
    (gateway, trader, session)
}

/// The request of a login.
fn requested(session: &Scripted) -> (&str, u64) {
    (session.login.session.as_str(), session.login.sequence)
}

#[test]
fn a_taken_seat_is_waited_for_and_no_message_is_skipped() {
    for driver in drivers() {
        println!("{driver}");
        let venue = Script::new();
        let (gateway, mut trader, mut session) = with_accepted_orders(driver, &venue, 1);
        trader.send(&[order(2, 100)]);
        let second = session.next();
        drop(session);
        // Somebody else is logged in there.
        for expected in [("FIRST", 3), ("", 0), ("FIRST", 3)] {
            let session = venue.accept();
            assert_eq!(requested(&session), expected);
            session.refuse(LoginReject::SessionNotAvailable);
        }
        // Now nobody is, and the answer was sent meanwhile.
        let mut look = venue.accept();
        assert_eq!(requested(&look), ("", 0));
        look.let_in("FIRST", 4);
        let mut session = venue.accept();
        assert_eq!(requested(&session), ("FIRST", 3));
        session.let_in("FIRST", 3);
        session.accept_order(&second);
        assert!(matches!(trader.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == 2));
        session.answer_query(3);
        eventually("it is up again", || gateway.control().upstreams()[0].is_open);
        end_gateway(gateway);
    }
}

#[test]
fn a_cancel_that_may_be_lost_is_sent_again_until_its_order_is_gone() {
    for driver in drivers() {
        println!("{driver}");
        let venue = Script::new();
        let (gateway, mut trader, mut session) = with_accepted_orders(driver, &venue, 1);
        assert_eq!(gateway.control().kill(Some("C00001"), true), Ok(cancels("DEMO", 1, 1, 0)));
        let cancel = session.next();
        assert_eq!((cancel[0], inbound_user_ref_num(&cancel)), (b'X', Some(1)));
        drop(session);
        let mut session = venue.accept_session("FIRST", 3, 2);
        assert_eq!(session.next(), cancel);
        let canceled = Canceled { timestamp_ns: 1, user_ref_num: 1, quantity: 100, reason: b'U' };
        session.say(&Outbound::Canceled(canceled));
        let Outbound::Canceled(canceled) = trader.next() else { panic!("it is cancelled") };
        // The exchange attributes it to the user; the user gets the real reason.
        assert_eq!((canceled.user_ref_num, canceled.reason), (1, cancel_reason::SUPERVISORY));
        drop(session);
        let mut session = venue.accept_session("FIRST", 5, 2);
        eventually("it is up again", || gateway.control().upstreams()[0].is_open);
        assert_eq!(gateway.control().kill(Some("C00001"), false), Ok(Vec::new()));
        trader.send(&[order(2, 100)]);
        let second = session.next();
        assert_eq!((second[0], inbound_user_ref_num(&second)), (b'O', Some(2)));
        end_gateway(gateway);
    }
}

#[test]
fn a_clients_cancel_that_may_be_lost_is_sent_again_as_long_as_its_order_lives() {
    for driver in drivers() {
        println!("{driver}");
        let venue = Script::new();
        let (gateway, mut trader, mut session) = with_accepted_orders(driver, &venue, 2);
        trader.send(&[cancel(1)]);
        let sent = session.next();
        assert_eq!((sent[0], inbound_user_ref_num(&sent)), (b'X', Some(1)));
        drop(session);
        let mut session = venue.accept_session("FIRST", 4, 3);
        assert_eq!(session.next(), sent);
        let canceled = Canceled { timestamp_ns: 1, user_ref_num: 1, quantity: 100, reason: b'U' };
        session.say(&Outbound::Canceled(canceled));
        let Outbound::Canceled(canceled) = trader.next() else { panic!("it is cancelled") };
        assert_eq!((canceled.user_ref_num, canceled.reason), (1, b'U'), "the client's own");
        drop(session);
        let mut session = venue.accept_session("FIRST", 6, 3);
        eventually("it is up again", || gateway.control().upstreams()[0].is_open);
        trader.send(&[order(3, 100)]);
        let third = session.next();
        assert_eq!((third[0], inbound_user_ref_num(&third)), (b'O', Some(3)), "nothing of a dead order");
        end_gateway(gateway);
    }
}

#[test]
fn replaces_that_nobody_answers_stop_no_client_and_use_no_number_up() {
    for driver in drivers() {
        println!("{driver}");
        let venue = Script::new();
        let mut config = GatewayConfig::demo(1, venue.address());
        config.venues[0].limits = OutstandingLimits { unanswered_max: 4, ..OutstandingLimits::default() };
        let starting = std::thread::spawn(move || gateway(driver, 1, config));
        let mut session = venue.accept_session("FIRST", 1, 1);
        let gateway = starting.join().expect("it starts");
        let mut trader = Trader::login(&gateway, "C00001", 1);
        for number in 1..=4 {
            trader.send(&[order(number, 100)]);
            let raw = session.next();
            session.accept_order(&raw);
            assert!(matches!(trader.next(), Outbound::Accepted(_)));
        }
        // As many as may be unanswered, and each ends its order instead.
        for number in 1..=4 {
            trader.send(&[replace(number, number + 4, 0)]);
            assert_eq!(session.next()[0], b'U');
        }
        for user_ref_num in 1..=4 {
            let canceled = Canceled { timestamp_ns: 1, user_ref_num, quantity: 100, reason: b'U' };
            session.say(&Outbound::Canceled(canceled));
            assert!(
                matches!(trader.next(), Outbound::Canceled(canceled) if canceled.user_ref_num == user_ref_num)
            );
        }
        // The number of the last one is free again.
        trader.send(&[order(8, 100)]);
        let raw = session.next();
        session.accept_order(&raw);
        assert!(matches!(trader.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == 8));
        drop(trader);
        end_gateway(gateway);
    }
}

/// A gateway in front of two scripted exchanges: orders of BRIDGE go to the second one.
fn with_two_venues(
    driver: Driver,
    change: impl FnOnce(&mut GatewayConfig),
) -> (GatewayServer, [Scripted; 2]) {
    let venues = [Script::new(), Script::new()];
    let mut config = of_two_venues(&venues);
    change(&mut config);
    let starting = std::thread::spawn(move || gateway(driver, 1, config));
    let sessions = [venues[0].accept_session("X", 1, 1), venues[1].accept_session("Y", 1, 100)];
    (starting.join().expect("it starts"), sessions)
}

fn of_two_venues([first, second]: &[Script; 2]) -> GatewayConfig {
    let mut config = GatewayConfig::demo(1, first.address());
    let mut other = config.venues[0].clone();
    other.name = "OTHER".into();
    other.address = second.address();
    config.venues.push(other);
    config.symbols = vec![(super::rig::symbol("BRIDGE"), 1)];
    config
}

#[test]
fn a_venue_that_stands_still_refuses_its_own_orders_and_delays_nothing_elsewhere() {
    const MOST: usize = 50;
    for driver in drivers() {
        println!("{driver}");
        let (gateway, [mut still, mut quick]) = with_two_venues(driver, |config| {
            config.venues[0].limits =
                OutstandingLimits { unanswered_max: MOST, ..OutstandingLimits::default() };
        });
        let mut trader = Trader::login(&gateway, "C00001", 1);
        trader.send(&[order_for(1, 10, "BRIDGE")]);
        let raw = quick.next();
        quick.accept_order(&raw);
        assert!(matches!(trader.next(), Outbound::Accepted(_)));
        // One client, whose next order may go to either.
        let (first, last) = (2, 2 * MOST as u32);
        trader.send(&(first..=last).map(|number| order(number, 10)).collect::<Vec<_>>());
        trader.send(&[cancel(1), order_for(last + 1, 10, "BRIDGE"), cancel(first)]);
        for number in first + MOST as u32..=last {
            let Outbound::Rejected(rejected) = trader.next() else { panic!("it is refused") };
            assert_eq!((rejected.user_ref_num, rejected.reason), (number, reject_reason::PROCESSING_ERROR));
        }
        let at_quick = [quick.next(), quick.next()].map(|raw| (raw[0], inbound_user_ref_num(&raw)));
        assert_eq!(at_quick, [(b'X', Some(100)), (b'O', Some(101))]);
        let at_still: Vec<u8> = (0..=MOST).map(|_| still.next()[0]).collect();
        assert_eq!(at_still, [vec![b'O'; MOST], vec![b'X']].concat(), "its own cancels pass");
        drop((trader, still, quick));
        end_gateway(gateway);
    }
}

#[test]
fn a_venue_that_does_not_answer_its_query_holds_up_neither_the_start_nor_orders_for_others() {
    beside_each_other(drivers(), |driver| {
        println!("{driver}");
        let venues = [Script::new(), Script::new()];
        let config = of_two_venues(&venues);
        let gateway = GatewayServer::start(server(driver, 1), config).expect("the driver runs here");
        let mut mute = venues[1].accept();
        mute.let_in("Y", 1);
        assert_eq!(mute.next(), [b'Q']);
        let mut quick = venues[0].accept_session("X", 1, 1);
        let is_open = |venue: usize| gateway.control().upstreams()[venue].is_open;
        eventually("the other one is there", || is_open(0));
        assert_eq!(gateway.control().health(), Ok(()));
        let mut trader = Trader::login(&gateway, "C00001", 1);
        trader.send(&[order_for(1, 10, "BRIDGE"), order_for(2, 10, "WEIR")]);
        let Outbound::Rejected(rejected) = trader.next() else { panic!("it is refused") };
        assert_eq!((rejected.user_ref_num, rejected.reason), (1, reject_reason::DESTINATION_CLOSED));
        let raw = quick.next();
        quick.accept_order(&raw);
        assert!(matches!(trader.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == 2));
        // After its answer, orders are sent there too.
        mute.say(&Outbound::AccountQueryResponse { timestamp_ns: 1, next_user_ref_num: 100 });
        eventually("both are there", || is_open(1));
        trader.send(&[order_for(3, 10, "BRIDGE")]);
        assert_eq!(inbound_user_ref_num(&mute.next()), Some(100));
        drop((trader, quick, mute));
        end_gateway(gateway);
    });
}

#[test]
fn orders_beyond_what_may_be_unanswered_are_not_sent_when_an_exchange_comes_back() {
    for driver in drivers() {
        println!("{driver}");
        let venue = Script::new();
        let mut config = GatewayConfig::demo(1, venue.address());
        config.venues[0].limits = OutstandingLimits { unanswered_max: 8, ..OutstandingLimits::default() };
        let starting = std::thread::spawn(move || gateway(driver, 1, config));
        let mut session = venue.accept_session("FIRST", 1, 1);
        let gateway = starting.join().expect("it starts");
        let mut trader = Trader::login(&gateway, "C00001", 1);
        let orders: Vec<_> = (1..=20).map(|number| order(number, 100)).collect();
        trader.send(&orders);
        let sent: Vec<_> = (1..=8).map(|_| session.next()).collect();
        for number in 9..=20 {
            let Outbound::Rejected(rejected) = trader.next() else { panic!("it is refused") };
            assert_eq!((rejected.user_ref_num, rejected.reason), (number, reject_reason::PROCESSING_ERROR));
        }
        drop(session);
        let mut session = venue.accept_session("FIRST", 2, 9);
        for (raw, number) in sent.iter().zip(1..) {
            assert_eq!(&session.next(), raw);
            session.accept_order(raw);
            assert!(matches!(trader.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == number));
        }
        end_gateway(gateway);
    }
}

#[test]
fn symbols_go_to_their_venues_and_what_concerns_an_order_follows_it() {
    for driver in drivers() {
        println!("{driver}");
        let (gateway, mut sessions) = with_two_venues(driver, |_| {});
        let mut trader = Trader::login(&gateway, "C00001", 1);
        trader.send(&[order_for(1, 10, "WEIR"), order_for(2, 10, "BRIDGE")]);
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
}

#[test]
fn a_client_that_goes_has_its_orders_cancelled_if_it_wants_that() {
    for driver in drivers() {
        println!("{driver}");
        let venue = exchange(driver, loopback());
        let mut config = GatewayConfig::demo(2, venue.address().clone());
        config.accounts[0].cancel_on_disconnect = true;
        let gateway = gateway(driver, 1, config);
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
}
