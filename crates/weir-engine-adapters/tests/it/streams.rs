//! Bytes in order through each family of traits: partial reads and writes, half-close, backpressure, dropped streams.

use std::{
    future::poll_fn,
    io::{ErrorKind, IoSlice},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::Poll,
    time::Duration,
};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use weir_engine::{
    Driver,
    net::{Address, Stream},
    spawn,
};
use weir_engine_adapters::{EngineIo, WRITE_BYTES_MAX};

use crate::{
    family::{Family, Used},
    random::{Pattern, Random},
    rig::{Rig, poll_once},
};

on_every_driver!(
    random_partial_reads_and_writes_lose_no_byte,
    after_half_close_the_whole_answer_arrives,
    the_end_and_errors_stay,
    a_slow_reader_bounds_what_is_queued,
    a_close_sends_everything_first,
    a_dropped_stream_with_pending_operations_sends_what_it_took,
    two_tasks_use_the_halves_of_a_stream,
    unread_bytes_go_to_the_next_owner,
);

/// Most bytes that a client has sent and not received back: less than the buffers between both sides hold.
const WINDOW_BYTES: usize = 32 << 10;

/// Returns what it receives, in reads and writes of random sizes.
pub async fn echo_in_parts<T>(mut stream: Used<T>, mut random: Random)
where
    T: futures_io::AsyncRead + futures_io::AsyncWrite + tokio::io::AsyncRead + tokio::io::AsyncWrite,
    T: hyper::rt::Read + hyper::rt::Write + Unpin,
{
    let mut buffer = vec![0; 9000];
    loop {
        let maximum = random.between(1, buffer.len());
        let count = stream.read(&mut buffer[..maximum]).await.expect("the client sends");
        let mut rest = &buffer[..count];
        if rest.is_empty() {
            return stream.close().await.expect("the client receives");
        }
        while !rest.is_empty() {
            let (first, second) = rest.split_at(random.between(0, rest.len()));
            let parts = [IoSlice::new(first), IoSlice::new(&[]), IoSlice::new(second)];
            let written = stream.write(&parts).await.expect("the client receives");
            rest = &rest[written..];
        }
        if random.one_in(20) {
            stream.flush().await.expect("the client receives");
        }
    }
}

/// Sends `total` bytes of the pattern in random parts, and checks that each one returns once and in order.
pub async fn exchange_in_parts<T>(stream: &mut Used<T>, pattern: &Pattern, random: &mut Random, total: usize)
where
    T: futures_io::AsyncRead + futures_io::AsyncWrite + tokio::io::AsyncRead + tokio::io::AsyncWrite,
    T: hyper::rt::Read + hyper::rt::Write + Unpin,
{
    let (mut sent, mut returned, mut buffer) = (0, 0, vec![0; 9000]);
    while returned < total {
        if sent < total && sent - returned < WINDOW_BYTES {
            let bytes = pattern.bytes(sent, random.between(1, 4000).min(total - sent));
            let (first, second) = bytes.split_at(random.between(0, bytes.len()));
            sent += match random.one_in(2) {
                true => stream.write(&[IoSlice::new(&bytes)]).await,
                false => stream.write(&[IoSlice::new(first), IoSlice::new(second)]).await,
            }
            .expect("the server receives");
        } else {
            let maximum = random.between(1, buffer.len());
            let count = stream.read(&mut buffer[..maximum]).await.expect("the server answers");
            assert!(count > 0, "the end after {returned} bytes");
            pattern.check(returned, &buffer[..count]);
            returned += count;
        }
    }
}

fn random_partial_reads_and_writes_lose_no_byte(rig: &mut Rig) {
    for family in Family::ALL {
        let (ours, mut theirs, pattern) = (rig.random.fork(), rig.random.fork(), rig.pattern.clone());
        let handler = move |stream: Stream| echo_in_parts(Used::accepted(family, stream), ours.clone());
        rig.serve(handler, async |address: Address| {
            let mut client = Used::connected(family, &address).await;
            exchange_in_parts(&mut client, &pattern, &mut theirs, 512 << 10).await;
            client.close().await.expect("the server receives");
            assert_eq!(client.read_to_end().await.expect("the server ends"), b"");
        });
    }
}

