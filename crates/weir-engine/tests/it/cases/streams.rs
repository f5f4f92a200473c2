//! Bytes in order: slow readers, short writes, requests cut and joined in every way, half-close, addresses.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use rustix::net::{SendFlags, sockopt::tcp_congestion};
use weir_engine::{
    net::{Address, Listener, Stream},
    time,
};

use super::{
    handlers::{SMALL, answer, answer_lines, echo, percentile, ping_pong, with_send_buffer},
    moving::connection,
};
use crate::{
    peer::{Ending, PeerBuffers},
    random::Pattern,
    rig::Rig,
};

const CHUNK: usize = 64 << 10;

/// Sends `total` bytes of the pattern; `queued` counts the bytes that the engine has taken so far.
async fn send_pattern(stream: &Stream, pattern: &Pattern, total: usize, queued: &AtomicUsize) {
    let mut offset = 0;
    while offset < total {
        let length = CHUNK.min(total - offset);
        if stream.send(pattern.bytes(offset, length)).await.is_err() {
            return;
        }
        offset += length;
        queued.store(offset, SeqCst);
    }
    // An error comes from the peer, and the script sees it.
    let _ = stream.flush().await;
}

/// Case 1: 1 KB/s for 5 s of a reply, then at full speed.
pub fn slow_reader(rig: &mut Rig) {
    let is_sim = rig.subject.is_sim();
    let total = if is_sim { 64 << 20 } else { rig.size(16 << 20, 64 << 20) };
    rig.config.sim.socket_buffer_bytes = 64 << 10;
    let queued = Arc::new(AtomicUsize::new(0));
    let (pattern, progress) = (rig.pattern.clone(), Arc::clone(&queued));
    let handler = move |stream: Stream| {
        let (pattern, progress) = (pattern.clone(), Arc::clone(&progress));
        async move {
            let stream = if is_sim { stream } else { with_send_buffer(stream, 64 << 10) };
            let Ok(Some(first)) = stream.recv().await else { return };
            if first[0] == b'r' {
                return send_pattern(&stream, &pattern, total, &progress).await;
            }
            // An error shows at the next call.
            let _ = stream.send(first).await;
            echo(stream).await;
        }
    };
    let (pattern, limits) = (rig.pattern.clone(), rig.config.limits);
    // Linux doubles the requested size; the simulator has one buffer each way.
    let kernel_bytes = 2 * (64 << 10) + 2 * (16 << 10) + limits.input_high_water_bytes;
    let bound = 5 * 1024 + kernel_bytes + limits.output_high_water_bytes + 2 * CHUNK;
    let served = rig.serve(handler, async |network| {
        let mut other = network.connect().await;
        let mut unloaded = ping_pong(&mut other, 1000).await;
        let mut slow = network.connect_with(SMALL).await;
        slow.write(b"r").await.expect("the server listens");
        let mut offset = 0;
        let mut loaded = Vec::new();
        for _ in 0..5 {
            let bytes = slow.read_exact(1024).await.expect("the reply goes on");
            pattern.check(offset, &bytes);
            offset += bytes.len();
            loaded.extend(ping_pong(&mut other, 200).await);
            if is_sim {
                time::sleep(Duration::from_secs(1)).await;
            }
            let taken = queued.load(SeqCst);
            assert!(taken <= bound, "{taken} bytes are queued or sent for a reader of {offset}");
        }
        slow.shutdown().await.expect("half of the connection ends");
        let ending = slow
            .read_pieces(|bytes| {
                pattern.check(offset, bytes);
                offset += bytes.len();
            })
            .await;
        assert_eq!((offset, ending), (total, Ending::End));
        for (per_cent, tenths) in [(50, 11), (99, 20)] {
            let (alone, beside) = (percentile(&mut unloaded, per_cent), percentile(&mut loaded, per_cent));
            assert!(
                !is_sim || beside <= alone * tenths / 10,
                "p{per_cent}: {alone:?} alone, {beside:?} beside"
            );
        }
    });
    served.expect_clean();
}

/// Case 2b: a reply is queued without waiting, each time as much as there is room for.
pub fn without_waiting(rig: &mut Rig) {
    const PIECE: usize = 1000;
    const TOTAL: usize = 100 * PIECE;
    const LIMIT: usize = 8 << 10;
    rig.config.limits.output_high_water_bytes = LIMIT;
    rig.config.limits.output_low_water_bytes = LIMIT / 2;
    let pattern = rig.pattern.clone();
    let handler = move |stream: Stream| {
        let pattern = pattern.clone();
        async move {
            let (mut offset, mut together) = (0, 0);
            while offset < TOTAL {
                if stream.try_send_slice(&pattern.bytes(offset, PIECE)).expect("it stands") {
                    (offset, together) = (offset + PIECE, together + PIECE);
                    continue;
                }
                assert!((LIMIT..LIMIT + 2 * PIECE).contains(&together), "{together} bytes at once");
                together = 0;
                // The whole queue leaves.
                stream.flush().await.expect("it stands");
            }
            stream.shutdown().await.expect("it stands");
            assert!(stream.try_send_slice(b"too late").is_err(), "our direction has ended");
        }
    };
    let pattern = rig.pattern.clone();
    let served = rig.serve(handler, async |network| {
        let (reply, ending) = network.connect().await.read_to_end().await;
        pattern.check(0, &reply);
        assert_eq!((reply.len(), ending), (TOTAL, Ending::End));
    });
    served.expect_clean();
}

