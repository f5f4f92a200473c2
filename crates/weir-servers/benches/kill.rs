//! The latency of a kill switch when the journal has failed: `cargo bench -p weir-servers --bench kill [-- FOLDER]`.
//!
//! Clients have 100,000 open orders at an exchange that keeps no orders itself; then the journals of all workers
//! fail, and all accounts are stopped. The output is the median of ten gateways and the slowest, of three times: when
//! the exchange has read the last cancel, which is when all are sent; when it has confirmed the last; and when the
//! caller that engaged the switch gets the answer. The folder is removed at the end; its default is the working
//! directory's `weir-kill-bench`.
#![expect(clippy::print_stdout, reason = "its output is the result")]

use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use weir_engine::{Config, Driver, Runtime, net::Address, serve::ServerConfig};
use weir_proto::{
    ouch::{
        Accepted, Appendage, Canceled, Enter, Inbound, Outbound, codes::cancel_reason, inbound_user_ref_num,
    },
    soup::{Deframer, LoginAccepted, LoginRequest, Name, SEQUENCED, UNSEQUENCED, encode_frame},
};
use weir_servers::{
    gateway::{GatewayConfig, GatewayServer},
    journal::{
        Level,
        faults::{Operation, Verdict},
    },
};
use weir_trading::WhenFull;

const ORDERS: usize = 100_000;
/// The limit in one session with the exchange; with one worker that session has all orders.
const OPEN_MAX: usize = 131_072;
const TIMES: usize = 10;
/// The goal for the median time until all cancels are sent.
const SENT_GOAL_MS: f64 = 100.0;
/// Orders that a client sends before it waits for their answers.
const CHUNK: usize = 500;
const PATIENCE: Duration = Duration::from_secs(60);
const EIO: i32 = 5;

static IS_BROKEN: AtomicBool = AtomicBool::new(false);

fn lose_all(_: u16, operation: &Operation) -> Verdict {
    match operation {
        Operation::Write { .. } if IS_BROKEN.load(SeqCst) => {
            Verdict::Refuse(io::Error::from_raw_os_error(EIO))
        }
        _ => Verdict::Pass,
    }
}

fn main() -> ExitCode {
    let named = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let folder = named.map_or_else(|| PathBuf::from("weir-kill-bench"), PathBuf::from);
    println!("{ORDERS} open orders, the journal has failed; milliseconds, median and most of {TIMES}");
    println!("{:<7} {:>7} {:>15} {:>15} {:>15}", "driver", "workers", "sent", "confirmed", "told");
    let mut missed = Vec::new();
    for driver in [Driver::Uring, Driver::Epoll] {
        if let Err(error) = Runtime::new(&Config::with_driver(driver)) {
            println!("{driver}: {error}");
            continue;
        }
        for workers in [1, 2] {
            let runs: Vec<Times> = (0..TIMES).map(|_| run(driver, workers, &folder)).collect();
            let of = |time: fn(&Times) -> Duration| median_and_most(&runs, time);
            let (sent, confirmed, told) = (of(|run| run.sent), of(|run| run.confirmed), of(|run| run.told));
            let [sent_shown, confirmed, told] =
                [sent, confirmed, told].map(|(median, most)| format!("{median:.1} {most:.1}"));
            println!("{:<7} {workers:>7} {sent_shown:>15} {confirmed:>15} {told:>15}", driver.name());
            if sent.0 > SENT_GOAL_MS {
                missed.push(format!("{:.1} ms on {driver} with {workers} workers", sent.0));
            }
        }
    }
    if missed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("all cancels are to be sent within {SENT_GOAL_MS} ms, and the median was {}", missed.join(", "));
    ExitCode::FAILURE
}

/// The median and the maximum of one of the times over all runs, in milliseconds.
fn median_and_most(runs: &[Times], time: fn(&Times) -> Duration) -> (f64, f64) {
    let mut all: Vec<f64> = runs.iter().map(|run| 1e3 * time(run).as_secs_f64()).collect();
    all.sort_unstable_by(f64::total_cmp);
    ((all[(TIMES - 1) / 2] + all[TIMES / 2]) / 2.0, all[TIMES - 1])
}

/// Times since the switch was engaged.
struct Times {
    sent: Duration,
    confirmed: Duration,
    told: Duration,
}

