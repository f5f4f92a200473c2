//! Tests of virtual time: exact, in order, and never stuck.

use std::{
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
};

use super::*;
use crate::{
    spawn,
    time::{now, sleep, sleep_until, timeout, yield_now},
};

#[test]
fn sleeps_end_in_order_and_to_the_nanosecond() {
    simulate(options(1), async {
        let start = now();
        let log = Rc::new(RefCell::new(Vec::new()));
        let nanoseconds = [5u64, 1, 86_400_000_000_000, 64_000_001, 63_999_999, 1_000_000, 1_000_001];
        let sleepers = nanoseconds.map(|length| {
            let log = Rc::clone(&log);
            spawn(async move {
                sleep(Duration::from_nanos(length)).await;
                log.borrow_mut().push((length, now().since(start).as_nanos()));
            })
        });
        for sleeper in sleepers {
            sleeper.await;
        }
        let mut sorted = nanoseconds;
        sorted.sort_unstable();
        let expected: Vec<_> = sorted.iter().map(|&length| (length, u128::from(length))).collect();
        assert_eq!(log.take(), expected);
    });
}

#[test]
fn time_stands_still_while_tasks_run_and_a_past_deadline_costs_none() {
    simulate(options(1), async {
        let start = now();
        for _ in 0..100 {
            spawn(async { yield_now().await }).await;
        }
        sleep_until(start).await;
        assert_eq!(now(), start);
    });
}

#[test]
fn a_task_that_only_yields_still_sees_time_pass() {
    simulate(options(1), async {
        let start = now();
        while now().since(start) < MILLISECOND {
            yield_now().await;
        }
        let client = timeout(MILLISECOND, async {
            let (client, server) = pair().await;
            spawn(async move { while server.recv().await.is_ok_and(|bytes| bytes.is_some()) {} });
            client
        });
        assert!(client.await.is_ok());
    });
}

#[test]
fn a_round_trip_takes_two_latencies() {
    let (low, high) = (MICROSECOND * 300, MICROSECOND * 400);
    for seed in 0..50 {
        let sim = SimOptions { latency_min: low, latency_max: high, ..options(seed) };
        simulate(sim, async {
            let (client, server) = pair().await;
            spawn(echo(server));
            let start = now();
            client.send(b"ping").await.unwrap();
            assert_eq!(&client.recv().await.unwrap().unwrap()[..], b"ping");
            let took = now().since(start);
            assert!((low * 2..=high * 2).contains(&took), "seed {seed}: {took:?}");
        });
    }
}

#[test]
fn a_time_limit_ends_at_its_deadline() {
    simulate(options(1), async {
        let (client, _server) = pair().await;
        let start = now();
        assert!(timeout(MILLISECOND * 250, client.recv()).await.is_err());
        assert_eq!(now().since(start), MILLISECOND * 250);
    });
}

/// The panic message of a simulation.
fn panic_of(future: impl Future<Output = ()>) -> String {
    let runtime = Runtime::new(&config(options(1))).unwrap();
    let outcome = catch_unwind(AssertUnwindSafe(|| runtime.block_on(future)));
    *outcome.expect_err("it ends").downcast::<String>().expect("a message")
}

#[test]
fn a_deadlock_is_reported_with_everybody_who_waits() {
    let message = panic_of(async {
        let (listener, _) = listen();
        let (client, _server) = pair().await;
        let (_reader, writer) = pair().await;
        spawn(async move {
            let _connection = listener.accept().await;
        });
        spawn(async move {
            let _bytes = client.recv().await;
        });
        writer.send_slice(&[0; 1 << 20]).await.unwrap();
        writer.flush().await.unwrap();
    });
    assert!(message.contains("the sim driver cannot wait any more: deadlock at virtual time"), "{message}");
    assert!(message.contains("listener 127.0.0.1:32768 waits for accept"), "{message}");
    assert!(message.contains("stream 127.0.0.1:32770 to 127.0.0.1:32769 waits for receive"), "{message}");
    assert!(message.contains("waits for room to send"), "{message}");
}

#[test]
fn tasks_that_wait_for_each_other_are_reported_too() {
    let message = panic_of(std::future::pending::<()>());
    assert!(message.contains("they wait for each other"), "{message}");
}

#[test]
fn a_message_from_another_thread_is_taken_before_a_deadlock_is_called() {
    use crate::driver::{DriverOps, DriverParts, Wait, sim};
    let wake = rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK).unwrap();
    let wake = std::sync::Arc::new(wake);
    let (counters, departed) = Default::default();
    let parts = DriverParts::new(&config(options(1)), counters, std::sync::Arc::clone(&wake), departed);
    let mut sim = sim::start(parts).unwrap();
    rustix::io::write(&*wake, &1u64.to_ne_bytes()).unwrap();
    assert!(sim.turn(Wait::Forever).is_ok());
    let error = sim.turn(Wait::Forever).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::Deadlock);
}

#[test]
fn a_mailbox_works_between_tasks() {
    simulate(options(1), async {
        let (sender, mut receiver) = crate::mailbox::mailbox(4);
        spawn(async move {
            for number in 0..3 {
                sleep(MILLISECOND).await;
                sender.try_send(number).unwrap();
            }
        });
        let start = now();
        for number in 0..3 {
            assert_eq!(receiver.recv().await, Some(number));
            assert_eq!(now().since(start), MILLISECOND * (number + 1));
        }
        assert_eq!(receiver.recv().await, None);
    });
}

#[test]
fn spurious_wake_ups_come_as_often_as_asked() {
    let polls_of_a_silent_receive = |spurious_per_mille| {
        simulate(SimOptions { spurious_per_mille, ..options(1) }, async {
            let (client, _server) = pair().await;
            let mut polls = 0;
            let mut receive = std::pin::pin!(client.recv());
            let counted = std::future::poll_fn(|context| {
                polls += 1;
                receive.as_mut().poll(context)
            });
            assert!(timeout(MILLISECOND * 100, counted).await.is_err());
            polls
        })
    };
    // Once at the start, and once when the time limit ends.
    assert_eq!(polls_of_a_silent_receive(0), 2);
    let often = polls_of_a_silent_receive(1000);
    assert!(often > 1000, "{often} polls in 100 ms at latencies below 50 us");
}
