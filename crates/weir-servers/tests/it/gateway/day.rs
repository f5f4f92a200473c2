//! The trading day of a gateway: its sessions take orders, and their ends see to those that are open. The clock is the
//! test's.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use weir_proto::{
    ouch::{Canceled, Outbound, codes::cancel_reason, inbound_user_ref_num, reject_reason},
    soup::END_OF_SESSION,
};
use weir_servers::{
    exchange::Mode,
    gateway::{ControlSocket, DayConfig, GatewayConfig, GatewayServer},
};
use weir_trading::day::{OpenOrders, Schedule, SessionTimes};

use super::{
    anew::{expect_accepted, expect_expired, expect_nothing_more},
    changes::ask,
    rig::{
        Folder, Script, Trader, drivers, end_exchange, end_gateway, eventually, exchange_in, gateway,
        line_with, loopback, order, strict,
    },
};

const HOUR: i64 = 3600;
/// 2026-12-01, a Tuesday, midnight in Korea.
const TUESDAY: i64 = 20_788 * 24 * HOUR - 9 * HOUR;

/// A time of day, from that midnight on; hours from 24 on are of later days.
fn at(hours: i64, minutes: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs((TUESDAY + hours * HOUR + minutes * 60) as u64)
}

/// A session before the main one of each day but Thursday, with these ends.
fn day(pre: OpenOrders, main: OpenOrders) -> Option<DayConfig> {
    let session = |name: &str, begins_s, ends_s, open_orders| SessionTimes {
        name: name.into(),
        begins_s,
        ends_s,
        open_orders,
    };
    let sessions =
        vec![session("pre", 7 * HOUR, 8 * HOUR, pre), session("main", 9 * HOUR, 15 * HOUR + 1800, main)];
    let thursday = TUESDAY.div_euclid(24 * HOUR) + 3;
    let schedule = Schedule::new(9 * HOUR, [true; 7], BTreeSet::from([thursday]), sessions);
    Some(DayConfig { schedule: schedule.expect("it is right"), open_orders: OpenOrders::Cancel })
}

/// A strict gateway whose order numbers begin with 1 in each session with clients.
fn config(accounts: u32, venue: &weir_engine::net::Address, folder: &Folder) -> GatewayConfig {
    GatewayConfig {
        numbers_restart: true,
        day: day(OpenOrders::Cancel, OpenOrders::Cancel),
        ..strict(accounts, venue.clone(), folder)
    }
}

fn expect_rejected(trader: &mut Trader, number: u32) {
    let next = trader.next();
    let Outbound::Rejected(rejected) = next else { panic!("{next:?} instead of {number} being refused") };
    assert_eq!((rejected.user_ref_num, rejected.reason), (number, reject_reason::HALTED));
}

/// Phase and session of the day, as operators see them.
fn shown(gateway: &GatewayServer) -> (String, Option<String>) {
    let status = gateway.control().day_status().expect("it has days");
    (status.phase, status.session)
}

fn open(session: &str) -> (String, Option<String>) {
    ("open".into(), Some(session.into()))
}

/// Looks at this time until the session with clients ends.
fn end_of_session(gateway: &GatewayServer, now: SystemTime) {
    eventually("the day ends", || {
        gateway.control().follow_day(now);
        gateway.control().goes_on()
    });
}

