//! At the limits: descriptors run out, queues overflow, thousands of connections idle.

use std::{os::fd::AsRawFd, sync::mpsc, time::Duration};

use rustix::io::fcntl_dupfd_cloexec;
use weir_engine::{
    Driver,
    fs::File,
    net::{Listener, Stream},
    spawn, time,
};
use weir_engine_types::EngineStats;

use super::handlers::echo;
use crate::{
    board::Board,
    kernel,
    outcome::note,
    peer::{Ending, Network, Peer, PeerBuffers, StatsSource, Unconnected},
    rig::Rig,
};

/// Case 14: connections that arrive at once, and the descriptors that are left for the server's side.
const CLIENTS: usize = 48;
const ROOM: usize = 12;

async fn welcome(stream: Stream) {
    if stream.send(b"welcome").await.is_ok() {
        echo(stream).await;
    }
}

/// The clients are served one after the other, and each frees its descriptors for the next.
async fn be_welcomed(mut waiting: Vec<Peer>) -> usize {
    waiting.reverse();
    let mut welcomed = 0;
    while let Some(mut peer) = waiting.pop() {
        assert_eq!(peer.read_exact(7).await.expect("accepting goes on"), b"welcome");
        welcomed += 1;
    }
    welcomed
}

/// Case 14 on a server, which accepts from the start: the clients' sockets are open before the limit is set.
fn shortage_of_a_server(rig: &mut Rig) {
    rig.listen = rig.abstract_address();
    let limit_before = kernel::descriptor_limit();
    let served = rig.serve(welcome, async |network| {
        let sockets: Vec<_> = (0..CLIENTS).map(|_| network.open()).collect();
        kernel::set_descriptor_limit(kernel::open_descriptors() + ROOM);
        let connect = |socket: Unconnected| socket.connect().expect("the kernel holds it ready");
        let waiting: Vec<Peer> = sockets.into_iter().map(connect).collect();
        let before = network.until(|stats| stats.accepts_starved > 0).await;
        let after = network.until(|stats| stats.accepts_starved >= before.accepts_starved + 3).await;
        // Each try sleeps before the next; a loop that does not sleep would take thousands.
        assert!(after.turns - before.turns < 60, "{} turns for three tries", after.turns - before.turns);
        let welcomed = be_welcomed(waiting).await;
        kernel::set_descriptor_limit(limit_before);
        welcomed
    });
    assert_eq!(served.value, CLIENTS);
    served.expect_clean();
}

/// Case 14: descriptors run out while connections wait; later some become free again.
pub fn descriptor_shortage(rig: &mut Rig) {
    if rig.subject.driver == Driver::Blocking {
        return shortage_of_a_server(rig);
    }
    if rig.subject.is_sim() {
        // Listener and clients, and room for some of the server's ends.
        rig.config.sim.descriptors_max = (1 + CLIENTS + ROOM) as u32;
    } else {
        rig.listen = rig.abstract_address();
    }
    let is_sim = rig.subject.is_sim();
    let (connected, starved, measured) = (Board::new(), Board::new(), Board::new());
    let boards = (connected.clone(), starved.clone(), measured.clone());
    let limit_before = kernel::descriptor_limit();
    let body = async move |listener: Listener, stop: Board| {
        connected.reached(1).await;
        let acceptor = spawn(async move {
            while let Ok(stream) = listener.accept().await {
                spawn(welcome(stream));
            }
        });
        starved.reached(1).await;
        // An observation window timed by the engine: a late end does not fail the test.
        time::sleep(Duration::from_millis(250)).await;
        measured.post("measured");
        stop.reached(1).await;
        acceptor.abort();
    };
    let served = rig.run(body, async move |network| {
        let (connected, starved, measured) = boards;
        let waiting = network.connect_many(CLIENTS).await;
        if !is_sim {
            kernel::set_descriptor_limit(kernel::open_descriptors() + ROOM);
        }
        connected.post("connected");
        let before = network.until(|stats| stats.accepts_starved > 0).await;
        starved.post("starved");
        measured.reached(1).await;
        let turns = network.stats().turns - before.turns;
        // 250 ms with a retry every 100 ms; a loop that does not sleep would take thousands.
        assert!(turns < 60, "{turns} turns while there was nothing to do but wait");
        let welcomed = be_welcomed(waiting).await;
        kernel::set_descriptor_limit(limit_before);
        network.stop.post("done");
        welcomed
    });
    assert_eq!(served.value.1, CLIENTS);
    served.expect_clean();
}

