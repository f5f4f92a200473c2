//! The state when `block_on` returns and the runtime does not run any further, and the end of the remaining tasks.

use std::{
    future::{Future, pending, poll_fn},
    io::{ErrorKind, Read},
    net::TcpStream,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use rustix::net::sockopt::set_socket_recv_buffer_size;
use weir_engine::{net::Stream, spawn, time};

use super::moving::connection;
use crate::rig::Rig;

/// Our end, and a peer that does not wait forever.
fn connection_with_limit() -> (TcpStream, TcpStream) {
    let (ours, theirs) = connection();
    theirs.set_read_timeout(Some(Duration::from_secs(10))).expect("a time limit");
    (ours, theirs)
}

/// Chunks of a connection, more than fit into one send call.
const CHUNKS: usize = 20;

/// Case 32: sent bytes have left, on more connections than fit into a small submission queue.
pub fn sent(rig: &mut Rig) {
    let (ours, theirs): (Vec<_>, Vec<_>) = (0..10).map(|_| connection_with_limit()).unzip();
    let runtime = rig.runtime();
    let streams = runtime.block_on(async {
        let mut streams = Vec::new();
        for socket in ours {
            let stream = Stream::from_descriptor(socket.into()).expect("there is room");
            stream.send_slice(b"sent").await.expect("it is open");
            // More than fits into one call.
            for _ in 0..CHUNKS {
                stream.send(b"more".to_vec()).await.expect("it is open");
            }
            streams.push(stream);
        }
        streams
    });
    for mut peer in theirs {
        let mut bytes = [0; 4 * (1 + CHUNKS)];
        peer.read_exact(&mut bytes).expect("it has left");
        assert_eq!(bytes.as_slice(), [&b"sent"[..], &b"more".repeat(CHUNKS)].concat());
    }
    drop(streams);
}

/// Case 32b: a connection whose handle is gone has ended, even if a receive was in flight on it.
pub fn closed(rig: &mut Rig) {
    let (ours, mut theirs) = connection_with_limit();
    let runtime = rig.runtime();
    runtime.block_on(async {
        let stream = Stream::from_descriptor(ours.into()).expect("there is room");
        let received = time::timeout(Duration::from_millis(1), stream.recv()).await;
        assert!(received.is_err(), "nothing was sent");
        stream.send_slice(b"sent").await.expect("it is open");
    });
    let mut bytes = Vec::new();
    theirs.read_to_end(&mut bytes).expect("it has ended in order");
    assert_eq!(bytes, b"sent");

    let (ours, mut theirs) = connection_with_limit();
    let mut receiving = Box::pin(async move {
        let stream = Stream::from_descriptor(ours.into()).expect("there is room");
        stream.recv().await.map(drop)
    });
    // A future that owns its connection until it is dropped itself.
    runtime.block_on(poll_fn(move |context| {
        assert!(receiving.as_mut().poll(context).is_pending(), "nothing was sent");
        Poll::Ready(())
    }));
    assert_eq!(theirs.read(&mut [0; 1]).expect("it has ended in order"), 0);
    drop(runtime);
}

/// Case 32c: a runtime that ends before everything is sent resets the connection.
pub fn cut(rig: &mut Rig) {
    const BYTES: usize = 32 << 20;
    const READ_BYTES: usize = 1 << 20;
    const RECEIVE_BUFFER_BYTES: usize = 64 << 10;
    rig.config.limits.linger = Duration::from_millis(30);
    let (ours, mut theirs) = connection_with_limit();
    set_socket_recv_buffer_size(&theirs, RECEIVE_BUFFER_BYTES).expect("it can be bounded");
    let runtime = rig.runtime();
    let mut theirs = runtime.block_on(async {
        let stream = Stream::from_descriptor(ours.into()).expect("there is room");
        stream.send(vec![b'x'; BYTES]).await.expect("it is queued");
        let reader = std::thread::spawn(move || {
            theirs.read_exact(&mut vec![0; READ_BYTES]).expect("it arrives");
            theirs
        });
        while !reader.is_finished() {
            let flushed = time::timeout(Duration::from_millis(1), stream.flush()).await;
            assert!(flushed.is_err(), "the peer does not read everything");
        }
        reader.join().expect("it has read its part")
    });
    drop(runtime);
    let mut received = Vec::new();
    let error = theirs.read_to_end(&mut received).expect_err("a stream that was cut does not look whole");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert!(READ_BYTES + received.len() < BYTES);
}

/// Gives its value to a new task when it is dropped, like a guard that sends a last message to a peer.
struct Farewell<T: 'static>(Option<T>);

impl<T: 'static> Drop for Farewell<T> {
    fn drop(&mut self) {
        let owned = self.0.take();
        spawn(async move {
            pending::<()>().await;
            drop(owned);
        });
    }
}

/// Case 33: a task and a call that spawn when they are dropped end with their runtime, and so do the tasks that they
/// spawn.
pub fn spawned_by_destructors(rig: &mut Rig) {
    let is_sim = rig.subject.is_sim();
    let (ours, mut theirs) = connection_with_limit();
    let life = Arc::new(());
    let (in_task, in_call) = (Arc::clone(&life), Farewell(Some(Arc::clone(&life))));
    let runtime = rig.runtime();
    runtime.block_on(async {
        // Simulated sockets are not descriptors.
        let stream = (!is_sim).then(|| Stream::from_descriptor(ours.into()).expect("there is room"));
        let farewell = Farewell(Some((stream, in_task)));
        spawn(async move {
            pending::<()>().await;
            drop(farewell);
        });
        time::yield_now().await;
    });
    runtime.remote().call(move || drop(in_call)).expect("it has not ended");
    drop(runtime);
    assert_eq!(Arc::strong_count(&life), 1, "tasks are left");
    assert_eq!(theirs.read(&mut [0; 1]).expect("the connection has ended in order"), 0);
}