fn run(driver: Driver, workers: usize, folder: &Path) -> Times {
    clear(folder);
    IS_BROKEN.store(false, SeqCst);
    let cancels = Arc::new(Cancels::default());
    let venue = listen(&cancels);
    let mut server =
        ServerConfig::new(Config::with_driver(driver), "127.0.0.1:0".parse().expect("an address"));
    server.workers = workers;
    let gateway = GatewayServer::start(server, config(venue, folder)).expect("the driver runs here");
    assert!(gateway.wait_for_upstreams(PATIENCE), "{:?}", gateway.control().upstreams());
    // Each has another home worker.
    let mut clients = ["C00001", "C00002"].map(|name| Client::login(gateway.address(), name));
    for _ in (0..ORDERS).step_by(CHUNK * clients.len()) {
        clients.iter_mut().for_each(Client::send_chunk);
        clients.iter_mut().for_each(Client::hear_chunk);
    }
    IS_BROKEN.store(true, SeqCst);
    clients.iter_mut().for_each(Client::send_chunk);
    // Clients whose home worker's journal has failed are disconnected.
    clients.into_iter().for_each(Client::hear_end);
    let begun = Instant::now();
    let outcome = gateway.control().kill(None, true).expect_err("it is not kept");
    let told = begun.elapsed();
    let [at_venue] = &outcome.cancels[..] else { panic!("{outcome}") };
    let all = ORDERS as u64;
    assert_eq!((at_venue.orders, at_venue.sent, at_venue.confirmed), (all, all, all), "{outcome}");
    gateway.drain();
    gateway.join();
    clear(folder);
    let (read, confirmed) = cancels.last();
    Times { sent: read - begun, confirmed: confirmed - begun, told }
}

fn config(venue: Address, folder: &Path) -> GatewayConfig {
    let mut config = GatewayConfig {
        journal: Some((folder.to_owned(), Level::Os)),
        journal_faults: Some(lose_all),
        ..GatewayConfig::demo(2, venue)
    };
    config.venues[0].limits.open_max = OPEN_MAX;
    config.venues[0].limits.when_full = WhenFull::Refuse;
    config
}

fn clear(folder: &Path) {
    if folder.exists() {
        std::fs::remove_dir_all(folder).expect("it is ours");
    }
}

/// The number of cancels that the exchange has read, when it had all of them, and when it had confirmed them.
#[derive(Default)]
struct Cancels(Mutex<(usize, Option<Instant>, Option<Instant>)>);

impl Cancels {
    /// Records cancels that were read; they are confirmed now if `is_confirmed`, otherwise later.
    fn note(&self, count: usize, is_confirmed: bool) {
        let mut all = self.0.lock().expect("no panic");
        if is_confirmed {
            // The last call with `is_confirmed` sets the final time.
            all.2 = Some(Instant::now());
            return;
        }
        all.0 += count;
        if all.0 == ORDERS {
            all.1 = Some(Instant::now());
        }
    }

    fn last(&self) -> (Instant, Instant) {
        let (count, read, confirmed) = *self.0.lock().expect("no panic");
        assert_eq!(count, ORDERS, "each order is cancelled once");
        (read.expect("all were read"), confirmed.expect("all were confirmed"))
    }
}

/// An exchange that accepts every order, and cancels on request.
fn listen(cancels: &Arc<Cancels>) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it has one").into();
    let cancels = Arc::clone(cancels);
    thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let cancels = Arc::clone(&cancels);
            thread::spawn(move || serve(socket, &cancels));
        }
    });
    address
}

