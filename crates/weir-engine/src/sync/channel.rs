//! A bounded channel between tasks of one thread.

use std::{
    cell::RefCell,
    collections::VecDeque,
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use super::{
    semaphore::{FairSemaphore, GivenUp},
    wait_list::Ticket,
};
use crate::wakers;

struct State<T> {
    queue: VecDeque<T>,
    /// One permit for each place. A place is taken from the moment when a message is sent until it is received.
    places: FairSemaphore,
    receiver: Option<Waker>,
    senders: usize,
    has_receiver: bool,
}

/// Makes a channel that holds up to `capacity` messages, at least one. Messages arrive in the order in which they were
/// sent. When the queue is full, senders wait in line for room.
///
/// ```
/// use weir_engine::{Config, Driver, Runtime, spawn, sync::channel};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// Runtime::new(&Config::with_driver(Driver::Sim))?.block_on(async {
///     let (sender, receiver) = channel(2);
///     spawn(async move {
///         for number in 0..10 {
///             sender.send(number).await.expect("the receiver is there");
///         }
///     });
///     let mut sum = 0;
///     while let Some(number) = receiver.recv().await {
///         sum += number;
///     }
///     assert_eq!(sum, 45);
/// });
/// # Ok(())
/// # }
/// ```
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let state = Rc::new(RefCell::new(State {
        queue: VecDeque::new(),
        places: FairSemaphore::new(capacity),
        receiver: None,
        senders: 1,
        has_receiver: true,
    }));
    (Sender(Rc::clone(&state)), Receiver(state))
}

/// The end that sends. Clones send into the same channel.
pub struct Sender<T>(Rc<RefCell<State<T>>>);

/// The end that receives.
pub struct Receiver<T>(Rc<RefCell<State<T>>>);

/// Why a message was not sent; the error contains the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrySendError<T> {
    /// The channel is full.
    #[error("the channel is full")]
    Full(T),
    /// The receiver is gone.
    #[error("the receiver is gone")]
    Closed(T),
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sender").field("queued", &self.0.borrow().queue.len()).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Receiver")
            .field("queued", &self.0.borrow().queue.len())
            .finish_non_exhaustive()
    }
}

/// Queues a message in a place that was taken before, and wakes the receiver.
fn queue<T>(state: &RefCell<State<T>>, message: T) -> Result<(), T> {
    let mut inner = state.borrow_mut();
    if !inner.has_receiver {
        return Err(message);
    }
    inner.queue.push_back(message);
    let receiver = inner.receiver.take();
    drop(inner);
    if let Some(receiver) = receiver {
        receiver.wake();
    }
    Ok(())
}

impl<T> Sender<T> {
    /// Sends a message once there is room for it. Dropping the future sends nothing and gives the place in line up.
    ///
    /// # Errors
    /// The message comes back when the receiver is gone.
    pub async fn send(&self, message: T) -> Result<(), T> {
        Place { state: &self.0, ticket: None }.await;
        queue(&self.0, message)
    }

    /// Sends a message if there is room for it, and no other sender waits for that room.
    ///
    /// # Errors
    /// The message comes back when there is no room, or the receiver is gone.
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        let mut inner = self.0.borrow_mut();
        if !inner.has_receiver {
            return Err(TrySendError::Closed(message));
        }
        if !inner.places.try_acquire() {
            return Err(TrySendError::Full(message));
        }
        drop(inner);
        queue(&self.0, message).map_err(TrySendError::Closed)
    }
}

/// Waits for a place in the queue.
struct Place<'a, T> {
    state: &'a RefCell<State<T>>,
    ticket: Option<Ticket>,
}

impl<T> Future for Place<'_, T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let state = self.state;
        let mut inner = state.borrow_mut();
        if !inner.has_receiver {
            return Poll::Ready(());
        }
        let (outcome, replaced) = inner.places.poll_acquire(&mut self.ticket, context.waker());
        drop(inner);
        drop(replaced);
        outcome
    }
}

impl<T> Drop for Place<'_, T> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let given_up = self.state.borrow_mut().places.give_up(ticket);
        match given_up {
            GivenUp::PassedOn(Some(next)) => next.wake(),
            GivenUp::Left(_) | GivenUp::PassedOn(None) => {}
        }
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.borrow_mut().senders += 1;
        Self(Rc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut inner = self.0.borrow_mut();
        inner.senders -= 1;
        let receiver = if inner.senders == 0 { inner.receiver.take() } else { None };
        drop(inner);
        if let Some(receiver) = receiver {
            receiver.wake();
        }
    }
}

impl<T> Receiver<T> {
    /// The next message; `None` when the last sender is gone and every message has been received. Dropping the future
    /// loses nothing.
    pub async fn recv(&self) -> Option<T> {
        poll_fn(|context| self.poll_recv(context.waker())).await
    }

    /// The next message, if there is one.
    pub fn try_recv(&self) -> Option<T> {
        let mut inner = self.0.borrow_mut();
        let message = inner.queue.pop_front()?;
        let next = inner.places.release();
        drop(inner);
        if let Some(next) = next {
            next.wake();
        }
        Some(message)
    }

