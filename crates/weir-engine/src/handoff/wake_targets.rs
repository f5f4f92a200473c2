//! Waking another worker: how each is reached, what all ports of a group know, and when a sleeper is woken.
//!
//! How a runtime sees that it was woken, and loses no wake, is the crate's `wake_flag.rs`.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicU32, Ordering, fence},
};

use crossbeam_utils::CachePadded;

use super::{HandoffCounters, Options, Strategy};
use crate::{
    doorbell::Doorbell,
    driver::{DriverOps, dispatch},
    executor::Core,
    inbox::Inbox,
};

/// How a worker is reached, once it is attached.
pub(super) struct WakeTarget {
    pub(super) inbox: Arc<Inbox>,
    pub(super) doorbell: Arc<Doorbell>,
}

/// What all ports of a group know.
pub(super) struct Group {
    pub(super) strategy: Strategy,
    pub(super) overflow_max: usize,
    pub(super) targets: Box<[OnceLock<WakeTarget>]>,
    /// By worker: it takes nothing any more. Written once.
    ended: Box<[AtomicBool]>,
    /// By worker: something waits there because a queue was full. Written when that begins and when it is over.
    pub(super) congested: Box<[AtomicBool]>,
    /// By worker: odd from before it puts something into a queue until it has announced it.
    pub(super) publishing: Box<[CachePadded<AtomicU32>]>,
    pub(super) counters: Box<[Arc<HandoffCounters>]>,
}

impl Group {
    pub(super) fn new(workers: usize, options: &Options) -> Self {
        let counters = || Arc::new(HandoffCounters::new(options.strategy));
        Self {
            strategy: options.strategy,
            overflow_max: options.overflow_max.max(1),
            targets: (0..workers).map(|_| OnceLock::new()).collect(),
            ended: (0..workers).map(|_| AtomicBool::new(false)).collect(),
            congested: (0..workers).map(|_| AtomicBool::new(false)).collect(),
            publishing: (0..workers).map(|_| CachePadded::new(AtomicU32::new(0))).collect(),
            counters: (0..workers).map(|_| counters()).collect(),
        }
    }

    /// How to reach a worker; `None` before it is attached.
    pub(super) fn target(&self, worker: usize) -> Option<&WakeTarget> {
        self.targets[worker].get().or_else(|| {
            // Either this sees the target, or the worker's first look sees what was published.
            fence(Ordering::SeqCst);
            self.targets[worker].get()
        })
    }

    pub(super) fn has_ended(&self, worker: usize) -> bool {
        self.ended.get(worker).is_some_and(|ended| ended.load(Ordering::Acquire))
    }

    /// A worker takes nothing any more. Wakes those that may wait for it to take something.
    pub(super) fn end(&self, worker: usize) {
        if self.ended[worker].swap(true, Ordering::AcqRel) {
            return;
        }
        // Against `State::note_congested` and `Port::attach`: either the end is seen there, or the wait for it here.
        fence(Ordering::SeqCst);
        for (target, congested) in self.targets.iter().zip(&self.congested) {
            if congested.load(Ordering::Relaxed)
                && let Some(target) = target.get()
                && target.inbox.announce()
            {
                target.doorbell.ring();
            }
        }
        if let Some(target) = self.targets[worker].get() {
            target.doorbell.refuse_messages();
        }
    }

    /// Announces what was published for a worker. With a runtime in its turn a sleeper may be sent a message.
    pub(super) fn announce(&self, own: usize, to: usize, core: Option<&Core>) {
        let Some(target) = self.target(to) else { return };
        let counters = &self.counters[own];
        match self.strategy {
            Strategy::Owner => {}
            Strategy::Naive | Strategy::Edge | Strategy::Armed => {
                // The flag decides nothing here: it tells the consumer that its wake was no accident.
                target.inbox.announce();
                target.doorbell.ring();
                counters.wakes_sent.increment();
            }
            Strategy::Mesh | Strategy::MeshSpin | Strategy::MsgRing => self.wake_sleeper(own, target, core),
        }
    }

    /// Wakes a worker if it sleeps.
    pub(super) fn wake_sleeper(&self, own: usize, target: &WakeTarget, core: Option<&Core>) {
        let counters = &self.counters[own];
        if !target.inbox.announce() {
            counters.wakes_suppressed.increment();
            return;
        }
        counters.wakes_sent.increment();
        match core {
            Some(core) if self.strategy == Strategy::MsgRing => {
                // Not as `with_driver` does it, which may call somebody's waker: the port is borrowed.
                dispatch!(&mut *core.driver.borrow_mut(), driver => driver.send_message(&target.doorbell));
            }
            _ => target.doorbell.ring(),
        }
    }
}
