//! How long a gateway takes to restart: `cargo bench -p weir-servers --bench recovery [-- FOLDER [MIB]]`.
//!
//! It writes journals of a given total size (default 1024 MiB), as a day of accepted and executed orders leaves them,
//! and times the start of a gateway of two workers that reads them: once with the orders of each client sent by its
//! own worker, and once by the other one, so that an order and its answers are in different journals. Each is timed
//! without a checkpoint, and from the checkpoint that the gateway has written meanwhile. If a median is above its goal,
//! a sentence says so, and the exit code is 1. The goal without a checkpoint is for 1024 MiB and grows with the size;
//! smaller sizes are only timed. The folder is removed at the end; its default is the working directory's
//! `weir-recovery-bench`.
#![expect(clippy::print_stdout, reason = "its output is the result")]

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    rc::Rc,
    time::{Duration, Instant},
};

use weir_engine::{Config, Driver, Runtime, serve::ServerConfig};
use weir_proto::{
    ouch::{
        Accepted, Appendage, ClientOrderId, Enter, Executed, Inbound, Outbound, Symbol,
        set_inbound_user_ref_num, set_outbound_user_ref_num,
    },
    soup::Name,
};
use weir_servers::{
    gateway::{GatewayConfig, GatewayServer},
    journal::{self, CheckpointFile, Journal, JournalConfig, Level},
};
use weir_trading::{Route, WhenFull};

const WORKERS: usize = 2;
const ACCOUNTS: u32 = 100;
const TIMES: usize = 5;
/// Default size of the journals, for which the goal of a start's median is stated.
const GOAL_MIB: u64 = 1024;
const GOAL_SECONDS: f64 = 3.0;
/// The goal with a checkpoint, whatever the size.
const GOAL_CHECKPOINT_SECONDS: f64 = 3.0;
/// How long the gateway may take to write a checkpoint.
const CHECKPOINT_PATIENCE: Duration = Duration::from_secs(300);
/// Kinds of records, as in `docs/formats/order-records.md`.
const SEQUENCED: u8 = 1;
const INBOUND: u8 = 2;
const SENT: u8 = 5;
const SESSION_JOINED: u8 = 64;
const VENUES_NAMED: u8 = 66;
/// The parts of the key of a worker's session with its first venue, and of its messages, besides the worker.
const SESSIONS_PER_WORKER: u32 = 64;
const EPOCH: u64 = 1;
const NS_PER_ORDER: u64 = 10_000;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let folder = arguments.next().map_or_else(|| PathBuf::from("weir-recovery-bench"), PathBuf::from);
    let mib: u64 = arguments.next().map_or(GOAL_MIB, |text| text.parse().expect("MiB in digits"));
    let mut missed = Vec::new();
    for route in [Route::Own, Route::Other] {
        let (records, bytes) = write(&folder, mib << 20, route);
        let median = median(|| {
            let seconds = start(&folder, route);
            println!(
                "{route}: {records} records, {} MiB: {seconds:.2} s, {:.2} million records a second",
                bytes >> 20,
                records as f64 / seconds / 1e6
            );
            seconds
        });
        if mib >= GOAL_MIB && median > GOAL_SECONDS * mib as f64 / GOAL_MIB as f64 {
            missed.push(format!("{median:.2} s with route {route}"));
        }
        let (seconds, bytes) = write_checkpoint(&folder, route);
        println!("{route}: a checkpoint of {bytes} bytes after {seconds:.2} s beside the gateway");
        let median = self::median(|| {
            let seconds = start(&folder, route);
            println!("{route}: from the checkpoint: {seconds:.2} s");
            seconds
        });
        if median > GOAL_CHECKPOINT_SECONDS {
            missed.push(format!("{median:.2} s from a checkpoint with route {route}"));
        }
        clear(&folder);
    }
    if missed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!(
        "a start with {GOAL_MIB} MiB is to take {GOAL_SECONDS} s at most, and one from a checkpoint \
         {GOAL_CHECKPOINT_SECONDS} s; with {mib} MiB the median was {}",
        missed.join(", ")
    );
    ExitCode::FAILURE
}

/// The median of a few times.
fn median(mut time: impl FnMut() -> f64) -> f64 {
    let mut all = [(); TIMES].map(|()| time());
    all.sort_unstable_by(f64::total_cmp);
    all[TIMES / 2]
}

fn gateway(folder: &Path, route: Route) -> GatewayServer {
    let mut server =
        ServerConfig::new(Config::with_driver(Driver::Epoll), "127.0.0.1:0".parse().expect("an address"));
    server.workers = WORKERS;
    GatewayServer::start(server, config(folder, route)).expect("the journals are right")
}

/// Seconds that a gateway takes to start with these journals.
fn start(folder: &Path, route: Route) -> f64 {
    let begun = Instant::now();
    let gateway = gateway(folder, route);
    let seconds = begun.elapsed().as_secs_f64();
    gateway.drain();
    gateway.join();
    seconds
}

/// Lets a gateway run until it has written a checkpoint: the seconds until then, and its bytes.
fn write_checkpoint(folder: &Path, route: Route) -> (f64, u64) {
    let gateway = gateway(folder, route);
    let begun = Instant::now();
    let path = CheckpointFile::Latest.path(folder);
    let bytes = loop {
        if let Ok(found) = std::fs::metadata(&path) {
            break found.len();
        }
        assert!(begun.elapsed() < CHECKPOINT_PATIENCE, "there is a checkpoint");
        std::thread::sleep(Duration::from_millis(100));
    };
    let seconds = begun.elapsed().as_secs_f64();
    gateway.drain();
    gateway.join();
    (seconds, bytes)
}

