//! Tests of what the driver does only if an option asks for it.

use std::{
    io::{ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::net::UnixStream,
    rc::Rc,
    sync::Arc,
    task::{Poll, Waker},
    time::Duration,
};

use socket2::SockRef;

use super::{TURNS, connect, driver_with, look, read_all, send};
use crate::{
    config::{Config, Driver, ReceiveMode},
    counters::Counters,
    driver::{DriverOps, Wait, uring::Uring},
    slab::SlotId,
    time::monotonic,
};

/// Two connections that wait for data on a driver with this minimum wait; `None` if the kernel does not support it.
fn two_with_minimum_wait(minimum: Duration) -> Option<(Uring, [(SlotId, UnixStream); 2])> {
    let mut config = Config::for_test(Driver::Uring);
    config.uring.minimum_wait = minimum;
    let mut driver = driver_with(&config, &Arc::default())?;
    let connections = [connect(&mut driver), connect(&mut driver)];
    for (id, _) in &connections {
        assert!(driver.poll_receive(*id, Waker::noop()).is_pending());
    }
    Some((driver, connections))
}

fn has_received(driver: &Uring, id: SlotId) -> bool {
    driver.sockets.get(id).expect("it is open").inbound.bytes() > 0
}

#[test]
fn a_minimum_wait_is_over_when_its_time_is_or_everybody_has_something() {
    const SHORT: Duration = Duration::from_millis(30);
    const LONG: Duration = Duration::from_secs(60);
    let Some((mut driver, [(first, mut peer), (_, _other)])) = two_with_minimum_wait(SHORT) else { return };
    let start = monotonic();
    peer.write_all(b"x").expect("it fits");
    driver.turn(Wait::Forever).expect("the ring can be entered");
    assert!(monotonic().since(start) >= SHORT, "the other one may have something too");
    assert!(has_received(&driver, first));

    let Some((mut driver, mut connections)) = two_with_minimum_wait(LONG) else { return };
    let start = monotonic();
    for (_, peer) in &mut connections {
        peer.write_all(b"x").expect("it fits");
    }
    driver.turn(Wait::Forever).expect("the ring can be entered");
    assert!(monotonic().since(start) < LONG && connections.iter().all(|(id, _)| has_received(&driver, *id)));
}

#[test]
fn a_minimum_wait_ends_with_the_deadline_and_is_none_for_a_single_connection() {
    const LONG: Duration = Duration::from_secs(60);
    let Some((mut driver, [(first, mut peer), (second, _other)])) = two_with_minimum_wait(LONG) else {
        return;
    };
    let start = monotonic();
    driver.turn(Wait::Until(start + Duration::from_millis(5))).expect("the ring can be entered");
    driver.close(second);
    let is_closed = (0..TURNS).any(|_| {
        look(&mut driver);
        driver.sockets() == 1
    });
    assert!(is_closed);
    peer.write_all(b"x").expect("it fits");
    driver.turn(Wait::Forever).expect("the ring can be entered");
    assert!(has_received(&driver, first));
    assert!(monotonic().since(start) < LONG);
}

/// A driver whose sockets are in a file table; `None` if the kernel's tables do not suffice.
fn driver_with_table() -> Option<Uring> {
    let mut config = Config::for_test(Driver::Uring);
    config.uring.fixed_files = true;
    driver_with(&config, &Arc::default())
}

fn is_in_table(driver: &Uring, id: SlotId) -> bool {
    driver.sockets.get(id).expect("it is open").target.is_place()
}

/// Whether the peer finds the end of the stream within some turns.
fn sees_end(driver: &mut Uring, peer: &mut UnixStream) -> bool {
    (0..TURNS).any(|_| {
        look(driver);
        matches!(peer.read(&mut [0; 8]), Ok(0))
    })
}

#[test]
fn a_socket_leaves_the_table_of_files_before_it_is_closed() {
    let Some(mut driver) = driver_with_table() else { return };
    let (idle, _idle_peer) = connect(&mut driver);
    assert!(driver.poll_receive(idle, Waker::noop()).is_pending());
    look(&mut driver);
    for round in 0..3 {
        let (id, mut peer) = connect(&mut driver);
        assert!(is_in_table(&driver, id));
        send(&mut driver, id, b"through the table");
        driver.flush();
        look(&mut driver);
        assert_eq!(read_all(&mut peer), b"through the table");
        driver.close(id);
        assert!(sees_end(&mut driver, &mut peer), "round {round}: the receive of another one holds it open");
    }
}

#[test]
fn a_socket_that_leaves_the_driver_leaves_the_table_of_files() {
    let Some(mut driver) = driver_with_table() else { return };
    let (id, mut peer) = connect(&mut driver);
    drop(driver.detach(id).expect("nothing is in flight"));
    assert!(sees_end(&mut driver, &mut peer));
    let (id, mut peer) = connect(&mut driver);
    assert!(driver.poll_receive(id, Waker::noop()).is_pending());
    let moved = (0..TURNS).find_map(|_| {
        look(&mut driver);
        match driver.poll_detach(id, Waker::noop()) {
            Poll::Ready(moved) => Some(moved.expect("nothing has failed")),
            Poll::Pending => None,
        }
    });
    drop(moved.expect("its receive ends"));
    assert!(sees_end(&mut driver, &mut peer));
}

#[test]
fn a_socket_beyond_the_end_of_the_table_is_named_by_its_descriptor() {
    let Some(mut driver) = driver_with_table() else { return };
    driver.table.places = 1;
    let mut connections = [connect(&mut driver), connect(&mut driver)];
    assert_eq!(connections.each_ref().map(|(id, _)| is_in_table(&driver, *id)), [true, false]);
    for (id, peer) in &mut connections {
        send(&mut driver, *id, b"either way");
        driver.flush();
        look(&mut driver);
        assert_eq!(read_all(peer), b"either way");
        driver.close(*id);
        assert!(sees_end(&mut driver, peer));
    }
}

/// A driver that sends without a copy; `None` if the kernel does not support it.
fn driver_that_lends() -> Option<Uring> {
    let mut config = Config::for_test(Driver::Uring);
    config.uring.zero_copy_bytes_min = Some(1024);
    driver_with(&config, &Arc::default())
}

/// A TCP connection whose peer is non-blocking.
fn connect_tcp(driver: &mut Uring) -> (SlotId, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let peer = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    peer.set_nonblocking(true).expect("a socket can be made non-blocking");
    (driver.adopt_stream(listener.accept().expect("a connection").0.into()).expect("there is room"), peer)
}

/// Bytes that each depend on their position.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|place| (place % 251) as u8).collect()
}

