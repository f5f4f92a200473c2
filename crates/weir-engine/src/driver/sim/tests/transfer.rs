//! Tests of bytes: exact, in order, bounded, and the same for the same seed.

use std::{
    cell::{Cell, RefCell},
    hash::{DefaultHasher, Hash, Hasher},
    rc::Rc,
};

use super::*;
use crate::{
    spawn,
    time::{now, sleep, timeout, yield_now},
};

#[test]
fn a_megabyte_comes_back_byte_for_byte_under_short_operations() {
    const LENGTH: usize = 1 << 20;
    for seed in 0..200 {
        let sim = SimOptions { short_per_mille: 300, socket_buffer_bytes: 16 << 10, ..options(seed) };
        let runtime = Runtime::new(&config(sim)).unwrap();
        let received = runtime.block_on(async {
            let (client, server) = pair().await;
            let served = spawn(echo(server));
            let client = Rc::new(client);
            let sender = Rc::clone(&client);
            let sent = spawn(async move {
                for piece in pattern_bytes(seed, LENGTH).chunks(10_000) {
                    sender.send_slice(piece).await?;
                }
                sender.shutdown().await
            });
            let received = read_all(&client).await.unwrap();
            sent.await.unwrap();
            served.await.unwrap();
            received
        });
        assert!(received == pattern_bytes(seed, LENGTH), "seed {seed}: {} bytes", received.len());
        let counters = runtime.counters().snapshot();
        assert!(counters.sends_short > 0, "seed {seed}: no send was short");
        assert_eq!(counters.bytes_sent, 2 * LENGTH as u64, "seed {seed}");
        assert_eq!(counters.bytes_received, 2 * LENGTH as u64, "seed {seed}");
    }
}

/// The events of every task and their times, with ten clients that send, pause and read, with faults.
fn transcript(sim: SimOptions) -> (u64, u64) {
    let hasher = Rc::new(RefCell::new(DefaultHasher::new()));
    let runtime = Runtime::new(&config(sim)).unwrap();
    runtime.block_on(async {
        let (listener, bound) = listen();
        spawn(async move {
            while let Ok(stream) = listener.accept().await {
                spawn(echo(stream));
            }
        });
        let clients = (0..10u64).map(|number| {
            let (bound, hasher) = (bound.clone(), Rc::clone(&hasher));
            spawn(async move {
                let note = |what: &[u8]| (number, now(), what).hash(&mut *hasher.borrow_mut());
                let Ok(stream) = Stream::connect(&bound).await else { return note(b"refused") };
                for round in 0..20 {
                    let message = pattern_bytes(number, 500 * round + 1);
                    if let Err(error) = stream.send(message).await {
                        return note(error.to_string().as_bytes());
                    }
                    sleep(MICROSECOND * number as u32 * 10).await;
                    match stream.recv().await {
                        Ok(bytes) => note(bytes.as_deref().unwrap_or(b"end")),
                        Err(error) => return note(error.to_string().as_bytes()),
                    }
                }
            })
        });
        for client in clients.collect::<Vec<_>>() {
            client.await;
        }
    });
    let end = runtime.block_on(async { now() });
    (hasher.borrow().finish(), end.as_nanos())
}

#[test]
fn a_seed_replays_to_the_last_nanosecond_and_another_seed_differs() {
    let faulty = |seed| SimOptions { short_per_mille: 200, reset_per_mille: 3, ..options(seed) };
    let mut seen = std::collections::HashSet::new();
    for seed in 0..20 {
        let first = transcript(faulty(seed));
        assert_eq!(first, transcript(faulty(seed)), "seed {seed}");
        assert!(seen.insert(first), "seed {seed} repeats another one");
    }
}

#[test]
fn a_slow_reader_holds_the_sender_at_the_high_water_mark() {
    const LENGTH: usize = 4 << 20;
    const PIECE: usize = 8 << 10;
    let config = config(options(5));
    let buffer = config.sim.socket_buffer_bytes as usize;
    let bound = config.limits.output_high_water_bytes + PIECE + buffer;
    let runtime = Runtime::new(&config).unwrap();
    runtime.block_on(async {
        let (client, server) = pair().await;
        let accepted = Rc::new(Cell::new(0));
        let counted = Rc::clone(&accepted);
        let sent = spawn(async move {
            for piece in pattern_bytes(5, LENGTH).chunks(PIECE) {
                server.send_slice(piece).await?;
                counted.set(counted.get() + piece.len());
            }
            server.shutdown().await
        });
        let (mut received, mut ahead_max) = (Vec::new(), 0);
        // Slow for a while: one buffer every hundred milliseconds; then as fast as possible.
        while let Some(bytes) = client.recv().await.unwrap() {
            received.extend_from_slice(&bytes);
            ahead_max = ahead_max.max(accepted.get() - received.len());
            if received.len() < LENGTH / 8 {
                sleep(MILLISECOND * 100).await;
            }
        }
        sent.await.unwrap();
        assert!(received == pattern_bytes(5, LENGTH));
        assert!(ahead_max <= bound, "{ahead_max} bytes ahead of the reader, {bound} allowed");
        assert!(ahead_max > bound / 2, "the reader was never slow: {ahead_max} bytes ahead");
    });
    assert!(runtime.counters().snapshot().would_block + runtime.counters().snapshot().sends_short > 0);
}

