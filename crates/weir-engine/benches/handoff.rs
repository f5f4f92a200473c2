//! The cost of handing a message to another core: each strategy of the hand-off, and as references a bare ring with
//! both sides spinning, one eventfd written for each message, and `IORING_OP_MSG_RING` as the data path.
//!
//! `cargo bench -p weir-engine --bench handoff [-- --rounds 3 --ms 300 --driver
//! epoll]`: the producer is pinned to the second CPU, the consumer to the first; a message has 16 bytes and a queue
//! 1024 places. Rounds are interleaved, and each line is the median of its rounds. Without `--bench`, as
//! `cargo test --benches` runs it, everything runs only briefly, to check that all messages arrive.
//!
//! - producer ns/msg: wall time per message while it saturates, otherwise the time in the calls that hand over;
//! - wakes/msg: system calls made to wake; sleeps/msg: voluntary context switches of the consumer;
//! - p50, p99: from just before the push to just after the take; of every message when paced, otherwise of one in 64.

#![expect(clippy::print_stdout, reason = "the table is what it is for")]

#[path = "../tests/it/random.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod random;

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use crossbeam_utils::CachePadded;
use io_uring::{IoUring, opcode, types::Fd};
use rustix::event::EventfdFlags;
use weir_engine::{
    Config, DriverChoice, Runtime,
    handoff::{self, Options, Port, Priority, Strategy},
    time::{self, monotonic},
};
use weir_sys::{affinity, usage};

use random::Random;

/// When it was pushed, in nanoseconds, or zero; and its number.
type Message = [u64; 2];

/// The number of the last message.
const LAST: u64 = u64::MAX;
/// Places of every queue.
const SLOTS: usize = 1024;
/// While saturating, one message in this many carries a time stamp, and this many are pushed in a turn.
const BATCH: u64 = 64;
/// Spin budget of `mesh-spin`.
const SPIN: Duration = Duration::from_micros(50);
/// Most latencies kept from one run.
const SAMPLES_MAX: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mechanism {
    /// A bare ring, both sides spinning.
    Spin,
    /// As `Spin`, with an eventfd written for each message, on which the consumer waits.
    EventfdEach,
    /// A message between two io_urings for each message.
    MsgRingEach,
    Handoff(Strategy),
}

const MECHANISMS: [Mechanism; 9] = [
    Mechanism::Spin,
    Mechanism::EventfdEach,
    Mechanism::MsgRingEach,
    Mechanism::Handoff(Strategy::Naive),
    Mechanism::Handoff(Strategy::Edge),
    Mechanism::Handoff(Strategy::Armed),
    Mechanism::Handoff(Strategy::Mesh),
    Mechanism::Handoff(Strategy::MeshSpin),
    Mechanism::Handoff(Strategy::MsgRing),
];

