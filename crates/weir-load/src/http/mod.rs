//! The HTTP workload: requests of HTTP/1.1, and everything that is checked about their responses.
//!
//! [`spec`] says what is asked for, [`workload`] writes requests and judges what comes back on each connection,
//! [`across_workers`] is what all of these share: which request comes when ([`request_order`]), what contents are
//! compared with ([`content_check`]) and a [`result_log`] with a row for each response; [`notes`] is what is counted
//! besides times, [`sample`] is the first response that was bad, [`outcome`] turns all that into the HTTP part of a
//! report. Framing is the business of `weir-proto`; how requests are started and timed is the same as for every other
//! workload.

pub(crate) mod across_workers;
pub(crate) mod content_check;
pub mod notes;
pub(crate) mod outcome;
pub mod request_order;
pub(crate) mod result_log;
pub(crate) mod sample;
pub mod spec;
#[cfg(test)]
mod tests;
pub(crate) mod workload;
