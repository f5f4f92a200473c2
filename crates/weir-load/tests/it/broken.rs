//! Servers with one defect each, and the class their failures must get.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use weir_load::{Arrivals, EchoSpec, LoadError, LoadSpec};
use weir_record::{failure::FailureCounts, load::LoadReport};

use crate::servers::{NOBODY_ELSE, echo_stream, report, run, serve, serve_messages, spec};

/// A limit that a server which never answers passes, and a right one keeps, also on a busy machine.
const SOON: Duration = Duration::from_secs(1);

/// Every message of a counted run was right, or has a class.
fn assert_all_accounted(report: &LoadReport, messages: u64, expected: FailureCounts) {
    assert_eq!(report.failures, expected);
    assert_eq!(report.messages + expected.errors(), messages);
}

/// A server that answers message 5 of its first connection wrongly, and everything else right.
fn wrong_once(change: impl Fn(&mut Vec<u8>) + Clone + Send + 'static) -> SocketAddr {
    serve_messages(64, move |connection, number, reply| {
        if (connection, number) == (0, 5) {
            change(reply);
        }
    })
}

#[test]
fn one_wrong_byte_anywhere_is_found() {
    for place in [0, 1, 7, 8, 15, 16, 19, 20, 23, 24, 40, 63] {
        let address = wrong_once(move |reply| reply[place] ^= 1);
        let expected = FailureCounts { wrong_bytes: 1, ..FailureCounts::default() };
        assert_all_accounted(&report(&spec(address)), 100, expected);
    }
}

#[test]
fn swapped_bytes_are_found() {
    let address = wrong_once(|reply| reply.swap(30, 31));
    let expected = FailureCounts { wrong_bytes: 1, ..FailureCounts::default() };
    assert_all_accounted(&report(&spec(address)), 100, expected);
}

#[test]
fn a_lost_message_is_wrong_bytes_in_a_pipeline_and_silence_without_one() {
    let address = wrong_once(Vec::clear);
    let lost = report(&LoadSpec { depth: 4, ..spec(address) });
    // Messages that come back together with the wrong bytes have no successors yet.
    let wrong_bytes = lost.failures.wrong_bytes;
    assert!((1..=4).contains(&wrong_bytes), "{wrong_bytes}");
    assert_all_accounted(&lost, 100, FailureCounts { wrong_bytes, ..FailureCounts::default() });
    let lost = report(&LoadSpec { response_timeout: SOON, ..spec(wrong_once(Vec::clear)) });
    assert_all_accounted(&lost, 100, FailureCounts { response_timeout: 1, ..FailureCounts::default() });
}

#[test]
fn a_repeated_message_is_wrong_bytes() {
    for depth in [1, 4] {
        let address = wrong_once(|reply| reply.extend_from_within(..));
        let report = report(&LoadSpec { depth, ..spec(address) });
        // With nothing in flight the failure counts once and ends no message.
        assert!((1..=4).contains(&report.failures.wrong_bytes), "{:?}", report.failures);
        assert_eq!(report.failures.errors(), report.failures.wrong_bytes);
        assert!(report.messages >= 96);
    }
}

#[test]
fn answers_of_another_connection_are_wrong_bytes() {
    let held = Arc::new(Mutex::new(Vec::<(TcpStream, Vec<u8>)>::new()));
    let address = serve(move |connection, mut stream| {
        let mut message = vec![0; 64];
        if connection >= 2 || stream.read_exact(&mut message).is_err() {
            return echo_stream(stream);
        }
        let mut held = held.lock().expect("no thread panicked");
        held.push((stream, message));
        if let [(first, theirs), (second, ours)] = &mut held[..] {
            first.write_all(ours).and_then(|()| second.write_all(theirs)).expect("both are open");
        }
    });
    let report = report(&LoadSpec { connections: 2, ..spec(address) });
    assert_all_accounted(&report, 100, FailureCounts { wrong_bytes: 2, ..FailureCounts::default() });
}

