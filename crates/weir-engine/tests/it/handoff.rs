//! The hand-off between real workers: every strategy on every driver that has one. Tests beside the port cover one
//! port alone, and the model checker covers the wake protocols.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    rc::Rc,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    task::Poll,
    thread,
    time::Duration,
};

use weir_engine::{
    Config, Driver, Runtime, StartError,
    handoff::{self, HandoffCounters, Options, Port, Priority, Strategy},
    spawn, time,
};
use weir_engine_types::HandoffStats;

use crate::{
    board::Board,
    outcome::{Watchdog, note},
    random::{Random, fresh_seed},
    rig::is_slow_run,
};

/// The strategies that hand work over.
const STRATEGIES: [Strategy; 6] =
    [Strategy::Naive, Strategy::Edge, Strategy::Armed, Strategy::Mesh, Strategy::MeshSpin, Strategy::MsgRing];

fn configurations() -> Vec<(&'static str, Config)> {
    let mut tiny = Config::for_test(Driver::Uring);
    tiny.uring.entries = 4;
    let mut level = Config::for_test(Driver::Epoll);
    level.epoll.edge = false;
    vec![
        ("uring", Config::for_test(Driver::Uring)),
        ("uring_tiny_ring", tiny),
        ("epoll", Config::for_test(Driver::Epoll)),
        ("epoll_level", level),
        ("poll", Config::for_test(Driver::Poll)),
        ("select", Config::for_test(Driver::Select)),
    ]
}

/// Runs a body on every driver the kernel allows, with every strategy the driver allows.
fn everywhere(test: &str, body: impl Fn(&Config, Strategy, &str)) {
    for (name, config) in configurations() {
        if let Err(error @ StartError::Refused { .. }) = Runtime::new(&config) {
            note(&format!("{test}: skipped: {name}: {error}"));
            continue;
        }
        for strategy in STRATEGIES {
            let is_uring = name.starts_with("uring");
            if strategy != Strategy::MsgRing || is_uring {
                let _watchdog =
                    Watchdog::start(&format!("{test} {strategy} {name}"), Duration::from_secs(600));
                body(&config, strategy, &format!("{strategy} on {name}"));
            }
        }
    }
}

