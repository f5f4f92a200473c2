//! Tests that a restarted gateway knows the messages that it has sent and those that its clients have.

use weir_proto::ouch::{Canceled, Inbound, Outbound, inbound_user_ref_num};
use weir_servers::{
    gateway::{GatewayConfig, GatewayServer},
    journal::Level,
};
use weir_trading::{Route, WhenFull};

use super::rig::{
    Folder, Script, Scripted, Trader, beside_each_other, cancel, cancels, drivers, end_gateway, gateway,
    order, server, symbol,
};

fn config(venue: &Script, folder: &Folder, route: Route) -> GatewayConfig {
    GatewayConfig {
        journal: Some((folder.0.clone(), Level::Os)),
        journal_segment_bytes: 64 << 10,
        route,
        ..GatewayConfig::demo(2, venue.address())
    }
}

#[test]
fn an_order_without_an_answer_is_sent_again_and_an_answer_is_not_asked_for_twice() {
    // The sending worker, whose journal is read first, is the client's own, a later one and an earlier one.
    let cases = [
        (Route::Own, "C00001", "G00001"),
        (Route::Other, "C00001", "G00002"),
        (Route::Other, "C00002", "G00001"),
    ];
    let all = drivers().into_iter().flat_map(|driver| cases.map(|case| (driver, case)));
    beside_each_other(all, |(driver, (route, client, user))| {
        println!("{driver}, {route}, {client}");
        let (venue, folder) = (Script::new(), Folder::new());
        let first_config = config(&venue, &folder, route);
        let starting = std::thread::spawn(move || gateway(driver, 2, first_config));
        let sessions = [venue.accept_session("DAY", 1, 1), venue.accept_session("DAY", 1, 1)];
        let first_gateway = starting.join().expect("it starts");
        let is_it = |session: &Scripted| session.login.username.as_str() == user;
        let [mut session, other]: [_; 2] = {
            let mut sessions = sessions;
            sessions.sort_by_key(|session| !is_it(session));
            sessions
        };
        let mut trader = Trader::login(&first_gateway, client, 1);
        trader.send(&[order(5, 100), order(6, 100)]);
        let answered = session.next();
        let unanswered = session.next();
        session.accept_order(&answered);
        assert!(matches!(trader.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == 5));
        drop(trader);
        end_gateway(first_gateway);
        drop((session, other));

        let second_config = config(&venue, &folder, route);
        let starting = std::thread::spawn(move || gateway(driver, 2, second_config));
        let mut sessions = vec![venue.accept(), venue.accept()];
        sessions.sort_by_key(|session| !is_it(session));
        let mut other = sessions.pop().expect("two");
        let mut session = sessions.pop().expect("two");
        // The answer to the query was the first message, that to the order the second.
        assert_eq!((session.login.session.as_str(), session.login.sequence), ("DAY", 3));
        other.let_in("DAY", other.login.sequence);
        other.answer_query(1);
        session.let_in("DAY", 3);
        session.answer_query(2);
        assert_eq!(session.next(), unanswered, "the same, with the same number");
        session.accept_order(&unanswered);
        let second_gateway = starting.join().expect("it starts");
        let mut trader = Trader::login(&second_gateway, client, 2);
        assert!(matches!(trader.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == 6));
        trader.send(&[Inbound::AccountQuery]);
        assert!(matches!(trader.next(), Outbound::AccountQueryResponse { next_user_ref_num: 7, .. }));
        // Messages that were accepted before are not accepted twice.
        trader.send(&[order(5, 100), order(6, 100), order(7, 100)]);
        let next = session.next();
        assert_eq!(inbound_user_ref_num(&next), Some(3));
        session.accept_order(&next);
        assert!(matches!(trader.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == 7));
        drop((trader, session, other));
        end_gateway(second_gateway);
    });
}

