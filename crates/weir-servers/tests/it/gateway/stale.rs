//! Tests of unanswered orders that are too old to be resent.

use std::thread::JoinHandle;

use weir_engine::Driver;
use weir_proto::{
    ouch::{Outbound, inbound_user_ref_num, reject_reason},
    soup::LoginReject,
};
use weir_servers::gateway::GatewayServer;

use super::{
    anew::{executed, expect_accepted, expect_nothing_more, expect_refused},
    rig::{
        Folder, Script, Scripted, Trader, beside_each_other, drivers, end_gateway, eventually, gateway,
        line_with, order, strict,
    },
};

/// Starts a gateway that does not resend orders older than this.
fn start(
    driver: Driver,
    venue: &Script,
    folder: &Folder,
    resend_age_max_ns: u64,
) -> JoinHandle<GatewayServer> {
    let mut config = strict(1, venue.address(), folder);
    config.venues[0].limits.resend_age_max_ns = resend_age_max_ns;
    std::thread::spawn(move || gateway(driver, 1, config))
}

/// Leaves an unanswered order at an exchange, and returns the message that the exchange has received.
fn leave_unanswered(driver: Driver, venue: &Script, folder: &Folder) -> Vec<u8> {
    let starting = start(driver, venue, folder, 60_000_000_000);
    let mut session = venue.accept_session("DAY", 1, 1);
    let gateway = starting.join().expect("it starts");
    let mut trader = Trader::login(&gateway, "C00001", 1);
    trader.send(&[order(1, 100)]);
    let raw = session.next();
    drop(trader);
    end_gateway(gateway);
    raw
}

/// The exchange gets a cancel of an order that it should not have.
fn expect_cancel(session: &mut Scripted, number: u32) {
    let raw = session.next();
    assert_eq!((raw[0], inbound_user_ref_num(&raw)), (b'X', Some(number)));
}

#[test]
fn what_is_too_old_to_be_sent_again_is_refused_and_what_was_answered_is_not() {
    let all = drivers().into_iter().flat_map(|driver| [true, false].map(|beats| (driver, beats)));
    beside_each_other(all, |(driver, beats)| {
        let (venue, folder) = (Script::new(), Folder::new());
        let mut config = strict(1, venue.address(), &folder);
        config.venues[0].limits.resend_age_max_ns = 0;
        let starting = std::thread::spawn(move || gateway(driver, 1, config));
        let mut session = venue.accept_session("DAY", 1, 41);
        let gateway = starting.join().expect("it starts");
        let notices = gateway.control().events().expect("nobody has them");
        let mut trader = Trader::login(&gateway, "C00001", 1);
        trader.send(&[order(1, 100), order(2, 100)]);
        let (first, _second) = (session.next(), session.next());
        drop(session);
        // The answer to this query is lost with the connection, and is sent again.
        let mut session = venue.accept();
        session.let_in("DAY", 2);
        assert_eq!(session.next(), [b'Q']);
        drop(session);
        venue.accept_look("DAY", 4);
        let mut session = venue.accept();
        assert_eq!((session.login.session.as_str(), session.login.sequence), ("DAY", 2));
        session.let_in("DAY", 2);
        session.say(&Outbound::AccountQueryResponse { timestamp_ns: 1, next_user_ref_num: 41 });
        // An exchange that is slow to resend its messages sends heartbeats between them.
        session.beat();
        session.accept_order(&first);
        session.answer_query(42);
        expect_accepted(&mut trader, 1);
        if beats {
            session.beat();
            expect_refused(&mut trader, 2);
            expect_cancel(&mut session, 42);
        }
        eventually("it is up again", || gateway.control().upstreams()[0].is_open);
        trader.send(&[order(3, 100)]);
        let third = session.next();
        assert_eq!(
            (third[0], inbound_user_ref_num(&third)),
            (b'O', Some(43)),
            "the second is not sent again"
        );
        session.accept_order(&third);
        if beats {
            expect_accepted(&mut trader, 3);
        } else {
            // It also shows that nothing earlier follows.
            let mut answers = [0; 2].map(|_| match trader.next() {
                Outbound::Accepted(accepted) => (accepted.user_ref_num, 0),
                Outbound::Rejected(rejected) => (rejected.user_ref_num, rejected.reason),
                other => panic!("{other:?}"),
            });
            answers.sort_unstable();
            assert_eq!(answers, [(2, reject_reason::DESTINATION_CLOSED), (3, 0)]);
            expect_cancel(&mut session, 42);
        }
        line_with(&notices, "1 orders were too old");
        expect_nothing_more(&mut trader);
        end_gateway(gateway);
    });
}

/// The next connection that continues, wherever it is let in; probes find nothing after the first message.
fn join(venue: &Script, next_number: u32) -> Scripted {
    loop {
        let mut session = venue.accept();
        session.let_in("DAY", session.login.sequence.max(2));
        if session.try_answer_query(next_number) {
            return session;
        }
    }
}

