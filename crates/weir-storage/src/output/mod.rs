//! What others read: [`fio`] JSON, [`log`]s in fio's format, [`intervals`] as CSV, and what the disk itself counted.

pub mod disk;
pub mod fio;
pub mod intervals;
pub mod log;

pub use disk::DiskCounters;
pub use fio::{HostDefaults, fio_json};
pub use log::{Logged, OperationLog};
