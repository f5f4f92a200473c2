//! What an engine counts about itself, and which kernel brought what its drivers use.
//!
//! A crate of its own so that results can be stored and read without the engine, and the engine used without what
//! storing takes: with the feature `records` the types are records, without it they are plain data.

mod counters;
mod handoff;
pub mod kernel;

pub use counters::EngineStats;
pub use handoff::HandoffStats;
