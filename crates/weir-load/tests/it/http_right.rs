//! HTTP servers that behave correctly.

use std::{
    io::{Read, Write},
    net::{Ipv6Addr, TcpListener},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use weir_engine::{Config, Driver, probe};
use weir_load::{Arrivals, ExpectedContent, HttpUrl, LoadSpec};
use weir_record::{failure::FailureCounts, http::StatusCount};

use crate::{
    http_servers::{Reply, ok, page, report, response, right, serve_http, spec, with},
    servers::{assert_stall_is_told, serve},
};

const PAGE: &[u8] = b"<!doctype html><title>a page</title><p>with a little content\n";

fn open(rate_per_second: f64) -> Arrivals {
    Arrivals::Open { rate_per_second, poisson: false, spin: Duration::from_micros(50) }
}

/// A timed window without a warm-up.
fn timed(spec: LoadSpec, duration: Duration) -> LoadSpec {
    LoadSpec { messages: None, duration, ..spec }
}

#[test]
fn every_driver_that_runs_here_carries_a_counted_load() {
    let address = page(PAGE);
    let drivers = probe(&Config::default()).into_iter().filter(|found| found.is_available());
    let drivers: Vec<Driver> = drivers
        .map(|found| found.driver)
        .filter(|driver| !matches!(driver, Driver::Blocking | Driver::Sim))
        .collect();
    assert!(!drivers.is_empty());
    for driver in drivers {
        for (depth, close) in [(1, false), (4, false), (1, true)] {
            let base =
                LoadSpec { connections: 3, depth, engine: Config::with_driver(driver), ..spec(address) };
            let spec = with(base, |http| http.connection_per_request = close);
            let (report, http) = right(&spec, 100);
            assert_eq!((report.driver.as_str(), report.message_bytes), (driver.name(), PAGE.len() as u32));
            assert_eq!((http.responses_compared, http.compared_share), (100, 1.0));
            assert_eq!(http.responses_by_status, [StatusCount { status: 200, count: 100 }]);
            let opened = if close { 100 } else { 3 };
            assert_eq!((http.connections_opened, http.connect.count), (opened, opened), "{driver}");
            let closed = if close { 100 } else { 0 };
            assert_eq!(
                (http.connections_closed_as_said, http.connections_kept_open),
                (closed, 0),
                "{driver}"
            );
        }
    }
}

#[test]
fn contents_of_every_size_are_compared_in_full_when_the_run_is_counted() {
    for bytes in [0, 1, 1000, 70_000, 1 << 20] {
        let content: Arc<Vec<u8>> = Arc::new((0..bytes).map(|place| (place * 31 % 251) as u8).collect());
        let sent = Arc::clone(&content);
        let address = serve_http(move |_, _, _| Reply::stay(ok(&sent)));
        let base = LoadSpec { connections: 2, depth: 3, messages: Some(30), ..spec(address) };
        for expected in [ExpectedContent::AsFirst, ExpectedContent::Bytes(content.to_vec())] {
            let spec = with(base.clone(), |http| http.expect_content = expected);
            let (report, http) = right(&spec, 30);
            assert_eq!((report.message_bytes, http.responses_compared), (bytes as u32, 30));
        }
    }
}

#[test]
fn all_framings_of_a_response_end_where_they_should() {
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nT: u\r\n\r\n";
    let address = serve_http(move |_, _, _| Reply::stay(&chunked[..]));
    let (report, http) = right(&LoadSpec { depth: 3, ..spec(address) }, 100);
    assert_eq!((report.message_bytes, http.connections_opened), (7, 1));

    let until_close = b"HTTP/1.1 200 OK\r\n\r\nuntil the end";
    let address = serve_http(move |_, _, _| Reply::close(&until_close[..]));
    let (report, http) = right(&LoadSpec { messages: Some(10), ..spec(address) }, 10);
    assert_eq!((report.message_bytes, http.connections_closed_as_said), (13, 10));

    let interim = [&b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"[..], &ok(b"after hints")].concat();
    let address = serve_http(move |_, _, _| Reply::stay(interim.clone()));
    let (report, http) = right(&spec(address), 100);
    assert_eq!((report.message_bytes, http.responses_by_status.len()), (11, 1));

    let none = b"HTTP/1.1 204 No Content\r\n\r\n";
    let address = serve_http(move |_, _, _| Reply::stay(&none[..]));
    let spec = with(spec(address), |http| http.expect_status = vec![200, 204]);
    assert_eq!(right(&spec, 100).0.bytes_verified, 0);
}

#[test]
fn a_response_to_head_has_a_length_and_no_content() {
    let address = serve_http(|_, _, request| {
        assert!(request.line.starts_with("HEAD / "), "{}", request.line);
        Reply::stay("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")
    });
    let spec = with(LoadSpec { depth: 2, ..spec(address) }, |http| http.method = "HEAD".into());
    let (report, http) = right(&spec, 100);
    assert_eq!((report.bytes_verified, report.message_bytes, http.responses_compared), (0, 0, 0));
}

#[test]
fn responses_in_single_bytes_are_put_together() {
    let address = serve(|_, mut stream| {
        let mut request = [0; 4096];
        while matches!(stream.read(&mut request), Ok(1..)) {
            for byte in ok(PAGE) {
                if stream.write_all(&[byte]).is_err() {
                    return;
                }
            }
        }
    });
    let (report, http) = right(&LoadSpec { messages: Some(20), ..spec(address) }, 20);
    assert!(http.first_byte.ns_mean < report.service.ns_mean, "the first byte is not the last");
}

#[test]
fn a_head_that_changes_with_every_response_is_read_every_time() {
    let address = serve_http(|_, number, _| {
        let fields = if number % 3 == 0 { format!("X-Number: {number}\r\n") } else { String::new() };
        Reply::stay(response("200 OK", &fields, PAGE))
    });
    let (_, http) = right(&LoadSpec { depth: 5, ..spec(address) }, 100);
    assert_eq!(http.responses_compared, 100);
}

#[test]
fn urls_are_asked_for_in_turn_and_each_has_its_own_content() {
    let address = serve_http(|_, _, request| {
        let path = request.line.split(' ').nth(1).expect("a target").to_owned();
        Reply::stay(ok(format!("this is {path}").as_bytes()))
    });
    let spec = with(LoadSpec { connections: 2, depth: 3, ..spec(address) }, |http| {
        let first = http.urls[0].clone();
        let url = |path: &str| HttpUrl {
            path: path.into(),
            text: format!("{}{path}", first.text),
            ..first.clone()
        };
        http.urls = vec![url("/a"), url("/bb"), url("/ccc")];
    });
    let (report, http) = right(&spec, 100);
    assert_eq!((report.message_bytes, http.responses_compared, http.urls.len()), (0, 100, 3));
}

#[test]
fn a_request_has_its_method_fields_and_content() {
    let content: &[u8] = &[b'x'; 5000];
    let address = serve_http(move |_, _, request| {
        let right = request.line == "POST / HTTP/1.1"
            && request.head.contains("X-Test: yes\r\n")
            && request.content == content;
        Reply::stay(if right { ok(PAGE) } else { response("400 Bad Request", "", b"") })
    });
    let spec = with(LoadSpec { depth: 3, ..spec(address) }, |http| {
        http.method = "POST".into();
        http.headers = vec![("X-Test".into(), b"yes".to_vec())];
        http.content = Some(content.to_vec());
    });
    right(&spec, 100);
}

#[test]
fn a_counted_run_makes_exactly_its_number_over_all_connections() {
    // Fewer than connections, a number that threads cannot share evenly, and more than one for each connection.
    for (requests, workers, depth) in [(3, 2, 1), (36, 1, 1), (37, 2, 3)] {
        let seen = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&seen);
        let address = serve_http(move |_, _, _| {
            count.fetch_add(1, Ordering::SeqCst);
            Reply::stay(ok(PAGE))
        });
        let spec = LoadSpec { connections: 5, workers, depth, messages: Some(requests), ..spec(address) };
        let (report, _) = right(&spec, requests);
        assert_eq!((seen.load(Ordering::SeqCst) as u64, report.workers), (requests, workers));
    }
}

#[test]
fn users_with_a_connection_for_each_request_make_their_number_too() {
    let address = page(PAGE);
    let base = LoadSpec { connections: 4, workers: 2, messages: Some(40), ..spec(address) };
    let (report, http) = right(&with(base, |http| http.connection_per_request = true), 40);
    assert_eq!((http.connections_opened, http.connections_closed_as_said), (40, 40));
    assert!(http.connect.ns_mean < report.service.ns_mean, "connecting is a part of it");
}

#[test]
fn a_server_that_ends_connections_as_it_says_is_right_and_its_requests_are_made_again() {
    for depth in [1, 4] {
        let address = serve_http(|_, number, _| match number {
            2 => Reply::close(response("200 OK", "Connection: close\r\n", PAGE)),
            _ => Reply::stay(ok(PAGE)),
        });
        let (report, http) = right(&LoadSpec { depth, ..spec(address) }, 100);
        assert_eq!((http.connections_opened, http.connections_closed_as_said), (34, 33));
        assert_eq!(http.requests_withdrawn > 0, depth > 1, "{}", http.requests_withdrawn);
        assert!(report.service.ns_max < report.window_ns);
    }
}

#[test]
fn requests_of_a_schedule_that_a_closing_server_left_unanswered_are_made_again_to_the_last() {
    // All four are on their way before the first is answered; the third answer closes the connection.
    let address = serve(|connection, mut stream| {
        let (mut seen, mut piece) = (Vec::new(), [0; 4096]);
        let expected = if connection == 0 { 4 } else { 1 };
        while seen.windows(4).filter(|window| window == b"\r\n\r\n").count() < expected {
            let Ok(count @ 1..) = stream.read(&mut piece) else { return };
            seen.extend_from_slice(&piece[..count]);
        }
        let closing = response("200 OK", "Connection: close\r\n", PAGE);
        let replies = if connection == 0 { [ok(PAGE), ok(PAGE), closing].concat() } else { closing };
        let _ = stream.write_all(&replies);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        while matches!(stream.read(&mut piece), Ok(1..)) {}
    });
    let base = LoadSpec { depth: 4, messages: Some(4), arrivals: open(1000.0), ..spec(address) };
    let (report, http) = right(&base, 4);
    assert_eq!((report.missed_starts, http.requests_withdrawn, http.connections_opened), (0, 1, 2));
}

#[test]
fn with_a_rate_the_number_is_that_of_the_whole_run_and_a_slow_connection_takes_fewer() {
    for close in [false, true] {
        let answered = Arc::new(AtomicUsize::new(0));
        let address = serve_http(move |connection, _, _| {
            // The first connection gets its first answer after all others have theirs.
            while connection == 0 && answered.load(Ordering::SeqCst) < 19 {
                std::thread::yield_now();
            }
            answered.fetch_add(1, Ordering::SeqCst);
            match close {
                true => Reply::close(response("200 OK", "Connection: close\r\n", PAGE)),
                false => Reply::stay(ok(PAGE)),
            }
        });
        let base = LoadSpec { connections: 2, messages: Some(20), arrivals: open(2000.0), ..spec(address) };
        right(&with(base, |http| http.connection_per_request = close), 20);
    }
}

#[test]
fn a_stall_that_lasts_to_the_end_is_in_response_times_and_errors() {
    for close in [false, true] {
        let answered = Arc::new(AtomicUsize::new(0));
        let address =
            serve_http(move |_, _, _| match (answered.fetch_add(1, Ordering::SeqCst) < 20, close) {
                (false, _) => Reply::stay(Vec::new()),
                (true, false) => Reply::stay(ok(PAGE)),
                (true, true) => Reply::close(response("200 OK", "Connection: close\r\n", PAGE)),
            });
        let base = LoadSpec {
            connections: 4,
            arrivals: open(1000.0),
            response_timeout: Duration::from_secs(2),
            ..spec(address)
        };
        let stalled = timed(base, Duration::from_secs(1));
        let (report, http) = report(&with(stalled, |http| http.connection_per_request = close));
        assert_stall_is_told(&report, 20, 4);
        assert_eq!((http.rows.samples, http.rows.errors), (report.response.count, report.errors()));
    }
}

#[test]
fn a_server_that_ends_idle_connections_between_requests_is_no_failure() {
    // At most one request a second on each connection; the server closes after each response without notice.
    let address = serve_http(|_, _, _| Reply::close(ok(PAGE)));
    let think = Duration::from_millis(300);
    let spec = LoadSpec { arrivals: Arrivals::Closed { think }, messages: Some(6), ..spec(address) };
    let (_, http) = right(&spec, 6);
    // The last close may come too late to be seen.
    assert_eq!(http.connections_opened, 6);
    assert!((5..=6).contains(&http.connections_closed_between), "{}", http.connections_closed_between);
}

#[test]
fn silent_connections_may_be_ended_by_the_server() {
    let address = serve(|_, mut stream| {
        // The connection ends after a silence.
        stream.set_read_timeout(Some(Duration::from_millis(300))).expect("not zero");
        let mut request = [0; 4096];
        while matches!(stream.read(&mut request), Ok(1..)) {
            if stream.write_all(&ok(PAGE)).is_err() {
                return;
            }
        }
    });
    let base = LoadSpec { idle_connections: 3, ..spec(address) };
    let (report, http) = report(&timed(base, Duration::from_millis(1500)));
    assert_eq!(report.failures.errors(), 0, "{:?}", report.failures);
    assert!(http.connections_closed_between >= 3 && report.messages > 0);
}

#[test]
fn an_open_loop_keeps_its_schedule_with_and_without_a_connection_for_each_request() {
    let address = page(PAGE);
    for close in [false, true] {
        let base = LoadSpec { connections: 4, messages: Some(200), arrivals: open(2000.0), ..spec(address) };
        let (report, http) = right(&with(base, |http| http.connection_per_request = close), 200);
        assert_eq!((report.mode.as_str(), report.response.count, report.missed_starts), ("open", 200, 0));
        assert!(report.response.ns_mean >= report.service.ns_mean);
        assert_eq!(http.rows.mean_ns, report.response.ns_mean);
        assert!(report.window_ns > 90_000_000, "200 at 2000 a second need 100 ms: {}", report.window_ns);
        assert_eq!(http.connections_opened >= 200, close);
    }
}

#[test]
fn a_slow_server_cannot_hide_its_queue_behind_new_connections() {
    // One connection at a time, and each takes 10 ms: the client is silent for that long.
    let address = serve(|_, mut stream| {
        let mut request = [0; 4096];
        if matches!(stream.read(&mut request), Ok(1..)) {
            stream.set_read_timeout(Some(Duration::from_millis(10))).expect("not zero");
            assert!(stream.read(&mut request).is_err(), "nothing more comes");
            let _ = stream.write_all(&response("200 OK", "Connection: close\r\n", PAGE));
        }
    });
    let base = LoadSpec { messages: Some(10), arrivals: open(1000.0), ..spec(address) };
    let (report, _) = right(&with(base, |http| http.connection_per_request = true), 10);
    assert!(report.response.ns_max > 85_000_000, "{}", report.response.ns_max);
    assert!(report.response.ns_mean > 2.0 * report.service.ns_mean);
}

#[test]
fn large_contents_are_all_compared_in_a_timed_window_too() {
    let content: Arc<Vec<u8>> = Arc::new(vec![7; 100 << 10]);
    let address = serve_http(move |_, _, _| Reply::stay(ok(&content)));
    let base = LoadSpec {
        connections: 2,
        warmup_max: Duration::from_millis(300),
        ..timed(spec(address), Duration::from_secs(1))
    };
    let (report, http) = report(&base);
    assert_eq!(report.failures.errors(), 0, "{:?}", report.failures);
    assert!(report.messages > 0 && report.messages_whole_run > report.messages);
    assert_eq!((http.responses_compared, http.compared_share), (report.messages, 1.0));
    assert!(http.content_bytes_per_second > 0.0);
}

#[test]
fn a_method_that_nobody_knows_is_sent_as_it_is_with_its_content() {
    let address = serve_http(|_, _, request| match request.line.as_str() {
        "PURGE / HTTP/1.1" if request.content == b"old" => Reply::stay(ok(PAGE)),
        _ => Reply::stay(response("400 Bad Request", "", b"")),
    });
    let spec = with(spec(address), |http| {
        http.method = "PURGE".into();
        http.content = Some(b"old".to_vec());
    });
    let (_, http) = right(&spec, 100);
    assert_eq!(http.method, "PURGE");
}

#[test]
fn contents_that_differ_are_right_where_anything_is() {
    let number = Arc::new(AtomicUsize::new(0));
    let address = serve_http(move |_, _, _| {
        let number = number.fetch_add(1, Ordering::SeqCst);
        Reply::stay(ok("x".repeat(number % 17).as_bytes()))
    });
    let spec = with(spec(address), |http| http.expect_content = ExpectedContent::Anything);
    let (report, http) = right(&spec, 100);
    assert_eq!((report.message_bytes, http.responses_compared, http.compared_share), (0, 0, 0.0));
    assert!(report.bytes_verified > 0);
}

#[test]
fn connections_come_from_the_addresses_asked_for() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let address = serve(move |_, mut stream| {
        noted
            .lock()
            .expect("no thread panicked")
            .push(stream.peer_addr().expect("connected").ip().to_string());
        let mut request = [0; 4096];
        while matches!(stream.read(&mut request), Ok(1..)) {
            if stream.write_all(&response("200 OK", "Connection: close\r\n", PAGE)).is_err() {
                return;
            }
            let _ = stream.shutdown(std::net::Shutdown::Write);
        }
    });
    let sources = ["127.0.0.2", "127.0.0.3", "127.0.0.4"];
    for engine in [Config::with_driver(Driver::Epoll), Config::default()] {
        seen.lock().expect("no thread panicked").clear();
        let base = LoadSpec { connections: 3, messages: Some(30), engine, ..spec(address) };
        let spec = with(base, |http| {
            http.connection_per_request = true;
            http.source_addresses =
                sources.iter().map(|source| source.parse().expect("an address")).collect();
        });
        let (_, http) = right(&spec, 30);
        assert_eq!(http.connect.count, 30);
        let seen = seen.lock().expect("no thread panicked");
        for source in sources {
            assert_eq!(seen.iter().filter(|peer| *peer == source).count(), 10, "{source} of {seen:?}");
        }
    }
}

