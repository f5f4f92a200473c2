//! Tests of slow clients, in virtual time: every limit is exact.

use std::time::Duration;

use weir_engine::{
    Config, Driver,
    time::{Instant, now, sleep, sleep_until},
};
use weir_proto::{content::Content, http1::Method};
use weir_servers::http::{Body, HttpConfig, HttpLogs, Refusal, Timeouts};

use crate::{
    client::{Client, Ending, get},
    rig::{Network, Served, on_sim},
};

/// Deliveries take microseconds; limits are seconds.
const SLACK: Duration = Duration::from_millis(2);

fn serve<T>(body: Body, script: impl AsyncFn(&Network) -> T) -> Served<T> {
    on_sim(Config::for_test(Driver::Sim), HttpConfig::new(body), HttpLogs::default(), script)
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// The server's timeout starts when it has read, and the client's when it has written.
#[track_caller]
fn assert_after(start: Instant, limit: Duration) {
    let took = now().since(start);
    assert!((limit - SLACK..limit + SLACK).contains(&took), "{took:?} instead of {limit:?}");
}

#[track_caller]
fn assert_refused<T>(served: &Served<T>, expected: &[(Refusal, u64)]) {
    assert_eq!(served.http.counters().refusals(), expected);
}

#[test]
fn an_idle_connection_ends_silently_after_its_last_reply() {
    let served = serve(Body::Fixed(Content::Html), async |network| {
        let (mut fresh, start) = (network.connect().await, now());
        fresh.expect_end().await;
        assert_after(start, Timeouts::default().idle);
        let mut client = network.connect().await;
        for _ in 0..5 {
            client.ask(Method::Get, get("/")).await;
            // Each request restarts the timeout.
            sleep(seconds(50)).await;
        }
        client.ask(Method::Get, get("/")).await;
        let last = now();
        client.expect_end().await;
        assert_after(last, Timeouts::default().idle);
    });
    assert_eq!(served.http.counters().idle_closed(), 2);
    assert_eq!(served.http.counters().requests(), 6);
    assert_refused(&served, &[]);
}

/// Sends a byte a second until there is an answer; returns the time of the first byte.
async fn drip(client: &mut Client, bytes: &[u8], until: Duration) -> Instant {
    let start = now();
    for (second, byte) in bytes.iter().enumerate() {
        if now().since(start) >= until {
            break;
        }
        client.write([*byte]).await;
        sleep_until(start + seconds(second as u64 + 1)).await;
    }
    start
}

#[test]
fn a_head_that_drips_is_refused_when_its_whole_time_is_over() {
    let served = serve(Body::Fixed(Content::Html), async |network| {
        let mut client = network.connect().await;
        // The time before the first byte does not count.
        sleep(seconds(55)).await;
        let limit = Timeouts::default().head;
        let start = drip(&mut client, get("/slowly").as_bytes(), limit - SLACK).await;
        let reply = client.response(Method::Get).await.expect("a refusal");
        assert_after(start, limit);
        assert_eq!((reply.status, reply.header("connection")), (408, Some("close")));
        client.expect_end().await;
        // The same after an earlier request on the connection.
        let mut client = network.connect().await;
        client.write(format!("{}GET", get("/"))).await;
        let start = now();
        assert_eq!(client.response(Method::Get).await.expect("a response").status, 200);
        assert_eq!(client.response(Method::Get).await.expect("a refusal").status, 408);
        assert_after(start, limit);
    });
    assert_refused(&served, &[(Refusal::HeadLate, 2)]);
}

#[test]
fn content_that_drips_is_refused_and_content_that_flows_slowly_is_not() {
    let served = serve(Body::Fixed(Content::Html), async |network| {
        let limit = Timeouts::default().content;
        let mut client = network.connect().await;
        client.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n").await;
        let start = drip(&mut client, &[b'x'; 99], limit - SLACK).await;
        let reply = client.response(Method::Post).await.expect("a refusal");
        assert_after(start, limit);
        assert_eq!(reply.status, 408);
        assert!(String::from_utf8_lossy(&reply.content).contains("took too long"));
        client.expect_end().await;

        const PIECE_BYTES: usize = 256 << 10;
        let mut client = network.connect().await;
        client
            .write(format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", 6 * PIECE_BYTES))
            .await;
        for _ in 0..6 {
            sleep(limit - seconds(1)).await;
            client.write(vec![b'x'; PIECE_BYTES]).await;
        }
        assert_eq!(client.response(Method::Post).await.expect("a response").status, 200);
    });
    assert_refused(&served, &[(Refusal::ContentLate, 1)]);
}

#[test]
fn a_reply_that_has_begun_is_cut_off_and_not_followed_by_another() {
    let served = serve(Body::Echo, async |network| {
        let mut client = network.connect().await;
        client.write("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n").await;
        let start = now();
        let (bytes, ending) = client.rest().await;
        assert_after(start, Timeouts::default().content);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\n3\r\nabc\r\n"), "{text}");
        assert_eq!((text.matches("HTTP/1.1").count(), ending), (1, Ending::End));
    });
    assert_refused(&served, &[(Refusal::ContentLate, 1)]);
}

#[test]
fn a_client_that_reads_nothing_is_let_go_and_others_do_not_wait_for_it() {
    const LARGE: Content = Content::Bytes(1 << 20);
    let served = serve(Body::Fixed(LARGE), async |network| {
        let mut mute = network.connect().await;
        let start = now();
        mute.write(get("/").repeat(3)).await;
        let mut other = network.connect().await;
        for _ in 0..10 {
            let asked = now();
            assert_eq!(other.ask(Method::Get, get("/")).await.content.len(), 1 << 20);
            assert!(now().since(asked) < seconds(1));
        }
        let refused = |network: &Network| network.http.counters().refusals() == [(Refusal::ReplyNotTaken, 1)];
        network.until(refused).await;
        let took = now().since(start);
        assert!((seconds(30)..seconds(31)).contains(&took), "{took:?}");
        // The engine's linger is over too: queued bytes are lost, with a reset.
        sleep(seconds(6)).await;
        assert!(matches!(mute.response(Method::Get).await, Err(Ending::Reset)));
    });
    assert_refused(&served, &[(Refusal::ReplyNotTaken, 1)]);
}

#[test]
fn who_reads_slowly_but_steadily_gets_everything_and_is_served_on() {
    const LARGE_BYTES: usize = 4 << 20;
    const PIECE_BYTES: usize = 256 << 10;
    let served = serve(Body::Fixed(Content::Bytes(LARGE_BYTES as u32)), async |network| {
        let mut slow = network.connect().await;
        slow.write(get("/")).await;
        let start = now();
        for piece in 1..=LARGE_BYTES / PIECE_BYTES {
            sleep(seconds(20)).await;
            slow.take_in(piece * PIECE_BYTES).await;
        }
        assert!(now().since(start) > Timeouts::default().idle * 5);
        assert_eq!(slow.response(Method::Get).await.expect("a response").content.len(), LARGE_BYTES);
        sleep(seconds(20)).await;
        assert_eq!(slow.ask(Method::Get, get("/")).await.content.len(), LARGE_BYTES);
    });
    assert_refused(&served, &[]);
    assert_eq!(served.http.counters().idle_closed(), 0);
}

#[test]
fn a_short_pause_between_requests_is_not_the_time_to_take_a_reply() {
    let timeouts = Timeouts { idle: seconds(3), ..Timeouts::default() };
    let config = HttpConfig { timeouts, ..HttpConfig::new(Body::Fixed(Content::Image)) };
    let image = Content::Image.bytes();
    let script = async |network: &Network| {
        let mut slow = network.connect().await;
        for _ in 0..2 {
            slow.write(get("/")).await;
            sleep(timeouts.content - seconds(1)).await;
            assert!(slow.response(Method::Get).await.expect("a response").content == image);
        }
        let last = now();
        slow.expect_end().await;
        assert_after(last, timeouts.idle);
        // A client that never takes a reply has the time limit for content.
        let (mut mute, start) = (network.connect().await, now());
        mute.write(get("/")).await;
        network.until(|network| !network.http.counters().refusals().is_empty()).await;
        assert_after(start, timeouts.content);
    };
    let served = on_sim(Config::for_test(Driver::Sim), config, HttpLogs::default(), script);
    assert_refused(&served, &[(Refusal::ReplyNotTaken, 1)]);
    assert_eq!(served.http.counters().idle_closed(), 1);
}

#[test]
fn the_last_reply_of_a_connection_has_the_time_of_every_other() {
    let config = HttpConfig { requests_max: 3, ..HttpConfig::new(Body::Fixed(Content::Bytes(1 << 20))) };
    let script = async |network: &Network| {
        let last = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        let asked_and_answered = [
            (last.to_owned(), 1, false),
            // Half-closed behind the request.
            (get("/"), 1, true),
            // More requests than are answered.
            (get("/").repeat(4), 3, false),
            (format!("{}BREW", get("/").repeat(2)), 2, true),
        ];
        for (asked, answered, ends) in asked_and_answered {
            let mut slow = network.connect().await;
            slow.write(asked).await;
            if ends {
                slow.shutdown().await;
            }
            for piece in 1..=answered * 4 {
                // Longer than the engine's linger and this server's own.
                sleep(seconds(20)).await;
                slow.take_in(piece << 18).await;
            }
            for _ in 0..answered {
                let reply = slow.response(Method::Get).await.expect("a response");
                assert_eq!(reply.content.len(), 1 << 20);
            }
            slow.expect_end().await;
        }
    };
    let served = on_sim(Config::for_test(Driver::Sim), config, HttpLogs::default(), script);
    assert_eq!(served.connections_cut, 0);
}

#[test]
fn a_reply_that_stays_queued_is_no_idle_connection() {
    let served = serve(Body::Fixed(Content::Image), async |network| {
        let mut mute = network.connect().await;
        mute.write(get("/")).await;
        let start = now();
        network.until(|network| !network.http.counters().refusals().is_empty()).await;
        let took = now().since(start);
        assert!((seconds(60)..seconds(61)).contains(&took), "{took:?}");
    });
    assert_refused(&served, &[(Refusal::ReplyNotTaken, 1)]);
    assert_eq!(served.http.counters().idle_closed(), 0);
}

#[test]
fn a_refused_client_that_does_not_go_is_waited_for_only_a_while() {
    let served = serve(Body::Fixed(Content::Html), async |network| {
        let mut client = network.connect().await;
        let start = now();
        let reply = client.ask(Method::Get, "BREW / HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert_eq!(reply.status, 501);
        // It continues to send, and is read, until the time is up.
        while client.try_write(&[b'x'; 100]).await.is_ok() {
            sleep(Duration::from_millis(50)).await;
        }
        let took = now().since(start);
        assert!((seconds(2)..seconds(3)).contains(&took), "{took:?}");
    });
    assert_eq!(served.http.counters().refusals().len(), 1);
}
