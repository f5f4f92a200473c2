//! Tests of the driver alone, turn by turn: cases that no program can time from outside.

use std::{
    io::{ErrorKind, Read, Write},
    os::{
        fd::{AsFd, OwnedFd, RawFd},
        unix::net::UnixStream,
    },
    rc::Rc,
    sync::Arc,
    task::{Poll, Waker},
    time::Duration,
};

use rustix::{event::EventfdFlags, io::Errno};
use weir_engine_types::kernel::KernelFeature;

use super::{CQE_MORE, Receiving, Sending, SocketKind, Uring, ring::Completion};
use crate::{
    Runtime,
    config::{Config, Driver, KernelMask, ReceiveMode},
    counters::Counters,
    doorbell::Doorbell,
    driver::{
        DriverOps, DriverParts, Wait,
        files::{FileOperation, Request},
        socket::{Reserve, reset_on_close},
    },
    driver_choice::resolved,
    executor::drain_current,
    net::Stream,
    slab::SlotId,
    spawn,
    time::{monotonic, timeout, yield_now},
};

mod fault_injection;
mod options;

/// More turns than any test here needs.
const TURNS: usize = 400;

/// A driver whose submission queue holds two entries and whose completion queue holds eight; `None` where the kernel
/// has no io_uring.
fn small_driver(counters: &Arc<Counters>) -> Option<Uring> {
    let mut config = Config::for_test(Driver::Uring);
    config.uring.entries = 2;
    driver_with(&config, counters)
}

fn driver_with(config: &Config, counters: &Arc<Counters>) -> Option<Uring> {
    let wake = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("an eventfd");
    let config = resolved(config, Driver::Uring);
    Uring::new(DriverParts::new(&config, Arc::clone(counters), Arc::new(wake), Rc::default())).ok()
}

fn look(driver: &mut Uring) {
    driver.turn(Wait::No).expect("the ring can be entered");
}

fn connect(driver: &mut Uring) -> (SlotId, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a socket pair");
    theirs.set_nonblocking(true).expect("a socket can be made non-blocking");
    (driver.adopt_stream(ours.into()).expect("there is room"), theirs)
}

/// A connection whose peer takes nothing more until it reads; and the number of bytes already on their way.
fn connect_full(driver: &mut Uring) -> (SlotId, UnixStream, usize) {
    let (mut ours, theirs) = UnixStream::pair().expect("a socket pair");
    ours.set_nonblocking(true).expect("a socket can be made non-blocking");
    theirs.set_nonblocking(true).expect("a socket can be made non-blocking");
    let mut bytes = 0;
    for size in [4096, 1] {
        while let Ok(count) = ours.write(&[b'.'; 4096][..size]) {
            bytes += count;
        }
    }
    (driver.adopt_stream(ours.into()).expect("there is room"), theirs, bytes)
}

/// Everything that can be read now.
fn read_all(peer: &mut UnixStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let outcome = peer.read_to_end(&mut bytes);
    assert_eq!(outcome.expect_err("the connection is open").kind(), ErrorKind::WouldBlock);
    bytes
}

fn send(driver: &mut Uring, id: SlotId, bytes: &'static [u8]) {
    DriverOps::push(driver, id, bytes.into()).expect("it is open");
}

fn queued(driver: &Uring, id: SlotId) -> usize {
    driver.sockets.get(id).expect("it is open").send.queue.len()
}

/// Fails if a send does not ask for all of its bytes to be sent (`SEND_FLAGS`): the rest is then lost in silence.
#[test]
fn a_tried_send_of_which_the_kernel_takes_a_part_sends_the_rest_too() {
    // More than the buffers of a socket pair hold.
    const BYTES: &[u8] = &[b'.'; 4 << 20];
    let counters = Arc::new(Counters::default());
    let Some(mut driver) = small_driver(&counters) else { return };
    let (id, mut peer) = connect(&mut driver);
    send(&mut driver, id, BYTES);
    driver.flush();
    look(&mut driver);
    let taken = counters.snapshot().bytes_sent as usize;
    assert!(0 < taken && taken < BYTES.len(), "{taken} bytes are on their way");
    let mut arrived = 0;
    for _ in 0..TURNS {
        arrived += read_all(&mut peer).len();
        look(&mut driver);
    }
    assert_eq!((arrived, queued(&driver, id)), (BYTES.len(), 0));
}

