//! Tests of the port alone: refusals, counters, and the detection of a lost wake.

use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

use super::*;
use crate::{Config, Counters, Driver, Runtime, StartError, spawn, time};

#[test]
fn names_are_understood_and_others_are_refused_with_the_list() {
    for strategy in Strategy::ALL {
        assert_eq!(strategy.to_string().parse(), Ok(strategy));
    }
    let error = "mash".parse::<Strategy>().expect_err("there is no such strategy");
    let list = "owner, naive, edge, armed, mesh, mesh-spin, msgring";
    assert_eq!(error.to_string(), format!("handoff: \"mash\" is not possible here; expected {list}"));
}

fn runtime(driver: Driver) -> Runtime {
    Runtime::new(&Config::for_test(driver)).expect("it runs everywhere")
}

fn options(strategy: Strategy) -> Options {
    Options { strategy, spin: Duration::ZERO, ring_slots: 4, overflow_max: 3 }
}

fn port<T: Send + 'static>(strategy: Strategy) -> Port<T> {
    group(2, &options(strategy)).swap_remove(0)
}

#[test]
fn what_cannot_be_attached_says_why() {
    let reason = |driver: Driver, strategy: Strategy| {
        let port = port::<u8>(strategy);
        let attached = runtime(driver).block_on(async { port.attach() });
        attached.map_err(|error| error.to_string())
    };
    let blocking = "the blocking driver cannot do this: it has one task a thread, and none that could take what other \
                    workers hand over";
    assert_eq!(reason(Driver::Blocking, Strategy::Mesh), Err(blocking.into()));
    for driver in [Driver::Epoll, Driver::Poll, Driver::Select, Driver::Sim] {
        let refused = format!(
            "the {driver} driver cannot do this: the hand-off msgring is refused: messages from ring to ring are \
             io_uring's"
        );
        assert_eq!(reason(driver, Strategy::MsgRing), Err(refused));
        assert_eq!(reason(driver, Strategy::Naive), Ok(()));
    }
    let port = port::<u8>(Strategy::Mesh);
    let outside = port.attach().expect_err("there is no runtime").to_string();
    assert_eq!(outside, "a port cannot be attached outside a runtime: call it inside block_on");
    runtime(Driver::Poll).block_on(async {
        port.attach().expect("for the first time");
        assert!(matches!(port.attach(), Err(StartError::Unable { .. })));
    });
}

#[test]
fn nothing_is_pushed_to_oneself_to_nobody_or_by_an_owner() {
    let own = port(Strategy::Mesh);
    assert_eq!([own.push(0, Priority::Request, 1), own.push(2, Priority::Request, 2)], [Err(1), Err(2)]);
    assert_eq!(port(Strategy::Owner).push(1, Priority::Request, 3), Err(3));
    assert_eq!((own.worker(), own.workers(), own.strategy()), (0, 2, Strategy::Mesh));
    assert_eq!(own.counters().stats().pushed, 0);
}

#[test]
fn an_attached_port_is_used_on_its_thread_alone() {
    let port = port::<u8>(Strategy::Mesh);
    let runtime = runtime(Driver::Poll);
    runtime.block_on(async { port.attach().expect("inside a runtime") });
    let used = std::thread::spawn(move || port.push(1, Priority::Request, 1)).join();
    assert!(used.is_err(), "it panics");
}

#[test]
fn the_stated_overflow_is_reached_and_not_passed_in_each_priority() {
    for strategy in [Strategy::Naive, Strategy::Edge, Strategy::Armed, Strategy::Mesh, Strategy::MsgRing] {
        let ports = group(2, &options(strategy));
        let port = &ports[0];
        for priority in Priority::BOTH {
            let room = (0..).take_while(|number| port.push(1, priority, *number).is_ok()).count();
            // All producers share a locked queue; here there is only one.
            let slots = if matches!(strategy, Strategy::Naive | Strategy::Edge) { 8 } else { 4 };
            assert_eq!(room, slots + 3, "{strategy}");
        }
        assert!(port.is_congested(1));
        let stats = port.counters().stats();
        assert_eq!(
            (stats.overflowed, stats.overflow_depth_max, stats.depth),
            (6, 3, stats.pushed),
            "{strategy}"
        );
        assert_eq!(stats.strategy, strategy.name());
    }
}

