//! Timers of a runtime: for each timer, the wheel holds the waker of the waiting task.

use std::task::{Poll, Waker};

use super::Core;
use crate::{clock::Instant, timer_wheel::TimerId, wakers};

impl Core {
    pub(super) fn fire_timers(&self) {
        if self.wheel.borrow().is_empty() {
            return;
        }
        let now = self.now().as_nanos();
        // Wakers are called when no table is borrowed, because they may run any code.
        let mut due = self.due.take();
        self.wheel.borrow_mut().expire(now, |waker| due.push(waker));
        self.counters.timers_fired.add(due.len() as u64);
        due.drain(..).for_each(Waker::wake);
        self.due.set(due);
    }

    pub(crate) fn poll_timer(
        &self,
        deadline: Instant,
        timer: &mut Option<TimerId>,
        waker: &Waker,
    ) -> Poll<()> {
        if let Some(id) = *timer {
            // A timer that is no longer armed has fired.
            let mut wheel = self.wheel.borrow_mut();
            let Some(armed) = wheel.get_mut(id) else {
                *timer = None;
                return Poll::Ready(());
            };
            let previous = wakers::exchange(armed, waker);
            drop(wheel);
            drop(previous);
            return Poll::Pending;
        }
        if deadline <= self.now() {
            return Poll::Ready(());
        }
        match self.wheel.borrow_mut().insert(deadline.as_nanos(), waker.clone()) {
            Ok(id) => *timer = Some(id),
            Err(error) => panic!("{error}"),
        }
        Poll::Pending
    }

    pub(crate) fn remove_timer(&self, timer: TimerId) {
        // Dropped when the wheel is no longer borrowed.
        let waker = self.wheel.borrow_mut().remove(timer);
        drop(waker);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::RefCell,
        pin::{Pin, pin},
        sync::Arc,
        task::{Context, Wake},
        time::Duration,
    };

    use super::*;
    use crate::{
        config::{Config, Driver},
        executor::Executor,
        time::{Sleep, sleep, timeout},
    };

    thread_local! {
        /// The values that the test's wakers own: timers belong to a thread, and wakers belong to none.
        static OWNED: RefCell<Vec<Pin<Box<Sleep>>>> = const { RefCell::new(Vec::new()) };
    }

    /// A foreign waker whose last reference drops a timer.
    struct OwnsTimer;

    impl Wake for OwnsTimer {
        fn wake(self: Arc<Self>) {}
    }

    impl Drop for OwnsTimer {
        fn drop(&mut self) {
            drop(OWNED.take());
        }
    }

    #[test]
    fn any_number_is_a_maximum_of_timers() {
        let mut config = Config::for_test(Driver::Poll);
        config.limits.timers_max = usize::MAX;
        let executor = Executor::start(&config, Driver::Poll).expect("poll runs everywhere");
        executor.block_on(sleep(Duration::from_millis(1)));
    }

    #[test]
    fn a_waker_that_owns_a_timer_may_be_replaced_at_another() {
        const MINUTE: Duration = Duration::from_secs(60);
        let executor = Executor::start(&Config::for_test(Driver::Poll), Driver::Poll);
        executor.expect("poll runs everywhere").block_on(async {
            let mut owned = Box::pin(sleep(MINUTE));
            assert!(timeout(Duration::ZERO, &mut owned).await.is_err(), "it is armed");
            OWNED.with_borrow_mut(|timers| timers.push(owned));
            let mut sleeping = pin!(sleep(MINUTE));
            let first = Waker::from(Arc::new(OwnsTimer));
            assert!(sleeping.as_mut().poll(&mut Context::from_waker(&first)).is_pending());
            drop(first);
            assert!(sleeping.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            assert!(OWNED.take().is_empty(), "the first waker is let go");
        });
    }
}
