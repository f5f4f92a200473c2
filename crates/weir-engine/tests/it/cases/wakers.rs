//! Foreign wakers, whose last reference may own values of the runtime, and which may call it.

use std::{
    cell::RefCell,
    future::Future,
    io::{self, ErrorKind, Read, Write},
    net::TcpStream,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Wake, Waker},
    thread,
    time::Duration,
};

use socket2::SockRef;
use weir_engine::{
    Driver,
    fs::{File, OpenOptions},
    net::{Address, Listener, Stream},
    spawn,
    time::sleep,
};

use super::moving::connection;
use crate::{rig::Rig, scratch::Scratch};

/// More than a connection has room for, including the kernel's buffers at both ends.
const OUTPUT_BYTES: usize = 8 << 20;

/// How often a condition is checked, a millisecond apart.
const LOOKS_MAX: usize = 20_000;

thread_local! {
    /// The values of such wakers: connections belong to a thread, and wakers belong to none.
    static OWNED: RefCell<Vec<Option<Stream>>> = const { RefCell::new(Vec::new()) };
}

/// Stores a connection for a waker.
fn keep(stream: Stream) -> usize {
    OWNED.with_borrow_mut(|streams| {
        streams.push(Some(stream));
        streams.len() - 1
    })
}

fn take(place: usize) -> Option<Stream> {
    OWNED.with_borrow_mut(|streams| streams.get_mut(place).and_then(Option::take))
}

/// The number of connections owned by wakers that still exist.
fn owned() -> usize {
    OWNED.with_borrow(|streams| streams.iter().flatten().count())
}

/// A waker whose last reference drops a connection, which closes through the driver.
struct OwnsStream(usize);

impl Wake for OwnsStream {
    fn wake(self: Arc<Self>) {}
}

impl Drop for OwnsStream {
    fn drop(&mut self) {
        drop(take(self.0));
    }
}

/// A waker that owns a connection.
fn owner(stream: Stream) -> Waker {
    Waker::from(Arc::new(OwnsStream(keep(stream))))
}

/// A waker that calls the engine inline when it is woken: sends on a connection, checks for input, and closes it.
struct CallsEngine(usize);

impl Wake for CallsEngine {
    fn wake(self: Arc<Self>) {
        let stream = take(self.0).expect("it is woken once");
        assert!(stream.try_send_slice(b"woken").expect("it is open"), "there is room");
        let polled = pin!(stream.recv()).poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "nobody has sent anything");
    }
}

/// Polls a future with a waker of which the driver then holds the last reference.
fn begin(waiting: Pin<&mut impl Future>, waker: Waker) {
    let before = owned();
    assert!(waiting.poll(&mut Context::from_waker(&waker)).is_pending(), "nothing has happened");
    drop(waker);
    assert_eq!(owned(), before, "the driver has it");
}

/// Runs turns until at most `count` wakers own a connection: the driver has woken the others.
async fn until_owned(count: usize) {
    for _ in 0..LOOKS_MAX {
        if owned() <= count {
            return;
        }
        sleep(Duration::from_millis(1)).await;
    }
    panic!("{} wakers are there still", owned());
}

/// Polls a future with a waker that owns a connection, and then with another.
fn replace(waiting: impl Future, stream: Stream) {
    let mut waiting = pin!(waiting);
    let first = owner(stream);
    assert!(waiting.as_mut().poll(&mut Context::from_waker(&first)).is_pending(), "nothing has happened");
    drop(first);
    assert_eq!(owned(), 1, "the driver has the first one");
    assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(owned(), 0, "it is let go, and its connection is closed");
}

/// The other end of a connection.
enum Peer {
    Outside(TcpStream),
    Simulated(Stream),
}

impl Peer {
    async fn write(&mut self, bytes: &[u8]) {
        match self {
            Peer::Outside(socket) => socket.write_all(bytes).expect("there is room"),
            Peer::Simulated(stream) => stream.send_slice(bytes).await.expect("it is open"),
        }
    }

    /// Reads everything until the end; the runtime may have to turn for it.
    async fn read_to_end(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Peer::Outside(socket) => {
                socket.set_nonblocking(true).expect("a socket can be made non-blocking");
                while let Err(error) = socket.read_to_end(&mut bytes) {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    sleep(Duration::from_millis(1)).await;
                }
            }
            Peer::Simulated(stream) => {
                while let Some(lease) = stream.recv().await.expect("it ends in good order") {
                    bytes.extend_from_slice(&lease);
                }
            }
        }
        bytes
    }

    /// Reads everything from now on.
    fn read_on(self) {
        match self {
            Peer::Outside(mut socket) => {
                // The thread ends with the connection.
                thread::spawn(move || io::copy(&mut socket, &mut io::sink()));
            }
            Peer::Simulated(stream) => {
                drop(spawn(async move { while let Ok(Some(_)) = stream.recv().await {} }));
            }
        }
    }
}

/// A connection of the runtime, and its other end.
async fn connected(rig: &Rig) -> (Stream, Peer) {
    if !rig.subject.is_sim() {
        let (ours, theirs) = connection();
        SockRef::from(&ours).set_send_buffer_size(4096).expect("SO_SNDBUF can be set");
        return (Stream::from_descriptor(ours.into()).expect("there is room"), Peer::Outside(theirs));
    }
    let listener = Listener::bind(&rig.listen, Default::default()).expect("a simulated port");
    let address = listener.local_address().expect("a listener has an address");
    let accepting = spawn(async move { listener.accept().await });
    let stream = Stream::connect(&address).await.expect("it listens");
    (stream, Peer::Simulated(accepting.await.expect("it was there")))
}

