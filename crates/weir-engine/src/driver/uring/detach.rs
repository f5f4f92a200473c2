//! A stream that moves to another runtime: the receive ends, and its bytes move with the stream.

use std::{
    io,
    os::fd::OwnedFd,
    task::{Poll, Waker},
};

use super::Uring;
use crate::{driver::error, slab::SlotId};

impl Uring {
    /// Cancels the receive, waits for its last completion, and returns the socket with its received bytes. A
    /// cancelled receive takes no bytes out of the socket that it does not deliver, so nothing is lost in between.
    pub(super) fn poll_moved(&mut self, id: SlotId, waker: &Waker) -> Poll<io::Result<(OwnedFd, Vec<u8>)>> {
        let Some(socket) = self.sockets.get_mut(id) else { return Poll::Ready(Err(error::gone())) };
        if let Some(error) = socket.connection.error() {
            return Poll::Ready(Err(error.into()));
        }
        if !socket.is_stream() || !socket.send.queue.is_empty() {
            let reason = "the stream still has something to send";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::ResourceBusy, reason)));
        }
        socket.connection.begin_moving();
        if socket.connection.operations() > 0 {
            self.parts.departed.wait(&mut socket.receive_waiter, waker);
            self.stop_receive(id);
            return Poll::Pending;
        }
        let Some(mut removed) = self.remove(id) else { return Poll::Ready(Err(error::gone())) };
        self.parts.counters.connections_open.decrement();
        let mut received = Vec::new();
        while let Some(lease) = removed.inbound.take() {
            received.extend_from_slice(&lease);
        }
        Poll::Ready(Ok((removed.descriptor, received)))
    }
}
