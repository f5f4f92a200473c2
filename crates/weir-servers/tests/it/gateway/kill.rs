//! Kill switches: while one is engaged no order is sent, regardless of what waits, is lost or is read from a journal;
//! and engaging one does not wait for a disk.

use std::{
    io,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    time::{Duration, Instant},
};

use weir_proto::{
    ouch::{Canceled, Inbound, Outbound, inbound_user_ref_num, reject_reason},
    soup::LoginReject,
};
use weir_servers::{
    gateway::{ControlSocket, GatewayConfig, OutstandingLimits, VenueCancels, VenueConfig},
    journal::{
        Level,
        faults::{Operation, Verdict},
    },
};
use weir_trading::Route;

use super::{
    changes::{ask, rejected},
    rig::{
        Folder, Script, Scripted, Trader, beside_each_other, cancel, cancels, drivers, end_exchange,
        end_gateway, eventually, exchange, gateway, line_with, loopback, order, order_for, strict, symbol,
    },
};

const EIO: i32 = 5;
const EMFILE: i32 = 24;

static IS_STALLED: AtomicBool = AtomicBool::new(false);
static ATTEMPTS: AtomicUsize = AtomicUsize::new(0);

/// A disk that continues when there are descriptors for the next segment: the journal waits for that without failing,
/// and the worker continues meanwhile.
fn stall(_: u16, operation: &Operation) -> Verdict {
    match operation {
        Operation::Create { segment } if *segment > 1 && IS_STALLED.load(SeqCst) => {
            ATTEMPTS.fetch_add(1, SeqCst);
            Verdict::Refuse(io::Error::from_raw_os_error(EMFILE))
        }
        Operation::Write { .. } => {
            ATTEMPTS.store(0, SeqCst);
            Verdict::Pass
        }
        _ => Verdict::Pass,
    }
}

#[test]
fn a_kill_switch_does_not_wait_for_a_disk_nor_behind_a_change_that_does() {
    for driver in drivers() {
        println!("{driver}");
        let (venue, folder) = (exchange(driver, loopback()), Folder::new());
        let works = GatewayConfig {
            journal: Some((folder.0.clone(), Level::Os)),
            journal_segment_bytes: 32 << 10,
            ..GatewayConfig::demo(1, venue.address().clone())
        };
        IS_STALLED.store(true, SeqCst);
        let stalls = GatewayConfig { journal_faults: Some(stall), ..works.clone() };
        let first = gateway(driver, 1, stalls);
        let mut trader = Trader::login(&first, "C00001", 1);
        trader.send(&(1..=200).map(|number| order(number, 100)).collect::<Vec<_>>());
        // One attempt in advance for each batch; more mean that a task waits for the segment.
        eventually("the journal waits", || ATTEMPTS.load(SeqCst) > 2);
        let control = first.control();
        std::thread::scope(|scope| {
            let limits = [("shares_max".to_owned(), 1000.into())].into_iter().collect();
            let changing = scope.spawn(|| first.control().set_limits(None, limits));
            let killing = scope.spawn(|| first.control().kill(None, true));
            eventually("the switch is on", || control.killed() == ["*"]);
            assert!(!killing.is_finished() && !changing.is_finished(), "the journal waits still");
            // The worker has received the switch, and has processed it when it comes back for more.
            for (number, taken) in (1000..).zip(201..=203) {
                trader.send(&[order(number, 100)]);
                eventually("the order is taken in", || control.node_stats().orders == taken);
            }
            IS_STALLED.store(false, SeqCst);
            assert!(killing.join().expect("it ends").is_ok());
            assert_eq!(changing.join().expect("it ends"), Ok(()));
        });
        let refused = loop {
            if let Outbound::Rejected(rejected) = trader.next()
                && rejected.user_ref_num == 1002
            {
                break rejected.reason;
            }
        };
        assert_eq!(refused, reject_reason::FIRM_NOT_AUTHORIZED);
        drop(trader);
        end_gateway(first);
        let second = gateway(driver, 1, works);
        assert_eq!(second.control().killed(), ["*"], "it was kept");
        end_gateway(second);
        end_exchange(venue);
    }
}

