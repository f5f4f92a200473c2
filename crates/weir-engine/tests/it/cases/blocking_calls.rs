//! Closures that may block, given to threads beside the runtime.

use std::{
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, channel},
    },
    thread,
};

use weir_engine::{Driver, net::Stream, spawn_blocking};

use super::handlers::Lines;
use crate::rig::Rig;

/// What lets a closure go that waits.
type Gate = Arc<Mutex<Receiver<()>>>;

/// Answers each line by a closure: one waits, one panics. `is_inline`: closures run on the handler's thread.
async fn answer_by_closures(stream: Stream, gate: Gate, is_inline: bool) {
    let (mut lines, own) = (Lines::default(), thread::current().id());
    while let Ok(Some(line)) = lines.next(&stream).await {
        let gate = Arc::clone(&gate);
        let closure = move || {
            if line == "wait" {
                gate.lock().expect("one closure waits").recv().expect("the script lets it go");
            }
            assert!(line != "panic", "as this test asks for");
            (format!("{}\n", line.to_uppercase()), thread::current().id())
        };
        let handle = spawn_blocking(closure).await.expect("the runtime goes on");
        let answer = match handle.await {
            Ok((answer, thread)) => {
                assert_eq!(thread == own, is_inline);
                answer
            }
            Err(error) => format!("{error}\n"),
        };
        if stream.send(answer.into_bytes()).await.is_err() {
            return;
        }
    }
}

/// Case 36: while the closure of one connection blocks, the others are answered. A panic of a closure ends nothing.
pub fn beside_others(rig: &mut Rig) {
    const PANICKED: &[u8] = b"the closure panicked: as this test asks for\n";
    let is_sim = rig.subject.is_sim();
    let is_inline = is_sim || rig.subject.driver == Driver::Blocking;
    let (go, wait) = channel();
    let gate = Arc::new(Mutex::new(wait));
    let handler = move |stream| answer_by_closures(stream, Arc::clone(&gate), is_inline);
    let served = rig.serve(handler, async |network| {
        let (mut waiting, mut other) = (network.connect().await, network.connect().await);
        // A simulated thread is the runtime's own.
        if !is_sim {
            waiting.write(b"wait\n").await.expect("the connection stands");
        }
        assert_eq!(other.exchange(b"hello\n").await.expect("an answer"), b"HELLO\n");
        other.write(b"panic\n").await.expect("the connection stands");
        assert_eq!(other.read_exact(PANICKED.len()).await.expect("an answer"), PANICKED);
        assert_eq!(other.exchange(b"next\n").await.expect("it goes on"), b"NEXT\n");
        if !is_sim {
            go.send(()).expect("the closure waits, or will");
            assert_eq!(waiting.read_exact(5).await.expect("an answer"), b"WAIT\n");
        }
    });
    served.expect_clean();
}

/// Case 36b: one thread and one place for many connections. They wait in line, and each gets its answers.
pub fn at_the_maximum(rig: &mut Rig) {
    rig.config.limits.blocking_threads_max = 1;
    rig.config.limits.blocking_queue_max = 1;
    let is_inline = rig.subject.is_sim() || rig.subject.driver == Driver::Blocking;
    let gate = Arc::new(Mutex::new(channel().1));
    let handler = move |stream| answer_by_closures(stream, Arc::clone(&gate), is_inline);
    let served = rig.serve(handler, async |network| {
        let mut peers = network.connect_many(8).await;
        for _ in 0..5 {
            for peer in &mut peers {
                peer.write(b"hello\n").await.expect("the connection stands");
            }
            for peer in &mut peers {
                assert_eq!(peer.read_exact(6).await.expect("an answer"), b"HELLO\n");
            }
        }
    });
    served.expect_clean();
}
