//! HTTP servers with one defect each, and the class their failures must get.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use weir_load::{ExpectedContent, LoadError, LoadSpec};
use weir_record::{
    failure::FailureCounts,
    http::{HttpLoadReport, StatusCount},
    load::LoadReport,
};

use crate::{
    http_servers::{After, Reply, ok, report, response, serve_http, spec, with},
    servers::{NOBODY_ELSE, run, serve},
};

/// A limit that a server which never answers passes, and a right one keeps, also on a busy machine.
const SOON: Duration = Duration::from_secs(1);
const PAGE: &[u8] = b"a page of forty-two bytes, or a few more.\n";

const NONE: FailureCounts = FailureCounts {
    refused: 0,
    reset: 0,
    connect_timeout: 0,
    response_timeout: 0,
    short: 0,
    wrong_bytes: 0,
    wrong_status: 0,
    malformed: 0,
    cut_off_at_end: 0,
    local_limit: 0,
    unexplained: 0,
};

/// A server that answers request 5 of its first connection like this, and everything else right.
fn wrong_once(reply: impl Into<Vec<u8>>, after: After) -> SocketAddr {
    let bytes = reply.into();
    serve_http(move |connection, number, _| match (connection, number) {
        (0, 5) => Reply { bytes: bytes.clone(), after },
        _ => Reply::stay(ok(PAGE)),
    })
}

/// Every request of the run was right, or has this class.
fn expect(spec: &LoadSpec, expected: FailureCounts) -> (LoadReport, HttpLoadReport) {
    let (report, http) = report(spec);
    assert_eq!(report.failures, expected);
    assert_eq!(report.messages + expected.errors(), 100);
    assert_eq!((report.messages_asked, report.messages_whole_run), (Some(100), report.messages));
    assert!((report.error_share - expected.errors() as f64 / 100.0).abs() < 1e-9);
    assert_eq!(report.failure_first.is_some(), expected.errors() > 0);
    (report, http)
}

#[test]
fn an_unexpected_status_fails_its_own_request_alone() {
    let address = wrong_once(response("404 Not Found", "", b"gone"), After::Stay);
    let (_, http) = expect(&spec(address), FailureCounts { wrong_status: 1, ..NONE });
    assert_eq!(http.connections_opened, 1, "the connection lives on");
    let statuses = [StatusCount { status: 200, count: 99 }, StatusCount { status: 404, count: 1 }];
    assert_eq!(http.responses_by_status, statuses);
    assert_eq!(http.rows.errors, 1);
}

#[test]
fn a_redirect_is_not_followed_and_it_is_said_where_it_led() {
    let redirect = response("302 Found", "Location: http://elsewhere/\r\n", b"");
    let address = wrong_once(redirect, After::Stay);
    let (_, http) = expect(&spec(address), FailureCounts { wrong_status: 1, ..NONE });
    assert_eq!((http.redirects, http.redirect_location.as_deref()), (1, Some("http://elsewhere/")));
    let bad = http.bad_response.expect("it is kept");
    assert!(bad.failure.text.contains("a redirect to http://elsewhere/"), "{}", bad.failure.text);
    assert!(bad.start.starts_with(r"HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\n"), "{}", bad.start);
}

#[test]
fn a_wrong_byte_of_content_is_found_in_every_place_and_in_a_pipeline() {
    for place in [0, 1, PAGE.len() / 2, PAGE.len() - 1] {
        for depth in [1, 4] {
            let mut content = PAGE.to_vec();
            content[place] ^= 1;
            let address = wrong_once(ok(&content), After::Stay);
            let spec = LoadSpec { depth, ..spec(address) };
            let (_, http) = expect(&spec, FailureCounts { wrong_bytes: 1, ..NONE });
            assert_eq!(http.connections_opened, 1);
        }
    }
}

#[test]
fn a_content_of_another_length_is_wrong_although_its_framing_is_right() {
    for content in [&PAGE[1..], &PAGE[..PAGE.len() - 1], b"", &[PAGE, b"x"].concat()] {
        let address = wrong_once(ok(content), After::Stay);
        expect(&spec(address), FailureCounts { wrong_bytes: 1, ..NONE });
    }
}

#[test]
fn a_large_content_of_another_length_is_wrong_in_a_timed_window() {
    let content = vec![1; 100 << 10];
    let shorter = ok(&content[1..]);
    let right = ok(&content);
    let address = serve_http(move |_, number, _| {
        Reply::stay(if number % 2 == 1 { shorter.clone() } else { right.clone() })
    });
    let spec = LoadSpec { messages: None, duration: Duration::from_secs(1), ..spec(address) };
    let (report, http) = report(&spec);
    assert!(report.failures.wrong_bytes > 5, "{:?}", report.failures);
    assert!(report.failures.wrong_bytes.abs_diff(report.messages) <= 1);
    assert_eq!(http.responses_compared, report.messages);
}

