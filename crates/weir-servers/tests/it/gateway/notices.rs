//! Tests of the operator lines about sessions with exchanges, and about journals.

use std::{
    io,
    sync::{
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc::Receiver,
    },
};

use weir_engine::Driver;
use weir_proto::ouch::{Executed, Outbound};
use weir_servers::{
    exchange::{self, Mode},
    gateway::{GatewayConfig, GatewayServer, NEVER_SENT, OrderFilter},
    journal::{
        Level,
        faults::{Operation, Verdict},
    },
    orders::{Event, OrdersConfig, accounts_named},
};

use super::{
    anew::expect_accepted,
    changes::get,
    faults::health_page,
    rig::{
        Folder, Script, Scripted, Trader, beside_each_other, drivers, end_exchange, end_gateway, eventually,
        gateway, line_with, order, server, strict,
    },
};

const ENOSPC: i32 = 28;

/// A gateway in front of a scripted exchange, logged in, and its operator lines.
fn start(
    driver: Driver,
    venue: &Script,
    config: GatewayConfig,
) -> (GatewayServer, Scripted, Receiver<Event>) {
    let starting = std::thread::spawn(move || gateway(driver, 1, config));
    let session = venue.accept_session("DAY", 1, 1);
    let gateway = starting.join().expect("it starts");
    let lines = gateway.control().events().expect("nobody has them");
    (gateway, session, lines)
}

fn executed(user_ref_num: u32, quantity: u32) -> Outbound {
    Outbound::Executed(Executed {
        timestamp_ns: 1,
        user_ref_num,
        quantity,
        price: 10_000,
        liquidity: b'A',
        match_number: 77,
    })
}

#[test]
fn a_session_that_is_lost_and_comes_back_is_told_with_what_is_sent_again() {
    beside_each_other(drivers(), |driver| {
        let (venue, folder) = (Script::new(), Folder::new());
        let (gateway, mut session, lines) = start(driver, &venue, strict(1, venue.address(), &folder));
        let mut trader = Trader::login(&gateway, "C00001", 1);
        trader.send(&[order(1, 100), order(2, 100), order(3, 100)]);
        let first = session.next();
        session.accept_order(&first);
        expect_accepted(&mut trader, 1);
        assert_eq!([session.next()[0], session.next()[0]], [b'O', b'O']);
        drop(session);
        let line = line_with(&lines, "lost");
        assert!(line.starts_with("venue DEMO, worker 0: the session is lost: "), "{line}");
        // Two messages are no longer available: their contents are unknown.
        let mut session = venue.accept();
        assert_eq!((session.login.session.as_str(), session.login.sequence), ("DAY", 3));
        session.let_in("DAY", 5);
        session.answer_query(4);
        assert!(line_with(&lines, "missing").contains("2 messages are missing"));
        line_with(&lines, "the session is back");
        line_with(&lines, "2 orders, cancels and changes without an answer are sent again");
        end_gateway(gateway);
    });
}

#[test]
fn an_exchange_that_is_not_there_is_told_once_and_not_with_every_attempt() {
    beside_each_other(drivers(), |driver| {
        let (venue, folder) = (Script::new(), Folder::new());
        let (gateway, session, lines) = start(driver, &venue, strict(1, venue.address(), &folder));
        drop(session);
        line_with(&lines, "lost");
        for _ in 0..3 {
            drop(venue.accept());
        }
        let session = venue.accept_session("DAY", 2, 1);
        eventually("it is up", || gateway.control().upstreams()[0].is_open);
        line_with(&lines, "there is no session");
        let line = line_with(&lines, "");
        assert_eq!(line, "venue DEMO, worker 0: the session is back", "nothing came between");
        let page = get(health_page(&gateway), "/metrics");
        assert!(page.contains("\nweir_lines_left_out_total{about=\"exchanges\"} 2\n"), "{page}");
        drop(session);
        end_gateway(gateway);
    });
}