/// Case 2: the kernel takes a reply in many small parts.
pub fn short_writes(rig: &mut Rig) {
    let (total, is_sim) = (1 << 20, rig.subject.is_sim());
    rig.config.sim.socket_buffer_bytes = 4 << 10;
    let pattern = rig.pattern.clone();
    let handler = move |stream: Stream| {
        let pattern = pattern.clone();
        async move {
            let stream = if is_sim { stream } else { with_send_buffer(stream, 4 << 10) };
            // The whole reply at once: more than any kernel buffer holds.
            if stream.send(pattern.bytes(0, total)).await.is_ok() {
                // An error comes from the peer, and the script sees it.
                let _ = stream.flush().await;
            }
        }
    };
    let pattern = rig.pattern.clone();
    let served = rig.serve(handler, async |network| {
        let buffers = PeerBuffers { receive_bytes: Some(4 << 10), send_bytes: None };
        let mut peer = network.connect_with(buffers).await;
        let mut offset = 0;
        let ending = peer
            .read_pieces(|bytes| {
                pattern.check(offset, bytes);
                offset += bytes.len();
            })
            .await;
        assert_eq!((offset, ending), (total, Ending::End));
    });
    served.expect_clean();
    assert!(served.stats.bytes_sent >= total as u64, "{:?}", served.stats);
    // io_uring and blocking calls wait inside the kernel until everything is taken.
    if rig.subject.is_readiness() || is_sim {
        assert!(served.stats.sends_short > 0, "{:?}", served.stats);
    }
}

/// Case 3: a hundred requests in one segment.
pub fn pipelined_requests(rig: &mut Rig) {
    let requests: Vec<String> =
        (0..100).map(|number| format!("request {number} {}", rig.random.next())).collect();
    let served = rig.serve(answer_lines, async |network| {
        let mut peer = network.connect().await;
        let mut segment = requests.join("\n");
        segment.push('\n');
        peer.write(segment.as_bytes()).await.expect("the server listens");
        let expected: String = requests.iter().map(|line| answer(line)).collect();
        let replies = peer.read_exact(expected.len()).await.expect("every reply");
        assert_eq!(String::from_utf8_lossy(&replies), expected);
    });
    served.expect_clean();
}

/// Case 3: the same, split into single bytes, each in a separate segment.
pub fn split_requests(rig: &mut Rig) {
    let requests: Vec<String> = (0..10).map(|_| format!("{}", rig.random.next())).collect();
    let served = rig.serve(answer_lines, async |network| {
        let mut peer = network.connect().await;
        for request in &requests {
            for byte in format!("{request}\n").bytes() {
                peer.write(&[byte]).await.expect("the server listens");
            }
            let expected = answer(request);
            let reply = peer.read_exact(expected.len()).await.expect("the reply");
            assert_eq!(String::from_utf8_lossy(&reply), expected);
        }
    });
    served.expect_clean();
}

/// List A-14: requests of exactly a buffer, a multiple of it, and one byte more or less.
pub fn exact_sizes(rig: &mut Rig) {
    for fixed in [Some(1024), None] {
        rig.config.buffers.bytes = fixed;
        let pattern = rig.pattern.clone();
        let served = rig.serve(echo, async |network| {
            let mut peer = network.connect().await;
            let unit = fixed.unwrap_or(2048) as usize;
            let sizes = [unit, unit * 2, unit * 4, unit * 16, unit * 64].into_iter();
            for size in sizes.flat_map(|size| [size - 1, size, size + 1]) {
                let reply = peer.exchange(&pattern.bytes(size, size)).await.expect("the echo answers");
                pattern.check(size, &reply);
            }
        });
        served.expect_clean();
        let stats = served.stats;
        if rig.subject.name != "sim_short" {
            assert!(stats.receives_full > 0, "some receive filled its buffer: {stats:?}");
        }
    }
}

/// Connections over TCP on both families, a Unix path and an abstract name.
pub fn addresses(rig: &mut Rig) {
    let path = std::env::temp_dir().join(format!("weir-{}-{:x}.sock", std::process::id(), rig.random.next()));
    let mut addresses = vec![rig.listen.clone(), rig.abstract_address(), Address::Unix(path.clone())];
    let has_ipv6 = std::net::TcpListener::bind("[::1]:0").is_ok();
    addresses.extend(has_ipv6.then(|| "[::1]:0".parse().expect("an address")));
    for address in addresses {
        rig.listen = address;
        let served = rig.serve(echo, async |network| {
            let mut peers = network.connect_many(3).await;
            for (number, peer) in peers.iter_mut().enumerate() {
                let message = format!("hello {number}");
                assert_eq!(peer.exchange(message.as_bytes()).await.expect("an echo"), message.as_bytes());
            }
        });
        served.expect_clean();
    }
    assert!(!path.exists(), "the server removes the path it made");
}

