//! Tests of resources that run out and return: accept queues, descriptors, buffers.

use std::{cell::RefCell, io::ErrorKind, net::SocketAddr, rc::Rc};

use super::*;
use crate::{
    BufferOptions,
    net::ListenOptions,
    spawn,
    time::{now, sleep, timeout},
};

fn short_queue() -> ListenOptions {
    ListenOptions { backlog: 1, ..ListenOptions::default() }
}

#[test]
fn a_full_accept_queue_makes_tcp_try_again_after_a_second() {
    simulate(options(1), async {
        let listener = Listener::bind(&address("127.0.0.1:80"), short_queue()).unwrap();
        let start = now();
        let _queued: Vec<Stream> = {
            let mut queued = Vec::new();
            for _ in 0..2 {
                queued.push(Stream::connect(&address("127.0.0.1:80")).await.unwrap());
            }
            queued
        };
        let third = spawn(async { Stream::connect(&address("127.0.0.1:80")).await });
        sleep(MILLISECOND * 500).await;
        assert!(!third.is_finished());
        let _accepted = listener.accept().await.unwrap();
        third.await.unwrap();
        let waited = now().since(start);
        assert!((MILLISECOND * 1000..MILLISECOND * 1001).contains(&waited), "{waited:?}");
    });
}

#[test]
fn a_queue_that_stays_full_ends_in_a_time_out_on_tcp_and_at_once_on_unix() {
    simulate(options(1), async {
        for (text, kind, seconds) in
            [("127.0.0.1:80", ErrorKind::TimedOut, 127), ("@name", ErrorKind::WouldBlock, 0)]
        {
            let _listener = Listener::bind(&address(text), short_queue()).unwrap();
            let _first = Stream::connect(&address(text)).await.unwrap();
            let _second = Stream::connect(&address(text)).await.unwrap();
            let start = now();
            let error = Stream::connect(&address(text)).await.unwrap_err();
            assert_eq!((error.kind(), now().since(start).as_secs()), (kind, seconds), "{text}");
        }
    });
}

