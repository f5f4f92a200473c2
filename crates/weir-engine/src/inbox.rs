//! Work that other threads leave for a runtime: wake-ups and calls, in bounded queues. Also the table that finds the
//! runtime of a wake-up.
//!
//! A wake-up costs a system call only when the runtime sleeps (see [`crate::wake_flag`]). When the wake queue is
//! full, every task of the runtime is woken instead: a wake-up may be spurious, but is never lost. When the call
//! queue is full the call is given back. A drain is a flag and needs no place in a queue.

use std::{
    fmt, io,
    os::fd::OwnedFd,
    sync::{
        Arc, RwLock,
        atomic::{AtomicBool, AtomicU8, Ordering, fence},
    },
};

use crossbeam_queue::ArrayQueue;
use rustix::event::EventfdFlags;

use crate::{counters::Counters, doorbell::Doorbell, slab::SlotId, wake_flag::WakeFlag};

/// Work for a runtime's own thread.
pub(crate) type Call = Box<dyn FnOnce() + Send>;

/// The wake queue was full: wake every task.
const WAKE_ALL: u8 = 1;
/// Begin to drain.
const DRAIN: u8 = 2;

/// The shared side of one runtime.
pub(crate) struct Inbox {
    pub(crate) flag: WakeFlag,
    wakes: ArrayQueue<SlotId>,
    /// Requests that need no place in a queue: [`WAKE_ALL`], [`DRAIN`].
    control: AtomicU8,
    calls: ArrayQueue<Call>,
    /// A doorbell without a ring for messages: threads that send messages have their own doorbell.
    doorbell: Doorbell,
    closed: AtomicBool,
    counters: Arc<Counters>,
}

impl fmt::Debug for Inbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Inbox").field("wakes", &self.wakes.len()).finish_non_exhaustive()
    }
}

impl Inbox {
    pub(crate) fn new(capacity: usize, counters: Arc<Counters>) -> io::Result<Arc<Self>> {
        let eventfd = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Arc::new(Self {
            flag: WakeFlag::new(),
            wakes: ArrayQueue::new(capacity.max(1)),
            control: AtomicU8::new(0),
            calls: ArrayQueue::new(capacity.max(1)),
            doorbell: Doorbell::new(Arc::new(eventfd), None, Arc::clone(&counters)),
            closed: AtomicBool::new(false),
            counters,
        }))
    }

    /// Queues work for the runtime's thread.
    pub(crate) fn call(&self, call: Call) -> Result<(), RemoteError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(RemoteError::Ended);
        }
        self.calls.push(call).map_err(|_| RemoteError::Full)?;
        self.notify();
        fence(Ordering::SeqCst);
        if self.closed.load(Ordering::SeqCst) {
            // The runtime may have emptied its queue for the last time before the push. Drop the call here then:
            // nothing else would, and a call may hold a socket.
            self.drop_calls();
        }
        Ok(())
    }

    /// Begins to drain the runtime, even if its call queue is full.
    pub(crate) fn drain(&self) {
        self.control.fetch_or(DRAIN, Ordering::Release);
        self.notify();
    }

    /// Wakes the runtime if it sleeps.
    pub(crate) fn notify(&self) {
        if self.announce() {
            self.doorbell.ring();
        } else {
            self.counters.wakes_suppressed.increment_shared();
        }
    }

    /// Announces work. True: the runtime sleeps, and the caller must wake it.
    pub(crate) fn announce(&self) -> bool {
        let sleeps = self.flag.notify();
        if sleeps {
            self.counters.wakes_sent.increment_shared();
        }
        sleeps
    }

    /// The eventfd that wakes the runtime.
    pub(crate) fn eventfd(&self) -> &Arc<OwnedFd> {
        self.doorbell.eventfd()
    }

    fn wake(&self, slot: SlotId) {
        if self.wakes.push(slot).is_err() {
            self.control.fetch_or(WAKE_ALL, Ordering::Release);
        }
        self.notify();
    }

    pub(crate) fn next_wake(&self) -> Option<SlotId> {
        self.wakes.pop()
    }

    /// Takes the requests that need no place in a queue.
    pub(crate) fn take_control_flags(&self) -> ControlFlags {
        // Load first: requests are rare.
        let flags = match self.control.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.control.swap(0, Ordering::AcqRel),
        };
        ControlFlags { wake_all: flags & WAKE_ALL != 0, drain: flags & DRAIN != 0 }
    }

    pub(crate) fn next_call(&self) -> Option<Call> {
        self.calls.pop()
    }

    /// Drops the calls that will not run.
    pub(crate) fn drop_calls(&self) {
        while self.calls.pop().is_some() {}
    }

    /// How many calls and wake-ups wait.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        (self.calls.len(), self.wakes.len())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.wakes.is_empty() && self.calls.is_empty() && self.control.load(Ordering::Relaxed) == 0
    }
}

/// Requests to a runtime that need no place in a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ControlFlags {
    /// Wake every task.
    pub(crate) wake_all: bool,
    /// Begin to drain.
    pub(crate) drain: bool,
}

/// Why a call was refused: the runtime has ended, or its queue of calls is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// The runtime has ended.
    #[error("the runtime has ended")]
    Ended,
    /// Its queue of calls is full.
    #[error("the runtime's queue of calls is full")]
    Full,
}

/// Runtimes by number. Numbers of ended runtimes are reused; a waker of an ended runtime may wake its successor
/// needlessly.
static RUNTIMES: RwLock<Runtimes> = RwLock::new(Runtimes { inboxes: Vec::new(), vacant: Vec::new() });

struct Runtimes {
    inboxes: Vec<Option<Arc<Inbox>>>,
    vacant: Vec<u16>,
}

/// Gives a runtime its number.
pub(crate) fn register(inbox: &Arc<Inbox>) -> io::Result<u16> {
    let mut runtimes = RUNTIMES.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    let inbox = Some(Arc::clone(inbox));
    if let Some(number) = runtimes.vacant.pop() {
        runtimes.inboxes[usize::from(number)] = inbox;
        return Ok(number);
    }
    let full = |_| io::Error::other("65536 runtimes are running");
    let number = u16::try_from(runtimes.inboxes.len()).map_err(full)?;
    runtimes.inboxes.push(inbox);
    Ok(number)
}

/// Takes a runtime's number back.
pub(crate) fn unregister(number: u16) {
    let mut runtimes = RUNTIMES.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(inbox) = runtimes.inboxes[usize::from(number)].take() {
        runtimes.vacant.push(number);
        inbox.closed.store(true, Ordering::SeqCst);
        // Orders the flag against the queue: a thread that does not see the flag has its call seen in the queue.
        fence(Ordering::SeqCst);
    }
}

/// Wakes a task of a runtime on another thread.
pub(crate) fn wake(runtime: u16, task: SlotId) {
    let runtimes = RUNTIMES.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(Some(inbox)) = runtimes.inboxes.get(usize::from(runtime)) {
        inbox.wake(task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_ended_runtimes_are_given_out_again() {
        let inbox = || Inbox::new(1, Arc::default()).expect("a descriptor");
        for _ in 0..100_000 {
            // Other tests hold some of the numbers meanwhile: there are enough only if numbers come back.
            unregister(register(&inbox()).expect("there is a number"));
        }
    }
}
