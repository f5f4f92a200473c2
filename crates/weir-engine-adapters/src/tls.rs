//! TLS by rustls on a connection of the engine. rustls decides everything about TLS; this file moves bytes between it
//! and the connection.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use weir_engine::net::Stream;
//! use weir_engine_adapters::tls::{self, TlsStream};
//! use weir_engine_adapters::tls::rustls::{
//!     ServerConfig,
//!     crypto::ring,
//!     pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
//! };
//!
//! fn config() -> Result<Arc<ServerConfig>, Box<dyn std::error::Error>> {
//!     let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter("chain.pem")?.collect();
//!     let key = PrivateKeyDer::from_pem_file("key.pem")?;
//!     let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
//!         .with_safe_default_protocol_versions()?
//!         .with_no_client_auth()
//!         .with_single_cert(chain?, key)?;
//!     Ok(Arc::new(config))
//! }
//!
//! async fn serve(config: Arc<ServerConfig>, stream: Stream) -> std::io::Result<()> {
//!     let stream: TlsStream = tls::accept(config, stream).await?;
//!     // `stream` has the traits of every feature that is on.
//!     # drop(stream);
//!     Ok(())
//! }
//! ```
//!
//! A stream holds, beside what an [`EngineIo`](crate::EngineIo) holds: at most [`WRITE_BYTES_MAX`] bytes of records
//! that the output queue has no room for, and one record of received plain text. A write that is not followed by
//! another write, a flush or a read may leave such records behind while the peer does not read: flush after the last
//! write.
//!
//! A stream that ends without `close_notify` is an error (`UnexpectedEof`), because anybody on the way may have cut it.
//! So a sender closes by `poll_close` or `poll_shutdown` of its traits: dropping a stream sends what is queued, and no
//! `close_notify`.

use std::{
    future::poll_fn,
    io::{self, BufRead, IoSlice, Write},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use rustls::{
    ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection, pki_types::ServerName,
};
use weir_engine::{net::Stream, time};

use crate::{
    WRITE_BYTES_MAX,
    rest::Rest,
    traits::{Duplex, Sink},
};

pub use rustls;

/// Longest time that a handshake takes, the end of a failed one included.
pub const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// Bytes that are discarded after a failed handshake. A connection that is closed with unread bytes is reset, and the
/// peer could lose the alert.
const DISCARDED_BYTES_MAX: usize = 64 << 10;

/// The server's side of a handshake.
///
/// # Errors
/// `InvalidData` with the error of rustls: the peer has the alert, and the connection is over. `UnexpectedEof` if the
/// peer ends first, `TimedOut` after [`HANDSHAKE_MAX`], and those of the connection.
pub async fn accept(config: Arc<ServerConfig>, stream: Stream) -> io::Result<TlsStream> {
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    shake_hands(connection.into(), stream).await
}

/// The client's side of a handshake with the server `name`, which its certificate must contain.
///
/// # Errors
/// As [`accept`].
pub async fn connect(
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    stream: Stream,
) -> io::Result<TlsStream> {
    let connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
    shake_hands(connection.into(), stream).await
}

async fn shake_hands(mut connection: Connection, stream: Stream) -> io::Result<TlsStream> {
    connection.set_buffer_limit(Some(WRITE_BYTES_MAX));
    let mut tls = TlsStream { stream, connection, rest: Rest::default(), is_closed: false, failure: None };
    let limited = time::timeout(HANDSHAKE_MAX, async {
        let outcome = poll_fn(|context| tls.poll_handshake(context)).await;
        if outcome.is_err() {
            tls.end_after_failure().await;
        }
        outcome
    });
    match limited.await {
        Ok(outcome) => outcome.map(|()| tls),
        Err(time::Elapsed) => {
            let reason = format!("the TLS handshake has not ended after {} s", HANDSHAKE_MAX.as_secs());
            Err(io::Error::new(io::ErrorKind::TimedOut, reason))
        }
    }
}

/// A connection whose TLS handshake has ended, with the traits of the features that are on.
#[derive(Debug)]
pub struct TlsStream {
    stream: Stream,
    connection: Connection,
    /// Received records that rustls has not read yet.
    rest: Rest,
    /// `close_notify` is queued.
    is_closed: bool,
    /// What the peer has done wrong. It shows behind the bytes that arrived before.
    failure: Option<rustls::Error>,
}

impl TlsStream {
    /// The connection below, for its addresses and its queue.
    pub fn get_ref(&self) -> &Stream {
        &self.stream
    }

    /// The state of TLS: its version, the protocol that ALPN chose, the peer's certificates.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    fn poll_handshake(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_output(context))?;
            if !self.connection.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            if !ready!(self.poll_input(context))? {
                let reason = "the peer has ended the connection in the TLS handshake";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, reason)));
            }
        }
    }

    /// Ends our direction behind the alert, and waits until the peer ends too, within the limits.
    async fn end_after_failure(&self) {
        if self.stream.shutdown().await.is_err() {
            return;
        }
        let mut discarded = 0;
        while let Ok(Some(lease)) = self.stream.recv().await
            && discarded < DISCARDED_BYTES_MAX
        {
            discarded += lease.len();
        }
    }

    /// Gives received bytes to rustls. False: it takes no more, because the peer has ended.
    fn poll_input(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        if let Some(failure) = &self.failure {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, failure.clone())));
        }
        let taken = if self.rest.is_empty() {
            let lease = ready!(self.stream.poll_recv(context))?;
            // The end of the connection is an empty read.
            let mut bytes = lease.as_deref().unwrap_or_default();
            let taken = self.connection.read_tls(&mut bytes)?;
            self.rest.keep(bytes);
            taken
        } else {
            let taken = self.connection.read_tls(&mut self.rest.bytes())?;
            self.rest.consume(taken);
            taken
        };
        self.failure = self.connection.process_new_packets().err();
        // Its answer, such as an alert. What finds no room leaves with the next call, and an error shows there.
        let _ = self.try_output();
        Poll::Ready(Ok(taken > 0 || self.failure.is_some()))
    }

    /// Queues the records that rustls has for the peer, and waits for room.
    fn poll_output(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome =
            write_records(&mut self.connection, |bytes| match self.stream.poll_send_slice(bytes, context) {
                Poll::Ready(outcome) => outcome.map(|()| true),
                Poll::Pending => Ok(false),
            });
        match outcome {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            outcome => Poll::Ready(outcome),
        }
    }

    /// As [`Self::poll_output`] without waiting: a reader must not replace the waker of a task that writes.
    fn try_output(&mut self) -> io::Result<()> {
        write_records(&mut self.connection, |bytes| self.stream.try_send_slice(bytes))
    }
}

