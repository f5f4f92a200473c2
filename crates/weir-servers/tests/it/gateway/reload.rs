//! Tests of configurations that a running gateway reads again.

use std::sync::{Arc, Mutex};

use weir_engine::Driver;
use weir_proto::{
    ouch::{Outbound, inbound_user_ref_num, reject_reason},
    soup::DEBUG,
};
use weir_servers::{
    gateway::{GatewayConfig, GatewayServer, Limits, Listeners},
    orders::{demo_accounts, hash_password},
};
use weir_trading::AccountId;

use super::{
    rig::{
        Folder, Script, Trader, cancel, counted, end_exchange, end_gateway, eventually, exchange, gateway,
        line_with, loopback, order, order_for, strict, symbol,
    },
    rules::{expect_accepted, expect_refused},
};

/// A gateway, and the configuration that a reload will read.
struct Reloaded {
    gateway: GatewayServer,
    file: Arc<Mutex<Result<GatewayConfig, String>>>,
}

impl Reloaded {
    fn new(gateway: GatewayServer, config: GatewayConfig) -> Self {
        let file = Arc::new(Mutex::new(Ok(config)));
        let read = Arc::clone(&file);
        let read = move || {
            let config = read.lock().expect("nobody panics").clone()?;
            Ok((config, Listeners::default()))
        };
        gateway.control().reload_with(Listeners::default(), Box::new(read));
        Self { gateway, file }
    }

    fn reload(&self, change: impl FnOnce(&mut GatewayConfig)) -> Result<Vec<String>, String> {
        let before = self.file.lock().expect("nobody panics").clone();
        let mut config = before.clone().expect("it was right");
        change(&mut config);
        *self.file.lock().expect("nobody panics") = Ok(config);
        let outcome = self.gateway.control().reload();
        if outcome.is_err() {
            // As an operator does who has read why.
            *self.file.lock().expect("nobody panics") = before;
        }
        outcome
    }

    /// Waits until every session with an exchange is open.
    fn is_up(&self) {
        let control = self.gateway.control();
        eventually("the exchange is back", || control.upstreams().iter().all(|upstream| upstream.is_open));
    }
}

#[test]
fn accounts_passwords_and_limits_change_while_others_trade() {
    let (venue, folder) = (exchange(Driver::Poll, loopback()), Folder::new());
    let config = strict(2, venue.address().clone(), &folder);
    // Added accounts have homes on both workers.
    let start = || gateway(Driver::Poll, 2, config.clone());
    let it = Reloaded::new(start(), config.clone());
    let mut first = Trader::login(&it.gateway, "C00001", 1);
    first.send(&[order(1, 50)]);
    expect_accepted(&mut first, 1);
    assert_eq!(it.reload(|_| {}), Ok(Vec::new()));

    let wrong = it.reload(|config| config.accounts = demo_accounts(3)[1..].to_vec());
    let wrong = wrong.expect_err("an order is open");
    assert!(wrong.starts_with("account C00001: worker 0 has 1 open orders of it"), "{wrong}");
    assert_eq!(Trader::try_login(&it.gateway, "C00003", 1).err(), Some(b'A'), "nothing of it holds");
    *it.file.lock().expect("nobody panics") = Err("gateway.toml:3: no".into());
    assert_eq!(it.gateway.control().reload(), Err("gateway.toml:3: no".into()));
    *it.file.lock().expect("nobody panics") = Ok(config.clone());

    let changes = it.reload(|config| {
        let accounts = demo_accounts(4);
        config.accounts = [&accounts[..1], &accounts[2..]].concat();
        config.account_limits = vec![None, Some(Limits { shares_max: Some(5), ..Limits::default() }), None];
        config.limits.shares_max = Some(70);
        config.accounts[0].password_hash = hash_password("OTHER").expect("a password").into();
    });
    let lines = [
        "accounts added: C00003, C00004",
        "accounts removed: C00002",
        "accounts with another password or other options: C00001",
        "other common limits",
        "accounts with other separate limits: C00003",
    ];
    assert_eq!(changes, Ok(lines.map(str::to_owned).to_vec()));
    first.send(&[order(2, 71)]);
    expect_refused(&mut first, 2, reject_reason::SHARES_EXCEED_THRESHOLD);
    first.send(&[order(3, 70)]);
    expect_accepted(&mut first, 3);
    let mut third = Trader::login(&it.gateway, "C00003", 1);
    third.send(&[order(1, 6), order(2, 5)]);
    expect_refused(&mut third, 1, reject_reason::SHARES_EXCEED_THRESHOLD);
    expect_accepted(&mut third, 2);
    let mut fourth = Trader::login(&it.gateway, "C00004", 1);
    fourth.send(&[order(1, 70)]);
    expect_accepted(&mut fourth, 1);
    for refused in ["C00001", "C00002"] {
        assert_eq!(Trader::try_login(&it.gateway, refused, 1).err(), Some(b'A'), "{refused}");
    }

    // The next start has the file, in which the new accounts have other places and workers.
    let changed = it.file.lock().expect("nobody panics").clone().expect("it is right");
    drop((first, third, fourth));
    end_gateway(it.gateway);
    let again = gateway(Driver::Poll, 2, changed);
    let mut third = Trader::login(&again, "C00003", 1);
    expect_refused(&mut third, 1, reject_reason::SHARES_EXCEED_THRESHOLD);
    expect_accepted(&mut third, 2);
    third.send(&[cancel(2)]);
    assert!(matches!(third.next(), Outbound::Canceled(_)));
    end_gateway(again);
    end_exchange(venue);
}

