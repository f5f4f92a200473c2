//! Receive buffers run out, are held by other connections, or end a multishot receive: every connection still gets
//! every byte.

use std::{cell::Cell, rc::Rc, time::Duration};

use weir_engine::{Lease, net::Listener, spawn, time};

use super::handlers::echo;
use crate::{board::Board, peer::Ending, rig::Rig};

/// Case 6: a burst on 64 connections with a pool of 8 buffers, each of which is held for some turns.
pub fn pool_exhaustion(rig: &mut Rig) {
    const CONNECTIONS: usize = 64;
    const BYTES: usize = 16 << 10;
    rig.config.buffers.bytes = Some(2048);
    rig.config.buffers.count = Some(8);
    let written = Board::new();
    let (gate, is_sim) = (written.clone(), rig.subject.is_sim());
    let handler = move |stream: weir_engine::net::Stream| {
        let gate = gate.clone();
        async move {
            // All of them ask for a buffer in one turn.
            gate.reached(1).await;
            let mut left = BYTES;
            while let Ok(Some(lease)) = stream.recv().await {
                left = left.saturating_sub(lease.len());
                for _ in 0..3 {
                    time::yield_now().await;
                }
                if is_sim {
                    // Virtual time does not pass while tasks only yield.
                    time::sleep(Duration::from_micros(200)).await;
                }
                if stream.send(lease).await.is_err() {
                    return;
                }
                if left == 0 && stream.flush().await.is_err() {
                    return;
                }
            }
        }
    };
    let pattern = rig.pattern.clone();
    let served = rig.serve(handler, async |network| {
        let mut peers = network.connect_many(CONNECTIONS).await;
        for (number, peer) in peers.iter_mut().enumerate() {
            peer.write(&pattern.bytes(number, BYTES)).await.expect("it fits into the kernel's buffers");
        }
        written.post("written");
        for (number, peer) in peers.iter_mut().enumerate() {
            pattern.check(number, &peer.read_exact(BYTES).await.expect("nobody is reset"));
            peer.shutdown().await.expect("half of the connection ends");
            assert_eq!(peer.read_to_end().await, (Vec::new(), Ending::End));
        }
        network.stats()
    });
    served.expect_clean();
    let stats = served.stats;
    assert!(stats.buffers_exhausted > 0, "{stats:?}");
    // Each receive may cost some turns, but waiting for buffers must not spin.
    assert!(stats.turns < 40 * stats.receives.max(1), "{stats:?}");
}

/// Case 7: four connections hold every buffer; a fifth gets its bytes when they release some.
pub fn starvation(rig: &mut Rig) {
    const HOLDERS: usize = 4;
    rig.config.buffers.bytes = Some(1024);
    rig.config.buffers.count = Some(HOLDERS as u32);
    let runtime_turns = Rc::new(Cell::new(0u64));
    let (held, waiting) = (Board::new(), Board::new());
    let script_boards = (held.clone(), waiting.clone());
    let is_sim = rig.subject.is_sim();
    let body = async move |listener: Listener, counted: Board| {
        let mut leases: Vec<Lease> = Vec::new();
        let mut streams = Vec::new();
        for _ in 0..HOLDERS {
            let stream = listener.accept().await.expect("a connection");
            leases.push(stream.recv().await.expect("its bytes").expect("no end yet"));
            held.post("held");
            streams.push(stream);
        }
        let starved = listener.accept().await.expect("a connection");
        let task = spawn(async move {
            let mut bytes = Vec::new();
            while bytes.len() < b"starved".len() {
                bytes.extend_from_slice(&starved.recv().await.expect("no reset").expect("no end"));
            }
            (starved, bytes)
        });
        waiting.post("asked");
        // The script has sent, and a receive has found no buffer.
        counted.reached(1).await;
        assert!(!task.is_finished(), "there was a buffer left");
        runtime_turns.set(0);
        leases.clear();
        let turns = Rc::clone(&runtime_turns);
        let mut task = std::pin::pin!(task);
        let (starved, bytes) = loop {
            match crate::board::poll_once(task.as_mut()).await {
                Some(done) => break done,
                None => turns.set(turns.get() + 1),
            }
            if is_sim {
                time::sleep(Duration::from_micros(1)).await;
            } else {
                time::yield_now().await;
            }
        };
        starved.send(bytes).await.expect("it stands");
        turns.get()
    };
    let served = rig.run(body, async move |network| {
        let (held, waiting) = script_boards;
        let mut peers = network.connect_many(HOLDERS).await;
        for (number, peer) in peers.iter_mut().enumerate() {
            peer.write(b"held").await.expect("the server listens");
            held.reached(number + 1).await;
        }
        let mut last = network.connect().await;
        waiting.reached(1).await;
        last.write(b"starved").await.expect("the server listens");
        network.until(|stats| stats.buffers_exhausted > 0).await;
        network.stop.post("starved");
        assert_eq!(last.read_exact(7).await.expect("nobody is reset"), b"starved");
    });
    served.expect_clean();
    let (turns, ()) = served.value;
    // One turn returns the buffers and starts the receive, the next one delivers its bytes.
    assert!(is_sim || turns <= 3, "{turns} turns after the buffers came back");
}