#[test]
fn answers_out_of_order_and_stale_answers_are_wrong_bytes() {
    let address = serve(|connection, mut stream| {
        let mut messages = [0; 4 * 64];
        if connection == 0 && stream.read_exact(&mut messages).is_ok() {
            let (first, rest) = messages.split_at(64);
            stream
                .write_all(rest)
                .and_then(|()| stream.write_all(first))
                .expect("open until they are compared");
        }
        echo_stream(stream);
    });
    let swapped = report(&LoadSpec { depth: 4, ..spec(address) });
    assert_all_accounted(&swapped, 100, FailureCounts { wrong_bytes: 4, ..FailureCounts::default() });

    let first: Arc<Mutex<Option<Vec<u8>>>> = Arc::default();
    let address = serve_messages(64, move |connection, number, reply| {
        let mut first = first.lock().expect("no thread panicked");
        let stale = first.get_or_insert_with(|| reply.clone());
        if (connection, number) == (0, 5) {
            reply.clone_from(stale);
        }
    });
    let expected = FailureCounts { wrong_bytes: 1, ..FailureCounts::default() };
    assert_all_accounted(&report(&spec(address)), 100, expected);
}

#[test]
fn bytes_that_nobody_asked_for_are_wrong_bytes() {
    let address = serve(|connection, mut stream| {
        if connection == 0 {
            stream.write_all(b"welcome").expect("just opened");
        }
        echo_stream(stream);
    });
    // The greeting arrives with a message in flight, or with none yet; then only the connection fails.
    let report = report(&spec(address));
    assert_eq!((report.failures.wrong_bytes, report.failures.errors()), (1, 1));
    assert!(report.messages >= 99);
}

#[test]
fn a_message_with_more_behind_it_fails_once_and_is_not_right_beside() {
    for at_once in [true, false] {
        let address = serve(move |_, mut stream| {
            let mut message = [0; 64];
            while stream.read_exact(&mut message).is_ok() {
                let replies = match at_once {
                    true => vec![[&message[..], b"more"].concat()],
                    false => vec![message.to_vec(), b"more".to_vec()],
                };
                for reply in replies {
                    if stream.write_all(&reply).is_err() {
                        return;
                    }
                    // The client ends its side when it has its answer.
                    if !at_once && reply.len() == 64 {
                        let _ = stream.read(&mut [0]);
                    }
                }
            }
        });
        let protocol = EchoSpec { message_bytes: 64, connection_per_message: true };
        let report = report(&LoadSpec { connections: 4, protocol: protocol.into(), ..spec(address) });
        assert_all_accounted(&report, 100, FailureCounts { wrong_bytes: 100, ..FailureCounts::default() });
        assert_eq!((report.messages_whole_run, report.bytes_verified), (0, 0));
    }
}

#[test]
fn a_server_that_closes_in_the_middle_of_a_message_is_short() {
    for kept in [0, 1, 63] {
        let address = serve(move |connection, mut stream| {
            let mut messages = [0; 3 * 64];
            if connection > 0 {
                return echo_stream(stream);
            }
            stream.read_exact(&mut messages).expect("three messages");
            stream.write_all(&messages[..64 + kept]).expect("the client is there");
            // Reads the last message before closing: with unread bytes the kernel would send a reset.
            stream.shutdown(std::net::Shutdown::Write).expect("open");
            while matches!(stream.read(&mut [0; 4096]), Ok(1..)) {}
        });
        let report = report(&LoadSpec { depth: 3, ..spec(address) });
        // The first message came back and another took its place, unless the end arrived together with it.
        assert!((2..=3).contains(&report.failures.short), "{:?}", report.failures);
        assert_all_accounted(
            &report,
            100,
            FailureCounts { short: report.failures.short, ..Default::default() },
        );
    }
}

#[test]
fn a_server_that_closes_with_unread_bytes_resets() {
    let address = serve(|connection, stream| {
        if connection > 0 {
            return echo_stream(stream);
        }
        stream.peek(&mut [0]).expect("a message");
    });
    let expected = FailureCounts { reset: 1, ..FailureCounts::default() };
    assert_all_accounted(&report(&spec(address)), 100, expected);
}

#[test]
fn a_server_that_never_answers_is_a_response_timeout() {
    let address = serve(|connection, mut stream| {
        if connection > 0 {
            return echo_stream(stream);
        }
        while matches!(stream.read(&mut [0; 4096]), Ok(1..)) {}
    });
    let report = report(&LoadSpec { depth: 2, response_timeout: SOON, ..spec(address) });
    assert_all_accounted(&report, 100, FailureCounts { response_timeout: 2, ..FailureCounts::default() });
    assert!(report.window_ns > SOON.as_nanos() as u64);
}

