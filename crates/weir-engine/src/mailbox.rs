//! A bounded channel into a runtime: many threads send typed messages, one task receives them.
//!
//! Contract:
//! - Messages of one sender arrive in the order sent. The mailbox holds at most its capacity: a send to a full
//!   mailbox fails at once and returns the message.
//! - The receiver is woken only on the edge: a send wakes when a receive is pending and has not been woken yet, and
//!   otherwise takes no lock.
//! - Dropping a pending receive loses nothing: a message stays in the queue until a receive returns it.
//! - When the last sender is gone the receiver gets the queued messages, then `None`. When the receiver is gone,
//!   sends fail. Each message still queued is dropped once, by the receiver or by the send that raced it.
//!
//! It is not a way to wait for room (the sender decides how to handle a full mailbox). It starts no thread and makes
//! no system call itself: a wake goes through the receiving task's [`Waker`].
//!
//! Why no wake is lost: the receiver is the consumer of a `WakeFlag`. It calls `woke`, stores its waker, looks at the
//! queue, and only then calls `prepare_sleep`; a sender queues, then calls `notify`. A sender takes the lock on the
//! waker only when `notify` reports a sleeping receive. The waker that it finds was stored before that sleep, or
//! belongs to a later poll, for which a wake is merely superfluous.
//!
//! Why this crate has its own code: the queue is crossbeam's; the addition is one cell for a waker and a few loads
//! and stores around it. Other channels add more: tokio's adds its crate, `async-channel` a list of listeners behind
//! a lock, for any number of receivers. The crate `atomic-waker` could replace flag and cell. But the inbox of a
//! runtime and the hand-off need the flag anyway, and one protocol is less to prove than two. The model checker
//! explores every interleaving of the whole, with its own primitives in place of the real ones. It cannot do that for
//! code in another crate.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crossbeam_queue::ArrayQueue;

use crate::wake_flag::{AtomicWord, WakeFlag};
use crate::wakers;

/// Largest capacity of a mailbox, in messages.
pub const CAPACITY_MAX: usize = 1 << 20;
/// Most senders of one mailbox at once.
pub const SENDERS_MAX: u32 = 1 << 20;

/// Makes a mailbox that holds up to `capacity` messages.
///
/// # Panics
/// If `capacity` is zero or above [`CAPACITY_MAX`].
pub fn mailbox<T>(capacity: usize) -> (MailboxSender<T>, MailboxReceiver<T>) {
    assert!((1..=CAPACITY_MAX).contains(&capacity), "a mailbox holds 1 to {CAPACITY_MAX} messages");
    let channel = Arc::new(Channel::new(ArrayQueue::new(capacity)));
    (MailboxSender { channel: channel.clone() }, MailboxReceiver { channel })
}

/// Why a message was not queued; the error contains the message.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError<T> {
    /// The mailbox is full.
    #[error("the mailbox is full")]
    Full(T),
    /// The receiver is gone.
    #[error("the mailbox is closed")]
    Closed(T),
}

impl<T> SendError<T> {
    /// The message that was not queued.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(message) | Self::Closed(message) => message,
        }
    }
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if matches!(self, Self::Full(_)) { "Full(..)" } else { "Closed(..)" })
    }
}

/// The sending side: clone it for each thread that sends.
pub struct MailboxSender<T> {
    channel: Arc<Channel<T, Native>>,
}

impl<T> MailboxSender<T> {
    /// Queues a message, and wakes the receiving task if it waits. Never blocks. `Ok` means queued: should the
    /// receiver be dropped before it takes the message, the message is dropped too.
    ///
    /// # Errors
    /// [`SendError::Full`] or [`SendError::Closed`], with the message.
    pub fn try_send(&self, message: T) -> Result<(), SendError<T>> {
        self.channel.send(message)
    }

    /// True when the receiver is gone.
    pub fn is_closed(&self) -> bool {
        self.channel.is_closed()
    }
}

impl<T> Clone for MailboxSender<T> {
    /// # Panics
    /// If there are already [`SENDERS_MAX`] senders.
    fn clone(&self) -> Self {
        assert!(self.channel.add_sender(), "a mailbox has at most {SENDERS_MAX} senders");
        Self { channel: self.channel.clone() }
    }
}

impl<T> Drop for MailboxSender<T> {
    fn drop(&mut self) {
        self.channel.remove_sender();
    }
}

impl<T> fmt::Debug for MailboxSender<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("MailboxSender")
            .field("len", &self.channel.queue.len())
            .finish_non_exhaustive()
    }
}

/// The receiving side. It may move between threads while no receive is pending.
pub struct MailboxReceiver<T> {
    channel: Arc<Channel<T, Native>>,
}

impl<T> MailboxReceiver<T> {
    /// Waits for the next message; `None` when all senders are gone and nothing is queued. Cancel safe.
    pub fn recv(&mut self) -> Recv<'_, T> {
        Recv { receiver: self, pending: false }
    }

    /// As [`Self::recv`], for a future that owns the receiver, whose drop then ends the wait.
    pub(crate) fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.channel.poll_receive(context)
    }

    /// The next message if one is queued.
    pub fn try_recv(&mut self) -> Option<T> {
        self.channel.queue.pop()
    }

    /// Number of queued messages, out of date as soon as it is read.
    pub fn len(&self) -> usize {
        self.channel.queue.len()
    }

    /// True when no message is queued, out of date as soon as it is read.
    pub fn is_empty(&self) -> bool {
        self.channel.queue.is_empty()
    }
}

