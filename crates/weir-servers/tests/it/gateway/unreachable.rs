//! Tests of open orders that a new configuration cannot reach, and of the remedy.

use weir_engine::Driver;
use weir_proto::ouch::{Inbound, inbound_user_ref_num};
use weir_servers::gateway::{GatewayConfig, GatewayServer};

use super::{
    anew::{expect_accepted, expect_expired, expect_nothing_more, expect_refused},
    rig::{
        Folder, Script, Scripted, Trader, beside_each_other, drivers, end_gateway, gateway, line_with, order,
        server, strict, symbol,
    },
};

/// An exchange with two orders of one client: the first is open, the second is unanswered.
fn leave_orders(driver: Driver, venue: &Script, folder: &Folder) {
    let config = strict(1, venue.address(), folder);
    let starting = std::thread::spawn(move || gateway(driver, 1, config));
    let mut session = venue.accept_session("DAY", 1, 1);
    let gateway = starting.join().expect("it starts");
    let mut trader = Trader::login(&gateway, "C00001", 1);
    trader.send(&[order(1, 100), order(2, 100)]);
    let raw = session.next();
    session.next();
    session.accept_order(&raw);
    expect_accepted(&mut trader, 1);
    drop(trader);
    end_gateway(gateway);
}

/// The complete reason why a gateway does not start.
fn refusal(driver: Driver, config: GatewayConfig) -> String {
    let refused = GatewayServer::start(server(driver, 1), config).expect_err("it does not reach the orders");
    std::iter::successors(Some(&refused as &dyn std::error::Error), |error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

#[test]
fn orders_at_a_venue_that_was_removed_expire_when_that_is_asked_for_and_once() {
    beside_each_other(drivers(), |driver| {
        let (gone, other, folder) = (Script::new(), Script::new(), Folder::new());
        leave_orders(driver, &gone, &folder);
        let config = |expire_unreachable| {
            let mut config = strict(1, other.address(), &folder);
            config.venues[0].name = "OTHER".into();
            config.expire_unreachable = expire_unreachable;
            config
        };
        let message = refusal(driver, config(false));
        assert!(message.contains("order 1 of C00001 at DEMO (the venue is not configured)"), "{message}");
        assert!(message.contains("--expire-unreachable"), "{message}");
        // Then they are recorded as ended, without being requested again.
        for expires in [true, false] {
            let config = config(expires);
            let starting = std::thread::spawn(move || gateway(driver, 1, config));
            let mut session = other.accept();
            session.let_in("ELSE", session.login.sequence.max(1));
            session.answer_query(1);
            let gateway = starting.join().expect("it starts");
            if expires {
                let notices = gateway.control().events().expect("nobody has them");
                line_with(&notices, "have expired: order 1 of C00001 at DEMO");
            }
            let mut trader = Trader::login(&gateway, "C00001", 1);
            expect_accepted(&mut trader, 1);
            expect_expired(&mut trader, 1, 100);
            expect_refused(&mut trader, 2);
            expect_nothing_more(&mut trader);
            drop(trader);
            end_gateway(gateway);
        }
    });
}

/// Both orders are cancelled, and not resent.
fn expect_cancels(session: &mut Scripted) {
    let cancels = [session.next(), session.next()].map(|raw| (raw[0], inbound_user_ref_num(&raw)));
    assert_eq!(cancels, [(b'X', Some(1)), (b'X', Some(2))]);
}

#[test]
fn orders_whose_symbol_goes_elsewhere_expire_and_are_cancelled_where_they_are() {
    beside_each_other(drivers(), |driver| {
        let (venue, other, folder) = (Script::new(), Script::new(), Folder::new());
        leave_orders(driver, &venue, &folder);
        let mut config = strict(1, venue.address(), &folder);
        let mut second = config.venues[0].clone();
        second.name = "OTHER".into();
        second.address = other.address();
        config.venues.push(second);
        config.symbols = vec![(symbol("WEIR"), 1)];
        let message = refusal(driver, config.clone());
        assert!(message.contains("WEIR has another route"), "{message}");
        config.expire_unreachable = true;
        let again = config.clone();
        let starting = std::thread::spawn(move || gateway(driver, 1, config));
        let mut session = venue.accept();
        assert_eq!((session.login.session.as_str(), session.login.sequence), ("DAY", 3));
        session.let_in("DAY", 3);
        session.answer_query(3);
        expect_cancels(&mut session);
        let mut elsewhere = other.accept_session("ELSE", 1, 1);
        let first = starting.join().expect("it starts");
        let mut trader = Trader::login(&first, "C00001", 1);
        expect_accepted(&mut trader, 1);
        expect_expired(&mut trader, 1, 100);
        expect_refused(&mut trader, 2);
        trader.send(&[order(3, 100)]);
        let raw = elsewhere.next();
        let Ok(Inbound::Enter(enter, _)) = Inbound::decode(&raw) else { panic!("{raw:?} is no order") };
        assert_eq!(enter.client_order_id.as_str(), "ORDER-00000003", "none of those that are over");
        drop(trader);
        end_gateway(first);
        drop((session, elsewhere));
        // Nothing shows that the exchange has received that.
        let starting = std::thread::spawn(move || gateway(driver, 1, again));
        let mut session = venue.accept();
        session.let_in("DAY", session.login.sequence);
        session.answer_query(3);
        expect_cancels(&mut session);
        let mut elsewhere = other.accept();
        elsewhere.let_in("ELSE", elsewhere.login.sequence);
        elsewhere.answer_query(1);
        let gateway = starting.join().expect("it starts");
        let mut trader = Trader::login(&gateway, "C00001", 1);
        expect_accepted(&mut trader, 1);
        expect_expired(&mut trader, 1, 100);
        expect_refused(&mut trader, 2);
        expect_nothing_more(&mut trader);
        end_gateway(gateway);
    });
}
