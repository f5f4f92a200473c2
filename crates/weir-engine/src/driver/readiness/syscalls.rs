//! The system calls that readiness makes on sockets, and the clock that it reads: Linux's, or the simulated kernel's.
//!
//! Linux has no state and no size, and every call is resolved at compile time: the trait costs it nothing. Waiting
//! for readiness belongs to the [`Backend`](super::Backend).

use std::{
    fmt,
    io::{self, IoSlice},
    net::SocketAddr,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd},
    task::{Poll, Waker},
};

use rustix::{
    io::Errno,
    net::{RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags},
};

use crate::{
    address::Address,
    clock::{Instant, monotonic},
    counters::Counters,
    driver::{
        contract::DriverParts,
        files::{self, FileOperation, FileResult},
        helpers::Helpers,
        socket::{self, ListenOptions},
    },
    send_queue::FileRange,
};

/// A kernel with non-blocking sockets. Calls return the kernel's errors; the caller decides how to handle them.
pub(crate) trait Kernel {
    /// A socket that is closed when this is dropped.
    type Socket: fmt::Debug;

    /// The part that performs file operations.
    type Files: Files;

    /// The time now.
    fn now(&self) -> Instant;

    /// The time now, if it is virtual.
    fn virtual_now(&self) -> Option<Instant> {
        None
    }

    /// Starts the part that performs file operations.
    fn files(&self, parts: &DriverParts) -> Self::Files;

