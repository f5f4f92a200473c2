//! Waking a task of the same worker.

use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    task::{Context, Poll, Waker},
};

/// Something one task waits for and others of its worker announce. Announcing it again before it is taken costs
/// nothing.
#[derive(Debug, Default)]
pub(super) struct Signal {
    is_raised: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Signal {
    /// Announces it.
    #[inline]
    pub(super) fn raise(&self) {
        if !self.is_raised.replace(true) {
            self.wake();
        }
    }

    /// Wakes the task without announcing anything: what it waits for beside may have changed.
    pub(super) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// Takes the announcement, or leaves a waker.
    pub(super) fn poll(&self, context: &Context<'_>) -> Poll<()> {
        if self.is_raised.replace(false) {
            return Poll::Ready(());
        }
        self.register(context);
        Poll::Pending
    }

    /// Leaves a waker.
    pub(super) fn register(&self, context: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            *waker = Some(context.waker().clone());
        }
    }

    /// Waits for it.
    pub(super) async fn raised(&self) {
        poll_fn(|context| self.poll(context)).await;
    }
}

/// Tasks that wait for room.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    wakers: RefCell<Vec<Waker>>,
}

impl Waiters {
    /// Waits until `is_over` holds; it is asked again after each [`Self::wake_all`].
    pub(super) async fn wait(&self, is_over: impl Fn() -> bool) {
        poll_fn(|context| {
            if is_over() {
                return Poll::Ready(());
            }
            let mut wakers = self.wakers.borrow_mut();
            if !wakers.iter().any(|waker| waker.will_wake(context.waker())) {
                wakers.push(context.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    /// Something has changed.
    pub(super) fn wake_all(&self) {
        let wakers = std::mem::take(&mut *self.wakers.borrow_mut());
        wakers.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use weir_engine::{Config, Driver, Runtime, spawn, time::yield_now};

    use super::*;

    fn run<F: Future>(future: F) -> F::Output {
        Runtime::new(&Config::with_driver(Driver::Sim)).expect("it runs everywhere").block_on(future)
    }

    #[test]
    fn a_signal_raised_twice_before_it_is_taken_is_one() {
        run(async {
            let signal = std::rc::Rc::new(Signal::default());
            signal.raise();
            signal.raise();
            signal.raised().await;
            let other = std::rc::Rc::clone(&signal);
            let waiting = spawn(async move { other.raised().await });
            yield_now().await;
            assert!(!waiting.is_finished());
            signal.raise();
            waiting.await;
        });
    }

    #[test]
    fn who_waits_for_room_goes_on_when_there_is_some() {
        run(async {
            let waiters = std::rc::Rc::new(Waiters::default());
            let room = std::rc::Rc::new(Cell::new(false));
            let (there, seen) = (std::rc::Rc::clone(&waiters), std::rc::Rc::clone(&room));
            let waiting = spawn(async move { there.wait(|| seen.get()).await });
            yield_now().await;
            waiters.wake_all();
            yield_now().await;
            assert!(!waiting.is_finished(), "there was no room yet");
            room.set(true);
            waiters.wake_all();
            waiting.await;
        });
    }
}
