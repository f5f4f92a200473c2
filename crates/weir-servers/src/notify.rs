//! Waking tasks of the same worker: a [`Signal`] for one, a [`Notify`] for any number.

use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    task::{Context, Poll, Waker},
};

/// An event that one task waits for and other tasks of its worker announce. Announcing it again before it is taken
/// has no effect.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    is_raised: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Signal {
    /// Announces it.
    #[inline]
    pub(crate) fn raise(&self) {
        if !self.is_raised.replace(true) {
            self.wake();
        }
    }

    /// Wakes the task without announcing anything: another condition that it waits for may have changed.
    pub(crate) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// Takes the announcement, or stores a waker.
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<()> {
        if self.is_raised.replace(false) {
            return Poll::Ready(());
        }
        self.register(context);
        Poll::Pending
    }

    /// Stores a waker.
    pub(crate) fn register(&self, context: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            *waker = Some(context.waker().clone());
        }
    }

    /// Waits for it.
    pub(crate) async fn raised(&self) {
        poll_fn(|context| self.poll(context)).await;
    }
}

/// Tasks that wait for an event. At most as many as there are connections.
#[derive(Debug, Default)]
pub(crate) struct Notify(RefCell<Vec<Waker>>);

impl Notify {
    /// Stores a waker for the next time.
    pub(crate) fn register(&self, waker: &Waker) {
        let mut wakers = self.0.borrow_mut();
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }

    /// Wakes all waiting tasks.
    pub(crate) fn notify(&self) {
        // Nothing is borrowed while they are woken, because a waker may run any code.
        let wakers = self.0.take();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Waits until a condition holds, and checks it at each notification.
    pub(crate) async fn until(&self, holds: impl Fn() -> bool) {
        poll_fn(|context| {
            if holds() {
                return Poll::Ready(());
            }
            self.register(context.waker());
            Poll::Pending
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use weir_engine::{Config, Driver, Runtime, spawn, time::yield_now};

    use super::*;

    fn run<F: Future>(future: F) -> F::Output {
        Runtime::new(&Config::with_driver(Driver::Sim)).expect("it runs everywhere").block_on(future)
    }

    #[test]
    fn a_signal_raised_twice_before_it_is_taken_is_one() {
        run(async {
            let signal = Rc::new(Signal::default());
            signal.raise();
            signal.raise();
            signal.raised().await;
            let other = Rc::clone(&signal);
            let waiting = spawn(async move { other.raised().await });
            yield_now().await;
            assert!(!waiting.is_finished());
            signal.raise();
            waiting.await;
        });
    }

    #[test]
    fn who_waits_goes_on_when_it_holds() {
        run(async {
            let notify = Rc::new(Notify::default());
            let room = Rc::new(Cell::new(false));
            let (there, seen) = (Rc::clone(&notify), Rc::clone(&room));
            let waiting = spawn(async move { there.until(|| seen.get()).await });
            yield_now().await;
            notify.notify();
            yield_now().await;
            assert!(!waiting.is_finished(), "it does not hold yet");
            room.set(true);
            notify.notify();
            waiting.await;
        });
    }
}
