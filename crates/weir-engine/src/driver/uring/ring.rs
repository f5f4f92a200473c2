//! One ring: set up with everything the kernel grants, entered at most once a turn, never full.
//!
//! Invariants: (1) an entry in the queue or the backlog names no memory ([`Ring::push`]), or the caller of
//! [`Ring::push_naming_memory`] vouches for the memory; (2) the ring is used on the thread that made it
//! (`IORING_SETUP_SINGLE_ISSUER`).

use std::{
    collections::VecDeque,
    io,
    os::fd::{AsRawFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use io_uring::{IoUring, Probe, opcode, squeue::Entry};
use weir_engine_types::kernel::KernelFeature;
use weir_sys::ring::{
    ENTER_EXT_ARG, ENTER_GETEVENTS, ENTER_NO_IOWAIT, ENTER_REGISTERED_RING, ENTER_SQ_WAIT, ENTER_SQ_WAKEUP,
    EnterWait, enter, register_ring, unregister_ring,
};

use super::{plain_entry::PlainEntry, setup::set_up};
use crate::{
    config::{KernelMask, ReceiveMode, UringOptions},
    counters::Counters,
    driver::error,
};

/// The longest limit of a wait; the next turn waits again. The kernel adds a limit to its clock, and a sum beyond
/// `i64` nanoseconds lies in the past. A wait that has a minimum needs a limit: otherwise the kernel gives up at the
/// minimum.
const LONG: Duration = Duration::from_secs(24 * 60 * 60);

/// One completion, copied out of the ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completion {
    pub(super) token: u64,
    pub(super) result: i32,
    pub(super) flags: u32,
}

/// The features that the kernel granted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Granted {
    pub(super) single_issuer: bool,
    pub(super) defer_taskrun: bool,
    pub(super) taskrun_flag: bool,
    pub(super) no_sqarray: bool,
    pub(super) registered_ring: bool,
    pub(super) no_iowait: bool,
    pub(super) skip_success: bool,
    pub(super) multishot_poll: bool,
}

pub(super) struct Ring {
    ring: IoUring,
    /// Entries that found the submission queue full; they go first.
    backlog: VecDeque<Entry>,
    descriptor: i32,
    flags: u32,
    #[cfg(any(test, feature = "lab"))]
    submit_each: bool,
    minimum_wait: Duration,
    /// A kernel thread submits.
    polled: bool,
    masked: KernelMask,
    pub(super) granted: Granted,
    #[cfg(test)]
    pub(super) disorder: Option<super::fault_injection::Disorder>,
}

impl Ring {
    pub(super) fn new(options: &UringOptions, masked: KernelMask) -> io::Result<Self> {
        let (ring, setup) = set_up(options, masked)?;
        let parameters = ring.params();
        if !parameters.is_feature_ext_arg()
            || !parameters.is_feature_nodrop()
            || !parameters.is_feature_fast_poll()
            || masked.hides(KernelFeature::WaitArguments)
        {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let can_wait_longer =
            parameters.is_feature_min_timeout() && !masked.hides(KernelFeature::MinimumWait);
        if !options.minimum_wait.is_zero() && !can_wait_longer {
            return Err(error::missing(KernelFeature::MinimumWait, "IORING_FEAT_MIN_TIMEOUT"));
        }
        let can_bundle =
            parameters.is_feature_recvsend_bundle() && !masked.hides(KernelFeature::ReceiveBundle);
        if options.receive == ReceiveMode::Bundle && !can_bundle {
            return Err(error::missing(KernelFeature::ReceiveBundle, "IORING_FEAT_RECVSEND_BUNDLE"));
        }
        let mut granted = Granted {
            single_issuer: setup.single_issuer,
            defer_taskrun: setup.defer_taskrun && setup.single_issuer,
            taskrun_flag: setup.cooperative,
            no_sqarray: setup.no_sqarray,
            registered_ring: false,
            no_iowait: parameters.is_feature_no_iowait() && !masked.hides(KernelFeature::NoIowait),
            // A missing completion is meaningful only after a call has submitted: here no call submits.
            skip_success: parameters.is_feature_skip_cqe_on_success()
                && options.poll_idle_ms.is_none()
                && !masked.hides(KernelFeature::SkippedCompletions),
            // Both came with 5.13.
            multishot_poll: parameters.is_feature_resource_tagging()
                && !masked.hides(KernelFeature::MultishotPoll),
        };
        let mut descriptor = ring.as_raw_fd();
        let mut flags = if granted.no_iowait { ENTER_NO_IOWAIT } else { 0 };
        if !masked.hides(KernelFeature::RegisteredRing)
            && let Ok(index) = register_ring(borrow(&ring))
        {
            granted.registered_ring = true;
            descriptor = index;
            flags |= ENTER_REGISTERED_RING;
        }
        Ok(Self {
            ring,
            backlog: VecDeque::new(),
            descriptor,
            flags,
            #[cfg(any(test, feature = "lab"))]
            submit_each: options.submit_each,
            minimum_wait: options.minimum_wait,
            polled: options.poll_idle_ms.is_some(),
            masked,
            granted,
            #[cfg(test)]
            disorder: None,
        })
    }

    /// Whether the kernel has an operation, and the feature for it.
    pub(super) fn supports(&self, code: u8, feature: KernelFeature) -> io::Result<bool> {
        let mut probe = Probe::new();
        self.ring.submitter().register_probe(&mut probe)?;
        Ok(probe.is_supported(code) && !self.masked.hides(feature))
    }

    /// A descriptor by which other rings can send messages to this one.
    pub(super) fn for_messages(&self) -> io::Result<OwnedFd> {
        if !self.supports(opcode::MsgRingData::CODE, KernelFeature::RingMessages)? {
            let reason = "the kernel has no IORING_OP_MSG_RING (5.18)";
            return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
        }
        borrow(&self.ring).try_clone_to_owned()
    }

    /// For registrations.
    pub(super) fn submitter(&self) -> io_uring::Submitter<'_> {
        self.ring.submitter()
    }