#[test]
fn an_order_goes_to_the_venue_it_was_sent_to_whatever_is_configured_later() {
    beside_each_other(drivers(), |driver| {
        println!("{driver}");
        let (first, second, folder) = (Script::new(), Script::new(), Folder::new());
        let one = || {
            let mut config = GatewayConfig {
                journal: Some((folder.0.clone(), Level::Os)),
                journal_segment_bytes: 64 << 10,
                ..GatewayConfig::demo(2, first.address())
            };
            // At a venue that forgets orders it is unknown whether any is open.
            config.venues[0].limits.when_full = WhenFull::Refuse;
            config
        };
        let config = one();
        let starting = std::thread::spawn(move || gateway(driver, 1, config));
        let mut session = first.accept_session("X", 1, 1);
        let gateway_of_one = starting.join().expect("it starts");
        let mut trader = Trader::login(&gateway_of_one, "C00001", 1);
        trader.send(&[order(5, 100)]);
        let unanswered = session.next();
        drop(trader);
        end_gateway(gateway_of_one);
        drop(session);

        // Another venue comes before the one that has the order.
        let two = |symbol_of_other: &str| {
            let mut config = one();
            let mut other = config.venues[0].clone();
            other.name = "OTHER".into();
            other.address = second.address();
            config.venues.insert(0, other);
            config.symbols = vec![(symbol(symbol_of_other), 0)];
            config.default_venue = Some(1);
            config
        };
        let refused =
            GatewayServer::start(server(driver, 1), two("WEIR")).expect_err("the symbol has an order");
        let message = std::iter::successors(Some(&refused as &dyn std::error::Error), |error| error.source())
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(": ");
        assert!(
            message.contains("order 5 of C00001") && message.contains("WEIR has another route"),
            "{message}"
        );

        let config = two("BRIDGE");
        let starting = std::thread::spawn(move || gateway(driver, 1, config));
        let mut other = second.accept_session("Y", 1, 100);
        let mut session = first.accept();
        // No client has an answer from it; messages from before the order concern nobody.
        assert_eq!((session.login.session.as_str(), session.login.sequence), ("X", 2));
        session.let_in("X", 2);
        session.answer_query(2);
        assert_eq!(session.next(), unanswered);
        let gateway_of_two = starting.join().expect("it starts");
        drop(session);
        end_gateway(gateway_of_two);
        assert!(other.is_left(), "but for the account query nothing arrives at the other venue");
    });
}

#[test]
fn an_order_that_another_worker_sent_is_answered_after_a_start_in_which_none_hands_over() {
    beside_each_other(drivers(), |driver| {
        println!("{driver}");
        let (venue, folder) = (Script::new(), Folder::new());
        let first_config = config(&venue, &folder, Route::Other);
        let starting = std::thread::spawn(move || gateway(driver, 2, first_config));
        let mut sessions = vec![venue.accept_session("DAY", 1, 1), venue.accept_session("DAY", 1, 1)];
        let first_gateway = starting.join().expect("it starts");
        sessions.sort_by_key(|session| session.login.username.as_str() == "G00002");
        let mut trader = Trader::login(&first_gateway, "C00001", 1);
        trader.send(&[order(1, 100)]);
        let unanswered = sessions[1].next();
        drop(trader);
        end_gateway(first_gateway);
        drop(sessions);

        let second_config = config(&venue, &folder, Route::Own);
        let starting = std::thread::spawn(move || gateway(driver, 2, second_config));
        let mut sessions = vec![venue.accept(), venue.accept()];
        sessions.sort_by_key(|session| session.login.username.as_str() == "G00002");
        for session in &mut sessions {
            session.let_in("DAY", session.login.sequence);
            session.answer_query(1);
        }
        assert_eq!(sessions[1].next(), unanswered);
        sessions[1].accept_order(&unanswered);
        let second_gateway = starting.join().expect("it starts");
        let mut trader = Trader::login(&second_gateway, "C00001", 1);
        assert!(matches!(trader.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == 1));
        trader.send(&[order(2, 100)]);
        assert!(inbound_user_ref_num(&sessions[0].next()).is_some(), "its own worker sends it now");
        drop((trader, sessions));
        end_gateway(second_gateway);
    });
}