#[test]
fn messages_that_nobody_takes_are_dropped_once() {
    for strategy in Strategy::ALL {
        let life = Arc::new(());
        let ports = group(2, &options(strategy));
        for number in 0..9 {
            let priority = if number % 2 == 0 { Priority::Response } else { Priority::Request };
            drop(ports[0].push(1, priority, Arc::clone(&life)));
        }
        drop(ports[1].take());
        drop(ports);
        assert_eq!(Arc::strong_count(&life), 1, "{strategy}");
    }
}

#[test]
fn what_was_pushed_before_anybody_was_attached_is_found() {
    for strategy in [Strategy::Naive, Strategy::Edge, Strategy::Armed, Strategy::Mesh, Strategy::MeshSpin] {
        let mut ports = group(2, &options(strategy));
        let (other, own) = (ports.pop().expect("two"), ports.pop().expect("two"));
        own.push(1, Priority::Request, 7).expect("there is room");
        own.flush();
        let taken = runtime(Driver::Poll).block_on(async {
            other.attach().expect("inside a runtime");
            other.ready().await;
            other.take()
        });
        assert_eq!(taken, Some((0, 7)), "{strategy}");
        assert_eq!(own.counters().stats().depth, 0, "{strategy}");
    }
}

/// The detector works: a message that is published and not announced is counted, and is still received.
#[test]
fn a_wake_that_was_lost_is_found_within_a_second_and_counted() {
    let mut ports = group(2, &options(Strategy::Mesh));
    let (other, own) = (ports.pop().expect("two"), ports.pop().expect("two"));
    let (tell, told) = mpsc::channel();
    let consumer = std::thread::spawn(move || {
        let runtime = runtime(Driver::Poll);
        tell.send(runtime.counters()).expect("it is waited for");
        runtime.block_on(async {
            other.attach().expect("inside a runtime");
            let found = time::timeout(Duration::from_secs(20), other.ready()).await;
            (found, other.take(), other.counters().stats().wakes_recovered)
        })
    });
    let counters = told.recv().expect("it starts");
    asleep(&counters, 0);
    {
        let mut state = own.state();
        assert_eq!(state.queues.put(1, Priority::Request, 7), Ok(false));
        state.queues.publish(1);
    }
    assert_eq!(consumer.join().expect("it is woken"), (Ok(()), Some((0, 7)), 1));
}

/// The strategies that hand work over.
const HANDING_OVER: [Strategy; 6] =
    [Strategy::Naive, Strategy::Edge, Strategy::Armed, Strategy::Mesh, Strategy::MeshSpin, Strategy::MsgRing];

/// A runtime for a strategy; `None` if the kernel has no io_uring.
fn runtime_for(strategy: Strategy) -> Option<Runtime> {
    let driver = if strategy == Strategy::MsgRing { Driver::Uring } else { Driver::Poll };
    Runtime::new(&Config::for_test(driver)).ok()
}

/// Waits until the runtime with these counters sleeps; `waits` is how often it had slept before.
fn asleep(counters: &Counters, waits: u64) {
    while counters.snapshot().waits == waits {
        std::thread::yield_now();
    }
}

#[test]
fn who_waits_for_room_towards_a_worker_that_ends_is_told_and_woken() {
    for strategy in HANDING_OVER {
        for with_port in [false, true] {
            let Some(runtime) = runtime_for(strategy) else { continue };
            let (life, counters) = (Arc::new(()), runtime.counters());
            let mut ports = group(2, &options(strategy));
            let (other, own) = (ports.pop().expect("two"), ports.pop().expect("two"));
            let ((attach, attached), watched) = (mpsc::channel(), Arc::clone(&counters));
            let ending = std::thread::spawn(move || {
                let runtime = runtime_for(strategy).expect("as the other one");
                runtime.block_on(async { other.attach().expect("inside a runtime") });
                attach.send(()).expect("it is waited for");
                asleep(&watched, 0);
                // Either one ends the worker; the other is dropped later.
                if with_port { drop((other, runtime)) } else { drop((runtime, other)) }
            });
            attached.recv().expect("it attaches");
            let told = runtime.block_on(async {
                own.attach().expect("inside a runtime");
                while own.push(1, Priority::Request, Arc::clone(&life)).is_ok() {}
                let told = time::timeout(Duration::from_secs(20), own.room(1)).await;
                assert!(!own.is_congested(1) && own.has_ended(1), "{strategy}");
                assert!(own.push(1, Priority::Response, Arc::clone(&life)).is_err(), "{strategy}");
                assert_eq!(own.room(1).await, Err(WorkerEnded(1)), "at once");
                told
            });
            assert_eq!(told, Ok(Err(WorkerEnded(1))), "{strategy}");
            assert!(counters.snapshot().completions > 0, "{strategy}: it slept until it looked by itself");
            ending.join().expect("it ends");
            drop((own, runtime));
            assert_eq!(Arc::strong_count(&life), 1, "{strategy}");
        }
    }
}