fn after_half_close_the_whole_answer_arrives(rig: &mut Rig) {
    for family in Family::ALL {
        let handler = move |stream: Stream| async move {
            let mut stream = Used::accepted(family, stream);
            let question = stream.read_to_end().await.expect("the client sends");
            stream.write_all(&question).await.expect("the client receives");
            stream.close().await.expect("the client receives");
        };
        let pattern = rig.pattern.clone();
        rig.serve(handler, async |address: Address| {
            let mut client = Used::connected(family, &address).await;
            let question = pattern.bytes(0, 300_000);
            client.write_all(&question).await.expect("the server receives");
            client.close().await.expect("the server receives");
            let answer = client.read_to_end().await.expect("the server answers");
            pattern.check(0, &answer);
            assert_eq!(answer.len(), question.len());
        });
    }
}

/// The client ends its direction after `e`, and resets after the answer to `r`.
async fn the_end_or_a_reset(mut stream: Used<EngineIo>, is_reset: Arc<AtomicBool>) {
    let mut buffer = [0; 10];
    assert_eq!(stream.read(&mut []).await.expect("an empty buffer waits for nothing"), 0);
    assert_eq!(stream.write(&[IoSlice::new(&[])]).await.expect("so does an empty write"), 0);
    assert_eq!(stream.read(&mut buffer).await.expect("the client sends"), 1);
    if buffer[0] == b'r' {
        stream.write_all(b"r").await.expect("the client receives");
        for _ in 0..2 {
            let error = stream.read(&mut buffer).await.expect_err("the client resets");
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        }
        stream.write_all(b"r").await.expect_err("the connection is gone");
        return is_reset.store(true, SeqCst);
    }
    for _ in 0..2 {
        assert_eq!(stream.read(&mut buffer).await.expect("the end is no error"), 0);
    }
    for _ in 0..2 {
        stream.close().await.expect("a second close has nothing to do");
    }
    let error = stream.write_all(b"late").await.expect_err("our direction has ended");
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
}

fn the_end_and_errors_stay(rig: &mut Rig) {
    for family in Family::ALL {
        let is_reset = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_reset);
        let handler =
            move |stream: Stream| the_end_or_a_reset(Used::accepted(family, stream), Arc::clone(&flag));
        rig.serve(handler, async |address: Address| {
            let mut client = Used::connected(family, &address).await;
            client.write_all(b"e").await.expect("the server receives");
            client.close().await.expect("the server receives");
            assert_eq!(client.read_to_end().await.expect("the server ends"), b"");
            let mut client = Used::connected(family, &address).await;
            client.write_all(b"r").await.expect("the server receives");
            assert_eq!(client.read(&mut [0]).await.expect("the server answers"), 1);
            client.io.into_parts().0.abort();
            // A drain would end the read in order.
            rig.until(&is_reset).await;
        });
    }
}

