//! Tests of servers on every driver: limits, drains, and accepts that fail.

use std::{
    io::{Read, Write},
    net::TcpStream,
    os::unix::net::UnixStream,
    sync::atomic::AtomicU64,
};

use super::*;

async fn echo(stream: Stream) {
    while let Ok(Some(bytes)) = stream.recv().await {
        if stream.send(bytes).await.is_err() {
            return;
        }
    }
}

fn config(driver: Driver, listen: Address) -> ServerConfig {
    ServerConfig::new(Config::for_test(driver), listen)
}

fn loopback() -> Address {
    "127.0.0.1:0".parse().expect("an address")
}

fn connect(server: &Server) -> TcpStream {
    let Address::Tcp(address) = server.address() else { panic!("it listens on TCP") };
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a time limit");
    stream
}

fn is_echoed(stream: &mut TcpStream) -> bool {
    let mut reply = [0; 4];
    stream.write_all(b"ping").is_ok() && stream.read_exact(&mut reply).is_ok() && reply == *b"ping"
}

#[test]
fn one_connection_too_many_is_closed_and_the_server_goes_on() {
    for driver in [Driver::Uring, Driver::Epoll, Driver::Poll, Driver::Select, Driver::Blocking] {
        let mut config = config(driver, loopback());
        // Two connections and the listener, if the runtime holds it.
        config.engine.limits.sockets_max = 3;
        config.blocking_connections_max = 2;
        let Ok(server) = Server::start(config, echo) else { continue };
        let (mut first, mut second) = (connect(&server), connect(&server));
        assert!(is_echoed(&mut first) && is_echoed(&mut second));
        assert!(!is_echoed(&mut connect(&server)), "{driver}: two connections are the limit");
        assert!(is_echoed(&mut first), "{driver}: those that are there go on");
        drop(second);
        let accepted = (0..1000).any(|_| is_echoed(&mut connect(&server)));
        assert!(accepted, "{driver}: there is room again");
        drop(first);
        server.drain();
        let drained = server.join();
        assert!(drained.connections_refused > 0, "{driver}: a refused connection is counted");
        assert_eq!(Drained { connections_refused: 0, ..drained }, Drained::default(), "{driver}");
    }
}

#[test]
fn a_connection_too_many_for_the_worker_it_is_given_to_is_closed_and_counted() {
    for driver in [Driver::Uring, Driver::Epoll, Driver::Poll, Driver::Select] {
        let mut config = config(driver, loopback());
        config.accept = AcceptMode::Acceptor;
        config.workers = 2;
        // For the acceptor, its listener and one connection; for the other worker, two connections.
        config.engine.limits.sockets_max = 2;
        let Ok(server) = Server::start(config, echo) else { continue };
        let control = server.control();
        let mut kept = Vec::new();
        for _ in 0..2 {
            let mut given = connect(&server);
            assert!(is_echoed(&mut given), "{driver}");
            kept.push(given);
            // The acceptor serves every second one; when that one has left there is room for the next.
            assert!(is_echoed(&mut connect(&server)), "{driver}");
            let until = std::time::Instant::now() + Duration::from_secs(10);
            while control.stats().workers[0].connections_open > 0 {
                assert!(
                    std::time::Instant::now() < until,
                    "{driver}: the acceptor's connection is not closed"
                );
                thread::yield_now();
            }
        }
        let refused = connect(&server).read(&mut [0; 1]);
        assert_eq!(refused.expect("it is closed in order"), 0, "{driver}");
        assert!(kept.iter_mut().all(is_echoed), "{driver}: those that are there go on");
        drop(kept);
        server.drain();
        assert_eq!(server.join(), Drained { connections_refused: 1, ..Drained::default() }, "{driver}");
        let total = control.stats().total;
        assert_eq!((total.accepts, total.closes), (5, 5), "{driver}");
    }
}

