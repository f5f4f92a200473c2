//! Servers that behave correctly.

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::{linux::net::SocketAddrExt, unix::net::SocketAddr as UnixAddress, unix::net::UnixListener},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use weir_engine::{Config, Driver, probe};
use weir_load::{Arrivals, EchoSpec, LoadError, LoadSpec};
use weir_record::{
    engine::{EngineStats, ServerStats},
    failure::FailureCounts,
    load::LoadReport,
};

use crate::servers::{assert_stall_is_told, echo, echo_stream, report, run, serve, spec};

fn open(rate_per_second: f64, poisson: bool) -> Arrivals {
    Arrivals::Open { rate_per_second, poisson, spin: Duration::from_micros(50) }
}

fn assert_all_right(report: &LoadReport, messages: u64) {
    assert_eq!(report.failures, FailureCounts::default());
    assert_eq!((report.messages, report.messages_started), (messages, messages));
    assert!(report.service.ns_min > 0 && report.service.ns_max < report.window_ns);
}

#[test]
fn every_driver_that_runs_here_carries_a_counted_load() {
    let address = echo();
    let drivers = probe(&Config::default()).into_iter().filter(|found| found.is_available());
    let drivers: Vec<Driver> = drivers
        .map(|found| found.driver)
        .filter(|driver| !matches!(driver, Driver::Blocking | Driver::Sim))
        .collect();
    assert!(!drivers.is_empty());
    for driver in drivers {
        let spec =
            LoadSpec { connections: 3, depth: 4, engine: Config::with_driver(driver), ..spec(address) };
        let report = report(&spec);
        assert_all_right(&report, 100);
        assert_eq!(report.driver, driver.name());
    }
}

#[test]
fn messages_of_every_size_come_back_right_in_number_and_bytes() {
    let address = echo();
    for message_bytes in [1, 7, 8, 23, 24, 25, 1000, 100_000] {
        let spec = LoadSpec {
            protocol: EchoSpec { message_bytes, connection_per_message: false }.into(),
            connections: 3,
            depth: 5,
            ..spec(address)
        };
        assert_all_right(&report(&spec), 100);
    }
}

#[test]
fn a_connection_for_each_message_is_ended_from_here_after_its_answer() {
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    let address = serve(move |_, stream| {
        // Returns when the client has ended its side.
        echo_stream(stream);
        counted.fetch_add(1, Ordering::SeqCst);
    });
    let protocol = EchoSpec { message_bytes: 64, connection_per_message: true };
    let churn = LoadSpec { connections: 4, protocol: protocol.into(), ..spec(address) };
    assert_all_right(&report(&churn), 100);
    // The server closes before the client counts a connection as gone; its thread may count it a moment later.
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while seen.load(Ordering::SeqCst) < 100 && std::time::Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert_eq!(seen.load(Ordering::SeqCst), 100);
    let piped = LoadSpec { depth: 2, ..churn };
    assert!(matches!(run(&piped), Err(LoadError::Invalid { field: "depth", .. })));
}

#[test]
fn a_pipeline_larger_than_all_socket_buffers_does_not_lock_up() {
    let address = echo();
    let spec = LoadSpec {
        protocol: EchoSpec { message_bytes: 4 << 20, connection_per_message: false }.into(),
        depth: 16,
        messages: Some(40),
        ..spec(address)
    };
    assert_all_right(&report(&spec), 40);
}

#[test]
fn replies_in_single_bytes_are_put_together() {
    let address = serve(|_, mut stream| {
        let mut byte = [0];
        while stream.read_exact(&mut byte).and_then(|()| stream.write_all(&byte)).is_ok() {}
    });
    assert_all_right(&report(&LoadSpec { depth: 3, messages: Some(50), ..spec(address) }), 50);
}

#[test]
fn two_workers_share_a_count_and_their_histograms_add_up() {
    let report = report(&LoadSpec { workers: 2, connections: 5, messages: Some(1001), ..spec(echo()) });
    assert_all_right(&report, 1001);
    assert_eq!(report.workers, 2);
    assert!(report.service.quantile_ns(0.99).is_some() && report.service.quantile_ns(0.999).is_none());
    assert!(report.response == report.service && report.send_lag.count == 0);
}

