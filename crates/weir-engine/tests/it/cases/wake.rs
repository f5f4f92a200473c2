//! Wake-ups: by other threads, by timers, by meaningless signals.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
        mpsc,
    },
    time::Duration,
};

use weir_engine::{mailbox::mailbox, net::Stream, time};

use super::handlers::{SMALL, echo, with_send_buffer};
use crate::{board::poll_once, kernel, outcome::note, random::Random, rig::Rig};

/// Case 20: a thread sends the next message only when the last one was received, at random moments around the moment
/// when the receiver falls asleep. A lost wake-up would stop both forever.
pub fn lockstep(rig: &mut Rig) {
    let rounds = rig.size(10_000, 10_000_000) as u64;
    let seed = rig.random.next();
    let runtime = rig.runtime();
    let (sender, mut receiver) = mailbox::<u64>(4);
    let (acknowledge, acknowledged) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let mut random = Random::new(seed);
        for round in 0..rounds {
            for _ in 0..random.between(0, 400) {
                std::hint::spin_loop();
            }
            sender.try_send(round).expect("the mailbox has room for one");
            assert_eq!(acknowledged.recv(), Ok(round));
        }
    });
    let received = runtime.block_on(async {
        let mut expected = 0;
        while let Some(message) = receiver.recv().await {
            assert_eq!(message, expected);
            expected += 1;
            acknowledge.send(message).expect("the sender waits for it");
        }
        expected
    });
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    assert_eq!(received, rounds);
    let stats = runtime.counters().snapshot();
    // It sleeps between messages instead of polling.
    assert!(stats.turns < 4 * rounds + 100, "{stats:?}");
}

/// Case 27: ten messages a second; each is sent when it is due, not with the next one.
pub fn paced_sender(rig: &mut Rig) {
    const MESSAGES: usize = 10;
    let is_sim = rig.subject.is_sim();
    let interval = Duration::from_millis(if is_sim { 100 } else { 5 });
    let due = Arc::new(Mutex::new(Vec::new()));
    let moments = Arc::clone(&due);
    let handler = move |stream: Stream| {
        let moments = Arc::clone(&moments);
        async move {
            let start = time::now();
            for number in 0..MESSAGES {
                let moment = start + interval * (number as u32 + 1);
                time::sleep_until(moment).await;
                // A moment in the past needs no wait: then the previous message gets one turn.
                time::yield_now().await;
                // Earlier messages have been sent: they did not wait for later ones.
                assert!(
                    matches!(poll_once(stream.flush()).await, Some(Ok(()))),
                    "message {number} is held back"
                );
                moments.lock().expect("no handler panicked").push(moment);
                let message = format!("message {number:02}\n");
                if stream.send(message.into_bytes()).await.is_err() {
                    return;
                }
                if number % 2 == 1 {
                    // Waits for the peer: the message must be sent although no other follows.
                    let _ = stream.recv().await;
                }
            }
        }
    };
    let latency_max = rig.config.sim.latency_max;
    let served = rig.serve(handler, async |network| {
        let mut peer = network.connect().await;
        for number in 0..MESSAGES {
            let message = peer.read_exact(11).await.expect("the message");
            let arrived = time::now();
            assert_eq!(message, format!("message {number:02}\n").into_bytes());
            let moments = due.lock().expect("no handler panicked").clone();
            let late = arrived.since(moments[number]);
            let bound = Duration::from_millis(1) + latency_max;
            assert!(!is_sim || late <= bound, "message {number} arrived {late:?} after it was due");
            if number % 2 == 1 {
                peer.write(b"a").await.expect("the server listens");
            }
        }
    });
    served.expect_clean();
}

/// List A-14: meaningless signals interrupt every system call of the server.
pub fn signal_storm(rig: &mut Rig) {
    kernel::install_empty_signal_handler();
    let threads = Arc::new(Mutex::new(Vec::new()));
    let ended = Arc::new(AtomicBool::new(false));
    let sent = Arc::new(AtomicU64::new(0));
    let (targets, end, count) = (Arc::clone(&threads), Arc::clone(&ended), Arc::clone(&sent));
    let storm = std::thread::spawn(move || {
        while !end.load(SeqCst) {
            let targets: Vec<i32> = targets.lock().expect("no handler panicked").clone();
            for target in targets {
                count.fetch_add(kernel::signal_thread(target).into(), SeqCst);
            }
            for _ in 0..2000 {
                std::hint::spin_loop();
            }
        }
    });
    let seen = Arc::clone(&threads);
    let handler = move |stream: Stream| {
        let seen = Arc::clone(&seen);
        async move {
            seen.lock().expect("no handler panicked").push(kernel::thread_number());
            // Blocking sends are interrupted too.
            let stream = with_send_buffer(stream, 4 << 10);
            // A timer too: its wait is interrupted repeatedly and must still end.
            time::sleep(Duration::from_millis(3)).await;
            echo(stream).await;
        }
    };
    let pattern = rig.pattern.clone();
    let served = rig.serve(handler, async |network| {
        for _ in 0..4 {
            let mut peer = network.connect_with(SMALL).await;
            let mut round = 0;
            // On a busy machine the storm takes longer.
            while round < 50 || sent.load(SeqCst) <= 100 {
                // As much as one side accepts while the other does not read.
                let reply = peer.exchange(&pattern.bytes(round, 20_000)).await.expect("an echo");
                pattern.check(round, &reply);
                round += 1;
            }
        }
    });
    ended.store(true, SeqCst);
    storm.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    note(&format!("{} signals", sent.load(SeqCst)));
    served.expect_clean();
}