#[test]
fn an_answer_that_drips_past_the_limit_is_a_response_timeout() {
    // Sends one byte of the answer whenever the client has been silent for a while.
    let address = serve(|connection, mut stream| {
        if connection > 0 {
            return echo_stream(stream);
        }
        let mut message = [0; 64];
        stream.read_exact(&mut message).expect("a message");
        stream.set_read_timeout(Some(SOON / 10)).expect("not zero");
        for byte in message {
            if matches!(stream.read(&mut [0; 64]), Ok(0)) || stream.write_all(&[byte]).is_err() {
                return;
            }
        }
    });
    let report = report(&LoadSpec { response_timeout: SOON, ..spec(address) });
    assert_all_accounted(&report, 100, FailureCounts { response_timeout: 1, ..FailureCounts::default() });
}

#[test]
fn an_answer_after_the_limit_is_a_response_timeout_and_disturbs_no_other_connection() {
    let (accepted, second_is_there) = mpsc::channel();
    let second_is_there = Arc::new(Mutex::new(second_is_there));
    let address = serve(move |connection, mut stream| {
        accepted.send(connection).expect("the channel lives as long as the server");
        let mut message = [0; 64];
        if connection == 0 && stream.read_exact(&mut message).is_ok() {
            // The client has given up when it opens its second connection.
            let second = second_is_there.lock().expect("no thread panicked");
            while second.recv().expect("the channel lives as long as the server") == 0 {}
            // The client may be gone.
            let _ = stream.write_all(&message);
        }
        echo_stream(stream);
    });
    let report = report(&LoadSpec { response_timeout: SOON, ..spec(address) });
    assert_all_accounted(&report, 100, FailureCounts { response_timeout: 1, ..FailureCounts::default() });
}

#[test]
fn the_limit_holds_in_an_open_loop_for_a_connection_that_was_idle_before() {
    let address = serve(|connection, mut stream| {
        if connection > 0 {
            return echo_stream(stream);
        }
        while matches!(stream.read(&mut [0; 4096]), Ok(1..)) {}
    });
    let arrivals = Arrivals::Open { rate_per_second: 5.0, poisson: false, spin: Duration::ZERO };
    let spec = LoadSpec { response_timeout: SOON, arrivals, messages: Some(3), ..spec(address) };
    let report = report(&spec);
    assert_all_accounted(&report, 3, FailureCounts { response_timeout: 1, ..FailureCounts::default() });
}

#[test]
fn a_port_where_nobody_listens_is_refused_and_the_run_says_so() {
    let listener = TcpListener::bind((NOBODY_ELSE, 0)).expect("a free port");
    let address = listener.local_addr().expect("bound");
    drop(listener);
    let error = run(&LoadSpec { connections: 3, ..spec(address) }).expect_err("nobody is there");
    assert!(error.to_string().starts_with(&format!("cannot connect to {address}: ")), "{error}");
    let LoadError::Unreachable { failures, .. } = error else { panic!("{error}") };
    assert_eq!(*failures, FailureCounts { refused: 3, ..FailureCounts::default() });
}

#[test]
fn a_server_that_stops_listening_is_short_and_then_refused() {
    let listener = TcpListener::bind((NOBODY_ELSE, 0)).expect("a free port");
    let address = listener.local_addr().expect("bound");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("one client");
        drop(listener);
        let mut message = [0; 64];
        stream.read_exact(&mut message).expect("a message");
    });
    let spec = LoadSpec { messages: None, duration: Duration::from_secs(1), ..spec(address) };
    let report = report(&spec);
    server.join().expect("it saw one message");
    assert_eq!((report.messages, report.failures.short), (0, 1));
    assert!(report.failures.refused >= 1);
    assert_eq!(report.failures.errors(), report.failures.short + report.failures.refused);
}

/// A listener with a queue for one connection, and nobody accepts.
fn deaf_listener() -> (socket2::Socket, SocketAddr) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("a free port");
    socket.listen(0).expect("bound");
    let address = socket.local_addr().expect("bound").as_socket().expect("an IP address");
    (socket, address)
}

