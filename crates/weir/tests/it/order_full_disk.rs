//! A gateway whose disk is really full: it reports that, refuses new orders, cancels open orders at the exchange, and
//! goes on when there is room again, without an order lost or executed twice.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use weir_engine::{Config, Driver, Runtime};
use weir_proto::{ouch::reject_reason, soup::DEBUG};
use weir_servers::journal::{self, Journal, JournalConfig, Level};

use super::{
    filled_disk::SmallDisk,
    harness::{Said, folder, shown, skip_without_disk, socket_folder, until, weir},
    order_client::Client,
    order_kill::{Node, Session, accepted_by_exchange, journal as place},
};

/// Less than a gateway reserves for a file of its journal.
const FULL: &str = "size=16m";
const ROOMY: &str = "remount,size=256m";
/// Bytes of the first file of the worker that has nothing to wait for, and of the one that sends.
const FIRST_BYTES: [u64; 2] = [1 << 20, 32 << 10];
/// Kind of record, as `docs/formats/gateway-config.md` has it.
const VENUES_NAMED: u8 = 66;

/// Orders whose answers are waited for, and all orders before the disk is full: more than the first file takes.
const AWAITED: u32 = 10;
const SENT: u32 = 600;
/// The order at the full disk, and the order after there is room again.
const REFUSED: u32 = SENT + 1;
const LAST: u32 = SENT + 2;

/// A journal whose first file is a small one. A gateway goes on with it.
fn begin_journal(directory: &str, worker: u16) {
    let runtime = Runtime::new(&Config::with_driver(Driver::Epoll)).expect("epoll is everywhere");
    runtime.block_on(async {
        let directory = PathBuf::from(directory);
        let recovered = journal::recover(&directory, worker, &mut |_, _| Ok(())).expect("it is empty");
        let config = JournalConfig {
            segment_bytes: FIRST_BYTES[usize::from(worker)],
            ..JournalConfig::new(directory, worker, Level::Os)
        };
        let journal = Journal::open(config, &recovered).await.expect("there is room");
        journal.start();
        journal.append(VENUES_NAMED, 0, 0, &[br#"["DEMO"]"#]).expect("it is taken");
        journal.close().await;
        assert!(!journal.is_failed());
    });
}

/// A session on the worker whose journal has failed gets a message, and is disconnected.
fn expect_notice(mut session: Session) {
    let mut told = Vec::new();
    while let Some(texts) = session.read(|kind, payload| (kind == DEBUG).then(|| payload.to_vec())) {
        told.extend(texts);
    }
    assert!(told.iter().any(|text| text.starts_with(b"the journal has failed")), "{told:?}");
}

/// The disk has just become full: orders that were sent and not stored have no answer yet.
fn stop_everybody(client: &mut Client, ctl: impl Fn(&[&str]) -> Said) {
    client.send(REFUSED..=REFUSED);
    client.hear_until("the next order is refused", |client| client.reason_of(REFUSED).is_some());
    assert_eq!(client.reason_of(REFUSED), Some(reject_reason::DESTINATION_CLOSED));
    client.cancel(1);
    client.hear_until("its cancel is confirmed", |client| client.numbers(b'C') == [1]);
    // The exchange sends messages in order, so these are all orders that it has taken.
    let taken = client.numbers(b'A').len();
    assert!(taken >= AWAITED as usize, "{taken}");
    let (begun, said, open) = (Instant::now(), ctl(&["kill", "all"]), taken - 1);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    // It waits a second at most for the exchange.
    let is_late = begun.elapsed() >= Duration::from_secs(1);
    let confirmed = if is_late { String::new() } else { format!("{open} are confirmed") };
    let expected = format!("{open} cancels are sent, {confirmed}");
    assert!(said.stdout.contains(&expected), "{expected}: {}", said.stdout);
    client.hear_until("every order is cancelled", |client| client.numbers(b'C').len() == taken);
}

#[test]
fn on_a_full_disk_orders_are_refused_cancels_reach_the_exchange_and_nothing_is_lost_or_executed_twice() {
    let (folder, sockets) = (folder("order-full-disk"), socket_folder("order-full-disk"));
    let disk = folder.join("disk");
    fs::create_dir(&disk).expect("a folder can be made");
    let Some(mounted) = SmallDisk::mount(&disk, FULL) else {
        skip_without_disk("mounting a small disk needs root");
        return;
    };
    let (ours, theirs) = (place(&folder, "disk/gateway"), place(&folder, "exchange"));
    (0..2).for_each(|worker| begin_journal(&ours, worker));
    let socket = shown(&sockets.join("control")).to_owned();
    let ctl = |words: &[&str]| weir(&[&["ctl", "--socket", &socket], words].concat());
    let common = ["--demo", "2", "--listen", "127.0.0.1:0", "--driver", "epoll", "--journal", "os"];
    let own = ["--mode", "match", "--journal-dir", &theirs];
    let exchange = Node::start(&[&["serve", "exchange"], &common[..], &own[..]].concat());
    let upstream = exchange.address.clone();
    let own = ["--workers", "2", "--route", "other", "--journal-dir", &ours];
    let own = [&own[..], &["--upstream", &upstream, "--control", &socket]].concat();
    let mut gateway = Node::start(&[&["serve", "gateway"], &common[..], &own[..]].concat());

    // It lives on the first worker, and its orders leave by the second one.
    let mut client = Client::login(&gateway.address, "C00001");
    let other = Session::login(&gateway.address, "C00002", 1).expect("it is let in");
    client.send(1..=AWAITED);
    let awaited = AWAITED as usize;
    client.hear_until("the first orders are taken", |client| client.numbers(b'A').len() == awaited);
    client.send(AWAITED + 1..=SENT);
    let line = gateway.error_line_with("the journal has failed");
    for part in ["worker 1: ", "No space left on device"] {
        assert!(line.contains(part), "no {part:?} in {line}");
    }
    expect_notice(other);
    stop_everybody(&mut client, ctl);

    gateway.end(Signal::KILL);
    mounted.resize(ROOMY);
    gateway.start_again("epoll");
    until("the exchange is there", || !ctl(&["sessions"]).stdout.contains(": closed"));
    let mut again = Client::login(&gateway.address, "C00001");
    assert_eq!(ctl(&["kill", "all", "--off"]).code, Some(0));
    again.send(LAST..=LAST);
    let answers = |client: &Client| [client.numbers(b'A'), client.numbers(b'J')].concat();
    again.hear_until("every order has its answer", |client| answers(client).len() == LAST as usize);
    assert!(again.stream.starts_with(&client.stream), "what was told before is told again");
    let mut answered = answers(&again);
    answered.sort_unstable();
    assert!(answered.into_iter().eq(1..=LAST), "each has one answer");
    let (taken, mut cancelled) = (again.numbers(b'A'), again.numbers(b'C'));
    cancelled.sort_unstable();
    assert_eq!(taken.split_last(), Some((&LAST, &cancelled[..])), "there is room again");
    gateway.end(Signal::KILL);
    let executed = accepted_by_exchange(&exchange.address, "G00002");
    assert_eq!(executed, taken.into_iter().map(|number| again.id(number)).collect::<Vec<_>>());
}
