//! Tests of waiting, lingering, and a kernel without memory for a send.

use std::{
    cell::Cell,
    future::Future,
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::net::UnixStream,
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use rustix::{event::EventfdFlags, io::Errno};

use super::{Blocking, REFUSALS_MAX, SEND_RETRY};
use crate::{
    Config, Driver, Runtime,
    counters::Counters,
    driver::{DriverOps, DriverParts, ListenOptions, Wait},
    net::{Address, Listener, Stream},
    time::{monotonic, sleep, timeout},
};

thread_local! {
    /// Sends of this thread that the kernel shall still refuse for lack of memory.
    static REFUSALS: Cell<u32> = const { Cell::new(0) };
}

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

fn config() -> Config {
    Config::for_test(Driver::Blocking)
}

fn run<F: Future>(future: F) -> F::Output {
    Runtime::new(&config()).expect("it runs everywhere").block_on(future)
}

fn pair() -> (Stream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a socket pair");
    (Stream::from_descriptor(ours.into()).expect("there is room"), theirs)
}

/// Both ends of a TCP connection.
fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let theirs = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
    theirs.set_read_timeout(Some(Duration::from_secs(10))).expect("a time limit");
    (listener.accept().expect("a connection").0, theirs)
}

#[test]
fn a_receive_that_was_given_up_does_not_count_as_waiting() {
    run(async {
        let ((silent, _open), (talks, mut peer)) = (pair(), pair());
        for round in 0..3u8 {
            assert!(timeout(Duration::from_millis(2), silent.recv()).await.is_err());
            // The first receive finds nothing.
            assert!(timeout(Duration::from_millis(2), talks.recv()).await.is_err());
            assert!(timeout(Duration::from_millis(2), silent.recv()).await.is_err());
            peer.write_all(&[round]).expect("it fits");
            let lease = talks.recv().await.expect("only one is waited for").expect("it was written");
            assert_eq!(&lease[..], [round]);
        }
    });
}

#[test]
fn two_receives_at_once_are_refused_and_do_not_block() {
    run(async {
        let ((first, _first_peer), (second, _second_peer)) = (pair(), pair());
        let (mut one, mut other) = (pin!(first.recv()), pin!(second.recv()));
        let mut limit = pin!(sleep(Duration::from_secs(5)));
        let error = std::future::poll_fn(|context: &mut Context<'_>| {
            for receive in [one.as_mut(), other.as_mut()] {
                if let Poll::Ready(outcome) = receive.poll(context) {
                    return Poll::Ready(outcome.expect_err("nothing was sent"));
                }
            }
            limit.as_mut().poll(context).map(|()| io::ErrorKind::TimedOut.into())
        })
        .await;
        assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{error}");
    });
}

#[test]
fn a_send_without_memory_is_tried_again_and_costs_no_byte() {
    let mut peer = run(async {
        let (stream, peer) = pair();
        REFUSALS.set(5);
        stream.send(b"first ").await.expect("it is queued");
        stream.flush().await.expect("memory comes back");
        assert_eq!(REFUSALS.get(), 0);
        stream.send(b"second ").await.expect("it is queued");
        REFUSALS.set(3);
        stream.send(b"third").await.expect("it is queued");
        // Closed while the kernel refuses its send: it lingers, and its bytes are still sent.
        drop(stream);
        peer
    });
    let mut received = String::new();
    peer.read_to_string(&mut received).expect("the stream ends");
    assert_eq!(received, "first second third");
}

fn driver(config: &Config, counters: &Arc<Counters>) -> Blocking {
    let wake = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("an eventfd");
    let parts = DriverParts::new(config, Arc::clone(counters), Arc::new(wake), Default::default());
    Blocking::new(parts).expect("it runs everywhere")
}

#[test]
fn a_send_without_memory_fails_at_the_stated_maximum() {
    let mut driver = driver(&config(), &Arc::default());
    let (ours, mut theirs) = UnixStream::pair().expect("a socket pair");
    let id = driver.adopt_stream(ours.into()).expect("there is room");
    // The second round shows that the count restarts after a successful send.
    for round in 0..2 {
        driver.push_copy(id, b"x").expect("it is open");
        REFUSALS.set(REFUSALS_MAX);
        for _ in 0..REFUSALS_MAX {
            driver.write(id, Duration::ZERO);
            let pause = driver.deadline().expect("a pause").since(monotonic());
            assert!(pause <= SEND_RETRY, "{pause:?}");
        }
        assert_eq!((driver.pending_writes.len(), REFUSALS.get()), (1, 0), "waits once");
        driver.retry_at = None;
        assert!(driver.continue_write(Some(Duration::ZERO)));
        theirs.read_exact(&mut [0]).unwrap_or_else(|error| panic!("round {round}: {error}"));
    }
    driver.push_copy(id, b"x").expect("it is open");
    REFUSALS.set(REFUSALS_MAX + 1);
    for _ in 0..=REFUSALS_MAX {
        driver.write(id, Duration::ZERO);
    }
    let error = driver.push_copy(id, b"x").expect_err("one refusal too many");
    assert_eq!(error.raw_os_error(), Some(Errno::NOBUFS.raw_os_error()));
}