#[test]
fn what_waits_for_a_worker_that_has_ended_is_dropped_when_nobody_waits_for_room_too() {
    let (life, mut ports) = (Arc::new(()), group(3, &options(Strategy::Mesh)));
    let (other, second, first) = (ports.pop(), ports.pop().expect("three"), ports.pop().expect("three"));
    runtime(Driver::Poll).block_on(async {
        first.attach().expect("inside a runtime");
        while first.push(2, Priority::Request, Arc::clone(&life)).is_ok() {}
        drop(other);
        time::yield_now().await;
        // Messages in a ring of four stay there until its ends are dropped.
        assert_eq!(Arc::strong_count(&life), 1 + 4);
        assert!(!first.has_ended(1) && first.push(1, Priority::Request, Arc::clone(&life)).is_ok());
        drop(second);
        assert!(first.has_ended(1));
    });
    drop(first);
    assert_eq!(Arc::strong_count(&life), 1);
}

#[test]
fn the_ring_of_a_worker_that_has_ended_is_closed_while_its_group_lives() {
    let Some(runtime) = runtime_for(Strategy::MsgRing) else { return };
    let mut ports = group::<u8>(2, &options(Strategy::MsgRing));
    let (other, own) = (ports.pop().expect("two"), ports.pop().expect("two"));
    runtime.block_on(async { own.attach().expect("inside a runtime") });
    let ending = std::thread::spawn(move || {
        let runtime = runtime_for(Strategy::MsgRing).expect("as the other one");
        runtime.block_on(async { other.attach().expect("inside a runtime") });
        Arc::downgrade(&other.message_ring_of(1).expect("it takes messages"))
    });
    let ring = ending.join().expect("it ends");
    assert!(ring.upgrade().is_none(), "no descriptor keeps the ring");
    assert!(own.message_ring_of(0).is_some() && own.message_ring_of(1).is_none());
}

/// The runtime is left between the push and the next submission: the turn before had more to submit than its queue
/// holds. The sleeper must still be woken, rather than sleep until its own periodic check.
#[test]
fn a_message_to_a_sleeping_ring_is_not_left_behind_by_a_runtime_that_is_left() {
    let mut config = Config::for_test(Driver::Uring);
    config.uring.entries = 2;
    let Ok(runtime) = Runtime::new(&config) else { return };
    let mut ports = group(2, &options(Strategy::MsgRing));
    let (other, own) = (ports.pop().expect("two"), ports.pop().expect("two"));
    let (tell, told) = mpsc::channel();
    let consumer = std::thread::spawn(move || {
        let runtime = runtime_for(Strategy::MsgRing).expect("as the other one");
        tell.send(runtime.counters()).expect("it is waited for");
        runtime.block_on(async {
            other.attach().expect("inside a runtime");
            let found = time::timeout(Duration::from_secs(20), other.ready()).await;
            (found, other.take(), runtime.counters().snapshot().completions)
        })
    });
    let counters = told.recv().expect("it starts");
    asleep(&counters, 0);
    let peers: Vec<_> = runtime.block_on(async {
        own.attach().expect("inside a runtime");
        let pairs = (0..8).map(|_| std::os::unix::net::UnixStream::pair().expect("a socket pair"));
        let receiving = pairs.map(|(ours, theirs)| {
            let stream = crate::net::Stream::from_descriptor(ours.into()).expect("there is room");
            spawn(async move { drop(stream.recv().await) });
            theirs
        });
        let peers = receiving.collect();
        own.push(1, Priority::Request, 7).expect("there is room");
        time::yield_now().await;
        peers
    });
    let (found, taken, completions) = consumer.join().expect("it ends");
    assert_eq!((found, taken), (Ok(()), Some((0, 7))));
    assert!(completions > 0, "it slept until it looked by itself");
    drop((own, peers));
}