#[test]
fn a_target_of_ipv6_is_a_target() {
    let Ok(listener) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) else {
        // A machine without IPv6 skips this.
        return;
    };
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 4096];
            while matches!(stream.read(&mut request), Ok(1..)) {
                let is_named = String::from_utf8_lossy(&request).contains("Host: [::1]:");
                let reply = if is_named { ok(PAGE) } else { response("400 Bad Request", "", b"") };
                if stream.write_all(&reply).is_err() {
                    break;
                }
            }
        }
    });
    right(&LoadSpec { messages: Some(20), ..spec(address) }, 20);
}

#[test]
fn the_plan_of_load_testers_has_users_that_begin_one_after_the_other() {
    let ramp_up = Duration::from_millis(900);
    let base = LoadSpec { connections: 6, ramp_up, ..timed(spec(page(PAGE)), Duration::from_millis(2100)) };
    let (report, http) = report(&with(base, |http| http.connection_per_request = true));
    assert_eq!(report.failures.errors(), 0, "{:?}", report.failures);
    assert_eq!((report.warmup_ns, report.seconds.len()), (0, 2));
    // The first second is the ramp; the second is steady.
    assert_eq!(http.rows.throughput_per_second, report.seconds[1].messages as f64);
    let peak = report.seconds.iter().map(|second| second.messages).max().expect("two seconds") as f64;
    assert_eq!(http.rows.throughput_peak_per_second, peak);
    assert!(http.too_short.expect("two seconds are few").contains("1 steady whole second"));
}