static IS_LOST: AtomicBool = AtomicBool::new(false);

/// The disk of the first worker, which stores the changes as long as it works.
fn lose_first(worker: u16, operation: &Operation) -> Verdict {
    match operation {
        Operation::Write { .. } if worker == 0 && IS_LOST.load(SeqCst) => {
            Verdict::Refuse(io::Error::from_raw_os_error(EIO))
        }
        _ => Verdict::Pass,
    }
}

#[test]
fn a_kill_switch_that_cannot_be_kept_is_on_all_the_same_and_that_is_said() {
    for driver in drivers() {
        println!("{driver}");
        IS_LOST.store(false, SeqCst);
        let (venue, folder) = (exchange(driver, loopback()), Folder::new());
        let config = GatewayConfig {
            journal: Some((folder.0.clone(), Level::Os)),
            journal_segment_bytes: 64 << 10,
            journal_faults: Some(lose_first),
            route: Route::Own,
            ..GatewayConfig::demo(2, venue.address().clone())
        };
        let gateway = gateway(driver, 2, config);
        let path = folder.0.join("control.sock");
        let socket = ControlSocket::bind(&path).expect("the path is free");
        let _open = socket.answer(gateway.control()).expect("a thread");
        // Its home is the second worker, whose journal works.
        let mut trader = Trader::login(&gateway, "C00002", 1);
        trader.send(&[order(1, 100)]);
        assert!(matches!(trader.next(), Outbound::Accepted(_)));
        IS_LOST.store(true, SeqCst);
        let answer = ask(&path, r#"{"command":"kill","account":null,"on":true}"#);
        let error = answer.error.expect("it is not kept");
        for part in ["is on until the gateway ends", "may be off after a restart", "1 orders"] {
            assert!(error.contains(part), "{error}");
        }
        assert_eq!((answer.ok, answer.killed), (false, Some(vec!["*".to_owned()])));
        assert!(matches!(trader.next(), Outbound::Canceled(canceled) if canceled.user_ref_num == 1));
        trader.send(&[order(2, 100)]);
        assert_eq!(rejected(&mut trader), (2, reject_reason::FIRM_NOT_AUTHORIZED));
        // From now on the second worker stores them.
        assert_eq!(gateway.control().kill(None, false), Ok(Vec::new()));
        trader.send(&[order(3, 100)]);
        assert!(matches!(trader.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == 3));
        drop(trader);
        end_gateway(gateway);
        end_exchange(venue);
    }
}

/// The next message is a cancel; returns its order.
fn next_cancel(session: &mut Scripted) -> u32 {
    let raw = session.next();
    assert_eq!(raw[0], b'X', "{raw:?}");
    inbound_user_ref_num(&raw).expect("it has a number")
}

fn confirm(session: &mut Scripted, user_ref_num: u32) {
    session.say(&Outbound::Canceled(Canceled { timestamp_ns: 1, user_ref_num, quantity: 100, reason: b'U' }));
}

static IS_BROKEN: AtomicBool = AtomicBool::new(false);

fn lose_all(_: u16, operation: &Operation) -> Verdict {
    match operation {
        Operation::Write { .. } if IS_BROKEN.load(SeqCst) => {
            Verdict::Refuse(io::Error::from_raw_os_error(EIO))
        }
        _ => Verdict::Pass,
    }
}

#[test]
fn with_a_failed_journal_cancels_reach_the_exchange_also_on_the_next_connection_and_are_counted() {
    for driver in drivers() {
        println!("{driver}");
        IS_BROKEN.store(false, SeqCst);
        let (venue, folder) = (Script::new(), Folder::new());
        let config = GatewayConfig {
            journal: Some((folder.0.clone(), Level::Os)),
            journal_segment_bytes: 64 << 10,
            journal_faults: Some(lose_all),
            ..GatewayConfig::demo(1, venue.address())
        };
        let starting = std::thread::spawn(move || gateway(driver, 1, config));
        let mut session = venue.accept_session("DAY", 1, 1);
        let gateway = starting.join().expect("it starts");
        let control = gateway.control();
        let mut trader = Trader::login(&gateway, "C00001", 1);
        for number in 1..=3 {
            trader.send(&[order(number, 100)]);
            let raw = session.next();
            session.accept_order(&raw);
            assert!(matches!(trader.next(), Outbound::Accepted(_)));
        }
        IS_BROKEN.store(true, SeqCst);
        // A cancel that came with an order that is not journaled is still sent; the order is not.
        trader.send(&[order(4, 100), cancel(1)]);
        assert_eq!(next_cancel(&mut session), 1);
        eventually("it is not healthy", || control.health().is_err());
        confirm(&mut session, 1);
        eventually("that is heard", || control.node_stats().received >= 10);
        // No exchange answers: that is reported after a second.
        let error = control.kill(None, true).expect_err("it is not kept");
        assert!(error.reason.contains("the journal has failed"), "{error}");
        assert_eq!(error.cancels, cancels("DEMO", 2, 2, 0));
        assert_eq!([next_cancel(&mut session), next_cancel(&mut session)], [2, 3]);
        drop(session);
        // Logins pass, and unconfirmed cancels are repeated.
        let mut session = venue.accept();
        session.let_in("DAY", session.login.sequence);
        session.answer_query(5);
        assert_eq!([next_cancel(&mut session), next_cancel(&mut session)], [2, 3]);
        [2, 3].into_iter().for_each(|number| confirm(&mut session, number));
        eventually("they are confirmed", || {
            control.kill(None, true).is_err_and(|error| error.cancels.is_empty())
        });
        drop(trader);
        end_gateway(gateway);
        drop(session);
    }
}

static IS_GONE: AtomicBool = AtomicBool::new(false);

/// As [`lose_all`].
fn lose_again(_: u16, operation: &Operation) -> Verdict {
    match operation {
        Operation::Write { .. } if IS_GONE.load(SeqCst) => Verdict::Refuse(io::Error::from_raw_os_error(EIO)),
        _ => Verdict::Pass,
    }
}

#[test]
fn with_a_failed_journal_a_clients_cancel_is_said_again_and_nothing_is_said_to_have_expired() {
    for driver in drivers() {
        println!("{driver}");
        IS_GONE.store(false, SeqCst);
        let (venue, folder) = (Script::new(), Folder::new());
        let config =
            GatewayConfig { journal_faults: Some(lose_again), ..strict(1, venue.address(), &folder) };
        let starting = std::thread::spawn(move || gateway(driver, 1, config));
        let mut session = venue.accept_session("DAY", 1, 41);
        let gateway = starting.join().expect("it starts");
        let control = gateway.control();
        let notices = control.events().expect("nobody has them");
        let mut trader = Trader::login(&gateway, "C00001", 1);
        for number in 1..=2 {
            trader.send(&[order(number, 100)]);
            let raw = session.next();
            session.accept_order(&raw);
            assert!(matches!(trader.next(), Outbound::Accepted(_)));
        }
        IS_GONE.store(true, SeqCst);
        trader.send(&[order(3, 100), cancel(1)]);
        assert_eq!(next_cancel(&mut session), 41);
        eventually("it is not healthy", || control.health().is_err());
        drop(session);
        let mut session = venue.accept();
        session.let_in("DAY", 4);
        session.answer_query(43);
        assert_eq!(next_cancel(&mut session), 41, "nobody has confirmed it");
        drop(session);
        // The exchange has lost the end of its journal: it knows one of the three orders.
        venue.accept().refuse(LoginReject::SessionNotAvailable);
        let mut session = venue.accept();
        session.let_in("DAY", 3);
        session.answer_query(42);
        assert_eq!(next_cancel(&mut session), 41);
        line_with(&notices, "0 orders expired, and others do when the gateway is started again");
        assert_eq!(control.node_stats().orders_expired, 0, "nobody was told");
        drop(trader);
        end_gateway(gateway);
    }
}

static IS_SLOW: AtomicBool = AtomicBool::new(false);
static LOOKS: AtomicUsize = AtomicUsize::new(0);

/// As [`stall`].
fn stall_again(_: u16, operation: &Operation) -> Verdict {
    match operation {
        Operation::Create { segment } if *segment > 1 && IS_SLOW.load(SeqCst) => {
            LOOKS.fetch_add(1, SeqCst);
            Verdict::Refuse(io::Error::from_raw_os_error(EMFILE))
        }
        Operation::Write { .. } => {
            LOOKS.store(0, SeqCst);
            Verdict::Pass
        }
        _ => Verdict::Pass,
    }
}

/// Accepts orders until the journal waits; returns how many the exchange has. `looks` counts the journal's failed
/// attempts to create its next file.
fn fill_journal(
    session: &mut Scripted,
    trader: &mut Trader,
    looks: &AtomicUsize,
    sent: impl Fn() -> u64,
) -> u32 {
    let base = sent();
    let waits = || looks.load(SeqCst) > 2;
    let mut number = 0;
    loop {
        number += 1;
        let expected = base + 2 * u64::from(number);
        trader.send(&[order(number, 100)]);
        eventually("the order leaves, or the journal waits", || waits() || sent() + 1 >= expected);
        if sent() + 1 < expected {
            return number - 1;
        }
        let raw = session.next();
        session.accept_order(&raw);
        eventually("the client is told, or the journal waits", || waits() || sent() >= expected);
        if sent() < expected {
            return number;
        }
        assert!(matches!(trader.next(), Outbound::Accepted(_)));
    }
}

#[test]
fn with_a_journal_that_waits_cancels_of_clients_and_of_a_kill_switch_leave_at_once() {
    for driver in drivers() {
        println!("{driver}");
        let (venue, folder) = (Script::new(), Folder::new());
        let config = GatewayConfig {
            journal: Some((folder.0.clone(), Level::Os)),
            journal_segment_bytes: 8 << 10,
            journal_faults: Some(stall_again),
            ..GatewayConfig::demo(1, venue.address())
        };
        LOOKS.store(0, SeqCst);
        IS_SLOW.store(true, SeqCst);
        let starting = std::thread::spawn(move || gateway(driver, 1, config));
        let mut session = venue.accept_session("DAY", 1, 1);
        let gateway = starting.join().expect("it starts");
        let control = gateway.control();
        let mut trader = Trader::login(&gateway, "C00001", 1);
        let count = fill_journal(&mut session, &mut trader, &LOOKS, || control.node_stats().sent);
        trader.send(&[cancel(1)]);
        assert_eq!(next_cancel(&mut session), 1);
        confirm(&mut session, 1);
        std::thread::scope(|scope| {
            let killing = scope.spawn(|| control.kill(Some("C00001"), true));
            let mut cancelled = 1;
            while cancelled < count {
                cancelled = next_cancel(&mut session);
                confirm(&mut session, cancelled);
            }
            assert!(LOOKS.load(SeqCst) > 2, "the journal waits still");
            IS_SLOW.store(false, SeqCst);
            assert!(killing.join().expect("it ends").is_ok());
        });
        drop(trader);
        drop(session);
        end_gateway(gateway);
    }
}

static IS_CONGESTED: AtomicBool = AtomicBool::new(false);
static PROBES: AtomicUsize = AtomicUsize::new(0);

/// As [`stall`].
fn stall_for_all(_: u16, operation: &Operation) -> Verdict {
    match operation {
        Operation::Create { segment } if *segment > 1 && IS_CONGESTED.load(SeqCst) => {
            PROBES.fetch_add(1, SeqCst);
            Verdict::Refuse(io::Error::from_raw_os_error(EMFILE))
        }
        Operation::Write { .. } => {
            PROBES.store(0, SeqCst);
            Verdict::Pass
        }
        _ => Verdict::Pass,
    }
}

#[test]
fn a_client_cancels_while_so_much_of_others_waits_for_the_disk_that_no_order_is_taken_in() {
    const MANY: u32 = 4000;
    for driver in drivers() {
        println!("{driver}");
        let (venue, folder) = (Script::new(), Folder::new());
        let config = GatewayConfig {
            journal: Some((folder.0.clone(), Level::Os)),
            journal_segment_bytes: 8 << 10,
            journal_faults: Some(stall_for_all),
            ..GatewayConfig::demo(2, venue.address())
        };
        PROBES.store(0, SeqCst);
        IS_CONGESTED.store(true, SeqCst);
        let starting = std::thread::spawn(move || gateway(driver, 1, config));
        let mut session = venue.accept_session("DAY", 1, 1);
        let gateway = starting.join().expect("it starts");
        let control = gateway.control();
        let mut quiet = Trader::login(&gateway, "C00002", 1);
        quiet.send(&[order(1, 100)]);
        let raw = session.next();
        session.accept_order(&raw);
        assert!(matches!(quiet.next(), Outbound::Accepted(_)));
        let mut trader = Trader::login(&gateway, "C00001", 1);
        let count = fill_journal(&mut session, &mut trader, &PROBES, || control.node_stats().sent);
        trader.send(&(count + 2..count + MANY).map(|number| order(number, 100)).collect::<Vec<_>>());
        // It keeps trying to create its next file, and accepts nothing more meanwhile.
        loop {
            let (taken, probes) = (control.node_stats().orders, PROBES.load(SeqCst));
            eventually("it looks again", || PROBES.load(SeqCst) > probes + 1);
            if control.node_stats().orders == taken && taken > u64::from(count) + 100 {
                assert!(taken < u64::from(MANY), "{taken}");
                break;
            }
        }
        let taken = control.node_stats().orders;
        // Messages other than cancels wait, and so does everything behind them.
        quiet.send(&[cancel(1), order(2, 100), cancel(1)]);
        assert_eq!(next_cancel(&mut session), 1);
        let probes = PROBES.load(SeqCst);
        eventually("it looks again", || PROBES.load(SeqCst) > probes + 1);
        assert_eq!(control.node_stats().orders, taken + 1, "the first cancel alone is taken in");
        IS_CONGESTED.store(false, SeqCst);
        drop((trader, quiet, session));
        end_gateway(gateway);
    }
}

static IS_FULL: AtomicBool = AtomicBool::new(false);
static TRIES: AtomicUsize = AtomicUsize::new(0);

/// As [`stall`].
fn stall_for_a_switch(_: u16, operation: &Operation) -> Verdict {
    match operation {
        Operation::Create { segment } if *segment > 1 && IS_FULL.load(SeqCst) => {
            TRIES.fetch_add(1, SeqCst);
            Verdict::Refuse(io::Error::from_raw_os_error(EMFILE))
        }
        Operation::Write { .. } => {
            TRIES.store(0, SeqCst);
            Verdict::Pass
        }
        _ => Verdict::Pass,
    }
}

#[test]
fn orders_that_wait_for_the_disk_do_not_leave_when_it_goes_on_with_the_switch_on() {
    const WAITING: u32 = 5;
    for driver in drivers() {
        println!("{driver}");
        let (venue, folder) = (Script::new(), Folder::new());
        let config = GatewayConfig {
            journal: Some((folder.0.clone(), Level::Os)),
            journal_segment_bytes: 8 << 10,
            journal_faults: Some(stall_for_a_switch),
            ..GatewayConfig::demo(1, venue.address())
        };
        TRIES.store(0, SeqCst);
        IS_FULL.store(true, SeqCst);
        let starting = std::thread::spawn(move || gateway(driver, 1, config));
        let mut session = venue.accept_session("DAY", 1, 1);
        let gateway = starting.join().expect("it starts");
        let control = gateway.control();
        let mut trader = Trader::login(&gateway, "C00001", 1);
        let count = fill_journal(&mut session, &mut trader, &TRIES, || control.node_stats().sent);
        let taken = control.node_stats().orders + u64::from(WAITING);
        // A message with an earlier number may already be waiting.
        let last = count + 1 + WAITING;
        trader.send(&(count + 2..=last).map(|number| order(number, 100)).collect::<Vec<_>>());
        eventually("they are taken in", || control.node_stats().orders >= taken);
        std::thread::scope(|scope| {
            let killing = scope.spawn(|| control.kill(None, true));
            for number in 1..=count {
                assert_eq!(next_cancel(&mut session), number);
                confirm(&mut session, number);
            }
            assert!(TRIES.load(SeqCst) > 2, "the journal waits still");
            IS_FULL.store(false, SeqCst);
            let cancels = killing.join().expect("it ends").expect("it is kept").remove(0);
            assert!((WAITING..=WAITING + 1).contains(&(cancels.expired as u32)), "{cancels:?}");
            assert_eq!(cancels.orders - cancels.expired, u64::from(count));
        });
        let mut refused = Vec::new();
        while refused.last() != Some(&last) {
            if let Outbound::Rejected(rejected) = trader.next() {
                assert_eq!(rejected.reason, reject_reason::FIRM_NOT_AUTHORIZED);
                refused.push(rejected.user_ref_num);
            }
        }
        assert!(refused.ends_with(&(count + 2..=last).collect::<Vec<_>>()), "{refused:?}");
        assert_eq!(control.kill(None, false), Ok(Vec::new()));
        trader.send(&[order(last + 1, 77)]);
        let raw = session.next();
        let Ok(Inbound::Enter(enter, _)) = Inbound::decode(&raw) else { panic!("{raw:?} is no order") };
        assert_eq!(enter.quantity, 77, "none of those that waited has left before");
        drop(trader);
        end_gateway(gateway);
    }
}

#[test]
fn orders_that_an_exchange_does_not_read_do_not_leave_when_it_does_with_the_switch_on() {
    const CHUNK: u32 = 1000;
    for driver in drivers() {
        println!("{driver}");
        let venue = Script::new();
        let mut config = GatewayConfig::demo(1, venue.address());
        // Only the number of bytes limits what waits.
        config.venues[0].limits =
            OutstandingLimits { open_max: 1 << 18, unanswered_max: 1 << 18, ..OutstandingLimits::default() };
        let starting = std::thread::spawn(move || gateway(driver, 1, config));
        let mut session = venue.accept_session("DAY", 1, 1);
        let gateway = starting.join().expect("it starts");
        let control = gateway.control();
        let mut trader = Trader::login(&gateway, "C00001", 1);
        let mut last = 0;
        while control.node_stats().rejects.is_empty() {
            trader.send(&(last + 1..=last + CHUNK).map(|number| order(number, 100)).collect::<Vec<_>>());
            last += CHUNK;
            eventually("they are taken in", || control.node_stats().orders >= u64::from(last));
        }
        let cancels = control.kill(None, true).expect("there is nothing to be kept").remove(0);
        // As many as wait before one is refused, except those that the connection has.
        assert!(cancels.expired >= (256 << 10) / 50, "{cancels:?}");
        let left = cancels.orders - cancels.expired;
        (0..left).for_each(|_| assert_eq!(session.next()[0], b'O'));
        (0..left).for_each(|_| assert_eq!(session.next()[0], b'X'));
        assert_eq!(control.kill(None, false), Ok(Vec::new()));
        trader.send(&[order(last + 1, 77)]);
        let raw = session.next();
        let Ok(Inbound::Enter(enter, _)) = Inbound::decode(&raw) else { panic!("{raw:?} is no order") };
        assert_eq!(enter.quantity, 77, "none of those that waited has left before");
        drop(trader);
        end_gateway(gateway);
    }
}

/// Why an order is to be cancelled whose answer was lost with the connection.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wish {
    /// Its account is stopped.
    Stopped,
    /// Its client has disconnected, and its account cancels on disconnect.
    Gone,
}