#[test]
fn a_removed_account_is_cut_off_and_comes_back_with_its_stream() {
    let venue = exchange(Driver::Poll, loopback());
    let config = GatewayConfig::demo(2, venue.address().clone());
    let it = Reloaded::new(gateway(Driver::Poll, 1, config.clone()), config);
    let mut second = Trader::login(&it.gateway, "C00002", 1);
    // The venue forgets its orders: they are not known to be open.
    second.send(&[order(1, 50)]);
    expect_accepted(&mut second, 1);
    let only_first = |config: &mut GatewayConfig| {
        config.accounts.truncate(1);
        config.account_limits.truncate(1);
    };
    assert_eq!(it.reload(only_first), Ok(vec!["accounts removed: C00002".to_owned()]));
    let text = b"this connection is ended: the account was removed".to_vec();
    assert_eq!(second.rest(), [(DEBUG, text)], "it is cut off");
    let control = it.gateway.control();
    let away = || control.orders().away(AccountId(1), 1).first().map(|(_, ended)| ended.what.to_string());
    let why = Some("the account was removed from the configuration".to_owned());
    eventually("operators see why", || away() == why);
    assert_eq!(Trader::try_login(&it.gateway, "C00002", 1).err(), Some(b'A'));
    let both = |config: &mut GatewayConfig| {
        config.accounts = demo_accounts(2);
        config.account_limits.push(None);
    };
    assert_eq!(it.reload(both), Ok(vec!["accounts back: C00002".to_owned()]));
    let mut second = Trader::login(&it.gateway, "C00002", 1);
    expect_accepted(&mut second, 1);
    end_gateway(it.gateway);
    end_exchange(venue);
}

#[test]
fn a_file_with_a_stricter_limit_says_which_operators_values_still_hold() {
    let (venue, folder) = (exchange(Driver::Poll, loopback()), Folder::new());
    let config = strict(1, venue.address().clone(), &folder);
    let it = Reloaded::new(gateway(Driver::Poll, 1, config.clone()), config);
    let set = serde_json::json!({ "shares_max": 50 }).as_object().expect("an object").clone();
    assert_eq!(it.gateway.control().set_limits(Some("C00001"), set), Ok(()));
    assert_eq!(counted(&it.gateway, "weir_limits_overridden"), 1);
    let stricter = |config: &mut GatewayConfig| {
        config.limits = Limits { shares_max: Some(10), ..Limits::default() };
    };
    let changes = it.reload(stricter).expect("it is right");
    let [changed, overridden] = changes.as_slice() else { panic!("{changes:?}") };
    assert_eq!(changed, "other common limits");
    assert!(
        overridden.starts_with("limit shares_max of account C00001 is 50 instead of 10: "),
        "{overridden}"
    );
    assert_eq!(it.gateway.control().reset_limits(Some("C00001"), Default::default()), Ok(()));
    assert_eq!(counted(&it.gateway, "weir_limits_overridden"), 0);
    let other = |config: &mut GatewayConfig| config.limits.shares_max = Some(20);
    assert_eq!(it.reload(other), Ok(vec!["other common limits".to_owned()]));
    end_gateway(it.gateway);
    end_exchange(venue);
}

