//! Waking another worker: how each is reached, the state that all ports of a group share, and when a sleeper is
//! woken.
//!
//! The crate's `wake_flag.rs` explains how a runtime sees that it was woken, and why no wake is lost.

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

/// The state that all ports of a group share.
pub(super) struct Group {
    pub(super) strategy: Strategy,
    pub(super) overflow_max: usize,
    pub(super) targets: Box<[OnceLock<WakeTarget>]>,
    /// By worker: it no longer takes messages. Written once.
    ended: Box<[AtomicBool]>,
    /// By worker: messages wait there because a queue was full. Written when that begins and when it ends.
    pub(super) congested: Box<[AtomicBool]>,
    /// By worker: odd from before it puts a message into a queue until it has announced it.
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

    /// The wake target of a worker; `None` before it is attached.
    pub(super) fn target(&self, worker: usize) -> Option<&WakeTarget> {
        self.targets[worker].get().or_else(|| {
            // Either this sees the target, or the worker's first check sees the published messages.
            fence(Ordering::SeqCst);
            self.targets[worker].get()
        })
    }

    pub(super) fn has_ended(&self, worker: usize) -> bool {
        self.ended.get(worker).is_some_and(|ended| ended.load(Ordering::Acquire))
    }

    /// A worker no longer takes messages. Wakes those that may wait for it to take some.
    pub(super) fn end(&self, worker: usize) {
        if self.ended[worker].swap(true, Ordering::AcqRel) {
            return;
        }
        // Pairs with the fences in `State::note_congested` and `Port::attach`: either they see the end, or this sees
        // the wait for it.
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

    /// Announces messages that were published for a worker. From a runtime in its turn, a sleeper may be woken by a
    /// message.
    pub(super) fn announce(&self, own: usize, to: usize, core: Option<&Core>) {
        let Some(target) = self.target(to) else { return };
        match self.strategy {
            Strategy::Owner => {}
            #[cfg(any(test, feature = "lab"))]
            Strategy::Naive | Strategy::Edge | Strategy::Armed => {
                // The flag does not decide here: it shows the consumer that its wake was not spurious.
                target.inbox.announce();
                target.doorbell.ring();
                self.counters[own].wakes_sent.increment();
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
                // Not through `with_driver`, which may call a foreign waker: the port is borrowed.
                dispatch!(&mut *core.driver.borrow_mut(), driver => driver.send_message(&target.doorbell));
            }
            _ => target.doorbell.ring(),
        }
    }
}