/// The client reads nothing until a write has waited.
fn a_slow_reader_bounds_what_is_queued(rig: &mut Rig) {
    const HIGH_WATER: usize = 100_000;
    rig.config.limits.output_high_water_bytes = HIGH_WATER;
    rig.config.limits.output_low_water_bytes = HIGH_WATER / 4;
    let has_waited = Arc::new(AtomicBool::new(false));
    let (flag, pattern, random) = (Arc::clone(&has_waited), rig.pattern.clone(), rig.random.fork());
    let handler = move |stream: Stream| {
        let (flag, pattern, mut random) = (Arc::clone(&flag), pattern.clone(), random.clone());
        async move {
            let mut stream = Used::accepted(Family::Tokio, stream);
            let mut offset = 0;
            while offset < 1 << 20 || !flag.load(SeqCst) {
                let bytes = pattern.bytes(offset, random.between(1, 3 * WRITE_BYTES_MAX));
                let (first, second) = bytes.split_at(bytes.len() / 3);
                let parts = [IoSlice::new(first), IoSlice::new(second)];
                let written = poll_fn(|context| {
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
            stream.close().await.expect("the client receives");
        }
    };
    let pattern = rig.pattern.clone();
    rig.serve(handler, async |address: Address| {
        let mut client = Used::connected(Family::Tokio, &address).await;
        rig.until(&has_waited).await;
        let all = client.read_to_end().await.expect("the server sends");
        pattern.check(0, &all);
        assert!(all.len() >= 1 << 20);
    });
}

fn a_close_sends_everything_first(rig: &mut Rig) {
    const TOTAL: usize = 1 << 20;
    for family in Family::ALL {
        let pattern = rig.pattern.clone();
        let handler = move |stream: Stream| {
            let bytes = pattern.bytes(0, TOTAL);
            async move {
                let mut stream = Used::accepted(family, stream);
                stream.write_all(&bytes).await.expect("the client receives");
                stream.close().await.expect("the client receives");
                assert_eq!(stream.io.get_ref().queued_bytes(), 0);
            }
        };
        let pattern = rig.pattern.clone();
        rig.serve(handler, async |address: Address| {
            let mut client = Used::connected(family, &address).await;
            let all = client.read_to_end().await.expect("the server sends");
            pattern.check(0, &all);
            assert_eq!(all.len(), TOTAL);
        });
    }
}

fn a_dropped_stream_with_pending_operations_sends_what_it_took(rig: &mut Rig) {
    let (taken, is_dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let (count, flag, pattern) = (Arc::clone(&taken), Arc::clone(&is_dropped), rig.pattern.clone());
    let handler = move |stream: Stream| {
        let (count, flag, pattern) = (Arc::clone(&count), Arc::clone(&flag), pattern.clone());
        async move {
            let mut stream = Used::accepted(Family::Futures, stream);
            assert!(poll_once(stream.read(&mut [0])).await.is_none(), "the client sends nothing");
            let mut offset = 0;
            loop {
                let part = pattern.bytes(offset, WRITE_BYTES_MAX);
                let Some(written) = poll_once(stream.write(&[IoSlice::new(&part)])).await else { break };
                offset += written.expect("the connection stands");
                // The kernel takes a part of it in between.
                weir_engine::time::yield_now().await;
            }
            assert!(poll_once(stream.flush()).await.is_none(), "the client does not read");
            count.store(offset, SeqCst);
            drop(stream);
            flag.store(true, SeqCst);
        }
    };
    let pattern = rig.pattern.clone();
    rig.serve(handler, async |address: Address| {
        let mut client = Used::connected(Family::Futures, &address).await;
        rig.until(&is_dropped).await;
        let all = client.read_to_end().await.expect("the server sends");
        pattern.check(0, &all);
        assert_eq!(all.len(), taken.load(SeqCst), "every byte that a write took arrives");
    });
}

fn two_tasks_use_the_halves_of_a_stream(rig: &mut Rig) {
    if rig.driver == Driver::Blocking {
        return rig.not_applicable("a thread runs one handler and waits for one thing: no second task");
    }
    const TOTAL: usize = 2 << 20;
    let random = rig.random.fork();
    let handler = move |stream: Stream| echo_in_parts(Used::accepted(Family::Tokio, stream), random.clone());
    let pattern = rig.pattern.clone();
    rig.serve(handler, async |address: Address| {
        let stream = EngineIo::new(Stream::connect(&address).await.expect("the server accepts"));
        let (mut reader, mut writer) = tokio::io::split(stream);
        let bytes = pattern.bytes(0, TOTAL);
        let sent = spawn(async move {
            writer.write_all(&bytes).await?;
            writer.shutdown().await
        });
        let mut all = Vec::new();
        reader.read_to_end(&mut all).await.expect("the server answers");
        sent.await.expect("the server receives");
        pattern.check(0, &all);
        assert_eq!(all.len(), TOTAL);
    });
}

fn unread_bytes_go_to_the_next_owner(rig: &mut Rig) {
    let handler = move |stream: Stream| async move {
        let mut stream = EngineIo::new(stream);
        let mut first = [0; 3];
        stream.read_exact(&mut first).await.expect("the client sends");
        let (stream, mut rest) = stream.into_parts();
        while let Some(lease) = stream.recv().await.expect("the client sends") {
            rest.extend_from_slice(&lease);
        }
        assert_eq!((&first, &rest[..]), (b"abc", &b"defgh"[..]));
    };
    rig.serve(handler, async |address: Address| {
        let mut client = Used::connected(Family::Tokio, &address).await;
        client.write_all(b"abcdef").await.expect("the server receives");
        client.flush().await.expect("the server receives");
        client.write_all(b"gh").await.expect("the server receives");
        client.close().await.expect("the server receives");
        assert_eq!(client.read_to_end().await.expect("the server ends"), b"");
    });
}

/// A read that a time limit drops loses nothing.
#[test]
fn a_read_that_is_dropped_loses_no_byte() {
    crate::rig::run("sim_short", |rig| {
        let pattern = rig.pattern.clone();
        let handler = move |stream: Stream| {
            let pattern = pattern.clone();
            async move {
                let mut stream = Used::accepted(Family::Tokio, stream);
                let (mut offset, mut dropped, mut buffer) = (0, 0, [0; 700]);
                loop {
                    let limit = Duration::from_micros(3);
                    match weir_engine::time::timeout(limit, stream.read(&mut buffer)).await {
                        Ok(Ok(0)) => break,
                        Ok(count) => {
                            let count = count.expect("the client sends");
                            pattern.check(offset, &buffer[..count]);
                            offset += count;
                        }
                        Err(_elapsed) => dropped += 1,
                    }
                }
                assert_eq!(offset, 100_000);
                assert!(dropped > 100, "{dropped} reads were dropped");
            }
        };
        let (pattern, mut random) = (rig.pattern.clone(), rig.random.fork());
        rig.serve(handler, async |address: Address| {
            let mut client = Used::connected(Family::Tokio, &address).await;
            let mut offset = 0;
            while offset < 100_000 {
                let part = pattern.bytes(offset, random.between(1, 900).min(100_000 - offset));
                client.write_all(&part).await.expect("the server receives");
                client.flush().await.expect("the server receives");
                weir_engine::time::sleep(Duration::from_micros(random.between(0, 20) as u64)).await;
                offset += part.len();
            }
            client.close().await.expect("the server receives");
            assert_eq!(client.read_to_end().await.expect("the server ends"), b"");
        });
    });
}

/// The pattern of a waker: the last poll's task is woken, and no earlier one.
#[test]
fn only_the_task_of_the_last_poll_is_woken() {
    use std::{
        sync::atomic::AtomicU32,
        task::{Context, Wake, Waker},
    };

    #[derive(Default)]
    struct Counts(AtomicU32);
    impl Wake for Counts {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    crate::rig::run("sim", |rig| {
        let handler = async |stream: Stream| {
            let mut stream = Used::accepted(Family::Tokio, stream);
            let counts: [Arc<Counts>; 2] = Default::default();
            for count in &counts {
                let waker = Waker::from(Arc::clone(count));
                let outcome = stream.poll_read(&mut Context::from_waker(&waker), &mut [0]);
                assert!(outcome.is_pending());
            }
            stream.write_all(b"?").await.expect("the client receives");
            let woken = || counts.each_ref().map(|count| count.0.load(SeqCst));
            while woken()[1] == 0 {
                weir_engine::time::sleep(Duration::from_micros(1)).await;
            }
            assert_eq!(woken()[0], 0, "its waker was replaced");
            assert!(matches!(poll_once(stream.read(&mut [0])).await, Some(Ok(1))));
        };
        rig.config.sim.spurious_per_mille = 0;
        rig.serve(handler, async |address: Address| {
            let mut client = Used::connected(Family::Tokio, &address).await;
            assert_eq!(client.read(&mut [0]).await.expect("the server asks"), 1);
            client.write_all(b"!").await.expect("the server receives");
            assert_eq!(client.read_to_end().await.expect("the server ends"), b"");
        });
    });
}

/// A pending read is ready when it is polled again after its wake-up, whatever was polled between.
#[test]
fn a_write_between_two_polls_of_a_read_changes_nothing() {
    crate::rig::run("sim", |rig| {
        let handler = async |stream: Stream| {
            let mut stream = Used::accepted(Family::Hyper, stream);
            let mut buffer = [0; 4];
            let count = poll_fn(|context| match stream.poll_read(context, &mut buffer) {
                Poll::Pending => {
                    let written = stream.poll_write(context, &[IoSlice::new(b"x")]);
                    assert!(matches!(written, Poll::Ready(Ok(1))));
                    Poll::Pending
                }
                ready => ready,
            });
            assert_eq!(count.await.expect("the client sends"), 4);
            assert_eq!(&buffer, b"pong");
        };
        rig.serve(handler, async |address: Address| {
            let mut client = Used::connected(Family::Hyper, &address).await;
            assert_eq!(client.read(&mut [0]).await.expect("the server sends"), 1);
            client.write_all(b"pong").await.expect("the server receives");
            let rest = client.read_to_end().await.expect("the server ends");
            assert!(rest.iter().all(|byte| *byte == b'x'));
        });
    });
}