/// Case 14, from the other side: the descriptors that connections may not use are left to their files, however the
/// connections arrive and whatever the limit is.
pub fn descriptors_left_to_files(rig: &mut Rig) {
    // The largest possible reserve: every connection has a file.
    rig.config.limits.descriptors_reserved = usize::MAX;
    for room in 2 * ROOM..2 * ROOM + 4 {
        files_of_all(rig, room, false);
        files_of_all(rig, room, true);
    }
}

/// Serves more clients than `room` descriptors are enough for. If they come `singly`, the file of each is opened
/// while the server waits for the next one.
fn files_of_all(rig: &mut Rig, room: usize, singly: bool) {
    rig.listen = rig.abstract_address();
    let sockets: Vec<_> = (0..CLIENTS).map(|_| Unconnected::to(&rig.listen)).collect();
    let limit_before = kernel::descriptor_limit();
    kernel::set_descriptor_limit(kernel::open_descriptors() + room);
    let path = std::env::current_exe().expect("it has a path");
    let handler = move |stream: Stream| {
        let path = path.clone();
        async move {
            // Open until the client has left.
            let file = File::open(&path).await;
            let word: &[u8] = if file.is_ok() { b"welcome" } else { b"no file" };
            if stream.send(word).await.is_ok() {
                echo(stream).await;
            }
        }
    };
    let welcomed = async |client: &mut Peer| {
        let word = client.read_exact(7).await.expect("accepting goes on");
        assert_eq!(word, b"welcome", "{room} descriptors, clients one after another: {singly}");
    };
    let served = rig.serve(handler, async |network| {
        let connect = |socket: Unconnected| socket.connect().expect("the kernel holds it ready");
        let mut sockets = sockets.into_iter();
        let mut clients: Vec<Peer> = Vec::new();
        let mut first = 0;
        while singly && network.stats().accepts_starved == 0 {
            clients.extend(sockets.next().map(connect));
            let is_over = |stats: &EngineStats| stats.accepts > first as u64 || stats.accepts_starved > 0;
            if network.until(is_over).await.accepts > first as u64 {
                welcomed(&mut clients[first]).await;
                first += 1;
            }
        }
        clients.extend(sockets.map(connect));
        network.until(|stats| stats.accepts_starved > 0).await;
        for (number, client) in clients.iter_mut().enumerate() {
            if number >= first {
                welcomed(client).await;
            }
            // This does not free the client's descriptor for the server.
            client.shutdown().await.expect("it is connected");
        }
    });
    kernel::set_descriptor_limit(limit_before);
    served.expect_clean();
}

/// Case 15: thousands of connections that end at once.
pub fn accept_storm(rig: &mut Rig) {
    let connections = rig.size(2000, 20_000);
    let before = kernel::open_descriptors();
    let mut random = rig.random.fork();
    // How many connections the server may be behind: select cannot watch more than about a thousand descriptors.
    let behind_max = if rig.subject.driver == Driver::Select { 300 } else { u64::MAX };
    let served = rig.serve(echo, async |network| {
        for number in 0..connections as u64 {
            network.until(|stats| number < stats.closes.saturating_add(behind_max)).await;
            let mut peer = network.connect().await;
            match random.between(0, 3) {
                0 => drop(peer),
                1 => {
                    let _ = peer.write(b"never read back").await;
                }
                // A reset leaves no port waiting in the kernel.
                _ => peer.reset(),
            }
        }
        let mut last = network.connect().await;
        assert_eq!(last.exchange(b"still here").await.expect("an echo"), b"still here");
    });
    served.expect_clean();
    assert!(served.stats.accepts as usize <= connections + 1, "{:?}", served.stats);
    // A thread of the blocking driver reports the end of its connection before it drops its runtime.
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while kernel::open_descriptors() > before && std::time::Instant::now() < patience {
        std::thread::yield_now();
    }
    assert_eq!(kernel::open_descriptors(), before, "descriptors are left open");
}

/// Accepts `count` connections and keeps a receive waiting on each.
async fn hold_idle(listener: &Listener, count: usize) {
    for _ in 0..count {
        let stream = listener.accept().await.expect("a connection");
        spawn(echo(stream));
    }
    for _ in 0..3 {
        time::yield_now().await;
    }
}

