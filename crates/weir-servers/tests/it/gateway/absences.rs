//! Clients that cancel on disconnect and have some time to come back.

use std::time::Duration;

use weir_proto::ouch::{Canceled, Outbound, codes::cancel_reason, inbound_user_ref_num};
use weir_servers::gateway::{GatewayConfig, GatewayServer};

use super::{
    anew::expect_accepted,
    rig::{
        Folder, Script, Scripted, Trader, beside_each_other, cancel, drivers, end_gateway, eventually,
        gateway, order, strict,
    },
};

/// One account that cancels on disconnect, this long after it.
fn config(venue: &Script, folder: &Folder, seconds: u64) -> GatewayConfig {
    let mut config = strict(1, venue.address(), folder);
    config.accounts[0].takeover = true;
    config.accounts[0].cancel_on_disconnect = true;
    config.accounts[0].cancel_after = Duration::from_secs(seconds);
    config
}

fn start(
    driver: weir_engine::Driver,
    venue: &Script,
    config: GatewayConfig,
    next: u32,
) -> (GatewayServer, Scripted) {
    let starting = std::thread::spawn(move || gateway(driver, 1, config));
    let mut session = venue.accept();
    session.let_in("DAY", session.login.sequence.max(1));
    session.answer_query(next);
    (starting.join().expect("it starts"), session)
}

/// The exchange gets this order and nothing before it, and accepts it.
fn expect_order(session: &mut Scripted, trader: &mut Trader, number: u32) {
    trader.send(&[order(number, 100)]);
    let raw = session.next();
    assert_eq!((raw[0], inbound_user_ref_num(&raw)), (b'O', Some(number)), "nothing is cancelled");
    session.accept_order(&raw);
    expect_accepted(trader, number);
}

/// The exchange gets a cancel of this order, and confirms it.
fn expect_cancel(session: &mut Scripted, number: u32) {
    let raw = session.next();
    assert_eq!((raw[0], inbound_user_ref_num(&raw)), (b'X', Some(number)));
    session.say(&Outbound::Canceled(Canceled {
        timestamp_ns: 1,
        user_ref_num: number,
        quantity: 100,
        reason: cancel_reason::USER,
    }));
}

fn expect_canceled(trader: &mut Trader, number: u32) {
    let next = trader.next();
    let Outbound::Canceled(canceled) = next else { panic!("{next:?} instead of {number} being cancelled") };
    assert_eq!((canceled.user_ref_num, canceled.reason), (number, cancel_reason::SYSTEM));
}

#[test]
fn a_client_that_is_back_in_time_keeps_its_orders_also_when_it_takes_its_own_place() {
    beside_each_other(drivers(), |driver| {
        let (venue, folder) = (Script::new(), Folder::new());
        let (gateway, mut session) = start(driver, &venue, config(&venue, &folder, 600), 1);
        let mut first = Trader::login(&gateway, "C00001", 1);
        expect_order(&mut session, &mut first, 1);
        let mut second = Trader::login(&gateway, "C00001", 2);
        expect_order(&mut session, &mut second, 2);
        drop((first, second));
        eventually("it has left", || gateway.control().node_stats().sessions_open == 0);
        let mut third = Trader::login(&gateway, "C00001", 3);
        expect_order(&mut session, &mut third, 3);
        // A drain gives no time.
        gateway.drain();
        (1..=3).for_each(|number| expect_cancel(&mut session, number));
        (1..=3).for_each(|number| expect_canceled(&mut third, number));
        drop((third, session));
        gateway.join();
    });
}

#[test]
fn the_orders_of_a_client_that_stays_away_are_cancelled_when_its_time_is_over() {
    beside_each_other(drivers(), |driver| {
        let (venue, folder) = (Script::new(), Folder::new());
        let (gateway, mut session) = start(driver, &venue, config(&venue, &folder, 1), 1);
        let mut trader = Trader::login(&gateway, "C00001", 1);
        expect_order(&mut session, &mut trader, 1);
        drop(trader);
        expect_cancel(&mut session, 1);
        let mut trader = Trader::login(&gateway, "C00001", 2);
        expect_canceled(&mut trader, 1);
        drop(trader);
        end_gateway(gateway);
    });
}

#[test]
fn a_start_gives_clients_the_same_time_to_come_back() {
    beside_each_other(drivers(), |driver| {
        let (venue, folder) = (Script::new(), Folder::new());
        // Its drain leaves the orders, like a crash of one that would have cancelled them.
        let mut careless = config(&venue, &folder, 0);
        careless.accounts[0].cancel_on_disconnect = false;
        let (first, mut session) = start(driver, &venue, careless.clone(), 1);
        let mut trader = Trader::login(&first, "C00001", 1);
        expect_order(&mut session, &mut trader, 1);
        drop(trader);
        end_gateway(first);
        drop(session);

        let (second, mut session) = start(driver, &venue, config(&venue, &folder, 600), 2);
        let mut trader = Trader::login(&second, "C00001", 2);
        expect_order(&mut session, &mut trader, 2);
        trader.send(&[cancel(2)]);
        let raw = session.next();
        assert_eq!((raw[0], inbound_user_ref_num(&raw)), (b'X', Some(2)), "the client's own cancel");
        drop(trader);
        second.drain();
        drop(session);
        second.join();

        // What that drain has cancelled is not confirmed, and waits no longer than the client.
        let (third, mut session) = start(driver, &venue, config(&venue, &folder, 1), 3);
        let cancelled =
            std::iter::repeat_with(|| session.next()).find(|raw| inbound_user_ref_num(raw) == Some(1));
        assert_eq!(cancelled.map(|raw| raw[0]), Some(b'X'));
        drop(session);
        end_gateway(third);
    });
}
