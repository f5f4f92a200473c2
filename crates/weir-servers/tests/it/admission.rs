//! Tests of connection limits: a connection beyond a limit gets a reply, is closed, and is counted; the others
//! continue.

use weir_engine::Driver;
use weir_proto::{content::Content, http1::Method};
use weir_servers::http::{Body, HttpConfig, HttpLogs, Refusal};

use crate::{
    client::{Client, get},
    rig::{Network, on_driver},
};

const CONNECTIONS_MAX: usize = 3;

async fn connect_and_ask(network: &Network) -> Client {
    let mut client = network.connect().await;
    assert_eq!(client.ask(Method::Get, get("/")).await.status, 200);
    client
}

/// One further connection is turned away, and the present ones continue; when one of them has ended there is room
/// again.
fn at_its_limit(config: &HttpConfig, sentence: &str, refusal: Refusal) {
    for driver in Driver::ALL {
        let served = on_driver(driver, config.clone(), HttpLogs::default(), async |network| {
            let mut clients = Vec::new();
            for _ in 0..CONNECTIONS_MAX {
                clients.push(connect_and_ask(network).await);
            }
            for _ in 0..2 {
                let mut late = network.connect().await;
                let refused = late.response(Method::Get).await.expect("a word");
                assert_eq!((refused.status, refused.header("connection")), (503, Some("close")), "{driver}");
                let text = String::from_utf8(refused.content).expect("text");
                assert_eq!(text, format!("503 Service Unavailable: {sentence}\n"), "{driver}");
                late.expect_end().await;
            }
            for client in &mut clients {
                assert_eq!(client.ask(Method::Get, get("/")).await.status, 200, "{driver}");
            }
            let mut leaves = clients.remove(0);
            leaves.ask(Method::Get, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
            leaves.expect_end().await;
            // Its place becomes free when its handler has ended, a moment later.
            let mut tries = 0;
            loop {
                tries += 1;
                let mut client = network.connect().await;
                let _ = client.try_write(get("/").as_bytes()).await;
                match client.response(Method::Get).await {
                    Ok(reply) if reply.status == 200 => break,
                    _ => assert!(tries < 1000, "{driver}: there is no room again"),
                }
            }
            tries - 1
        });
        let Some(served) = served else { continue };
        let refusals = served.http.counters().refusals();
        assert_eq!(refusals, [(refusal, 2 + served.value)], "{driver}");
    }
}

#[test]
fn one_connection_too_many_is_turned_away_with_a_word() {
    let config =
        HttpConfig { connections_max: CONNECTIONS_MAX, ..HttpConfig::new(Body::Fixed(Content::Html)) };
    at_its_limit(&config, "too many connections", Refusal::TooManyConnections);
}

#[test]
fn one_connection_too_many_of_one_client_is_turned_away_with_a_word() {
    let config = HttpConfig {
        client_connections_max: Some(CONNECTIONS_MAX),
        ..HttpConfig::new(Body::Fixed(Content::Html))
    };
    at_its_limit(&config, "too many connections of one client", Refusal::TooManyOfClient);
}
