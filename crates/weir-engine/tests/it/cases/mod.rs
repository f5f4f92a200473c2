//! The bodies of the cases, by subject. Each is written once and knows only those options and counters of a driver
//! that it needs.

pub mod blocking_calls;
pub mod buffers;
pub mod cancel;
pub mod drain;
pub mod ending;
pub mod equivalence;
pub mod fairness;
pub mod files;
pub mod handlers;
pub mod limits;
pub mod moving;
pub mod panics;
pub mod relay;
pub mod resets;
pub mod sendfile;
pub mod start;
pub mod streams;
pub mod wake;
pub mod wakers;
