//! Valid requests and their replies, on every driver.

use std::time::Duration;

use weir_proto::{content::Content, http1::Method};
use weir_servers::http::{Body, HttpConfig, HttpLogs, LargeContent};

use crate::{
    client::{Response, get},
    rig::{SIM_ZERO_SECONDS, on_every_driver, on_sim},
};

fn fixed(content: Content) -> HttpConfig {
    HttpConfig::new(Body::Fixed(content))
}

#[test]
fn every_path_has_the_same_content_and_head_has_none() {
    for content in
        [Content::Html, Content::Image, Content::Bytes(0), Content::Bytes(64), Content::Bytes(1 << 20)]
    {
        let expected = content.bytes();
        on_every_driver(fixed(content), async |network| {
            let mut client = network.connect().await;
            for target in ["/", "/a/b?c=d", "http://elsewhere/x"] {
                let reply = client.ask(Method::Get, get(target)).await;
                assert_eq!(reply.status, 200);
                assert_eq!(reply.header("content-type"), Some(content.media_type()));
                assert_eq!(reply.header("content-length"), Some(expected.len().to_string().as_str()));
                assert_eq!(reply.header("connection"), None);
                assert!(reply.content == expected, "{content}: {} bytes", reply.content.len());
                assert_eq!(reply.date.len(), 29, "{}", reply.date);
            }
            let head = client.ask(Method::Head, "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n").await;
            assert_eq!((head.status, head.content.len()), (200, 0));
            assert_eq!(head.header("content-length"), Some(expected.len().to_string().as_str()));
            // The content of a request is read and discarded.
            let post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc";
            assert!(client.ask(Method::Post, post).await.content == expected);
            assert!(client.ask(Method::Get, get("/")).await.content == expected);
            client.shutdown().await;
            client.expect_end().await;
        });
    }
}

/// A reply without its date.
fn without_date(reply: Response) -> Response {
    Response { date: String::new(), ..reply }
}

#[test]
fn large_content_is_the_same_wherever_it_lies() {
    const CLOSE: &str = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    const HEAD: &str = "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n";
    // Around the limit for large content, and around the amount sent at a time.
    for bytes in [(32 << 10) - 1, 32 << 10, 151_552, 256 << 10, (256 << 10) + 1, 3 << 20] {
        let content = Content::Bytes(bytes);
        let mut transcripts = Vec::new();
        for large_content in [LargeContent::Memory, LargeContent::PageCache] {
            let config = HttpConfig { large_content, ..fixed(content) };
            transcripts.extend(on_every_driver(config, async |network| {
                // A client that leaves in the middle must not disturb others.
                let mut rude = network.connect_narrow().await;
                rude.write(get("/").repeat(3)).await;
                rude.take_in(20_000).await;
                rude.reset();
                let mut client = network.connect_narrow().await;
                client.write([&get("/"), HEAD, &get("/"), CLOSE].concat()).await;
                let mut replies = Vec::new();
                for method in [Method::Get, Method::Head, Method::Get, Method::Get] {
                    replies.push(without_date(client.response(method).await.expect("a response")));
                }
                client.expect_end().await;
                replies
            }));
        }
        let (_, expected) = &transcripts[0];
        assert!(expected[0].content == content.bytes() && expected[1].content.is_empty());
        for (driver, replies) in &transcripts {
            assert!(replies == expected, "{driver}: {bytes} bytes");
        }
    }
}

#[test]
fn connections_close_when_the_client_or_its_version_says_so() {
    on_every_driver(fixed(Content::Html), async |network| {
        let cases = [
            ("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", Some("close")),
            ("GET / HTTP/1.0\r\n\r\n", Some("close")),
            ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", Some("keep-alive")),
            ("GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n", None),
        ];
        for (request, connection) in cases {
            let mut client = network.connect().await;
            let reply = client.ask(Method::Get, request).await;
            assert_eq!((reply.status, reply.header("connection")), (200, connection), "{request}");
            if connection == Some("close") {
                client.expect_end().await;
            } else {
                assert_eq!(client.ask(Method::Get, request).await.header("connection"), connection);
            }
        }
    });
}

