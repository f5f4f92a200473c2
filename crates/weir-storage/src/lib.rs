//! Storage benchmarks: every way to wait for a disk, and how well a wait can be predicted.
//!
//! In the order of a run: [`job`] is the specification, [`layout`] prepares the file, [`engine`] submits operations
//! to the kernel, [`wait`] decides how the thread spends the time until one is complete, with a predictor
//! ([`predict`]) where it sleeps first, [`measure`] contains the measurement points, [`run`] connects them, and
//! [`output`] writes the results. [`simulate`] runs the same methods on a queueing model of a device, or on a recorded
//! [`trace`], alone or as a trial of a study.
//!
//! Predictors, the simulator and the measurement points are pure: no I/O, no clock, the same seed gives the same bits.

pub mod job;

pub mod layout;
pub mod verify;

pub mod engine;

pub mod predict;
pub mod wait;

pub mod measure;

pub mod run;

pub mod capture;

pub mod output;

pub mod simulate;
pub mod trace;
