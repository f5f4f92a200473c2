//! The counters of an engine, and the kernel versions that introduced the features that its drivers use.
//!
//! This is a separate crate so that results can be stored and read without the engine, and the engine can be used
//! without the dependencies for storing: with the feature `records` the types are records, without it they are plain
//! data.

mod counters;
mod handoff;
pub mod kernel;

pub use counters::EngineStats;
pub use handoff::HandoffStats;
