//! `weir load orders` against the project's own exchange and gateway, as people and scripts use it.

use std::{
    fs,
    sync::atomic::{AtomicU32, Ordering},
};

use rustix::process::Signal;
use weir_record::{load::LoadReport, orders::OrdersLoadReport};
use weir_servers::orders::demo_accounts;

use super::{
    harness::{
        PATIENCE, Running, Said, expect_refusal, folder, own_address, shown, socket_folder, stats, until,
        weir,
    },
    serve::DRIVERS,
};

/// Servers started so far: each has its own name for the statistics socket.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// An exchange or a gateway that accepts.
struct Node {
    process: Running,
    address: String,
    socket: String,
}

impl Node {
    /// Starts one. `None`, and a line that says so, when the kernel refuses its driver.
    fn start(kind: &str, driver: &str, words: &[&str]) -> Option<Self> {
        Self::start_at("127.0.0.1:0", kind, driver, words)
    }

    /// The same at an address.
    fn start_at(listen: &str, kind: &str, driver: &str, words: &[&str]) -> Option<Self> {
        Self::start_for(&["--demo", "16"], listen, kind, driver, words)
    }

    /// The same with other flags for the accounts.
    fn start_for(accounts: &[&str], listen: &str, kind: &str, driver: &str, words: &[&str]) -> Option<Self> {
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let socket = format!("@weir-it-load-orders-{}-{number}", std::process::id());
        let shared = ["serve", kind, "--listen", listen, "--driver", driver, "--stats-socket", &socket];
        let process = Running::weir(&[&shared[..], accounts, words].concat());
        match process.next_line().as_deref().and_then(|line| line.strip_prefix("listening on ")) {
            Some(address) => Some(Self { address: address.to_owned(), process, socket }),
            None => {
                let errors = process.rest_of_errors();
                assert!(errors.contains("cannot run here"), "{driver} does not start: {errors}");
                let required = std::env::var("WEIR_REQUIRE_DRIVERS").unwrap_or_default();
                assert!(!required.split(',').any(|name| name == driver), "{driver} is required: {errors}");
                println!("skipped: {errors}");
                None
            }
        }
    }

    fn terminate(mut self) {
        self.process.signal(Signal::TERM);
        assert_eq!(self.process.wait(PATIENCE), 0);
    }
}

fn load(target: &str, words: &[&str]) -> Said {
    weir(&[&["load", "orders", "--target", target], words].concat())
}

/// Runs a load without any failure.
fn report(target: &str, words: &[&str]) -> (LoadReport, OrdersLoadReport) {
    let said = load(target, &[words, &["--json"]].concat());
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{}", said.stdout);
    assert_eq!(said.stdout.lines().count(), 1);
    let report: LoadReport = serde_json::from_str(&said.stdout).expect("a report");
    assert_eq!(report.failures.errors(), 0, "{:?}", report.failures);
    let orders = report.orders.clone().expect("it was a load of orders");
    assert_eq!(orders.inversions, 0);
    assert!(orders.shares.is_conserved(), "{:?}", orders.shares);
    (report, orders)
}

#[test]
fn an_exchange_answers_every_order_once_on_every_driver() {
    for driver in DRIVERS.iter().copied().filter(|driver| *driver != "blocking") {
        let Some(exchange) = Node::start("exchange", driver, &["--mode", "echo-accept", "--workers", "2"])
        else {
            continue;
        };
        let words = ["--sessions", "10", "-n", "50", "--observe-stats", &exchange.socket];
        let (in_turn, orders) =
            report(&exchange.address, &[&words[..], &["--in-flight-total", "1"]].concat());
        assert_eq!((in_turn.messages, orders.sessions, orders.received["A"]), (500, 10, 500));
        assert_eq!((orders.in_flight, orders.in_flight_scope.as_str()), (1, "total"));
        assert!(orders.out.is_some() && orders.back.is_some(), "both read the same clock");
        let node = in_turn.observed.and_then(|observed| observed.node).expect("it was observed");
        assert_eq!(node.node, "EXCHANGE");
        assert!((500..=520).contains(&node.received), "orders and account queries: {}", node.received);
        let (deep, _) =
            report(&exchange.address, &[&words[..], &["--in-flight", "16", "--workers", "2"]].concat());
        assert_eq!(deep.messages, 500);
        let all = stats(&exchange.socket).node.expect("it is an exchange");
        assert_eq!((all.node.as_str(), all.orders), ("EXCHANGE", 1000));
        exchange.terminate();
    }
}

