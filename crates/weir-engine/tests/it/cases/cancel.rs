//! Futures dropped, timeouts expired, descriptors reused: bytes in flight never reach another connection.

use std::{
    cell::Cell,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use weir_engine::{
    Driver,
    net::{Listener, Stream},
    spawn, time,
};

use crate::{
    board::{Board, poll_once},
    kernel,
    outcome::note,
    peer::{Ending, Network, Peer, PeerBuffers},
    random::Random,
    rig::Rig,
};

/// Case 9: receives are dropped at random moments while bytes arrive; all bytes arrive, once and in order.
pub fn dropped_receives(rig: &mut Rig) {
    // A blocked thread's receive can only be dropped when a timeout ends it, which takes a tick of the kernel.
    let wanted = if rig.subject.driver == Driver::Blocking { 200 } else { 100_000 };
    let dropped = Arc::new(AtomicUsize::new(0));
    let (count, pattern, seed) = (Arc::clone(&dropped), rig.pattern.clone(), rig.random.next());
    let by_time_only = matches!(rig.subject.driver, Driver::Blocking | Driver::Sim);
    let handler = move |stream: Stream| {
        let (count, pattern, mut random) = (Arc::clone(&count), pattern.clone(), Random::new(seed));
        async move {
            let mut offset = 0;
            loop {
                let limit = Duration::from_micros(random.between(0, 60) as u64);
                let outcome = if by_time_only || random.one_in(500) {
                    time::timeout(limit, stream.recv()).await.ok()
                } else {
                    poll_once(stream.recv()).await
                };
                match outcome {
                    Some(Ok(Some(lease))) => {
                        pattern.check(offset, &lease);
                        offset += lease.len();
                    }
                    Some(Ok(None)) => break,
                    Some(Err(error)) => panic!("after {offset} bytes: {error}"),
                    None => {
                        count.fetch_add(1, SeqCst);
                        time::yield_now().await;
                    }
                }
            }
            // An error comes from the peer, and the script sees it.
            let _ = stream.send(format!("{offset}").into_bytes()).await;
        }
    };
    let (pattern, mut random) = (rig.pattern.clone(), rig.random.fork());
    let served = rig.serve(handler, async |network| {
        let mut peer = network.connect().await;
        let mut offset = 0;
        while dropped.load(SeqCst) < wanted {
            let length = random.between(1, 300);
            peer.write(&pattern.bytes(offset, length)).await.expect("the server reads");
            offset += length;
            if random.one_in(4) {
                network.let_others_run().await;
            }
        }
        peer.shutdown().await.expect("half of the connection ends");
        let (reply, ending) = peer.read_to_end().await;
        assert_eq!((String::from_utf8_lossy(&reply).into_owned(), ending), (offset.to_string(), Ending::End));
    });
    served.expect_clean();
}

/// Case 10: accepts are dropped while connections storm in; none is lost, and no descriptor stays open.
pub fn dropped_accepts(rig: &mut Rig) {
    let before = kernel::open_descriptors();
    for listener_is_dropped_early in [false, true] {
        accept_storm(rig, listener_is_dropped_early);
    }
    if !rig.subject.is_sim() {
        assert_eq!(kernel::open_descriptors(), before, "descriptors are left open");
    }
}

fn accept_storm(rig: &mut Rig, listener_is_dropped_early: bool) {
    const CONNECTIONS: usize = 300;
    let wanted = if listener_is_dropped_early { CONNECTIONS / 3 } else { CONNECTIONS };
    let mut random = rig.random.fork();
    let started = Board::new();
    let start = started.clone();
    let body = async move |listener: Listener, stop: Board| {
        assert!(poll_once(listener.accept()).await.is_none(), "nobody has connected yet");
        start.post("one is dropped");
        let (mut accepted, mut dropped) = (0, 1);
        while accepted < wanted {
            let limit = Duration::from_micros(random.between(0, 30) as u64);
            let outcome = match random.between(0, 2) {
                0 => poll_once(listener.accept()).await,
                _ => time::timeout(limit, listener.accept()).await.ok(),
            };
            match outcome {
                Some(stream) => {
                    let stream = stream.expect("accepting goes on");
                    accepted += 1;
                    spawn(super::handlers::echo(stream));
                }
                None => {
                    dropped += 1;
                    time::yield_now().await;
                }
            }
        }
        if listener_is_dropped_early {
            drop(listener);
        }
        stop.reached(1).await;
        dropped
    };
    let served = rig.run(body, async move |network| {
        started.reached(1).await;
        let mut peers = Vec::new();
        for _ in 0..CONNECTIONS {
            match network.try_connect(PeerBuffers::default()).await {
                Ok(peer) => peers.push(peer),
                Err(_) => assert!(listener_is_dropped_early, "a connection was refused"),
            }
            network.let_others_run().await;
        }
        let mut answered = 0;
        for peer in &mut peers {
            answered += usize::from(peer.exchange(b"storm").await.is_ok_and(|reply| reply == b"storm"));
        }
        network.stop.post("done");
        answered
    });
    let (dropped, answered) = served.value;
    note(&format!("{dropped} accepts dropped"));
    assert_eq!(answered, wanted, "{:?}", served.stats);
    assert_eq!(served.connections_cut, 0, "{:?}", served.stats);
}

/// Case 11: thousands of timeouts expire in one turn, with a submission queue of 64.
pub fn mass_timeout(rig: &mut Rig) {
    let connections = if rig.subject.driver == Driver::Select { 400 } else { 3000 };
    let limit = kernel::raise_descriptor_limit(2 * connections + 200);
    let connections = connections.min((limit - 100) / 2);
    rig.config.uring.entries = rig.config.uring.entries.min(64);
    rig.listen = if rig.subject.is_sim() { rig.listen.clone() } else { rig.abstract_address() };
    let body = async move |listener: Listener, _stop: Board| {
        let (armed, go, expired) = (Board::new(), Board::new(), Board::new());
        let deadline = Rc::new(Cell::new(time::now()));
        let mut streams = Vec::with_capacity(connections);
        while streams.len() < connections {
            streams.push(listener.accept().await.expect("a connection"));
        }
        let start = time::now();
        for stream in streams {
            let (armed, go, expired) = (armed.clone(), go.clone(), expired.clone());
            let deadline = Rc::clone(&deadline);
            spawn(async move {
                assert!(poll_once(stream.recv()).await.is_none(), "nothing was sent");
                armed.post("armed");
                go.reached(1).await;
                let outcome = time::timeout_at(deadline.get(), stream.recv()).await;
                expired.post(if outcome.is_err() { "expired" } else { "received" });
            });
        }
        armed.reached(connections).await;
        // Late enough for every task to set its timer first, even on a busy machine.
        let took = time::now().since(start);
        deadline.set(time::now() + 10 * took + Duration::from_millis(250));
        go.post("go");
        expired.reached(connections).await;
        expired.lines().iter().filter(|line| *line == "expired").count()
    };
    let served = rig.run(body, async move |network| {
        let mut peers = network.connect_many(connections).await;
        let mut ended = 0;
        for peer in &mut peers {
            ended += usize::from(peer.read_to_end().await == (Vec::new(), Ending::End));
        }
        ended
    });
    assert_eq!(served.value, (connections, connections), "{:?}", served.stats);
    served.expect_clean();
    assert!(served.stats.timers_fired >= connections as u64, "{:?}", served.stats);
}

/// Case 12: the stream is dropped while a receive is in flight: the peer sees the end without sending anything.
pub fn close_under_receive(rig: &mut Rig) {
    let is_sim = rig.subject.is_sim();
    let closed = Arc::new(std::sync::Mutex::new(None));
    let moment = Arc::clone(&closed);
    let handler = move |stream: Stream| {
        let moment = Arc::clone(&moment);
        async move {
            let outcome = time::timeout(Duration::from_millis(1), stream.recv()).await;
            assert!(outcome.is_err(), "nothing was sent");
            drop(stream);
            *moment.lock().expect("no handler panicked") = Some(time::now());
        }
    };
    let served = rig.serve(handler, async |network| {
        for _ in 0..20 {
            let mut peer = network.connect().await;
            assert_eq!(peer.read_to_end().await, (Vec::new(), Ending::End));
            if is_sim {
                let moment = closed.lock().expect("no handler panicked").expect("the handler ended first");
                let delay = time::now().since(moment);
                assert!(delay < Duration::from_millis(10), "the end took {delay:?}");
            }
        }
    });
    served.expect_clean();
    assert_eq!(served.stats.bytes_received, 0);
}

/// How a round of case 13 ends its connection.
async fn end_connection(mut peer: Peer, way: usize) {
    match way {
        // With a receive of the server in flight.
        0 => drop(peer),
        1 => peer.reset(),
        // With bytes on their way that the server never reads or answers to no one.
        2 => drop(peer.write(b"e\n").await),
        _ => {
            // The server closes first, with bytes of ours on their way.
            let _ = peer.write(b"q\nmore that nobody reads").await;
            let _ = peer.read_to_end().await;
        }
    }
}

/// Case 13: connections come and go as fast as possible, so that descriptor numbers are reused at once; every byte
/// that arrives belongs to the connection on which it arrives.
pub fn descriptor_reuse(rig: &mut Rig) {
    const SCRIPTS: usize = 4;
    let rounds = rig.size(2000, 1_000_000) / SCRIPTS;
    if !rig.subject.is_sim() {
        rig.listen = rig.abstract_address();
    }
    let handler = move |stream: Stream| async move {
        let mut lines = super::handlers::Lines::default();
        while let Ok(Some(line)) = lines.next(&stream).await {
            if line == "q" || stream.send(format!("{line}\n").into_bytes()).await.is_err() {
                return;
            }
        }
    };
    let seeds: Vec<u64> = (0..SCRIPTS).map(|_| rig.random.next()).collect();
    let served = rig.serve(handler, async |network| {
        let churn = |seed: u64| {
            async move |network: Network| {
                let mut random = Random::new(seed);
                for _ in 0..rounds {
                    let mut peer = network.connect().await;
                    let message = format!("{:016x}\n", random.next());
                    let reply = peer.exchange(message.as_bytes()).await.expect("an answer");
                    assert_eq!(reply, message.as_bytes(), "the reply is somebody else's");
                    end_connection(peer, random.between(0, 3)).await;
                }
            }
        };
        let running: Vec<_> = seeds.iter().map(|seed| network.spawn(churn(*seed))).collect();
        for script in running {
            script.join().await;
        }
    });
    let accepts = if rig.subject.is_sim() { served.stats.accepts } else { (rounds * SCRIPTS) as u64 };
    assert_eq!(served.stats.accepts, accepts, "{:?}", served.stats);
    served.expect_clean();
}
