//! From the trials of a study to its verdicts. Pure: no I/O, no clock; the same spec, seed and trials give the same
//! order and the same verdict, on any machine and at any time.
//!
//! [`plan`] says in which order a study runs, [`power`] what it can be expected to find and [`progress`] how far it is;
//! [`exclusion`] and [`gate`] say which trials may be compared, `units` turns them into the values a decision rests on,
//! `question` answers with them, and [`judge`] decides and puts the result together; the other modules find what stands
//! beside the verdicts. [`compare`] compares two judged runs, [`pool`] combines several, and
//! [`history`] sets them one after the other. The laboratory runs what is planned here, and every view draws what is
//! judged here. [`commands`] does all of it for commands that end.

pub mod batching_bound;
pub mod commands;
pub mod compare;
pub mod exclusion;
mod exclusion_balance;
pub mod gate;
pub mod history;
pub mod judge;
pub mod missing;
pub mod plan;
pub mod pool;
pub mod power;
pub mod progress;
pub mod rungs;
pub mod running;
pub mod sample;
pub mod slice_length;

mod accept_queue;
mod across_cells;
mod added_cost;
mod aggregate;
mod answers;
mod arm_checks;
mod attribution;
mod cause;
mod cell_notes;
mod cell_trials;
mod check;
mod connection_costs;
mod contrast;
mod cpu_account;
mod draft;
mod drift;
mod evidence;
mod factors;
mod frontier;
mod grid;
mod guidance;
mod histogram;
mod interaction;
mod latency_map;
mod link_losses;
mod obstacle;
mod oversubscription;
mod overview;
mod planted;
mod question;
mod scaling;
mod slice_order;
mod strace;
mod summary;
mod sums;
mod syn_ladder;
mod syscall_coverage;
mod tcp_segments;
mod thread_use;
mod units;
mod variance_components;
mod wait_series;
mod warm;
mod witnesses;

pub use witnesses::is_same_shape;