/// Most connections whose both ends fit into this process, at most `wanted`.
fn connections_that_fit(rig: &Rig, wanted: usize) -> usize {
    let limit = if rig.subject.driver == Driver::Select {
        libc::FD_SETSIZE.min(kernel::raise_descriptor_limit(2 * wanted + 100))
    } else {
        kernel::raise_descriptor_limit(2 * wanted + 100)
    };
    wanted.min(limit.saturating_sub(100) / 2)
}

/// Case 16: the memory of an idle connection.
pub fn idle_memory(rig: &mut Rig) {
    let count = connections_that_fit(rig, rig.size(1000, 10_000));
    rig.listen = rig.abstract_address();
    let (full, bound) = (rig.size(0, 1) == 1, rig.size(4 << 10, 2 << 10));
    let warmed = Board::new();
    let go = warmed.clone();
    let body = async move |listener: Listener, stop: Board| {
        // One-time costs of the first connections do not belong to a connection.
        hold_idle(&listener, count / 10).await;
        let before = kernel::anonymous_memory_bytes();
        warmed.post("warm");
        hold_idle(&listener, count - count / 10).await;
        let grown = kernel::anonymous_memory_bytes().saturating_sub(before);
        stop.reached(1).await;
        grown / (count - count / 10)
    };
    let served = rig.run(body, async move |network| {
        let mut peers = network.connect_many(count / 10).await;
        go.reached(1).await;
        peers.extend(network.connect_many(count - count / 10).await);
        // All of them still work.
        for peer in &mut peers {
            assert_eq!(peer.exchange(b"awake").await.expect("an echo"), b"awake");
        }
        network.stop.post("done");
    });
    served.expect_clean();
    let (each, ()) = served.value;
    note(&format!("{count} idle connections: {each} bytes each (full form: {full})"));
    assert!(each <= bound, "{each} bytes for an idle connection");
}

/// Case 17: far more completions at once than the completion queue holds.
pub fn completion_overflow(rig: &mut Rig) {
    const CONNECTIONS: usize = 120;
    const MESSAGES: usize = 9;
    // A submission queue of 2 has a completion queue of 8.
    rig.config.uring.entries = 2;
    rig.listen = rig.abstract_address();
    let (ready, written) = mpsc::channel();
    let armed = Board::new();
    let is_armed = armed.clone();
    let body = async move |listener: Listener, stop: Board| {
        hold_idle(&listener, CONNECTIONS).await;
        armed.post("armed");
        // This thread reaps no completion until everything is written.
        let () = written.recv().expect("the script goes on");
        stop.reached(1).await;
    };
    let pattern = rig.pattern.clone();
    let served = rig.run(body, async move |network| {
        let mut peers = network.connect_many(CONNECTIONS).await;
        is_armed.reached(1).await;
        for message in 0..MESSAGES {
            for peer in &mut peers {
                peer.write(&pattern.bytes(message * 100, 100)).await.expect("it fits");
            }
        }
        ready.send(()).expect("the server waits");
        for peer in &mut peers {
            let bytes = peer.read_exact(MESSAGES * 100).await.expect("nobody is reset");
            pattern.check(0, &bytes);
        }
        network.stop.post("done");
    });
    served.expect_clean();
    assert!(served.stats.completion_overflows > 0, "{:?}", served.stats);
    assert_eq!(served.stats.bytes_received, (CONNECTIONS * MESSAGES * 100) as u64);
}

/// Case 17, the other queue: hundreds of submissions in one turn, with room for two.
pub fn submission_overflow(rig: &mut Rig) {
    const CONNECTIONS: usize = 120;
    rig.config.uring.entries = 2;
    rig.listen = rig.abstract_address();
    let gate = Board::new();
    let open = gate.clone();
    let handler = move |stream: Stream| {
        let gate = gate.clone();
        async move {
            // All of them receive, send and close in the same turns.
            gate.reached(1).await;
            if let Ok(Some(lease)) = stream.recv().await {
                let _ = stream.send(lease).await;
            }
        }
    };
    let served = rig.serve(handler, async |network| {
        let mut peers = network.connect_many(CONNECTIONS).await;
        for (number, peer) in peers.iter_mut().enumerate() {
            peer.write(format!("{number:04}").as_bytes()).await.expect("it fits");
        }
        network.until(|stats| stats.accepts as usize == CONNECTIONS).await;
        open.post("open");
        for (number, peer) in peers.iter_mut().enumerate() {
            assert_eq!(peer.read_exact(4).await.expect("a reply"), format!("{number:04}").as_bytes());
        }
    });
    served.expect_clean();
}

