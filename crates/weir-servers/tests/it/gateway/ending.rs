//! Tests of draining a gateway, and of ending its session.

use weir_engine::Driver;
use weir_proto::{
    ouch::{Canceled, Inbound, Outbound, codes::cancel_reason, inbound_user_ref_num},
    soup::END_OF_SESSION,
};
use weir_servers::{
    exchange::Mode,
    gateway::{ControlSocket, GatewayConfig, GatewayServer, OrderFilter, ProtocolErrors},
};
use weir_trading::Route;

use super::{
    anew::{expect_accepted, expect_nothing_more},
    changes::ask,
    rig::{
        Folder, Script, Scripted, Trader, beside_each_other, cancel, counted, drivers, end_exchange,
        end_gateway, eventually, exchange_in, gateway, line_with, loopback, order, server, strict,
    },
};

fn start(driver: Driver, venue: &Script, folder: &Folder) -> (GatewayServer, Scripted) {
    let (gateway, mut sessions) = start_with(driver, 1, venue, strict(2, venue.address(), folder), 1);
    (gateway, sessions.remove(0))
}

/// This many workers, and their sessions with the exchange in order, which gives the next number.
fn start_with(
    driver: Driver,
    workers: usize,
    venue: &Script,
    config: GatewayConfig,
    next_number: u32,
) -> (GatewayServer, Vec<Scripted>) {
    let starting = std::thread::spawn(move || gateway(driver, workers, config));
    let mut sessions: Vec<Scripted> = (0..workers).map(|_| venue.accept()).collect();
    sessions.sort_by_key(|session| session.login.username.to_string());
    for session in &mut sessions {
        session.let_in("DAY", session.login.sequence.max(1));
        session.answer_query(next_number);
    }
    (starting.join().expect("it starts"), sessions)
}

#[test]
fn after_a_drain_every_answer_can_be_had_also_by_a_client_that_was_away() {
    for driver in drivers() {
        println!("{driver}");
        let (venue, folder) = (Script::new(), Folder::new());
        let (first, mut session) = start(driver, &venue, &folder);
        let mut away = Trader::login(&first, "C00001", 1);
        away.send(&[order(1, 100)]);
        let of_away = session.next();
        drop(away);
        let mut client = Trader::login(&first, "C00002", 1);
        client.send(&[order(1, 100)]);
        let of_client = session.next();
        // Orders in flight are completed first.
        first.drain();
        session.accept_order(&of_away);
        session.accept_order(&of_client);
        expect_accepted(&mut client, 1);
        assert!(client.rest().is_empty(), "nothing is over");
        assert!(session.is_left());
        drop((client, session));
        first.join();

        let (second, session) = start(driver, &venue, &folder);
        assert_eq!(session.login.sequence, 4, "nothing is asked for twice");
        for client in ["C00001", "C00002"] {
            let mut trader = Trader::try_login_to(&second, "WEIRGW0001", client, 1)
                .unwrap_or_else(|reason| panic!("{client} is refused with {}", char::from(reason)));
            expect_accepted(&mut trader, 1);
            expect_nothing_more(&mut trader);
        }
        end_gateway(second);
    }
}

