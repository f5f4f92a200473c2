//! The sending side of a stream, the same on every driver: its queue, its waiter, and its end. Backpressure begins
//! here, in [`SendState::poll_at_most`].
//!
//! It moves no bytes: the driver takes them from `queue` and reports the rest.

use std::{
    io,
    rc::Rc,
    task::{Poll, Waker},
};

use super::error::StoredError;
use crate::{
    pool::Pool,
    send_queue::{SendBuf, SendQueue},
    slab::SlotId,
    wakers::Departed,
};

/// The end of our direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum OutputEnd {
    /// More may be queued.
    #[default]
    Open,
    /// It is to be sent after the queue.
    Wanted,
    Sent,
}

/// The sending side of one stream.
#[derive(Debug, Default)]
pub(crate) struct SendState {
    pub(crate) queue: SendQueue,
    /// Whether it is on the driver's list of sockets to flush.
    pub(crate) dirty: bool,
    end: OutputEnd,
    /// The task that waits until at most `waits_for_bytes` are queued, or until a connection is established.
    pub(crate) waiter: Option<Waker>,
    waits_for_bytes: usize,
}

/// One stream's sending side, with the parts of its driver that queueing needs.
pub(crate) struct SendAccess<'a> {
    pub(crate) send: &'a mut SendState,
    /// The error that the connection failed with.
    pub(crate) error: Option<StoredError>,
    /// Senders wait while more than this is queued.
    pub(crate) limit_bytes: usize,
    /// The driver's list of sockets to flush.
    pub(crate) dirty: &'a mut Vec<SlotId>,
    /// The pool for copies.
    pub(crate) pool: &'a Rc<Pool>,
}

impl SendState {
    /// Queues bytes. True: the socket has to be added to the driver's list.
    ///
    /// # Errors
    /// The connection's stored error; an error if the end was queued before.
    #[inline]
    pub(crate) fn push(&mut self, error: Option<StoredError>, bytes: SendBuf) -> io::Result<bool> {
        self.check(error)?;
        self.queue.push(bytes);
        Ok(self.mark_dirty())
    }

    /// Queues a copy of bytes; otherwise as [`Self::push`].
    #[inline]
    pub(crate) fn push_copy(
        &mut self,
        error: Option<StoredError>,
        bytes: &[u8],
        pool: &Rc<Pool>,
    ) -> io::Result<bool> {
        self.check(error)?;
        self.queue.push_copy(bytes, pool);
        Ok(self.mark_dirty())
    }

    /// Queues the end of our direction. True: the socket has to be added to the driver's list.
    pub(crate) fn end(&mut self) -> bool {
        if self.end == OutputEnd::Open {
            self.end = OutputEnd::Wanted;
        }
        self.mark_dirty()
    }

    /// Whether the end of our direction is to be sent after the queue.
    #[inline]
    pub(crate) fn wants_end(&self) -> bool {
        self.end == OutputEnd::Wanted
    }

    /// Whether it is to be sent now that the queue is empty; true once.
    #[inline]
    pub(crate) fn take_end(&mut self) -> bool {
        let is_wanted = self.wants_end();
        if is_wanted {
            self.end = OutputEnd::Sent;
        }
        is_wanted
    }

    /// True the first time since the driver's last flush.
    #[inline]
    pub(crate) fn mark_dirty(&mut self) -> bool {
        !std::mem::replace(&mut self.dirty, true)
    }

    /// Ready while at most `limit_bytes` are queued; otherwise the waiter is woken when `target_bytes` are left.
    #[inline]
    pub(crate) fn poll_at_most(
        &mut self,
        error: Option<StoredError>,
        limit_bytes: usize,
        target_bytes: usize,
        waker: &Waker,
        departed: &Departed,
    ) -> Poll<io::Result<()>> {
        if let Some(error) = error {
            return Poll::Ready(Err(error.into()));
        }
        if self.queue.len() <= limit_bytes {
            return Poll::Ready(Ok(()));
        }
        departed.wait(&mut self.waiter, waker);
        self.waits_for_bytes = target_bytes;
        Poll::Pending
    }

    /// Bytes have left: wakes the task that waits for that, never above the low-water mark.
    #[inline]
    pub(crate) fn wake_if_low(&mut self, low_water_bytes: usize, departed: &Departed) {
        if self.queue.len() <= self.waits_for_bytes.min(low_water_bytes) {
            self.wake(departed);
        }
    }

    /// Wakes the waiter, regardless of the queue.
    #[inline]
    pub(crate) fn wake(&mut self, departed: &Departed) {
        departed.wake(self.waiter.take());
    }

    /// Whether bytes may still be queued.
    fn check(&self, error: Option<StoredError>) -> io::Result<()> {
        match error {
            Some(error) => Err(error.into()),
            None if self.end != OutputEnd::Open => {
                Err(io::Error::new(io::ErrorKind::BrokenPipe, "our direction was shut down"))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_is_asked_for_again_before_it_is_sent_is_still_sent_once() {
        let mut state = SendState::default();
        state.end();
        // As after a shutdown that was dropped because the peer does not read.
        state.end();
        assert!(state.take_end(), "not sent yet");
        state.end();
        assert!(!state.take_end(), "sent already");
    }
}