#[test]
fn what_is_to_be_cancelled_is_not_sent_again_neither_on_the_next_connection_nor_after_a_restart() {
    let cases = [(Wish::Stopped, false), (Wish::Stopped, true), (Wish::Gone, false), (Wish::Gone, true)];
    let all = drivers().into_iter().flat_map(|driver| cases.map(|case| (driver, case)));
    beside_each_other(all, |(driver, (wish, is_restarted))| {
        println!("{driver}, {wish:?}, restarted: {is_restarted}");
        let (venue, folder) = (Script::new(), Folder::new());
        let start = || {
            let mut config = strict(1, venue.address(), &folder);
            config.accounts[0].cancel_on_disconnect = wish == Wish::Gone;
            std::thread::spawn(move || gateway(driver, 1, config))
        };
        let starting = start();
        let mut session = venue.accept_session("DAY", 1, 1);
        let mut gateway = starting.join().expect("it starts");
        let mut trader = Trader::login(&gateway, "C00001", 1);
        trader.send(&[order(1, 100)]);
        assert_eq!(session.next()[0], b'O');
        drop(session);
        eventually("the line is lost", || !gateway.control().upstreams()[0].is_open);
        if wish == Wish::Stopped {
            assert_eq!(gateway.control().kill(None, true), Ok(cancels("DEMO", 1, 0, 0)));
        }
        drop(trader);
        eventually("the client has gone", || gateway.control().node_stats().sessions_open == 0);
        let mut session = if is_restarted {
            // Its earlier connections have ended without an answer to their logins.
            end_gateway(gateway);
            let starting = start();
            let session = accept_silent(&venue);
            gateway = starting.join().expect("it starts");
            session
        } else {
            accept_silent(&venue)
        };
        assert_eq!(next_cancel(&mut session), 1, "should the exchange have it");
        session.beat();
        let mut trader = Trader::login(&gateway, "C00001", 1);
        let expected = match wish {
            Wish::Stopped => reject_reason::FIRM_NOT_AUTHORIZED,
            Wish::Gone => reject_reason::DESTINATION_CLOSED,
        };
        assert_eq!(rejected(&mut trader), (1, expected));
        assert_eq!(next_cancel(&mut session), 1);
        if wish == Wish::Stopped {
            assert_eq!(gateway.control().kill(None, false), Ok(Vec::new()));
        }
        trader.send(&[order(2, 100)]);
        let raw = session.next();
        assert_eq!((raw[0], inbound_user_ref_num(&raw)), (b'O', Some(2)), "the first one never left again");
        drop(trader);
        end_gateway(gateway);
    });
}