#[test]
fn sessions_take_orders_and_cancel_them_at_their_ends_and_the_next_day_begins_with_number_1() {
    let driver = drivers()[0];
    let (venue, folder) = (exchange_in(Mode::Match, driver, loopback()), Folder::new());
    let config = config(2, venue.address(), &folder);
    let first = gateway(driver, 1, config.clone());
    let control = first.control();
    let mut trader = Trader::login(&first, "C00001", 1);
    trader.send(&[order(1, 100)]);
    expect_rejected(&mut trader, 1);
    control.follow_day(at(6, 59));
    assert_eq!(shown(&first), ("none".into(), None));
    control.follow_day(at(7, 30));
    assert_eq!(shown(&first), open("pre"));
    trader.send(&[order(2, 100)]);
    expect_accepted(&mut trader, 2);
    // The clock is set back, and forward again: the session goes on.
    control.follow_day(at(6, 30));
    control.follow_day(at(7, 45));
    control.kill(Some("C00002"), true).expect("it is recorded");
    control
        .set_limits(None, [("shares_max".to_owned(), 500.into())].into_iter().collect())
        .expect("it is recorded");

    control.follow_day(at(8, 0));
    assert_eq!(shown(&first).0, "closed");
    expect_expired(&mut trader, 2, 100);
    trader.send(&[order(3, 100)]);
    expect_rejected(&mut trader, 3);
    // What was carried out is not carried out again.
    control.follow_day(at(7, 59));
    assert_eq!(shown(&first).0, "closed");
    control.follow_day(at(9, 0));
    assert_eq!(shown(&first), open("main"));
    trader.send(&[order(4, 100)]);
    expect_accepted(&mut trader, 4);

    control.follow_day(at(15, 30));
    expect_expired(&mut trader, 4, 100);
    end_of_session(&first, at(15, 31));
    assert_eq!(trader.rest(), [(END_OF_SESSION, Vec::new())]);
    drop(trader);
    first.join();

    let second = gateway(driver, 1, config);
    let control = second.control();
    assert_eq!(control.orders().session().to_string(), "WEIRGW0002");
    assert_eq!(shown(&second).0, "over");
    control.follow_day(at(16, 0));
    let mut stopped = Trader::login(&second, "C00002", 1);
    let mut trader = Trader::login(&second, "C00001", 1);
    control.follow_day(at(24 + 7, 0));
    assert_eq!(shown(&second), open("pre"));
    trader.send(&[order(1, 100)]);
    expect_accepted(&mut trader, 1);
    // Limits and kill switches stay.
    let refusal = |trader: &mut Trader, message| {
        trader.send(&[message]);
        let next = trader.next();
        let Outbound::Rejected(rejected) = next else { panic!("{next:?} instead of a refusal") };
        rejected.reason
    };
    assert_eq!(refusal(&mut trader, order(2, 501)), reject_reason::SHARES_EXCEED_THRESHOLD);
    assert_eq!(refusal(&mut stopped, order(1, 100)), reject_reason::FIRM_NOT_AUTHORIZED);
    drop((trader, stopped));
    end_gateway(second);
    end_exchange(venue);
}

/// An exchange's message that an order of a hundred shares was cancelled on request.
fn canceled(user_ref_num: u32) -> Outbound {
    Outbound::Canceled(Canceled { timestamp_ns: 1, user_ref_num, quantity: 100, reason: cancel_reason::USER })
}

#[test]
fn cancels_at_the_end_of_a_session_are_sent_again_by_the_next_start_until_they_are_confirmed() {
    let driver = drivers()[0];
    let (venue, folder) = (Script::new(), Folder::new());
    let start = |next_number| {
        let config = config(1, &venue.address(), &folder);
        let starting = std::thread::spawn(move || gateway(driver, 1, config));
        let mut session = venue.accept();
        session.let_in("DAY", session.login.sequence.max(1));
        session.answer_query(next_number);
        (starting.join().expect("it starts"), session)
    };
    let (first, mut session) = start(1);
    first.control().follow_day(at(7, 0));
    let mut trader = Trader::login(&first, "C00001", 1);
    trader.send(&[order(1, 100)]);
    let raw = session.next();
    session.accept_order(&raw);
    expect_accepted(&mut trader, 1);
    first.control().follow_day(at(8, 0));
    let raw = session.next();
    assert_eq!((raw[0], inbound_user_ref_num(&raw)), (b'X', Some(1)));
    drop(trader);
    first.drain();
    assert!(!first.control().goes_on());
    drop(session);
    first.join();

    let (second, mut session) = start(2);
    let raw = session.next();
    assert_eq!((raw[0], inbound_user_ref_num(&raw)), (b'X', Some(1)), "its record says so");
    let mut trader = Trader::login(&second, "C00001", 2);
    trader.send(&[order(2, 100)]);
    expect_rejected(&mut trader, 2);
    session.say(&canceled(1));
    expect_expired(&mut trader, 1, 100);
    second.control().follow_day(at(9, 0));
    assert_eq!(shown(&second), open("main"));
    trader.send(&[order(3, 100)]);
    let raw = session.next();
    assert_eq!((raw[0], inbound_user_ref_num(&raw)), (b'O', Some(2)));
    drop(trader);
    end_gateway(second);
}

