//! Handlers that panic.

use weir_engine::{TaskPanic, net::Stream};

use super::handlers::Lines;
use crate::rig::Rig;

/// Answers each line, and panics at one.
async fn answer_or_panic(stream: Stream) {
    let mut lines = Lines::default();
    while let Ok(Some(line)) = lines.next(&stream).await {
        assert!(line != "panic", "as this test asks for");
        if stream.send_slice(format!("{line}\n").as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Case 35: a handler that panics ends its own connection. The others and the server go on, and it is counted.
pub fn one_of_many(rig: &mut Rig) {
    const PANICS: u64 = 3;
    rig.config.task_panic = TaskPanic::Task;
    let served = rig.serve(answer_or_panic, async |network| {
        let mut other = network.connect().await;
        assert_eq!(other.exchange(b"before\n").await.expect("an answer"), b"before\n");
        for _ in 0..PANICS {
            let mut peer = network.connect().await;
            assert_eq!(peer.exchange(b"hello\n").await.expect("an answer"), b"hello\n");
            peer.write(b"panic\n").await.expect("the connection stands");
            let (rest, _ending) = peer.read_to_end().await;
            assert!(rest.is_empty(), "{rest:?}");
        }
        network.until(|stats| stats.tasks_panicked == PANICS).await;
        assert_eq!(other.exchange(b"after\n").await.expect("it goes on"), b"after\n");
        let mut next = network.connect().await;
        assert_eq!(next.exchange(b"next\n").await.expect("so does accepting"), b"next\n");
    });
    assert_eq!(served.connections_cut, 0, "{:?}", served.stats);
    assert_eq!(
        (served.stats.connections_open, served.stats.tasks_panicked),
        (0, PANICS),
        "{:?}",
        served.stats
    );
    assert_eq!(served.stats.accepts + served.stats.connects, served.stats.closes, "{:?}", served.stats);
}
