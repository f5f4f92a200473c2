//! An event that any number of tasks wait for.

use std::{
    cell::Cell,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use super::waiters::{Place, Waiters};

/// Announces to tasks of the same thread that something has changed. It stores no event: who comes later waits for the
/// next one. For an event that is stored until one task takes it, see [`Signal`](super::Signal).
///
/// ```
/// use std::{cell::Cell, rc::Rc};
/// use weir_engine::{Config, Driver, Runtime, spawn, sync::Notify};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// Runtime::new(&Config::with_driver(Driver::Sim))?.block_on(async {
///     let shared = Rc::new((Cell::new(0), Notify::default()));
///     let other = Rc::clone(&shared);
///     let waiting = spawn(async move { other.1.until(|| other.0.get() == 3).await });
///     for number in 1..=3 {
///         shared.0.set(number);
///         shared.1.notify_all();
///     }
///     waiting.await;
/// });
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Notify {
    waiting: Waiters,
    /// Number of notifications so far.
    count: Cell<u64>,
}

impl Notify {
    /// Wakes all tasks that wait now.
    #[inline]
    pub fn notify_all(&self) {
        self.count.set(self.count.get() + 1);
        self.waiting.wake_all();
    }

    /// Waits for the next notification after this call.
    pub fn notified(&self) -> Notified<'_> {
        Notified { place: self.waiting.place(), seen: self.count.get(), count: &self.count }
    }

    /// Waits until a condition holds. The condition is checked at once, and then after each notification.
    pub fn until<F: FnMut() -> bool>(&self, holds: F) -> Until<'_, F> {
        Until { place: self.waiting.place(), holds }
    }
}

/// The future of [`Notify::notified`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Notified<'a> {
    place: Place<'a>,
    count: &'a Cell<u64>,
    /// The count when it was made.
    seen: u64,
}

impl Future for Notified<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.count.get() != self.seen {
            return Poll::Ready(());
        }
        self.place.wait((), context.waker());
        Poll::Pending
    }
}

/// The future of [`Notify::until`].
#[must_use = "futures do nothing unless awaited"]
pub struct Until<'a, F> {
    place: Place<'a>,
    holds: F,
}

impl<F> fmt::Debug for Until<'_, F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Until").field("place", &self.place).finish_non_exhaustive()
    }
}

/// No reference points into it: the condition is called, and never pinned.
impl<F> Unpin for Until<'_, F> {}

impl<F: FnMut() -> bool> Future for Until<'_, F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if (self.holds)() {
            return Poll::Ready(());
        }
        self.place.wait((), context.waker());
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, rc::Rc, task::Waker};

    use super::*;
    use crate::{Config, Driver, Runtime, spawn, time::yield_now};

    fn run<F: Future>(future: F) -> F::Output {
        Runtime::new(&Config::for_test(Driver::Sim)).expect("it runs everywhere").block_on(future)
    }

    #[test]
    fn who_waits_goes_on_when_it_holds() {
        run(async {
            let notify = Rc::new(Notify::default());
            let room = Rc::new(Cell::new(false));
            let (there, seen) = (Rc::clone(&notify), Rc::clone(&room));
            let waiting = spawn(async move { there.until(|| seen.get()).await });
            yield_now().await;
            notify.notify_all();
            yield_now().await;
            assert!(!waiting.is_finished(), "it does not hold yet");
            room.set(true);
            notify.notify_all();
            waiting.await;
        });
    }

    #[test]
    fn a_notification_between_the_call_and_the_first_poll_counts() {
        let notify = Notify::default();
        let mut context = Context::from_waker(Waker::noop());
        let (mut early, mut late) = (pin!(notify.notified()), pin!(notify.notified()));
        assert!(early.as_mut().poll(&mut context).is_pending());
        notify.notify_all();
        assert!(early.poll(&mut context).is_ready() && late.as_mut().poll(&mut context).is_ready());
        assert!(pin!(notify.notified()).poll(&mut context).is_pending(), "it waits for the next one");
    }

    #[test]
    fn futures_that_are_dropped_leave_no_entry() {
        let notify = Notify::default();
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..100 {
            assert!(pin!(notify.until(|| false)).poll(&mut context).is_pending());
            assert!(pin!(notify.notified()).poll(&mut context).is_pending());
        }
        assert!(notify.waiting.is_empty());
    }
}
