//! The HTTP workload: HTTP/1.1 requests, and all checks of their responses.
//!
//! [`spec`] describes the requests; [`workload`] writes requests and judges what comes back on each connection.
//! [`across_workers`] contains what all workers share: the order of requests ([`request_order`]), the expected
//! contents ([`content_check`]) and a [`result_log`] with a row for each response. [`notes`] contains the counts
//! besides times, [`sample`] the first bad response; [`outcome`] turns them into the HTTP part of a report.
//! `weir-proto` handles the framing; requests are started and timed like those of every other workload.

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