/// A server on a bound socket that does not listen, so that every accept fails, and that socket.
fn on_deaf_socket(driver: Driver, accept: AcceptMode) -> Option<(Server, OwnedFd)> {
    let Address::Tcp(address) = loopback() else { panic!("it is TCP") };
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    socket.bind(&address.into()).expect("a free port");
    let bound = Address::from_socket_address(&socket.local_addr().expect("it is bound")).expect("TCP");
    let descriptor = OwnedFd::from(socket);
    let listeners = vec![(descriptor.try_clone().expect("a descriptor"), bound)];
    let mut config = config(driver, loopback());
    config.accept = accept;
    config.workers = if accept == AcceptMode::Acceptor { 2 } else { 1 };
    Server::start_on(config, |_| Ok(listeners), |_| Ok(()), echo).ok().map(|server| (server, descriptor))
}

#[test]
fn a_server_that_can_accept_no_more_ends_as_a_whole_and_says_why() {
    let drivers = [Driver::Uring, Driver::Epoll, Driver::Poll, Driver::Select, Driver::Blocking];
    let single = drivers.map(|driver| on_deaf_socket(driver, AcceptMode::ReusePort));
    let shared = on_deaf_socket(Driver::Poll, AcceptMode::Acceptor);
    for (server, _socket) in single.into_iter().chain([shared]).flatten() {
        let (driver, control) = (server.driver(), server.control());
        let error = server.join().accept_error.expect("nobody has told it to end");
        let said = error.to_string();
        assert!(said.starts_with("worker 0 can accept no more connections: Invalid"), "{driver}: {said}");
        assert_eq!(control.stats().total.accepts_failed, 11, "{driver}: ten are tried again");
    }
}

#[test]
fn accepting_goes_on_after_a_failure_that_passes() {
    for driver in [Driver::Uring, Driver::Epoll, Driver::Poll, Driver::Select, Driver::Blocking] {
        let Some((server, socket)) = on_deaf_socket(driver, AcceptMode::ReusePort) else { continue };
        while server.control().stats().total.accepts_failed == 0 {
            thread::yield_now();
        }
        rustix::net::listen(&socket, 1).expect("it is bound");
        assert!(is_echoed(&mut connect(&server)), "{driver}");
        server.drain();
        assert_eq!(server.join(), Drained::default(), "{driver}");
    }
}

