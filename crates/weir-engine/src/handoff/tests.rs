//! The port alone: what is refused, what is counted, and that a lost wake would be seen.

use std::{sync::mpsc, time::Duration};

use super::*;
use crate::{Config, Driver, Runtime, StartError, time};

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
    Runtime::new(&Config::with_driver(driver)).expect("it runs everywhere")
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
    assert!(matches!(port.attach(), Err(StartError::Nothing(_))), "outside a runtime");
    runtime(Driver::Poll).block_on(async {
        port.attach().expect("for the first time");
        assert!(matches!(port.attach(), Err(StartError::Unable { .. })));
    });
}

#[test]
fn nothing_is_pushed_to_oneself_to_nobody_or_by_an_owner() {
    let own = port(Strategy::Mesh);
    assert_eq!([own.push(0, Lane::Request, 1), own.push(2, Lane::Request, 2)], [Err(1), Err(2)]);
    assert_eq!(port(Strategy::Owner).push(1, Lane::Request, 3), Err(3));
    assert_eq!((own.worker(), own.workers(), own.strategy()), (0, 2, Strategy::Mesh));
    assert_eq!(own.counters().stats().pushed, 0);
}

#[test]
fn an_attached_port_is_used_on_its_thread_alone() {
    let port = port::<u8>(Strategy::Mesh);
    let runtime = runtime(Driver::Poll);
    runtime.block_on(async { port.attach().expect("inside a runtime") });
    let used = std::thread::spawn(move || port.push(1, Lane::Request, 1)).join();
    assert!(used.is_err(), "it panics");
}

#[test]
fn the_stated_overflow_is_reached_and_not_passed_in_each_lane() {
    for strategy in [Strategy::Naive, Strategy::Edge, Strategy::Armed, Strategy::Mesh, Strategy::MsgRing] {
        let port = port(strategy);
        for lane in Lane::BOTH {
            let room = (0..).take_while(|number| port.push(1, lane, *number).is_ok()).count();
            // A locked queue is shared by its producers, of whom there is one.
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
        let life = std::sync::Arc::new(());
        let ports = group(2, &options(strategy));
        for number in 0..9 {
            let lane = if number % 2 == 0 { Lane::Response } else { Lane::Request };
            drop(ports[0].push(1, lane, std::sync::Arc::clone(&life)));
        }
        drop(ports[1].take());
        drop(ports);
        assert_eq!(std::sync::Arc::strong_count(&life), 1, "{strategy}");
    }
}

#[test]
fn what_was_pushed_before_anybody_was_attached_is_found() {
    for strategy in [Strategy::Naive, Strategy::Edge, Strategy::Armed, Strategy::Mesh, Strategy::MeshSpin] {
        let mut ports = group(2, &options(strategy));
        let (other, own) = (ports.pop().expect("two"), ports.pop().expect("two"));
        own.push(1, Lane::Request, 7).expect("there is room");
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

/// The detector is not blind: a message that is published and not announced counts, and is found all the same.
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
    while counters.snapshot().waits == 0 {
        std::thread::yield_now();
    }
    {
        let mut state = own.state();
        assert_eq!(state.ends.put(1, Lane::Request, 7), Ok(false));
        state.ends.publish(1);
    }
    assert_eq!(consumer.join().expect("it is woken"), (Ok(()), Some((0, 7)), 1));
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
                own.push(1, Lane::Request, 1).expect("there is room");
                own.push(1, Lane::Response, 2).expect("there is room");
                own.push(1, Lane::Request, 3).expect("there is room");
                own.push(1, Lane::Response, 4).expect("there is room");
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
