//! Tests of the drop copy: what a firm receives, from which number on, and what it may not do.

use std::time::Duration;

use weir_engine::net::Address;
use weir_proto::{
    drop_copy::Copied,
    ouch::{BrokenTrade, Executed, Inbound, Outbound, inbound_user_ref_num, reject_reason},
    soup::{DEBUG, END_OF_SESSION, LoginRequest},
};
use weir_servers::{
    exchange::Mode,
    gateway::{ControlSocket, DropCopyConfig, FirmConfig, GatewayConfig, GatewayServer, Limits},
    orders::LoginLimits,
};

use super::{
    changes::ask,
    rig::{
        Folder, Script, Scripted, Trader, beside_each_other, counted, drivers, end_exchange, end_gateway,
        eventually, exchange_in, gateway, loopback, order, strict,
    },
};

/// What a firm has received: account, session, number there, message.
type Received = (String, String, u64, Vec<u8>);

/// The configuration with firms that receive what happens to these accounts.
fn with_firms(config: GatewayConfig, firms: &[(&str, &[&str])]) -> GatewayConfig {
    let firm = |(name, accounts): &(&str, &[&str])| FirmConfig {
        name: name.parse().expect("a name"),
        password_hash: config.accounts[0].password_hash.clone(),
        takeover: false,
        accounts: accounts.iter().map(|account| account.parse().expect("a name")).collect(),
    };
    let drop_copy = DropCopyConfig {
        listen: loopback(),
        session: "WEIRDC0001".parse().expect("a name"),
        directory: None,
        firms: firms.iter().map(firm).collect(),
    };
    GatewayConfig { drop_copy: Some(drop_copy), ..config }
}

fn address(gateway: &GatewayServer) -> &Address {
    gateway.drop_copy().expect("there is one").address()
}

/// Logs in, and requests the copies from `sequence` on.
fn login(gateway: &GatewayServer, session: &str, firm: &str, sequence: u64) -> Trader {
    Trader::login_at(address(gateway), session, firm, sequence)
        .expect("an answer")
        .unwrap_or_else(|reason| panic!("{firm} is refused with {}", char::from(reason)))
}

fn next(reader: &mut Trader) -> Received {
    let raw = reader.next_raw();
    let copied = Copied::parse(&raw).unwrap_or_else(|| panic!("{raw:?} is no copy"));
    (copied.account.to_string(), copied.session.to_string(), copied.number, copied.message.to_vec())
}

fn next_many(reader: &mut Trader, count: usize) -> Vec<Received> {
    (0..count).map(|_| next(reader)).collect()
}

/// The next messages of a client, as copies of them are.
fn got(trader: &mut Trader, account: &str, session: &str, count: usize) -> Vec<Received> {
    let mut all = Vec::new();
    for _ in 0..count {
        let number = trader.expected;
        all.push((account.to_owned(), session.to_owned(), number, trader.next_raw()));
    }
    all
}

fn executed(user_ref_num: u32, match_number: u64) -> Outbound {
    let (timestamp_ns, quantity, price, liquidity) = (1, 10, 10_000, b'A');
    Outbound::Executed(Executed { timestamp_ns, user_ref_num, quantity, price, liquidity, match_number })
}

/// An order of a client that the exchange accepts; the client has read that. Returns the number at the exchange.
fn accepted(trader: &mut Trader, session: &mut Scripted, number: u32) -> u32 {
    trader.send(&[order(number, 100)]);
    let raw = session.next();
    session.accept_order(&raw);
    assert!(matches!(trader.next(), Outbound::Accepted(_)));
    inbound_user_ref_num(&raw).expect("an order")
}

fn sell(user_ref_num: u32, quantity: u32) -> Inbound<'static> {
    let Inbound::Enter(mut enter, appendage) = order(user_ref_num, quantity) else { panic!("an order") };
    enter.side = b'S';
    Inbound::Enter(enter, appendage)
}

