//! The traits of the libraries, implemented once for every stream of this crate from four operations.

use std::{
    io::{self, IoSlice},
    task::{Context, Poll},
};

/// A buffer of the caller, for received bytes.
pub(crate) trait Sink {
    /// How many bytes it has room for.
    fn room(&self) -> usize;

    /// Appends `bytes`, which are at most [`Self::room`] many.
    fn put(&mut self, bytes: &[u8]);
}

/// A stream of bytes in both directions.
pub(crate) trait Duplex {
    /// Puts some received bytes into a buffer that has room. None: the peer has ended its direction.
    fn poll_receive(&mut self, context: &mut Context<'_>, into: &mut impl Sink) -> Poll<io::Result<()>>;

    /// Queues a part of `parts`, in order; returns how many bytes. 0 only if all of them are empty.
    fn poll_send(&mut self, context: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>>;

    /// Waits until the kernel has taken everything that is queued.
    fn poll_flushed(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Sends everything that is queued, and then the end of this direction.
    fn poll_ended(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;
}

/// As [`Duplex::poll_receive`], also for a buffer without room.
pub(crate) fn poll_read(
    stream: &mut impl Duplex,
    context: &mut Context<'_>,
    into: &mut impl Sink,
) -> Poll<io::Result<()>> {
    if into.room() == 0 { Poll::Ready(Ok(())) } else { stream.poll_receive(context, into) }
}

/// A slice, and how much of it is filled.
#[cfg(feature = "futures-io")]
pub(crate) struct Filling<'a> {
    pub(crate) buffer: &'a mut [u8],
    pub(crate) filled: usize,
}

#[cfg(feature = "futures-io")]
impl Sink for Filling<'_> {
    fn room(&self) -> usize {
        self.buffer.len() - self.filled
    }

    fn put(&mut self, bytes: &[u8]) {
        self.buffer[self.filled..self.filled + bytes.len()].copy_from_slice(bytes);
        self.filled += bytes.len();
    }
}

#[cfg(feature = "tokio")]
impl Sink for &mut tokio::io::ReadBuf<'_> {
    fn room(&self) -> usize {
        self.remaining()
    }

    fn put(&mut self, bytes: &[u8]) {
        self.put_slice(bytes);
    }
}

#[cfg(feature = "hyper")]
impl Sink for hyper::rt::ReadBufCursor<'_> {
    fn room(&self) -> usize {
        self.remaining()
    }

    fn put(&mut self, bytes: &[u8]) {
        self.put_slice(bytes);
    }
}

/// Implements reading for a [`Duplex`] by a trait whose `poll_read` fills a cursor.
#[cfg(any(feature = "hyper", feature = "tokio"))]
macro_rules! read_into_cursor {
    ($stream:ty, $read:path, $cursor:ty) => {
        impl $read for $stream {
            fn poll_read(
                mut self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
                buffer: $cursor,
            ) -> std::task::Poll<std::io::Result<()>> {
                let mut buffer = buffer;
                $crate::traits::poll_read(&mut *self, context, &mut buffer)
            }
        }
    };
}

/// Implements writing for a [`Duplex`], by a trait with this name for the end.
macro_rules! write_slices {
    ($stream:ty, $write:path, $end:ident $(, $is_vectored:ident)?) => {
        impl $write for $stream {
            fn poll_write(
                mut self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
                bytes: &[u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                $crate::traits::Duplex::poll_send(&mut *self, context, &[std::io::IoSlice::new(bytes)])
            }

            fn poll_write_vectored(
                mut self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
                parts: &[std::io::IoSlice<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                $crate::traits::Duplex::poll_send(&mut *self, context, parts)
            }

            $(fn $is_vectored(&self) -> bool {
                true
            })?

            fn poll_flush(
                mut self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                $crate::traits::Duplex::poll_flushed(&mut *self, context)
            }

            fn $end(
                mut self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                $crate::traits::Duplex::poll_ended(&mut *self, context)
            }
        }
    };
}

/// Implements the traits of every feature for a [`Duplex`].
macro_rules! implement_traits {
    ($stream:ty) => {
        #[cfg(feature = "futures-io")]
        impl futures_io::AsyncRead for $stream {
            fn poll_read(
                mut self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
                buffer: &mut [u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                let mut into = $crate::traits::Filling { buffer, filled: 0 };
                let outcome = $crate::traits::poll_read(&mut *self, context, &mut into);
                outcome.map_ok(|()| into.filled)
            }
        }

        #[cfg(feature = "futures-io")]
        write_slices!($stream, futures_io::AsyncWrite, poll_close);

        #[cfg(feature = "tokio")]
        read_into_cursor!($stream, tokio::io::AsyncRead, &mut tokio::io::ReadBuf<'_>);

        #[cfg(feature = "tokio")]
        write_slices!($stream, tokio::io::AsyncWrite, poll_shutdown, is_write_vectored);

        #[cfg(feature = "hyper")]
        read_into_cursor!($stream, hyper::rt::Read, hyper::rt::ReadBufCursor<'_>);

        #[cfg(feature = "hyper")]
        write_slices!($stream, hyper::rt::Write, poll_shutdown, is_write_vectored);
    };
}
