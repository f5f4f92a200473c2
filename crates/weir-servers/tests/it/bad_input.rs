//! Malformed, hostile and vanished clients: each gets the right status or a clean end, and no other client notices.

use weir_engine::Driver;
use weir_proto::{
    content::Content,
    http1::{Limits, Method},
};
use weir_servers::http::{Body, HttpConfig, HttpLogs};

use crate::{
    client::{Ending, get},
    rig::{on_driver, on_every_driver, on_every_driver_and_seed},
};

/// Requests and the status each gets.
fn refused() -> Vec<(Vec<u8>, u16)> {
    let post = |fields: &str, content: &str| format!("POST / HTTP/1.1\r\nHost: x\r\n{fields}\r\n{content}");
    let chunked = |content: &str| post("Transfer-Encoding: chunked\r\n", content);
    let get_with = |fields: &str| format!("GET / HTTP/1.1\r\nHost: x\r\n{fields}\r\n");
    let texts: Vec<(String, u16)> = vec![
        ("GET / HTTP/1.1\r\n\r\n".into(), 400),
        ("GET  / HTTP/1.1\r\nHost: x\r\n\r\n".into(), 400),
        ("GET /\r\n\r\n".into(), 400),
        ("GET nowhere HTTP/1.1\r\nHost: x\r\n\r\n".into(), 400),
        ("\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n".into(), 400),
        (get_with("Host: y\r\n"), 400),
        (get_with("A : b\r\n"), 400),
        (get_with("A: b\r\n c\r\n"), 400),
        (get_with("A: b\0c\r\n"), 400),
        (get_with("A: b\rc\r\n"), 400),
        (get_with("A: b\nC: d\r\n"), 400),
        (post("Content-Length: -1\r\n", ""), 400),
        (post("Content-Length: +5\r\n", "hello"), 400),
        (post("Content-Length: 99999999999999999999999\r\n", ""), 400),
        (post("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"), 400),
        (post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 400),
        (post("Transfer-Encoding: chunked, gzip\r\n", ""), 400),
        (chunked("x\r\n"), 400),
        (chunked("-1\r\n"), 400),
        (chunked("ffffffffffffffff0\r\n"), 400),
        (chunked("1\r\nabc"), 400),
        (chunked(&format!("1;{}\r\na\r\n0\r\n\r\n", "x".repeat(5000))), 400),
        ("CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n".into(), 405),
        ("DELETE / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n".into(), 405),
        (chunked(&format!("{:0>65}\r\na", 1)), 400),
        (post("Content-Length: 1000000000000\r\n", ""), 413),
        (chunked("ffffffff\r\n"), 413),
        (format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(9000)), 414),
        (get_with("Expect: a miracle\r\n"), 417),
        (get_with(&"A: b\r\n".repeat(101)), 431),
        (get_with(&"A: b\r\n".repeat(100_000)), 431),
        (get_with(&format!("A: {}\r\n", "b".repeat(20_000))), 431),
        ("BREW / HTTP/1.1\r\nHost: x\r\n\r\n".into(), 501),
        (post("Transfer-Encoding: gzip, chunked\r\n", ""), 501),
        ("GET / HTTP/2.0\r\nHost: x\r\n\r\n".into(), 505),
    ];
    let mut all: Vec<(Vec<u8>, u16)> =
        texts.into_iter().map(|(text, status)| (text.into_bytes(), status)).collect();
    // The start of a TLS handshake.
    all.push((b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(), 400));
    all
}

#[test]
fn each_wrong_request_gets_its_status_and_an_end_and_nobody_else_notices() {
    for body in [Body::Fixed(Content::Html), Body::Echo] {
        let cases = refused();
        let count = cases.len() as u64;
        on_every_driver(HttpConfig::new(body.clone()), async |network| {
            let mut other = network.connect().await;
            for (request, status) in &cases {
                let text = String::from_utf8_lossy(&request[..request.len().min(100)]).into_owned();
                let mut client = network.connect().await;
                // The server may have ended before it has read all of it.
                let _ = client.try_write(request).await;
                match client.response(Method::Get).await {
                    Ok(reply) => {
                        assert_eq!(reply.status, *status, "{text:?}");
                        assert_eq!(reply.header("connection"), Some("close"), "{text:?}");
                        assert_eq!(reply.header("allow").is_some(), *status == 405, "{text:?}");
                        client.expect_end().await;
                    }
                    // An echo that has started cannot send a status any more; it ends unfinished.
                    Err(ending) => {
                        let is_in_content = text.contains("chunked\r\n\r\n");
                        assert!(matches!(body, Body::Echo) && is_in_content, "{text:?}");
                        assert_eq!(ending, Ending::End, "{text:?}");
                    }
                }
                assert_eq!(other.ask(Method::Get, get("/")).await.status, 200);
            }
            let refusals = network.http.counters().refusals();
            assert_eq!(refusals.iter().map(|(_, count)| count).sum::<u64>(), count, "{refusals:?}");
        });
    }
}