#[test]
fn a_server_that_accepts_nobody_is_a_connect_timeout() {
    let (_listener, address) = deaf_listener();
    let _queued = TcpStream::connect(address).expect("the queue holds one");
    let error = run(&LoadSpec { connections: 2, connect_timeout: SOON, ..spec(address) });
    let Err(LoadError::Unreachable { failures, .. }) = error else { panic!("{error:?}") };
    assert_eq!(*failures, FailureCounts { connect_timeout: 2, ..FailureCounts::default() });
}

#[test]
fn some_connections_in_time_and_some_not_make_a_report() {
    let (_listener, address) = deaf_listener();
    let spec = LoadSpec {
        connections: 3,
        connect_timeout: SOON,
        response_timeout: SOON,
        messages: None,
        duration: 3 * SOON,
        ..spec(address)
    };
    let report = report(&spec);
    assert_eq!(report.messages, 0);
    assert!(report.failures.connect_timeout >= 2 && report.failures.response_timeout >= 1);
    let FailureCounts { connect_timeout, response_timeout, .. } = report.failures;
    assert_eq!(report.failures.errors(), connect_timeout + response_timeout);
}

#[test]
fn an_idle_connection_that_the_server_ends_or_speaks_on_is_a_failure() {
    let asked = Arc::new(AtomicUsize::new(0));
    let busy_is_known = Arc::new(AtomicBool::new(false));
    let address = serve(move |_, mut stream| {
        // The first connection to speak is the busy one; it keeps the run alive until both idle ones have failed.
        stream.set_read_timeout(Some(Duration::from_millis(5))).expect("not zero");
        let is_busy = loop {
            // Read before the look: a connection that is silent after the busy one has spoken stays silent.
            let is_known = busy_is_known.load(Ordering::SeqCst);
            let has_spoken = matches!(stream.peek(&mut [0]), Ok(1..));
            busy_is_known.fetch_or(has_spoken, Ordering::SeqCst);
            if has_spoken || is_known {
                break has_spoken;
            }
        };
        stream.set_read_timeout(None).expect("none is allowed");
        match asked.fetch_add(usize::from(!is_busy), Ordering::SeqCst) {
            _ if is_busy => echo_stream(stream),
            0 => drop(stream),
            1 => {
                stream.write_all(b"?").expect("open");
                echo_stream(stream);
            }
            _ => echo_stream(stream),
        }
    });
    let spec =
        LoadSpec { idle_connections: 2, messages: None, duration: Duration::from_secs(2), ..spec(address) };
    let report = report(&spec);
    let expected = FailureCounts { short: 1, wrong_bytes: 1, ..FailureCounts::default() };
    let failures = FailureCounts { cut_off_at_end: 0, ..report.failures };
    assert_eq!(failures, expected);
    assert!(report.messages > 0);
}

#[test]
fn in_flight_at_the_end_is_cut_off_and_no_error() {
    let address = serve(|_, mut stream| while matches!(stream.read(&mut [0; 4096]), Ok(1..)) {});
    let spec = LoadSpec {
        connections: 2,
        depth: 3,
        messages: None,
        duration: Duration::from_secs(1),
        ..spec(address)
    };
    let report = report(&spec);
    assert_eq!(report.failures, FailureCounts { cut_off_at_end: 6, ..FailureCounts::default() });
    assert_eq!((report.failures.errors(), report.messages, report.messages_started), (0, 0, 6));
    assert!((report.littles_law.in_flight_mean - 6.0).abs() < 0.5);
}

#[test]
fn a_pipeline_is_in_flight_in_full_although_the_server_takes_nothing() {
    let (held, _kept) = mpsc::channel();
    let address = serve(move |_, stream| held.send(stream).expect("kept until the test ends"));
    let spec = LoadSpec {
        depth: 12,
        protocol: EchoSpec { message_bytes: 1 << 20, connection_per_message: false }.into(),
        messages: None,
        // Twelve megabytes are sent within this time, also on a busy machine.
        duration: Duration::from_secs(3),
        ..spec(address)
    };
    let report = report(&spec);
    assert_eq!(report.failures, FailureCounts { cut_off_at_end: 12, ..FailureCounts::default() });
    assert_eq!(report.messages_started, 12);
}