#[test]
fn what_was_answered_before_a_restart_is_not_refused_in_the_middle_of_what_is_said_again() {
    beside_each_other(drivers(), |driver| {
        let (venue, folder) = (Script::new(), Folder::new());
        let raw = leave_unanswered(driver, &venue, &folder);

        let starting = start(driver, &venue, &folder, 0);
        venue.accept_look("DAY", 5);
        let mut session = venue.accept();
        assert_eq!((session.login.session.as_str(), session.login.sequence), ("DAY", 2));
        session.let_in("DAY", 2);
        // The answer to the query of a killed gateway, and then the messages that it did not receive.
        session.say(&Outbound::AccountQueryResponse { timestamp_ns: 1, next_user_ref_num: 1 });
        session.beat();
        session.accept_order(&raw);
        session.say(&executed(1, 100, 7));
        session.answer_query(2);
        session.beat();
        let second = starting.join().expect("it starts");
        let mut trader = Trader::login(&second, "C00001", 1);
        expect_accepted(&mut trader, 1);
        assert!(matches!(trader.next(), Outbound::Executed(executed) if executed.user_ref_num == 1));
        trader.send(&[order(2, 100)]);
        let raw = session.next();
        assert_eq!((raw[0], inbound_user_ref_num(&raw)), (b'O', Some(2)), "nothing is cancelled");
        session.accept_order(&raw);
        expect_accepted(&mut trader, 2);
        expect_nothing_more(&mut trader);
        drop(trader);
        end_gateway(second);
    });
}

#[test]
fn an_exchange_that_refuses_looks_shows_by_a_later_order_what_it_does_not_have() {
    beside_each_other(drivers(), |driver| {
        let (venue, folder) = (Script::new(), Folder::new());
        leave_unanswered(driver, &venue, &folder);

        let starting = start(driver, &venue, &folder, 0);
        let refused_look = |next: u64| {
            let look = venue.accept();
            assert_eq!((look.login.session.as_str(), look.login.sequence), ("", 0));
            look.refuse(LoginReject::SessionNotAvailable);
            let mut session = venue.accept();
            assert_eq!((session.login.session.as_str(), session.login.sequence), ("DAY", next));
            session.let_in("DAY", next);
            session.answer_query(2);
            session.beat();
            session
        };
        let mut session = refused_look(2);
        assert_eq!(session.try_next(), None, "somebody may have been logged in, and it looks once more");
        let mut session = refused_look(3);
        session.beat();
        let second = starting.join().expect("it starts");
        let mut trader = Trader::login(&second, "C00001", 1);
        expect_nothing_more(&mut trader);
        eventually("it is up again", || second.control().upstreams()[0].is_open);
        trader.send(&[order(2, 100)]);
        let raw = session.next();
        assert_eq!((raw[0], inbound_user_ref_num(&raw)), (b'O', Some(2)));
        session.accept_order(&raw);
        expect_cancel(&mut session, 1);
        let mut ends = [0; 2].map(|_| match trader.next() {
            Outbound::Accepted(accepted) => (accepted.user_ref_num, 'A'),
            Outbound::Rejected(rejected) => (rejected.user_ref_num, 'J'),
            other => panic!("{other:?}"),
        });
        ends.sort_unstable();
        assert_eq!(ends, [(1, 'J'), (2, 'A')]);
        drop(trader);
        end_gateway(second);
    });
}

#[test]
fn an_order_that_was_passed_over_is_refused_although_no_later_one_has_an_answer() {
    beside_each_other(drivers(), |driver| {
        let (venue, folder) = (Script::new(), Folder::new());
        let start = || {
            let config = strict(2, venue.address(), &folder);
            std::thread::spawn(move || gateway(driver, 1, config))
        };
        let starting = start();
        let mut session = venue.accept_session("DAY", 1, 1);
        let first = starting.join().expect("it starts");
        let mut traders = ["C00001", "C00002"].map(|name| Trader::login(&first, name, 1));
        traders[0].send(&[order(1, 100)]);
        session.next();
        traders[1].send(&[order(1, 100)]);
        // As if it had never received the one before.
        let raw = session.next();
        session.accept_order(&raw);
        expect_accepted(&mut traders[1], 1);
        drop(traders);
        end_gateway(first);
        drop(session);

        let starting = start();
        let mut session = venue.accept();
        assert_eq!((session.login.session.as_str(), session.login.sequence), ("DAY", 3));
        session.let_in("DAY", 3);
        session.answer_query(3);
        let raw = session.next();
        assert_eq!((raw[0], inbound_user_ref_num(&raw)), (b'O', Some(1)), "it ignores that");
        let second = starting.join().expect("it starts");
        let notices = second.control().events().expect("nobody has them");
        session.beat();
        assert_eq!(session.try_next(), None, "nobody knows whose query that was an answer to");
        venue.accept_look("DAY", 4);
        let mut session = venue.accept();
        assert_eq!((session.login.session.as_str(), session.login.sequence), ("DAY", 4));
        session.let_in("DAY", 4);
        session.answer_query(3);
        session.beat();
        expect_cancel(&mut session, 1);
        let mut trader = Trader::login(&second, "C00001", 1);
        expect_refused(&mut trader, 1);
        expect_nothing_more(&mut trader);
        let lost = notices.try_iter().find(|event| event.to_string().contains("the session is lost"));
        assert_eq!(lost, None, "it was left in time, and not because of a silence");
        drop(trader);
        end_gateway(second);
    });
}

#[test]
fn what_is_too_old_after_a_restart_is_refused_once() {
    beside_each_other(drivers(), |driver| {
        let (venue, folder) = (Script::new(), Folder::new());
        leave_unanswered(driver, &venue, &folder);

        for life in 0..2 {
            let starting = start(driver, &venue, &folder, 0);
            let mut session = join(&venue, 2);
            let gateway = starting.join().expect("it starts");
            session.beat();
            let refused = || gateway.control().node_stats().orders_expired;
            eventually("it is refused", || refused() == u64::from(life == 0));
            let mut trader = Trader::login(&gateway, "C00001", 1);
            expect_refused(&mut trader, 1);
            expect_nothing_more(&mut trader);
            drop(trader);
            end_gateway(gateway);
        }
    });
}