fn config(folder: &Path, route: Route) -> GatewayConfig {
    // There is no listener at this address.
    let venue = "127.0.0.1:1".parse().expect("an address");
    let mut config = GatewayConfig {
        journal: Some((folder.to_owned(), Level::Os)),
        route,
        ..GatewayConfig::demo(ACCOUNTS, venue)
    };
    config.venues[0].limits.when_full = WhenFull::Refuse;
    config
}

/// One journal and its state.
struct Book {
    journal: Rc<Journal>,
    /// The time of the next record.
    t_ns: u64,
    /// Numbers used upstream, and messages received from there.
    number: u32,
    heard: u64,
}

/// Writes orders until the journals have this many bytes together; returns their numbers of records and bytes.
fn write(folder: &Path, bytes: u64, route: Route) -> (u64, u64) {
    clear(folder);
    let runtime = Runtime::new(&Config::with_driver(Driver::Epoll)).expect("epoll runs here");
    runtime.block_on(async {
        let mut books = Vec::new();
        for worker in 0..WORKERS as u16 {
            let recovered =
                journal::recover(folder, worker, &mut |_, _| Ok(())).expect("the folder can be used");
            let config = JournalConfig::new(folder.to_owned(), worker, Level::Os);
            let journal = Journal::open(config, &recovered).await.expect("the folder can be used");
            journal.start();
            let mut book = Book { journal, t_ns: 0, number: 0, heard: 0 };
            book.append(VENUES_NAMED, 0, &[br#"["DEMO"]"#]);
            let key = u32::from(worker) * SESSIONS_PER_WORKER;
            book.append(SESSION_JOINED, key, &[&[EPOCH as u8], b"DAY       "]);
            books.push(book);
        }
        let mut sequences = vec![0; ACCOUNTS as usize];
        let written =
            |books: &[Book]| -> u64 { books.iter().map(|book| book.journal.counters().bytes()).sum() };
        for user_ref_num in 1.. {
            for account in 0..ACCOUNTS {
                books.iter_mut().for_each(|book| book.t_ns += NS_PER_ORDER);
                trade(&mut books, account, user_ref_num, route, &mut sequences[account as usize]);
            }
            for book in &books {
                book.journal.room().await;
            }
            if written(&books) >= bytes {
                break;
            }
        }
        for book in &books {
            book.journal.close().await;
        }
        (books.iter().map(|book| book.journal.last()).sum(), written(&books))
    })
}

impl Book {
    /// Appends a record.
    fn append(&mut self, kind: u8, session: u32, payload: &[&[u8]]) {
        self.journal.append(kind, session, self.t_ns, payload).expect("there is room");
    }
}

/// One order that is sent, accepted and executed.
fn trade(books: &mut [Book], account: u32, user_ref_num: u32, route: Route, sequence: &mut u64) {
    let home = account as usize % WORKERS;
    let sender = if route == Route::Own { home } else { (home + 1) % WORKERS };
    let name: Name<6> = format!("C{:05}", account + 1).parse().expect("a name");
    let key = sender as u32 * SESSIONS_PER_WORKER;
    books[sender].number += 1;
    let (number, mut raw) = (books[sender].number, order());
    set_inbound_user_ref_num(&mut raw, user_ref_num);
    let head = |upstream: u32| [&upstream.to_le_bytes()[..], name.as_bytes(), &[0; 2]].concat();
    if sender != home {
        books[home].append(INBOUND, account, &[&head(0), &raw]);
    }
    books[sender].append(SENT, key | (EPOCH as u32) << 16, &[&head(number), &raw]);
    for mut answer in [accepted(), executed()] {
        set_outbound_user_ref_num(&mut answer, user_ref_num);
        *sequence += 1;
        books[sender].heard += 1;
        let of = u64::from(key) << 48 | EPOCH << 40 | books[sender].heard;
        let head = [&sequence.to_le_bytes()[..], &of.to_le_bytes(), name.as_bytes(), &[0; 2]].concat();
        books[home].append(SEQUENCED, account, &[&head, &answer]);
    }
}

fn enter() -> Enter {
    Enter {
        user_ref_num: 1,
        side: b'B',
        quantity: 100,
        symbol: Symbol(*b"WEIR    "),
        price: 10_000,
        time_in_force: b'0',
        display: b'Y',
        capacity: b'P',
        intermarket_sweep: b'N',
        cross_type: b'N',
        client_order_id: ClientOrderId([b' '; 14]),
    }
}

fn order() -> Vec<u8> {
    let mut raw = Vec::new();
    Inbound::Enter(enter(), Appendage::EMPTY).encode(&mut raw);
    raw
}

fn accepted() -> Vec<u8> {
    let mut raw = Vec::new();
    Outbound::Accepted(Accepted::of(&enter(), 1, 1)).encode(&mut raw);
    raw
}

fn executed() -> Vec<u8> {
    let mut raw = Vec::new();
    let executed = Executed {
        timestamp_ns: 1,
        user_ref_num: 1,
        quantity: 100,
        price: 10_000,
        liquidity: b'A',
        match_number: 1,
    };
    Outbound::Executed(executed).encode(&mut raw);
    raw
}

fn clear(folder: &Path) {
    if folder.exists() {
        std::fs::remove_dir_all(folder).expect("it is ours");
    }
}