/// The next connection that continues, at an exchange that has never had an order.
fn accept_silent(venue: &Script) -> Scripted {
    loop {
        let mut session = venue.accept();
        session.let_in("DAY", session.login.sequence.max(1));
        if session.try_answer_query(1) {
            return session;
        }
    }
}

fn restricted(count: u32) -> serde_json::Map<String, serde_json::Value> {
    let symbols: Vec<String> = (0..count).map(|number| format!("S{number:07}")).collect();
    [("restricted".to_owned(), symbols.into())].into_iter().collect()
}

#[test]
fn a_change_that_no_journal_takes_is_refused_and_orders_go_on() {
    for driver in drivers() {
        println!("{driver}");
        let (venue, folder) = (exchange(driver, loopback()), Folder::new());
        let config = GatewayConfig {
            journal: Some((folder.0.clone(), Level::Os)),
            journal_segment_bytes: 64 << 10,
            ..GatewayConfig::demo(1, venue.address().clone())
        };
        let gateway = gateway(driver, 1, config);
        let error = gateway.control().set_limits(None, restricted(9000)).expect_err("it is too long");
        assert!(error.contains("a change has"), "{error}");
        assert_eq!(gateway.control().set_limits(None, restricted(5000)), Ok(()));
        let mut trader = Trader::login(&gateway, "C00001", 1);
        trader.send(&[order(1, 100)]);
        assert!(matches!(trader.next(), Outbound::Accepted(_)));
        drop(trader);
        end_gateway(gateway);
        end_exchange(venue);
    }
}