/// Case 24: descriptors from 1024 on.
pub fn high_descriptors(rig: &mut Rig) {
    // One descriptor that select cannot watch is enough.
    let needed = libc::FD_SETSIZE + 1;
    let limit = kernel::raise_descriptor_limit(needed + 100);
    if limit < needed {
        return rig
            .skip(format!("the hard limit of descriptors is {limit}: raise it to {needed} (ulimit -Hn)"));
    }
    let is_select = rig.subject.driver == Driver::Select;
    let runtime = rig.runtime();
    let outcome = runtime.block_on(async {
        let (low, low_peer) = socket_pair(0);
        let (high, high_peer) = socket_pair(1024);
        let mut peers = [Peer::Socket(low_peer.into()), Peer::Socket(high_peer.into())];
        let low = Stream::from_descriptor(low).expect("the runtime takes it");
        spawn(echo(low));
        let high = Stream::from_descriptor(high).expect("adopting watches nothing yet");
        // It must be watched: no bytes have arrived.
        let outcome = time::timeout(Duration::from_millis(5), high.recv()).await;
        spawn(echo(high));
        for (number, peer) in peers.iter_mut().enumerate() {
            if is_select && number == 1 {
                continue;
            }
            peer.write(b"ping").await.expect("it fits");
            for _ in 0..20 {
                time::yield_now().await;
            }
            assert_eq!(peer.read_exact(4).await.expect("an echo"), b"ping");
        }
        outcome
    });
    match outcome {
        Err(_elapsed) => assert!(!is_select, "select waits on a descriptor it cannot watch"),
        Ok(Err(error)) => {
            assert!(is_select, "{error}");
            note(&format!("refused: {error}"));
            assert!(error.to_string().contains("1024"), "the reason is named: {error}");
        }
        Ok(Ok(_)) => panic!("nothing was sent"),
    }
    assert_eq!(runtime.drain(Duration::from_millis(100)), 0);
}

/// Case 24, at a server: a connection that select cannot watch is closed and counted, and does not affect others.
pub fn high_connections(rig: &mut Rig) {
    let needed = libc::FD_SETSIZE + 100;
    let limit = kernel::raise_descriptor_limit(needed);
    if limit < needed {
        return rig
            .skip(format!("the hard limit of descriptors is {limit}: raise it to {needed} (ulimit -Hn)"));
    }
    let is_select = rig.subject.driver == Driver::Select;
    let served = rig.serve(echo, async |network| {
        let mut low = network.connect().await;
        assert_eq!(low.exchange(b"low").await.expect("an echo"), b"low");
        let fillers = fill_low_descriptors();
        let mut high = network.connect().await;
        assert_eq!(high.exchange(b"high").await.is_ok(), !is_select);
        network.until(|stats| stats.accepts_refused == u64::from(is_select)).await;
        drop(fillers);
        assert_eq!(low.exchange(b"low").await.expect("it goes on"), b"low");
        assert_eq!(network.connect().await.exchange(b"next").await.expect("so does accepting"), b"next");
    });
    served.expect_clean();
}

