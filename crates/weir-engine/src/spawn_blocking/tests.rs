//! What becomes of closures: at the limits, without their handles, and at the end of the runtime. The conformance suite
//! has what every driver does with them.

use std::{
    pin::pin,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    task::Waker,
};

use super::*;
use crate::{Config, Runtime, mailbox::MailboxSender, spawn};

fn config(driver: Driver, threads_max: usize, queue_max: usize) -> Config {
    let mut config = Config::for_test(driver);
    config.limits.blocking_threads_max = threads_max;
    config.limits.blocking_queue_max = queue_max;
    config
}

fn runtime(driver: Driver, threads_max: usize, queue_max: usize) -> Runtime {
    Runtime::new(&config(driver, threads_max, queue_max)).expect("it runs everywhere")
}

/// A closure that reports its beginning, and then waits to be let go.
fn held(begun: MailboxSender<()>) -> (impl FnOnce() + Send + 'static, Sender<()>) {
    let (go, wait): (Sender<()>, Receiver<()>) = channel();
    let closure = move || {
        begun.try_send(()).expect("there is room for one");
        // The test may be over.
        let _ = wait.recv();
    };
    (closure, go)
}

fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_full_queue_makes_the_caller_wait_and_who_gives_up_never_begins() {
    runtime(Driver::Poll, 1, 1).block_on(async {
        let (sender, mut begun) = mailbox(1);
        let (closure, go) = held(sender);
        let first = spawn_blocking(closure).await.expect("there is a place");
        begun.recv().await.expect("it begins");
        let second = spawn_blocking(|| 2).await.expect("there is one place in the queue");
        let life = Arc::new(());
        let other = Arc::clone(&life);
        {
            let mut given_up = pin!(spawn_blocking(move || drop(other)));
            assert!(poll_once(given_up.as_mut()).is_pending());
        }
        assert_eq!(Arc::strong_count(&life), 1, "it was dropped");
        let third = spawn(async { spawn_blocking(|| 3).await.expect("there is a place again").await });
        go.send(()).expect("the closure waits");
        first.await.expect("no panic");
        assert_eq!((second.await.expect("no panic"), third.await.expect("no panic")), (2, 3));
    });
}

#[test]
fn a_closure_runs_without_its_handle() {
    for driver in [Driver::Poll, Driver::Sim, Driver::Blocking] {
        runtime(driver, 1, 4).block_on(async {
            let (sender, mut receiver) = mailbox(1);
            let send = move || sender.try_send(7).expect("there is room for one");
            drop(spawn_blocking(send).await.expect("there is a place"));
            if driver == Driver::Blocking {
                assert_eq!(receiver.try_recv(), Some(7), "it has run");
            } else {
                assert_eq!(receiver.recv().await, Some(7));
            }
        });
    }
}

#[test]
fn a_panic_is_an_error_of_the_handle_and_has_its_payload() {
    runtime(Driver::Poll, 1, 4).block_on(async {
        let number = 7;
        let handle = spawn_blocking(move || -> u8 { panic!("number {number}") }).await.expect("a place");
        let error = handle.await.expect_err("it panics");
        assert_eq!(error.to_string(), "the closure panicked: number 7");
        let payload = error.into_panic().expect("it is one");
        assert_eq!(payload.downcast_ref::<String>().map(String::as_str), Some("number 7"));
        let next = spawn_blocking(|| 8).await.expect("a place");
        assert_eq!(next.await.expect("the thread goes on"), 8);
    });
}

#[test]
fn the_end_of_the_runtime_drops_what_has_not_begun_and_says_so() {
    let runtime = runtime(Driver::Poll, 1, 4);
    let counters = runtime.counters();
    let (mut queued, go) = runtime.block_on(async {
        let (sender, mut begun) = mailbox(1);
        let (closure, go) = held(sender);
        drop(spawn_blocking(closure).await.expect("there is a place"));
        begun.recv().await.expect("it begins");
        (spawn_blocking(|| 2).await.expect("there is a place"), go)
    });
    assert_eq!(counters.blocking_unfinished(), (0, 0));
    drop(runtime);
    assert_eq!(counters.blocking_unfinished(), (1, 1));
    let answer = poll_once(Pin::new(&mut queued));
    assert!(matches!(answer, Poll::Ready(Err(BlockingError::Ended))), "{answer:?}");
    drop(go);
}

#[test]
fn outside_a_runtime_it_is_an_error() {
    let answer = poll_once(pin!(spawn_blocking(|| ())));
    assert!(matches!(answer, Poll::Ready(Err(BlockingError::NoRuntime))), "{answer:?}");
}

#[test]
fn on_the_simulator_threads_take_turns_with_tasks_in_one_order() {
    let order = |threads_max| {
        runtime(Driver::Sim, threads_max, 2).block_on(async {
            let (sender, mut numbers) = mailbox(16);
            let handles = (0..6).map(|number| {
                let sender = sender.clone();
                spawn(async move {
                    let closure = move || sender.try_send(number).expect("there is room");
                    spawn_blocking(closure).await.expect("there will be a place").await
                })
            });
            for handle in handles.collect::<Vec<_>>() {
                handle.await.expect("no panic");
            }
            std::iter::from_fn(|| numbers.try_recv()).collect::<Vec<_>>()
        })
    };
    for threads_max in [1, 2] {
        assert_eq!(order(threads_max), [0, 1, 2, 3, 4, 5]);
    }
}
