//! From flags or a job file to jobs that can run, and the order in which a job accesses its blocks.
//!
//! [`fio_file`] reads the supported part of fio's job files, [`validate()`] names in one sentence what is impossible,
//! and [`target`] checks the file a job names. [`offsets`] is pure: the same job gives the same blocks in the same
//! order, and the same ones as fio.

pub mod fio_file;
pub mod fio_words;
mod keys;
mod lines;
pub mod offsets;
mod skew;
pub mod target;
mod tausworthe;
pub mod units;
mod validate;
mod waits;

pub use fio_file::{JobFile, JobFileError, number_threads, with_variables};
pub use fio_words::{FioFormat, FioWords};
pub use keys::{device_clock, ring_mode, sleep_primitive};
pub use lines::Lines;
pub use offsets::{Offsets, Step};
pub use target::{Target, check_target, requested_bytes, written_until_bytes};
pub use validate::{
    BLOCK_BYTES_MAX, DEPTH_MAX, Field, JobError, MAP_BLOCKS_MAX, THREADS_MAX, validate, validate_all,
};
