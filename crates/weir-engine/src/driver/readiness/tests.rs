//! Tests of fairness and shortage, on edge-triggered and level-triggered backends.

use std::{
    cell::Cell,
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    process::Command,
    rc::Rc,
    sync::Arc,
    task::{Poll, Waker},
    time::Duration,
};

use rustix::{
    event::EventfdFlags,
    io::Errno,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

use super::{Backend, Interest, Linux, Readiness, Ready};
use crate::{
    Runtime,
    call_clock::CallClock,
    config::{Config, Driver, DriverChoice, EpollOptions, KernelMask},
    counters::Counters,
    driver::{DriverOps, DriverParts, Wait, epoll::Epoll},
    net::{Address, Listener, Stream},
    spawn,
    time::{sleep, timeout, yield_now},
};

thread_local! {
    /// Sends of this thread that the kernel shall still refuse for lack of memory.
    static REFUSALS: Cell<u32> = const { Cell::new(0) };
}

/// How often the kernel refuses one send.
const TRIES: u32 = 10;

/// Runs before each send: returns the kernel's refusal, when one is due.
pub(super) fn refuse() -> Result<(), Errno> {
    REFUSALS.with(|left| match left.get() {
        0 => Ok(()),
        count => {
            left.set(count - 1);
            Err(Errno::NOBUFS)
        }
    })
}

/// Every backend, epoll with both triggers.
fn configurations() -> Vec<Config> {
    let mut level = Config::for_test(Driver::Epoll);
    level.epoll.edge = false;
    let others = [Driver::Epoll, Driver::Poll, Driver::Select].map(Config::with_driver);
    others.into_iter().chain([level]).collect()
}

fn runtime(config: &Config) -> Runtime {
    Runtime::new(config).expect("readiness calls are everywhere")
}

fn pair() -> (Stream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a socket pair");
    (Stream::from_descriptor(ours.into()).expect("there is room"), theirs)
}

#[test]
fn a_receive_without_a_buffer_sleeps_until_one_comes_back() {
    for mut config in configurations() {
        config.buffers.count = Some(1);
        let runtime = runtime(&config);
        let counters = runtime.counters();
        let (turns, received) = runtime.block_on(async {
            let ((holder, mut first), (starved, mut second)) = (pair(), pair());
            let waiting =
                spawn(async move { starved.recv().await.map(|lease| lease.map(|bytes| bytes.to_vec())) });
            // It is watched before the bytes arrive.
            yield_now().await;
            first.write_all(b"held").expect("it fits");
            let lease = holder.recv().await.expect("it is open").expect("it was written");
            second.write_all(b"late").expect("it fits");
            let before = counters.snapshot().turns;
            sleep(Duration::from_millis(30)).await;
            let turns = counters.snapshot().turns - before;
            assert!(!waiting.is_finished());
            drop(lease);
            (turns, waiting.await)
        });
        assert_eq!(received.expect("it is open").as_deref(), Some(b"late".as_slice()), "{config:?}");
        assert!(turns < 10, "{turns} turns without a buffer: {config:?}");
    }
}

#[test]
fn a_send_without_memory_is_tried_again_after_a_pause_and_not_all_the_time() {
    for config in configurations() {
        let runtime = runtime(&config);
        let counters = runtime.counters();
        let turns = runtime.block_on(async {
            let (stream, mut peer) = pair();
            REFUSALS.set(TRIES);
            stream.send(b"first ").await.expect("it is queued");
            yield_now().await;
            let before = counters.snapshot();
            stream.send(b"second").await.expect("it is queued");
            stream.flush().await.expect("memory comes back");
            let mut received = [0; 12];
            peer.read_exact(&mut received).expect("both have left");
            assert_eq!(&received, b"first second");
            counters.snapshot().turns - before.turns
        });
        assert_eq!(REFUSALS.get(), 0);
        assert!(turns < 3 * u64::from(TRIES), "{turns} turns for {TRIES} tries: {config:?}");
        assert!(
            turns >= u64::from(TRIES) * 3 / 4,
            "{turns} turns: it does not wait between two tries: {config:?}"
        );
    }
}

#[test]
fn a_send_that_had_waited_for_room_and_then_finds_no_memory_pauses_as_well() {
    const BYTES: usize = 1 << 20;
    for config in configurations() {
        let runtime = runtime(&config);
        let counters = runtime.counters();
        let turns = runtime.block_on(async {
            let (stream, mut peer) = pair();
            stream.send(vec![7; BYTES]).await.expect("it is queued");
            // The socket is full now, and watched for room.
            yield_now().await;
            peer.set_nonblocking(true).expect("a socket can be made non-blocking");
            let mut received = Vec::new();
            let _ = peer.read_to_end(&mut received);
            REFUSALS.set(TRIES);
            let before = counters.snapshot();
            while received.len() < BYTES {
                sleep(Duration::from_millis(5)).await;
                let _ = peer.read_to_end(&mut received);
            }
            assert_eq!(received, vec![7; BYTES]);
            counters.snapshot().turns - before.turns
        });
        assert_eq!(REFUSALS.get(), 0);
        assert!(turns < 10 * u64::from(TRIES), "{turns} turns for {TRIES} tries: {config:?}");
    }
}

#[test]
fn a_peer_that_is_gone_while_a_send_finds_no_memory_wakes_nobody_all_the_time() {
    for config in configurations() {
        let runtime = runtime(&config);
        let counters = runtime.counters();
        let turns = runtime.block_on(async {
            let (stream, peer) = pair();
            // It is watched for bytes.
            assert!(timeout(Duration::from_millis(1), stream.recv()).await.is_err());
            REFUSALS.set(TRIES);
            stream.send(b"nobody takes this").await.expect("it is queued");
            drop(peer);
            let before = counters.snapshot();
            stream.flush().await.expect_err("nobody is there");
            counters.snapshot().turns - before.turns
        });
        assert_eq!(REFUSALS.get(), 0);
        assert!(turns < 3 * u64::from(TRIES), "{turns} turns for {TRIES} tries: {config:?}");
    }
}

#[test]
fn a_sender_whose_peer_takes_everything_at_once_leaves_others_their_turn() {
    const SHARE_BYTES: usize = 16 << 10;
    const QUEUE_BYTES: usize = 4 << 10;
    const ALL_BYTES: usize = 64 << 10;
    const PIECE: [u8; 1 << 10] = [7; 1 << 10];
    for mut config in configurations() {
        config.limits.turn_bytes_max = SHARE_BYTES;
        config.limits.output_high_water_bytes = QUEUE_BYTES;
        config.limits.output_low_water_bytes = QUEUE_BYTES / 2;
        let runtime = runtime(&config);
        let counters = runtime.counters();
        let (most, received) = runtime.block_on(async {
            // The kernel has room for all of it, as when a peer reads on another core.
            let (stream, mut peer) = pair();
            let (mut most, mut in_this_turn, mut turn) = (0, 0, counters.snapshot().turns);
            for _ in 0..ALL_BYTES / PIECE.len() {
                stream.send_slice(&PIECE).await.expect("it is open");
                if std::mem::replace(&mut turn, counters.snapshot().turns) != turn {
                    in_this_turn = 0;
                }
                in_this_turn += PIECE.len();
                most = most.max(in_this_turn);
            }
            stream.flush().await.expect("the kernel takes it");
            drop(stream);
            let mut received = Vec::new();
            peer.read_to_end(&mut received).expect("an end in order");
            (most, received.len())
        });
        assert_eq!(received, ALL_BYTES, "{config:?}");
        assert!(most <= SHARE_BYTES + 3 * QUEUE_BYTES, "{most} bytes in one turn: {config:?}");
        assert!(most >= SHARE_BYTES, "{most} bytes in one turn: {config:?}");
    }
}

#[test]
fn with_blocking_writes_a_reply_is_one_call_however_slowly_the_peer_reads() {
    const BYTES: usize = 8 << 20;
    let mut config = Config::for_test(Driver::Epoll);
    config.epoll.blocking_writes = true;
    let runtime = runtime(&config);
    let counters = runtime.counters();
    runtime.block_on(async {
        let listener = Listener::bind(&"127.0.0.1:0".parse().expect("an address"), Default::default());
        let listener = listener.expect("a free port");
        let Ok(Address::Tcp(address)) = listener.local_address() else { panic!("it is a TCP listener") };
        let peer = std::thread::spawn(move || {
            let mut peer = std::net::TcpStream::connect(address).expect("it listens");
            peer.write_all(b"ask").expect("it fits");
            let mut received = Vec::new();
            peer.read_to_end(&mut received).expect("the stream ends");
            received
        });
        let stream = listener.accept().await.expect("a connection");
        // Twice: the second receive finds nothing and must not block the thread.
        assert_eq!(&stream.recv().await.expect("it is open").expect("it was written")[..], b"ask");
        assert!(timeout(Duration::from_millis(1), stream.recv()).await.is_err());
        stream.send(vec![b'x'; BYTES]).await.expect("it is queued");
        stream.flush().await.expect("the peer reads");
        drop(stream);
        assert_eq!(peer.join().expect("it reads to the end"), vec![b'x'; BYTES]);
    });
    let stats = counters.snapshot();
    assert_eq!((stats.send_calls, stats.sends_short), (1, 0), "{stats:?}");
}

#[test]
fn a_flood_of_connections_lets_tasks_run() {
    for config in configurations() {
        let accepted = runtime(&config).block_on(async {
            let listener = Listener::bind(&"127.0.0.1:0".parse().expect("an address"), Default::default());
            let listener = listener.expect("a free port");
            let Ok(Address::Tcp(address)) = listener.local_address() else { panic!("it is a TCP listener") };
            let connect = |_| std::net::TcpStream::connect(address).expect("the kernel holds it ready");
            let peers: Vec<_> = (0..150).map(connect).collect();
            let ran = Rc::new(Cell::new(false));
            let mark = Rc::clone(&ran);
            spawn(async move { mark.set(true) });
            let mut streams = Vec::new();
            while streams.len() < peers.len() && !ran.get() {
                streams.push(listener.accept().await.expect("a connection"));
            }
            streams.len()
        });
        assert!(accepted <= 70, "{accepted} connections before the first task ran: {config:?}");
    }
}

#[test]
fn a_connection_that_nobody_accepts_causes_no_turns() {
    for config in configurations() {
        let runtime = runtime(&config);
        let counters = runtime.counters();
        let turns = runtime.block_on(async {
            let socket = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let address = socket.local_addr().expect("it is bound");
            let listener = Listener::from_descriptor(socket.into()).expect("there is room");
            // The first accept finds nothing: from then on the listener is watched.
            assert!(timeout(Duration::ZERO, listener.accept()).await.is_err());
            let _peer = TcpStream::connect(address).expect("the kernel holds it ready");
            let before = counters.snapshot().turns;
            sleep(Duration::from_millis(30)).await;
            let turns = counters.snapshot().turns - before;
            timeout(Duration::from_secs(5), listener.accept()).await.expect("soon").expect("it is there");
            // The listener is watched again.
            assert!(timeout(Duration::ZERO, listener.accept()).await.is_err());
            let _peer = TcpStream::connect(address).expect("the kernel holds it ready");
            timeout(Duration::from_secs(5), listener.accept()).await.expect("soon").expect("it is there");
            turns
        });
        assert!(turns < 10, "{turns} turns while nobody accepts: {config:?}");
    }
}

/// A driver whose turns a test takes itself.
fn epoll(config: &Config) -> Readiness<Epoll, Linux> {
    let wake = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("an eventfd");
    let parts = DriverParts::new(config, Arc::new(Counters::default()), Arc::new(wake), Rc::default());
    let backend = Epoll::new(EpollOptions::default(), KernelMask::default()).expect("epoll is everywhere");
    Readiness::new(backend, Linux, parts).expect("a fresh epoll has room")
}

#[test]
fn a_connect_in_progress_ends_when_all_connections_are_aborted() {
    let mut driver = epoll(&Config::for_test(Driver::Epoll));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = Address::Tcp(listener.local_addr().expect("it is bound"));
    let id = driver.connect(&address, None).expect("there is room");
    assert!(driver.poll_connect(id, Waker::noop()).is_pending(), "no turn has reported it");
    driver.abort_all();
    let Poll::Ready(Err(error)) = driver.poll_connect(id, Waker::noop()) else { panic!("it has failed") };
    assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
}

#[test]
fn what_a_drain_throws_away_is_bounded_in_each_turn() {
    let mut config = Config::for_test(Driver::Epoll);
    config.limits.turn_bytes_max = 8 << 10;
    let mut driver = epoll(&config);
    let (ours, mut theirs) = UnixStream::pair().expect("a socket pair");
    let ours_too = ours.try_clone().expect("a descriptor");
    let id = driver.adopt_stream(ours.into()).expect("there is room");
    theirs.set_nonblocking(true).expect("a socket can be made non-blocking");
    let mut written = 0;
    while let Ok(count) = theirs.write(&[b'x'; 4096]) {
        written += count as u64;
    }
    assert!(written > 64 << 10, "{written} bytes fit");
    driver.drain();
    driver.close(id);
    driver.flush();
    let mut left = rustix::io::ioctl_fionread(ours_too.as_fd()).expect("it is open");
    assert!(left + (16 << 10) > written, "{left} of {written} bytes are left");
    while left > 0 {
        driver.turn(Wait::Until(crate::time::monotonic() + Duration::from_secs(5))).expect("epoll works");
        let now = rustix::io::ioctl_fionread(ours_too.as_fd()).expect("it is open");
        assert!(now < left && now + (16 << 10) > left, "{now} bytes are left of {left}");
        left = now;
    }
    drop(theirs);
    driver.turn(Wait::Until(crate::time::monotonic() + Duration::from_secs(5))).expect("epoll works");
    assert_eq!(driver.sockets(), 0);
}

/// Accepts while no further descriptor is available, until later.
fn accept_without_descriptors(config: &Config) {
    let runtime = runtime(config);
    let counters = runtime.counters();
    runtime.block_on(async {
        let listener = Listener::bind(&"127.0.0.1:0".parse().expect("an address"), Default::default());
        let listener = listener.expect("a free port");
        let Ok(Address::Tcp(address)) = listener.local_address() else { panic!("it is a TCP listener") };
        // The first accept finds nothing: from then on the listener is watched.
        assert!(timeout(Duration::ZERO, listener.accept()).await.is_err());
        let _peer = std::net::TcpStream::connect(address).expect("the kernel holds it ready");
        let free = rustix::io::dup(std::io::stdin().as_fd()).expect("there is room");
        let before = getrlimit(Resource::Nofile);
        let limit = std::os::fd::AsRawFd::as_raw_fd(&free) as u64;
        setrlimit(Resource::Nofile, Rlimit { current: Some(limit), maximum: before.maximum }).expect("lower");
        drop(free);
        let turns = counters.snapshot().turns;
        let starved = timeout(Duration::from_millis(250), listener.accept()).await;
        let turns = counters.snapshot().turns - turns;
        setrlimit(Resource::Nofile, before).expect("it was so before");
        assert!(starved.is_err(), "{config:?}");
        timeout(Duration::from_secs(5), listener.accept()).await.expect("soon").expect("it goes on");
        assert!(counters.snapshot().accepts_starved > 0, "{config:?}");
        assert!(turns < 30, "{turns} turns while there was nothing to do but wait: {config:?}");
    });
}

#[test]
fn a_watched_listener_without_descriptors_sleeps_and_goes_on() {
    const ALONE: &str = "WEIR_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        let blocking = Config { driver: DriverChoice::Named(Driver::Blocking), ..Config::default() };
        for config in configurations().into_iter().chain([blocking]) {
            accept_without_descriptors(&config);
        }
        return;
    }
    // The limit applies to the whole process: this test needs a separate one.
    let name = "driver::readiness::tests::a_watched_listener_without_descriptors_sleeps_and_goes_on";
    let program = std::env::current_exe().expect("the test binary has a path");
    let output =
        Command::new(program).args([name, "--exact"]).env(ALONE, "1").output().expect("it starts again");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// An epoll whose user is at the limit of watched descriptors.
struct Refusing(Epoll);

impl Backend<Linux> for Refusing {
    fn is_edge_triggered(&self) -> bool {
        self.0.is_edge_triggered()
    }

    fn watch_wake_up(&mut self, _: &OwnedFd, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn add(&mut self, _: &OwnedFd, _: u64, _: Interest, _: bool) -> io::Result<()> {
        Err(Errno::NOSPC.into())
    }

    fn change(&mut self, _: &OwnedFd, _: u64, _: Interest) -> io::Result<()> {
        Err(Errno::NOSPC.into())
    }

    fn remove(&mut self, _: &OwnedFd) {}

    fn wait(&mut self, limit: Option<Duration>, ready: &mut Vec<Ready>, clock: &CallClock) -> io::Result<()> {
        self.0.wait(limit, ready, clock)
    }
}

#[test]
fn a_stream_that_cannot_be_watched_does_not_look_whole() {
    const BYTES: usize = 32 << 20;
    let wake = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("an eventfd");
    let config = Config::for_test(Driver::Epoll);
    let parts = DriverParts::new(&config, Arc::new(Counters::default()), Arc::new(wake), Rc::default());
    let backend = Refusing(Epoll::new(config.epoll, config.masked()).expect("epoll is everywhere"));
    let mut driver = Readiness::new(backend, Linux, parts).expect("it starts");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut peer = std::net::TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    let id = driver.adopt_stream(listener.accept().expect("a connection").0.into()).expect("there is room");
    driver.push(id, vec![b'x'; BYTES].into()).expect("it is open");
    driver.flush();
    driver.push(id, b"more".into()).expect_err("it has failed");
    driver.close(id);
    let mut received = Vec::new();
    let error = peer.read_to_end(&mut received).expect_err("no end of stream");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert!(received.len() < BYTES);
}