    fn poll_recv(&self, waker: &Waker) -> Poll<Option<T>> {
        if let Some(message) = self.try_recv() {
            return Poll::Ready(Some(message));
        }
        let mut inner = self.0.borrow_mut();
        if inner.senders == 0 {
            return Poll::Ready(None);
        }
        let previous = wakers::store(&mut inner.receiver, waker);
        drop(inner);
        drop(previous);
        Poll::Pending
    }
}

impl<T> Drop for Receiver<T> {
    /// Every sender in line is woken, one after the other: each finds the receiver gone.
    fn drop(&mut self) {
        let mut inner = self.0.borrow_mut();
        inner.has_receiver = false;
        let left = (std::mem::take(&mut inner.queue), inner.receiver.take());
        drop(inner);
        drop(left);
        loop {
            let next = self.0.borrow_mut().places.release();
            let Some(next) = next else { return };
            next.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, pin::pin};

    use proptest::prelude::*;

    use super::*;

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_channel_holds_its_capacity_and_room_goes_to_who_waits_longest() {
        let (sender, receiver) = channel(2);
        let other = sender.clone();
        assert_eq!((sender.try_send(1), other.try_send(2)), (Ok(()), Ok(())));
        assert_eq!(sender.try_send(3), Err(TrySendError::Full(3)));
        let (mut first, mut second) = (pin!(sender.send(4)), pin!(other.send(5)));
        assert!(poll(first.as_mut()).is_pending() && poll(second.as_mut()).is_pending());
        assert_eq!(receiver.try_recv(), Some(1));
        assert_eq!(sender.try_send(6), Err(TrySendError::Full(6)), "the room is the first one's");
        assert!(poll(second.as_mut()).is_pending());
        assert_eq!(poll(first), Poll::Ready(Ok(())));
        assert_eq!((receiver.try_recv(), receiver.try_recv()), (Some(2), Some(4)));
        assert_eq!(poll(second), Poll::Ready(Ok(())));
        assert_eq!((receiver.try_recv(), receiver.try_recv()), (Some(5), None));
    }

    #[test]
    fn a_send_that_is_given_up_passes_its_room_on() {
        let (sender, receiver) = channel(1);
        assert_eq!(sender.try_send(1), Ok(()));
        let mut waiting = pin!(sender.send(3));
        {
            let mut given_up = pin!(sender.send(2));
            assert!(poll(given_up.as_mut()).is_pending() && poll(waiting.as_mut()).is_pending());
            assert_eq!(receiver.try_recv(), Some(1));
        }
        assert_eq!(poll(waiting), Poll::Ready(Ok(())));
        assert_eq!(receiver.try_recv(), Some(3));
    }

    #[test]
    fn the_receiver_gets_what_is_left_and_then_the_end() {
        let (sender, receiver) = channel(3);
        assert_eq!(sender.try_send(1), Ok(()));
        let mut receive = Box::pin(receiver.recv());
        assert_eq!(poll(receive.as_mut()), Poll::Ready(Some(1)));
        receive = Box::pin(receiver.recv());
        assert!(poll(receive.as_mut()).is_pending());
        drop(sender);
        assert_eq!(poll(receive.as_mut()), Poll::Ready(None));
    }

    #[test]
    fn senders_get_their_messages_back_when_the_receiver_goes() {
        let (sender, receiver) = channel(1);
        assert_eq!(sender.try_send(1), Ok(()));
        let (mut first, mut second) = (pin!(sender.send(2)), pin!(sender.send(3)));
        assert!(poll(first.as_mut()).is_pending() && poll(second.as_mut()).is_pending());
        drop(receiver);
        assert_eq!((poll(first), poll(second)), (Poll::Ready(Err(2)), Poll::Ready(Err(3))));
        assert_eq!(sender.try_send(4), Err(TrySendError::Closed(4)));
    }

    proptest! {
        /// Random sends, receives and dropped sends, against a queue: order, bound, and no place is lost.
        #[test]
        fn messages_arrive_in_order_and_no_place_is_lost(
            capacity in 1usize..4,
            steps in prop::collection::vec((0u8..4, any::<prop::sample::Index>()), 0..200),
        ) {
            let (sender, receiver) = channel(capacity);
            let (mut model, mut waiting) = (VecDeque::new(), Vec::new());
            for (number, (kind, choice)) in steps.into_iter().enumerate() {
                match kind {
                    0 => {
                        let mut sending = Box::pin(sender.send(number));
                        match poll(sending.as_mut()) {
                            Poll::Ready(sent) => {
                                prop_assert_eq!(sent, Ok(()));
                                model.push_back(number);
                            }
                            Poll::Pending => waiting.push((number, sending)),
                        }
                    }
                    1 if !waiting.is_empty() => {
                        let at = choice.index(waiting.len());
                        if poll(waiting[at].1.as_mut()).is_ready() {
                            model.push_back(waiting.remove(at).0);
                        }
                    }
                    2 if !waiting.is_empty() => {
                        drop(waiting.remove(choice.index(waiting.len())));
                    }
                    _ => prop_assert_eq!(receiver.try_recv(), model.pop_front()),
                }
                prop_assert!(model.len() <= capacity);
                prop_assert_eq!(receiver.0.borrow().queue.len(), model.len());
            }
            waiting.clear();
            while receiver.try_recv().is_some() {}
            for number in 0..capacity {
                prop_assert_eq!(sender.try_send(number), Ok(()));
            }
            prop_assert_eq!(sender.try_send(0), Err(TrySendError::Full(0)));
        }
    }
}
