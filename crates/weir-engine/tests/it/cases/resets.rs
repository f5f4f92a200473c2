//! Case 5: a peer that resets the connection at the worst moments. No panic, no SIGPIPE, no busy loop, and no loss of
//! bytes that had arrived.

use std::{
    io::Write,
    net::{Shutdown, TcpStream},
    os::{fd::OwnedFd, unix::net::UnixStream},
    time::Duration,
};

use socket2::SockRef;
use weir_engine::{net::Stream, time};

use super::{
    handlers::{WINDOW, observe, turns_of_a_quiet_window},
    moving::connection,
};
use crate::{
    board::{Board, poll_once},
    rig::Rig,
};

/// Turns that a quiet window may take: far fewer than a loop that does not sleep.
const TURNS_MAX: u64 = 40;

/// An answer that takes several receives, and that fits into a socket's buffers.
const ANSWER_BYTES: usize = 20_000;

/// The end of a connection, as its handler sees it, as a note.
fn ending<T>(outcome: std::io::Result<Option<T>>) -> &'static str {
    match outcome {
        Ok(Some(_)) => "bytes",
        Ok(None) => "end",
        Err(_) => "error",
    }
}

/// The handler waits for the next request on a persistent connection.
pub fn reset_while_idle(rig: &mut Rig) {
    let board = Board::new();
    let notes = board.clone();
    let handler = move |stream: Stream| {
        let notes = notes.clone();
        async move {
            let Ok(Some(first)) = stream.recv().await else { return };
            if first[0] == b'w' {
                return observe(stream, first.to_vec()).await;
            }
            if stream.send(first).await.is_ok() {
                notes.post(ending(stream.recv().await));
                // Every later call also returns an error or an end, and none of them waits.
                notes.post(ending(stream.recv().await));
                let failed = stream.send(b"late").await.is_err() || stream.flush().await.is_err();
                notes.post(if failed { "error" } else { "sent" });
            }
        }
    };
    let served = rig.serve(handler, async |network| {
        let mut observer = network.connect().await;
        turns_of_a_quiet_window(&network, &mut observer).await;
        for round in 1..=5 {
            let mut peer = network.connect().await;
            assert_eq!(peer.exchange(b"k").await.expect("an echo"), b"k");
            peer.reset();
            board.reached(3 * round).await;
        }
        let turns = turns_of_a_quiet_window(&network, &mut observer).await;
        assert!(turns < TURNS_MAX, "{turns} turns in a window in which nothing happened");
        assert_eq!(board.lines(), ["error"; 15]);
    });
    served.expect_clean();
}

/// The handler is busy elsewhere: no receive or send is pending when the reset comes.
pub fn reset_unwatched(rig: &mut Rig) {
    let board = Board::new();
    let notes = board.clone();
    let handler = move |stream: Stream| {
        let notes = notes.clone();
        async move {
            let Ok(Some(first)) = stream.recv().await else { return };
            let _ = stream.send(first).await;
            // The peer resets when it has read that.
            let _ = stream.flush().await;
            notes.post("waiting");
            time::sleep(WINDOW).await;
            notes.post(ending(stream.recv().await));
        }
    };
    let served = rig.serve(handler, async |network| {
        let before = network.stats();
        let mut peers = network.connect_many(5).await;
        for peer in &mut peers {
            assert_eq!(peer.exchange(b"k").await.expect("an echo"), b"k");
        }
        for peer in peers {
            peer.reset();
        }
        board.reached(10).await;
        let turns = network.stats().turns - before.turns;
        assert!(turns < 5 * TURNS_MAX, "{turns} turns for five connections that waited for a timer");
        let lines = board.lines();
        assert_eq!(lines.iter().filter(|line| *line == "error").count(), 5, "{lines:?}");
    });
    served.expect_clean();
}

/// The handler is sending an endless reply.
pub fn reset_while_writing(rig: &mut Rig) {
    let board = Board::new();
    let notes = board.clone();
    let pattern = rig.pattern.clone();
    let handler = move |stream: Stream| {
        let (notes, pattern) = (notes.clone(), pattern.clone());
        async move {
            let Ok(Some(first)) = stream.recv().await else { return };
            if first[0] == b'w' {
                return observe(stream, first.to_vec()).await;
            }
            let mut offset = 0;
            while stream.send(pattern.bytes(offset, 32 << 10)).await.is_ok() {
                offset += 32 << 10;
            }
            notes.post(ending(stream.recv().await));
        }
    };
    let pattern = rig.pattern.clone();
    let served = rig.serve(handler, async |network| {
        let mut observer = network.connect().await;
        for round in 1..=5 {
            let mut peer = network.connect().await;
            peer.write(b"r").await.expect("the server listens");
            let bytes = peer.read_exact(round * 100_000).await.expect("the reply goes on");
            pattern.check(0, &bytes);
            peer.reset();
            board.reached(round).await;
        }
        let turns = turns_of_a_quiet_window(&network, &mut observer).await;
        assert!(turns < TURNS_MAX, "{turns} turns in a window in which nothing happened");
        assert_eq!(board.lines(), ["error"; 5]);
    });
    served.expect_clean();
}

