//! Thin safe wrappers over the kernel interfaces Weir uses.
pub mod affinity;
pub mod aio;
pub mod blocks;
pub mod bpf;
pub mod child;
pub mod clock;
pub mod output;
pub mod placement;
pub mod posix_aio;
pub mod raw_ring;
pub mod readiness;
pub mod region;
pub mod ring;
pub mod syscalls;
pub mod timer;
pub mod unix_path;
pub mod usage;
