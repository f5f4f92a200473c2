//! How a thread spends the time until an operation is complete.
//!
//! There are three methods: wait for the interrupt; poll; or sleep a predicted time and then poll ([`Method`]). A
//! sleep is *unarmed* (it lasts as long as requested, whatever happens: only then can it miss) or *armed* (the
//! completion ends it too). The actual length of a sleep on this machine, and the cost of an interrupt, are measured
//! before a run ([`calibrate`]); predictors are created with these costs.
//!
//! This module does not decide how long to sleep (predictors do), and does not add up the results (the meter does).

pub mod calibrate;
pub mod time;
pub mod waiter;

#[cfg(test)]
pub(crate) mod fake;

pub use calibrate::{Calibration, LagRow};
pub use time::{RealTime, Time};
pub use waiter::{InFlight, InFlightTable, Method, Wait, Waiter};