#[test]
fn a_record_that_found_no_room_is_not_waited_for() {
    for driver in drivers() {
        println!("{driver}");
        let (venue, folder) = (exchange(driver, loopback()), Folder::new());
        let config = GatewayConfig {
            journal: Some((folder.0.clone(), Level::Os)),
            // Less than the change needs.
            journal_segment_bytes: 8 << 10,
            ..GatewayConfig::demo(1, venue.address().clone())
        };
        let gateway = gateway(driver, 1, config);
        let control = gateway.control();
        let error = control.set_limits(None, restricted(1000)).expect_err("it finds no room");
        assert!(error.contains("the journal has failed"), "{error}");
        assert_eq!(control.health(), Err("the journal has failed".to_owned()));
        let error = control.kill(Some("C00001"), true).expect_err("it is not kept").to_string();
        assert!(error.contains("the journal has failed"), "{error}");
        assert_eq!(control.killed(), ["C00001"]);
        end_gateway(gateway);
        end_exchange(venue);
    }
}

/// The state of one order at a venue.
fn cancels_at(venue: &str, sent: u64, confirmed: u64) -> VenueCancels {
    VenueCancels { venue: venue.into(), orders: 1, sent, confirmed, expired: 0 }
}

#[test]
fn whoever_turns_a_switch_on_hears_of_each_venue_in_time_whatever_the_others_do() {
    /// One second for exchanges to confirm, and the delays of a busy machine.
    const AT_MOST: Duration = Duration::from_secs(4);
    const VENUES: [&str; 3] = ["CONFIRMS", "MUTE", "DOWN"];
    beside_each_other(drivers(), |driver| {
        println!("{driver}");
        let folder = Folder::new();
        let venues: Vec<Script> = VENUES.iter().map(|_| Script::new()).collect();
        let mut config = GatewayConfig::demo(1, venues[0].address());
        let demo = config.venues.remove(0);
        let of = |(name, venue): (&&str, &Script)| VenueConfig {
            name: (*name).into(),
            address: venue.address(),
            ..demo.clone()
        };
        config.venues = VENUES.iter().zip(&venues).map(of).collect();
        config.symbols = VENUES.iter().zip(0..).map(|(name, venue)| (symbol(name), venue)).collect();
        let starting = std::thread::spawn(move || gateway(driver, 1, config));
        let mut sessions: Vec<Scripted> =
            venues.iter().map(|venue| venue.accept_session("DAY", 1, 1)).collect();
        let gateway = starting.join().expect("it starts");
        let path = folder.0.join("control.sock");
        let _open = ControlSocket::bind(&path).expect("the path is free").answer(gateway.control());
        let mut trader = Trader::login(&gateway, "C00001", 1);
        for ((name, session), number) in VENUES.iter().zip(&mut sessions).zip(1..) {
            trader.send(&[order_for(number, 100, name)]);
            let raw = session.next();
            session.accept_order(&raw);
            assert!(matches!(trader.next(), Outbound::Accepted(_)));
        }
        // Its next login gets no answer.
        drop(sessions.pop());
        eventually("the last one is down", || !gateway.control().upstreams()[2].is_open);
        let begun = Instant::now();
        let answer = std::thread::scope(|scope| {
            let killing = scope.spawn(|| ask(&path, r#"{"command":"kill","account":null,"on":true}"#));
            assert_eq!(next_cancel(&mut sessions[0]), 1);
            confirm(&mut sessions[0], 1);
            killing.join().expect("it ends")
        });
        let took = begun.elapsed();
        let expected = vec![cancels_at("CONFIRMS", 1, 1), cancels_at("MUTE", 1, 0), cancels_at("DOWN", 0, 0)];
        assert_eq!((answer.ok, answer.cancels), (true, Some(expected)), "{:?}", answer.error);
        assert!(took < AT_MOST, "{took:?}");
        assert_eq!(next_cancel(&mut sessions[1]), 1, "it has been asked to");
        drop(trader);
        end_gateway(gateway);
    });
}
