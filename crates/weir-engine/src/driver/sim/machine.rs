//! The simulated machine: descriptors over the network, their readiness, and the passing of virtual time.
//!
//! A descriptor that may be ready is in a queue, as in Linux's epoll. A wait reports its state when the wait ends,
//! not the event that queued it. With an edge trigger it then leaves the queue; with a level trigger it stays while
//! there is something to report. The seed decides the order of the events of one wait and how many of them come at
//! once.

use std::{io, os::fd::OwnedFd, sync::Arc, time::Duration};

use rustix::io::Errno;

use super::{
    descriptors::{Descriptors, Object, Trigger, Watch},
    network::{End, Network, Notice, Owner, State},
};
use crate::{
    clock::Instant,
    config::SimOptions,
    driver::readiness::{Interest, Ready},
    slab::SlotId,
};

/// Consecutive waits in which tasks only looked: after this many, time passes although a task is always ready, so
/// that a loop that yields until a time has come does end.
const LOOKS_MAX: u32 = 1000;

/// How far time passes at each further look.
const LOOK: Duration = Duration::from_micros(1);

/// In tests, this many looks mean a loop that never ends.
#[cfg(test)]
const TEST_LOOKS_MAX: u32 = 100_000;
#[cfg(test)]
const REPORTS_MAX: u32 = 100;

/// Events reported in one wait.
const EVENTS_MAX: usize = 512;

/// The machine.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) network: Network,
    pub(super) descriptors: Descriptors,
    pub(super) trigger: Trigger,
    /// Descriptors that may be ready.
    queue: Vec<Owner>,
    /// Kept to reuse its memory.
    looked_at: Vec<Owner>,
    notices: Vec<Notice>,
    /// File operations that are over and not collected.
    files: Vec<SlotId>,
    /// The runtime's real wake-up descriptor, and the driver's name for it.
    wake: Arc<OwnedFd>,
    pub(super) wake_token: u64,
    looks: u32,
}

impl Machine {
    pub(super) fn new(options: SimOptions, wake: Arc<OwnedFd>) -> Self {
        let mut network = Network::new(options);
        let trigger = match options.edge {
            true => Trigger::Edge,
            false if network.chance_below(2) == 0 => Trigger::Level,
            false => Trigger::Unnamed,
        };
        Self {
            network,
            descriptors: Descriptors::new(options.descriptors_max),
            trigger,
            queue: Vec::new(),
            looked_at: Vec::new(),
            notices: Vec::new(),
            files: Vec::new(),
            wake,
            wake_token: 0,
            looks: 0,
        }
    }

    /// Opens a descriptor for an object of the network.
    pub(super) fn open(&mut self, object: Object) -> Result<u32, Errno> {
        let Some(number) = self.descriptors.open(object) else {
            self.end(object, false);
            return Err(Errno::MFILE);
        };
        let owner = self.descriptors.owner(number);
        match object {
            Object::Listener(listener) => self.network.assign_listener(listener, owner),
            Object::End(end) => self.network.assign(end, owner),
        }
        Ok(number)
    }

    pub(super) fn close(&mut self, number: u32) {
        if let Some(closed) = self.descriptors.close(number) {
            self.end(closed.object, closed.resets);
        }
    }

    fn end(&mut self, object: Object, resets: bool) {
        match object {
            Object::Listener(listener) => self.network.close_listener(listener),
            Object::End(end) if resets => self.network.reset(end),
            Object::End(end) => self.network.close(end),
        }
    }

    /// The object of a descriptor that a call names.
    pub(super) fn object(&mut self, number: u32) -> Result<Object, Errno> {
        let descriptor = self.descriptors.get_mut(number).ok_or(Errno::BADF)?;
        descriptor.reports = 0;
        Ok(descriptor.object)
    }

    /// As [`Self::object`], for calls that need a connection.
    pub(super) fn connection(&mut self, number: u32) -> Result<End, Errno> {
        match self.object(number)? {
            Object::End(end) => Ok(end),
            Object::Listener(_) => Err(Errno::NOTCONN),
        }
    }

    fn state(&self, object: Object) -> State {
        match object {
            Object::Listener(listener) => self.network.listener_state(listener),
            Object::End(end) => self.network.state(end),
        }
    }

    /// Starts watching a descriptor, or changes what it is watched for. Existing readiness is reported.
    pub(super) fn watch(&mut self, number: u32, token: u64, interest: Interest) -> Result<(), Errno> {
        let owner = self.descriptors.owner(number);
        let descriptor = self.descriptors.get_mut(number).ok_or(Errno::BADF)?;
        descriptor.reports = 0;
        let is_queued = descriptor.watch.as_ref().is_some_and(|watch| watch.is_queued);
        descriptor.watch = Some(Watch { token, interest, is_queued: true, spurious: None });
        if !is_queued {
            self.queue.push(owner);
        }
        Ok(())
    }