    /// The first descriptor that accepting leaves to everything else.
    fn reserved(&self, count: usize, any: BorrowedFd<'_>) -> RawFd;

    /// The number that the next descriptor gets. `None`: there is none.
    fn lowest_free(&self, any: BorrowedFd<'_>) -> Option<RawFd>;

    /// The number of a socket.
    fn number(&self, socket: &Self::Socket) -> RawFd;

    /// A listening socket.
    fn listen(
        &self,
        address: &Address,
        options: &ListenOptions,
        parts: &DriverParts,
    ) -> io::Result<Self::Socket>;

    /// A socket that is already open; this call sets whether its calls may block.
    fn adopt(&self, descriptor: OwnedFd, waits: bool, counters: &Counters) -> io::Result<Self::Socket>;

    /// Whether sockets can be released as descriptors.
    fn may_leave(&self) -> io::Result<()> {
        Ok(())
    }

    /// The descriptor of a released socket.
    fn leave(&self, socket: Self::Socket) -> io::Result<OwnedFd>;

    /// A socket with a connection attempt in progress, from a local TCP address if one is given. True: it is
    /// established already.
    fn connect(
        &self,
        address: &Address,
        local: Option<SocketAddr>,
        parts: &DriverParts,
    ) -> io::Result<(Self::Socket, bool)>;

    /// The next waiting connection. `waits` sets whether its calls block.
    fn accept(&self, listener: &Self::Socket, waits: bool) -> Result<Self::Socket, Errno>;

    /// Receives bytes without waiting; zero at the end of the stream.
    fn receive(&self, socket: &Self::Socket, into: &mut [u8]) -> Result<usize, Errno>;

    /// Sends bytes; returns how many were taken.
    fn send(&self, socket: &Self::Socket, bytes: &[u8]) -> Result<usize, Errno>;

    /// Sends several pieces, in order. `more`: further bytes follow at once.
    fn send_slices(&self, socket: &Self::Socket, slices: &[IoSlice<'_>], more: bool) -> Result<usize, Errno>;

    /// Sends a part of a file, at most `bytes_max` bytes; zero at the end of the file.
    fn send_file(
        &self,
        socket: &Self::Socket,
        range: &FileRange<'_>,
        bytes_max: usize,
        counters: &Counters,
    ) -> Result<usize, Errno>;

    /// Whether a socket has room for a considerable part of its buffer. If it has not, this call makes sure that the
    /// kernel will report when it has.
    fn has_room(&self, socket: &Self::Socket, counters: &Counters) -> bool;

    /// Sends the end of our direction.
    fn end_output(&self, socket: &Self::Socket, counters: &Counters) -> Result<(), Errno>;

    /// The error a socket has stored.
    fn take_error(&self, socket: &Self::Socket, counters: &Counters) -> io::Result<()>;

    /// Makes the next close a reset.
    fn reset_on_close(&self, socket: &Self::Socket, counters: &Counters);

    /// Whether the peer has received everything that was sent, including the end of our direction.
    fn has_taken_all(&self, socket: &Self::Socket, counters: &Counters) -> bool;

    /// The address a socket is bound to.
    fn local_address(&self, socket: &Self::Socket) -> io::Result<Address>;

    /// The address of the other end.
    fn peer_address(&self, socket: &Self::Socket) -> io::Result<Address>;
}

/// The part that performs file operations.
pub(crate) trait Files {
    /// The answer, if the operation has not been begun and cannot block.
    fn try_now(&mut self, operation: &mut FileOperation, parts: &DriverParts) -> Option<FileResult>;

    /// Begins an operation when the limit allows it, and waits for its answer.
    fn poll(&mut self, operation: &mut FileOperation, waker: &Waker) -> Poll<FileResult>;

    /// The future of an operation was dropped.
    fn forget(&mut self, operation: &mut FileOperation);

    /// Hands out answers that have arrived since the last look; called when the wake-up descriptor was reported.
    fn collect(&mut self);
}

/// The real kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linux;

impl Kernel for Linux {
    type Socket = OwnedFd;
    type Files = Helpers;

    #[inline]
    fn now(&self) -> Instant {
        monotonic()
    }

    fn files(&self, parts: &DriverParts) -> Helpers {
        Helpers::new(parts)
    }

    fn reserved(&self, count: usize, any: BorrowedFd<'_>) -> RawFd {
        socket::first_reserved(count, any)
    }

    fn lowest_free(&self, any: BorrowedFd<'_>) -> Option<RawFd> {
        socket::lowest_free(any)
    }

    #[inline]
    fn number(&self, socket: &OwnedFd) -> RawFd {
        socket.as_raw_fd()
    }

    fn listen(&self, address: &Address, options: &ListenOptions, parts: &DriverParts) -> io::Result<OwnedFd> {
        let descriptor = socket::listen(address, options, parts.config.congestion_control.as_deref())?;
        socket::set_nonblocking(&descriptor, true, &parts.counters)?;
        Ok(descriptor)
    }

    fn adopt(&self, descriptor: OwnedFd, waits: bool, counters: &Counters) -> io::Result<OwnedFd> {
        socket::set_nonblocking(&descriptor, !waits, counters)?;
        Ok(descriptor)
    }

    fn leave(&self, socket: OwnedFd) -> io::Result<OwnedFd> {
        Ok(socket)
    }

    fn connect(
        &self,
        address: &Address,
        local: Option<SocketAddr>,
        parts: &DriverParts,
    ) -> io::Result<(OwnedFd, bool)> {
        let descriptor = socket::for_connect(address, local, parts)?;
        let counters = &parts.counters;
        socket::set_nonblocking(&descriptor, true, counters)?;
        let name = address.to_socket_address()?;
        counters.setup_calls.increment();
        match socket2::SockRef::from(&descriptor).connect(&name) {
            Ok(()) => Ok((descriptor, true)),
            // A Unix socket returns EAGAIN when its listener's queue is full, and no event follows: treat it as an
            // error.
            Err(error) if error.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error()) => {
                Ok((descriptor, false))
            }
            Err(error) => Err(error),
        }
    }

    #[inline]
    fn accept(&self, listener: &OwnedFd, waits: bool) -> Result<OwnedFd, Errno> {
        let waiting = if waits { SocketFlags::empty() } else { SocketFlags::NONBLOCK };
        rustix::net::accept_with(listener, SocketFlags::CLOEXEC | waiting)
    }

    #[inline]
    fn receive(&self, socket: &OwnedFd, into: &mut [u8]) -> Result<usize, Errno> {
        rustix::net::recv(socket, into, RecvFlags::DONTWAIT).map(|(_, length)| length)
    }

    #[inline]
    fn send(&self, socket: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
        rustix::net::send(socket, bytes, SendFlags::NOSIGNAL)
    }

    #[inline]
    fn send_slices(&self, socket: &OwnedFd, slices: &[IoSlice<'_>], more: bool) -> Result<usize, Errno> {
        let more = if more { SendFlags::MORE } else { SendFlags::empty() };
        let mut ancillary = SendAncillaryBuffer::default();
        rustix::net::sendmsg(socket, slices, &mut ancillary, SendFlags::NOSIGNAL | more)
    }

    fn send_file(
        &self,
        socket: &OwnedFd,
        range: &FileRange<'_>,
        bytes_max: usize,
        counters: &Counters,
    ) -> Result<usize, Errno> {
        files::send_part(socket.as_fd(), range, bytes_max, counters)
    }

    fn has_room(&self, socket: &OwnedFd, counters: &Counters) -> bool {
        files::has_room(socket.as_fd(), counters)
    }

    fn end_output(&self, socket: &OwnedFd, counters: &Counters) -> Result<(), Errno> {
        socket::end_output(socket, counters)
    }

    fn take_error(&self, socket: &OwnedFd, counters: &Counters) -> io::Result<()> {
        socket::take_error(socket, counters)
    }

    fn reset_on_close(&self, socket: &OwnedFd, counters: &Counters) {
        socket::reset_on_close(socket.as_fd(), counters);
    }

    fn has_taken_all(&self, socket: &OwnedFd, counters: &Counters) -> bool {
        socket::has_taken_all(socket.as_fd(), counters)
    }

    fn local_address(&self, socket: &OwnedFd) -> io::Result<Address> {
        socket::local_address(socket.as_fd())
    }

    fn peer_address(&self, socket: &OwnedFd) -> io::Result<Address> {
        socket::peer_address(socket.as_fd())
    }
}

impl Files for Helpers {
    fn try_now(&mut self, operation: &mut FileOperation, parts: &DriverParts) -> Option<FileResult> {
        operation.try_now(&parts.send_pool, &parts.counters)
    }

    fn poll(&mut self, operation: &mut FileOperation, waker: &Waker) -> Poll<FileResult> {
        Helpers::poll(self, operation, waker)
    }

    fn forget(&mut self, operation: &mut FileOperation) {
        Helpers::forget(self, operation);
    }

    fn collect(&mut self) {
        Helpers::collect(self);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_real_kernel_has_no_size() {
        assert_eq!(size_of::<super::Linux>(), 0);
    }
}