#[test]
fn a_timed_window_obeys_littles_law_and_fills_its_seconds() {
    let spec = LoadSpec {
        connections: 8,
        depth: 2,
        messages: None,
        duration: Duration::from_millis(1100),
        warmup_max: Duration::from_millis(150),
        ..spec(echo())
    };
    let mut glances = Vec::new();
    let report = weir_load::run(&spec, &mut |glance| glances.push(glance), &AtomicBool::new(false));
    let report = report.expect("a report");
    assert_eq!(report.failures.errors(), 0);
    assert!(report.window_ns >= 1_100_000_000 && report.warmup_ns >= 150_000_000);
    assert!(!report.warmup_steady, "150 ms cannot show that a load is steady");
    assert_eq!(report.seconds.len(), 1);
    let second = report.seconds[0];
    assert!(second.messages > 0 && second.messages <= report.messages && second.p50_ns <= second.p99_ns);
    let law = report.littles_law;
    assert!((law.in_flight_mean - 16.0).abs() < 0.5, "{law:?}");
    // A message across an edge of the window counts on one side with the part that lies inside.
    let edges = 2.0 * report.service.ns_max as f64 / report.window_ns as f64;
    assert!((law.throughput_times_latency / law.in_flight_mean - 1.0).abs() < 0.05 + edges, "{law:?}");
    assert!(report.generator_cpu_ns > 0 && report.generator_busy_max > 0.0);
    assert!(!glances.is_empty() && glances.iter().all(|glance| glance.errors == 0));
}

#[test]
fn a_connection_for_each_message_obeys_littles_law() {
    let spec = LoadSpec {
        connections: 8,
        messages: None,
        duration: Duration::from_millis(1500),
        warmup_max: Duration::from_millis(50),
        protocol: EchoSpec { message_bytes: 64, connection_per_message: true }.into(),
        ..spec(echo())
    };
    let report = report(&spec);
    assert_eq!(report.failures.errors(), 0, "{:?}", report.failures);
    let law = report.littles_law;
    // Users wait for the close of a connection with nothing in flight.
    assert!(law.in_flight_mean > 0.0 && law.in_flight_mean <= 8.01, "{law:?}");
    let edges = 2.0 * report.service.ns_max as f64 / report.window_ns as f64;
    assert!((law.throughput_times_latency / law.in_flight_mean - 1.0).abs() < 0.05 + edges, "{law:?}");
}

#[test]
fn a_steady_load_ends_the_warm_up_before_its_cap() {
    let spec = LoadSpec {
        messages: None,
        duration: Duration::from_millis(50),
        warmup_max: Duration::from_secs(60),
        // A rate that any machine carries is steady, whatever else the machine runs.
        arrivals: open(500.0, false),
        response_timeout: Duration::from_secs(30),
        ..spec(echo())
    };
    let stop = AtomicBool::new(false);
    let mut glances = 0;
    let outcome = weir_load::run(
        &spec,
        &mut |_| {
            glances += 1;
            // On a machine too busy for a steady half second the test proves nothing about the rule.
            stop.store(glances > 20, Ordering::Relaxed);
        },
        &stop,
    );
    match outcome {
        Ok(report) => assert!(report.warmup_steady && report.warmup_ns >= 500_000_000),
        Err(error) => assert!(matches!(error, LoadError::Interrupted), "{error}"),
    }
}

#[test]
fn idle_connections_are_opened_and_stay_silent() {
    let (opened, spoken) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (seen_opened, seen_spoken) = (Arc::clone(&opened), Arc::clone(&spoken));
    let address = serve(move |_, stream| {
        seen_opened.fetch_add(1, Ordering::SeqCst);
        if stream.peek(&mut [0]).is_ok_and(|count| count > 0) {
            seen_spoken.fetch_add(1, Ordering::SeqCst);
        }
        echo_stream(stream);
    });
    let spec = LoadSpec { connections: 3, idle_connections: 70, workers: 2, ..spec(address) };
    assert_all_right(&report(&spec), 100);
    assert!(opened.load(Ordering::SeqCst) <= 73);
    assert_eq!(spoken.load(Ordering::SeqCst), 3);
}