#[test]
fn a_start_carries_out_the_ends_that_were_missed_before_it_begins_the_day_that_is_due() {
    let driver = drivers()[0];
    let (venue, folder) = (Script::new(), Folder::new());
    let start = |next_number| {
        let config = config(1, &venue.address(), &folder);
        let starting = std::thread::spawn(move || gateway(driver, 1, config));
        let mut session = venue.accept();
        session.let_in("DAY", session.login.sequence.max(1));
        session.answer_query(next_number);
        (starting.join().expect("it starts"), session)
    };
    let (first, mut session) = start(1);
    first.control().follow_day(at(10, 0));
    assert_eq!(shown(&first), open("main"), "a start in the middle of a session begins it");
    let mut trader = Trader::login(&first, "C00001", 1);
    trader.send(&[order(1, 100)]);
    let raw = session.next();
    session.accept_order(&raw);
    expect_accepted(&mut trader, 1);
    drop(trader);
    first.drain();
    drop(session);
    first.join();

    // On the next day.
    let (second, mut session) = start(2);
    let (control, next_day) = (second.control(), 24);
    let lines = control.events().expect("nobody has them");
    control.follow_day(at(next_day + 9, 30));
    let raw = session.next();
    assert_eq!((raw[0], inbound_user_ref_num(&raw)), (b'X', Some(1)));
    assert_eq!(shown(&second).0, "over");
    line_with(&lines, "the day 2026-12-01 is over");
    let line = line_with(&lines, "the trading day waits");
    assert!(line.contains("order 1 of C00001 is open at DEMO"), "{line}");
    // The exchange does not confirm the cancel. The next session is due, so the order ends here after a while.
    control.follow_day(at(next_day + 9, 30) + Duration::from_secs(9));
    assert!(control.day_status().and_then(|status| status.waits).is_some());
    let mut trader = Trader::login(&second, "C00001", 2);
    control.follow_day(at(next_day + 9, 30) + Duration::from_secs(10));
    expect_expired(&mut trader, 1, 100);
    end_of_session(&second, at(next_day + 9, 31));
    assert_eq!(trader.rest(), [(END_OF_SESSION, Vec::new())]);
    drop((trader, session));
    second.join();

    let (third, mut session) = start(2);
    third.control().follow_day(at(next_day + 9, 32));
    assert_eq!(
        (shown(&third), third.control().orders().session().to_string()),
        (open("main"), "WEIRGW0002".into())
    );
    let mut trader = Trader::login(&third, "C00001", 1);
    trader.send(&[order(1, 100)]);
    let orders = std::iter::repeat_with(|| session.next()).find(|raw| raw[0] == b'O');
    assert_eq!(orders.and_then(|raw| inbound_user_ref_num(&raw)), Some(2), "cancels come before it");
    drop(trader);
    end_gateway(third);
}

#[test]
fn an_exchange_that_ends_orders_itself_gets_no_cancel_until_it_had_time_for_that() {
    let driver = drivers()[0];
    let (venue, folder) = (Script::new(), Folder::new());
    let config = GatewayConfig {
        day: day(OpenOrders::Carry, OpenOrders::Expire),
        ..config(1, &venue.address(), &folder)
    };
    let starting = std::thread::spawn(move || gateway(driver, 1, config));
    let mut session = venue.accept_session("DAY", 1, 1);
    let gateway = starting.join().expect("it starts");
    let control = gateway.control();
    control.follow_day(at(7, 0));
    let mut trader = Trader::login(&gateway, "C00001", 1);
    trader.send(&[order(1, 100), order(2, 100)]);
    for number in 1..=2 {
        let raw = session.next();
        session.accept_order(&raw);
        expect_accepted(&mut trader, number);
    }
    // Orders of the first session stay open over its end.
    control.follow_day(at(8, 0));
    control.follow_day(at(9, 0));
    assert_eq!(shown(&gateway), open("main"));
    control.follow_day(at(15, 30));
    session.hear_heartbeat();
    session.say(&canceled(1));
    assert!(matches!(trader.next(), Outbound::Canceled(it) if it.user_ref_num == 1));
    control.follow_day(at(15, 30) + Duration::from_secs(59));
    assert!(
        control
            .day_status()
            .and_then(|status| status.waits)
            .is_some_and(|why| why.contains("order 2 of C00001"))
    );
    expect_nothing_more(&mut trader);
    control.follow_day(at(15, 31));
    expect_expired(&mut trader, 2, 100);
    let raw = session.next();
    assert_eq!((raw[0], inbound_user_ref_num(&raw)), (b'X', Some(2)), "the exchange may have it still");
    end_of_session(&gateway, at(15, 32));
    assert_eq!(trader.rest(), [(END_OF_SESSION, Vec::new())]);
    drop((trader, session));
    gateway.join();
}

