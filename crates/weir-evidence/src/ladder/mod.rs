//! The ladder of evidence above /proc: which rungs are available on this machine, and the programs of the third one.
//!
//! L0 is what an engine counts of itself, L1 what the kernel always keeps (`crate::process`), L2 small programs at the
//! kernel's tracepoints, which see every system call of any process, L3 `strace`, which sees the same and distorts it.
//! [`rung`] decides from facts alone; [`tracer`] runs the programs of L2, and [`run_calls`] a few that count the calls
//! of commands from their exec on.

pub mod cost;
pub mod run_calls;
pub mod rung;
pub mod strace;
pub mod tables;
pub mod trace;
pub mod tracer;

mod assembler;
mod btf;
#[cfg(test)]
mod interpreter;
mod kernel;
mod programs;

pub use programs::{DESCRIPTORS_ARE_KNOWN, Group};