#[test]
fn a_firm_gets_what_is_executed_refused_and_broken_for_its_accounts_alone_from_any_number_and_then_live() {
    beside_each_other(drivers(), |driver| {
        let (venue, folder) = (Script::new(), Folder::new());
        let limits = Limits { shares_max: Some(1_000), ..Limits::default() };
        let config = GatewayConfig { limits, ..strict(3, venue.address(), &folder) };
        let config = with_firms(config, &[("FIRM-A", &["C00001", "c00002"]), ("FIRM-B", &["C00003"])]);
        let starting = std::thread::spawn(move || gateway(driver, 1, config));
        let mut session = venue.accept_session("DAY", 1, 1);
        let gateway = starting.join().expect("it starts");
        let [mut first, mut second, mut other] =
            ["C00001", "C00002", "C00003"].map(|name| Trader::login(&gateway, name, 1));
        let mut reader = login(&gateway, "", "FIRM-A", 1);

        let number = accepted(&mut first, &mut session, 1);
        session.say(&executed(number, 7));
        let mut expected = got(&mut first, "C00001", "WEIRGW0001", 1);
        let number_of_other = accepted(&mut other, &mut session, 1);
        session.say(&executed(number_of_other, 8));
        let of_other = got(&mut other, "C00003", "WEIRGW0001", 1);
        second.send(&[order(1, 1_001)]);
        expected.extend(got(&mut second, "C00002", "WEIRGW0001", 1));
        let reason = Outbound::decode(&expected[1].3).expect("a message").0;
        assert!(
            matches!(reason, Outbound::Rejected(it) if it.reason == reject_reason::SHARES_EXCEED_THRESHOLD)
        );
        session.say(&Outbound::BrokenTrade(BrokenTrade {
            timestamp_ns: 2,
            user_ref_num: number,
            match_number: 7,
            reason: b'E',
            client_order_id: "ORDER-00000001".parse().expect("an id"),
        }));
        expected.extend(got(&mut first, "C00001", "WEIRGW0001", 1));
        assert_eq!(next_many(&mut reader, 3), expected, "in order, byte for byte");
        reader.hear_heartbeat();
        drop(reader);
        // From a number in the middle, and then live.
        eventually("the connection is gone", || {
            counted(&gateway, "weir_drop_copy_sessions{state=\"live\"}") == 0
        });
        let mut reader = login(&gateway, "WEIRDC0001", "firm-a", 3);
        assert_eq!(next_many(&mut reader, 1), expected[2..]);
        session.say(&executed(number, 9));
        assert_eq!(next_many(&mut reader, 1), got(&mut first, "C00001", "WEIRGW0001", 1));
        let mut reader_of_other = login(&gateway, "", "FIRM-B", 1);
        assert_eq!(next_many(&mut reader_of_other, 1), of_other);
        reader_of_other.hear_heartbeat();
        assert_eq!(counted(&gateway, "weir_drop_copy_sent_total"), 6);
        eventually("everything is looked at", || counted(&gateway, "weir_drop_copy_behind_records") == 0);
        end_gateway(gateway);
    });
}

/// Trades between two clients, this many; the seller comes first. Each gets an acceptance and an execution.
fn trade(seller: &mut Trader, buyer: &mut Trader, numbers: std::ops::Range<u32>) -> Vec<Received> {
    let mut expected = Vec::new();
    for number in numbers {
        seller.send(&[sell(number, 100)]);
        assert!(matches!(seller.next(), Outbound::Accepted(_)));
        buyer.send(&[order(number, 100)]);
        assert!(matches!(buyer.next(), Outbound::Accepted(_)));
        expected.extend(got(buyer, "C00002", "WEIRGW0001", 1));
        expected.extend(got(seller, "C00001", "WEIRGW0001", 1));
    }
    expected
}

fn sorted(copies: &[Received]) -> Vec<Received> {
    let mut copies = copies.to_vec();
    copies.sort();
    copies
}

#[test]
fn numbers_and_bytes_stay_after_a_start_with_another_number_of_workers() {
    const TRADES: u32 = 40;
    beside_each_other(drivers(), |driver| {
        let (venue, folder) = (exchange_in(Mode::Match, driver, loopback()), Folder::new());
        let config = strict(2, venue.address().clone(), &folder);
        let config = with_firms(config, &[("FIRM", &["C00001", "C00002"]), ("SELLER", &["C00001"])]);
        let mut expected: Vec<Received> = Vec::new();
        let mut before: Vec<Received> = Vec::new();
        for (start, workers) in [(0, 2), (1, 1), (2, 2)] {
            let gateway = gateway(driver, workers, config.clone());
            let mut seller = Trader::login(&gateway, "C00001", 1 + u64::from(start * TRADES) * 2);
            let mut buyer = Trader::login(&gateway, "C00002", 1 + u64::from(start * TRADES) * 2);
            let mut reader = login(&gateway, if start == 0 { "" } else { "WEIRDC0001" }, "FIRM", 1);
            assert_eq!(next_many(&mut reader, before.len()), before, "what it had, in the same order");
            let first = start * TRADES + 1;
            expected.extend(trade(&mut seller, &mut buyer, first..first + TRADES));
            before.extend(next_many(&mut reader, expected.len() - before.len()));
            // The order of two workers is chosen when they are copied.
            assert_eq!(sorted(&before), sorted(&expected));
            reader.hear_heartbeat();
            end_gateway(gateway);
        }
        // Those of one account are in its order, and another firm has the same.
        let gateway = gateway(driver, 2, config);
        let mut reader = login(&gateway, "", "SELLER", 1);
        let of_seller: Vec<Received> = expected.into_iter().filter(|copy| copy.0 == "C00001").collect();
        assert_eq!(next_many(&mut reader, of_seller.len()), of_seller);
        reader.hear_heartbeat();
        let in_firm: Vec<Received> = before.into_iter().filter(|copy| copy.0 == "C00001").collect();
        assert_eq!(in_firm, of_seller);
        end_gateway(gateway);
        end_exchange(venue);
    });
}

