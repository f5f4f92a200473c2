//! Abusive clients, all on one thread: heads that arrive byte by byte, heads without an end, clients that never read
//! their replies, bytes that are not HTTP. They are few and paced, so that their cost to the server is measurable and
//! their own cost to this machine is small.

use std::{
    collections::VecDeque,
    io::{self, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Time between two actions.
const TICK: Duration = Duration::from_millis(10);

/// Connections that send their head byte by byte, each one byte a second.
const DRIPPING: usize = 100;

/// Connections that send requests and never read.
const MUTE: usize = 50;

/// If a server has refused nothing after this many ticks, the clients have no effect.
const PATIENCE_TICKS: u64 = 500;

/// One head without an end every this many ticks.
const ENDLESS_EVERY: u64 = 5;

/// Length written of a head without an end: more than any server accepts.
const ENDLESS_BYTES: usize = 64 << 10;

/// Refused connections that are kept open, so that the clients do not disconnect at once.
const KEPT: usize = 100;

/// Connecting takes a second or more if the kernel had to retransmit the SYN.
const CONNECT_MAX: Duration = Duration::from_secs(3);

/// Invalid requests, sent in turn.
const FAULTS: [&[u8]; 6] = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    b"GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
];

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

const HEAD_BEGUN: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nX: ";

/// Counts of their actions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deeds {
    /// Connections opened.
    pub(crate) opened: u64,
    /// Connections that the server answered with an error or ended, and writes that it did not accept.
    pub(crate) refused: u64,
}

/// Runs the abusive clients until stopped. Clients that do not read send this many requests at once: more than a
/// connection's buffers hold.
///
/// # Errors
/// Fails when the server cannot be reached at the start, or refuses nothing.
pub(crate) fn annoy(
    server: SocketAddr,
    mute_requests: usize,
    ready: impl FnOnce() -> io::Result<()>,
    stop: &AtomicBool,
) -> Result<Deeds, String> {
    let unable = |error: io::Error| format!("the abusive clients cannot connect: {error}");
    let mut deeds = Deeds::default();
    let ask = REQUEST.repeat(mute_requests);
    let mut dripping = Vec::with_capacity(DRIPPING);
    for _ in 0..DRIPPING {
        dripping.push(open(server, HEAD_BEGUN, &mut deeds).map_err(unable)?);
    }
    let mut mute = Vec::with_capacity(MUTE);
    for _ in 0..MUTE {
        mute.push(open(server, &ask, &mut deeds).map_err(unable)?);
    }
    ready().map_err(|error| format!("no server listens: {error}"))?;
    let endless = [HEAD_BEGUN, &[b'a'; ENDLESS_BYTES]].concat();
    let mut kept = VecDeque::with_capacity(KEPT + 1);
    let mut next = Instant::now();
    for tick in 0_u64.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        if tick > PATIENCE_TICKS && deeds.refused == 0 {
            return Err(format!("the server refused nothing: {deeds:?}"));
        }
        let place = (tick % DRIPPING as u64) as usize;
        if put(&mut dripping[place], b"a", &mut deeds).is_err() {
            // The server has closed this one; if it cannot be reopened now, its next turn retries.
            if let Ok(again) = open(server, HEAD_BEGUN, &mut deeds) {
                dripping[place] = again;
            }
        }
        let fault = FAULTS[(tick % FAULTS.len() as u64) as usize];
        kept.extend(open(server, fault, &mut deeds));
        if tick % ENDLESS_EVERY == 0 {
            kept.extend(open(server, &endless, &mut deeds));
        }
        while kept.len() > KEPT {
            deeds.refused += u64::from(kept.pop_front().is_some_and(is_refused));
        }
        next += TICK;
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    deeds.refused += kept.into_iter().map(|stream| u64::from(is_refused(stream))).sum::<u64>();
    Ok(deeds)
}

/// Whether the server has answered with an error, or has ended the connection.
fn is_refused(mut stream: TcpStream) -> bool {
    let mut begun = [0; 10];
    match stream.read(&mut begun) {
        Ok(0) => true,
        Ok(count) => begun[..count].starts_with(b"HTTP/1.1 4") || begun[..count].starts_with(b"HTTP/1.1 5"),
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

/// A connection on which these bytes were written, as far as the server accepted them.
fn open(server: SocketAddr, bytes: &[u8], deeds: &mut Deeds) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&server, CONNECT_MAX)?;
    stream.set_nonblocking(true)?;
    deeds.opened += 1;
    // A refusal by the server is the purpose of this test.
    let _ = put(&mut stream, bytes, deeds);
    Ok(stream)
}

fn put(stream: &mut TcpStream, bytes: &[u8], deeds: &mut Deeds) -> io::Result<()> {
    match stream.write_all(bytes) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            deeds.refused += 1;
            Ok(())
        }
        Err(error) => {
            deeds.refused += 1;
            Err(error)
        }
        Ok(()) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Read, net::TcpListener};

    use super::*;

    #[test]
    fn it_opens_what_it_says_and_stops_when_told() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let (stop, done) = (AtomicBool::new(false), AtomicBool::new(false));
        let (deeds, first) = thread::scope(|scope| {
            let accepting = scope.spawn(|| {
                let mut held = Vec::new();
                for stream in listener.incoming() {
                    let mut stream = stream.expect("they come");
                    stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("it is new");
                    held.push(stream);
                    stop.store(held.len() > DRIPPING + MUTE, Ordering::Relaxed);
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                }
                held.swap_remove(0)
            });
            let deeds = annoy(address, 3, || Ok(()), &stop);
            done.store(true, Ordering::Relaxed);
            // One more connection wakes the accepting thread.
            let _last = TcpStream::connect(address);
            (deeds, accepting.join().expect("no panic"))
        });
        let deeds = deeds.expect("the server is there");
        assert!(deeds.opened > (DRIPPING + MUTE) as u64, "{deeds:?}");
        assert!(deeds.refused > 0, "an answer with an error is a refusal: {deeds:?}");
        let mut begun = [0; 5];
        (&first).read_exact(&mut begun).expect("a head begins");
        assert_eq!(&begun, b"GET /");
    }
}
