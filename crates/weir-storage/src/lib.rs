//! Storage: every way to wait for a disk, and how well a wait can be predicted.
//!
//! In the order an answer is made: [`job`] says what is asked, [`layout`] prepares the file, [`engine`] carries
//! operations to the kernel, [`wait`] decides how the thread spends the time until one is complete, with a
//! [`predict`]or where it sleeps first, [`measure`] holds the measurement points, [`run`] joins them, and [`output`]
//! writes what others read. [`simulate`] has the same methods wait for a device that is a queueing model, or for a
//! recorded [`trace`], by itself or as a trial of a study.
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
