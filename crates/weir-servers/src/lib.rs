//! Protocol cores driven by the engine: what a connection does, whatever way of waiting runs it.

mod deadline;
pub mod echo;
pub mod exchange;
pub mod gateway;
pub mod http;
pub mod journal;
pub mod orders;
pub mod stats;