#[test]
fn think_time_and_ramp_up_stretch_a_run() {
    let think = Duration::from_millis(10);
    let address = echo();
    let thinking = LoadSpec { arrivals: Arrivals::Closed { think }, messages: Some(6), ..spec(address) };
    let thought = report(&thinking);
    assert_all_right(&thought, 6);
    assert!(thought.window_ns >= 50_000_000, "{}", thought.window_ns);
    let ramp_up = Duration::from_millis(900);
    let ramped = LoadSpec { connections: 3, ramp_up, messages: None, duration: ramp_up, ..spec(address) };
    let ramped = report(&ramped);
    assert_eq!(ramped.failures.errors(), 0);
    // One connection for a third of the window, two for the next, three for the last; opening takes a little.
    let in_flight = ramped.littles_law.in_flight_mean;
    assert!(in_flight > 0.5 && in_flight < 2.3, "{in_flight}");
}

#[test]
fn an_open_loop_keeps_its_schedule_and_times_from_the_intended_start() {
    for poisson in [false, true] {
        let spec = LoadSpec {
            connections: 4,
            messages: Some(3000),
            arrivals: open(3000.0, poisson),
            ..spec(echo())
        };
        let report = report(&spec);
        assert_all_right(&report, 3000);
        assert_eq!((report.mode.as_str(), report.rate_per_second), ("open", Some(3000.0)));
        assert_eq!((report.response.count, report.send_lag.count, report.missed_starts), (3000, 3000, 0));
        assert!(report.response.ns_mean >= report.service.ns_mean);
        // Half of all messages leave within a millisecond of their time, also on a busy machine.
        let lag_ns = report.send_lag.quantile_ns(0.5).expect("3000 samples");
        assert!(lag_ns < 1_000_000, "{lag_ns}");
        // 3000 at 3000 a second need one second; random gaps spread that by 2 %.
        assert!(report.window_ns > 900_000_000, "{}", report.window_ns);
    }
}

/// A server that answers after the client has been silent for `silence`.
fn answers_after_silence(silence: Duration) -> std::net::SocketAddr {
    serve(move |_, mut stream| {
        stream.set_read_timeout(Some(silence)).expect("not zero");
        let (mut bytes, mut held) = ([0; 4096], Vec::new());
        loop {
            match stream.read(&mut bytes) {
                Ok(0) => return,
                Ok(count) => held.extend_from_slice(&bytes[..count]),
                Err(_) if stream.write_all(&std::mem::take(&mut held)).is_ok() => {}
                Err(_) => return,
            }
        }
    })
}

#[test]
fn a_slow_server_cannot_hide_its_queue_from_an_open_loop() {
    let address = answers_after_silence(Duration::from_millis(20));
    let spec = LoadSpec { messages: Some(10), arrivals: open(1000.0, false), ..spec(address) };
    let report = report(&spec);
    assert_all_right(&report, 10);
    // Ten turns of at least 20 ms; the last start was intended at 9 ms.
    assert!(report.response.ns_max > 185_000_000, "{}", report.response.ns_max);
    assert!(report.send_lag.ns_max > 165_000_000, "{}", report.send_lag.ns_max);
    assert!(report.response.ns_mean > 2.0 * report.service.ns_mean);
}

#[test]
fn starts_that_wait_for_the_server_are_missed_and_no_limit_of_the_generator() {
    // Reads everything and answers nothing.
    let address = serve(|_, mut stream| while matches!(stream.read(&mut [0; 4096]), Ok(1..)) {});
    let spec = LoadSpec {
        messages: None,
        duration: Duration::from_millis(300),
        response_timeout: Duration::from_secs(1),
        arrivals: open(1000.0, false),
        ..spec(address)
    };
    let report = report(&spec);
    assert_eq!((report.messages, report.messages_started), (0, 1));
    assert_eq!(report.failures, FailureCounts { response_timeout: 1, ..FailureCounts::default() });
    assert!(report.missed_starts >= 298, "{}", report.missed_starts);
    assert_eq!(report.missed_starts_free, 0);
    assert!(!report.generator_bound);
}

#[test]
fn a_stall_that_lasts_to_the_end_is_in_response_times_and_errors() {
    for connection_per_message in [false, true] {
        let answered = Arc::new(AtomicUsize::new(0));
        let address = serve(move |_, mut stream| {
            let mut bytes = [0; 64];
            while stream.read_exact(&mut bytes).is_ok() {
                if answered.fetch_add(1, Ordering::SeqCst) < 20 && stream.write_all(&bytes).is_err() {
                    return;
                }
            }
        });
        let spec = LoadSpec {
            connections: 4,
            messages: None,
            duration: Duration::from_secs(1),
            response_timeout: Duration::from_secs(2),
            arrivals: open(1000.0, false),
            protocol: EchoSpec { message_bytes: 64, connection_per_message }.into(),
            ..spec(address)
        };
        let report = report(&spec);
        assert_stall_is_told(&report, 20, 4);
    }
}