#[test]
fn a_session_is_ended_by_its_name_and_clients_are_told_and_begin_the_next_one() {
    for driver in drivers() {
        println!("{driver}");
        let (venue, folder) = (Script::new(), Folder::new());
        let path = folder.0.join("control.sock");
        let (first, mut session) = start(driver, &venue, &folder);
        let open = ControlSocket::bind(&path).expect("the path is free");
        let open = open.answer(first.control()).expect("a thread");
        let mut traders = ["C00001", "C00002"].map(|client| Trader::login(&first, client, 1));
        traders[0].send(&[order(1, 100)]);
        let raw = session.next();
        session.accept_order(&raw);
        expect_accepted(&mut traders[0], 1);
        let answer = ask(&path, r#"{"command":"end_session","session":"WEIRGW0002"}"#);
        let error = answer.error.expect("it is another one");
        assert!(error.contains("WEIRGW0002") && error.contains("WEIRGW0001"), "{error}");
        assert_eq!(ask(&path, r#"{"command":"sessions"}"#).session.as_deref(), Some("WEIRGW0001"));
        assert!(ask(&path, r#"{"command":"end_session","session":"weirgw0001"}"#).ok);
        for trader in &mut traders {
            assert_eq!(trader.rest(), [(END_OF_SESSION, Vec::new())]);
        }
        assert!(session.is_left());
        drop((traders, session, open));
        first.join();

        let (second, _session) = start(driver, &venue, &folder);
        assert_eq!(Trader::try_login_to(&second, "WEIRGW0001", "C00001", 2).err(), Some(b'S'));
        let trader = Trader::try_login_to(&second, "WEIRGW0002", "C00001", 1);
        assert_eq!(trader.map(|trader| trader.expected).ok(), Some(1), "messages begin anew");
        end_gateway(second);
    }
}

#[test]
fn a_client_that_begins_with_the_first_number_again_is_told_so_and_so_is_the_operator() {
    for driver in drivers() {
        println!("{driver}");
        let (venue, folder) = (Script::new(), Folder::new());
        let (first, mut session) = start(driver, &venue, &folder);
        let mut trader = Trader::login(&first, "C00001", 1);
        for number in 1..=3 {
            trader.send(&[order(number, 100)]);
            let raw = session.next();
            session.accept_order(&raw);
            expect_accepted(&mut trader, number);
        }
        first.control().end_session("WEIRGW0001").expect("it is the one there is");
        assert_eq!(trader.rest(), [(END_OF_SESSION, Vec::new())]);
        assert!(session.is_left());
        drop((trader, session));
        first.join();

        let (second, mut sessions) = start_with(driver, 1, &venue, strict(2, venue.address(), &folder), 4);
        let path = folder.0.join("control.sock");
        let open = ControlSocket::bind(&path).expect("the path is free");
        let open = open.answer(second.control()).expect("a thread");
        let notices = second.control().events().expect("nobody has them");
        let mut trader = Trader::login(&second, "C00001", 1);
        trader.send(&[order(1, 100)]);
        let message = "is not above 3, the last of an earlier session: it is ignored, and the next has to be \
                    above 3";
        assert_eq!(trader.next_text(), format!("order number 1 {message}"));
        let line = line_with(&notices, "order number");
        assert_eq!(line, format!("worker 0: C00001 sends order number 1, which {message}"));
        // Each is counted, and reported at most once a second. Within a session it is a retransmission.
        trader.send(&[order(2, 100), order(4, 100), order(4, 100), order(5, 100)]);
        for number in 4..=5 {
            let raw = sessions[0].next();
            sessions[0].accept_order(&raw);
            expect_accepted(&mut trader, number);
        }
        let listed = ask(&path, r#"{"command":"sessions"}"#).protocol_errors;
        let (account, kind) = ("C00001".to_owned(), "number_used_before".to_owned());
        let counted = second.control().orders().node_stats().protocol_errors;
        assert_eq!(counted.get(&kind), Some(&2), "{counted:?}");
        assert_eq!(listed, Some(vec![ProtocolErrors { account, kind, count: 2 }]));
        drop((trader, open));
        end_gateway(second);
    }
}

#[test]
fn a_session_that_could_not_be_told_from_one_that_was_ended_is_neither_begun_nor_ended() {
    for driver in drivers() {
        let (venue, folder) = (Script::new(), Folder::new());
        let named = |name: &str| {
            let mut config = strict(2, venue.address(), &folder);
            config.session = name.parse().expect("a name");
            config
        };
        let refused =
            GatewayServer::start(server(driver, 1), named("DAY")).expect_err("the next one is DAY too");
        let message = std::iter::successors(Some(&refused as &dyn std::error::Error), |error| error.source())
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(": ");
        assert!(message.contains("session \"DAY\": there is no number at its end"), "{message}");

        let (gateway, mut sessions) = start_with(driver, 1, &venue, named("DAY9"), 1);
        let error = gateway.control().end_session("DAY9").expect_err("DAY0 was there before");
        assert!(error.contains("session \"DAY9\"") && error.contains("no room"), "{error}");
        let mut trader = Trader::try_login_to(&gateway, "DAY9", "C00001", 1)
            .unwrap_or_else(|reason| panic!("it is refused with {}", char::from(reason)));
        trader.send(&[order(1, 100)]);
        let raw = sessions[0].next();
        sessions[0].accept_order(&raw);
        expect_accepted(&mut trader, 1);
        drop(trader);
        end_gateway(gateway);
    }
}

/// An exchange's message that an order of a hundred shares was cancelled on request.
fn canceled(user_ref_num: u32) -> Outbound {
    Outbound::Canceled(Canceled { timestamp_ns: 1, user_ref_num, quantity: 100, reason: cancel_reason::USER })
}

/// The client is informed that its order was cancelled because it is not connected.
fn expect_canceled(trader: &mut Trader, number: u32) {
    let next = trader.next();
    let Outbound::Canceled(canceled) = next else { panic!("{next:?} instead of {number} being cancelled") };
    assert_eq!((canceled.user_ref_num, canceled.reason), (number, cancel_reason::SYSTEM));
}

/// The session gets cancels of these two orders.
fn expect_cancels(session: &mut Scripted) {
    for number in 1..=2 {
        let raw = session.next();
        assert_eq!((raw[0], inbound_user_ref_num(&raw)), (b'X', Some(number)));
    }
}

/// Accepts two orders of each client.
fn accept_all(session: &mut Scripted, traders: &mut [Trader; 2]) {
    for trader in traders {
        trader.send(&[order(1, 100), order(2, 100)]);
        for _ in 0..2 {
            let raw = session.next();
            session.accept_order(&raw);
            assert!(matches!(trader.next(), Outbound::Accepted(_)));
        }
    }
}

#[test]
fn a_drain_cancels_the_orders_of_clients_that_want_that_and_tells_them_before_the_end() {
    for (driver, route) in
        drivers().into_iter().flat_map(|driver| [Route::Own, Route::Other].map(|route| (driver, route)))
    {
        println!("{driver}, {route}");
        let venue = Script::new();
        let mut config = GatewayConfig { route, ..GatewayConfig::demo(3, venue.address()) };
        config.accounts[0].cancel_on_disconnect = true;
        let starting = std::thread::spawn(move || gateway(driver, 2, config));
        let mut sessions = [0; 2].map(|_| venue.accept_session("DAY", 1, 1));
        sessions.sort_by_key(|session| session.login.username.to_string());
        let gateway = starting.join().expect("it starts");
        // Both have the first worker as home; their orders are sent in one session.
        let mut traders = ["C00001", "C00003"].map(|client| Trader::login(&gateway, client, 1));
        let session = &mut sessions[usize::from(route == Route::Other)];
        accept_all(session, &mut traders);
        gateway.drain();
        expect_cancels(session);
        for number in 1..=2 {
            session.say(&canceled(number));
            expect_canceled(&mut traders[0], number);
        }
        for trader in &mut traders {
            assert_eq!(trader.rest(), [(END_OF_SESSION, Vec::new())]);
        }
        assert!(session.is_left(), "nothing else is cancelled, and nothing twice");
        drop((traders, sessions));
        gateway.join();
    }
}

#[test]
fn a_drain_does_not_wait_for_ever_for_cancels_that_nobody_confirms() {
    for driver in drivers() {
        println!("{driver}");
        let venue = Script::new();
        let mut config = GatewayConfig::demo(1, venue.address());
        config.accounts[0].cancel_on_disconnect = true;
        let starting = std::thread::spawn(move || gateway(driver, 1, config));
        let mut session = venue.accept_session("DAY", 1, 1);
        let gateway = starting.join().expect("it starts");
        let mut trader = Trader::login(&gateway, "C00001", 1);
        trader.send(&[order(1, 100)]);
        let raw = session.next();
        session.accept_order(&raw);
        assert!(matches!(trader.next(), Outbound::Accepted(_)));
        gateway.drain();
        assert_eq!(session.next()[0], b'X');
        assert_eq!(trader.rest(), [(END_OF_SESSION, Vec::new())]);
        assert!(session.is_left());
        drop((trader, session));
        gateway.join();
    }
}

#[test]
fn what_a_drain_has_cancelled_is_over_after_the_next_start_and_can_be_had_again() {
    let all =
        drivers().into_iter().flat_map(|driver| [Route::Own, Route::Other].map(|route| (driver, route)));
    beside_each_other(all, |(driver, route)| {
        println!("{driver}, {route}");
        let (venue, folder) = (Script::new(), Folder::new());
        let config = || {
            let mut config = GatewayConfig { route, ..strict(3, venue.address(), &folder) };
            config.accounts[0].cancel_on_disconnect = true;
            config
        };
        let place = usize::from(route == Route::Other);
        let (first, mut sessions) = start_with(driver, 2, &venue, config(), 1);
        // Both have the first worker as home; their orders are sent in one session.
        let mut traders = ["C00001", "C00003"].map(|client| Trader::login(&first, client, 1));
        accept_all(&mut sessions[place], &mut traders);
        first.drain();
        expect_cancels(&mut sessions[place]);
        for number in 1..=2 {
            sessions[place].say(&canceled(number));
            expect_canceled(&mut traders[0], number);
        }
        assert!(traders.iter_mut().all(|trader| trader.rest().is_empty()), "their session goes on");
        assert!(sessions[place].is_left(), "nothing else is cancelled, and nothing twice");
        drop((traders, sessions));
        first.join();

        let (second, mut sessions) = start_with(driver, 2, &venue, config(), 5);
        assert_eq!(sessions[place].login.sequence, 8, "nothing is asked for twice");
        let mut traders = ["C00001", "C00003"].map(|client| {
            let mut trader = Trader::try_login_to(&second, "WEIRGW0001", client, 1)
                .unwrap_or_else(|reason| panic!("{client} is refused with {}", char::from(reason)));
            expect_accepted(&mut trader, 1);
            expect_accepted(&mut trader, 2);
            trader
        });
        (1..=2).for_each(|number| expect_canceled(&mut traders[0], number));
        traders.iter_mut().for_each(expect_nothing_more);
        // The first message that the exchange gets: no cancel is sent at the start.
        traders[1].send(&[order(3, 100)]);
        let raw = sessions[place].next();
        assert_eq!((raw[0], inbound_user_ref_num(&raw)), (b'O', Some(5)));
        sessions[place].accept_order(&raw);
        expect_accepted(&mut traders[1], 3);
        eventually("the other client's orders alone are open", || counted(&second, "weir_orders_open") == 3);
        drop(traders);
        end_gateway(second);
        assert!(sessions[place].is_left(), "nor is one sent at the end");
    });
}

#[test]
fn cancels_of_a_drain_that_nobody_has_confirmed_are_sent_after_the_next_start() {
    beside_each_other(drivers(), |driver| {
        println!("{driver}");
        let (venue, folder) = (Script::new(), Folder::new());
        let config = || {
            let mut config = strict(1, venue.address(), &folder);
            config.accounts[0].cancel_on_disconnect = true;
            config
        };
        let (first, mut sessions) = start_with(driver, 1, &venue, config(), 1);
        let mut trader = Trader::login(&first, "C00001", 1);
        trader.send(&[order(1, 100)]);
        let raw = sessions[0].next();
        sessions[0].accept_order(&raw);
        expect_accepted(&mut trader, 1);
        first.drain();
        assert_eq!(sessions[0].next()[0], b'X');
        assert!(trader.rest().is_empty(), "its session goes on");
        assert!(sessions[0].is_left());
        drop((trader, sessions));
        first.join();

        let (second, mut sessions) = start_with(driver, 1, &venue, config(), 2);
        let raw = sessions[0].next();
        assert_eq!((raw[0], inbound_user_ref_num(&raw)), (b'X', Some(1)));
        sessions[0].say(&canceled(1));
        let mut trader = Trader::login(&second, "C00001", 2);
        expect_canceled(&mut trader, 1);
        expect_nothing_more(&mut trader);
        drop(trader);
        end_gateway(second);
        assert!(sessions[0].is_left(), "it is over, and not cancelled twice");
    });
}

#[test]
fn order_numbers_begin_with_1_in_the_next_session_if_the_configuration_says_so() {
    let driver = drivers()[0];
    let (venue, folder) = (exchange_in(Mode::Match, driver, loopback()), Folder::new());
    let config = GatewayConfig { numbers_restart: true, ..strict(1, venue.address().clone(), &folder) };
    let first = gateway(driver, 1, config.clone());
    let mut trader = Trader::login(&first, "C00001", 1);
    trader.send(&[order(1, 100), order(5, 100)]);
    (0..2).for_each(|_| assert!(matches!(trader.next(), Outbound::Accepted(_))));
    let refused = first.control().end_session("WEIRGW0001").expect_err("orders are open");
    assert!(
        refused.contains("of C00001 is open at DEMO") && refused.contains("weir ctl cancel"),
        "{refused}"
    );
    let all = OrderFilter { account: Some("C00001".into()), ..OrderFilter::default() };
    assert_eq!(first.control().cancel_orders(&all).expect("workers answer").venues[0].orders, 2);
    (0..2).for_each(|_| assert!(matches!(trader.next(), Outbound::Canceled(_))));
    first.control().end_session("WEIRGW0001").expect("none is open");
    drop(trader);
    first.join();

    let second = gateway(driver, 1, config.clone());
    let mut trader = Trader::login(&second, "C00001", 1);
    let next = |trader: &mut Trader| match trader.next() {
        Outbound::AccountQueryResponse { next_user_ref_num, .. } => next_user_ref_num,
        other => panic!("{other:?}"),
    };
    trader.send(&[Inbound::AccountQuery]);
    assert_eq!(next(&mut trader), 1);
    trader.send(&[order(1, 100), order(1, 100), order(2, 100)]);
    let accepted = |trader: &mut Trader| match trader.next() {
        Outbound::Accepted(accepted) => accepted.user_ref_num,
        other => panic!("{other:?}"),
    };
    assert_eq!((accepted(&mut trader), accepted(&mut trader)), (1, 2), "one of them is a retransmission");
    drop(trader);
    end_gateway(second);

    // The same session with clients goes on.
    let third = gateway(driver, 1, config);
    let mut trader = Trader::login(&third, "C00001", 4);
    trader.send(&[order(2, 100), Inbound::AccountQuery, cancel(1)]);
    assert_eq!(next(&mut trader), 3);
    assert!(matches!(trader.next(), Outbound::Canceled(canceled) if canceled.user_ref_num == 1));
    drop(trader);
    end_gateway(third);
    end_exchange(venue);
}