/// Case A14c: a handler reads the peer's address on TCP; a client on a Unix socket has no name.
pub fn other_end(rig: &mut Rig) {
    let mut addresses = vec![rig.listen.clone(), rig.abstract_address()];
    let has_ipv6 = std::net::TcpListener::bind("[::1]:0").is_ok();
    addresses.extend(has_ipv6.then(|| "[::1]:0".parse().expect("an address")));
    for address in addresses {
        rig.listen = address;
        let tells = |stream: Stream| async move {
            let told =
                stream.peer_address().map_or_else(|error| format!("{:?}", error.kind()), |at| at.to_string());
            let _ = stream.send(told.into_bytes()).await;
        };
        let served = rig.serve(tells, async |network| {
            for mut peer in network.connect_many(2).await {
                let expected = peer.address().map_or_else(|| "Unsupported".into(), |at| at.to_string());
                let (told, ending) = peer.read_to_end().await;
                assert_eq!((String::from_utf8_lossy(&told).as_ref(), ending), (&*expected, Ending::End));
            }
        });
        served.expect_clean();
    }
}

/// Case 4: the client has ended its direction; the replies still arrive, then the end.
pub fn half_close(rig: &mut Rig) {
    let length = 1 << 20;
    let (pattern, seed) = (rig.pattern.clone(), rig.seed);
    // Replies only when everything has arrived, so that all of them follow the half-close.
    let handler = move |stream: Stream| {
        let pattern = pattern.clone();
        async move {
            let mut received = 0;
            while let Ok(Some(lease)) = stream.recv().await {
                pattern.check(received, &lease);
                received += lease.len();
            }
            let _ = stream.send(received.to_string().into_bytes()).await;
            // Dropped with bytes queued: they are sent before the connection closes.
            let _ = stream.send(pattern.bytes(received, length)).await;
        }
    };
    let pattern = Pattern::new(seed);
    let served = rig.serve(handler, async |network| {
        for _ in 0..3 {
            let mut peer = network.connect().await;
            peer.write(&pattern.bytes(0, length)).await.expect("the server reads");
            peer.shutdown().await.expect("half of the connection ends");
            let (reply, ending) = peer.read_to_end().await;
            let count = length.to_string();
            assert_eq!(String::from_utf8_lossy(&reply[..count.len()]), count);
            pattern.check(length, &reply[count.len()..]);
            assert_eq!((reply.len(), ending), (length + count.len(), Ending::End));
        }
    });
    served.expect_clean();
}

/// Case 31: a connection that was opened and one that was accepted use the requested congestion control, and an
/// unknown one is named in the error.
pub fn congestion_control(rig: &mut Rig) {
    let asked = |rig: &mut Rig, name: &str| {
        rig.config.congestion_control = Some(name.into());
        rig.runtime()
    };
    // Every kernel has this one, and any user may use it.
    let listen = rig.listen.clone();
    asked(rig, "reno").block_on(async {
        let listener = Listener::bind(&listen, Default::default()).expect("a free port");
        let address = listener.local_address().expect("a listener has an address");
        let opened = Stream::connect(&address).await.expect("it listens");
        let accepted = listener.accept().await.expect("it was there");
        for stream in [opened, accepted] {
            let (descriptor, _) = stream.into_parts().await.expect("nothing is in flight");
            assert_eq!(tcp_congestion(&descriptor).expect("it is TCP"), "reno");
        }
    });
    asked(rig, "no-such").block_on(async {
        let refused = Listener::bind(&listen, Default::default()).expect_err("nobody has it").to_string();
        assert!(refused.contains("no-such") && refused.contains("tcp_available"), "{refused}");
        let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = server.local_addr().expect("a listener has an address").to_string();
        let address = address.parse().expect("an address");
        let refused = Stream::connect(&address).await.expect_err("nobody has it").to_string();
        assert!(refused.contains("no-such"), "{refused}");
    });
}

/// Case 3c: bytes behind urgent data are received, although a receive stops before the urgent byte.
pub fn urgent(rig: &mut Rig) {
    let (ours, peer) = connection();
    rig.runtime().block_on(async {
        let stream = Stream::from_descriptor(ours.into()).expect("there is room");
        // The driver waits before the bytes arrive: one event reports all of them.
        assert!(time::timeout(Duration::from_millis(1), stream.recv()).await.is_err());
        for (bytes, flags) in [(b"one!", SendFlags::OOB), (b"-two", SendFlags::empty())] {
            rustix::net::send(&peer, bytes, flags).expect("it fits");
        }
        let mut received = Vec::new();
        while received.len() < b"one-two".len() {
            let next = time::timeout(Duration::from_secs(5), stream.recv()).await;
            let bytes = next.expect("no byte stays behind").expect("it is open");
            received.extend_from_slice(&bytes.expect("it is open"));
        }
        assert_eq!(received, b"one-two");
    });
}
