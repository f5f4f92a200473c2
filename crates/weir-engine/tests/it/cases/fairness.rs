//! Case 23: one connection floods, many others play ping-pong: all of them get their turn.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use weir_engine::net::Stream;

use super::handlers::{echo, percentile, ping_pong};
use crate::{peer::Network, rig::Rig};

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

/// The flood goes on for as long as the others play; then both must have got somewhere.
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
