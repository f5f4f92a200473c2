//! What operators see of a running gateway: orders, positions, exposures, sessions; and what they cancel and end.

use std::{collections::BTreeSet, time::Duration};

use weir_proto::ouch::{Inbound, Modify, Outbound, codes::cancel_reason};
use weir_servers::{
    exchange::Mode,
    gateway::{
        ExposureRow, GatewayConfig, GatewayControl, Limits, OrderFilter, OrderRow, PositionRow, ROWS_MAX,
        VenueCancels,
    },
    orders::LoginLimits,
};
use weir_trading::{AccountId, Route};

use super::rig::{
    Folder, Script, Trader, cancel, counted, drivers, end_exchange, end_gateway, eventually, exchange,
    exchange_in, gateway, line_with, loopback, order, order_for, strict,
};

fn sell(user_ref_num: u32, quantity: u32) -> Inbound<'static> {
    let Inbound::Enter(mut enter, appendage) = order(user_ref_num, quantity) else { panic!("an order") };
    enter.side = b'S';
    Inbound::Enter(enter, appendage)
}

fn of_account(name: &str) -> OrderFilter {
    OrderFilter { account: Some(name.into()), ..OrderFilter::default() }
}

fn of_symbol(name: &str) -> OrderFilter {
    OrderFilter { symbol: Some(name.into()), ..OrderFilter::default() }
}

/// Account, number, symbol, shares and state of each order, in the order of the numbers.
fn orders(control: &GatewayControl, filter: &OrderFilter) -> Vec<(String, u32, String, u32, String)> {
    let page = control.open_orders(filter, None).expect("workers answer");
    assert_eq!(page.next, None);
    let row = |row: OrderRow| {
        let known = (row.symbol.expect("it is followed"), row.shares.expect("it is followed"));
        (row.account, row.order, known.0, known.1, row.state)
    };
    let mut all: Vec<_> = page.rows.into_iter().map(row).collect();
    all.sort();
    all
}

/// Account, symbol, shares bought and sold.
fn positions(control: &GatewayControl) -> Vec<(String, String, u64, u64)> {
    let page = control.positions(&OrderFilter::default(), None).expect("workers answer");
    let row =
        |row: PositionRow| (row.account, row.symbol.expect("every order is known"), row.bought, row.sold);
    let mut all: Vec<_> = page.rows.into_iter().map(row).collect();
    all.sort();
    all
}

fn cancelled(trader: &mut Trader) -> (u32, u32, u8) {
    match trader.next() {
        Outbound::Canceled(canceled) => (canceled.user_ref_num, canceled.quantity, canceled.reason),
        other => panic!("{other:?}"),
    }
}

/// How many orders were open at the only venue, and how many cancels were sent. How many are confirmed depends on the
/// machine.
fn of_venue(venues: &[VenueCancels]) -> (u64, u64) {
    let [venue] = venues else { panic!("{venues:?}") };
    (venue.orders, venue.sent)
}

#[test]
fn orders_positions_and_exposures_are_shown_and_single_orders_cancelled() {
    let driver = drivers()[0];
    let (venue, folder) = (exchange_in(Mode::Match, driver, loopback()), Folder::new());
    // Every order is in the session of another worker than its client's.
    let mut config = GatewayConfig { route: Route::Other, ..strict(2, venue.address().clone(), &folder) };
    // It holds for places of later accounts too, which no list shows.
    config.limits.exposure_max = Some(1e6);
    let first = gateway(driver, 2, config.clone());
    let control = first.control();
    let (mut buyer, mut seller) = (Trader::login(&first, "C00001", 1), Trader::login(&first, "C00002", 1));
    buyer.send(&[order(1, 100), order_for(2, 50, "DAM")]);
    assert!(matches!(buyer.next(), Outbound::Accepted(_)) && matches!(buyer.next(), Outbound::Accepted(_)));
    seller.send(&[sell(1, 40)]);
    assert!(matches!(seller.next(), Outbound::Accepted(_)) && matches!(seller.next(), Outbound::Executed(_)));
    assert!(matches!(buyer.next(), Outbound::Executed(_)));
    let row = |number: u32, symbol: &str, shares: u32| {
        ("C00001".to_owned(), number, symbol.to_owned(), shares, "open".to_owned())
    };
    let all = vec![row(1, "WEIR", 60), row(2, "DAM", 50)];
    assert_eq!(orders(&control, &OrderFilter::default()), all);
    assert_eq!(orders(&control, &of_symbol("dam")), [row(2, "DAM", 50)], "in any of its forms");
    assert!(orders(&control, &of_account("C00002")).is_empty());
    let held = [("C00001", "WEIR", 40, 0), ("C00002", "WEIR", 0, 40)]
        .map(|(account, symbol, bought, sold)| (account.to_owned(), symbol.to_owned(), bought, sold));
    assert_eq!(positions(&control), held);
    let exposures = control.exposures(None, None).expect("workers answer").rows;
    let used = |account: &str, used: f64| ExposureRow { account: account.into(), used, limit: Some(1e6) };
    assert_eq!(exposures, [used("C00001", 150.0), used("C00002", 40.0)]);

    let report = control.cancel_order("C00001", 2).expect("it is open");
    assert_eq!(of_venue(&report.venues), (1, 1));
    assert_eq!(cancelled(&mut buyer), (2, 50, cancel_reason::SUPERVISORY));
    // The client has been informed that it has ended.
    let unknown = control.cancel_order("C00001", 2).expect_err("it has ended");
    assert!(unknown.starts_with("account C00001 has no open order 2"), "{unknown}");
    let report = control.cancel_orders(&of_symbol("WEIR")).expect("workers answer");
    assert_eq!((of_venue(&report.venues), report.unknown_symbols), ((1, 1), 0));
    assert_eq!(cancelled(&mut buyer), (1, 60, cancel_reason::SUPERVISORY));
    let none = control.cancel_orders(&of_account("C00001")).expect("workers answer");
    assert!(none.venues.is_empty(), "{none:?}");
    drop((buyer, seller));
    end_gateway(first);
    let second = gateway(driver, 2, config);
    assert_eq!(positions(&second.control()), held, "the journal has them");
    assert!(orders(&second.control(), &OrderFilter::default()).is_empty());
    end_gateway(second);
    end_exchange(venue);
}

