//! The live monitor of running processes: message rates, context switches and CPU of each thread, hand-off costs
//! between workers, hop times and sessions.
//!
//! All targets are read at one moment with one time stamp; rates are differences of two such moments over the actual
//! time between them. What was not read is a gap and never a zero; a counter that decreased because the process was
//! replaced is a reset and never a negative rate.
//!
//! [`target`] finds processes, [`snapshot`] reads them, [`frame`] turns two snapshots into the shown figures (pure),
//! and [`lines`] and [`screen`] draw a frame as text and on a terminal (pure); [`live`] runs the terminal. This crate
//! does not measure studies: its figures are for people who watch.

pub mod target;

pub mod snapshot;

pub mod frame;

pub mod lines;
pub mod screen;

pub mod live;

#[cfg(test)]
mod fuzz;
