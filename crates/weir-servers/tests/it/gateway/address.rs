//! A venue at another address than when its orders were sent: another exchange, or the same one.

use weir_engine::{Driver, net::Address};
use weir_proto::ouch::Inbound;
use weir_servers::{
    exchange::Mode,
    gateway::{GatewayConfig, GatewayServer},
};

use super::{
    anew::{expect_accepted, expect_expired, expect_nothing_more},
    rig::{
        Folder, Script, Scripted, Trader, beside_each_other, cancel, drivers, end_exchange, end_gateway,
        exchange_in, gateway, loopback, order, order_for, server, strict, symbol,
    },
};

/// Two venues; the second one has one symbol.
fn with_venues(folder: &Folder, addresses: [Address; 2]) -> GatewayConfig {
    let [first, second] = addresses;
    let mut config = strict(1, first, folder);
    let mut other = config.venues[0].clone();
    config.venues[0].name = "A".into();
    other.name = "B".into();
    other.address = second;
    config.venues.push(other);
    config.symbols = vec![(symbol("BRIDGE"), 1)];
    config
}

/// The complete reason why a gateway does not start.
fn refusal(driver: Driver, config: GatewayConfig) -> String {
    let refused = GatewayServer::start(server(driver, 1), config).expect_err("it has orders elsewhere");
    std::iter::successors(Some(&refused as &dyn std::error::Error), |error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

#[test]
fn a_gateway_does_not_start_with_the_addresses_of_two_exchanges_swapped_and_sends_nothing() {
    beside_each_other(drivers(), |driver| {
        let venues = [(); 2].map(|()| exchange_in(Mode::Match, driver, loopback()));
        let [first, second] = venues.each_ref().map(|venue| venue.address().clone());
        let orders = || venues.each_ref().map(|venue| venue.control().node_stats().orders);
        let folder = Folder::new();
        let config = || with_venues(&folder, [first.clone(), second.clone()]);
        let gateway_of_both = gateway(driver, 1, config());
        let mut trader = Trader::login(&gateway_of_both, "C00001", 1);
        trader.send(&[order(1, 100)]);
        expect_accepted(&mut trader, 1);
        drop(trader);
        end_gateway(gateway_of_both);
        assert_eq!(orders(), [1, 0]);

        let message = refusal(driver, with_venues(&folder, [second.clone(), first.clone()]));
        let reason =
            format!("order 1 of C00001 at A (the venue was at {first} and is at {second} now) (1 in all)");
        assert!(message.contains(&reason) && message.contains("(1 in all)"), "{message}");
        let way_out =
            format!("if A is the same exchange as at {first}, with the same sessions, confirm that with");
        assert!(message.contains(&way_out) && message.contains("--expire-unreachable"), "{message}");
        assert!(message.contains(&format!("moved_from = [\"{first}\"]")), "{message}");
        assert!(!message.contains("at B"), "nothing of it is open: {message}");
        assert_eq!(orders(), [1, 0]);

        // With the former configuration it continues.
        let again = gateway(driver, 1, config());
        let mut trader = Trader::login(&again, "C00001", 1);
        expect_accepted(&mut trader, 1);
        trader.send(&[order_for(2, 100, "BRIDGE")]);
        expect_accepted(&mut trader, 2);
        assert_eq!(orders(), [1, 1]);
        drop(trader);
        end_gateway(again);
        let mut renamed = config();
        renamed.venues[0].usernames.swap(0, 1);
        let message = refusal(driver, renamed);
        let reason = "order 1 of C00001 at A (the login name there was G00001 and is G00002 now)";
        assert!(message.contains(reason) && !message.contains("moved_from"), "{message}");
        venues.into_iter().for_each(end_exchange);
    });
}

/// Starts a gateway, which requests this session and message from the exchange. It is let in at `next.0`, and
/// `next.1` is the next order number.
fn start(
    driver: Driver,
    config: GatewayConfig,
    venue: &Script,
    asked: (&str, u64),
    next: (u64, u32),
) -> (GatewayServer, Scripted) {
    let starting = std::thread::spawn(move || gateway(driver, 1, config));
    let mut session = venue.accept();
    assert_eq!((session.login.session.as_str(), session.login.sequence), asked);
    session.let_in("DAY", next.0);
    session.answer_query(next.1);
    (starting.join().expect("it starts"), session)
}

/// Leaves an order open at an exchange.
fn leave_order(driver: Driver, venue: &Script, folder: &Folder) {
    let config = strict(1, venue.address(), folder);
    let starting = std::thread::spawn(move || gateway(driver, 1, config));
    let mut session = venue.accept_session("DAY", 1, 1);
    let gateway = starting.join().expect("it starts");
    let mut trader = Trader::login(&gateway, "C00001", 1);
    trader.send(&[order(1, 100)]);
    let raw = session.next();
    session.accept_order(&raw);
    expect_accepted(&mut trader, 1);
    drop(trader);
    end_gateway(gateway);
}

#[test]
fn an_exchange_that_is_confirmed_to_have_moved_is_the_one_that_is_known() {
    beside_each_other(drivers(), |driver| {
        let (before, after, folder) = (Script::new(), Script::new(), Folder::new());
        leave_order(driver, &before, &folder);
        // It needs to be confirmed only once.
        for (life, moved_from) in [(0, vec![before.address()]), (1, Vec::new())] {
            let mut config = strict(1, after.address(), &folder);
            config.venues[0].moved_from = moved_from;
            let (gateway, mut session) = start(driver, config, &after, ("DAY", 3), (3, 2));
            let mut trader = Trader::login(&gateway, "C00001", 1);
            expect_accepted(&mut trader, 1);
            trader.send(&[cancel(1)]);
            if life == 0 {
                assert_eq!(session.next()[0], b'X', "it is open there");
            }
            drop(trader);
            end_gateway(gateway);
        }
    });
}

#[test]
fn orders_are_where_they_were_when_a_start_elsewhere_was_not_let_in() {
    beside_each_other(drivers(), |driver| {
        let (before, elsewhere, folder) = (Script::new(), Script::new(), Folder::new());
        leave_order(driver, &before, &folder);
        let mut config = strict(1, elsewhere.address(), &folder);
        config.venues[0].moved_from = vec![before.address()];
        let mistaken = GatewayServer::start(server(driver, 1), config).expect("it starts");
        // It connects there, and gets no answer.
        let session = elsewhere.accept();
        end_gateway(mistaken);
        drop(session);

        let config = strict(1, before.address(), &folder);
        let (gateway, mut session) = start(driver, config, &before, ("DAY", 3), (3, 2));
        let mut trader = Trader::login(&gateway, "C00001", 1);
        expect_accepted(&mut trader, 1);
        trader.send(&[cancel(1)]);
        assert_eq!(session.next()[0], b'X', "it is open there");
        drop(trader);
        end_gateway(gateway);
    });
}

#[test]
fn orders_at_another_address_expire_when_that_is_asked_for_and_nothing_is_cancelled_there() {
    beside_each_other(drivers(), |driver| {
        let (before, after, folder) = (Script::new(), Script::new(), Folder::new());
        leave_order(driver, &before, &folder);
        // Then they are recorded as ended, and the session there is the known one.
        for (expires, asked, next) in [(true, ("", 0), 11), (false, ("DAY", 12), 12)] {
            let mut config = strict(1, after.address(), &folder);
            config.expire_unreachable = expires;
            // A session with the same name, and longer.
            let (gateway, mut session) = start(driver, config, &after, asked, (next, 5));
            let mut trader = Trader::login(&gateway, "C00001", 1);
            expect_accepted(&mut trader, 1);
            expect_expired(&mut trader, 1, 100);
            expect_nothing_more(&mut trader);
            if expires {
                trader.send(&[order(2, 100)]);
                let raw = session.next();
                let Ok(Inbound::Enter(enter, _)) = Inbound::decode(&raw) else {
                    panic!("{raw:?} is no order")
                };
                assert_eq!((enter.user_ref_num, enter.client_order_id.as_str()), (5, "ORDER-00000002"));
            }
            drop(trader);
            end_gateway(gateway);
        }
    });
}