#[test]
fn the_log_of_results_has_a_row_for_each_response() {
    let path = std::env::temp_dir().join(format!("weir-load-it-{}.jtl", std::process::id()));
    let address = serve_http(|_, number, _| match number {
        5 => Reply::stay(response("500 Internal Server Error", "", b"")),
        _ => Reply::stay(ok(PAGE)),
    });
    let spec = with(LoadSpec { workers: 2, connections: 2, ..spec(address) }, |http| {
        http.jtl = Some(path.clone());
    });
    let (report, http) = report(&spec);
    assert_eq!(report.failures, FailureCounts { wrong_status: 2, ..FailureCounts::default() });
    assert_eq!((http.jtl_rows, http.jtl_rows_dropped), (100, 0));
    let text = std::fs::read_to_string(&path).expect("it was written");
    std::fs::remove_file(&path).expect("it is ours");
    assert!(text.starts_with("timeStamp,elapsed,label,responseCode,"));
    let rows: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(rows.len(), 100);
    assert_eq!(rows.iter().filter(|row| row.contains(",200,OK,") && row.contains(",true,")).count(), 98);
    let failed = rows.iter().filter(|row| row.contains(",500,") && row.contains("status 500"));
    assert_eq!(failed.count(), 2);
}

#[test]
fn a_log_of_results_that_cannot_be_opened_is_an_error_before_any_load() {
    let spec = with(spec(page(PAGE)), |http| http.jtl = Some("/dev/null/run.jtl".into()));
    let error = crate::servers::run(&spec).expect_err("no such folder").to_string();
    assert!(error.starts_with("cannot write /dev/null/run.jtl: "), "{error}");
}
