//! Tests of changes at run time through the control socket, and of the operators' view.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    os::unix::{fs::PermissionsExt, net::UnixStream},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};

use weir_engine::Driver;
use weir_proto::ouch::{Outbound, reject_reason};
use weir_servers::{
    gateway::{
        ControlResponse, ControlSocket, GatewayConfig, GatewayServer, Limits, ProtocolErrors, describe,
    },
    journal::{
        Level,
        faults::{Operation, Verdict},
        inspect_all,
    },
    metrics::MetricsPort,
    orders::{EventKind, FieldValue, is_answer},
};

use super::{
    faults::health_page,
    rig::{
        Folder, PATIENCE, Trader, beside_each_other, cancels, drivers, end_exchange, end_gateway, eventually,
        exchange, gateway, loopback, order, replace, strict, symbol,
    },
};

pub fn ask(path: &Path, line: &str) -> ControlResponse {
    let mut stream = UnixStream::connect(path).expect("the socket is there");
    stream.write_all(format!("{line}\n").as_bytes()).expect("it listens");
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).expect("an answer");
    serde_json::from_str(&answer).expect("an answer")
}

pub fn rejected(trader: &mut Trader) -> (u32, u16) {
    match trader.next() {
        Outbound::Rejected(rejected) => (rejected.user_ref_num, rejected.reason),
        other => panic!("{other:?}"),
    }
}