/// One read; retried after an interruption.
fn read(socket: &mut TcpStream, bytes: &mut [u8]) -> io::Result<usize> {
    loop {
        match socket.read(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

/// Serves until the gateway disconnects.
fn serve(mut socket: TcpStream, cancels: &Cancels) {
    socket.set_nodelay(true).expect("a socket");
    let (mut deframer, mut bytes) = (Deframer::new(4096), vec![0; 256 << 10]);
    loop {
        let Ok(count @ 1..) = read(&mut socket, &mut bytes) else { return };
        let (mut input, mut out, mut cancelled) = (&bytes[..count], Vec::new(), 0);
        while let Some(frame) = deframer.next(&mut input).expect("frames are right") {
            match frame.kind {
                b'L' => {
                    let session = "DAY".parse().expect("a name");
                    LoginAccepted { session, next_sequence: 1 }.encode(&mut out);
                }
                UNSEQUENCED => cancelled += usize::from(answer(frame.payload, &mut out)),
                _ => {}
            }
        }
        if cancelled > 0 {
            cancels.note(cancelled, false);
        }
        if socket.write_all(&out).is_err() {
            return;
        }
        if cancelled > 0 {
            cancels.note(0, true);
        }
    }
}

/// Appends the answer to a message, and returns whether it was a cancel.
fn answer(raw: &[u8], out: &mut Vec<u8>) -> bool {
    let mut say = |message: &Outbound| {
        let mut payload = Vec::new();
        message.encode(&mut payload);
        encode_frame(SEQUENCED, &payload, out);
    };
    let timestamp_ns = 1;
    match Inbound::decode(raw).expect("a message") {
        Inbound::AccountQuery => {
            say(&Outbound::AccountQueryResponse { timestamp_ns, next_user_ref_num: 1 });
            false
        }
        Inbound::Enter(enter, _) => {
            say(&Outbound::Accepted(Accepted::of(&enter, timestamp_ns, enter.user_ref_num.into())));
            false
        }
        message => {
            assert_eq!(raw[0], b'X', "{message:?}");
            let user_ref_num = inbound_user_ref_num(raw).expect("it has a number");
            let (quantity, reason) = (100, cancel_reason::USER);
            say(&Outbound::Canceled(Canceled { timestamp_ns, user_ref_num, quantity, reason }));
            true
        }
    }
}

struct Client {
    socket: TcpStream,
    deframer: Deframer,
    next: u32,
}

impl Client {
    fn login(gateway: &Address, name: &str) -> Self {
        let Address::Tcp(address) = gateway else { panic!("it listens on TCP") };
        let mut socket = TcpStream::connect(address).expect("it listens");
        socket.set_nodelay(true).expect("a socket");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let login = LoginRequest {
            username: name.parse().expect("a name"),
            password: "DEMO".parse().expect("a password"),
            session: Name::BLANK,
            sequence: 1,
            heartbeat_timeout_ms: None,
        };
        let mut frame = Vec::new();
        login.encode(&mut frame);
        socket.write_all(&frame).expect("the gateway listens");
        Self { socket, deframer: Deframer::new(4096), next: 1 }
    }

    fn send_chunk(&mut self) {
        let mut bytes = Vec::new();
        for _ in 0..CHUNK {
            let order = Enter {
                user_ref_num: self.next,
                side: b'B',
                quantity: 100,
                symbol: "WEIR".parse().expect("a symbol"),
                price: 10_000,
                time_in_force: b'0',
                display: b'Y',
                capacity: b'P',
                intermarket_sweep: b'N',
                cross_type: b'N',
                client_order_id: "ORDER".parse().expect("it is short"),
            };
            let mut payload = Vec::new();
            Inbound::Enter(order, Appendage::EMPTY).encode(&mut payload);
            encode_frame(UNSEQUENCED, &payload, &mut bytes);
            self.next += 1;
        }
        self.socket.write_all(&bytes).expect("the gateway listens");
    }

    /// Waits until every order of a chunk is accepted.
    fn hear_chunk(&mut self) {
        let mut taken = 0;
        while taken < CHUNK {
            let mut bytes = [0; 64 << 10];
            let count = read(&mut self.socket, &mut bytes).expect("the gateway goes on");
            assert!(count > 0, "the gateway goes on");
            let mut input = &bytes[..count];
            while let Some(frame) = self.deframer.next(&mut input).expect("frames are right") {
                if frame.kind == SEQUENCED {
                    assert_eq!(frame.payload[0], b'A', "it is taken");
                    taken += 1;
                }
            }
        }
    }

    /// Waits until the gateway has disconnected it.
    fn hear_end(mut self) {
        let mut bytes = [0; 64 << 10];
        // A connection that ends early returns an error, which also counts as an end.
        while read(&mut self.socket, &mut bytes).is_ok_and(|count| count > 0) {}
    }
}
