//! A connection that moves to another runtime while its peer is sending.

use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    os::fd::OwnedFd,
    sync::mpsc,
    thread,
    time::Duration,
};

use socket2::SockRef;
use weir_engine::{
    Config, Runtime,
    net::{Listener, Stream},
    spawn,
};

use crate::{
    board::poll_once,
    outcome::note,
    random::{Pattern, Random},
    rig::Rig,
};

/// The parts that move from one runtime to the other: the socket, and the bytes that had arrived and were not
/// received.
type Parts = (OwnedFd, Vec<u8>);

/// Case 30: two runtimes pass a connection back and forth while its peer sends without a pause. Each echoes what it
/// receives; sometimes a receive was started and dropped, and there is always queued output that has not been sent.
pub fn back_and_forth(rig: &mut Rig) {
    if rig.subject.is_sim() {
        return simulated_sockets_stay(rig);
    }
    rig.config.limits.input_high_water_bytes = 16 << 10;
    let total = rig.size(8 << 20, 256 << 20);
    let (ours, theirs) = connection();
    let reader = theirs.try_clone().expect("there are descriptors");
    let (pattern, random) = (rig.pattern.clone(), rig.random.fork());
    let writing = thread::spawn(move || write_all(theirs, &pattern, total, random));
    let pattern = rig.pattern.clone();
    let reading = thread::spawn(move || read_all(reader, &pattern));
    let (to_first, first) = mpsc::channel();
    let (to_second, second) = mpsc::channel();
    to_first.send((ours.into(), Vec::new())).expect("the first one waits");
    let (config, random) = (rig.config.clone(), rig.random.fork());
    let second = thread::spawn(move || hold(&config, &second, &to_first, random));
    let visits = hold(&rig.config, &first, &to_second, rig.random.fork());
    drop(to_second);
    let visits = visits + join(second);
    join(writing);
    assert_eq!(join(reading), total);
    note(&format!("{visits} visits"));
    assert!(visits > 10, "{visits} visits");
}

/// Case 30b: a connection that failed does not move, and returns its error.
pub fn after_a_reset(rig: &mut Rig) {
    let (ours, theirs) = connection();
    SockRef::from(&theirs).set_linger(Some(Duration::ZERO)).expect("SO_LINGER can be set");
    drop(theirs);
    rig.runtime().block_on(async {
        let stream = Stream::from_descriptor(ours.into()).expect("there is room");
        let received = stream.recv().await.expect_err("a reset");
        assert_eq!(received.kind(), ErrorKind::ConnectionReset);
        let moved = stream.into_parts().await.expect_err("it has failed");
        assert_eq!(moved.kind(), ErrorKind::ConnectionReset);
    });
}

fn simulated_sockets_stay(rig: &Rig) {
    let listen = rig.listen.clone();
    rig.runtime().block_on(async {
        let listener = Listener::bind(&listen, Default::default()).expect("a simulated port");
        let address = listener.local_address().expect("a listener has an address");
        let accepting = spawn(async move { listener.accept().await });
        let stream = Stream::connect(&address).await.expect("it listens");
        let refused = stream.into_parts().await.expect_err("there is no descriptor");
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        accepting.await.expect("it was there");
    });
}

fn join<T>(thread: thread::JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Our end, and the peer's.
pub fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let theirs = TcpStream::connect(listener.local_addr().expect("its address")).expect("it listens");
    (listener.accept().expect("somebody connected").0, theirs)
}

fn write_all(mut peer: TcpStream, pattern: &Pattern, total: usize, mut random: Random) {
    let mut offset = 0;
    while offset < total {
        let length = random.between(1, 20_000).min(total - offset);
        peer.write_all(&pattern.bytes(offset, length)).expect("somebody has the connection");
        offset += length;
    }
    peer.shutdown(Shutdown::Write).expect("half of the connection ends");
}

/// Checks the echoed bytes, and returns their number.
fn read_all(mut peer: TcpStream, pattern: &Pattern) -> usize {
    let (mut offset, mut bytes) = (0, vec![0; 64 << 10]);
    loop {
        let count = peer.read(&mut bytes).expect("the connection is whole");
        if count == 0 {
            return offset;
        }
        pattern.check(offset, &bytes[..count]);
        offset += count;
    }
}

/// Echoes on the connection whenever it arrives, and passes it on; returns how often that happened.
fn hold(
    config: &Config,
    arrivals: &mpsc::Receiver<Parts>,
    other: &mpsc::Sender<Parts>,
    random: Random,
) -> usize {
    let runtime = Runtime::new(config).unwrap_or_else(|error| panic!("{error}"));
    let (mut visits, mut random) = (0, random);
    while let Ok(parts) = arrivals.recv() {
        visits += 1;
        match runtime.block_on(visit(parts, &mut random)) {
            Some(parts) => other.send(parts).expect("the other one waits"),
            None => return visits,
        }
    }
    visits
}

/// Echoes for a while. `None`: the peer has ended, and has received its echo.
async fn visit((socket, rest): Parts, random: &mut Random) -> Option<Parts> {
    let stream = Stream::from_descriptor(socket).expect("there is room");
    stream.send(rest).await.expect("the peer reads");
    for _ in 0..random.between(0, 4) {
        match stream.recv().await.expect("the connection is whole") {
            Some(lease) => stream.send(lease).await.expect("the peer reads"),
            None => {
                stream.shutdown().await.expect("the peer reads");
                return None;
            }
        }
    }
    if random.one_in(2)
        && let Some(received) = poll_once(stream.recv()).await
        && let Some(lease) = received.expect("the connection is whole")
    {
        stream.send(lease).await.expect("the peer reads");
    }
    Some(stream.into_parts().await.expect("it has not failed"))
}