#[test]
fn a_stream_whose_rest_found_no_memory_does_not_look_whole() {
    let mut driver = driver(&config(), &Arc::default());
    let (ours, mut theirs) = tcp_pair();
    let id = driver.adopt_stream(ours.into()).expect("there is room");
    driver.push_copy(id, b"half").expect("it is open");
    driver.flush();
    theirs.read_exact(&mut [0; 4]).expect("half a reply");
    driver.push_copy(id, b"rest").expect("it is open");
    REFUSALS.set(REFUSALS_MAX + 1);
    for _ in 0..=REFUSALS_MAX {
        driver.write(id, Duration::ZERO);
    }
    driver.close(id);
    assert_eq!((driver.sockets(), REFUSALS.get()), (0, 0), "given up");
    let error = theirs.read(&mut [0; 4]).expect_err("no end of stream");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[test]
fn a_lingering_send_without_memory_is_tried_again_before_its_deadline() {
    let mut config = config();
    config.limits.linger = Duration::from_secs(10);
    let mut driver = driver(&config, &Arc::default());
    let (ours, mut theirs) = UnixStream::pair().expect("a socket pair");
    let id = driver.adopt_stream(ours.into()).expect("there is room");
    driver.push(id, vec![b'x'; 4 << 20].into()).expect("it is open");
    driver.close(id);
    let deadline = driver.deadline().expect("it lingers");
    theirs.read_exact(&mut [0; 1024]).expect("the first bytes");
    REFUSALS.set(2);
    driver.turn(Wait::Until(deadline)).expect("it can wait");
    assert_eq!(REFUSALS.get(), 1, "it was refused");
    assert!(monotonic() < deadline, "the turn ends when the pause is over");
    driver.retry_at = Some(deadline);
    driver.turn(Wait::No).expect("it can look");
    assert_eq!(REFUSALS.get(), 1, "nothing is tried during a pause");
    REFUSALS.set(0);
}

#[test]
fn a_stream_beyond_the_limit_of_sockets_is_not_counted_as_open() {
    let mut config = config();
    config.limits.sockets_max = 1;
    let counters = Arc::default();
    let mut driver = driver(&config, &counters);
    let ((first, _), (second, _)) =
        (UnixStream::pair().expect("a socket pair"), UnixStream::pair().expect("a socket pair"));
    let id = driver.adopt_stream(first.into()).expect("there is room");
    let error = driver.adopt_stream(second.into()).expect_err("one is the limit");
    assert_eq!(error.kind(), io::ErrorKind::QuotaExceeded);
    driver.close(id);
    assert_eq!(counters.snapshot().connections_open, 0);
}

#[test]
fn a_queue_of_very_many_chunks_leaves_in_one_go() {
    const CHUNKS: usize = 1000;
    let mut peer = run(async {
        let (stream, peer) = pair();
        for _ in 0..CHUNKS {
            stream.send(b"chunk").await.expect("it is queued");
        }
        stream.flush().await.expect("it fits");
        peer
    });
    let mut received = String::new();
    peer.read_to_string(&mut received).expect("the stream ends");
    assert_eq!(received, "chunk".repeat(CHUNKS));
}

#[test]
fn what_is_queued_at_the_end_of_the_handle_still_leaves() {
    const BYTES: usize = 8 << 20;
    let (ours, mut theirs) = tcp_pair();
    let reader = std::thread::spawn(move || {
        let mut received = Vec::new();
        theirs.read_to_end(&mut received).map(|_| received.len())
    });
    run(async {
        let stream = Stream::from_descriptor(ours.into()).expect("there is room");
        stream.send(vec![b'x'; BYTES]).await.expect("it is queued");
        drop(stream);
    });
    assert_eq!(reader.join().expect("the reader").expect("the stream ends in order"), BYTES);
}

#[test]
fn what_is_queued_after_the_linger_is_lost_with_a_reset() {
    const BYTES: usize = 32 << 20;
    let (ours, mut theirs) = tcp_pair();
    let mut config = config();
    config.limits.linger = Duration::from_millis(30);
    let runtime = Runtime::new(&config).expect("it runs everywhere");
    let start = monotonic();
    runtime.block_on(async {
        let stream = Stream::from_descriptor(ours.into()).expect("there is room");
        stream.send(vec![b'x'; BYTES]).await.expect("it is queued");
        drop(stream);
    });
    drop(runtime);
    assert!(monotonic().since(start) >= config.limits.linger, "it gave up early");
    let mut received = Vec::new();
    let error = theirs.read_to_end(&mut received).expect_err("a stream that was cut does not look whole");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert!(received.len() < BYTES);
}

#[test]
fn other_operations_go_on_while_a_socket_lingers() {
    let (ours, mut theirs) = tcp_pair();
    run(async {
        let lingers = Stream::from_descriptor(ours.into()).expect("there is room");
        lingers.send(vec![b'x'; 8 << 20]).await.expect("it is queued");
        drop(lingers);
        let (talks, mut peer) = pair();
        let writer = std::thread::spawn(move || {
            let read = theirs.read_to_end(&mut Vec::new());
            peer.write_all(b"now").expect("it fits");
            read
        });
        let lease = talks.recv().await.expect("it is open").expect("it was written");
        assert_eq!(&lease[..], b"now");
        assert_eq!(writer.join().expect("the reader").expect("the stream ends in order"), 8 << 20);
    });
}

#[test]
fn a_connect_that_a_time_limit_cuts_short_is_started_anew() {
    let name = format!("weir-test-connect-{}", std::process::id());
    let address = Address::Abstract(name);
    let options = ListenOptions { backlog: 0, ..ListenOptions::default() };
    run(async {
        let listener = Listener::bind(&address, options).expect("a free name");
        // The kernel queues one more connection than the backlog.
        let _first = Stream::connect(&address).await.expect("it is held ready");
        let mut second = pin!(Stream::connect(&address));
        for _ in 0..3 {
            assert!(timeout(Duration::from_millis(2), second.as_mut()).await.is_err(), "nobody has accepted");
        }
        listener.accept().await.expect("the first");
        second.await.expect("there is room now");
    });
}
