//! Orders without an answer that are too old to be sent again.

use weir_proto::ouch::{Outbound, inbound_user_ref_num, reject_reason};

use super::{
    anew::{expect_accepted, expect_nothing_more, expect_refused},
    rig::{
        Folder, Script, Scripted, Trader, beside_each_other, drivers, end_gateway, eventually, gateway,
        line_with, order, strict,
    },
};

/// The exchange is told to cancel what it should not have.
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
        let notices = gateway.control().notices().expect("nobody has them");
        let mut trader = Trader::login(&gateway, "C00001", 1);
        trader.send(&[order(1, 100), order(2, 100)]);
        let (first, _second) = (session.next(), session.next());
        drop(session);
        let mut session = venue.accept();
        assert_eq!((session.login.session.as_str(), session.login.sequence), ("DAY", 2));
        session.let_in("DAY", 2);
        // An answer to a query of an earlier connection comes before what was said behind it.
        session.say(&Outbound::AccountQueryResponse { timestamp_ns: 1, next_user_ref_num: 41 });
        session.accept_order(&first);
        session.answer_query(42);
        expect_accepted(&mut trader, 1);
        if beats {
            session.beat();
            expect_refused(&mut trader, 2);
            expect_cancel(&mut session, 42);
        }
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
            // It shows as well that nothing earlier comes any more.
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

#[test]
fn what_is_too_old_after_a_restart_is_refused_once() {
    beside_each_other(drivers(), |driver| {
        let (venue, folder) = (Script::new(), Folder::new());
        let start = |resend_age_max_ns: u64| {
            let mut config = strict(1, venue.address(), &folder);
            config.venues[0].limits.resend_age_max_ns = resend_age_max_ns;
            std::thread::spawn(move || gateway(driver, 1, config))
        };
        let starting = start(60_000_000_000);
        let mut session = venue.accept_session("DAY", 1, 1);
        let first = starting.join().expect("it starts");
        let mut trader = Trader::login(&first, "C00001", 1);
        trader.send(&[order(1, 100)]);
        session.next();
        drop(trader);
        end_gateway(first);
        drop(session);

        for life in 0..2 {
            let starting = start(0);
            let mut session = venue.accept_session("DAY", 1, 2);
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