#[test]
fn a_try_that_failed_before_does_not_vouch_for_a_later_one() {
    let counters = Arc::new(Counters::default());
    let Some(mut driver) = small_driver(&counters) else { return };
    if !driver.ring.granted.skip_success {
        return;
    }
    let (slow, mut slow_peer, before) = connect_full(&mut driver);
    let others: Vec<_> = (0..3).map(|_| connect(&mut driver)).collect();
    look(&mut driver);
    // Four tries, two of which find the submission queue full; the first fails.
    for id in std::iter::once(slow).chain(others.iter().map(|(id, _)| *id)) {
        send(&mut driver, id, b"first");
    }
    driver.flush();
    look(&mut driver);
    // The waiting send after the failed try succeeds, and another try follows it at once.
    send(&mut driver, slow, b"second");
    assert_eq!(read_all(&mut slow_peer).len(), before);
    let mut arrived = Vec::new();
    for _ in 0..TURNS {
        look(&mut driver);
        arrived.extend(read_all(&mut slow_peer));
        let waiting = queued(&driver, slow);
        assert!(waiting + arrived.len() >= 11, "{waiting} bytes wait and {} have arrived", arrived.len());
    }
    assert_eq!(arrived, b"firstsecond");
}

#[test]
fn what_is_queued_behind_a_send_that_waits_holds_no_buffer() {
    let counters = Arc::new(Counters::default());
    let Some(mut driver) = small_driver(&counters) else { return };
    let (slow, _peer, _) = connect_full(&mut driver);
    send(&mut driver, slow, b"first");
    driver.flush();
    for _ in 0..TURNS {
        look(&mut driver);
    }
    let pool = Rc::clone(&driver.parts.receive_pool);
    let lease = pool.take(0).expect("a buffer is free").lease(6);
    let free = pool.free(0);
    DriverOps::push(&mut driver, slow, lease.into()).expect("it is open");
    driver.flush();
    assert_eq!((pool.free(0), queued(&driver, slow)), (free + 1, 11), "the peer may never read");
}

#[test]
fn a_send_that_waits_holds_no_buffer_on_any_kernel() {
    for rung in KernelMask::LADDER {
        let masked = KernelMask::as_on(rung);
        let config = Config { masked, ..Config::for_test(Driver::Uring) };
        let Some(mut driver) = driver_with(&config, &Arc::default()) else { return };
        let (slow, _peer, _) = connect_full(&mut driver);
        let pool = Rc::clone(&driver.parts.receive_pool);
        let lease = pool.take(0).expect("a buffer is free").lease(6);
        // A ring takes all free buffers.
        let free = |driver: &Uring| pool.free(0) + driver.buffers.available(0);
        let before = free(&driver);
        DriverOps::push(&mut driver, slow, lease.into()).expect("it is open");
        driver.flush();
        let is_released = (0..TURNS).any(|_| {
            look(&mut driver);
            free(&driver) > before
        });
        assert!(is_released && queued(&driver, slow) == 6, "like {rung}: the peer may never read");
    }
}

#[test]
fn a_failure_behind_a_full_completion_queue_is_no_success() {
    let counters = Arc::new(Counters::default());
    let Some(mut driver) = small_driver(&counters) else { return };
    let (slow, mut slow_peer, before) = connect_full(&mut driver);
    let mut talkers: Vec<_> = (0..60).map(|_| connect(&mut driver)).collect();
    for (id, _) in &talkers {
        assert!(driver.poll_receive(*id, Waker::noop()).is_pending());
    }
    for _ in 0..TURNS {
        look(&mut driver);
    }
    for (_, peer) in &mut talkers {
        peer.write_all(b"x").expect("it fits");
    }
    // The first turn leaves completions behind that do not fit; the failure of the send comes after them.
    look(&mut driver);
    send(&mut driver, slow, b"kept");
    driver.flush();
    for _ in 0..TURNS {
        look(&mut driver);
    }
    assert!(counters.snapshot().completion_overflows > 0, "{:?}", counters.snapshot());
    assert_eq!(queued(&driver, slow), 4, "the peer is full");
    assert_eq!(read_all(&mut slow_peer).len(), before);
    for _ in 0..TURNS {
        look(&mut driver);
    }
    assert_eq!(read_all(&mut slow_peer), b"kept");
}