/// Passes the records for the peer to `send`, which returns whether there was room; `WouldBlock` if there was none.
fn write_records(connection: &mut Connection, send: impl FnMut(&[u8]) -> io::Result<bool>) -> io::Result<()> {
    let mut records = Records(send);
    while connection.wants_write() {
        connection.write_tls(&mut records)?;
    }
    Ok(())
}

/// A function that takes bytes, as rustls writes to it.
struct Records<F>(F);

impl<F: FnMut(&[u8]) -> io::Result<bool>> Write for Records<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(WRITE_BYTES_MAX)];
        if (self.0)(piece)? { Ok(piece.len()) } else { Err(io::ErrorKind::WouldBlock.into()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Duplex for TlsStream {
    fn poll_receive(&mut self, context: &mut Context<'_>, into: &mut impl Sink) -> Poll<io::Result<()>> {
        loop {
            let mut reader = self.connection.reader();
            match reader.fill_buf() {
                Ok(bytes) => {
                    let count = bytes.len().min(into.room());
                    into.put(&bytes[..count]);
                    reader.consume(count);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
            ready!(self.poll_input(context))?;
        }
    }

    fn poll_send(&mut self, context: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if self.is_closed {
            let reason = "our direction was shut down";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, reason)));
        }
        // Records of earlier writes leave first, so at most one write waits in rustls.
        ready!(self.poll_output(context))?;
        let taken = self.connection.writer().write_vectored(parts)?;
        match self.poll_output(context) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(taken)),
        }
    }

    fn poll_flushed(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_output(context))?;
        self.stream.poll_flush(context)
    }

    fn poll_ended(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !std::mem::replace(&mut self.is_closed, true) {
            self.connection.send_close_notify();
        }
        ready!(self.poll_output(context))?;
        self.stream.poll_shutdown(context)
    }
}

implement_traits!(TlsStream);