#[test]
fn a_receive_dropped_by_a_time_limit_loses_nothing() {
    const LENGTH: usize = 40_000;
    for seed in 0..300 {
        let sim = SimOptions { short_per_mille: 100, spurious_per_mille: 200, ..options(seed) };
        simulate(sim, async {
            let (client, server) = pair().await;
            let sent = spawn(async move {
                for piece in pattern_bytes(seed, LENGTH).chunks(97) {
                    server.send_slice(piece).await?;
                    sleep(MICROSECOND * 7).await;
                }
                server.shutdown().await
            });
            let (mut received, mut dropped, mut limit) = (Vec::new(), 0, 1);
            loop {
                limit = limit % 23 + 1;
                match timeout(MICROSECOND * limit, client.recv()).await {
                    Err(_) => dropped += 1,
                    Ok(Ok(Some(bytes))) => received.extend_from_slice(&bytes),
                    Ok(Ok(None)) => break,
                    Ok(Err(error)) => panic!("seed {seed}: {error}"),
                }
            }
            sent.await.unwrap();
            assert!(received == pattern_bytes(seed, LENGTH), "seed {seed}: {} bytes", received.len());
            assert!(dropped > 10, "seed {seed}: only {dropped} receives were dropped");
        });
    }
}

#[test]
fn connections_overtake_each_other_but_never_themselves() {
    let orders: std::collections::HashSet<Vec<usize>> = (0..20)
        .map(|seed| {
            simulate(options(seed), async {
                let order = Rc::new(RefCell::new(Vec::new()));
                let mut readers = Vec::new();
                let mut senders = Vec::new();
                for number in 0..5 {
                    let (client, server) = pair().await;
                    let order = Rc::clone(&order);
                    senders.push(client);
                    readers.push(spawn(async move {
                        let received = read_all(&server).await.unwrap();
                        assert_eq!(received, [1, 2, 3], "seed {seed}");
                        order.borrow_mut().push(number);
                    }));
                }
                for piece in 1..=3u8 {
                    for sender in &senders {
                        sender.send_slice(&[piece]).await.unwrap();
                        sender.flush().await.unwrap();
                    }
                }
                drop(senders);
                for reader in readers {
                    reader.await;
                }
                order.take()
            })
        })
        .collect();
    assert!(orders.len() > 5, "only {} orders in 20 seeds", orders.len());
}

#[test]
fn ten_thousand_connections_each_get_their_own_bytes_back() {
    const CONNECTIONS: u64 = 10_000;
    let runtime = Runtime::new(&config(options(10))).unwrap();
    runtime.block_on(async {
        let (listener, bound) = listen();
        spawn(async move {
            while let Ok(stream) = listener.accept().await {
                spawn(echo(stream));
            }
        });
        let clients = (0..CONNECTIONS).map(|number| {
            let bound = bound.clone();
            spawn(async move {
                let stream = Stream::connect(&bound).await.unwrap();
                stream.send(pattern_bytes(number, 100)).await.unwrap();
                stream.shutdown().await.unwrap();
                read_all(&stream).await.unwrap() == pattern_bytes(number, 100)
            })
        });
        for client in clients.collect::<Vec<_>>() {
            assert!(client.await);
        }
    });
    let counters = runtime.counters().snapshot();
    assert_eq!((counters.accepts, counters.connects), (CONNECTIONS, CONNECTIONS));
    assert_eq!(counters.connections_open, 0);
    assert_eq!(counters.closes, 2 * CONNECTIONS);
}

#[test]
fn events_of_many_connections_come_in_one_turn() {
    let runtime = Runtime::new(&config(options(1))).unwrap();
    runtime.block_on(async {
        let mut pairs = Vec::new();
        for _ in 0..64 {
            pairs.push(pair().await);
        }
        let (clients, servers): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        // All of them wait before anything is sent.
        let receive =
            |server: Stream| async move { server.recv().await.unwrap().map(|bytes| bytes.to_vec()) };
        let receivers: Vec<_> = servers.into_iter().map(|server| spawn(receive(server))).collect();
        yield_now().await;
        for client in &clients {
            client.send(b"x").await.unwrap();
        }
        for receiver in receivers {
            assert_eq!(receiver.await.as_deref(), Some(&b"x"[..]));
        }
    });
    let counters = runtime.counters().snapshot();
    assert!(counters.completions_per_turn_max > 8, "{counters:?}");
}