#[test]
fn a_send_for_which_the_kernel_has_no_memory_is_tried_again() {
    let counters = Arc::new(Counters::default());
    let Some(mut driver) = small_driver(&counters) else { return };
    let (id, mut peer) = connect(&mut driver);
    send(&mut driver, id, b"later");
    let socket = driver.sockets.get_mut(id).expect("it is open");
    // Pretend that its send has been submitted, and flushed, so that nothing else submits it.
    socket.send.dirty = false;
    socket.connection.begin_send(Sending::Tried { bytes: 5, number: None });
    driver.dirty.clear();
    driver.on_send(id, -libc::ENOBUFS);
    assert_eq!(queued(&driver, id), 5, "nothing is lost");
    send(&mut driver, id, b" still");
    driver.flush();
    let sending = driver.sockets.get(id).expect("it is open").connection.sending();
    assert_eq!(sending, Sending::Stalled, "more bytes do not shorten the wait");
    let mut turns = 0;
    while queued(&driver, id) > 0 {
        turns += 1;
        assert!(turns < TURNS, "it is never sent");
        driver.turn(driver.deadline().map_or(Wait::No, Wait::Until)).expect("the ring can be entered");
        driver.flush();
    }
    assert_eq!(read_all(&mut peer), b"later still");
    assert_eq!(driver.deadline(), None, "nobody waits any more");
}

#[test]
fn a_deadline_beyond_the_clock_of_the_kernel_is_waited_for() {
    let mut config = Config::for_test(Driver::Uring);
    config.limits.linger = Duration::MAX;
    let Some(mut driver) = driver_with(&config, &Arc::default()) else { return };
    let (id, _peer, _) = connect_full(&mut driver);
    send(&mut driver, id, b"more");
    driver.close(id);
    driver.flush();
    // The send is tried, and then waits.
    for _ in 0..TURNS {
        look(&mut driver);
    }
    let deadline = driver.deadline().expect("it lingers");
    let wake = Arc::clone(&driver.parts.wake);
    let waker = std::thread::spawn(move || {
        rustix::io::write(&wake, &1_u64.to_ne_bytes()).expect("it can be written");
    });
    driver.turn(Wait::Until(deadline)).expect("the ring can be entered");
    assert!(driver.parts.woken.get(), "nothing but the wake-up ends the turn");
    waker.join().expect("it has written");
}

#[test]
fn an_accept_that_a_kernel_ends_for_want_of_a_connection_waits_for_one_first() {
    let counters = Arc::new(Counters::default());
    for gives_up in [false, true] {
        let Some(mut driver) = small_driver(&counters) else { return };
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        listener.set_nonblocking(true).expect("a socket can be made non-blocking");
        let shared = listener.try_clone().expect("another descriptor");
        let id = driver.adopt_listener(listener.into()).expect("there is room");
        // The answer of a kernel before 5.18 to an accept on such a listener.
        driver.sockets.get_mut(id).expect("it is open").connection.begin_receive(Receiving::Armed(0));
        driver.on_accept(id, Completion { token: 0, result: -libc::EAGAIN, flags: 0 });
        look(&mut driver);
        assert_eq!(
            driver.sockets.get(id).expect("it is open").connection.receiving(),
            Receiving::Polling,
            "no accept that spins"
        );
        if gives_up {
            driver.close(id);
            let is_closed = (0..TURNS).any(|_| {
                look(&mut driver);
                driver.sockets() == 0
            });
            assert!(is_closed, "nothing is left of the wait");
            continue;
        }
        let _peer = std::net::TcpStream::connect(address).expect("it listens");
        let is_accepted = (0..TURNS).any(|_| {
            look(&mut driver);
            matches!(driver.poll_accept(id, Waker::noop()), Poll::Ready(Ok(_)))
        });
        assert!(is_accepted);
        let flags = rustix::fs::fcntl_getfl(&shared).expect("it is open");
        assert!(flags.contains(rustix::fs::OFlags::NONBLOCK), "who shares it relies on that");
    }
}