#[test]
fn workers_begin_as_they_are_told_and_what_they_spawned_ends_with_the_drain() {
    for driver in [Driver::Uring, Driver::Epoll, Driver::Poll, Driver::Select] {
        let mut config = config(driver, loopback());
        config.workers = 2;
        config.drain_limit = Duration::from_secs(60);
        let (begun, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (begin, end) = (Arc::clone(&begun), Arc::clone(&ended));
        let on_worker = move |worker: usize| {
            begin.fetch_add(1 << (8 * worker), Ordering::SeqCst);
            let end = Arc::clone(&end);
            executor::try_spawn(async move {
                assert!(!executor::is_draining());
                executor::draining().await;
                assert!(executor::is_draining());
                end.fetch_add(1, Ordering::SeqCst);
            })?;
            Ok(())
        };
        let Ok(server) = Server::start_with(config, on_worker, echo) else { continue };
        assert_eq!(begun.load(Ordering::SeqCst), 0x101, "{driver}: once each");
        assert!(is_echoed(&mut connect(&server)));
        server.drain();
        assert_eq!(server.join(), Drained::default());
        assert_eq!(ended.load(Ordering::SeqCst), 2, "{driver}");
    }
}

#[test]
fn a_drain_waits_for_no_place_in_a_queue() {
    let mut config = config(Driver::Poll, loopback());
    config.engine.limits.remote_queue_max = 1;
    let ((hold, held), (release, released)) = (mpsc::channel(), mpsc::channel::<()>());
    let released = Arc::new(Mutex::new(released));
    // A handler that never yields its thread.
    let holds = move |stream: Stream| {
        let (hold, released) = (hold.clone(), Arc::clone(&released));
        async move {
            hold.send(()).expect("it is waited for");
            lock(&released).recv().expect("it is released");
            drop(stream);
        }
    };
    let server = Server::start(config, holds).expect("poll runs everywhere");
    let stream = connect(&server);
    held.recv().expect("the connection is served");
    let worker = lock(&server.shared.remotes)[0].clone();
    while worker.call(|| {}).is_ok() {}
    let (control, (done, drained)) = (server.control(), mpsc::channel());
    let draining = thread::spawn(move || {
        control.drain();
        done.send(()).expect("it is waited for");
    });
    drained.recv_timeout(Duration::from_secs(30)).expect("it has been told, and looks when it can");
    release.send(()).expect("the handler waits");
    draining.join().expect("it has ended");
    drop(stream);
    assert_eq!(server.join(), Drained::default());
}

#[test]
fn the_end_of_a_server_does_not_wait_for_a_worker_that_hangs() {
    let ((hold, held), (release, released)) = (mpsc::channel(), mpsc::channel::<()>());
    let released = Arc::new(Mutex::new(released));
    // A handler that yields its thread when the test is over.
    let hangs = move |stream: Stream| {
        let (hold, released) = (hold.clone(), Arc::clone(&released));
        async move {
            hold.send(()).expect("it is waited for");
            let _ = lock(&released).recv();
            drop(stream);
        }
    };
    let server = Server::start(config(Driver::Poll, loopback()), hangs).expect("poll runs everywhere");
    let stream = connect(&server);
    held.recv().expect("the connection is served");
    // As if the drain limit had passed long ago.
    server.shared.departures.limit_until(std::time::Instant::now());
    server.drain();
    let drained = server.join();
    assert_eq!((drained.workers_left, drained.connections_cut), (vec![0], 0));
    drop((stream, release));
}

#[test]
fn a_drain_limits_how_long_the_end_may_take() {
    let server = Server::start(config(Driver::Poll, loopback()), echo).expect("poll runs everywhere");
    assert!(!server.shared.departures.is_limited(), "nobody has told it to end");
    server.drain();
    assert!(server.shared.departures.is_limited());
    assert_eq!(server.join(), Drained::default());
}

#[test]
fn a_worker_that_cannot_begin_is_the_error_of_the_start() {
    for driver in [Driver::Poll, Driver::Blocking] {
        let fails = |_| Err(io::Error::other("there is no journal"));
        let error = Server::start_with(config(driver, loopback()), fails, echo).expect_err("it fails");
        assert_eq!(error.to_string(), "cannot start worker 0: there is no journal");
    }
}

#[test]
fn a_connection_that_cannot_be_handed_out_is_kept() {
    let mut config = config(Driver::Poll, loopback());
    config.workers = 2;
    config.accept = AcceptMode::Acceptor;
    let server = Server::start(config, echo).expect("poll runs everywhere");
    // As before the second worker has started.
    lock(&server.shared.remotes).truncate(1);
    let mut streams: Vec<TcpStream> = (0..4).map(|_| connect(&server)).collect();
    assert!(streams.iter_mut().all(is_echoed));
    drop(streams);
    server.drain();
    // The second worker can no longer be asked to drain: it is not waited for.
}

#[test]
fn a_blocking_connection_ends_with_a_handler_that_panics() {
    let panics = |stream: Stream| async move {
        let _ = stream.recv().await;
        panic!("on purpose");
    };
    let server = Server::start(config(Driver::Blocking, loopback()), panics).expect("it runs everywhere");
    let mut stream = connect(&server);
    stream.write_all(b"go").expect("it fits");
    assert_eq!(stream.read(&mut [0; 1]).expect("the connection ends in order"), 0);
    server.drain();
    server.join();
}

#[test]
fn the_beginning_and_the_end_of_a_blocking_connection_are_in_the_threads_own_time() {
    const CONNECTIONS: u64 = 20;
    let server = Server::start(config(Driver::Blocking, loopback()), echo).expect("it runs everywhere");
    let control = server.control();
    control.time_calls(true);
    for _ in 0..CONNECTIONS {
        assert!(is_echoed(&mut connect(&server)));
    }
    server.drain();
    assert_eq!(server.join(), Drained::default());
    let [_, connections] = control.stats().workers[..] else { panic!("an acceptor and the others") };
    // To the receive, from there to the send, to the receive that finds the end, and to the wait for the next one. A
    // thread that was already waiting when the clock was switched on has no start for its first span.
    assert!(connections.outside_calls_spans >= 4 * CONNECTIONS - 1, "{connections:?}");
}

#[test]
fn a_stream_that_is_cut_does_not_look_whole() {
    let hangs = |stream: Stream| async move {
        stream.send(b"half").await.expect("the peer reads");
        std::future::pending::<()>().await;
    };
    for driver in [Driver::Uring, Driver::Epoll, Driver::Poll, Driver::Select, Driver::Blocking] {
        let mut config = config(driver, loopback());
        config.drain_limit = Duration::from_millis(10);
        let Ok(server) = Server::start(config, hangs) else { continue };
        let mut stream = connect(&server);
        stream.read_exact(&mut [0; 4]).expect("half a reply");
        server.drain();
        assert_eq!(server.join().connections_cut, 1, "{driver}");
        let error = stream.read(&mut [0; 1]).expect_err("no end of stream");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{driver}");
    }
}

#[test]
fn a_sender_whose_peer_does_not_read_is_cut_at_the_deadline() {
    const BYTES: usize = 32 << 20;
    let sends = |stream: Stream| async move {
        let _ = stream.send(vec![b'x'; BYTES]).await;
        let _ = stream.flush().await;
    };
    for driver in [Driver::Uring, Driver::Epoll, Driver::Poll, Driver::Select, Driver::Blocking] {
        let mut config = config(driver, loopback());
        config.drain_limit = Duration::from_millis(10);
        let Ok(server) = Server::start(config, sends) else { continue };
        let mut stream = connect(&server);
        stream.read_exact(&mut [0; 4]).expect("the first bytes");
        server.drain();
        assert_eq!(server.join().connections_cut, 1, "{driver}");
        let mut received = Vec::new();
        let error = stream.read_to_end(&mut received).expect_err("no end of stream");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{driver}");
        assert!(received.len() < BYTES, "{driver}");
    }
}

#[test]
fn a_drain_ends_idle_connections_in_order_and_does_not_wait_for_the_ends_of_their_peers() {
    for driver in [Driver::Uring, Driver::Epoll, Driver::Poll, Driver::Select, Driver::Blocking] {
        let mut config = config(driver, loopback());
        // A connection that waits for its peer does so until the limit, and is cut then.
        config.engine.limits.linger = Duration::from_secs(3600);
        config.drain_limit = Duration::from_secs(60);
        let Ok(server) = Server::start(config, echo) else { continue };
        let (mut used, mut fresh) = (connect(&server), connect(&server));
        assert!(is_echoed(&mut used));
        while server.control().stats().total.connections_open < 2 {
            thread::yield_now();
        }
        server.drain();
        for stream in [&mut used, &mut fresh] {
            assert_eq!(stream.read(&mut [0; 1]).expect("an end in order"), 0, "{driver}");
        }
        // The directions of both peers stay open.
        assert_eq!(server.join(), Drained::default(), "{driver}");
    }
}

#[test]
fn a_drain_without_time_counts_each_connection_once_and_no_listener() {
    for driver in [Driver::Uring, Driver::Epoll, Driver::Poll, Driver::Select, Driver::Blocking] {
        let mut config = config(driver, loopback());
        config.drain_limit = Duration::ZERO;
        let Ok(server) = Server::start(config, echo) else { continue };
        let mut stream = connect(&server);
        assert!(is_echoed(&mut stream));
        server.drain();
        assert_eq!(server.join().connections_cut, 1, "{driver}");
    }
}

#[test]
fn a_path_that_another_server_has_bound_since_is_left_alone() {
    let path = std::env::temp_dir().join(format!("weir-rebound-{}.sock", std::process::id()));
    let address = Address::Unix(path.clone());
    let first = Server::start(config(Driver::Poll, address.clone()), echo).expect("a free path");
    std::fs::remove_file(&path).expect("it is there");
    let second = Server::start(config(Driver::Poll, address), echo).expect("a free path");
    first.drain();
    first.join();
    assert!(UnixStream::connect(&path).is_ok(), "the second server is reachable");
    second.drain();
    second.join();
    assert!(!path.exists());
}