/// The peer answers early and closes with unread input, as an overloaded server does. A send sees the reset first;
/// the peer's answer is still received.
pub fn reset_met_by_a_send(rig: &mut Rig) {
    // More than may be received before a handler asks for it: the rest is still in the kernel.
    rig.config.limits.input_high_water_bytes = 8 << 10;
    let board = Board::new();
    let notes = board.clone();
    let (pattern, answer) = (rig.pattern.clone(), rig.pattern.bytes(7, ANSWER_BYTES));
    let expected = answer.clone();
    let handler = move |stream: Stream| {
        let (notes, pattern, expected) = (notes.clone(), pattern.clone(), expected.clone());
        async move {
            let Ok(Some(_)) = stream.recv().await else { return };
            while stream.send(pattern.bytes(0, 4 << 10)).await.is_ok() && stream.flush().await.is_ok() {}
            let mut received = Vec::new();
            let end = loop {
                match stream.recv().await {
                    Ok(Some(lease)) => received.extend_from_slice(&lease),
                    other => break ending(other),
                }
            };
            notes.post(if received == expected { "the answer" } else { "something else" });
            notes.post(end);
            notes.post(ending(stream.recv().await));
        }
    };
    let served = rig.serve(handler, async |network| {
        for round in 1..=5 {
            let mut peer = network.connect().await;
            peer.write(b"r").await.expect("the server listens");
            peer.read_exact(1).await.expect("the request comes");
            peer.write(&answer).await.expect("there is room for the answer");
            drop(peer);
            board.reached(3 * round).await;
        }
        let expected = ["the answer", "error", "error"].repeat(5);
        assert_eq!(board.lines(), expected);
    });
    served.expect_clean();
}

/// Longer than any of this takes: a receive that never completes is reported as such.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a peer leaves, right behind its last bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Farewell {
    TcpEnd,
    TcpReset,
    UnixEnd,
}

/// Sends the last bytes on a connection, and leaves.
type Leave = Box<dyn FnOnce(&[u8])>;

impl Farewell {
    /// Our end of a connection, and the peer's actions on its end.
    fn connection(self) -> (OwnedFd, Leave) {
        let say = |peer: &mut dyn Write, bytes: &[u8]| peer.write_all(bytes).expect("there is room");
        if self == Self::UnixEnd {
            let (ours, mut theirs) = UnixStream::pair().expect("there are descriptors");
            return (ours.into(), Box::new(move |bytes| say(&mut theirs, bytes)));
        }
        let (ours, mut theirs): (TcpStream, TcpStream) = connection();
        let go = move |bytes: &[u8]| {
            say(&mut theirs, bytes);
            if self == Self::TcpReset {
                SockRef::from(&theirs).set_linger(Some(Duration::ZERO)).expect("SO_LINGER can be set");
            } else {
                theirs.shutdown(Shutdown::Both).expect("it is connected");
            }
        };
        (ours.into(), Box::new(go))
    }
}

/// The peer has sent everything and left before a receive is started, or while one is in flight and the runtime is
/// busy. No further event comes on such a connection, so a receive that waits for more waits forever.
pub fn farewell_at_once(rig: &mut Rig) {
    let pattern = rig.pattern.clone();
    for farewell in [Farewell::TcpEnd, Farewell::TcpReset, Farewell::UnixEnd] {
        for (length, is_in_flight) in [(20, false), (20, true), (60_000, false), (60_000, true)] {
            let (ours, go) = farewell.connection();
            let (received, end) = rig.runtime().block_on(async {
                let stream = Stream::from_descriptor(ours).expect("there is room");
                if is_in_flight {
                    assert!(poll_once(stream.recv()).await.is_none(), "nothing is there yet");
                    time::sleep(Duration::from_millis(1)).await;
                }
                go(&pattern.bytes(0, length));
                let mut received = 0;
                loop {
                    match time::timeout(PATIENCE, stream.recv()).await {
                        Ok(Ok(Some(lease))) => {
                            pattern.check(received, &lease);
                            received += lease.len();
                        }
                        Ok(other) => break (received, ending(other)),
                        Err(_) => break (received, "nothing"),
                    }
                }
            });
            let expected = if farewell == Farewell::TcpReset { "error" } else { "end" };
            let case = format!("{farewell:?}, {length} bytes, a receive in flight: {is_in_flight}");
            assert_eq!((received, end), (length, expected), "{case}");
        }
    }
}
