//! One stream, used through the traits of a chosen library.

use std::{
    future::poll_fn,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use weir_engine::net::{Address, Stream};
use weir_engine_adapters::EngineIo;

/// Whose traits are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Futures,
    Tokio,
    Hyper,
}

impl Family {
    pub const ALL: [Family; 3] = [Family::Futures, Family::Tokio, Family::Hyper];
}

/// A stream that a case uses through one family of traits.
pub struct Used<T> {
    family: Family,
    pub io: T,
}

impl Used<EngineIo> {
    pub fn accepted(family: Family, stream: Stream) -> Self {
        Self::by(family, EngineIo::new(stream))
    }

    pub async fn connected(family: Family, address: &Address) -> Self {
        Self::accepted(family, Stream::connect(address).await.expect("the server accepts"))
    }
}

impl<T> Used<T>
where
    T: futures_io::AsyncRead + futures_io::AsyncWrite + tokio::io::AsyncRead + tokio::io::AsyncWrite,
    T: hyper::rt::Read + hyper::rt::Write + Unpin,
{
    pub fn by(family: Family, io: T) -> Self {
        Self { family, io }
    }

    pub fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let io = Pin::new(&mut self.io);
        match self.family {
            Family::Futures => futures_io::AsyncRead::poll_read(io, context, buffer),
            Family::Tokio => {
                let mut buffer = tokio::io::ReadBuf::new(buffer);
                ready!(tokio::io::AsyncRead::poll_read(io, context, &mut buffer))?;
                Poll::Ready(Ok(buffer.filled().len()))
            }
            Family::Hyper => {
                let mut buffer = hyper::rt::ReadBuf::new(buffer);
                ready!(hyper::rt::Read::poll_read(io, context, buffer.unfilled()))?;
                Poll::Ready(Ok(buffer.filled().len()))
            }
        }
    }

    /// One part is an ordinary write, several are a vectored one.
    pub fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let io = Pin::new(&mut self.io);
        match (self.family, parts) {
            (Family::Futures, [part]) => futures_io::AsyncWrite::poll_write(io, context, part),
            (Family::Futures, _) => futures_io::AsyncWrite::poll_write_vectored(io, context, parts),
            (Family::Tokio, [part]) => tokio::io::AsyncWrite::poll_write(io, context, part),
            (Family::Tokio, _) => tokio::io::AsyncWrite::poll_write_vectored(io, context, parts),
            (Family::Hyper, [part]) => hyper::rt::Write::poll_write(io, context, part),
            (Family::Hyper, _) => hyper::rt::Write::poll_write_vectored(io, context, parts),
        }
    }

    pub async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        poll_fn(|context| self.poll_read(context, buffer)).await
    }

    pub async fn write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        poll_fn(|context| self.poll_write(context, parts)).await
    }

    pub async fn flush(&mut self) -> io::Result<()> {
        poll_fn(|context| {
            let io = Pin::new(&mut self.io);
            match self.family {
                Family::Futures => futures_io::AsyncWrite::poll_flush(io, context),
                Family::Tokio => tokio::io::AsyncWrite::poll_flush(io, context),
                Family::Hyper => hyper::rt::Write::poll_flush(io, context),
            }
        })
        .await
    }

    /// Sends the end of this direction.
    pub async fn close(&mut self) -> io::Result<()> {
        poll_fn(|context| {
            let io = Pin::new(&mut self.io);
            match self.family {
                Family::Futures => futures_io::AsyncWrite::poll_close(io, context),
                Family::Tokio => tokio::io::AsyncWrite::poll_shutdown(io, context),
                Family::Hyper => hyper::rt::Write::poll_shutdown(io, context),
            }
        })
        .await
    }

    pub async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = self.write(&[IoSlice::new(bytes)]).await?;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// All bytes up to the end.
    pub async fn read_to_end(&mut self) -> io::Result<Vec<u8>> {
        let (mut all, mut buffer) = (Vec::new(), vec![0; 16 << 10]);
        loop {
            match self.read(&mut buffer).await? {
                0 => return Ok(all),
                count => all.extend_from_slice(&buffer[..count]),
            }
        }
    }
}
