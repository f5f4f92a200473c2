//! An event that is stored until one task takes it.

use std::{
    cell::{Cell, RefCell},
    future::{Future, poll_fn},
    task::{Poll, Waker},
};

use crate::wakers;

/// An event that one task waits for and other tasks of its thread announce. Announcing it again before it is taken has
/// no effect. A second task that waits replaces the first. For any number of tasks, see [`Notify`](super::Notify).
///
/// The waker stays where it is from one event to the next: an announcement allocates nothing and copies nothing.
#[derive(Debug, Default)]
pub struct Signal {
    is_raised: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Signal {
    /// Announces it.
    #[inline]
    pub fn raise(&self) {
        if !self.is_raised.replace(true) {
            self.wake();
        }
    }

    /// Wakes the task without announcing anything: another condition that it waits for may have changed.
    #[inline]
    pub fn wake(&self) {
        // Taken out while it is woken, because it may run any code; then put back, unless that code has stored another.
        let Some(waker) = self.waker.take() else { return };
        waker.wake_by_ref();
        let mut place = self.waker.borrow_mut();
        if place.is_none() {
            *place = Some(waker);
        }
    }

    /// Takes the announcement, or stores a waker.
    #[inline]
    pub fn poll(&self, waker: &Waker) -> Poll<()> {
        if self.is_raised.replace(false) {
            return Poll::Ready(());
        }
        self.register(waker);
        Poll::Pending
    }

    /// Stores a waker.
    #[inline]
    pub fn register(&self, waker: &Waker) {
        let previous = wakers::store(&mut self.waker.borrow_mut(), waker);
        drop(previous);
    }

    /// Waits for it. Dropping the future leaves an announcement for the next one.
    pub fn raised(&self) -> impl Future<Output = ()> + '_ {
        poll_fn(|context| self.poll(context.waker()))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        rc::Rc,
        sync::Arc,
        task::{Context, Wake},
    };

    use super::*;
    use crate::{Config, Driver, Runtime, spawn, time::yield_now};

    #[test]
    fn a_signal_raised_twice_before_it_is_taken_is_one() {
        let runtime = Runtime::new(&Config::for_test(Driver::Sim)).expect("it runs everywhere");
        runtime.block_on(async {
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

    thread_local! {
        static SHARED: RefCell<Option<Rc<Signal>>> = const { RefCell::new(None) };
        static LOOKS: Cell<u32> = const { Cell::new(0) };
    }

    /// A foreign waker that polls the signal again when it is woken, as an inline executor does, and when it is
    /// dropped.
    struct Inline;

    impl Inline {
        fn look() {
            LOOKS.set(LOOKS.get() + 1);
            let shared = SHARED.with_borrow(|shared| shared.clone());
            if let Some(shared) = shared {
                let _ = shared.poll(Waker::noop());
            }
        }
    }

    impl Wake for Inline {
        fn wake(self: Arc<Self>) {
            Self::look();
        }
    }

    impl Drop for Inline {
        fn drop(&mut self) {
            Self::look();
        }
    }

    #[test]
    fn a_waker_may_poll_the_signal_when_it_is_woken_and_when_it_is_replaced() {
        let signal = Rc::new(Signal::default());
        SHARED.set(Some(Rc::clone(&signal)));
        let waker = Waker::from(Arc::new(Inline));
        assert!(signal.poll(&waker).is_pending());
        drop(waker);
        signal.raise();
        assert_eq!(LOOKS.get(), 1, "woken");
        // It took the announcement. The next wait replaces its waker.
        let mut context = Context::from_waker(Waker::noop());
        assert!(std::pin::pin!(signal.raised()).poll(&mut context).is_pending());
        assert_eq!(LOOKS.get(), 2, "dropped");
        SHARED.set(None);
    }
}
