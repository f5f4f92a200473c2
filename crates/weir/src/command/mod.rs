//! One file for each command: arguments to specification, then run.

pub(crate) mod engine;
pub(crate) mod serve;