/// Turns until the peer has received this many bytes.
fn receive(driver: &mut Uring, peer: &mut impl Read, length: usize) -> Vec<u8> {
    let (mut bytes, mut part) = (Vec::new(), vec![0; 64 << 10]);
    for _ in 0..100 * TURNS {
        driver.flush();
        look(driver);
        match peer.read(&mut part) {
            Ok(count) => bytes.extend_from_slice(&part[..count]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        if bytes.len() >= length {
            return bytes;
        }
    }
    panic!("{} of {length} bytes have arrived", bytes.len());
}

/// Whether all lent memory is returned within some turns.
fn gives_everything_back(driver: &mut Uring) -> bool {
    (0..TURNS).any(|_| {
        look(driver);
        driver.zero_copy.in_flight() == 0
    })
}

#[test]
fn large_chunks_are_lent_until_the_kernel_has_let_go_of_them_and_small_ones_go_before() {
    let Some(mut driver) = driver_that_lends() else { return };
    let (id, mut peer) = connect_tcp(&mut driver);
    let body = pattern(300 << 10);
    let mut expected = b"head".to_vec();
    for _ in 0..3 {
        send(&mut driver, id, b"head");
        DriverOps::push(&mut driver, id, body.clone().into()).expect("it is open");
        expected.extend_from_slice(&body);
        expected.extend_from_slice(b"head");
    }
    expected.truncate(expected.len() - 4);
    driver.flush();
    look(&mut driver);
    assert_eq!(driver.zero_copy.in_flight(), 1, "the head has left, and the first body is lent");
    let received = receive(&mut driver, &mut peer, expected.len());
    assert!(received == expected, "every byte, in order");
    assert!(gives_everything_back(&mut driver));
    assert!(!driver.sockets.get(id).expect("it is open").copies);
}

#[test]
fn a_socket_that_cannot_send_without_a_copy_is_sent_to_with_copies() {
    let Some(mut driver) = driver_that_lends() else { return };
    let (id, mut peer) = connect(&mut driver);
    let body = pattern(100 << 10);
    for round in 0..2 {
        DriverOps::push(&mut driver, id, body.clone().into()).expect("it is open");
        assert!(receive(&mut driver, &mut peer, body.len()) == body, "round {round}");
    }
    assert!(driver.sockets.get(id).expect("it is open").copies);
    assert!(gives_everything_back(&mut driver));
}

/// Bytes that each depend on their position, starting at this offset in a page, with static lifetime.
fn pattern_in_page(place: usize, length: usize) -> &'static [u8] {
    let memory = vec![0; length + 8192].leak();
    let first = (place + 4096 - memory.as_ptr() as usize % 4096) % 4096;
    let bytes = &mut memory[first..first + length];
    bytes.copy_from_slice(&pattern(length));
    bytes
}

#[test]
fn a_peer_with_a_small_window_is_sent_to_with_copies() {
    let Some(mut driver) = driver_that_lends() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    // The receive buffer of a new connection.
    SockRef::from(&listener).set_recv_buffer_size(4096).expect("a socket can have small buffers");
    let ours = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    let (mut peer, _) = listener.accept().expect("a connection");
    peer.set_nonblocking(true).expect("a socket can be made non-blocking");
    let id = driver.adopt_stream(ours.into()).expect("there is room");
    // The first segment is half a window, and would lie on two pages.
    let bytes = pattern_in_page(3000, 64 << 10);
    let start = monotonic();
    DriverOps::push(&mut driver, id, bytes.into()).expect("it is open");
    let (mut received, mut part) = (Vec::new(), vec![0; 64 << 10]);
    while received.len() < bytes.len() {
        driver.flush();
        driver.turn(Wait::Until(monotonic() + Duration::from_millis(1))).expect("it can be entered");
        while let Ok(count @ 1..) = peer.read(&mut part) {
            received.extend_from_slice(&part[..count]);
        }
        assert!(monotonic().since(start) < Duration::from_secs(2), "{} bytes in two seconds", received.len());
    }
    assert!(received == bytes);
    assert!(!driver.sockets.get(id).expect("it is open").copies, "its window may become larger");
}

#[test]
fn beyond_what_may_be_lent_a_send_is_copied() {
    let Some(mut driver) = driver_that_lends() else { return };
    driver.zero_copy.bytes_max = 2000;
    let (id, mut peer) = connect_tcp(&mut driver);
    DriverOps::push(&mut driver, id, pattern(2001).into()).expect("it is open");
    driver.flush();
    assert_eq!(driver.zero_copy.in_flight(), 0);
    assert!(receive(&mut driver, &mut peer, 2001) == pattern(2001));
    assert!(!driver.sockets.get(id).expect("it is open").copies, "the next one may be lent again");
}

#[test]
fn what_is_queued_behind_a_lent_chunk_holds_no_buffer() {
    let Some(mut driver) = driver_that_lends() else { return };
    let (id, _peer) = connect_tcp(&mut driver);
    // More than the socket and a peer that does not read have room for.
    DriverOps::push(&mut driver, id, pattern(32 << 20).into()).expect("it is open");
    driver.flush();
    look(&mut driver);
    assert_eq!(driver.zero_copy.in_flight(), 1);
    let pool = Rc::clone(&driver.parts.receive_pool);
    let lease = pool.take(0).expect("a buffer is free").lease(6);
    let free = pool.free(0);
    DriverOps::push(&mut driver, id, lease.into()).expect("it is open");
    driver.flush();
    assert_eq!(pool.free(0), free + 1, "the peer may never read");
}

#[test]
fn a_connection_that_is_aborted_does_not_take_what_is_lent_from_the_kernel() {
    let Some(mut driver) = driver_that_lends() else { return };
    let (id, peer) = connect_tcp(&mut driver);
    // More than the socket and a peer that does not read have room for.
    DriverOps::push(&mut driver, id, pattern(32 << 20).into()).expect("it is open");
    driver.flush();
    look(&mut driver);
    assert_eq!(driver.zero_copy.in_flight(), 1);
    driver.close(id);
    look(&mut driver);
    assert_eq!(driver.sockets(), 1, "what is queued is still sent");
    driver.abort(id);
    let is_closed = (0..TURNS).any(|_| {
        look(&mut driver);
        driver.sockets() == 0
    });
    assert!(is_closed);
    drop(peer);
    assert!(gives_everything_back(&mut driver));
}

#[test]
fn what_is_lent_when_a_driver_ends_reaches_the_peer_unchanged() {
    let Some(mut driver) = driver_that_lends() else { return };
    let (id, mut peer) = connect_tcp(&mut driver);
    let bytes = pattern(32 << 20);
    DriverOps::push(&mut driver, id, bytes.clone().into()).expect("it is open");
    driver.flush();
    look(&mut driver);
    assert_eq!(driver.zero_copy.in_flight(), 1);
    // The peer does not read: the kernel still has a part of it when there is no driver any more.
    drop(driver);
    let other = vec![0xff_u8; 32 << 20];
    peer.set_nonblocking(false).expect("a socket can be made blocking");
    peer.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket has a time limit");
    let mut received = Vec::new();
    // The stream may end with a reset: bytes that were not in the socket yet are lost with the runtime.
    let _ = peer.read_to_end(&mut received);
    assert!(!received.is_empty() && bytes.starts_with(&received), "{} bytes", received.len());
    drop(other);
}

/// Takes the bytes that a connection has received.
fn take_input(driver: &mut Uring, id: SlotId, into: &mut Vec<u8>) {
    while let Poll::Ready(received) = driver.poll_receive(id, Waker::noop()) {
        into.extend_from_slice(&received.expect("it is open").expect("its peer is"));
    }
}

#[test]
fn a_bundle_brings_every_byte_in_order_for_fewer_completions_than_buffers() {
    let counters = Arc::new(Counters::default());
    let mut config = Config::for_test(Driver::Uring);
    config.uring.receive = ReceiveMode::Bundle;
    config.buffers.bytes = Some(1024);
    let Some(mut driver) = driver_with(&config, &counters) else { return };
    let mut connections = [connect_tcp(&mut driver), connect_tcp(&mut driver)];
    // More buffers in all than their ring has entries, and never a multiple of that number.
    for round in 0..500 {
        let bytes = pattern(9_001 + round);
        for (id, peer) in &mut connections {
            peer.write_all(&bytes).expect("it fits");
            let mut received = Vec::new();
            for _ in 0..TURNS {
                take_input(&mut driver, *id, &mut received);
                if received.len() >= bytes.len() {
                    break;
                }
                driver.turn(Wait::Until(monotonic() + Duration::from_millis(10))).expect("it can be entered");
            }
            assert!(received == bytes, "round {round}: {} of {} bytes", received.len(), bytes.len());
        }
    }
    let stats = counters.snapshot();
    assert!(stats.receives > stats.completions, "{stats:?}");
}

#[test]
fn a_kernel_thread_submits_what_its_queue_has_no_room_for_and_after_it_has_slept() {
    let mut config = Config::for_test(Driver::Uring);
    config.uring.entries = 2;
    config.uring.poll_idle_ms = Some(1);
    let Some(mut driver) = driver_with(&config, &Arc::default()) else { return };
    let mut connections: Vec<_> = (0..16).map(|_| connect(&mut driver)).collect();
    for round in 0..20 {
        let mut waiting = Vec::new();
        for (id, peer) in &mut connections {
            peer.write_all(b"ping").expect("it fits");
            waiting.push((*id, Vec::new()));
        }
        for _ in 0..TURNS {
            waiting.iter_mut().for_each(|(id, received)| take_input(&mut driver, *id, received));
            if waiting.iter().all(|(_, received)| received == b"ping") {
                break;
            }
            driver.turn(Wait::Until(monotonic() + Duration::from_millis(10))).expect("it can be entered");
        }
        assert!(waiting.iter().all(|(_, received)| received == b"ping"), "round {round}");
        // Nothing happens for longer than the thread polls.
        driver.turn(Wait::Until(monotonic() + Duration::from_millis(3))).expect("it can be entered");
    }
}
