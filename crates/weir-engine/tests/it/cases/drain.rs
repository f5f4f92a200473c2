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

use super::handlers::{Lines, SMALL};
use crate::{
    board::Board,
    peer::{Ending, Network},
    random::Pattern,
    rig::Rig,
};

const REPLY_BYTES: usize = 5000;

/// Answers each line with the same reply.
async fn answer_with(stream: Stream, pattern: Pattern) {
    let mut lines = Lines::default();
    while let Ok(Some(_)) = lines.next(&stream).await {
        if stream.send(pattern.bytes(0, REPLY_BYTES)).await.is_err() {
            return;
        }
    }
}

/// Case 18: the server drains while requests stream in. Every reply that starts is completed.
pub fn drain_under_load(rig: &mut Rig) {
    const CLIENTS: usize = 6;
    let pattern = rig.pattern.clone();
    let handler = move |stream: Stream| answer_with(stream, pattern.clone());
    let pattern = rig.pattern.clone();
    let served = rig.serve(handler, async |network| {
        // A drain refuses connections that no handler has taken yet: every client must be served once.
        let served = Board::new();
        let client = || {
            let (pattern, served) = (pattern.clone(), served.clone());
            async move |network: Network| {
                let (replies, ending) = ask_until_the_end(&network, &pattern, &served).await;
                assert_eq!(ending, Ending::End, "the server resets instead of ending");
                replies
            }
        };
        let running: Vec<_> = (0..CLIENTS).map(|_| network.spawn(client())).collect();
        served.reached(CLIENTS).await;
        network.until(|stats| stats.sends >= 100).await;
        network.drain();
        let mut replies = 0;
        for client in running {
            replies += client.join().await;
        }
        assert!(replies >= 90, "{replies} replies");
    });
    served.expect_clean();
}

/// Case 18, from the other side: a client that has requested a lot and reads nothing until the drain has begun. Most
/// replies wait in buffers then, and all of them still arrive.
pub fn drain_before_slow_reader(rig: &mut Rig) {
    asked_before_the_drain(rig, b"");
}

/// As [`drain_before_slow_reader`], with bytes that arrive too late: they may stay unanswered, but must not cost a
/// reply to earlier requests.
pub fn drain_with_late_bytes(rig: &mut Rig) {
    asked_before_the_drain(rig, b"late\n");
}

fn asked_before_the_drain(rig: &mut Rig, late: &[u8]) {
    const REQUESTS: usize = 60;
    for _ in 0..5 {
        let pattern = rig.pattern.clone();
        let handler = move |stream: Stream| answer_with(stream, pattern.clone());
        let pattern = rig.pattern.clone();
        let served = rig.serve(handler, async |network| {
            let mut lazy = network.connect_with(SMALL).await;
            lazy.write("lazy\n".repeat(REQUESTS).as_bytes()).await.expect("the server listens");
            network.until(|stats| stats.bytes_received > 0).await;
            network.drain();
            // Fails when the server has ended already: then the reads show how.
            let _ = lazy.write(late).await;
            let mut replies = Replies::default();
            let ending = lazy.read_pieces(|bytes| _ = replies.take(bytes, &pattern)).await;
            let whole = replies.whole();
            assert!(whole >= REQUESTS, "{whole} replies to what had arrived before, then {ending:?}");
        });
        served.expect_clean();
    }
}

/// The replies received on one connection, checked.
#[derive(Debug, Default)]
struct Replies {
    received_bytes: usize,
}

impl Replies {
    /// Takes more bytes; returns how many replies they complete.
    fn take(&mut self, bytes: &[u8], pattern: &Pattern) -> usize {
        let before = self.received_bytes / REPLY_BYTES;
        let mut rest = bytes;
        while !rest.is_empty() {
            let place = self.received_bytes % REPLY_BYTES;
            let (part, more) = rest.split_at(rest.len().min(REPLY_BYTES - place));
            pattern.check(place, part);
            self.received_bytes += part.len();
            rest = more;
        }
        self.received_bytes / REPLY_BYTES - before
    }

    /// The number of replies, none of them truncated.
    #[track_caller]
    fn whole(&self) -> usize {
        assert_eq!(self.received_bytes % REPLY_BYTES, 0, "half a reply");
        self.received_bytes / REPLY_BYTES
    }
}

/// Keeps four requests in flight until the server ends the stream; returns the number of replies, and the end.
async fn ask_until_the_end(network: &Network, pattern: &Pattern, served: &Board) -> (usize, Ending) {
    let mut peer = network.connect().await;
    peer.write(b"1\n").await.expect("the server listens");
    let mut replies = Replies::default();
    replies.take(&peer.read_exact(REPLY_BYTES).await.expect("a reply"), pattern);
    served.post("served");
    peer.write(b"1\n2\n3\n4\n").await.expect("the server listens");
    loop {
        let completed = match peer.read_some(16 << 10).await {
            Ok(bytes) if bytes.is_empty() => return (replies.whole(), Ending::End),
            Ok(bytes) => replies.take(&bytes, pattern),
            Err(_) => return (replies.whole(), Ending::Reset),
        };
        // Fails when the server has ended: then the next read shows how.
        let _ = peer.write("next\n".repeat(completed).as_bytes()).await;
    }
}

/// A byte that never fills a long part of a pattern: it marks memory that the kernel must not touch.
const CANARY: u8 = 0xa5;

/// Case 19: a runtime ends with receives, sends, accepts and connects in flight. The memory that the allocator hands
/// out afterwards, and the bytes that the peers still read, show whether the kernel still uses the runtime's memory.
pub fn teardown(rig: &mut Rig) {
    for round in 0..rig.size(10, 200) {
        let runtime = rig.runtime();
        let mut peers = leave_in_flight(rig, &runtime);
        drop(runtime);
        let mut canaries = canary_memory();
        for (number, peer) in peers.iter_mut().enumerate() {
            // A receive that is still armed would take this and write it somewhere.
            let _ = peer.write_all(&rig.pattern.bytes(number, 4096));
            peer.set_nonblocking(true).expect("a socket can be non-blocking");
            let mut rest = Vec::new();
            // The other end is closed: the read returns its last bytes, then the end or a reset.
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

/// Blocks of every size that the engine uses, so that the allocator hands out its freed memory again.
fn canary_memory() -> Vec<Vec<u8>> {
    let sizes = [64, 256, 1 << 10, 2 << 10, 8 << 10, 32 << 10, 128 << 10, 256 << 10, 1 << 20];
    sizes.iter().flat_map(|size| (0..16).map(move |_| vec![CANARY; *size])).collect()
}
