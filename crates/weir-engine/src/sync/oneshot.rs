//! One value from one task to another.

use std::{
    cell::RefCell,
    future::Future,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use crate::wakers;

/// A place for one value, and the task that waits for it.
#[derive(Debug)]
struct Inner<T> {
    value: Option<T>,
    waiter: Option<Waker>,
    /// The sender, or the receiver, is gone.
    is_closed: bool,
}

/// Makes a channel for one value.
///
/// ```
/// use weir_engine::{Config, Driver, Runtime, spawn, sync::oneshot};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// Runtime::new(&Config::with_driver(Driver::Sim))?.block_on(async {
///     let (sender, receiver) = oneshot();
///     spawn(async move { sender.send(7) });
///     assert_eq!(receiver.await, Ok(7));
/// });
/// # Ok(())
/// # }
/// ```
pub fn oneshot<T>() -> (OneshotSender<T>, OneshotReceiver<T>) {
    let inner = Rc::new(RefCell::new(Inner { value: None, waiter: None, is_closed: false }));
    (OneshotSender(Rc::clone(&inner)), OneshotReceiver(inner))
}

/// The end that sends. Dropping it without a value ends the wait with [`SenderGone`].
#[derive(Debug)]
pub struct OneshotSender<T>(Rc<RefCell<Inner<T>>>);

/// The end that receives: a future. It may be polled in one place and awaited later in another; the value waits for it.
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct OneshotReceiver<T>(Rc<RefCell<Inner<T>>>);

/// The sender was dropped without sending a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sender is gone, and has sent nothing")]
pub struct SenderGone;

impl<T> OneshotSender<T> {
    /// Sends the value and wakes the task that waits for it.
    ///
    /// # Errors
    /// The value comes back when the receiver is gone.
    pub fn send(self, value: T) -> Result<(), T> {
        let mut inner = self.0.borrow_mut();
        if inner.is_closed {
            return Err(value);
        }
        inner.value = Some(value);
        // Dropping the sender wakes the receiver.
        Ok(())
    }

    /// Whether the receiver is gone.
    pub fn is_closed(&self) -> bool {
        self.0.borrow().is_closed
    }
}

impl<T> Drop for OneshotSender<T> {
    fn drop(&mut self) {
        let mut inner = self.0.borrow_mut();
        inner.is_closed = true;
        let waiter = inner.waiter.take();
        drop(inner);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

impl<T> Future for OneshotReceiver<T> {
    type Output = Result<T, SenderGone>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut inner = self.0.borrow_mut();
        if let Some(value) = inner.value.take() {
            return Poll::Ready(Ok(value));
        }
        if inner.is_closed {
            return Poll::Ready(Err(SenderGone));
        }
        let previous = wakers::store(&mut inner.waiter, context.waker());
        drop(inner);
        drop(previous);
        Poll::Pending
    }
}

impl<T> Drop for OneshotReceiver<T> {
    fn drop(&mut self) {
        let mut inner = self.0.borrow_mut();
        inner.is_closed = true;
        let left = (inner.value.take(), inner.waiter.take());
        drop(inner);
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use std::{fmt, pin::pin};

    use super::*;

    fn poll<T: fmt::Debug>(receiver: &mut OneshotReceiver<T>) -> Poll<Result<T, SenderGone>> {
        pin!(receiver).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn the_value_waits_for_its_receiver() {
        let (sender, mut receiver) = oneshot();
        assert_eq!(poll(&mut receiver), Poll::Pending);
        assert!(!sender.is_closed());
        assert_eq!(sender.send(7), Ok(()));
        assert_eq!(poll(&mut receiver), Poll::Ready(Ok(7)));
        assert_eq!(poll(&mut receiver), Poll::Ready(Err(SenderGone)), "there is one value");
    }

    #[test]
    fn an_end_that_is_gone_is_seen_by_the_other() {
        let (sender, mut receiver) = oneshot::<u8>();
        drop(sender);
        assert_eq!(poll(&mut receiver), Poll::Ready(Err(SenderGone)));
        let (sender, receiver) = oneshot();
        drop(receiver);
        assert!(sender.is_closed());
        assert_eq!(sender.send(7), Err(7));
    }

    #[test]
    fn a_value_that_nobody_takes_is_dropped_with_the_receiver() {
        let life = Rc::new(());
        let (sender, receiver) = oneshot();
        assert!(sender.send(Rc::clone(&life)).is_ok());
        assert_eq!(Rc::strong_count(&life), 2);
        drop(receiver);
        assert_eq!(Rc::strong_count(&life), 1);
    }
}