    pub(super) fn unwatch(&mut self, number: u32) {
        let owner = self.descriptors.owner(number);
        if let Some(descriptor) = self.descriptors.get_mut(number)
            && descriptor.watch.take().is_some_and(|watch| watch.is_queued)
        {
            self.queue.retain(|queued| *queued != owner);
        }
    }

    /// A readiness call: lets time pass up to `limit`, and reports the ready descriptors.
    ///
    /// # Errors
    /// A deadlock: the wait has no limit, and no event will come.
    pub(super) fn wait(&mut self, limit: Option<Duration>, ready: &mut Vec<Ready>) -> io::Result<()> {
        self.happen();
        self.tell(ready);
        let only_looks = limit == Some(Duration::ZERO);
        if !ready.is_empty() || only_looks {
            self.looks = self.looks.saturating_add(1);
            #[cfg(test)]
            assert!(self.looks < TEST_LOOKS_MAX, "everybody looks all the time, and nothing happens");
            if self.looks > LOOKS_MAX {
                self.network.advance(self.network.now() + LOOK);
            }
            return Ok(());
        }
        self.looks = 0;
        if self.network.fails() {
            // A signal interrupts the wait.
            return Ok(());
        }
        let end = limit.map(|limit| self.network.now() + limit);
        match [self.network.next_at(), end].into_iter().flatten().min() {
            Some(next) => self.network.advance(next),
            // Another thread may have woken the runtime after its last look.
            None if rustix::io::read(&*self.wake, &mut [0u8; 8]).is_ok() => {}
            None => return Err(self.deadlock()),
        }
        self.happen();
        self.tell(ready);
        Ok(())
    }

    fn deadlock(&self) -> io::Error {
        let time = self.network.now().as_nanos();
        let what = format!("deadlock at virtual time {time} ns, nothing can happen any more");
        io::Error::new(io::ErrorKind::Deadlock, what)
    }

    /// Runs every event whose time has come.
    fn happen(&mut self) {
        let mut notices = std::mem::take(&mut self.notices);
        if self.network.run_due(&mut notices) > 0 {
            self.looks = 0;
        }
        for notice in notices.drain(..) {
            let (owner, spurious) = match notice {
                Notice::Touched(owner) => (owner, None),
                Notice::Spurious(owner, direction) => (owner, Some(direction)),
                Notice::File(operation) => {
                    self.files.push(operation);
                    continue;
                }
            };
            let watch = self.descriptors.owned(owner).and_then(|descriptor| descriptor.watch.as_mut());
            let Some(watch) = watch else { continue };
            watch.spurious = watch.spurious.or(spurious);
            if !std::mem::replace(&mut watch.is_queued, true) {
                self.queue.push(owner);
            }
        }
        self.notices = notices;
    }

    /// Reports what is ready now, in seeded order; what exceeds one wait comes with the next.
    fn tell(&mut self, ready: &mut Vec<Ready>) {
        if !self.files.is_empty() {
            ready.push(Ready { token: self.wake_token, readable: false, writable: false, ended: false });
        }
        let mut looked_at = std::mem::replace(&mut self.queue, std::mem::take(&mut self.looked_at));
        let count = looked_at.len();
        for place in 1..count {
            looked_at.swap(place, self.network.chance_below(place + 1));
        }
        let most = if count > 1 && self.network.fails() { 1 } else { EVENTS_MAX };
        for owner in looked_at.drain(..) {
            if ready.len() >= most {
                self.queue.push(owner);
            } else {
                ready.extend(self.tell_of(owner));
            }
        }
        self.looked_at = looked_at;
    }

    fn tell_of(&mut self, owner: Owner) -> Option<Ready> {
        let object = self.descriptors.owned(owner)?.object;
        let state = self.state(object);
        let trigger = self.trigger;
        let descriptor = self.descriptors.owned(owner)?;
        let watch = descriptor.watch.as_mut()?;
        watch.is_queued = false;
        let (readable, writable, ended) = trigger.reported(state, watch);
        watch.spurious = None;
        if !(readable || writable || ended) {
            return None;
        }
        let ready = Ready { token: watch.token, readable, writable, ended };
        if trigger != Trigger::Edge {
            watch.is_queued = true;
            self.queue.push(owner);
            descriptor.reports += 1;
            #[cfg(test)]
            assert!(
                descriptor.reports < REPORTS_MAX,
                "told over and over, and nobody does anything: {ready:?}"
            );
        }
        Some(ready)
    }

    /// File operations that have ended since the last call.
    pub(super) fn take_files(&mut self) -> Vec<SlotId> {
        std::mem::take(&mut self.files)
    }

    pub(super) fn now(&self) -> Instant {
        self.network.now()
    }
}
