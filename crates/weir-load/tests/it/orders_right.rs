//! A correct exchange passes every kind of load.

use std::{sync::atomic::AtomicBool, time::Duration};

use weir_engine::{Config, Driver};
use weir_load::{Arrivals, LoadSpec, OrderMix};
use weir_record::failure::FailureCounts;

use crate::{
    orders_host::{Habits, Tamper},
    orders_servers::{exchange, lock, report, spec, with},
    servers::assert_stall_is_told,
};

const EVERYTHING: OrderMix = OrderMix { enter: 3, replace: 1, cancel: 1 };

#[test]
fn every_order_of_a_counted_run_is_answered_on_every_driver() {
    for driver in [Driver::Uring, Driver::Epoll, Driver::Poll, Driver::Select] {
        let (address, host) = exchange(Habits::default());
        let spec = LoadSpec { engine: Config::with_driver(driver), depth: 3, ..spec(address, 4, 50) };
        if let Err(error) = weir_engine::Runtime::new(&spec.engine) {
            assert_eq!(driver, Driver::Uring, "{error}");
            continue;
        }
        let (report, orders) = report(&spec);
        assert_eq!((report.messages, report.failures), (200, FailureCounts::default()));
        assert_eq!((orders.sessions, orders.entered, orders.inversions), (4, 200, 0));
        assert_eq!(orders.received["A"], 200);
        assert_eq!(report.bytes_verified, 200 * 64);
        assert_eq!((orders.in_flight, orders.in_flight_scope.as_str()), (3, "session"));
        assert!(orders.shares.is_conserved() && orders.shares.live == orders.shares.entered);
        // Sequenced: the answers to four account queries, and to every order.
        assert_eq!(orders.sequenced_checked, 204);
        for account in ["C00001", "C00002", "C00003", "C00004"] {
            assert_eq!(lock(&host).account(account).last, 50);
        }
    }
}

#[test]
fn both_ways_are_measured_with_a_peer_on_this_clock_and_absent_with_another() {
    let (address, _) = exchange(Habits::default());
    let (report_here, orders) = report(&spec(address, 2, 100));
    let (out, back) = (orders.out.expect("a wall clock"), orders.back.expect("a wall clock"));
    assert_eq!((out.count, back.count), (200, 200));
    // Two clocks are read at slightly different moments at each end; the sum is the round trip.
    assert!(out.ns_mean + back.ns_mean <= report_here.service.ns_mean * 1.5 + 50_000.0);
    let (address, _) = exchange(Habits { clock: || 42, ..Habits::default() });
    let (_, orders) = report(&spec(address, 2, 100));
    assert_eq!((orders.out, orders.back), (None, None));
}

#[test]
fn cancels_and_replaces_among_executions_keep_the_balance_of_shares() {
    for executes in [false, true] {
        let (address, host) = exchange(Habits { executes, ..Habits::default() });
        let spec = LoadSpec { depth: 4, workers: 2, ..spec(address, 3, 300) };
        let (report, orders) = report(&with(spec, |orders| orders.mix = EVERYTHING));
        assert_eq!((report.messages, report.failures), (900, FailureCounts::default()));
        assert!(orders.replaces > 90 && orders.cancels > 90, "{orders:?}");
        assert_eq!(orders.received.contains_key("E"), executes);
        assert!(orders.shares.is_conserved(), "{:?}", orders.shares);
        let host = lock(&host);
        let accounts = ["C00001", "C00002", "C00003"].map(|name| host.account(name));
        let live = accounts.iter().flat_map(|account| account.live.values());
        assert_eq!(orders.shares.live, live.map(|order| u64::from(order.left)).sum::<u64>());
    }
}

#[test]
fn one_order_in_flight_over_all_sessions_goes_round() {
    let (address, host) = exchange(Habits::default());
    for total in [1, 3, 7] {
        let spec = LoadSpec { depth: total, ..spec(address, 5, 40) };
        let (report, orders) = report(&with(spec, |orders| orders.in_flight_total = Some(total)));
        assert_eq!((report.messages, report.failures), (200, FailureCounts::default()));
        assert_eq!((orders.in_flight, orders.in_flight_scope.as_str()), (total, "total"));
        let law = report.littles_law;
        assert!(law.in_flight_mean <= f64::from(total) + 0.01, "{law:?}");
    }
    // In turn: with one in flight no session is ever two orders ahead of another.
    let spec = LoadSpec { depth: 1, messages: Some(42), ..spec(address, 5, 0) };
    let round = with(spec, |orders| (orders.in_flight_total, orders.orders_each) = (Some(1), None));
    report(&round);
    let last: Vec<u32> =
        ["C00001", "C00002", "C00003", "C00004", "C00005"].map(|name| lock(&host).account(name).last).into();
    assert_eq!(last.iter().map(|last| last - 120).collect::<Vec<_>>(), [9, 9, 8, 8, 8]);
}

#[test]
fn what_is_in_flight_over_the_whole_run_is_divided_between_workers() {
    let (address, _) = exchange(Habits::default());
    let spec = LoadSpec { depth: 5, workers: 2, ..spec(address, 4, 60) };
    let (report, _) = report(&with(spec, |orders| orders.in_flight_total = Some(5)));
    assert_eq!((report.messages, report.failures), (240, FailureCounts::default()));
    assert!(report.littles_law.in_flight_mean <= 5.01);
}