#[test]
fn a_listener_that_waits_for_descriptors_waits_once_whatever_it_hands_out_meanwhile() {
    const CONNECTIONS: usize = 20;
    let counters = Arc::new(Counters::default());
    let Some(mut driver) = small_driver(&counters) else { return };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let id = driver.adopt_listener(listener.into()).expect("there is room");
    // As after a burst that has used up the descriptors.
    driver.reserve = Reserve::from_number(0);
    for _ in 0..CONNECTIONS {
        let (ours, _theirs) = UnixStream::pair().expect("a socket pair");
        let socket = driver.sockets.get_mut(id).expect("it is open");
        let SocketKind::Listener(accepted) = &mut socket.kind else { panic!("it is one") };
        accepted.push_back(ours.into());
    }
    let mut retries = Vec::new();
    for _ in 0..CONNECTIONS {
        assert!(matches!(driver.poll_accept(id, Waker::noop()), Poll::Ready(Ok(_))));
        retries.push(driver.retries.deadline());
    }
    assert!(driver.poll_accept(id, Waker::noop()).is_pending());
    assert!(driver.retries.is_paused(id));
    assert_eq!(counters.snapshot().accepts_starved, 1);
    retries.dedup();
    assert!(matches!(retries[..], [Some(_)]), "when to try again does not move away: {retries:?}");
    driver.reserve = Reserve::from_number(RawFd::MAX);
    driver.resume_accepts();
    assert!(!driver.retries.is_paused(id));
    assert_ne!(
        driver.sockets.get(id).expect("it is open").connection.receiving(),
        Receiving::Idle,
        "it accepts again"
    );
}

#[test]
fn receives_that_end_by_themselves_are_not_counted_as_started_again() {
    for rung in KernelMask::LADDER {
        let masked = KernelMask::as_on(rung);
        if !masked.hides(KernelFeature::MultishotReceive) {
            continue;
        }
        let config = Config { masked, ..Config::for_test(Driver::Uring) };
        let Ok(runtime) = Runtime::new(&config) else { return };
        let (ours, mut peer) = UnixStream::pair().expect("a socket pair");
        runtime.block_on(async {
            let stream = Stream::from_descriptor(ours.into()).expect("there is room");
            for _ in 0..5 {
                assert!(timeout(Duration::from_millis(1), stream.recv()).await.is_err());
                peer.write_all(b"x").expect("it fits");
                assert_eq!(&stream.recv().await.expect("it is open").expect("it was written")[..], b"x");
            }
        });
        let stats = runtime.counters().snapshot();
        assert_eq!((stats.receives, stats.rearms), (5, 0), "like {rung}");
    }
}

#[test]
fn a_receive_that_waits_for_a_buffer_is_started_again_when_there_is_one_for_it() {
    const CONNECTIONS: u64 = 64;
    let mut config = Config::for_test(Driver::Uring);
    config.buffers.count = Some(4);
    let Ok(runtime) = Runtime::new(&config) else { return };
    let mut peers = Vec::new();
    runtime.block_on(async {
        for _ in 0..CONNECTIONS {
            let (ours, theirs) = UnixStream::pair().expect("a socket pair");
            let stream = Stream::from_descriptor(ours.into()).expect("there is room");
            spawn(async move {
                while let Ok(Some(bytes)) = stream.recv().await {
                    stream.send(bytes).await.expect("the peer reads");
                }
            });
            peers.push(theirs);
        }
        yield_now().await;
    });
    for peer in &mut peers {
        peer.write_all(b"all at once").expect("it fits");
        peer.shutdown(std::net::Shutdown::Write).expect("it is open");
    }
    assert_eq!(runtime.drain(Duration::from_secs(10)), 0);
    for peer in &mut peers {
        let mut reply = String::new();
        peer.read_to_string(&mut reply).expect("the stream ends");
        assert_eq!(reply, "all at once");
    }
    let stats = runtime.counters().snapshot();
    // Once for each connection, and once more if another took the buffer in between. Without counting the buffers,
    // each turn would start all waiting receives: a quarter of the square of the connections.
    assert!(stats.rearms <= 3 * CONNECTIONS, "{stats:?}");
}