/// Case 34: a waiter for a connection, for bytes or for room may be replaced, and may be left behind when the
/// connection is closed, although dropping its waker then closes another connection of the same runtime.
pub fn replaced(rig: &mut Rig) {
    let rig = &*rig;
    rig.runtime().block_on(async {
        let listener = Listener::bind(&rig.listen, Default::default()).expect("a free port");
        let (stream, _peer) = connected(rig).await;
        let (left, _left_peer) = connected(rig).await;
        let (first, _first_peer) = connected(rig).await;
        let (second, _second_peer) = connected(rig).await;
        let (third, _third_peer) = connected(rig).await;
        let (fourth, _fourth_peer) = connected(rig).await;
        replace(listener.accept(), first);
        replace(stream.recv(), second);
        // No turn happens in between: bytes that fit leave when the next send looks for room.
        stream.send(vec![0_u8; OUTPUT_BYTES]).await.expect("it is open");
        replace(stream.send_slice(b"more"), third);
        stream.abort();

        let waker = owner(fourth);
        {
            let mut receiving = pin!(left.recv());
            assert!(receiving.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
        drop(waker);
        drop(left);
        // A blocking thread keeps its one waker until the turn.
        if rig.subject.driver != Driver::Blocking {
            assert_eq!(owned(), 0, "who waited goes with the connection");
        }
        drop(OWNED.take());
    });
}

/// Case 34b: a waiter for bytes, for a connection, for room or for a file may be woken, and may be left behind in a
/// connection that is aborted, although the driver holds the last reference of a waker that then closes another
/// connection of the same runtime.
pub fn woken(rig: &mut Rig) {
    // The second operation waits for the end of the first.
    rig.config.limits.file_operations_max = 1;
    let scratch = Scratch::new(&mut rig.random);
    let rig = &*rig;
    rig.runtime().block_on(async {
        woken_by_arrivals(rig).await;
        woken_by_room(rig).await;
        // A thread performs a file operation immediately, and keeps its one waker until the turn.
        if rig.subject.driver != Driver::Blocking {
            woken_by_files(rig, &scratch).await;
            let ((stream, _peer), (other, _other_peer)) = (connected(rig).await, connected(rig).await);
            begin(pin!(stream.recv()), owner(other));
            stream.abort();
            assert_eq!(owned(), 0, "who waited goes with the connection");
        }
    });
}

async fn woken_by_arrivals(rig: &Rig) {
    let ((stream, mut peer), (other, _other_peer)) = (connected(rig).await, connected(rig).await);
    let mut receiving = pin!(stream.recv());
    begin(receiving.as_mut(), owner(other));
    peer.write(b"x").await;
    until_owned(0).await;
    let received = receiving.await.expect("it is open").expect("it has not ended");
    assert_eq!(&received[..], b"x");

    let (other, _other_peer) = connected(rig).await;
    let listener = Listener::bind(&rig.listen, Default::default()).expect("a free port");
    let address = listener.local_address().expect("a listener has an address");
    let mut accepting = pin!(listener.accept());
    begin(accepting.as_mut(), owner(other));
    let _theirs = match address {
        Address::Tcp(address) if !rig.subject.is_sim() => {
            Peer::Outside(TcpStream::connect(address).expect("it listens"))
        }
        address => {
            let connecting = spawn(async move { Stream::connect(&address).await });
            Peer::Simulated(connecting.await.expect("it listens"))
        }
    };
    until_owned(0).await;
    accepting.await.expect("somebody has connected");
}

async fn woken_by_room(rig: &Rig) {
    let ((stream, peer), (other, _other_peer)) = (connected(rig).await, connected(rig).await);
    stream.send(vec![0_u8; OUTPUT_BYTES]).await.expect("it is open");
    {
        let mut sending = pin!(stream.send_slice(b"more"));
        begin(sending.as_mut(), owner(other));
        peer.read_on();
        until_owned(0).await;
        sending.await.expect("it is open");
    }
    stream.abort();
}

async fn woken_by_files(rig: &Rig, scratch: &Scratch) {
    let options = OpenOptions { read: true, write: true, create: true, ..OpenOptions::default() };
    let file = File::open_with(scratch.path(), options).await.expect("it can be made");
    let ((first, _first_peer), (second, _second_peer)) = (connected(rig).await, connected(rig).await);
    let mut writing = pin!(file.write_at(0, vec![7; 4096]));
    let mut in_line = pin!(file.write_at(4096, vec![8; 4096]));
    begin(writing.as_mut(), owner(first));
    begin(in_line.as_mut(), owner(second));
    until_owned(0).await;
    writing.await.expect("there is room on the disk");
    in_line.await.expect("there is room on the disk");
}

/// Case 34c: a waker may call the engine inline when it is woken.
pub fn calls_engine(rig: &mut Rig) {
    let rig = &*rig;
    rig.runtime().block_on(async {
        let ((stream, mut peer), (other, mut other_peer)) = (connected(rig).await, connected(rig).await);
        let mut receiving = pin!(stream.recv());
        begin(receiving.as_mut(), Waker::from(Arc::new(CallsEngine(keep(other)))));
        peer.write(b"x").await;
        until_owned(0).await;
        let received = receiving.await.expect("it is open").expect("it has not ended");
        assert_eq!(&received[..], b"x");
        assert_eq!(other_peer.read_to_end().await, b"woken");
    });
}
