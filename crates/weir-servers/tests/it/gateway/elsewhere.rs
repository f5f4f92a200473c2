//! Tests of orders of earlier starts in other sessions than those of their account now, and of orders of removed
//! accounts.

use weir_engine::Driver;
use weir_proto::ouch::{Canceled, Outbound, Replaced, inbound_user_ref_num, original_user_ref_num};
use weir_servers::gateway::{GatewayConfig, GatewayServer};
use weir_trading::Route;

use super::{
    anew::{expect_accepted, expect_expired, expect_nothing_more, expect_refused},
    rig::{
        Folder, Script, Scripted, Trader, beside_each_other, cancel, drivers, end_gateway, gateway,
        line_with, order, replace, server, strict, symbol,
    },
};

/// This many accounts on two workers.
fn config(accounts: u32, venue: &Script, folder: &Folder, route: Route) -> GatewayConfig {
    GatewayConfig { route, ..strict(accounts, venue.address(), folder) }
}

/// Starts a gateway of two workers with its sessions; the exchange lets them in at the requested message and gives
/// the next number.
fn start(
    driver: Driver,
    venue: &Script,
    config: GatewayConfig,
    next_number: u32,
) -> (GatewayServer, [Scripted; 2]) {
    let starting = std::thread::spawn(move || gateway(driver, 2, config));
    let mut sessions = [venue.accept(), venue.accept()];
    sessions.sort_by_key(|session| session.login.username.as_str().to_owned());
    for session in &mut sessions {
        session.let_in("DAY", session.login.sequence.max(1));
        session.answer_query(next_number);
    }
    (starting.join().expect("it starts"), sessions)
}

/// The first client has two orders in the session of its own worker, which the exchange has accepted.
fn leave_orders(driver: Driver, venue: &Script, config: GatewayConfig) {
    let (gateway, mut sessions) = start(driver, venue, config, 1);
    let mut trader = Trader::login(&gateway, "C00001", 1);
    trader.send(&[order(1, 100), order(2, 100)]);
    for number in [1, 2] {
        let raw = sessions[0].next();
        sessions[0].accept_order(&raw);
        expect_accepted(&mut trader, number);
    }
    drop(trader);
    end_gateway(gateway);
}

/// An exchange's message that order 2 was replaced by this one.
fn replaced(user_ref_num: u32) -> Outbound {
    Outbound::Replaced(Replaced {
        timestamp_ns: 1,
        original_user_ref_num: 2,
        user_ref_num,
        side: b'B',
        quantity: 50,
        symbol: symbol("WEIR"),
        price: 20_000,
        time_in_force: b'0',
        display: b'Y',
        order_reference: 3,
        capacity: b'P',
        intermarket_sweep: b'N',
        cross_type: b'N',
        order_state: b'L',
        client_order_id: "ORDER-00000003".parse().expect("an id"),
    })
}

#[test]
fn a_client_reaches_its_orders_where_they_are_although_another_worker_sends_for_it_now() {
    beside_each_other(drivers(), |driver| {
        println!("{driver}");
        let (venue, folder) = (Script::new(), Folder::new());
        leave_orders(driver, &venue, config(1, &venue, &folder, Route::Own));
        let (gateway, mut sessions) = start(driver, &venue, config(1, &venue, &folder, Route::Other), 3);
        let mut trader = Trader::login(&gateway, "C00001", 3);
        trader.send(&[cancel(1), replace(2, 3, 50)]);
        let canceled = sessions[0].next();
        assert_eq!((canceled[0], inbound_user_ref_num(&canceled)), (b'X', Some(1)));
        let moved = sessions[0].next();
        let numbers = (original_user_ref_num(&moved), inbound_user_ref_num(&moved));
        assert_eq!((moved[0], numbers), (b'U', (Some(2), Some(3))));
        sessions[0].say(&Outbound::Canceled(Canceled {
            timestamp_ns: 1,
            user_ref_num: 1,
            quantity: 100,
            reason: b'U',
        }));
        sessions[0].say(&replaced(3));
        assert!(matches!(trader.next(), Outbound::Canceled(canceled) if canceled.user_ref_num == 1));
        let next = trader.next();
        assert!(matches!(next, Outbound::Replaced(replaced) if replaced.user_ref_num == 3), "{next:?}");
        // A replacement is where its original was; a new order is not.
        trader.send(&[cancel(3), order(4, 100)]);
        let canceled = sessions[0].next();
        assert_eq!((canceled[0], inbound_user_ref_num(&canceled)), (b'X', Some(3)));
        assert_eq!(sessions[1].next()[0], b'O');
        drop((trader, sessions));
        end_gateway(gateway);
    });
}