#[test]
fn mixes_and_reconnects_lose_and_double_nothing() {
    for mode in ["echo-accept", "match"] {
        let exchange = Node::start("exchange", "epoll", &["--mode", mode]).expect("epoll is everywhere");
        let words = ["--sessions", "4", "-n", "400", "--in-flight", "4", "--reconnect-every", "50"];
        let mix = ["--mix", "enter=3,replace=1,cancel=2"];
        let (report, orders) = report(&exchange.address, &[&words[..], &mix].concat());
        assert_eq!(report.messages, 1600, "{mode}");
        assert!(orders.reconnects >= 20, "{mode}: {}", orders.reconnects);
        assert!(orders.replaces > 100 && orders.cancels > 100, "{mode}: {orders:?}");
        exchange.terminate();
    }
}

#[test]
fn a_gateway_between_changes_nothing_about_the_answers() {
    let exchange = Node::start("exchange", "epoll", &["--mode", "echo-accept"]).expect("epoll is everywhere");
    let words = ["--upstream", &exchange.address, "--workers", "2", "--route", "other", "--handoff", "mesh"];
    let gateway = Node::start("gateway", "epoll", &words).expect("epoll is everywhere");
    let words = ["--sessions", "10", "-n", "100", "--observe-stats", &gateway.socket];
    let (deep, orders) = report(&gateway.address, &[&words[..], &["--in-flight", "8"]].concat());
    assert_eq!((deep.messages, orders.received["A"]), (1000, 1000));
    let node = deep.observed.and_then(|observed| observed.node).expect("it was observed");
    assert_eq!((node.node.as_str(), node.orders), ("GATEWAY", 1000));
    let (again, orders) = report(&gateway.address, &[&words[..], &["--reconnect-every", "25"]].concat());
    assert_eq!(again.messages, 1000);
    assert!(orders.reconnects >= 30, "{}", orders.reconnects);
    gateway.terminate();
    exchange.terminate();
}

#[test]
fn an_exchange_that_is_killed_behind_a_gateway_makes_no_answer_wrong() {
    let folder = folder("load-orders-kill");
    let journal = shown(&folder.join("exchange")).to_owned();
    let words = ["--mode", "match", "--journal", "os", "--journal-dir", &journal];
    let mut exchange =
        Node::start_at(&own_address(), "exchange", "epoll", &words).expect("epoll is everywhere");
    let upstream = exchange.address.clone();
    let gateway = Node::start("gateway", "epoll", &["--upstream", &upstream]).expect("epoll is everywhere");
    // Until it is interrupted: on a busy machine no length of time has room for all kills.
    let words_of_load =
        ["load", "orders", "--target", &gateway.address, "--sessions", "8", "--in-flight", "8"];
    let mix = ["-d", "1h", "--warmup-max", "0s", "--json", "--mix", "enter=3,replace=2,cancel=1"];
    let mut loading = Running::weir(&[&words_of_load[..], &mix].concat());
    for _ in 0..3 {
        until("orders are under way", || {
            stats(&exchange.socket).node.is_some_and(|exchange| exchange.orders > 1000)
        });
        exchange.process.signal(Signal::KILL);
        assert_eq!(exchange.process.wait(PATIENCE), -9);
        exchange = Node::start_at(&upstream, "exchange", "epoll", &words).expect("its address is free");
    }
    until("orders after the last kill", || {
        stats(&exchange.socket).node.is_some_and(|exchange| exchange.orders > 1000)
    });
    loading.signal(Signal::INT);
    let line = loading.next_line().unwrap_or_else(|| panic!("{}", loading.rest_of_errors()));
    assert_eq!(loading.wait(PATIENCE), 130);
    let report: LoadReport = serde_json::from_str(&line).expect("a report");
    let orders = report.orders.expect("it was a load of orders");
    let failures = &report.failures;
    println!("{failures:?}, {} replaces", orders.replaces);
    assert_eq!(orders.mismatches, []);
    assert_eq!((failures.wrong_bytes, failures.malformed, orders.inversions), (0, 0, 0));
    assert!(orders.replaces > 100 && orders.shares.is_conserved(), "{orders:?}");
    gateway.terminate();
    exchange.terminate();
}

/// A gateway in front of an exchange at which each of its workers may have this many open orders; another one is
/// refused.
fn narrow(upstream: &str, open_orders_max: usize) -> String {
    let mut text = format!(
        "[[venue]]\nname = \"DEMO\"\naddress = \"{upstream}\"\nusername_prefix = \"G\"\npassword = \"DEMO\"\n\
         open_orders_max = {open_orders_max}\nwhen_full = \"reject\"\n"
    );
    for account in demo_accounts(8) {
        let (name, hash) = (account.name, account.password_hash);
        text.push_str(&format!("[[account]]\nname = \"{name}\"\npassword_hash = \"{hash}\"\n"));
    }
    text
}