#[test]
fn a_receive_finds_a_buffer_though_handlers_keep_theirs_and_somebody_sends_in_every_turn() {
    // There are only eight buffers of this size at first.
    const RECEIVERS: usize = 9;
    let mut config = Config::for_test(Driver::Uring);
    config.buffers.bytes = Some(128 << 10);
    let Some(mut driver) = driver_with(&config, &Arc::default()) else { return };
    let (busy, mut busy_peer) = connect(&mut driver);
    let mut receivers: Vec<_> = (0..RECEIVERS).map(|_| connect(&mut driver)).collect();
    for (_, peer) in &mut receivers {
        peer.write_all(b"x").expect("it fits");
    }
    let mut kept = Vec::new();
    for _ in 0..TURNS {
        for (id, _) in &receivers {
            if let Poll::Ready(received) = driver.poll_receive(*id, Waker::noop()) {
                kept.push(received.expect("it is open").expect("its peer is"));
            }
        }
        send(&mut driver, busy, b".");
        driver.flush();
        look(&mut driver);
        read_all(&mut busy_peer);
    }
    assert_eq!(kept.len(), RECEIVERS);
}

#[test]
fn a_buffer_that_was_promised_and_not_taken_is_promised_to_the_next_without_an_event() {
    const LONG: Duration = Duration::from_secs(20);
    let mut config = Config::for_test(Driver::Uring);
    config.buffers.count = Some(1);
    let Some(mut driver) = driver_with(&config, &Arc::default()) else { return };
    // No bytes are sent: each receive would wait for data, and takes no buffer.
    let connections: Vec<_> = (0..3).map(|_| connect(&mut driver)).collect();
    for (id, _) in &connections {
        driver.sockets.get_mut(*id).expect("it is open").connection.starve();
        driver.starved_receivers.push_back(*id);
    }
    let start = monotonic();
    for still_waiting in [2, 1] {
        driver.turn(Wait::Until(start + LONG)).expect("the ring can be entered");
        assert_eq!(driver.starved_receivers.len(), still_waiting);
    }
    assert!(monotonic() < start + LONG, "it slept while receives could be started");
    look(&mut driver);
    assert!(driver.starved_receivers.is_empty());
}

/// Receives from a connection whose peer has sent this much and left, both before the receive begins: returns the
/// number of bytes and the end, or `None` if it does not end.
fn received_of(driver: &mut Uring, id: SlotId) -> (usize, Option<Result<(), ErrorKind>>) {
    let mut received = 0;
    for _ in 0..TURNS {
        while let Poll::Ready(next) = driver.poll_receive(id, Waker::noop()) {
            match next {
                Ok(Some(lease)) => received += lease.len(),
                Ok(None) => return (received, Some(Ok(()))),
                Err(error) => return (received, Some(Err(error.kind()))),
            }
        }
        look(driver);
    }
    (received, None)
}

#[test]
fn an_end_behind_more_buffers_than_the_kernel_fills_at_a_time_is_told() {
    const BYTES: usize = 100 * 64;
    let mut config = Config::for_test(Driver::Uring);
    config.buffers.bytes = Some(64);
    for receive in [ReceiveMode::Auto, ReceiveMode::Single] {
        config.uring.receive = receive;
        let Some(mut driver) = driver_with(&config, &Arc::default()) else { return };
        let (id, mut peer) = connect(&mut driver);
        peer.write_all(&[b'.'; BYTES]).expect("it fits");
        drop(peer);
        assert_eq!(received_of(&mut driver, id), (BYTES, Some(Ok(()))), "{receive:?}");

        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let mut peer = std::net::TcpStream::connect(address).expect("it listens");
        let id =
            driver.adopt_stream(listener.accept().expect("a connection").0.into()).expect("there is room");
        peer.write_all(&[b'.'; BYTES]).expect("it fits");
        reset_on_close(peer.as_fd(), &Counters::default());
        drop(peer);
        let reset = Some(Err(ErrorKind::ConnectionReset));
        assert_eq!(received_of(&mut driver, id), (BYTES, reset), "{receive:?}");
    }
}

