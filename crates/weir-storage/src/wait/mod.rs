//! How a thread spends the time until an operation is complete.
//!
//! Three methods: leave it to the interrupt; look again and again; or sleep a predicted time and then look again and
//! again ([`Method`]). A sleep is *unarmed* (it lasts what was asked, whatever happens: only then can it miss) or
//! *armed* (the completion ends it too). What a sleep really lasts here, and what an interrupt costs, is measured
//! before a run ([`calibrate`]); predictors are made with it.
//!
//! Nothing here decides how long to sleep (predictors do), and nothing adds up how it went (the meter does).

pub mod calibrate;
pub mod time;
pub mod waiter;

#[cfg(test)]
pub(crate) mod fake;

pub use calibrate::{Calibration, LagRow};
pub use time::{RealTime, Time};
pub use waiter::{InFlight, InFlightTable, Method, Wait, Waiter};