#[test]
fn who_waits_for_responses_is_not_woken_by_requests_and_is_by_a_response() {
    for strategy in [Strategy::Armed, Strategy::Mesh, Strategy::MeshSpin, Strategy::MsgRing] {
        let mut ports = group(2, &options(strategy));
        let (other, own) = (ports.pop().expect("two"), ports.pop().expect("two"));
        // Before the other one is attached: it finds this message itself, and no wake is on its way.
        own.push(1, Priority::Request, 1).expect("there is room");
        own.flush();
        let (tell, told) = mpsc::channel();
        let consumer = std::thread::spawn(move || {
            let runtime = runtime_for(strategy)?;
            tell.send(runtime.counters()).expect("it is waited for");
            runtime.block_on(async {
                other.attach().expect("inside a runtime");
                other.ready().await;
                let found = time::timeout(Duration::from_secs(20), other.ready_response()).await;
                let stats = runtime.counters().snapshot();
                Some((found, other.take_response(), other.take_response(), other.take(), stats))
            })
        });
        let Ok(counters) = told.recv() else { continue };
        asleep(&counters, 0);
        own.push(1, Priority::Response, 2).expect("there is room");
        own.flush();
        let (found, response, none, request, stats) =
            consumer.join().expect("it ends").expect("it has a runtime");
        assert_eq!((found, response, none), (Ok(()), Some((0, 2)), None), "{strategy}");
        assert_eq!(request, Some((0, 1)), "{strategy}: left standing meanwhile");
        assert!(stats.completions > 0, "{strategy}: it slept until it looked by itself");
        assert_eq!(stats.timers_fired, 0, "{strategy}: only the time limit has woken the task");
    }
}

#[test]
fn each_kind_of_waiting_has_its_own_place_and_its_own_end() {
    for strategy in [Strategy::Naive, Strategy::Edge, Strategy::Armed, Strategy::Mesh, Strategy::MeshSpin] {
        let mut ports = group(2, &options(strategy));
        let (other, own) = (ports.pop().expect("two"), ports.pop().expect("two"));
        runtime(Driver::Sim).block_on(async {
            own.attach().expect("inside a runtime");
            other.attach().expect("twice too");
            let other = std::rc::Rc::new(other);
            let (first, second) = (std::rc::Rc::clone(&other), std::rc::Rc::clone(&other));
            let anything = spawn(async move { first.ready().await });
            let response = spawn(async move { second.ready_response().await });
            own.push(1, Priority::Request, 1).expect("there is room");
            time::sleep(Duration::from_millis(1)).await;
            assert!(anything.is_finished() && !response.is_finished(), "{strategy}");
            own.push(1, Priority::Response, 2).expect("there is room");
            time::sleep(Duration::from_millis(1)).await;
            assert!(response.is_finished(), "{strategy}");
            assert_eq!([other.take(), other.take(), other.take()], [Some((0, 2)), Some((0, 1)), None]);
            let gone = time::timeout(Duration::from_millis(1), other.ready_response()).await;
            assert!(gone.is_err() && other.state().ready.iter().all(Option::is_none), "{strategy}");
        });
    }
}

#[test]
fn in_one_runtime_too_responses_are_taken_before_requests() {
    for strategy in [Strategy::Naive, Strategy::Edge, Strategy::Armed, Strategy::Mesh, Strategy::MeshSpin] {
        for driver in [Driver::Sim, Driver::Poll] {
            let mut ports = group(2, &options(strategy));
            let (other, own) = (ports.pop().expect("two"), ports.pop().expect("two"));
            let taken = runtime(driver).block_on(async {
                own.attach().expect("inside a runtime");
                other.attach().expect("twice too");
                own.push(1, Priority::Request, 1).expect("there is room");
                own.push(1, Priority::Response, 2).expect("there is room");
                own.push(1, Priority::Request, 3).expect("there is room");
                own.push(1, Priority::Response, 4).expect("there is room");
                other.ready().await;
                let mut taken = vec![other.take_response()];
                taken.extend((0..4).map(|_| other.take()));
                taken
            });
            let expected = [Some((0, 2)), Some((0, 4)), Some((0, 1)), Some((0, 3)), None];
            assert_eq!(taken, expected, "{strategy} on {driver}");
            let stats = other.counters().stats();
            assert_eq!((stats.drains, stats.wakes_recovered), (1, 0), "{strategy} on {driver}");
        }
    }
}
