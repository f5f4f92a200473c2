//! Turns of a runtime that takes part in a hand-off between workers: pushed messages leave at the end of the turn,
//! before the runtime may sleep, and arrivals wake the task that waits for them.
//!
//! The queues themselves are in `handoff`. A runtime without a port never enters this code: it pays one predictable
//! branch a turn.
//!
//! While a port is attached the runtime wakes at least once a second and checks for arrivals. An arrival that it then
//! finds without an announcement is a lost wake. It is counted, and the count must stay zero.

use std::{
    cell::{Cell, RefCell},
    io,
    time::Duration,
};

use super::Core;
use crate::{clock::monotonic, driver::Wait};

/// Longest sleep while a port is attached.
const LOOK: Duration = Duration::from_secs(1);

/// Checks of memory between two checks of the kernel while spinning.
const SPIN_LOOKS: u32 = 64;

/// Why a port checks for arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PollReason {
    /// During a turn.
    Turn,
    /// After a sleep that no announcement ended.
    Unannounced,
}

/// One worker's port, as its runtime uses it.
pub(crate) trait TurnHook {
    /// The tasks of this turn have run: returns room, publishes the pushed messages, wakes sleepers. `in_turn`: the
    /// driver's turn follows, and submits what is queued there.
    fn end_turn(&self, core: &Core, in_turn: bool);

    /// Wakes the task that waits for arrivals if there are some. True: it was woken.
    fn look(&self, core: &Core, reason: PollReason) -> bool;

    /// About to sleep: from now on an arrival must wake. False: something has arrived.
    fn arm(&self) -> bool;

    /// No longer asleep.
    fn disarm(&self);

    /// Counts a sleep that ended without an arrival.
    fn count_spurious(&self);

    /// How long to poll memory before a sleep; zero: not at all.
    fn spin_budget(&self) -> Duration;

    /// The port is gone, and all its work is done.
    fn is_over(&self) -> bool;
}

/// The ports of one runtime; usually one.
#[derive(Default)]
pub(super) struct Ports {
    any: Cell<bool>,
    list: RefCell<Vec<Box<dyn TurnHook>>>,
}

impl Ports {
    #[inline]
    pub(super) fn are_attached(&self) -> bool {
        self.any.get()
    }

    fn all(&self, mut condition: impl FnMut(&dyn TurnHook) -> bool) -> bool {
        self.list.borrow().iter().all(|port| condition(&**port))
    }

    fn each(&self, mut action: impl FnMut(&dyn TurnHook)) {
        self.list.borrow().iter().for_each(|port| action(&**port));
    }
}

impl Core {
    /// Makes a port take part in every turn.
    pub(crate) fn attach_port(&self, port: Box<dyn TurnHook>) {
        self.ports.list.borrow_mut().push(port);
        self.ports.any.set(true);
    }

    /// Called when the tasks of this turn have run.
    pub(super) fn end_of_turn(&self, in_turn: bool) {
        self.ports.each(|port| port.end_turn(self, in_turn));
    }

    /// The runtime ends: pushed messages are still published.
    pub(super) fn close_ports(&self) {
        if self.ports.are_attached() {
            self.end_of_turn(false);
            self.ports.any.set(false);
            self.ports.list.take();
        }
    }

    /// True: a task was woken for an arrival.
    fn look_at_ports(&self, reason: PollReason) -> bool {
        let mut woken = false;
        self.ports.each(|port| woken |= port.look(self, reason));
        woken
    }

    /// Drops ports that are over. Their destructors may wake tasks and attach ports: nothing is borrowed during the
    /// drop.
    fn forget_ports(&self) {
        if self.ports.all(|port| !port.is_over()) {
            return;
        }
        let list = self.ports.list.take();
        let (over, kept): (Vec<_>, Vec<_>) = list.into_iter().partition(|port| port.is_over());
        self.ports.any.set(!kept.is_empty());
        self.ports.list.replace(kept);
        drop(over);
    }

    /// As `turn`, with ports.
    pub(super) fn turn_with_ports(&self) -> io::Result<()> {
        self.end_of_turn(true);
        self.look_at_ports(PollReason::Turn);
        let mut wait = self.wait();
        if wait != Wait::No {
            self.spin_at_ports(wait)?;
            // The turns of the spin may have set deadlines, and dropped values may wake tasks.
            self.forget_ports();
            wait = self.wait();
        }
        let armed = wait != Wait::No && self.inbox.flag.prepare_sleep();
        let sleeps = armed && self.ports.all(|port| port.arm());
        let until = if sleeps { self.sleep_end(wait) } else { Wait::No };
        self.woken.set(false);
        let outcome = self.turn_driver(until);
        let announced = self.inbox.flag.woke();
        outcome?;
        if armed {
            self.ports.each(|port| port.disarm());
        }
        self.look_at_ports(if sleeps && !announced { PollReason::Unannounced } else { PollReason::Turn });
        self.take_remote();
        self.fire_timers();
        if sleeps && self.woken.get() && !self.has_ready() {
            self.ports.each(|port| port.count_spurious());
        }
        self.flush();
        Ok(())
    }

    /// The latest end of a sleep.
    fn sleep_end(&self, wait: Wait) -> Wait {
        // In virtual time no other thread can announce anything, and the periodic check would keep virtual time
        // moving.
        if self.is_simulated() { wait } else { wait.at_most(Some(monotonic() + LOOK)) }
    }

    /// Polls memory for arrivals, and the kernel for events, for the runtime's spin budget or for as long as a port
    /// wants it, until there is something to do.
    fn spin_at_ports(&self, wait: Wait) -> io::Result<()> {
        let mut budget = self.spin;
        self.ports.each(|port| budget = budget.max(port.spin_budget()));
        if budget.is_zero() || self.is_simulated() {
            return Ok(());
        }
        let start = monotonic();
        let Wait::Until(end) = wait.at_most(Some(start + budget)) else { return Ok(()) };
        loop {
            self.turn_driver(Wait::No)?;
            if self.wait() == Wait::No {
                return Ok(());
            }
            for _ in 0..SPIN_LOOKS {
                if self.look_at_ports(PollReason::Turn) {
                    return Ok(());
                }
                std::hint::spin_loop();
            }
            if monotonic() >= end {
                return Ok(());
            }
        }
    }
}