#[test]
fn an_echo_returns_content_in_its_own_framing() {
    let long = vec![b'y'; 300_000];
    on_every_driver(HttpConfig::new(Body::Echo), async |network| {
        let mut client = network.connect().await;
        let reply =
            client.ask(Method::Post, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello").await;
        assert_eq!((reply.header("content-length"), reply.content.as_slice()), (Some("5"), &b"hello"[..]));
        let chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
        let reply =
            client.ask(Method::Post, format!("{chunked}3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: 1\r\n\r\n")).await;
        assert_eq!(reply.header("transfer-encoding"), Some("chunked"));
        assert_eq!(reply.content, b"abcde");
        let reply = client.ask(Method::Get, get("/")).await;
        assert_eq!((reply.header("content-length"), reply.content.len()), (Some("0"), 0));
        let head = "HEAD / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nxy";
        let reply = client.ask(Method::Head, head).await;
        assert_eq!((reply.header("content-length"), reply.content.len()), (Some("2"), 0));
        let put = format!("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", long.len());
        client.write(put).await;
        client.write(&long).await;
        let reply = client.response(Method::Put).await.expect("a response");
        assert!(reply.content == long, "{} bytes", reply.content.len());
    });
}

#[test]
fn a_client_that_waits_to_be_told_is_told_and_one_that_does_not_is_not() {
    for body in [Body::Echo, Body::Fixed(Content::Bytes(5))] {
        on_every_driver(HttpConfig::new(body), async |network| {
            let mut client = network.connect().await;
            let head = "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
            client.write(head).await;
            // Only the interim response can come: it is the condition for writing the rest.
            client.expect_interim().await;
            client.write("hello").await;
            let reply = client.response(Method::Post).await.expect("a response");
            assert_eq!((reply.status, reply.content.len()), (200, 5));
            let reply = client.ask(Method::Post, format!("{head}hello")).await;
            assert_eq!((reply.status, reply.interim.as_slice()), (200, &[][..]), "told although it knew");
        });
    }
}

#[test]
fn a_reply_is_dated_with_the_second_it_was_made_in() {
    let served = on_sim(
        weir_engine::Config::with_driver(weir_engine::Driver::Sim),
        fixed(Content::Html),
        HttpLogs::default(),
        async |network| {
            let mut client = network.connect().await;
            let start_seconds = weir_engine::time::now().as_nanos() / 1_000_000_000;
            let mut dates = Vec::new();
            for _ in 0..3 {
                dates.push(client.ask(Method::Get, get("/")).await.date);
                weir_engine::time::sleep(Duration::from_secs(1)).await;
            }
            (start_seconds, dates)
        },
    );
    let (start_seconds, dates) = served.value;
    let expected: Vec<String> = (0..3)
        .map(|second| weir_proto::http1::date::format(SIM_ZERO_SECONDS + start_seconds + second))
        .map(|date| String::from_utf8(date.to_vec()).expect("ASCII"))
        .collect();
    assert_eq!(dates, expected);
}

#[test]
fn what_says_close_and_goes_on_is_an_experiment() {
    let config = HttpConfig { say_close: true, ..fixed(Content::Html) };
    on_every_driver(config, async |network| {
        let mut client = network.connect().await;
        let both = format!("{}{}", get("/"), get("/"));
        client.write(both).await;
        for _ in 0..2 {
            // A correct decoder accepts no second response: check the bytes.
            let head = client.raw_head().await;
            assert!(head.contains("\r\nConnection: close\r\n"), "{head}");
        }
        let last = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        client.write(last).await;
        client.raw_head().await;
        client.expect_end().await;
    });
}

#[cfg(feature = "lab")]
#[test]
fn a_handler_takes_the_time_it_is_given_for_every_request() {
    let time = Duration::from_millis(2);
    let config = HttpConfig { handler_time: time, ..fixed(Content::Html) };
    let (poll, logs) = (weir_engine::Driver::Poll, HttpLogs::default());
    let served = crate::rig::on_driver(poll, config, logs, async |network| {
        let mut client = network.connect().await;
        let start = weir_engine::time::monotonic();
        client.write(get("/").repeat(5)).await;
        for _ in 0..5 {
            client.response(Method::Get).await.expect("a response");
        }
        weir_engine::time::monotonic().since(start)
    });
    let took = served.expect("poll runs everywhere").value;
    assert!(took >= 5 * time, "{took:?} for five requests");
}
