//! Case 23: one connection floods, many others play ping-pong: all of them are served.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use weir_engine::{
    net::{Listener, Stream},
    time,
};

use super::handlers::{echo, percentile, ping_pong};
use crate::{
    board::{Board, poll_once},
    peer::Network,
    rig::Rig,
};

const OTHERS: usize = 32;

/// A connection that begins with `f` is only read from; the others are echoed.
async fn sink_or_echo(stream: Stream) {
    let Ok(Some(first)) = stream.recv().await else { return };
    if first[0] != b'f' {
        if stream.send(first).await.is_ok() {
            echo(stream).await;
        }
        return;
    }
    while let Ok(Some(_)) = stream.recv().await {}
}

/// Ping-pongs on every connection in turn.
async fn all_ping_pong(network: &Network, rounds: usize) -> Vec<Duration> {
    let mut peers = network.connect_many(OTHERS).await;
    let mut times = Vec::new();
    for _ in 0..rounds {
        for peer in &mut peers {
            times.extend(ping_pong(peer, 1).await);
        }
    }
    times
}

/// The flood lasts as long as the others play; then both must have made progress.
pub fn flood(rig: &mut Rig) {
    const ROUNDS: usize = 25;
    let is_sim = rig.subject.is_sim();
    let pattern = rig.pattern.clone();
    let served = rig.serve(sink_or_echo, async |network| {
        let mut unloaded = all_ping_pong(&network, ROUNDS).await;
        let ended = Arc::new(AtomicBool::new(false));
        let (end, piece) = (Arc::clone(&ended), pattern.bytes(0, 64 << 10));
        let flooding = network.spawn(async move |network: Network| {
            let mut peer = network.connect().await;
            peer.write(b"f").await.expect("the server listens");
            let mut written = 0usize;
            while !end.load(SeqCst) {
                peer.write(&piece).await.expect("the server reads");
                written += piece.len();
            }
            written
        });
        let before = network.stats().bytes_received;
        network.until(|stats| stats.bytes_received > before + (1 << 20)).await;
        let at_start = network.stats().bytes_received;
        let mut loaded = all_ping_pong(&network, ROUNDS).await;
        let during = network.stats().bytes_received - at_start;
        ended.store(true, SeqCst);
        let written = flooding.join().await;
        assert!(written > 1 << 20, "{written} bytes of flood");
        assert!(during > 64 << 10, "the flood itself starved: {during} bytes");
        let (alone, beside) = (percentile(&mut unloaded, 99), percentile(&mut loaded, 99));
        assert!(!is_sim || beside <= 3 * alone, "p99 {alone:?} alone, {beside:?} beside the flood");
    });
    served.expect_clean();
}

/// A lot has arrived on one connection: one turn hands out no more than its share, however much the handler asks for.
pub fn share_of_a_turn(rig: &mut Rig) {
    const SHARE_BYTES: usize = 16 << 10;
    const ARRIVED_BYTES: usize = 128 << 10;
    rig.config.buffers.bytes = Some(2048);
    rig.config.buffers.count = Some((SHARE_BYTES / 2048) as u32);
    rig.config.limits.turn_bytes_max = SHARE_BYTES;
    rig.config.limits.input_high_water_bytes = SHARE_BYTES;
    rig.config.sim.socket_buffer_bytes = 2 * ARRIVED_BYTES as u32;
    let (written, is_sim) = (Board::new(), rig.subject.is_sim());
    let arrived = written.clone();
    let body = async move |listener: Listener, _stop: Board| {
        let stream = listener.accept().await.expect("a connection");
        arrived.reached(1).await;
        let (mut received, mut most) = (0, 0);
        while received < ARRIVED_BYTES {
            let mut in_this_turn = 0;
            while let Some(lease) = poll_once(stream.recv()).await {
                in_this_turn += lease.expect("no reset").expect("no end").len();
            }
            most = most.max(in_this_turn);
            received += in_this_turn;
            if is_sim {
                time::sleep(Duration::from_micros(1)).await;
            } else {
                time::yield_now().await;
            }
        }
        assert_eq!(received, ARRIVED_BYTES);
        most
    };
    let pattern = rig.pattern.clone();
    let served = rig.run(body, async move |network| {
        let mut peer = network.connect().await;
        peer.write(&pattern.bytes(0, ARRIVED_BYTES)).await.expect("it fits into the kernel's buffers");
        written.post("written");
        peer.read_to_end().await
    });
    served.expect_clean();
    let (most, _) = served.value;
    // On io_uring also the bytes that have already arrived, and one turn's worth of buffers more.
    assert!(most <= 2 * SHARE_BYTES + 2048, "{most} bytes in one turn");
}
