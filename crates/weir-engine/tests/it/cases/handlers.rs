//! Handlers and small protocols that several cases use.

use std::{io, os::fd::OwnedFd, time::Duration};

use weir_engine::{net::Stream, time};

use crate::peer::{Network, Peer, PeerBuffers};

/// Echoes everything.
pub async fn echo(stream: Stream) {
    while let Ok(Some(lease)) = stream.recv().await {
        if stream.send(lease).await.is_err() {
            return;
        }
    }
}

/// Splits received bytes at line ends.
#[derive(Debug, Default)]
pub struct Lines {
    received: Vec<u8>,
}

impl Lines {
    /// The next line without its end; `None` at the end of the stream. Half a line before the end is an error.
    pub async fn next(&mut self, stream: &Stream) -> io::Result<Option<String>> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).take(end).collect();
                return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
            }
            match stream.recv().await? {
                Some(lease) => self.received.extend_from_slice(&lease),
                None if self.received.is_empty() => return Ok(None),
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
    }

    /// The next `count` bytes.
    pub async fn bytes(&mut self, stream: &Stream, count: usize) -> io::Result<Vec<u8>> {
        while self.received.len() < count {
            match stream.recv().await? {
                Some(lease) => self.received.extend_from_slice(&lease),
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        Ok(self.received.drain(..count).collect())
    }
}

/// The reply to a line: the line and its length, so that replies differ in size from requests.
pub fn answer(line: &str) -> String {
    format!("{}:{line}\n", line.len())
}

/// Answers each line.
pub async fn answer_lines(stream: Stream) {
    let mut lines = Lines::default();
    while let Ok(Some(line)) = lines.next(&stream).await {
        if stream.send(answer(&line).into_bytes()).await.is_err() {
            return;
        }
    }
}

/// Sets the kernel's send buffer of a fresh connection. The simulator has one option for all connections.
pub fn with_send_buffer(stream: Stream, bytes: usize) -> Stream {
    let descriptor: OwnedFd = stream.into_descriptor().expect("the stream is fresh");
    socket2::SockRef::from(&descriptor).set_send_buffer_size(bytes).expect("SO_SNDBUF can be set");
    Stream::from_descriptor(descriptor).expect("the runtime takes it back")
}

/// Small kernel buffers for a peer.
pub const SMALL: PeerBuffers = PeerBuffers { receive_bytes: Some(16 << 10), send_bytes: Some(16 << 10) };

/// Ping-pongs on an echo connection; returns each round trip in the runtime's time (meaningful on the simulator).
pub async fn ping_pong(peer: &mut Peer, rounds: usize) -> Vec<Duration> {
    let mut times = Vec::with_capacity(rounds);
    for round in 0..rounds {
        let message = format!("ping {round:08}");
        let start = time::now();
        let reply = peer.exchange(message.as_bytes()).await.expect("the echo answers");
        times.push(time::now().since(start));
        assert_eq!(reply, message.as_bytes());
    }
    times
}

/// The value below which `per_cent` of the times lie.
pub fn percentile(times: &mut [Duration], per_cent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * per_cent / 100]
}

/// Returns after a window in which the server should be idle: the number of turns that it took during a timer of the
/// engine. The duration is an observation window, not a timeout: a late end does not fail the test.
pub async fn turns_of_a_quiet_window(network: &Network, observer: &mut Peer) -> u64 {
    let before = network.stats().turns;
    assert_eq!(observer.exchange(b"w").await.expect("the observer answers"), b"w");
    network.stats().turns - before
}

/// Length of the observation window.
pub const WINDOW: Duration = Duration::from_millis(30);

/// Answers each byte after the window, and does nothing in between.
pub async fn observe(stream: Stream, first: Vec<u8>) {
    let mut pending = first;
    loop {
        for byte in pending.drain(..) {
            time::sleep(WINDOW).await;
            if stream.send(vec![byte]).await.is_err() {
                return;
            }
        }
        match stream.recv().await {
            Ok(Some(lease)) => pending.extend_from_slice(&lease),
            _ => return,
        }
    }
}