#[test]
fn operators_begin_and_end_days_and_that_is_recorded() {
    let driver = drivers()[0];
    let (venue, folder) = (exchange_in(Mode::Match, driver, loopback()), Folder::new());
    let by_hand = GatewayConfig { day: Some(DayConfig::default()), ..config(1, venue.address(), &folder) };
    let path = folder.0.join("control.sock");
    let first = gateway(driver, 1, by_hand.clone());
    let socket = ControlSocket::bind(&path).expect("the path is free");
    let socket = socket.answer(first.control()).expect("a thread");
    let refused = |line: &str, words: &str| {
        let error = ask(&path, line).error.expect("it is refused");
        assert!(error.contains(words), "{error}");
    };
    let (start, end) = (r#"{"command":"start_of_day"}"#, r#"{"command":"end_of_day"}"#);
    refused(end, "no session of a day was begun yet");
    let day = ask(&path, start).day.expect("it has begun");
    assert_eq!((day.phase.as_str(), day.ends), ("open", None));
    refused(start, "is open already");
    let mut trader = Trader::login(&first, "C00001", 1);
    trader.send(&[order(1, 100)]);
    expect_accepted(&mut trader, 1);
    // Nothing ends it by time.
    first.control().follow_day(SystemTime::now() + Duration::from_secs(1_000_000));
    assert_eq!(ask(&path, r#"{"command":"sessions"}"#).day.map(|day| day.phase).as_deref(), Some("open"));
    let day = ask(&path, end).day.expect("it has ended");
    assert_eq!(day.phase, "over");
    refused(end, "is over already");
    expect_expired(&mut trader, 1, 100);
    refused(start, "has not ended yet");
    end_of_session(&first, SystemTime::now());
    assert_eq!(trader.rest(), [(END_OF_SESSION, Vec::new())]);
    drop((trader, socket));
    first.join();

    let second = gateway(driver, 1, by_hand);
    second.control().follow_day(SystemTime::now());
    let mut trader = Trader::login(&second, "C00001", 1);
    trader.send(&[order(1, 100)]);
    expect_rejected(&mut trader, 1);
    assert_eq!(second.control().start_of_day(SystemTime::now()).map(|day| day.phase), Ok("open".into()));
    trader.send(&[order(2, 100)]);
    expect_accepted(&mut trader, 2);
    drop(trader);
    end_gateway(second);
    end_exchange(venue);
}

#[test]
fn with_a_schedule_an_operator_ends_the_day_early_and_begins_only_what_is_due() {
    let driver = drivers()[0];
    let (venue, folder) = (exchange_in(Mode::Match, driver, loopback()), Folder::new());
    let config = config(1, venue.address(), &folder);
    let first = gateway(driver, 1, config.clone());
    let control = first.control();
    let refused = control.start_of_day(at(8, 30)).expect_err("none is due");
    assert!(refused.contains("the next one, main, starts at 2026-12-01 09:00:00 (+09:00)"), "{refused}");
    control.follow_day(at(9, 0));
    control.end_of_day(at(10, 0)).expect("it is open");
    end_of_session(&first, at(10, 1));
    first.join();

    let second = gateway(driver, 1, config);
    let control = second.control();
    control.follow_day(at(10, 2));
    assert_eq!(shown(&second).0, "over", "its day has ended");
    control.start_of_day(at(10, 3)).expect("it is due, and an operator wants it");
    assert_eq!(shown(&second), open("main"));
    control.follow_day(at(10, 4));
    assert_eq!(shown(&second), open("main"));
    // It ends like any other.
    control.follow_day(at(15, 30));
    end_of_session(&second, at(15, 31));
    second.join();
    end_exchange(venue);
}

#[test]
fn days_without_a_journal_are_refused() {
    let driver = drivers()[0];
    let folder = Folder::new();
    let config = GatewayConfig { journal: None, ..config(1, &Script::new().address(), &folder) };
    let error = config.check_day().expect_err("nothing would be kept");
    assert!(error.contains("[day] needs a journal"), "{error}");
    let refused = GatewayServer::start(super::rig::server(driver, 1), config).expect_err("it is checked");
    let reasons = std::iter::successors(Some(&refused as &dyn std::error::Error), |error| error.source());
    assert!(reasons.map(ToString::to_string).any(|reason| reason.contains("[day] needs a journal")));
}