/// Case 7b: more connections than there are buffers have sent bytes that their handlers do not ask for; another one
/// is served, and those get every byte once their handlers continue.
pub fn requests_that_wait(rig: &mut Rig) {
    const BUFFERS: usize = 4;
    const BUSY: usize = 3 * BUFFERS;
    const BYTES: usize = 3000;
    rig.config.buffers.bytes = Some(1024);
    rig.config.buffers.count = Some(BUFFERS as u32);
    let (busy, idle) = (Board::new(), Board::new());
    let (is_busy, go_on) = (busy.clone(), idle.clone());
    let handler = move |stream: weir_engine::net::Stream| {
        let (is_busy, go_on) = (is_busy.clone(), go_on.clone());
        async move {
            let first = stream.recv().await.expect("it stands").expect("there is more");
            if first[0] == b'b' {
                drop(first);
                is_busy.post("busy");
                go_on.reached(1).await;
            } else {
                stream.send(first).await.expect("it stands");
            }
            echo(stream).await;
        }
    };
    let pattern = rig.pattern.clone();
    let served = rig.serve(handler, async |network| {
        let mut peers = network.connect_many(BUSY).await;
        for peer in &mut peers {
            peer.write(b"b").await.expect("the server listens");
        }
        busy.reached(BUSY).await;
        for (number, peer) in peers.iter_mut().enumerate() {
            peer.write(&pattern.bytes(number, BYTES)).await.expect("it fits into the kernel's buffers");
        }
        let mut other = network.connect().await;
        for request in [b"one".as_slice(), b"two"] {
            assert_eq!(other.exchange(request).await.expect("nobody is reset"), request);
        }
        idle.post("go on");
        for (number, peer) in peers.iter_mut().enumerate() {
            pattern.check(number, &peer.read_exact(BYTES).await.expect("nobody is reset"));
        }
    });
    served.expect_clean();
}

/// Case 8: the kernel ends a multishot receive because buffers ran out or the driver changed their size.
pub fn rearming(rig: &mut Rig) {
    for (bytes, count) in [(Some(1024), Some(4)), (None, None)] {
        rig.config.buffers.bytes = bytes;
        rig.config.buffers.count = count;
        let total = 2 << 20;
        let pattern = rig.pattern.clone();
        let served = rig.serve(echo, async |network| {
            let mut peer = network.connect().await;
            let mut offset = 0;
            while offset < total {
                // At most the size of the kernel's buffers of both directions.
                let reply = peer.exchange(&pattern.bytes(offset, 64 << 10)).await.expect("an echo");
                pattern.check(offset, &reply);
                offset += reply.len();
            }
        });
        served.expect_clean();
        assert!(served.stats.rearms > 0, "{:?}", served.stats);
        assert_eq!(served.stats.bytes_received, total as u64);
    }
}
