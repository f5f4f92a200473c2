//! A simulated kernel: virtual time, and sockets between the tasks of one runtime, with seeded latency and faults.
//!
//! The driver is [`Readiness`], the same one as for epoll, poll and select; only the kernel that it calls, the
//! readiness call and the clock are simulated. So a seed tests the code that runs in production.
//!
//! Time does not pass while tasks run, and jumps to the next event or timer when all of them wait. So a program that
//! sleeps for an hour ends at once, and every duration it measures is exact. The seed decides latencies, faults,
//! spurious events and their order; the same program with the same options runs the same way, bit for bit. When every
//! task waits and no event can come, the run ends with an error that lists the waiting tasks.
//!
//! There are no descriptors, so real sockets are refused. Other threads have no place in virtual time; their messages
//! are still received before the runtime would report a deadlock.

use std::{cell::RefCell, io, rc::Rc, sync::Arc};

use super::{contract::DriverParts, readiness::Readiness};

mod descriptors;
mod event_queue;
mod kernel;
mod machine;
mod names;
mod network;
mod poller;
pub(in crate::driver) mod random;
mod side;
#[cfg(test)]
mod tests;

use kernel::Simulated;
use machine::Machine;
use poller::Poller;

/// The driver.
pub(crate) type Sim = Readiness<Poller, Simulated>;

/// Starts a separate machine for one runtime.
pub(crate) fn start(parts: DriverParts) -> io::Result<Sim> {
    let machine = Machine::new(parts.config.sim, Arc::clone(&parts.wake));
    let machine = Rc::new(RefCell::new(machine));
    Readiness::new(Poller { machine: Rc::clone(&machine) }, Simulated { machine }, parts)
}
