//! Where a runtime is woken from other threads: an eventfd, and a ring that takes messages where there is one.

use std::{
    os::fd::OwnedFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::counters::Counters;

/// Where a runtime is woken from other threads.
#[derive(Debug)]
pub(crate) struct Doorbell {
    eventfd: Arc<OwnedFd>,
    /// Of the runtime that is woken.
    counters: Arc<Counters>,
    /// A descriptor of its ring, if it takes messages, for as long as it does.
    messages: Mutex<Option<Arc<OwnedFd>>>,
}

impl Doorbell {
    pub(crate) fn new(eventfd: Arc<OwnedFd>, messages: Option<OwnedFd>, counters: Arc<Counters>) -> Self {
        Self { eventfd, counters, messages: Mutex::new(messages.map(Arc::new)) }
    }

    pub(crate) fn eventfd(&self) -> &Arc<OwnedFd> {
        &self.eventfd
    }

    /// Where messages go. Whoever sends one keeps this until the kernel has taken it.
    pub(crate) fn messages(&self) -> Option<Arc<OwnedFd>> {
        self.lock().clone()
    }

    /// No more messages: the descriptor, which keeps the whole ring, is closed behind those that are on their way.
    pub(crate) fn refuse_messages(&self) {
        let ring = self.lock().take();
        // The last descriptor of a ring takes its time to close: not under the lock.
        drop(ring);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<OwnedFd>>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the eventfd.
    pub(crate) fn ring(&self) {
        self.counters.wake_calls.increment_shared();
        // The counter cannot overflow: the write fails with EAGAIN at 2^64 - 2, and then it is readable anyway.
        let _ = rustix::io::write(&*self.eventfd, &1u64.to_ne_bytes());
    }
}
