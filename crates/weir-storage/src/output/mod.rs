//! Output for other programs: [`fio`] JSON, [`log`]s in fio's format, [`intervals`] as CSV, and the disk's own
//! counters.

pub mod disk;
pub mod fio;
pub mod intervals;
pub mod log;

pub use disk::DiskCounters;
pub use fio::{HostDefaults, fio_json};
pub use log::{Logged, OperationLog};