#[test]
fn contents_are_compared_with_what_is_expected_and_not_with_the_first() {
    let address = serve_http(|_, _, _| Reply::stay(ok(PAGE)));
    let spec = with(spec(address), |http| http.expect_content = ExpectedContent::Bytes(b"another".to_vec()));
    let (report, _) = expect(&spec, FailureCounts { wrong_bytes: 100, ..NONE });
    assert_eq!(report.messages, 0);
}

#[test]
fn a_content_that_ends_early_is_short() {
    let whole = ok(PAGE);
    for kept in [1, 17, whole.len() - PAGE.len(), whole.len() - 1] {
        let address = wrong_once(&whole[..kept], After::Close);
        let (_, http) = expect(&spec(address), FailureCounts { short: 1, ..NONE });
        assert_eq!(http.connections_opened, 2);
    }
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc";
    expect(&spec(wrong_once(&chunked[..], After::Close)), FailureCounts { short: 1, ..NONE });
}

#[test]
fn a_server_that_closes_without_an_answer_is_short_and_with_a_reset_reset() {
    expect(&spec(wrong_once("", After::Close)), FailureCounts { short: 1, ..NONE });
    expect(&spec(wrong_once("", After::Reset)), FailureCounts { reset: 1, ..NONE });
    let half = &ok(PAGE)[..30];
    expect(&spec(wrong_once(half, After::Reset)), FailureCounts { reset: 1, ..NONE });
}

#[test]
fn a_server_that_closes_without_saying_so_loses_what_is_in_flight() {
    // The next request is sent together with the end of the previous response.
    let address = wrong_once(ok(PAGE), After::Close);
    let (report, http) = report(&spec(address));
    let FailureCounts { short, reset, .. } = report.failures;
    assert_eq!((report.failures.errors(), report.messages), (short + reset, 100 - short - reset));
    assert_eq!(short + reset + http.connections_closed_between, 1, "{:?}", report.failures);
}

#[test]
fn bytes_that_are_no_response_are_malformed() {
    for bytes in [
        &b"HTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"[..],
        b"HTTP/1.1 twohundred\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02\x46",
    ] {
        let address = wrong_once(bytes, After::Stay);
        let (_, http) = expect(&spec(address), FailureCounts { malformed: 1, ..NONE });
        assert_eq!(http.connections_opened, 2, "{}", bytes.escape_ascii());
    }
}

#[test]
fn bytes_after_a_response_are_malformed() {
    let more = [&ok(PAGE)[..], b"more"].concat();
    let (report, _) = report(&spec(wrong_once(more, After::Stay)));
    assert_eq!((report.failures.malformed, report.failures.errors()), (1, 1));
    assert!(report.messages >= 99);
    // And after a response that was to be the last.
    let last = [&response("200 OK", "Connection: close\r\n", PAGE)[..], b"more"].concat();
    let (report, _) = crate::http_servers::report(&spec(wrong_once(last, After::Close)));
    assert_eq!((report.failures.malformed, report.failures.errors()), (1, 1));
}

#[test]
fn a_response_that_nobody_asked_for_is_malformed() {
    let address = serve(|_, mut stream| {
        // Sends something after the client has been silent for a while.
        stream.set_read_timeout(Some(Duration::from_millis(50))).expect("not zero");
        let mut request = [0; 4096];
        while !matches!(stream.read(&mut request), Ok(0)) && stream.write_all(&ok(PAGE)).is_ok() {}
    });
    let base = LoadSpec { idle_connections: 1, messages: None, ..spec(address) };
    let (report, _) = report(&LoadSpec { duration: Duration::from_secs(1), ..base });
    assert!(report.failures.malformed >= 1 && report.messages > 0, "{:?}", report.failures);
    assert_eq!(report.failures.errors(), report.failures.malformed);
}

#[test]
fn a_server_that_never_answers_is_a_response_timeout() {
    for close in [false, true] {
        let address = serve(|connection, mut stream| {
            let mut request = [0; 4096];
            while matches!(stream.read(&mut request), Ok(1..)) {
                if connection > 0 && stream.write_all(&ok(PAGE)).is_err() {
                    return;
                }
            }
        });
        let spec = with(LoadSpec { response_timeout: SOON, messages: Some(3), ..spec(address) }, |http| {
            http.connection_per_request = close;
        });
        let (report, _) = report(&spec);
        assert_eq!(report.failures, FailureCounts { response_timeout: 1, ..NONE }, "close: {close}");
        assert_eq!(report.messages, 2);
    }
}

#[test]
fn a_response_that_drips_past_the_limit_is_a_response_timeout() {
    let address = serve(|connection, mut stream| {
        let mut request = [0; 4096];
        while matches!(stream.read(&mut request), Ok(1..)) {
            if connection > 0 {
                let _ = stream.write_all(&ok(PAGE));
                continue;
            }
            stream.set_read_timeout(Some(SOON / 10)).expect("not zero");
            for byte in ok(PAGE) {
                if matches!(stream.read(&mut request), Ok(0)) || stream.write_all(&[byte]).is_err() {
                    return;
                }
            }
        }
    });
    let spec = LoadSpec { response_timeout: SOON, messages: Some(3), ..spec(address) };
    assert_eq!(report(&spec).0.failures, FailureCounts { response_timeout: 1, ..NONE });
}