impl Mechanism {
    fn name(self) -> String {
        match self {
            Mechanism::Spin => "spin".into(),
            Mechanism::EventfdEach => "eventfd-each".into(),
            Mechanism::MsgRingEach => "msgring-each".into(),
            Mechanism::Handoff(Strategy::MeshSpin) => format!("mesh-spin{}", SPIN.as_micros()),
            Mechanism::Handoff(strategy) => strategy.name().into(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Pace {
    Saturating,
    /// Messages per second.
    Uniform(f64),
    Poisson(f64),
}

const PACES: [Pace; 5] = [
    Pace::Saturating,
    Pace::Uniform(10_000.0),
    Pace::Uniform(50_000.0),
    Pace::Poisson(50_000.0),
    Pace::Uniform(200_000.0),
];

impl Pace {
    fn name(self) -> String {
        match self {
            Pace::Saturating => "saturating".into(),
            Pace::Uniform(rate) => format!("{}k/s", rate / 1000.0),
            Pace::Poisson(rate) => format!("{}k/s Poisson", rate / 1000.0),
        }
    }
}

/// The time of the next message.
struct Schedule {
    pace: Pace,
    next_ns: f64,
    random: Random,
}

impl Schedule {
    fn new(pace: Pace) -> Self {
        Self { pace, next_ns: monotonic().as_nanos() as f64, random: Random::new(7) }
    }

    /// Waits, spinning, until the next message is due; returns its time stamp.
    fn wait(&mut self) -> u64 {
        let gap_ns = match self.pace {
            Pace::Saturating => return monotonic().as_nanos(),
            Pace::Uniform(rate) => 1e9 / rate,
            Pace::Poisson(rate) => -(1.0 - self.fraction()).ln() * 1e9 / rate,
        };
        self.next_ns += gap_ns;
        loop {
            let now = monotonic().as_nanos();
            if now as f64 >= self.next_ns {
                return now;
            }
            std::hint::spin_loop();
        }
    }

    fn fraction(&mut self) -> f64 {
        self.random.next() as f64 / u64::MAX as f64
    }
}

/// The result of one run.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    per_second: f64,
    producer_ns: f64,
    wakes: f64,
    sleeps: f64,
    p50_us: f64,
    p99_us: f64,
    cpu_percent: f64,
}

/// The report of the producer's side.
#[derive(Clone, Copy, Debug)]
struct Produced {
    messages: u64,
    busy_ns: u64,
    wakes: u64,
}

/// The consumer's observations.
struct Notes {
    next: u64,
    latencies_ns: Vec<u64>,
}

impl Notes {
    fn new() -> Self {
        Self { next: 0, latencies_ns: Vec::with_capacity(SAMPLES_MAX) }
    }

    /// True: it was the last message.
    fn take(&mut self, [stamp, number]: Message) -> bool {
        if stamp != 0 && self.latencies_ns.len() < SAMPLES_MAX {
            self.latencies_ns.push(monotonic().as_nanos().saturating_sub(stamp));
        }
        assert!(number == self.next || number == LAST, "{number} after {}", self.next);
        self.next += 1;
        number == LAST
    }
}

/// The bare ring: only two positions and the slots.
struct Bare {
    head: CachePadded<AtomicUsize>,
    tail: CachePadded<AtomicUsize>,
    slots: Box<[[AtomicU64; 2]]>,
}

impl Bare {
    fn new() -> Arc<Self> {
        let slot = |_| [AtomicU64::new(0), AtomicU64::new(0)];
        Arc::new(Self {
            head: CachePadded::default(),
            tail: CachePadded::default(),
            slots: (0..SLOTS).map(slot).collect(),
        })
    }

    fn push(&self, tail: &mut usize, head_seen: &mut usize, message: Message) {
        while *tail - *head_seen == SLOTS {
            *head_seen = self.head.load(Ordering::Acquire);
            std::hint::spin_loop();
        }
        let slot = &self.slots[*tail % SLOTS];
        slot[0].store(message[0], Ordering::Relaxed);
        slot[1].store(message[1], Ordering::Relaxed);
        *tail += 1;
        self.tail.store(*tail, Ordering::Release);
    }

    fn pop(&self, head: &mut usize, tail_seen: &mut usize) -> Option<Message> {
        if *head == *tail_seen {
            *tail_seen = self.tail.load(Ordering::Acquire);
            if *head == *tail_seen {
                return None;
            }
        }
        let slot = &self.slots[*head % SLOTS];
        let message = [slot[0].load(Ordering::Relaxed), slot[1].load(Ordering::Relaxed)];
        *head += 1;
        self.head.store(*head, Ordering::Release);
        Some(message)
    }
}

/// Produces by a direct call for `length`.
fn produce(pace: Pace, length: Duration, wakes_each: u64, mut push: impl FnMut(Message)) -> Produced {
    let (mut schedule, start) = (Schedule::new(pace), monotonic());
    let (mut number, mut busy_ns, mut now) = (0, 0, 0);
    while now < (start + length).as_nanos() {
        let is_stamped = pace != Pace::Saturating || number % BATCH == 0;
        let stamp = if is_stamped { schedule.wait() } else { 0 };
        push([stamp, number]);
        number += 1;
        if is_stamped {
            now = monotonic().as_nanos();
            busy_ns += now - stamp;
        }
    }
    if pace == Pace::Saturating {
        busy_ns = now - start.as_nanos();
    }
    push([0, LAST]);
    Produced { messages: number + 1, busy_ns, wakes: wakes_each * (number + 1) }
}

/// Runs the consumer here and the producer on another thread.
fn measure(
    cpus: (usize, usize),
    produce: impl FnOnce() -> Produced + Send + 'static,
    consume: impl FnOnce(&mut Notes),
) -> io::Result<Row> {
    affinity::pin_current_thread(&[cpus.0])?;
    let producer = thread::spawn(move || affinity::pin_current_thread(&[cpus.1]).map(|()| produce()));
    let mut notes = Notes::new();
    let (before, start) = (usage::thread_usage()?, monotonic());
    consume(&mut notes);
    let (used, wall) = (usage::thread_usage()?.since(&before), monotonic().since(start));
    let produced = producer.join().expect("the producer ends")?;
    assert_eq!(notes.next, produced.messages, "every message arrives");
    notes.latencies_ns.sort_unstable();
    let percentile = |per_mille: usize| {
        let place = notes.latencies_ns.len().saturating_sub(1) * per_mille / 1000;
        notes.latencies_ns.get(place).map_or(0.0, |ns| *ns as f64 / 1000.0)
    };
    let messages = produced.messages as f64;
    Ok(Row {
        per_second: messages / wall.as_secs_f64(),
        producer_ns: produced.busy_ns as f64 / messages,
        wakes: produced.wakes as f64 / messages,
        sleeps: used.context_switches_voluntary as f64 / messages,
        p50_us: percentile(500),
        p99_us: percentile(990),
        cpu_percent: (used.user_ns + used.system_ns) as f64 / wall.as_nanos() as f64 * 100.0,
    })
}

fn spin(pace: Pace, length: Duration, cpus: (usize, usize)) -> io::Result<Row> {
    let ring = Bare::new();
    let writer = Arc::clone(&ring);
    let produce = move || {
        let (mut tail, mut head_seen) = (0, 0);
        produce(pace, length, 0, |message| writer.push(&mut tail, &mut head_seen, message))
    };
    measure(cpus, produce, |notes| {
        let (mut head, mut tail_seen) = (0, 0);
        loop {
            match ring.pop(&mut head, &mut tail_seen) {
                Some(message) if notes.take(message) => return,
                Some(_) => {}
                None => std::hint::spin_loop(),
            }
        }
    })
}

fn eventfd_each(pace: Pace, length: Duration, cpus: (usize, usize)) -> io::Result<Row> {
    let ring = Bare::new();
    let event: Arc<OwnedFd> = Arc::new(rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?);
    let (writer, bell) = (Arc::clone(&ring), Arc::clone(&event));
    let produce = move || {
        let (mut tail, mut head_seen) = (0, 0);
        produce(pace, length, 1, |message| {
            writer.push(&mut tail, &mut head_seen, message);
            rustix::io::write(&*bell, &1u64.to_ne_bytes()).expect("an eventfd takes it");
        })
    };
    measure(cpus, produce, |notes| {
        let (mut head, mut tail_seen) = (0, 0);
        loop {
            rustix::io::read(&*event, &mut [0; 8]).expect("an eventfd");
            while let Some(message) = ring.pop(&mut head, &mut tail_seen) {
                if notes.take(message) {
                    return;
                }
            }
        }
    })
}

/// Sends one message to a ring and waits for its completion: a full ring refuses it, and then it is sent again.
fn send_message(ring: &mut IoUring, target: Fd, [stamp, number]: Message) {
    loop {
        let number = if number == LAST { -1 } else { (number & 0x7fff_ffff) as i32 };
        // The length of a message must not be negative: the highest number marks the last message.
        let length = if number < 0 { i32::MAX } else { number };
        let entry = opcode::MsgRingData::new(target, length, stamp, None).build();
        // SAFETY: the entry names no memory, and the descriptor is open as long as the consumer runs.
        unsafe { ring.submission().push(&entry) }.expect("one at a time");
        while ring.submit_and_wait(1).is_err() {}
        if ring.completion().next().is_some_and(|completion| completion.result() >= 0) {
            return;
        }
        thread::yield_now();
    }
}

fn msgring_each(pace: Pace, length: Duration, cpus: (usize, usize)) -> io::Result<Row> {
    let mut consumer: IoUring = IoUring::builder().setup_cqsize(4096).build(8)?;
    let target = Fd(consumer.as_raw_fd());
    let mut producer = IoUring::new(8)?;
    let produce = move || produce(pace, length, 1, |message| send_message(&mut producer, target, message));
    measure(cpus, produce, |notes| {
        loop {
            while consumer.submit_and_wait(1).is_err() {}
            for completion in consumer.completion() {
                let number = completion.result() as u64;
                let number = if completion.result() == i32::MAX { LAST } else { number };
                if notes.take([completion.user_data(), number]) {
                    return;
                }
            }
        }
    })
}

/// The producer's task: when saturating it hands over a batch a turn, when paced one message a turn.
async fn produce_task(port: Rc<Port<Message>>, pace: Pace, length: Duration) -> Produced {
    let (mut schedule, start) = (Schedule::new(pace), monotonic());
    let (mut number, mut busy_ns, mut now) = (0, 0, 0);
    while now < (start + length).as_nanos() {
        let stamp = schedule.wait();
        let count = if pace == Pace::Saturating { BATCH } else { 1 };
        for place in 0..count {
            let stamp = if place == 0 { stamp } else { 0 };
            push(&port, [stamp, number]).await;
            number += 1;
        }
        if port.is_congested(0) {
            port.room(0).await.expect("the consumer waits for the last message");
        } else {
            time::yield_now().await;
        }
        now = monotonic().as_nanos();
        busy_ns += now - stamp;
    }
    if pace == Pace::Saturating {
        busy_ns = now - start.as_nanos();
    }
    push(&port, [0, LAST]).await;
    // The consumer may already have taken everything, and ended.
    let _ = port.room(0).await;
    Produced { messages: number + 1, busy_ns, wakes: port.counters().stats().wakes_sent }
}

async fn push(port: &Port<Message>, message: Message) {
    while port.push(0, Priority::Request, message).is_err() {
        port.room(0).await.expect("the consumer waits for the last message");
    }
}

fn by_handoff(
    strategy: Strategy,
    config: &Config,
    pace: Pace,
    length: Duration,
    cpus: (usize, usize),
) -> io::Result<Row> {
    let options = Options { strategy, spin: SPIN, ring_slots: SLOTS, overflow_max: 4096 };
    let mut ports = handoff::group::<Message>(2, &options);
    let (theirs, ours) = (ports.swap_remove(1), ports.swap_remove(0));
    let mut config = config.clone();
    if strategy == Strategy::MsgRing {
        config.driver = DriverChoice::Named(weir_engine::Driver::Uring);
    }
    let runtime = Runtime::new(&config).map_err(io::Error::other)?;
    let (begin, begun) = mpsc::channel::<()>();
    let produce = move || {
        let runtime = Runtime::new(&config).expect("as the consumer's");
        runtime.block_on(async {
            theirs.attach().expect("as the consumer's");
            begun.recv().expect("the consumer begins");
            produce_task(Rc::new(theirs), pace, length).await
        })
    };
    measure(cpus, produce, |notes| {
        runtime.block_on(async {
            ours.attach().expect("the driver takes part");
            begin.send(()).expect("the producer waits");
            loop {
                ours.ready().await;
                while let Some((_, message)) = ours.take() {
                    if notes.take(message) {
                        return;
                    }
                }
            }
        });
        assert_eq!(ours.counters().stats().wakes_recovered, 0, "{strategy}");
    })
}

fn run(mechanism: Mechanism, config: &Config, pace: Pace, length: Duration) -> io::Result<Row> {
    let allowed = ALLOWED.get_or_init(|| affinity::allowed_cpus().unwrap_or_default());
    let cpus = match allowed[..] {
        [first, second, ..] => (first, second),
        [only] => (only, only),
        [] => (0, 0),
    };
    match mechanism {
        Mechanism::Spin => spin(pace, length, cpus),
        Mechanism::EventfdEach => eventfd_each(pace, length, cpus),
        Mechanism::MsgRingEach => msgring_each(pace, length, cpus),
        Mechanism::Handoff(strategy) => by_handoff(strategy, config, pace, length, cpus),
    }
}

/// CPUs that this process could use at its start, before a run pinned its thread.
static ALLOWED: std::sync::OnceLock<Vec<usize>> = std::sync::OnceLock::new();

fn median(rows: &[Row], value: impl Fn(&Row) -> f64) -> f64 {
    let mut values: Vec<f64> = rows.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn print(pace: Pace, mechanism: Mechanism, rows: &[Row]) {
    let value = |of: fn(&Row) -> f64| median(rows, of);
    println!(
        "| {} | {} | {} | {:.0}k | {:.0} | {:.4} | {:.4} | {:.2} | {:.1} | {:.0} |",
        pace.name(),
        mechanism.name(),
        rows.len(),
        value(|row| row.per_second) / 1000.0,
        value(|row| row.producer_ns),
        value(|row| row.wakes),
        value(|row| row.sleeps),
        value(|row| row.p50_us),
        value(|row| row.p99_us),
        value(|row| row.cpu_percent),
    );
}

fn argument(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.next()?;
    arguments.next()
}

fn main() {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let number = |name: &str| argument(name).and_then(|text| text.parse::<u64>().ok());
    let rounds = number("--rounds").unwrap_or(if is_bench { 3 } else { 1 });
    let length = Duration::from_millis(number("--ms").unwrap_or(if is_bench { 300 } else { 5 }));
    let driver = argument("--driver").unwrap_or_else(|| "epoll".into());
    let config = Config { driver: driver.parse().expect("a driver"), ..Config::default() };
    println!(
        "| rate | mechanism | n | msg/s | producer ns/msg | wakes/msg | sleeps/msg | p50 us | p99 us | CPU % |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for pace in PACES {
        let mut rows: Vec<Vec<Row>> = vec![Vec::new(); MECHANISMS.len()];
        for _ in 0..rounds {
            for (mechanism, rows) in MECHANISMS.into_iter().zip(&mut rows) {
                match run(mechanism, &config, pace, length) {
                    Ok(row) => rows.push(row),
                    Err(error) => println!("{} cannot run here: {error}", mechanism.name()),
                }
            }
        }
        for (mechanism, rows) in MECHANISMS.into_iter().zip(&rows) {
            if !rows.is_empty() {
                print(pace, mechanism, rows);
            }
        }
    }
}