#[test]
fn a_gateway_with_as_many_open_orders_as_it_may_have_refuses_and_every_answer_is_judged_right() {
    let (folder, sockets) = (folder("load-orders-full"), socket_folder("load-orders-full"));
    for mode in ["echo-accept", "match"] {
        let exchange = Node::start("exchange", "epoll", &["--mode", mode]).expect("epoll is everywhere");
        let file = folder.join(format!("{mode}.toml"));
        fs::write(&file, narrow(&exchange.address, 32)).expect("a file can be written");
        let accounts = ["--config", shown(&file)];
        let control = shown(&sockets.join(mode)).to_owned();
        let words = ["--workers", "2", "--route", "other", "--control", &control];
        let gateway = Node::start_for(&accounts, "127.0.0.1:0", "gateway", "epoll", &words)
            .expect("epoll is everywhere");
        // Before that it refuses for another reason.
        until("the exchange is there", || {
            let said = weir(&["ctl", "--socket", &control, "sessions"]);
            said.code == Some(0) && !said.stdout.contains(": closed")
        });
        // A number of orders and no time, in which a slow machine would send only few.
        let mix = ["--mix", "enter=4,replace=1,cancel=2", "--json"];
        let words = ["--sessions", "8", "--in-flight", "8", "-n", "4000"];
        let said = load(&gateway.address, &[&words[..], &mix].concat());
        let report: LoadReport = serde_json::from_str(&said.stdout).expect("a report");
        let orders = report.orders.expect("it was a load of orders");
        let failures = &report.failures;
        println!("{mode}: {failures:?}, {:?}", orders.received);
        assert_eq!(orders.mismatches, [], "{mode}");
        // All failures are refusals.
        assert_eq!((failures.errors(), orders.inversions), (failures.wrong_status, 0), "{mode}");
        assert!(failures.wrong_status > 100 && orders.received["A"] > 100, "{mode}");
        assert!(orders.shares.is_conserved(), "{mode}: {:?}", orders.shares);
        let node = stats(&gateway.socket).node.expect("it is a gateway");
        // A matched order may be over when a replace of it comes.
        let is_over = |reason: &&String| mode == "match" && *reason == "replace_not_allowed";
        let reasons: Vec<_> = node.rejects.keys().filter(|reason| !is_over(reason)).collect();
        assert_eq!(reasons, ["processing_error"], "{mode}");
        gateway.terminate();
        exchange.terminate();
    }
}

#[test]
fn people_see_what_was_done_and_checked() {
    let exchange = Node::start("exchange", "epoll", &[]).expect("epoll is everywhere");
    let said = load(&exchange.address, &["--sessions", "2", "-n", "50", "--in-flight-total", "1"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    for words in [
        "load          2 sessions, 1 in flight over all, in turn",
        "orders        100 answered; sent: 100 entered, 0 replaced, 0 cancelled",
        "way out       mean",
        "received      100 A",
        "0 answers out of order",
        "they balance",
        "failures      none",
    ] {
        assert!(said.stdout.contains(words), "no {words:?} in:\n{}", said.stdout);
    }
    exchange.terminate();
}

#[test]
fn a_wrong_password_and_impossible_flags_are_refused_in_words() {
    let exchange = Node::start("exchange", "epoll", &[]).expect("epoll is everywhere");
    let said = load(&exchange.address, &["--sessions", "1", "-n", "1", "--password", "WRONG"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(said.stderr.contains("the login of C00001 was refused: not authorised"), "{}", said.stderr);
    assert!(!said.stderr.contains("WRONG"), "{}", said.stderr);
    exchange.terminate();
    let refused = |words: &[&str], told: &[&str]| expect_refusal(&load("127.0.0.1:1", words), 2, told);
    refused(&["--mix", "fill"], &["--mix", "enter=6,replace=1,cancel=3"]);
    refused(&["--in-flight-total", "1", "--workers", "2"], &["--in-flight-total", "at most 1"]);
    refused(&["--in-flight", "0"], &["--in-flight: 0 is not possible"]);
    refused(&["--in-flight-total", "0"], &["--in-flight-total: at least one"]);
    refused(&["--sessions", "0"], &["--sessions: 0 is not possible"]);
    refused(&["--accounts-prefix", "TOOLONG"], &["--accounts-prefix", "1 to 5 letters"]);
    refused(&["--reconnect-every", "0"], &["--reconnect-every"]);
}