#[test]
fn more_orders_than_a_page_has_are_on_the_next_ones_each_once() {
    let driver = drivers()[0];
    let (venue, folder) = (exchange_in(Mode::Match, driver, loopback()), Folder::new());
    let gateway = gateway(driver, 2, strict(2, venue.address().clone(), &folder));
    let control = gateway.control();
    let mut trader = Trader::login(&gateway, "C00001", 1);
    let count = 2 * ROWS_MAX as u32 + 10;
    for first in (1..=count).step_by(200) {
        let last = (first + 199).min(count);
        trader.send(&(first..=last).map(|number| order(number, 100)).collect::<Vec<_>>());
        (first..=last).for_each(|_| assert!(matches!(trader.next(), Outbound::Accepted(_))));
    }
    let (mut found, mut sizes, mut from) = (BTreeSet::new(), Vec::new(), None);
    loop {
        let page = control.open_orders(&of_account("C00001"), from).expect("workers answer");
        sizes.push(page.rows.len());
        page.rows.iter().for_each(|row| assert!(found.insert(row.order), "{row:?} is there twice"));
        let Some(next) = page.next else { break };
        // As it crosses the control socket.
        from = Some(next.to_string().parse().expect("a place"));
    }
    assert_eq!((sizes, found.len()), (vec![ROWS_MAX, ROWS_MAX, 10], count as usize));
    let report = control.cancel_orders(&of_account("C00001")).expect("workers answer");
    assert_eq!(report.venues[0].orders, u64::from(count));
    let mut ended = BTreeSet::new();
    (1..=count).for_each(|_| assert!(ended.insert(cancelled(&mut trader).0)));
    drop(trader);
    end_gateway(gateway);
    end_exchange(venue);
}

#[test]
fn a_cancel_without_a_connection_is_kept_and_leaves_after_a_restart() {
    let (driver, script, folder) = (drivers()[0], Script::new(), Folder::new());
    let config = strict(1, script.address(), &folder);
    let start = |config: GatewayConfig| std::thread::spawn(move || gateway(driver, 1, config));
    let starting = start(config.clone());
    let mut venue = script.accept_session("DAY", 1, 1);
    let first = starting.join().expect("it starts");
    let mut trader = Trader::login(&first, "C00001", 1);
    trader.send(&[order(1, 100)]);
    let sent = venue.next();
    venue.accept_order(&sent);
    assert!(matches!(trader.next(), Outbound::Accepted(_)));
    drop(venue);
    let unanswered = script.accept();
    assert!(!first.control().upstreams()[0].is_open);
    let report = first.control().cancel_order("C00001", 1).expect("it is open");
    let waiting = VenueCancels { venue: "DEMO".into(), orders: 1, sent: 0, confirmed: 0, expired: 0 };
    assert_eq!(report.venues, [waiting]);
    assert_eq!(orders(&first.control(), &OrderFilter::default())[0].4, "cancelling");
    drop(trader);
    end_gateway(first);
    drop(unanswered);
    let starting = start(config);
    let mut venue = script.accept();
    assert_eq!((venue.login.session.as_str(), venue.login.sequence), ("DAY", 3));
    venue.let_in("DAY", 3);
    venue.answer_query(2);
    let second = starting.join().expect("it starts");
    assert_eq!(venue.next(), [b'X', 0, 0, 0, 1, 0, 0, 0, 0]);
    end_gateway(second);
}