#[test]
fn a_stream_whose_rest_is_lost_does_not_look_whole() {
    let Some(mut driver) = small_driver(&Arc::default()) else { return };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut peer = std::net::TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    let id = driver.adopt_stream(listener.accept().expect("a connection").0.into()).expect("there is room");
    send(&mut driver, id, b"lost");
    // As when there is no memory for its receive buffers.
    driver.sockets.get_mut(id).expect("it is open").fail(Errno::NOMEM, &driver.parts);
    driver.close(id);
    assert_eq!(driver.sockets(), 0);
    let error = peer.read(&mut [0; 4]).expect_err("no end of stream");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

/// No kernel is known to do it.
#[test]
fn bytes_that_the_kernel_put_nowhere_end_their_stream_and_keep_no_socket() {
    let lost = |flags| Completion { token: 0, result: 5, flags };
    let Some(mut driver) = small_driver(&Arc::default()) else { return };
    // Pretend that a receive is in flight. It is the last operation of a socket that is being closed.
    let (closing, _peer) = connect(&mut driver);
    driver.sockets.get_mut(closing).expect("it is open").connection.begin_receive(Receiving::Armed(0));
    driver.close(closing);
    assert_eq!(driver.sockets(), 1, "an operation is in flight");
    driver.on_receive(closing, 0, lost(0));
    assert_eq!(driver.sockets(), 0, "no completion follows that could close it");

    // A send has failed, so the bytes that arrived before are received first; some of them are lost.
    let (failed, mut peer) = connect(&mut driver);
    assert!(driver.poll_receive(failed, Waker::noop()).is_pending());
    look(&mut driver);
    driver.sockets.get_mut(failed).expect("it is open").fail(Errno::PIPE, &driver.parts);
    driver.on_receive(failed, 0, lost(CQE_MORE));
    peer.write_all(b"behind a hole").expect("it fits");
    assert_eq!(received_of(&mut driver, failed), (0, Some(Err(ErrorKind::BrokenPipe))));
    driver.close(failed);
    let is_closed = (0..TURNS).any(|_| {
        look(&mut driver);
        driver.sockets() == 0
    });
    assert!(is_closed, "its receive is stopped");
}

fn runtime() -> Option<Runtime> {
    Runtime::new(&Config::for_test(Driver::Uring)).ok()
}

/// A runtime that leaves it to a drain to end connections that peers keep open.
fn patient_runtime() -> Option<Runtime> {
    let mut config = Config::for_test(Driver::Uring);
    config.limits.linger = Duration::from_secs(3600);
    Runtime::new(&config).ok()
}

#[test]
fn a_drain_serves_every_request_that_has_arrived_however_many() {
    const CONNECTIONS: usize = 250;
    let Some(runtime) = runtime() else { return };
    let mut peers = runtime.block_on(async {
        let mut peers = Vec::new();
        for _ in 0..CONNECTIONS {
            let (ours, theirs) = UnixStream::pair().expect("a socket pair");
            let stream = Stream::from_descriptor(ours.into()).expect("there is room");
            spawn(async move {
                while let Ok(Some(bytes)) = stream.recv().await {
                    stream.send(bytes).await.expect("the peer reads");
                }
            });
            peers.push(theirs);
        }
        for _ in 0..10 {
            yield_now().await;
        }
        peers
    });
    for peer in &mut peers {
        peer.write_all(b"request").expect("it fits");
        peer.shutdown(std::net::Shutdown::Write).expect("it is open");
    }
    assert_eq!(runtime.drain(Duration::from_secs(10)), 0);
    let mut replies = 0;
    for peer in &mut peers {
        let mut reply = Vec::new();
        peer.read_to_end(&mut reply).expect("the stream ends");
        replies += usize::from(reply == b"request");
    }
    assert_eq!(replies, CONNECTIONS);
}

#[test]
fn a_peer_that_resets_while_its_rest_is_thrown_away_does_not_hold_up_a_drain() {
    let Some(runtime) = runtime() else { return };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut peer = std::net::TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    let (ours, _) = listener.accept().expect("the connection stands");
    runtime.block_on(async {
        let stream = Stream::from_descriptor(ours.into()).expect("there is room");
        spawn(async move { while let Ok(Some(_)) = stream.recv().await {} });
    });
    let peer = std::thread::spawn(move || {
        assert_eq!(peer.read(&mut [0; 1]).expect("our end arrives"), 0);
        socket2::SockRef::from(&peer).set_linger(Some(Duration::ZERO)).expect("a TCP socket");
    });
    let cut = runtime.drain(Duration::from_secs(4));
    peer.join().expect("the peer ends");
    assert_eq!(cut, 0, "the reset ends the connection");
}

#[test]
fn a_peer_that_has_reset_before_our_end_could_be_sent_does_not_hold_up_a_drain() {
    let Some(runtime) = patient_runtime() else { return };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut peer = std::net::TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    let (ours, _) = listener.accept().expect("the connection stands");
    runtime.block_on(async {
        let stream = Stream::from_descriptor(ours.into()).expect("there is room");
        assert!(timeout(Duration::from_millis(1), stream.recv()).await.is_err(), "a receive is in flight");
        spawn(async move {
            crate::draining().await;
            // All of this happens before the driver can see any of it.
            peer.write_all(b"a rest that nobody reads").expect("it fits");
            socket2::SockRef::from(&peer).set_linger(Some(Duration::ZERO)).expect("a TCP socket");
            drop((peer, stream));
        });
    });
    assert_eq!(runtime.drain(Duration::from_secs(4)), 0);
}

#[test]
fn a_connection_that_is_closed_just_before_a_drain_is_not_waited_for() {
    let Some(runtime) = patient_runtime() else { return };
    let (ours, _peer) = UnixStream::pair().expect("a socket pair");
    runtime.block_on(async {
        let stream = Stream::from_descriptor(ours.into()).expect("there is room");
        assert!(timeout(Duration::from_millis(1), stream.recv()).await.is_err());
        drop(stream);
        // Its receive is still in flight, and the peer's direction stays open.
        drain_current();
    });
    assert_eq!(runtime.drain(Duration::from_secs(4)), 0);
}

/// The peer would lose what it has not read yet to a reset at the end of the linger time.
#[test]
fn a_discarding_connection_whose_receive_cannot_start_is_closed_in_order() {
    let counters = Arc::new(Counters::default());
    let Some(mut driver) = small_driver(&counters) else { return };
    let (id, mut peer) = connect(&mut driver);
    driver.drain();
    driver.close(id);
    let socket = driver.sockets.get_mut(id).expect("its peer's direction is open");
    assert!(socket.connection.is_discarding());
    // As when there is no memory for the buffers of a new receive; the present one ends without a trace.
    driver.stop_receive(id);
    let socket = driver.sockets.get_mut(id).expect("its receive is in flight");
    socket.fail(Errno::NOMEM, &driver.parts);
    let deadline = monotonic() + Duration::from_secs(10);
    while driver.sockets() > 0 {
        assert!(monotonic() < deadline, "it is held until the linger time is over");
        look(&mut driver);
    }
    assert_eq!(peer.read(&mut [0; 1]).expect("no reset"), 0);
}

#[test]
fn messages_wake_another_ring_also_when_there_are_more_than_its_queue_holds() {
    let counters = Arc::new(Counters::default());
    let (Some(mut sender), Some(mut target)) = (small_driver(&counters), small_driver(&counters)) else {
        return;
    };
    let Ok(ring) = target.message_ring() else { return };
    let doorbell = Arc::new(Doorbell::new(Arc::clone(&target.parts.wake), Some(ring), Arc::default()));
    look(&mut target);
    for messages in [60, 1] {
        for _ in 0..messages {
            sender.send_message(&doorbell);
            look(&mut sender);
        }
        assert!(!target.parts.woken.replace(false));
        target.turn(Wait::Forever).expect("the ring can be entered");
        assert!(target.parts.woken.get(), "it was a message that ended the wait");
        for _ in 0..TURNS {
            look(&mut target);
        }
        target.parts.woken.set(false);
    }
    assert_eq!(sender.doorbells.len(), 1, "each doorbell is kept once");
}

/// Such an error is reported once: a retry would take lost bytes for written.
#[test]
fn a_sync_that_the_file_system_has_cancelled_is_not_tried_again() {
    let Some(mut driver) = small_driver(&Arc::default()) else { return };
    let program = std::env::current_exe().expect("the test binary has a path");
    let file = Arc::new(OwnedFd::from(std::fs::File::open(program).expect("it is there")));
    let mut operation = FileOperation::New(Request::Sync { file: Arc::clone(&file), data_only: true });
    assert!(driver.poll_operation(&mut operation, Waker::noop()).is_pending());
    let FileOperation::Begun(id) = operation else { panic!("{operation:?}") };
    // In place of the kernel's completion, which comes later and belongs to no operation.
    driver.on_file(id, -libc::ECANCELED);
    let answer = (0..TURNS).find_map(|_| {
        driver.turn(Wait::Until(monotonic() + Duration::from_secs(1))).expect("the ring can be entered");
        match driver.poll_operation(&mut operation, Waker::noop()) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        }
    });
    let error = answer.expect("it is over").expect_err("the kernel has workers");
    assert_eq!(error.raw_os_error(), Some(libc::ECANCELED));
}