    /// Queues an entry that names no memory. Never fails: an entry that finds the queue full waits in front of it.
    #[inline]
    pub(super) fn push(&mut self, entry: PlainEntry, counters: &Counters) {
        // SAFETY: it names no memory.
        unsafe { self.push_naming_memory(entry.into_entry(), counters) }
    }

    /// As [`Self::push`], for an entry that names memory.
    ///
    /// # Safety
    /// The memory that the entry names must stay valid and in its place until its final completion has been seen. Until
    /// then nobody else may write to it, nor read it if the kernel writes to it.
    pub(super) unsafe fn push_naming_memory(&mut self, entry: Entry, counters: &Counters) {
        counters.submissions.increment();
        #[cfg(test)]
        let entry = match &mut self.disorder {
            Some(disorder) => disorder.submitted(entry),
            None => entry,
        };
        // SAFETY: the caller vouches for the memory that the entry names.
        if !self.backlog.is_empty() || unsafe { self.ring.submission().push(&entry) }.is_err() {
            self.backlog.push_back(entry);
        }
        #[cfg(any(test, feature = "lab"))]
        if self.submit_each {
            let wakeup = self.wakeup();
            if !self.polled || wakeup != 0 {
                // The next turn's enter meets the failure again and reports it.
                let _ = self.enter(EnterWait::default(), wakeup, counters);
            }
        }
    }

    fn move_backlog(&mut self) {
        if self.backlog.is_empty() {
            return;
        }
        let mut queue = self.ring.submission();
        while let Some(entry) = self.backlog.front() {
            // SAFETY: invariant 1.
            if unsafe { queue.push(entry) }.is_err() {
                break;
            }
            self.backlog.pop_front();
        }
    }

    /// Submits, waits for a completion if asked to, and runs deferred work. Enters the kernel only if needed.
    pub(super) fn turn(&mut self, wait: Option<Option<Duration>>, counters: &Counters) -> io::Result<()> {
        #[cfg(test)]
        self.backlog.extend(self.disorder.as_mut().and_then(|disorder| disorder.cancellation()));
        self.move_backlog();
        if self.polled {
            return self.turn_polled(wait, counters);
        }
        let (to_submit, must_run) = {
            let queue = self.ring.submission();
            (queue.len(), queue.cq_overflow() || !self.granted.taskrun_flag || queue.taskrun())
        };
        if must_run && self.ring.submission().cq_overflow() {
            counters.completion_overflows.increment();
        }
        let ready = !self.ring.completion().is_empty() || self.is_held_back();
        let sleep = wait.filter(|_| !ready && self.backlog.is_empty());
        if to_submit == 0 && !must_run && sleep.is_none() {
            return Ok(());
        }
        let outcome = match sleep {
            Some(limit) => {
                let wait = self.sleep(limit, counters.connections_open.get());
                self.enter(wait, ENTER_GETEVENTS | ENTER_EXT_ARG, counters)
            }
            None => self.enter(EnterWait::default(), ENTER_GETEVENTS, counters),
        };
        self.move_backlog();
        outcome
    }

    /// A turn with submission by the kernel's thread: the kernel is entered to wake that thread, to wait for room in
    /// its queue, to fetch overflowed completions, and to sleep.
    fn turn_polled(&mut self, wait: Option<Option<Duration>>, counters: &Counters) -> io::Result<()> {
        let mut flags = self.wakeup();
        if self.ring.submission().cq_overflow() {
            counters.completion_overflows.increment();
            flags |= ENTER_GETEVENTS;
        }
        let ready = !self.ring.completion().is_empty() || self.is_held_back();
        let outcome = match wait.filter(|_| !ready && self.backlog.is_empty()) {
            Some(limit) => {
                let wait = self.sleep(limit, counters.connections_open.get());
                self.enter(wait, flags | ENTER_GETEVENTS | ENTER_EXT_ARG, counters)
            }
            None => {
                if !self.backlog.is_empty() {
                    flags |= ENTER_SQ_WAIT;
                }
                if flags == 0 { Ok(()) } else { self.enter(EnterWait::default(), flags, counters) }
            }
        };
        self.move_backlog();
        outcome
    }

