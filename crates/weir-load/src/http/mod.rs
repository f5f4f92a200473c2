//! The HTTP workload: requests of HTTP/1.1, and everything that is checked about their responses.
//!
//! [`spec`] says what is asked for, [`workload`] writes requests and judges what comes back on each connection,
//! [`standard`] is what contents are compared with, [`notes`] is what is counted besides times, [`sample`] is the
//! first response that was bad, [`journal`] writes a row for each response, [`outcome`] turns all that into the
//! HTTP part of a report. Framing is the business of `weir-proto`; how requests are started and timed is the same
//! as for every other workload.

pub(crate) mod journal;
pub mod notes;
pub(crate) mod outcome;
pub(crate) mod sample;
pub mod spec;
pub(crate) mod standard;
#[cfg(test)]
mod tests;
pub(crate) mod workload;