#[test]
fn closing_a_listener_resets_who_waits_in_its_queue() {
    simulate(options(1), async {
        let (listener, bound) = listen();
        let client = Stream::connect(&bound).await.unwrap();
        drop(listener);
        assert_eq!(client.recv().await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_connection_nobody_waits_for_is_accepted_later() {
    simulate(options(1), async {
        let (listener, bound) = listen();
        assert!(timeout(MILLISECOND, listener.accept()).await.is_err());
        let client = Stream::connect(&bound).await.unwrap();
        client.send(b"early").await.unwrap();
        client.shutdown().await.unwrap();
        sleep(MILLISECOND).await;
        let server = listener.accept().await.unwrap();
        assert_eq!(read_all(&server).await.unwrap(), b"early");
    });
}

#[test]
fn shared_listeners_all_get_connections() {
    simulate(options(1), async {
        let options = ListenOptions { share_port: true, ..ListenOptions::default() };
        let listeners = [(); 3].map(|()| Listener::bind(&address("127.0.0.1:80"), options).unwrap());
        let mut clients = Vec::new();
        for _ in 0..60 {
            clients.push(Stream::connect(&address("127.0.0.1:80")).await.unwrap());
        }
        for listener in &listeners {
            assert!(timeout(MILLISECOND, listener.accept()).await.is_ok());
        }
    });
}

#[test]
fn accepting_waits_for_a_free_descriptor_and_loses_nobody() {
    let sim = SimOptions { descriptors_max: 40, ..options(2) };
    let runtime = Runtime::new(&config(sim)).unwrap();
    runtime.block_on(async {
        let (listener, bound) = listen();
        spawn(async move {
            while let Ok(stream) = listener.accept().await {
                spawn(echo(stream));
            }
        });
        // 35 clients and the listener leave four descriptors for the server's side.
        let clients = (0..35u64).map(|number| {
            let bound = bound.clone();
            spawn(async move {
                let stream = Stream::connect(&bound).await.unwrap();
                stream.send(pattern_bytes(number, 100)).await.unwrap();
                stream.shutdown().await.unwrap();
                assert_eq!(read_all(&stream).await.unwrap(), pattern_bytes(number, 100));
            })
        });
        for client in clients.collect::<Vec<_>>() {
            client.await;
        }
        let mut held = Vec::new();
        let error = loop {
            match Stream::connect(&bound).await {
                Ok(stream) => held.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::MFILE.raw_os_error()));
    });
    assert!(runtime.counters().snapshot().accepts_starved > 0);
}

#[test]
fn a_starved_accept_costs_ten_looks_a_second() {
    let sim = SimOptions { descriptors_max: 2, spurious_per_mille: 0, ..options(2) };
    let runtime = Runtime::new(&config(sim)).unwrap();
    runtime.block_on(async {
        let (listener, bound) = listen();
        let _client = Stream::connect(&bound).await.unwrap();
        assert!(timeout(MILLISECOND * 1050, listener.accept()).await.is_err());
    });
    // At the start, ten times a second, and once more at the timeout.
    assert_eq!(runtime.counters().snapshot().accepts_starved, 12);
}

#[test]
fn sixty_four_connections_share_eight_buffers() {
    for seed in 0..20 {
        let buffers = BufferOptions { bytes: Some(512), count: Some(8) };
        let runtime = Runtime::new(&Config { buffers, ..config(options(seed)) }).unwrap();
        runtime.block_on(async {
            let mut pairs = Vec::new();
            for number in 0..64u64 {
                pairs.push((number, pair().await));
            }
            let mut tasks = Vec::new();
            for (number, (client, server)) in pairs {
                tasks.push(spawn(async move {
                    let mut received = Vec::new();
                    while let Some(bytes) = server.recv().await.unwrap() {
                        // Holds the buffer for a while, so that the others have none.
                        sleep(MICROSECOND * 20).await;
                        received.extend_from_slice(&bytes);
                    }
                    assert!(received == pattern_bytes(number, 4000), "seed {seed}, connection {number}");
                }));
                tasks.push(spawn(async move {
                    client.send(pattern_bytes(number, 4000)).await.unwrap();
                }));
            }
            for task in tasks {
                task.await;
            }
        });
        assert!(runtime.counters().snapshot().buffers_exhausted > 0, "seed {seed}");
    }
}

#[test]
fn starved_receivers_get_buffers_in_the_order_they_asked() {
    let buffers = BufferOptions { bytes: Some(512), count: Some(1) };
    let sim = SimOptions { spurious_per_mille: 0, ..options(1) };
    let runtime = Runtime::new(&Config { buffers, ..config(sim) }).unwrap();
    runtime.block_on(async {
        let (holder, peer) = pair().await;
        peer.send(b"held").await.unwrap();
        let lease = holder.recv().await.unwrap();
        let order = Rc::new(RefCell::new(Vec::new()));
        let (mut readers, mut clients) = (Vec::new(), Vec::new());
        for number in 0..8 {
            let (client, server) = pair().await;
            client.send(b"x").await.unwrap();
            client.flush().await.unwrap();
            clients.push(client);
            let order = Rc::clone(&order);
            readers.push(spawn(async move {
                let bytes = server.recv().await.unwrap();
                order.borrow_mut().push(number);
                drop(bytes);
            }));
            sleep(MILLISECOND).await;
        }
        assert!(order.borrow().is_empty());
        // The others wait while nothing else happens: giving the buffer back must be enough.
        drop(lease);
        for reader in readers {
            reader.await;
        }
        assert_eq!(order.take(), [0, 1, 2, 3, 4, 5, 6, 7]);
    });
}

#[test]
fn who_comes_new_waits_behind_who_waits_for_a_buffer_already() {
    let buffers = BufferOptions { bytes: Some(512), count: Some(1) };
    let sim = SimOptions { spurious_per_mille: 0, ..options(1) };
    let runtime = Runtime::new(&Config { buffers, ..config(sim) }).unwrap();
    runtime.block_on(async {
        let (greedy, peer) = pair().await;
        let (patient, other) = pair().await;
        peer.send(vec![1; 1000]).await.unwrap();
        other.send(b"x").await.unwrap();
        let first = greedy.recv().await.unwrap();
        let order = Rc::new(RefCell::new(Vec::new()));
        let patient_order = Rc::clone(&order);
        let waits = spawn(async move {
            let _bytes = patient.recv().await.unwrap();
            patient_order.borrow_mut().push("patient");
        });
        sleep(MILLISECOND).await;
        drop(first);
        let _second = greedy.recv().await.unwrap();
        order.borrow_mut().push("greedy");
        waits.await;
        assert_eq!(order.take(), ["patient", "greedy"]);
    });
}

#[test]
fn output_that_waits_for_a_slow_peer_holds_no_receive_buffers() {
    let buffers = BufferOptions { bytes: Some(512), count: Some(4) };
    let sim = SimOptions { socket_buffer_bytes: 1024, ..options(1) };
    let runtime = Runtime::new(&Config { buffers, ..config(sim) }).unwrap();
    runtime.block_on(async {
        let (slow, server) = pair().await;
        spawn(echo(server));
        // The echo's output fills the network towards a peer that does not read, and then its queue.
        slow.send(vec![1; 6000]).await.unwrap();
        slow.flush().await.unwrap();
        sleep(MILLISECOND).await;
        let (client, server) = pair().await;
        spawn(echo(server));
        client.send(b"hello").await.unwrap();
        let reply = timeout(MILLISECOND, client.recv()).await.expect("a buffer is free");
        assert_eq!(&reply.unwrap().unwrap()[..], b"hello");
    });
}

#[test]
fn a_send_that_waits_for_a_slow_peer_holds_no_receive_buffer() {
    let buffers = BufferOptions { bytes: Some(512), count: Some(1) };
    let sim = SimOptions { socket_buffer_bytes: 1024, ..options(1) };
    let mut config = Config { buffers, ..config(sim) };
    config.limits.output_high_water_bytes = 1000;
    config.limits.output_low_water_bytes = 500;
    let runtime = Runtime::new(&config).unwrap();
    runtime.block_on(async {
        let (slow, server) = pair().await;
        spawn(echo(server));
        spawn(async move {
            slow.send(vec![1; 20_000]).await.unwrap();
            std::future::pending::<()>().await;
        });
        // By then the echo has received bytes that it may not queue.
        sleep(MILLISECOND * 10).await;
        let (client, server) = pair().await;
        spawn(echo(server));
        client.send(b"hello").await.unwrap();
        let reply = timeout(MILLISECOND, client.recv()).await.expect("the buffer is free");
        assert_eq!(&reply.unwrap().unwrap()[..], b"hello");
    });
}

#[test]
fn a_freed_descriptor_is_used_at_once() {
    let sim = SimOptions { descriptors_max: 3, ..options(2) };
    simulate(sim, async {
        let (listener, bound) = listen();
        let first = Stream::connect(&bound).await.unwrap();
        let _second = Stream::connect(&bound).await.unwrap();
        let accepted = spawn(async move {
            let _stream = listener.accept().await.unwrap();
            now()
        });
        sleep(MILLISECOND * 250).await;
        assert!(!accepted.is_finished());
        drop(first);
        let freed_at = now();
        assert_eq!(accepted.await, freed_at);
    });
}

#[test]
fn a_port_may_be_on_its_way_to_several_addresses_and_to_each_of_them_once() {
    simulate(options(1), async {
        let listeners = [listen(), listen()];
        let local: SocketAddr = "127.0.0.2:4000".parse().unwrap();
        let connect = |place: usize| {
            let target = listeners[place].1.clone();
            spawn(async move { Stream::connect_from(&target, local).await })
        };
        // None of them has been answered when the next one starts.
        let (first, again, other) = (connect(0), connect(0), connect(1));
        let (_first, _other) = (first.await.unwrap(), other.await.unwrap());
        assert_eq!(again.await.unwrap_err().kind(), ErrorKind::AddrNotAvailable);
    });
}
