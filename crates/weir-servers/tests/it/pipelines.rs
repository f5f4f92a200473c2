//! Tests with many requests before the first reply is read.

use weir_engine::Driver;
use weir_proto::{content::Content, http1::Method};
use weir_servers::http::{Body, HttpConfig, HttpLogs};

use crate::{
    client::{Response, get},
    random::{self, Random, between, seed},
    rig::{on_driver, on_every_driver, on_every_driver_and_seed},
};

const REQUESTS: usize = 200;

/// A request of the script, and the content that an echo returns for it.
struct ScriptedRequest {
    method: Method,
    echo: Vec<u8>,
}

/// Requests of every valid kind, as one stream of bytes.
fn script(random: &mut Random) -> (Vec<ScriptedRequest>, Vec<u8>) {
    let (mut requests, mut bytes) = (Vec::new(), Vec::new());
    for number in 0..REQUESTS {
        let length = between(random, 0, 900);
        let content = random::bytes(random, length);
        let target = format!("/{number}?{}", between(random, 0, 1 << 30));
        let (method, head, body) = match between(random, 0, 6) {
            0 => (Method::Get, format!("GET {target} HTTP/1.1\r\nHost: x\r\n"), None),
            1 => (Method::Head, format!("HEAD {target} HTTP/1.1\r\nHost: x\r\n"), None),
            2 => (Method::Get, format!("GET {target} HTTP/1.0\r\nConnection: keep-alive\r\n"), None),
            3 => (
                Method::Get,
                format!("\r\nGET {target} HTTP/1.1\r\nHost: x\r\nX-Y: {}\r\n", "z".repeat(700)),
                None,
            ),
            4 => (Method::Post, format!("POST {target} HTTP/1.1\r\nHost: x\r\n"), Some(false)),
            5 => (
                Method::Put,
                format!("PUT {target} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"),
                Some(false),
            ),
            _ => (Method::Post, format!("POST {target} HTTP/1.1\r\nHost: x\r\n"), Some(true)),
        };
        bytes.extend_from_slice(head.as_bytes());
        match body {
            None => bytes.extend_from_slice(b"\r\n"),
            Some(false) => {
                bytes.extend_from_slice(format!("Content-Length: {length}\r\n\r\n").as_bytes());
                bytes.extend_from_slice(&content);
            }
            Some(true) => {
                bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
                let chunk_bytes = between(random, 1, 400);
                for chunk in content.chunks(chunk_bytes) {
                    bytes.extend_from_slice(format!("{:x};a=b\r\n", chunk.len()).as_bytes());
                    bytes.extend_from_slice(chunk);
                    bytes.extend_from_slice(b"\r\n");
                }
                bytes.extend_from_slice(b"0\r\n\r\n");
            }
        }
        requests.push(ScriptedRequest { method, echo: if body.is_some() { content } else { Vec::new() } });
    }
    bytes.extend_from_slice(b"GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    requests.push(ScriptedRequest { method: Method::Get, echo: Vec::new() });
    (requests, bytes)
}

/// A client's view of a reply, without the parts that may differ: its date, and whether the content had arrived with
/// its head.
fn without_time(response: Response) -> Response {
    Response { date: String::new(), interim: Vec::new(), ..response }
}

#[test]
fn a_random_pipelined_script_has_the_same_transcript_on_every_driver() {
    let seed = seed();
    for body in [Body::Echo, Body::Fixed(Content::Html)] {
        let (requests, bytes) = script(&mut Random::seeded(seed));
        let transcripts = on_every_driver_and_seed(HttpConfig::new(body.clone()), async |network| {
            let mut random = Random::seeded(seed ^ 1);
            let mut client = network.connect().await;
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                let (piece, more) = rest.split_at(between(&mut random, 1, 4000).min(rest.len()));
                client.write(piece).await;
                rest = more;
            }
            let mut transcript = Vec::new();
            for ScriptedRequest { method, .. } in &requests {
                transcript.push(without_time(client.response(*method).await.expect("a response")));
            }
            client.expect_end().await;
            transcript
        });
        let html = Content::Html.bytes();
        for (driver, transcript) in &transcripts {
            for (number, (response, request)) in transcript.iter().zip(&requests).enumerate() {
                let expected = match (&body, request.method) {
                    (_, Method::Head) => &[],
                    (Body::Echo, _) => request.echo.as_slice(),
                    (Body::Fixed(_) | Body::Files { .. }, _) => html.as_slice(),
                };
                assert_eq!(response.status, 200, "{driver}, request {number}");
                assert!(response.content == expected, "{driver}, request {number}: wrong content");
            }
            assert!(*transcript == transcripts[0].1, "{driver} differs from {}", transcripts[0].0);
        }
    }
}

#[test]
fn replies_of_one_turn_leave_in_one_send() {
    for driver in Driver::ALL {
        let config = HttpConfig::new(Body::Fixed(Content::Html));
        on_driver(driver, config, HttpLogs::default(), async |network| {
            let mut client = network.connect().await;
            let html = Content::Html.bytes();
            for _ in 0..3 {
                client.write(get("/").repeat(16)).await;
                for _ in 0..16 {
                    assert!(client.response(Method::Get).await.expect("a response").content == html);
                }
            }
            if let Some(stats) = network.stats() {
                // A small write arrives in one piece on loopback. The last send may not have been counted yet.
                assert_eq!(stats.receives, 3, "{driver}");
                assert!((2..=3).contains(&stats.sends), "{driver}: {} sends", stats.sends);
            }
        });
    }
}

#[test]
fn more_replies_than_a_batch_holds_come_in_order_and_whole() {
    const DEPTH: usize = 400;
    for content in [Content::Bytes(2000), Content::Bytes(30_000)] {
        let expected = content.bytes();
        on_every_driver(HttpConfig::new(Body::Fixed(content)), async |network| {
            let mut client = network.connect().await;
            for number in 0..DEPTH {
                let method = if number % 7 == 3 { "HEAD" } else { "GET" };
                client.write(format!("{method} /{number} HTTP/1.1\r\nHost: x\r\n\r\n")).await;
            }
            for number in 0..DEPTH {
                let (method, length) =
                    if number % 7 == 3 { (Method::Head, 0) } else { (Method::Get, expected.len()) };
                let response = client.response(method).await.expect("a response");
                assert!(response.content == expected[..length], "reply {number}");
            }
        });
    }
}

#[test]
fn who_reads_as_fast_as_it_is_sent_to_gets_no_more_than_a_share_of_a_turn() {
    const REQUESTS: usize = 30;
    const LARGE_BYTES: usize = 16 << 20;
    const SHARE_BYTES_MAX: u64 = 2 << 20;
    let config = HttpConfig::new(Body::Fixed(Content::Bytes(LARGE_BYTES as u32)));
    on_every_driver(config, async |network| {
        let Some(before) = network.stats() else { return };
        let mut client = network.connect().await;
        client.write(get("/").repeat(REQUESTS)).await;
        assert!(client.discard(REQUESTS * LARGE_BYTES));
        let after = network.stats().expect("as before");
        let share_bytes = (after.bytes_sent - before.bytes_sent) / (after.turns - before.turns).max(1);
        assert!(share_bytes <= SHARE_BYTES_MAX, "{}: {share_bytes} bytes in each turn", network.driver);
    });
}