#[test]
fn a_venue_gets_another_address_when_nothing_is_open_there() {
    let (old, new, folder) = (Script::new(), Script::new(), Folder::new());
    let config = strict(1, old.address(), &folder);
    let starting = {
        let config = config.clone();
        std::thread::spawn(move || gateway(Driver::Poll, 1, config))
    };
    let mut session = old.accept_session("DAY", 1, 1);
    let it = Reloaded::new(starting.join().expect("it starts"), config);
    let lines = it.gateway.control().events().expect("nobody has them");
    let mut trader = Trader::login(&it.gateway, "C00001", 1);
    trader.send(&[order(1, 50)]);
    let raw = session.next();
    session.accept_order(&raw);
    expect_accepted(&mut trader, 1);
    let readdress = |config: &mut GatewayConfig| config.venues[0].address = new.address();
    let wrong = it.reload(readdress).expect_err("an order is open");
    let expected = format!("with moved_from = [\"{}\"] if it is the same exchange", old.address());
    assert!(
        wrong.starts_with("venue DEMO: worker 0 has 1 open orders") && wrong.ends_with(&expected),
        "{wrong}"
    );
    // Orders are taken again.
    trader.send(&[order(2, 50), cancel(1)]);
    let raw = session.next();
    session.accept_order(&raw);
    expect_accepted(&mut trader, 2);

    // The same exchange: the open order is still there.
    let (from, to) = (old.address(), new.address());
    let changes = it.reload(|config| {
        config.venues[0].moved_from = vec![from];
        config.venues[0].address = to;
    });
    assert_eq!(changes.expect("it is confirmed").len(), 1);
    while session.try_next().is_some() {}
    assert!(line_with(&lines, "the session is lost").contains("another address"));
    let mut moved = new.accept();
    assert_eq!((moved.login.session.as_str(), moved.login.sequence), ("DAY", 4));
    moved.let_in("DAY", 4);
    moved.answer_query(3);
    assert_eq!(moved.next()[0], b'X', "the last cancel of the open order is sent again");
    end_gateway(it.gateway);
}

#[test]
fn another_exchange_begins_with_its_own_session_and_numbers() {
    let (old, new, folder) = (Script::new(), Script::new(), Folder::new());
    let config = strict(1, old.address(), &folder);
    let starting = {
        let config = config.clone();
        std::thread::spawn(move || gateway(Driver::Poll, 1, config))
    };
    let _session = old.accept_session("DAY", 7, 5);
    let it = Reloaded::new(starting.join().expect("it starts"), config);
    let to = new.address();
    it.reload(|config| config.venues[0].address = to).expect("nothing is open");
    let mut session = new.accept();
    assert_eq!((session.login.session.as_str(), session.login.sequence), ("", 0));
    session.let_in("DAY", 3);
    session.answer_query(1);
    it.is_up();
    let mut trader = Trader::login(&it.gateway, "C00001", 1);
    trader.send(&[order(1, 50)]);
    let raw = session.next();
    assert_eq!(inbound_user_ref_num(&raw), Some(1), "numbers are the other exchange's");
    session.accept_order(&raw);
    expect_accepted(&mut trader, 1);
    // The journal has the order at the new address: a start with the old one is refused.
    let changed = it.file.lock().expect("nobody panics").clone().expect("it is right");
    drop(trader);
    end_gateway(it.gateway);
    let mut config = changed.clone();
    config.venues[0].address = old.address();
    let refused =
        GatewayServer::start(super::rig::server(Driver::Poll, 1), config).expect_err("it is not there");
    assert!(format!("{refused:?}").contains("order 1 of C00001"), "{refused:?}");
}

#[test]
fn a_symbol_gets_another_route_when_none_of_its_orders_is_open() {
    let (venue, other, folder) = (exchange(Driver::Poll, loopback()), Script::new(), Folder::new());
    let mut config = strict(1, venue.address().clone(), &folder);
    let mut second = config.venues[0].clone();
    (second.name, second.address) = ("OTHER".into(), other.address());
    config.venues.push(second);
    let starting = {
        let config = config.clone();
        std::thread::spawn(move || gateway(Driver::Poll, 1, config))
    };
    let mut there = other.accept_session("DAY", 1, 1);
    let it = Reloaded::new(starting.join().expect("it starts"), config);
    let mut trader = Trader::login(&it.gateway, "C00001", 1);
    trader.send(&[order_for(1, 50, "MOVES")]);
    expect_accepted(&mut trader, 1);
    let reroute = |config: &mut GatewayConfig| config.symbols = vec![(symbol("MOVES"), 1)];
    let wrong = it.reload(reroute).expect_err("an order is open");
    assert!(wrong.starts_with("symbol MOVES: clients of worker 0 have 1 open orders"), "{wrong}");
    trader.send(&[cancel(1)]);
    assert!(matches!(trader.next(), Outbound::Canceled(_)));
    assert_eq!(it.reload(reroute), Ok(vec!["symbols with another route: 1".to_owned()]));
    trader.send(&[order_for(2, 50, "MOVES")]);
    let raw = there.next();
    there.accept_order(&raw);
    expect_accepted(&mut trader, 2);
    end_gateway(it.gateway);
    end_exchange(venue);
}