#[test]
fn an_answer_that_comes_after_the_window_counts_by_its_time() {
    let address = answers_after_silence(Duration::from_millis(200));
    let spec = LoadSpec {
        depth: 1000,
        messages: None,
        duration: Duration::from_millis(300),
        arrivals: open(1000.0, false),
        ..spec(address)
    };
    let report = report(&spec);
    assert_eq!(report.failures, FailureCounts::default());
    assert_eq!(report.response_at_least, report.missed_starts);
    assert_eq!(report.response.count, report.messages_started + report.missed_starts);
    assert!(report.response.ns_max >= 200_000_000, "{}", report.response.ns_max);
}

#[test]
fn stopping_ends_a_window_early_with_a_report_and_a_run_before_its_window_without() {
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    let address = serve(move |_, mut stream| {
        let mut bytes = [0; 64];
        for number in 0.. {
            if stream.read_exact(&mut bytes).and_then(|()| stream.write_all(&bytes)).is_err() {
                return;
            }
            if number == 50 {
                seen.store(true, Ordering::SeqCst);
            }
        }
    });
    let spec = LoadSpec { messages: None, ..spec(address) };
    let report = weir_load::run(&spec, &mut |_| {}, &stop).expect("a report of the shorter window");
    assert!(report.messages >= 50 && report.window_ns < 10_000_000_000);
    assert_eq!(report.failures.errors(), 0);
    let outcome = weir_load::run(&spec, &mut |_| {}, &stop);
    assert!(matches!(outcome, Err(LoadError::Interrupted)), "{outcome:?}");
}

#[test]
fn the_targets_process_and_counters_are_read_at_both_edges() {
    let name = format!("weir-load-test-{}", std::process::id());
    let listener =
        UnixListener::bind_addr(&UnixAddress::from_abstract_name(&name).expect("a name")).expect("free");
    std::thread::spawn(move || {
        let mut asked = 0;
        for stream in listener.incoming() {
            let mut stream = stream.expect("a client");
            let mut lines = BufReader::new(stream.try_clone().expect("a second handle")).lines();
            while let Some(Ok(_)) = lines.next() {
                asked += 1;
                let total =
                    EngineStats { receives: asked * 1000, connections_open: 3, ..EngineStats::default() };
                let stats = ServerStats {
                    driver: "epoll".into(),
                    total,
                    workers: vec![total],
                    ..ServerStats::default()
                };
                writeln!(stream, "{}", serde_json::to_string(&stats).expect("plain data")).expect("a reader");
            }
        }
    });
    for warmup_max in [Duration::ZERO, Duration::from_millis(50)] {
        let spec = LoadSpec {
            observe_pid: Some(std::process::id()),
            observe_stats: Some(format!("@{name}")),
            messages: None,
            duration: Duration::from_millis(200),
            warmup_max,
            ..spec(echo())
        };
        let observed = report(&spec).observed.expect("it was asked for");
        // Reading a bound takes time when other tests run hundreds of threads in this process.
        let window_ns = observed.noise.window_ns;
        assert!(window_ns >= 100_000_000, "{window_ns}");
        assert!(observed.cpu_ns > 0 && observed.threads > 1);
        let engine = observed.engine.expect("the socket answers");
        assert_eq!((engine.receives, engine.connections_open), (1000, 3));
        assert_eq!(observed.connections_by_worker, [3]);
    }
}

#[test]
fn what_cannot_be_observed_is_an_error_before_any_load() {
    let spec = LoadSpec { observe_stats: Some("@weir-load-test-nobody".into()), ..spec(echo()) };
    let error = run(&spec).expect_err("nobody listens there").to_string();
    assert!(error.starts_with("cannot observe socket @weir-load-test-nobody: "), "{error}");
    let spec = LoadSpec { observe_stats: None, observe_pid: Some(u32::MAX >> 1), ..spec };
    let error = run(&spec).expect_err("no such process").to_string();
    assert!(error.starts_with("cannot observe process 2147483647: "), "{error}");
}
