//! Protocol cores driven by the engine: the behaviour of a connection, on any I/O model.

mod connection_timer;
mod counter;
pub mod echo;
pub mod exchange;
pub mod gateway;
pub mod http;
pub mod journal;
pub mod metrics;
pub mod orders;
mod overflow;
#[cfg(feature = "lab")]
pub mod planted;
pub mod stats;
mod thread_per_connection;
