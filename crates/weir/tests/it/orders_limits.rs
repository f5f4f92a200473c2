//! An exchange and a gateway at the limits of their processes: descriptors run out, or rise beyond what select can
//! watch, and an exchange that is slow must not fill the gateway's memory.

use std::{
    collections::VecDeque,
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use weir_proto::{
    ouch::{Accepted, Inbound, Outbound, codes::order_state},
    soup::{Deframer, LoginAccepted, LoginRequest, SEQUENCED, SERVER_HEARTBEAT, UNSEQUENCED, encode_frame},
};
use weir_record::engine::ServerStats;

use super::{
    harness::{PATIENCE, Running, StatsReader, WEIR, until},
    order_kill::{Session, order},
};

const DRIVERS: [&str; 4] = ["uring", "epoll", "poll", "select"];

/// As many descriptors as a process may have, in the words of a shell.
const AS_MANY_AS_MAY_BE: &str = "$(ulimit -Hn)";

/// Most unanswered orders of a client.
const AHEAD_MAX: u32 = 5000;

/// Servers started so far: each has a statistics socket of its own name.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// An exchange or a gateway.
struct Node {
    process: Running,
    address: String,
    /// Connected from the start: later there may be no descriptor for it.
    stats: StatsReader,
}

impl Node {
    /// Starts one in a shell with this limit of descriptors. `None`, and a line that says so, when the kernel refuses
    /// its driver.
    fn start(descriptors: &str, driver: &str, words: &[&str]) -> Option<Self> {
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let socket = format!("@weir-it-orders-limits-{}-{number}", std::process::id());
        let line = format!("ulimit -n {descriptors}; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &line, WEIR, "serve"]).args(words);
        command.args(["--driver", driver, "--listen", "127.0.0.1:0", "--stats-socket", &socket]);
        let process = Running::start(&mut command);
        match process.next_line().as_deref().and_then(|line| line.strip_prefix("listening on ")) {
            Some(address) => {
                let mut node =
                    Self { address: address.to_owned(), process, stats: StatsReader::connect(&socket) };
                // Once it has answered it has all its descriptors.
                node.ask();
                Some(node)
            }
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

    fn ask(&mut self) -> ServerStats {
        self.stats.ask("")
    }

    fn terminate(mut self) {
        self.process.signal(Signal::TERM);
        assert_eq!(self.process.wait(PATIENCE), 0);
    }
}

/// An exchange, and a gateway in front of it if the test is about the gateway.
fn with_each_node(driver: &str, descriptors: &str, look: impl Fn(&mut Node)) {
    let Some(mut exchange) = Node::start(descriptors, driver, &["exchange", "--demo", "2"]) else { return };
    look(&mut exchange);
    let words = ["gateway", "--demo", "2", "--upstream", &exchange.address];
    let mut gateway = Node::start(descriptors, driver, &words).expect("the exchange runs on it");
    look(&mut gateway);
    gateway.terminate();
    exchange.terminate();
}

/// Sends orders until this many are answered, one after the other.
fn trade(session: &mut Session, numbers: std::ops::Range<u32>) {
    for number in numbers {
        session.send(std::iter::once(order(number, "O")));
        let mut answers = Vec::new();
        while answers.is_empty() {
            let take = |kind: u8, payload: &[u8]| (kind == SEQUENCED).then(|| payload.to_vec());
            answers = session.read(take).expect("the server goes on");
        }
        let answer = Outbound::decode(&answers[0]).expect("a message").0;
        assert!(matches!(answer, Outbound::Accepted(accepted) if accepted.user_ref_num == number));
    }
}

/// Waits until the server has been silent for about a second.
fn wait_for_heartbeat(session: &mut Session) {
    let mut beats = Vec::new();
    while beats.is_empty() {
        beats = session.read(|kind, _| (kind == SERVER_HEARTBEAT).then_some(())).expect("the server goes on");
    }
}

#[test]
fn without_descriptors_sessions_live_on_accepting_rests_and_goes_on_when_there_are_some() {
    const DESCRIPTORS: usize = 64;
    let look = |node: &mut Node| {
        let mut session = Session::login(&node.address, "C00001", 0).expect("it is let in");
        let idle: Vec<TcpStream> =
            (0..DESCRIPTORS).map(|_| TcpStream::connect(&node.address).expect("it listens")).collect();
        until("no descriptor is left", || node.ask().total.accepts_starved > 0);
        trade(&mut session, 1..50);
        let (begun, before) = (Instant::now(), node.ask().total);
        wait_for_heartbeat(&mut session);
        let since = node.ask().total.since(&before);
        // It checks ten times a second whether descriptors are available again.
        let turns_max = 50.0 * (1.0 + begun.elapsed().as_secs_f64());
        assert!((since.turns as f64) < turns_max, "{} turns of at most {turns_max}: {since:?}", since.turns);
        trade(&mut session, 50..100);
        drop(idle);
        until("there is room for another one", || Session::login(&node.address, "C00002", 0).is_some());
        trade(&mut session, 100..110);
    };
    thread::scope(|scope| {
        for driver in DRIVERS {
            scope.spawn(move || with_each_node(driver, &DESCRIPTORS.to_string(), look));
        }
    });
}

#[test]
fn descriptors_that_select_cannot_watch_are_closed_and_nobody_else_notices() {
    const CONNECTIONS: u64 = 1100;
    const WATCHED_MAX: u64 = 1024;
    let limit = weir_evidence::limits::raise_nofile().expect("up to the hard limit it may be raised");
    if limit < 2 * CONNECTIONS {
        println!("skipped: the hard limit of descriptors is {limit}: raise it to {}", 2 * CONNECTIONS);
        return;
    }
    with_each_node("select", AS_MANY_AS_MAY_BE, |node| {
        let mut session = Session::login(&node.address, "C00001", 0).expect("it is let in");
        let before = node.ask().total.accepts;
        let idle: Vec<TcpStream> =
            (0..CONNECTIONS).map(|_| TcpStream::connect(&node.address).expect("it listens")).collect();
        until("all are accepted", || node.ask().total.accepts - before == CONNECTIONS);
        until("those that are too many are closed", || node.ask().total.connections_open < WATCHED_MAX);
        let node_stats = node.ask().node.expect("it has sessions");
        assert_eq!(node_stats.logins.get("too_many_from_address"), None, "that was not the limit");
        trade(&mut session, 1..50);
        drop(idle);
        until("there is room for another one", || Session::login(&node.address, "C00002", 0).is_some());
        trade(&mut session, 50..60);
    });
}

/// One upstream session of a gateway to an exchange that answers on request.
struct Venue {
    socket: TcpStream,
    deframer: Deframer,
    frames: VecDeque<(u8, Vec<u8>)>,
    user: String,
}

impl Venue {
    fn accept(listener: &TcpListener) -> Self {
        let (socket, _) = listener.accept().expect("the gateway comes");
        socket.set_nodelay(true).expect("a socket");
        let mut venue =
            Self { socket, deframer: Deframer::new(4096), frames: VecDeque::new(), user: String::new() };
        let (_, login) = venue.frame().expect("a login");
        venue.user = LoginRequest::parse(&login).expect("a login").username.to_string();
        let mut out = Vec::new();
        LoginAccepted { session: "DAY".parse().expect("a name"), next_sequence: 1 }.encode(&mut out);
        say(&Outbound::AccountQueryResponse { timestamp_ns: 1, next_user_ref_num: 1 }, &mut out);
        venue.socket.write_all(&out).expect("the gateway listens");
        venue
    }

    fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        while self.frames.is_empty() {
            let mut bytes = [0; 64 << 10];
            let count = self.socket.read(&mut bytes).ok().filter(|count| *count > 0)?;
            let mut input = &bytes[..count];
            while let Some(frame) = self.deframer.next(&mut input).expect("frames are right") {
                self.frames.push_back((frame.kind, frame.payload.to_vec()));
            }
        }
        self.frames.pop_front()
    }

    /// Sends heartbeats and nothing else, until [`Silence::end`]. On a slow machine the gateway would give up a venue
    /// without them.
    fn be_silent(self) -> Silence {
        let (end, ended) = mpsc::channel::<()>();
        let beating = thread::spawn(move || {
            let mut venue = self;
            let mut beat = Vec::new();
            encode_frame(SERVER_HEARTBEAT, &[], &mut beat);
            while ended.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                venue.socket.write_all(&beat).expect("the gateway listens");
            }
            venue
        });
        Silence { end, beating }
    }

    /// Accepts everything that comes, until the gateway goes, and never many more orders than the client has heard of.
    /// Nothing stays open.
    fn answer(mut self, heard: &AtomicU32) {
        let (mut out, mut answered) = (Vec::new(), 0);
        while let Some((kind, payload)) = self.frame() {
            if kind == UNSEQUENCED
                && let Ok(Inbound::Enter(enter, _)) = Inbound::decode(&payload)
            {
                say(&accepted(&enter), &mut out);
                answered += 1;
            }
            if self.frames.is_empty() {
                while answered > heard.load(Ordering::Relaxed).saturating_add(AHEAD_MAX) {
                    thread::yield_now();
                }
                if self.socket.write_all(&out).is_err() {
                    return;
                }
                out.clear();
            }
        }
    }
}

/// A session that only sends heartbeats.
struct Silence {
    end: mpsc::Sender<()>,
    beating: thread::JoinHandle<Venue>,
}

impl Silence {
    fn end(self) -> Venue {
        drop(self.end);
        self.beating.join().expect("it does not panic")
    }
}

fn say(message: &Outbound, out: &mut Vec<u8>) {
    let mut payload = Vec::new();
    message.encode(&mut payload);
    encode_frame(SEQUENCED, &payload, out);
}

/// An order that was taken and is over.
fn accepted(enter: &weir_proto::ouch::Enter) -> Outbound {
    Outbound::Accepted(Accepted {
        order_state: order_state::DEAD,
        ..Accepted::of(enter, 1, enter.user_ref_num.into())
    })
}

/// A line of `/proc/PID/status`, in KiB.
fn memory_kib(node: &Node, name: &str) -> u64 {
    let path = format!("/proc/{}/status", node.process.pid().as_raw_nonzero());
    let text = fs::read_to_string(path).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("Linux says it");
    let digits: String = line.chars().filter(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

/// Reads until this many orders are answered, and counts them.
fn hear(session: &mut Session, orders: u32, heard: &AtomicU32) {
    while heard.load(Ordering::Relaxed) < orders {
        let take = |kind: u8, _: &[u8]| (kind == SEQUENCED).then_some(());
        let count = session.read(take).expect("the gateway goes on").len() as u32;
        heard.fetch_add(count, Ordering::Relaxed);
    }
}

#[test]
fn an_exchange_that_is_slow_fills_no_memory_and_only_what_goes_there_is_refused() {
    const SENT_AHEAD_MAX: u32 = 20_000;
    // The default of a venue.
    const UNANSWERED_MAX: u32 = 4096;
    // In any queue of the gateway all of the orders would be 30 MB and more.
    const GROWTH_KIB_MAX: u64 = 8 << 10;
    // Receive buffers for the busiest moment are kept, up to a separate bound.
    const GROWTH_KIB_MAX_URING: u64 = 24 << 10;
    let orders = if std::env::var_os("WEIR_SLOW_TESTS").is_some() { 1_000_000 } else { 250_000 };
    for driver in DRIVERS {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let upstream = listener.local_addr().expect("it has one").to_string();
        let accepting = thread::spawn(move || [Venue::accept(&listener), Venue::accept(&listener)]);
        let words = ["gateway", "--demo", "2", "--workers", "2", "--upstream", &upstream];
        let Some(mut gateway) = Node::start(AS_MANY_AS_MAY_BE, driver, &words) else {
            // No client connects to the script; it ends with the process.
            continue;
        };
        let mut venues = accepting.join().expect("both workers log in");
        venues.sort_by(|first, second| first.user.cmp(&second.user));
        let [silent, quick] = venues;
        let silent = silent.be_silent();
        let answering = thread::spawn(move || quick.answer(&AtomicU32::new(u32::MAX)));
        let mut flood = Session::login(&gateway.address, "C00001", 0).expect("it is let in");
        let mut other = Session::login(&gateway.address, "C00002", 0).expect("it is let in");
        trade(&mut other, 1..200);
        let base_kib = memory_kib(&gateway, "VmRSS:");

        let heard = Arc::new(AtomicU32::new(0));
        let (mut sender, by_client) = (flood.twin(), Arc::clone(&heard));
        let sending = thread::spawn(move || {
            for first in (1..=orders).step_by(1000) {
                // A client that does not read its refusals is disconnected.
                while first > by_client.load(Ordering::Relaxed) + SENT_AHEAD_MAX {
                    thread::yield_now();
                }
                sender.send((first..first + 1000).map(|number| order(number, "F")));
            }
        });
        until("the first orders are under way", || gateway.ask().node.expect("one").orders >= 1000);
        let by_client = Arc::clone(&heard);
        let hearing = thread::spawn(move || {
            // The orders that may be without an answer, and refusals of all others.
            hear(&mut flood, orders - UNANSWERED_MAX, &by_client);
            flood
        });
        trade(&mut other, 200..2200);
        let mut flood = hearing.join().expect("all but these are refused");
        let silent_kib = memory_kib(&gateway, "VmHWM:");
        let (by_client, silent) = (Arc::clone(&heard), silent.end());
        let answering_late = thread::spawn(move || silent.answer(&by_client));
        hear(&mut flood, orders, &heard);
        sending.join().expect("all are taken in the end");
        let most_kib = memory_kib(&gateway, "VmHWM:");
        println!(
            "{driver}: {base_kib} KiB before, {silent_kib} KiB while it was silent, {most_kib} KiB at most"
        );
        let growth_kib_max = if driver == "uring" { GROWTH_KIB_MAX_URING } else { GROWTH_KIB_MAX };
        assert!(most_kib.saturating_sub(base_kib) < growth_kib_max, "{driver}: {base_kib} to {most_kib} KiB");
        gateway.terminate();
        answering.join().expect("it ends with the gateway");
        answering_late.join().expect("it ends with the gateway");
    }
}