/// One thread and runtime for each worker, each with its port attached; returns their counts together.
fn workers<T, B, F>(config: &Config, count: usize, options: &Options, body: B) -> HandoffStats
where
    T: Send + 'static,
    B: Fn(Rc<Port<T>>) -> F + Clone + Send + 'static,
    F: Future<Output = ()> + 'static,
{
    let ports = handoff::group::<T>(count, options);
    let counters: Vec<Arc<HandoffCounters>> = ports.iter().map(Port::counters).collect();
    let threads: Vec<_> = ports
        .into_iter()
        .map(|port| {
            let (config, body) = (config.clone(), body.clone());
            thread::spawn(move || {
                let runtime = Runtime::new(&config).unwrap_or_else(|error| panic!("{error}"));
                runtime.block_on(async {
                    port.attach().unwrap_or_else(|error| panic!("{error}"));
                    let port = Rc::new(port);
                    body(Rc::clone(&port)).await;
                    for other in (0..port.workers()).filter(|other| *other != port.worker()) {
                        // Fails when that worker has taken everything and ended.
                        let _ = port.room(other).await;
                    }
                });
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
    let mut total = HandoffStats::default();
    counters.iter().for_each(|counters| total.merge(&counters.stats()));
    total
}

fn options(strategy: Strategy, ring_slots: usize, overflow_max: usize) -> Options {
    // Spinning is requested explicitly, because on a small machine it is off otherwise.
    Options { strategy, spin: Duration::from_micros(20), ring_slots, overflow_max }
}

/// A message that reveals a loss, a repetition or a reordering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbered {
    priority: Priority,
    number: u32,
    /// As large as a gateway's message.
    filling: [u64; 12],
}

impl Numbered {
    fn new(priority: Priority, number: u32) -> Self {
        Self { priority, number, filling: [u64::from(number).wrapping_mul(0x9e37_79b9); 12] }
    }
}

/// Hands over a message, and waits for room if there is none.
async fn push(port: &Port<Numbered>, to: usize, message: Numbered) {
    let mut message = message;
    while let Err(refused) = port.push(to, message.priority, message) {
        message = refused;
        port.room(to).await.expect("the other worker waits for all of it");
    }
}

#[test]
fn between_three_workers_every_message_arrives_once_and_in_order() {
    let each = if is_slow_run() { 1_000_000 } else { 4_000 };
    everywhere("three workers", |config, strategy, name| {
        let stats = workers(config, 3, &options(strategy, 16, 64), move |port| exchange(port, each));
        assert_eq!(stats.pushed, 6 * u64::from(each), "{name}");
        assert_eq!((stats.wakes_recovered, stats.depth), (0, 0), "{name}: {stats:?}");
        assert!(stats.overflow_depth_max <= 64 && stats.drains > 0, "{name}: {stats:?}");
    });
}

/// Sends `each` messages to each other worker and receives as many.
async fn exchange(port: Rc<Port<Numbered>>, each: u32) {
    let sender = Rc::clone(&port);
    let sending = spawn(async move {
        let others = (0..sender.workers()).filter(|other| *other != sender.worker());
        let others: Vec<usize> = others.collect();
        for number in 0..each {
            let priority = if number.is_multiple_of(3) { Priority::Response } else { Priority::Request };
            for &other in &others {
                push(&sender, other, Numbered::new(priority, number)).await;
            }
            if number % 40 == 0 {
                time::yield_now().await;
            }
        }
    });
    let mut last = vec![[None; 2]; port.workers()];
    let expected = (port.workers() - 1) * each as usize;
    let mut received = 0;
    while received < expected {
        port.ready().await;
        while let Some((from, message)) = port.take() {
            assert_eq!(message, Numbered::new(message.priority, message.number), "whole");
            let last = &mut last[from][usize::from(message.priority == Priority::Request)];
            let next = (last.map_or(0, |last| last + 1)..).find(|number| is_of(*number, message.priority));
            assert_eq!(Some(message.number), next, "from {from} in its priority");
            *last = Some(message.number);
            received += 1;
        }
    }
    sending.await;
}

fn is_of(number: u32, priority: Priority) -> bool {
    number.is_multiple_of(3) == (priority == Priority::Response)
}

#[test]
fn two_workers_with_full_queues_both_ways_do_not_wait_for_each_other() {
    let requests = if is_slow_run() { 1_000_000 } else { 5_000 };
    everywhere("full both ways", |config, strategy, name| {
        let stats = workers(config, 2, &options(strategy, 2, 4), move |port| ask_and_answer(port, requests));
        assert_eq!(stats.pushed, 4 * u64::from(requests), "{name}");
        assert_eq!((stats.wakes_recovered, stats.depth), (0, 0), "{name}: {stats:?}");
        assert!(stats.overflowed > 0, "{name}: the queues were never full");
    });
}

/// Sends requests to the other worker without a pause, and answers its requests.
async fn ask_and_answer(port: Rc<Port<Numbered>>, requests: u32) {
    let other = 1 - port.worker();
    let asker = Rc::clone(&port);
    let asking = spawn(async move {
        for number in 0..requests {
            push(&asker, other, Numbered::new(Priority::Request, number)).await;
        }
    });
    let (mut answered, mut answers) = (0, 0);
    let mut refused: Option<Numbered> = None;
    while answered < requests || answers < requests || refused.is_some() {
        if refused.is_none() {
            port.ready().await;
        } else {
            // The rule: no more requests until there is room, but responses continue.
            room_or_response(&port, other).await;
        }
        loop {
            refused = refused.take().and_then(|answer| port.push(other, Priority::Response, answer).err());
            let taken = if refused.is_some() { port.take_response() } else { port.take() };
            let Some((_, message)) = taken else { break };
            match message.priority {
                Priority::Response => {
                    assert_eq!(message, Numbered::new(Priority::Response, answers));
                    answers += 1;
                }
                Priority::Request => {
                    assert_eq!(message, Numbered::new(Priority::Request, answered));
                    answered += 1;
                    refused = Some(Numbered::new(Priority::Response, message.number));
                }
            }
        }
    }
    asking.await;
}

/// Waits for whichever comes first.
async fn room_or_response(port: &Port<Numbered>, to: usize) {
    let (mut room, mut response) = (pin!(port.room(to)), pin!(port.ready_response()));
    poll_fn(|context| match room.as_mut().poll(context) {
        Poll::Ready(outcome) => {
            outcome.expect("the other worker waits for the answer");
            Poll::Ready(())
        }
        Poll::Pending => response.as_mut().poll(context),
    })
    .await;
}

#[test]
fn congestion_is_said_and_ends_by_itself() {
    everywhere("congestion", |config, strategy, name| {
        let (filled, sent) = (Board::new(), Arc::new(AtomicU64::new(0)));
        let (full, count) = (filled.clone(), Arc::clone(&sent));
        let stats = workers(config, 2, &options(strategy, 8, 32), move |port| {
            let (full, count) = (full.clone(), Arc::clone(&count));
            async move {
                if port.worker() == 0 {
                    fill(&port, &full, &count).await;
                } else {
                    full.reached(1).await;
                    take_all(&port, &full, &count).await;
                }
            }
        });
        assert_eq!(stats.pushed, sent.load(SeqCst) + 1, "{name}");
        assert_eq!((stats.overflow_depth_max, stats.wakes_recovered), (32, 0), "{name}: {stats:?}");
    });
}

/// Pushes until nothing more fits, then waits for room.
async fn fill(port: &Port<Numbered>, full: &Board, count: &AtomicU64) {
    let mut number = 0;
    loop {
        // A turn in which all pushed messages move into the queue, or wait.
        time::yield_now().await;
        if port.push(1, Priority::Request, Numbered::new(Priority::Request, number)).is_err() {
            break;
        }
        number += 1;
    }
    assert!(port.is_congested(1));
    count.store(number.into(), SeqCst);
    full.post("full");
    port.room(1).await.expect("the other worker takes it");
    assert!(!port.is_congested(1));
    push(port, 1, Numbered::new(Priority::Response, number)).await;
    full.reached(2).await;
}

async fn take_all(port: &Port<Numbered>, full: &Board, count: &AtomicU64) {
    let expected = count.load(SeqCst);
    let (mut taken, mut last) = (0, false);
    while taken < expected || !last {
        port.ready().await;
        while let Some((_, message)) = port.take() {
            match message.priority {
                Priority::Request => {
                    assert_eq!(u64::from(message.number), taken);
                    taken += 1;
                }
                Priority::Response => last = true,
            }
        }
    }
    full.post("taken");
}

#[test]
fn idle_workers_sleep() {
    let _watchdog = Watchdog::start("idle workers", Duration::from_secs(60));
    let found = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&found);
    let config = Config::for_test(Driver::Epoll);
    let stats = workers::<Numbered, _, _>(&config, 3, &options(Strategy::MeshSpin, 256, 64), move |_| {
        let notes = Arc::clone(&notes);
        async move {
            let before = weir_sys::usage::thread_usage().expect("own usage");
            time::sleep(Duration::from_millis(2_200)).await;
            let used = weir_sys::usage::thread_usage().expect("own usage").since(&before);
            notes.lock().expect("nobody panicked").push(used.context_switches_voluntary);
        }
    });
    let switches = found.lock().expect("nobody panicked").clone();
    // Two periodic checks and the end of the sleep.
    assert!(switches.iter().all(|switches| (2..=6).contains(switches)), "{switches:?}");
    assert_eq!((stats.wakes_sent, stats.wakes_recovered, stats.wakes_spurious), (0, 0, 0));
}

/// A long exchange with random pauses on both sides. With `WEIR_SLOW_TESTS=1` it makes 10^8 hand-offs over all
/// strategies and drivers that matter for the wakes.
#[test]
fn a_soak_recovers_no_wake() {
    let per_pair: u32 = if is_slow_run() { 6_250_000 } else { 6_000 };
    let seed = fresh_seed();
    note(&format!("seed {seed}"));
    everywhere("soak", |config, strategy, name| {
        let options = options(strategy, 256, 4096);
        let stats = workers(config, 2, &options, move |port| soak(port, per_pair, seed));
        assert_eq!((stats.pushed, stats.wakes_recovered), (2 * u64::from(per_pair), 0), "{name}: {stats:?}");
        let per_handoff = stats.wakes_sent as f64 / stats.pushed as f64;
        note(&format!("{name}: {per_handoff:.3} wakes a hand-off, {} spurious", stats.wakes_spurious));
    });
}

async fn soak(port: Rc<Port<Numbered>>, each: u32, seed: u64) {
    let other = 1 - port.worker();
    let (sender, mut random) = (Rc::clone(&port), Random::new(seed + port.worker() as u64));
    let mut pauses = random.fork();
    let sending = spawn(async move {
        for number in 0..each {
            push(&sender, other, Numbered::new(Priority::Request, number)).await;
            match random.between(0, 2_000) {
                0 => time::sleep(Duration::from_micros(50)).await,
                1..=600 => time::yield_now().await,
                _ => (0..random.between(0, 20)).for_each(|_| std::hint::spin_loop()),
            }
        }
    });
    let mut next = 0;
    while next < each {
        port.ready().await;
        while let Some((_, message)) = port.take() {
            assert_eq!(message, Numbered::new(Priority::Request, next));
            next += 1;
        }
        (0..pauses.between(0, 400)).for_each(|_| std::hint::spin_loop());
    }
    sending.await;
}
