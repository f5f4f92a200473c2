//! Protocol cores driven by the engine: what a connection does, whatever way of waiting runs it.

pub mod echo;
pub mod http;
pub mod journal;
pub mod stats;