#[test]
fn the_session_with_firms_ends_with_that_of_clients_and_not_with_a_drain() {
    let driver = drivers()[0];
    let (venue, folder) = (exchange_in(Mode::Match, driver, loopback()), Folder::new());
    let config = with_firms(strict(2, venue.address().clone(), &folder), &[("FIRM", &["C00001", "C00002"])]);
    let first = gateway(driver, 1, config.clone());
    let (mut seller, mut buyer) = (Trader::login(&first, "C00001", 1), Trader::login(&first, "C00002", 1));
    let mut reader = login(&first, "", "FIRM", 1);
    let expected = trade(&mut seller, &mut buyer, 1..2);
    assert_eq!(sorted(&next_many(&mut reader, 2)), sorted(&expected));
    first.drain();
    let ending = std::thread::spawn(move || first.join());
    assert!(reader.rest().is_empty(), "nothing is over");
    ending.join().expect("it ends");

    let second = gateway(driver, 1, config.clone());
    let mut reader = login(&second, "WEIRDC0001", "FIRM", 3);
    second.control().end_session("WEIRGW0001").expect("it is that one");
    let ending = std::thread::spawn(move || second.join());
    assert_eq!(reader.rest(), [(END_OF_SESSION, Vec::new())]);
    ending.join().expect("it ends");

    let third = gateway(driver, 1, config);
    let old = Trader::login_at(address(&third), "WEIRDC0001", "FIRM", 1).expect("an answer");
    assert_eq!(old.err(), Some(b'S'));
    let mut reader = login(&third, "WEIRDC0002", "FIRM", 1);
    reader.hear_heartbeat();
    let (mut seller, mut buyer) = (Trader::login(&third, "C00001", 1), Trader::login(&third, "C00002", 1));
    seller.send(&[sell(2, 100)]);
    assert!(matches!(seller.next(), Outbound::Accepted(_)));
    buyer.send(&[order(2, 100)]);
    assert!(matches!(buyer.next(), Outbound::Accepted(_)));
    let mut expected = got(&mut buyer, "C00002", "WEIRGW0002", 1);
    expected.extend(got(&mut seller, "C00001", "WEIRGW0002", 1));
    assert_eq!(sorted(&next_many(&mut reader, 2)), sorted(&expected), "each session is named");
    end_gateway(third);
    end_exchange(venue);
}

#[test]
fn a_firm_that_sends_anything_is_cut_off_with_the_reason_and_can_log_in_again() {
    let driver = drivers()[0];
    let (venue, folder) = (exchange_in(Mode::Match, driver, loopback()), Folder::new());
    let gateway =
        gateway(driver, 1, with_firms(strict(1, venue.address().clone(), &folder), &[("FIRM", &["C00001"])]));
    for (count, message) in [(1, order(1, 100)), (2, Inbound::AccountQuery)] {
        let mut reader = login(&gateway, "", "FIRM", 1);
        reader.send(&[message]);
        assert_eq!(reader.rest(), [(DEBUG, b"this connection is ended: read_only".to_vec())]);
        let name = "weir_drop_copy_protocol_errors_total{kind=\"read_only\"}";
        eventually("it is counted", || gateway_counts(&gateway, name) == Some(count));
    }
    assert_eq!(counted(&gateway, "weir_orders_total"), 0, "no order has come from there");
    login(&gateway, "", "FIRM", 1).hear_heartbeat();
    end_gateway(gateway);
    end_exchange(venue);
}