/// A driver with a message to the doorbell that the kernel has not taken yet, behind entries that fill its queue.
fn with_unsent_message(doorbell: &Arc<Doorbell>) -> Option<Uring> {
    let mut driver = small_driver(&Arc::default())?;
    let connections: Vec<_> = (0..4).map(|_| connect(&mut driver)).collect();
    for (id, _) in &connections {
        assert!(driver.poll_receive(*id, Waker::noop()).is_pending());
    }
    driver.send_message(doorbell);
    look(&mut driver);
    assert_eq!(driver.unsent.len(), 1, "a turn submits what the queue has room for");
    Some(driver)
}

#[test]
fn whom_a_message_is_for_is_woken_although_the_message_never_leaves() {
    let eventfd = || rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    let Some(target) = small_driver(&Arc::default()) else { return };
    let Ok(ring) = target.message_ring() else { return };
    let bell = Arc::new(eventfd().expect("an eventfd"));
    let doorbell = Arc::new(Doorbell::new(Arc::clone(&bell), Some(ring), Arc::default()));
    let is_rung = || rustix::io::read(&*bell, &mut [0u8; 8]) == Ok(8);
    let Some(mut driver) = with_unsent_message(&doorbell) else { return };
    assert!(!is_rung());
    driver.settle_messages();
    assert!(is_rung(), "the runtime is left, and nobody knows when it goes on");
    for _ in 0..TURNS {
        look(&mut driver);
    }
    driver.settle_messages();
    assert!(!is_rung(), "the message has left");
    drop(with_unsent_message(&doorbell));
    assert!(is_rung(), "the runtime has ended");
}

