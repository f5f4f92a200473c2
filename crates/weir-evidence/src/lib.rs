//! The kernel's data about the machine and about the processes under test.
//!
//! Most of it is read from /proc, /sys and CPU clocks at the edges of a window (evidence rung L1) and costs the
//! measured program nothing during the window. Parsers are pure and never panic; missing data stay empty. [`ladder`]
//! contains the part with a cost: programs at the kernel's tracepoints (rung L2). An engine's own counters are not
//! here.

#![forbid(unsafe_code)]

pub mod control_group;
pub mod edge;
pub mod foreign;
pub mod listener;
pub mod load_link;
pub mod memory;
pub mod network;
pub mod process;
pub mod selection;
pub mod slice_observers;
pub mod softirq_time;
pub mod stats;
pub mod system;

pub mod ladder;
pub mod recorded;
pub mod watch;

pub mod crosscore;
pub mod fingerprint;
pub mod limits;
pub mod placement;
pub mod program_file;

pub mod doctor;

mod files;
mod parse;
mod sockets;
