//! Tests of the end of connections: limits, half-closed clients, drains; and the log that has a line for each.

use weir_engine::Driver;
use weir_proto::{
    content::Content,
    http1::{Method, ParseError},
};
use weir_servers::http::{Body, HttpConfig, HttpLogs, Refusal};

use crate::{
    client::{Ending, get},
    rig::{on_driver, on_every_driver, on_every_driver_and_seed},
};

fn html() -> HttpConfig {
    HttpConfig::new(Body::Fixed(Content::Html))
}

#[test]
fn the_last_of_a_limited_number_of_requests_is_told() {
    on_every_driver_and_seed(HttpConfig { requests_max: 3, ..html() }, async |network| {
        for pipelined in [false, true] {
            let mut client = network.connect().await;
            if pipelined {
                client.write(get("/").repeat(5)).await;
            }
            for left in [2, 1, 0] {
                if !pipelined {
                    client.write(get("/")).await;
                }
                let reply = client.response(Method::Get).await.expect("a response");
                assert_eq!(reply.header("connection"), (left == 0).then_some("close"));
            }
            client.expect_end().await;
        }
    });
}

#[test]
fn nothing_behind_a_close_is_answered() {
    on_every_driver(html(), async |network| {
        let mut client = network.connect().await;
        client.write(format!("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n{}", get("/"))).await;
        assert_eq!(
            client.response(Method::Get).await.expect("a response").header("connection"),
            Some("close")
        );
        client.expect_end().await;
    });
}

#[test]
fn a_client_that_ends_its_direction_still_gets_every_reply() {
    on_every_driver_and_seed(HttpConfig::new(Body::Fixed(Content::Image)), async |network| {
        let image = Content::Image.bytes();
        let mut client = network.connect().await;
        client.write(get("/").repeat(5)).await;
        client.shutdown().await;
        for _ in 0..5 {
            assert!(client.response(Method::Get).await.expect("a response").content == image);
        }
        client.expect_end().await;
    });
}

#[test]
fn a_request_that_is_cut_off_is_counted_and_gets_no_reply() {
    for driver in Driver::ALL {
        let served = on_driver(driver, html(), HttpLogs::default(), async |network| {
            for part in
                ["G", "GET / HTTP/1.1\r\n", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc"]
            {
                let mut client = network.connect().await;
                client.write(part).await;
                client.shutdown().await;
                client.expect_end().await;
            }
            // A client that leaves silently, or with a reset, is not an error.
            drop(network.connect().await);
            let mut rude = network.connect().await;
            rude.ask(Method::Get, get("/")).await;
            rude.reset();
        });
        let Some(served) = served else { continue };
        let truncated = (Refusal::Malformed(ParseError::Truncated), 3);
        assert_eq!(served.http.counters().refusals(), [truncated], "{driver}");
        assert_eq!(served.http.counters().requests(), 1, "{driver}");
    }
}

#[test]
fn a_drain_answers_what_was_asked_and_ends_in_order() {
    const REQUESTS: usize = 60;
    let image = Content::Image.bytes();
    on_every_driver(HttpConfig::new(Body::Fixed(Content::Image)), async |network| {
        if network.is_simulated() {
            return;
        }
        let mut idle = network.connect().await;
        idle.ask(Method::Get, get("/")).await;
        let mut busy = network.connect_narrow().await;
        busy.write(get("/").repeat(REQUESTS)).await;
        // The first reply shows that the requests have arrived; most of the others wait for this client now.
        assert!(busy.response(Method::Get).await.expect("a response").content == image);
        network.drain();
        idle.expect_end().await;
        for number in 1..REQUESTS {
            let reply = busy.response(Method::Get).await;
            assert!(reply.is_ok_and(|reply| reply.content == image), "reply {number} of {REQUESTS}");
        }
        assert_eq!(busy.rest().await, (Vec::new(), Ending::End));
    });
}

#[test]
fn the_connection_log_has_a_line_for_each_connection_before_its_first_reply() {
    for driver in Driver::ALL {
        let path = std::env::temp_dir().join(format!("weir-connections-{driver}-{}", std::process::id()));
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&path).expect("a file");
        let logs = HttpLogs { access: None, connections: Some(file.into()) };
        on_driver(driver, html(), logs, async |network| {
            for number in 1..=3 {
                let mut client = network.connect().await;
                client.ask(Method::Get, get("/")).await;
                client.ask(Method::Get, get("/")).await;
                let text = std::fs::read_to_string(&path).expect("it is there");
                assert_eq!(text.lines().count(), number, "{driver}");
                assert!(text.ends_with(&format!(" GMT connection {number}\n")), "{text}");
            }
        });
        std::fs::remove_file(&path).expect("it was made");
    }
}