#[test]
fn a_client_that_goes_away_has_its_orders_cancelled_wherever_they_are() {
    beside_each_other(drivers(), |driver| {
        println!("{driver}");
        let (venue, folder) = (Script::new(), Folder::new());
        let leaving = |route| {
            let mut config = config(1, &venue, &folder, route);
            config.accounts[0].cancel_on_disconnect = true;
            config
        };
        leave_orders(driver, &venue, config(1, &venue, &folder, Route::Own));
        // The orders of the previous start are cancelled at the start, and the exchange does not answer.
        let (gateway, mut sessions) = start(driver, &venue, leaving(Route::Other), 3);
        let mut cancels = || [(); 2].map(|()| inbound_user_ref_num(&sessions[0].next()));
        assert_eq!(cancels(), [Some(1), Some(2)]);
        let trader = Trader::login(&gateway, "C00001", 3);
        drop(trader);
        assert_eq!(cancels(), [Some(1), Some(2)]);
        drop(sessions);
        end_gateway(gateway);
    });
}

#[test]
fn orders_of_an_account_that_was_removed_are_named_and_expire_when_that_is_asked_for() {
    beside_each_other(drivers(), |driver| {
        println!("{driver}");
        let (venue, folder) = (Script::new(), Folder::new());
        let (first, mut sessions) = start(driver, &venue, config(2, &venue, &folder, Route::Own), 1);
        let mut trader = Trader::login(&first, "C00002", 1);
        trader.send(&[order(1, 100), order(2, 100)]);
        let raw = sessions[1].next();
        sessions[1].next();
        sessions[1].accept_order(&raw);
        expect_accepted(&mut trader, 1);
        drop((trader, sessions));
        end_gateway(first);
        let without = |expire_unreachable| {
            let mut config = config(2, &venue, &folder, Route::Own);
            config.accounts.pop();
            config.account_limits.pop();
            config.expire_unreachable = expire_unreachable;
            config
        };
        let refused =
            GatewayServer::start(server(driver, 2), without(false)).expect_err("one has open orders");
        let message = std::iter::successors(Some(&refused as &dyn std::error::Error), |error| error.source())
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(": ");
        assert!(message.contains("order 1 of C00002 at DEMO (the account is not configured)"), "{message}");
        assert!(
            message.contains("order 2 of C00002") && message.contains("--expire-unreachable"),
            "{message}"
        );

        let (second, mut sessions) = start(driver, &venue, without(true), 3);
        let notices = second.control().events().expect("nobody has them");
        line_with(&notices, "have expired: order 1 of C00002 at DEMO (the account is not configured)");
        let cancels = [(); 2].map(|()| sessions[1].next()).map(|raw| (raw[0], inbound_user_ref_num(&raw)));
        assert_eq!(cancels, [(b'X', Some(1)), (b'X', Some(2))]);
        assert!(Trader::try_login(&second, "C00002", 1).is_err(), "it is not configured");
        drop(sessions);
        end_gateway(second);

        // They are recorded as ended, without being requested again, and their client learns that when it is back.
        let (third, sessions) = start(driver, &venue, without(false), 3);
        drop(sessions);
        end_gateway(third);
        let (fourth, sessions) = start(driver, &venue, config(2, &venue, &folder, Route::Own), 3);
        let mut trader = Trader::login(&fourth, "C00002", 1);
        expect_accepted(&mut trader, 1);
        expect_expired(&mut trader, 1, 100);
        expect_refused(&mut trader, 2);
        expect_nothing_more(&mut trader);
        drop((trader, sessions));
        end_gateway(fourth);
    });
}
