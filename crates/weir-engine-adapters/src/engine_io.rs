//! A connection of the engine as a stream of bytes for other libraries.

use std::{
    io::{self, IoSlice},
    task::{Context, Poll, ready},
};

use weir_engine::net::Stream;

use crate::{
    rest::Rest,
    traits::{Duplex, Sink},
};

/// Most bytes that one write queues.
pub const WRITE_BYTES_MAX: usize = 64 << 10;

/// A connection of the engine with the traits of other libraries. The [crate's documentation](crate) says what it
/// holds and how it behaves on each driver.
///
/// ```
/// # #[cfg(feature = "tokio")]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// use weir_engine::{Config, Driver, Runtime, net::{Listener, Stream}};
/// use weir_engine_adapters::EngineIo;
///
/// let runtime = Runtime::new(&Config::with_driver(Driver::Sim))?;
/// runtime.block_on(async {
///     let listener = Listener::bind(&"127.0.0.1:0".parse()?, Default::default())?;
///     let mut client = EngineIo::new(Stream::connect(&listener.local_address()?).await?);
///     let mut server = EngineIo::new(listener.accept().await?);
///     client.write_all(b"a question").await?;
///     client.shutdown().await?;
///     let mut question = String::new();
///     server.read_to_string(&mut question).await?;
///     assert_eq!(question, "a question");
///     Ok(())
/// })
/// # }
/// # #[cfg(not(feature = "tokio"))]
/// # fn main() {}
/// ```
#[derive(Debug)]
pub struct EngineIo {
    stream: Stream,
    rest: Rest,
}

impl EngineIo {
    /// The traits of other libraries for `stream`.
    pub fn new(stream: Stream) -> Self {
        Self { stream, rest: Rest::default() }
    }

    /// The connection, for its addresses, its queue, or `send_file`. A receive on it skips bytes that this stream
    /// holds.
    pub fn get_ref(&self) -> &Stream {
        &self.stream
    }

    /// The connection, and the received bytes that were not read. They precede everything that it receives.
    pub fn into_parts(self) -> (Stream, Vec<u8>) {
        (self.stream, self.rest.into_bytes())
    }
}

impl From<Stream> for EngineIo {
    fn from(stream: Stream) -> Self {
        Self::new(stream)
    }
}

impl Duplex for EngineIo {
    fn poll_receive(&mut self, context: &mut Context<'_>, into: &mut impl Sink) -> Poll<io::Result<()>> {
        if !self.rest.is_empty() {
            let count = self.rest.bytes().len().min(into.room());
            into.put(&self.rest.bytes()[..count]);
            self.rest.consume(count);
            return Poll::Ready(Ok(()));
        }
        if let Some(lease) = ready!(self.stream.poll_recv(context))? {
            let (now, later) = lease.split_at(lease.len().min(into.room()));
            into.put(now);
            self.rest.keep(later);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_send(&mut self, context: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let mut parts = parts.iter().filter(|part| !part.is_empty());
        let Some(first) = parts.next() else { return Poll::Ready(Ok(0)) };
        let first = &first[..first.len().min(WRITE_BYTES_MAX)];
        ready!(self.stream.poll_send_slice(first, context))?;
        let mut taken = first.len();
        for part in parts {
            let piece = &part[..part.len().min(WRITE_BYTES_MAX - taken)];
            // An error is the answer to the next call: this one has queued bytes.
            if piece.is_empty() || !matches!(self.stream.try_send_slice(piece), Ok(true)) {
                break;
            }
            taken += piece.len();
        }
        Poll::Ready(Ok(taken))
    }

    fn poll_flushed(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_flush(context)
    }

    fn poll_ended(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_shutdown(context)
    }
}

implement_traits!(EngineIo);
