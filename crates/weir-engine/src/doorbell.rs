//! How other threads wake a runtime: by an eventfd, or by a message to its ring if the ring takes messages.

use std::{
    os::fd::OwnedFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::counters::Counters;

/// The wake-up side of one runtime.
#[derive(Debug)]
pub(crate) struct Doorbell {
    eventfd: Arc<OwnedFd>,
    /// The counters of the runtime that is woken.
    counters: Arc<Counters>,
    /// A descriptor of its ring, while the ring takes messages.
    messages: Mutex<Option<Arc<OwnedFd>>>,
}

impl Doorbell {
    pub(crate) fn new(eventfd: Arc<OwnedFd>, messages: Option<OwnedFd>, counters: Arc<Counters>) -> Self {
        Self { eventfd, counters, messages: Mutex::new(messages.map(Arc::new)) }
    }

    pub(crate) fn eventfd(&self) -> &Arc<OwnedFd> {
        &self.eventfd
    }

    /// The ring that takes messages, if there is one. A sender keeps the descriptor until the kernel has taken its
    /// message.
    pub(crate) fn messages(&self) -> Option<Arc<OwnedFd>> {
        self.lock().clone()
    }

    /// Ends messages. The descriptor, which keeps the whole ring alive, is closed after the messages in flight.
    pub(crate) fn refuse_messages(&self) {
        let ring = self.lock().take();
        // Closing the last descriptor of a ring is slow, so it happens outside the lock.
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