/// As [`counted`], for a counter that may not be there yet.
fn gateway_counts(gateway: &GatewayServer, name: &str) -> Option<u64> {
    use weir_servers::metrics::Source;
    let text = gateway.control().metrics();
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

#[test]
fn firms_and_accounts_have_separate_doors_and_wrong_passwords_lock_a_firm_until_an_operator_ends_that() {
    let driver = drivers()[0];
    let (venue, folder) = (exchange_in(Mode::Match, driver, loopback()), Folder::new());
    let logins = LoginLimits { failures_max: 2, lock: Duration::from_secs(86_400) };
    let config = GatewayConfig { logins, ..strict(1, venue.address().clone(), &folder) };
    let gateway = gateway(driver, 1, with_firms(config, &[("FIRM", &["C00001"])]));
    let path = folder.0.join("control.sock");
    let socket = ControlSocket::bind(&path).expect("the path is free");
    let socket = socket.answer(gateway.control()).expect("a thread");
    assert_eq!(Trader::try_login(&gateway, "FIRM", 1).err(), Some(b'A'), "it is no account");
    let at_copy = |name: &str, password: &str| {
        let login = LoginRequest {
            username: name.parse().expect("a name"),
            password: password.parse().expect("a password"),
            session: "".parse().expect("a name"),
            sequence: 1,
            heartbeat_timeout_ms: None,
        };
        Trader::login_with(address(&gateway), &login).expect("an answer")
    };
    assert_eq!(at_copy("C00001", "DEMO").err(), Some(b'A'), "it is no firm");
    assert_eq!(["WRONG", "WORSE"].map(|password| at_copy("FIRM", password).err()), [Some(b'A'); 2]);
    assert_eq!(at_copy("FIRM", "DEMO").err(), Some(b'A'), "it is not even verified");
    assert_eq!(counted(&gateway, "weir_logins_locked"), 1);
    let shown = ask(&path, r#"{"command":"sessions"}"#);
    let locked: Vec<_> = shown.locks.iter().flatten().map(|lock| lock.account.as_deref()).collect();
    assert_eq!(locked, [Some("FIRM")]);
    assert_eq!(ask(&path, r#"{"command":"unlock","account":"C00001"}"#).unlocked, Some(0));
    assert_eq!(ask(&path, r#"{"command":"unlock","account":"firm"}"#).unlocked, Some(1));
    let mut reader = at_copy("FIRM", "DEMO").unwrap_or_else(|_| panic!("it is let in"));
    reader.hear_heartbeat();
    assert_eq!(at_copy("FIRM", "DEMO").err(), Some(b'S'), "another connection of it is logged in");
    let shown = ask(&path, r#"{"command":"sessions"}"#);
    assert_eq!(shown.drop_copy_session.as_deref(), Some("WEIRDC0001"));
    let firms: Vec<_> =
        shown.drop_copies.iter().flatten().map(|firm| (firm.account.as_str(), firm.state.as_str())).collect();
    assert_eq!(firms, [("FIRM", "live")]);
    drop(socket);
    end_gateway(gateway);
    end_exchange(venue);
}

#[test]
fn a_firm_that_reads_nothing_slows_neither_orders_nor_other_firms_and_is_cut_off() {
    const ORDERS: u32 = 20_000;
    const AT_ONCE: u32 = 500;
    let driver = drivers()[0];
    let (venue, folder) = (exchange_in(Mode::Match, driver, loopback()), Folder::new());
    let limits = Limits { shares_max: Some(1), ..Limits::default() };
    let config = GatewayConfig { limits, ..strict(1, venue.address().clone(), &folder) };
    let config = with_firms(config, &[("FROZEN", &["C00001"]), ("FIRM", &["C00001"])]);
    let gateway = gateway(driver, 1, config);
    let frozen = login(&gateway, "", "FROZEN", 1);
    let mut reader = login(&gateway, "", "FIRM", 1);
    let mut trader = Trader::login(&gateway, "C00001", 1);
    // Every order is answered, and every answer is copied, while the other firm has read nothing.
    for first in (1..=ORDERS).step_by(AT_ONCE as usize) {
        let orders: Vec<_> = (first..first + AT_ONCE).map(|number| order(number, 100)).collect();
        trader.send(&orders);
        let expected = got(&mut trader, "C00001", "WEIRGW0001", AT_ONCE as usize);
        assert_eq!(next_many(&mut reader, AT_ONCE as usize), expected);
    }
    eventually("it is cut off", || counted(&gateway, "weir_drop_copy_slow_disconnects_total") == 1);
    drop(frozen);
    // What it has not read is not lost.
    let mut again = login(&gateway, "WEIRDC0001", "FROZEN", u64::from(ORDERS));
    assert_eq!(next(&mut again).2, u64::from(ORDERS));
    end_gateway(gateway);
    end_exchange(venue);
}

#[test]
fn a_drop_copy_without_a_journal_is_refused() {
    let driver = drivers()[0];
    let (venue, folder) = (exchange_in(Mode::Match, driver, loopback()), Folder::new());
    let config = GatewayConfig { journal: None, ..strict(1, venue.address().clone(), &folder) };
    let config = with_firms(config, &[("FIRM", &["C00001"])]);
    let refused = GatewayServer::start(super::rig::server(driver, 1), config).expect_err("nothing is kept");
    assert!(refused.to_string().contains("[drop_copy] copies from the journal"), "{refused}");
    end_exchange(venue);
}