    /// The flag that wakes the kernel's thread, if it sleeps and there are submissions.
    fn wakeup(&mut self) -> u32 {
        // The pushed entries are published, and a fence lies between that and the check of the thread's flag.
        let queue = self.ring.submission();
        if self.polled && !queue.is_empty() && queue.need_wakeup() { ENTER_SQ_WAKEUP } else { 0 }
    }

    /// Whether a completion may still follow for bytes that the kernel has taken from a socket. The kernel's thread
    /// takes bytes and then completes, both under the ring's lock; a registration waits for that lock.
    pub(super) fn completes_late(&mut self) -> bool {
        self.polled && {
            let _ = self.ring.submitter().register_probe(&mut Probe::new());
            self.has_completions()
        }
    }

    /// A sleep: until the first completion; with a minimum wait until each connection may have produced one, or until
    /// the minimum is over and there is one. An earlier limit ends it.
    fn sleep(&self, limit: Option<Duration>, connections: u64) -> EnterWait {
        let limit = limit.map(|limit| limit.min(LONG));
        if self.minimum_wait.is_zero() || connections < 2 {
            return EnterWait { completions: 1, limit, minimum: Duration::ZERO };
        }
        let completions = connections.min(self.ring.params().cq_entries().into()) as u32;
        let limit = limit.unwrap_or(LONG);
        let minimum = if self.minimum_wait < limit { self.minimum_wait } else { Duration::ZERO };
        EnterWait { completions, limit: Some(limit), minimum }
    }

    fn enter(&mut self, wait: EnterWait, flags: u32, counters: &Counters) -> io::Result<()> {
        let to_submit = self.ring.submission().len() as u32;
        counters.enters.increment();
        let flags = flags | self.flags;
        // SAFETY: invariant 1.
        let outcome = counters.clock.call(|| unsafe { enter(self.descriptor, to_submit, flags, wait) });
        match outcome.map_err(|error| (error.raw_os_error(), error)) {
            // A signal, the time limit, a completion queue to empty first, or no memory for requests right now: the
            // next turn continues.
            Ok(_) | Err((Some(libc::EINTR | libc::ETIME | libc::EBUSY | libc::EAGAIN), _)) => Ok(()),
            Err((_, error)) => Err(error),
        }
    }

    /// Whether the kernel has not taken all submissions.
    pub(super) fn has_queued(&mut self) -> bool {
        !(self.backlog.is_empty() && self.ring.submission().is_empty())
    }

    /// Whether the kernel has consumed every submission, and no completion waits outside the completion queue.
    pub(super) fn is_caught_up(&mut self) -> bool {
        let queue = self.ring.submission();
        self.backlog.is_empty() && queue.is_empty() && !queue.cq_overflow()
    }

    /// Whether completions wait to be reaped.
    pub(super) fn has_completions(&mut self) -> bool {
        !self.ring.completion().is_empty() || self.ring.submission().cq_overflow() || self.is_held_back()
    }

    /// Whether a test holds completions back.
    #[inline]
    fn is_held_back(&self) -> bool {
        #[cfg(test)]
        if let Some(disorder) = &self.disorder {
            return disorder.holds_any();
        }
        false
    }

    /// How many of `bytes` a waiting send is offered: all, except in a test.
    #[inline]
    pub(super) fn offered(&mut self, bytes: u32) -> u32 {
        #[cfg(test)]
        if let Some(disorder) = &mut self.disorder {
            return disorder.offered(bytes);
        }
        bytes
    }

    /// Moves all completions into `into`.
    pub(super) fn reap(&mut self, into: &mut Vec<Completion>) {
        into.extend(self.ring.completion().map(|entry| Completion {
            token: entry.user_data(),
            result: entry.result(),
            flags: entry.flags(),
        }));
        #[cfg(test)]
        if let Some(disorder) = &mut self.disorder {
            disorder.completed(into);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.granted.registered_ring {
            // The thread lives on, and would keep the ring: a failure leaks it until the thread ends.
            let _ = unregister_ring(borrow(&self.ring), self.descriptor);
        }
    }
}

/// The ring's descriptor, borrowed for as long as the ring.
fn borrow(ring: &IoUring) -> BorrowedFd<'_> {
    // SAFETY: the ring owns the descriptor and outlives the borrow.
    unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_can_have_one_ring_after_another() {
        // A thread registers at most 16 at a time.
        for number in 0..40 {
            let new = || Ring::new(&UringOptions::default(), KernelMask::default());
            let (Ok(ring), Ok(second)) = (new(), new()) else { return };
            assert!(ring.granted.registered_ring && second.granted.registered_ring, "ring {number}");
        }
    }
}