#[test]
fn a_server_that_says_close_and_stays_is_noticed_and_does_not_hold_the_load_up() {
    for close in [false, true] {
        let address = serve_http(|_, _, _| Reply::stay(response("200 OK", "Connection: close\r\n", PAGE)));
        let spec = with(spec(address), |http| http.connection_per_request = close);
        let (report, http) = expect(&spec, NONE);
        assert_eq!((http.connections_opened, http.connections_kept_open), (100, 100));
        assert_eq!(http.connections_closed_as_said, 0);
        // Three waits of 100 ms, then one per second.
        assert!(report.window_ns < 5_000_000_000, "{}", report.window_ns);
    }
}

#[test]
fn a_server_that_does_not_close_although_it_was_asked_to_is_noticed() {
    let address = serve_http(|_, _, _| Reply::stay(ok(PAGE)));
    let spec = with(spec(address), |http| http.connection_per_request = true);
    let (_, http) = expect(&spec, NONE);
    assert_eq!(http.connections_kept_open, 100);
}

#[test]
fn bytes_instead_of_the_end_are_malformed() {
    // Sends again when the client has been silent for a while.
    let address = serve(|connection, mut stream| {
        let mut request = [0; 4096];
        while matches!(stream.read(&mut request), Ok(1..)) {
            let _ = stream.write_all(&response("200 OK", "Connection: close\r\n", PAGE));
            if connection > 0 {
                return;
            }
            stream.set_read_timeout(Some(Duration::from_millis(5))).expect("not zero");
            if stream.read(&mut request).is_err() {
                let _ = stream.write_all(b"and another thing");
            }
        }
    });
    let spec =
        with(LoadSpec { messages: Some(10), ..spec(address) }, |http| http.connection_per_request = true);
    let (report, http) = report(&spec);
    assert_eq!((report.failures, report.messages), (FailureCounts { malformed: 1, ..NONE }, 9));
    assert_eq!((report.messages_whole_run, report.service.count), (9, 9));
    assert_eq!(http.connections_closed_as_said, 9);
}

#[test]
fn a_port_where_nobody_listens_is_refused_and_the_run_says_so() {
    let listener = TcpListener::bind((NOBODY_ELSE, 0)).expect("a free port");
    let address = listener.local_addr().expect("bound");
    drop(listener);
    for sources in [Vec::new(), vec!["127.0.0.2".parse().expect("an address")]] {
        let spec = with(LoadSpec { connections: 3, ..spec(address) }, |http| http.source_addresses = sources);
        let error = run(&spec).expect_err("nobody is there");
        let LoadError::Unreachable { failures, .. } = error else { panic!("{error}") };
        assert_eq!(*failures, FailureCounts { refused: 3, ..NONE });
    }
}

#[test]
fn a_server_that_stops_listening_refuses_the_requests_that_follow() {
    let listener = TcpListener::bind((NOBODY_ELSE, 0)).expect("a free port");
    let address = listener.local_addr().expect("bound");
    let served = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&served);
    std::thread::spawn(move || {
        for _ in 0..4 {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut request = [0; 4096];
            if matches!(stream.read(&mut request), Ok(1..)) {
                let _ = stream.write_all(&response("200 OK", "Connection: close\r\n", PAGE));
                count.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    let spec =
        with(LoadSpec { messages: Some(8), ..spec(address) }, |http| http.connection_per_request = true);
    let (report, _) = report(&spec);
    assert_eq!((report.messages, served.load(Ordering::SeqCst)), (4, 4));
    // The first of the rest may still enter the queue of the closing listener.
    let FailureCounts { refused, reset, short, .. } = report.failures;
    assert_eq!((report.failures.errors(), refused + reset + short), (4, 4), "{:?}", report.failures);
    assert!(refused >= 3);
}

#[test]
fn what_is_in_flight_at_the_end_is_cut_off_with_and_without_a_pipeline() {
    let address = serve(|_, mut stream| while matches!(stream.read(&mut [0; 4096]), Ok(1..)) {});
    for (depth, close) in [(3, false), (1, true)] {
        let base = LoadSpec {
            connections: 2,
            depth,
            messages: None,
            duration: Duration::from_secs(1),
            ..spec(address)
        };
        let (report, _) = report(&with(base, |http| http.connection_per_request = close));
        let cut_off_at_end = u64::from(2 * depth);
        assert_eq!(report.failures, FailureCounts { cut_off_at_end, ..NONE }, "close: {close}");
        let in_flight = report.littles_law.in_flight_mean / cut_off_at_end as f64;
        assert!(in_flight > 0.6 && in_flight < 1.01, "{in_flight}");
    }
}
