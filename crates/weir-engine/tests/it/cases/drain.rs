//! The end of a runtime: in order under load, and torn down with operations in flight.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
};

use weir_engine::{
    Runtime,
    net::{Listener, Stream},
    spawn, time,
};

use super::handlers::Lines;
use crate::{peer::Network, random::Pattern, rig::Rig};

const REPLY_BYTES: usize = 5000;

/// Case 18: the server drains while requests stream in. Every reply that begins also ends.
pub fn drain_under_load(rig: &mut Rig) {
    const CLIENTS: usize = 6;
    let pattern = rig.pattern.clone();
    let handler = move |stream: Stream| {
        let pattern = pattern.clone();
        async move {
            let mut lines = Lines::default();
            while let Ok(Some(_)) = lines.next(&stream).await {
                if stream.send(pattern.bytes(0, REPLY_BYTES)).await.is_err() {
                    return;
                }
            }
        }
    };
    let pattern = rig.pattern.clone();
    let served = rig.serve(handler, async |network| {
        let client = || {
            let pattern = pattern.clone();
            async move |network: Network| ask_until_the_end(&network, &pattern).await
        };
        let running: Vec<_> = (0..CLIENTS).map(|_| network.spawn(client())).collect();
        network.until(|stats| stats.accepts as usize == CLIENTS && stats.sends >= 100).await;
        network.drain();
        let mut replies = 0;
        for client in running {
            replies += client.join().await;
        }
        assert!(replies >= 90, "{replies} replies");
    });
    served.expect_clean();
}

/// Keeps four requests in flight until the server ends the stream; returns the number of replies.
async fn ask_until_the_end(network: &Network, pattern: &Pattern) -> usize {
    let mut peer = network.connect().await;
    let mut received = 0;
    let mut open = peer.write(b"1\n2\n3\n4\n").await.is_ok();
    loop {
        let bytes = match peer.read_some(16 << 10).await {
            Ok(bytes) if bytes.is_empty() => break,
            Ok(bytes) => bytes,
            Err(error) => panic!("the server resets instead of ending: {error}"),
        };
        let mut checked = 0;
        while checked < bytes.len() {
            let place = (received + checked) % REPLY_BYTES;
            let count = (REPLY_BYTES - place).min(bytes.len() - checked);
            pattern.check(place, &bytes[checked..checked + count]);
            checked += count;
        }
        let replies_before = received / REPLY_BYTES;
        received += bytes.len();
        for _ in replies_before..received / REPLY_BYTES {
            open = open && peer.write(b"next\n").await.is_ok();
        }
    }
    assert_eq!(received % REPLY_BYTES, 0, "half a reply");
    received / REPLY_BYTES
}

/// A byte that no part of a pattern consists of for long: memory that the kernel must not touch.
const CANARY: u8 = 0xa5;

/// Case 19: a runtime ends with receives, sends, accepts and connects in flight. What the allocator hands out
/// afterwards, and what the peers still read, shows whether the kernel still uses its memory.
pub fn teardown(rig: &mut Rig) {
    for round in 0..rig.size(10, 200) {
        let runtime = rig.runtime();
        let mut peers = leave_in_flight(rig, &runtime);
        drop(runtime);
        let mut canaries = canary_memory();
        for (number, peer) in peers.iter_mut().enumerate() {
            // A receive that is still armed would take this, and put it somewhere.
            let _ = peer.write_all(&rig.pattern.bytes(number, 4096));
            peer.set_nonblocking(true).expect("a socket can be non-blocking");
            let mut rest = Vec::new();
            // The other end is closed: what it had sent, then the end or a reset.
            let outcome = peer.read_to_end(&mut rest);
            let blocked = outcome.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
            assert!(!blocked, "round {round}: connection {number} is still open");
            rig.pattern.check(0, &rest);
        }
        drop(peers);
        for (number, block) in canaries.iter_mut().enumerate() {
            let place = block.iter().position(|byte| *byte != CANARY);
            assert_eq!(place, None, "round {round}: block {number} of {} bytes was written to", block.len());
        }
    }
}

/// Starts every kind of operation and leaves it in flight; returns the other ends.
fn leave_in_flight(rig: &Rig, runtime: &Runtime) -> Vec<UnixStream> {
    const CONNECTIONS: usize = 24;
    let mut peers = Vec::new();
    runtime.block_on(async {
        let listener = Listener::bind(&rig.listen, Default::default()).expect("a free port");
        spawn(async move {
            let _ = listener.accept().await;
        });
        for number in 0..CONNECTIONS {
            let (ours, theirs) = UnixStream::pair().expect("a socket pair");
            peers.push(theirs);
            let stream = Stream::from_descriptor(ours.into()).expect("the runtime takes it");
            let pattern = rig.pattern.clone();
            spawn(async move {
                if number % 2 == 0 {
                    // More than the socket takes: the rest stays in flight.
                    let _ = stream.send(pattern.bytes(0, 1 << 20)).await;
                }
                let _ = stream.recv().await;
            });
        }
        for _ in 0..3 {
            time::yield_now().await;
        }
    });
    peers
}

/// Blocks of every size the engine uses, so that the allocator hands its freed memory out again.
fn canary_memory() -> Vec<Vec<u8>> {
    let sizes = [64, 256, 1 << 10, 2 << 10, 8 << 10, 32 << 10, 128 << 10, 256 << 10, 1 << 20];
    sizes.iter().flat_map(|size| (0..16).map(move |_| vec![CANARY; *size])).collect()
}