#[test]
fn what_an_exchange_says_that_reaches_no_client_is_told() {
    beside_each_other(drivers(), |driver| {
        let (venue, folder) = (Script::new(), Folder::new());
        let (gateway, mut session, lines) = start(driver, &venue, strict(1, venue.address(), &folder));
        session.say(&executed(9, 40));
        let line = line_with(&lines, "execution");
        assert!(line.contains("40 shares of order 9, which is not known (trade 77)"), "{line}");
        session.say_raw(b"?");
        let line = line_with(&lines, "passed over");
        assert!(
            line.contains("message 3 of the exchange") && line.contains("unknown message type"),
            "{line}"
        );
        let page = get(health_page(&gateway), "/metrics");
        for found in ["weir_answers_unmatched_total 1", "weir_upstream_malformed_total 1"] {
            assert!(page.lines().any(|line| line == found), "{found} is not in\n{page}");
        }
        end_gateway(gateway);
    });
}

#[test]
fn a_client_that_breaks_the_protocol_is_told_of() {
    beside_each_other(drivers(), |driver| {
        let (venue, folder) = (Script::new(), Folder::new());
        let (gateway, session, lines) = start(driver, &venue, strict(1, venue.address(), &folder));
        let mut trader = Trader::login(&gateway, "C00001", 1);
        trader.send_raw(b"?");
        let line = line_with(&lines, "broke the protocol");
        assert_eq!(line, "worker 0: C00001 broke the protocol and is cut off: ouch_unknown_type");
        drop((trader, session));
        end_gateway(gateway);
    });
}

static IS_FULL: AtomicBool = AtomicBool::new(false);

fn run_full(_: u16, operation: &Operation) -> Verdict {
    match operation {
        Operation::Write { .. } if IS_FULL.load(SeqCst) => {
            Verdict::Refuse(io::Error::from_raw_os_error(ENOSPC))
        }
        _ => Verdict::Pass,
    }
}

/// The line contains the file and the system's error.
fn expect_failure(line: &str, folder: &Folder) {
    assert!(line.starts_with("worker 0: the journal has failed: "), "{line}");
    assert!(line.contains(&*folder.0.to_string_lossy()), "{line}");
    assert!(line.contains("cannot write") && line.contains("(os error 28)"), "{line}");
}

#[test]
fn a_journal_that_fails_is_told_with_its_file_and_why_by_a_gateway_and_by_an_exchange() {
    for driver in drivers() {
        IS_FULL.store(false, SeqCst);
        let (venue, folder) = (Script::new(), Folder::new());
        let config = GatewayConfig { journal_faults: Some(run_full), ..strict(1, venue.address(), &folder) };
        let (gateway, mut session, lines) = start(driver, &venue, config);
        let other = Folder::new();
        let orders = OrdersConfig {
            journal: Some((other.0.clone(), Level::Os)),
            journal_faults: Some(run_full),
            ..OrdersConfig::new(accounts_named('C', 1))
        };
        let exchange =
            exchange::start(server(driver, 1), orders, Mode::EchoAccept).expect("the driver runs here");
        let told = exchange.control().events().expect("nobody has them");
        let mut trader = Trader::login(&gateway, "C00001", 1);
        let login = Trader::login_at(exchange.address(), "", "C00001", 1);
        let mut client = login.expect("it is answered").unwrap_or_else(|_| panic!("it is not let in"));
        trader.send(&[order(1, 100)]);
        assert_eq!(session.next()[0], b'O');
        IS_FULL.store(true, SeqCst);
        trader.send(&[order(2, 100)]);
        client.send(&[order(1, 100)]);
        expect_failure(&line_with(&lines, "journal"), &folder);
        expect_failure(&line_with(&told, "journal"), &other);
        let page = gateway.control().open_orders(&OrderFilter::default(), None).expect("it answers");
        let rows: Vec<_> = page.rows.iter().map(|row| (row.order, row.state.as_str())).collect();
        assert_eq!(rows, [(1, "unanswered"), (2, NEVER_SENT)]);
        drop((trader, client, session));
        end_gateway(gateway);
        end_exchange(exchange);
    }
}