#[test]
fn a_ring_that_takes_no_more_messages_is_closed_behind_those_on_their_way() {
    let Some(target) = small_driver(&Arc::default()) else { return };
    let Ok(ring) = target.message_ring() else { return };
    let doorbell = Arc::new(Doorbell::new(Arc::clone(&target.parts.wake), Some(ring), Arc::default()));
    let open = Arc::downgrade(&doorbell.messages().expect("it takes messages"));
    let Some(mut driver) = with_unsent_message(&doorbell) else { return };
    doorbell.refuse_messages();
    assert!(open.upgrade().is_some(), "what is queued names its descriptor");
    for _ in 0..TURNS {
        look(&mut driver);
    }
    assert!(open.upgrade().is_none(), "nobody needs it any more");
}

#[test]
fn a_message_that_cannot_be_delivered_becomes_a_write_to_the_eventfd() {
    let counters = Arc::new(Counters::default());
    let Some(mut driver) = small_driver(&counters) else { return };
    if driver.message_ring().is_err() {
        return;
    }
    let eventfd = || rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    let bell = Arc::new(eventfd().expect("an eventfd"));
    // In place of a ring that is going away: this is not a ring.
    let no_ring = eventfd().expect("an eventfd");
    driver.send_message(&Arc::new(Doorbell::new(Arc::clone(&bell), Some(no_ring), Arc::default())));
    for _ in 0..TURNS {
        look(&mut driver);
    }
    assert_eq!(rustix::io::read(&*bell, &mut [0u8; 8]), Ok(8));
}
