//! TLS on every driver: handshakes, echo, `close_notify`, and peers that break the rules.

use std::{
    convert::Infallible,
    io::{self, ErrorKind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};

use certificate::{NAME, client_config, server_config};
use http_body_util::Full;
use hyper::{Response, body::Bytes, server::conn::http1, service::service_fn};
use rustls::pki_types::ServerName;
use weir_engine::{
    Driver,
    net::{Address, Stream},
    time,
};
use weir_engine_adapters::{
    EngineTimer, WRITE_BYTES_MAX,
    tls::{self, HANDSHAKE_MAX, TlsStream},
};

use crate::{
    family::{Family, Used},
    rig::{Rig, poll_once},
    streams::{echo_in_parts, exchange_in_parts},
};

mod certificate;

on_every_driver!(
    a_megabyte_returns_whole_and_both_sides_close_in_order,
    after_half_close_the_whole_answer_arrives,
    a_stream_that_ends_without_close_notify_is_an_error,
    plain_text_gets_an_alert_and_the_end,
    a_client_that_expects_another_name_ends_the_handshake,
    a_client_that_leaves_in_the_handshake_is_an_error,
    records_that_were_changed_end_the_connection,
    what_the_peer_does_not_read_waits,
    hyper_answers_over_tls,
);

async fn connected(family: Family, address: &Address) -> Used<TlsStream> {
    Used::by(family, connect_as(NAME, address).await.expect("both sides agree"))
}

async fn connect_as(name: &str, address: &Address) -> io::Result<TlsStream> {
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let stream = Stream::connect(address).await.expect("the server accepts");
    tls::connect(client_config(), name, stream).await
}

async fn accepted(family: Family, stream: Stream) -> Used<TlsStream> {
    Used::by(family, tls::accept(server_config(), stream).await.expect("both sides agree"))
}

fn a_megabyte_returns_whole_and_both_sides_close_in_order(rig: &mut Rig) {
    for family in Family::ALL {
        let (ours, mut theirs, pattern) = (rig.random.fork(), rig.random.fork(), rig.pattern.clone());
        let handler = move |stream: Stream| {
            let random = ours.clone();
            async move { echo_in_parts(accepted(family, stream).await, random).await }
        };
        rig.serve(handler, async |address: Address| {
            let mut client = connected(family, &address).await;
            exchange_in_parts(&mut client, &pattern, &mut theirs, 1 << 20).await;
            client.close().await.expect("the server receives");
            // An end without `close_notify` would be an error.
            assert_eq!(client.read_to_end().await.expect("the server ends in order"), b"");
            assert_eq!(client.read(&mut [0]).await.expect("the end stays"), 0);
        });
    }
}

fn after_half_close_the_whole_answer_arrives(rig: &mut Rig) {
    let handler = async |stream: Stream| {
        let mut stream = accepted(Family::Tokio, stream).await;
        let question = stream.read_to_end().await.expect("the client sends");
        stream.write_all(&question).await.expect("the client receives");
        stream.close().await.expect("the client receives");
        stream.close().await.expect("a second close has nothing to do");
        let error = stream.write_all(b"late").await.expect_err("our direction has ended");
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    };
    let pattern = rig.pattern.clone();
    rig.serve(handler, async |address: Address| {
        let mut client = connected(Family::Tokio, &address).await;
        client.write_all(&pattern.bytes(0, 300_000)).await.expect("the server receives");
        client.close().await.expect("the server receives");
        let answer = client.read_to_end().await.expect("the server answers");
        pattern.check(0, &answer);
        assert_eq!(answer.len(), 300_000);
    });
}

fn a_stream_that_ends_without_close_notify_is_an_error(rig: &mut Rig) {
    let handler = async |stream: Stream| {
        let mut stream = accepted(Family::Futures, stream).await;
        let mut received = [0; 10];
        assert_eq!(stream.read(&mut received).await.expect("the client sends"), 4);
        for _ in 0..2 {
            let error = stream.read(&mut received).await.expect_err("the stream is cut");
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        }
    };
    rig.serve(handler, async |address: Address| {
        let mut client = connected(Family::Futures, &address).await;
        client.write_all(b"half").await.expect("the server receives");
        client.flush().await.expect("the server receives");
        client.io.get_ref().shutdown().await.expect("the server receives");
        assert_eq!(client.read(&mut [0]).await.expect_err("so is ours").kind(), ErrorKind::UnexpectedEof);
    });
}

fn plain_text_gets_an_alert_and_the_end(rig: &mut Rig) {
    let handler = async |stream: Stream| {
        let error = tls::accept(server_config(), stream).await.expect_err("this is no TLS");
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    };
    rig.serve(handler, async |address: Address| {
        let client = Stream::connect(&address).await.expect("the server accepts");
        client.send(&b"GET / HTTP/1.1\r\nHost: weir\r\n\r\n"[..]).await.expect("the server receives");
        let mut answer = Vec::new();
        while let Some(lease) = client.recv().await.expect("the connection is not reset") {
            answer.extend_from_slice(&lease);
        }
        // A record of type 21 with two bytes: a fatal alert.
        assert!(matches!(answer[..], [21, 3, _, 0, 2, 2, _]), "{answer:?}");
    });
}

fn a_client_that_expects_another_name_ends_the_handshake(rig: &mut Rig) {
    let handler = async |stream: Stream| {
        let error = tls::accept(server_config(), stream).await.expect_err("the client refuses");
        assert!(error.to_string().contains("alert"), "{error}");
    };
    rig.serve(handler, async |address: Address| {
        let error = connect_as("other.test", &address).await.expect_err("the certificate has another name");
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    });
}

fn a_client_that_leaves_in_the_handshake_is_an_error(rig: &mut Rig) {
    let handler = async |stream: Stream| {
        let error = tls::accept(server_config(), stream).await.expect_err("the client leaves");
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{error}");
    };
    rig.serve(handler, async |address: Address| {
        let parts: [&[u8]; 3] = [&[], &[22, 3, 1], &[22, 3, 1, 0, 10, 1]];
        for part in parts {
            let client = Stream::connect(&address).await.expect("the server accepts");
            client.send_slice(part).await.expect("the server receives");
            client.shutdown().await.expect("the server receives");
            assert!(client.recv().await.expect("the connection is not reset").is_none());
        }
    });
}

fn records_that_were_changed_end_the_connection(rig: &mut Rig) {
    let handler = async |stream: Stream| {
        let mut stream = accepted(Family::Hyper, stream).await;
        for _ in 0..2 {
            let error = stream.read(&mut [0; 100]).await.expect_err("nobody has this key");
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
        }
        stream.write_all(b"too late").await.expect_err("the connection is over");
    };
    let mut record = vec![23, 3, 3, 0, 100];
    record.extend_from_slice(&rig.pattern.bytes(0, 100));
    rig.serve(handler, async |address: Address| {
        let mut client = connected(Family::Hyper, &address).await;
        client.io.get_ref().send_slice(&record).await.expect("the server receives");
        client.io.get_ref().flush().await.expect("the server receives");
        let error = client.read(&mut [0; 10]).await.expect_err("the server sends an alert");
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    });
}

/// The client reads nothing until a write of the server waits.
fn what_the_peer_does_not_read_waits(rig: &mut Rig) {
    const HIGH_WATER: usize = 100_000;
    rig.config.limits.output_high_water_bytes = HIGH_WATER;
    rig.config.limits.output_low_water_bytes = HIGH_WATER / 4;
    let has_waited = Arc::new(AtomicBool::new(false));
    let (flag, pattern) = (Arc::clone(&has_waited), rig.pattern.clone());
    let handler = move |stream: Stream| {
        let (flag, pattern) = (Arc::clone(&flag), pattern.clone());
        async move {
            let mut stream = accepted(Family::Tokio, stream).await;
            let mut offset = 0;
            while offset < 1 << 20 || !flag.load(SeqCst) {
                let bytes = pattern.bytes(offset, 3 * WRITE_BYTES_MAX);
                let parts = [io::IoSlice::new(&bytes)];
                let written = std::future::poll_fn(|context| {
                    let outcome = stream.poll_write(context, &parts);
                    flag.fetch_or(outcome.is_pending(), SeqCst);
                    outcome
                });
                let written = written.await.expect("the client receives");
                assert!((1..=WRITE_BYTES_MAX).contains(&written), "{written}");
                let queued = stream.io.get_ref().queued_bytes();
                assert!(queued <= HIGH_WATER + WRITE_BYTES_MAX, "{queued} bytes are queued");
                offset += written;
            }
            assert!(
                poll_once(stream.read(&mut [0])).await.is_none(),
                "a read beside it waits for the client"
            );
            stream.close().await.expect("the client receives");
        }
    };
    let pattern = rig.pattern.clone();
    rig.serve(handler, async |address: Address| {
        let mut client = connected(Family::Tokio, &address).await;
        rig.until(&has_waited).await;
        let all = client.read_to_end().await.expect("the server sends");
        pattern.check(0, &all);
        assert!(all.len() >= 1 << 20);
    });
}

fn hyper_answers_over_tls(rig: &mut Rig) {
    let handler = async |stream: Stream| {
        let stream = tls::accept(server_config(), stream).await.expect("both sides agree");
        let service = service_fn(async |request: hyper::Request<hyper::body::Incoming>| {
            let path = request.uri().path().to_owned();
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(path))))
        });
        let mut builder = http1::Builder::new();
        builder.timer(EngineTimer::new());
        builder.serve_connection(stream, service).await.expect("the client is correct");
    };
    rig.serve(handler, async |address: Address| {
        let mut client = connected(Family::Tokio, &address).await;
        for end in ["\r\n\r\n", "\r\nConnection: close\r\n\r\n"] {
            client
                .write_all(format!("GET /over/tls HTTP/1.1\r\nHost: weir{end}").as_bytes())
                .await
                .expect("it reads");
        }
        let answers = client.read_to_end().await.expect("the server ends in order");
        let answers = String::from_utf8(answers).expect("text");
        assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2, "{answers}");
        assert_eq!(answers.matches("/over/tls").count(), 2, "{answers}");
    });
}

/// A client that sends nothing has the time of a handshake.
#[test]
fn a_silent_client_ends_at_the_limit() {
    crate::rig::run("sim", |rig| {
        assert_eq!(rig.driver, Driver::Sim, "ten seconds of virtual time");
        let handler = async |stream: Stream| {
            let begin = time::now();
            let error = tls::accept(server_config(), stream).await.expect_err("the client is silent");
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            assert!(time::now().since(begin) >= HANDSHAKE_MAX);
        };
        rig.serve(handler, async |address: Address| {
            let client = Stream::connect(&address).await.expect("the server accepts");
            assert!(client.recv().await.expect("the server ends").is_none());
        });
    });
}