#[test]
fn a_wrong_head_request_gets_no_content() {
    on_every_driver_and_seed(HttpConfig::new(Body::Fixed(Content::Html)), async |network| {
        for (request, start) in [
            ("HEAD / HTTP/1.1\r\n\r\n".to_owned(), "HTTP/1.1 400 "),
            (format!("HEAD /{} HTTP/1.1\r\n", "a".repeat(20_000)), "HTTP/1.1 414 "),
        ] {
            let mut client = network.connect().await;
            let _ = client.try_write(request.as_bytes()).await;
            let (bytes, ending) = client.rest().await;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            assert!(text.starts_with(start) && text.ends_with("\r\n\r\n"), "{text}");
            assert_eq!((text.matches("\r\n\r\n").count(), ending), (1, Ending::End));
        }
    });
}

#[test]
fn a_head_that_is_too_large_is_told_why_however_it_came() {
    on_every_driver_and_seed(HttpConfig::new(Body::Fixed(Content::Html)), async |network| {
        for (start, sentence) in [
            ("GET /", "414 URI Too Long: the first line is too long\n"),
            ("GET / HTTP/1.1\r\nA: ", "431 Request Header Fields Too Large: the head is too large\n"),
        ] {
            let mut client = network.connect().await;
            for piece in [start, &"a".repeat(5_000), &"a".repeat(20_000)] {
                let _ = client.try_write(piece.as_bytes()).await;
            }
            let reply = client.response(Method::Get).await.expect("a refusal");
            assert_eq!(String::from_utf8_lossy(&reply.content), sentence);
            client.expect_end().await;
        }
    });
}

#[test]
fn replies_before_a_wrong_request_are_not_lost() {
    on_every_driver_and_seed(HttpConfig::new(Body::Fixed(Content::Image)), async |network| {
        let mut client = network.connect().await;
        client.write(format!("{}BREW", get("/").repeat(3))).await;
        client.write(" / HTTP/1.1\r\nHost: x\r\n\r\nand more that nobody reads").await;
        for _ in 0..3 {
            assert_eq!(client.response(Method::Get).await.expect("a response").content.len(), 151_552);
        }
        assert_eq!(client.response(Method::Get).await.expect("a refusal").status, 501);
        client.expect_end().await;
    });
}

#[test]
fn a_head_of_a_gigabyte_is_refused_after_its_first_bytes() {
    for driver in Driver::ALL.into_iter().filter(|driver| *driver != Driver::Sim) {
        let config = HttpConfig::new(Body::Fixed(Content::Html));
        on_driver(driver, config, HttpLogs::default(), async |network| {
            let mut client = network.connect().await;
            client.write("GET / HTTP/1.1\r\nHost: x\r\n").await;
            let block = format!("A: {}\r\n", "b".repeat(1000)).repeat(1000);
            let taken = (0..1000).take_while(|_| client.try_write_now(block.as_bytes())).count();
            assert!(taken < 100, "{driver}: {taken} MB were taken");
            assert_eq!(client.response(Method::Get).await.expect("a refusal").status, 431, "{driver}");
            let stats = network.stats().expect("its own server");
            assert!(stats.bytes_received < 4 << 20, "{driver}: {} bytes were read", stats.bytes_received);
        });
    }
}

#[test]
fn clients_that_never_read_a_megabyte_hold_up_nobody() {
    const MUTE: usize = 20;
    on_every_driver(HttpConfig::new(Body::Fixed(Content::Bytes(1 << 20))), async |network| {
        let mut mute = Vec::new();
        for _ in 0..MUTE {
            let mut client = network.connect_narrow().await;
            client.write(get("/").repeat(30)).await;
            mute.push(client);
        }
        let mut other = network.connect().await;
        for _ in 0..20 {
            assert_eq!(other.ask(Method::Get, get("/")).await.content.len(), 1 << 20);
        }
        mute.into_iter().for_each(crate::client::Client::reset);
    });
}

#[test]
fn an_echo_takes_no_more_than_its_client_reads() {
    const OFFERED_BYTES: usize = 256 << 20;
    const TAKEN_BYTES_MAX: u64 = 32 << 20;
    for driver in Driver::ALL.into_iter().filter(|driver| *driver != Driver::Sim) {
        let config = HttpConfig {
            limits: Limits { body_bytes_max: u64::MAX, ..Limits::default() },
            ..HttpConfig::new(Body::Echo)
        };
        on_driver(driver, config, HttpLogs::default(), async |network| {
            for framing in
                ["Transfer-Encoding: chunked".to_owned(), format!("Content-Length: {OFFERED_BYTES}")]
            {
                let mut mute = network.connect_narrow().await;
                mute.write(format!("POST / HTTP/1.1\r\nHost: x\r\n{framing}\r\n\r\n")).await;
                // In chunks: a hundred bytes in frames of three.
                let block = "64\r\n".to_owned() + &"x".repeat(100) + "\r\n";
                let before = network.stats().expect("its own server").bytes_received;
                let taken = mute.write_while_taken(block.repeat(10_000).as_bytes(), OFFERED_BYTES);
                assert!(taken < OFFERED_BYTES, "{driver}: everything was taken");
                let received = network.stats().expect("as before").bytes_received - before;
                assert!(received < TAKEN_BYTES_MAX, "{driver}: {received} bytes were read");
                let mut other = network.connect().await;
                let reply = other.ask(Method::Get, get("/")).await;
                assert_eq!(reply.status, 200);
                mute.reset();
            }
        });
    }
}
