//! Timers of a runtime: its wheel says which are due, and each keeps the waker of the task that waits for it.

use std::task::{Poll, Waker};

use super::Core;
use crate::{clock::Instant, slab::SlotId, timer::TimerId};

pub(super) struct TimerEntry {
    waker: Waker,
    fired: bool,
}

impl Core {
    pub(super) fn fire_timers(&self) {
        if self.wheel.borrow().is_empty() {
            return;
        }
        let now = self.now().as_nanos();
        // Wakers are called when no table is borrowed: what they do is not ours to know.
        let mut due = self.due.take();
        let mut timers = self.timers.borrow_mut();
        self.wheel.borrow_mut().expire(now, |key| {
            if let Some(entry) = timers.get_mut(timer_slot(key)) {
                entry.fired = true;
                due.push(entry.waker.clone());
            }
        });
        drop(timers);
        self.counters.timers_fired.add(due.len() as u64);
        due.drain(..).for_each(Waker::wake);
        self.due.set(due);
    }

    pub(crate) fn poll_timer(
        &self,
        deadline: Instant,
        timer: &mut Option<(SlotId, TimerId)>,
        waker: &Waker,
    ) -> Poll<()> {
        if let Some((slot, _)) = *timer {
            let mut timers = self.timers.borrow_mut();
            let Some(entry) = timers.get_mut(slot) else { return Poll::Ready(()) };
            if entry.fired {
                timers.remove(slot);
                *timer = None;
                return Poll::Ready(());
            }
            entry.waker.clone_from(waker);
            return Poll::Pending;
        }
        if deadline <= self.now() {
            return Poll::Ready(());
        }
        let entry = TimerEntry { waker: waker.clone(), fired: false };
        let Ok(slot) = self.timers.borrow_mut().insert(entry) else {
            panic!("the runtime's limit of timers is reached");
        };
        match self.wheel.borrow_mut().insert(deadline.as_nanos(), timer_key(slot)) {
            Ok(id) => *timer = Some((slot, id)),
            Err(error) => panic!("{error}"),
        }
        Poll::Pending
    }

    pub(crate) fn remove_timer(&self, (slot, id): (SlotId, TimerId)) {
        self.wheel.borrow_mut().remove(id);
        self.timers.borrow_mut().remove(slot);
    }
}

fn timer_key(slot: SlotId) -> u64 {
    u64::from(slot.generation) << 32 | u64::from(slot.index)
}

fn timer_slot(key: u64) -> SlotId {
    SlotId { index: key as u32, generation: (key >> 32) as u32 }
}
