//! Tests of the end of connections: half-close, close, reset, refusal, linger and drain.

use std::{cell::RefCell, io::ErrorKind, rc::Rc};

use super::*;
use crate::{
    Limits, spawn,
    time::{now, sleep},
};

#[test]
fn after_a_half_close_every_reply_still_arrives() {
    for seed in 0..100 {
        simulate(SimOptions { short_per_mille: 200, ..options(seed) }, async {
            let (client, server) = pair().await;
            spawn(async move {
                let request = read_all(&server).await.unwrap();
                sleep(MILLISECOND).await;
                server.send(request).await.unwrap();
            });
            client.send(pattern_bytes(seed, 5000)).await.unwrap();
            client.shutdown().await.unwrap();
            let reply = read_all(&client).await.unwrap();
            assert!(reply == pattern_bytes(seed, 5000), "seed {seed}");
            assert!(client.recv().await.unwrap().is_none(), "the end stays the end");
        });
    }
}

#[test]
fn nothing_can_be_sent_after_a_half_close() {
    simulate(options(1), async {
        let (client, _server) = pair().await;
        client.shutdown().await.unwrap();
        sleep(MILLISECOND).await;
        let late = match client.send(b"late").await {
            Ok(()) => client.flush().await,
            refused => refused,
        };
        assert_eq!(late.unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_dropped_stream_sends_what_is_queued_before_it_closes() {
    for seed in 0..50 {
        simulate(SimOptions { socket_buffer_bytes: 4096, ..options(seed) }, async {
            let (client, server) = pair().await;
            client.send(pattern_bytes(seed, 100_000)).await.unwrap();
            drop(client);
            let received = read_all(&server).await.unwrap();
            assert!(received == pattern_bytes(seed, 100_000), "seed {seed}: {} bytes", received.len());
        });
    }
}

#[test]
fn an_abort_resets_the_peer_after_what_has_arrived() {
    simulate(options(3), async {
        let (client, server) = pair().await;
        client.send(b"before").await.unwrap();
        client.flush().await.unwrap();
        sleep(MILLISECOND).await;
        client.abort();
        sleep(MILLISECOND).await;
        assert_eq!(&server.recv().await.unwrap().unwrap()[..], b"before");
        for _ in 0..2 {
            assert_eq!(server.recv().await.unwrap_err().kind(), ErrorKind::ConnectionReset);
            assert_eq!(server.send(b"x").await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        }
    });
}

#[test]
fn a_reset_never_overtakes_bytes() {
    for seed in 0..100 {
        simulate(options(seed), async {
            let (client, server) = pair().await;
            client.send(b"before").await.unwrap();
            client.flush().await.unwrap();
            client.abort();
            let first = server.recv().await.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert_eq!(first.as_deref(), Some(&b"before"[..]), "seed {seed}");
            assert_eq!(server.recv().await.unwrap_err().kind(), ErrorKind::ConnectionReset, "seed {seed}");
        });
    }
}

#[test]
fn closing_with_unread_bytes_resets_the_peer_and_without_ends_the_stream() {
    simulate(options(3), async {
        let (client, server) = pair().await;
        client.send(b"unread").await.unwrap();
        client.flush().await.unwrap();
        sleep(MILLISECOND).await;
        drop(server);
        assert_eq!(client.recv().await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        let (client, server) = pair().await;
        drop(server);
        assert!(client.recv().await.unwrap().is_none());
    });
}

#[test]
fn sending_to_a_closed_peer_is_answered_with_a_reset() {
    simulate(options(3), async {
        let (client, server) = pair().await;
        drop(server);
        assert!(client.recv().await.unwrap().is_none());
        client.send(b"anybody there?").await.unwrap();
        client.flush().await.unwrap();
        sleep(MILLISECOND).await;
        // The bytes are queued before the kernel is called, as on every driver.
        client.send(b"hello?").await.unwrap();
        assert_eq!(client.flush().await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert_eq!(client.send(b"hello?").await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_fault_resets_both_ends_and_what_arrived_before_is_right() {
    let mut resets = 0;
    for seed in 0..100 {
        simulate(SimOptions { reset_per_mille: 20, ..options(seed) }, async {
            let (client, server) = pair().await;
            let reader = spawn(async move {
                let mut received = Vec::new();
                loop {
                    match server.recv().await {
                        Ok(Some(bytes)) => received.extend_from_slice(&bytes),
                        Ok(None) => return (received, None),
                        Err(error) => return (received, Some(error.kind())),
                    }
                }
            });
            let mut failure = None;
            for piece in pattern_bytes(seed, 40_000).chunks(1000) {
                let sent = match client.send_slice(piece).await {
                    Ok(()) => client.flush().await,
                    refused => refused,
                };
                if let Err(error) = sent {
                    failure = Some(error.kind());
                    break;
                }
            }
            drop(client);
            let (received, seen) = reader.await;
            assert_eq!(failure, seen, "seed {seed}");
            assert!(received == pattern_bytes(seed, received.len()), "seed {seed}");
            match seen {
                None => assert_eq!(received.len(), 40_000, "seed {seed}"),
                Some(kind) => {
                    assert_eq!(kind, ErrorKind::ConnectionReset, "seed {seed}");
                    resets += 1;
                }
            }
        });
    }
    assert!((20..90).contains(&resets), "{resets} of 100 runs were reset");
}

#[test]
fn where_nobody_listens_a_connection_is_refused() {
    simulate(options(1), async {
        for (text, kind) in [
            ("127.0.0.1:7", ErrorKind::ConnectionRefused),
            ("[::1]:7", ErrorKind::ConnectionRefused),
            ("@nobody", ErrorKind::ConnectionRefused),
            ("unix:/weir-simulated/nobody", ErrorKind::NotFound),
        ] {
            assert_eq!(Stream::connect(&address(text)).await.unwrap_err().kind(), kind, "{text}");
        }
        let (listener, bound) = listen();
        let taken = Listener::bind(&bound, Default::default()).unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::AddrInUse);
        drop(listener);
        assert_eq!(Stream::connect(&bound).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn every_kind_of_address_connects_and_knows_its_name() {
    simulate(options(1), async {
        for text in ["127.0.0.1:80", "[::1]:80", "@name", "unix:/weir-simulated/socket"] {
            let listener = Listener::bind(&address(text), Default::default()).unwrap();
            let client = Stream::connect(&address(text)).await.unwrap();
            let server = listener.accept().await.unwrap();
            assert_eq!(server.local_address().unwrap(), address(text));
            let is_tcp = matches!(address(text), Address::Tcp(_));
            assert_eq!(client.local_address().is_ok(), is_tcp, "{text}");
            spawn(echo(server));
            client.send(b"hello").await.unwrap();
            assert_eq!(&client.recv().await.unwrap().unwrap()[..], b"hello", "{text}");
        }
    });
}

#[test]
fn a_real_descriptor_is_refused() {
    simulate(options(1), async {
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let error = Stream::from_descriptor(ours.into()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("no descriptors"), "{error}");
        let (client, _server) = pair().await;
        assert_eq!(client.into_descriptor().unwrap_err().kind(), ErrorKind::Unsupported);
    });
}

#[test]
fn output_that_nobody_takes_is_given_up_after_the_linger_time() {
    let config = Config {
        limits: Limits { linger: MILLISECOND * 700, ..Limits::default() },
        ..config(SimOptions { spurious_per_mille: 0, ..options(1) })
    };
    let runtime = Runtime::new(&config).unwrap();
    runtime.block_on(async {
        let (client, server) = pair().await;
        client.send(vec![7; 200_000]).await.unwrap();
        let start = now();
        drop(client);
        sleep(MILLISECOND * 699).await;
        assert_eq!(runtime.counters().snapshot().closes, 0);
        sleep(MILLISECOND).await;
        assert_eq!(runtime.counters().snapshot().closes, 1);
        let received = Rc::new(RefCell::new(0));
        let error = loop {
            match server.recv().await {
                Ok(Some(bytes)) => *received.borrow_mut() += bytes.len(),
                Ok(None) => panic!("a cut stream must not look whole"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert_eq!(*received.borrow(), 64 << 10);
        assert!(now().since(start) < MILLISECOND * 701);
    });
}

#[test]
fn a_drain_ends_accepting_and_lets_what_has_arrived_be_read() {
    for seed in 0..50 {
        let runtime = Runtime::new(&config(SimOptions { short_per_mille: 200, ..options(seed) })).unwrap();
        let outcome = Rc::new(RefCell::new(Vec::new()));
        let outcomes = Rc::clone(&outcome);
        runtime.block_on(async {
            let (listener, bound) = listen();
            let client = Stream::connect(&bound).await.unwrap();
            let server = listener.accept().await.unwrap();
            client.send(pattern_bytes(seed, 3000)).await.unwrap();
            client.flush().await.unwrap();
            sleep(MILLISECOND).await;
            let accepted = Rc::clone(&outcome);
            spawn(async move {
                let refused = listener.accept().await.unwrap_err();
                accepted.borrow_mut().push((0, format!("{:?}", refused.kind())));
            });
            let idle = Rc::clone(&outcome);
            spawn(async move {
                let nothing = read_all(&client).await.unwrap();
                idle.borrow_mut().push((1, format!("{} bytes", nothing.len())));
            });
            spawn(async move {
                // The server reads only when the drain has begun; the client has not ended its direction.
                sleep(MILLISECOND * 10).await;
                let received = read_all(&server).await.unwrap();
                assert!(received == pattern_bytes(seed, received.len()), "seed {seed}");
                outcome.borrow_mut().push((2, format!("{} bytes", received.len())));
            });
        });
        assert_eq!(runtime.drain(MILLISECOND * 100), 0, "seed {seed}");
        assert_eq!(runtime.counters().snapshot().connections_open, 0, "seed {seed}");
        let mut seen = outcomes.take();
        seen.sort();
        let expected = [(0, "ConnectionAborted"), (1, "0 bytes"), (2, "3000 bytes")];
        assert_eq!(seen, expected.map(|(who, what)| (who, what.to_owned())), "seed {seed}");
    }
}

#[test]
fn a_drain_does_not_reset_a_peer_that_still_sends() {
    let runtime = Runtime::new(&config(options(1))).unwrap();
    let (client, server) = runtime.block_on(pair());
    let sent = runtime.block_on(async { client.send(b"request").await });
    sent.unwrap();
    let done = Rc::new(RefCell::new(0));
    let pieces = Rc::clone(&done);
    runtime.block_on(async {
        sleep(MILLISECOND).await;
        spawn(async move {
            let request = server.recv().await.unwrap().unwrap();
            sleep(MILLISECOND * 5).await;
            server.send(request).await.unwrap();
        });
        spawn(async move {
            for _ in 0..20 {
                sleep(MILLISECOND).await;
                client.send(b"more").await.unwrap();
                client.flush().await.unwrap();
                *pieces.borrow_mut() += 1;
            }
            assert_eq!(read_all(&client).await.unwrap(), b"request");
        });
    });
    assert_eq!(runtime.drain(MILLISECOND * 100), 0);
    assert_eq!(*done.borrow(), 20);
}

#[test]
fn a_drain_does_not_wait_for_a_peer_that_has_everything_and_stays_open() {
    for seed in 0..20 {
        let runtime = Runtime::new(&config(options(seed))).unwrap();
        let (client, server) = runtime.block_on(pair());
        runtime.block_on(async {
            server.send(b"reply").await.unwrap();
            assert_eq!(&*client.recv().await.unwrap().unwrap(), b"reply");
            spawn(async move {
                crate::draining().await;
                drop(server);
            });
        });
        // The client's end remains open.
        assert_eq!(runtime.drain(MILLISECOND * 100), 1, "seed {seed}");
        drop(client);
    }
}

#[test]
fn a_drain_aborts_what_is_left_at_its_deadline() {
    let runtime = Runtime::new(&config(options(1))).unwrap();
    let (stuck, _peer) = runtime.block_on(pair());
    runtime.block_on(async { stuck.send(vec![1; 1 << 20]).await.unwrap() });
    let before = runtime.block_on(async { now() });
    assert_eq!(runtime.drain(MILLISECOND * 50), 2);
    assert_eq!(runtime.block_on(async { now() }).since(before), MILLISECOND * 50);
    let error = runtime.block_on(stuck.send(b"more")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionAborted);
}