#[test]
fn dropped_connections_lose_and_double_nothing() {
    for (depth, total, workers) in [(1, None, 1), (4, None, 2), (3, Some(3), 1)] {
        let (address, host) = exchange(Habits { executes: true, ..Habits::default() });
        let spec = LoadSpec { depth, workers, ..spec(address, 3, 200) };
        let spec = with(spec, |orders| {
            (orders.reconnect_every, orders.in_flight_total, orders.mix) = (Some(20), total, EVERYTHING);
        });
        let (report, orders) = report(&spec);
        assert_eq!((report.messages, report.failures), (600, FailureCounts::default()));
        assert!((20..=30).contains(&orders.reconnects), "{}", orders.reconnects);
        assert_eq!(orders.inversions, 0);
        assert!(orders.shares.is_conserved(), "{:?}", orders.shares);
        let host = lock(&host);
        let sequenced = ["C00001", "C00002", "C00003"].map(|name| host.account(name).log.len() as u64);
        // Messages after the last answer may not be received any more.
        assert!(orders.sequenced_checked.abs_diff(sequenced.iter().sum()) <= 6);
    }
}

#[test]
fn a_second_run_goes_on_with_the_numbers_of_the_first_and_can_hear_it_again() {
    let (address, host) = exchange(Habits::default());
    for last in [50, 100] {
        let (report, _) = report(&spec(address, 2, 50));
        assert_eq!((report.messages, report.failures.errors()), (100, 0));
        assert_eq!(lock(&host).account("C00002").last, last);
    }
    let (report, orders) = report(&with(spec(address, 2, 50), |orders| orders.resume = true));
    assert_eq!((report.messages, report.failures.errors()), (100, 0));
    // All messages to both accounts: three queries and three times fifty orders each.
    assert_eq!(orders.sequenced_checked, 2 * (3 + 150));
}

#[test]
fn an_open_loop_starts_orders_when_they_are_due() {
    let (address, _) = exchange(Habits::default());
    let arrivals = Arrivals::Open { rate_per_second: 2000.0, poisson: false, spin: Duration::ZERO };
    let spec = LoadSpec { arrivals, depth: 64, messages: None, ..spec(address, 4, 0) };
    let spec = LoadSpec { duration: Duration::from_millis(500), ..spec };
    let (report, orders) = report(&with(spec, |orders| orders.orders_each = None));
    assert_eq!(report.failures.errors(), 0, "{:?}", report.failures);
    let due = 2 * report.window_ns / 1_000_000;
    // Orders in flight at an edge of the window are counted where they end, and a busy machine holds them for longer.
    let slack = 100 + 2 * report.response.ns_max / 1_000_000;
    let started = report.messages + report.missed_starts;
    assert!(started.abs_diff(due) <= slack, "{started} of {due}, {slack}");
    assert_eq!(report.mode, "open");
    assert!(report.response.ns_mean >= report.service.ns_mean);
    assert!(orders.shares.is_conserved());
}

#[test]
fn a_stall_that_lasts_to_the_end_is_in_response_times_and_errors() {
    let mut answered = 0;
    let wire = Box::new(move |_, bytes: &mut Vec<u8>| {
        answered += 1;
        if answered > 20 {
            bytes.clear();
        }
    });
    let (address, _) = exchange(Habits { tamper: Tamper { wire, ..Tamper::default() }, ..Habits::default() });
    let arrivals = Arrivals::Open { rate_per_second: 1000.0, poisson: false, spin: Duration::ZERO };
    let response_timeout = Duration::from_secs(2);
    let spec = LoadSpec { arrivals, response_timeout, messages: None, ..spec(address, 4, 0) };
    let spec = LoadSpec { duration: Duration::from_secs(1), ..spec };
    let (report, _) = report(&with(spec, |orders| orders.orders_each = None));
    assert_stall_is_told(&report, report.messages, 4);
}

#[test]
fn silent_sessions_send_heartbeats() {
    let (sender, heard) = std::sync::mpsc::channel();
    let address = crate::servers::serve(move |_, mut stream| {
        use std::io::{Read, Write};
        let mut connection = crate::orders_host::Connection::default();
        let mut host = crate::orders_host::Host::default();
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut bytes) {
            if &bytes[..count] == b"\x00\x01R" {
                let _ = sender.send(());
            }
            let mut out = Vec::new();
            host.receive(&mut connection, &bytes[..count], &mut out);
            let _ = stream.write_all(&out);
        }
    });
    let arrivals = Arrivals::Open { rate_per_second: 0.001, poisson: false, spin: Duration::ZERO };
    let spec = LoadSpec { arrivals, messages: None, ..spec(address, 1, 0) };
    let spec = LoadSpec { duration: Duration::from_secs(30), ..spec };
    let spec = with(spec, |orders| orders.orders_each = None);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || {
            (0..2).for_each(|_| heard.recv_timeout(Duration::from_secs(20)).expect("a heartbeat"));
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let report = weir_load::run(&spec, &mut |_| {}, stop).expect("a report");
        assert_eq!(report.failures.errors(), 0);
    });
}
