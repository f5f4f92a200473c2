//! The live monitor of running processes: message rates, switches and CPU of each thread, what handing over between
//! workers costs, hop times and sessions.
//!
//! All targets are asked at one moment, which has one time stamp; rates are differences of two such moments over the
//! time that really lies between them. What was not read is a gap and never a zero; a counter that went back, because
//! the process is another one, is a reset and never a negative rate.
//!
//! [`target`] finds processes, [`snapshot`] reads them, [`frame`] turns two snapshots into what is shown (pure), and
//! [`lines`] and [`screen`] draw a frame as text and on a terminal (pure); [`live`] runs the terminal. This crate does
//! not measure studies: its figures are for people who watch.

pub mod target;

pub mod snapshot;

pub mod frame;

pub mod lines;
pub mod screen;

pub mod live;

#[cfg(test)]
mod fuzz;