#[test]
fn orders_that_were_to_be_cancelled_are_cancelled_after_a_restart() {
    beside_each_other(drivers(), |driver| {
        println!("{driver}");
        let (venue, folder) = (Script::new(), Folder::new());
        let config = || {
            let mut config = config(&venue, &folder, Route::Own);
            config.accounts[1].cancel_on_disconnect = true;
            config
        };
        let first_config = config();
        let starting = std::thread::spawn(move || gateway(driver, 1, first_config));
        let mut session = venue.accept_session("DAY", 1, 1);
        let first_gateway = starting.join().expect("it starts");
        let mut traders = ["C00001", "C00002"].map(|client| {
            let mut trader = Trader::login(&first_gateway, client, 1);
            trader.send(&[order(1, 100)]);
            let raw = session.next();
            session.accept_order(&raw);
            assert!(matches!(trader.next(), Outbound::Accepted(_)));
            Some(trader)
        });
        assert_eq!(first_gateway.control().kill(Some("C00001"), true), Ok(cancels("DEMO", 1, 1, 0)));
        assert_eq!(inbound_user_ref_num(&session.next()), Some(1));
        drop(traders[1].take());
        assert_eq!(inbound_user_ref_num(&session.next()), Some(2));
        // The exchange has not received that.
        end_gateway(first_gateway);
        drop((session, traders));

        let second_config = config();
        let starting = std::thread::spawn(move || gateway(driver, 1, second_config));
        let mut session = venue.accept_session("DAY", 4, 3);
        let mut cancels = [session.next(), session.next()];
        cancels.sort_unstable();
        for (cancel, number) in cancels.iter().zip(1..) {
            assert_eq!((cancel[0], inbound_user_ref_num(cancel)), (b'X', Some(number)));
        }
        let second_gateway = starting.join().expect("it starts");
        end_gateway(second_gateway);
    });
}

#[test]
fn a_clients_cancel_that_the_exchange_may_not_have_is_sent_again_after_a_restart() {
    let cases = [(Route::Own, "C00001"), (Route::Other, "C00002")];
    let all = drivers().into_iter().flat_map(|driver| cases.map(|case| (driver, case)));
    beside_each_other(all, |(driver, (route, client))| {
        println!("{driver}, {route}");
        let (venue, folder) = (Script::new(), Folder::new());
        let is_it = |session: &Scripted| session.login.username.as_str() == "G00001";
        let first_config = config(&venue, &folder, route);
        let starting = std::thread::spawn(move || gateway(driver, 2, first_config));
        let mut sessions = [venue.accept_session("DAY", 1, 1), venue.accept_session("DAY", 1, 1)];
        let first_gateway = starting.join().expect("it starts");
        sessions.sort_by_key(|session| !is_it(session));
        let mut trader = Trader::login(&first_gateway, client, 1);
        trader.send(&[order(1, 100)]);
        let raw = sessions[0].next();
        sessions[0].accept_order(&raw);
        assert!(matches!(trader.next(), Outbound::Accepted(_)));
        trader.send(&[cancel(1)]);
        let sent = sessions[0].next();
        assert_eq!((sent[0], inbound_user_ref_num(&sent)), (b'X', Some(1)));
        // The exchange died before it read that.
        drop(trader);
        end_gateway(first_gateway);
        drop(sessions);

        let second_config = config(&venue, &folder, route);
        let starting = std::thread::spawn(move || gateway(driver, 2, second_config));
        let mut sessions = [venue.accept(), venue.accept()];
        for session in &mut sessions {
            session.let_in("DAY", session.login.sequence);
            session.answer_query(2);
        }
        sessions.sort_by_key(|session| !is_it(session));
        assert_eq!(sessions[0].next(), sent);
        let canceled = Canceled { timestamp_ns: 1, user_ref_num: 1, quantity: 100, reason: b'U' };
        sessions[0].say(&Outbound::Canceled(canceled));
        let second_gateway = starting.join().expect("it starts");
        let mut trader = Trader::login(&second_gateway, client, 2);
        assert!(matches!(trader.next(), Outbound::Canceled(canceled) if canceled.user_ref_num == 1));
        drop((trader, sessions));
        end_gateway(second_gateway);
    });
}
