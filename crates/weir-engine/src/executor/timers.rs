//! Timers of a runtime: its wheel holds, for each, the waker of the task that waits for it.

use std::task::{Poll, Waker};

use super::Core;
use crate::{clock::Instant, timer_wheel::TimerId};

impl Core {
    pub(super) fn fire_timers(&self) {
        if self.wheel.borrow().is_empty() {
            return;
        }
        let now = self.now().as_nanos();
        // Wakers are called when no table is borrowed: what they do is not ours to know.
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
            // One that is not armed any more has fired.
            let mut wheel = self.wheel.borrow_mut();
            let Some(armed) = wheel.get_mut(id) else {
                *timer = None;
                return Poll::Ready(());
            };
            armed.clone_from(waker);
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
        // Dropped when the wheel is not borrowed any more.
        let waker = self.wheel.borrow_mut().remove(timer);
        drop(waker);
    }
}