/// Case 24c: a connection for which the runtime has no socket left is closed and counted, and the accept goes on. The
/// listener's own loop takes connections one after the other and keeps them: one driver runs no second task.
pub fn sockets_at_the_maximum(rig: &mut Rig) {
    const REFUSED: u64 = 3;
    // The listener and one connection; the simulator's clients, two at a time, are sockets of the same runtime.
    rig.config.limits.sockets_max = if rig.subject.is_sim() { 4 } else { 2 };
    let runtime = rig.runtime();
    let counters = runtime.counters();
    let is_simulated = rig.subject.is_sim();
    runtime.block_on(async {
        let listener = Listener::bind(&rig.listen, Default::default()).expect("a free port");
        let address = listener.local_address().expect("a listener has an address");
        let stats = StatsSource::Runtime(runtime.counters());
        let (leave, stop) = (Board::new(), Board::new());
        let network = Network { address, stats, is_simulated, stop: stop.clone() };
        let asked = leave.clone();
        let script = network.spawn(async move |network: Network| {
            let mut first = network.connect().await;
            assert_eq!(first.read_exact(7).await.expect("there is room for one"), b"welcome");
            for _ in 0..REFUSED {
                let (bytes, _ending) = network.connect().await.read_to_end().await;
                assert!(bytes.is_empty(), "there is no room: {bytes:?}");
            }
            network.until(|stats| stats.accepts_refused == REFUSED).await;
            asked.post("leave");
            assert_eq!(first.read_to_end().await.1, Ending::End);
            drop(first);
            let mut next = network.connect().await;
            assert_eq!(next.read_exact(7).await.expect("there is room again"), b"welcome");
            network.stop.post("done");
        });
        let (mut kept, mut has_left) = (Vec::new(), false);
        while stop.lines().is_empty() {
            // Short, so that the requests of the script are seen soon; when it ends has no meaning for the test.
            if let Ok(accepted) = time::timeout(Duration::from_millis(2), listener.accept()).await {
                let stream = accepted.expect("a connection too many is not the listener's fault");
                stream.send(b"welcome").await.expect("its queue is empty");
                kept.push(stream);
            }
            if !has_left && !leave.lines().is_empty() {
                has_left = true;
                kept.clear();
            }
        }
        drop(kept);
        script.join().await;
    });
    assert_eq!(runtime.drain(Duration::from_secs(10)), 0);
    let stats = counters.snapshot();
    assert_eq!((stats.accepts + stats.connects, stats.connections_open), (stats.closes, 0), "{stats:?}");
}

/// Opens descriptors until all numbers that select can watch are taken.
fn fill_low_descriptors() -> Vec<std::os::fd::OwnedFd> {
    let mut fillers = vec![std::fs::File::open("/dev/null").expect("there is room").into()];
    while fillers.last().is_some_and(|last: &std::os::fd::OwnedFd| last.as_raw_fd() < libc::FD_SETSIZE as i32)
    {
        fillers.push(fillers[0].try_clone().expect("there is room"));
    }
    fillers
}

/// A connected pair; the first end has a number of at least `minimum`.
fn socket_pair(minimum: i32) -> (std::os::fd::OwnedFd, std::os::unix::net::UnixStream) {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a socket pair");
    (fcntl_dupfd_cloexec(&ours, minimum).expect("the limit allows it"), theirs)
}

/// Case 25: idle connections need no turns and no CPU.
pub fn idle_turns(rig: &mut Rig) {
    let count = connections_that_fit(rig, rig.size(300, 1000));
    let seconds = rig.size(0, 60) as u64;
    let window = if seconds == 0 { Duration::from_millis(100) } else { Duration::from_secs(seconds) };
    if !rig.subject.is_sim() {
        rig.listen = rig.abstract_address();
    }
    let (idle, seen) = (Board::new(), Board::new());
    let boards = (idle.clone(), seen.clone());
    let body = async move |listener: Listener, stop: Board| {
        hold_idle(&listener, count).await;
        idle.post("idle");
        seen.reached(1).await;
        let cpu_before = kernel::thread_cpu_ns();
        // An observation window timed by the engine: a late end does not fail the test.
        time::sleep(window).await;
        let cpu_ns = kernel::thread_cpu_ns() - cpu_before;
        seen.post("window over");
        stop.reached(1).await;
        cpu_ns
    };
    let served = rig.run(body, async move |network| {
        let (idle, seen) = boards;
        let mut peers = Vec::with_capacity(count);
        for _ in 0..count {
            peers.push(network.try_connect(PeerBuffers::default()).await.expect("a connection"));
        }
        idle.reached(1).await;
        let before = network.stats();
        seen.post("counted");
        seen.reached(2).await;
        let turns = network.stats().turns - before.turns;
        network.stop.post("done");
        turns
    });
    let (cpu_ns, turns) = served.value;
    assert!(turns <= 10, "{turns} turns in {window:?} without an event");
    // 0.1 % of a core; in the short form the clock is too coarse for that.
    assert!(seconds == 0 || cpu_ns < window.as_nanos() as u64 / 1000, "{cpu_ns} ns of CPU in {window:?}");
    served.expect_clean();
}
