//! What crosses from one worker of the gateway to another, and what happens when it finds no room.

use std::{rc::Rc, sync::atomic::Ordering};

use weir_engine::handoff::Priority;

use super::Gateway;
use crate::{
    gateway::{
        bounds::ANSWERS_MAX,
        task::{Kind, Task},
    },
    overflow::{Handed, Overflow},
};

impl Gateway {
    /// Answers go first, and nothing is lost: what finds no room waits here.
    pub(super) fn push(&self, worker: usize, task: Task) {
        let (overflow, lane) = (&self.overflow[worker], task.role().lane());
        let task = if overflow.count(lane) == 0 {
            let Err(task) = self.port.push(worker, lane, task) else { return };
            task
        } else {
            task
        };
        if !self.common.hands_off {
            // An answer to an order of an earlier start with another route: nobody would ever take it.
            return;
        }
        overflow.add(task);
        self.overflowed[worker].raise();
        if lane == Priority::Response {
            self.fall_behind();
        }
    }

    /// Answers are stuck: nobody sends here until they are on their way, or there would be more and more of them. What
    /// was sent before is taken all the same, because two workers that did not would wait for each other.
    fn fall_behind(&self) {
        if !self.is_behind.replace(true) {
            self.common.behind[self.worker].store(true, Ordering::Relaxed);
        }
    }

    /// Nothing is stuck any more.
    fn catch_up(&self) {
        if self.is_behind.replace(false) {
            self.common.behind[self.worker].store(false, Ordering::Relaxed);
            self.tell_room();
        }
    }

    /// Tells the clients that wait for room.
    fn tell_room(&self) {
        self.waiters.notify();
        for worker in self.others() {
            self.push(worker, Task::bare(Kind::Room, 0));
        }
    }

    /// Whether so many answers are stuck that no exchange may say anything more.
    #[inline]
    pub(in crate::gateway) fn is_full(&self) -> bool {
        let most = ANSWERS_MAX * self.upstreams.len();
        let is_full = |worker: usize| self.overflow[worker].count(Priority::Response) >= most;
        self.is_behind.get() && self.others().any(is_full)
    }

    /// Whether something waits for a worker that takes less than there is.
    pub(super) fn is_congested(&self, worker: usize) -> bool {
        !self.overflow[worker].is_empty() || self.port.is_congested(worker)
    }

    /// Waits until nothing waits for that worker any more.
    pub(super) async fn room(&self, worker: usize) {
        while self.is_congested(worker) {
            self.waiters.until(|| self.overflow[worker].is_empty()).await;
            // Fails when that worker has ended: then nothing waits for it any more.
            let _ = self.port.room(worker).await;
        }
    }
}

/// Hands over what found no room at one worker, for as long as this one runs.
pub(super) async fn drain_overflow(gateway: Rc<Gateway>, worker: usize) {
    let overflow = &gateway.overflow[worker];
    loop {
        gateway.overflowed[worker].raised().await;
        while !overflow.is_empty() {
            match gateway.port.room(worker).await {
                Ok(()) => {
                    overflow.hand_over(|task| gateway.port.push(worker, task.role().lane(), task).is_ok())
                }
                // A worker that has ended needs to be told nothing.
                Err(_) => overflow.clear(),
            }
        }
        if gateway.overflow.iter().all(Overflow::is_empty) {
            gateway.catch_up();
        }
        gateway.waiters.notify();
    }
}
