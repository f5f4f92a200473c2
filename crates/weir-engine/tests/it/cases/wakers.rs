//! Wakers of other libraries, whose last reference may own what belongs to the runtime.

use std::{
    any::Any,
    cell::RefCell,
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Wake, Waker},
};

use socket2::SockRef;
use weir_engine::{
    Driver,
    net::{Listener, Stream},
    spawn,
};

use super::moving::connection;
use crate::rig::Rig;

/// More than a connection has room for, its peer's and our own share of the kernel's memory included.
const OUTPUT_BYTES: usize = 8 << 20;

thread_local! {
    /// What such wakers own: connections belong to a thread, and wakers to none.
    static OWNED: RefCell<Vec<Stream>> = const { RefCell::new(Vec::new()) };
}

/// A waker whose last reference takes a connection along, which closes through the driver.
struct OwnsStream;

impl Wake for OwnsStream {
    fn wake(self: Arc<Self>) {}
}

impl Drop for OwnsStream {
    fn drop(&mut self) {
        drop(OWNED.take());
    }
}

/// A waker that owns a connection.
fn owner(stream: Stream) -> Waker {
    OWNED.with_borrow_mut(|streams| streams.push(stream));
    Waker::from(Arc::new(OwnsStream))
}

fn owned() -> usize {
    OWNED.with_borrow(Vec::len)
}

/// Lets a future wait with a waker that owns a connection, and then with another.
fn replace(waiting: impl Future, stream: Stream) {
    let mut waiting = pin!(waiting);
    let first = owner(stream);
    assert!(waiting.as_mut().poll(&mut Context::from_waker(&first)).is_pending(), "nothing has happened");
    drop(first);
    assert_eq!(owned(), 1, "the driver has the first one");
    assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(owned(), 0, "it is let go, and its connection is closed");
}

/// A connection of the runtime's, and what keeps its other end open.
async fn connected(rig: &Rig) -> (Stream, Box<dyn Any>) {
    if !rig.subject.is_sim() {
        let (ours, theirs) = connection();
        SockRef::from(&ours).set_send_buffer_size(4096).expect("SO_SNDBUF can be set");
        return (Stream::from_descriptor(ours.into()).expect("there is room"), Box::new(theirs));
    }
    let listener = Listener::bind(&rig.listen, Default::default()).expect("a simulated port");
    let address = listener.local_address().expect("a listener has an address");
    let accepting = spawn(async move { listener.accept().await });
    let stream = Stream::connect(&address).await.expect("it listens");
    (stream, Box::new(accepting.await.expect("it was there")))
}

/// Case 34: whoever waits for a connection, for bytes or for room may be replaced, and may be left behind when the
/// connection is closed, although the waker that goes then closes another connection of the same runtime.
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
        // No turn comes between: what has room leaves when the next send looks for some.
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
        // A thread that would block has its one waker until the turn.
        if rig.subject.driver != Driver::Blocking {
            assert_eq!(owned(), 0, "who waited goes with the connection");
        }
        drop(OWNED.take());
    });
}