/// The kill switch and the limit of the first account are shown wherever an operator looks.
fn expect_shown(gateway: &GatewayServer, path: &Path) {
    let lines: Vec<String> = gateway.control().events_at_start().iter().map(ToString::to_string).collect();
    let [killed, limited] = lines.as_slice() else { panic!("{lines:?}") };
    assert!(killed.starts_with("the kill switch is on for account C00001"), "{killed}");
    assert!(limited.starts_with("limit shares_max of account C00001 is 60 instead of off"), "{limited}");
    let page = get(health_page(gateway), "/healthz");
    assert!(
        page.starts_with("HTTP/1.1 200 ") && page.ends_with(&format!("\r\n\r\nok\n{killed}\n")),
        "{page}"
    );
    let socket = ControlSocket::bind(path).expect("the path is free");
    let open = socket.answer(gateway.control()).expect("a thread");
    assert_eq!(ask(path, r#"{"command":"sessions"}"#).killed, Some(vec!["C00001".to_owned()]));
    drop(open);
}

#[test]
fn limits_and_kill_switches_hold_at_once_and_after_a_restart() {
    for driver in drivers() {
        println!("{driver}");
        let (venue, folder) = (exchange(driver, loopback()), Folder::new());
        let config = || GatewayConfig {
            journal: Some((folder.0.clone(), Level::Os)),
            journal_segment_bytes: 64 << 10,
            ..GatewayConfig::demo(2, venue.address().clone())
        };
        let path = folder.0.join("control.sock");
        let first = gateway(driver, 2, config());
        let socket = ControlSocket::bind(&path).expect("the path is free");
        let open = socket.answer(first.control()).expect("a thread");
        assert_eq!(std::fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600);

        let mut trader = Trader::login(&first, "C00001", 1);
        trader.send(&[order(1, 100), order(2, 50)]);
        assert!(matches!(trader.next(), Outbound::Accepted(_)));
        assert!(matches!(trader.next(), Outbound::Accepted(_)));
        let answer = ask(&path, r#"{"command":"limits","account":"c00001","set":{"shares_max":60}}"#);
        assert!(answer.ok, "{answer:?}");
        assert_eq!(answer.limits.and_then(|limits| limits.shares_max), Some(60));
        trader.send(&[order(3, 61)]);
        assert_eq!(rejected(&mut trader), (3, reject_reason::SHARES_EXCEED_THRESHOLD));
        let refused = ask(&path, r#"{"command":"limits","set":{"shares":60}}"#);
        assert!(!refused.ok && refused.error.is_some_and(|error| error.contains("shares")));
        let refused = ask(&path, r#"{"command":"kill","account":"NOBODY","on":true}"#);
        assert!(!refused.ok && refused.error.is_some_and(|error| error.contains("NOBODY")));

        let answer = ask(&path, r#"{"command":"kill","account":"C00001","on":true}"#);
        assert_eq!((answer.ok, answer.cancels), (true, Some(cancels("DEMO", 2, 2, 2))));
        let mut cancelled = [0; 2].map(|_| match trader.next() {
            Outbound::Canceled(canceled) => canceled.user_ref_num,
            other => panic!("{other:?}"),
        });
        cancelled.sort_unstable();
        assert_eq!(cancelled, [1, 2]);
        trader.send(&[order(4, 1)]);
        assert_eq!(rejected(&mut trader), (4, reject_reason::FIRM_NOT_AUTHORIZED));
        drop(open);
        assert!(!path.exists());
        drop(trader);
        end_gateway(first);

        let second = gateway(driver, 2, config());
        assert_eq!(second.control().killed(), ["C00001"]);
        expect_shown(&second, &path);
        assert_eq!(second.control().limits(Some("C00001")).map(|limits| limits.shares_max), Ok(Some(60)));
        let mut trader = Trader::login(&second, "C00001", 0);
        trader.send(&[order(5, 1)]);
        assert_eq!(rejected(&mut trader), (5, reject_reason::FIRM_NOT_AUTHORIZED));
        assert_eq!(second.control().kill(Some("C00001"), false), Ok(Vec::new()));
        trader.send(&[order(6, 61), order(7, 60)]);
        assert_eq!(rejected(&mut trader), (6, reject_reason::SHARES_EXCEED_THRESHOLD));
        assert!(matches!(trader.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == 7));
        drop(trader);
        end_gateway(second);
        end_exchange(venue);
    }
}

#[test]
fn a_limit_that_is_set_while_a_gateway_runs_counts_what_was_open_before() {
    for driver in drivers() {
        println!("{driver}");
        let (venue, folder) = (exchange(driver, loopback()), Folder::new());
        let first = gateway(driver, 2, strict(2, venue.address().clone(), &folder));
        let mut trader = Trader::login(&first, "C00001", 1);
        trader.send(&[order(1, 100)]);
        assert!(matches!(trader.next(), Outbound::Accepted(_)));
        set(&first, None, serde_json::json!({"exposure_max": 150.0}));
        trader.send(&[order(2, 60)]);
        assert_eq!(rejected(&mut trader), (2, reject_reason::RISK_AGGREGATE_EXPOSURE));
        trader.send(&[order(3, 50)]);
        assert!(matches!(trader.next(), Outbound::Accepted(_)));
        set(&first, None, serde_json::json!({"exposure_max": null, "restricted": ["WEIR"]}));
        trader.send(&[replace(1, 4, 10)]);
        assert_eq!(rejected(&mut trader), (4, reject_reason::RISK_RESTRICTED_STOCK));
        drop(trader);
        end_gateway(first);
        // With no limit that needed them earlier, the previous start's orders count too.
        let second = gateway(driver, 2, strict(2, venue.address().clone(), &folder));
        set(&second, None, serde_json::json!({"exposure_max": 150.0, "restricted": []}));
        let mut trader = Trader::login(&second, "C00001", 0);
        trader.send(&[order(5, 1)]);
        assert_eq!(rejected(&mut trader), (5, reject_reason::RISK_AGGREGATE_EXPOSURE));
        drop(trader);
        end_gateway(second);
        end_exchange(venue);
    }
}

/// Sets limits, and panics if that is refused.
fn set(gateway: &GatewayServer, account: Option<&str>, limits: serde_json::Value) {
    let serde_json::Value::Object(limits) = limits else { panic!("an object") };
    assert_eq!(gateway.control().set_limits(account, limits), Ok(()));
}

#[test]
fn a_stricter_limit_in_the_file_is_overridden_with_a_line_until_it_is_reset() {
    for driver in drivers() {
        println!("{driver}");
        let (venue, folder) = (exchange(driver, loopback()), Folder::new());
        let config = |shares_max| {
            let limits = Limits { shares_max: Some(shares_max), ..Limits::default() };
            GatewayConfig { limits, ..strict(2, venue.address().clone(), &folder) }
        };
        let first = gateway(driver, 2, config(1000));
        assert!(first.control().events_at_start().is_empty());
        set(&first, None, serde_json::json!({"shares_max": 50}));
        end_gateway(first);

        let second = gateway(driver, 2, config(10));
        let lines: Vec<String> = second.control().events_at_start().iter().map(ToString::to_string).collect();
        let [line] = lines.as_slice() else { panic!("{lines:?}") };
        for part in
            ["limit shares_max of accounts without own limits is 50 instead of 10", "--reset shares_max"]
        {
            assert!(line.contains(part), "{part}: {line}");
        }
        let mut trader = Trader::login(&second, "C00001", 1);
        trader.send(&[order(1, 40)]);
        assert!(matches!(trader.next(), Outbound::Accepted(_)));
        assert_eq!(second.control().reset_limits(None, ["shares_max".to_owned()].into()), Ok(()));
        trader.send(&[order(2, 40)]);
        assert_eq!(rejected(&mut trader), (2, reject_reason::SHARES_EXCEED_THRESHOLD));
        drop(trader);
        end_gateway(second);

        let third = gateway(driver, 2, config(20));
        assert!(third.control().events_at_start().is_empty());
        assert_eq!(third.control().limits(None).map(|limits| limits.shares_max), Ok(Some(20)));
        end_gateway(third);
        end_exchange(venue);
    }
}

#[test]
fn a_common_limit_that_is_set_later_reaches_an_account_with_a_limit_of_its_own() {
    for driver in drivers() {
        println!("{driver}");
        let (venue, folder) = (exchange(driver, loopback()), Folder::new());
        let config = || strict(2, venue.address().clone(), &folder);
        let first = gateway(driver, 2, config());
        set(&first, Some("C00001"), serde_json::json!({"shares_max": 100}));
        set(&first, None, serde_json::json!({"exposure_max": 50.0}));
        let mut trader = Trader::login(&first, "C00001", 1);
        trader.send(&[order(1, 101), order(2, 51), order(3, 50)]);
        assert_eq!(rejected(&mut trader), (1, reject_reason::SHARES_EXCEED_THRESHOLD));
        assert_eq!(rejected(&mut trader), (2, reject_reason::RISK_AGGREGATE_EXPOSURE));
        assert!(matches!(trader.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == 3));
        drop(trader);
        end_gateway(first);

        let limits = Limits { notional_max: Some(20.0), ..Limits::default() };
        let second = gateway(driver, 2, GatewayConfig { limits, ..config() });
        let shown = second.control().limits(Some("C00001")).expect("there is such an account");
        let expected = (Some(100), Some(20.0), Some(50.0));
        assert_eq!((shown.shares_max, shown.notional_max, shown.exposure_max), expected);
        end_gateway(second);
        end_exchange(venue);
    }
}

/// Limits that each have an effect, with their values in a round.
fn eight_limits(round: u32) -> [(&'static str, serde_json::Value); 8] {
    let units = f64::from(100 * round);
    [
        ("orders_per_second", (1000 + round).into()),
        ("symbol_orders_per_second", (2000 + round).into()),
        ("duplicates_max", (3000 + round).into()),
        ("fat_finger_percent", units.into()),
        ("shares_max", (4000 + round).into()),
        ("notional_max", units.into()),
        ("exposure_max", units.into()),
        ("restricted", vec![format!("S{round}")].into()),
    ]
}

#[test]
fn limits_of_one_account_that_eight_callers_change_at_one_time_all_hold() {
    const ROUNDS: u32 = 20;
    for driver in drivers() {
        println!("{driver}");
        let (venue, folder) = (exchange(driver, loopback()), Folder::new());
        let path = &folder.0.join("control.sock");
        let gateway = gateway(driver, 2, strict(2, venue.address().clone(), &folder));
        let open = ControlSocket::bind(path).expect("the path is free").answer(gateway.control());
        for round in 1..=ROUNDS {
            let limits = eight_limits(round);
            beside_each_other(&limits, |(key, value)| {
                let set = serde_json::json!({ (*key): value });
                let change = serde_json::json!({ "command": "limits", "account": "C00001", "set": set });
                let answer = ask(path, &change.to_string());
                assert!(answer.ok, "{key}: {answer:?}");
            });
            let shown = ask(path, r#"{"command":"limits","account":"C00001"}"#).limits;
            let shown = serde_json::to_value(shown.expect("they are shown")).expect("they are data");
            for (key, value) in &limits {
                assert_eq!(&shown[*key], value, "{key} in round {round}");
            }
        }
        assert_eq!(gateway.control().limits(Some("C00002")), Ok(Limits::default()), "it has none");
        drop(open);
        end_gateway(gateway);
        end_exchange(venue);
    }
}

#[test]
fn a_session_that_cannot_be_ended_is_refused_in_the_only_line_about_it() {
    let driver = drivers()[0];
    let (venue, folder) = (exchange(driver, loopback()), Folder::new());
    let path = folder.0.join("control.sock");
    let gateway = gateway(driver, 1, strict(1, venue.address().clone(), &folder));
    let open = ControlSocket::bind(&path).expect("the path is free").answer(gateway.control());
    let events = gateway.control().events().expect("nobody has them");
    let answer = ask(&path, r#"{"command":"end_session","session":"OTHER00001"}"#);
    assert!(!answer.ok, "{answer:?}");
    assert!(ask(&path, r#"{"command":"unlock"}"#).ok);
    let lines: Vec<String> = std::iter::from_fn(|| events.recv_timeout(PATIENCE).ok())
        .filter(|event| event.kind == EventKind::Operator)
        .map(|event| event.text)
        .take(2)
        .collect();
    let [refused, unlocked] = lines.as_slice() else { panic!("{lines:?}") };
    assert!(refused.contains(": end_session {") && refused.contains("there is no session"), "{refused}");
    assert!(unlocked.ends_with(": unlock: done"), "{unlocked}");
    drop(open);
    end_gateway(gateway);
    end_exchange(venue);
}

#[test]
fn a_limit_that_cannot_be_is_refused_by_its_name() {
    let driver = drivers()[0];
    let (venue, folder) = (exchange(driver, loopback()), Folder::new());
    let path = folder.0.join("control.sock");
    let gateway = gateway(driver, 1, strict(1, venue.address().clone(), &folder));
    let open = ControlSocket::bind(&path).expect("the path is free").answer(gateway.control());
    let answer = ask(&path, r#"{"command":"limits","set":{"notional_max":5,"shares_max":-1}}"#);
    assert!(answer.error.as_ref().is_some_and(|error| error.starts_with("shares_max: ")), "{answer:?}");
    drop(open);
    end_gateway(gateway);
    end_exchange(venue);
}

#[test]
fn who_has_sent_what_is_no_message_is_listed_with_the_sessions() {
    for driver in drivers() {
        println!("{driver}");
        let (venue, folder) = (exchange(driver, loopback()), Folder::new());
        let path = folder.0.join("control.sock");
        let gateway = gateway(driver, 2, GatewayConfig::demo(2, venue.address().clone()));
        let open = ControlSocket::bind(&path).expect("the path is free").answer(gateway.control());
        let listed = || ask(&path, r#"{"command":"sessions"}"#).protocol_errors.expect("they are listed");
        assert!(listed().is_empty());
        let neighbour = Trader::login(&gateway, "C00001", 1);
        for count in 1..=2 {
            let mut trader = Trader::login(&gateway, "C00002", 0);
            trader.send_raw(b"?");
            assert_eq!(trader.rest().len(), 1, "it is told why, and cut off");
            let (account, kind) = ("C00002".to_owned(), "ouch_unknown_type".to_owned());
            assert_eq!(listed(), [ProtocolErrors { account, kind, count }]);
        }
        drop((neighbour, open));
        end_gateway(gateway);
        end_exchange(venue);
    }
}

#[test]
fn reference_prices_hold_at_once_on_all_workers_and_after_a_restart() {
    for driver in drivers() {
        println!("{driver}");
        let (venue, folder) = (exchange(driver, loopback()), Folder::new());
        let config = || {
            let limits = Limits { fat_finger_percent: Some(10.0), ..Limits::default() };
            // Every order of the test has a price of 1.
            let references = vec![(symbol("WEIR"), 20_000)];
            GatewayConfig { limits, references, ..strict(2, venue.address().clone(), &folder) }
        };
        let path = folder.0.join("control.sock");
        let first = gateway(driver, 2, config());
        let open = ControlSocket::bind(&path).expect("the path is free").answer(first.control());
        let mut traders = ["C00001", "C00002"].map(|name| Trader::login(&first, name, 1));
        let mut number = 0;
        let mut expect = |traders: &mut [Trader; 2], is_taken: bool| {
            number += 1;
            for trader in traders {
                trader.send(&[order(number, 100)]);
                match trader.next() {
                    Outbound::Accepted(accepted) => {
                        assert_eq!((accepted.user_ref_num, is_taken), (number, true))
                    }
                    Outbound::Rejected(rejected) => {
                        let told = (rejected.user_ref_num, rejected.reason, is_taken);
                        assert_eq!(told, (number, reject_reason::RISK_FAT_FINGER, false));
                    }
                    other => panic!("{other:?}"),
                }
            }
        };
        expect(&mut traders, false);
        let answer = ask(&path, r#"{"command":"references","set":{"WEIR":1.05,"BRIDGE":12.5}}"#);
        let prices = BTreeMap::from([("BRIDGE".to_owned(), 12.5), ("WEIR".to_owned(), 1.05)]);
        assert_eq!((answer.ok, answer.references), (true, Some(prices)), "{:?}", answer.error);
        expect(&mut traders, true);
        let answer = ask(&path, r#"{"command":"references","set":{"WEIR":null}}"#);
        assert_eq!((answer.ok, answer.references), (true, Some(BTreeMap::new())));
        expect(&mut traders, true);
        for (wrong, word) in [(r#"{"WEIR":0}"#, "WEIR: price: 0"), (r#"{"TOOLONGSYMBOL":1}"#, "TOOLONG")] {
            let answer = ask(&path, &format!(r#"{{"command":"references","set":{wrong}}}"#));
            assert!(!answer.ok && answer.error.is_some_and(|error| error.contains(word)), "{wrong}");
        }
        let answer = ask(&path, r#"{"command":"references","set":{"WEIR":1.2}}"#);
        assert!(answer.ok, "{answer:?}");
        expect(&mut traders, false);
        drop((traders, open));
        end_gateway(first);

        // Prices that were set override the file.
        let second = gateway(driver, 2, config());
        let prices = [("BRIDGE".to_owned(), 12.5), ("WEIR".to_owned(), 1.2)];
        assert_eq!(second.control().references(), BTreeMap::from(prices));
        let mut traders = ["C00001", "C00002"].map(|name| Trader::login(&second, name, 0));
        expect(&mut traders, false);
        let last = BTreeMap::from([("WEIR".to_owned(), Some(1.0))]);
        assert_eq!(second.control().set_references(last), Ok(()));
        expect(&mut traders, true);
        drop(traders);
        end_gateway(second);
        end_exchange(venue);
    }
}

#[test]
fn callers_who_say_nothing_do_not_shut_a_kill_switch_out() {
    let driver = Driver::Poll;
    let (venue, folder) = (exchange(driver, loopback()), Folder::new());
    let path = folder.0.join("control.sock");
    let gateway = gateway(driver, 1, GatewayConfig::demo(1, venue.address().clone()));
    let open = ControlSocket::bind(&path).expect("the path is free").answer(gateway.control());
    // Some are silent, some send an incomplete request, and some have already been answered.
    let mut silent: Vec<UnixStream> =
        (0..100).map(|_| UnixStream::connect(&path).expect("it listens")).collect();
    for caller in silent.iter_mut().step_by(2) {
        // Those that were replaced are closed.
        let _ = caller.write_all(b"{\"command\":");
    }
    let answer = ask(&path, r#"{"command":"kill","account":null,"on":true}"#);
    assert_eq!((answer.ok, answer.killed), (true, Some(vec!["*".to_owned()])));
    drop((silent, open));
    end_gateway(gateway);
    end_exchange(venue);
}

static IS_FIRST_LOST: AtomicBool = AtomicBool::new(false);

fn lose_first(worker: u16, operation: &Operation) -> Verdict {
    match operation {
        Operation::Write { .. } if worker == 0 && IS_FIRST_LOST.load(SeqCst) => {
            Verdict::Refuse(std::io::Error::from_raw_os_error(5))
        }
        _ => Verdict::Pass,
    }
}

#[test]
fn a_kill_switch_is_kept_by_a_journal_that_works() {
    for driver in drivers() {
        println!("{driver}");
        IS_FIRST_LOST.store(false, SeqCst);
        let (venue, folder) = (exchange(driver, loopback()), Folder::new());
        let works = strict(2, venue.address().clone(), &folder);
        let first = gateway(driver, 2, GatewayConfig { journal_faults: Some(lose_first), ..works.clone() });
        let control = first.control();
        assert_eq!(control.kill(Some("C00002"), true), Ok(Vec::new()));
        IS_FIRST_LOST.store(true, SeqCst);
        let mut trader = Trader::login(&first, "C00001", 1);
        trader.send(&[order(1, 100)]);
        eventually("the first journal has failed", || control.health().is_err());
        assert_eq!(control.kill(Some("C00002"), false), Ok(Vec::new()));
        assert_eq!(control.kill(None, true), Ok(Vec::new()));
        drop(trader);
        end_gateway(first);

        let second = gateway(driver, 2, works);
        assert_eq!(second.control().killed(), ["*"]);
        end_gateway(second);
        end_exchange(venue);
    }
}

pub fn get(address: SocketAddr, target: &str) -> String {
    ask_host(address, target, &address.to_string())
}

fn ask_host(address: SocketAddr, target: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it listens");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("a reply");
    reply
}

#[test]
fn commands_are_in_the_journal_with_their_user_and_their_outcome() {
    let (venue, folder) = (exchange(Driver::Poll, loopback()), Folder::new());
    let gateway = gateway(Driver::Poll, 1, strict(1, venue.address().clone(), &folder));
    let path = folder.0.join("control.sock");
    let socket = ControlSocket::bind(&path).expect("the path is free");
    let open = socket.answer(gateway.control()).expect("a thread");
    let commands = [
        r#"{"command":"sessions"}"#,
        r#"{"command":"kill","account":"C00001","on":true}"#,
        r#"{"command":"limits","set":{"shares":60}}"#,
        r#"{"command":"reload"}"#,
        r#"{"command":"drain"}"#,
    ];
    let done = commands.map(|command| ask(&path, command).ok);
    assert_eq!(done, [true, true, false, false, true]);
    drop(open);
    gateway.join();
    end_exchange(venue);
    let mut found = Vec::new();
    let all = inspect_all(&folder.0, &[0], is_answer, &mut |record, _| {
        let described = describe(&record);
        let field =
            |name: &str| described.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value);
        if described.kind == "operator" {
            let user = field("uid").expect("the kernel knows it");
            assert!(matches!(user, FieldValue::Json(uid) if *uid == rustix::process::geteuid().as_raw()));
            let text = |name| match field(name) {
                Some(FieldValue::Text(text)) => text.clone(),
                _ => String::new(),
            };
            found.push((text("command"), text("account"), text("error").is_empty()));
        }
        Ok(())
    });
    assert!(all.expect("it can be read").iter().all(|(_, outcome)| outcome.is_ok()));
    let expected =
        [("kill", "C00001", true), ("limits", "", false), ("reload", "", false), ("drain", "", true)];
    let expected = expected.map(|(command, account, ok)| (command.to_owned(), account.to_owned(), ok));
    assert_eq!(found, expected);
}

#[test]
fn metrics_and_health_are_served_beside() {
    for driver in drivers() {
        println!("{driver}");
        let venue = exchange(driver, loopback());
        let gateway = gateway(driver, 1, GatewayConfig::demo(1, venue.address().clone()));
        assert!(MetricsPort::bind("0.0.0.0:0".parse().expect("an address")).is_err());
        let port = MetricsPort::bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
        let address = port.address().expect("it has one");
        port.answer(Arc::new(gateway.control())).expect("a thread");
        let mut trader = Trader::login(&gateway, "C00001", 1);
        trader.send(&[order(1, 100)]);
        assert!(matches!(trader.next(), Outbound::Accepted(_)));
        let metrics = get(address, "/metrics");
        assert!(
            metrics.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"),
            "{metrics}"
        );
        for line in [
            "weir_messages_received_total{component=\"gateway\",side=\"client\"} 1",
            // The answers to the query and to the order.
            "weir_messages_received_total{component=\"gateway\",side=\"upstream\"} 2",
            "weir_upstream_up{venue=\"DEMO\",worker=\"0\"} 1",
            "weir_sessions{state=\"live\"} 1",
            "weir_backlog 0",
        ] {
            assert!(metrics.lines().any(|found| found == line), "{line} is not in\n{metrics}");
        }
        assert!(get(address, "/healthz").starts_with("HTTP/1.1 200 OK"));
        assert!(get(address, "/other").starts_with("HTTP/1.1 404 "));
        assert!(ask_host(address, "/metrics", "localhost").starts_with("HTTP/1.1 200 "));
        // A page of a foreign name that was made to resolve to this machine.
        assert!(ask_host(address, "/metrics", "rebound.example").starts_with("HTTP/1.1 421 "));
        assert!(get(address, "not a target").starts_with("HTTP/1.1 400 "));
        drop(trader);
        end_exchange(venue);
        eventually("it is not healthy any more", || get(address, "/healthz").starts_with("HTTP/1.1 503 "));
        end_gateway(gateway);
    }
}