impl<T> Drop for MailboxReceiver<T> {
    fn drop(&mut self) {
        self.channel.close();
    }
}

impl<T> fmt::Debug for MailboxReceiver<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MailboxReceiver").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// The future of [`MailboxReceiver::recv`]. Dropping it loses no message.
#[must_use = "a future does nothing unless it is awaited"]
#[derive(Debug)]
pub struct Recv<'a, T> {
    receiver: &'a mut MailboxReceiver<T>,
    /// The last poll stored a waker in the channel.
    pending: bool,
}

impl<T> Future for Recv<'_, T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        // While a poll is pending, the flag says so. It must be reset before a message is returned: the path through
        // `poll_receive` does that.
        if !self.pending
            && let Some(message) = self.receiver.try_recv()
        {
            return Poll::Ready(Some(message));
        }
        let received = self.receiver.channel.poll_receive(context);
        self.pending = received.is_pending();
        received
    }
}

impl<T> Drop for Recv<'_, T> {
    fn drop(&mut self) {
        if self.pending {
            self.receiver.channel.cancel();
        }
    }
}

/// The primitives that a channel is built from. Tests build it from the model checker's primitives.
trait Primitives<T> {
    type Queue: Queue<T>;
    type Cell: WakerCell;
    type Word: AtomicWord;
}

/// A bounded queue. A `pop` sees every `push` that happened before it.
trait Queue<T> {
    fn push(&self, message: T) -> Result<(), T>;
    fn pop(&self) -> Option<T>;
}

/// Holds the waker of the task that waits.
trait WakerCell: Default {
    fn set(&self, waker: &Waker);
    fn get(&self) -> Option<Waker>;
    fn clear(&self);
}

struct Native;

impl<T> Primitives<T> for Native {
    type Queue = ArrayQueue<T>;
    type Cell = Mutex<Option<Waker>>;
    type Word = AtomicU32;
}

impl<T> Queue<T> for ArrayQueue<T> {
    fn push(&self, message: T) -> Result<(), T> {
        self.push(message)
    }

    fn pop(&self) -> Option<T> {
        self.pop()
    }
}

impl WakerCell for Mutex<Option<Waker>> {
    fn set(&self, waker: &Waker) {
        let previous = wakers::store(&mut lock(self), waker);
        // Dropping the last waker of a task may drop the task, and that may call this again: do it outside the lock.
        drop(previous);
    }

    fn get(&self) -> Option<Waker> {
        lock(self).clone()
    }

    fn clear(&self) {
        let previous = lock(self).take();
        drop(previous);
    }
}

/// The cell is valid even if a thread panicked while holding the lock: it is replaced whole.
fn lock(cell: &Mutex<Option<Waker>>) -> MutexGuard<'_, Option<Waker>> {
    cell.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state that both sides share.
struct Channel<T, P: Primitives<T>> {
    queue: P::Queue,
    /// The flag's consumer is the receiver: asleep while a receive is pending.
    flag: WakeFlag<P::Word>,
    waker: P::Cell,
    senders: P::Word,
    /// One when the receiver is gone.
    closed: P::Word,
}

impl<T, P: Primitives<T>> Channel<T, P> {
    /// A channel with one sender.
    fn new(queue: P::Queue) -> Self {
        Self {
            queue,
            flag: WakeFlag::on_word(),
            waker: P::Cell::default(),
            senders: P::Word::new(1),
            closed: P::Word::new(0),
        }
    }

    fn send(&self, message: T) -> Result<(), SendError<T>> {
        if self.is_closed() {
            return Err(SendError::Closed(message));
        }
        if let Err(message) = self.queue.push(message) {
            return Err(if self.is_closed() { SendError::Closed(message) } else { SendError::Full(message) });
        }
        self.wake_receiver();
        // `close` may have emptied the queue before the push. Both sides have changed the flag in between: if
        // `notify` came first, `close` saw the push and dropped the message; if not, this load sees the close.
        if self.is_closed() {
            self.drop_queued();
        }
        Ok(())
    }

    /// False at the maximum number of senders.
    fn add_sender(&self) -> bool {
        // Relaxed is enough: the sender that is cloned keeps the count above zero.
        let added = self.senders.fetch_add(1, Ordering::Relaxed) < SENDERS_MAX;
        if !added {
            self.senders.fetch_sub(1, Ordering::Relaxed);
        }
        added
    }

    fn remove_sender(&self) {
        // Release: a thread that reads zero sees every message of every sender.
        if self.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.wake_receiver();
        }
    }

    fn wake_receiver(&self) {
        if self.flag.notify()
            && let Some(waker) = self.waker.get()
        {
            waker.wake();
        }
    }

    fn poll_receive(&self, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.flag.woke();
        self.waker.set(context.waker());
        // Repeats once for each send or departure between the look and `prepare_sleep`.
        loop {
            if let Some(message) = self.queue.pop() {
                return Poll::Ready(Some(message));
            }
            if self.senders.load(Ordering::Acquire) == 0 {
                // The last sender may have sent between the two looks, so look again.
                return Poll::Ready(self.queue.pop());
            }
            if self.flag.prepare_sleep() {
                return Poll::Pending;
            }
        }
    }

    /// A pending receive was dropped: the consumer is awake again.
    fn cancel(&self) {
        self.flag.woke();
        self.waker.clear();
    }

    fn close(&self) {
        self.closed.swap(1, Ordering::AcqRel);
        self.cancel();
        self.drop_queued();
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire) == 1
    }

    fn drop_queued(&self) {
        while self.queue.pop().is_some() {}
    }
}

#[cfg(test)]
mod tests;