#[test]
fn a_connection_that_an_operator_ends_and_a_login_that_is_refused_say_why() {
    let driver = drivers()[0];
    let venue = exchange(driver, loopback());
    let gateway = gateway(driver, 2, GatewayConfig::demo(3, venue.address().clone()));
    let control = gateway.control();
    let lines = control.events().expect("nobody has them");
    let mut trader = Trader::login(&gateway, "C00002", 1);
    let wrong = control.disconnect("C00002", Some("OTHER00001")).expect_err("another session");
    assert!(wrong.contains("WEIRGW0001"), "{wrong}");
    assert_eq!(control.disconnect("C00002", Some("weirgw0001")), Ok(()));
    assert_eq!(trader.next_text(), "this connection is ended by an operator");
    assert!(trader.rest().is_empty());
    eventually("it has left", || control.disconnect("C00002", None).is_err());
    let refused = Trader::try_password(&gateway, "C00003", "WRONG").expect("an answer");
    assert_eq!(refused.err(), Some(b'A'));
    let line = line_with(&lines, "is refused");
    assert!(line.contains("a login of C00003 from 127.0.0.1:"), "{line}");
    assert!(line.ends_with("is refused: wrong password"), "{line}");
    let away = control.orders().away(AccountId(0), 10);
    let why: Vec<(u32, String)> =
        away.iter().map(|(account, ended)| (account.0, ended.what.to_string())).collect();
    let refused = "the login was refused: wrong password".to_owned();
    assert_eq!(why, [(1, "an operator ended it".to_owned()), (2, refused)]);
    assert_eq!(away[1].1.address, Some([127, 0, 0, 1].into()));
    end_gateway(gateway);
    end_exchange(venue);
}

#[test]
fn logins_with_wrong_passwords_are_locked_until_an_operator_ends_that() {
    let driver = drivers()[0];
    let venue = exchange(driver, loopback());
    let logins = LoginLimits { failures_max: 2, lock: Duration::from_secs(86_400) };
    let config = GatewayConfig { logins, ..GatewayConfig::demo(2, venue.address().clone()) };
    let gateway = gateway(driver, 2, config);
    let control = gateway.control();
    let lines = control.events().expect("nobody has them");
    let try_password =
        |name: &str, password: &str| Trader::try_password(&gateway, name, password).expect("an answer").err();
    assert_eq!([try_password("C00001", "WRONG"), try_password("C00001", "WORSE")], [Some(b'A'); 2]);
    let line = line_with(&lines, "are locked");
    assert!(line.contains("logins of C00001 from 127.0.0.1 are locked for 86400 s"), "{line}");
    assert!(line.ends_with("; `weir ctl unlock 127.0.0.1` ends that"), "{line}");
    assert_eq!(counted(&gateway, "weir_logins_locked"), 1);
    assert_eq!(try_password("C00001", "DEMO"), Some(b'A'), "it is not even verified");
    assert_eq!(try_password("C00002", "DEMO"), None, "another account");
    let locks = control.orders().login_locks();
    let [lock] = locks.as_slice() else { panic!("{locks:?}") };
    assert_eq!((lock.account, lock.address), (Some(AccountId(0)), Some([127, 0, 0, 1].into())));
    assert_eq!(control.node_stats().logins["locked"], 1);
    assert_eq!(control.orders().unlock_logins(|account, _| account == Some(AccountId(0))), 1);
    assert_eq!((try_password("C00001", "DEMO"), control.orders().login_locks()), (None, Vec::new()));
    assert_eq!(counted(&gateway, "weir_logins_locked"), 0);
    end_gateway(gateway);
    end_exchange(venue);
}

#[test]
fn cancels_and_modifications_above_their_rate_get_a_cancel_reject() {
    let driver = drivers()[0];
    let venue = exchange_in(Mode::Match, driver, loopback());
    let limits = Limits { cancels_per_second: Some(1), cancels_burst: Some(1), ..Limits::default() };
    let config = GatewayConfig { limits, ..GatewayConfig::demo(1, venue.address().clone()) };
    let gateway = gateway(driver, 1, config);
    let mut trader = Trader::login(&gateway, "C00001", 1);
    trader.send(&[order(1, 100), order(2, 100)]);
    (0..2).for_each(|_| assert!(matches!(trader.next(), Outbound::Accepted(_))));
    let modify = Inbound::Modify(Modify { user_ref_num: 2, side: b'B', quantity: 50 });
    // Received at one time, whatever the machine does.
    trader.send(&[cancel(1), cancel(2), modify]);
    let mut rejected = Vec::new();
    let mut canceled = Vec::new();
    for _ in 0..3 {
        match trader.next() {
            Outbound::CancelReject(reject) => rejected.push(reject.user_ref_num),
            Outbound::Canceled(message) => canceled.push(message.user_ref_num),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((canceled, rejected), (vec![1], vec![2, 2]));
    assert_eq!(counted(&gateway, "weir_cancels_limited_total"), 2);
    let report = gateway.control().cancel_order("C00001", 2).expect("an operator has no rate");
    assert_eq!(of_venue(&report.venues), (1, 1));
    drop(trader);
    end_gateway(gateway);
    end_exchange(venue);
}
